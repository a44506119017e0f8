# SPDX-License-Identifier: Apache-2.0
"""Listings of hostile file names: the names are escaped, and the links lead to the right file."""
import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest

from listing import Page, listed, listed_json, lister

HOSTILE = [
    b"<script>alert(1)<", b"a&amp;b", b"a&b", b'quote"s', b"apos'trophe", b"back\\slash", b"new\nline", b"cr\r\nlf",
    b"tab\tbed", b"esc\x1b[31mred", b"bell\x07", b"del\x7f", b"c1\xc2\x9b31m", b"bad\xff\xfeutf", b"cut\xe2\x82",
    b"long\xc0\xaf", b"surrogate\xed\xa0\x80", b"beyond\xf4\x90\x80\x80", b"rtl\xe2\x80\xaegnp.exe",
    b"\xe2\x81\xa6isolate", b"100%", b"%41", b"%2e%2e", b"q?x=1", b"hash#tag", b"javascript:alert(1)", b"a:b",
    b" leading", b"trailing ", b" ", b"-rf", b"~user", b"\xef\xbb\xbfbom", "ünïcödé 猿 🐒.txt".encode(),
    b"]]>", b"--><b>", b"<title>", b"{json}", b"semi;colon", b"plus+plus", b"x" * 255, b"&" * 255, b"\xff" * 255,
    b"\n" * 255, "猿".encode() * 85, b"${name}", b"%s%n", b"CON", b"a=b&c=d",
]


@pytest.fixture
def hostile(site):
    (site / "h").mkdir()
    for i, name in enumerate(HOSTILE):
        Path(os.fsdecode(os.fsencode(site / "h") + b"/" + name)).write_text(f"content {i}")
    return site


def content_of(server, links):
    with server.connect() as c:
        return sorted(c.get("/h/" + link).text for link in links)


EXPECTED = sorted(f"content {i}" for i in range(len(HOSTILE)))


@pytest.mark.parametrize("theme", ["guineo", "plain"])
def test_dirlisting_html_escapes_hostile_names(monkey, hostile, theme):
    server = lister(monkey, f"[DIRLISTING]\n    Theme {theme}\n")
    for sort in ("name", "none"):
        reply = server.get(f"/h/?sort={sort}")
        page = Page(reply)
        assert page.tags <= {"html", "head", "meta", "title", "link", "style", "body", "main", "h1", "span", "a", "bdi",
                             "table", "thead", "tbody", "tr", "th", "td", "time", "footer"}
        links = [link for _, link, _, _ in page.entries]
        assert all(re.fullmatch(r"[A-Za-z0-9._~%-]+", link) for link in links)
        assert sorted(map(unquote_to_bytes, links)) == sorted(HOSTILE)
        assert content_of(server, links) == EXPECTED
        shown = "".join(page.names)
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", shown)
        assert "<script>alert(1)<" in page.names and "bad\\xFF\\xFEutf" in page.names
        assert "new\\x0Aline" in page.names and "ünïcödé 猿 🐒.txt" in page.names
        assert reply["X-Content-Type-Options"] == "nosniff"
        assert reply["Content-Security-Policy"].startswith("default-src 'none'")


def test_dirlisting_json_escapes_hostile_names(monkey, hostile):
    server = lister(monkey)
    entries = listed_json(server, "/h/")["entries"]
    assert sorted(unquote_to_bytes(e["url"]) for e in entries) == sorted(HOSTILE)
    assert content_of(server, [e["url"] for e in entries]) == EXPECTED
    for e in entries:
        name = unquote_to_bytes(e["url"])
        try:
            assert e["name"] == name.decode()
        except UnicodeDecodeError:
            assert e["name"].isprintable() or not e["name"].isascii()


def test_dirlisting_text_escapes_hostile_names(monkey, hostile):
    lines = lister(monkey).get("/h/?format=text").body.decode().splitlines()
    names = []
    for line in lines:
        match = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ +(\d+) (.*)", line)
        assert match, line
        raw = match[2].encode()
        names.append(re.sub(rb"\\(?:x([0-9A-F]{2})|\\)", lambda m: bytes([int(m[1], 16)]) if m[1] else b"\\", raw))
    assert sorted(names) == sorted(HOSTILE)


def test_dirlisting_escapes_hostile_folder_name(monkey, site):
    name = b'<b>"x"\n\xff'
    os.makedirs(os.path.join(os.fsencode(site), name, b"in&side"))
    server = lister(monkey)
    entry, = listed_json(server)["entries"]
    assert unquote_to_bytes(entry["url"]) == name + b"/"
    page = listed(server, "/" + entry["url"])
    assert page.title == '/<b>"x"\\x0A\\xFF/' and page.names == ["in&side/"]
    assert listed_json(server, "/" + entry["url"])["path"].startswith('/<b>"x"\n')
    reply = server.get("/" + entry["url"].rstrip("/") + "?sort=size&format=json")
    assert reply.status == 301 and reply["Location"].endswith("/?sort=size&format=json")
    assert server.get(reply["Location"]).status == 200


def test_dirlisting_formats_unusual_times(monkey, site):
    times = {"past": -(2 ** 31), "zero": 0, "future": 2 ** 33}
    for name, t in times.items():
        site.add(name)
        os.utime(site / name, (t, t))
    assert [os.stat(site / name).st_mtime for name in times] == list(times.values()) or pytest.skip("not stored here")
    entries = {e["name"]: e["modified"] for e in listed_json(lister(monkey))["entries"]}
    assert entries == {"past": "1901-12-13T20:45:52Z", "zero": "1970-01-01T00:00:00Z", "future": "2242-03-16T12:56:32Z"}
