# SPDX-License-Identifier: Apache-2.0
"""If a service names a configuration section that does not exist, every function of every package returns an error, and the
log names the section and its Name."""
import errno

import pytest

import services

pytestmark = pytest.mark.skipif(not services.has("sql"), reason="this build has no packages")

SOURCE = r"""
#include <duda.h>
#include <duda/http.h>
#include <duda/jobs.h>
#include <duda/memcached.h>
#include <duda/smtp.h>
#include <duda/sql.h>
#include <duda/store.h>
#ifdef HAS_KV
#include <duda/kv.h>
#endif
#ifdef HAS_REDIS
#include <duda/redis.h>
#endif
#ifdef HAS_POSTGRES
#include <duda/postgres.h>
#endif

#define EXPECT(call) if ((e = (int)(call)) != -ENODEV) return duda_printf(d, "%s: %d\n", #call, e)

#include <errno.h>

static bool none(void *ctx, mk_str key, mk_str value)
{
    (void)ctx, (void)key, (void)value;
    return true;
}

static bool no_job(void *ctx, const struct duda_job *job)
{
    (void)ctx, (void)job;
    return true;
}

/* Calls all functions with the NULL that the lookup returned. */
static int all(struct duda_ctx *d)
{
    const char *name = duda_query_or(d, "name", "nope");
    mk_str a = MK_STR("a"), text;
    int64_t sum;
    int e;
    struct duda_sql_result result, results[2];
    const struct duda_sql_statement queries[] = {{"SELECT 1", NULL, 0}, {"SELECT 2", NULL, 0}};
    struct duda_sql_db *db = duda_sql_find(d, name);
    EXPECT(duda_sql_query(d, db, &result, "SELECT 1"));
    EXPECT(duda_sql_batch(d, db, queries, 2, results));
    EXPECT(duda_sql_begin(d, db));
    static const struct duda_schema nothing = {.name = "nothing"};
    const struct duda_sql_transaction_options options = {.read_only = true};
    struct duda_sql_cursor *cursor;
    EXPECT(duda_sql_begin_with(d, db, &options));
    EXPECT(duda_sql_transaction(d, db, NULL, NULL, NULL));
    EXPECT(duda_sql_query_struct(d, db, &result, "SELECT :a", &nothing, NULL));
    EXPECT(duda_sql_query_named(d, db, &result, "SELECT :a", NULL, 0));
    EXPECT(duda_sql_cursor_open(d, db, &result, "SELECT 1", NULL, 0, &cursor));
    EXPECT(duda_sql_commit(d, db));
    EXPECT(duda_sql_rollback(d, db));
    struct duda_store *store = duda_store_find(d, name);
    struct duda_store_lock lock;
    EXPECT(duda_store_get(d, store, a, &text));
    EXPECT(duda_store_set(d, store, a, a, 0));
    EXPECT(duda_store_replace(d, store, a, a, 0));
    EXPECT(duda_store_add(d, store, a, a, 0));
    EXPECT(duda_store_delete_if(d, store, a, a));
    EXPECT(duda_store_incr(d, store, a, 1, 0, &sum));
    EXPECT(duda_store_rate_limit(d, store, a, 1, 1000));
    EXPECT(duda_store_lock(d, store, a, 1000, 1000, &lock));
    EXPECT(duda_store_unlock(d, &lock));
    struct duda_job_counts counts;
    EXPECT(duda_jobs_enqueue(d, "mail", a, NULL, NULL));
    EXPECT(duda_jobs_count(d, "mail", &counts));
    EXPECT(duda_jobs_list_failed(d, "mail", no_job, NULL));
    EXPECT(duda_jobs_retry(d, "mail", a));
    struct duda_memcached *m = duda_memcached_find(d, name);
    struct duda_memcached_item item = {.key = a};
    uint64_t total;
    EXPECT(duda_memcached_get(d, m, a, &text));
    EXPECT(duda_memcached_get_many(d, m, &item, 1));
    EXPECT(duda_memcached_set(d, m, a, a, 0));
    EXPECT(duda_memcached_add(d, m, a, a, 0));
    EXPECT(duda_memcached_cas(d, m, a, 1, a, 0));
    EXPECT(duda_memcached_delete(d, m, a));
    EXPECT(duda_memcached_touch(d, m, a, 0));
    EXPECT(duda_memcached_incr(d, m, a, 1, 0, &total));
    if (!duda_memcached_error(d, m, a).len)
        return 500;
    struct duda_http_client *http = duda_http_find(d, name);
    struct duda_http_response response;
    struct duda_http_stream *stream;
    EXPECT(duda_http_fetch(d, http, &(struct duda_http_request){.target = MK_STR("/")}, &response));
    EXPECT(duda_http_open(d, http, &(struct duda_http_request){.target = MK_STR("/")}, &response, &stream));
    EXPECT(duda_http_begin(d, http, &(struct duda_http_request){.target = MK_STR("/")}, 0, &response, &stream));
    struct duda_smtp *smtp = duda_smtp_find(d, name);
    struct duda_smtp_result sent;
    EXPECT(duda_smtp_send(d, smtp, &(struct duda_mail){.from = a, .to = &a, .n_to = 1}, &sent));
    EXPECT(duda_smtp_send_raw(d, smtp, &(struct duda_smtp_message){.from = a, .to = &a, .n_to = 1}, &sent));
#ifdef HAS_KV
    struct duda_kv *kv = duda_kv_find(d, name);
    EXPECT(duda_kv_get(d, kv, a, &text));
    EXPECT(duda_kv_scan(d, kv, a, MK_STR_NULL, none, NULL));
    EXPECT(duda_kv_set(d, kv, a, a, 0));
    EXPECT(duda_kv_delete(d, kv, a));
    EXPECT(duda_kv_expire(d, kv, a, 0));
    EXPECT(duda_kv_compare_and_set(d, kv, a, a, a, 0));
    EXPECT(duda_kv_incr(d, kv, a, 1, 0, &sum));
    struct duda_kv_batch *b = duda_kv_batch_begin(kv);
    duda_kv_batch_set(b, a, a, 0);
    duda_kv_batch_expect(b, a, a);
    duda_kv_batch_delete(b, a);
    EXPECT(duda_kv_batch_commit(d, b));
    b = duda_kv_batch_begin(kv);
    duda_kv_batch_abort(b);
#endif
#ifdef HAS_REDIS
    struct duda_redis *r = duda_redis_find(d, name);
    struct duda_redis_reply reply, replies[1];
    struct duda_redis_sub *sub;
    static struct duda_redis_script script = {.source = "return 1"};
    const struct duda_redis_command command = {&a, 1};
    EXPECT(duda_redis(d, r, &reply, MK_STR("PING")));
    EXPECT(duda_redis_blocking(d, r, &reply, 10, &a, 1));
    EXPECT(duda_redis_write_replicated(d, r, &reply, 1, 10, &a, 1));
    EXPECT(duda_redis_pipeline(d, r, &command, 1, replies));
    EXPECT(duda_redis_transaction(d, r, &command, 1, replies));
    EXPECT(duda_redis_eval(d, r, &reply, &script, 0, &a, 1));
    EXPECT(duda_redis_subscribe(d, r, a, &sub));
#endif
#ifdef HAS_POSTGRES
    struct duda_postgres_sub *subscription;
    struct duda_postgres_copy *copy;
    EXPECT(duda_postgres_subscribe(d, db, a, &subscription));
    EXPECT(duda_postgres_copy(d, db, &result, "COPY t TO STDOUT", &copy));
#endif
    return duda_puts(d, none(NULL, a, a) ? "all\n" : "");
}

static int as_the_guide(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, "SELECT 1");
    return e ? e : duda_puts(d, "found\n");
}

static int enqueue(struct duda_ctx *d)
{
    return duda_jobs_enqueue(d, "mail", MK_STR("a"), NULL, NULL);
}

DUDA_SERVICE(missing, DUDA_GET("/all", all, ""), DUDA_GET("/jobs", enqueue, ""), DUDA_GET("/guide", as_the_guide, ""));
"""
PACKAGES = ["store", "jobs", "sql", "memcached", "http", "smtp", *(name for name in ("kv", "redis", "postgres") if services.has(name))]
SECTIONS = {"store": r"\[KV\] or \[REDIS\]", "sql": r"\[SQLITE\] or \[POSTGRES\]", "kv": r"\[KV\]", "redis": r"\[REDIS\]",
            "memcached": r"\[MEMCACHED\]", "http": r"\[HTTP_CLIENT\]", "smtp": r"\[SMTP\]"}


@pytest.fixture
def server(monkey, tmp_path):
    flags = ["-DDUDA_USE=" + ",".join(f'"duda-{name}"' for name in PACKAGES), *(f"-DHAS_{name.upper()}" for name in PACKAGES)]
    server = monkey(plugins=[services.build(tmp_path, "missing", SOURCE, *flags, packages=PACKAGES)], workers=1)
    server.allow("there is no", "is loaded, but", "answered -ENODEV")
    return server


def test_every_function_reports_the_missing_section(server):
    for name in ("nope", "typo", "nope"):
        assert server.get(f"/all?name={name}").text == "all\n"
    for name, section in SECTIONS.items():
        if name in PACKAGES:
            for missing in ("nope", "typo"):
                server.err.wait_for(rf"\[error\].*: there is no {section} with the Name `{missing}`: functions")
    assert server.err.text.count("[KV] or [REDIS] with the Name `nope`: functions") == 1, "logged once for each Name"


def test_handler_of_the_guide_is_503_and_names_the_section(server):
    """The handler of the guide uses the result of the lookup without checking it."""
    assert server.get("/guide").status == 503
    server.err.wait_for(r"as_the_guide\(\) in \S+ answered -ENODEV \(.*\): there is no \[SQLITE\] or \[POSTGRES\] with the Name `main`")


def test_missing_store_of_jobs_is_named(server):
    assert server.get("/jobs").status == 503
    server.err.wait_for(r"enqueue\(\) in \S+ answered -ENODEV \(.*\): \[JOBS\] Store main: there is no \[KV\] or \[REDIS\] with this Name")


def test_package_without_a_section_warns_at_startup(server):
    server.err.wait_for(r"warning: duda-sql is loaded, but there is no \[SQLITE\] or \[POSTGRES\]")


def test_names_of_clients_do_not_fill_the_log(server):
    for i in range(40):
        assert server.get(f"/all?name=n{i}").text == "all\n"
    assert server.err.text.count(": functions that need it") <= 16 * len(PACKAGES)


STARTS = r"""
#include <duda.h>
#include <duda/store.h>
#include <duda/sql.h>
#include <duda/memcached.h>
#include <duda/http.h>
#include <duda/redis.h>
#include <duda/smtp.h>
#include <errno.h>
#ifdef HAS_KV
#include <duda/kv.h>
#else
#define duda_kv_of(worker, name) NULL
#endif

static struct duda_store *store;
static bool is_found[7];

static int start(struct mk_worker *worker)
{
    store = duda_store_of(worker, NULL);
    is_found[0] = duda_store_of(worker, "nope");
    is_found[1] = duda_sql_of(worker, NULL);
    is_found[2] = duda_memcached_of(worker, NULL);
    is_found[3] = duda_http_of(worker, NULL);
    is_found[4] = duda_smtp_of(worker, "second");
    is_found[5] = duda_kv_of(worker, NULL);
    is_found[6] = duda_redis_of(worker, "cache");
    return store ? 0 : -ENODEV;
}

static int show(struct duda_ctx *d)
{
    mk_str value = MK_STR_NULL;
    int e = duda_store_set(d, store, MK_STR("key"), MK_STR("value"), 0);
    e = e ? e : duda_store_get(d, store, MK_STR("key"), &value);
    for (size_t i = 0; !e && i < MK_LEN(is_found); i++)
        e = duda_printf(d, "%d", is_found[i]);
    return e ? e : duda_printf(d, " %s %d", value.p, duda_memcached_find(d, NULL) != NULL);
}

DUDA_SERVICE(starts, DUDA_START(start), DUDA_GET("/", show));
"""


@pytest.mark.parametrize("memcached, is_main", [("Name main", 1), ("", 1), ("Name other", 0)])
def test_packages_are_found_at_the_start_and_null_is_main(monkey, tmp_path, memcached, is_main):
    """A lookup without a name finds the only section or, if there are several, `main`, wherever it is in the configuration."""
    names = [name for name in PACKAGES if name != "postgres"]
    flags = ["-DDUDA_USE=" + ",".join(f'"duda-{name}"' for name in names), *(["-DHAS_KV"] if "kv" in names else [])]
    top = (f"[MEMCACHED]\n    Name first\n    Servers 127.0.0.1:1\n[MEMCACHED]\n    {memcached}\n    Servers 127.0.0.1:1\n"
           "[HTTP_CLIENT]\n    Name only\n    Server 127.0.0.1:1\n[SMTP]\n    Name second\n    Server 127.0.0.1:1\n[REDIS]\n    Name cache\n    Server 127.0.0.1:1\n")
    server = monkey(plugins=[services.build(tmp_path, "starts", STARTS, *flags, packages=names)], workers=1, top=top)
    server.allow("there is no", "is loaded, but")
    assert server.get("/").text == f"00{is_main}1101 value {is_main}"
    if not is_main:
        server.err.wait_for(r"\[error\].*: there is no \[MEMCACHED\] with the Name `main`: functions that need it return -ENODEV")


def test_error_in_a_section_of_duda_is_named_by_its_services(run, tmp_path):
    source = '#include <duda.h>\nstatic int f(struct duda_ctx *d) { return duda_puts(d, ""); }\nDUDA_SERVICE(plain, DUDA_GET("/", f));\n'
    service = services.build(tmp_path, "plain", source)
    (tmp_path / "monkey.conf").write_text(f"[PLUGINS]\n    Load {service}\n[SESSIONS]\n    KeyFile {tmp_path}/none\n[HOST]\n    DocumentRoot {tmp_path}\n")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    assert done.code != 0 and "KeyFile" in done.err and "second copy" not in done.err and \
        "the service `plain` needs Duda, whose settings have an error" in done.err, done.err
