#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs that close descriptors which they did not open.

Nothing crashes or hangs, nobody's socket is written to, read from or closed, and the device
can be opened again.  The cases are in traffic/disorder_fds.c.
"""
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import AUDIT, DISORDER, fabric_audit, own_fabric, run_case
from programs import DEADLINE_S, LANE, environment, end, main, need, verbena

need(DISORDER, AUDIT)


class Closed(unittest.TestCase):
    def closed_by(self, case):
        """The other process of the case loses its peer, says so, and is killed with it."""
        run_case(self, case)

    def test_close_range(self):
        self.closed_by("close-range")

    def test_closefrom(self):
        self.closed_by("closefrom")

    def test_a_loop_of_close(self):
        self.closed_by("close-loop")

    def test_dup2_over_each(self):
        self.closed_by("dup2")

    def test_system_calls_that_no_library_sees(self):
        for case in ("raw-close-range", "raw-close-loop"):
            with self.subTest(case):
                self.closed_by(case)

    @unittest.skipIf(LANE == "own", "it has no pages there: the library asks the device")
    def test_pages_mapped_by_a_system_call(self):
        run_case(self, "raw-mmap")

    def wait_until_gone(self, fabric):
        """Without the shim nobody sees a close(): the device looks by itself, a little later."""
        deadline = time.monotonic() + (DEADLINE_S if LANE == "own" else 0)
        while fabric_audit(fabric) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(fabric_audit(fabric), {})

    def test_a_daemon_that_closed_all_is_not_in_the_fabric_any_more(self):
        env, fabric = own_fabric("for-good")
        process = subprocess.Popen(verbena(DISORDER, "closed-for-good"), stdout=subprocess.PIPE,
                                   text=True, env=environment(env))
        try:
            self.assertEqual(process.stdout.readline(), "closed\n")
            self.wait_until_gone(fabric)
            self.assertIsNone(process.poll())
        finally:
            end(process)


if __name__ == "__main__":
    main()
