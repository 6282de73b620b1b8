#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`verbena run --port-tap NAME`: the host's own network stack is behind the port.

A network namespace of the test's own is the host; sockets of this process are its stack.  Skipped
where that, or a TAP device, is not allowed.
"""
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import FRAMES, fabric_audit
from captures import read_recording
from framed import A, B, BROADCAST, TYPE, Framed, frame, frames_for, lines, text_of
from programs import DEADLINE_S, LANE_OPTIONS, SKIPPED, VERBENA, main, need, run

need(FRAMES)

TAP = "vtap0"
CLONE_NEWNET = 0x40000000
HERE, THERE = "10.99.0.1", "10.99.0.2"
USAGE = 2


def skip(why):
    """For what the kernel may refuse to this process; nothing of ours ends here."""
    print("skipped:", why)
    sys.exit(SKIPPED)


def own_network():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        skip("no network of its own: %s" % os.strerror(ctypes.get_errno()))
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        skip("no TAP devices: %s" % error)


def interface(request, value=b""):
    """An ioctl() of netdevice(7) on the TAP device."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        data = struct.pack("16s24s", TAP.encode(), value)
        return fcntl.ioctl(s.fileno(), request, data)[16:]


def mac_of_host():
    return interface(0x8927)[2:8]


def address_set():
    for request, text in ((0x8916, HERE), (0x891c, "255.255.255.0")):
        interface(request, struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(text)))


def packet_socket():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(TYPE))
    s.bind((TAP, TYPE))
    s.settimeout(DEADLINE_S)
    return s


class Tap(Framed):
    OPTION = "--port-tap"

    def started(self, *words, **more):
        """It has the device."""
        process = self.start(TAP, "say", "ready", *words, **more)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_frames_of_the_host_reach_a_program(self):
        process = self.started("rule", text_of(A), "post", "64", "say", "set", "take", "50")
        self.assertEqual(process.stdout.readline(), "set\n")
        said = frames_for(A, 50)
        with packet_socket() as host:
            for one in said:
                host.send(one)
        self.assertEqual(self.finish(process), lines(said))
        self.assertEqual(fabric_audit(self.fabric), {})

    def test_a_program_that_sleeps_is_woken(self):
        process = self.started("events", "rule", text_of(A), "post", "4", "say", "set",
                               "take", "5")
        self.assertEqual(process.stdout.readline(), "set\n")
        with packet_socket() as host:
            for one in frames_for(A, 5):
                time.sleep(0.05)
                host.send(one)
                self.assertEqual(process.stdout.readline(), one.hex() + "\n")
        self.finish(process)

    def test_frames_of_a_program_reach_the_host(self):
        process = self.started("send")
        said = [*frames_for(BROADCAST, 30, A), *frames_for(mac_of_host(), 30, A)]
        with packet_socket() as host:
            process.stdin.write(lines(said))
            process.stdin.flush()
            got = [host.recv(2048) for _ in said]
            self.assertEqual(got, said)
            self.finish(process)

    def test_the_host_gets_only_what_no_rule_wants(self):
        process = self.started("rule", text_of(A), "post", "1", "send", "take", "1")
        said = [frame(A, B, 1), frame(BROADCAST, B, 2)]
        with packet_socket() as host:
            process.stdin.write(lines(said))
            process.stdin.flush()
            self.assertEqual(host.recv(2048), said[1])
            self.assertEqual(self.finish(process), lines(said[:1]))

    def test_a_datagram_of_a_socket(self):
        """The stack asks for the address first; the program answers as the station would."""
        process = self.started("rule", text_of(BROADCAST), "rule", text_of(A), "post", "8",
                               "say", "set", "take", "1", "send", "take", "1")
        self.assertEqual(process.stdout.readline(), "set\n")
        address_set()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"hello verbena", (THERE, 4242))
            question = bytes.fromhex(process.stdout.readline())
            self.assertEqual(question[12:14], b"\x08\x06")
            self.assertEqual(question[38:42], socket.inet_aton(THERE))
            host = question[6:12]
            answer = host + A + question[12:20] + b"\x00\x02" + A + socket.inet_aton(THERE) + \
                host + socket.inet_aton(HERE)
            datagram = bytes.fromhex(self.finish(process, lines([answer])))
        self.assertEqual(datagram[:14], A + host + b"\x08\x00")
        self.assertEqual(datagram[42:55], b"hello verbena")

    def test_other_processes_reach_the_host_through_the_one_that_has_it(self):
        owner = self.started("line")
        other = self.started("rule", text_of(A), "post", "4", "say", "set", "send", "take", "1")
        self.assertEqual(other.stdout.readline(), "set\n")
        with packet_socket() as host:
            said = frame(BROADCAST, A, 1)
            other.stdin.write(lines([said]) + "\n")
            other.stdin.flush()
            self.assertEqual(host.recv(2048), said)
            answer = frame(A, mac_of_host(), 2)
            host.send(answer)
            self.assertEqual(self.finish(other), lines([answer]))
        self.finish(owner, "\n")

    def test_whoever_comes_after_one_that_died_has_the_device(self):
        first = self.started("line")
        first.kill()
        first.wait()
        second = self.started("send")
        with packet_socket() as host:
            said = frame(BROADCAST, A, 3)
            second.stdin.write(lines([said]))
            second.stdin.flush()
            self.assertEqual(host.recv(2048), said)
        self.finish(second)

    def test_frames_of_the_host_are_recorded(self):
        out = self.path("out")
        process = self.started("line", options=("--port-pcap", "," + out))
        said = frames_for(B, 20, mac_of_host())
        with packet_socket() as host:
            for one in said:
                host.send(one)
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            recorded = [f for _, f in read_recording(out) if f[12:14] == TYPE.to_bytes(2, "big")]
            if len(recorded) == len(said):
                break
            time.sleep(0.01)
        self.assertEqual(recorded, said)
        self.finish(process, "\n")


class Refused(Framed):
    OPTION = "--port-tap"

    def test_no_name_of_a_device(self):
        for name in ("", "a/b", "a-very-long-name-of-a-device"):
            result = run([VERBENA, "run", "--port-tap", name, "--", "echo", "started"])
            self.assertEqual((result.status, result.out), (USAGE, ""), result)
            self.assertIn("--port-tap", result.err)

    def check_device(self, *words, prefix=(), options=()):
        command = [*prefix, VERBENA, "run", *LANE_OPTIONS, "--quiet", *options, "--", FRAMES]
        result = run(command, env={**self.env, "VERBENA_PORT_TAP": TAP})
        self.assertEqual((result.status, result.out), (1, ""), result)
        for word in ("verbena: cannot open mlx5_0", "VERBENA_PORT_TAP", *words):
            self.assertIn(word, result.err)

    def test_a_device_that_somebody_else_has(self):
        tun = os.open("/dev/net/tun", os.O_RDWR)
        self.addCleanup(os.close, tun)
        fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH22x", TAP.encode(), 0x1002))
        self.check_device(TAP, "busy")

    def test_a_port_without_frames(self):
        self.check_device("InfiniBand", options=("--nic", "connectx-6"))

    @unittest.skipUnless(shutil.which("setpriv"), "needs setpriv")
    def test_an_ordinary_user(self):
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                  "--inh-caps=-all"]
        if run([*nobody, VERBENA, "--version"]).status:
            self.skipTest("nobody can't reach the build directory")
        self.check_device(TAP, "not permitted", prefix=nobody)


if __name__ == "__main__":
    own_network()
    main()
