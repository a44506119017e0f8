# SPDX-License-Identifier: Apache-2.0
"""wr reports which side is the bottleneck, in its results and in its messages. On a busy machine, a process may not get a
whole core, so the tests run several shots."""
import os

import pytest

from fake_clients import PRINT_WRK

SHOTS = 4
# Highest priority: with autogroups, the kernel schedules sessions first, then the processes within a session.
HIGH_PRIORITY = ["sh", "-c", 'echo -20 2>/dev/null >/proc/self/autogroup; exec nice -n -40 "$@"', "sh"]
CORES = sorted(os.sched_getaffinity(0))

pytestmark = pytest.mark.skipif(len(CORES) < 2 or os.geteuid() != 0,
                                reason="needs two cores, and root, to raise the priority")


def test_bottleneck_busy_client_is_reported(wr, serve):
    server = serve("slow", 1)
    # The client sends one real request: wr ignores a server that used no CPU time.
    wr.script("wrk", f"import time, urllib.request\nurllib.request.urlopen({server.url!r}).read()\nuntil = time.monotonic() + 1\nwhile time.monotonic() < until: pass\n" +
              PRINT_WRK)
    _, shots, output = wr.shots("--pid", server.pid, "-n", SHOTS, "--client-cores", CORES[-1], "--",
                              "wrk", "-c", 7, server.url, before=HIGH_PRIORITY)
    for shot in shots:
        assert shot["client"]["cores"] == 1
        assert (shot["bottleneck"] == "client") == (shot["client"]["busy"] >= 0.95)
    if all(shot["client"]["busy"] < 0.95 for shot in shots):
        pytest.skip("this machine is too busy to provide a whole core")
    assert "7 connections: the client is the bottleneck in " in output


def test_bottleneck_busy_server_is_reported(wr, serve):
    server = serve("slow", 5, before=[*HIGH_PRIORITY, "taskset", "-c", str(CORES[0])])
    _, shots, output = wr.shots("--pid", server.pid, "-n", SHOTS, "--client-cores", CORES[-1], "--",
                              "wrk", "-t1", "-c", 4, "-d1", server.url)
    for shot in shots:
        assert (shot["bottleneck"] == "server") == (shot["server_busy"] >= 0.95 and shot["client"]["busy"] < 0.9)
        assert shot["us_per_request"] >= 5_000
    if all(shot["server_busy"] < 0.95 for shot in shots):
        pytest.skip("this machine is too busy to provide a whole core")
    assert "4 connections: the server is the bottleneck in " in output
