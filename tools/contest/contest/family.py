# SPDX-License-Identifier: Apache-2.0
"""The processes of a contestant: finds all that belong to it, and terminates them."""
from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "CONTEST_RUN"  # an environment variable inherited by all processes of a contestant


def stat(pid: int) -> list[str]:
    """Returns the fields of /proc/PID/stat from the state on; empty if the process does not exist."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def started(pid: int) -> str:
    """Returns the start time, which distinguishes processes with the same pid; empty if the process does not exist or is a
    zombie."""
    fields = stat(pid)
    return fields[19] if fields and fields[0] not in "ZX" else ""


def marked(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def members(pid: int, mark: str = "") -> dict[int, str]:
    """Returns {pid: start time} of `pid`, its descendants, its session and all processes with the mark, because some servers
    leave their parents and some their session."""
    table = {int(name): stat(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    table = {each: fields for each, fields in table.items() if fields}
    found = {each for each, fields in table.items() if each == pid or int(fields[3]) == pid}
    if mark:
        found |= {each for each in table if marked(each, mark)}
    grown = True
    while grown:
        more = {each for each, fields in table.items() if int(fields[1]) in found} - found
        found |= more
        grown = bool(more)
    return {each: table[each][19] for each in sorted(found) if each in table and table[each][0] not in "ZX"}


def tell(pid: int, start: str, number: int) -> None:
    """Sends a signal, but never to a later process with the same pid."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if started(pid) == start:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def wait_gone(family: dict[int, str], seconds: float) -> dict[int, str]:
    """Waits until the processes have exited; returns those that still exist after the given time."""
    end = time.monotonic() + seconds
    while True:
        left = {pid: start for pid, start in family.items() if started(pid) == start}
        if not left or time.monotonic() >= end:
            return left
        time.sleep(0.01)
