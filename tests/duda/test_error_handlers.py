# SPDX-License-Identifier: Apache-2.0
"""Error handlers of services: DUDA_ERROR() responds to the errors of handlers, of the router, and of the server."""
import json
import re

import pytest

import services
from client import Closed
from users import sha1

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

static const char user;
static int n_destroyed;

static void destroy(void *data)
{
    (void)data;
    n_destroyed++;
}

static int find_user(struct duda_ctx *d)
{
    int e = duda_attach(d, &user, "ann", destroy);
    return e ? e : DUDA_NEXT;
}

/* ---- Handlers ---- */

static char large[1 << 20];

static int fail(struct duda_ctx *d)
{
    mk_str how = duda_param(d, "how");
    int64_t n;
    if (mk_str_eq(how, MK_STR("html")))
        return duda_content_type(d, MK_STR("text/html")) || duda_header_set(d, "X-Kept", MK_STR("yes")) ||
               duda_puts(d, "<p>dropped") ? 500 : 409;
    if (mk_str_eq(how, MK_STR("begun")))
        return duda_write(d, mk_str_of(large, sizeof large)) || duda_flush(d) ? 500 : 409;
    if (mk_str_eq(how, MK_STR("problem")))
        return duda_problem(d, 409, "its own");
    if (mk_str_eq(how, MK_STR("reason")))
        return duda_reason(d, -EREMOTEIO, "the printer is out of paper");
    if (mk_str_eq(how, MK_STR("sleep")))
        return duda_sleep(d, 60000);
    if (mk_str_eq(how, MK_STR("crash")))
        raise(SIGSEGV);
    return mk_num_parse_int(how, &n) ? (int)n : duda_puts(d, "done\n");
}

static int take(struct duda_ctx *d)
{
    char buf[100];
    ssize_t n;
    while ((n = duda_read(d, buf, sizeof buf)) > 0)
        continue;
    return n < 0 ? (int)n : duda_puts(d, "taken\n");
}

/* ---- Error handlers ---- */

static int show(struct duda_ctx *d, const char *who)
{
    const char *name = duda_attached(d, &user), *reason = duda_error_reason(d);
    return duda_printf(d, "%s: %u %d %s %s %s\n", who, duda_error_status(d), duda_result(d), name ? name : "-",
                       reason ? reason : "-", duda_path(d).p);
}

static int outer(struct duda_ctx *d)
{
    return show(d, "outer");
}

static int named(struct duda_ctx *d)
{
    return show(d, duda_middleware_data(d));
}

static int only_409(struct duda_ctx *d)
{
    if (duda_error_status(d) == 409)
        return show(d, "inner");
    return duda_puts(d, "dropped") ? 500 : DUDA_NEXT;
}

static int naps(struct duda_ctx *d)
{
    int e = duda_sleep(d, 20);
    return e ? e : show(d, "napped");
}

static int sleeps(struct duda_ctx *d)
{
    return duda_sleep(d, 60000);
}

static int hides(struct duda_ctx *d)
{
    (void)d;
    return -ENOENT;
}

static int breaks(struct duda_ctx *d)
{
    (void)d;
    return 7;
}

static int accepts(struct duda_ctx *d)
{
    return duda_puts(d, "not an error\n") ? 500 : 200;
}

static int redirects(struct duda_ctx *d)
{
    return duda_redirect(d, 303, MK_STR("/login"));
}

static int long_page(struct duda_ctx *d)
{
    int e = 0;
    for (int i = 0; i < 3000 && !e; i++)
        e = duda_printf(d, "line %d of a long page, which does not fit into the buffer\n", i);
    return e;
}

static int crashes(struct duda_ctx *d)
{
    (void)d;
    raise(SIGSEGV);
    return 0;
}

static int returns_nothing(struct duda_ctx *d)
{
    (void)d;
    return 0;
}

static int count(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", n_destroyed);
}

#define ROUTES DUDA_BEFORE(find_user), DUDA_GET("/:how", fail), DUDA_POST("/take", take, "", .body_max = 10)
DUDA_ROUTES(api, DUDA_ERROR(duda_error_problem), ROUTES);
DUDA_ROUTES(partial, DUDA_ERROR(only_409), ROUTES);
DUDA_ROUTES(nested, DUDA_ERROR(named, .data = "first"), DUDA_ERROR(only_409), DUDA_GROUP("/partial", partial), ROUTES);
DUDA_ROUTES(naps_, DUDA_ERROR(naps), ROUTES);
DUDA_ROUTES(sleeps_, DUDA_ERROR(sleeps), ROUTES);
DUDA_ROUTES(hides_, DUDA_ERROR(hides), ROUTES);
DUDA_ROUTES(breaks_, DUDA_ERROR(breaks), ROUTES);
DUDA_ROUTES(accepts_, DUDA_ERROR(accepts), ROUTES);
DUDA_ROUTES(redirects_, DUDA_ERROR(redirects), ROUTES);
DUDA_ROUTES(long_, DUDA_ERROR(long_page), ROUTES);
DUDA_ROUTES(crashes_, DUDA_ERROR(crashes), ROUTES);
DUDA_ROUTES(nothing_, DUDA_ERROR(returns_nothing), ROUTES);
DUDA_ROUTES(timed, DUDA_ERROR(naps), DUDA_GET("/deadline/:how", fail, "", .deadline_ms = 50), DUDA_GET("/:how", fail));
DUDA_ROUTES(of_item, DUDA_ERROR(named, .data = "item"), DUDA_GET("/show", fail));
DUDA_ROUTES(same_paths, DUDA_ERROR(named, .data = "same"), DUDA_GET("/same", hides));
DUDA_SERVICE(errors,
    DUDA_GET("/before/:how", fail),
    DUDA_GET("/count", count),
    DUDA_ERROR(outer),
    DUDA_GET("/plain/:how", fail),
    DUDA_GROUP("/api", api),
    DUDA_GROUP("/nested", nested),
    DUDA_GROUP("/naps", naps_),
    DUDA_GROUP("/sleeps", sleeps_),
    DUDA_GROUP("/hides", hides_),
    DUDA_GROUP("/breaks", breaks_),
    DUDA_GROUP("/accepts", accepts_),
    DUDA_GROUP("/redirects", redirects_),
    DUDA_GROUP("/long", long_),
    DUDA_GROUP("/crashes", crashes_),
    DUDA_GROUP("/nothing", nothing_),
    DUDA_GROUP("/timed", timed),
    DUDA_GROUP("/items/:id", of_item),
    DUDA_GROUP("", same_paths));
"""


def prepare(monkey, site):
    site.add("file.txt", "a file")
    site.add("api/deep/file.txt", "a file of the host")
    monkey(server="HandlerTimeout 1s", plugins=[services.build(site.path.parent, "errors", SOURCE)])


def prepare_isolated(monkey, site):
    site.add("file.txt", "a file")
    site.add("api/deep/file.txt", "a file of the host")
    service = services.build(site.path.parent, "errors", SOURCE)
    monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n")


@pytest.fixture(params=["inside", "isolated"])
def server(lasting, request):
    return lasting(prepare if request.param == "inside" else prepare_isolated)


def allow_errors(server):
    server.allow(r"answered|returned|an error handler|ended its worker|crashed|terminated")


@pytest.mark.parametrize("target, status, text", [
    ("/plain/404", 404, "outer: 404 404 - - /plain/404\n"),
    ("/plain/-2", 404, "outer: 404 -2 - - /plain/-2\n"),
    ("/plain/-13", 403, "outer: 403 -13 - - /plain/-13\n"),
    ("/plain/reason", 500, "outer: 500 -121 - the printer is out of paper /plain/reason\n"),
    ("/plain/7", 500, "outer: 500 500 - - /plain/7\n"),
    ("/nested/404", 404, "first: 404 404 ann - /nested/404\n"),
    ("/nested/409", 409, "inner: 409 409 ann - /nested/409\n"),
    ("/nested/partial/409", 409, "inner: 409 409 ann - /nested/partial/409\n"),
    ("/nested/partial/410", 410, "first: 410 410 ann - /nested/partial/410\n"),
    ("/naps/404", 404, "napped: 404 404 ann - /naps/404\n"),
    ("/hides/403", 404, "outer: 404 -2 ann - /hides/403\n"),
    ("/breaks/403", 500, "outer: 500 7 ann - /breaks/403\n"),
    ("/accepts/403", 200, "not an error\n"),
    ("/nothing/403", 403, ""),
    ("/items/7/show", 200, "done\n"),
    ("/same", 404, "same: 404 -2 - - /same\n"),
])
def test_error_handlers_respond_to_results_of_handlers(server, target, status, text):
    allow_errors(server)
    answer = server.get(target)
    assert (answer.status, answer.text) == (status, text)


@pytest.mark.parametrize("server", ["inside"], indirect=True)
@pytest.mark.parametrize("target, status, text", [
    ("/none", 404, "outer: 404 0 - - /none\n"),
    ("/nested/a/b", 404, "first: 404 0 - - /nested/a/b\n"),
    ("/items/7/none", 404, "item: 404 0 - - /items/7/none\n"),
    ("/items", 404, "outer: 404 0 - - /items\n"),
    ("/apis", 404, "outer: 404 0 - - /apis\n"),
])
def test_error_handlers_respond_to_unknown_paths(server, target, status, text):
    answer = server.get(target)
    assert (answer.status, answer.text, answer["Content-Type"]) == (status, text, "text/plain; charset=utf-8")


def test_files_of_the_host_are_served_where_no_route_matches(server):
    assert server.get("/file.txt").text == "a file"
    assert server.get("/api/deep/file.txt").text == "a file of the host"


def test_unhandled_errors_get_the_page_of_the_server(server):
    page = server.get("/before/404")
    assert page.status == 404 and "<title>404 Not Found" in page.text


def problem(answer):
    assert answer["Content-Type"] == "application/problem+json"
    value = json.loads(answer.text)
    assert value["status"] == answer.status
    return value


def test_problem_details_describe_all_errors_of_a_group(server):
    allow_errors(server)
    assert problem(server.get("/api/404")) == {"title": "Not Found", "status": 404, "detail": "The resource does not exist."}
    assert problem(server.get("/api/-121"))["title"] == "Internal Server Error"
    refused = server.get("/api/take", method="DELETE")
    assert problem(refused)["title"] == "Method Not Allowed"
    assert sorted(refused["Allow"].split(", ")) == ["GET", "HEAD", "OPTIONS", "POST"]
    assert problem(server.get("/api/take", method="POST", body=b"12345678901"))["status"] == 413
    assert problem(server.get("/api/problem"))["detail"] == "its own"
    assert "paper" not in server.get("/api/reason").text
    assert problem(server.get("/api/-129"))["status"] == 401
    assert "invalid_token" in server.get("/api/-129")["WWW-Authenticate"]


def test_options_is_not_an_error(server):
    assert server.get("/api/take", method="OPTIONS").status == 204


def test_headers_of_the_handler_stay_except_those_of_its_body(server):
    answer = server.get("/plain/html")
    assert (answer.status, answer["X-Kept"], answer["Content-Type"]) == (409, "yes", "text/plain; charset=utf-8")


@pytest.mark.parametrize("server", ["inside"], indirect=True)
def test_head_has_the_length_of_the_error_body(server):
    for target in ("/plain/404", "/none"):
        head, get = server.get(target, method="HEAD"), server.get(target)
        assert (head.status, head.text, head["Content-Length"]) == (404, "", get["Content-Length"])


def test_error_handler_may_redirect(server):
    answer = server.get("/redirects/401")
    assert (answer.status, answer["Location"]) == (303, "/login")


def test_error_handler_may_stream_a_long_page(server):
    answer = server.get("/long/404")
    assert answer.status == 404 and answer.text.endswith("line 2999 of a long page, which does not fit into the buffer\n")


@pytest.mark.parametrize("server", ["inside"], indirect=True)
def test_response_that_has_started_is_cut_off(server):
    allow_errors(server)
    with server.connect(protocol="h1") as client:
        client.ask("/plain/begun")
        received = client.read_to_end()
        assert b" 200 " in received and b"outer" not in received


def test_error_handler_responds_to_a_deadline(server):
    answer = server.get("/timed/deadline/sleep")
    assert (answer.status, answer.text) == (504, "napped: 504 -110 - - /timed/deadline/sleep\n")


@pytest.mark.parametrize("server", ["inside"], indirect=True)
def test_error_handler_responds_to_a_handler_timeout(server):
    answer = server.get("/nested/sleep")
    assert (answer.status, answer.text) == (504, "first: 504 0 - - /nested/sleep\n")


@pytest.mark.parametrize("server", ["inside"], indirect=True)
def test_error_handler_that_waits_after_handler_timeout_leaves_the_page_to_the_server(server):
    answer = server.get("/timed/sleep")
    assert answer.status == 504 and "<title>504 Gateway Timeout" in answer.text


@pytest.mark.slow
def test_error_handler_that_waits_too_long_leaves_the_page_to_the_server(server):
    answer = server.get("/sleeps/404")
    assert answer.status == 404 and "<title>404 Not Found" in answer.text


@pytest.mark.parametrize("server", ["inside"], indirect=True)
def test_attached_data_is_destroyed_after_the_error_handlers(server):
    before = int(server.get("/count").text)
    assert "ann" in server.get("/nested/404").text
    assert int(server.get("/count").text) == before + 1


def test_service_below_a_path_handles_only_its_own_errors(monkey, site):
    server = monkey(plugins=[services.build(site.path.parent, "errors", SOURCE)],
                    sections="[ROUTES]\n    /shop/* errors\n    /* static\n")
    assert server.get("/shop/nested/404").text == "first: 404 404 ann - /nested/404\n"
    assert server.get("/shop/none").text == "outer: 404 0 - - /none\n"
    assert server.get("/shop/nested/a/b").text == "first: 404 0 - - /nested/a/b\n"
    for target in ("/none", "/shopping"):
        assert "<title>404 Not Found" in server.get(target).text


def test_errors_of_other_handlers_keep_their_pages(monkey, site):
    server = monkey(plugins=["proxy", services.build(site.path.parent, "errors", SOURCE)],
                    sections="[ROUTES]\n    /back/* proxy http://127.0.0.1:1\n")
    answer = server.get("/back/x")
    assert (answer.status, answer.text) == (404, "outer: 404 0 - - /back/x\n") or answer.status in (502, 503)
    server.allow("refused")


def test_error_handlers_respond_for_plugins_that_protect_a_route(monkey, site):
    (site.path.parent / "users").write_text(f"ann:{sha1('secret')}\n")
    server = monkey(plugins=["auth", services.build(site.path.parent, "errors", SOURCE)],
                    sections=f"[AUTH]\n    Location /api\n    Realm Staff\n    UserFile {site.path.parent / 'users'}\n")
    answer = server.get("/api/done")
    assert problem(answer)["title"] == "Unauthorized"
    assert "Staff" in answer["WWW-Authenticate"]


def crash(server, target):
    with pytest.raises((Closed, ConnectionError)):
        server.get(target)


@pytest.mark.processes("a crash ends its worker")
def test_crashes_of_error_handlers_disable_the_route(monkey, site):
    server = monkey(plugins=[services.build(site.path.parent, "errors", SOURCE)],
                    sections="[DUDA]\n    CrashLimit 1\n")
    server.allow("Sanitizer", "was killed by signal", "exited unexpectedly")
    crash(server, "/crashes/404")
    page = server.get("/crashes/404")
    assert page.status == 404 and "<title>404" in page.text
    server.err.wait_for(r"crashes\(\) in .* crashed with SIGSEGV; route /crashes/:how, ")
    page = server.get("/crashes/a/b")
    assert page.status == 404 and "<title>404" in page.text
    assert server.get("/plain/404").text.startswith("outer: 404")
    crash(server, "/api/crash")
    answer = server.get("/api/crash")
    assert problem(answer)["status"] == 503 and re.fullmatch(r"\d+", answer["Retry-After"])
