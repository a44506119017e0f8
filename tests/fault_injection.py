# SPDX-License-Identifier: Apache-2.0
"""Preloaded libraries that make system calls and allocations of the release program fail. See tests/fault."""
import contextlib
import mmap
import os
import struct
import time
from pathlib import Path

from monkey import ROOT
from proc import RELEASE, wait_until

LIBRARIES = Path(os.environ.get("MONKEY_FAULTS", ROOT / "build" / "dev" / "tests" / "fault")).resolve()
WORDS = 16
LAYOUTS = {
    "failmalloc": ["after", "count", "master", "seen", "failed"],
    "shortio": ["chance", "most", "state", "short", "again", "interrupted"],
    "oldfs": ["refused", "links"],
    "oldkernel": ["asked"],
    "clock": ["ahead_ms"],
    "probe": ["done", "read", "write", "create", "list", "run", "root"],
}


class Fault:
    """Controls a preloaded library. Setting `fault.chance = 300` immediately affects all processes of a server started with
    `**fault.how`."""

    def __init__(self, name, folder, environment=None):
        library = LIBRARIES / f"{name}.so"
        assert library.exists() and RELEASE.exists(), f"{library} or {RELEASE} is not built"
        path = folder / f"{name}.fault"
        path.write_bytes(bytes(8 * WORDS))
        with open(path, "r+b") as file:
            memory = mmap.mmap(file.fileno(), 8 * WORDS)
        self.__dict__.update(_layout=LAYOUTS[name], _memory=memory)
        self.__dict__["environment"] = {"LD_PRELOAD": str(library), "MONKEY_FAULT": str(path), **(environment or {})}
        self.__dict__["how"] = {"program": RELEASE, "environment": self.environment}

    def __getattr__(self, name):
        return struct.unpack_from("<q", self._memory, 8 * self._layout.index(name))[0]

    def __setattr__(self, name, value):
        struct.pack_into("<q", self._memory, 8 * self._layout.index(name), value)


class Calendar:
    """Moves the clock of a server forward, whose service responds to /now with its time."""

    def __init__(self, folder):
        self.clock = Fault("clock", folder)
        self.how = self.clock.how

    def go_to(self, server, seconds):
        """Waits until the worker has read the new time, which it does once per kernel tick."""
        self.clock.ahead_ms = 1000 * seconds
        wait_until(lambda: int(server.get("/now").text) >= int(time.time()) + seconds, "the clock has moved")


def failing_allocations(fault, server, most=2000):
    """Yields 1, 2, ...: in iteration n, the n-th allocation fails. The caller does the same work each time, until n exceeds the
    number of its allocations. No worker may crash."""
    workers = server.workers
    for n in range(1, most):
        fault.failed, fault.count, fault.after = 0, 1, n
        yield n
        failed, fault.after = fault.failed, 0
        assert server.workers == workers, f"allocation {n} killed a worker:\n{server.log}"
        if not failed:
            fault.count = 0
            return
    raise AssertionError(f"{most} allocations do not suffice")


def fail_in_a_row(fault, server, count, play):
    """Makes `count` consecutive allocations fail, from several starting points. If `count` is 1000, `play` may fail, too, but no
    worker may die."""
    workers = server.workers
    for n in range(1, 100, 7):
        fault.count, fault.after = count, n
        with contextlib.suppress(AssertionError) if count == 1000 else contextlib.nullcontext():
            play(server)
    recover(fault, server, play)
    assert server.workers == workers


def recover(fault, server, play):
    """Stops the injected failures, and waits until all requests succeed. A process that updates the counters at this moment may
    overwrite the zeros, so each attempt writes them again."""
    def is_well():
        fault.count = fault.after = 0
        return play(server) == 0
    wait_until(is_well, "all requests succeed again")
