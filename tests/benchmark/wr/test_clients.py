# SPDX-License-Identifier: Apache-2.0
"""What wr reads from real clients is what the server saw: its access log has a line for each request it answered."""
import collections
import os
import re
import shutil
import subprocess

import pytest

from monkey import PROGRAM, SECONDS

READ = PROGRAM.parent / "tests" / "benchmark" / "wr" / "wr_read"
ASKED, CLIENTS = 200, 4
ASKED_OF_EACH = 1000  # of siege's clients
LATENCIES = ("mean", "p50", "p75", "p90", "p95", "p99", "p999", "max")
# It runs for some time, and leaves at most so many requests unfinished at its end.
CUT = {"wrk": CLIENTS}
# Each with what it always tells about times, however fast the server.
COMMANDS = {
    "wrk": (["-t", "1", "-d", "1"], ("mean", "p50", "p75", "p90", "p99", "max")),
    "h2load": (["--h1", "-n", ASKED], ("mean", "max")),
    "weighttp": (["-k", "-n", ASKED], ()),
    "ab": (["-k", "-n", ASKED], ("mean", "p50", "p75", "p90", "p95", "p99", "max")),
    # Its clock has hundredths of a second, so it has to take some of them. Not with -t: on a busy machine the time may be
    # over before its clients begin.
    "siege": (["-b", "-q", "-r", ASKED_OF_EACH], ("mean",)),
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
def served(monkey, site):
    """A server of /file and of nothing else, which writes down what it answered."""
    assert READ.exists(), f"{READ} is not built"
    site.add("file", "x" * 100)
    return monkey(server="AccessLog access.log\nKeepAliveRequests unlimited")


def run(kind, url, folder, *options):
    """Its output as wr would have it."""
    if not program_of(kind):
        pytest.skip(f"{kind} is not installed")
    adds = subprocess.run([READ, kind, "adds"], capture_output=True, text=True, timeout=SECONDS, check=True)
    command = [program_of(kind), *adds.stdout.split(), "-c", str(CLIENTS), *map(str, options), url]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder,
                          env=os.environ | {"HOME": str(folder)}, timeout=SECONDS, check=False)
    return done.stdout + done.stderr


def seen(server, path):
    """How often the server answered, by status. All of it is written down when the server has stopped."""
    server.stop()
    lines = re.findall(rf'"GET {path} HTTP/[\d.]+" (\d+) ', (server.folder / "access.log").read_text())
    return collections.Counter(map(int, lines))


@pytest.mark.parametrize("kind", COMMANDS)
def test_all_requests_are_counted(served, tmp_path, kind):
    options, told = COMMANDS[kind]
    output = run(kind, f"{served.url}/file", tmp_path, *options)
    result = read(kind, output)
    before = int(re.search(r'"before":\{"requests":(\d+)', output)[1]) if kind == "pace" else 0
    answered = seen(served, "/file")
    assert set(answered) == {200}
    if kind in CUT:
        assert 0 <= answered[200] - result["requests"] <= CUT[kind], answered
    else:
        asked = ASKED_OF_EACH * CLIENTS if kind == "siege" else ASKED
        assert result["requests"] == asked
        assert answered[200] == asked + before
    assert result["errors"] == 0
    assert result["seconds"] > 0
    assert result["rate"] == pytest.approx(result["requests"] / result["seconds"], rel=0.02)
    assert {name for name in told if result[name] < 0} == set(), output
    percentiles = [result[name] for name in LATENCIES[1:] if result[name] >= 0]
    assert percentiles == sorted(percentiles)


@pytest.mark.parametrize("protocol", ["h2", "h2-tls"], indirect=True)
def test_requests_of_http2_are_counted(served, tmp_path):
    output = run("h2load", f"{served.url}/file", tmp_path, "-n", ASKED, "-m", 8)
    result = read("h2load", output)
    assert seen(served, "/file") == {200: ASKED}
    assert (result["requests"], result["errors"]) == (ASKED, 0)
    assert 0 < result["mean"] <= result["max"]


@pytest.mark.parametrize("kind", [kind for kind in COMMANDS if kind != "pace"])  # it does not go on after a wrong answer
def test_bad_statuses_are_counted(served, tmp_path, kind):
    output = run(kind, f"{served.url}/none", tmp_path, *COMMANDS[kind][0])
    result = read(kind, output)
    answered = seen(served, "/none")
    assert set(answered) == {404}
    assert 0 <= answered[404] - result["requests"] <= CUT.get(kind, 0)
    assert result["status"] == result["requests"] > 0


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_server_that_is_not_there_gives_no_requests(served, tmp_path, kind):
    url = f"{served.url}/file"
    served.stop()
    output = run(kind, url, tmp_path, *COMMANDS[kind][0])
    done = subprocess.run([READ, kind], input=output, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode == 0:
        assert "\nrequests 0\n" in "\n" + done.stdout
        assert int(re.search(r"^errors (-?\d+)$", done.stdout, re.MULTILINE)[1]) > 0
    else:
        assert f"cannot read the output of {kind}: " in done.stderr
