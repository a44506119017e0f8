# SPDX-License-Identifier: Apache-2.0
"""Hostile HTTP/2 clients: each attack ends with the proper GOAWAY and is counted, the server still serves other clients, and its
memory does not grow.
"""
import itertools
import socket
import time

import pytest

import h2frames as f
from attacker import METRICS, assail, attack, bunches, ended_for
from client import Closed
from monkey import ROOT
from proc import RELEASE, descriptors, memory_kb, wait_until

pytestmark = pytest.mark.http2

GET = f.block_of(f.request("/a.txt"))
POST = f.block_of(f.request("/a.txt", "POST", [("content-length", "10")]))
MANY = 1_000_000  # exceeds the server's abuse budget


@pytest.fixture
def server(monkey, site):
    site.add("a.txt", "hello")
    site.add("large.bin", b"x" * 3_000_000)
    return monkey(**METRICS)


def is_served(server):
    with server.connect() as c:
        for _ in range(3):
            assert c.get("/a.txt").text == "hello"


def streams():
    return itertools.count(1, 2)


# Floods: each generator yields frames; FLOODS maps it to the reason under which the server counts the closed connection.

def rapid_reset():
    for i in streams():
        yield f.headers(i, GET) + f.rst_stream(i)


def resets_made_by_the_server(wrong):
    """The client misuses its streams so that the server has to reset them (CVE-2025-8671)."""
    for i in streams():
        yield f.headers(i, POST, end=False) + wrong(i)


def continuations(piece, first=f.block_of(f.request())):
    yield f.headers(1, first, more=True)
    while True:
        yield f.continuation(1, piece, more=True)


def heads_that_are_too_long():
    """Sends oversized heads, each in a single frame; the server refuses all of them."""
    for i in streams():
        yield f.headers(i, GET + f.literal("x", "y" * 12_000) + b"\x80")  # followed by an invalid HPACK block


def repeat(piece):
    return itertools.repeat(piece)


def on_an_open_stream(piece):
    yield f.headers(1, f.block_of(f.request("/a.txt", "POST")), end=False)
    yield from itertools.repeat(piece)


FLOODS = {
    "rapid reset": (rapid_reset, "resets"),
    "reset by too much content": (lambda: resets_made_by_the_server(lambda i: f.data(i, b"x" * 11)), "resets"),
    "reset by too little content": (lambda: resets_made_by_the_server(lambda i: f.data(i, b"x", end=True)), "resets"),
    "reset by a window of nothing": (lambda: resets_made_by_the_server(lambda i: f.window_update(i, 0)), "resets"),
    "reset by a window too large": (lambda: resets_made_by_the_server(lambda i: f.window_update(i, f.WINDOW_MAX)), "resets"),
    "reset by content after the end": (lambda: resets_made_by_the_server(lambda i: f.data(i, b"x" * 10, end=True) + f.data(i, b"x")), "resets"),
    "reset by a malformed head": (lambda: (f.headers(i, f.block_of([(":method", "GET")])) for i in streams()), "resets"),
    "continuation": (lambda: continuations(f.literal("x", "y" * 1000)), "long_head"),
    "small continuation": (lambda: continuations(b"\x82"), "long_head"),
    "empty continuation": (lambda: continuations(b""), "long_head"),
    "continuation that opens nothing": (lambda: continuations(b"", b""), "long_head"),
    "ping": (lambda: repeat(f.ping()), "pings"),
    "echoes of no ping": (lambda: repeat(f.ping(ack=True)), "pings"),
    "settings": (lambda: repeat(f.settings({f.INITIAL_WINDOW: 70_000})), "settings"),
    "empty settings": (lambda: repeat(f.settings()), "settings"),
    "large settings": (lambda: repeat(f.settings([(0xfff0, 1)] * 2700)), "settings"),
    "acknowledgements": (lambda: repeat(f.settings(ack=True)), "settings"),
    "empty content": (lambda: on_an_open_stream(f.data(1)), "empty_frames"),
    "padding alone": (lambda: on_an_open_stream(f.data(1, padding=0)), "empty_frames"),
    "priority": (lambda: repeat(f.priority(1)), "other_frames"),
    "priority update": (lambda: repeat(f.priority_update(1, "u=1")), "other_frames"),
    "frames of no known type": (lambda: repeat(f.frame(0x77, 0xff, 5, b"x")), "other_frames"),
    "tiny windows": (lambda: repeat(f.window_update(0, 1)), "tiny_windows"),
}


@pytest.mark.parametrize("name", FLOODS)
def test_h2_flood_ends_with_enhance_your_calm(server, name):
    make, reason = FLOODS[name]
    assert attack(server, itertools.islice(make(), 20_000)) == "ENHANCE_YOUR_CALM"
    # A window of zero also counts as tiny: either of the two charges may exhaust the budget.
    also = ended_for(server, "tiny_windows") if name == "reset by a window of nothing" else 0
    assert ended_for(server, reason) + also == 1
    is_served(server)


HARMLESS = {
    "resets": lambda c: [c.ask("/large.bin").cancel() for _ in range(100)],
    "pings": lambda c: [c.ping() for _ in range(300)],
    "settings": lambda c: [c.change({f.INITIAL_WINDOW: 70_000 + i}) for i in range(300)],
    "priorities": lambda c: [c.send(f.priority(1 + 2 * i)) for i in range(300)],
}


@pytest.mark.parametrize("name", HARMLESS)
def test_h2_small_amounts_of_unusual_frames_are_accepted(server, name):
    with server.connect() as c:
        HARMLESS[name](c)
        assert c.get("/a.txt").text == "hello" and not c.goaways


def test_h2_abuse_budget_refills_over_time(monkey, site):
    site.add("a.txt", "hello")
    server = monkey(server="HTTP2AbuseBudget 100", **METRICS)
    with server.connect() as c:
        for _ in range(4):
            for _ in range(5):
                c.ping()
            assert c.get("/a.txt").text == "hello"
            time.sleep(0.5)  # the budget is refilled at ten per second
        for _ in range(150):
            c.ping()
        assert c.end_of_connection() == "ENHANCE_YOUR_CALM"
    assert ended_for(server, "pings") == 1


# HPACK

BOMB = f.literal("x", "y" * 4000).replace(b"\x10", b"\x40", 1)  # the client adds this field to the dynamic table

BROKEN = {
    "an index of nothing": b"\xff\xff\xff\x7f",
    "index 0": b"\x80",
    "a number without end": b"\xff" + b"\xff" * 20 + b"\x7f",
    "a table that is too large": b"\x3f\xe1\xff\x03" + GET,
    "a table that changes its size at the end": GET + b"\x20",
    "a text that is cut": GET + b"\x00\x05abc",
    "Huffman's code that does not end": GET + b"\x00\x01x\x81\x00",
    "Huffman's code with the end inside": GET + b"\x00\x01x\x84\xff\xff\xff\xff",
}


@pytest.mark.parametrize("name", BROKEN)
def test_h2_broken_hpack_ends_connection(server, name):
    assert attack(server, [f.header_block(1, BROKEN[name])]) == "COMPRESSION_ERROR"
    assert ended_for(server, "compression") == 1


@pytest.mark.parametrize("times", [10, 10_000])
def test_h2_hpack_bomb_is_refused_with_431(server, times):
    """A long field in the dynamic table, and a one-byte reference to it for each repetition."""
    with server.connect() as c:
        block = GET + BOMB + b"\xbe" * times
        c.open([], block=block)
        assert c.read().status == 431
        c.open([], block=GET)
        assert c.read().text == "hello"
        c.open([], block=GET + b"\xbe")
        assert c.read().status == 200, "fields of a refused head are in the dynamic table nevertheless"


CRUMB = f.literal("cookie", "y" * 150).replace(b"\x10", b"\x40", 1)  # the client adds this field to the dynamic table


@pytest.mark.parametrize("times", [101, 10_000])
def test_h2_cookie_crumbs_count_with_their_joined_size(server, times):
    """HTTP/2 allows a client to split a cookie into several fields, which the server joins; here, one byte encodes each field."""
    with server.connect() as c:
        c.open([], block=GET + CRUMB + b"\xbe" * times)
        assert c.read().status == 431
        c.open([], block=GET + b"\xbe" * 50)
        assert c.read().text == "hello"


def test_h2_too_large_head_is_refused_and_next_is_served(monkey, site):
    site.add("a.txt", "hello")
    server = monkey(server="MaxHeaderSize 8K", **METRICS)
    with server.connect() as c:
        for size in (9000, 15_000):
            assert c.get("/a.txt", fields={"x": "y" * size}).status == 431
        assert c.get("/a.txt", fields=[("x", "")] * 500).status == 431
        assert c.get("/a.txt").text == "hello"
    assert attack(server, heads_that_are_too_long()) in ("COMPRESSION_ERROR", "ENHANCE_YOUR_CALM")


# Streams

MALFORMED = {
    "upper case": [*f.request(), ("X-Y", "z")],
    "connection": [*f.request(), ("connection", "close")],
    "keep-alive": [*f.request(), ("keep-alive", "1")],
    "transfer-encoding": [*f.request(method="POST"), ("transfer-encoding", "chunked")],
    "upgrade": [*f.request(), ("upgrade", "x")],
    "te": [*f.request(), ("te", "gzip")],
    "no method": f.request()[1:],
    "no path": f.request()[:3],
    "an empty path": f.request(""),
    "no scheme": [p for p in f.request() if p[0] != ":scheme"],
    "two methods": [(":method", "GET"), *f.request()],
    "two paths": [*f.request(), (":path", "/b")],
    "a pseudo field behind a field": [("x", "y"), *f.request()],
    "an unknown pseudo field": [(":x", "y"), *f.request()],
    "a status": [(":status", "200"), *f.request()],
    "a name with a blank": [*f.request(), ("x y", "z")],
    "a name with a colon": [*f.request(), ("x:y", "z")],
    "an empty name": [*f.request(), ("", "z")],
    "a line break": [*f.request(), ("x", "y\r\nz: 1")],
    "NUL": [*f.request(), ("x", "y\0")],
    "a blank at the end": [*f.request(), ("x", "y ")],
    "two lengths": [*f.request(method="POST"), ("content-length", "3"), ("content-length", "4")],
    "a length that does not come": [*f.request(method="POST"), ("content-length", "3")],
    "CONNECT with a path": f.request(method="CONNECT"),
    "a protocol without CONNECT": [*f.request()[:3], (":protocol", "websocket"), (":path", "/")],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_h2_malformed_request_resets_only_its_stream(server, name):
    with server.connect() as c:
        c.ask("/large.bin")
        other = c.stream
        c.open(MALFORMED[name], block=f.block_of(MALFORMED[name]))
        with pytest.raises(Closed) as error:
            c.read(stream=c.stream)
        assert error.value.code == "PROTOCOL_ERROR"
        assert len(c.read(stream=other).body) == 3_000_000 and not c.goaways


@pytest.mark.parametrize("length", ["x", "-1", "", "0x5", "18446744073709551616"])
def test_h2_invalid_content_length_is_refused(server, length):
    with server.connect() as c:
        c.open([*f.request(method="POST"), ("content-length", length)], end=False)
        with pytest.raises(Closed) as error:
            if c.read().status in (400, 413):
                raise Closed("in words", "PROTOCOL_ERROR")
        assert error.value.code == "PROTOCOL_ERROR" and c.is_open()


def test_h2_streams_beyond_limit_are_refused(monkey, site):
    site.add("large.bin", b"x" * 300_000)
    server = monkey(server="MaxStreams 10", **METRICS)
    with server.connect(settings={f.INITIAL_WINDOW: 0}) as c:
        c.ping().wait(lambda: not c.pings)
        assert c.theirs[f.STREAMS_MAX] == 10 and c.acknowledged == 1
        for _ in range(15):
            c.open(f.request("/large.bin", scheme=c.scheme), anyway=True)
        c.wait(lambda: sum(s.reset is not None for s in c.streams.values()) == 5)
        assert [s.reset for s in c.queue] == [None] * 10 + ["REFUSED_STREAM"] * 5
        c.change({f.INITIAL_WINDOW: 1 << 20})
        for stream in c.queue[:10]:
            assert len(c.read(stream=stream).body) == 300_000
        assert c.get("/large.bin").status == 200


def test_h2_unfinished_streams_cannot_bypass_the_limit(monkey, site):
    site.add("a.txt", "hello")
    server = monkey(server="MaxStreams 10", **METRICS)
    heads = (f.headers(i, f.block_of(f.request("/large.bin", "POST")), end=False) for i in streams())
    assert attack(server, itertools.islice(heads, 20_000)) == "ENHANCE_YOUR_CALM"
    assert ended_for(server, "streams") == 1
    is_served(server)


WRONG_WINDOWS = {
    "the connection's overflows": ([f.window_update(0, f.WINDOW_MAX)], "FLOW_CONTROL_ERROR", "flow_control"),
    "the connection's does not grow": ([f.window_update(0, 0)], "PROTOCOL_ERROR", "protocol"),
    "one of no stream": ([f.window_update(9, 1000)], "PROTOCOL_ERROR", "protocol"),
    "all are too large": ([f.settings({f.INITIAL_WINDOW: 1 << 31})], "FLOW_CONTROL_ERROR", "flow_control"),
    "all become too large": ([f.settings({f.INITIAL_WINDOW: 0}), f.headers(1, f.block_of(f.request("/large.bin"))),
                              f.window_update(1, f.WINDOW_MAX), f.settings({f.INITIAL_WINDOW: 1})],
                             "FLOW_CONTROL_ERROR", "flow_control"),
    "content of no stream": ([f.data(1, b"x")], "PROTOCOL_ERROR", "protocol"),
    "a frame that is too long": ([f.headers(1, GET, end=False), f.data(1, b"x" * 16385)], "FRAME_SIZE_ERROR", "frame_size"),
}


@pytest.mark.parametrize("name", WRONG_WINDOWS)
def test_h2_invalid_window_update_ends_connection(server, name):
    frames, code, reason = WRONG_WINDOWS[name]
    assert attack(server, frames) == code
    assert ended_for(server, reason) == 1


def test_h2_stream_window_overflow_resets_only_the_stream(server):
    with server.connect(settings={f.INITIAL_WINDOW: 10}) as c:
        c.ask("/large.bin").wait(lambda: c.acknowledged)
        c.give(1, f.WINDOW_MAX).give(1, f.WINDOW_MAX)
        with pytest.raises(Closed) as error:
            c.read()
        assert error.value.code == "FLOW_CONTROL_ERROR" and c.is_open()


def test_h2_window_opened_byte_by_byte_exhausts_abuse_budget(server):
    with server.connect(settings={f.INITIAL_WINDOW: 1}) as c:
        c.wait(lambda: c.acknowledged).ask("/large.bin")
        with pytest.raises(Closed) as error:
            for have in range(1, MANY):
                c.wait(lambda have=have: c.stream.received >= have)
                c.give(1, 1)
        assert error.value.code == "ENHANCE_YOUR_CALM"
    assert ended_for(server, "tiny_windows") == 1


# Timeouts

def test_h2_unfinished_head_times_out(monkey, site):
    server = monkey(server="Timeout 1s", **METRICS)
    begin = time.monotonic()
    assert attack(server, [f.headers(1, GET, more=True)]) is not None
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("message", [b"", f.PREFACE[:10], f.PREFACE, f.PREFACE + f.settings(), f.PREFACE + f.settings() + b"\0"])
def test_h2_silent_client_is_closed(monkey, site, message):
    with monkey(server="Timeout 1s\nKeepAliveTimeout 1s").connect(hello=False) as c:
        c.sock.sendall(message)
        while c.sock.recv(1 << 16):
            pass


def test_h2_missing_body_of_answered_request_times_out(monkey, site):
    """The response is complete; the stream waits only a limited time for the rest of the announced body."""
    site.add("a.txt", "hello")
    server = monkey(server="Timeout 1s\nKeepAliveTimeout 1s\nMinRate 1000\nMinRateInterval 1s")
    with server.connect() as c:
        c.ask("/a.txt", "POST", {"Content-Length": "60000"})
        assert c.read().status == 405
        c.end_of_connection()


def test_h2_client_disconnect_before_body_frees_connection(monkey, site):
    site.add("a.txt", "hello")
    server = monkey()
    before = open_sockets(server)
    for resets in (False, True):
        c = server.connect()
        c.ask("/a.txt", "POST", {"Content-Length": "60000"}).more(b"x" * 1000)
        assert c.read().status == 405
        c.close()
        wait_until(lambda: open_sockets(server) == before, "the connection is closed")


def open_sockets(server):
    return sum(name.startswith("socket:") for pid in server.workers for name in descriptors(pid).values())


def test_h2_closed_window_times_out_only_its_stream(monkey, site):
    """MinRate applies to a stream whose client reads nothing; the other streams continue."""
    site.add("large.bin", b"x" * 3_000_000)
    site.add("a.txt", "hello")
    server = monkey(server="MinRate 1000\nMinRateInterval 1s\nAccessLog stdout\nAccessLogFormat json")
    with server.connect(settings={f.INITIAL_WINDOW: 100}) as c:
        c.wait(lambda: c.acknowledged).ask("/large.bin")
        stuck = c.stream
        c.wait(lambda: stuck.received == 100)
        while stuck.reset is None and not c.goaways:
            assert len(c.get("/a.txt").text) == 5
        server.out.wait_for('"target":"/large.bin".*"outcome":"timeout"')


# Memory usage, measured with the release build, because sanitizers allocate memory of their own

needs_release = pytest.mark.skipif(not RELEASE.exists(), reason=f"{RELEASE} is not built")


@pytest.fixture
def lean(monkey, site):
    site.add("a.txt", "hello")
    site.add("large.bin", b"x" * 3_000_000)
    server = monkey(program=RELEASE, server="Timeout 60\nMinRateInterval 60", **METRICS)
    for _ in range(3):
        assert len(server.get("/large.bin").body) == 3_000_000
    return server


def memory_growth(server, before):
    return memory_kb(server.workers[0]) - before


@needs_release
@pytest.mark.parametrize("name", FLOODS)
def test_h2_floods_without_reading_use_no_memory(lean, name):
    """Ten clients send a flood and never read, until the server stops reading or closes the connection."""
    before = memory_kb(lean.workers[0])
    crowd = []
    for _ in range(10):
        c = assail(lean, receive_buffer=4096)
        c.sock.setblocking(False)
        crowd.append(c)
        try:
            for bunch in bunches(itertools.islice(FLOODS[name][0](), 3000)):
                if c.sock.send(bunch) < len(bunch):
                    break
        except (BlockingIOError, ConnectionError):
            pass
    is_served(lean)
    assert memory_growth(lean, before) < 2048, "KB growth"
    for c in crowd:
        c.close()


@needs_release
def test_h2_hpack_bombs_use_no_memory(lean):
    before = memory_kb(lean.workers[0])
    with lean.connect() as c:
        for _ in range(100):
            c.open([], block=GET + BOMB + b"\xbe" * 12_000)
            assert c.read().status == 431
        assert memory_growth(lean, before) < 1024, "KB growth"


@needs_release
@pytest.mark.parametrize("field", ["cookie", "x-field"])
def test_h2_expanded_heads_of_blocked_streams_use_bounded_memory(lean, field):
    """Heads expanded from the dynamic table (60 bytes become 9 KB) on streams whose response gets no window: each stream may
    hold twice MaxHeaderSize (16 KB), and the next clients reuse that memory."""
    block, get = f.literal(field, "y" * 150).replace(b"\x10", b"\x40", 1), f.block_of(f.request("/large.bin"))
    before, sizes = memory_kb(lean.workers[0]), []
    for _ in range(3):
        clients = [assail(lean, receive_buffer=4096, settings={f.INITIAL_WINDOW: 0}) for _ in range(10)]
        for c in clients:
            c.send(f.headers(1, get + block) + b"".join(f.headers(3 + 2 * i, get + b"\xbe" * 60) for i in range(99)))
        is_served(lean)
        sizes.append(memory_growth(lean, before))
        for c in clients:
            c.close()
        is_served(lean)
    assert sizes[0] / 1000 < 32, f"{sizes[0] / 1000:.1f} KB for each stream"
    assert sizes[2] < sizes[0] * 1.5 + 2048, sizes


@needs_release
@pytest.mark.parametrize("how", ["windows closed", "no reader"])
def test_h2_slow_readers_use_bounded_memory(lean, how):
    """Fifty clients request a large file on a hundred streams each."""
    closed = how == "windows closed"
    clients = []
    before = memory_kb(lean.workers[0])
    for _ in range(50):
        c = assail(lean, receive_buffer=4096, settings={f.INITIAL_WINDOW: 0 if closed else f.WINDOW_MAX})
        if not closed:
            c.give(0, f.WINDOW_MAX - f.WINDOW)
        c.send(b"".join(f.headers(1 + 2 * i, f.block_of(f.request("/large.bin"))) for i in range(100)))
        clients.append(c)
    is_served(lean)
    per_stream = memory_growth(lean, before) / 5000
    for c in clients:
        c.close()
    assert per_stream < 8, f"{per_stream:.1f} KB for each stream"


@needs_release
def test_h2_unread_request_bodies_use_bounded_memory(monkey, site):
    """The part of the request body that a handler does not read is limited by the flow-control windows."""
    program = ROOT / "build" / "release" / "test_handlers"
    if not program.exists():
        pytest.skip("needs build/release/test_handlers")
    server = monkey(args=[], program=program, protocol="h2")
    assert server.get("/sink", "POST", body=b"warm up").status == 200
    before = memory_kb(server.pid)
    clients = [assail(server) for _ in range(20)]
    for c in clients:
        for i in range(20):
            number = 1 + 2 * i
            c.send(f.headers(number, f.block_of(f.request("/never", "POST")), end=False))
            c.send(b"".join(f.data(number, b"x" * 13107) for _ in range(5)))
    assert server.get("/early").status == 200
    more = memory_kb(server.pid) - before
    for c in clients:
        c.close()
    assert more < 400 * 100, f"{more} KB for 400 streams of 64 KB"


def test_h2_flooding_peer_does_not_starve_others(server):
    """Some clients do not read their responses; the server still serves other clients."""
    crowd = []
    for _ in range(3):
        c = assail(server, receive_buffer=4096)
        c.sock.setblocking(False)
        crowd.append(c)
        try:
            for i in itertools.islice(streams(), 20_000):
                c.sock.send(f.headers(i, f.block_of(f.request("/a.txt", "HEAD"))))
        except (BlockingIOError, ConnectionError):
            pass
    for _ in range(10):
        is_served(server)
    for c in crowd:
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        c.sock.close()
