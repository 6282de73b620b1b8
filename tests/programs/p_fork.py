#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Children of a program that has the device open.

Rules: emu.h (the child loses the device; its files answer EIO) and architecture section 3.
The cases are in traffic/disorder_fork.c.
"""
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import AUDIT, DISORDER, clean_up, fabric_audit, own_fabric, run_case
from programs import environment, main, need, run, verbena

need(DISORDER, AUDIT)

# What a program of Python's does: open, use multiprocessing with fork, and go on.
IN_PYTHON = """
import ctypes, multiprocessing, os
verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
for name in ("ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd"):
    getattr(verbs, name).restype = ctypes.c_void_p
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.argtypes = verbs.ibv_alloc_pd.argtypes = [ctypes.c_void_p]
device = verbs.ibv_get_device_list(None)[0]
context = verbs.ibv_open_device(device)

def child(number):
    dead = verbs.ibv_alloc_pd(context), ctypes.get_errno()
    own = verbs.ibv_open_device(device)
    return dead, bool(own and verbs.ibv_alloc_pd(own))

with multiprocessing.get_context("fork").Pool(4) as pool:
    answers = pool.map(child, range(16))
assert all(answer == ((None, 5), True) for answer in answers), answers
assert verbs.ibv_alloc_pd(context)
"""


class Children(unittest.TestCase):
    def test_inherited_objects_are_dead_and_harmless(self):
        run_case(self, "child-calls")

    def test_a_child_opens_its_own_device(self):
        run_case(self, "child-opens")

    def test_a_fork_that_the_c_library_did_not_see(self):
        run_case(self, "raw-fork")

    def test_many_forks_while_threads_are_in_the_device(self):
        run_case(self, "fork-storm")

    def test_fork_and_exec(self):
        run_case(self, "fork-exec")

    def test_vfork(self):
        run_case(self, "vfork")

    def test_posix_spawn(self):
        run_case(self, "posix-spawn")

    def test_multiprocessing_of_python(self):
        env, fabric = own_fabric("python")
        result = run(verbena(sys.executable, "-c", IN_PYTHON), env=env)
        self.assertEqual((result.status, result.err), (0, ""), result)
        clean_up(self, fabric)		# the pool ends its processes by a signal


class Daemons(unittest.TestCase):
    def test_one_that_opened_too_early(self):
        env, fabric = own_fabric("daemon")
        result = run(verbena(DISORDER, "daemon"), env=env)
        self.assertEqual((result.status, result.err), (0, ""), result)
        clean_up(self, fabric)

    def test_a_child_that_lives_on_keeps_no_fabric(self):
        env, fabric = own_fabric("outlives")
        process = subprocess.Popen(verbena(DISORDER, "child-outlives"), stdout=subprocess.PIPE,
                                   text=True, env=environment(env))
        child = int(process.stdout.readline())
        try:
            self.assertEqual(process.wait(60), 0)
            self.assertEqual(fabric_audit(fabric), {})
        finally:
            os.kill(child, signal.SIGKILL)
            process.stdout.close()


if __name__ == "__main__":
    main()
