# SPDX-License-Identifier: Apache-2.0
"""Sends hostile values over HTTP through every parameter of the packages: each value arrives unchanged or is rejected.
No value can inject a command, a statement, a header, a recipient, a formula or markup."""
import csv
import email
import email.policy
import io
import re
import xml.etree.ElementTree
from urllib.parse import quote_from_bytes

import pytest

import mail_server
import memcached_server
import postgres_server
import redis_server
import services
from backend import Backend, response

PACKAGES = ["kv", "redis", "memcached", "sql", "postgres", "http", "store", "jobs", "smtp", "small", "qr"]

pytestmark = pytest.mark.skipif(
    not all(services.has(package) for package in [*PACKAGES, "sqlite"]) or not redis_server.PROGRAM or
    not memcached_server.PROGRAM or not postgres_server.is_usable(), reason="a package or its server is missing")

SOURCE = r"""
#define DUDA_USE "duda-kv", "duda-redis", "duda-memcached", "duda-sql", "duda-postgres", "duda-http", "duda-store", "duda-jobs", "duda-smtp"
#include <duda.h>
#include <duda/chart.h>
#include <duda/csv.h>
#include <duda/http.h>
#include <duda/jobs.h>
#include <duda/kv.h>
#include <duda/memcached.h>
#include <duda/postgres.h>
#include <duda/qr.h>
#include <duda/redis.h>
#include <duda/smtp.h>
#include <duda/sql.h>
#include <duda/store.h>
#include <errno.h>

#define WORD MK_STR("word")

/* Reports the error number, or 0 and the returned value. */
static int tell(struct duda_ctx *d, int e, mk_str back)
{
    if (e == -ECANCELED)
        return e;
    duda_printf(d, "%d|", -e);
    return e ? 0 : duda_write(d, back);
}

/* For hostile keys: reports the key `v` if the value stored under it is `word`, as it must be. */
static int back_for(struct duda_ctx *d, int e, mk_str back, mk_str v)
{
    return tell(d, e, !e && mk_str_eq(back, WORD) ? v : back);
}

static bool is_part(struct duda_ctx *d, const char *what)
{
    return mk_str_eq(duda_param(d, "part"), mk_str_from_c(what));
}

/* Counts entries whose keys have the prefix, and all others. */
struct found {
    mk_str prefix;
    int n, n_others;
};

static bool each(void *ctx, mk_str key, mk_str value)
{
    struct found *f = ctx;
    (void)value;
    f->n++;
    f->n_others += !mk_str_starts(key, f->prefix);
    return true;
}

static int use_kv(struct duda_ctx *d)
{
    struct duda_kv *kv = duda_kv_find(d, "main");
    mk_str v = duda_query(d, "v"), back = MK_STR_NULL, key = is_part(d, "value") ? WORD : v;
    struct found f = {v, 0, 0};
    int e = duda_kv_set(d, kv, key, is_part(d, "value") ? v : WORD, 0);
    e = e ? e : duda_kv_get(d, kv, key, &back);
    if (is_part(d, "prefix")) {
        e = e ? e : duda_kv_scan(d, kv, v, MK_STR_NULL, each, &f);
        back = f.n && !f.n_others ? v : WORD;
    }
    return back_for(d, e, back, v);
}

static int use_store(struct duda_ctx *d)
{
    struct duda_store *s = duda_store_find(d, duda_query_or(d, "store", ""));
    mk_str v = duda_query(d, "v"), back = WORD, key = is_part(d, "value") ? WORD : v;
    struct duda_store_lock lock;
    int64_t n;
    if (is_part(d, "lock")) {
        int e = duda_store_lock(d, s, duda_sprintf(d, "k%.*s", MK_STR_ARG(v)), 86400000, 0, &lock);
        return back_for(d, e ? e : duda_store_unlock(d, &lock), back, v);
    }
    if (is_part(d, "limit"))
        return back_for(d, duda_store_rate_limit(d, s, duda_sprintf(d, "l%.*s", MK_STR_ARG(v)), 1000, 86400000), back, v);
    if (is_part(d, "count"))
        return back_for(d, duda_store_incr(d, s, duda_sprintf(d, "c%.*s", MK_STR_ARG(v)), 1, 86400000, &n), back, v);
    int e = duda_store_set(d, s, key, is_part(d, "value") ? v : WORD, 86400000);
    e = e ? e : duda_store_get(d, s, key, &back);
    e = e ? e : duda_store_delete_if(d, s, key, back);
    return back_for(d, e, back, v);
}

static int use_redis(struct duda_ctx *d)
{
    static struct duda_redis_script script = {.source = "return KEYS[1]..'|'..ARGV[1]"};
    struct duda_redis *r = duda_redis_find(d, NULL);
    struct duda_redis_reply reply;
    mk_str v = duda_query(d, "v");
    const mk_str both[] = {v, v}, set[] = {MK_STR("SET"), v, v}, get[] = {MK_STR("GET"), v};
    const struct duda_redis_command commands[] = {{set, 3}, {get, 2}};
    struct duda_redis_reply replies[2];
    int e;
    if (is_part(d, "command"))
        return tell(d, duda_redis(d, r, &reply, v), WORD);
    if (is_part(d, "script")) {
        e = duda_redis_eval(d, r, &reply, &script, 1, both, 2);
        return tell(d, e, !e && reply.text.len == 2 * v.len + 1 ? mk_str_first(reply.text, v.len) : reply.text);
    }
    if (is_part(d, "transaction") || is_part(d, "many")) {
        e = (is_part(d, "many") ? duda_redis_pipeline : duda_redis_transaction)(d, r, commands, 2, replies);
        e = e ? e : duda_redis(d, r, &reply, MK_STR("DEL"), v);
        return tell(d, e, replies[1].text);
    }
    if (is_part(d, "publish")) {
        e = duda_redis(d, r, &reply, MK_STR("PUBLISH"), v, v);
        return tell(d, e, reply.number == 0 ? v : WORD);
    }
    return tell(d, duda_redis(d, r, &reply, MK_STR("ECHO"), v), reply.text);
}

static int use_memcache(struct duda_ctx *d)
{
    struct duda_memcached *m = duda_memcached_find(d, NULL);
    mk_str v = duda_query(d, "v"), back = MK_STR_NULL, key = is_part(d, "value") ? WORD : v;
    int e = duda_memcached_set(d, m, key, is_part(d, "value") ? v : WORD, 0);
    struct duda_memcached_item item = {.key = key};
    if (is_part(d, "many")) {
        e = e ? e : duda_memcached_get_many(d, m, &item, 1);
        return back_for(d, e, item.value, v);
    }
    e = e ? e : duda_memcached_get(d, m, key, &back);
    return back_for(d, e, back, v);
}

static int use_sql(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, duda_query_or(d, "db", ""));
    struct duda_sql_result result;
    mk_str v = duda_query(d, "v");
    int e;
    if (is_part(d, "blob")) {
        e = duda_sql_query(d, db, &result, "INSERT INTO blobs (b) VALUES ($1)", duda_sql_blob(v));
        e = e ? e : duda_sql_query(d, db, &result, "SELECT b FROM blobs WHERE b = $1", duda_sql_blob(v));
    } else if (is_part(d, "quoted")) {
        mk_str quoted = duda_postgres_quote(d, v);
        e = quoted.p ? duda_sql_query(d, db, &result, duda_sprintf(d, "SELECT %.*s", MK_STR_ARG(quoted)).p) : -EBADMSG;
    } else {
        e = duda_sql_query(d, db, &result, "SELECT CAST($1 AS TEXT)", duda_sql_text(v));
    }
    return tell(d, e, e ? MK_STR_NULL : duda_sql_cell(&result, 0, 0)->text);
}

static int done(struct duda_ctx *d, const struct duda_job *job)
{
    struct duda_redis_reply reply;
    return duda_redis(d, duda_redis_find(d, NULL), &reply, MK_STR("SET"), MK_STR("job"), job->payload);
}

static const struct duda_job_type kind = {.name = "work", .fn = done};

static int start(struct mk_worker *worker)
{
    return duda_jobs_register(worker, &kind);
}

static int use_jobs(struct duda_ctx *d)
{
    mk_str v = duda_query(d, "v");
    const struct duda_job_options how = {.unique_key = v, .delay_ms = 1000000};
    if (is_part(d, "kind"))
        return tell(d, duda_jobs_enqueue(d, v.p, WORD, NULL, NULL), WORD);
    if (is_part(d, "id"))
        return tell(d, duda_jobs_retry(d, "work", v), WORD);
    if (is_part(d, "unique")) {
        int e = duda_jobs_enqueue(d, "later", WORD, &how, NULL), again = duda_jobs_enqueue(d, "later", WORD, &how, NULL);
        return tell(d, e, again == -EEXIST ? v : WORD);
    }
    return tell(d, duda_jobs_enqueue(d, "work", v, NULL, NULL), v);
}

static int use_http(struct duda_ctx *d)
{
    mk_str v = duda_query(d, "v");
    const struct mk_header field = {is_part(d, "name") ? v : MK_STR("X-Field"), is_part(d, "field") ? v : WORD};
    const struct duda_http_request request = {.method = is_part(d, "method") ? v : MK_STR("POST"),
                                              .target = is_part(d, "target")    ? v
                                                        : is_part(d, "escaped") ? duda_sprintf(d, "/%.*s", MK_STR_ARG(duda_query(d, "e")))
                                                                                : MK_STR("/x"),
                                              .headers = &field,
                                              .n_headers = 1,
                                              .content_type = is_part(d, "type") ? v : MK_STR("text/plain"),
                                              .body = is_part(d, "content") ? v : WORD};
    struct duda_http_response r;
    return tell(d, duda_http_fetch(d, duda_http_find(d, NULL), &request, &r), MK_STR("asked"));
}

static int use_smtp(struct duda_ctx *d)
{
    mk_str v = duda_query(d, "v"), to = is_part(d, "to") ? v : MK_STR("ana@example.org");
    const struct duda_mail m = {.from = is_part(d, "from") ? v : MK_STR("a@example.org"),
                                .to = &to,
                                .n_to = 1,
                                .reply_to = is_part(d, "reply") ? v : MK_STR_NULL,
                                .subject = is_part(d, "subject") ? v : WORD,
                                .content_type = is_part(d, "type") ? v : MK_STR_NULL,
                                .body = is_part(d, "text") ? v : WORD};
    struct duda_smtp_result r;
    return tell(d, duda_smtp_send(d, duda_smtp_find(d, NULL), &m, &r), MK_STR("sent"));
}

static int use_formats(struct duda_ctx *d)
{
    mk_str v = duda_query(d, "v");
    const double values[] = {1, 2};
    const struct duda_chart_series series = {.name = v, .values = values, .n = 2};
    const mk_str labels[] = {v, WORD};
    const struct duda_chart chart = {.title = v, .labels = labels, .n_labels = 2, .series = &series, .n_series = 1};
    struct mk_buf out = mk_buf_growing(1 << 20);
    struct duda_csv_writer w = {.out = &out, .escape_formulas = true, .separator = duda_query_or(d, "separator", ",")[0]};
    int e = 0;
    if (is_part(d, "csv")) {
        duda_csv_add(&w, WORD);
        duda_csv_add(&w, v);
        duda_csv_end_row(&w);
    } else {
        e = is_part(d, "qr") ? duda_qr_svg(&out, v, DUDA_QR_LOW, 100) : duda_chart_svg(&out, &chart);
    }
    e = tell(d, e, mk_buf_str(&out));
    mk_buf_free(&out);
    return e;
}

DUDA_SERVICE(tries, DUDA_START(start), DUDA_GET("/kv/:part", use_kv, ""), DUDA_GET("/store/:part", use_store, ""),
             DUDA_GET("/redis/:part", use_redis, ""), DUDA_GET("/memcache/:part", use_memcache, ""),
             DUDA_GET("/sql/:part", use_sql, ""), DUDA_GET("/jobs/:part", use_jobs, ""), DUDA_GET("/http/:part", use_http, ""),
             DUDA_GET("/smtp/:part", use_smtp, ""), DUDA_GET("/formats/:part", use_formats, ""));
"""

HOSTILE = [
    b"a b", b"\r\nflush_all\r\n", b"x 1\r\nmd canary\r\n", b"*1\r\n$8\r\nFLUSHALL\r\n", b"\n", b"\0", b"a\0b", b"\xff\xfe",
    b"'; DELETE FROM canaries; --", b"$1", b"\\'; DELETE FROM canaries; --", b'"; DROP TABLE canaries; --', b"{a}{", b"*", b"%s%n",
    b"a\r\nBcc: eve@example.org", b"a@example.org>\r\nRCPT TO:<eve@example.org>", b"a@example.org, eve@example.org", b".\r\nQUIT\r\n",
    b"<script>alert(1)</script>", b'"/><script>alert(1)</script>', b"]]>&<!--", b"=cmd|' /C calc'!A0", b"+1", b"-1", b"@SUM(1)", b"\t=1",
    b"\n=1", b"x;=1+1", b"x\t=1", b'a"b,c', b"/../../etc/passwd", b"/a HTTP/1.1\r\nX: y\r\n\r\nGET /b", b"Content-Length",
    "é".encode(), b"-", "＝1".encode(), "＋1".encode(), "－1".encode(), "＠1".encode(),
]
UTF8 = [v for v in HOSTILE if v != b"\xff\xfe"]


class World:
    """Starts all servers that the packages connect to."""

    def __init__(self):
        self.redis, self.memcached, self.postgres = redis_server.Redis(), memcached_server.Memcached(), postgres_server.Postgres()
        self.boxes = mail_server.boxes()
        self.mail = self.boxes.__enter__()()
        self.backend = Backend(lambda request: response("x"))
        self.database = self.postgres.database()
        self.postgres.sql("CREATE TABLE canaries (n int); INSERT INTO canaries VALUES (1); CREATE TABLE blobs (b bytea)", "d1")
        self.redis.ask("SET", "canary", "alive")
        self.memcached.ask("ms canary 5\r\nalive")

    def start(self, monkey, site):
        folder = site.path.parent
        service = services.build(folder, "tries", SOURCE, packages=PACKAGES)
        (folder / "steps").mkdir()
        (folder / "steps/1-a.sql").write_text("CREATE TABLE canaries (n int); INSERT INTO canaries VALUES (1); CREATE TABLE blobs (b blob);")
        monkey(plugins=[service, "duda-sqlite"], workers=1, top=f"""
[KV]
    Folder {folder}/kv
[REDIS]
    Name far
    Server unix:{self.redis.socket}
[MEMCACHED]
    Servers unix:{self.memcached.socket}
[SQLITE]
    Name lite
    File {folder}/a.db
    Migrations {folder}/steps
[POSTGRES]
    Name pg
    Server {self.database}
[HTTP_CLIENT]
    Server {self.backend.address}
[SMTP]
    Server {self.mail.address}
""")

    def check(self):
        """Checks that no injected command was executed."""
        assert self.redis.ask("GET", "canary") == b"$5\r\nalive\r\n"
        assert self.memcached.ask("mg canary v") == b"VA 5\r\nalive\r\n"
        assert self.postgres.sql("SELECT count(*) FROM canaries", "d1") == "1"

    def stop(self):
        self.backend.stop()
        self.boxes.__exit__(None, None, None)
        for server in (self.redis, self.memcached, self.postgres):
            server.stop()


@pytest.fixture(scope="module")
def world():
    servers = World()
    yield servers
    servers.stop()


@pytest.fixture
def server(lasting, world):
    return lasting(vars(world).setdefault("prepare", world.start))


def attempt(server, path, value, **more):
    """Requests the path with this value; returns the error number and the value in the response."""
    query = "&".join(f"{name}={quote_from_bytes(text, safe='')}" for name, text in {"v": value, **more}.items())
    answer = server.get(f"{path}?{query}")
    assert answer.status == 200, (path, value, answer.status)
    number, _, back = answer.body.partition(b"|")
    return int(number), back


# These parameters accept arbitrary bytes, and the service returns the stored value.
ANY = {
    "/kv/key": {}, "/kv/value": {}, "/kv/prefix": {}, "/redis/argument": {}, "/redis/script": {}, "/redis/many": {}, "/redis/transaction": {},
    "/redis/publish": {}, "/memcache/key": {}, "/memcache/value": {}, "/memcache/many": {}, "/jobs/text": {}, "/jobs/unique": {},
    **{f"/store/{part} {store}": {"store": store.encode()} for part in ("key", "value", "lock", "limit", "count")
       for store in ("memory", "main", "far")},
    **{f"/sql/blob {db}": {"db": db.encode()} for db in ("lite", "pg")},
}


@pytest.mark.parametrize("parameter", ANY)
def test_bytes_are_returned_unchanged(server, world, parameter):
    for value in HOSTILE:
        assert attempt(server, parameter.split()[0], value, **ANY[parameter]) == (0, value), value
    world.check()


# These parameters accept text: UTF-8 without NUL.
TEXTS = {"/sql/text lite": b"lite", "/sql/text pg": b"pg", "/sql/quoted pg": b"pg"}


@pytest.mark.parametrize("parameter", TEXTS)
def test_text_never_becomes_a_statement(server, world, parameter):
    for value in UTF8:
        number, back = attempt(server, parameter.split()[0], value, db=TEXTS[parameter])
        assert (number, back) == ((74, b"") if b"\0" in value else (0, value)), value
    world.check()


def test_invalid_names_are_rejected(server, world):
    """Invalid Redis commands, job types and job IDs are rejected."""
    for value in HOSTILE:
        assert attempt(server, "/redis/command", value)[0] in (121, 95), value
        assert attempt(server, "/jobs/id", value) == (2, b""), value
        if b"\0" not in value and value != b"-" and not re.fullmatch(rb"[\w-]+", value):
            assert attempt(server, "/jobs/kind", value) == (22, b""), value
    world.check()


@pytest.mark.parametrize("part", ["target", "escaped", "method", "field", "name", "type", "content"])
def test_http_request_cannot_be_injected(server, world, part):
    """The backend receives either one request with the expected headers, or none."""
    names = {"host", "x-field", "x-request-id", "content-type", "content-length"}
    for value in HOSTILE:
        del world.backend.requests[:]
        number, back = attempt(server, f"/http/{part}", value, e=quote_from_bytes(value, safe="").encode())
        request = list(world.backend.requests)
        assert (number, back) == ((0, b"asked") if number == 0 else (22, b"")), value
        assert len(request) == (number == 0), (value, request)
        if not request:
            assert part not in ("content", "escaped"), value
            continue
        found = {name.lower(): text for name, text in request[0].fields}
        assert len(found) == len(request[0].fields)
        new = set(found) - names - {"connection"}
        assert not new or (part == "name" and new == {value.decode().lower()}), value
        assert request[0].body == (value if part == "content" else b"word")
        assert found.get("x-field", "word") == (value.decode("latin-1").strip() if part == "field" else "word"), value
        assert request[0].method == (value.decode() if part == "method" else "POST")
        if part == "target":
            assert request[0].target.encode() == value
        if part == "escaped":
            assert request[0].target == "/" + quote_from_bytes(value, safe="")


FIELDS = {"from", "to", "subject", "date", "message-id", "mime-version", "content-type", "content-transfer-encoding"}


@pytest.mark.parametrize("part", ["from", "to", "reply", "subject", "type", "text"])
def test_mail_cannot_be_injected(server, world, part):
    """The mail server receives either one message with the expected headers for the one recipient, or none."""
    for value in UTF8:
        del world.mail.got[:]
        number, back = attempt(server, f"/smtp/{part}", value)
        assert (number, back) == ((0, b"sent") if number == 0 else (22, b"")), value
        assert len(world.mail.got) == (number == 0), value
        if not world.mail.got:
            continue
        sender, to, content = world.mail.got[0]
        assert (sender, to) == ("a@example.org", ["ana@example.org"]), value
        read = email.message_from_bytes(content, policy=email.policy.default)
        assert {name.lower() for name in read.keys()} - {"reply-to"} == FIELDS and len(read.keys()) == len(set(read.keys())), value
        if part == "subject":
            assert read["Subject"].strip() == value.decode().strip()
        if part == "text":
            assert read.get_payload(decode=True).replace(b"\r\n", b"\n").strip(b"\n") == value.replace(b"\r\n", b"\n").strip(b"\n")
        assert part not in ("from", "to", "reply"), value


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_cells_are_never_formulas(server, separator):
    for value in UTF8:
        number, back = attempt(server, "/formats/csv", value, separator=separator.encode())
        assert number == 0
        # csv.reader stops at a NUL.
        ((word, cell),) = csv.reader(io.StringIO(back.decode().replace("\0", "NUL"), newline=""), delimiter=separator)
        formula = value.decode().startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
        assert (word, cell) == ("word", "'" * formula + value.decode().replace("\0", "NUL")), value


def test_svg_contains_no_injected_markup(server):
    for value in UTF8:
        number, back = attempt(server, "/formats/qr", value)
        assert number == 0 and {element.tag.rpartition("}")[2] for element in xml.etree.ElementTree.fromstring(back).iter()} <= {
            "svg", "path", "rect", "title"}, value
        if re.search(rb"[\0-\x08\x0b\x0c\x0e-\x1f]", value):
            continue  # not allowed in XML, but harmless in HTML
        number, back = attempt(server, "/formats/chart", value)
        root = xml.etree.ElementTree.fromstring(back)
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert number == 0 and "script" not in tags, value
        shown = value.decode().replace("\r\n", "\n").replace("\r", "\n")
        assert [element for element in root.iter() if element.text == shown], value
