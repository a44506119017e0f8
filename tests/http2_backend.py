# SPDX-License-Identifier: Apache-2.0
"""A scripted HTTP/2 backend (RFC 9113, prior knowledge or TLS): it records the requests, and a test decides about each frame."""
import contextlib
import struct
import threading

from hpack import Decoder, Encoder

import h2frames as h2
from backend import SECONDS, Backend, Request


class Http2Session:
    """One connection of the proxy. The constructor exchanges prefaces and SETTINGS."""

    def __init__(self, connection, settings=(), first=None):
        self.connection, self.decoder, self.encoder = connection, Decoder(), Encoder()
        self.lock, self.windows = threading.Condition(), {0: h2.WINDOW}
        self.resets, self.goaway, self.pings = {}, None, 0
        assert self.receive(len(h2.PREFACE)) == h2.PREFACE
        self.send(h2.settings(settings) if first is None else first)
        kind, _, _, self.client_settings = self.frame()
        assert kind == h2.SETTINGS
        self.send(h2.frame(h2.SETTINGS, h2.ACK))

    def send(self, data):
        with self.lock:
            self.connection.sendall(data)

    def receive(self, n):
        got = b""
        while len(got) < n:
            piece = self.connection.recv(n - len(got))
            if not piece:
                raise EOFError
            got += piece
        return got

    def frame(self):
        head = self.receive(h2.HEADER)
        length = int.from_bytes(head[:3], "big")
        return head[3], head[4], int.from_bytes(head[5:], "big"), self.receive(length)

    def next(self):
        """Returns the next frame of a request; handles all others."""
        while True:
            kind, flags, stream, payload = self.frame()
            if kind == h2.SETTINGS and not flags & h2.ACK:
                self.send(h2.frame(h2.SETTINGS, h2.ACK))
            elif kind == h2.PING and flags & h2.ACK:
                self.pings += 1
            elif kind == h2.PING:
                self.send(h2.frame(h2.PING, h2.ACK, 0, payload))
            elif kind == h2.WINDOW_UPDATE:
                with self.lock:
                    self.windows[stream] = self.windows.get(stream, h2.WINDOW) + struct.unpack(">I", payload)[0]
                    self.lock.notify_all()
            elif kind == h2.RST_STREAM:
                with self.lock:
                    self.resets[stream] = struct.unpack(">I", payload)[0]
                    self.lock.notify_all()
            elif kind == h2.GOAWAY:
                self.goaway = struct.unpack(">I", payload[4:8])[0]
            elif kind in (h2.HEADERS, h2.DATA):
                return kind, flags, stream, payload

    def request(self):
        """Reads a whole request."""
        kind, flags, stream, payload = self.next()
        while kind == h2.DATA:  # of a request that got an early response
            kind, flags, stream, payload = self.next()
        while not flags & h2.END_HEADERS:
            _, more, _, part = self.frame()
            payload, flags = payload + part, flags | more & h2.END_HEADERS
        fields = [(n, v) for n, v in self.decoder.decode(payload)]
        known = dict(fields)
        request = Request(known[":method"], known.get(":path"), fields)
        request.stream, request.session = stream, self
        request.is_open = not flags & h2.END_STREAM
        return request

    def body(self, request):
        """Reads the rest of the body, and returns its window at once."""
        while request.is_open:
            kind, flags, stream, payload = self.next()
            assert stream == request.stream, "the bodies of two requests at once"
            if kind == h2.HEADERS:
                request.trailers = list(self.decoder.decode(payload))
            else:
                request.body += payload
                if payload:
                    self.send(h2.window_update(0, len(payload)) + h2.window_update(stream, len(payload)))
            request.is_open = not flags & h2.END_STREAM

    def head(self, stream, status=200, fields=(), end=False):
        with self.lock:
            self.connection.sendall(h2.header_block(stream, self.encoder.encode([(":status", str(status)), *fields]), end))

    def trailers(self, stream, fields):
        with self.lock:
            self.connection.sendall(h2.header_block(stream, self.encoder.encode(fields), True))

    def data(self, stream, content, end=False):
        """Sends DATA as the windows of the proxy allow; another thread must read frames."""
        while content or end:
            with self.lock:
                self.lock.wait_for(lambda: not content or (self.windows[0] > 0 and self.windows.get(stream, h2.WINDOW) > 0)
                                   or stream in self.resets, SECONDS)
                if stream in self.resets:
                    return
                n = min(len(content), h2.FRAME_MAX, self.windows[0], self.windows.get(stream, h2.WINDOW)) if content else 0
                piece, content = content[:n], content[n:]
                self.windows[0] -= n
                self.windows[stream] = self.windows.get(stream, h2.WINDOW) - n
                self.connection.sendall(h2.data(stream, piece, end and not content))
            if end and not content:
                return


def answer(body=b"hello", status=200, fields=(), trailers=()):
    """A response of Http2Backend."""
    return status, list(fields), body.encode() if isinstance(body, str) else body, list(trailers)


class Http2Backend(Backend):
    """`reply(request)` returns answer(); it may also send frames itself and return None. Bodies are read before it is called,
    unless `early`. With `script`, `script(session)` does everything."""

    def __init__(self, reply=lambda _: answer(), settings=(), early=False, script=None, first=None, context=None):
        self.sessions, self.early, self.reply_to, self.on_session = [], early, reply, script
        self.settings, self.first, self.context = settings, first, context
        super().__init__(script=self._talk)

    def _talk(self, connection):
        if self.context:
            connection = self.context.wrap_socket(connection, server_side=True)
        session = Http2Session(connection, self.settings, self.first)
        self.sessions.append(session)
        if self.on_session:
            self.on_session(session)
            return
        while True:
            request = session.request()
            self.requests.append(request)
            request.connection = len(self.sessions)
            if not self.early:
                session.body(request)
            threading.Thread(target=self._respond, args=(session, request), daemon=True).start()

    def _respond(self, session, request):
        with contextlib.suppress(OSError):
            reply = self.reply_to(request)
            if reply is None:
                return
            status, fields, body, trailers = reply
            session.head(request.stream, status, fields, end=not body and not trailers)
            if body:
                session.data(request.stream, body, end=not trailers)
            if trailers:
                session.trailers(request.stream, trailers)


