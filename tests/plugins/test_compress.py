# SPDX-License-Identifier: Apache-2.0
"""The compress plugin: which responses it encodes, for which clients, and how. All other responses stay unchanged."""
import random
import re
import shutil
import subprocess

import pytest

from compression import BUILD, CODINGS, TEXT, all_codings, ask, decode, lines, making, needs_contents, start
from monkey import PROGRAM, ROOT, write_config

# Negotiation

@all_codings
@pytest.mark.parametrize("accept, coding", [
    (None, None), ("", None), ("gzip", "gzip"), ("br", "br"), ("zstd", "zstd"), ("gzip, deflate, br, zstd", "zstd"),
    ("gzip, br", "br"), ("gzip;q=1.0, br;q=0.5", "gzip"), ("gzip;q=0.5, zstd;q=0.50, br;q=0.4", "zstd"),
    ("zstd;q=0.9, gzip;q=0.901", "gzip"), ("zstd;q=0, gzip", "gzip"), ("gzip;q=0", None), ("*", "zstd"),
    ("*;q=0.5, gzip", "gzip"), ("zstd;q=0, *", "br"), ("*;q=0", None), ("identity", None),
    ("identity;q=0.5, gzip;q=0.4", None), ("identity;q=0.4, gzip;q=0.5", "gzip"), ("identity;q=0, gzip", "gzip"),
    ("identity;q=0", None), ("identity;q=0, gzip;q=0", None), ("deflate", None), ("GZIP", "gzip"), ("x-gzip", "gzip"),
    ("gzip ; q=0.5", "gzip"), ("gzip;q=0.001", "gzip"), ("gzip;q=0.000", None), ("gzip;q=2", None), ("gzip;q=x", None),
    (",,gzip,,", "gzip"), ("gzipped", None), ("gzip" * 1000, None), ("\xff\xfe, gzip", "gzip"), ('"gzip"', None),
])
def test_compress_accept_encoding_selects_coding(start, accept, coding):
    reply = ask(start(), accept)
    assert reply.status == 200 and reply.get("Content-Encoding") == coding
    assert (decode(coding, reply.body) if coding else reply.body) == TEXT
    assert reply.tokens("Vary") == ["accept-encoding"], "Vary is sent to every client"


@pytest.mark.parametrize("coding", CODINGS)
def test_compress_changes_etag_length_and_ranges(start, coding):
    plain, coded = ask(server := start(), None), ask(server, coding)
    assert coded["ETag"] == "W/" + plain["ETag"] and plain["ETag"].startswith('"')
    assert coded["Content-Type"] == plain["Content-Type"] and coded["Last-Modified"] == plain["Last-Modified"]
    assert "Accept-Ranges" in plain and "Accept-Ranges" not in coded
    assert len(coded.body) < len(TEXT) / 3 and coded.framing == "chunked"


def test_compress_codings_key_sets_preference(start):
    server = start("Codings gzip br zstd")
    assert ask(server, "zstd, br, gzip")["Content-Encoding"] == "gzip"
    server = start("Codings gzip")
    assert "Content-Encoding" not in ask(server, "zstd, br")
    assert "Content-Encoding" not in ask(start("Codings off")) and "Vary" not in ask(start("Codings off"))


@pytest.mark.parametrize("coding", CODINGS)
def test_compress_head_equals_get_without_body(start, coding):
    server = start()
    for _ in range(2):  # the second response comes from the cache
        head, get = ask(server, coding, method="HEAD"), ask(server, coding)
        names = ("ETag", "Vary", "Content-Encoding", "Content-Type", "Last-Modified", "Accept-Ranges")
        assert [head.get(name) for name in names] == [get.get(name) for name in names]
        assert head["Content-Encoding"] == coding
        assert head.get("Content-Length") in (None, get.get("Content-Length") or head.get("Content-Length"))
    assert head["Content-Length"] == str(len(get.body))


@pytest.mark.parametrize("coding", CODINGS)
def test_compress_http_1_0_body_ends_with_connection(start, coding):
    server = start()
    with server.connect() as c:
        c.send(f"GET /a.html HTTP/1.0\r\nAccept-Encoding: {coding}\r\n\r\n".encode())
        reply = c.read()
    assert reply.framing == "close" and decode(coding, reply.body) == TEXT


@pytest.mark.parametrize("coding", CODINGS)
def test_compress_responses_on_one_connection_are_independent(start, site, coding):
    """A reused encoder starts from a clean state."""
    contents = [TEXT, TEXT[::-1], bytes(100_000), random.Random(1).randbytes(70_000)]
    for i, content in enumerate(contents):
        site.add(f"{i}.txt", content)
    server = start("CacheSize off")
    with server.connect() as c:
        for i in (0, 1, 2, 3, 2, 1, 0):
            reply = c.get(f"/{i}.txt", fields={"Accept-Encoding": coding})
            assert reply["Content-Encoding"] == coding and decode(coding, reply.body) == contents[i]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size", [512, 4095, 4096, 16383, 16384, 16385, 65535, 65536, 65537, 131072, 300_000])
def test_compress_every_length_decodes(start, site, coding, size):
    content = random.Random(size).randbytes(size)
    site.add("random.txt", content)
    site.add("lines.txt", lines(size))
    server = start("CacheSize off")
    assert decode(coding, ask(server, coding, "/random.txt").body) == content
    assert decode(coding, ask(server, coding, "/lines.txt").body) == lines(size)


def test_compress_works_with_curl(start, site):
    if not shutil.which("curl"):
        pytest.skip("no curl here")
    server = start()
    for _ in range(2):
        got = subprocess.run(["curl", "-sS", "--compressed", "-D", "-", f"{server.url}/a.html"], capture_output=True, timeout=30)
        head, _, body = got.stdout.partition(b"\r\n\r\n")
        assert got.returncode == 0 and body == TEXT and b"Content-Encoding: " in head, got


@pytest.mark.parametrize("coding, tool", [("gzip", "gzip"), ("br", "brotli"), ("zstd", "zstd")])
def test_compress_output_decodes_with_command_line_tools(start, coding, tool):
    if not shutil.which(tool) or coding not in BUILD:
        pytest.skip(f"no {tool} here")
    body = ask(start(), coding).body
    assert subprocess.run([tool, "-dc"], input=body, capture_output=True, timeout=30, check=True).stdout == TEXT


# Eligible responses

@pytest.mark.parametrize("name, coded", [
    ("a.css", True), ("a.js", True), ("a.json", True), ("a.svg", True), ("a.xml", True), ("a.wasm", True), ("a.txt", True),
    ("a.png", False), ("a.jpg", False), ("a.zip", False), ("a.mp4", False), ("a.woff2", False), ("a.pdf", False), ("a.gz", False),
])
def test_compress_default_types_apply(start, site, name, coded):
    site.add(name, TEXT)
    reply = ask(start(), target=f"/{name}")
    assert (reply.get("Content-Encoding"), reply.get("Vary")) == (("gzip", "Accept-Encoding") if coded else (None, None))


@needs_contents
def test_compress_types_key_adds_types(making):
    server = making("Types Application/X-Mine image/*\nTypes application/*+foo")
    for type, coded in (("application/x-mine", True), ("APPLICATION/X-MINE ; charset=x", True), ("image/png", True), ("text/html", False),
                        ("application/a+foo", True), ("application/foo", False), ("application/x-mine2", False), ("x" * 300, False)):
        reply = ask(server, target=f"/made?field=Content-Type:{type}".replace(" ", "%20"))
        assert ("Content-Encoding" in reply) == coded, type


def test_compress_min_length_skips_short_bodies(start, site):
    site.add("short.txt", b"x" * 99)
    site.add("long.txt", b"x" * 100)
    site.add("empty.txt", b"")
    server = start("MinLength 100")
    assert [ask(server, target=f"/{name}.txt").get("Content-Encoding") for name in ("short", "long", "empty")] == [None, "gzip", None]
    assert ask(start("MinLength 0"), target="/empty.txt").body == b""


def test_compress_except_skips_paths(start, site):
    site.add("in/a.html", TEXT)
    server = start("Except /in/*\nExcept *.css")
    assert "Content-Encoding" not in ask(server, target="/in/a.html") and "Content-Encoding" in ask(server)


def test_compress_prefers_precompressed_files(start, site):
    """A file that has a precompressed variant is not compressed again."""
    site.add("a.html.gz", b"as good as compressed" * 100)
    reply = ask(start(), "gzip")
    assert reply["Content-Encoding"] == "gzip" and reply.body == b"as good as compressed" * 100
    assert reply["ETag"].startswith('"') and reply.tokens("Vary") == ["accept-encoding"]


def test_compress_range_requests_are_not_encoded(start):
    server = start()
    reply = ask(server, Range="bytes=10-19")
    assert reply.status == 206 and reply.body == TEXT[10:20] and "Content-Encoding" not in reply
    assert reply.tokens("Vary") == ["accept-encoding"] and reply["ETag"].startswith('"')
    coded = ask(server)
    whole = ask(server, Range="bytes=10-19", If_Range=coded["ETag"])
    assert whole.status == 200 and decode("gzip", whole.body) == TEXT, "a weak ETag never validates If-Range"
    many = ask(server, Range="bytes=0-1,5-6")
    assert many.status == 206 and "Content-Encoding" not in many
    assert ask(server, Range="bytes=999999-").status == 416


def test_compress_conditional_request_gets_304(start):
    server = start()
    coded, plain = ask(server), ask(server, None)
    for accept, etag in (("gzip", coded["ETag"]), ("gzip", f'"x", {coded["ETag"]}'), ("gzip", plain["ETag"]), (None, coded["ETag"])):
        reply = ask(server, accept, If_None_Match=etag)
        assert reply.status == 304 and not reply.body and "Content-Encoding" not in reply
        assert reply["ETag"] == (coded["ETag"] if "W/" in etag else plain["ETag"])
        assert reply.tokens("Vary") == ["accept-encoding"]
    reply = ask(server, If_Modified_Since=coded["Last-Modified"])
    assert reply.status == 304 and reply.tokens("Vary") == ["accept-encoding"]
    assert ask(server, If_None_Match='W/"other"').status == 200
    assert ask(server, If_Match=coded["ETag"]).status == 412, "a weak ETag never matches strongly"


def test_compress_304_of_ineligible_type_has_no_vary(start, site):
    site.add("a.png", TEXT)
    server = start()
    reply = ask(server, target="/a.png", If_None_Match=ask(server, target="/a.png")["ETag"])
    assert reply.status == 304 and "Vary" not in reply


@needs_contents
def test_compress_respects_no_transform_and_existing_encoding(making):
    server = making()
    for field in ("Cache-Control:no-transform", "Cache-Control:max-age=1, No-Transform", "Content-Encoding:br", "Content-Encoding:identity",
                  "Content-MD5:x", "Digest:x", "Content-Digest:x", "Repr-Digest:x"):
        reply = ask(server, target=f"/made?field={field}".replace(" ", "%20"))
        assert reply.get("Content-Encoding", "").replace("identity", "").replace("br", "") == "" and reply.body == lines(10000), field
    assert ask(server, target="/made?field=Cache-Control:private")["Content-Encoding"] == "gzip"
    assert ask(server, target="/made?field=Set-Cookie:a=b")["Content-Encoding"] == "gzip"


@needs_contents
@pytest.mark.parametrize("there, then", [
    ([], "Accept-Encoding"), (["Origin"], "Origin, Accept-Encoding"), (["*"], "*"), (["accept-encoding"], "accept-encoding"),
    (["Origin", "Cookie, X"], "Origin, Cookie, X, Accept-Encoding"), (["Origin, Accept-Encoding"], "Origin, Accept-Encoding"),
    (["x" * 2000], "x" * 2000 + ", Accept-Encoding"), (["Accept-Encoding-X"], "Accept-Encoding-X, Accept-Encoding"), ([""], "Accept-Encoding"),
])
def test_compress_vary_is_merged_into_one_list(making, there, then):
    reply = ask(making(), target="/made?size=1000" + "".join(f"&field=Vary:{value}".replace(" ", "%20") for value in there))
    assert ", ".join(value for value in reply.all("Vary") if value) == then and reply["Content-Encoding"] == "gzip"


@needs_contents
def test_compress_weakens_etags_of_handlers(making):
    server = making()
    for etag, then in (('"a"', 'W/"a"'), ('W/"a"', 'W/"a"'), ('"' + "x" * 600 + '"', None)):
        reply = ask(server, target=f"/made?field=ETag:{etag}".replace('"', "%22"))
        assert reply.get("ETag") == then and "Content-Encoding" in reply


@needs_contents
@pytest.mark.parametrize("coding", CODINGS)
def test_compress_handles_every_kind_of_body(making, coding):
    server = making()
    for query in ("size=100000", "size=100000&known=1", "size=100000&as=text", "size=100000&status=404", "size=100000&known=1&status=500"):
        reply = ask(server, coding, f"/made?{query}")
        assert reply["Content-Encoding"] == coding and decode(coding, reply.body) == lines(100000), query
    assert decode(coding, ask(server, coding, "/made?size=0").body) == b""
    reply = ask(server, coding, "/made?size=0&known=1")
    assert reply.body == b"" and "Content-Encoding" not in reply
    assert ask(server, coding, "/made?status=204").status == 204
    head = ask(server, coding, "/made?size=100000&known=1", "HEAD")
    assert head["Content-Encoding"] == coding and "Content-Length" not in head


@needs_contents
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_compress_ignores_raw_responses(making, method):
    server = making()
    with server.connect() as c:
        c.ask("/made?as=raw&size=1000", method, fields={"Accept-Encoding": "gzip"})
        assert c.read_to_end() == lines(1000)


def test_compress_encodes_error_pages(start):
    reply = ask(start("MinLength 1"), target="/none")
    assert reply.status == 404 and b"404" in decode("gzip", reply.body)


@needs_contents
def test_compress_cross_site_requests_are_not_encoded(making):
    """A page of another site makes the browser send requests with its user's cookies (BREACH)."""
    server = making()
    hostile = {"Sec_Fetch_Site": "cross-site", "Cookie": "a=b"}
    assert "Content-Encoding" not in ask(server, target="/made", **hostile)
    assert "Content-Encoding" not in ask(server, target="/made", Sec_Fetch_Site="cross-site", Authorization="Basic x")
    assert ask(server, target="/made", **hostile).tokens("Vary") == ["accept-encoding"]
    for fields in ({"Sec_Fetch_Site": "cross-site"}, {"Cookie": "a=b"}, {"Sec_Fetch_Site": "same-origin", "Cookie": "a=b"},
                   {**hostile, "Sec_Fetch_User": "?1"}):
        assert ask(server, target="/made", **fields)["Content-Encoding"] == "gzip", fields
    assert ask(server, **hostile)["Content-Encoding"] == "gzip", "a static file contains no secrets of one user"
    assert ask(making("CrossSite on"), target="/made", **hostile)["Content-Encoding"] == "gzip"


def test_compress_hosts_have_separate_settings(start, site):
    server = start(host="ServerName one.example", top="[COMPRESS]\n    Codings gzip\n", sections="""
        [HOST]
            ServerName off.example
            DocumentRoot site
        [COMPRESS]
            Codings off
        [HOST]
            ServerName only.example
            DocumentRoot site
        [COMPRESS]
            MinLength 1G
    """)
    got = {name: server.get("/a.html", host=f"{name}.example", fields={"Accept-Encoding": "gzip"}).get("Content-Encoding") for name in ("one", "off", "only")}
    assert got == {"one": "gzip", "off": None, "only": None}


def test_compress_does_nothing_without_section(monkey, site):
    site.add("a.html", TEXT)
    reply = ask(monkey(plugins=["compress"]))
    assert "Content-Encoding" not in reply and "Vary" not in reply


def test_compress_vary_appears_in_explain(start, run):
    """The output of `monkey explain` includes Vary, although the request that it simulates has no Accept-Encoding."""
    server = start()
    assert re.search(r"^ +Vary: Accept-Encoding$", run("explain", "-c", server.config, "GET", "http://x/a.html").out, re.MULTILINE)


@pytest.mark.skipif(not (PROGRAM.parent / "plugins" / "monkey-headers.so").exists(), reason="a build without headers")
def test_compress_respects_headers_of_other_plugins(start, site):
    """The rules of the headers plugin run before compression."""
    site.add("b.html", TEXT)
    site.add("c.bin", TEXT)
    server = start(plugins=["compress", "headers"], top="""
        [HEADERS]
            Set /a.html Cache-Control no-transform
            Add /b.html Vary Origin
            Set *.bin Content-Type text/plain
    """)
    assert "Content-Encoding" not in ask(server)
    reply = ask(server, target="/b.html")
    assert reply["Vary"] == "Origin, Accept-Encoding" and decode("gzip", reply.body) == TEXT
    assert decode("gzip", ask(server, target="/c.bin").body) == TEXT


@pytest.mark.skipif(not (PROGRAM.parent / "plugins" / "monkey-limits.so").exists(), reason="a build without limits")
def test_compress_bandwidth_limit_counts_encoded_bytes(start, site):
    site.add("zeroes.txt", bytes(8 << 20))
    server = start("CacheSize off", plugins=["compress", "limits"], top="[LIMITS]\n    Bandwidth 64K\n")
    assert decode("gzip", ask(server, target="/zeroes.txt").body) == bytes(8 << 20)  # would take over a minute uncompressed


# Configuration

@pytest.mark.parametrize("keys, location, message", [
    ("    Codings gzip lzma\n", "18", "`lzma` is not a coding: expected zstd, br or gzip"),
    ("    Codings gzip off\n", "18", "`off` is not a coding"),
    ("    Types text\n", "11", "`text` is not a media type"),
    ("    Types text/html; charset=utf-8\n", "11", "`text/html;` is not a media type"),
    ("    Types text/html /x\n", "21", "`/x` is not a media type"),
    ("    Types a/" + "b" * 200 + "\n", "11", "is not a media type"),
    ("    Except /a b\n", "15", "`b` is not a path"),
    ("    GzipLevel 0\n", "15", "too small"),
    ("    GzipLevel 10\n", "15", "too large"),
    ("    BrotliLevel 11\n", "17", "too large"),
    ("    ZstdLevel 19\n", "15", "too large"),
    ("    MaxStreams 0\n", "16", "too small"),
    ("    CacheSize lots\n", "15", "expected a size"),
    ("    CrossSite maybe\n", "15", "expected on or off"),
    ("    MinLenght 1\n", "5", "unknown key `MinLenght` in [COMPRESS]"),
])
def test_compress_invalid_configuration_is_rejected_with_location(run, site, tmp_path, keys, location, message):
    config = write_config(tmp_path / "checked.conf", plugins=["compress"], sections=f"[COMPRESS]\n{keys}")
    line = config.read_text().splitlines().index("[COMPRESS]") + 2
    done = run("-t", "-c", config)
    assert done.code == 3 and re.search(rf"checked\.conf:{line}:{location}: error: .*{re.escape(message)}", done.err), done.err


def test_compress_printed_config_loads_again(run, site, tmp_path):
    config = write_config(tmp_path / "some.conf", plugins=["compress"],
                          sections="[COMPRESS]\n    Types text/* a/b\n    Except /x \"/a b\"\n    CacheSize off\n    Codings gzip\n")
    printed = run("-T", "-c", config).out
    for line in ("Types +text/\\* a/b", "Except +/x", 'Except +"/a b"', "CacheSize +off", "Codings +gzip", "MinLength +512"):
        assert re.search(rf"^    {line}$", printed, re.MULTILINE), (line, printed)
    (tmp_path / "again.conf").write_text(printed)
    assert run("-T", "-c", tmp_path / "again.conf").out == printed


def test_compress_shipped_config_loads(start):
    shipped = ROOT / "plugins" / "compress" / "compress.conf"
    assert ask(start(sections="", top=f"@INCLUDE {shipped}\n"))["Content-Encoding"] == "gzip"
