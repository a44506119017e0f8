# SPDX-License-Identifier: Apache-2.0
"""The rewrite plugin: redirects and rewrites, and attempts by clients to abuse them."""
import random
import re
import subprocess
import time
from urllib.parse import urljoin, urlsplit

import pytest

import regexes
from monkey import PROGRAM, ROOT

regex = pytest.mark.skipif(not regexes.ARE_THERE, reason="built without PCRE2")


@pytest.fixture
def start(monkey, site):
    """`start(rules)` starts a server whose host has these rules."""
    for name in ("index.html", "new/index.html", "new/a.txt", "files/x.jpg", "a b.txt", "user.php", "ümlaut.txt"):
        site.add(name, name)

    def run(rules, sections="", **how):
        return monkey(plugins=["rewrite"], sections="[REWRITE]\n" + "".join(f"    {r}\n" for r in rules) + sections, **how)

    return run


def location(server, target, **how):
    reply = server.get(target, **how)
    assert 300 < reply.status < 400, reply.head
    return reply["Location"]


# ---- Redirects ----


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_prefix_keeps_rest_of_path(start, status):
    server = start([f"Redirect {status} prefix /old /new"])
    for target, to in (("/old", "/new"), ("/old/", "/new/"), ("/old/a/b.txt", "/new/a/b.txt"), ("/old?q=1", "/new?q=1"),
                       ("/old/x?", "/new/x?"), ("/%6fld/a%20b", "/new/a%20b")):
        reply = server.get(target)
        assert (reply.status, reply["Location"]) == (status, to)
    assert server.get("/older").status == 404
    assert server.get("/new/old").status == 404
    assert server.get("/old", method="HEAD").status == status
    assert server.get("/old", method="POST", body=b"x").status == status


@pytest.mark.parametrize("rule,target,to", [
    ("prefix /old/ /new/", "/old/a", "/new/a"),
    ("prefix /old /new/", "/old/a", "/new/a"),
    ("prefix /old /", "/old/a", "/a"),
    ("prefix /old /", "/old", "/"),
    ("prefix / https://example.org", "/", "https://example.org/"),
    ("prefix / https://example.org", "/a/b?c", "https://example.org/a/b?c"),
    ("prefix / https://example.org:8443/x/", "/a", "https://example.org:8443/x/a"),
    ("prefix /old https://example.org?from=old", "/old/a?b", "https://example.org/a?from=old&b"),
    ("prefix /old /new?path=$1", "/old/a&b=c", "/new?path=/a%26b%3Dc"),
    ("prefix /old /new?path=$1&x", "/old/a?q", "/new?path=/a&x&q"),
    ("prefix /old /new#part", "/old/a?q", "/new/a?q#part"),
    ("prefix /old /new?a=1#part", "/old/a?q", "/new/a?a=1&q#part"),
    ("prefix /old /new !query", "/old/a?q", "/new/a"),
    ("prefix /old /new?a !query", "/old/a?q", "/new/a?a"),
    ("prefix /old /new?", "/old?q", "/new?q"),
    ("prefix /old /$$1", "/old/a", "/$1/a"),
    ("prefix /OLD /new nocase", "/oLd/A", "/new/A"),
    ("glob *.htm $1.html", "/a/b.htm", None),
    ("glob *.htm /x$1.html", "/a/b.htm", "/x/a/b.html"),
    ("glob /img/*.jpeg /img/$1.jpg", "/img/a/b.jpeg", "/img/a/b.jpg"),
    ("glob /*/to/* /$2/from/$1", "/a/b/to/c/to/d", "/c/to/d/from/a/b"),
    ("glob /?/* /$1", "/a/b", "/b"),
    ("glob /a*b*c /$1-$2", "/aXbYbZc", "/X-YbZ"),
    ("glob /*/x /$1", "/%C3%BC/x", "/%C3%BC"),
    ("glob /A/* /$1 nocase", "/a/B", "/B"),
    ("prefix /old /new", "/old/list;jsessionid=1", "/new/list;jsessionid=1"),
    ("prefix /old /new", "/old/wiki/Special:Search", "/new/wiki/Special:Search"),
    ("prefix /npm /", "/npm/@scope/x", "/@scope/x"),
    ("prefix /old https://example.org", "/old/!$&'()*+,;=:@-._~", "https://example.org/!$&'()*+,;=:@-._~"),
    ("prefix /old /new", "/old/%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40", "/new/%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40"),
    ("prefix /old /new", "/old/;%3B;%3b", "/new/;%3B;%3B"),
    ("prefix /old /new", "/x/../old//%3B/./;", "/new/%3B/;"),
    ("glob /a/*/b/* /$2/$1", "/a/%40x/b/@y", "/@y/%40x"),
    ("prefix /old /new", "/old/%7E%2D%61", "/new/~-a"),
    ("prefix /old /new", "/old/%5B%7C%22%09%20", "/new/%5B%7C%22%09%20"),
    ("prefix /old /new?to=$1", "/old/a;b=c@d", "/new?to=/a%3Bb%3Dc%40d"),
])
def test_redirect_builds_location_from_path(start, monkey, rule, target, to):
    if to is None:
        server = start([f"Redirect 301 {rule}"], expect_start=False)
        server.exit_code = 3
        server.wait()
        assert "expected a path or a URL" in server.err.text
        return
    assert location(start([f"Redirect 301 {rule}"]), target) == to


@regex
@pytest.mark.parametrize("rule,target,to", [
    (r"^/u/(\d+)$ /user.php?id=$1", "/u/42", "/user.php?id=42"),
    (r"^/u/(\d+)$ /user.php?id=$1", "/u/42?a=b", "/user.php?id=42&a=b"),
    (r"^/u/(\d+)$ /user.php?id=$1", "/u/4%0A", None),
    (r"^/u/(\d+)$ /user.php?id=$1", "/u/x", None),
    (r"^/(?<year>\d{4})/(?<name>[^/]+)$ /$name/$${year}s", "/2026/a%20b", "/a%20b/2026s"),
    (r"^/(a)?(b)/ /x-$1-$2", "/b/", "/x--b"),
    (r"/(.*)\.php$ /$1", "/a/b.php", "/a/b"),
    (r"^/(.*)$ /q?u=$1", "/a%26b=c%3Fd%23e%25f+g", "/q?u=a%26b%3Dc%3Fd%23e%25f%2Bg"),
    (r"^/x(.)y$ /$1", "/x%0Ay", "/%0A"),
    (r"^/ABC /x nocase", "/abcd", "/x"),
    (r'"^/a (\w+)$" /x/$1', "/a%20b", "/x/b"),
    (r"^/(.)(.)(.)(.)(.)(.)(.)(.)(.)$ /$9$8$7$6$5$4$3$2$1", "/123456789", "/987654321"),
    (r"^(/(?:a|b))\K.* /k", "/a/rest", "/k"),
])
def test_redirect_regex_builds_location_from_captures(start, rule, target, to):
    server = start([f"Redirect 302 regex {rule}"])
    if to is None:
        assert server.get(target).status == 404
    else:
        assert location(server, target) == to


def test_redirect_host_variable_is_that_of_the_request(start):
    server = start(["Redirect 308 prefix / https://$host:8443"])
    assert location(server, "/a?b", fields={"Host": "Example.org:80"}).lower() == "https://example.org:8443/a?b"
    assert location(server, "/a", fields={"Host": "[::1]:80"}) == "https://[::1]:8443/a"
    assert server.send(b"GET / HTTP/1.0\r\n\r\n").status == 200, "the host is unknown"
    reply = server.send(b"GET http://other.example/x HTTP/1.1\r\nHost: a\r\n\r\n")
    assert reply["Location"] == "https://other.example:8443/x"


def test_redirect_host_variable_defaults_to_server_name(start):
    server = start(["Redirect 308 prefix / https://$host"], host="ServerName example.org")
    assert server.send(b"GET /a HTTP/1.0\r\n\r\n")["Location"] == "https://example.org/a"


# ---- Abuse by clients ----


HOSTILE = ["/go//evil.example", "/go/%2Fevil.example", "/go/%2f%2fevil.example/", "/go/%5Cevil.example", "/go/%5c%5cevil.example",
           "/go/.evil.example", "/go/@evil.example", "/go/%40evil.example", "/go/:80@evil.example", "/go/..%2Fevil.example",
           "/go/http://evil.example", "/go/http:%2f%2fevil.example", "/go/%0d%0aLocation:%20//evil.example",
           "/go/%0D%0A%0D%0A<script>", "/go/%09//evil.example", "/go/;//evil.example", "/go/%E2%80%AE", "/go/%ff%fe",
           "/go/%22%3E%3Cscript%3E", "/go/?/../../evil", "/go/%23//evil.example", "/go/%3F@evil.example", "/go/evil.example",
           "/go.evil.example", "/go%2Eevil.example", "/go@evil.example", "/go:80", "/go%2f%2fevil.example", "/go///evil.example",
           "/go/%252F%252Fevil.example"]

OPEN = ["glob /go* $T$1", "glob /go*/* $T$1/$2", "prefix /go $T", "prefix /go $T/$1", "glob /*o* $T/$1$2", "glob /go/* $T$1"]
OPEN_REGEX = [r"regex ^/go(.*)$ $T$1", r"regex ^/go(/?)(.*)$ $T$1$2", r"regex ^/go(/?)(.*)$ $T/$1/$2",
              r"regex ^/go[/.]?([^/]*)/?(.*)$ $T/$1/$2", r"regex ^/(go)?/*(.*)$ $T/$2", r"regex ^/go(.*)$ $T?to=$1"]


@pytest.mark.parametrize("to", ["/", "https://good.example", "https://good.example/"])
@pytest.mark.parametrize("rule", OPEN + [pytest.param(r, marks=regex) for r in OPEN_REGEX])
def test_redirect_never_leads_to_host_chosen_by_client(start, rule, to):
    if to == "/":
        rule = rule.replace("$T/", "$T")
    server = start(["Redirect 302 " + rule.replace("$T", to)])
    count = 0
    for target in HOSTILE:
        reply = server.get(target)
        if not 300 < reply.status < 400:
            assert reply.status in (400, 403, 404), reply.head
            continue
        count += 1
        url = reply["Location"]
        assert re.fullmatch(r"[\x21-\x7e]+", url) and not re.search(r'["<>\\]', url), url
        host = urlsplit(urljoin("http://here.example/x/y", url)).netloc
        assert host == ("here.example" if to == "/" else "good.example"), url
    assert count > 5


CONTROLS = [*range(1, 0x21), 0x7f]  # browsers remove some of these characters anywhere in a URL


@pytest.mark.parametrize("rule, to", [
    ("prefix /old /new", "/new/{0}/{0}x"), ("prefix /old https://good.example", "https://good.example/{0}/{0}x"),
    ("glob /old/*/*x /$1$2", "/{0}{0}"), ("prefix /old /new?to=$1", "/new?to=/{0}/{0}x"), ("glob /old/*/* /new#$2", "/new#{0}x"),
    pytest.param(r"regex ^/old/(.*)/(.*)$ /$1/$2", "/{0}/{0}x", marks=regex)])
def test_redirect_escapes_control_characters(start, rule, to):
    server = start([f"Redirect 302 {rule}"])
    with server.connect() as c:
        for byte in CONTROLS:
            escape = f"%{byte:02X}"
            reply = c.get(f"/old/{escape}/{escape.lower()}x")
            assert (reply.status, reply["Location"]) == (302, to.format(escape))


BITS = ["/", "//", "%2F", "%2f", "%5C", "..", ".", "evil.example", "@", ":", "go", "%0D%0A", "?", "%09", "x", "%20", "%23", "%3F",
        "%25", "%00", ";", "http:", "%E2%80%8B", "%ff"]


@pytest.mark.parametrize("seed", range(4))
def test_redirect_survives_random_targets(start, seed):
    chance = random.Random(seed)
    rules = ["Redirect 302 glob /a*.* /$1/$2", "Redirect 302 prefix /b /", "Redirect 302 glob /c*/* https://good.example$2",
             "Redirect 302 glob /d*x* /$2$1"]
    server, sent = start(rules), 0
    c = server.connect()
    for _ in range(400):
        reply = c.get("/" + chance.choice("abcd") + "".join(chance.choices(BITS, k=chance.randrange(8))))
        if reply.closes:
            c.close()
            c = server.connect()
        if reply.status == 302:
            sent += 1
            url = urljoin("http://here.example/x/y", reply["Location"])
            assert urlsplit(url).netloc in ("here.example", "good.example") and "\\" not in url, url
    c.close()
    assert sent > 50


def test_redirect_passes_query_unchanged(start):
    server = start(["Redirect 302 prefix /a /b"])
    assert location(server, "/a?x=%0d%0aA:b&y=//evil") == "/b?x=%0d%0aA:b&y=//evil"
    assert server.send(b"GET /a?x=\r\nA: b HTTP/1.1\r\nHost: x\r\n\r\n").status == 400


def test_redirect_keeps_encoded_slashes(start):
    server = start(["Redirect 302 glob /a/* /b/$1"])
    assert location(server, "/a/x%2Fy") == "/b/x%2Fy"
    assert location(server, "/a/x%252Fy") == "/b/x%252Fy"
    assert location(server, "/a/x%25%32%46y") == "/b/x%252Fy"


# ---- Rewrites ----


def test_rewrite_changes_the_path(start):
    server = start(["Rewrite prefix /old /new", "Rewrite glob /pictures/*.jpeg /files/$1.jpg", "Rewrite prefix /blank \"/a%20b.txt\"",
                    "Rewrite glob /u/* /%C3%BC$1"])
    for target, text in (("/old/a.txt", "new/a.txt"), ("/old/", "new/index.html"), ("/pictures/x.jpeg", "files/x.jpg"),
                         ("/blank", "a b.txt"), ("/u/mlaut.txt", "ümlaut.txt"), ("/new/a.txt", "new/a.txt")):
        reply = server.get(target)
        assert (reply.status, reply.text) == (200, text)
    assert server.get("/older").status == 404


def test_rewrite_runs_before_routes(start):
    server = start(["Rewrite prefix /a /b"], "[ROUTES]\n    /a status 403\n    /b status 451\n")
    assert server.get("/a").status == 451


def test_rewrite_rules_apply_in_order_and_restart(start):
    server = start(["Rewrite prefix /one /two", "Rewrite prefix /one /wrong", "Rewrite prefix /three /new/a.txt",
                    "Rewrite prefix /two /three", "Redirect 302 prefix /four /five", "Rewrite prefix /six /four"])
    assert server.get("/one").text == "new/a.txt"
    assert location(server, "/six") == "/five"


def test_rewrite_last_ends_the_rules(start):
    server = start(["Rewrite prefix /one /two last", "Redirect 302 prefix /two /three"])
    assert server.get("/one").status == 404
    assert location(server, "/two") == "/three"


def test_rewrite_loop_gets_500_and_is_logged(start):
    server = start(["Rewrite prefix /a /b", "Rewrite prefix /b /a", "Rewrite prefix /grow /grow/x"])
    assert server.get("/a").status == 500
    assert server.get("/grow").status == 500
    server.err.wait_for(r"/a was rewritten more than 10 times: 500")
    server.err.wait_for(r"/grow was rewritten more than 10 times: 500")
    assert server.get("/new/a.txt").status == 200


def test_rewrite_rule_without_change_ends_the_rules(start):
    """A rule that maps every path to one script needs no exception for it: if a rule changes nothing, no later rule runs."""
    server = start(["Rewrite glob /* /new/a.txt", "Redirect 302 prefix / /never"])
    for target in ("/", "/anything", "/new/a.txt", "/x?q=1", "/new/a.txt?q"):
        assert server.get(target).text == "new/a.txt"


@regex
def test_rewrite_capture_of_everything_needs_last(start):
    assert start([r"Rewrite regex ^/(.*)$ /new/a.txt?path=$1 last"]).get("/anything").text == "new/a.txt"
    assert start([r"Rewrite regex ^/(.*)$ /new/a.txt?path=$1"]).get("/anything").status == 500


def test_rewrite_never_leaves_document_root(start, site):
    (site.path.parent / "secret.txt").write_text("secret")
    server = start(["Rewrite glob /f/* /files/$1", "Rewrite glob /g* /files$1"])
    for target in ("/f/../../secret.txt", "/f/..%2F..%2Fsecret.txt", "/f/%2e%2e/%2e%2e/secret.txt", "/f/%252e%252e/secret.txt",
                   "/g/..%2f../secret.txt", "/f/..%5C..%5Csecret.txt", "/g%2f..%2f..%2fsecret.txt", "/f/.%00./secret.txt"):
        reply = server.get(target)
        assert reply.status in (400, 403, 404) and "secret" not in reply.text.replace("secret.txt", ""), target


def test_rewrite_replaces_or_extends_query(start):
    """A rule that applies in the second round shows the query that the first round left."""
    server = start(["Rewrite prefix /a /b?one=1", "Rewrite prefix /c /b?one=1 !query", "Rewrite prefix /d /b !query",
                    "When query one=1&two=2", "Redirect 302 prefix /b /both !query",
                    "When query one=1", "Redirect 302 prefix /b /only !query",
                    "When query \"\"", "Redirect 302 prefix /b /nothing"])
    assert location(server, "/a?two=2") == "/both"
    assert location(server, "/a") == "/only"
    assert location(server, "/c?two=2") == "/only"
    assert location(server, "/d?two=2") == "/nothing"


def test_rewrite_ignores_options_asterisk(start):
    server = start(["Rewrite glob * /new/a.txt", "Redirect 302 prefix / /x"])
    reply = server.get("*", method="OPTIONS")
    assert reply.status in (200, 204) and "Location" not in reply


# ---- Conditions ----


def test_rewrite_condition_host_selects_requests(start):
    server = start(["When host www.example.org *.example.net", "Redirect 301 prefix / https://example.org", "When !host *.test",
                    "Redirect 302 prefix /x /not-test"])
    assert location(server, "/a", fields={"Host": "WWW.example.org:8080"}) == "https://example.org/a"
    assert location(server, "/a", fields={"Host": "b.example.net"}) == "https://example.org/a"
    assert location(server, "/x", fields={"Host": "example.net"}) == "/not-test"
    assert server.get("/x", fields={"Host": "a.test"}).status == 404


def test_rewrite_conditions_method_and_scheme_select_requests(start):
    server = start(["When method GET HEAD", "When scheme http", "Redirect 302 prefix /a /get", "When method POST",
                    "Redirect 303 prefix /a /post", "When scheme https", "Redirect 302 prefix /b /tls", "When !scheme https",
                    "Redirect 302 prefix /b /plain"])
    assert location(server, "/a") == "/get" and location(server, "/a", method="HEAD") == "/get"
    assert location(server, "/a", method="POST", body=b"x") == "/post"
    assert server.get("/a", method="PUT", body=b"x").status in (404, 405)
    assert location(server, "/b") == "/plain"


def test_rewrite_condition_query_selects_requests(start):
    server = start(["When query *id=7*", "When !query *debug*", "Redirect 302 prefix /a /seven"])
    assert location(server, "/a?id=7&x") == "/seven?id=7&x"
    assert server.get("/a?id=7&debug").status == 404 and server.get("/a?id=8").status == 404 and server.get("/a").status == 404


def test_rewrite_condition_file_selects_existing_files(start):
    """Existing files are served; all other paths go to one script."""
    server = start(["When !file", "Rewrite prefix / /user.php !query last", "When file", "Redirect 302 glob *.jpg /there"])
    assert server.get("/new/a.txt").text == "new/a.txt"
    assert server.get("/new/").text == "new/index.html"
    assert location(server, "/files/x.jpg") == "/there"
    for target in ("/none", "/a/b/c?d", "/files/none.jpg", "/%2Fetc/passwd"):
        assert server.get(target).status in (200, 404)
    assert server.get("/none").status == start(["Rewrite prefix /none /user.php/none"]).get("/none").status


def test_rewrite_condition_applies_to_one_rule(start):
    server = start(["When host never.example", "Redirect 302 prefix /a /one", "Redirect 302 prefix /a /two"])
    assert location(server, "/a") == "/two"


# ---- Hosts ----


def test_rewrite_rules_of_host_replace_global_rules(monkey, site):
    site.add("index.html", "hello")
    server = monkey(plugins=["rewrite"], root=None, top="[REWRITE]\n    Redirect 302 glob /a* /all\n", sections=f"""
[HOST]
    ServerName one.example
    DocumentRoot {site}
[HOST]
    ServerName two.example
    DocumentRoot {site}
[REWRITE]
    Redirect 302 glob /b* /two
""")
    assert location(server, "/a", fields={"Host": "one.example"}) == "/all"
    assert server.get("/a", fields={"Host": "two.example"}).status == 404
    assert location(server, "/b", fields={"Host": "two.example"}) == "/two"


@regex
def test_rewrite_global_rules_survive_reloads_with_many_hosts(monkey, site):
    site.add("index.html", "hello")
    hosts = "".join(f"[HOST]\n    ServerName h{i}.example\n    DocumentRoot {site}\n" for i in range(20))
    server = monkey(plugins=["rewrite"], root=None, sections=hosts,
                    top="[REWRITE]\n    Redirect 302 regex ^/a(.*)$ /all$1\n    Rewrite regex ^/b$ /\n")
    for round_ in range(1, 4):
        assert location(server, "/a1", fields={"Host": f"h{round_}.example"}) == "/all1"
        assert server.get("/b", fields={"Host": f"h{round_}.example"}).text == "hello"
        server.tell(1)
        server.err.wait_for("the new configuration serves", count=round_)


# ---- Expensive patterns ----


@regex
def test_rewrite_catastrophic_regex_is_stopped(start):
    server = start([r"Redirect 302 regex ^/(a+)+$ /bad", r"Redirect 302 regex ^/(?:(x+x+)+y|([a-z]*)*\d) /worse", "Redirect 302 prefix /aaa /not-reached"])
    evil = "/" + "a" * 3000 + "!"
    with server.connect() as c:
        began = time.monotonic()
        for _ in range(20):
            assert c.get(evil).status == 404
        assert c.get("/" + "x" * 4000).status == 404
        assert time.monotonic() - began < 10
        assert c.get("/aaaa")["Location"] == "/bad"
    server.err.wait_for(r"Redirect 302 regex \^/\(a\+\)\+\$ /bad does not match: the regular expression exceeded its step or memory limit")
    assert len(re.findall("does not match: ", server.err.text)) < 15, "at most once a second"


@regex
def test_rewrite_deep_recursion_is_stopped(start):
    server = start([r"Redirect 302 regex ^/(\((?:[^()]|(?1))*\))$ /balanced"])
    assert location(server, "/((()))") == "/balanced"
    assert server.get("/" + "(" * 3000 + ")" * 3000).status in (302, 404)
    assert server.get("/" + "(" * 3500).status == 404
    assert server.get("/").status == 200


def test_rewrite_glob_with_many_stars_is_fast(start):
    server = start(["Redirect 302 glob " + "/a*" * 30 + "b /x", "Redirect 302 glob /" + "*" * 31 + "z /y"])
    began = time.monotonic()
    for _ in range(20):
        assert server.get("/a" * 1500 + "/c").status == 404
    assert location(server, "/" + "q" * 3000 + "z") == "/y"
    assert time.monotonic() - began < 10


# ---- Invalid configuration ----

MISTAKES = [
    ("Redirect", "`Redirect` has no value"),
    ("Redirect 301", "expected prefix, glob or regex at the end"),
    ("Redirect 301 prefix", "expected a pattern at the end"),
    ("Redirect 301 prefix /a", "expected a target at the end"),
    ("Redirect 200 prefix /a /b", "expected 301, 302, 303, 307 or 308, not `200`"),
    ("Redirect permanent prefix /a /b", "not `permanent`"),
    ("Redirect 301 perfix /a /b", "expected prefix, glob or regex, not `perfix`"),
    ("Redirect 301 prefix a /b", "a prefix begins with `/`"),
    ("Redirect 301 glob a* /b", "a glob begins with `/` or `*`"),
    ("Redirect 301 prefix /a b", "expected a path or a URL"),
    ("Redirect 301 prefix /a //evil.example/", "expected a path or a URL"),
    ("Redirect 301 prefix /a ftp://x/", "expected a path or a URL"),
    ("Redirect 301 prefix /a $1", "expected a path or a URL"),
    ("Redirect 301 prefix /a https://", "expected the name of a host"),
    ("Redirect 301 prefix /a https:///x", "expected the name of a host"),
    ("Redirect 301 glob /a/* https://$1/", "no capture may become a part of it"),
    ("Redirect 301 glob /a/* https://$1.example.org/", "no capture may become a part of it"),
    ("Redirect 301 prefix /a https://user@host/", "expected the name of a host"),
    ("Redirect 301 prefix /a https://$hostname/", "expected `$host`"),
    ("Redirect 301 glob /a/* /$2", "`$2`: the pattern has 1 captures"),
    ("Redirect 301 prefix /a /$x", "unknown capture `x`"),
    ("Redirect 301 prefix /a /b$", "expected a digit or a name after `$`"),
    ("Redirect 301 prefix /a /b\\c", "this character is not allowed in a URL"),
    ('Redirect 301 prefix /a "/b c"', "this character is not allowed in a URL"),
    ("Redirect 301 prefix /a /ü", "this character is not allowed in a URL"),
    ("Redirect 301 prefix /a /%zz", "expected two hexadecimal digits"),
    ("Redirect 301 prefix /a /b#c#d", "there is a fragment (`#`) already"),
    ("Redirect 301 prefix /a /b last", "expected !query or nocase, not `last`"),
    ("Redirect 301 prefix /a /b nocase query", "not `query`"),
    ("Redirect 301 prefix /a " + "/$1" * 40, "too many parts"),
    ("Rewrite prefix /a /b stop", "expected !query, nocase or last, not `stop`"),
    ("Rewrite prefix /a https://x/", "invalid target of a rewrite"),
    ("Rewrite prefix /a /b#c", "fragment (`#`) in a rewrite: only redirects can have one"),
    ("Rewrit prefix /a /b", "expected Redirect, Rewrite or When, not `Rewrit`"),
    ("When host x", "condition without a rule after it"),
    ("When color red\n    Redirect 301 prefix /a /b", "`color` is not a condition: expected one of path, contains, from, method"),
    ("When host\n    Redirect 301 prefix /a /b", "`host` is without a value"),
    ("When scheme ftp\n    Redirect 301 prefix /a /b", "`ftp` is not a scheme: expected http or https"),
    ("When method G(T\n    Redirect 301 prefix /a /b", "`G(T` is not a method"),
    ("When file x\n    Redirect 301 prefix /a /b", "`x` is one word too many"),
    ('Redirect 301 prefix "/a /b', "quote"),
]

REGEX_MISTAKES = [
    ("Redirect 301 regex ^/(a /b", "missing closing parenthesis"),
    ("Redirect 301 regex ^/[a /b", "missing terminating ]"),
    ("Redirect 301 regex (*UTF)^/a /b", "using UTF is disabled"),
    ("Redirect 301 regex ^/a /$1", "`$1`: the pattern has 0 captures"),
    ("Redirect 301 regex ^/(?<n>a) /$m", "unknown capture `m`"),
    ("Rewrite regex ^/(.*) $1", "expected a path"),
]


@pytest.mark.parametrize("line,message", MISTAKES + [pytest.param(*m, marks=regex) for m in REGEX_MISTAKES])
def test_rewrite_invalid_configuration_is_rejected_with_location(start, line, message):
    server = start(line.split("\n    "), expect_start=False)
    server.exit_code = 3
    server.wait()
    assert message in server.err.text, server.err.text
    assert re.search(r"monkey\.conf:\d+:\d+: error: ", server.err.text)


def test_rewrite_shipped_config_loads(monkey, site):
    site.add("index.html", "hello")
    server = monkey(plugins=["rewrite"], top=f"@INCLUDE {ROOT}/plugins/rewrite/rewrite.conf\n")
    assert server.get("/").text == "hello"


@regex
def test_rewrite_shipped_config_examples_are_valid(monkey, tmp_path):
    text = (ROOT / "plugins/rewrite/rewrite.conf").read_text()
    (tmp_path / "on.conf").write_text(re.sub(r"^    # (Redirect|Rewrite|When) ", r"    \1 ", text, flags=re.MULTILINE)
                                      .replace("glob *.htm $1.html", "glob *.htm /$1.html"))
    assert "glob *.htm $1.html" not in text, "an invalid example"
    monkey(plugins=["rewrite"], top="@INCLUDE on.conf\n")


@regex
def test_rewrite_printed_config_loads_again(start, tmp_path):
    rules = [r"When !host a.example", r"Redirect 301 regex ^/(?<n>\d+)$ /$${n}", "Rewrite prefix /a /b last"]
    server = start(rules)
    text = subprocess.run([PROGRAM, "-T", "-c", server.config], capture_output=True, text=True, check=True).stdout
    assert "\n".join("    " + rule for rule in rules) in text
    (tmp_path / "again.conf").write_text(text)
    more = subprocess.run([PROGRAM, "-T", "-c", tmp_path / "again.conf"], capture_output=True, text=True, check=True).stdout
    assert more == text


# ---- Explain ----


def explain(server, url, method="GET"):
    done = subprocess.run([PROGRAM, "-c", server.config, "explain", method, url], capture_output=True, text=True, check=False)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done.stdout


def test_rewrite_steps_appear_in_explain(start):
    server = start(["Rewrite glob /old/* /new/$1", "Redirect 301 prefix /gone /new"])
    text = explain(server, f"{server.url}/old/a.txt?q")
    assert re.search(r"rewrite +Rewrite glob /old/\* /new/\$1: /new/a\.txt\?q", text), text
    assert re.search(r"site/new/a\.txt, 9 bytes", text), text
    text = explain(server, f"{server.url}/gone/x")
    assert re.search(r"rewrite +Redirect 301 prefix /gone /new: /new/x", text) and "301" in text, text
    assert not re.search("^rewrite ", explain(server, f"{server.url}/new/a.txt"), re.MULTILINE)


@regex
def test_rewrite_regex_over_limit_appears_in_explain(start):
    server = start([r"Redirect 302 regex ^/(a+)+$ /bad"])
    assert "the regular expression exceeded its step or memory limit" in explain(server, f"{server.url}/{'a' * 3000}!")
