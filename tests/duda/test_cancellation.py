# SPDX-License-Identifier: Apache-2.0
"""A wait of any kind ends when the client disconnects or the deadline expires: the handler gets an error, its
deferred functions run, and no resource leaks. The sanitizers check the memory."""
import contextlib
import signal
import socket

import pytest
from websockets.sync.client import connect

import redis_server
import services
from client import Closed
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("subprocess"), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <duda/subprocess.h>
#include <duda/http.h>
#include <duda/kv.h>
#include <duda/memcached.h>
#include <duda/postgres.h>
#include <duda/redis.h>
#include <duda/smtp.h>
#include <duda/sql.h>
#include <duda/store.h>
#include <duda/task.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { LONG_MS = 3600000 };
static char much[60000];

static int content(struct duda_ctx *d)
{
    mk_str text;
    return duda_read_all(d, 1 << 20, &text);
}

static int form(struct duda_ctx *d)
{
    return duda_form_load(d, NULL, NULL);
}

static int timer(struct duda_ctx *d)
{
    return duda_sleep(d, LONG_MS);
}

static void close_it(void *ctx)
{
    close((int)(intptr_t)ctx);
}

static int descriptor(struct duda_ctx *d)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int e = fd < 0 || duda_defer(d, close_it, (void *)(intptr_t)fd) ? -EMFILE : duda_wait_fd(d, fd, MK_READABLE, MK_FOREVER);
    return e;
}

/* The first handler holds the lock; the others wait for it. */
static int lock(struct duda_ctx *d)
{
    int e = duda_lock(d, MK_STR("one"), LONG_MS);
    return e ? e : duda_sleep(d, LONG_MS);
}

static int store_lock(struct duda_ctx *d)
{
    struct duda_store_lock lock;
    int e = duda_store_lock(d, duda_store_find(d, "memory"), MK_STR("one"), LONG_MS, LONG_MS, &lock);
    if (!e) {
        e = duda_sleep(d, LONG_MS);
        (void)!duda_store_unlock(d, &lock);
    }
    return e;
}

static int child(struct duda_ctx *d)
{
    static const char *const argv[] = {"/bin/sleep", "3600", NULL};
    const struct duda_subprocess_options o = {.argv = argv};
    mk_str out;
    int status;
    return duda_subprocess_run(d, &o, mk_str_of(much, sizeof much), 100, &out, &status);
}

static int nap(void *job)
{
    const struct timespec t = {.tv_nsec = 5000000};
    (void)job;
    return nanosleep(&t, NULL);
}

static int thread(struct duda_ctx *d)
{
    int e = 0, job[100] = {0};
    while (!e || e == -EAGAIN)
        e = duda_offload(d, NULL, nap, job, sizeof job);
    return e;
}

DUDA_TOPIC(hall, "hall");
DUDA_TOPIC(news, "news");

static int wait_for_topic(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_topic_subscribe(d, &hall);
    while (!e)
        e = duda_topic_receive(d, LONG_MS, &text);
    return e;
}

/* Writes until the output buffers are full, because the client does not read. */
static int output(struct duda_ctx *d)
{
    int e = 0;
    while (!e) {
        e = duda_write(d, mk_str_of(much, sizeof much));
        e = e ? e : duda_flush(d);
    }
    return e;
}

/* Publishes many messages to a topic whose subscribers disconnect at the same time. */
static int events(struct duda_ctx *d)
{
    int e = duda_topic_subscribe(d, &news);
    size_t mark = duda_arena_mark(d);
    while (!e) {
        mk_str text;
        e = duda_topic_publish(d, &news, MK_STR("some news"));
        e = e ? e : duda_topic_receive(d, LONG_MS, &text);
        e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("news"), .data = text});
        e = e ? e : duda_sleep(d, 1);
        duda_arena_rewind(d, mark);
    }
    return e;
}

static int http(struct duda_ctx *d)
{
    const struct duda_http_request request = {.target = MK_STR("/"), .body = mk_str_of(much, sizeof much)};
    struct duda_http_response response;
    return duda_http_fetch(d, duda_http_find(d, NULL), &request, &response);
}

/* The server accepts the connection but reads nothing from it. */
static int upload(struct duda_ctx *d)
{
    const struct duda_http_request request = {.target = MK_STR("/"), .method = MK_STR("PUT")};
    struct duda_http_response response;
    struct duda_http_stream *stream;
    int e = duda_http_begin(d, duda_http_find(d, NULL), &request, MK_LENGTH_UNKNOWN, &response, &stream);
    while (!e)
        e = duda_http_write(d, stream, mk_str_of(much, sizeof much));
    return e;
}

/* Reads from a program that waits for input. */
static int pipes(struct duda_ctx *d)
{
    static const char *const argv[] = {"/bin/cat", NULL};
    struct duda_subprocess *c;
    char buffer[100];
    int e = duda_subprocess_start(d, &(struct duda_subprocess_options){.argv = argv}, &c);
    e = e ? e : (int)duda_subprocess_read(d, c, buffer, sizeof buffer);
    return e;
}

static int full_pipe(struct duda_ctx *d)
{
    static const char *const argv[] = {"/bin/sleep", "3600", NULL};
    struct duda_subprocess *c;
    int e = duda_subprocess_start(d, &(struct duda_subprocess_options){.argv = argv}, &c);
    while (!e)
        e = duda_subprocess_write(d, c, mk_str_of(much, sizeof much));
    return e;
}

static int memcache(struct duda_ctx *d)
{
    mk_str value;
    return duda_memcached_get(d, duda_memcached_find(d, NULL), MK_STR("key"), &value);
}

static int memcached_many(struct duda_ctx *d)
{
    struct duda_memcached_item items[3] = {{.key = MK_STR("one")}, {.key = MK_STR("two")}, {.key = MK_STR("three")}};
    return duda_memcached_get_many(d, duda_memcached_find(d, NULL), items, 3);
}

static int smtp(struct duda_ctx *d)
{
    static const mk_str to[] = {MK_STR("you@example.org")};
    const struct duda_smtp_message m = {.from = MK_STR("me@example.org"), .to = to, .n_to = 1, .text = MK_STR("Subject: x\n\nx\n")};
    struct duda_smtp_result result;
    return duda_smtp_send_raw(d, duda_smtp_find(d, NULL), &m, &result);
}

static int callback(struct duda_ctx *d)
{
    int e = 0;
    while (!e)
        e = duda_suspend(d);
    return e;
}

#ifdef HAS_KV
static int kv(struct duda_ctx *d)
{
    int e = 0;
    while (!e)
        e = duda_kv_set(d, duda_kv_find(d, NULL), MK_STR("key"), mk_str_of(much, 1000), 0);
    return e;
}
#endif

#ifdef HAS_REDIS
static int redis(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    int e = 0;
    while (!e)
        e = duda_redis(d, duda_redis_find(d, "redis"), &reply, MK_STR("SET"), MK_STR("key"), MK_STR("value"));
    return e;
}
#endif

#ifdef HAS_REDIS
static int redis_many(struct duda_ctx *d)
{
    static const mk_str set[] = {MK_STR("SET"), MK_STR("key"), MK_STR("value")};
    const struct duda_redis_command commands[] = {{set, 3}, {set, 3}};
    struct duda_redis_reply replies[2];
    int e = 0;
    while (!e)
        e = duda_redis_pipeline(d, duda_redis_find(d, "redis"), commands, 2, replies);
    return e;
}

static int redis_block(struct duda_ctx *d)
{
    static const mk_str parts[] = {MK_STR("BLPOP"), MK_STR("nothing"), MK_STR("0")};
    struct duda_redis_reply reply;
    return duda_redis_blocking(d, duda_redis_find(d, "redis"), &reply, MK_FOREVER, parts, 3);
}

static int subscribed(struct duda_ctx *d)
{
    struct duda_redis_sub *sub;
    mk_str text;
    int e = duda_redis_subscribe(d, duda_redis_find(d, "redis"), MK_STR("channel"), &sub);
    return e ? e : duda_redis_receive(d, sub, MK_FOREVER, &text);
}
#endif

#ifdef HAS_POSTGRES
static int postgres(struct duda_ctx *d)
{
    struct duda_sql_result result;
    return duda_sql_query(d, duda_sql_find(d, "postgres"), &result, "SELECT 1");
}

static int postgres_many(struct duda_ctx *d)
{
    const struct duda_sql_statement queries[] = {{"SELECT 1", NULL, 0}, {"SELECT 2", NULL, 0}};
    struct duda_sql_result results[2];
    return duda_sql_batch(d, duda_sql_find(d, "postgres"), queries, 2, results);
}

static int transaction(struct duda_ctx *d)
{
    return duda_sql_begin(d, duda_sql_find(d, "postgres"));
}

static int copy(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_postgres_copy *c;
    return duda_postgres_copy(d, duda_sql_find(d, "postgres"), &result, "COPY t FROM STDIN", &c);
}

static int listening(struct duda_ctx *d)
{
    struct duda_postgres_sub *sub;
    return duda_postgres_subscribe(d, duda_sql_find(d, "postgres"), MK_STR("channel"), &sub);
}
#endif

#ifdef HAS_SQLITE
static int sqlite_transaction(struct duda_ctx *d)
{
    int e = duda_sql_begin(d, duda_sql_find(d, NULL)); /* one handler gets it, the others wait */
    return e ? e : duda_sleep(d, LONG_MS);
}

static int sql(struct duda_ctx *d)
{
    struct duda_sql_result result;
    return duda_sql_query(d, duda_sql_find(d, NULL), &result,
                    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c");
}
#endif

static const struct {
    const char *name;
    int (*fn)(struct duda_ctx *d);
} kinds[] = {
    {"content", content}, {"form", form}, {"timer", timer}, {"descriptor", descriptor}, {"lock", lock}, {"child", child},
    {"thread", thread}, {"topic", wait_for_topic}, {"output", output}, {"events", events}, {"http", http}, {"callback", callback},
    {"store", store_lock}, {"upload", upload}, {"pipes", pipes}, {"full_pipe", full_pipe}, {"memcache", memcache},
    {"memcached_many", memcached_many}, {"smtp", smtp},
#ifdef HAS_KV
    {"kv", kv},
#endif
#ifdef HAS_REDIS
    {"redis", redis}, {"redis_many", redis_many}, {"redis_block", redis_block}, {"subscribed", subscribed},
#endif
#ifdef HAS_SQLITE
    {"sql", sql}, {"sqlite_transaction", sqlite_transaction},
#endif
#ifdef HAS_POSTGRES
    {"postgres", postgres}, {"postgres_many", postgres_many}, {"transaction", transaction}, {"copy", copy}, {"listening", listening},
#endif
};

/* Counters over all handlers: running, cancelled, past the deadline, and ended with another result. */
static unsigned n_live, n_cancelled, n_late, n_other;

struct visit {
    struct duda_ctx *d;
    void *buffer;
    const char *task;
};

static void leave(void *ctx)
{
    struct visit *v = ctx;
    int e = duda_cancelled(v->d);
    if (v->task)
        duda_log(v->d, MK_LOG_INFO, "task %s ends with %d", v->task, e);
    n_live--;
    *(e == -ECANCELED ? &n_cancelled : e == -ETIMEDOUT ? &n_late : &n_other) += 1;
    free(v->buffer);
}

static int wait_for(struct duda_ctx *d)
{
    struct visit *v = duda_alloc(d, sizeof *v);
    struct duda_websocket *s;
    int64_t ms;
    *v = (struct visit){d, malloc(5000), NULL};
    n_live++;
    if (duda_defer(d, leave, v) || (duda_query_int_or(d, "ms", MK_FOREVER, &ms) && duda_deadline(d, (uint32_t)ms)))
        return 500;
    if (duda_query(d, "socket").p && duda_websocket_open(d, NULL, NULL, &s))
        return 500;
    for (size_t i = 0; i < MK_LEN(kinds); i++)
        if (mk_str_eq(mk_str_from_c(kinds[i].name), duda_param(d, "kind"))) {
            int e = kinds[i].fn(d);
            while (duda_query(d, "stubborn").p)
                e = kinds[i].fn(d);
            if (e != duda_cancelled(d))
                duda_log(d, MK_LOG_ERROR, "a wait for %s answers %d", kinds[i].name, e);
            return e;
        }
    return 404;
}

static int wait_in_task(struct duda_ctx *d)
{
    size_t i = *(const size_t *)duda_task_context(d);
    struct visit *v = duda_alloc(d, sizeof *v);
    *v = (struct visit){d, malloc(5000), kinds[i].name};
    n_live++;
    return duda_defer(d, leave, v) ? 500 : kinds[i].fn(d);
}

static int start_task(struct duda_ctx *d)
{
    for (size_t i = 0; i < MK_LEN(kinds); i++)
        if (mk_str_eq(mk_str_from_c(kinds[i].name), duda_param(d, "kind")))
            return duda_after_response(d, wait_in_task, &i, sizeof i) ? 500 : duda_puts(d, "started");
    return 404;
}

static int count(struct duda_ctx *d)
{
    return duda_printf(d, "%u %u %u %u", n_live, n_cancelled, n_late, n_other);
}

DUDA_SERVICE(waits, DUDA_ANY("/wait/:kind", wait_for, ""), DUDA_GET("/task/:kind", start_task, ""), DUDA_GET("/count", count, ""));
"""
OPTIONAL = {"kv": services.has("kv"), "redis": services.has("redis") and bool(redis_server.PROGRAM),
            "sqlite": services.has("sqlite"), "postgres": services.has("postgres")}
CHILDREN = [pytest.param(kind, marks=pytest.mark.processes("it starts no programs")) for kind in ("child", "pipes", "full_pipe")]
BY_PACKAGE = {"kv": ["kv"], "redis": ["redis", "redis_many", "redis_block", "subscribed"], "sqlite": ["sql", "sqlite_transaction"],
              "postgres": ["postgres", "postgres_many", "transaction", "copy", "listening"]}
KINDS = ["content", "form", "timer", "descriptor", "lock", *CHILDREN, "thread", "topic", "output", "events", "http", "upload", "callback",
         "store", "memcache", "memcached_many", "smtp", *(kind for package in BY_PACKAGE if OPTIONAL[package] for kind in BY_PACKAGE[package])]
N = 6


class Backends:
    """Servers that do not respond: a Redis that the test can freeze, and a server that accepts connections and stays silent."""

    def __init__(self):
        self.redis = redis_server.Redis() if OPTIONAL["redis"] else None
        self.silent = socket.create_server(("127.0.0.1", 0), backlog=1000)

    def sections(self):
        yield "subprocess", ""
        yield "store", ""
        silent = f"127.0.0.1:{self.silent.getsockname()[1]}"
        yield "http", f"[HTTP_CLIENT]\n    Timeout 1h\n    Server {silent}\n"
        yield "memcached", f"[MEMCACHED]\n    Timeout 1h\n    Servers {silent}\n"
        yield "smtp", f"[SMTP]\n    Timeout 1h\n    Server {silent}\n"
        if OPTIONAL["kv"]:
            yield "kv", "[KV]\n    Folder data\n"
        if OPTIONAL["sqlite"]:
            yield "sql", "[SQLITE]\n    Timeout 1h\n    File data/base.db\n"
        address = f"host=127.0.0.1 port={self.silent.getsockname()[1]} dbname=x user=x sslmode=disable"
        if OPTIONAL["postgres"]:
            yield "postgres", f"[POSTGRES]\n    Timeout 1h\n    Name postgres\n    Server {address}\n"
        if OPTIONAL["redis"]:
            yield "redis", f"[REDIS]\n    Timeout 1h\n    Name redis\n    Server unix:{self.redis.socket}\n"

    def prepare(self, monkey, site, **how):
        packages, sections = zip(*self.sections(), strict=True)
        flags = ["-DDUDA_USE=" + ",".join(f'"duda-{name}"' for name in packages),
                 *(f"-DHAS_{name.upper()}" for name in OPTIONAL if OPTIONAL[name])]
        (site.path.parent / "data").mkdir()
        service = services.build(site.path.parent, "waits", SOURCE, *flags, packages=packages)
        backends = ["duda-sqlite"] if OPTIONAL["sqlite"] else []
        return monkey(plugins=[*backends, service], workers=1, top="".join(sections), **how)

    def stop(self):
        self.silent.close()
        if self.redis:
            self.redis.stop()


@pytest.fixture(scope="module")
def others(lasting_starters):
    servers = Backends()
    yield servers
    servers.stop()


class Counts:
    """Compares the counters of the service with those at the creation of this object."""

    def __init__(self, server):
        self.server = server
        self.before = self.now()

    def now(self):
        return [int(n) for n in self.server.get("/count").text.split()]

    def expect(self, live, *ends):
        def is_so():
            now = self.now()
            return now[0] == live and [a - b for a, b in zip(now[1:], self.before[1:], strict=True)] == list(ends)

        try:
            wait_until(is_so, "the handlers have ended as expected")
        except AssertionError as error:
            raise AssertionError(f"not {live} and {ends}, but {self.now()} after {self.before}") from error


@pytest.fixture
def server(lasting, others):
    return lasting(others.prepare)


@pytest.fixture
def frozen(others):
    if others.redis:
        others.redis.freeze()
    yield
    if others.redis:
        others.redis.thaw()


def ask(server, kind, query=""):
    client = server.connect(receive_buffer=4096)
    client.ask(f"/wait/{kind}{query}", "POST", [("Content-Type", "application/x-www-form-urlencoded")], streamed=True)
    if kind in ("content", "form"):
        client.more(b"a=")
    else:
        client.done()
    return client


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("kind", KINDS)
def test_client_disconnect_cancels_every_kind_of_wait(server, kind):
    counts = Counts(server)
    clients = [ask(server, kind) for _ in range(N)]
    counts.expect(N, 0, 0, 0)
    for i, client in enumerate(clients, 1):
        client.close()
        if i == N // 2:
            counts.expect(N - i, i, 0, 0)
    counts.expect(0, N, 0, 0)


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("content", "form", "output", "events")])
def test_websocket_disconnect_cancels_every_kind_of_wait(server, kind):
    counts = Counts(server)
    url = server.url.replace("http", "ws", 1)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(f"{url}/wait/{kind}?socket=1", proxy=None, compression=None, open_timeout=30))
                   for _ in range(N)]
        counts.expect(N, 0, 0, 0)
        for client in clients:
            client.socket.shutdown(socket.SHUT_RDWR)
        counts.expect(0, N, 0, 0)


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "events"])  # events have no deadline
def test_deadline_ends_every_kind_of_wait(server, kind):
    counts = Counts(server)
    clients = [ask(server, kind, "?ms=20") for _ in range(N)]
    counts.expect(0, 0, N, 0)
    for client in clients:
        if kind == "output":
            with pytest.raises((Closed, ConnectionError)):
                client.read()
        else:
            assert client.read().status == 504
        client.close()


# Excludes the handlers whose first call does not wait when they repeat it after the cancellation.
@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("form", "topic", "events")])
def test_handler_that_ignores_cancellation_is_terminated(server, kind):
    counts = Counts(server)
    given_up = server.err.text.count("and was terminated")
    first = ask(server, kind)  # holds the lock if the kind is `lock`
    counts.expect(1, 0, 0, 0)
    stubborn = ask(server, kind, "?stubborn=1")
    counts.expect(2, 0, 0, 0)
    stubborn.close()
    counts.expect(1, 1, 0, 0)
    server.err.wait_for("ignores cancellation and was terminated", count=given_up + 1)
    first.close()
    counts.expect(0, 2, 0, 0)


NOT_IN_TASKS = ("content", "form", "output", "events",  # they need a request
                "thread")  # it repeats the call without a pause while no thread is available, which includes the end of the worker


@pytest.mark.usefixtures("frozen")
@pytest.mark.processes("the test reloads the server")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_worker_end_cancels_every_kind_of_wait(monkey, site, others, number):
    """Handlers and background tasks wait in all ways at once when their worker stops."""
    server = others.prepare(monkey, site, server="DrainTimeout 1s")
    server.allow("was cancelled: the worker stops")
    old = server.workers
    names = [getattr(kind, "values", [kind])[0] for kind in KINDS]
    tasks = [name for name in names if name not in NOT_IN_TASKS]
    clients = [ask(server, name) for name in names]
    for name in tasks:
        assert server.get(f"/task/{name}").text == "started"
    wait_until(lambda: server.get("/count").text == f"{len(names) + len(tasks)} 0 0 0", "all of them wait")
    server.tell(number)
    for name in tasks:
        server.err.wait_for(f"task {name} ends with -125")
    if number == signal.SIGTERM:
        server.wait()
    else:
        wait_until(lambda: not set(server.workers) & set(old), "the old worker has ended", 30)
        assert server.get("/count").text == "0 0 0 0"
    for client in clients:
        client.close()
