# SPDX-License-Identifier: BSD-2-Clause
"""Running traffic/frames.c, and what its frames look like.  Used by p_port_*.py."""
import shutil
import subprocess
import tempfile
import threading
import unittest

from built import FRAMES, own_fabric
from programs import DEADLINE_S, LANE_OPTIONS, VERBENA, environment

A, B = bytes.fromhex("02000000000a"), bytes.fromhex("02000000000b")
OUTSIDE = bytes.fromhex("020000000099")
BROADCAST = b"\xff" * 6
TYPE = 0x88b5				# for experiments: no stack says anything of it


def text_of(mac):
    return ":".join("%02x" % byte for byte in mac)


def frame(destination, source, number, length=60):
    """No two are equal."""
    head = destination + source + TYPE.to_bytes(2, "big") + number.to_bytes(4, "big")
    return head + bytes((number * 7 + i) & 0xff for i in range(max(length, 60) - len(head)))


def frames_for(destination, count, source=OUTSIDE):
    return [frame(destination, source, i, 60 + i * 37 % 1455) for i in range(count)]


def lines(frames):
    return "".join(f.hex() + "\n" for f in frames)


class Framed(unittest.TestCase):
    """A folder and a fabric for each case."""
    OPTION = None			# of `verbena run`, for all programs

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.env, self.fabric = own_fabric(self.id().rsplit(".")[-1][:30])

    def path(self, name):
        return "%s/%s" % (self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def start(self, value, *words, options=(), prefix=()):
        """The program, with @value for the option."""
        command = [*prefix, VERBENA, "run", *LANE_OPTIONS, "--quiet", *options, self.OPTION,
                   value, "--", FRAMES, *words]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env=environment(self.env))
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            pipe.close()

    def tell(self, process, text, answer):
        """A part of its input; what it says then."""
        process.stdin.write(text)
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), answer + "\n")

    def finish(self, process, stdin=""):
        """To its end; what it printed since somebody read that.  communicate() would lose what
        was read from the pipe and is in a buffer."""
        def write():
            try:
                process.stdin.write(stdin)
                process.stdin.close()
            except BrokenPipeError:
                pass

        writer = threading.Thread(target=write)
        killer = threading.Timer(DEADLINE_S, process.kill)
        for thread in (writer, killer):
            thread.start()
        out, err = process.stdout.read(), process.stderr.read()
        writer.join()
        killer.cancel()
        self.assertEqual((process.wait(), err), (0, ""))
        return out

    def run_frames(self, value, *words, stdin="", options=()):
        return self.finish(self.start(value, *words, options=options), stdin)
