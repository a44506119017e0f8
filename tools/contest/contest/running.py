# SPDX-License-Identifier: Apache-2.0
"""A running contestant: starts it, waits until it responds, and stops it with all its processes."""
from __future__ import annotations

import atexit
import contextlib
import http.client
import os
import re
import resource
import signal
import subprocess
import time
import uuid
from pathlib import Path

from contest import family, ports

TERM_SECONDS = 5
DESCRIPTORS = 65536
QUIET = {"LANG": "C.UTF-8", "TZ": "UTC", "PATH": os.environ.get("PATH", os.defpath)}


class Failed(Exception):
    """A contestant could not be prepared or started."""


class PortTaken(Failed):
    """A contestant could not be started because another program has its port."""


LOST = re.compile(r"in use|EADDRINUSE|errno = 98|could not bind", re.IGNORECASE)


def has_lost_port(words: str) -> bool:
    """Returns whether the output of a server reports a failed bind."""
    return bool(LOST.search(words))


def descriptors() -> int:
    """Returns the number of descriptors per server, as hard and soft limit."""
    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], DESCRIPTORS)


def _enter(cgroup):
    """Runs in the new process: sets the descriptor limit and enters the cgroup."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors(),) * 2)
    if cgroup:
        Path(cgroup, "cgroup.procs").write_text("0")


class Running:
    """A running server. It and all its children have exited when `stop` returns or the `with` block ends."""

    def __init__(self, prepared, wrapper, cgroup, seconds):
        self.prepared, self.companion, self.process, self.known = prepared, None, None, {}
        self.mark = uuid.uuid4().hex
        self.output = Path(prepared.setup.folder, "output.txt")
        atexit.register(self.stop)
        try:
            if prepared.companion:
                self.companion = prepared.companion.start(wrapper, cgroup, seconds)
            self._look_at_ports()
            self._start(wrapper, cgroup)
            self._wait(seconds)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self) -> int:
        """The pid of the server's first process."""
        return self.process.pid

    def pids(self) -> list[int]:
        """Returns the pids of all processes of the server, including those of an origin server."""
        behind = self.companion.pids() if self.companion else []
        return [*family.members(self.pid, self.mark), *behind]

    def _look_at_ports(self):
        """Checks the ports before the start: another server that has one of them would respond in place of this one."""
        setup = self.prepared.setup
        for port in (setup.port, setup.tls_port, setup.h2c_port):
            if port and ports.is_taken(port):
                raise PortTaken(f"{self._name()}: another program has port {port}")

    def _start(self, wrapper, cgroup):
        prepared = self.prepared
        environment = QUIET | {"HOME": str(prepared.setup.folder), family.MARK: self.mark} | prepared.environment
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen([*wrapper, *prepared.command], cwd=prepared.setup.folder, env=environment,
                                            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            start_new_session=True, preexec_fn=lambda: _enter(cgroup))

    def _wait(self, seconds):
        end = time.monotonic() + seconds
        while not (responds := self._responds()) or self.process.poll() is not None:
            if self.process.poll() is not None:
                kind = PortTaken if responds or has_lost_port(self._said()) else Failed
                raise kind(f"{self._name()} exited immediately with {self.process.returncode}: {self._said()}"
                           + (", and another program has its port" if responds else ""))
            if time.monotonic() >= end:
                raise Failed(f"{self._name()} does not respond within {seconds} s: {self._said()}")
            time.sleep(0.02)

    def _responds(self) -> bool:
        setup = self.prepared.setup
        connection = http.client.HTTPConnection("127.0.0.1", setup.port, timeout=5)
        try:
            connection.request("GET", f"/{setup.file}", headers={"Connection": "close"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _name(self):
        return self.prepared.contestant.name

    def _said(self):
        try:
            return self.output.read_text(errors="replace").strip()[-800:] or "no output"
        except OSError:
            return "no output"

    def stop(self) -> None:
        """Sends SIGTERM to the first process, and a few seconds later SIGKILL to the remaining processes of the family."""
        atexit.unregister(self.stop)
        try:
            if self.process:
                self._end()
        finally:
            if self.companion:
                self.companion.stop()

    def _end(self):
        members = family.members(self.pid, self.mark)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        seconds = self.prepared.contestant.data.get("stop_seconds", TERM_SECONDS)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        left = family.wait_gone(members, 1 if self.process.poll() is not None else 0)
        for _ in range(10):
            left |= family.members(self.pid, self.mark)
            if not left:
                break
            for pid, start in left.items():
                family.tell(pid, start, signal.SIGKILL)
            self.process.poll()
            left = family.wait_gone(left, 2)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process stuck in the kernel survives SIGKILL
            self.process.wait(TERM_SECONDS)
