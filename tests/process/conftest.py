# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of processes, configuration, limits and logs."""
import pytest

from proc import Process


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
