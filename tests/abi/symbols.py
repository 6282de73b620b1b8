#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what a library of ours exports, and what its map says, with the system's of that name.

Usage: symbols.py MAP OURS [REASONS].  A symbol is its name, version, and whether it is the default
one.  What only one side has is a line of the file REASONS with the reason, or a failure; a line
there that is no longer true is one too, so the list can only shrink.  What our libmlx5.so.1 asks
of our libibverbs.so.1 has the version VERBENA_PRIVATE and is left out.  The exit status is 1 if
anything differs, 77 if there is no library of the system's.
"""
import pathlib
import re
import subprocess
import sys

PRIVATE = "VERBENA_PRIVATE"
SYSTEM_PLACES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")


def exports_of(library):
    """{name@version or name@@version: "function" or "data"}"""
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    words = (line.split() for line in out.splitlines())
    return {name: "data" if kind in "BDRG" else "function"
            for _, kind, name in words if kind != "A"}


def map_of(path):
    """The same of a linker's map: the defaults, which are the last where a name stands twice."""
    text = re.sub(r"#.*", "", path.read_text())
    versions = {}
    for version, body in re.findall(r"(\w[\w.]*)\s*\{(.*?)\}", text, re.DOTALL):
        body = body.split("local:")[0].replace("global:", "")
        versions.update({name.strip(): version for name in body.split(";") if name.strip()})
    return {"%s@@%s" % item for item in versions.items()}


def read_reasons(path):
    lines = (line.split("|") for line in path.read_text().splitlines()
             if "|" in line and not line.startswith("#"))
    return {name.strip(): reason.strip() for name, reason in lines}


def compare(title, ours, theirs, reasons):
    """Prints what differs without a reason; the number of such differences."""
    wrong = sorted(name for name in (set(ours) ^ set(theirs)) - set(reasons)
                   if not name.endswith("@" + PRIVATE))
    for name in wrong:
        print("%s: %s is only in %s" % (title, name, "ours" if name in ours else "the system's"))
    return len(wrong)


def find_system(name):
    for place in SYSTEM_PLACES:
        path = pathlib.Path(place, name)
        if path.exists():
            return path
    return None


def main():
    map_path, library = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    system = find_system(library.name)
    if not system:
        print("no %s of the system's to compare with" % library.name)
        return 77
    reasons = read_reasons(pathlib.Path(sys.argv[3])) if len(sys.argv) > 3 else {}
    theirs = exports_of(system)
    defaults = {name for name in theirs if "@@" in name}
    wrong = compare("map", map_of(map_path), defaults, reasons)
    ours = exports_of(library)
    wrong += compare("library", ours, theirs, reasons)
    for name in set(ours) & set(theirs):
        if ours[name] != theirs[name]:
            print("library: %s is %s, not %s" % (name, ours[name], theirs[name]))
            wrong += 1
    for name in sorted(reasons):
        if (name in ours) == (name in theirs):
            print("%s: %s no longer differs" % (sys.argv[3], name))
            wrong += 1
    print("%d symbols, %d of the system's, %d differences" % (len(ours), len(theirs), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
