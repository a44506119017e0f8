# SPDX-License-Identifier: Apache-2.0
"""Commands that involve all workers, and clients that send too much, read too little or disconnect."""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest

from monkey import ENVIRONMENT, PROGRAM, SECONDS
from proc import memory_kb, wait_until
from shell_server import BUILT, UNSAFE, RawClient, socket_folder, spread, start, terminal, with_test_plugins


# ---- Workers ----


def test_shell_connections_covers_all_workers(start):
    it = start(workers=3)
    connections = spread(it.server, 3)
    ports = {c.sock.getsockname()[1] for c in connections}
    shown = it.json("connections")
    assert {int(c["peer"].split()[1]) for c in shown} == ports and len(shown) == len(ports)
    assert {c["process"] for c in shown} == set(it.server.workers)
    assert all(c["state"] == "idle" and c["requests"] == 1 and c["target"] is None for c in shown)
    lines = it("connections").lines
    assert len(lines) == 1 + len(ports) and lines[0].split()[:3] == ["process", "peer", "state"]


def test_shell_connections_are_paged(start):
    it = start(workers=2, server="FDLimit 8192")
    limit = 600
    connections = [it.server.connect() for _ in range(limit)]
    for c in connections:
        c.send(b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\n")  # the head is incomplete
    wait_until(lambda: it.json("status")["connections"] == limit, "all connections to be open")
    shown = it.json("connections")
    assert len(shown) == limit and len({c["peer"] for c in shown}) == limit
    assert len(it("connections").lines) == 1 + limit
    for c in connections:
        c.close()


@with_test_plugins
def test_shell_escapes_hostile_requests(start):
    it = start(plugins=[BUILT / "monkey-response_kinds.so"], server="HandlerTimeout 60",
               sections="[ROUTES]\n    /verdict* verdict\n    /* static\n")
    targets = [b'/verdict/"\\\'`$(reboot)?3', b"/verdict/\xc2\x9b31m\xe2\x80\xae\x9b\xff?3", b"/verdict/%1b[31m?3",
               b"/verdict/" + b"A" * 3000 + b"?3"]
    connections = []
    for target in targets:
        c = it.server.connect()
        c.send(b"GET " + target + b" HTTP/1.1\r\nHost: " + b"h" * 200 + b".example\r\n\r\n")
        connections.append(c)
    it.server.connect().send(b"G\x1b[2JT /\x9b31m\x1b]0;x\x07")
    wait_until(lambda: len([c for c in it.json("connections") if c["state"] == "dispatch"]) == 3, "the requests to arrive")
    done = it("connections")
    assert done.code == 0 and not re.search(r"[^\n -~]", done.out), done.out
    assert r"/verdict/\x22\x5c'`$(reboot)?3" in done.out and "/verdict/%1b[31m?3" in done.out
    assert "A" * 247 + "...\n" in done.out and "A" * 248 not in done.out and "h" * 64 + "..." in done.out
    assert all(len(line) < 2000 for line in done.lines)
    for c in it.json("connections"):
        assert not UNSAFE.search(json.dumps(c, ensure_ascii=False)), c
    assert any(c["target"] == targets[0].decode() and c["time"] >= 0 for c in it.json("connections"))
    for c in connections:
        c.close()


def test_shell_escapes_hostile_commands(start):
    it = start()
    with it.raw() as raw:
        for bad in (b"\x1b]0;owned\x07", b"\x00\x01\x02", "\u202e\u009b2J".encode(), b"\xff" * 1000, b"x" * 4000):
            raw.send(bad + b"\n")
            lines, last = raw.answer()
            assert lines == [] and last.startswith("?unknown command `") and not re.search(r"[^ -~]", last), last
            assert len(last) < 300


def test_shell_names_worker_that_does_not_respond(start):
    it = start(workers=3)
    connections = spread(it.server, 3)
    with it.raw() as raw:
        stopped = next(pid for pid in it.server.workers if pid != raw.process)
        os.kill(stopped, signal.SIGSTOP)
        try:
            lines, last = raw.ask("json connections")
            assert re.fullmatch(r"-1 of 3 workers did not answer: their connections are missing", last), last
            silent = [line for line in lines if line.startswith("worker")]
            assert re.fullmatch(r"worker [012] does not answer", *silent)
            shown = json.loads("".join(line for line in lines if not line.startswith("worker")))
            assert {c["process"] for c in shown} == set(it.server.workers) - {stopped}
            lines, last = raw.ask("json workers")
            assert silent[0] in lines and last == "+"
            workers = json.loads("".join(line for line in lines if not line.startswith("worker")))
            assert {w["process"]: w["memory"] is None for w in workers}[stopped]
            assert raw.ask("cache clear")[1] == "-1 of 3 workers did not answer: their caches may be unchanged"
            assert raw.ask("loglevel warn")[1] == "-1 of 3 workers did not confirm the log level warn"
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert raw.ask("cache clear")[1] == "+cleared in 3 workers"
        assert len(json.loads("".join(raw.ask("json connections")[0]))) == len(connections)


@pytest.mark.processes("a worker that is killed is the program")
def test_shell_session_ends_with_its_worker(start, terminal):
    it = start(workers=2)
    it.server.allow(r"worker \d+ was killed by signal")
    with it.raw() as raw:
        os.kill(raw.process, signal.SIGKILL)
        assert raw.line() == ""
    t = terminal("-s", it.path)
    process = int(re.search(r"process (\d+)", t.until("monkey> "))[1])
    os.kill(process, signal.SIGKILL)
    it.server.err.wait_for(rf"worker {process} was killed")
    assert "Monkey 2.0.0\n" in t.ask("version")
    wait_until(lambda: it.json("status")["workers"] == 2, "another worker")


@pytest.mark.processes("it does not reload")
def test_shell_status_includes_counters_of_dead_workers(start):
    it = start()
    for n in range(1, 5):
        assert it.server.get("/").status == 200
        wait_until(lambda: it.json("status")["requests"] == n, "all requests to be counted")
        assert it("reload").code == 0
        wait_until(lambda: len(it.server.workers) == 1, "the old worker to end")
    status = it.json("status")
    assert (status["requests"], status["accepted"], status["responses_2xx"], status["connections"]) == (4, 4, 4, 0)


def test_shell_cache_clear_covers_all_workers(start, site):
    it = start(workers=3)
    connections = spread(it.server, 3)
    assert all(w["files"] > 0 and w["memory"] > 0 and w["files_max"] > 0 for w in it.json("cache"))
    done = it("cache", "clear")
    assert (done.code, done.out) == (0, "cleared in 3 workers\n")
    assert all(w["files"] == 0 and w["memory"] == 0 for w in it.json("cache"))
    assert all(c.get("/").text == "hello" for c in connections)
    it.server.err.wait_for("shell: process .* clears the cache")


@with_test_plugins
def test_shell_loglevel_covers_all_workers(start):
    it = start(workers=3, plugins=[BUILT / "monkey-probe.so"], sections="[PROBE]\n    Name p\n[ROUTES]\n    /log probe-log\n    /* static\n")
    connections = spread(it.server, 3, lambda c: c.get("/"))

    def warn(word):
        for c in connections:
            assert c.get(f"/log?{word}").status == 200

    def who_warned(word):
        return {int(pid) for pid in re.findall(rf"\[warn\] (\d+): .*{word}$", it.server.err.text, re.MULTILINE)}

    def all_warn(word):
        warn(word)
        wait_until(lambda: who_warned(word) == set(it.server.workers), f"all workers to warn of the {word}")

    all_warn("first")
    done = it("loglevel", "error")
    assert (done.code, done.out) == (0, "the log level is error now, until you reload the server\n")
    assert it("loglevel").out == "error\n" and it.json("status")["log_level"] == "error"
    warn("second")
    assert it("loglevel", "WARN").code == 0
    all_warn("third")
    assert who_warned("second") == set()
    for c in connections:
        c.close()
    assert it("reload").code == 0
    assert it("loglevel").out == "info\n"


# ---- Lines, sessions, and clients that do not read ----


def test_shell_line_length_is_limited(start):
    it = start()
    with it.raw() as raw:
        assert raw.ask("x" * 4095)[1].startswith("?unknown command")
        for size in (4096, 4097, 10000, 1 << 20):
            assert raw.ask("x" * size) == ([], "?a line has at most 4095 bytes")
            assert raw.ask("version") == (["Monkey 2.0.0"], "+")


def test_shell_survives_random_bytes(start):
    it = start("MaxSessions 64")
    dice = random.Random(6)
    words = [b"help", b"status", b"json", b"connections", b"cache", b"clear", b"loglevel", b"info", b"hosts", b"\\s", b" ", b"\t",
             b"\r", b"\n", b"\n", b"\0", b"\x1b[2J", b"\xff", b"--json", b"?", b"x" * 5000]
    for _ in range(60):
        with it.raw() as raw:
            data = b"".join(dice.choice(words) for _ in range(dice.randrange(200))) + b"\n"
            raw.send(data)
            for line in data.split(b"\n")[:-1]:
                lines, last = raw.answer()
                assert last[0] in "+?" and not UNSAFE.search("".join(lines) + last), (line, last)
            assert raw.ask("version") == (["Monkey 2.0.0"], "+")


def test_shell_lines_may_arrive_in_pieces_or_together(start):
    it = start()
    with it.raw() as raw:
        for byte in b"version\r\n":
            raw.send(bytes([byte]))
        assert raw.answer() == (["Monkey 2.0.0"], "+")
        raw.send("version\n" * 500 + "\n" + "loglevel\nquit\nversion\n")
        for _ in range(500):
            assert raw.answer() == (["Monkey 2.0.0"], "+")
        assert [raw.answer() for _ in range(4)] == [([], "+"), (["info"], "+"), ([], "+"), ([], "")]


def test_shell_session_is_freed_on_disconnect(start):
    it = start("MaxSessions 1")
    for data in (b"", b"vers", b"version\n", b"connections\n", b"reload"):
        raw = wait_until(lambda: open_session_or_none(it), "a seat")
        raw.send(data)
        raw.close()
    wait_until(lambda: it("version").code == 0, "a seat")


def open_session_or_none(it):
    try:
        return it.raw()
    except AssertionError:
        return None


@pytest.mark.processes("a worker that is killed is the program")
def test_shell_max_sessions_is_shared_by_workers(start):
    it = start("MaxSessions 3", workers=3)
    it.server.allow(r"worker \d+ was killed by signal")
    sessions = [it.raw() for _ in range(3)]
    assert sessions[0].ask("status")[0][-1].split() == ["sessions", "3"]
    done = it("version")
    assert (done.code, done.err) == (1, "monkey shell: all 3 sessions (MaxSessions) are in use\n")
    it.server.err.wait_for(r"\[warn\] \d+: shell: rejected process \d+ of user \d+: all 3 sessions")
    sessions.pop().close()
    wait_until(lambda: it("version").code == 0, "a seat")
    process = sessions[0].process  # the sessions of a dead worker are freed
    os.kill(process, signal.SIGKILL)
    it.server.err.wait_for(rf"worker {process} was killed")
    assert it("version").code == 0
    for each in sessions:
        each.close()


def test_shell_serves_many_sessions_at_once(start):
    it = start("MaxSessions 256", workers=2)
    sessions = [it.raw() for _ in range(256)]
    for each in sessions:
        each.send("version\nconnections\nworkers\n")
    for each in sessions:
        assert each.answer() == (["Monkey 2.0.0"], "+")
        assert each.answer()[1] == "+" and each.answer()[1] == "+"
    with RawClient(it.path, greets=False) as one_more:
        assert one_more.line() == "HTTP/1.1 503 Refused\r"
    for each in sessions:
        each.close()


def test_shell_idle_session_is_closed(start, terminal):
    it = start("IdleTimeout 1")
    with it.raw() as raw:
        assert raw.ask("version")[1] == "+"
        begun = time.monotonic()
        assert raw.line() == "!no command for too long" and raw.line() == ""
        assert time.monotonic() - begun > 0.8
    t = terminal("-s", it.path)
    t.until("monkey> ")
    wait_until(lambda: it.json("status")["sessions"] == 1, "the session to end")
    assert "Monkey 2.0.0\n" in t.ask("version")
    t.type("quit\n")
    assert t.end() == 0


def test_shell_client_that_does_not_read_uses_bounded_memory(start):
    it = start(host="\n".join(f"ServerName {'n' * 50}{i}.example" for i in range(1000)))
    assert it("hosts").out.count(".example") == 1000
    with it.raw() as raw:
        before = memory_kb(raw.process)
        raw.socket.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < 20000:
                raw.socket.send(b"hosts\n")
                sent += 1
        assert it.server.get("/").text == "hello"
        assert it("version").code == 0
        assert memory_kb(raw.process) - before < 4096
        raw.socket.settimeout(SECONDS)
        count = min(sent, 50)
        for _ in range(count):
            lines, last = raw.answer()
            assert last == "+" and lines[0].count(".example") == 1000


def test_shell_client_that_does_not_read_is_closed(start):
    it = start("IdleTimeout 1", host="\n".join(f"ServerName {'n' * 50}{i}.example" for i in range(1000)))
    with it.raw() as raw:
        raw.send("hosts\n" * 100)
        wait_until(lambda: it.json("status")["sessions"] == 1, "the session to end")


def test_shell_large_output_arrives_complete(start):
    it = start(host="\n".join(f"ServerName {'n' * 60}{i}.example" for i in range(10000)))
    out = it("hosts").out
    assert out.count(".example") == 10000 and len(out) > 700000
    slow = subprocess.run(f"'{PROGRAM}' shell -s {it.path} configuration | (sleep 0.3; wc -c)", shell=True, check=False,
                          env=os.environ | ENVIRONMENT, capture_output=True, text=True)
    assert int(slow.stdout) == len(it("configuration").out)


@pytest.mark.timeout(180)
def test_shell_output_over_limit_is_an_error(start, tmp_path):
    for i in range(7):
        names = "".join(f"    ServerName {'n' * 62}{n}.of{i}.example\n" for n in range(9000))
        (tmp_path / f"{i}.part").write_text(f"[HOST]\n    DocumentRoot site\n{names}")
    it = start(sections="@INCLUDE *.part\n")
    for command in ("hosts", "configuration"):
        done = it(command)
        assert (done.code, done.out) == (1, "") and "the response exceeds 4 MB" in done.err, done.err[:200]
    assert it("version").code == 0


def test_shell_output_error_is_a_failure(start):
    it = start()
    done = subprocess.run(f"'{PROGRAM}' shell -s {it.path} configuration > /dev/full", shell=True, check=False,
                          env=os.environ | ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 1 and "cannot write: No space left on device" in done.stderr


def test_shell_sessions_are_logged(start):
    it = start()
    with it.raw():
        it.server.err.wait_for(rf"shell: process {os.getpid()} of user {os.geteuid()}, group {os.getegid()} has connected")
    it("reload")
    it("version")
    it.server.err.wait_for("has connected", 3)
    assert len(re.findall("has connected", it.server.err.text)) == 3
    assert not re.search(rf"shell: process {it.server.pid} ", it.server.err.text)
    it.server.err.wait_for(r"process \d+ of user \d+ requests a reload")
