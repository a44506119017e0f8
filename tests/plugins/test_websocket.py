# SPDX-License-Identifier: Apache-2.0
"""The websocket plugin: frames, messages, limits, compression and close, through tests/plugins/api/sockets.c, with common
clients and with clients that violate the protocol.
"""
import os
import signal
import socket
import struct
import threading

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import manual
from monkey import PROGRAM, ROOT
from proc import wait_until
from wsframes import (BINARY, CLOSE, CONTINUATION, FIN, HANDSHAKE, OFFER, PING, PONG, RSV1, TEXT, Peer, closing, deflate, frame, inflate)

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"

pytestmark = pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1],
                                reason="the plugins of the tests are built with the program in build/dev")
all_protocols = pytest.mark.parametrize("protocol", ["h1", "h2", "h1-tls", "h2-tls"], indirect=True)

ROUTES = "[ROUTES]\n" + "".join(f"    /{name}  socket-{name}\n"
                                for name in ("echo", "packed", "context", "small", "hasty", "guarded")) + "    /events  events\n"


def prepare(monkey, site):
    site.add("index.html", "hello")
    return monkey(plugins=[BUILT / "monkey-sockets.so"], workers=1, sections=ROUTES + "    /*  static\n")


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def dial(server, path, **how):
    how = {"compression": None, "max_size": None} | how
    return connect(server.url.replace("http", "ws", 1) + path, proxy=None, **how)


# ---- Common clients ----

MESSAGES = ("hello", "", "ä" * 1000, bytes(range(256)) * 60, b"", os.urandom(100_000), "hello " * 20, "hello " * 21)


@pytest.mark.parametrize("path, compression", [("/echo", None), ("/echo", "deflate"), ("/packed", "deflate"),
                                               ("/context", "deflate")])
def test_websocket_works_with_websockets_package(server, path, compression):
    with dial(server, path, compression=compression) as ws:
        assert bool(ws.protocol.extensions) == (path != "/echo")
        for message in (*MESSAGES, "a" * 1_000_000):
            ws.send(message)
            assert ws.recv() == message
        assert ws.ping().wait(30)
        ws.send(["in ", "three ", "pieces" * 40])
        assert ws.recv() == "in three " + "pieces" * 40
        ws.close(1000, "enough")
        assert ws.close_code == 1000
    server.err.wait_for("sockets: closed 1000 enough")


def test_websocket_echoes_many_messages(server):
    messages = [os.urandom(n % 5000) for n in range(0, 100_000, 97)]
    with dial(server, "/packed", compression="deflate") as ws:
        thread = threading.Thread(target=lambda: [ws.send(m) for m in messages])
        thread.start()
        assert [ws.recv() for _ in messages] == messages
        thread.join()


@pytest.mark.parametrize("theirs, chosen", [(["x", "chat"], "chat"), (["other", "chat"], "other"), (["x"], None), (None, None)])
def test_websocket_subprotocol_is_negotiated(server, theirs, chosen):
    with dial(server, "/echo", subprotocols=theirs) as ws:
        assert ws.subprotocol == chosen
        ws.send("/about")
        assert ws.recv() == (chosen or "")


# ---- Over every protocol ----

@all_protocols
def test_websocket_frames_are_processed(server):
    with Peer(server, "/echo") as p:
        p.text("hello").expect("hello")
        p.send(frame(TEXT, b"in ") + frame(FIN | PING, b"!") + frame(CONTINUATION) + frame(FIN | CONTINUATION, b"pieces"))
        assert p.read_frame() == (FIN | PONG, b"!")
        p.expect("in pieces")
        p.text("/parts a b c")
        assert [p.read_frame() for _ in range(3)] == [(TEXT, b"a"), (CONTINUATION, b"b"), (FIN | CONTINUATION, b"c")]
        p.text("/ping who")
        assert p.read_frame() == (FIN | PING, b"who")
        p.expect("ping 0").send(frame(FIN | PONG, b"me")).expect("pong me")
        p.send(closing(4001, "bye ä".encode()))
        p.expect_close(4001)
    server.err.wait_for("sockets: closed 4001 bye ä")


@all_protocols
def test_websocket_frames_may_arrive_byte_by_byte(server):
    with Peer(server, "/echo") as p:
        for data in (frame(FIN | TEXT, "äöü€😀".encode()), frame(TEXT, b"x" * 200), frame(FIN | CONTINUATION, b"y")):
            for i in range(len(data)):
                p.send(data[i:i + 1])
        p.expect("äöü€😀").expect("x" * 200 + "y")


@all_protocols
def test_websocket_long_message_is_echoed(server):
    data = os.urandom(3_000_000)
    with Peer(server, "/echo") as p:
        thread = threading.Thread(target=p.send, args=[frame(FIN | BINARY, data)]) if not p.is_h2 else None
        thread.start() if thread else p.send(frame(FIN | BINARY, data))
        assert p.read_frame() == (FIN | BINARY, data)
        if thread:
            thread.join()


@all_protocols
@pytest.mark.parametrize("how, code", [("/close 4000 enough", 4000), ("/close 1005", None), ("/drop", "reset")])
def test_websocket_server_may_close(server, how, code):
    with Peer(server, "/echo") as p:
        p.text(how)
        if code == "reset":
            with pytest.raises(Exception):
                p.read_frame()
            return
        first, payload = p.read_frame()
        assert first == FIN | CLOSE and payload == (struct.pack(">H", code) + b"enough" if code else b"")
        p.text("dropped").send(frame(FIN | CLOSE, payload))
        p.expect_end()


@pytest.mark.parametrize("output", ["/close 1004", "/close 999", "/close 5000", "/close 1000 " + "x" * 124])
def test_websocket_invalid_output_is_refused(server, output):
    with Peer(server, "/echo") as p:
        p.text(output).expect("no")


# ---- Protocol violations ----

RULES = {
    "no mask": (frame(FIN | TEXT, b"hi", masked=False), 1002),
    "an unknown opcode": (frame(FIN | 3), 1002),
    "an unknown control opcode": (frame(FIN | 11), 1002),
    "a reserved bit": (frame(FIN | 0x20 | TEXT), 1002),
    "compressed, though nothing was agreed upon": (frame(FIN | RSV1 | TEXT), 1002),
    "a compressed ping": (frame(FIN | RSV1 | PING), 1002),
    "a ping in pieces": (frame(PING), 1002),
    "a long ping": (frame(FIN | PING, b"x" * 126), 1002),
    "a length of 16 bits without need": (frame(FIN | TEXT, b"x", form=16), 1002),
    "a length of 64 bits without need": (frame(FIN | TEXT, b"x" * 200, form=64), 1002),
    "a negative length": (bytes([FIN | TEXT, 0xff]) + b"\xff" * 12, 1002),
    "a terabyte": (bytes([FIN | BINARY, 0xff]) + struct.pack(">Q", 1 << 40) + b"mask", 1009),
    "nothing to continue": (frame(FIN | CONTINUATION), 1002),
    "a message within another": (frame(TEXT, b"a") + frame(FIN | TEXT, b"b"), 1002),
    "no UTF-8": (frame(FIN | TEXT, b"\xff"), 1007),
    "half a character": (frame(TEXT, b"\xc3"), None),
    "half a character, and no other half": (frame(TEXT, b"\xc3") + frame(FIN, b"("), 1007),
    "half a character at the end": (frame(FIN | TEXT, b"\xc3"), 1007),
    "a surrogate that is not complete": (frame(TEXT, b"\xed\xa0"), 1007),
    "beyond Unicode": (frame(FIN | TEXT, b"\xf4\x90\x80\x80"), 1007),
    "half a code": (frame(FIN | CLOSE, b"\x03"), 1002),
    "a reason that is no UTF-8": (closing(1000, b"\xff"), 1007),
    "no code": (frame(FIN | CLOSE), "none"),
    **{f"code {code}": (closing(code), 1002) for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535)},
    **{f"code {code}": (closing(code), code) for code in (1000, 1001, 1003, 1007, 1012, 1014, 3000, 4999)},
}


@pytest.mark.parametrize("rule", RULES)
def test_websocket_protocol_violation_closes_with_code(server, rule):
    data, code = RULES[rule]
    with Peer(server, "/echo") as p:
        p.send(data)
        if code is None:  # the message is not complete yet
            p.send(frame(FIN | CONTINUATION, b"\xa4")).expect("ä")
        else:
            p.expect_close(None if code == "none" else code)


LIMITS = {
    "a frame that is too long": (frame(FIN | BINARY, bytes(501)), 1009),
    "a frame of the longest kind": (frame(FIN | BINARY, bytes(500)), 500),
    "a message that is too long": (frame(BINARY, bytes(500)) + frame(CONTINUATION, bytes(500)) +
                                   frame(FIN | CONTINUATION, bytes(1)), 1009),
    "a message of the longest kind, compressed": (frame(FIN | RSV1 | BINARY, deflate(bytes(1000))), 1000),
    "one byte more": (frame(FIN | RSV1 | BINARY, deflate(bytes(1001))), 1009),
    "a bomb": (frame(FIN | RSV1 | BINARY, deflate(bytes(10_000_000))[:500]), 1009),
    "no UTF-8, compressed": (frame(FIN | RSV1 | TEXT, deflate(b"\xff")), 1007),
    "not compressed, though it says so": (frame(FIN | RSV1 | BINARY, b"\xff" * 20), 1007),
    "an unknown kind of block": (frame(FIN | RSV1 | BINARY, b"\x06"), 1007),
    "a continuation that is compressed": (frame(RSV1 | TEXT, deflate(b"ab")[:2]) + frame(RSV1 | FIN | CONTINUATION), 1002),
    "a last block": (frame(FIN | RSV1 | TEXT, deflate(b"ab", final=True)), "ab"),
    "two last blocks": (frame(FIN | RSV1 | TEXT, b"\x03\x00\x03\x00\x00"), 1007),
    "nothing, compressed": (frame(FIN | RSV1 | TEXT, b"\0"), ""),
    "compressed, in pieces": (frame(RSV1 | TEXT, deflate(b"ab")[:2]) + frame(FIN | CONTINUATION, deflate(b"ab")[2:]), "ab"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_websocket_limits_apply_to_compressed_messages(server, limit):
    data, code = LIMITS[limit]
    with Peer(server, "/small", [OFFER]) as p:
        assert p.head["Sec-WebSocket-Extensions"] == \
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
        p.send(data)
        if code in (500, 1000):
            first, payload = p.read_frame()
            assert (inflate(payload) if first & RSV1 else payload) == bytes(code)
        elif isinstance(code, int):
            p.expect_close(code)
        else:
            p.expect(code)


@pytest.mark.parametrize("offer, answer", [
    ("permessage-deflate", "permessage-deflate"), ("x-other, permessage-deflate", "permessage-deflate"),
    ("permessage-deflate; client_max_window_bits", "permessage-deflate"),
    ('permessage-deflate; server_max_window_bits="10"', "permessage-deflate; server_max_window_bits=10"),
    ("permessage-deflate; server_max_window_bits=8, permessage-deflate; server_no_context_takeover",
     "permessage-deflate; server_no_context_takeover"),
    ("permessage-deflate; client_no_context_takeover", "permessage-deflate; client_no_context_takeover"),
    ("permessage-deflate; unknown", None), ("permessage-deflate; server_max_window_bits", None),
    ("permessage-deflate; server_max_window_bits=16", None), ("permessage-deflate; client_max_window_bits=08", None),
    ("permessage-deflate; client_max_window_bits; client_max_window_bits", None), ("", None),
])
def test_websocket_deflate_offer_is_negotiated(server, offer, answer):
    with Peer(server, "/context", [("Sec-WebSocket-Extensions", offer)]) as p:
        assert p.head.get("Sec-WebSocket-Extensions") == answer
        for _ in range(3):
            p.text("hello " * 1000)
            first, payload = p.read_frame()
            assert first == FIN | TEXT | (RSV1 if answer else 0) and (len(payload) < 500) == bool(answer)


@pytest.mark.parametrize("origin, status", [
    (None, 101), ("http://localhost", 101), ("http://LOCALHOST", 101), ("https://localhost", 101), ("ftp://localhost", 403),
    ("http://localhost:1", 403), ("https://a.example.org", 101), ("https://example.org", 403), ("http://a.example.org", 403),
    ("null", 403), ("", 403),
])
def test_websocket_origin_is_checked(server, origin, status):
    """A page over HTTPS may have the same origin although its request is not encrypted: a proxy may have terminated TLS."""
    with server.connect() as c:
        reply = c.ask("/guarded", fields=[*HANDSHAKE, *([("Origin", origin)] if origin is not None else [])]).read_head()
        assert reply.status == status


def test_websocket_handler_requires_websocket_upgrade(server):
    """The handler declines with status 426 and names the missing upgrade."""
    assert server.get("/echo").status == 426
    assert server.get("/echo", fields=[("Connection", "upgrade"), ("Upgrade", "example/2")]).status == 426


# ---- Timeouts and backpressure ----

def test_websocket_silent_client_is_pinged_then_dropped(server):
    with Peer(server, "/hasty") as p:
        for _ in range(3):
            assert p.read_frame() == (FIN | PING, b"")
            p.send(frame(FIN | PONG))
        assert p.read_frame() == (FIN | PING, b"")
        with pytest.raises(ConnectionResetError):
            p.read_frame()
    server.err.wait_for("sockets: closed 1006")


def test_websocket_unanswered_close_resets_connection(server):
    with Peer(server, "/hasty") as p:
        p.text("/close 4002 x")
        assert p.read_frame() == (FIN | CLOSE, struct.pack(">H", 4002) + b"x")
        with pytest.raises(ConnectionResetError):
            p.read_frame()


@all_protocols
def test_websocket_client_that_does_not_read_is_dropped(server):
    """The timeout applies even if the connection's buffers are full."""
    before = server.err.text.count("sockets: closed 1006")
    with Peer(server, "/hasty", receive_buffer=4096) as p:
        p.text("/fill 60000")
        server.err.wait_for("sockets: filled with 6")
        server.err.wait_for("sockets: closed 1006", count=before + 1)


def test_websocket_space_is_signalled_after_backpressure(server):
    with Peer(server, "/small") as p:
        p.text("/fill 100")
        n = 0
        while (got := p.read_frame()) != (FIN | TEXT, b"space"):
            assert got == (FIN | TEXT, b"x" * 1000)
            n += 1
        assert 3 <= n <= 5


def test_websocket_paused_input_is_delivered_later(server):
    with Peer(server, "/echo") as p:
        p.text("/pause 200")
        p.send(frame(FIN | PING, b"1") + b"".join(frame(FIN | TEXT, b"%d" % i) for i in range(3000)))
        assert p.read_frame() == (FIN | PONG, b"1")
        for i in range(3000):
            p.expect(str(i))


@pytest.mark.parametrize("together", [True, False])
def test_websocket_pause_may_end_in_the_same_callback(server, together):
    with Peer(server, "/echo") as p:
        for i in range(20):
            if together:
                p.send(frame(FIN | TEXT, b"/pause 0") + frame(FIN | TEXT, b"%d" % i))
            else:
                p.text("/pause 0").text(str(i))
            p.expect(str(i))


def test_websocket_ping_flood_is_answered_in_order(server):
    with Peer(server, "/small") as p:
        thread = threading.Thread(target=p.send, args=[b"".join(frame(FIN | PING, b"%d" % i) for i in range(20_000))])
        thread.start()
        for i in range(20_000):
            assert p.read_frame() == (FIN | PONG, b"%d" % i)
        thread.join()


# ---- Broadcast ----

@pytest.mark.parametrize("size", [5, 5000])
def test_websocket_broadcast_reaches_all(server, size):
    text = "x" * size
    with Peer(server, "/echo") as a, Peer(server, "/packed", [OFFER]) as b, Peer(server, "/context", [OFFER]) as c, \
            Peer(server, "/context", [("Sec-WebSocket-Extensions", "permessage-deflate; server_max_window_bits=9")]) as d:
        a.text("/all " + text).expect(text)
        for p in (b, c):
            first, payload = p.read_frame()
            assert (inflate(payload) if first & RSV1 else payload) == text.encode() and bool(first & RSV1) == (size > 64)
        d.expect(text)


def test_websocket_compression_context_survives_broadcast(server):
    """The test alternates between the socket's own compressed messages and broadcast messages, which use no context."""
    with dial(server, "/context", compression="deflate") as ws:
        for i in range(10):
            ws.send("/all " + f"news {i % 3} " * 100)
            assert ws.recv() == (f"news {i % 3} " * 100).strip()
            ws.send(f"news {i % 3} " * 100)
            assert ws.recv() == f"news {i % 3} " * 100


def test_websocket_compression_context_survives_idle_time(server):
    """The pause is longer than the idle timeout of /context, which frees the context's memory."""
    with dial(server, "/context", compression="deflate") as ws:
        for _ in range(2):
            for _ in range(3):
                ws.send("hello " * 100)
                assert ws.recv() == "hello " * 100
            with pytest.raises(TimeoutError):
                ws.recv(timeout=1)


# ---- Disconnects ----

@pytest.mark.parametrize("how", ["end", "reset", "within"])
def test_websocket_client_disconnect_closes_with_1006(server, how):
    before = server.err.text.count("sockets: closed 1006")
    with Peer(server, "/echo") as p:
        p.text("x").expect("x")
        if how == "within":
            p.send(frame(TEXT, b"abc") + frame(FIN | CONTINUATION, b"x" * 100)[:50])
        if how == "reset":
            p.c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    server.err.wait_for("sockets: closed 1006", count=before + 1)


# ---- Draining workers ----

@pytest.mark.processes("it reloads")
@all_protocols
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_websocket_drain_closes_with_1001(monkey, site, number):
    """Without a close frame, browser tabs would keep the old workers alive, or mistake the reload for a network failure."""
    server = prepare(monkey, site)
    old = server.workers
    with Peer(server, "/echo") as p, Peer(server, "/packed") as q:
        p.text("hello").expect("hello")
        q.text("/pause 60000")
        server.tell(number)
        for each in (p, q):
            first, payload = each.read_frame()
            assert (first, payload) == (FIN | CLOSE, struct.pack(">H", 1001))
            each.send(frame(FIN | CLOSE, payload)).expect_end()
        if number == signal.SIGHUP:
            wait_until(lambda: not set(server.workers) & set(old), "the old workers have ended", 20)
    server.err.wait_for("sockets: closed 1001", count=2)
    if number == signal.SIGQUIT:
        server.wait()


@pytest.mark.processes("it reloads")
@all_protocols
def test_event_stream_ends_on_drain(monkey, site):
    server = prepare(monkey, site)
    old = server.workers
    with server.connect() as c:
        c.ask("/events")
        c.read_head()
        assert read_events(c, b"\n\n") == b"retry: 2000\n\n"
        server.tell(signal.SIGHUP)
        if hasattr(c, "streams"):
            assert c.read_rest().replace(b":\n\n", b"") == b""
        else:
            while (chunk := read_chunk(c)):
                assert chunk == b":\n\n"
        wait_until(lambda: not set(server.workers) & set(old), "the old workers have ended", 20)


def test_websocket_opened_during_drain_is_closed(monkey, site):
    """The connection already exists; its request arrives late."""
    server = prepare(monkey, site)
    with server.connect(protocol="h2") as c, Peer(server, "/echo", protocol="h1") as p:
        c.get("/index.html")
        server.tell(signal.SIGQUIT)
        assert p.read_frame() == (FIN | CLOSE, struct.pack(">H", 1001))
        c.ask("/echo", "CONNECT", [("sec-websocket-version", "13")], streamed=True, protocol="websocket")
        assert c.read_head().status == 200
        assert c.read_some()[:4] == bytes([FIN | CLOSE, 2]) + struct.pack(">H", 1001)


def test_websocket_server_stop_closes_every_socket(monkey, site):
    prepare(monkey, site)


def test_websocket_chat_of_guide_works(monkey, tmp_path):
    manual.build_chat(tmp_path)
    server = monkey(plugins=[tmp_path / "monkey-chat.so"], workers=1, sections="[ROUTES]\n    /chat  chat\n")
    with dial(server, "/chat", compression="deflate") as a, dial(server, "/chat", origin=server.url) as b:
        for ws in (a, b):
            ws.send("hello")
            assert [a.recv(), b.recv()] == ["hello", "hello"]
    with pytest.raises(InvalidStatus):
        dial(server, "/chat", origin="http://example.org")


def test_websocket_message_beyond_limit_closes_with_1009(server):
    with dial(server, "/small") as ws:
        with pytest.raises(ConnectionClosed) as e:
            ws.send("x" * 1001)
            ws.recv()
        assert e.value.rcvd.code == 1009


# ---- Server-sent events ----

def read_events(c, mark):
    """Returns the text of a stream up to and including the mark, without keep-alive comments."""
    text = b""
    while mark not in text:
        text += c.read_some() if hasattr(c, "streams") else read_chunk(c)
        text = text.replace(b":\n\n", b"")
    return text


def read_chunk(c):
    size = int(c.read_until(b"\r\n").strip(), 16)
    data = c.read_exactly(size)
    c.read_exactly(2)
    return data


@all_protocols
def test_event_stream_sends_events_and_resumes(server):
    with server.connect() as c, Peer(server, "/echo") as p:
        c.ask("/events", fields=[("Last-Event-ID", "6")])
        reply = c.read_head()
        assert (reply.status, reply["Content-Type"], reply["Cache-Control"]) == (200, "text/event-stream", "no-store")
        assert reply["X-Accel-Buffering"] == "no"
        assert read_events(c, b"\n\n") == b"retry: 2000\ndata: 6\n\n"
        p.text("/news one").expect("news 0")
        assert read_events(c, b"\n\n") == b"event: news\nid: 7\ndata: one\n\n"
        p.text("/news a\nb\r\n\rc").expect("news 0")
        assert read_events(c, b"\n\n") == b"event: news\nid: 7\ndata: a\ndata: b\ndata: \ndata: c\n\n"
        p.text("/over").text("/news late").expect("news 0")
        if p.is_h2:
            assert c.read_rest().replace(b":\n\n", b"") == b""
        else:
            while (chunk := read_chunk(c)):
                assert chunk == b":\n\n"
    server.err.wait_for("sockets: events over, 1")


def test_event_stream_sends_keep_alive_comments(server):
    with server.connect() as c:
        c.ask("/events").read_head()
        assert read_chunk(c) == b"retry: 2000\n\n"
        assert [read_chunk(c) for _ in range(3)] == [b":\n\n"] * 3


def test_event_stream_backpressure_refuses_events(server):
    text = "x" * 9000
    with server.connect(receive_buffer=4096) as c, Peer(server, "/echo") as p:
        c.ask("/events").read_head()
        n = 0
        while p.text("/news " + text).read_frame() == (FIN | TEXT, b"news 0"):
            n += 1
            assert n < 10000, "no event is refused"
        assert read_events(c, b"data: space\n\n").count(b"event: news") >= n


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_event_stream_ends_on_client_disconnect(server, method):
    before = server.err.text.count("sockets: events over, 1")
    with server.connect() as c:
        c.ask("/events", method).read_head()
    server.err.wait_for("sockets: events over, 1", count=before + 1)
