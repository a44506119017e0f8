# SPDX-License-Identifier: Apache-2.0
"""State belongs to one service; sessions and cookies also belong to one virtual host. With every store, a service or
host cannot see what another one has set, unless `Share` of [DUDA] joins them."""
import contextlib
import re
import signal

import pytest

import redis_server
import services
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")
sealing = pytest.mark.skipif(not (services.OBJECTS / "monkey-duda-seal.so").exists(), reason="this build has no OpenSSL")

# Each line of a response names a function and its result. For an absent value, that is `-`, 0 or an error number.
SOURCE = r"""
#define DUDA_USE "duda-store", PACKAGES
#include <duda.h>
#include <duda/store.h>
#include <errno.h>
#include <stdlib.h>
#ifdef HAS_JOBS
#include <duda/jobs.h>
#endif
#ifdef HAS_KV
#include <duda/kv.h>
#endif

/* Returns an absent string if there is no such value or the store is down. */
static inline mk_str session_value(struct duda_ctx *d, const char *name)
{
    mk_str value;
    (void)!duda_session_get(d, name, &value);
    return value;
}

#define K_TEXT "key"
#define K MK_STR(K_TEXT)
#define V MK_STR("value")

static struct duda_store *store(struct duda_ctx *d)
{
    return duda_store_find(d, NULL);
}

static int show(struct duda_ctx *d, const char *what, mk_str value)
{
    return duda_printf(d, "%s %.*s\n", what, MK_STR_ARG(value.p ? value : MK_STR("-")));
}

static int show_number(struct duda_ctx *d, const char *what, long long n)
{
    return duda_printf(d, "%s %lld\n", what, n);
}

/* ---- duda/session.h ---- */

static int visitor_set(struct duda_ctx *d)
{
    const struct mk_cookie s = {.name = "signed", .value = V, .max_age = 100}, e = {.name = "sealed", .value = V, .max_age = 100};
    int result = duda_session_set(d, "user", V);
    result = result ? result : duda_session_regenerate(d);
    result = result ? result : SEALS ? duda_cookie_set_signed(d, &s) : 0;
    result = result ? result : SEALS ? duda_cookie_set_encrypted(d, &e) : 0;
    return result ? result : duda_printf(d, "%.*s", MK_STR_ARG(duda_csrf_token(d)));
}

static int visitor_get(struct duda_ctx *d)
{
    show(d, "session", session_value(d, "user"));
    show(d, "signed", SEALS ? duda_cookie_signed(d, "signed") : MK_STR_NULL);
    return show(d, "sealed", SEALS ? duda_cookie_encrypted(d, "sealed") : MK_STR_NULL);
}

static int guarded(struct duda_ctx *d)
{
    int e = duda_csrf_check(d);
    return e != DUDA_NEXT ? e : duda_puts(d, "guarded\n");
}

static int session_change(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d);
    return e ? e : duda_session_destroy(d);
}

/* ---- duda/topic.h and duda/lock.h: held while the client is connected ---- */

DUDA_TOPIC(topic, K_TEXT, .counts_subscribers = true);

static int listen_and_lock(struct duda_ctx *d)
{
    struct duda_store_lock lock;
    mk_str text;
    int e = duda_topic_subscribe(d, &topic);
    e = e ? e : duda_lock(d, K, MK_FOREVER);
    e = e ? e : duda_store_lock(d, store(d), K, 60000, 0, &lock);
    e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("ready"), .data = V});
    e = e ? e : duda_topic_receive(d, MK_FOREVER, &text);
    return e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("heard"), .data = text});
}

static int lock_get(struct duda_ctx *d)
{
    struct duda_store_lock lock;
    uint64_t members;
    if (duda_topic_subscribers(d, &topic, &members))
        return 500;
    show_number(d, "members", (long long)members);
    show_number(d, "lock", -duda_lock(d, K, 0));
    show_number(d, "wait", -duda_lock(d, MK_STR("other"), 10));
    show_number(d, "unlock", duda_unlock(d, MK_STR("other")));
    int e = duda_store_lock(d, store(d), K, 60000, 0, &lock);
    show_number(d, "store", -e);
    return e ? 0 : duda_store_unlock(d, &lock);
}

static int say(struct duda_ctx *d)
{
    return duda_topic_publish(d, &topic, duda_query(d, "text"));
}

/* ---- duda/store.h ---- */

static int store_set(struct duda_ctx *d)
{
    int64_t sum;
    int e = duda_store_set(d, store(d), K, V, 0);
    e = e ? e : duda_store_add(d, store(d), MK_STR("added"), V, 0);
    e = e ? e : duda_store_incr(d, store(d), MK_STR("n"), 7, 0, &sum);
    e = e ? e : duda_store_rate_limit(d, store(d), K, 1, 60000);
    return e ? e : duda_puts(d, "set\n");
}

static int store_get(struct duda_ctx *d)
{
    mk_str value;
    int64_t sum;
    int e = duda_store_get(d, store(d), K, &value);
    show(d, "get", e ? MK_STR_NULL : value);
    show_number(d, "replace", -duda_store_replace(d, store(d), K, value, 0));
    show_number(d, "remove", -duda_store_delete_if(d, store(d), K, MK_STR("value2")));
    e = duda_store_add(d, store(d), MK_STR("added"), V, 1000);
    show_number(d, "add", -e);
    e = e ? e : duda_store_delete_if(d, store(d), MK_STR("added"), V);
    e = duda_store_incr(d, store(d), MK_STR("n"), 0, 1, &sum);
    show_number(d, "count", e ? e : sum);
    return show_number(d, "limit", -duda_store_rate_limit(d, store(d), K, 1, 1));
}

/* ---- Packages that a build may lack ---- */

#ifdef HAS_KV
static bool count_one(void *ctx, mk_str key, mk_str value)
{
    (void)value;
    ++*(int *)ctx;
    return key.len > 0;
}

static int kv_set(struct duda_ctx *d)
{
    struct duda_kv *kv = duda_kv_find(d, NULL);
    int64_t sum;
    int e = duda_kv_set(d, kv, K, V, 0);
    e = e ? e : duda_kv_incr(d, kv, MK_STR("n"), 7, 0, &sum);
    return e ? e : duda_puts(d, "set\n");
}

static int kv_get(struct duda_ctx *d)
{
    struct duda_kv *kv = duda_kv_find(d, NULL);
    mk_str value;
    int n = 0;
    int64_t sum;
    int e = duda_kv_get(d, kv, K, &value);
    show(d, "get", e ? MK_STR_NULL : value);
    e = duda_kv_scan(d, kv, MK_STR(""), MK_STR_NULL, count_one, &n);
    show_number(d, "scan", e ? e : n);
    show_number(d, "touch", -duda_kv_expire(d, kv, K, 0));
    show_number(d, "swap", -duda_kv_compare_and_set(d, kv, K, V, V, 0));
    struct duda_kv_batch *b = duda_kv_batch_begin(kv);
    duda_kv_batch_expect(b, K, V);
    duda_kv_batch_set(b, K, V, 0);
    show_number(d, "batch", -duda_kv_batch_commit(d, b));
    b = duda_kv_batch_begin(kv);
    duda_kv_batch_delete(b, MK_STR("nothing"));
    duda_kv_batch_expect(b, MK_STR("n"), MK_STR("7"));
    show_number(d, "expect", -duda_kv_batch_commit(d, b));
    e = duda_kv_incr(d, kv, MK_STR("n"), 0, 1, &sum);
    return show_number(d, "count", e ? e : sum);
}

static int kv_delete(struct duda_ctx *d)
{
    return show_number(d, "delete", -duda_kv_delete(d, duda_kv_find(d, NULL), K));
}
#define KV_ROUTES DUDA_GET("/kv/set", kv_set, ""), DUDA_GET("/kv/get", kv_get, ""), DUDA_GET("/kv/delete", kv_delete, ""),
#else
#define KV_ROUTES
#endif

#ifdef HAS_JOBS
static int fail(struct duda_ctx *d, const struct duda_job *job)
{
    (void)job;
    return duda_job_fail(d, -EBADMSG, "NAME_OF_SERVICE");
}

static int start(struct mk_worker *w)
{
    static const struct duda_job_type kind = {.name = "kind", .fn = fail};
    return getenv("SHARES") && strcmp("NAME_OF_SERVICE", "alpha") != 0 ? 0 : duda_jobs_register(w, &kind);
}

static int jobs_set(struct duda_ctx *d)
{
    const struct duda_job_options later = {.unique_key = K, .delay_ms = 3600000};
    int e = duda_jobs_enqueue(d, "kind", V, &later, NULL);
    return e ? e : duda_jobs_enqueue(d, "kind", V, NULL, NULL);
}

static bool show_dead(void *ctx, const struct duda_job *job)
{
    show(ctx, "why", job->last_error);
    show(ctx, "id", job->id);
    return true;
}

static int jobs_get(struct duda_ctx *d)
{
    struct duda_job_counts n;
    int e = duda_jobs_count(d, "kind", &n);
    show_number(d, "waiting", e ? e : (long long)n.waiting);
    show_number(d, "dead", e ? e : (long long)n.failed);
    return e ? e : duda_jobs_list_failed(d, "kind", show_dead, d);
}

static int jobs_drop(struct duda_ctx *d)
{
    mk_str id = duda_query(d, "id");
    show_number(d, "revive", -duda_jobs_retry(d, "kind", id));
    return show_number(d, "drop", -duda_jobs_delete(d, "kind", id));
}

static int jobs_push(struct duda_ctx *d)
{
    const struct duda_job_options later = {.unique_key = K, .delay_ms = 3600000};
    return show_number(d, "push", -duda_jobs_enqueue(d, "kind", V, &later, NULL));
}
#define JOB_ROUTES DUDA_START(start), DUDA_GET("/jobs/set", jobs_set, ""), DUDA_GET("/jobs/get", jobs_get, ""), \
                   DUDA_GET("/jobs/drop", jobs_drop, ""), DUDA_GET("/jobs/push", jobs_push, ""),
#else
#define JOB_ROUTES
#endif

DUDA_SERVICE(NAME_OF_SERVICE, KV_ROUTES JOB_ROUTES
    DUDA_GET("/visitor/set", visitor_set, ""), DUDA_GET("/visitor/get", visitor_get, ""),
    DUDA_POST("/visitor/guarded", guarded, ""), DUDA_GET("/visitor/change", session_change, ""),
    DUDA_GET("/listen", listen_and_lock, ""), DUDA_GET("/lock/get", lock_get, ""), DUDA_GET("/say", say, ""),
    DUDA_GET("/store/set", store_set, ""), DUDA_GET("/store/get", store_get, ""));
"""

HOSTS = ("a.example", "b.example")

# The responses of a service that has stored nothing.
NOTHING = {
    "/visitor/get": "session -\nsigned -\nsealed -\n",
    "/lock/get": "members 0\nlock 0\nwait 0\nunlock 0\nstore 0\n",
    "/store/get": "get -\nreplace 2\nremove 116\nadd 0\ncount 0\nlimit 0\n",
    "/kv/get": "get -\nscan 0\ntouch 2\nswap 116\nbatch 116\nexpect 116\ncount 0\n",
    "/jobs/get": "waiting 0\ndead 0\n",
}
SET = {
    "/visitor/get": "session value\nsigned value\nsealed value\n",
    "/lock/get": "members 1\nlock 16\nwait 0\nunlock 0\nstore 16\n",
    "/store/get": "get value\nreplace 0\nremove 116\nadd 17\ncount 7\nlimit 122\n",
    "/kv/get": "get value\nscan 2\ntouch 0\nswap 0\nbatch 0\nexpect 0\ncount 7\n",
}


class Mount:
    """One service on one host, and its client, which may send the cookies of another service."""

    def __init__(self, server, host, prefix="", name=None):
        self.server, self.host, self.prefix, self.name = server, host, prefix, name

    def get(self, path, method="GET", cookies=(), **fields):
        more = {"Cookie": "; ".join(cookies)} if cookies else {}
        return self.server.get(self.prefix + path, method, fields={**fields, **more}, host=self.host)

    def log_in(self):
        """Stores values in a session; returns the cookies and the CSRF token."""
        reply = self.get("/visitor/set")
        assert reply.status == 200
        pairs = dict(c.split(";")[0].split("=", 1) for c in reply.all("Set-Cookie"))  # the last cookie of a name wins
        return [f"{name}={value}" for name, value in pairs.items()], reply.text

    @contextlib.contextmanager
    def listening(self):
        with self.server.connect() as c:
            c.send(f"GET {self.prefix}/listen HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
            c.read_until(b"event: ready\n")
            c.read_until(b"\n\n")
            yield c


def renamed(cookies, name):
    """Renames the cookies as an attacker would who knows the cookie names of another service."""
    return [re.sub(r"^\w+-(session|token)=", rf"{name}-\1=", c) for c in cookies]


STORES = {
    "memory": ("", []),
    "kv": ("[KV]\n    Folder {folder}/kv\n", ["duda-kv"]),
    "redis": ("[REDIS]\n    Server unix:{socket}\n", ["duda-redis"]),
}


@pytest.fixture(params=STORES)
def world(request, monkey, site, tmp_path):
    """world(hosts=[...], share="...") starts a server, and returns its services with their hosts and mount paths."""
    kind = request.param
    section, plugins = STORES[kind]
    if kind == "redis" and redis_server.PROGRAM is None or kind != "memory" and not services.has(kind):
        pytest.skip(f"{kind} is not available")
    redis = redis_server.Redis() if kind == "redis" else None
    seals = (services.OBJECTS / "monkey-duda-seal.so").exists()

    def start(hosts, share="", sessions=None, keys=False, **how):
        names = sorted({name for host in hosts for name in host.values()})
        packages = ["store", *(["kv"] if kind == "kv" else []), *(["jobs"] if kind != "memory" else [])]
        flags = ["-DPACKAGES=" + (",".join(f'"duda-{p}"' for p in packages[1:]) or "NULL"), f"-DSEALS={int(seals)}",
                 *(f"-DHAS_{p.upper()}" for p in packages[1:])]
        objects = [services.build(tmp_path, name, SOURCE.replace("NAME_OF_SERVICE", name), *flags, packages=packages) for name in names]
        store = sessions or ("memory" if kind == "memory" else "main")
        top = section.format(folder=site.path.parent, socket=redis and redis.socket) + f"[SESSIONS]\n    Store {store}\n"
        if share:
            top += f"[DUDA]\n    Share {share}\n"
        sections = ["[ROUTES]\n" + "".join(f"    {p}/* {name}\n" for p, name in host.items()) for host in hosts]
        more = f"[HOST]\n    ServerName {HOSTS[1]}\n    DocumentRoot site\n" + sections[1] if len(hosts) > 1 else ""
        how["environment"] = {"DUDA_KEYS": "k" * 32 if keys else "", **({"SHARES": "1"} if share else {})}
        server = monkey(plugins=[*plugins, *objects], top=top, host=f"ServerName {HOSTS[0]}", sections=sections[0] + more, **how)
        server.allow("has failed")
        return [Mount(server, HOSTS[i], p, name) for i, host in enumerate(hosts) for p, name in host.items()]

    start.kind, start.redis = kind, redis
    yield start
    if redis:
        redis.stop()


def check_session(first, other, crosses=False, proofs=True):
    cookies, token = first.log_in()
    mine = SET["/visitor/get"] if proofs else SET["/visitor/get"].replace("signed value", "signed -").replace("sealed value", "sealed -")
    assert first.get("/visitor/get", cookies=cookies).text == mine
    assert first.get("/visitor/guarded", "POST", cookies, **{"X-CSRF-Token": token}).text == "guarded\n"
    wanted = SET if crosses else NOTHING
    for sent in (cookies, renamed(cookies, other.name)):
        assert other.get("/visitor/get", cookies=sent).text == wanted["/visitor/get"]
        assert other.get("/visitor/change", cookies=sent).status in (200, 204)
        if crosses:
            return
    assert first.get("/visitor/get", cookies=cookies).text == mine, "the session still exists"


def check_store(first, other, path, crosses=False):
    assert first.get(path + "/set").text == "set\n"
    assert other.get(path + "/get").text == (SET if crosses else NOTHING)[path + "/get"]
    assert first.get(path + "/get").text == SET[path + "/get"]


def check_jobs(first, other, crosses=False):
    assert first.get("/jobs/set").status == 204
    deadline = 200
    while "dead 1" not in first.get("/jobs/get").text and deadline:
        deadline -= 1
    mine = first.get("/jobs/get").text
    assert re.fullmatch(r"waiting 1\ndead 1\nwhy \w+\nid \w+\n", mine), mine
    number = mine.split()[-1]
    if crosses:
        assert other.get("/jobs/get").text == mine
        assert other.get("/jobs/push").text == "push 17\n"
        return
    assert f"why {first.name}\n" in mine
    assert other.get("/jobs/get").text == NOTHING["/jobs/get"]
    assert other.get(f"/jobs/drop?id={number}").text == "revive 2\ndrop 2\n"
    assert other.get("/jobs/push").text == "push 0\n"
    assert first.get("/jobs/push").text == "push 17\n"


def check_locks_and_topics(first, other, crosses=False):
    with first.listening() as c:
        assert other.get("/lock/get").text == (SET if crosses else NOTHING)["/lock/get"]
        assert first.get("/lock/get").text == SET["/lock/get"]
        assert other.get("/say?text=stranger").status == 204
        if not crosses:
            assert first.get("/say?text=friend").status == 204
        assert c.read_until(b"\n\n").endswith(b"data: " + (b"stranger" if crosses else b"friend"))


def check_all(world, first, other, crosses=False):
    check_locks_and_topics(first, other, crosses)
    check_store(first, other, "/store", crosses)
    if world.kind == "kv":
        check_store(first, other, "/kv", crosses)
        assert other.get("/kv/delete").text == f"delete {0 if crosses else 2}\n"
    if world.kind != "memory":
        check_jobs(first, other, crosses)


def test_services_on_different_hosts_share_no_state(world):
    first, other = world([{"": "alpha"}, {"": "beta"}])
    check_session(first, other)
    check_all(world, first, other)


def test_services_on_one_host_share_no_state(world):
    first, other = world([{"/alpha": "alpha", "/beta": "beta"}])
    check_session(first, other)
    check_all(world, first, other)
    # A browser can hold the cookies of both services at once.
    mine, his = first.log_in()[0], other.log_in()[0]
    names = lambda cookies: {c.split("=")[0] for c in cookies if "session" in c or "token" in c}
    assert not names(mine) & names(his)


def test_service_on_two_hosts_has_separate_sessions_and_cookies(world):
    first, other = world([{"": "alpha"}, {"": "alpha"}])
    check_session(first, other)
    check_store(first, other, "/store", crosses=True)


def test_services_of_a_share_have_common_state(world):
    first, other = world([{"/alpha": "alpha", "/beta": "beta"}], share="both alpha beta")
    check_session(first, other, crosses=True)
    check_all(world, first, other, crosses=True)


@pytest.mark.parametrize("hosts", ["*", " ".join(HOSTS)])
def test_hosts_of_a_share_have_common_sessions(world, hosts):
    first, other = world([{"": "alpha"}, {"": "beta"}], share=f"both alpha beta on {hosts}")
    check_session(first, other, crosses=True)


def test_hosts_outside_of_a_share_stay_separate(world):
    first, other = world([{"": "alpha"}, {"": "beta"}], share=f"both alpha beta on {HOSTS[0]}")
    check_session(first, other)
    check_store(first, other, "/store", crosses=True)


@sealing
@pytest.mark.parametrize("world", ["memory"], indirect=True)
def test_sessions_in_cookies_belong_to_service_and_host(world):
    check_session(*world([{"": "alpha"}, {"": "beta"}], sessions="cookie"))
    check_session(*world([{"": "alpha"}, {"": "alpha"}], sessions="cookie"))
    check_session(*world([{"/alpha": "alpha", "/beta": "beta"}], sessions="cookie"))
    check_session(*world([{"/alpha": "alpha", "/beta": "beta"}], sessions="cookie", share="both alpha beta"), crosses=True)


@pytest.mark.parametrize("world", ["redis"], indirect=True)
def test_machines_with_one_redis_share_the_state_of_a_service(world):
    """Servers with one Redis share the state of a service on the same host, but another service does not see that state."""
    (first,), (same,), (other,) = [world([{"": name}], keys=True) for name in ("alpha", "alpha", "beta")]
    check_session(first, same, crosses=True)
    check_session(first, other)
    check_store(first, same, "/store", crosses=True)
    far = Mount(same.server, HOSTS[1], name="alpha")  # the default host serves this name, so it is the same host
    check_session(first, far, crosses=True)


@pytest.mark.parametrize("world", ["redis"], indirect=True)
def test_machines_without_keys_share_a_session_secret_in_redis(world):
    (first,), (same,), (other,) = [world([{"": name}]) for name in ("alpha", "alpha", "beta")]
    cookies, _ = first.log_in()
    for mount in (first, same):
        assert mount.get("/visitor/get", cookies=cookies).text.startswith("session value\n")
    assert other.get("/visitor/get", cookies=renamed(cookies, "beta")).text.startswith("session -\n")
    # After Redis has lost the secret, the next machine creates a new one, and all machines adopt it.
    world.redis.ask("FLUSHALL")
    (late,) = world([{"": "alpha"}])
    for writes in (late, first):
        cookies, _ = writes.log_in()
        for reads in (first, same, late):
            assert reads.get("/visitor/get", cookies=cookies).text.startswith("session value\n")


@pytest.mark.parametrize("world", ["memory"], indirect=True)
def test_hosts_that_match_a_pattern_are_separate(world):
    """Each subdomain may belong to a different owner."""
    first, _ = world([{"": "alpha"}, {"": "alpha"}])
    server = first.server
    text = server.config.read_text().replace(HOSTS[1], f"*.{HOSTS[1]} ~^x\\d+$ plain.example")
    server.config.write_text(text)
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    mounts = [Mount(server, host, name="alpha") for host in (f"u.{HOSTS[1]}", f"v.{HOSTS[1]}", "x1", "x2", "plain.example")]
    for i, mount in enumerate(mounts):
        check_session(mount, mounts[i - 1])
    check_session(mounts[0], Mount(server, f"U.{HOSTS[1].upper()}", name="alpha"), crosses=True)


def test_hosts_with_one_name_at_two_addresses_are_separate(monkey, tmp_path):
    """Cookies are shared by all ports of a host."""
    service = services.build(tmp_path, "alpha", SOURCE.replace("NAME_OF_SERVICE", "alpha"), "-DPACKAGES=NULL", "-DSEALS=0",
                             packages=["store"])
    host = "[HOST]\n    ServerName a.example\n    DocumentRoot site\n    Listen 127.0.0.1:0\n[ROUTES]\n    /* alpha\n"
    server = monkey(plugins=[service], listen="127.0.0.2:0", host=f"ServerName {HOSTS[0]}",
                    sections="[ROUTES]\n    /* alpha\n" + host)
    cookie = server.get("/visitor/set", listener=0, host=HOSTS[0]).all("Set-Cookie")[1].split(";")[0]
    seen = [server.get("/visitor/get", fields={"Cookie": cookie}, listener=i, host=HOSTS[0]).text.splitlines()[0] for i in (0, 1)]
    assert seen == ["session value", "session -"]


# The second host receives every request at its address, even with names that it does not list.
@pytest.mark.parametrize("first, second", [("a.example", "*.example"), ("a.example", "*.c.example"), ("a.example", "~example$"),
                                           ("*.example", "*.example"), ("~example$", "~example$")])
def test_pattern_at_another_address_does_not_join_hosts(monkey, tmp_path, first, second):
    service = services.build(tmp_path, "alpha", SOURCE.replace("NAME_OF_SERVICE", "alpha"), "-DPACKAGES=NULL", "-DSEALS=0",
                             packages=["store"])
    host = f"[HOST]\n    ServerName {second}\n    DocumentRoot site\n    Listen 127.0.0.1:0\n[ROUTES]\n    /* alpha\n"
    server = monkey(plugins=[service], listen="127.0.0.2:0", host=f"ServerName {first}",
                    sections="[ROUTES]\n    /* alpha\n" + host)
    for here, there in ((0, 1), (1, 0)):
        cookie = server.get("/visitor/set", listener=here, host=HOSTS[0]).all("Set-Cookie")[1].split(";")[0]
        for name, known in ((HOSTS[0], "value"), (f"{HOSTS[0].upper()}.", "value"), (f"{HOSTS[0]}:{server.port}", "value")):
            seen = [server.get("/visitor/get", fields={"Cookie": cookie}, listener=i, host=name).text.splitlines()[0]
                    for i in (here, there)]
            assert seen == [f"session {known}", "session -"], name


@pytest.mark.parametrize("world", ["memory"], indirect=True)
def test_hosts_that_match_a_pattern_of_a_share_have_common_sessions(world):
    first, _ = world([{"": "alpha"}, {"": "alpha"}], share=f"both alpha on *.{HOSTS[1]}")
    server = first.server
    server.config.write_text(server.config.read_text().replace(f"ServerName {HOSTS[1]}", f"ServerName *.{HOSTS[1]}"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    u, v = (Mount(server, f"{name}.{HOSTS[1]}", name="alpha") for name in "uv")
    check_session(u, v, crosses=True)
    check_session(u, first)


@pytest.mark.processes("an embedded server starts no process group")
def test_isolated_service_distinguishes_the_hosts_of_the_server(monkey, tmp_path):
    """The isolated group has its own configuration, with only one host."""
    tmp_path.chmod(0o755)
    service = services.build(tmp_path, "alpha", SOURCE.replace("NAME_OF_SERVICE", "alpha"), "-DPACKAGES=NULL", "-DSEALS=0",
                             packages=["store"])
    routes = "[ROUTES]\n    /* isolate alpha\n"
    hosts = (HOSTS[1], "*.c.example")
    server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n", host=f"ServerName {HOSTS[0]}",
                    sections=routes + "".join(f"[HOST]\n    ServerName {h}\n    DocumentRoot site\n{routes}" for h in hosts))
    mounts = [Mount(server, host, name="alpha") for host in (*HOSTS, "x.c.example", "y.c.example")]
    wait_until(lambda: mounts[0].get("/visitor/get").status == 200, "the process group serves")
    for i, mount in enumerate(mounts):
        check_session(mount, mounts[i - 1], proofs=False)


OWN = r"""
#include <duda.h>
#include <errno.h>

static int load(struct duda_ctx *d, mk_str id, mk_str *out)
{
    (void)d, (void)id, (void)out;
    return -ENOENT;
}

static int save(struct duda_ctx *d, mk_str id, mk_str data, uint32_t seconds)
{
    (void)d, (void)id, (void)data, (void)seconds;
    return -ECONNREFUSED;
}

static int drop(struct duda_ctx *d, mk_str id)
{
    (void)d, (void)id;
    return 0;
}

static int start(struct mk_worker *w)
{
    static const struct duda_session_store own = {.load = load, .save = save, .destroy = drop};
    duda_session_set_store(w, &own);
    return 0;
}

static int set(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_session_set(d, "user", MK_STR("ana")));
}

DUDA_SERVICE(NAME_OF_SERVICE, START DUDA_GET("/set", set, ""));
"""


def test_session_store_belongs_to_its_service(monkey, tmp_path):
    names = {"alpha": "", "beta": "DUDA_START(start),", "gamma": ""}
    objects = [services.build(tmp_path, name, OWN.replace("NAME_OF_SERVICE", name), f"-DSTART={start}", "-Wno-unused-function")
               for name, start in names.items()]
    server = monkey(plugins=objects, sections="[ROUTES]\n" + "".join(f"    /{name}/* {name}\n" for name in names))
    assert [server.get(f"/{name}/set").text for name in names] == ["0", "111", "0"]


@pytest.mark.parametrize("share, message", [
    ("both", "expected a service after the name"), ("both alpha on", "expected a host after `on`"), ("b/th alpha", "the name must have 1 to 48 letters"),
    ("x" * 49 + " alpha", "the name must have 1 to 48 letters"), ("both alpha alpha", "a service can have only one Share"),
    ("beta alpha", "`beta` is the name of a service that is not in this Share"),
    ("both alpha\n    Share both beta", "another Share already has this name"),
    ("both alpha\n    Share more alpha", "a service can have only one Share"),
])
@pytest.mark.parametrize("world", ["memory"], indirect=True)
def test_invalid_share_is_rejected(world, share, message):
    (mount, *_) = world([{"": "alpha"}, {"": "beta"}], share=share, expect_start=False)
    mount.server.exit_code = 3
    mount.server.wait()
    assert message in mount.server.err.text, mount.server.err.text


@pytest.mark.parametrize("world", ["memory"], indirect=True)
def test_share_of_an_unknown_service_logs_a_warning(world):
    (mount, _) = world([{"": "alpha"}, {"": "beta"}], share="both alpha betta")
    mount.server.err.wait_for("no service `betta` is loaded")
