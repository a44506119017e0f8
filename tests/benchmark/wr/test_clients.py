# SPDX-License-Identifier: Apache-2.0
"""The numbers that wr parses from real clients match the server's access log, which has one line per response."""
import collections
import os
import re
import shutil
import subprocess

import pytest

from monkey import PROGRAM, SECONDS

READ = PROGRAM.parent / "tests" / "benchmark" / "wr" / "wr_read"
REQUESTS, CLIENTS = 200, 4
REQUESTS_PER_USER = 1000  # for each simulated user of siege
LATENCIES = ("mean", "p50", "p75", "p90", "p95", "p99", "p999", "max")
# A client that runs for a fixed time leaves at most this many requests unfinished.
CUT = {"wrk": CLIENTS}
# The arguments of each client, and the latencies that it always reports, even for a very fast server.
COMMANDS = {
    "wrk": (["-t", "1", "-d", "1"], ("mean", "p50", "p75", "p90", "p99", "max")),
    "h2load": (["--h1", "-n", REQUESTS], ("mean", "max")),
    "weighttp": (["-k", "-n", REQUESTS], ()),
    "ab": (["-k", "-n", REQUESTS], ("mean", "p50", "p75", "p90", "p95", "p99", "max")),
    # siege measures in hundredths of a second, so the run must be much longer than that. -t does not help: on a busy
    # machine, the time may expire before the clients start.
    "siege": (["-b", "-q", "-r", REQUESTS_PER_USER], ("mean",)),
    "pace": (["-R", "200", "-d", "1s"], ("mean", "p50", "p75", "p90", "p95", "max")),
}


def program_of(kind):
    beside = PROGRAM.parent / kind
    return str(beside) if beside.exists() else shutil.which(kind)


def read(kind, output):
    done = subprocess.run([READ, kind], input=output, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr + output
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


@pytest.fixture
def logged_server(monkey, site):
    """A server that serves only /file and writes an access log."""
    assert READ.exists(), f"{READ} is not built"
    site.add("file", "x" * 100)
    return monkey(server="AccessLog access.log\nKeepAliveRequests unlimited")


def run(kind, url, folder, *options):
    """Runs the client with the options that wr adds, and returns its output."""
    if not program_of(kind):
        pytest.skip(f"{kind} is not installed")
    adds = subprocess.run([READ, kind, "adds"], capture_output=True, text=True, timeout=SECONDS, check=True)
    command = [program_of(kind), *adds.stdout.split(), "-c", str(CLIENTS), *map(str, options), url]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder,
                          env=os.environ | {"HOME": str(folder)}, timeout=SECONDS, check=False)
    return done.stdout + done.stderr


def count_log_statuses(server, path):
    """Returns the number of responses by status. The log is complete only after the server has stopped."""
    server.stop()
    lines = re.findall(rf'"GET {path} HTTP/[\d.]+" (\d+) ', (server.folder / "access.log").read_text())
    return collections.Counter(map(int, lines))


@pytest.mark.parametrize("kind", COMMANDS)
def test_client_requests_match_the_access_log(logged_server, tmp_path, kind):
    options, reported = COMMANDS[kind]
    output = run(kind, f"{logged_server.url}/file", tmp_path, *options)
    result = read(kind, output)
    before = int(re.search(r'"before":\{"requests":(\d+)', output)[1]) if kind == "pace" else 0
    answered = count_log_statuses(logged_server, "/file")
    assert set(answered) == {200}
    if kind in CUT:
        assert 0 <= answered[200] - result["requests"] <= CUT[kind], answered
    else:
        n_requests = REQUESTS_PER_USER * CLIENTS if kind == "siege" else REQUESTS
        assert result["requests"] == n_requests
        assert answered[200] == n_requests + before
    assert result["errors"] == 0
    assert result["seconds"] > 0
    assert result["rate"] == pytest.approx(result["requests"] / result["seconds"], rel=0.02)
    assert {name for name in reported if result[name] < 0} == set(), output
    percentiles = [result[name] for name in LATENCIES[1:] if result[name] >= 0]
    assert percentiles == sorted(percentiles)


@pytest.mark.parametrize("protocol", ["h2", "h2-tls"], indirect=True)
def test_h2load_http2_requests_match_the_access_log(logged_server, tmp_path):
    output = run("h2load", f"{logged_server.url}/file", tmp_path, "-n", REQUESTS, "-m", 8)
    result = read("h2load", output)
    assert count_log_statuses(logged_server, "/file") == {200: REQUESTS}
    assert (result["requests"], result["errors"]) == (REQUESTS, 0)
    assert 0 < result["mean"] <= result["max"]


@pytest.mark.parametrize("kind", [kind for kind in COMMANDS if kind != "pace"])  # pace stops after a wrong first response
def test_client_error_statuses_match_the_access_log(logged_server, tmp_path, kind):
    output = run(kind, f"{logged_server.url}/none", tmp_path, *COMMANDS[kind][0])
    result = read(kind, output)
    answered = count_log_statuses(logged_server, "/none")
    assert set(answered) == {404}
    assert 0 <= answered[404] - result["requests"] <= CUT.get(kind, 0)
    assert result["status"] == result["requests"] > 0


@pytest.mark.parametrize("kind", COMMANDS)
def test_client_without_a_server_reports_no_requests(logged_server, tmp_path, kind):
    url = f"{logged_server.url}/file"
    logged_server.stop()
    output = run(kind, url, tmp_path, *COMMANDS[kind][0])
    done = subprocess.run([READ, kind], input=output, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode == 0:
        assert "\nrequests 0\n" in "\n" + done.stdout
        assert int(re.search(r"^errors (-?\d+)$", done.stdout, re.MULTILINE)[1]) > 0
    else:
        assert f"cannot read the output of {kind}: " in done.stderr
