# SPDX-License-Identifier: Apache-2.0
"""Valid and invalid HTTP/2 frames (RFC 9113, section 6) as bytes."""
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER = 9
FRAME_MAX = 16384  # default SETTINGS_MAX_FRAME_SIZE
WINDOW = 65535  # initial window size
WINDOW_MAX = (1 << 31) - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
PRIORITY_UPDATE = 0x10  # RFC 9218
KINDS = {DATA: "DATA", HEADERS: "HEADERS", PRIORITY: "PRIORITY", RST_STREAM: "RST_STREAM", SETTINGS: "SETTINGS",
         PUSH_PROMISE: "PUSH_PROMISE", PING: "PING", GOAWAY: "GOAWAY", WINDOW_UPDATE: "WINDOW_UPDATE",
         CONTINUATION: "CONTINUATION", PRIORITY_UPDATE: "PRIORITY_UPDATE"}

END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
FLAGS = {DATA: END_STREAM | PADDED, HEADERS: END_STREAM | END_HEADERS | PADDED | WITH_PRIORITY, SETTINGS: ACK, PING: ACK,
         CONTINUATION: END_HEADERS, PUSH_PROMISE: END_HEADERS | PADDED}  # for each frame type, the flags that have a meaning

# SETTINGS parameters
TABLE_SIZE, ENABLE_PUSH, STREAMS_MAX, INITIAL_WINDOW, FRAME_SIZE, HEAD_SIZE = range(1, 7)
CONNECT_PROTOCOL, NO_OLD_PRIORITIES = 8, 9

ERRORS = ["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
          "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
          "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"]


def error_name(code):
    return ERRORS[code] if code < len(ERRORS) else hex(code)


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def data(stream, content=b"", end=False, padding=None):
    if padding is None:
        return frame(DATA, END_STREAM * end, stream, content)
    return frame(DATA, END_STREAM * end | PADDED, stream, bytes([padding]) + content + bytes(padding))


def headers(stream, block, end=True, more=False):
    """`more`: a CONTINUATION frame follows."""
    return frame(HEADERS, END_STREAM * end | END_HEADERS * (not more), stream, block)


def continuation(stream, block=b"", more=False):
    return frame(CONTINUATION, END_HEADERS * (not more), stream, block)


def header_block(stream, block, end=True, size=FRAME_MAX):
    """HEADERS, followed by as many CONTINUATION frames as needed."""
    parts = [block[i:i + size] for i in range(0, len(block), size)] or [b""]
    out = headers(stream, parts[0], end, more=len(parts) > 1)
    return out + b"".join(continuation(stream, p, more=i < len(parts) - 1) for i, p in enumerate(parts[1:], 1))


def priority(stream, on=0, weight=16, exclusive=False):
    return frame(PRIORITY, 0, stream, struct.pack(">IB", on | exclusive << 31, weight - 1))


def rst_stream(stream, code="CANCEL"):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", ERRORS.index(code)))


def settings(values=(), ack=False):
    """`values` is a dict or a list of pairs."""
    pairs = values.items() if isinstance(values, dict) else values
    return frame(SETTINGS, ACK * ack, 0, b"".join(struct.pack(">HI", name, value) for name, value in pairs))


def ping(payload=b"\0" * 8, ack=False):
    return frame(PING, ACK * ack, 0, payload)


def goaway(last=0, code="NO_ERROR", debug=b""):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, ERRORS.index(code)) + debug)


def window_update(stream, more):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", more))


def priority_update(stream, value):
    return frame(PRIORITY_UPDATE, 0, 0, struct.pack(">I", stream) + value.encode())


def pairs_of(payload):
    return [struct.unpack_from(">HI", payload, at) for at in range(0, len(payload), 6)]


def literal(name, value):
    """A header field in HPACK, neither indexed nor Huffman-coded: every byte as given."""
    def text(data):
        return integer(len(data), 7) + data

    return b"\x10" + text(name.encode("latin-1")) + text(value.encode("latin-1"))


def integer(value, bits, first=0):
    """HPACK integer encoding (RFC 7541, section 5.1)."""
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([first | value])
    out, value = bytearray([first | limit]), value - limit
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def block_of(pairs):
    """A header block that does not change the dynamic table."""
    return b"".join(literal(name, value) for name, value in pairs)


def request(target="/", method="GET", fields=(), scheme="http", authority="localhost"):
    """The header fields of a request, with the pseudo-headers first."""
    return [(":method", method), (":scheme", scheme), (":authority", authority), (":path", target), *fields]
