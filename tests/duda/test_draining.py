# SPDX-License-Identifier: Apache-2.0
"""A draining worker ends the event streams and WebSocket connections of services immediately, so that an open browser tab
does not keep the worker alive. Other handlers are notified of the drain if they request it."""
import re
import signal

import pytest

import services
from monkey import PROTOCOLS
from proc import wait_until
from wsframes import CLOSE, FIN, Peer, frame

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("the test reloads the server")]

SOURCE = r"""
#define _GNU_SOURCE /* pipe2() */
#include <duda.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

DUDA_TOPIC(news, "news");

/* Waits for messages until the drain cancels the handler. Nothing more may be sent afterwards. */
static int listening(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_topic_subscribe(d, &news);
    e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("ready"), .data = MK_STR("yes")});
    while (!e) {
        e = duda_topic_receive(d, MK_FOREVER, &text);
        e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("news"), .data = text});
    }
    duda_log(d, MK_LOG_WARN, "listening ends: %d %d", e == -ESHUTDOWN, duda_is_draining(d));
    return e;
}

/* Chooses the delay of reconnections itself. */
static int patient(struct duda_ctx *d)
{
    int e = duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("yes"), .retry_ms = 9000});
    return e ? e : duda_sleep(d, MK_FOREVER);
}

static int polling(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_topic_subscribe(d, &news);
    duda_end_on_drain(d);
    duda_log(d, MK_LOG_WARN, "polling");
    e = e ? e : duda_topic_receive(d, MK_FOREVER, &text);
    int again = duda_sleep(d, 60000);
    return duda_printf(d, "%d %d %d", e == -ESHUTDOWN, again == -ESHUTDOWN, duda_is_draining(d));
}

/* A wait that the drain must not end. */
static int working(struct duda_ctx *d)
{
    duda_end_on_drain(d);
    duda_log(d, MK_LOG_WARN, "working");
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return -EIO;
    int e = duda_wait_fd(d, ends[0], MK_READABLE, 1500);
    close(ends[0]);
    close(ends[1]);
    return duda_printf(d, "%d %d", e == -ESHUTDOWN, duda_is_draining(d));
}

static int unaware(struct duda_ctx *d)
{
    duda_log(d, MK_LOG_WARN, "unaware");
    int e = duda_sleep(d, 1500);
    return e ? e : duda_puts(d, "slept");
}

static int ticking(struct duda_ctx *d)
{
    int e = duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("ready"), .data = MK_STR("yes")});
    while (!e)
        e = duda_sleep(d, 60000);
    (void)duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("late"), .data = MK_STR("no")});
    return 0;
}

static int socket(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    while (!e && duda_websocket_receive(d, s, &m) > 0)
        e = duda_websocket_send(d, s, m.kind, m.data);
    return e;
}

DUDA_SERVICE(drains, DUDA_GET("/listening", listening, ""), DUDA_GET("/ticking", ticking, ""),
    DUDA_GET("/socket", socket, ""), DUDA_GET("/patient", patient, ""), DUDA_GET("/polling", polling, ""),
    DUDA_GET("/working", working, ""), DUDA_GET("/unaware", unaware, ""));
"""


@pytest.fixture
def server(monkey, tmp_path):
    return monkey(plugins=[services.build(tmp_path, "drains", SOURCE)], workers=1)


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
@pytest.mark.parametrize("path", ["/listening", "/ticking", "/patient"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_draining_ends_an_event_stream_with_a_complete_body(server, path, number):
    old = server.workers
    with server.connect() as c:
        c.ask(path)
        assert c.read_head().status == 200
        c.read_until(b"data: yes\n\n") if not hasattr(c, "streams") else c.read_some()
        server.tell(number)
        rest = c.read_rest() if hasattr(c, "streams") else c.read_to_end()
        event, plain = (rb"retry: (\d+)\n\n", hasattr(c, "streams")) if path != "/patient" else (b"", hasattr(c, "streams"))
        chunk = rb"\r\n[0-9a-f]+\r\n" + event if event else b""
        end = re.fullmatch(event if plain else chunk + rb"\r\n0\r\n\r\n", rest)
        assert end, rest
        assert path == "/patient" or 500 <= int(end[1]) < 3500
    if number == signal.SIGHUP:
        wait_until(lambda: not set(server.workers) & set(old), "the old worker has ended", 20)
    else:
        server.wait()


@pytest.mark.parametrize("protocol", ["h1", "h1-tls"], indirect=True)
def test_draining_closes_a_websocket_with_1001(server):
    old = server.workers
    with Peer(server, "/socket") as p:
        server.tell(signal.SIGHUP)
        first, payload = p.read_frame()
        assert (first, payload) == (FIN | CLOSE, b"\x03\xe9")
        p.send(frame(FIN | CLOSE, payload)).expect_end()
    wait_until(lambda: not set(server.workers) & set(old), "the old worker has ended", 20)


@pytest.mark.parametrize("path,text", [("/polling", "1 1 1"), ("/working", "0 1"), ("/unaware", "slept")])
def test_handler_ends_its_idle_waits_only_on_request(server, path, text):
    old = server.workers
    with server.connect() as c:
        c.ask(path)
        server.err.wait_for(path[1:])
        server.tell(signal.SIGHUP)
        assert c.read().text == text
    wait_until(lambda: not set(server.workers) & set(old), "the old worker has ended", 20)


def test_stream_that_opens_on_a_draining_worker_ends(server):
    """The connection to the draining worker is still open, because a handler on it is running."""
    with server.connect() as c:
        c.ask("/unaware")
        server.err.wait_for("unaware")
        server.tell(signal.SIGHUP)
        c.ask("/ticking")
        assert c.read().text == "slept"
