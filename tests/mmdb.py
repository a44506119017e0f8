# SPDX-License-Identifier: Apache-2.0
"""Writes small databases of addresses in the format of MaxMind (https://maxmind.github.io/MaxMind-DB/)."""
import ipaddress
import struct

MARKER = b"\xab\xcd\xefMaxMind.com"
STRING, MAP, UINT16, UINT32, UINT64, ARRAY = 2, 7, 5, 6, 9, 11


def control(kind, size):
    """The control byte of a value; `kind` above 7 takes a second byte."""
    assert size < 29
    return bytes([kind << 5 | size]) if kind <= 7 else bytes([size, kind - 7])


def encode(value, kind=UINT32):
    if isinstance(value, str):
        return control(STRING, len(value.encode())) + value.encode()
    if isinstance(value, dict):
        return control(MAP, len(value)) + b"".join(encode(k) + encode(*v) if isinstance(v, tuple) else encode(k) + encode(v)
                                                   for k, v in value.items())
    if isinstance(value, list):
        return control(ARRAY, len(value)) + b"".join(map(encode, value))
    size = (value.bit_length() + 7) // 8
    return control(kind, size) + value.to_bytes(size, "big")


def write(path, records):
    """Writes {network: record} as a tree for IPv6, which has IPv4 networks below ::/96."""
    nodes, data, offsets = [[None, None]], b"", {}
    for network, record in records.items():
        network = ipaddress.ip_network(network)
        bits, length = int(network.network_address), network.prefixlen + (96 if network.version == 4 else 0)
        key = repr(record)
        if key not in offsets:
            offsets[key] = len(data)
            data += encode(record)
        at = 0
        for i in range(length):
            side = bits >> (127 - i) & 1
            if i == length - 1:
                nodes[at][side] = ("data", offsets[key])
            elif nodes[at][side] is None:
                nodes.append([None, None])
                nodes[at][side] = len(nodes) - 1
            if i < length - 1:
                at = nodes[at][side]
    n = len(nodes)
    tree = b"".join(struct.pack(">I", n if r is None else n + 16 + r[1] if isinstance(r, tuple) else r) for node in nodes for r in node)
    metadata = {"node_count": n, "record_size": (32, UINT16), "ip_version": (6, UINT16), "database_type": "Test", "languages": ["en"],
                "binary_format_major_version": (2, UINT16), "binary_format_minor_version": (0, UINT16),
                "build_epoch": (1700000000, UINT64), "description": {"en": "test"}}
    path.write_bytes(tree + bytes(16) + data + MARKER + encode(metadata))
