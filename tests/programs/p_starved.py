#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Too little of everything: shared memory, files, descriptors, memory, threads.

Either it works or a verb fails with an errno; when the device can't be opened, one line on
standard error says why.  Nothing crashes, hangs or dies of a signal.
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import AUDIT, DISORDER, clean_up, is_sanitized, own_fabric, run_case
from programs import LANE, VERBENA, environment, main, need, run, verbena

need(DISORDER, AUDIT)

DEADLINE_S = 60
NAMESPACE = ["unshare", "-rm"]
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
COMPLAINT = re.compile(r"verbena: cannot (?:open|start) mlx5_0: .+: (.+)")
KIB = 1024


def works(*command):
    return bool(shutil.which(command[0])) and run([*command, "true"]).status == 0


class Starved(unittest.TestCase):
    env, fabric = own_fabric("starved")

    def setUp(self):
        self.addCleanup(clean_up, self, self.fabric)

    def judge(self, result, complaint=None):
        """0, or 1 with a reason; never a signal, a wrong byte or a timeout."""
        self.assertIn(result.status, (0, 1), result)
        complaints = COMPLAINT.findall(result.err)
        if result.status == 1:
            self.assertRegex(result.err, r"traffic \d+: (ibv_\w+|mmap): .+")
        if complaint and result.status == 1:
            self.assertEqual(complaints, [complaint], result)
        return result

    def limited(self, case, limits):
        """Run a case with {resource: value}; memory counts from the program's start only."""
        def before():
            for which, value in limits.items():
                resource.setrlimit(which, (value, value))
        command = verbena(DISORDER, case)
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              timeout=DEADLINE_S, preexec_fn=before, check=False,
                              env=environment(self.env))
        done.status, done.out, done.err = done.returncode, done.stdout, done.stderr
        done.command = command
        return done


class Limits(Starved):
    def test_descriptors(self):
        """From one too few for sysfs to enough; EMFILE comes from the verb that wants one."""
        results = [self.judge(self.limited("pair", {resource.RLIMIT_NOFILE: most}))
                   for most in range(5, 17)]
        self.assertIn("ibv_open_device: Too many open files", "".join(r.err for r in results))
        self.assertEqual(results[-1].status, 0, results[-1])

    def test_file_size(self):
        self.limited("pair", {})		# somebody else has made the sysfs directory
        for most in (0, 1, 100 * KIB, 400 * KIB, 1000 * KIB, 3000 * KIB):
            with self.subTest(most):
                result = self.limited("scarce", {resource.RLIMIT_FSIZE: most})
                self.assertEqual(result.status, 1, result)
                self.assertIn("File too large", COMPLAINT.findall(result.err))

    @unittest.skipIf(is_sanitized(), "a sanitizer needs more")
    def test_memory(self):
        for most in range(6, 40, 3):
            with self.subTest(most):
                self.judge(self.limited("pair", {resource.RLIMIT_AS: most * KIB * KIB}))

    @unittest.skipUnless(os.geteuid() == 0 and works(*NOBODY), "needs root to drop it")
    def test_threads(self):
        if run([*NOBODY, VERBENA, "--version"]).status != 0:
            self.skipTest("nobody can't reach the build directory")
        shell = ["bash", "-c", 'ulimit -u 1 && exec "$@"', "bash"]
        result = run([*NOBODY, *shell, *verbena(DISORDER, "pair")], env=self.env)
        self.assertEqual(result.status, 1, result)
        self.judge(result, "Resource temporarily unavailable")


class ReachedLater(unittest.TestCase):
    def test_descriptors(self):
        run_case(self, "no-descriptors")

    @unittest.skipIf(is_sanitized(), "a sanitizer needs more")
    def test_memory(self):
        run_case(self, "no-memory")

    @unittest.skipIf(is_sanitized(), "a sanitizer needs more")
    def test_memory_before_the_first_packet(self):
        run_case(self, "no-memory-for-rings")


@unittest.skipUnless(works(*NAMESPACE), "no user and mount namespaces here")
class FileSystems(Starved):
    def mounted(self, mounts, case="pair", env=None):
        """In a namespace of its own where @mounts were made: [(where, options)]."""
        script = "".join("mount -t tmpfs -o %s none %s && " % (options, where)
                         for where, options in mounts)
        command = [*NAMESPACE, "sh", "-c", script + 'exec "$@"', "sh", *verbena(DISORDER, case)]
        result = run(command, env={**self.env, **(env or {})})
        if "mount:" in result.err:
            self.skipTest("can't mount here: " + result.err)
        return result

    def test_shared_memory_of_any_size(self):
        """Too small for sysfs, for the segment, for the rings: then only peers are out of reach."""
        for size in (16, 200, 400, 600, 700, 800, 900, 1000, 1500, 4000):
            with self.subTest(size):
                result = self.mounted([("/dev/shm", "size=%dk" % size)], "scarce")
                self.assertIn(result.status, (0, 1), result)
                if result.status == 1:
                    self.assertIn("No space left on device", COMPLAINT.findall(result.err))
        self.assertEqual((result.status, result.out), (0, ""), result)

    def test_shared_memory_that_is_read_only(self):
        result = self.mounted([("/dev/shm", "ro")], "remote")
        self.assertEqual((result.status, result.err), (0, ""), result)

    def test_nothing_that_can_be_written(self):
        """The build may stand in one of the places; then only the others are covered."""
        env = {"TMPDIR": "/nonexistent", "HOME": "/nonexistent", "XDG_RUNTIME_DIR": None}
        self.assertEqual(self.mounted([], env=env).status, 0)
        if os.path.abspath(VERBENA).startswith("/tmp/"):
            return
        result = self.mounted([("/dev/shm", "ro"), ("/tmp", "ro")], env=env)
        self.assertEqual(result.status, 1, result)
        self.judge(result, "Read-only file system")

    @unittest.skipIf(is_sanitized(), "a sanitizer needs it")
    def test_without_proc(self):
        """verbena run itself needs it, so the library is set by hand."""
        variable, name = {"stock": ("LD_PRELOAD", "libverbena_preload.so"),
                          "own": ("LD_LIBRARY_PATH", "own")}[LANE]
        library = os.path.abspath(os.path.join(os.path.dirname(VERBENA), "..", "lib", name))
        command = [*NAMESPACE, "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", "env",
                   "%s=%s" % (variable, library), DISORDER, "remote"]
        result = run(command, env={**self.env, "VERBENA_QUIET": "1"})
        if "mount:" in result.err:
            self.skipTest("can't mount here: " + result.err)
        self.assertEqual((result.status, result.err), (0, ""), result)


if __name__ == "__main__":
    main()
