#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who sleeps uses no CPU, and who rings doorbell pages himself is heard nevertheless.

A process with an open device and connected queues must not wake up by itself; what it does
is read from the counts of voluntary context switches of all its threads, after those have
come to rest.  The programs are in traffic/rings.c.
"""
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import PROGRAMS
from programs import DEADLINE_S, end, environment, main, need, run, verbena

RINGS = os.path.join(PROGRAMS, "rings")
need(RINGS)

WATCHED_S = 1


def switches(pid):
    """By thread, how often it went to sleep."""
    counts = {}
    tasks = "/proc/%d/task" % pid
    for thread in os.listdir(tasks):
        with open(os.path.join(tasks, thread, "status"), encoding="ascii") as f:
            fields = dict(line.split(":\t", 1) for line in f if ":\t" in line)
        counts[thread] = int(fields["voluntary_ctxt_switches"])
    return counts


def comes_to_rest(pid):
    """Whether there is a while in which no thread wakes up; None, or what happens instead."""
    deadline = time.monotonic() + DEADLINE_S
    before = switches(pid)
    while time.monotonic() < deadline:
        time.sleep(WATCHED_S)
        now = switches(pid)
        if now == before:
            return None
        last, before = before, now
    return {thread: (last.get(thread), count) for thread, count in before.items()}


class Idle(unittest.TestCase):
    def setUp(self):
        # Behind `verbena run` and exec(), the process is the program itself.
        self.process = subprocess.Popen(verbena(RINGS, "idle"), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        env=environment(None))
        self.addCleanup(lambda: self.process.returncode is None and end(self.process))
        self.assertEqual(self.process.stdout.readline(), "idle\n")

    def test_a_process_with_queues_and_an_armed_cq_does_not_wake_up(self):
        self.assertGreater(len(switches(self.process.pid)), 1, "there is no NIC thread")
        self.assertIsNone(comes_to_rest(self.process.pid))

    def test_it_ends_when_told(self):
        self.process.communicate(timeout=DEADLINE_S)
        self.assertEqual(self.process.returncode, 0)


class Direct(unittest.TestCase):
    def test_rings_that_nobody_told_of_are_heard(self):
        result = run(verbena(RINGS, "pong", "200"))
        self.assertEqual((result.status, result.err), (0, ""), result)

    def test_also_those_of_a_context_that_was_opened_past_us(self):
        """dlsym() in a handle finds libibverbs itself and not the shim."""
        result = run(verbena(RINGS, "pong-past", "200"))
        self.assertEqual((result.status, result.err), (0, ""), result)


if __name__ == "__main__":
    main()
