#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The latency tools of Debian's perftest; see harness/perftest.py for what is judged.

  p_perftest_lat.py [--full] [unittest arguments]
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from perftest import PerftestCase, main

# operations, options; of RC unless they say otherwise
ROWS = [
    ("write read send", "-s 100000 -m 256 -n 20"),
    ("send", "--inline_recv=32 -s 32"),
    ("send", "--use-srq -r 64"),
    ("atomic", "-A CMP_AND_SWAP"),
    ("atomic", "-A FETCH_AND_ADD"),
]


class Latency(PerftestCase):
    KIND = "lat"

    def test_each_operation_of_each_transport(self):
        self.all_transports()

    def test_other_options(self):
        self.all_rows(ROWS)

    def test_sweep_over_all_sizes(self):
        self.sweep("read")


if __name__ == "__main__":
    main()
