# SPDX-License-Identifier: Apache-2.0
"""Backends of the contestants in cases about proxies, PHP and databases: an origin server with one file, PHP-FPM, or PostgreSQL
and Redis. Each contestant has its own backend with identical settings, so that idle connections of one contestant do not affect
another. Backends run on client cores, and their CPU time does not count for the contestant.

    with backends.start("100.html", material, cores, folder) as origin:
        origin.port                             # for "php" and "data": origin.sockets
"""
from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from pathlib import Path

from contest import data, family, ports
from contest.contestant import PROJECT, Failed
from contest.running import QUIET, descriptors

PHP, DATA = "php", "data"
CHILDREN = 24  # PHP-FPM processes: more than any client's connections, because a child serves only its current connection
SECONDS = 20
FLOOR = PROJECT / "tools" / "bench" / "floor.c"
POOL = """\
[global]
error_log = {folder}/fpm.log
daemonize = no
[contest]
{user}listen = {socket}
listen.mode = 0666
listen.backlog = 4096
pm = static
pm.max_children = {children}
"""


def find_php() -> str | None:
    """Finds PHP-FPM, which Debian installs in /usr/sbin as php-fpm8.2 and the like."""
    return shutil.which("php-fpm") or next(iter(sorted(glob.glob("/usr/sbin/php-fpm*"), reverse=True)), None)


def lacks(what: str) -> str | None:
    """Returns why the backend is unavailable on this machine, or None."""
    if what == PHP:
        return None if find_php() else "PHP-FPM is not installed"
    if what == DATA:
        return data.lacks()
    return None if not what or shutil.which("cc") else "no C compiler was found to build the origin server"


def start(what, material, cores, folder) -> Behind:
    """Starts the backend: "php", "data", or the origin server for a file of the material. Raises Failed."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    if what == PHP:
        return _php(cores, folder)
    return _databases(material, cores, folder) if what == DATA else _origin(material, what, cores, folder)


def _origin(material, name, cores, folder):
    program = material.root.parent / "origin"
    if not program.exists():
        done = subprocess.run(["cc", "-O2", "-o", program, FLOOR], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"cannot build the origin server: {done.stderr.strip()[-800:]}")
    port = ports.free_port()
    return Behind([program, str(port), material.root / name], cores, folder, {"origin": port}, port=port)


def _databases(material, cores, folder):
    """Starts databases from a cluster that is created only once."""
    try:
        command = data.prepare(folder, material.root.parent / "cluster")
        postgres, redis = data.sockets(folder)
        made = Behind(command, cores, folder, {"postgres": folder, "redis": redis}, sockets=(postgres, redis))
        data.fill(folder)
    except (OSError, subprocess.SubprocessError) as error:
        raise Failed(f"cannot create the databases for the contestant: {error}") from error
    return made


def _php(cores, folder):
    path, is_root = folder / "php.sock", os.geteuid() == 0
    pool = folder / "pool.conf"
    pool.write_text(POOL.format(folder=folder, socket=path, children=CHILDREN,
                                user="user = nobody\ngroup = nogroup\n" if is_root else ""))
    return Behind([find_php(), "-F", "-y", pool], cores, folder, {"php": path, "children": CHILDREN}, sockets=(path,))


def _responds(family_of, address):
    with socket.socket(family_of) as sock, contextlib.suppress(OSError):
        sock.connect(address)
        return True
    return False


class Behind:
    """A running backend. It and all its children have exited when `stop` returns or the `with` block ends."""

    def __init__(self, command, cores, folder, setup, port=None, sockets=()):
        self.port, self.sockets, self.folder = port, sockets, folder
        self._setup, self._output = setup, folder / "output.txt"
        self._mark = uuid.uuid4().hex
        with open(self._output, "wb") as output:
            self.process = subprocess.Popen(
                ["prlimit", f"--nofile={descriptors()}", "taskset", "-c", ",".join(map(str, cores)), *command], cwd=folder,
                env=QUIET | {family.MARK: self._mark}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True)
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def setup(self) -> dict:
        """Returns the settings for the contestant: see Setup."""
        return self._setup

    def _wait(self):
        end = time.monotonic() + SECONDS
        while not self._serves():
            if self.process.poll() is not None or time.monotonic() >= end:
                said = self._output.read_text(errors="replace").strip()[-800:]
                raise Failed(f"the contestant's backend does not respond: {said or 'no output'}")
            time.sleep(0.01)

    def _serves(self):
        places = [(socket.AF_UNIX, str(path)) for path in self.sockets] or [(socket.AF_INET, ("127.0.0.1", self.port))]
        return all(_responds(*place) for place in places)

    def pids(self) -> list[int]:
        return list(family.members(self.process.pid, self._mark))

    def stop(self) -> None:
        """Suspends the first process before killing the others, so that it cannot start new ones."""
        family.tell(self.process.pid, family.started(self.process.pid), signal.SIGSTOP)
        for _ in range(10):
            left = family.members(self.process.pid, self._mark)
            if not left:
                break
            for pid, began in left.items():
                family.tell(pid, began, signal.SIGKILL)
            self.process.poll()
            family.wait_gone(left, 2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(SECONDS)
