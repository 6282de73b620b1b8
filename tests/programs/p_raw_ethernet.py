#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The raw_ethernet tools of Debian's perftest between two processes.

They know no TCP: a server is ready a moment after it has printed the head of its table.  A pair
passes if both sides end with status 0 and report rates that are not zero.  Not here:
raw_ethernet_burst_lat, which needs a rate limit that the device has not got, and --raw_mcast,
which attaches a RAW_PACKET QP to a group; Linux has that for UD only.
"""
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from perftest import is_plausible, result_rows
from programs import DEADLINE_S, end, finish, need, run, verbena

A, B = "02:56:42:00:00:01", "02:56:42:00:00:02"
READY_S = 0.2
IP = "-j 10.0.0.1 -J 10.0.0.2"
# No more frames than a server has receives (512): nobody holds a sender back that is too fast.
BW = [
    "-n 400", "-n 400 -s 64", "-n 400 -s 4000 -m 9000", "-n 400 " + IP,
    "-n 400 -k 1000 -K 2000 " + IP, "-n 400 -k 1000 -K 2000 --tcp " + IP,
    "-D 1 -b",
]
LAT = ["-n 1000", "-n 1000 -k 1000 -K 2000 " + IP]


def command(tool, side, options):
    mine, other = (B, A) if side == "server" else (A, B)
    return [tool, "-F", "-d", "mlx5_0", "--" + side, "-B", mine, "-E", other, *options.split()]


def start_server(tool, options):
    """It, and what it printed up to the head of its table."""
    line = verbena("stdbuf", "-oL", *command(tool, "server", options))
    server = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True)
    said = ""
    for text in server.stdout:
        said += text
        if text.strip().startswith("#"):
            break
    time.sleep(READY_S)
    return server, said


def pair(tool, options):
    server, said = start_server(tool, options)
    try:
        client = run(verbena(*command(tool, "client", options)))
        result = finish(server, ["server", tool, options], DEADLINE_S)
        result.out = said + result.out
        return result, client
    finally:
        if server.poll() is None:
            end(server)


class RawEthernet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need("raw_ethernet_bw", "raw_ethernet_lat", "raw_ethernet_fs_rate", "stdbuf")

    def check(self, tool, options):
        server, client = pair(tool, options)
        self.assertEqual((client.status, server.status), (0, 0), "%s\n%s" % (client, server))
        for side in server, client:
            rows = result_rows(side.out)
            self.assertTrue(rows and all(map(is_plausible, rows)), side)

    def test_bandwidth(self):
        for options in BW:
            with self.subTest(options):
                self.check("raw_ethernet_bw", options)

    def test_latency(self):
        for options in LAT:
            with self.subTest(options):
                self.check("raw_ethernet_lat", options)

    def test_rate_of_rules(self):
        """It makes and destroys rules, and sends nothing."""
        result = run(verbena(*command("raw_ethernet_fs_rate", "server", "-n 500")))
        self.assertEqual(result.status, 0, result)
        self.assertIn("500", result.out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
