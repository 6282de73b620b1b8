# SPDX-License-Identifier: BSD-2-Clause
"""Running other people's programs on the emulated NIC: one, or a server and its client.

Used by the tests of this directory.  Ends only processes that it started.  Nothing sleeps
for a fixed time: a server is ready when its port listens.
"""
import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest

VERBENA = os.environ.get("VERBENA_BIN", "verbena")
# Which libibverbs the programs get: the system's over the shim, or ours.
LANE = os.environ.get("VERBENA_LANE", "stock")
LANE_OPTIONS = {"stock": (), "own": ("--own",)}[LANE]
GID_INDEX = "3"
DEADLINE_S = 60
SKIPPED = 77

os.environ.setdefault("VERBENA_FABRIC", "test-programs-%d" % os.getpid())


class Result:
    """What a program did: status (negative: signal), out, err."""

    def __init__(self, status, out, err, command):
        self.status, self.out, self.err, self.command = status, out, err, command

    def __str__(self):
        return "%s: status %s\n--- stdout\n%s--- stderr\n%s" % (
            " ".join(self.command), self.status, self.out, self.err)


def verbena(*command, options=("--quiet",)):
    """The command line that runs @command on the emulated NIC, in the lane of this run."""
    return [VERBENA, "run", *LANE_OPTIONS, *options, "--", *command]


def environment(changes):
    """This process's environment with changes; None takes a variable away."""
    env = dict(os.environ)
    for name, value in (changes or {}).items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def end(process):
    """End a child of ours, and read what it still has to say."""
    if process.poll() is None:
        process.kill()
    return process.communicate()


def start(command, env=None):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, errors="replace",
                            env=environment(env))


def finish(process, command, deadline_s=DEADLINE_S):
    try:
        out, err = process.communicate(timeout=deadline_s)
        status = process.returncode
    except subprocess.TimeoutExpired:
        out, err = end(process)
        status = "none within %d s" % deadline_s
    return Result(status, out, err, command)


def run(command, env=None, deadline_s=DEADLINE_S):
    return finish(start(command, env), command, deadline_s)


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def is_listening(port):
    wanted = re.compile(r"^\s*\d+: [0-9A-F]+:%04X [0-9A-F]+:0000 0A " % port, re.M)
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as f:
                if wanted.search(f.read()):
                    return True
        except OSError:
            pass
    return False


def wait_until_listening(port, server):
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and server.poll() is None:
        if is_listening(port):
            return
        time.sleep(0.005)


def run_pair(program, port_option="-p", env=None, prefix=(), client_program=None):
    """Run @program as server, and again with 127.0.0.1 at the end as client."""
    port = str(free_port())
    command = [*prefix, *verbena(*program, port_option, port)]
    client_command = [*prefix, *verbena(*(client_program or program), port_option, port,
                                        "127.0.0.1")]
    server = start(command, env)
    try:
        wait_until_listening(int(port), server)
        client = run(client_command, env)
        if client.status != 0:
            end(server)
            return Result("client failed", "", "", command), client
        return finish(server, command), client
    finally:
        if server.poll() is None:
            end(server)


def need(*programs):
    """Skip the whole file where a program is not installed."""
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        print("skipped: not installed:", *missing)
        sys.exit(SKIPPED)


def take_numbers(**defaults):
    """Options like --kills N of the command line, which is rid of them."""
    parser = argparse.ArgumentParser(add_help=False)
    for name, default in defaults.items():
        parser.add_argument("--" + name, type=int, default=default)
    known, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return [getattr(known, name) for name in defaults]


def main():
    unittest.main(module="__main__", verbosity=2)
