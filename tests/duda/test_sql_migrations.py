# SPDX-License-Identifier: Apache-2.0
"""The sql package: migrations that take longer than `Timeout`, with SQLite and PostgreSQL. Everything that may end while they run:
the request that waits for them, the worker, the server."""
import concurrent.futures
import os
import signal
import sqlite3
import subprocess

import pytest

import postgres_server
import services
from proc import is_gone, wait_until
from sql_databases import backend, cluster  # pylint: disable=unused-import

SOURCE = r"""
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>

static int tell(struct duda_ctx *d, const char *sql)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, sql);
    if (e)
        return duda_printf(d, "%d %.*s", -e, MK_STR_ARG(result.error));
    return duda_printf(d, "%lld", (long long)(result.n_rows ? result.values[0].number : 0));
}

static int count(struct duda_ctx *d)
{
    return tell(d, "SELECT count(*) FROM goods");
}

/* With PoolSize 2, this needs both connections. */
static int count_with_both(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_sql_cursor *cursor;
    int e = duda_sql_cursor_open(d, duda_sql_find(d, NULL), &result, "SELECT 1", NULL, 0, &cursor);
    return e ? e : count(d);
}

static int add(struct duda_ctx *d)
{
    return tell(d, "INSERT INTO goods (id) VALUES (1000)");
}

DUDA_SERVICE(shop, DUDA_GET("/count", count, "Counts."), DUDA_GET("/both", count_with_both, "Counts."),
             DUDA_POST("/add", add, "Adds."));
"""

TABLE = "CREATE TABLE goods (id INTEGER);\nINSERT INTO goods (id) VALUES (1);\n"
COUNT = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c{}) SELECT max(n) FROM c;\n"
# Both take several times as long as the Timeout of the tests.
LONG = {"sqlite": COUNT.format(" LIMIT 3000000"), "postgres": "SELECT pg_sleep(1);\n"}
ENDLESS = {"sqlite": COUNT.format(""), "postgres": "SELECT pg_sleep(100000);\n"}
RUNS = r"\[(SQLITE|POSTGRES)\] main: migration 2-slow\.sql of service shop runs, \d+ s after the start"
WAITS = r"\[(SQLITE|POSTGRES)\] main: waits for migrations of another worker or program for \d+ s"
LOCK = 1685414753  # the advisory lock of migrations in PostgreSQL


class Shop:
    """A server whose second migration is the text `slow`."""

    def __init__(self, monkey, site, backend, request):
        self.monkey, self.folder, self.backend = monkey, site.path.parent, backend
        (self.folder / "data").mkdir()
        (self.folder / "migrations").mkdir()
        (self.folder / "migrations" / "1-goods.sql").write_text(TABLE)
        self.cluster = request.getfixturevalue("cluster") if backend == "postgres" else None
        self.address = self.cluster.database() if self.cluster else None
        self.service = services.build(self.folder, "shop", SOURCE, packages=["sql"])

    @property
    def file(self):
        return self.folder / "data" / "shop.db"

    def slow(self, text):
        (self.folder / "migrations" / "2-slow.sql").write_text(text)

    def start(self, workers=1, server=""):
        where = f"Server {self.address}" if self.address else "File data/shop.db"
        return self.monkey(plugins=[f"duda-{self.backend}", self.service], workers=workers, server=f"LogLevel info\n{server}",
                           top=f"[{self.backend.upper()}]\n    {where}\n    Migrations migrations\n    MigrationsOf shop\n"
                               "    Timeout 150ms\n    PoolSize 2\n")

    def applied(self):
        """How many migrations the database has recorded."""
        sql = "SELECT count(*) FROM duda_migrations"
        if self.cluster:
            return int(self.cluster.sql(sql, self.address.rpartition("=")[2]))
        with sqlite3.connect(self.file) as db:
            return db.execute(sql).fetchone()[0]

    def sleepers(self):
        """How many sessions of PostgreSQL run the migration, or wait for it."""
        name = self.address.rpartition("=")[2]
        return int(self.cluster.sql(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND state <> 'idle'"))

    def lock(self):
        """Makes the migrations wait; returns a function that ends this."""
        if not self.cluster:
            with sqlite3.connect(self.file) as db:  # a new file would be locked before it is in WAL mode
                db.execute("PRAGMA journal_mode=WAL")
            other = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")
            return other.close
        # pylint: disable-next=consider-using-with
        other = subprocess.Popen([f"{postgres_server.BIN}/psql", *self.cluster.connection_options(), "-U", "ana", "-d",
                                  self.address.rpartition("=")[2], "-Atq"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 cwd="/", text=True)
        other.stdin.write(f"SELECT 'locked' WHERE pg_advisory_lock({LOCK}) IS NOT NULL;\n")
        other.stdin.flush()
        assert other.stdout.readline() == "locked\n"

        def unlock():
            if other.stdin.closed:
                return
            other.stdin.close()
            other.wait()
            other.stdout.close()
        return unlock


@pytest.fixture
def shop(monkey, site, backend, request):
    return Shop(monkey, site, backend, request)


def is_migrated(server, n="1"):
    return server.get("/count").text == n


@pytest.mark.parametrize("workers", [1, 2])
def test_sql_migration_may_take_longer_than_timeout(shop, backend, workers):
    shop.slow(LONG[backend] + "INSERT INTO goods (id) VALUES (2);\n")
    server = shop.start(workers)
    wait_until(lambda: is_migrated(server, "2"), "the migration is complete")
    assert shop.applied() == 2
    assert not any("[error]" in line for line in server.log.splitlines()), server.log


def test_sql_timeout_limits_statements_after_migrations(shop, backend):
    """The time limit is in force again: in the connection that has migrated, and in others."""
    shop.slow(LONG[backend] + (f"CREATE VIEW slow AS {COUNT.format('')}" if backend == "sqlite" else
                               "CREATE VIEW slow AS SELECT 1 AS id FROM pg_sleep(100000);\n"))
    shop.service = services.build(shop.folder, "shop", SOURCE.replace("count(*) FROM goods", "count(*) FROM slow"), packages=["sql"])
    server = shop.start()
    wait_until(lambda: any(why in server.get("/count").text for why in ("statement timeout", "interrupted")),
               "the statement times out")
    assert shop.applied() == 2


def test_sql_failing_migration_beyond_timeout_reports_its_error(shop, backend):
    shop.slow(LONG[backend] + "INSERT INTO goods (id) VALUES (2);\nSELEC 1;\n")
    server = shop.start()
    server.err.wait_for(r"\[error\] .*2-slow\.sql: .*syntax error")
    assert server.stop() == 0
    shop.slow("INSERT INTO goods (id) VALUES (2);\n")
    server = shop.start()
    wait_until(lambda: is_migrated(server, "2"), "the migration is complete")


def test_sql_requests_that_wait_for_migrations_time_out_without_effect(shop):
    """Their handlers have left when the migration ends, so their statements must not run any more."""
    unlock = shop.lock()
    try:
        server = shop.start(server="HandlerTimeout 1s")
        server.err.wait_for(WAITS)
        with server.connect() as c:
            c.send(b"POST /add HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        for _ in range(5):
            late = server.get("/add", "POST")
            assert late.status == 504, late.text
    finally:
        unlock()
    wait_until(lambda: server.get("/both").text == "1", "the migration is complete")
    assert server.get("/add", "POST").text == "0"
    assert server.get("/both").text == "2"


def test_sql_requests_wait_for_migrations_beyond_timeout(shop):
    unlock = shop.lock()
    try:
        server = shop.start()
        server.err.wait_for(WAITS)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(server.get, target) for target in ("/count", "/count", "/both")]
            try:
                server.err.wait_for(WAITS, 2)
            finally:
                unlock()
            assert [each.result().text for each in waiting] == ["1"] * 3
    finally:
        unlock()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_sql_worker_that_stops_ends_its_migration(shop, backend, number):
    shop.slow(ENDLESS[backend])
    server = shop.start(2)
    server.err.wait_for(RUNS)
    server.err.wait_for(WAITS)
    assert server.stop(number) == 0
    if backend == "postgres":
        wait_until(lambda: not shop.sleepers(), "the server has ended the migration")
    shop.slow("SELECT 1;\n")
    server = shop.start()
    wait_until(lambda: is_migrated(server), "the migration is complete")


def test_sql_reload_during_a_migration_starts_the_new_one(shop, backend):
    shop.slow(ENDLESS[backend])
    server = shop.start(2)
    server.err.wait_for(RUNS)
    old = server.workers
    shop.slow("SELECT 1;\n")
    server.tell(signal.SIGHUP)
    wait_until(lambda: all(map(is_gone, old)), "the old workers have ended")
    wait_until(lambda: is_migrated(server), "the new migration is complete")
    assert shop.applied() == 2


def test_sql_killed_worker_leaves_its_migration_to_another(shop, backend):
    shop.slow(ENDLESS[backend])
    server = shop.start(1)
    server.allow("was killed by signal")
    server.err.wait_for(RUNS)
    os.kill(server.workers[0], signal.SIGKILL)
    server.err.wait_for(RUNS, 2)
    if backend == "postgres":
        wait_until(lambda: shop.sleepers() == 1, "only the new worker migrates")
    assert server.stop() == 0
