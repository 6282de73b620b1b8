#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Let the test suite of rdma-core judge this device, and say why what does not pass does not.

The judge is the folder tests/ of an rdma-core checkout of the version that is installed (44);
it is not part of this repository.  Its tests run on Debian's python3-pyverbs and the emulated
NIC, each test class in a process of its own: a test that crashes or hangs costs that test only,
and the rest of its class goes on in the next process.

    python3 tests/conformance/pyverbs.py --rdma-core DIR [--verbena BIN] [--lane own]
        [--module REGEX]

What is skipped or fails needs a line in pyverbs_reasons.txt.  Anything without a reason is a
problem, and so is, in a complete run of the default profile, a line that explains nothing any
more.  It is run by hand; with --json and --markdown it writes down what it found.
"""
import argparse
import collections
import importlib
import json
import os
import pathlib
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
REASONS = HERE / "pyverbs_reasons.txt"
DEFAULT_PROFILE = "connectx-6dx"
# Index 3 is RoCE v2 over IPv4; an InfiniBand port has one GID.
PROFILE_GID = collections.defaultdict(lambda: 3, {"connectx-6": 0})
KINDS = {
    "as-hardware": "a ConnectX without that capability skips too",
    "later": "not built yet",
    "environment": "this machine lacks it",
    "deliberate": "does something else here on purpose",
}
# Whose libibverbs and libmlx5 pyverbs gets.
LANES = {"stock": (), "own": ("--own",)}
OUTCOMES = ("passed", "skipped", "failed")

Test = collections.namedtuple("Test", "id outcome text")
Rule = collections.namedtuple("Rule", "reason outcome profile test text line")
Reason = collections.namedtuple("Reason", "kind text")


# --- inside: the process that runs the tests, under verbena ---

class Reporter(unittest.TestResult):
    """Tells the process outside what happens, at once, one line of JSON an event."""

    def __init__(self, pipe, seed):
        super().__init__()
        self.pipe, self.seed = pipe, seed

    def tell(self, *event):
        self.pipe.write(json.dumps(event) + "\n")
        self.pipe.flush()

    def startTest(self, test):
        super().startTest(test)
        self.tell("start", id_of(test))
        # The suite draws sizes and flags; the same seed draws the same ones.
        random.seed("%s %s" % (self.seed, test.id()))

    def addSuccess(self, test):
        self.tell("passed", id_of(test), "")

    def addSkip(self, test, reason):
        self.tell("skipped", id_of(test), reason)

    def addError(self, test, err):
        self.tell("failed", id_of(test), self._exc_info_to_string(err, test))

    addFailure = addError


def id_of(test):
    return test.id().removeprefix("tests.")


def module_load(name):
    # The modules that they share import each other, which works in this order only.
    importlib.import_module("tests.utils")
    return unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module("tests." + name))


def flatten(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from flatten(part)
        else:
            yield part


def names_list(pipe, folder):
    for path in sorted(folder.glob("test_*.py")):
        try:
            names = [id_of(test) for test in flatten(module_load(path.stem))]
        except Exception as problem:
            names = []
            pipe.write(json.dumps(("unloadable", path.stem, repr(problem))) + "\n")
        pipe.write(json.dumps(("module", path.stem, names)) + "\n")


def names_run(pipe, wanted, seed):
    module = wanted[0].partition(".")[0]
    tests = {id_of(test): test for test in flatten(module_load(module))}
    # A suite calls the fixtures of classes too, and forgets each test that it ran: what that
    # test held goes now, while Python still works, and not at the exit.
    suite = unittest.TestSuite(tests.pop(name) for name in wanted)
    reporter = Reporter(pipe, seed)
    suite.run(reporter)
    reporter.tell("done")


def inside(order):
    """Does what the JSON in @order says.  The suite expects to be a package called tests."""
    order = json.loads(order)
    folder = pathlib.Path(order["folder"])
    sys.path.append(str(folder))
    package = types.ModuleType("tests")
    package.__path__ = [str(folder)]
    sys.modules["tests"] = package
    sys.argv[1:] = order["arguments"]
    importlib.import_module("args_parser").parser.parse_args()
    with open(order["pipe"], "w", closefd=False) as pipe:
        if order["run"]:
            names_run(pipe, order["run"], order["seed"])
        else:
            names_list(pipe, folder)


# --- outside: processes and what they tell ---

class Process:
    """One process of the suite.  Iterating yields its events; it is gone when that ends."""

    def __init__(self, args, run=()):
        reader, writer = os.pipe()
        order = {"folder": str(args.rdma_core / "tests"), "pipe": writer, "run": list(run),
                 "seed": args.seed, "arguments": ["--dev", args.dev, "--port", str(args.port),
                                                  "--gid", str(args.gid)]}
        # -I: this file is called pyverbs too, and must not be found by an import.
        command = [args.verbena, "run", *LANES[args.lane], "--quiet", "--nic", args.profile,
                   "--fabric", "pyverbs-%d" % os.getpid(), "--", args.python, "-I", __file__,
                   "inside", json.dumps(order)]
        self.output = tempfile.TemporaryFile()
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output,
                                      stderr=subprocess.STDOUT, pass_fds=[writer],
                                      start_new_session=True)
        os.close(writer)
        self.reader, self.timeout_s = reader, args.timeout
        self.is_hung = False

    def lines(self):
        """What arrives, until the pipe ends or nothing has arrived for too long."""
        rest = b""
        while True:
            ready, _, _ = select.select([self.reader], [], [], self.timeout_s)
            chunk = os.read(self.reader, 1 << 16) if ready else b""
            if not chunk:
                self.is_hung = not ready
                return
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole

    def __iter__(self):
        for line in self.lines():
            event = json.loads(line)
            if event[0] == "done":
                break
            yield event
        os.close(self.reader)
        self.status = self.end()

    def end(self):
        """Waits for the process and ends what it left behind; its status as a word."""
        try:
            status = None if self.is_hung else self.child.wait(self.timeout_s)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()
        if status is None:
            return "hung for %g s" % self.timeout_s
        if status < 0:
            return "died of %s" % signal.Signals(-status).name
        return "ended with %d" % status if status else ""

    def tail(self):
        self.output.seek(0)
        return "".join("\n" + line for line in
                       self.output.read().decode(errors="replace").splitlines()[-20:])


def class_of(test_id):
    return test_id.rpartition(".")[0]


def tests_list(args):
    """(modules, tests that stand for modules that can't be loaded)."""
    modules, broken = {}, []
    process = Process(args)
    for kind, name, what in process:
        if kind == "module":
            modules[name] = what
        else:
            broken.append(Test(name + ".(load)", "failed", what))
    if process.status or not modules:
        sys.exit("the tests can't be listed: %s%s" % (process.status or "none", process.tail()))
    return modules, broken


def wanted_by_class(args, modules):
    """Lists of the IDs to run, a list for each class."""
    classes = collections.defaultdict(list)
    for module, names in modules.items():
        for name in names:
            if args.module.search(module) and args.test.search(name):
                classes[class_of(name)].append(name)
    return list(classes.values())


def class_run(args, names):
    """Runs one class, in as many processes as its crashes need."""
    left = list(names)
    while left:
        process, current = Process(args, left), None
        for event in process:
            if event[0] == "start":
                current = event[1]
                continue
            outcome, name, text = event
            # What a fixture of a class reports stands for all tests of that class.
            for each in [name] if name in left else list(left):
                left.remove(each)
                yield Test(each, outcome, text)
            current = None
        if process.status:
            text = process.status + process.tail()
            if current in left:
                left.remove(current)
                yield Test(current, "failed", text)
                continue
            yield Test(class_of(names[0]) + ".(at exit)", "failed", text)
            if len(left) == len(names):
                return
        elif left:
            yield from (Test(name, "failed", "was not run") for name in left)
            return


# --- the reasons ---

class Reasons:
    """What pyverbs_reasons.txt says, and how often each line was needed."""

    def __init__(self, path):
        self.reasons, self.rules, self.uses = {}, [], collections.Counter()
        part = profile = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            heading = re.fullmatch(r"\[(\w+)(?: ([\w-]+))?\]", line)
            if heading:
                part, profile = heading.groups()
                continue
            try:
                self.add(part, profile, number, [field.strip() for field in line.split(" | ")])
            except (ValueError, KeyError, re.error) as problem:
                sys.exit("%s:%d: %s" % (path.name, number, problem))

    def add(self, part, profile, number, fields):
        if part == "reasons":
            name, kind, text = fields
            if kind not in KINDS:
                raise ValueError("no such kind: " + kind)
            self.reasons[name] = Reason(kind, text)
        elif part in OUTCOMES:
            name, test, text = fields
            self.reasons[name]
            self.rules.append(Rule(name, part, profile, re.compile(test), re.compile(text, re.S),
                                   number))
        else:
            raise ValueError("outside of a part")

    def explain(self, test, profile):
        """The name of the reason for an outcome, or None."""
        for rule in self.rules:
            if (rule.outcome == test.outcome and rule.profile in (None, profile) and
                    rule.test.fullmatch(test.id) and rule.text.search(test.text)):
                self.uses[rule] += 1
                return rule.reason
        return None

    def unused(self):
        return [rule for rule in self.rules if rule.profile is None and not self.uses[rule]]


# --- the report ---

class Report:
    def __init__(self, reasons, profile):
        self.reasons, self.profile = reasons, profile
        self.rows = []          # (test, reason)
        self.unexplained = collections.defaultdict(list)

    def add(self, test):
        reason = None
        if test.outcome != "passed":
            reason = self.reasons.explain(test, self.profile)
            if not reason:
                self.problem(test)
        self.rows.append((test, reason))

    def problem(self, test):
        last = (test.text.strip().splitlines() or [""])[-1]
        self.unexplained[test.outcome, last].append(test.id)
        if test.outcome == "failed":
            print("FAILED %s\n    %s" % (test.id, test.text.strip().replace("\n", "\n    ")))

    def kind_of(self, reason):
        return self.reasons.reasons[reason].kind if reason else "no reason"

    def modules(self):
        """Module -> number of passed, skipped and failed tests, in this order of OUTCOMES."""
        counts = {}
        for test, _ in self.rows:
            row = counts.setdefault(test.id.partition(".")[0], dict.fromkeys(OUTCOMES, 0))
            row[test.outcome] += 1
        return counts

    def why(self, module):
        """Reason -> number of tests of @module, or of all."""
        return collections.Counter(
            reason or "NO REASON" for test, reason in self.rows
            if test.outcome != "passed" and module in (None, test.id.partition(".")[0]))

    def totals(self):
        """(outcome, kind) -> number of tests."""
        return collections.Counter(
            (test.outcome, self.kind_of(reason) if test.outcome != "passed" else "")
            for test, reason in self.rows)

    def summary(self):
        totals = self.totals()
        parts = ["%d tests" % len(self.rows)]
        for outcome in OUTCOMES:
            kinds = {kind: n for (o, kind), n in sorted(totals.items()) if o == outcome and kind}
            number = sum(n for (o, _), n in totals.items() if o == outcome)
            parts.append("%d %s%s" % (number, outcome, " (%s)" % ", ".join(
                "%d %s" % (n, kind) for kind, n in kinds.items()) if kinds else ""))
        return ", ".join(parts)

    def table(self):
        yield "%-24s %6s %7s %6s  why not" % ("module", *OUTCOMES)
        for module, row in self.modules().items():
            yield "%-24s %6d %7d %6d  %s" % (
                module, *(row[outcome] for outcome in OUTCOMES),
                ", ".join("%d %s" % (n, name) for name, n in self.why(module).most_common()))
        yield "\nreason            kind         tests"
        for name, number in self.why(None).most_common():
            reason = self.reasons.reasons.get(name, Reason("", ""))
            yield "%-17s %-12s %5d  %s" % (name, reason.kind, number, reason.text)

    def markdown(self):
        yield "| module | passed | skipped | failed | why not |\n|---|---|---|---|---|"
        for module, row in self.modules().items():
            yield "| %s | %d | %d | %d | %s |" % (
                module, *(row[outcome] for outcome in OUTCOMES),
                ", ".join("%s %d" % item for item in self.why(module).most_common()))
        yield "\n| reason | kind | tests | |\n|---|---|---|---|"
        for name, number in self.why(None).most_common():
            reason = self.reasons.reasons.get(name, Reason("", ""))
            yield "| %s | %s | %d | %s |" % (name, reason.kind, number, reason.text)
        yield "\n" + self.summary()

    def write(self, args):
        if args.json:
            rows = [dict(test._asdict(), reason=reason, kind=self.kind_of(reason))
                    if test.outcome != "passed" else {"id": test.id, "outcome": test.outcome}
                    for test, reason in self.rows]
            args.json.write_text(json.dumps({"profile": args.profile, "seed": args.seed,
                                             "tests": rows}, indent=1) + "\n")
        if args.markdown:
            args.markdown.write_text("\n".join(self.markdown()) + "\n")

    def problems(self, is_complete):
        for (outcome, text), names in self.unexplained.items():
            yield "%d %s without a reason: %s\n    %s" % (
                len(names), outcome, text, "\n    ".join(names))
        for rule in self.reasons.unused() if is_complete else ():
            yield "line %d of %s explains nothing any more: %s" % (
                rule.line, REASONS.name, rule.reason)

    def end(self, is_complete):
        print("\n".join(self.table()))
        print("\n" + self.summary())
        problems = list(self.problems(is_complete))
        for problem in problems:
            print("PROBLEM: %s" % problem)
        return 1 if problems else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rdma-core", required=True, type=pathlib.Path, metavar="DIR",
                        help="checkout of rdma-core; only its tests/ is used")
    parser.add_argument("--verbena", default=os.environ.get("VERBENA_BIN", "verbena"),
                        metavar="BIN")
    parser.add_argument("--python", default="/usr/bin/python3", metavar="BIN",
                        help="the Python that has pyverbs")
    parser.add_argument("--lane", choices=LANES, default="stock",
                        help="whose verbs library: the system's (stock) or ours (own)")
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="adapter to be")
    parser.add_argument("--module", default="", type=re.compile, metavar="REGEX",
                        help="only modules whose name matches, like 'test_qp'")
    parser.add_argument("--test", default="", type=re.compile, metavar="REGEX",
                        help="only tests whose module.Class.name matches")
    parser.add_argument("--dev", default="mlx5_0")
    parser.add_argument("--port", default=1, type=int)
    parser.add_argument("--gid", type=int, help="GID index (RoCE: 3)")
    parser.add_argument("--timeout", default=60, type=float, metavar="SECONDS",
                        help="longest silence of a test (default 60)")
    parser.add_argument("--seed", default=1, type=int, help="for what the tests draw")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    args.rdma_core = args.rdma_core.resolve()
    if args.gid is None:
        args.gid = PROFILE_GID[args.profile]
    return args


def main():
    if sys.argv[1:2] == ["inside"]:
        return inside(sys.argv[2])
    args = arguments()
    report = Report(Reasons(REASONS), args.profile)
    start = time.monotonic()
    modules, broken = tests_list(args)
    for test in broken:
        report.add(test)
    for names in wanted_by_class(args, modules):
        for test in class_run(args, names):
            report.add(test)
    report.write(args)
    is_complete = (not args.module.pattern and not args.test.pattern and
                   args.profile == DEFAULT_PROFILE)
    status = report.end(is_complete)
    print("profile %s, seed %d, %.0f s" % (args.profile, args.seed, time.monotonic() - start))
    return status


if __name__ == "__main__":
    sys.exit(main())
