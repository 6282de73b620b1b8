#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""verbena run: what it passes on, whom it reaches, and what it says.

Rules: verbena(1); architecture section 5 (VERBENA_NIC, the line on standard error, hw).
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import is_sanitized
from programs import GID_INDEX, LANE, VERBENA, Result, main, need, run, run_pair, start, verbena

need("ibv_devices", "ibv_devinfo", "ibv_rc_pingpong")

# One process that starts another, which is the one that wants the device.
CHAINS = [
    ["sh", "-c", "ibv_devices"],
    ["sh", "-c", "exec ibv_devices"],
    ["sh", "-c", "sh -c 'ibv_devices; true'"],
    ["env", "SOME=thing", "ibv_devices"],
    ["env", "-u", "HOME", "sh", "-c", "(ibv_devices)"],
    [sys.executable, "-c", "import subprocess; subprocess.run(['ibv_devices'], check=True)"],
    [sys.executable, "-c", "import os; os.execvp('ibv_devices', ['ibv_devices'])"],
    ["nice", "ibv_devices"],
    ["timeout", "30", "ibv_devices"],
]


def emulation_lines(text):
    return [line for line in text.splitlines() if "emulated" in line.lower()]


class PassedOn(unittest.TestCase):
    def test_exit_status(self):
        for status in (0, 1, 7, 77, 255):
            result = run(verbena("sh", "-c", "exit %d" % status))
            self.assertEqual(result.status, status, result)

    def test_death_by_signal(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT):
            result = run(verbena("sh", "-c", "ulimit -c 0; kill -%d $$" % number))
            self.assertEqual(result.status, -number, result)

    def test_a_crash_of_the_program_is_its_own(self):
        program = "import ctypes, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); " \
                  "ctypes.string_at(16)"
        result = run(verbena(sys.executable, "-c", program))
        self.assertEqual(result.status, -signal.SIGSEGV, result)

    def test_arguments_and_output(self):
        words = ["a b", "", "*", "$HOME", "--quiet", "--", "'\""]
        result = run(verbena("printf", "[%s]", *words))
        self.assertEqual(result.out, "".join("[%s]" % w for w in words), result)

    def test_standard_input(self):
        result = subprocess.run(verbena("cat"), input="some text", capture_output=True,
                                text=True, check=False)
        self.assertEqual((result.returncode, result.stdout), (0, "some text"))

    def test_no_process_stays_between(self):
        process = start(verbena("sh", "-c", "echo $$"))
        out, _ = process.communicate()
        self.assertEqual(int(out), process.pid)


class Refused(unittest.TestCase):
    def test_a_command_that_does_not_exist(self):
        result = run(verbena("/nonexistent/program"))
        self.assertEqual(result.status, 127, result)
        self.assertIn("/nonexistent/program", result.err)

    def test_a_command_that_is_no_program(self):
        with tempfile.NamedTemporaryFile() as f:
            self.assertEqual(run(verbena(f.name)).status, 126)

    def test_wrong_usage_says_what_was_wrong(self):
        for arguments, word in ((["run"], "command"), (["run", "--bogus", "true"], "--bogus"),
                                (["bogus"], "bogus"), ([], "command"),
                                (["run", "--node", "0", "true"], "0"),
                                (["run", "--fabric", "a/b", "true"], "a/b"),
                                (["run", "--nic"], "--nic"),
                                (["run", "--own=1", "true"], "--own"),
                                (["port", "--own", "show"], "--own")):
            result = run([VERBENA, *arguments])
            self.assertNotIn(result.status, (0, 126, 127), result)
            self.assertIn(word, result.err)

    def test_a_profile_that_does_not_exist(self):
        result = run(verbena("true", options=("--nic", "connectx-99")))
        self.assertNotEqual(result.status, 0, result)
        self.assertIn("connectx-99", result.err)

    def test_the_same_in_the_environment_shows_no_device(self):
        result = run(verbena("ibv_devices"), env={"VERBENA_NIC": "connectx-99"})
        self.assertNotIn("mlx5_0", result.out)
        self.assertIn("connectx-99", result.err)


class Reached(unittest.TestCase):
    def test_programs_started_by_programs(self):
        for chain in CHAINS:
            with self.subTest(" ".join(chain)):
                result = run(verbena(*chain))
                self.assertEqual(result.status, 0, result)
                self.assertIn("mlx5_0", result.out)

    def test_verbena_run_inside_verbena_run(self):
        inner = verbena("sh", "-c", "ibv_devinfo; echo preload=$LD_PRELOAD",
                        options=("--quiet", "--nic", "connectx-5"))
        result = run(verbena(*inner, options=("--quiet", "--nic", "connectx-7")))
        self.assertEqual(result.status, 0, result)
        self.assertIn("4119", result.out)
        preload = result.out.split("preload=")[1]
        self.assertEqual(preload.count("libverbena_preload.so"), 1, preload)

    def test_an_environment_without_preload_is_left_alone(self):
        result = run(verbena("env", "-i", "PATH=" + os.environ["PATH"], "ibv_devices"))
        self.assertEqual(result.out, run(["ibv_devices"]).out)

    def test_hw_is_inert(self):
        bare = run(["ibv_devices"])
        for options, env in ((("--nic", "hw"), {}), ((), {"VERBENA_NIC": "hw"})):
            result = run(verbena("ibv_devices", options=options), env=env)
            self.assertEqual((result.status, result.out), (bare.status, bare.out), result)
            self.assertEqual(emulation_lines(result.err), [])

    def test_programs_that_know_nothing_of_rdma(self):
        result = run(verbena("ls", "/sys/class/net"))
        self.assertEqual(result.out, run(["ls", "/sys/class/net"]).out)

    def test_fabrics_are_apart(self):
        """A server in one fabric is not reached from another: the client runs out of retries."""
        program = ["ibv_rc_pingpong", "-d", "mlx5_0", "-g", GID_INDEX, "-n", "10"]
        mixed = ["sh", "-c", 'VERBENA_FABRIC=$VERBENA_FABRIC-b exec "$@"', "sh", *program]
        server, client = run_pair(program, client_program=mixed)
        self.assertNotEqual(client.status, 0, client)
        self.assertIsInstance(server, Result)


# Which libraries a program has when it asks for both, and whether the shim is there.
IN_PYTHON = """
import ctypes, os, re
for name in ("libibverbs.so.1", "libmlx5.so.1"):
    ctypes.CDLL(name)
print(*sorted(set(re.findall("/.*/lib(?:ibverbs|mlx5|verbena_preload)[.]so.*",
                             open("/proc/self/maps").read()))), sep="\\n")
"""
FOLDER = os.path.realpath(os.path.join(os.path.dirname(VERBENA), "..", "lib", "own"))


def libraries(command):
    result = run(command)
    return result.out.split()


@unittest.skipUnless(os.path.isdir(FOLDER), "not beside the command")
class Own(unittest.TestCase):
    """--own: our libraries in front, and no shim."""
    OWN = ("--quiet", "--own")

    def variables(self, names, before):
        result = run(verbena("sh", "-c", "; ".join("echo ${%s-unset}" % n for n in names),
                             options=self.OWN), env=before)
        self.assertEqual(result.status, 0, result)
        return result.out.splitlines()

    def test_programs_get_our_libraries(self):
        program = [sys.executable, "-c", IN_PYTHON]
        own = libraries(verbena(*program, options=self.OWN))
        self.assertEqual({os.path.dirname(path) for path in own}, {FOLDER}, own)
        self.assertEqual(len(own), 2, own)
        inner = verbena(*program, options=self.OWN)
        self.assertEqual(libraries([VERBENA, "run", *inner]), own)

    def test_without_it_they_are_the_systems_again(self):
        program = [VERBENA, "run", sys.executable, "-c", IN_PYTHON]
        stock = libraries(program)
        self.assertNotIn(FOLDER, {os.path.dirname(path) for path in stock}, stock)
        self.assertEqual(libraries(verbena(*program, options=self.OWN)), stock)

    def test_the_device_is_there(self):
        for nic, part in (("connectx-7", "4129"), ("connectx-6", "4123")):
            result = run(verbena("ibv_devinfo", options=(*self.OWN, "--nic", nic)))
            self.assertEqual((result.status, result.err), (0, ""), result)
            self.assertRegex(result.out, r"hca_id:\tmlx5_0\n(?s:.*)vendor_part_id:\t+%s" % part)

    def test_hw_is_inert(self):
        bare = run(["ibv_devices"])
        result = run(verbena("ibv_devices", options=(*self.OWN, "--nic", "hw")))
        self.assertEqual((result.status, result.out, result.err),
                         (bare.status, bare.out, bare.err), result)

    def test_both_libraries_talk_with_each_other(self):
        program = ["ibv_rc_pingpong", "-d", "mlx5_0", "-g", GID_INDEX, "-n", "200", "-c"]
        other = {"own": [], "stock": ["--own"]}[LANE]
        server, client = run_pair(program, client_program=[VERBENA, "run", *other, *program])
        self.assertEqual((client.status, server.status), (0, 0), "%s\n%s" % (client, server))

    def test_what_was_there_before_stays(self):
        names = ["LD_PRELOAD", "LD_LIBRARY_PATH"]
        self.assertEqual(self.variables(names, {"LD_PRELOAD": None, "LD_LIBRARY_PATH": None})[1],
                         FOLDER)
        self.assertEqual(self.variables(names, {"LD_LIBRARY_PATH": "/a::/b;/c"})[1],
                         FOLDER + ":/a:.:/b:/c")
        self.assertEqual(self.variables(names, {"LD_LIBRARY_PATH": "/a:%s:/b" % FOLDER})[1],
                         FOLDER + ":/a:/b")
        if is_sanitized():		# its runtime wants to be in front of the shim
            return
        shim = os.path.join(FOLDER, "..", "libverbena_preload.so")
        self.assertIn("libm.so.6", self.variables(names, {"LD_PRELOAD": shim + ":libm.so.6"})[0])
        self.assertNotIn("preload", self.variables(names, {"LD_PRELOAD": shim})[0])

    def test_programs_of_any_kind_run(self):
        """A shell, one that knows nothing of RDMA, one without a loader."""
        self.assertEqual(run(verbena("sh", "-c", "exit 7", options=self.OWN)).status, 7)
        for command in (["ls", "/sys/class/net"], ["/sbin/ldconfig", "--version"]):
            result, bare = run(verbena(*command, options=self.OWN)), run(command)
            self.assertEqual((result.status, result.out, result.err),
                             (bare.status, bare.out, bare.err), result)
        self.assertEqual(run(verbena("/nonexistent", options=self.OWN)).status, 127)

    def test_a_folder_that_the_loader_could_not_be_told(self):
        with tempfile.TemporaryDirectory(suffix=":x") as folder:
            os.mkdir(os.path.join(folder, "bin"))
            os.symlink(os.path.dirname(FOLDER), os.path.join(folder, "lib"))
            command = shutil.copy(VERBENA, os.path.join(folder, "bin"))
            result = run([command, "run", "--own", "true"])
            self.assertEqual((result.status, result.out), (126, ""), result)
            self.assertIn("colon", result.err)


class Said(unittest.TestCase):
    def test_one_line_when_the_device_is_opened(self):
        result = run(verbena("ibv_devinfo", options=()), env={"VERBENA_QUIET": None})
        self.assertEqual(result.status, 0, result)
        self.assertEqual(len(emulation_lines(result.err)), 1, result)
        self.assertEqual(len(result.err.splitlines()), 1, result)

    def test_nothing_when_it_is_only_listed(self):
        result = run(verbena("ibv_devices", options=()), env={"VERBENA_QUIET": None})
        self.assertEqual(result.err, "", result)

    def test_nothing_when_quiet(self):
        for options, env in ((("--quiet",), {"VERBENA_QUIET": None}),
                             ((), {"VERBENA_QUIET": "1"})):
            result = run(verbena("ibv_devinfo", options=options), env=env)
            self.assertEqual((result.status, result.err), (0, ""), result)

    def test_help_and_version(self):
        self.assertIn("verbena run", run([VERBENA, "--help"]).out)
        self.assertRegex(run([VERBENA, "--version"]).out, r"^verbena \d+\.\d+\.\d+")


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root to drop it")
class Unprivileged(unittest.TestCase):
    PREFIX = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    ENV = {"VERBENA_FABRIC": "test-nobody-%d" % os.getpid(), "XDG_RUNTIME_DIR": None,
           "HOME": "/nonexistent"}

    def setUp(self):
        if run([*self.PREFIX, VERBENA, "--version"]).status != 0:
            self.skipTest("nobody can't reach the build directory")

    def test_the_device_is_there(self):
        result = run([*self.PREFIX, *verbena("ibv_devinfo")], env=self.ENV)
        self.assertEqual(result.status, 0, result)
        self.assertIn("mlx5_0", result.out)

    def test_two_processes_talk(self):
        program = ["ibv_rc_pingpong", "-d", "mlx5_0", "-g", GID_INDEX, "-n", "200", "-c"]
        server, client = run_pair(program, prefix=self.PREFIX, env=self.ENV)
        self.assertEqual((client.status, server.status), (0, 0), "%s\n%s" % (client, server))


if __name__ == "__main__":
    main()
