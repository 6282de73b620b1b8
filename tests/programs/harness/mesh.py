# SPDX-License-Identifier: BSD-2-Clause
"""A mesh of traffic processes (tests/programs/traffic), to be killed and stopped.

Used by p_death.py and p_scale.py.  The mesh knows which incarnation of which process it killed,
and checks at the end what every process had to say: errors only about those.
"""
import mmap
import random
import re
import signal
import subprocess
import tempfile
import time

from built import TRAFFIC
from programs import environment, verbena

# As board.h asserts it.
LINKS_MAX, HEAD_BYTES, ROW_BYTES, DONE_AT = 64, 64, 4880, 16
UP_AT = DONE_AT + 8 * LINKS_MAX

STUCK_S = 20		# without an operation, on a machine that does other things too
DOWN = re.compile(r"down (\d+) (\d+) (.*)")
RETRIES_EXCEEDED = "transport retry counter exceeded"


class Board:
    """The file that the processes share; see board.h."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="verbena-board-")
        self.file.truncate(HEAD_BYTES + LINKS_MAX * ROW_BYTES)
        self.map = mmap.mmap(self.file.fileno(), 0)

    def close(self):
        self.map.close()
        self.file.close()

    def stop(self):
        self.map[0:4] = (1).to_bytes(4, "little")

    def number(self, row, offset, size):
        at = HEAD_BYTES + row * ROW_BYTES + offset
        return int.from_bytes(self.map[at:at + size], "little")

    def incarnation(self, row):
        return self.number(row, 4, 4)

    def done(self, row, peer):
        return self.number(row, DONE_AT + 8 * peer, 8)

    def is_up(self, row, peer):
        """The incarnation of the peer that it talks to; 0: of none."""
        return self.number(row, UP_AT + 4 * peer, 4)


class Process:
    def __init__(self, row, incarnation, popen, log):
        self.row, self.incarnation, self.popen, self.log = row, incarnation, popen, log

    def said(self):
        self.log.seek(0)
        return self.log.read()


class Mesh:
    """@count processes that all talk with each other."""

    def __init__(self, count, fabric, seed, options=(), stuck_s=STUCK_S):
        self.count, self.fabric, self.options = count, fabric, options
        self.stuck_s = stuck_s
        self.random = random.Random(seed)
        self.board = Board()
        self.last_incarnation = 0
        self.ended, self.lost = [], set()	# processes that are gone; incarnations we took
        self.progress = {}
        self.process = [None] * count
        for row in range(count):
            self.start(row)

    def start(self, row):
        self.last_incarnation += 1
        incarnation = self.last_incarnation
        command = verbena(TRAFFIC, "--board", self.board.file.name, "--id", str(row),
                          "--count", str(self.count), "--incarnation", str(incarnation),
                          *(["--events"] if self.random.random() < 0.5 else []), *self.options)
        log = tempfile.TemporaryFile("w+", errors="replace")
        popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=subprocess.STDOUT,
                                 env=environment({"VERBENA_FABRIC": self.fabric}))
        self.process[row] = Process(row, incarnation, popen, log)
        self.progress[row] = (0, time.monotonic())

    def send(self, row, number):
        self.process[row].popen.send_signal(number)

    def kill(self, row):
        process = self.process[row]
        self.lost.add(process.incarnation)
        process.popen.kill()
        process.popen.wait()
        self.ended.append(process)
        self.process[row] = None
        if process.popen.returncode != -signal.SIGKILL:
            raise AssertionError("process %d ended with %s before it was killed:\n%s" % (
                row, process.popen.returncode, process.said()))

    def close(self):
        """After a failure, too: nothing of ours stays."""
        for process in filter(None, self.process):
            if process.popen.poll() is None:
                process.popen.kill()
            process.popen.wait()
        for process in self.ended + [p for p in self.process if p]:
            process.log.close()
        self.board.close()

    def check_alive(self):
        """Nobody ended by himself, and everybody has done something lately."""
        now = time.monotonic()
        for process in filter(None, self.process):
            row = process.row
            if process.popen.poll() is not None:
                raise AssertionError("process %d ended with %d:\n%s" % (
                    row, process.popen.returncode, process.said()))
            done = sum(self.board.done(row, peer) for peer in range(self.count))
            if done != self.progress[row][0]:
                self.progress[row] = (done, now)
            elif now - self.progress[row][1] > self.stuck_s:
                raise AssertionError("process %d (pid %d) is stuck at %d operations" % (
                    row, process.popen.pid, done))

    def sleep(self, seconds):
        """A nap, awake to processes that end or are stuck."""
        until = time.monotonic() + seconds
        while True:
            self.check_alive()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.1))

    def pairs(self):
        rows = [p.row for p in self.process if p]
        return [(a, b) for a in rows for b in rows if a != b]

    def wait(self, what, is_so):
        until = time.monotonic() + 2 * self.stuck_s
        while not is_so():
            if time.monotonic() > until:
                raise AssertionError("never %s: %s" % (what, [
                    (a, b, self.board.is_up(a, b)) for a, b in self.pairs()]))
            self.sleep(0.01)

    def wait_up(self):
        """Every process talks with today's incarnation of every other."""
        self.wait("all connected", lambda: all(
            self.board.incarnation(a) == self.process[a].incarnation and
            self.board.is_up(a, b) == self.process[b].incarnation for a, b in self.pairs()))

    def wait_progress(self, operations=20, pairs=None):
        """Each link of the living, or of @pairs, carries so many more operations."""
        before = {tuple(pair): self.board.done(*pair) for pair in pairs or self.pairs()}
        self.wait("%d more operations on each link" % operations, lambda: all(
            self.board.done(*pair) >= done + operations for pair, done in before.items()))

    def downs(self, row):
        """(peer, its incarnation, status) of each connection that failed for process @row."""
        found = DOWN.findall(self.process[row].said())
        return [(int(peer), int(incarnation), status) for peer, incarnation, status in found]

    def finish(self):
        """All stop together; what each said is checked."""
        self.board.stop()
        for process in filter(None, self.process):
            process.popen.wait(timeout=2 * self.stuck_s)
        survivors = [p for p in self.process if p]
        for process in survivors:
            if process.popen.returncode != 0:
                raise AssertionError("process %d ended with %d:\n%s" % (
                    process.row, process.popen.returncode, process.said()))
        for process in self.ended + survivors:
            self.check_said(process)

    def check_said(self, process):
        for line in process.said().splitlines():
            down = DOWN.fullmatch(line)
            is_fine = down and int(down[2]) in self.lost and down[3] == RETRIES_EXCEEDED
            if not is_fine and process.incarnation not in self.lost and \
                    not re.match(r"done \d+ ", line):
                raise AssertionError("process %d said: %s\nlost are %s\n%s" % (
                    process.row, line, sorted(self.lost), process.said()))
            if not is_fine and process.incarnation in self.lost and "WRONG" in line:
                raise AssertionError("a killed process had said: %s" % line)
