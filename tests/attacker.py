# SPDX-License-Identifier: Apache-2.0
"""Hostile HTTP/2 clients, and checks of the server's reaction."""
import contextlib
import itertools

import h2frames as f
from http2 import Http2Client
from prometheus import parse

METRICS = {"plugins": ["metrics"], "top": "[METRICS]\n    Metrics /metrics\n"}


def bunches(pieces, size=16):
    """Yields the pieces joined in groups of `size`: with one write for each piece, the client would be slower than the server."""
    pieces = iter(pieces)
    while bunch := b"".join(itertools.islice(pieces, size)):
        yield bunch


class Attacker(Http2Client):
    """Sends arbitrary bytes and reads only the connection-level frames of the server."""

    def meet(self, kind, flags, number, payload):
        if kind == f.GOAWAY:
            self.on_goaway(flags, number, payload)

    def attack(self, pieces):
        """Sends all pieces, or as many as the server accepts before it closes the connection."""
        with contextlib.suppress(OSError):
            for bunch in bunches(pieces):
                self.send(bunch)
        return self

    def verdict(self):
        """Waits for the end of the connection; returns the error code of the server's last GOAWAY, or None without one."""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            self.end_of_connection()
        return self.goaway and self.goaway[1]


def attack(server, pieces, **how):
    """Runs the attack on a new connection and returns the error code of the server's GOAWAY."""
    with assail(server, **how) as c:
        return c.attack(pieces).verdict()


def assail(server, **how):
    if server.encrypts[0]:
        how["tls"] = server.encryption.context("h2")
    return Attacker(server.addresses[0], **how)


def ended_for(server, reason):
    """Returns how many HTTP/2 connections the server has closed for `reason`."""
    return parse(server.get("/metrics").text)["monkey_http2_ended_total", {"reason": reason}]
