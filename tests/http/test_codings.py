# SPDX-License-Identifier: Apache-2.0
"""Compressed neighbours of a file, and which client gets which (RFC 9110, section 12)."""
import gzip
import os
import time

import pytest

MTIME = 1_600_000_000
TEXT = b"hello " * 500
BR, ZST, GZ = b"brotli " * 20, b"zstandard " * 20, gzip.compress(TEXT)


def prepare(monkey, site):
    for name in ("a.html", "only.html", "a.bin"):
        site.add(name, TEXT, mtime=MTIME)
    site.add("a.html.br", BR, mtime=MTIME)
    site.add("a.html.zst", ZST, mtime=MTIME)
    site.add("a.html.gz", GZ, mtime=MTIME)
    site.add("only.html.gz", GZ, mtime=MTIME)
    site.add("plain.html", TEXT)
    return monkey(server="OpenFileCacheTTL 0")


@pytest.fixture
def server(lasting):
    """For tests that only ask."""
    return lasting(prepare)


@pytest.fixture
def own(monkey, site):
    """For tests that change its files."""
    return prepare(monkey, site)


BODIES = {"br": BR, "zstd": ZST, "gzip": GZ, None: TEXT}


def ask(server, accept, target="/a.html", **fields):
    return server.get(target, fields=({} if accept is None else {"Accept-Encoding": accept}) | fields)


@pytest.mark.parametrize("accept, coding", [
    (None, None), ("", None), ("gzip", "gzip"), ("br", "br"), ("zstd", "zstd"), ("gzip, deflate, br, zstd", "br"),
    ("gzip, zstd", "zstd"), ("gzip;q=1.0, br;q=0.5", "gzip"), ("gzip;q=0.5, br;q=0.50, zstd;q=0.4", "br"),
    ("zstd;q=0.9, gzip;q=0.901", "gzip"), ("br;q=0, gzip", "gzip"), ("br;q=0", None), ("*", "br"),
    ("*;q=0.5, gzip", "gzip"), ("br;q=0, *", "zstd"), ("*;q=0", None), ("identity", None),
    ("identity;q=0.5, gzip;q=0.4", None), ("identity;q=0.4, gzip;q=0.5", "gzip"), ("identity;q=0, gzip", "gzip"),
    ("deflate", None), ("compress, sdch", None), ("GZIP", "gzip"), ("x-gzip", "gzip"), ("gzip ; q=0.5", "gzip"),
    ("gzip;q=0.001", "gzip"), ("gzip;q=0.000", None), ("gzip;q=2", None), ("gzip;q=", None), ("gzip;q=x", None),
    ("gzip;q=0.1234", None), ("gzipped", None), (",,gzip,,", "gzip"), ("br;q=1.000,gzip;q=1", "br"),
    ("identity;q=0", None), ("gzip;level=9", None),
])
def test_accept_encoding_chooses_the_file(server, accept, coding):
    reply = ask(server, accept)
    assert reply.status == 200
    assert reply.get("Content-Encoding") == coding
    assert reply.body == BODIES[coding]
    assert reply["Content-Type"] == "text/html; charset=utf-8", "the type is that of what is inside"
    assert reply.tokens("Vary") == ["accept-encoding"]


def test_several_lines_are_one_list(server):
    reply = server.get("/a.html", fields=[("Accept-Encoding", "gzip;q=0.5"), ("Accept-Encoding", "zstd")])
    assert reply["Content-Encoding"] == "zstd"


def test_a_browser_gets_the_only_one_there_is(server):
    assert ask(server, "gzip, deflate, br, zstd", "/only.html")["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in ask(server, "br", "/only.html")


def test_files_without_neighbours_do_not_vary(server):
    reply = ask(server, "gzip, br", "/plain.html")
    assert reply.body == TEXT and "Vary" not in reply and "Content-Encoding" not in reply


def test_each_has_its_own_tag(server):
    tags = {ask(server, accept)["ETag"] for accept in ("identity", "gzip", "br", "zstd")}
    assert len(tags) == 4


def test_tags_differ_even_where_size_and_time_are_the_same(monkey, site):
    for name in ("a.txt", "a.txt.gz", "a.txt.br", "a.txt.zst"):
        site.add(name, "same size", mtime=MTIME)
    server = monkey()
    assert len({ask(server, accept, "/a.txt")["ETag"] for accept in ("identity", "gzip", "br", "zstd")}) == 4


def test_tags_and_conditions(server):
    for accept in ("identity", "gzip", "br", "zstd"):
        reply = ask(server, accept)
        assert ask(server, accept, **{"If-None-Match": reply["ETag"]}).status == 304
        for other in {"identity", "gzip", "br", "zstd"} - {accept}:
            assert ask(server, other, **{"If-None-Match": reply["ETag"]}).status == 200


def test_ranges_are_of_what_is_sent(server):
    whole = ask(server, "gzip")
    reply = ask(server, "gzip", Range="bytes=5-9")
    assert (reply.status, reply.body) == (206, GZ[5:10])
    assert reply["Content-Range"] == f"bytes 5-9/{len(GZ)}"
    assert (reply["Content-Encoding"], reply["ETag"]) == ("gzip", whole["ETag"])
    assert reply.tokens("Vary") == ["accept-encoding"]
    rest = ask(server, "identity", Range="bytes=5-9", **{"If-Range": whole["ETag"]})
    assert (rest.status, rest.body) == (200, TEXT), "a part of another representation does not fit"
    several = ask(server, "gzip", Range="bytes=0-1,4-5")
    assert (several.status, several.body) == (200, GZ), "no client could decode a part of compressed content"
    several = ask(server, "identity", Range="bytes=0-1,4-5")
    assert several.status == 206 and several["Content-Type"].startswith("multipart/byteranges")


def test_asked_for_by_name_they_are_files(server):
    reply = ask(server, "br, gzip", "/a.html.gz")
    assert reply.body == GZ and reply["Content-Type"] == "application/gzip" and "Content-Encoding" not in reply
    reply = ask(server, "br, gzip", "/a.html.br")
    assert reply.body == BR and "Content-Encoding" not in reply


def test_an_index_has_neighbours_too(monkey, site):
    site.add("index.html", TEXT, mtime=MTIME)
    site.add("index.html.gz", GZ, mtime=MTIME)
    assert ask(monkey(), "gzip", "/").body == GZ


@pytest.mark.parametrize("age, used", [(-1, False), (0, True), (1, True), (-100_000, False)])
def test_a_neighbour_that_is_older_is_not_used(monkey, site, age, used):
    site.add("a.html", TEXT, mtime=MTIME)
    site.add("a.html.gz", GZ, mtime=MTIME + age)
    reply = ask(monkey(), "gzip", "/a.html")
    assert ("Content-Encoding" in reply) == used and ("Vary" in reply) == used


def test_they_can_be_off(monkey, site):
    site.add("a.html", TEXT, mtime=MTIME)
    site.add("a.html.gz", GZ, mtime=MTIME)
    reply = ask(monkey(host="Precompressed off"), "gzip", "/a.html")
    assert reply.body == TEXT and "Vary" not in reply and "Content-Encoding" not in reply


@pytest.mark.parametrize("what", ["folder", "link", "broken link", "fifo"])
def test_neighbours_that_are_no_files(monkey, site, what):
    site.add("a.html", TEXT, mtime=MTIME)
    other = site / "a.html.gz"
    if what == "folder":
        other.mkdir()
    elif what == "fifo":
        os.mkfifo(other)
    else:
        other.symlink_to("a.html" if what == "link" else "nowhere")
    reply = ask(monkey(), "gzip", "/a.html")
    assert (reply.status, reply.body) == (200, TEXT) and "Content-Encoding" not in reply


def test_without_the_file_itself_they_are_nothing(monkey, site):
    site.add("a.html.gz", GZ)
    assert ask(monkey(), "gzip", "/a.html").status == 404


def test_they_come_and_go_and_change(own, site):
    with own.connect() as c:
        def get(accept="gzip"):
            return c.get("/plain.html", fields={"Accept-Encoding": accept})

        assert "Content-Encoding" not in get()
        site.add("plain.html.gz", GZ)
        assert get()["Content-Encoding"] == "gzip" and get("identity")["Vary"]
        site.add("plain.html.gz", GZ + b"more")
        assert get().body == GZ + b"more"
        site.add("plain.html", b"new text", mtime=os.stat(site / "plain.html.gz").st_mtime + 10)
        assert get().body == b"new text", "older than the file from now on"
        site.add("plain.html.gz", b"new", mtime=os.stat(site / "plain.html").st_mtime)
        assert get().body == b"new"
        (site / "plain.html.gz").unlink()
        assert get().body == b"new text" and "Content-Encoding" not in get()


@pytest.mark.slow
@pytest.mark.over("h1", "h2-tls", why="it waits for 5 s, and what the server knows of a folder is the same for all")
def test_they_come_to_a_folder_that_was_at_rest(own, site):
    """Then the server knows of the folder that it has none, and looks for none."""
    folder = site / "folder"
    site.add("folder/a.html", TEXT, mtime=MTIME)
    while time.time() < folder.stat().st_ctime + 5:
        time.sleep(0.1)
    for _ in range(3):
        assert "Vary" not in ask(own, "gzip", "/folder/a.html")
    site.add("folder/a.html.gz", GZ, mtime=MTIME)
    os.utime(folder, (MTIME, MTIME))
    assert ask(own, "gzip", "/folder/a.html")["Content-Encoding"] == "gzip"
    os.unlink(folder / "a.html.gz")
    assert "Vary" not in ask(own, "gzip", "/folder/a.html")


@pytest.mark.slow
def test_many_clients_while_neighbours_change(monkey, site):
    """An answer on its way goes on with what it began with."""
    content = {name: os.urandom(3 << 20) for name in ("a.bin", "a.bin.gz", "a.bin.br")}
    for name, data in content.items():
        site.add(name, data, mtime=MTIME)
    server = monkey(server="OpenFileCacheTTL 0")
    clients = [(server.connect(receive_buffer=4096), accept) for accept in ("identity", "gzip", "br") for _ in range(3)]
    for c, accept in clients:
        c.ask("/a.bin", fields={"Accept-Encoding": accept}).read_head()
    for name in ("a.bin.gz", "a.bin.br"):
        os.replace(site.add("new", b"x", mtime=MTIME), site / name)
    server.get("/a.bin", fields={"Accept-Encoding": "gzip"})  # notices; the next one gets what is there now
    assert server.get("/a.bin", fields={"Accept-Encoding": "gzip"}).body == b"x"
    os.replace(site.add("new", b"y"), site / "a.bin")
    assert server.get("/a.bin", fields={"Accept-Encoding": "br"}).body == b"y"
    for c, accept in clients:
        suffix = {"identity": "", "gzip": ".gz", "br": ".br"}[accept]
        assert c.read_exactly(3 << 20) == content["a.bin" + suffix]
        c.close()
