# SPDX-License-Identifier: Apache-2.0
"""WebSockets of services, with blocking calls and with callbacks, and topics that reach all workers."""
import contextlib
import errno
import socket

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import services
from proc import RELEASE, memory_kb

OPTIMIZED = RELEASE.parent / "plugins"

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>
#include <stdlib.h>

static int echo(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_websocket_send(d, s, m.kind, m.data);
    duda_log(d, MK_LOG_WARN, "echo ended: %d", e);
    return e;
}

static int slowly(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        if (!(e = duda_sleep(d, 1)))
            e = duda_websocket_send(d, s, m.kind, m.data);
    return e;
}

static int ticks(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    for (int i = 0; i < 3 && !e; i++) {
        e = duda_sleep(d, 10);
        if (!e)
            e = duda_websocket_printf(d, s, "tick %d", i);
    }
    return e;
}

static int early(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    return e ? e : duda_websocket_send(d, s, MK_WEBSOCKET_TEXT, MK_STR("bye"));
}

static int ends(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    return e ? e : atoi(duda_query_or(d, "with", "0"));
}

static int late(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    return e ? e : duda_sleep(d, 3600000);
}

static int closes(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    if (!e)
        duda_websocket_close(s, 4001, MK_STR("full"));
    return e ? e : -EIO;
}

static int crash(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    if (!e && !(e = duda_sleep(d, 20)))
        abort();
    return e;
}

static int patient(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    if (!e)
        e = duda_sleep(d, 3600000);
    duda_log(d, MK_LOG_WARN, "patient ended: %d", e == -ECANCELED);
    return e;
}

static int flood(struct duda_ctx *d)
{
    static char much[60000];
    struct duda_websocket *s;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    for (int i = 0; i < 200 && !e; i++)
        e = duda_websocket_send(d, s, MK_WEBSOCKET_BINARY, mk_str_of(much, sizeof much));
    return e;
}

DUDA_TOPIC(lobby_topic, "lobby", .counts_subscribers = true);

static void on_message(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data, void *ctx)
{
    (void)ctx;
    if (mk_str_eq(data, MK_STR("leave")))
        duda_topic_detach(s, &lobby_topic);
    else
        duda_websocket_try_send(s, kind, data);
}

static void on_close(struct duda_websocket *s, unsigned code, void *ctx)
{
    (void)s;
    mk_worker_log(ctx, MK_LOG_WARN, "callback closed %u", code);
}

static const struct duda_websocket_options lobby_options = {
    .on_message = on_message, .on_close = on_close, .queue_max = 100000, .origins = "https://fine.example same"};

static int lobby(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, &lobby_options, duda_worker(d), &s);
    if (!e)
        e = duda_topic_attach(s, &lobby_topic);
    return e ? e : duda_websocket_try_send(s, MK_WEBSOCKET_TEXT, MK_STR("joined"));
}

static int quiet(struct duda_ctx *d)
{
    static const struct duda_websocket_options options = {.on_message = on_message};
    struct duda_websocket *s;
    mk_str name = duda_sprintf(d, "%s", duda_query_or(d, "name", "nobody"));
    return name.p ? duda_websocket_open(d, &options, NULL, &s) : -ENOMEM;
}

static int say(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_read_all(d, 100000, &text);
    if (!e)
        e = duda_topic_publish(d, &lobby_topic, text);
    uint64_t n = 0;
    e = e ? e : duda_topic_subscribers(d, &lobby_topic, &n);
    return e ? e : duda_printf(d, "%zu", (size_t)n);
}

static int stream(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_topic_subscribe(d, &lobby_topic);
    if (!e)
        e = duda_sse_send(d, NULL);
    size_t mark = duda_arena_mark(d);
    while (!e && !(e = duda_topic_receive(d, MK_FOREVER, &text))) {
        e = duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("message"), .data = text});
        duda_arena_rewind(d, mark);
    }
    return e;
}

DUDA_SERVICE(sockets,
    DUDA_GET("/echo", echo, ""), DUDA_GET("/slowly", slowly, ""), DUDA_GET("/ticks", ticks, ""), DUDA_GET("/early", early, ""),
    DUDA_GET("/ends", ends, ""), DUDA_GET("/late", late, "", .deadline_ms = 50), DUDA_GET("/closes", closes, ""), DUDA_GET("/crash", crash, ""),
    DUDA_GET("/patient", patient, ""), DUDA_GET("/flood", flood, ""), DUDA_GET("/lobby", lobby, ""), DUDA_GET("/quiet", quiet, ""),
    DUDA_POST("/say", say, ""), DUDA_GET("/stream", stream, ""));
"""


def prepare(monkey, site):
    monkey(plugins=[services.build(site.path.parent, "sockets", SOURCE)], workers=2)


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def open_websocket(server, path, **how):
    return connect(server.url.replace("http", "ws", 1) + path, proxy=None, compression=None, open_timeout=30, **how)


@pytest.mark.parametrize("protocol", ["h1", "h1-tls"], indirect=True)
def test_websocket_messages_are_echoed(server, protocol):
    how = {"ssl": server.encryption.context("http/1.1")} if protocol == "h1-tls" else {}
    with open_websocket(server, "/echo", **how) as ws:
        for message in ("hello", b"\0\1", "", "x" * 200_000, *(f"number {i}" for i in range(100))):
            ws.send(message)
            assert ws.recv(30) == message
    server.err.wait_for("echo ended: 0")


@pytest.mark.parametrize("path, n", [("/echo", 500), ("/slowly", 10)])
def test_websocket_messages_are_queued_for_a_slow_handler(server, path, n):
    with open_websocket(server, path) as ws:
        for i in range(n):
            ws.send(f"{i}")
        assert [ws.recv(30) for _ in range(n)] == [f"{i}" for i in range(n)]


def test_websocket_message_during_a_wait_is_received(server):
    with open_websocket(server, "/slowly") as ws:
        for i in range(5):
            ws.send(f"{i}")
            assert ws.recv(30) == f"{i}"


def test_websocket_handler_sends_on_a_timer(server):
    with open_websocket(server, "/ticks") as ws:
        assert [ws.recv(30) for _ in range(3)] == ["tick 0", "tick 1", "tick 2"]
        with pytest.raises(ConnectionClosed):
            ws.recv(30)
        assert ws.close_code == 1000


def test_websocket_is_closed_when_its_handler_returns(server):
    with open_websocket(server, "/early") as ws:
        assert ws.recv(30) == "bye"
        with pytest.raises(ConnectionClosed):
            ws.recv(30)


@pytest.mark.parametrize("path, code", [
    ("/ends?with=0", 1000), ("/ends?with=200", 1000), ("/ends?with=399", 1000), ("/ends?with=404", 1011), ("/ends?with=500", 1011),
    (f"/ends?with={-errno.EIO}", 1011), (f"/ends?with={-errno.ENOENT}", 1011), (f"/ends?with={-errno.ECANCELED}", 1001),
    ("/ends?with=1", 1011), ("/ends?with=1000", 1011), ("/ends?with=1001", 1011), ("/late", 1011), ("/closes", 4001), ("/crash", 1006)])
def test_websocket_close_code_tells_whether_the_handler_failed(monkey, tmp_path, path, code):
    server = monkey(plugins=[services.build(tmp_path, "sockets", SOURCE)])
    server.allow("answered -", "which is neither 0", "Sanitizer", "SIGABRT", "was killed by signal", "exited unexpectedly", "crashed with", "terminated its worker")
    with open_websocket(server, path) as ws:
        with pytest.raises(ConnectionClosed):
            ws.recv(30)
        assert ws.close_code == code


def test_websocket_disconnect_cancels_waits(server):
    with open_websocket(server, "/patient") as ws:
        ws.socket.shutdown(socket.SHUT_RDWR)
    server.err.wait_for("patient ended: 1")


def test_websocket_slow_client_suspends_the_handler(server):
    with open_websocket(server, "/flood", max_size=None, max_queue=1) as ws:
        assert sum(len(ws.recv(30)) for _ in range(200)) == 200 * 60000


def test_websocket_route_rejects_other_requests(server):
    assert server.get("/echo").status == 426
    with pytest.raises(InvalidStatus) as refused:
        open_websocket(server, "/lobby", origin="https://evil.example")
    assert refused.value.response.status_code == 403


def test_websocket_cross_origin_request_is_rejected(server):
    """Cross-origin requests carry the user's cookies, so they are rejected unless the route allows them."""
    for origin in ("https://evil.example", "null", server.url.replace("http:", "ftp:"), server.url + "1", server.url[5:]):
        with pytest.raises(InvalidStatus) as refused:
            open_websocket(server, "/echo", origin=origin)
        assert refused.value.response.status_code == 403, origin
    for scheme in ("http:", "https:"):  # both schemes, because a proxy may terminate TLS
        with open_websocket(server, "/echo", origin=server.url.replace("http:", scheme)) as ws:
            ws.send("ours")
            assert ws.recv(30) == "ours"


def publish(server, text):
    return server.get("/say", method="POST", body=text.encode())


def test_websocket_topic_reaches_all_workers(server):
    with contextlib.ExitStack() as kept, server.connect() as stream:
        sockets = [kept.enter_context(open_websocket(server, "/lobby")) for _ in range(8)]
        stream.ask("/stream")
        stream.read_head()
        stream.read_until(b":\n\n")
        for ws in sockets:
            assert ws.recv(30) == "joined"
        for _ in range(4):
            assert publish(server, "to all").status == 200
        for ws in sockets:
            assert [ws.recv(30) for _ in range(4)] == ["to all"] * 4
        for _ in range(4):
            stream.read_until(b"event: message\ndata: to all\n\n")
        sockets[0].send("leave")
        sockets[0].send("after")
        assert sockets[0].recv(30) == "after"
        assert publish(server, "again").status == 200
        assert sockets[1].recv(30) == "again"
        sockets[0].send("still")
        assert sockets[0].recv(30) == "still"
        assert publish(server, "x" * 40_000).status == 413
    server.err.wait_for("callback closed 1000", count=8)


def test_websocket_subscriber_that_reads_nothing_is_closed(monkey, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "sockets", SOURCE)])
    slow = socket.create_connection(("127.0.0.1", server.port))
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.sendall(b"GET /lobby HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
    with open_websocket(server, "/lobby") as quick:
        assert quick.recv(30) == "joined"
        while int(publish(server, "y" * 30_000).text) > 1:
            assert quick.recv(30) == "y" * 30_000
    server.err.wait_for("callback closed 1006")
    slow.close()


def test_open_websockets_do_not_delay_the_stop(monkey, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "sockets", SOURCE)])
    with open_websocket(server, "/echo") as first, open_websocket(server, "/lobby") as second, open_websocket(server, "/patient"):
        first.send("x")
        assert first.recv(30) == "x" and second.recv(30) == "joined"
        server.stop()


@pytest.mark.skipif(not (OPTIMIZED / "monkey-duda.so").exists(), reason="the optimized Duda is not built")
def test_idle_callback_websocket_needs_two_kilobytes(monkey, tmp_path):
    """The handler's memory is freed when the handler returns, and all sockets share their common data."""
    server = monkey(plugins=[services.build(tmp_path, "sockets", SOURCE, objects=OPTIMIZED)], program=RELEASE, workers=1,
                    server="MaxConnections 2000")
    head = (b"GET /quiet?name=%s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n" % (b"n" * 50))
    with contextlib.ExitStack() as kept:
        def open_some(n):
            for _ in range(n):
                client = kept.enter_context(server.connect())
                client.send(head)
                assert client.read_head().status == 101

        open_some(50)
        before = memory_kb(server.workers[0])
        open_some(600)
        each = (memory_kb(server.workers[0]) - before) * 1024 / 600
        assert each < 2300, f"{each:.0f} bytes"
