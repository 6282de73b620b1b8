#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Signals and threads that end, exit or close in the middle of traffic.

A signal does to a program what it does without us, handlers and faults of the program stay
its own, and nobody is left waiting for a lock.  The cases are in traffic/disorder_signals.c
and disorder_threads.c.
"""
import os
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import AUDIT, DISORDER, clean_up, fabric_audit, own_fabric, run_case
from programs import end, environment, main, need, run, verbena

need(DISORDER, AUDIT)

PATIENCE_S = 30


class Ended(unittest.TestCase):
    def end_with(self, case, number, name):
        """Start a case that says when it is at work, and send it a signal."""
        env, fabric = own_fabric(name)
        process = subprocess.Popen(verbena(DISORDER, case), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env=environment(env))
        try:
            self.assertEqual(process.stdout.readline(), "running\n")
            process.send_signal(number)
            return process.wait(PATIENCE_S)
        finally:
            end(process)
            clean_up(self, fabric)

    def test_by_a_signal_in_the_middle_of_traffic(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            with self.subTest(number.name):
                self.assertEqual(self.end_with("forever", number, number.name), -number)

    def test_by_exit_in_a_signal_handler(self):
        for turn in range(10):
            self.assertEqual(self.end_with("exit-in-handler", signal.SIGTERM, "handler"), 0)

    def test_by_exit_in_a_thread(self):
        for turn in range(5):
            run_case(self, "exit-in-thread")

    def test_by_exit_without_closing(self):
        """Nothing is left of a fabric whose last member did not close the device."""
        run_case(self, "exit-without-closing")

    def test_when_two_exit_at_once(self):
        env, fabric = own_fabric("two")
        for turn in range(5):
            pair = [subprocess.Popen(verbena(DISORDER, "exit-without-closing"),
                                     env=environment(env)) for _ in range(2)]
            self.assertEqual([p.wait(PATIENCE_S) for p in pair], [0, 0])
            self.assertEqual(fabric_audit(fabric), {})


class Handled(unittest.TestCase):
    def test_faults_of_the_program_reach_its_handler(self):
        run_case(self, "own-faults")

    def test_handlers_that_are_installed_over_ours(self):
        run_case(self, "late-handlers")

    def test_timers_and_signals_all_the_time(self):
        run_case(self, "storm")

    def test_blocked_signals_wait_for_the_program(self):
        run_case(self, "sigwait")


class Threads(unittest.TestCase):
    def test_cancelled_between_verbs(self):
        run_case(self, "cancel")

    def test_no_verb_is_a_cancellation_point(self):
        run_case(self, "cancel-pending")

    def test_each_with_its_own_context(self):
        run_case(self, "many-contexts")

    def test_device_closed_while_others_poll_and_post(self):
        run_case(self, "close-under-polls")

    def test_device_closed_at_exit_while_others_poll(self):
        run_case(self, "close-at-exit")


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root to make one")
class SetUid(unittest.TestCase):
    """The loader ignores LD_PRELOAD there, as it should: verbena(1) says so."""

    def test_programs_see_no_device(self):
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        copy = os.path.join(os.path.dirname(DISORDER), "setuid-%d" % os.getpid())
        shutil.copy(DISORDER, copy)
        try:
            os.chown(copy, 0, 0)
            os.chmod(copy, 0o4755)
            if run([*nobody, copy]).status != 2:
                self.skipTest("nobody can't reach the build directory")
            result = run([*nobody, *verbena(copy, "pair")])
            self.assertEqual(result.status, 1, result)
            self.assertIn("ibv_open_device", result.err)
            self.assertNotIn("verbena", result.err.replace(copy, ""))
        finally:
            os.unlink(copy)


if __name__ == "__main__":
    main()
