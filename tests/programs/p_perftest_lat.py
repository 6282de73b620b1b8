#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The latency tools of Debian's perftest; see harness/perftest.py for what is judged."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from perftest import ALL, DATA, PerftestCase
from programs import main

# operations, options
ROWS = [
    (ALL, ""),
    ("read send atomic", "-e"),
    ("send", "--use_old_post_send"),
    ("write send", "-s 32 -I 64"),
    (DATA, "-s 100000 -m 256 -n 20"),
    ("send", "--inline_recv=32 -s 32"),
    ("atomic", "-A CMP_AND_SWAP"),
    ("atomic", "-A FETCH_AND_ADD"),
]


class Latency(PerftestCase):
    KIND = "lat"

    def test_each_tool_with_each_option(self):
        self.all_rows(ROWS)

    def test_sweep_over_all_sizes(self):
        self.sweep("read")


if __name__ == "__main__":
    main()
