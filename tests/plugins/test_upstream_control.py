# SPDX-License-Identifier: Apache-2.0
"""Changes of the servers of an upstream while the server runs: by `monkey shell`, and over HTTP on the same socket."""
import contextlib
import fcntl
import http.client
import json
import os
import re
import resource
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from backend import Backend, response
from load import Load
from proc import wait_until
from certificates import make_authority
from shell_server import socket_folder, start as start_shell
from upstream_group import HoldingBackend, group

assert start_shell and socket_folder


@pytest.fixture
def start(start_shell):
    def begin(*backends, keys="MaxServers 4", route="", shell="", **how):
        return start_shell(shell, plugins=["proxy"], top="\n" + group(*backends, keys=keys),
                           sections=f"[ROUTES]\n    /* proxy http://group {route}\n", **how)

    return begin


class ControlConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def control(it, method, target, content=None, connection=None):
    """Sends a request to the control socket. Returns the status and the decoded content."""
    c = connection or ControlConnection(it.path)
    c.request(method, target, body=None if content is None else json.dumps(content))
    reply = c.getresponse()
    data = reply.read()
    if not connection:
        c.close()
    return reply.status, json.loads(data) if reply.headers["Content-Type"] == "application/json" else data.decode()


def servers(it):
    return {each["server"]: each for each in it.json("upstreams")}


def state_of(it, backend):
    return servers(it).get(backend.address, {}).get("state")


def counts(it, n, *backends, **how):
    """Sends n requests. Returns the number that each backend got."""
    before = [len(each.requests) for each in backends]
    for _ in range(n):
        assert it.server.get("/", **how).status == 200
    return [len(each.requests) - old for each, old in zip(backends, before)]


def run(it, text, code=0):
    done = it(*text.split())
    assert done.code == code, done
    return done.out + done.err


# ---- Commands ----

def test_control_drained_server_gets_no_requests(start):
    with Backend() as a, Backend() as b:
        it = start(a, b, keys="", workers=1)
        assert run(it, f"upstream group drain {a.address}") == "done, until you reload or restart the server\n"
        assert counts(it, 20, a, b) == [0, 20] and state_of(it, a) == "draining"
        run(it, f"upstream group enable {a.address}")
        assert counts(it, 20, a, b) == [10, 10] and state_of(it, a) == "up"
        it.server.err.wait_for(rf"shell: process \d+ of user \d+, group \d+ runs: upstream group drain {a.address}")


def test_control_requests_of_drained_server_finish(start):
    with HoldingBackend() as a, Backend() as b:
        it = start(a, b, keys="", workers=1)
        with it.server.connect() as first, it.server.connect() as second:
            first.ask("/")
            second.ask("/")
            wait_until(lambda: len(a.requests) == 1 and len(b.requests) == 1, "one request each")
            run(it, f"upstream group drain {a.address} move")
            assert servers(it)[a.address]["busy"] == 1
            a.release()
            assert {first.read().text, second.read().text} >= {"late"}


def test_control_sticky_clients_stay_or_move(start):
    with Backend() as a, Backend() as b:
        it = start(a, b, keys="", route="sticky=S", workers=2)
        cookies = {}
        while len(cookies) < 2:
            before = len(a.requests)
            reply = it.server.get("/")
            cookies[len(a.requests) > before] = [("Cookie", reply["Set-Cookie"].split(";")[0])]
        run(it, f"upstream group drain {a.address}")
        assert counts(it, 10, a, b, fields=cookies[True]) == [10, 0]
        assert counts(it, 10, a, b) == [0, 10]
        run(it, f"upstream group drain {a.address} move")
        assert counts(it, 10, a, b, fields=cookies[True]) == [0, 10]
        run(it, f"upstream group enable {a.address}")
        assert counts(it, 10, a, b, fields=cookies[True]) == [10, 0]


def test_control_only_server_can_be_drained(start):
    with Backend() as a:
        it = start(a, keys="", route="sticky=S")
        cookie = it.server.get("/")["Set-Cookie"].split(";")[0]
        run(it, f"upstream group drain {a.address}")
        assert it.server.get("/").status == 503
        assert it.server.get("/", fields=[("Cookie", cookie)]).status == 200
        run(it, f"upstream group drain {a.address} move")
        assert it.server.get("/", fields=[("Cookie", cookie)]).status == 503
        run(it, f"upstream group enable {a.address}")
        assert it.server.get("/").status == 200


def test_control_weight(start):
    with Backend() as a, Backend() as b:
        it = start(a, b, keys="", workers=1)
        run(it, f"upstream group weight {a.address} 3")
        assert counts(it, 40, a, b) == [30, 10] and servers(it)[a.address]["weight"] == 3


def test_control_added_server_gets_requests_of_all_workers(start):
    with Backend() as a, Backend() as b:
        it = start(a, workers=3)
        run(it, f"upstream group add {b.address} weight=3")
        wait_until(lambda: servers(it)[b.address]["weight"] == 3, "the server")
        got = counts(it, 80, a, b)
        assert got[0] and got[1] > 2 * got[0]
        run(it, f"upstream group remove {b.address}")
        assert counts(it, 20, a, b) == [20, 0]
        wait_until(lambda: b.address not in servers(it), "the server to disappear")


def test_control_added_server_has_a_name(start):
    with Backend() as a, Backend() as b:
        it = start(a, keys="MaxServers 2")
        name = f"localhost:{b.at[1]}"
        run(it, f"upstream group add {name}")
        wait_until(lambda: it.server.get("/").status == 200 and b.requests, "requests")
        assert servers(it)[name]["state"] == "up"


def test_control_room_is_reused(start):
    with Backend() as a, contextlib.ExitStack() as stack:
        it = start(a, keys="MaxServers 3", workers=2)
        others = [stack.enter_context(Backend()) for _ in range(8)]
        for each in others:
            run(it, f"upstream group add {each.address}")
            got = counts(it, 20, a, each)
            assert got[1] >= 5, got
            run(it, f"upstream group remove {each.address}")
            assert counts(it, 6, a) == [6]
            wait_until(lambda e=each: e.address not in servers(it), "the server to disappear")
        assert all(len(each.requests) < 20 for each in others)


def test_control_backup_is_added(start):
    with Backend() as a, Backend() as b:
        it = start(a)
        run(it, f"upstream group add {b.address} backup")
        assert counts(it, 10, a, b) == [10, 0]
        run(it, f"upstream group drain {a.address}")
        assert counts(it, 10, a, b) == [0, 10]


def test_control_added_server_is_checked(start):
    with Backend() as a, Backend(lambda _: response("no", "500 No")) as b:
        it = start(a, keys="MaxServers 2\nHealthCheck /\nHealthInterval 200ms\nHealthFall 1")
        run(it, f"upstream group add {b.address}")
        wait_until(lambda: state_of(it, b) == "down", "the check")
        assert it.server.get("/").status == 200


@pytest.mark.parametrize("command, message", [
    ("upstream", "expected NAME"), ("upstream group", "expected NAME"), ("upstream group drain", "expected NAME"),
    ("upstream none drain 127.0.0.1:1", "no route uses an upstream `none`"),
    ("upstream group drain 127.0.0.1:9", "has no server 127.0.0.1:9"),
    ("upstream group explode 127.0.0.1:1", "expected `add`, `remove`"),
    ("upstream group add 127.0.0.1:1", "has the server 127.0.0.1:1 already"),
    ("upstream group add http://x/", "is not a server"),
    ("upstream group add unix:relative", "begins with `/`"), ("upstream group add " + "x" * 300 + ":1", "is not a server"),
    ("upstream group add 127.0.0.1:2 weight=0", "a number from 1 to 100"),
    ("upstream group add 127.0.0.1:2 weight=101", "a number from 1 to 100"),
    ("upstream group weight 127.0.0.1:1", "needs a number"), ("upstream group weight 127.0.0.1:1 x", "a number from 1"),
    ("upstream group drain 127.0.0.1:1 backup", "`backup` is not an option of `drain`"),
    ("upstream group drain 127.0.0.1:1 --save", "needs a StateFile"),
])
def test_control_reports_bad_commands(start, command, message):
    it = start("127.0.0.1:1", keys="MaxServers 2")
    done = it(*command.split())
    assert done.code in (1, 2) and message in done.err, done
    assert set(servers(it)) == {"127.0.0.1:1"} and "runs: upstream" not in it.server.err.text


def test_control_adding_needs_room(start):
    it = start("127.0.0.1:1", keys="")
    assert "has no room" in run(it, "upstream group add 127.0.0.1:2", code=1)


def test_control_more_servers_than_room_are_refused(start):
    it = start("127.0.0.1:1", keys="MaxServers 3")
    run(it, "upstream group add 127.0.0.1:2")
    run(it, "upstream group add 127.0.0.1:3")
    assert "has no room" in run(it, "upstream group add 127.0.0.1:4", code=1)


# ---- Reload, restart, and death of a worker ----

@pytest.mark.processes("it reloads")
def test_control_unsaved_changes_end_with_reload(start):
    with Backend() as a, Backend() as b:
        it = start(a, workers=2)
        run(it, f"upstream group add {b.address}")
        run(it, f"upstream group drain {a.address}")
        assert counts(it, 4, a, b) == [0, 4]
        run(it, "reload")
        assert counts(it, 10, a, b) == [10, 0] and b.address not in servers(it)
        run(it, f"upstream group add {b.address}")
        assert sum(counts(it, 10, a, b)) == 10


@pytest.mark.processes("it reloads")
def test_control_automatic_reload_keeps_changes(start, tmp_path):
    """A renewed certificate must not send requests to a drained server. A reload that an administrator requests ends the changes."""
    pair = make_authority(tmp_path).issue(file="pair")
    listed = tmp_path / "listed" / "servers"
    listed.parent.mkdir()
    with contextlib.ExitStack() as stack:
        a, b, c, d, e = (stack.enter_context(Backend()) for _ in range(5))
        listed.write_text(f"{e.address} weight=2\n")
        it = start(a, b, keys=f"MaxServers 6\nStateFile {tmp_path / 'state'}\nServersFile {listed}", workers=2,
                   server=f"Listen 127.0.0.2:0 tls\nCertificate {pair.certificate} {pair.key}\n")
        wait_until(lambda: e.address in servers(it), "the listed server")
        run(it, f"upstream group add {c.address} weight=3 --save")
        run(it, f"upstream group add {d.address}")
        run(it, f"upstream group drain {a.address}")
        run(it, f"upstream group remove {b.address}")
        run(it, f"upstream group weight {c.address} 9")
        run(it, f"upstream group drain {e.address} move")
        run(it, "loglevel debug")
        for turn in (1, 2):
            for file in (pair.certificate, pair.key):
                os.utime(file)
            it.server.err.wait_for("watched files have changed", turn)
            it.server.err.wait_for("the new configuration serves", turn)
            wait_until(lambda: len(it.server.workers) == 2, "the old workers to end")
            shown = servers(it)
            assert {name: shown[name]["state"] for name in shown} == {
                a.address: "draining", b.address: "removed", c.address: "up", d.address: "up", e.address: "draining"}
            assert shown[c.address]["weight"] == 9
            counted = counts(it, 30, a, b, c, d, e)
            assert counted[2] > counted[3] > 0 and sum(counted) == counted[2] + counted[3]
            assert "debug" in run(it, "loglevel")
        run(it, "reload")
        wait_until(lambda: len(it.server.workers) == 2, "the old workers to end")
        shown = servers(it)
        assert shown[c.address]["weight"] == 3 and d.address not in shown
        assert all(counts(it, 30, a, b, c, e)) and "info" in run(it, "loglevel")


@pytest.mark.processes("it reloads")
def test_control_rejected_reload_keeps_changes(start):
    with Backend() as a, Backend() as b:
        it = start(a, workers=2)
        run(it, f"upstream group add {b.address}")
        run(it, f"upstream group drain {a.address}")
        it.change("MaxServers 4", "MaxServers 4\nNonsense 1")
        it.server.allow("Nonsense", "rejected", "keeping the old one")
        run(it, "reload", code=1)
        assert counts(it, 10, a, b) == [0, 10]


@pytest.mark.processes("it reloads")
def test_control_reload_whose_workers_fail_keeps_changes(start):
    """They lack descriptors. Until it is certain that they cannot serve, the old workers obey the administrator as well."""
    with Backend(lambda _: response("a")) as a, Backend(lambda _: response("b")) as b, Backend(lambda _: response("c")) as c:
        it = start(a, b, workers=2)
        it.server.allow("exited unexpectedly with code 1")
        run(it, f"upstream group drain {a.address}")
        run(it, f"upstream group remove {b.address}")
        run(it, f"upstream group add {c.address} weight=3")
        it.change("Workers 2\n", "Workers 2\n    FDLimit 4\n")
        with Load(it.server, content=b"c") as load:
            for turn in range(5):
                it.server.tell(signal.SIGHUP)
                load.more(5)
                it.server.err.wait_for("workers cannot serve the new configuration: keeping the old one", count=turn + 1)
            run(it, f"upstream group weight {c.address} 7")
            it.server.tell(signal.SIGHUP)
            it.server.err.wait_for("workers cannot serve the new configuration: keeping the old one", count=6)
            load.more(20).check()
        shown = servers(it)
        assert shown[a.address]["state"] == "draining" and shown[b.address]["state"] == "removed"
        assert shown[c.address]["weight"] == 7
        it.change("    FDLimit 4\n", "")
        run(it, "reload")
        wait_until(lambda: len(it.server.workers) == 2, "the old workers to end")
        counted = counts(it, 10, a, b, c)
        assert min(counted[:2]) > 0 and counted[2] == 0 and c.address not in servers(it)


@pytest.mark.processes("it reloads")
def test_control_draining_worker_frees_the_room_of_added_servers(start):
    """An open request keeps the first worker alive through several reloads."""
    with HoldingBackend() as a, Backend() as b, Backend() as c:
        it = start(a, keys="MaxServers 2")
        with it.server.connect() as client:
            client.ask("/")
            wait_until(lambda: a.requests, "the request")
            for each in (b, c, b, c):
                wait_until(lambda each=each: it("upstream", "group", "add", each.address).code == 0, "room")
                wait_until(lambda each=each: each.address in servers(it), "the server")
                run(it, "reload")
                assert len(it.server.workers) > 1
            a.release()


@pytest.mark.processes("it reloads")
def test_control_saved_changes_stay(start, tmp_path, monkey):
    file = tmp_path / "state"
    with Backend() as a, Backend() as b, Backend() as c:
        it = start(a, b, keys=f"MaxServers 4\nStateFile {file}", workers=2)
        assert run(it, f"upstream group add {c.address} weight=2 --save") == "done, and saved\n"
        run(it, f"upstream group weight {b.address} 4 --save")
        run(it, f"upstream group remove {a.address} --save")
        text = file.read_text()
        assert text == (f"# Written by `monkey shell`, and read after the configuration.\n{a.address} removed\n"
                        f"{b.address} weight=4\n{c.address} added weight=2\n")
        for _ in range(2):
            run(it, "reload")
            assert counts(it, 30, a, b, c)[0] == 0
            shown = servers(it)
            assert shown[b.address]["weight"] == 4 and shown[c.address]["weight"] == 2
            assert shown[a.address]["state"] == "removed"
        run(it, f"upstream group add {a.address} --save")
        run(it, f"upstream group remove {c.address} --save")
        run(it, f"upstream group drain {b.address} move --save")
        assert counts(it, 10, a, b, c) == [10, 0, 0]
        run(it, "reload")
        assert counts(it, 10, a, b, c) == [10, 0, 0]
        assert file.read_text().splitlines()[1:] == [f"{b.address} weight=4 drain=move"]


@pytest.mark.parametrize("workers", [1, 2])
def test_control_added_server_is_saved_by_its_own_command(start, tmp_path, workers):
    with Backend() as a, Backend() as b:
        it = start(a, keys=f"MaxServers 4\nStateFile {tmp_path}/state", workers=workers)
        run(it, f"upstream group add {b.address} --save")
        assert (tmp_path / "state").read_text().splitlines()[1:] == [f"{b.address} added weight=1"]


@pytest.mark.processes("it reloads")
def test_control_removed_lines_of_configuration_are_dropped(start, tmp_path):
    file = tmp_path / "state"
    with Backend() as a:
        file.write_text(f"127.0.0.1:9 drain\n{a.address} weight=2\n127.0.0.1:10 added\n")
        it = start(a, keys=f"StateFile {file}")
        it.server.allow("is dropped")
        it.server.err.wait_for(r"the server 127.0.0.1:9 is dropped: the configuration no longer contains it")
        it.server.err.wait_for(r"the server 127.0.0.1:10 is dropped: there is no room for it \(MaxServers\)")
        assert servers(it)[a.address]["weight"] == 2


@pytest.mark.processes("it reloads")
@pytest.mark.parametrize("more, mode", [("", "up"), (" drain", "draining")])
def test_control_configuration_overrides_added_server(start, tmp_path, more, mode):
    file = tmp_path / "state"
    with Backend() as a, Backend() as b:
        it = start(a, keys=f"MaxServers 4\nStateFile {file}")
        run(it, f"upstream group add {b.address} weight=9 backup --save")
        if more:
            run(it, f"upstream group drain {b.address} --save")
        it.change(f"Server {a.address}", f"Server {a.address}\n    Server {b.address} weight=2")
        it.server.allow("overrides its saved weight")
        run(it, "reload")
        shown = servers(it)[b.address]
        assert (shown["weight"], shown["backup"], shown["state"]) == (2, False, mode)
        it.server.err.wait_for(rf"the configuration now lists the server {b.address}, and overrides its saved weight")
        run(it, f"upstream group weight {a.address} 3 --save")
        assert file.read_text().splitlines()[1:] == [f"{a.address} weight=3"] + ([b.address + more] if more else [])
        it.change(f"{b.address} weight=2", f"{b.address} weight=5")
        run(it, "reload")
        assert servers(it)[b.address]["weight"] == 5 and servers(it)[a.address]["weight"] == 3


@pytest.mark.parametrize("text, message", [
    ("127.0.0.1:1 weight=x\n", ":1: expected `added`"), ("# ok\n\nno server\n", ":3: expected `added`"),
    ("http://x/\n", ":1: expected HOST:PORT"), ("127.0.0.1:1\n127.0.0.1:1\n", ":2: expected each server once"),
    ("\0\1\2\n", ":1: expected HOST:PORT"), ("x" * 40000, "more than 32 KB"),
    ("".join(f"127.0.0.1:{i} added\n" for i in range(1, 70)), ":65: expected at most 64 servers"),
])
def test_control_malformed_state_is_ignored(start, tmp_path, text, message):
    file = tmp_path / "state"
    file.write_text(text)
    with Backend() as a:
        it = start(a, keys=f"MaxServers 4\nStateFile {file}")
        it.server.allow("StateFile|is ignored")
        it.server.err.wait_for(re.escape(message))
        assert it.server.get("/").status == 200 and set(servers(it)) == {a.address}
        assert file.read_text() == text


def test_control_state_is_not_read_from_links_and_pipes(start, tmp_path):
    (tmp_path / "secret").write_text("root:x:0:0\n")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with Backend() as a:
            it = start(a, keys=f"StateFile {tmp_path / name}")
            it.server.allow("is ignored")
            it.server.err.wait_for("is ignored, and the servers are as configured")
            assert "root:x" not in it.server.err.text
            it.server.stop()


def test_control_unwritable_state_is_reported(start, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Backend() as a:
        it = start(a, keys=f"StateFile {folder}/state")
        folder.rmdir()
        assert "done, but not saved: cannot write" in run(it, f"upstream group drain {a.address} --save", code=1)
        assert state_of(it, a) == "draining"
        it.server.err.wait_for(rf"runs: upstream group drain {a.address} --save: done, but not saved: cannot write {folder}/state: No such")


@pytest.mark.processes("the limit belongs to a process")
def test_control_full_disk_keeps_the_saved_state(start, tmp_path):
    """A limit for the size of files makes writes fail in the middle, as on a full disk."""
    file = tmp_path / "state"
    with Backend() as a, Backend() as b:
        it = start(a, b, keys=f"StateFile {file}")
        run(it, f"upstream group drain {a.address} --save")
        before = file.read_text()
        worker, = it.server.workers
        limits = resource.prlimit(worker, resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
        assert f"done, but not saved: cannot write {file}: File too large" in run(it, f"upstream group drain {b.address} --save", code=1)
        assert control(it, "PATCH", f"/upstreams/group/servers/{b.address}", {"weight": 3, "save": True})[0] == 409
        assert file.read_text() == before and not [each for each in tmp_path.iterdir() if "new" in each.name]
        resource.prlimit(worker, resource.RLIMIT_FSIZE, limits)
        run(it, f"upstream group weight {b.address} 4 --save")
        assert f"{b.address} weight=4 drain" in file.read_text()


def test_control_client_that_does_not_wait_for_the_disk(start, tmp_path):
    file = tmp_path / "state"
    with Backend() as a:
        it = start(a, keys=f"StateFile {file}")
        for i in range(20):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(it.path))
                client.sendall(f"upstream group weight {a.address} {i + 2} --save\n".encode())
                if i % 2:
                    client.recv(1)
        wait_until(lambda: len(re.findall(r"upstream group weight \S+ \d+ --save: (done, and saved|another change is in progress)", it.server.err.text)) == 20,
                   "the results in the log")
        run(it, f"upstream group weight {a.address} 50 --save")
        assert f"{a.address} weight=50" in file.read_text()


LOCK_BYTE = 1024  # MK_UPSTREAM_WORKERS


@pytest.mark.processes("the lock belongs to a process")
def test_control_concurrent_change_is_refused_at_once(start):
    """Another process has the lock of changes, such as one whose disk does not respond: no worker waits for it."""
    with Backend() as a, Backend() as b:
        it = start(a, b, keys="", workers=1)
        folder = Path(f"/proc/{it.server.workers[0]}/fd")
        name = next(each for each in folder.iterdir() if "monkey-upstream-rows" in os.readlink(each))
        with name.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCK_BYTE)
            assert "another change is in progress: try again" in run(it, f"upstream group drain {a.address}", code=1)
            assert counts(it, 4, a, b) == [2, 2]
        run(it, f"upstream group drain {a.address}")
        assert counts(it, 4, a, b) == [0, 4]


@pytest.mark.processes("a worker that is killed is the program")
def test_control_new_worker_knows_added_servers(start):
    with Backend() as a, Backend() as b:
        it = start(a, workers=2)
        it.server.allow(r"worker \d+ was killed")
        run(it, f"upstream group add {b.address}")
        run(it, f"upstream group drain {a.address}")
        for pid in list(it.server.workers):
            os.kill(pid, signal.SIGKILL)
            it.server.err.wait_for(rf"worker {pid} was killed")
            wait_until(lambda: len(it.server.workers) == 2, "another worker")
        assert counts(it, 20, a, b) == [0, 20]
        run(it, f"upstream group remove {b.address}")
        wait_until(lambda: b.address not in servers(it), "the server to disappear")


@pytest.mark.processes("a worker that is killed is the program")
@pytest.mark.timeout(180)
def test_control_changes_under_load_lose_nothing(start):
    """Servers come and go, a worker dies, and the configuration is reloaded: every request of a client whose connection the
    killed worker did not have is answered by a server."""
    with Backend() as a, Backend() as b, Backend() as c:
        it = start(a, keys="MaxServers 3", workers=4)
        it.server.allow(r"worker \d+ was killed")
        ended, failures, done = threading.Event(), [], [0] * 6

        def ask(number):
            while not ended.is_set():
                try:
                    reply = it.server.get("/")
                except Exception as error:  # the worker was killed
                    failures.append(error)
                    continue
                done[number] += 1
                if reply.status != 200:
                    failures.append(reply.status)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
        for each in threads:
            each.start()
        try:
            for turn in range(6):
                run(it, f"upstream group add {b.address}")
                run(it, f"upstream group drain {a.address}")
                run(it, f"upstream group add {c.address} weight=5")
                time.sleep(.2)
                run(it, f"upstream group enable {a.address}")
                run(it, f"upstream group remove {b.address}")
                run(it, f"upstream group remove {c.address}")
                if turn == 3:
                    run(it, "reload")
                wait_until(lambda: {b.address, c.address}.isdisjoint(servers(it)), "the servers to disappear")
            assert not failures
            victim = it.server.workers[0]
            run(it, f"upstream group add {b.address}")
            os.kill(victim, signal.SIGKILL)
            it.server.err.wait_for(rf"worker {victim} was killed")
            run(it, f"upstream group remove {a.address}")
            time.sleep(.3)
        finally:
            ended.set()
            for each in threads:
                each.join()
        assert all(isinstance(each, Exception) for each in failures) and len(failures) <= 6, failures
        assert sum(done) > 500
        assert counts(it, 10, a, b) == [0, 10]


# ---- HTTP ----

def test_http_control_lists_and_changes(start):
    with Backend() as a, Backend() as b:
        it = start(a)
        path = "/upstreams/group/servers"
        assert control(it, "POST", path, {"server": b.address, "weight": 3}) == (200, {"message": "done, until you reload or restart the server"})
        status, listed = control(it, "GET", "/upstreams")
        assert status == 200 and {each["server"]: each["weight"] for each in listed} == {a.address: 1, b.address: 3}
        assert control(it, "PATCH", f"{path}/{a.address}", {"state": "drain", "move": True})[0] == 200
        assert counts(it, 4, a, b) == [0, 4]
        assert control(it, "PATCH", f"{path}/{a.address}", {"state": "enabled"})[0] == 200
        assert control(it, "PATCH", f"{path}/{b.address.replace(':', '%3A')}", {"weight": 1})[0] == 200
        assert control(it, "DELETE", f"{path}/{b.address}")[0] == 200
        assert counts(it, 4, a, b) == [4, 0]
        assert control(it, "DELETE", f"{path}/{b.address}") == (409, {"error": f"the upstream has no server {b.address}"})
        assert len(re.findall("runs: upstream", it.server.err.text)) == 5


def test_http_control_reads_everything(start):
    it = start("127.0.0.1:1")
    connection = ControlConnection(it.path)  # one connection serves all requests
    for name in ("status", "workers", "connections", "upstreams", "packages", "routes", "components", "metrics", "cache"):
        status, content = control(it, "GET", f"/{name}", connection=connection)
        assert status == 200 and isinstance(content, dict if name == "status" else list), (name, content)
    for name in ("configuration", "hosts", "plugins", "version"):
        status, content = control(it, "GET", f"/{name}", connection=connection)
        assert status == 200 and content == it(name).out, name
    status, content = control(it, "GET", "/uptime", connection=connection)
    assert status == 200 and re.fullmatch(r"(\d+m )?\d+s\n", content)
    assert control(it, "PUT", "/loglevel", {"level": "debug"}, connection=connection)[0] == 200
    assert control(it, "GET", "/loglevel", connection=connection) == (200, "debug\n")
    assert control(it, "DELETE", "/cache", connection=connection)[0] == 200
    connection.close()


@pytest.mark.processes("it reloads")
def test_http_control_reloads(start):
    it = start("127.0.0.1:1")
    assert control(it, "POST", "/reload") == (200, {"message": "the new configuration serves"})
    it.change("MaxServers 4", "MaxServers 4\nNonsense 1")
    it.server.allow("Nonsense", "rejected", "keeping the old one")
    status, content = control(it, "POST", "/reload")
    assert status == 409 and "Nonsense" in "".join(content["remarks"])


@pytest.mark.parametrize("method, target, content", [
    ("GET", "/loglevel", {"level": "debug"}), ("GET", "/status", {}), ("DELETE", "/cache", {"level": "debug"}),
    ("PUT", "/loglevel", {"level": "debug", "save": True}), ("POST", "/reload", {"number": 1}), ("POST", "/reload", {"confirm": ""}),
    ("POST", "/reload", {"confirm": "2d"}), ("POST", "/reload", {"timeout": "x"}), ("POST", "/confirm", {"timeout": "1s"}),
    ("POST", "/rollback", {"confirm": "60s"}), ("POST", "/rollback", {"number": 0}), ("POST", "/rollback", {"number": "1"}),
    ("POST", "/upstreams/group/servers", {"server": "127.0.0.1:2", "state": "drain"}),
    ("DELETE", "/upstreams/group/servers/127.0.0.1:1", {"weight": 1}),
])
def test_http_control_rejects_members_of_other_requests(start, method, target, content):
    it = start("127.0.0.1:1")
    status, answer = control(it, method, target, content)
    assert status == 400 and answer["error"]
    assert control(it, "GET", "/loglevel") != (200, "debug\n") and list(servers(it)) == ["127.0.0.1:1"]
    assert it.json("status")["reloads"] == 0


@pytest.mark.processes("it reloads")
def test_http_control_reload_has_a_timeout(start):
    it = start("127.0.0.1:1")
    assert control(it, "POST", "/reload", {"timeout": "30s", "confirm": "60s"})[0] == 200
    assert control(it, "POST", "/confirm") == (200, {"message": "the configuration is confirmed"})
    assert control(it, "POST", "/confirm") == (409, {"error": "no configuration waits for its confirmation"})
    status, answer = control(it, "POST", "/rollback", {"timeout": "30s", "number": 1})
    assert status == 200 and answer["message"].startswith("configuration 1 serves again")


def test_http_control_streams_long_responses(start):
    it = start("127.0.0.1:1", host="\n".join(f"ServerName {'n' * 50}{i}.example" for i in range(2000)))
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(it.server.connect()).send(b"GET /slow HTTP/1.1\r\n")
        status, content = control(it, "GET", "/connections")
        assert status == 200 and len(content) == 300
        assert control(it, "GET", "/hosts")[1].count(".example") == 2000


@pytest.mark.parametrize("data, status", [
    (b"GET /nothing HTTP/1.1\r\n\r\n", 404), (b"POST /status HTTP/1.1\r\n\r\n", 405), (b"GET / HTTP/1.1\r\n\r\n", 404),
    (b"BREW-COFFEE / HTTP/1.1\r\n\r\n", 501), (b"GET  HTTP/1.1\r\n\r\n", 400), (b"GET status HTTP/1.1\r\n\r\n", 400),
    (b"GET /%s HTTP/1.1\r\n\r\n" % (b"x" * 2000), 414), (b"GET /status HTTP/1.1\r\nno header\r\n\r\n", 400),
    (b"GET /status HTTP/1.1\r\n" + b"A: b\r\n" * 100 + b"\r\n", 431), (b"GET /status HTTP/1.1\r\nA: %s\r\n\r\n" % (b"x" * 9000), 431),
    (b"POST /reload HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400), (b"POST /reload HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n", 413),
    (b"PUT /loglevel HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    (b"PUT /loglevel HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501), (b"PUT /loglevel HTTP/1.1\r\n\r\n", 400),
    (b"PUT /loglevel HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n", 400), (b"GET /version HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400),
    (b"GET /version HTTP/1.1\r\nA: \1\r\n\r\n", 400), (b"GET /version HTTP/1.1\r\n: b\r\n\r\n", 400),
    (b"PUT /loglevel HTTP/1.1\r\nExpect: 100-continue\r\n\r\n", 417),
    (b"DELETE /upstreams/group/servers/127.0.0.1:1%0aquit HTTP/1.1\r\n\r\n", 400),
    (b"DELETE /upstreams/group/servers/127.0.0.1:1%20x HTTP/1.1\r\n\r\n", 400),
    (b"DELETE /upstreams/group/servers/%zz HTTP/1.1\r\n\r\n", 400), (b"DELETE /upstreams/none/servers/a:1 HTTP/1.1\r\n\r\n", 409),
    (b"DELETE /upstreams/group/servers HTTP/1.1\r\n\r\n", 405), (b"GET /upstreams/group HTTP/1.1\r\n\r\n", 404),
])
def test_http_control_rejects_bad_requests(start, data, status):
    it = start("127.0.0.1:1")
    assert raw(it, data).startswith(b"HTTP/1.1 %d " % status)
    assert it("version").code == 0 and set(servers(it)) == {"127.0.0.1:1"}


@pytest.mark.parametrize("head, statuses", [
    (b"Content-Length\t: 15\r\n", [400]), (b"Content-Length\0: 15\r\n", [400]), (b"Content-Length : 15\r\n", [400]), (b"", [200, 400]),
    (b"Content-Length: 15\r\n", [400]), (b"Content-Length: 1\r\n", [400, 400]), (b"X: y\r\n\r\n", [200, 400]),
], ids=["tab", "nul", "blank", "none", "content", "short", "empty-line"])
def test_http_control_content_is_no_command(start, head, statuses):
    it = start("127.0.0.1:1")
    for content in (b"loglevel debug\n", b"quit\n" + b"x" * 5000 + b"\nloglevel debug\n"):
        if b"15" in head and len(content) > 15:
            continue
        answer = raw(it, b"GET /version HTTP/1.1\r\n" + head + b"\r\n" + content)
        assert [int(each) for each in re.findall(rb"HTTP/1.1 (\d+)", answer)] == statuses and answer.startswith(b"HTTP/1.1 ")
        assert not re.search(rb"^[-+?!]", answer, re.MULTILINE)
    assert run(it, "loglevel") == "info\n"


def test_http_control_overlong_line_after_a_request(start):
    it = start("127.0.0.1:1")
    answer = raw(it, b"GET /version HTTP/1.1\r\n\r\n" + b"x" * 9000 + b"\nloglevel debug\n")
    assert [int(each) for each in re.findall(rb"HTTP/1.1 (\d+)", answer)] == [200, 431]
    assert run(it, "loglevel") == "info\n"


@pytest.mark.parametrize("data", [b"GET /version HTTP/1.1\r\n", b"PUT /loglevel HTTP/1.1\r\nContent-Length: 18\r\n\r\n{"], ids=["head", "content"])
def test_http_control_incomplete_request_times_out(start, data):
    it = start("127.0.0.1:1", shell="RequestTimeout 300ms")
    connection = ControlConnection(it.path)
    assert control(it, "GET", "/version", connection=connection)[0] == 200
    begun = time.monotonic()
    connection.sock.sendall(data)
    answer = connection.sock.makefile("rb").read()  # until the server closes the connection
    assert answer.startswith(b"HTTP/1.1 408 ") and b"not complete in time" in answer
    assert time.monotonic() - begun >= .3


def raw(it, data):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(str(it.path))
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := s.recv(65536):
                answer += part
        return answer


@pytest.mark.parametrize("content", [
    "[]", "{", "{}}", '{"server"}', '{"server": 1}', '{"server": "a:1", "weight": "x"}', '{"server": "a b:1"}', '{"servr": "a:1"}',
    '{"server": "a:1\\n"}', '{"server": "a:1" "weight": 1}', '{"server": "a:1", "backup": 1}', '{"server": "a:1", "state": "drain"}',
    '{"server": {"a": 1}}', '{"server": "' + "x" * 3000 + '"}', "\0", "{}",
])
def test_http_control_rejects_bad_content(start, content):
    it = start("127.0.0.1:1")
    data = f"POST /upstreams/group/servers HTTP/1.1\r\nContent-Length: {len(content)}\r\n\r\n{content}".encode()
    assert raw(it, data).startswith(b"HTTP/1.1 400 ")
    assert set(servers(it)) == {"127.0.0.1:1"}


def test_http_control_requests_may_arrive_in_pieces_or_together(start):
    it = start("127.0.0.1:1")
    one = b"PUT /loglevel HTTP/1.1\r\nContent-Length: 18\r\n\r\n" + b'{"level": "debug"}'
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(str(it.path))
        for byte in one:
            s.sendall(bytes([byte]))
        assert b"200 OK" in s.recv(65536)
    assert raw(it, one * 20).count(b"HTTP/1.1 200 OK") == 20


def test_http_control_idle_connection_is_closed_silently(start):
    it = start("127.0.0.1:1", shell="IdleTimeout 1")
    connection = ControlConnection(it.path)
    assert control(it, "GET", "/version", connection=connection)[0] == 200
    assert connection.sock.recv(100) == b""


def test_http_control_max_sessions(start):
    it = start("127.0.0.1:1", shell="MaxSessions 1")
    with it.raw():
        assert control(it, "GET", "/version") == (503, "all 1 sessions (MaxSessions) are in use\n")
