# SPDX-License-Identifier: Apache-2.0
"""Servers with the cheetah plugin, and their clients: `monkey shell` with a command, on a pipe or on a terminal, and a client of
the raw protocol. A test module imports the fixtures that it uses.
"""
import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from client import Client
from monkey import ENVIRONMENT, PROGRAM, ROOT, SECONDS
from proc import Process

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
with_test_plugins = pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1],
                                       reason="the plugins of the tests are built with the program in build/dev")
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@pytest.fixture
def watch():
    """`watch(pid)` observes a process that is not our child, such as a new master, and ends it after the test."""
    processes = []

    def begin(pid):
        processes.append(Process(pid))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()


@pytest.fixture
def socket_folder():
    """A folder with a short name, because the length of socket paths is limited."""
    folder = Path(tempfile.mkdtemp(prefix="mk", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def with_own_run():
    """Returns a command prefix that gives a program a private /run. See ShellServer.enter()."""
    words = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh"]
    if os.geteuid() != 0 or not shutil.which("nsenter") or subprocess.run([*words, "true"], check=False).returncode:
        pytest.skip("needs root and file systems of its own")
    return words


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
    """Runs `monkey shell` until it exits, with the words of a command or with lines on its standard input."""
    done = subprocess.run([PROGRAM, "shell", "-s", str(path), *words], input=text or "", capture_output=True, text=True,
                          env=os.environ | ENVIRONMENT, timeout=SECONDS + 60, check=False, **popen)
    return Done(done)


class RawClient:
    """A client of the raw protocol."""

    def __init__(self, path, greets=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")
        if greets:
            self.send("hello\n")
            self.greeting = self.line()
            assert self.greeting.startswith("+cheetah 2 monkey/"), self.greeting

    def line(self):
        return self.file.readline().decode().removesuffix("\n")

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())
        return self

    def answer(self):
        """Reads the reply to a command; returns the output lines and the last line, which tells whether it succeeded."""
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


class ShellServer:
    """A server with the shell enabled."""

    def __init__(self, server, path):
        self.server, self.path = server, path

    def __call__(self, *words, **how):
        return monkey_shell(self.path, *words, **how)

    def json(self, *words):
        done = self("--json", *words)
        assert done.code == 0, done
        return json.loads(done.out)

    def raw(self):
        return RawClient(self.path)

    def change(self, old, new):
        text = self.server.config.read_text()
        assert old in text
        self.server.config.write_text(text.replace(old, new))


@pytest.fixture
def start(monkey, site, socket_folder):
    site.add("index.html", "hello")

    def run(keys="", plugins=(), top="", path=None, server="", **how):
        path = path or socket_folder / "sock"
        how["server"] = f"KeepAliveTimeout 60\n{server}"  # connections stay open
        text = f"[CHEETAH]\n    Socket {path}\n" + "".join(f"    {line}\n" for line in keys.splitlines())
        return ShellServer(monkey(plugins=["cheetah", *plugins], top=text + top, **how), path)

    return run


def spread(server, workers, each=lambda c: c.get("/")):
    """Opens enough connections that each worker gets some."""
    connections = [Client(server.addresses[0]) for _ in range(12 * workers)]
    for c in connections:
        each(c)
    return connections


class Terminal:
    """`monkey shell` on a terminal."""

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
        except OSError:  # the other end is closed
            data = b""
        self.text += data.decode().replace("\r\n", "\n")
        return bool(data)

    def until(self, pattern, seconds=SECONDS):
        """Waits for the pattern and returns the text up to its end; later text stays unread."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < end and self.read(end - time.monotonic()), f"not {pattern!r} in {self.text!r}"
        matched, self.text = self.text[:found.end()], self.text[found.end():]
        return matched

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
