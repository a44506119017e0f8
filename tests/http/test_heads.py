# SPDX-License-Identifier: Apache-2.0
"""Headers that every response has, and headers that no response has."""
import time
from email.utils import parsedate_to_datetime

import pytest

from http2 import OF_CONNECTIONS


@pytest.fixture
def server(monkey, site):
    site.add("a.txt", "hello")
    (site / "folder").mkdir()
    return monkey()


TARGETS = ["/a.txt", "/none", "/folder", "/folder/", "/%"]


@pytest.mark.parametrize("target", TARGETS)
def test_date_header_is_current(server, target):
    before = int(time.time())
    date = parsedate_to_datetime(server.get(target)["Date"]).timestamp()
    assert before - 1 <= date <= time.time()  # the worker's clock may lag slightly


def test_date_header_advances_on_one_connection(monkey, site):
    site.add("a.txt", "hello")
    with monkey(server="KeepAliveRequests 0").connect() as c:
        dates = {c.get("/a.txt")["Date"]}
        deadline = time.monotonic() + 10
        while len(dates) < 2 and time.monotonic() < deadline:
            dates.add(c.get("/a.txt")["Date"])
        assert len(dates) == 2


def test_server_header_obeys_hide_version(monkey, server):
    for target in TARGETS:
        assert server.get(target)["Server"].startswith("Monkey/")
    hidden = monkey(server="HideVersion on")
    for target in TARGETS:
        assert hidden.get(target)["Server"] == "Monkey"


@pytest.mark.parametrize("target", TARGETS)
def test_response_has_no_superfluous_headers(server, target):
    known = {"server", "date", "content-type", "content-length", "connection", "etag", "last-modified", "accept-ranges",
             "location", "allow"}
    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        reply = server.get(target, method, body=b"x" if method == "POST" else b"")
        names = [name.lower() for name, _ in reply.fields]
        assert len(names) == len(set(names)) and set(names) <= known
        assert "Keep-Alive" not in reply and "Transfer-Encoding" not in reply


def test_unusual_request_headers_are_ignored(server):
    for fields in [{"Accept": "image/*"}, {"Accept-Charset": "x"}, {"Accept-Language": "x"}, {"Upgrade": "h2c"},
                   {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"},
                   {"Upgrade": "websocket", "Connection": "upgrade"}, {"TE": "trailers, gzip"}, {"Cookie": "a=b; c"},
                   {"Authorization": "Basic eDp5"}, {"X-Forwarded-For": "1.2.3.4"}, {"Max-Forwards": "0"}, {"X": ""},
                   {"Cache-Control": "no-cache", "Pragma": "no-cache"},
                   {"User-Agent": "\xe4\xf6\xfc\xff"}, {"!#$%&'*+": "x"}]:
        if server.is_h2 and OF_CONNECTIONS & {name.lower() for name in fields}:
            continue  # malformed in HTTP/2
        with server.connect() as c:
            for _ in range(2):
                reply = c.get("/a.txt", fields=fields)
                assert (reply.status, reply.text) == (200, "hello"), fields
