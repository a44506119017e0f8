# SPDX-License-Identifier: Apache-2.0
"""The sql package: rows as structs, and parameters from structs and by name, with SQLite and PostgreSQL."""
import json
import urllib.parse

import pytest

import services
from sql_databases import backend, cluster, section  # pylint: disable=unused-import

SOURCE = r"""
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>
#include <errno.h>

static const char *const colors[] = {"red", "blue", NULL};

struct street {
    mk_str street;
    int zip;
};
static const struct duda_schema_field street_members[] = {
    DUDA_STRING(struct street, street), DUDA_INTEGER(struct street, zip, .optional = true)};
static const struct duda_schema street_schema = DUDA_SCHEMA(struct street, street_members);

struct label {
    mk_str name;
    int n;
};
static const struct duda_schema_field label_members[] = {DUDA_STRING(struct label, name), DUDA_INTEGER(struct label, n)};
static const struct duda_schema label_schema = DUDA_SCHEMA(struct label, label_members);

struct thing {
    int64_t id, made;
    mk_str name, price, uid, photo, raw;
    double ratio;
    bool sold, has_small, has_made, has_other;
    unsigned char small;
    int color;
    uint64_t big;
    struct street home, other;
    mk_str *tags;
    size_t n_tags;
    int *sizes;
    size_t n_sizes;
    bool *flags;
    size_t n_flags;
    struct label *labels;
    size_t n_labels;
};
static const struct duda_schema_field members[] = {
    DUDA_INTEGER(struct thing, id, DUDA_MINIMUM(1)),
    DUDA_STRING(struct thing, name, .max_length = 20),
    DUDA_STRING(struct thing, price, .format = DUDA_FORMAT_DECIMAL),
    DUDA_STRING(struct thing, uid, .optional = true, .format = DUDA_FORMAT_UUID),
    DUDA_BYTES(struct thing, photo, .optional = true),
    DUDA_TIMESTAMP(struct thing, made, DUDA_OPTIONAL(struct thing, has_made)),
    DUDA_DOUBLE(struct thing, ratio),
    DUDA_BOOL(struct thing, sold),
    DUDA_INTEGER(struct thing, small, DUDA_OPTIONAL(struct thing, has_small), .json_name = "smallNumber"),
    DUDA_ENUM(struct thing, color, colors),
    DUDA_INTEGER(struct thing, big, .optional = true),
    DUDA_OBJECT(struct thing, home, &street_schema),
    DUDA_OBJECT(struct thing, other, &street_schema, DUDA_OPTIONAL(struct thing, has_other)),
    DUDA_LIST(struct thing, tags, n_tags, DUDA_KIND_STRING, .optional = true),
    DUDA_INTEGERS(struct thing, sizes, n_sizes, .optional = true),
    DUDA_LIST(struct thing, flags, n_flags, DUDA_KIND_BOOL, .optional = true),
    DUDA_MAP(struct thing, labels, n_labels, &label_schema, .optional = true),
    DUDA_JSON_RAW(struct thing, raw, .optional = true),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct thing, members);

static int fail(struct duda_ctx *d, int e, const struct duda_sql_result *result)
{
    return e == -ECANCELED ? e : duda_problem(d, 500, "%d %.*s", -e, MK_STR_ARG(result->error));
}

static int save(struct duda_ctx *d)
{
    struct thing t = {.id = 0};
    struct duda_sql_result result;
    int e = duda_bind_json(d, &schema, &t, NULL);
    if (e)
        return e;
    e = duda_sql_query_struct(d, duda_sql_find(d, NULL), &result,
                              "INSERT INTO things (id, name, price, uid, photo, made, ratio, sold, small, color, big, street, zip, other, "
                              "tags, sizes, flags, labels, raw) VALUES (:id, :name, :price, :uid, :photo, :made, :ratio, :sold, "
                              ":smallNumber, :color, :big, :home.street, :home.zip, :other, :tags, :sizes, :flags, :labels, :raw)",
                              &schema, &t);
    return e ? fail(d, e, &result) : 201;
}

static const char columns[] = "SELECT id, name, price, uid, photo, made, ratio, sold, small, color, big, street AS \"home.street\", "
                              "zip AS \"home.zip\", other, tags, sizes, flags, labels, raw, 1 AS ignored FROM things";

static int list(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct thing *all;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, duda_sprintf(d, "%s ORDER BY id", columns).p);
    e = e ? e : duda_sql_bind_rows(d, &result, &schema, &all);
    return e ? fail(d, e, &result) : duda_send_json(d, duda_value_structs(&schema, all, result.n_rows));
}

static int show(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct thing t = {.small = 7, .has_small = true};
    const struct duda_sql_named_value values[] = {{"name", duda_sql_text(duda_query(d, "name"))}};
    int e = duda_sql_query_named(d, duda_sql_find(d, NULL), &result, duda_sprintf(d, "%s WHERE name = :name AND name <> ':x'", columns).p,
                                 values, 1);
    e = e ? e : duda_sql_bind_row(d, &result, 0, &schema, &t);
    return e == -ENOENT ? e : e ? fail(d, e, &result) : duda_send_json_struct(d, &schema, &t);
}

struct small {
    int8_t a;
    uint64_t b;
    double r;
    bool flag;
    int64_t at;
    mk_str text, bytes;
    int color;
    int *list;
    size_t n;
};
static const struct duda_schema_field small_members[] = {
    DUDA_INTEGER(struct small, a, .optional = true), DUDA_INTEGER(struct small, b, .optional = true),
    DUDA_DOUBLE(struct small, r, .optional = true), DUDA_BOOL(struct small, flag, .optional = true),
    DUDA_TIMESTAMP(struct small, at, .optional = true), DUDA_STRING(struct small, text, .optional = true),
    DUDA_BYTES(struct small, bytes, .optional = true), DUDA_ENUM(struct small, color, colors, .optional = true),
    DUDA_INTEGERS(struct small, list, n, .optional = true)};
static const struct duda_schema small_schema = DUDA_SCHEMA(struct small, small_members);

/* Stores the rows of any statement. */
static int convert(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct small *all;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""));
    e = e ? e : duda_sql_bind_rows(d, &result, &small_schema, &all);
    return e ? fail(d, e, &result) : duda_send_json(d, duda_value_structs(&small_schema, all, result.n_rows));
}

/* Returns the error as it is. */
static int missing(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct street *all;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", "SELECT 1 AS zip"));
    return e ? e : duda_sql_bind_rows(d, &result, &street_schema, &all);
}

static int named(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct street s = {.street = MK_STR("x"), .zip = 3};
    int e = duda_sql_query_struct(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""), &street_schema, &s);
    return e ? fail(d, e, &result) : duda_printf(d, "%zu", result.n_rows);
}

/* The rows, or one row or value, of any statement with the parameter `a`. */
static int query_rows(struct duda_ctx *d)
{
    struct small *all = (struct small *)d;
    size_t n = 99;
    int e = duda_sql_query_rows(d, duda_sql_find(d, duda_query(d, "db").p), &small_schema, &all, &n, duda_query_or(d, "sql", ""),
                                duda_sql_text(duda_query(d, "a")));
    return e ? duda_printf(d, "%d %d %zu", -e, all != NULL, n) : duda_send_json(d, duda_value_structs(&small_schema, all, n));
}

static int query_row(struct duda_ctx *d)
{
    struct small one = {.b = 7};
    int e = duda_sql_query_row(d, duda_sql_find(d, NULL), &small_schema, &one, duda_query_or(d, "sql", ""));
    return e ? e : duda_send_json_struct(d, &small_schema, &one);
}

static int query_cell(struct duda_ctx *d)
{
    struct duda_sql_value v = duda_sql_integer(5);
    int e = duda_sql_query_cell(d, duda_sql_find(d, NULL), &v, duda_query_or(d, "sql", ""));
    return e && v.type != DUDA_SQL_NULL ? 500 : e ? e : duda_printf(d, "%d %lld %.*s", (int)v.type, (long long)v.number, MK_STR_ARG(v.text));
}

/* The rows of any statement, without a schema. */
static int values(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""));
    return e ? fail(d, e, &result) : duda_send_json(d, duda_sql_rows_value(d, &result));
}

/* Statements without a result struct. */
static int no_result(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    struct street s = {.street = MK_STR("x"), .zip = 3};
    const struct duda_sql_named_value named[] = {{"zip", duda_sql_integer(1)}};
    int e = duda_sql_query(d, db, NULL, "SELECT 1");
    e = e ? e : duda_sql_query_struct(d, db, NULL, "SELECT :street, :zip", &street_schema, &s);
    e = e ? e : duda_sql_query_named(d, db, NULL, "SELECT :zip", named, MK_LEN(named));
    return e ? 500 : duda_printf(d, "%d %d %d", -duda_sql_query(d, db, NULL, "SELEC"), -duda_sql_query(d, NULL, NULL, "SELECT 1"),
                                 -duda_sql_query_struct(d, db, NULL, "SELECT :none", &street_schema, &s));
}

/* Structs that are not those of the schema. */
static int wrong_struct(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    struct duda_sql_result result;
    struct street street = {.zip = 3}, *p = &street;
    size_t n;
    int e = duda_sql_query_row(d, db, &street_schema, &p, "SELECT 'x' AS street");
    if (e != -EFAULT || p != &street || street.zip != 3)
        return 200;
    e = duda_sql_query_rows(d, db, &small_schema, &p, &n, "SELECT 1 AS a");
    if (e != -EFAULT || p || n || duda_sql_query(d, db, &result, "SELECT 1 AS a"))
        return 200;
    e = duda_sql_bind_rows(d, &result, &small_schema, &p);
    if (e != -EFAULT || p || !result.error.len || duda_sql_bind_row(d, &result, 0, &small_schema, &street) != -EFAULT)
        return 200;
    return e;
}

DUDA_SERVICE(things,
    DUDA_GET("/query-rows", query_rows, ""),
    DUDA_GET("/query-row", query_row, ""),
    DUDA_GET("/query-cell", query_cell, ""),
    DUDA_GET("/values", values, ""),
    DUDA_GET("/no-result", no_result, ""),
    DUDA_GET("/wrong-struct", wrong_struct, ""),
    DUDA_POST("/things", save, "Stores a thing.", .request_body = &schema),
    DUDA_GET("/things", list, "Lists things."),
    DUDA_GET("/thing", show, "Shows a thing."),
    DUDA_GET("/convert", convert, "Any statement."),
    DUDA_GET("/missing", missing, "Lacks a column."),
    DUDA_GET("/named", named, "Any statement with names."));
"""
TABLES = {
    "sqlite": "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price TEXT, uid TEXT, photo BLOB, made TEXT, ratio REAL, "
              "sold INTEGER, small INTEGER, color TEXT, big TEXT, street TEXT, zip INTEGER, other TEXT, tags TEXT, sizes TEXT, flags TEXT, "
              "labels TEXT, raw TEXT);",
    "postgres": "CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT NOT NULL, price NUMERIC(20, 2), uid UUID, photo BYTEA, made TIMESTAMPTZ, "
                "ratio DOUBLE PRECISION, sold BOOLEAN, small SMALLINT, color TEXT, big NUMERIC(20), street TEXT, zip INTEGER, other JSONB, "
                "tags TEXT[], sizes INTEGER[], flags BOOLEAN[], labels JSONB, raw JSON);"}
FULL = {"id": 2, "name": "a \"b\" {c}, \\d", "price": "12.50", "uid": "0190a6c1-7a1b-7000-8000-0123456789ab", "photo": "AP8n",
        "made": "2026-03-01T12:30:00.123456Z", "ratio": 0.1, "sold": True, "smallNumber": 255, "color": "blue",
        "big": 2 ** 64 - 1, "home": {"street": "Möhrenweg", "zip": 89073}, "other": {"street": "b", "zip": 1},
        "tags": ["a", "b \"c\", {\\}", "", "NULL", "ä"], "sizes": [1, -2], "flags": [True, False], "labels": {"x y": 1, "z": -1},
        "raw": {"a": [1, None]}}
LEAST = {"id": 1, "name": "", "price": "0.00", "ratio": 0, "sold": False, "color": "red", "home": {"street": ""}}
JSON = [("Content-Type", "application/json")]


@pytest.fixture
def server(lasting, prepared, backend, request):
    def prepare(monkey, site):
        folder = site.path.parent
        return monkey(plugins=[f"duda-{backend}", services.build(folder, "things", SOURCE, packages=["sql"])], server="ErrorLog stderr",
                      top=section(folder, backend, request, TABLES[backend]))
    return lasting(prepared.setdefault(backend, prepare))


def convert(server, sql):
    answer = server.get("/convert?" + urllib.parse.urlencode({"sql": sql}))
    assert answer.status == 200, answer.text
    return json.loads(answer.text)


def error(server, sql, path="/convert"):
    answer = server.get(f"{path}?" + urllib.parse.urlencode({"sql": sql}))
    assert answer.status == 500, answer.text
    return json.loads(answer.text)["detail"]


def test_structs_are_stored_and_read_back(server):
    for thing in (FULL, LEAST):
        answer = server.get("/things", method="POST", fields=JSON, body=json.dumps(thing).encode())
        assert answer.status == 201, answer.text
    answer = server.get("/things")
    assert answer.status == 200, answer.text
    least, full = json.loads(answer.text)
    assert full == FULL
    assert least == LEAST | {"home": {"street": "", "zip": 0}, "big": 0, "tags": [], "sizes": [], "flags": [], "labels": {}}
    one = json.loads(server.get("/thing?" + urllib.parse.urlencode({"name": FULL["name"]})).text)
    assert one == FULL
    assert json.loads(server.get("/thing?name=").text).get("smallNumber") is None, "NULL clears the presence"
    assert server.get("/thing?name=none").status == 404


def test_times_of_the_database_are_read(server, backend):
    if backend == "sqlite":
        cases = {"'2026-03-01'": "2026-03-01T00:00:00Z", "'2026-03-01 12:30'": "2026-03-01T12:30:00Z",
                 "'2026-03-01 12:30:01.5'": "2026-03-01T12:30:01.5Z", "1772364600": "2026-03-01T11:30:00Z",
                 "'2026-03-01T12:30:00+01:00'": "2026-03-01T11:30:00Z"}
    else:
        cases = {"date '2026-03-01'": "2026-03-01T00:00:00Z", "timestamp '2026-03-01 12:30:00.5'": "2026-03-01T12:30:00.5Z",
                 "timestamptz '2026-03-01 12:30:00+05:30'": "2026-03-01T07:00:00Z", "1772364600": "2026-03-01T11:30:00Z"}
    for sql, time in cases.items():
        assert convert(server, f"SELECT {sql} AS at")[0]["at"] == time, sql
    for sql in ("'infinity'", "'12:30'", "'2026-03-01x'", "'2026-02-30'", "''", "'2026-03-01 '", "'2026-03-01 25:00'"):
        assert error(server, f"SELECT {sql} AS at") == "71 row 1: the column `at` has a text that is not a date and time"
    assert "not a time" in error(server, "SELECT 9223372036854775807 AS at")


def test_values_are_converted(server):
    first, second = convert(server, "SELECT 1 AS a, '18446744073709551615' AS b, 3 AS r, 1 AS flag, 'blue' AS color "
                                    "UNION ALL SELECT -128, '7', 4, 0, 'red'")
    assert first["a"] == 1 and first["b"] == 2 ** 64 - 1 and first["r"] == 3 and first["flag"] is True and first["color"] == "blue"
    assert second["a"] == -128 and second["flag"] is False and second["color"] == "red"
    assert convert(server, "SELECT 1 AS color, '[3, 4]' AS list, '2.5' AS r, 'x' AS bytes") [0] | {"at": 0} == {
        "a": 0, "b": 0, "r": 2.5, "flag": False, "at": 0, "bytes": "eA==", "color": "blue", "list": [3, 4]}
    assert convert(server, "SELECT 1 AS a WHERE 1 = 0") == []
    mixed = convert(server, "SELECT 5 AS b, 1 AS other, 0 AS flag, 2 AS other, 4 AS a")[0]
    assert (mixed["a"], mixed["b"], mixed["flag"]) == (4, 5, False), "in any order, with columns that have no member"
    assert convert(server, "SELECT 4.0 AS a")[0]["a"] == 4


@pytest.mark.parametrize("sql, message", [
    ("SELECT 1 AS a UNION ALL SELECT 128", "row 2: the column `a` has a number that does not fit into the member"),
    ("SELECT -129 AS a", "row 1: the column `a` has a number that does not fit into the member"),
    ("SELECT -1 AS b", "row 1: the column `b` has a number that does not fit into the member"),
    ("SELECT '1x' AS a", "row 1: the column `a` has a text that is not an integer"),
    ("SELECT 'x' AS r", "row 1: the column `r` has a text that is not a number"),
    ("SELECT 2 AS flag", "row 1: the column `flag` has a value that is neither true nor false"),
    ("SELECT 1 AS text", "row 1: the column `text` has a value of another type"),
    ("SELECT 'green' AS color", "row 1: the column `color` has a value that the enum does not have"),
    ("SELECT 2 AS color", "row 1: the column `color` has a value that the enum does not have"),
    ("SELECT -1 AS color", "row 1: the column `color` has a value that the enum does not have"),
    ("SELECT '{1' AS list", "row 1: the column `list` has a text that is not an array"),
    ("SELECT '[1, \"x\"]' AS list", "row 1: the column `list` has unsuitable JSON: `list[1]` must be an integer from -2147483648 to 2147483647"),
    ("SELECT '[1], \"a\": [2]' AS list", "row 1: the column `list` has unsuitable JSON: `a` is unknown"),
    ("SELECT '[1' AS list", "row 1: the column `list` has unsuitable JSON: expected `,` or `]`, not `}`"),
    ("SELECT 1 AS a, 2 AS a", "the column `a` occurs more than once"),
    ("SELECT 1 AS a, 2 AS other, 2 AS other, 3 AS flag, 4 AS a", "the column `a` occurs more than once"),
])
def test_value_that_does_not_fit_is_an_error(server, sql, message):
    assert error(server, sql) == f"71 {message}"


def test_null_and_missing_columns_are_errors_unless_optional(server):
    assert server.get("/missing").status == 500
    server.err.wait_for("the column `street` is missing")
    assert server.get("/missing?" + urllib.parse.urlencode({"sql": "SELECT NULL AS street"})).status == 500
    server.err.wait_for("row 1: the column `street` is NULL, but the member is not optional")


def test_named_parameters_need_values(server):
    assert server.get("/named?" + urllib.parse.urlencode({"sql": "SELECT 1 WHERE :street = 'x' AND :zip = 3 AND :street <> ':y'"})).text == "1"
    assert error(server, "SELECT :nothing", "/named") == "22 there is no value for the parameter `:nothing`"
    assert error(server, "SELECT :street.x", "/named") == "22 there is no value for the parameter `:street.x`"
    assert error(server, "SELECT :street, $1", "/named") == "22 the statement has both named and numbered parameters"
    many = ", ".join(f":n{i}" for i in range(129))
    assert error(server, f"SELECT {many}", "/named") == "90 the statement has more than 128 named parameters"


def ask(server, path, **parameters):
    return server.get(f"{path}?" + urllib.parse.urlencode(parameters))


def test_rows_are_queried_as_structs(server):
    answer = ask(server, "/query-rows", sql="SELECT 1 AS a, $1 AS text UNION ALL SELECT 2, 'y' ORDER BY 1", a="x")
    assert [(row["a"], row["text"]) for row in json.loads(answer.text)] == [(1, "x"), (2, "y")]
    assert ask(server, "/query-rows", sql="SELECT 1 AS a, $1 AS text WHERE 1 = 0", a="x").text == "[]"
    assert ask(server, "/query-rows", sql="SELEC $1", a="x").text == "121 0 0"
    assert ask(server, "/query-rows", sql="SELECT 128 AS a, $1 AS text", a="x").text == "71 0 0"
    assert ask(server, "/query-rows", sql="SELECT $1 AS text, $2 AS more", a="x").text in ("22 0 0", "121 0 0")
    assert ask(server, "/query-rows", sql="SELECT $1 AS text", a="x", db="none").text == "19 0 0"


def test_row_is_queried_as_struct(server):
    one = json.loads(ask(server, "/query-row", sql="SELECT 1 AS a UNION ALL SELECT 2 ORDER BY 1").text)
    assert (one["a"], one["b"]) == (1, 7), "the first row, and the default of a member without a column"
    assert ask(server, "/query-row", sql="SELECT 1 AS a WHERE 1 = 0").status == 404
    assert ask(server, "/query-row", sql="SELECT 128 AS a").status == 500
    server.err.wait_for("row 1: the column `a` has a number that does not fit into the member")


def test_cell_is_queried(server):
    assert ask(server, "/query-cell", sql="SELECT 3, 4").text == "1 3 "
    assert ask(server, "/query-cell", sql="SELECT 'x' UNION ALL SELECT 'y' ORDER BY 1").text == "3 0 x"
    assert ask(server, "/query-cell", sql="SELECT NULL").text == "0 0 "
    assert ask(server, "/query-cell", sql="SELECT 1 WHERE 1 = 0").status == 404
    assert ask(server, "/query-cell", sql="SELEC").status == 500


def test_rows_become_values(server, backend):
    blob = "x'00ff'" if backend == "sqlite" else "'\\x00ff'::bytea"
    answer = ask(server, "/values", sql=f"SELECT 1 AS a, 2.5 AS r, '<x>' AS t, NULL AS missing, {blob} AS bytes UNION ALL SELECT 2, 0.5, '', 'n', {blob} ORDER BY 1")
    assert answer.status == 200, answer.text
    first, second = json.loads(answer.text)
    assert (first["a"], float(first["r"]), first["t"], first["missing"], first["bytes"]) == (1, 2.5, "<x>", None, "AP8=")
    assert (second["a"], second["t"], second["missing"]) == (2, "", "n")
    assert list(first) == ["a", "r", "t", "missing", "bytes"]
    assert ask(server, "/values", sql="SELECT 1 WHERE 1 = 0").text == "[]"


def test_result_is_optional(server):
    assert server.get("/no-result").text == "121 19 22"


def test_struct_of_another_size_is_an_error(server):
    assert server.get("/wrong-struct").status == 500
    server.err.wait_for("the schema of `struct small` describes")
