# SPDX-License-Identifier: Apache-2.0
"""Services in C++: the macros of the headers compile in C++17 and C++20 without a warning, and such a service runs."""
import shutil
import subprocess

import pytest

import services
from monkey import ROOT

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wold-style-cast", "-Wconversion", "-Wzero-as-null-pointer-constant", "-pedantic", "-Werror"]
PLAIN = r"""
#define DUDA_USE "duda-sql", "duda-redis"
#include <duda.h>
#include <duda/redis.h>
#include <duda/sql.h>

struct place {
    mk_str city;
    unsigned zip;
    bool open;
    const int *n;
    size_t n_n;
};
static const duda_schema_field place_fields[] = {
    DUDA_STRING(place, city), DUDA_INTEGER(place, zip), DUDA_BOOL(place, open), DUDA_INTEGERS(place, n, n_n)};
static const duda_schema place_schema = DUDA_SCHEMA(place, place_fields);

static int show(duda_ctx *d)
{
    duda_sql_result result;
    duda_redis_reply reply;
    int e = duda_sql_query(d, duda_sql_find(d, nullptr), &result, "SELECT 1");
    e = e ? e : duda_redis(d, duda_redis_find(d, nullptr), &reply, MK_STR("PING"));
    place p = {};
    e = e ? e : duda_send_json_struct(d, &place_schema, &p);
    return e ? e : duda_printf(d, "%.*s", MK_STR_ARG(duda_path(d)));
}

static int before(duda_ctx *)
{
    return DUDA_NEXT;
}

static bool is_staff(duda_ctx *d)
{
    return duda_header(d, "X").p != nullptr;
}

static int start(mk_worker *)
{
    return 0;
}

static void stop(mk_worker *) {}

DUDA_ROUTES(inner, DUDA_REQUIRE(is_staff, 403), DUDA_BEFORE(before), DUDA_GET("/page", show));
DUDA_SERVICE(plain, DUDA_HOST("a"), DUDA_HOST(""), DUDA_START(start), DUDA_STOP(stop),
    DUDA_GROUP("/staff", inner), DUDA_ANY("/x", show, "Shows."));
"""
OPTIONS = r"""
#include <duda.h>
#include <duda/sql.h>

struct place {
    mk_str city;
    unsigned zip;
};
static const duda_schema_field place_fields[] = {
    DUDA_STRING(place, city, .max_length = 20),
    DUDA_INTEGER(place, zip, DUDA_MAXIMUM(99999)),
};
static const duda_schema place_schema = DUDA_SCHEMA(place, place_fields, .allow_unknown = true);

static int create(duda_ctx *d)
{
    place p = {};
    int e = duda_bind_json(d, &place_schema, &p, nullptr);
    return e ? e : duda_send_json_struct(d, &place_schema, &p);
}

static int show(duda_ctx *d)
{
    return duda_puts(d, duda_path(d).p);
}

static bool is_staff(duda_ctx *d)
{
    return duda_header(d, "X-Staff").p != nullptr;
}

DUDA_ROUTES(inner, DUDA_REQUIRE(is_staff, 403), DUDA_GET("/page", show, "Staff only."));
DUDA_SERVICE(cpp, DUDA_GET("/", show, "The root."), DUDA_GET("/deep", show, "A larger stack.", .stack = 131072),
    DUDA_GROUP("/staff", inner, "For staff."), DUDA_POST("/places", create, "Creates a place."));
"""


def clang_version():
    words = subprocess.run(["clang++", "-dumpversion"], capture_output=True, text=True, check=True).stdout
    return int(words.split(".")[0])


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("standard, source", [("c++17", PLAIN), ("c++20", PLAIN), ("c++20", OPTIONS)], ids=["17", "20", "20-options"])
def test_cpp_service_compiles_without_warnings(tmp_path, compiler, standard, source):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    # Before C++20, a variadic macro call must pass an argument for `...`; compilers warn where the service omits it.
    more = []
    if (compiler, standard) == ("clang++", "c++17"):
        more = ["-Wno-gnu-zero-variadic-macro-arguments" if clang_version() < 18 else "-Wno-c++20-extensions"]
    (tmp_path / "service.cpp").write_text(source)
    done = subprocess.run([compiler, f"-std={standard}", "-fsyntax-only", *WARNINGS, *more, f"-I{ROOT / 'include'}", f"-I{ROOT / 'duda/include'}",
                           tmp_path / "service.cpp"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("g++"), reason="this build has no Duda, or there is no C++ compiler")
def test_cpp_service_runs(monkey, tmp_path):
    source, out = tmp_path / "cpp.cpp", tmp_path / "monkey-cpp.so"
    source.write_text(OPTIONS)
    subprocess.run(["g++", "-std=c++20", "-g", "-O1", "-fPIC", "-shared", "-fstack-clash-protection", *WARNINGS, f"-I{ROOT / 'include'}",
                    f"-I{ROOT / 'duda/include'}", "-o", out, source, f"-L{services.OBJECTS}", "-l:monkey-duda.so",
                    f"-Wl,-rpath,{services.OBJECTS}"], check=True, timeout=120)
    server = monkey(plugins=[out])
    assert server.get("/deep").text == "/deep"
    assert server.get("/staff/page").status == 403
    assert server.get("/staff/page", fields=[("X-Staff", "1")]).text == "/staff/page"
    made = server.get("/places", method="POST", body=b'{"city": "Ulm", "zip": 89073}', fields=[("Content-Type", "application/json")])
    assert (made.status, made.text) == (200, '{"city":"Ulm","zip":89073}')
