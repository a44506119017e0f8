# SPDX-License-Identifier: Apache-2.0
"""Clients of HTTP/2 that mean no good, and what a server is to do with them."""
import contextlib
import itertools

import h2frames as f
from http2 import Http2Client
from prometheus import parse

METRICS = {"plugins": ["metrics"], "top": "[METRICS]\n    Metrics /metrics\n"}


def bunches(pieces, size=16):
    """So many at a time: to send each by itself takes the client longer than the server takes for it."""
    pieces = iter(pieces)
    while bunch := b"".join(itertools.islice(pieces, size)):
        yield bunch


class Attacker(Http2Client):
    """Sends what it likes, and looks at what the server says of the connection only."""

    def meet(self, kind, flags, number, payload):
        if kind == f.GOAWAY:
            self.on_goaway(flags, number, payload)

    def attack(self, pieces):
        """Sends them all, as far as the server goes along."""
        with contextlib.suppress(OSError):
            for bunch in bunches(pieces):
                self.send(bunch)
        return self

    def verdict(self):
        """The reason in the server's last GOAWAY, at the end of the connection."""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            self.end_of_connection()
        return self.goaway and self.goaway[1]


def attack(server, pieces, **how):
    """What the server says in the end."""
    with assail(server, **how) as c:
        return c.attack(pieces).verdict()


def assail(server, **how):
    if server.encrypts[0]:
        how["tls"] = server.encryption.context("h2")
    return Attacker(server.addresses[0], **how)


def ended_for(server, reason):
    """How many connections of HTTP/2 the server has ended for it."""
    return parse(server.get("/metrics").text)["monkey_http2_ended_total", {"reason": reason}]
