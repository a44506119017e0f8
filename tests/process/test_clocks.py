# SPDX-License-Identifier: Apache-2.0
"""Every wait has a clock. Nothing here is measured but that no clock runs out too early."""
import contextlib
import socket
import time

import pytest

from client import Closed
from proc import descriptors, wait_until


@pytest.fixture
def start(monkey, site, tmp_path):
    site.add("index.html", "hello")
    return lambda server, **how: monkey(server=server, listen=["127.0.0.1:0", f"unix:{tmp_path}/socket"], **how)


def connections(server):
    """How many the worker holds, besides its two listeners and its line to the master."""
    return sum(path.startswith("socket:") for path in descriptors(server.workers[0]).values()) - 3


@pytest.mark.http1
def test_a_head_must_be_whole_in_time(start):
    """Bytes that trickle in do not put it off."""
    server = start("Timeout 400ms")
    with server.connect() as c:
        began = time.monotonic()
        c.send(b"GET / HTTP/1.1\r\nX: ")
        c.sock.settimeout(0.03)
        while True:
            assert time.monotonic() - began < 20, "it is put off"
            try:
                if not c.fill():
                    break
                if b"\r\n\r\n" in c.got:
                    break
            except TimeoutError:
                c.send(b"x")
        assert time.monotonic() - began >= 0.4, "too early"
        c.sock.settimeout(20)
        reply = c.read()
        assert reply.status == 408 and reply.closes
        c.shut().expect_end()


@pytest.mark.http1
def test_a_later_head_has_as_much_time_from_its_first_byte(start):
    server = start("Timeout 400ms\nKeepAliveTimeout 20s")
    with server.connect() as c:
        assert c.get("/").status == 200
        time.sleep(0.6)  # longer than Timeout: between requests another clock runs
        began = time.monotonic()
        c.send(b"G")
        assert c.read().status == 408
        assert time.monotonic() - began >= 0.4


@pytest.mark.http1
@pytest.mark.parametrize("which", [0, 1], ids=["tcp", "unix"])
def test_a_connection_that_says_nothing_gets_no_answer(start, which):
    """Browsers open them in advance: an answer would be taken for one to what they ask next."""
    server = start("Timeout 200ms\nKeepAliveTimeout 200ms")
    with server.connect(which) as c:
        c.expect_end()


def test_an_idle_connection_is_closed_without_an_answer(start):
    server = start("KeepAliveTimeout 1s\nTimeout 20s")
    with server.connect() as c:
        began = time.monotonic()
        for _ in range(3):
            assert not c.get("/").closes
            time.sleep(0.35)
        before = time.monotonic()
        c.get("/")
        c.expect_end()
        assert time.monotonic() - before >= 1 and time.monotonic() - began >= 2
    assert server.get("/").text == "hello"


# Too slow

@pytest.mark.http1
def test_content_that_does_not_come(start):
    server = start("MinRate 1000\nMinRateInterval 1s")
    with server.connect() as c:
        began = time.monotonic()
        c.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
        assert c.read().status == 405
        with pytest.raises(ConnectionResetError):
            c.expect_end()
        assert time.monotonic() - began >= 1


@pytest.mark.http1
def test_content_that_trickles(start):
    """Ten bytes a second, where a thousand are wanted."""
    server = start("MinRate 1000\nMinRateInterval 1s")
    with server.connect() as c:
        began = time.monotonic()
        c.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        assert c.read().status == 405
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while time.monotonic() - began < 20:
                c.send(b"x")
                time.sleep(0.1)


@pytest.mark.http1
def test_content_that_comes_fast_enough(start):
    server = start("MinRate 100\nMinRateInterval 1s")
    with server.connect() as c:
        c.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n")
        assert c.read().status == 405
        for _ in range(30):
            c.send(b"x" * 1000)
            time.sleep(0.1)
        assert c.get("/").text == "hello"


@pytest.mark.parametrize("which", [0, 1], ids=["tcp", "unix"])
def test_a_reader_that_does_not_read(start, site, tmp_path, which):
    site.add("big", bytes(64 << 20))
    server = start("MinRate 1000\nMinRateInterval 1s\nAccessLog log\nAccessLogFormat json")
    with server.connect(which, receive_buffer=4096) as c:
        c.ask("/big")
        wait_until(lambda: connections(server) == 1, "the connection")
        wait_until(lambda: connections(server) == 0, "its end")
        with pytest.raises((ConnectionError, Closed)):
            c.read()
    server.stop()
    assert '"end":"timeout"' in (tmp_path / "log").read_text()


def test_the_lowest_rate_is_one(start, site):
    """A client that reads nothing is cut off all the same."""
    site.add("big", bytes(64 << 20))
    server = start("MinRate 1\nMinRateInterval 1s")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        wait_until(lambda: connections(server) == 1, "the connection")
        wait_until(lambda: connections(server) == 0, "its end")


@pytest.mark.http1
def test_a_reader_of_small_answers_that_does_not_read(start, site):
    """Pipelined requests whose answers fill the socket."""
    site.add("page", b"x" * 4000)
    server = start("MinRate 1000\nMinRateInterval 1s\nKeepAliveRequests unlimited")
    with server.connect(receive_buffer=4096) as c:
        c.sock.settimeout(20)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while True:
                c.send(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
    assert server.get("/").text == "hello"


def test_a_slow_reader_that_takes_what_it_must_is_served(start, site):
    """What counts is what it takes, not when the kernel has room for more: 40 KB a second, where 5 are wanted."""
    data = bytes(range(256)) * 4096
    site.add("big", data)
    server = start("MinRate 5K\nMinRateInterval 1s")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        assert int(c.read_head()["Content-Length"]) == len(data)
        got, began = b"", time.monotonic()
        while time.monotonic() - began < 5:
            got += c.read_exactly(4096)
            time.sleep(0.1)
        assert got + c.read_exactly(len(data) - len(got)) == data


def test_no_rate_is_wanted(start, site):
    site.add("big", bytes(16 << 20))
    server = start("MinRate off\nMinRateInterval 1s\nKeepAliveTimeout 100ms\nTimeout 100ms\nLingerTimeout 100ms")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        c.begin()
        time.sleep(2)
        assert connections(server) == 1
        assert len(c.read().body) == 16 << 20


# The last answer

@pytest.mark.http1
def test_a_client_that_still_sends_can_read_the_last_answer(start):
    """Closing at once would reset the connection, and the answer with it."""
    server = start("LingerTimeout 20s\nMaxBodySize 1K")
    with server.connect() as c:
        c.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n")
        for _ in range(50):
            c.send(b"x" * 10000)
        reply = c.read()
        assert reply.status == 413 and reply.closes
        assert connections(server) == 1, "it lingers"
        c.shut().expect_end()
        wait_until(lambda: connections(server) == 0, "the end, as soon as both are done")


@pytest.mark.http1
def test_the_wait_for_the_clients_close_is_limited(start):
    server = start("LingerTimeout 300ms")
    with server.connect() as c:
        began = time.monotonic()
        assert c.send(b"nonsense\r\n\r\n").read().status == 400
        c.expect_end()
        wait_until(lambda: connections(server) == 0, "the end")
        assert time.monotonic() - began >= 0.3


@pytest.mark.http1
def test_reading_from_a_refused_client_is_limited(start):
    server = start("LingerTimeout 300ms")
    with server.connect() as c:
        assert c.send(b"nonsense\r\n\r\n").read().status == 400
        end = time.monotonic() + 20
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while time.monotonic() < end:
                c.send(b"x" * 100)
                time.sleep(0.01)


@pytest.mark.http1
def test_clocks_of_connections_that_are_gone_do_nothing(start):
    """Thousands that come and go at once, in all the states that they can be left in."""
    server = start("Timeout 100ms\nKeepAliveTimeout 100ms\nLingerTimeout 100ms\nMinRateInterval 1s")
    pieces = [b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"nonsense\r\n\r\n",
              b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"]
    for turn in range(300):
        with contextlib.suppress(OSError), server.connect(turn % 2) as c:  # a handshake may be too slow for its clock
            c.send(pieces[turn % 5])
            if turn % 3 == 0:
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    wait_until(lambda: connections(server) == 0, "the end of them all")
    assert server.get("/").text == "hello"
