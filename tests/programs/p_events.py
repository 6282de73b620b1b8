#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for an event of a completion channel in ibv_get_cq_event().

It blocks as read() does: for any number of threads, until cancelled or interrupted, and
not at all with O_NONBLOCK.  The cases are in traffic/disorder_events.c.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import AUDIT, DISORDER, run_case
from programs import main, need

need(DISORDER, AUDIT)


class Events(unittest.TestCase):
    def test_a_thread_that_only_waits(self):
        run_case(self, "events")

    def test_several_that_wait_and_are_cancelled(self):
        run_case(self, "event-readers")

    def test_closed_under_one_that_waits(self):
        run_case(self, "event-close")

    def test_interrupted_by_signals(self):
        run_case(self, "event-interrupted")

    def test_not_blocking(self):
        run_case(self, "event-nonblocking")


if __name__ == "__main__":
    main()
