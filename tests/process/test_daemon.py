# SPDX-License-Identifier: Apache-2.0
"""Daemon mode: `monkey -D` returns once the server accepts requests and the PID file is complete."""
import os
import re
import signal
import subprocess

import pytest

from client import Client
from monkey import ENVIRONMENT, PROGRAM, SECONDS, parse_url
from proc import children, descriptors, status, wait_until

pytestmark = pytest.mark.over("h1", why="the protocol makes no difference to the start")


class Daemon:
    """The program, started as a daemon."""

    def __init__(self, folder, watch, *args, **popen):
        self.folder = folder
        self.process = None
        try:
            self.done = subprocess.run([PROGRAM, "-D", *map(str, args)], cwd=folder, stdin=subprocess.DEVNULL,
                                       env=os.environ | ENVIRONMENT, timeout=SECONDS,
                                       **{"capture_output": True, **popen})
        finally:
            if (folder / "pid").exists():
                self.process = watch(int((folder / "pid").read_text()))

    @property
    def pid(self):
        return self.process.pid

    @property
    def address(self):
        return parse_url(re.search(r"^  (\S+)$", self.done.stdout.decode(), re.MULTILINE)[1])

    def get(self, target="/"):
        with Client(self.address) as c:
            return c.get(target)

    def stop(self):
        self.process.tell(signal.SIGTERM)
        self.process.wait()


CONFIGURATION = """[SERVER]
    Listen 127.0.0.1:0
    Workers 2
    PidFile pid
    ErrorLog error.log
[HOST]
    DocumentRoot site
"""


@pytest.fixture
def daemon(tmp_path, site, watch):
    site.add("index.html", "hello")
    (tmp_path / "monkey.conf").write_text(CONFIGURATION)
    return lambda *args, **how: Daemon(tmp_path, watch, *(args or ("-c", "monkey.conf")), **how)


def test_daemon_start_returns_when_requests_are_served(daemon, tmp_path):
    it = daemon()
    assert it.done.returncode == 0
    assert it.get().text == "hello"
    it.stop()
    assert not (tmp_path / "pid").exists()


def test_daemon_closes_inherited_output(daemon):
    """A reader at the other end of the pipe, such as `ssh` or this test, sees the end of the output."""
    it = daemon()
    assert it.done.stdout.decode().startswith("Monkey ")
    for pid in (it.pid, *children(it.pid)):
        leads = descriptors(pid)
        assert [leads[fd] for fd in (0, 1, 2)] == ["/dev/null"] * 3


def test_daemon_leaves_terminal_and_parent(daemon):
    it = daemon()
    assert os.getsid(it.pid) == it.pid and os.getpgid(it.pid) == it.pid
    assert int(status(it.pid)["PPid"]) != os.getpid()


DISCARDED = b"all further messages are discarded; set ErrorLog in [SERVER]"


def test_daemon_with_error_log_does_not_warn(daemon, tmp_path):
    assert DISCARDED not in daemon().done.stderr and "discarded" not in (tmp_path / "error.log").read_text()


def test_daemon_without_error_log_warns_and_is_silent(daemon, tmp_path):
    (tmp_path / "monkey.conf").write_text(CONFIGURATION.replace("    ErrorLog error.log\n", ""))
    it = daemon()
    assert it.done.stderr.count(DISCARDED) == 1
    it.process.tell(signal.SIGUSR1)
    it.process.tell(signal.SIGHUP)
    assert it.get().text == "hello"


def test_daemon_keeps_stderr_redirected_to_a_file(daemon, tmp_path):
    """The shell command is `monkey -D 2>messages`."""
    (tmp_path / "monkey.conf").write_text(CONFIGURATION.replace("    ErrorLog error.log\n", ""))
    with open(tmp_path / "messages", "w") as messages:
        it = daemon(capture_output=False, stdout=subprocess.PIPE, stderr=messages)
    it.process.tell(signal.SIGHUP)
    wait_until(lambda: "the new configuration serves" in (tmp_path / "messages").read_text(), "a message")
    it.process.tell(signal.SIGTERM)
    it.process.wait()
    assert "shutting down" in (tmp_path / "messages").read_text()
    assert "discarded" not in (tmp_path / "messages").read_text()


def test_daemon_keeps_its_working_directory(daemon, tmp_path):
    """Daemons usually change to the root folder, but relative paths must still resolve on SIGHUP."""
    it = daemon()
    (tmp_path / "site/index.html").write_text("changed")
    (tmp_path / "monkey.conf").write_text(CONFIGURATION.replace("Workers 2", "Workers 3"))
    it.process.tell(signal.SIGHUP)
    wait_until(lambda: "the new configuration serves" in (tmp_path / "error.log").read_text(), "the reload")
    wait_until(lambda: len(children(it.pid)) == 3, "three workers")
    assert it.get().text == "changed"


def test_daemon_can_be_upgraded(daemon, tmp_path, watch):
    it = daemon()
    it.process.tell(signal.SIGUSR2)
    it.process.wait()
    new = watch(int((tmp_path / "pid").read_text()))
    assert new.pid != it.pid and it.get().text == "hello"
    new.tell(signal.SIGTERM)
    new.wait()


def test_daemon_can_serve_a_folder(daemon, tmp_path):
    it = daemon("-p", "0", "-I", "pid", "site")
    assert it.get().text == "hello"
    it.process.tell(signal.SIGHUP)
    assert it.get().text == "hello"


@pytest.mark.parametrize("old, new, code, message", [
    ("Workers", "Wrokers", 3, "unknown key `Wrokers`"),
    ("127.0.0.1:0", "192.0.2.1:0", 1, "cannot listen on"),
    ("PidFile pid", "PidFile /no/such/folder/pid", 1, "cannot lock the pid file /no/such/folder/pid"),
    ("Workers 2", "Workers 2\n    FDLimit 4", 1, ""),
])
def test_daemon_start_reports_errors(daemon, tmp_path, old, new, code, message):
    (tmp_path / "monkey.conf").write_text(CONFIGURATION.replace(old, new).replace("    ErrorLog error.log\n", ""))
    it = daemon()
    assert it.done.returncode == code and it.done.stdout == b""
    assert message in it.done.stderr.decode() and it.done.stderr


# The PID file

def test_pid_file_of_running_server_prevents_second_start(monkey, tmp_path, site):
    first = monkey(server="PidFile pid")
    second = monkey(server="PidFile pid", expect_start=False)
    second.exit_code = 1
    second.wait()
    assert "pid: another Monkey process holds it" in second.err.text
    assert (tmp_path / "pid").read_text() == f"{first.pid}\n"


def test_pid_file_left_behind_is_replaced(monkey, tmp_path, site):
    (tmp_path / "pid").write_text(f"{os.getpid()} is a number that is longer\n")
    server = monkey(server="PidFile pid")
    assert (tmp_path / "pid").read_text() == f"{server.pid}\n"
    server.stop()
    assert not (tmp_path / "pid").exists()


def test_pid_file_of_another_program_is_kept(monkey, tmp_path, site):
    server = monkey(server="PidFile pid")
    (tmp_path / "pid").unlink()
    (tmp_path / "pid").write_text("1\n")
    server.stop()
    if (tmp_path / "pid").exists():
        assert (tmp_path / "pid").read_text() == "1\n"


def test_pid_file_symlink_is_not_followed(monkey, tmp_path, site):
    """A user with write access to the folder must not make root write to another file."""
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "pid").symlink_to("precious")
    server = monkey(server="PidFile pid", expect_start=False)
    server.exit_code = 1
    server.wait()
    assert "pid: Too many levels of symbolic links" in server.err.text
    assert (tmp_path / "precious").read_text() == "precious"


def test_pid_file_moves_on_reload(monkey, tmp_path, site):
    server = monkey(server="PidFile pid")

    def change(old, new, count):
        server.config.write_text(server.config.read_text().replace(old, new))
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves", count)

    change("PidFile pid", "PidFile other", 1)
    assert not (tmp_path / "pid").exists() and (tmp_path / "other").read_text() == f"{server.pid}\n"
    (tmp_path / "link").symlink_to(".")
    change("PidFile other", "PidFile link/other", 2)
    assert (tmp_path / "other").read_text() == f"{server.pid}\n"
    change("    PidFile link/other\n", "", 3)
    assert not (tmp_path / "other").exists()
    change("Workers", "PidFile pid\n    Workers", 4)
    assert (tmp_path / "pid").read_text() == f"{server.pid}\n"
    server.stop()
    assert not (tmp_path / "pid").exists()


def test_pid_file_is_kept_when_the_new_one_cannot_be_locked(monkey, tmp_path, site):
    server = monkey(server="PidFile pid")
    server.config.write_text(server.config.read_text().replace("PidFile pid", "PidFile /no/such/folder/pid"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert "cannot lock the pid file /no/such/folder/pid: No such file or directory" in server.err.text
    assert (tmp_path / "pid").read_text() == f"{server.pid}\n"
    server.stop()
    assert not (tmp_path / "pid").exists()


def test_pid_file_is_complete_when_requests_are_served(monkey, tmp_path, site):
    server = monkey(server="PidFile pid")
    assert (tmp_path / "pid").read_text() == f"{server.pid}\n"
    assert (tmp_path / "pid").stat().st_mode & 0o777 == 0o644
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert (tmp_path / "pid").read_text() == f"{server.pid}\n"
