# SPDX-License-Identifier: Apache-2.0
"""The store package: the same service with stores in memory, in [KV] and in [REDIS]."""
import concurrent.futures
import signal

import pytest

import redis_server
import services
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("store"), reason="this build has no Duda")

SOURCE = r"""
#define DUDA_USE "duda-store"
#include <duda.h>
#include <duda/store.h>
#include <errno.h>

static struct duda_store *store(struct duda_ctx *d)
{
    return duda_store_find(d, NULL);
}

static int64_t ttl(struct duda_ctx *d)
{
    int64_t ms = 0;
    return duda_query_int(d, "ttl", &ms) ? ms : 0;
}

static int get(struct duda_ctx *d)
{
    mk_str value;
    int e = duda_store_get(d, store(d), duda_param(d, "key"), &value);
    return e ? duda_printf(d, "%d", -e) : duda_write(d, value);
}

static int put(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_store_set(d, store(d), duda_param(d, "key"), duda_query(d, "v"), (uint64_t)ttl(d)));
}

static int replace(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_store_replace(d, store(d), duda_param(d, "key"), duda_query(d, "v"), (uint64_t)ttl(d)));
}

static int add(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_store_add(d, store(d), duda_param(d, "key"), duda_query(d, "v"), (uint64_t)ttl(d)));
}

static int drop(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_store_delete_if(d, store(d), duda_param(d, "key"), duda_query(d, "v")));
}

static int limit(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_store_rate_limit(d, store(d), duda_param(d, "key"), 5, 3600000));
}

/* A token bucket, of 5 uses an hour by default. */
static int bucket(struct duda_ctx *d)
{
    int64_t capacity, refill_ms;
    if (!duda_query_int_or(d, "capacity", 5, &capacity) || !duda_query_int_or(d, "refill", 3600000, &refill_ms))
        return 400;
    int e = duda_store_token_bucket(d, store(d), duda_param(d, "key"), capacity, (uint64_t)refill_ms);
    return e == -EDQUOT ? e : duda_printf(d, "%d", -e);
}

static int count(struct duda_ctx *d)
{
    int64_t sum = 0;
    int e = duda_store_incr(d, store(d), duda_param(d, "key"), 3, 0, &sum);
    return duda_printf(d, "%d %lld", -e, (long long)sum);
}

/* Reads a number and writes the incremented number in two steps: without the lock, updates would be
   lost. */
static int guarded(struct duda_ctx *d)
{
    struct duda_store_lock lock;
    mk_str value;
    uint64_t n = 0;
    int e = duda_store_lock(d, store(d), MK_STR("lock"), 60000, 30000, &lock);
    if (e)
        return duda_printf(d, "%d", -e);
    if (duda_store_get(d, store(d), MK_STR("guarded"), &value) == 0 && !mk_num_parse(value, &n))
        return 500;
    e = duda_sleep(d, 1);
    e = e ? e : duda_store_set(d, store(d), MK_STR("guarded"), duda_sprintf(d, "%llu", (unsigned long long)n + 1), 0);
    e = e ? e : duda_store_unlock(d, &lock);
    return duda_printf(d, "%d", -e);
}

/* Holds a lock until the request body ends. */
static int hold(struct duda_ctx *d)
{
    struct duda_store_lock lock;
    mk_str text;
    int e = duda_store_lock(d, store(d), MK_STR("held"), 60000, 30000, &lock);
    duda_log(d, MK_LOG_WARN, "holds: %d", e);
    e = e ? e : duda_read_all(d, 100, &text);
    e = e ? e : duda_store_unlock(d, &lock);
    return duda_printf(d, "%d", -e);
}

static int locks(struct duda_ctx *d)
{
    struct duda_store_lock first, second;
    int a = duda_store_lock(d, store(d), MK_STR("other"), 60000, 0, &first);
    int b = duda_store_lock(d, store(d), MK_STR("other"), 60000, 0, &second);
    int c = duda_store_unlock(d, &second), e = duda_store_unlock(d, &first), f = duda_store_unlock(d, &first);
    return duda_printf(d, "%d %d %d %d %d", -a, -b, -c, -e, -f);
}

DUDA_SERVICE(shares,
    DUDA_GET("/get/:key", get, "Reads."), DUDA_GET("/put/:key", put, "Writes."), DUDA_GET("/add/:key", add, "Adds."),
    DUDA_GET("/replace/:key", replace, "Replaces."),
    DUDA_GET("/drop/:key", drop, "Removes."), DUDA_GET("/limit/:key", limit, "Allows five calls."),
    DUDA_GET("/bucket/:key", bucket, "A token bucket."),
    DUDA_GET("/count/:key", count, "Counts."), DUDA_GET("/guarded", guarded, "One at a time."), DUDA_POST("/hold", hold, "Holds a lock."),
    DUDA_GET("/locks", locks, "Two locks."));
"""


FLOOD = r"""
#define DUDA_USE "duda-store"
#include <duda.h>
#include <duda/store.h>

static int limit(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_store_rate_limit(d, duda_store_find(d, NULL), duda_query(d, "name"), 5, 3600000));
}

static int lock(struct duda_ctx *d)
{
    struct duda_store_lock l;
    return duda_printf(d, "%d", -duda_store_lock(d, duda_store_find(d, NULL), duda_query(d, "name"), 3600000, 0, &l));
}

/* The response status tells whether the lock was acquired. */
static int hold(struct duda_ctx *d)
{
    struct duda_store_lock l;
    int e = duda_store_lock(d, duda_store_find(d, NULL), duda_query(d, "name"), 3600000, 0, &l);
    return e ? e : duda_puts(d, "held");
}

static int put(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_store_set(d, duda_store_find(d, NULL), duda_query(d, "name"), MK_STR("v"), 0));
}

static int flood(struct duda_ctx *d)
{
    const char *kind = duda_query_or(d, "kind", "");
    struct duda_store *s = duda_store_find(d, NULL);
    int64_t n = 0, sum;
    int failed = 0;
    struct duda_store_lock l;
    duda_query_int(d, "n", &n);
    for (int64_t i = 0; i < n; i++) {
        size_t mark = duda_arena_mark(d);
        mk_str name = duda_sprintf(d, "%s%0399lld", duda_query_or(d, "of", "-"), (long long)i);
        failed += (*kind == 'l'   ? duda_store_rate_limit(d, s, name, 5, 3600000)
                   : *kind == 'c' ? duda_store_incr(d, s, name, 1, 3600000, &sum)
                   : *kind == 'h' ? duda_store_lock(d, s, name, 3600000, 0, &l)
                                  : duda_store_add(d, s, name, MK_STR("v"), 3600000)) != 0;
        duda_arena_rewind(d, mark);
    }
    return duda_printf(d, "%d", failed);
}

DUDA_SERVICE(flood, DUDA_GET("/limit", limit, ""), DUDA_GET("/lock", lock, ""), DUDA_GET("/hold", hold, ""), DUDA_GET("/put", put, ""),
             DUDA_GET("/flood", flood, ""));
"""


@pytest.fixture(scope="module")
def redis():
    server = redis_server.Redis()
    yield server
    server.stop()


@pytest.fixture(params=["memory", "kv", "redis"])
def server(lasting, prepared, request):
    kind = request.param
    if (kind != "memory" and not services.has(kind)) or (kind == "redis" and not redis_server.PROGRAM):
        pytest.skip(f"this build has no {kind}, or its server is not there")

    def prepare(monkey, site):
        service = services.build(site.path.parent, "shares", SOURCE, packages=["store"])
        section = {"memory": "", "kv": "[KV]\n    Folder data\n"}.get(kind)
        if section is None:
            section = f"[REDIS]\n    Server unix:{request.getfixturevalue('redis').socket}\n"
        monkey(plugins=[*([] if kind == "memory" else [f"duda-{kind}"]), service], top=section, workers=2)

    return lasting(prepared.setdefault(kind, prepare))


def ask(server, target):
    return server.get(target).text


def test_store_values_are_set_compared_and_deleted(server):
    assert ask(server, "/get/a") == "2"
    assert ask(server, "/put/a?v=1") == "0"
    assert ask(server, "/get/a") == "1"
    assert ask(server, "/add/a?v=2") == "17"
    assert ask(server, "/drop/a?v=2") == "116"
    assert ask(server, "/drop/a?v=1") == "0"
    assert ask(server, "/add/a?v=2") == "0"
    assert ask(server, "/drop/a") == "0"
    assert ask(server, "/drop/a") == "0"
    assert ask(server, "/replace/a?v=3") == "2"
    assert ask(server, "/add/a?v=3") == "0"
    assert ask(server, "/replace/a?v=4") == "0"
    assert ask(server, "/get/a") == "4"
    assert ask(server, "/put/" + "k" * 440 + "?v=1") == "0"
    assert ask(server, "/put/" + "k" * 441 + "?v=1") == "22"


def test_store_values_expire(server):
    assert ask(server, "/put/brief?v=1&ttl=1") == "0"
    wait_until(lambda: ask(server, "/get/brief") == "2", "the value has expired")
    assert ask(server, "/add/brief?v=2&ttl=3600000") == "0"
    assert ask(server, "/get/brief") == "2" * 1


def test_store_limits_and_counters_count(server):
    assert [ask(server, "/limit/x") for _ in range(7)] == ["0"] * 5 + ["122"] * 2
    assert [ask(server, "/count/n") for _ in range(2)] == ["0 3", "0 6"]
    assert ask(server, "/put/text?v=x") == "0"
    assert ask(server, "/count/text").startswith("33 ")


def test_store_token_bucket_tells_the_client_its_limit(server):
    for left in (4, 3, 2, 1, 0):
        answer = server.get("/bucket/own")
        assert (answer.status, answer.text) == (200, "0")
        assert (answer["RateLimit-Limit"], answer["RateLimit-Remaining"]) == ("5", str(left)) and answer.get("Retry-After") is None
        assert (5 - left) * 720 - 5 <= int(answer["RateLimit-Reset"]) <= (5 - left) * 720
    for _ in range(3):
        answer = server.get("/bucket/own")
        assert answer.status == 429 and answer["RateLimit-Remaining"] == "0" and 700 <= int(answer["Retry-After"]) <= 720
    assert server.get("/bucket/another").text == "0" and ask(server, "/limit/own") == "0" and ask(server, "/get/own") == "2"


def test_store_token_bucket_is_refilled_evenly(server):
    slow = "/bucket/slow?capacity=4&refill=4000"
    assert [server.get(slow).status for _ in range(5)] == [200] * 4 + [429]
    wait_until(lambda: server.get(slow).status == 200, "there is a token after a second")
    assert server.get(slow).status == 429, "there is one token, not four"
    fast = "/bucket/fast?capacity=2&refill=20"
    assert server.get(fast).status == 200
    wait_until(lambda: server.get(fast)["RateLimit-Remaining"] == "1", "the bucket is full again")


def test_store_token_bucket_is_exact_under_load(server):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: server.get("/bucket/load?capacity=20").status, range(60)))
    assert sorted(statuses) == [200] * 20 + [429] * 40


@pytest.mark.parametrize("query", ["capacity=0", "capacity=-1", "refill=0", "capacity=1001&refill=1", "refill=99999999999999"])
def test_store_token_bucket_rejects_invalid_numbers(server, query):
    assert ask(server, f"/bucket/x?{query}") == "22"


def test_store_values_limits_and_locks_have_separate_keys(server):
    assert ask(server, "/limit/same") == "0"
    assert ask(server, "/get/same") == "2"
    assert ask(server, "/put/same?v=text") == "0"
    assert [ask(server, "/limit/same") for _ in range(5)] == ["0"] * 4 + ["122"]
    assert ask(server, "/get/same") == "text"


def test_store_flood_of_names_evicts_no_entry_of_others(monkey, tmp_path):
    """Clients choose the names of limits and counters, but cannot fill the memory with them: entries and locks of other
    clients survive."""
    service = services.build(tmp_path, "flood", FLOOD, packages=["store"])
    server = monkey(plugins=[service], top="[STORE]\n    Size 1M\n")
    assert [server.get("/limit?name=root").text for _ in range(6)] == ["0"] * 5 + ["122"]
    assert server.get("/lock?name=a").text == "0"
    for kind in ("limit", "count", "add"):
        assert server.get(f"/flood?kind={kind}&n=30000").text == "0", kind
        assert server.get("/limit?name=root").text == "122", kind
        assert [server.get(f"/limit?name=other{kind}").text for _ in range(6)] == ["0"] * 5 + ["122"], kind
        assert server.get("/lock?name=a").text == "16", kind
        assert server.get(f"/lock?name={kind}").text == "0", kind
        assert server.get(f"/put?name={kind}").text == "0", kind


def from_address(server, source, target):
    with server.connect(source=source) as c:
        return c.get(target)


def test_store_client_holds_at_most_half_of_all_locks(monkey, tmp_path):
    service = services.build(tmp_path, "flood", FLOOD, packages=["store"])
    server = monkey(plugins=[service], top="[STORE]\n    Size 1M\n", workers=2)
    names = 3000
    first = names - int(from_address(server, "127.0.1.1", f"/flood?kind=hold&n={names}&of=a").text)
    assert first > 100
    replies = [from_address(server, "127.0.1.1", f"/hold?name=x{i}") for i in range(50)]
    assert {r.status for r in replies} == {429}
    # Other clients can still acquire locks, up to their own share.
    replies = [from_address(server, f"127.0.1.{2 + i}", f"/hold?name=y{i}") for i in range(50)]
    assert {r.text for r in replies} == {"held"}
    second = names - int(from_address(server, "127.0.2.1", f"/flood?kind=hold&n={names}&of=b").text)
    assert abs(first - second) < first * 0.3
    # another client's lock is reported as busy, not as an exceeded quota
    assert from_address(server, "127.0.1.1", "/lock?name=y0").text == "16"


def test_store_lock_excludes_other_handlers(server):
    assert ask(server, "/locks") == "0 16 116 0 116"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: ask(server, "/guarded"), range(12))) == {"0"}
    assert ask(server, "/get/guarded") == "12"


@pytest.mark.processes("an embedded server does not reload")
def test_store_memory_survives_a_reload(monkey, site):
    """A new Size takes effect only after a restart. Handlers of the new configuration cannot acquire a lock that a handler
    of the old one still holds."""
    service = services.build(site.path.parent, "shares", SOURCE, packages=["store"])
    server = monkey(plugins=[service], top="[STORE]\n    Size 2M\n")
    assert ask(server, "/put/a?v=1") == "0"
    with server.connect() as first, server.connect() as second:
        first.ask("/hold", "POST", streamed=True)
        server.err.wait_for("holds: 0")
        server.config.write_text(server.config.read_text().replace("Size 2M", "Size 4M"))
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves")
        assert "the store keeps its contents and its size of 2097152 bytes until the server is restarted" in server.err.text
        assert ask(server, "/get/a") == "1"
        second.ask("/hold", "POST", streamed=True)
        second.done()
        assert server.err.text.count("holds: ") == 1
        first.done()
        assert first.read().text == "0"
        assert second.read().text == "0"
        assert server.err.text.count("holds: 0") == 2
