# SPDX-License-Identifier: Apache-2.0
"""Limits that a virtual host sets."""
import re

import pytest

HOSTS = """
    [HOST]
        ServerName small.example
        DocumentRoot site
        MaxBodySize 10
    [ERROR_PAGES]
        413 413.html
    [HOST]
        ServerName large.example
        DocumentRoot site
        MaxBodySize 5000
    [HOST]
        ServerName open.example
        DocumentRoot site
        MaxBodySize unlimited
    [HOST]
        ServerName usual.example
        DocumentRoot site
"""


@pytest.fixture
def server(monkey, site):
    site.add("413.html", "the page of small")
    return monkey(root=None, server="MaxBodySize 100", sections=HOSTS)


@pytest.mark.parametrize("host, limit", [("small", 10), ("large", 5000), ("usual", 100), ("nobody", 10)])
def test_host_max_body_size_overrides_server(server, host, limit):
    for size, status in ((limit, 405), (limit + 1, 413)):
        reply = server.get("/413.html", "POST", body=b"x" * size, host=f"{host}.example")
        assert reply.status == status, size
    assert ("the page of small" in reply.text) == (limit == 10)


def test_host_without_limit_accepts_large_body(server):
    assert server.get("/413.html", "POST", body=b"x" * 100_000, host="open.example").status == 405


@pytest.mark.http1
def test_host_limit_follows_absolute_target(server):
    for target, status in (("http://small.example/413.html", 413), ("http://large.example/413.html", 405)):
        assert server.get(target, "POST", body=b"x" * 50, host="other.example").status == status


@pytest.mark.parametrize("host, status", [("small", 413), ("large", 200)])
def test_host_limit_applies_to_chunked_body(monkey, site, tmp_path, host, status):
    script = site.add("count.sh", "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n%s' \"$(wc -c)\"\n", mode=0o755)
    assert script.exists()
    text = HOSTS.replace("MaxBodySize 10\n", "MaxBodySize 10\n    [ROUTES]\n        *.sh cgi\n").replace(
        "MaxBodySize 5000\n", "MaxBodySize 5000\n    [ROUTES]\n        *.sh cgi\n").replace("    [ERROR_PAGES]\n        413 413.html\n", "")
    server = monkey(root=None, server="MaxBodySize 100", plugins=["cgi"], sections=text)
    with server.connect() as c:
        reply = send_unknown(c, server.is_h2, f"{host}.example", b"x" * 500)
    assert reply.status == status
    assert status != 200 or reply.text.strip() == "500"


def send_unknown(c, is_h2, host, content):
    if is_h2:
        c.ask("/count.sh", "POST", host=host, streamed=True)
        c.more(content)
        c.done()
        return c.read()
    head = f"POST /count.sh HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return c.send(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)).read("POST")


@pytest.mark.over("h1", why="it is about a configuration")
def test_host_limit_appears_in_printed_config(run, site, tmp_path):
    (tmp_path / "monkey.conf").write_text("[SERVER]\n    MaxBodySize 7K\n" + HOSTS.replace("\n    ", "\n"))
    printed = run("-T", "-c", "monkey.conf").out
    assert re.findall(r"^    MaxBodySize +(\S+)", printed, re.MULTILINE) == ["7K", "10", "5000", "unlimited", "7K"]
