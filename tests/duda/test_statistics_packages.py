# SPDX-License-Identifier: Apache-2.0
"""Call statistics of packages: after a known sequence of calls, Prometheus shows the expected numbers for each package."""
import threading

import pytest

import mail_server
import memcached_server
import postgres_server
import prometheus
import redis_server
import services
from backend import Backend, response
from proc import wait_until

PACKAGES = ["kv", "redis", "memcached", "sql", "http", "store", "jobs", "smtp", "subprocess"]

pytestmark = pytest.mark.skipif(
    not all(services.has(package) for package in [*PACKAGES, "sqlite", "postgres"]) or not redis_server.PROGRAM or
    not memcached_server.PROGRAM or not postgres_server.is_usable(), reason="a package or its server is missing")

SOURCE = r"""
#define DUDA_USE "duda-kv", "duda-redis", "duda-memcached", "duda-sql", "duda-http", "duda-store", "duda-jobs", "duda-smtp", \
    "duda-subprocess"
#include <duda.h>
#include <duda/subprocess.h>
#include <duda/http.h>
#include <duda/jobs.h>
#include <duda/kv.h>
#include <duda/memcached.h>
#include <duda/redis.h>
#include <duda/topic.h>
#include <duda/smtp.h>
#include <duda/sql.h>
#include <duda/store.h>
#include <errno.h>

static char big[100000];

/* Prints the results for the test to compare. */
#define SAY(...)                                                                                                       \
    do {                                                                                                               \
        const int all[] = {__VA_ARGS__};                                                                               \
        for (size_t i = 0; i < MK_LEN(all); i++)                                                                       \
            duda_printf(d, i ? " %d" : "%d", all[i]);                                                                  \
    } while (0)

static bool each(void *ctx, mk_str key, mk_str value)
{
    (void)ctx, (void)key, (void)value;
    return true;
}

static int use_kv(struct duda_ctx *d)
{
    struct duda_kv *kv = duda_kv_find(d, "main");
    mk_str v;
    int64_t n;
    int a = duda_kv_set(d, kv, MK_STR("k"), MK_STR("text"), 0), b = duda_kv_get(d, kv, MK_STR("k"), &v),
        c = duda_kv_get(d, kv, MK_STR("none"), &v), e = duda_kv_incr(d, kv, MK_STR("k"), 1, 0, &n),
        f = duda_kv_scan(d, kv, MK_STR(""), MK_STR_NULL, each, NULL), g = duda_kv_set(d, kv, mk_str_of(big, 481), v, 0);
    SAY(a, b, c, e, f, g);
    return 0;
}

static int use_redis(struct duda_ctx *d)
{
    struct duda_redis *r = duda_redis_find(d, NULL);
    struct duda_redis_reply replies[2];
    const mk_str get[] = {MK_STR("GET"), MK_STR("k")};
    const struct duda_redis_command two[] = {{get, 2}, {get, 2}};
    int a = duda_redis(d, r, replies, MK_STR("SET"), MK_STR("k"), MK_STR("text")),
        b = duda_redis(d, r, replies, MK_STR("GET"), MK_STR("none")), c = duda_redis_pipeline(d, r, two, 2, replies),
        e = duda_redis_transaction(d, r, two, 2, replies), f = duda_redis(d, r, replies, MK_STR("INCR"), MK_STR("k"));
    SAY(a, b, c, e, f);
    return 0;
}

static int use_memcache(struct duda_ctx *d)
{
    struct duda_memcached *m = duda_memcached_find(d, NULL);
    struct duda_memcached_item items[2] = {{.key = MK_STR("k")}, {.key = MK_STR("none")}};
    mk_str v;
    int a = duda_memcached_set(d, m, MK_STR("k"), MK_STR("text"), 0), b = duda_memcached_get(d, m, MK_STR("k"), &v),
        c = duda_memcached_get(d, m, MK_STR("none"), &v), e = duda_memcached_get_many(d, m, items, 2),
        f = duda_memcached_set(d, m, MK_STR(""), MK_STR("x"), 0);
    SAY(a, b, c, e, f);
    return 0;
}

static int use_sql(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, duda_param(d, "name").p);
    const struct duda_sql_statement two[] = {{"SELECT 1", NULL, 0}, {"SELECT 2", NULL, 0}};
    struct duda_sql_result results[2];
    int a = duda_sql_query(d, db, results, "SELECT 1"), b = duda_sql_batch(d, db, two, 2, results), c = duda_sql_begin(d, db),
        e = duda_sql_query(d, db, results, "SELECT 1"), f = duda_sql_commit(d, db), g = duda_sql_query(d, db, results, "SELEC 1");
    SAY(a, b, c, e, f, g);
    return 0;
}

static int use_http(struct duda_ctx *d)
{
    struct duda_http_response r;
    int results[2];
    for (size_t i = 0; i < 2; i++)
        results[i] = duda_http_fetch(d, duda_http_find(d, NULL),
                               &(struct duda_http_request){.target = i ? MK_STR("/cut") : MK_STR("/404")}, &r);
    SAY(results[0], results[1]);
    return 0;
}

static int hold(struct duda_ctx *d)
{
    struct duda_http_response r;
    return duda_http_fetch(d, duda_http_find(d, NULL), &(struct duda_http_request){.target = MK_STR("/held")}, &r);
}

static int use_store(struct duda_ctx *d)
{
    struct duda_store *s = duda_store_find(d, "memory");
    struct duda_store_lock lock;
    mk_str v;
    int a = duda_store_set(d, s, MK_STR("k"), MK_STR("text"), 0), b = duda_store_get(d, s, MK_STR("k"), &v),
        c = duda_store_get(d, s, MK_STR("none"), &v), e = duda_store_rate_limit(d, s, MK_STR("l"), 0, 1000),
        f = duda_store_lock(d, s, MK_STR("lock"), 1000, 0, &lock), g = duda_store_unlock(d, &lock),
        h = duda_store_set(d, s, MK_STR("big"), mk_str_of(big, sizeof big), 0);
    SAY(a, b, c, e, f, g, h);
    return 0;
}

static int use_smtp(struct duda_ctx *d)
{
    const mk_str to[] = {MK_STR("ana@example.org"), MK_STR("ana@elsewhere.org")};
    struct duda_smtp_result r;
    int results[2];
    for (size_t i = 0; i < 2; i++) {
        const struct duda_mail m = {.from = MK_STR("a@example.org"), .to = &to[i], .n_to = 1, .body = MK_STR("x\n")};
        results[i] = duda_smtp_send(d, duda_smtp_find(d, NULL), &m, &r);
    }
    SAY(results[0], results[1]);
    return 0;
}

/* One job succeeds, one succeeds at the second attempt, and one always fails. */
static int work(struct duda_ctx *d, const struct duda_job *job)
{
    (void)d;
    if (mk_str_eq(job->payload, MK_STR("never")))
        return -EBADMSG;
    return mk_str_eq(job->payload, MK_STR("later")) && job->attempt < 2 ? -EAGAIN : 0;
}

static const struct duda_job_type kind = {.name = "work", .fn = work, .backoff_ms = 1};

static int start(struct mk_worker *worker)
{
    memset(big, 'x', sizeof big);
    return duda_jobs_register(worker, &kind);
}

static int use_jobs(struct duda_ctx *d)
{
    int a = duda_jobs_enqueue(d, "work", MK_STR("now"), NULL, NULL), b = duda_jobs_enqueue(d, "work", MK_STR("later"), NULL, NULL),
        c = duda_jobs_enqueue(d, "work", MK_STR("never"), NULL, NULL);
    SAY(a, b, c);
    return 0;
}

static int run(struct duda_ctx *d, const char *script, uint32_t ms)
{
    const char *const argv[] = {script ? "/bin/sh" : "/none", "-c", script, NULL};
    const struct duda_subprocess_options o = {.argv = argv, .timeout_ms = ms};
    mk_str said;
    int status = -1, e = duda_subprocess_run(d, &o, MK_STR(""), 100, &said, &status);
    return e ? e : status;
}

static int use_child(struct duda_ctx *d)
{
    int a = run(d, "exit 0", 0), b = run(d, "exit 7", 0), c = run(d, NULL, 0), e = run(d, "sleep 3600", 1);
    SAY(a, b, c, e);
    return 0;
}

DUDA_TOPIC(town, "town");

static int use_topics(struct duda_ctx *d)
{
    int a = duda_topic_publish(d, &town, MK_STR("x")),
        b = duda_topic_publish(d, NULL, MK_STR("x"));
    SAY(a, b);
    return 0;
}

DUDA_SERVICE(uses, DUDA_START(start), DUDA_GET("/kv", use_kv, ""), DUDA_GET("/redis", use_redis, ""),
             DUDA_GET("/memcache", use_memcache, ""), DUDA_GET("/sql/:name", use_sql, ""), DUDA_GET("/http", use_http, ""),
             DUDA_GET("/held", hold, ""), DUDA_GET("/store", use_store, ""), DUDA_GET("/smtp", use_smtp, ""),
             DUDA_GET("/jobs", use_jobs, ""), DUDA_GET("/child", use_child, ""),
             DUDA_GET("/topics", use_topics, ""));
"""

# For each route: the package, its section, the result of each call, and the number of calls and failures. A valid
# answer, such as -2 (-ENOENT) for a missing value, counts as a success.
USES = {
    "/kv": ("kv", "main", "0 0 -2 -33 0 -22", 6, 1),
    "/redis": ("redis", "far", "0 0 0 0 -121", 5, 1),
    "/memcache": ("memcached", "cache", "0 0 -2 0 -22", 5, 1),
    "/sql/main": ("sqlite", "main", "0 0 0 0 0 -121", 6, 1),
    "/sql/pg": ("postgres", "pg", "0 0 0 0 0 -121", 6, 1),
    "/http": ("http", "behind", "0 -104", 2, 1),
    "/store": ("store", "memory", "0 0 -2 -122 0 0 -90", 7, 1),
    "/smtp": ("smtp", "box", "0 -74", 2, 1),
    "/jobs": ("jobs", "jobs", "0 0 0", 4, 2),
    "/topics": ("topics", "main", "0 -22", 2, 1),
    "/child": ("subprocess", "main", "0 7 -2 -62", 4, 2),
}


class World:
    """Starts all backends, and a server that uses them."""

    def __init__(self, monkey, site, ends):
        folder = site.path.parent
        self.held, held_on = threading.Event(), threading.Event()

        def behind(request):
            if request.target == "/held":
                self.held.set()
                held_on.wait(30)
            return cut() if request.target == "/cut" else response("x", status="404 Not Found" if request.target == "/404" else "200 OK")

        def cut():
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nxxx"
            raise EOFError

        self.let_go = held_on.set
        redis, memcached, postgres = redis_server.Redis(), memcached_server.Memcached(), postgres_server.Postgres()
        for server in (redis, memcached, postgres):
            ends.append(server.stop)
        backend, boxes = Backend(behind), mail_server.boxes()
        mail = boxes.__enter__()()
        ends.extend([held_on.set, backend.stop, lambda: boxes.__exit__(None, None, None)])
        service = services.build(folder, "uses", SOURCE, packages=PACKAGES)
        self.server = monkey(plugins=["metrics", service, "duda-sqlite", "duda-postgres"], workers=2, top=f"""
[METRICS]
    Metrics /metrics
[KV]
    Folder {folder}/kv
[KV]
    Name jobs
    Folder {folder}/jobs
[JOBS]
    Store jobs
[REDIS]
    Name far
    Server unix:{redis.socket}
[MEMCACHED]
    Name cache
    Servers unix:{memcached.socket}
[SQLITE]
    File {folder}/a.db
[POSTGRES]
    Name pg
    Server {postgres.database()}
[HTTP_CLIENT]
    Name behind
    Server {backend.address}
[SMTP]
    Name box
    Server {mail.address}
""")

    def counted(self, package, section):
        numbers = prometheus.parse(self.server.get("/metrics").text)
        labels = {"package": package, "section": section}
        return [numbers[f"monkey_package_{name}", labels] for name in ("calls_total", "failures_total", "waiting", "seconds_total")]


@pytest.fixture
def world(monkey, site):
    ends = []
    try:
        yield World(monkey, site, ends)
    finally:
        for end in ends[::-1]:
            end()


def test_packages_count_calls_failures_and_durations(world):
    world.server.allow("answered|has failed|SELEC")
    for path, (package, section, answers, calls, failures) in USES.items():
        assert world.counted(package, section)[:3] == [0, 0, 0], package
        assert world.server.get(path).text == answers, path
        wait_until(lambda: world.counted(package, section)[:3] == [calls, failures, 0], package)
        assert (world.counted(package, section)[3] > 0) == (package != "store"), "calls in memory have no measured duration"
    numbers = prometheus.parse(world.server.get("/metrics").text)
    listed = {(labels["package"], labels["section"]) for labels, _ in numbers.all("monkey_package_calls_total")}
    assert listed == {(package, section) for package, section, *_ in USES.values()} | {("kv", "jobs")}
    # This call is still in progress.
    thread = threading.Thread(target=world.server.get, args=["/held"])
    thread.start()
    assert world.held.wait(30)
    assert world.counted("http", "behind")[:3] == [2, 1, 1]
    world.let_go()
    thread.join(30)
    assert world.counted("http", "behind")[:3] == [3, 1, 0]
