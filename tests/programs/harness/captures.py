# SPDX-License-Identifier: BSD-2-Clause
"""Captures: made, and read again, by what is written about the formats and not by our own code."""
import shutil
import struct
import subprocess


def pcap(frames, order="<"):
    """The format as it was before."""
    return struct.pack(order + "IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) + b"".join(
        struct.pack(order + "IIII", 1700000000, i, len(f), len(f)) + f
        for i, f in enumerate(frames))


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def pcapng(frames, order="<"):
    """Every third packet is a simple one."""
    def packet(i, frame):
        if i % 3 == 2:
            return block(order, 3, struct.pack(order + "I", len(frame)) + frame)
        return block(order, 6, struct.pack(order + "IIIII", 0, 0, i, len(frame), len(frame)) +
                     frame)

    return (block(order, 0x0a0d0d0a, struct.pack(order + "IHHq", 0x1a2b3c4d, 1, 0, -1)) +
            block(order, 1, struct.pack(order + "HHI", 1, 0, 0)) +
            b"".join(packet(i, f) for i, f in enumerate(frames)))


def read_recording(path):
    """[(nanoseconds, frame)] of a file that consists of one section and enhanced packets."""
    with open(path, "rb") as f:
        data = f.read()
    frames, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from("=II", data, at)
        body = data[at + 8:at + length - 4]
        assert struct.unpack_from("=I", data, at + length - 4) == (length,), "damaged at %d" % at
        assert (kind == 0x0a0d0d0a) == (at == 0)
        if kind == 1:
            assert struct.unpack_from("=H", body) == (1,), "the link is not Ethernet's"
            assert struct.pack("=HHB", 9, 1, 9) in body, "times are not nanoseconds"
        if kind == 6:
            interface, high, low, captured, original = struct.unpack_from("=IIIII", body)
            assert interface == 0 and captured == original
            frames.append((high << 32 | low, body[20:20 + captured]))
        at += length
    return frames


def read_by_tshark(path):
    """The frames as Wireshark sees them, or None where it is not installed."""
    if not shutil.which("tshark"):
        return None
    text = subprocess.run(["tshark", "-r", path, "-T", "json", "-x"], capture_output=True,
                          check=True, text=True).stdout
    import json
    return [bytes.fromhex(p["_source"]["layers"]["frame_raw"][0]) for p in json.loads(text)]
