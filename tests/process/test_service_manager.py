# SPDX-License-Identifier: Apache-2.0
"""Notifications to a service manager, and socket activation."""
import fcntl
import os
import re
import signal
import socket
import subprocess
import time

import pytest

from client import Client
from monkey import PROGRAM, SECONDS
from proc import Process, wait_until
from service_manager import Manager

pytestmark = pytest.mark.over("h1", why="the protocol makes no difference to the start")


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    address = str(tmp_path / "notify") if request.param == "path" else f"@monkey-test-{os.getpid()}"
    manager = Manager(address)
    yield manager
    manager.socket.close()


def test_manager_is_notified_of_start_reload_and_stop(monkey, site, manager):
    server = monkey(environment=manager.environment, workers=2)
    assert manager.read() == {"READY": "1", "MAINPID": str(server.pid), "STATUS": "Serving"}
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    server.tell(signal.SIGHUP)
    reloading = manager.read()
    assert reloading["RELOADING"] == "1"
    assert before <= int(reloading["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert manager.read()["READY"] == "1"
    server.tell(signal.SIGQUIT)
    assert manager.read() == {"STOPPING": "1"}
    server.wait()
    assert manager.is_silent()


def test_manager_is_notified_of_end_of_failed_reload(monkey, site, manager):
    server = monkey(environment=manager.environment)
    manager.read()
    server.config.write_text("nonsense")
    server.tell(signal.SIGHUP)
    assert manager.read()["RELOADING"] == "1" and manager.read()["READY"] == "1"
    assert server.get("/none").status == 404


def test_manager_is_not_notified_of_failed_start(monkey, site, manager):
    server = monkey(environment=manager.environment, config="nonsense", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert manager.is_silent()


def test_manager_learns_of_successor_without_stopping(monkey, site, manager):
    """STOPPING=1 would make the manager stop a service that is to continue."""
    server = monkey(environment=manager.environment)
    assert manager.read()["MAINPID"] == str(server.pid)
    text = server.config.read_text()
    server.config.write_text("nonsense")
    server.tell(signal.SIGHUP)
    assert manager.wait_for("READY")["STATUS"].startswith("The last reload failed: ")
    server.config.write_text(text)
    server.tell(signal.SIGUSR2)
    ready = manager.read()
    assert ready["READY"] == "1" and ready["MAINPID"] != str(server.pid)
    assert ready["STATUS"] == "Serving", "the status of the predecessor no longer holds"
    new = Process(int(ready["MAINPID"]))
    try:
        assert server.process.wait(SECONDS) == 0
        assert manager.is_silent()
        new.tell(signal.SIGTERM)
        assert manager.read() == {"STOPPING": "1"}
        new.wait()
    finally:
        new.kill()


@pytest.mark.parametrize("pid", ["own", "none"])
def test_watchdog_is_notified_before_and_after_reload_and_by_successor(monkey, site, manager, pid):
    environment = manager.environment | {"WATCHDOG_USEC": "100000"}
    server = monkey(environment=environment, wrapper=["sh", "-c", 'WATCHDOG_PID=$$ exec "$@"', "sh"] if pid == "own" else [])
    assert "MAINPID" in manager.read()
    assert manager.read() == manager.read() == {"WATCHDOG": "1"}
    server.tell(signal.SIGHUP)
    manager.wait_for("RELOADING")
    manager.wait_for("READY")
    assert manager.read() == {"WATCHDOG": "1"}
    server.tell(signal.SIGUSR2)
    new = Process(int(manager.wait_for("MAINPID")["MAINPID"]))
    try:
        assert server.process.wait(SECONDS) == 0
        manager.skip()
        assert manager.read() == {"WATCHDOG": "1"}
        new.tell(signal.SIGTERM)
        manager.wait_for("STOPPING")
        new.wait()
    finally:
        new.kill()


@pytest.mark.parametrize("environment", [{}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "-1"},
                                         {"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"},
                                         {"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "x"}], ids=str)
def test_watchdog_of_another_process_is_not_notified(monkey, site, tmp_path, manager, environment):
    """A second server, whose watchdog is its own, has the same interval and measures the time."""
    server = monkey(environment=manager.environment | environment)
    assert "MAINPID" in manager.read()
    assert server.get("/none").status == 404
    clock = Manager(str(tmp_path / "clock"))
    monkey(environment=clock.environment | {"WATCHDOG_USEC": "100000"})
    for _ in range(3):
        clock.wait_for("WATCHDOG")
    assert manager.is_silent()
    server.tell(signal.SIGHUP)
    assert "RELOADING" in manager.read() and "READY" in manager.read()
    clock.skip()
    for _ in range(3):
        clock.wait_for("WATCHDOG")
    assert manager.is_silent()
    clock.socket.close()


def test_manager_that_is_missing_is_logged(monkey, site, tmp_path):
    server = monkey(environment={"NOTIFY_SOCKET": str(tmp_path / "nobody")})
    server.err.wait_for(r"\[warn\] \d+: cannot notify the service manager")
    assert server.get("/none").status == 404


# Socket activation

def activate(monkey, tmp_path, sockets, text, pid="$$", n=None, popen=None):
    """Starts the server with these sockets as descriptors 3, 4, ... A shell sets LISTEN_PID to its own PID, which exec keeps."""
    (tmp_path / "c").write_text(text)
    spare = [fcntl.fcntl(each, fcntl.F_DUPFD, 100) for each in sockets]  # inherited, unlike the original descriptors
    moves = " ".join(f"{3 + i}<&{fd} {fd}<&-" for i, fd in enumerate(spare))
    script = f"export LISTEN_FDS={len(sockets) if n is None else n} LISTEN_PID={pid}; exec '{PROGRAM}' -c c {moves}"
    try:
        return monkey(program="bash", args=["-c", script], popen={"close_fds": False})
    finally:
        for fd in spare:
            os.close(fd)


def text_of(*listens):
    return "[SERVER]\n" + "".join(f"    Listen {each}\n" for each in listens) + "    Workers 2\n[HOST]\n    DocumentRoot site\n"


def test_activation_sockets_replace_listeners_of_the_same_address(monkey, tmp_path, site):
    site.add("index.html", "hello")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        unix.listen()
        port = tcp.getsockname()[1]
        server = activate(monkey, tmp_path, [tcp, unix], text_of(f"127.0.0.1:{port}", f"unix:{tmp_path}/socket", "127.0.0.1:0"))
        assert server.addresses[:2] == [("127.0.0.1", port), f"{tmp_path}/socket"] and len(server.addresses) == 3
        for i in range(3):
            for _ in range(5):
                assert server.get("/", listener=i).text == "hello"
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves")
        assert server.get("/").text == "hello"
        server.stop()
        assert (tmp_path / "socket").exists(), "it belongs to the manager"
        with socket.create_connection(("127.0.0.1", port), SECONDS):
            pass  # the kernel refuses no connection during a restart, because the socket still listens


def test_activation_sockets_replace_default_listener(monkey, tmp_path, site):
    site.add("index.html", "hello")
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        server = activate(monkey, tmp_path, [tcp], text_of())
        assert server.addresses == [tcp.getsockname()]
        assert server.get("/").text == "hello"


@pytest.mark.parametrize("dual", [True, False])
def test_activation_dual_stack_socket_is_printed_for_both_families(monkey, tmp_path, site, dual):
    site.add("index.html", "hello")
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=dual) as tcp:
        port = tcp.getsockname()[1]
        server = activate(monkey, tmp_path, [tcp], text_of())
        assert ("::1", port) in [address[:2] for address in server.addresses]
        assert (("127.0.0.1", port) in server.addresses) == dual
        for i, _ in enumerate(server.addresses):
            assert server.get("/", listener=i).text == "hello"


def test_activation_serves_connections_queued_before_start(monkey, tmp_path, site):
    site.add("index.html", "hello")
    with socket.create_server(("127.0.0.1", 0)) as tcp, Client(tcp.getsockname()) as early:
        early.ask("/")
        activate(monkey, tmp_path, [tcp], text_of())
        assert early.read().text == "hello"


def test_activation_sockets_of_another_process_are_ignored(monkey, tmp_path, site):
    site.add("index.html", "hello")
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        server = activate(monkey, tmp_path, [tcp], text_of("127.0.0.1:0"), pid="1")
        assert server.addresses != [tcp.getsockname()] and server.get("/").text == "hello"


@pytest.mark.parametrize("n", ["", "x", "-1", "99999999999"])
def test_activation_invalid_socket_count_is_ignored(monkey, tmp_path, site, n):
    site.add("index.html", "hello")
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        assert activate(monkey, tmp_path, [tcp], text_of("127.0.0.1:0"), n=n).get("/").text == "hello"


def test_activation_descriptors_that_do_not_listen_are_ignored(monkey, tmp_path, site):
    site.add("index.html", "hello")
    with socket.socket(socket.AF_INET) as idle, open(os.devnull) as file:
        assert activate(monkey, tmp_path, [idle, file], text_of("127.0.0.1:0")).get("/").text == "hello"


def test_activation_variables_are_removed_from_environment(monkey, tmp_path, site):
    site.add("index.html", "hello")
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        server = activate(monkey, tmp_path, [tcp], text_of())
        server.tell(signal.SIGUSR2)
        new = Process(int(server.err.wait_for(r"the new program is process (\d+)")[1]))
        try:
            server.err.wait_for(rf"{new.pid}: monkey \S+ serves with")
            assert server.process.wait(SECONDS) == 0
            environment = open(f"/proc/{new.pid}/environ").read()
            assert not re.search(r"LISTEN_PID|LISTEN_FDS", environment), environment
            assert server.get("/").text == "hello"
            new.tell(signal.SIGTERM)
            new.wait()
        finally:
            new.kill()


def test_activation_socket_returns_with_the_unconfirmed_configuration(monkey, tmp_path, site):
    """The new configuration has a Listen of its own; the old one has none, and must not open the default port."""
    site.add("index.html", "hello")
    rest = f"[PLUGINS]\n    Load cheetah\n[CHEETAH]\n    Socket {tmp_path}/control\n"
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        server = activate(monkey, tmp_path, [tcp], text_of() + rest)
        assert server.get("/").text == "hello"
        (tmp_path / "c").write_text(text_of("127.0.0.1:0") + rest)
        subprocess.run([PROGRAM, "reload", "-s", tmp_path / "control", "--confirm", "1s"], check=True, timeout=SECONDS)
        server.err.wait_for("configuration 1 serves again")
        assert server.get("/").text == "hello"
        listens = re.findall(r"^ *\d+: \S+:(\w{4}) \S+ 0A", open(f"/proc/{server.pid}/net/tcp").read(), re.MULTILINE)
        assert f"{2001:04X}" not in listens


# Unix sockets

def test_unix_socket_left_behind_is_replaced(monkey, tmp_path, site):
    site.add("index.html", "hello")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "socket"))
    server = monkey(listen=f"unix:{tmp_path}/socket")
    assert server.get("/").text == "hello"
    assert (tmp_path / "socket").stat().st_mode & 0o777 == 0o666
    server.stop()
    assert not (tmp_path / "socket").exists()


def test_unix_socket_in_use_is_an_error(monkey, run, tmp_path, site):
    site.add("index.html", "hello")
    server = monkey(listen=f"unix:{tmp_path}/socket")
    done = run("-c", server.config)
    assert done.code == 1 and "Address already in use" in done.err
    assert server.get("/").text == "hello"


def test_unix_socket_path_of_regular_file_is_an_error(run, tmp_path, site):
    (tmp_path / "socket").write_text("precious")
    done = run("-p", f"unix:{tmp_path}/socket", site)
    assert done.code == 1 and "Address already in use" in done.err
    assert (tmp_path / "socket").read_text() == "precious"


def test_master_reaps_foreign_children(monkey, tmp_path, site):
    """The master inherited a child across exec: when the child exits, the master reaps it and does nothing else."""
    os.mkfifo(tmp_path / "fifo")
    server = monkey(program="sh", args=["-c", f"cat fifo & exec '{PROGRAM}' -p 0 -w 1 site"])
    assert len(server.workers) == 2
    with open(tmp_path / "fifo", "w"):
        pass
    wait_until(lambda: len(server.workers) == 1, "the other child to be reaped")
    assert server.get("/none").status == 404
