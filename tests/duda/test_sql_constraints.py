# SPDX-License-Identifier: Apache-2.0
"""The sql package: which constraint a statement violates, with SQLite and PostgreSQL."""
import errno
import sqlite3
import urllib.parse

import pytest

import services
from sql_databases import HAS, backend, cluster, section  # pylint: disable=unused-import

SOURCE = r"""
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>
#include <errno.h>

static struct duda_sql_db *data(struct duda_ctx *d)
{
    return duda_sql_find(d, NULL);
}

/* Responds with: errno/kind/table/columns/constraint. Fails unless `result` names the same constraint. */
static int tell(struct duda_ctx *d, int e, const struct duda_sql_result *result)
{
    const struct duda_sql_violation *v = duda_sql_last_violation(d);
    const struct duda_sql_violation *w = result ? result->violation : NULL;
    if (result && !w != !v->kind)
        return 500;
    if (w && (w == v || w->kind != v->kind || !mk_str_eq(w->table, v->table) || !mk_str_eq(w->columns, v->columns) ||
              !mk_str_eq(w->constraint, v->constraint)))
        return 500;
    if (v->columns.p && v->columns.p[v->columns.len])
        return 500;
    return duda_printf(d, "%d/%d/%.*s/%.*s/%.*s", -e, (int)v->kind, MK_STR_ARG(v->table), MK_STR_ARG(v->columns), MK_STR_ARG(v->constraint));
}

static int run(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, data(d), &result, duda_query_or(d, "sql", ""));
    return tell(d, e, &result);
}

/* Without a result. */
static int cell(struct duda_ctx *d)
{
    struct duda_sql_value value;
    return tell(d, duda_sql_query_cell(d, data(d), &value, duda_query_or(d, "sql", "")), NULL);
}

/* The status that the framework sends. */
static int status(struct duda_ctx *d)
{
    return duda_sql_query(d, data(d), NULL, duda_query_or(d, "sql", ""));
}

/* Each violation replaces the one before, with memory that is rewound, and nothing else does. */
static int many(struct duda_ctx *d)
{
    struct duda_sql_result result;
    if (duda_sql_last_violation(d)->kind)
        return 500;
    for (int i = 0; i < 100; i++) {
        size_t mark = duda_arena_mark(d);
        if (duda_sql_query(d, data(d), &result, "INSERT INTO users (id, name, email) VALUES (9, NULL, 'x')") != -ERANGE ||
            duda_sql_query(d, data(d), &result, "INSERT INTO users (id, name, email) VALUES (1, 'x', 'x')") != -EEXIST)
            return 500;
        duda_arena_rewind(d, mark);
    }
    int e = duda_sql_query(d, data(d), &result, "SELECT 1");
    if (e || result.violation || duda_sql_query(d, data(d), &result, "SELEC 1") != -EREMOTEIO || result.violation)
        return 500;
    return tell(d, 0, NULL);
}

static int insert(struct duda_ctx *d, struct duda_sql_db *db, void *ctx)
{
    return duda_sql_query(d, db, NULL, ctx);
}

/* A violation in a savepoint and in duda_sql_transaction(), which roll back. */
static int nested(struct duda_ctx *d)
{
    int e = duda_sql_begin(d, data(d));
    e = e ? e : duda_sql_query(d, data(d), NULL, "INSERT INTO users (id, name, email) VALUES (50, 'nested', 'nested')");
    if (e)
        return e;
    int inner = duda_sql_transaction(d, data(d), NULL, insert, "INSERT INTO users (id, name, email) VALUES (51, 'ada', 'new')");
    e = duda_sql_query(d, data(d), NULL, "DELETE FROM users WHERE id = 50");
    e = e ? e : duda_sql_commit(d, data(d));
    return e ? e : tell(d, inner, NULL);
}

/* A deferred constraint fails at the commit; the connection is then usable by others. */
static int deferred(struct duda_ctx *d)
{
    int e = duda_sql_begin(d, data(d));
    e = e ? e : duda_sql_query(d, data(d), NULL, "INSERT INTO later (author) VALUES (77)");
    return e ? e : tell(d, duda_sql_commit(d, data(d)), NULL);
}

/* Every result of a batch has its own violation; the last one is that of the first statement that failed. */
static int batch(struct duda_ctx *d)
{
    static const struct duda_sql_statement queries[] = {
        {"SELECT 1", NULL, 0},
        {"INSERT INTO users (id, name, email) VALUES (9, NULL, 'x')", NULL, 0},
        {"INSERT INTO users (id, name, email) VALUES (9, 'ada', 'x')", NULL, 0},
    };
    struct duda_sql_result results[MK_LEN(queries)];
    int e = duda_sql_batch(d, data(d), queries, MK_LEN(queries), results);
    if (!e || results[0].violation || results[1].violation->kind != DUDA_SQL_NOT_NULL || results[2].violation->kind != DUDA_SQL_UNIQUE)
        return 500;
    return tell(d, 0, NULL);
}

DUDA_SERVICE(constraints,
    DUDA_GET("/run", run), DUDA_GET("/cell", cell), DUDA_GET("/status", status), DUDA_GET("/many", many), DUDA_GET("/nested", nested),
    DUDA_GET("/deferred", deferred), DUDA_GET("/batch", batch));
"""
TABLES = """CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, email TEXT NOT NULL UNIQUE, age INTEGER CHECK (age >= 0),
    size INTEGER CONSTRAINT size_is_small CHECK (size < 9));
CREATE UNIQUE INDEX users_lower_name ON users (lower(name));
CREATE TABLE seats ("row" INTEGER, "the seat" TEXT, UNIQUE ("row", "the seat"));
CREATE TABLE issues (id INTEGER PRIMARY KEY, author INTEGER NOT NULL REFERENCES users (id));
CREATE TABLE notes (author INTEGER REFERENCES users (id) ON DELETE RESTRICT);
CREATE TABLE later (author INTEGER REFERENCES users (id) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO users (id, name, email) VALUES (1, 'ada', 'ada@example.org'), (2, 'bo', 'bo@example.org'), (3, 'cy', 'cy@example.org');
INSERT INTO seats VALUES (1, 'a, b');
INSERT INTO issues VALUES (1, 1);
INSERT INTO notes VALUES (2);
"""
TRIGGERS = {
    "sqlite": """CREATE TRIGGER never BEFORE UPDATE ON notes BEGIN SELECT RAISE(ABORT, 'notes never change'); END;
CREATE TABLE strict (n INTEGER) STRICT;
""",
    "postgres": """CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'notes never change' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TRIGGER never BEFORE UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION never();
CREATE VIEW adults AS SELECT * FROM users WHERE age > 17 WITH CHECK OPTION;
CREATE TABLE bookings (during INT4RANGE, CONSTRAINT one_booking EXCLUDE USING gist (during WITH &&));
INSERT INTO bookings VALUES ('[1,5)');
"""}
NO, UNIQUE, FOREIGN_KEY, NOT_NULL, CHECK, OTHER = range(6)

# A statement, its kind, and the table, the columns and the name of the constraint, for each database.
USER = "INSERT INTO users (id, name, email) VALUES "
CASES = {
    "primary key": (USER + "(1, 'x', 'x')", UNIQUE, "users/id/", "users/id/users_pkey"),
    "unique": (USER + "(9, 'x', 'ada@example.org')", UNIQUE, "users/email/", "users/email/users_email_key"),
    "unique expression": (USER + "(9, 'ADA', 'x')", UNIQUE, "//users_lower_name", "users/lower(name)/users_lower_name"),
    "unique columns": ("INSERT INTO seats VALUES (1, 'a, b')", UNIQUE, "seats/row, the seat/",
                       'seats/row, the seat/seats_row_the seat_key'),
    "not null": (USER + "(9, NULL, 'x')", NOT_NULL, "users/name/", "users/name/"),
    "check": ("UPDATE users SET age = -1", CHECK, "//age >= 0", "users//users_age_check"),
    "named check": ("UPDATE users SET size = 10", CHECK, "//size_is_small", "users//size_is_small"),
    "missing parent": ("INSERT INTO issues VALUES (2, 99)", FOREIGN_KEY, "//", "issues//issues_author_fkey"),
    "remaining child": ("DELETE FROM users WHERE id = 1", FOREIGN_KEY, "//", "issues//issues_author_fkey"),
    "restricted child": ("DELETE FROM users WHERE id = 2", FOREIGN_KEY, "//", "notes//notes_author_fkey"),
    "trigger": ("UPDATE notes SET author = 1", OTHER, "//", "//"),
    "strict type": ("INSERT INTO strict VALUES ('x')", OTHER, "//", None),
    "view": ("INSERT INTO adults (id, name, email, age) VALUES (9, 'x', 'x', 3)", CHECK, None, "//"),
    "exclusion": ("INSERT INTO bookings VALUES ('[4,9)')", UNIQUE, None, "bookings/during/one_booking"),
    "other error": ("SELEC 1", NO, "//", "//"),
    "success": ("SELECT 1", NO, "//", "//"),
}


def start(monkey, folder, backend, request, is_isolated=False):
    top = section(folder, backend, request, TABLES + TRIGGERS[backend])
    service = services.build(folder, "constraints", SOURCE, packages=["sql"])
    if not is_isolated:
        return monkey(plugins=[f"duda-{backend}", service], server="ErrorLog stderr", top=top)
    (folder / "part.conf").write_text(f"[PLUGINS]\n    Load duda-{backend}\n{top}")
    return monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n    Include {folder}/part.conf\n",
                  sections="[ROUTES]\n    /* isolate constraints\n")


@pytest.fixture
def server(lasting, prepared, backend, request):
    return lasting(prepared.setdefault(backend, lambda monkey, site: start(monkey, site.path.parent, backend, request)))


def ask(server, path, sql):
    return server.get(f"/{path}?" + urllib.parse.urlencode({"sql": sql}))


def error_of(kind):
    return 0 if kind == NO else errno.EEXIST if kind == UNIQUE else errno.ERANGE


@pytest.mark.parametrize("name", CASES)
def test_violated_constraint_is_named(server, backend, name):
    sql, kind, *names = CASES[name]
    names = names[backend == "postgres"]
    if names is None:
        pytest.skip("the database has no such constraint")
    number = errno.EREMOTEIO if name == "other error" else error_of(kind)
    answer = ask(server, "run", sql)
    assert (answer.status, answer.text) == (200, f"{number}/{kind}/{names}")
    assert ask(server, "cell", sql).text == answer.text


@pytest.mark.parametrize("name, status", [
    ("unique", 409), ("primary key", 409), ("not null", 422), ("check", 422), ("missing parent", 422), ("remaining child", 422), ("trigger", 422)])
def test_violation_has_a_status_and_a_reason(server, name, status):
    answer = ask(server, "status", CASES[name][0])
    assert answer.status == status
    server.err.wait_for(r"status\(\) in .*constraints\.c:\d+ answered -E(EXIST|RANGE) .*: \[\w+\] main: ")


def test_last_violation_stays_until_the_next_one(server, backend):
    assert server.get("/many").text == f"0/{UNIQUE}/users/id/" + ("users_pkey" if backend == "postgres" else "")


def test_violation_in_a_nested_transaction_survives_its_rollback(server, backend):
    assert server.get("/nested").text in (f"{errno.EEXIST}/{UNIQUE}/users/name/" + ("users_name_key" if backend == "postgres" else ""),
                                          f"{errno.EEXIST}/{UNIQUE}///users_lower_name")


def test_deferred_constraint_fails_at_the_commit(server, backend):
    names = "later//later_author_fkey" if backend == "postgres" else "//"
    for _ in range(20):
        assert server.get("/deferred").text == f"{errno.ERANGE}/{FOREIGN_KEY}/{names}"
    assert ask(server, "run", "SELECT 1").text == f"0/{NO}///"


def test_batch_reports_a_violation_for_each_statement(server, backend):
    assert server.get("/batch").text == f"0/{NOT_NULL}/users/name/"


@pytest.mark.skipif(not (services.OBJECTS / "monkey-isolate.so").exists(), reason="this build has no isolate")
def test_violation_of_an_isolated_service_is_named(monkey, site, backend, request):
    server = start(monkey, site.path.parent, backend, request, is_isolated=True)
    assert ask(server, "run", CASES["not null"][0]).text == f"{errno.ERANGE}/{NOT_NULL}/users/name/"


@pytest.mark.skipif(not HAS["sqlite"], reason="this build has no SQLite")
def test_constraint_that_a_migration_violates_is_an_error_of_the_server(monkey, site, request):
    """The client has not caused it, so it is not 409 or 422."""
    folder = site.path.parent
    (folder / "migrations").mkdir()
    (folder / "migrations" / "2-wrong.sql").write_text(USER + "(1, 'x', 'x');")
    server = start(monkey, folder, "sqlite", request)
    assert ask(server, "status", "SELECT 1").status == 500
    assert ask(server, "run", "SELECT 1").text == f"{errno.EREMOTEIO}/{NO}///"
    assert sqlite3.connect(folder / "data" / "a.db").execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
