# SPDX-License-Identifier: Apache-2.0
"""What is behind the contestants in cases about proxies and PHP: an origin server that sends one file, or PHP-FPM. Each
contestant has one of its own, so that connections which another one keeps are not in its way; all are alike. They run on
cores of the client, and their processor time is not the contestant's.

    with behind.start("100.html", material, cores, folder) as origin:
        origin.port                             # of "php": origin.socket
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

from contest import family, ports
from contest.contestant import PROJECT, Failed
from contest.running import QUIET, descriptors

PHP = "php"
CHILDREN = 24  # of PHP-FPM, more than connections of any client: a child serves the connection that it has, and no other
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
    """PHP-FPM, which Debian installs as php-fpm8.2 and the like, where only root looks."""
    return shutil.which("php-fpm") or next(iter(sorted(glob.glob("/usr/sbin/php-fpm*"), reverse=True)), None)


def lacks(what: str) -> str | None:
    """Why it cannot be had on this machine."""
    if what == PHP:
        return None if find_php() else "PHP-FPM is not installed"
    return None if not what or shutil.which("cc") else "there is no C compiler to build the origin with"


def start(what, material, cores, folder) -> Behind:
    """The origin of a file of the material, or "php". Raises Failed."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    return _php(cores, folder) if what == PHP else _origin(material, what, cores, folder)


def _origin(material, name, cores, folder):
    program = material.root.parent / "origin"
    if not program.exists():
        done = subprocess.run(["cc", "-O2", "-o", program, FLOOR], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"the origin could not be built: {done.stderr.strip()[-800:]}")
    port = ports.free_port()
    return Behind([program, str(port), material.root / name], cores, folder, port=port)


def _php(cores, folder):
    path, is_root = folder / "php.sock", os.geteuid() == 0
    pool = folder / "pool.conf"
    pool.write_text(POOL.format(folder=folder, socket=path, children=CHILDREN,
                                user="user = nobody\ngroup = nogroup\n" if is_root else ""))
    return Behind([find_php(), "-F", "-y", pool], cores, folder, path=path)


class Behind:
    """Has ended, with all children, when `stop` returns or the `with` is left."""

    def __init__(self, command, cores, folder, port=None, path=None):
        self.port, self.socket, self._output = port, path, folder / "output.txt"
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
        """What a contestant is given: see Setup."""
        return {"origin": self.port} if self.port else {"php": self.socket, "children": CHILDREN}

    def _wait(self):
        end = time.monotonic() + SECONDS
        while not self._serves():
            if self.process.poll() is not None or time.monotonic() >= end:
                said = self._output.read_text(errors="replace").strip()[-800:]
                raise Failed(f"what is to be behind the contestant does not serve: {said or 'it said nothing'}")
            time.sleep(0.01)

    def _serves(self):
        family_of, address = (socket.AF_UNIX, str(self.socket)) if self.socket else (socket.AF_INET, ("127.0.0.1", self.port))
        with socket.socket(family_of) as sock, contextlib.suppress(OSError):
            sock.connect(address)
            return True
        return False

    def pids(self) -> list[int]:
        return list(family.members(self.process.pid, self._mark))

    def stop(self) -> None:
        """First the one that could start more of them."""
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
