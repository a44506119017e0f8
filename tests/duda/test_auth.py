# SPDX-License-Identifier: Apache-2.0
"""The packages auth and jwt: credentials that are right, wrong, forged, malformed or huge."""
import base64
import hashlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import services
from fault_injection import Calendar
from oidc_provider import CurveKey, HmacKey, NoKey, Provider, RsaKey, letters, token
from proc import RELEASE, wait_until

pytestmark = pytest.mark.skipif(not services.has("auth"), reason="this build has no package auth")
needs_jwt = pytest.mark.skipif(not services.has("jwt"), reason="this build has no package jwt")

SOURCE = r"""
#define DUDA_USE "duda-auth", "duda-jwt"
#include <duda.h>
#include <duda/auth.h>
#include <duda/jwt.h>
#include <errno.h>

static int n_hashes;
static char ana_hash[DUDA_PASSWORD_SIZE];
static const mk_str admin_roles[] = {MK_STR_INIT("admin"), MK_STR_INIT("staff")}, other_roles[] = {MK_STR_INIT("guest")};

static int hash(struct duda_ctx *d)
{
    char out[DUDA_PASSWORD_SIZE];
    int e = duda_password_hash(d, duda_query(d, "password"), out);
    return duda_printf(d, "%d %s\n", e, out);
}

static int verify(struct duda_ctx *d)
{
    bool matches;
    int e = duda_password_verify(d, duda_query(d, "password"), duda_query(d, "hash"), &matches);
    return duda_printf(d, "%d %d\n", e, matches);
}

static int set_password(struct duda_ctx *d)
{
    int e = duda_password_hash(d, duda_query(d, "password"), ana_hash);
    return e ? e : duda_puts(d, "set\n");
}

static int find_user(struct duda_ctx *d, mk_str user, mk_str *password_hash, struct duda_identity *identity)
{
    (void)d;
    n_hashes++;
    if (mk_str_eq(user, MK_STR("down")))
        return -ECONNREFUSED;
    if (!mk_str_eq(user, MK_STR("ana")))
        return -ENOENT;
    *password_hash = mk_str_from_c(ana_hash);
    identity->roles = admin_roles;
    identity->n_roles = 2;
    return 0;
}

static int find_token(struct duda_ctx *d, mk_str token_hash, struct duda_identity *identity)
{
    if (mk_str_eq(token_hash, duda_token_hash(d, MK_STR("down"))))
        return -ECONNREFUSED;
    if (!mk_str_eq(token_hash, duda_token_hash(d, MK_STR("shop_good"))))
        return -ENOENT;
    identity->user = MK_STR("robot");
    identity->roles = other_roles;
    identity->n_roles = 1;
    return 0;
}

static int new_token(struct duda_ctx *d)
{
    mk_str text, text_hash;
    int e = duda_token_new(d, duda_query_or(d, "prefix", ""), &text, &text_hash);
    return e ? duda_printf(d, "%d\n", e) : duda_printf(d, "%s %s\n", text.p, text_hash.p);
}

static int find_session_user(struct duda_ctx *d, mk_str user, struct duda_identity *identity)
{
    (void)d;
    identity->roles = admin_roles;
    identity->n_roles = mk_str_eq(user, MK_STR("ana")) ? 2 : 0;
    return mk_str_eq(user, MK_STR("gone")) ? -ENOENT : 0;
}

static int log_in(struct duda_ctx *d)
{
    int e = duda_session_log_in(d, duda_param(d, "user"));
    return e ? e : duda_puts(d, "in\n");
}

static int show(struct duda_ctx *d)
{
    const struct duda_identity *who = duda_identity(d);
    if (!who)
        return duda_puts(d, "nobody\n");
    int e = duda_printf(d, "%s %.*s", who->scheme, MK_STR_ARG(who->user));
    for (size_t i = 0; !e && i < who->n_roles; i++)
        e = duda_printf(d, " %.*s", MK_STR_ARG(who->roles[i]));
    return e ? e : duda_printf(d, "%s\n", duda_has_role(d, "admin") ? "!" : "");
}

static int claim(struct duda_ctx *d)
{
    struct duda_value v;
    int e = duda_claim(d, duda_query_or(d, "path", ""), &v);
    return e ? duda_printf(d, "%d\n", e) : duda_send_json(d, v);
}

static int now(struct duda_ctx *d)
{
    return duda_printf(d, "%lld", (long long)mk_request_time(duda_request(d)));
}

static int credentials(struct duda_ctx *d)
{
    mk_str text = duda_auth_credentials(d, MK_STR("Bearer"));
    return duda_printf(d, text.p ? "[%.*s]" : "absent%.*s", MK_STR_ARG(text));
}

static const struct duda_basic_auth staff = DUDA_BASIC_AUTH(.realm = "the \"staff\"\r\nX: y", .find = find_user);
static const struct duda_token_auth api = DUDA_TOKEN_AUTH(.realm = "api", .find = find_token);
static const struct duda_token_auth keys = DUDA_TOKEN_AUTH(.find = find_token, .header = "X-Key", .query = "key");
static const struct duda_session_auth members = DUDA_SESSION_AUTH(.login = "/login?a=b", .find = find_session_user);

DUDA_ROUTES(basic, DUDA_BEFORE(duda_auth_basic, .data = &staff), DUDA_GET("/me", show),
            DUDA_BEFORE(duda_require_role, .data = "owner admin"), DUDA_GET("/admin", show),
            DUDA_BEFORE(duda_require_role, .data = "owner"), DUDA_GET("/owner", show));
DUDA_ROUTES(bearer, DUDA_BEFORE(duda_auth_bearer, .data = &api), DUDA_GET("/me", show),
            DUDA_BEFORE(duda_require_role, .data = "admin"), DUDA_GET("/admin", show));
DUDA_ROUTES(api_key, DUDA_BEFORE(duda_auth_api_key, .data = &keys), DUDA_GET("/me", show));
DUDA_ROUTES(session, DUDA_BEFORE(duda_auth_session, .data = &members), DUDA_GET("/me", show), DUDA_POST("/me", show),
            DUDA_BEFORE(duda_require_role, .data = "admin"), DUDA_GET("/admin", show));
DUDA_ROUTES(plain_session, DUDA_BEFORE(duda_auth_session), DUDA_GET("/me", show));
DUDA_ROUTES(jwt, DUDA_BEFORE(duda_auth_jwt, .data = "remote"), DUDA_GET("/me", show), DUDA_GET("/claim", claim),
            DUDA_BEFORE(duda_require_role, .data = "admin"), DUDA_GET("/admin", show));
DUDA_ROUTES(own, DUDA_BEFORE(duda_auth_jwt, .data = "own"), DUDA_GET("/me", show));
DUDA_ROUTES(odd, DUDA_BEFORE(duda_require_role, .data = "admin"), DUDA_GET("/role", show));
static int call_bearer(struct duda_ctx *d) { return duda_auth_bearer(d); }
DUDA_ROUTES(odd2, DUDA_BEFORE(call_bearer, .data = &staff), DUDA_GET("/bearer", show));
DUDA_SERVICE(guard, DUDA_GET("/hash", hash), DUDA_GET("/verify", verify), DUDA_GET("/set", set_password), DUDA_GET("/token", new_token),
             DUDA_GET("/in/:user", log_in), DUDA_GET("/open", show), DUDA_GET("/now", now), DUDA_GET("/credentials", credentials), DUDA_GROUP("/basic", basic), DUDA_GROUP("/bearer", bearer),
             DUDA_GROUP("/key", api_key), DUDA_GROUP("/session", session), DUDA_GROUP("/plain", plain_session),
             DUDA_GROUP("/jwt", jwt), DUDA_GROUP("/own", own), DUDA_GROUP("/odd", odd), DUDA_GROUP("/odd", odd2));
"""

SECRET = "a secret of our own, long enough for HS256"


@pytest.fixture(scope="module")
def rsa_keys():
    return RsaKey("first"), RsaKey("second")


@pytest.fixture
def provider(rsa_keys):
    with Provider("api", "secret", "http://x/", key=rsa_keys[0]) as provider:
        yield provider


@pytest.fixture
def server(monkey, tmp_path, provider, monkeypatch):
    return start_guard(monkey, tmp_path, provider, monkeypatch)


def start_guard(monkey, tmp_path, provider, monkeypatch, jwt="", client=None, objects=services.OBJECTS, **how):
    monkeypatch.setenv("OWN_SECRET", SECRET)
    service = services.build(tmp_path, "guard", SOURCE, packages=["auth", "jwt", "crypto"], objects=objects)
    top = f"""[JWT]
    Name remote
    Issuer {provider.issuer}
    Audience api
    JwksUrl {provider.issuer}/keys
    Realm shop
{jwt}
[JWT]
    Name own
    Issuer https://own.example
    Audience api
    Key env:OWN_SECRET
    Algorithm HS256
    Leeway 10s
    RolesClaim scope
[HTTP_CLIENT]
{client or f"    Name {provider.address}{chr(10)}    Server {provider.address}"}
"""
    plugins = ["upstream", "duda-http", "duda-auth", "duda-jwt"]
    if objects is not services.OBJECTS:
        plugins = [str(objects / f"monkey-{p}.so") for p in plugins]
    return monkey(plugins=[*plugins, service], top=top, **how)


def basic(text):
    data = text if isinstance(text, bytes) else text.encode()
    return {"Authorization": "Basic " + base64.b64encode(data).decode()}


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


def get(server, path, fields=None, **how):
    with server.connect() as c:
        return c.get(path, fields=fields or {}, **how)


# ---- Passwords ----

def test_password_functions_hash_and_verify_in_a_thread(server):
    e, stored = get(server, "/hash?password=secret").text.split()
    assert e == "0" and stored.startswith("$y$")
    assert get(server, f"/verify?password=secret&hash={stored}").text == "0 1\n"
    for password, other in (("Secret", stored), ("secret", ""), ("secret", "*"), ("x" * 600, stored), ("", stored), ("a%00b", stored)):
        assert get(server, f"/verify?password={password}&hash={other}").text == "0 0\n", password
    for password in ("", "x" * 512, "a%00b"):
        assert get(server, f"/hash?password={password}").text.split()[0] == "-22"


def test_password_hashing_does_not_block_the_worker(server):
    done = []
    with ThreadPoolExecutor(9) as pool:
        hashes = [pool.submit(get, server, "/hash?password=secret") for _ in range(8)]
        while not all(h.done() for h in hashes):
            began = time.monotonic()
            get(server, "/open")
            done.append(time.monotonic() - began)
    assert all(h.result().text.startswith("0 $y$") for h in hashes)
    assert done


# ---- Basic ----

def test_basic_accepts_the_right_password_only(server):
    get(server, "/set?password=secret:with:colons")
    assert get(server, "/basic/me", basic("ana:secret:with:colons")).text == "Basic ana admin staff!\n"
    assert get(server, "/basic/me", {"Authorization": "bAsIc   " + basic("ana:secret:with:colons")["Authorization"][6:]}).status == 200
    for text in ("ana:wrong", "ana:", "ben:secret:with:colons", ":secret:with:colons", "ana", "", b"ana\0:secret:with:colons", b"\xff\xfe:x",
                 "ana\r\n:x", "ana:secret:with:colons\0", "ana:" + "x" * 3000):
        reply = get(server, "/basic/me", basic(text))
        assert reply.status == 401, text
        assert reply["WWW-Authenticate"] == 'Basic realm="the staffX: y"'
        assert reply.all("X") == []
    for value in ("Basic", "Basic ", "Basic !!!!", "Basic YW5h", "Bearer x", "Basic" + basic("ana:secret:with:colons")["Authorization"][6:]):
        assert get(server, "/basic/me", {"Authorization": value}).status == 401, value
    assert get(server, "/basic/me").status == 401


def test_basic_caches_verified_passwords_until_they_change(server):
    get(server, "/set?password=first")
    began = time.monotonic()
    for _ in range(30):
        assert get(server, "/basic/me", basic("ana:first")).status == 200
        assert get(server, "/basic/me", basic("ana:First")).status == 401
    assert time.monotonic() - began < 30
    get(server, "/set?password=second")
    assert get(server, "/basic/me", basic("ana:first")).status == 401
    assert get(server, "/basic/me", basic("ana:second")).status == 200


def test_basic_takes_as_long_for_unknown_users(server):
    get(server, "/set?password=secret")

    def duration(text):
        times = []
        for _ in range(7):
            began = time.monotonic()
            assert get(server, "/basic/me", basic(text)).status == 401
            times.append(time.monotonic() - began)
        return sorted(times)[3]

    known, unknown = duration("ana:wrong"), duration("eve:wrong")
    assert 1 / 3 < known / unknown < 3


def test_basic_lookup_failure_is_not_a_wrong_password(server):
    server.allow("find_user|duda_auth_basic")
    assert get(server, "/basic/me", basic("down:x")).status == 503


# ---- Roles ----

def test_role_middleware_accepts_any_of_its_roles(server):
    get(server, "/set?password=secret")
    assert get(server, "/basic/admin", basic("ana:secret")).text == "Basic ana admin staff!\n"
    assert get(server, "/basic/owner", basic("ana:secret")).status == 403
    reply = get(server, "/bearer/admin", bearer("shop_good"))
    assert (reply.status, reply["WWW-Authenticate"]) == (403, 'Bearer error="insufficient_scope"')
    assert get(server, "/open").text == "nobody\n"


def test_role_without_authentication_and_middleware_without_data_fail_closed(server):
    server.allow("duda_require_role", "duda_auth_basic")
    assert get(server, "/odd/role").status == 500
    assert get(server, "/odd/bearer", bearer("x")).status == 500
    server.err.wait_for("middleware for tokens needs a `.data` that DUDA_TOKEN_AUTH")


# ---- Tokens ----

def test_bearer_token_identifies_the_client(server):
    assert get(server, "/bearer/me", bearer("shop_good")).text == "Bearer robot guest\n"
    reply = get(server, "/bearer/me")
    assert (reply.status, reply["WWW-Authenticate"]) == (401, 'Bearer realm="api"')
    for text in ("shop_goo", "shop_good2", "SHOP_GOOD", "x" * 513, "", hashlib.sha256(b"shop_good").hexdigest()):
        reply = get(server, "/bearer/me", bearer(text))
        assert reply.status == 401 and reply["WWW-Authenticate"].startswith("Bearer realm="), text
    server.allow("duda_auth_bearer")
    assert get(server, "/bearer/me", bearer("down")).status == 503


@pytest.mark.parametrize("value, text", [
    (None, "absent"), ("", "absent"), ("Bearer", "[]"), ("Bearer   ", "[]"), ("Bearer x", "[x]"), ("bEARER \t x.y=  ", "[x.y=]"),
    ("Bearer x y", "[x y]"), ("Bearerx", "absent"), ("Basic x", "absent"), ("x", "absent")])
def test_credentials_of_a_scheme(server, value, text):
    assert get(server, "/credentials", {} if value is None else {"Authorization": value}).text == text


def test_api_key_in_header_or_query_identifies_the_client(server):
    assert get(server, "/key/me", {"X-Key": "shop_good"}).text == "ApiKey robot guest\n"
    assert get(server, "/key/me?key=shop_good").text == "ApiKey robot guest\n"
    for path, fields in (("/key/me", {}), ("/key/me?key=x", {}), ("/key/me?key=shop_good", {"X-Key": "x"}), ("/key/me", {"X-API-Key": "shop_good"})):
        reply = get(server, path, fields)
        assert reply.status == 401 and reply["WWW-Authenticate"].startswith('ApiKey realm="restricted"'), path


def test_new_tokens_are_random_and_hashed(server):
    pairs = [get(server, "/token?prefix=shop_").text.split() for _ in range(20)]
    assert len({text for text, _ in pairs}) == 20
    for text, stored in pairs:
        assert text.startswith("shop_") and len(text) == 5 + 43
        assert stored == hashlib.sha256(text.encode()).hexdigest()
    assert get(server, "/token?prefix=" + "x" * 600).text == "-90\n"


# ---- Sessions ----

def cookie_of(server, user):
    return {"Cookie": get(server, f"/in/{user}").all("Set-Cookie")[-1].split(";")[0]}


def test_session_middleware_identifies_the_user(server):
    ana, ben, gone = (cookie_of(server, user) for user in ("ana", "ben", "gone"))
    assert get(server, "/session/me", ana).text == "Session ana admin staff!\n"
    assert get(server, "/session/admin", ana).status == 200
    assert get(server, "/session/me", ben).text == "Session ben\n"
    assert get(server, "/session/admin", ben).status == 403
    assert get(server, "/session/me", gone).status == 401
    assert get(server, "/plain/me", gone).text == "Session gone\n"
    assert get(server, "/plain/me")["WWW-Authenticate"] == 'Session realm="restricted"'


def test_session_middleware_redirects_pages_to_the_login(server):
    page = {"Sec-Fetch-Mode": "navigate"}
    reply = get(server, "/session/me?x=1&y=%2F", page)
    assert (reply.status, reply["Location"]) == (303, "/login?a=b&next=/session/me%3Fx%3D1%26y%3D%252F")
    assert get(server, "/session/me", {"Accept": "text/html,*/*"}).status == 303
    assert get(server, "/session/me", {"Accept": "text/html", "Sec-Fetch-Mode": "cors"}).status == 401
    assert get(server, "/session/me", {"Accept": "application/json"}).status == 401
    with server.connect() as c:
        assert c.get("/session/me", method="POST", fields=page).status == 401
    long = get(server, "/session/me?" + "x" * 3000, page)
    assert (long.status, long["Location"]) == (303, "/login?a=b")


# ---- JWT ----

def claims_of(provider, **more):
    now = int(time.time())
    return {k: v for k, v in {"iss": provider.issuer, "sub": "user-1", "aud": "api", "exp": now + 300, "iat": now, **more}.items() if v is not None}


def is_rejected(reply):
    assert reply.status == 401, reply.text
    assert reply["WWW-Authenticate"] == 'Bearer realm="shop", error="invalid_token"'
    return True


@needs_jwt
def test_jwt_is_verified_with_the_keys_of_the_issuer(server, provider):
    text = token(provider.key, claims_of(provider, roles=["admin", 7, "staff"], email="ana@x.example"))
    assert get(server, "/jwt/me", bearer(text)).text == "Bearer user-1 admin staff!\n"
    assert get(server, "/jwt/admin", bearer(text)).status == 200
    assert get(server, "/jwt/claim?path=email", bearer(text)).text == '"ana@x.example"'
    assert get(server, "/jwt/claim?path=phone", bearer(text)).text == "-2\n"
    assert provider.requests["/keys"] == 1, "the keys are cached"
    reply = get(server, "/jwt/me")
    assert (reply.status, reply["WWW-Authenticate"]) == (401, 'Bearer realm="shop"')
    assert get(server, "/jwt/admin", bearer(token(provider.key, claims_of(provider)))).status == 403


@needs_jwt
@pytest.mark.parametrize("allowed", [True, False])
def test_jwt_keys_are_fetched_with_the_named_section(monkey, tmp_path, provider, monkeypatch, allowed):
    client = f"    Name web\n    AllowHosts {provider.address if allowed else 'login.example.org'}\n    AllowPrivate 127.0.0.1"
    server = start_guard(monkey, tmp_path, provider, monkeypatch, "    HttpClient web", client)
    server.allow("keys at", "EHOSTUNREACH", "jwt", "503")
    reply = get(server, "/jwt/me", bearer(token(provider.key, claims_of(provider, roles=["staff"]))))
    assert reply.status == (200 if allowed else 503), reply.text
    assert not allowed or reply.text.startswith("Bearer user-1 staff")


@needs_jwt
def test_jwt_accepts_nested_claims_and_audience_lists(server, provider):
    text = token(provider.key, claims_of(provider, aud=["other", "api"], realm_access={"roles": ["x"]}, **{"a.b": 1}))
    assert get(server, "/jwt/claim?path=realm_access.roles", bearer(text)).text == '["x"]'
    assert get(server, "/jwt/claim?path=a.b", bearer(text)).text == "1"
    assert get(server, "/jwt/claim?path=", bearer(text)).text == "-2\n"
    assert get(server, "/jwt/claim?path=sub.x", bearer(text)).text == "-2\n"


@needs_jwt
@pytest.mark.parametrize("changes", [{"iss": "https://evil.example"}, {"iss": None}, {"aud": "other"}, {"aud": None}, {"aud": []}, {"exp": 0},
                                     {"exp": None}, {"exp": "never"}, {"nbf": 4102444800}, {"sub": None}, {"sub": ""}, {"sub": 7}], ids=str)
def test_jwt_with_wrong_claims_is_rejected(server, provider, changes):
    assert is_rejected(get(server, "/jwt/me", bearer(token(provider.key, claims_of(provider, **changes)))))


@needs_jwt
@pytest.mark.parametrize("changes, reason", [({"exp": 1000000000}, r"the token expired \d+ s ago \(`exp`\)"), ({"exp": None}, "`exp` is missing"),
                                             ({"exp": "never"}, "`exp` is not a number"), ({"nbf": 4102444800}, r"the token becomes valid in \d+ s \(`nbf`\)"),
                                             ({"aud": ["a", "b"]}, r'`aud` is \["a","b"\], expected "api"'), ({"aud": None}, '`aud` is missing, expected "api"'),
                                             ({"iss": "https://evil.example"}, '`iss` is "https://evil.example", expected "http'), ({"sub": None}, "`sub` is missing")], ids=str)
def test_log_says_why_a_jwt_is_rejected(server, provider, changes, reason):
    reply = get(server, "/jwt/me", bearer(token(provider.key, claims_of(provider, **changes))))
    assert is_rejected(reply) and "exp" not in reply.text and "aud" not in reply.text
    server.err.wait_for(f"the token of the client is invalid: {reason}")


@needs_jwt
def test_log_says_why_a_forged_jwt_is_rejected(server, provider):
    good = token(provider.key, claims_of(provider))
    for text, reason in ((token(HmacKey("first", b"x"), claims_of(provider)), 'unsupported `alg` "HS256"'), (token(RsaKey("none"), claims_of(provider)), "the key set lacks the `kid` \"none\""),
                         (token(RsaKey("first"), claims_of(provider)), "the signature does not match the key"), ("x" * 40, "the header is not a JSON object")):
        assert is_rejected(get(server, "/jwt/me", bearer(text)))
        server.err.wait_for(f"the token of the client is invalid: {reason}")


@needs_jwt
def test_jwt_clocks_may_differ_a_little(server, provider):
    now = int(time.time())
    assert get(server, "/jwt/me", bearer(token(provider.key, claims_of(provider, exp=now - 30, nbf=now + 30)))).status == 200
    assert is_rejected(get(server, "/jwt/me", bearer(token(provider.key, claims_of(provider, exp=now - 90)))))
    assert is_rejected(get(server, "/jwt/me", bearer(token(provider.key, claims_of(provider, nbf=now + 90)))))


@needs_jwt
def test_jwt_forgeries_are_rejected(server, provider, rsa_keys):
    from cryptography.hazmat.primitives import serialization
    good = token(provider.key, claims_of(provider))
    head, body, signature = good.split(".")
    public = provider.key.pair.public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    other = RsaKey("first")
    forged = [token(NoKey(), claims_of(provider)), token(HmacKey("first", pem), claims_of(provider)), token(HmacKey("first", der), claims_of(provider)),
              token(HmacKey("first", b""), claims_of(provider)), token(other, claims_of(provider)),
              f"{head}.{letters(json.dumps(claims_of(provider, sub='admin')).encode())}.{signature}", f"{head}.{body}.", f"{head}.{body}", f"{head}.{body}.{signature}x",
              f"{head}.{body}.{signature}.x", "..", ".", "a", "a.b.c", good + "=", "x" * 7000,
              f"{letters(json.dumps({'alg': 'RS256', 'kid': 'first', 'crit': ['x'], 'x': 1}).encode())}.{body}.{signature}",
              f"{letters(json.dumps({'alg': 'RS256', 'kid': 'first', 'jwk': other.jwk()}).encode())}.{body}.{signature}",
              f"{letters(json.dumps({'alg': 'rs256', 'kid': 'first'}).encode())}.{body}.{signature}", f"{letters(b'[]')}.{body}.{signature}"]
    for text in forged:
        assert is_rejected(get(server, "/jwt/me", bearer(text))), text
    assert get(server, "/jwt/me", bearer(good)).status == 200


@needs_jwt
def test_jwt_new_keys_are_fetched_at_a_limited_rate(server, provider, rsa_keys):
    assert get(server, "/jwt/me", bearer(token(provider.key, claims_of(provider)))).status == 200
    provider.keys = [rsa_keys[1]]
    text = token(rsa_keys[1], claims_of(provider))
    with ThreadPoolExecutor(4) as pool:
        assert [r.status for r in pool.map(lambda _: get(server, "/jwt/me", bearer(text)), range(4))] == [200] * 4
    assert provider.requests["/keys"] == 2
    for i in range(10):
        assert is_rejected(get(server, "/jwt/me", bearer(token(HmacKey(f"unknown-{i}", b"x"), claims_of(provider)))))
        assert is_rejected(get(server, "/jwt/me", bearer(token(CurveKey(f"unknown-{i}"), claims_of(provider)))))
    assert provider.requests["/keys"] == 2, "unknown keys do not cause a flood of requests"
    assert is_rejected(get(server, "/jwt/me", bearer(token(rsa_keys[0], claims_of(provider))))), "the old key is revoked"


@needs_jwt
@pytest.mark.parametrize("answer", [(500, {}), (200, b"<html>"), (200, b""), (200, {"keys": 7}), (302, {})], ids=str)
def test_jwt_issuer_without_keys_is_an_outage(server, provider, answer):
    server.allow("duda_auth_jwt")
    provider.answers["/keys"] = answer
    text = token(provider.key, claims_of(provider))
    assert [get(server, "/jwt/me", bearer(text)).status for _ in range(3)] == [503] * 3
    assert provider.requests["/keys"] == 1, "an unavailable issuer is not contacted for each request"
    assert get(server, "/jwt/me").status == 401


@needs_jwt
def test_jwt_outage_does_not_affect_known_keys(server, provider):
    text = token(provider.key, claims_of(provider))
    assert get(server, "/jwt/me", bearer(text)).status == 200
    provider.answers["/keys"] = (500, {})
    assert get(server, "/jwt/me", bearer(text)).status == 200
    server.allow("duda_auth_jwt")
    assert get(server, "/jwt/me", bearer(token(CurveKey("new"), claims_of(provider)))).status == 503
    assert get(server, "/jwt/me", bearer(text)).status == 200


@needs_jwt
def test_jwt_slow_issuer_suspends_only_its_handlers(server, provider):
    held = provider.held["/keys"] = threading.Event()
    text = token(provider.key, claims_of(provider))
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(get, server, "/jwt/me", bearer(text)) for _ in range(3)]
        assert get(server, "/open").status == 200
        held.set()
        assert [w.result().status for w in waiting] == [200] * 3
    assert provider.requests["/keys"] == 1


@needs_jwt
@pytest.mark.parametrize("is_first", [True, False], ids=["no keys", "new key"])
def test_jwt_keys_are_fetched_without_the_client_that_needs_them(server, provider, rsa_keys, is_first):
    """Otherwise anyone could prevent that the keys are fetched, by leaving during each fetch."""
    if not is_first:
        assert get(server, "/jwt/me", bearer(token(provider.key, claims_of(provider)))).status == 200
        provider.keys = [rsa_keys[1]]
    n = provider.requests.get("/keys", 0) + 1
    held = provider.held["/keys"] = threading.Event()
    text = token(provider.keys[0], claims_of(provider))
    with ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            with server.connect() as c:
                c.ask("/jwt/me", fields=bearer(text))
                wait_until(lambda: provider.requests.get("/keys") == n, "the fetch has begun")
        waiting = [pool.submit(get, server, "/jwt/me", bearer(text)) for _ in range(3)]
        assert get(server, "/open").status == 200
        held.set()
        assert [w.result().status for w in waiting] == [200] * 3
    assert provider.requests["/keys"] == n


@needs_jwt
def test_server_stops_while_keys_are_fetched(server, provider):
    held = provider.held["/keys"] = threading.Event()
    with server.connect() as c:
        c.ask("/jwt/me", fields=bearer(token(provider.key, claims_of(provider))))
        wait_until(lambda: provider.requests.get("/keys") == 1, "the fetch has begun")
    assert get(server, "/open").status == 200
    server.stop()
    held.set()


@needs_jwt
def test_jwt_requests_wait_for_keys_if_the_old_ones_have_expired(monkey, tmp_path, provider, monkeypatch):
    calendar = Calendar(tmp_path)
    server = start_guard(monkey, tmp_path, provider, monkeypatch, objects=RELEASE.parent / "plugins", **calendar.how)
    text = token(provider.key, claims_of(provider, exp=int(time.time()) + 200000))
    assert get(server, "/jwt/me", bearer(text)).status == 200
    for seconds in (4000, 4000 + 87000):
        calendar.go_to(server, seconds)
        n = provider.requests["/keys"] + 1
        held = provider.held["/keys"] = threading.Event()
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(get, server, "/jwt/me", bearer(text)) for _ in range(4)]
            wait_until(lambda: provider.requests["/keys"] == n, "the fetch has begun")
            if seconds < 86400:
                wait_until(lambda: sum(w.done() for w in waiting) == 3, "three requests continue with the old keys")
            held.set()
            assert [w.result().status for w in waiting] == [200] * 4
        assert provider.requests["/keys"] == n


@needs_jwt
def test_jwt_expired_keys_are_not_used_during_an_outage(monkey, tmp_path, provider, monkeypatch):
    calendar = Calendar(tmp_path)
    server = start_guard(monkey, tmp_path, provider, monkeypatch, objects=RELEASE.parent / "plugins", **calendar.how)
    server.allow("duda_auth_jwt", "keys at")
    text = token(provider.key, claims_of(provider, exp=int(time.time()) + 200000))
    assert get(server, "/jwt/me", bearer(text)).status == 200
    provider.answers["/keys"] = (500, {})
    for seconds, status in ((80000, 200), (87000, 503)):
        calendar.go_to(server, seconds)
        n = provider.requests["/keys"]
        assert [get(server, "/jwt/me", bearer(text)).status for _ in range(3)] == [status] * 3
        assert provider.requests["/keys"] == n + 1


@needs_jwt
def test_jwt_is_verified_with_the_configured_key(server, provider):
    now = int(time.time())
    ours = {"iss": "https://own.example", "sub": "ana", "aud": "api", "exp": now + 60, "scope": "read  admin"}
    assert get(server, "/own/me", bearer(token(HmacKey(None, SECRET.encode()), ours))).text == "Bearer ana read admin!\n"
    assert get(server, "/own/me", bearer(token(HmacKey(None, b"another secret of sufficient length!!"), ours))).status == 401
    assert get(server, "/own/me", bearer(token(NoKey(), ours))).status == 401
    assert get(server, "/own/me", bearer(token(provider.key, {**claims_of(provider)}))).status == 401
    assert get(server, "/jwt/me", bearer(token(HmacKey(None, SECRET.encode()), ours))).status == 401


@needs_jwt
def test_jwt_and_its_neighbors_over_http2(server, provider):
    text = token(provider.key, claims_of(provider))
    with server.connect(protocol="h2") as c:
        assert c.get("/jwt/me", fields=bearer(text)).status == 200
        assert c.get("/jwt/me").status == 401


@needs_jwt
@pytest.mark.parametrize("section, message", [
    ("Issuer https://x", "Audience"), ("Issuer https://x\n    Audience y", "either JwksUrl or Key"),
    ("Issuer https://x\n    Audience y\n    JwksUrl ftp://x", "https://"), ("Audience y\n    JwksUrl https://x/keys", "no Issuer"),
    ("Issuer https://x\n    Audience y\n    Key file:{key}", "no valid key for RS256"), ("Issuer https://x\n    Audience y\n    Key file:{key}\n    Algorithm none", "none")])
def test_jwt_section_with_mistakes_is_rejected(monkey, tmp_path, section, message):
    (tmp_path / "key").write_text("short")
    failed = monkey(plugins=["upstream", "duda-http", "duda-auth", "duda-jwt"], top=f"[JWT]\n    {section.format(key=tmp_path / 'key')}\n", expect_start=False)
    failed.exit_code = 3
    failed.wait()
    assert message in failed.log


LOADED = """
#define DUDA_USE "duda-auth"
#include <duda.h>
#include <duda/auth.h>
static int find_user(struct duda_ctx *d, mk_str user, mk_str *hash, struct duda_identity *who)
{
    (void)d, (void)user, (void)hash, (void)who;
    return -2;
}
static int find_token(struct duda_ctx *d, mk_str hash, struct duda_identity *who)
{
    (void)d, (void)hash, (void)who;
    return -2;
}
static const struct duda_basic_auth users = DUDA_BASIC_AUTH(.find = find_user);
static const struct duda_token_auth tokens = DUDA_TOKEN_AUTH(.find = find_token);
static const struct duda_session_auth members = DUDA_SESSION_AUTH(.login = "/in");
static const struct duda_basic_auth no_type = {.find = find_user}, no_find = DUDA_BASIC_AUTH(.realm = "x");
static const struct duda_route_auth wrong = {.authenticate = duda_auth_basic, .authenticate_data = &tokens};
static const struct duda_route_auth no_role = {.authenticate = duda_auth_basic, .authenticate_data = &users, .authorize = duda_require_role};
static const void *const unused[] = {&users, &tokens, &members, &no_type, &no_find, &wrong, &no_role};
static int show(struct duda_ctx *d) { return duda_puts(d, unused[0] ? "" : "x"); }
DUDA_SERVICE(loaded, %s);
"""
BASIC = r"duda_auth_basic\(\) needs a `.data` that DUDA_BASIC_AUTH\(\) initializes"


@pytest.mark.parametrize("entries, error", [
    ("DUDA_BEFORE(duda_auth_basic), DUDA_GET(\"/\", show)", BASIC),
    ("DUDA_BEFORE(duda_auth_basic, .data = &tokens), DUDA_GET(\"/\", show)", BASIC),
    ("DUDA_BEFORE(duda_auth_basic, .data = &members), DUDA_GET(\"/\", show)", BASIC),
    ("DUDA_BEFORE(duda_auth_basic, .data = &no_type), DUDA_GET(\"/\", show)", BASIC),
    ("DUDA_BEFORE(duda_auth_basic, .data = \"\"), DUDA_GET(\"/\", show)", BASIC),
    ("DUDA_BEFORE(duda_auth_basic, .data = &no_find), DUDA_GET(\"/\", show)", r"the `.data` of duda_auth_basic\(\) needs a function `.find`"),
    ("DUDA_AROUND(duda_auth_basic), DUDA_GET(\"/\", show)", BASIC),
    ("DUDA_GET(\"/\", show, \"\", .auth = &wrong)", BASIC),
    ("DUDA_GET(\"/\", show, \"\", .auth = &no_role)", r"duda_require_role\(\) needs a `.data` with the name of a role"),
    ("DUDA_BEFORE(duda_auth_bearer), DUDA_GET(\"/\", show)", r".* DUDA_TOKEN_AUTH\(\) initializes"),
    ("DUDA_BEFORE(duda_auth_api_key, .data = &users), DUDA_GET(\"/\", show)", r".* DUDA_TOKEN_AUTH\(\) initializes"),
    ("DUDA_BEFORE(duda_auth_session, .data = &users), DUDA_GET(\"/\", show)", r".* DUDA_SESSION_AUTH\(\) initializes"),
    ("DUDA_BEFORE(duda_require_role), DUDA_GET(\"/\", show)", r"duda_require_role\(\) needs a `.data` with the name of a role"),
    ("DUDA_GET(\"/\", show, \"\", .security = \"berer\")", "`.security` contains `berer`: expected bearer, basic, .*"),
    ("DUDA_GET(\"/\", show, \"\", .security = \"jwt header:\")", "`.security` contains `header:`"),
    ("DUDA_BEFORE(duda_auth_session, .security = \"sesion\"), DUDA_GET(\"/\", show)", "`.security` contains `sesion`"),
])
def test_wrong_data_or_security_is_refused_at_load(monkey, tmp_path, entries, error):
    server = monkey(plugins=["duda-auth", services.build(tmp_path, "loaded", LOADED % entries, packages=["auth"])], expect_start=False)
    server.exit_code = 3
    server.wait()
    line = LOADED[:LOADED.index("DUDA_SERVICE(")].count("\n") + 1
    server.err.wait_for(rf"loaded.c:{line}: {error}")
    if "sesion" in entries:
        server.err.wait_for("did you mean `session`")


@pytest.mark.parametrize("words", ["", "bearer", "jwt session", "header:X-Key query:key cookie:c  basic"])
def test_known_words_of_security_are_accepted(monkey, tmp_path, words):
    entry = f'DUDA_GET("/", show, "", .security = "{words}")'
    server = monkey(plugins=["duda-auth", services.build(tmp_path, "loaded", LOADED % entry, packages=["auth"])])
    assert server.get("/").status == 200
