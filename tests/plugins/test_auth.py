# SPDX-License-Identifier: Apache-2.0
"""The auth plugin: Basic, locations, user files, wrong passwords, and hashing that does not delay other requests."""
import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from client import Closed
from fault_injection import Fault
from proc import computed, wait_until
from users import add, basic, get, passwd, sha1

KINDS = ["yescrypt", "bcrypt", "sha512", "sha256"]


@pytest.fixture(scope="module")
def ana_and_bob(tmp_path_factory):
    file = tmp_path_factory.mktemp("auth") / "users"
    add(file, "ana", "secret", "-b", "bcrypt", "-r", "4")
    add(file, "bob", "hidden", "-b", "bcrypt", "-r", "4")
    return file


@pytest.fixture
def users(tmp_path, ana_and_bob):
    """The users ana (password secret) and bob (hidden), with cheap hashes."""
    return Path(shutil.copy(ana_and_bob, tmp_path / "users"))


@pytest.fixture
def guarded(monkey, site, users):
    """Starts a server whose /private requires a password; `more` contains further keys."""
    site.add("a", "everybody\n")
    site.add("private/a", "few\n")

    def start(more="", sections="", **how):
        keys = "".join(f"    {line.strip()}\n" for line in more.strip().splitlines())
        return monkey(plugins=["auth"], sections="[AUTH]\n    Location /private\n    UserFile users\n" + keys + sections,
                      **how)

    return start


def curl(server, *options, target="/private/a"):
    done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *options, server.url + target],
                          capture_output=True, text=True, timeout=60)
    return int(done.stdout)


# Access control

def test_auth_basic_challenges_and_accepts_password(guarded):
    server = guarded("Realm \"The few\"")
    reply = server.get("/private/a")
    assert reply.status == 401
    assert reply.all("WWW-Authenticate") == ['Basic realm="The few", charset="UTF-8"']
    assert get(server, "ana", "secret").text == "few\n"
    assert get(server, "bob", "hidden").text == "few\n"
    for user, password in [("ana", "hidden"), ("ana", ""), ("", ""), ("", "secret"), ("eve", "secret"),
                           ("ana", "secret2"), ("ana", "Secret"), ("ANA", "secret")]:
        reply = get(server, user, password)
        assert reply.status == 401 and "WWW-Authenticate" in reply, (user, password)
    assert server.get("/a").text == "everybody\n"


def test_auth_basic_works_with_curl(guarded):
    server = guarded()
    assert curl(server) == 401
    assert curl(server, "-u", "ana:secret") == 200
    assert curl(server, "--basic", "-u", "ana:wrong") == 401
    assert curl(server, "--anyauth", "-u", "ana:secret") == 200
    assert curl(server, "-I", "-u", "ana:secret") == 200


@pytest.mark.parametrize("kind", KINDS)
def test_auth_accepts_every_hash_kind(guarded, users, kind):
    add(users, "eva", "secret", "-b", kind)
    server = guarded()
    assert get(server, "eva", "secret").status == 200
    assert get(server, "eva", "secrets").status == 401
    assert get(server, "eva", "secre").status == 401


def test_auth_accepts_hashes_of_other_programs(guarded, users):
    """Monkey's mk_passwd and htpasswd created these hashes."""
    with users.open("a") as f:
        f.write(f"old:{sha1('secret')}\nolder:{sha1('secret').replace('SHA1', 'SHA')}\n"
                "apache:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC\n")
    server = guarded()
    assert get(server, "old", "secret").status == 200
    assert get(server, "old", "secret ").status == 401
    assert get(server, "older", "secret").status == 200
    assert get(server, "apache", "myPassword").status == 200
    assert get(server, "apache", "mypassword").status == 401
    server.err.wait_for(r"warning: .*users: 2 passwords are hashed with \{SHA1\}")


def test_auth_names_and_passwords_may_have_any_characters(guarded, users):
    add(users, "jäsøn doe", "Grüße: a:b \\ \" ,=")
    add(users, "long", "x" * 511)
    server = guarded()
    assert get(server, "jäsøn doe", "Grüße: a:b \\ \" ,=").status == 200
    assert get(server, "jäsøn doe", "Grüße").status == 401
    assert get(server, "long", "x" * 511).status == 200
    assert get(server, "long", "x" * 510).status == 401


def test_auth_user_appears_in_access_log(guarded, tmp_path):
    server = guarded(server="AccessLog access.log\nAccessLogFormat combined")
    assert get(server, "ana", "secret").status == 200
    assert server.get("/a").status == 200
    server.stop()
    first, second = (tmp_path / "access.log").read_text().splitlines()
    assert first.startswith("127.0.0.1 - ana [") and second.startswith("127.0.0.1 - - [")


def test_auth_scheme_is_case_insensitive(guarded):
    server = guarded()
    value = basic("ana", "secret")["Authorization"].removeprefix("Basic ")
    for scheme in ["basic ", "BASIC ", "bAsIc   "]:
        assert server.get("/private/a", fields={"Authorization": scheme + value}).status == 200
    for scheme in ["Bearer ", "Digest ", "Basi ", "Basicc "]:
        reply = server.get("/private/a", fields={"Authorization": scheme + value})
        assert reply.status == 401 and "WWW-Authenticate" in reply


def test_auth_applies_to_every_method(guarded):
    server = guarded()
    for method in ["HEAD", "OPTIONS", "PUT", "POST", "DELETE", "BREW"]:
        body = b"x" if method in ("PUT", "POST") else b""
        assert server.get("/private/a", method=method, body=body).status == 401, method
    assert server.get("/private/a", method="POST", body=b"x" * 100000).status == 401
    assert server.get("/private/a", method="HEAD", fields=basic("ana", "secret")).status == 200


# Locations

def test_auth_location_covers_paths_below_it(guarded, site):
    site.add("private.html")
    site.add("priv")
    server = guarded()
    for target in ["/private", "/private/", "/private/a", "/private/none", "/private.html", "/%70rivate/a",
                   "//private/a", "/x/../private/a", "/private/../private/a", "/./private/a?b", "/privat%65"]:
        assert server.get(target).status == 401, target
    for target in ["/", "/a", "/priv", "/private/../a"]:
        assert server.get(target).status in (200, 301, 403), target


def test_auth_location_with_trailing_slash_covers_folder(guarded, site):
    site.add("deep/a", "deep")
    site.add("deeper", "deeper")
    server = guarded(sections="[AUTH]\n    Location /deep/\n    UserFile users\n")
    assert [server.get(target).status for target in ["/deep", "/deep/", "/deep/a", "/deeper"]] == [401, 401, 401, 200]


def test_auth_longest_location_wins(guarded, site, tmp_path):
    add(tmp_path / "others", "zoe", "zoe")
    site.add("private/inner/a", "inner")
    site.add("private/inner/open/a", "open")
    server = guarded(sections="""[AUTH]
    Location /private/inner/open/
    Type None
[AUTH]
    Location /private/inner
    Realm Inner
    UserFile others
""")
    inner = "/private/inner/a"
    assert server.get(inner)["WWW-Authenticate"].startswith('Basic realm="Inner"')
    assert get(server, "zoe", "zoe", inner).text == "inner"
    assert get(server, "ana", "secret", inner).status == 401
    assert get(server, "zoe", "zoe").status == 401
    assert get(server, "ana", "secret").status == 200
    assert server.get("/private/inner/open/a").text == "open"
    assert server.get("/private/inner/open/../a").status == 401


def test_auth_encoded_slashes_do_not_bypass_location(guarded, site):
    site.add("private/inner/a")
    server = guarded(sections="[AUTH]\n    Location /private/inner\n    UserFile users\n    Realm Inner\n")
    for target in ["/private%2Fa", "/private%2fa", "/private/inner%2Fa", "/private/inner/x%2Fy"]:
        assert server.get(target).status == 401, target
    for target in ["/x%2Fprivate/a", "/x/y%2Fz", "/x%2F..%2F"]:
        assert server.get(target).status not in (200, 401), target
    for target in ["/x%2F../private/a", "/x/..%2Fprivate/a", "/.%2Fprivate/a", "/%2Fprivate/a", "/private%2Finner/a",
                   "/private/inner%2F..%2Fa", "/private/inner%2F..", "/x%2f..%2fprivate"]:
        assert server.get(target).status in (400, 401, 403), target
        assert get(server, "ana", "secret", target).status != 200, target


def test_auth_hosts_have_separate_locations(monkey, site, users, tmp_path):
    site.add("a", "a")
    add(tmp_path / "others", "zoe", "zoe", "-b", "bcrypt", "-r", "4")
    server = monkey(plugins=["auth"], host="ServerName one", top="[AUTH]\n    Location /\n    UserFile users\n", sections="""
[HOST]
    ServerName two
    DocumentRoot site
[AUTH]
    Location /
    UserFile others
[HOST]
    ServerName three
    DocumentRoot site
""")
    for host, status in [("one", 200), ("two", 401), ("three", 200)]:
        assert get(server, "ana", "secret", "/a", host=host).status == status, host
    assert get(server, "zoe", "zoe", "/a", host="two").status == 200
    assert get(server, "zoe", "zoe", "/a", host="one").status == 401


def test_auth_require_user_limits_users(guarded):
    server = guarded("Require user bob zoe\nRequire user \"jim beam\"")
    assert get(server, "bob", "hidden").status == 200
    reply = get(server, "ana", "secret")
    assert reply.status == 403 and "WWW-Authenticate" not in reply
    assert get(server, "ana", "wrong").status == 401
    server.err.wait_for(r'warning: .*users has no entry for user "zoe" in this location')
    server.err.wait_for(r'warning: .*users has no entry for user "jim beam" in this location')
    warnings = {line.rsplit('"', 2)[-2]: line for line in server.err.text.splitlines() if "has no entry for user" in line}
    lines = server.config.read_text().splitlines()
    for name, line in warnings.items():
        assert name in lines[int(re.search(r"monkey\.conf:(\d+):", line)[1]) - 1], line
    server.err.wait_for(r'auth: access denied for user "ana" at /private')


# Address or password

def test_auth_required_address_or_password_suffices(guarded, site):
    site.add("private/inner/a", "inner\n")
    server = guarded("MaxAttempts 2\nRequire address 127.0.0.2 127.0.0.16/28\nRequire user ana",
                     "[AUTH]\n    Location /private/inner\n    UserFile users\n")
    for source, expected in [("127.0.0.1", 401), ("127.0.0.2", 200), ("127.0.0.3", 401), ("127.0.0.17", 200), ("127.0.0.32", 401)]:
        with server.connect(source=source) as c:
            assert c.get("/private/a").status == expected, source
        with server.connect(source=source) as c:
            assert c.get("/private/inner/a").status == 401, "the inner location names no address"
    assert get(server, "ana", "secret").status == 200
    assert get(server, "bob", "hidden").status == 403
    for _ in range(4):
        with server.connect(source="127.0.0.2") as c:
            assert c.get("/private/a", fields=basic("ana", "wrong")).status == 200, "the password is not checked"


def test_auth_address_comes_from_trusted_proxy_header(monkey, site, users):
    site.add("private/a", "few\n")
    server = monkey(plugins=["auth", "security"], top="[SECURITY]\n    TrustedProxy 127.0.0.1\n    RealAddress X-Forwarded-For\n"
                    "[AUTH]\n    Location /private\n    UserFile users\n    Require address 203.0.113.0/24\n")
    for source, told, expected in [("127.0.0.1", "203.0.113.9", 200), ("127.0.0.1", "198.51.100.1", 401),
                                   ("127.0.0.2", "203.0.113.9", 401), ("127.0.0.1", "203.0.113.9, 198.51.100.1", 401)]:
        with server.connect(source=source) as c:
            assert c.get("/private/a", fields={"X-Forwarded-For": told}).status == expected, (source, told)


def test_auth_address_comes_from_proxy_protocol(monkey, site, users):
    site.add("private/a", "few\n")
    server = monkey(plugins=["auth", "security"], top="[SECURITY]\n    TrustedProxy 127.0.0.1\n    ProxyProtocol on\n"
                    "[AUTH]\n    Location /private\n    UserFile users\n    Require address 203.0.113.0/24 127.0.0.2\n")
    for header, expected in [(b"PROXY TCP4 203.0.113.9 192.0.2.1 4711 80\r\n", 200), (b"PROXY TCP4 198.51.100.1 192.0.2.1 4711 80\r\n", 401),
                             (b"PROXY TCP4 127.0.0.2 192.0.2.1 4711 80\r\n", 200), (b"PROXY UNKNOWN\r\n", 401)]:
        with server.connect() as c:
            c.send(header)
            for _ in range(2):
                assert c.get("/private/a").status == expected, header
    with server.connect(source="127.0.0.2") as c:  # not a trusted proxy, so the limit applies to this address itself
        assert c.get("/private/a").status == 200
    with server.connect(source="127.0.0.3") as c:
        assert c.get("/private/a").status == 401


@pytest.mark.parametrize("order", [["auth", "security", "rewrite"], ["rewrite", "security", "auth"]], ids="-".join)
def test_auth_address_works_with_rewrite_fallback_error_pages_and_deny(monkey, site, users, order):
    site.add("private/a", "few\n")
    site.add("private/index.html", "front\n")
    site.add("asked.html", "who are you?\n")
    server = monkey(plugins=order, host="Fallback private/index.html", sections="""
[ERROR_PAGES]
    401 asked.html
[SECURITY]
    Deny /private/* from 127.0.0.4
[REWRITE]
    Rewrite glob /short /private/a
[AUTH]
    Location /private
    UserFile users
    Require address 127.0.0.2 127.0.0.4
""")
    for source, status, text in [("127.0.0.1", 401, "who are you?\n"), ("127.0.0.2", 200, "few\n"), ("127.0.0.4", 403, None)]:
        for target in ("/short", "/private/a"):
            with server.connect(source=source) as c:
                reply = c.get(target)
                assert reply.status == status and (text is None or reply.text == text), (source, target)
    with server.connect(source="127.0.0.2") as c:
        assert c.get("/private/none").text == "front\n"
    with server.connect(source="127.0.0.1") as c:
        assert c.get("/private/none").status == 401


@pytest.mark.processes("it explains nothing")
def test_explain_shows_that_auth_needs_no_password(guarded):
    server = guarded("Require address unix:")
    done = subprocess.run([server.process.args[0], "-c", server.config, "explain", "GET", "/private/a"],
                          capture_output=True, text=True, timeout=60)
    assert re.search(r"^auth +/private requires no password from this address$", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.processes("it explains nothing")
def test_explain_shows_why_auth_asks(guarded, tmp_path, monkey):
    server = guarded()
    done = subprocess.run([server.process.args[0], "-c", server.config, "explain", "GET", "/private/a"],
                          capture_output=True, text=True, timeout=60)
    assert re.search(r"^auth +/private requires a password \(Basic, .*users\)$", done.stdout, re.MULTILINE)
    assert "401" in done.stdout


# Client input

def b64(data):
    return "Basic " + base64.b64encode(data).decode()


@pytest.mark.parametrize("value", [
    "Basic", "Basic ", "Basic !!!!", "Basic YW5h", "Basic =", "Basic YW5hOnNlY3JldA= =", "Basic YW5hOnNlY3JldA==x",
    "Basic YW5hOnNlY3JldA== YW5hOnNlY3JldA==", "Basic realm=\"x\"", "Basic YW5hOnNlY3J\tldA==", "Basic YW5hOnNlY3Jld_-=",
    b64(b"ana"), b64(b""), b64(b"ana:secret\0"), b64(b"ana\0:secret"), b64(b"\0"), b64(b"ana:sec\nret"),
    b64(b"ana\x7f:secret"), b64(b"ana:" + b"x" * 512), b64(b"a" * 800), b64(b"ana:" + b"x" * 5000), "Basic " + "A" * 7000,
    "Basic " + "=" * 7000, "Basic " + "," * 7000])
def test_auth_malformed_credentials_are_refused(guarded, value):
    server = guarded()
    reply = server.get("/private/a", fields={"Authorization": value})
    assert reply.status == 401 and reply["WWW-Authenticate"].startswith("Basic realm=")
    assert get(server, "ana", "secret").status == 200


@pytest.mark.parametrize("value", ["", "x", "Basic:YW5hOnNlY3JldA==", "Negotiate abc", b64(b":"), b64(b"::::"),
                                   b64(b"ana:\xff\xfe"), b64(b"\xc3\x28:secret"), b64(b"n" * 256 + b":x")])
def test_auth_credentials_of_other_schemes_are_refused(guarded, value):
    server = guarded()
    assert server.get("/private/a", fields={"Authorization": value}).status == 401


def test_auth_duplicate_authorization_header_is_refused(guarded):
    server = guarded()
    right, wrong = basic("ana", "secret")["Authorization"], basic("ana", "wrong")["Authorization"]
    for pair in [(right, wrong), (wrong, right), (right, right)]:
        fields = [("Authorization", value) for value in pair]
        assert server.get("/private/a", fields=fields).status == 400


# Wrong passwords

def test_auth_max_attempts_blocks_address_for_a_time(guarded):
    server = guarded("MaxAttempts 5\nAttemptWindow 2s")
    assert get(server, "ana", "secret").status == 200
    for _ in range(5):
        assert get(server, "ana", "wrong").status == 401
    blocked = get(server, "ana", "wrong")
    assert blocked.status == 429 and 1 <= int(blocked["Retry-After"]) <= 2
    assert "WWW-Authenticate" not in blocked
    server.err.wait_for("auth: 5 failed attempts from this address: blocked for [12] s")
    assert get(server, "ana", "secret").status == 429, "guessing is blocked"
    assert get(server, "nobody", "x").status == 429
    assert server.get("/private/a").status == 401, "a client without a password gets only the challenge"
    assert server.get("/a").status == 200
    assert curl(server, "--interface", "127.0.0.2", "-u", "ana:secret") == 200, "other addresses are not affected"
    wait_until(lambda: get(server, "ana", "secret").status == 200, "the end of AttemptWindow")


def test_auth_correct_passwords_do_not_count_as_attempts(guarded):
    server = guarded("MaxAttempts 2\nCacheTTL off")
    for _ in range(6):
        assert get(server, "ana", "secret").status == 200
    assert get(server, "ana", "wrong").status == 401
    assert get(server, "ana", "secret").status == 200
    assert get(server, "ana", "wrong").status == 401
    assert get(server, "ana", "secret").status == 429


@pytest.mark.parametrize("password", ["sha1", "bcrypt", "nobody"])
def test_auth_concurrent_attempts_cannot_bypass_limit(guarded, users, password):
    with users.open("a") as f:
        f.write(f"old:{sha1('secret')}\n")
    server = guarded("MaxAttempts 5")
    user = {"sha1": "old", "bcrypt": "ana", "nobody": "eve"}[password]
    clients = [server.connect() for _ in range(40)]
    for i, client in enumerate(clients):
        client.ask("/private/a", fields=basic(user, f"wrong{i}"))
    statuses = sorted(client.read().status for client in clients)
    assert statuses == [401] * 5 + [429] * 35


def test_auth_max_attempts_holds_under_flood(guarded):
    """One address sends thousands of guesses: other addresses are not affected, and the excess guesses are never hashed."""
    server = guarded("MaxAttempts 10", workers=2, server="KeepAliveRequests 100000")
    stop, statuses = threading.Event(), []

    def storm(thread):
        with server.connect() as client:
            while not stop.is_set():
                password = f"{thread}.{len(statuses)}"  # the same password twice at the same time would count as one attempt
                statuses.append(client.get("/private/a", fields=basic("ana", password)).status)

    threads = [threading.Thread(target=storm, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(statuses) > 1000, "many tries")
    assert curl(server, "--interface", "127.0.0.3", "-u", "ana:secret") == 200
    stop.set()
    for thread in threads:
        thread.join()
    assert statuses.count(401) == 10 and set(statuses) == {401, 429}


def test_auth_attempts_are_shared_by_workers_and_survive_them(guarded):
    server = guarded("MaxAttempts 6", workers=2)
    server.allow(r"worker \d+ was killed by signal 9")
    for _ in range(3):
        assert get(server, "ana", "wrong").status == 401
    before = server.workers
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(server.workers) == 2 and not set(before) & set(server.workers), "new workers")
    for _ in range(3):
        assert get(server, "ana", "wrong").status == 401
    assert get(server, "ana", "secret").status == 429
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert get(server, "ana", "secret").status == 429


def test_auth_log_messages_cannot_be_forged(guarded):
    server = guarded()
    assert get(server, 'x" at /\xe4 \\ admin', "wrong").status == 401
    server.err.wait_for(r'GET /private/a from 127\.0\.0\.1: auth: wrong user or password: '
                        r'"x\\x22 at /\\xc3\\xa4 \\x5c admin" at /private$')


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_auth_flood_of_addresses_unblocks_nobody(guarded, users):
    """More addresses than the table has entries: blocked addresses stay blocked."""
    with users.open("a") as f:
        f.write(f"old:{sha1('secret')}\n")
    server = guarded("MaxAttempts 3\nAttemptWindow 10m")
    for _ in range(3):
        assert get(server, "old", "wrong").status == 401
    assert get(server, "old", "secret").status == 429
    value = basic("old", "wrong")["Authorization"]
    head = f"GET /private/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: {value}\r\n\r\n".encode()
    for i in range(12000):
        with socket.socket() as s:
            s.bind((f"127.1.{i >> 8}.{i & 255}", 0))
            s.connect(server.addresses[0][:2])
            s.sendall(head)
            assert s.recv(16).startswith(b"HTTP/1.1 401")
    assert get(server, "old", "secret").status == 429
    assert curl(server, "--interface", "127.2.0.1", "-u", "old:secret") == 200


def test_auth_max_attempts_may_be_off(guarded):
    server = guarded("MaxAttempts off")
    assert {get(server, "ana", "wrong").status for _ in range(30)} == {401}


def test_auth_locations_with_equal_rules_share_attempts(guarded, site):
    site.add("other/a")
    site.add("third/a")
    server = guarded("MaxAttempts 3", sections="[AUTH]\n    Location /other\n    UserFile users\n    MaxAttempts 3\n"
                                            "[AUTH]\n    Location /third\n    UserFile users\n    MaxAttempts 4\n")
    assert get(server, "ana", "wrong").status == 401
    assert get(server, "ana", "wrong", "/other/a").status == 401
    assert get(server, "ana", "wrong").status == 401
    assert get(server, "ana", "secret", "/other/a").status == 429
    assert get(server, "ana", "secret", "/third/a").status == 200


# Hashing takes time, but does not delay other requests

@pytest.fixture
def slow(users):
    """A password whose check takes tenths of a second."""
    add(users, "slow", "secret", "-b", "bcrypt", "-r", "12")
    return users


@pytest.fixture
def slowish(users):
    """A password whose check takes hundredths of a second."""
    add(users, "slow", "secret", "-b", "bcrypt", "-r", "9")
    return users


def is_silent(client):
    client.sock.setblocking(False)
    try:
        return not client.sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    finally:
        client.sock.settimeout(30)


def test_auth_hashing_does_not_block_the_loop(guarded, slow):
    server = guarded("CacheTTL off")
    with server.connect() as waiting, server.connect() as other:
        def is_silent_meanwhile():
            assert other.get("/a").status == 200
            waiting.ask("/private/a", fields=basic("slow", "secret"))
            for _ in range(10):
                assert other.get("/a").status == 200
                assert get(server).status == 401
            silent = is_silent(waiting)
            assert waiting.read().status == 200
            return silent

        # On a busy machine, the hash may finish before the test gets a CPU, so a single attempt is not enough.
        assert any(is_silent_meanwhile() for _ in range(10)), "the hash is faster than the test: choose a higher cost"


def test_auth_cache_avoids_repeated_hashing(guarded, slow):
    server = guarded()
    with server.connect() as client:
        def cost(password, status, times=1):
            def ask():
                for _ in range(times):
                    assert client.get("/private/a", fields=basic("slow", password)).status == status

            return computed(server.workers[0], ask)

        first = cost("secret", 200)
        assert cost("secret", 200, times=20) < first * 2
        assert cost("secret2", 401) > first / 4, "the cache entry is for this password, not for the user"


@pytest.mark.slow
def test_auth_cache_entries_expire(guarded, slow):
    server = guarded("CacheTTL 2s")
    with server.connect() as client:
        def ask():
            assert client.get("/private/a", fields=basic("slow", "secret")).status == 200

        def cost():
            return computed(server.workers[0], ask)

        first = cost()
        assert cost() < first / 3
        wait_until(lambda: cost() > first / 3, "the expiry of the cache entry")


def test_auth_identical_concurrent_credentials_are_hashed_once(guarded, slow):
    """A browser opens several connections at once: their requests count as one attempt and cost one hash."""
    server = guarded("MaxAttempts 1")
    clients = [server.connect() for _ in range(8)]
    for client in clients:
        client.ask("/private/a", fields=basic("slow", "secret"))
    assert [client.read().status for client in clients] == [200] * 8


@pytest.mark.slow
def test_auth_unknown_users_take_as_long_as_known_ones(guarded, users):
    """The response time must not reveal which user names exist."""
    users.unlink()
    add(users, "slow", "secret", "-b", "bcrypt", "-r", "11")
    server = guarded("MaxAttempts off")

    def cost(user, password):
        def ask():
            assert get(server, user, password).status == 401

        return computed(server.workers[0], ask)

    there, not_there = (min(cost(user, f"wrong{i}") for i in range(5)) for user in ("slow", "nobody"))
    assert 0.5 < not_there / there < 2, (there, not_there)
    assert get(server, "nobody", "secret").status == 401, "the dummy hash matches no password"


def test_auth_survives_clients_that_disconnect_during_hashing(guarded, slowish):
    server = guarded("MaxAttempts off")
    for i in range(30):
        with server.connect() as client:
            client.ask("/private/a", fields=basic("slow", f"secret{i}"))
    for i in range(5):
        with server.connect() as client:
            client.ask("/private/a", fields=basic("slow", "secret"))
    assert get(server, "slow", "secret").status == 200


@pytest.mark.slow
def test_auth_too_many_concurrent_hashes_are_refused(guarded, slowish):
    server = guarded("MaxAttempts off")
    clients = [server.connect() for _ in range(150)]
    for i, client in enumerate(clients):
        client.ask("/private/a", fields=basic("slow", f"wrong{i}"))
    with server.connect() as client:
        assert client.get("/a").status == 200
    wait_until(lambda: any(not is_silent(client) for client in clients), "a response")
    busy = [client.read() for client in clients if not is_silent(client)]
    assert any(reply.status == 503 and reply["Retry-After"] == "1" for reply in busy)
    for client in clients:
        client.close()
    wait_until(lambda: get(server, "ana", "secret").status == 200, "free capacity")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_server_stops_while_hashes_are_computed(guarded, slowish, number):
    server = guarded("MaxAttempts off")
    clients = [server.connect() for _ in range(10)]
    for i, client in enumerate(clients):
        client.ask("/private/a", fields=basic("slow", f"wrong{i}"))
    wait_until(lambda: get(server).status == 401, "the server to respond")
    server.stop(number)


# Changes to user files

def test_auth_changed_user_file_applies_after_reload(guarded, users):
    server = guarded()
    assert get(server, "ana", "secret").status == 200
    add(users, "ana", "changed")
    assert passwd(users, "-D", "bob").returncode == 0
    assert get(server, "ana", "secret").status == 200
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert get(server, "ana", "secret").status == 401
    assert get(server, "ana", "changed").status == 200
    assert get(server, "bob", "hidden").status == 401


def test_auth_broken_user_file_rejects_reload(guarded, users):
    server = guarded()
    users.write_text("rubbish\n")
    server.tell(signal.SIGHUP)
    server.err.wait_for(r"users:1: expected name:hash or name:realm:hash")
    assert get(server, "ana", "secret").status == 200


# Failing allocations, with the release program

def test_auth_survives_failure_of_any_allocation_of_a_request(guarded, users, tmp_path):
    fault = Fault("failmalloc", tmp_path)
    server = guarded("CacheTTL off\nMaxAttempts off\nType Basic", sections="[AUTH]\n    Location /zone\n    Type Digest\n"
                     "    Realm Zone\n    UserFile users\n", **fault.how)
    worker = server.workers

    def play():
        refused = 0
        for target, field in [("/private/a", basic("ana", "secret")), ("/private/a", basic("ana", "wrong")),
                              ("/private/a", {}), ("/zone", {}), ("/zone", {"Authorization": "Digest x"})]:
            try:
                status = server.get(target, fields=field).status
                assert status in (200, 400, 401, 503), status
                refused += status == 503
            except (Closed, ConnectionResetError):
                refused += 1
        return refused

    assert play() == 0
    for n in range(1, 500):
        fault.failed, fault.count, fault.after = 0, 1, n
        play()
        if not fault.failed:
            break
        fault.after = 0
        assert get(server, "ana", "secret").status == 200, f"after allocation {n} failed"
        assert server.workers == worker, f"allocation {n} killed a worker:\n{server.log}"
    assert 5 < n < 500
    fault.after = 0
    assert play() == 0


def test_auth_survives_failure_of_any_allocation_of_a_reload(guarded, tmp_path):
    fault = Fault("failmalloc", tmp_path)
    fault.master = 1
    server = guarded(**fault.how)
    server.allow("exited unexpectedly")

    def ended():
        return server.err.text.count("configuration serves") + server.err.text.count("keeping the old one")

    for n in (*range(1, 60), *range(60, 400, 17)):
        fault.failed, fault.count, fault.after = 0, 1, n
        before = ended()
        server.tell(signal.SIGHUP)
        wait_until(lambda: ended() > before, f"the end of the reload in which allocation {n} failed")
        fault.after = 0
        assert get(server, "ana", "secret").status == 200, n
    assert "keeping the old one" in server.err.text and "configuration serves" in server.err.text
