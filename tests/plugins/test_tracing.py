# SPDX-License-Identifier: Apache-2.0
"""The tracing plugin: request IDs in logs, responses and requests to backends."""
import json
import re

import pytest

import services
from backend import Backend, response
from monkey import PROTOCOLS, write_config
from proc import wait_until
from scgi_server import Program

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
RANDOM = re.compile(r"[0-9a-f]{32}")
TRUSTED = "[SECURITY]\n    TrustedProxy 127.0.0.1\n"
ID = "X-Request-Id"


@pytest.fixture
def start(monkey, site):
    """Starts a server with request IDs."""
    site.add("index.html", "hello")

    def run(keys="RequestId on", plugins=(), top="", **how):
        return monkey(plugins=["tracing", *plugins], top=f"{top}[TRACING]\n    {keys}\n", **how)

    return run


@pytest.fixture
def backend():
    with Backend(lambda request: response(",".join(request.all(ID)))) as each:
        yield each


def access_lines(server, n=1, path="access.log"):
    return wait_until(lambda: (lines := (server.folder / path).read_text().splitlines()) and len(lines) >= n and lines, "the lines of the access log")


# ---- The source of the ID ----

@every_protocol
def test_each_request_has_its_own_id(start):
    server = start()
    ids = [server.get("/")[ID] for _ in range(100)]  # more than one system call fetches
    assert all(RANDOM.fullmatch(each) for each in ids) and len(set(ids)) == 100


def test_id_is_off_by_default(start, backend):
    server = start(keys="RequestId off", plugins=["proxy"], sections=f"[ROUTES]\n    /api proxy http://{backend.address}\n    /* static\n")
    assert ID not in server.get("/")
    assert server.get("/api").text == ""
    assert server.get("/api", fields=[(ID, "client-1")]).text == "client-1", "the header of the client is unchanged"


@every_protocol
@pytest.mark.parametrize("given", ["a", "A-b_c.9", "x" * 64])
def test_id_of_trusted_proxy_is_accepted(start, given):
    server = start(plugins=["security"], top=TRUSTED)
    assert server.get("/", fields=[(ID, given)])[ID] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a,b", 'a"b', "a/b", "a\xe9", "a=b", "\t"])
def test_bad_id_of_trusted_proxy_is_replaced(start, given):
    server = start(plugins=["security"], top=TRUSTED)
    assert RANDOM.fullmatch(server.get("/", fields=[(ID, given)])[ID])


def test_id_of_client_is_replaced(start):
    assert RANDOM.fullmatch(start().get("/", fields=[(ID, "client-1")])[ID])
    server = start(plugins=["security"], top=TRUSTED.replace("127.0.0.1", "192.0.2.1"))
    assert RANDOM.fullmatch(server.get("/", fields=[(ID, "client-1")])[ID])


@pytest.mark.parametrize("second", ["one", "two", ""])
def test_several_ids_of_trusted_proxy_are_replaced(start, second):
    """A client may have added one of them."""
    server = start(plugins=["security"], top=TRUSTED)
    answer = server.get("/", fields=[(ID, "one"), ("x-request-id", second)])
    assert len(answer.all(ID)) == 1 and RANDOM.fullmatch(answer[ID])


def test_connections_with_proxy_header_are_clients(start):
    """The header of the PROXY protocol does not prove that a proxy has set the headers of the request."""
    server = start(plugins=["security"], top=TRUSTED + "    ProxyProtocol on\n")
    with server.connect() as c:
        c.send(b"PROXY TCP4 192.0.2.7 192.0.2.8 1000 80\r\nGET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: client-1\r\n\r\n")
        assert RANDOM.fullmatch(c.read()[ID])


def test_client_cannot_send_an_id_under_a_similar_name(start):
    with Backend() as backend:
        server = start(keys="RequestId on\n    TraceContext on", plugins=["proxy"],
                       sections=f"[ROUTES]\n    /* proxy http://{backend.address} underscores=on\n")
        body = b"1\r\nx\r\n0\r\n" + b"".join(b"%s: forged\r\n" % n for n in (b"X-Request-Id", b"x_request_id", b"Traceparent", b"TraceState", b"X-Sum"))
        reply = server.get("/", "POST", [("X_Request_Id", "forged"), ("X.Request.Id", "forged"), ("Transfer-Encoding", "chunked")], body + b"\r\n")
        (request,) = backend.requests
        assert "forged" not in str(request.fields) and request.all(ID) == [reply[ID]]
        assert request.trailers == [("X-Sum", "forged")]


def test_trailers_are_unchanged_without_context(start):
    with Backend() as backend:
        server = start(keys="RequestId off", plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n")
        server.get("/", "POST", [("Transfer-Encoding", "chunked")], b"0\r\nX-Request-Id: a\r\ntraceparent: b\r\n\r\n")
        assert backend.requests[0].trailers == [("X-Request-Id", "a"), ("traceparent", "b")]


@pytest.mark.parametrize("kind", ["proxy", "scgi"])
def test_rules_of_request_headers_replace_the_context(start, kind):
    rules = "[REQUEST_HEADERS]\n    Set X-Request-Id mine\n    Set traceparent own\n    Set tracestate b=2\n"
    with (Backend() if kind == "proxy" else Program()) as backend:
        address = f"http://{backend.address}" if kind == "proxy" else backend.address
        server = start(keys="RequestId on\n    TraceContext on", plugins=[kind, "headers"], sections=f"{rules}[ROUTES]\n    /* {kind} {address}\n")
        reply = server.get("/", fields=[(ID, "forged"), ("traceparent", "forged"), ("tracestate", "c=3")])
        assert RANDOM.fullmatch(reply[ID])
        (request,) = backend.requests
        if kind == "proxy":
            assert (request.all(ID), request.all("traceparent"), request.all("tracestate")) == (["mine"], ["own"], ["b=2"])
        else:
            assert [request[f"HTTP_{n}"] for n in ("X_REQUEST_ID", "TRACEPARENT", "TRACESTATE")] == ["mine", "own", "b=2"]


# ---- Responses ----

@every_protocol
@pytest.mark.parametrize("target, method, status", [("/none", "GET", 404), ("/", "DELETE", 405), ("/", "HEAD", 200)])
def test_error_responses_have_the_id(start, target, method, status):
    answer = start().get(target, method)
    assert answer.status == status and RANDOM.fullmatch(answer[ID])


def test_rejected_requests_have_an_id(start):
    server = start(plugins=["security"], top="[SECURITY]\n    Deny /*\n", server="AccessLog access.log\nAccessLogFormat json")
    answer = server.get("/")
    assert answer.status == 403 and RANDOM.fullmatch(answer[ID])
    assert json.loads(access_lines(server)[0])["request_id"] == answer[ID]


def test_rewritten_request_keeps_its_id(start, site):
    site.add("new.html", "new")
    server = start(plugins=["rewrite"], sections="[REWRITE]\n    Rewrite glob /old /new.html\n", server="AccessLog access.log")
    answer = server.get("/old")
    assert answer.text == "new" and len(answer.all(ID)) == 1
    assert access_lines(server)[0].endswith(f'" {answer[ID]}')


def test_each_host_decides(start, monkey, site):
    site.add("index.html", "hello")
    server = monkey(plugins=["tracing"], sections="""
        [TRACING]
            RequestId on
        [HOST]
            ServerName other.example
            DocumentRoot site
    """)
    assert ID in server.get("/", host="x") and ID not in server.get("/", host="other.example")


# ---- Backends ----

@every_protocol
def test_backend_receives_the_id(start, backend):
    server = start(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n")
    for fields in ([], [(ID, "client-1")], [(ID, "one"), (ID, "two")]):
        answer = server.get("/", fields=fields)
        assert answer.text == answer[ID] and RANDOM.fullmatch(answer.text)


def test_client_cannot_remove_the_id(start, backend):
    server = start(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n")
    with server.connect() as c:
        answer = c.get("/", fields=[("Connection", "x-request-id")])
        assert answer.text == answer[ID]


def test_response_of_backend_does_not_change_the_id(start):
    with Backend(lambda request: response("x", fields=[(ID, "backend-1"), ("Set-Cookie", "a=b")])) as backend:
        server = start(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n")
        answer = server.get("/")
        assert RANDOM.fullmatch(", ".join(answer.all(ID))) and answer["Set-Cookie"] == "a=b"


def test_scripts_receive_the_id(start, site):
    site.add("id.cgi", '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n$HTTP_X_REQUEST_ID"\n', mode=0o755)
    server = start(plugins=["cgi"], sections="[ROUTES]\n    *.cgi cgi\n    /* static\n")
    answer = server.get("/id.cgi", fields=[(ID, "client-1")])
    assert answer.text == answer[ID] and RANDOM.fullmatch(answer.text)


# ---- Logs ----

@pytest.mark.parametrize("form, pattern", [("combined", r'.*" ([0-9a-f]{32})'), ("json", r'\{.*"request_id":"([0-9a-f]{32})"\}'),
                                           ("short", r".* to 127\.0\.0\.1.*, request ([0-9a-f]{32})")])
def test_access_logs_contain_the_id(start, form, pattern):
    server = start(server=f"AccessLog access.log\nAccessLogFormat {form}")
    answer = server.get("/")
    assert re.fullmatch(pattern, access_lines(server)[0])[1] == answer[ID]


def test_requests_that_are_not_http_have_an_id_in_the_log(start):
    server = start(server="AccessLog access.log\nAccessLogFormat json")
    with server.connect() as c:
        c.send(b"\x01\x02 nonsense\r\n\r\n").read()
    assert json.loads(access_lines(server)[0])["status"] == 400


@pytest.mark.parametrize("form", ["text", "json"])
def test_messages_about_a_request_contain_the_id(start, form):
    with Backend() as backend:
        address = backend.address
    server = start(plugins=["proxy"], server=f"ErrorLogFormat {form}", sections=f"[ROUTES]\n    /* proxy http://{address}\n")
    answer = server.get("/" + "x" * 2000)
    assert answer.status == 502
    line = wait_until(lambda: next((line for line in server.log.splitlines() if "GET" in line and "refused" in line), None), "the message about the request")
    if form == "json":
        assert json.loads(line)["request_id"] == answer[ID]
    else:
        assert line.endswith(f" (request {answer[ID]})")


@pytest.mark.parametrize("level", ["info", "warn"])
def test_error_page_shows_the_id(start, level):
    server = start(server=f"LogLevel {level}", sections="[ROUTES]\n    /broken status 500\n    /* static\n")
    pages = [server.get("/broken") for _ in range(2)]
    for page in pages:
        assert re.search(rf"UTC, reference {page[ID]}</small>", page.text)
    if level == "info":
        server.err.wait_for(rf"GET /broken from 127\.0\.0\.1: status 500 \(request {pages[0][ID]}\)$")
    assert "reference" not in server.get("/none").text


@pytest.mark.skipif(not (services.OBJECTS / "monkey-isolate.so").exists() or not services.has("small"), reason="this build has no Duda")
def test_isolated_service_has_the_same_id(start, tmp_path):
    service = services.build(tmp_path, "ids", """
#include <duda.h>

static int show(struct duda_ctx *d)
{
    duda_log(d, MK_LOG_INFO, "shown");
    return duda_puts(d, duda_request_id(d).p);
}

DUDA_SERVICE(ids, DUDA_GET("/id", show, ""));
""")
    server = start(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n", sections="[ROUTES]\n    /* isolate ids\n")
    answer = server.get("/id", fields=[(ID, "client-1")])
    assert answer.text == answer[ID] and RANDOM.fullmatch(answer.text)
    server.err.wait_for(rf"shown \(request {answer.text}\)")


# ---- Traces ----

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
NEW = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0([01])")


@pytest.fixture
def traced(start):
    """`traced(keys)(fields)` returns the traceparent and tracestate that the backend receives."""
    with Backend(lambda request: response("|".join([",".join(request.all("traceparent")), ",".join(request.all("tracestate"))]))) as backend:
        def run(keys="TraceContext on", trusted=True, **how):
            plugins, top = (["proxy", "security"], TRUSTED) if trusted else (["proxy"], "")
            server = start(keys=keys, plugins=plugins, top=top, sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n", **how)
            return lambda fields=(): server.get("/", fields=fields).text.split("|")

        yield run


@every_protocol
def test_trace_of_trusted_proxy_is_passed_on(traced):
    ask = traced()
    for flags in ("00", "01", "02", "03"):
        assert ask([("traceparent", PARENT + flags), ("tracestate", "a=1, b=2"), ("tracestate", "c=3")]) == [PARENT + flags, "a=1,b=2,c=3"]


def test_undefined_flags_of_trace_are_cleared(traced):
    """W3C Trace Context Level 2 defines two flags, sampled and random; the others must be zero."""
    assert traced()([("traceparent", PARENT + "ff")])[0] == PARENT + "03"


@every_protocol
def test_trace_begins_here_for_clients(traced):
    ask = traced(trusted=False)
    for fields in ([], [("traceparent", PARENT + "01"), ("tracestate", "a=1")]):
        parent, state = ask(fields)
        assert NEW.fullmatch(parent) and not parent.startswith(PARENT) and state == ""
    assert len({ask()[0] for _ in range(20)}) == 20


@pytest.mark.parametrize("fields", [
    [("traceparent", PARENT + "0")], [("traceparent", PARENT + "01-x")], [("traceparent", "ff" + PARENT[2:] + "01")],
    [("traceparent", PARENT.upper() + "01")], [("traceparent", "00-" + "0" * 32 + "-b7ad6b7169203331-01")],
    [("traceparent", PARENT + "01"), ("traceparent", PARENT + "01")], [("traceparent", "x" * 4000)], [("traceparent", "")]])
def test_bad_traceparent_is_replaced(traced, fields):
    parent, state = traced()([*fields, ("tracestate", "a=1")])
    assert NEW.fullmatch(parent) and state == ""


@pytest.mark.parametrize("state, expected", [
    ("a", ""), ("a=1,a=2", ""), ("A=1", ""), (",".join(f"k{i}=1" for i in range(33)), ""), ("", ""), (" , a=1,", "a=1"),
    (",".join(f"k{i}=1" for i in range(32)), ",".join(f"k{i}=1" for i in range(32))), ("a=" + "x" * 257, ""),
    (",".join([f"k{i}=" + "x" * 97 for i in range(6)]), ",".join([f"k{i}=" + "x" * 97 for i in range(5)]))])
def test_tracestate_is_limited(traced, state, expected):
    assert traced()([("traceparent", PARENT + "01"), ("tracestate", state)]) == [PARENT + "01", expected]


def test_later_version_is_passed_on_as_version_00(traced):
    assert traced()([("traceparent", "cc" + PARENT[2:] + "01-more")])[0] == PARENT + "01"


@pytest.mark.parametrize("sample, low, high", [("0%", 0, 0), ("100%", 200, 200), ("50%", 50, 150)])
def test_share_of_new_traces_is_sampled(traced, sample, low, high):
    ask = traced(f"TraceContext on\n    Sample {sample}", trusted=False)
    assert low <= sum(int(NEW.fullmatch(ask()[0])[1]) for _ in range(200)) <= high


def test_decision_of_trusted_proxy_counts(traced):
    assert traced("TraceContext on\n    Sample 0%")([("traceparent", PARENT + "01")])[0] == PARENT + "01"


@pytest.mark.parametrize("value", ["1", "101%", "-1%", "0.00001%", "%", "1.%x", "100.1%", "x%"])
def test_bad_share_is_an_error(run, tmp_path, value):
    done = run("-t", "-c", write_config(tmp_path / "m.conf", plugins=["tracing"], top=f"[TRACING]\n    Sample {value}\n"))
    assert done.code == 3 and "a percentage, such as 1%" in done.err and "m.conf:" in done.err


def test_headers_are_unchanged_without_traces(traced):
    assert traced("RequestId on")([("traceparent", "anything"), ("tracestate", "A")]) == ["anything", "A"]


def test_trace_and_request_id_are_independent(traced, start):
    ask = traced("RequestId on\n    TraceContext on")
    assert ask([("traceparent", PARENT + "01")]) == [PARENT + "01", ""]


def test_trace_id_is_in_the_access_log(start):
    server = start(keys="TraceContext on", plugins=["logger", "security"], top=TRUSTED,
                   sections="[LOGGER]\n    AccessLog access.log\n    Format %{trace_id}x|%s\n")
    server.get("/", fields=[("traceparent", PARENT + "01")])
    assert access_lines(server) == ["0af7651916cd43dd8448eb211c80319c|200"]
