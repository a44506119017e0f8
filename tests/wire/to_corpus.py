#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Creates seeds for the fuzz targets from the wire cases:  to_corpus.py FOLDER

Writes FOLDER/TARGET/wire-*, and removes seeds of deleted cases. The build calls it. Long cases are skipped.
"""
import sys
from pathlib import Path

from cases import read_cases

SIZE_MAX = 512


def heads(case):
    if case.file in ("heads.txt", "hosts.txt", "framing.txt"):
        yield case.data


def bodies(case):
    if case.file == "chunked.txt":
        yield case.data.split(b"\r\n\r\n", 1)[1]


def targets(case):
    parts = case.data.split(b"\r\n")[0].split(b" ")
    if case.file == "targets.txt" and len(parts) == 3:
        yield parts[1]


def flows(case):
    """Yields the byte that selects the default host, followed by the request head and the data after it."""
    if case.file in ("targets.txt", "framing.txt"):
        yield b"\x03" + case.data


def connections(case):
    """Yields two seeds. In one, the input arrives at once; in the other, 31 bytes arrive one by one, and the peer reads slowly."""
    yield b"\x00" + case.data
    yield b"\x1f" + b"\x0a" * 31 + case.data


def lines(case):
    """Yields six numbers, followed by the texts of an access record."""
    parts = case.data.split(b"\r\n")
    yield b"\xc0\x00\x02\x01\x05\x14" + b"\f".join([*parts[0].split(b" ")[:2], *parts[1:4]])


SEEDS = {"fuzz_http_head": heads, "fuzz_http_chunked": bodies, "fuzz_http_target": targets, "fuzz_web_dispatch": flows,
         "fuzz_connection_h1": connections, "fuzz_setup_accesslog": lines}


def main():
    corpus = Path(sys.argv[1])
    cases = list(read_cases())
    for target, pick in SEEDS.items():
        folder = corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        seeds, seen = {}, set()
        for case in cases:
            for number, data in enumerate(pick(case)):
                if len(data) <= SIZE_MAX and data not in seen:
                    seen.add(data)
                    seeds[f"wire-{case.id}"[:78] + (f"-{number}" if number else "")] = data
        for old in folder.glob("wire-*"):
            if old.name not in seeds:
                old.unlink()
        for name, data in seeds.items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
