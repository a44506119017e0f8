# SPDX-License-Identifier: Apache-2.0
"""The shell: `monkey shell` as people and scripts use it, its protocol, its socket, and who may use it."""
import contextlib
import grp
import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from client import Client
from monkey import ENVIRONMENT, PROGRAM, ROOT, SECONDS
from proc import Process, memory_kb, wait_until

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"
IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root can become somebody else")
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@pytest.fixture
def watch():
    """`watch(pid)` is a process that is no child of ours, such as a new master; it is ended with the test."""
    processes = []

    def begin(pid):
        processes.append(Process(pid))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()


@pytest.fixture
def place():
    """A folder with a short name: those of sockets are limited."""
    folder = Path(tempfile.mkdtemp(prefix="mk", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


class Done:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        assert "Sanitizer" not in self.err and "runtime error" not in self.err, self.err

    @property
    def lines(self):
        return self.out.splitlines()

    def __repr__(self):
        return f"<{self.code}: {self.out!r}, {self.err!r}>"


def monkey_shell(path, *words, text=None, **popen):
    """`monkey shell` to its end: with the words of a command, or with lines in its input."""
    done = subprocess.run([PROGRAM, "shell", "-s", str(path), *words], input=text or "", capture_output=True, text=True,
                          env=os.environ | ENVIRONMENT, timeout=SECONDS + 60, check=False, **popen)
    return Done(done)


class Raw:
    """The protocol, without a client that helps."""

    def __init__(self, path, greets=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")
        if greets:
            self.greeting = self.line()
            assert self.greeting.startswith("+cheetah 1 monkey/"), self.greeting

    def line(self):
        return self.file.readline().decode().removesuffix("\n")

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())
        return self

    def answer(self):
        """Lines of output, and the last line."""
        lines = []
        while (line := self.line())[:1] in (" ", "#"):
            lines.append(line[1:])
        return lines, line

    def ask(self, command):
        return self.send(command + "\n").answer()

    @property
    def process(self):
        return int(self.greeting.split()[-1])

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Shelled:
    """A server with a shell."""

    def __init__(self, server, path):
        self.server, self.path = server, path

    def __call__(self, *words, **how):
        return monkey_shell(self.path, *words, **how)

    def json(self, *words):
        done = self("--json", *words)
        assert done.code == 0, done
        return json.loads(done.out)

    def raw(self):
        return Raw(self.path)

    def change(self, old, new):
        text = self.server.config.read_text()
        assert old in text
        self.server.config.write_text(text.replace(old, new))


@pytest.fixture
def start(monkey, site, place):
    site.add("index.html", "hello")

    def run(keys="", plugins=(), top="", path=None, **how):
        path = path or place / "sock"
        text = f"[CHEETAH]\n    Socket {path}\n" + "".join(f"    {line}\n" for line in keys.splitlines())
        return Shelled(monkey(plugins=["cheetah", *plugins], top=text + top, **how), path)

    return run


def spread(server, workers, each=lambda c: c.get("/")):
    """Open connections, at least one with each worker: {process: connection}."""
    found, others = {}, []
    for _ in range(400):
        c = Client(server.addresses[0])
        each(c)
        others.append(c)
        if len(others) >= 12 * workers:
            break
    return others


# ---- Commands ----


def test_commands_of_arguments(start):
    it = start(workers=2, host="ServerName a.example b.example", sections="[ROUTES]\n    /x status 403\n    /* static\n")
    assert it.server.get("/").status == 200
    assert it.server.get("/x").status == 403
    said = {command: it(*command.split()) for command in
            ["help", "status", "workers", "connections", "hosts", "plugins", "configuration", "cache", "loglevel",
             "version", "uptime", "clear", "quit"]}
    for command, done in said.items():
        assert (done.code, done.err) == (0, ""), (command, done)
        assert done.out or command in ("clear", "quit"), command
        assert not UNSAFE.search(done.out)
    status = dict(line.split(None, 1) for line in said["status"].lines)
    assert status["version"] == "2.0.0" and int(status["process"]) == it.server.pid
    assert (status["requests"], status["responses_2xx"], status["responses_4xx"]) == ("2", "1", "1")
    assert (status["workers"], status["leaving"], status["log_level"]) == ("2", "0", "info")
    assert int(status["sessions"]) == 1
    processes = [int(line.split()[0]) for line in said["workers"].lines[1:]]
    assert sorted(processes) == sorted(it.server.workers)
    assert said["hosts"].out == (f"a.example b.example\n    root    {it.server.folder}/site\n"
                                 "    route   /x  status 403\n    route   /*  static\n")
    assert re.search(r"^cheetah +\S+ +A shell", said["plugins"].out)
    assert re.search(rf"^\[CHEETAH\]\n(    .*\n)*    Socket +{it.path}$", said["configuration"].out, re.MULTILINE)
    assert said["version"].out == "Monkey 2.0.0\n"
    assert re.fullmatch(r"(\d+m )?\d+s\n", said["uptime"].out)
    assert re.search(r"^loglevel +\[LEVEL\]", said["help"].out, re.MULTILINE)


@pytest.mark.parametrize("short, long", [
    (r"\h", "help"), ("?", "help"), (r"\f", "configuration"), (r"\g", "plugins"), (r"\v", "hosts"), ("vhosts", "hosts"),
    ("config", "configuration"), ("HOSTS", "hosts"), (r"\q", "quit"), (r"\c", "clear"), ("exit", "quit")])
def test_short_forms_of_monkey(start, short, long):
    it = start()
    assert (it(short).code, it(short).out) == (0, it(long).out)
    assert it(r"\s").out.startswith("version") and it(r"\w").out.startswith("process") and it(r"\u").code == 0


def test_commands_of_a_pipe(start):
    it = start()
    done = it(text="# a comment\n\nversion\n   uptime  \r\nloglevel")
    assert done.code == 0 and done.lines[0] == "Monkey 2.0.0" and done.lines[2] == "info" and len(done.lines) == 3
    done = it(text="version\nnonsense\nstatus now\nloglevel\n")
    assert done.code == 2 and done.lines == ["Monkey 2.0.0", "info"]
    assert done.err == "monkey shell: there is no command `nonsense`: see `help`\nmonkey shell: nothing may follow `status`\n"
    assert it(text="version\nquit\nuptime\n").lines == ["Monkey 2.0.0"]
    assert it(text="").code == 0


def test_it_is_found_where_it_is_said(start, place):
    it = start()
    for how in (["-s", it.path], [f"--socket={it.path}"], ["--socket", it.path], ["-s", "sock"]):
        done = subprocess.run([PROGRAM, "shell", *how, "version"], capture_output=True, text=True, cwd=place, check=False,
                              env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stdout) == (0, "Monkey 2.0.0\n"), done


def test_wrong_usage(start):
    it = start()
    for words, said in {
            ("--jsom",): "unknown option", ("bogus",): "there is no command `bogus`",
            ("status", "x"): "nothing may follow `status`", ("cache", "clean"): "expected `cache` or `cache clear`",
            ("cache", "clear", "now"): "expected `cache`", ("loglevel", "loud"): "error, warn, info or debug",
            ("loglevel", "info", "x"): "error, warn, info or debug", ("version\nreload",): "a command is one line",
            ("x" * 4096,): "at most 4095 bytes", ("--json", "hosts"): "`hosts` has no JSON",
            ("json",): "there is no command ``", ("--json", "cache", "clear"): "expected `cache`"}.items():
        done = it(*words)
        assert (done.code, done.out) == (2, "") and said in done.err, (words, done)
    assert it("x" * 4090).code == 2  # what the client lets pass
    for words in (["-s"], ["-s", ""], ["-s", "x" * 200]):
        done = subprocess.run([PROGRAM, "shell", *words], capture_output=True, text=True, check=False,
                              env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL)
        assert done.returncode == 2 and done.stderr, words
    done = it("--help")
    assert done.code == 0 and done.out.startswith("usage: monkey shell ")


def test_json(start):
    it = start(workers=3)
    waiting = spread(it.server, 3)
    status = it.json("status")
    assert status["requests"] == len(waiting) == status["connections"] and status["process"] == it.server.pid
    assert status["started"] > 1.7e9 and status["log_level"] == "info"
    workers = it.json("workers")
    assert {w["process"] for w in workers} == set(it.server.workers)
    assert sum(w["connections"] for w in workers) == len(waiting)
    assert all(w["memory"] > 1 << 20 and w["leaving"] is False for w in workers)
    assert {c["process"] for c in it.json("connections")} <= set(it.server.workers)
    assert {w["process"] for w in it.json("cache")} == set(it.server.workers)
    assert json.loads(it("json", "status").out)["process"] == it.server.pid
    assert [len(json.loads(line)) for line in it("--json", text="status\nstatus\n").lines] == [len(status)] * 2


# ---- A terminal ----


class Terminal:
    """`monkey shell` on one."""

    def __init__(self, *args):
        self.fd, other = os.openpty()
        self.process = subprocess.Popen([PROGRAM, "shell", *map(str, args)], stdin=other, stdout=other, stderr=other,
                                        env=os.environ | ENVIRONMENT, start_new_session=True)
        os.close(other)
        self.text = ""

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # nobody has the other end any more
            data = b""
        self.text += data.decode().replace("\r\n", "\n")
        return bool(data)

    def until(self, pattern, seconds=SECONDS):
        """Waits, and answers what came up to there; the rest stays."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < end and self.read(end - time.monotonic()), f"not {pattern!r} in {self.text!r}"
        said, self.text = self.text[:found.end()], self.text[found.end():]
        return said

    def type(self, text):
        os.write(self.fd, text.encode())
        return self

    def ask(self, command):
        return self.type(command + "\n").until(r"(?m)(^|\[3J)monkey> ")

    def end(self):
        code = self.process.wait(SECONDS)
        while self.read(0):
            pass
        os.close(self.fd)
        return code


@pytest.fixture
def terminal():
    started = []

    def begin(*args):
        started.append(Terminal(*args))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


def test_a_terminal(start, terminal):
    it = start()
    t = terminal("-s", it.path)
    greeting = t.until("monkey> ")
    assert re.match(rf"monkey/2\.0\.0 process \d+ at {it.path}\. `help` lists", greeting), greeting
    assert "Monkey 2.0.0\nmonkey> " in t.ask("version")
    assert t.ask("bogus").endswith("\nthere is no command `bogus`: see `help`\nmonkey> ")
    assert "\x1b[H\x1b[2J" in t.ask(r"\c")
    assert t.ask("").endswith("monkey> ")
    t.type("quit\n")
    assert t.end() == 0


def test_a_terminal_ends_with_its_input(start, terminal):
    it = start()
    t = terminal("-s", it.path)
    t.until("monkey> ")
    t.type("\x04")
    assert t.end() == 0 and t.text.endswith("\n")


def test_a_terminal_outlives_its_server(start, terminal, monkey):
    it = start()
    t = terminal("-s", it.path)
    t.until("monkey> ")
    it.server.stop()
    assert "there is no socket" in t.ask("version")
    again = monkey(args=["-c", it.server.config])
    assert "Monkey 2.0.0" in t.ask("version")
    again.stop()
    t.type("quit\n")
    assert t.end() == 0


# ---- Nobody there, or somebody else ----


def test_there_is_no_server(place):
    for words in ([], ["status"]):
        done = monkey_shell(place / "sock", *words)
        assert (done.code, done.out) == (1, "") and f"there is no socket {place}/sock: does a server run" in done.err
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(place / "sock"))
        assert f"nobody answers at {place}/sock: the server has ended" in monkey_shell(place / "sock", "status").err
    (place / "file").write_text("")
    assert monkey_shell(place / "file", "status").code == 1


def serve_lines(path, lines):
    """Something that is no monkey: says `lines` to each who comes."""
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(path))
    s.listen()
    pid = os.fork()
    if pid == 0:
        while True:
            c, _ = s.accept()
            with contextlib.suppress(OSError):
                c.sendall(lines)
                if lines:
                    c.recv(100)
                c.shutdown(socket.SHUT_RDWR)
            c.close()
    s.close()
    return pid


@pytest.mark.parametrize("lines, said", [
    (b"220 mail.example ESMTP\r\n", "is not the shell of a monkey"),
    (b"+cheetah 2 monkey/9 process 1\n", "speaks another version"),
    (b"-all 1 sessions are taken\n", "all 1 sessions are taken"),
    (b"+cheetah 1 monkey/2 process 1\n*what?\n", "does not keep to the protocol"),
    (b"+cheetah 1 monkey/2 process 1\n", "the answer is not complete: the process that was asked has ended"),
    (b"x" * (1 << 21), "does not greet us"), (b"", "ends at once"),
], ids=["mail", "version", "refusal", "nonsense", "end", "flood", "silence"])
def test_somebody_else_answers(place, lines, said):
    pid = serve_lines(place / "sock", lines)
    try:
        done = monkey_shell(place / "sock", "status")
        assert done.code == 1 and said in done.err, done
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_the_client_trusts_no_server(place):
    """Whatever it is told, a terminal shows it and does not obey it."""
    hostile = bytes(set(range(256)) - {10}) + "\u202e\u2066\u200f\u009b31m ünïcödé \ud7ff".encode()
    path = place / "sock"
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(path))
    s.listen()
    child = subprocess.Popen([PROGRAM, "shell", "-s", path, "status"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, env=os.environ | ENVIRONMENT)
    c, _ = s.accept()
    c.sendall(b"+cheetah 1 \x1b]0;x\x07 process 1\n")
    assert c.recv(100) == b"status\n"
    c.sendall(b" " + hostile + b"\n#" + hostile + b"\n-" + hostile + b"\n")
    out, err = (text.decode() for text in child.communicate(timeout=SECONDS))
    assert child.returncode == 1
    for text in (out, *err.splitlines()):
        assert not UNSAFE.search(text) and r"\x1b" in text and r"\xc2\x9b31m ünïcödé" in text, text
        assert r"\xe2\x80\xae" in text and r"\xff" in text
    s.close()


# ---- The configuration ----


@pytest.mark.parametrize("keys, said", [
    ("Mode 0666", r":\d+:10: error: `0666` is too wide: .*at most 0660"),
    ("Mode 0777", r"`0777` is too wide"), ("Mode 4600", r"`4600` is too wide"), ("Mode 0661", r"`0661` is too wide"),
    ("Mode 0400", r"not even the owner could use it"), ("Mode 0060", r"not even the owner"),
    ("Mode 68", r"error: `68`.*\n?.*expected 0600 or 0660|expected 0600 or 0660"), ("Mode 0698", "expected 0600 or 0660"),
    ("Group no-such-group", r":\d+:11: error: there is no group `no-such-group`"),
    ("Listen STDIN", r":\d+:12: error: .*not supported any more(.*\n)*.*use `monkey shell`"),
    ("Listen 8080", r"expected `SERVER`"), ("MaxSessions 0", r"error: .*MaxSessions|`0`"), ("MaxSessions 257", r"`257`"),
    ("IdleTimeout soon", r"`soon`"), ("Sokcet x", r"did you mean `Socket`"),
])
def test_mistakes(monkey, place, keys, said):
    server = monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {place}/sock\n    {keys}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(said, server.err.text), server.err.text
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("path, said", [
    ("x" * 97, r"the path of a socket has at most 96 bytes, this one has \d+"), ("folder/", "`folder/` is a folder")])
def test_mistakes_of_the_path(monkey, path, said):
    server = monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {path}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(r":\d+:12: error: " + said, server.err.text), server.err.text


def test_what_looks_at_a_configuration_makes_no_socket(run, start, place):
    it = start("Group daemon\nListen server\nIdleTimeout 90\nMaxSessions 3")
    it.server.stop()
    assert list(place.iterdir()) == []
    assert run("-t", "-c", it.server.config).code == 0
    printed = run("-T", "-c", it.server.config).out
    keys = dict(re.findall(r"^    (\w+) +(.*)$", printed[printed.index("[CHEETAH]"):].split("\n\n")[0], re.MULTILINE))
    assert keys == {"Listen": "SERVER", "Socket": str(it.path), "Group": "daemon", "Mode": "0660", "IdleTimeout": "90s",
                    "MaxSessions": "3"} or keys["IdleTimeout"] == "1m30s" or keys["IdleTimeout"] == "90"
    assert list(place.iterdir()) == []


def test_the_configuration_that_ships(run, tmp_path, site):
    shutil.copy(ROOT / "plugins" / "cheetah" / "cheetah.conf", tmp_path)
    (tmp_path / "m.conf").write_text(f"[PLUGINS]\n    Load cheetah\n[HOST]\n    DocumentRoot {site}\n@INCLUDE cheetah.conf\n")
    done = run("-t", "-c", tmp_path / "m.conf")
    assert done.code == 0 and not done.err, done
    assert re.search(r"Socket +/run/monkey/cheetah\.sock", run("-T", "-c", tmp_path / "m.conf").out)
    assert "[CHEETAH] stands already" not in done.err


# ---- The socket ----


def rights(path):
    found = os.lstat(path)
    assert stat.S_ISSOCK(found.st_mode)
    return stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid


@pytest.mark.parametrize("umask", [0, 0o27, 0o777])
def test_the_socket_has_the_rights_that_were_asked_for(start, place, umask):
    it = start(popen={"umask": umask})
    assert rights(it.path) == (0o600, os.geteuid(), os.getegid())
    assert it("version").code == 0
    it.server.stop()
    assert list(place.iterdir()) == []


@as_root
@pytest.mark.parametrize("keys, mode", [("Group daemon", 0o660), ("Group daemon\nMode 0600", 0o600),
                                        ("Group daemon\nMode 660", 0o660)])
def test_the_socket_is_a_groups(start, keys, mode):
    it = start(keys)
    assert rights(it.path) == (mode, 0, grp.getgrnam("daemon").gr_gid)
    assert ("keeps the group out" in it.server.err.text) == (mode == 0o600)


@as_root
def test_a_root_that_cannot_give_files_away_has_groups_all_the_same(start):
    """As under the unit that ships."""
    capsh = shutil.which("capsh")
    if not capsh:
        pytest.skip("no capsh here")
    it = start("Group daemon", wrapper=[capsh, "--drop=cap_chown", "--shell=/usr/bin/env", "--"])
    assert rights(it.path)[2] == grp.getgrnam("daemon").gr_gid


def become(user, group=None, groups=()):
    """For preexec_fn: another user."""
    who = pwd.getpwnam(user)
    gid = grp.getgrnam(group).gr_gid if group else who.pw_gid

    def change():
        os.setgroups([grp.getgrnam(each).gr_gid for each in groups])
        os.setgid(gid)
        os.setuid(who.pw_uid)

    return change


def reachable(path):
    """Can others run the program at all?"""
    return all(os.stat(p).st_mode & 0o001 for p in [PROGRAM, *PROGRAM.parents])


needs_program = pytest.mark.skipif(not reachable(PROGRAM), reason="others cannot reach the program here")


@as_root
@needs_program
def test_others_are_told_that_they_may_not(start):
    it = start()
    done = it("status", preexec_fn=become("nobody"))
    assert done.code == 1 and done.err == f"monkey shell: nobody may not use {it.path}: it is for root alone\n"


@as_root
@needs_program
@pytest.mark.parametrize("who, may", [({"group": "daemon"}, True), ({"groups": ["sys", "daemon"]}, True),
                                      ({"groups": ["sys"]}, False), ({}, False)])
def test_members_of_the_group_may(start, who, may):
    it = start("Group daemon")
    done = it("version", preexec_fn=become("nobody", **who))
    if may:
        assert (done.code, done.out) == (0, "Monkey 2.0.0\n")
    else:
        assert done.code == 1 and f"nobody may not use {it.path}: it is for root and the group daemon" in done.err


@as_root
@needs_program
@pytest.mark.parametrize("keys, who, may", [
    ("", {}, False), ("", {"group": "root"}, False), ("Group daemon", {}, False), ("Group daemon", {"group": "daemon"}, True),
    ("Group daemon", {"groups": ["daemon"]}, True), ("Group daemon\nMode 0600", {"group": "daemon"}, False)])
def test_a_mode_that_somebody_widened_opens_nothing(start, keys, who, may):
    it = start(keys)
    it.path.chmod(0o666)
    done = it("version", preexec_fn=become("nobody", **who))
    if may:
        assert done.code == 0
    else:
        assert done.code == 1 and done.err == "monkey shell: you may not use this shell\n"
        it.server.err.wait_for(rf"\[warn\] \d+: shell: process \d+ of user {pwd.getpwnam('nobody').pw_uid}, group \d+ is refused")


@as_root
def test_the_user_of_the_workers_may_not(start):
    it = start(server="User daemon")
    it.path.chmod(0o666)
    assert (it("version").code, it.json("workers")[0]["memory"] > 0) == (0, True)
    if reachable(PROGRAM):
        assert "you may not use this shell" in it("version", preexec_fn=become("daemon")).err


@as_root
@needs_program
def test_a_server_of_an_ordinary_user(start, place, tmp_path):
    os.chown(place, pwd.getpwnam("daemon").pw_uid, -1)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and str(folder) != "/" and not folder.stat().st_mode & 1:
            folder.chmod(0o755)
    it = start("Group daemon", popen={"preexec_fn": become("daemon")})
    assert rights(it.path) == (0o660, pwd.getpwnam("daemon").pw_uid, grp.getgrnam("daemon").gr_gid)
    assert it("version").code == 0
    assert it("version", preexec_fn=become("daemon")).code == 0
    assert it("version", preexec_fn=become("nobody", group="daemon")).code == 0
    assert it("version", preexec_fn=become("nobody")).code == 1
    it.server.config.write_text(it.server.config.read_text().replace("Group daemon", "Group sys"))
    done = it("reload")
    assert done.code == 1 and "the socket" in done.err and "be a member of it, or root" in done.err
    assert it("version").code == 0


def refused_start(monkey, top, code=1):
    server = monkey(plugins=["cheetah"], top=top, expect_start=False)
    server.exit_code = code
    server.wait()
    return server.err.text


def test_two_servers_need_two_sockets(start, monkey, place):
    it = start()
    said = refused_start(monkey, f"[CHEETAH]\n    Socket {it.path}\n")
    assert re.search(rf"monkey1\.conf:\d+:12: error: somebody else answers at {it.path} already: process {it.server.pid}\n", said)
    assert "each server needs a Socket of its own in [CHEETAH]" in said
    assert it.json("status")["process"] == it.server.pid
    other = Shelled(monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {place}/other\n"), place / "other")
    assert other.json("status")["process"] == other.server.pid
    other.server.stop()
    assert it("version").code == 0 and not other.path.exists()


def test_a_reload_cannot_take_the_socket_of_another_server(start, monkey, place):
    it = start()
    other = Shelled(monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {place}/other\n"), place / "other")
    other.change("/other", "/sock")
    done = other("reload")
    assert done.code == 1 and "somebody else answers" in done.err and "the old one stays" in done.err
    assert other.json("status")["process"] == other.server.pid
    assert it.json("status")["process"] == it.server.pid


def test_what_a_dead_server_left_is_replaced(start, monkey, place):
    it = start()
    workers = it.server.workers
    it.server.exit_code = -signal.SIGKILL
    it.server.kill()
    assert it.path.exists()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "its workers to end")
    assert "the server has ended" in it("status").err
    again = Shelled(monkey(args=["-c", it.server.config]), it.path)
    assert again.json("status")["process"] == again.server.pid
    assert [each.name for each in place.iterdir()] == ["sock"]


def test_what_is_no_socket_stays(monkey, place):
    (place / "sock").write_text("precious")
    said = refused_start(monkey, f"[CHEETAH]\n    Socket {place}/sock\n")
    assert f"{place}/sock is there, and is not a socket" in said and "remove it" in said
    assert (place / "sock").read_text() == "precious"
    (place / "link").symlink_to("sock")
    assert "is not a socket" in refused_start(monkey, f"[CHEETAH]\n    Socket {place}/link\n")
    assert (place / "link").is_symlink()


def test_folders_that_will_not_do(monkey, place):
    said = refused_start(monkey, f"[CHEETAH]\n    Socket {place}/none/sock\n")
    assert "cannot be made: No such file or directory" in said and "its folder must be there" in said
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    said = refused_start(monkey, f"[CHEETAH]\n    Socket {place}/open/sock\n")
    assert f"everybody may write to the folder {place}/open/" in said
    (place / "open").chmod(0o1777)
    server = monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {place}/open/sock\n")
    assert monkey_shell(place / "open/sock", "version").code == 0
    server.stop()


def test_only_its_own_socket_is_removed(start, place):
    it = start()
    it.path.unlink()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(it.path))
        it.server.stop()
        assert it.path.exists()


# ---- Reloads ----


def test_a_reload_says_that_it_is_done(start, place):
    it = start(workers=2)
    before = it.server.workers
    done = it("reload")
    assert (done.code, done.out, done.err) == (0, "the new configuration serves\n", "")
    wait_until(lambda: not set(before) & set(it.server.workers), "the old workers to end")
    assert it.json("status")["reloads"] == 1 and [each.name for each in place.iterdir()] == ["sock"]


def test_a_session_outlives_reloads(start, terminal):
    it = start(workers=2)
    done = it(text="reload\nstatus\nreload\nversion\nreload\nstatus\n")
    assert done.code == 0 and done.err == "", done
    assert [line for line in done.lines if line.startswith("reloads")] == ["reloads         1", "reloads         3"]
    t = terminal("-s", it.path)
    t.until("monkey> ")
    for _ in range(3):
        assert "the new configuration serves\n" in t.ask("reload")
        assert "Monkey 2.0.0\n" in t.ask("version")
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("the new configuration serves", 7)
    assert "Monkey 2.0.0\n" in t.ask("version")
    t.type("quit\n")
    assert t.end() == 0


def test_a_session_is_sent_elsewhere_when_its_worker_leaves(start):
    it = start()
    with it.server.connect() as waiting:  # keeps the old worker
        waiting.get("/")
        with it.raw() as raw:
            assert raw.ask("reload") == ([], "+the new configuration serves")
            assert raw.ask("status") == ([], "!this process ends")
            workers = {w["process"]: w["leaving"] for w in it.json("workers")}
            assert workers[raw.process] is True and sorted(workers.values()) == [False, True]
            done = it("connections")
            assert done.code == 0 and "1 more of processes that leave, which cannot be asked\n" == done.err
            waiting.close()
            assert raw.line() == "!this process ends" and raw.line() == ""


def test_somebody_is_always_there(start):
    """The path leads to a server at any moment of a reload, and whoever asks gets an answer."""
    it = start(workers=2)
    stop = it.path.parent / "stop"
    loop = subprocess.Popen(["sh", "-c", f"n=0; while [ ! -e {stop} ]; do [ -S {it.path} ] || exit 9; n=$((n+1)); done; echo $n"],
                            stdout=subprocess.PIPE, text=True)
    for i in range(8):
        it.server.tell(signal.SIGHUP)
        for _ in range(2):
            assert it("version").out == "Monkey 2.0.0\n"
        it.server.err.wait_for("the new configuration serves", i + 1)
    stop.write_text("")
    out, _ = loop.communicate(timeout=SECONDS)
    assert loop.returncode == 0 and int(out) > 100
    assert "is refused" not in it.server.err.text


def test_a_refused_configuration_is_told_with_its_reasons(start, place):
    it = start()
    it.change("Workers 1", "Wrokers 1")
    done = it("reload")
    assert done.code == 1 and done.out == "", done
    assert re.search(r"monkey\.conf:3:5: error: unknown key `Wrokers`", done.err)
    assert done.err.endswith("monkey shell: the new configuration is not taken: the old one stays\n")
    assert it.json("status")["failed_reloads"] == 1
    it.change("Wrokers 1", "Workers 2")
    assert it("reload").code == 0
    status = it.json("status")
    assert (status["reloads"], status["failed_reloads"], status["workers"]) == (1, 1, 2)
    assert [each.name for each in place.iterdir()] == ["sock"]


@pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1], reason="the plugins of the tests are not built")
@pytest.mark.parametrize("what, said", [("worker", "its workers cannot serve: the error log says why"),
                                        ("master", "the plugin `cannot` cannot start: Invalid cross-device link"),
                                        ("load", "the plugin `cannot` cannot be loaded"),
                                        ("host", "the plugin `cannot` cannot serve this host")])
def test_when_a_configuration_is_not_taken_the_old_socket_is_back(start, place, what, said):
    it = start(plugins=[BUILT / "monkey-cannot.so"], top="[CANNOT]\n    What nothing\n")
    it.server.allow(r"worker \d+ ended by itself")
    it.change("What nothing", f"What {what}")
    for _ in range(2):
        done = it("reload")
        assert done.code == 1 and said in done.err and "the old one stays" in done.err, done
        assert it.json("status")["process"] == it.server.pid
        assert [each.name for each in place.iterdir()] == ["sock"]
    it.change(f"What {what}", "What nothing")
    assert it("reload").code == 0 and it("version").code == 0
    assert [each.name for each in place.iterdir()] == ["sock"]
    it.server.stop()
    assert list(place.iterdir()) == []


def test_a_reload_moves_and_removes_the_socket(start, place):
    it = start()
    it.change("/sock", "/moved")
    assert it("reload").code == 0
    wait_until(lambda: [each.name for each in place.iterdir()] == ["moved"], "the old socket to go")
    it.path = place / "moved"
    it.change("Load cheetah", "# Load")
    it.change("[CHEETAH]\n", "#[CHEETAH]\n")
    it.change("    Socket", "#   Socket")
    assert it("reload").out == "the new configuration serves\n"
    wait_until(lambda: list(place.iterdir()) == [], "the socket to go")


@as_root
def test_a_reload_changes_rights(start):
    it = start()
    it.change("[CHEETAH]\n", "[CHEETAH]\n    Group daemon\n")
    assert it("reload").code == 0
    assert rights(it.path) == (0o660, 0, grp.getgrnam("daemon").gr_gid)
    it.change("    Group daemon\n", "")
    assert it("reload").code == 0
    assert rights(it.path) == (0o600, 0, 0)


def test_an_upgrade_takes_the_socket_over(start, watch, place, tmp_path):
    it = start(server=f"PidFile {tmp_path}/pid", workers=2)
    it.server.tell(signal.SIGUSR2)
    new = int(it.server.err.wait_for(r"the new program is process (\d+)")[1])
    process = watch(new)
    it.server.err.wait_for(rf"{new}: monkey \S+ serves with")
    assert it.server.process.wait(SECONDS) == 0
    assert it.json("status")["process"] == new
    assert [each.name for each in place.iterdir()] == ["sock"]
    process.tell(signal.SIGTERM)
    process.wait()
    assert list(place.iterdir()) == []


def test_an_upgrade_that_fails_leaves_the_socket(start, place):
    it = start()
    it.change("Workers 1", "Wrokers 1")
    it.server.tell(signal.SIGUSR2)
    it.server.err.wait_for("the new program ended before it served")
    assert it.json("status")["process"] == it.server.pid
    assert [each.name for each in place.iterdir()] == ["sock"]


# ---- Workers ----


def test_the_connections_of_all_workers_are_shown(start):
    it = start(workers=3)
    connections = spread(it.server, 3)
    ports = {c.sock.getsockname()[1] for c in connections}
    shown = it.json("connections")
    assert {int(c["peer"].split()[1]) for c in shown} == ports and len(shown) == len(ports)
    assert {c["process"] for c in shown} == set(it.server.workers)
    assert all(c["state"] == "idle" and c["requests"] == 1 and c["target"] is None for c in shown)
    lines = it("connections").lines
    assert len(lines) == 1 + len(ports) and lines[0].split()[:3] == ["process", "peer", "state"]


def test_many_connections_come_in_pages(start):
    it = start(workers=2, server="FDLimit 8192")
    limit = 600
    connections = [it.server.connect() for _ in range(limit)]
    for c in connections:
        c.send(b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\n")  # the rest of the head is not sent
    wait_until(lambda: it.json("status")["connections"] == limit, "all connections to be there")
    shown = it.json("connections")
    assert len(shown) == limit and len({c["peer"] for c in shown}) == limit
    assert len(it("connections").lines) == 1 + limit
    for c in connections:
        c.close()


@pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1], reason="the plugins of the tests are not built")
def test_hostile_requests_are_shown_harmlessly(start):
    it = start(plugins=[BUILT / "monkey-answers.so"], server="HandlerTimeout 60",
               sections="[ROUTES]\n    /verdict* verdict\n    /* static\n")
    targets = [b'/verdict/"\\\'`$(reboot)?2', b"/verdict/\xc2\x9b31m\xe2\x80\xae\x9b\xff?2", b"/verdict/%1b[31m?2",
               b"/verdict/" + b"A" * 3000 + b"?2"]
    connections = []
    for target in targets:
        c = it.server.connect()
        c.send(b"GET " + target + b" HTTP/1.1\r\nHost: " + b"h" * 200 + b".example\r\n\r\n")
        connections.append(c)
    it.server.connect().send(b"G\x1b[2JT /\x9b31m\x1b]0;x\x07")
    wait_until(lambda: len([c for c in it.json("connections") if c["state"] == "flow"]) == 3, "requests to be there")
    done = it("connections")
    assert done.code == 0 and not re.search(r"[^\n -~]", done.out), done.out
    assert r"/verdict/\x22\x5c'`$(reboot)?2" in done.out and "/verdict/%1b[31m?2" in done.out
    assert "A" * 247 + "...\n" in done.out and "A" * 248 not in done.out and "h" * 64 + "..." in done.out
    assert all(len(line) < 2000 for line in done.lines)
    for c in it.json("connections"):
        assert not UNSAFE.search(json.dumps(c, ensure_ascii=False)), c
    assert any(c["target"] == targets[0].decode() and c["time"] >= 0 for c in it.json("connections"))
    for c in connections:
        c.close()


def test_hostile_commands_are_answered_harmlessly(start):
    it = start()
    with it.raw() as raw:
        for bad in (b"\x1b]0;owned\x07", b"\x00\x01\x02", "\u202e\u009b2J".encode(), b"\xff" * 1000, b"x" * 4000):
            raw.send(bad + b"\n")
            lines, last = raw.answer()
            assert lines == [] and last.startswith("?there is no command `") and not re.search(r"[^ -~]", last), last
            assert len(last) < 300


def test_a_worker_that_does_not_answer_is_named(start):
    it = start(workers=3)
    connections = spread(it.server, 3)
    with it.raw() as raw:
        stopped = next(pid for pid in it.server.workers if pid != raw.process)
        os.kill(stopped, signal.SIGSTOP)
        try:
            lines, last = raw.ask("json connections")
            assert re.fullmatch(r"-1 of 3 workers did not answer: theirs are missing", last), last
            silent = [line for line in lines if line.startswith("worker")]
            assert re.fullmatch(r"worker [012] does not answer", *silent)
            shown = json.loads("".join(line for line in lines if not line.startswith("worker")))
            assert {c["process"] for c in shown} == set(it.server.workers) - {stopped}
            lines, last = raw.ask("json workers")
            assert silent[0] in lines and last == "+"
            workers = json.loads("".join(line for line in lines if not line.startswith("worker")))
            assert {w["process"]: w["memory"] is None for w in workers}[stopped]
            assert raw.ask("cache clear")[1] == "-1 of 3 workers did not answer: theirs may be as it was"
            assert raw.ask("loglevel warn")[1] == "-1 of 3 workers did not say that their log level is warn now"
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert raw.ask("cache clear")[1] == "+cleared in 3 workers"
        assert len(json.loads("".join(raw.ask("json connections")[0]))) == len(connections)


def test_a_session_ends_with_its_worker(start, terminal):
    it = start(workers=2)
    it.server.allow(r"worker \d+ died of signal")
    with it.raw() as raw:
        os.kill(raw.process, signal.SIGKILL)
        assert raw.line() == ""
    t = terminal("-s", it.path)
    process = int(re.search(r"process (\d+)", t.until("monkey> "))[1])
    os.kill(process, signal.SIGKILL)
    it.server.err.wait_for(rf"worker {process} died")
    assert "Monkey 2.0.0\n" in t.ask("version")
    assert it.json("status")["workers"] == 2


def test_what_dead_workers_counted_is_not_lost(start):
    it = start()
    for n in range(1, 5):
        assert it.server.get("/").status == 200
        wait_until(lambda: it.json("status")["requests"] == n, "all requests to be counted")
        assert it("reload").code == 0
        wait_until(lambda: len(it.server.workers) == 1, "the old worker to end")
    status = it.json("status")
    assert (status["requests"], status["accepted"], status["responses_2xx"], status["connections"]) == (4, 4, 4, 0)


def test_the_cache_is_emptied_in_all_workers(start, site):
    it = start(workers=3)
    connections = spread(it.server, 3)
    assert all(w["files"] > 0 and w["memory"] > 0 and w["files_max"] > 0 for w in it.json("cache"))
    done = it("cache", "clear")
    assert (done.code, done.out) == (0, "cleared in 3 workers\n")
    assert all(w["files"] == 0 and w["memory"] == 0 for w in it.json("cache"))
    assert all(c.get("/").text == "hello" for c in connections)
    it.server.err.wait_for("shell: process .* clears the cache")


@pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1], reason="the plugins of the tests are not built")
def test_the_log_level_changes_in_all_workers(start):
    it = start(workers=3, plugins=[BUILT / "monkey-probe.so"], sections="[PROBE]\n    Name p\n[ROUTES]\n    /log probe-log\n    /* static\n")
    connections = spread(it.server, 3, lambda c: c.get("/"))

    def who_warns(word):
        for c in connections:
            assert c.get(f"/log?{word}").status == 200
        assert it("version").code == 0
        return {int(pid) for pid in re.findall(rf"\[warn\] (\d+): .*{word}$", it.server.err.text, re.MULTILINE)}

    assert who_warns("first") == set(it.server.workers)
    done = it("loglevel", "error")
    assert (done.code, done.out) == (0, "the log level is error now, until a configuration is loaded\n")
    assert it("loglevel").out == "error\n" and it.json("status")["log_level"] == "error"
    assert who_warns("second") == set()
    assert it("loglevel", "WARN").code == 0
    assert who_warns("third") == set(it.server.workers)
    for c in connections:
        c.close()
    assert it("reload").code == 0
    assert it("loglevel").out == "info\n"


# ---- Lines, sessions, and those who do not take what they asked for ----


def test_long_lines(start):
    it = start()
    with it.raw() as raw:
        assert raw.ask("x" * 4095)[1].startswith("?there is no command")
        for size in (4096, 4097, 10000, 1 << 20):
            assert raw.ask("x" * size) == ([], "?a line has at most 4095 bytes")
            assert raw.ask("version") == (["Monkey 2.0.0"], "+")


def test_lines_in_pieces_and_many_at_once(start):
    it = start()
    with it.raw() as raw:
        for byte in b"version\r\n":
            raw.send(bytes([byte]))
        assert raw.answer() == (["Monkey 2.0.0"], "+")
        raw.send("version\n" * 500 + "\n" + "loglevel\nquit\nversion\n")
        for _ in range(500):
            assert raw.answer() == (["Monkey 2.0.0"], "+")
        assert [raw.answer() for _ in range(4)] == [([], "+"), (["info"], "+"), ([], "+"), ([], "")]


def test_who_goes_without_a_word(start):
    it = start("MaxSessions 1")
    for data in (b"", b"vers", b"version\n", b"connections\n", b"reload"):
        raw = wait_until(lambda: quiet(it), "a seat")
        raw.send(data)
        raw.close()
    wait_until(lambda: it("version").code == 0, "a seat")


def quiet(it):
    try:
        return it.raw()
    except AssertionError:
        return None


def test_sessions_are_limited_in_all_workers_together(start):
    it = start("MaxSessions 3", workers=3)
    it.server.allow(r"worker \d+ died of signal")
    sessions = [it.raw() for _ in range(3)]
    assert sessions[0].ask("status")[0][-1].split() == ["sessions", "3"]
    done = it("version")
    assert (done.code, done.err) == (1, "monkey shell: all 3 sessions (MaxSessions) are taken\n")
    it.server.err.wait_for(r"\[warn\] \d+: shell: process \d+ of user \d+ is refused: all 3 sessions")
    sessions.pop().close()
    wait_until(lambda: it("version").code == 0, "a seat")
    process = sessions[0].process  # who dies does not keep its seats
    os.kill(process, signal.SIGKILL)
    it.server.err.wait_for(rf"worker {process} died")
    assert it("version").code == 0
    for each in sessions:
        each.close()


def test_many_sessions_at_once(start):
    it = start("MaxSessions 256", workers=2)
    sessions = [it.raw() for _ in range(256)]
    for each in sessions:
        each.send("version\nconnections\nworkers\n")
    for each in sessions:
        assert each.answer() == (["Monkey 2.0.0"], "+")
        assert each.answer()[1] == "+" and each.answer()[1] == "+"
    with Raw(it.path, greets=False) as one_more:
        assert one_more.line() == "-all 256 sessions (MaxSessions) are taken"
    for each in sessions:
        each.close()


def test_idle_sessions_end(start, terminal):
    it = start("IdleTimeout 1")
    with it.raw() as raw:
        assert raw.ask("version")[1] == "+"
        begun = time.monotonic()
        assert raw.line() == "!nothing was asked for too long" and raw.line() == ""
        assert time.monotonic() - begun > 0.8
    t = terminal("-s", it.path)
    t.until("monkey> ")
    wait_until(lambda: it.json("status")["sessions"] == 1, "the session to end")
    assert "Monkey 2.0.0\n" in t.ask("version")
    t.type("quit\n")
    assert t.end() == 0


def test_who_does_not_read_costs_little(start):
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


def test_who_does_not_read_is_let_go(start):
    it = start("IdleTimeout 1", host="\n".join(f"ServerName {'n' * 50}{i}.example" for i in range(1000)))
    with it.raw() as raw:
        raw.send("hosts\n" * 100)
        wait_until(lambda: it.json("status")["sessions"] == 1, "the session to end")


def test_large_answers(start):
    it = start(host="\n".join(f"ServerName {'n' * 60}{i}.example" for i in range(10000)))
    out = it("hosts").out
    assert out.count(".example") == 10000 and len(out) > 700000
    slow = subprocess.run(f"'{PROGRAM}' shell -s {it.path} configuration | (sleep 0.3; wc -c)", shell=True, check=False,
                          env=os.environ | ENVIRONMENT, capture_output=True, text=True)
    assert int(slow.stdout) == len(it("configuration").out)


def test_output_that_cannot_be_written(start):
    it = start()
    done = subprocess.run(f"'{PROGRAM}' shell -s {it.path} configuration > /dev/full", shell=True, check=False,
                          env=os.environ | ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 1 and "cannot write: No space left on device" in done.stderr


def test_who_is_there_is_logged_and_the_master_is_nobody(start):
    it = start()
    with it.raw():
        it.server.err.wait_for(rf"shell: process {os.getpid()} of user {os.geteuid()}, group {os.getegid()} is here")
    it("reload")
    it("version")
    it.server.err.wait_for("is here", 3)
    assert len(re.findall("is here", it.server.err.text)) == 3
    assert not re.search(rf"shell: process {it.server.pid} ", it.server.err.text)
    it.server.err.wait_for(r"shell: process \d+ of user \d+, group \d+ asks for a reload")


def test_it_is_listed(run):
    assert re.search(r"commands +shell", run("plugins").out)
