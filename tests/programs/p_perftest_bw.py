#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The bandwidth tools of Debian's perftest; see harness/perftest.py for what is judged."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from perftest import ALL, DATA, PerftestCase
from programs import main

# operations, options
ROWS = [
    (ALL, ""),
    ("read send atomic", "-e"),
    (ALL, "--use_old_post_send"),
    ("write send", "-s 32 -I 0"),
    (DATA, "-s 1"),
    ("write read", "-s 1048576 -n 10"),
    (ALL, "-q 4"),
    (ALL, "-b"),
    (DATA, "-l 8 -n 96"),
    ("send", "-Q 1"),
    ("send", "-r 1 -t 1"),
    ("send", "-r 16 -t 8"),
    ("read atomic", "-o 1"),
    ("read atomic", "-o 16"),
    ("write", "-t 1 -q 4 -b"),
    ("write", "--mr_per_qp -q 2"),
]


class Bandwidth(PerftestCase):
    KIND = "bw"

    def test_each_tool_with_each_option(self):
        self.all_rows(ROWS)

    def test_sweep_over_all_sizes(self):
        self.sweep("send")


if __name__ == "__main__":
    main()
