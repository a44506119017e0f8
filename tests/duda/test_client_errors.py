# SPDX-License-Identifier: Apache-2.0
"""duda_error(): errors with a description for the client, as those of duda_bind_*() and duda_csrf_check(), go to the error handlers; without
one, clients that prefer HTML get an error page, and all others problem details."""
import json

import pytest

import services
from running import cache, runtime, src, start  # pylint: disable=unused-import

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

struct pet {
    mk_str name;
    unsigned age;
};
static const struct duda_schema_field pet_fields[] = {
    DUDA_STRING(struct pet, name, .min_length = 1, .message = "Name <your> pet"), DUDA_INTEGER(struct pet, age, DUDA_MAXIMUM(30))};
static const struct duda_schema pet_schema = DUDA_SCHEMA(struct pet, pet_fields);

static int bind_json(struct duda_ctx *d) { struct pet p = {.age = 1}; int e = duda_bind_json(d, &pet_schema, &p, NULL); return e ? e : duda_puts(d, "ok"); }
static int bind_form(struct duda_ctx *d) { struct pet p = {.age = 1}; int e = duda_bind_form(d, &pet_schema, &p, NULL); return e ? e : duda_puts(d, "ok"); }
static int bind_query(struct duda_ctx *d) { struct pet p = {.age = 1}; int e = duda_bind_query(d, &pet_schema, &p); return e ? e : duda_puts(d, "ok"); }
static int change(struct duda_ctx *d) { return duda_puts(d, "changed"); }
static int fail(struct duda_ctx *d)
{
    int e = duda_puts(d, "dropped");
    return e ? e : duda_error(d, 409, "the name `%s` is taken", "a<b");
}
static int late(struct duda_ctx *d)
{
    int e = duda_puts(d, "late");
    e = e ? e : duda_flush(d);
    return e ? e : duda_error(d, 409, "too late") == 409 ? 0 : 500;
}

static int show_error(struct duda_ctx *d)
{
    const struct duda_validation_errors *errors = duda_error_validation(d);
    int e = duda_content_type(d, MK_STR("text/html"));
    e = e ? e : duda_printf(d, "<h1>%u</h1>", duda_error_status(d));
    if (!e && duda_error_detail(d))
        e = duda_html(d, duda_html_escape(d, mk_str_from_c(duda_error_detail(d))));
    for (size_t i = 0; !e && errors && i < errors->n; i++)
        e = duda_printf(d, "[%.*s]", MK_STR_ARG(errors->items[i].pointer));
    return e;
}
static int only_404(struct duda_ctx *d) { return duda_error_status(d) == 404 ? duda_puts(d, "none") : DUDA_NEXT; }
static int broken(struct duda_ctx *d) { (void)d; return 500; }
static int outside(struct duda_ctx *d) { return duda_error_detail(d) || duda_error_validation(d) ? 500 : duda_puts(d, "none"); }

DUDA_ROUTES(all, DUDA_GET("/query", bind_query), DUDA_POST("/json", bind_json), DUDA_POST("/form", bind_form), DUDA_GET("/fail", fail),
            DUDA_GET("/late", late), DUDA_BEFORE(duda_csrf_check), DUDA_POST("/change", change));
DUDA_ROUTES(plain, DUDA_GROUP("", all));
DUDA_ROUTES(html, DUDA_ERROR(show_error), DUDA_GROUP("", all));
DUDA_ROUTES(problem, DUDA_ERROR(duda_error_problem), DUDA_GROUP("", all));
DUDA_ROUTES(next, DUDA_ERROR(only_404), DUDA_GROUP("", all));
DUDA_ROUTES(odd, DUDA_ERROR(broken), DUDA_GROUP("", all));
DUDA_SERVICE(pets, DUDA_GROUP("/plain", plain), DUDA_GROUP("/html", html), DUDA_GROUP("/problem", problem), DUDA_GROUP("/next", next),
             DUDA_GROUP("/odd", odd), DUDA_GET("/outside", outside, .rate = "1000/second"));
"""
BROWSER = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
FORM, JSON = ("Content-Type", "application/x-www-form-urlencoded"), ("Content-Type", "application/json")
REQUESTS = {  # the request, its status, and a part of the description
    "query": ("/query?name=&age=31", "GET", [], b"", 400, "Name <your> pet", ["/name", "/age"]),
    "json": ("/json", "POST", [JSON], b'{"name": "", "age": 31}', 422, "Name <your> pet", ["/name", "/age"]),
    "text": ("/json", "POST", [FORM], b"", 415, "the content must be JSON", None),
    "form": ("/form", "POST", [FORM], b"name=&age=31", 422, "Name <your> pet", ["/name", "/age"]),
    "fail": ("/fail", "GET", [], b"", 409, "the name `a<b` is taken", None),
    "csrf": ("/change", "POST", [FORM], b"", 403, "the CSRF token is missing", None),
    "site": ("/change", "POST", [FORM, ("Sec-Fetch-Site", "cross-site")], b"", 403, "a page of another site", None),
}


@pytest.fixture
def server(lasting):
    return lasting(lambda monkey, site: monkey(plugins=[services.build(site.path.parent, "pets", SOURCE)]))


def ask(server, group, name, *fields):
    target, method, own, body, status, detail, pointers = REQUESTS[name]
    answer = server.get(group + target, method, [*own, *fields], body)
    assert answer.status == status, answer.text
    assert "dropped" not in answer.text
    return answer, detail, pointers


def check_problem(answer, detail, pointers):
    shown = json.loads(answer.text)
    assert answer["Content-Type"] == "application/problem+json" and shown["status"] == answer.status and detail in shown["detail"], shown
    assert [each["pointer"] for each in shown["errors"]] == pointers if pointers else "errors" not in shown


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("group", ["/plain", "/problem", "/next"])
def test_programs_get_problem_details(server, group, name):
    check_problem(*ask(server, group, name))
    check_problem(*ask(server, group, name, ("Accept", "application/json, text/html;q=0.5")))
    check_problem(*ask(server, group, name, ("Accept", "*/*")))


@pytest.mark.parametrize("name", REQUESTS)
def test_error_handler_of_the_group_shows_the_description(server, name):
    for fields in ([], [BROWSER]):
        answer, detail, pointers = ask(server, "/html", name, *fields)
        assert answer["Content-Type"].startswith("text/html") and f"<h1>{answer.status}</h1>" in answer.text
        assert detail.replace("<", "&lt;").replace(">", "&gt;") in answer.text
        assert "".join(f"[{each}]" for each in pointers or ()) in answer.text


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("group", ["/plain", "/next"])
def test_browsers_get_the_error_page_of_the_server(server, group, name):
    answer, _, _ = ask(server, group, name, BROWSER)
    assert answer["Content-Type"].startswith("text/html") and "<html" in answer.text and "Name <your>" not in answer.text


def test_failed_error_handler_replaces_the_error(server):
    server.allow("broken")
    assert server.get("/odd/fail").status == 500
    server.err.wait_for("broken.. in .*an error handler, returned 500")


def test_started_response_and_other_handlers_have_no_description(server):
    assert server.get("/plain/late").text == "late" and server.get("/html/late").text == "late"
    assert server.get("/outside").text == "none"


def test_valid_requests_are_accepted_in_all_groups(server):
    for group in ("/plain", "/html", "/problem"):
        assert server.get(group + "/query?name=a&age=3").text == "ok"
        assert server.get(group + "/json", "POST", [JSON], b'{"name": "a", "age": 3}').text == "ok"


@pytest.mark.skipif(not (services.OBJECTS / "monkey-duda-dev.so").exists(), reason="this build has no monkey run")
def test_monkey_run_shows_the_description_on_its_page(start, src):
    (src / "pets.c").write_text(SOURCE)
    server = start(src / "pets.c")
    answer, detail, _ = ask(server, "/plain", "csrf", BROWSER)
    assert detail in answer.text
