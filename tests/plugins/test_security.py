# SPDX-License-Identifier: Apache-2.0
"""The security plugin: access rules, and the client address to which they apply."""
import functools
import ipaddress
import random
import re
import signal
import subprocess
import time

import pytest

from monkey import PROGRAM, SECONDS
from security_server import guard, is_refused, status


@pytest.fixture
def guarded(monkey, site):
    return functools.partial(guard, monkey)


# ---- Rules ----


def test_security_without_rules_allows_everything(guarded, site):
    site.add("index.html", "index")
    assert status(guarded()) == 200


def test_security_first_matching_rule_wins(guarded, site):
    for name in ("a.txt", "admin/x.txt", "admin/open/y.txt"):
        site.add(name, "text")
    server = guarded("""
        Allow /admin/open/*
        Deny  /admin/*
        Allow /*
        Deny  *.txt
    """)
    assert status(server, "/a.txt") == 200
    assert status(server, "/admin/open/y.txt") == 200
    assert status(server, "/admin/x.txt") == 403
    assert status(server, "/admin") == 403
    assert status(server, "/admin/") == 403


def test_security_conditions_of_rule_are_combined(guarded, site):
    site.add("admin/x.txt", "text")
    site.add("a.txt", "text")
    server = guarded("""
        Deny /admin/* *.secret from 127.0.0.2 127.0.0.8/29
        Deny method PUT DELETE PROPFIND
        Deny /a.txt not method GET HEAD
    """)
    assert status(server, "/admin/x.txt", "127.0.0.1") == 200
    for source in ("127.0.0.2", "127.0.0.8", "127.0.0.15"):
        assert status(server, "/admin/x.txt", source) == 403
        assert status(server, "/b/c.secret", source) == 403
        assert status(server, "/a.txt", source) == 200
    assert status(server, "/admin/x.txt", "127.0.0.16") == 200
    for method in ("PUT", "DELETE", "PROPFIND"):
        assert status(server, "/admin/x.txt", method=method, body=b"x") == 403
    assert status(server, "/admin/x.txt", method="PATCH", body=b"x") == 405
    assert status(server, "/admin/x.txt", method="SEARCH") == 501
    for method, expected in (("GET", 200), ("HEAD", 200), ("OPTIONS", 403), ("POST", 403), ("SEARCH", 403)):
        assert status(server, "/a.txt", method=method, body=b"x" if method == "POST" else b"") == expected


def test_security_networks_match_client_address(guarded, site):
    site.add("index.html", "index")
    path = site.path.parent / "sock"
    server = guarded("""
        Deny  /* method HEAD from unix:
        Allow from 127.0.0.3 unix:
        Deny  not from 127.0.0.0/30 ::1/128
        Deny  /* from 127.0.0.2
    """, listen=["127.0.0.1:0", "[::1]:0", f"unix:{path}"])
    assert status(server, source="127.0.0.1") == 200
    assert status(server, source="127.0.0.2") == 403
    assert status(server, source="127.0.0.3") == 200
    with server.connect(1) as c:
        assert c.get("/").status == 200
    with server.connect(2) as c:
        assert c.get("/").status == 200
        assert c.get("/", method="HEAD").status == 403


def test_security_rule_order_holds_among_thousands_of_networks(guarded, site):
    """The plugin looks up rules in an index by address, but the result equals that of a linear search for the first match."""
    site.add("a", "text")
    site.add("b", "text")
    rng = random.Random(4711)

    def network():
        bits = rng.choice([8, 16, 24, 28, 30, 32])
        address = ipaddress.ip_address(f"127.0.{rng.randrange(4)}.{rng.randrange(256)}")
        return ipaddress.ip_network(f"{address}/{bits}", strict=False)

    rules = []
    for _ in range(400):
        kind = rng.choice(["from"] * 6 + ["not from", "path", "path from", "method from"])
        rules.append((rng.choice(["Allow", "Deny"]), kind, [network() for _ in range(rng.choice([1, 1, 2, 20]))]))
    far = [f"Deny from 10.{i >> 8}.{i & 255}.0/24\n" for i in range(2000)]
    lines = [f"{verb} {'/a ' if 'path' in kind else ''}{'method POST ' if 'method' in kind else ''}"
             f"{('not from ' if kind == 'not from' else 'from ') + ' '.join(map(str, nets)) if 'from' in kind else ''}\n"
             for verb, kind, nets in rules]
    server = guarded(below="".join(line for pair in zip(far[::5], lines) for line in pair) + "".join(far[1::5]))

    def expected(path, source):
        for verb, kind, nets in rules:
            is_from = any(ipaddress.ip_address(source) in each for each in nets)
            if "method" in kind or ("path" in kind and path != "/a") or ("from" in kind and is_from == (kind == "not from")):
                continue
            return 200 if verb == "Allow" else 403
        return 200

    answers = set()
    for _ in range(60):
        source = f"127.0.{rng.randrange(4)}.{rng.randrange(1, 255)}"
        for path in ("/a", "/b"):
            answers.add(wanted := expected(path, source))
            assert status(server, path, source) == wanted, (path, source)
    assert answers == {200, 403}


def test_security_rule_order_holds_among_many_header_rules(guarded, site):
    """Consecutive rules that test the same header are searched together, but the first match decides."""
    site.add("a", "text")
    rng = random.Random(815)
    words = [f"word{i}" for i in range(12)]
    rules = []
    while len(rules) < 200:
        name = rng.choice(["X-A", "X-B"])
        rules += [(rng.choice(["Allow", "Deny"]), name, rng.sample(words, rng.choice([1, 1, 2])), rng.choice(["", "", "", "127.0.0.2"]))
                  for _ in range(rng.choice([1, 2, 3, 30]))]
    server = guarded(below="".join(f"{verb} header {name} {' '.join(f'*{each}*' for each in values)}{' from ' + source if source else ''}\n"
                                   for verb, name, values, source in rules))

    def expected(source, fields):
        for verb, name, values, of in rules:
            if of in ("", source) and any(each in fields.get(name, "") for each in values):
                return 200 if verb == "Allow" else 403
        return 200

    answers = set()
    for _ in range(100):
        source = rng.choice(["127.0.0.1", "127.0.0.2"])
        fields = {name: f"a browser {rng.choice(words + ['other'] * 6)}-9 with a long name"
                  for name in ("X-A", "X-B") if rng.random() < 0.7}
        answers.add(wanted := expected(source, fields))
        assert status(server, "/a", source, fields=fields) == wanted, (source, fields)
    assert answers == {200, 403}


def test_security_network_families_are_separate(guarded, site):
    site.add("index.html", "index")
    path = site.path.parent / "sock"
    server = guarded("""
        Deny /six/* ::/0
        Deny /four/* 0.0.0.0/0
        Deny /all/* all
    """, listen=["127.0.0.1:0", "[::1]:0", f"unix:{path}"])
    for listener, expected in [(0, (404, 403, 403)), (1, (403, 404, 403)), (2, (404, 404, 403))]:
        with server.connect(listener) as c:
            assert tuple(c.get(target).status for target in ("/six/a", "/four/a", "/all/a")) == expected


def test_security_client_denied_everywhere_is_disconnected(guarded, site):
    site.add("index.html", "index")
    server = guarded("""
        Allow /public/* from 127.0.0.5
        Allow from 127.0.0.2
        Deny  method POST
        Deny  127.0.0.2/31 127.0.0.4/30
    """)
    assert status(server, source="127.0.0.1") == 200
    assert status(server, source="127.0.0.2") == 200
    assert is_refused(server, "127.0.0.3")
    assert is_refused(server, "127.0.0.7")
    assert status(server, "/", source="127.0.0.5") == 403  # denied, but not disconnected: /public/ is allowed
    assert status(server, "/public/none", source="127.0.0.5") == 404


def test_security_section_of_host_prevents_disconnect(guarded, site):
    """The host's own section replaces the global one, so the server must accept the connection until it knows the host."""
    site.add("index.html", "index")
    (site.path.parent / "other").mkdir()
    (site.path.parent / "other/index.html").write_text("other")
    server = guarded("Deny from 127.0.0.2", host="ServerName one.example", sections="""
[HOST]
    ServerName two.example
    DocumentRoot other

[SECURITY]
    Deny /x
""")
    with server.connect(source="127.0.0.2") as c:
        assert c.get("/", host="one.example").status == 403
        assert c.get("/", host="two.example").text == "other"
        assert c.get("/x", host="two.example").status == 403
        assert c.get("/x", host="none.example").status == 403


@pytest.mark.parametrize("how, expected", [("403", 403), ("404", 404)])
def test_security_status_key_sets_status(guarded, site, how, expected):
    site.add("secret", "text")
    site.add("404.html", "our own page")
    server = guarded(f"Deny /secret\nStatus {how}", sections="[ERROR_PAGES]\n    404 404.html\n")
    with server.connect() as c:
        reply = c.get("/secret")
        assert reply.status == expected
        assert (reply.text == "our own page") == (expected == 404)
        assert c.get("/none").status == 404


def test_security_status_close_sends_no_response(guarded, site):
    site.add("secret", "text")
    site.add("index.html", "index")
    server = guarded("Deny /secret\nStatus close")
    for method, body in (("GET", b""), ("HEAD", b""), ("POST", b"x" * 100)):
        with server.connect() as c:
            assert c.get("/").text == "index"
            c.ask("/secret", method=method, body=body).expect_end()
    with server.connect() as c:
        c.send(b"GET /secret HTTP/1.0\r\n\r\n").expect_end()


# ---- Paths ----

DENIED = ["/admin", "/admin/", "/admin/secret", "//admin", "//admin//secret", "/./admin", "/%61dmin", "/%61%64min/secret",
          "/admin/../admin", "/x/../admin/secret", "/admin/.", "/admin/./secret", "/admin%2fsecret", "/admin%2Fsecret",
          "/admin%2f", "/%2fadmin", "/%2f%2fadmin%2fsecret", "/admin%5csecret", "/admin\\secret", "/%5cadmin",
          "/x\\..\\admin", "/x%5c..%5cadmin/secret", "/admin;a=b", "/admin;a=b/secret", "/admin;", "/;/admin", "/;x/admin",
          "/x/..;/admin", "/x/..;a=b/admin/secret", "/x/%2e%2e;/admin", "/admin%3b/secret", "/admin.", "/admin./secret",
          "/admin.../secret", "/admin%20", "/admin%20/secret", "/admin.%20./secret", "/.;/admin", "/admin%2f;x/secret",
          "/admin;%2fx/secret", "/x;y%2f..;%5cadmin", "/%2561dmin", "/admin%252fsecret", "/admin%c0%afsecret", "/admin?x", "/admin/secret?/../../y"]
ALLOWED = ["/", "/x", "/x/admin", "/administer", "/admin.html", "/x/..;/y", "/x;/admin.html", "/%252561dmin", "/adm%2fin",
           "/x?/admin", "/x/admin/secret", "/admin-", "/admi"]


@pytest.mark.parametrize("order", ["deny", "allow"])
def test_security_spellings_of_path_do_not_bypass_rules(guarded, site, order):
    """Rules deny /admin, or everything except a list of paths: no spelling of /admin/secret is let through."""
    site.add("admin/secret", "secret")
    site.add("x/y", "y")
    rules = {"deny": "Deny /admin/*", "allow": "Allow / /x/* /admin.html /administer\nDeny /*"}
    server = guarded(rules[order], server="KeepAliveRequests 0")
    with server.connect() as c:
        for target in DENIED:
            reply = c.get(target)
            assert reply.status in ((403,) if order == "deny" else (403, 404)), target
            assert "secret" not in reply.text.replace(target, ""), target
        for target in ALLOWED if order == "deny" else ():
            assert not re.search("^security ", explained(server, target), re.MULTILINE), target


def test_security_exact_path_matches_other_spellings(guarded, site):
    site.add("a/b.txt", "secret")
    server = guarded("Deny /a/b.txt", server="KeepAliveRequests 0")
    with server.connect() as c:
        for target in ("/a/b.txt", "/a%2fb.txt", "/a//b.txt", "/a/b.txt.", "/a/b.txt;v=2", "/a./b.txt", "/a;%2fx/b.txt",
                       "/a/b.txt%20", "/a/%62.txt"):
            assert c.get(target).status == 403, target
        for target in ("/a/b.txt2", "/a/b", "/A/b.txt", "/a/b.txt/", "/a/b.txt%2f"):
            assert c.get(target).status == 404, target


def test_security_ambiguous_path_must_be_allowed_in_both_readings(guarded, site):
    site.add("public/x", "text")
    server = guarded("Allow /public/*\nDeny /*")
    with server.connect() as c:
        assert c.get("/public/x").status == 200
        assert c.get("/public;/x").status == 403
        assert c.get("/public/..;/x").status == 403
        assert c.get("/public%2fx").status == 403
        assert c.get("/public/%2f").status == 404


def test_security_ignore_case_applies(guarded, site):
    site.add("Admin/secret", "secret")
    for name, expected in (("off", 404), ("on", 403)):
        server = guarded(f"Deny /aDmin/*\nIgnoreCase {name}")
        for target in ("/admin/x", "/ADMIN/x", "/Admin/x", "/%41dmin/x", "/ADMIN%2fx", "/ADMIN;/x"):
            assert status(server, target) == expected, target
        assert status(server, "/aDmin/x") == 403
        assert status(server, "/Admin/secret") == (403 if name == "on" else 200)
        assert status(server, "/other") == 404


def test_security_random_spellings_do_not_bypass_rules(guarded, site):
    """No path gets a 200 response if its plain spelling is denied."""
    site.add("admin/secret", "secret")
    site.add("x/y", "fine")
    rng = random.Random(7)
    pieces = ["/", "//", "/./", "/../", "%2f", "%5c", "\\", "admin", "%61dmin", "secret", "x", "y", ";", ";a", ".", "..", "%2e",
              "%20", "%3b", "%00", "%", "?", "ADMIN"]
    server = guarded("Deny /admin/*", server="KeepAliveRequests 0")
    c = server.connect()
    for _ in range(3000):
        target = "/" + "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 10)))
        reply = c.get(target)
        assert reply.status in (200, 301, 400, 403, 404), target
        assert reply.status != 200 or reply.text == "fine", target
        if reply.closes:
            c.close()
            c = server.connect()
    c.close()


def test_security_long_paths_are_checked_or_refused(guarded, site):
    server = guarded("Deny /admin/* *.secret\nDeny contains secret\nIgnoreCase on", server="KeepAliveRequests 0")
    with server.connect() as c:
        for target in ("/" + ";" * 2000, "/;" * 1000, "/" + "%2f" * 600, "/." * 1000 + ";", "/" + "a." * 1000 + "/",
                       "/" + "\\" * 2000, "/a" + "/..;/a" * 300):
            assert c.get(target).status in (403, 404), target[:40]
            assert c.get(target + "/admin").status in (403, 404), target[:40]
            assert c.get(target * 4 + "/admin").status in (403, 414), target[:40]
        assert c.get("/a" + "/..;/a" * 300 + "/../admin").status == 403
        assert c.get("/;" * 1000 + "/admin").status == 403
        assert c.get("/" + "%2f" * 600 + "admin").status == 403
        assert c.get("/;" * 3500 + "/admin").status == 414, "checking all readings would be too expensive"
        assert c.get("/" + "a" * 7000 + "SecreT" + "b" * 100).status == 403


def test_security_applies_to_options_asterisk(guarded, site):
    server = guarded("Deny /admin/*\nIgnoreCase on")
    assert status(server, "*", method="OPTIONS") in (200, 404)
    server = guarded("Deny /*\nIgnoreCase on")
    assert status(server, "*", method="OPTIONS") == 403


# ---- Referer ----


def test_security_hotlinks_are_denied(guarded, site):
    site.add("img/a.jpg", "picture")
    server = guarded("deny_hotlink /img/* friend.example *.cdn.example", host="ServerName our.example www.our.example")
    cases = {
        None: 200, "": 200,
        "http://our.example/page": 200, "https://OUR.example:8443/": 200, "http://www.our.example": 200,
        "http://friend.example/": 200, "https://a.cdn.example/x": 200, "http://user@friend.example/": 200,
        "http://foe.example/": 403, "http://cdn.example.foe/": 403, "http://foe.example/?http://our.example/": 403,
        "http://our.example.foe/": 403, "http://foe.example/friend.example": 403, "http://foe#@our.example/": 403,
        "http://foe\\@our.example/": 403, "about:blank": 403, "our.example": 403, "x": 403, "http://": 403,
        "http://our.example@foe.example/": 403, "//our.example/": 403, "http://" + "a" * 300 + ".cdn.example/": 403,
        "http://[::1]/": 403, "http://[": 403,
    }
    with server.connect() as c:
        for referer, expected in cases.items():
            fields = {} if referer is None else {"Referer": referer}
            assert c.get("/img/a.jpg", fields=fields, host="our.example").status == expected, referer
            assert c.get("/img%2fa.jpg", fields=fields, host="our.example").status == (403 if expected == 403 else 404)
            assert c.get("/page", fields=fields, host="our.example").status == 404
        assert c.get("/img/a.jpg", fields={"Referer": "http://asked.example/"}, host="asked.example").status == 200


def test_security_referer_may_be_required(guarded, site):
    site.add("a.iso", "image")
    server = guarded("Deny *.iso not referer self siblings [::1]")
    with server.connect() as c:
        def ask(**fields):
            return c.get("/a.iso", fields=fields, host="files.our.example").status

        assert ask() == 403
        assert ask(Referer="http://files.our.example/") == 200
        assert ask(Referer="http://www.our.example/") == 200
        assert ask(Referer="http://our.example/") == 200
        assert ask(Referer="http://[::1]/") == 200
        assert ask(Referer="http://example/") == 403
        assert ask(Referer="http://other.example/") == 403
        assert c.get("/a.iso", fields={"Referer": "http://1.0.0.1/"}, host="127.0.0.1").status == 403


# ---- Rules of Monkey 1 ----


def test_security_rules_of_monkey_1_apply(guarded, site):
    site.add("index.html", "index")
    site.add("imgs/a.png", "picture")
    server = guarded(other="[RULES]\n    IP 127.0.0.77\n    IP 127.0.1.9/24\n    IP 127.0.2.0/255.255.255.0\n"
                           "    URL /Private\n    deny_hotlink /imgs\n")
    assert status(server, source="127.0.0.76") == 200
    for source in ("127.0.0.77", "127.0.1.0", "127.0.1.200", "127.0.2.8"):
        assert is_refused(server, source)
    assert status(server, "/x/PRIVATE.html") == 403
    assert status(server, "/x%2fprivate") == 403
    assert status(server, "/privat") == 404
    with server.connect() as c:
        for referer, expected in (("http://localhost/", 200), ("http://www.our.example/", 200), ("http://foe.example/", 403)):
            host = "localhost" if "localhost" in referer else "img.our.example"
            assert c.get("/imgs/a.png", fields={"Referer": referer}, host=host).status == expected


def test_security_old_and_new_rules_are_combined(guarded, site):
    site.add("a", "a")
    server = guarded("Allow /*", other="[RULES]\n    URL /a\n")
    assert status(server, "/a") == 403


# ---- Invalid configuration ----

WRONG = {
    "Deny": "`Deny` has no value",
    "Forbid /x": "unknown key `Forbid` in [SECURITY]: expected Allow, Deny, deny_hotlink",
    "Deny secret": "`secret` is not a condition: expected one of path, contains, from, method, referer, host, scheme, query, header",
    "Deny User-Agent GPTBot": "`User-Agent` is not a condition: expected one of path, contains, from",
    "Deny secret.example": "`secret.example` is not an address or a network: expected 192.0.2.7",
    "Deny 10.0.0.1/8": "`10.0.0.1/8` is not an address or a network",
    "Deny from": "`from` is without a value",
    "Deny from method GET": "`from` is without a value",
    "Deny /x not": "`not` is the last word",
    "Deny not /x": "`/x` is not a condition: expected one of path, contains, from",
    "Deny path x": "`x` is not a path: expected /name",
    "Deny method get": "`get` is not a method: expected GET",
    "Deny method GET,PUT": "`GET,PUT` is not a method",
    "Deny method GET method PUT": "`method` is already set",
    "Deny /x path /y": "`path` is already set",
    "Deny referer a/b": "`a/b` is not a host",
    "deny_hotlink img": "`img` is not a path",
    "Deny contains \"\"": "`` is empty",
    "Deny \"/x": "a quote is not closed",
    "Status 405": "403, 404, close",
    "RealAddress X Y": "X-Forwarded-For, Forwarded",
    "TrustedProxy somebody": "`somebody` is not an address or a network",
    "ProxyProtocol on": "`ProxyProtocol` without `TrustedProxy`",
}


@pytest.mark.parametrize("line", WRONG)
def test_security_invalid_configuration_is_rejected_with_location(guarded, line):
    server = guarded(line, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(rf"monkey\.conf:\d+:\d+: error: .*{re.escape(WRONG[line])}", server.err.text), server.err.text
    number = int(re.search(r"monkey\.conf:(\d+):", server.err.text)[1])
    assert line in server.config.read_text().splitlines()[number - 1]


@pytest.mark.parametrize("line, meant", [("Deny User-Agent GPTBot", "header NAME VALUE"), ("Deny /x not Accept a", "header NAME VALUE"),
                                         ("Deny Host a.org", "host"), ("Deny metod GET", "method")])
def test_word_in_place_of_a_condition_gets_a_suggestion(guarded, line, meant):
    server = guarded(line, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert f"hint: did you mean `{meant}`?" in server.err.text


def test_security_invalid_old_rules_are_rejected(guarded):
    server = guarded(other="[RULES]\n    IP nobody\n    Url\n    Hotlink /x\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    for part in ("`nobody` is not an address", "`Url` has no value", "unknown key `Hotlink` in [RULES]: expected IP, URL"):
        assert part in server.err.text


def test_security_proxy_protocol_must_be_global(guarded):
    server = guarded(below="TrustedProxy 127.0.0.1\nProxyProtocol on", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "move it to a [SECURITY] above the first [HOST]" in server.err.text


@pytest.mark.parametrize("rules, message", [
    ("RealAddress Forwarded", "no effect without `TrustedProxy`"),
    ("TrustedProxy 10.0.0.1", "no effect on addresses without RealAddress, RealScheme or ProxyProtocol"),
    ("TrustedProxy all\nRealAddress X-Real-IP", "`all` trusts every client: any of them can claim any address"),
])
def test_security_incomplete_configuration_is_warned_of(guarded, rules, message):
    server = guarded(rules)
    server.err.wait_for(rf"monkey\.conf:\d+:\d+: warning: {re.escape(message)}")


def effective(server):
    done = subprocess.run([PROGRAM, "-T", "-c", server.config], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_security_printed_config_loads_again(guarded, monkey, site):
    site.add("index.html", "index")
    server = guarded("""
        Allow /a/* from 10.0.0.0/8 ::1
        deny_hotlink *.jpg friend.example
        Deny  not method GET HEAD
        Allow unix:
        TrustedProxy 127.0.0.1 10.0.0.0/8
        TrustedProxy unix:
        RealAddress X-Real-IP
        Status 404
    """)
    text = effective(server)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    at = lines.index("[SECURITY]")
    assert [line for line in lines[at + 1:at + 13] if line != "# RealScheme"] == [
        "Status 404", "IgnoreCase off", "TrustedProxy 127.0.0.1", "TrustedProxy 10.0.0.0/8", "TrustedProxy unix:",
        "RealAddress X-Real-IP", "ProxyProtocol off", "Allow /a/* from 10.0.0.0/8 ::1",
        "deny_hotlink *.jpg friend.example", "Deny not method GET HEAD", "Allow unix:"]
    again = monkey(config=text)
    assert status(again, method="PUT", body=b"x") == 404


# ---- Explain ----


def explained(server, target, method="GET"):
    done = subprocess.run([PROGRAM, "explain", "-c", server.config, method, target], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_security_rule_appears_in_explain(guarded, site):
    site.add("admin/open", "open")
    server = guarded("Allow /admin/open\nDeny /admin/* not from 10.0.0.0/8")
    assert re.search(r"^security +Allow /admin/open$", explained(server, "/admin/open"), re.M)
    assert not re.search("^security ", explained(server, "/x"), re.MULTILINE)
    output = explained(server, "/admin/x")
    assert re.search(r"^security +Deny /admin/\* not from 10\.0\.0\.0/8$", output, re.M)
    assert re.search(r"^decided +by the plugin security$", output, re.M)
    assert re.search(r"^answer +403", output, re.M)
    output = explained(server, "/admin%2fx")
    assert re.search(r"^security +Deny .*, for a path that might be interpreted as /admin/x$", output, re.M)


def test_security_rules_change_on_reload(guarded, site):
    site.add("index.html", "index")
    server = guarded("Deny /x")
    with server.connect() as c:
        assert c.get("/").status == 200
    server.config.write_text(server.config.read_text().replace("Deny /x", "Deny /"))
    server.tell(signal.SIGHUP)
    end = time.monotonic() + SECONDS
    while status(server) != 403:
        assert time.monotonic() < end
        time.sleep(0.02)
