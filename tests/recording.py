# SPDX-License-Identifier: Apache-2.0
"""Recordings of the plugin recorder: see include/monkey/recording.h."""
import struct

HEADER, SLOT, RECORD = 4096, 64, 512
OPEN, ENDED = 1, 2


def recording(*slots):
    """A recording with 16 records in both rings of each slot. Slots are lists of records."""
    content = (b"monkey recorder\n" + struct.pack("<5I", 2, RECORD, len(slots), 16, 16)).ljust(HEADER, b"\0")
    size = -(-(SLOT + 32 * RECORD) // HEADER) * HEADER
    return content + b"".join((bytes(SLOT) + b"".join(slot)).ljust(size, b"\0") for slot in slots)


def packed(path=b"/", host=b"", began_ms=1_796_000_000_000, duration_us=0, serial=1, status=200, state=ENDED, client=b"\x7f\0\0\1"):
    """A record of `recording`."""
    ip = bytes(10) + b"\xff\xff" + client
    return (struct.pack("<5Q4IH6B", 2 * serial, began_ms, duration_us, 0, 0, 0, 0, 0, 0, status, 0, state, 11, 1, 0, 0) +
            bytes([len(host), len(path), 0, 0, 0, 0, 0, 0]) + struct.pack("<16sHBBI", ip, 80, 0, 0, 1) + host + path).ljust(RECORD - 8, b"\0") + struct.pack("<Q", 2 * serial)
