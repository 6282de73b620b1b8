#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Other people's programs on an InfiniBand port, by LID and by GID.

ibv_rc_pingpong and its like; of perftest each operation once.  UC and UD are in p_unreliable.py.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from perftest import is_plausible, result_rows
from programs import main, need, run, run_pair, verbena

need("ibv_devinfo", "ibv_rc_pingpong", "ibv_srq_pingpong", "ib_write_bw")

NIC = {"VERBENA_NIC": "connectx-6"}
PINGPONGS = ["ibv_rc_pingpong -c", "ibv_rc_pingpong -c -e", "ibv_rc_pingpong -c -g 0",
             "ibv_rc_pingpong -t", "ibv_rc_pingpong -s 65536 -m 4096 -c", "ibv_srq_pingpong -c",
             "ibv_srq_pingpong -c -e -g 0"]
PERFTESTS = ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_write_lat",
             "ib_read_lat", "ib_send_lat -e", "ib_atomic_lat", "ib_send_bw -x 0"]


class InfiniBand(unittest.TestCase):
    def test_the_port_says_what_it_is(self):
        result = run(verbena("ibv_devinfo"), env=NIC)
        values = dict(re.findall(r"^\s*([a-z_]+):\s+(.*\S)\s*$", result.out, re.M))
        self.assertEqual(values["link_layer"], "InfiniBand", result)
        self.assertEqual(values["state"], "PORT_ACTIVE (4)")
        self.assertIn(int(values["port_lid"]), range(1, 0xc000))
        self.assertEqual((values["sm_lid"], values["port_lmc"]), ("1", "0x00"))

    def test_pingpongs(self):
        for row in PINGPONGS:
            with self.subTest(row):
                tool, *options = row.split()
                server, client = run_pair([tool, "-d", "mlx5_0", "-n", "200", *options], env=NIC)
                self.assertEqual((client.status, server.status), (0, 0),
                                 "%s\n%s" % (client, server))
                self.assertRegex(client.out, "200 iters in")
                self.assertNotRegex(client.out + server.out, "(?i)invalid data")

    def test_perftest(self):
        for row in PERFTESTS:
            with self.subTest(row):
                tool, *options = row.split()
                server, client = run_pair([tool, "-F", "-d", "mlx5_0", "-n", "100", *options],
                                          env=NIC)
                self.assertEqual((client.status, server.status), (0, 0),
                                 "%s\n%s" % (client, server))
                rows = result_rows(client.out)
                self.assertTrue(rows and all(map(is_plausible, rows)), client)


if __name__ == "__main__":
    main()
