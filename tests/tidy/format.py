#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the C files with .clang-format, but leaves tables alone that were laid out by hand.

Usage: format.py ROOT [--fix].  Prints each line that differs, or mends it; the exit status is
1 if there is any.

clang-format never changes a token, only the white space between two of them.  So both texts
are read as the same list of tokens, and of each token three things are compared: whether
there is space before it, whether it begins a line where a statement or a body begins, and how far
that line is indented.  Where clang-format would only break a list elsewhere, or take out
the padding that makes columns, the author's layout stands.
"""
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FILES_AT_ONCE = 100
FOLDERS = ("emu", "hw-models", "include", "verbs", "tools", "examples", "tests")
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|/\*|\*/|//|\w+|[^\w\s]')
WORD = re.compile(r"\w+$")
# What may stand on one line: struct { int a; bool b; } row[] = {, and int f(void) { return 1; }
ONE_LINE = re.compile(r"\b(struct|union)( \w+)? \{.*;|\) +\{ .*; \}$")
# May or may not have a space before "(": a padded row of a table, uint8_t (*)[16], "r" (asm).
TAKES_SPACE = re.compile(r'([A-Z][A-Z0-9_]*|.*_t|".*")$')


@dataclasses.dataclass
class Token:
    text: str
    line: int			# from 1
    is_first: bool		# of its line
    has_space: bool		# before it
    indent: int			# columns before the first token of the line
    is_text: bool		# inside a comment, a directive, or the body of a macro
    is_one_line: bool		# on a line that holds a whole structure or function


def tokens_of(text):
    found, in_comment, in_macro = [], False, False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.expandtabs(8)
        goes_on = line.endswith("\\")
        line = line.rstrip("\\").rstrip()
        indent = len(line) - len(line.lstrip())
        is_directive = in_macro or (line.lstrip().startswith("#") and not in_comment)
        for match in TOKEN.finditer(line):
            in_comment = in_comment or match[0] == "/*"
            found.append(Token(match[0], number, match.start() == indent,
                               line[match.start() - 1:match.start()] == " ", indent,
                               in_comment or is_directive, bool(ONE_LINE.search(line))))
            in_comment = in_comment and match[0] != "*/"
        in_macro = is_directive and goes_on
    return found


def is_spacing_wrong(before, ours, theirs):
    """There is a space too many or too few before a token in the middle of a line."""
    if ours.is_first or theirs.is_first or ours.has_space == theirs.has_space:
        return False
    if ours.text == "(" and TAKES_SPACE.match(before.text):
        return False
    if ours.text in "-&*" and before.text == ")" or before.text in "-&*":
        return False		# without types, (a) - b looks like a cast
    return True


def is_break_wrong(before, ours, theirs):
    """A statement, or the brace of a body, does not stand on the line where it should."""
    if ours.is_first == theirs.is_first or ours.is_one_line:
        return False
    if ours.is_first:
        return ours.text == "{" and before.text in (")", "else", "do")
    if ours.text == "{":
        return before.text == ")" and theirs.indent == 0
    return before.text == ";" or (before.text == ")" and bool(WORD.match(ours.text)))


def is_indentation_wrong(before, ours, theirs):
    """A statement or a closing brace begins in the wrong column."""
    if not (ours.is_first and theirs.is_first) or ours.indent == theirs.indent:
        return False
    return before.text in (";", "{", "}", ":") and ours.text not in (".", "[", "{")


def problem_of(before, ours, theirs):
    if is_spacing_wrong(before, ours, theirs):
        return "a space before it" if theirs.has_space else "no space before it"
    if is_break_wrong(before, ours, theirs):
        return "a new line" if theirs.is_first else "no new line"
    if is_indentation_wrong(before, ours, theirs):
        return "in column %d" % (theirs.indent + 1)
    return None


def formatted(root, files):
    """path -> its text as clang-format lays it out.  The program takes longer to start than for a
    file, so it gets copies of many at once."""
    with tempfile.TemporaryDirectory() as name:
        copies = pathlib.Path(name)
        shutil.copy(root / ".clang-format", copies)
        for path in files:
            copy = copies / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        for i in range(0, len(files), FILES_AT_ONCE):
            names = [str(path.relative_to(root)) for path in files[i:i + FILES_AT_ONCE]]
            subprocess.run(["clang-format", "--style=file", "-i", *names], cwd=copies, check=True)
        return {path: (copies / path.relative_to(root)).read_text() for path in files}


def problems_of(path, wanted):
    """(line, token, what is wanted) of each difference that matters."""
    ours, theirs = tokens_of(path.read_text()), tokens_of(wanted)
    assert [t.text for t in ours] == [t.text for t in theirs], "%s: tokens changed" % path
    for before, a, b in zip(ours, ours[1:], theirs[1:]):
        problem = None if before.is_text or a.is_text else problem_of(before, a, b)
        if problem:
            yield a.line, a.text, problem


def mend(root, path, lines):
    arguments = ["--lines=%d:%d" % (line, line) for line in sorted(lines)]
    subprocess.run(["clang-format", "--style=file", "-i", *arguments, str(path)], cwd=root,
                   check=True)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    wants_fix = "--fix" in sys.argv[2:]
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.[ch]"))
    wanted = formatted(root, files)
    count = 0
    for path in files:
        found = list(problems_of(path, wanted[path]))
        count += len(found)
        if found and wants_fix:
            mend(root, path, {line for line, _, _ in found})
        elif found:
            for line, token, problem in found:
                print("%s:%d: %s: wanted: %s" % (path.relative_to(root), line, token, problem))
    print("%d files, %d places %s" % (len(files), count,
                                      "mended" if wants_fix else "differ from .clang-format"))
    return 1 if count and not wants_fix else 0


if __name__ == "__main__":
    sys.exit(main())
