# SPDX-License-Identifier: Apache-2.0
"""Precompressed files and content negotiation (RFC 9110, section 12)."""
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
    """A shared server for tests that only send requests."""
    return lasting(prepare)


@pytest.fixture
def own(monkey, site):
    """A server for tests that change its files."""
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
def test_accept_encoding_selects_precompressed_file(server, accept, coding):
    reply = ask(server, accept)
    assert reply.status == 200
    assert reply.get("Content-Encoding") == coding
    assert reply.body == BODIES[coding]
    assert reply["Content-Type"] == "text/html; charset=utf-8", "the type of the decoded content"
    assert reply.tokens("Vary") == ["accept-encoding"]


def test_accept_encoding_lines_form_one_list(server):
    reply = server.get("/a.html", fields=[("Accept-Encoding", "gzip;q=0.5"), ("Accept-Encoding", "zstd")])
    assert reply["Content-Encoding"] == "zstd"


def test_only_one_coding_on_disk_is_sent_if_accepted(server):
    assert ask(server, "gzip, deflate, br, zstd", "/only.html")["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in ask(server, "br", "/only.html")


def test_file_without_precompressed_variant_sends_no_vary(server):
    reply = ask(server, "gzip, br", "/plain.html")
    assert reply.body == TEXT and "Vary" not in reply and "Content-Encoding" not in reply


def test_each_coding_has_its_own_etag(server):
    tags = {ask(server, accept)["ETag"] for accept in ("identity", "gzip", "br", "zstd")}
    assert len(tags) == 4


def test_etags_differ_when_size_and_mtime_are_equal(monkey, site):
    for name in ("a.txt", "a.txt.gz", "a.txt.br", "a.txt.zst"):
        site.add(name, "same size", mtime=MTIME)
    server = monkey()
    assert len({ask(server, accept, "/a.txt")["ETag"] for accept in ("identity", "gzip", "br", "zstd")}) == 4


def test_etag_matches_only_its_own_coding(server):
    for accept in ("identity", "gzip", "br", "zstd"):
        reply = ask(server, accept)
        assert ask(server, accept, **{"If-None-Match": reply["ETag"]}).status == 304
        for other in {"identity", "gzip", "br", "zstd"} - {accept}:
            assert ask(server, other, **{"If-None-Match": reply["ETag"]}).status == 200


def test_range_selects_bytes_of_encoded_file(server):
    whole = ask(server, "gzip")
    reply = ask(server, "gzip", Range="bytes=5-9")
    assert (reply.status, reply.body) == (206, GZ[5:10])
    assert reply["Content-Range"] == f"bytes 5-9/{len(GZ)}"
    assert (reply["Content-Encoding"], reply["ETag"]) == ("gzip", whole["ETag"])
    assert reply.tokens("Vary") == ["accept-encoding"]
    rest = ask(server, "identity", Range="bytes=5-9", **{"If-Range": whole["ETag"]})
    assert (rest.status, rest.body) == (200, TEXT), "If-Range with the tag of another representation"
    several = ask(server, "gzip", Range="bytes=0-1,4-5")
    assert (several.status, several.body) == (200, GZ), "no client could decode a range of compressed content"
    several = ask(server, "identity", Range="bytes=0-1,4-5")
    assert several.status == 206 and several["Content-Type"].startswith("multipart/byteranges")


def test_compressed_file_requested_by_name_is_a_plain_file(server):
    reply = ask(server, "br, gzip", "/a.html.gz")
    assert reply.body == GZ and reply["Content-Type"] == "application/gzip" and "Content-Encoding" not in reply
    reply = ask(server, "br, gzip", "/a.html.br")
    assert reply.body == BR and "Content-Encoding" not in reply


def test_index_file_has_precompressed_variants(monkey, site):
    site.add("index.html", TEXT, mtime=MTIME)
    site.add("index.html.gz", GZ, mtime=MTIME)
    assert ask(monkey(), "gzip", "/").body == GZ


@pytest.mark.parametrize("age, used", [(-1, False), (0, True), (1, True), (-100_000, False)])
def test_precompressed_file_older_than_original_is_ignored(monkey, site, age, used):
    site.add("a.html", TEXT, mtime=MTIME)
    site.add("a.html.gz", GZ, mtime=MTIME + age)
    reply = ask(monkey(), "gzip", "/a.html")
    assert ("Content-Encoding" in reply) == used and ("Vary" in reply) == used


def test_precompressed_off_sends_original(monkey, site):
    site.add("a.html", TEXT, mtime=MTIME)
    site.add("a.html.gz", GZ, mtime=MTIME)
    reply = ask(monkey(host="Precompressed off"), "gzip", "/a.html")
    assert reply.body == TEXT and "Vary" not in reply and "Content-Encoding" not in reply


@pytest.mark.parametrize("kind", ["folder", "link", "broken link", "fifo"])
def test_precompressed_variant_that_is_not_a_regular_file_is_ignored(monkey, site, kind):
    site.add("a.html", TEXT, mtime=MTIME)
    other = site / "a.html.gz"
    if kind == "folder":
        other.mkdir()
    elif kind == "fifo":
        os.mkfifo(other)
    else:
        other.symlink_to("a.html" if kind == "link" else "nowhere")
    reply = ask(monkey(), "gzip", "/a.html")
    assert (reply.status, reply.body) == (200, TEXT) and "Content-Encoding" not in reply


def test_precompressed_file_without_original_is_not_found(monkey, site):
    site.add("a.html.gz", GZ)
    assert ask(monkey(), "gzip", "/a.html").status == 404


def test_precompressed_file_changes_take_effect(own, site):
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
def test_precompressed_file_added_to_idle_folder_is_found(own, site):
    """The server has cached that the folder contains no precompressed files, so it does not look for any."""
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
def test_clients_get_consistent_content_while_precompressed_files_change(monkey, site):
    """A response in progress continues with the file that it opened."""
    content = {name: os.urandom(3 << 20) for name in ("a.bin", "a.bin.gz", "a.bin.br")}
    for name, data in content.items():
        site.add(name, data, mtime=MTIME)
    server = monkey(server="OpenFileCacheTTL 0")
    clients = [(server.connect(receive_buffer=4096), accept) for accept in ("identity", "gzip", "br") for _ in range(3)]
    for c, accept in clients:
        c.ask("/a.bin", fields={"Accept-Encoding": accept}).read_head()
    for name in ("a.bin.gz", "a.bin.br"):
        os.replace(site.add("new", b"x", mtime=MTIME), site / name)
    server.get("/a.bin", fields={"Accept-Encoding": "gzip"})  # the server notices the change; later requests get the new file
    assert server.get("/a.bin", fields={"Accept-Encoding": "gzip"}).body == b"x"
    os.replace(site.add("new", b"y"), site / "a.bin")
    assert server.get("/a.bin", fields={"Accept-Encoding": "br"}).body == b"y"
    for c, accept in clients:
        suffix = {"identity": "", "gzip": ".gz", "br": ".br"}[accept]
        assert c.read_exactly(3 << 20) == content["a.bin" + suffix]
        c.close()
