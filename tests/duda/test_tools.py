# SPDX-License-Identifier: Apache-2.0
"""`monkey new`, `test`, `routes` and `doc`: the generated project compiles, its tests pass, and its description is valid
OpenAPI."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import browser
import services
from monkey import PROGRAM, SECONDS

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

SERVICE = r"""#include <duda.h>

static int any(struct duda_ctx *d)
{
    return duda_printf(d, "%s </script>", duda_path(d).p);
}

DUDA_ROUTES(inner, DUDA_PUT("/:key<uuid>", any, "Stores \"it\" </script><b>."), DUDA_GET("/*rest", any, "The rest."));
DUDA_SERVICE(odd, DUDA_GET("/", any, "Root."), DUDA_ROUTE("GET,POST", "/items/:id<int>", any, "Both."),
             DUDA_ANY("/any", any, "All."), DUDA_GROUP("/deep", inner, "A group."), DUDA_HOST("a.test"),
             DUDA_DELETE("/items/:id<int>", any, "Elsewhere."));
"""


@pytest.fixture
def call(run, tmp_path, tmp_path_factory):
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)
    usual = {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)}
    return lambda *words, environment=(), **how: run(*words, environment=usual | dict(environment), **how)


@pytest.fixture
def odd(tmp_path):
    path = tmp_path / "odd.c"
    path.write_text(SERVICE)
    return path


def test_new_creates_a_project_whose_tests_pass(call, monkey, tmp_path):
    done = call("new", "shop")
    assert done.code == 0 and "monkey run .\n" in done.out
    assert sorted(path.name for path in (tmp_path / "shop").iterdir()) == [
        ".gitignore", "Makefile", "README.md", "compile_commands.json", "dev.conf", "html", "shop.c", "shop.conf", "shop_test.c", "templates"]
    commands = json.loads((tmp_path / "shop/compile_commands.json").read_text())
    assert [Path(command["file"]).name for command in commands] == ["shop.c", "shop_test.c"]
    for command in commands:
        subprocess.run([*command["arguments"], "-fsyntax-only"], cwd=command["directory"], check=True)
    done = call("test", folder=tmp_path / "shop")
    assert (done.code, done.out.splitlines()[-3:]) == (0, ["ok shop.greets", "ok shop.computes", "2 tests passed"]), done
    shop = tmp_path / "shop/shop.c"
    shop.write_text(shop.read_text().replace("#include <duda.h>\n", '#include "util.h"\n#include <duda.h>\n').replace('"world"', "util_name()"))
    (tmp_path / "shop/util.h").write_text("const char *util_name(void);\n")
    (tmp_path / "shop/util.c").write_text('#include "util.h"\nconst char *util_name(void) { return "all"; }\n')
    if shutil.which("make"):
        make = ["make", "-s", f"MONKEY={PROGRAM}"]
        done = subprocess.run([*make, "test"], cwd=tmp_path / "shop", check=True, capture_output=True, text=True, timeout=2 * SECONDS,
                              env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)})
        assert "2 tests passed" in done.stdout
        subprocess.run(make, cwd=tmp_path / "shop", check=True, stdout=subprocess.DEVNULL,
                       timeout=2 * SECONDS, env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)})
        conf = tmp_path / "shop/shop.conf"
        conf.write_text(conf.read_text().replace("127.0.0.1:2001", "127.0.0.1:0"))
        server = monkey(args=["-c", conf, "-w", "1"])
        assert server.get("/").text == "hello all\n" and "<h1>shop" in server.get("/about.html").text
        assert '<a href="/square/49">' in server.get("/square/7").text
    before = (tmp_path / "shop/shop.c").read_text()
    done = call("new", "shop")
    assert done.code == 1 and "File exists" in done.err and (tmp_path / "shop/shop.c").read_text() == before


@pytest.mark.parametrize("name", ["Shop", "1a", "a-b", "../a", ""])
def test_new_rejects_invalid_names(call, name):
    done = call("new", name)
    assert done.code == 2 and "a name consists of lower-case letters" in done.err


def test_failed_tests_are_reported(call, odd, tmp_path):
    tests = tmp_path / "odd_test.c"
    tests.write_text('#include <duda/test.h>\nDUDA_TEST(fine) { duda_expect(t, duda_test_get(t, "/").status == 200); }\n'
                     'DUDA_TEST(bad) { duda_expect_text(t, duda_test_get(t, "/").body, "else"); duda_expect(t, 1 > 2); }\n')
    done = call("test", tests)
    assert done.code == 1 and "ok odd.fine\n" in done.out and "not ok odd.bad\n" in done.out
    assert '  odd_test.c:3: duda_test_get(t, "/").body: expected "else", got "/ </script>"\n' in done.out
    assert "  odd_test.c:3: 1 > 2 is not true\n" in done.out and done.out.endswith("\n1 of 2 tests failed\n")
    tests.write_text("int x = ;\n")
    done = call("test", tmp_path)
    assert done.code == 1 and "odd_test.c:1:9: error:" in done.err
    tests.write_text("#include <duda/test.h>\n")
    done = call("test", tests)
    assert done.code == 1 and "contains no DUDA_TEST()" in done.err
    done = call("test", "none.c")
    assert done.code == 1 and "end with _test.c" in done.err


MESSAGES = r"""#include <duda/test.h>
DUDA_TEST(all)
{
    struct duda_test_response r = duda_test_get(t, "/items/7");
    duda_expect_status(t, r, 404);
    duda_expect_int(t, r.body.len, 3);
    duda_expect_contains(t, r.body, "\"none\"");
    duda_expect_text(t, duda_test_response_header(r, "X-None"), "");
    const char *a = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789a\n";
    duda_expect_text(t, mk_str_from_c(a), "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
                                          "567890123456789b");
    duda_test_send(t, &(struct duda_test_request){.target = "/ /"});
}
"""


def test_failure_messages_show_expected_and_actual_values(call, odd, tmp_path):
    (tmp_path / "odd_test.c").write_text(MESSAGES)
    done = call("test")
    assert done.code == 1 and done.out.splitlines()[-8:] == [
        '  odd_test.c:5: expected status 404, got 200 with "/items/7 </script>"',
        "  odd_test.c:6: r.body.len: expected 3, got 18",
        '  odd_test.c:7: r.body: expected "\\"none\\"" in it, got "/items/7 </script>"',
        '  odd_test.c:8: duda_test_response_header(r, "X-None"): expected "", got nothing',
        '  odd_test.c:10: mk_str_from_c(a): expected ..."678901234567890123456789b", got ..."678901234567890123456789a\\n"',
        "  GET / /: the request is invalid", "not ok odd.all", "1 of 1 test failed"]


def test_crash_fails_only_one_test(call, tmp_path):
    """If the service or the test crashes or exits, the stack is shown and the remaining tests run."""
    (tmp_path / "frail.c").write_text(r"""#include <duda.h>
#include <stdlib.h>
static int crash(struct duda_ctx *d)
{
    const char *none = NULL;
    return duda_printf(d, "%c\n", *none); /* here */
}
static int leave(struct duda_ctx *d)
{
    (void)d;
    exit(0);
}
DUDA_SERVICE(frail, DUDA_GET("/crash", crash, "Crashes."), DUDA_GET("/leave", leave, "Ends the server."));
""")
    (tmp_path / "frail_test.c").write_text("""#include <duda/test.h>
DUDA_TEST(service) { duda_test_get(t, "/crash"); }
DUDA_TEST(itself) { (void)t; __builtin_trap(); }
DUDA_TEST(leaves) { duda_test_get(t, "/leave"); }
DUDA_TEST(fine) { duda_expect_status(t, duda_test_get(t, "/"), 404); }
""")
    done = call("test", environment={"ASAN_OPTIONS": "handle_segv=0:handle_sigill=0"})
    assert done.code == 1 and done.out.endswith("ok frail.fine\n3 of 4 tests failed\n"), done
    assert "not ok frail.leaves: the process exited with code 0\n" in done.out
    service, itself = done.out.split("not ok frail.service: it crashed\n")[1].split("not ok frail.itself: it crashed\n")
    assert service.startswith("SIGSEGV") and re.match("SIG(ILL|TRAP)", itself)
    if shutil.which("addr2line"):
        assert "frail.c:6: in crash()" in service and "/* here */" in service
        assert "frail_test.c:3: in duda_test_of_itself()" in itself and "main()" not in done.out


def test_test_server_does_not_listen(call, odd, tmp_path):
    """The test server has no listening socket, and leaves no files."""
    (tmp_path / "odd_test.c").write_text(r"""#include <duda/test.h>
#include <sys/socket.h>
DUDA_TEST(listens_nowhere)
{
    duda_expect_status(t, duda_test_get(t, "/"), 200);
    for (int fd = 0; fd < 1024; fd++) {
        int listens = 0;
        socklen_t size = sizeof listens;
        (void)getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
        duda_expect_int(t, listens, 0);
    }
}
""")
    before = set(tmp_path.iterdir())
    done = call("test", "odd_test.c")
    assert done.code == 0 and set(tmp_path.iterdir()) == before, done


def test_tests_use_configuration_and_files(call, tmp_path):
    """The service's log messages are shown, files of html/ are served, and `-i` adds sections. No port is opened."""
    (tmp_path / "set.c").write_text(r"""#define DUDA_SETTINGS table
#include <duda.h>
struct settings {
    uint32_t limit;
};
static const struct mk_conf_key keys[] = {
    {.name = "Limit", .type = MK_CONF_NUM, MK_CONF_AT(struct settings, limit), .max = 9, .default_value = "3", .help = "How many."}};
static const struct mk_conf_table table = {
    .section = "SET", .keys = keys, .n = MK_LEN(keys), .help = "Of the test.", .size = sizeof(struct settings)};
static int limit(struct duda_ctx *d)
{
    const struct settings *s = duda_settings(d);
    duda_log(d, MK_LOG_WARN, "the limit is asked for");
    return duda_printf(d, "%u", s->limit);
}
DUDA_SERVICE(set, DUDA_GET("/limit", limit, "Says the limit."));
""")
    (tmp_path / "html").mkdir()
    (tmp_path / "html/a.txt").write_text("a file")
    taken = socket.create_server(("127.0.0.1", 0))
    (tmp_path / "more.conf").write_text(f"[SERVER]\n    Listen 127.0.0.1:{taken.getsockname()[1]}\n[SET]\n    Limit 7\n")
    (tmp_path / "set_test.c").write_text('#include <duda/test.h>\nDUDA_TEST(both) { duda_expect_text(t, duda_test_get(t, "/limit")'
                                         '.body, "7"); duda_expect_text(t, duda_test_get(t, "/a.txt").body, "a file"); }\n')
    done = call("test", "-i", "more.conf")
    assert done.code == 0 and "the limit is asked for" in done.err, done
    taken.close()
    (tmp_path / "more.conf").write_text("[SET]\n    Limit 77\n")
    done = call("test", "-i", "more.conf")
    assert done.code == 1 and "more.conf:2:" in done.err and "Limit" in done.err, done


def test_test_client_sends_requests_and_reads_responses(call, odd, tmp_path):
    (tmp_path / "odd_test.c").write_text(
        '#include <duda/test.h>\nDUDA_TEST(all)\n{\n'
        '    struct duda_test_response r = duda_test_send(t, &(struct duda_test_request){.target = "/items/1", .headers = "Host2: x\\r\\n", .body = '
        'MK_STR("x")});\n    duda_expect(t, r.status == 200);\n'
        '    duda_expect_text(t, duda_test_response_header(r, "content-TYPE"), "text/plain; charset=utf-8");\n'
        '    duda_expect(t, !duda_test_response_header(r, "none").p);\n'
        '    duda_expect(t, duda_test_post(t, "/items/2", "text/plain", "").status == 200);\n'
        '    r = duda_test_send(t, &(struct duda_test_request){.method = "DELETE", .target = "/deep/x"});\n'
        '    duda_expect(t, r.status == 405);\n}\n')
    done = call("test", tmp_path / "odd_test.c")
    assert done.code == 0, done


def test_routes_lists_all_routes(call, odd):
    done = call("routes", odd)
    rows = [line.split(None, 4) for line in done.out.splitlines()]
    assert [row[:3] for row in rows] == [
        ["GET", "/", "any"], ["GET,POST", "/items/:id<int>", "any"], ["*", "/any", "any"], ["PUT", "/deep/:key<uuid>", "any"],
        ["GET", "/deep/*rest", "any"], ["DELETE", "/items/:id<int>", "any"]]
    assert rows[0][3].startswith("odd.c:") and rows[0][4] == "Root." and rows[5][4].startswith("a.test")
    odd.write_text(SERVICE.replace("return", "retrun"))
    assert call("routes", odd).code == 1


def test_openapi_describes_all_routes(call, odd, tmp_path):
    done = call("openapi", "-o", tmp_path / "odd.json", odd)
    assert done.code == 0, done
    api = json.loads((tmp_path / "odd.json").read_text())
    assert {path: sorted(ops) for path, ops in api["paths"].items()} == {
        "/": ["get"], "/items/{id}": ["delete", "get", "post"], "/any": ["get", "post"], "/deep/{key}": ["put"],
        "/deep/{rest}": ["get"]}
    assert api["paths"]["/items/{id}"]["get"]["parameters"][0]["schema"]["type"] == "integer"
    assert "multipart/form-data" in api["paths"]["/items/{id}"]["post"]["requestBody"]["content"], "the page offers uploads"
    assert api["paths"]["/deep/{key}"]["put"]["summary"] == 'Stores "it" </script><b>.'
    check_openapi(api)


def check_openapi(api):
    pytest.importorskip("openapi_spec_validator").validate(api)


SHAPED = r"""#include <duda.h>
struct part {
    double weight;
    mk_str *tags;
    size_t n_tags;
};
struct thing {
    mk_str name;
    unsigned char count;
    int64_t big;
    int size;
    unsigned color;
    bool sold;
    struct part part;
    mk_str raw;
};
static const char *const colors[] = {"red", "blue", NULL};
static const struct duda_schema_field of_part[] = {
    DUDA_DOUBLE(struct part, weight, DUDA_MINIMUM(0.1)), DUDA_LIST(struct part, tags, n_tags, DUDA_KIND_STRING, .max_length = 3)};
static const struct duda_schema part = DUDA_SCHEMA(struct part, of_part, .allow_unknown = true);
static const struct duda_schema_field of_thing[] = {
    DUDA_STRING(struct thing, name, .min_length = 1, .max_length = 9, .json_name = "the \"name\""), DUDA_INTEGER(struct thing, count),
    DUDA_INTEGER(struct thing, big, .optional = true), DUDA_INTEGER(struct thing, size, DUDA_MINIMUM(-1), DUDA_MAXIMUM(5)),
    DUDA_ENUM(struct thing, color, colors), DUDA_BOOL(struct thing, sold, .optional = true),
    DUDA_OBJECT(struct thing, part, &part), DUDA_JSON_RAW(struct thing, raw, .optional = true)};
static const struct duda_schema thing = DUDA_SCHEMA(struct thing, of_thing);
struct page {
    unsigned from, color;
};
static const struct duda_schema_field of_page[] = {
    DUDA_INTEGER(struct page, from, .optional = true, DUDA_MAXIMUM(9)), DUDA_ENUM(struct page, color, colors, .optional = true)};
static const struct duda_schema page = DUDA_SCHEMA(struct page, of_page);
static int ask(struct duda_ctx *d)
{
    struct page p = {.from = 3};
    int e = duda_bind_query(d, &page, &p);
    return e ? e : duda_printf(d, "%u %u", p.from, p.color);
}
static int take(struct duda_ctx *d)
{
    struct thing t = {0};
    int e = duda_bind_json(d, &thing, &t, NULL);
    return e ? e : duda_send_json_struct(d, &thing, &t);
}
DUDA_ROUTES(none, DUDA_HOST(""));
DUDA_ROUTES(inner, DUDA_GET("/x", ask, "Within."), DUDA_GROUP("/more", none, "None."),
            DUDA_GET("/y", ask, "Within, too."));
DUDA_SERVICE(shaped, DUDA_GET("/ask", ask, "Asks.", .query = &page, .responses = "200 418 200"),
             DUDA_POST("/take", take, "Takes.", .request_body = &thing, .response_body = &thing, .responses = "201 409"),
             DUDA_POST("/list", take, "Takes many.", .request_body = &thing, .request_is_list = true, .response_body = &thing, .response_is_list = true),
             DUDA_POST("/form", take, "Takes a form.", .form = &page), DUDA_GROUP("/in", inner, "A \"group\"."));
"""


def nullable(schema):
    return {"anyOf": [schema, {"type": "null"}]}


NULLS = r"""#include <duda.h>
struct inner { mk_str note; };
struct outer { mk_str title; struct inner inner; struct inner *more; size_t n_more; };
struct row { mk_str text; struct inner inner; };
struct form { mk_str word; };
static const struct duda_schema_field of_inner[] = {DUDA_STRING(struct inner, note, .optional = true)};
static const struct duda_schema inner = DUDA_SCHEMA(struct inner, of_inner);
static const struct duda_schema_field of_outer[] = {DUDA_STRING(struct outer, title, .optional = true), DUDA_OBJECT(struct outer, inner, &inner, .optional = true),
    DUDA_LIST(struct outer, more, n_more, DUDA_KIND_OBJECT, .schema = &inner, .optional = true)};
static const struct duda_schema outer = DUDA_SCHEMA(struct outer, of_outer);
static const struct duda_schema_field of_row[] = {DUDA_STRING(struct row, text, .optional = true), DUDA_OBJECT(struct row, inner, &inner)};
static const struct duda_schema row = DUDA_SCHEMA(struct row, of_row);
static const struct duda_schema_field of_form[] = {DUDA_STRING(struct form, word, .optional = true)};
static const struct duda_schema form = DUDA_SCHEMA(struct form, of_form);
static int take(struct duda_ctx *d)
{
    struct outer o = {0};
    int e = duda_bind_json(d, &outer, &o, NULL);
    return e ? e : 204;
}
DUDA_SERVICE(nulls, DUDA_GET("/rows", take, "", .response_body = &row, .query = &form, .headers = &form), DUDA_POST("/form", take, "", .form = &form),
             DUDA_POST("/take", take, "", .request_body = &outer));
"""


def test_openapi_allows_null_in_json_requests(call, monkey, tmp_path):
    """A service accepts null for optional members of JSON. Its responses omit them, and forms, queries and headers have no null."""
    (tmp_path / "nulls.c").write_text(NULLS)
    done = call("openapi", "nulls.c")
    assert done.code == 0, done
    api = json.loads(done.out)
    check_openapi(api)
    text, inner, schemas = {"type": "string"}, {"$ref": "#/components/schemas/inner"}, api["components"]["schemas"]
    assert schemas["outer"]["properties"] == {"title": nullable(text), "inner": nullable(inner), "more": nullable({"type": "array", "items": inner})}
    assert schemas["inner"]["properties"] == {"note": nullable(text)}, "a response contains the schema, too, but a request accepts the null"
    assert schemas["row"]["properties"] == {"text": text, "inner": inner}
    assert schemas["form"]["properties"] == {"word": text}
    assert [p["schema"] for p in api["paths"]["/rows"]["get"]["parameters"]] == [text, text]
    server = monkey(args=["run", "-p", "0", tmp_path / "nulls.c"], environment={"XDG_CACHE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    body = json.dumps({"title": None, "inner": None, "more": None}).encode()
    assert server.get("/take", "POST", [("Content-Type", "application/json")], body).status == 204
    body = json.dumps({"more": [{"note": None}], "inner": {"note": None}}).encode()
    assert server.get("/take", "POST", [("Content-Type", "application/json")], body).status == 204


DEEP_NULLS = r"""#include <duda.h>
struct leaf { mk_str note; };
struct middle { struct leaf leaf; };
struct unnamed { struct middle middle; };
struct root { struct unnamed unnamed; };
static const struct duda_schema_field of_leaf[] = {DUDA_STRING(struct leaf, note, .optional = true)};
static const struct duda_schema leaf = DUDA_SCHEMA(struct leaf, of_leaf);
static const struct duda_schema_field of_middle[] = {DUDA_OBJECT(struct middle, leaf, &leaf)};
static const struct duda_schema middle = DUDA_SCHEMA(struct middle, of_middle);
static const struct duda_schema_field of_unnamed[] = {DUDA_OBJECT(struct unnamed, middle, &middle)};
static const struct duda_schema unnamed = DUDA_SCHEMA(struct unnamed, of_unnamed, .name = "");
static const struct duda_schema_field of_root[] = {DUDA_OBJECT(struct root, unnamed, &unnamed)};
static const struct duda_schema root = DUDA_SCHEMA(struct root, of_root);
static int take(struct duda_ctx *d)
{
    struct root r = {0};
    int e = duda_bind_json(d, &root, &r, NULL);
    return e ? e : 204;
}
DUDA_SERVICE(nulls, DUDA_GET("/leaf", take, "", .response_body = &leaf), DUDA_POST("/take", take, "", .request_body = &root));
"""


def test_openapi_allows_null_in_deep_members_of_requests(call, tmp_path):
    """The description of the leaf is written before those of the schemas between it and the request."""
    (tmp_path / "nulls.c").write_text(DEEP_NULLS)
    done = call("openapi", "nulls.c")
    assert done.code == 0, done
    api = json.loads(done.out)
    check_openapi(api)
    schemas = api["components"]["schemas"]
    assert "middle" in schemas and schemas["leaf"]["properties"] == {"note": nullable({"type": "string"})}


def test_openapi_describes_schemas(call, monkey, tmp_path):
    (tmp_path / "shaped.c").write_text(SHAPED)
    done = call("openapi", "shaped.c")
    assert done.code == 0 and "warning" not in done.err, done
    api = json.loads(done.out)
    check_openapi(api)
    ask, take, form = (next(iter(api["paths"][path].values())) for path in ("/ask", "/take", "/form"))
    assert [(p["name"], p["in"], p["required"], p["schema"]) for p in ask["parameters"]] == [
        ("from", "query", False, {"type": "integer", "minimum": 0, "maximum": 9}),
        ("color", "query", False, {"type": "string", "enum": ["red", "blue"]})]
    assert list(ask["responses"]) == ["200", "418", "400"]
    schemas, reference = api["components"]["schemas"], {"$ref": "#/components/schemas/thing"}
    assert list(schemas) == ["Problem", "thing", "part", "page"]
    assert take["requestBody"]["content"]["application/json"]["schema"] == reference
    schema = schemas["thing"]
    assert schema["required"] == ['the "name"', "count", "size", "color", "part"] and schema["additionalProperties"] is False
    assert schema["properties"] == {
        'the "name"': {"type": "string", "minLength": 1, "maxLength": 9}, "count": {"type": "integer", "minimum": 0},
        "big": nullable({"type": "integer", "format": "int64"}), "size": {"type": "integer", "format": "int32", "minimum": -1, "maximum": 5},
        "color": {"type": "string", "enum": ["red", "blue"]}, "sold": nullable({"type": "boolean"}), "raw": {},
        "part": {"$ref": "#/components/schemas/part"}}
    assert schemas["part"] == {"type": "object", "required": ["weight", "tags"], "properties": {
        "weight": {"type": "number", "minimum": 0.1}, "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3}}}
    assert list(take["responses"]) == ["201", "409", "400", "413", "415", "422"]
    assert take["responses"]["201"]["content"]["application/json"]["schema"] == reference
    assert take["responses"]["422"]["content"]["application/problem+json"]["schema"]["$ref"] == "#/components/schemas/Problem"
    many = api["paths"]["/list"]["post"]
    assert many["responses"]["200"]["content"]["application/json"]["schema"] == {"type": "array", "items": reference}
    assert list(form["requestBody"]["content"]) == ["application/x-www-form-urlencoded", "multipart/form-data"]
    assert api["tags"] == [{"name": "/in", "description": 'A "group".'}]
    assert [api["paths"][path]["get"].get("tags") for path in ("/ask", "/in/x", "/in/y")] == [None, ["/in"], ["/in"]]


def test_openapi_describes_rules(call, tmp_path):
    (tmp_path / "rules.c").write_text(r"""#include <duda.h>
struct stock { mk_str color; unsigned n; };
static const struct duda_schema_field of_stock[] = {
    DUDA_STRING(struct stock, color, .pattern = "^[a-z]+$", .max_length = 9), DUDA_INTEGER(struct stock, n, DUDA_MAXIMUM(9))};
static const struct duda_schema stock = DUDA_SCHEMA(struct stock, of_stock);
struct thing { mk_str mail, id, at, day, link, price, sku, photo; int64_t made; int low, high; mk_str *tags; size_t n_tags;
               struct stock *stock; size_t n_stock; };
static const struct duda_schema_field of_thing[] = {
    DUDA_STRING(struct thing, mail, .format = DUDA_FORMAT_EMAIL), DUDA_STRING(struct thing, id, .format = DUDA_FORMAT_UUID),
    DUDA_STRING(struct thing, at, .format = DUDA_FORMAT_DATE_TIME), DUDA_STRING(struct thing, day, .format = DUDA_FORMAT_DATE),
    DUDA_STRING(struct thing, link, .format = DUDA_FORMAT_URL), DUDA_STRING(struct thing, price, .format = DUDA_FORMAT_DECIMAL),
    DUDA_STRING(struct thing, sku, .pattern = "^[A-Z]{3}$", .min_length = 3), DUDA_BYTES(struct thing, photo),
    DUDA_TIMESTAMP(struct thing, made), DUDA_INTEGER(struct thing, low, DUDA_MINIMUM(0)), DUDA_INTEGER(struct thing, high, DUDA_MAXIMUM(-1)),
    DUDA_LIST(struct thing, tags, n_tags, DUDA_KIND_STRING, .is_unique = true, .pattern = "^a"),
    DUDA_MAP(struct thing, stock, n_stock, &stock, .max_length = 4)};
static const struct duda_schema thing = DUDA_SCHEMA(struct thing, of_thing);
static int take(struct duda_ctx *d)
{
    struct thing t = {0};
    int e = duda_bind_json(d, &thing, &t, NULL);
    return e ? e : 204;
}
DUDA_SERVICE(rules, DUDA_POST("/take", take, "Takes.", .request_body = &thing));
""")
    api = json.loads(call("openapi", "rules.c").out)
    check_openapi(api)
    text = {"type": "string"}
    assert api["components"]["schemas"]["thing"]["properties"] == {
        "mail": text | {"format": "email"}, "id": text | {"format": "uuid"}, "at": text | {"format": "date-time"},
        "day": text | {"format": "date"}, "link": text | {"format": "uri"}, "price": text | {"format": "decimal"},
        "sku": text | {"pattern": "^[A-Z]{3}$", "minLength": 3}, "photo": text | {"contentEncoding": "base64"},
        "made": text | {"format": "date-time"}, "low": {"type": "integer", "format": "int32", "minimum": 0},
        "high": {"type": "integer", "format": "int32", "maximum": -1},
        "tags": {"type": "array", "items": text | {"pattern": "^a"}, "uniqueItems": True},
        "stock": {"type": "object", "propertyNames": text | {"pattern": "^[a-z]+$", "maxLength": 9},
                  "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 9}, "maxProperties": 4}}


def operation_ids(api):
    return {(method, path): operation["operationId"] for path, operations in api["paths"].items() for method, operation in operations.items()}


def test_operation_ids_are_stable(call, tmp_path):
    """Operation IDs are the names of handlers and do not depend on other routes, so that the function names of generated
    clients stay the same."""
    (tmp_path / "shaped.c").write_text(SHAPED)
    before = operation_ids(json.loads(call("openapi", "shaped.c").out))
    assert before[("get", "/ask")] == "ask" and before[("post", "/take")] == "take" and before[("get", "/in/x")] == "ask-get-in-x"
    assert len(set(before.values())) == len(before)
    more = SHAPED.replace("DUDA_SERVICE(shaped, ", 'static int first(struct duda_ctx *d) { return ask(d); }\n'
                          'DUDA_SERVICE(shaped, DUDA_ROUTE("GET,POST", "/first/:id", first, "Before all others."), ')
    (tmp_path / "shaped.c").write_text(more)
    api = json.loads(call("openapi", "shaped.c").out)
    check_openapi(api)
    after = operation_ids(api)
    assert {key: after[key] for key in before} == before
    assert (after[("get", "/first/{id}")], after[("post", "/first/{id}")]) == ("first", "first-post-first-.id")


ORDERS = r"""#define DUDA_API_TITLE "Orders"
#define DUDA_API_VERSION "1.4.0"
#define DUDA_API_DESCRIPTION "Takes \"orders\"."
#include <duda.h>
#include <errno.h>
struct order {
    mk_str name;
    unsigned count;
};
static const struct duda_schema_field of_order[] = {
    DUDA_STRING(struct order, name, .min_length = 1), DUDA_INTEGER(struct order, count, .optional = true)};
static const struct duda_schema order = DUDA_SCHEMA(struct order, of_order);
struct failure {
    mk_str code;
};
static const struct duda_schema_field of_failure[] = {DUDA_STRING(struct failure, code)};
static const struct duda_schema failure = DUDA_SCHEMA(struct failure, of_failure);
struct match {
    mk_str etag;
};
static const struct duda_schema_field of_match[] = {DUDA_STRING(struct match, etag, .json_name = "If-Match", .optional = true)};
static const struct duda_schema match = DUDA_SCHEMA(struct match, of_match);
static bool is_staff(struct duda_ctx *d)
{
    return mk_str_eq(duda_header(d, "X-Key"), MK_STR("sesame"));
}
static int check_token(struct duda_ctx *d)
{
    return mk_str_eq(duda_header(d, "Authorization"), MK_STR("Bearer t")) ? DUDA_NEXT : -EKEYREJECTED;
}
static int show(struct duda_ctx *d)
{
    struct order o = {.name = MK_STR("tea"), .count = 2};
    return duda_send_json_struct(d, &order, &o);
}
static int create(struct duda_ctx *d)
{
    struct order o = {0};
    int e = duda_bind_json(d, &order, &o, NULL);
    e = e ? e : duda_send_json_struct(d, &order, &o);
    return e ? e : 201;
}
static int attach(struct duda_ctx *d)
{
    struct order o = {0};
    int e = duda_bind_form(d, &order, &o, NULL);
    const struct mk_upload *photo = duda_upload(d, "photo");
    return e ? e : duda_printf(d, "%.*s %zu", MK_STR_ARG(o.name), (size_t)(photo ? photo->size : 0));
}
DUDA_ROUTES(staff, DUDA_REQUIRE(is_staff, 403, .security = "session header:X-Key"),
            DUDA_GET("/log", show, "Log.", .response_types = "text/csv image/png"),
            DUDA_GET("/public", show, "Public.", .security = "", .responses = "200"));
DUDA_SERVICE(orders, DUDA_GET("/health", show, "Health."), DUDA_GROUP("/staff", staff, "For staff."),
             DUDA_BEFORE(check_token, .security = "jwt"),
             DUDA_GET("/orders/:id<uint>", show, "Shows.", .response_body = &order, .headers = &match,
                      .response_types = "application/json text/csv", .responses = "200 404"),
             DUDA_POST("/orders", create, "Places.", .request_body = &order, .response_body = &order,
                       .responses = "201 409", .problem = &failure),
             DUDA_POST("/photos", attach, "Attaches.", .form = &order, .files = "photo thumbs[]? notes?", .responses = "200"),
             DUDA_GROUP("/keyed", staff, "Keyed.", .security = "basic query:key cookie:c bearer"),
             DUDA_GET("/basic", show, "Basic.", .security = "basic bearer query:key cookie:c", .tags = "staff, , \"odd\""));
"""


def test_openapi_describes_authentication_files_and_types(call, tmp_path):
    (tmp_path / "orders.c").write_text(ORDERS)
    done = call("openapi", "orders.c")
    assert done.code == 0 and "warning" not in done.err, done
    api = json.loads(done.out)
    check_openapi(api)
    assert api["info"] == {"title": "Orders", "version": "1.4.0", "description": 'Takes "orders".'}
    security = {path: op.get("security") for path, ops in api["paths"].items() for op in ops.values()}
    assert security == {
        "/health": None, "/staff/log": [{"session": []}, {"header_X-Key": []}], "/staff/public": None, "/orders/{id}": [{"jwt": []}],
        "/orders": [{"jwt": []}], "/photos": [{"jwt": []}], "/keyed/log": [{"session": []}, {"header_X-Key": []}], "/keyed/public": None,
        "/basic": [{"basic": []}, {"bearer": []}, {"query_key": []}, {"cookie_c": []}]}
    schemes = api["components"]["securitySchemes"]
    assert {name: (s["type"], s.get("scheme", s.get("in"))) for name, s in schemes.items()} == {
        "session": ("apiKey", "cookie"), "header_X-Key": ("apiKey", "header"), "jwt": ("http", "bearer"), "basic": ("http", "basic"),
        "bearer": ("http", "bearer"), "query_key": ("apiKey", "query"), "cookie_c": ("apiKey", "cookie")}
    assert schemes["session"]["name"] == "__Host-orders-session" and schemes["jwt"]["bearerFormat"] == "JWT"
    show, create, attach = api["paths"]["/orders/{id}"]["get"], api["paths"]["/orders"]["post"], api["paths"]["/photos"]["post"]
    assert show["operationId"] == "show-get-orders-.id"
    assert show["parameters"][1] == {"name": "If-Match", "in": "header", "required": False, "schema": {"type": "string"}}
    reference = {"schema": {"$ref": "#/components/schemas/order"}}
    assert show["responses"]["200"]["content"] == {"application/json": reference, "text/csv": {"schema": {"type": "string"}}}
    assert list(show["responses"]["404"]["content"]) == ["application/problem+json"]
    assert create["requestBody"]["required"] is True
    assert create["responses"]["409"]["content"] == {"application/json": {"schema": {"$ref": "#/components/schemas/failure"}}}
    assert list(create["responses"]["400"]["content"]) == ["application/problem+json"], "Duda sends the errors of duda_bind_json()"
    assert api["paths"]["/basic"]["get"]["tags"] == ["staff", '"odd"']
    assert [tag["name"] for tag in api["tags"]] == ["/staff", "/keyed", "staff", '"odd"']
    form = attach["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert list(attach["requestBody"]["content"]) == ["multipart/form-data"] and form["required"] == ["name", "photo"]
    assert list(form["properties"]) == ["name", "count", "photo", "thumbs[]", "notes"]
    assert form["properties"]["photo"]["format"] == form["properties"]["thumbs[]"]["items"]["format"] == "binary"
    log = api["paths"]["/staff/log"]["get"]["responses"]
    assert list(log) == ["200", "403"], "DUDA_REQUIRE() rejects with its own status"
    assert list(show["responses"]) == ["200", "404", "401"], "the middleware with .security sends 401"
    assert log["200"]["content"]["image/png"]["schema"]["format"] == "binary"


STATUSES = r"""#include <duda.h>
struct item {
    mk_str name;
};
static const struct duda_schema_field members[] = {DUDA_STRING(struct item, name)};
static const struct duda_schema item = DUDA_SCHEMA(struct item, members);
static int show(struct duda_ctx *d)
{
    return duda_puts(d, "{}");
}
#define ROUTE(path, statuses) DUDA_GET(path, show, "", .response_body = &item, .responses = statuses)
DUDA_SERVICE(statuses, ROUTE("/a", "404 200"), ROUTE("/b", "404 409 201 200"), ROUTE("/c", "304 200"), ROUTE("/d", "204 200"),
             ROUTE("/e", "303 404"), ROUTE("/f", "404 204"), ROUTE("/g", "200 202 404"));
"""


def test_openapi_describes_the_usual_response_wherever_it_is_listed(call, tmp_path):
    (tmp_path / "statuses.c").write_text(STATUSES)
    api = json.loads(call("openapi", "statuses.c").out)
    check_openapi(api)
    with_item = {path: [status for status, answer in ops["get"]["responses"].items() if "application/json" in answer.get("content", {})]
                 for path, ops in api["paths"].items()}
    assert with_item == {"/a": ["200"], "/b": ["201"], "/c": ["200"], "/d": ["200"], "/e": ["303"], "/f": [], "/g": ["200"]}
    assert list(api["paths"]["/a"]["get"]["responses"]) == ["404", "200"]
    assert list(api["paths"]["/a"]["get"]["responses"]["404"]["content"]) == ["application/problem+json"]


LIMITED = r"""#include <duda.h>
static int list(struct duda_ctx *d)
{
    return duda_puts(d, "");
}
static int pass(struct duda_ctx *d)
{
    (void)d;
    return DUDA_NEXT;
}
struct search {
    mk_str q;
    int64_t page, per_page;
};
static const struct duda_schema_field of_search[] = {
    DUDA_STRING(struct search, q, .optional = true), DUDA_PAGE_FIELDS(struct search)};
static const struct duda_schema search = DUDA_SCHEMA(struct search, of_search);
static const struct duda_route_auth users = {.authenticate = pass}, admins = {.authenticate = pass, .authorize = pass};
DUDA_ROUTES(inner, DUDA_GET("/list", list, "", .query = &duda_page_query, .responses = "200"),
            DUDA_GET("/feed", list, "", .query = &duda_cursor_query));
DUDA_SERVICE(limited, DUDA_GET("/plain", list, "", .responses = "200"),
             DUDA_GET("/rated", list, "", .rate = "1/minute", .responses = "200 303 404"),
             DUDA_GET("/user", list, "", .auth = &users, .responses = "200"),
             DUDA_GET("/token", list, "", .security = "bearer", .responses = "200"),
             DUDA_GET("/odd", list, "", .security = "", .responses = "200"),
             DUDA_GROUP("/in", inner, "", .rate = "5/hour", .auth = &admins),
             DUDA_GET("/search", list, "", .query = &search, .responses = "200"), DUDA_ERROR(duda_error_problem),
             DUDA_GET("/problem", list, "", .security = "bearer", .responses = "200"));
"""


def test_openapi_describes_rate_limits_authentication_and_pages(call, monkey, tmp_path):
    (tmp_path / "limited.c").write_text(LIMITED)
    done = call("openapi", "limited.c")
    assert done.code == 0 and "warning" not in done.err, done
    api = json.loads(done.out)
    check_openapi(api)
    routes = {path: ops["get"] for path, ops in api["paths"].items()}
    assert {path: list(route["responses"]) for path, route in routes.items()} == {
        "/plain": ["200"], "/rated": ["200", "303", "404", "429"], "/user": ["200", "401"], "/token": ["200", "401"], "/odd": ["200"],
        "/in/list": ["200", "401", "403", "429", "400"], "/in/feed": ["401", "403", "429", "400", "default"], "/search": ["200", "400"],
        "/problem": ["200", "401"]}
    assert list(routes["/problem"]["responses"]["401"]["content"]) == ["application/problem+json"]
    assert "content" not in routes["/token"]["responses"]["401"], "the format of an error page depends on the configuration and the client"
    limit = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]
    headers = {path: {status: list(response.get("headers", {})) for status, response in route["responses"].items() if "headers" in response}
               for path, route in routes.items()}
    assert headers["/rated"] == {"200": limit, "303": limit, "429": [*limit, "Retry-After"]}
    assert headers["/in/feed"] == {"429": [*limit, "Retry-After"], "default": limit}
    assert not any(headers[path] for path in ("/plain", "/user", "/token", "/odd", "/search"))
    assert routes["/rated"]["responses"]["429"]["headers"]["Retry-After"]["schema"] == {"type": "integer"}
    page = {"type": "integer", "format": "int64", "minimum": 1, "maximum": 1000000000}
    pages = [("page", "query", False, page), ("per_page", "query", False, page)]
    parameters = {path: [(p["name"], p["in"], p["required"], p["schema"]) for p in route.get("parameters", [])] for path, route in routes.items()}
    assert parameters["/in/list"] == pages
    assert parameters["/in/feed"] == [("cursor", "query", False, {"type": "string"})]
    assert parameters["/search"] == [("q", "query", False, {"type": "string"}), *pages]
    server = monkey(plugins=[services.build(tmp_path, "limited", LIMITED)])
    first, second = server.get("/rated"), server.get("/rated")
    assert (first.status, second.status) == (200, 429), "the service sends what the document says"
    for answer, expected in ((first, headers["/rated"]["200"]), (second, headers["/rated"]["429"])):
        assert all(answer.get(name) for name in expected)


TASKS = r"""#include <duda.h>
static int later(struct duda_ctx *d)
{
    int *ms = duda_task_context(d);
    int e = duda_sleep(d, (uint32_t)*ms);
    duda_log(d, MK_LOG_INFO, "slept %d: %d", *ms, e);
    return e;
}
static int start(struct duda_ctx *d)
{
    int64_t ms = 0;
    (void)duda_query_int(d, "ms", &ms);
    int n = (int)ms, e = duda_after_response(d, later, &n, sizeof n);
    return e ? e : duda_puts(d, "");
}
DUDA_SERVICE(tasks, DUDA_GET("/start", start, "Starts."));
"""


def test_test_waits_for_background_tasks(call, tmp_path):
    (tmp_path / "tasks.c").write_text(TASKS)
    (tmp_path / "tasks_test.c").write_text(
        '#include <duda/test.h>\n'
        'DUDA_TEST(waits)\n{\n    duda_expect(t, duda_test_wait_for_tasks(t, 0));\n    duda_test_get(t, "/start?ms=50");\n'
        '    duda_test_get(t, "/start?ms=150");\n    duda_expect(t, !duda_test_wait_for_tasks(t, 0));\n'
        '    duda_expect(t, duda_test_wait_for_tasks(t, 20000));\n}\n'
        'DUDA_TEST(ends)\n{\n    duda_test_get(t, "/start?ms=60000");\n    duda_expect(t, !duda_test_wait_for_tasks(t, 100));\n}\n')
    done = call("test")
    assert done.code == 0 and done.err.count("slept 50: 0") == done.err.count("slept 150: 0") == 1, done
    assert "slept 60000: -125" in done.err and "was cancelled" not in done.err, done


def test_test_waits_for_start_tasks(call, tmp_path):
    (tmp_path / "starts.c").write_text(
        '#include <duda.h>\n#include <errno.h>\nstatic int n;\n'
        'static int load(struct duda_ctx *d)\n{\n    int e = duda_sleep(d, 50);\n    return e ? e : n++ ? 0 : -EAGAIN;\n}\n'
        'static int show(struct duda_ctx *d)\n{\n    return duda_printf(d, "%d", n);\n}\n'
        'DUDA_SERVICE(starts, DUDA_START_TASK(load), DUDA_GET("/", show));\n')
    (tmp_path / "starts_test.c").write_text(
        '#include <duda/test.h>\n'
        'DUDA_TEST(starts)\n{\n    duda_expect(t, duda_test_wait_for_tasks(t, 20000));\n'
        '    duda_expect_text(t, duda_test_get(t, "/").body, "2");\n}\n')
    done = call("test")
    assert done.code == 0 and "the start task load() in" in done.err, done


def test_failed_start_task_counts_until_it_succeeds(call, tmp_path):
    (tmp_path / "starts.c").write_text(
        '#include <duda.h>\n#include <errno.h>\nstatic bool may_load, has_loaded;\n'
        'static int load(struct duda_ctx *d)\n{\n    (void)d;\n    has_loaded = may_load;\n    return has_loaded ? 0 : -EAGAIN;\n}\n'
        'static int fix(struct duda_ctx *d)\n{\n    (void)d;\n    may_load = true;\n    return 204;\n}\n'
        'static int show(struct duda_ctx *d)\n{\n    return duda_printf(d, "%d", has_loaded);\n}\n'
        'DUDA_SERVICE(starts, DUDA_START_TASK(load), DUDA_POST("/fix", fix), DUDA_GET("/", show));\n')
    (tmp_path / "starts_test.c").write_text(
        '#include <duda/test.h>\n'
        'DUDA_TEST(starts)\n{\n    duda_expect(t, !duda_test_wait_for_tasks(t, 0));\n'
        '    duda_test_get(t, "/");\n    duda_expect(t, !duda_test_wait_for_tasks(t, 0));\n'
        '    duda_test_post(t, "/fix", "text/plain", "");\n    duda_test_advance_clock(t, 3600 * 1000);\n'
        '    duda_expect(t, duda_test_wait_for_tasks(t, 20000));\n    duda_expect_text(t, duda_test_get(t, "/").body, "1");\n}\n'
        'DUDA_TEST(ends_early)\n{\n    duda_expect(t, !duda_test_wait_for_tasks(t, 0));\n}\n')
    done = call("test")
    assert done.code == 0, done


def test_generated_client_calls_the_service(call, monkey, tmp_path):
    """A public generator makes a client from the document; the client sends JSON and a file, and reads the responses."""
    pytest.importorskip("openapi_python_client")
    (tmp_path / "orders.c").write_text(ORDERS)
    assert call("openapi", "-o", tmp_path / "api.json", "orders.c").code == 0
    (tmp_path / "config.yaml").write_text("post_hooks: []\n")
    made = subprocess.run([sys.executable, "-m", "openapi_python_client", "generate", "--path", tmp_path / "api.json", "--meta", "none",
                           "--config", tmp_path / "config.yaml", "--output-path", tmp_path / "orders_client", "--fail-on-warning"],
                          capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stdout + made.stderr
    cache = tmp_path.parent / "cache"
    cache.mkdir(exist_ok=True)
    server = monkey(args=["run", "-p", "0", tmp_path / "orders.c"], environment={"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)})
    (tmp_path / "use.py").write_text(f"""
from io import BytesIO
from orders_client import AuthenticatedClient
from orders_client.api.default import attach, create, show_get_orders_id
from orders_client.models import AttachBody, Order, Problem
from orders_client.types import File
client = AuthenticatedClient("{server.url}", token="t")
made = create.sync_detailed(client=client, body=Order("tea", count=3))
assert (made.status_code, made.parsed.name, made.parsed.count) == (201, "tea", 3), made
wrong = create.sync_detailed(client=client, body=Order(""))
assert isinstance(wrong.parsed, Problem) and wrong.parsed.errors[0].pointer == "/name", wrong
assert show_get_orders_id.sync(7, client=client, if_match="x").name == "tea"
sent = attach.sync_detailed(client=client, body=AttachBody("me", photo=File(BytesIO(b"12345"), "a.png", "image/png")))
assert sent.content == b"me 5", sent
assert attach.sync_detailed(client=client, body=AttachBody("", photo=File(BytesIO(b"1"), "a.png"))).parsed.errors[0].pointer == "/name"
assert show_get_orders_id.sync_detailed(7, client=AuthenticatedClient("{server.url}", token="u")).status_code == 401
""")
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_openapi_names_recursive_schemas(call, tmp_path):
    (tmp_path / "tree.c").write_text(r"""#include <duda.h>
struct node { mk_str name; struct node *children; size_t n; };
static const struct duda_schema node;
static const struct duda_schema_field members[] = {
    DUDA_STRING(struct node, name), DUDA_LIST(struct node, children, n, DUDA_KIND_OBJECT, .schema = &node)};
static const struct duda_schema node = DUDA_SCHEMA(struct node, members);
static const struct duda_schema other = DUDA_SCHEMA(struct node, members, .allow_unknown = true);
static int give(struct duda_ctx *d) { return duda_puts(d, "x"); }
DUDA_SERVICE(tree, DUDA_GET("/", give, "Gives.", .response_body = &node), DUDA_GET("/other", give, "Gives.", .response_body = &other));
""")
    api = json.loads(call("openapi", "tree.c").out)
    check_openapi(api)
    schemas = api["components"]["schemas"]
    assert list(schemas) == ["Problem", "node", "node_2"]
    assert schemas["node"]["properties"]["children"]["items"] == schemas["node_2"]["properties"]["children"]["items"] == {"$ref": "#/components/schemas/node"}


def test_query_is_bound_by_its_schema(call, tmp_path):
    (tmp_path / "shaped.c").write_text(SHAPED)
    (tmp_path / "shaped_test.c").write_text(r"""#include <duda/test.h>
DUDA_TEST(queries)
{
    duda_expect_text(t, duda_test_get(t, "/ask").body, "3 0");
    duda_expect_text(t, duda_test_get(t, "/ask?from=9&color=blue&other=1").body, "9 1");
    struct duda_test_response reply = duda_test_get(t, "/ask?from=10&color=green");
    duda_expect_status(t, reply, 400);
    duda_expect_contains(t, reply.body, "\"pointer\":\"/color\"");
    duda_expect_contains(t, reply.body, "\"pointer\":\"/from\"");
    duda_expect_status(t, duda_test_get(t, "/ask?from=%zz"), 400);
}
""")
    done = call("test")
    assert done.code == 0, done


def serve_doc_page(monkey, tmp_path, source):
    if not browser.FOUND:
        pytest.skip("no Chromium here")
    cache = tmp_path.parent / "cache"
    cache.mkdir(exist_ok=True)
    return monkey(args=["run", "-p", "0", source], environment={"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)})


def send(b, card):
    """Sends the form of a card, waits until the response is complete, and returns the text of the response."""
    b.run(f"document.querySelector('{card} form').requestSubmit()")
    b.wait_for(f"document.querySelector('{card} .status')?.innerText.includes('in total')")
    return b.run(f"document.querySelector('{card} .output').innerText")


def press(b, key, text="", code=0):
    for kind in ("keyDown", "keyUp"):
        b.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "", windowsVirtualKeyCode=code)


def test_doc_page_sends_requests(call, monkey, odd, tmp_path):
    page = call("doc", odd).out
    assert page.count("</script>") == 2 and "<b>." not in page and not re.search(r"(src|href)=.?(https?:)?//", page), "the page loads nothing"
    server = serve_doc_page(monkey, tmp_path, odd)
    with browser.Browser(tmp_path) as b:
        b.goto(server.url + "/.duda/doc")
        assert b.run("document.querySelectorAll('.card').length") == 8
        card = '[id="op-any-get-items-.id"]'
        assert re.match(r"GET\s+/items/{id}\s+Both\.", b.run(f"document.querySelector('{card}').innerText"))
        b.goto(server.url + "/.duda/doc?1#op-any-get-items-.id")
        b.run(f"document.querySelector('{card} input').value = '12'")
        answer = send(b, card)
        assert answer.startswith("200 OK") and "/items/12" in answer
        b.run(f"document.querySelector('{card} .headers').open = true")
        assert "content-type: text/plain" in b.run(f"document.querySelector('{card} .headers pre').innerText")
        assert b.console == []


def test_doc_page_describes_schemas(monkey, tmp_path):
    """The page describes queries, types and fields, and its form contains an example."""
    (tmp_path / "shaped.c").write_text(SHAPED)
    server = serve_doc_page(monkey, tmp_path, tmp_path / "shaped.c")
    with browser.Browser(tmp_path) as b:
        b.goto(server.url + "/.duda/doc")
        b.run("document.querySelectorAll('.card').forEach(c => { c.open = true; })")
        b.wait_for("document.querySelectorAll('.card form').length == document.querySelectorAll('.card').length")
        b.run("document.querySelectorAll('.schema').forEach(c => { c.open = true; })")
        text = b.run("document.body.innerText")
        for part in ("query, integer, from 0, to 9", "one of red, blue", "part.weight", "list of string", 'A "group".', "Conflict"):
            assert part in text, part
        b.run("document.querySelector('#op-ask [name=\"query:color\"]').value = 'blue'")
        assert send(b, "#op-ask").endswith("3 1")
        assert send(b, "#op-take").startswith("200")
        body = b.run("JSON.parse(document.querySelector('#op-take textarea').value)")
        assert body["part"] == {"weight": 0.1, "tags": ["text"]} and body["color"] == "red"
        b.run("document.querySelector('#op-take textarea').value = '{'; document.querySelector('#op-take textarea').dispatchEvent(new Event('input', {bubbles: true}))")
        assert "JSON" in b.run("document.querySelector('#op-take .note.bad').innerText")
        assert send(b, "#op-take").startswith("400") and '"pointer"' in b.run("document.querySelector('#op-take .content').innerText")


def test_doc_page_authorizes_requests(monkey, tmp_path):
    """The page sends tokens and keys, survives a reload, and shows a curl command that does the same."""
    (tmp_path / "orders.c").write_text(ORDERS)
    server = serve_doc_page(monkey, tmp_path, tmp_path / "orders.c")
    with browser.Browser(tmp_path) as b:
        b.goto(server.url + "/.duda/doc#op-create")
        assert b.run("document.title") == "Orders" and "1.4.0" in b.run("document.querySelector('h1').innerText")
        assert send(b, "#op-create").startswith("401")
        b.run("document.getElementById('authorize').click()")
        assert b.run("[...document.querySelectorAll('legend')].map(e => e.textContent)") == [
            "session (cookie __Host-orders-session)", "header_X-Key (header X-Key)", "jwt (bearer)", "basic", "bearer", "query_key (query key)", "cookie_c (cookie c)"]
        b.run("""(() => { const e = document.querySelector('#authorization form').elements; e['jwt:value'].value = 't'; e['header_X-Key:value'].value = 'sesame';
                 e['basic:user'].value = "a'b"; e['basic:password'].value = 'ü'; document.querySelector('#authorization .send').click(); })()""")
        b.wait_for("document.getElementById('authorize').textContent == 'Authorized (3)'")
        b.run("document.querySelector('#op-create textarea').value = JSON.stringify({name: \"it's <b>\", count: 5})")
        assert send(b, "#op-create").startswith("201 Created")
        assert b.run("JSON.parse(document.querySelector('#op-create .content').innerText)") == {"name": "it's <b>", "count": 5}
        check_curl(b, "#op-create", "HTTP/1.1 201", "it's <b>")
        b.goto(server.url + "/.duda/doc?again#op-attach")
        assert b.run("document.getElementById('authorize').textContent") == "Authorized (3)"
        b.run("""(() => { const files = new DataTransfer(); files.items.add(new File(['12345'], 'a;b.png')); const f = document.querySelector('#op-attach form');
                 f.elements['form:photo'].files = files.files; f.elements['form:name'].value = 'me'; })()""")
        assert send(b, "#op-attach").endswith("me 5")
        (tmp_path / "a;b.png").write_text("12345")
        check_curl(b, "#op-attach", "HTTP/1.1 200", "me 5", tmp_path)
        for card, field, wanted in (("show-get-basic", "Authorization: Basic YSdiOsO8", 401), ("show-get-staff-log", "X-Key: sesame", 200)):
            b.goto(f"{server.url}/.duda/doc?{card}#op-{card}")
            assert send(b, "#op-" + card).startswith(str(wanted))
            assert field in b.run(f"document.querySelector('#op-{card} .curl').innerText")
        b.run("document.getElementById('authorize').click(); document.querySelector('#authorization [value=forget]').click()")
        b.wait_for("document.getElementById('authorize').textContent == 'Authorize'")
        assert send(b, "#op-show-get-staff-log").startswith("403")


def check_curl(b, card, *parts, folder=None):
    *parts, folder = (*parts, folder) if isinstance(parts[-1], str) else parts
    text = b.run(f"document.querySelector('{card} .curl').textContent")
    done = subprocess.run(["bash", "-c", text.replace("curl -i", "curl -s -i")], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    for part in parts:
        assert part in done.stdout, (text, done)


def test_doc_page_works_with_the_keyboard_and_on_a_phone(monkey, tmp_path):
    (tmp_path / "orders.c").write_text(ORDERS)
    server = serve_doc_page(monkey, tmp_path, tmp_path / "orders.c")
    with browser.Browser(tmp_path) as b:
        b.goto(server.url + "/.duda/doc")
        cards = "[...document.querySelectorAll('.card')].filter(c => c.checkVisibility()).map(c => c.id)"
        press(b, "/", "/", 191)
        assert b.run("document.activeElement.id") == "search"
        for letter in "staff log":
            press(b, letter, letter)
        assert b.run(cards) == ["op-show-get-staff-log"]
        press(b, "x", "x")
        assert b.run(cards) == [] and b.run("document.getElementById('nothing').checkVisibility()")
        press(b, "Escape", code=27)
        assert len(b.run(cards)) == 9
        while b.run("document.activeElement.closest('.card')?.id") != "op-create":
            press(b, "Tab", code=9)
        press(b, "Enter", "\r", 13)
        b.wait_for("!!document.querySelector('#op-create form')")
        while b.run("document.activeElement.name") != "body":
            press(b, "Tab", code=9)
        b.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", windowsVirtualKeyCode=13, modifiers=2)
        b.wait_for("document.querySelector('#op-create .status')?.innerText.startsWith('401')")
        b.look(width=390, height=800, dark=True, mobile=True)
        b.run("document.querySelectorAll('.card, .card details').forEach(c => { c.open = true; })")
        b.wait_for("document.querySelectorAll('.card form').length == 9")
        assert b.run("document.documentElement.scrollWidth") <= 390
        assert b.run("getComputedStyle(document.body).backgroundColor") == "rgb(23, 17, 13)"
        small = "[...document.querySelectorAll('button, input, select')].filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 32).length"
        assert b.run(small) == 0, "fingers need large controls"


def test_doc_page_of_a_folder_knows_its_path(monkey, tmp_path):
    """The page of /shop/.duda/doc sends requests below /shop."""
    folder = tmp_path / "services"
    folder.mkdir()
    (folder / "shop.c").write_text("#include <duda.h>\nstatic int show(struct duda_ctx *d) { return duda_puts(d, duda_path(d).p); }\n"
                                   'DUDA_SERVICE(shop, DUDA_GET("/items", show, "Shows."));\n')
    (folder / "other.c").write_text((folder / "shop.c").read_text().replace("SERVICE(shop", "SERVICE(other"))
    server = serve_doc_page(monkey, tmp_path, folder)
    with browser.Browser(tmp_path) as b:
        b.goto(server.url + "/shop/.duda/doc#op-show")
        assert send(b, "#op-show").endswith("/items")
        assert "/shop/items'" in b.run("document.querySelector('#op-show .curl').innerText")


def test_doc_page_shows_streams_and_files(monkey, tmp_path):
    (tmp_path / "stream.c").write_text(r"""#include <duda.h>
static int stream(struct duda_ctx *d)
{
    int e = 0;
    for (int i = 0; !e && i < 1000; i++) {
        e = duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("tick")});
        e = e ? e : duda_sleep(d, 50);
    }
    return e;
}
static int picture(struct duda_ctx *d)
{
    int e = duda_content_type(d, MK_STR("image/svg+xml"));
    return e ? e : duda_puts(d, "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>");
}
static int bytes(struct duda_ctx *d)
{
    int e = duda_content_type(d, MK_STR("application/octet-stream"));
    return e ? e : duda_write(d, MK_STR("\0\1\2"));
}
DUDA_SERVICE(stream, DUDA_GET("/stream", stream, "Streams."), DUDA_GET("/picture", picture, "A picture."), DUDA_GET("/bytes", bytes, "Bytes."));
""")
    server = serve_doc_page(monkey, tmp_path, tmp_path / "stream.c")
    with browser.Browser(tmp_path) as b:
        b.goto(server.url + "/.duda/doc#op-stream")
        b.run("document.querySelector('#op-stream form').requestSubmit()")
        b.wait_for("document.querySelector('#op-stream .content')?.textContent.split('tick').length > 3")
        b.run("document.querySelector('#op-stream .stop').click()")
        b.wait_for("document.querySelector('#op-stream .output').innerText.includes('Stopped after')")
        b.goto(server.url + "/.duda/doc?1#op-bytes")
        assert "3 bytes" in send(b, "#op-bytes") and b.run("document.querySelector('#op-bytes a[download]').href.startsWith('blob:')")


def test_error_page_reloads_after_the_fix(monkey, odd, tmp_path):
    if not browser.FOUND:
        pytest.skip("no Chromium here")
    cache = tmp_path.parent / "cache"
    cache.mkdir(exist_ok=True)
    odd.write_text(SERVICE.replace("return", "<i>retrun</i>"))
    server = monkey(args=["run", "-p", "0", odd], environment={"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)})
    with browser.Browser(tmp_path) as b:
        b.goto(server.url + "/any")
        b.wait_for("document.title == 'The service does not compile'")
        assert "<i>retrun</i>" in b.run("document.body.innerText") and "odd.c:5" in b.run("document.body.innerText")
        odd.write_text(SERVICE)
        b.wait_for("document.body.innerText == '/any </script>'")


COLLIDING = r"""
#define DUDA_USE "duda-auth"
#include <duda.h>
#define H(name) static int name(struct duda_ctx *d) { return duda_puts(d, #name); }
H(list) H(search) H(server) H(authorize) H(nothing) H(operations) H(secret)
DUDA_ROUTES(inner, DUDA_GET("/secret", secret, .hidden = true, .tags = "hidden"));
DUDA_SERVICE(colliding, DUDA_ASSETS("/static"), DUDA_BEFORE(duda_csrf_check), DUDA_GET("/list", list), DUDA_POST("/list", list, .url_name = "list"), DUDA_GET("/search", search),
             DUDA_GET("/server", server), DUDA_GET("/authorize", authorize), DUDA_POST("/nothing", nothing), DUDA_GET("/operations", operations),
             DUDA_GROUP("", inner), DUDA_GET("/nothing", secret, .hidden = true));
"""


def test_doc_page_shows_handlers_whose_names_are_ids_of_the_page(monkey, tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/a.css").write_text("a{}")
    (tmp_path / "colliding.c").write_text(COLLIDING)
    server = serve_doc_page(monkey, tmp_path, tmp_path / "colliding.c")
    assert server.get("/secret").text == "secret" and server.get("/nothing", "POST", body=b"").status == 403
    with browser.Browser(tmp_path) as b:
        b.look(width=390, height=800, dark=False, mobile=True)
        for name in ("search", "server", "authorize", "operations", "nothing"):
            b.goto(f"{server.url}/.duda/doc?{name}#op-{name}")
            assert b.run(f"document.getElementById('op-{name}').checkVisibility() && document.getElementById('op-{name}').open"), name
        texts = b.run("[...document.querySelectorAll('.card summary code')].filter(c => c.checkVisibility()).map(c => c.innerText)")
        assert sorted(texts) == sorted(["/list", "/list", "/search", "/server", "/authorize", "/nothing", "/operations"])
        assert "hidden" not in b.run("document.body.innerText")
        assert send(b, "#op-nothing").startswith("200 OK"), "the page has a CSRF token"
        assert b.console == []
