#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`verbena run --port-pcap IN,OUT`: a capture is played into the port, and what leaves is recorded.

A program gets the frames of a capture exactly and in order, however slow it is; what it sends is in
the recording byte for byte, of several processes in one file.  The program is traffic/frames.c.
"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from built import FRAMES, fabric_audit
from captures import pcap, pcapng, read_by_tshark, read_recording
from framed import A, B, BROADCAST, OUTSIDE, Framed, frame, frames_for, lines, text_of
from programs import DEADLINE_S, LANE_OPTIONS, VERBENA, environment, main, need, run

need(FRAMES)

USAGE = 2


class Port(Framed):
    OPTION = "--port-pcap"


class Played(Port):
    def check(self, data, wanted, *words):
        out = self.run_frames(self.write("in", data), *words)
        self.assertEqual(out.splitlines(), [f.hex() for f in wanted])
        self.assertEqual(fabric_audit(self.fabric), {})

    def test_every_format(self):
        frames = frames_for(A, 300)
        for make in (pcap, pcapng):
            for order in "<>":
                with self.subTest(make.__name__ + order):
                    self.check(make(frames, order), frames, "rule", text_of(A), "post", "64",
                               "take", "300")

    def test_one_receive_at_a_time(self):
        frames = frames_for(A, 200)
        self.check(pcapng(frames), frames, "rule", text_of(A), "post", "1", "take", "200")

    def test_a_receiver_that_sleeps_for_events(self):
        frames = frames_for(A, 300)
        self.check(pcap(frames), frames, "events", "rule", text_of(A), "post", "4", "take", "300")

    def test_receives_that_come_late(self):
        """The program does nothing at all for half a second, time and again."""
        frames = frames_for(A, 30)
        words = ["rule", text_of(A)]
        for _ in range(3):
            words += ["nap", "500", "post", "10", "use", "10"]
        self.check(pcap(frames), frames, *words)

    def test_large_frames(self):
        frames = [frame(A, OUTSIDE, i, length) for i, length in enumerate((9600, 60, 9600, 1514))]
        self.check(pcapng(frames), frames, "rule", text_of(A), "post", "2", "take", "4")

    def test_only_what_rules_want(self):
        frames = [frame((A, B, OUTSIDE)[i % 3], OUTSIDE, i) for i in range(90)]
        self.check(pcapng(frames), [f for f in frames if f[:6] == B], "rule", text_of(B),
                   "post", "5", "take", "30")

    def test_rules_that_follow_each_other(self):
        """All of them are there before it begins."""
        frames = [frame((A, B)[i % 2], OUTSIDE, i) for i in range(100)]
        self.check(pcapng(frames), frames, "post", "64", "rule", text_of(A), "rule",
                   text_of(B), "take", "100")

    def test_rules_that_come_again(self):
        frames = frames_for(A, 20)
        self.check(pcapng(frames), frames, "post", "10", "rule", text_of(A), "use", "10",
                   "unrule", "post", "10", "nap", "300", "rule", text_of(A), "use", "10")

    def test_whoever_never_posts_does_not_hang(self):
        frames = frames_for(A, 1000)
        self.check(pcap(frames), frames[:3], "rule", text_of(A), "post", "3", "use", "3",
                   "nap", "200")

    def test_each_process_hears_all_that_is_for_it(self):
        """One begins when the other has long gone through it, one is slow."""
        frames = [frame((A, B, BROADCAST)[i % 3], OUTSIDE, i) for i in range(150)]
        path = self.write("in", pcapng(frames))
        both = ["rule", text_of(BROADCAST), "post", "8", "take", "100", "say", "done", "line"]
        first = self.start(path, "rule", text_of(A), *both)
        for _ in range(100):
            first.stdout.readline()
        second = self.start(path, "rule", text_of(B), "nap", "50", *both)
        out = self.finish(second, "\n").splitlines()
        self.assertEqual(out[:-1], [f.hex() for f in frames if f[:6] in (B, BROADCAST)])
        self.assertEqual(self.finish(first, "\n"), "done\n")

    def test_a_process_that_is_stopped(self):
        frames = frames_for(A, 200)
        process = self.start(self.write("in", pcap(frames)), "rule", text_of(A), "post", "2",
                             "take", "200")
        got = [process.stdout.readline() for _ in range(50)]
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        process.send_signal(signal.SIGCONT)
        got += self.finish(process).splitlines(True)
        self.assertEqual("".join(got), lines(frames))

    def test_whoever_has_no_rules_hears_nothing(self):
        self.check(pcap(frames_for(A, 10)), [], "post", "10", "nap", "300")

    def test_a_program_that_goes_elsewhere(self):
        """Names are those of where `verbena run` was."""
        frames = frames_for(A, 10)
        self.write("in", pcap(frames))
        command = [os.path.abspath(VERBENA), "run", *LANE_OPTIONS, "--quiet",
                   "--port-pcap=in,out", "--", "sh", "-c", 'cd / && exec "$0" "$@"', FRAMES,
                   "rule", text_of(A), "post", "10", "take", "10"]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True,
                                   env=environment(self.env))
        self.assertEqual(process.communicate(timeout=DEADLINE_S)[0], lines(frames))
        self.assertEqual(read_recording(self.path("out")), [])


class Recorded(Port):
    def test_byte_for_byte(self):
        frames = [frame(BROADCAST, A, i, 60 + i * 41 % 1455) for i in range(200)]
        out = self.path("out.pcapng")
        before = time.time_ns()
        self.run_frames("," + out, "send", stdin=lines(frames))
        recorded = read_recording(out)
        self.assertEqual([f for _, f in recorded], frames)
        times = [before, *(t for t, _ in recorded), time.time_ns()]
        self.assertEqual(times, sorted(times))
        self.assertIn(read_by_tshark(out), (None, frames))

    def test_short_frames_as_they_are_on_a_wire(self):
        out = self.path("out")
        short = frame(OUTSIDE, A, 1)[:20]
        self.run_frames("," + out, "send", stdin=lines([short]))
        self.assertEqual([f for _, f in read_recording(out)], [short + bytes(40)])

    def test_both_directions(self):
        """What was played is not recorded."""
        heard, said = frames_for(A, 40), frames_for(OUTSIDE, 40, A)
        out = self.path("out")
        words = ["rule", text_of(A), "post", "8", "take", "20", "send", "take", "20"]
        got = self.run_frames(self.write("in", pcap(heard)) + "," + out, *words,
                              stdin=lines(said))
        self.assertEqual(got, lines(heard))
        self.assertEqual([f for _, f in read_recording(out)], said)

    def test_two_processes_in_one_file(self):
        out = self.path("out")
        said = [frames_for(BROADCAST, 400, source) for source in (A, B)]
        processes = [self.start("," + out, "say", "ready", "send") for _ in said]
        for process in processes:
            self.assertEqual(process.stdout.readline(), "ready\n")
        for process, frames in zip(processes, said):
            process.stdin.write(lines(frames[:200]))
            process.stdin.flush()
        for process, frames in zip(processes, said):
            self.finish(process, lines(frames[200:]))
        recorded = [f for _, f in read_recording(out)]
        self.assertEqual(len(recorded), 800)
        for source, frames in zip((A, B), said):
            self.assertEqual([f for f in recorded if f[6:12] == source], frames)

    def test_what_is_for_this_host_does_not_leave(self):
        """Where an address is, the switch learns from who sends."""
        out = self.path("out")
        receiver = self.start("," + out, "rule", text_of(A), "post", "8", "send", "say", "known",
                              "take", "5")
        hello, said = frame(BROADCAST, A, 1000), frames_for(A, 5, B)
        self.tell(receiver, lines([hello]) + "\n", "known")
        away = frame(OUTSIDE, B, 2000)
        self.run_frames("," + out, "send", stdin=lines([*said, away]))
        self.assertEqual(self.finish(receiver), lines(said))
        self.assertEqual([f for _, f in read_recording(out)], [hello, away])

    def test_other_emulated_hosts_are_outside(self):
        out = self.path("out")
        receiver = self.start("," + self.path("other"), "rule", text_of(A), "post", "8", "send",
                              "say", "known", "take", "1", options=("--node", "1"))
        self.tell(receiver, lines([frame(BROADCAST, A, 1)]) + "\n", "known")
        said = frame(A, B, 2)
        self.run_frames("," + out, "send", stdin=lines([said]), options=("--node", "2"))
        self.assertEqual(self.finish(receiver), lines([said]))
        self.assertEqual([f for _, f in read_recording(out)], [said])

    def test_later_runs_add(self):
        out = self.path("out")
        said = frames_for(BROADCAST, 6, A)
        for i in range(0, 6, 2):
            self.run_frames("," + out, "send", stdin=lines(said[i:i + 2]))
        self.assertEqual([f for _, f in read_recording(out)], said)

    def test_a_process_that_is_killed_leaves_a_whole_file(self):
        out = self.path("out")
        frames = frames_for(BROADCAST, 5000, A)
        process = self.start("," + out, "say", "ready", "send")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.stdin.write(lines(frames[:100]))
        process.stdin.flush()
        deadline = time.monotonic() + DEADLINE_S
        while not read_recording(out) and time.monotonic() < deadline:
            time.sleep(0.001)
        process.kill()
        process.wait()
        recorded = [f for _, f in read_recording(out)]
        self.assertEqual(recorded, frames[:len(recorded)])
        self.assertTrue(recorded)
        self.run_frames("," + out, "send", stdin=lines(frames[200:201]))
        self.assertEqual(read_recording(out)[-1][1], frames[200])


class Refused(Port):
    def check_run(self, pcap_option, *words):
        """`verbena run` says it, and nothing is started."""
        result = run([VERBENA, "run", "--port-pcap", pcap_option, "--", "echo", "started"])
        self.assertEqual((result.status, result.out), (USAGE, ""), result)
        for word in ("--port-pcap", *words):
            self.assertIn(word, result.err)
        self.assertEqual(len(result.err.splitlines()), 1, result)

    def check_device(self, pcap_option, *words, options=()):
        """So does the device, when it is opened."""
        command = [VERBENA, "run", *LANE_OPTIONS, "--quiet", *options, "--", FRAMES]
        result = run(command, env={**self.env, "VERBENA_PORT_PCAP": pcap_option})
        self.assertEqual((result.status, result.out), (1, ""), result)
        for word in ("verbena: cannot open mlx5_0", "VERBENA_PORT_PCAP", *words):
            self.assertIn(word, result.err)
        self.assertEqual(fabric_audit(self.fabric), {})

    def check(self, pcap_option, *words):
        self.check_run(pcap_option, *words)
        self.check_device(pcap_option, *words)

    def test_garbage(self):
        for data, word in ((b"", "is empty"), (b"this is no capture at all", "neither pcapng"),
                           (pcap(frames_for(A, 3))[:-1], "in the middle"),
                           (pcapng(frames_for(A, 3))[:-8], "in the middle"),
                           (pcapng([]) + b"\0" * 40, "lengths")):
            with self.subTest(word):
                path = self.write("in", data)
                self.check(path, path, word)

    def test_files_that_are_not_there(self):
        self.check(self.path("nothing"), self.path("nothing"), "No such file")
        self.check("," + self.path("no/where"), self.path("no/where"), "No such file")
        self.check(self.folder, "is not a file")
        self.check(",", "no file is named")

    def test_a_recording_over_something_else(self):
        path = self.write("letters", b"my letters")
        self.check("," + path, path, "no recording")
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"my letters")

    def test_a_port_without_frames(self):
        self.check_device("," + self.path("out"), "InfiniBand",
                          options=("--nic", "connectx-6"))

    def test_an_option_without_a_value(self):
        result = run([VERBENA, "run", "--port-pcap"])
        self.assertEqual(result.status, USAGE, result)


if __name__ == "__main__":
    main()
