# SPDX-License-Identifier: Apache-2.0
"""Upgrades through the proxy: requests with a body, as docker and kubectl send them, and backends that accept or refuse."""
import base64
import hashlib

import pytest

from backend import Backend, response
from monkey import PROTOCOLS

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.fixture
def proxy(monkey):
    def start(backend, options="", **how):
        return monkey(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address} {options}\n", **how)

    return start


def receive(connection, n):
    got = b""
    while len(got) < n:
        piece = connection.recv(n - len(got))
        assert piece, got
        got += piece
    return got


def head_of(connection):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += receive(connection, 1)
    return head.decode()


class Upgrader(Backend):
    """Reads a body of this size, accepts the upgrade to `tcp`, sends a greeting, and then echoes its input in capitals."""

    def __init__(self, content=0):
        self.heads, self.contents, self.content = [], [], content
        super().__init__(script=self._talk)

    def _talk(self, connection):
        self.heads.append(head_of(connection))
        self.contents.append(receive(connection, self.content))
        connection.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nhello")
        while data := connection.recv(65536):
            connection.sendall(data.upper())


def ask(c, method="POST", content=b"", fields="", protocol="tcp", early=b""):
    length = f"Content-Length: {len(content)}\r\n" if content is not None else ""
    c.send(f"{method} /exec/1/start HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n{length}{fields}\r\n".encode()
           + (content or b"") + early)


@pytest.mark.parametrize("method", ["POST", "GET", "PUT", "HEAD"])
@pytest.mark.parametrize("size", [0, 1, 300, 16 * 1024])
@pytest.mark.parametrize("options", ["", "stream"])
def test_proxy_upgrade_with_body_becomes_tunnel(proxy, method, size, options):
    content = b"x" * size
    with Upgrader(size) as backend:
        server = proxy(backend, options)
        with server.connect() as c:
            ask(c, method, content)
            head = c.read_head()
            assert head.status == 101 and head["Upgrade"] == "tcp"
            assert c.read_exactly(5) == b"hello"
            c.send(b"abc")
            assert c.read_exactly(3) == b"ABC"
        assert backend.contents == [content]
        assert backend.heads[0].startswith(f"{method} /exec/1/start HTTP/1.1\r\n")
        assert "\r\nUpgrade: tcp\r\n" in backend.heads[0] and f"\r\nContent-Length: {size}\r\n" in backend.heads[0] + f"\r\nContent-Length: 0\r\n"


def test_proxy_upgrade_early_data_belongs_to_tunnel(proxy):
    with Upgrader(3) as backend:
        with proxy(backend).connect() as c:
            ask(c, content=b"{ }", early=b"early")
            assert c.read_head().status == 101
            assert c.read_exactly(10) == b"helloEARLY"
        assert backend.contents == [b"{ }"]


def test_proxy_upgrade_chunked_body_gets_content_length(proxy):
    with Upgrader(5) as backend:
        with proxy(backend).connect() as c:
            ask(c, content=None, fields="Transfer-Encoding: chunked\r\n", early=b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\nearly")
            assert c.read_head().status == 101
            assert c.read_exactly(10) == b"helloEARLY"
        assert backend.contents == [b"abcde"] and "chunked" not in backend.heads[0]


def test_proxy_upgrade_with_expect_gets_100_continue(proxy):
    with Upgrader(3) as backend:
        with proxy(backend).connect() as c:
            c.send(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 3\r\n"
                   b"Expect: 100-continue\r\n\r\n")
            assert c.read_head().status == 100
            c.send(b"abc")
            assert c.read_head().status == 101 and c.read_exactly(5) == b"hello"


@pytest.mark.parametrize("chunked", [False, True])
def test_proxy_upgrade_is_dropped_for_large_body(proxy, chunked):
    content = b"x" * (16 * 1024 + 1)
    with Backend(lambda request: response(str(len(request.body)))) as backend:
        with proxy(backend).connect() as c:
            if chunked:
                ask(c, content=None, fields="Transfer-Encoding: chunked\r\n", early=b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))
            else:
                ask(c, content=content)
            assert c.read().text == str(len(content))
        assert not backend.requests[0].get("Upgrade") and backend.requests[0].method == "POST"


def test_proxy_upgrade_refused_by_backend_keeps_connection(proxy):
    with Backend(lambda request: response(request.body[::-1])) as backend:
        with proxy(backend).connect() as c:
            for _ in range(2):
                ask(c, content=b"abc")
                assert c.read().text == "cba"
            assert c.get("/").text == ""
        assert [request.get("Upgrade") for request in backend.requests] == ["tcp", "tcp", None]


def test_proxy_upgrade_with_incomplete_body_is_not_sent(proxy):
    with Backend() as backend:
        server = proxy(backend)
        with server.connect() as c:
            c.send(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 10\r\n\r\nabc")
        assert server.get("/").status == 200
        assert [request.method for request in backend.requests] == ["GET"]


@pytest.mark.parametrize("protocol", ["h2c", "HTTP/2.0", "TLS/1.2", "websocket"])
def test_proxy_upgrade_to_unsupported_protocol_is_dropped(proxy, protocol):
    with Backend() as backend:
        with proxy(backend).connect() as c:
            ask(c, content=b"abc", protocol=protocol)
            assert c.read().status == 200
        assert not backend.requests[0].get("Upgrade") and backend.requests[0].body == b"abc"


# ---- Proof that a backend accepts a WebSocket ----

def accept_of(key):
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()


def send_handshake(server, fields, protocol="websocket"):
    """Returns the client's response when the backend sends 101 with these headers."""
    with server.connect() as c:
        c.send(f"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nSec-WebSocket-Version: 13\r\n"
               f"Sec-WebSocket-Key: {KEY}\r\n\r\n".encode())
        return c.read_head()


@pytest.mark.parametrize("lines, status", [
    ([f"Sec-WebSocket-Accept: {ACCEPT}"], 101), ([f"sec-websocket-accept:{ACCEPT} "], 101), ([], 502),
    (["Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA="], 502), ([f"Sec-WebSocket-Accept: {ACCEPT.lower()}"], 502),
    ([f"Sec-WebSocket-Accept: {ACCEPT}x"], 502), ([f"Sec-WebSocket-Accept: {ACCEPT}"] * 2, 502),
    (["Sec-WebSocket-Accept:"], 502), ([f"Sec-WebSocket-Accept: {KEY}"], 502)])
def test_proxy_websocket_requires_valid_accept_key(proxy, lines, status):
    def script(connection):
        head_of(connection)
        fields = "".join(f"{each}\r\n" for each in lines)
        connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{fields}\r\n".encode())
        connection.recv(1)

    with Backend(script=script) as backend:
        server = proxy(backend)
        head = send_handshake(server, lines)
        assert head.status == status
        if status == 101:
            assert head.all("Sec-WebSocket-Accept") == [ACCEPT]
        else:
            server.err.wait_for("a Sec-WebSocket-Accept that does not match the key of the request")


@pytest.mark.parametrize("protocol", [each for each in PROTOCOLS if each.startswith("h2")], indirect=True)
@pytest.mark.parametrize("right", [True, False])
def test_proxy_websocket_over_http2_requires_valid_accept_key(proxy, right):
    """An HTTP/2 client sends no key, so the proxy generates one."""
    def script(connection):
        head = head_of(connection)
        key = next(line.split(": ")[1] for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key"))
        accept = accept_of(key if right else f"x{key}")
        connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                           f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        connection.recv(1)

    with Backend(script=script) as backend:
        with proxy(backend).connect() as c:
            c.open([(":method", "CONNECT"), (":scheme", "http"), (":path", "/"), (":authority", "a"), (":protocol", "websocket"),
                    ("sec-websocket-version", "13")], end=False)
            assert c.read_head().status == (200 if right else 502)
