# SPDX-License-Identifier: Apache-2.0
"""SIGHUP loads a new configuration without losing a request; an invalid configuration changes nothing."""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from client import Client
from load import Load
from monkey import PROTOCOLS
from proc import RELEASE, descriptors, status, stop_idle, wait_until
from sockets import free_port

pytestmark = pytest.mark.over("h1", "h2-tls", why="processes come and go alike; under load all four are tried")


class ReloadableServer:
    """A server whose configuration changes while it runs."""

    def __init__(self, server):
        self.server, self.n = server, 0

    def write(self, old, new):
        text = self.server.config.read_text()
        assert old in text
        self.server.config.write_text(text.replace(old, new))
        return self

    def hup(self):
        self.server.tell(signal.SIGHUP)
        self.n += 1
        self.server.err.wait_for("the new configuration serves", count=self.n)
        return self

    def drained(self, workers):
        wait_until(lambda: len(self.server.workers) == workers, "the old workers to end")
        return self


@pytest.fixture
def start(monkey, site):
    site.add("index.html", "hello")
    return lambda **how: ReloadableServer(monkey(**how))


def test_reload_starts_new_workers(start):
    it = start(workers=2)
    old = it.server.workers
    it.hup().drained(2)
    assert not set(old) & set(it.server.workers)
    assert it.server.get("/").text == "hello"


@pytest.mark.slow
@pytest.mark.over(*PROTOCOLS, why="nothing is lost over any protocol")
def test_reload_under_load_loses_no_request(start):
    it = start(workers=2)
    with Load(it.server, content=b"hello") as load:
        for _ in range(8):
            load.more(10)
            it.hup()
        load.more(10).check()
    it.drained(2)


def test_reload_that_changes_worker_count_loses_no_request(start):
    it = start(workers=1)
    with Load(it.server, content=b"hello") as load:
        for before, after in ((1, 3), (3, 2), (2, 4), (4, 1)):
            load.more(10)
            it.write(f"Workers {before}\n", f"Workers {after}\n").hup()
        load.more(10).check()
    it.drained(1)


@pytest.mark.over("h1", "h1-tls", why="wrk speaks HTTP/1")
@pytest.mark.skipif(not shutil.which("wrk"), reason="no wrk here")
def test_reload_under_heaviest_load_loses_no_request(start):
    """Tests the release program at the highest request rate of this machine."""
    it = start(workers=2, program=RELEASE, server="KeepAliveRequests 100")
    began = time.monotonic()
    with subprocess.Popen(["wrk", "-t2", "-c30", "-d1m", "--timeout", "30s", it.server.url + "/"], stdout=subprocess.PIPE,
                          text=True) as wrk:
        try:
            while it.n < 5 or time.monotonic() - began < 2:
                it.hup()
        finally:
            wrk.send_signal(signal.SIGINT)  # wrk then prints its statistics
        output = wrk.communicate()[0]
    assert re.search(r"\d{3,} requests in ", output), output
    assert "Socket errors" not in output and "Non-2xx" not in output, output


@pytest.mark.http1
def test_reload_answers_pipelines_or_closes_properly(start):
    """The server does not process the requests that follow a response with `close`: the client sends them again."""
    it = start(workers=2)
    for round_ in range(5):
        with it.server.connect() as c:
            c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
            it.hup()
            answers = 0
            while answers < 50:
                reply = c.read()
                assert reply.text == "hello"
                answers += 1
                if reply.closes:
                    c.expect_end()
                    break
            else:
                assert c.is_open()


@pytest.mark.http1
def test_reload_lets_idle_connections_send_one_more_request(start):
    it = start(workers=2)
    clients = [it.server.connect() for _ in range(10)]
    for c in clients:
        assert not c.get("/").closes
    it.hup()
    for c in clients:
        reply = c.get("/")
        assert reply.text == "hello" and reply.closes
        c.expect_end().close()
    it.drained(2)


@pytest.mark.over(*PROTOCOLS, why="nothing is lost over any protocol")
@pytest.mark.parametrize("program", [None, RELEASE], ids=["sanitized", "optimized"])
def test_reload_does_not_interrupt_download(start, site, program):
    """Without sanitizers, freed memory is reused, including the memory of the download's old configuration."""
    data = os.urandom(16 << 20)
    site.add("big", data)
    it = start(workers=2, server="MinRate off", program=program)
    with it.server.connect(receive_buffer=65536) as c:
        c.ask("/big")
        c.begin()
        for _ in range(4):
            it.hup()  # each reload must complete, although the first set of workers is still busy
        it.drained(3)
        assert c.read().body == data
    it.drained(2)


@pytest.mark.http1
def test_reload_does_not_interrupt_slow_head(start):
    it = start()
    with it.server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nHo")
        wait_until(lambda: sum(path.startswith("socket:") for path in descriptors(it.server.workers[0]).values()) > 2,
                   "the connection to be accepted")
        it.hup()
        assert c.send(b"st: x\r\n\r\n").read().text == "hello"
        c.expect_end()
    it.drained(1)


@pytest.fixture
def stopped_worker(start):
    """A server and its only worker, which is stopped until `resume(old)`."""
    it = start(workers=1)
    old, = it.server.workers
    stop_idle(old)
    yield it, old
    if it.server.process.poll() is None and old in it.server.workers:
        resume(old)


def resume(pid):
    os.kill(pid, signal.SIGCONT)


def wait_until_master_stops_old_workers(it):
    """Waits for two loop iterations of the master. The new workers reported to the master before they served a connection. In one
    iteration, the master may handle a signal before the reports, but by the second signal it has told the old workers to stop."""
    for n in (1, 2):
        it.server.tell(signal.SIGUSR1)
        it.server.err.wait_for("reopened the logs", count=n)


def test_reload_is_logged_when_old_workers_stop_accepting(stopped_worker):
    """Until the old workers stop, the message would be wrong: the old configuration could still serve the next client."""
    it, old = stopped_worker
    it.write("[HOST]", "    HideVersion on\n\n[HOST]").server.tell(signal.SIGHUP)
    wait_until(lambda: it.server.get("/")["Server"] == "Monkey", "the new worker")
    wait_until_master_stops_old_workers(it)
    assert "the new configuration serves" not in it.server.err.text
    resume(old)
    it.server.err.wait_for("the new configuration serves")
    assert "do not answer" not in it.server.err.text
    it.drained(1)


@pytest.mark.over("h1", "h2", why="a handshake would wait for a worker that is stopped or does not accept")
def test_reload_leaves_queued_connections_to_new_workers(start, tmp_path):
    """The old worker exits while its queue contains unaccepted connections."""
    it = start(listen=["127.0.0.1:0", f"unix:{tmp_path}/socket"])
    old, = it.server.workers
    stop_idle(old)
    it.write("[HOST]", "    HideVersion on\n\n[HOST]").server.tell(signal.SIGHUP)
    wait_until(lambda: it.server.get("/", listener=1)["Server"] == "Monkey", "the new worker")
    wait_until_master_stops_old_workers(it)
    new, = set(it.server.workers) - {old}
    stop_idle(new)
    waiting = [it.server.connect().ask("/") for _ in range(10)]
    resume(old)
    it.server.err.wait_for("the new configuration serves")
    resume(new)
    for c in waiting:
        assert c.read("GET")["Server"] == "Monkey"
        c.close()


def test_reload_does_not_wait_for_crashed_worker(stopped_worker):
    it, old = stopped_worker
    it.server.allow("was killed by signal")  # the master has not told this worker to stop, so it reports the worker's death
    it.server.tell(signal.SIGHUP)
    wait_until(lambda: len(it.server.workers) == 2 and it.server.get("/").text == "hello", "the new worker")
    os.kill(old, signal.SIGKILL)
    it.server.err.wait_for("the new configuration serves")
    assert "do not answer" not in it.server.err.text


def test_reload_waits_limited_time_for_hanging_worker(stopped_worker, site):
    """A SIGHUP that arrives during a reload is not lost."""
    it, old = stopped_worker
    site.add("new/index.html", "new")
    it.server.tell(signal.SIGHUP)
    wait_until(lambda: len(it.server.workers) == 2 and it.server.get("/").text == "hello", "the new worker")
    it.write("DocumentRoot site\n", "DocumentRoot site/new\n").server.tell(signal.SIGHUP)
    it.server.err.wait_for("old workers have not confirmed that they stopped accepting: they may still accept connections")
    it.server.err.wait_for("the new configuration serves", count=2)
    assert it.server.get("/").text == "new"
    resume(old)
    it.drained(1)


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM])
def test_reload_can_be_interrupted_by_stop(stopped_worker, number):
    it, old = stopped_worker
    it.server.tell(signal.SIGHUP)
    wait_until(lambda: len(it.server.workers) == 2 and it.server.get("/").text == "hello", "the new worker")
    it.server.tell(number)
    it.server.err.wait_for("shutting down")
    resume(old)
    assert it.server.wait() == 0


def test_reload_obeys_every_hup_eventually(start, site):
    """The last SIGHUP, which arrives during the previous reload, has an effect, too."""
    for i in range(20):
        site.add(f"{i}/who", str(i))
    it = start(workers=2)
    for i in range(20):
        it.server.config.write_text(re.sub(r"DocumentRoot \S+", f"DocumentRoot site/{i}", it.server.config.read_text()))
        it.server.tell(signal.SIGHUP)
    wait_until(lambda: it.server.get("/who").body == b"19", "the last configuration")


# Effects of a reload

def test_reload_changes_document_root(start, site):
    site.add("new/index.html", "new")
    it = start().write("DocumentRoot site\n", "DocumentRoot site/new\n").hup()
    assert it.server.get("/").text == "new"


def test_reload_changes_limits_and_headers(start):
    it = start()
    assert it.server.get("/")["Server"] != "Monkey"
    it.write("[HOST]", "    HideVersion on\n    MaxURISize 64\n\n[HOST]").hup()
    assert it.server.get("/")["Server"] == "Monkey"
    assert it.server.get("/" + "x" * 100).status == 414


def accepts(port):
    try:
        with Client(("127.0.0.1", port)) as c:
            return c.get("/").text == "hello"
    except ConnectionError:
        return False


@pytest.mark.over("h1", why="addresses are added, whatever is spoken there")
def test_reload_adds_and_removes_address(start):
    port = free_port()
    it = start()
    it.write("Workers", f"Listen 127.0.0.1:{port}\n    Workers").hup()
    assert accepts(port) and it.server.get("/").text == "hello"
    it.write(f"    Listen 127.0.0.1:{port}\n", "").hup()
    assert not accepts(port) and it.server.get("/").text == "hello"
    it.write("Workers", f"Listen 127.0.0.1:{port}\n    Workers").hup()
    assert accepts(port)


@pytest.mark.over("h1", "h2", why="an address without TLS is added")
def test_reload_releases_address_during_last_download(start, site):
    """The address can be opened again immediately."""
    data = os.urandom(16 << 20)
    site.add("big", data)
    port = free_port()
    it = start(listen=["127.0.0.1:0", f"127.0.0.1:{port}"], server="MinRate off")
    with it.server.connect(1, receive_buffer=65536) as c:
        c.ask("/big")
        c.begin()
        it.write(f"    Listen 127.0.0.1:{port}\n", "").hup()
        wait_until(lambda: not accepts(port), "the address to be closed")
        it.write("Workers", f"Listen 127.0.0.1:{port}\n    Workers").hup()
        assert accepts(port)
        assert c.read().body == data


@pytest.mark.over("h1", why="addresses are added, whatever is spoken there")
def test_reload_adds_and_removes_unix_socket(start, tmp_path):
    path = tmp_path / "socket"
    it = start()
    it.write("Workers", f"Listen unix:{path}\n    Workers").hup()
    with Client(str(path)) as c:
        assert c.get("/").text == "hello"
    it.write(f"    Listen unix:{path}\n", "").hup()
    assert not path.exists()


def test_reload_changes_access_log(start, tmp_path):
    it = start(server="AccessLog a.log")
    it.server.get("/?a")
    it.write("a.log", "b.log").hup().drained(1)
    it.server.get("/?b")
    it.server.stop()
    assert "/?a" in (tmp_path / "a.log").read_text() and "/?b" not in (tmp_path / "a.log").read_text()
    assert "/?b" in (tmp_path / "b.log").read_text()


def test_reload_frees_files_and_memory_of_old_configuration(start, tmp_path):
    """After thirty reloads the master holds no more descriptors than after the first one."""
    it = start(server="AccessLog access.log").hup().drained(1)
    before = descriptors(it.server.pid)
    for _ in range(30):
        it.hup()
    it.drained(1)
    after = descriptors(it.server.pid)
    assert len(after) == len(before), (before, after)


# Rejected reloads

BAD = [
    ("Workers", "Wrokers", r"unknown key `Wrokers`"),
    ("DocumentRoot site", "DocumentRoot nowhere", r"cannot serve the folder `\S+/nowhere`"),
    ("[HOST]", "[HSOT]", r"unknown section \[HSOT\]"),
    ("Listen 127.0.0.1:0", "Listen 192.0.2.1:0", r"cannot listen on 192\.0\.2\.1:0: Cannot assign requested address"),
    ("Listen 127.0.0.1:0", "Listen 127.0.0.1:0\n    AccessLog /no/such/log", r"cannot open the log `/no/such/log`"),
]


@pytest.mark.over("h1", why="the mistake comes after the address")
@pytest.mark.parametrize("old, new, message", BAD, ids=[new[:20] for _, new, _ in BAD])
def test_reload_with_invalid_configuration_changes_nothing(start, old, new, message):
    it = start(workers=2)
    pids = it.server.workers
    it.write(old, new)
    with Load(it.server, content=b"hello") as load:
        it.server.tell(signal.SIGHUP)
        it.server.err.wait_for(r"the new configuration is invalid: keeping the old one")
        load.more(5).check()
    assert re.search(rf"\[error\] {it.server.pid}: \S+/monkey\.conf:\d+:\d+: error: {message}", it.server.err.text)
    assert it.server.workers == pids
    it.write(new, old).hup()
    assert it.server.get("/").text == "hello"


def test_reload_logs_all_errors(start):
    it = start()
    it.write("Workers 1", "Wrokers 1\n    Timeuot 3\n    KeepAlive perhaps")
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("keeping the old one")
    for message in ("unknown key `Wrokers`", "did you mean `Workers`?", "unknown key `Timeuot`", "not `perhaps`"):
        assert re.search(rf"\[error\] \d+: .*{re.escape(message)}", it.server.err.text), it.server.err.text


def test_reload_logs_warnings_of_rejected_configuration_as_warnings(start):
    """The error occurs when the configuration is validated or when an address is opened."""
    it = start(sections="[ROUTES]\n    /api status 200 ok\n")
    for old, new in (("    DocumentRoot site", "    Nonsense 1\n    DocumentRoot site"), ("Listen 127.0.0.1:0", "Listen 192.0.2.1:0")):
        it.write(old, new)
        seen = len(it.server.err.text)
        it.server.tell(signal.SIGHUP)
        wait_until(lambda: "keeping the old one" in it.server.err.text[seen:], "the rejection")
        text = it.server.err.text[seen:]
        assert re.search(r"\[error\] \d+: \S+: error: ", text), text
        warning = re.search(r"\[(\w+)\] \d+: \S+: warning: no route .*\n.*\[(\w+)\] \d+: +DocumentRoot", text)
        assert warning and warning.groups() == ("warn", "warn"), text
        it.write(new, old)


def test_reload_counts_errors_beyond_limit(start):
    it = start()
    it.write("Workers 1", "Workers 1\n" + "    Wrong 1\n" * 150)
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("keeping the old one")
    assert it.server.err.text.count("unknown key `Wrong`") == 100
    assert re.search(r"\[error\] \d+: and \d+ more\n", it.server.err.text)


def test_reload_with_missing_configuration_keeps_old_one(start):
    it = start()
    it.server.config.rename(it.server.config.with_suffix(".away"))
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("keeping the old one")
    assert it.server.get("/").text == "hello"
    it.server.config.with_suffix(".away").rename(it.server.config)
    it.hup()


def test_reload_rejected_leaves_config_for_respawned_worker(start):
    """The new worker serves the addresses of the old configuration, not those that could not be opened."""
    it = start(workers=1)
    it.server.allow("was killed by signal")
    it.write("Listen 127.0.0.1:0", "Listen 192.0.2.1:0")
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("keeping the old one")
    victim = it.server.workers[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: it.server.workers and victim not in it.server.workers, "its successor")
    assert it.server.get("/").text == "hello"


def test_reload_with_failing_workers_keeps_old_ones(start):
    """The workers lack descriptors, and die before they serve any request."""
    it = start(workers=2)
    it.server.allow("exited unexpectedly with code 1")
    pids = it.server.workers
    it.write("Workers 2\n", "Workers 2\n    FDLimit 4\n")
    with Load(it.server, content=b"hello") as load:
        it.server.tell(signal.SIGHUP)
        it.server.err.wait_for("workers cannot serve the new configuration: keeping the old one")
        load.more(5).check()
    wait_until(lambda: it.server.workers == pids, "only the old workers")
    it.write("Workers 2\n    FDLimit 4\n", "Workers 2\n").hup()
    assert it.server.get("/").text == "hello"


def test_reload_with_failing_workers_closes_their_sockets(start):
    it = start(workers=1)
    it.server.allow("exited unexpectedly with code 1")
    pids = it.server.workers
    it.write("Workers 1\n", "Workers 4\n    FDLimit 4\n    Listen unix:socket\n")
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("workers cannot serve the new configuration: keeping the old one")
    wait_until(lambda: it.server.workers == pids, "only the old workers")
    for _ in range(50):
        assert it.server.get("/").text == "hello"
    assert not (it.server.folder / "socket").exists()


def test_reload_failed_respawns_worker_that_died_meanwhile(start):
    it = start(workers=2)
    it.server.allow("exited unexpectedly with code 1", "was killed by signal")
    it.write("Workers 2\n", "Workers 2\n    FDLimit 4\n")
    for round_ in range(10):  # the two events occur in either order
        victim = it.server.workers[round_ % 2]
        it.server.tell(signal.SIGHUP)
        os.kill(victim, signal.SIGKILL)
        it.server.err.wait_for("keeping the old one", count=round_ + 1)
        wait_until(lambda: len(it.server.workers) == 2 and victim not in it.server.workers, "two workers")
        assert it.server.get("/").text == "hello"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change who the workers are")
def test_reload_changes_user(start):
    it = start()
    assert status(it.server.workers[0])["Uid"] == "0 0 0 0"
    it.write("Workers 1", "Workers 1\n    User nobody").hup().drained(1)
    assert status(it.server.workers[0])["Uid"] == "65534 65534 65534 65534"
