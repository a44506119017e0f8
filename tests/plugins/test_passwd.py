# SPDX-License-Identifier: Apache-2.0
"""`monkey passwd` edits user files."""
import hashlib
import os
import pty
import re
import select
import signal
import stat
import subprocess
import termios
import time

import pytest

from fault_injection import Fault
from monkey import ENVIRONMENT, PROGRAM
from users import add, passwd


def lines(file):
    return file.read_text().splitlines()


def test_passwd_adds_changes_and_deletes_user(tmp_path):
    file = tmp_path / "users"
    done = passwd(file, "-c", "ana", text="secret\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ana was added to {file}.\n", "")
    first = file.read_text()
    assert re.fullmatch(r"ana:\$y\$j9T\$\S+\n", first)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert passwd(file, "bob", text="hidden").returncode == 0
    done = passwd(file, "ana", text="secret\n")
    assert done.stdout == f"ana was changed in {file}.\n"
    assert [line.split(":")[0] for line in lines(file)] == ["ana", "bob"]
    assert not file.read_text().startswith(first), "a new salt"
    done = passwd(file, "-D", "ana")
    assert done.stdout == f"ana was deleted from {file}.\n"
    assert [line.split(":")[0] for line in lines(file)] == ["bob"]
    done = passwd(file, "-D", "ana")
    assert done.returncode == 1 and "no such user" in done.stderr


@pytest.mark.parametrize("kind, cost, form", [
    ("yescrypt", [], r"\$y\$j9T\$"), ("yescrypt", ["-r", "1"], r"\$y\$j75\$"), ("bcrypt", [], r"\$2b\$10\$"),
    ("bcrypt", ["-r", "4"], r"\$2b\$04\$"), ("sha512", [], r"\$6\$rounds=100000\$"),
    ("sha512", ["--cost", "5000"], r"\$6\$"), ("sha256", [], r"\$5\$rounds=100000\$")])
def test_passwd_supports_every_hash_kind(tmp_path, kind, cost, form):
    file = add(tmp_path / "users", "ana", "secret", "-b", kind, *cost)
    assert re.match("ana:" + form, file.read_text())


def test_passwd_digest_entries_are_separate(tmp_path):
    file = tmp_path / "users"
    add(file, "ana", "basic")
    add(file, "ana", "secret", "--digest", "The Zone")
    add(file, "ana", "secret", "--digest", "The Zone", "-b", "md5")
    add(file, "ana", "changed", "--digest", "The Zone")
    add(file, "ana", "secret", "--digest", "Other")
    text = "ana:The Zone:changed"
    assert lines(file)[1:] == [f"ana:The Zone:{hashlib.sha256(text.encode()).hexdigest()}",
                               f"ana:The Zone:{hashlib.md5(b'ana:The Zone:secret').hexdigest()}",
                               f"ana:Other:{hashlib.sha256(b'ana:Other:secret').hexdigest()}"]
    assert lines(file)[0].startswith("ana:$y$")
    assert passwd(file, "-D", "--digest", "The Zone", "ana").returncode == 0
    assert [line.count(":") for line in lines(file)] == [1, 2]
    assert passwd(file, "-D", "ana").returncode == 0
    assert lines(file) == []


def test_passwd_keeps_other_lines_unchanged(tmp_path):
    file = tmp_path / "users"
    file.write_bytes(b"# ana: a comment\r\n\nanabel:x\nrubbish\n  ana:old\r\nbob:\xff\xfe\nana:twice\nana:realm:d\nlast:x")
    file.chmod(0o640)
    add(file, "ana", "secret")
    after = file.read_bytes().split(b"\n")
    assert after[:4] == [b"# ana: a comment\r", b"", b"anabel:x", b"rubbish"]
    assert after[4].startswith(b"ana:$y$")
    assert after[5:] == [b"bob:\xff\xfe", b"ana:realm:d", b"last:x", b""]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_passwd_keeps_owner_and_symlinks(tmp_path):
    (tmp_path / "real").mkdir()
    file = add(tmp_path / "real" / "users", "ana", "secret")
    link = tmp_path / "users"
    link.symlink_to("real/users")
    if os.geteuid() == 0:
        os.chown(file, 12, 34)
    add(link, "bob", "secret")
    assert link.is_symlink() and len(lines(file)) == 2
    if os.geteuid() == 0:
        assert (file.stat().st_uid, file.stat().st_gid) == (12, 34)
    assert os.listdir(tmp_path / "real") == ["users"]


def test_passwd_concurrent_changes_are_not_lost(tmp_path):
    """No change is lost, and no reader ever sees a partial file."""
    file = add(tmp_path / "users", "first", "x", "-b", "bcrypt", "-r", "4")
    running = []
    for i in range(12):
        p = subprocess.Popen([PROGRAM, "passwd", "-b", "bcrypt", "-r", "4", file, f"user{i}"], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, env=os.environ | ENVIRONMENT)
        p.stdin.write(b"secret\n")
        p.stdin.close()
        running.append(p)
    while any(p.poll() is None for p in running):
        assert all(re.fullmatch(r"\w+:\$2b\$04\$.{53}", line) for line in lines(file))
    assert all(p.returncode == 0 for p in running)
    assert sorted(line.split(":")[0] for line in lines(file)) == sorted(["first"] + [f"user{i}" for i in range(12)])
    assert os.listdir(tmp_path) == ["users"]


# Errors

@pytest.mark.parametrize("words, message", [
    ([], "usage: "), (["users"], "usage: "), (["users", "ana", "secret"], "visible to other users"),
    (["users", "a", "b", "c"], "usage: "), (["-x", "users", "ana"], "usage: "), (["-b", "users", "ana"], "usage: "),
    (["-b", "des", "users", "ana"], "des: expected yescrypt, bcrypt, sha512 or sha256"),
    (["-b", "md5", "users", "ana"], "expected yescrypt"), (["--digest", "R", "-b", "bcrypt", "users", "ana"], "expected sha256 or md5"),
    (["--digest", "a:b", "users", "ana"], "invalid realm"), (["--digest", "", "users", "ana"], "invalid realm"),
    (["--digest", "R", "-r", "5", "users", "ana"], "--cost cannot be combined with --digest"), (["-r", "x", "users", "ana"], "expected a number"),
    (["-r", "99", "users", "ana"], "does not support this cost"),
    (["-D", "-c", "users", "ana"], "-D accepts no option except"), (["users", "a:b"], "invalid user name"), (["users", ""], "invalid user name"),
    (["users", "a\nb"], "invalid user name"), (["users", " a"], "invalid user name"), (["users", "#a"], "invalid user name"),
    (["users", "a" * 256], "invalid user name"), (["users", b"\xff"], "invalid user name"), (["users", b"\xc0\x80"], "invalid user name"),
    (["users", b"\xe0\x80\x80"], "invalid user name"), (["users", b"\xed\xa0\x80"], "invalid user name"), (["users", b"\xf4\x90\x80\x80"], "invalid user name")])
def test_passwd_wrong_usage_is_an_error(tmp_path, words, message):
    add(tmp_path / "users", "zoe", "x", "-b", "bcrypt", "-r", "4")
    before = (tmp_path / "users").read_text()
    done = subprocess.run([PROGRAM, "passwd", *words], input="secret\n", capture_output=True, text=True, cwd=tmp_path,
                          env=os.environ | ENVIRONMENT, timeout=60)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert (tmp_path / "users").read_text() == before


@pytest.mark.parametrize("options, password, message", [
    ([], b"", "no password was entered"), ([], b"\n", "the password is empty"),
    ([], b"a\0b\n", "a control character"), ([], b"a\tb\n", "a control character"), ([], b"a\r\n", "a control character"),
    ([], b"\xff\n", "not UTF-8"), ([], b"\xe2\x82\n", "not UTF-8"), ([], b"x" * 512 + b"\n", "too long"),
    ([], b"x" * 100000, "too long"), (["-b", "bcrypt"], b"x" * 73, "the first 72 bytes")])
def test_passwd_invalid_password_is_an_error(tmp_path, options, password, message):
    file = tmp_path / "users"
    done = subprocess.run([PROGRAM, "passwd", "-c", *options, file, "ana"], input=password, capture_output=True,
                          env=os.environ | ENVIRONMENT, timeout=60)
    assert done.returncode == 1 and message in done.stderr.decode()
    assert not file.exists()


def test_passwd_unusable_file_is_an_error(tmp_path):
    done = passwd(tmp_path / "users", "ana", text="secret\n")
    assert done.returncode == 1 and "No such file" in done.stderr and "Use -c to create it." in done.stderr
    for path in [tmp_path, tmp_path / "none" / "users", "/dev/null", "/proc/version", tmp_path / ("x" * 300)]:
        done = passwd(path, "-c", "ana", text="secret\n")
        assert done.returncode == 1 and str(path) in done.stderr, path
    assert os.listdir(tmp_path) == []


def test_passwd_full_disk_changes_nothing(tmp_path):
    file = add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    file.write_text(file.read_text() + "# " + "x" * 10000 + "\n")
    before = file.read_text()
    script = 'ulimit -f 8; trap "" XFSZ; exec "$@"'
    done = subprocess.run(["sh", "-c", script, "sh", PROGRAM, "passwd", "-b", "bcrypt", file, "bob"], input="x\n",
                          capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=60)
    assert done.returncode == 1 and "cannot write the temporary file" in done.stderr
    assert file.read_text() == before and os.listdir(tmp_path) == ["users"]


def test_passwd_help_warns_of_passwords_in_arguments():
    done = subprocess.run([PROGRAM, "passwd", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "other users can see arguments" in done.stdout
    done = subprocess.run([PROGRAM, "plugins"], capture_output=True, text=True, timeout=60)
    assert re.search(r"^ +commands +passwd$", done.stdout, re.MULTILINE)


def test_passwd_survives_failure_of_any_allocation(tmp_path):
    fault = Fault("failmalloc", tmp_path)
    fault.master = 1
    file = add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    codes = set()
    for n in range(1, 2000):
        before = file.read_text()
        fault.failed, fault.count, fault.after = 0, 1, n
        done = subprocess.run([fault.how["program"], "passwd", "-b", "bcrypt", "-r", "4", file, "bob"], input=b"x\n",
                              capture_output=True, env=os.environ | ENVIRONMENT | fault.environment, timeout=60)
        fault.after = 0
        assert re.fullmatch(r"(\w+:\$2b\$04\$.{53}\n)+", file.read_text()), n
        assert done.returncode == 0 or (done.stderr and file.read_text() == before), (n, done)
        codes.add(done.returncode)
        if not fault.failed:
            break
    assert n < 2000 and codes >= {0, 1}


# On a terminal

class Terminal:
    """Runs the program on a terminal of its own."""

    def __init__(self, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, SIGHUP is ignored, and children inherit that
            os.execve(PROGRAM, [str(PROGRAM), "passwd", *map(str, words)], os.environ | ENVIRONMENT)
        self.seen = ""

    def wait_for(self, text):
        end = time.monotonic() + 30
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self.fd, 4096)
                except OSError:
                    data = b""
                assert data, f"the program ended: {self.seen}"
                self.seen += data.decode()
        self.seen = self.seen.split(text, 1)[1]
        return self

    def type(self, text):
        os.write(self.fd, text.encode() if isinstance(text, str) else text)
        return self

    @property
    def echoes(self):
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def end(self):
        """Returns the exit code of the program, and its last output."""
        while True:
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                break
            if not data:
                break
            self.seen += data.decode()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code, self.seen


def test_passwd_prompts_twice_without_echo(tmp_path):
    file = tmp_path / "users"
    t = Terminal("-c", file, "ana")
    t.wait_for("New password: ")
    assert not t.echoes
    t.type("sicrit pass\n").wait_for("Repeat password: ")
    assert not t.echoes
    code, output = t.type("sicrit pass\n").end()
    assert code == 0 and "ana was added" in output and "sicrit" not in output
    assert lines(file)[0].startswith("ana:$y$")


def test_passwd_different_inputs_change_nothing(tmp_path):
    file = add(tmp_path / "users", "ana", "secret")
    before = file.read_text()
    code, output = (Terminal(file, "ana").wait_for("New password: ").type("one\n").wait_for("Repeat password: ").type("two\n").end())
    assert code == 1 and "the passwords differ: nothing was changed" in output
    assert file.read_text() == before


def test_passwd_input_can_be_edited(tmp_path):
    t = Terminal("-c", "--digest", "R", tmp_path / "users", "ana").wait_for("New password: ")
    t.type("secrex\x7ft\n").wait_for("Repeat password: ").type("rubbish\x15secret\n")
    assert t.end()[0] == 0
    assert lines(tmp_path / "users") == ["ana:R:" + hashlib.sha256(b"ana:R:secret").hexdigest()]


@pytest.mark.parametrize("key, number", [("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)])
def test_passwd_terminal_signals_restore_echo(tmp_path, key, number):
    t = Terminal("-c", tmp_path / "users", "ana").wait_for("New password: ")
    keep = os.open(f"/proc/{t.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)
    assert not termios.tcgetattr(keep)[3] & termios.ECHO
    t.type("half a" + key)
    assert os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]) == -number
    assert termios.tcgetattr(keep)[3] & termios.ECHO
    os.close(keep)
    os.close(t.fd)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_passwd_signals_from_other_processes_restore_echo(tmp_path, number):
    t = Terminal("-c", tmp_path / "users", "ana").wait_for("New password: ")
    keep = os.open(f"/proc/{t.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)
    os.kill(t.pid, number)
    assert os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]) == -number
    assert termios.tcgetattr(keep)[3] & termios.ECHO
    os.close(keep)
    os.close(t.fd)


def test_passwd_suspension_restores_echo_temporarily(tmp_path):
    t = Terminal("-c", tmp_path / "users", "ana").wait_for("New password: ")
    # A terminal cannot stop the leader of its session, because no process could resume the leader. Other processes can stop it.
    os.kill(t.pid, signal.SIGTSTP)
    t.wait_for("New password: ")
    assert not t.echoes
    t.type("secret\n").wait_for("Repeat password: ").type("secret\n")
    assert t.end()[0] == 0


def test_passwd_end_of_input_is_no_password(tmp_path):
    code, output = Terminal("-c", tmp_path / "users", "ana").wait_for("New password: ").type("\x04").end()
    assert code == 1 and "no password was entered" in output
