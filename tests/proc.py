# SPDX-License-Identifier: Apache-2.0
"""Reads the state of processes from the kernel, and waits until the state changes."""
import contextlib
import ctypes
import errno
import os
import re
import select
import signal
import socket
import time
from pathlib import Path

import pytest

from monkey import ROOT, SECONDS, needs_processes

# The release program, for tests that sanitizers would distort: memory tests, and tests with preloaded libraries.
RELEASE = Path(os.environ.get("MONKEY_RELEASE", ROOT / "build" / "release" / "monkey")).resolve()
TICKS = os.sysconf("SC_CLK_TCK")
LIBC, SYS_PIDFD_GETFD = ctypes.CDLL(None, use_errno=True), 438


def wait_until(holds, condition, seconds=SECONDS):
    """Waits until `holds()` is true and returns its result. The files and processes that `holds` reads may disappear. The pauses
    grow with the time waited: `holds` may send a request."""
    began = time.monotonic()
    while True:
        missing = None
        try:
            if answer := holds():
                return answer
        except (FileNotFoundError, ProcessLookupError) as error:
            missing = error
        waited = time.monotonic() - began
        if waited >= seconds:
            raise AssertionError(f"not within {seconds} s: {condition}") from missing
        time.sleep(min(max(0.005, waited / 20), 0.05))


def status(pid):
    """Returns the lines of /proc/PID/status: {"Uid": "0 0 0 0", ...}."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: " ".join(value.split()) for name, _, value in (line.partition(":") for line in lines)}


def sleeps(pid):
    """Returns the number of voluntary context switches of the process so far."""
    return int(status(pid)["voluntary_ctxt_switches"])


def stop_idle(pid):
    """Stops a process while it is idle. A busy process would continue its current work when it resumes, instead of the events
    that arrived in the meantime."""
    wait_until(lambda: status(pid)["State"].startswith("S"), f"process {pid} is idle")
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: status(pid)["State"].startswith("T"), f"process {pid} is stopped")


def memory_kb(pid):
    """Returns the private memory of the process, without files and without pages that it shares with its parent."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(kb) for kb in re.findall(r"^(?:Private_Dirty|Swap): +(\d+) kB", text, re.MULTILINE))


def cpu_seconds(pid):
    """Returns the user and system CPU time of the process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def computed(pid, work):
    """Returns the CPU time in seconds that `work()` costs the process in all its threads, whatever else runs on the machine."""
    clock = ~pid << 3 | 2  # CPUCLOCK_SCHED, see clock_getcpuclockid(3)
    before = time.clock_gettime(clock)
    work()
    return time.clock_gettime(clock) - before


def name(pid):
    """Returns the name of the program; empty if the process has exited."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descriptors(pid):
    """Returns {descriptor: target of its link in /proc}."""
    found = {}
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found[int(each.name)] = os.readlink(each)
        except FileNotFoundError:
            pass
    return found


def children(pid):
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    if not found:
        needs_processes("it has no children")
    return found


def sockets(pids):
    """Duplicates the sockets of these processes into this process: pidfd_getfd(2)."""
    for pid in pids:
        process = os.pidfd_open(pid)
        for number in map(int, os.listdir(f"/proc/{pid}/fd")):
            with contextlib.suppress(FileNotFoundError):
                if not os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:"):
                    continue
            copy = LIBC.syscall(SYS_PIDFD_GETFD, process, number, 0)
            if copy < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
                pytest.skip("no descriptor of another process can be had here")
            if copy >= 0:
                yield socket.socket(fileno=copy)
        os.close(process)


def is_gone(pid):
    """Has the process exited, or is it a zombie? The tests cannot reap an orphan."""
    try:
        return status(pid)["State"][0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def pid_in(path):
    """Reads the number that a script has written to the file, terminated by a line feed."""
    return int(wait_until(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text(), f"a number in {path.name}"))


class Process:
    """A process that is not our child. Its pidfd never refers to a later process with the same ID."""

    def __init__(self, pid):
        self.pid, self._fd = pid, os.pidfd_open(pid)

    def tell(self, number):
        signal.pidfd_send_signal(self._fd, number)

    def has_ended(self, seconds=0):
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def wait(self, seconds=SECONDS):
        assert self.has_ended(seconds), f"process {self.pid} did not end"

    def kill(self):
        if not self.has_ended():
            self.tell(signal.SIGKILL)
            self.wait()
        os.close(self._fd)
