# SPDX-License-Identifier: Apache-2.0
"""Request bodies through the proxy: the proxy receives the whole body before it acquires a backend connection."""
import contextlib
import json
import socket
import struct
from types import SimpleNamespace

import pytest

import h2frames
from backend import Backend, read_fields, response
from monkey import PROTOCOLS

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)


@pytest.fixture
def backend():
    with Backend() as each:
        yield each


@pytest.fixture
def proxy(monkey):
    """Starts the server with one route, which has these options."""
    def start(to, options="", **how):
        return monkey(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{to.address} {options}\n", **how)

    return start


CHUNKS = [("Transfer-Encoding", "chunked")]


def in_chunks(*chunks):
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"


def framing(request):
    return request.get("Content-Length"), request.get("Transfer-Encoding")


@pytest.mark.parametrize("option, chunks, expected", [
    ("", [b"hello", b"you"], ("8", None)), ("", [], ("0", None)), ("", [b"x" * 16383], ("16383", None)),
    ("", [b"x" * 16384], ("16384", None)), ("", [b"x" * 10_000] * 10, ("100000", None)),
    ("stream", [b"hello", b"you"], (None, "chunked")), ("stream", [], (None, "chunked"))])
def test_proxy_body_length_is_determined(proxy, backend, option, chunks, expected):
    server = proxy(backend, option)
    reply = server.get("/", "POST", CHUNKS, in_chunks(*chunks))
    assert json.loads(reply.text)["body"].encode() == b"".join(chunks)
    assert framing(backend.requests[0]) == expected


@every_protocol
@pytest.mark.parametrize("is_known", [True, False])
def test_proxy_slow_small_upload_holds_no_connection(proxy, backend, is_known):
    server = proxy(backend)
    with server.connect() as slow:
        slow.ask("/slow", "POST", [("Content-Length", "8")] if is_known else [], streamed=not is_known).more(b"hello")
        for _ in range(3):
            assert server.get("/").status == 200
        assert backend.connections == 1 and [request.target for request in backend.requests] == ["/"] * 3
        slow.more(b"you")
        if not is_known:
            slow.done()
        assert json.loads(slow.read().text)["body"] == "helloyou"
    assert framing(backend.requests[-1]) == ("8", None)


def test_proxy_stream_option_forwards_body_at_once(proxy):
    def script(connection):
        stream = connection.makefile("rb")
        read_fields(stream)
        stream.readline()
        connection.sendall(response(stream.read(4)[::-1]))

    with Backend(script=script) as backend, proxy(backend, "stream").connect() as c:
        assert c.ask("/", "POST", streamed=True).more(b"ping").read().text == "gnip"


@pytest.mark.parametrize("content, status", [(in_chunks(b"x" * 2000), 413), (b"5\r\nhello\r\nzz\r\n", 400)])
def test_proxy_refused_small_body_reaches_no_backend(proxy, backend, content, status):
    server = proxy(backend, server="MaxBodySize 1K")
    assert server.get("/", "POST", CHUNKS, content).status == status
    assert server.get("/end").status == 200 and [request.target for request in backend.requests] == ["/end"]


def test_proxy_expect_continue_is_answered_by_proxy(proxy, backend):
    with proxy(backend).connect() as c:
        c.ask("/", "POST", [("Expect", "100-continue")], streamed=True)
        c.read_exactly(len(b"HTTP/1.1 100 Continue\r\n\r\n"))
        assert json.loads(c.more(b"hello").done().read().text)["body"] == "hello"


def test_proxy_small_body_is_retried_with_trailers(monkey, backend):
    """The body is in memory, so the proxy can send all of it to another server."""
    with Backend(lambda request: None) as closes:
        top = f"[UPSTREAM]\n    Name group\n    Server {closes.address}\n    Server {backend.address}\n"
        server = monkey(plugins=["proxy"], workers=1, sections=top + "[ROUTES]\n    /* proxy http://group\n")
        with server.connect() as c:
            reply = c.ask("/", "PUT", streamed=True).more(b"x" * 9000).done([("X-Sum", "7")]).read()
    assert len(json.loads(reply.text)["body"]) == 9000
    assert closes.requests[0].trailers == backend.requests[0].trailers == [("X-Sum", "7")]


# ---- Early responses ----

def refuse_and_reset(connection):
    """Reads a part of the body, responds, and closes: the kernel answers data in flight with a reset."""
    connection.recv(1000)
    connection.sendall(response("too much", "413 Content Too Large"))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@every_protocol
@pytest.mark.parametrize("size, streamed", [(20_000, False), (1_000_000, True)])
def test_proxy_early_refusal_with_reset_reaches_client(proxy, size, streamed):
    with Backend(script=refuse_and_reset) as backend:
        server = proxy(backend, "stream", server="MaxBodySize 100M")
        for _ in range(3):
            with server.connect() as c:
                c.ask("/", "POST", [] if streamed else [("Content-Length", "50000000")], streamed=streamed)
                with contextlib.suppress(OSError):
                    c.more(b"x" * size)
                got = c.read()
                assert (got.status, got.text) == (413, "too much")


FIRST_AND_UPLOAD = {
    "h1": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"),
    "h2": (h2frames.PREFACE + h2frames.settings() + h2frames.headers(1, h2frames.block_of(h2frames.request())),
           h2frames.headers(3, h2frames.block_of(h2frames.request(method="POST", fields=[("content-length", "5")])), end=False) +
           h2frames.data(3, b"hello", end=True))}


@pytest.mark.parametrize("protocol", FIRST_AND_UPLOAD, indirect=True)
def test_proxy_sends_streamed_body_that_arrives_with_head_in_one_write(proxy, protocol):
    """The backend receives both together. The first request opens the connection to it."""
    first, upload = FIRST_AND_UPLOAD[protocol]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = proxy(SimpleNamespace(address="127.0.0.1:%d" % listening.getsockname()[1]), "stream")
        with socket.create_connection(server.addresses[0], timeout=20) as client:
            client.sendall(first)
            conn, _ = listening.accept()
            with conn:
                assert conn.recv(65536).startswith(b"GET ")
                conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                client.sendall(upload)
                received = conn.recv(65536)
                conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert received.startswith(b"POST ") and received.endswith(b"\r\n\r\nhello"), received
