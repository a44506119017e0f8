# SPDX-License-Identifier: Apache-2.0
"""Full-duplex streaming, waiting handlers, and disconnecting clients, with handlers.c over real sockets."""
import hashlib
import os
import socket
import threading
from pathlib import Path

import pytest

from client import Client, Closed
from monkey import ROOT
from sockets import reset

pytestmark = pytest.mark.over("h1", "h2", why="a program of its own, without certificates")

PROGRAM = Path(os.environ.get("MONKEY_HANDLERS", ROOT / "build" / "dev" / "test_handlers")).resolve()
MB = 1 << 20


@pytest.fixture
def server(monkey):
    assert PROGRAM.exists(), f"{PROGRAM} is not built"
    return monkey(args=[], program=PROGRAM)


def records(server):
    return [line for line in server.out.text.splitlines() if not line.startswith("  ")]


def wait_for_record(server, pattern, count=1):
    return server.out.wait_for(rf"^{pattern}$", count)


def chunked(data, size=1000, extension=b"", trailers=b""):
    parts = [data[i:i + size] for i in range(0, len(data), size)]
    return b"".join(b"%x%s\r\n%s\r\n" % (len(p), extension, p) for p in parts) + b"0\r\n" + trailers + b"\r\n"


def ends(c, reply):
    """Checks that HTTP/1 closes the connection, because the start of the next request is unknown, and that HTTP/2 keeps it open."""
    if isinstance(c, Client):
        assert reply.closes
        c.expect_end()
    else:
        assert c.get("/early").body == b"early\n"


def send_and_read(c, data, streamed):
    """Sends a request body and reads the response at the same time; the HTTP/2 client always does so."""
    def send():
        for at in range(0, len(data), 10_000):
            c.more(data[at:at + 10_000])
        if streamed:
            c.done()

    if not isinstance(c, Client):
        send()
        return c.read()
    sender = threading.Thread(target=send)
    sender.start()
    reply = c.read("POST")
    sender.join(timeout=20)
    return reply


# Reading request bodies

@pytest.mark.parametrize("size", [1, 100, 4095, 4096, 4097, 65536, 300_000])
def test_request_body_of_known_length_arrives_complete(server, size):
    data = os.urandom(size)
    with server.connect() as c:
        assert c.get("/sink", "POST", body=data).body == b"%d %d\n" % (size, sum(data))
        assert c.get("/early").body == b"early\n"  # the next request starts at the right byte


@pytest.mark.http1
@pytest.mark.parametrize("piece", [1, 7, 1000, 65535])
def test_request_body_in_chunks_arrives_complete(server, piece):
    data = os.urandom(30_000 if piece > 1 else 500)
    body = chunked(data, piece, b";a=b;c=\"d\"", b"X-Sum: 1\r\nX-More: 2\r\n")
    with server.connect() as c:
        assert c.get("/sink", "POST", [("Transfer-Encoding", "chunked")], body).body == b"%d %d\n" % (len(data), sum(data))
        assert c.get("/early").body == b"early\n"


@pytest.mark.http1
def test_request_body_in_chunks_may_arrive_byte_by_byte(server):
    data = os.urandom(300)
    with server.connect() as c:
        c.send(b"POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        c.send_slowly(chunked(data, 50, trailers=b"A: b\r\n"))
        assert c.read("POST").body == b"%d %d\n" % (len(data), sum(data))


@pytest.mark.parametrize("target", ["/sink", "/echo"])
def test_request_body_may_be_empty(server, target):
    with server.connect() as c:
        reply = c.get(target, "POST", [("Content-Length", "0")])
        assert reply.status == 200 and reply.body == (b"0 0\n" if target == "/sink" else b"")
        reply = c.ask(target, "POST", streamed=True).done().read()
        assert reply.status == 200 and reply.body == (b"0 0\n" if target == "/sink" else b"")


@pytest.mark.http1
@pytest.mark.parametrize("wrong", [b"x\r\n", b"5\r\nabcdeX", b"-1\r\n", b"5 \r\nabcde\r\n", b"5\nabcde\r\n",
                                   b"11111111111111111\r\n", b"0\r\nA : b\r\n\r\n", b"0\r\n folded\r\n\r\n"])
def test_request_body_with_malformed_chunks_is_refused(server, wrong):
    with server.connect() as c:
        c.send(b"POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n" + wrong)
        reply = c.read("POST")
        assert reply.status in (400, 413) and reply.closes
        c.expect_end()


@pytest.mark.http1
def test_request_body_beyond_limit_is_refused_at_once(server):
    with server.connect() as c:
        reply = c.ask("/sink", "POST", [("Content-Length", "2147483649")]).read()
        assert reply.status == 413 and reply.closes
    with server.connect() as c:
        c.ask("/sink", "POST", [("Transfer-Encoding", "chunked")], b"80000001\r\n")
        reply = c.read()  # the client has not yet sent a byte of that chunk
        assert reply.status == 413 and reply.closes


def test_expect_continue_is_answered_when_handler_reads(server):
    with server.connect() as c:
        c.ask("/sink", "POST", [("Content-Length", "3"), ("Expect", "100-continue")])
        assert c.read_interim().status == 100
        assert c.more(b"abc").read().body == b"3 294\n"
        assert c.get("/early").body == b"early\n"


def test_expect_continue_is_answered_before_response_that_reads(server):
    with server.connect() as c:
        c.ask("/echo", "POST", [("Content-Length", "3"), ("Expect", "100-continue")])
        assert c.read_interim().status == 100
        assert c.more(b"abc").read().body == b"abc"
        assert c.get("/early").body == b"early\n"


def test_expect_continue_is_not_answered_if_handler_does_not_read(server):
    with server.connect() as c:
        reply = c.ask("/early", "POST", [("Content-Length", "3"), ("Expect", "100-continue")]).read()
        assert reply.status == 200 and not reply.interim
        ends(c, reply)


@pytest.mark.over("h1", why="in one piece; of HTTP/2 it comes in the next frame")
def test_expect_continue_is_not_answered_if_body_is_there(server):
    with server.connect() as c:
        reply = c.get("/sink", "POST", [("Expect", "100-continue")], b"abc")
        assert reply.body == b"3 294\n" and not reply.interim


def test_request_body_left_unread_is_skipped(server):
    with server.connect() as c:
        assert c.get("/early", "POST", body=b"GET /slow HTTP/1.1\r\n\r\n" * 100).body == b"early\n"
        assert c.ask("/early", "POST", streamed=True).more(b"y" * 3000).done().read().body == b"early\n"
        assert c.get("/sink", "POST", body=b"a").body == b"1 97\n"


@pytest.mark.http1
def test_early_response_reaches_client_that_still_sends(server):
    with server.connect() as c:
        sender = threading.Thread(target=lambda: try_to(c.sock.sendall, b"z" * (20 * MB)))
        c.send(b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (20 * MB))
        sender.start()
        reply = c.read("POST")
        assert reply.body == b"early\n" and reply.closes
        c.sock.shutdown(socket.SHUT_WR)
        sender.join(timeout=20)
        assert not sender.is_alive()


def try_to(function, *arguments):
    try:
        function(*arguments)
    except OSError:
        pass


# Writing responses

@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 70_000, 5 * MB])
def test_body_source_of_known_and_unknown_length(server, size):
    with server.connect() as c:
        reply = c.get(f"/known?{size}")
        assert reply.framing == "length" and reply.body == b"x" * size
        reply = c.get(f"/unknown?{size}")
        assert reply.framing in ("chunked", "frames") and reply.body == b"x" * size
        assert c.get(f"/unknown?{size}", "HEAD").body == b""
        assert c.get("/closed").body == b"3\n"  # each body source was closed exactly once


@pytest.mark.http1
def test_body_source_to_http_1_0_ends_with_connection(server):
    with server.connect() as c:
        reply = c.ask("/unknown?100000", version="1.0", fields=[("Connection", "keep-alive")]).read()
        assert reply.framing == "close" and reply.body == b"x" * 100_000
    with server.connect() as c:
        reply = c.ask("/known?1000", version="1.0", fields=[("Connection", "keep-alive")]).read()
        assert reply.framing == "length" and not reply.closes
        assert c.ask("/early", version="1.0").read().body == b"early\n"
        c.expect_end()


@pytest.mark.parametrize("target", ["/broken?500000", "/broken-known?500000"])
def test_body_source_failure_truncates_response(server, target):
    with server.connect() as c, pytest.raises((Closed, ConnectionResetError)):
        c.get(target)
    wait_for_record(server, rf"200 failed 5\d+ {target.split('?')[0]}")


@pytest.mark.http1
def test_body_source_failure_resets_http_1_0_connection(server):
    with server.connect() as c, pytest.raises(ConnectionResetError):
        c.ask("/broken?500000", version="1.0").read()


@pytest.mark.parametrize("target", ["/broken?5000", "/broken-known?5000", "/broken?0"])
def test_body_source_failure_before_first_byte_gets_500(server, target):
    with server.connect() as c:
        assert c.get("/early").body == b"early\n"
        reply = c.get(target)
        assert reply.status == 500 and "500 Internal Server Error" in reply.text
        ends(c, reply)
    wait_for_record(server, rf"500 \S+ {len(reply.body)} {target.split('?')[0]}")


def test_response_head_too_large_gets_500(server):
    with server.connect() as c:
        reply = c.get("/mad")
        assert reply.status == 500
        ends(c, reply)


def test_handler_error_without_status_gets_500(server):
    assert server.get("/error").status == 500


# Full duplex

@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_echo_returns_complete_body(server, coding):
    data = os.urandom(3 * MB)
    with server.connect() as c:
        if coding == "length":
            c.ask("/echo", "POST", {"Content-Length": str(len(data))})
        else:
            c.ask("/echo", "POST", streamed=True)
        reply = send_and_read(c, data, coding == "chunked")
        assert reply.framing in (coding, "frames") and hashlib.sha256(reply.body).digest() == hashlib.sha256(data).digest()
        assert c.get("/early").body == b"early\n"


@pytest.mark.http1
def test_echo_is_full_duplex(server):
    with server.connect() as c:
        c.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for word in [b"one", b"two", b"three"]:
            c.send(b"%x\r\n%s\r\n" % (len(word), word))
            if word == b"one":
                assert c.read_head().status == 200
            assert c.read_until(b"\r\n").lstrip(b"0") == b"%x" % len(word)
            assert c.read_exactly(len(word) + 2) == word + b"\r\n"
        c.send(b"0\r\n\r\n")
        assert c.read_until(b"\r\n\r\n") == b"0"


def memory_kb(pid):
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


@pytest.mark.http1
def test_backpressure_stops_reading_the_request_body(server):
    """The response fills all buffers; then the server stops reading the request body."""
    with server.connect(receive_buffer=8192) as c:
        c.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (256 * MB))
        c.sock.settimeout(0.5)
        sent = 0
        try:
            while sent < 256 * MB:
                sent += c.sock.send(b"e" * 65536)
        except TimeoutError:
            pass
        assert sent < 64 * MB, "the server read more than it could forward"
        # Both directions resume as soon as the client reads again.
        c.sock.settimeout(20)
        assert c.read_head().status == 200
        assert c.read_exactly(2 * MB) == b"e" * (2 * MB)


@pytest.mark.http2
@pytest.mark.parametrize("target", ["/sink", "/echo"])
def test_large_upload_over_http2_uses_no_memory(monkey, target):
    server = monkey(args=[], program=optimized())
    assert server.get("/sink", "POST", body=b"warm up").status == 200
    size, piece = 64 * MB, b"u" * MB
    with server.connect() as c:
        c.ask(target, "POST", {"Content-Length": str(size)})
        c.more(piece)
        before = memory_kb(server.pid)
        for _ in range(size // MB - 1):
            c.more(piece)
            c.stream.body.clear()
        c.wait(lambda: c.stream.ended)
        grown = memory_kb(server.pid) - before
    assert grown < 1024, f"{grown} KB growth after an upload of {size // MB} MB"


def optimized():
    program = ROOT / "build" / "release" / "test_handlers"
    if not program.exists():
        pytest.skip("needs build/release/test_handlers")
    return program


@pytest.mark.http1
@pytest.mark.parametrize("target", ["/sink", "/echo"])
def test_large_upload_uses_no_memory(monkey, target):
    """Uses the release program, because sanitizers need memory of their own."""
    server = monkey(args=[], program=optimized())
    assert server.get("/sink", "POST", body=b"warm up").status == 200
    size, piece = 256 * MB, b"u" * MB
    with server.connect() as c:
        c.send(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (target.encode(), size))
        before = memory_kb(server.pid)
        reader = threading.Thread(target=lambda: read_and_discard(c, size if target == "/echo" else 0))
        reader.start()
        for _ in range(size // MB):
            c.sock.sendall(piece)
        reader.join(timeout=60)
        assert not reader.is_alive()
        grown = memory_kb(server.pid) - before
    assert grown < 1024, f"{grown} KB growth after an upload of {size // MB} MB"


def read_and_discard(c, content):
    head = c.read_head()
    left = content or int(head["Content-Length"])
    while left:
        left -= len(c.take(left)) if c.got or c.fill() else left


# Waiting handlers

def test_waiting_handler_does_not_block_others(server):
    with server.connect() as waiting, server.connect() as other:
        waiting.ask("/slow?700")
        for _ in range(20):
            assert other.get("/early").body == b"early\n"
        assert waiting.read().body == b"at last\n"


def test_waiting_handler_keeps_order_of_pipeline(server):
    with server.connect() as c:
        for target in ["/slow?150", "/early", "/thread", "/sink", "/slow?10", "/early"]:
            c.ask(target)
        bodies = [c.read().body for _ in range(6)]
        assert bodies == [b"at last\n", b"early\n", b"42\n", b"0 0\n", b"at last\n", b"early\n"]


def test_waiting_handler_is_resumed_by_another_thread(server):
    with server.connect() as c:
        for _ in range(50):
            assert c.get("/thread").body == b"42\n"


def test_waiting_handler_that_never_resumes_times_out(server):
    with server.connect() as c:
        reply = c.get("/never")
        assert reply.status == 504
        ends(c, reply)
    wait_for_record(server, "504 timeout .* /never")


def test_request_body_that_stops_times_out(server):
    with server.connect() as c:
        reply = c.ask("/sink", "POST", {"Content-Length": "100"}).more(b"abc").read()
        assert reply.status == 408
        ends(c, reply)
    wait_for_record(server, "408 timeout .* /sink")


# Disconnects

def request_with_partial_body(target, length=None, piece=b""):
    """Sends a request with a part of its body."""
    def begin(c):
        c.ask(target, "POST" if length else "GET", {"Content-Length": str(length)} if length else ())
        if piece:
            c.more(piece)

    return begin


GOING = [(request_with_partial_body("/slow?300"), "/slow"),
         (request_with_partial_body("/never"), "/never"),
         (request_with_partial_body("/thread"), "/thread"),
         (request_with_partial_body("/unknown?100000000"), "/unknown"),
         (request_with_partial_body("/sink", 10, b"abc"), "/sink"),
         (request_with_partial_body("/echo", 10, b"abc"), "/echo"),
         (lambda c: c.ask("/sink", "POST", streamed=True).more(b"ab"), "/sink"),
         (request_with_partial_body("/early", 10, b"abc"), "/early")]


@pytest.mark.parametrize("beginning,path", GOING)
@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_disconnect_leaves_one_log_record(server, beginning, path, how):
    with server.connect() as c:
        beginning(c)
        if path in ("/unknown", "/echo", "/early"):
            c.begin()
        if server.is_h2:  # the request body has arrived, and no unread data turns the close into a reset
            c.ping().wait(lambda: not c.pings)
        if how == "reset":
            reset(c.sock)
    wait_for_record(server, rf"\d+ \w+ \d+ {path}")
    assert server.get("/closed").status == 200
    wait_for_record(server, r"200 ok \d+ /closed")
    assert len([r for r in records(server) if r.endswith(path)]) == 1


@pytest.mark.http1
def test_half_closed_client_gets_its_response(server):
    with server.connect() as c:
        c.ask("/slow?200").shut()
        assert c.read().body == b"at last\n"
    with server.connect() as c:
        c.ask("/sink", "POST", body=b"abc").shut()
        assert c.read().body == b"3 294\n"
        c.expect_end()
