# SPDX-License-Identifier: Apache-2.0
"""Messages with fields: in text and in JSON, for requests and tasks, with values that try to forge lines and fields."""
import json
import re

import pytest

import services
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <duda/task.h>

static int log_all(struct duda_ctx *d)
{
    const char *text = "plain";
    size_t size = 7;
    duda_log_fields(d, MK_LOG_INFO, "order placed", DUDA_LOG_FIELD("order", 17), DUDA_LOG_FIELD("name", duda_query(d, "name")), DUDA_LOG_FIELD("ok", (bool)true),
                DUDA_LOG_FIELD("price", 1.5), DUDA_LOG_FIELD("text", text), DUDA_LOG_FIELD("size", size), DUDA_LOG_FIELD("time", -1L), DUDA_LOG_FIELD("a b", "x"));
    duda_log(d, MK_LOG_WARN, "plain %s", duda_query(d, "name").p);
    return 204;
}

static int log_long(struct duda_ctx *d)
{
    char long_text[3000];
    memset(long_text, 'x', sizeof long_text);
    duda_log_fields(d, MK_LOG_INFO, "long", DUDA_LOG_FIELD("first", 1), DUDA_LOG_FIELD("long", mk_str_of(long_text, sizeof long_text)), DUDA_LOG_FIELD("last", 2));
    return 204;
}

static int quiet(struct duda_ctx *d)
{
    duda_log_fields(d, MK_LOG_DEBUG, "not shown", DUDA_LOG_FIELD("n", 1));
    return 404;
}

static int fail(struct duda_ctx *d)
{
    return duda_reason(d, 500, "the \"printer\" is on fire");
}

static int run(struct duda_ctx *d, void *data)
{
    (void)data;
    duda_log_fields(d, MK_LOG_INFO, "from a task", DUDA_LOG_FIELD("n", 3u));
    return 0;
}

static int start(struct duda_ctx *d)
{
    return duda_task_start(duda_worker(d), &(struct duda_task){.name = "job", .run = run}) ? 500 : 204;
}

DUDA_SERVICE(shop, DUDA_GET("/orders/:id", log_all), DUDA_GET("/long", log_long), DUDA_GET("/quiet", quiet), DUDA_GET("/fail", fail));
"""


@pytest.fixture
def start(monkey, tmp_path):
    plugin = services.build(tmp_path, "shop", SOURCE.replace(SOURCE[SOURCE.index("static int run("):SOURCE.index("DUDA_SERVICE")], ""))

    def run(form, plugins=(), **options):
        return monkey(plugins=[*plugins, "security", plugin], server=f"ErrorLogFormat {form}", top="[SECURITY]\n    TrustedProxy 127.0.0.1\n", **options)

    return run


def objects(server):
    """The lines of a JSON log, each of which must be an object of its own."""
    return [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]


def test_fields_follow_the_message_in_text(start):
    server = start("text")
    assert server.get("/orders/7?name=Ann%20%22B%22%0Aforged%3D1").status == 204
    line = next(x for x in server.log.splitlines() if "order placed" in x)
    assert re.search(r'\[info\] \d+: GET /orders/7\?name=.* from [^ ]+: order placed order=17 name="Ann \\"B\\"\?forged=1" ok=true price=1.5 '
                     r'text=plain size=7 time=-1 a_b=x \(request [0-9a-f]{32}\)$', line), line
    assert "forged" not in "".join(x for x in server.log.splitlines() if "order placed" not in x and "plain" not in x)


def test_fields_are_members_in_json(start):
    server = start("json")
    assert server.get("/orders/7?name=Ann%20%22B%22%0A%1B%22%2C%22forged%22%3A%221%ff", fields=[("X-Request-Id", "abc-1")]).status == 204
    lines = objects(server)
    order = next(x for x in lines if x["message"] == "order placed")
    assert order["order"] == 17 and order["ok"] is True and order["price"] == 1.5 and order["text"] == "plain" and order["size"] == 7
    assert order["name"].startswith('Ann "B"\n\x1b","forged":"1') and "forged" not in order
    assert order["time_"] == -1 and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", order["time"]) and order["a b"] == "x"
    assert (order["request_id"], order["route"], order["method"], order["level"]) == ("abc-1", "GET /orders/:id", "GET", "info")
    assert order["target"].startswith("/orders/7?name=") and order["client"] and order["pid"] in server.workers
    plain = next(x for x in lines if x["message"].startswith("plain Ann"))
    assert (plain["request_id"], plain["route"], plain["level"]) == ("abc-1", "GET /orders/:id", "warn") and "request abc-1" not in plain["message"]
    wait_until(lambda: any("serves with" in x["message"] for x in objects(server)), "messages of the server are JSON, too")


def test_long_fields_are_omitted(start):
    server = start("json")
    assert server.get("/long").status == 204
    line = next(x for x in objects(server) if x["message"] == "long")
    assert line["first"] == 1 and line["last"] == 2 and "long" not in line and line["route"] == "GET /long" and line["request_id"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_of_host_contains_fields(start, tmp_path, form):
    server = start(form, plugins=["logger"], sections=f"[LOGGER]\n    ErrorLog {tmp_path}/host.log\n")
    assert server.get("/orders/7?name=a%00b", fields=[("X-Request-Id", "abc-1")]).status == 204
    if form == "json":
        text = wait_until((tmp_path / "host.log").read_text, "the log of the host has the line")
        order = next(line for line in map(json.loads, text.splitlines()) if line["message"] == "order placed")
        assert (order["order"], order["name"], order["a b"], order["level"]) == (17, "a\0b", "x", "info")
        assert (order["request_id"], order["route"], order["method"]) == ("abc-1", "GET /orders/:id", "GET") and order["client"] and order["time"]
        plain = next(line for line in map(json.loads, text.splitlines()) if line["message"].startswith("plain"))
        assert plain["request_id"] == "abc-1" and "abc-1" not in plain["message"]
        return
    expected = r' order placed order=17 name="a\?b" ok=true .* a_b=x \(request abc-1\)\n'
    wait_until(lambda: re.search(expected, (tmp_path / "host.log").read_text()), "the log of the host has the fields")


def test_failures_name_the_route(start):
    server = start("json")
    assert server.get("/fail").status == 500 and server.get("/quiet").status == 404
    line = next(x for x in objects(server) if "printer" in x["message"])
    assert line["route"] == "GET /fail" and line["target"] == "/fail" and 'the "printer" is on fire' in line["message"]
    assert "not shown" not in server.log


def test_every_line_is_valid_json(start):
    """Invalid UTF-8, quotes and long targets reach the log through requests."""
    server = start("json")
    for target in ("/orders/%ff%fe?name=%c3", "/orders/x?name=" + "%22" * 300, "/orders/x?name=" + "%ff" * 900, "/fail?" + "\\" * 400):
        server.get(target)
    lines = [line for line in server.log.splitlines() if "order" in line or "fail" in line]
    for line in lines:
        json.loads(line)
    assert len(lines) >= 7
