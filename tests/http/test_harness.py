# SPDX-License-Identifier: Apache-2.0
"""The test harness itself: it must detect a broken server."""
import os
import signal
import socket
import threading

import pytest

from client import BadReply, Client, Closed
from monkey import Output
from proc import computed, wait_until
from starter import check_lasting

HEAD = b"HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: Monkey\r\n"


@pytest.fixture
def play():
    """Connects a client to a server that sends only these bytes."""
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


def test_client_reads_responses_in_order(play):
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
def test_client_detects_protocol_violations(play, data):
    with pytest.raises(AssertionError):
        play(data).read()


@pytest.mark.parametrize("data", [HEAD, HEAD + b"Content-Length: 3\r\n\r\non",
                                  HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n"])
def test_client_detects_truncated_responses(play, data):
    with pytest.raises(Closed):
        play(data).read()


def test_client_detects_extra_bytes(play):
    c = play(HEAD + b"Content-Length: 0\r\n\r\nx")
    c.read()
    with pytest.raises(AssertionError, match="more than was due"):
        c.expect_end()
    assert issubclass(BadReply, AssertionError)


def test_server_starts_serves_and_stops(monkey, site):
    site.add("index.html", "hello")
    server = monkey()
    assert server.get("/").text == "hello"
    assert server.stop() == 0


@pytest.mark.over("h1", why="nothing is asked")
def test_server_fixture_reports_crashed_worker(monkey):
    server = monkey()
    os.kill(server.workers[0], signal.SIGSEGV)
    server.err.wait_for(r"worker \d+ (was killed|ended)")
    with pytest.raises(AssertionError, match="a bug was reported"):
        server.stop()
    server.allow(".")


@pytest.mark.over("h1", why="nothing is asked")
def test_server_fixture_detects_wrong_exit_code(monkey):
    server = monkey(config="nonsense\n", expect_start=False)
    with pytest.raises(AssertionError, match="exit code 3"):
        server.wait()
    server.exit_code = 3


# Observation

@pytest.fixture
def pipe():
    """The write end of a pipe, and the Output that reads from its other end."""
    reading, writing = os.pipe()
    with open(reading, "rb") as read_end, open(writing, "wb", buffering=0) as write_end:
        output = Output(read_end, "the pipe")
        yield write_end, output
        write_end.close()
        assert output.wait_for_end(10)


def test_output_returns_written_text_at_once(pipe):
    write_end, output = pipe
    for n in range(1, 1000):
        write_end.write(b"x")
        assert output.text == "x" * n
    write_end.close()
    assert output.text == "x" * 999 and output.wait_for("x$")


def test_output_accepts_split_characters(pipe):
    write_end, output = pipe
    for byte in "aü€".encode():
        write_end.write(bytes([byte]))
        assert "aü€".startswith(output.text)
    assert output.text == "aü€"


def test_wait_until_retries_until_condition_holds(tmp_path):
    path, looks = tmp_path / "file", []

    def text():
        looks.append(1)
        if len(looks) == 3:
            path.write_text("hello")
        return path.read_text()

    assert wait_until(text, "the file") == "hello" and len(looks) == 3
    with pytest.raises(AssertionError, match="not within 0 s: another one"):
        wait_until(lambda: (tmp_path / "none").read_text(), "another one", 0)


def test_computed_measures_only_the_given_process():
    assert computed(os.getpid(), lambda: sum(range(1_000_000))) > computed(os.getpid(), lambda: None) >= 0


def crash_worker(server):
    os.kill(server.workers[0], signal.SIGSEGV)
    server.err.wait_for(r"worker \d+ (was killed|ended)")


def end(server):
    server.stop()


@pytest.mark.over("h1", why="a server is kept or not whatever its clients speak")
@pytest.mark.parametrize("harm", [crash_worker, end])
def test_lasting_fixture_drops_broken_server(lasting, lasting_starters, harm):
    def prepare(monkey, _):
        return monkey(root=None, sections="[HOST]\n    DocumentRoot .\n")

    key = prepare, "h1"
    server = lasting(prepare)
    assert lasting(prepare) is server
    check_lasting(lasting_starters, key)
    harm(server)
    with pytest.raises(AssertionError, match="a bug was reported|it has ended"):
        check_lasting(lasting_starters, key)
    assert lasting(prepare) is not server
