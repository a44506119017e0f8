# SPDX-License-Identifier: Apache-2.0
"""Tokens that the package oidc keeps for a session, the options of a login, and both kinds of logout."""
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

import redis_server
import services
from oidc_provider import NoKey, Provider, RsaKey
from oidc_service import SOURCE, Browser
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("oidc"), reason="this build has no package oidc")

STORE = "    TokenStore memory\n"


@pytest.fixture(scope="module")
def key():
    return RsaKey("first")


@pytest.fixture
def provider(key):
    with Provider("shop", "secret", "http://x.example/a/back", key=key) as provider:
        yield provider


@pytest.fixture
def redis():
    server = redis_server.Redis()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("service"), "people", SOURCE, packages=["oidc"])


@pytest.fixture
def start(monkey, tmp_path, provider, service):
    (tmp_path / "secret").write_text(provider.secret)

    def run(keys=STORE, top="", plugins=(), workers=2, client=""):
        top += f"[OIDC]\n    Issuer {provider.issuer}\n    Client shop\n    Secret file:{tmp_path / 'secret'}\n" \
               f"    RedirectUrl {provider.callback}\n    PostLogoutUrl http://x.example/bye\n{keys}" \
               f"[HTTP_CLIENT]\n    Name {provider.address}\n    Server {provider.address}\n{client}"
        server = monkey(plugins=["upstream", "duda-http", *plugins, "duda-oidc", service],
                        top=top, workers=workers)
        server.allow("OpenID Connect: ")
        return server
    return run


def log_in(server, provider):
    browser = Browser(server)
    reply = browser.get(browser.begin("a", provider))
    assert reply.status == 303, reply.text
    return browser


def token_of(browser):
    reply = browser.get("/token")
    assert reply.status == 200, reply.text
    return reply.text.split()[0]


# ---- Access tokens ----

def test_access_token_is_returned_until_it_expires_and_then_refreshed(start, provider):
    server, provider.lifetime = start(), 4
    browser = log_in(server, provider)
    assert token_of(browser) == "access-1" and provider.refreshes == 0
    provider.lifetime = 3600
    wait_until(lambda: token_of(browser) == "access-2", "the token is refreshed")
    for _ in range(6):
        assert token_of(browser) == "access-2"
    assert provider.refreshes == 1
    other = log_in(server, provider)
    assert (token_of(other), token_of(browser)) == ("access-3", "access-2"), "tokens belong to their session"


@pytest.mark.parametrize("store", ["memory", "redis"])
def test_access_token_is_refreshed_once_by_concurrent_requests_of_all_workers(start, provider, store, request):
    top, plugins = "", []
    if store == "redis":
        if not services.has("redis") or not redis_server.PROGRAM:
            pytest.skip("there is no redis-server")
        redis = request.getfixturevalue("redis")
        top, plugins = f"[REDIS]\n    Server unix:{redis.socket}\n", ["duda-redis"]
    server, provider.lifetime = start(f"    TokenStore {'main' if top else 'memory'}\n", top=top, plugins=plugins), 1
    browser = log_in(server, provider)
    time.sleep(1.2)
    provider.lifetime = 3600
    provider.held["/token"] = threading.Event()
    with ThreadPoolExecutor(16) as pool:
        replies = [pool.submit(browser.get, "/token") for _ in range(16)]
        wait_until(lambda: provider.requests["/token"] > 1 or any(reply.done() for reply in replies), "the refresh has begun")
        time.sleep(0.3)
        early = [(reply.result().status, reply.result().text) for reply in replies if reply.done()]
        assert provider.requests["/token"] == 2 and not early, (dict(provider.requests), early)
        provider.held["/token"].set()
        texts = [reply.result().text.split() for reply in replies]
    assert {text[0] for text in texts} == {"access-2"} and provider.refreshes == 1
    assert {text[1] for text in texts} == {"0", "1"}, "both workers have served requests"


def test_access_token_refresh_completes_without_its_client(start, provider):
    server, provider.lifetime = start(), 1
    browser = log_in(server, provider)
    time.sleep(1.2)
    provider.lifetime = 3600
    provider.held["/token"] = threading.Event()
    cookies = "; ".join(f"{n}={v}" for n, v in browser.cookies.items())
    with server.connect() as client:
        client.ask("/token", fields=[("Cookie", cookies)])
        wait_until(lambda: provider.requests["/token"] == 2, "the refresh has begun")
    time.sleep(0.5)
    provider.held["/token"].set()
    assert token_of(browser) == "access-2" and provider.refreshes == 1


@pytest.mark.skipif(not services.has("kv"), reason="this build has no package kv")
@pytest.mark.parametrize("order", [("duda-kv", "duda-oidc"), ("duda-oidc", "duda-kv")], ids=["store_first", "store_last"])
def test_access_token_refresh_ends_before_its_store(start, provider, tmp_path, order):
    """The refresh holds a lock of the store when the server stops."""
    server = start("    TokenStore main\n", top=f"[KV]\n    Folder {tmp_path / 'kv'}\n", plugins=order, workers=1)
    provider.lifetime = 1
    browser = log_in(server, provider)
    time.sleep(1.2)
    provider.lifetime, provider.held["/token"] = 3600, threading.Event()
    cookies = "; ".join(f"{n}={v}" for n, v in browser.cookies.items())
    with server.connect() as client:
        client.ask("/token", fields=[("Cookie", cookies)])
        wait_until(lambda: provider.requests["/token"] == 2, "the refresh has begun")
        server.stop()
    provider.held["/token"].set()


def test_access_token_of_a_provider_without_rotation(start, provider):
    server, provider.lifetime, provider.rotates = start(), 1, False
    browser = log_in(server, provider)
    for n in (2, 3):
        time.sleep(1.2)
        assert token_of(browser) == f"access-{n}"


def test_access_token_after_the_provider_has_ended_the_grant_needs_a_login(start, provider):
    server, provider.lifetime = start(), 1
    browser = log_in(server, provider)
    for grant, _ in provider.grants.values():
        grant["is_valid"] = False
    time.sleep(1.2)
    for _ in range(3):
        assert browser.get("/token").status == 401
    assert provider.refreshes == 1, "the refused token is not sent again"
    assert browser.get("/show").text == "main:user-1\n", "the session itself continues"


def test_access_token_during_an_outage_of_the_provider(start, provider):
    """An old token is used while it is valid; afterwards the client gets an error, and later a token of the same grant."""
    server, provider.lifetime = start(), 8
    browser = log_in(server, provider)
    provider.answers["/token"] = 503, {}
    time.sleep(6.5)
    assert token_of(browser) == "access-1"
    wait_until(lambda: browser.get("/token").status == 503, "the old token has expired")
    del provider.answers["/token"]
    assert token_of(browser) == "access-2"


@pytest.mark.parametrize("answer", [b"nonsense", {}, {"access_token": ""}, {"access_token": 7}, {"access_token": "x" * 40000}])
def test_access_token_after_an_invalid_response_to_a_refresh(start, provider, answer):
    server, provider.lifetime = start(workers=1), 1
    browser = log_in(server, provider)
    time.sleep(1.2)
    provider.answers["/token"] = 200, answer
    assert browser.get("/token").status == 503
    del provider.answers["/token"]
    assert token_of(browser) == "access-2"


@pytest.mark.parametrize("claims", [{"sub": "user-2"}, {"aud": "other"}, {"iss": "http://evil.example"}, {"exp": 1}])
def test_access_token_with_a_wrong_id_token_is_not_used(start, provider, claims):
    server, provider.lifetime = start(), 1
    browser = log_in(server, provider)
    time.sleep(1.2)
    provider.claims = claims
    assert browser.get("/token").status == 401
    provider.claims = {}
    assert browser.get("/token").status == 401


def test_access_token_without_tokens(start, provider):
    server = start()
    assert Browser(server).get("/token").status == 401
    browser = log_in(server, provider)
    assert browser.get("/out", "POST").status == 303
    assert browser.get("/token").status == 401


def test_access_token_without_store(start, provider):
    server = start(keys="")
    server.allow("has no TokenStore")
    assert log_in(server, provider).get("/token").status == 501


@pytest.mark.skipif(not services.has("kv"), reason="this build has no package kv")
def test_tokens_reach_neither_browser_nor_disk_in_the_clear(start, provider, tmp_path):
    server = start("    TokenStore main\n", top=f"[KV]\n    Folder {tmp_path / 'kv'}\n[SESSIONS]\n    Store cookie\n", plugins=["duda-kv"])
    browser = log_in(server, provider)
    assert token_of(browser) == "access-1"
    refresh = next(iter(provider.grants))
    seen = "".join(browser.cookies.values()).encode() + b"".join(f.read_bytes() for f in (tmp_path / "kv").iterdir() if f.is_file())
    for secret in (b"access-1", refresh.encode(), b"eyJ"):
        assert secret not in seen
    assert b"oidc tokens" in seen


def test_rejected_login_leaves_no_tokens(start, provider):
    server = start()
    provider.claims = {"group": "banned"}
    browser = Browser(server)
    assert browser.get(browser.begin("a", provider)).status == 403
    assert browser.get("/token").status == 401


# ---- Options of a login ----

def test_login_options_are_sent(start, provider):
    browser = Browser(start())
    query = parse_qs(urlsplit(browser.get("/again?prompt=login&hint=ana%40x.example&acr=gold%20silver&age=60")["Location"]).query)
    assert {name: query[name] for name in ("prompt", "login_hint", "acr_values", "ui_locales", "max_age")} == {
        "prompt": ["login"], "login_hint": ["ana@x.example"], "acr_values": ["gold silver"], "ui_locales": ["de fr"], "max_age": ["60"]}
    query = parse_qs(urlsplit(browser.get("/a/in")["Location"]).query)
    assert not {"prompt", "login_hint", "acr_values", "ui_locales", "max_age"} & set(query)


@pytest.mark.parametrize("query, claims, status", [
    ("age=100", {"auth_time": -50}, 303), ("age=100", {"auth_time": -155}, 303), ("age=100", {"auth_time": -200}, 403), ("age=100", {}, 403),
    ("age=100", {"auth_time": "x"}, 403), ("age=0", {"auth_time": -100000}, 303), ("acr=gold%20silver", {"acr": "silver"}, 303),
    ("acr=gold", {"acr": "silver"}, 403), ("acr=gold", {}, 403), ("acr=gold", {"acr": "gold silver"}, 403), ("prompt=none", {}, 303)])
def test_login_options_are_checked(start, provider, query, claims, status):
    browser = Browser(start())
    now = int(time.time())
    provider.claims = {n: now + v if isinstance(v, int) else v for n, v in claims.items()}
    assert browser.get(provider.log_in(browser.get(f"/again?{query}")["Location"])).status == status
    assert browser.get("/show").text == ("main:user-1\n" if status == 303 else "-\n")
    provider.claims = {}
    reply = browser.get(browser.begin("a", provider))
    assert reply.status == 303, "the options hold for one attempt"


def test_login_error_reaches_the_service(start, provider):
    browser = Browser(start())
    state = parse_qs(urlsplit(browser.get("/again?prompt=none")["Location"]).query)["state"][0]
    assert browser.get("/a/back?error=login_required&state=other").status == 403
    state = parse_qs(urlsplit(browser.get("/again?prompt=none")["Location"]).query)["state"][0]
    reply = browser.get(f"/a/back?error=login_required&state={state}&iss={quote(provider.issuer)}")
    assert (reply.status, reply.text) == (200, "error login_required\n")


def test_leeway_is_configurable(start, provider):
    server = start(keys="    Leeway 5s\n")
    now = int(time.time())
    for seconds, status in ((-1, 303), (-20, 403)):
        provider.claims = {"exp": now + seconds}
        browser = Browser(server)
        assert browser.get(browser.begin("a", provider)).status == status


# ---- Hostile providers ----

HUGE = {"keys": [{"kty": "RSA", "kid": f"k{i}", "n": "A" * 3000, "e": "AQAB"} for i in range(100)]}


@pytest.mark.parametrize("path, answer, fields", [
    ("/keys", (200, HUGE), {}), ("/keys", (200, {"keys": [], "x": "y" * 300000}), {}), ("/keys", (200, b"{" * 100000), {}),
    ("/keys", (302, {}), {"Location": "/other-keys"}), ("/keys", (500, {}), {}),
    ("/.well-known/openid-configuration", (302, {}), {"Location": "/elsewhere"}), ("/.well-known/openid-configuration", (200, b"["), {}),
    ("/.well-known/openid-configuration", (200, b" " * 2000000), {})])
def test_login_with_invalid_metadata_is_refused(start, provider, path, answer, fields):
    server = start(workers=1)
    provider.answers[path], provider.fields[path] = answer, fields
    browser = Browser(server)
    assert browser.get("/a/in").status == 502
    assert not {"/other-keys", "/elsewhere"} & set(provider.requests), "redirects are not followed"
    provider.answers.clear()
    provider.fields.clear()
    wait_until(lambda: browser.get("/a/in").status == 303, "the provider works again")


def test_keys_are_fetched_without_the_browser_that_needs_them(start, provider):
    server = start(workers=1)
    held = provider.held["/keys"] = threading.Event()
    with server.connect() as client:
        client.ask("/a/in")
        wait_until(lambda: provider.requests.get("/keys") == 1, "the fetch has begun")
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(Browser(server).get, "/a/in") for _ in range(2)]
        assert server.get("/show").text == "-\n"
        held.set()
        assert [w.result().status for w in waiting] == [303] * 2
    assert provider.requests == {"/.well-known/openid-configuration": 1, "/keys": 1}


def test_login_at_a_slow_provider_times_out(start, provider):
    server = start(client="    Timeout 1s\n")
    browser = Browser(server)
    target = browser.begin("a", provider)
    provider.held["/token"] = threading.Event()
    try:
        begun = time.monotonic()
        assert browser.get(target).status == 502
        assert time.monotonic() - begun < 5
    finally:
        provider.held["/token"].set()


@pytest.mark.parametrize("announces", [False, True])
def test_login_response_without_issuer(start, provider, announces):
    """RFC 9207: a provider that announces `iss` must send it."""
    metadata = {**provider.metadata(), "authorization_response_iss_parameter_supported": announces}
    provider.answers["/.well-known/openid-configuration"] = 200, metadata
    browser = Browser(start())
    target = browser.begin("a", provider)
    path, _, query = target.partition("?")
    reply = browser.get(f"{path}?{urlencode({n: v[0] for n, v in parse_qs(query).items() if n != 'iss'})}")
    assert reply.status == (403 if announces else 303)


# ---- Logout ----

def test_logout_sends_the_id_token_as_hint(start, provider):
    server = start()
    browser = log_in(server, provider)
    query = parse_qs(urlsplit(browser.get("/out", "POST")["Location"]).query)
    assert query["client_id"] == ["shop"] and query["post_logout_redirect_uri"] == ["http://x.example/bye"]
    assert query["id_token_hint"][0].count(".") == 2
    assert "id_token_hint" not in parse_qs(urlsplit(browser.get("/out", "POST")["Location"]).query)


def end_session(server, token):
    return server.get("/ended", "POST", [("Content-Type", "application/x-www-form-urlencoded")], urlencode({"logout_token": token}).encode())


def test_back_channel_logout_revokes_all_sessions_of_the_user(start, provider):
    server = start()
    browsers = [log_in(server, provider) for _ in range(3)]
    provider.claims = {"sub": "user-2"}
    other = log_in(server, provider)
    provider.claims = {}
    reply = end_session(server, provider.logout_token())
    assert (reply.status, reply["Cache-Control"]) == (200, "no-store")
    assert [b.get("/show").text for b in browsers] == ["-\n"] * 3
    assert [b.get("/token").status for b in browsers] == [401] * 3
    assert other.get("/show").text == "main:user-2\n"
    assert log_in(server, provider).get("/show").text == "main:user-1\n", "the user can log in again"


@pytest.mark.parametrize("changes", [{"events": None}, {"events": {}}, {"events": {"http://schemas.openid.net/event/backchannel-logout": 1}},
                                     {"nonce": "x"}, {"sub": None}, {"sub": None, "sid": ""}, {"sid": 1}, {"aud": "other"}, {"iss": "http://evil.example"}, {"exp": 1},
                                     {"exp": None}, {"jti": None}, {"jti": ""}, {"jti": 1}, {"iat": None}, {"iat": "now"},
                                     {"age": 361}, {"age": -200}])
def test_back_channel_logout_with_an_invalid_token_is_rejected(start, provider, changes):
    server = start()
    browser = log_in(server, provider)
    if "age" in changes:
        changes = {"iat": int(time.time()) - changes["age"]}
    assert end_session(server, provider.logout_token(**changes)).status == 400
    assert browser.get("/show").text == "main:user-1\n"


@pytest.mark.parametrize("keys", [STORE, ""], ids=["token store", "memory"])
def test_back_channel_logout_with_only_a_session_id_revokes_the_sessions_of_its_user(start, provider, keys):
    """OpenID Connect Back-Channel Logout 1.0, section 2.4: a token may have `sid` without `sub`."""
    server = start(keys=keys)
    provider.claims = {"sid": "session 1"}
    browser = log_in(server, provider)
    provider.claims = {"sub": "user-2", "sid": "x" * 5000}
    other = log_in(server, provider)
    provider.claims = {}
    for unknown in ("session 2", "session", "x"):
        reply = end_session(server, provider.logout_token(sub=None, sid=unknown))
        assert (reply.status, reply["Cache-Control"]) == (200, "no-store")
    assert (browser.get("/show").text, other.get("/show").text) == ("main:user-1\n", "main:user-2\n")
    token = provider.logout_token(sub=None, sid="session 1")
    assert [end_session(server, token).status for _ in range(2)] == [200, 400]
    assert (browser.get("/show").text, other.get("/show").text) == ("-\n", "main:user-2\n")
    assert end_session(server, provider.logout_token(sub=None, sid="x" * 5000)).status == 200
    assert other.get("/show").text == "-\n"
    provider.claims = {"sub": "user-3", "sid": "session 1"}
    later = log_in(server, provider)
    assert end_session(server, provider.logout_token(sub=None, sid="session 1")).status == 200
    assert later.get("/show").text == "-\n", "the provider has reused the ID for another user"


@pytest.mark.parametrize("keys", [STORE, ""], ids=["token store", "memory"])
def test_back_channel_logout_token_is_accepted_once(start, provider, keys):
    server = start(keys=keys)
    token, old = provider.logout_token(exp=int(time.time()) + 86400), provider.logout_token(iat=int(time.time()) - 340)
    assert end_session(server, token).status == end_session(server, old).status == 200
    browser = log_in(server, provider)
    for _ in range(4):  # in both workers
        assert end_session(server, token).status == end_session(server, old).status == 400
    assert browser.get("/show").text == "main:user-1\n"
    server.err.wait_for("the logout token was used before")
    assert end_session(server, provider.logout_token(jti="x" * 10000)).status == 200
    assert browser.get("/show").text == "-\n"


@pytest.mark.parametrize("store", ["memory", "main"])
@pytest.mark.parametrize("changes", [{}, {"sub": None, "sid": "s"}], ids=["user", "session"])
def test_back_channel_logout_that_is_cancelled_may_be_repeated(start, provider, redis, store, changes):
    if not services.has("redis") or not redis_server.PROGRAM:
        pytest.skip("there is no redis-server")
    server = start(f"    TokenStore {store}\n", top=f"[REDIS]\n    Server unix:{redis.socket}\n[SESSIONS]\n    Store main\n",
                   plugins=["duda-redis"], workers=1)
    provider.claims = {"sid": "s"}
    browser = log_in(server, provider)
    token = provider.logout_token(**changes)
    redis.freeze()
    with server.connect() as client:
        client.ask("/ended", "POST", [("Content-Type", "application/x-www-form-urlencoded")], urlencode({"logout_token": token}).encode())
        assert server.get("/show").text == "-\n"
    assert server.get("/show").text == "-\n"
    redis.thaw()
    assert end_session(server, token).status == 200
    assert browser.get("/show").text == "-\n"
    assert end_session(server, token).status == 400


def test_back_channel_logout_with_other_tokens_is_rejected(start, provider):
    server = start()
    browser = log_in(server, provider)
    id_token = parse_qs(urlsplit(log_in(server, provider).get("/out", "POST")["Location"]).query)["id_token_hint"][0]
    key, provider.key = provider.key, NoKey()
    unsigned, provider.key = provider.logout_token(), key
    for token in (id_token, unsigned, "", "x", "a.b.c", "x" * 40000):
        assert end_session(server, token).status == 400, token[:100]
    assert browser.get("/show").text == "main:user-1\n"


def test_back_channel_logout_of_sessions_in_cookies_is_impossible(start, provider):
    server = start(top="[SESSIONS]\n    Store cookie\n")
    provider.claims = {"sid": "s"}
    log_in(server, provider)
    for token in (provider.logout_token(), provider.logout_token(sub=None, sid="s")):
        assert [end_session(server, token).status for _ in range(2)] == [501, 501], "a failed logout may be repeated"
