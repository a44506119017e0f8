# SPDX-License-Identifier: Apache-2.0
"""Request and response smuggling: backend responses and client requests that two servers could parse differently. The server
refuses each of them or forwards it in an unambiguous form, and no leftover bytes become part of another message.
"""
import re

import pytest

from backend import Backend, read_request, response
from client import Closed

OK = b"HTTP/1.1 200 OK\r\n"
EVIL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def with_length(value):
    return OK + b"Content-Length: " + value + b"\r\n\r\nhello"


def with_coding(*values, line=OK):
    return line + b"".join(b"Transfer-Encoding: " + each + b"\r\n" for each in values) + b"\r\n5\r\nhello\r\n0\r\n\r\n"


def chunked(data):
    return CHUNKED + data


REFUSED, CUT = "refused", "cut"
# The backend's response, and the client's result: REFUSED for a 502, CUT for a truncated response, otherwise the body.
RESPONSES = {
    # The framing
    "length and chunks": (OK + b"Content-Length: 5\r\n" + with_coding(b"chunked", line=b""), REFUSED),
    "chunks and length": (OK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n", REFUSED),
    "two lengths": (OK + b"Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello", REFUSED),
    "a list of lengths": (with_length(b"5, 6"), REFUSED),
    "a negative length": (with_length(b"-5"), REFUSED),
    "a length with a sign": (with_length(b"+5"), REFUSED),
    "a hexadecimal length": (with_length(b"0x5"), REFUSED),
    "a length in two words": (with_length(b"5 5"), REFUSED),
    "an empty length": (with_length(b""), REFUSED),
    "a length of 65 bits": (with_length(b"36893488147419103232"), REFUSED),
    "a length that is a fraction": (with_length(b"5.0"), REFUSED),
    "chunks twice": (with_coding(b"chunked, chunked"), REFUSED),
    "chunks in two lines": (with_coding(b"chunked", b"chunked"), REFUSED),
    "chunks that are not last": (with_coding(b"chunked, gzip"), REFUSED),
    "an unknown coding": (with_coding(b"xchunked"), REFUSED),
    "identity": (with_coding(b"identity"), REFUSED),
    "an empty coding": (with_coding(b""), REFUSED),
    "chunks in HTTP/1.0": (with_coding(b"chunked", line=b"HTTP/1.0 200 OK\r\n"), REFUSED),
    "chunks with 204": (with_coding(b"chunked", line=b"HTTP/1.1 204 No Content\r\n"), (REFUSED, b"")),
    "a length with 204": (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", b""),
    "content behind 304": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", b""),
    # The lines
    "a folded line": (OK + b"X-A: 1\r\n 2\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a folded first line": (OK + b" X-A: 1\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a blank before the colon": (OK + b"Content-Length : 5\r\n\r\nhello", REFUSED),
    "a tab before the colon": (OK + b"Transfer-Encoding\t: chunked\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a NUL in a value": (OK + b"X-A: a\0b\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a NUL in a name": (OK + b"X\0A: ab\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a bare CR in a value": (OK + b"X-A: a\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a line without a colon": (OK + b"nonsense\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a line without a name": (OK + b": 1\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a bare LF behind a line": (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", (REFUSED, b"hello")),
    "one bare LF": (OK + b"X-A: 1\nContent-Length: 5\r\n\r\nhello", (REFUSED, b"hello")),
    # The status line
    "HTTP/0.9": (b"<html>hello</html>", REFUSED),
    "HTTP/2": (b"\0\0\0\4\0\0\0\0\0" * 3, REFUSED),
    "a client of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REFUSED),
    "another version": (b"HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a long version": (b"HTTP/1.10 200 OK\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a short status": (b"HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a long status": (b"HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a status below all": (b"HTTP/1.1 099 OK\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a status above all": (b"HTTP/1.1 999 OK\r\nContent-Length: 5\r\n\r\nhello", (REFUSED, b"hello")),
    "two blanks": (b"HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\nhello", REFUSED),
    "a request": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED),
    "lines before it": (b"\r\n\r\n" + with_length(b"5"), (REFUSED, b"hello")),
    # Sizes
    "a huge head": (OK + b"X: y\r\n" * 30_000, REFUSED),
    "a huge line": (OK + b"X: " + b"y" * 200_000, REFUSED),
    "a flood of interim responses": (b"HTTP/1.1 100 Continue\r\n\r\n" * 3000 + with_length(b"5"), (REFUSED, b"hello")),
    # Too few or too many bytes
    "less than its length": (with_length(b"50"), CUT),
    "more than its length": (with_length(b"5") + EVIL, b"hello"),
    "more than its chunks": (chunked(b"5\r\nhello\r\n0\r\n\r\n") + EVIL, b"hello"),
    "more than no content": (b"HTTP/1.1 204 No Content\r\n\r\n" + EVIL, b""),
    "chunks that do not end": (chunked(b"5\r\nhello\r\n"), CUT),
    # Chunks
    "extensions": (chunked(b'5;a=b;c="d;e"\r\nhello\r\n0;f\r\n\r\n'), b"hello"),
    "a size with zeros": (chunked(b"0005\r\nhello\r\n00\r\n\r\n"), b"hello"),
    "a size with a prefix": (chunked(b"0x5\r\nhello\r\n0\r\n\r\n"), CUT),
    "a size with a sign": (chunked(b"+5\r\nhello\r\n0\r\n\r\n"), CUT),
    "a size behind a blank": (chunked(b" 5\r\nhello\r\n0\r\n\r\n"), CUT),
    "a size of 68 bits": (chunked(b"10000000000000005\r\nhello\r\n0\r\n\r\n"), CUT),
    "an empty size": (chunked(b"\r\nhello\r\n0\r\n\r\n"), CUT),
    "an extension with a bare LF": (chunked(b"5;a\nb\r\nhello\r\n0\r\n\r\n"), CUT),
    "a size that ends with LF": (chunked(b"5\nhello\r\n0\r\n\r\n"), (CUT, b"hello")),
    "a chunk that is longer": (chunked(b"3\r\nhello\r\n0\r\n\r\n"), CUT),
    "a trailer that frames": (chunked(b"5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n"), b"hello"),
    "a bad trailer": (chunked(b"5\r\nhello\r\n0\r\nbad name: 1\r\n\r\n"), CUT),
}


class Scripted(Backend):
    """Sends the response that the test has set, and records the connection and target of each request."""

    def __init__(self):
        self.raw, self.seen, self.ends = None, [], False
        super().__init__(script=self._talk)

    def _talk(self, connection):
        stream = connection.makefile("rb")
        while True:
            request = read_request(stream, connection)
            self.seen.append((connection.getpeername()[1], request))
            if request.target.startswith("/next"):
                connection.sendall(response("next"))
                continue
            connection.sendall(self.raw)
            if self.ends:
                return


@pytest.fixture(scope="module")
def backend():
    with Scripted() as each:
        yield each


class ServerStarter:
    def __init__(self, backend):
        self.backend = backend

    def prepare(self, monkey, site):
        monkey(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{self.backend.address}\n")


@pytest.fixture(scope="module")
def prepared(backend):
    return ServerStarter(backend)


@pytest.fixture
def server(prepared, lasting, backend):
    backend.seen.clear()
    return lasting(prepared.prepare)


def outcome(server, method="GET"):
    """Returns the result of a request on a connection of its own."""
    try:
        reply = server.get("/", method)
    except Closed:
        return CUT
    return REFUSED if reply.status == 502 else reply.body


@pytest.mark.parametrize("protocol", ["h1", "h2"], indirect=True)
@pytest.mark.parametrize("name", RESPONSES)
def test_proxy_ambiguous_response_is_refused_or_normalized(server, backend, name):
    backend.raw, wanted = RESPONSES[name]
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    backend.ends = CUT in wanted or name in ("HTTP/0.9", "HTTP/2")
    got = outcome(server)
    assert got in wanted or (got == REFUSED and CUT in wanted), got
    for _ in range(2):
        assert server.get("/next").text == "next"
    (first, _), (second, _), (third, _) = backend.seen[-3:]
    is_plain = got == b"hello" and b"evil" not in backend.raw
    assert second == third and (is_plain or first != second)


def test_proxy_body_after_head_response_is_dropped(server, backend):
    backend.raw, backend.ends = with_length(b"5"), False
    assert outcome(server, "HEAD") == b""
    assert server.get("/next").text == "next"
    assert backend.seen[-2][0] != backend.seen[-1][0]


def test_proxy_connection_close_without_close_is_not_reused(server, backend):
    backend.raw, backend.ends = OK + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello", False
    assert outcome(server) == b"hello"
    assert server.get("/next").text == "next"
    assert backend.seen[-2][0] != backend.seen[-1][0]


# ---- Requests ----

POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
REQUESTS = {
    "length and chunks": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 45\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 45\r\n\r\n",
    "a list of lengths": POST + b"Content-Length: 0, 45\r\n\r\n",
    "a length with a sign": POST + b"Content-Length: +0\r\n\r\n",
    "a blank before the colon": POST + b"Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n",
    "a tab before the coding": POST + b"Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n",
    "a form feed before the coding": POST + b"Transfer-Encoding: \x0cchunked\r\nContent-Length: 0\r\n\r\n",
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n",
    "chunks twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks that are not last": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n\r\n",
    "a folded name": POST + b"X-A: 1\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
    "a bare CR": POST + b"X-A: 1\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
    "a NUL": POST + b"Transfer-Encoding\0: chunked\r\nContent-Length: 0\r\n\r\n",
    "a name with an underscore": POST + b"Transfer_Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
    "lines with LF alone": b"POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n",
    "an extension with LF": POST + b"Transfer-Encoding: chunked\r\n\r\n0;a\nb\r\n\r\n",
    "a size with a prefix": POST + b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    "a chunk that is longer": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n",
    "a trailer that frames": POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 45\r\n\r\n",
    "a length that no one else sees": POST + b"Connection: Content-Length\r\nContent-Length: 5\r\n\r\nhello",
    "a coding that no one else sees": POST + b"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an upgrade to HTTP/2": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                            b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    "an upgrade to TLS": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n",
    "an upgrade with content": POST + b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.0 and chunks": b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an expectation": POST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "a target with another host": b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
}
FRAMING = {"content-length", "transfer-encoding"}
CONNECTIONS = {"connection", "keep-alive", "upgrade", "http2-settings", "te", "expect"}


@pytest.mark.parametrize("name", REQUESTS)
def test_proxy_ambiguous_request_is_refused_or_normalized(server, backend, name):
    """The backend receives one unambiguous request; the bytes after it are parsed as another request."""
    backend.raw, backend.ends = response("hello"), False
    with server.connect() as c:
        c.send(REQUESTS[name] + SMUGGLED)
        reply = c.read()
        assert reply.status in (200, 400, 411, 417, 426, 501, 505), reply
        if reply.status == 200 and not reply.closes:
            c.read()
        c.sock.shutdown(1)
        c.read_to_end()
    forwarded = [each for _, each in backend.seen]
    assert [each.target for each in forwarded] in ([], ["/"], ["/", "/smuggled"])
    assert reply.status == 200 or not forwarded
    for each in forwarded:
        names = [name.lower() for name, _ in each.fields]
        assert len([name for name in names if name in FRAMING]) <= 1
        assert not CONNECTIONS & set(names), names
        assert names.count("host") == 1


@pytest.mark.parametrize("protocol", ["h2"], indirect=True)
@pytest.mark.parametrize("pairs", [
    [("x-a", "1\r\nTransfer-Encoding: chunked")], [("x-a", "1\nx-b: 2")], [("x-a", "1\0")], [("x a", "1")], [("x-a:", "1")],
    [("x-a\r\nx-b", "1")], [("transfer-encoding", "chunked")], [("connection", "close")], [("content-length", "1, 2")],
    [("content-length", "0"), ("content-length", "5")], [("host", "a"), ("host", "b")], [(":path", "/a b")],
    [(":path", "/a\r\nX: 1")], [(":method", "GET /x HTTP/1.1\r\nX: 1\r\n\r\nGET")], [(":authority", "a\r\nX: 1")],
    [(":authority", "a b")], [(":scheme", "http://x/?")], [("te", "gzip")]], ids=lambda pairs: repr(pairs[0])[:40])
def test_proxy_ambiguous_http2_request_is_refused_or_normalized(server, backend, pairs):
    backend.raw, backend.ends = response("hello"), False
    first = {":method": "POST", ":scheme": "http", ":authority": "a", ":path": "/"}
    first |= {name: value for name, value in pairs if name.startswith(":")}
    with server.connect() as c:
        c.wait(lambda: c.settings_received)
        c.open([*first.items(), *(pair for pair in pairs if not pair[0].startswith(":"))])
        try:
            assert c.read().status in (200, 400)
        except Closed as error:
            assert error.code in ("PROTOCOL_ERROR", "COMPRESSION_ERROR"), error
    for _, request in backend.seen:
        assert request.target in ("/", "/a%20b") and request.method == "POST"
        assert not [name for name, value in request.fields if re.search(r"[\r\n\0 :]", name)]
        assert not request.get("X") and not request.get("x-b") and not request.get("Transfer-Encoding")


def test_proxy_upgrade_to_h2c_is_not_forwarded(server, backend):
    """If the backend upgraded, the client could bypass all rules of this server."""
    backend.raw, backend.ends = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", True
    with server.connect() as c:
        c.send(REQUESTS["an upgrade to HTTP/2"])
        assert c.read().status == 502
    assert not [name for _, request in backend.seen for name, _ in request.fields if name.lower() in ("upgrade", "http2-settings")]


@pytest.mark.parametrize("name", ["X_Forwarded_For", "X-Forwarded_Proto", "x_real_ip", "Via_", "_Host"])
def test_proxy_headers_that_imitate_ours_are_dropped(server, backend, name):
    """As CGI variables, both headers would have the same name."""
    server.get("/next", fields=[(name, "6.6.6.6")])
    (_, request), = backend.seen
    assert not request.get(name)
