# SPDX-License-Identifier: Apache-2.0
"""No path leads outside the document root, to a hidden file, or through a forbidden symbolic link."""
import os
import random
import re
import threading
from urllib.parse import quote

import pytest

from client import Closed

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

SECRET = "this must never be served"


@pytest.fixture
def outside(tmp_path):
    """Creates secret files beside and above the document root."""
    for name in ("secret.txt", "site2/secret.txt", "outside/secret.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SECRET)
    return tmp_path / "outside"


DOTS = ["..", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "%25%32%65%25%32%65", "..%00", "%00..", "..;", "..%20", "..%09",
        "..%0d%0a", "%c0%ae%c0%ae", "%c0%2e%c0%2e", "%e0%80%ae%e0%80%ae", "%f0%80%80%ae%f0%80%80%ae", "%uff0e%uff0e",
        "%u002e%u002e", "..%c0%af", "..%5c", "%2e%2e%5c", "....", "...", ". .", ".%00.", "\u2025", "\u2024\u2024",
        "%ef%bc%8e%ef%bc%8e", "..\\", "a/..\\..", "\\..", "%5c..", "x%2f..", "%2f..", "..%2f", "..%2f..", "..%252f",
        ".%2f..", "%2e%2f%2e%2e", "..%2f%2e%2e%2f", "x/%2e%2e/%2e%2e", "./..", "%2e/%2e%2e", "a/./../..",
        "a//..//..", "a/b/../../..", "~/..", "a%2f..%2f..", "..%ef%bc%8f", "..%c1%9c", "..%e2%88%95"]
SLASHES = ["/", "//", "/./", "\\", "%2f", "%5c", "%252f", "/%2e/", "%c0%af", "/;/", "\\/"]


@pytest.mark.slow
@pytest.mark.over("h1", "h2", why="TLS hands on the same bytes, and these are ten thousand requests")
def test_path_tricks_never_leave_document_root(monkey, site, outside):
    site.add("a/b/x.txt", "fine")
    site.add("...", "dots")
    server = monkey(server="KeepAliveRequests 0", host="DotFiles on")
    tried = 0
    with server.connect() as c:
        for dots in DOTS:
            for slash in SLASHES:
                for depth in (1, 2, 5):
                    for before in ("", "a/", "a/b/"):
                        for name in ("secret.txt", "outside/secret.txt"):
                            target = "/" + before + (dots + slash) * depth + name
                            c.ask(target.encode().decode("latin-1"))
                            reply = c.read()
                            tried += 1
                            assert reply.status in (400, 403, 404), target
                            assert SECRET not in reply.text, target
                            if reply.closes:
                                c.close()
                                c = server.connect()
    assert tried > 9000


@pytest.mark.slow
def test_path_of_random_bytes_never_leaves_document_root(monkey, site, outside, protocol):
    site.add("a/x.txt", "fine")
    site.add("index.html", "index")
    (site / "up").symlink_to("..")
    rng = random.Random(protocol)  # 4000 paths in total over all protocols
    pieces = ["..", ".", "/", "//", "%2e", "%2E", "%2f", "\\", "%5c", "a", "up", "secret.txt", "outside", "site",
              "%00", "%", "?", "#", ";", "x.txt", "%c0%ae", " ", "~", "%25", "index.html"]
    server = monkey(server="KeepAliveRequests 0", host="DotFiles on")
    c = server.connect()
    for _ in range(1000):
        target = "/" + "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 12)))
        c.ask(target)
        try:
            reply = c.read()
        except Closed as error:  # a header value cannot end with a space
            assert error.code == "PROTOCOL_ERROR" and target.endswith(" ")
            continue
        assert reply.status in (200, 301, 400, 403, 404), target
        assert reply.text in ("fine", "index") or reply.status != 200, target
        assert SECRET not in reply.text, target
        if reply.closes:
            c.close()
            c = server.connect()
    c.close()


def few_files(monkey, site):
    site.add("index.html", "index")
    site.add("a/x.txt", "x")
    (site / "a/b").mkdir()
    monkey()


@pytest.mark.parametrize("target, status", [
    ("/a/../a/x.txt", 200), ("/a/./x.txt", 200), ("/./a/x.txt", 200), ("//a//x.txt", 200), ("/a/b/..//x.txt", 200),
    ("/a/%2e/x.txt", 200), ("/a/b/%2e%2e/x.txt", 200), ("/%61/x%2etxt", 200), ("/nothing/../a/x.txt", 200),
    ("/..", 400), ("/../a/x.txt", 400), ("/a/../../a/x.txt", 400), ("/%2e%2e/a/x.txt", 400), ("/a/x.txt%00", 400),
    ("/a/x.txt%00.html", 400), ("/a/x.txt%", 400), ("/a/x.txt%2", 400), ("/a/x.txt%2g", 400), ("/a%2fx.txt", 404),
    ("/a%2Fx.txt", 404), ("/a%2f..%2fa/x.txt", 400), ("/a/x.txt;v=1", 404), ("/a/x.txt?../..", 200),
    ("/a/x.txt%3f", 404), ("/a/x.txt%23", 404), ("/a/x.txt/.", 404), ("/a/.", 403), ("/a/b/..", 403), ("/a/..", 200),
    ("/.", 200), ("/a/x.txt/..", 403), ("/a/%78.txt", 200), ("/a/%2578.txt", 404),
])
def test_unusual_paths_are_normalized_or_refused(lasting, target, status):
    reply = lasting(few_files).get(target)
    assert reply.status == status
    if status == 200:
        assert reply.text in ("x", "index")


# Hidden files

HIDDEN = [".htaccess", ".git/config", "a/.env", "a/.ssh/key", "..x", ".x/.well-known/y", "a/.well-known/x",
          ".well-known/.x", ".well-known-not/x", ".well-knownx"]


def hidden_files(monkey, site):
    for name in HIDDEN:
        site.add(name, SECRET)
    monkey()


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_files_are_refused(lasting, name):
    targets = ["/" + name, "//" + name, "/x/../" + name, "/" + name.replace(".", "%2e"), "/./" + name,
               "/" + name.rsplit("/", 1)[0]]
    server = lasting(hidden_files)
    for target in targets:
        reply = server.get(target)
        assert reply.status in (403, 404, 301) and SECRET not in reply.text, target
    assert server.get("/" + name).status == 403
    assert server.get("/" + name + "-that-is-not-there").status in (403, 404)


def test_well_known_folder_is_served(monkey, site):
    site.add(".well-known/acme-challenge/token", "token")
    site.add(".well-known/index.html", "well known")
    server = monkey()
    assert server.get("/.well-known/acme-challenge/token").text == "token"
    assert server.get("/.well-known/").text == "well known"
    assert server.get("/.well-known")["Location"] == "/.well-known/"


def test_hidden_files_are_served_with_dot_files_on(monkey, site):
    for name in HIDDEN:
        site.add(name, name)
    server = monkey(host="DotFiles on")
    for name in HIDDEN:
        assert server.get("/" + name).text == name


def test_hidden_files_are_not_disclosed(monkey, site):
    site.add(".there", "x")
    site.add(".folder/x", "x")
    server = monkey()
    answers = [server.get(t) for t in ("/.there", "/.nothing", "/.folder", "/.folder/", "/.folder/none", "/.there/")]
    pages = {re.sub(rb"<small>.*?</small>", b"", a.body) for a in answers}  # the pages differ only in the time that they show
    assert {a.status for a in answers} == {403} and len(pages) == 1


# Symbolic links

@pytest.fixture
def links(site, outside):
    """Creates symbolic links of every kind in a folder."""
    site.add("file.txt", "inside")
    site.add("folder/file.txt", "inside")
    site.add("folder/index.html", "inside")
    for name, to in {
        "link.txt": "file.txt", "chain.txt": "link.txt", "absolute.txt": str(site / "file.txt"), "dir": "folder",
        "folder/up": "..", "folder/index.htm": "../file.txt", "out.txt": "../secret.txt", "out": "../outside",
        "absolute": str(outside), "etc": "/etc", "slash": "/", "self": "self", "one": "two", "two": "one",
        "broken": "nowhere", "proc": "/proc/self/cwd", "deep/../x": "", "around": f"../{site.path.name}/folder",
    }.items():
        if to:
            (site / name).symlink_to(to)
    return site


INSIDE = ["/link.txt", "/chain.txt", "/dir/file.txt", "/dir/", "/folder/up/file.txt", "/folder/up/folder/file.txt",
          "/folder/up/dir/up/link.txt", "/absolute.txt", "/around/file.txt"]
OUTSIDE = ["/out.txt", "/out/secret.txt", "/absolute/secret.txt"]
NOWHERE = ["/self", "/one", "/two", "/broken", "/self/x"]
ELSEWHERE = ["/etc/hostname", "/slash/etc/hostname", "/proc/secret.txt"]


def test_symlinks_are_refused_by_default(monkey, links):
    server = monkey()
    for target in INSIDE + OUTSIDE + NOWHERE + ELSEWHERE + ["/dir", "/out", "/etc/", "/slash"]:
        reply = server.get(target)
        assert reply.status == 403 and SECRET not in reply.text, target
    assert server.get("/file.txt").text == "inside"
    assert server.get("/folder/").text == "inside"


def test_symlinks_are_followed_if_enabled(monkey, links):
    server = monkey(host="FollowSymlinks on")
    for target in INSIDE:
        assert server.get(target).text == "inside", target
    for target in OUTSIDE:
        assert server.get(target).text == SECRET, "also out of the document root: FollowSymlinks means that"
    for target in NOWHERE:
        assert server.get(target).status in (403, 404), target
    assert server.get("/dir")["Location"] == "/dir/"


def test_symlinks_with_matching_owner_are_followed(monkey, links):
    server = monkey(host="FollowSymlinks owner")
    for target in INSIDE:
        assert server.get(target).text == "inside", target
    for target in OUTSIDE:
        assert server.get(target).text == SECRET, target
    for target in NOWHERE:
        assert server.get(target).status in (403, 404), target


@needs_root
def test_symlinks_to_files_of_another_owner_are_refused(monkey, links, outside):
    for path in (outside / "secret.txt", links / "folder"):
        os.chown(path, 12345, 12345)
    os.lchown(links / "chain.txt", 12345, 12345)
    server = monkey(host="FollowSymlinks owner")
    for target in ("/dir/file.txt", "/dir/", "/around/file.txt", "/chain.txt", "/folder/up/dir/up/link.txt"):
        assert server.get(target).status == 403, target
    for target in ("/out/secret.txt", "/absolute/secret.txt"):
        assert server.get(target).text == SECRET, "the link and its folder have the same owner, and the file itself is no link"
    assert server.get("/link.txt").text == "inside"
    assert server.get("/folder/file.txt").text == "inside", "owners are checked only for links"
    os.lchown(links / "dir", 12345, 12345)
    assert monkey(host="FollowSymlinks owner").get("/dir/file.txt").text == "inside"


def test_index_file_may_be_a_symlink_if_enabled(monkey, links):
    (links / "folder/index.html").unlink()
    assert monkey().get("/folder/").status == 403
    assert monkey(host="FollowSymlinks on").get("/folder/").text == "inside"


def test_document_root_may_be_a_symlink(monkey, site, tmp_path):
    site.add("a.txt", "hello")
    (tmp_path / "current").symlink_to("site")
    assert monkey(root="current").get("/a.txt").text == "hello"


@pytest.mark.parametrize("how", ["off", "owner", "on"])
def test_dot_dot_never_passes_through_a_symlink(monkey, links, how):
    """The server removes `..` from the request path, and never resolves it in the folder that a link leads to."""
    server = monkey(host=f"FollowSymlinks {how}")
    for target in ("/out/../secret.txt", "/dir/../../secret.txt", "/out/../outside/secret.txt"):
        assert SECRET not in server.get(target).text
    assert server.get("/out/../file.txt").text == "inside"


@pytest.mark.slow
def test_symlink_race_never_leads_outside(monkey, site, outside):
    """A thread repeatedly replaces a folder with a link and restores it while a client requests files from it."""
    site.add("d/secret.txt", "inside")
    site.add("real/secret.txt", "inside")
    server = monkey(server="OpenFileCacheTTL 0\nKeepAliveRequests 0")
    stop = threading.Event()

    def exchange():
        while not stop.is_set():
            os.rename(site / "d", site / "d2")
            os.symlink(outside, site / "d")
            os.unlink(site / "d")
            os.rename(site / "d2", site / "d")

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        with server.connect() as c:
            for _ in range(1500):
                reply = c.get("/d/secret.txt")
                assert reply.status in (200, 403, 404, 503) and SECRET not in reply.text
                assert reply.status != 200 or reply.text == "inside"
    finally:
        stop.set()
        thread.join()
    assert server.get("/d/secret.txt").text == "inside"


def test_sandbox_does_not_change_responses(monkey, site):
    site.add("a b/ä.txt", "hello")
    for sandbox in ("on", "off"):
        server = monkey(server=f"Sandbox {sandbox}")
        assert server.get("/" + quote("a b/ä.txt")).text == "hello"
