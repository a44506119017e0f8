# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL-specific features: notifications, COPY streams, and connection strings with several hosts."""
import contextlib
import errno
import os
import pwd
import re
import select
import signal
import time
import urllib.parse

import pytest

import certificates
import postgres_server
import proc
import redis_server
import services
import sockets
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("postgres") or not postgres_server.is_usable(),
                                reason="this build has no libpq, or there is no PostgreSQL")

SOURCE = r"""
#define DUDA_USE "duda-sql", "duda-postgres"
#include <duda.h>
#include <duda/postgres.h>
#include <duda/sql.h>
#include <errno.h>

/* /run?sql=TEXT&a=VALUE&b=VALUE: the first value of the first row. */
static int run(struct duda_ctx *d)
{
    struct duda_sql_result result;
    const struct duda_sql_value all[] = {duda_sql_text(duda_query(d, "a")), duda_sql_text(duda_query(d, "b"))};
    size_t n = (size_t)(all[0].text.p != NULL) + (all[1].text.p != NULL);
    int e = duda_sql_query_values(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""), all, n);
    if (e == -ECANCELED)
        return e;
    if (e)
        return duda_printf(d, "%d %.*s", -e, MK_STR_ARG(result.error));
    if (!result.n_rows || !result.n_columns)
        return duda_puts(d, "nothing");
    const struct duda_sql_value *v = duda_sql_cell(&result, 0, 0);
    return v->type == DUDA_SQL_INTEGER ? duda_printf(d, "%lld", (long long)v->number) : duda_write(d, v->text);
}

/* ---- Messages ---- */

/* /listen?channel=NAME&ms=N: `ready`, then one line per message until the message `end`. */
static int listen_to(struct duda_ctx *d)
{
    struct duda_postgres_sub *sub;
    int64_t ms = 0;
    mk_str text;
    duda_query_int(d, "ms", &ms);
    int e = duda_postgres_subscribe(d, duda_sql_find(d, NULL), duda_query(d, "channel"), &sub);
    if (e)
        return duda_printf(d, "%d", -e);
    e = duda_puts(d, "ready\n");
    while (!e && !(e = duda_flush(d))) {
        e = duda_postgres_receive(d, sub, ms ? (uint32_t)ms : MK_FOREVER, &text);
        if (e == -ECANCELED)
            return e;
        if (e == -ETIME || mk_str_eq(text, MK_STR("end")))
            break;
        e = e ? duda_printf(d, "lost %d\n", -e) : duda_printf(d, "%.*s\n", MK_STR_ARG(text));
    }
    duda_postgres_unsubscribe(sub);
    if (duda_postgres_receive(d, sub, MK_FOREVER, &text) != -EINVAL)
        return 500;
    return duda_puts(d, "over\n");
}

/* Messages that the callbacks have received. */
static char received[4096];
static struct duda_postgres_sub *first, *second;

static void add(const char *who, mk_str text)
{
    size_t n = strlen(received);
    struct mk_buf out = mk_buf_fixed(received + n, sizeof received - n - 1);
    mk_buf_addf(&out, "%s:%.*s ", who, MK_STR_ARG(text.p ? text : MK_STR("begun")));
}

static void on_first(void *ctx, mk_str text)
{
    add(ctx, text);
    if (mk_str_eq(text, MK_STR("stop")) && second) {
        duda_postgres_unsubscribe(second);
        duda_postgres_unsubscribe(first);
        first = second = NULL;
    }
}

static void on_second(void *ctx, mk_str text)
{
    add(ctx, text);
    if (mk_str_eq(text, MK_STR("end second"))) {
        duda_postgres_unsubscribe(second);
        second = NULL;
    }
}

static int start(struct mk_worker *w)
{
    int e = duda_postgres_subscribe_callback(w, NULL, MK_STR("prices"), on_first, (void *)"first", &first);
    e = e ? e : duda_postgres_subscribe_callback(w, NULL, MK_STR("prices"), on_second, (void *)"second", &second);
    if (duda_postgres_subscribe_callback(w, "none", MK_STR("prices"), on_first, NULL, NULL) != -ENODEV ||
        duda_postgres_subscribe_callback(w, NULL, MK_STR(""), on_first, NULL, NULL) != -EINVAL)
        return -EINVAL;
    return e;
}

static int show_received(struct duda_ctx *d)
{
    return duda_puts(d, received);
}

/* ---- COPY streams ---- */

static int tell(struct duda_ctx *d, int e, const struct duda_sql_result *result)
{
    if (e == -ECANCELED)
        return e;
    return e ? duda_printf(d, "%d %.*s", -e, MK_STR_ARG(result->error))
             : duda_printf(d, "%lld rows", (long long)result->rows_affected);
}

/* Streams the request body into the COPY statement of the query. */
static int import(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_postgres_copy *copy;
    char buffer[16384];
    ssize_t n = 0;
    int e = duda_postgres_copy(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""), &copy);
    while (!e && (n = duda_read(d, buffer, sizeof buffer)) > 0)
        e = duda_postgres_copy_write(d, copy, mk_str_of(buffer, (size_t)n));
    e = e ? e : n < 0 ? (int)n : duda_postgres_copy_end(d, copy);
    if (e && copy && duda_postgres_copy_end(d, copy) != e)
        return 500;
    if (e == -EEXIST ? !result.violation || !mk_str_eq(duda_sql_last_violation(d)->columns, MK_STR("id")) : result.violation != NULL)
        return 500;
    return tell(d, e, &result);
}

static int export(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_postgres_copy *copy;
    mk_str row;
    int64_t most = -1;
    int e = duda_postgres_copy(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""), &copy);
    duda_query_int(d, "most", &most);
    if (e)
        return tell(d, e, &result);
    duda_deadline(d, MK_FOREVER);
    while (most-- && !(e = duda_postgres_copy_read(d, copy, &row)) && row.p)
        e = duda_write(d, row);
    e = e ? e : duda_postgres_copy_end(d, copy);
    return tell(d, e, &result);
}

/* Copies n rows with values of all types. */
static int fill(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_postgres_copy *copy;
    int64_t n = 0;
    duda_query_int(d, "n", &n);
    int e = duda_postgres_copy(d, duda_sql_find(d, NULL), &result, "COPY kinds FROM STDIN", &copy);
    for (int64_t i = 0; i < n && !e; i++)
        e = duda_postgres_copy_write_row(d, copy, duda_sql_integer(i), duda_sql_real((double)i / 10),
                                  i ? duda_sql_text(MK_STR("a\\\n\t'\r\xc3\xa9\\N")) : duda_sql_null(),
                                  duda_sql_blob(MK_STR("\0\xff\\")));
    e = e ? e : duda_postgres_copy_end(d, copy);
    return tell(d, e, &result);
}

/* Uses COPY in a transaction. `how` is commit, rollback, leave, wrong (an invalid row), busy (another
   statement during the COPY), end (the transaction ends during the COPY), or early (COPY TO STDOUT is
   not read to its end). */
static int mixed(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    struct duda_sql_result result, other;
    struct duda_postgres_copy *copy = NULL;
    mk_str how = duda_query(d, "how"), row;
    int e = duda_sql_begin(d, db);
    e = e ? e : duda_sql_query(d, db, &result, "INSERT INTO goods (id, name) VALUES (1, 'one')");
    if (!e && mk_str_eq(how, MK_STR("early"))) {
        e = duda_postgres_copy(d, db, &result, "COPY (SELECT generate_series(1, 1000000)) TO STDOUT", &copy);
        e = e ? e : duda_postgres_copy_read(d, copy, &row);
        e = e ? e : duda_postgres_copy_end(d, copy);
        e = e ? e : duda_sql_query(d, db, &result, "SELECT 1");
        return tell(d, e, &result);
    }
    e = e ? e : duda_postgres_copy(d, db, &result, "COPY goods FROM STDIN", &copy);
    e = e ? e : duda_postgres_copy_write(d, copy, MK_STR("2\ttwo\n3\tthr"));
    if (!e && mk_str_eq(how, MK_STR("busy")) && duda_sql_query(d, db, &other, "SELECT 1") != -EALREADY)
        return 500;
    if (!e && mk_str_eq(how, MK_STR("end"))) {
        if (duda_sql_commit(d, db) != -EALREADY)
            return 500;
        return tell(d, duda_postgres_copy_write(d, copy, MK_STR("x")), &result);
    }
    e = e ? e : duda_postgres_copy_write(d, copy, mk_str_eq(how, MK_STR("wrong")) ? MK_STR("ee\tmore\n") : MK_STR("ee\n"));
    e = e ? e : duda_postgres_copy_end(d, copy);
    if (e || mk_str_eq(how, MK_STR("leave")))
        return tell(d, e, &result);
    struct duda_sql_result limit = {0};
    e = duda_sql_query(d, db, &limit, "SHOW statement_timeout");
    if (e || mk_str_eq(duda_sql_cell(&limit, 0, 0)->text, MK_STR("0")))
        return 500;
    e = mk_str_eq(how, MK_STR("rollback")) ? duda_sql_rollback(d, db) : duda_sql_commit(d, db);
    return tell(d, e, &result);
}

/* Quotes a text as a literal, and returns it as PostgreSQL reads it. */
static int quote(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_postgres_copy *copy;
    mk_str quoted = duda_postgres_quote(d, duda_query(d, "text")), row;
    if (!quoted.p)
        return 400;
    mk_str text = duda_sprintf(d, "COPY (SELECT encode(convert_to(%.*s, 'UTF8'), 'hex')) TO STDOUT", MK_STR_ARG(quoted));
    int e = duda_postgres_copy(d, duda_sql_find(d, NULL), &result, text.p, &copy);
    e = e ? e : duda_postgres_copy_read(d, copy, &row);
    return e ? tell(d, e, &result) : duda_write(d, mk_str_trim(row));
}

DUDA_SERVICE(rows, DUDA_START(start),
    DUDA_POST("/import", import, "Content."), DUDA_GET("/export", export, "Rows."), DUDA_GET("/fill", fill, "Values."),
    DUDA_GET("/mixed", mixed, "In a transaction."), DUDA_GET("/quote", quote, "A text."), DUDA_GET("/run", run, "Any statement."),
    DUDA_GET("/listen", listen_to, "Messages."), DUDA_GET("/received", show_received, "Messages of callbacks."));
"""


@pytest.fixture(scope="module")
def cluster():
    server = postgres_server.Postgres()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def victim():
    server = postgres_server.Postgres()
    yield server
    server.stop()


@pytest.fixture
def own(victim):
    """A server that the test may kill or freeze."""
    if victim.process.poll() is not None:
        victim.start()
    victim.each(signal.SIGCONT)
    return victim


SERVICE = []  # compiled once for all tests


@pytest.fixture(scope="module", autouse=True)
def service(tmp_path_factory):
    SERVICE[:] = [services.build(tmp_path_factory.mktemp("service"), "rows", SOURCE, packages=["sql", "postgres"])]


def start(monkey, _site, address, keys="", workers=1):
    server = monkey(plugins=SERVICE, server="    MaxBodySize 64M\n", top=f"[POSTGRES]\n    Server {address}\n{keys}", workers=workers)
    server.allow("with the Name `none`")
    return server


def run(server, sql, *values):
    return server.get("/run?" + urllib.parse.urlencode({"sql": sql} | dict(zip("ab", values)))).text


def notify(server, channel, text):
    run(server, "SELECT pg_notify($1, $2)", channel, text)


class Listener:
    """A request whose handler subscribes to a channel until it receives the message `end`."""

    def __init__(self, stack, server, channel, ms=0):
        self.c = stack.enter_context(server.connect())
        self.c.ask("/listen?" + urllib.parse.urlencode({"channel": channel, "ms": ms}))
        self.c.read_head()
        self.c.read_until(b"ready\n")

    def wait_for(self, line):
        return self.c.read_until(f"{line}\n".encode())


@pytest.mark.parametrize("form", ["hex", "escape"])
def test_bytea_is_decoded_in_both_output_formats(monkey, site, cluster, form):
    address = cluster.database()
    cluster.sql(f"ALTER DATABASE {address.rpartition('=')[2]} SET bytea_output = '{form}'")
    server = start(monkey, site, address)
    value = r"SELECT decode('00ff5c275c5c783020ff', 'hex')"
    assert server.get("/run?" + urllib.parse.urlencode({"sql": value})).body == bytes.fromhex("00ff5c275c5c783020ff")


# SQLSTATE (PostgreSQL manual, appendix A), and the error that duda_sql_query() returns for it.
STATES = {"23505": errno.EEXIST, "23P01": errno.EEXIST, "23503": errno.ERANGE, "23001": errno.ERANGE, "23502": errno.ERANGE,
          "23514": errno.ERANGE, "44000": errno.ERANGE, "23000": errno.ERANGE, "40001": errno.ESTALE, "40P01": errno.ESTALE, "22021": errno.EBADMSG,
          "57014": errno.ETIMEDOUT, "53100": errno.ENOSPC, "57P01": errno.ECONNRESET, "40003": errno.EREMOTEIO, "22012": errno.EREMOTEIO}


def test_sqlstate_maps_to_errno(monkey, site, cluster):
    server = start(monkey, site, cluster.database())
    for state, number in STATES.items():
        text = f"DO $$ BEGIN RAISE EXCEPTION 'why' USING ERRCODE = '{state}'; END $$"
        assert run(server, text) == f"{number} [POSTGRES] main: why", state


# ---- Notifications ----

@pytest.mark.parametrize("channel", ["orders", "Two Words", 'a"; DROP TABLE x; --', "é" * 31])
def test_notifications_reach_all_listeners_of_a_channel(monkey, site, cluster, channel):
    server = start(monkey, site, cluster.database())
    with contextlib.ExitStack() as stack:
        both = [Listener(stack, server, channel) for _ in range(2)]
        other = Listener(stack, server, "other")
        for text in ("one", "it's two", "end"):
            notify(server, channel, text)
        for listener in both:
            got = listener.wait_for("over")
            assert b"one\n" in got and b"it's two\n" in got, got
        notify(server, "other", "end")
        assert b"two" not in other.wait_for("over")
    assert run(server, "SELECT count(*) FROM pg_stat_activity WHERE query ~ '^(UN)?LISTEN' AND datname = current_database()") == "1"
    assert run(server, "SELECT count(*) FROM pg_listening_channels()") == "0", "a connection for statements has a subscription"


@pytest.mark.processes("the test counts the sleeps of a worker process")
@pytest.mark.parametrize("path", ["/listen?channel=x&ms=60000", "/run?sql=SELECT+pg_sleep(60)"])
def test_waiting_handler_does_not_wake_its_worker(monkey, site, cluster, path):
    server = start(monkey, site, cluster.database(), "    Timeout 30s\n")
    assert run(server, "SELECT 1") == "1"
    with server.connect() as c:
        c.ask(path)
        time.sleep(0.5)  # lets the wait begin: no statement can observe it
        before = proc.sleeps(server.workers[0])
        time.sleep(2)
        assert proc.sleeps(server.workers[0]) - before <= 3  # the worker must not poll every 100 or 250 ms


def test_client_disconnect_cancels_its_statement(monkey, site, cluster):
    address = cluster.database()
    server, other = (start(monkey, site, address, "    Timeout 60s\n    PoolSize 1\n") for _ in range(2))
    busy = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(50)' AND state = 'active'"
    with server.connect() as first, server.connect() as second:  # the handlers share one connection to PostgreSQL
        for c in (first, second):
            c.ask("/run?sql=SELECT+pg_sleep(50)")
            wait_until(lambda: run(other, busy) == "1", "the first statement runs")
    wait_until(lambda: run(other, busy) == "0", "both statements are cancelled")
    assert run(server, "SELECT 1") == "1"


def test_invalid_channel_names_are_rejected(monkey, site, cluster):
    server = start(monkey, site, cluster.database())
    for channel in ("", "x" * 64, "a%00b"):
        assert server.get(f"/listen?channel={channel}").text == "22"
    assert server.get("/listen?channel=x&ms=50").text == "ready\nover\n", "no message was published"


def test_slow_listener_learns_how_many_messages_were_dropped(monkey, site, cluster):
    server = start(monkey, site, cluster.database())
    with contextlib.ExitStack() as stack:
        slow = Listener(stack, server, "many")
        assert run(server, "SELECT count(pg_notify('many', 'n' || i)) FROM generate_series(1, 600) i") == "600"
        assert b"n1\n" in slow.wait_for("lost 75"), "the first messages arrive, then the number of dropped ones"
        notify(server, "many", "end")
        slow.wait_for("over")


def test_callbacks_receive_notifications_and_reconnects(monkey, site, own):
    server = start(monkey, site, own.database(), "    Timeout 500ms\n")
    server.allow("POSTGRES")

    def wait_for_callback(text):
        return wait_until(lambda: server.get("/received").text if text in server.get("/received").text else None, text)

    assert sorted(wait_for_callback("second:begun ").split()) == ["first:begun", "second:begun"]
    notify(server, "prices", "up")
    wait_for_callback("second:up ")
    own.kill()
    own.start()
    before = wait_until(lambda: t if (t := server.get("/received").text).count("begun") == 4 else None, "the callbacks reconnect")
    assert before.count("first:begun") == 2
    wait_until(lambda: run(server, "SELECT 1") == "1", "the server answers again")
    notify(server, "prices", "end second")
    wait_for_callback("second:end second ")
    notify(server, "prices", "down")
    assert "second:down" not in wait_for_callback("first:down ")


def test_callback_may_unsubscribe_others(monkey, site, cluster):
    server = start(monkey, site, cluster.database())
    wait_until(lambda: server.get("/received").text.count("begun") == 2, "both callbacks are subscribed")
    notify(server, "prices", "stop")
    wait_until(lambda: "first:stop" in server.get("/received").text, "the first callback has received it")
    notify(server, "prices", "more")
    assert run(server, "SELECT 1") == "1" and "more" not in server.get("/received").text


@pytest.mark.parametrize("how", ["killed", "restarted", "frozen", "ended"])
def test_listener_resubscribes_after_an_outage(monkey, site, own, how):
    """Listeners resubscribe automatically. The warning about lost messages comes after that, not before."""
    server = start(monkey, site, own.database(), "    Timeout 500ms\n")
    server.allow("POSTGRES")
    with contextlib.ExitStack() as stack:
        listener = Listener(stack, server, "news")
        notify(server, "news", "before")
        listener.wait_for("before")
        if how == "killed":
            own.kill()
            own.start()
        elif how == "restarted":
            own.process.send_signal(signal.SIGINT)
            own.process.wait()
            own.start()
        elif how == "frozen":
            own.each(signal.SIGSTOP)
            server.err.wait_for(r"\[POSTGRES\] main: ")
            own.each(signal.SIGCONT)
        else:
            own.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
        listener.wait_for("lost 104")
        wait_until(lambda: run(server, "SELECT 1") == "1", "statements succeed again")
        notify(server, "news", "after")
        listener.wait_for("after")
        notify(server, "news", "end")
        listener.wait_for("over")


def test_listen_fails_while_the_server_is_down(monkey, site, own):
    address = own.database()
    own.kill()
    server = start(monkey, site, address, "    Timeout 300ms\n")
    server.allow("POSTGRES")
    assert server.get("/listen?channel=x").text == "110"
    own.start()
    wait_until(lambda: server.get("/listen?channel=x&ms=10").text == "ready\nover\n", "the server answers again")


# ---- COPY streams ----

GOODS = "CREATE TABLE goods (id INTEGER PRIMARY KEY, name TEXT NOT NULL)"


@pytest.fixture
def goods(monkey, site, cluster):
    server = start(monkey, site, cluster.database())
    assert run(server, GOODS) == "nothing"
    return server


def copy_in(server, content, sql="COPY goods FROM STDIN (FORMAT csv)"):
    return server.get("/import?" + urllib.parse.urlencode({"sql": sql}), "POST", [], content).text


def copy_out(server, sql, **more):
    return server.get("/export?" + urllib.parse.urlencode({"sql": sql} | more))


def is_idle(server):
    """Checks that all sessions of this database are idle and that their settings are reset."""
    wait_until(lambda: run(server, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                           "state <> 'idle' AND pid <> pg_backend_pid()") == "0", "all sessions are idle")
    assert all(run(server, f"SHOW {setting}") != changed for _ in range(8)
               for setting, changed in (("statement_timeout", "0"), ("client_min_messages", "error")))
    return True


def test_copy_imports_and_exports_rows(goods):
    lines = [f"{i},thing {i}\n" for i in range(50_000)]
    assert copy_in(goods, "".join(lines).encode()) == "50000 rows"
    out = copy_out(goods, "COPY (SELECT * FROM goods ORDER BY id) TO STDOUT (FORMAT csv)")
    assert out.text == "".join(lines) + "50000 rows"
    assert copy_in(goods, b"") == "0 rows"
    binary = copy_out(goods, "COPY (SELECT * FROM goods WHERE id < 10) TO STDOUT (FORMAT binary)").body.removesuffix(b"10 rows")
    run(goods, "DELETE FROM goods")
    assert copy_in(goods, binary, "COPY goods FROM STDIN (FORMAT binary)") == "10 rows"
    assert run(goods, "SELECT max(name) FROM goods") == "thing 9"
    assert is_idle(goods)


def test_copy_writes_values_of_all_types(goods):
    run(goods, "CREATE TABLE kinds (i BIGINT, r DOUBLE PRECISION, t TEXT, b BYTEA)")
    assert goods.get("/fill?n=30000").text == "30000 rows"
    assert run(goods, "SELECT count(*) FROM kinds WHERE b = '\\x00ff5c' AND r = i / 10.0") == "30000"
    assert run(goods, "SELECT count(*) FROM kinds WHERE t IS NULL") == "1"
    assert run(goods, "SELECT t FROM kinds WHERE i = 7") == "a\\\n\t'\ré\\N"


WRONG = [
    (b"1,one\n2x,two\n", "74 ", '[POSTGRES] main: invalid input syntax for type integer: "2x" (COPY goods, line 2, column id: "2x")'),
    (b"1,one\n2\n", "74 ", 'missing data for column "name" (COPY goods, line 2: "2")'),
    (b"1,one\n1,two\n", "17 ", "duplicate key value violates unique constraint"),
    (b"1,\xff\n", "74 ", "invalid byte sequence"),
    (b"2x,one\n" + b"1,one\n" * 3_000_000, "74 ", "(COPY goods, line 1, column id"),
]


@pytest.mark.parametrize("content, number, message", WRONG, ids=range(len(WRONG)))
def test_copy_of_an_invalid_row_reports_its_line(goods, content, number, message):
    answer = copy_in(goods, content)
    assert answer.startswith(number) and message in answer, answer
    assert run(goods, "SELECT count(*) FROM goods") == "0"
    assert copy_in(goods, b"1,one\n") == "1 rows" and is_idle(goods)


@pytest.mark.parametrize("text", ["BEGIN", "SET search_path = x", "INSERT INTO goods VALUES (1, 'one')", "COPY goods FROM '/dev/null'"])
def test_statement_other_than_copy_is_not_executed(goods, text):
    """Such a statement would change the state of a connection that other handlers use next."""
    for answer in (copy_in(goods, b"", text), copy_out(goods, text).text):
        assert answer.startswith("22 ") and "not a COPY FROM STDIN or TO STDOUT" in answer, answer
    assert all(run(goods, "SHOW search_path") == '"$user", public' for _ in range(8))
    assert run(goods, "SELECT count(*) FROM goods") == "0"
    assert run(goods, "INSERT INTO goods VALUES (2, 'two')") == "nothing" and is_idle(goods)


SPEAK = "CREATE FUNCTION speak() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s; RETURN NEW; END $$"
SPEAKS = "CREATE TRIGGER speaks BEFORE INSERT ON goods FOR EACH ROW EXECUTE FUNCTION speak()"


@pytest.mark.parametrize("speaks", [False, True])
def test_copy_error_ends_a_long_upload(goods, speaks):
    """The error is reported during the upload, not after it."""
    piece, size = b"1,one\n" * 10_000, 60_000_000
    if speaks:
        run(goods, SPEAK % "RAISE WARNING '%', NEW.id")
        run(goods, SPEAKS)
    with goods.connect() as c:
        c.send(b"POST /import?sql=COPY+goods+FROM+STDIN HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
               b"1\tone\n2x\tone\n" % size)
        sent = 13
        while sent < size - len(piece) and not select.select([c.sock], [], [], 0)[0]:
            c.send(piece)
            sent += len(piece)
        assert sent < size - len(piece) and "COPY goods, line 2, column id" in c.read("POST").text
    assert is_idle(goods)


@pytest.mark.parametrize("sql", ["SELECT 1", "", "nonsense", "COPY nothing FROM STDIN", "COPY goods FROM STDIN; SELECT 1"])
def test_copy_of_an_unsupported_statement_fails(goods, sql):
    run(goods, "INSERT INTO goods (id, name) VALUES (1, 'one')")
    for answer in (copy_in(goods, b"", sql), copy_out(goods, sql).text):
        assert answer[:3] in ("22 ", "121"), answer
    assert is_idle(goods)


def test_copy_error_during_the_export_is_reported(goods):
    run(goods, "INSERT INTO goods (id, name) SELECT i, 'x' FROM generate_series(1, 20000) i")
    answer = copy_out(goods, "COPY (SELECT 100 / (19000 - id) FROM goods ORDER BY id) TO STDOUT").text
    assert answer.count("\n") == 18999 and answer.endswith("\n74 [POSTGRES] main: division by zero"), answer[-99:]
    assert is_idle(goods)


@pytest.mark.parametrize("speaks", [
    "RAISE INFO 'a row %', repeat('x', 100)", "RAISE INFO '%', repeat('x', NEW.id % 2 * 50000)",
    "RAISE WARNING '%', repeat('x', NEW.id % 2 * 50000)",
    "PERFORM set_config('TimeZone', 'Etc/GMT+' || NEW.id % 10, false)"], ids=["often", "long", "a warning", "parameters"])
def test_notices_of_the_server_do_not_stop_a_copy(goods, speaks):
    run(goods, SPEAK % speaks)
    run(goods, SPEAKS)
    content = "".join(f"{i},{'thing' * 20}\n" for i in range(5_000)).encode()
    assert copy_in(goods, content) == "5000 rows" and is_idle(goods)


def test_copy_takes_part_in_transactions(goods):
    def do(how):
        answer = goods.get(f"/mixed?how={how}")
        n = run(goods, "SELECT count(*) FROM goods")
        run(goods, "DELETE FROM goods")
        return answer.text, n

    assert do("commit") == ("2 rows", "3")
    assert do("busy") == ("2 rows", "3")
    assert do("rollback") == ("2 rows", "0") and do("leave") == ("2 rows", "0")
    answer, n = do("wrong")
    assert answer.startswith("74 ") and "line 2" in answer and n == "0"
    answer, n = do("end")
    assert answer.startswith("22 ") and n == "0"
    answer, n = do("early")
    assert answer.startswith("104 ") and n == "0", "an unfinished COPY closes the connection and aborts the transaction"
    assert is_idle(goods)


@pytest.mark.parametrize("text", ["", "it's", "\\'; DROP TABLE goods; --", "$1 $$", "é\n\t", "\\\\", "x'||'y"])
def test_quoted_text_is_read_unchanged(goods, text):
    assert bytes.fromhex(goods.get("/quote?" + urllib.parse.urlencode({"text": text})).text).decode() == text


def test_text_with_nul_cannot_be_quoted(goods):
    assert goods.get("/quote?text=a%00b").status == 400
    assert goods.get("/quote").text.strip() == "\\N", "an absent value becomes NULL"


def test_client_disconnect_cancels_its_copy(goods):
    """The running statement is cancelled: otherwise PostgreSQL would notice the disconnect only much later."""
    busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active' AND datname = current_database()"
    for sql in ("COPY (SELECT generate_series(1, 1000000000)) TO STDOUT", "COPY (SELECT pg_sleep(3600)) TO STDOUT"):
        with goods.connect() as c:
            c.ask("/export?" + urllib.parse.urlencode({"sql": sql}))
            wait_until(lambda: run(goods, busy) == "1", "the statement runs")
        wait_until(lambda: run(goods, busy) == "0", "the statement is cancelled")
    with goods.connect() as c:
        c.send(b"POST /import?sql=COPY+goods+FROM+STDIN HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n1\tone\n")
        wait_until(lambda: run(goods, busy) == "1", "the statement runs")
    wait_until(lambda: run(goods, busy) == "0", "the statement is cancelled")
    assert run(goods, "SELECT count(*) FROM goods") == "0" and is_idle(goods)
    assert copy_out(goods, "COPY (SELECT generate_series(1, 1000000)) TO STDOUT", most=2).text == "1\n2\n0 rows"
    assert is_idle(goods)


def test_slow_client_applies_backpressure_to_the_server(goods):
    """Rows that a slow reader has not read yet do not accumulate in the server's memory, in either direction."""
    def memory():
        return sum(map(proc.memory_kb, goods.workers))

    before = memory()
    with goods.connect(receive_buffer=4096) as c:
        c.ask("/export?" + urllib.parse.urlencode({"sql": "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 200000)) TO STDOUT"}))
        wait = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite' AND datname = current_database()"
        wait_until(lambda: run(goods, wait) == "1", "the server is blocked on the client")
        assert memory() - before < 60_000


@pytest.mark.parametrize("way", ["in", "out"])
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_server_outage_during_a_copy_is_an_error(monkey, site, own, way, how):
    server = start(monkey, site, own.database(), "    Timeout 500ms\n    PoolSize 2\n")
    server.allow("POSTGRES")
    run(server, GOODS)
    at_work = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active' AND datname = current_database()"
    with server.connect() as c:
        if way == "in":
            c.send(b"POST /import?sql=COPY+goods+FROM+STDIN HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n1\t")
        else:
            c.ask("/export?" + urllib.parse.urlencode({"sql": "COPY (SELECT pg_sleep(0.3) FROM generate_series(1, 99)) TO STDOUT"}))
        wait_until(lambda: run(server, at_work) == "1", "the statement runs")
        if how == "killed":
            own.kill()
        else:
            own.each(signal.SIGSTOP)
        if way == "in":
            c.send(b"one\n")
        answer = c.read("GET")
        assert re.search(r"(104|110) \[POSTGRES\] main: ", answer.text), answer.text
    if how == "killed":
        own.start()
    else:
        own.each(signal.SIGCONT)
    # A server frozen after it received all rows may still complete the statement, like any other statement.
    done = ("0", "1") if (way, how) == ("in", "frozen") else ("0",)
    wait_until(lambda: run(server, "SELECT count(*) FROM goods") in done, "the server answers again")


# ---- Connection strings ----

def test_default_user_is_that_of_the_workers(monkey, site, cluster):
    name = pwd.getpwuid(os.geteuid()).pw_name
    cluster.sql(f'CREATE ROLE "{name}" LOGIN')
    server = start(monkey, site, cluster.database().replace("user=ana ", ""))
    assert run(server, "SELECT current_user::text") == name


def test_hosts_are_tried_in_order(monkey, site):
    """The reachable host is listed alone, after a name that does not resolve, or after a server that refuses the
    connection."""
    other = sockets.free_port()
    postgres = redis_server.start_at_port(lambda port: postgres_server.Postgres(port=port))
    try:
        name = postgres.database().rpartition("=")[2]
        for hosts, ports in (("localhost", f"{postgres.port}"), ("localhost,localhost", f"{other},{postgres.port}"),
                             ("nowhere.invalid,127.0.0.1", f"{other},{postgres.port}")):
            server = start(monkey, site, f"host={hosts} port={ports} user=ana dbname={name} target_session_attrs=read-write")
            assert run(server, "SELECT 1") == "1"
            assert server.get("/listen?channel=x&ms=10").text == "ready\nover\n"
            server.stop()
        server = start(monkey, site, f"postgresql://ana@localhost:{postgres.port}/{name}?target_session_attrs=standby")
        server.allow("POSTGRES")
        assert "111 " in run(server, "SELECT 1"), "the server is not a standby"
        server.stop()
    finally:
        postgres.stop()
    server = start(monkey, site, "host=nowhere.invalid user=ana")
    server.allow("POSTGRES")
    assert run(server, "SELECT 1").startswith("111 [POSTGRES] main: nowhere.invalid: ")


def test_unresponsive_host_is_not_tried_first_again(monkey, site, own):
    """The frozen server accepts connections but never responds: the next attempt starts with the other host."""
    frozen = postgres_server.Postgres()
    try:
        address = own.database()
        frozen.each(signal.SIGSTOP)
        server = start(monkey, site, address.replace(own.folder, f"{frozen.folder},{own.folder}"), "    Timeout 300ms\n")
        server.allow("POSTGRES")
        wait_until(lambda: run(server, "SELECT 1") == "1", "the second host answers")
    finally:
        frozen.stop()


def test_certificate_must_match_the_host_name(monkey, site, tmp_path):
    authority = certificates.make_authority(tmp_path)
    pair, other = authority.issue(["localhost"]), authority.issue(["db.test"])
    postgres = redis_server.start_at_port(lambda port: postgres_server.Postgres(port=port, pair=pair))
    try:
        name = postgres.database().rpartition("=")[2]
        address = f"host=localhost port={postgres.port} user=ana dbname={name} sslmode=verify-full sslrootcert={authority.file}"
        server = start(monkey, site, address)
        assert run(server, "SELECT 1") == "1"
        assert run(server, "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()").startswith("TLS")
        server.stop()
        postgres.show(other)
        postgres_server.run("pg_ctl", "-D", f"{postgres.folder}/data", "reload")
        server = start(monkey, site, address)
        server.allow("POSTGRES")
        wait_until(lambda: 'for "db.test" does not match host name "localhost"' in run(server, "SELECT 1"),
                   "the other certificate is rejected")
    finally:
        postgres.stop()
