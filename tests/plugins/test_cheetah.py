# SPDX-License-Identifier: Apache-2.0
"""`monkey shell` as people and scripts use it, and the keys of [CHEETAH]."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from backend import Backend
from upstream_group import ROUTES, HoldingBackend, open_requests, group
from monkey import ENVIRONMENT, PROGRAM, ROOT, SECONDS
from proc import wait_until
from shell_server import UNSAFE, monkey_shell, socket_folder, spread, start, terminal, with_own_run


# ---- Commands ----


def test_shell_commands_may_be_arguments(start):
    it = start(workers=2, host="ServerName a.example b.example", sections="[ROUTES]\n    /x status 403\n    /* static\n")
    assert it.server.get("/").status == 200
    assert it.server.get("/x").status == 403
    output = {command: it(*command.split()) for command in
            ["help", "status", "workers", "connections", "hosts", "plugins", "configuration", "cache", "loglevel",
             "version", "uptime", "clear", "quit"]}
    for command, done in output.items():
        assert (done.code, done.err) == (0, ""), (command, done)
        assert done.out or command in ("clear", "quit"), command
        assert not UNSAFE.search(done.out)
    status = dict(line.split(None, 1) for line in output["status"].lines)
    assert status["version"] == "2.0.0" and int(status["process"]) == it.server.pid
    assert (status["requests"], status["responses_2xx"], status["responses_4xx"]) == ("2", "1", "1")
    assert (status["workers"], status["draining"], status["log_level"]) == ("2", "0", "info")
    assert int(status["sessions"]) == 1
    processes = [int(line.split()[0]) for line in output["workers"].lines[1:]]
    assert sorted(processes) == sorted(it.server.workers)
    assert output["hosts"].out == (f"a.example b.example\n    root    {it.server.folder}/site\n"
                                 "    route   /x  status 403\n    route   /*  static\n")
    assert re.search(r"^cheetah +\S+ +A shell", output["plugins"].out)
    assert re.search(rf"^\[CHEETAH\]\n(    .*\n)*    Socket +{it.path}$", output["configuration"].out, re.MULTILINE)
    assert output["version"].out == "Monkey 2.0.0\n"
    assert re.fullmatch(r"(\d+m )?\d+s\n", output["uptime"].out)
    assert re.search(r"^loglevel +\[LEVEL\]", output["help"].out, re.MULTILINE)


@pytest.mark.parametrize("short, long", [
    (r"\h", "help"), ("?", "help"), (r"\f", "configuration"), (r"\g", "plugins"), (r"\v", "hosts"), ("vhosts", "hosts"),
    ("config", "configuration"), ("HOSTS", "hosts"), (r"\q", "quit"), (r"\c", "clear"), ("exit", "quit")])
def test_shell_accepts_short_forms_of_monkey_16(start, short, long):
    it = start()
    assert (it(short).code, it(short).out) == (0, it(long).out)
    assert it(r"\s").out.startswith("version") and it(r"\w").out.startswith("process") and it(r"\u").code == 0


def test_shell_reads_commands_from_pipe(start):
    it = start()
    done = it(text="# a comment\n\nversion\n   uptime  \r\nloglevel")
    assert done.code == 0 and done.lines[0] == "Monkey 2.0.0" and done.lines[2] == "info" and len(done.lines) == 3
    done = it(text="version\nnonsense\nstatus now\nloglevel\n")
    assert done.code == 2 and done.lines == ["Monkey 2.0.0", "info"]
    assert done.err == "monkey shell: unknown command `nonsense`: see `help`\nmonkey shell: `status` takes no arguments\n"
    assert it(text="version\nquit\nuptime\n").lines == ["Monkey 2.0.0"]
    assert it(text="").code == 0


def test_shell_socket_option_names_the_socket(start, socket_folder):
    it = start()
    for how in (["-s", it.path], [f"--socket={it.path}"], ["--socket", it.path], ["-s", "sock"]):
        done = subprocess.run([PROGRAM, "shell", *how, "version"], capture_output=True, text=True, cwd=socket_folder, check=False,
                              env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stdout) == (0, "Monkey 2.0.0\n"), done


def test_shell_finds_default_socket(monkey, site):
    """The test has its own /run, in which the server creates the missing folder."""
    site.add("index.html", "hello")
    server = monkey(plugins=["cheetah"], wrapper=with_own_run())

    def inside(*words):
        done = subprocess.run(["nsenter", "-t", str(server.pid), "-m", *map(str, words)], capture_output=True, text=True,
                              env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL, check=False)
        return done.stdout

    assert inside(PROGRAM, "shell", "version") == "Monkey 2.0.0\n"
    assert inside("stat", "-c", "%a %u %n", "/run/monkey", "/run/monkey/cheetah.sock") == (
        "755 0 /run/monkey\n600 0 /run/monkey/cheetah.sock\n")
    assert re.search(r"\[CHEETAH\]|Load +cheetah", inside(PROGRAM, "shell", "configuration"))


def test_shell_wrong_usage_is_an_error(start):
    it = start()
    for words, output in {
            ("--jsom",): "unknown option", ("bogus",): "unknown command `bogus`",
            ("status", "x"): "`status` takes no arguments", ("cache", "clean"): "invalid arguments: expected `cache` or `cache clear`",
            ("cache", "clear", "now"): "expected `cache`", ("loglevel", "loud"): "error|warn|info|debug",
            ("loglevel", "info", "x"): "error|warn|info|debug", ("version\nreload",): "a command is one line",
            ("x" * 4096,): "at most 4095 bytes", ("--json", "hosts"): "`hosts` has no JSON",
            ("json",): "unknown command ``", ("--json", "cache", "clear"): "expected `cache`"}.items():
        done = it(*words)
        assert (done.code, done.out) == (2, "") and output in done.err, (words, done)
    assert it("x" * 4090).code == 2  # the client itself does not check the length
    for words in (["-s"], ["-s", ""], ["-s", "x" * 200]):
        done = subprocess.run([PROGRAM, "shell", *words], capture_output=True, text=True, check=False,
                              env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL)
        assert done.returncode == 2 and done.stderr, words
    done = it("--help")
    assert done.code == 0 and done.out.startswith("usage: monkey shell ")


def test_shell_json_output_is_valid(start):
    it = start(workers=3)
    waiting = spread(it.server, 3)
    status = it.json("status")
    assert status["requests"] == len(waiting) == status["connections"] and status["process"] == it.server.pid
    assert status["started"] > 1.7e9 and status["log_level"] == "info"
    workers = it.json("workers")
    assert {w["process"] for w in workers} == set(it.server.workers)
    assert sum(w["connections"] for w in workers) == len(waiting)
    assert all(w["memory"] > 1 << 20 and w["draining"] is False for w in workers)
    assert {c["process"] for c in it.json("connections")} <= set(it.server.workers)
    assert {w["process"] for w in it.json("cache")} == set(it.server.workers)
    assert json.loads(it("json", "status").out)["process"] == it.server.pid
    assert [len(json.loads(line)) for line in it("--json", text="status\nstatus\n").lines] == [len(status)] * 2


# ---- Upstreams ----


def test_shell_upstreams_without_upstreams_says_so(start):
    it = start()
    assert it("upstreams").out == "There are no upstreams.\n"
    assert it.json("upstreams") == []
    assert re.search(r"^upstreams +the backend servers", it("help").out, re.MULTILINE)


def test_shell_packages_without_packages_says_so(start):
    it = start()
    assert it("packages").out == "There are no packages.\n"
    assert it.json("packages") == []


def upstreams(it, *states):
    """Returns the upstreams, once they have these states and are idle."""
    def find():
        found = it.json("upstreams")
        return found if [(u["state"], u["busy"]) for u in found] == [(state, 0) for state in states] else None

    return wait_until(find, f"the states {states}")


def test_shell_upstreams_shows_states_and_counts(start):
    with Backend() as a, Backend() as b:
        it = start(plugins=["proxy"], top=group(a, b, keys="HealthCheck /x\nHealthInterval 2s"), sections=ROUTES)
        for _ in range(4):
            assert it.server.get("/api/x").status == 200
        first, second = upstreams(it, "up", "up")
        assert (first["server"], second["server"], first["upstream"]) == (a.address, b.address, "group")
        assert [(u["busy"], u["idle"], u["waiting"], u["requests"], u["failures"]) for u in (first, second)] == [
            (0, 1, 0, 2, 0)] * 2
        assert 0 < first["latency_us"] < 20e6 and first["limit"] is None
        b.stop()
        _, second = upstreams(it, "up", "down")
        assert second["checks"] >= second["checks_failed"] >= 1
        head, *lines = it("upstreams").lines
        assert head.split() == [name.removesuffix("_us") for name in second]
        assert [line.split()[:3] for line in lines] == [[a.address, "group", "up"], [b.address, "group", "down"]]
        assert re.fullmatch(r"\d+\.\d{3}m?s", lines[0].split()[9])


def test_shell_upstreams_shows_queue(start):
    with HoldingBackend() as backend:
        it = start(plugins=["proxy"], top=group(backend, keys="MaxConnections 1"), sections=ROUTES)
        with open_requests(it.server, 3) as clients:
            (u,) = wait_until(lambda: (found := it.json("upstreams"))[0]["waiting"] == 2 and found, "the queue")
            assert (u["busy"], u["idle"], u["limit"], u["latency_us"]) == (1, 0, 1, None)
            backend.release()
            assert [c.read().text for c in clients] == ["late"] * 3
        (u,) = upstreams(it, "up")
        assert (u["waiting"], u["requests"]) == (0, 3)


# ---- A terminal ----


def test_shell_terminal_has_prompt_and_clears(start, terminal):
    it = start()
    t = terminal("-s", it.path)
    greeting = t.until("monkey> ")
    assert re.match(rf"monkey/2\.0\.0 process \d+ at {it.path}\. `help` lists", greeting), greeting
    assert "Monkey 2.0.0\nmonkey> " in t.ask("version")
    assert t.ask("bogus").endswith("\nunknown command `bogus`: see `help`\nmonkey> ")
    assert "\x1b[H\x1b[2J" in t.ask(r"\c")
    assert t.ask("").endswith("monkey> ")
    t.type("quit\n")
    assert t.end() == 0


def test_shell_terminal_ends_with_its_input(start, terminal):
    it = start()
    t = terminal("-s", it.path)
    t.until("monkey> ")
    t.type("\x04")
    assert t.end() == 0 and t.text.endswith("\n")


def test_shell_terminal_survives_server_restart(start, terminal, monkey):
    it = start()
    t = terminal("-s", it.path)
    t.until("monkey> ")
    it.server.stop()
    assert "does not exist: is a server running" in t.ask("version")
    again = monkey(args=["-c", it.server.config])
    assert "Monkey 2.0.0" in t.ask("version")
    again.stop()
    t.type("quit\n")
    assert t.end() == 0


# ---- No server, or a different one ----


def test_shell_without_server_is_an_error(socket_folder):
    for words in ([], ["status"]):
        done = monkey_shell(socket_folder / "sock", *words)
        assert (done.code, done.out) == (1, "") and f"socket {socket_folder}/sock does not exist: is a server running" in done.err
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(socket_folder / "sock"))
        assert f"no server listens at {socket_folder}/sock: the server has exited" in monkey_shell(socket_folder / "sock", "status").err
    (socket_folder / "file").write_text("")
    assert monkey_shell(socket_folder / "file", "status").code == 1


def serve_lines(path, lines):
    """Runs a server other than monkey, which sends `lines` to each client."""
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(path))
    s.listen()
    pid = os.fork()
    if pid == 0:
        while True:
            c, _ = s.accept()
            with contextlib.suppress(OSError):
                c.sendall(lines)
                got, wanted = b"", 2 if lines.startswith(b"+") else 1 if lines else 0
                while got.count(b"\n") < wanted and (data := c.recv(100)):
                    got += data
                c.shutdown(socket.SHUT_RDWR)
            c.close()
    s.close()
    return pid


@pytest.mark.parametrize("lines, message", [
    (b"220 mail.example ESMTP\r\n", "is not a Monkey server"),
    (b"+cheetah 3 monkey/9 process 1\n", "uses another version"),
    (b"HTTP/1.1 503 Refused\r\nContent-Length: 26\r\n\r\nall 1 sessions are taken\n", "all 1 sessions are taken"),
    (b"+cheetah 2 monkey/2 process 1\n*what?\n", "violates the protocol"),
    (b"+cheetah 2 monkey/2 process 1\n", "the response is incomplete: the process exited during the command"),
    (b"x" * (1 << 21), "sent no greeting"), (b"", "closes every session at once"),
], ids=["mail", "version", "refusal", "nonsense", "end", "flood", "silence"])
def test_shell_rejects_socket_of_another_program(socket_folder, lines, message):
    pid = serve_lines(socket_folder / "sock", lines)
    try:
        done = monkey_shell(socket_folder / "sock", "status")
        assert done.code == 1 and message in done.err, done
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_shell_client_escapes_hostile_server_output(socket_folder):
    """The client prints any text from the server, but passes no control sequence to the terminal."""
    hostile = bytes(set(range(256)) - {10}) + "\u202e\u2066\u200f\u009b31m ünïcödé \ud7ff".encode()
    path = socket_folder / "sock"
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(path))
    s.listen()
    child = subprocess.Popen([PROGRAM, "shell", "-s", path, "status"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, env=os.environ | ENVIRONMENT)
    c, _ = s.accept()
    assert c.recv(100) == b"hello\n"
    c.sendall(b"+cheetah 2 \x1b]0;x\x07 process 1\n")
    assert c.recv(100) == b"status\n"
    c.sendall(b" " + hostile + b"\n#" + hostile + b"\n-" + hostile + b"\n")
    out, err = (text.decode() for text in child.communicate(timeout=SECONDS))
    assert child.returncode == 1
    for text in (out, *err.splitlines()):
        assert not UNSAFE.search(text) and r"\x1b" in text and r"\xc2\x9b31m ünïcödé" in text, text
        assert r"\xe2\x80\xae" in text and r"\xff" in text
    s.close()


# ---- Configuration ----


@pytest.mark.parametrize("keys, message", [
    ("Mode 0666", r":\d+:10: error: mode `0666` is too permissive: .*at most 0660"),
    ("Mode 0777", r"`0777` is too permissive"), ("Mode 4600", r"`4600` is too permissive"), ("Mode 0661", r"`0661` is too permissive"),
    ("Mode 0400", r"not even the owner has access"), ("Mode 0060", r"not even the owner"),
    ("Mode 68", r"error: `68`.*\n?.*expected 0600 or 0660|expected 0600 or 0660"), ("Mode 0698", "expected 0600 or 0660"),
    ("Group no-such-group", r":\d+:11: error: there is no group `no-such-group`"),
    ("Listen STDIN", r":\d+:12: error: .*no longer supported(.*\n)*.*run `monkey shell`"),
    ("Listen 8080", r"expected `SERVER`"), ("MaxSessions 0", r"error: .*MaxSessions|`0`"), ("MaxSessions 257", r"`257`"),
    ("IdleTimeout soon", r"`soon`"), ("Sokcet x", r"did you mean `Socket`"),
])
def test_shell_invalid_configuration_is_rejected(monkey, socket_folder, keys, message):
    server = monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {socket_folder}/sock\n    {keys}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(message, server.err.text), server.err.text
    assert list(socket_folder.iterdir()) == []


@pytest.mark.parametrize("path, message", [
    ("x" * 97, r"the path of a socket has at most 96 bytes, but this one has \d+"), ("folder/", "`folder/` is a folder")])
def test_shell_invalid_socket_path_is_rejected(monkey, path, message):
    server = monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {path}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(r":\d+:12: error: " + message, server.err.text), server.err.text


def test_shell_socket_is_not_created_by_config_checks(run, start, socket_folder):
    it = start("Group daemon\nListen server\nIdleTimeout 90\nMaxSessions 3")
    it.server.stop()
    assert list(socket_folder.iterdir()) == []
    assert run("-t", "-c", it.server.config).code == 0
    printed = run("-T", "-c", it.server.config).out
    keys = dict(re.findall(r"^    (\w+) +(.*)$", printed[printed.index("[CHEETAH]"):].split("\n\n")[0], re.MULTILINE))
    assert keys == {"Listen": "SERVER", "Socket": str(it.path), "Group": "daemon", "Mode": "0660", "IdleTimeout": "90s",
                    "RequestTimeout": "30s", "MaxSessions": "3"}
    assert list(socket_folder.iterdir()) == []


def test_shell_shipped_config_loads(run, tmp_path, site):
    shutil.copy(ROOT / "plugins" / "cheetah" / "cheetah.conf", tmp_path)
    (tmp_path / "m.conf").write_text(f"[HOST]\n    DocumentRoot {site}\n@INCLUDE cheetah.conf\n")
    done = run("-t", "-c", tmp_path / "m.conf")
    assert done.code == 0 and not done.err, done
    assert re.search(r"Socket +/run/monkey/cheetah\.sock", run("-T", "-c", tmp_path / "m.conf").out)


def test_shell_is_listed_among_plugins(run):
    assert re.search(r"commands +shell", run("plugins").out)
