# SPDX-License-Identifier: BSD-2-Clause
"""Debian's perftest between two processes: it runs, and it reports something.

A row passes if both sides end with status 0 and the client's table has a row whose
message rate (bandwidth) or typical time (latency) is not zero.  How fast is not judged here.
Used by p_perftest_bw.py and p_perftest_lat.py, which hold the rows.

Each operation of each transport is tried with polling and events, data inline and not, the old way
to post and the new one.  A row costs a second of CPU, most of it for perftest's clock; so the two
files share four combinations of the eight, in which each two choices meet; with --full each
file tries all.
"""
import concurrent.futures
import itertools
import os
import sys
import unittest

from programs import GID_INDEX, need, run, run_pair, verbena

IS_FULL = "--full" in sys.argv

# What perftest can do with each transport.
OPERATIONS = {"RC": "write read send atomic", "UC": "write send", "UD": "send",
              "XRC": "write read send atomic"}

# Choices: (events, inline, new way to post).
COMBINATIONS = {"bw": [(0, 0, 0), (1, 1, 0)], "lat": [(0, 1, 1), (1, 0, 1)]}


def options_of(op, choice):
    """@choice as far as @op has it: there are no events of WRITEs, and READs carry no data."""
    events, inline, is_new = choice
    options = ["-s 8" if op == "atomic" else "-s 32"]
    if events and op != "write":
        options.append("-e")
    if op in ("write", "send"):
        options.append("-I 64" if inline else "-I 0")
    if not is_new:
        options.append("--use_old_post_send")
    return " ".join(options)


def has_xrc():
    return "XRC" in run(verbena("ibv_devinfo", "-v")).out


def numbers(line):
    try:
        return [float(field) for field in line.split()]
    except ValueError:
        return []


def result_rows(text):
    """Rows of numbers below the line that begins with #bytes."""
    lines = text.splitlines()
    heads = [i for i, line in enumerate(lines) if line.strip().startswith("#bytes")]
    return [n for n in map(numbers, lines[heads[0] + 1:]) if len(n) >= 5] if heads else []


def is_plausible(row):
    """#bytes #iterations peak average rate, or #bytes #iterations min max typical ..."""
    return row[0] > 0 and row[1] > 0 and row[4] > 0


class PerftestCase(unittest.TestCase):
    """A test of one kind, "bw" or "lat"."""
    KIND = None

    @classmethod
    def setUpClass(cls):
        need(*("ib_%s_%s" % (op, cls.KIND) for op in OPERATIONS["RC"].split()))

    def command(self, op, options):
        size = [] if op == "atomic" or "-s" in options or "-a" in options else ["-s", "4096"]
        count = [] if "-n" in options.split() else ["-n", "100"]
        return ["ib_%s_%s" % (op, self.KIND), "-F", "-d", "mlx5_0", "-x", GID_INDEX, *size,
                *count, *options.split()]

    def check(self, server, client):
        self.assertEqual((client.status, server.status), (0, 0), "%s\n%s" % (client, server))
        rows = result_rows(client.out)
        self.assertTrue(rows, client)
        for row in rows:
            self.assertTrue(is_plausible(row), client)
        return rows

    def pairs(self, commands):
        """As many at a time as there are CPUs, since all of them poll."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for command, (server, client) in zip(commands, pool.map(run_pair, commands)):
                with self.subTest(" ".join(command)):
                    self.check(server, client)

    def all_rows(self, table):
        self.pairs([self.command(op, options) for ops, options in table for op in ops.split()])

    def all_transports(self):
        choices = list(itertools.product((0, 1), repeat=3)) if IS_FULL else \
            COMBINATIONS[self.KIND]
        rows = [(op, "-c %s %s" % (transport, options_of(op, choice)))
                for transport, ops in OPERATIONS.items() if transport != "XRC" or has_xrc()
                for op in ops.split() for choice in choices]
        self.pairs([self.command(op, options) for op, options in dict.fromkeys(rows)])

    def sweep(self, op):
        """All sizes from 2 bytes to 8 MiB.  Slow: perftest measures its clock for each row."""
        if not IS_FULL:
            self.skipTest("takes --full")
        rows = self.check(*run_pair(self.command(op, "-a -n 5")))
        self.assertEqual([int(r[0]) for r in rows], [2 ** i for i in range(1, 24)])


def main():
    unittest.main(argv=[a for a in sys.argv if a != "--full"], module="__main__", verbosity=2)
