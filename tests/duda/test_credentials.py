# SPDX-License-Identifier: Apache-2.0
"""A client with an invalid token gets 401 and a challenge. When a backend rejects the server's own credentials, the
client gets 503, whichever package is used. The handlers return the errors of the packages unchanged."""
import base64
import contextlib
import hmac
import json
import os
import shutil
import socket
import tempfile

import pytest

import postgres_server
import redis_server
import services
from backend import Backend

pytestmark = pytest.mark.skipif(not services.has("crypto"), reason="this build has no Duda")

TOKENS = r"""
#include <duda.h>
#include <duda/crypto.h>
#include <errno.h>

static int check(struct duda_ctx *d)
{
    struct duda_jwt_key *key = duda_jwt_key_new(DUDA_JWT_HS256, MK_STR("ours"), MK_STR("0123456789abcdef0123456789abcdef"));
    struct duda_jwks *none = duda_jwks_new(MK_STR("{\"keys\":[]}"));
    struct mk_buf claims = mk_buf_growing(1 << 20);
    const struct duda_jwt_rules rules = {.now = 2000, .issuer = MK_STR("us"), .audience = MK_STR("shop")};
    const char *how = duda_query_or(d, "how", "");
    mk_str token = duda_header(d, "Authorization");
    int e = !strcmp(how, "own") ? duda_header_set(d, "WWW-Authenticate", MK_STR("Basic realm=\"shop\"")) : 0;
    token = mk_str_skip(token, sizeof "Bearer " - 1);
    if (!e)
        e = !strcmp(how, "set")   ? duda_jwt_verify_jwks(&claims, none, token, &rules)
            : !strcmp(how, "jws") ? duda_jws_verify(&claims, key, token)
                                  : duda_jwt_verify(&claims, key, token, &rules);
    if (!e)
        e = duda_write(d, mk_buf_str(&claims));
    mk_buf_free(&claims);
    duda_jwt_key_free(key);
    duda_jwks_free(none);
    return e;
}

static int refuse(struct duda_ctx *d)
{
    (void)d;
    return 401;
}

DUDA_SERVICE(tokens, DUDA_GET("/check", check, "Checks a token."), DUDA_GET("/refuse", refuse, "Refuses."));
"""
CHALLENGE = 'Bearer error="invalid_token"'


def part(data):
    return base64.urlsafe_b64encode(data if isinstance(data, bytes) else json.dumps(data).encode()).rstrip(b"=").decode()


def token(key=b"0123456789abcdef0123456789abcdef", head=(), **claims):
    claims = {"exp": 3000, "iss": "us", "aud": "shop", **claims}
    signed = part({"alg": "HS256", "kid": "ours", **dict(head)}) + "." + part({name: value for name, value in claims.items() if value is not None})
    return signed + "." + part(hmac.digest(key, signed.encode(), "sha256"))


BAD = {
    "of-another-key": ("", token(b"another key, another key, another")), "of-another-name": ("", token(head={"kid": "theirs"})),
    "of-no-algorithm": ("", token(head={"alg": "none"})), "expired": ("", token(exp=1999)), "that-never-expires": ("", token(exp=None)),
    "not-valid-yet": ("", token(nbf=2001)), "of-another-issuer": ("", token(iss="them")), "for-another-audience": ("", token(aud="bank")),
    "of-a-key-that-the-set-lacks": ("set", token(head={"alg": "RS256"})), "of-an-algorithm-that-the-set-lacks": ("set", token()),
    "signed-text-of-another-key": ("jws", token(b"another key, another key, another")),
}


def prepare_tokens(monkey, site):
    monkey(plugins=[services.build(site.path.parent, "tokens", TOKENS, packages=["crypto"])])


@pytest.fixture
def tokens(lasting):
    return lasting(prepare_tokens)


def bearer(text):
    return [("Authorization", f"Bearer {text}")]


@pytest.mark.parametrize("protocol", ["h1", "h2"], indirect=True)
@pytest.mark.parametrize("name", BAD)
def test_bad_token_is_401_with_a_challenge(tokens, name):
    log_length = len(tokens.err.text)
    how, text = BAD[name]
    answer = tokens.get(f"/check?how={how}", fields=bearer(text))
    assert (answer.status, answer.all("WWW-Authenticate")) == (401, [CHALLENGE])
    assert tokens.get("/check", fields=bearer(token())).status == 200, "a valid token is accepted"
    assert "answered -" not in tokens.err.text[log_length:], "invalid tokens are not logged"


def test_malformed_token_is_400(tokens):
    for text in ("", "x", "a.b", "!.!.!"):
        answer = tokens.get("/check", fields=bearer(text))
        assert answer.status == 400 and not answer.all("WWW-Authenticate"), text


@pytest.mark.parametrize("how", ["", "set", "jws"])
@pytest.mark.parametrize("depth", [17, 2000])
def test_nested_brackets_in_a_token_do_not_overflow_the_stack(tokens, how, depth):
    for head, status in ((f'{{"alg":"HS256","kid":"ours","x":{"[" * depth}{"]" * depth}}}', 400),
                         (f'{{"alg":"HS256","kid":"ours","x":"\\"{"[" * depth}"}}', 200)):
        signed = part(head.encode()) + "." + part({"exp": 3000, "iss": "us", "aud": "shop"})
        text = signed + "." + part(hmac.digest(b"0123456789abcdef0123456789abcdef", signed.encode(), "sha256"))
        answer = tokens.get(f"/check?how={how}", fields=bearer(text))
        assert answer.status == (401 if status == 200 and how == "set" else status), answer.text


def test_challenge_of_the_handler_is_kept(tokens):
    answer = tokens.get("/check?how=own", fields=bearer(token(exp=1)))
    assert (answer.status, answer.all("WWW-Authenticate")) == (401, ['Basic realm="shop"'])
    assert tokens.get("/refuse").all("WWW-Authenticate") == [], "a plain 401 has no challenge"




# ---- Backends ----

HEAD = """
#define DUDA_USE %s
#include <duda.h>
#include <duda/%s.h>
"""
CALLS = {
    "redis": """
    struct duda_redis_reply reply;
    return duda_redis(d, duda_redis_find(d, NULL), &reply, MK_STR("GET"), MK_STR("x"));""",
    "memcached": """
    mk_str value;
    return duda_memcached_get(d, duda_memcached_find(d, NULL), MK_STR("x"), &value);""",
    "postgres": """
    struct duda_sql_result result;
    return duda_sql_query(d, duda_sql_find(d, NULL), &result, "SELECT 1");""",
    "smtp": """
    struct duda_smtp_result result;
    const mk_str to = MK_STR("ana@example.org");
    const struct duda_mail mail = {.from = MK_STR("shop@example.org"), .to = &to, .n_to = 1, .subject = MK_STR("x"), .body = MK_STR("x")};
    return duda_smtp_send(d, duda_smtp_find(d, NULL), &mail, &result);""",
    "http": """
    struct duda_http_response response;
    const struct duda_http_request request = {.target = MK_STR("/")};
    return duda_http_fetch(d, duda_http_find(d, NULL), &request, &response);""",
}


def start(monkey, site, package, top, **how):
    if not services.has(package):
        pytest.skip(f"this build has no {package}")
    packages = [package, *(["sql"] if package == "postgres" else [])]
    source = HEAD % (", ".join(f'"duda-{name}"' for name in packages), packages[-1]) + "static int call(struct duda_ctx *d)\n{" + CALLS[package] + "\n}\n" \
        'DUDA_SERVICE(calls, DUDA_GET("/", call, "Calls the backend."));\n'
    return monkey(plugins=[services.build(site.path.parent, "calls", source, packages=packages)], top=top, workers=1, **how)


def check_refused(server, message):
    answer = server.get("/")
    assert answer.status == 503 and not answer.all("WWW-Authenticate")
    server.err.wait_for(r"call\(\) in \S+ answered -ENOKEY \(Required key not available\): .*" + message)


@contextlib.contextmanager
def forbidden_socket():
    """A Unix socket that only root may connect to."""
    folder = tempfile.mkdtemp(prefix="mk-no-")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        os.chmod(f"{folder}/socket", 0o600)
        listener.listen()
        yield f"unix:{folder}/socket"
    shutil.rmtree(folder)


SECTIONS = {"redis": "[REDIS]\n    Server {}\n", "memcached": "[MEMCACHED]\n    Servers {}\n", "smtp": "[SMTP]\n    Server {}\n", "http": "[HTTP_CLIENT]\n    Server {}\n"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("package", SECTIONS)
def test_socket_without_permission_is_503(monkey, site, package):
    with forbidden_socket() as path:
        server = start(monkey, site, package, SECTIONS[package].format(path), server="User nobody")
        check_refused(server, "")
    server.allow("Permission denied", "refused", "answered -ENOKEY")


@pytest.mark.parametrize("package", SECTIONS)
def test_missing_socket_is_not_reported_as_a_missing_entry(monkey, site, package):
    server = start(monkey, site, package, SECTIONS[package].format(f"unix:{site.path.parent}/none"))
    assert server.get("/").status in (503, 504)  # 504 if the package waits for the server until Timeout
    server.allow("No such file", "refused", "answered -", "is not there", "timed out")


@pytest.mark.parametrize("keys, message", [("    Password wrong\n", "WRONGPASS"), ("", "NOAUTH")])
def test_redis_that_rejects_the_password_is_503(monkey, site, keys, message):
    redis = redis_server.Redis("--requirepass", "secret")
    try:
        check_refused(start(monkey, site, "redis", f"[REDIS]\n    Server unix:{redis.socket}\n{keys}"), message)
    finally:
        redis.stop()


@pytest.mark.skipif(not postgres_server.is_usable(), reason="PostgreSQL is not installed")
def test_postgres_that_rejects_the_user_is_503(monkey, site):
    postgres = postgres_server.Postgres()
    try:
        check_refused(start(monkey, site, "postgres", f"[POSTGRES]\n    Server host={postgres.folder} user=nobody dbname=postgres\n"), "role .*nobody")
    finally:
        postgres.stop()


def scripted(*steps):
    def script(connection):
        stream = connection.makefile("rb")
        for i, step in enumerate(steps):
            if i and not stream.readline():
                return
            connection.sendall(step)
    return script


LOG_IN = "    User shop\n    PasswordSource file:{}\n"
REFUSALS = {
    "password": (LOG_IN, (b"220 x\r\n", b"250-x\r\n250 AUTH PLAIN\r\n", b"535 no\r\n"), "AUTH: 535 no"),
    "mechanism": (LOG_IN, (b"220 x\r\n", b"250-x\r\n250 AUTH PLAIN\r\n", b"504 no\r\n"), "AUTH: 504 no"),
    "no-auth": (LOG_IN, (b"220 x\r\n", b"250 x\r\n"), "AUTH: the server does not support AUTH PLAIN"),
    "sender-before-log-in": ("", (b"220 x\r\n", b"250 x\r\n", b"530 log in\r\n"), "MAIL: 530 log in"),
    "recipient-before-log-in": ("", (b"220 x\r\n", b"250 x\r\n", b"250 ok\r\n", b"530 log in\r\n"), "RCPT: 530 log in"),
    "without-tls": ("", (b"220 x\r\n", b"250 x\r\n", b"538 encrypt\r\n"), "MAIL: 538 encrypt"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_mail_server_that_rejects_the_login_is_503(monkey, site, tmp_path, name):
    keys, steps, message = REFUSALS[name]
    (tmp_path / "password").write_text("secret")
    (tmp_path / "password").chmod(0o600)
    with Backend(script=scripted(*steps)) as backend:
        check_refused(start(monkey, site, "smtp", f"[SMTP]\n    Server {backend.address}\n{keys.format(tmp_path / 'password')}"), message)
