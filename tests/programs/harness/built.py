# SPDX-License-Identifier: BSD-2-Clause
"""The programs of tests/programs/traffic, where the build put them, and how to run their cases."""
import os
import subprocess

from programs import VERBENA, run, verbena

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(VERBENA))),
                        "tests", "programs", "traffic")
TRAFFIC = os.path.join(PROGRAMS, "traffic")
DISORDER = os.path.join(PROGRAMS, "disorder")
CROWD = os.path.join(PROGRAMS, "crowd")
FRAMES = os.path.join(PROGRAMS, "frames")
SHARING = os.path.join(PROGRAMS, "sharing")
AUDIT = os.path.join(PROGRAMS, "fabric_audit")
FABRIC_BYTES_MAX = 64			# of a name, see NAME_BYTES_MAX in emu/fabric/place.c


def is_sanitized():
    """A sanitizer needs more memory than a test may want to leave, and says much."""
    with open(DISORDER, "rb") as f:
        text = f.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def fabric_audit(fabric):
    """What is left of a fabric: {"seats": 4, "dead": 0, ...}; {} if it is gone."""
    text = subprocess.run([AUDIT, fabric], capture_output=True, text=True, check=True).stdout
    words = text.split()
    return {} if words == ["absent"] else dict(zip(words[::2], map(int, words[1::2])))


def own_fabric(name):
    """The environment for a fabric of this test's own, and its name."""
    fabric = ("%s-%s" % (os.environ["VERBENA_FABRIC"], name))[:FABRIC_BYTES_MAX]
    return {"VERBENA_FABRIC": fabric}, fabric


def clean_up(test, fabric):
    """Whoever comes after a process that was killed starts clean, and leaves nothing."""
    result = run(verbena(DISORDER, "pair"), env={"VERBENA_FABRIC": fabric})
    test.assertEqual((result.status, result.err), (0, ""), result)
    test.assertEqual(fabric_audit(fabric), {})


def run_case(test, case):
    """Run a case of the program `disorder`: it passes, is silent, and leaves no fabric."""
    env, fabric = own_fabric(case)
    result = run(verbena(DISORDER, case), env=env)
    test.assertEqual((result.status, result.err), (0, ""), result)
    test.assertEqual(fabric_audit(fabric), {}, result)
    return result
