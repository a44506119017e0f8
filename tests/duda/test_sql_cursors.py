# SPDX-License-Identifier: Apache-2.0
"""The sql package: cursors over large results, with SQLite and PostgreSQL."""
import socket
import time

import pytest

import proc
import services
from proc import wait_until
from sql_databases import backend, cluster, section  # pylint: disable=unused-import

SOURCE = r"""
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>
#include <errno.h>

struct row {
    int64_t n;
    mk_str text;
    int *list;
    size_t n_list;
};
static const struct duda_schema_field members[] = {
    DUDA_INTEGER(struct row, n), DUDA_STRING(struct row, text, .optional = true), DUDA_INTEGERS(struct row, list, n_list, .optional = true)};
static const struct duda_schema schema = DUDA_SCHEMA(struct row, members);

static struct duda_sql_db *data(struct duda_ctx *d)
{
    return duda_sql_find(d, NULL);
}

static int64_t number(struct duda_ctx *d, const char *name, int64_t otherwise)
{
    int64_t n = otherwise;
    (void)mk_num_parse_int(duda_query(d, name), &n);
    return n;
}

/* ?sql=TEXT&max=N&tx=1&rewind=1: the rows of a statement with the parameter `a`, up to N rows. */
static int rows(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_sql_cursor *cursor;
    struct row row;
    const struct duda_sql_value a = duda_sql_text(duda_query(d, "a"));
    int64_t max = number(d, "max", INT64_MAX);
    bool is_in_transaction = duda_query(d, "tx").p;
    int e = is_in_transaction ? duda_sql_begin(d, data(d)) : 0;
    e = e ? e : duda_sql_cursor_open(d, data(d), &result, duda_query_or(d, "sql", ""), &a, a.text.p != NULL, &cursor);
    while (!e && max-- > 0 && (e = duda_sql_cursor_bind(d, cursor, &schema, &row)) == 1) {
        size_t mark = duda_arena_mark(d);
        mk_str text = duda_sprintf(d, "%lld:%.*s:%zu ", (long long)row.n, MK_STR_ARG(row.text), row.n_list);
        e = duda_write(d, text);
        duda_arena_rewind(d, mark);
    }
    if (e < 0)
        return e == -ECANCELED ? e : duda_printf(d, "%d %.*s", -e, MK_STR_ARG(result.error));
    return is_in_transaction ? duda_sql_commit(d, data(d)) : 0;
}

/* Sends all rows to a client that may be slow, and ignores a limit of the statement. */
static int stream(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_sql_cursor *cursor;
    const struct duda_sql_value *row;
    int e = duda_sql_cursor_open(d, data(d), &result, duda_query_or(d, "sql", ""), NULL, 0, &cursor);
    while (!e && (e = duda_sql_cursor_next(d, cursor, &row)) == 1)
        e = duda_write(d, row[0].text);
    return e;
}

/* Two cursors, statements and a nested transaction, in one transaction; cursors that are used after their end. */
static int mixed(struct duda_ctx *d)
{
    struct duda_sql_result first, second, result;
    struct duda_sql_cursor *a, *b;
    const struct duda_sql_value *row;
    int e = duda_sql_begin(d, data(d));
    e = e ? e : duda_sql_cursor_open(d, data(d), &first, "SELECT n FROM numbers ORDER BY n", NULL, 0, &a);
    e = e ? e : duda_sql_cursor_open(d, data(d), &second, "SELECT n FROM numbers ORDER BY n DESC", NULL, 0, &b);
    for (int i = 0; i < 20 && !e; i++) {
        if (duda_sql_cursor_next(d, a, &row) != 1)
            return 500;
        int64_t n = row[0].number;
        if (duda_sql_cursor_next(d, b, &row) != 1 || first.n_columns != 1)
            return 500;
        e = duda_printf(d, "%lld ", (long long)(row[0].number - n));
        e = e ? e : duda_sql_query(d, data(d), &result, "SELECT 1");
    }
    e = e ? e : duda_sql_begin(d, data(d));
    e = e ? e : duda_sql_rollback(d, data(d));
    if (e || duda_sql_cursor_next(d, a, &row) != 1)
        return 500;
    duda_sql_cursor_close(b);
    e = duda_sql_query(d, data(d), &result, "INSERT INTO kept (n) VALUES (1)");
    e = e ? e : duda_sql_commit(d, data(d));
    if (e || first.n_columns != 1)
        return 500;
    while ((e = duda_sql_cursor_next(d, a, &row)) == 1) /* the rest of the batch */
        ;
    return e == -EINVAL ? 0 : 500;
}

/* Opens a cursor and leaves. */
static int leave(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_sql_cursor *cursor;
    const struct duda_sql_value *row;
    int e = duda_sql_cursor_open(d, data(d), &result, "SELECT n FROM numbers", NULL, 0, &cursor);
    e = e ? e : duda_sql_cursor_next(d, cursor, &row) == 1 ? 0 : 500;
    if (duda_query(d, "close").p)
        duda_sql_cursor_close(cursor);
    return e;
}

/* Closes cursors more than once, after their end, and after their result holds another statement's. */
static int close_twice(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_sql_cursor *cursor;
    struct row row, *p = &row;
    int e = duda_query(d, "tx").p ? duda_sql_begin(d, data(d)) : 0;
    duda_sql_cursor_close(NULL);
    for (int i = 0; i < 2 && !e; i++) {
        e = duda_sql_cursor_open(d, data(d), &result, i ? "SELECT n FROM numbers WHERE n < 3" : "SELECT n FROM numbers", NULL, 0, &cursor);
        if (!e && duda_sql_cursor_bind(d, cursor, &schema, &p) != -EFAULT)
            return 500;
        while (!e && (e = duda_sql_cursor_bind(d, cursor, &schema, &row)) == 1 && (i || row.n < 2))
            e = 0;
        if (e < 0)
            return e;
        if (!i)
            duda_sql_cursor_close(cursor);
        e = duda_sql_query(d, data(d), &result, "SELECT 1, 2");
        duda_sql_cursor_close(cursor);
        duda_sql_cursor_close(cursor);
        if (e || result.n_columns != 2 || !result.columns || duda_sql_cursor_bind(d, cursor, &schema, &row) > 0)
            return e ? e : 500;
    }
    return e ? e : duda_puts(d, "closed");
}

DUDA_SERVICE(cursors,
    DUDA_GET("/close-twice", close_twice, ""),
    DUDA_GET("/rows", rows, ""), DUDA_GET("/stream", stream, "", .deadline_ms = 60000), DUDA_GET("/mixed", mixed, ""), DUDA_GET("/leave", leave, ""));
"""
NUMBERS = {"sqlite": "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {0}) SELECT {1} FROM c WHERE n <= {0}",
           "postgres": "SELECT {1} FROM generate_series(1, {0}) AS n"}
WIDE = {"sqlite": "hex(zeroblob(500))", "postgres": "repeat('0', 1000)"}
LIST = {"sqlite": "'[1,2]'", "postgres": "ARRAY[1,2]"}


@pytest.fixture
def server(lasting, prepared, backend, request):
    def prepare(monkey, site):
        folder = site.path.parent
        tables = ("CREATE TABLE numbers (n INTEGER PRIMARY KEY); CREATE TABLE kept (n INTEGER);"
                  f"INSERT INTO numbers {NUMBERS[backend].format(3000, 'n')};")
        return monkey(plugins=[f"duda-{backend}", services.build(folder, "cursors", SOURCE, packages=["sql"])], server="ErrorLog stderr",
                      top=section(folder, backend, request, tables) + "    PoolSize 2\n    MaxResultSize 1M\n", workers=1)
    return lasting(prepared.setdefault(backend, prepare))


def rows(server, sql, **more):
    from urllib.parse import urlencode
    answer = server.get("/rows?" + urlencode({"sql": sql} | more))
    assert answer.status in (200, 204), answer.text
    return answer.text


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 5000])
@pytest.mark.parametrize("more", [{}, {"tx": "1"}], ids=["alone", "transaction"])
def test_cursor_reads_all_rows_in_batches(server, backend, n, more):
    text = rows(server, NUMBERS[backend].format(n, "n"), **more)
    assert text == "".join(f"{i}::0 " for i in range(1, n + 1))


def test_cursor_takes_parameters_and_reads_lists(server, backend):
    sql = f"SELECT 7 AS n, {'$1' if backend == 'sqlite' else 'CAST($1 AS TEXT)'} AS text, {LIST[backend]} AS list, NULL AS other"
    assert rows(server, sql, a="x" * 100) == f"7:{'x' * 100}:2 "
    assert rows(server, NUMBERS[backend].format(1000, f"n, {LIST[backend]} AS list")).count(":2 ") == 1000


def test_result_larger_than_the_limit_is_read(server, backend):
    """20 MB in batches, with MaxResultSize 1M."""
    text = rows(server, NUMBERS[backend].format(20000, f"n, {WIDE[backend]} AS text"))
    assert text.count(":0 ") == 20000 and len(text) > 20000000


def test_handler_that_returns_early_frees_the_connection(server, backend):
    for i in range(10):
        assert rows(server, NUMBERS[backend].format(100000, "n"), max=str(i)) == "".join(f"{j}::0 " for j in range(1, i + 1))
        assert server.get("/leave").status == 204 and server.get("/leave?close=1").status == 204
        assert server.get("/mixed").status == 200


def test_cursors_share_a_transaction(server):
    assert server.get("/mixed").text == "".join(f"{2999 - 2 * i} " for i in range(20))


@pytest.mark.parametrize("more", [{}, {"tx": "1"}], ids=["alone", "transaction"])
def test_errors_of_a_cursor_are_described(server, backend, more):
    assert rows(server, "SELEC 1", **more).startswith("121 ")
    assert rows(server, "", **more).split()[0] in ("22", "121")
    assert rows(server, "INSERT INTO kept (n) VALUES (2)", **more).split()[0] in ("95", "121")
    assert rows(server, "SELECT 1; SELECT 2", **more).split()[0] in ("22", "121")
    assert rows(server, "SELECT 1 AS x", **more) == "71 the column `n` is missing"
    assert rows(server, "SELECT 'x' AS n", **more).endswith("71 row 1: the column `n` has a text that is not an integer")
    division = {"sqlite": "abs(-9223372036854775807 - (n > 30))", "postgres": "1 / (n - 31)"}[backend]
    text = rows(server, NUMBERS[backend].format(100, f"{division} AS n"), **more)
    assert " 121 " in text and text.count("::0") < 100, text
    assert rows(server, NUMBERS[backend].format(3, "n"), **more) == "1::0 2::0 3::0 ", "the connection is used again"


def test_slow_client_slows_down_the_query(server, backend, cluster):
    """A client that does not read stops the cursor; when it leaves, its connection to the database is free again."""
    sql = NUMBERS[backend].format(10 ** 7, WIDE[backend])
    worker = server.workers[0]
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        from urllib.parse import urlencode
        sock.sendall(f"GET /stream?{urlencode({'sql': sql})} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")
        time.sleep(1)
        before = proc.memory_kb(worker)
        time.sleep(0.5)
        assert proc.memory_kb(worker) < before + 4000
        assert rows(server, "SELECT 1 AS n") == "1::0 ", "the other connection is free"
    wait_until(lambda: rows(server, "SELECT 1 AS n", tx="1") == "1::0 ", "the connection is free")
    if backend == "postgres":
        wait_until(lambda: cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'") == "0", "no transaction is left")


@pytest.mark.parametrize("query", ["", "?tx=1"])
def test_cursor_may_be_closed_twice(server, query):
    """A second close changes neither the result, which another query has filled, nor the connection, which others may use."""
    assert [server.get(f"/close-twice{query}").text for _ in range(30)] == ["closed"] * 30
