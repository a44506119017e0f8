# SPDX-License-Identifier: Apache-2.0
"""Regular expressions in [ROUTES]."""
import os
import re
import subprocess
import time

import pytest

import regexes
import users
from monkey import ENVIRONMENT, PROGRAM

regex = pytest.mark.skipif(not regexes.ARE_THERE, reason="built without PCRE2")


def routes(*lines):
    return "[ROUTES]\n" + "".join(f"    {line}\n" for line in lines)


def explain(server, target):
    done = subprocess.run([PROGRAM, "-c", server.config, "explain", "GET", f"{server.url}{target}"], capture_output=True, text=True,
                          check=False, env=os.environ | ENVIRONMENT)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done.stdout


@regex
def test_route_first_matching_regex_wins(monkey, site):
    site.add("a/1.txt", "one")
    site.add("a/x.txt", "x")
    server = monkey(sections=routes(r"~ ^/a/\d+\.txt$  status 410", r"~\.(?:php|pl)$  status 403", r"~ (?i)secret  status 401",
                                    "/b/*  status 402", r"~ ^/b/  status 400", r"~ \x20  status 409", "/*  static"))
    for target, status in {
        "/a/1.txt": 410, "/a/12.txt": 410, "/a/x.txt": 200, "/x.php": 403, "/x.php/": 404, "/x.pl": 403, "/x.PHP": 404,
        "/a/Secret/x": 401, "/b/x": 402, "/a%20b": 409, "/a+b": 404,
        # decoded and normalized, without the query
        "/a/./1.txt": 410, "/a//1.txt": 410, "/x/../a/1.txt": 410, "/a/%31.txt": 410, "/x.ph%70?y": 403, "/y?x.php": 404,
        "/x.php%00": 400, "/x.php%0a": 404,
    }.items():
        assert server.get(target).status == status, target


@regex
def test_route_regex_falls_through_on_method_or_declining_handler(monkey, site):
    site.add("a.txt", "file")
    server = monkey(sections=routes(r"~ ^/a  static", r"~ ^/form$  redirect 303 /a.txt", r"~ .  status 410"))
    assert server.get("/a.txt").text == "file"
    assert server.get("/form", "POST", body=b"x=y").status == 303
    assert server.get("/ab").status == 410


@regex
def test_route_regex_never_sends_script_source(monkey, site):
    """The routes also apply to index files, to error pages and to the Fallback."""
    for name in ("index.php", "404.php", "app.php"):
        site.add(name, "<?php source ?>")
    server = monkey(host="Index index.php\nFallback app.php",
                    sections=routes(r"~ \.php$  status 403", "/*  static") + "[ERROR_PAGES]\n    404 404.php\n")
    for target in ("/", "/index.php", "/none", "/none.txt", "/none.php"):
        assert "source" not in server.get(target).text, target


@regex
def test_auth_and_alias_apply_to_the_path_that_routes_match(monkey, site, tmp_path):
    users.add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    site.add("files/a.txt", "file")
    site.add("files/secret.txt", "secret")
    server = monkey(plugins=["auth"], host="Alias /docs/ site/files",
                    sections=routes(r"~ ^/docs/[a-z]+\.txt$  static", "/*  status 404")
                    + "[AUTH]\n    Location /docs/secret.txt\n    UserFile users\n")
    assert server.get("/docs/a.txt").text == "file"
    assert server.get("/docs/1.txt").status == 404
    for target in ("/docs/secret.txt", "/docs/%73ecret.txt", "//docs/./secret.txt"):
        assert server.get(target).status == 401
    assert users.get(server, "ana", "secret", target="/docs/secret.txt").text == "secret"


@regex
def test_route_regex_applies_to_rewritten_path(monkey, site):
    site.add("a.txt", "file")
    server = monkey(plugins=["rewrite"], sections=routes(r"~ ^/private/  status 403", "/*  static") + r"""
[REWRITE]
    Rewrite regex ^/u/(.*)$ /private/$1
    Rewrite prefix /private/x /a.txt
""")
    assert server.get("/private/y").status == 403
    assert server.get("/u/y").status == 403
    assert server.get("/u/x").text == "file"


# Regex match limits

EVIL = "/" + "a" * 3000 + "!"


@regex
@pytest.mark.parametrize("pattern", ["^/(a+)+$", "(a+)+$", "(?:a|aa)+$"])
def test_route_regex_over_limit_never_falls_through(monkey, site, pattern):
    site.add("a.txt", "file")
    server = monkey(sections=routes(f"~ {pattern}  status 403", "/*  status 200 below"))
    assert server.get("/aaa").status == 403
    assert server.get("/b.txt").text == "below"
    began = time.monotonic()
    for _ in range(20):
        reply = server.get(EVIL)
        assert (reply.status, "below" in reply.text) == (500, False)
    assert time.monotonic() - began < 10
    assert server.get("/b.txt").text == "below"
    server.err.wait_for(re.escape(f"matching the route ~ {pattern} took too many steps or too much memory: 500"))
    assert server.err.text.count("took too many steps") < 15, "at most once a second"
    text = explain(server, EVIL)
    assert f"route     ~ {pattern}  exceeded its limits" in text and "500 Internal" in text


@regex
@pytest.mark.parametrize("pattern", [r"/files.*\.php$", r"files/[^.]*\.php", r"^/files/.*\.php$"])
def test_route_simple_regex_matches_paths_of_any_length(monkey, site, pattern):
    server = monkey(sections=routes(f"~ {pattern}  status 403", "/*  status 200 below"))
    for n in (10, 700, 800, 3000, 7900):
        assert server.get("/files/" + "p" * n).status == 200, n
        assert server.get("/files/" + "p" * n + ".php").status == 403, n


# Configuration

@regex
@pytest.mark.parametrize("line, column, message", [
    (r"~ ^/(a status 403", 7, "`^/(a` is not a regular expression: missing closing parenthesis, at character 5"),
    (r"~* \.php$ status 403", None, "`*` is not a regular expression: quantifier does not follow a repeatable item, at character 1"),
    (r"~ (*UTF)a status 403", 7, "using UTF is disabled by the application"),
    (r"~* \.php$ status 403", None, "hint: to ignore case, write `~ (?i)REGEX`"),
    (r"~ ^/my file$ static", 12, "hint: a blank ends the regular expression: write it as `\\x20`"),
    (r"~ ^/[ab ]x static", 7, "hint: a blank ends the regular expression: write it as `\\x20`"),
    (r"~ ^/a statci", 11, "hint: did you mean `static`?"),
    ("~", None, "`~` has no value: expected PATTERN HANDLER [WORDS...]"),
    ("~ a", 7, "expected `~ REGEX HANDLER [WORDS...]`"),
    ("~ a nonsense", None, "nonsense"),
    ("x status 403", None, "`x` is not a pattern: it must begin with /, * or ~"),
])
def test_route_regex_that_is_invalid_is_rejected(site, tmp_path, run, line, column, message):
    config = tmp_path / "a.conf"
    config.write_text(f"[HOST]\n    DocumentRoot site\n[ROUTES]\n    {line}\n")
    done = run("-t", "-c", config)
    assert done.code == 3 and message in done.err, done.err
    assert f"a.conf:4:{column}: error" in done.err if column else "a.conf:4" in done.err, done.err


@regex
def test_route_regex_survives_printed_config(monkey, tmp_path):
    server = monkey(sections=routes(r"~ ^/(?<n>\d+)$ status 403", r"~\.php$ status 404", "/* static"))
    text = subprocess.run([PROGRAM, "-T", "-c", server.config], capture_output=True, text=True, check=True).stdout
    assert "    ~ ^/(?<n>\\d+)$ status 403\n    ~\\.php$ status 404\n    /* static\n" in re.sub(r"(?<=\S) +(?=\S)", " ", text)
    (tmp_path / "again.conf").write_text(text)
    assert subprocess.run([PROGRAM, "-T", "-c", tmp_path / "again.conf"], capture_output=True, text=True, check=True).stdout == text


@regex
def test_route_regex_appears_in_explain(monkey, site):
    site.add("1.txt", "one")
    server = monkey(sections=routes(r"~ ^/\d+\.txt$  static", r"~\.php$  status 403"))
    assert "route     ~ ^/\\d+\\.txt$  static\n" in explain(server, "/1.txt")
    assert "route     ~ \\.php$  status 403\n" in explain(server, "/x.php")


@regex
def test_route_regex_changes_on_reload(monkey, site):
    site.add("1.txt", "one")
    server = monkey(sections=routes(r"~ ^/\d+\.txt$  status 410", "/*  static"))
    for i in range(1, 4):
        assert server.get("/1.txt").status == 410
        server.tell(1)
        server.err.wait_for("the new configuration serves", count=i)
    server.config.write_text(server.config.read_text().replace(r"~ ^/\d+\.txt$  status 410", r"~ ^/\d+$  status 410"))
    server.tell(1)
    server.err.wait_for("the new configuration serves", count=4)
    assert server.get("/1.txt").text == "one"
