# SPDX-License-Identifier: Apache-2.0
"""State that clients hold: signed and encrypted cookies, sessions, and CSRF tokens."""
import base64

import pytest

import redis_server
import services

SEALS = services.OBJECTS / "monkey-duda-seal.so"
pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")]
sealing = pytest.mark.skipif(not SEALS.exists(), reason="this build has no OpenSSL")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

/* Returns an absent string if there is no such value or the store is down. */
static inline mk_str session_value(struct duda_ctx *d, const char *name)
{
    mk_str value;
    (void)!duda_session_get(d, name, &value);
    return value;
}

static mk_str param(struct duda_ctx *d, const char *name)
{
    return duda_query(d, name);
}

static int set(struct duda_ctx *d)
{
    const struct mk_cookie c = {.name = duda_query_or(d, "name", ""), .value = param(d, "value"), .max_age = 100};
    const char *how = duda_query_or(d, "how", "plain");
    int e = how[0] == 's' ? duda_cookie_set_signed(d, &c)
            : how[0] == 'e' ? duda_cookie_set_encrypted(d, &c) : duda_cookie_set(d, &c);
    return e ? duda_printf(d, "%d\n", e) : duda_puts(d, "set\n");
}

static int forget(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", duda_cookie_delete(d, duda_query_or(d, "name", "")));
}

/* Sets the cookie as a plain header: how=set or how=add. */
static int field(struct duda_ctx *d)
{
    const char *name = duda_query_or(d, "field", "Set-Cookie");
    int e = mk_str_eq(param(d, "how"), MK_STR("set")) ? duda_header_set(d, name, param(d, "value")) : duda_header_add(d, name, param(d, "value"));
    return duda_printf(d, "%d\n", e);
}

static int refuse(struct duda_ctx *d)
{
    return duda_cookie_set(d, &(struct mk_cookie){.name = duda_query_or(d, "name", ""), .value = MK_STR("1")});
}

static int get(struct duda_ctx *d)
{
    const char *how = duda_query_or(d, "how", "plain"), *name = duda_query_or(d, "name", "");
    mk_str value = how[0] == 's' ? duda_cookie_signed(d, name)
                   : how[0] == 'e' ? duda_cookie_encrypted(d, name) : duda_cookie(d, name);
    return value.p ? duda_printf(d, "(%.*s)\n", MK_STR_ARG(value)) : duda_puts(d, "none\n");
}

static int show(struct duda_ctx *d)
{
    mk_str user = session_value(d, "user"), cart = session_value(d, "cart");
    return duda_printf(d, "%s %s\n", user.p ? user.p : "-", cart.p ? cart.p : "-");
}

static int change(struct duda_ctx *d)
{
    static const char *const names[] = {"user", "cart"};
    for (size_t i = 0; i < MK_LEN(names); i++) {
        mk_str value = param(d, names[i]);
        int e = value.p ? duda_session_set(d, names[i], value.len ? value : MK_STR_NULL) : 0;
        if (e)
            return duda_printf(d, "%d\n", e);
    }
    return show(d);
}

static int large(struct duda_ctx *d)
{
    static char much[3000];
    memset(much, 'x', sizeof much);
    return duda_printf(d, "%d\n", duda_session_set(d, "much", mk_str_of(much, sizeof much)) == -EMSGSIZE);
}

static int renew(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d);
    return e ? e : change(d);
}

static int end(struct duda_ctx *d)
{
    int e = duda_session_destroy(d);
    return e ? e : show(d);
}

/* Reads the session, waits for the request body, and then executes the command in it. */
static int late(struct duda_ctx *d)
{
    mk_str user = session_value(d, "user"), how;
    duda_log(d, MK_LOG_WARN, "%s waits to %s", user.p ? user.p : "nobody", duda_query_or(d, "n", ""));
    int e = duda_read_all(d, 100, &how);
    if (e)
        return e;
    e = mk_str_eq(how, MK_STR("renew")) ? duda_session_regenerate(d) : duda_session_set(d, "user", MK_STR("late"));
    user = session_value(d, "user");
    return duda_printf(d, "%d %s\n", e == -ESTALE, user.p ? user.p : "-");
}

static int token(struct duda_ctx *d)
{
    mk_str first = duda_csrf_token(d);
    return duda_printf(d, "%s %s", first.p, duda_csrf_token(d).p);
}

static int guarded(struct duda_ctx *d)
{
    int e = duda_csrf_check(d);
    return e == DUDA_NEXT ? duda_puts(d, "passed\n") : e;
}

DUDA_SERVICE(visitors,
    DUDA_GET("/set", set, "Sets a cookie."),
    DUDA_GET("/get", get, "Shows a cookie."),
    DUDA_GET("/forget", forget, "Deletes a cookie."),
    DUDA_GET("/field", field, "Sets a field."),
    DUDA_GET("/refuse", refuse, "Returns the error of a cookie."),
    DUDA_GET("/show", show, "Shows the session."),
    DUDA_GET("/change", change, "Changes the session."),
    DUDA_GET("/large", large, "Is too large."),
    DUDA_GET("/renew", renew, "Changes the session ID."),
    DUDA_GET("/end", end, "Ends the session."),
    DUDA_POST("/late", late, "Waits, then changes the session."),
    DUDA_GET("/token", token, "Two tokens."),
    DUDA_ANY("/guarded", guarded, "Requires a token."));
"""
FORM = ("Content-Type", "application/x-www-form-urlencoded")


def prepare(monkey, site, also=(), **how):
    site.add("file.txt", "a file")
    return monkey(plugins=[*also, services.build(site.path.parent, "visitors", SOURCE)], **how)


def prepare_two(monkey, site):
    """Adds a second service, whose cookies belong to the same host."""
    other = services.build(site.path.parent, "others", SOURCE.replace("DUDA_SERVICE(visitors", "DUDA_SERVICE(others"))
    return prepare(monkey, site, also=[other], sections="[ROUTES]\n    /others/* others\n    /* visitors\n")


@pytest.fixture
def server(lasting):
    return lasting(prepare)


SESSION = "visitors-session"  # name of the session cookie


class Browser:
    """Keeps cookies between requests."""

    def __init__(self, server, **cookies):
        self.server, self.jar = server, cookies

    def get(self, path, fields=(), **how):
        cookies = [("Cookie", "; ".join(f"{k}={v}" for k, v in self.jar.items()))] if self.jar else []
        answer = self.server.get(path, fields=[*cookies, *fields], **how)
        self.lines = answer.all("Set-Cookie")
        for line in self.lines:
            name, value = line.split(";")[0].split("=", 1)
            self.jar[name] = value
            if "Max-Age=0" in line:
                del self.jar[name]
        return answer


def browser_with(server, number):
    return Browser(server, **{SESSION: number})


def test_cookie_attributes_are_set_and_injection_is_rejected(server):
    browser = Browser(server)
    assert browser.get("/set?name=a&value=1").text == "set\n"
    assert browser.lines == ["a=1; Path=/; Max-Age=100; HttpOnly; SameSite=Lax"]
    assert browser.get("/get?name=a").text == "(1)\n"
    assert browser.get("/get?name=b").text == "none\n"
    for bad in ("name=a&value=1%0D%0ASet-Cookie:%20x=y", "name=a&value=1;%20Path=/", "name=a%0A&value=1",
                "name=__Host-a&value=1", "name=&value=1"):
        assert browser.get(f"/set?{bad}").text == "-22\n"
        assert browser.lines == []


@pytest.mark.parametrize("protocol", ["h1-tls", "h2-tls"], indirect=True)
def test_cookies_over_tls_are_secure(lasting):
    browser = Browser(lasting(prepare))
    browser.get("/set?name=__Host-a&value=1")
    assert browser.lines == ["__Host-a=1; Path=/; Max-Age=100; Secure; HttpOnly; SameSite=Lax"]
    browser.get("/change?user=ana")
    assert browser.lines[0].startswith("__Host-visitors-session=") and "; Secure; HttpOnly" in browser.lines[0]
    assert browser.get("/show").text == "ana -\n"


ASKS = {"plain": "/set?how=plain&name={name}&value=1", "signed": "/set?how=signed&name={name}&value=1",
        "encrypted": "/set?how=encrypted&name={name}&value=1", "forget": "/forget?name={name}",
        "duda_header_set": "/field?how=set&value={name}%3D1", "duda_header_add": "/field?how=add&value={name}%3D1",
        "nameless": "/field?how=add&value=%3D{name}%3D1", "lower case": "/field?how=set&field=set-cookie&value=%20{name}%20%3D1"}


@pytest.mark.parametrize("protocol", ["h1", "h1-tls", "h2-tls"], indirect=True)
@pytest.mark.parametrize("how", ASKS)
def test_service_cannot_set_reserved_cookies(lasting, protocol, how):
    """Without this rule, a client that may choose a cookie's name could plant its own session, even in another service of
    the same host."""
    if how in ("signed", "encrypted") and not SEALS.exists():
        pytest.skip("this build has no OpenSSL")
    server = lasting(prepare_two)
    browser = Browser(server)
    browser.get("/change?user=ana")
    browser.get("/token")
    kept = dict(browser.jar)
    for prefix in ("", "__Host-", "__Secure-"):
        for name in ("visitors-session", "visitors-token", "others-session", "others-token"):
            told = f"the service must not set the cookie `{prefix}{name}`"
            before = server.log.count(told)
            assert browser.get(ASKS[how].format(name=prefix + name)).text == "-1\n", name
            assert browser.lines == []
            server.err.wait_for(told, before + 1)
    assert browser.jar == kept and browser.get("/show").text == "ana -\n"
    for name in ("session", "token", "visitors", "x-visitors-session", "access-token"):
        assert browser.get(ASKS[how].format(name=name)).text in ("0\n", "set\n"), name
        assert len(browser.lines) == 1


def test_reserved_cookie_name_is_answered_with_403(server):
    assert server.get("/refuse?name=visitors-session").status == 403
    assert server.get("/refuse?name=theme").status == 204


@sealing
@pytest.mark.parametrize("how", ["signed", "enclosed"])
def test_signed_and_encrypted_cookies_detect_changes(server, how):
    browser = Browser(server)
    browser.get(f"/set?how={how}&name=a&value=M%C3%B6hre%0A")
    value = browser.jar["a"]
    assert ("Möhre".encode() in base64.b64decode(value)) == (how == "signed")
    assert browser.get(f"/get?how={how}&name=a").text == "(Möhre\n)\n"
    raw = base64.b64decode(value)
    for i in range(len(raw)):
        broken = bytes(b ^ (i == j) for j, b in enumerate(raw))
        browser.jar["a"] = base64.b64encode(broken).decode()
        assert browser.get(f"/get?how={how}&name=a").text == "none\n", i
    for bad in ("", "x", "====", base64.b64encode(raw[:20]).decode(), base64.b64encode(raw + b"x").decode()):
        browser.jar["a"] = bad
        assert browser.get(f"/get?how={how}&name=a").text == "none\n"
    browser.jar = {"b": value}  # the same value under another name
    assert browser.get(f"/get?how={how}&name=b").text == "none\n"


@sealing
def test_key_file_rotates_keys(monkey, site, tmp_path):
    site.add("file.txt", "a file")
    service = services.build(tmp_path, "visitors", SOURCE)
    keys = tmp_path / "keys"

    def start(text):
        keys.write_text(text)
        return monkey(plugins=[service], top=f"[SESSIONS]\n    KeyFile {keys}\n")

    first, second = "a" * 32, "b" * 32
    browser = Browser(start(first + "\n"))
    browser.get("/set?how=signed&name=a&value=1")
    for text, value in ((f"{second}\n{first}\n", "(1)\n"), (f"{second}\n", "none\n")):
        browser.server = start(text)
        assert browser.get("/get?how=signed&name=a").text == value
    keys.write_text("short\n")
    server = monkey(plugins=[service], top=f"[SESSIONS]\n    KeyFile {keys}\n", expect_start=False)
    server.exit_code = 3
    server.err.wait_for("a key has 5 characters, but must have at least 32")
    server.process.wait(30)


def sessions(browser):
    assert browser.get("/show").text == "- -\n"
    assert not browser.jar
    assert browser.get("/change?user=ana&cart=1").text == "ana 1\n"
    old = dict(browser.jar)
    assert browser.get("/show").text == "ana 1\n"
    assert browser.get("/change?cart=2").text == "ana 2\n"
    assert browser.get("/change?user=").text == "- 2\n"
    assert browser.get("/large").text == "1\n"
    assert browser.get("/renew?user=eve").text == "eve 2\n"
    assert browser.jar != old
    assert browser.get("/show").text == "eve 2\n"
    return old


def test_session_in_memory_is_regenerated_and_destroyed(server):
    browser = Browser(server)
    old = sessions(browser)
    assert len(browser.jar[SESSION]) == 64
    assert Browser(server, **old).get("/show").text == "- -\n"  # the session has a new ID now
    kept = dict(browser.jar)
    assert browser.get("/end").text == "- -\n"
    assert not browser.jar
    assert Browser(server, **kept).get("/show").text == "- -\n"


def test_session_id_of_the_client_is_never_accepted(server):
    for made_up in ("0" * 64, "x", "", "g" * 64, "0" * 65):
        browser = browser_with(server, made_up)
        assert browser.get("/show").text == "- -\n"
        assert browser.get("/change?user=ana").text == "ana -\n"
        assert browser.jar[SESSION] != made_up


def test_session_id_has_one_spelling(server):
    browser = Browser(server)
    browser.get("/change?user=ana")
    number = browser.jar[SESSION]
    assert browser_with(server, number).get("/show").text == "ana -\n"
    letters = [i for i, c in enumerate(number) if c.isalpha()]
    assert letters, "only one ID in 10^13 has no letters"
    for i in letters:
        assert browser_with(server, number[:i] + number[i].upper() + number[i + 1:]).get("/show").text == "- -\n"
    for i in range(64):  # characters next to the digits and letters in ASCII
        for c in "/:@G`g":
            assert browser_with(server, number[:i] + c + number[i + 1:]).get("/show").text == "- -\n"


def test_sessions_are_shared_between_workers(monkey, site):
    server = prepare(monkey, site, workers=3)
    browser = Browser(server)
    browser.get("/change?user=ana")
    assert {browser.get("/show").text for _ in range(12)} == {"ana -\n"}


@pytest.mark.parametrize(("how", "answer"), [(b"set", "1 -\n"), (b"renew", "0 -\n")])
def test_session_ended_during_a_request_is_not_restored(server, how, answer):
    browser = Browser(server)
    browser.get("/change?user=ana")
    number = browser.jar[SESSION]
    with server.connect() as late:
        late.ask(f"/late?n={how.decode()}", "POST", [("Cookie", f"{SESSION}={number}")], streamed=True)
        server.err.wait_for(f"ana waits to {how.decode()}")
        assert browser.get("/end").text == "- -\n"
        late.more(how)
        late.done()
        assert late.read().text == answer
    assert browser_with(server, number).get("/show").text == "- -\n"


@pytest.fixture
def redis():
    server = redis_server.Redis()
    yield server
    server.stop()


@pytest.mark.parametrize("kind", ["kv", "redis"])
def test_sessions_in_a_store_survive_a_restart(monkey, site, request, kind):
    """One configuration line moves the sessions to the store. All workers share them, they survive a restart, and
    a destroyed session stays destroyed."""
    if not services.has(kind) or (kind == "redis" and not redis_server.PROGRAM):
        pytest.skip(f"this build has no {kind}, or its server is not there")
    section = "[KV]\n    Folder data\n" if kind == "kv" else f"[REDIS]\n    Server unix:{request.getfixturevalue('redis').socket}\n"
    top = f"[SESSIONS]\n    Store main\n{section}"
    server = prepare(monkey, site, top=top, workers=2, also=[f"duda-{kind}"])
    browser = Browser(server)
    old = sessions(browser)
    assert Browser(server, **old).get("/show").text == "- -\n"
    server.stop()
    server = prepare(monkey, site, top=top, workers=2, also=[f"duda-{kind}"])
    again = Browser(server, **browser.jar)
    assert again.get("/show").text == "eve 2\n"
    with server.connect() as late:
        late.ask("/late?n=set", "POST", [("Cookie", f"{SESSION}={again.jar[SESSION]}")], streamed=True)
        server.err.wait_for("eve waits to set")
        assert again.get("/end").text == "- -\n"
        late.more(b"set")
        late.done()
        assert late.read().text == "1 -\n"
    assert Browser(server, **browser.jar).get("/show").text == "- -\n"


@pytest.mark.parametrize("name, meant", [("main", ""), ("coockie", "cookie"), ("chared", "shared"), ("shared", None)])
def test_unknown_session_store_is_rejected(run, tmp_path, name, meant):
    if not services.has("kv"):
        pytest.skip("this build has no stores in files")
    text = f"[SERVER]\n    Listen 0\n[PLUGINS]\n    Load duda-kv\n[KV]\n    Name shared\n    Folder data\n[SESSIONS]\n    Store {name}\n[HOST]\n    DocumentRoot .\n"
    (tmp_path / "monkey.conf").write_text(text)
    done = run("-t", "-c", tmp_path / "monkey.conf")
    assert done.code == (3 if meant is not None else 0), done
    if meant is not None:
        assert f"monkey.conf:9:11: error: no [KV] or [REDIS] has the Name `{name}`" in done.err
        assert ("did you mean" in done.err) == bool(meant) and (not meant or f"did you mean `{meant}`?" in done.err)


@sealing
def test_session_in_the_cookie_is_regenerated_and_destroyed(monkey, site):
    server = prepare(monkey, site, top="[SESSIONS]\n    Store cookie\n")
    browser = Browser(server)
    sessions(browser)
    browser.get("/end")
    assert not browser.jar
    assert browser_with(server, "0" * 64).get("/show").text == "- -\n"


def test_csrf_token_is_required_from_the_same_origin(server):
    browser = Browser(server)
    tokens = browser.get("/token").text.split()
    assert len(set(tokens)) == 2 and browser.lines[0].endswith("; HttpOnly; SameSite=Strict")
    tokens += browser.get("/token").text.split()
    assert browser.lines == []
    for token in tokens:
        ask = {"method": "POST", "body": f"csrf_token={token}".encode()}
        assert browser.get("/guarded", [FORM], **ask).text == "passed\n"
        assert browser.get("/guarded", [("X-CSRF-Token", token)], method="PUT").text == "passed\n"
        assert browser.get("/guarded", [FORM, ("Sec-Fetch-Site", "cross-site")], **ask).status == 403
        assert browser.get("/guarded", [FORM, ("Origin", "https://evil.example")], **ask).status == 403
        assert browser.get("/guarded", [FORM, ("Origin", "null")], **ask).status == 403
        assert Browser(server).get("/guarded", [FORM], **ask).status == 403
        assert Browser(server, **{"visitors-token": "0" * 32}).get("/guarded", [FORM], **ask).status == 403
    assert browser.get("/guarded").text == "passed\n"
    assert browser.get("/guarded", method="DELETE").status == 403
    assert browser.get("/guarded", [FORM], method="POST", body=b"csrf_token=" + b"0" * 64).status == 403
    for secret in ("x" * 32, "0" * 31 + "x", "0" * 30, "0" * 34):  # these secrets are invalid: the page must set a new one
        other = Browser(server, **{"visitors-token": secret})
        fields = [FORM, ("X-CSRF-Token", other.get("/token").text.split()[0])]
        assert other.lines and other.get("/guarded", fields, method="PUT").text == "passed\n"


@pytest.mark.parametrize("redis, kv", [("", ""), ("    Name shared\n", "    Name shared\n"), ("    Name shared\n", "")])
def test_two_stores_with_one_name_are_rejected(run, tmp_path, redis, kv):
    if not services.has("kv") or not services.has("redis"):
        pytest.skip("this build lacks one of the two stores")
    (tmp_path / "monkey.conf").write_text(f"[SERVER]\n    Listen 0\n[PLUGINS]\n    Load duda-redis\n    Load duda-kv\n[REDIS]\n    Server 127.0.0.1:1\n"
                                          f"{redis}[KV]\n    Folder data\n{kv}[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    name = redis.split()[-1] if redis else "main"
    assert done.code == (3 if redis == kv else 0), done
    assert (f"error: another [KV] or [REDIS] already has the Name `{name}`" in done.err) == (done.code == 3)
