#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rules about the source text that a reader should never have to check by eye.

Usage: tidy.py ROOT.  Prints one line a problem; the exit status is 1 if there is any.
Lines that start with "note:" are for information and fail nothing.

  file      at most 800 lines, an SPDX line near the top
  line      at most 100 columns (a tab is 8), no blanks at the end
  function  at most 70 lines
  text      no path of somebody's machine; links in *.md lead somewhere
  reasons   every ID of emu/diag/why.def is used in emu/
"""
import pathlib
import re
import statistics
import sys

FILE_LINES, FUNCTION_LINES, COLUMNS = 800, 70, 100
# A linked worktree has a file called .git.
SKIPPED = re.compile(r"^(\.git|build(-.*)?|__pycache__)$")
C_SUFFIXES = (".c", ".h", ".def")
CODE_SUFFIXES = C_SUFFIXES + (".py", ".sh", ".cmake")
CODE_NAMES = ("dev", "run", "CMakeLists.txt", ".clang-format", ".gitignore")
NEEDS_NO_SPDX = (".gitignore",)
LONG_LINES_ALLOWED = (".def",)		# one row a line reads best
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:%s)/" % "|".join(("work", "home", "root")))
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def walk(folder):
    for path in sorted(folder.iterdir()):
        if SKIPPED.match(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from walk(path)
        elif path.is_file():
            yield path


def is_code(path):
    return path.suffix in CODE_SUFFIXES or path.name in CODE_NAMES


def read_text(path):
    """The text of a file, or None if it is not text (a capture, an object)."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def check_size(path, lines):
    if len(lines) > FILE_LINES:
        yield 1, "%d lines, the most is %d: split it along a real seam" % (len(lines), FILE_LINES)
    if path.name not in NEEDS_NO_SPDX:
        if not any("SPDX-License-Identifier: BSD-2-Clause" in line for line in lines[:3]):
            yield 1, "no SPDX-License-Identifier: BSD-2-Clause in the first lines"


def check_lines(path, lines):
    for number, line in enumerate(lines, 1):
        width = len(line.expandtabs(8))
        if width > COLUMNS and path.suffix not in LONG_LINES_ALLOWED:
            yield number, "%d columns, the most is %d" % (width, COLUMNS)
        if line != line.rstrip():
            yield number, "blanks at the end"


def functions(lines):
    """(first line, length) of each function: a body stands between braces in column one."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start - 1
            start = None


def check_functions(path, lines):
    if path.suffix == ".c":
        for number, length in functions(lines):
            if length > FUNCTION_LINES:
                yield number, "a function of %d lines, the most is %d" % (length, FUNCTION_LINES)


def check_machine_paths(path, lines):
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line) and path.name != pathlib.Path(__file__).name:
            yield number, "a path of somebody's machine"


def check_links(path, lines):
    if path.suffix != ".md":
        return
    for number, line in enumerate(lines, 1):
        for target in LINK.findall(line):
            if "://" not in target and not (path.parent / target).exists():
                yield number, "the link to %s leads nowhere" % target


CODE_CHECKS = (check_size, check_lines, check_functions, check_machine_paths)
TEXT_CHECKS = (check_machine_paths, check_links)


def check_file(root, path):
    text = read_text(path)
    if text is None:
        return
    lines = text.splitlines()
    for check in CODE_CHECKS if is_code(path) else TEXT_CHECKS:
        for number, problem in check(path, lines):
            yield "%s:%d: %s" % (path.relative_to(root), number, problem)


def identifiers(paths):
    """Every WHY_ identifier that these files contain, in code or comment."""
    found = set()
    for path in paths:
        found.update(re.findall(r"\bWHY_[A-Z0-9_]+\b", read_text(path) or ""))
    return found


def check_reasons(root, files):
    """Problems and notes about emu/diag/why.def."""
    definition = root / "emu/diag/why.def"
    ids = re.findall(r"^WHY\((\w+),", definition.read_text(), re.MULTILINE)
    emu = [p for p in files if p.suffix in C_SUFFIXES and root / "emu" in p.parents
           and definition.parent not in p.parents]
    tests = [p for p in files if root / "tests" in p.parents and is_code(p)]
    used, tested = identifiers(emu), identifiers(tests)
    problems = ["emu/diag/why.def: WHY_%s is used nowhere in emu/" % i
                for i in ids if "WHY_" + i not in used]
    untested = [i for i in ids if "WHY_" + i not in tested]
    notes = []
    if untested:
        notes.append("note: %d of %d reasons are named in no test: %s"
                     % (len(untested), len(ids), " ".join(untested)))
    return problems, notes


def measure(files):
    """What the sizes are, for whoever wants to know."""
    lengths = [length for path in files if path.suffix == ".c"
               for _, length in functions((read_text(path) or "").splitlines())]
    if not lengths:
        return []
    return ["note: %d functions, median %d lines, longest %d"
            % (len(lengths), statistics.median(lengths), max(lengths))]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    files = list(walk(root))
    problems = [problem for path in files for problem in check_file(root, path)]
    reason_problems, notes = check_reasons(root, files)
    problems += reason_problems
    print("\n".join(problems + notes + measure(files)))
    print("%d files, %d problems" % (len(files), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
