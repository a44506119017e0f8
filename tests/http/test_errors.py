# SPDX-License-Identifier: Apache-2.0
"""Every refused request gets the proper status and a short error page. If the server cannot tell where the next request begins, it
closes the connection."""
import os
import re

import pytest

LIMITS = """
    MaxHeaderSize 2000
    MaxURISize  1000
    MaxHeaders   20
    MaxBodySize 100
    Timeout     2s
"""


@pytest.fixture
def server(monkey, site):
    site.add("a.txt", "hello")
    site.add(".hidden", "x")
    return monkey(server=LIMITS, sections="""
        [ROUTES]
            /broken  status 500
            /busy    status 503
            /slow    status 504
            /legal   status 451
            /tea     status 418
            /odd     status 499
            /*       static
        """)


def asks(target="/a.txt", method="GET", fields=(), **how):
    return {"target": target, "method": method, "fields": fields, **how}


# Raw HTTP/1 bytes, or the arguments of Client.ask(). True: an HTTP/1 connection closes after the response.
CASES = {
    "no host": (400, asks(host=None), True),
    "a host that is none": (400, asks(host="a/b"), True),
    "a NUL in the path": (400, asks("/a%00.txt"), True),
    "a broken escape": (400, asks("/%zz"), True),
    "above the root": (400, asks("/../a.txt"), True),
    "a dot file": (403, asks("/.hidden"), False),
    "a folder": (403, asks("/"), False),
    "nothing there": (404, asks("/none"), False),
    "another method": (405, asks(method="DELETE"), False),
    "half a head": (408, b"GET /a.txt HTTP/1.1\r\nHost: a\r\n", True),
    "no length, no content": (405, asks(method="POST"), False),
    "it changed": (412, asks(fields={"If-Match": '"x"'}), False),
    "a large content": (413, asks(method="POST", fields={"Content-Length": "101"}), True),
    "a long target": (414, asks("/" + "a" * 1000), True),
    "a long query": (414, asks("/?" + "a" * 999), True),
    "no such range": (416, asks(fields={"Range": "bytes=5-"}), False),
    "another expectation": (417, asks(fields={"Expect": "tea"}), True),
    "tea": (418, asks("/tea"), False),
    "a long head": (431, asks(fields={"X": "y" * 2000}), True),
    "many fields": (431, asks(fields=[("X", "y")] * 20), True),
    "no status of HTTP": (499, asks("/odd"), False),
    "law": (451, asks("/legal"), False),
    "our fault": (500, asks("/broken"), False),
    "another verb": (501, asks(method="BREW"), False),
    "a very long verb": (501, asks(method="B" * 500), True),
    "busy": (503, asks("/busy"), False),
    "the fault of a backend": (504, asks("/slow"), False),
}
NAMES = [pytest.param(name, marks=pytest.mark.http1 if isinstance(case[1], bytes) else ()) for name, case in CASES.items()]


@pytest.mark.parametrize("name", NAMES)
def test_refusal_has_status_page_and_connection_state(server, name):
    status, what, ends = CASES[name]
    with server.connect() as c:
        (c.send(what) if isinstance(what, bytes) else c.ask(**what))
        reply = c.read("GET")
        assert reply.status == status
        assert reply["Content-Type"] == "text/html; charset=utf-8"
        assert reply.framing == "length" and len(reply.body) < 1500
        line = re.search(r"<title>(.*?)</title>", reply.text)[1]
        assert f"<h1>{line}</h1>" in reply.text
        assert re.fullmatch(rf"{status}( .+)?", line) if server.is_h2 else line == f"{status} {reply.reason}".strip()
        assert "ETag" not in reply and "Last-Modified" not in reply
        assert reply.closes == (ends and not server.is_h2)
        if reply.closes:
            c.expect_end()
        else:
            assert c.get("/a.txt").text == "hello"


def test_error_page_never_echoes_request(server):
    for target in ("/<script>alert(1)</script>", "/%3Cscript%3E", "/?<script>"):
        reply = server.get(target, fields={"X": "<script>", "Referer": "<script>"}, host="a")
        assert reply.status in (400, 403, 404)
        assert not re.search("script", reply.text, re.IGNORECASE)
        assert "script" not in reply.head.decode()


@pytest.mark.parametrize("size, status", [(1000, 404), (1001, 414)])
def test_max_uri_size_is_exact(server, size, status):
    assert server.get("/" + "a" * (size - 1)).status == status


@pytest.mark.parametrize("count, status", [(20, 200), (21, 431)])
def test_max_headers_is_exact(server, count, status):
    assert server.get("/a.txt", fields=[("X", "y")] * (count - 1)).status == status  # Host is one more header


@pytest.mark.parametrize("size, status", [(100, 405), (101, 413)])
def test_max_body_size_is_exact(server, size, status):
    assert server.get("/a.txt", "POST", body=b"x" * size).status == status


@pytest.mark.parametrize("size, status", [(1, 405), (2700, 405), (3072, 413),
                                          pytest.param(2900, 405, marks=pytest.mark.http1)])
def test_max_request_size_limits_head_and_body(monkey, site, size, status):
    server = monkey(server="MaxRequestSize 3")  # in KB
    assert server.get("/a.txt", "POST", body=b"x" * size).status == status


def test_limits_apply_to_each_request_of_connection(server):
    with server.connect() as c:
        for _ in range(5):
            assert c.get("/" + "a" * 999).status == 404
        assert c.get("/" + "a" * 1000).status == 414
        if not server.is_h2:
            c.expect_end()


@pytest.mark.parametrize("size, status", [(59 * 1024, 404), (59 * 1024 + 1, 414)])
def test_max_uri_size_up_to_head_buffer_works(monkey, size, status):
    server = monkey(server="MaxHeaderSize 60K\nMaxURISize 59K")
    with server.connect() as c:
        for _ in range(3):
            reply = c.get("/" + "a" * (size - 1))
            assert reply.status == status
            if reply.closes:
                break


@pytest.mark.http1
def test_slow_head_times_out_despite_progress(server):
    """The server sends 408 when the header timeout expires, even if the client keeps sending."""
    with server.connect() as c:
        c.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n")
        c.sock.settimeout(0.02)
        for _ in range(1000):
            try:
                c.send(b"X: y\r\n" if _ < 10 else b"")
                if c.fill():
                    break
            except TimeoutError:
                pass
        c.sock.settimeout(30)
        reply = c.read()
        assert reply.status == 408 and reply.closes
        c.expect_end()


@pytest.mark.http1
def test_header_timeout_restarts_with_each_request(server):
    with server.connect() as c:
        for _ in range(3):
            assert c.get("/a.txt").text == "hello"
        c.send(b"GET /a.txt HT")
        assert c.read().status == 408
        c.expect_end()


def test_missing_body_closes_connection(monkey, site):
    site.add("a.txt", "hello")
    server = monkey(server="MinRate 1000\nMinRateInterval 1s")
    with server.connect() as c:
        reply = c.get("/a.txt", "POST", {"Content-Length": "5000"})  # the server has responded and still waits for the body
        assert reply.status == 405
        with pytest.raises(ConnectionResetError):
            c.expect_end()
            raise ConnectionResetError  # a clean close is accepted as well


@pytest.mark.slow
def test_unread_response_times_out(monkey, site):
    site.add("a.bin", b"x" * (8 << 20))
    server = monkey(server="MinRate 1000\nMinRateInterval 1s\nAccessLog stdout\nAccessLogFormat json")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/a.bin")
        server.out.wait_for('"target":"/a.bin".*"outcome":"timeout"')
        with pytest.raises((ConnectionResetError, AssertionError)):
            c.read()


# Custom error pages

def test_custom_error_page_replaces_default(monkey, site):
    site.add("errors/404.html", "<p>not here</p>")
    site.add("errors/busy.txt", "busy")
    site.add("errors/400.html", "<p>bad</p>")
    site.add("large.html", b"L" * 100_000)
    site.add("a.txt", "hello", mtime=1_600_000_000)
    server = monkey(server="MaxBodySize 100\nTimeout 2s", sections="""
        [ERROR_PAGES]
            404 errors/404.html
            503 /errors/busy.txt
            400 errors/400.html
            405 large.html
            408 errors/400.html
            412 errors/404.html
            413 errors/400.html
            416 errors/404.html
        [ROUTES]
            /busy  status 503
            /*     static
        """)
    with server.connect() as c:
        for target, method, fields, status, body, type_ in [
            ("/none", "GET", {}, 404, b"<p>not here</p>", "text/html; charset=utf-8"),
            ("/busy", "GET", {}, 503, b"busy", "text/plain; charset=utf-8"),
            ("/a.txt", "DELETE", {}, 405, b"L" * 100_000, "text/html; charset=utf-8"),
            ("/a.txt", "GET", {"If-Match": '"x"'}, 412, b"<p>not here</p>", "text/html; charset=utf-8"),
            ("/a.txt", "GET", {"Range": "bytes=9-"}, 416, b"<p>not here</p>", "text/html; charset=utf-8"),
            ("/none", "GET", {"Range": "bytes=0-1"}, 404, b"<p>not here</p>", "text/html; charset=utf-8"),
            ("/none", "GET", {"If-None-Match": "*"}, 404, b"<p>not here</p>", "text/html; charset=utf-8"),
        ]:
            reply = c.get(target, method, fields)
            assert (reply.status, reply.body, reply["Content-Type"]) == (status, body, type_)
            for name in ("ETag", "Last-Modified", "Accept-Ranges", "Cache-Control", "Content-Encoding"):
                assert name not in reply, f"{name} describes the page, not the requested resource"
        head = c.get("/none", "HEAD")
        assert (head.status, head["Content-Length"]) == (404, "15")
    assert server.get("/a.txt", "POST", body=b"x" * 101).body == b"<p>bad</p>"
    assert server.get("/%").body == b"<p>bad</p>"
    if not server.is_h2:
        assert server.send(b"nonsense\r\n\r\n").body == b"<p>bad</p>"
        assert server.send(b"GET / HTTP/1.1\r\n").body == b"<p>bad</p>"


@pytest.mark.parametrize("what", ["missing", "folder", "empty", "link", "fifo"])
def test_custom_error_page_that_cannot_be_read_falls_back_to_default(monkey, site, what):
    page = site / "404.html"
    if what == "folder":
        page.mkdir()
    elif what == "empty":
        page.touch()
    elif what == "link":
        page.symlink_to("/etc/hostname")
    elif what == "fifo":
        os.mkfifo(page)
    server = monkey(sections="[ERROR_PAGES]\n    404 404.html\n")
    reply = server.get("/none")
    assert reply.status == 404
    if what == "empty":
        assert reply.body == b""
    else:
        assert "<h1>404 Not Found</h1>" in reply.text
    assert server.get("/none").status == 404


def test_custom_error_page_for_status_class_applies(monkey, site):
    for name in ("404", "4xx", "5xx"):
        site.add(f"{name}.html", f"page {name}")
    server = monkey(sections="""
        [ERROR_PAGES]
            4xx /4xx.html
            404 /404.html
            5XX /5xx.html
        [ROUTES]
            /gone status 410
            /late status 504
            /* static
        """)
    for target, status, text in [("/none", 404, "page 404"), ("/gone", 410, "page 4xx"), ("/late", 504, "page 5xx")]:
        reply = server.get(target)
        assert (reply.status, reply.text) == (status, text)
    assert server.get("/404.html", "POST").text == "page 4xx"


# Details that a user can quote

def test_error_page_has_time_and_reference_for_5xx(monkey, site):
    server = monkey(sections="[ROUTES]\n    /broken status 500\n    /* static\n")
    missing, broken = server.get("/none").text, server.get("/broken").text
    when = r"<small>20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    assert re.search(when + "</small>", missing)
    number = re.search(when + r", reference ([0-9a-f]{8})</small>", broken)[1]
    server.err.wait_for(rf"GET /broken from 127\.0\.0\.1: status 500, reference {number}$")
    for page in (missing, broken):
        assert "Monkey" not in page and "behind" not in page


@pytest.mark.parametrize("level, most", [("info", 60), ("debug", 500), ("warn", 0)])
def test_error_reference_is_logged_with_rate_limit(monkey, level, most):
    server = monkey(workers=1, server=f"LogLevel {level}", sections="[ROUTES]\n    /* status 503\n")
    with server.connect() as c:
        pages = [c.get("/").text for _ in range(500)]
    server.stop()
    shown = [m[1] for page in pages if (m := re.search(r"UTC, reference (\w+)</small>", page))]
    assert all(" UTC" in page for page in pages)
    assert shown == re.findall(r", reference (\w+)", server.err.text)
    assert min(most, 1) <= len(shown) <= most  # at most one message per second at level info
