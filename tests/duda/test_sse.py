# SPDX-License-Identifier: Apache-2.0
"""Streams of server-sent events that are silent: comments keep the connection alive, and detect clients that have vanished
without closing their connection."""
import socket
import time

import pytest

import services
from monkey import PROTOCOLS

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")
TCP_REPAIR = 19

SOURCE = r"""
#include <duda.h>
#include <errno.h>

static int silent(struct duda_ctx *d)
{
    int e = duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("first"), .id = MK_STR("1")});
    e = e ? e : duda_sleep(d, MK_FOREVER);
    duda_log(d, MK_LOG_WARN, "silent ends: %d", e == -ECANCELED);
    return e;
}

/* Silent, with an interval of its own: ?ms=100; without `ms`, there are no comments. The interval is set again after the first
 * event if `twice` is set. */
static int own_interval(struct duda_ctx *d)
{
    int64_t ms = 0;
    bool has_interval = duda_query_int(d, "ms", &ms), twice = duda_query(d, "twice").p;
    duda_sse_set_keep_alive(d, twice ? 3600000 : has_interval ? (uint32_t)ms : MK_FOREVER);
    int e = duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("first"), .id = MK_STR("1")});
    if (twice)
        duda_sse_set_keep_alive(d, (uint32_t)ms);
    return e ? e : duda_sleep(d, MK_FOREVER);
}

static int busy(struct duda_ctx *d)
{
    int e = 0;
    for (int i = 0; i < 20 && !e; i++)
        if (!(e = duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("x")})))
            e = duda_sleep(d, 50);
    return e;
}

/* One event does not fit into the buffers of the connection. */
static int flooding(struct duda_ctx *d)
{
    static char text[8 << 20];
    memset(text, 'x', sizeof text);
    int e = duda_sse_send(d, &(struct mk_sse_event){.data = mk_str_of(text, sizeof text)});
    e = e ? e : duda_sleep(d, 300);
    return e ? e : duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("last")});
}

static int resumed(struct duda_ctx *d)
{
    mk_str id = duda_sse_last_id(d);
    return duda_sse_send(d, &(struct mk_sse_event){.data = id.p ? id : MK_STR("none"), .retry_ms = 100});
}

/* Not an event stream: its body must stay as it is. */
static int plain(struct duda_ctx *d)
{
    int e = duda_puts(d, "one ");
    e = e ? e : duda_flush(d);
    e = e ? e : duda_sleep(d, 500);
    return e ? e : duda_puts(d, "two");
}

DUDA_SERVICE(streams, DUDA_GET("/silent", silent, ""), DUDA_GET("/own", own_interval, ""), DUDA_GET("/busy", busy, ""), DUDA_GET("/flooding", flooding, ""),
    DUDA_GET("/resumed", resumed, ""), DUDA_GET("/plain", plain, ""));
"""


def load(interval):
    def prepare(monkey, site):
        monkey(plugins=[services.build(site.path.parent, "streams", SOURCE)], top=f"[DUDA]\n    SSEKeepAlive {interval}\n")
    return prepare


FAST, SLOW, OFF = load("100ms"), load("1s"), load("off")
FIRST = b"id: 1\ndata: first\n\n"


def read_body(c, size):
    """Returns the first bytes of the body, without the framing of chunks."""
    got = b""
    while len(got) < size:
        if hasattr(c, "streams"):
            got += c.read_some()
        else:
            line = c.read_until(b"\r\n")
            got += c.read_exactly(int(line, 16))
            c.read_exactly(2)
    return got


def expect_silence(c):
    c.sock.settimeout(0.5)
    with pytest.raises((TimeoutError, OSError)):
        c.sock.recv(1)


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_silent_stream_gets_comments(lasting, protocol):
    with lasting(FAST).connect() as c:
        c.ask("/silent")
        c.read_head()
        assert read_body(c, len(FIRST) + 9) == FIRST + b":\n\n" * 3


def test_keep_alive_can_be_disabled(lasting):
    server = lasting(OFF)
    with server.connect() as c:
        c.ask("/silent")
        c.read_head()
        assert read_body(c, len(FIRST)) == FIRST
        expect_silence(c)


@pytest.mark.parametrize("how", [FAST, OFF], ids=["fast", "off"])
@pytest.mark.parametrize("query", ["?ms=100", "?ms=100&twice=1"], ids=str)
def test_stream_may_have_an_interval_of_its_own(lasting, how, query):
    server = lasting(how)
    with server.connect() as slow, server.connect() as c:
        slow.ask("/own?ms=3600000")
        slow.read_head()
        c.ask("/own" + query)
        c.read_head()
        assert read_body(c, len(FIRST) + 9) == FIRST + b":\n\n" * 3
        assert read_body(slow, len(FIRST)) == FIRST
        expect_silence(slow)


def test_stream_may_disable_comments(lasting):
    with lasting(FAST).connect() as c:
        c.ask("/own")
        c.read_head()
        assert read_body(c, len(FIRST)) == FIRST
        expect_silence(c)


def test_stream_may_use_the_default_interval_again(lasting):
    with lasting(FAST).connect() as c:
        c.ask("/own?ms=0")
        c.read_head()
        assert read_body(c, len(FIRST) + 3) == FIRST + b":\n\n"


def test_active_stream_gets_no_comments(lasting):
    """The stream lasts for more than a second, and its pauses are much shorter than half of the interval."""
    assert lasting(SLOW).get("/busy").text == "data: x\n\n" * 20


def test_comment_is_never_inside_an_event(lasting):
    with lasting(FAST).connect() as c:
        c.ask("/flooding")
        time.sleep(0.5)
        events = [event for event in c.read().text.split("\n\n") if event != ":"]
        assert [len(event) for event in events] == [(8 << 20) + 6, 10, 0]


def test_other_streams_get_no_comments(lasting):
    assert lasting(FAST).get("/plain").text == "one two"


def test_client_resumes_after_its_last_event(lasting):
    server = lasting(FAST)
    assert server.get("/resumed").text == "retry: 100\ndata: none\n\n"
    assert server.get("/resumed", fields=[("Last-Event-ID", "17")]).text == "retry: 100\ndata: 17\n\n"


def test_vanished_client_is_detected(lasting):
    """TCP_REPAIR closes a socket without a FIN, like a device that has lost its network."""
    server = lasting(FAST)
    with server.connect() as c:
        c.ask("/silent")
        c.read_head()
        try:
            c.sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        except PermissionError:
            pytest.skip("TCP_REPAIR needs CAP_NET_ADMIN")
        c.sock.close()
        server.err.wait_for("silent ends: 1")
