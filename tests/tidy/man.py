#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rules about the manual pages that need no compiler of C; man_code.py has the others.

Usage: man.py ROOT [FOLDER...].  Prints one line a problem; the exit status is 1 if there is any.
Pages of FOLDERs count as if they were in man/: to look at pages of another working tree as well.

  mandoc    has nothing to say about a page, warnings included
  sections  pages about functions have all that a reader may look for
  names     each public function of the header and of the library's map has a page or an alias
            (man/aliases.txt), and each name of a page is one of both and has a prototype there
  links     .Xr to one of our functions leads to a page or an alias
  reasons   each WHY_ of a page is one of emu/diag/why.def
  errno     what .Er names, and what looks like it, is an errno of this system
"""
import errno
import pathlib
import re
import subprocess
import sys

from mdoc import header
from mdoc.page import Page, words

SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUES", "ERRORS", "SEE ALSO", "STANDARDS")
REASONS = "emu/diag/why.def"
# Begins like an errno and is none.
NO_ERRNO = {"EXAMPLES", "ERRORS", "ENVIRONMENT", "EXIT", "ETHERNET"}
KNOWN_ERRNOS = {name for name in dir(errno) if name.startswith("E")}


def mandoc_problems(paths):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *map(str, paths)],
                          capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).splitlines()
    if done.returncode and not said:
        said = ["mandoc ends with %d" % done.returncode]
    return said if done.returncode else []


def read_aliases(path):
    """{alias: page}; the page is "-" where a name has none on purpose."""
    aliases = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.partition("#")[0].split()
        if line:
            aliases[line[0]] = line[1]
    return aliases


def section_problems(page):
    missing = [s for s in SECTIONS if s not in page.sections()]
    if missing:
        yield "%s: no %s" % (page.path.name, ", ".join(missing))


def page_name_problems(page, aliases, public):
    """The names on top of a page, its aliases and its prototypes are the same list."""
    named = page.names()
    listed = {alias for alias, target in aliases.items() if target == page.name} | {page.name}
    declared = {d.name for d in page.declarations()}
    if not named or named[0] != page.name:
        yield "%s: the first name is not that of the page" % page.path.name
    for name in sorted(set(named) - listed):
        yield "%s: %s is in NAME, but aliases.txt does not send it here" % (page.path.name, name)
    for name in sorted(listed - set(named)):
        yield "%s: %s is sent here by aliases.txt, but is not in NAME" % (page.path.name, name)
    # ibv_wr_post and the like are names of a group.
    for name in sorted((set(named) & public) - declared):
        yield "%s: no prototype of %s in SYNOPSIS" % (page.path.name, name)
    for name in sorted(declared - set(named)):
        yield "%s: %s has a prototype, but is not in NAME" % (page.path.name, name)


def completeness_problems(pages, aliases, public):
    named = {page.name for page in pages}
    if len(public) < 100:
        yield "the header was not understood: only %d functions in it" % len(public)
    for name in sorted(public - named - set(aliases)):
        yield "%s has no page and no line in aliases.txt" % name
    for alias, target in sorted(aliases.items()):
        if alias in named:
            yield "aliases.txt: %s has a page of its own" % alias
        if target != "-" and target not in named:
            yield "aliases.txt: %s leads to %s, which is no page" % (alias, target)


def link_problems(page, known):
    """Of functions of other libraries and of system calls we know nothing."""
    for number, _, line in page.walk():
        link = re.match(r"\.(?:It )?Xr (\w+) (\d)", line)
        if link and link[2] == "3" and link[1].startswith("ibv_") and link.groups() not in known:
            yield "%s:%d: %s(%s) is no page" % (page.path.name, number, *link.groups())


def reason_problems(page, reasons):
    for number, _, line in page.walk():
        for name in re.findall(r"\bWHY_(\w+)", line):
            if name not in reasons:
                yield "%s:%d: there is no reason WHY_%s" % (page.path.name, number, name)


def errno_problems(page):
    for number, _, line in page.walk():
        asked = set(re.findall(r"(?<![\w\\])E[A-Z]{3,}[0-9A-Z]*\b(?!_)", line)) - NO_ERRNO
        if re.match(r"\.(It )?Er ", line):
            asked |= {w for w in words(line.split("Er ", 1)[1])[:1] if w != "Xo"}
        for name in sorted(asked - KNOWN_ERRNOS) if not line.startswith(".Sh") else ():
            yield "%s:%d: there is no errno %s" % (page.path.name, number, name)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    folders = [root / "man", *map(pathlib.Path, sys.argv[2:])]
    paths = {path.name: path for folder in folders for path in sorted(folder.glob("*.[1-9]"))}
    if not paths:
        print("there are no manual pages in man/")
        return 1
    pages = [Page(path) for path in paths.values()]
    functions = [page for page in pages if page.section == "3"]
    aliases = read_aliases(root / "man" / "aliases.txt")
    public = header.declared_functions(root) | header.exported_functions(root)
    problems = mandoc_problems(paths.values())
    known = {(page.name, page.section) for page in pages}
    known |= {(alias, "3") for alias, target in aliases.items() if target != "-"}
    reasons = set(re.findall(r"^WHY\((\w+),", (root / REASONS).read_text(encoding="utf-8"),
                             re.MULTILINE))
    for page in pages:
        problems += [*errno_problems(page), *link_problems(page, known),
                     *reason_problems(page, reasons)]
    for page in functions:
        problems += [*section_problems(page), *page_name_problems(page, aliases, public)]
    problems += completeness_problems(functions, aliases, public)
    print("\n".join([*problems, "%d manual pages, %d of them about functions, %d aliases" %
                     (len(pages), len(functions), len(aliases))]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
