# SPDX-License-Identifier: BSD-2-Clause
"""What <infiniband/verbs.h> and the library's map offer.  The header is ours once we have one."""
import pathlib
import re
import subprocess

HEADER = "#include <infiniband/verbs.h>\n#include <infiniband/verbs_share.h>\n"
MARK = re.compile(r'^# \d+ "([^"]+)"')
# Names that are ours to describe; __ and _ibv_ are the header's own affair.
PUBLIC = re.compile(r"^(ibv_|mult_to_|mbps_to_)")


def compiler(root):
    include = root / "include"
    own = ["-I", str(include)] if (include / "infiniband").is_dir() else []
    return ["gcc", "-std=gnu11", "-D_GNU_SOURCE", *own]


def preprocess(root, *flags):
    return subprocess.run([*compiler(root), "-E", *flags, "-"], input=HEADER, text=True,
                          capture_output=True, check=True).stdout


def without_bodies(text):
    """The text outside of braces: declarations, and the heads of inline functions."""
    out, depth = [], 0
    for part in re.split(r"([{}])", text):
        if part == "{":
            depth += 1
        elif part == "}":
            depth -= 1
            out.append(";" if depth == 0 else "")
        elif depth == 0:
            out.append(part)
    return "".join(out)


def declared_functions(root):
    """Names of the functions that the header declares or defines."""
    of_verbs, lines = False, []
    for line in preprocess(root).splitlines():
        mark = MARK.match(line)
        if mark:
            of_verbs = "infiniband" in pathlib.Path(mark[1]).parts
        elif of_verbs:
            lines.append(line)
    text = without_bodies("\n".join(lines))
    names = set(re.findall(r"\b(\w+)\s*\((?!\s*\*)", text))
    return {name for name in names if PUBLIC.match(name)}


def macros(root):
    """Function-like macros that a program calls like functions."""
    names = re.findall(r"^#define (\w+)\(", preprocess(root, "-dM"), re.MULTILINE)
    return {name for name in names if PUBLIC.match(name)}


def exported_functions(root):
    """Names that the library's map exports to programs; none while there is no map."""
    path = root / "verbs" / "libibverbs.map"
    if not path.exists():
        return set()
    names, node = set(), ""
    text = re.sub(r"/\*.*?\*/|#[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for word in re.findall(r"\w+(?:\.\w+)?(?=\s*\{)|\w+(?=\s*;)", text):
        if word.startswith("IBVERBS_"):
            node = word
        elif "PRIVATE" not in node and PUBLIC.match(word):
            names.add(word)
    return names
