# SPDX-License-Identifier: Apache-2.0
"""The sql package: one service and one set of tests for SQLite and PostgreSQL, then the tests for only one of
them."""
import concurrent.futures
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import urllib.parse

import pytest

import postgres_server
import proc
import services
from monkey import ENVIRONMENT
from proc import wait_until
from sql_databases import HAS, backend, cluster  # pylint: disable=unused-import

SOURCE = r"""
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>
#include <errno.h>
#include <locale.h>

/* Sets a locale with a decimal comma, if it is installed, as an embedding program might. A constructor
   sets it because workers cannot read locale files. */
__attribute__((constructor)) static void set_locale(void)
{
    setlocale(LC_NUMERIC, "comma");
}

static int tell(struct duda_ctx *d, int e, const struct duda_sql_result *result)
{
    if (e == -ECANCELED)
        return e;
    if (e)
        return duda_printf(d, "%d %.*s", -e, MK_STR_ARG(result->error));
    struct mk_buf json = mk_buf_growing(1 << 24);
    duda_sql_json(&json, result);
    duda_write(d, mk_buf_str(&json));
    mk_buf_free(&json);
    return duda_printf(d, " %lld", (long long)result->rows_affected);
}

/* /run?sql=TEXT&a=VALUE&b=VALUE */
static int run(struct duda_ctx *d)
{
    struct duda_sql_result result;
    const struct duda_sql_value all[] = {duda_sql_text(duda_query(d, "a")), duda_sql_text(duda_query(d, "b"))};
    size_t n = (size_t)(all[0].text.p != NULL) + (all[1].text.p != NULL);
    return tell(d, duda_sql_query_values(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""), all, n), &result);
}

/* /like?q=TEXT&in=TEXT: does the text contain the other one? */
static int like(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result,
                           "SELECT CASE WHEN $1 LIKE '%' || $2 || '%' ESCAPE '!' THEN 1 ELSE 0 END AS found",
                           duda_sql_text(duda_query(d, "in")), duda_sql_text(duda_sql_like_escape(d, duda_query(d, "q"))));
    return tell(d, e, &result);
}

static int types(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    struct duda_sql_result result;
    int e = duda_sql_query(d, db, &result, "DELETE FROM kinds");
    e = e ? e
          : duda_sql_query(d, db, &result, "INSERT INTO kinds (i, r, t, b) VALUES ($1, $2, $3, $4)",
                     duda_sql_integer(INT64_MIN), duda_sql_real(0.3000000000000004), duda_sql_text(MK_STR("a\"\\\n\xc3\xa9")),
                     duda_sql_blob(MK_STR("\0\xff'")));
    e = e ? e
          : duda_sql_query(d, db, &result, "INSERT INTO kinds (i, r, t, b) VALUES ($1, $2, $3, $4)", duda_sql_null(),
                     duda_sql_null(), duda_sql_text(MK_STR("")), duda_sql_blob(MK_STR("")));
    e = e ? e : duda_sql_query(d, db, &result, "SELECT i, r, t, b FROM kinds ORDER BY t DESC");
    return tell(d, e, &result);
}

/* Transfers one unit. `how` is commit, rollback, leave (the transaction stays open) or fail. */
static int move(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    struct duda_sql_result result = {0};
    mk_str how = duda_query(d, "how");
    int e = duda_sql_begin(d, db);
    e = e ? e : duda_sql_query(d, db, &result, "UPDATE accounts SET n = n - 1 WHERE id = 1");
    e = e ? e : duda_sql_query(d, db, &result, "UPDATE accounts SET n = n + 1 WHERE id = 2");
    if (!e && mk_str_eq(how, MK_STR("fail")))
        e = duda_sql_query(d, db, &result, "INSERT INTO accounts (id, n) VALUES (1, 0)");
    if (e || mk_str_eq(how, MK_STR("leave")))
        return tell(d, e, &result);
    e = mk_str_eq(how, MK_STR("commit")) ? duda_sql_commit(d, db) : duda_sql_rollback(d, db);
    if (!e && duda_sql_commit(d, db) != -EINVAL)
        return 500;
    return tell(d, e, &result);
}

/* ?ids=1,2,x&how=plain, commit or rollback: queries all accounts in one batch; an ID that is not a
   number is an error. */
static int many(struct duda_ctx *d)
{
    enum { MAX = 1200 };
    static struct duda_sql_statement queries[MAX];
    static struct duda_sql_value ids[MAX];
    struct duda_sql_result *results = duda_alloc(d, MAX * sizeof *results);
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    mk_str left = duda_query(d, "ids"), how = duda_query(d, "how");
    size_t n = 0;
    for (; left.len && n < MAX; n++) {
        uint64_t id;
        bool is_good = mk_num_parse(mk_str_cut(&left, ','), &id);
        ids[n] = duda_sql_integer(is_good ? (int64_t)id : 0);
        queries[n] = (struct duda_sql_statement){
            is_good ? "UPDATE accounts SET n = n + 1 WHERE id = $1 RETURNING id" : "SELEC 1", &ids[n], is_good};
    }
    int e = how.len > 5 ? duda_sql_begin(d, db) : 0;
    e = e ? e : duda_sql_batch(d, db, queries, n, results);
    duda_printf(d, "%d:", -e);
    for (size_t i = 0; i < n && n <= DUDA_SQL_BATCH_MAX; i++)
        duda_printf(d, " %lld", results[i].n_rows ? (long long)duda_sql_cell(&results[i], 0, 0)->number
                                                  : results[i].error.len ? -1 : 0);
    return how.len > 5 ? mk_str_eq(how, MK_STR("commit")) ? duda_sql_commit(d, db) : duda_sql_rollback(d, db) : 0;
}

DUDA_SERVICE(asks,
    DUDA_GET("/many", many, "Several statements at once."),
    DUDA_GET("/run", run, "Any statement."),
    DUDA_GET("/like", like, "Finds a text."), DUDA_GET("/types", types, "Values of all types."),
    DUDA_GET("/move", move, "A transaction."));
"""
FIRST = """CREATE TABLE accounts (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n >= 0));
INSERT INTO accounts (id, n) VALUES (1, 1000000), (2, 0);
CREATE TABLE goods (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
"""
BYTES = {"sqlite": "BLOB", "postgres": "BYTEA"}
INTEGER = {"sqlite": "INTEGER", "postgres": "BIGINT"}
REAL = {"sqlite": "REAL", "postgres": "DOUBLE PRECISION"}
SLOW = {"sqlite": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
        "postgres": "SELECT pg_sleep(3600)"}


def write_migrations(folder, backend, n=2):
    folder.mkdir()
    (folder / "0001-first.sql").write_text(FIRST)
    (folder / "0002-kinds.sql").write_text(
        f"CREATE TABLE kinds (i {INTEGER[backend]}, r {REAL[backend]}, t TEXT, b {BYTES[backend]});\n")
    (folder / "notes.txt").write_text("no migration")
    if n > 2:
        (folder / "0003-more.sql").write_text("INSERT INTO goods (id, name) VALUES (1, 'tea');\n")


def section(backend, request, keys=""):
    if backend == "sqlite":
        return f"[SQLITE]\n    File data/shop.db\n    Migrations migrations\n{keys}"
    return f"[POSTGRES]\n    Server {request.getfixturevalue('cluster').database()}\n    Migrations migrations\n{keys}"


def start(monkey, site, backend, request, keys="", workers=2, top=None, **more):
    folder = site.path.parent
    (folder / "data").mkdir(exist_ok=True)
    if not (folder / "migrations").exists():
        write_migrations(folder / "migrations", backend)
    service = services.build(folder, "asks", SOURCE, packages=["sql"])
    return monkey(plugins=[f"duda-{backend}", service], top=top or section(backend, request, keys), workers=workers, **more)


@pytest.fixture
def server(lasting, prepared, backend, request):
    prepare = prepared.setdefault(backend, lambda monkey, site: start(monkey, site, backend, request))
    return lasting(prepare)


def run(server, sql, *values):
    parameters = {"sql": sql} | dict(zip("ab", values))
    text = server.get("/run?" + urllib.parse.urlencode(parameters)).text
    return text if text[:1].isdigit() else json.loads(text.rpartition(" ")[0])


def test_sql_returns_rows_and_counts(server):
    assert run(server, "SELECT id, n FROM accounts WHERE id = 2") == [{"id": 2, "n": 0}]
    assert run(server, "SELECT id FROM accounts WHERE id = 99") == []
    assert run(server, "INSERT INTO goods (id, name) VALUES (10, $1)", "tea") == []
    assert run(server, "SELECT name FROM goods WHERE id = 10") == [{"name": "tea"}]
    assert server.get("/run?sql=UPDATE+accounts+SET+n+%3D+n").text == "[] 2"
    assert server.get("/run?sql=DELETE+FROM+goods+WHERE+id+%3D+10").text == "[] 1"


def test_sql_values_keep_their_types(server):
    first, second = json.loads(server.get("/types").text.rpartition(" ")[0])
    assert first == {"i": -(1 << 63), "r": 0.3000000000000004, "t": 'a"\\\né', "b": "AP8n"}
    assert second == {"i": None, "r": None, "t": "", "b": ""}


def test_sql_numbers_ignore_the_locale(monkey, site, backend, request, tmp_path):
    (tmp_path / "comma.def").write_text('LC_NUMERIC\ndecimal_point ","\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n')
    subprocess.run(["localedef", "-c", "-i", tmp_path / "comma.def", tmp_path / "comma"], capture_output=True, check=False)
    server = start(monkey, site, backend, request, environment={
        # glibc does not free the locale data that it has loaded
        "LOCPATH": str(tmp_path), "ASAN_OPTIONS": f"{ENVIRONMENT['ASAN_OPTIONS']}:detect_leaks=0"})
    first, _ = json.loads(server.get("/types").text.rpartition(" ")[0])
    assert first["r"] == 0.3000000000000004


@pytest.mark.parametrize("value", ["'; DROP TABLE accounts; --", "1 OR 1=1", "$2", "\\'", "é'\""])
def test_sql_parameters_never_become_sql(server, value):
    assert run(server, "SELECT id FROM goods WHERE name = $1", value) == []
    assert run(server, "SELECT CAST($1 AS TEXT) AS v", value) == [{"v": value}]
    assert len(run(server, "SELECT id FROM accounts")) == 2


@pytest.mark.parametrize("text", ["%", "_", "!", "!%", "100%", "a_b", "!_%!", "\\", "\\%", "é%", ""])
def test_sql_like_escape_makes_wildcards_literal(server, text):
    def found(where):
        return json.loads(server.get(f"/like?q={urllib.parse.quote(text)}&in={urllib.parse.quote(where)}").text.rsplit(" ", 1)[0])[0]["found"]

    assert found(f"before {text} after") == 1
    assert found("before 100x axb after") == (0 if text else 1)


def test_sql_errors_name_the_cause(server, backend):
    title = f"[{backend.upper()}] main: "
    assert run(server, "SELECT nonsense FROM accounts").startswith("121 " + title)
    assert "nonsense" in run(server, "SELECT nonsense FROM accounts")
    assert run(server, "SELEC 1").startswith("121 ")
    assert run(server, "SELECT 1; SELECT 2")[:3] in ("22 ", "121")
    assert run(server, "SELECT $1", "a", "b")[:3] in ("22 ", "121")
    assert run(server, "INSERT INTO accounts (id, n) VALUES (1, 5)").startswith("17 " + title)
    assert run(server, "UPDATE accounts SET n = -1 WHERE id = 2").startswith("34 " + title)
    assert run(server, "SELECT 1 AS one") == [{"one": 1}]


def balance(server):
    return [row["n"] for row in run(server, "SELECT n FROM accounts ORDER BY id")]


def test_sql_transactions_commit_and_roll_back(server):
    first, second = balance(server)
    assert server.get("/move?how=commit").status == 200
    assert balance(server) == [first - 1, second + 1]
    for how in ("rollback", "leave", "fail"):
        assert server.get(f"/move?how={how}").status == 200
        assert balance(server) == [first - 1, second + 1]


def test_sql_concurrent_transactions_are_isolated(server):
    first, second = balance(server)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: server.get(f"/move?how={('commit', 'leave')[i % 2]}").text, range(60)))
    done = sum(answer.startswith("[]") for answer in answers[::2])
    assert done == 30, answers
    assert balance(server) == [first - 30, second + 30]


def test_sql_batch_runs_all_statements(server):
    first, second = balance(server)
    assert server.get("/many?ids=1,2,99,1").text == "0: 1 2 0 1"
    assert balance(server) == [first + 2, second + 1]
    assert server.get("/many?ids=1,x,2").text == "121: 1 -1 2"
    assert balance(server) == [first + 3, second + 2]
    assert server.get("/many?ids=1,2&how=commit").text == "0: 1 2"
    assert server.get("/many?ids=1,1,2&how=rollback").text == "0: 1 1 2"
    assert balance(server) == [first + 4, second + 3]
    assert server.get("/many?ids=").text == "0:"
    assert server.get(f"/many?ids={','.join(['1'] * 1001)}").text == "90:"


def test_sql_text_with_nul_is_rejected(server):
    """PostgreSQL texts cannot contain NUL: without an error, the text would be truncated there."""
    run(server, "DELETE FROM goods")
    assert run(server, "INSERT INTO goods (id, name) VALUES (77, $1)", "admin\0istrator") == "74 a string contains NUL"
    assert run(server, "SELECT id FROM goods WHERE id = 77") == []


# ---- Failures ----

def test_sql_timeout_and_result_limit_end_statements(monkey, site, backend, request):
    server = start(monkey, site, backend, request, "    Timeout 300ms\n    MaxResultSize 100K\n", workers=1)
    assert run(server, "SELECT 1 AS one") == [{"one": 1}]
    assert run(server, SLOW[backend]).startswith("110 ")
    large = {"sqlite": "SELECT hex(zeroblob(60000)) AS x", "postgres": "SELECT repeat('x', 120000) AS x"}[backend]
    assert run(server, large).startswith("90 ")
    count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {}) SELECT x FROM c"
    assert run(server, count.format(20000)).startswith("90 ")
    assert run(server, count.format(2000))[-1] == {"x": 2000}
    wait_until(lambda: run(server, "SELECT 1 AS one") == [{"one": 1}], "the database answers")


def test_sql_new_migrations_are_applied(monkey, site, backend, request):
    folder = site.path.parent
    top = section(backend, request)
    server = start(monkey, site, backend, request, top=top)
    assert run(server, "SELECT name FROM duda_migrations ORDER BY number") == [
        {"name": "0001-first.sql"}, {"name": "0002-kinds.sql"}]
    server.stop()
    shutil.rmtree(folder / "migrations")
    write_migrations(folder / "migrations", backend, 3)
    server = start(monkey, site, backend, request, top=top)
    assert run(server, "SELECT name FROM goods") == [{"name": "tea"}]
    server.stop()
    (folder / "migrations" / "0004-wrong.sql").write_text("INSERT INTO goods (id, name) VALUES (2, 'x');\nSELEC 1;\n")
    server = start(monkey, site, backend, request, top=top)
    assert "0004-wrong.sql: " in run(server, "SELECT 1")
    server.stop()
    os.unlink(folder / "migrations" / "0004-wrong.sql")
    server = start(monkey, site, backend, request, top=top)
    assert run(server, "SELECT name FROM goods") == [{"name": "tea"}]


def test_sql_invalid_migration_files_are_rejected(run, tmp_path, backend):
    keys = {"sqlite": "File a.db", "postgres": "Server host=127.0.0.1"}[backend]
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "1-a.sql").write_text("")
    (folder / "01-b.sql").write_text("")
    (folder / "x.sql").write_text("")
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-{backend}\n[{backend.upper()}]\n    {keys}\n"
                    "    Migrations migrations\n[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf)
    assert done.code == 3
    assert "another migration already has this number" in done.err and "x.sql: expected a name NUMBER-NAME.sql" in done.err


@pytest.mark.skipif(not HAS["sqlite"], reason="this build has no SQLite")
def test_sqlite_waits_for_the_writer_of_a_new_file(monkey, site, request):
    """The worker switches the file to WAL mode, which SQLite refuses without waiting while another connection writes."""
    folder = site.path.parent
    (folder / "data").mkdir()
    file = folder / "data" / "shop.db"
    other = sqlite3.connect(file, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        server = start(monkey, site, "sqlite", request, workers=1)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(run, server, "SELECT 1 AS one")
            wait_until(lambda: str(file) in proc.descriptors(server.workers[0]).values() or future.done(), "the file is open")
            assert not concurrent.futures.wait([future], 0.1).done, future.result()
            other.execute("ROLLBACK")
            assert future.result(30) == [{"one": 1}]
    finally:
        other.close()


# ---- PostgreSQL ----

needs_postgres = pytest.mark.skipif(not HAS["postgres"], reason="this build has no libpq, or there is no PostgreSQL")


def test_postgres_needs_an_account_to_run_in_tests(monkeypatch):
    def unknown(name):
        raise KeyError(name)

    monkeypatch.setattr(postgres_server, "BIN", "/somewhere")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert postgres_server.is_usable()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("pwd.getpwnam", unknown)
    assert not postgres_server.is_usable()


@needs_postgres
def test_postgres_killed_or_frozen_fails_and_recovers(monkey, site, request):
    postgres = postgres_server.Postgres()
    try:
        server = start(monkey, site, "postgres", request, workers=1,
                       top=f"[POSTGRES]\n    Server {postgres.database()}\n    Timeout 500ms\n    PoolSize 2\n")
        assert run(server, "SELECT 1 AS one") == [{"one": 1}]
        postgres.each(signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: run(server, "SELECT 1 AS one"), range(8)))
        assert all(answer[:4] in ("110 ", "111 ", "104 ") for answer in answers), answers
        postgres.each(signal.SIGCONT)
        wait_until(lambda: run(server, "SELECT 1 AS one") == [{"one": 1}], "the server answers again")
        postgres.kill()
        assert run(server, "SELECT 1 AS one")[:4] in ("104 ", "111 ", "110 ")
        lost = server.get("/many?ids=1,1,1").text
        assert lost[:4] in ("104:", "111:", "110:") and lost[4:] == " -1 -1 -1"
        server.err.wait_for(r"\[error\] .*\[POSTGRES\] main: ")
        postgres.start()
        wait_until(lambda: run(server, "SELECT 1 AS one") == [{"one": 1}], "the server answers again")
        server.err.wait_for(r"\[POSTGRES\] main is back")
    finally:
        postgres.stop()


@needs_postgres
def test_postgres_batch_beyond_the_queue_limit_is_rejected(monkey, site, request):
    server = start(monkey, site, "postgres", request, "    MaxQueue 3\n", workers=1)
    assert server.get("/many?ids=1,2,1").text == "0: 1 2 1"
    assert server.get("/many?ids=1,2,1,2").text.startswith("16: -1")
    assert server.get("/many?ids=1,2,1,2&how=commit").text == "0: 1 2 1 2", "a transaction already has a connection"


@needs_postgres
def test_postgres_waiting_statements_count_for_the_queue_limit(monkey, site, request):
    """The statements of two handlers together exceed the queue limit: the second one is rejected immediately."""
    postgres = postgres_server.Postgres()
    try:
        address = postgres.database()
        postgres.each(signal.SIGSTOP)
        server = start(monkey, site, "postgres", request, workers=1,
                       top=f"[POSTGRES]\n    Server {address}\n    MaxQueue 3\n    Timeout 50s\n")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            both = [pool.submit(lambda target=target: server.get(target).text)
                    for target in ("/run?sql=SELECT%201%20AS%20one", "/many?ids=x,x,x")]
            try:
                first = next(concurrent.futures.as_completed(both, 30)).result()
            finally:
                postgres.each(signal.SIGCONT)
            assert first.startswith("16"), first
            assert not any(each.result().startswith("16") for each in both if each.result() != first)
    finally:
        postgres.stop()


@pytest.mark.skipif(not HAS["sqlite"], reason="this build has no SQLite")
@pytest.mark.parametrize("missing", ["first", "second"])
def test_sqlite_file_in_a_missing_folder_is_rejected(run, tmp_path, missing):
    (tmp_path / "there").mkdir()
    sections = "".join(f"[SQLITE]\n    Name {name}\n    File {'nowhere' if name == missing else 'there'}/{name}.db\n"
                       for name in ("first", "second"))
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-sqlite\n{sections}[HOST]\n    DocumentRoot .\n")
    done = run("-c", conf)
    assert done.code != 0
    assert f"there is no folder {tmp_path}/nowhere" in done.err and "create it for the user of the workers" in done.err


@needs_postgres
def test_postgres_lost_connection_keeps_transactions_atomic(monkey, site, request):
    """All sessions are terminated under load: each transaction takes effect completely or not at all."""
    postgres = request.getfixturevalue("cluster")
    server = start(monkey, site, "postgres", request, workers=1)
    first, second = balance(server)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(lambda: server.get("/move?how=commit").text) for _ in range(60)]
        postgres.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'd{postgres.n}'")
        done = sum(job.result().startswith("[]") for job in jobs)
    left, right = wait_until(lambda: isinstance(run(server, "SELECT 1 AS one"), list) and balance(server), "the server recovers")
    assert left + right == first + second
    assert done <= right - second <= 60


SERVERS = [
    ("", "[POSTGRES] has no Server"),
    ("    Server nonsense\n", 'missing "=" after "nonsense"'),
    ("    Server host=a.test,b.test port=1,2,3\n", "there are 2 hosts, but 3 ports"),
    ("    Server host=a.test,b.test hostaddr=127.0.0.1\n", "`host` has 2 entries, but `hostaddr` has 1"),
    (f"    Server host={','.join(['a.test'] * 17)}\n", "more than 16 hosts"),
    ("    Server client_encoding=SJIS\n", "client_encoding must be UTF8"),
]


@needs_postgres
@pytest.mark.parametrize("keys, message", SERVERS, ids=[message for _, message in SERVERS])
def test_postgres_section_rejects_invalid_servers(run, tmp_path, keys, message):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-postgres\n[POSTGRES]\n{keys}"
                    "[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and message in done.err


@pytest.mark.skipif(not (services.has("sqlite") and services.has("postgres")), reason="one of the two databases is missing")
@pytest.mark.parametrize("name", ["main", "other"])
def test_database_names_must_be_unique(run, tmp_path, name):
    """Services find databases of both types by Name."""
    conf = tmp_path / "monkey.conf"
    conf.write_text("[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-sqlite\n    Load duda-postgres\n"
                    f"[SQLITE]\n    File a.db\n[POSTGRES]\n    Server host=127.0.0.1\n    Name {name}\n[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf)
    output = "monkey.conf:10:10: error: another [SQLITE] or [POSTGRES] already has the Name `main`: services find databases by their Name"
    assert (done.code, output in done.err) == ((3, True) if name == "main" else (0, False)), done.err


def test_sql_parameter_of_wrong_type_is_reported_once(tmp_path):
    source = tmp_path / "wrong.c"
    source.write_text("#define DUDA_USE \"duda-sql\"\n#include <duda.h>\n#include <duda/sql.h>\nint f(struct duda_ctx *d, struct duda_sql_db *db, mk_str who);\n"
                      "int f(struct duda_ctx *d, struct duda_sql_db *db, mk_str who)\n{\n"
                      "    return duda_sql_query(d, db, NULL, \"SELECT $1, $2\", duda_sql_integer(5), who);\n}\n")
    done = subprocess.run([services.COMPILER, *services.FLAGS, "-fsyntax-only", source], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode and done.stderr.count("incompatible type") == 1, done.stderr
    assert len(done.stderr.splitlines()) <= 40, done.stderr
