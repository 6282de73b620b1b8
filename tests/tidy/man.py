#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lets mandoc look for mistakes in the manual pages.

Usage: man.py ROOT.  Prints what mandoc says; the exit status is 1 if it says anything.
"""
import pathlib
import subprocess
import sys


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = sorted((root / "man").glob("*.[1-9]"))
    if not pages:
        print("there are no manual pages in man/")
        return 1
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *map(str, pages)],
                          capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr + "%d manual pages" % len(pages))
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
