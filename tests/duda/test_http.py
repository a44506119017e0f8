# SPDX-License-Identifier: Apache-2.0
"""The http package: a handler sends requests to another server, and gets an error if that server misbehaves."""
import json
import re
import socket

import pytest

import services
from backend import Backend, response

pytestmark = pytest.mark.skipif(not services.has("http"), reason="this build has no Duda")

SOURCE = r"""
#define DUDA_USE "duda-http"
#include <duda.h>
#include <duda/http.h>
#include <errno.h>

static int tell(struct duda_ctx *d, int e, const struct duda_http_response *r)
{
    if (e == -ECANCELED)
        return e;
    if (e)
        return duda_printf(d, "%d %.*s", -e, MK_STR_ARG(r->error));
    duda_printf(d, "%u %.*s ", r->status, MK_STR_ARG(duda_http_header(r, "x-answer")));
    return duda_write(d, r->body);
}

/* /ask?to=NAME&target=/...&method=...&field=VALUE; forwards the request body */
static int ask(struct duda_ctx *d)
{
    struct duda_http_client *http = duda_http_find(d, duda_query_or(d, "to", "main"));
    const struct mk_header field = {MK_STR("X-Field"), duda_query(d, "field")};
    struct duda_http_request request = {.method = duda_query(d, "method"), .target = duda_query(d, "target")};
    struct duda_http_response r;
    mk_str content;
    if (!http)
        return 404;
    if (field.value.p) {
        request.headers = &field;
        request.n_headers = 1;
    }
    int e = duda_read_all(d, 1 << 20, &content);
    if (e)
        return e;
    if (content.len) {
        request.body = content;
        request.content_type = MK_STR("application/json");
    }
    return tell(d, duda_http_fetch(d, http, &request, &r), &r);
}

/* Forwards the response body as it arrives. */
static int stream(struct duda_ctx *d)
{
    const struct duda_http_request request = {.target = MK_STR("/large")};
    struct duda_http_response r;
    struct duda_http_stream *s;
    char buffer[5000];
    ssize_t n;
    int e = duda_http_open(d, duda_http_find(d, NULL), &request, &r, &s);
    if (e)
        return tell(d, e, &r);
    while ((n = duda_http_read(d, s, buffer, sizeof buffer)) > 0)
        if ((e = duda_write(d, mk_str_of(buffer, (size_t)n))))
            return e;
    duda_http_close(s);
    return (int)n;
}

static int who(struct duda_ctx *d)
{
    return duda_printf(d, "worker %u of another service", mk_worker_index(duda_worker(d)));
}

DUDA_SERVICE(asks, DUDA_GET("/who", who, "Says where it runs."), DUDA_ANY("/ask", ask, "Asks."), DUDA_GET("/stream", stream, "Forwards the response."));
"""


@pytest.fixture
def backend():
    with Backend() as server:
        yield server


def start(monkey, site, server, keys=""):
    service = services.build(site.path.parent, "asks", SOURCE, packages=["http"])
    address = server if isinstance(server, str) else "127.0.0.1:%d" % server.at[1]
    return monkey(plugins=[service], top=f"[HTTP_CLIENT]\n    Server {address}\n{keys}", server="MaxBodySize 2M")


def test_http_sends_method_target_headers_and_body(monkey, site, backend):
    server = start(monkey, site, backend, "    Host example.org\n")
    status, body = server.get("/ask?target=/a%3Fb=c&field=x").text.split("  ", 1)
    request = json.loads(body)
    assert (status, request["method"], request["target"]) == ("200", "GET", "/a?b=c")
    assert ["Host", "example.org"] in request["fields"] and ["X-Field", "x"] in request["fields"]
    request = json.loads(server.get("/ask", method="POST", body=b'{"a":1}').text.split("  ", 1)[1])
    assert (request["method"], request["body"], request["target"]) == ("POST", '{"a":1}', "/")
    assert ["Content-Type", "application/json"] in request["fields"]
    assert server.get("/ask?to=none").status == 404
    assert server.get("/ask?method=HEAD").text == "200  "
    assert len({request.connection for request in backend.requests}) == 1, "the connection is reused"


def test_http_reaches_a_service_of_the_same_server(monkey, site, tmp_path):
    at = f"unix:{tmp_path}/own.sock"
    service = services.build(site.path.parent, "asks", SOURCE, packages=["http"])
    server = monkey(plugins=[service], top=f"[HTTP_CLIENT]\n    Server {at}\n", listen=["127.0.0.1:0", at])
    assert server.get("/ask?target=/who").text == "200  worker 0 of another service"  # the worker sends this request to itself
    assert server.get("/ask?target=/ask%3Ftarget=/who").text == "200  200  worker 0 of another service"


@pytest.mark.parametrize("query", ["target=/%0d%0aX:%20y", "target=/a%20b", "field=a%0d%0aX:%20y", "method=GET%20/x", "target=x"])
def test_http_rejects_injected_request_parts(monkey, site, backend, query):
    server = start(monkey, site, backend)
    text = server.get(f"/ask?{query}").text
    assert re.match(r"22 \[HTTP_CLIENT\] main[,:] ", text), text
    assert not backend.requests


def test_http_handles_every_form_of_response(monkey, site):
    answers = {"/404": response("no", "404 Not Found", [("X-Answer", "none")]),
               "/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
               "/early": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response("late"),
               "/long": response("x" * 3000), "/exact": response("x" * 2000), "/nonsense": b"SSH-2.0-x\r\n\r\n",
               "/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "/none": None}
    with Backend(lambda request: answers[request.target]) as backend:
        server = start(monkey, site, backend, "    MaxBodySize 2000\n    MaxTries 1\n")

        def ask(target):
            return server.get(f"/ask?target={target}").text

        assert ask("/404") == "404 none no"
        assert ask("/chunked") == "200  abcde"
        assert ask("/early") == "200  late"
        assert ask("/exact") == "200  " + "x" * 2000
        assert ask("/long") == "90 [HTTP_CLIENT] main: the content is longer than MaxBodySize"
        assert re.match(r"71 \[HTTP_CLIENT\] main, 127\.0\.0\.1:\d+: ", ask("/nonsense"))
        assert re.match(r"\d+ \[HTTP_CLIENT\] main, 127\.0\.0\.1:\d+: ", ask("/none"))


def test_http_reports_silent_and_unreachable_servers(monkey, site):
    def say_nothing(connection):
        while connection.recv(4096):
            pass

    with Backend(script=say_nothing) as backend, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        gone = f"[HTTP_CLIENT]\n    Name gone\n    Server 127.0.0.1:{closed.getsockname()[1]}\n"
        server = start(monkey, site, backend, "    Timeout 100ms\n    MaxTries 1\n" + gone)
        assert re.match(r"110 \[HTTP_CLIENT\] main, 127\.0\.0\.1:\d+: ", server.get("/ask").text)
        assert re.match(r"111 \[HTTP_CLIENT\] gone, 127\.0\.0\.1:\d+: ", server.get("/ask?to=gone").text)


def test_http_streams_a_large_body(monkey, site):
    large = bytes(range(256)) * 20000
    with Backend(lambda request: response(large)) as backend:
        server = start(monkey, site, backend)
        assert server.get("/stream").body == large


MISTAKES = [
    ("", "[HTTP_CLIENT] has neither Server nor AllowHosts"),
    ("    AllowHosts a/b\n", "`a/b` is not a host"),
    ("    AllowHosts user@a\n", "`user@a` is not a host"),
    ("    AllowHosts a\n    AllowPrivate 10.0.0.1/8\n", "`10.0.0.1/8` is not a network"),
    ("    AllowHosts a\n    TLSAuthority /none.pem\n", "/none.pem"),
    ("    Server 127.0.0.1:1\n[HTTP_CLIENT]\n    Server 127.0.0.1:2\n", "another [HTTP_CLIENT] already has the Name `main`"),
    ("    Server http://127.0.0.1\n", "`http://127.0.0.1` is not a server"),
]


@pytest.mark.parametrize("keys, message", MISTAKES, ids=[message for _, message in MISTAKES])
def test_http_client_section_rejects_invalid_keys(run, tmp_path, keys, message):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-http\n[HTTP_CLIENT]\n{keys}[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and message in done.err
