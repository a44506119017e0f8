# SPDX-License-Identifier: Apache-2.0
"""Services for plugins besides requests: subprocesses, messages between workers, shared memory, and log files. The plugin
tests/plugins/api/worker_services.c executes the commands in its requests.
"""
import errno
import os
import pwd
import signal
import subprocess
import threading
from urllib.parse import quote

import pytest

from monkey import PROGRAM
from proc import children, descriptors, is_gone, name, status, wait_until

PLUGIN = PROGRAM.parent / "tests" / "plugins" / "monkey-worker_services.so"
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")


class BusServer:
    """A server with the plugin."""

    def __init__(self, server):
        self.server = server
        self.clients = []

    def ask(self, word, text="", client=None):
        target = f"/worker/{word}?{quote(str(text))}"
        reply = client.get(target) if client else self.server.get(target)
        assert reply.status == 200, reply
        return reply.text

    def connect(self):
        self.clients.append(self.server.connect())
        return self.clients[-1]

    def each(self, count):
        """Returns a connection to each of `count` workers, in the order of the workers."""
        found = {}

        def look():
            c = self.connect()
            found.setdefault(int(self.ask("info", client=c).split()[0]), c)
            return len(found) == count

        wait_until(look, f"{count} workers to respond")
        return [found[i] for i in range(count)]

    def hears(self, line, client=None, count=1):
        wait_until(lambda: self.ask("received", client=client).split("\n").count(line) >= count, f"the message {line!r}")


@pytest.fixture
def bus(monkey, site):
    made = []

    def start(keys="", **how):
        section = "[WORKER_SERVICES]\n" + "".join(f"    {line}\n" for line in keys.splitlines())
        how = {"plugins": [PLUGIN], "top": section, "sections": "[ROUTES]\n    /worker/* worker-services\n    /* static\n", **how}
        how["server"] = "KeepAliveRequests 1000000\nKeepAliveTimeout 60\n" + how.get("server", "")  # keeps connections open
        made.append(BusServer(monkey(**how)))
        return made[-1]

    yield start
    for each in made:
        for client in each.clients:
            client.close()


# Subprocesses

@pytest.fixture
def program(bus):
    """Starts a server; `begin(script)` returns the PID of a shell that runs the script."""
    def start(**how):
        it = bus("Children on", **how)

        def running():
            return {pid for worker in it.server.workers for spawner in children(worker) for pid in children(spawner)}

        def begin(script="exec sleep 1000", client=None):
            before = running()
            assert it.ask("run", script, client) == "0"
            return wait_until(lambda: running() - before, "the program to start").pop()

        return it, begin

    return start


@pytest.mark.processes("it starts no programs")
def test_subprocess_runs_outside_of_the_sandbox(program, tmp_path):
    it, begin = program()
    it.ask("run", f"echo hello > {tmp_path}/made; exit 5")
    it.hears(f"ended {5 << 8}")
    assert (tmp_path / "made").read_text() == "hello\n"


def test_spawner_exists_only_if_configured(bus):
    without, wanted = bus(), bus("Children on")
    wait_until(lambda: [name(pid) for pid in children(wanted.server.workers[0])] == ["monkey: spawner"], "the spawner")
    assert children(without.server.workers[0]) == []
    assert without.ask("run", "exit 0") == str(-errno.ECHILD)
    without.server.err.wait_for("cannot start /bin/sh: this worker has no spawner")


def test_subprocess_inherits_no_descriptors(program):
    it, begin = program(server="AccessLog access.log")
    spawner, = children(it.server.workers[0])
    pid = begin()
    # Before exec, the process has the descriptors of the spawner; at startup, the dynamic loader opens libraries.
    wait_until(lambda: descriptors(pid) == dict.fromkeys(range(3), "/dev/null"), "the program without other descriptors")
    held = wait_until(lambda: len(held := descriptors(spawner)) == 5 and held, "the spawner to hold only what it needs")
    assert [held[i] for i in range(3)] == ["/dev/null"] * 3
    assert held[3].startswith("socket:") and held[4] == "anon_inode:[signalfd]"


@root_only
def test_subprocess_runs_as_user_of_worker(program):
    it, begin = program(server="User nobody")
    pid = begin()
    assert status(pid)["Uid"].split() == [str(pwd.getpwnam("nobody").pw_uid)] * 4
    assert status(pid)["NoNewPrivs"] == "1"


def test_subprocess_can_be_signalled_and_dropped(program):
    it, begin = program()
    first = begin("sleep 1000 & sleep 1000")
    it.ask("signal", int(signal.SIGTERM))
    it.hears(f"ended {int(signal.SIGTERM)}")
    wait_until(lambda: is_gone(first), "the first to die")
    second = begin("trap '' TERM; sleep 1000")
    it.ask("drop")
    wait_until(lambda: is_gone(second), "the second to die")
    it.ask("run", "exit 0")
    it.hears("ended 0")
    assert it.ask("received") == "ended 15\nended 0\n"


def test_spawner_death_replaces_the_worker(program):
    it, begin = program()
    old, = it.server.workers
    client, other = it.connect(), it.connect()
    other.get("/worker/info")
    pid = begin(client=client)
    os.kill(children(old)[0], signal.SIGKILL)
    it.server.err.wait_for(r"the spawner, process \d+, has exited")
    it.server.err.wait_for(f"worker {old} accepts no more connections: starting a replacement")
    wait_until(lambda: is_gone(pid), "its program to die")
    wait_until(lambda: old not in it.server.workers or len(it.server.workers) == 2, "another worker")
    assert it.ask("received", client=client) == f"ended {-errno.EPIPE}\n"
    assert it.ask("run", "exit 0", client=other) == str(-errno.ECHILD)
    wait_until(lambda: old not in it.server.workers, "the old one to end")
    it.ask("run", "exit 0")
    it.hears("ended 0")


def test_worker_death_kills_its_subprocesses(program, tmp_path):
    it, begin = program()
    it.server.allow("was killed by signal")
    worker, = it.server.workers
    spawner, = children(worker)
    second = tmp_path / "second"
    pid = begin(f"trap '' TERM HUP; sleep 1000 & echo $! > {second}; wait")
    wait_until(lambda: second.exists() and second.read_text(), "the second")
    os.kill(worker, signal.SIGKILL)
    for each in (pid, int(second.read_text()), spawner):
        wait_until(lambda: is_gone(each), f"{each} to die")
    it.ask("run", "exit 0")
    it.hears("ended 0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_server_stop_kills_subprocesses(program, number):
    it, begin = program(workers=2)
    pid = begin()
    spawners = [children(worker)[0] for worker in it.server.workers]
    it.server.stop(number)
    for each in (pid, *spawners):
        wait_until(lambda: is_gone(each), f"{each} to die")


def test_subprocess_survives_reload_with_its_worker(program):
    it, begin = program()
    client = it.connect()
    pid = begin(client=client)
    spawner, = children(it.server.workers[0])
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("the new configuration serves")
    assert not is_gone(pid) and it.ask("received", client=client) == ""
    wait_until(lambda: is_gone(pid) and is_gone(spawner), "both to end with their worker")


# Messages

def test_messages_reach_their_destination(bus):
    it = bus(workers=3)
    clients = it.each(3)
    assert it.ask("send", "-1 all", clients[0]) == "0"
    assert it.ask("send", "2 second", clients[0]) == "0"
    assert it.ask("send", "1 myself", clients[1]) == "0"
    for client, more in zip(clients, ([], ["myself"], ["second"])):
        for line in ["all", *more]:
            it.hears(line, client)
    assert it.ask("received", client=clients[0]) == "all\n"


def test_messages_have_a_size_limit(bus):
    it = bus(workers=2)
    clients = it.each(2)
    for wrong in (-2, 2):
        assert it.ask("send", f"{wrong} x") == str(-errno.EINVAL)
    assert it.ask("flood", 1, clients[0]) == "0"
    for client in clients:
        it.hears("32768 bytes", client)


def test_message_flood_does_not_block_other_clients(bus):
    it = bus(workers=2)
    clients = it.each(2)
    for _ in range(20):
        assert it.ask("flood", 1000, clients[0]) == str(-errno.EAGAIN)
    wait_until(lambda: it.ask("send", "-1 after", clients[0]) == "0", "space for one more")
    for client in clients:
        it.hears("after", client)


def test_message_flood_at_start_does_not_block_workers(bus):
    it = bus("Flood on", workers=3)
    for client in it.each(3):
        it.hears("32768 bytes", client)


@pytest.mark.processes("a worker that is stopped stops the program")
def test_message_queue_of_slow_worker_drops_messages(bus):
    it = bus(workers=2)
    clients = it.each(2)
    asleep = int(it.ask("info", client=clients[1]).split()[1])
    os.kill(asleep, signal.SIGSTOP)
    try:
        for _ in range(60):
            it.ask("flood", 1, clients[0])
            it.hears("32768 bytes", clients[0], count=_ + 1)
        it.server.err.wait_for("messages to worker 1 are lost: its queue is full")
    finally:
        os.kill(asleep, signal.SIGCONT)
    wait_until(lambda: 30 < it.ask("received", client=clients[1]).count("32768 bytes") < 60, "the queued messages")
    it.ask("send", "1 again", clients[0])
    it.hears("again", clients[1])
    os.kill(asleep, signal.SIGSTOP)
    try:
        for _ in range(60, 120):
            it.ask("flood", 1, clients[0])
            it.hears("32768 bytes", clients[0], count=_ + 1)
    finally:
        os.kill(asleep, signal.SIGCONT)
    assert it.server.err.text.count("messages to worker 1 are lost") == 1, "the log has one line for a while"


def test_messages_do_not_cross_configurations(bus):
    it = bus()
    old = [it.connect() for _ in range(30)]  # each connection may send one more request
    for client in old:
        it.ask("info", client=client)
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("the new configuration serves")
    assert it.ask("send", "-1 old", old[0]) == "0"
    wait_until(lambda: it.ask("received", client=old.pop()) == "old\n", "the message of the old one")
    it.ask("send", "0 new")
    it.hears("new")
    assert it.ask("received") == "new\n"


# Requests to the master

@pytest.mark.processes("it has no master")
def test_plugin_can_request_reload_of_the_configuration_that_serves(bus, site):
    site.add("index.html", "old")
    site.add("new/index.html", "new")
    it = bus(workers=2)
    text = it.server.config.read_text().replace("DocumentRoot site\n", "DocumentRoot site/new\n")
    it.server.config.write_text(text)
    assert it.ask("reload") == "0"
    it.server.err.wait_for("a plugin requests a reload: reloading the configuration")
    it.server.err.wait_for("the new configuration serves")
    assert it.server.get("/").text == "old", "an administrator may still be editing the file"
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("the new configuration serves", 2)
    assert it.server.get("/").text == "new"


@pytest.mark.processes("it has no master")
def test_plugin_can_set_log_level(bus):
    it = bus(workers=2)
    it.server.allow("was killed by signal")
    assert [it.ask("level", client=client) for client in it.each(2)] == ["2", "2"]
    assert it.ask("level", 3) == "0"
    it.server.err.wait_for("the log level is now debug")
    for client in it.each(2):
        wait_until(lambda: it.ask("level", client=client) == "3", "the worker to learn it")
    victim = it.server.workers[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in it.server.workers and len(it.server.workers) == 2, "its successor")
    for client in it.each(2):
        assert it.ask("level", client=client) == "3"
    assert it.ask("level", 4) == str(-errno.EINVAL) and it.ask("level", -1) == str(-errno.EINVAL)
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("the new configuration serves")
    for client in it.each(2):
        assert it.ask("level", client=client) == "2"


# Shared memory

def test_shared_memory_lives_as_long_as_the_server(bus):
    it = bus(workers=2)
    it.server.allow("was killed by signal")
    assert [it.ask("count", client=client) for client in it.each(2)] == ["0", "1"]
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("the new configuration serves")
    assert it.ask("count") == "2"
    for victim in it.server.workers:
        os.kill(victim, signal.SIGKILL)
    wait_until(lambda: it.server.get("/worker/info").status == 200, "a successor")
    assert it.ask("count") == "3"


# Logs

def lines_of(folder, name="own.log"):
    """Returns all lines of the log and its rotated files; only the current file may be empty."""
    files = sorted(folder.glob(f"{name}*"))
    return [line for file in files for line in file.read_text().splitlines()]


def test_plugin_log_is_written(bus, tmp_path):
    it = bus("Log own.log")
    it.ask("write", 10)
    it.server.stop()
    assert [line.split()[1] for line in lines_of(tmp_path)] == [str(i) for i in range(1, 11)]
    assert not (tmp_path / "own.log.1").exists()


def test_plugin_log_that_cannot_be_opened_is_an_error(bus):
    server = bus("Log no/own.log", expect_start=False).server
    server.exit_code = 3
    server.wait()
    server.err.wait_for(r"monkey.conf:\d+:9: error: cannot open the log `\S+/no/own.log`: No such file")


def test_log_rotation_under_load_loses_no_line(bus, tmp_path):
    it = bus("Log own.log\nLogSize 20K\nLogKeep 1000", workers=4)
    clients = it.each(4)
    stop = threading.Event()
    written = [0] * 4

    def write(i):
        while not stop.is_set():
            it.ask("write", 100, clients[i])
            written[i] += 100

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_until((tmp_path / "own.log.3").exists, "some rotations")
        it.server.tell(signal.SIGUSR1)
        wait_until((tmp_path / "own.log.6").exists, "more rotations")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    it.server.stop()
    lines = lines_of(tmp_path)
    assert len(lines) == sum(written) and len(set(lines)) == len(lines)
    assert {len(line) for line in lines} <= set(range(64, 90)), "each line is complete"
    for file in tmp_path.glob("own.log.*"):
        assert file.stat().st_size >= 20 << 10, f"{file} was rotated too early"


def test_log_rotation_keeps_configured_number(bus, tmp_path):
    it = bus("Log own.log\nLogSize 1K\nLogKeep 2")
    (tmp_path / "own.log").chmod(0o604)
    for i in range(4):
        it.ask("write", 20)
        wait_until(lambda: (tmp_path / "own.log").stat().st_size == 0 and (tmp_path / "own.log.1").exists()
                   and f" {i * 20 + 20} " in (tmp_path / "own.log.1").read_text(), "a rotation")
    assert sorted(file.name for file in tmp_path.glob("own.log*")) == ["own.log", "own.log.1", "own.log.2"]
    # Lines that a worker has buffered when its log is renamed are still written to the old file.
    assert any(" 60 " in (tmp_path / f"own.log.{i}").read_text() for i in (1, 2))
    assert (tmp_path / "own.log").stat().st_mode & 0o777 == 0o604


def test_log_rotation_may_keep_no_files(bus, tmp_path):
    it = bus("Log own.log\nLogSize 1K\nLogKeep 0")
    before = (tmp_path / "own.log").stat().st_ino
    it.ask("write", 20)
    wait_until(lambda: (tmp_path / "own.log").exists() and (tmp_path / "own.log").stat().st_size == 0
               and (tmp_path / "own.log").stat().st_ino != before, "a new file")
    assert [file.name for file in tmp_path.glob("own.log*")] == ["own.log"]


def test_log_rotation_ignores_file_moved_by_another_program(bus, tmp_path):
    it = bus("Log own.log\nLogSize 1K\nLogKeep 3")
    (tmp_path / "own.log").rename(tmp_path / "moved")
    (tmp_path / "own.log").write_text("somebody's\n")
    it.ask("write", 20)
    wait_until(lambda: (tmp_path / "moved").read_text().count("\n") == 20, "the lines")
    wait_until(lambda: str(tmp_path / "own.log") in descriptors(it.server.workers[0]).values(), "the right file")
    it.ask("write", 1)
    wait_until(lambda: " 21 " in (tmp_path / "own.log").read_text(), "a line in it")
    assert not (tmp_path / "own.log.1").exists() and (tmp_path / "own.log").read_text().startswith("somebody's\n")


def test_log_rotation_failure_loses_no_line(bus, tmp_path):
    (tmp_path / "own.log.1").mkdir()
    (tmp_path / "own.log.1/x").write_text("in the way")
    it = bus("Log own.log\nLogSize 1K\nLogKeep 1")
    it.ask("write", 20)
    it.server.err.wait_for(r"cannot rotate the log \S+/own.log: Is a directory")
    it.ask("write", 20)
    it.server.stop()
    assert (tmp_path / "own.log").read_text().count("\n") == 40
    assert it.server.err.text.count("cannot rotate the log") == 1


# The sandbox

@pytest.mark.processes("it has no sandbox")
def test_sandbox_allows_additional_path(bus, tmp_path):
    if b"Landlock  yes" not in subprocess.check_output([PROGRAM, "-V"]):
        pytest.skip("this kernel has no Landlock")
    outside = tmp_path / "outside"
    outside.write_text("outside")
    assert bus().ask("read", outside) == str(errno.EACCES)
    assert bus("Allow outside").ask("read", outside) == "0"
    assert bus("Allow none").ask("read", outside) == str(errno.EACCES)
