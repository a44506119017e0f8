# SPDX-License-Identifier: Apache-2.0
"""duda_topic_subscribers(): the number of subscribers in all workers, also when workers die or are replaced."""
import os
import signal

import pytest

import redis_server
import services
from monkey import PROTOCOLS
from proc import wait_until
from topic_service import Socket, Stream

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <duda/topic.h>
#include <unistd.h>

DUDA_TOPIC_FAMILY(rooms, "", .keep = 10, .counts_subscribers = true);

static int count(struct duda_ctx *d)
{
    const struct duda_topic room = duda_topic_named(&rooms, duda_param(d, "topic"));
    uint64_t n;
    int e = duda_topic_subscribers(d, &room, &n);
    return e ? e : duda_printf(d, "%llu", (unsigned long long)n);
}

static int events(struct duda_ctx *d)
{
    const struct duda_topic room = duda_topic_named(&rooms, duda_param(d, "topic"));
    mk_str text;
    int e = duda_topic_subscribe(d, &room);
    e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("open"), .data = duda_sprintf(d, "%d", (int)getpid())});
    while (!e)
        e = duda_topic_receive(d, MK_FOREVER, &text);
    return e;
}

static int chat(struct duda_ctx *d)
{
    const struct duda_topic room = duda_topic_named(&rooms, duda_param(d, "topic"));
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    e = e ? e : duda_topic_attach_after(d, s, &room, duda_query(d, "last_event_id"));
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = 0;
    return e;
}

DUDA_SERVICE(counting, DUDA_GET("/count/:topic", count), DUDA_GET("/events/:topic", events), DUDA_GET("/socket/:topic", chat));
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("service"), "counting", SOURCE)


@pytest.fixture
def start(monkey, service):
    return lambda workers=4, **how: monkey(plugins=[service], workers=workers, **how)


def wait_for(server, n, topic="news"):
    counts = []

    def agree():
        counts[:] = [server.get(f"/count/{topic}").text for _ in range(5)]
        return set(counts) == {str(n)}

    try:
        wait_until(agree, f"every worker counts {n}")
    except AssertionError as error:
        raise AssertionError(f"{error}, but the last counts are {counts}") from error


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_count_includes_all_workers(start, protocol):
    server = start()
    with server.connect() as c:
        assert c.get("/count/news").text == "0"


def test_count_follows_streams_and_websockets(start):
    server = start()
    streams = [Stream(server, reconnects=False) for _ in range(6)]
    sockets = [Socket(server, reconnects=False) for _ in range(5)]
    wait_for(server, 11)
    assert server.get("/count/other").text == "0"
    assert server.get("/count/" + "x" * 65).status == 500
    for each in (streams[0], streams[1], sockets[0]):
        each.close()
    wait_for(server, 8)
    for each in (*streams[2:], *sockets[1:]):
        each.close()
    wait_for(server, 0)


@pytest.mark.processes("it kills workers")
def test_subscribers_of_a_killed_worker_disappear(start):
    server = start(workers=2)
    server.allow("killed", "signal 9", "ended", "exit")
    streams = [Stream(server, reconnects=False) for _ in range(12)]
    wait_for(server, 12)
    victim = server.workers[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in server.workers and len(server.workers) == 2, "it is replaced")
    wait_until(lambda: sum(s.thread.is_alive() for s in streams) < 12, "its streams end")
    left = int(server.get("/count/news").text)
    assert 0 < left < 12
    wait_for(server, left)
    os.kill(next(pid for pid in server.workers if pid != server.workers[-1]), signal.SIGKILL)
    os.kill(server.workers[-1], signal.SIGKILL)
    wait_for(server, 0)
    Stream(server, reconnects=False)
    wait_for(server, 1)


@pytest.mark.processes("it reloads")
def test_subscribers_survive_a_reload(start):
    server = start()
    streams = [Stream(server) for _ in range(6)]
    wait_for(server, 6)
    for _ in range(3):
        before = [s.opened for s in streams]
        server.tell(signal.SIGHUP)
        wait_until(lambda b=before: all(s.opened > n for s, n in zip(streams, b)), "they reconnect to the new workers")
        wait_for(server, 6)


@pytest.fixture
def redis():
    server = redis_server.Redis()
    yield server
    server.stop()


@pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM, reason="there is no redis-server")
@pytest.mark.processes("it kills processes")
def test_count_includes_all_servers_of_a_redis(monkey, service, redis):
    servers = []
    for _ in range(2):
        server = monkey(plugins=[service, "duda-redis"], workers=2,
                        top=f"[REDIS]\n    Server unix:{redis.socket}\n    Timeout 2s\n    TopicRelay town\n")
        server.allow("redis", "REDIS", "killed", "signal 9", "ended", "exit", "counting GET", "topics")
        servers.append(server)
    first, second = servers
    here = [Stream(first, reconnects=False) for _ in range(4)]
    there = [Stream(second, reconnects=False) for _ in range(3)] + [Socket(second, reconnects=False)]
    for server in servers:
        wait_for(server, 8)
        assert server.get("/count/other").text == "0"
    key = "!duda:subscribers:{town}:counting:news"
    assert redis.ask("HSET", key, "dead", '"5 1"', "alive", '"5 99999999999"', "invalid", '""') == b":3\r\n"
    there[0].close()
    there[3].close()
    wait_until(lambda: redis.ask("HLEN", key) == b":3\r\n", "a machine that is forgotten is deleted")
    assert redis.ask("HEXISTS", key, "alive") == b":1\r\n"
    redis.ask("HDEL", key, "alive")
    for server in servers:
        wait_for(server, 6)
    redis.kill()
    wait_until(lambda: first.get("/count/news").status >= 500, "an outage of Redis is an error")
    redis.start()
    for server in servers:
        wait_for(server, 6)
    first.tell(signal.SIGHUP)
    wait_until(lambda: not any(s.thread.is_alive() for s in here), "the reload ends the streams")
    wait_for(first, 2)
    for _ in range(3):
        Stream(first, reconnects=False)
    for server in servers:
        wait_for(server, 5)
    workers, second.exit_code = second.workers, -signal.SIGKILL
    second.process.kill()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    assert first.get("/count/news").text == "5"
    wait_until(lambda: first.get("/count/news").text == "3", "a server that dies is forgotten", 60)
