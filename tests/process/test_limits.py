# SPDX-License-Identifier: Apache-2.0
"""Each limit is exact: a request that exceeds it gets the proper error status, and the server serves the next request."""
import pytest

pytestmark = pytest.mark.http1  # limits are exact to the byte of an HTTP/1 head; tests/http tests HTTP/2


def ends_with(server, status, data):
    """The request gets this status and a clean close, and the server serves the next request."""
    with server.connect() as c:
        reply = c.send(data).read()
        assert (reply.status, reply.closes) == (status, True), repr(reply)
        c.shut().expect_end()
    assert server.get("/").text == "hello"


def head_of(size):
    """Returns a valid head of `size` bytes."""
    head = b"GET / HTTP/1.1\r\nHost: x\r\nX: \r\n\r\n"
    return head.replace(b"X: ", b"X: " + b"x" * (size - len(head)))


@pytest.fixture
def start(monkey, site):
    site.add("index.html", "hello")
    return lambda server: monkey(server=server)


@pytest.mark.parametrize("limit, size", [("256", 256), ("1000", 1000), ("16K", 16384), ("60K", 61440)])
def test_max_header_size_is_exact(start, limit, size):
    server = start(f"MaxHeaderSize {limit}")
    assert server.send(head_of(size)).text == "hello"
    ends_with(server, 431, head_of(size + 1))


def test_max_header_size_refuses_endless_head(start):
    server = start("MaxHeaderSize 4K")
    ends_with(server, 431, b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100000)
    ends_with(server, 431, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1000)


@pytest.mark.parametrize("limit", [64, 100, 8192])
def test_max_uri_size_is_exact(start, limit):
    server = start(f"MaxURISize {limit}\nMaxHeaderSize 60K")
    request = "GET {} HTTP/1.1\r\nHost: x\r\n\r\n"
    assert server.send(request.format("/?" + "x" * (limit - 2)).encode()).status == 200
    ends_with(server, 414, request.format("/?" + "x" * (limit - 1)).encode())
    ends_with(server, 414, b"GET /" + b"x" * 70000)


@pytest.mark.parametrize("limit", [8, 100])
def test_max_headers_is_exact(start, limit):
    server = start(f"MaxHeaders {limit}\nMaxHeaderSize 60K")
    request = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * (limit - 1)
    assert server.send(request + b"\r\n").text == "hello"
    ends_with(server, 431, request + b"X: y\r\n\r\n")


def post(size, *fields):
    lines = "".join(f"{field}\r\n" for field in fields)
    return f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n{lines}\r\n".encode()


@pytest.mark.parametrize("limit, size", [("1", 1), ("10", 10), ("2K", 2048), ("1M", 1 << 20)])
def test_max_body_size_is_exact(start, limit, size):
    server = start(f"MaxBodySize {limit}\nMinRate off")
    assert server.send(post(size) + b"x" * size).status == 405
    ends_with(server, 413, post(size + 1))


def test_max_body_size_may_be_unlimited(start):
    server = start("MaxBodySize unlimited")
    assert server.send(post(1 << 62)).status == 405


def test_max_body_size_refuses_expect_at_once(start):
    server = start("MaxBodySize 10")
    ends_with(server, 413, post(11, "Expect: 100-continue"))


def test_max_request_size_is_exact(start):
    """The limit applies to the sum of head and body, in KB as in Monkey 1.6."""
    server = start("MaxRequestSize 2")
    head = len(post(1000))
    assert server.send(post(2048 - head) + b"x" * (2048 - head)).status == 405
    ends_with(server, 413, post(2049 - head))
    assert start("MaxRequestSize 2500B").send(post(2048 - head) + b"x" * (2048 - head)).status == 405


def test_max_body_size_applies_if_smaller_than_max_request_size(start):
    server = start("MaxRequestSize 1M\nMaxBodySize 10")
    ends_with(server, 413, post(11))


# Connections

def test_keep_alive_requests_closes_after_limit(start):
    server = start("KeepAliveRequests 3")
    with server.connect() as c:
        assert [c.get("/").closes for _ in range(3)] == [False, False, True]
        c.expect_end()


def test_keep_alive_requests_applies_to_pipelines(start):
    server = start("KeepAliveRequests 3")
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
        assert [c.read().closes for _ in range(3)] == [False, False, True]
        c.shut().expect_end()


def test_keep_alive_requests_may_be_unlimited(start):
    server = start("KeepAliveRequests unlimited")
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3000)
        assert not any(c.read().closes for _ in range(3000))


def test_keep_alive_off_closes_every_connection(start):
    server = start("KeepAlive off")
    for fields in ([], [("Connection", "keep-alive")]):
        with server.connect() as c:
            assert c.get("/", fields=fields).closes
            c.expect_end()
    with server.connect() as c:
        assert c.get("/", fields=[("Connection", "keep-alive")], version="1.0").closes
        c.expect_end()
