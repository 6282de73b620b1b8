#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles each header under include/infiniband/ alone, as C and as C++, without a warning.

Usage: alone.py INCLUDE CC.  Prints what a compiler says; the exit status is 1 if there is any.
C++ is left out where no g++ is installed, and said so.
"""
import pathlib
import shutil
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wcast-align", "-Werror", "-pedantic"]
# <endian.h> is not of ISO C: a strict program asks for it.
LANGUAGES = {
    "C11": ["-xc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wstrict-prototypes"],
    "C11 of GNU": ["-xc", "-std=gnu11", "-D_GNU_SOURCE"],
    "C11 with SSE": ["-xc", "-std=gnu11", "-O2", "-mssse3"],
    "static": ["-xc", "-std=gnu11", "-DRDMA_STATIC_PROVIDERS=mlx5,rxe"],
    "C++11": ["-xc++", "-std=c++11"],
    "C++20": ["-xc++", "-std=c++20"],
}


# Parts are not for programs; that each can stand alone is enough.
FOR_PARTS = ("C11", "C++11")


def complaints(compiler, include, header, options):
    done = subprocess.run([compiler, *options, *WARNINGS, "-I%s" % include, "-fsyntax-only", "-"],
                          input="#include <%s>\n#include <%s>\n" % (header, header), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout if done.returncode else ""


def main():
    include, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    plus = shutil.which("g++")
    if not plus:
        print("no g++ here: C only")
    headers = sorted(p.relative_to(include) for p in (include / "infiniband").rglob("*.h"))
    failed = 0
    for header in headers:
        is_part = header.parent.name != "infiniband"
        for name, options in LANGUAGES.items():
            if is_part and name not in FOR_PARTS:
                continue
            chosen = plus if "-xc++" in options else compiler
            said = chosen and complaints(chosen, include, header, options)
            if said:
                print("--- %s, %s\n%s" % (header, name, said))
                failed += 1
    print("%d headers, %d times a compiler complained" % (len(headers), failed))
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
