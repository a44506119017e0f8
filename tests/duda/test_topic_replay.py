# SPDX-License-Identifier: Apache-2.0
"""Topics that keep messages: an event stream that reconnects gets each message once and in order, or gets an event
for a gap, whatever happens to workers and connections in between."""
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import services
from proc import wait_until
from topic_service import SOURCE, Stream, numbers, say

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("service"), "news", SOURCE)


@pytest.fixture
def start(monkey, service):
    return lambda workers=3, top="", **how: monkey(plugins=[service], workers=workers, top=top, **how)


def test_stream_that_reconnects_gets_what_it_missed(start):
    server = start()
    stream = Stream(server, reconnects=False)
    for i in numbers(0, 5):
        say(server, i)
    wait_until(lambda: stream.seen == numbers(0, 5), "all arrive")
    stream.close()
    for i in numbers(5, 20):
        say(server, i)
    again = Stream(server, last=stream.last)
    wait_until(lambda: again.seen == numbers(5, 20), "it gets what it missed")
    say(server, "20")
    wait_until(lambda: again.seen == numbers(5, 21), "and what follows")
    assert Stream(server).seen == [], "a new client begins with the next message"
    everything = Stream(server, last="0")
    wait_until(lambda: everything.seen == numbers(0, 21), "0 selects all kept messages")


@pytest.mark.parametrize("last", ["1-1", "nonsense", "18446744073709551615-18446744073709551615", "-", "0-0-0"])
def test_unknown_last_id_is_a_gap(start, last):
    server = start()
    stream = Stream(server, last=last)
    wait_until(lambda: stream.seen == ["GAP"], "the client learns of it at once, although there is no message")
    say(server, "a", topic="other")
    say(server, "a")
    wait_until(lambda: stream.seen == ["GAP", "a"], "it gets what follows")
    again = Stream(server, last=last)
    wait_until(lambda: again.seen == ["GAP", "a"], "it gets the gap, and the kept message")


def test_client_that_was_away_for_too_long_gets_a_gap(start):
    server = start()
    say(server, "0", keep=5)
    stream = Stream(server, last="0", reconnects=False)
    wait_until(lambda: stream.seen == ["0"], "it has the first one")
    stream.close()
    for i in numbers(1, 6):
        say(server, i, keep=5)
    again = Stream(server, last=stream.last, reconnects=False)
    wait_until(lambda: again.seen == numbers(1, 6), "five are kept")
    say(server, "6", keep=5)
    late = Stream(server, last=stream.last)
    wait_until(lambda: late.seen == ["GAP", *numbers(2, 7)], "the second is gone")


def test_slow_handler_misses_no_kept_message(start):
    server = start(workers=2)
    stream = Stream(server, pause=4)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: say(server, i, keep=1000), numbers(0, 400)))
    wait_until(lambda: len(stream.seen) >= 400, "all arrive")
    assert sorted(stream.seen, key=int) == numbers(0, 400), "none is lost, none comes twice"
    slow = Stream(server, topic="short", pause=20)
    for i in numbers(0, 200):
        say(server, i, topic="short", keep=10)
    wait_until(lambda: slow.seen and slow.seen[-1] == "199", "the last one arrives")
    assert "GAP" in slow.seen and [int(n) for n in slow.seen if n != "GAP"] == sorted({int(n) for n in slow.seen if n != "GAP"})


@pytest.mark.processes("it reloads, and kills workers")
@pytest.mark.parametrize("event", ["reload", "kill"])
def test_no_message_is_lost_or_repeated_while_workers_change(start, event):
    """Writers publish in order, each to its own topic, while connections are cut, and workers are replaced."""
    server = start(top="[DUDA]\n    TopicMemory 1M\n")
    server.allow("killed", "signal 9", "ended", "exit")
    topics = ["a", "b", "c"]
    streams = {topic: [Stream(server, topic, last="") for _ in range(2)] for topic in topics}
    said, done = {topic: 0 for topic in topics}, threading.Event()
    dice = random.Random(7)

    def write(topic):
        while not done.is_set():
            say(server, str(said[topic]), topic, keep=1000)
            said[topic] += 1
            time.sleep(0.005)

    with ThreadPoolExecutor(len(topics)) as pool:
        writers = [pool.submit(write, topic) for topic in topics] if event == "reload" else []
        for _ in range(6):
            time.sleep(0.4)
            if event == "reload":
                server.tell(signal.SIGHUP)
            else:
                for topic in topics:
                    for _ in range(20):
                        say(server, str(said[topic]), topic, keep=1000)
                        said[topic] += 1
                victim = dice.choice(server.workers)
                os.kill(victim, signal.SIGKILL)
                wait_until(lambda v=victim: v not in server.workers and len(server.workers) >= 3, "it is replaced")
            for topic in topics:
                dice.choice(streams[topic]).cut()
        done.set()
        for writer in writers:
            writer.result()
    for topic in topics:
        say(server, "end", topic, keep=1000)
        for stream in streams[topic]:
            wait_until(lambda s=stream: s.seen and s.seen[-1] == "end", "the last message arrives")
            assert stream.seen == [*numbers(0, said[topic]), "end"]
        assert said[topic] > 20


def test_message_that_a_full_queue_between_workers_drops_still_arrives(start):
    """Each worker queues up to 1 MB for every other one. Receivers read further messages from shared memory."""
    server = start(workers=2, top="[DUDA]\n    TopicMemory 64M\n")
    streams = [Stream(server) for _ in range(4)]
    text = "x" * 30000
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: say(server, f"{i} {text}", keep=400), range(200)))
    for stream in streams:
        wait_until(lambda s=stream: len(s.seen) >= 200, "all arrive")
        assert sorted(int(each.split()[0]) for each in stream.seen) == list(range(200))


def test_flood_into_one_topic_leaves_the_messages_of_others(start):
    server = start(top="[DUDA]\n    TopicMemory 64K\n")
    say(server, "first", "quiet")
    first = Stream(server, "loud", reconnects=False)
    for i in range(40):
        say(server, str(i) + "x" * 1000, "loud", keep=4000000000)
    wait_until(lambda: len(first.seen) == 40, "a subscriber gets all")
    loud = Stream(server, "loud", last="0")
    wait_until(lambda: len(loud.seen) >= 8, "the topic keeps its latest messages")
    assert len(loud.seen) < 16 and loud.seen == first.seen[-len(loud.seen):], "in a quarter of the memory"
    quiet = Stream(server, "quiet", last="0")
    wait_until(lambda: quiet.seen == ["first"], "the other topic has its message")
    assert server.get("/say/loud?keep=5", "POST", body=b"x" * 31745).status == 413


def test_flood_of_topics_leaves_a_large_topic(start):
    server = start(top="[DUDA]\n    TopicMemory 64K\n")
    say(server, "first", "small")
    small = Stream(server, "small", last="0", reconnects=False)
    wait_until(lambda: small.seen == ["first"], "it is kept")
    small.close()
    for i in numbers(0, 40):
        say(server, i, "large")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: say(server, i, "room" + i), numbers(0, 300)))
    large = Stream(server, "large", last="0")
    wait_until(lambda: large.seen == numbers(0, 40), "the large topic has all its messages")
    again = Stream(server, "small", last=small.last)
    wait_until(lambda: again.seen == ["GAP"], "the least recent small topic has lost its message, and says so")


@pytest.mark.processes("it restarts")
def test_restart_is_a_gap(start):
    server = start()
    stream = Stream(server, reconnects=False)
    say(server, "0")
    wait_until(lambda: stream.seen == ["0"], "it arrives")
    stream.close()
    server.stop()
    other = start()
    again = Stream(other, last=stream.last)
    wait_until(lambda: again.seen == ["GAP"], "the messages are gone, and the client gets a gap")
