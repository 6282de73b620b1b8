#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Our own examples (examples/): with each other, with Debian's of the same name, and ill-treated.

Rules: rdma-core's programs have the same options, TCP exchange and result lines, so each side of
a pair may be one of theirs; what our own refuse, they say, with status 1 or, for a bad
command line, 2.
"""
import contextlib
import os
import queue
import re
import socket
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import own_fabric
from programs import (DEADLINE_S, GID_INDEX, SKIPPED, VERBENA, end, finish, free_port, main, need,
                      run, run_pair, start, verbena, wait_until_listening)

BIN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(VERBENA))), "examples", "bin")

need("ibv_devices", "ibv_devinfo", "ibv_rc_pingpong")
if not os.path.isdir(BIN):
    print("skipped: built without VERBENA_EXAMPLES")
    sys.exit(SKIPPED)

PROFILES = ("connectx-5", "connectx-6", "connectx-6dx", "connectx-7")
FAILED, USAGE = 1, 2

PINGPONGS = {
    "ibv_rc_pingpong": [
        "", "-e -c", "-s 1 -n 200", "-s 100000 -n 20 -m 4096 -c", "-r 1 -n 200 -c", "-l 3 -n 50",
        "-t -n 200", "-t -e -c", "-N -n 200 -c", "-N -s 8 -n 200", "-N -t -e", "-o -c -n 200",
        "-O -c -n 200", "-O -P -c -e", "-j -c -e", "-j -N -t -c -e",
        "--size=5000 --mtu=512 --rx-depth=10 --iters=60 --sl=1 --events --chk --ts --new_send",
        "--odp --prefetch --iters=60 --events", "--iodp --iters=60 --events", "--dm -n 60",
    ],
    "ibv_uc_pingpong": ["-n 200", "-e -c", "-s 10000 -m 256 -n 100 -c", "-r 1 -n 200"],
    "ibv_ud_pingpong": ["-n 200", "-e -c", "-s 4096 -n 200 -c", "-s 1 -n 100", "-r 1 -n 200"],
    "ibv_srq_pingpong": ["", "-e -c", "-q 1 -n 200", "-q 255 -n 300 -c", "-o -c", "-q 8 -r 8"],
    "ibv_xsrq_pingpong": ["", "-e", "-n 50", "-s 10000 -m 256 -n 100", "-o -e"],
}

# With Debian's on one side; what only one side can see (-t, -N, -o) need not be tried twice.
MIXED = {
    "ibv_rc_pingpong": ["-n 200", "-e -c", "-s 100000 -m 4096 -n 20 -c", "-j -c -e"],
    "ibv_uc_pingpong": ["-n 200", "-e -c", "-s 10000 -m 256 -n 100 -c"],
    "ibv_ud_pingpong": ["-n 200", "-e -c"],
    "ibv_srq_pingpong": ["-n 200", "-e -c", "-q 3 -n 100"],
    "ibv_xsrq_pingpong": ["-n 50", "-e"],
}

BAD_COMMAND_LINES = {
    "ibv_devices": ["surplus", "-v"],
    "ibv_devinfo": ["surplus", "-i 0", "-i one", "-q", "-d"],
    "ibv_asyncwatch": ["surplus", "-i 1"],
    "ibv_rc_pingpong": ["-m 1000", "-m 8192", "-s 4k", "-s 0", "-s -1", "-s 99999999999", "-p 0",
                        "-p 65536", "-i 0", "-n 0", "-n", "-r 0", "-l 16", "-g 256", "-z",
                        "--sizes=1", "one two", "-o -j", "-O -j", "-P"],
    "ibv_uc_pingpong": ["-t", "-o", "-N"],
    "ibv_ud_pingpong": ["-m 1024", "-j"],
    "ibv_srq_pingpong": ["-q 256", "-q 0", "-q 20 -r 19", "-O"],
    "ibv_xsrq_pingpong": ["-c 0", "-c x", "-r 1"],
    "ibv_shared_pd": ["surplus", "-s 0", "-n 0", "-e"],
}

# What must be in the message.
REFUSED = {
    "ibv_rc_pingpong -d nope": "nope",
    "ibv_rc_pingpong": "-g",
    "ibv_rc_pingpong -g 200": "GID 200",
    "ibv_rc_pingpong -g 3 -i 2": "port 2",
    "ibv_rc_pingpong -g 3 -r 1000000": "1000000 receives",
    "ibv_rc_pingpong -g 3 -j -s 1000000": "1000000",
    "ibv_ud_pingpong -g 3 -s 4097": "4096",
    "ibv_xsrq_pingpong -g 3 -d nope": "nope",
    "ibv_devinfo -d nope": "nope",
    "ibv_devinfo -i 2": "port 2",
    "ibv_asyncwatch -d nope": "nope",
}


def ours(name):
    return os.path.join(BIN, name)


def words(text):
    """The lines as words: our columns are straighter than those of rdma-core."""
    return [line.split() for line in text.splitlines() if line.strip()]


class ExampleCase(unittest.TestCase):
    def ok(self, result):
        self.assertEqual((result.status, result.err), (0, ""), result)
        return result.out

    def refused(self, result, status, what=""):
        self.assertEqual((result.status, result.out), (status, ""), result)
        self.assertIn(what, result.err)
        self.assertTrue(result.err.strip(), result)


class Information(ExampleCase):
    def same(self, *command, nic="connectx-6dx"):
        options = ("--quiet", "--nic", nic)
        mine = self.ok(run(verbena(ours(command[0]), *command[1:], options=options)))
        theirs = self.ok(run(verbena(*command, options=options)))
        self.assertEqual(words(mine), words(theirs))

    def test_devices_are_listed_as_debian_does(self):
        for nic in PROFILES:
            self.same("ibv_devices", nic=nic)
            self.same("ibv_devinfo", "-l", nic=nic)

    def test_devinfo_says_what_debians_says(self):
        for nic in PROFILES:
            for options in ([], ["-v"], ["-d", "mlx5_0", "-i", "1"], ["--verbose"]):
                with self.subTest("%s %s" % (nic, options)):
                    self.same("ibv_devinfo", *options, nic=nic)

    def test_asyncwatch_prints_events_as_they_come(self):
        env, _ = own_fabric("asyncwatch")
        lines = queue.Queue()
        process = start(verbena(ours("ibv_asyncwatch")), env=env)
        thread = threading.Thread(target=lambda: [lines.put(line) for line in process.stdout])
        thread.start()
        try:
            self.assertRegex(lines.get(timeout=DEADLINE_S), r"^mlx5_0: async event FD \d+$")
            self.ok(run([VERBENA, "port", "down"], env=env))
            self.assertEqual(lines.get(timeout=DEADLINE_S).strip(),
                             "event_type IBV_EVENT_PORT_ERR (10), port 1")
            self.ok(run([VERBENA, "device", "fatal"], env=env))
            self.assertIn("IBV_EVENT_DEVICE_FATAL (8)", lines.get(timeout=DEADLINE_S))
        finally:
            process.kill()
            process.wait()
            thread.join()
            process.stdout.close()
            process.stderr.close()
            run([VERBENA, "port", "reset"], env=env)

    def test_two_processes_share_a_domain(self):
        for options in ("", "-s 1 -n 20", "-s 1000000 -n 5", "-m 4096 -n 100"):
            with self.subTest(options):
                out = self.ok(run(verbena(ours("ibv_shared_pd"), "-g", GID_INDEX,
                                          *options.split())))
                self.assertRegex(out, r"^worker \d+: \d+ messages of \d+ bytes out of the memory")
                self.assertRegex(out, r"(?m)^owner \d+: my memory is what the worker made of it$")

    def test_help_lists_the_options(self):
        for name in (*PINGPONGS, "ibv_devices", "ibv_devinfo", "ibv_asyncwatch",
                     "ibv_shared_pd"):
            out = self.ok(run([ours(name), "--help"]))
            self.assertRegex(out, r"^usage: %s " % name)
            self.assertIn("-h, --help", out)


class Pingpong(ExampleCase):
    def pair(self, server, client, options):
        """Programs by path or, Debian's, by name; options for both."""
        common = ["-g", GID_INDEX, *options.split()]
        results = run_pair([server, *common], client_program=[client, *common])
        for side in results:
            self.ok(side)
            self.assertNotIn("invalid data", side.out)
            self.check_report(os.path.basename(server), options, side)

    def check_report(self, name, options, side):
        if name == "ibv_xsrq_pingpong":
            self.assertTrue(side.out.endswith("success\n"), side)
            self.assertEqual(len(re.findall(r"^ *(?:local|remote): LID .* SRQN \w{6}, GID \S+$",
                                            side.out, re.M)), 2, side)
            return
        n = re.search(r"(?:-n |--iters=)(\d+)", options)
        size = re.search(r"(?:-s |--size=)(\d+)", options)
        iterations = int(n[1]) if n else 1000
        size_bytes = int(size[1]) if size else 1024 if "_ud_" in name else 4096
        self.assertRegex(side.out, r"(?m)^%d bytes in [0-9.]+ seconds = [0-9.]+ Mbit/sec$"
                         % (2 * size_bytes * iterations))
        self.assertRegex(side.out, r"(?m)^%d iters in [0-9.]+ seconds = [0-9.]+ usec/iter$"
                         % iterations)
        self.assertRegex(side.out, r"(?m)^  remote address: LID 0x\w{4}, QPN 0x\w{6}, "
                                   r"PSN 0x\w{6}, GID \S+$")
        wants_time = "-t" in options.split() or "--ts" in options
        self.assertEqual(len(re.findall("^(?:Max|Min|Average) receive completion clock cycles = ",
                                        side.out, re.M)), 3 if wants_time else 0, side)

    def all_rows(self, table, server, client):
        for name, rows in table.items():
            for options in rows:
                with self.subTest("%s %s" % (name, options)):
                    self.pair(server(name), client(name), options)

    def test_ours_with_ours(self):
        self.all_rows(PINGPONGS, ours, ours)

    def test_our_server_with_debians_client(self):
        self.all_rows(MIXED, ours, str)

    def test_debians_server_with_our_client(self):
        self.all_rows(MIXED, str, ours)

    def test_on_an_infiniband_port_without_a_gid(self):
        for name in PINGPONGS:
            with self.subTest(name):
                for side in run_pair([ours(name), "-n", "20"], env={"VERBENA_NIC": "connectx-6"}):
                    self.ok(side)

    def test_a_message_that_is_not_what_was_agreed_is_found(self):
        for name in ("ibv_rc_pingpong", "ibv_ud_pingpong"):
            common = [ours(name), "-g", GID_INDEX, "-n", "10"]
            server, client = run_pair([*common, "-c"], client_program=common)
            self.ok(client)
            self.assertEqual(server.status, FAILED, server)
            self.assertIn("invalid data in page 0", server.out)


class Mistakes(ExampleCase):
    def test_bad_command_lines_are_refused(self):
        for name, rows in BAD_COMMAND_LINES.items():
            for options in rows:
                with self.subTest("%s %s" % (name, options)):
                    self.refused(run([ours(name), *options.split()]), USAGE, "--help")

    def test_what_the_device_has_not_is_named(self):
        for command, what in REFUSED.items():
            name, *options = command.split()
            with self.subTest(command):
                self.refused(run(verbena(ours(name), *options)), FAILED, what)

    def test_a_refusal_tells_the_errno_and_where_reasons_are(self):
        result = run(verbena(ours("ibv_rc_pingpong"), "-g", "3", "-r", "1000000"))
        self.assertRegex(result.err, r"cannot create .*: (Invalid argument|Cannot allocate memory)")
        self.assertIn("verbena run --explain", result.err)

    @unittest.skipIf(os.path.exists("/sys/class/infiniband"), "this machine has RDMA devices")
    def test_without_a_device_the_programs_say_so(self):
        # ibv_devices may say so as well by an empty list.
        for name in (*PINGPONGS, "ibv_devinfo", "ibv_asyncwatch"):
            with self.subTest(name):
                options = ["-g", GID_INDEX] if name in PINGPONGS else []
                result = run([ours(name), *options], env={"VERBENA_NIC": "hw"})
                self.refused(result, FAILED, "verbena run")


def babble(peer, answer):
    """Sends @answer to a program that may have heard enough before the end of it."""
    with contextlib.suppress(OSError):
        peer.sendall(answer)
        peer.shutdown(socket.SHUT_WR)


class StrangePeers(ExampleCase):
    """The other end of the TCP connection is this test."""

    def server(self, name, answer):
        """Runs @name as server; its client sends @answer and closes."""
        port = free_port()
        command = verbena(ours(name), "-g", GID_INDEX, "-p", str(port))
        process = start(command)
        try:
            wait_until_listening(port, process)
            with socket.create_connection(("127.0.0.1", port)) as peer:
                babble(peer, answer)
            return finish(process, command)
        finally:
            if process.poll() is None:
                end(process)

    def client(self, name, answer, env=None):
        """Runs @name as client; its server sends @answer once it got an address, and closes."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(DEADLINE_S)
            command = verbena(ours(name), "-g", GID_INDEX, "-n", "3", "-p",
                              str(listener.getsockname()[1]), "127.0.0.1")
            process = start(command, env)
            try:
                peer, _ = listener.accept()
                with peer:
                    peer.recv(1)
                    babble(peer, answer)
                    return finish(process, command)
            finally:
                if process.poll() is None:
                    end(process)

    def failed(self, result, what):
        self.assertEqual(result.status, FAILED, result)
        self.assertIn(what, result.err)

    def test_nobody_listens(self):
        for name in PINGPONGS:
            with self.subTest(name):
                self.failed(run(verbena(ours(name), "-g", GID_INDEX, "-p", str(free_port()),
                                        "127.0.0.1")), "Connection refused")

    def test_a_host_that_does_not_exist(self):
        self.failed(run(verbena(ours("ibv_rc_pingpong"), "-g", GID_INDEX, "no-such-host.invalid")),
                    "no-such-host.invalid")

    def test_a_port_that_is_in_use(self):
        with socket.create_server(("", 0)) as listener:
            port = listener.getsockname()[1]
            self.failed(run(verbena(ours("ibv_rc_pingpong"), "-g", GID_INDEX, "-p", str(port))),
                        "at port %d: Address already in use" % port)

    def test_a_peer_that_closes_at_once_or_in_the_middle(self):
        for name in PINGPONGS:
            for answer in (b"", b"0000:0004"):
                with self.subTest("%s %s" % (name, answer)):
                    self.failed(self.server(name, answer), "closed the connection")
                    self.failed(self.client(name, answer), "closed the connection")

    def test_a_peer_that_sends_something_else(self):
        for name in PINGPONGS:
            for answer in (b"x" * 20000, b"\0" * 20000, b"0000:000400:123456:" + b"g" * 20000,
                           b"%s%n%99999d" * 2000):
                with self.subTest("%s %s" % (name, answer[:20])):
                    self.failed(self.server(name, answer), "is no address")
                    self.failed(self.client(name, answer), "is no address")

    def test_a_queue_pair_that_is_not_there(self):
        # On a host of its own, whose address is known: 10.86.0.7.
        answer = b"0000:fffffe:000001:00000000000000000000ffff0a560007\0"
        result = self.client("ibv_rc_pingpong", answer, {"VERBENA_NODE": "7"})
        self.failed(result, "transport retry counter exceeded (status 12, vendor_err 0x81)")
        self.assertIn("verbena run --explain", result.err)


if __name__ == "__main__":
    main()
