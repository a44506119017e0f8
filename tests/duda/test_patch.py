# SPDX-License-Identifier: Apache-2.0
"""Optional members, NULL and merge patches, from JSON and forms to rows of SQLite and PostgreSQL and back."""
import json
import urllib.parse

import pytest

import services
from running import cache, runtime, src, start  # pylint: disable=unused-import
from sql_databases import HAS, cluster  # pylint: disable=unused-import

SOURCE = r"""
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>

struct item {
    int64_t id;
    mk_str title, due, note;
    int64_t owner, made;
    double share;
    bool has_owner, has_made, has_share;
};
static const struct duda_schema_field members[] = {
    DUDA_INTEGER(struct item, id, .optional = true),
    DUDA_STRING(struct item, title, .min_length = 1),
    DUDA_STRING(struct item, due, .optional = true, .format = DUDA_FORMAT_DATE, .min_length = 1),
    DUDA_STRING(struct item, note, .optional = true),
    DUDA_INTEGER(struct item, owner, DUDA_OPTIONAL(struct item, has_owner), DUDA_MINIMUM(1)),
    DUDA_TIMESTAMP(struct item, made, DUDA_OPTIONAL(struct item, has_made)),
    DUDA_DOUBLE(struct item, share, DUDA_OPTIONAL(struct item, has_share)),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct item, members);

static int save(struct duda_ctx *d, const char *statement, struct item *item, int e)
{
    e = e ? e : duda_sql_query_struct(d, duda_sql_find(d, NULL), NULL, statement, &schema, item);
    return e ? e : 201;
}

static const char insert[] = "INSERT INTO items (title, due, note, owner, made, share) VALUES (:title, :due, :note, :owner, :made, :share)";
static const char update[] =
    "UPDATE items SET title = :title, due = :due, note = :note, owner = :owner, made = :made, share = :share WHERE id = :id";

static int load(struct duda_ctx *d, struct item *item)
{
    int64_t id = 0;
    return duda_param_int(d, "id", &id) ? duda_sql_query_row(d, duda_sql_find(d, NULL), &schema, item, "SELECT * FROM items WHERE id = $1", duda_sql_integer(id)) : 404;
}

static int create(struct duda_ctx *d)
{
    struct item item = {0};
    int e = duda_bind_json(d, &schema, &item, NULL);
    return save(d, insert, &item, e);
}

static int create_from_form(struct duda_ctx *d)
{
    struct item item = {0};
    int e = duda_bind_form(d, &schema, &item, NULL);
    return save(d, insert, &item, e);
}

static int patch(struct duda_ctx *d)
{
    struct item item = {0};
    int e = load(d, &item);
    e = e ? e : duda_bind_merge_patch(d, &schema, &item, NULL);
    return save(d, update, &item, e);
}

static int put(struct duda_ctx *d)
{
    struct item item = {0};
    int e = load(d, &item);
    e = e ? e : duda_bind_json(d, &schema, &item, NULL);
    return save(d, update, &item, e);
}

static int edit(struct duda_ctx *d)
{
    struct item item = {0};
    int e = load(d, &item);
    e = e ? e : duda_bind_form(d, &schema, &item, NULL);
    return save(d, update, &item, e);
}

static int show(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, "SELECT * FROM items ORDER BY id");
    return e ? e : duda_send_json(d, duda_sql_rows_value(d, &result));
}

DUDA_SERVICE(items,
    DUDA_POST("/items", create, "Creates an item.", .request_body = &schema),
    DUDA_POST("/form", create_from_form),
    DUDA_PATCH("/items/:id<int>", patch, "Changes an item.", .request_body = &schema, .request_is_patch = true),
    DUDA_PUT("/items/:id<int>", put),
    DUDA_POST("/items/:id<int>/edit", edit),
    DUDA_GET("/items", show));
"""
TABLES = {
    "sqlite": "CREATE TABLE items (id INTEGER PRIMARY KEY, title TEXT NOT NULL, due TEXT, note TEXT, owner INTEGER, made TEXT, share REAL);",
    "postgres": "CREATE TABLE items (id BIGSERIAL PRIMARY KEY, title TEXT NOT NULL, due TEXT, note TEXT, owner BIGINT, made TIMESTAMPTZ, "
                "share DOUBLE PRECISION);"}
JSON = [("Content-Type", "application/json")]
FORM = [("Content-Type", "application/x-www-form-urlencoded")]
FULL = {"title": "a", "due": "2026-05-01", "note": "n", "owner": 3, "made": "2026-01-01T00:00:00Z", "share": 0.5}


@pytest.fixture(params=["sqlite", "postgres"])
def server(monkey, tmp_path, request):
    backend = request.param
    if not HAS[backend]:
        pytest.skip(f"this build has no {backend}, or its server is not there")
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "1-items.sql").write_text(TABLES[backend])
    where = f"File {tmp_path}/a.db" if backend == "sqlite" else f"Server {request.getfixturevalue('cluster').database()}"
    return monkey(plugins=[f"duda-{backend}", services.build(tmp_path, "items", SOURCE, packages=["sql"])],
                  top=f"[{backend.upper()}]\n    {where}\n    Migrations {tmp_path}/migrations\n")


def send(server, path, method, item, fields=None):
    body = urllib.parse.urlencode(item) if fields is FORM else json.dumps(item)
    answer = server.get(path, method, fields or JSON, body.encode())
    assert answer.status == 201, answer.text
    return json.loads(server.get("/items").text)[-1]


def without_time(row):
    """The databases format times differently."""
    return {name: value if name != "made" or value is None else "time" for name, value in row.items() if name != "id"}


NONE = {"due": None, "note": None, "owner": None, "made": None, "share": None}


def test_members_without_a_value_become_null(server):
    assert without_time(send(server, "/items", "POST", {"title": "a"})) == {"title": "a"} | NONE
    assert without_time(send(server, "/items", "POST", {"title": "a"} | NONE)) == {"title": "a"} | NONE
    assert without_time(send(server, "/items", "POST", FULL)) == FULL | {"made": "time"}
    assert without_time(send(server, "/form", "POST", {"title": "a"}, FORM)) == {"title": "a"} | NONE
    blank = {"title": "a", "due": "", "note": "", "owner": "", "made": "", "share": ""}
    assert without_time(send(server, "/form", "POST", blank, FORM)) == {"title": "a"} | NONE | {"note": ""}


def test_patch_changes_only_what_it_names(server):
    full = send(server, "/items", "POST", FULL)
    path = f"/items/{full['id']}"
    assert send(server, path, "PATCH", {}) == full
    assert send(server, path, "PATCH", {"title": "zz"}) == full | {"title": "zz"}
    for name in NONE:
        assert without_time(send(server, path, "PATCH", {name: None}))[name] is None
    assert without_time(send(server, path, "PATCH", {"owner": 7})) == {"title": "zz"} | NONE | {"owner": 7}
    for wrong in ({"title": None}, {"owner": 0}, {"due": "soon"}, {"id": None}, {"none": 1}, []):
        assert server.get(path, "PATCH", JSON, json.dumps(wrong).encode()).status == 422
    assert server.get("/items/999", "PATCH", JSON, b"{}").status == 404
    assert without_time(json.loads(server.get("/items").text)[0]) == {"title": "zz"} | NONE | {"owner": 7}
    for field in ("application/merge-patch+json", "application/json; charset=utf-8"):
        assert server.get(path, "PATCH", [("Content-Type", field)], b'{"note":"m"}').status == 201


def test_put_on_a_loaded_row_destroys_nothing(server):
    full = send(server, "/items", "POST", FULL)
    assert send(server, f"/items/{full['id']}", "PUT", {"title": "zz"}) == full | {"title": "zz"}


def test_form_clears_the_fields_that_are_empty(server):
    full = send(server, "/items", "POST", FULL)
    path = f"/items/{full['id']}/edit"
    assert send(server, path, "POST", {"title": "b"}, FORM) == full | {"title": "b"}
    blank = {"title": "b", "due": "", "owner": "", "made": "", "share": ""}
    assert without_time(send(server, path, "POST", blank, FORM)) == {"title": "b"} | NONE | {"note": "n"}


@pytest.mark.skipif(not HAS["sqlite"], reason="this build has no sqlite")
def test_zero_instead_of_null_is_reported_by_monkey_run(start, src):
    (src / "migrations").mkdir()
    (src / "migrations" / "1-items.sql").write_text(TABLES["sqlite"])
    (src / "i.conf").write_text(f"[PLUGINS]\n    Load duda-sqlite\n[SQLITE]\n    File {src}/a.db\n    Migrations {src}/migrations\n")
    (src / "items.c").write_text(SOURCE.replace("DUDA_OPTIONAL(struct item, has_made)", ".optional = true"))
    server = start(src / "items.c", "-i", src / "i.conf")
    answer = server.get("/items", "POST", JSON, b'{"title":"a"}')
    assert answer.status == 201, answer.text
    server.err.wait_for("the optional member `made` is stored as the year 1970, not as NULL, if it has no value")
    assert "`owner`" not in server.log


def test_openapi_describes_the_patch(tmp_path, monkey):
    (tmp_path / "items.c").write_text(SOURCE)
    program = monkey(args=["openapi", tmp_path / "items.c"], expect_start=False)
    program.wait()
    document = json.loads(program.out.text)
    body = document["paths"]["/items/{id}"]["patch"]["requestBody"]["content"]["application/json"]["schema"]
    assert "required" not in body and body["additionalProperties"] is False
    assert body["properties"]["title"]["type"] == "string"
    assert body["properties"]["owner"]["anyOf"] == [{"type": "integer", "format": "int64", "minimum": 1}, {"type": "null"}]
