# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 starts a new program in place of the old one without losing a request."""
import os
import re
import shutil
import signal

import pytest

from backend import Backend
from upstream_group import group
from load import Load
from monkey import PROGRAM
from proc import children, name, wait_until

pytestmark = pytest.mark.over("h1", "h2-tls", why="processes come and go alike")


def successor(pid):
    """Returns the PID of the master that the given one has started."""
    return wait_until(lambda: [child for child in children(pid) if name(child) == name(pid)], "a new master")[0]


@pytest.fixture
def start(monkey, tmp_path, site):
    """A server with a PID file, a unix socket, and its own copy of the program, which the test may replace."""
    site.add("index.html", "hello")
    program = tmp_path / "monkey"
    shutil.copy(PROGRAM, program)
    (tmp_path / "plugins").mkdir()
    for path in (PROGRAM.parent / "plugins").glob("monkey-tls.so"):  # the program looks for this object in its own folder
        shutil.copy(path, tmp_path / "plugins")

    def run(server="", **how):
        return monkey(program=program, workers=2, listen=["127.0.0.1:0", f"unix:{tmp_path}/socket"],
                      server=f"PidFile {tmp_path}/pid\n{server}", **how)

    return run


def upgrade(server, watch, tmp_path, count=1):
    """Returns the process of the new master; the old master has exited, or will exit after its last request."""
    server.tell(signal.SIGUSR2)
    server.err.wait_for(r"the new program is process (\d+)", count)
    new = int(server.err.wait_for(r"the new program is process (\d+)", count)[1])
    process = watch(new)
    server.err.wait_for(rf"{new}: monkey \S+ serves with")
    return process


def test_upgrade_hands_over_sockets_and_pid_file(start, watch, tmp_path):
    server = start()
    old_workers = server.workers
    new = upgrade(server, watch, tmp_path)
    assert server.process.wait(30) == 0
    assert (tmp_path / "pid").read_text() == f"{new.pid}\n"
    for listener in (0, 1):
        assert server.get("/", listener=listener).text == "hello"
    assert len(children(new.pid)) == 2 and not set(children(new.pid)) & set(old_workers)
    new.tell(signal.SIGTERM)
    new.wait()
    assert not (tmp_path / "pid").exists() and not (tmp_path / "socket").exists()


def test_upgrade_keeps_sticky_cookies(start, watch, tmp_path):
    with Backend() as a, Backend() as b:
        server = start(plugins=["proxy"], top=group(a, b), sections="[ROUTES]\n    /* proxy http://group sticky=S\n")
        before = {server.get("/")["Set-Cookie"] for _ in range(8)}
        new = upgrade(server, watch, tmp_path)
        assert server.process.wait(30) == 0
        assert {server.get("/")["Set-Cookie"] for _ in range(8)} == before and len(before) == 2
        new.tell(signal.SIGTERM)
        new.wait()


def test_upgrade_keeps_passes_of_challenges(start, watch, tmp_path):
    server = start(plugins=[PROGRAM.parent / "plugins/monkey-challenge.so"], sections="[CHALLENGE]\n    Challenge all\n    Difficulty 1\n")
    token = re.search('data-token="(.*?)"', server.get("/").text)[1]
    replies = [server.get(f"/.well-known/monkey-challenge?token={token}&nonce={nonce}&target=/") for nonce in range(40)]
    cookie = next(reply["Set-Cookie"] for reply in replies if reply.status == 303).partition(";")[0]
    new = upgrade(server, watch, tmp_path)
    assert server.process.wait(30) == 0
    assert server.get("/", fields=[("Cookie", cookie)]).text == "hello" and server.get("/").status == 403
    new.tell(signal.SIGTERM)
    new.wait()


def test_upgrade_under_load_loses_no_request(start, watch, tmp_path):
    server = start()
    masters = [server.pid]
    with Load(server, content=b"hello") as tcp, Load(server, content=b"hello", listener=1) as unix:
        for round_ in range(3):
            pid = masters[-1]
            os.kill(pid, signal.SIGUSR2)
            new = int(server.err.wait_for(r"the new program is process (\d+)", round_ + 1)[1])
            process = watch(new)
            server.err.wait_for(rf"{new}: monkey \S+ serves with")
            masters.append(new)
            tcp.more(10)
            unix.more(10)
        tcp.check()
        unix.check()
    assert server.process.wait(30) == 0
    wait_until(lambda: (tmp_path / "pid").read_text() == f"{masters[-1]}\n", "the PID file of the last one")
    process.tell(signal.SIGQUIT)
    process.wait()


def test_upgrade_does_not_interrupt_download(start, watch, tmp_path, site):
    data = os.urandom(16 << 20)
    site.add("big", data)
    server = start("MinRate off\nKeepAliveTimeout 200ms")
    with server.connect(receive_buffer=65536) as c:
        c.ask("/big")
        c.begin()
        new = upgrade(server, watch, tmp_path)
        assert server.get("/").text == "hello"
        assert server.process.poll() is None, "the old master stays as long as its workers are busy"
        assert c.read().body == data
        c.expect_end()
    assert server.process.wait(30) == 0
    new.tell(signal.SIGTERM)
    new.wait()


def test_upgrade_second_one_while_first_program_drains_reports_no_failure(start, watch, tmp_path, site):
    """The first program is the parent of the second, which exits when the third serves."""
    data = os.urandom(16 << 20)
    site.add("big", data)
    server = start("MinRate off\nKeepAliveTimeout 200ms")
    with server.connect(receive_buffer=65536) as c:
        c.ask("/big")
        c.begin()
        second = upgrade(server, watch, tmp_path)
        second.tell(signal.SIGUSR2)
        pid = int(server.err.wait_for(r"the new program is process (\d+)", 2)[1])
        third = watch(pid)
        server.err.wait_for(rf"{pid}: monkey \S+ serves with")
        second.wait()
        wait_until(lambda: children(server.pid) == [] or second.pid not in children(server.pid), "the first one reaps the second")
        assert (tmp_path / "pid").read_text() == f"{pid}\n"
        assert server.get("/").text == "hello"
        assert c.read().body == data
        c.expect_end()
    assert server.process.wait(30) == 0
    assert "before it was ready" not in server.err.text and (tmp_path / "pid").read_text() == f"{pid}\n"
    assert server.get("/", listener=1).text == "hello"
    third.tell(signal.SIGTERM)
    third.wait()


def test_upgrade_starts_the_replaced_program(start, watch, tmp_path):
    """The new program is renamed over the old one, as package managers do."""
    server = start()
    (tmp_path / "new").write_text(f"#!/bin/sh\necho new program >&2\nexec '{PROGRAM}' \"$@\"\n")
    (tmp_path / "new").chmod(0o755)
    (tmp_path / "new").rename(tmp_path / "monkey")
    new = upgrade(server, watch, tmp_path)
    server.err.wait_for("^new program$")
    assert server.process.wait(30) == 0
    assert server.get("/").text == "hello"
    new.tell(signal.SIGTERM)
    new.wait()


def test_upgrade_reads_new_configuration(start, watch, tmp_path):
    server = start()
    text = server.config.read_text()
    server.config.write_text(text.replace("Workers 2", "Workers 3\n    HideVersion on"))
    new = upgrade(server, watch, tmp_path)
    assert server.process.wait(30) == 0
    assert len(children(new.pid)) == 3
    for _ in range(20):
        assert server.get("/")["Server"] == "Monkey"
    new.tell(signal.SIGTERM)
    new.wait()


@pytest.mark.over("h1", "h2", why="the address has no other words")
def test_upgrade_closes_removed_address(start, watch, tmp_path):
    server = start()
    server.config.write_text(server.config.read_text().replace("    Listen 127.0.0.1:0\n", ""))
    new = upgrade(server, watch, tmp_path)
    assert server.process.wait(30) == 0
    assert server.get("/", listener=1).text == "hello"
    with pytest.raises(ConnectionRefusedError):
        server.connect(0)
    new.tell(signal.SIGTERM)
    new.wait()


def test_upgrade_removes_removed_unix_socket(start, watch, tmp_path):
    server = start()
    good = server.config.read_text()
    less = good.replace(f"    Listen unix:{tmp_path}/socket\n", "")
    server.config.write_text(less.replace("Workers 2", "Workers 2\n    FDLimit 4"))
    server.allow("exited unexpectedly with code 1")
    server.tell(signal.SIGUSR2)
    server.err.wait_for("the new program exited before it was ready")
    assert server.get("/", listener=1).text == "hello", "a successor that does not serve must not remove it"
    server.config.write_text(less)
    new = upgrade(server, watch, tmp_path, 2)
    assert server.process.wait(30) == 0
    assert not (tmp_path / "socket").exists() and server.get("/").text == "hello"
    new.tell(signal.SIGTERM)
    new.wait()


FAILING = {
    "it ends at once": "#!/bin/sh\nexit 1\n",
    "it does not exist": None,
    "it is no program": "nonsense",
}


@pytest.mark.parametrize("how", FAILING)
def test_upgrade_to_failing_program_changes_nothing(start, tmp_path, how):
    server = start()
    pids = server.workers
    (tmp_path / "monkey").unlink()
    if FAILING[how]:
        (tmp_path / "monkey").write_text(FAILING[how])
        (tmp_path / "monkey").chmod(0o755)
    with Load(server, content=b"hello") as load:
        for round_ in range(2):
            server.tell(signal.SIGUSR2)
            server.err.wait_for("the new program exited before it was ready: keeping the old one", round_ + 1)
        load.more(5).check()
    assert server.workers == pids
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() == f"{server.pid}\n", "the PID file")
    assert server.get("/", listener=1).text == "hello"
    shutil.copy(PROGRAM, tmp_path / "monkey")


def test_upgrade_with_invalid_configuration_changes_nothing(start, watch, tmp_path):
    server = start()
    good = server.config.read_text()
    server.config.write_text(good.replace("Workers", "Wrokers"))
    server.tell(signal.SIGUSR2)
    server.err.wait_for("the new program exited before it was ready: keeping the old one")
    assert "unknown key `Wrokers`" in server.err.text
    assert server.get("/").text == "hello" and server.get("/", listener=1).text == "hello"
    server.config.write_text(good)
    new = upgrade(server, watch, tmp_path, 2)
    assert server.process.wait(30) == 0
    new.tell(signal.SIGTERM)
    new.wait()


def test_upgrade_failed_leaves_reload_working(start, tmp_path):
    server = start()
    (tmp_path / "monkey").unlink()
    server.tell(signal.SIGUSR2)
    server.err.wait_for("keeping the old one")
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert server.get("/").text == "hello"


def test_upgrade_requested_repeatedly_starts_one_successor(start, watch, tmp_path):
    server = start()
    for _ in range(5):
        server.tell(signal.SIGUSR2)
    new = watch(successor(server.pid))
    server.err.wait_for(rf"{new.pid}: monkey \S+ serves with")
    assert server.process.wait(30) == 0
    assert server.err.text.count("the new program is process") == 1
    assert (tmp_path / "pid").read_text() == f"{new.pid}\n"
    new.tell(signal.SIGTERM)
    new.wait()


def test_upgrade_successor_can_reload(start, watch, tmp_path):
    server = start()
    new = upgrade(server, watch, tmp_path)
    assert server.process.wait(30) == 0
    os.kill(new.pid, signal.SIGHUP)
    server.err.wait_for(rf"{new.pid}: the new configuration serves")
    assert server.get("/").text == "hello"
    new.tell(signal.SIGTERM)
    new.wait()
