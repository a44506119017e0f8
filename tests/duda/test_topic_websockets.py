# SPDX-License-Identifier: Apache-2.0
"""WebSockets that are attached to topics with kept messages: a client that reconnects with the ID of its last message gets
each message once and in order, or a gap."""
import json
import os
import random
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import browser
import redis_server
import services
from monkey import ROOT
from proc import wait_until
from topic_service import SOURCE, Socket, numbers, say

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("service"), "news", SOURCE)


@pytest.fixture
def start(monkey, service):
    def run(workers=3, top="", **how):
        server = monkey(plugins=[service], workers=workers, top=top, **how)
        server.allow("callback closed")
        return server
    return run


@pytest.mark.parametrize("path", ["/socket/callbacks", "/callbacks"])
def test_websocket_that_reconnects_gets_what_it_missed(start, path):
    server = start()
    first = Socket(server, path, reconnects=False)
    for i in numbers(0, 5):
        say(server, i, "callbacks")
    wait_until(lambda: first.seen == numbers(0, 5), "all arrive")
    first.close()
    for i in numbers(5, 20):
        say(server, i, "callbacks")
    again = Socket(server, path, last=first.last)
    wait_until(lambda: again.seen == numbers(5, 20), "it gets what it missed")
    say(server, "20", "callbacks")
    wait_until(lambda: again.seen == numbers(5, 21), "and what follows")
    everything = Socket(server, path, last="0")
    wait_until(lambda: everything.seen == numbers(0, 21), "0 selects all kept messages")
    stranger = Socket(server, path, last="nonsense")
    wait_until(lambda: stranger.seen == ["GAP", *numbers(0, 21)], "an unknown ID is a gap")


def test_callbacks_publish_and_use_the_websocket_of_the_server(start):
    server = start()
    publisher, subscriber = Socket(server, "/callbacks", reconnects=False), Socket(server, "/callbacks", reconnects=False)
    publisher.socket.send("say to all")
    wait_until(lambda: publisher.seen == subscriber.seen == ["to all"], "all subscribers get the message")
    publisher.socket.send("raw")
    wait_until(lambda: publisher.seen == ["to all", "sent by the server"], "only this client gets the message")
    assert subscriber.seen == ["to all"]


def test_client_without_a_message_gets_those_published_while_it_is_away(start):
    """The first line of the server contains the position of the client."""
    server = start()
    for text in ("before", ""):
        quiet = Socket(server, f"/socket/quiet{text}", reconnects=False)
        quiet.close()
        say(server, "missed", f"quiet{text}")
        again = Socket(server, f"/socket/quiet{text}", last=quiet.last)
        wait_until(lambda s=again: s.seen == ["missed"], "it arrives")


def test_websockets_publish_to_each_other_and_to_themselves(start):
    server = start()
    both = [Socket(server) for _ in range(2)]
    both[0].socket.send("hello")
    both[0].socket.send(b"\xff\xfe")
    for each in both:
        wait_until(lambda s=each: s.seen == ["hello"], "text arrives")
    wait_until(lambda: both[0].codes == [1011], "a text topic accepts no other bytes: its sender is disconnected")
    assert both[1].codes == []


def test_long_replay_waits_for_a_slow_client(start):
    """The replay exceeds the send queue of the WebSocket many times."""
    server = start(top="[DUDA]\n    TopicMemory 64M\n")
    text = "x" * 30000
    for i in range(200):
        say(server, f"{i} {text}", keep=1000)
    slow = Socket(server, "/socket/news?keep=1000", last="0")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: say(server, f"{i} {text}", keep=1000), range(200, 260)))
    wait_until(lambda: len(slow.seen) >= 260, "all arrive")
    seen = [int(each.split()[0]) for each in slow.seen]
    assert seen[:200] == list(range(200)) and sorted(seen) == list(range(260))


def test_client_that_reads_too_slowly_reconnects_and_misses_nothing(start):
    server = start(top="[DUDA]\n    TopicMemory 64M\n")
    client = Socket(server, "/socket/news?keep=1000")
    text = "x" * 30000
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: say(server, f"{i} {text}", keep=1000), range(300)))
    wait_until(lambda: len(client.seen) >= 300, "all arrive")
    assert sorted(int(each.split()[0]) for each in client.seen) == list(range(300))
    assert set(client.codes) <= {1013}


@pytest.mark.parametrize("path", ["/socket/callbacks", "/callbacks"])
def test_client_that_leaves_during_the_replay_harms_nobody(start, path):
    server = start(workers=1, top="[DUDA]\n    TopicMemory 64M\n")
    text = "x" * 30000
    for i in range(100):
        say(server, f"{i} {text}", "callbacks", keep=1000)
    for how in ("leaves", "detaches", "leaves"):
        with server.connect() as c:
            c.send(f"GET {path}{'?' if '?' not in path else '&'}last_event_id=0 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
            c.read_until(b"message ")
            if how == "detaches":
                c.send(bytes([0x81, 0x85, 0, 0, 0, 0]) + b"leave")
                time.sleep(0.2)
    if path == "/callbacks":
        wait_until(lambda: server.log.count("callback closed") == 3, "its callback is called each time")
    say(server, "after", "callbacks")
    last = Socket(server, path, last="0")
    wait_until(lambda: last.seen and last.seen[-1] == "after", "the server goes on")


def test_message_expires(start):
    server = start()
    first = Socket(server, reconnects=False)
    say(server, "old", seconds=2)
    wait_until(lambda: first.seen == ["old"], "it arrives")
    first.close()
    time.sleep(3.1)
    clients = {last: Socket(server, last=last) for last in ("0", first.last, "1-1")}
    wait_until(lambda: clients["1-1"].seen == ["GAP"], "a client whose position is unknown gets a gap")
    assert clients["0"].seen == clients[first.last].seen == []
    say(server, "new", seconds=2)
    for last, client in clients.items():
        wait_until(lambda c=client: c.seen[-1:] == ["new"], "the new message arrives")
        assert client.seen == (["GAP", "new"] if last == "1-1" else ["new"])
        assert client.codes == []


@pytest.mark.processes("it reloads, and kills workers")
@pytest.mark.parametrize("event", ["reload", "kill"])
def test_no_message_is_lost_or_repeated_while_workers_change(start, event):
    server = start(top="[DUDA]\n    TopicMemory 1M\n")
    server.allow("killed", "signal 9", "ended", "exit")
    clients = [Socket(server, "/socket/a?keep=1000") for _ in range(4)]
    dice, n = random.Random(7), 0
    for _ in range(5):
        for _ in range(20):
            say(server, str(n), "a", keep=1000)
            n += 1
        if event == "reload":
            server.tell(signal.SIGHUP)
        else:
            victim = dice.choice(server.workers)
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda v=victim: v not in server.workers and len(server.workers) >= 3, "it is replaced")
        dice.choice(clients).cut()
    say(server, "end", "a", keep=1000)
    for client in clients:
        wait_until(lambda c=client: c.seen and c.seen[-1] == "end", "the last message arrives")
        assert client.seen == [*numbers(0, n), "end"]


@pytest.mark.skipif(not browser.FOUND, reason="there is no browser")
@pytest.mark.processes("it kills workers")
def test_script_of_the_guide_reconnects_and_misses_nothing(start, tmp_path):
    text = (ROOT / "docs/guide/topics.md").read_text()
    script = re.search(r"```js\n(.*?)```", text, re.DOTALL)[1]
    server = start(workers=1)
    server.allow("killed", "signal 9", "ended", "exit")
    with browser.Browser(tmp_path) as page:
        page.goto(server.url + "/")
        page.run("document.body.textContent = ''")
        page.run(f"(0, eval)({json.dumps(script)}), window.gaps = 0, window.seen = [], "
                 "connect('/socket/news'.replace(/^/, location.origin.replace(/^http/, 'ws')), text => seen.push(text), () => gaps++), 0")
        opened = Socket(server)
        wait_until(lambda: say(server, "-") or page.run("seen.length"), "the script is connected")
        page.run("seen.length = 0, 0")
        for i in numbers(0, 20):
            if i in ("5", "15"):
                victim = server.workers[0]
                os.kill(victim, signal.SIGKILL)
                wait_until(lambda v=victim: server.workers and v not in server.workers, "the worker is replaced")
            say(server, i)
        page.wait_for("seen.filter(text => text != '-').join() == " + json.dumps(",".join(numbers(0, 20))))
        assert page.run("gaps") == 0
        opened.close()


@pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM, reason="there is no redis-server")
def test_client_continues_at_another_server_when_redis_keeps_the_messages(monkey, service):
    with_relay = []
    redis = redis_server.Redis()
    try:
        for _ in range(2):
            server = monkey(plugins=[service, "duda-redis"], workers=2,
                            top=f"[REDIS]\n    Server unix:{redis.socket}\n    Timeout 2s\n    TopicRelay town\n")
            server.allow("redis", "REDIS", "news GET", "news POST", "POST /say", "callback closed")
            with_relay.append(server)
        wait_until(lambda: redis.ask("PUBSUB", "NUMSUB", "!duda:topics:town").endswith(b":4\r\n"), "all workers are subscribed")
        first, second = with_relay
        for path in ("/socket/callbacks", "/callbacks"):
            begin = 0 if path != "/callbacks" else 100
            client = Socket(first, path)
            for i in numbers(begin, begin + 5):
                say(second, i, "callbacks")
            wait_until(lambda c=client, b=begin: c.seen == numbers(b, b + 5), "they arrive")
            client.server = second
            client.cut()
            for i in numbers(begin + 5, begin + 20):
                say(first, i, "callbacks")
            wait_until(lambda c=client, b=begin: c.seen == numbers(b, b + 20), "the other server sends what it missed")
            redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
            for i in numbers(begin + 20, begin + 30):
                say(first, i, "callbacks")
            wait_until(lambda c=client, b=begin: c.seen == numbers(b, b + 30), "none is lost when the connection to Redis breaks")
            client.close()
        say(first, "old", "short", seconds=1)
        time.sleep(2.2)
        late = Socket(second, "/socket/short?seconds=1", last="0")
        say(first, "new", "short", seconds=1)
        wait_until(lambda: late.seen == ["new"], "the old message has expired")
        assert late.codes == []
        longest = 2**32 - 1
        always = Socket(second, f"/socket/long?seconds={longest}", last="0")
        for i in numbers(0, 5):
            say(first, i, "long", seconds=longest)
        wait_until(lambda: always.seen == numbers(0, 5), "a long time is no error")
        assert always.codes == []
        assert Socket(first, f"/socket/long?seconds={longest}", last="0").codes == []
    finally:
        redis.stop()
