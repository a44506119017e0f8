# SPDX-License-Identifier: Apache-2.0
"""The crash of a worker affects only its own requests; no worker outlives its master."""
import contextlib
import os
import re
import signal
import time

import pytest

from client import Closed
from load import Load
from proc import children, cpu_seconds, descriptors, name, status, wait_until

pytestmark = pytest.mark.over("h1", "h2-tls", why="processes come and go alike")

DIED = r"worker (\d+) was killed by signal"


def replaced(server, pid, n):
    """Waits until there are n workers, none of which has this PID."""
    return wait_until(lambda: len(server.workers) == n and pid not in server.workers and server.workers,
                      f"a new worker in place of {pid}")


def worker_of(server, connection):
    """Returns the PID of the worker that holds the other end of this connection."""
    local, remote = connection.sock.getsockname(), connection.sock.getpeername()
    for _ in range(100):  # the kernel returns the table in pieces, and may omit lines while other sockets open and close
        for line in open("/proc/net/tcp"):
            fields = line.split()
            if fields[1] == hexadecimal(remote) and fields[2] == hexadecimal(local):
                held = f"socket:[{fields[9]}]"
                return next(pid for pid in server.workers if held in descriptors(pid).values())
    raise AssertionError("the connection is in no table")


def hexadecimal(address):
    a, b, c, d = map(int, address[0].split("."))
    return f"{d:02X}{c:02X}{b:02X}{a:02X}:{address[1]:04X}"


def connection_to(server, pid, **how):
    """Opens a connection to this worker; the connection is idle after one response."""
    for _ in range(200):
        c = server.connect(**how)
        assert c.get("/").status == 200
        if worker_of(server, c) == pid:
            return c
        c.close()
    raise AssertionError("the kernel gives it no connection")


@pytest.fixture
def server(monkey, site):
    site.add("index.html", "hello")
    server = monkey(workers=2)
    server.allow(DIED)
    return server


def test_worker_count_matches_configuration(server):
    assert [name(pid) for pid in server.workers] == ["monkey: worker"] * 2
    assert name(server.pid) == "monkey"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_worker_that_dies_is_replaced_and_reported(server, number):
    victim = server.workers[0]
    os.kill(victim, number)
    replaced(server, victim, 2)
    match = server.err.wait_for(rf"\[error\] {server.pid}: worker {victim} was killed by signal (\d+) \((\w+)\)")
    if name(server.pid) and int(match[1]) != number:  # the sanitizers turn SIGSEGV into SIGABRT
        assert number == signal.SIGSEGV and int(match[1]) == signal.SIGABRT
        server.allow("Sanitizer", "SEGV")
    for _ in range(20):
        assert server.get("/").text == "hello"


def test_worker_crash_report_has_last_request_and_states(server):
    victim = server.workers[0]
    with connection_to(server, victim) as c:
        assert c.get("/what?ever").status == 404
        os.kill(victim, signal.SIGKILL)
    match = server.err.wait_for(r'last request "(.*)", connection states (.+)')
    assert match[1] == "GET /what?ever"
    moves = "secure idle multi" if server.is_h2 else "dispatch send idle dispatch send( idle)?"
    assert re.fullmatch(moves, match[2]), match[2]


@pytest.mark.http1
def test_worker_crash_report_escapes_target(server):
    victim = server.workers[0]
    with connection_to(server, victim) as c:
        c.send(b"GET /\xc2\x9b31m\x80%1b[0m HTTP/1.1\r\nHost: x\r\n\r\n")
        c.read()
        os.kill(victim, signal.SIGKILL)
    server.err.wait_for(r'last request "GET /')
    assert "\x1b" not in server.err.text and "\x9b" not in server.err.text


def test_worker_crash_keeps_connections_of_others(server):
    victim, other = server.workers
    with connection_to(server, other) as kept, connection_to(server, victim) as lost:
        os.kill(victim, signal.SIGKILL)
        replaced(server, victim, 2)
        assert kept.get("/").text == "hello"
        assert worker_of(server, kept) == other
        with pytest.raises((Closed, ConnectionError)):
            lost.get("/")


@pytest.mark.over("h1", "h2", why="a handshake would wait for the stopped or full worker")
def test_worker_successor_serves_queued_connections(monkey, site):
    """The connections wait in the queue of a socket that the master also holds."""
    site.add("index.html", "hello")
    server = monkey(workers=1)
    server.allow(DIED)
    victim = server.workers[0]
    os.kill(victim, signal.SIGSTOP)
    waiting = [server.connect().ask("/") for _ in range(20)]
    os.kill(victim, signal.SIGKILL)
    for c in waiting:
        assert c.read().text == "hello"
        c.close()


def test_worker_crash_under_load_loses_only_its_requests(server):
    server.allow("Sanitizer")
    with Load(server, content=b"hello") as load:
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGKILL):
            victim = server.workers[0]
            os.kill(victim, number)
            replaced(server, victim, 2)
            load.more(20)
    # When a worker dies, each client has at most one request in progress.
    assert len(load.failures) <= 3 * 4, load.failures
    assert not [failure for failure in load.failures if "Refused" in failure or "Timeout" in failure]


def test_worker_that_keeps_crashing_is_replaced_with_backoff(monkey, site):
    """The master starts the first replacement at once, and the others after 100, 200, 400 and 800 ms, so that it does not spin."""
    server = monkey(workers=1)
    server.allow(DIED)
    times = []
    for _ in range(6):
        victim = wait_until(lambda: server.workers, "a worker")[0]
        os.kill(victim, signal.SIGKILL)
        times.append(time.monotonic())
        wait_until(lambda: victim not in server.workers, "its death")
    pauses = [b - a for a, b in zip(times, times[1:])]
    assert pauses[-1] >= 0.7 and pauses[-2] >= 0.35 and sum(pauses) >= 1.4, pauses
    assert cpu_seconds(server.pid) < 1
    wait_until(lambda: server.workers, "the last one")
    assert server.get("/").status == 403


def test_worker_backoff_does_not_delay_reload(monkey, site):
    """The pending replacement belongs to the old set of workers: after the reload, the master neither waits for it
    nor starts it."""
    server = monkey(workers=2)
    server.allow(DIED)
    for _ in range(4):
        victim = wait_until(lambda: server.workers, "a worker")[0]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: victim not in server.workers, "its death")
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    time.sleep(1.5)  # longer than the backoff after four deaths
    assert len(server.workers) == 2
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves", count=2)
    wait_until(lambda: len(server.workers) == 2, "the old ones to end")


def test_worker_that_cannot_start_fails_the_server(run, tmp_path, site):
    """The descriptor limit is too low for a worker to start."""
    (tmp_path / "c").write_text("[SERVER]\n    Listen 127.0.0.1:0\n    Workers 2\n    FDLimit 4\n[HOST]\n    DocumentRoot site\n")
    done = run("-c", "c")
    assert (done.code, done.out) == (1, "")
    assert re.search(r"\[error\] \d+: worker \d: ", done.err), done.err


def test_worker_without_master_exits(monkey, site):
    server = monkey(workers=2)
    workers = server.workers
    server.process.kill()
    server.exit_code = -signal.SIGKILL
    for pid in workers:
        wait_until(lambda: not os.path.exists(f"/proc/{pid}") or status(pid)["State"].startswith("Z"), "the end of a worker")


def test_worker_without_master_finishes_requests(monkey, site):
    data = os.urandom(8 << 20)
    site.add("big", data)
    server = monkey(workers=1, server="MinRate off\nKeepAliveTimeout 200ms")
    with server.connect(receive_buffer=65536) as c:
        c.ask("/big")
        c.begin()
        server.process.kill()
        server.exit_code = -signal.SIGKILL
        assert c.read().body == data
        c.expect_end()


@pytest.mark.over("h1", "h2", why="a unix socket is not encrypted")
def test_lock_left_behind_does_not_prevent_start(monkey, site, tmp_path):
    """Neither draining workers nor a leftover PID file and socket keep a new master from starting."""
    data = os.urandom(8 << 20)
    site.add("big", data)
    listen = f"unix:{tmp_path}/socket"
    first = monkey(workers=1, listen=listen, server=f"MinRate off\nPidFile {tmp_path}/pid")
    with first.connect() as c:
        c.ask("/big")
        c.begin()
        first.process.kill()
        first.process.wait()
        first.exit_code = -signal.SIGKILL
        second = monkey(workers=1, listen=listen, server=f"PidFile {tmp_path}/pid")
        assert (tmp_path / "pid").read_text() == f"{second.pid}\n"
        assert second.get("/").status == 403
        assert c.read().body == data


def test_worker_holds_only_needed_descriptors(server):
    """No worker holds a private descriptor of the master."""
    held = descriptors(server.workers[0])
    assert len(held) <= 24, held
    assert not any("pid" in path for path in held.values())


def test_worker_processes_are_the_only_children(server):
    assert children(server.pid) == server.workers
    for pid in server.workers:
        assert children(pid) == []


@pytest.mark.over("h1", why="a unix socket is not encrypted")
def test_workers_take_turns_on_shared_socket(monkey, tmp_path):
    """A unix socket has one accept queue for all workers: none of them gets all connections of an idle server."""
    server = monkey(listen=f"unix:{tmp_path}/socket", workers=3)

    def held():
        return [sum(target.startswith("socket:") for target in descriptors(pid).values()) for pid in server.workers]

    with contextlib.ExitStack() as stack:
        before = held()
        for _ in range(30):
            # A worker that is still awake may accept before the kernel has woken the next one.
            for pid in server.workers:
                wait_until(lambda: status(pid)["State"].startswith("S"), f"worker {pid} is idle")
            assert stack.enter_context(server.connect()).get("/").status
        assert all(now >= old + 5 for now, old in zip(held(), before)), (before, held())
