# SPDX-License-Identifier: Apache-2.0
"""A draining worker ends the event streams and WebSocket connections of services immediately, so that an open browser tab
does not keep the worker alive."""
import signal

import pytest

import services
from monkey import PROTOCOLS
from proc import wait_until
from wsframes import CLOSE, FIN, Peer, frame

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("the test reloads the server")]

SOURCE = r"""
#include <duda.h>
#include <errno.h>

/* Waits for messages until the drain cancels the handler. Nothing more may be sent afterwards. */
static int listening(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_topic_subscribe(d, MK_STR("news"));
    e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("ready"), .data = MK_STR("yes")});
    while (!e) {
        e = duda_topic_receive(d, MK_FOREVER, &text);
        e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("news"), .data = text});
    }
    duda_log(d, MK_LOG_WARN, "listening ends: %d", e == -ECANCELED);
    return e;
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
    DUDA_GET("/socket", socket, ""));
"""


@pytest.fixture
def server(monkey, tmp_path):
    return monkey(plugins=[services.build(tmp_path, "drains", SOURCE)], workers=1)


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
@pytest.mark.parametrize("path", ["/listening", "/ticking"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_draining_ends_an_event_stream_with_a_complete_body(server, path, number):
    old = server.workers
    with server.connect() as c:
        c.ask(path)
        assert c.read_head().status == 200
        c.read_until(b"data: yes\n\n") if not hasattr(c, "streams") else c.read_some()
        server.tell(number)
        rest = c.read_rest() if hasattr(c, "streams") else c.read_to_end()
        assert rest == (b"" if hasattr(c, "streams") else b"\r\n0\r\n\r\n")
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
