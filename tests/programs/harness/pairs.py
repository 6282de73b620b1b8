#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Run a long list of pairs of other people's programs, and tell what became of each.

  pairs.py --pairs FILE [--jobs N] [--timeout S] [--out DIR] [REGEX]

FILE is a program that is not part of this repository; `FILE list REGEX --gid G` prints a line
"name | command of the server | command of the client" for each pair, and how many they are.  Ports
from 21000 on stand for free ones.  A row passes if the client ends with status 0, and the server
with 0 or not by itself.  What can't work, and what the programs say then, is in
../not_applicable.txt: a row of it that says something else, or works, is told.

Everything that a pair said is in DIR.  `./dev programs` runs this.  It ends only what it started.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

from programs import GID_INDEX, end, environment, free_port, is_listening, verbena

HERE = os.path.dirname(os.path.abspath(__file__))
RULES = os.path.join(os.path.dirname(HERE), "not_applicable.txt")
PORT = re.compile(r"(?<![\d.])2[1-3]\d{3}(?![\d.])")
SERVER_READY_S, SERVER_END_S = 3, 10

# Who addresses peers by LID needs a port that has one.
NICS = [(re.compile(r"^qperf (?!cm )"), "connectx-6")]

PASSED, FAILED, ABSENT, WRONG_RULE = "passed", "FAILED", "not applicable", "passed, but listed"


class Rule:
    """A line of not_applicable.txt: which rows, what they say, why."""

    def __init__(self, line):
        name, says, self.why = (part.strip() for part in line.split(" | "))
        self.name, self.says = re.compile(name), re.compile(says, re.I | re.S)


def rules_read(path):
    with open(path, encoding="utf-8") as f:
        return [Rule(line) for line in f if line.strip() and not line.startswith("#")]


class Pair:
    def __init__(self, line):
        self.name, self.server, self.client = (part.strip() for part in line.split(" | "))

    def ports_choose(self):
        """The same free port wherever the list has the same number."""
        ports = {}
        for number in PORT.findall(self.server + " " + self.client):
            ports.setdefault(number, str(free_port()))
        self.port = next(iter(ports.values()), None)
        self.server, self.client = (PORT.sub(lambda m: ports[m.group()], command)
                                    for command in (self.server, self.client))

    def group(self):
        """ib_send_bw RC, qperf cm, ucx_perftest uct: what stands together in the table."""
        words = self.name.split()
        has_kind = len(words) > 1 and re.match(r"(RC|UC|UD|XRC|DC|cm|uct)$", words[1])
        return " ".join(words[:2] if has_kind else words[:1])


def pairs_read(path, regex):
    out = subprocess.run([sys.executable, path, "list", regex, "--gid", GID_INDEX], text=True,
                         capture_output=True, check=True).stdout
    return [Pair(line) for line in out.splitlines() if line.count(" | ") == 2]


class Outcome:
    def __init__(self, pair, verdict, why, seconds):
        self.pair, self.verdict, self.why, self.seconds = pair, verdict, why, seconds


class Runner:
    def __init__(self, options):
        self.options = options
        self.rules = rules_read(RULES)
        os.makedirs(options.out, exist_ok=True)

    def start(self, command, changes, log):
        return subprocess.Popen(verbena(*shlex.split(command)), stdin=subprocess.DEVNULL,
                                stdout=log, stderr=subprocess.STDOUT, env=environment(changes))

    @staticmethod
    def wait(process, seconds, otherwise):
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            end(process)
            return otherwise

    @staticmethod
    def server_await(pair, server):
        """Some listen on the port, the others are given a while."""
        until = time.monotonic() + SERVER_READY_S
        while time.monotonic() < until and server.poll() is None:
            if pair.port and is_listening(int(pair.port)):
                return
            time.sleep(0.02)

    def carry_out(self, pair, log):
        """(client's status, server's status)"""
        env = {"VERBENA_FABRIC": "programs-%d-%s" % (os.getpid(), pair.port)}
        env.update({"VERBENA_NIC": nic for name, nic in NICS if name.search(pair.name)})
        log.write("$ %s &\n$ %s\n" % (pair.server, pair.client))
        log.flush()
        server = self.start(pair.server, env, log)
        try:
            self.server_await(pair, server)
            client = self.start(pair.client, env, log)
            status = self.wait(client, self.options.timeout, "no end")
            if status != 0:
                return status, end(server) and "ended"
            return status, self.wait(server, SERVER_END_S, "ended")
        finally:
            if server.poll() is None:
                end(server)

    def judge(self, pair, statuses, said):
        rule = next((r for r in self.rules if r.name.search(pair.name)), None)
        has_passed = statuses[0] == 0 and statuses[1] in (0, "ended")
        if has_passed:
            is_excused = rule and not rule.why.startswith("at times")
            return (WRONG_RULE, rule.why) if is_excused else (PASSED, "")
        if rule and rule.says.search(said):
            return ABSENT, rule.why
        last = [line for line in said.splitlines() if line.strip()][-1:]
        return FAILED, "client %s, server %s: %s" % (*statuses, "".join(last)[:100])

    def run(self, pair):
        missing = [p for p in (pair.server.split()[0], pair.client.split()[0])
                   if not shutil.which(p)]
        if missing:
            return Outcome(pair, ABSENT, "%s is not installed" % missing[0], 0)
        began = time.monotonic()
        pair.ports_choose()
        path = os.path.join(self.options.out, re.sub(r"\W+", "_", pair.name) + ".txt")
        with open(path, "w+", encoding="utf-8", errors="replace") as log:
            statuses = self.carry_out(pair, log)
            log.seek(0)
            said = log.read()
        return Outcome(pair, *self.judge(pair, statuses, said), time.monotonic() - began)


def tell(outcome):
    print("%-19s %-40s %5.1f s  %s" % (outcome.verdict, outcome.pair.name, outcome.seconds,
                                       outcome.why), flush=True)


def table(outcomes):
    """One line a group, as docs/CONFORMANCE.md has it."""
    groups = {}
    for outcome in outcomes:
        groups.setdefault(outcome.pair.group(), []).append(outcome)
    yield "| program | rows | passed | failed | not applicable |"
    yield "|---|---|---|---|---|"
    for name, members in groups.items():
        count = [sum(o.verdict in verdicts for o in members)
                 for verdicts in ((PASSED, WRONG_RULE), (FAILED,), (ABSENT,))]
        yield "| %s | %d | %d | %d | %d |" % (name, len(members), *count)


def reasons(outcomes):
    why = {}
    for outcome in outcomes:
        if outcome.verdict == ABSENT:
            why[outcome.why] = why.get(outcome.why, 0) + 1
    return ["%d not applicable: %s" % (count, text) for text, count in why.items()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", required=True, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=240)
    parser.add_argument("--out", default="build/programs")
    parser.add_argument("regex", nargs="?", default=".")
    options = parser.parse_args()
    runner, outcomes = Runner(options), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(runner.run, pairs_read(options.pairs, options.regex)):
            tell(outcome)
            outcomes.append(outcome)
    failed = sum(o.verdict == FAILED for o in outcomes)
    print("", *table(outcomes), "", *reasons(outcomes), "", sep="\n")
    print("%d passed, %d failed, %d not applicable" % (
        sum(o.verdict in (PASSED, WRONG_RULE) for o in outcomes), failed,
        sum(o.verdict == ABSENT for o in outcomes)))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
