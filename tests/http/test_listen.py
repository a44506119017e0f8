# SPDX-License-Identifier: Apache-2.0
"""Hosts that have their own listeners."""
import re
import signal
import socket

import pytest

from certificates import make_authority
from client import Client
from http2 import Http2Client

# 127.0.0.1 belongs to the server; the other addresses belong to hosts. The system chooses all ports.
HOSTS = """
    [HOST]
        ServerName everywhere.example
        DocumentRoot all
    [HOST]
        ServerName one.example both.example
        DocumentRoot one
        Listen 127.0.0.2:0
    [HOST]
        ServerName two.example both.example
        DocumentRoot two
        Listen 127.0.0.3:0
    [HOST]
        ServerName three.example
        DocumentRoot three
        Listen 127.0.0.3:0
        Listen 127.0.0.4:0
"""


@pytest.fixture
def roots(tmp_path):
    for name in ("all", "one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(name)


@pytest.fixture
def server(monkey, roots):
    return monkey(root=None, sections=HOSTS)


def listener_at(server, address):
    return next(i for i, a in enumerate(server.addresses) if a[0] == address)


def text(server, address, host):
    return server.get("/", listener=listener_at(server, address), host=host).text


def test_host_is_reachable_only_at_its_addresses(server):
    assert [a[0] for a in server.addresses] == [f"127.0.0.{n}" for n in (1, 2, 3, 4)]
    for address, host, expected in [
        ("127.0.0.1", "everywhere.example", "all"), ("127.0.0.1", "one.example", "all"), ("127.0.0.1", "two.example", "all"),
        ("127.0.0.2", "one.example", "one"), ("127.0.0.2", "everywhere.example", "one"), ("127.0.0.2", "both.example", "one"),
        ("127.0.0.3", "two.example", "two"), ("127.0.0.3", "both.example", "two"), ("127.0.0.3", "three.example", "three"),
        ("127.0.0.3", "nobody.example", "two"), ("127.0.0.4", "three.example", "three"), ("127.0.0.4", "two.example", "three"),
    ]:
        assert text(server, address, host) == expected, (address, host)


def test_listener_has_its_own_default_host(monkey, roots):
    server = monkey(root=None, sections=HOSTS.replace("DocumentRoot three", "DocumentRoot three\n        Default on")
                    .replace("DocumentRoot all", "DocumentRoot all\n        Default on"))
    assert [text(server, f"127.0.0.{n}", "nobody.example") for n in (1, 2, 3, 4)] == ["all", "one", "three", "three"]


def test_listener_of_server_may_belong_to_a_host_too(monkey, roots):
    server = monkey(root=None, listen=["127.0.0.1:0", "127.0.0.2:0"], sections=HOSTS)
    assert text(server, "127.0.0.2", "one.example") == "one"
    assert text(server, "127.0.0.2", "everywhere.example") == "all"
    assert text(server, "127.0.0.1", "one.example") == "all"


def test_listener_of_server_is_optional_if_every_host_has_one(monkey, roots):
    server = monkey(root=None, listen=[], sections="[HOST]\n    DocumentRoot one\n    Listen 127.0.0.2:0\n")
    assert [a[0] for a in server.addresses] == ["127.0.0.2"]
    assert text(server, "127.0.0.2", "x.example") == "one"


def test_listener_default_host_provides_error_pages(monkey, roots, tmp_path):
    (tmp_path / "three" / "400.html").write_text("page of three")
    server = monkey(root=None, sections=HOSTS + "    [ERROR_PAGES]\n        400 400.html\n")
    assert server.get("/", listener=listener_at(server, "127.0.0.4"), host="a b").text == "page of three"
    assert server.get("/", listener=listener_at(server, "127.0.0.2"), host="a b").text != "page of three"


def test_listener_reload_opens_and_closes_addresses(monkey, roots):
    server = monkey(root=None, sections=HOSTS)
    old = listener_at(server, "127.0.0.2")
    keeps = listener_at(server, "127.0.0.4")
    config = server.config.read_text()
    host = config[config.index("[HOST]", config.index("everywhere")):config.index("[HOST]", config.index("one.example"))]
    assert "127.0.0.2" in host
    server.config.write_text(config.replace(host, ""))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert server.get("/", listener=keeps, host="x.example").text == "three"
    with pytest.raises(ConnectionRefusedError):
        server.get("/", listener=old)
    server.config.write_text(config)
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves", count=2)
    assert server.get("/", listener=keeps, host="x.example").text == "three"


@pytest.mark.over("h1", "h2", why="a unix socket is not encrypted")
def test_listener_of_host_may_be_unix_socket(monkey, roots, tmp_path):
    server = monkey(root=None, sections=HOSTS + f"        Listen unix:{tmp_path}/socket\n")
    at = next(i for i, a in enumerate(server.addresses) if isinstance(a, str))
    assert server.get("/", listener=at, host="one.example").text == "three"
    server.stop()
    assert not (tmp_path / "socket").exists()


# ---- TLS ----

@pytest.fixture
def tls(monkey, roots, tmp_path):
    """Starts a server with one host without TLS and two hosts with TLS. Each host has its own address, and all three share the name
    both.example."""
    authority = make_authority(tmp_path)
    pairs = {name: authority.issue([f"{name}.example", "both.example"]) for name in ("two", "three")}
    text = HOSTS.replace("Listen 127.0.0.3:0", "Listen 127.0.0.3:0 tls", 1).replace(
        "        Listen 127.0.0.3:0\n        Listen 127.0.0.4:0", "        Listen 127.0.0.4:0 tls")
    for name, pair in pairs.items():
        text = text.replace(f"DocumentRoot {name}", f"DocumentRoot {name}\n        Certificate {pair.certificate} {pair.key}\n"
                            "        HSTS 1h")
    text = text.replace("ServerName three.example", "ServerName three.example both.example")
    server = monkey(root=None, sections=text)
    server.authority = authority
    return server


@pytest.mark.over("h1", why="it chooses what is spoken itself")
def test_listener_shows_certificates_of_its_hosts(tls):
    for address, expected in (("127.0.0.3", "two"), ("127.0.0.4", "three")):
        for client, protocol in ((Client, "http/1.1"), (Http2Client, "h2")):
            context = tls.authority.client_context(alpn=[protocol])
            context.check_hostname = False
            with client(tls.addresses[listener_at(tls, address)], tls=context) as c:
                reply = c.get("/", host="both.example")
                assert (reply.text, reply["Strict-Transport-Security"]) == (expected, "max-age=3600")
        with socket.create_connection(tls.addresses[listener_at(tls, address)]) as plain, \
                tls.authority.client_context().wrap_socket(plain, server_hostname="both.example") as c:
            assert f"{expected}.example" in [name for _, name in c.getpeercert()["subjectAltName"]]
    assert "Strict-Transport-Security" not in tls.get("/", listener=listener_at(tls, "127.0.0.2"), host="both.example")


@pytest.mark.over("h1", why="it is about a configuration")
@pytest.mark.parametrize("name, port, leads_to", [("two.example", 8081, 8444), ("plain.example", 8080, 8443)])
def test_https_redirect_goes_to_the_port_of_the_host(run, roots, tmp_path, name, port, leads_to):
    pair = make_authority(tmp_path).issue(["two.example", "plain.example"])
    (tmp_path / "monkey.conf").write_text(f"""
[SERVER]
    Listen 8080
    Certificate {pair.certificate} {pair.key}
    RedirectToHTTPS on
[HOST]
    ServerName plain.example
    DocumentRoot all
[HOST]
    ServerName plain.example
    DocumentRoot one
    Listen 8443 tls
[HOST]
    ServerName two.example
    DocumentRoot two
    Listen 8081
    Listen 8444 tls
""")
    explained = run("-c", "monkey.conf", "explain", "GET", f"http://{name}:{port}/").out
    assert f"Location: https://{name}:{leads_to}/" in explained


# ---- Errors ----

ONE = "[HOST]\n    ServerName a\n    DocumentRoot one\n    Listen 8081\n"
MISTAKES = [
    (ONE + "[HOST]\n    ServerName b\n    DocumentRoot two\n    Listen 8081 tls\n", 8,
     r"`8081` is for TLS here and for plain HTTP in \S+monkey.conf:4"),
    ("[SERVER]\n    Listen 8081 http2\n" + ONE, 6, r"`8081` is for plain HTTP here and for HTTP/2 only in \S+:2"),
    (ONE + "[HOST]\n    ServerName A\n    DocumentRoot two\n    Listen 8082\n    Listen 8081\n", 5,
     r"another \[HOST\] already has the ServerName `A`: the one in \S+monkey.conf:1"),
    (ONE + "    Default on\n[HOST]\n    DocumentRoot two\n    Listen 8081\n    Default on\n", 9,
     r"another \[HOST\] is already the default: the one in \S+monkey.conf:1"),
    (ONE + "    Listen 0.0.0.0:8081\n", 5, r"`0.0.0.0:8081` already has a Listen"),
    ("[SERVER]\n    Listen 8080\n" + ONE, 2, r"no \[HOST\] answers at `8080`: each has its own Listen"),
    ("[HOST]\n    DocumentRoot one\n    Listen x\n", 3, r"`x` is not an address to listen on: expected PORT"),
    ("[HOST]\n    DocumentRoot one\n    Listen 8081 fast\n", 3, r"`fast` is not a flag of Listen"),
    (ONE + "[HOST]\n    ServerName b\n    DocumentRoot two\n    Listen 8443 tls\n", 8, "no \\[HOST\\] has a Certificate"),
]


@pytest.mark.over("h1", why="it is about a configuration")
@pytest.mark.parametrize("text, line, message", MISTAKES)
def test_listener_invalid_configuration_is_rejected(run, roots, tmp_path, text, line, message):
    (tmp_path / "monkey.conf").write_text(text)
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 3 and re.search(rf"monkey\.conf:{line}(:\d+)?: error: {message}", done.err), done.err
    assert done.err.count("error:") == 1


@pytest.mark.over("h1", why="it is about a configuration")
def test_listeners_may_have_hosts_with_equal_names_and_defaults(run, roots, tmp_path):
    second = ONE.replace("8081", "8082").replace("one", "two")
    (tmp_path / "monkey.conf").write_text(ONE + "    Default on\n" + second + "    Default on\n")
    done = run("-t", "-c", "monkey.conf")
    assert (done.code, done.err) == (0, "")
    assert "2 addresses" in done.out


@pytest.mark.over("h1", why="it is about a configuration")
def test_listener_appears_in_printed_config_and_explain(run, roots, tmp_path):
    second = ONE.replace("8081", "127.0.0.1:8082").replace("one", "two")
    (tmp_path / "monkey.conf").write_text(ONE + second)
    printed = run("-T", "-c", "monkey.conf")
    server, first, *_ = printed.out.split("[HOST]")
    assert not re.search("^ +Listen", server, re.MULTILINE) and re.search(r"^    Listen +0\.0\.0\.0:8081$", first, re.MULTILINE)
    for port, root in (("8081", "one"), ("8082", "two")):
        explained = run("-c", "monkey.conf", "explain", "GET", f"http://a:{port}/").out
        assert re.search(rf"^listener +\S+:{port}$", explained, re.MULTILINE) and f"/{root}/index.html" in explained
    override = run("-T", "-c", "monkey.conf", "-p", "8090")
    assert override.code == 3 and "another [HOST] already has the ServerName `a`" in override.err
