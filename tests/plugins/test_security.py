# SPDX-License-Identifier: Apache-2.0
"""The plugin security: who may ask for what, and who it is that asks."""
import errno
import random
import re
import signal
import socket
import struct
import subprocess
import textwrap
import time

import pytest

from monkey import PROGRAM, SECONDS

CLIENT = "203.0.113.9"


@pytest.fixture
def guarded(monkey, site):
    """A server with these rules above its host."""
    def start(rules="", below="", other="", **keys):
        section = textwrap.indent(textwrap.dedent(rules).strip("\n"), "    ")
        own = textwrap.indent(textwrap.dedent(below).strip("\n"), "    ")
        top = (f"[SECURITY]\n{section}\n" if section.strip() else "") + other
        keys["sections"] = (f"[SECURITY]\n{own}\n" if own.strip() else "") + keys.get("sections", "")
        return monkey(plugins=["security"], top=top, **keys)

    return start


def status(server, target="/", source=None, **how):
    with server.connect(source=source) as c:
        return c.get(target, **how).status


def is_refused(server, source):
    """Is the connection closed without a word?"""
    with server.connect(source=source) as c:
        try:
            return not c.ask("/").read_to_end()
        except (ConnectionResetError, BrokenPipeError):
            return True


# ---- Rules ----


def test_without_rules_all_is_allowed(guarded, site):
    site.add("index.html", "index")
    assert status(guarded()) == 200


def test_the_first_rule_that_fits_decides(guarded, site):
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


def test_conditions_hold_together(guarded, site):
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


def test_networks(guarded, site):
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


def test_who_is_denied_everywhere_gets_no_answer(guarded, site):
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
    assert status(server, "/", source="127.0.0.5") == 403  # there is something for him
    assert status(server, "/public/none", source="127.0.0.5") == 404


def test_a_host_of_its_own_mind_is_asked(guarded, site):
    """Its own section counts, and not that above: so a connection may be for it."""
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
def test_status_of_what_is_denied(guarded, site, how, expected):
    site.add("secret", "text")
    site.add("404.html", "our own page")
    server = guarded(f"Deny /secret\nStatus {how}", sections="[ERROR_PAGES]\n    404 404.html\n")
    with server.connect() as c:
        reply = c.get("/secret")
        assert reply.status == expected
        assert (reply.text == "our own page") == (expected == 404)
        assert c.get("/none").status == 404


def test_no_answer_at_all(guarded, site):
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
          "/admin;%2fx/secret", "/x;y%2f..;%5cadmin", "/admin?x", "/admin/secret?/../../y"]
ALLOWED = ["/", "/x", "/x/admin", "/administer", "/admin.html", "/x/..;/y", "/x;/admin.html", "/%2561dmin", "/adm%2fin",
           "/x?/admin", "/x/admin/secret", "/admin-", "/admi"]


@pytest.mark.parametrize("order", ["deny", "allow"])
def test_no_spelling_of_a_path_slips_by(guarded, site, order):
    """Denied below /admin, or everything but what is written: no other name for /admin/secret leads there."""
    site.add("admin/secret", "secret")
    site.add("x/y", "y")
    rules = {"deny": "Deny /admin/*", "allow": "Allow / /x/* /admin.html /administer /%2561dmin\nDeny /*"}
    server = guarded(rules[order], server="MaxKeepAliveRequest 0")
    with server.connect() as c:
        for target in DENIED:
            reply = c.get(target)
            assert reply.status in ((403,) if order == "deny" else (403, 404)), target
            assert "secret" not in reply.text.replace(target, ""), target
        for target in ALLOWED if order == "deny" else ():
            assert "security" not in explained(server, target), target


def test_an_exact_path_has_other_spellings_too(guarded, site):
    site.add("a/b.txt", "secret")
    server = guarded("Deny /a/b.txt", server="MaxKeepAliveRequest 0")
    with server.connect() as c:
        for target in ("/a/b.txt", "/a%2fb.txt", "/a//b.txt", "/a/b.txt.", "/a/b.txt;v=2", "/a./b.txt", "/a;%2fx/b.txt",
                       "/a/b.txt%20", "/a/%62.txt"):
            assert c.get(target).status == 403, target
        for target in ("/a/b.txt2", "/a/b", "/A/b.txt", "/a/b.txt/", "/a/b.txt%2f"):
            assert c.get(target).status == 404, target


def test_what_may_be_read_in_two_ways_must_be_allowed_in_both(guarded, site):
    site.add("public/x", "text")
    server = guarded("Allow /public/*\nDeny /*")
    with server.connect() as c:
        assert c.get("/public/x").status == 200
        assert c.get("/public;/x").status == 403
        assert c.get("/public/..;/x").status == 403
        assert c.get("/public%2fx").status == 403
        assert c.get("/public/%2f").status == 404


def test_case(guarded, site):
    site.add("Admin/secret", "secret")
    for name, expected in (("off", 404), ("on", 403)):
        server = guarded(f"Deny /aDmin/*\nIgnoreCase {name}")
        for target in ("/admin/x", "/ADMIN/x", "/Admin/x", "/%41dmin/x", "/ADMIN%2fx", "/ADMIN;/x"):
            assert status(server, target) == expected, target
        assert status(server, "/aDmin/x") == 403
        assert status(server, "/Admin/secret") == (403 if name == "on" else 200)
        assert status(server, "/other") == 404


def test_random_spellings_lead_nowhere(guarded, site):
    """Whatever is answered with 200 was not denied when it is spelled plainly."""
    site.add("admin/secret", "secret")
    site.add("x/y", "fine")
    rng = random.Random(7)
    pieces = ["/", "//", "/./", "/../", "%2f", "%5c", "\\", "admin", "%61dmin", "secret", "x", "y", ";", ";a", ".", "..", "%2e",
              "%20", "%3b", "%00", "%", "?", "ADMIN"]
    server = guarded("Deny /admin/*", server="MaxKeepAliveRequest 0")
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


def test_long_paths(guarded, site):
    server = guarded("Deny /admin/* *.secret\nDeny contains secret\nIgnoreCase on", server="MaxKeepAliveRequest 0")
    with server.connect() as c:
        for target in ("/" + ";" * 7000, "/;" * 3500, "/" + "%2f" * 2300, "/." * 3500 + ";", "/" + "a." * 3500 + "/",
                       "/" + "\\" * 7000, "/a" + "/..;/a" * 1000):
            assert c.get(target).status in (403, 404), target[:40]
            assert c.get(target + "/admin").status in (403, 404), target[:40]
        assert c.get("/a" + "/..;/a" * 1000 + "/../admin").status == 403
        assert c.get("/;" * 3500 + "/admin").status == 403
        assert c.get("/" + "%2f" * 2300 + "admin").status == 403
        assert c.get("/" + "a" * 7000 + "SecreT" + "b" * 100).status == 403


def test_a_target_without_a_path(guarded, site):
    server = guarded("Deny /admin/*\nIgnoreCase on")
    assert status(server, "*", method="OPTIONS") in (200, 404)
    server = guarded("Deny /*\nIgnoreCase on")
    assert status(server, "*", method="OPTIONS") == 403


# ---- Referer ----


def test_hotlinks(guarded, site):
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


def test_a_referer_can_be_demanded(guarded, site):
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


# ---- Monkey 1 ----


def test_rules_of_monkey_1(guarded, site):
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


def test_both_kinds_of_rules(guarded, site):
    site.add("a", "a")
    server = guarded("Allow /*", other="[RULES]\n    URL /a\n")
    assert status(server, "/a") == 403


# ---- Bad configuration ----

WRONG = {
    "Deny": "`Deny` has no value",
    "Forbid /x": "unknown key `Forbid` in [SECURITY]: expected Allow, Deny, deny_hotlink",
    "Deny secret": "`secret` is not an address or a network: expected 192.0.2.7",
    "Deny 10.0.0.1/8": "`10.0.0.1/8` is not an address or a network",
    "Deny from": "`from` is without a value",
    "Deny from method GET": "`from` is without a value",
    "Deny /x not": "`not` is the last word",
    "Deny not /x": "`/x` is no condition: expected path, from, method, referer or contains behind `not`",
    "Deny path x": "`x` is not a path: expected /name",
    "Deny method get": "`get` is not a method: expected GET",
    "Deny method GET,PUT": "`GET,PUT` is not a method",
    "Deny method GET method PUT": "`method` is there already",
    "Deny /x path /y": "`path` is there already",
    "Deny referer a/b": "`a/b` is not a host",
    "deny_hotlink img": "`img` is not a path",
    "Deny contains \"\"": "`` is empty",
    "Deny \"/x": "a quote is not closed",
    "Status 405": "403, 404, close",
    "RealAddress X Y": "X-Forwarded-For, Forwarded",
    "TrustedProxy somebody": "`somebody` is not an address or a network",
    "ProxyProtocol on": "no peer is trusted to speak for others",
}


@pytest.mark.parametrize("line", WRONG)
def test_mistakes_have_a_place(guarded, line):
    server = guarded(line, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(rf"monkey\.conf:\d+:\d+: error: .*{re.escape(WRONG[line])}", server.err.text), server.err.text
    number = int(re.search(r"monkey\.conf:(\d+):", server.err.text)[1])
    assert line in server.config.read_text().splitlines()[number - 1]


def test_mistakes_of_old_rules(guarded):
    server = guarded(other="[RULES]\n    IP nobody\n    Url\n    Hotlink /x\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    for part in ("`nobody` is not an address", "`Url` has no value", "unknown key `Hotlink` in [RULES]: expected IP, URL"):
        assert part in server.err.text


def test_the_proxy_protocol_is_for_all_hosts(guarded):
    server = guarded(below="TrustedProxy 127.0.0.1\nProxyProtocol on", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "it must stand in a [SECURITY] above the first [HOST]" in server.err.text


@pytest.mark.parametrize("rules, said", [
    ("RealAddress Forwarded", "this does nothing: no TrustedProxy is named"),
    ("TrustedProxy 10.0.0.1", "this does nothing without RealAddress or ProxyProtocol"),
])
def test_half_a_configuration_is_warned_of(guarded, rules, said):
    server = guarded(rules)
    server.err.wait_for(rf"monkey\.conf:\d+:\d+: warning: {re.escape(said)}")


def effective(server):
    done = subprocess.run([PROGRAM, "-T", "-c", server.config], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_effective_configuration_is_the_same_one(guarded, monkey, site):
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
    assert lines[at + 1:at + 12] == [
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


def test_explain_names_the_rule(guarded, site):
    site.add("admin/open", "open")
    server = guarded("Allow /admin/open\nDeny /admin/* not from 10.0.0.0/8")
    assert re.search(r"^security +Allow /admin/open$", explained(server, "/admin/open"), re.M)
    assert "security" not in explained(server, "/x")
    said = explained(server, "/admin/x")
    assert re.search(r"^security +Deny /admin/\* not from 10\.0\.0\.0/8$", said, re.M)
    assert re.search(r"^decided +by the plugin security$", said, re.M)
    assert re.search(r"^answer +403", said, re.M)
    said = explained(server, "/admin%2fx")
    assert re.search(r"^security +Deny .*, for a path that may be read as /admin/x$", said, re.M)


# ---- Real addresses ----

REAL = "TrustedProxy 127.0.0.1 10.0.0.0/8 2001:db8::/32\nDeny not from " + CLIENT

FORWARDED_FOR = {
    # Who counts is CLIENT
    CLIENT: 200, f"{CLIENT}:4711": 200, f"::ffff:{CLIENT}": 200, f" {CLIENT} ": 200, f",, {CLIENT} ,": 200,
    f"{CLIENT}, 10.1.1.1": 200, f"6.6.6.6, {CLIENT}, 10.1.1.1, 10.2.2.2,2001:db8::7": 200, f"6.6.6.6,{CLIENT}": 200,
    f"rubbish, {CLIENT}": 200, f'"6.6.6.6, {CLIENT}': 200, f"{CLIENT}, [2001:db8::1]:80": 200,
    # or it is not
    "6.6.6.6": 403, f"{CLIENT}, 6.6.6.6": 403, f"{CLIENT}, rubbish": 403, f"{CLIENT}, rubbish, 10.1.1.1": 403,
    f"{CLIENT}, 6.6.6.6, 10.1.1.1": 403, "": 403, ",": 403, "10.1.1.1": 403, f"{CLIENT}x": 403, f"{CLIENT}, unknown": 403,
    f"{CLIENT}, 10.1.1.1.1": 403, f"{CLIENT}, 2130706433": 403, f"{CLIENT}, 0x7f.1": 403, f"{CLIENT}/24": 403,
    f"{CLIENT};10.1.1.1": 403, f"{CLIENT} 10.1.1.1": 403, f"{CLIENT}:99999": 403,
}


@pytest.mark.parametrize("field", ["X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP"])
def test_who_a_proxy_speaks_for(guarded, site, field):
    site.add("index.html", "index")
    server = guarded(REAL + f"\nRealAddress {field}")
    with server.connect() as c:
        for value, expected in FORWARDED_FOR.items():
            assert c.get("/", fields={field: value}).status == expected, value
        assert c.get("/").status == 403
        assert c.get("/", fields={field.upper(): CLIENT}).status == 200
        # Each request speaks for itself
        assert c.get("/", fields={field: CLIENT}).status == 200
        assert c.get("/", fields={"Forwarded": f"for={CLIENT}"}).status == 403
        # A proxy may add a line in place of an element: the last line is its own
        assert c.get("/", fields=[(field, "6.6.6.6"), ("X", "y"), (field, CLIENT)]).status == 200
        assert c.get("/", fields=[(field, CLIENT), ("X", "y"), (field, "6.6.6.6")]).status == 403
        assert c.get("/", fields=[(field, CLIENT), (field, ""), (field, "10.1.1.1")]).status == 200
        assert c.get("/", fields={field: f"{CLIENT}, " + "10.1.1.1, " * 62 + "10.1.1.1"}).status == 200
        assert c.get("/", fields={field: f"{CLIENT}, " + "10.1.1.1, " * 70 + "10.1.1.1"}).status == 403


def test_who_is_not_trusted_speaks_for_himself(guarded, site):
    site.add("index.html", "index")
    server = guarded(REAL.replace("Deny", "Deny /*") + "\nRealAddress X-Forwarded-For")
    for source in ("127.0.0.2", "127.0.0.3"):
        for value in (CLIENT, f"{CLIENT}, 127.0.0.1", f"{CLIENT}, 10.0.0.1"):
            with server.connect(source=source) as c:
                assert c.get("/", fields={"X-Forwarded-For": value}).status == 403


FORWARDED = {
    f"for={CLIENT}": 200, f'for="{CLIENT}:80"': 200, f"For={CLIENT};proto=https;by=10.0.0.1": 200,
    f'proto=http; for="{CLIENT}"': 200, f'for=6.6.6.6, for={CLIENT}, for="[2001:db8::1]:_x"': 403,
    f'for=6.6.6.6, for={CLIENT}, for="[2001:db8::1]:44"': 200, f"for={CLIENT}:80": 200,
    f'for="evil, for={CLIENT}': 200, f'for={CLIENT};host="evil, for=6.6.6.6;x"': 200,
    f'for={CLIENT};host="a\\", for=6.6.6.6"': 200, f'host="a;for=6.6.6.6;b";for={CLIENT}': 200,
    f"for={CLIENT}, for=unknown": 403, f"for={CLIENT}, for=_hidden": 403, f"for={CLIENT}, proto=https": 403,
    f"{CLIENT}": 403, f"for={CLIENT};for={CLIENT}": 403, f'for="{CLIENT}': 403, f'for={CLIENT}"': 403,
    f"for='{CLIENT}'": 403, "for=": 403, "for": 403, 'for=""': 403, f'for="{CLIENT}\\"': 403, f"for={CLIENT}, x": 403,
    f"for={CLIENT}, \"": 403, f'host=", for={CLIENT}': 200,
}


def test_forwarded(guarded, site):
    site.add("index.html", "index")
    server = guarded(REAL + "\nRealAddress forwarded")
    with server.connect() as c:
        for value, expected in FORWARDED.items():
            assert c.get("/", fields={"Forwarded": value}).status == expected, value
        assert c.get("/", fields={"X-Forwarded-For": CLIENT}).status == 403


def test_hidden_is_no_reason_to_complain_but_rubbish_is(guarded, site):
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress Forwarded")
    with server.connect() as c:
        for _ in range(30):
            assert c.get("/", fields={"Forwarded": "for=unknown"}).status == 403
        for _ in range(30):
            assert c.get("/", fields={"Forwarded": "for=rubbish"}).status == 403
    server.err.wait_for(r"security: the proxy 127\.0\.0\.1 is trusted, but what it says of its client cannot be "
                        r"understood \(1 times\)")
    server.stop()
    assert server.err.text.count("is trusted, but") < 10  # now and then


def test_everybody_sees_the_real_address(guarded, site):
    site.add("index.html", "index")
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For",
                     server="AccessLog stdout\nAccessLogFormat short")
    with server.connect() as c:
        c.get("/", fields={"X-Forwarded-For": "2001:db8::9"})
    server.out.wait_for(r"2001:db8::9")


def test_hosts_may_trust_others(guarded, site):
    site.add("index.html", "index")
    own = "[HOST]\n    ServerName {0}\n    DocumentRoot site\n\n[SECURITY]\n    Deny not from {1}\n{2}\n"
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For", host="ServerName top.example", sections="\n".join([
        own.format("same.example", CLIENT, ""), own.format("none.example", CLIENT, "    TrustedProxy off"),
        own.format("field.example", CLIENT, "    RealAddress X-Real-IP"),
        own.format("off.example", CLIENT, "    RealAddress off"),
        own.format("two.example", CLIENT, "    TrustedProxy 127.0.0.2")]))
    fields = {"X-Forwarded-For": CLIENT}
    for host, source, expected in (("same", 1, 200), ("same", 2, 403), ("none", 1, 403), ("off", 1, 403), ("field", 1, 403),
                                   ("two", 1, 403), ("two", 2, 200), ("top", 2, 200)):
        with server.connect(source=f"127.0.0.{source}") as c:
            assert c.get("/", fields=fields, host=host + ".example").status == expected, (host, source)
    with server.connect() as c:
        assert c.get("/", fields={"X-Real-IP": CLIENT}, host="field.example").status == 200


def test_a_trusted_proxy_is_let_in_for_its_clients(guarded, site):
    """Its own address is denied, but it may speak for somebody who is not."""
    site.add("index.html", "index")
    server = guarded(f"TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For\nAllow {CLIENT}\nDeny all")
    with server.connect(source="127.0.0.1") as c:
        assert c.get("/", fields={"X-Forwarded-For": CLIENT}).status == 200
        assert c.get("/", fields={"X-Forwarded-For": "6.6.6.6"}).status == 403
        assert c.get("/").status == 403
    assert is_refused(server, "127.0.0.2")


# ---- The PROXY protocol ----

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
PROXY = f"TrustedProxy 127.0.0.1\nProxyProtocol on\nDeny /* not from {CLIENT} 2001:db8::9 unix:"


def v2(body=b"", command=0x21, family=0x11, length=None):
    return SIGNATURE + struct.pack("!BBH", command, family, len(body) if length is None else length) + body


def v4_body(source=CLIENT, extra=b""):
    return socket.inet_aton(source) + socket.inet_aton("192.0.2.1") + struct.pack("!HH", 4711, 80) + extra


def v6_body(source="2001:db8::9", extra=b""):
    return (socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, "::1") +
            struct.pack("!HH", 4711, 80) + extra)


def tlv(kind, value):
    return struct.pack("!BH", kind, len(value)) + value


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def with_sum(before=b"", behind=b"", wrong=0):
    header = v2(v4_body(extra=before + tlv(3, b"\0" * 4) + behind))
    at = len(SIGNATURE) + 4 + 12 + len(before) + 3
    return header[:at] + struct.pack("!I", crc32c(header) ^ wrong) + header[at + 4:]


GOOD = {
    "v1": f"PROXY TCP4 {CLIENT} 192.0.2.1 4711 80\r\n".encode(),
    "v1 six": b"PROXY TCP6 2001:db8::9 ::1 4711 80\r\n",
    "v1 mapped": f"PROXY TCP6 ::ffff:{CLIENT} ::1 0 65535\r\n".encode(),
    "v1 longest": b"PROXY TCP6 " + b"2001:0db8:0000:0000:0000:0000:0000:0009 " * 2 + b"65535 65535\r\n",
    "v2": v2(v4_body()),
    "v2 six": v2(v6_body(), family=0x21),
    "v2 datagram": v2(v4_body(), family=0x12),
    "v2 unix": v2(b"/run/a".ljust(108, b"\0") + b"/run/b".ljust(108, b"\0"), family=0x31),
    "v2 extras": v2(v4_body(extra=tlv(1, b"h2") + tlv(2, b"example.org") + tlv(4, b"\0" * 40) + tlv(0xe0, b""))),
    "v2 large": v2(v4_body(extra=tlv(0x20, b"x" * 8000))),
    "v2 sum": with_sum(),
    "v2 sum among others": with_sum(tlv(1, b"h2"), tlv(4, b"\0\0")),
}
# The proxy speaks for itself, and it is denied.
OWN = {
    "v1 unknown": b"PROXY UNKNOWN\r\n",
    "v1 unknown with more": f"PROXY UNKNOWN {CLIENT} {CLIENT} 1 2\r\n".encode(),
    "v1 unknown longest": b"PROXY UNKNOWN " + b"f" * 91 + b"\r\n",
    "v2 local": v2(command=0x20, family=0),
    "v2 local with more": v2(v4_body(), command=0x20),
    "v2 local of what there is not": v2(b"xx", command=0x20, family=0x77),
    "v2 unspecified": v2(b"\0\1", family=0),
}
BAD = {
    "none": REQUEST,
    "v1 lower": b"proxy TCP4 203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 address": b"PROXY TCP4 203.0.113.999 192.0.2.1 1 2\r\n",
    "v1 octal": b"PROXY TCP4 203.0.113.011 192.0.2.1 1 2\r\n",
    "v1 other address": b"PROXY TCP4 203.0.113.9 here 1 2\r\n",
    "v1 family": b"PROXY TCP6 203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 family 4": b"PROXY TCP4 2001:db8::9 ::1 1 2\r\n",
    "v1 brackets": b"PROXY TCP6 [2001:db8::9] ::1 1 2\r\n",
    "v1 address and port": b"PROXY TCP4 203.0.113.9:1 192.0.2.1 1 2\r\n",
    "v1 udp": b"PROXY UDP4 203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 blanks": b"PROXY TCP4  203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 blank at the end": b"PROXY TCP4 203.0.113.9 192.0.2.1 1 2 \r\n",
    "v1 tab": b"PROXY TCP4\t203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 port": b"PROXY TCP4 203.0.113.9 192.0.2.1 65536 2\r\n",
    "v1 zero before a port": b"PROXY TCP4 203.0.113.9 192.0.2.1 01 2\r\n",
    "v1 no port": b"PROXY TCP4 203.0.113.9 192.0.2.1 1\r\n",
    "v1 too much": b"PROXY TCP4 203.0.113.9 192.0.2.1 1 2 3\r\n",
    "v1 line feed alone": b"PROXY TCP4 203.0.113.9 192.0.2.1 1 2\n",
    "v1 nul": b"PROXY TCP4 203.0.113.9\0 192.0.2.1 1 2\r\n",
    "v1 without end": b"PROXY UNKNOWN " + b"f" * 92 + b"\r\n",
    "v1 nothing": b"PROXY \r\n",
    "v2 signature": b"\r\n\r\n\0\r\nQUIX\n" + v2(v4_body())[12:],
    "v2 version": v2(v4_body(), command=0x11),
    "v2 command": v2(v4_body(), command=0x22),
    "v2 family": v2(v4_body(), family=0x41),
    "v2 kind": v2(v4_body(), family=0x13),
    "v2 too short": v2(v4_body()[:11]),
    "v2 six too short": v2(v6_body()[:35], family=0x21),
    "v2 unix too short": v2(b"x" * 215, family=0x31),
    "v2 extra cut off": v2(v4_body(extra=b"\1")),
    "v2 extra longer than all": v2(v4_body(extra=b"\1\0\5abcd")),
    "v2 sum": with_sum(wrong=1),
    "v2 sum of three bytes": v2(v4_body(extra=tlv(3, b"\0\0\0"))),
    "v2 too long": v2(v4_body(), length=8177),
    "v2 longest": v2(v4_body(), length=65535),
}


@pytest.fixture
def behind(guarded, site):
    site.add("index.html", "index")
    return guarded(PROXY)


def talk(server, data, source=None):
    """The status; None when the connection was closed without an answer."""
    with server.connect(source=source) as c:
        try:
            return int(c.send(data).read_to_end()[9:12] or 0) or None
        except (ConnectionResetError, BrokenPipeError):
            return None


@pytest.mark.parametrize("kinds, expected", [(GOOD, 200), (OWN, 403), (BAD, None)])
def test_headers_of_proxies(behind, kinds, expected):
    for name, header in kinds.items():
        assert talk(behind, header + REQUEST) == expected, name
    assert talk(behind, GOOD["v1"] + REQUEST) == 200


@pytest.mark.parametrize("name", ["v1", "v1 longest", "v2", "v2 sum among others"])
def test_a_header_may_be_cut_anywhere(behind, name):
    data = GOOD[name] + REQUEST
    for at in range(1, len(GOOD[name]) + 2):
        with behind.connect() as c:
            c.send(data[:at])
            c.send(data[at:])
            assert c.read_to_end().startswith(b"HTTP/1.1 200"), at
    with behind.connect() as c:
        assert c.send_slowly(data).read_to_end().startswith(b"HTTP/1.1 200")


def test_the_connection_is_of_the_client(behind):
    with behind.connect() as c:
        c.send(GOOD["v2"])
        for _ in range(3):
            assert c.get("/").status == 200
        assert c.send(GOOD["v2"] + REQUEST).read().status == 400  # once only


def test_a_proxy_that_says_nothing_is_not_waited_for(guarded, site):
    server = guarded(PROXY, server="Timeout 1")
    for part in (b"", b"PROXY", SIGNATURE, v2(v4_body())[:20]):
        with server.connect() as c:
            c.send(part).expect_end()


def test_others_may_not_speak_for_somebody(guarded, site):
    site.add("index.html", "index")
    server = guarded(PROXY)
    for name, header in (GOOD | OWN).items():
        assert talk(server, header + REQUEST, "127.0.0.2") == 400, name
    assert talk(server, REQUEST, "127.0.0.2") == 403
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress Forwarded")
    assert talk(server, GOOD["v1"] + REQUEST) == 400
    assert talk(server, GOOD["v2"] + REQUEST) == 400


def test_whom_a_proxy_speaks_for_may_be_refused_at_once(guarded, site):
    site.add("index.html", "index")
    server = guarded(f"TrustedProxy 127.0.0.1\nProxyProtocol on\nDeny {CLIENT}")
    assert talk(server, GOOD["v1"] + REQUEST) is None
    assert talk(server, GOOD["v2 six"] + REQUEST) == 200
    assert talk(server, OWN["v2 local"] + REQUEST) == 200


def test_a_proxy_behind_a_proxy(guarded, site):
    """The connection is of a proxy that names its client in a field."""
    site.add("index.html", "index")
    server = guarded(f"TrustedProxy 127.0.0.1 10.0.0.0/8\nProxyProtocol on\nRealAddress X-Forwarded-For\n"
                     f"Allow {CLIENT}\nDeny all")
    told = REQUEST.replace(b"Host", f"X-Forwarded-For: {CLIENT}\r\nHost".encode())
    assert talk(server, v2(v4_body("10.0.0.7")) + told) == 200
    assert talk(server, v2(v4_body("10.0.0.7")) + REQUEST) == 403
    assert talk(server, v2(v4_body("192.0.2.7")) + told) is None


def test_connections_count_for_the_client(guarded, site):
    site.add("index.html", "index")
    server = guarded("TrustedProxy 127.0.0.1\nProxyProtocol on", server="MaxConnectionsPerAddress 2")
    clients = [server.connect() for _ in range(3)]
    try:
        for c, source in zip(clients, (CLIENT, CLIENT, "203.0.113.10")):
            c.send(v2(v4_body(source)))
            assert c.get("/").status == 200
        assert talk(server, GOOD["v2"] + REQUEST) is None
    finally:
        for c in clients:
            c.close()


def test_curl_speaks_it(behind):
    done = subprocess.run(["curl", "-s", "--max-time", "20", "--haproxy-protocol", "-w", "%{http_code}", behind.url + "/"],
                          capture_output=True, text=True, check=True)
    assert done.stdout.endswith("403")  # it names its own address: 127.0.0.1
    done = subprocess.run(["curl", "-s", "--max-time", "20", behind.url + "/"], capture_output=True, text=True, check=False)
    assert done.returncode in (52, 56)  # no answer, or a reset


def test_curl_is_who_it_says(guarded, site):
    site.add("index.html", "index")
    server = guarded("TrustedProxy 127.0.0.0/8\nProxyProtocol on\nDeny not from 127.0.0.9")
    for source, expected in (("127.0.0.9", "index200"), ("127.0.0.8", "")):
        done = subprocess.run(["curl", "-s", "--max-time", "20", "--haproxy-protocol", "--interface", source, "-w",
                               "%{http_code}", server.url + "/"], capture_output=True, text=True, check=False)
        assert done.stdout.replace("000", "") == expected


def test_random_headers(behind):
    rng = random.Random(11)
    headers = list((GOOD | OWN | BAD).values())
    for _ in range(400):
        data = bytearray(rng.choice(headers))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with behind.connect() as c:
            try:
                c.send(bytes(data) + REQUEST).shut()
                assert c.read_to_end()[:12] in (b"", b"HTTP/1.1 200", b"HTTP/1.1 403", b"HTTP/1.1 400")
            except OSError as error:
                assert error.errno in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN), error
    assert talk(behind, GOOD["v1"] + REQUEST) == 200


def test_a_reload_takes_new_rules(guarded, site):
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
