#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""verbena port, pkey, gid and device: programs see what happens to their network.

Rules: verbena(1); device-abi B.8 (port states), B.10 and F.4 (events).  ibv_asyncwatch is the
witness of events, ibv_devinfo and files below /sys of everything else.
"""
import os
import queue
import re
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import fabric_audit, own_fabric
from programs import (DEADLINE_S, GID_INDEX, LANE, VERBENA, end, free_port, main, need, run, start,
                      verbena, wait_until_listening)

need("ib_write_bw", "ibv_asyncwatch", "ibv_devinfo", "ibv_rc_pingpong", "stdbuf")

EVENT = re.compile(r"event_type (?:IBV_EVENT_)?(\w+) \((\d+)\)(?:, port (\d+))?")
PORT = "/sys/class/infiniband/mlx5_0/ports/1/"
ASK = """
import ctypes, sys
verbs, text = ctypes.CDLL("libibverbs.so.1"), ctypes.create_string_buffer(128)
verbs.ibv_get_device_list(None)
folder, name = (word.rstrip("/").encode() for word in sys.argv[1:])
if verbs.ibv_read_sysfs_file(folder, name, text, len(text)) < 0:
    sys.exit(1)
print(text.value.decode())
"""


class Reader:
    """The lines of a process, as they come."""

    def __init__(self, process):
        self.process = process
        self.lines = queue.Queue()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()
        self.process.stderr.close()

    def next(self):
        return self.lines.get(timeout=DEADLINE_S)


class PortTest(unittest.TestCase):
    def setUp(self):
        self.env, self.fabric = own_fabric(self.id().rsplit(".", 1)[1])
        self.addCleanup(self.leave_nothing)
        self.ok("port", "reset")		# of a run that was killed

    def leave_nothing(self):
        self.ok("port", "reset")
        self.assertEqual(fabric_audit(self.fabric), {})

    def tool(self, *words):
        return run([VERBENA, *words], env=self.env)

    def ok(self, *words):
        result = self.tool(*words)
        self.assertEqual((result.status, result.err), (0, ""), result)
        return result.out

    def watch(self, *options):
        """ibv_asyncwatch, once it listens."""
        process = start(verbena("stdbuf", "-oL", "ibv_asyncwatch",
                                options=("--quiet", *options)), env=self.env)
        reader = Reader(process)
        self.addCleanup(reader.close)
        self.assertIn("async event FD", reader.next())
        return reader

    def expect_event(self, reader, name, number, port="1"):
        line = reader.next()
        found = EVENT.search(line or "")
        self.assertIsNotNone(found, line)
        self.assertEqual(found.groups(), (name, str(number), port), line)

    def devinfo(self, *options):
        result = run(verbena("ibv_devinfo", "-v", options=("--quiet", *options)), env=self.env)
        self.assertEqual(result.status, 0, result)
        return dict(re.findall(r"^\s*([a-z_]+):\s+(.*\S)\s*$", result.out, re.M)), result.out

    def sysfs(self, path, *options):
        """Of a file; without the shim there is none, and libibverbs is asked."""
        command = {"stock": ["cat", PORT + path],
                   "own": [sys.executable, "-c", ASK, PORT, path]}[LANE]
        result = run(verbena(*command, options=("--quiet", *options)), env=self.env)
        self.assertEqual(result.status, 0, result)
        return result.out.strip()


class Ethernet(PortTest):
    def test_a_flap_is_seen(self):
        reader = self.watch()
        self.ok("port", "down")
        self.expect_event(reader, "PORT_ERR", 10)
        self.assertEqual(self.devinfo()[0]["state"], "PORT_DOWN (1)")
        self.assertEqual(self.sysfs("state"), "1: DOWN")
        self.assertEqual(self.sysfs("phys_state"), "3: Disabled")
        self.ok("port", "down")			# again is no news
        self.ok("port", "up")
        self.expect_event(reader, "PORT_ACTIVE", 9)
        self.assertEqual(self.devinfo()[0]["state"], "PORT_ACTIVE (4)")
        self.assertEqual(self.sysfs("state"), "4: ACTIVE")

    def test_a_port_that_is_down_stays_so_for_who_comes_later(self):
        self.ok("port", "down")
        self.assertEqual(self.devinfo()[0]["state"], "PORT_DOWN (1)")
        self.assertEqual(self.devinfo()[0]["state"], "PORT_DOWN (1)")
        self.assertRegex(self.ok("port"), "^down\n")
        self.ok("port", "up")
        self.assertRegex(self.ok("port", "show"), "^up\n")
        self.assertEqual(fabric_audit(self.fabric), {}, "nothing is kept of a port as new")

    def test_gids_come_and_go(self):
        reader = self.watch()
        self.ok("gid", "add", "10.99.0.7")
        self.expect_event(reader, "GID_CHANGE", 18)
        index = re.search(r"GID\[\s*(\d+)\]:\s+::ffff:10\.99\.0\.7, RoCE v2", self.devinfo()[1])
        self.assertIsNotNone(index)
        self.assertEqual(self.sysfs("gids/" + index.group(1)),
                         "0000:0000:0000:0000:0000:ffff:0a63:0007")
        self.assertEqual(self.sysfs("gid_attrs/types/" + index.group(1)), "RoCE v2")
        self.ok("gid", "del", "10.99.0.7")
        self.expect_event(reader, "GID_CHANGE", 18)
        self.assertNotIn("10.99.0.7", self.devinfo()[1])

    def test_what_is_of_infiniband_only_changes_nothing(self):
        before = self.devinfo()[1]
        for words in (("port", "lid", "76"), ("port", "lmc", "2"), ("port", "sm", "5"),
                      ("pkey", "add", "0x8001")):
            self.ok(*words)
        self.assertEqual(self.devinfo()[1], before)

    def test_one_host_of_several(self):
        self.ok("port", "down", "--node", "2")
        self.assertEqual(self.devinfo("--node", "2")[0]["state"], "PORT_DOWN (1)")
        self.assertEqual(self.devinfo("--node", "1")[0]["state"], "PORT_ACTIVE (4)")
        self.assertEqual(self.devinfo()[0]["state"], "PORT_ACTIVE (4)")
        self.ok("port", "down")
        self.ok("port", "--node=2", "up")
        self.assertEqual(self.devinfo("--node", "2")[0]["state"], "PORT_ACTIVE (4)")
        self.assertEqual(self.devinfo("--node", "1")[0]["state"], "PORT_DOWN (1)")

    def test_traffic_ends_with_retries_exceeded(self):
        port = str(free_port())
        command = verbena("stdbuf", "-oL", "ibv_rc_pingpong", "-g", GID_INDEX, "-n", "2000000000",
                          "-p", port)
        server = start(command, self.env)
        self.addCleanup(end, server)
        wait_until_listening(int(port), server)
        client = start(command + ["127.0.0.1"], self.env)
        self.addCleanup(end, client)
        self.assertIn("local address", client.stdout.readline())
        self.assertIn("remote address", client.stdout.readline())
        self.assertIn("local address", server.stdout.readline())
        self.assertIn("remote address", server.stdout.readline())
        self.ok("port", "down")
        # Whose turn it is to send fails; the other waits for ever.
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline and client.poll() is None and server.poll() is None:
            time.sleep(0.01)
        failed = client if client.poll() is not None else server
        self.assertIn("transport retry counter exceeded", failed.communicate()[1])
        self.assertNotEqual(failed.returncode, 0)

    def test_nobody_reaches_into_a_host_whose_port_is_down(self):
        """One-sided operations don't need the target, but its port."""
        port = str(free_port())
        command = ["stdbuf", "-oL", "ib_write_bw", "-x", GID_INDEX, "-D", "600", "-p", port]
        server = start(verbena(*command, options=("--quiet", "--node", "2")), self.env)
        self.addCleanup(end, server)
        wait_until_listening(int(port), server)
        client = start(verbena(*command, "127.0.0.1", options=("--quiet", "--node", "1")),
                       self.env)
        self.addCleanup(end, client)
        while "#bytes" not in (line := client.stdout.readline()):
            self.assertNotEqual(line, "", "it ended early")
        self.ok("port", "down", "--node", "2")
        out, err = client.communicate(timeout=DEADLINE_S)
        self.assertNotEqual(client.returncode, 0)
        self.assertIn("status 12", out + err)

    def test_a_broken_device_says_so_and_the_next_is_whole(self):
        reader = self.watch()
        self.ok("device", "fatal")
        self.expect_event(reader, "DEVICE_FATAL", 8, "0")
        self.assertEqual(self.devinfo()[0]["state"], "PORT_ACTIVE (4)")


class InfiniBand(PortTest):
    NIC = ("--nic", "connectx-6")

    def test_every_change_has_its_event(self):
        reader = self.watch(*self.NIC)
        for words, name, number in (
                (("port", "down"), "PORT_ERR", 10),
                (("port", "lid", "0x1234"), "LID_CHANGE", 11),
                (("port", "sm", "9"), "SM_CHANGE", 13),
                (("pkey", "add", "0x8005"), "PKEY_CHANGE", 12),
                (("pkey", "add", "0x7006"), "PKEY_CHANGE", 12),
                (("pkey", "del", "0x8005"), "PKEY_CHANGE", 12),
                (("gid", "add", "2001:db8::1"), "GID_CHANGE", 18),
                (("port", "reregister"), "CLIENT_REREGISTER", 17),
                (("port", "reregister"), "CLIENT_REREGISTER", 17),
                (("port", "up"), "PORT_ACTIVE", 9)):
            with self.subTest(words):
                self.ok(*words)
                self.expect_event(reader, name, number)
        values, text = self.devinfo(*self.NIC)
        self.assertEqual(values["port_lid"], str(0x1234))
        self.assertEqual(values["sm_lid"], "9")
        self.assertEqual(self.sysfs("lid", *self.NIC), "0x1234")
        self.assertEqual(self.sysfs("sm_lid", *self.NIC), "0x9")
        self.assertEqual(self.sysfs("pkeys/0", *self.NIC), "0xffff")
        self.assertEqual(self.sysfs("pkeys/1", *self.NIC), "0x0000")
        self.assertEqual(self.sysfs("pkeys/2", *self.NIC), "0x7006")
        self.assertEqual(self.sysfs("gids/1", *self.NIC), "2001:0db8:0000:0000:0000:0000:0000:0001")
        self.assertIn("2001:0db8:0000:0000:0000:0000:0000:0001", text)

    def lids(self, *options):
        values = self.devinfo(*self.NIC, *options)[0]
        lid, lmc = int(values["port_lid"]), int(values["port_lmc"], 16)
        self.assertEqual(self.sysfs("lid", *self.NIC, *options), hex(lid))
        self.assertEqual(self.sysfs("lid_mask_count", *self.NIC, *options), str(lmc))
        return lid, lmc

    def test_a_port_has_so_many_lids(self):
        """Another number of them is told twice, and the same one not at all."""
        first = self.lids()[0]
        reader = self.watch(*self.NIC)
        for words, lids in ((("port", "lmc", "7"), (first, 7)),
                            (("port", "lmc", "3"), (first, 3)),
                            (("port", "reset"), (first, 0)),
                            (("port", "lmc", "0x1"), (first, 1))):
            with self.subTest(words):
                self.ok(*words)
                self.expect_event(reader, "LID_CHANGE", 11)
                self.expect_event(reader, "CLIENT_REREGISTER", 17)
                self.assertEqual(self.lids(), lids)
        self.ok("port", "lmc", "1")
        self.ok("port", "sm", "9")
        self.expect_event(reader, "SM_CHANGE", 13)

    def test_the_first_lid_is_a_multiple_of_their_number(self):
        first = self.lids()[0]
        self.ok("port", "lid", "0x47")
        for lmc, lid in (("0", 0x47), ("1", 0x46), ("6", 0x40), ("2", 0x40), ("7", first)):
            with self.subTest(lmc):
                self.ok("port", "lmc", lmc)
                self.assertEqual(self.lids(), (lid, int(lmc)))
        self.ok("port", "lid", "0xbf80")
        for lid in ("0x47", "0xbf81", "0xbfff"):
            result = self.tool("port", "lid", lid)
            self.assertEqual((result.status, result.out), (1, ""), result)
            self.assertRegex(result.err, "^verbena: .* multiple .*\n$")
        self.assertEqual(self.lids(), (0xbf80, 7))

    def test_no_two_hosts_have_the_same_lids(self):
        """Whatever the LMC, which each host may have of its own."""
        self.ok("port", "lmc", "7")
        self.ok("port", "lmc", "2", "--node", "2")
        taken = set()
        for options, lmc in (((), 7), (("--node", "1"), 7), (("--node", "2"), 2),
                             (("--node", "3"), 7), (("--node", "250"), 7)):
            lid, found = self.lids(*options)
            self.assertEqual(found, lmc, options)
            lids = set(range(lid, lid + 2 ** lmc))
            self.assertTrue(lids <= set(range(2, 0xc000)), (options, lid))
            self.assertFalse(taken & lids, (options, lid))
            taken |= lids
        self.ok("port", "reset", "--node", "2")

    def test_a_port_that_is_down_polls(self):
        self.ok("port", "down")
        self.assertEqual(self.sysfs("state", *self.NIC), "1: DOWN")
        self.assertEqual(self.sysfs("phys_state", *self.NIC), "2: Polling")


class Words(PortTest):
    def test_wrong_use(self):
        for words in (("port", "sideways"), ("port", "down", "now"), ("port", "lid"),
                      ("port", "lid", "0"), ("port", "lid", "0xc000"), ("port", "lid", "-1"),
                      ("port", "lid", "12x"), ("port", "lmc"), ("port", "lmc", "8"),
                      ("port", "lmc", "-1"), ("port", "lmc", "x"), ("pkey", "add"),
                      ("pkey", "add", "0x8000"), ("pkey", "add", "0x10000"),
                      ("gid", "add", "10.0.0"), ("gid", "move", "::1"), ("gid",),
                      ("port", "up", "--nic", "connectx-6"),
                      ("port", "--node", "0", "up"),
                      ("port", "up", "--fabric", "a/b"), ("device",), ("device", "fatal", "all")):
            with self.subTest(words):
                result = self.tool(*words)
                self.assertEqual((result.status, result.out), (2, ""), result)
                self.assertRegex(result.err, "^verbena: .*\n$")

    def test_what_can_not_be(self):
        for words in (("pkey", "add", "0xffff"), ("pkey", "del", "0x8001"),
                      ("pkey", "add", "65535")):
            with self.subTest(words):
                result = self.tool(*words)
                self.assertEqual((result.status, result.out), (1, ""), result)
                self.assertRegex(result.err, "^verbena: .* there( already)?\n$")
        self.ok("gid", "add", "::1")
        self.assertEqual(self.tool("gid", "add", "::1").status, 1)
        for number in range(1, 128):
            self.ok("pkey", "add", hex(number))
        self.assertEqual(self.tool("pkey", "add", "0x100").status, 1)

    def test_what_is_set_is_shown(self):
        self.ok("port", "lid", "6")
        self.ok("port", "lmc", "1")
        self.ok("pkey", "add", "0x8001")
        self.ok("gid", "add", "10.0.0.1")
        self.ok("gid", "del", "fe80::1")
        self.assertEqual(self.ok("port").splitlines(), [
            "up", "  LID 0x6", "  LMC 1", "  P_Key 0 0xffff", "  P_Key 1 0x8001",
            "  GID ::ffff:10.0.0.1 added", "  GID fe80::1 removed"])
        self.ok("port", "reset")
        self.assertEqual(self.ok("port").splitlines(), ["up", "  P_Key 0 0xffff"])


if __name__ == "__main__":
    main()
