# SPDX-License-Identifier: Apache-2.0
"""Regular expressions in ServerName."""
import os
import subprocess

import pytest

import regexes
from monkey import ENVIRONMENT, PROGRAM

pytestmark = pytest.mark.skipif(not regexes.ARE_THERE, reason="built without PCRE2")

HOSTS = {"first": "first.example", "www": r"~^www\d+\.example\.com$", "late": r"~^www1 ~^late\.", "wild": "*.example.com",
         "exact": "www7.example.com", "mixed": r"plain.example ~^(?:a|b)\.example$ *.mixed.example", "six": r"~^\[::2\]$"}


@pytest.fixture
def hosts(tmp_path):
    for name in HOSTS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(name)
    return "".join(f"[HOST]\n    DocumentRoot {name}\n    ServerName {names}\n" for name, names in HOSTS.items())


@pytest.fixture
def server(monkey, hosts):
    return monkey(root=None, sections=hosts)


def explain(server, url):
    done = subprocess.run([PROGRAM, "-c", server.config, "explain", "GET", url], capture_output=True, text=True, check=False,
                          env=os.environ | ENVIRONMENT)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("host, expected", [
    ("www7.example.com", "exact"), ("www8.example.com", "wild"), ("www8.example.org", "first"), ("www1.example.org", "late"),
    ("www12", "late"), ("late.example", "late"), ("LATE.Example:8080", "late"), ("late.example.", "late"), ("xlate.example", "first"),
    ("a.example", "mixed"), ("B.example:1", "mixed"), ("plain.example", "mixed"), ("x.mixed.example", "mixed"),
    ("c.example", "first"), ("[::2]", "six"), ("[::2]:80", "six"), ("[::3]", "first"), ("w" * 300 + ".example", "first"),
])
def test_host_names_match_exact_then_wildcard_then_regex(server, host, expected):
    assert server.get("/", host=host).text == expected


def test_host_first_matching_regex_wins(monkey, hosts):
    server = monkey(root=None, sections=hosts.replace("*.example.com", "wild.example"))
    assert server.get("/", host="www1.example.com").text == "www"
    assert server.get("/", host="www1.example.org").text == "late"
    assert server.get("/", host="www7.example.com").text == "exact"


def test_host_regex_order_follows_reload(server):
    for i in range(1, 4):
        assert server.get("/", host="late.example").text == "late"
        server.tell(1)
        server.err.wait_for("the new configuration serves", count=i)
    server.config.write_text(server.config.read_text().replace(r"~^late\.", r"~^later\."))
    server.tell(1)
    server.err.wait_for("the new configuration serves", count=4)
    assert server.get("/", host="late.example").text == "first"
    assert server.get("/", host="later.example").text == "late"


def test_host_regex_over_limit_does_not_match(monkey, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(name)
    server = monkey(root=None, sections="[HOST]\n    DocumentRoot one\n[HOST]\n    DocumentRoot two\n    ServerName ~^(a+)+$ ~^a+-$\n")
    assert server.get("/", host="aaa").text == "two"
    assert server.get("/", host="a" * 60 + ".b").text == "one"
    assert server.get("/", host="a" * 60 + "-").text == "two"


def test_host_regex_appears_in_explain(server):
    text = explain(server, "http://late.example/")
    assert r"host      ~^www1 (" in text and r"by the regular expression ~^late\." in text, text
    assert "by its name" in explain(server, "http://www7.example.com/")
    assert "by a name with a wildcard" in explain(server, "http://www8.example.com/")
    assert "no host has this name: the default one" in explain(server, "http://nobody.example/")


def test_host_regex_survives_printed_config(server, tmp_path):
    text = subprocess.run([PROGRAM, "-T", "-c", server.config], capture_output=True, text=True, check=True).stdout
    assert r"~^www1 ~^late\." in text
    (tmp_path / "again.conf").write_text(text)
    assert subprocess.run([PROGRAM, "-T", "-c", tmp_path / "again.conf"], capture_output=True, text=True, check=True).stdout == text


@pytest.mark.parametrize("names, message", [
    ("~^(a", "`^(a` is not a regular expression: missing closing parenthesis, at character 4"),
    ("~^[ab ]$", "hint: a blank ends the regular expression: write it as `\\x20`"),
    ("~", "expected a regular expression after `~`"),
    ("a.example ~[", "`[` is not a regular expression: missing terminating ] for character class, at character 2"),
])
def test_host_regex_that_is_invalid_is_rejected(site, tmp_path, run, names, message):
    config = tmp_path / "a.conf"
    config.write_text(f"[HOST]\n    DocumentRoot site\n    ServerName {names}\n")
    done = run("-t", "-c", config)
    assert done.code == 3 and "a.conf:3:16: error: " in done.err and message in done.err, done.err


def test_host_regex_used_twice_is_rejected(site, tmp_path, run):
    config = tmp_path / "a.conf"
    config.write_text("[HOST]\n    DocumentRoot site\n    ServerName ~^a$\n" * 2)
    done = run("-t", "-c", config)
    assert done.code == 3
    assert "a.conf:4:1: error: another [HOST] already has the ServerName `~^a$`: the one in " in done.err, done.err
    assert "a.conf:1" in done.err


@pytest.mark.over("h1", why="it speaks HTTP/1.0")
def test_host_regex_is_never_used_as_server_name(monkey, site):
    """An HTTP/1.0 request without Host: neither variables nor scripts get the pattern as the server name."""
    site.add("index.html", "x")
    site.add("cgi-bin/name", "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s' \"$SERVER_NAME\"\n", mode=0o755)
    server = monkey(plugins=["headers", "cgi"], host="ServerName ~^a plain.example",
                    sections="[ROUTES]\n    /cgi-bin/* cgi\n    /* static\n[HEADERS]\n    Set X-Name $server_name|$host\n")
    with server.connect() as c:
        c.send(b"GET / HTTP/1.0\r\n\r\n")
        assert c.read("GET")["X-Name"] == "plain.example|plain.example"
    with server.connect() as c:
        c.send(b"GET /cgi-bin/name HTTP/1.0\r\n\r\n")
        assert "~" not in c.read("GET").text
