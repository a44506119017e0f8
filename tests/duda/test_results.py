# SPDX-License-Identifier: Apache-2.0
"""The return value of a handler or middleware determines the response status and the log message. No invalid
value lets a request through."""
import errno
import re

import pytest

import services
from client import Closed
from monkey import ROOT

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static int number(struct duda_ctx *d)
{
    const char *text = duda_query_or(d, "n", "0");
    if (!strcmp(text, "next"))
        return DUDA_NEXT;
    if (!strcmp(text, "answered"))
        return (duda_status(d, 201), duda_puts(d, "said\n")) ? 500 : DUDA_HANDLED;
    return (int)strtol(text, NULL, 10);
}

static int streamed(struct duda_ctx *d)
{
    int e = duda_puts(d, "begun\n");
    e = e ? e : duda_flush(d);
    e = e ? e : duda_sleep(d, 50); /* the response has started */
    return e ? e : number(d);
}

static int secret(struct duda_ctx *d)
{
    return duda_puts(d, "SECRET");
}

static bool has_key(struct duda_ctx *d)
{
    return mk_str_eq(duda_header(d, "X-Key"), MK_STR("sesame"));
}

/* A predicate used as middleware by mistake. */
static int is_staff(struct duda_ctx *d)
{
    return has_key(d);
}

static int is_staff_negative(struct duda_ctx *d)
{
    return has_key(d) ? 0 : -1;
}

static int redirects(struct duda_ctx *d)
{
    return has_key(d) ? DUDA_NEXT : duda_redirect(d, 303, MK_STR("/log-in"));
}

static int says(struct duda_ctx *d)
{
    return has_key(d) ? DUDA_NEXT : duda_puts(d, "said by the guard");
}

static bool never(struct duda_ctx *d)
{
    (void)d;
    return false;
}

static bool waits(struct duda_ctx *d)
{
    return !duda_sleep(d, 60000);
}

static bool allows(struct duda_ctx *d)
{
    (void)d;
    return true;
}

static int allows_all(struct duda_ctx *d)
{
    (void)d;
    return 0;
}

static int set_result(struct duda_ctx *d)
{
    if (duda_query_or(d, "set", "")[0])
        duda_set_result(d, atoi(duda_query_or(d, "set", "")));
    return 0;
}

static int kind(struct duda_ctx *d)
{
    int e = duda_header_set(d, "X-Kind", MK_STR("plain"));
    return e ? e : duda_puts(d, "the body");
}

static int note(struct duda_ctx *d)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s %d %.*s", MK_STR_ARG(duda_response_header(d, "x-kind")),
             duda_response_header(d, "X-None").p != NULL, MK_STR_ARG(duda_response_body(d)));
    return duda_header_set(d, "X-Noted", mk_str_from_c(text));
}

DUDA_ROUTES(noted, DUDA_AFTER(note), DUDA_GET("/text", kind, ""), DUDA_GET("/empty", allows_all, ""));
DUDA_ROUTES(staff, DUDA_BEFORE(is_staff), DUDA_GET("/secret", secret, ""));
DUDA_ROUTES(negative, DUDA_BEFORE(is_staff_negative), DUDA_GET("/secret", secret, ""));
DUDA_ROUTES(redirected, DUDA_BEFORE(redirects), DUDA_GET("/secret", secret, ""));
DUDA_ROUTES(answered, DUDA_BEFORE(says), DUDA_GET("/secret", secret, ""));
DUDA_ROUTES(required, DUDA_REQUIRE(allows, 404), DUDA_REQUIRE(has_key, 403), DUDA_GET("/secret", secret, ""));
DUDA_ROUTES(refused, DUDA_REQUIRE(never, 403), DUDA_REQUIRE(allows, 404), DUDA_GET("/secret", secret, ""));
DUDA_ROUTES(waited, DUDA_REQUIRE(waits, 403), DUDA_GET("/secret", secret, "", .deadline_ms = 20));
DUDA_ROUTES(numbered, DUDA_BEFORE(number), DUDA_GET("/secret", secret, ""));
DUDA_SERVICE(results, DUDA_GROUP("/staff", staff, ""), DUDA_GROUP("/negative", negative, ""), DUDA_GROUP("/redirected", redirected, ""),
    DUDA_GROUP("/answered", answered, ""), DUDA_GROUP("/required", required, ""), DUDA_GROUP("/waited", waited, ""), DUDA_GROUP("/refused", refused, ""),
    DUDA_GROUP("/numbered", numbered, ""), DUDA_GROUP("/noted", noted, ""),
    DUDA_AFTER(set_result), DUDA_ANY("/number", number, ""), DUDA_GET("/streamed", streamed, ""));
"""
KEY = [("X-Key", "sesame")]
MISTAKES = [1, 2, 7, 99, 100, 150, 199, 600, 999, 2147483647, -4096, -2147483648, "next"]


def prepare(monkey, site):
    monkey(plugins=[services.build(site.path.parent, "results", SOURCE)]).allow("returned ", "answered -", "out of memory")


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def test_middleware_reads_the_response(server):
    reply = server.get("/noted/text")
    assert (reply.text, reply["X-Noted"]) == ("the body", "plain 0 the body")
    assert server.get("/noted/empty")["X-Noted"].split() == ["0"]


def documented():
    """Parses the table in the header file; returns {errno name: status}."""
    text = (ROOT / "duda/include/duda/service.h").read_text()
    table, status, found = text[text.index("a negative errno value"):text.index("all others\n")], 0, {}
    for line in table.splitlines():
        if row := re.findall(r"\b\d{3}\b", line):
            status = int(row[0])
        found |= dict.fromkeys(re.findall(r"-(E\w+)", line), status)
    return found


@pytest.mark.parametrize("number", MISTAKES)
def test_invalid_result_is_500_and_logged(server, number):
    """The result of a handler, of middleware, or of duda_set_result() is invalid: the log names function, source line, route
    and number."""
    log_length = len(server.err.text)
    shown = 0x4e455854 if number == "next" else number
    assert server.get(f"/number?n={number}").status == 500
    server.err.wait_for(rf"\[error\].*number\(\) in \S+results.c:\d+, for the route \* /number, returned {shown}, which is neither 0")
    if number != "next":
        assert server.get(f"/number?n=200&set={number}").status == 500
        answer = server.get(f"/numbered/secret?n={number}")
        assert answer.status == 500 and "SECRET" not in answer.text
        server.err.wait_for(rf"for the route GET /numbered/secret, returned {shown}, which is neither DUDA_NEXT nor a valid result")
    assert server.err.text[log_length:].count("[error]") == (3 if number != "next" else 1)


@pytest.mark.parametrize("number", [200, 204, 226, 399, 400, 404, 599])
def test_status_as_result_is_sent(server, number):
    output = len(server.err.text)
    assert server.get(f"/number?n={number}").status == number
    assert not re.search(r"\[(warn|error)\].*/number", server.err.text[output:])  # a status alone is not logged, not even a 5xx


def test_handled_result_keeps_status_and_body(server):
    answer = server.get("/number?n=answered")
    assert (answer.status, answer.text) == (201, "said\n")
    assert server.get("/number?n=0").status == 204


def test_invalid_result_after_streaming_closes_the_connection(server):
    for number in (7, -1, 500, "next"):
        with pytest.raises((Closed, ConnectionError)):
            server.get(f"/streamed?n={number}")
    assert server.get("/streamed?n=answered").text == "begun\nsaid\n"
    assert server.get("/streamed?n=0").text == "begun\n"


def test_errno_table_of_the_header_is_correct(server):
    table = documented()
    assert len(table) > 20 and table["ENOENT"] == 404 and table["EDQUOT"] == 429
    for name, number in vars(errno).items():
        if name.startswith("E") and name != "ECANCELED" and isinstance(number, int):
            aliases = [status for other, status in table.items() if getattr(errno, other, None) == number]
            assert server.get(f"/number?n=-{number}").status == (aliases[0] if aliases else 500), name


@pytest.mark.parametrize("name", ["ENOENT", "EEXIST", "EDQUOT", "EFBIG", "EBADMSG"])
def test_error_that_clients_cause_is_not_logged(server, name):
    output = len(server.err.text)
    assert server.get(f"/number?n=-{getattr(errno, name)}").status < 500
    assert server.get(f"/number?n=-{errno.EACCES}").status == 403
    server.err.wait_for(r"number\(\) in \S+:\d+ answered -EACCES")
    assert f"answered -{name} " not in server.err.text[output:]


def test_predicate_as_middleware_admits_no_request(server):
    """Whether the predicate returns 0 for yes or for no, the handler never runs, with or without the key."""
    for group in ("staff", "negative"):
        for fields in ([], KEY):
            answer = server.get(f"/{group}/secret", fields=fields)
            assert answer.status in (403, 500) and "SECRET" not in answer.text
    server.err.wait_for(r"is_staff\(\) in \S+results.c:\d+, for the route GET /staff/secret, returned 0, .*DUDA_REQUIRE\(\)")


@pytest.mark.parametrize("group, status", [("redirected", 303), ("answered", 200), ("required", 403)])
def test_middleware_responds_or_passes_the_request_on(server, group, status):
    assert server.get(f"/{group}/secret", fields=KEY).text == "SECRET"
    answer = server.get(f"/{group}/secret")
    assert answer.status == status and "SECRET" not in answer.text


def test_middleware_after_a_rejection_does_not_open_the_route(server):
    answer = server.get("/refused/secret", fields=KEY)
    assert answer.status == 403 and "SECRET" not in answer.text


def test_predicate_that_times_out_admits_no_request(server):
    answer = server.get("/waited/secret")
    assert answer.status == 504 and "SECRET" not in answer.text


@pytest.mark.parametrize("line, message", [
    ("DUDA_REQUIRE(allows, 302)", "needs a predicate and a status from 400 to 599"),
    ("DUDA_REQUIRE(allows, 0)", "needs a predicate and a status from 400 to 599"),
    ("DUDA_REQUIRE(NULL, 403)", "needs a predicate and a status from 400 to 599"),
    ("DUDA_BEFORE(NULL)", "need a function")])
def test_invalid_middleware_is_rejected_at_startup(run, tmp_path, line, message):
    source = "#include <duda.h>\nbool allows(struct duda_ctx *d);\nbool allows(struct duda_ctx *d)\n{\n    return d != NULL;\n}\n" \
        "static int secret(struct duda_ctx *d)\n{\n    return duda_puts(d, \"\");\n}\n" \
        f'DUDA_SERVICE(results, {line}, DUDA_GET("/secret", secret, ""));\n'
    (tmp_path / "monkey.conf").write_text(f"[PLUGINS]\n    Load {services.build(tmp_path, 'results', source)}\n")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    assert done.code == 3 and message in done.err, done.err
