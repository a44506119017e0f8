# SPDX-License-Identifier: Apache-2.0
"""Trailers of requests and responses (tests/plugins/api/trailers.c)."""
import pytest

from monkey import PROGRAM, ROOT

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"

pytestmark = pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1],
                                reason="the plugins of the tests are built with the program in build/dev")

CHUNKED = ("Transfer-Encoding", "chunked")
TE = ("TE", "trailers")


@pytest.fixture
def server(monkey, site):
    site.add("index.html", "hello")
    return monkey(plugins=[BUILT / "monkey-trailers.so"], sections="[ROUTES]\n    /t  trailers\n    /*  static\n")


def sent(server, section, **how):
    return server.get("/t", "POST", [CHUNKED], b"5\r\nhello\r\n0\r\n" + section + b"\r\n", **how)


# ---- Requests ----


def test_request_trailers_are_parsed(server):
    reply = sent(server, b"A: 1\r\nb:\t two \t\r\nA: \r\nX-Long: " + b"y" * 5000 + b"\r\n")
    assert reply.text == "A=1\nb=two\nA=\nX-Long=" + "y" * 5000 + "\n"


def test_request_trailers_may_arrive_in_pieces(server):
    with server.connect() as c:
        c.send(b"POST /t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        c.send_slowly(b"5\r\nhello\r\n0\r\nA: 1\r\nB: two words\r\n\r\n")
        assert c.read().text == "A=1\nB=two words\n"
        assert c.is_open()


def test_request_trailers_work_in_pipelines(server):
    template = b"POST /t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nN: %d\r\n\r\n"
    with server.connect() as c:
        c.send(b"".join(template % i for i in range(20)))
        assert [c.read().text for _ in range(20)] == [f"N={i}\n" for i in range(20)]


def test_request_without_trailers_has_none(server):
    assert sent(server, b"").text == ""
    assert server.get("/t", "POST", body=b"hello").text == ""
    assert server.get("/t").text == ""


@pytest.mark.parametrize("name", [
    "Content-Length", "transfer-encoding", "HOST", "Trailer", "TE", "Connection", "Keep-Alive", "Upgrade",
    "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "Content-Type", "Content-Encoding", "Content-Range",
    "Range", "If-Match", "If-None-Match", "Expect", "Max-Forwards", "Cache-Control", "Pragma", "X-Forwarded-For",
    "Forwarded", "Origin", "Sec-WebSocket-Key", "Warning"])
def test_request_trailers_that_are_forbidden_are_dropped(server, name):
    with server.connect() as c:
        c.ask("/t", "POST", [CHUNKED], b"0\r\nA: 1\r\n" + name.encode() + b": 7\r\nB: 2\r\n\r\n")
        assert c.read().text == "A=1\nB=2\n"
        assert c.is_open(), "the dropped trailers did not affect the framing"


@pytest.mark.parametrize("section", [
    b"A : 1\r\n", b" A: 1\r\n", b"A\r\n", b": 1\r\n", b"A: 1\n", b"A: \x00\r\n", b"A: \x7f\r\n", b"A: 1\r\n b\r\n", b"A: 1\rB: 2\r\n",
    b":path: /\r\n", b"A: " + b"x" * 9000 + b"\r\n",
    b"a:\r\n" * 500], ids=lambda section: section[:9].decode("latin-1").strip())
def test_request_trailers_that_are_malformed_are_refused(server, section):
    with server.connect() as c:
        reply = c.ask("/t", "POST", [CHUNKED], b"5\r\nhello\r\n0\r\n" + section + b"\r\n").read()
        assert reply.status == 400 and reply.closes


def test_request_trailers_are_skipped_if_handler_does_not_read(server):
    with server.connect() as c:
        c.ask("/", "GET", [CHUNKED], b"5\r\nhello\r\n0\r\nA: 1\r\n\r\n")
        assert c.read().text == "hello"
        assert c.is_open()


# ---- Responses ----


def test_response_trailers_follow_last_chunk(server):
    with server.connect() as c:
        reply = c.get("/t?known=A:1&late=B:two&late=c:&known=D:4", fields=[("TE", "gzip;q=0.3, Trailers")])
        assert reply.trailers == [("A", "1"), ("D", "4"), ("B", "two"), ("c", "")]
        assert reply.tokens("Trailer") == ["a", "d"] or reply["Trailer"] == "A, D"
        assert c.is_open()


def test_response_trailers_follow_large_body(server):
    body = b"3e8\r\n" + b"x" * 1000 + b"\r\n0\r\n" + b"".join(b"F-%d: %s\r\n" % (i, b"y" * 100) for i in range(60)) + b"\r\n"
    with server.connect(receive_buffer=2048) as c:
        c.ask("/t?late=A:" + "z" * 6000, "POST", [CHUNKED, TE], body)
        reply = c.read()
        assert reply.text == "".join(f"F-{i}={'y' * 100}\n" for i in range(60))
        assert reply.trailers == [("A", "z" * 6000)] and "Trailer" not in reply
        assert c.is_open()


@pytest.mark.parametrize("how", [
    {}, {"fields": [("TE", "gzip")]}, {"fields": [("TE", "")]}, {"fields": [TE], "version": "1.0"},
    {"fields": [TE], "method": "HEAD"}], ids=str)
def test_response_trailers_require_te_header(server, how):
    reply = server.get("/t?known=A:1&late=B:2", **how)
    assert reply.status == 200 and not reply.trailers
    assert "Trailer" not in reply or how.get("method") == "HEAD"


def test_response_trailers_are_omitted_with_content_length(server):
    with server.connect() as c:
        reply = c.get("/t?length&known=A:1&late=B:2", fields=[TE])
        assert (reply["Content-Length"], reply.trailers) == ("0", []) and "Trailer" not in reply
        assert c.is_open()


@pytest.mark.parametrize("name", ["Content-Length", "Set-Cookie", "a(b", "", "Trailer", "Host"])
def test_response_trailers_that_are_forbidden_are_refused(server, name):
    """The plugin crashes if the server accepts the trailer."""
    assert server.get(f"/t?refused={name}:1", fields=[TE]).status == 200
