# SPDX-License-Identifier: Apache-2.0
"""[CHALLENGE]: clients solve a computational task before they get a response."""
import base64
import gzip
import hashlib
import hmac
import html
import ipaddress
import itertools
import os
import re
import shutil
import signal
import subprocess
import time
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

import browser
import regexes
import services
import users
from backend import Backend
from client import Closed
from fault_injection import Fault, failing_allocations
from local_authority import HAS_TLS
from monkey import PROGRAM, PROTOCOLS
from proc import wait_until

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
PATH = "/.well-known/monkey-challenge"
COOKIE = "monkey-challenge"
KEY = "0123456789abcdef" * 2
EASY = "Difficulty 4"
ANY = f"Challenge all\n{EASY}"
NODE = shutil.which("node") or shutil.which("nodejs")


def section(keys):
    return "[CHALLENGE]\n" + "".join(f"    {line}\n" for line in keys.splitlines())


@pytest.fixture
def challenged(monkey, site):
    """`challenged(keys)`: a server whose host has [CHALLENGE] with these keys."""
    site.add("index.html", "index")
    site.add("a/x.txt", "text")

    def start(keys=ANY, plugins=(), sections="", **how):
        return monkey(plugins=["challenge", *plugins], sections=section(keys) + sections, **how)
    return start


def token_of(reply):
    return re.search(r'data-token="([0-9a-f]{42})"', reply.text)[1]


def is_challenge(reply, status=403):
    return reply.status == status and b"data-token=" in reply.body


def find_nonce(token, solves=True):
    """Returns a nonce that is a solution, or one that is not."""
    bits = int(token[:2], 16)
    for nonce in itertools.count():
        if (int.from_bytes(hashlib.sha256(f"{token}{nonce}".encode()).digest()) >> (256 - bits) == 0) == solves:
            return nonce


def answer(server, token, nonce, target="/", **how):
    return server.get(f"{PATH}?{urlencode({'token': token, 'nonce': nonce, 'target': target})}", **how)


def cookie_of(reply):
    """Returns the pass in the response to a solution, as headers of a request."""
    assert reply.status == 303, (reply, reply.body)
    name, _, value = reply["Set-Cookie"].partition(";")[0].partition("=")
    assert name == (f"__Host-{COOKIE}" if "; Secure" in reply["Set-Cookie"] else COOKIE)
    return [("Cookie", f"{name}={value}")]


def solve(server, target="/", **how):
    """Does what a browser does; returns the pass."""
    token = token_of(server.get(target, **how))
    return cookie_of(answer(server, token, find_nonce(token), target, **how))


def sign(kind, bits, at, host="site.example", address="127.0.0.1", key=KEY):
    """Makes a task or a pass, in the format of token.c."""
    ip = ipaddress.ip_address(address)
    network = b"\0" * 10 + b"\xff\xff" + ip.packed if ip.version == 4 else ip.packed[:8] + b"\0" * 8
    head = f"{bits:02x}{int(at):08x}"
    return head + hmac.digest(key.encode(), f"{kind} {head}".encode() + network + b"i" + host.encode(), "sha256")[:16].hex()


def passed(token):
    return [("Cookie", f"{COOKIE}={token}")]


@pytest.fixture
def keyed(challenged, tmp_path):
    """A server whose key the test knows."""
    (tmp_path / "key").write_text(KEY + "\n")

    def start(keys=ANY, **how):
        return challenged(f"{keys}\nKeyFile key", **{"host": "ServerName site.example", **how})
    return start


def get(server, target="/", fields=(), **how):
    return server.get(target, fields=fields, host="site.example", **how)


def reload(server, old=None, new=None):
    """Reloads the configuration, with `old` replaced by `new`."""
    if old:
        text = server.config.read_text()
        assert old in text
        server.config.write_text(text.replace(old, new))
    before = set(server.workers)
    server.tell(signal.SIGHUP)
    wait_until(lambda: not before & set(server.workers), "the old workers are gone")


# ---- The challenge and its solution ----

@every_protocol
def test_solved_challenge_opens_the_site(challenged):
    server = challenged()
    page = server.get("/a/x.txt?q=1")
    assert is_challenge(page) and page["Cache-Control"] == "no-store" and page["Content-Type"] == "text/html; charset=utf-8"
    assert len(page.body) < 4096 and "<noscript>" in page.text
    token = token_of(page)
    reply = answer(server, token, find_nonce(token), "/a/x.txt?q=1")
    assert reply.status == 303 and reply["Location"] == "/a/x.txt?q=1" and reply["Cache-Control"] == "no-store" and not reply.body
    attributes = reply["Set-Cookie"].split("; ")[1:]
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Lax", "Max-Age=86400"} | ({"Secure"} if "tls" in server.protocol else set())
    assert server.get("/a/x.txt", fields=cookie_of(reply)).text == "text"
    assert is_challenge(server.get("/a/x.txt"))


def test_page_allows_only_its_own_script(challenged):
    page = challenged().get("/")
    script, = re.findall(r"<script[^>]*>(.*?)</script>", page.text, re.S)
    digest = hashlib.sha256(script.encode()).digest()
    policy = dict(part.split(" ", 1) for part in page["Content-Security-Policy"].split("; "))
    assert policy["script-src"] == "'sha256-" + base64.b64encode(digest).decode() + "'"
    assert policy["base-uri"] == "'none'" and policy["frame-ancestors"] == "'self'"
    assert not re.search(r"\son\w+=|https?://|src=|//", page.text)


@every_protocol
def test_request_that_cannot_run_the_script_gets_a_short_text(challenged):
    server = challenged()
    for method, fields in [("POST", ()), ("PUT", ()), ("DELETE", ()), ("OPTIONS", ()), ("GET", [("Accept", "application/json")])]:
        reply = server.get("/", method=method, fields=fields, body=b"x" * 1000 if method == "POST" else b"")
        assert reply.status == 403 and reply["Content-Type"] == "text/plain; charset=utf-8" and len(reply.body) < 100
        assert reply["Cache-Control"] == "no-store"
    reply = server.get("/", method="HEAD")
    assert reply.status == 403 and not reply.body and reply["Content-Type"].startswith("text/html")
    assert is_challenge(server.get("/", fields=[("Accept", "image/avif,*/*;q=0.8")]))


def test_connection_stays_open_after_a_body(challenged):
    server = challenged()
    with server.connect() as c:
        assert c.get("/", method="POST", body=b"GET / HTTP/1.1\r\n\r\n" * 50).status == 403
        token = token_of(c.get("/"))
        cookie = cookie_of(c.get(f"{PATH}?token={token}&nonce={find_nonce(token)}&target=/"))
        assert c.get("/", fields=cookie).text == "index"
        assert c.get("/", method="POST", body=b"x", fields=cookie).status == 405


@pytest.mark.parametrize("status", [200, 429, 503])
def test_status_is_configurable(challenged, status):
    server = challenged(f"{ANY}\nStatus {status}")
    page = server.get("/")
    assert is_challenge(page, status) and "Retry-After" not in page
    token = token_of(page)
    assert answer(server, token, find_nonce(token, solves=False)).status == 403
    assert server.get("/", fields=solve(server)).text == "index"


# ---- Invalid solutions ----

def failed(reply):
    assert reply.status == 403 and b"Try again" in reply.body and "Set-Cookie" not in reply and reply["Cache-Control"] == "no-store"
    return True


def test_wrong_nonce_is_rejected(keyed):
    server = keyed("Challenge all\nDifficulty 12")
    token = token_of(get(server))
    right = find_nonce(token)
    for nonce in (find_nonce(token, solves=False), "", "-1", f"{right} ", f" {right}", f"{right}.0", f"0x{right:x}", "9" * 11, "9" * 3000):
        assert failed(answer(server, token, nonce, host="site.example")), nonce
    assert answer(server, token, right, host="site.example").status == 303


@every_protocol
def test_malformed_answers_are_rejected(keyed):
    server = keyed()
    token = token_of(get(server))
    nonce = find_nonce(token)
    for query in ("", "?", "?token", f"?token={token}", f"?nonce={nonce}&target=/", f"?token={token}&nonce={nonce}", f"?token={token}&target=/",
                  f"?token={token[:-1]}&nonce={nonce}&target=/", f"?token={token}0&nonce={nonce}&target=/",
                  f"?token={token.upper()}&nonce={nonce}&target=/", f"?token=%00{token}&nonce={nonce}&target=/",
                  f"?token={'0' * 42}&nonce={nonce}&target=/", f"?token={'f' * 5000}&nonce={nonce}&target=/"):
        assert failed(get(server, PATH + query)), query
    for at in range(0, 42):
        changed = token[:at] + ("1" if token[at] != "1" else "2") + token[at + 1:]
        assert failed(get(server, f"{PATH}?token={changed}&nonce={find_nonce(changed) if int(changed[:2], 16) < 10 else 0}&target=/")), at
    assert get(server, f"{PATH}?token={token}&nonce={nonce}&target=%zz").status == 400
    for method in ("POST", "PUT", "OPTIONS"):
        assert get(server, f"{PATH}?token={token}&nonce={nonce}&target=/", method=method)["Allow"] == "GET, HEAD"
    assert get(server, f"{PATH}?token={token}&nonce={nonce}&target=/", method="HEAD").status == 303
    assert get(server, PATH + "?" + "&".join(f"a{i}=" for i in range(300))).status == 413


@pytest.mark.parametrize("age, works", [(0, True), (500, True), (-30, True), (700, False), (-120, False), (10**6, False)])
def test_task_expires(keyed, age, works):
    server = keyed()
    token = sign("task", 4, time.time() - age)
    reply = answer(server, token, find_nonce(token), host="site.example")
    assert reply.status == 303 if works else failed(reply)


def test_pass_expires_a_lifetime_after_the_task_was_issued(keyed):
    server = keyed(f"{ANY}\nLifetime 1h")
    issued = int(time.time()) - 300
    token = sign("task", 4, issued)
    replies = [answer(server, token, find_nonce(token), host="site.example") for _ in range(2)]
    assert {cookie_of(reply)[0][1] for reply in replies} == {f"{COOKIE}={sign('pass', 4, issued + 3600)}"}


@pytest.mark.parametrize("left, works", [(1000, True), (3600, True), (3700, False), (0, False), (-5, False)])
def test_pass_is_valid_for_its_lifetime(keyed, left, works):
    server = keyed(f"{ANY}\nLifetime 1h")
    reply = get(server, fields=passed(sign("pass", 4, time.time() + left)))
    assert reply.text == "index" if works else is_challenge(reply)


def test_pass_that_was_used_expires(keyed):
    server = keyed()
    fields = passed(sign("pass", 4, time.time() + 3))
    assert get(server, fields=fields).text == "index"
    wait_until(lambda: is_challenge(get(server, fields=fields)), "the end of the pass")


def test_tokens_are_bound_to_client_host_kind_and_key(keyed):
    server = keyed()
    now = int(time.time())
    for how in ({"address": "127.0.0.2"}, {"host": "other.example"}, {"key": "x" * 32}, {"host": ""}, {"address": "::1"}):
        token = sign("task", 4, now, **how)
        assert failed(answer(server, token, find_nonce(token), host="site.example")), how
        assert is_challenge(get(server, fields=passed(sign("pass", 4, now + 1000, **how)))), how
    assert is_challenge(get(server, fields=passed(sign("task", 4, now + 1000))))
    token = sign("pass", 4, now)
    assert failed(answer(server, token, find_nonce(token), host="site.example"))
    assert get(server, fields=passed(sign("pass", 4, now + 1000))).text == "index"
    with server.connect(source="127.0.0.2") as c:
        for _ in range(2):
            assert is_challenge(c.get("/", host="site.example", fields=passed(sign("pass", 4, now + 1000))))
        assert c.get("/", host="site.example", fields=passed(sign("pass", 4, now + 1000, address="127.0.0.2"))).text == "index"


def test_hosts_do_not_share_passes(challenged):
    other = "\n[HOST]\n    ServerName other.example\n    DocumentRoot site\n"
    server = challenged(top=section(ANY), keys="Challenge all\nDifficulty 5", host="ServerName site.example", sections=other)
    one, two = (solve(server, host=host) for host in ("site.example", "other.example"))
    assert server.get("/", host="site.example", fields=one).text == server.get("/", host="other.example", fields=two).text == "index"
    assert is_challenge(server.get("/", host="other.example", fields=one)) and is_challenge(server.get("/", host="site.example", fields=two))
    assert token_of(server.get("/", host="site.example"))[:2] == "05" and token_of(server.get("/", host="other.example"))[:2] == "04"


def test_names_of_a_pattern_do_not_share_passes(challenged):
    server = challenged(host="ServerName *.site.example")
    cookie = solve(server, host="a.site.example")
    assert server.get("/", host="A.SITE.example", fields=cookie).text == "index" and is_challenge(server.get("/", host="b.site.example", fields=cookie))


def test_network_of_ipv6_client_has_64_bits(keyed):
    server = keyed(plugins=["security"], top="[SECURITY]\n    TrustedProxy 127.0.0.1\n    RealAddress X-Forwarded-For\n")
    fields = passed(sign("pass", 4, time.time() + 100, address="2001:db8:0:1::1"))
    for address, works in [("2001:db8:0:1::1", True), ("2001:db8:0:1:ffff::9", True), ("2001:db8:0:2::1", False), ("192.0.2.1", False)]:
        reply = get(server, fields=[*fields, ("X-Forwarded-For", address)])
        assert reply.text == "index" if works else is_challenge(reply)
    fields = passed(sign("pass", 4, time.time() + 100, address="192.0.2.1"))
    assert get(server, fields=[*fields, ("X-Forwarded-For", "192.0.2.1")]).text == "index"
    assert is_challenge(get(server, fields=[*fields, ("X-Forwarded-For", "192.0.2.2")]))


@every_protocol
def test_invalid_cookies_lead_to_a_challenge(keyed):
    server = keyed()
    plain, tls = COOKIE, f"__Host-{COOKIE}"
    name, other = (tls, plain) if "tls" in server.protocol else (plain, tls)
    good = sign("pass", 4, time.time() + 1000)
    for cookie in ("", "=", ";" * 3000, name, name + "=", f"{name}={good}0", f"{name}={good[:-1]}", f"{name}={good.upper()}",
                   f'{name}="{good}"', f"{name}={'f' * 6000}", f"x{name}={good}", f"{name.upper()}={good}", f"{name}=\xe4{good[1:]}", f"{other}={good}",
                   *(f"{name}={good[:at]}{'0' if good[at] != '0' else '1'}{good[at + 1:]}" for at in range(42))):
        assert is_challenge(get(server, fields=[("Cookie", cookie)])), cookie
    for fields in ([("Cookie", f"a=b; {name}={good}; c=d")], [("Cookie", "a=b"), ("Cookie", f"{name}={good}")]):
        assert get(server, fields=fields).text == "index"


def test_invalid_cookie_does_not_hide_the_pass(keyed):
    server = keyed()
    good, bad = f"{COOKIE}={sign('pass', 4, time.time() + 1000)}", f"{COOKIE}=x"
    old = f"{COOKIE}={sign('pass', 4, time.time() - 5)}"
    for cookies in ([f"{bad}; {good}"], [f"{old}; {good}; {bad}"], [bad, old, good], [f"{bad}; a=b; {old}; {bad}; {good}"], [f"{bad}; {bad}", f"{old}; {good}"]):
        assert get(server, fields=[("Cookie", cookie) for cookie in cookies]).text == "index", cookies
    for cookies in (["; ".join([bad] * 4 + [good])], [f"{bad}; {bad}", f"{bad}; {bad}", good]):  # only four are verified
        assert is_challenge(get(server, fields=[("Cookie", cookie) for cookie in cookies])), cookies


# ---- Redirects ----

@pytest.mark.parametrize("target", [
    "//evil.example/", "///evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example/", "javascript:alert(1)", "evil.example", "",
    "/\t/evil.example", "/\r\nSet-Cookie: a=b", "/a b", "/a\x00", "/\xe4", "/%2fevil.example", "/%5Cevil.example", "/%252fevil.example", " /a", "/a\\b",
    "/\\evil.example?a", "/a\\b?c=\\"])
def test_target_of_another_host_is_rejected(keyed, target):
    server = keyed()
    token = token_of(get(server))
    reply = answer(server, token, find_nonce(token), target, host="site.example")
    assert failed(reply) and "Location" not in reply and 'href="/"' in reply.text


@pytest.mark.parametrize("target", ["/", "/a/x.txt", "/?q=//evil", "/a//b", "/.well-known/x", "/%C3%A4?x=%2F&y='\"<>", "/a?b=https://x.example/", "/" + "a" * 3000,
                                    "/?\\", "/a?b=c\\d&e=\\\\f"])
def test_target_on_this_host_is_reached(keyed, target):
    server = keyed()
    token = token_of(get(server))
    assert answer(server, token, find_nonce(token), target, host="site.example")["Location"] == target
    reply = answer(server, token, find_nonce(token, solves=False), target, host="site.example")
    link = re.search('href="(.*?)"', reply.text)[1]
    assert failed(reply) and not set("<>'\"") & set(link) and html.unescape(link) == target


# ---- Rules ----

def test_first_matching_rule_decides(challenged):
    server = challenged("Allow /robots.txt /a/*\nAllow header X-Key secret\nChallenge header User-Agent *Mozilla* not from 10.0.0.0/8\nChallenge /x*\n" + EASY)
    agent = [("User-Agent", "Mozilla/5.0")]
    assert is_challenge(server.get("/", fields=agent)) and is_challenge(server.get("/x"))
    assert server.get("/").text == "index" and server.get("/a/x.txt", fields=agent).text == "text"
    assert server.get("/robots.txt", fields=agent).status == 404 and server.get("/", fields=[*agent, ("X-Key", "secret")]).text == "index"


def test_path_is_challenged_if_any_interpretation_is(challenged):
    server = challenged(f"Challenge /admin/*\n{EASY}")
    for target in ("/admin/x", "//admin/x", "/%61dmin/x", "/b/../admin/x", "/admin%2fx", "/admin;a/x", "/b/..;/admin/x"):
        assert is_challenge(server.get(target)), target
    assert server.get("/adminx").status == 404


def test_acme_challenges_are_exempt(challenged, site):
    site.add(".well-known/acme-challenge/abc", "proof")
    server = challenged()
    assert server.get("/.well-known/acme-challenge/abc").text == "proof"
    for target in ("/.well-known/acme-challenge", "/.well-known/acme-challenge/../../a/x.txt", "/.well-known/acme-challenge/..;/..;/a/x.txt"):
        assert is_challenge(server.get(target)), target
    assert server.get("/.well-known/acme-challenge/..%2f..%2fa/x.txt").status == 400


def test_acme_exemption_covers_only_the_request_of_an_authority(challenged):
    folder = "/.well-known/acme-challenge/"
    with Backend() as backend:
        server = challenged(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n")
        for rest in ("", "?page=/", "abc?", "abc?page=/", "abc/", "abc/def", "abc.php", "abc;x", "abc%2fdef", "%2e%2e", "a%20b", "abc="):
            assert is_challenge(server.get(folder + rest)), rest
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"):
            assert server.get(folder + "abc", method=method, body=b"x" if method == "POST" else b"").status == 403, method
        assert not backend.requests
        assert server.get(folder + "aZ09-_").status == server.get(folder + "abc", method="HEAD").status == 200
        assert [request.target for request in backend.requests] == [folder + "aZ09-_", folder + "abc"]


@pytest.mark.skipif(not regexes.ARE_THERE, reason="built without PCRE2")
def test_regular_expression_over_its_limit_leads_to_a_challenge(challenged):
    server = challenged(f"Allow header X-Slow ~^(a+)+$\nChallenge header X-Slow ~^(a+)+$\n{EASY}")
    assert is_challenge(server.get("/", fields=[("X-Slow", "a" * 40 + "!")])) and server.get("/", fields=[("X-Slow", "b")]).text == "index"
    assert server.get("/", fields=[("X-Slow", "aaa")]).text == "index"


def test_section_of_a_host_replaces_the_general_one(challenged):
    other = "\n[HOST]\n    ServerName other.example\n    DocumentRoot site\n"
    server = challenged("Challenge /a/*\n" + EASY, top=section(ANY), host="ServerName site.example", sections=other)
    assert server.get("/", host="site.example").text == "index" and is_challenge(server.get("/a/x.txt", host="site.example"))
    assert is_challenge(server.get("/", host="other.example"))


# ---- The page ----

def test_own_page_contains_the_script(challenged, tmp_path):
    (tmp_path / "own.html").write_text('<p>Moment</p><!-- challenge --><p id="end">Ende</p>')
    server = challenged(f"{ANY}\nPage own.html")
    page = server.get("/")
    assert page.text.startswith("<p>Moment</p><script data-token=") and page.text.endswith('</script><p id="end">Ende</p>')
    assert server.get("/", fields=solve(server)).text == "index"


PAGE_FAULTS = [("Page missing.html", r"cannot read .*missing\.html: No such file"), ("Page site", "cannot read .*: Is a directory"),
               ("Page none.html", "must contain `<!-- challenge -->` exactly once"), ("Page two.html", "must contain `<!-- challenge -->` exactly once"),
               ("Page large.html", "is longer than 65536 bytes"), ("KeyFile short", "the secret has 31 characters, but must have at least 32"),
               ("KeyFile empty", "the secret has 0 characters"), ("KeyFile missing", "cannot read .*missing: No such file"),
               ("KeyFile long", "is longer than 4096 bytes"), ("Difficulty 0", "Difficulty"), ("Difficulty 25", "Difficulty"), ("Difficulty x", "Difficulty"),
               ("Status 404", "Status"), ("Lifetime 59s", "Lifetime"), ("Lifetime 2y", "Lifetime"), ("Dificulty 4", "unknown key `Dificulty`.*Difficulty"),
               ("Challenge", "Challenge"), ("Challenge from x", "x"), ("Allow file", "file"), ("Challenge user-agent x", "user-agent"), ("Difficulty 4", "Difficulty")]


@pytest.mark.parametrize("line, message", PAGE_FAULTS, ids=[line for line, _ in PAGE_FAULTS])
def test_invalid_configuration_is_reported_with_its_line(run, tmp_path, site, line, message):
    files = {"none.html": "<p>", "two.html": "<!-- challenge -->" * 2, "large.html": "<!-- challenge -->" + "x" * 65536, "short": "x" * 31, "empty": "",
             "long": "x" * 5000}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "m.conf").write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load challenge\n[HOST]\n    DocumentRoot site\n{section(ANY)}    {line}\n")
    done = run("-c", tmp_path / "m.conf", "-t")
    assert done.code != 0 and re.search(rf"m\.conf:1[0-9]:\d+: error: .*{message}", done.err + done.out, re.S), done.err


def test_section_without_challenge_is_a_warning(run, tmp_path, site):
    (tmp_path / "m.conf").write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load challenge\n[HOST]\n    DocumentRoot site\n{section('Allow all')}")
    done = run("-c", tmp_path / "m.conf", "-t")
    assert done.code == 0 and "m.conf:7:1: warning: no rule `Challenge`: no request is challenged" in done.err + done.out


def test_settings_are_printed(run, tmp_path, site):
    keys = "Allow /robots.txt\nChallenge header User-Agent *Mozilla*\nAllow /x\nDifficulty 12\nLifetime 2h\nStatus 429\n"
    (tmp_path / "m.conf").write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load challenge\n[HOST]\n    DocumentRoot site\n{section(keys)}")
    done = run("-c", tmp_path / "m.conf", "-T")
    shown = done.out[done.out.index("[CHALLENGE]"):]
    assert re.search(r"Allow +/robots.txt\n +Challenge +header User-Agent \*Mozilla\*\n +Allow +/x\n", shown), shown
    assert re.search(r"Difficulty +12\n", shown) and re.search(r"Status +429\n", shown)


# ---- Reloads, workers, upgrades ----

def test_pass_survives_a_reload(challenged):
    server = challenged(workers=2)
    cookie = solve(server)
    reload(server)
    assert server.get("/", fields=cookie).text == "index"


def test_pass_survives_the_end_of_a_worker(challenged):
    server = challenged()
    cookie = solve(server)
    old, = server.workers
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: server.workers and old not in server.workers, "a new worker")
    server.allow(r"worker \d+ was killed by signal 9", "crash")
    assert server.get("/", fields=cookie).text == "index"


def test_higher_difficulty_makes_passes_invalid(challenged):
    server = challenged()
    token = token_of(server.get("/"))
    cookie = solve(server)
    reload(server, "Difficulty 4", "Difficulty 6")
    assert token_of(server.get("/", fields=cookie))[:2] == "06"
    assert failed(answer(server, token, find_nonce(token)))
    cookie = solve(server)
    reload(server, "Difficulty 6", "Difficulty 5")
    assert server.get("/", fields=cookie).text == "index"


def test_section_is_added_and_removed_by_a_reload(challenged):
    server = challenged()
    cookie = solve(server)
    reload(server, "Challenge all", "Challenge /none")
    assert server.get("/").text == "index"
    reload(server, "Challenge /none", "Challenge all")
    assert is_challenge(server.get("/")) and server.get("/", fields=cookie).text == "index"
    server.config.write_text(whole := server.config.read_text().replace(section(ANY), ""))
    reload(server)
    assert server.get("/").text == "index" and server.get(PATH).status == 404
    server.config.write_text(whole + section(ANY))
    reload(server)
    assert is_challenge(server.get("/"))


def test_invalid_reload_keeps_the_old_configuration(challenged, tmp_path):
    (tmp_path / "own.html").write_text("<p>one<!-- challenge -->")
    server = challenged(f"{ANY}\nPage own.html")
    (tmp_path / "own.html").unlink()
    server.allow("cannot read", "Page own.html", r"\^", "the new configuration is invalid")
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration is invalid: keeping the old one")
    assert server.get("/").text.startswith("<p>one<script")
    (tmp_path / "own.html").write_text("<p>two<!-- challenge -->")
    reload(server)
    assert server.get("/").text.startswith("<p>two<script")


def test_changed_key_makes_passes_invalid(keyed, tmp_path):
    server = keyed()
    good = passed(sign("pass", 4, time.time() + 1000))
    assert get(server, fields=good).text == "index"
    (tmp_path / "key").write_text("y" * 40)
    reload(server)
    assert is_challenge(get(server, fields=good))
    assert get(server, fields=passed(sign("pass", 4, time.time() + 1000, key="y" * 40))).text == "index"


def test_machines_with_the_same_key_share_passes(keyed):
    one, two = keyed(), keyed()
    token = token_of(get(one))
    cookie = cookie_of(answer(two, token, find_nonce(token), host="site.example"))
    assert get(one, fields=cookie).text == get(two, fields=cookie).text == "index"


def test_servers_without_key_file_have_different_keys(challenged):
    one, two = challenged(), challenged()
    assert is_challenge(two.get("/", fields=solve(one)))


def test_workers_share_the_key(challenged):
    server = challenged(workers=4)
    cookie = solve(server)
    for _ in range(20):
        assert server.get("/", fields=cookie).text == "index" and solve(server)


# ---- Other plugins ----

def test_backend_gets_only_requests_with_a_pass(challenged):
    with Backend() as backend:
        server = challenged(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n")
        assert is_challenge(server.get("/x")) and server.get("/x", method="POST", body=b"x" * 100000).status == 403 and not backend.requests
        assert server.get("/x", method="POST", body=b"content", fields=solve(server, "/x")).status == 200
        request, = backend.requests
        assert request.body == b"content"


def test_challenge_comes_after_security_rewrite_and_limits_and_before_auth(challenged, tmp_path):
    users.add(tmp_path / "users", "ann", "secret")
    server = challenged(plugins=["auth", "security", "rewrite", "limits"], sections="[SECURITY]\n    Deny /denied\n[REWRITE]\n    Redirect 301 prefix /old /a\n"
                        "    Rewrite prefix /new /a\n[AUTH]\n    Location /a/\n    UserFile users\n[LIMITS]\n    Requests /limited 2/d burst 2\n")
    denied = server.get("/denied")
    assert denied.status == 403 and not is_challenge(denied)
    assert server.get("/old/x.txt")["Location"].endswith("/a/x.txt")
    assert is_challenge(server.get("/a/x.txt")) and is_challenge(server.get("/new/x.txt"))
    cookie = solve(server, "/new/x.txt")
    assert server.get("/a/x.txt", fields=cookie).status == 401 == server.get("/new/x.txt", fields=cookie).status
    assert server.get("/new/x.txt", fields=[*cookie, *users.basic("ann", "secret").items()]).text == "text"
    assert [server.get("/limited").status for _ in range(3)] == [403, 403, 429]


@pytest.mark.skipif(not HAS_TLS, reason="built without TLS")
def test_redirect_to_https_comes_first(challenged, encryption):
    server = challenged(listen=["127.0.0.1:0", "127.0.0.2:0 tls"], server=f"Certificate {encryption.certificate} {encryption.key}\nRedirectToHTTPS 8443")
    reply = server.get("/a/x.txt?q")
    assert reply.status == 308 and reply["Location"] == "https://localhost:8443/a/x.txt?q"


def test_rule_applies_to_the_rewritten_path(challenged):
    server = challenged(f"Challenge /a/*\n{EASY}", plugins=["rewrite"], sections="[REWRITE]\n    Rewrite prefix /new /a\n")
    assert is_challenge(server.get("/new/x.txt")) and server.get("/new/x.txt", fields=solve(server, "/new/x.txt")).text == "text"


def test_headers_plugin_cannot_break_the_page(challenged):
    server = challenged(plugins=["headers"], sections="[HEADERS]\n    Set Content-Security-Policy \"script-src 'none'\"\n    Set Cache-Control max-age=100\n    Set X-A b\n")
    page = server.get("/")
    assert "sha256-" in page["Content-Security-Policy"] and page["Cache-Control"] == "no-store" and page["X-A"] == "b"
    assert server.get("/", fields=solve(server))["Content-Security-Policy"] == "script-src 'none'"


def test_error_pages_do_not_replace_the_challenge(challenged, site):
    site.add("sorry.html", "sorry")
    server = challenged(sections="[ERROR_PAGES]\n    403 sorry.html\n")
    assert is_challenge(server.get("/"))


def test_compressed_page_can_be_solved(challenged):
    server = challenged(plugins=["compress"], sections="[COMPRESS]\n")
    reply = server.get("/", fields=[("Accept-Encoding", "gzip")])
    body = gzip.decompress(reply.body) if reply.get("Content-Encoding") == "gzip" else reply.body
    assert b"data-token=" in body


@pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")
@pytest.mark.processes("it starts no group of processes")
def test_isolated_service_gets_only_requests_with_a_pass(challenged, tmp_path):
    source = '#include <duda.h>\nstatic int hello(struct duda_ctx *d)\n{\n    return duda_puts(d, "hello");\n}\nDUDA_SERVICE(guest, DUDA_GET("/", hello, ""));\n'
    tmp_path.chmod(0o755)
    server = challenged(plugins=["isolate"], top=f"[ISOLATE]\n    Service {services.build(tmp_path, 'guest', source)}\n",
                        sections="[ROUTES]\n    /guest/* isolate guest\n    /* static\n")
    assert is_challenge(server.get("/guest/"))
    assert server.get("/guest/", fields=solve(server, "/guest/")).text == "hello"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
@pytest.mark.processes("it does not change its user")
def test_files_are_read_before_the_user_changes(challenged, tmp_path):
    for name, text in (("key", KEY), ("own.html", "<!-- challenge -->")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    tmp_path.chmod(0o755)
    server = challenged(f"{ANY}\nKeyFile key\nPage own.html", server="User nobody", host="ServerName site.example")
    assert get(server).text.startswith("<script")
    assert not is_challenge(get(server, fields=passed(sign("pass", 4, time.time() + 100))))


# ---- Failing allocations, with the release program ----

@pytest.mark.processes("failing allocations would affect the program that embeds it")
def test_challenge_survives_failure_of_any_allocation_of_a_request(keyed, tmp_path):
    fault = Fault("failmalloc", tmp_path)
    server = keyed(f"Allow /robots.txt\n{ANY}", **fault.how)
    cookie = passed(sign("pass", 4, time.time() + 10000))

    def status(target, fields=(), **how):
        try:
            return get(server, target, fields, **how).status
        except (Closed, ConnectionResetError):
            return 503

    def play():
        token = sign("task", 4, time.time())
        solution = urlencode({"token": token, "nonce": find_nonce(token), "target": "/" + "a" * 3000})
        return [status("/"), status("/", cookie), status("/", method="POST"), status(f"{PATH}?{solution}"), status(f"{PATH}?{solution}&token=x", cookie),
                status(f"{PATH}?token=x&target=%2Fa%27&{'x=y&' * 100}")]

    right = [403, 200, 403, 303, 303, 403]
    assert play() == right
    for _ in failing_allocations(fault, server):
        assert all(found in (due, 500, 503) for found, due in zip(play(), right))
    assert play() == right


@pytest.mark.processes("it does nothing at SIGHUP")
def test_challenge_survives_failure_of_any_allocation_of_a_reload(keyed, tmp_path):
    fault = Fault("failmalloc", tmp_path)
    fault.master = 1
    (tmp_path / "own.html").write_text("<!-- challenge -->")
    server = keyed(f"Allow /robots.txt\n{ANY}\nPage own.html", **fault.how)
    server.allow("exited unexpectedly")
    cookie = passed(sign("pass", 4, time.time() + 10000))

    def ended():
        return server.err.text.count("configuration serves") + server.err.text.count("keeping the old one")

    for n in (*range(1, 60), *range(60, 400, 17)):
        fault.failed, fault.count, fault.after = 0, 1, n
        before = ended()
        server.tell(signal.SIGHUP)
        wait_until(lambda: ended() > before, f"the end of the reload in which allocation {n} failed")
        fault.after = 0
        assert get(server, fields=cookie).status == 200 and get(server).status == 403, n
    assert "keeping the old one" in server.err.text and "configuration serves" in server.err.text


# ---- Observation ----

def test_log_gives_the_reason(challenged, tmp_path):
    server = challenged(plugins=["logger"], sections="[LOGGER]\n    AccessLog access.log\n    Format %U %s %{reason}x\n", server="LogLevel debug")
    token = token_of(server.get("/a/x.txt"))
    answer(server, token, find_nonce(token, solves=False))
    cookie = cookie_of(answer(server, token, find_nonce(token)))
    server.get("/a/x.txt", fields=cookie)
    log = tmp_path / "access.log"
    lines = ["/a/x.txt 403 challenged", f"{PATH} 403 challenge_failed", f"{PATH} 303 challenge_solved", "/a/x.txt 200 ok"]
    wait_until(lambda: log.exists() and log.read_text().splitlines() == lines, "the access log")
    assert "challenge: rejected a solution: wrong nonce" in server.log


def test_metrics_count_challenges(challenged):
    server = challenged(plugins=["metrics"], keys=f"Allow /metrics\n{ANY}", host="ServerName site.example",
                        sections="[ROUTES]\n    /metrics metrics\n    /* static\n", workers=2)
    token = token_of(get(server))
    for nonce in (find_nonce(token), find_nonce(token, solves=False), "x"):
        answer(server, token, nonce, host="site.example")

    def counts():
        text = get(server, "/metrics").text
        return [int(re.search(rf'^monkey_challenge_{what}_total{{host="site.example"}} (\d+)$', text, re.M)[1]) for what in ("issued", "solved", "failed")]

    wait_until(lambda: counts() == [1, 1, 2], "the counters")


def test_hosts_without_challenges_take_no_statistics(challenged):
    """5,000 hosts would leave no room for the statistics of the others."""
    others = "".join(f"[HOST]\n    ServerName h{i}.example\n    DocumentRoot site\n" for i in range(5000))
    server = challenged(plugins=["metrics"], keys=f"Allow /metrics\n{ANY}", top=section(ANY), host="ServerName site.example",
                        sections=f"[ROUTES]\n    /metrics metrics\n    /* static\n[METRICS]\n    ByHost off\n{others}")
    for host in ("site.example", "h1.example", "h4999.example"):
        assert is_challenge(server.get("/", host=host))
    counted = re.findall(r'^monkey_challenge_issued_total{host="(.*?)"} 1$', get(server, "/metrics").text, re.M)
    assert sorted(counted) == ["h1.example", "h4999.example", "site.example"]


def explained(server, target):
    return subprocess.run([PROGRAM, "explain", "-c", server.config, "GET", target], capture_output=True, text=True, check=False).stdout


def test_explain_names_the_rule(challenged):
    server = challenged(f"Challenge /a/*\n{EASY}")
    assert re.search(r"^challenge +Challenge /a/\*: the client must solve a challenge$", explained(server, "/a/x.txt"), re.M)
    assert not re.search("^challenge ", explained(server, "/"), re.M)
    server = challenged(f"Allow /a/*\nChallenge all\n{EASY}")
    assert re.search(r"^challenge +Allow /a/\*$", explained(server, "/a/x.txt"), re.M)


# ---- The script ----

def run_script(page, tmp_path, pathname, search):
    """Runs the script of the page at this URL; returns the URL that it goes to, or else the status that it shows."""
    script, = re.findall(r"<script[^>]*>(.*?)</script>", page.text, re.S)
    (tmp_path / "run.js").write_text(f"""
        const status = {{dataset: {{}}, textContent: ""}}, bar = {{value: 0}};
        globalThis.document = {{currentScript: {{dataset: {{token: "{token_of(page)}"}}}}, getElementById: id => id.endsWith("status") ? status : bar}};
        Object.defineProperty(globalThis, "navigator", {{value: {{cookieEnabled: true}}, configurable: true}});
        globalThis.sessionStorage = {{}};
        globalThis.location = {{pathname: "{pathname}", search: "{search}", hash: "#part", replace: url => console.log(url)}};
        {script}
        if (status.textContent) console.log(status.textContent);""")
    done = subprocess.run([NODE, tmp_path / "run.js"], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


needs_node = pytest.mark.skipif(not NODE, reason="node is missing")


@needs_node
@pytest.mark.parametrize("bits", [1, 8, 13, 17])
def test_script_finds_the_first_solution(challenged, tmp_path, bits):
    page = challenged(f"Challenge all\nDifficulty {bits}").get("/")
    token = token_of(page)
    url = urlsplit(run_script(page, tmp_path, "//a/b", "?c=d&e=%26"))
    assert url.path == PATH and url.fragment == "part"
    assert parse_qs(url.query) == {"token": [token], "nonce": [str(find_nonce(token))], "target": ["/a/b?c=d&e=%26"]}


@needs_node
@pytest.mark.parametrize("pathname, search, goes", [
    ("/en" + PATH, "", False), (f"/en{PATH}/", "", False), (PATH, "", False), ("/moved", f"?token={'0' * 42}&nonce=1&target=/", False),
    ("/a", f"?next={PATH}", True), ("/a", "?token=0&nonce=1", True)])
def test_script_does_not_answer_after_a_redirect_of_an_answer(challenged, tmp_path, pathname, search, goes):
    shown = run_script(challenged().get("/"), tmp_path, pathname, search)
    assert shown.startswith(PATH + "?token=") if goes else shown == f"This site redirects {PATH}, so the check cannot end."


needs_browser = pytest.mark.skipif(not browser.FOUND, reason="no browser")


@needs_browser
@pytest.mark.parametrize("protocol", ["h1", "h2-tls"], indirect=True)
def test_browser_solves_the_challenge(challenged, site, tmp_path):
    site.add("page.html", "<title>arrived</title>")
    server = challenged("Allow /favicon.ico\nChallenge all\nDifficulty 12", workers=2)
    with browser.Browser(tmp_path, "--ignore-certificate-errors") as page:
        page.goto(server.url + "/page.html?q=%C3%A4&b='#part")
        page.wait_for("document.title == 'arrived'")
        assert page.run("location.pathname + location.search + location.hash") == "/page.html?q=%C3%A4&b=%27#part"
        assert page.run("history.length") == 2  # about:blank and the page, without the challenge
        page.goto(server.url + "/page.html?again")
        assert page.run("document.title") == "arrived"
        assert [line for line in page.console if "favicon" not in line and "status of 403" not in line] == []


@needs_browser
def test_browser_returns_to_a_query_with_a_backslash(challenged, site, tmp_path):
    site.add("page.html", "<title>arrived</title>")
    server = challenged("Allow /favicon.ico\nChallenge all\nDifficulty 6")
    with browser.Browser(tmp_path) as page:
        page.goto(server.url + "/page.html?a=b\\c")
        page.wait_for("document.title == 'arrived'")
        assert page.run("location.pathname + location.search") == "/page.html?a=b\\c"


@needs_browser
@pytest.mark.skipif(not regexes.ARE_THERE, reason="built without PCRE2")
@pytest.mark.parametrize("exception, shown", [("", "This site redirects"), (r"|\.well-known/", "arrived")])
def test_browser_stops_if_answers_are_redirected(challenged, site, tmp_path, exception, shown):
    site.add("en/page.html", "<p id=challenge-status>arrived</p>")
    server = challenged("Allow /favicon.ico\nChallenge all\nDifficulty 6", plugins=["rewrite"],
                        sections=f"[REWRITE]\n    Redirect 302 regex ^/(?!en/{exception})(.*)$ /en/$1\n")
    with browser.Browser(tmp_path) as page:
        page.goto(server.url + "/page.html")
        page.wait_for(f"document.getElementById('challenge-status')?.textContent.startsWith('{shown}')")


@needs_browser
@pytest.mark.skipif(not HAS_TLS, reason="built without TLS")
def test_browser_solves_challenges_of_both_schemes_of_a_host(challenged, site, encryption, tmp_path):
    """The `Secure` cookie of the first page must not block the cookie of the second one."""
    site.add("page.html", "<title>arrived</title>")
    server = challenged("Allow /favicon.ico\nChallenge all\nDifficulty 6", listen=["127.0.0.1:0", "127.0.0.2:0 tls"],
                        server=f"Certificate {encryption.certificate} {encryption.key}")
    plain, tls = (f"site.test:{address[1]}" for address in server.addresses)
    with browser.Browser(tmp_path, "--ignore-certificate-errors", f"--host-resolver-rules=MAP {plain} 127.0.0.1, MAP {tls} 127.0.0.2") as page:
        for scheme, host in (("https", tls), ("http", plain)):
            page.goto(f"{scheme}://{host}/page.html?{scheme}")
            page.wait_for(f"document.title == 'arrived' && location.protocol == '{scheme}:'")


@needs_browser
def test_browser_without_the_cookie_is_told_so(challenged, site, tmp_path):
    server = challenged("Allow /favicon.ico\nChallenge all\nDifficulty 6", plugins=["headers"], sections="[HEADERS]\n    Remove Set-Cookie\n")
    with browser.Browser(tmp_path) as page:
        page.goto(server.url + "/")
        page.wait_for("document.getElementById('challenge-status')?.textContent.startsWith('Allow cookies')")


@needs_browser
def test_browser_shows_own_text(challenged, tmp_path):
    (tmp_path / "own.html").write_text('<p id="challenge-status" data-cookies="Keine Cookies">Moment</p><!-- challenge -->')
    server = challenged("Allow /favicon.ico\nChallenge all\nDifficulty 6\nPage own.html", plugins=["headers"], sections="[HEADERS]\n    Remove Set-Cookie\n")
    with browser.Browser(tmp_path) as page:
        page.goto(server.url + "/")
        page.wait_for("document.getElementById('challenge-status')?.textContent == 'Keine Cookies'")
