# SPDX-License-Identifier: Apache-2.0
"""Structs in sessions: duda_session_set_struct() and duda_session_get_struct()."""
import os
import signal

import pytest

import services
from monkey import PROTOCOLS
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

struct person {
    mk_str name;
    int age;
    double height;
    bool is_admin;
};
static const struct duda_schema_field fields[] = {
    DUDA_STRING(struct person, name), DUDA_INTEGER(struct person, age, DUDA_MINIMUM(0), DUDA_MAXIMUM(150)),
    DUDA_DOUBLE(struct person, height), DUDA_BOOL(struct person, is_admin)};
static const struct duda_schema schema = DUDA_SCHEMA(struct person, fields);

static int set(struct duda_ctx *d)
{
    int64_t age = 0;
    if (!duda_query_int_or(d, "age", 0, &age))
        return 400;
    mk_str name;
    int e = duda_read_all(d, 10000, &name);
    const struct person person = {.name = name, .age = (int)age, .height = 1.75, .is_admin = true};
    e = e ? e : duda_session_set_struct(d, "person", &schema, &person);
    return e ? e : duda_puts(d, "set");
}

static int show(struct duda_ctx *d)
{
    struct person person = {.age = -1};
    int e = duda_session_get_struct(d, "person", &schema, &person);
    if (e)
        return duda_printf(d, "%d", -e);
    e = duda_session_set(d, "person", MK_STR("replaced")); /* the strings of the struct stay valid */
    return e ? e : duda_printf(d, "%.*s %d %.2f %d", MK_STR_ARG(person.name), person.age, person.height, person.is_admin);
}

static int raw(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_read_all(d, 10000, &text);
    e = e ? e : duda_session_set(d, "person", text);
    return e ? e : duda_puts(d, "set");
}

static int keep(struct duda_ctx *d)
{
    struct person person;
    return duda_printf(d, "%d", -duda_session_get_struct(d, "person", &schema, &person));
}

static int misfit(struct duda_ctx *d)
{
    struct {
        mk_str name;
    } person = {MK_STR("x")};
    return duda_session_set_struct(d, "person", &schema, &person) == -EFAULT ? duda_session_get_struct(d, "person", &schema, &person) : 200;
}

DUDA_SERVICE(people, DUDA_POST("/set", set), DUDA_GET("/show", show), DUDA_POST("/raw", raw), DUDA_GET("/keep", keep), DUDA_GET("/misfit", misfit));
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("service"), "people", SOURCE)


@pytest.fixture(params=["memory", "cookie"])
def start(request, monkey, service):
    def run(**how):
        server = monkey(plugins=[service], top=f"[SESSIONS]\n    Store {request.param}\n", **how)
        server.allow("the session value", "schema of", "cannot save the session")
        return server
    return run


class Visitor:
    def __init__(self, server):
        self.server, self.cookie = server, None

    def request(self, target, method="GET", body=b""):
        fields = [("Cookie", self.cookie)] if self.cookie else []
        reply = self.server.get(target, method, fields=fields, body=body)
        if reply.all("Set-Cookie"):
            self.cookie = reply.all("Set-Cookie")[-1].split(";")[0]
        return reply


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_struct_survives_between_requests(start, protocol):
    visitor = Visitor(start(workers=2))
    assert visitor.request("/show").text == "2", "a new client has no value"
    assert visitor.request("/set?age=42", "POST", 'Ana "€" \u0001'.encode()).text == "set"
    assert visitor.request("/show").text == 'Ana "€" \u0001 42 1.75 1'
    assert visitor.request("/show").text == "71", "the value is another text now"


@pytest.mark.processes("it reloads, and kills workers")
def test_struct_survives_workers(start):
    server = start(workers=2)
    visitor = Visitor(server)
    server.allow("killed", "signal 9", "ended", "exit")
    assert visitor.request("/set?age=7", "POST", b"Bo").text == "set"
    victim = server.workers[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in server.workers and len(server.workers) == 2, "it is replaced")
    assert visitor.request("/keep").text == "0"
    server.tell(signal.SIGHUP)
    wait_until(lambda: visitor.request("/keep").text == "0", "the session survives the reload")


@pytest.mark.parametrize("text", [
    "", "{", "[]", '{"name": "x"}', '{"name": 1, "age": 2, "height": 1, "is_admin": true}',
    '{"name": "x", "age": 151, "height": 1, "is_admin": true}', '{"name": "x", "age": 1, "height": 1, "is_admin": true, "more": 1}'])
def test_value_of_another_form_is_an_error(monkey, service, text):
    server = monkey(plugins=[service])
    visitor = Visitor(server)
    assert visitor.request("/raw", "POST", text.encode()).text == "set"
    assert visitor.request("/keep").text == "71", "EPROTO"


def test_struct_that_does_not_match_its_schema_is_rejected(start):
    server = start()
    visitor = Visitor(server)
    assert visitor.request("/set?age=20", "POST", b"Ana").text == "set"
    assert visitor.request("/set?age=151", "POST", b"Bo").status == 500
    lines = [line for line in server.log.splitlines() if "session value" in line]
    assert any("the session value `person` does not match its schema: " in line and "0 to 150" in line for line in lines), lines
    assert visitor.request("/show").text == "Ana 20 1.75 1", "the old value remains"
    assert visitor.request("/misfit").status == 500
    assert "describes" in server.log


def test_struct_that_is_too_large_is_rejected(start):
    server = start()
    visitor = Visitor(server)
    assert visitor.request("/set?age=20", "POST", b"Ana").text == "set"
    assert visitor.request("/set?age=1", "POST", b"x" * 3000).status == 413
    assert visitor.request("/set?age=1", "POST", b"x" * 2750).status == 413, "it fits alone, but not with the rest of the session"
    assert visitor.request("/show").text == "Ana 20 1.75 1"
