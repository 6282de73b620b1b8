#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures rows of the performance table and prints them, each against a limit of this machine.

Usage: bench.py BUILD_DIRECTORY [--peers DIR] [--markdown] [ROW...]; ./dev bench gives the first.

Every figure is a ratio of two things measured in the same run, because absolute figures differ
from hour to hour on a machine that is shared.  Rows in one thread alternate slices of 0.15 ms of
subject and reference, and the best slices of a round are compared; rows of two processes go back to
back, p50 against p50, and a round in which the core-to-core probe moved by more than a fifth
is dropped.  A row is the median of its rounds' ratios.

With --peers, DIR/bin has d_ucx and d_ofi, which measure UCX and libfabric; without, the rows
against them take the peer's figure from another machine, and say so ("const").

Everything that was measured goes to BUILD_DIRECTORY/bench.json; rows that are not measured this
time stay in it as they were.  The exit status is 0 if every row was measured, whatever it reached.
"""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

PROBE_DRIFT = 0.2
PEER_ROUNDS = 5
OWN_ROUNDS = 9
SPAWNS = 60
DEADLINE_S = 300

# The bar is for subject / reference; for its inverse; for the subject itself.
COST, SPEED, ABSOLUTE = "<=", ">=", "<"


@dataclasses.dataclass
class Round:
    subject: float			# ns, or what the row counts
    reference: float
    probe: float = 0.0			# core to core, before and after
    probe_after: float = 0.0

    def is_steady(self):
        low, high = sorted((self.probe, self.probe_after))
        return high <= low * (1 + PROBE_DRIFT)


@dataclasses.dataclass
class Row:
    id: str
    what: str
    reference: str
    sense: str
    bar: float
    measure: object			# function(Bench) -> [Round]
    unit: str = "time"			# how the values are shown: time, rate, MiB, count
    is_constant: bool = False		# the reference was not measured in this run


class Failed(Exception):
    pass


# --- running things ---------------------------------------------------------

class Bench:
    def __init__(self, build, peers):
        self.verbena = build / "bin/verbena"
        self.program = build / "tests/bench/bench"
        self.post = build / "tests/bench/bench_post"
        self.steer = build / "tests/bench/bench_steer"
        self.own_library = build / "lib/own"
        self.peers = peers
        self.environment = dict(os.environ, VERBENA_FABRIC="bench")
        self.kept_opens = []

    def run(self, command, **variables):
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                                  timeout=DEADLINE_S, env={**self.environment, **variables})
        except subprocess.TimeoutExpired:
            raise Failed("%s: no end after %d s" % (command[-1], DEADLINE_S)) from None
        if done.returncode:
            raise Failed("%s: status %d: %s" % (" ".join(map(str, command[-2:])), done.returncode,
                                                done.stderr.strip()[-300:]))
        return done.stdout

    def subject(self, name):
        return self.run([self.verbena, "run", "--quiet", "--", self.program, name])

    def own(self, name):
        """The same program on our own library, which has the device inside."""
        return self.run([self.program, name], LD_LIBRARY_PATH=str(self.own_library),
                        VERBENA_QUIET="1")

    def rounds(self, name):
        return rounds_in(self.subject(name))

    def infos(self, name):
        return numbers(" ".join(line for line in self.subject(name).splitlines()
                                if line.startswith("info ")))

    def peer(self, program, *arguments, **variables):
        """name -> value of a program that prints "name value unit" lines."""
        out = self.run([self.peers / "bin" / program, *arguments], **variables)
        return {line.split()[0]: float(line.split()[1]) for line in out.splitlines()}

    def opens(self):
        """Each process has one first time, so a round is a process; UCX in turn with it."""
        while len(self.kept_opens) < PEER_ROUNDS:
            theirs = self.peer("d_ucx", "self", UCX_TLS="self") if self.peers else {}
            self.kept_opens.append((self.infos("open"), theirs))
        return self.kept_opens


def numbers(line):
    return {name: float(value) for name, value in re.findall(r"(\w+)=(\S+)", line)}


def rounds_in(out):
    return [Round(**numbers(line)) for line in out.splitlines() if line.startswith("round ")]


# --- how rows are measured --------------------------------------------------

def rounds_of(name):
    return lambda bench: bench.rounds(name)


def send_against_shm(bench):
    """Two programs in turn, so slices can't alternate: the best of each."""
    ours, theirs = [], []
    for _ in range(PEER_ROUNDS):
        theirs.append(bench.peer("d_ofi", "shm", "self")["ofi.shm.self_send_recv_poll2.8B"])
        ours.append(bench.rounds("send_8_alone")[0].subject)
    return [Round(min(ours), min(theirs))]


def steer(name):
    return lambda bench: rounds_in(bench.run([bench.steer, name]))


def own_against_stock(bench):
    """Two libraries can't be in one process; in turn."""
    return [Round(rounds_in(bench.own("write_8_alone"))[0].subject,
                  rounds_in(bench.subject("write_8_alone"))[0].subject)
            for _ in range(OWN_ROUNDS)]


def connect_against(constant_ns):
    def measure(bench):
        theirs = constant_ns
        if bench.peers:
            theirs = min(ucx["ucx.self.ep_create.at16384_us"] for _, ucx in bench.opens()) * 1e3
        return [Round(r.subject, theirs) for r in bench.rounds("connect")]
    return measure


def open_against(which, constant_ns):
    def measure(bench):
        name = "ucx.self.open_%s_us" % which
        return [Round(ours[which], theirs[name] * 1e3 if theirs else constant_ns)
                for ours, theirs in bench.opens()]
    return measure


def spawn_ns(command, environment):
    start = time.perf_counter_ns()
    pid = os.posix_spawn(command[0], command, environment)
    os.waitpid(pid, 0)
    return time.perf_counter_ns() - start


def starts(bench):
    """`verbena run true` less `true`, alternately; the best of each."""
    plain = ["/bin/true"]
    emulated = [str(bench.verbena), "run", "--quiet", "--", "/bin/true"]
    rounds = []
    for _ in range(PEER_ROUNDS):
        both = [(spawn_ns(emulated, bench.environment), spawn_ns(plain, bench.environment))
                for _ in range(SPAWNS)]
        rounds.append(Round(min(a for a, _ in both) - min(b for _, b in both), 0))
    return rounds


# --- the table --------------------------------------------------------------

def rows(peers):
    """The rows and their bars.  Without peers, constants stand for what they gave with --peers on
    the machine of docs/PERFORMANCE.md."""
    return [
        Row("1", "WRITE 8 B in one process: post, execute, poll", "toy NIC, spinlocks", COST, 8,
            rounds_of("write_8")),
        Row("1b", "SEND + receive 8 B in one process, both completions", "libfabric shm to self",
            COST, 1, send_against_shm) if peers else
        Row("1b", "SEND + receive 8 B in one process, both completions",
            "toy NIC's SEND (libfabric shm is 3.3 of it)", COST, 3.3, rounds_of("send_8")),
        Row("2", "WRITE 8 B in batches of 32, one doorbell", "toy NIC", SPEED, 0.15,
            rounds_of("batch"), "rate"),
        Row("3", "WRITE 1 MiB in one process", "memcpy", SPEED, 0.8, rounds_of("write_1m"), "MiB"),
        Row("3b", "WRITE 1 MiB to another process's private memory", "process_vm_writev", SPEED,
            0.7, rounds_of("pair_write_1m"), "MiB"),
        Row("4", "SEND 8 B to another process, half round trip, both poll", "core to core", COST,
            4, rounds_of("pair_send")),
        Row("4b", "WRITE 8 B, the target spins on its memory, half round trip", "core to core",
            COST, 15, rounds_of("pair_write")),
        Row("4c", "READ 8 B of another process, which sleeps", "process_vm_readv 8 B", COST, 2,
            rounds_of("pair_read")),
        Row("4d", "FETCH_ADD in another process, which sleeps", "process_vm_readv 8 B", COST, 2,
            rounds_of("pair_fetch_add")),
        Row("6", "16,384 active QPs in turn, WRITE 8 B", "one QP alone", COST, 3,
            rounds_of("round_robin")),
        Row("6b", "16,384 active QPs at random, WRITE 8 B", "one QP alone", COST, 12,
            rounds_of("random")),
        Row("6c", "one active QP among 16,383 idle ones", "one QP alone", COST, 1.15,
            rounds_of("idle")),
        Row("6d", "create and connect a QP beside 16,384", "UCX self endpoint", COST, 6,
            connect_against(6e3), is_constant=not peers),
        Row("7", "register and deregister 4 KiB", "5 us", ABSOLUTE, 5e3, rounds_of("register")),
        Row("7b", "register and deregister 64 MiB", "the same, 4 KiB", COST, 2,
            rounds_of("register_large")),
        Row("8", "list, open, close a device: the first time", "UCX self, first", COST, 1,
            open_against("first", 2.2e6), is_constant=not peers),
        Row("8b", "list, open, close a device: again", "UCX self, again", COST, 1,
            open_against("again", 0.64e6), is_constant=not peers),
        Row("10", "completion channel, half round trip", "eventfd", COST, 1.3,
            rounds_of("event")),
        Row("10b", "sleeps and wake-ups a message, channel not armed", "0.05", ABSOLUTE, 0.05,
            rounds_of("unarmed"), "count"),
        Row("11", "SEND 8 B, four polling threads on two CPUs, half round trip",
            "engine threads that yield", COST, 1.5, rounds_of("crowd")),
        Row("12", "WRITE 8 B in one process on our library: post, execute, poll",
            "the same on libmlx5", COST, 1, own_against_stock),
        Row("12b", "ibv_post_send() of our library, 8 B inline, no device behind it", "60 ns",
            ABSOLUTE, 60, lambda bench: rounds_in(bench.run([bench.post]))),
        Row("13", "the rule of a frame among 100,000, its key at hand", "among 100", COST, 2,
            steer("key")),
        Row("13b", "the rule of a frame among 100,000, from its bytes on", "among 100", COST, 2,
            steer("frame")),
        Row("13c", "as 13b, the time itself", "200 ns", ABSOLUTE, 200, steer("frame")),
        Row("13d", "as 13, not seen coming, the time itself", "200 ns", ABSOLUTE, 200,
            steer("alone")),
        Row("13e", "a frame from QP to QP, its rule among 100,000: post, execute, poll",
            "among 100", COST, 2, rounds_of("frame")),
        Row("run", "`verbena run true` less `true`", "15 ms", ABSOLUTE, 15e6, starts),
    ]


def ratio_of(row, r):
    if row.sense == COST:
        return r.subject / r.reference
    return r.reference / r.subject if row.sense == SPEED else r.subject


def is_reached(row, ratio):
    return ratio >= row.bar if row.sense == SPEED else ratio <= row.bar


def summarize(row, rounds):
    """What is told of a row.  Rounds on a machine that moved do not count, unless there are
    no others."""
    kept = [r for r in rounds if r.is_steady()]
    used = kept or rounds
    ratio = statistics.median(ratio_of(row, r) for r in used)
    return {
        "id": row.id, "what": row.what, "against": row.reference,
        "subject": statistics.median(r.subject for r in used),
        "reference": statistics.median(r.reference for r in used),
        "unit": row.unit, "ratio": ratio, "sense": row.sense, "bar": row.bar,
        "reached": is_reached(row, ratio), "constant_reference": row.is_constant,
        "rounds_kept": len(kept), "rounds": [dataclasses.asdict(r) for r in rounds],
    }


# --- words ------------------------------------------------------------------

def time_words(ns):
    for limit, divisor, unit in ((1e3, 1, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if ns < limit:
            return "%.3g %s" % (ns / divisor, unit)
    return "%.3g s" % (ns / 1e9)


WORDS = {
    "time": time_words,
    "rate": lambda ns: "%.1f M/s" % (1e3 / ns),
    "MiB": lambda ns: "%.1f GB/s" % (1048576 / ns),
    "count": lambda n: "%.3f" % n,
}


def cells(told):
    words = WORDS[told["unit"]]
    is_ratio = told["sense"] != ABSOLUTE
    verdict = "yes" if told["reached"] else "NO"
    if not told["rounds_kept"]:
        verdict += ", unsteady"
    if told["constant_reference"]:
        verdict += ", const"
    return [told["id"], told["what"], words(told["subject"]), told["against"],
            words(told["reference"]) if is_ratio else "",
            "%.2f" % told["ratio"] if is_ratio else "",
            "%s %s" % (told["sense"], ("%g" % told["bar"]) if is_ratio else words(told["bar"])),
            verdict, "%d/%d" % (told["rounds_kept"], len(told["rounds"]))]


HEADINGS = ["row", "what", "subject", "against", "reference", "ratio", "bar", "reached", "rounds"]
WIDTHS = [4, 64, 10, 42, 10, 7, 9, 12, 6]


def print_line(values, is_markdown):
    if is_markdown:
        print("| %s |" % " | ".join(values), flush=True)
    else:
        print("  ".join(v.ljust(w) for v, w in zip(values, WIDTHS)).rstrip(), flush=True)


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "cpu": cpu[1] if cpu else platform.machine(), "cpus": os.cpu_count(),
        "kernel": platform.release(), "commit": output_of("git", "rev-parse", "--short", "HEAD"),
        "libmlx5": output_of("dpkg-query", "-W", "-f", "${Version}", "ibverbs-providers"),
    }


# --- the program ------------------------------------------------------------

def choose(table, wanted):
    unknown = set(wanted) - {row.id for row in table}
    if unknown:
        sys.exit("bench: no row is called %s; there are %s"
                 % (" ".join(sorted(unknown)), " ".join(row.id for row in table)))
    return [row for row in table if not wanted or row.id in wanted]


def save(path, told):
    try:
        known = {row["id"]: row for row in json.loads(path.read_text())["rows"]}
    except (OSError, ValueError, KeyError):
        known = {}
    known.update({row["id"]: row for row in told})
    path.write_text(json.dumps({"rows": list(known.values())}, indent=1) + "\n")


def measure(bench, row):
    before = os.getloadavg()[0]
    told = summarize(row, row.measure(bench))
    told.update(machine(), load=[before, os.getloadavg()[0]],
                when=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"))
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--peers", type=pathlib.Path, help="a folder with bin/d_ucx and bin/d_ofi")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("row", nargs="*", help="all rows if none is named")
    options = parser.parse_args()
    chosen = choose(rows(options.peers), options.row)
    bench = Bench(options.build.resolve(), options.peers)
    told, failures = [], 0
    print("%(cpu)s, %(cpus)d CPUs, Linux %(kernel)s, libmlx5 %(libmlx5)s, " % machine() +
          "load %.1f" % os.getloadavg()[0], end="\n\n")
    print_line(HEADINGS, options.markdown)
    if options.markdown:
        print_line(["---"] * len(HEADINGS), True)
    for row in chosen:
        try:
            told.append(measure(bench, row))
            print_line(cells(told[-1]), options.markdown)
        except Failed as failure:
            failures += 1
            print_line([row.id, row.what, "FAILED: %s" % failure], options.markdown)
    save(options.build / "bench.json", told)
    print("\n%d rows, %d reached, %d not measured; load %.1f at the end; %s"
          % (len(chosen), sum(row["reached"] for row in told), failures, os.getloadavg()[0],
             options.build / "bench.json"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
