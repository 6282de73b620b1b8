#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles what the manual pages show: prototypes, structures and examples.

Usage: man_code.py ROOT [FOLDER...].  Prints what the compiler says, with page and line; the exit
status is 1 if it says anything.  Only pages of section 3 and 7 are looked at.

  prototypes  are declared again behind the header, which must not conflict; where the header
              has a macro of that name, it is called with what the prototype says instead
  structures  of SYNOPSIS and DESCRIPTION have each member where the header has it, of its type
  names       of constants, and of structures that .Vt marks, exist
  examples    compile without warnings.  A block with a line "{" is made of whole functions;
              any other is the inside of a function in which the usual objects exist (PRELUDE)
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

from mdoc import header
from mdoc.page import Page

PRELUDE = """\
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <infiniband/verbs_share.h>
"""
OBJECTS = """\
static struct ibv_context *context;
static struct ibv_device *device;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_comp_channel *channel;
static struct ibv_qp *qp;
static struct ibv_qp_ex *qpx;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static struct ibv_dm *dm;
static struct ibv_ah *ah;
static struct ibv_wc wc;
static union ibv_gid gid;
static uint32_t remote_qpn, remote_qkey, rkey;
static uint64_t remote_addr;
static void *buf;
static size_t size;
"""
FLAGS = ("-fsyntax-only", "-fno-diagnostics-show-caret", "-Wall", "-Wextra", "-Werror",
         "-Wno-unused-function", "-Wno-unused-variable", "-Wno-unused-parameter",
         "-Wno-unused-but-set-variable", "-Wno-redundant-decls",
         "-Wno-missing-field-initializers", "-Wno-ignored-attributes", "-x", "c", "-")
CONSTANT = re.compile(r"(?<![\w$])(?:IBV|MLX5DV)_[A-Z0-9_]*[A-Z0-9](?![\w*])")
TYPE = re.compile(r"\.(?:It )?Vt (struct|union|enum) (\w+)")
# Not of the header, but of the environment or the program.
VARIABLES = {"IBV_FORK_SAFE", "IBV_SHARE_PROPOSED_NAMES"}
STRUCTURE = re.compile(r"^(struct|union)\s+(\w+)\s*\{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
FUNCTION_POINTER = re.compile(r"\(\*(\w+)\)\s*\([^)]*\)")
MEMBER = re.compile(r"(\w+)\s*(?:\[[^]]*\])*\s*(?=[;,])")


def mark(line, path):
    return '#line %d "%s"' % (line, path)


def prototypes(page, macros):
    for number, one in enumerate(page.declarations()):
        yield mark(one.line, page.path)
        if one.name in macros:
            arguments = ", ".join(one.arguments)
            yield "static %s call_%d(%s) { %s }" % (one.type, number, arguments, one.call())
        else:
            yield one.prototype()


def names(page):
    yield "static void names(void)\n{"
    for number, section, line in page.walk():
        found = set(CONSTANT.findall(line)) - VARIABLES if section != "NAME" else ()
        types = ["%s %s" % match for match in TYPE.findall(line)]
        for name in [*sorted(found), *types]:
            if not line.startswith((".Dt", ".\\\"")):
                yield "%s\n(void)sizeof(%s);" % (mark(number, page.path), name)
    yield "}"


def members(body):
    """Names of the members, but of nested structures only the outermost name."""
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    body = FUNCTION_POINTER.sub(r"\1", body)
    while re.search(r"\{[^{}]*\}", body):
        body = re.sub(r"\{[^{}]*\}", "", body)
    return [name for name in MEMBER.findall(body) if name not in ("struct", "union")]


def structures(page):
    for block in page.blocks():
        if block.section not in ("SYNOPSIS", "DESCRIPTION"):
            continue
        for kind, name, body in STRUCTURE.findall(block.text):
            ours, theirs = "%s page_%s" % (kind, name), "%s %s" % (kind, name)
            line = mark(block.line, page.path)
            yield "%s\n%s {\n%s};" % (line, ours, body)
            yield '%s\n_Static_assert(sizeof(%s) == sizeof(%s), "size of %s");' % (
                line, ours, theirs, name)
            for member in members(body):
                at = "%s\n_Static_assert(offsetof(%s, %s) == offsetof(%s, %s), \"%s.%s\");"
                yield at % (line, ours, member, theirs, member, name, member)
                if not re.search(r"\}\s*%s\s*[;\[]" % member, body):
                    yield same_type(line, ours, theirs, member)


def same_type(line, ours, theirs, member):
    types = ["__typeof__(((%s *)0)->%s)" % (kind, member) for kind in (ours, theirs)]
    return '%s\n_Static_assert(__builtin_types_compatible_p(%s), "type of %s");' % (
        line, ", ".join(types), member)


def examples(page):
    for number, block in enumerate(b for b in page.blocks() if b.section == "EXAMPLES"):
        if re.search(r"^\{$", block.text, re.MULTILINE):
            yield "%s\n%s" % (mark(block.line, page.path), block.text)
        else:
            yield "static int example_%d(void)\n{" % number
            yield "%s\n%s" % (mark(block.line, page.path), block.text)
            yield "return 0;\n}"


def check(root, page, macros):
    """What the compiler says of a page; nothing if all is well."""
    code = "\n".join([PRELUDE, *prototypes(page, macros), *structures(page), *names(page),
                      OBJECTS, *examples(page), ""])
    done = subprocess.run([*header.compiler(root), *FLAGS], input=code, text=True,
                          capture_output=True, check=False)
    return done.stderr if done.returncode else ""


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    folders = [root / "man", *map(pathlib.Path, sys.argv[2:])]
    pages = [Page(path) for folder in folders for path in sorted(folder.glob("*.[37]"))]
    macros = header.macros(root)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda page: check(root, page, macros), pages))
    counts = (len(pages), sum(len(p.declarations()) for p in pages),
              sum(b.section == "EXAMPLES" for p in pages for b in p.blocks()))
    print("".join(said) + "%d pages, %d prototypes, %d examples" % counts)
    return 1 if any(said) or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
