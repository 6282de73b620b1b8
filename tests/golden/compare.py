#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what libmlx5 and our library write and ask for, when a program does the same with both.

Usage: compare.py BUILD [--list].  golden_record runs twice on a new device: on the system's
libraries, and on ours with the kernel's interface, which the shim answers.  It leaves files: the
bytes of work requests, tables of doorbell records and registers, and the commands.  What differs
is told as facts, such as

    wqe SEND unit 0 bytes 12-15: left -> zero
    commands cq: CQ.CREATE 0x1: 0000001f -> 00000010

and each must be matched by a line of differences.txt, which says why; a line that matches nothing
is a failure, too.  With --list the facts are printed and nothing is judged.  The exit status is 0
or 1, or 77 if the system's libmlx5 is another than the one that differences.txt is about.
"""
import collections
import difflib
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIBRARY_VERSION = ".1.24.44.0"
POISON = "a5"

# --- work requests --------------------------------------------------------------------------


def words_of(path):
    """The bytes of a .hex file in pieces of 16, or what it says instead."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return [line if line.startswith("refused") else line.replace(" ", "") for line in lines]


def shown(text):
    pairs = {text[i:i + 2] for i in range(0, len(text), 2)}
    return "left" if pairs == {POISON} else "zero" if pairs == {"00"} else text


def runs(ours, theirs):
    """(first byte, last byte) of where two texts of hexadecimal differ; kinds are kept apart."""
    different, last = [], None
    for at in range(0, min(len(ours), len(theirs)), 2):
        kind = None
        if ours[at:at + 2] != theirs[at:at + 2]:
            kind = theirs[at:at + 2] == POISON, ours[at:at + 2] == "00"
        if kind and kind == last:
            different[-1][1] = at // 2
        elif kind:
            different.append([at // 2, at // 2])
        last = kind
    return different


def compare_wqe(folder, name, theirs, ours):
    """The name of a receive says little; that of a send is its opcode."""
    a, b = words_of(theirs), words_of(ours)
    what = theirs.with_suffix(".txt").read_text().split()[0] if folder.startswith("wqe") else name
    if a and b and (a[0].startswith("refused") or b[0].startswith("refused")):
        if a != b:
            posted = [words[0] if words[0].startswith("refused") else "posted" for words in (a, b)]
            yield "%s %s: %s -> %s" % (folder, name, *posted)
        return
    if len(a) != len(b):
        yield "%s %s: %d units -> %d" % (folder, name, len(a), len(b))
    for unit, (one, other) in enumerate(zip(a, b)):
        for first, last in runs(other, one):
            part = slice(2 * first, 2 * last + 2)
            yield "%s %s unit %d bytes %d-%d: %s -> %s" % (
                folder, what, unit, first, last, shown(one[part]), shown(other[part]))


# --- tables ---------------------------------------------------------------------------------


def rows_of(path):
    """{request: what was found}, of a table whose rows are `request and so on | found`."""
    rows = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            asked, found = line.split(" | ")
            rows[asked] = found
    return rows


def compare_table(folder, name, theirs, ours):
    """Of a register only how it was rung: the bytes are those of the request."""
    a, b = rows_of(theirs), rows_of(ours)
    for asked in list(dict.fromkeys([*a, *b])):
        one, other = a.get(asked, "none"), b.get(asked, "none")
        if one == other:
            continue
        if folder == "uar" and "none" not in (one, other) and one.split()[2] == other.split()[2]:
            for what, x, y in zip(("register", "bytes"), one.split(), other.split()):
                if x != y:
                    yield "uar %s: %s %s -> %s" % (asked.split()[0], what, x, y)
        else:
            yield "%s/%s %s: %s -> %s" % (folder, name, asked.split()[0], one, other)


# --- commands -------------------------------------------------------------------------------

OBJECTS = ("DEVICE PD COMP_CHANNEL CQ QP SRQ AH MR MW FLOW XRCD RWQ_IND_TBL WQ FLOW_ACTION DM "
           "COUNTERS ASYNC_EVENT").split()
METHODS = {"DEVICE": "INVOKE_WRITE INFO_HANDLES QUERY_PORT GET_CONTEXT QUERY_CONTEXT "
                     "QUERY_GID_TABLE QUERY_GID_ENTRY",
           "CQ": "CREATE DESTROY", "QP": "CREATE DESTROY", "SRQ": "CREATE DESTROY",
           "WQ": "CREATE DESTROY", "DM": "ALLOC FREE", "COUNTERS": "CREATE DESTROY READ",
           "MR": "DM_MR_REG DESTROY ADVISE QUERY REG_DMABUF", "ASYNC_EVENT": "ALLOC",
           "PD": "DESTROY", "MW": "DESTROY", "XRCD": "DESTROY", "AH": "DESTROY",
           "RWQ_IND_TBL": "DESTROY", "FLOW": "DESTROY",
           "FLOW_ACTION": "ESP_CREATE DESTROY ESP_MODIFY"}
WRITES = ("GET_CONTEXT QUERY_DEVICE QUERY_PORT ALLOC_PD DEALLOC_PD CREATE_AH MODIFY_AH QUERY_AH "
          "DESTROY_AH REG_MR REG_SMR REREG_MR QUERY_MR DEREG_MR ALLOC_MW BIND_MW DEALLOC_MW "
          "CREATE_COMP_CHANNEL CREATE_CQ RESIZE_CQ DESTROY_CQ POLL_CQ PEEK_CQ REQ_NOTIFY_CQ "
          "CREATE_QP QUERY_QP MODIFY_QP DESTROY_QP POST_SEND POST_RECV ATTACH_MCAST DETACH_MCAST "
          "CREATE_SRQ MODIFY_SRQ QUERY_SRQ DESTROY_SRQ POST_SRQ_RECV OPEN_XRCD CLOSE_XRCD "
          "CREATE_XSRQ OPEN_QP").split()
WRITES_EXTENDED = {1: "QUERY_DEVICE", 26: "MODIFY_QP", 50: "CREATE_FLOW",
                   51: "DESTROY_FLOW", 52: "CREATE_WQ", 53: "MODIFY_WQ", 54: "DESTROY_WQ",
                   55: "CREATE_RWQ_IND_TBL", 56: "DESTROY_RWQ_IND_TBL", 57: "MODIFY_CQ"}
DRIVER_IDS = 0x1000		# an attribute, a method or an object from here on is the driver's
CORE_IN, CORE_OUT, WRITE_CMD = 0, 1, 2
# Words of old commands that are handles, which are compared as objects are.
HANDLES = {"ALLOC_MW": (2,), "REG_MR": (8,), "REREG_MR": (2,), "DEREG_MR": (0,),
           "DEALLOC_PD": (0,), "DEALLOC_MW": (0,), "CREATE_AH": (4,), "DESTROY_AH": (0,),
           "RESIZE_CQ": (2,), "QUERY_QP": (2,), "MODIFY_QP": (16,), "ATTACH_MCAST": (4,),
           "MODIFY_SRQ": (0,), "QUERY_SRQ": (2,), "CLOSE_XRCD": (0,), "EX_MODIFY_CQ": (0,),
           "EX_CREATE_WQ": (4, 5), "EX_MODIFY_WQ": (1,), "EX_DESTROY_WQ": (1,),
           "EX_DESTROY_RWQ_IND_TBL": (1,), "EX_CREATE_RWQ_IND_TBL": (2, 3),
           "EX_MODIFY_QP": (16,), "EX_CREATE_FLOW": (1,)}
# Specifications of a rule that name an object, and where they begin in the command.
SPEC_NAMES, SPECS_AT = (0x1002, 0x1003), 6
# Words of the driver's part that are numbers the library gives out: user indexes, registers.
NUMBERS = {"QP": {8: "user index", 9: "register"}, "SRQ": {6: "user index"},
           "WQ": {6: "user index"}}
QP_TYPE, QP_TABLE = 9, 6
QP_TYPES = {2: "RC", 3: "UC", 4: "UD", 8: "RAW_PACKET", 9: "XRC_SEND", 10: "XRC_RECV",
            0xff: "DRIVER"}


class Command:
    def __init__(self, object_id, method):
        self.object, self.method = int(object_id, 0), int(method, 0)
        self.attrs, self.failed = {}, None

    def name(self):
        if self.object >= DRIVER_IDS:
            return "driver 0x%x.%d" % (self.object, self.method & 0xfff)
        name = OBJECTS[self.object]
        if name == "DEVICE" and self.method == 0:
            number = int.from_bytes(bytes.fromhex(self.attrs[WRITE_CMD][2][:8]), "little")
            extended, number = number >> 31, number & 0x7fffffff
            return "EX_" + WRITES_EXTENDED[number] if extended else WRITES[number]
        methods = METHODS[name].split()
        if name == "QP" and self.method == 0:
            if QP_TABLE in self.attrs:
                return "HASH.CREATE"
            return "QP.CREATE " + QP_TYPES[bytes.fromhex(self.attrs[QP_TYPE][2])[0]]
        return "%s.%s" % (name, methods[self.method] if self.method < len(methods)
                          else "driver%d" % (self.method & 0xfff))


def commands_of(path):
    found = []
    for line in path.read_text().splitlines():
        words = line.split()
        if not line.startswith("\t"):
            found.append(Command(*words[:2]))
        elif words[0] == "failed:":
            found[-1].failed = words[1]
        else:
            found[-1].attrs[int(words[0], 0)] = int(words[2]), int(words[4]), words[5]
    return found


def is_pointer(pair):
    return 0x500000000000 <= int.from_bytes(pair, "little") < 1 << 47


def spec_handles(words):
    """Which words of a rule's command are handles that a specification has."""
    at = SPECS_AT
    while at + 1 < len(words):
        kind, size = (int.from_bytes(word[:2], "little") for word in words[at:at + 2])
        if kind in SPEC_NAMES:
            yield at + 2
        at += max(size // 4, 1)


class Reader:
    """Commands in their order, with numbers that are others each time taken out."""

    def __init__(self):
        self.handles = {}

    def handle(self, number):
        if number in (0, 0xffffffff):
            return "none"
        return "object %d" % self.handles.setdefault(number, len(self.handles) + 1)

    def words(self, name, attr, value):
        """The value of an attribute, a text for each word of it."""
        length, _, text = value
        if text == "out":
            return ["out"]
        data = bytes.fromhex(text)
        if length == 0:
            return [self.handle(int.from_bytes(data[:4], "little"))]
        if length <= 8 and is_pointer(data):
            return ["pointer"]
        data = data[:max(length, 4)]
        words = [data[i:i + 4] for i in range(0, len(data), 4)]
        shown_words = [format(int.from_bytes(word, "little"), "08x") for word in words]
        for i in range(0, len(data) - 7, 8):
            if is_pointer(data[i:i + 8]):
                shown_words[i // 4:i // 4 + 2] = ["pointer", ""]
        if attr == DRIVER_IDS:
            for i, what in NUMBERS.get(name.split(".")[0], {}).items():
                shown_words[i] = what
        if attr == CORE_IN:
            named = spec_handles(words) if name == "EX_CREATE_FLOW" else ()
            for i in (*HANDLES.get(name, ()), *named):
                if i < len(words):
                    shown_words[i] = self.handle(int.from_bytes(words[i], "little"))
        return shown_words


def compare_attr(name, attr, readers, a, b):
    what = "%s 0x%x" % (name, attr)
    if a[1] != b[1]:
        yield "%s flags: %d -> %d" % (what, a[1], b[1])
    if a[0] != b[0]:
        yield "%s length: %d -> %d" % (what, a[0], b[0])
    one, other = readers[0].words(name, attr, a), readers[1].words(name, attr, b)
    for i, (x, y) in enumerate(zip(one, other)):
        if x == y or "" in (x, y):
            continue		# a pointer is told with its first word
        size = 8 if "pointer" in (x, y) else 4
        if size == 8:
            x, y = (words[i] if words[i] == "pointer" else "".join(words[i:i + 2][::-1])
                    for words in (one, other))
        at = " bytes %d-%d" % (4 * i, 4 * i + size - 1) if len(one) > 1 else ""
        yield "%s%s: %s -> %s" % (what, at, x, y)


def compare_command(readers, a, b):
    name = a.name()
    for attr in sorted({*a.attrs, *b.attrs}):
        if attr not in b.attrs or attr not in a.attrs:
            yield "%s 0x%x: %s" % (name, attr, "not in ours" if attr in a.attrs else "only ours")
        elif not (attr == WRITE_CMD and a.object == 0):
            yield from compare_attr(name, attr, readers, a.attrs[attr], b.attrs[attr])
    if a.failed != b.failed:
        yield "%s: %s -> %s" % (name, a.failed or "done", b.failed or "done")


def leftovers(readers, missing, extra):
    """Commands without one of their name at their place; it may be at another."""
    for one in missing:
        other = next((command for command in extra if command.name() == one.name()), None)
        if not other:
            yield one.name() + " not in ours"
            continue
        extra.remove(other)
        yield one.name() + " at another place"
        yield from compare_command(readers, one, other)
    for other in extra:
        yield other.name() + " only ours"


def compare_commands(_, name, theirs, ours):
    lists = commands_of(theirs), commands_of(ours)
    names = [[command.name() for command in found] for found in lists]
    readers = Reader(), Reader()
    matcher = difflib.SequenceMatcher(None, *names, autojunk=False)
    missing, extra, facts = [], [], []
    for step, a, a_end, b, b_end in matcher.get_opcodes():
        if step == "equal":
            for one, other in zip(lists[0][a:a_end], lists[1][b:b_end]):
                facts += compare_command(readers, one, other)
        else:
            missing += lists[0][a:a_end]
            extra += lists[1][b:b_end]
    facts += leftovers(readers, missing, extra)
    return ("commands %s: %s" % (name, fact) for fact in facts)


# --- all ------------------------------------------------------------------------------------

# Which files of golden_record are compared, and how; the text beside a request is not its own.
KINDS = {("wqe", ".hex"): compare_wqe, ("wqe_uc", ".hex"): compare_wqe,
         ("wqe_ud", ".hex"): compare_wqe, ("wqe_xrc", ".hex"): compare_wqe,
         ("wqe_dc", ".hex"): compare_wqe, ("wqe_raw", ".hex"): compare_wqe,
         ("wqe_raw_l2", ".hex"): compare_wqe,
         ("recv", ".hex"): compare_wqe, ("srq", ".hex"): compare_wqe,
         ("doorbell", ".txt"): compare_table, ("uar", ".txt"): compare_table,
         ("arm", ".txt"): compare_table, ("commands", ".txt"): compare_commands}


def record(build, folder, environment):
    done = subprocess.run(
        [str(build / "bin/verbena"), "run", "--quiet", "--nic", "connectx-6dx", "--",
         str(build / "tests/golden/golden_record"), str(folder)],
        env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False)
    if done.returncode:
        sys.exit("golden_record failed in the lane %s:\n%s" % (folder.name, done.stdout))


def facts_of(theirs, ours):
    """{fact: how often}, and how many files were compared."""
    facts, files = collections.Counter(), 0
    for (folder, suffix), compare in KINDS.items():
        names = {path.name for side in (theirs, ours)
                 for path in (side / folder).glob("*" + suffix)}
        for name in sorted(names):
            one, other = theirs / folder / name, ours / folder / name
            if not (one.exists() and other.exists()):
                facts["%s/%s: only in one" % (folder, name)] += 1
                continue
            facts.update(compare(folder, pathlib.Path(name).stem, one, other))
            files += 1
    return facts, files


def read_reasons(path):
    """{pattern: reason}"""
    lines = (line.rsplit(" | ", 1) for line in path.read_text().splitlines()
             if " | " in line and not line.startswith("#"))
    return {re.sub(r"\s+", " ", pattern.strip()): reason.strip() for pattern, reason in lines}


def judge(facts, reasons):
    """Prints what is not explained and what explains nothing; how many of both."""
    wrong = 0
    for fact in sorted(facts):
        if not any(fnmatch.fnmatchcase(fact, pattern) for pattern in reasons):
            print("%s (%d times)" % (fact, facts[fact]))
            wrong += 1
    for pattern in reasons:
        if not fnmatch.filter(facts, pattern):
            print("differences.txt: nothing is like this any more: %s" % pattern)
            wrong += 1
    return wrong


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    linked = subprocess.run(["ldd", str(build / "tests/golden/golden_record")], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    library = re.search(r"libmlx5\.so\.1 => (\S+)", linked)
    if not library or not os.path.realpath(library[1]).endswith(LIBRARY_VERSION):
        print("libmlx5.so.1 of this system is not rdma-core 44's: nothing to compare with")
        return 77
    fabric = "golden-%d" % os.getpid()
    with tempfile.TemporaryDirectory() as name:
        theirs, ours = pathlib.Path(name, "stock"), pathlib.Path(name, "own")
        record(build, theirs, {"VERBENA_FABRIC": fabric + "-stock"})
        record(build, ours, {"VERBENA_FABRIC": fabric + "-own", "VERBENA_CHANNEL": "kernel",
                             "LD_LIBRARY_PATH": str(build / "lib/own")})
        facts, files = facts_of(theirs, ours)
    if "--list" in sys.argv:
        for fact in sorted(facts):
            print("%4d %s" % (facts[fact], fact))
        return 0
    reasons = read_reasons(pathlib.Path(__file__).parent / "differences.txt")
    wrong = judge(facts, reasons)
    print("%d files, %d facts that differ, %d reasons, %d not explained"
          % (files, len(facts), len(reasons), wrong))
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
