# SPDX-License-Identifier: Apache-2.0
"""A WebSocket client that writes raw frames over any HTTP client, and so can violate the rules that libraries enforce."""
import os
import struct
import zlib

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN, RSV1 = 0x80, 0x40
HANDSHAKE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
             ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]
OFFER = ("Sec-WebSocket-Extensions", "permessage-deflate")


def frame(first, payload=b"", masked=True, form=None):
    """`first` is the first byte; `form` is the size of the length field: 7, 16 or 64 bits."""
    form = form or (7 if len(payload) < 126 else 16 if len(payload) < 1 << 16 else 64)
    length = {7: lambda n: bytes([n]), 16: lambda n: b"\x7e" + struct.pack(">H", n),
              64: lambda n: b"\x7f" + struct.pack(">Q", n)}[form](len(payload))
    if not masked:
        return bytes([first]) + length + payload
    mask = os.urandom(4)
    masked_payload = bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if len(payload) < 1 << 16 else xor(payload, mask)
    return bytes([first, length[0] | 0x80]) + length[1:] + mask + masked_payload


def xor(payload, mask):
    n = len(payload)
    whole = mask * (n // 4 + 1)
    return (int.from_bytes(payload, "big") ^ int.from_bytes(whole[:n], "big")).to_bytes(n, "big")


def closing(code, reason=b""):
    return frame(FIN | CLOSE, struct.pack(">H", code) + reason)


def deflate(data, final=False):
    z = zlib.compressobj(9, zlib.DEFLATED, -15)
    if final:
        return z.compress(data) + z.flush(zlib.Z_FINISH)
    return (z.compress(data) + z.flush(zlib.Z_SYNC_FLUSH))[:-4]


def inflate(data):
    return zlib.decompressobj(-15).decompress(data + b"\0\0\xff\xff")


class Peer:
    """One WebSocket on a client of its own: `with Peer(server, "/echo") as p: p.send(...)`."""

    def __init__(self, server, target, fields=(), listener=0, **how):
        self.c, self.got = server.connect(listener, **how), b""
        self.is_h2 = hasattr(self.c, "streams")
        if self.is_h2:
            self.c.wait(lambda: self.c.settings_received)
            fields = [("sec-websocket-version", "13"), *fields]
            self.c.ask(target, "CONNECT", fields, streamed=True, protocol="websocket")
        else:
            self.c.ask(target, fields=[*HANDSHAKE, *fields])
        self.head = self.c.read_head()
        assert self.head.status == (200 if self.is_h2 else 101), self.head.head

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.c.close()

    def send(self, data):
        self.c.more(data) if self.is_h2 else self.c.send(data)
        return self

    def text(self, text):
        return self.send(frame(FIN | TEXT, text.encode()))

    def read(self, n):
        if not self.is_h2:
            return self.c.read_exactly(n)
        while len(self.got) < n:
            self.got += self.c.read_some()
        data, self.got = self.got[:n], self.got[n:]
        return data

    def read_frame(self):
        """Returns (first byte, payload)."""
        first, length = self.read(2)
        assert not length & 0x80, "the server masks a frame"
        if length >= 126:
            length = int.from_bytes(self.read(2 if length == 126 else 8), "big")
        return first, self.read(length)

    def expect(self, text):
        first, payload = self.read_frame()
        assert (first, payload) == (FIN | TEXT, text.encode())
        return self

    def expect_close(self, code):
        """Expects the server to close with this code and to end the connection or stream; other frames may come first."""
        while True:
            first, payload = self.read_frame()
            if first == FIN | CLOSE:
                break
        assert (struct.unpack(">H", payload[:2])[0] if payload else None) == code
        self.expect_end()

    def expect_end(self):
        if self.is_h2:
            assert self.c.read_rest() == b""
        else:
            assert self.c.read_to_end() == b""
