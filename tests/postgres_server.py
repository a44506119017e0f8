# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server for tests, in its own folder, on a unix socket. When the tests run as root, the server runs as another
user, because PostgreSQL refuses to run as root.
"""
import atexit
import contextlib
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from proc import is_gone, status, wait_until

BIN = next((str(p.parent) for p in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None) or (
    os.path.dirname(shutil.which("initdb") or ""))


def user():
    """Returns the account that runs PostgreSQL, which refuses to run as root; None: the test's own account."""
    if os.geteuid():
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    return None


def is_usable():
    """Is PostgreSQL installed, and can an unprivileged account run it?"""
    return bool(BIN) and (os.geteuid() != 0 or user() is not None)


@functools.cache
def template():
    """Returns the data folder of an empty server: copying it takes a tenth of the time of initdb."""
    folder = tempfile.mkdtemp(prefix="mk-pg-template-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    account = user()
    if account:
        os.chown(folder, account.pw_uid, account.pw_gid)
    run("initdb", "-D", f"{folder}/data", "-U", "ana", "-A", "trust", "-N", "--no-locale", "-E", "UTF8")
    return f"{folder}/data"


def as_user():
    account = user()
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}


def run(program, *args):
    program = f"{BIN}/{program}" if "/" not in program else program
    done = subprocess.run([program, *args], cwd="/", capture_output=True, text=True, timeout=120, check=False, **as_user())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Postgres:
    """With `port`, the server also listens at `host`; `pair` is its certificate. `inside` is a command that runs the server in a
    network namespace, which needs root."""

    def __init__(self, *options, port=0, pair=None, host="127.0.0.1", inside=()):
        self.folder = tempfile.mkdtemp(prefix="mk-pg-")
        # Removing thousands of files is slow on a busy disk, so they are removed when all tests have ended.
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.options, self.n, self.port, self.host, self.inside = options, 0, port, host, inside
        self.account = user()
        if self.account:
            os.chown(self.folder, self.account.pw_uid, self.account.pw_gid)
        run("/bin/cp", "-R", "-p", template(), self.folder)
        if pair:
            self.show(pair)
        if inside:
            with open(f"{self.folder}/data/pg_hba.conf", "a", encoding="ascii") as file:
                file.write("host all all samenet trust\n")
        self.start()

    def show(self, pair):
        """Copies the certificate and the key. PostgreSQL requires that it owns its key file."""
        for name, file in (("server.crt", pair.certificate), ("server.key", pair.key)):
            path = Path(self.folder, "data", name)
            path.write_bytes(file.read_bytes())
            path.chmod(0o600)
            if self.account:
                os.chown(path, self.account.pw_uid, self.account.pw_gid)
        self.options += ("-c", "ssl=on")

    def start(self):
        enter, how = (), as_user()
        if self.inside:
            enter, how = [*self.inside, "setpriv", f"--reuid={self.account.pw_uid}", f"--regid={self.account.pw_gid}", "--clear-groups"], {}
        self.process = subprocess.Popen(
            [*enter, f"{BIN}/postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-p", str(self.port or 5432),
             "-c", f"listen_addresses={self.host if self.port else ''}", "-c", "fsync=off", "-c", "max_connections=40",
             *self.options], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            **how)
        wait_until(self.is_ready, "PostgreSQL responds")

    def is_ready(self):
        assert self.process.poll() is None, "PostgreSQL has ended"
        return subprocess.run([f"{BIN}/pg_isready", "-q", *self.connection_options()], cwd="/", check=False, timeout=60).returncode == 0

    def connection_options(self):
        return "-h", self.folder, "-p", str(self.port or 5432)

    def sql(self, text, database="postgres"):
        return run("psql", *self.connection_options(), "-U", "ana", "-d", database, "-Atc", text).strip()

    def database(self):
        """Creates a database and returns its address in the syntax of the key Server."""
        self.n += 1
        self.sql(f"CREATE DATABASE d{self.n}")
        return f"host={self.folder} port={self.port or 5432} user=ana dbname=d{self.n}"

    def processes(self):
        """The process IDs of the server and all its children."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def each(self, number):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        """Kills all processes: a new server refuses to start while a process of the old one holds the shared memory."""
        self.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: status(self.process.pid)["State"].startswith("T"), "PostgreSQL starts no more processes")
        pids = self.processes()
        self.each(signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: all(map(is_gone, pids)), "all of its processes have ended")

    def stop(self):
        if self.process.poll() is None:
            self.each(signal.SIGCONT)
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
