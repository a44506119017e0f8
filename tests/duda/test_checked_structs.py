# SPDX-License-Identifier: Apache-2.0
"""Calls of functions that fill structs do not compile, in C11 and C++17, if the pointer has another type than the struct."""
import shutil
import subprocess

import pytest

from monkey import ROOT

SOURCE = r"""
#define DUDA_USE "duda-http", "duda-sql"
#include <duda.h>
#include <duda/http.h>
#include <duda/sql.h>

struct good {
    int64_t id;
    mk_str name;
};
static const struct duda_schema_field fields[] = {DUDA_INTEGER(struct good, id), DUDA_STRING(struct good, name)};
static const struct duda_schema schema = DUDA_SCHEMA(struct good, fields);
DUDA_HISTOGRAM(items, "items", "Items.");
DUDA_DURATION(payment, "payment_seconds", "Payments.", "step");

static int call(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, MK_API_NULL);
    struct duda_sql_result result;
    struct duda_sql_value cell;
    struct duda_http_response response;
    struct duda_validation_errors errors;
    struct good one, *list;
    size_t n;
    return CALL;
}

DUDA_SERVICE(goods, DUDA_GET("/", call, "Calls."));
"""
GOOD = [
    'duda_sql_query_rows(d, db, &schema, &list, &n, "SELECT 1")',
    'duda_sql_query_rows(d, db, &schema, &list, &n, "SELECT $1, $2", duda_sql_integer(1), duda_sql_text(MK_STR("a")))',
    'duda_sql_query_row(d, db, &schema, &one, "SELECT $1", duda_sql_integer(1))',
    'duda_sql_query_cell(d, db, &cell, "SELECT $1", duda_sql_integer(1))',
    "duda_sql_bind_rows(d, &result, &schema, &list)",
    "duda_sql_bind_row(d, &result, 0, &schema, &one)",
    'duda_render(d, "a.html", duda_sql_rows_value(d, &result))',
    "duda_http_json(d, &response, &schema, &one, MK_API_NULL)",
    "duda_http_json_list(d, &response, &schema, &list, &n, MK_API_NULL)",
    "duda_bind_json(d, &schema, &one, MK_API_NULL)",
    "duda_bind_json_list(d, &schema, &list, &n, MK_API_NULL)",
    "duda_bind_query(d, &schema, &one)",
    "duda_bind_form(d, &schema, &one, &errors)",
    'duda_bind_form_or_render(d, &schema, &one, "a.html")',
    "(duda_histogram_observe(d, &items, 1), 0)",
    '(duda_duration_observe_us(d, &payment, 1, MK_STR("a")), 0)',
]
WRONG = [
    'duda_sql_query_rows(d, db, &schema, list, &n, "SELECT 1")',
    'duda_sql_query_rows(d, db, &schema, &one, &n, "SELECT 1")',
    'duda_sql_query_cell(d, db, &one, "SELECT 1")',
    "duda_sql_bind_rows(d, &result, &schema, list)",
    "duda_http_json_list(d, &response, &schema, list, &n, MK_API_NULL)",
    "duda_bind_json_list(d, &schema, list, &n, MK_API_NULL)",
    "duda_bind_json_list(d, &schema, &list, n, MK_API_NULL)",
    "(duda_histogram_observe(d, &payment, 1), 0)",
    '(duda_duration_observe_us(d, &items, 1, MK_STR("a")), 0)',
]
COMPILERS = {"C11": ["cc", "-std=gnu11", "-x", "c"], "C++17": ["c++", "-std=c++17", "-x", "c++"]}


def compiles(tmp_path, language, call):
    if not shutil.which(COMPILERS[language][0]):
        pytest.skip("no compiler")
    path = tmp_path / "goods"
    path.write_text(SOURCE.replace("CALL", call))
    done = subprocess.run([*COMPILERS[language], "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused", "-Werror", f"-I{ROOT / 'include'}",
                           f"-I{ROOT / 'duda/include'}", path], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", COMPILERS)
def test_right_calls_compile(tmp_path, language):
    for call in GOOD:
        ok, text = compiles(tmp_path, language, call)
        assert ok, (call, text)


@pytest.mark.parametrize("language", COMPILERS)
@pytest.mark.parametrize("call", WRONG)
def test_wrong_call_does_not_compile(tmp_path, language, call):
    assert not compiles(tmp_path, language, call)[0]
