# SPDX-License-Identifier: Apache-2.0
"""Request methods (RFC 9110, section 9)."""
import gzip

import pytest

ALLOWED = {"get", "head", "options"}


def prepare(monkey, site):
    site.add("index.html", "<p>index</p>")
    site.add("a.txt", "hello", mtime=1_600_000_000)
    site.add("empty.txt", "")
    site.add("large.bin", b"x" * 200_000)
    site.add("z.txt", "hello " * 100, mtime=1_600_000_000)
    site.add("z.txt.gz", gzip.compress(b"hello " * 100), mtime=1_600_000_000)
    site.add("folder/x", "")
    site.add(".hidden", "")
    return monkey(sections="""
        [ROUTES]
            /moved  redirect 308 https://example.org/new
            /gone   status 410
            /*      static
        [CACHE_CONTROL]
            *.txt   max-age=60
        """)


@pytest.fixture
def server(lasting):
    """A shared server for tests that only send requests."""
    return lasting(prepare)


@pytest.fixture
def own(monkey, site):
    """A server for tests that change its files."""
    return prepare(monkey, site)


@pytest.mark.parametrize("target, fields, status", [
    ("/", {}, 200),
    ("/a.txt", {}, 200),
    ("/empty.txt", {}, 200),
    ("/large.bin", {}, 200),
    ("/z.txt", {"Accept-Encoding": "gzip"}, 200),
    ("/a.txt", {"If-None-Match": "*"}, 304),
    ("/a.txt", {"If-Modified-Since": "Sun, 13 Sep 2020 12:26:40 GMT"}, 304),
    ("/a.txt", {"If-Match": '"x"'}, 412),
    ("/folder", {}, 301),
    ("/folder/", {}, 403),
    ("/.hidden", {}, 403),
    ("/none", {}, 404),
    ("/moved", {}, 308),
    ("/gone", {}, 410),
])
def test_head_equals_get_without_body(server, target, fields, status):
    with server.connect() as c:
        get = c.get(target, "GET", fields)
        head = c.get(target, "HEAD", fields)
        assert c.get("/a.txt").text == "hello", "the next response follows HEAD immediately"
    assert get.status == head.status == status
    assert [f for f in head.fields if f[0].lower() != "date"] == [f for f in get.fields if f[0].lower() != "date"]
    assert head.body == b""
    if status != 304:
        assert int(head["Content-Length"]) == len(get.body)


def test_head_ignores_range(server):
    """Range is defined only for GET (RFC 9110, section 14.2)."""
    reply = server.get("/a.txt", "HEAD", {"Range": "bytes=0-1"})
    assert (reply.status, reply["Content-Length"]) == (200, "5")


@pytest.mark.parametrize("target", ["/", "/a.txt", "*"])
def test_options_lists_allowed_methods(server, target):
    with server.connect() as c:
        reply = c.get(target, "OPTIONS")
        assert reply.status == 200 and set(reply.tokens("Allow")) == ALLOWED
        assert (reply.body, reply["Content-Length"]) == (b"", "0")
        assert c.get("/a.txt").text == "hello"


def test_options_with_body_is_accepted(server):
    with server.connect() as c:
        assert c.get("*", "OPTIONS", body=b"GET / HTTP/1.1\r\n\r\n").status == 200
        assert c.get("/a.txt").text == "hello"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE"])
@pytest.mark.parametrize("target", ["/", "/a.txt", "/folder/"])
def test_static_files_refuse_write_methods(own, site, method, target):
    body = b"" if method in ("DELETE", "TRACE") else b"new"
    with own.connect() as c:
        reply = c.get(target, method, {"X-Secret": "do not echo me"}, body)
        assert reply.status == 405 and set(reply.tokens("Allow")) == ALLOWED
        assert "do not echo me" not in reply.text and "405 Method Not Allowed" in reply.text
        assert c.get("/a.txt").text == "hello"
    assert (site / "a.txt").read_text() == "hello"


def test_connect_is_refused(server):
    with server.connect() as c:
        reply = c.get("example.org:443", "CONNECT")
        assert reply.status == 405
        assert c.get("/a.txt").text == "hello"


@pytest.mark.parametrize("method", ["BREW", "get", "Get", "X", "PROPFIND", "A-B.C!#$%&'*+^_`|~9", "M" * 32])
def test_unknown_method_is_not_implemented(server, method):
    with server.connect() as c:
        reply = c.get("/a.txt", method)
        assert reply.status == 501 and "501 Not Implemented" in reply.text
        if not reply.closes:
            assert c.get("/a.txt").text == "hello"


def test_routes_without_files_accept_any_method(server):
    with server.connect() as c:
        for method in ("GET", "POST", "DELETE", "OPTIONS", "BREW"):
            body = b"x" if method == "POST" else b""
            assert c.get("/moved", method, body=body)["Location"] == "https://example.org/new"
            assert c.get("/gone", method, body=body).status == 410
