# SPDX-License-Identifier: Apache-2.0
"""The values that all templates have: the user, the CSRF token, flash messages and errors of forms, in a loaded and in an isolated
service; pages of forms, and the redirect with a message."""
import re
from urllib.parse import quote, urlencode

import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

struct home {
    mk_str street;
};
static const struct duda_schema_field home_fields[] = {DUDA_STRING(struct home, street, .max_length = 5, .optional = true)};
static const struct duda_schema home_schema = DUDA_SCHEMA(struct home, home_fields);
struct person {
    mk_str name, *tags;
    size_t n_tags;
    unsigned age;
    struct home home;
};
static const struct duda_schema_field fields[] = {
    DUDA_STRING(struct person, name, .min_length = 1, .max_length = 3, .code = "short"),
    DUDA_INTEGER(struct person, age, DUDA_MAXIMUM(150)),
    DUDA_OBJECT(struct person, home, &home_schema, .optional = true),
    DUDA_LIST(struct person, tags, n_tags, DUDA_KIND_STRING, .optional = true, .pattern = "^[a-z]$"),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct person, fields);

static int log_in(struct duda_ctx *d)
{
    int e = duda_session_log_in(d, duda_param(d, "user"));
    return e ? e : duda_puts(d, "in");
}

static int tell(struct duda_ctx *d)
{
    return duda_flash_redirect(d, duda_query_or(d, "category", ""), duda_query(d, "text"), duda_query(d, "to"));
}

static int page(struct duda_ctx *d)
{
    const struct duda_entry values[] = {{"own", duda_value_cstr("own")}, {"user", duda_value_cstr("value of the handler")}};
    return duda_render(d, duda_query_or(d, "name", "all.html"), duda_value_map(values, MK_LEN(values)));
}

/* Renders two pages: the first one takes the messages. */
static int twice(struct duda_ctx *d)
{
    int e = page(d);
    return e ? e : page(d);
}

/* The response has started, so a new token would need a cookie that cannot be sent. */
static int late(struct duda_ctx *d)
{
    int e = duda_puts(d, "early ");
    e = e ? e : duda_flush(d);
    return e ? e : duda_render(d, "token.html", duda_value_null());
}

static int show(struct duda_ctx *d)
{
    return duda_render_form(d, "form.html", &schema, &(struct person){.name = MK_STR("Ana"), .age = 18});
}

static int save(struct duda_ctx *d)
{
    struct person person = {.age = 18};
    int e = duda_bind_form_or_render(d, &schema, &person, duda_query_or(d, "template", "form.html"));
    return e ? e : duda_printf(d, "%.*s %u", MK_STR_ARG(person.name), person.age);
}

/* Renders the page with the errors itself. */
static int manual(struct duda_ctx *d)
{
    struct person person = {.age = 18};
    struct duda_validation_errors errors;
    int e = duda_bind_form(d, &schema, &person, &errors);
    if (e != -EINVAL)
        return e ? e : duda_puts(d, "valid");
    e = duda_status(d, 422);
    return e ? e : duda_render(d, "errors.html", duda_value_null());
}

/* The second form is valid, so the page shows no errors of the first one. */
static int again(struct duda_ctx *d)
{
    struct person person = {.age = 18};
    struct home home;
    struct duda_validation_errors errors;
    int e = duda_bind_form(d, &schema, &person, &errors);
    e = e == -EINVAL ? duda_bind_form(d, &home_schema, &home, &errors) : 500;
    return e ? e : duda_render_form(d, "errors.html", &home_schema, &home);
}

/* Passes the address of a pointer. */
static int wrong(struct duda_ctx *d)
{
    struct person person = {.age = 18}, *p = &person;
    mk_str kind = duda_param(d, "kind");
    int e = mk_str_eq(kind, MK_STR("form"))    ? duda_bind_form(d, &schema, &p, NULL)
            : mk_str_eq(kind, MK_STR("page"))  ? duda_bind_form_or_render(d, &schema, &p, "form.html")
            : mk_str_eq(kind, MK_STR("query")) ? duda_bind_query(d, &schema, &p)
            : mk_str_eq(kind, MK_STR("list"))  ? duda_bind_json_list(d, &home_schema, &p, &(size_t){0}, NULL)
                                               : duda_bind_json(d, &schema, &p, NULL);
    return e == -EFAULT && p == &person && person.age == 18 ? e : 200;
}

#ifdef BROKEN
static int load(struct duda_ctx *d, mk_str id, mk_str *out)
{
    (void)d, (void)id, (void)out;
    return -ECONNREFUSED;
}

static int save_record(struct duda_ctx *d, mk_str id, mk_str data, uint32_t seconds)
{
    (void)d, (void)id, (void)data, (void)seconds;
    return 0;
}

static int destroy(struct duda_ctx *d, mk_str id)
{
    (void)d, (void)id;
    return -ECONNREFUSED;
}

static const struct duda_session_store store = {.load = load, .save = save_record, .destroy = destroy};
#endif

static int start(struct mk_worker *worker)
{
#ifdef BROKEN
    duda_session_set_store(worker, &store);
#endif
    (void)worker;
    return 0;
}

DUDA_SERVICE(pages, DUDA_START(start), DUDA_GET("/in/:user", log_in), DUDA_GET("/tell", tell), DUDA_GET("/page", page), DUDA_GET("/twice", twice),
             DUDA_GET("/late", late), DUDA_GET("/form", show), DUDA_POST("/form", save), DUDA_POST("/manual", manual), DUDA_POST("/again", again),
             DUDA_POST("/wrong/:kind", wrong));
"""
TEMPLATES = {
    "all.html": "{{own}} {{user}} {{#@user}}in:{{@user}}{{else}}out{{/@user}} {{#@flash}}[{{category}}|{{text}}]{{/@flash}}"
                "{{#@flash}}({{text}}){{/@flash}}{{^@errors}} none{{/@errors}} {{@user | upper | default \"-\"}} token:{{@csrf_token}}",
    "own.html": "{{own}}",
    "token.html": "token:{{@csrf_token}}.",
    "user.html": "{{@user}}",
    "unknown.html": "{{#@erors}}x{{/@erors}}",
    "path.html": "{{@user.name}}",
    "errors.html": "{{#@errors}}<{{pointer}} {{code}}: {{message}}>{{else}}fine{{/@errors}}",
    "tags.html": "{{@errors.tags}}|{{@errors.tag}}",
    "form.html": "{{form.name}}|{{form.age}}|{{form.home.street}}|{{#@errors}}{{code}} {{/@errors}}|{{@errors.name}}|{{@errors.home.street}}|"
                 "{{@errors.hom}}{{@errors.home}}{{@errors.x.y.z}}",
}
FORM = [("Content-Type", "application/x-www-form-urlencoded")]
SENTENCE = "`{}` must be a string of {}"


def build(folder, *flags):
    folder.chmod(0o755)
    (folder / "templates").mkdir()
    for name, text in TEMPLATES.items():
        (folder / "templates" / name).write_text(text)
    return services.build(folder, "pages", SOURCE, *flags)


def load(monkey, folder, *flags):
    return monkey(plugins=[build(folder, *flags)], workers=2)


def isolate(monkey, folder, *flags):
    return monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {build(folder, *flags)}\n", sections="[ROUTES]\n    /* isolate pages\n")


WAYS = {"loaded": load}
if (services.OBJECTS / "monkey-isolate.so").exists():
    WAYS["isolated"] = isolate


@pytest.fixture(params=WAYS)
def server(monkey, tmp_path, request):
    return WAYS[request.param](monkey, tmp_path)


class Browser:
    """Keeps the cookies. Each request has a connection of its own, so several workers respond."""

    def __init__(self, server):
        self.server, self.cookies = server, {}

    def get(self, target, method="GET", body=b""):
        fields = [("Cookie", "; ".join(f"{k}={v}" for k, v in self.cookies.items()))] if self.cookies else []
        answer = self.server.get(target, method, fields + (FORM if body else []), body)
        for line in answer.all("Set-Cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer


def post(server, target, **fields):
    return server.get(target, "POST", FORM, urlencode(fields).encode())


def token_of(answer):
    return re.search("token:([0-9a-f]{64})$", answer.text)[1]


def test_template_has_the_user_and_a_token(server):
    browser = Browser(server)
    first = browser.get("/page")
    assert first.text.startswith("own value of the handler out  none - token:"), "names of the handler and of Duda differ by the @"
    assert len(first.all("Set-Cookie")) == 1
    browser.get("/in/" + quote("<ana>"))
    second = browser.get("/page")
    assert second.text.startswith("own value of the handler in:&lt;ana&gt;  none &lt;ANA&gt; token:")
    assert not second.all("Set-Cookie"), "the token keeps its cookie"
    assert token_of(first) != token_of(second), "each page encodes the token differently"


def test_messages_are_shown_by_one_page_even_several_times(server):
    browser = Browser(server)
    for text in ("one", "<two>"):
        answer = browser.get("/tell?" + urlencode({"category": "good", "text": text, "to": "/page?x=1"}))
        assert (answer.status, answer["Location"]) == (303, "/page?x=1")
    assert "[good|one][good|&lt;two&gt;](one)(&lt;two&gt;)" in browser.get("/page").text
    assert "[" not in browser.get("/page").text
    browser.get("/tell?text=three&to=/")
    assert browser.get("/twice").text.count("[|three]") == 1, "the first page takes the message"


def test_page_without_a_value_does_not_compute_it(server):
    browser = Browser(server)
    assert not browser.get("/page?name=own.html").all("Set-Cookie")
    browser.get("/tell?text=kept&to=/")
    for name in ("own.html", "token.html", "user.html"):
        assert browser.get(f"/page?name={name}").status == 200
    assert "[|kept]" in browser.get("/page").text


def test_redirect_with_a_message_reports_errors(server):
    assert server.get("/tell?to=/").status == 500, "a message without text"
    assert server.get("/tell?" + urlencode({"text": "x" * 2801, "to": "/"})).status == 413
    server.err.wait_for("a flash message of 2801 bytes does not fit in the session")
    browser = Browser(server)
    assert [browser.get("/tell?text=x&to=/").status for _ in range(9)] == [303] * 9
    answer = Browser(server).get("/tell?" + urlencode({"text": "x", "to": "/\r\nX: y"}))
    assert answer.status == 303 and answer.all("X") == []


def test_token_of_a_started_response_is_absent(server):
    assert server.get("/late").text == "early token:."


def test_form_is_shown_again_with_its_errors(server):
    shown = server.get("/form")
    assert (shown.status, shown.text) == (200, "Ana|18|||||")
    assert post(server, "/form", name="bo", age="150").text == "bo 150"
    wrong = post(server, "/form", **{"name": "<bob>", "age": "151", "home.street": "street"})
    assert wrong.status == 422 and wrong["Content-Type"].startswith("text/html")
    assert wrong.text == ("&lt;bob&gt;|18|street|short maximum maxLength |" + SENTENCE.format("name", "1 to 3 characters") + "|"
                          + SENTENCE.format("home.street", "at most 5 characters") + "|"), wrong.text
    assert post(server, "/form", name="", age="1").status == 422


def test_error_of_a_list_element_is_an_error_of_the_field(server):
    wrong = server.get("/form?template=tags.html", "POST", FORM, b"name=bo&age=1&tags=a&tags=BAD")
    assert wrong.status == 422 and "tags" in wrong.text and wrong.text.endswith("|"), wrong.text


def test_handler_renders_the_errors_itself(server):
    assert post(server, "/manual", name="bo", age="1").text == "valid"
    wrong = post(server, "/manual", name="bo", age="x")
    assert wrong.status == 422 and re.fullmatch(r"&lt;/age type: `age` must be .*&gt;|</age type: `age` must be .*>", wrong.text), wrong.text
    assert post(server, "/again", name="", street="a").text == "fine", "the errors of the last form"


def test_form_that_cannot_be_received_is_not_shown_again(server):
    assert server.get("/form", "POST", FORM, b"name=%zz").status == 400
    assert server.get("/form", "POST", [("Content-Type", "application/json")], b"{}").status == 415
    assert post(server, "/form?template=none.html", name="").status == 500
    assert server.get("/page?name=none.html").status == 500


@pytest.mark.parametrize("name", ["unknown.html", "path.html"])
def test_unknown_value_is_empty(server, name):
    """`monkey run` reports it: see test_misspelled_value_is_an_error_during_development()."""
    assert server.get(f"/page?name={name}").text == ""


@pytest.mark.skipif(not (services.OBJECTS / "monkey-duda-dev.so").exists(), reason="this build has no monkey run")
def test_misspelled_value_is_an_error_during_development(monkey, tmp_path):
    build(tmp_path)
    (tmp_path / "cache").mkdir()
    server = monkey(args=["run", "-p", "0", tmp_path / "pages.c"],
                    environment={"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert server.get("/page?name=unknown.html").status == 500
    server.err.wait_for("unknown.html, line 1, column 1: `@erors` does not name a value here")
    assert server.get("/page").status == 200 and server.get("/form").text == "Ana|18|||||"


@pytest.mark.parametrize("kind", ["form", "page", "query", "json", "list"])
def test_struct_of_another_size_is_an_error(monkey, tmp_path, kind):
    server = load(monkey, tmp_path)
    kinds = FORM if kind in ("form", "page") else [("Content-Type", "application/json")]
    assert server.get(f"/wrong/{kind}?name=a&age=1", "POST", kinds, b"name=a&age=1" if kinds is FORM else b'{"name": "a", "age": 1}').status == 500
    server.err.wait_for(r"describes \d+ bytes, but the struct has \d+ bytes")


def test_failing_session_store_is_an_error_of_pages_with_a_user(monkey, tmp_path):
    server = load(monkey, tmp_path, "-DBROKEN")
    browser = Browser(server)
    browser.get("/in/ana")
    for name in ("user.html", "all.html"):
        assert browser.get(f"/page?name={name}").status == 503
    assert browser.get("/page?name=own.html").text == "own"
    server.err.wait_for("user.html, line 1, column 1: `@user` cannot be read")
