#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Is there whatever the programs on this machine want of the libraries that ours stand in for?

Usage: imports.py FOLDER, with our libraries.  Each file of the places below that is linked with
one of them is asked which symbols it imports, by name and version; a file that says no version
wants the name only.  Nearly all are bound when they start: one that is missing, and the program
does not.  The exit status is 1 if any is, 77 if no such program is installed.
"""
import pathlib
import re
import subprocess
import sys

PLACES = (("/usr/bin", "ib_*"), ("/usr/bin", "ibv_*"), ("/usr/bin", "raw_ethernet_*"),
          ("/usr/bin", "mlx5_*"),
          ("/usr/lib/python3/dist-packages/pyverbs", "**/*.so"),
          ("/usr/lib/x86_64-linux-gnu/ucx", "*.so*"),
          ("/usr/lib/x86_64-linux-gnu", "libfabric.so.*"),
          ("/usr/lib/x86_64-linux-gnu", "libefa.so.*"),
          ("/usr/lib/x86_64-linux-gnu", "librdmacm.so.*"))


def symbols_of(path, which):
    done = subprocess.run(["nm", "-D", which, "--with-symbol-versions", str(path)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return [line.split()[-1] for line in done.stdout.splitlines() if line.strip()]


def exports_of(library):
    """Both "name@version" and, for those that have none, "name"."""
    found = set()
    for symbol in symbols_of(library, "--defined-only"):
        name, _, version = symbol.partition("@")
        found |= {name, name + "@" + version.lstrip("@")}
    return found


def libraries_of(path):
    done = subprocess.run(["readelf", "-d", str(path)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout))


def main():
    ours = {path.name: exports_of(path)
            for path in sorted(pathlib.Path(sys.argv[1]).glob("*.so.1"))}
    have = set().union(*ours.values())
    files = wanted = wrong = 0
    for place, pattern in PLACES:
        for path in sorted(pathlib.Path(place).glob(pattern)):
            if path.is_symlink() or not libraries_of(path) & set(ours):
                continue
            files += 1
            for symbol in symbols_of(path, "--undefined-only"):
                if not re.match(r"_?_?(ibv_|mlx5dv_|verbs_)", symbol):
                    continue
                wanted += 1
                if symbol not in have:
                    print("%s wants %s" % (path, symbol))
                    wrong += 1
    print("%d files want %d symbols, %d are missing" % (files, wanted, wrong))
    return 1 if wrong else 0 if files else 77


if __name__ == "__main__":
    sys.exit(main())
