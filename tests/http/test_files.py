# SPDX-License-Identifier: Apache-2.0
"""Static files: the mapping of paths to files, media types, and changes while the server runs."""
import os
import random
import re
import shutil
import socket
from pathlib import Path
from urllib.parse import quote

import pytest

from client import Closed

ROOT = Path(__file__).resolve().parents[2]
TYPES = re.findall(r"^    (\S+) +(\S+)$", (ROOT / "conf/monkey.mime").read_text(), re.MULTILINE)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")


# Folders

def test_folder_serves_its_index_file(monkey, site):
    site.add("index.html", "root")
    site.add("a/index.htm", "a")
    site.add("b/index.html", "b1")
    site.add("b/index.htm", "b2")
    server = monkey()
    for target, text in {"/": "root", "/a/": "a", "/b/": "b1", "/a/index.htm": "a", "//": "root", "/b//": "b1"}.items():
        reply = server.get(target)
        assert (reply.status, reply.text) == (200, text), target
        assert reply["Content-Type"] == "text/html; charset=utf-8"


def test_index_key_sets_index_files(monkey, site):
    site.add("home.txt", "home")
    site.add("a/b/main.txt", "main")
    site.add("a/index.html", "not asked for")
    server = monkey(server="Index home.txt b/main.txt")
    assert server.get("/").text == "home"
    assert server.get("/a/").text == "main"


def test_index_that_is_a_folder_is_skipped(monkey, site):
    site.add("index.html/x", "")
    site.add("index.htm", "file")
    assert monkey().get("/").text == "file"


def test_folder_without_index_is_forbidden(monkey, site):
    site.add("a/x.txt", "")
    server = monkey()
    assert server.get("/").status == 403
    assert server.get("/a/").status == 403
    assert "x.txt" not in server.get("/a/").text


@pytest.mark.parametrize("target, location", [
    ("/a", "/a/"),
    ("/a?x=1&y=%20/../", "/a/?x=1&y=%20/../"),
    ("/a?", "/a/?"),
    ("/a/b", "/a/b/"),
    ("/a/../a", "/a/"),
    ("//a", "/a/"),
    ("///a//b", "/a/b/"),
    ("/%61", "/a/"),
    ("/with%20space", "/with%20space/"),
    ("/%C3%A4%22%3C%3E%27", "/%C3%A4%22%3C%3E%27/"),
    ("/100%25", "/100%25/"),
    ("/q%3F%23", "/q%3F%23/"),
    ("/%0d%0aX:%20y", "/%0D%0AX:%20y/"),
    ("/%5Cevil.example", "/%5Cevil.example/"),
    pytest.param("http://other.example/a?b", "/a/?b", marks=pytest.mark.http1),
    ("/a:b@c", "/a:b@c/"),
])
def test_folder_without_slash_is_redirected(monkey, site, target, location):
    for name in ("a/b", "with space", "ä\"<>'", "100%", "q?#", "\r\nX: y", "\\evil.example", "a:b@c"):
        (site / name).mkdir(parents=True)
    server = monkey()
    for method in ("GET", "HEAD"):
        reply = server.get(target, method)
        assert (reply.status, reply["Location"]) == (301, location)
        assert not reply.all("X")
    assert server.get(location.partition("?")[0]).status == 403, "the folder exists"


@pytest.mark.parametrize("target", ["//evil.example", "//evil.example/..", "/\\evil.example", "/%5Cevil.example",
                                    "//evil.example/%2e%2e", "///evil.example", "/.//evil.example",
                                    "/x/..//evil.example", "/%2e%2e//evil.example", "/%2Fevil.example",
                                    "//evil.example%2f..", "/%09/evil.example", "/;//evil.example"])
def test_redirect_never_leads_to_another_host(monkey, site, target):
    for name in ("evil.example", "\\evil.example", "\t/evil.example", ";/evil.example"):
        (site / name).mkdir(parents=True)
    reply = monkey().get(target)
    if reply.status == 301:
        assert re.match(r"/[^/\\]", reply["Location"])
    else:
        assert reply.status in (200, 400, 403, 404)


@pytest.mark.parametrize("handler", ["static", "dirlisting"])
def test_redirect_escapes_control_characters_of_folder(monkey, site, handler):
    controls = [*range(1, 0x21), 0x7f]  # browsers remove some of these characters anywhere in a URL
    for byte in controls:
        (site / chr(byte) / f"a{chr(byte)}").mkdir(parents=True)
    server = monkey(plugins=["dirlisting"], sections=f"[ROUTES]\n    /* {handler}\n")
    for byte in controls:
        for path in (f"/%{byte:02X}", f"/%{byte:02X}/a%{byte:02X}"):
            reply = server.get(path)
            assert (reply.status, reply["Location"]) == (301, f"{path}/")


def test_file_path_with_slash_is_not_found(monkey, site):
    site.add("a.txt", "hello")
    server = monkey()
    assert server.get("/a.txt/").status == 404
    assert server.get("/a.txt/b").status == 404
    assert server.get("/a.txt").text == "hello"


# Media types

def test_mime_types_match_table(monkey, site):
    assert len(TYPES) > 300
    for extension, _ in TYPES:
        site.add(f"x.{extension}", "x")
    with monkey().connect() as c:
        for extension, type_ in TYPES:
            expected = f"{type_}; charset=utf-8" if type_.startswith("text/") else type_
            assert c.get(f"/x.{extension}", "HEAD")["Content-Type"] == expected


@pytest.mark.parametrize("name, type_", [
    ("A.HTML", "text/html; charset=utf-8"),
    ("a.JpEg", "image/jpeg"),
    ("a.tar.gz", "application/gzip"),
    ("a.b.c.css", "text/css; charset=utf-8"),
    ("README", "text/plain; charset=utf-8"),
    ("a.", "text/plain; charset=utf-8"),
    ("a.unheard-of", "text/plain; charset=utf-8"),
    ("a.a-very-long-extension-indeed", "text/plain; charset=utf-8"),
    ("html", "text/plain; charset=utf-8"),
    ("dir.html/plain", "text/plain; charset=utf-8"),
    ("a.html ", "text/plain; charset=utf-8"),
    ("a.html\n", "text/plain; charset=utf-8"),
    ("a.js", "text/javascript; charset=utf-8"),
    ("a.json", "application/json"),
    ("a.svg", "image/svg+xml"),
    ("a.wasm", "application/wasm"),
])
def test_mime_type_follows_file_name(monkey, site, name, type_):
    site.add(name, "x")
    assert monkey().get("/" + quote(name))["Content-Type"] == type_


def test_mime_types_section_overrides_table(monkey, site):
    for name in ("a.foo", "a.FOO", "a.html", "a.bar", "a.txt", "none"):
        site.add(name, "x")
    server = monkey(server="DefaultMimeType application/x-default", sections="""
        [MIMETYPES]
            foo   application/x-foo
            HTML  application/xhtml+xml
            bar   text/x-bar; charset=latin1
        """)
    types = {name: server.get("/" + name)["Content-Type"] for name in os.listdir(site)}
    assert types == {"a.foo": "application/x-foo", "a.FOO": "application/x-foo", "a.html": "application/xhtml+xml",
                     "a.bar": "text/x-bar; charset=latin1", "a.txt": "text/plain; charset=utf-8",
                     "none": "application/x-default"}


# Names

NAMES = ["with space.txt", " leading", "trailing ", "quote\".txt", "apostrophe'.txt", "ümläut.txt", "日本語.txt",
         "🐒.txt", "100%.txt", "%41.txt", "%2e%2e", "what?.txt", "a#b.txt", "new\nline.txt", "carriage\rreturn.txt", "tab\t.txt",
         "back\\slash.txt", "a&b=c.txt", "semi;colon.txt", "plus+plus.txt", "star*.txt", "<tag>.txt", "{brace}.txt",
         "[bracket].txt", "pipe|.txt", "caret^.txt", "tick`.txt", "dollar$.txt", "at@.txt", "colon:.txt", "comma,.txt",
         "~tilde.txt", "-dash.txt", "--double", "...", "..a", "a..b", "a...", "\x01\x7f.txt", "x" * 255]


@pytest.mark.parametrize("hidden", [False, True])
def test_file_names_with_special_characters_are_served(monkey, site, hidden):
    names = [name for name in NAMES if name.startswith(".") == hidden]
    paths = [path for name in names for path in (name, f"folder {name}"[:255] + "/" + name)]
    for path in paths:
        site.add(path, path)
    with monkey(host="DotFiles on" if hidden else "").connect() as c:
        for path in paths:
            for target in ("/" + quote(path), "/" + "".join(f"%{b:02x}" if b != 0x2f else "/" for b in path.encode())):
                reply = c.get(target)
                assert (reply.status, reply.text) == (200, path), target


def test_file_name_that_is_not_utf_8_is_served(monkey, site):
    path = os.path.join(os.fsencode(site), b"latin\xe4.txt")
    Path(os.fsdecode(path)).write_text("latin")
    server = monkey()
    assert server.get("/latin%E4.txt").text == "latin"
    assert server.get("/latin%C3%A4.txt").status == 404


def test_file_names_are_case_sensitive(monkey, site):
    site.add("a.txt", "small")
    site.add("A.txt", "large")
    server = monkey()
    assert (server.get("/a.txt").text, server.get("/A.txt").text) == ("small", "large")
    assert server.get("/a.TXT").status == 404


def test_file_name_that_is_too_long_is_not_found(monkey, site):
    server = monkey()
    for name in ("x" * 256, "x/" * 2100, "x" * 4096, ("y" * 255 + "/") * 20):
        assert server.get("/" + name).status == 404


def test_deeply_nested_path_is_served(monkey, site):
    path = "/".join(["d"] * 200) + "/a.txt"
    site.add(path, "deep")
    assert monkey().get("/" + path).text == "deep"


# Content

@pytest.mark.parametrize("how", ["", "OpenFileCache off", "InlineFileMax 0", "InlineFileMax 60K", "OpenFileCacheMemory 0"])
def test_files_of_every_size_arrive_complete(monkey, site, how):
    sizes = [0, 1, 2, 1000, 8191, 8192, 8193, 32768, 65535, 65536, 65537, 1 << 20, (9 << 20) + 1]
    contents = {f"/{size}.bin": random.Random(size).randbytes(size) for size in sizes}
    for name, content in contents.items():
        site.add(name[1:], content)
    server = monkey(server=how)
    for name, content in contents.items():
        with server.connect() as c:
            for _ in range(2):  # the first response comes from the file, and the second one from the cache
                reply = c.get(name)
                assert reply.body == content, name
                assert int(reply["Content-Length"]) == len(content)


def test_more_files_than_the_cache_holds_are_served(monkey, site):
    content = {f"/{i}.bin": os.urandom(100 + i) for i in range(100)}
    for name, data in content.items():
        site.add(name[1:], data)
    server = monkey(server="OpenFileCacheSize 10\nOpenFileCacheMemory 1K\nInlineFileMax 150")
    with server.connect() as c:
        for _ in range(3):
            for name, data in content.items():
                assert c.get(name).body == data


@pytest.mark.slow
def test_slow_reader_does_not_block_other_clients(monkey, site):
    site.add("large.bin", b"x" * (20 << 20))
    site.add("a.txt", "hello")
    server = monkey()
    with server.connect(receive_buffer=4096) as slow:
        slow.ask("/large.bin").read_head()
        assert server.get("/a.txt").text == "hello"
        assert slow.read_exactly(20 << 20) == b"x" * (20 << 20)


# Special files

def test_special_files_are_refused(monkey, site):
    os.mkfifo(site / "fifo")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(site / "socket"))
    site.add("a.txt", "hello")
    server = monkey()
    with server.connect() as c:  # there is one worker: none of these files may block it
        for name in ("fifo", "socket", "fifo/", "fifo/x", "socket/x"):
            assert c.get("/" + name).status in (403, 404), name
        assert c.get("/fifo").status == 403
        assert c.get("/a.txt").text == "hello"
    unix.close()


@needs_root
def test_devices_are_refused(monkey, site):
    try:
        os.mknod(site / "null", 0o20666, os.makedev(1, 3))
        os.mknod(site / "zero", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no devices can be made here")
    server = monkey()
    for name in ("null", "zero"):
        assert server.get("/" + name).status in (403, 404)


@pytest.mark.processes("it serves as the user of the program")
def test_unreadable_files_are_forbidden(monkey, site):
    site.add("open.txt", "x")
    site.add("closed.txt", "secret").chmod(0)
    site.add("folder/x.txt", "secret")
    site.add("list/index.html", "secret").chmod(0)
    site.add("list/index.htm", "second choice")
    (site / "folder").chmod(0)
    # Root can read everything, so the workers run as another user.
    server = monkey(server="User nobody" if os.geteuid() == 0 else "")
    try:
        with server.connect() as c:
            assert c.get("/open.txt").text == "x"
            for target in ("/closed.txt", "/folder/", "/folder/x.txt", "/folder/none", "/list/"):
                reply = c.get(target)
                assert reply.status == 403 and "secret" not in reply.text, target
    finally:
        (site / "folder").chmod(0o755)


@needs_root
def test_document_root_that_only_root_can_reach_is_served(monkey, tmp_path):
    """The master opens the folder before the workers switch to a user who may not enter it."""
    (tmp_path / "closed/inner").mkdir(parents=True)
    (tmp_path / "closed/inner/a.txt").write_text("hello")
    (tmp_path / "closed").chmod(0o700)
    server = monkey(server="User nobody", root="closed/inner")
    assert server.get("/a.txt").text == "hello"


# Files that change

LARGE = 32 << 20


def begin(server, target="/a.bin"):
    """Returns a client that has read the head and the first part of a large response, most of which is not sent yet."""
    c = server.connect(receive_buffer=4096)
    c.ask(target)
    head = c.read_head()
    c.read_exactly(1000)
    return c, int(head["Content-Length"]) - 1000


def test_file_that_grows_during_response_is_sent_with_old_length(monkey, site):
    path = site.add("a.bin", b"a" * LARGE)
    server = monkey()
    c, left = begin(server)
    with path.open("ab") as f:
        f.write(b"b" * 100_000)
    with c:
        assert c.read_exactly(left) == b"a" * left
        assert c.get("/a.bin", "OPTIONS").status == 200, "the next response follows immediately"


@pytest.mark.parametrize("how", ["OpenFileCacheTTL 0", "OpenFileCacheTTL 1h"])
def test_file_that_shrinks_during_response_ends_response_early(monkey, site, how):
    path = site.add("a.bin", b"a" * LARGE)
    server = monkey(server=how)
    c, left = begin(server)
    os.truncate(path, 2000)
    with c, pytest.raises((Closed, ConnectionResetError)):  # the server cannot complete the response, and the client detects this
        c.read_exactly(left)
    assert server.get("/a.bin").body == b"a" * 2000, "a cached size that was wrong is dropped"


@pytest.mark.http1
@pytest.mark.parametrize("size", [12_000, 40_000])
def test_responses_before_a_shrunken_file_are_complete(monkey, site, size):
    site.add("ok.txt", "fine")
    path = site.add("a.bin", b"a" * size)
    server = monkey(server="OpenFileCacheTTL 1h\nInlineFileMax 0")
    with server.connect() as c:
        assert c.get("/a.bin").body == b"a" * size
        os.truncate(path, size - 3000)
        c.send(b"GET /ok.txt HTTP/1.1\r\nHost: a\r\n\r\n" * 2 + b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        assert [c.read().text for _ in range(2)] == ["fine", "fine"]
        if size == 12_000:
            assert c.read().status == 500, "nothing of it is sent, so an error status is possible"
            c.expect_end()
        else:
            with pytest.raises((Closed, ConnectionResetError)):
                c.read()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["unlinked", "replaced"])
def test_file_that_is_replaced_during_response_is_sent_complete(monkey, site, how):
    path = site.add("a.bin", b"a" * LARGE)
    server = monkey(server="OpenFileCacheTTL 0")
    c, left = begin(server)
    if how == "unlinked":
        path.unlink()
    else:
        os.replace(site.add("b.bin", b"b" * 500), path)
    with c:
        assert c.read_exactly(left) == b"a" * left
        reply = c.get("/a.bin")
        assert reply.status == 404 if how == "unlinked" else reply.body == b"b" * 500


def test_folder_that_is_removed_is_not_found(monkey, site):
    site.add("a/b/x.txt", "x")
    server = monkey(server="OpenFileCacheTTL 0")
    assert server.get("/a/b/x.txt").text == "x"
    shutil.rmtree(site / "a")
    assert server.get("/a/b/x.txt").status == 404
    site.add("a", "now a file")
    assert server.get("/a").text == "now a file"
    assert server.get("/a/b/x.txt").status == 404


@pytest.mark.parametrize("how", ["OpenFileCacheTTL 0", "OpenFileCache off"])
def test_file_changes_are_visible_at_once_without_cache(monkey, site, how):
    server = monkey(server=how)
    with server.connect() as c:
        for size in (5, 50_000, 0, 8192, 3):
            for letter in b"ab":
                site.add("a.txt", bytes([letter]) * size)
                assert c.get("/a.txt").body == bytes([letter]) * size
        (site / "a.txt").unlink()
        assert c.get("/a.txt").status == 404
        site.add("a.txt", "back")
        assert c.get("/a.txt").text == "back"


def test_file_cache_serves_old_content_until_ttl(monkey, site):
    site.add("a.txt", "old", mtime=1_600_000_000)
    site.add("b.txt", "kept")
    server = monkey(server="OpenFileCacheTTL 1h")
    with server.connect() as c:
        assert (c.get("/a.txt").text, c.get("/b.txt").text) == ("old", "kept")
        site.add("a.txt", "new")
        (site / "b.txt").unlink()
        assert (c.get("/a.txt").text, c.get("/b.txt").text) == ("old", "kept")
        assert c.get("/c.txt").status == 404
        site.add("c.txt", "here now")
        assert c.get("/c.txt").text == "here now", "missing files are not cached"
