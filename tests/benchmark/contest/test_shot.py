# SPDX-License-Identifier: Apache-2.0
"""A shot: its command, the metrics that it takes from wr's output, the faults that it detects, and its cleanup."""
import json
import os
import sys
from pathlib import Path

import pytest

from contest import shot
from fakes import case
from proc import wait_until

SHOT = {"seconds": 2.0, "requests": 100, "rate": 50.0, "bytes": 25000, "errors": {"connect": 0, "read": None, "status": 0},
        "latency_us": {"mean": 5, "p50": 4, "p99": 9, "p999": None}, "user_us": 200, "system_us": 300, "us_per_request": 5.0,
        "pss_kb": 1000, "peak_kb": 1200, "switches": {"voluntary": 50, "involuntary": None}, "syscalls": None,
        "client": {"busy": .5}, "server_busy": .7, "samples": [[.1, .5, 1000]]}


def program(tmp_path, text):
    path = tmp_path / "wr"
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_shot_command_is_expanded_for_a_step():
    entry = case(command=("wrk", "-c{c}", "-d{seconds}s", "-s", "{cases}/x.lua", "{url}"))
    assert shot.expand(entry, "http://h/", 10, 2.0) == ["wrk", "-c{c}", "-d2s", "-s", f"{shot.CASES}/x.lua", "http://h/"]
    paced = case(client="pace", axis="rate", connections=7, command=("pace", "-R", "{rate}", "-d{seconds}", "{url}"))
    assert shot.expand(paced, "u", 5000, .5, "/bin/pace") == ["/bin/pace", "-R", "5000", "-d0.5", "u"]
    assert shot.connections(paced, 5000) == 7 and shot.connections(entry, 10) == 10


def test_shot_wr_command_has_roots_step_and_cores():
    command = shot.wr_command("wr", [5, 6], [2, 3], case(), 10, ["wrk", "u"], syscalls=True)
    text = " ".join(command)
    assert "--pid 5 --pid 6" in text and "--steps 10" in text and "--client-cores 2,3" in text and "--syscalls" in text
    assert command[-3:] == ["--", "wrk", "u"] and "--cgroup" not in command
    assert "--cgroup /c" in " ".join(shot.wr_command("wr", [5], [2], case(), 10, ["wrk", "u"], cgroup="/c"))


def test_shot_metrics_are_per_request_and_omit_unknown_ones():
    found = shot.metrics_of(SHOT)
    assert found["cpu_us"] == 5 and found["user_us"] == 2 and found["system_us"] == 3 and found["voluntary"] == .5
    assert found["bytes_per_second"] == 12500 and found["errors"] == 0 and found["p50_us"] == 4 and found["pss_kb"] == 1000
    assert not {"p999_us", "involuntary", "syscalls", "p90_us"} & set(found)


def test_shot_memory_is_omitted_unless_alone():
    assert not {"pss_kb", "peak_kb"} & set(shot.metrics_of(SHOT, alone=False))
    assert shot.samples_of(SHOT, alone=False) == [[.1, .5, None]] and shot.samples_of(SHOT) == [[.1, .5, 1000]]


def fault(lengths=(100,), count=10, yardstick=False, entry=None, **changed):
    return shot.fault_of(SHOT | changed, entry or case(), list(lengths), count, yardstick)


def test_shot_faults_are_detected():
    assert fault() is None and fault(bytes=None) is None
    assert "3 status" in fault(errors={"status": 3}) and "of 103 requests" in fault(errors={"status": 3})
    assert fault(requests=0) == shot.SILENT
    assert "the shortest response has 100000" in fault(lengths=[100_000, 200_000])
    assert "the longest response has 100" in fault(bytes=10_000_000)
    assert fault(lengths=[10, 10_000_000], bytes=10_000_000) is None


def test_shot_yardstick_may_close_connections_without_header():
    errors = {"read": 100}
    assert fault(errors=errors, yardstick=True, entry=case(close=True)) is None
    assert fault(errors=errors, yardstick=True) and fault(errors=errors, entry=case(close=True))
    assert fault(errors={"timeout": 1}, yardstick=True, entry=case(close=True))


def test_shot_output_of_wr_is_parsed(tmp_path):
    wr = program(tmp_path, f"print({json.dumps(json.dumps({'steps': [{'shots': [SHOT]}]}))})")
    assert shot.shot_of(shot.run_wr([wr], 1)) == SHOT


@pytest.mark.parametrize("text, message", [
    ("import sys; sys.exit('wr: there is no process 7')", "wr: there is no process 7"),
    ("print('what?')", "wr: what?"),
    ("print('{}'); raise SystemExit(3)", "wr: {}"),
    ("", "it exited with 0"),
])
def test_shot_error_of_wr_is_quoted(tmp_path, text, message):
    with pytest.raises(shot.NoShot) as why:
        shot.run_wr([program(tmp_path, text)], 1)
    assert message in str(why.value)


@pytest.mark.parametrize("document", [{}, {"steps": []}, {"steps": [{"shots": []}]}, {"steps": [{"shots": [{}]}]}])
def test_shot_document_without_a_shot_is_rejected(document):
    with pytest.raises(shot.NoShot, match="no shot"):
        shot.shot_of(document)


def test_shot_kills_a_client_after_the_timeout(tmp_path, monkeypatch):
    monkeypatch.setattr(shot, "SLACK_SECONDS", 1)
    file = tmp_path / "pid"
    wr = program(tmp_path, "import subprocess\np = subprocess.Popen(['sleep', '1000'])\n"
                           f"open({str(file)!r}, 'w').write(str(p.pid))\np.wait()")
    with pytest.raises(shot.NoShot, match="did not exit"):
        shot.run_wr([wr], .5)
    wait_until(lambda: not is_running(int(file.read_text())), "the end of the client")


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX" and os.getpid() != pid
    except OSError:
        return False


def test_shot_doubtful_latencies_are_omitted():
    found = shot.metrics_of(SHOT | {"doubt": "was late", "doubtful": ["p99"]})
    assert found["p50_us"] == 4 and found["mean_us"] == 5 and "p99_us" not in found and found["cpu_us"] == 5
    assert shot.doubtful(SHOT | {"doubt": "was late", "doubtful": ["p99"]}) == ["p99_us"]
    assert not {"p50_us", "p99_us", "mean_us"} & set(shot.metrics_of(SHOT | {"doubt": "was late", "doubtful": []}))
    assert shot.doubtful(SHOT) == [] and shot.metrics_of(SHOT)["p99_us"] == 9


def test_shot_metrics_divide_by_served_requests():
    metrics = shot.metrics_of({"requests": 10, "served": 20, "rate": 10.0, "user_us": 40.0, "us_per_request": 3.0})
    assert metrics["user_us"] == 2
