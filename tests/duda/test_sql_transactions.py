# SPDX-License-Identifier: Apache-2.0
"""The sql package: nested transactions, isolation levels and repeated transactions, with SQLite and PostgreSQL."""
import concurrent.futures

import pytest

import services
from proc import wait_until
from sql_databases import backend, cluster, section  # pylint: disable=unused-import

SOURCE = r"""
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>
#include <errno.h>

static struct duda_sql_db *data(struct duda_ctx *d)
{
    return duda_sql_find(d, NULL);
}

static int add(struct duda_ctx *d, int64_t id)
{
    struct duda_sql_result result;
    return duda_sql_query(d, data(d), &result, "INSERT INTO rows (id) VALUES ($1)", duda_sql_integer(id));
}

static int list(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, data(d), &result, "SELECT id FROM rows ORDER BY id");
    for (size_t i = 0; i < result.n_rows && !e; i++)
        e = duda_printf(d, "%lld ", (long long)duda_sql_cell(&result, i, 0)->number);
    return e;
}

static int clear(struct duda_ctx *d)
{
    struct duda_sql_result result;
    return duda_sql_query(d, data(d), &result, "DELETE FROM rows");
}

/* Adds 1, 2 and 3: 2 in a nested transaction, which fails after it has added 2, and 4 in another one. */
static int nested(struct duda_ctx *d)
{
    int e = duda_sql_begin(d, data(d));
    e = e ? e : add(d, 1);
    e = e ? e : duda_sql_begin(d, data(d));
    e = e ? e : add(d, 2);
    if (e || add(d, 1) != -EEXIST)
        return 500;
    e = duda_sql_rollback(d, data(d));
    e = e ? e : add(d, 3);
    e = e ? e : duda_sql_begin(d, data(d));
    e = e ? e : add(d, 4);
    e = e ? e : duda_sql_commit(d, data(d));
    return e || duda_query(d, "leave").p ? e : duda_sql_commit(d, data(d));
}

/* An error in a nested transaction that is committed nevertheless. */
static int failed_commit(struct duda_ctx *d)
{
    int e = duda_sql_begin(d, data(d));
    e = e ? e : add(d, 1);
    e = e ? e : duda_sql_begin(d, data(d));
    if (e || add(d, 1) != -EEXIST)
        return 500;
    int inner = duda_sql_commit(d, data(d));
    e = add(d, 2);
    e = e ? e : duda_sql_commit(d, data(d));
    return e ? e : duda_printf(d, "%d", -inner);
}

static int read_only(struct duda_ctx *d)
{
    const struct duda_sql_transaction_options options = {.read_only = true};
    struct duda_sql_result result;
    int e = duda_sql_begin_with(d, data(d), &options);
    e = e ? e : duda_sql_query(d, data(d), &result, "SELECT count(*) FROM rows");
    if (e)
        return e;
    int failed = add(d, 9);
    e = duda_sql_rollback(d, data(d));
    e = e ? e : duda_sql_begin(d, data(d));
    e = e ? e : add(d, 8);
    e = e ? e : duda_sql_commit(d, data(d));
    return e ? e : duda_printf(d, "%d", -failed);
}

static int level(struct duda_ctx *d)
{
    const struct duda_sql_transaction_options strange = {.isolation = (enum duda_sql_isolation)99};
    const struct duda_sql_transaction_options strict = {.isolation = DUDA_SQL_REPEATABLE_READ};
    struct duda_sql_result result;
    int bad = duda_sql_begin_with(d, data(d), &strange);
    if (!bad && duda_sql_rollback(d, data(d)))
        return 500;
    int e = duda_sql_begin_with(d, data(d), &strict);
    if (e || duda_sql_begin_with(d, data(d), &strict) != -EINVAL)
        return 500;
    e = duda_sql_query(d, data(d), &result, duda_query_or(d, "sql", ""));
    return e ? e : duda_printf(d, "%d %s", -bad, duda_sql_cell(&result, 0, 0)->text.p);
}

struct sum {
    unsigned attempts;
    uint32_t pause_ms;
    int result;
};

/* Counts the rows, and adds a row with this number: a concurrent transaction does the same. */
static int add_sum(struct duda_ctx *d, struct duda_sql_db *db, void *ctx)
{
    struct sum *s = ctx;
    struct duda_sql_result result;
    s->attempts++;
    int e = duda_sql_query(d, db, &result, "SELECT count(*) FROM rows");
    int64_t n = e ? 0 : duda_sql_cell(&result, 0, 0)->number;
    e = e ? e : duda_sleep(d, s->pause_ms);
    e = e ? e : duda_sql_query(d, db, &result, "INSERT INTO rows (id) VALUES ($1)", duda_sql_integer(100 + n));
    return e ? e : s->result;
}

static int repeat(struct duda_ctx *d)
{
    const struct duda_sql_transaction_options options = {.isolation = DUDA_SQL_SERIALIZABLE, .attempts = duda_query(d, "once").p ? 1 : 9};
    struct sum s = {.pause_ms = 300};
    int e = duda_sql_transaction(d, data(d), &options, add_sum, &s);
    return e ? e : duda_printf(d, "%u", s.attempts);
}

/* The function returns a status, so nothing is kept; it also runs within another transaction. */
static int refused(struct duda_ctx *d)
{
    const struct duda_sql_transaction_options options = {.attempts = 2};
    struct sum s = {.result = 404}, stale = {.result = -ESTALE};
    int e = duda_sql_transaction(d, data(d), &options, add_sum, &s);
    if (e != 404 || duda_sql_transaction(d, data(d), &options, add_sum, &stale) != -ESTALE || stale.attempts != 2)
        return 500;
    stale.attempts = 0;
    e = duda_sql_begin(d, data(d));
    if (e || duda_sql_transaction(d, data(d), &options, add_sum, &stale) != -ESTALE || stale.attempts != 1)
        return 500;
    e = add(d, 5);
    return e ? e : duda_sql_commit(d, data(d));
}

static int forget(struct duda_ctx *d)
{
    const char *how = duda_query_or(d, "how", "");
    const struct duda_sql_transaction_options options = {.read_only = strcmp(how, "read") == 0};
    int e = duda_sql_begin_with(d, data(d), &options);
    e = e || options.read_only ? e : add(d, 7);
    if (!e && strcmp(how, "commit") == 0)
        e = duda_sql_commit(d, data(d));
    if (e || strcmp(how, "fail") == 0)
        return e ? e : -EIO;
    if (strcmp(how, "problem") == 0)
        return duda_problem(d, 422, "no");
    e = duda_puts(d, "done\n");
    return e ? e : strcmp(how, "created") == 0 ? 201 : strcmp(how, "status") == 0 ? 404 : 0;
}

DUDA_SERVICE(rows,
    DUDA_GET("/forget", forget),
    DUDA_GET("/list", list, ""), DUDA_GET("/clear", clear, ""), DUDA_GET("/nested", nested, ""), DUDA_GET("/failed", failed_commit, ""),
    DUDA_GET("/read-only", read_only, ""), DUDA_GET("/level", level, ""), DUDA_GET("/repeat", repeat, ""), DUDA_GET("/refused", refused, ""));
"""


@pytest.fixture
def server(lasting, prepared, backend, request):
    def prepare(monkey, site):
        folder = site.path.parent
        return monkey(plugins=[f"duda-{backend}", services.build(folder, "rows", SOURCE, packages=["sql"])], server="ErrorLog stderr",
                      top=section(folder, backend, request, "CREATE TABLE rows (id INTEGER PRIMARY KEY);"))
    started = lasting(prepared.setdefault(backend, prepare))
    assert started.get("/clear").status == 204
    return started


def test_nested_transaction_is_rolled_back_alone(server):
    assert server.get("/nested").status == 204
    assert server.get("/list").text == "1 3 4 "


def test_abandoned_nested_transaction_is_rolled_back_as_a_whole(server):
    assert server.get("/nested?leave=1").status == 204
    wait_until(lambda: server.get("/list").text == "", "the transaction is rolled back")


FORGOTTEN = "the handler returned success with an open transaction in the database `main`, which is rolled back: call duda_sql_commit"


@pytest.mark.parametrize("how, is_reported", [
    ("succeed", True), ("created", True), ("read", False), ("commit", False), ("fail", False), ("status", False), ("problem", False)])
def test_forgotten_commit_is_reported(server, how, is_reported):
    before = server.log.count(FORGOTTEN)
    answer = server.get(f"/forget?how={how}")
    assert answer.status == {"created": 201, "fail": 500, "status": 404, "problem": 422}.get(how, 200)
    if is_reported:
        wait_until(lambda: f"GET /forget?how={how} from" in server.log and server.log.count(FORGOTTEN) == before + 1, "a warning")
    else:
        assert server.get("/list").status in (200, 204) and server.log.count(FORGOTTEN) == before
    wait_until(lambda: (server.get("/list").text == "7 ") == (how == "commit"), "the transaction is rolled back")


def test_failed_commit_of_a_nested_transaction_keeps_the_outer_one(server, backend):
    """PostgreSQL refuses to release the savepoint, so the changes since then are undone; SQLite undoes only the failed statement."""
    answer = server.get("/failed")
    assert (answer.status, answer.text) == (200, "0" if backend == "sqlite" else "121")
    assert server.get("/list").text == "1 2 "


def test_read_only_transaction_refuses_writes(server):
    assert server.get("/read-only").text == "121"
    assert server.get("/list").text == "8 "
    assert server.get("/read-only").status == 409, "the row exists already: the reused session can write"


def test_isolation_level_is_set(server, backend):
    sql = "SHOW transaction_isolation" if backend == "postgres" else "SELECT 'always'"
    assert server.get("/level?sql=" + sql.replace(" ", "+").replace("'", "%27")).text == \
        ("22 repeatable read" if backend == "postgres" else "0 always")


def test_conflicting_transactions_are_repeated(server, backend):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: server.get("/repeat"), range(2)))
    assert [answer.status for answer in answers] == [200, 200]
    attempts = sorted(int(answer.text) for answer in answers)
    assert attempts[0] == 1 and (attempts[1] > 1) == (backend == "postgres"), "SQLite's writers wait for each other"
    assert server.get("/list").text == "100 101 "


def test_conflict_without_another_attempt_is_an_error(server, backend):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: server.get("/repeat?once=1"), range(2)))
    assert sorted(answer.status for answer in answers) == ([200, 409] if backend == "postgres" else [200, 200])


def test_transaction_function_decides_by_its_result(server):
    assert server.get("/refused").status == 204
    assert server.get("/list").text == "5 "
