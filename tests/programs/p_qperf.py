#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""qperf over RC, UC and UD: each test ends by itself and reports a rate.

On an InfiniBand port: without rdma_cm qperf addresses its peer by LID only, which no RoCE port has,
of whatever maker.  How fast it is is not judged.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from programs import end, finish, free_port, main, need, run, start, verbena, wait_until_listening

need("qperf")

ENV = {"VERBENA_NIC": "connectx-6"}
# A test takes a second, qperf's least.  Those that go together find the same server.
TESTS = ["rc_lat", "rc_rdma_write_poll_lat", "rc_rdma_read_bw", "ver_rc_compare_swap",
         "ver_rc_fetch_add", "uc_bi_bw", "uc_rdma_write_lat", "ud_lat", "ud_bi_bw"]


class Qperf(unittest.TestCase):
    def test_each_of_its_tests(self):
        port = str(free_port())
        command = verbena("qperf", "-lp", port)
        server = start(command, ENV)
        self.addCleanup(end, server)
        wait_until_listening(int(port), server)
        client = run(verbena("qperf", "127.0.0.1", "-lp", port, "-i", "mlx5_0", "-t", "1", "-v",
                             *TESTS, "quit"), ENV)
        self.assertEqual((client.status, client.err), (0, ""), client)
        reports = re.split(r"^(\w+):$", client.out, flags=re.M)[1:]
        self.assertEqual(reports[::2], TESTS + ["quit"], client)
        for name, report in zip(TESTS, reports[1::2]):
            with self.subTest(name):
                rates = re.findall(r"^ +(?:msg_rate|latency|send_bw|bw) += +([0-9.,]+)", report,
                                   re.M)
                self.assertTrue(rates and all(float(r.replace(",", "")) > 0 for r in rates),
                                client)
        self.assertEqual(finish(server, command).status, 0)


if __name__ == "__main__":
    main()
