#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Very many QPs, keys and processes: all of them work, and none costs too much memory.

Rules: architecture section 5; emu/share/share.h (who is beyond the segment is served by packets).
How long it takes is not judged.

  p_scale.py [--full] [unittest arguments]

Without --full it is as much as takes seconds: enough keys to fill the segment that peers see, and
fewer of everything else.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import AUDIT, CROWD, TRAFFIC, fabric_audit, is_sanitized, own_fabric
from mesh import Mesh
from programs import need, run, verbena

need(CROWD, TRAFFIC, AUDIT)

IS_FULL = "--full" in sys.argv
DEADLINE_S, STUCK_S = (1800, 240) if IS_FULL else (100, 30)

# What each one may take, everything included: the driver's queues and the device's half.
QP_BYTES_MAX, KEY_BYTES_MAX = 16384, 512


def sizes(full, usual, sanitized):
    return full if IS_FULL else sanitized if is_sanitized() else usual


class Crowd(unittest.TestCase):
    def crowd(self, what, count, bytes_name, bytes_max):
        env, fabric = own_fabric(what)
        result = run(verbena(CROWD, what, str(count)), env=env, deadline_s=DEADLINE_S)
        self.assertEqual((result.status, result.err), (0, ""), result)
        self.assertEqual(fabric_audit(fabric), {})
        values = dict(re.findall(r"^(\w+) (\d+)$", result.out, re.M))
        self.assertEqual(int(values[what]), count, result)
        print(result.out.replace("\n", " "), file=sys.stderr)
        if not is_sanitized():
            self.assertLess(int(values[bytes_name]), bytes_max, result)

    def test_qps(self):
        self.crowd("qps", sizes(16384, 4096, 512), "bytes_per_qp", QP_BYTES_MAX)

    def test_keys(self):
        self.crowd("keys", sizes(1000000, 520000, 10000), "bytes_per_key", KEY_BYTES_MAX)


    def test_windows(self):
        self.crowd("windows", sizes(4096, 4096, 256), "bytes_per_window", KEY_BYTES_MAX)


class Processes(unittest.TestCase):
    def test_all_talk_with_all(self):
        count = sizes(64, 10, 6)
        _, fabric = own_fabric("mesh")
        # Patient: with so many on few CPUs a peer may not run for a second.
        mesh = Mesh(count, fabric, 1, ("--timeout", "20", "--events"), STUCK_S)
        self.addCleanup(mesh.close)
        mesh.wait_up()
        mesh.wait_progress(5)
        for row in range(count):
            self.assertEqual(mesh.downs(row), [])
        self.assertEqual(fabric_audit(fabric)["seats"], count)
        mesh.finish()
        self.assertEqual(fabric_audit(fabric), {})


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--full"], verbosity=2)
