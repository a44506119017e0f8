# SPDX-License-Identifier: Apache-2.0
"""SIGQUIT drains, SIGTERM and SIGINT stop at once, SIGUSR1 reopens the logs."""
import os
import signal
import socket
import threading

import pytest

from client import Closed
from load import Load
from monkey import PROGRAM, SECONDS
from proc import descriptors, name, wait_until

pytestmark = pytest.mark.over("h1", "h2-tls", why="processes come and go alike")


def refused(server):
    try:
        socket.create_connection(server.addresses[0], SECONDS).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # the server closed the socket during connect(), so it will refuse the next connection
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_stop_signal_ends_server_cleanly(monkey, site, number):
    server = monkey(workers=2)
    server.get("/")
    assert server.stop(number) == 0
    assert "shutting down" in server.err.text and refused(server)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_term_and_int_interrupt_responses(monkey, site, number):
    site.add("big", bytes(64 << 20))
    server = monkey(server="MinRate off")
    with server.connect(receive_buffer=4096) as c, server.connect() as idle:
        idle.get("/")
        c.ask("/big")
        c.begin()
        server.stop(number)
        with pytest.raises((Closed, ConnectionResetError)):
            c.read()


def test_quit_lets_download_finish(monkey, site):
    data = os.urandom(16 << 20)
    site.add("big", data)
    server = monkey(workers=2, server="MinRate off\nKeepAliveTimeout 200ms")
    with server.connect() as c:
        c.ask("/big")
        c.begin()
        server.tell(signal.SIGQUIT)
        wait_until(lambda: refused(server), "new connections to be refused")
        assert server.process.poll() is None
        assert c.read().body == data
        c.expect_end()
    assert server.wait() == 0


@pytest.mark.http1
def test_quit_closes_idle_connections_after_keep_alive_timeout(monkey, site):
    """An idle connection may send one more request, whose response announces the close."""
    site.add("index.html", "hello")
    server = monkey(server="KeepAliveTimeout 2s")
    with server.connect() as active, server.connect() as silent:
        assert not active.get("/").closes and not silent.get("/").closes
        server.tell(signal.SIGQUIT)
        server.err.wait_for("shutting down when all")
        wait_until(lambda: refused(server), "new connections to be refused")
        reply = active.get("/")
        assert reply.text == "hello" and reply.closes
        active.expect_end()
        silent.expect_end()
    assert server.wait() == 0


@pytest.mark.http1
def test_quit_answers_partial_request(monkey, site):
    site.add("index.html", "hello")
    server = monkey()
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nHo")
        wait_until(lambda: accepted(server), "the connection to be accepted")
        server.tell(signal.SIGQUIT)
        server.err.wait_for("shutting down when all")
        wait_until(lambda: refused(server), "new connections to be refused")
        assert c.send(b"st: x\r\n\r\n").read().text == "hello"
        c.expect_end()
    assert server.wait() == 0


def accepted(server):
    """Has the worker accepted a connection? If so, it has more sockets than its listeners and its socket to the master."""
    return sum(path.startswith("socket:") for pid in server.workers for path in descriptors(pid).values()) > 2


@pytest.fixture
def stopped(monkey, site):
    """`stopped(n)` starts a server with n workers, the last of which is stopped until `go()`."""
    servers = []

    def start(workers=1):
        site.add("index.html", "hello")
        servers.append(monkey(workers=workers, server="LingerTimeout 200ms"))
        os.kill(servers[0].workers[-1], signal.SIGSTOP)
        return servers[0]

    yield start
    if servers[0].process.poll() is None:
        go(servers[0])


def go(server):
    os.kill(server.workers[-1], signal.SIGCONT)


@pytest.mark.over("h1", "h2", why="a handshake would wait for the stopped or full worker")
def test_quit_serves_connections_in_accept_queue(stopped):
    """Pending connections are in the kernel's queue, which is destroyed together with its socket."""
    server = stopped()
    waiting = [server.connect().ask("/") for _ in range(400)]  # more connections than one loop iteration accepts
    server.tell(signal.SIGQUIT)
    server.err.wait_for("shutting down when all")
    go(server)
    for c in waiting:
        assert c.read("GET").text == "hello"
        c.close()
    assert server.wait() == 0


@pytest.mark.over("h1", "h2", why="a handshake would wait for the stopped or full worker")
def test_quit_sends_no_connection_to_exited_worker(stopped):
    """While another worker still serves, the kernel passes no connection to the sockets of a worker that has exited."""
    server = stopped(workers=2)
    server.tell(signal.SIGQUIT)
    wait_until(lambda: len(server.workers) == 1, "the other worker to end")
    waiting = [server.connect().ask("/") for _ in range(20)]
    go(server)
    for c in waiting:
        assert c.read("GET").text == "hello"
        c.close()
    assert server.wait() == 0


def test_drain_timeout_closes_remaining_connections(monkey, site):
    site.add("big", bytes(64 << 20))
    server = monkey(server="MinRate off\nDrainTimeout 300ms")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        c.begin()
        server.stop(signal.SIGQUIT)
    assert "closed 1 connections: DrainTimeout has expired" in server.err.text


def test_term_ends_drain(monkey, site):
    site.add("big", bytes(64 << 20))
    server = monkey(server="MinRate off\nDrainTimeout unlimited")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big")
        c.begin()
        server.tell(signal.SIGQUIT)
        wait_until(lambda: refused(server), "the drain")
        assert server.process.poll() is None
        assert server.stop(signal.SIGTERM) == 0


def test_worker_that_hangs_is_killed_on_stop(monkey, site):
    server = monkey(workers=2)
    server.allow("killed workers that did not exit")
    os.kill(server.workers[0], signal.SIGSTOP)
    assert server.stop(signal.SIGTERM) == 0
    assert "killed workers that did not exit in time" in server.err.text


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGPIPE])
def test_worker_ignores_signals_of_the_terminal(monkey, site, number):
    """A terminal sends some of these signals to every process, but only the master reacts."""
    site.add("index.html", "hello")
    server = monkey()
    pids = server.workers
    for pid in pids:
        os.kill(pid, number)
    assert server.get("/").text == "hello" and server.workers == pids
    assert [name(pid) for pid in pids] == ["monkey: worker"]


@pytest.mark.over("h1", why="it listens on a unix socket alone")
def test_broken_output_pipe_does_not_stop_server(monkey, tmp_path, site):
    """The process that reads the server's output has exited."""
    site.add("index.html", "hello")
    (tmp_path / "c").write_text("[SERVER]\n    Listen unix:socket\n    Workers 1\n    AccessLog stdout\n"
                                "[HOST]\n    DocumentRoot site\n")
    read, write = os.pipe()
    server = monkey(program="sh", args=["-c", f"exec '{PROGRAM}' -c c >/proc/self/fd/{write} 2>&1"], expect_start=False,
                    popen={"pass_fds": [write]})
    os.close(write)
    server.addresses = [str(tmp_path / "socket")]
    wait_until(lambda: server.workers, "the worker")
    assert server.get("/").text == "hello"
    os.close(read)
    for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGUSR1):
        server.tell(number)
        for _ in range(3):
            assert server.get("/").text == "hello"


# USR1

def targets(path):
    return [line.split('"')[1].split()[1] for line in path.read_text().splitlines()]


def test_usr1_reopens_logs(monkey, site, tmp_path):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog access.log\nErrorLog error.log", workers=2)
    log, old = tmp_path / "access.log", tmp_path / "access.log.1"
    server.get("/?before")
    log.rename(old)
    (tmp_path / "error.log").rename(tmp_path / "error.log.1")
    server.tell(signal.SIGUSR1)
    wait_until(log.exists, "a new log")
    wait_until(lambda: "reopened the logs" in (tmp_path / "error.log").read_text(), "the message in the new one")
    server.get("/?after")
    server.stop()
    assert targets(old) == ["/?before"], "buffered lines go into the old one"
    assert targets(log) == ["/?after"]


def test_usr1_under_load_loses_no_line(monkey, site, tmp_path):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog access.log", workers=2)
    log, n = tmp_path / "access.log", 0
    with Load(server) as load:
        for round_ in range(5):
            load.more(20)
            log.rename(tmp_path / f"old.{round_}")
            server.tell(signal.SIGUSR1)
            wait_until(log.exists, "a new log")
        load.check()
        n = sum(load.counts)
    server.stop()
    files = [log, *tmp_path.glob("old.*")]
    assert len(files) == 6
    assert sum(len(targets(path)) for path in files) == n


def test_usr1_keeps_log_that_cannot_be_reopened(monkey, site, tmp_path):
    (tmp_path / "logs").mkdir()
    server = monkey(server="AccessLog logs/access.log")
    (tmp_path / "logs").rename(tmp_path / "moved")
    server.tell(signal.SIGUSR1)
    server.err.wait_for(r"\[error\] \d+: cannot reopen the log \S+/logs/access\.log: No such file")
    server.get("/?x")
    server.stop()
    assert targets(tmp_path / "moved/access.log") == ["/?x"]


def test_usr1_reaches_draining_workers(monkey, site, tmp_path):
    data = os.urandom(16 << 20)
    site.add("big", data)
    server = monkey(server="AccessLog access.log\nMinRate off")
    with server.connect(receive_buffer=65536) as c:
        c.ask("/big")
        c.begin()
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves")
        (tmp_path / "access.log").rename(tmp_path / "old")
        server.tell(signal.SIGUSR1)
        wait_until((tmp_path / "access.log").exists, "a new log")
        server.err.wait_for("reopened the logs")
        assert c.read().body == data
    server.stop()
    assert (tmp_path / "old").read_text() == "" and targets(tmp_path / "access.log") == ["/big"]


def test_signals_in_any_number_are_handled(monkey, site):
    site.add("index.html", "hello")
    server = monkey(workers=2)
    with Load(server) as load:
        senders = [threading.Thread(target=lambda n=n: [server.tell(n) for _ in range(200)])
                   for n in (signal.SIGUSR1, signal.SIGHUP, signal.SIGCHLD)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(SECONDS)
        load.more(20).check()
    wait_until(lambda: len(server.workers) == 2, "two workers")
