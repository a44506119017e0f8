# SPDX-License-Identifier: Apache-2.0
"""Logs that cannot be written: a stalled reader, a file size limit, and symbolic links that a worker could have created."""
import os
import re
import resource
import signal
import subprocess
from fcntl import F_GETFL, F_SETPIPE_SZ, fcntl

import pytest

from client import Client
from monkey import ENVIRONMENT, PROGRAM, SECONDS, parse_url, write_config
from proc import children, wait_until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")


class StalledOutputServer:
    """A server with a standard stream that leads into a small pipe; the test decides when to read it."""

    def __init__(self, folder, stream, server):
        self.reader, writer = os.pipe()
        fcntl(writer, F_SETPIPE_SZ, 4096)
        config = write_config(folder / "monkey.conf", server=server)
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writer}
        self.process = subprocess.Popen([PROGRAM, "-c", config], cwd=folder, env=os.environ | ENVIRONMENT, **streams)
        self.writer, self.stream = writer, stream
        out = os.fdopen(os.dup(self.reader), closefd=True) if stream == "stdout" else os.fdopen(self.process.stdout.fileno(), closefd=False)
        self.address = next(parse_url(found[1]) for found in (re.match(r"  (http://\S+)", line) for line in out) if found)

    def clog(self):
        """Fills the pipe without changing its flags, because all its users share them."""
        with open(f"/proc/self/fd/{self.writer}", "wb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as f:
            while f.write(b"x" * 512):
                pass
            while f.write(b"x"):
                pass
        assert not fcntl(self.writer, F_GETFL) & os.O_NONBLOCK

    def ask(self, target="/"):
        with Client(self.address) as c:
            return c.get(target)

    def read(self):
        return os.read(self.reader, 1 << 16).decode()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        try:
            return self.process.wait(SECONDS)
        finally:
            self.process.kill()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_log_stream_that_is_full_does_not_block(site, tmp_path, stream):
    site.add("index.html", "hello")
    server = StalledOutputServer(tmp_path, stream, f"AccessLog {stream}\nLogLevel debug")
    server.clog()
    for i in range(60):
        assert server.ask(f"/?{i}" + "x" * 700).text == "hello"
    before = set(children(server.process.pid))
    server.process.send_signal(signal.SIGHUP)
    server.process.send_signal(signal.SIGUSR1)
    # A worker that exits cannot report its lost lines. The master lost its own message that the new configuration is active.
    wait_until(lambda: (now := set(children(server.process.pid))) and not now & before, "workers of the new configuration")
    for _ in range(5):
        assert server.ask().text == "hello"
    got = ""
    while stream == "stderr" and "lines of this log were lost: " not in got:
        got += server.read()  # the pipe has space again
    assert server.stop() == 0
    if stream == "stdout":
        assert re.search(rb"\d+ lines of the log stdout were lost", server.process.stderr.read())


def test_log_stream_resumes_with_its_reader(site, tmp_path):
    site.add("index.html", "hello")
    server = StalledOutputServer(tmp_path, "stdout", "AccessLog stdout")
    server.clog()
    server.ask("/?lost" + "x" * 700)
    assert "lines of the log stdout were lost" in next(line for line in map(bytes.decode, server.process.stderr) if "lost" in line)
    assert set(server.read()) == {"x"}
    server.ask("/?found")
    assert re.fullmatch(r'\S+ - - \[[^]]+\] "GET /\?found HTTP/1.1" 200 5 "-" "[^"]*"\n', server.read())
    assert server.stop() == 0


def limit_file_size(pid, size):
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def test_log_file_size_limit_does_not_kill_worker(monkey, site, tmp_path):
    site.add("index.html", "hello")
    server = monkey(server="AccessLog access.log\nErrorLog error.log\nLogLevel debug", host="")
    server.get("/?first")
    log = tmp_path / "access.log"
    wait_until(lambda: b"first" in log.read_bytes(), "the first line")
    worker, = server.workers
    limit_file_size(worker, log.stat().st_size + 30)  # the limit is in the middle of the next line
    for pid in (server.pid,):
        limit_file_size(pid, 0)
    assert server.get("/?lost").text == "hello"
    assert server.get("/?lost").text == "hello"
    before = (tmp_path / "error.log").stat().st_size
    server.tell(signal.SIGUSR1)  # the master now has messages that it cannot write
    server.tell(signal.SIGHUP)
    wait_until(lambda: worker not in server.workers, "the next worker")
    for pid in (server.pid, *server.workers):
        limit_file_size(pid, resource.RLIM_INFINITY)
    assert server.get("/?last").text == "hello"
    server.stop()
    lines = log.read_text().splitlines()
    assert all(re.fullmatch(r'\S+ - - \[[^]]+\] "GET /\?\w+ HTTP/1.1" 200 5 "-" "[^"]*"', line) for line in lines), lines
    assert "/?last " in lines[-1]
    assert (tmp_path / "error.log").stat().st_size > before
    assert re.search(r"lines of this log were lost", (tmp_path / "error.log").read_text())


@as_root
def test_log_symlinks_are_not_followed_as_root(monkey, run, site, tmp_path):
    site.add("index.html", "hello")
    tmp_path.chmod(0o755)
    logs = tmp_path / "logs"
    logs.mkdir()
    victim = tmp_path / "victim"
    server = monkey(server="AccessLog logs/access.log\nUser nobody")
    server.get("/?before")
    wait_until(lambda: (logs / "access.log").read_text(), "a line")
    (logs / "access.log").rename(logs / "old")
    (logs / "access.log").symlink_to(victim)
    server.tell(signal.SIGUSR1)
    server.err.wait_for(r"cannot reopen the log \S+/access.log: Too many levels of symbolic links")
    assert server.get("/?after").text == "hello"
    server.stop()
    assert not victim.exists() and "/?after" in (logs / "old").read_text()
    done = run("-t", "-c", server.config)
    assert done.code == 3 and "cannot open the log" in done.err and "Too many levels of symbolic links" in done.err
    assert "hint: as root, Monkey does not follow links to logs" in done.err


@as_root
def test_log_folder_may_be_a_symlink_of_root(monkey, run, site, tmp_path):
    site.add("index.html", "hello")
    tmp_path.chmod(0o755)
    logs, ways = tmp_path / "data" / "logs", tmp_path / "ways"
    logs.mkdir(parents=True)
    ways.mkdir()
    (ways / "logs").symlink_to("../data/logs")
    server = monkey(server="AccessLog ways/logs/access.log\nUser nobody")
    server.get("/?before")
    wait_until(lambda: "/?before" in (logs / "access.log").read_text(), "a line")
    (logs / "access.log").rename(logs / "old")
    server.tell(signal.SIGUSR1)
    wait_until((logs / "access.log").exists, "the next file")
    wait_until(lambda: server.get("/?after") and "/?after" in (logs / "access.log").read_text(), "a line in it")
    server.stop()
    ways.chmod(0o777)  # now a worker could replace the link
    done = run("-t", "-c", server.config)
    assert done.code == 3 and "hint: as root, Monkey does not follow links to logs" in done.err


@as_root
def test_log_folder_writable_by_workers_is_refused(run, site, tmp_path):
    tmp_path.chmod(0o755)
    logs = tmp_path / "logs"
    logs.mkdir()
    config = write_config(tmp_path / "c", server="AccessLog logs/access.log\nUser nobody")
    assert run("-t", "-c", config).code == 0
    logs.chmod(0o777)
    done = run("-t", "-c", config)
    assert done.code == 3 and re.search(r"c:4:\d+: error: cannot open the log `\S+`", done.err)
    assert "hint: `User` could replace the file or a folder above it" in done.err
    write_config(tmp_path / "c", server="AccessLog logs/access.log")
    assert run("-t", "-c", config).code == 0  # without `User`, no other user can replace the link
    write_config(tmp_path / "c", server="User nobody", plugins=["logger"], sections="[LOGGER]\n    AccessLog logs/a\n")
    done = run("-t", "-c", config)
    assert done.code == 3 and "hint: `User` could replace" in done.err
