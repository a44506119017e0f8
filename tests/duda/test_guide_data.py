# SPDX-License-Identifier: Apache-2.0
"""Every C code block in docs/guide/duda-data.md compiles without warnings and works with real servers, once the code that the
reader has to supply is added."""
import contextlib
import json
import re

import pytest

import mail_server
import memcached_server
import postgres_server
import redis_server
import services
from backend import Backend, response
from monkey import ROOT
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

PAGE = (ROOT / "docs/guide/duda-data.md").read_text()


def code_blocks():
    """Returns {"heading": [code, ...]} in order."""
    found, heading = {}, ""
    for match in re.finditer(r"^(?:#+ ([^\n]*)|```c\n(.*?)^```)$", PAGE, re.MULTILINE | re.DOTALL):
        heading = match[1] or heading
        if match[2]:
            found.setdefault(heading, []).append(match[2])
    return found


# For each code block: its packages, and the code that precedes and follows it.
JOB = """
static const struct duda_job_type kind = {.name = "NAME", .fn = send_mail};
static int start(struct mk_worker *worker) { return duda_jobs_register(worker, &kind); }
static int push(struct duda_ctx *d) { return duda_jobs_enqueue(d, "NAME", duda_query(d, "to"), NULL, NULL); }
DUDA_SERVICE(NAME, DUDA_START(start), DUDA_GET("/NAME", push, ""));
"""
HELLO = """
static int hello(struct duda_ctx *d) { return duda_puts(d, duda_kv_find(d, NULL) ? "hello" : "no store"); }
DUDA_SERVICE(NAME, DUDA_GET("/NAME", hello, ""));
"""
SHOWN = {
    "first": ("Data in Duda services", 0, [], "", HELLO),
    "smtp": ("Mail", 0, ["smtp", "jobs"], "", JOB),
    "sendmail": ("Mail", 1, ["subprocess", "jobs", "mail"], "", JOB),
    "visit": ("kv: a store without a server", 0, ["kv"], "", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME", visit, ""));'),
    "redis": ("redis", 0, ["redis"], "", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME/:key", show, ""));'),
    "memcached": ("memcached", 0, ["memcached"], """
static int made;
static mk_str make_page(struct duda_ctx *d) { return duda_sprintf(d, "page %d", ++made); }
""", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME/:key", show, ""));'),
    "sql": ("sql: databases", 0, ["sql"], "", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME", show, ""));'),
    "rows": ("Rows as structs", 0, ["sql"], "", 'DUDA_SERVICE(NAME, DUDA_POST("/NAME", add, ""), DUDA_GET("/NAME", find, ""));'),
    "issues": ("Optional, NULL and PATCH", 0, ["sql"], "", 'DUDA_SERVICE(NAME, DUDA_POST("/NAME", create), DUDA_PATCH("/NAME/:id<int>", change));'),
    "users": ("Constraints", 0, ["sql"], "", 'DUDA_SERVICE(NAME, DUDA_POST("/NAME", sign_up, ""), DUDA_DELETE("/NAME/:name", remove_user, ""));'),
    "export": ("Large results", 0, ["sql"], "", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME", export, ""));'),
    "csv": ("CSV", 0, ["sql", "csv"], """
struct good {
    int64_t id;
    mk_str name;
    double price;
};
static const struct duda_schema_field good_members[] = {
    DUDA_INTEGER(struct good, id), DUDA_STRING(struct good, name), DUDA_DOUBLE(struct good, price)};
static const struct duda_schema good_schema = DUDA_SCHEMA(struct good, good_members);
""", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME", export, ""));'),
    "rate": ("http: requests to other servers", 0, ["http"], "", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME", rate, ""));'),
    "preview": ("URLs of other hosts", 0, ["http"], "", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME", preview, ""));'),
    "thumbnail": ("subprocess: other programs", 0, ["subprocess"], "", 'DUDA_SERVICE(NAME, DUDA_POST("/NAME", thumbnail, ""));'),
    "shop": ("jobs: work in the background", 0, [], """
static int deliver(struct duda_ctx *d, mk_str text)
{
    duda_log(d, MK_LOG_WARN, "delivered to %.*s", MK_STR_ARG(text));
    return 0;
}
""", ""),
    "limited": ("store: caches, limits, locks and sessions", 0, ["store"],
                'static int check_password(struct duda_ctx *d) { return duda_puts(d, "checked"); }',
                'DUDA_SERVICE(NAME, DUDA_GET("/NAME", sign_in, ""));'),
    "follow": ("Messages (LISTEN, NOTIFY)", 0, ["sql", "postgres"], """
static int show_all(struct duda_ctx *d, struct duda_sql_db *db)
{
    (void)db;
    return duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("all"), .data = MK_STR("of it")});
}
""", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME", follow, ""));'),
    "import": ("Rows as a stream (COPY)", 0, ["sql", "postgres"], "", 'DUDA_SERVICE(NAME, DUDA_POST("/NAME", import, ""));'),
}
SHOWN |= {
    "backup": ("Streaming request bodies", 0, ["http"], "", 'DUDA_SERVICE(NAME, DUDA_POST("/NAME", backup, ""));'),
    "rates": ("JSON", 0, ["http"], "", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME", rate, ""));'),
    "orders": ("JSON", 1, ["http"], "", 'DUDA_SERVICE(NAME, DUDA_POST("/NAME", order, ""));'),
    "files": ("Access tokens", 0, ["oidc", "http"], "", 'DUDA_SERVICE(NAME, DUDA_GET("/NAME", show_files, ""));'),
}
SHOWN |= {
    "report": ("Authentication", 0, [], "", 'DUDA_SERVICE(NAME, DUDA_POST("/NAME/token", create_token, ""), DUDA_GROUP("/NAME", reports));'),
}
OF_POSTGRES = ["follow", "import"]
LIBRARIES = {"csv": "small", "mail": "small"}

USERS = """CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, email TEXT NOT NULL UNIQUE);
CREATE TABLE bought (customer TEXT REFERENCES users (name));
INSERT INTO users VALUES (7, 'ana', 'ana@example.org'), (8, 'bo', 'bo@example.org');
INSERT INTO bought VALUES ('ana');"""


def build(folder, name, change=lambda code: code):
    heading, index, packages, ahead, behind = SHOWN[name]
    code = change(code_blocks()[heading][index])
    if not packages:  # the code block itself names its packages
        packages = re.findall(r'"duda-(\w+)"', code)
        includes = re.findall(r"^#.*\n", code, re.MULTILINE)
        head, code = "".join(includes), re.sub(r"^#.*\n", "", code, flags=re.MULTILINE)
    else:
        plugins = ", ".join(f'"duda-{package}"' for package in packages if package not in LIBRARIES) or "NULL"
        head = f"#define DUDA_USE {plugins}\n#include <duda.h>\n" + "".join(f"#include <duda/{p}.h>\n" for p in packages)
        head += "#include <errno.h>\n"
    source = head + ahead + code + behind.replace("NAME", name)
    return services.build(folder, name, source, packages=[LIBRARIES.get(p, p) for p in packages])


def test_every_code_block_is_tested():
    assert {heading: len(codes) for heading, codes in code_blocks().items()} == \
        {heading: 1 + max(index for other, index, *_ in SHOWN.values() if other == heading) for heading, *_ in SHOWN.values()}


@pytest.mark.parametrize("name", ["backup", "rates", "orders", "files"])
def test_code_blocks_that_run_in_other_tests_compile(tmp_path, name):
    """These blocks are only compiled here: the tests of the packages http and oidc run similar handlers."""
    assert build(tmp_path, name)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def check_users(server):
    """The code block of "Constraints"."""
    form = [("Content-Type", "application/x-www-form-urlencoded")]
    answer = server.get("/users", "POST", form, b"name=cy&email=ana@example.org")
    assert answer.status == 409 and "This address has an account." in answer.text
    answer = server.get("/users", "POST", form, b"name=ana&email=cy@example.org")
    assert answer.status == 409 and "address" not in answer.text
    assert server.get("/users", "POST", form, b"name=cy").status == 422
    answer = server.get("/users/ana", "DELETE")
    assert answer.status == 409 and "This user still has orders." in answer.text
    assert [server.get("/users/bo", "DELETE").status for _ in range(2)] == [204, 404]


@pytest.mark.processes("an embedded server starts no programs")
@pytest.mark.skipif(not redis_server.PROGRAM or not memcached_server.PROGRAM or not all(
    services.has(p) for p in ("kv", "redis", "sqlite", "auth")), reason="a server or a library is missing")
def test_code_blocks_work_with_real_servers(monkey, site):
    folder = site.path.parent
    (folder / "migrations").mkdir()
    (folder / "migrations/1-goods.sql").write_text(
        "CREATE TABLE goods (id INTEGER, name TEXT, price INTEGER); INSERT INTO goods VALUES (1, 'lamp', 30), (2, 'sofa', 300);"
        "CREATE TABLE issues (id INTEGER PRIMARY KEY, title TEXT NOT NULL, due TEXT, owner INTEGER);" + USERS)
    programs = {"/usr/bin/convert": script(folder / "convert", 'echo "$@"; cat'),
                "/usr/sbin/sendmail": script(folder / "sendmail", f"cat >{folder}/part && mv {folder}/part {folder}/sent")}

    def change(code):
        for before, after in programs.items():
            code = code.replace(before, after)
        return code

    with contextlib.ExitStack() as ends, mail_server.boxes() as box, Backend(lambda request: response(f"{request.target} is 7")) as rates:
        redis, memcached = redis_server.Redis(), memcached_server.Memcached()
        ends.callback(redis.stop)
        ends.callback(memcached.stop)
        mail = box()
        server = monkey(plugins=[build(folder, name, change) for name in SHOWN if name not in OF_POSTGRES] + ["duda-sqlite"], workers=1,
                        server="ErrorLog stderr",
                        top=f"[KV]\n    Folder {folder}/kv\n[REDIS]\n    Name far\n    Server unix:{redis.socket}\n"
                        f"[MEMCACHED]\n    Servers unix:{memcached.socket}\n[SMTP]\n    Server {mail.address}\n"
                        f"[SQLITE]\n    File {folder}/goods.db\n    Migrations {folder}/migrations\n"
                        f"[HTTP_CLIENT]\n    Name rates\n    Server {rates.address}\n"
                        f"[HTTP_CLIENT]\n    Name web\n    AllowHosts {rates.address}\n    AllowPrivate 127.0.0.1\n")
        server.allow("delivered to")
        assert server.get("/first").text == "hello"
        report = server.get("/report/token", "POST").text.strip()
        assert server.get("/report/report", fields=[("Authorization", f"Bearer {report}")]).text == "A report for ana.\n"
        assert server.get("/report/report")["WWW-Authenticate"] == 'Bearer realm="reports"'
        assert [server.get("/visit").text for _ in range(2)] == ["visitor 1\n", "visitor 2\n"]
        redis.ask("SET", "k", "v")
        assert [server.get("/redis/k").text, server.get("/redis/none").status] == ["v", 404]
        assert [server.get(f"/memcached/{key}").text for key in ("a", "b", "a")] == ["page 1", "page 2", "page 1"]
        assert server.get("/sql").text == '[{"id":1,"name":"lamp"}]'
        desk = {"id": 3, "name": "desk", "price": 19.5}
        assert server.get("/rows", "POST", fields=[("Content-Type", "application/json")], body=json.dumps(desk).encode()).status == 201
        assert json.loads(server.get("/rows?name=desk").text) == [desk] and server.get("/rows?name=none").text == "[]"
        as_json = [("Content-Type", "application/json")]
        assert server.get("/issues", "POST", as_json, b'{"title":"Roof","due":"2026-05-01","owner":3}').status == 201
        for patch, expected in (({"title": "Paint"}, {"title": "Paint", "due": "2026-05-01", "owner": 3}),
                                ({"due": None}, {"title": "Paint", "owner": 3}),
                                ({"owner": None}, {"title": "Paint"})):
            changed = server.get("/issues/1", "PATCH", as_json, json.dumps(patch).encode())
            assert json.loads(changed.text) == {"id": 1} | expected
        assert server.get("/issues/1", "PATCH", as_json, b'{"title":null}').status == 422
        assert server.get("/issues/2", "PATCH", as_json, b"{}").status == 404
        check_users(server)
        assert server.get("/export").text == "lamp\nsofa\ndesk\n"
        table = server.get("/csv")
        assert (table.text, table["Content-Disposition"]) == ("1,lamp,30.00\r\n2,sofa,300.00\r\n3,desk,19.50\r\n", 'attachment; filename="goods.csv"')
        assert server.get("/rate").text == "/rates?of=EUR is 7"
        assert server.get(f"/preview?url=http://{rates.address}/a").text == f"http://{rates.address}/a: 7 bytes\n"
        assert server.get("/preview?url=http://example.org/").status == 502
        small = server.get("/thumbnail", "POST", body=b"picture")
        assert (small.text, small["Content-Type"]) == ("- -resize 200x200 png:-\npicture", "image/png")
        assert [server.get("/limited?user=ana").status for _ in range(11)] == [200] * 10 + [429]
        form = [("Content-Type", "application/x-www-form-urlencoded")]
        assert server.get("/sign-up", "POST", form, b"address=ana@example.org").status == 204
        server.err.wait_for("delivered to ana@example.org")
        assert [server.get(f"/{name}?to=ana@example.org").status for name in ("smtp", "sendmail")] == [204, 204]
        wait_until(lambda: mail.got and (folder / "sent").exists(), "the mail has arrived over SMTP and sendmail")
        assert mail.got[0][1] == ["ana@example.org"] and b"Subject: Welcome\r\n" in mail.got[0][2]
        assert "To: ana@example.org\n" in (folder / "sent").read_text().replace("\r\n", "\n")


@pytest.mark.skipif(not services.has("postgres") or not postgres_server.is_usable(), reason="PostgreSQL is not installed")
def test_code_blocks_work_with_postgres(monkey, site):
    postgres = postgres_server.Postgres()
    try:
        address = postgres.database()
        postgres.sql("CREATE TABLE goods (id integer, name text);" + USERS.replace("INTEGER PRIMARY", "SERIAL PRIMARY"), "d1")
        server = monkey(plugins=[build(site.path.parent, name) for name in (*OF_POSTGRES, "users")], top=f"[POSTGRES]\n    Server {address}\n", workers=1)
        assert server.get("/import", "POST", body=b"1,lamp\n2,sofa\n").text == "2 rows\n"
        wrong = server.get("/import", "POST", body=b"1,lamp\n2x,sofa\n")
        assert wrong.status == 422 and "line 2, column id" in wrong.text
        check_users(server)
        with server.connect() as c:
            c.ask("/follow").read_head()
            c.read_until(b"event: all\ndata: of it\n\n")
            postgres.sql("SELECT pg_notify('orders', '17')", "d1")
            c.read_until(b"event: order\ndata: 17\n\n")
    finally:
        postgres.stop()
