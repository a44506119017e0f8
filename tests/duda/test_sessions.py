# SPDX-License-Identifier: Apache-2.0
"""The lifetime of sessions with each store: when they expire, and which are evicted if there are too many. Only the
server can create sessions."""
import errno
import re
import signal

import pytest

import redis_server
import services
from client import Closed
from fault_injection import Calendar
from proc import RELEASE

RELEASED = RELEASE.parent / "plugins"
pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#define DUDA_USE PACKAGES
#include <duda.h>
#include <errno.h>
#include <stdlib.h>
#ifdef HAS_KV
#include <duda/kv.h>
#endif
#ifdef HAS_REDIS
#include <duda/redis.h>
#endif

/* Returns an absent string if there is no such value or the store is down. */
static inline mk_str session_value(struct duda_ctx *d, const char *name)
{
    mk_str value;
    (void)!duda_session_get(d, name, &value);
    return value;
}

static int visit(struct duda_ctx *d)
{
    int e = duda_session_set(d, "user", duda_param(d, "user"));
    return e ? e : duda_puts(d, "visits\n");
}

static int log_in(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d);
    return e ? e : visit(d);
}

static int log_out(struct duda_ctx *d)
{
    int e = duda_session_destroy(d);
    return e ? e : duda_puts(d, "out\n");
}

/* Regenerates the session many times, like a client that logs in repeatedly. */
static int churn(struct duda_ctx *d)
{
    int e = 0;
    for (int i = 0; i < 400000 && !e; i++)
        e = duda_session_regenerate(d);
    return e ? e : visit(d);
}

static int show(struct duda_ctx *d)
{
    mk_str user = session_value(d, "user");
    return duda_printf(d, "%.*s\n", MK_STR_ARG(user.p ? user : MK_STR("-")));
}

static int crash(struct duda_ctx *d)
{
    if (session_value(d, "user").p)
        abort();
    return 404;
}

static int now(struct duda_ctx *d)
{
    return duda_printf(d, "%lld", (long long)mk_request_time(duda_request(d)));
}

/* Changes the session after the whole request body has arrived. */
static int late(struct duda_ctx *d)
{
    mk_str content, user = session_value(d, "user");
    int e = duda_read_all(d, 100, &content);
    e = e ? e : duda_session_set(d, "user", user.p ? content : MK_STR("?"));
    return e ? duda_printf(d, "%d\n", e) : duda_puts(d, "set\n");
}

/* Decodes a hexadecimal parameter, so that it may contain arbitrary bytes. */
static mk_str bytes(struct duda_ctx *d, const char *name)
{
    mk_str text = duda_query(d, name);
    char *out = duda_alloc(d, text.len / 2 + 1);
    for (size_t i = 0; out && i + 1 < text.len; i += 2)
        out[i / 2] = (char)(mk_char_hex(text.p[i]) * 16 + mk_char_hex(text.p[i + 1]));
    return out ? mk_str_of(out, text.len / 2) : MK_STR_NULL;
}

#ifdef HAS_KV
static int put(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", -duda_kv_set(d, duda_kv_find(d, NULL), bytes(d, "key"), bytes(d, "value"), 0));
}
#elif defined(HAS_REDIS)
static struct duda_redis_script script = {.source = "return redis.call('SET', KEYS[1], ARGV[1])"};

static int put(struct duda_ctx *d)
{
    struct duda_redis *r = duda_redis_find(d, NULL);
    struct duda_redis_reply reply[2];
    struct duda_redis_sub *sub;
    const mk_str parts[] = {MK_STR("SET"), bytes(d, "key"), bytes(d, "value")}, arguments[] = {parts[1], parts[2]},
                 other[] = {MK_STR("PING")};
    const struct duda_redis_command commands[] = {{other, 1}, {parts, 3}};
    const char *how = duda_query_or(d, "how", "do");
    int e = -EINVAL;
    switch (*how) {
    case 'd': e = duda_redis_do(d, r, reply, parts, 3); break;
    case 'm': e = duda_redis_pipeline(d, r, commands, 2, reply); break;
    case 't': e = duda_redis_transaction(d, r, commands, 2, reply); break;
    case 'w': e = duda_redis_write_replicated(d, r, reply, 0, 10, parts, 3); break;
    case 'b': e = duda_redis_blocking(d, r, reply, 10, parts, 3); break;
    case 'r': e = duda_redis_eval(d, r, reply, &script, 1, arguments, 2); break;
    case 's': e = duda_redis_subscribe(d, r, parts[1], &sub); break;
    }
    return duda_printf(d, "%d\n", -e);
}
#else
static int put(struct duda_ctx *d)
{
    return bytes(d, "key").p ? 404 : 500;
}
#endif

DUDA_SERVICE(people, DUDA_GET("/visit/:user", visit, ""), DUDA_GET("/in/:user", log_in, ""), DUDA_GET("/out", log_out, ""),
             DUDA_GET("/churn/:user", churn, ""), DUDA_GET("/crash", crash, ""),
             DUDA_GET("/show", show, ""), DUDA_GET("/now", now, ""), DUDA_POST("/late", late, ""), DUDA_GET("/put", put, ""));
"""

NAME = "people-session"
STORES = {
    "memory": ("", [], []),
    "cookie": ("", [], []),
    "kv": ("[KV]\n    Folder {folder}/kv\n", ["duda-kv"], ["kv"]),
    "redis": ("[REDIS]\n    Server unix:{socket}\n", ["duda-redis"], ["redis"]),
}


@pytest.fixture
def people(monkey, site, tmp_path):
    """people("kv", "IdleTimeout 8s") starts a server that keeps its sessions in that store."""
    redis = []

    def start(store, settings="", objects=services.OBJECTS, more=(), **how):
        section, plugins, packages = STORES[store]
        if store == "cookie" and not (objects / "monkey-duda-seal.so").exists() or packages and not services.has(packages[0]):
            pytest.skip(f"this build has no sessions in {store}")
        if store == "redis":
            if redis_server.PROGRAM is None:
                pytest.skip("redis is not installed")
            redis.append(redis_server.Redis())
        flags = ["-DPACKAGES=" + (",".join(f'"duda-{p}"' for p in packages) or "NULL"), *(f"-DHAS_{p.upper()}" for p in packages)]
        service = services.build(tmp_path, "people", SOURCE, *flags, packages=packages, objects=objects)
        text = section.format(folder=site.path.parent, socket=redis and redis[-1].socket)
        name = store if store in ("memory", "cookie") else "main"
        if objects is not services.OBJECTS:
            plugins = [str(objects / f"monkey-{p}.so") for p in plugins]
        server = monkey(plugins=[*more, *plugins, service], top=f"{text}[SESSIONS]\n    Store {name}\n    {settings}\n", **how)
        server.redis = redis[-1] if store == "redis" else None
        return server

    yield start
    for each in redis:
        each.stop()


def cookie_of(reply):
    return reply.all("Set-Cookie")[-1].split(";")[0] if reply.all("Set-Cookie") else None


def session_keys(redis):
    """The keys of all sessions, without the key of the secret."""
    return {key for key in redis.ask("KEYS", "!duda:s::*").decode().split() if re.fullmatch("!duda:s::[0-9a-f]{64}", key)}


def session_key(redis):
    keys = session_keys(redis)
    assert len(keys) == 1
    return keys.pop()


def quoted(data):
    """Quotes a value for a Redis inline command."""
    return '"' + "".join(f"\\x{b:02x}" for b in data) + '"'


def get(server, path, cookie=None, source=None, **how):
    with server.connect(source=source) as c:
        return c.get(path, fields={"Cookie": cookie} if cookie else {}, **how)


def show(server, cookie):
    return get(server, "/show", cookie).text.strip()


# ---- Expiry ----

@pytest.mark.parametrize("store", ["memory", "cookie", "kv"])
def test_session_expires_after_the_idle_timeout_and_not_before(people, tmp_path, store):
    calendar = Calendar(tmp_path)
    server = people(store, "IdleTimeout 40s", objects=RELEASED, **calendar.how)

    def at(seconds, cookie):
        calendar.go_to(server, seconds)
        reply = get(server, "/show", cookie)
        return reply.text.strip(), cookie_of(reply) or cookie

    cookie = cookie_of(get(server, "/visit/ana"))
    user, cookie = at(9, cookie)  # too early for the session to be written again
    assert user == "ana"
    for seconds in (48, 87, 125):  # each request within IdleTimeout of the previous one
        user, cookie = at(seconds, cookie)
        assert user == "ana", seconds
    assert at(125 + 40 + 10 + 2, cookie)[0] == "-"


def test_session_in_redis_outlives_the_idle_timeout(people):
    """Redis expires the key by itself, and the server does not write the session on every request, so the key must live
    longer than IdleTimeout."""
    server = people("redis", "IdleTimeout 40s")
    get(server, "/visit/ana")
    left = int(server.redis.ask("PTTL", session_key(server.redis))[1:].split()[0])
    assert 48000 < left <= 50000


@pytest.mark.parametrize("store", ["memory", "cookie", "kv"])
def test_session_expires_after_the_absolute_timeout(people, tmp_path, store):
    calendar = Calendar(tmp_path)
    server = people(store, "AbsoluteTimeout 60s", objects=RELEASED, **calendar.how)
    cookie = cookie_of(get(server, "/visit/ana"))
    for seconds in range(0, 60, 10):
        calendar.go_to(server, seconds)
        reply = get(server, "/show", cookie)
        assert reply.text == "ana\n", seconds
        cookie = cookie_of(reply) or cookie
    calendar.go_to(server, 61)
    assert show(server, cookie) == "-"


@pytest.mark.parametrize("store", STORES)
def test_old_cookie_is_invalid_after_logout_and_regeneration(people, store):
    server = people(store)
    first = cookie_of(get(server, "/visit/ana"))
    second = cookie_of(get(server, "/in/ana", first))
    assert [show(server, c) for c in (first, second)] == ["-", "ana"]
    other = cookie_of(get(server, "/in/ben"))
    assert get(server, "/out", second).text == "out\n"
    assert [show(server, c) for c in (first, second, other)] == ["-", "-", "ben"]
    assert get(server, "/out", second).text == "out\n"  # the client has no session anymore, but this is not an error


def test_logout_of_a_cookie_session_is_known_to_all_workers(people):
    server = people("cookie", workers=3)
    cookie = cookie_of(get(server, "/in/ana"))
    get(server, "/out", cookie)
    assert {show(server, cookie) for _ in range(12)} == {"-"}


def test_many_logouts_of_one_client_revive_no_session_of_others(people):
    """A client that logs out very often displaces the records of its own logouts, not those of other clients."""
    server = people("cookie")
    cookies = [cookie_of(get(server, f"/in/user{i}", source=f"127.0.1.{i + 1}")) for i in range(50)]
    for i, cookie in enumerate(cookies):
        get(server, "/out", cookie, source=f"127.0.1.{i + 1}")
    own = cookie_of(get(server, "/churn/eve", source="127.0.2.1"))
    assert show(server, own) == "eve"
    # Twelve bits identify a client, so a few clients may collide with the attacker.
    assert sum(show(server, cookie) == "-" for cookie in cookies) >= 48


def test_cookie_session_ended_during_a_request_is_not_restored(people):
    server = people("cookie")
    cookie = cookie_of(get(server, "/in/ana"))
    with server.connect(protocol="h1") as c:
        c.send(f"POST /late HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n".encode())
        c.read_until(b"100 Continue\r\n\r\n")
        get(server, "/out", cookie)
        c.send(b"eve")
        reply = c.read_until(f"{-errno.ESTALE}\n".encode())
    assert b"Set-Cookie" not in reply
    assert show(server, cookie) == "-"


# ---- Limits ----

def flood(server, n, source, path="/visit/flood"):
    with server.connect(source=source, protocol="h1") as c:
        for at in range(0, n, 50):
            c.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 50)
            for _ in range(50):
                assert c.read("GET").status in (200, 503)


def test_session_flood_of_one_address_evicts_neither_logins_nor_other_addresses(people):
    """Eight sessions of eight addresses have room wherever their random IDs put them: a session may use one of eight slots."""
    server = people("memory", "MaxSessions 64", server="KeepAliveRequests unlimited")
    known = [cookie_of(get(server, f"/in/user{i}", source=f"127.0.3.{i + 1}")) for i in range(4)]
    others = [cookie_of(get(server, f"/visit/guest{i}", source=f"127.0.1.{i + 1}")) for i in range(4)]
    flood(server, 2000, "127.0.2.1")
    assert [show(server, c) for c in known] == [f"user{i}" for i in range(4)]
    assert [show(server, c) for c in others] == [f"guest{i}" for i in range(4)]
    # Logged-in sessions of one address evict no others either: when the table is full, each address gets only its share.
    flood(server, 2000, "127.0.2.1", "/in/flood")
    assert [show(server, c) for c in known] == [f"user{i}" for i in range(4)]


def test_session_flood_of_many_addresses_evicts_no_login(people):
    """A session that is read and written after its login is not evicted either."""
    server = people("memory", "MaxSessions 64")
    known = [cookie_of(get(server, f"/in/user{i}")) for i in range(8)]
    for i, cookie in enumerate(known):
        get(server, f"/visit/user{i}", cookie)
    first = cookie_of(get(server, "/visit/first"))
    for i in range(400):
        get(server, "/visit/guest", source=f"127.0.{i // 200 + 1}.{i % 200 + 1}")
    assert [show(server, c) for c in known] == [f"user{i}" for i in range(8)]
    assert show(server, first) == "-", "other sessions have replaced it"


@pytest.mark.parametrize("store", ["kv", "redis"])
def test_sessions_of_one_address_in_a_store_are_limited(people, store):
    server = people(store, "MaxSessions 10", workers=2)
    cookies = [cookie_of(get(server, "/visit/guest", source="127.0.1.1")) for _ in range(10)]
    assert get(server, "/visit/guest", source="127.0.1.1").status == 429
    assert get(server, "/visit/other", source="127.0.1.2").text == "visits\n"
    assert get(server, "/in/ana", source="127.0.1.1").text == "visits\n"  # logged-in sessions do not count
    assert get(server, "/visit/again", cookies[0], source="127.0.1.1").text == "visits\n"
    assert show(server, cookies[0]) == "again"


@pytest.mark.parametrize("store", STORES)
def test_session_survives_a_reload(people, store):
    server = people(store)
    cookie = cookie_of(get(server, "/in/ana"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert show(server, cookie) == "ana"


# ---- Forgery ----

def record(user):
    """Returns a session in the stored format, without its proof."""
    now = (1 << 40).to_bytes(8, "big")
    return now + now + b"\1" + len(b"user").to_bytes(2, "big") + len(user).to_bytes(2, "big") + b"user" + user


def key_in_store(server, store, folder):
    """The key of the only session, as stored."""
    if store == "redis":
        return session_key(server.redis).removeprefix("!duda:s::")
    found = set(re.findall(rb"s::([0-9a-f]{64})", (folder / "kv" / "data.mdb").read_bytes()))
    assert len(found) == 1
    return found.pop().decode()


@pytest.mark.parametrize("store", ["kv", "redis"])
def test_entry_of_the_application_is_never_a_session(people, store, site):
    server = people(store)
    cookie = cookie_of(get(server, "/in/ana"))
    stored_key = key_in_store(server, store, site.path.parent)
    for number in (stored_key, cookie.partition("=")[2], "ab" * 32):
        keys = [f"session/{number}", f"s::{number}", f"session:{number}", f"!duda:s::{number}", f"k:people:s::{number}", number]
        for key in keys:
            for value in (record(b"root"), bytes(16) + record(b"root")):
                assert get(server, f"/put?key={key.encode().hex()}&value={value.hex()}").text == ("1\n" if store == "redis" and key[0] == "!" else "0\n")
                assert show(server, f"{NAME}={number}") == ("ana" if number in cookie else "-"), key
    assert show(server, cookie) == "ana", "the session is unchanged"


def test_redis_commands_of_a_service_cannot_use_keys_of_duda(people):
    server = people("redis")
    key = b"!duda:s::" + b"ab" * 32
    for how in ("do", "many", "transaction", "write", "block", "run", "subscribe"):
        assert get(server, f"/put?how={how}&key={key.hex()}&value=00").text == "1\n", how
        assert get(server, f"/put?how={how}&key={b'own'.hex()}&value={key.hex()}").text == ("0\n" if how == "subscribe" else "1\n")
    assert server.redis.ask("EXISTS", key.decode()) == b":0\r\n"


def test_session_forged_in_redis_is_rejected(people):
    server = people("redis")
    cookie = cookie_of(get(server, "/in/ana"))
    key = session_key(server.redis)
    mine = server.redis.ask("GET", key).partition(b"\r\n")[2][:-2]
    server.redis.ask("SET", key, quoted(mine.replace(b"ana", b"bob")))
    assert show(server, cookie) == "-"
    server.redis.ask("SET", key, quoted(mine))
    assert show(server, cookie) == "ana"
    # A copy of a session under the key of another session, or under its session ID, is also rejected.
    other = cookie_of(get(server, "/in/eve", source="127.0.1.1"))
    (key_of_other,) = session_keys(server.redis) - {key}
    server.redis.ask("SET", key_of_other, quoted(mine))
    assert show(server, other) == "-"
    server.redis.ask("SET", "!duda:s::" + "ab" * 32, quoted(mine))
    assert show(server, f"{NAME}=" + "ab" * 32) == "-"
    assert show(server, cookie) == "ana"


def swap_records(folder, *users):
    """Swaps the stored records of two sessions in a [KV] store. Both user names must have the same length."""
    path = folder / "data.mdb"
    data = bytearray(path.read_bytes())
    offsets = {user: [m.end() for m in re.finditer(rb"s::[0-9a-f]{64}(?=.{8}.{16}.{17}\x00\x04\x00\x03user" + user + b")", bytes(data), re.DOTALL)]
              for user in users}
    size = 8 + 16 + 17 + 4 + len(b"user") + 3
    records = [bytes(data[offsets[user][0]:offsets[user][0] + size]) for user in users]
    for user, record in zip(users, reversed(records)):
        for at in offsets[user]:
            data[at:at + size] = record
    path.write_bytes(data)


def test_session_swapped_in_a_kv_store_is_rejected(people, site):
    server = people("kv")
    cookies = [cookie_of(get(server, f"/in/{user}")) for user in ("ana", "eve")]
    folder = site.path.parent / "kv"
    server.stop()
    swap_records(folder, b"ana", b"eve")
    server = people("kv")
    assert [show(server, c) for c in cookies] == ["-", "-"]
    server.stop()
    swap_records(folder, b"eve", b"ana")
    server = people("kv")
    assert [show(server, c) for c in cookies] == ["ana", "eve"]


def shared_memory(server):
    """The workers' shared memory, as root or the server's user can read it."""
    found = b""
    for pid in server.workers:
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in maps:
                span, rights, *_ = line.split()
                begin, end = (int(x, 16) for x in span.split("-"))
                if rights == "rw-s":
                    memory.seek(begin)
                    found += memory.read(end - begin)
    return found


def content_of_store(server, store, folder):
    if store == "memory":
        return shared_memory(server)
    if store == "kv":
        return b"".join(path.read_bytes() for path in (folder / "kv").iterdir())
    keys = server.redis.ask("KEYS", "*")
    return keys + b"".join(server.redis.ask("GET", key) for key in keys.decode().split() if key.startswith("!"))


@pytest.mark.parametrize("store", ["memory", "kv", "redis"])
def test_copy_of_a_store_reveals_no_session_id(people, store, site):
    """The store contains only hashes of session IDs, so a copy of the store does not help an attacker take over a session."""
    server = people(store)
    cookies = [cookie_of(get(server, "/visit/ana")), cookie_of(get(server, "/visit/guest"))]
    cookies.append(cookie_of(get(server, "/in/ana", cookies[0])))
    assert [show(server, c) for c in cookies] == ["-", "guest", "ana"]
    content = content_of_store(server, store, site.path.parent)
    assert b"userguest" in content and b"userana" in content
    for cookie in cookies:
        number = cookie.partition("=")[2]
        assert len(number) == 64
        for form in (number.encode(), number.upper().encode(), bytes.fromhex(number)):
            assert form not in content
    # The hashes are not accepted as session IDs.
    for key in set(re.findall(rb"[0-9a-f]{64}", content)):
        assert show(server, f"{NAME}={key.decode()}") == "-"


def test_secret_lost_by_redis_is_restored_by_a_worker(people):
    """Machines that start later still accept the sessions created before."""
    server = people("redis", workers=1)
    cookie = cookie_of(get(server, "/in/ana"))
    key = session_key(server.redis)
    mine = server.redis.ask("GET", key).partition(b"\r\n")[2][:-2]
    secret = server.redis.ask("GET", "!duda:s::secret")
    server.redis.ask("DEL", "!duda:s::secret")
    server.redis.ask("SET", key, "x" * 40)
    assert show(server, cookie) == "-"  # the proof does not verify, so the worker looks for a newer secret
    assert server.redis.ask("GET", "!duda:s::secret") == secret and len(secret) > 32
    server.redis.ask("SET", key, quoted(mine))
    assert show(server, cookie) == "ana"


def test_previous_key_is_accepted_while_it_is_listed(people):
    def serve(*keys):
        return people("kv", environment={"DUDA_KEYS": " ".join(k * 32 for k in keys)})

    server = serve("a")
    cookie = cookie_of(get(server, "/in/ana"))
    server.stop()
    server = serve("b", "a")
    assert show(server, cookie) == "ana"
    server.stop()
    assert show(serve("b"), cookie) == "-"


def test_sessions_in_a_kv_store_survive_a_restart_without_keys(people):
    server = people("kv")
    cookie = cookie_of(get(server, "/in/ana"))
    server.stop()
    assert show(people("kv"), cookie) == "ana"


@pytest.mark.processes("the embedding program handles crash signals")
@pytest.mark.parametrize("store", STORES)
def test_no_log_contains_a_session_id(people, store, tmp_path):
    """No log contains a session ID, even with debug logging, after a crash, and while the store is unreachable."""
    log = tmp_path / "access.log"
    server = people(store, server=f"LogLevel debug\nAccessLog {log}")
    server.allow("Sanitizer", "was killed by signal", "exited unexpectedly")
    cookies = [cookie_of(get(server, "/visit/ana"))]
    cookies.append(cookie_of(get(server, "/in/ana", cookies[0])))
    assert [show(server, c) for c in cookies] == ["-", "ana"]
    with pytest.raises((Closed, ConnectionError)):
        get(server, "/crash?of=ana", cookies[1])
    server.err.wait_for(r"crash\(\) in .*people.c:\d+ ")
    cookies.append(cookie_of(get(server, "/in/eve", f"{NAME}=" + "ab" * 32)))
    if store == "redis":
        server.redis.kill()
        assert get(server, "/show", cookies[1]).status == 503
        assert get(server, "/in/ben", cookies[1]).status == 503
    assert get(server, "/out", cookies[2]).status == (503 if store == "redis" else 200)
    assert get(server, "/visit/" + "x" * 2000, cookies[1]).status in (200, 413, 503)
    server.stop()
    logs = server.err.text + log.read_text()
    assert "GET /crash?of=ana" in logs and "/in/eve" in logs
    for value in (c.partition("=")[2] for c in cookies):
        assert value not in logs and value[:32] not in logs


# ---- TLS terminated by a proxy ----

@pytest.mark.parametrize("store", ["memory", "cookie"])
def test_cookies_are_secure_behind_a_trusted_tls_proxy(people, store):
    server = people(store, "IdleTimeout 1h\n[SECURITY]\n    TrustedProxy 127.0.0.1\n    RealAddress X-Forwarded-For",
                    more=["security"])
    with server.connect() as c:
        line = c.get("/in/ana", fields={"X-Forwarded-Proto": "https"}).all("Set-Cookie")[-1]
        assert line.startswith(f"__Host-{NAME}=") and "; Secure;" in line
        cookie = line.split(";")[0]
        assert c.get("/show", fields={"X-Forwarded-Proto": "https", "Cookie": cookie}).text == "ana\n"
        assert c.get("/show", fields={"Cookie": cookie}).text == "-\n"
        assert not c.get("/in/ana").all("Set-Cookie")[-1].startswith("__Host-")
