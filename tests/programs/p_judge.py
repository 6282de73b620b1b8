#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does the runner of rdma-core's suite (conformance/pyverbs.py) see everything that goes wrong?

It is let loose on a suite of our own that needs no pyverbs and no device, whose tests pass,
skip, fail, crash, hang, and crash once more when all is over.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "harness"))
from programs import VERBENA, main

RUNNER = HERE.parent / "conformance" / "pyverbs.py"
SUITE = {
    "args_parser.py": """
import sys
class Parser:
    def parse_args(self):
        self.config = dict(zip(sys.argv[1::2], sys.argv[2::2]))
parser = Parser()
""",
    "utils.py": "",
    "test_life.py": """
import os, signal, time, unittest
from args_parser import parser
class Long(unittest.TestCase):
    def test_a_passes(self):
        self.assertEqual(parser.config["--gid"], "3")
    def test_b_crashes(self):
        os.kill(os.getpid(), signal.SIGSEGV)
    def test_c_skips(self):
        self.skipTest("because")
    def test_d_hangs(self):
        time.sleep(600)
    def test_e_fails(self):
        self.assertEqual(1, 2)
    def test_f_passes(self):
        pass
class Late(unittest.TestCase):
    def test_passes(self):
        import atexit
        atexit.register(os.abort)
class Unready(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("nothing here")
    def test_one(self):
        pass
    def test_two(self):
        pass
""",
    "test_broken.py": "import there_is_no_such_module\n",
}
EXPECTED = {
    "test_broken.(load)": ("failed", "there_is_no_such_module"),
    "test_life.Long.test_a_passes": ("passed", ""),
    "test_life.Long.test_b_crashes": ("failed", "died of SIGSEGV"),
    "test_life.Long.test_c_skips": ("skipped", "because"),
    "test_life.Long.test_d_hangs": ("failed", "hung for 10 s"),
    "test_life.Long.test_e_fails": ("failed", "1 != 2"),
    "test_life.Long.test_f_passes": ("passed", ""),
    "test_life.Late.test_passes": ("passed", ""),
    "test_life.Late.(at exit)": ("failed", "died of SIGABRT"),
    "test_life.Unready.test_one": ("skipped", "nothing here"),
    "test_life.Unready.test_two": ("skipped", "nothing here"),
}


def judge(folder, *more):
    """(exit status, ID -> row) of a run on the suite in @folder."""
    found = folder / "found.json"
    status = subprocess.run(
        [sys.executable, str(RUNNER), "--rdma-core", str(folder), "--verbena", VERBENA,
         "--python", sys.executable, "--timeout", "10", "--json", str(found), *more],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=120).returncode
    return status, {row["id"]: row for row in json.loads(found.read_text())["tests"]}


class Judge(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="judge-")
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        (self.folder / "tests").mkdir()
        for name, text in SUITE.items():
            (self.folder / "tests" / name).write_text(text)

    def test_reports_each_fate(self):
        status, rows = judge(self.folder)
        self.assertEqual(status, 1)
        self.assertEqual(set(rows), set(EXPECTED))
        for name, (outcome, text) in EXPECTED.items():
            with self.subTest(name):
                self.assertEqual(rows[name]["outcome"], outcome)
                self.assertIn(text, rows[name].get("text", ""))

    def test_runs_what_was_asked_for(self):
        (self.folder / "tests" / "test_broken.py").unlink()
        status, rows = judge(self.folder, "--test", "passes$", "--module", "life")
        self.assertEqual(status, 1, "Late crashes at its exit")
        self.assertEqual({name for name in rows if name.endswith("passes")},
                         {name for name in EXPECTED if name.endswith("passes")})
        status, rows = judge(self.folder, "--test", "Long.*passes$")
        self.assertEqual((status, len(rows)), (0, 2))


if __name__ == "__main__":
    main()
