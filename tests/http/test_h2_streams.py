# SPDX-License-Identifier: Apache-2.0
"""Concurrent HTTP/2 requests on one connection: flow control, order, priorities, and shutdown."""
import os
import random
import signal
import socket
import ssl
import threading
from pathlib import Path

import pytest

import h2frames as f
from client import Closed
from monkey import ROOT
from proc import wait_until

pytestmark = pytest.mark.http2

HANDLERS = Path(os.environ.get("MONKEY_HANDLERS", ROOT / "build" / "dev" / "test_handlers")).resolve()
PLUGINS = ROOT / "build" / "dev" / "tests" / "plugins"
WINDOW = f.WINDOW


@pytest.fixture
def server(monkey, site):
    site.add("a.txt", "hello")
    site.add("large.bin", b"x" * 3_000_000)
    for i in range(8):
        site.add(f"{i}.bin", bytes([48 + i]) * 100_000)
    return monkey()


@pytest.fixture
def handlers(monkey):
    """A server that has handlers besides static files: see tests/server."""
    assert HANDLERS.exists(), f"{HANDLERS} is not built"
    return monkey(args=[], program=HANDLERS)


def numbers_of(c, kind=f.DATA, since=0):
    return [number for k, _, number, size in c.frames[since:] if k == kind and size]


# The server's SETTINGS

def test_h2_settings_announce_limits(monkey, site):
    with monkey(server="MaxStreams 7\nMaxHeaderSize 3000").connect() as c:
        c.wait(lambda: c.settings_received)
        assert c.theirs[f.STREAMS_MAX] == 7 and c.theirs[f.HEAD_SIZE] == 3000


def test_h2_settings_announce_windows_and_extensions(monkey, site):
    with monkey(server="MaxStreams 50\nHTTP2ConnWindow 256K").connect() as c:
        c.wait(lambda: c.settings_received).ping().wait(lambda: not c.pings)
        assert c.send_window == 262144 and c.theirs[f.INITIAL_WINDOW] == (262144 - WINDOW) // 100
        assert c.theirs.get(f.ENABLE_PUSH, 0) == 0 and c.theirs[f.CONNECT_PROTOCOL] == 1
        assert c.theirs[f.NO_OLD_PRIORITIES] == 1


def test_h2_can_be_disabled(monkey, site, protocol):
    site.add("a.txt", "hello")
    server = monkey(server="HTTP2 off")
    if protocol == "h2-tls":
        with server.connect(protocol="h1") as c:
            assert c.get("/a.txt").text == "hello"
        with pytest.raises((AssertionError, ssl.SSLError), match="ALPN|no application protocol"):
            server.connect()
    else:
        with server.connect(protocol="h1") as c:
            assert c.send(f.PREFACE).read().status == 505


@pytest.mark.over("h2", why="over TLS, ALPN says which it is")
def test_h1_and_h2_share_one_listener(monkey, site):
    site.add("a.txt", "hello")
    server = monkey(workers=2)
    for _ in range(5):
        for protocol in ("h1", "h2"):
            with server.connect(protocol=protocol) as c:
                assert c.get("/a.txt").text == c.get("/a.txt").text == "hello"


@pytest.mark.over("h2", why="over TLS, ALPN says which it is")
def test_http2_listener_refuses_http_1(monkey, site):
    site.add("a.txt", "hello")
    server = monkey(listen="127.0.0.1:0 http2")
    assert server.get("/a.txt").text == "hello"
    with server.connect(protocol="h1") as c, pytest.raises((Closed, ConnectionResetError, AssertionError)):
        c.get("/a.txt")


def test_h2_preface_arrives_byte_by_byte(server):
    with server.connect(hello=False) as c:
        c.unacknowledged.append({})
        for byte in f.PREFACE + f.settings():
            c.sock.sendall(bytes([byte]))
        assert c.get("/a.txt").text == "hello"


# Multiplexing

def test_h2_thousand_requests_are_answered(monkey, site):
    rng = random.Random(1)
    files = {f"/{size}.bin": rng.randbytes(size) for size in (0, 1, 100, 8192, 16384, 16385, 65535, 65536, 300_000)}
    for name, data in files.items():
        site.add(name[1:], data)
    wishes = [(rng.choice([*files, "/none"]), rng.choice(["GET", "GET", "GET", "HEAD"])) for _ in range(1000)]
    with monkey(server="KeepAliveRequests unlimited").connect() as c:
        for at in range(0, len(wishes), 90):
            for name, method in wishes[at:at + 90]:
                c.ask(name, method)
            for name, method in wishes[at:at + 90]:
                reply = c.read()
                assert reply.status == (200 if name in files else 404)
                if name in files:
                    assert reply["Content-Length"] == str(len(files[name]))
                    assert reply.body == (files[name] if method == "GET" else b"")


def test_h2_stalled_stream_does_not_block_others(server):
    """The window of the stream is exhausted, but the connection window is open."""
    with server.connect(receive_buffer=1 << 20) as c:
        c.give(0, 20_000_000)
        c.ask("/large.bin")
        stuck = c.stream
        c.wait(lambda: stuck.received == WINDOW)
        for _ in range(3):
            assert c.get("/a.txt").text == "hello"
        assert len(c.get("/large.bin").body) == 3_000_000
        assert stuck.received == WINDOW
        c.give(stuck.number, 3_000_000)
        assert len(c.read(stream=stuck).body) == 3_000_000


def test_h2_connection_window_limits_all_streams(server):
    with server.connect(receive_buffer=1 << 20, settings={f.INITIAL_WINDOW: 1 << 20}) as c:
        streams = [c.ask(f"/{i}.bin").stream for i in range(4)]
        c.ping().wait(lambda: sum(s.received for s in streams) == WINDOW and not c.pings)
        small = c.ask("/a.txt", "HEAD").stream
        assert c.read(stream=small).status == 200, "HEADERS need no window"
        c.give(0, 400_000)
        assert [len(c.read(stream=s).body) for s in streams] == [100_000] * 4


def test_h2_initial_window_may_shrink_and_grow(server):
    """A smaller initial window applies to new streams, and may make the windows of open streams negative."""
    with server.connect(receive_buffer=1 << 20) as c:
        c.give(0, 20_000_000)
        stream = c.ask("/large.bin").stream
        c.wait(lambda: stream.received == WINDOW)
        c.change({f.INITIAL_WINDOW: 1000}).wait(lambda: c.acknowledged == 2)
        assert stream.window == 1000 - WINDOW
        c.give(stream.number, WINDOW)
        c.wait(lambda: stream.received == WINDOW + 1000)
        c.ping().wait(lambda: not c.pings)
        assert stream.received == WINDOW + 1000
        c.change({f.INITIAL_WINDOW: 3_000_000})
        assert len(c.read().body) == 3_000_000


def test_h2_concurrent_uploads_arrive_complete(handlers):
    data = [os.urandom(200_000 + i) for i in range(10)]
    with handlers.connect() as c:
        streams = [c.ask("/sink", "POST", streamed=True).stream for _ in data]
        for at in range(0, 210_000, 10_000):
            for stream, content in zip(streams, data):
                c.more(content[at:at + 10_000], stream)
        for stream, content in zip(streams, data):
            c.done(stream=stream)
            assert c.read(stream=stream).text == f"{len(content)} {sum(content)}\n"


def test_h2_unread_body_fills_only_its_own_window(handlers):
    with handlers.connect() as c:
        never = c.ask("/never", "POST", streamed=True).stream
        c.more(b"x" * WINDOW, never)
        assert never.send_window == 0
        assert c.get("/sink", "POST", body=b"a" * 500_000).text == f"500000 {97 * 500_000}\n"
        assert never.send_window == 0, "no WINDOW_UPDATE for the unread stream"


@pytest.mark.parametrize("target", ["/never", "/echo"])
def test_h2_unread_bodies_of_connection_are_limited(monkey, target):
    """Some handlers read nothing, or stop reading because the client does not read their output: the connection buffers a
    limited amount for all of them together, and another upload continues."""
    most = 262144
    with monkey(args=[str(most)], program=HANDLERS).connect(receive_buffer=1 << 20) as c:
        c.wait(lambda: c.acknowledged)
        streams, sent, taken = [], 0, 0
        for _ in range(99):
            stream = c.ask(target, "POST", streamed=True).stream
            streams.append(stream)
            c.ping().wait(lambda: not c.pings)
            while (n := min(stream.send_window, c.send_window, f.FRAME_MAX)) > 0:
                stream.send_window, c.send_window, sent = stream.send_window - n, c.send_window - n, sent + n
                c.send(f.data(stream.number, b"x" * n)).ping().wait(lambda: not c.pings)
        taken = sum(stream.received for stream in streams)
        assert taken <= f.WINDOW and most / 3 < sent - taken <= most
        upload = c.ask("/sink", "POST", streamed=True).more(b"a" * 500_000).done().stream
        assert not any(stream.is_over for stream in streams)
        for stream in streams:
            c.cancel(stream)
        c.give(0, f.WINDOW)
        assert c.read(stream=upload).text == f"500000 {97 * 500_000}\n"
        c.wait(lambda: c.send_window > most - f.FRAME_MAX)  # the server has returned all received bytes to the window


def test_h2_data_beyond_window_resets_stream(handlers):
    with handlers.connect() as c:
        never = c.ask("/never", "POST", streamed=True).stream
        c.more(b"x" * WINDOW, never).send(f.data(never.number, b"y"))
        with pytest.raises(Closed) as error:
            c.read(stream=never)
        assert error.value.code == "FLOW_CONTROL_ERROR"
        assert c.get("/early").text == "early\n"


def test_h2_padding_counts_towards_window(handlers):
    with handlers.connect() as c:
        c.ask("/sink", "POST", streamed=True)
        for _ in range(2000):
            c.wait(lambda: min(c.stream.send_window, c.send_window) >= 257)
            c.stream.send_window -= 257
            c.send_window -= 257
            c.send(f.data(c.stream.number, b"a", padding=255))
        assert c.done().read().text == f"2000 {97 * 2000}\n"


def test_h2_response_may_precede_request_body(handlers):
    """A client that has the complete response need not send the rest of its request body, and the connection stays usable."""
    with handlers.connect() as c:
        for _ in range(20):
            reply = c.ask("/early", "POST", streamed=True).more(b"x" * 300_000).read()
            assert reply.text == "early\n"
        assert c.get("/sink", "POST", body=b"abc").text == "3 294\n"


def test_h2_refused_uploads_do_not_exhaust_abuse_budget(monkey, site):
    """A client may have sent data on a stream before it learned that the server has closed the stream."""
    site.add("a.txt", "hello")
    with monkey(server="MaxBodySize 1000").connect() as c:
        c.ping().wait(lambda: not c.pings)
        for _ in range(8):
            c.wait(lambda: c.send_window >= 960_000)
            streams = [c.ask("/a.txt", "POST", {"Content-Length": "5000000"}).stream for _ in range(24)]
            data = b"".join(f.data(s.number, b"x" * 10_000) for s in streams for _ in range(4))
            c.send_window -= len(streams) * 40_000
            c.send(data)
            for stream in streams:
                assert c.read(stream=stream).status == 413
        assert c.get("/a.txt").text == "hello" and not c.goaways


def test_h2_echo_is_full_duplex(handlers):
    with handlers.connect() as c:
        c.ask("/echo", "POST", streamed=True)
        for word in (b"one", b"two", b"three"):
            c.more(word)
            if word == b"one":
                assert c.read_head().status == 200
            assert c.read_exactly(len(word)) == word
        c.done()
        assert c.read_rest() == b""


def test_h2_cancelled_stream_is_freed(handlers):
    with handlers.connect() as c:
        for _ in range(50):
            c.ask("/never").cancel()
            c.queue.pop()
        c.ask("/unknown?100000000").wait(lambda: c.stream.received > 100_000)
        c.cancel().queue.pop()
        assert c.get("/early").text == "early\n"
    handlers.out.wait_for(r"^\d+ \w+ \d+ /never$", 50)


def test_h2_failing_body_source_resets_stream(handlers):
    with handlers.connect() as c:
        for target in ("/broken?500000", "/broken-known?500000"):
            with pytest.raises(Closed) as error:
                c.get(target)
            assert error.value.code == "INTERNAL_ERROR"
        assert c.get("/broken?0").status == 500
        assert c.get("/early").text == "early\n"


# Trailers

def test_h2_request_trailers_are_accepted(handlers):
    with handlers.connect() as c:
        reply = c.ask("/sink", "POST", [("Trailer", "x-sum")], streamed=True).more(b"abc").done([("X-Sum", "1")]).read()
        assert reply.text == "3 294\n"
        assert c.get("/early").text == "early\n"


WRONG_TRAILERS = {
    "a pseudo field": f.headers(1, f.block_of([(":path", "/")])),
    "upper case": f.headers(1, f.block_of([("X", "y")])),
    "of connections": f.headers(1, f.block_of([("connection", "close")])),
    "no end": f.headers(1, f.block_of([("x", "y")]), end=False),
}


@pytest.mark.parametrize("name", WRONG_TRAILERS)
def test_h2_malformed_trailers_reset_stream(handlers, name):
    with handlers.connect() as c:
        c.ask("/sink", "POST", streamed=True).more(b"abc").send(WRONG_TRAILERS[name])
        with pytest.raises(Closed) as error:
            if c.read().status == 400:
                raise Closed("in words", "PROTOCOL_ERROR")
        assert error.value.code == "PROTOCOL_ERROR"
        assert c.get("/early").text == "early\n"


# Priorities (RFC 9218)

def exhaust_connection_window(c):
    """Exhausts the connection window, so that no further response can be sent."""
    plug = c.ask("/large.bin").stream
    c.wait(lambda: plug.received == WINDOW)
    c.cancel(plug)
    c.queue.remove(plug)


def ask_for(c, *priorities):
    """Opens streams, and waits until each of them has its response head; the exhausted connection window blocks the bodies."""
    streams = [c.ask(f"/{i}.bin", fields={"Priority": p} if p else {}).stream for i, p in enumerate(priorities)]
    c.wait(lambda: all(s.final for s in streams))
    return streams


def order_of(c, streams):
    """Returns the streams in the order in which the server sends their data once the window opens."""
    begin = len(c.frames)
    c.give(0, 20_000_000)
    for stream in streams:
        assert len(c.read(stream=stream).body) == 100_000
    return [streams.index(c.streams[n]) for n in numbers_of(c, since=begin)]


def runs(order):
    """Removes consecutive repetitions: 1 1 1 2 2 -> 1 2."""
    return [n for i, n in enumerate(order) if i == 0 or order[i - 1] != n]


@pytest.fixture
def narrow(server):
    with server.connect(receive_buffer=1 << 20, settings={f.INITIAL_WINDOW: 1 << 20}) as c:
        c.wait(lambda: c.acknowledged)
        exhaust_connection_window(c)
        yield c


def test_h2_urgent_streams_are_sent_first(narrow):
    streams = ask_for(narrow, "u=7", "u=5", None, "u=0", "u=1", "u=3")
    assert runs(order_of(narrow, streams)) == [3, 4, 2, 5, 1, 0]


def test_h2_streams_of_equal_priority_are_sent_one_after_another(narrow):
    assert runs(order_of(narrow, ask_for(narrow, None, None, "u=3", None))) == [0, 1, 2, 3]


def test_h2_incremental_streams_share_bandwidth(narrow):
    order = order_of(narrow, ask_for(narrow, "u=2, i", "u=2, i", "u=2, i"))
    assert len(runs(order)) > 12
    for at in range(0, 9, 3):
        assert set(order[at:at + 3]) == {0, 1, 2}, order


def test_h2_priority_update_changes_order(narrow):
    streams = ask_for(narrow, "u=4", "u=4", "u=4")
    narrow.send(f.priority_update(streams[2].number, "u=1"))
    narrow.send(f.priority_update(streams[0].number, "u=6"))
    narrow.ping().wait(lambda: not narrow.pings)
    assert runs(order_of(narrow, streams)) == [2, 1, 0]


@pytest.mark.parametrize("value", ["", "u=9", "u=-1", "u", "u=x", "i=5", "nonsense", "u=1, u=7;x", '"', "u=1.5"])
def test_h2_invalid_priority_is_ignored(server, value):
    with server.connect() as c:
        assert c.get("/a.txt", fields={"Priority": value}).text == "hello"
        c.ask("/large.bin").send(f.priority_update(c.stream.number, value))
        assert len(c.read().body) == 3_000_000 and not c.goaways


def test_h2_priority_update_for_idle_stream_is_accepted(server):
    with server.connect() as c:
        c.send(f.priority_update(1, "u=0")).send(f.priority_update(21, "u=0"))
        assert c.get("/a.txt").text == "hello"
        c.send(f.priority_update(2, "u=0"))
        assert c.end_of_connection() == "PROTOCOL_ERROR"


# Shutdown

def end_in_two_steps(c, server, begin):
    """Shuts the server down while streams are open: it must respond to every request that it accepts."""
    streams = [c.ask("/large.bin").stream for _ in range(3)]
    c.wait(lambda: all(s.received for s in streams))
    begin()
    c.wait(lambda: c.goaways)
    assert c.goaways[0][:2] == (f.WINDOW_MAX, "NO_ERROR"), "first GOAWAY only announces the shutdown"
    assert len(c.goaways) == 1
    late = c.open(f.request("/a.txt", scheme=c.scheme), anyway=True).stream  # the client sent this before it had read the GOAWAY
    for stream in [*streams, late]:
        c.give(stream.number, 3_000_000)
        assert c.read(stream=stream).status == 200
    assert [len(s.body) for s in streams] == [3_000_000] * 3
    assert c.end_of_connection() == "NO_ERROR"
    assert c.goaways[-1][:2] == (late.number, "NO_ERROR"), "second GOAWAY names the last accepted stream"


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGHUP])
def test_h2_draining_worker_answers_accepted_streams(server, number):
    with server.connect(receive_buffer=1 << 20) as c:
        c.give(0, 20_000_000)
        end_in_two_steps(c, server, lambda: server.tell(number))


def test_h2_keep_alive_requests_limit_ends_connection(monkey, site):
    site.add("a.txt", "hello")
    with monkey(server="KeepAliveRequests 5").connect() as c:
        for _ in range(5):
            assert c.get("/a.txt").text == "hello"
        assert c.end_of_connection() == "NO_ERROR"
        assert [g[0] for g in c.goaways] == [f.WINDOW_MAX, 9]


def test_h2_client_that_ignores_goaway_is_closed(monkey, site):
    """The client keeps sending requests after the first GOAWAY, and never responds to PING."""
    site.add("a.txt", "hello")
    with monkey(server="KeepAliveRequests 5\nMaxStreams 10").connect() as c:
        c.on_ping = lambda *_: None
        with pytest.raises(Closed):
            for _ in range(1000):
                c.open(f.request("/a.txt", scheme=c.scheme), anyway=True)
                assert c.read(stream=c.stream).text == "hello"
        assert c.end_of_connection() == "NO_ERROR"


def test_h2_idle_connection_ends_with_goaway(monkey, site):
    site.add("a.txt", "hello")
    with monkey(server="KeepAliveTimeout 1s").connect() as c:
        assert c.get("/a.txt").text == "hello"
        c.expect_end()


def test_h2_goaway_of_client_lets_streams_finish(server):
    with server.connect() as c:
        streams = [c.ask("/large.bin").stream for _ in range(3)]
        c.send(f.goaway(0))
        for stream in streams:
            assert len(c.read(stream=stream).body) == 3_000_000
        assert c.end_of_connection() in (None, "NO_ERROR")


def test_h2_half_closed_client_gets_its_responses(server):
    with server.connect(receive_buffer=1 << 20, settings={f.INITIAL_WINDOW: 1 << 24}) as c:
        c.give(0, 1 << 26)
        streams = [c.ask("/large.bin").stream for _ in range(3)]
        c.wait(lambda: c.acknowledged)
        c.sock.shutdown(socket.SHUT_WR)
        c.send = lambda _: c  # the client sends nothing more
        for stream in streams:
            assert len(c.read(stream=stream).body) == 3_000_000
        c.end_of_connection()


def test_h2_server_stops_with_open_streams(server):
    with server.connect(receive_buffer=4096) as c:
        c.ask("/large.bin").wait(lambda: c.stream.received)
        server.stop()


# Clients that send requests while the workers are replaced repeatedly

def test_h2_reloads_lose_no_request(monkey, site):
    site.add("a.bin", os.urandom(20_000))
    content = (site / "a.bin").read_bytes()
    server = monkey(workers=2)
    stop, problems, counts = threading.Event(), [], [0] * 4

    def run(i):
        try:
            while not stop.is_set():
                with server.connect() as c:
                    ask_until_it_ends(c, content, stop, counts, i)
        except (AssertionError, OSError) as error:
            problems.append(repr(error))

    crew = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in crew:
        thread.start()
    for round_ in range(5):
        goal = [count + 20 for count in counts]
        wait_until(lambda: problems or all(have >= want for have, want in zip(counts, goal)), "requests continue")
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves", round_ + 1)
    stop.set()
    for thread in crew:
        thread.join(30)
    assert not problems, problems[:5]


def ask_until_it_ends(c, content, stop, counts, i):
    """Sends five requests at a time; requests that the server reports as unprocessed are retried on another connection."""
    while not stop.is_set() and not c.goaways:
        streams = []
        try:
            for _ in range(5):
                streams.append(c.ask("/a.bin").stream)
        except Closed as error:
            assert error.again
        for stream in streams:
            try:
                assert c.read(stream=stream).body == content
                counts[i] += 1
            except Closed as error:
                assert error.again, f"{error}: a request was lost"
