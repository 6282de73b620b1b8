#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Installs the build into a folder of its own and builds programs on it, both ways: with what
pkg-config says, and with find_package(verbena).

Usage: install.py BUILD CC.  A program must get our headers and our libraries from there, and one
that does not ask must not.  The command that is installed with them finds them.  The exit status is
0, or 1 if something fails.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

VERBS = """
#include <infiniband/verbs.h>
#ifndef INFINIBAND_VERBS_CONTEXT_H
#error "not our header"
#endif
#include <stdio.h>
int main(void) { return puts(ibv_wc_status_str(IBV_WC_SUCCESS)) < 0; }
"""
MLX5 = """
#include <infiniband/mlx5dv.h>
#ifndef INFINIBAND_MLX5DV_QUEUES_H
#error "not our header"
#endif
int main(void)
{
	struct ibv_device **list = ibv_get_device_list(0);
	return !list || !list[0] || !mlx5dv_is_supported(list[0]);
}
"""
# Which package of pkg-config, or which target, gives a program what it needs to run on.
PACKAGES = {"libibverbs": VERBS, "verbena": VERBS, "libmlx5": MLX5}
TARGETS = {"ibverbs": VERBS, "mlx5": MLX5}
LIBRARIES = {VERBS: ("libibverbs.so.1",), MLX5: ("libibverbs.so.1", "libmlx5.so.1")}
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(verbena REQUIRED)
""" + "".join("""
add_executable(%s %s.c)
target_link_libraries(%s PRIVATE verbena::%s)
""" % (target, target, target, target) for target in TARGETS)


class Failure(Exception):
    pass


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode:
        raise Failure("%s failed:\n%s" % (command[0], done.stdout))
    return done.stdout


def check_program(program, source, place, *command, **variables):
    """It runs, started by a command if there is one, and on the libraries that were installed."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    environment.update(variables)
    lines = run(*command, "ldd", program, env=environment).splitlines()
    for name in LIBRARIES[source]:
        linked = [line for line in lines if name in line]
        if len(linked) != 1 or str(place / name) not in linked[0]:
            raise Failure("%s is linked with %s, not that in %s" % (program, linked, place))
    run(*command, program, env=environment)


def check_alone(program, source, place):
    check_program(program, source, place, LD_LIBRARY_PATH=str(place), VERBENA_QUIET="1")


def check_command(prefix, program, source, place):
    """The installed `verbena run --own` finds what was installed with it."""
    check_program(program, source, place, prefix / "bin/verbena", "run", "--own", "--quiet", "--")


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


def check_stands_alone(place):
    """Whoever loads our libmlx5 gets our libibverbs with it, without being told where that is."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    found = run("ldd", place / "libmlx5.so.1", env=environment)
    if str(place / "libibverbs.so.1") not in found:
        raise Failure("libmlx5.so.1 does not find the library beside it:\n%s" % found)


def try_pkg_config(folder, compiler, prefix, place):
    for name, source in PACKAGES.items():
        # The build was configured for another prefix than this.
        paths = ":".join(str(path.parent) for path in (find_one(prefix, "libibverbs.pc"),
                                                       find_one(prefix, "verbena.pc")))
        environment = dict(os.environ, PKG_CONFIG_LIBDIR=paths)
        flags = run("pkg-config", "--cflags", "--libs", "--define-variable=prefix=%s" % prefix,
                    name, env=environment)
        (folder / "user.c").write_text(source)
        run(compiler, folder / "user.c", "-o", folder / name, *flags.split())
        check_alone(folder / name, source, place)


def try_find_package(folder, compiler, prefix, place):
    (folder / "CMakeLists.txt").write_text(PROJECT)
    for target, source in TARGETS.items():
        (folder / (target + ".c")).write_text(source)
    run("cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_PREFIX_PATH=%s" % prefix,
        "-DCMAKE_C_COMPILER=%s" % compiler)
    run("cmake", "--build", folder / "build")
    for target, source in TARGETS.items():
        check_alone(folder / "build" / target, source, place)
        check_command(prefix, folder / "build" / target, source, place)


def main():
    build, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = folder / "prefix"
        try:
            run("cmake", "--install", build, "--prefix", prefix)
            check_nothing_is_shadowed(prefix)
            place = find_one(prefix, "libibverbs.so.1").parent
            check_stands_alone(place)
            try_pkg_config(folder, compiler, prefix, place)
            try_find_package(folder, compiler, prefix, place)
        except Failure as failure:
            print(failure)
            return 1
    print("installed; built with pkg-config and with find_package")
    return 0


if __name__ == "__main__":
    sys.exit(main())
