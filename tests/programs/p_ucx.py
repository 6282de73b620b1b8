#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""UCX over the device: its transports by verbs, by its own mlx5 driver, and its protocols above.

UCX's rc_mlx5, ud_mlx5 and dc_mlx5 write work requests and ring doorbells themselves, so they tell
whether the rings and pages are those of the hardware.  How fast it is is not judged.
"""
import concurrent.futures
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
from programs import GID_INDEX, main, need, run_pair

need("ucx_perftest")

DEVICE = "mlx5_0:1"
ENV = {"UCX_NET_DEVICES": DEVICE, "UCX_IB_GID_INDEX": GID_INDEX}

# transport, test, layout of the data, bytes
TRANSPORTS = [
    ("rc_verbs", "am_lat", "short", 8), ("rc_verbs", "am_bw", "zcopy", 4096),
    ("rc_verbs", "put_lat", "bcopy", 64), ("rc_verbs", "get", "zcopy", 4096),
    ("rc_verbs", "fadd", "short", 8), ("rc_verbs", "cswap", "short", 8),
    ("ud_verbs", "am_lat", "short", 8), ("ud_verbs", "am_bw", "bcopy", 1024),
    ("rc_mlx5", "am_lat", "short", 8), ("rc_mlx5", "am_bw", "zcopy", 4096),
    ("rc_mlx5", "get", "bcopy", 64), ("rc_mlx5", "fadd", "short", 8),
    ("ud_mlx5", "am_lat", "bcopy", 64),
    ("dc_mlx5", "am_lat", "short", 8), ("dc_mlx5", "get", "bcopy", 64),
    ("dc_mlx5", "am_bw", "zcopy", 4096), ("dc_mlx5", "fadd", "short", 8),
]
# What UCX may choose from, test, bytes.
PROTOCOLS = [
    ("rc_v,ud_v", "tag_lat", 8), ("rc_v,ud_v", "tag_bw", 100000), ("rc_x,ud_x", "tag_lat", 8),
    ("rc_x,ud_x", "ucp_get", 4096), ("ud_v", "stream_bw", 4096), ("dc_x", "tag_lat", 8),
    ("dc_x", "ucp_get", 4096),
]
COUNT = ["-n", "100", "-w", "10"]


class Ucx(unittest.TestCase):
    def check(self, server, client):
        self.assertEqual((client.status, server.status), (0, 0), "%s\n%s" % (client, server))
        final = re.search(r"^Final: +(\d+) +([0-9.]+)", client.out, re.M)
        self.assertTrue(final and int(final.group(1)) > 0 and float(final.group(2)) > 0, client)

    def pairs(self, rows):
        """(what it is, the client's own options, changes of the environment)"""
        def pair(row):
            return run_pair(["ucx_perftest"], env=row[2],
                            client_program=["ucx_perftest", *row[1], *COUNT])

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for row, (server, client) in zip(rows, pool.map(pair, rows)):
                with self.subTest(row[0]):
                    self.check(server, client)

    def test_transports(self):
        self.pairs([(" ".join(row[:3]),
                     ["-d", DEVICE, "-x", row[0], "-t", row[1], "-D", row[2], "-s", str(row[3])],
                     ENV) for row in TRANSPORTS])

    def test_protocols(self):
        self.pairs([(" ".join(row[:2]), ["-t", row[1], "-s", str(row[2])],
                     {**ENV, "UCX_TLS": row[0] + ",self"}) for row in PROTOCOLS])


if __name__ == "__main__":
    main()
