#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares every header in include/infiniband/ with the system's header of that name.

Usage: headers.py INCLUDE CC [HEADER...].  Prints each difference: of a size, an offset, a type, a
value, a signature, and each name that only one side has.  Differences that are meant are lines
of headers-differ.txt, with the reason.  The exit status is 1 if there is any other, 77 if the
system has no such headers.
"""
import pathlib
import re
import sys

import facts

OURS = r"/infiniband/"
ALL = r"/infiniband/|/rdma/"	# the kernel's own may be newer than the system's rdma-core
PRIVATE = re.compile(r"function __")	# helpers of inline functions


def read_meant(path):
    """{fact: reason}; a line is the fact, a bar, the reason."""
    lines = (line.split("|") for line in path.read_text().splitlines() if "|" in line)
    return {fact.strip(): reason.strip() for fact, reason in lines if not fact.startswith("#")}


def compare(header, ours, theirs):
    """(fact, what differs) of one header; each is the compiler that finds that side's."""
    ours_all, theirs_all = (facts.facts_of(c, header, ALL) for c in (ours, theirs))
    ours_own, theirs_own = (facts.facts_of(c, header, OURS) for c in (ours, theirs))
    for fact, value in theirs_own.items():
        if fact not in ours_all:
            yield fact, "is %s, and we have none" % value
        elif ours_all[fact] != value:
            yield fact, "is %s, ours is %s" % (value, ours_all[fact])
    for fact in ours_own:
        if fact not in theirs_all and not PRIVATE.match(fact):
            yield fact, "is only in ours"


def main():
    include, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    # Without <stdint.h> some of theirs, included alone, take pointers for 32 bits wide.
    theirs = [compiler, "-D_GNU_SOURCE", "-w", "-include", "stdint.h"]
    ours = theirs + ["-I%s" % include]
    folder = pathlib.Path("/usr/include/infiniband")
    names = {path.name for path in (include / "infiniband").glob("*.h")}
    theirs_names = {path.name for path in folder.glob("*.h")}
    if not names & theirs_names:
        print("no headers to compare with in %s" % folder)
        return 77
    meant = read_meant(pathlib.Path(__file__).parent / "headers-differ.txt")
    found = [("file " + name, "only we have it") for name in names - theirs_names]
    found += [("file " + name, "we have none") for name in theirs_names - names]
    for name in sys.argv[3:] or sorted(names & theirs_names):
        found += compare("infiniband/" + name, ours, theirs)
    found = set(found)
    wrong = {(fact, what) for fact, what in found if fact not in meant}
    for fact, what in sorted(wrong):
        print("%s: %s" % (fact, what))
    print("%d headers, %d differences that are meant, %d others"
          % (len(names & theirs_names), len(found - wrong), len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
