#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The bandwidth tools of Debian's perftest; see harness/perftest.py for what is judged.

  p_perftest_bw.py [--full] [unittest arguments]
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from perftest import PerftestCase, main

ALL = "write read send atomic"
DATA = "write read send"

# operations, options; of RC unless they say otherwise
ROWS = [
    (DATA, "-s 1"),
    ("write read", "-s 1048576 -n 10"),
    (ALL, "-q 4"),
    (ALL, "-b"),
    (DATA, "-l 8 -n 96"),
    ("send", "-Q 1"),
    ("send", "-r 1 -t 1"),
    ("send", "-r 16 -t 8"),
    ("send", "--use-srq -q 2 -r 64"),
    ("read atomic", "-o 1"),
    ("read atomic", "-o 16"),
    ("write", "-t 1 -q 4 -b"),
    ("write", "--mr_per_qp -q 2"),
    ("write send", "-c UC -q 4 -b"),
    ("send", "-c UD -s 1024 -q 4 -b"),
]


class Bandwidth(PerftestCase):
    KIND = "bw"

    def test_each_operation_of_each_transport(self):
        self.all_transports()

    def test_other_options(self):
        self.all_rows(ROWS)

    def test_sweep_over_all_sizes(self):
        self.sweep("send")


if __name__ == "__main__":
    main()
