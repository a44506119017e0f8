# SPDX-License-Identifier: Apache-2.0
"""wr with real clients, and the output of wr."""
import csv
import hashlib
import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

COMMANDS = {
    "wrk": ["wrk", "-t1", "-d1"],
    "ab": ["ab", "-n", "100", "-k"],
    "h2load": ["h2load", "--h1", "-n", "100"],
    "siege": ["siege", "-b", "-r20"],
}
SHA1 = hashlib.sha1(b"x" * 100).hexdigest()


@pytest.mark.parametrize("client", [name for name in COMMANDS if shutil.which(name)])
def test_each_client_is_measured(wr, serve, client):
    server = serve("slow", 1)  # 1 ms of CPU per request: memory is sampled only if the shot lasts long enough
    document, shots, _ = wr.shots("--pid", server.pid, "-c", 4, "-n", 2, "--length", 100, "--sha1", SHA1, "--",
                                  *COMMANDS[client], server.url)
    assert document["client"]["kind"] == client
    assert document["server"]["pids"] == [server.pid] and document["server"]["found_by"] == "pid"
    assert document["check"] == {"status": 200, "length": 100, "sha1": SHA1}
    assert len(shots) == 2
    for shot in shots:
        used = shot["user_us"] + shot["system_us"]
        assert shot["requests"] > 0 and shot["rate"] > 0 and used > 0
        assert shot["us_per_request"] == pytest.approx(used / shot["requests"], rel=.01)
        assert shot["pss_kb"] > 0 and shot["peak_kb"] >= shot["pss_kb"] and shot["hwm_kb"] > 0
        assert shot["switches"]["voluntary"] > 0
        assert shot["client"]["user_us"] + shot["client"]["system_us"] > 0
        assert shot["bottleneck"] in ("client", "server", "neither")
        assert shot["samples"] and all(len(sample) == 3 for sample in shot["samples"])
        assert shot["syscalls"] is None
    rate = document["steps"][0]["rate"]
    assert rate["min"] <= rate["median"] <= rate["max"]


def test_sweep_writes_table_csv_and_json(wr, serve, tmp_path):
    server = serve("slow", 0)
    done = wr.run("--port", server.port, "-c", 1, "-l", 3, "-s", 2, "-n", 2, "--warm-up", 1, "--csv", tmp_path / "a.csv",
                  "--json", tmp_path / "a.json", "--", "ab", "-n", 50, server.url)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Server ") and f"process {server.pid};" in lines[0]
    assert lines[1].split(None, 1) == ["Range", "1 to 3 by 2 connections, 2 shots each"]
    assert lines[2].split(None, 1) == ["Command", f"ab -n 50 {server.url}"]
    assert [line.split()[0] for line in lines[7:9]] == ["1", "3"]
    assert lines[-1].startswith("Elapsed      0 days, 0 hours, ")
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["concurrency"], row["shot"]) for row in rows] == [("1", "1"), ("1", "2"), ("3", "1"), ("3", "2")]
    assert all(row["requests"] == "50" and float(row["rate"]) > 0 for row in rows)
    document = json.loads((tmp_path / "a.json").read_text())
    assert [step["concurrency"] for step in document["steps"]] == [1, 3]
    assert document["server"]["found_by"] == "port"
    assert "\r" not in done.stderr  # the progress line appears only on terminals


# Runs pace, and stops it for a while, as if the scheduler did not run it.
PAUSED_PACE = """
import os, signal, subprocess, sys, time
process = subprocess.Popen([{pace!r}, *sys.argv[1:]])
time.sleep(0.5)
process.send_signal(signal.SIGSTOP)
time.sleep(0.4)
process.send_signal(signal.SIGCONT)
sys.exit(process.wait())
"""


def test_doubt_of_the_client_is_reported(wr, serve):
    server = serve("slow", 0)
    wr.script("pace", PAUSED_PACE.format(pace=str(Path(wr.program).with_name("pace"))))
    _, shots, output = wr.shots("-c", 4, "--", "pace", "-R", 100, "-d", "2s", server.url)
    assert "its own pace" in shots[0]["doubt"]
    assert "4 connections: the client doubts itself in 1 of 1 shots: it did not keep its own pace" in output


@pytest.mark.parametrize("connections", [1, 50])
def test_served_includes_setup_requests_and_wrong_responses(wr, serve, connections):
    server = serve("slow", 3)
    _, shots, _ = wr.shots("-c", connections, "--", Path(wr.program).with_name("pace"), "-R", 50, "-d", "1s", server.url)
    assert shots[0]["served"] == 50 + connections and shots[0]["requests"] <= 50
    assert shots[0]["us_per_request"] >= 3_000
    assert shots[0]["us_per_request"] * shots[0]["served"] == pytest.approx(shots[0]["user_us"] + shots[0]["system_us"], rel=.01)


def test_server_is_found_by_the_port_of_the_url(wr, serve):
    server = serve("slow", 0)
    document, _, _ = wr.shots("--", "ab", "-n", 20, "-c", 3, server.url)
    assert document["server"]["found_by"] == "port" and document["server"]["pids"] == [server.pid]
    assert document["steps"][0]["concurrency"] == 3


def test_address_of_the_url_selects_between_servers_on_one_port(wr, serve):
    here = serve("slow", 0)
    there = serve("at", "127.0.0.2", here.port)
    for server, host in ((here, "127.0.0.1"), (there, "127.0.0.2")):
        document, shots, _ = wr.shots("--", "ab", "-n", 20, f"http://{host}:{server.port}/")
        assert document["server"]["pids"] == [server.pid] and shots[0]["requests"] == 20
    output = wr.run("--port", here.port, "--", "ab", "-n", 20, here.url, code=1).stderr
    assert f"several servers listen on port {here.port}: " in output and "choose one with --pid" in output
    for server, host in ((here, "127.0.0.1"), (there, "127.0.0.2")):
        assert re.search(rf"\b{server.pid} \(\S+\) at {host}:{server.port}\b", output)
    output = wr.run("--", "ab", "-n", 20, f"http://127.0.0.3:{here.port}/", code=1).stderr
    assert f"a process listens on port {here.port}, but not at 127.0.0.3" in output


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
def test_nginx_is_measured_with_its_workers(wr, serve, tmp_path):
    free = serve("slow", 0)
    free.process.kill()
    free.process.wait()
    (tmp_path / "nginx.conf").write_text(f"""daemon off; worker_processes 2; pid {tmp_path}/pid; error_log {tmp_path}/log;
        events {{ worker_connections 64; }}
        http {{ access_log off; server {{ listen 127.0.0.1:{free.port}; location / {{ return 200 "hello"; }} }} }}""")
    with subprocess.Popen(["nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], stderr=subprocess.DEVNULL) as nginx:
        try:
            until = time.monotonic() + 20
            children = f"/proc/{nginx.pid}/task/{nginx.pid}/children"
            while len(open(children).read().split()) < 2:
                assert time.monotonic() < until and nginx.poll() is None
                time.sleep(0.02)
            document, shots, _ = wr.shots("--port", free.port, "--length", 5, "-c", 4, "--", "ab", "-n", 500, free.url)
        finally:
            nginx.send_signal(signal.SIGTERM)
    assert document["server"]["name"] == "nginx" and len(document["server"]["pids"]) == 3
    assert shots[0]["requests"] == 500 and shots[0]["user_us"] + shots[0]["system_us"] > 0
