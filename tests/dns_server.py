# SPDX-License-Identifier: Apache-2.0
"""A scripted name server on loopback, over UDP and TCP."""
import contextlib
import socket
import struct
import threading

A, CNAME, AAAA, SRV, TXT = 1, 5, 28, 33, 16


def name(text):
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".") if label) + b"\0"


def record(owner, kind, data, ttl=60):
    return (owner if isinstance(owner, bytes) else name(owner)) + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def a(owner, address, ttl=60):
    return record(owner, A, socket.inet_aton(address), ttl)


def aaaa(owner, address, ttl=60):
    return record(owner, AAAA, socket.inet_pton(socket.AF_INET6, address), ttl)


def cname(owner, target, ttl=60):
    return record(owner, CNAME, name(target), ttl)


def srv(owner, target, port, priority=0, weight=0, ttl=60):
    return record(owner, SRV, struct.pack(">HHH", priority, weight, port) + name(target), ttl)


class DnsServer:
    """`records` maps (name, type) to the records of the answer, to a number (RCODE), to None (no answer), or to a function of the
    query that returns a whole message. Other names do not exist. A name with records of another type has no records."""

    def __init__(self, records=None, truncates=False):
        self.records, self.truncates = records or {}, truncates
        self.queries = []  # (name, type, protocol)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        while True:
            self.udp.bind(("127.0.0.1", 0))
            self.tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                self.tcp.bind(self.udp.getsockname())
                break
            except OSError:
                self.udp.close()
                self.tcp.close()
                self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.tcp.listen(16)
        for each in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=each, daemon=True).start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.udp.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for each in (self.udp, self.tcp):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def asked(self, owner, kind):
        return [each for each in self.queries if each[:2] == (owner, kind)]

    def answer(self, query, protocol):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        owner, kind = ".".join(labels), struct.unpack_from(">H", query, at + 1)[0]
        self.queries.append((owner, kind, protocol))
        known = any(each == owner for each, _ in self.records)
        found = self.records.get((owner, kind), [] if known else 3)
        if callable(found):
            return found(query)
        if found is None:
            return None
        rcode, records = (found, []) if isinstance(found, int) else (0, found)
        message = struct.pack(">HHHHHH", struct.unpack_from(">H", query)[0], 0x8180 | rcode, 1, len(records), 0, 0)
        message += query[12:at + 5] + b"".join(records)
        if protocol == "udp" and (self.truncates or len(message) > 512):
            message = message[:2] + struct.pack(">HHHHH", 0x8380, 1, 0, 0, 0) + query[12:at + 5]
        return message

    def _serve_udp(self):
        with contextlib.suppress(OSError):
            while True:
                query, client = self.udp.recvfrom(4096)
                if not query:  # shutdown() returns an empty datagram
                    return
                reply = self.answer(query, "udp")
                if reply is not None:
                    self.udp.sendto(reply, client)

    def _serve_tcp(self):
        with contextlib.suppress(OSError):
            while True:
                c, _ = self.tcp.accept()
                threading.Thread(target=self._serve_connection, args=(c,), daemon=True).start()

    def _serve_connection(self, c):
        with c, contextlib.suppress(OSError, struct.error):
            n = struct.unpack(">H", c.recv(2, socket.MSG_WAITALL))[0]
            reply = self.answer(c.recv(n, socket.MSG_WAITALL), "tcp")
            if reply is not None:
                c.sendall(struct.pack(">H", len(reply)) + reply)
                c.recv(1)
