#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes that share a protection domain, and are killed at any step of it.

Rules: ibv_import_device(3): a process that dies takes what it made with it and lets go of what it
held; who survives sees errors that say so, and never wrong data.  The program is
traffic/sharing.c.

  p_share.py [--kills N] [--seed S] [unittest arguments]

N is 80 unless told, each step of both sides once; some ten a second.
"""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import AUDIT, SHARING, clean_up, fabric_audit, own_fabric
from programs import DEADLINE_S, main, need, run, take_numbers, verbena

need(SHARING, AUDIT)

KILLS = 80
SEED = int(time.time())
IMPORTERS = 64


class Sharing(unittest.TestCase):
    def sharing(self, name, *arguments, deadline_s=DEADLINE_S):
        env, fabric = own_fabric(name)
        result = run(verbena(SHARING, *map(str, arguments)), env=env, deadline_s=deadline_s)
        self.assertEqual((result.status, result.err), (0, ""), result)
        return fabric

    def test_either_is_killed_at_every_step(self):
        print("seed", SEED, file=sys.stderr)
        fabric = self.sharing("share-kills", "kills", KILLS, SEED, deadline_s=60 + KILLS)
        clean_up(self, fabric)

    def test_many_importers_race_with_the_end_of_a_region(self):
        for turn in range(3):
            with self.subTest(turn):
                fabric = self.sharing("share-crowd", "crowd", IMPORTERS)
                self.assertEqual(fabric_audit(fabric), {})

    def test_a_descriptor_is_kept_over_exec(self):
        fabric = self.sharing("share-exec", "exec")
        self.assertEqual(fabric_audit(fabric), {})


if __name__ == "__main__":
    KILLS, SEED = take_numbers(kills=KILLS, seed=SEED)
    main()
