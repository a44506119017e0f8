# SPDX-License-Identifier: Apache-2.0
"""Virtual host selection by name and by address (RFC 9110, section 7.2; RFC 9112, section 3.2)."""
import socket

import pytest

from client import Closed

HOSTS = {"first": "", "one": "one.example WWW.One.Example", "two": "two.example",
         "wild": "*.wild.example", "deep": "*.deep.wild.example", "exact": "exact.wild.example",
         "six": "[::1] 127.0.0.1", "puny": "xn--bcher-kva.example", "last": "last.example."}


@pytest.fixture
def hosts(tmp_path):
    return make_hosts(tmp_path)


def make_hosts(folder):
    """Creates the document roots of the hosts, and returns their [HOST] sections."""
    for name in HOSTS:
        (folder / name).mkdir()
        (folder / name / "index.html").write_text(name)
    return "".join(f"[HOST]\n    DocumentRoot {name}\n" + (f"    ServerName {names}\n" if names else "")
                   for name, names in HOSTS.items())


def prepare(monkey, site):
    return monkey(root=None, sections=make_hosts(site.path.parent))


@pytest.fixture
def server(lasting):
    return lasting(prepare)


@pytest.mark.parametrize("host, expected", [
    ("one.example", "one"), ("www.one.example", "one"), ("ONE.EXAMPLE", "one"), ("One.Example:8080", "one"),
    ("one.example:", "one"), ("one.example.", "one"), ("one.example.:80", "one"), ("one.example:65535", "one"),
    ("two.example", "two"), ("a.wild.example", "wild"), ("A.WILD.example.:1", "wild"), ("a.b.wild.example", "wild"),
    ("wild.example", "first"), ("awild.example", "first"), ("exact.wild.example", "exact"),
    ("a.exact.wild.example", "wild"), ("a.deep.wild.example", "deep"), ("deep.wild.example", "wild"),
    ("last.example", "last"), ("last.example.", "last"), ("[::1]", "six"), ("[::1]:80", "six"), ("127.0.0.1", "six"),
    ("127.0.0.2", "first"), ("nobody.example", "first"), ("one.example.org", "first"), ("xone.example", "first"),
    ("xn--bcher-kva.example", "puny"), ("x" * 300 + ".example", "first"), ("_under.example", "first"),
])
def test_host_header_selects_virtual_host(server, host, expected):
    assert server.get("/", host=host).text == expected


@pytest.mark.parametrize("host", [
    "", " ", "a b", "one.example/", "one.example:80:80", "one.example:x", "user@one.example", "one.example:65536", "[::1",
    "::1", "[::1]x", "[one.example]", "..", "one..example", ".one.example", "one.example,two.example", "one.example?",
    "one.example#", "a\\b", "%41", "one.example:-1", ":80", "[]", "[::g]",
])
@pytest.mark.http2
def test_h2_authority_that_is_invalid_is_refused(server, host):
    """tests/wire/hosts.txt has the cases for HTTP/1."""
    with server.connect() as c:
        c.ask("/", host=host)
        if host == " ":  # in HTTP/2, a header value cannot end with a space
            with pytest.raises(Closed) as error:
                c.read()
            assert error.value.code == "PROTOCOL_ERROR"
        else:
            reply = c.read()
            assert (reply.status, reply.closes) == (400, False)


@pytest.mark.http2
def test_h2_host_header_replaces_missing_authority(server):
    assert server.get("/", fields={"Host": "two.example"}, host=None).text == "two"
    assert server.get("/", host=None).status == 400


@pytest.mark.parametrize("target, host, expected", [
    ("http://two.example/", "one.example", "two"),
    ("http://two.example", "one.example", "two"),
    ("HTTP://TWO.EXAMPLE:99/", "one.example", "two"),
    ("http://two.example?query", "one.example", "two"),
    ("https://two.example/index.html", "nobody.example", "two"),
    ("http://[::1]:80/", "one.example", "six"),
    ("http://nobody.example/", "one.example", "first"),
    ("http://two.example./", "two.example", "two"),
])
@pytest.mark.http1
def test_absolute_target_overrides_host_header(server, target, host, expected):
    assert server.get(target, host=host).text == expected


@pytest.mark.parametrize("target", [
    "http://", "http:///", "http:/two.example/", "http:two.example", "ftp://two.example/", "http://user@two.example/",
    "http://two.example:x/", "//two.example/", "two.example", "http://two example/", "*", "two.example:80", "http://[::1/",
    "file:///etc/hostname",
])
@pytest.mark.http2
def test_h2_paths_that_are_unusual_targets_are_refused(server, target):
    """tests/wire/targets.txt has the cases for HTTP/1."""
    reply = server.get(target, host="one.example")
    if target == "//two.example/":  # this path does not exist
        assert reply.status == 404
    else:
        assert reply.status == 400


def test_default_on_selects_default_host(monkey, hosts):
    server = monkey(root=None, sections=hosts.replace("[HOST]\n    DocumentRoot two", "[HOST]\n    Default on\n    "
                                                      "DocumentRoot two"))
    assert server.get("/", host="nobody.example").text == "two"
    assert server.get("/", host="one.example").text == "one"
    if not server.is_h2:
        assert server.get("/", host=None, version="1.0").text == "two"
        assert server.send(b"nonsense\r\n\r\n").status == 400


def test_connection_serves_several_hosts(server):
    with server.connect() as c:
        for name in ("one", "two", "nobody", "one"):
            assert c.get("/", host=f"{name}.example").text == (name if name != "nobody" else "first")


def test_host_settings_do_not_affect_other_hosts(monkey, tmp_path):
    for name in ("one", "two"):
        root = tmp_path / name
        root.mkdir()
        (root / "start.html").write_text(f"start of {name}")
        (root / "index.html").write_text(f"index of {name}")
        (root / "404.html").write_text(f"404 of {name}")
        (root / "413.html").write_text(f"413 of {name}")
        (root / "link.html").symlink_to("index.html")
        (root / ".hidden").write_text("hidden")
    server = monkey(root=None, server="MaxBodySize 10", sections="""
        [HOST]
            ServerName one.example
            DocumentRoot one
            Index start.html
            FollowSymlinks on
        [ERROR_PAGES]
            404 404.html
        [CACHE_CONTROL]
            * max-age=1
        [HOST]
            ServerName two.example
            DocumentRoot two
            DotFiles on
            Ranges off
        [ERROR_PAGES]
            413 413.html
        [ROUTES]
            /teapot status 418
            /* static
        """)

    def get_one(target, **how):
        return server.get(target, host="one.example", **how)

    def get_two(target, **how):
        return server.get(target, host="two.example", **how)

    assert (get_one("/").text, get_two("/").text) == ("start of one", "index of two")
    assert (get_one("/link.html").text, get_two("/link.html").status) == ("index of one", 403)
    assert (get_one("/.hidden").status, get_two("/.hidden").text) == (403, "hidden")
    assert get_one("/none").text == "404 of one" and "Not Found" in get_two("/none").text
    assert get_one("/")["Cache-Control"] == "max-age=1" and "Cache-Control" not in get_two("/")
    assert "Accept-Ranges" in get_one("/") and "Accept-Ranges" not in get_two("/")
    assert (get_one("/teapot").status, get_two("/teapot").status) == (404, 418)
    assert get_two("/", method="POST", body=b"x" * 11).text == "413 of two"
    assert "Too Large" in get_one("/", method="POST", body=b"x" * 11).text


# Addresses

def test_server_listens_on_several_addresses(monkey, site, tmp_path):
    site.add("a.txt", "hello")
    listen = ["127.0.0.1:0", "127.0.0.2:0", f"unix:{tmp_path}/socket"]
    if has_ipv6():
        listen.append("[::1]:0")
    server = monkey(listen=listen, workers=2)
    assert len(server.addresses) == len(listen)
    for i in range(len(listen)):
        with server.connect(i) as c:
            for _ in range(3):
                assert c.get("/a.txt").text == "hello"


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_server_listens_on_ipv6(monkey, site):
    site.add("a.txt", "hello")
    (site / "folder").mkdir()
    server = monkey(listen="[::1]:0")
    host = f"[::1]:{server.port}"
    assert server.get("/a.txt", host=host).text == "hello"
    assert server.get("/folder", host=host)["Location"] == "/folder/"


PLAIN = pytest.mark.over("h1", "h2", why="a unix socket is not encrypted")


@PLAIN
def test_server_listens_on_unix_socket(monkey, site, tmp_path):
    content = b"x" * 3_000_000
    site.add("a.bin", content)
    path = tmp_path / "socket"
    server = monkey(listen=f"unix:{path}")
    with server.connect() as c:
        for _ in range(3):
            assert c.get("/a.bin").body == content
        reply = c.get("/", host=None)
        assert reply.status == 400
        if reply.closes:
            c.expect_end()
    server.stop()
    assert not path.exists(), "removed on shutdown"


@pytest.mark.parametrize("kind", ["tcp", pytest.param("unix", marks=PLAIN)])
def test_listener_distributes_connections_over_all_workers(monkey, site, tmp_path, kind):
    site.add("a.txt", "hello")
    server = monkey(workers=2, listen="127.0.0.1:0" if kind == "tcp" else f"unix:{tmp_path}/socket")
    clients = [server.connect() for _ in range(40)]
    for c in clients:
        c.ask("/a.txt")
    assert [c.read().text for c in clients] == ["hello"] * 40
    for c in clients:
        c.close()
