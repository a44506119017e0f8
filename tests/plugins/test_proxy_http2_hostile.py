# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 backends that break the rules: each of their requests fails, other connections work, and memory stays bounded."""
import contextlib
import time

import pytest

import h2frames as h2
from http2_backend import Http2Backend, answer
from proc import memory_kb, wait_until

OK = [(":status", "200")]


@pytest.fixture
def proxy(monkey):
    def start(backend, options="", keys="", **how):
        return monkey(plugins=["proxy"], sections=f"[UPSTREAM]\n    Name group\n    Server {backend.address}\n    {keys}\n"
                      f"[ROUTES]\n    /* proxy h2c://group {options}\n", **how)

    return start


def head(pairs, stream=1, end=True):
    return h2.header_block(stream, h2.block_of(pairs), end)


STREAM_ERRORS = {
    "no status": head([("a", "b")]),
    "two statuses": head([(":status", "200"), (":status", "200")]),
    "status after a header": head([("a", "b"), (":status", "200")]),
    "status of two digits": head([(":status", "20")]),
    "status with letters": head([(":status", "2x0")]),
    "status 101": head([(":status", "101")]),
    "status 600": head([(":status", "600")]),
    "pseudo-header of a request": head([(":status", "200"), (":path", "/")]),
    "name in capitals": head(OK + [("X-A", "b")]),
    "name with a space": head(OK + [("x a", "b")]),
    "empty name": head(OK + [("", "b")]),
    "name with a line end": head(OK + [("x\r\ny", "b")]),
    "value with a line end": head(OK + [("x", "a\r\nSet-Cookie: evil=1")]),
    "value with a line feed": head(OK + [("x", "a\nb")]),
    "value with NUL": head(OK + [("x", "a\0b")]),
    "value with a space around": head(OK + [("x", " a")]),
    "connection": head(OK + [("connection", "close")]),
    "keep-alive": head(OK + [("keep-alive", "5")]),
    "transfer-encoding": head(OK + [("transfer-encoding", "chunked")]),
    "upgrade": head(OK + [("upgrade", "h2c")]),
    "two lengths": head(OK + [("content-length", "1"), ("content-length", "2")], end=False) + h2.data(1, b"x", True),
    "length with letters": head(OK + [("content-length", "x")], end=False) + h2.data(1, b"x", True),
    "head of 40 KB": head(OK + [(f"x{i}", "y" * 1000) for i in range(40)]),
    "200 headers": head(OK + [(f"x{i}", "y") for i in range(200)]),
    "data without a head": h2.data(1, b"x", True),
    "interim response that ends": head([(":status", "103")]),
    "20 interim responses": head([(":status", "103")], end=False) * 20 + head(OK),
    "window update of 0": h2.window_update(1, 0),
    "window above the maximum": h2.window_update(1, h2.WINDOW_MAX),
}

# Both sides of these streams have ended when the error is found.
FOUND_BY_THE_PARSER = ("two lengths", "length with letters", "200 headers")

CONNECTION_ERRORS = {
    "HTTP/1": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "frame above the maximum": h2.frame(h2.DATA, 0, 1, b"x" * (h2.FRAME_MAX + 1)),
    "data on stream 0": h2.data(0, b"x"),
    "data on an idle stream": h2.data(99, b"x"),
    "head on stream 0": head(OK, 0),
    "head on an idle stream": head(OK, 3),
    "head on an even stream": head(OK, 2),
    "padding longer than the frame": h2.frame(h2.DATA, h2.PADDED, 1, b"\xffx"),
    "invalid HPACK": h2.headers(1, b"\xff\xff\xff\xff\xff\xff"),
    "index beyond the table": h2.headers(1, b"\xfe"),
    "push promise": h2.frame(h2.PUSH_PROMISE, h2.END_HEADERS, 1, b"\0\0\0\2"),
    "settings on a stream": h2.frame(h2.SETTINGS, 0, 1, b""),
    "settings of 5 bytes": h2.frame(h2.SETTINGS, 0, 0, b"12345"),
    "settings ack with content": h2.frame(h2.SETTINGS, h2.ACK, 0, b"123456"),
    "push enabled": h2.settings({h2.ENABLE_PUSH: 1}),
    "window above the maximum in settings": h2.settings({h2.INITIAL_WINDOW: 1 << 31}),
    "frame size of 100": h2.settings({h2.FRAME_SIZE: 100}),
    "ping of 7 bytes": h2.frame(h2.PING, 0, 0, b"1234567"),
    "ping on a stream": h2.frame(h2.PING, 0, 1, b"12345678"),
    "goaway of 4 bytes": h2.frame(h2.GOAWAY, 0, 0, b"1234"),
    "reset of 3 bytes": h2.frame(h2.RST_STREAM, 0, 1, b"123"),
    "reset of an idle stream": h2.rst_stream(99),
    "window update on stream 0 of 0": h2.window_update(0, 0),
    "window of the connection above the maximum": h2.window_update(0, h2.WINDOW_MAX),
    "continuation without headers": h2.continuation(1),
    "continuation of another stream": h2.headers(1, b"", more=True) + h2.continuation(3),
    "data between headers and continuation": h2.headers(1, b"", more=True) + h2.data(1, b"x"),
    "endless continuation": h2.headers(1, b"", more=True) + h2.continuation(1, more=True) * 100,
    "continuation of 1 MB": h2.headers(1, b"", more=True) + h2.continuation(1, h2.literal("x", "y" * 16000), more=True) * 64,
    "end": b"",
}


class Liar(Http2Backend):
    """Responds to the first request with these bytes, and correctly to the requests of later connections."""

    def __init__(self, lies, closes=True):
        self.lies, self.closes = lies, closes
        super().__init__(script=self._lie)

    def _lie(self, session):
        request = session.request()
        self.requests.append(request)
        if len(self.sessions) > 1:
            session.head(request.stream, 200, end=True)
            session.next()
        session.send(self.lies)
        if self.closes:
            return
        with contextlib.suppress(OSError, EOFError):
            session.next()


@pytest.mark.parametrize("name", STREAM_ERRORS)
def test_hostile_stream_gives_502(proxy, name):
    with Liar(STREAM_ERRORS[name], closes=False) as backend:
        server = proxy(backend)
        assert server.get("/").status == 502
        if name not in FOUND_BY_THE_PARSER:
            wait_until(lambda: backend.sessions[0].resets, "the stream is reset")
        assert backend.sessions[0].goaway is None


@pytest.mark.parametrize("name", CONNECTION_ERRORS)
def test_hostile_connection_gives_502_and_is_replaced(proxy, name):
    with Liar(CONNECTION_ERRORS[name], closes=name == "end") as backend:
        server = proxy(backend)
        assert server.get("/", "POST", body=b"x").status == 502
        assert server.get("/").status == 200
        assert backend.connections == 2


@pytest.mark.parametrize("first", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0" * 100, h2.ping(), h2.settings(ack=True),
                                   h2.settings({h2.STREAMS_MAX: 0}), h2.settings({h2.ENABLE_PUSH: 1})])
def test_hostile_first_frame_gives_502(proxy, first):
    with Http2Backend(first=first) as backend:
        server = proxy(backend)
        assert server.get("/").status == 502
        assert "HTTP/2 with the server" in server.log


FLOODS = {
    "ping": h2.ping(),
    "ping ack": h2.ping(ack=True),
    "settings": h2.settings({h2.INITIAL_WINDOW: 70_000}),
    "priority": h2.priority(1),
    "unknown frame": h2.frame(0x77, 0, 1, b"x"),
    "tiny window": h2.window_update(0, 1),
    "reset of a closed stream": h2.rst_stream(1),
    "empty data": h2.data(3, b""),
}


@pytest.mark.parametrize("name", FLOODS)
def test_hostile_flood_ends_the_connection(proxy, name):
    def talk(session):
        first = session.request()
        session.head(first.stream, 200, end=True)
        second = session.request()
        session.head(second.stream, 200)
        with pytest.raises(OSError):
            for _ in range(1000):
                session.send(FLOODS[name] * 1000)
        ended.append(True)

    ended = []
    with Http2Backend(script=talk) as backend:
        server = proxy(backend)
        with server.connect() as c:
            assert c.ask("/").read().status == 200
            c.ask("/")
            wait_until(lambda: ended, "the flood ends")
        assert memory_kb(server.workers[0]) < 300_000


def test_hostile_interim_bomb_needs_little_memory(proxy):
    """A small header block that refers to a large entry of the table, as interim responses without end."""
    status = h2.literal(":status", "103")
    entry = b"\x40" + h2.integer(1, 7) + b"x" + h2.integer(3000, 7) + b"y" * 3000  # the first entry of the dynamic table
    first, again = h2.headers(1, status + entry, False), h2.headers(1, status + b"\xbe" * 9, False)

    def talk(session):
        session.request()
        with contextlib.suppress(OSError):
            session.send(first)
            for _ in range(200):
                session.send(again * 1000)

    with Http2Backend(script=talk) as backend:
        server = proxy(backend)
        assert server.get("/").status == 502
        assert memory_kb(server.workers[0]) < 300_000


def test_hostile_body_is_cut_at_its_length(proxy):
    with Http2Backend(lambda _: answer(b"x" * 10, fields=[("content-length", "5")])) as backend:
        server = proxy(backend)
        for _ in range(2):  # the bytes beyond the length belong to no response
            reply = server.get("/")
            assert (reply.status, reply.body) == (200, b"xxxxx") or reply.status == 502


def test_hostile_backend_that_ignores_windows_is_stopped(proxy):
    def talk(session):
        session.request()
        session.head(1, 200)
        with contextlib.suppress(OSError):
            for _ in range(4000):
                session.send(h2.data(1, b"x" * 16000))
        ended.append(time.monotonic())

    ended = []
    with Http2Backend(script=talk) as backend, proxy(backend, "stream").connect(receive_buffer=4096) as c:
        c.ask("/")
        wait_until(lambda: ended, "the backend is stopped")
