# SPDX-License-Identifier: Apache-2.0
"""Persistent connections: lifetime, order of responses, and close (RFC 9112, section 9)."""
import os
import random
import signal
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from client import Client
from sockets import reset

GET = b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def server(monkey, site):
    site.add("index.html", "index")
    site.add("a.txt", "hello")
    return monkey()


def ends(c, reply):
    """Checks that HTTP/1 closes the connection, because the start of the next request is unknown, and that HTTP/2 keeps it open."""
    if isinstance(c, Client):
        assert reply.closes
        c.expect_end()
    else:
        assert not reply.closes and c.is_open()


@contextmanager
def paused(server):
    """Stops the workers. When they continue, they receive at once everything that the client has sent in the meantime."""
    pids = server.workers
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            pass
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


# Keep-alive

@pytest.mark.http1
def test_response_version_is_always_http_1_1(server):
    for version in ("1.0", "1.1", "1.2", "1.9"):
        assert server.get("/a.txt", version=version).head.startswith(b"HTTP/1.1 200 OK\r\n")


def test_connection_serves_a_hundred_requests(server):
    with server.connect() as c:
        for _ in range(100):
            assert c.get("/a.txt").text == "hello"


@pytest.mark.http1
def test_keep_alive_off_closes_after_response(monkey, site):
    site.add("a.txt", "hello")
    with monkey(server="KeepAlive off").connect() as c:
        reply = c.get("/a.txt", fields={"Connection": "keep-alive"})
        assert reply.closes and reply.text == "hello"
        c.expect_end()


@pytest.mark.http1
def test_keep_alive_requests_limit_closes_connection(monkey, site):
    site.add("a.txt", "hello")
    with monkey(server="KeepAliveRequests 3").connect() as c:
        assert [c.get("/a.txt").closes for _ in range(3)] == [False, False, True]
        c.expect_end()


def test_idle_connection_closes_without_response(monkey, site):
    site.add("a.txt", "hello")
    with monkey(server="KeepAliveTimeout 1s").connect() as c:
        assert c.get("/a.txt").text == "hello"
        c.expect_end()


@pytest.mark.over("h1", "h1-tls", why="the client of HTTP/2 sends a preface; see test_h2_attacks.py")
def test_connection_without_request_closes_without_response(monkey):
    with monkey(server="Timeout 1s").connect() as c:
        c.expect_end()


# Pipelining

@pytest.mark.http1
def test_pipelined_responses_arrive_in_order(monkey, site):
    rng = random.Random(1)
    sizes = [0, 1, 5, 100, 4095, 4096, 8191, 8192, 8193, 20000, 65536, 300000]
    files = {f"/{size}.bin": rng.randbytes(size) for size in sizes}
    for name, content in files.items():
        site.add(name[1:], content)
    server = monkey()
    wishes = [rng.choice([*files, "/none.txt"]) for _ in range(300)]
    methods = [rng.choice(["GET", "GET", "GET", "HEAD", "POST"]) for _ in wishes]
    with server.connect() as c:
        data = b"".join(f"{method} {name} HTTP/1.1\r\nHost: a\r\nX: {'y' * rng.randrange(300)}\r\n".encode() +
                        (b"Content-Length: 5\r\n\r\nGET /" if method == "POST" else b"\r\n")
                        for name, method in zip(wishes, methods))
        sender = threading.Thread(target=c.send, args=(data,))
        sender.start()
        for name, method in zip(wishes, methods):
            reply = c.read(method)
            if name not in files:
                assert reply.status == (405 if method == "POST" else 404)
            elif method == "POST":
                assert reply.status == 405
            else:
                assert reply.status == 200
                assert reply.body == (files[name] if method == "GET" else b"")
                assert int(reply["Content-Length"]) == len(files[name])
        sender.join()


@pytest.mark.http1
@pytest.mark.parametrize("step", [1 << 20, 1000, 777, 64])
def test_pipelined_thousand_requests_are_answered(monkey, site, step):
    site.add("a.txt", "hello")
    server = monkey(server="KeepAliveRequests 0")
    data = GET * 1000
    with server.connect() as c:
        for at in range(0, len(data), step):
            c.send(data[at:at + step])
        for _ in range(1000):
            reply = c.read()
            assert (reply.status, reply.text) == (200, "hello")
        assert c.is_open()


@pytest.mark.http1
def test_pipelining_client_that_does_not_read_is_throttled(monkey, site):
    """The server stops reading requests while the client reads no responses, and resumes when the client does."""
    content = os.urandom(5000)
    site.add("a.bin", content)
    server = monkey(server="KeepAliveRequests 0")
    pipelined, many = b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n", 4000
    with server.connect(receive_buffer=8192) as c:
        c.sock.setblocking(False)
        data, sent = pipelined * many, 0
        try:
            while sent < len(data):
                sent += c.sock.send(data[sent:])
        except BlockingIOError:
            pass
        assert server.get("/a.bin").body == content, "other clients are served at the same time"
        c.sock.settimeout(30)
        sender = threading.Thread(target=c.send, args=(data[sent:],))
        sender.start()
        for _ in range(many):
            assert c.read().body == content
        sender.join()


@pytest.mark.http1
def test_partial_request_does_not_delay_previous_response(server):
    with server.connect() as c:
        c.send(GET + GET[:20])
        assert c.read().text == "hello"
        c.send(GET[20:])
        assert c.read().text == "hello"


@pytest.mark.http1
@pytest.mark.parametrize("rest", [b"", b"GET /a", GET[:-1], b"GET /a.txt HTTP/1.1\r\nHost: a\r\nX"],
                         ids=["nothing", "a bit", "all but a byte", "a field"])
@pytest.mark.parametrize("count", [1, 2, 50])
def test_requests_before_half_close_are_answered(server, count, rest):
    with server.connect() as c:
        assert c.get("/a.txt").text == "hello"  # the worker has accepted the connection
        with paused(server):
            c.send(GET * count + rest).shut()
        for _ in range(count):
            assert c.read().text == "hello"
        c.expect_end()


@pytest.mark.slow
@pytest.mark.http1
def test_batched_responses_survive_half_close_with_full_socket(monkey, site):
    content = os.urandom(8000)  # responses of this size are sent in batches
    site.add("a.bin", content)
    pipelined = b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n"
    server = monkey(server="KeepAliveRequests 0")
    for count in range(4, 240, 3):  # with some of these counts, the socket is full exactly when the last batch is due
        with server.connect(receive_buffer=4096) as c:
            assert c.send(pipelined).read().body == content
            with paused(server):
                c.send(pipelined * count + pipelined[:9]).shut()
            assert server.get("/a.bin").body == content  # the worker has sent as many of the responses as it can
            for _ in range(count):
                assert c.read().body == content
            c.expect_end()


@pytest.mark.http1
def test_large_response_survives_half_close(monkey, site):
    content = os.urandom(3 << 20)
    site.add("a.bin", content)
    with monkey().connect(receive_buffer=4096) as c:
        c.send(b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n").shut()
        assert c.read().body == content
        c.expect_end()


# Request bodies that the handler does not read

@pytest.mark.parametrize("size", [1, 1000, 60000])
def test_small_unread_body_keeps_connection(server, size):
    with server.connect() as c:
        reply = c.get("/a.txt", "POST", body=GET * (size // len(GET)) + b"x" * (size % len(GET)))
        assert reply.status == 405 and not reply.closes
        assert c.get("/a.txt").text == "hello"


@pytest.mark.http1
def test_unread_chunked_body_is_skipped(server):
    with server.connect() as c:
        body = b"".join(b"%x\r\n%b\r\n" % (len(GET), GET) for _ in range(100)) + b"0\r\nX: y\r\n\r\n"
        assert c.get("/a.txt", "POST", {"Transfer-Encoding": "chunked"}, body).status == 405
        assert c.get("/a.txt").text == "hello"


def test_body_of_get_and_head_is_skipped(server):
    with server.connect() as c:
        for method in ("GET", "HEAD"):
            reply = c.get("/a.txt", method, body=GET)
            assert (reply.status, reply.body) == (200, b"hello" if method == "GET" else b"")
        assert c.get("/a.txt").text == "hello"


@pytest.mark.http1
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_large_unread_body_closes_connection_after_response(monkey, site, framing):
    """The client keeps sending without reading, but must still receive the response."""
    site.add("a.txt", "hello")
    site.add("405.html", b"x" * 500_000)  # more than the socket buffers of both sides hold
    server = monkey(server="MaxBodySize 0", sections="[ERROR_PAGES]\n    405 405.html\n")
    size = 3_000_000
    with server.connect(receive_buffer=4096) as c:
        if framing == "length":
            c.ask("/a.txt", "POST", {"Content-Length": str(size)})
            body = b"x" * size
        else:
            c.ask("/a.txt", "POST", {"Transfer-Encoding": "chunked"})
            body = b"2710\r\n" + b"x" * 10000 + b"\r\n"
            body *= size // 10000
        sender = threading.Thread(target=send_as_far_as_possible, args=(c, body))
        sender.start()
        reply = c.read()
        assert reply.status == 405 and len(reply.body) == 500_000
        if framing == "length":
            assert reply.closes
        c.expect_end()
        sender.join()


def send_as_far_as_possible(c, body):
    try:
        c.send(body)
    except OSError:
        pass


@pytest.mark.parametrize("half_close", [False, pytest.param(True, marks=pytest.mark.http1)])
def test_early_response_survives_unread_body(monkey, site, half_close):
    site.add("413.html", b"x" * 500_000)
    server = monkey(server="MaxBodySize 1000", sections="[ERROR_PAGES]\n    413 413.html\n")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/", "POST", body=b"x" * 200_000)
        if half_close:
            c.shut()
        reply = c.read()
        assert reply.status == 413 and len(reply.body) == 500_000
        ends(c, reply)


@pytest.mark.http1
@pytest.mark.parametrize("limit", ["KeepAliveRequests 1", "KeepAlive off"])
def test_response_survives_requests_after_unannounced_close(monkey, site, limit):
    """The client sends a second request before it has read that the connection closes: no reset discards the first response."""
    content = os.urandom(150_000)  # fits into the socket buffers: the server has sent it before the client reads
    site.add("a.bin", content)
    server = monkey(server=f"{limit}\nAccessLog stdout\nAccessLogFormat short")
    with server.connect(receive_buffer=4096) as c:
        c.send(b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        server.out.wait_for("200 GET /a.bin")
        c.send(GET)
        reply = c.read()
        assert reply.closes and reply.body == content
        c.expect_end()


@pytest.mark.http1
def test_lingering_close_is_limited(monkey, site):
    """The server disconnects a client that never stops sending, without affecting other clients."""
    site.add("a.txt", "hello")
    server = monkey(server="LingerTimeout 500ms")
    with server.connect() as c:
        c.ask("/a.txt", "POST", {"Content-Length": "999999999999"})

        def flood():
            with pytest.raises(OSError):
                while True:
                    c.sock.send(b"x" * (1 << 20))
            return True

        flooder = threading.Thread(target=flood)
        flooder.start()
        while flooder.is_alive():
            assert server.get("/a.txt").text == "hello"
        flooder.join()


# Expect: 100-continue

def test_expect_refused_request_is_answered_at_once(server):
    with server.connect() as c:
        c.ask("/a.txt", "POST", {"Expect": "100-continue", "Content-Length": "1000"})
        reply = c.read()
        assert reply.status == 405 and not reply.interim
        ends(c, reply)  # the server cannot know whether the client will send the body


@pytest.mark.parametrize("length", ["0", None])
def test_expect_without_body_gets_no_100(server, length):
    with server.connect() as c:
        fields = {"Expect": "100-continue"} | ({"Content-Length": length} if length else {})
        reply = c.get("/a.txt", fields=fields)
        assert (reply.status, reply.interim) == (200, [])
        assert c.get("/a.txt").text == "hello"


def test_expect_with_too_large_body_is_refused_at_once(server):
    with server.connect() as c:
        c.ask("/a.txt", "POST", {"Expect": "100-continue", "Content-Length": "99999999"})
        reply = c.read()
        assert (reply.status, reply.interim) == (413, [])
        ends(c, reply)


@pytest.mark.parametrize("value", ["200-ok", "100-continue, x", "100-continu"])
def test_unknown_expectation_is_refused(server, value):
    with server.connect() as c:
        reply = c.get("/a.txt", fields={"Expect": value})
        assert reply.status == 417
        ends(c, reply)


# Clients that disconnect

def test_client_reset_during_response_is_harmless(monkey, site):
    site.add("a.bin", os.urandom(8 << 20))
    site.add("a.txt", "hello")
    server = monkey()
    for at in (0, 1, 100, 10_000, 1_000_000):
        c = server.connect(receive_buffer=4096).ask("/a.bin")
        if at:
            c.read_head()
            c.read_exactly(at)
        reset(c.sock)
    assert server.get("/a.txt").text == "hello"


@pytest.mark.http1
@pytest.mark.parametrize("at", range(0, len(GET), 5))
def test_client_disconnect_during_request_is_harmless(server, at):
    for resets in (True, False):
        c = server.connect()
        c.send(GET[:at])
        (reset(c.sock) if resets else c.close())
    assert server.get("/a.txt").text == "hello"


def test_many_connections_are_served_at_once(monkey, site):
    content = {f"/{i}.bin": os.urandom(i * 3000) for i in range(20)}
    for name, data in content.items():
        site.add(name[1:], data)
    server = monkey(workers=2)
    clients = [server.connect() for _ in range(100)]
    for round_ in range(4):
        names = [f"/{(round_ * 7 + i) % 20}.bin" for i in range(len(clients))]
        for c, name in zip(clients, names):
            c.ask(name)
        for c, name in zip(clients, names):
            assert c.read().body == content[name]
    for c in clients:
        c.close()
