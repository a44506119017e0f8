# SPDX-License-Identifier: Apache-2.0
"""A service from source to response: routes, parameters, request and response functions, and functions that wait."""
import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>

static int hello(struct duda_ctx *d)
{
    return duda_printf(d, "hello %s\n", duda_query_or(d, "name", "world"));
}

static int item(struct duda_ctx *d)
{
    int64_t n;
    if (!duda_param_int(d, "id", &n))
        return 404;
    return duda_printf(d, "item %lld\n", (long long)n);
}

static int rest(struct duda_ctx *d)
{
    return duda_printf(d, "rest %s of %s\n", duda_param(d, "rest").p, duda_path(d).p);
}

static int count(struct duda_ctx *d)
{
    char buffer[100];
    ssize_t n;
    size_t all = 0;
    while ((n = duda_read(d, buffer, sizeof buffer)) > 0)
        all += (size_t)n;
    return n < 0 ? (int)n : duda_printf(d, "%zu bytes\n", all);
}

static int nap(struct duda_ctx *d)
{
    int e = duda_sleep(d, 50);
    return e ? e : duda_puts(d, "awake\n");
}

static int lines(struct duda_ctx *d)
{
    int64_t n;
    if (!duda_query_int_or(d, "n", 10, &n))
        return 400;
    for (int64_t i = 0; i < n; i++) {
        int e = duda_printf(d, "line %lld of the content\n", (long long)i);
        if (e)
            return e;
    }
    return 0;
}

static int twice(void *ctx)
{
    *(int *)ctx *= 2;
    return 0;
}

static int aside(struct duda_ctx *d)
{
    int n = 21, e = duda_offload(d, NULL, twice, &n, sizeof n);
    return e ? e : duda_printf(d, "%d\n", n);
}

static int nothing(struct duda_ctx *d)
{
    (void)d;
    return 0;
}

static int late(struct duda_ctx *d)
{
    int e = duda_deadline(d, 50);
    return e ? e : duda_sleep(d, 3600000);
}

DUDA_SERVICE(first,
    DUDA_GET("/", hello, "Greets."),
    DUDA_GET("/items/:id", item, "Shows one item."),
    DUDA_GET("/rest/*rest", rest, "Returns the rest of the path."),
    DUDA_POST("/count", count, "Counts bytes."),
    DUDA_GET("/nap", nap, "Waits."),
    DUDA_GET("/lines", lines, "Writes many lines."),
    DUDA_GET("/aside", aside, "Computes in a thread."),
    DUDA_DELETE("/items/:id", nothing, "Sends no body."),
    DUDA_GET("/late", late, "Is too slow."));
"""


def prepare(monkey, site):
    site.add("file.txt", "a file")
    folder = site.path.parent
    monkey(plugins=[services.build(folder, "first", SOURCE)])


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def test_response_contains_the_query_parameter(server):
    answer = server.get("/")
    assert (answer.status, answer.text) == (200, "hello world\n")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert server.get("/?a=1&name=M%C3%B6rike+x").text == "hello Mörike x\n"


def test_path_parameters_select_the_route(server):
    assert server.get("/items/12").text == "item 12\n"
    assert server.get("/items/x").status == 404
    assert server.get("/rest/a/b").text == "rest a/b of /rest/a/b\n"


def test_methods_select_the_route(server):
    answer = server.get("/count")
    assert (answer.status, answer["Allow"]) == (405, "POST, OPTIONS")
    assert server.get("/items/1", method="DELETE").status == 204
    head = server.get("/", method="HEAD")
    assert (head.status, head["Content-Length"], head.text) == (200, "12", "")


def test_request_without_a_route_falls_through_to_static_files(server):
    assert server.get("/file.txt").text == "a file"
    assert server.get("/none").status == 404


def test_request_body_is_read_in_pieces(server):
    assert server.get("/count", method="POST", body=b"x" * 100_000).text == "100000 bytes\n"


def test_waits_resume_or_time_out(server):
    assert server.get("/nap").text == "awake\n"
    assert server.get("/aside").text == "42\n"
    assert server.get("/late").status == 504


def test_long_response_is_streamed(server):
    answer = server.get("/lines?n=20000")
    assert answer.text == "".join(f"line {i} of the content\n" for i in range(20000))
    assert "Content-Length" not in answer
