#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes that are killed or stopped at any moment, and what becomes of the others.

Rules: architecture section 3 ("kill -9 of one process can't corrupt another"), fabric.h,
wire.h.  Half of the links of a mesh go on until an error comes, which must be RETRY_EXC and may
only be about somebody who was killed or stopped.  All data is verified by the processes.

  p_death.py [--kills N] [--seed S] [unittest arguments]

N is 30 unless told; some three a second.
"""
import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import AUDIT, TRAFFIC, fabric_audit
from mesh import RETRIES_EXCEEDED, Mesh
from programs import main, need, take_numbers

need(TRAFFIC, AUDIT)

KILLS = 30
SEED = int(time.time())
FABRIC = os.environ["VERBENA_FABRIC"]
# 2^12 * 4.096 us, eight times: 134 ms until a dead peer is given up.
IMPATIENT = ("--timeout", "12")


def holdings(pid, fabric):
    """How many files of a fabric a process has mapped, and how many descriptors it has."""
    with open("/proc/%d/maps" % pid, encoding="ascii", errors="replace") as f:
        files = sum(fabric in line for line in f)
    return files, len(os.listdir("/proc/%d/fd" % pid))


class InMesh(unittest.TestCase):
    OPTIONS = IMPATIENT
    COUNT = 4

    def setUp(self):
        print("seed", SEED, file=sys.stderr)
        self.fabric = "%s-%s" % (FABRIC, self.id().rsplit(".", 1)[-1][:20])
        self.mesh = Mesh(self.COUNT, self.fabric, SEED, self.OPTIONS)
        self.addCleanup(self.mesh.close)
        self.random = self.mesh.random
        self.mesh.wait_up()

    def finish(self):
        """Everybody talks with everybody, then all leave, and nothing stays behind."""
        self.mesh.wait_up()
        self.mesh.wait_progress()
        left = fabric_audit(self.fabric)
        seats = left.pop("seats")
        self.assertGreaterEqual(left.pop("leases"), 2 * self.COUNT)
        self.assertEqual((seats, left), (self.COUNT, {
            "dead": 0, "stale": 0, "orphans": 0, "rings": 0}))
        self.mesh.finish()
        self.assertEqual(fabric_audit(self.fabric), {})

    def replace(self, rows):
        for row in rows:
            self.mesh.kill(row)
        if self.random.random() < 0.3:
            self.mesh.sleep(self.random.uniform(0, 0.3))
        for row in rows:
            self.mesh.start(row)


class Killed(InMesh):
    def kill_often(self, kills, rows):
        while kills > 0:
            # From the first instruction of a process to all links at work.
            self.mesh.sleep(self.random.choice((0.03, 0.1, 0.3)) * self.random.random() * 2)
            victims = self.random.sample(rows, 2 if self.random.random() < 0.15 else 1)
            self.replace(victims)
            kills -= len(victims)

    def test_any_of_four_is_killed_again_and_again(self):
        self.kill_often(KILLS * 2 // 3, range(self.COUNT))
        self.finish()

    def test_a_survivor_of_them_all_keeps_nothing_of_the_dead(self):
        self.mesh.wait_progress()
        witness = self.mesh.process[0].popen.pid
        before = holdings(witness, self.fabric)
        self.assertGreater(before[0], self.COUNT, "its files are not where this test looks")
        self.kill_often(KILLS // 3, range(1, self.COUNT))
        self.mesh.wait_up()
        self.mesh.wait_progress()
        self.assertEqual(holdings(witness, self.fabric), before)
        self.finish()

    def test_the_others_get_retry_exceeded_about_the_dead_one(self):
        """Without a replacement: those that look have nothing to see, so all must get it."""
        gone = self.mesh.process[1].incarnation
        self.mesh.kill(1)
        for row in (0, 2, 3):
            self.mesh.wait("an error", lambda row=row: self.mesh.downs(row))
            self.assertEqual(self.mesh.downs(row), [(1, gone, RETRIES_EXCEEDED)])
        self.mesh.wait_progress()
        self.mesh.start(1)
        self.finish()

    def test_all_are_killed_and_others_begin_anew(self):
        for _ in range(2):
            for row in range(self.COUNT):
                self.mesh.kill(row)
            for row in range(self.COUNT):
                self.mesh.start(row)
            self.mesh.wait_up()
        self.finish()


class Stopped(InMesh):
    COUNT = 3

    def test_at_any_moment_for_some_time(self):
        """Somebody who goes on in the middle of an access to a connection that is no more."""
        for _ in range(KILLS // 3):
            self.mesh.sleep(self.random.random() * 0.1)
            row = self.random.randrange(self.COUNT)
            others = [other for other in range(self.COUNT) if other != row]
            self.mesh.lost.add(self.mesh.process[row].incarnation)
            self.mesh.send(row, signal.SIGSTOP)
            try:
                self.mesh.wait_progress(5, [others, others[::-1]])
                self.mesh.sleep(self.random.choice((0.0, 0.1, 0.4)))
            finally:
                self.mesh.send(row, signal.SIGCONT)
            self.mesh.wait_up()
        self.finish()

    def test_for_longer_than_all_retries(self):
        self.mesh.wait_progress()
        stopped = self.mesh.process[2].incarnation
        self.mesh.lost.add(stopped)		# what it says afterwards is not judged
        self.mesh.send(2, signal.SIGSTOP)
        try:
            for row in (0, 1):
                self.mesh.wait("an error", lambda row=row: self.mesh.downs(row))
                self.assertEqual(self.mesh.downs(row), [(2, stopped, RETRIES_EXCEEDED)])
            self.mesh.wait_progress(20, [(0, 1), (1, 0)])
        finally:
            self.mesh.send(2, signal.SIGCONT)
        self.finish()


class StoppedShortly(InMesh):
    COUNT = 3
    OPTIONS = ("--timeout", "18")	# 1.07 s, eight times

    def test_nobody_notices(self):
        self.mesh.wait_progress()
        for row in (0, 1, 2):
            self.mesh.send(row, signal.SIGSTOP)
            try:
                self.mesh.sleep(0.3)
            finally:
                self.mesh.send(row, signal.SIGCONT)
            self.mesh.wait_progress()
        for row in range(self.COUNT):
            self.assertEqual(self.mesh.downs(row), [])
        self.finish()


if __name__ == "__main__":
    KILLS, SEED = take_numbers(kills=KILLS, seed=SEED)
    main()
