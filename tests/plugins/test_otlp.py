# SPDX-License-Identifier: Apache-2.0
"""The otlp plugin exports spans to a collector, and never delays requests."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
from email.utils import formatdate

import pytest

import services
from backend import Backend, response
from certificates import make_authority
from client import Closed
from http2_backend import Http2Backend, answer
from monkey import ENVIRONMENT, PROGRAM, PROTOCOLS, needs_processes
from otlp_collector import Collector
from proc import wait_until
from scgi_server import Program

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
INTERNAL, SERVER, CLIENT = 1, 2, 3
TRUSTED = "[SECURITY]\n    TrustedProxy 127.0.0.1\n"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collector():
    with Collector() as each:
        yield each


@pytest.fixture
def start(monkey, site, collector):
    """Starts a server whose plugin `metrics` is at /metrics."""
    site.add("index.html", "hello")

    def run(keys="Interval 50ms", endpoint=None, tracing="TraceContext on", plugins=(), top="", sections="", **how):
        endpoint = endpoint or f"http://{collector.address}"
        return monkey(plugins=["tracing", "otlp", "metrics", *plugins], sections=sections or routes(""),
                      top=f"{top}[TRACING]\n    {tracing}\n[OTLP]\n    Endpoint {endpoint}\n    {keys}\n", **how)

    return run


def routes(lines):
    return f"[ROUTES]\n    /metrics metrics\n{lines}    /* static\n"


def metric(server, name):
    found = re.search(rf"^monkey_otlp_spans_{name}_total (\d+)$", server.get("/metrics").text, re.MULTILINE)
    return int(found[1]) if found else 0


def spans_of(spans, path):
    return [each for each in spans if each.attributes.get("url.path") == path]


# ---- Spans ----

@every_protocol
def test_server_span_has_semantic_attributes(start, collector):
    server = start(keys="Interval 50ms\n    ServiceName shop")
    assert server.get("/index.html?secret=1", fields=[("User-Agent", "tester \xe9")]).status == 200
    [span] = collector.wait_for(1)
    attributes = span.attributes
    assert (span.name, span.kind, span.parent, span.failed, span.service) == ("GET", SERVER, "", False, "shop")
    assert attributes["http.request.method"] == "GET" and attributes["http.response.status_code"] == 200
    assert attributes["url.path"] == "/index.html" and attributes["url.scheme"] == ("https" if "tls" in server.protocol else "http")
    assert attributes["client.address"] == "127.0.0.1" and attributes["user_agent.original"] == "tester \xe9"
    assert attributes["network.protocol.version"] == ("2" if server.is_h2 else "1.1")
    assert "secret" not in str(span.message)


def test_parent_of_trusted_proxy_is_the_parent(start, collector):
    server = start(plugins=["security"], top=TRUSTED)
    server.get("/", fields=[("traceparent", PARENT), ("tracestate", "a=b")])
    [span] = collector.wait_for(1)
    assert span.trace == PARENT[3:35] and span.parent == PARENT[36:52] and span.message.trace_state == "a=b"
    server.get("/", fields=[("traceparent", PARENT[:-1] + "0")])
    server.get("/index.html")
    collector.wait_for(2)
    time.sleep(0.3)
    assert len(collector.spans) == 2, "the parent is not sampled"


def test_backend_span_is_below_the_attempt(start, collector):
    with Backend(lambda request: response(request.get("traceparent"))) as backend:
        server = start(plugins=["proxy"], sections=routes(f"    /api proxy http://{backend.address}\n"))
        parent = server.get("/api").text
    spans = {each.kind: each for each in collector.wait_for(2)}
    assert spans[CLIENT].parent == spans[SERVER].id and spans[SERVER].name == "GET /api"
    assert parent == f"00-{spans[CLIENT].trace}-{spans[CLIENT].id}-01"
    assert spans[CLIENT].trace == spans[SERVER].trace and spans[CLIENT].attributes["http.response.status_code"] == 200


@pytest.mark.parametrize("kind", ["http", "h2c", "scgi"])
def test_only_the_header_gets_the_attempt_as_parent(start, collector, kind):
    """A client may send the text of a traceparent elsewhere: what it sends arrives unchanged."""
    text = PARENT[:36] + "b" * 16 + "-01"
    target = f"/api/{text}/traceparent:%20{text}?{text}"
    headers = [("X-First", text), ("Cookie", f"traceparent: {text}; HTTP_TRACEPARENT{text}"), ("traceparent", PARENT)]
    with {"http": Backend, "h2c": Http2Backend, "scgi": Program}[kind]() as backend:
        server = start(plugins=["proxy", "scgi", "security"], top=TRUSTED,
                       sections=routes(f"    /api/* {'scgi' if kind == 'scgi' else 'proxy'} {kind + '://' if kind != 'scgi' else ''}{backend.address}\n"))
        assert server.get(target, fields=headers).status == 200
        request = backend.requests[-1]
    if kind == "scgi":
        got, name = request["REQUEST_URI"], lambda header: request[f"HTTP_{header.upper().replace('-', '_')}"]
    else:
        got, name = request.target, lambda header: [value for key, value in request.fields if key.lower() == header.lower()][-1]
    [span] = [each for each in collector.wait_for(2) if each.kind == CLIENT]
    assert got == target and name("X-First") == text and name("Cookie") == headers[1][1]
    assert name("traceparent") == f"{PARENT[:36]}{span.id}-01"


@pytest.mark.over("h1", why="HTTP/2 has no absolute form")
@pytest.mark.parametrize("method, target, path", [
    ("GET", "http://localhost/index.html?secret", "/index.html"), ("GET", "http://me:secret@localhost/", None), ("GET", "/a%20b?secret", "/a b"), ("CONNECT", "secret.example.org:443", None)])
def test_path_of_a_span_is_the_decoded_path(start, collector, method, target, path):
    server = start()
    with server.connect() as c:
        c.get(target, method)
    [span] = collector.wait_for(1)
    assert span.attributes.get("url.path") == path and "secret" not in str({**span.attributes, "server.address": ""})


@pytest.mark.parametrize("state, kept", [("a=" + "b" * 198, "a=" + "b" * 198), ("a=b," + "c=" + "d" * 250, "a=b"), ("a=" + "b" * 250, ""), (f"a={'b' * 198},c=d", "a=" + "b" * 198)])
def test_long_tracestate_loses_whole_members(start, collector, state, kept):
    server = start(plugins=["security"], top=TRUSTED)
    server.get("/", fields=[("traceparent", PARENT), ("tracestate", state)])
    [span] = collector.wait_for(1)
    assert span.message.trace_state == kept


def test_sample_of_none_exports_nothing(start, collector):
    server = start(tracing="TraceContext on\n    Sample 0%")
    for _ in range(20):
        server.get("/")
    time.sleep(0.5)
    assert not collector.requests and metric(server, "lost") == 0


def test_spans_of_several_workers_are_exported(start, collector):
    server = start(workers=4)
    for _ in range(200):
        server.get("/")
    assert len({each.id for each in collector.wait_for(200)}) == 200
    wait_until(lambda: metric(server, "exported") >= 200, "the metric")
    assert metric(server, "lost") == 0


# ---- Faults of the collector ----

def test_collector_that_is_down_gets_spans_later(start, collector):
    server = start()
    collector.backend.stop()
    server.get("/index.html")
    server.err.wait_for(r"\[warn\] \d+: otlp: cannot send spans to the collector http://\S+/v1/traces: .*; retrying")
    with Collector(at=collector.backend.at) as second:
        assert spans_of(second.wait_for(1), "/index.html")
        server.err.wait_for(r"otlp: the collector \S+ accepts spans again; monkey_otlp_spans_lost_total counts the lost ones")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_retryable_status_is_retried_after_delay(start, collector, status):
    times = []

    def reply(request):
        times.append(time.monotonic())
        return response("", status=f"{status} No", fields=[("Retry-After", "2")]) if len(times) == 1 else None

    collector.reply = reply
    server = start()
    server.get("/")
    assert collector.wait_for(1)
    assert 1.9 < times[1] - times[0] < 8 and collector.requests[0].body == collector.requests[1].body[:len(collector.requests[0].body)]
    server.err.wait_for(rf"otlp: the collector \S+ accepts no spans now: status {status}; retrying")


def test_retry_after_may_be_a_date(start, collector):
    times = []

    def reply(request):
        times.append(time.time())
        return response("", status="503 No", fields=[("Retry-After", formatdate(times[0] + 3, usegmt=True))]) if len(times) == 1 else None

    collector.reply = reply
    start().get("/")
    assert collector.wait_for(1) and 1.5 < times[1] - times[0] < 8


def test_unreliable_collector_does_not_fill_the_log(start, collector):
    """It accepts every second request, and rejects the others."""
    collector.reply = lambda request: response("no", status="400 No") if len(collector.requests) % 2 else None
    server = start(keys="Interval 10ms")
    for _ in range(30):
        server.get("/")
        time.sleep(0.05)
    wait_until(lambda: len(collector.requests) >= 8, "requests")
    assert 1 <= server.log.count("otlp: the collector") <= 4


def test_log_has_no_query_of_the_endpoint(start, collector):
    collector.reply = lambda request: response("no", status="503 No")
    server = start(endpoint=f"http://{collector.address}/v1/traces?api_key=secret")
    server.get("/")
    server.err.wait_for(rf"otlp: the collector http://{collector.address}/v1/traces accepts no spans now: status 503")
    assert "secret" not in server.log and collector.requests[0].target == "/v1/traces?api_key=secret"


@pytest.mark.parametrize("status", [302, 400, 401, 413, 500])
def test_other_status_loses_the_batch(start, collector, status):
    collector.reply = lambda request: response("bad\x1bone", status=f"{status} No", fields=[("Location", "/other")])
    server = start()
    server.get("/")
    server.err.wait_for(rf"otlp: the collector \S+ rejects spans, which are lost: status {status}: bad one")
    wait_until(lambda: metric(server, "lost") >= 1, "the lost span")
    assert all(each.target == "/v1/traces" for each in collector.requests)


def test_partial_success_counts_rejected_spans(start, collector):
    collector.reply = lambda request: response('{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "no"}}')
    server = start(keys="Interval 500ms")
    for _ in range(3):
        server.get("/")
    wait_until(lambda: metric(server, "lost") >= 1 and metric(server, "exported") >= 2, "the counters")


def test_huge_reply_ends_early(start, collector):
    def endless(request):
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n"
        for _ in range(1000):
            yield b"x" * 65536

    collector.reply = endless
    server = start()
    server.get("/")
    wait_until(lambda: metric(server, "exported") >= 1, "the exported span")


def test_slow_collector_times_out_and_delays_no_request(start, collector):
    def slow(request):
        if len(collector.requests) == 1:
            time.sleep(3)
        return None

    collector.reply = slow
    server = start(keys="Interval 50ms\n    Timeout 300ms")
    server.get("/index.html")
    server.err.wait_for(r"otlp: cannot send spans to the collector .*; retrying")
    began = time.monotonic()
    for _ in range(20):
        server.get("/")
    assert time.monotonic() - began < 10


def test_full_queue_counts_lost_spans(start, collector):
    collector.reply = lambda request: response("", status="503 No", fields=[("Retry-After", "600")])
    server = start(keys="Interval 50ms\n    QueueSize 1")
    for _ in range(1200):
        assert server.get("/").status == 200
    wait_until(lambda: metric(server, "lost") >= 50, "lost spans")


# ---- Processes ----

def helper_of(server):
    needs_processes("the plugin's subprocess belongs to the whole program")

    def find():
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if os.readlink(f"/proc/{pid}/exe").endswith("/monkey-otlp") and server.mark in f.read():
                        return int(pid)
            except OSError:
                continue
        return None

    return wait_until(find, "the helper process")


def test_killed_helper_restarts(start, collector):
    server = start()
    server.mark = collector.address.encode()
    server.allow(r"monkey-otlp was killed by signal 9")
    old = helper_of(server)
    os.kill(old, signal.SIGKILL)
    server.err.wait_for(r"otlp: \S+/monkey-otlp was killed by signal 9 \(Killed\); restarting it")
    server.get("/index.html")
    assert spans_of(collector.wait_for(1), "/index.html")


def spawners_of(server):
    def name(pid):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{pid}/comm").read_text()
        return ""
    return [worker for worker in server.workers for pid in children_of(worker) if "spawner" in name(pid)]


def children_of(pid):
    return [int(each) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()]


def test_only_the_first_worker_can_start_programs(start, collector):
    server = start(workers=4)
    server.mark = collector.address.encode()
    assert spawners_of(server) == [parent_of(parent_of(helper_of(server)))]


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(") ", 1)[1].split()[1])


@pytest.mark.over("h1", why="each connection has one worker")
@pytest.mark.parametrize("has_helper", [False, True])
def test_killed_worker_loses_no_span_of_others(start, collector, has_helper):
    """Spans of other workers, from before and after the death, reach the collector: those from before are in the queue of the
    helper, or exported if the helper dies with its worker."""
    server = start(workers=4, keys="Interval 50ms" if has_helper else "Interval 1s")
    server.mark = collector.address.encode()
    server.allow(r"worker .*")
    helper = helper_of(server)
    its_worker = parent_of(parent_of(helper))
    assert its_worker in server.workers
    connections, n = [server.connect() for _ in range(24)], 0
    for c in connections:
        assert c.get("/index.html?before").status == 200
        assert c.get("/none").status == 404  # the worker reads this request after it has recorded the span before
    if has_helper:
        collector.wait_for(2 * len(connections))
    os.kill(its_worker if has_helper else next(pid for pid in server.workers if pid != its_worker), signal.SIGKILL)
    if has_helper:
        wait_until(lambda: not os.path.exists(f"/proc/{helper}"), "the end of the helper")
    for c in connections:
        with contextlib.suppress(ConnectionError, Closed, AssertionError):
            n += c.get("/index.html?after").status == 200
    assert 0 < n < len(connections), "other workers and the dead one had connections"
    wait_until(lambda: len({each.id for each in spans_of(collector.spans, "/index.html")}) == len(connections) + n, "all spans")
    assert metric(server, "lost") == 0


def test_reload_changes_the_endpoint(start, collector):
    server = start(keys="Interval 60s")
    server.mark = collector.address.encode()
    helper_of(server)
    server.get("/index.html?1")
    time.sleep(1)
    with Collector() as second:
        text = server.config.read_text()
        server.config.write_text(text.replace(collector.address, second.address).replace("Interval 60s", "Interval 50ms"))
        server.tell(signal.SIGHUP)
        assert spans_of(collector.wait_for(1), "/index.html"), "the first helper exports its spans before it exits"
        server.err.wait_for("the new configuration serves")
        wait_until(lambda: server.get("/index.html") and spans_of(list(second.spans), "/index.html"), "a span at the second endpoint")


def test_stop_exports_the_rest(start, collector):
    server = start(keys="Interval 60s")
    server.get("/index.html")
    time.sleep(1)
    server.stop()
    assert spans_of(collector.wait_for(1), "/index.html")

# ---- Backends ----

def test_backend_over_http2_gets_the_attempt_as_parent(start, collector):
    with Http2Backend(lambda request: answer(request.get("traceparent"))) as backend:
        server = start(plugins=["proxy"], sections=routes(f"    /api proxy h2c://{backend.address}\n"))
        parents = [server.get("/api").text for _ in range(2)]
    spans = collector.wait_for(4)
    clients = {f"00-{each.trace}-{each.id}-01" for each in spans if each.kind == CLIENT}
    assert clients == set(parents)


def test_failed_attempt_and_retry_have_spans_of_their_own(start, collector):
    with Backend(lambda request: response(request.get("traceparent"))) as backend, Backend() as dead:
        dead.stop()
        group = f"[UPSTREAM]\n    Name app\n    Server {dead.address}\n    Server {backend.address} backup\n"
        server = start(plugins=["proxy"], top=group, sections=routes("    /api proxy http://app\n"))
        server.allow("app")
        parent = server.get("/api").text
    [request] = spans_of(collector.wait_for(3), "/api")
    first, second = sorted((each for each in collector.spans if each.kind == CLIENT), key=lambda each: each.message.start_time_unix_nano)
    assert first.failed and first.attributes["error.type"] == "ECONNREFUSED" and "http.request.resend_count" not in first.attributes
    assert not second.failed and second.attributes["http.request.resend_count"] == 1 and parent[36:52] == second.id
    assert {first.parent, second.parent} == {request.id} and not request.failed


def test_errors_fail_the_span(start, collector):
    with Backend() as dead:
        dead.stop()
        server = start(plugins=["proxy"], sections=routes(f"    /api proxy http://{dead.address}\n"))
        server.allow("proxy|upstream|127.0.0.1")
        assert server.get("/api").status == 502 and server.get("/absent").status == 404
    wait_until(lambda: spans_of(collector.spans, "/api") and spans_of(collector.spans, "/absent"), "both spans")
    [failed], [absent] = spans_of(collector.spans, "/api"), spans_of(collector.spans, "/absent")
    assert failed.failed and failed.attributes["error.type"] == "502"
    assert not absent.failed and absent.attributes["http.response.status_code"] == 404 and absent.name == "GET"


def test_client_cannot_start_a_sampled_trace(start, collector):
    server = start(tracing="TraceContext on\n    Sample 0%", plugins=["security"], top="[SECURITY]\n    TrustedProxy 127.0.0.2\n")
    server.get("/", fields=[("traceparent", PARENT)])
    with server.connect(source="127.0.0.2") as c:
        c.get("/", fields=[("traceparent", PARENT)])
    [span] = collector.wait_for(1)
    time.sleep(0.3)
    assert len(collector.spans) == 1 and span.trace == PARENT[3:35] and span.parent == PARENT[36:52]


# ---- Services ----

SOURCE = r"""
#define DUDA_USE "duda-http"
#include <duda.h>
#include <duda/http.h>
#include <errno.h>

static int price(struct duda_ctx *d)
{
    struct duda_http_response r;
    struct mk_span *outer = duda_span_begin(d, "outer"), *inner = duda_span_begin(d, "inner");
    duda_span_add_text(d, inner, "shop.item", MK_STR("a\"b"));
    duda_span_add_int(d, inner, "shop.items", -3);
    for (int i = 0; i < 2 * DUDA_SPAN_ATTRIBUTES_MAX; i++)
        duda_span_add_int(d, inner, "shop.more", i);
    const struct duda_http_request rate = {.target = MK_STR("/rate")};
    int e = duda_http_fetch(d, duda_http_find(d, NULL), &rate, &r);
    duda_span_fail(d, inner, MK_STR("no price"));
    duda_span_end(d, outer);
    duda_span_end(d, outer);
    duda_span_add_int(d, duda_span_begin(d, "open"), "n", 1);
    return e ? e : duda_write(d, r.body);
}

static int many(struct duda_ctx *d)
{
    for (int i = 0; i < 2 * MK_SPANS_MAX; i++)
        duda_span_end(d, duda_span_begin(d, "one"));
    return duda_printf(d, "%s", duda_span_current(d) ? "recorded" : "not");
}

static int parent(struct duda_ctx *d)
{
    return duda_write(d, duda_header(d, "traceparent"));
}

static int fail(struct duda_ctx *d)
{
    (void)d;
    return -ENOENT;
}

DUDA_SERVICE(shop, DUDA_GET("/price/:id", price, ""), DUDA_GET("/many", many, ""), DUDA_GET("/parent", parent, ""),
             DUDA_GET("/fail", fail, ""));
"""
needs_duda = pytest.mark.skipif(not services.has("http"), reason="this build has no Duda")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    folder.chmod(0o755)
    return services.build(folder, "shop", SOURCE, packages=["http"])


@needs_duda
@every_protocol
def test_service_has_spans_of_handler_and_client(start, collector, shop):
    with Backend(lambda request: response(request.get("traceparent"), status="404 No")) as backend:
        server = start(plugins=[shop], top=f"[HTTP_CLIENT]\n    Server {backend.address}\n", sections=routes("    /shop/* shop\n"))
        parent = server.get("/shop/price/7").text
    spans = {each.name: each for each in collector.wait_for(6)}
    request, handler, outer, inner = (spans[name] for name in ("GET /shop/price/:id", "price", "outer", "inner"))
    assert request.kind == SERVER and handler.kind == INTERNAL and handler.attributes["http.route"] == "/shop/price/:id"
    assert (handler.parent, outer.parent, inner.parent) == (request.id, handler.id, outer.id)
    assert inner.failed and inner.message.status.message == "no price" and len(inner.message.attributes) <= 32
    assert spans["open"].parent == handler.id and not outer.failed
    client = spans["GET"]
    assert client.kind == CLIENT and client.parent == inner.id and client.failed and client.attributes["http.response.status_code"] == 404
    assert [f'{client.attributes["server.address"]}:{client.attributes["server.port"]}'] == [backend.address]
    assert client.attributes["error.type"] == "404" and parent == f"00-{client.trace}-{client.id}-01"
    assert len({each.trace for each in spans.values()}) == 1
    assert all(request.message.start_time_unix_nano <= each.message.start_time_unix_nano and
               each.message.end_time_unix_nano <= request.message.end_time_unix_nano + 10 ** 6 for each in spans.values())


@needs_duda
def test_service_without_sampled_trace_has_no_spans(start, collector, shop):
    server = start(tracing="TraceContext on\n    Sample 0%", plugins=[shop], sections=routes("    /shop/* shop\n"))
    assert server.get("/shop/many").text == "not"


@needs_duda
def test_too_many_spans_of_a_request_are_lost_and_counted(start, collector, shop):
    server = start(plugins=[shop], sections=routes("    /shop/* shop\n"))
    assert server.get("/shop/many").text == "recorded"
    wait_until(lambda: metric(server, "lost") == 129, "the lost spans")
    assert sum(each.name == "one" for each in collector.wait_for(129)) == 127


@needs_duda
def test_failed_handler_fails_its_span(start, collector, shop):
    server = start(plugins=[shop], sections=routes("    /shop/* shop\n"))
    server.get("/shop/fail")
    spans = {each.name: each for each in collector.wait_for(2)}
    assert spans["fail"].failed and spans["fail"].message.status.message == "No such file or directory"


@needs_duda
def test_isolated_service_gets_the_attempt_as_parent(start, collector, shop):
    needs_processes("isolate starts processes")
    server = start(plugins=["isolate"], top=f"[ISOLATE]\n    Service {shop}\n", sections=routes("    /shop/* isolate shop\n"))
    parent = wait_until(lambda: (got := server.get("/shop/parent")).status == 200 and got, "the group").text
    wait_until(lambda: f"00-{parent[3:35]}" and any(each.id == parent[36:52] and each.kind == CLIENT for each in collector.spans), "the span")


# ---- Further faults of the collector ----

def test_frozen_collector_gets_spans_later(start, collector):
    release = threading.Event()

    def freeze(request):
        if not release.is_set():
            release.wait(20)
            return response("", status="503 No")
        return None

    collector.reply = freeze
    server = start(keys="Interval 50ms\n    Timeout 300ms")
    for _ in range(50):
        assert server.get("/").status == 200
    server.err.wait_for(r"otlp: cannot send spans to the collector .*; retrying")
    release.set()
    assert len({each.id for each in collector.wait_for(50)}) == 50


@pytest.mark.parametrize("garbage", [b"\0\xff\x1b[31m garbage\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"])
def test_garbage_of_the_collector_is_an_error(start, collector, garbage):
    def script(connection):
        connection.recv(65536)
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_RDWR)

    with Backend(script=script) as broken:
        server = start(endpoint=f"http://{broken.address}")
        server.get("/")
        line = server.err.wait_for(r"otlp: cannot send spans to the collector (.*); retrying")[1]
    assert line.isprintable() and server.get("/").status == 200


# ---- Further reloads and upgrades ----

def test_reload_adds_and_removes_the_plugin(monkey, site, collector):
    needs_processes("the plugin's subprocess belongs to the whole program")
    site.add("index.html", "hello")
    section = f"[OTLP]\n    Endpoint http://{collector.address}\n    Interval 50ms\n"
    server = monkey(plugins=["tracing"], top="[TRACING]\n    TraceContext on\n")
    without = server.config.read_text()
    server.get("/index.html?before")
    server.config.write_text(without.replace("[TRACING]", f"[PLUGINS]\n    Load otlp\n{section}[TRACING]"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("reloaded|serves with")
    wait_until(lambda: server.get("/index.html").status == 200 and spans_of(collector.spans, "/index.html"), "a span")
    server.config.write_text(without)
    server.tell(signal.SIGHUP)
    time.sleep(2)
    n = len(collector.spans)
    server.get("/index.html")
    time.sleep(1)
    assert len(collector.spans) == n


def test_upgrade_loses_no_span(start, collector, watch):
    needs_processes("the program is upgraded")
    server = start(keys="Interval 300ms")
    for _ in range(20):
        server.get("/index.html")
    collector.wait_for(1)  # the helper runs
    server.tell(signal.SIGUSR2)
    watch(int(server.err.wait_for(r"the new program is process (\d+)")[1]))
    for _ in range(20):
        server.get("/index.html")
    wait_until(lambda: len({each.id for each in spans_of(collector.spans, "/index.html")}) == 40, "all spans")


# ---- Configuration ----

@pytest.mark.parametrize("keys, message", [
    ("Endpoint ftp://127.0.0.1/", "Endpoint"), ("Endpoint http://", "Endpoint"), ("Endpoint http://a:0/", "Endpoint"),
    ("Endpoint http://u:p@a/", "Endpoint"), ("Endpoint http://a/ b", "Endpoint"),
    ("Endpoint http://a\n    Header Host x", "the plugin sets this header itself"), ("Endpoint http://a\n    Header x", "Header"),
    ("Endpoint http://a\n    QueueSize 0", "QueueSize"), ("Endpoint http://a\n    Certificate /none", "/none cannot be used: No such file"),
    ("Endpoint http://a\n    Certificate /dev/null", "it contains no certificate"),
    ("Endpoint http://a" + "".join(f"\n    Header X-{i} {'v' * 4000}" for i in range(9)), "the headers are more than"),
 ("Interval 1s", "Endpoint"), ("Endpiont http://a", "Endpoint"),
])
def test_bad_configuration_is_rejected(monkey, site, keys, message):
    server = monkey(plugins=["otlp"], top=f"[OTLP]\n    {keys}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert message in server.err.text


def test_headers_and_path_are_sent(start, collector):
    server = start(endpoint=f"http://{collector.address}/custom/path", keys="Interval 50ms\n    Header Authorization Bearer a b")
    server.get("/")
    collector.wait_for(1)
    [request, *_] = collector.requests
    assert request.target == "/custom/path" and request.get("Authorization") == "Bearer a b"
    assert request.get("Content-Type") == "application/json" and request.method == "POST"


def test_printed_configuration_has_no_credentials(run, site, tmp_path):
    config = tmp_path / "monkey.conf"
    config.write_text(f"[PLUGINS]\n    Load otlp\n[OTLP]\n    Endpoint http://127.0.0.1:1/?api_key=secret\n    Header Authorization Bearer ${{OTLP_TOKEN}}\n"
                      f"[HOST]\n    DocumentRoot {site}\n")
    done = run("-c", config, "-T", environment={"OTLP_TOKEN": "secret"})
    assert done.code == 0 and "Authorization (hidden)" in done.out and "http://127.0.0.1:1/?(hidden)" in done.out
    assert "secret" not in done.out


# ---- TLS ----

def tls_collector(pair):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return Collector(context=context)


def test_collector_with_tls_gets_spans(start, tmp_path):
    authority = make_authority(tmp_path)
    with tls_collector(authority.issue(["127.0.0.1"])) as tls:
        server = start(endpoint=f"https://{tls.address}", keys=f"Interval 50ms\n    Certificate {authority.file}")
        server.get("/index.html")
        assert spans_of(tls.wait_for(1), "/index.html")


@pytest.mark.parametrize("fault", ["name", "expired", "authority"])
def test_collector_with_bad_certificate_gets_nothing(start, tmp_path, fault):
    (tmp_path / "other").mkdir()
    authority, other = make_authority(tmp_path), make_authority(tmp_path / "other", "other")
    pair = authority.issue(["other.example.org" if fault == "name" else "127.0.0.1"], days=-1 if fault == "expired" else 90)
    with tls_collector(pair) as tls:
        trusted = other if fault == "authority" else authority
        server = start(endpoint=f"https://{tls.address}", keys=f"Interval 50ms\n    Certificate {trusted.file}")
        server.get("/index.html")
        server.err.wait_for(r"otlp: cannot send spans to the collector https://\S+: .*; retrying")
        assert not tls.requests and metric(server, "exported") == 0


def test_proxy_variable_is_used(start, collector, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://{collector.address}")
    server = start(endpoint="http://collector.example.org/v1/traces")
    server.get("/index.html")
    assert spans_of(collector.wait_for(1), "/index.html")
    assert collector.requests[0].target == "http://collector.example.org/v1/traces"


# ---- The program monkey-otlp ----

class Helper:
    """The program without the server. Its reports are lines of `output`."""

    def __init__(self, address, **environment):
        program = PROGRAM.parent / "plugins/monkey-otlp"
        if not program.exists():
            pytest.skip("monkey-otlp is not built")
        read_end, self.input = os.pipe()
        self.process = subprocess.Popen([program], stdin=read_end, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={
            **os.environ, **ENVIRONMENT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://{address}/v1/traces", **environment})
        os.close(read_end)
        self.output = []
        threading.Thread(target=lambda: self.output.extend(self.process.stdout), daemon=True).start()

    def write(self, path):
        items = b"".join(struct.pack("<BBH", kind, len(name), len(value)) + name + value for kind, name, value in ((1, b"", b"GET"), (4, b"url.path", path)))
        record = os.urandom(24) + bytes(8) + struct.pack("<QQBBB", 1, 2, 2, 0, 0) + bytes(11) + struct.pack("<H", len(items)) + items
        os.write(self.input, record.ljust(1024, b"\0"))

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            return sum(map(int, f.read().rsplit(") ", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.input)


def test_batch_without_memory_does_not_end_the_export(collector):
    """The first batch of 512 spans needs more than a megabyte, because its paths consist of characters to escape."""
    with Helper(collector.address, OTEL_BSP_SCHEDULE_DELAY="2000",
                ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":allocator_may_return_null=1:max_allocation_size_mb=3") as helper:
        for _ in range(512):
            helper.write(b"/" + b"\x01" * 850)
        wait_until(lambda: any("no memory for a request" in line for line in helper.output), "the lost batch")
        helper.write(b"/next")
        assert spans_of(collector.wait_for(1), "/next")


def test_second_signal_does_not_make_the_helper_spin():
    with Helper("127.0.0.1:1") as helper:
        helper.write(b"/")
        wait_until(lambda: any("retrying" in line for line in helper.output) or helper.process.poll(), "an attempt")
        for _ in range(2):
            helper.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
        before = helper.cpu_s()
        time.sleep(1)
        assert helper.cpu_s() - before < 0.3
        assert helper.process.wait(10) == 0
