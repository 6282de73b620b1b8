#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks every #include of the project against the arrows of layers.txt.

Usage: layers.py ROOT.  Prints one line a violation; the exit status is 1 if there is any.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
FOLDERS = ("hw-models", "emu", "include", "verbs", "tools", "examples")


def read_rules(path):
    """({layer: set of layers}, {header: [paths that may include it]})."""
    arrows, only = {}, {}
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "only":
            only[words[1]] = words[2:]
        elif len(words) > 1 and words[1] == "->":
            arrows[words[0]] = set(words[2:])
        else:
            sys.exit("%s: not a rule: %s" % (path, line))
    for layer, targets in arrows.items():
        for target in targets - set(arrows):
            sys.exit("%s: %s points to %s, which has no line" % (path, layer, target))
    return arrows, only


def layer_of(path):
    """emu/obj/key.c is of layer obj, emu/emu.c of emu, hw-models/hw.h of hw-models."""
    parts = path.parts
    return parts[1] if parts[0] == "emu" and len(parts) > 2 else parts[0]


def find_target(root, included):
    """Where "emu/obj/obj.h" or "base/ring.h" is, relative to the root; None if nowhere."""
    for prefix in ("", "include"):
        path = pathlib.PurePath(prefix, included)
        if (root / path).is_file():
            return path
    return None


def check_system(file, header, only):
    allowed = only.get(header)
    if allowed is None or file.parts[0] != "emu":
        return None
    if any(file.is_relative_to(place) for place in allowed):
        return None
    return "includes <%s>, which only %s may" % (header, ", ".join(allowed))


def check_own(root, file, included, arrows):
    target = find_target(root, included)
    if target is None:
        return 'includes "%s", which is no path from the root' % included
    source_layer, target_layer = layer_of(file), layer_of(target)
    if source_layer not in arrows:
        return "is in the layer %s, which has no line in layers.txt" % source_layer
    if target_layer != source_layer and target_layer not in arrows[source_layer]:
        return 'includes "%s": there is no arrow %s -> %s' % (included, source_layer,
                                                              target_layer)
    return None


def check_file(root, file, arrows, only):
    for number, line in enumerate((root / file).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        if match[1] == "<":
            problem = check_system(file, match[2], only)
        else:
            problem = check_own(root, file, match[2], arrows)
        if problem:
            yield "%s:%d: %s" % (file, number, problem)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    arrows, only = read_rules(root / "tests/tidy/layers.txt")
    files = [path.relative_to(root) for folder in FOLDERS
             for path in sorted((root / folder).rglob("*")) if path.suffix in (".c", ".h", ".def")]
    problems = [problem for file in files for problem in check_file(root, file, arrows, only)]
    print("\n".join(problems) or "%d files keep to layers.txt" % len(files))
    if not files:
        sys.exit("no sources under %s" % root)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
