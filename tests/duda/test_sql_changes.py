# SPDX-License-Identifier: Apache-2.0
"""Tables, sessions and servers change while a service runs. Each statement then returns correct values or an
error, and the service recovers without a restart."""
import concurrent.futures
import contextlib
import json
import re
import shutil
import sqlite3
import threading
import urllib.parse

import pytest

import pgbouncer_server
import postgres_server
import services
from proc import wait_until
from relay import Relay
from sql_databases import HAS, backend, cluster  # pylint: disable=unused-import

SOURCE = r"""
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>
#include <errno.h>

static void tell(struct duda_ctx *d, int e, const struct duda_sql_result *result)
{
    struct mk_buf json = mk_buf_growing(1 << 24);
    if (e) {
        duda_printf(d, "%d %.*s\n", -e, MK_STR_ARG(result->error));
        return;
    }
    duda_sql_json(&json, result);
    duda_write(d, mk_buf_str(&json));
    mk_buf_free(&json);
    duda_puts(d, "\n");
}

/* ?sql=TEXT&a=VALUE */
static int run(struct duda_ctx *d)
{
    struct duda_sql_result result;
    const struct duda_sql_value value = duda_sql_text(duda_query(d, "a"));
    int e = duda_sql_query_values(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""), &value, value.text.p != NULL);
    if (e == -ECANCELED)
        return e;
    tell(d, e, &result);
    return 0;
}

/* Like run(), but the handler returns the error. */
static int bare(struct duda_ctx *d)
{
    struct duda_sql_result result;
    const struct duda_sql_value value = duda_sql_text(duda_query(d, "a"));
    int e = duda_sql_query_values(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""), &value, value.text.p != NULL);
    return e ? e : duda_puts(d, "fine");
}

/* ?sql=A|B|C runs the statements in a transaction, ?many=A|B|C as a batch. Prints a line for each
   statement, and one for the end of the transaction. */
static int several(struct duda_ctx *d)
{
    enum { MAX = 50 };
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    struct duda_sql_result result = {0}, results[MAX];
    struct duda_sql_statement queries[MAX];
    mk_str left = duda_query(d, "sql"), many = duda_query(d, "many");
    size_t n = 0;
    for (; many.len && n < MAX; n++)
        queries[n] = (struct duda_sql_statement){duda_strdup(d, mk_str_cut(&many, '|')).p, NULL, 0};
    if (n) {
        int e = duda_sql_batch(d, db, queries, n, results);
        for (size_t i = 0; i < n; i++)
            tell(d, results[i].error.len ? e : 0, &results[i]);
        return 0;
    }
    int e = duda_sql_begin(d, db);
    while (!e && left.len) {
        int failed = duda_sql_query_values(d, db, &result, duda_strdup(d, mk_str_cut(&left, '|')).p, NULL, 0);
        if (failed == -ECANCELED)
            return failed;
        tell(d, failed, &result);
    }
    e = e ? e : duda_query(d, "back").p ? duda_sql_rollback(d, db) : duda_sql_commit(d, db);
    return duda_printf(d, "%d\n", -e);
}

DUDA_SERVICE(asks, DUDA_GET("/run", run, ""), DUDA_GET("/bare", bare, ""),
    DUDA_GET("/several", several, "", .stack = 256 << 10));
"""

needs_postgres = pytest.mark.skipif(not HAS["postgres"], reason="this build has no libpq, or there is no PostgreSQL")
needs_sqlite = pytest.mark.skipif(not HAS["sqlite"], reason="this build has no SQLite")


class DatabaseService:
    """A service, and another program's access to its database."""

    def __init__(self, server, change):
        self.server, self.change = server, change

    def run(self, sql, *values, path="/run", **more):
        lines = self.lines(path, **{"sql": sql} | dict(zip("a", values)) | more)
        return json.loads(lines[0]) if lines[0].startswith("[") else lines[0]

    def lines(self, path, **query):
        return self.server.get(f"{path}?{urllib.parse.urlencode(query)}").text.splitlines() or [""]

    def transaction(self, *statements, **more):
        return self.lines("/several", sql="|".join(statements), **more)


def service(site):
    return services.build(site.path.parent, "asks", SOURCE, packages=["sql"])


def start(monkey, site, backend, request, keys="", workers=1):
    (site.path.parent / "data").mkdir(exist_ok=True)
    if backend == "sqlite":
        file = site.path.parent / "data" / "a.db"
        top = f"[SQLITE]\n    File {file}\n{keys}"

        def change(text):
            with contextlib.closing(sqlite3.connect(file, timeout=20)) as other:
                other.executescript(text)
    else:
        postgres = request.getfixturevalue("cluster")
        top = f"[POSTGRES]\n    Server {postgres.database()}\n{keys}"
        name = f"d{postgres.n}"

        def change(text):
            return postgres.sql(text, name)
    return DatabaseService(monkey(plugins=[f"duda-{backend}", service(site)], top=top, workers=workers), change)


# ---- Changed tables ----

# Changes by another program, and the rows that SELECT * FROM t (or FROM v) returns afterwards.
CHANGES = {
    "add": ("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 7", [{"secret": 1, "name": "Ana", "c": 7}]),
    "drop": ("ALTER TABLE t DROP COLUMN secret", [{"name": "Ana"}]),
    "rename": ("ALTER TABLE t RENAME COLUMN name TO nick", [{"secret": 1, "nick": "Ana"}]),
    "anew": ("DROP TABLE t; CREATE TABLE t (c INTEGER, admin INTEGER, nick TEXT); INSERT INTO t VALUES (1, 0, 'Ana')",
             [{"c": 1, "admin": 0, "nick": "Ana"}]),
    "other type": ("DROP TABLE t; CREATE TABLE t (secret TEXT, name INTEGER); INSERT INTO t VALUES ('x', 5)",
                   [{"secret": "x", "name": 5}]),
    "fewer": ("DROP TABLE t; CREATE TABLE t (name TEXT); INSERT INTO t VALUES ('Ana'), ('Bob')", [{"name": "Ana"}, {"name": "Bob"}]),
    "empty": ("DROP TABLE t; CREATE TABLE t (x INTEGER)", []),
    "gone": ("DROP TABLE t", None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_query_after_a_table_change_returns_the_new_columns(monkey, site, backend, request, change):
    base = start(monkey, site, backend, request)
    text, rows = CHANGES[change]
    base.change("CREATE TABLE t (secret INTEGER, name TEXT); INSERT INTO t VALUES (1, 'Ana')")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # prepares the statement on every connection
        before = list(pool.map(lambda _: base.run("SELECT * FROM t"), range(40)))
    assert before == [[{"secret": 1, "name": "Ana"}]] * 40
    base.change(text)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        after = list(pool.map(lambda _: base.run("SELECT * FROM t"), range(40)))
    if rows is None:
        assert all(re.match("121 .*t", each) for each in after), after
        base.change("CREATE TABLE t (back INTEGER); INSERT INTO t VALUES (3)")
        assert base.run("SELECT * FROM t") == [{"back": 3}]
    else:
        assert after == [rows] * 40


def test_query_of_a_recreated_view_returns_the_new_columns(monkey, site, backend, request):
    base = start(monkey, site, backend, request, workers=2)
    base.change("CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'); CREATE VIEW v AS SELECT a, b FROM t")
    for _ in range(8):
        assert base.run("SELECT * FROM v") == [{"a": 1, "b": "x"}]
    base.change("DROP VIEW v; CREATE VIEW v AS SELECT b AS a, 5 AS c, a AS b FROM t")
    for _ in range(8):
        assert base.run("SELECT * FROM v") == [{"a": "x", "c": 5, "b": 1}]


def test_parameters_follow_a_changed_column_type(monkey, site, backend, request):
    base = start(monkey, site, backend, request)
    base.change("CREATE TABLE t (a INTEGER)")
    for _ in range(6):
        assert base.run("INSERT INTO t VALUES ($1)", "5") == []
    base.change("DROP TABLE t; CREATE TABLE t (a TEXT)")
    for _ in range(6):
        assert base.run("INSERT INTO t VALUES ($1)", "five") == []
    assert base.run("SELECT count(*) AS n FROM t WHERE a = $1", "five") == [{"n": 6}]


def test_service_may_change_its_own_tables(monkey, site, backend, request):
    base = start(monkey, site, backend, request)
    assert base.run("CREATE TABLE t (a INTEGER)") == base.run("INSERT INTO t VALUES (1)") == []
    assert [base.run("SELECT * FROM t") for _ in range(8)] == [[{"a": 1}]] * 8
    assert base.run("ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 2") == []
    assert [base.run("SELECT * FROM t") for _ in range(8)] == [[{"a": 1, "b": 2}]] * 8
    assert base.run("ALTER TABLE t RENAME COLUMN b TO c") == base.run("ALTER TABLE t DROP COLUMN a") == []
    assert [base.run("SELECT * FROM t") for _ in range(8)] == [[{"c": 2}]] * 8
    assert base.run("VACUUM") == [] and base.run("ANALYZE") == []


def test_statement_with_invalid_values_stays_prepared(monkey, site, request):
    """A statement with invalid values is retried once, and leaves no additional prepared statement."""
    if not HAS["postgres"]:
        pytest.skip("PostgreSQL is not available")
    base = start(monkey, site, "postgres", request, "    PoolSize 1\n")
    base.change("CREATE TABLE t (a INTEGER)")
    assert base.run("INSERT INTO t VALUES ($1)", "1") == []
    names = base.run("SELECT name FROM pg_prepared_statements WHERE statement LIKE 'INSERT%'")
    for _ in range(5):
        assert base.run("INSERT INTO t VALUES ($1)", "one").startswith("121 ")
        assert base.run("INSERT INTO t VALUES ($1)", "2") == []
    assert base.run("SELECT name FROM pg_prepared_statements WHERE statement LIKE 'INSERT%'") == names
    assert base.run("SELECT count(*) AS n FROM t") == [{"n": 6}]


@needs_postgres
def test_transaction_fails_once_after_a_table_change(monkey, site, request):
    base = start(monkey, site, "postgres", request, "    PoolSize 1\n")
    base.change("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
    assert base.run("SELECT * FROM t") == [{"a": 1}]
    base.change("ALTER TABLE t ADD COLUMN b INTEGER")
    lines = base.transaction("SELECT * FROM t", "INSERT INTO t VALUES (2, 2)")
    assert lines[0].startswith("121 ") and "cached plan" in lines[0] and lines[2] == "121"
    assert base.transaction("SELECT * FROM t")[0] == '[{"a":1,"b":null}]'
    assert base.run("SELECT count(*) AS n FROM t") == [{"n": 1}]
    assert base.run("SELECT count(*) AS n FROM pg_prepared_statements WHERE statement LIKE 'SELECT * FROM t'") == [{"n": 1}]


@needs_postgres
def test_batch_after_a_table_change_returns_the_new_columns(monkey, site, request):
    base = start(monkey, site, "postgres", request, "    PoolSize 1\n")
    base.change("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
    assert base.lines("/several", many="SELECT * FROM t|SELECT 1 AS x|SELECT * FROM t") == ['[{"a":1}]', '[{"x":1}]', '[{"a":1}]']
    base.change("ALTER TABLE t ADD COLUMN b INTEGER")
    assert base.lines("/several", many="SELECT * FROM t|SELECT 1 AS x|SELECT * FROM t") == [
        '[{"a":1,"b":null}]', '[{"x":1}]', '[{"a":1,"b":null}]']


# ---- Changed sessions ----

# Statements that would change the state of a shared connection.
SHARED = {
    "sqlite": ["BEGIN", "BEGIN IMMEDIATE", "/* x */ begin", "COMMIT", "ROLLBACK", "SAVEPOINT x", "ATTACH 'x.db' AS x",
               "PRAGMA foreign_keys=OFF", "PRAGMA busy_timeout=0", "CREATE TEMP TABLE t (a)", "CREATE TEMP VIEW v AS SELECT 1",
               "PRAGMA defer_foreign_keys=ON"],
    "postgres": ["BEGIN", "START TRANSACTION", "/* x */ begin", "COMMIT", "ROLLBACK", "SET search_path = x", "RESET ALL", "DISCARD ALL",
                 "DEALLOCATE ALL", "LISTEN x", "PREPARE x AS SELECT 1", "CREATE TEMP TABLE t (a int)",
                 "SELECT set_config('search_path', 'x', false)", "SELECT pg_advisory_lock(1)", "SELECT 1 AS a INTO TEMP t",
                 "SELECT lastval()", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"]}


def test_statement_that_changes_the_shared_connection_is_rejected(monkey, site, backend, request):
    base = start(monkey, site, backend, request)
    base.change("CREATE TABLE t (a INTEGER)")
    for text in SHARED[backend]:
        assert base.run(text).startswith("95 ["), text
        assert "all handlers share" in base.run(text) or "duda_sql_begin" in base.run(text) or "one connection" in base.run(text)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda i: base.run(f"INSERT INTO t VALUES ({i})"), range(20))) == [[]] * 20
    assert base.run("SELECT count(*) AS n FROM t") == [{"n": 20}]
    base.change("INSERT INTO t VALUES (99)")  # no transaction holds a lock
    assert base.run("SELECT count(*) AS n FROM t") == [{"n": 21}]


def test_transaction_ends_only_by_its_functions(monkey, site, backend, request):
    base = start(monkey, site, backend, request)
    base.change("CREATE TABLE t (a INTEGER)")
    lines = base.transaction("INSERT INTO t VALUES (1)", "COMMIT", "INSERT INTO t VALUES (2)", "ROLLBACK", "BEGIN", back=1)
    assert lines[0] == lines[2] == "[]" and lines[-1] == "0"
    assert all(lines[i].startswith("95 ") for i in (1, 3, 4)), lines
    assert base.run("SELECT count(*) AS n FROM t") == [{"n": 0}]
    assert base.transaction("SAVEPOINT x", "INSERT INTO t VALUES (1)", "ROLLBACK TO x", "RELEASE x", "INSERT INTO t VALUES (2)")[-1] == "0"
    assert base.run("SELECT a FROM t") == [{"a": 2}]


# Session state that a transaction leaves, and a query that would show it to the next user of the session.
LEFT = {
    "sqlite": [("CREATE TEMP TABLE t (a)", "SELECT count(*) AS n FROM t", [{"n": 1}])],
    "postgres": [("CREATE TEMP TABLE t (a int)", "SELECT count(*) AS n FROM t", [{"n": 1}]),
                 ("CREATE TEMP TABLE t (a int) ON COMMIT DROP", "SELECT count(*) AS n FROM t", [{"n": 1}]),
                 ("SET search_path = x", "SELECT current_setting('search_path') = 'x' AS is_x", [{"is_x": 0}]),
                 ("SET LOCAL search_path = x", "SELECT current_setting('search_path') = 'x' AS is_x", [{"is_x": 0}]),
                 ("SET statement_timeout = 1", "SELECT 1 AS one, pg_sleep(0.01)::text AS two", [{"one": 1, "two": ""}]),
                 ("SELECT pg_advisory_lock(5)", "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory'", [{"n": 0}]),
                 ("LISTEN x", "SELECT count(*) AS n FROM pg_listening_channels()", [{"n": 0}]),
                 ("DISCARD PLANS", "SELECT 1 AS one", [{"one": 1}]), ("DEALLOCATE ALL", "SELECT 1 AS one", [{"one": 1}])]}


def test_session_state_of_a_transaction_is_reset(monkey, site, backend, request):
    base = start(monkey, site, backend, request, {"sqlite": "    PoolSize 1\n", "postgres": "    PoolSize 1\n"}[backend])
    base.change("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
    for text, look, rows in LEFT[backend]:
        for more in ({}, {"back": 1}):
            assert base.run("SELECT 1 AS one") == [{"one": 1}]
            assert base.transaction(text, **more)[-1] == "0", text
            if "pg_locks" in look:  # the backend process of a closed session ends asynchronously
                wait_until(lambda: base.run(look) == rows, text)
            assert base.run(look) == rows, text


@needs_sqlite
def test_statements_after_an_implicit_rollback_are_rejected(monkey, site, request):
    """RAISE(ROLLBACK) causes an implicit rollback; a full disk may also cause one."""
    base = start(monkey, site, "sqlite", request)
    base.change("CREATE TABLE t (a INTEGER); CREATE TRIGGER no BEFORE INSERT ON t WHEN NEW.a = 13 "
                "BEGIN SELECT RAISE(ROLLBACK, 'no 13'); END;")
    lines = base.transaction("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (13)", "INSERT INTO t VALUES (2)")
    assert "no 13" in lines[1] and lines[2].startswith("104 ") and lines[3] != "0"
    assert base.transaction("INSERT INTO t VALUES (13)", back=1)[-1] == "0", "a second rollback is not needed"
    assert base.run("SELECT count(*) AS n FROM t") == [{"n": 0}]


def test_pragmas_that_only_read_are_allowed(monkey, site, request):
    if not HAS["sqlite"]:
        pytest.skip("SQLite is not available")
    base = start(monkey, site, "sqlite", request)
    base.change("CREATE TABLE t (a INTEGER)")
    assert base.run("PRAGMA foreign_keys") == [{"foreign_keys": 1}]
    assert base.run("PRAGMA table_info(t)")[0]["name"] == "a"
    assert base.run("PRAGMA user_version=7") == [] and base.run("PRAGMA user_version") == [{"user_version": 7}]
    assert base.run("SELECT name FROM pragma_table_info('t')") == [{"name": "a"}]
    assert base.transaction("PRAGMA defer_foreign_keys=ON")[-1] == "0"


@needs_postgres
@pytest.mark.parametrize("text", ["COPY t TO STDOUT", "COPY t FROM STDIN", "/* x */ copy (SELECT 1) to stdout"])
def test_copy_without_its_functions_is_rejected_without_side_effects(monkey, site, request, text):
    base = start(monkey, site, "postgres", request, "    PoolSize 1\n")
    base.change("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        copies = pool.map(lambda _: base.run(text), range(10))
        others = pool.map(lambda _: base.run("SELECT a FROM t"), range(10))
        assert all(re.match(r"95 .*duda_postgres_copy\(\)", each) for each in copies)
        assert list(others) == [[{"a": 1}]] * 10
    assert base.transaction(text)[0].startswith("95 ")
    assert base.run("").startswith("22 ") and base.run("-- nothing").startswith("22 ")


# ---- Changed servers ----

@needs_postgres
def test_deallocated_statements_are_prepared_again(monkey, site, request):
    """A function deallocates all prepared statements, as the reset of a pooler does: each connection detects this and
    prepares them again."""
    base = start(monkey, site, "postgres", request, "    PoolSize 2\n")
    base.change("CREATE FUNCTION forget() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DEALLOCATE ALL; RETURN 1; END $$")
    for _ in range(4):
        assert base.run("SELECT 1 AS one") == [{"one": 1}] and base.run("SELECT 2 AS two") == [{"two": 2}]
        assert base.run("SELECT forget() AS f") == [{"f": 1}]
        assert base.lines("/several", many="SELECT 1 AS one|SELECT 2 AS two|SELECT 1 AS one") == [
            '[{"one":1}]', '[{"two":2}]', '[{"one":1}]']


@needs_postgres
def test_statement_that_fails_to_prepare_is_not_taken_for_a_deallocated_one(monkey, site, request):
    """Other failures do not affect prepared statements, and a failed statement succeeds as soon as its table exists."""
    base = start(monkey, site, "postgres", request, "    PoolSize 1\n")
    for _ in range(10):
        assert "does not exist" in base.run("SELECT a FROM t")
    base.change("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
    assert [base.run("SELECT a FROM t") for _ in range(3)] == [[{"a": 1}]] * 3
    assert base.run("SELECT count(*) AS n FROM pg_prepared_statements WHERE statement = 'SELECT a FROM t'") == [{"n": 1}]
    assert "loses prepared statements" not in base.server.log


needs_bouncer = pytest.mark.skipif(not HAS["postgres"] or not pgbouncer_server.PROGRAM, reason="PostgreSQL or PgBouncer is missing")


@needs_bouncer
@pytest.mark.parametrize("keys", ["", "    Prepare off\n"], ids=["prepared", "unprepared"])
def test_pgbouncer_transaction_pooling_works(monkey, site, request, keys):
    cluster = request.getfixturevalue("cluster")
    name = re.search(r"dbname=(\w+)", cluster.database())[1]
    bouncer = pgbouncer_server.start(cluster)
    try:
        top = f"[POSTGRES]\n    Server host=127.0.0.1 port={bouncer.port} user=ana dbname={name}\n    PoolSize 4\n{keys}"
        base = DatabaseService(monkey(plugins=["duda-postgres", service(site)], top=top, workers=2), None)
        assert base.run("CREATE TABLE t (a INTEGER)") == []

        def insert(i):
            return base.transaction(f"INSERT INTO t VALUES ({i})", f"SELECT {i} AS n")[-1]

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            texts = [f"SELECT {i % 7} AS n" for i in range(300)]
            answers = list(pool.map(base.run, texts))
            assert answers == [[{"n": i % 7}] for i in range(300)], "each request gets its own result"
            done = list(pool.map(insert, range(60)))
            assert keys == "" or done == ["0"] * 60
            assert base.run("SELECT count(*) AS n FROM t") == [{"n": done.count("0")}]
        # Each worker notices the pooler on its own, when a prepared statement of it is missing.
        wait_until(lambda: [insert(1) for _ in range(12)] == ["0"] * 12, "transactions succeed without prepared statements")
        assert ("loses prepared statements" in base.server.log) == (keys == "")
    finally:
        bouncer.stop()


@needs_postgres
def test_demoted_server_is_replaced_by_the_new_one(monkey, site):
    """The address always leads to the writable server, while connections to the demoted server stay open."""
    with contextlib.ExitStack() as stack:
        old, new = (postgres_server.Postgres() for _ in range(2))
        for each in (old, new):
            stack.callback(each.stop)
            each.sql("CREATE TABLE t (a INTEGER)")
        relay = stack.enter_context(Relay(f"{old.folder}/.s.PGSQL.5432"))
        top = f"[POSTGRES]\n    Server host=127.0.0.1 port={relay.port} user=ana dbname=postgres\n    PoolSize 1\n"
        base = DatabaseService(monkey(plugins=["duda-postgres", service(site)], top=top, workers=1), None)
        assert base.run("INSERT INTO t VALUES (1)") == []
        relay.target = f"{new.folder}/.s.PGSQL.5432"
        old.sql("ALTER SYSTEM SET default_transaction_read_only = on")
        old.sql("SELECT pg_reload_conf()")
        wait_until(lambda: "read-only" in str(base.run("INSERT INTO t VALUES (2)")) or new.sql("SELECT count(*) FROM t") != "0", "the demotion")
        assert base.run("INSERT INTO t VALUES (3)") == []
        assert new.sql("SELECT count(*) FROM t WHERE a = 3") == "1"


# ---- Cancelled handlers ----

def active(cluster):
    return cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()")


@needs_postgres
@pytest.mark.parametrize("location", ["alone", "transaction"])
def test_client_disconnect_cancels_its_statement(monkey, site, request, location):
    base = start(monkey, site, "postgres", request, "    PoolSize 1\n    Timeout 60s\n")
    cluster = request.getfixturevalue("cluster")
    path = {"alone": "/run", "transaction": "/several"}[location]
    assert base.run("SELECT 1 AS one") == [{"one": 1}]
    with base.server.connect() as c:
        c.ask(f"{path}?sql=SELECT+pg_sleep(50)")
        wait_until(lambda: active(cluster) == "1", "the statement runs")
    wait_until(lambda: active(cluster) == "0", "the statement is cancelled")
    assert base.run("SELECT 2 AS two") == [{"two": 2}]


@needs_postgres
def test_cancelled_statement_does_not_affect_queued_ones(monkey, site, request):
    base = start(monkey, site, "postgres", request, "    PoolSize 1\n    Timeout 60s\n")
    cluster = request.getfixturevalue("cluster")
    base.change("CREATE TABLE t (a INTEGER)")
    for round_ in range(4):
        with contextlib.ExitStack() as stack:
            pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(6))
            with base.server.connect() as c:
                c.ask("/run?sql=SELECT+pg_sleep(50)")
                wait_until(lambda: active(cluster) == "1", "the statement runs")
                behind = [pool.submit(base.run, f"INSERT INTO t SELECT {round_} FROM pg_sleep(0.05)") for _ in range(6)]
            assert [each.result() for each in behind] == [[]] * 6
        assert base.run(f"SELECT count(*) AS n FROM t WHERE a = {round_}") == [{"n": 6}], "each statement ran once"


@needs_sqlite
def test_sqlite_handler_that_waits_for_a_file_lock_can_be_cancelled(monkey, site, request):
    base = start(monkey, site, "sqlite", request, "    PoolSize 1\n    Timeout 60s\n")
    base.change("CREATE TABLE t (a INTEGER)")
    assert base.run("SELECT 1 AS one") == [{"one": 1}]
    with contextlib.closing(sqlite3.connect(site.path.parent / "data" / "a.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with base.server.connect() as c:
            c.ask("/run?sql=INSERT+INTO+t+VALUES+(1)")
            threading.Event().wait(0.2)
        assert base.run("SELECT 2 AS two") == [{"two": 2}], "the thread of the database is free"


# ---- Log messages ----

def test_database_error_is_logged_without_values(monkey, site, backend, request):
    base = start(monkey, site, backend, request)
    base.change("CREATE TABLE t (a INTEGER)")
    assert base.server.get("/bare?sql=SELEC+1").status == 500
    base.server.err.wait_for(r"bare\(\) in .*asks.c:\d+ answered -EREMOTEIO \(Remote I/O error\): \[" + backend.upper() +
                             r"\] main: .*SELEC.*\(SELEC 1\) \(request")
    for sql, value in (("INSERT INTO t VALUES (CAST($1 AS integer))", "hidden"), ("SELECT CAST($1 AS integer)", "987654321987654321"),
                       ("SELECT x FROM t WHERE a = $1", "hidden \"x\": \"y"), ("INSERT INTO nosuch VALUES ($1)", "hidden")):
        if base.server.get("/bare?" + urllib.parse.urlencode({"sql": sql, "a": value})).status == 500:
            line = base.server.err.wait_for(r"bare\(\) in .*" + re.escape(f"({sql})") + ".*")[0]
            assert value not in line and "hidden" not in line, line
    assert base.run("SELEC 2").startswith("121 ") and "SELEC 2" not in base.server.log


@needs_postgres
def test_postgres_login_failure_differs_from_a_server_that_is_down(monkey, site, request):
    cluster = request.getfixturevalue("cluster")
    for server, code in ((f"host={cluster.folder} user=ana dbname=nosuch", "126"), (f"host={cluster.folder} user=nobody dbname=postgres", "126"),
                         ("host=127.0.0.1 port=1 user=ana dbname=x", "111")):
        base = DatabaseService(monkey(plugins=["duda-postgres", service(site)], top=f"[POSTGRES]\n    Server {server}\n", workers=1), None)
        assert base.run("SELECT 1").startswith(f"{code} [POSTGRES] main: "), server
        assert "LOCATION" not in base.server.log


# ---- Migrations ----

ONE, TWO, THREE = "CREATE TABLE one (a INTEGER);\n", "CREATE TABLE two (a INTEGER);\n", "CREATE TABLE three (a INTEGER);\n"


def migrate(monkey, site, backend, request, files, top=None, keys="", folder="migrations", workers=2):
    """Starts a server with these migration files."""
    path = site.path.parent / folder
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, text in files.items():
        (path / name).write_text(text)
    (site.path.parent / "data").mkdir(exist_ok=True)
    section = {"sqlite": lambda: f"[SQLITE]\n    File {site.path.parent}/data/a.db\n",
               "postgres": lambda: f"[POSTGRES]\n    Server {request.getfixturevalue('cluster').database()}\n"}
    top = top or section[backend]()
    keys += f"    Migrations {folder}\n"
    return DatabaseService(monkey(plugins=[f"duda-{backend}", service(site)], top=top + keys, workers=workers), None), top


def history(base):
    return [(row["service"], row["number"], row["name"], row["checksum"] is not None)
            for row in base.run("SELECT service, number, name, checksum FROM duda_migrations ORDER BY service, number")]


BAD = {
    "edited": ({"1-a.sql": ONE + "-- more\n", "2-b.sql": TWO}, r"1-a\.sql was edited after it had been run$"),
    "renamed": ({"1-a.sql": ONE, "2-x.sql": TWO}, r"2-b\.sql has been run, but its file is now named 2-x\.sql$"),
    "missing": ({"2-b.sql": TWO}, r"1-a\.sql has been run, but its file is missing$"),
    "all": ({"1-z.sql": ONE, "2-b.sql": "", "3-c.sql": THREE}, r"1-a\.sql has been run, but its file is now named 1-z\.sql; 2-b\.sql was edited after it had been run$"),
}


@pytest.mark.parametrize("how", BAD)
def test_changed_or_missing_migrations_are_rejected_at_startup(monkey, site, backend, request, how):
    base, top = migrate(monkey, site, backend, request, {"1-a.sql": ONE, "2-b.sql": TWO})
    wait_until(lambda: isinstance(base.run("SELECT a FROM two"), list), "the migrations have run")
    base.server.stop()
    files, message = BAD[how]
    base, _ = migrate(monkey, site, backend, request, files, top)
    base.server.err.wait_for(r"\[error\] .*Migrations: " + message, count=2)  # each worker logs it before any request
    assert re.search("Migrations: " + message, base.run("SELECT 1 AS one"))
    base.server.stop()
    base, _ = migrate(monkey, site, backend, request, {"1-a.sql": ONE.replace("\n", "\r\n"), "2-b.sql": TWO}, top)
    assert base.run("SELECT 1 AS one") == [{"one": 1}], "line ends are ignored"
    assert base.run("SELECT count(*) AS n FROM duda_migrations") == [{"n": 2}]


def test_migration_out_of_order_is_rejected(monkey, site, backend, request):
    base, top = migrate(monkey, site, backend, request, {"1-a.sql": ONE, "3-c.sql": THREE})
    assert base.run("SELECT a FROM three") == []
    base.server.stop()
    base, _ = migrate(monkey, site, backend, request, {"1-a.sql": ONE, "2-late.sql": TWO, "3-c.sql": THREE}, top)
    base.server.err.wait_for(r"Migrations: 2-late\.sql cannot run any more, because a later one has been run: 3-c\.sql$")
    assert "2-late.sql cannot run any more" in base.run("SELECT 1 AS one")
    base.server.stop()
    base, _ = migrate(monkey, site, backend, request, {"1-a.sql": ONE}, top)
    assert base.run("SELECT a FROM three") == [], "an older version may use the database of a newer one"


def test_two_services_migrate_one_database_independently(monkey, site, backend, request):
    base, top = migrate(monkey, site, backend, request, {"1-a.sql": ONE}, keys="    MigrationsOf shop\n")
    assert base.run("SELECT a FROM one") == []
    base.server.stop()
    base, _ = migrate(monkey, site, backend, request, {"1-other.sql": TWO}, top, keys="    MigrationsOf it's\n")
    assert base.run("SELECT a FROM two") == [] and base.run("SELECT a FROM one") == []
    assert history(base) == [("it's", 1, "1-other.sql", True), ("shop", 1, "1-a.sql", True)]
    base.server.stop()
    base, _ = migrate(monkey, site, backend, request, {"1-a.sql": ONE, "2-c.sql": THREE}, top, keys="    MigrationsOf shop\n")
    assert base.run("SELECT a FROM three") == []


# Session state that a migration leaves (files of pg_dump begin with SET), and a query that would show it to a handler.
LEAVES = {
    "sqlite": [("CREATE TEMP TABLE one (b)", "SELECT count(*) AS n FROM sqlite_temp_master", [{"n": 0}]),
               ("PRAGMA recursive_triggers=ON", "PRAGMA recursive_triggers", [{"recursive_triggers": 0}])],
    "postgres": [("SET statement_timeout = 0", "SELECT current_setting('statement_timeout') = '0' AS is_off", [{"is_off": 0}]),
                 ("SET search_path = x, public", "SELECT current_setting('search_path') LIKE 'x%' AS is_x", [{"is_x": 0}]),
                 ("CREATE TEMP TABLE two (b int)", "SELECT count(*) AS n FROM pg_class WHERE relname = 'two'", [{"n": 0}])]}


def test_session_state_of_a_migration_is_reset(monkey, site, backend, request):
    for text, look, rows in LEAVES[backend]:
        base, _ = migrate(monkey, site, backend, request, {"1-a.sql": ONE + text + ";\n"}, workers=1,
                          keys={"sqlite": "    PoolSize 1\n", "postgres": "    PoolSize 1\n"}[backend])
        assert base.run("SELECT a FROM one") == [] and base.run(look) == rows, text
        base.server.stop()
        shutil.rmtree(site.path.parent / "data")


ENDS = ["COMMIT", "END", "ROLLBACK", "COMMIT; BEGIN", "COMMIT AND CHAIN", "CREATE TABLE x (a int); ROLLBACK; BEGIN"]


@pytest.mark.parametrize("text", ENDS)
def test_migration_that_ends_the_transaction_is_rejected(monkey, site, backend, request, text):
    """The rest of the migration is not executed, and the migration is not recorded as applied."""
    if backend == "sqlite" and "CHAIN" in text:
        pytest.skip("SQLite has no chained transactions")
    files = {"1-a.sql": ONE, "2-b.sql": f"CREATE TABLE early (a int);\n{text};\n" + TWO, "3-c.sql": THREE}
    base, top = migrate(monkey, site, backend, request, files)
    base.server.err.wait_for(r"\[error\] .*2-b\.sql: a migration must not begin or end a transaction: all migrations run in one$")
    base.server.stop()
    files["2-b.sql"] = "DROP TABLE IF EXISTS early;\n" + TWO
    base, _ = migrate(monkey, site, backend, request, files, top)
    assert base.run("SELECT a FROM two") == [] and base.run("SELECT a FROM three") == []
    assert base.run("SELECT count(*) AS n FROM duda_migrations") == [{"n": 3}]


def test_migration_may_use_savepoints(monkey, site, backend, request):
    text = "SAVEPOINT x; CREATE TABLE none (a int); ROLLBACK TO x; RELEASE x;\n"
    base, _ = migrate(monkey, site, backend, request, {"1-a.sql": ONE + text, "2-b.sql": text + TWO})
    assert base.run("SELECT a FROM one") == [] and base.run("SELECT a FROM two") == []
    assert "none" in base.run("SELECT a FROM none")


OLD = "CREATE TABLE duda_migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL, done TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);" \
    "INSERT INTO duda_migrations (number, name) VALUES (1, '1-a.sql'); CREATE TABLE one (a INTEGER);"


@pytest.mark.parametrize("of", ["", "shop"])
def test_old_migrations_table_is_upgraded(monkey, site, backend, request, of):
    (site.path.parent / "data").mkdir()
    if backend == "sqlite":
        top = f"[SQLITE]\n    File {site.path.parent}/data/a.db\n"
        with contextlib.closing(sqlite3.connect(site.path.parent / "data" / "a.db")) as file:
            file.executescript(OLD)
    else:
        postgres = request.getfixturevalue("cluster")
        top = f"[POSTGRES]\n    Server {postgres.database()}\n"
        postgres.sql(OLD.replace("TEXT NOT NULL DEFAULT CURRENT", "TIMESTAMPTZ NOT NULL DEFAULT CURRENT"), f"d{postgres.n}")
    keys = f"    MigrationsOf {of}\n" if of else ""
    base, _ = migrate(monkey, site, backend, request, {"1-a.sql": ONE, "2-b.sql": TWO}, top, keys=keys)
    assert base.run("SELECT a FROM two") == []
    assert history(base) == [(of, 1, "1-a.sql", True), (of, 2, "2-b.sql", True)]
    base.server.stop()
    base, _ = migrate(monkey, site, backend, request, {"1-a.sql": "-- edited\n", "2-b.sql": TWO}, top, keys=keys)
    base.server.err.wait_for(r"Migrations: 1-a\.sql was edited after it had been run$")


def test_concurrent_workers_of_two_machines_migrate_once(monkey, site, backend, request):
    files = {f"{n}-x.sql": f"CREATE TABLE t{n} (a INTEGER);\nINSERT INTO t{n} VALUES (1);\n" for n in range(1, 20)}
    base, top = migrate(monkey, site, backend, request, files, workers=4)
    other = DatabaseService(monkey(plugins=[f"duda-{backend}", service(site)], top=top + "    Migrations migrations\n", workers=4), None)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda i: (base, other)[i % 2].run("SELECT a FROM t19"), range(40))) == [[{"a": 1}]] * 40
    assert base.run("SELECT count(*) AS n FROM duda_migrations") == [{"n": 19}]
    assert "[error]" not in base.server.log + other.server.log
