#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hold this device against what a real kernel RDMA device was seen to do, row by row.

The oracle is a set of probe programs, each of which prints lines "row | outcome", and a
document whose section 7 tabulates what Soft-RoCE answered (columns: row, Linux 6.1, Linux
6.12 or "=", remark).  Neither is part of this repository.  This script builds the probes,
runs them on the emulated NIC, and prints every row where we differ, with the reason that
probes_reasons.txt gives for it.  A difference without a reason is a failure, and so is a
reason that explains nothing any more.

    python3 tests/conformance/probes.py --probes DIR --oracle FILE [--verbena BIN]

It is run by hand, and writes only into a temporary folder.  A probe whose object can't be
created here goes on with a null pointer, and some restart their last row for ever after the
crash; two rows of another would take the host's network down.  EDITS cuts exactly that out
of the copies that are built.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
REASONS = HERE / "probes_reasons.txt"
DEADLINE_S = 180
OUTPUT_BYTES_MAX = 1 << 20
NOT_RUN = "(not run)"

# Which program prints the rows below which heading of the oracle.
PROBES = {
    "Completions": "p_wc", "Posting": "p_post", "modify_qp": "p_qp",
    "Resources": "p_res", "Memory windows": "p_mw", "CQ, notification": "p_cq",
}

# Program -> (pattern, what stands there instead, why).  Each must fit exactly once.
EDITS = {
    "p_cq": [
        (r'(?ms)^ *PROBE\("events: port down.*?^ *return 0;', "return 0;",
         "the last three rows run ip and rdma, which are for the guest's network only"),
    ],
}

Row = collections.namedtuple("Row", "probe name old new remark")
Rewrite = collections.namedtuple("Rewrite", "reason pattern to")
Rule = collections.namedtuple("Rule", "reason name outcome")
Must = collections.namedtuple("Must", "has needs")


# --- the oracle ---

def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def oracle_read(path):
    """The rows of section 7."""
    text = path.read_text(encoding="utf-8")
    section = re.search(r"(?ms)^## 7\..*?(?=^## |\Z)", text)
    if not section:
        sys.exit("%s: no section 7" % path)
    rows, probe = [], None
    for line in section.group().splitlines():
        if line.startswith("### "):
            probe = next((p for head, p in PROBES.items() if line[4:].startswith(head)), None)
        elif line.startswith("| ") and not re.match(r"\| (probe|---) ", line):
            name, old, new, *rest = cells_of(line) + [""]
            rows.append(Row(probe, name, old, old if new == "=" else new, rest[0]))
    return rows


# --- the probes ---

def source_edit(probe, text):
    for pattern, to, _ in EDITS.get(probe, ()):
        text, count = re.subn(pattern, lambda _, to=to: to, text)
        if count != 1:
            sys.exit("%s.c: an edit fits %d times, not once: %s" % (probe, count, pattern))
    return text


def build(folder, work):
    for header in folder.glob("*.h"):
        shutil.copy(header, work)
    for probe in PROBES.values():
        source = work / (probe + ".c")
        source.write_text(source_edit(probe, (folder / source.name).read_text()))
        subprocess.run(["cc", "-O1", "-w", "-o", str(work / probe), str(source), "-libverbs"],
                       check=True)


def run(probe, work, args):
    """The rows a probe prints, in order: [name, outcome]."""
    command = [args.verbena, "run", "--quiet", "--fabric", "probes-%d" % os.getpid(), "--",
               str(work / probe)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             env=dict(os.environ, GX=str(args.gid)))
    deadline = threading.Timer(DEADLINE_S, child.kill)
    deadline.start()
    out = child.stdout.read(OUTPUT_BYTES_MAX)
    if len(out) == OUTPUT_BYTES_MAX:
        child.kill()
    status = child.wait()
    deadline.cancel()
    if args.keep:
        (args.keep / (probe + ".out")).write_bytes(out)
    if status != 0:
        sys.exit("%s: ended with %d after %d bytes of output: it crashed, or hung for %d s" % (
            probe, status, len(out), DEADLINE_S))
    return [[part.strip() for part in line.partition(" |")[::2]]
            for line in out.decode(errors="replace").splitlines()]


# --- the reasons ---

class Reasons:
    """What probes_reasons.txt says, and how often each line was needed."""

    def __init__(self, path):
        self.texts, self.rewrites, self.rules, self.musts = {}, [], [], []
        self.uses = collections.Counter()
        part = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            heading = re.fullmatch(r"\[(\w+)\]", line)
            if heading:
                part = heading.group(1)
                continue
            try:
                self.add(part, [field.strip() for field in line.split(" | ")])
            except (ValueError, re.error) as problem:
                sys.exit("%s:%d: %s" % (path.name, number, problem))
        for use in self.rewrites + self.rules:
            if use.reason not in self.texts:
                sys.exit("%s: no text for the reason %s" % (path.name, use.reason))

    def add(self, part, fields):
        if part == "reasons":
            name, text = fields
            self.texts[name] = text
        elif part == "rewrites":
            name, pattern, to = fields
            self.rewrites.append(Rewrite(name, re.compile(pattern), to))
        elif part == "rows":
            name, row, outcome = fields
            self.rules.append(Rule(name, re.compile(row), re.compile(outcome)))
        elif part == "must":
            self.musts.append(Must(*map(re.compile, fields)))
        else:
            raise ValueError("outside of a part")

    def explain(self, row, ours):
        """(reasons of this difference, what is left of it), [] if there is none."""
        found = []
        for rewrite in self.rewrites:
            changed = rewrite.pattern.sub(rewrite.to, ours)
            if changed != ours:
                found.append(rewrite)
                ours = changed
        if ours not in (row.old, row.new):
            rule = next((r for r in self.rules
                         if r.name.fullmatch(row.name) and r.outcome.fullmatch(ours)), None)
            if not rule:
                return [], ours
            found.append(rule)
        self.uses.update(found)
        return sorted({f.reason for f in found}), ours

    def broken(self, ours):
        """What @ours would need and does not have."""
        return [m.needs.pattern for m in self.musts
                if m.has.search(ours) and not m.needs.search(ours)]

    def unused(self):
        return [use for use in self.rewrites + self.rules if not self.uses[use]]


# --- the comparison ---

def outcome_take(printed, name):
    """The first outcome printed under @name, which is used up; NOT_RUN if there is none."""
    for at, (its_name, outcome) in enumerate(printed):
        if its_name == name:
            del printed[at]
            return outcome
    return NOT_RUN


class Report:
    def __init__(self, reasons):
        self.reasons = reasons
        self.rows = self.same = self.same_new = self.explained = 0
        self.counts = collections.Counter()
        self.problems = []

    def row(self, row, ours):
        self.rows += 1
        for needs in self.reasons.broken(ours):
            self.problems.append("lacks %s: %s: %s: %s" % (needs, row.probe, row.name, ours))
        if ours in (row.old, row.new):
            self.same += 1
            self.same_new += ours != row.old
            return
        found, left = self.reasons.explain(row, ours)
        self.counts.update(found)
        self.explained += bool(found)
        print("%-7s %-24s %s" % (row.probe, ",".join(found) or "NO REASON", row.name))
        if not found:
            self.problems.append("no reason: %s: %s" % (row.probe, row.name))
            print("    rxe   %s" % row.old)
            if row.new != row.old:
                print("    6.12  %s" % row.new)
            print("    ours  %s\n    left  %s" % (ours, left))
            if row.remark:
                print("    remark: %s" % row.remark)

    def end(self):
        for use in self.reasons.unused():
            self.problems.append("a reason explains nothing: %s, %s" % (
                use.reason, (use.pattern if isinstance(use, Rewrite) else use.name).pattern))
        print("\nreason                   rows  (a row can have several)")
        for name, text in self.reasons.texts.items():
            print("%-24s %4d  %s" % (name, self.counts[name], text))
        print("\n%d rows: %d the same (%d of them as Linux 6.12 only), %d differ for a reason, "
              "%d without" % (self.rows, self.same, self.same_new, self.explained,
                              self.rows - self.same - self.explained))
        for problem in self.problems:
            print("PROBLEM: %s" % problem)
        return 1 if self.problems else 0


def compare(rows, printed, report):
    for row in rows:
        if row.probe:
            report.row(row, outcome_take(printed[row.probe], row.name))
    for probe, rest in printed.items():
        for name, _ in rest:
            report.problems.append("not in the oracle: %s: %s" % (probe, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probes", required=True, type=pathlib.Path, metavar="DIR",
                        help="folder of p_*.c and probe.h")
    parser.add_argument("--oracle", required=True, type=pathlib.Path, metavar="FILE",
                        help="the document with the table")
    parser.add_argument("--verbena", default=os.environ.get("VERBENA_BIN", "verbena"),
                        metavar="BIN")
    parser.add_argument("--gid", default=3, type=int, help="GID index (default 3)")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="copy what the probes printed to here")
    args = parser.parse_args()
    reasons = Reasons(REASONS)
    rows = oracle_read(args.oracle)
    with tempfile.TemporaryDirectory(prefix="probes-") as name:
        work = pathlib.Path(name)
        build(args.probes, work)
        printed = {probe: run(probe, work, args) for probe in PROBES.values()}
    report = Report(reasons)
    compare(rows, printed, report)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
