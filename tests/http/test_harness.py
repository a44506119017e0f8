# SPDX-License-Identifier: Apache-2.0
"""What the other tests stand on: that a broken server does not pass for a whole one."""
import os
import signal
import socket
import threading

import pytest

from client import BadReply, Client, Closed

HEAD = b"HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: Monkey\r\n"


@pytest.fixture
def play():
    """A client that talks to a server which says these bytes and no more."""
    listener = socket.create_server(("127.0.0.1", 0))
    clients = []

    def start(data):
        def serve():
            connection, _ = listener.accept()
            connection.sendall(data)
            connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        clients.append(Client(listener.getsockname()))
        thread.join(10)
        return clients[-1]

    yield start
    for client in clients:
        client.close()
    listener.close()


def test_whole_answers_are_read_in_order(play):
    c = play(HEAD + b"Content-Length: 3\r\n\r\none" +
             HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n" + HEAD + b"\r\nthree")
    assert [(r.body, r.framing) for r in (c.read(), c.read(), c.read())] == [
        (b"one", "length"), (b"two", "chunked"), (b"three", "close")]
    c.expect_end()


@pytest.mark.parametrize("data", [
    b"HTTP/1.1 200 OK\nDate: x\n\n",
    b"HTTP/1.1 200 OK\r\nServer: Monkey\r\nContent-Length: 0\r\n\r\n",
    HEAD + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    HEAD + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
    HEAD + b"Broken : x\r\n\r\n",
    HEAD + b"Bro\rken: x\r\n\r\n",
    HEAD.replace(b"200 OK", b"405 No") + b"Content-Length: 0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\ntwoo\r\n0\r\n\r\n",
], ids=["bare LF", "no date", "length twice", "both framings", "blank before colon", "bare CR", "405 without Allow",
        "bad chunk"])
def test_answers_that_break_the_rules_are_seen(play, data):
    with pytest.raises(AssertionError):
        play(data).read()


@pytest.mark.parametrize("data", [HEAD, HEAD + b"Content-Length: 3\r\n\r\non",
                                  HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n"])
def test_answers_that_are_cut_are_seen(play, data):
    with pytest.raises(Closed):
        play(data).read()


def test_more_than_is_due_is_seen(play):
    c = play(HEAD + b"Content-Length: 0\r\n\r\nx")
    c.read()
    with pytest.raises(AssertionError, match="more than was due"):
        c.expect_end()
    assert issubclass(BadReply, AssertionError)


def test_it_serves_and_ends(monkey, site):
    site.add("index.html", "hello")
    server = monkey()
    assert server.get("/").text == "hello"
    assert server.stop() == 0


@pytest.mark.over("h1", why="nothing is asked")
def test_a_worker_that_dies_is_a_bug(monkey):
    server = monkey()
    os.kill(server.workers[0], signal.SIGSEGV)
    server.err.wait_for(r"worker \d+ (died|ended)")
    with pytest.raises(AssertionError, match="a bug was reported"):
        server.stop()
    server.allow(".")


@pytest.mark.over("h1", why="nothing is asked")
def test_a_wrong_exit_code_is_seen(monkey):
    server = monkey(config="nonsense\n", expect_start=False)
    with pytest.raises(AssertionError, match="exit code 3"):
        server.wait()
    server.exit_code = 3
