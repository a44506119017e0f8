# SPDX-License-Identifier: Apache-2.0
"""Too many connections, too few descriptors, thousands that are idle: the server stays itself."""
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
    """Connections that are kept open."""

    def __init__(self, server):
        super().__init__()
        self.server = server

    def add(self, n=1, which=0, ask=True, **how):
        """More of them, each of which has had an answer."""
        added = [self.enter_context(self.server.connect(which, **how)) for _ in range(n)]
        for c in added if ask else ():
            assert c.get("/").text == "hello"
        return added


def is_reset(server, which=0):
    """A connection that asks and is thrown away."""
    try:
        with server.connect(which) as c:
            c.get("/")
    except (Closed, ConnectionError):
        return True
    return False


def test_too_many_are_dropped(start):
    server = start("MaxConnections 4\nOverCapacity Drop")
    with Crowd(server) as crowd:
        held = crowd.add(4)
        for _ in range(20):
            assert is_reset(server)
        assert [c.get("/").text for c in held] == ["hello"] * 4
        held[0].close()
        wait_until(lambda: not is_reset(server), "room for another one")


@pytest.mark.over("h1", why="over TLS nothing can be told before the handshake")
@pytest.mark.http1
def test_excess_clients_get_an_answer(start):
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

        wait_until(answered, "room for another one")


@pytest.mark.over("h1", "h2", why="a handshake would wait for the stopped or full worker")
def test_too_many_wait_their_turn(start):
    server = start("MaxConnections 4\nOverCapacity Resist")
    with Crowd(server) as crowd:
        held, waiting = crowd.add(4), crowd.add(20, ask=False)
        for c in waiting:
            c.ask("/").sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            waiting[0].fill()
        cpu = cpu_seconds(server.workers[0])
        time.sleep(0.5)
        assert cpu_seconds(server.workers[0]) - cpu < 0.25, "it spins"
        for c in held + waiting:  # each that ends lets another one in
            c.sock.settimeout(SECONDS)
            if c in waiting:
                assert c.read().text == "hello"
            c.close()


@pytest.mark.http1
def test_they_are_counted_right_for_ever(start):
    """However connections end: a counter that drifts would close the server in the end."""
    server = start("MaxConnections 4\nOverCapacity Drop\nTimeout 100ms\nKeepAliveTimeout 100ms\nLingerTimeout 100ms")
    pieces = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET", b"nonsense\r\n\r\n",
              b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"]
    for turn in range(200):
        with contextlib.suppress(OSError), server.connect() as c:
            c.send(pieces[turn % 5])
            if turn % 4 == 0:
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    time.sleep(0.3)

    def four_fit():
        with Crowd(server) as crowd, contextlib.suppress(Closed, OSError):
            crowd.add(4)
            return is_reset(server)

    wait_until(four_fit, "four connections, and not five")


def test_the_limit_is_shared_by_the_workers(start):
    server = start("MaxConnections 8\nOverCapacity Drop", workers=4)
    with Crowd(server) as crowd:
        open_now = 0
        for _ in range(200):
            with contextlib.suppress(Closed, OSError):
                crowd.add()
                open_now += 1
        assert open_now == 8


# One address

def client_at(server, address):
    return server.connect(source=address)


def test_connections_of_one_address(start):
    server = start("MaxConnectionsPerAddress 2\nOverCapacity Drop")
    with Crowd(server) as crowd:
        held = crowd.add(2)
        assert is_reset(server)
        with client_at(server, "127.0.0.2") as other:
            assert other.get("/").text == "hello"
        held[0].close()
        wait_until(lambda: not is_reset(server), "room for another one")


@pytest.mark.over("h1", why="over TLS nothing can be told before the handshake")
@pytest.mark.http1
@pytest.mark.parametrize("overcapacity", ["TooBusy", "Resist"])
def test_an_address_over_its_limit_is_refused(start, overcapacity):
    """It is not the server that is full: waiting for room would make it so."""
    server = start(f"MaxConnectionsPerAddress 2\nOverCapacity {overcapacity}")
    with Crowd(server) as crowd:
        held = crowd.add(2)
        with server.connect() as c:
            reply = c.ask("/").read_until(b"\r\n\r\n")
            assert reply.startswith(b"HTTP/1.1 429 ") and b"\r\nRetry-After: " in reply
            c.expect_end()
        assert [c.get("/").text for c in held] == ["hello"] * 2


def test_many_addresses_are_distinguished(start):
    server = start("MaxConnectionsPerAddress 1\nOverCapacity Drop")
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            clients = [stack.enter_context(client_at(server, f"127.0.{i // 250}.{1 + i % 250}")) for i in range(300)]
            assert all(c.get("/").text == "hello" for c in clients)
            for c in clients:
                c.close()
            wait_until(lambda: not is_reset(server), "they are all gone")
            time.sleep(0.05)


@pytest.mark.over("h1", "h2", why="a unix socket is not encrypted")
def test_unix_sockets_have_no_address(start, tmp_path):
    server = start("MaxConnectionsPerAddress 1\nOverCapacity Drop", listen=f"unix:{tmp_path}/socket")
    with Crowd(server) as crowd:
        crowd.add(20)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_an_ipv6_client_is_its_network(start):
    try:
        server = start("MaxConnectionsPerAddress 2\nOverCapacity Drop", listen="[::1]:0")
    except AssertionError:
        pytest.skip("no ::1 here")
    with Crowd(server) as crowd:
        held = crowd.add(2)
        assert is_reset(server)
        held[0].close()
        wait_until(lambda: not is_reset(server), "room for another one")


# Few descriptors

@pytest.mark.over("h1", "h2", why="a handshake would wait for the stopped or full worker")
@pytest.mark.parametrize("overcapacity", ["Drop", "Resist", "TooBusy"])
@pytest.mark.parametrize("limit", [20, 40, 64])
def test_at_its_last_descriptor_it_sheds_load_and_does_not_spin(start, overcapacity, limit):
    server = start(f"FDLimit {limit}\nOverCapacity {overcapacity}\nInlineFileMax 0\nKeepAliveTimeout 10s")
    with Crowd(server) as crowd:
        for _ in range(100):
            with contextlib.suppress(OSError):
                crowd.add(ask=False)[0].ask("/")
        worker = server.workers[0]
        time.sleep(0.2)
        cpu = cpu_seconds(worker)
        time.sleep(0.5)
        assert cpu_seconds(worker) - cpu < 0.25, "it spins"
    assert server.workers == [worker]

    def serves():
        with contextlib.suppress(Closed, OSError), server.connect() as c:
            return c.get("/").status == 200

    wait_until(serves, "an answer, once the others are gone")


def test_files_give_way_to_connections(start, site):
    """Idle files in the cache hold descriptors that a new connection needs."""
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
    """How many files of the site the first worker keeps open."""
    links = [os.readlink(link) for link in pathlib.Path(f"/proc/{server.workers[0]}/fd").iterdir() if link.is_symlink()]
    return sum(link.startswith(f"{site.path}/") for link in links)


def test_files_have_the_descriptors_that_connections_leave(start, site):
    for i in range(200):
        site.add(f"{i}", b"x" * 20000)
    server = start("FDLimit 200\nOpenFileCacheTTL 1h\nOverCapacity Resist")
    for i in range(200):
        assert server.get(f"/{i}").status == 200
    alone = open_files(server, site)
    assert 90 < alone <= 150, "three quarters of what the server itself leaves"
    with Crowd(server) as crowd:
        crowd.add(60)
        # Not one for each connection: some descriptors were free, how many depends on those of the server itself.
        assert 0 < open_files(server, site) <= alone - 30, "the files gave way"


def test_a_limit_above_the_hard_one_is_said(start):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = start(f"FDLimit {2**31}")
    assert server.get("/").text == "hello"
    if f"FDLimit {2**31}: " in server.err.text:
        assert f"it stays at {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}" in server.err.text
    else:
        assert hard >= 2**31


# Many that are idle, many that are slow: the optimised program, whose memory is what it is

@pytest.fixture
def optimised(start):
    return lambda server, **how: start(server, program=RELEASE, **how)


IDLE = {"h1": 512, "h1-tls": 17 * 1024, "h2": 2560, "h2-tls": 18 * 1024}  # bytes


def test_thousands_of_idle_connections_cost_little(optimised):
    server = optimised("KeepAliveTimeout 1m\nMaxConnections 20000")
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
def test_slow_heads_cost_what_they_have_sent(optimised):
    server = optimised("Timeout 1m")
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
def test_slow_readers_that_ask_and_ask_cost_a_bounded_part(optimised, site):
    """A pipeline of answers that the client does not read: what the socket does not hold is not made."""
    site.add("page", b"x" * 8000)
    server = optimised("MinRate off\nKeepAliveRequests unlimited")
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


def test_memory_is_given_back(optimised, site):
    """Not more after the tenth crowd than after the first."""
    server = optimised("KeepAliveTimeout 1m")
    sizes = []
    for _ in range(6):
        with Crowd(server) as crowd:
            crowd.add(500)
            sizes.append(memory_kb(server.workers[0]))
    assert sizes[-1] < sizes[1] + 500, sizes
