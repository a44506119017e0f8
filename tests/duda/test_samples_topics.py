# SPDX-License-Identifier: Apache-2.0
"""The topics sample delivers messages to event streams and WebSockets, even across machines."""
import contextlib
import re

import pytest
from websockets.sync.client import connect

import browser
import redis_server
import services
from proc import wait_until
from samples import CAN_RUN, needs, starter

pytestmark = [CAN_RUN, needs("store")]


@pytest.fixture
def start(monkey, tmp_path, tmp_path_factory):
    return starter(monkey, tmp_path, tmp_path_factory)


def open_stream(server, stack, name="news"):
    c = stack.enter_context(server.connect())
    c.send(f"GET /topics/{name}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    c.read_until(b"\r\n\r\n")
    c.read_until(b"\n\n")
    return c


def open_websocket(server, stack, name="news"):
    return stack.enter_context(connect(f"ws://127.0.0.1:{server.port}/topics/{name}/socket", proxy=None))


def receive(socket):
    """Returns the ID and the data of the next message."""
    line, _, data = socket.recv(20).partition("\n")
    assert re.fullmatch(r"(message|start) \d+-\d+", line)
    return line.split(" ")[1], data


def publish(server, text, name="news"):
    assert server.get(f"/topics/{name}", "POST", body=text.encode()).status == 204


def test_topics_sample_stream_that_reconnects_misses_nothing(start):
    server = start("topics")
    with contextlib.ExitStack() as stack:
        stream = open_stream(server, stack)
        publish(server, "one")
        stream.read_until(b"id: ")
        identifier = stream.read_until(b"\n").strip().decode()
    for text in ("two", "three"):
        publish(server, text)
    with server.connect() as again:
        again.send(f"GET /topics/news/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {identifier}\r\n\r\n".encode())
        assert b"data: two\n" in again.read_until(b"data: three\n")


def test_topics_sample_websocket_that_reconnects_misses_nothing(start):
    server = start("topics")
    url = f"ws://127.0.0.1:{server.port}/topics/news/socket"
    with connect(url, proxy=None) as socket:
        receive(socket)
        socket.send("one")
        identifier, text = receive(socket)
        assert text == "one"
    for text in ("two", "three"):
        publish(server, text)
    with connect(f"{url}?last_event_id={identifier}", proxy=None) as socket:
        assert [receive(socket)[1] for _ in range(2)] == ["two", "three"]


def test_topics_sample_reaches_streams_and_websockets(start, tmp_path):
    server = start("topics")
    assert server.get("/topics/news").status == 404
    assert server.get("/topics/" + "x" * 41, "POST", body=b"x").status == 400
    with contextlib.ExitStack() as stack:
        stream, other, socket = open_stream(server, stack), open_stream(server, stack, "weather"), open_websocket(server, stack)
        publish(server, "one")
        socket.send("two")
        assert [receive(socket)[1] for _ in range(3)] == ["", "one", "two"]
        assert b"data: one\n" in stream.read_until(b"data: two\n")
        assert server.get("/topics/news").text == "two"
        publish(server, "rain", "weather")
        other.read_until(b"data: rain\n")
        late = stack.enter_context(server.connect())
        late.send(b"GET /topics/news/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        late.read_until(b"data: two\n")  # a late subscriber gets the most recent message
    if browser.FOUND:
        with browser.Browser(tmp_path) as b:
            b.goto(server.url + "/")
            b.wait_for("document.title == 'connected'")
            publish(server, "<b>bold</b>")
            b.wait_for("document.getElementById('last').textContent == '<b>bold</b>'")


@pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM, reason="there is no Redis here")
def test_topics_sample_reaches_two_machines(start):
    redis = redis_server.start_at_port(lambda port: redis_server.Redis(port=port))
    try:
        one, two = (start("topics", conf={"127.0.0.1:6379": f"127.0.0.1:{redis.port}"}, conf_name="machines") for _ in range(2))
        wait_until(lambda: redis.ask("PUBSUB", "NUMSUB", "!duda:topics:topics").endswith(b":2\r\n"), "both servers are subscribed")
        with contextlib.ExitStack() as stack:
            here, there, socket = open_stream(one, stack), open_stream(two, stack), open_websocket(two, stack)
            publish(one, "everywhere")
            assert [receive(socket)[1] for _ in range(2)] == ["", "everywhere"]
            for stream in (here, there):
                stream.read_until(b"data: everywhere\n")
        assert two.get("/topics/news").text == "everywhere"
    finally:
        redis.stop()
