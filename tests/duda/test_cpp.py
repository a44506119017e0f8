# SPDX-License-Identifier: Apache-2.0
"""Services in C++: the macros of the headers compile in C++17 and C++20 without a warning, and such a service runs."""
import re
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
#include <cerrno>

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
    if (e == -EEXIST && duda_sql_last_violation(d)->kind == DUDA_SQL_UNIQUE && result.violation)
        return 409;
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
DUDA_SERVICE(plain, DUDA_HOST("a"), DUDA_HOST(""), DUDA_START(start), DUDA_START_TASK(show), DUDA_STOP(stop),
    DUDA_GROUP("/staff", inner), DUDA_ANY("/x", show, "Shows."));
"""
MACROS = r"""
#include <duda.h>
#include <duda/http.h>
#include <duda/sql.h>
#include <duda/store.h>
#include <duda/task.h>
#include <duda/test.h>

struct part {
    mk_str name;
    double price;
};
struct whole {
    mk_str text, raw;
    bool on;
    int64_t time;
    unsigned state;
    mk_str bytes;
    part one;
    part *parts;
    size_t n_parts;
    mk_str *tags;
    size_t n_tags;
};
static const char *const states[] = {"a", "b", nullptr};
static const duda_schema_field part_fields[] = {DUDA_STRING(part, name), DUDA_DOUBLE(part, price, DUDA_MINIMUM(0), DUDA_MAXIMUM(9))};
static const duda_schema part_schema = DUDA_SCHEMA(part, part_fields);
static const duda_schema_field whole_fields[] = {
    DUDA_STRING(whole, text), DUDA_JSON_RAW(whole, raw), DUDA_BOOL(whole, on), DUDA_TIMESTAMP(whole, time),
    DUDA_ENUM(whole, state, states), DUDA_BYTES(whole, bytes), DUDA_OBJECT(whole, one, &part_schema),
    DUDA_LIST(whole, tags, n_tags, DUDA_KIND_STRING), DUDA_MAP(whole, parts, n_parts, &part_schema)};
static const duda_schema whole_schema = DUDA_SCHEMA(whole, whole_fields);
struct search {
    int64_t page, per_page;
};
static const duda_schema_field search_fields[] = {DUDA_PAGE_FIELDS(search)};
static const duda_schema search_schema = DUDA_SCHEMA(search, search_fields);

DUDA_COUNTER(orders, "orders_total", "Orders.", "country");
DUDA_GAUGE(carts, "carts", "Carts.");
DUDA_HISTOGRAM(sizes, "sizes", "Sizes.");
DUDA_DURATION(times, "times_seconds", "Times.");

static int later(duda_ctx *)
{
    return 0;
}

static int list(duda_ctx *d)
{
    duda_page page = {};
    page.size = 3;
    mk_str after;
    int e = duda_page_read(d, &page);
    e = e ? e : duda_cursor_read(d, "after", &after);
    e = e ? e : duda_page_links(d, &page);
    e = e ? e : duda_link_add(d, "next", duda_url_with_query(d, "after", duda_cursor_new(d, MK_STR("x"))));
    e = e ? e : duda_store_token_bucket(d, duda_store_find(d, nullptr), MK_STR("k"), 1, 1000);
    e = e ? e : duda_after_response(d, later, "x", 1);
    whole of_all = {};
    duda_http_request request = {};
    duda_http_response response;
    request.json = duda_value_struct(&whole_schema, &of_all);
    e = e ? e : duda_http_fetch(d, duda_http_find(d, nullptr), &request, &response);
    duda_counter_add(d, &orders, 1, MK_STR("NL"));
    duda_gauge_add(d, &carts, 1);
    duda_gauge_set(d, &carts, 1);
    duda_histogram_observe(d, &sizes, 1);
    duda_duration_observe_us(d, &times, 1);
    duda_log_fields(d, MK_LOG_INFO, "listed", DUDA_LOG_FIELD("page", page.number), DUDA_LOG_FIELD("by", "me"));
    mk_sse_event event = {};
    event.data = MK_STR("x");
    duda_sse_set_keep_alive(d, 1000);
    e = e ? e : duda_sse_send(d, &event);
    whole w = {};
    search found = {};
    e = e ? e : duda_bind_query(d, &search_schema, &found);
    return e ? e : duda_send_json_struct(d, &whole_schema, &w);
}

static int around(duda_ctx *d)
{
    return duda_next(d);
}

DUDA_TEST(lists)
{
    duda_test_response response = duda_test_get(t, "/");
    duda_expect(t, response.status == 200);
    duda_expect_status(t, response, 200);
    duda_expect_text(t, response.body, "x");
    duda_expect_contains(t, response.body, "x");
    duda_expect_int(t, 1, 1);
    duda_expect_json(t, response.body, "{}");
}

static const duda_cors cors = {"*", nullptr, "Link", 0, false, {}};
DUDA_ROUTES_DECLARE(items);
DUDA_ROUTES(items, DUDA_CORS(&cors), DUDA_ERROR(duda_error_problem), DUDA_BEFORE(duda_auto_etag), DUDA_AROUND(around), DUDA_AFTER(later),
    DUDA_ASSETS("/static"), DUDA_GET("/a", list), DUDA_POST("/a", list), DUDA_PUT("/a", list), DUDA_PATCH("/a", list), DUDA_DELETE("/a", list),
    DUDA_ROUTE("GET,POST", "/b", list, "Lists."));
DUDA_SERVICE(macros, DUDA_GROUP("/items", items));
"""
OPTIONS = r"""
#include <duda.h>
#include <duda/auth.h>
#include <duda/oidc.h>
#include <duda/sql.h>
#include <duda/topic.h>

[[maybe_unused]] static const duda_basic_auth users = DUDA_BASIC_AUTH(.realm = "users", .find = nullptr);
[[maybe_unused]] static const duda_token_auth tokens = DUDA_TOKEN_AUTH(.find = nullptr, .header = "X-Key");
[[maybe_unused]] static const duda_session_auth members = DUDA_SESSION_AUTH(.login = "/in");
[[maybe_unused]] static const duda_oidc_login login = DUDA_OIDC_LOGIN(.provider = "main");

DUDA_TOPIC_DECLARE(news);
DUDA_TOPIC_FAMILY_DECLARE(rooms);
DUDA_TOPIC(news, "news", .keep = 100);
DUDA_TOPIC_FAMILY(rooms, "room/", .keep = 20);

struct place {
    mk_str city;
    unsigned zip;
    bool has_zip;
};
static const duda_schema_field place_fields[] = {
    DUDA_STRING(place, city, .max_length = 20),
    DUDA_INTEGER(place, zip, DUDA_OPTIONAL(place, has_zip), DUDA_MAXIMUM(99999)),
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
DUDA_ROUTES(limited, DUDA_GET("/plain", show), DUDA_GET("/named", show, .url_name = "named"), DUDA_POST("/long", show, .body_max = 1 << 20, .tags = "a"));
DUDA_SERVICE(cpp, DUDA_GET("/", show, "The root."), DUDA_START_TASK(show, .stack = 131072), DUDA_GET("/deep", show, "A larger stack.", .stack = 131072),
    DUDA_GET("/rare", show, .rate = "2/hour", .url_name = "rare"), DUDA_GROUP("/limited", limited, .rate = "1/hour"),
    DUDA_GROUP("/staff", inner, "For staff."), DUDA_POST("/places", create, "Creates a place."));
"""


def clang_version():
    words = subprocess.run(["clang++", "-dumpversion"], capture_output=True, text=True, check=True).stdout
    return int(words.split(".")[0])


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("standard, source", [("c++17", PLAIN), ("c++20", PLAIN), ("c++17", MACROS), ("c++20", MACROS), ("c++20", OPTIONS)],
                         ids=["17", "20", "17-macros", "20-macros", "20-options"])
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


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_options_compile_in_cpp17(tmp_path, compiler):
    """Without -pedantic, compilers accept designated initializers in C++17."""
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "service.cpp").write_text(OPTIONS)
    more = [] if compiler == "g++" else ["-Wno-gnu-zero-variadic-macro-arguments" if clang_version() < 18 else "-Wno-c++20-extensions"]
    done = subprocess.run([compiler, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *more, f"-I{ROOT / 'include'}",
                           f"-I{ROOT / 'duda/include'}", tmp_path / "service.cpp"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler")
def test_every_option_of_a_route_may_come_first_in_cpp(tmp_path):
    """struct duda_route_first has all members of struct duda_route that are options, and duda_route_with() uses them."""
    header = re.sub(r"/\*.*?\*/", "", (ROOT / "duda/include/duda/service.h").read_text(), flags=re.DOTALL)

    def members(struct):
        body = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", header, re.MULTILINE | re.DOTALL)[1]
        return re.findall(r"(\w+)(?=\)\(|,| =|;)", re.sub(r"\)\([^)]*\)", ")()", body).replace("(*", "(").replace("MK_API_NULL", "0"))

    options = members("duda_route")
    options = [name for name in options[options.index("summary"):] if name not in ("predicate", "status", "start", "stop")]
    assert [name for name in members("duda_route_first") if name not in ("0", "false")] == options
    used = re.findall(r"route\.(\w+) = first\.\1 \? first\.\1 : route\.\1;", header)
    assert used == options and len(used) > 20


def test_every_macro_is_compiled_as_cpp():
    """Every macro with an uppercase name is tested, except helpers of other macros and macros that exist only in C."""
    headers = "".join(path.read_text() for path in (ROOT / "duda/include/duda").glob("*.h"))
    names = set(re.findall(r"^#define (DUDA_[A-Z_]+)\(", headers, re.MULTILINE)) - {"DUDA_LABELS", "DUDA_PROBE", "DUDA_SCHEMA_FIELD", "DUDA_FIRST_OF", "DUDA_REST_OF"}
    assert [name for name in sorted(names) if not name.endswith("_ENTRY") and f"{name}(" not in PLAIN + MACROS + OPTIONS] == []


@pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("g++"), reason="this build has no Duda, or there is no C++ compiler")
def test_cpp_service_runs(monkey, tmp_path):
    source, out = tmp_path / "cpp.cpp", tmp_path / "monkey-cpp.so"
    source.write_text(OPTIONS)
    subprocess.run(["g++", "-std=c++20", "-g", "-O1", "-fPIC", "-shared", "-fstack-clash-protection", *WARNINGS, f"-I{ROOT / 'include'}",
                    f"-I{ROOT / 'duda/include'}", "-o", out, source, f"-L{services.OBJECTS}", "-l:monkey-duda.so",
                    f"-Wl,-rpath,{services.OBJECTS}"], check=True, timeout=120)
    server = monkey(plugins=[out])
    assert server.get("/deep").text == "/deep"
    assert [server.get("/rare").status for _ in range(3)] == [200, 200, 429], "an option without a summary applies"
    assert [server.get(f"/limited/{name}").status for name in ("plain", "named")] == [200, 429]
    assert server.get("/staff/page").status == 403
    assert server.get("/staff/page", fields=[("X-Staff", "1")]).text == "/staff/page"
    made = server.get("/places", method="POST", body=b'{"city": "Ulm", "zip": 89073}', fields=[("Content-Type", "application/json")])
    assert (made.status, made.text) == (200, '{"city":"Ulm","zip":89073}')
