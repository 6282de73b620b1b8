#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts what ran: one line "N passed, N failed, N skipped" from the runners' own reports.

Usage: tally.py RESULTS-DIRECTORY... [--failed-steps N]

A results directory holds ctest.xml (what ctest saw) and cases/NAME.xml (what the Criterion
program NAME saw, case by case).  A program counts by its cases; if ctest failed it although
no case did (a crash at the end, a sanitizer's report, a timeout), that is one failure more.
Everything else counts as one test.  Steps that failed before anything could run (a build)
are added by the caller.  The exit status is 0 only if something passed and nothing failed.
"""
import argparse
import pathlib
import sys
import xml.etree.ElementTree as xml


def count_cases(path):
    """(passed, failed, skipped) of one Criterion report."""
    passed = failed = skipped = 0
    for case in xml.parse(path).iter("testcase"):
        status = case.get("status")
        if status == "PASSED":
            passed += 1
        elif status == "SKIPPED":
            skipped += 1
        else:
            failed += 1
    return passed, failed, skipped


def count_test(test, cases):
    """(passed, failed, skipped) of one line of ctest's report."""
    status = test.get("status")
    has_failed = status == "fail"
    report = cases / (test.get("name") + ".xml")
    if not report.exists():
        return (int(status == "run"), int(has_failed), int(status not in ("run", "fail")))
    try:
        passed, failed, skipped = count_cases(report)
    except xml.ParseError:	# the program died while it wrote
        return (0, 1, 0)
    return passed, max(failed, int(has_failed)), skipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results", nargs="*", type=pathlib.Path)
    parser.add_argument("--failed-steps", type=int, default=0)
    args = parser.parse_args()
    total = [0, args.failed_steps, 0]
    for directory in args.results:
        for test in xml.parse(directory / "ctest.xml").iter("testcase"):
            counts = count_test(test, directory / "cases")
            total = [a + b for a, b in zip(total, counts)]
    print("%d passed, %d failed, %d skipped" % tuple(total))
    return 0 if total[0] and not total[1] else 1


if __name__ == "__main__":
    sys.exit(main())
