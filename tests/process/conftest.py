# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of processes, configuration, limits and logs."""
import os
import subprocess

import pytest

from monkey import ENVIRONMENT, PROGRAM, SECONDS
from proc import Process


@pytest.fixture
def run(tmp_path):
    """Runs the program to its end: `run("-t", site).code`, `.out`, `.err`."""
    def start(*args, environment=None, folder=None, **popen):
        done = subprocess.run([PROGRAM, *map(str, args)], cwd=folder or tmp_path, stdin=subprocess.DEVNULL,
                              env=os.environ | ENVIRONMENT | (environment or {}), timeout=SECONDS,
                              **{"capture_output": True, **popen})
        return Done(done)

    return start


class Done:
    """How a program ended, and what it said."""

    def __init__(self, done):
        self.code = done.returncode
        self.out = (done.stdout or b"").decode("utf-8", "replace")
        self.err = (done.stderr or b"").decode("utf-8", "replace")
        assert "Sanitizer" not in self.err and "runtime error" not in self.err, self.err

    def __repr__(self):
        return f"<{self.code}: {self.out!r}, {self.err!r}>"


@pytest.fixture
def watch(monkey):
    """`watch(pid)` is a process that is no child of ours, such as a new master; it is ended with the test."""
    processes = []

    def start(pid):
        processes.append(Process(pid))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
