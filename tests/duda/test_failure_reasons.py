# SPDX-License-Identifier: Apache-2.0
"""A failed check of `monkey test` shows why the service has responded so: the beginning of the body, the target of a redirect, and
the messages that the server and the service have logged about the request."""
import re
import shutil

import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

SERVICE = r"""#define DUDA_USE NULL
#include <duda.h>
#include <errno.h>

struct good {
    mk_str name;
};
static const struct duda_schema_field good_fields[] = {DUDA_STRING(struct good, name, .min_length = 2)};
static const struct duda_schema good_schema = DUDA_SCHEMA(struct good, good_fields);

static bool is_admin(struct duda_ctx *d)
{
    return duda_query(d, "admin").p;
}

static int refuse(struct duda_ctx *d)
{
    return duda_query(d, "banned").p ? duda_reason(d, -EACCES, "this client is banned") : DUDA_NEXT;
}

static int hello(struct duda_ctx *d)
{
    return duda_puts(d, "hello\n");
}

static int add(struct duda_ctx *d)
{
    struct good good = {};
    int e = duda_bind_json(d, &good_schema, &good, NULL);
    return e ? e : 201;
}

static int form(struct duda_ctx *d)
{
    int e = duda_form_load(d, NULL, NULL);
    return e ? e : 204;
}

static int print(struct duda_ctx *d)
{
    return duda_reason(d, -EREMOTEIO, "the printer has no paper");
}

static int ask(struct duda_ctx *d)
{
    return duda_reason(d, -ENOLINK, "the other server is down"), 502;
}

static int leave(struct duda_ctx *d)
{
    return duda_redirect(d, 303, MK_STR("/log-in"));
}

static int follow(struct duda_ctx *d)
{
    int e = duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("one")});
    return e ? e : duda_sleep(d, 3600000);
}

DUDA_ROUTES(admin, DUDA_REQUIRE(is_admin, 401), DUDA_GET("/", hello));
DUDA_SERVICE(shop, DUDA_GROUP("/admin", admin), DUDA_BEFORE(refuse), DUDA_GET("/hello", hello), DUDA_POST("/goods", add, .body_max = 100),
    DUDA_GET("/print", print), DUDA_GET("/ask", ask), DUDA_GET("/leave", leave), DUDA_GET("/follow", follow),
    DUDA_BEFORE(duda_csrf_check), DUDA_POST("/form", form));
"""


@pytest.fixture
def case(run, tmp_path, tmp_path_factory):
    def do(tests):
        (tmp_path / "shop.c").write_text(SERVICE)
        (tmp_path / "shop_test.c").write_text("#include <duda/test.h>\n#include <string.h>\n" + tests)
        return run("test", "shop_test.c", environment={"XDG_CACHE_HOME": str(tmp_path_factory.getbasetemp()), "TMPDIR": "/tmp"})
    return do


LONG = "x" * 200
# A request, and the report of the check that expects 200 from it: the rest of the line, and the next lines.
CASES = {
    "get(t, \"/admin/\")": (r"got 401", [r"is_admin\(\) in shop\.c:\d+, a guard of hello\(\), returned false: responding with 401"]),
    "get(t, \"/hello?banned=1\")": (r"got 403", [r"refuse\(\) in shop\.c:\d+ answered -EACCES \(Permission denied\): this client is banned"]),
    "get(t, \"/none\")": (r"got 404", ["no handler responds to this path"]),
    "post(t, \"/hello\", \"text/plain\", \"x\")": (r"got 405", ["this path has no route for POST, only for GET, HEAD, OPTIONS"]),
    f"post(t, \"/goods\", \"text/plain\", \"{LONG}\")": (r"got 413", [r"413: the body is larger than the 100 bytes that this route of `shop` allows; raise its `\.body_max`"]),
    "post(t, \"/goods\", \"text/plain\", \"x\")": (r"got 415 with .*the content must be JSON", []),
    "post(t, \"/goods\", \"application/json\", \"{}\")": (r"got 422 with .*`name` is missing", []),
    "post_form(t, \"/form\", \"a\", \"b\", NULL)": (r"got 403 with .*the CSRF token is missing or invalid", []),
    "get(t, \"/print\")": (r"got 500", [r"print\(\) in shop\.c:\d+ answered -EREMOTEIO .*: the printer has no paper", "status 500"]),
    "get(t, \"/ask\")": (r"got 502", [r"ask\(\) in shop\.c:\d+ answered 502: the other server is down"]),
    "get(t, \"/leave\")": (r'got 303 to "/log-in"', []),
}


def test_unexpected_status_is_explained(case):
    checks = "".join(f"    duda_expect_status(t, duda_test_{request}, 200);\n" for request in CASES)
    done = case("DUDA_TEST(all)\n{\n" + checks + "}\n")
    assert done.code == 1, done
    line = 5
    expected = ""
    for rest, reason in CASES.values():
        expected += rf"  shop_test\.c:{line}: expected status 200, {rest}\n" if not rest.count("with") else \
            rf"  shop_test\.c:{line}: expected status 200, {rest}[^\n]*\n"
        expected += "".join(rf"    {text}\n" for text in reason)
        line += 1
    assert re.search(expected + "not ok shop.all\n", done.out), done.out


def test_other_checks_explain_the_last_error_once(case):
    done = case(r"""
DUDA_TEST(content)
{
    duda_expect_text(t, duda_test_get(t, "/print").body, "printed");
    duda_expect(t, 0);
}
DUDA_TEST(json) { duda_expect_json(t, duda_test_get(t, "/none").body, "{}"); }
DUDA_TEST(condition) { duda_expect(t, duda_test_get(t, "/admin/").status == 200); }
DUDA_TEST(number) { duda_expect_int(t, duda_test_get(t, "/ask").status, 200); }
DUDA_TEST(part) { duda_expect_contains(t, duda_test_get(t, "/hello?banned=1").body, "hello"); }
DUDA_TEST(fine)
{
    struct duda_test_response none = duda_test_get(t, "/none");
    duda_expect_status(t, none, 404);
    duda_expect_text(t, none.body, "bye\n");
}
""")
    parts = re.split(r"^not ok shop\.\w+\n", done.out, flags=re.MULTILINE)
    assert done.code == 1 and len(parts) == 7, done
    for text, (target, status, reason) in zip(parts, (
            ("/print", 500, "the printer has no paper"), ("/none", 404, "no handler responds"), ("/admin/", 401, "returned false"),
            ("/ask", 502, "the other server is down"), ("/hello?banned=1", 403, "this client is banned"))):
        assert text.count(f"    after GET {target}, which got {status}\n    ") == 1 and reason in text, text
    assert "after" not in parts[5] and "bye" in parts[5]


def test_reason_belongs_to_its_request(case):
    """A stream that is open, or a response that the test has kept, does not change the reason of another one."""
    done = case(r"""
DUDA_TEST(kept)
{
    struct duda_test_stream *s = duda_test_stream_open(t, &(struct duda_test_request){.target = "/follow"});
    struct duda_test_response failed = duda_test_get(t, "/print");
    struct duda_test_response fine = duda_test_get(t, "/hello");
    duda_expect_contains(t, failed.reason, "the printer has no paper");
    duda_expect_text(t, fine.reason, "");
    duda_expect_status(t, duda_test_stream_response(s), 200);
    duda_expect_text(t, duda_test_stream_response(s).target, "/follow");
    struct duda_test_stream *none = duda_test_stream_open(t, &(struct duda_test_request){.target = "/none"});
    duda_expect_contains(t, duda_test_stream_response(none).reason, "no handler responds");
    struct duda_test_websocket *w = duda_test_websocket_open(t, &(struct duda_test_request){.target = "/hello?banned=1"});
    duda_expect_contains(t, duda_test_websocket_response(w).reason, "this client is banned");
}
""")
    assert done.code == 0, done
