# SPDX-License-Identifier: Apache-2.0
"""Handlers that subscribe to several topics: the topic of each message, dropped messages, and the subscription
limit."""
import contextlib

import pytest

import services
from monkey import PROTOCOLS
from wsframes import Peer

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

DUDA_TOPIC(a, "a");
DUDA_TOPIC(b, "b", .kind = MK_WEBSOCKET_BINARY);
DUDA_TOPIC(c, "c", .kind = MK_WEBSOCKET_TEXT);
DUDA_TOPIC(slow_topic, "slow");
DUDA_TOPIC(left, "left");
DUDA_TOPIC(right, "right");
DUDA_TOPIC(other, "other");
DUDA_TOPIC(chat_topic, "chat");
DUDA_TOPIC_FAMILY(numbered, "topic");

static int tell(struct duda_ctx *d, uint32_t ms)
{
    struct duda_topic_message m;
    int e = duda_topic_receive_message(d, ms, &m);
    if (e)
        return duda_printf(d, "%d %d ", -e, m.topic.p != NULL);
    return duda_printf(d, "%.*s:%.*s:%c:%u ", MK_STR_ARG(m.topic), MK_STR_ARG(m.data),
                       m.kind == MK_WEBSOCKET_BINARY ? 'b' : 't', m.dropped);
}

static int say(struct duda_ctx *d, const struct duda_topic *topic, const char *text)
{
    return duda_topic_publish(d, topic, mk_str_from_c(text));
}

static int several(struct duda_ctx *d)
{
    mk_str text;
    tell(d, 10); /* not subscribed yet */
    duda_topic_unsubscribe(d, &a);
    int e = duda_topic_subscribe(d, &a);
    e = e ? e : duda_topic_subscribe(d, &b);
    duda_printf(d, "%d ", -duda_topic_subscribe(d, &b));
    e = e ? e : say(d, &a, "text");
    e = e ? e : say(d, &b, "bytes");
    e = e ? e : say(d, &c, "nothing");
    tell(d, 0);
    tell(d, 0);
    tell(d, 10);
    e = e ? e : say(d, &b, "before");
    duda_topic_unsubscribe(d, &b);
    duda_topic_unsubscribe(d, &b);
    e = e ? e : say(d, &b, "after");
    e = e ? e : say(d, &a, "");
    tell(d, 0);
    e = e ? e : duda_topic_receive(d, MK_FOREVER, &text);
    duda_printf(d, "%zu ", text.len);
    tell(d, 10);
    return e;
}

static int slow(struct duda_ctx *d)
{
    int e = duda_topic_subscribe(d, &slow_topic);
    for (int i = 0; !e && i < DUDA_TOPIC_QUEUE_MAX + 6; i++)
        e = say(d, &slow_topic, duda_sprintf(d, "%d", i).p);
    tell(d, 0);
    tell(d, 0);
    e = e ? e : say(d, &slow_topic, "more");
    e = e ? e : say(d, &slow_topic, "more");
    e = e ? e : say(d, &slow_topic, "more");
    tell(d, 0);
    return e;
}

/* Subscribes to both topics and waits for a message from each, published by any worker. */
static int wait_for_both(struct duda_ctx *d)
{
    int e = duda_topic_subscribe(d, &left);
    e = e ? e : duda_topic_subscribe(d, &right);
    e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("ready"), .data = MK_STR("")});
    for (int i = 0; i < 2 && !e; i++) {
        struct duda_topic_message m;
        e = duda_topic_receive_message(d, MK_FOREVER, &m);
        e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = m.topic, .data = m.data});
    }
    return e;
}

/* Subscribes to more and more topics, as if clients chose the names, until an error is returned. */
static int many(struct duda_ctx *d)
{
    unsigned n = 0;
    int e = 0;
    struct duda_topic seventh = duda_topic_named(&numbered, MK_STR("7"));
    while (n < 10000 && !e) {
        struct duda_topic t = duda_topic_named(&numbered, duda_sprintf(d, "%u", n));
        e = duda_topic_subscribe(d, &t);
        n += !e;
    }
    duda_printf(d, "%d %d %d", n == DUDA_TOPIC_SUBSCRIPTIONS_MAX, e == -EDQUOT, duda_topic_subscribe(d, &seventh) == -EALREADY);
    duda_topic_unsubscribe(d, &seventh);
    return duda_printf(d, " %d", duda_topic_subscribe(d, &other));
}

static int call(struct duda_ctx *d)
{
    int e = say(d, &left, "one");
    return e ? e : say(d, &right, "two");
}

/* Sends each message of the client to the other clients of the topic. */
static int chat(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    e = e ? e : duda_topic_attach(s, &chat_topic);
    e = e ? e : duda_websocket_send(d, s, MK_WEBSOCKET_TEXT, MK_STR("ready"));
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0) {
        bool is_for_all = mk_str_starts(m.data, MK_STR("all "));
        e = is_for_all ? duda_topic_publish(d, &chat_topic, m.data)
                       : duda_topic_publish_others(s, &chat_topic, m.data);
    }
    return e;
}

DUDA_SERVICE(topics, DUDA_GET("/chat", chat, ""), DUDA_GET("/several", several, ""), DUDA_GET("/slow", slow, ""), DUDA_GET("/both", wait_for_both, ""),
             DUDA_GET("/many", many, ""), DUDA_POST("/call", call, ""));
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("topics"), "topics", SOURCE)


def test_messages_name_their_topic_and_dropped_messages(monkey, service):
    server = monkey(plugins=[service])
    assert server.get("/several").text == "22 0 114 a:text:t:0 b:bytes:b:0 62 0 b:before:b:0 0 62 0 "
    assert server.get("/slow").text == "slow:6:t:6 slow:7:t:0 slow:9:t:1 "


def test_subscriptions_of_a_handler_are_limited(monkey, service):
    assert monkey(plugins=[service]).get("/many").text == "1 1 1 0"


def test_topic_messages_reach_all_workers(monkey, service):
    server = monkey(plugins=[service], workers=2)
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(server.connect()) for _ in range(6)]
        for c in streams:
            c.send(b"GET /both HTTP/1.1\r\nHost: x\r\n\r\n")
            c.read_until(b"event: ready\n")
        assert server.get("/call", "POST").status == 204
        for c in streams:
            assert b"data: one" in c.read_until(b"event: right\n")
            c.read_until(b"data: two\n")


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
@pytest.mark.parametrize("workers", [1, 2])
def test_websocket_publishes_to_all_others(monkey, service, workers):
    server = monkey(plugins=["websocket", service], workers=workers)
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(Peer(server, "/chat")).expect("ready") for _ in range(6)]
        for i, peer in enumerate(peers):
            peer.text(f"from {i}")
            for other in peers:
                if other is not peer:
                    other.expect(f"from {i}")
        peers[0].text("all of you")
        for peer in peers:
            peer.expect("all of you")
