# SPDX-License-Identifier: Apache-2.0
"""The auth plugin: Digest (RFC 7616)."""
import os
import random
import re
import shutil
import signal
import subprocess
from functools import partial

import pytest

from proc import wait_until
from users import DigestClient, add, basic, challenges


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    file = tmp_path_factory.mktemp("auth") / "users"
    add(file, "ana", "secret", "--digest", "Zone")
    add(file, "ana", "secret", "--digest", "Zone", "-b", "md5")
    add(file, "ana", "another", "--digest", "Elsewhere")
    add(file, "ana", "for basic", "-b", "bcrypt", "-r", "4")
    return file


def serve_zone(monkey, site, more="", sections="", **how):
    """Starts a server whose /zone requires Digest; `more` contains further keys."""
    site.add("zone/a", "inside\n")
    site.add("else/a", "elsewhere\n")
    keys = "".join(f"    {line.strip()}\n" for line in more.strip().splitlines())
    return monkey(plugins=["auth"], sections="[AUTH]\n    Location /zone\n    Type Digest\n    Realm Zone\n"
                                             "    UserFile users\n" + keys + sections, **how)


@pytest.fixture
def zone(monkey, site, users, tmp_path):
    shutil.copy(users, tmp_path / "users")
    return partial(serve_zone, monkey, site)


@pytest.fixture(scope="module")
def prepare(users):
    def start(monkey, site):
        shutil.copy(users, site.path.with_name("users"))
        serve_zone(monkey, site, "MaxAttempts off")

    return start


@pytest.fixture
def same(lasting, prepare):
    """A server for all tests that do not need one of their own."""
    return lasting(prepare)


ANA = DigestClient("ana", "secret")


def nonce_of(server, target="/zone/a", **how):
    return challenges(server.get(target, **how))[0]["nonce"]


def ask(server, field, target="/zone/a", **how):
    return server.get(target, fields=field, **how)


def is_stale(reply):
    assert reply.status == 401
    found = challenges(reply)
    assert found
    return found[0].get("stale") == "true"


def is_asked_again(reply):
    return reply.status == 401 and not is_stale(reply)


# Access control

def test_digest_challenge_has_required_parameters(zone):
    server = zone()
    reply = server.get("/zone/a")
    assert reply.status == 401
    only, = challenges(reply)
    assert only.pop("nonce") and only == {"realm": "Zone", "qop": "auth", "algorithm": "SHA-256", "charset": "UTF-8"}
    assert nonce_of(server) != nonce_of(server)


def test_digest_accepts_only_correct_password(zone):
    server = zone()
    assert ask(server, ANA.answer(nonce_of(server))).text == "inside\n"
    for user, password in [("ana", "wrong"), ("ana", ""), ("", "secret"), ("eve", "secret"), ("ana", "for basic"),
                           ("ana", "another")]:
        reply = ask(server, DigestClient(user, password).answer(nonce_of(server)))
        assert not is_stale(reply), (user, password)
    assert ask(server, basic("ana", "for basic")).status == 401
    assert ask(server, basic("ana", "secret")).status == 401


def test_digest_works_with_curl(zone):
    server = zone()

    def curl(*options, target="/zone/a"):
        done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *options, server.url + target],
                              capture_output=True, text=True, timeout=60)
        return int(done.stdout)

    assert curl("--digest", "-u", "ana:secret") == 200
    assert curl("--anyauth", "-u", "ana:secret") == 200
    assert curl("--digest", "-u", "ana:secret", target="/zone/a?x=1&y=%20") == 200
    assert curl("--digest", "-u", "ana:secret", "-I") == 200
    assert curl("--digest", "-u", "ana:secret", "-d", "x=y") == 405
    assert curl("--digest", "-u", "ana:wrong") == 401
    assert curl("--basic", "-u", "ana:secret") == 401


def test_digest_covers_method_and_logs_user(zone, tmp_path):
    server = zone(server="AccessLog access.log\nAccessLogFormat combined")
    nonce = nonce_of(server)
    assert ask(server, ANA.answer(nonce, method="HEAD"), method="HEAD").status == 200
    assert ask(server, ANA.answer(nonce_of(server), method="HEAD")).status == 401
    server.stop()
    assert '127.0.0.1 - ana [' in (tmp_path / "access.log").read_text()


def test_digest_user_names_may_need_escapes(zone, tmp_path):
    for user in ["jäsøn", 'say "hi" \\o/', "comma, = x"]:
        add(tmp_path / "users", user, "pässword", "--digest", "Zone")
    server = zone()
    for user, name, value in [("jäsøn", "username", "jäsøn"), ("jäsøn", "username*", "UTF-8''j%C3%A4s%c3%b8n"),
                              ("jäsøn", "username*", "utf-8'de'j%C3%A4s%C3%B8n"),
                              ('say "hi" \\o/', "username", 'say \\"hi\\" \\\\o/'),
                              ('say "hi" \\o/', "username", '\\s\\ay \\"hi\\" \\\\o/'),
                              ("comma, = x", "username", "comma, = x")]:
        params = DigestClient(user, "pässword").params(nonce_of(server))
        del params["username"]
        field = DigestClient.field({name: value, **params})["Authorization"].encode()
        with server.connect() as client:
            client.send(b"GET /zone/a HTTP/1.1\r\nHost: a\r\nAuthorization: " + field + b"\r\n\r\n")
            assert client.read("GET").status == 200, field


def test_digest_parameter_syntax_is_flexible(zone):
    server = zone()
    params = ANA.params(nonce_of(server))

    def send(text):
        return ask(server, {"Authorization": text}).status

    assert send("DIGEST " + ",".join(f'{n.upper()} = "{v}"' for n, v in reversed(params.items()))) == 200
    params = ANA.params(nonce_of(server))
    params["response"] = params["response"].upper()
    assert send("digest ,, " + " , ".join(f'{n}="{v}"' for n, v in params.items()) + ", opaque=\"\", what=ever,") == 200


# Nonces

def test_digest_nonce_accepts_rising_counts(zone):
    server = zone()
    nonce = nonce_of(server)
    with server.connect() as client:
        for count in range(1, 40):
            assert client.get("/zone/a", fields=ANA.answer(nonce, nc=f"{count:08x}")).status == 200


def test_digest_nonce_accepts_each_count_once_in_any_order(zone):
    server = zone()
    nonce, counts = nonce_of(server), list(range(1, 17))
    random.Random(1).shuffle(counts)
    for count in counts:
        assert ask(server, ANA.answer(nonce, nc=f"{count:08x}")).status == 200, counts
    for count in counts:
        assert is_stale(ask(server, ANA.answer(nonce, nc=f"{count:08x}")))
    assert ask(server, ANA.answer(nonce, nc="00000100")).status == 200
    assert is_stale(ask(server, ANA.answer(nonce, nc="00000011"))), "too old for the window"


@pytest.mark.parametrize("nc", ["00000000", "00020000", "ffffffff"])
def test_digest_invalid_count_is_stale(zone, nc):
    server = zone()
    assert is_stale(ask(server, ANA.answer(nonce_of(server), nc=nc)))


def test_digest_replayed_credentials_are_useless(zone, site):
    site.add("zone/b", "another file")
    server = zone()
    credentials = ANA.answer(nonce_of(server))
    assert ask(server, credentials).status == 200
    assert is_stale(ask(server, credentials))
    assert ask(server, credentials, "/zone/b").status == 400
    assert ask(server, credentials, method="HEAD").status == 401


def test_digest_replay_is_detected_by_all_workers(zone):
    server = zone(workers=2)
    credentials = ANA.answer(nonce_of(server))
    assert sorted(ask(server, credentials).status for _ in range(16)) == [200] + [401] * 15
    nonce = nonce_of(server)
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert ask(server, ANA.answer(nonce)).status == 200, "a nonce survives a reload"
    assert is_stale(ask(server, ANA.answer(nonce)))
    server.allow(r"worker \d+ was killed by signal 9")
    before = server.workers
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(server.workers) == 2 and not set(before) & set(server.workers), "new workers")
    assert is_stale(ask(server, ANA.answer(nonce)))


def test_digest_nonces_expire(zone):
    server = zone("NonceLifetime 1s")
    nonce, count = nonce_of(server), iter(range(1, 10000))
    replies = []
    wait_until(lambda: replies.append(ask(server, ANA.answer(nonce, nc=f"{next(count):08x}"))) or
               replies[-1].status == 401, "the expiry of the nonce")
    assert replies[0].status == 200 and is_stale(replies[-1])
    assert ask(server, ANA.answer(challenges(replies[-1])[0]["nonce"])).status == 200


def test_digest_foreign_nonces_are_refused(zone):
    server = zone(sections="[AUTH]\n    Location /else\n    Type Digest\n    Realm Elsewhere\n    UserFile users\n")
    good = nonce_of(server)
    other = nonce_of(server, "/else/a")
    for nonce in [other, good[:-1] + ("0" if good[-1] != "0" else "1"), "0" * 64, good[:-2], good + "00", "x", "",
                  "z" * 64, "%s%n" * 16]:
        reply = ask(server, ANA.answer(nonce))
        assert is_stale(reply), nonce
        reply = ask(server, DigestClient("ana", "wrong").answer(nonce))
        assert not is_stale(reply), nonce
    for at in range(0, 64, 7):
        turned = good[:at] + "0123456789abcdef"[int(good[at], 16) ^ 1] + good[at + 1:]
        assert is_stale(ask(server, ANA.answer(turned)))
    assert ask(server, DigestClient("ana", "another", "Elsewhere").answer(other, uri="/else/a"), "/else/a").status == 200


@pytest.mark.timeout(180)  # 40,000 requests
def test_digest_nonce_eviction_allows_no_replay(zone):
    """If more nonces are issued than the table holds, the credentials for an evicted nonce are refused as stale."""
    server = zone(server="KeepAliveRequests 100000")
    with server.connect() as client:
        def nonce():
            return challenges(client.get("/zone/a"))[0]["nonce"]

        credentials = ANA.answer(nonce())
        assert client.get("/zone/a", fields=credentials).status == 200
        refused = 0
        for _ in range(20000):
            reply = client.get("/zone/a", fields=ANA.answer(nonce()))
            refused += reply.status == 401
        assert is_stale(client.get("/zone/a", fields=credentials))
        assert refused < 2000


# Client input

def test_digest_wrong_realm_or_algorithm_is_refused(zone):
    server = zone()
    for client in [DigestClient("ana", "another", "Elsewhere"), DigestClient("ana", "secret", "zone"),
                   DigestClient("ana", "secret", algorithm="MD5"), DigestClient("ana", "secret", algorithm="SHA-512-256"),
                   DigestClient("ana", "secret", algorithm="SHA-256-sess")]:
        reply = ask(server, client.answer(nonce_of(server)))
        assert reply.status == 401 and not is_stale(reply)


def test_digest_wrong_uri_is_refused(zone):
    server = zone()
    for uri in ["/zone/b", "/zone/a?", "/zone/a/", "/", "", "*", "//zone/a", "http://a/zone/a", "/zone/%61"]:
        assert ask(server, ANA.answer(nonce_of(server), uri=uri)).status == 400, uri
    for target in ["/zone/%61", "/zone/a?x", "/zone/a?\"x\\y\"", "//zone/a"]:
        params = ANA.params(nonce_of(server), uri=target)
        params["uri"] = re.sub(r'(["\\])', r"\\\1", params["uri"])
        assert ask(server, ANA.field(params), target).status == 200, target
    whole = f"http://{server.addresses[0][0]}/zone/a"
    assert ask(server, ANA.answer(nonce_of(server)), whole).status == 200
    assert ask(server, ANA.answer(nonce_of(server), uri=whole), whole).status == 200


@pytest.mark.parametrize("name", ["username", "realm", "nonce", "uri", "response", "cnonce", "qop", "nc"])
def test_digest_missing_or_duplicate_parameter_is_refused(same, name):
    server = same
    params = ANA.params(nonce_of(server))
    once = params.pop(name)
    assert is_asked_again(ask(server, ANA.field(params)))
    twice = ANA.field({**params, name: once})["Authorization"] + f', {name}="{once}"'
    assert is_asked_again(ask(server, {"Authorization": twice}))


@pytest.mark.parametrize("change", [
    {"nc": "1"}, {"nc": "0000000g"}, {"nc": "000000001"}, {"nc": "-0000001"}, {"qop": "auth-int"}, {"qop": "AUTH,"},
    {"cnonce": ""}, {"response": ""}, {"response": "0" * 32}, {"response": "g" * 64}, {"response": "0" * 65},
    {"username*": "UTF-8''ana"}])
def test_digest_invalid_parameter_value_is_refused(same, change):
    server = same
    assert is_asked_again(ask(server, ANA.field({**ANA.params(nonce_of(server)), **change})))


@pytest.mark.parametrize("text", [
    "Digest", "Digest ", "Digest x", "Digest =", "Digest ,", "Digest username", "Digest \"", "Digest username=\"",
    "Digest username=\"ana", "Digest username=\"ana\\", "Digest username=\"ana\\\"", "Digest username=a\"b\"",
    "Digest username=\"a\"b\"", "Digest user name=\"ana\"", "Digest username==\"ana\"", "Digest username:\"ana\"",
    "Digest " + "a=b," * 1500, "Digest " + "a=\"\\" * 1200, "Digest " + "," * 6000, "Digest " + "\"" * 6000,
    "Digest username=\"" + "a" * 6000 + "\"", "Digest " + "\\" * 6000])
def test_digest_malformed_credentials_are_refused(same, text):
    server = same
    assert is_asked_again(ask(server, {"Authorization": text}))
    good = ANA.answer(nonce_of(server))["Authorization"]
    assert ask(server, {"Authorization": good + text.removeprefix("Digest")}).status in (200, 401)


@pytest.mark.parametrize("value", ["x", "UTF-8", "UTF-8'", "UTF-8''%", "UTF-8''%zz", "latin1''ana", "UTF-8''%00", "''ana",
                                   "UTF-8''a%0Ana"])
def test_digest_invalid_extended_name_is_refused(same, value):
    server = same
    params = ANA.params(nonce_of(server))
    del params["username"]
    assert is_asked_again(ask(server, ANA.field({"username*": value, **params})))


def test_digest_hashed_names_are_not_supported(zone):
    server = zone()
    assert not is_stale(ask(server, ANA.field({**ANA.params(nonce_of(server)), "userhash": "true"})))
    assert ask(server, ANA.field({**ANA.params(nonce_of(server)), "userhash": "false"})).status == 200


# Wrong passwords

def test_digest_max_attempts_blocks_address_for_a_time(zone):
    server = zone("MaxAttempts 4\nAttemptWindow 2s")
    nonce = nonce_of(server)
    for count in range(1, 5):
        assert ask(server, DigestClient("ana", f"wrong{count}").answer(nonce, nc=f"{count:08x}")).status == 401
    reply = ask(server, ANA.answer(nonce, nc="00000009"))
    assert reply.status == 429 and int(reply["Retry-After"]) in (1, 2)
    assert server.get("/zone/a").status == 401
    wait_until(lambda: ask(server, ANA.answer(nonce_of(server))).status == 200, "the end of AttemptWindow")


def test_digest_stale_or_foreign_credentials_do_not_count_as_attempts(zone):
    server = zone("MaxAttempts 2")
    used = ANA.answer(nonce_of(server))
    for _ in range(5):
        ask(server, used)
        ask(server, ANA.answer("0" * 64))
        ask(server, {"Authorization": "Digest x"})
        ask(server, DigestClient("ana", "secret", "Elsewhere").answer(nonce_of(server)))
    assert ask(server, ANA.answer(nonce_of(server))).status == 200


# MD5

def test_digest_md5_works_if_enabled(zone):
    server = zone("DigestMD5 on")
    first, second = challenges(server.get("/zone/a"))
    assert (first["algorithm"], second["algorithm"]) == ("SHA-256", "MD5")
    old = DigestClient("ana", "secret", algorithm="MD5")
    assert ask(server, old.answer(second["nonce"])).status == 200
    assert ask(server, ANA.answer(first["nonce"])).status == 200
    params = old.params(nonce_of(server))
    del params["algorithm"]
    assert ask(server, old.field(params)).status == 200, "the default algorithm is MD5"
    assert ask(server, DigestClient("ana", "wrong", algorithm="MD5").answer(nonce_of(server))).status == 401


def test_digest_offers_only_algorithms_with_users(zone, tmp_path):
    users = tmp_path / "users"
    lines = users.read_text().splitlines(keepends=True)
    users.write_text("".join(line for line in lines if not re.match(r"\w+:Zone:[0-9a-f]{64}$", line)))
    server = zone("DigestMD5 on")
    assert [each["algorithm"] for each in challenges(server.get("/zone/a"))] == ["MD5"]


def test_digest_realm_without_users_is_warned_of(zone):
    server = zone(sections="[AUTH]\n    Location /else\n    Type Digest\n    Realm Nowhere\n    UserFile users\n")
    server.err.wait_for('warning: .*users has no Digest entry with the realm "Nowhere"')
    client = DigestClient("ana", "secret", "Nowhere")
    assert ask(server, client.answer(nonce_of(server, "/else/a"), uri="/else/a"), "/else/a").status == 401


def test_digest_require_user_limits_users(zone, tmp_path):
    add(tmp_path / "users", "bob", "hidden", "--digest", "Zone")
    server = zone("Require user bob")
    assert ask(server, DigestClient("bob", "hidden").answer(nonce_of(server))).status == 200
    assert ask(server, ANA.answer(nonce_of(server))).status == 403


def test_digest_nonce_count_is_used_once_by_internal_redirect(monkey, site, tmp_path):
    """A local redirect of a script runs the same request through auth again, with the same nonce count."""
    add(tmp_path / "users", "ana", "secret", "--digest", "Zone")
    site.add("zone/go", "#!/bin/sh\nprintf 'Location: /zone/deep/a\\n\\n'\n", mode=0o755)
    site.add("zone/deep/a", "inside\n")
    server = monkey(plugins=["auth", "cgi"], sections="[AUTH]\n    Location /zone\n    Type Digest\n    Realm Zone\n"
                                                      "    UserFile users\n"
                                                      "[ROUTES]\n    /zone/go  cgi\n    /*  static\n")
    nonce = nonce_of(server)
    once = ANA.answer(nonce, uri="/zone/go")
    reply = ask(server, once, "/zone/go")
    assert (reply.status, reply.text) == (200, "inside\n")
    assert is_stale(ask(server, once, "/zone/go"))
    assert ask(server, ANA.answer(nonce, uri="/zone/go", nc="00000002"), "/zone/go").status == 200
