#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Installs the build into a folder of its own and builds a program on it, both ways: with what
pkg-config says, and with find_package(verbena).

Usage: install.py BUILD CC.  The program must get our headers and our library from there, and one
that does not ask must not.  The command that is installed with them finds them.  The exit status is
0, or 1 if something fails.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = """
#include <infiniband/verbs.h>
#ifndef INFINIBAND_VERBS_CONTEXT_H
#error "not our header"
#endif
#include <stdio.h>
int main(void) { return puts(ibv_wc_status_str(IBV_WC_SUCCESS)) < 0; }
"""
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(verbena REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE verbena::ibverbs)
"""


class Failure(Exception):
    pass


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode:
        raise Failure("%s failed:\n%s" % (command[0], done.stdout))
    return done.stdout


def check_linked(program, library, linked):
    linked = [line for line in linked.splitlines() if "libibverbs.so.1" in line]
    if len(linked) != 1 or str(library) not in linked[0]:
        raise Failure("%s is linked with %s, not %s" % (program, linked, library))


def check_program(program, library):
    """It runs, and on the library that was installed."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent), VERBENA_QUIET="1")
    check_linked(program, library, run("ldd", program, env=environment))
    run(program, env=environment)


def check_command(prefix, program, library):
    """The installed `verbena run --own` finds what was installed with it."""
    find_one(library.parent, "libmlx5.so.1")
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    command = prefix / "bin/verbena", "run", "--own", "--quiet", "--"
    check_linked(program, library, run(*command, "ldd", program, env=environment))
    run(*command, program, env=environment)


def find_one(folder, name):
    found = sorted(folder.rglob(name))
    if len(found) != 1:
        raise Failure("%d of %s installed" % (len(found), name))
    return found[0]


def check_nothing_is_shadowed(prefix):
    """Outside of folders called verbena there is no name of rdma-core's."""
    for path in prefix.rglob("*ib*"):
        below = path.relative_to(prefix)
        if path.is_file() and "verbena" not in str(below) and below.parts[0] in ("include", "lib"):
            raise Failure("%s could be taken for the system's" % below)


def try_pkg_config(folder, compiler, prefix, library):
    for name in ("libibverbs", "verbena"):
        path = find_one(prefix, name + ".pc").parent
        # The build was configured for another prefix than this.
        environment = dict(os.environ, PKG_CONFIG_LIBDIR=str(path))
        flags = run("pkg-config", "--cflags", "--libs", "--define-variable=prefix=%s" % prefix,
                    name, env=environment)
        run(compiler, folder / "user.c", "-o", folder / name, *flags.split())
        check_program(folder / name, library)


def try_find_package(folder, compiler, prefix, library):
    (folder / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_PREFIX_PATH=%s" % prefix,
        "-DCMAKE_C_COMPILER=%s" % compiler)
    run("cmake", "--build", folder / "build")
    check_program(folder / "build/user", library)


def main():
    build, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = folder / "prefix"
        (folder / "user.c").write_text(PROGRAM)
        try:
            run("cmake", "--install", build, "--prefix", prefix)
            check_nothing_is_shadowed(prefix)
            library = find_one(prefix, "libibverbs.so.1")
            try_pkg_config(folder, compiler, prefix, library)
            try_find_package(folder, compiler, prefix, library)
            check_command(prefix, folder / "build/user", library)
        except Failure as failure:
            print(failure)
            return 1
    print("installed; built with pkg-config and with find_package")
    return 0


if __name__ == "__main__":
    sys.exit(main())
