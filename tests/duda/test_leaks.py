# SPDX-License-Identifier: Apache-2.0
"""Sends many requests to a service that uses every package: the worker does not grow, and frees all memory when it exits.

By default, 30,000 requests are sent, and 10,000 more to a route that leaks. The following command sends 1.5 million requests to
the optimized program in about a minute, and prints the growth:

    MONKEY_LEAKS=1000000 MONKEY_PROGRAM=build/release/monkey build/venv/bin/python -m pytest -c tests/pytest.ini -s \
        tests/duda/test_leaks.py -k grow
"""
import contextlib
import os
import re
import time
from pathlib import Path

import pytest

import memcached_server
import postgres_server
import proc
import redis_server
import services
from monkey import PROGRAM, SECONDS
from proc import wait_until

EMBEDDED = PROGRAM.parent / "embedded"
PACKAGES = ["redis", "memcached", "sql", "postgres", "kv", "store", "http", "jobs"]
pytestmark = [
    pytest.mark.skipif(not all(services.has(each) for each in [*PACKAGES, "sqlite"]) or not redis_server.PROGRAM
                       or not memcached_server.PROGRAM or not postgres_server.is_usable(),
                       reason="this build lacks packages, or a server is not there")]

SOURCE = r"""
#define DUDA_USE "duda-redis", "duda-memcached", "duda-sql", "duda-postgres", "duda-kv", "duda-store", "duda-http", "duda-jobs"
#include <duda.h>
#include <duda/http.h>
#include <duda/jobs.h>
#include <duda/kv.h>
#include <duda/memcached.h>
#include <duda/postgres.h>
#include <duda/redis.h>
#include <duda/topic.h>
#include <duda/sql.h>
#include <duda/store.h>
#include <duda/session.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

/* Returns an absent string if there is no such value or the store is down. */
static inline mk_str session_value(struct duda_ctx *d, const char *name)
{
    mk_str value;
    (void)!duda_session_get(d, name, &value);
    return value;
}

#define VALUE MK_STR("a value that is a little longer than nothing")

extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static mk_str key(struct duda_ctx *d)
{
    static unsigned n;
    return duda_sprintf(d, "key%u", n++ % 100);
}

static int done(struct duda_ctx *d, int e)
{
    return e ? e : duda_puts(d, "ok\n");
}

static bool take_first(void *ctx, mk_str name, mk_str value)
{
    (void)ctx, (void)name, (void)value;
    return false;
}

static int kv(struct duda_ctx *d)
{
    mk_str name = key(d), value;
    int e = duda_kv_set(d, duda_kv_find(d, NULL), name, VALUE, 60000);
    e = e ? e : duda_kv_get(d, duda_kv_find(d, NULL), name, &value);
    return done(d, e ? e : duda_kv_scan(d, duda_kv_find(d, NULL), name, MK_STR_NULL, take_first, NULL));
}

static int store(struct duda_ctx *d)
{
    struct duda_store *s = duda_store_find(d, "memory");
    struct duda_store_lock lock;
    int64_t sum;
    mk_str name = key(d);
    int e = duda_store_lock(d, s, name, 10000, 5000, &lock);
    e = e ? e : duda_store_incr(d, s, MK_STR("count"), 1, 0, &sum);
    return done(d, e ? e : duda_store_unlock(d, &lock));
}

static int sql(struct duda_ctx *d, const char *name)
{
    struct duda_sql_db *db = duda_sql_find(d, name);
    struct duda_sql_result result;
    struct duda_sql_value k = duda_sql_text(key(d));
    int e = duda_sql_query(d, db, &result, "INSERT INTO kept (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2", k,
                     duda_sql_text(VALUE));
    e = e ? e : duda_sql_query(d, db, &result, "SELECT name, value FROM kept WHERE name = $1", k);
    return done(d, e);
}

static int sqlite(struct duda_ctx *d)
{
    return sql(d, "file");
}

static int postgres(struct duda_ctx *d)
{
    return sql(d, "server");
}

static int copy(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_postgres_copy *rows;
    mk_str row = MK_STR("");
    int e = duda_postgres_copy(d, duda_sql_find(d, "server"), &result, "COPY (VALUES (1), (2)) TO STDOUT", &rows);
    while (!e && row.p)
        e = duda_postgres_copy_read(d, rows, &row);
    return done(d, e ? e : duda_postgres_copy_end(d, rows));
}

/* Exceeds its deadline while the statement runs, so the package asks the server to cancel the statement. */
static int cancelled(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, "server"), &result, "SELECT pg_sleep(3600)");
    return e ? e : -EPROTO;
}

static int redis(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    mk_str name = key(d);
    int e = duda_redis(d, duda_redis_find(d, NULL), &reply, MK_STR("SET"), name, VALUE);
    return done(d, e ? e : duda_redis(d, duda_redis_find(d, NULL), &reply, MK_STR("GET"), name));
}

static int redis_says(struct duda_ctx *d)
{
    struct duda_redis *r = duda_redis_find(d, NULL);
    struct duda_redis_reply reply;
    struct duda_redis_sub *sub;
    mk_str name = key(d), message;
    int e = duda_redis_subscribe(d, r, name, &sub);
    e = e ? e : duda_redis(d, r, &reply, MK_STR("PUBLISH"), name, VALUE);
    return done(d, e ? e : duda_redis_receive(d, sub, 5000, &message));
}

static int memcache(struct duda_ctx *d)
{
    mk_str name = key(d), value;
    int e = duda_memcached_set(d, duda_memcached_find(d, NULL), name, VALUE, 0);
    return done(d, e ? e : duda_memcached_get(d, duda_memcached_find(d, NULL), name, &value));
}

static int hello(struct duda_ctx *d)
{
    return duda_puts(d, "hello\n");
}

enum { OFTEN = 300 };

static int nothing(void *job)
{
    (void)job;
    return 0;
}

/* Two handlers acquire the lock alternately; each gets it before its timeout expires. */
static int locks(struct duda_ctx *d)
{
    struct duda_store_lock lock;
    int e = 0;
    for (int i = 0; i < OFTEN && !e; i++) {
        e = duda_store_lock(d, duda_store_find(d, "memory"), MK_STR("one"), 10000, 5000, &lock);
        e = e ? e : duda_offload(d, NULL, nothing, NULL, 0);
        e = e ? e : duda_store_unlock(d, &lock);
        e = e ? e : duda_offload(d, NULL, nothing, NULL, 0); /* lets the other handler take the lock */
    }
    return done(d, e);
}

DUDA_TOPIC(hall, "hall");

static unsigned n_hearing;

static int hears(struct duda_ctx *d)
{
    struct duda_topic_message m;
    int e = duda_topic_subscribe(d, &hall);
    n_hearing++;
    for (unsigned n = 0; n < OFTEN && !e; n += 1 + m.dropped)
        e = duda_topic_receive_message(d, 5000, &m);
    n_hearing--;
    return done(d, e);
}

static int says(struct duda_ctx *d)
{
    int e = 0;
    while (!n_hearing && !e)
        e = duda_offload(d, NULL, nothing, NULL, 0);
    for (int i = 0; i < OFTEN && !e; i++) {
        e = duda_topic_publish(d, &hall, VALUE);
        e = e ? e : duda_offload(d, NULL, nothing, NULL, 0);
    }
    return done(d, e);
}

static int http(struct duda_ctx *d)
{
    const struct duda_http_request request = {.target = MK_STR("/hello")};
    struct duda_http_response response;
    int e = duda_http_fetch(d, duda_http_find(d, NULL), &request, &response);
    return done(d, e ? e : response.status == 200 ? 0 : -EPROTO);
}

static int visit(struct duda_ctx *d)
{
    int e = duda_session_set(d, "user", VALUE);
    return done(d, e ? e : session_value(d, "user").p ? 0 : -EPROTO);
}

DUDA_TOPIC_FAMILY(any_room, "room/");

static int rooms(struct duda_ctx *d)
{
    const struct duda_topic room = duda_topic_named(&any_room, key(d));
    mk_str text;
    int e = duda_topic_subscribe(d, &room);
    e = e ? e : duda_topic_publish(d, &room, VALUE);
    return done(d, e ? e : duda_topic_receive(d, 5000, &text));
}

static int work(struct duda_ctx *d, const struct duda_job *job)
{
    (void)d;
    return job->payload.len ? 0 : -EBADMSG;
}

static const struct duda_job_type kind = {.name = "work", .fn = work, .concurrency = 8};

static int start(struct mk_worker *w)
{
    return duda_jobs_register(w, &kind);
}

static int jobs(struct duda_ctx *d)
{
    return done(d, duda_jobs_enqueue(d, "work", VALUE, NULL, NULL));
}

static int left(struct duda_ctx *d)
{
    struct duda_job_counts n;
    int e = duda_jobs_count(d, "work", &n);
    return e ? e : duda_printf(d, "%llu", (unsigned long long)(n.waiting + n.running));
}

static int leak(struct duda_ctx *d)
{
    static char *volatile last;
    last = malloc(32);
    last[0] = 'x';
    return done(d, 0);
}

/* Fills the worker's free list of arena blocks (SPARE_ARENA_BLOCKS). A request that needs more blocks than any before it
 * lengthens the list, which heap() counts. */
static int fill(struct duda_ctx *d)
{
    bool ok = true;
    for (int i = 0; i < 100 && ok; i++)
        ok = duda_alloc(d, 4000);
    return done(d, ok ? 0 : -ENOMEM);
}

/* Number of allocated bytes. */
static int heap(struct duda_ctx *d)
{
    struct mallinfo2 m = mallinfo2();
    return duda_printf(d, "%zu", __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : m.uordblks + m.hblkhd);
}

DUDA_SERVICE(touches, DUDA_START(start),
    DUDA_GET("/kv", kv, ""), DUDA_GET("/store", store, ""), DUDA_GET("/sqlite", sqlite, "", .stack = 128 << 10),
    DUDA_GET("/postgres", postgres, ""), DUDA_GET("/copy", copy, ""), DUDA_GET("/cancelled", cancelled, "", .deadline_ms = 50),
    DUDA_GET("/redis", redis, ""), DUDA_GET("/said", redis_says, ""), DUDA_GET("/memcache", memcache, ""),
    DUDA_GET("/locks", locks, ""), DUDA_GET("/hears", hears, ""), DUDA_GET("/says", says, ""),
    DUDA_GET("/http", http, ""), DUDA_GET("/visit", visit, ""), DUDA_GET("/rooms", rooms, ""),
    DUDA_GET("/jobs", jobs, ""), DUDA_GET("/hello", hello, ""), DUDA_GET("/leak", leak, ""), DUDA_GET("/left", left, ""),
    DUDA_GET("/fill", fill, ""), DUDA_GET("/heap", heap, ""));
"""
STEADY = ["store", "sqlite", "postgres", "redis", "said", "memcache", "http", "rooms"]
# LMDB caches pages and lists of pages; the caches grow when more pages are in use than ever before.
IN_LMDB = ["kv", "visit", "jobs"]
PATHS = [*STEADY, *IN_LMDB, "copy"]
TABLE = "CREATE TABLE kept (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
REQUESTS = int(os.environ.get("MONKEY_LEAKS", "20000"))
CLIENTS, TIMES = 8, 4  # each client requests all paths TIMES times before it reads any response


def uses_sanitizer(program):
    return b"__asan_" in program.read_bytes()


@pytest.fixture
def start(monkey, tmp_path):
    """Starts the service in the given program."""
    with contextlib.ExitStack() as stack:
        redis, memcached, postgres = redis_server.Redis(), memcached_server.Memcached(), postgres_server.Postgres()
        for each in (redis, memcached, postgres):
            stack.callback(each.stop)
        address = postgres.database()
        postgres.sql(TABLE, address.rpartition("=")[2])
        (tmp_path / "migrations").mkdir()
        (tmp_path / "migrations" / "1-first.sql").write_text(f"{TABLE};\n")
        top = (f"[KV]\n    Folder data\n    Sync off\n    MaxSize 64M\n[JOBS]\n    Store main\n[SESSIONS]\n    Store main\n"
               f"    IdleTimeout 2s\n[REDIS]\n    Name far\n    Server unix:{redis.socket}\n    Timeout 20s\n"
               f"[MEMCACHED]\n    Servers unix:{memcached.socket}\n    Timeout 20s\n"
               f"[SQLITE]\n    Name file\n    File {tmp_path}/kept.db\n    Migrations migrations\n    Sync off\n    Timeout 20s\n"
               f"[POSTGRES]\n    Name server\n    Server {address}\n    Timeout 20s\n"
               f"[HTTP_CLIENT]\n    Name self\n    Server unix:{memcached.folder}/self\n")
        plugins = ["duda-kv", "duda-redis", "duda-memcached", "duda-sqlite", "duda-postgres", "duda-http"]
        yield lambda program=None, source=SOURCE: monkey(
            plugins=[*plugins, services.build(tmp_path, "touches", source, packages=PACKAGES)], top=top, listen=["127.0.0.1:0", f"unix:{memcached.folder}/self"], program=program,
            server="KeepAliveRequests unlimited\nLogLevel warn\n")


class Round:
    """Each client requests all paths at once. Half of the clients have a session; the others start one with each request."""

    def __init__(self, stack, server, paths):
        self.server = server
        self.clients = [stack.enter_context(server.connect()) for _ in range(CLIENTS)]
        self.n = len(paths) * TIMES
        cookie = server.get("/visit")["Set-Cookie"].partition(";")[0]
        fields = (f"Cookie: {cookie}\r\n", "")
        self.batches = [b"".join(f"GET /{path} HTTP/1.1\r\nHost: x\r\n{field}\r\n".encode() for path in paths) * TIMES for field in fields]

    def once(self):
        for i, client in enumerate(self.clients):
            client.send(self.batches[i % 2])
        for client in self.clients:
            while (found := client.got.count(b"\r\n\r\nok\n")) < self.n:
                others = set(re.findall(rb"HTTP/1.1 (\d+)", client.got)) - {b"200"}
                assert not others and client.fill(), f"{others}: {bytes(client.got[-300:])}\n{self.server.log[-500:]}"
            assert found == self.n
            client.got.clear()

    def ask(self, requests):
        for _ in range(max(1, requests // (self.n * CLIENTS))):
            self.once()
        wait_until(lambda: self.server.get("/left").text == "0", "all jobs are done")


def figures(server):
    worker, = server.workers
    text = Path(f"/proc/{worker}/smaps_rollup").read_text()
    pss = int(re.search(r"^Pss: +(\d+)", text, re.MULTILINE)[1])
    return int(server.get("/heap").text), proc.memory_kb(worker), pss


def grown_by(server, paths, requests):
    """The growth of the heap in bytes during the second half of the requests."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        round_ = Round(stack, server, paths)
        round_.ask(requests // 2)
        first = figures(server)
        for i in range(1, 11):
            round_.ask(requests // 20)
            last = figures(server)
            print(f"{requests // 2 + i * requests // 20:9} requests, {time.monotonic() - began:6.1f} s: heap {last[0]} bytes, "
                  f"private {last[1]} KB, PSS {last[2]} KB")
    grown = [b - a for a, b in zip(first, last)]
    print(f"grown by {grown[0]} bytes of heap, {grown[1]} KB private, {grown[2]} KB PSS")
    return grown[0]


@pytest.mark.timeout(240)
@pytest.mark.processes("the test measures a worker process")
def test_worker_does_not_grow(start):
    """The smallest leak in any path would cost more than one byte per request."""
    server = start()
    assert grown_by(server, STEADY, REQUESTS) < 8_000 + REQUESTS // 50
    assert grown_by(server, IN_LMDB, REQUESTS // 2) < 400_000 + REQUESTS // 10
    assert grown_by(server, [*STEADY, "leak"], 10_000) > 8_000 + 10_000 // 50, "a real leak is detected"


@pytest.mark.processes("the test measures a worker process")
@pytest.mark.parametrize("paths", [("locks", "locks"), ("hears", "says")], ids=["lock", "topic"])
def test_waits_that_end_in_time_leak_nothing(start, paths):
    """How many messages wait at the same time, and so the number of arena blocks in use, depends on the load of the machine."""
    server = start()
    assert server.get("/fill").text == "ok\n"
    heap = []
    for _ in range(3):
        clients = [server.connect() for _ in paths]
        for client, path in zip(clients, paths, strict=True):
            client.ask(f"/{path}")
        assert [client.read().text for client in clients] == ["ok\n", "ok\n"]
        heap.append(int(server.get("/heap").text))
    assert heap[2] - heap[1] < 8_000, heap


@pytest.mark.parametrize("leaks", [False, True], ids=["none", "a leak"])
def test_embedded_server_leaks_nothing_at_exit(start, leaks):
    """Embeds the server in a program, so that the leak sanitizer can check it at exit. The sandbox of a worker prevents
    that check."""
    if not EMBEDDED.exists() or not uses_sanitizer(EMBEDDED):
        pytest.skip("this build has no leak sanitizer")
    server = start(EMBEDDED)
    with contextlib.ExitStack() as stack:
        Round(stack, server, [*PATHS, *["leak"] * leaks]).ask(2_000)
        for _ in range(10):
            assert server.get("/cancelled").status == 504
    if not leaks:
        return
    server.allow("Sanitizer")
    server.process.terminate()
    server.err.wait_for(r"ERROR: LeakSanitizer: detected memory leaks\n\nDirect leak of 4096 byte\(s\) in 128 object")
    server.exit_code = server.process.wait(SECONDS)


def test_packages_need_little_stack(start):
    """Connecting needs a large stack, so it runs on the stack of the event loop."""
    server = start(source=services.with_small_stacks(SOURCE))
    with contextlib.ExitStack() as stack:
        Round(stack, server, PATHS).once()
