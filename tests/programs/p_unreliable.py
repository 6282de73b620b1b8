#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Other people's programs over UC, UD and multicast, between two processes.

ibv_uc_pingpong and ibv_ud_pingpong of ibverbs-utils; of perftest what harness/perftest.py judges.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from perftest import PerftestCase
from programs import GID_INDEX, main, need, run_pair

# -c validates each buffer, -e sleeps for events; a datagram is at most 4096 bytes.
UC_PINGPONGS = ["", "-c", "-e -c", "-s 1 -n 200", "-s 65536 -n 100 -c", "-s 1000000 -n 20 -c",
                "-m 256 -s 4096 -n 200 -c", "-m 4096 -s 100000 -n 50 -c -e"]
UD_PINGPONGS = ["", "-c", "-e -c", "-s 1 -n 200 -c", "-s 64 -n 200", "-s 4096 -n 200 -c -e"]


class Pingpong(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need("ibv_uc_pingpong", "ibv_ud_pingpong")

    def pingpong(self, tool, options, env=None):
        n = re.search(r"-n (\d+)", options)
        server, client = run_pair([tool, "-d", "mlx5_0", *options.split()], env=env)
        self.assertEqual((client.status, server.status), (0, 0), "%s\n%s" % (client, server))
        for side in (client, server):
            self.assertRegex(side.out, r"%s iters in" % (n.group(1) if n else "1000"))
            self.assertNotRegex(side.out + side.err, r"(?i)invalid data|fail|mismatch")

    def test_uc(self):
        for options in UC_PINGPONGS:
            with self.subTest(options):
                self.pingpong("ibv_uc_pingpong", "-g %s %s" % (GID_INDEX, options))

    def test_ud(self):
        for options in UD_PINGPONGS:
            with self.subTest(options):
                self.pingpong("ibv_ud_pingpong", "-g %s %s" % (GID_INDEX, options))

    def test_ud_by_every_sort_of_gid(self):
        for index in range(4):
            with self.subTest(index):
                self.pingpong("ibv_ud_pingpong", "-g %d -n 100 -c" % index)

    def test_on_an_infiniband_port(self):
        for tool, options in (("ibv_uc_pingpong", ""), ("ibv_ud_pingpong", ""),
                              ("ibv_ud_pingpong", "-g 0")):
            with self.subTest("%s %s" % (tool, options)):
                self.pingpong(tool, "-n 200 -c " + options, env={"VERBENA_NIC": "connectx-6"})


class Latency(PerftestCase):
    KIND = "lat"

    def test_uc(self):
        self.all_rows([("write send", "-c UC"), ("send", "-c UC -e"),
                       ("write send", "-c UC --use_old_post_send"),
                       ("write send", "-c UC -s 32 -I 64")])

    def test_ud(self):
        self.all_rows([("send", "-c UD"), ("send", "-c UD -e"),
                       ("send", "-c UD --use_old_post_send"), ("send", "-c UD -s 32 -I 64")])

    def test_multicast(self):
        self.all_rows([("send", "-c UD -g")])


class Bandwidth(PerftestCase):
    KIND = "bw"

    def test_uc(self):
        self.all_rows([("write send", "-c UC"), ("write", "-c UC -s 1048576"),
                       ("write send", "-c UC -q 4"), ("send", "-c UC -b")])

    def test_ud(self):
        self.all_rows([("send", "-c UD"), ("send", "-c UD -q 4"), ("send", "-c UD -b")])


if __name__ == "__main__":
    main()
