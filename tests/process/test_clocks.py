# SPDX-License-Identifier: Apache-2.0
"""Every wait has a timeout. A busy machine may delay a timeout, so the tests check only that none fires too early."""
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
    """Returns the number of the worker's connections: all its sockets except two listeners and the socket to the master."""
    return sum(path.startswith("socket:") for path in descriptors(server.workers[0]).values()) - 3


@pytest.mark.http1
def test_header_timeout_applies_to_whole_head(start):
    """Bytes that trickle in do not extend the timeout."""
    server = start("Timeout 400ms")
    with server.connect() as c:
        began = time.monotonic()
        c.send(b"GET / HTTP/1.1\r\nX: ")
        c.sock.settimeout(0.03)
        while True:
            assert time.monotonic() - began < 20, "the timeout was postponed"
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
def test_header_timeout_starts_with_first_byte_of_next_request(start):
    server = start("Timeout 400ms\nKeepAliveTimeout 20s")
    with server.connect() as c:
        assert c.get("/").status == 200
        time.sleep(0.6)  # longer than Timeout, but between requests KeepAliveTimeout applies
        began = time.monotonic()
        c.send(b"G")
        assert c.read().status == 408
        assert time.monotonic() - began >= 0.4


@pytest.mark.http1
@pytest.mark.parametrize("listener", [0, 1], ids=["tcp", "unix"])
def test_silent_connection_closes_without_response(start, listener):
    """Browsers open connections in advance, and would mistake a 408 for the response to their next request."""
    server = start("Timeout 200ms\nKeepAliveTimeout 200ms")
    with server.connect(listener) as c:
        c.expect_end()


def test_idle_connection_closes_without_response(start):
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


# Minimum rates

@pytest.mark.http1
def test_min_rate_cuts_off_missing_body(start):
    server = start("MinRate 1000\nMinRateInterval 1s")
    with server.connect() as c:
        began = time.monotonic()
        c.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
        assert c.read().status == 405
        with pytest.raises(ConnectionResetError):
            c.expect_end()
        assert time.monotonic() - began >= 1


@pytest.mark.http1
def test_min_rate_cuts_off_trickling_body(start):
    """The client sends ten bytes a second, where MinRate requires a thousand."""
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
def test_min_rate_accepts_fast_enough_body(start):
    server = start("MinRate 100\nMinRateInterval 1s")
    with server.connect() as c:
        c.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n")
        assert c.read().status == 405
        for _ in range(30):
            c.send(b"x" * 1000)
            time.sleep(0.1)
        assert c.get("/").text == "hello"


@pytest.mark.parametrize("listener", [0, 1], ids=["tcp", "unix"])
def test_min_rate_cuts_off_client_that_does_not_read(start, site, tmp_path, listener):
    site.add("big", bytes(64 << 20))
    server = start("MinRate 1000\nMinRateInterval 1s\nAccessLog log\nAccessLogFormat json")
    with server.connect(listener, receive_buffer=4096) as c:
        c.ask("/big")
        wait_until(lambda: connections(server) == 1, "the connection")
        wait_until(lambda: connections(server) == 0, "the end of the connection")
        with pytest.raises((ConnectionError, Closed)):
            c.read()
    server.stop()
    assert '"outcome":"timeout"' in (tmp_path / "log").read_text()


def test_min_rate_of_one_cuts_off_client_that_does_not_read(start, site):
    """The server disconnects a client that reads nothing."""
    site.add("big", bytes(64 << 20))
    server = start("MinRate 1\nMinRateInterval 1s")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        wait_until(lambda: connections(server) == 1, "the connection")
        wait_until(lambda: connections(server) == 0, "the end of the connection")


@pytest.mark.http1
def test_min_rate_applies_to_small_pipelined_responses(start, site):
    """The client pipelines requests without reading the small responses: once they fill the socket buffer, MinRate applies."""
    site.add("page", b"x" * 4000)
    server = start("MinRate 1000\nMinRateInterval 1s\nKeepAliveRequests unlimited")
    with server.connect(receive_buffer=4096) as c:
        c.sock.settimeout(20)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while True:
                c.send(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
    assert server.get("/").text == "hello"


def test_min_rate_accepts_slow_but_sufficient_reader(start, site):
    """MinRate counts the bytes that the client reads, not the moments when the kernel has space: the client reads 40 KB a second,
    where MinRate requires 5 KB."""
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


def test_min_rate_off_allows_stalled_reader(start, site):
    site.add("big", bytes(16 << 20))
    server = start("MinRate off\nMinRateInterval 1s\nKeepAliveTimeout 100ms\nTimeout 100ms\nLingerTimeout 100ms")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        c.begin()
        time.sleep(2)
        assert connections(server) == 1
        assert len(c.read().body) == 16 << 20


# The last response

@pytest.mark.http1
def test_lingering_close_lets_sending_client_read_last_response(start):
    """If the server closed at once, it would reset the connection and so discard the response."""
    server = start("LingerTimeout 20s\nMaxBodySize 1K")
    with server.connect() as c:
        c.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n")
        for _ in range(50):
            c.send(b"x" * 10000)
        reply = c.read()
        assert reply.status == 413 and reply.closes
        assert connections(server) == 1, "the server lingers"
        c.shut().expect_end()
        wait_until(lambda: connections(server) == 0, "the close as soon as both sides are done")


@pytest.mark.http1
def test_lingering_close_waits_limited_time_for_client(start):
    server = start("LingerTimeout 300ms")
    with server.connect() as c:
        began = time.monotonic()
        assert c.send(b"nonsense\r\n\r\n").read().status == 400
        c.expect_end()
        wait_until(lambda: connections(server) == 0, "the close")
        assert time.monotonic() - began >= 0.3


@pytest.mark.http1
def test_lingering_close_reads_limited_time(start):
    server = start("LingerTimeout 300ms")
    with server.connect() as c:
        assert c.send(b"nonsense\r\n\r\n").read().status == 400
        end = time.monotonic() + 20
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while time.monotonic() < end:
                c.send(b"x" * 100)
                time.sleep(0.01)


@pytest.mark.http1
def test_timers_of_closed_connections_do_nothing(start):
    """The client abandons hundreds of short connections in different states."""
    server = start("Timeout 100ms\nKeepAliveTimeout 100ms\nLingerTimeout 100ms\nMinRateInterval 1s")
    pieces = [b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"nonsense\r\n\r\n",
              b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"]
    for round_ in range(300):
        with contextlib.suppress(OSError), server.connect(round_ % 2) as c:  # a handshake may exceed its timeout
            c.send(pieces[round_ % 5])
            if round_ % 3 == 0:
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    wait_until(lambda: connections(server) == 0, "the close of all connections")
    assert server.get("/").text == "hello"
