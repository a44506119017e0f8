# SPDX-License-Identifier: Apache-2.0
"""Topics that keep their messages in Redis: a client may reconnect to any server, and gets each message once
and in order, or an event for a gap."""
import random
import time

import pytest

import redis_server
import services
from proc import wait_until
from topic_service import SOURCE, Stream, numbers, say

pytestmark = pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM,
                                reason="the package is not in this build, or there is no redis-server")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("service"), "news", SOURCE)


@pytest.fixture(params=[(), ("--appendonly", "yes")], ids=["memory", "disk"])
def redis(request):
    server = redis_server.Redis(*request.param)
    yield server
    server.stop()


@pytest.fixture
def start(monkey, service, redis):
    def run(workers=2):
        server = monkey(plugins=[service, "duda-redis"], workers=workers,
                        top=f"[REDIS]\n    Server unix:{redis.socket}\n    Timeout 2s\n    TopicRelay town\n")
        server.allow("redis", "REDIS", "news GET", "news POST", "POST /say")
        return server
    return run


def subscribers(redis):
    return int(redis.ask("PUBSUB", "NUMSUB", "!duda:topics:town").split(b":")[-1])


@pytest.fixture
def servers(start, redis):
    both = [start(), start()]
    wait_until(lambda: subscribers(redis) == 4, "all workers are subscribed")
    return both


def test_client_continues_at_another_server(servers):
    first, second = servers
    stream = Stream(first, reconnects=False)
    for i in numbers(0, 5):
        say(servers[int(i) % 2], i)
    wait_until(lambda: stream.seen == numbers(0, 5), "the messages of both servers arrive in order")
    stream.close()
    for i in numbers(5, 20):
        say(servers[int(i) % 2], i)
    again = Stream(second, last=stream.last)
    wait_until(lambda: again.seen == numbers(5, 20), "it gets what it missed")
    say(first, "20")
    wait_until(lambda: again.seen == numbers(5, 21), "and what follows")
    assert Stream(second).seen == []
    everything = Stream(first, last="0")
    wait_until(lambda: everything.seen == numbers(0, 21), "0 selects all kept messages")


def test_topic_names_and_texts_of_any_form(servers):
    first, second = servers
    stream = Stream(second, "a%20b%201%20c")
    say(first, "x  y: 3-4 t", "a%20b%201%20c")
    say(first, "", "a%20b%201%20c")
    wait_until(lambda: stream.seen == ["x  y: 3-4 t", ""], "they arrive unchanged")


def test_trimmed_and_unknown_messages_are_a_gap(servers):
    first, second = servers
    say(first, "0", keep=5)
    stream = Stream(second, last="0", reconnects=False)
    wait_until(lambda: stream.seen == ["0"], "it has the first one")
    stream.close()
    for i in numbers(1, 7):
        say(first, i, keep=5)
    late = Stream(second, last=stream.last)
    wait_until(lambda: late.seen == ["GAP", *numbers(2, 7)], "the second is gone")
    for last in ("1-1", "nonsense"):
        stranger = Stream(first, last=last)
        wait_until(lambda s=stranger: s.seen == ["GAP", *numbers(2, 7)], "the ID is unknown")
        quiet = Stream(first, "quiet", last=last)
        wait_until(lambda s=quiet: s.seen == ["GAP"], "the topic is unknown")


def test_slow_handler_misses_no_kept_message(servers):
    stream = Stream(servers[1], pause=5)
    for i in numbers(0, 200):
        say(servers[0], i, keep=1000)
    wait_until(lambda: stream.seen and stream.seen[-1] == "199", "all arrive")
    assert stream.seen == numbers(0, 200)


def test_no_message_is_lost_or_repeated_while_connections_break(servers, redis):
    """Connections of clients are cut, and those to Redis are killed, while both servers publish."""
    dice, said = random.Random(3), 0
    streams = [Stream(server) for server in servers for _ in range(2)]
    for n in range(8):
        for _ in range(30):
            say(dice.choice(servers), str(said), keep=1000)
            said += 1
        if n % 2:
            redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
        stream = dice.choice(streams)
        stream.server = dice.choice(servers)
        stream.cut()
    say(servers[0], "end", keep=1000)
    for stream in streams:
        wait_until(lambda s=stream: s.seen and s.seen[-1] == "end", "the last message arrives")
        assert stream.seen == [*numbers(0, said), "end"]


def test_outage_of_redis_is_not_hidden(servers, redis, request):
    """While Redis is away, a message is refused. Afterwards a client gets what was kept; if Redis has lost it, a gap."""
    first, second = servers
    streams = [Stream(server) for server in servers]
    for i in numbers(0, 3):
        say(first, i)
    for stream in streams:
        wait_until(lambda s=stream: s.seen == numbers(0, 3), "they arrive")
    if "disk" in request.node.name:
        wait_until(lambda: redis.info("persistence", "aof_buffer_length") == "0", "they are written")
    redis.kill()
    wait_until(lambda: first.get("/say/news?keep=100", "POST", body=b"lost").status >= 500, "it is refused")
    redis.start()
    wait_until(lambda: subscribers(redis) == 4, "all workers are subscribed again")
    time.sleep(0.2)
    is_kept = redis.ask("EXISTS", "!duda:kept:town:news:news") == b":1\r\n"
    say(second, "3")
    for stream in streams:
        wait_until(lambda s=stream: s.seen and s.seen[-1] == "3", "the streams continue")
        seen = [each for each in stream.seen if each != "lost"]
        assert seen == (numbers(0, 4) if is_kept else [*numbers(0, 3), "GAP", "3"])
    assert is_kept == ("disk" in request.node.name)
