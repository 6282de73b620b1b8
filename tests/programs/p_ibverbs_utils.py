#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ibv_devices, ibv_devinfo and the pingpongs of Debian's ibverbs-utils.

Rules: device-abi B.7 and B.8 (what the device says), architecture section 5 (profiles).
"""
import ipaddress
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from programs import GID_INDEX, main, need, run, run_pair, verbena

need("ibv_devices", "ibv_devinfo", "ibv_rc_pingpong")

# name, vendor_part_id, link layer of its port
PROFILES = [
    ("connectx-5", 4119, "Ethernet"),
    ("connectx-6", 4123, "InfiniBand"),
    ("connectx-6dx", 4125, "Ethernet"),
    ("connectx-7", 4129, "Ethernet"),
]


def parse_devinfo(text):
    """Values by name; GIDs as {index: text}."""
    values, gids = {}, {}
    for line in text.splitlines():
        gid = re.match(r"\s*GID\[\s*(\d+)\]:\s*(\S+)(?:, (.+))?$", line)
        pair = re.match(r"\s*([a-z_]+):\s+(.*\S)\s*$", line)
        if gid:
            gids[int(gid.group(1))] = (gid.group(2), gid.group(3))
        elif pair:
            values.setdefault(pair.group(1), pair.group(2))
    return values, gids


def devinfo(nic):
    return run(verbena("ibv_devinfo", "-v", options=("--quiet", "--nic", nic)))


class Devices(unittest.TestCase):
    def test_ibv_devices_lists_one_device(self):
        result = run(verbena("ibv_devices"))
        self.assertEqual(result.status, 0, result)
        rows = result.out.splitlines()[2:]
        self.assertEqual([r.split()[0] for r in rows], ["mlx5_0"], result)
        self.assertRegex(rows[0], r"[0-9a-f]{16}")

    def test_every_profile_says_what_part_it_is(self):
        for nic, part, link in PROFILES:
            with self.subTest(nic):
                result = devinfo(nic)
                self.assertEqual(result.status, 0, result)
                values, _ = parse_devinfo(result.out)
                self.assertEqual(values["vendor_id"], "0x02c9")
                self.assertEqual(values["vendor_part_id"], str(part))
                self.assertEqual(values["link_layer"], link)
                self.assertTrue(values["state"].startswith("PORT_ACTIVE"), values["state"])
                self.assertEqual(values["max_mtu"], "4096 (5)")
                self.assertRegex(values["fw_ver"], r"^\d+\.\d+\.\d{4}$")
                self.assertIn("emulated", values["board_id"].lower())

    def test_the_default_is_a_connectx_6_dx(self):
        result = run(verbena("ibv_devinfo"))
        self.assertEqual(result.status, 0, result)
        self.assertEqual(parse_devinfo(result.out)[0]["vendor_part_id"], "4125")

    def test_gid_3_is_roce_v2_over_ipv4(self):
        for nic, _, link in PROFILES:
            if link != "Ethernet":
                continue
            with self.subTest(nic):
                _, gids = parse_devinfo(devinfo(nic).out)
                address = ipaddress.IPv6Address(gids[3][0])
                self.assertIsNotNone(address.ipv4_mapped, gids)
                self.assertEqual(gids[3][1], "RoCE v2")
                self.assertEqual(ipaddress.IPv6Address(gids[2][0]), address)
                self.assertTrue(gids[0][0].startswith("fe80:"), gids)

    def test_an_infiniband_profile_has_a_lid_and_an_ib_gid(self):
        values, gids = parse_devinfo(devinfo("connectx-6").out)
        self.assertNotEqual(values["port_lid"], "0")
        self.assertTrue(gids[0][0].startswith("fe80:"), gids)

    def test_an_unknown_device_or_port_is_an_error(self):
        self.assertNotEqual(run(verbena("ibv_devinfo", "-d", "mlx5_9")).status, 0)
        self.assertNotEqual(run(verbena("ibv_devinfo", "-i", "2")).status, 0)

    def test_two_processes_see_the_same_guid(self):
        first, second = devinfo("connectx-7"), devinfo("connectx-7")
        self.assertEqual(first.out, second.out)


# Options of all of them: -c validates each buffer, -e sleeps for events.
RC_PINGPONGS = [
    "", "-c", "-e", "-e -c", "-s 1 -n 200", "-s 64 -n 200 -c", "-s 65536 -n 100 -c",
    "-s 1000000 -n 20 -c", "-m 256 -s 4096 -n 200 -c", "-m 512 -s 1000 -n 100 -c",
    "-m 2048 -s 10000 -n 100 -c", "-m 4096 -s 100000 -n 50 -c -e", "-r 1 -n 200",
    "-r 2 -n 200 -c -e", "-l 0 -n 200", "-n 5000", "-t", "-t -c",
]


PINGPONGS = {
    "ibv_uc_pingpong": ["", "-c", "-e -c", "-s 65536 -n 100 -c", "-m 256 -s 10000 -n 100 -c"],
    "ibv_ud_pingpong": ["", "-c", "-e -c", "-s 1024 -n 200 -c", "-r 1 -n 200"],
    "ibv_srq_pingpong": ["", "-c", "-e -c", "-q 1 -n 200", "-q 64 -n 50", "-m 256 -c -n 200"],
    "ibv_xsrq_pingpong": ["", "-e", "-n 50", "-m 256 -n 200"],
}


def has_xrc():
    return "XRC" in run(verbena("ibv_devinfo", "-v")).out


class Pingpong(unittest.TestCase):
    def pingpong(self, options, name="ibv_rc_pingpong"):
        n = re.search(r"-n (\d+)", options)
        program = [name, "-d", "mlx5_0", "-g", GID_INDEX, *options.split()]
        server, client = run_pair(program)
        self.assertEqual((client.status, server.status), (0, 0), "%s\n%s" % (client, server))
        for side in (client, server):
            self.assertNotRegex(side.out + side.err, r"(?i)invalid data|fail|mismatch")
            if name == "ibv_xsrq_pingpong":     # says no more
                self.assertRegex(side.out, r"\nsuccess\n")
                continue
            self.assertRegex(side.out, r"bytes in [0-9.]+ seconds = ")
            self.assertRegex(side.out, r"%s iters in" % (n.group(1) if n else "1000"))

    def test_all_options(self):
        for options in RC_PINGPONGS:
            with self.subTest(options):
                self.pingpong(options)

    def test_other_transports(self):
        for name, rows in PINGPONGS.items():
            if name == "ibv_xsrq_pingpong" and not has_xrc():
                continue
            for options in rows:
                with self.subTest("%s %s" % (name, options)):
                    self.pingpong(options, name)

    def test_mtu_must_be_a_power_of_two(self):
        result = run(verbena("ibv_rc_pingpong", "-g", GID_INDEX, "-m", "1000"))
        self.assertNotEqual(result.status, 0)

if __name__ == "__main__":
    main()
