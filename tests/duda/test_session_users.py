# SPDX-License-Identifier: Apache-2.0
"""Sessions of a user, on all devices, and flash messages, with each store of sessions."""
import hashlib
import hmac
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import redis_server
import services
from fault_injection import Calendar
from proc import RELEASE

RELEASED = RELEASE.parent / "plugins"
pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#define DUDA_USE PACKAGES
#include <duda.h>
#include <errno.h>

static int log_in(struct duda_ctx *d)
{
    int e = duda_session_log_in(d, duda_param(d, "user"));
    return e ? duda_printf(d, "%d\n", e) : duda_puts(d, "in\n");
}

static int log_out(struct duda_ctx *d)
{
    int e = duda_session_destroy(d);
    return e ? e : duda_puts(d, "out\n");
}

static int show(struct duda_ctx *d)
{
    mk_str user, note;
    int e = duda_session_user(d, &user);
    (void)!duda_session_get(d, "note", &note);
    return e && e != -ENOENT ? e : duda_printf(d, "%s %s\n", user.p ? user.p : "-", note.p ? note.p : "-");
}

static int note(struct duda_ctx *d)
{
    int e = duda_session_set(d, duda_query_or(d, "name", "note"), duda_param(d, "text"));
    return duda_printf(d, "%d\n", e);
}

static int renew(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d);
    return e ? e : duda_puts(d, "renewed\n");
}

static int list(struct duda_ctx *d)
{
    const struct duda_session_info *all;
    size_t n;
    int e = duda_session_list(d, duda_param(d, "user"), &all, &n);
    if (e)
        return duda_printf(d, "%d\n", e);
    (void)duda_puts(d, "[");
    for (size_t i = 0; i < n; i++)
        (void)duda_printf(d, "%s{\"id\": \"%s\", \"ip\": \"%s\", \"agent\": \"%s\", \"age\": %lld, \"current\": %d}", i ? "," : "",
                          all[i].id.p, all[i].client_ip.p, all[i].user_agent.p,
                          (long long)(mk_request_time(duda_request(d)) - all[i].created_at), all[i].is_current);
    return duda_puts(d, "]\n");
}

static int revoke_all(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", duda_session_revoke_all(d, duda_param(d, "user")));
}

static int revoke_others(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", duda_session_revoke_others(d));
}

static int revoke(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", duda_session_revoke(d, duda_param(d, "user"), duda_param(d, "id")));
}

/* Revokes the sessions of a user after the request body has arrived. */
static int revoke_late(struct duda_ctx *d)
{
    mk_str body;
    int e = duda_read_all(d, 100, &body);
    return e ? e : revoke_all(d);
}

static int now(struct duda_ctx *d)
{
    return duda_printf(d, "%lld", (long long)mk_request_time(duda_request(d)));
}

/* Reads its session first, and changes it after the request body has arrived. */
static int late(struct duda_ctx *d)
{
    mk_str body, user;
    int e = duda_session_user(d, &user);
    e = e ? e : duda_read_all(d, 100, &body);
    e = e ? e : duda_session_set(d, "note", body);
    return duda_printf(d, "%d\n", e);
}

static int tell(struct duda_ctx *d)
{
    int e = duda_flash(d, duda_query_or(d, "category", ""), duda_query(d, "text"));
    return e ? duda_printf(d, "%d\n", e) : duda_redirect(d, 303, MK_STR("/hop"));
}

/* Frees the memory of the handler after each message. */
static int tell_many(struct duda_ctx *d)
{
    int e = 0;
    for (int i = 0; i < 12 && !e; i++) {
        size_t mark = duda_arena_mark(d);
        mk_str text = duda_sprintf(d, "%d", i);
        e = duda_flash(d, NULL, text);
        duda_arena_rewind(d, mark);
    }
    return e ? e : duda_puts(d, "told\n");
}

/* Changes the session after a message. */
static int tell_and_note(struct duda_ctx *d)
{
    int e = duda_flash(d, "", duda_query(d, "text"));
    return duda_printf(d, "%d %d\n", e, duda_session_set(d, "seen", MK_STR("yes")));
}

static int hop(struct duda_ctx *d)
{
    return duda_redirect(d, 303, MK_STR("/read"));
}

static int read_messages(struct duda_ctx *d)
{
    const struct duda_flash_message *all;
    size_t n;
    int e = duda_flash_take(d, &all, &n);
    for (size_t i = 0; i < n; i++)
        (void)duda_printf(d, "[%s|%.*s]", all[i].category, MK_STR_ARG(all[i].text));
    return e ? e : duda_puts(d, "\n");
}

DUDA_SERVICE(people, DUDA_GET("/in/:user", log_in), DUDA_GET("/out", log_out), DUDA_GET("/show", show), DUDA_GET("/note/:text", note),
             DUDA_GET("/renew", renew), DUDA_GET("/list/:user", list), DUDA_GET("/all/:user", revoke_all), DUDA_GET("/others", revoke_others),
             DUDA_GET("/one/:user/:id", revoke), DUDA_POST("/late", late),
             DUDA_POST("/all-late/:user", revoke_late), DUDA_GET("/now", now), DUDA_GET("/tell", tell), DUDA_GET("/hop", hop),
             DUDA_GET("/read", read_messages), DUDA_GET("/many", tell_many), DUDA_GET("/tell-and-note", tell_and_note));
"""

STORES = {
    "memory": ("", []),
    "kv": ("[KV]\n    Folder {folder}/kv\n", ["kv"]),
    "redis": ("[REDIS]\n    Server unix:{socket}\n", ["redis"]),
}
IN_SERVER = pytest.mark.parametrize("store", STORES)
EVERYWHERE = pytest.mark.parametrize("store", [*STORES, "cookie"])


@pytest.fixture
def people(monkey, site, tmp_path):
    redis = []

    def start(store, settings="", objects=services.OBJECTS, **how):
        section, packages = STORES.get(store, ("", []))
        if store == "cookie" and not services.has("seal") or packages and not services.has(packages[0]):
            pytest.skip(f"this build has no sessions in {store}")
        if store == "redis":
            if redis_server.PROGRAM is None:
                pytest.skip("redis is not installed")
            redis.append(redis_server.Redis())
        flags = ["-DPACKAGES=" + (",".join(f'"duda-{p}"' for p in packages) or "NULL")]
        service = services.build(tmp_path, "people", SOURCE, *flags, packages=packages, objects=objects)
        text = section.format(folder=site.path.parent, socket=redis and redis[-1].socket)
        name = store if store in ("memory", "cookie") else "main"
        plugins = [f"duda-{p}" if objects is services.OBJECTS else str(objects / f"monkey-duda-{p}.so") for p in packages]
        server = monkey(plugins=[*plugins, service], top=f"{text}[SESSIONS]\n    Store {name}\n    {settings}\n", **how)
        server.redis = redis[-1] if store == "redis" else None
        return server

    yield start
    for each in redis:
        each.stop()


class Browser:
    def __init__(self, server, agent="Tester/1.0", source=None):
        self.server, self.agent, self.cookie, self.source = server, agent, None, source

    def get(self, path, **how):
        with self.server.connect(source=self.source) as c:
            reply = c.get(path, fields={"User-Agent": self.agent, **({"Cookie": self.cookie} if self.cookie else {})}, **how)
        for line in reply.all("Set-Cookie"):
            self.cookie = None if re.search("Max-Age=0", line) else line.split(";")[0]
        return reply

    def text(self, path):
        return self.get(path).text.strip()

    def sessions(self, user):
        return json.loads(self.text(f"/list/{user}"))


def logged_in(server, user, n):
    browsers = [Browser(server, f"Agent/{i}", f"127.0.1.{i + 1}") for i in range(n)]
    for b in browsers:
        assert b.text(f"/in/{user}") == "in"
    return browsers


# ---- Login ----

@EVERYWHERE
def test_log_in_binds_the_session_and_changes_its_id(people, store):
    b = Browser(people(store))
    assert b.text("/show") == "- -"
    assert b.text("/note/cart") == "0"
    before = b.cookie
    assert b.text("/in/ana") == "in"
    assert b.cookie != before, "session fixation"
    assert b.text("/show") == "ana cart", "a login keeps what a guest has stored"
    old = Browser(b.server)
    old.cookie = before
    assert old.text("/show") == "- -"
    assert b.text("/renew") == "renewed"
    assert b.text("/show") == "ana cart"


@EVERYWHERE
def test_log_in_as_another_user_starts_with_an_empty_session(people, store):
    b = Browser(people(store))
    b.get("/in/ana")
    b.get("/note/secret")
    b.get("/in/ben")
    assert b.text("/show") == "ben -"


@EVERYWHERE
def test_service_cannot_forge_the_user_of_a_session(people, store):
    b = Browser(people(store))
    b.get("/note/x")
    assert b.text("/note/admin?name=%01user") == "-22"
    assert b.text("/show") == "- x"


def test_user_ids_are_limited_in_length(people):
    b = Browser(people("memory"))
    assert b.text("/in/" + "u" * 255) == "in"
    assert b.text("/in/" + "u" * 256) == "-22"


# ---- Revocation ----

@IN_SERVER
def test_revoke_all_ends_the_sessions_of_this_user_only(people, store):
    server = people(store, workers=2)
    devices, other = logged_in(server, "ana", 3), logged_in(server, "ben", 1)[0]
    assert devices[0].text("/all/ana") == "0"
    for b in devices:
        assert {b.text("/show") for _ in range(4)} == {"- -"}
    assert other.text("/show") == "ben -"
    assert devices[1].text("/in/ana") == "in", "a new login works"
    assert devices[1].text("/show") == "ana -"
    assert other.text("/all/ana") == "0", "an administrator"
    assert devices[1].text("/show") == "- -"


@IN_SERVER
def test_revoke_others_keeps_the_current_session(people, store):
    devices = logged_in(people(store, workers=2), "ana", 3)
    assert devices[1].text("/others") == "0"
    assert [b.text("/show") for b in devices] == ["- -", "ana -", "- -"]
    assert [s["agent"] for s in devices[1].sessions("ana")] == ["Agent/1"]
    assert devices[1].text("/renew") == "renewed"
    assert devices[1].text("/show") == "ana -"
    assert Browser(devices[1].server).text("/others") == "-2"


@IN_SERVER
def test_request_that_began_before_a_revocation_does_not_restore_its_session(people, store):
    server = people(store)
    ana, admin = logged_in(server, "ana", 2)
    with server.connect(protocol="h1") as c:
        c.send(f"POST /late HTTP/1.1\r\nHost: x\r\nCookie: {ana.cookie}\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n".encode())
        c.read_until(b"100 Continue\r\n\r\n")
        assert admin.text("/all/ana") == "0"
        c.send(b"abc")
        c.read("POST")
    assert ana.text("/show") == "- -"


@IN_SERVER
def test_concurrent_logins_and_revocations_leave_no_old_session(people, store):
    server = people(store, workers=2)
    old = logged_in(server, "ana", 4)
    start = threading.Barrier(6)

    def run(i):
        b = Browser(server)
        start.wait()
        for _ in range(8):
            b.text("/in/ana") if i else b.text("/all/ana")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, range(6)))
    assert {b.text("/show") for b in old} == {"- -"}


@IN_SERVER
def test_client_cannot_use_a_record_of_a_user_as_its_session(people, store):
    """The IDs of these records can be computed from the user's ID. They begin with a letter that is not a hexadecimal digit, and
    the server accepts no such ID in a cookie."""
    server = people(store)
    ana = logged_in(server, "ana", 1)[0]
    ana.get("/others")
    name = ana.cookie.split("=")[0]
    digits = hmac.new(b"duda session record", b"ana", hashlib.sha256).hexdigest()
    for kind in "glm0123456789abcdef":
        eve = Browser(server)
        eve.cookie = f"{name}={kind}{digits[1:]}"
        assert eve.text("/show") == "- -"


# ---- The lifetime of the records beside the sessions ----

@pytest.mark.parametrize("store", ["memory", "kv"])
def test_revocation_outlives_the_sessions_that_it_ends(people, tmp_path, store):
    """A login reads the revocation, but must not limit its life to IdleTimeout: a session may live longer, because the server
    does not write it on every request."""
    calendar = Calendar(tmp_path)
    server = people(store, "IdleTimeout 40s", objects=RELEASED, **calendar.how)
    lost = logged_in(server, "ana", 1)[0]
    assert Browser(server).text("/all/ana") == "0"
    logged_in(server, "ana", 1)
    calendar.go_to(server, 45)
    assert lost.text("/show") == "- -"
    assert logged_in(server, "ana", 1)[0].text("/show") == "ana -"


@pytest.mark.parametrize("store", ["memory", "kv"])
def test_revocation_by_an_old_request_outlives_the_sessions_that_it_ends(people, tmp_path, store):
    """The handler of a WebSocket, for example, may revoke sessions hours after its request."""
    calendar = Calendar(tmp_path)
    server = people(store, "AbsoluteTimeout 100s", objects=RELEASED, **calendar.how)
    with server.connect(protocol="h1") as c:
        c.send(b"POST /all-late/ana HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        c.read_until(b"100 Continue\r\n\r\n")
        calendar.go_to(server, 90)
        lost = logged_in(server, "ana", 1)[0]
        c.send(b"abc")
        assert c.read("POST").text == "0\n"
    calendar.go_to(server, 110)
    assert lost.text("/show") == "- -"


def test_revocation_in_redis_outlives_the_idle_timeout(people):
    server = people("redis", "IdleTimeout 40s")
    assert Browser(server).text("/all/ana") == "0"
    keys = [k for k in server.redis.ask("KEYS", "!duda:s::*").decode().split() if re.fullmatch("!duda:s::[0-9a-f]{64}", k)]
    new = logged_in(server, "ana", 1)[0]
    assert new.text("/show") == "ana -"
    assert len(keys) == 1 and int(server.redis.ask("PTTL", keys[0])[1:].split()[0]) > 43000_000


@pytest.mark.parametrize("store", ["memory", "kv"])
def test_list_outlives_the_idle_timeout(people, tmp_path, store):
    calendar = Calendar(tmp_path)
    server = people(store, "IdleTimeout 40s", objects=RELEASED, **calendar.how)
    ana = logged_in(server, "ana", 1)[0]
    assert len(ana.sessions("ana")) == 1
    for seconds in (30, 60, 90):
        calendar.go_to(server, seconds)
        assert ana.text("/show") == "ana -", seconds
    assert len(ana.sessions("ana")) == 1


# ---- The list ----

@IN_SERVER
def test_list_shows_the_devices_of_a_user(people, store):
    server = people(store)
    devices = logged_in(server, "ana", 3)
    sessions = devices[2].sessions("ana")
    assert {(s["agent"], s["ip"]) for s in sessions} == {(f"Agent/{i}", f"127.0.1.{i + 1}") for i in range(3)}
    assert [s["agent"] for s in sessions if s["current"]] == ["Agent/2"]
    assert all(0 <= s["age"] < 60 for s in sessions)
    assert devices[0].text("/out") == "out"
    assert {s["agent"] for s in devices[2].sessions("ana")} == {"Agent/1", "Agent/2"}
    assert devices[0].sessions("ben") == []


@IN_SERVER
def test_revoke_ends_one_session_of_the_list(people, store):
    devices = logged_in(people(store), "ana", 3)
    by_agent = {s["agent"]: s["id"] for s in devices[0].sessions("ana")}
    assert devices[0].text(f"/one/ana/{by_agent['Agent/1']}") == "0"
    assert [b.text("/show") for b in devices] == ["ana -", "- -", "ana -"]
    assert devices[0].text(f"/one/ana/{by_agent['Agent/1']}") == "-2"
    assert devices[0].text(f"/one/ben/{by_agent['Agent/2']}") == "-2", "the ID is valid for its user only"
    assert devices[0].text(f"/one/ana/{by_agent['Agent/0']}") == "0"
    assert devices[0].text("/show") == "- -"
    assert devices[2].text("/show") == "ana -"


@IN_SERVER
def test_list_is_bounded_and_unlisted_sessions_are_revoked_too(people, store):
    devices = [Browser(people(store), "x" * 300)]
    devices += [Browser(devices[0].server, "x" * 300) for _ in range(29)]
    assert [b.text("/in/ana") for b in devices] == ["in"] * 30
    sessions = devices[0].sessions("ana")
    assert 12 <= len({s["id"] for s in sessions}) == len(sessions) < 30
    assert {s["agent"] for s in sessions} == {"x" * 120}
    assert all(b.text("/show") == "ana -" for b in devices)
    assert devices[0].text("/all/ana") == "0"
    assert all(b.text("/show") == "- -" for b in devices)


def test_sessions_in_cookies_cannot_be_listed_or_revoked(people):
    server = people("cookie")
    assert "not possible with `Store cookie`" in server.log
    ana = logged_in(server, "ana", 1)[0]
    assert [ana.text(path) for path in ("/list/ana", "/all/ana", "/others", "/one/ana/x")] == ["-95"] * 4
    assert ana.text("/show") == "ana -"


ALIAS = r"""
#include <duda.h>

static int add(struct duda_ctx *d)
{
    mk_str user = MK_STR("ana");
    int e = duda_session_log_in(d, user);
    return e ? e : duda_printf(d, "%d\n", CALL);
}
DUDA_SERVICE(alias, DUDA_GET("/", add));
"""


@pytest.mark.parametrize("call, result, warned", [
    ('duda_session_add_alias(d, MK_STR("x"))', "-95", True), ('duda_session_find_user(d, MK_STR("x"), &user)', "-95", True),
    ('duda_session_list(d, user, &(const struct duda_session_info *){0}, &(size_t){0})', "-95", True),
    ('duda_session_revoke_others(d)', "-95", True), ('duda_session_log_in(d, user)', "0", False)])
def test_cookie_sessions_are_reported_for_each_function_that_they_do_not_support(monkey, site, tmp_path, call, result, warned):
    if not services.has("seal"):
        pytest.skip("this build has no sessions in cookies")
    service = services.build(tmp_path, "alias", ALIAS.replace("CALL", call))
    server = monkey(plugins=[service], top="[SESSIONS]\n    Store cookie\n")
    assert server.get("/").text == f"{result}\n"
    assert ("not possible with `Store cookie`" in server.log) == warned


# ---- Flash messages ----

@EVERYWHERE
def test_flash_message_survives_redirects_and_is_shown_once(people, store):
    b = Browser(people(store, workers=2))
    reply = b.get("/tell?category=success&text=Saved%20%3Cb%3E")
    assert (reply.status, reply["Location"]) == (303, "/hop")
    assert b.get("/hop").status == 303
    assert b.text("/show") == "- -", "a page that shows no messages leaves them"
    assert b.text("/read") == "[success|Saved <b>]"
    assert b.text("/read") == ""


@EVERYWHERE
def test_flash_messages_keep_their_order_and_replace_the_oldest(people, store):
    b = Browser(people(store))
    for i in range(11):
        assert b.get(f"/tell?text={i}").status == 303
    assert b.text("/read") == "".join(f"[|{i}]" for i in range(3, 11))
    for letter in "abc":
        assert b.get("/tell?text=" + letter * 1000).status == 303
    assert b.text("/read") == f"[|{'b' * 1000}][|{'c' * 1000}]"
    assert b.get("/tell?text=" + "x" * 2900).text == "-90\n"
    assert b.text("/read") == ""


@EVERYWHERE
def test_flash_messages_outlive_rewound_handler_memory(people, store):
    b = Browser(people(store))
    assert b.text("/many") == "told"
    assert b.text("/read") == "".join(f"[|{i}]" for i in range(4, 12))


@EVERYWHERE
def test_too_long_flash_message_replaces_no_others(people, store):
    b = Browser(people(store))
    b.get("/tell?text=first")
    b.get("/tell?text=second")
    assert b.text("/tell-and-note?text=" + "x" * 2780) == "-90 0"
    assert b.text("/read") == "[|first][|second]"


def test_session_in_cookie_has_less_space_for_flash_messages(people):
    b = Browser(people("cookie"))
    assert b.text("/note/" + "n" * 2000) == "0"
    b.get("/tell?text=first")
    assert b.text("/tell-and-note?text=" + "x" * 800) == "-90 0"
    assert b.text("/tell-and-note?text=" + "x" * 600) == "0 0"
    assert b.text("/read") == f"[|first][|{'x' * 600}]"
    assert b.text("/show") == "- " + "n" * 2000


@EVERYWHERE
def test_flash_message_moves_to_the_new_session_id(people, store):
    b = Browser(people(store))
    b.get("/tell?text=Welcome")
    b.get("/in/ana")
    assert b.text("/read") == "[|Welcome]"
    b.get("/tell?text=Bye")
    b.get("/out")
    assert b.text("/read") == "", "a destroyed session has no messages"


@IN_SERVER
def test_flash_message_is_shown_by_one_of_many_concurrent_requests(people, store):
    b = Browser(people(store, workers=2))
    for _ in range(5):
        b.get("/tell?text=once")
        start = threading.Barrier(6)

        def read(_, start=start):
            own = Browser(b.server)
            own.cookie = b.cookie
            start.wait()
            return own.text("/read")

        with ThreadPoolExecutor(6) as pool:
            assert sorted(pool.map(read, range(6))) == [""] * 5 + ["[|once]"]


def test_flash_messages_belong_to_one_browser(people):
    server = people("memory")
    ana, ben = Browser(server), Browser(server)
    ana.get("/tell?text=secret")
    assert ben.text("/read") == ""
    assert ana.text("/read") == "[|secret]"
