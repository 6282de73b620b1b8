# SPDX-License-Identifier: BSD-2-Clause
"""Debian's perftest over RC between two processes: it runs, and it reports something.

A row passes if both sides end with status 0 and the client's table has a row whose
message rate (bandwidth) or typical time (latency) is not zero.  How fast is not judged here.
Used by p_perftest_bw.py and p_perftest_lat.py, which hold the rows.
"""
import unittest

from programs import GID_INDEX, need, run_pair

ALL = "write read send atomic"
DATA = "write read send"


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
        need(*("ib_%s_%s" % (op, cls.KIND) for op in ALL.split()))

    def pair(self, op, options):
        size = [] if op == "atomic" or "-s" in options or "-a" in options else ["-s", "4096"]
        count = [] if "-n" in options.split() else ["-n", "100"]
        program = ["ib_%s_%s" % (op, self.KIND), "-F", "-d", "mlx5_0", "-x", GID_INDEX, *size,
                   *count, *options.split()]
        server, client = run_pair(program)
        self.assertEqual((client.status, server.status), (0, 0), "%s\n%s" % (client, server))
        rows = result_rows(client.out)
        self.assertTrue(rows, client)
        for row in rows:
            self.assertTrue(is_plausible(row), client)
        return rows

    def all_rows(self, table):
        for ops, options in table:
            for op in ops.split():
                with self.subTest("ib_%s_%s %s" % (op, self.KIND, options)):
                    self.pair(op, options)

    def sweep(self, op):
        """All sizes from 2 bytes to 8 MiB.  Slow: perftest measures its clock for each row."""
        rows = self.pair(op, "-a -n 5")
        self.assertEqual([int(r[0]) for r in rows], [2 ** i for i in range(1, 24)])
