# SPDX-License-Identifier: Apache-2.0
"""Too many connections, too few descriptors, thousands of idle connections: the server continues to work."""
import contextlib
import os
import pathlib
import resource
import socket
import time

import pytest

from client import Closed
from monkey import SECONDS
from proc import RELEASE, cpu_seconds, memory_kb, wait_until


@pytest.fixture
def start(monkey, site):
    site.add("index.html", "hello")
    return lambda server, **how: monkey(server=server, **how)


class Crowd(contextlib.ExitStack):
    """A group of connections that stay open."""

    def __init__(self, server):
        super().__init__()
        self.server = server

    def add(self, n=1, listener=0, ask=True, **how):
        """Opens more connections; each of them receives a response."""
        added = [self.enter_context(self.server.connect(listener, **how)) for _ in range(n)]
        for c in added if ask else ():
            assert c.get("/").text == "hello"
        return added


def is_reset(server, listener=0):
    """Does the server reset a connection that sends a request?"""
    try:
        with server.connect(listener) as c:
            c.get("/")
    except (Closed, ConnectionError):
        return True
    return False


def test_max_connections_drop_resets_excess_clients(start):
    server = start("MaxConnections 4\nOverCapacity Drop")
    with Crowd(server) as crowd:
        held = crowd.add(4)
        for _ in range(20):
            assert is_reset(server)
        assert [c.get("/").text for c in held] == ["hello"] * 4
        held[0].close()
        wait_until(lambda: not is_reset(server), "a free connection")


@pytest.mark.over("h1", why="over TLS nothing can be told before the handshake")
@pytest.mark.http1
def test_max_connections_too_busy_answers_excess_clients(start):
    server = start("MaxConnections 4\nOverCapacity TooBusy")
    with Crowd(server) as crowd:
        held = crowd.add(4)
        for _ in range(20):
            with server.connect() as c:
                reply = c.ask("/").read_until(b"\r\n\r\n")
                assert reply.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in reply
                c.expect_end()
        held[0].close()

        def answered():
            with server.connect() as c:
                return b" 200 " in c.ask("/").read_until(b"\r\n")

        wait_until(answered, "a free connection")


@pytest.mark.over("h1", "h2", why="a handshake would wait for the stopped or full worker")
def test_max_connections_resist_queues_excess_clients(start):
    server = start("MaxConnections 4\nOverCapacity Resist")
    with Crowd(server) as crowd:
        held, waiting = crowd.add(4), crowd.add(20, ask=False)
        for c in waiting:
            c.ask("/").sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            waiting[0].fill()
        cpu = cpu_seconds(server.workers[0])
        time.sleep(0.5)
        assert cpu_seconds(server.workers[0]) - cpu < 0.25, "the worker does not spin"
        for c in held + waiting:  # each connection that closes admits another one
            c.sock.settimeout(SECONDS)
            if c in waiting:
                assert c.read().text == "hello"
            c.close()


@pytest.mark.http1
def test_max_connections_counter_never_drifts(start):
    """The counter must be correct however connections end: if it drifted, it would eventually lock all clients out."""
    server = start("MaxConnections 4\nOverCapacity Drop\nTimeout 100ms\nKeepAliveTimeout 100ms\nLingerTimeout 100ms")
    pieces = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET", b"nonsense\r\n\r\n",
              b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"]
    for round_ in range(200):
        with contextlib.suppress(OSError), server.connect() as c:
            c.send(pieces[round_ % 5])
            if round_ % 4 == 0:
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    time.sleep(0.3)

    def four_fit():
        with Crowd(server) as crowd, contextlib.suppress(Closed, OSError):
            crowd.add(4)
            return is_reset(server)

    wait_until(four_fit, "four connections, and not five")


def test_max_connections_is_shared_by_all_workers(start):
    server = start("MaxConnections 8\nOverCapacity Drop", workers=4)
    with Crowd(server) as crowd:
        open_now = 0
        for _ in range(200):
            with contextlib.suppress(Closed, OSError):
                crowd.add()
                open_now += 1
        assert open_now == 8


# Limit per address

def client_at(server, address):
    return server.connect(source=address)


def test_max_connections_per_address_limits_one_client(start):
    server = start("MaxConnectionsPerAddress 2\nOverCapacity Drop")
    with Crowd(server) as crowd:
        held = crowd.add(2)
        assert is_reset(server)
        with client_at(server, "127.0.0.2") as other:
            assert other.get("/").text == "hello"
        held[0].close()
        wait_until(lambda: not is_reset(server), "a free connection")


@pytest.mark.over("h1", why="over TLS nothing can be told before the handshake")
@pytest.mark.http1
@pytest.mark.parametrize("overcapacity", ["TooBusy", "Resist"])
def test_max_connections_per_address_always_refuses_at_once(start, overcapacity):
    """Only this address has reached its limit: if its clients were queued, they would use up the connections of all others."""
    server = start(f"MaxConnectionsPerAddress 2\nOverCapacity {overcapacity}")
    with Crowd(server) as crowd:
        held = crowd.add(2)
        with server.connect() as c:
            reply = c.ask("/").read_until(b"\r\n\r\n")
            assert reply.startswith(b"HTTP/1.1 429 ") and b"\r\nRetry-After: " in reply
            c.expect_end()
        assert [c.get("/").text for c in held] == ["hello"] * 2


def test_max_connections_per_address_distinguishes_many_addresses(start):
    server = start("MaxConnectionsPerAddress 1\nOverCapacity Drop")
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            clients = [stack.enter_context(client_at(server, f"127.0.{i // 250}.{1 + i % 250}")) for i in range(300)]
            assert all(c.get("/").text == "hello" for c in clients)
            for c in clients:
                c.close()
            wait_until(lambda: not is_reset(server), "all connections are closed")
            time.sleep(0.05)


@pytest.mark.over("h1", "h2", why="a unix socket is not encrypted")
def test_max_connections_per_address_ignores_unix_sockets(start, tmp_path):
    server = start("MaxConnectionsPerAddress 1\nOverCapacity Drop", listen=f"unix:{tmp_path}/socket")
    with Crowd(server) as crowd:
        crowd.add(20)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_max_connections_per_address_counts_ipv6_networks(start):
    try:
        server = start("MaxConnectionsPerAddress 2\nOverCapacity Drop", listen="[::1]:0")
    except AssertionError:
        pytest.skip("no ::1 here")
    with Crowd(server) as crowd:
        held = crowd.add(2)
        assert is_reset(server)
        held[0].close()
        wait_until(lambda: not is_reset(server), "a free connection")


# Few descriptors

@pytest.mark.over("h1", "h2", why="a handshake would wait for the stopped or full worker")
@pytest.mark.parametrize("overcapacity", ["Drop", "Resist", "TooBusy"])
@pytest.mark.parametrize("limit", [20, 40, 64])
def test_descriptor_limit_reached_sheds_load_without_spinning(start, overcapacity, limit):
    server = start(f"FDLimit {limit}\nOverCapacity {overcapacity}\nInlineFileMax 0\nKeepAliveTimeout 10s")
    with Crowd(server) as crowd:
        for _ in range(100):
            with contextlib.suppress(OSError):
                crowd.add(ask=False)[0].ask("/")
        worker = server.workers[0]
        time.sleep(0.2)
        cpu = cpu_seconds(worker)
        time.sleep(0.5)
        assert cpu_seconds(worker) - cpu < 0.25, "the worker does not spin"
    assert server.workers == [worker]

    def serves():
        with contextlib.suppress(Closed, OSError), server.connect() as c:
            return c.get("/").status == 200

    wait_until(serves, "a response once the other connections are closed")


def test_file_cache_gives_descriptors_to_connections(start, site):
    """A new connection needs the descriptors of idle cached files, so the server closes these files."""
    for i in range(200):
        site.add(f"{i}", b"x" * 20000)
    server = start("FDLimit 64\nOpenFileCacheTTL 1h\nOverCapacity Resist")
    for i in range(200):
        assert server.get(f"/{i}").status == 200
    with Crowd(server) as crowd:
        crowd.add(15)
        for i in range(200):
            assert server.get(f"/{i}").status in (200, 503)


def open_files(server, site):
    """Returns the number of the site's files that the first worker holds open."""
    links = [os.readlink(link) for link in pathlib.Path(f"/proc/{server.workers[0]}/fd").iterdir() if link.is_symlink()]
    return sum(link.startswith(f"{site.path}/") for link in links)


def test_file_cache_uses_descriptors_that_connections_leave(start, site):
    for i in range(200):
        site.add(f"{i}", b"x" * 20000)
    server = start("FDLimit 200\nOpenFileCacheTTL 1h\nOverCapacity Resist")
    for i in range(200):
        assert server.get(f"/{i}").status == 200
    alone = open_files(server, site)
    assert 90 < alone <= 150, "three quarters of the descriptors that the server itself leaves"
    with Crowd(server) as crowd:
        crowd.add(60)
        # The server closes less than one cached file per connection: some descriptors were free, and their number depends on the
        # server's own descriptors.
        assert 0 < open_files(server, site) <= alone - 30, "cached files were closed"


def test_fdlimit_above_hard_limit_is_logged(start):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = start(f"FDLimit {2**31}")
    assert server.get("/").text == "hello"
    if f"FDLimit {2**31}: " in server.err.text:
        assert f"it stays at {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}" in server.err.text
    else:
        assert hard >= 2**31


# Many idle or slow clients: the release program, without the memory overhead of sanitizers

@pytest.fixture
def optimized(start):
    return lambda server, **how: start(server, program=RELEASE, **how)


IDLE = {"h1": 512, "h1-tls": 17 * 1024, "h2": 2560, "h2-tls": 18 * 1024}  # bytes per connection


def test_idle_connections_cost_little_memory(optimized):
    server = optimized("KeepAliveTimeout 1m\nMaxConnections 20000")
    n = min(3000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
    with Crowd(server) as crowd:
        crowd.add(100)
        before = memory_kb(server.workers[0])
        clients = crowd.add(n)
        grown = (memory_kb(server.workers[0]) - before) * 1024
        assert grown < n * IDLE[server.protocol], f"{grown / n:.0f} bytes each"
        for c in clients[::10]:
            assert c.get("/").text == "hello"
        assert server.get("/").text == "hello"


@pytest.mark.http1
def test_slow_heads_cost_only_received_bytes(optimized):
    server = optimized("Timeout 1m")
    head = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 4000
    with Crowd(server) as crowd:
        crowd.add(10)
        before = memory_kb(server.workers[0])
        for c in crowd.add(200):
            c.send(head)
        assert server.get("/").text == "hello"
        grown = (memory_kb(server.workers[0]) - before) * 1024
        assert grown < 200 * (3 * len(head) + IDLE[server.protocol]), f"{grown / 200:.0f} bytes each"


@pytest.mark.http1
def test_slow_readers_with_pipelines_cost_bounded_memory(optimized, site):
    """The client pipelines requests and does not read the responses: the server generates only what the socket buffer holds."""
    site.add("page", b"x" * 8000)
    server = optimized("MinRate off\nKeepAliveRequests unlimited")
    requests, n = b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n" * 4000, 50
    with Crowd(server) as crowd:
        crowd.add(1)
        before = memory_kb(server.workers[0])
        for c in crowd.add(n, ask=False, receive_buffer=4096):
            c.sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                c.sock.send(requests)
        for _ in range(3):
            assert server.get("/").text == "hello"
        grown = (memory_kb(server.workers[0]) - before) * 1024
        assert grown < n * 200 * 1024, f"{grown / n:.0f} bytes each"


def test_memory_of_closed_connections_is_reused(optimized, site):
    """Later crowds use no more memory than the first ones."""
    server = optimized("KeepAliveTimeout 1m")
    sizes = []
    for _ in range(6):
        with Crowd(server) as crowd:
            crowd.add(500)
            sizes.append(memory_kb(server.workers[0]))
    assert sizes[-1] < sizes[1] + 500, sizes
