# SPDX-License-Identifier: Apache-2.0
"""The recording over the control socket: GET /top and /requests, `monkey top --socket` and `monkey recorder --socket`."""
import contextlib
import json
import os
import re
import socket
import subprocess
import threading

import pytest

from backend import Backend, response
from monkey import ENVIRONMENT, PROGRAM, SECONDS
from proc import wait_until
from shell_server import as_root, socket_folder, spread, start  # noqa: F401 (fixtures)
from top_terminal import Terminal


@pytest.fixture
def recorded(start, tmp_path):  # noqa: F811
    """Starts a server that records."""
    return lambda keys="", recorder="", **how: start(keys, plugins=["top", "proxy"], top=f"[RECORDER]\n    File {tmp_path}/recording\n{recorder}", **how)


def run(server, command, *options, code=0, **how):
    done = subprocess.run([PROGRAM, command, "--socket", str(server.path), *options], capture_output=True, text=True, env=os.environ | ENVIRONMENT | {"TZ": "UTC"},
                          timeout=SECONDS, check=False, **how)
    assert done.returncode == code, done
    assert "Sanitizer" not in done.stderr, done.stderr
    return done.stdout if code == 0 else done.stderr


def exchange(path, target, method="GET", fields=""):
    """Sends a request; returns the head and the content."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(SECONDS)
        s.connect(str(path))
        s.sendall(f"{method} {target} HTTP/1.1\r\nHost: monkey\r\nConnection: close\r\n{fields}\r\n".encode())
        head, _, content = b"".join(iter(lambda: s.recv(65536), b"")).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(content)}".encode() in head, head
    return head.decode(), content.decode()


def http(path, target, **how):
    """Sends a request; returns the status and the content."""
    head, content = exchange(path, target, **how)
    return int(head.split()[1]), content


def document(server, query="last=1h"):
    status, content = http(server.path, f"/top?{query}")
    assert status == 200 and content.count("\n") == 1, content
    return json.loads(content)


def requests(server, query="last=1h"):
    status, content = http(server.path, f"/requests?{query}")
    assert status == 200, content
    return json.loads(content)


def test_document_has_rates_of_all_workers(recorded):
    server = recorded(workers=3)
    connections = spread(server.server, 3)
    n = len(connections)
    got = wait_until(lambda: (d := document(server))["total"]["requests"] == n and d, "the requests of all workers")
    assert got["by"] == "hosts" and got["last_ms"] == 3_600_000 and got["n_rows"] == 1 and got["total"]["failed"] == 0
    (row,) = got["rows"]
    assert row["requests"] == n and row["requests_per_second"] > 0 and {"name", "open", "mean_us", "max_us", "bytes_per_second", "failed_per_second"} < set(row)
    assert len({r["pid"] for r in requests(server)}) == 3


def test_own_requests_in_flight_are_open_and_not_lost(recorded):
    release = threading.Event()
    with Backend(lambda _: release.wait(SECONDS) and response("late")) as backend:
        server = recorded(workers=2, sections=f"[ROUTES]\n    /wait proxy http://{backend.address}\n    /* static\n")
        clients = [server.server.connect() for _ in range(8)]  # both workers have some
        for c in clients:
            c.ask("/wait")
        try:
            wait_until(lambda: document(server, "by=open")["n_rows"] == 8, "the requests in flight")
            for _ in range(6):  # whichever worker answers
                assert {row["state"] for row in document(server, "by=open")["rows"]} == {"open"}
                assert document(server, "by=hosts")["total"]["open"] == 8
        finally:
            release.set()
        for c in clients:
            assert c.read().status == 200
            c.close()


def test_requests_are_selected_like_those_of_monkey_recorder(recorded):
    server = recorded(server="")
    for path, host in (("/", "one.example"), ("/absent", "two.example"), ("/%2561bc/x", "one.example")):
        server.server.get(path, host=host)
    wait_until(lambda: len(requests(server)) == 3, "the requests")
    for query, paths in (("host=*.example", 3), ("host=two.example", 1), ("path=%2Fabsent", 1), ("status=4xx", 2), ("status=404&host=two.example", 1), ("limit=2", 2),
                         ("failed", 0), ("client=127.0.0.0%2f8", 3), ("slower=1h", 0), ("open", 0), ("last=1ms&slower=1h", 0)):
        assert len(requests(server, query)) == paths, query
    assert [r["path"] for r in requests(server, "limit=2")] == [r["path"] for r in requests(server)][1:], "the last ones, oldest first"
    assert http(server.path, "/requests?format=text")[1].count(" 404 GET two.example/absent ") == 1
    lines = http(server.path, "/requests?format=lines")[1].splitlines()
    assert [json.loads(line) for line in lines] == requests(server)
    assert [row["path"] for row in document(server, "by=slow&last=1h&path=%2Fabsent")["rows"]] == ["/absent"]


@pytest.mark.parametrize("target, kind", [
    ("/top", "application/json"), ("/requests", "application/json"), ("/requests?format=lines", "application/x-ndjson"), ("/requests?format=text", "text/plain; charset=utf-8"),
    ("/top?format=lines", "application/json"), ("/status", "application/json"), ("/uptime", "text/plain; charset=utf-8")])  # /top has no lines: an error
def test_content_has_its_media_type(recorded, target, kind):
    assert f"\r\nContent-Type: {kind}\r\n" in exchange(recorded().path, target)[0]


def test_values_may_have_any_letters(recorded):
    server = recorded()
    for path in ("/%C3%A4/x", "/%E4", "/a"):
        server.server.get(path)
    wait_until(lambda: len(requests(server)) == 3, "the requests")
    assert [r["path"] for r in requests(server, "path=%2F%C3%A4*")] == [json.loads(run(server, "recorder", "--json", "--path", "/ä*"))["path"]]
    assert len(requests(server, "path=%2F%E4")) == 1
    assert run(server, "recorder", "--path", "/ö*") == "" and requests(server, "path=%2F%C3%B6*") == []
    assert run(server, "recorder", "--path", "/ä*").count("\n") == 1


@pytest.mark.parametrize("target, method, status, error", [
    ("/top?by=colour", "GET", 400, "invalid value of --by: colour"), ("/top?x=1", "GET", 400, "unknown option: --x=1"), ("/top?limit=1001", "GET", 400, "at most 1000"),
    ("/requests?limit=0", "GET", 400, "invalid value of --limit"), ("/requests?by=hosts", "GET", 400, "unknown option"), ("/top?host=", "GET", 400, "invalid value of --host"),
    ("/top?path=%20", "GET", 400, "invalid query"), ("/top?path=%0a", "GET", 400, "invalid query"), ("/top?path=%7f", "GET", 400, "no spaces or control characters"), ("/top?path=" + "a" * 300, "GET", 400, "at most 299 bytes"), ("/top?by=%9b", "GET", 400, "invalid value of --by"), ("/top?path=%zz", "GET", 400, "invalid query"), ("/top?=1", "GET", 400, "invalid query"),
    ("/top?--by=hosts", "GET", 400, "invalid query"), ("/top?" + "&".join(["open"] * 100), "GET", 400, "at most 63"), ("/top", "POST", 405, "expected GET"), ("/requests", "DELETE", 405, "expected GET"),
    ("/top/x", "GET", 404, "not found"), ("/top?help", "GET", 400, ""), ("/top?" + "a" * 1100, "GET", 414, "")])
def test_wrong_requests_are_rejected(recorded, target, method, status, error):
    got, content = http(recorded().path, target, method=method)
    assert got == status and error in json.loads(content)["error"], content


def test_names_of_clients_are_escaped_in_json_and_text(recorded):
    server = recorded()
    with server.server.connect() as c:
        c.send(b"GET /\xc2\x9b\xe2\x80\xae\"\\ HTTP/1.1\r\nHost: a.example\r\n\r\n")
        c.read()
    wait_until(lambda: requests(server), "the request")
    for target in ("/top?by=slow&last=1h&format=text", "/requests?format=text"):
        content = http(server.path, target)[1]
        assert re.fullmatch(r"[\n -~]+", content), content
    assert not re.search(r"[\x80-\x9f]", run(server, "recorder", "--json"))


def test_server_without_the_plugin_says_so(start):  # noqa: F811
    server = start()
    assert "`Load top`" in run(server, "top", code=1) and "`Load top`" in run(server, "recorder", code=1)
    done = server("top")
    assert done.code == 1 and "`Load top`" in done.err


def test_loading_top_loads_the_recorder(recorded):
    server = recorded()
    assert server("requests", "--limit", "1").code == 0
    assert "recorder" in server("plugins").out


@pytest.mark.parametrize("sent", [b"GET /top?last=1h HTTP/1.1\r\nHost: m\r\n\r\n" * 9 + b"GET /requests HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n", b"requests\n" * 9 + b"quit\n"], ids=["http", "shell"])
def test_pipelined_commands_are_answered_once_each(recorded, sent):
    server = recorded(workers=1)
    server.server.get("/", host="a.example")
    wait_until(lambda: requests(server), "the request")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(SECONDS)
        s.connect(str(server.path))
        s.sendall(sent)
        received = b"".join(iter(lambda: s.recv(65536), b""))
    assert len(re.findall(rb"^HTTP/1.1 200 OK\r$|^\+$", received, re.MULTILINE)) == 10, received
    assert received.count(b"a.example") == 10 if b"HTTP" in sent else 9, received


def test_shell_has_both_commands(recorded):
    server = recorded()
    server.server.get("/", host="a.example")
    wait_until(lambda: server.json("top", "--last", "1h")["total"]["requests"] == 1, "the request")
    assert server("top", "--last", "1h").lines[-1].endswith("  a.example")
    assert " 200 GET a.example/ " in server("requests").out and server.json("requests")[0]["host"] == "a.example"
    assert server("top", "--by", "x").code == 2


# ---- Commands ----

def test_top_and_recorder_print_what_the_file_has(recorded, tmp_path):
    server = recorded()
    for i in range(5):
        server.server.get("/" if i else "/absent", host=f"h{i}.example")
    wait_until(lambda: len(requests(server)) == 5, "the requests")
    file = [PROGRAM, "recorder", str(tmp_path / "recording")]
    for options in ([], ["--json"], ["-n", "2"], ["--status", "404"], ["--host", "h1.*", "--path", "/"]):
        local = subprocess.run([*file, *options], capture_output=True, text=True, env=os.environ | ENVIRONMENT | {"TZ": "UTC"}, timeout=SECONDS, check=True).stdout
        assert run(server, "recorder", *options) == local, options
    names = [line.split()[-1] for line in run(server, "top", "--once", "--last", "1h", "--sort", "name").splitlines()[2:]]
    assert names == [f"h{i}.example" for i in range(5)]
    assert [row["name"] for row in json.loads(run(server, "top", "--once", "--json", "--last", "1h", "-n", "1", "--sort", "name"))["rows"]] == ["h0.example"]


@pytest.mark.parametrize("source", ["socket", "file"])
def test_json_prints_a_document_for_each_update(recorded, tmp_path, source):
    server = recorded()
    options = ["--socket", str(server.path)] if source == "socket" else [str(tmp_path / "recording")]
    process = subprocess.Popen([PROGRAM, "top", "--json", "--interval", "100ms", "--last", "1h", *options], stdout=subprocess.PIPE, text=True, env=os.environ | ENVIRONMENT)
    with process:
        assert json.loads(process.stdout.readline())["total"]["requests"] == 0
        server.server.get("/")
        for line in process.stdout:
            if json.loads(line)["total"]["requests"] == 1:
                break
        process.terminate()


def test_document_of_a_file_is_printed_once(recorded, tmp_path):
    server = recorded()
    server.server.get("/", host="a.example")
    wait_until(lambda: requests(server), "the request")
    done = subprocess.run([PROGRAM, "top", "--once", "--json", "--last", "1h", tmp_path / "recording"], capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=True)
    assert done.stdout.count("\n") == 1 and [row["name"] for row in json.loads(done.stdout)["rows"]] == ["a.example"]


@pytest.mark.parametrize("command, options", [("top", ["file"]), ("recorder", ["file"]), ("recorder", ["--follow"])])
def test_socket_excludes_files_and_following(recorded, command, options):
    assert "--socket" in run(recorded(), command, *options, code=2)


def test_missing_and_foreign_sockets_are_reported(socket_folder):  # noqa: F811
    def report(path):
        return subprocess.run([PROGRAM, "top", "--once", "--socket", str(path)], capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=False)

    assert "there is no such socket" in report(socket_folder / "none").stderr
    assert "too long" in report("/" + "x" * 200).stderr
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(socket_folder / "dead"))
    assert "no server listens there" in report(socket_folder / "dead").stderr


@pytest.mark.parametrize("sent, shown", [
    (b"220 mail ESMTP\r\n", "not the control socket"), (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\x1b", "?"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n\x9b2J\xc2\x9b\xff\xc3\xa4\xed\xa0\x80", "?2J??ä???"),
    (b"HTTP/1.1 403 Refused\r\nContent-Length: 12\r\n\r\nnot \x1b[2J\x9byou", "not ?[2J?you"), (b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9_000_000, "too large")],
                         ids=["mail", "escape", "utf8", "refusal", "large"])
def test_hostile_server_reaches_no_terminal(socket_folder, sent, shown):  # noqa: F811
    path = socket_folder / "hostile"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve():
            with listener.accept()[0] as s, contextlib.suppress(OSError):
                s.recv(65536)
                s.sendall(sent)

        thread = threading.Thread(target=serve)
        thread.start()
        done = subprocess.run([PROGRAM, "top", "--once", "--socket", str(path)], capture_output=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=False)
        thread.join()
    assert re.fullmatch("[^\x00-\x09\x0b-\x1f\x7f-\x9f]*", (done.stdout + done.stderr).decode())
    assert (done.returncode, done.stdout.decode()) == (0, shown) if b" 200 " in sent[:20] and len(sent) < 9000 else done.returncode == 1 and shown in done.stderr.decode(), done


def test_terminal_shows_the_server(recorded):
    server = recorded()
    server.server.get("/", host="first.example")
    with Terminal("--interval", "100ms", "--socket", str(server.path)) as t:
        t.wait_for(b"first.example")
        t.type(b"6")
        t.wait_for(b"[6 failed]")
        t.type(b"1s")
        t.wait_for(b"sort by: requests")
        t.type(b" ")
        t.wait_for(b"[paused]")
        t.type(b" ")
        server.server.get("/", host="second.example")
        t.wait_for(b"second.example")
        server.server.stop()
        t.wait_for(b"error: ")
        t.type(b"q")
        assert t.wait() == 0
        t.check_restored()


# ---- Reload, slow clients, and many of them ----

def test_view_continues_after_a_reload(recorded):
    server = recorded(workers=2)
    server.server.get("/", host="before.example")
    wait_until(lambda: requests(server), "the request")
    for i in range(3):
        assert server("reload").code == 0
        server.server.get("/", host=f"after{i}.example")
        names = {f"after{i}.example", "before.example"}
        wait_until(lambda expected=names: expected <= {r["host"] for r in requests(server)}, "requests of both configurations")
        assert "before.example" in run(server, "top", "--once", "--last", "1h")


def test_clients_that_leave_or_do_not_read_delay_no_requests(recorded):
    server = recorded("MaxSessions 64", workers=1)
    for i in range(40):
        server.server.get(f"/{'x' * 140}{i}")
    wait_until(lambda: len(requests(server, "limit=40")) == 40, "the requests")
    silent = []
    for _ in range(30):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(server.path))
        s.sendall(b"GET /requests HTTP/1.1\r\nHost: m\r\n\r\n" * 20)
        silent.append(s)
    for s in silent[::2]:
        s.close()
    assert server.server.get("/").status == 200 and len(requests(server, "limit=5")) == 5
    for s in silent[1::2]:
        s.close()
    wait_until(lambda: len(server.json("requests", "--limit", "1")) == 1, "a free session")


def test_all_sessions_in_use_is_an_error(recorded):
    server = recorded("MaxSessions 1")
    with server.raw():
        assert "MaxSessions" in run(server, "recorder", code=1)


def test_worker_that_stops_answers_or_closes(recorded):
    """The reading thread of a worker that exits must not outlive its sessions."""
    server = recorded("MaxSessions 64", recorder="    Requests 20000\n    Failures 20000\n", workers=1)
    clients = []
    for _ in range(20):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(SECONDS)
        s.connect(str(server.path))
        s.sendall(b"GET /top?last=1h HTTP/1.1\r\nHost: m\r\n\r\n")
        clients.append(s)
    server.server.stop()
    for s in clients:
        with contextlib.suppress(ConnectionResetError):
            while s.recv(65536):
                pass
        s.close()


def test_damaged_recording_is_an_error(recorded, tmp_path):
    server = recorded()
    assert document(server)["rows"] == []
    with open(tmp_path / "recording", "r+b") as file:
        file.write(b"garbage")
    status, content = http(server.path, "/top")
    assert status == 409 and "it is not a recording" in content


@as_root
def test_other_users_see_nothing(recorded):
    server = recorded()
    os.chmod(server.path, 0o777)  # a mistake of the administrator
    for path in (server.path.parent, server.path.parent.parent):
        assert path.stat().st_mode & 0o005, "the folder is not the reason"
    done = subprocess.run([PROGRAM, "top", "--once", "--socket", str(server.path)], capture_output=True, text=True, env=os.environ | ENVIRONMENT, user=65534, group=65534,
                          extra_groups=[], timeout=SECONDS, check=False)
    assert done.returncode == 1 and "no permission" in done.stderr, done
    assert os.stat(server.path).st_mode & 0o777 == 0o777


@as_root
def test_socket_is_private(recorded):
    server = recorded()
    assert os.stat(server.path).st_mode & 0o777 == 0o600
    done = subprocess.run([PROGRAM, "top", "--once", "--socket", str(server.path)], capture_output=True, text=True, env=os.environ | ENVIRONMENT, user=65534, group=65534,
                          extra_groups=[], timeout=SECONDS, check=False)
    assert done.returncode == 1 and "Permission denied" in done.stderr, done
