# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test, in a folder of its own, on a unix socket. As root it runs as another user, as it must."""
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from proc import wait_until

BIN = next((str(p.parent) for p in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None) or (
    os.path.dirname(shutil.which("initdb") or ""))


def user():
    """Its server refuses to run as root."""
    if os.geteuid():
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    return None


def is_usable():
    """Is there one, and an account that it can run as?"""
    return bool(BIN) and (os.geteuid() != 0 or user() is not None)


class Postgres:
    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="mk-pg-")
        self.options, self.n = options, 0
        self.who = user()
        if self.who:
            os.chown(self.folder, self.who.pw_uid, self.who.pw_gid)
        self.run("initdb", "-D", f"{self.folder}/data", "-U", "ana", "-A", "trust", "-N", "--no-locale", "-E", "UTF8")
        self.start()

    def as_user(self):
        return {"user": self.who.pw_uid, "group": self.who.pw_gid, "extra_groups": []} if self.who else {}

    def run(self, program, *args):
        done = subprocess.run([f"{BIN}/{program}", *args], cwd="/", capture_output=True, text=True, timeout=120, check=False,
                              **self.as_user())
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self):
        self.process = subprocess.Popen(
            [f"{BIN}/postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off",
             "-c", "max_connections=40", *self.options], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, **self.as_user())
        wait_until(lambda: subprocess.run([f"{BIN}/pg_isready", "-q", "-h", self.folder], cwd="/", check=False,
                                          timeout=60).returncode == 0, "PostgreSQL answers")

    def sql(self, text, database="postgres"):
        return self.run("psql", "-h", self.folder, "-U", "ana", "-d", database, "-Atc", text).strip()

    def database(self):
        """A new one, as the key Server names it."""
        self.n += 1
        self.sql(f"CREATE DATABASE d{self.n}")
        return f"host={self.folder} user=ana dbname=d{self.n}"

    def each(self, number):
        """To the server and all of its processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in (self.process.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        self.each(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.each(signal.SIGCONT)
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
