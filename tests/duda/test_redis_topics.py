# SPDX-License-Identifier: Apache-2.0
"""One Redis relays topics between several servers: the WebSockets and event streams of all servers receive each message
once."""
import contextlib

import pytest
from websockets.sync.client import connect

import redis_server
import services
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM,
                                reason="the package is not in this build, or there is no redis-server")

SOURCE = r"""
#include <duda.h>

DUDA_TOPIC(news, "news");
DUDA_TOPIC(pictures, "pictures", .kind = MK_WEBSOCKET_BINARY);

static int talk(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    e = e ? e : duda_topic_attach(s, &news);
    e = e ? e : duda_topic_attach(s, &pictures);
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_topic_publish(d, m.kind == MK_WEBSOCKET_BINARY ? &pictures : &news, m.data);
    return e;
}

static int hear(struct duda_ctx *d)
{
    mk_str text;
    duda_deadline(d, MK_FOREVER);
    int e = duda_topic_subscribe(d, &news);
    e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("ready"), .data = MK_STR("yes")});
    while (!e && !(e = duda_topic_receive(d, MK_FOREVER, &text)))
        e = duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("news"), .data = text});
    return e;
}

DUDA_SERVICE(topics, DUDA_GET("/socket", talk, "Publishes and receives."), DUDA_GET("/events", hear, "Receives."));
"""


@pytest.fixture
def redis():
    server = redis_server.start_at_port(lambda port: redis_server.Redis(port=port))
    yield server
    server.stop()


def start(monkey, site, redis, topics, workers=2):
    service = services.build(site.path.parent, "topics", SOURCE)
    return monkey(plugins=[service, "duda-redis"], workers=workers,
                  top=f"[REDIS]\n    Server 127.0.0.1:{redis.port}\n    Timeout 30s\n{topics}")


def subscribers(redis):
    return int(redis.ask("PUBSUB", "NUMSUB", "!duda:topics:town").split(b":")[-1])


class Listener:
    def __init__(self, server, stack):
        self.c = stack.enter_context(server.connect())
        self.c.send(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        self.c.read_until(b"data: yes")

    def read_messages(self, last):
        """Returns all messages up to and including `last`."""
        got = []
        while not got or got[-1] != last:
            line = self.c.read_until(b"\n")
            if line.startswith(b"data: ") and line.strip() != b"data: yes":
                got.append(line[6:].strip().decode())
        return got


def sockets(server, stack, n):
    port = server.port
    return [stack.enter_context(connect(f"ws://127.0.0.1:{port}/socket")) for _ in range(n)]


def test_topic_relay_delivers_messages_to_all_servers(monkey, site, redis):
    servers = [start(monkey, site, redis, "    TopicRelay town\n") for _ in range(2)]
    alone = start(monkey, site, redis, "")
    wait_until(lambda: subscribers(redis) == 4, "all workers are subscribed")
    with contextlib.ExitStack() as stack:
        talkers = [sockets(server, stack, 3) for server in servers]
        listeners = [Listener(server, stack) for server in servers for _ in range(3)]
        stranger, = sockets(alone, stack, 1)
        for i, talker in enumerate(t for group in talkers for t in group):
            talker.send(f"message {i}")
            for other in (t for group in talkers for t in group):  # the publisher receives it, too
                assert other.recv(20) == f"message {i}"
        assert all(listener.read_messages("message 5") == [f"message {i}" for i in range(6)] for listener in listeners)
        talkers[0][0].send("binary".encode())
        assert talkers[1][0].recv(20) == b"binary"
        stranger.send("hello")
        assert stranger.recv(20) == "hello"  # no message arrived before this one


def test_topic_relay_resumes_after_a_restart_of_redis(monkey, site, redis):
    servers = [start(monkey, site, redis, "    TopicRelay town\n", workers=1) for _ in range(2)]
    wait_until(lambda: subscribers(redis) == 2, "both workers are subscribed")
    with contextlib.ExitStack() as stack:
        (a,), (b,) = (sockets(server, stack, 1) for server in servers)
        redis.kill()
        a.send("here")
        assert a.recv(20) == "here"  # subscribers of the same server still receive it
        redis.start()
        wait_until(lambda: subscribers(redis) == 2, "both workers are subscribed again")
        a.send("everywhere")
        received = [b.recv(20)]
        while received[-1] != "everywhere":
            received.append(b.recv(20))
        assert received in (["everywhere"], ["here", "everywhere"])


def test_second_topic_relay_is_rejected(run, tmp_path):
    conf = tmp_path / "monkey.conf"
    conf.write_text("[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-redis\n"
                    "[REDIS]\n    Server 127.0.0.1:1\n    TopicRelay a\n[REDIS]\n    Name b\n    Server 127.0.0.1:1\n    TopicRelay b\n"
                    "[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and "another [REDIS] already has `TopicRelay`" in done.err
