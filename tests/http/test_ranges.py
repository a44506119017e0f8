# SPDX-License-Identifier: Apache-2.0
"""Range requests (RFC 9110, section 14) for files of all sizes."""
import os
import random
import re

import pytest

SIZE = 100_000
CONTENT = random.Random(2).randbytes(SIZE)


def prepare(monkey, site):
    site.add("a.bin", CONTENT)
    site.add("a.txt", "0123456789")
    site.add("empty.txt", "")
    return monkey()


@pytest.fixture
def server(lasting):
    """A shared server for tests that only send requests."""
    return lasting(prepare)


def ask(server, value, target="/a.bin", **fields):
    return server.get(target, fields={"Range": value} | fields)


def parts_of(reply):
    """Returns the parts of a multipart/byteranges body: (type, first, last, size, content) for each part."""
    boundary = re.fullmatch(r"multipart/byteranges; boundary=([0-9A-Za-z'()+_,./:=?-]{1,70})",
                            reply["Content-Type"])[1].encode()
    head, *parts, tail = reply.body.split(b"\r\n--" + boundary)
    assert head in (b"", b"--" + boundary) and tail.strip(b"\r\n") == b"--", "RFC 2046, section 5.1.1"
    found = []
    for part in parts:
        fields, content = part.removeprefix(b"\r\n").split(b"\r\n\r\n", 1)
        lines = dict(line.split(": ", 1) for line in fields.decode().split("\r\n"))
        first, last, size = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", lines["Content-Range"]).groups())
        found.append((lines["Content-Type"], first, last, size, content))
    return found


@pytest.mark.parametrize("value, first, last", [
    ("bytes=0-0", 0, 0), ("bytes=0-", 0, SIZE - 1), ("bytes=5-9", 5, 9), ("bytes=99999-", SIZE - 1, SIZE - 1),
    ("bytes=99999-99999", SIZE - 1, SIZE - 1), ("bytes=99990-100000", 99990, SIZE - 1),
    ("bytes=500-99999999999999999999999999", 500, SIZE - 1), ("bytes=-1", SIZE - 1, SIZE - 1),
    ("bytes=-99999", 1, SIZE - 1), ("bytes=-100000", 0, SIZE - 1), ("bytes=-100001", 0, SIZE - 1),
    ("bytes=-99999999999999999999999", 0, SIZE - 1), ("BYTES=1-2", 1, 2), ("bytes=00001-00002", 1, 2),
    ("bytes=1-2,", 1, 2), ("bytes=,1-2", 1, 2), pytest.param("bytes= 1-2 ", 1, 2, marks=pytest.mark.http1), ("bytes=1-2,200000-", 1, 2),
    ("bytes=18446744073709551615-,1-2", 1, 2),
])
def test_range_returns_requested_bytes(server, value, first, last):
    reply = ask(server, value)
    assert (reply.status, reply["Content-Range"]) == (206, f"bytes {first}-{last}/{SIZE}")
    assert reply.body == CONTENT[first:last + 1]
    assert reply["Content-Type"] == "application/octet-stream"
    whole = server.get("/a.bin")
    for name in ("ETag", "Last-Modified", "Content-Type"):
        assert reply[name] == whole[name]


def test_accept_ranges_is_announced(server):
    assert server.get("/a.bin")["Accept-Ranges"] == "bytes"
    assert server.get("/a.bin", "HEAD")["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize("value", ["bytes=100000-", "bytes=100000-200000", "bytes=-0", "bytes=18446744073709551616-",
                                   "bytes=200000-,-0,300000-"])
def test_range_that_is_unsatisfiable_gets_416(server, value):
    reply = ask(server, value)
    assert (reply.status, reply["Content-Range"]) == (416, f"bytes */{SIZE}")
    assert "Content-Encoding" not in reply and len(reply.body) < 5000


@pytest.mark.parametrize("value", [
    "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-x", "bytes=5-4", "bytes=1", "bytes=1-2-3", "bytes=1-2;3-4",
    "bytes=+1-2", "bytes=1 -2", "bytes=1- 2", "bytes 1-2", "lines=1-2", "bytes=0x1-0x2", "byte=1-2", "bytes=--1",
    "bytes=1-2,x", "bytes=,", "bytes=1.5-2", "bytes==1-2",
])
def test_range_that_is_invalid_is_ignored(server, value):
    reply = ask(server, value, "/a.txt")
    assert (reply.status, reply.text) == (200, "0123456789") and "Content-Range" not in reply


def test_range_header_twice_is_ambiguous(server):
    """Range is not a list header, so several Range lines are ambiguous."""
    reply = server.get("/a.txt", fields=[("Range", "bytes=1-2"), ("Range", "bytes=4-5")])
    assert reply.status in (200, 206)
    if reply.status == 206:
        assert reply.body in (b"12", b"45")


@pytest.mark.parametrize("value, expected", [
    ("bytes=0-0,-1", [(0, 0), (SIZE - 1, SIZE - 1)]),
    ("bytes=10-19, 30-39 ,50-59", [(10, 19), (30, 39), (50, 59)]),
    ("bytes=50-59,10-19", [(50, 59), (10, 19)]),
    ("bytes=0-9,200000-300000,-5", [(0, 9), (SIZE - 5, SIZE - 1)]),
    ("bytes=0-9999,20000-79999,90000-", [(0, 9999), (20000, 79999), (90000, SIZE - 1)]),
])
def test_ranges_several_are_sent_as_multipart(server, value, expected):
    reply = ask(server, value)
    assert reply.status == 206 and "Content-Range" not in reply
    parts = parts_of(reply)
    assert [(first, last) for _, first, last, _, _ in parts] == expected
    for type_, first, last, size, content in parts:
        assert (type_, size) == ("application/octet-stream", SIZE)
        assert content == CONTENT[first:last + 1]


@pytest.mark.parametrize("value, body", [("bytes=0-4,5-9", b"0123456789"), ("bytes=0-5,2-3", b"012345"),
                                         ("bytes=2-3,0-5", b"012345"), ("bytes=0-,-5", b"0123456789")])
def test_ranges_that_overlap_or_touch_are_merged(server, value, body):
    reply = ask(server, value, "/a.txt")
    assert (reply.status, reply.body) == (206, body)
    assert reply["Content-Range"] == f"bytes {0}-{len(body) - 1}/10"


@pytest.mark.parametrize("value", ["bytes=" + ",".join(f"{i * 10}-{i * 10}" for i in range(17)),
                                   "bytes=" + ",".join(["0-"] * 1000), "bytes=" + "0-0,2-2," * 800,
                                   "bytes=" + "," * 3000])
def test_ranges_beyond_limit_are_ignored(server, value):
    reply = ask(server, value)
    assert (reply.status, len(reply.body)) == (200, SIZE)


def test_ranges_up_to_sixteen_are_allowed(server):
    reply = ask(server, "bytes=" + ",".join(f"{i * 10}-{i * 10 + 4}" for i in range(16)))
    assert [content for *_, content in parts_of(reply)] == [CONTENT[i * 10:i * 10 + 5] for i in range(16)]


def test_multipart_parts_have_the_type_of_the_file(monkey, site):
    site.add("a.html", "0123456789")
    reply = ask(monkey(), "bytes=0-1,8-9", "/a.html")
    assert [p[0] for p in parts_of(reply)] == ["text/html; charset=utf-8"] * 2


def test_multipart_boundaries_are_unique(server):
    assert len({ask(server, "bytes=0-1,8-9", "/a.txt")["Content-Type"] for _ in range(5)}) == 5


def test_range_of_empty_file_is_unsatisfiable(server):
    for value in ("bytes=0-", "bytes=0-0"):
        reply = ask(server, value, "/empty.txt")
        assert (reply.status, reply["Content-Range"]) == (416, "bytes */0")
    reply = ask(server, "bytes=-5", "/empty.txt")  # satisfiable, but Content-Range cannot express an empty range
    assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS"])
def test_range_is_ignored_for_other_methods(server, method):
    reply = server.get("/a.txt", method, {"Range": "bytes=1-2"}, b"x" if method == "POST" else b"")
    assert reply.status in (200, 405) and "Content-Range" not in reply


def test_ranges_can_be_disabled(monkey, site):
    site.add("a.txt", "0123456789")
    server = monkey(server="Resume off")
    reply = ask(server, "bytes=1-2", "/a.txt")
    assert (reply.status, reply.text) == (200, "0123456789") and "Accept-Ranges" not in reply
    assert ask(server, "bytes=50-", "/a.txt").status == 200


def test_ranges_beyond_4_gb_are_exact(monkey, site):
    size = (5 << 30) + 10
    marks = {0: b"begin", (2 << 30) - 2: b"two", (4 << 30) - 2: b"four", size - 3: b"end"}
    with open(site / "large.bin", "wb") as f:
        f.truncate(size)
        for at, mark in marks.items():
            f.seek(at)
            f.write(mark)
    server = monkey()
    assert server.get("/large.bin", "HEAD")["Content-Length"] == str(size)
    with server.connect() as c:
        for at, mark in marks.items():
            reply = c.get("/large.bin", fields={"Range": f"bytes={at}-{at + len(mark) - 1}"})
            assert (reply.status, reply.body) == (206, mark)
            assert reply["Content-Range"] == f"bytes {at}-{at + len(mark) - 1}/{size}"
        assert c.get("/large.bin", fields={"Range": "bytes=-3"}).body == b"end"
        reply = c.get("/large.bin", fields={"Range": f"bytes={(4 << 30) - 3}-{(4 << 30) + 3},-4"})
        assert [p[4] for p in parts_of(reply)] == [b"\0four\0\0", b"\0end"]
        assert c.get("/large.bin", fields={"Range": f"bytes={size}-"})["Content-Range"] == f"bytes */{size}"
        c.ask("/large.bin", fields={"Range": f"bytes={(4 << 30) - 100}-"})  # the length needs more than 32 bits
        assert c.read_head()["Content-Length"] == str(size - (4 << 30) + 100)
        assert c.read_exactly(103)[-5:] == b"four\0"


def test_ranges_of_cached_and_uncached_files_reassemble(monkey, site):
    """Reassembles files from ranges: files below InlineFileMax, files above it, and files of about that size."""
    rng = random.Random(3)
    server = monkey(server="InlineFileMax 8K")
    for size in (1, 2, 4095, 8191, 8192, 8193, 65536, 1_000_003):
        content = rng.randbytes(size)
        site.add(f"{size}.bin", content)
        cuts = sorted({0, size, *(rng.randrange(size + 1) for _ in range(8))})
        got = b""
        with server.connect() as c:
            for first, end in zip(cuts, cuts[1:]):
                reply = c.get(f"/{size}.bin", fields={"Range": f"bytes={first}-{end - 1}"})
                assert reply.status == 206
                got += reply.body
        assert got == content


def test_ranges_large_parts_arrive_complete(monkey, site):
    content = os.urandom(4 << 20)
    site.add("a.bin", content)
    ranges = [(i << 18, (i << 18) + 200_000) for i in range(16)]
    reply = ask(monkey(), "bytes=" + ",".join(f"{a}-{b}" for a, b in ranges))
    assert [p[4] for p in parts_of(reply)] == [content[a:b + 1] for a, b in ranges]
