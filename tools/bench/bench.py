#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Monkey beside the bare epoll loop (floor.c), nginx and lighttpd: microseconds of CPU for a request, bytes for an idle
connection, memory after start. One worker of each on the first core, the client on the last one; rounds are interleaved
(A B C A B C ...), figures are medians with their spread.

    bench.py [--rounds N] [--seconds S] [--only CASE[,CASE]] [--json FILE] [PROGRAM]

Needs wrk and taskset, and a C compiler for the floor; servers that are not installed are reported as absent.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import measure

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CONNECTIONS = 100
IDLE = 5000

# name: (file, one request per connection, access log, what the floor answers from)
CASES = {
    "small": ("100.html", False, False, "100 B file, keep-alive"),
    "close": ("100.html", True, False, "100 B file, one request per connection"),
    "medium": ("200k.bin", False, False, "200 KB file, keep-alive"),
    "logged": ("100.html", False, True, "100 B file, keep-alive, access log on"),
}

NGINX = """worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.error;
events {{ worker_connections 16384; }}
http {{
    include /etc/nginx/mime.types; sendfile on; tcp_nopush on; tcp_nodelay on;
    keepalive_timeout 65; keepalive_requests 1000000000; open_file_cache max=1000 inactive=60s;
    access_log {log};
    server {{ listen 127.0.0.1:{port} reuseport; root {folder}/www; }}
}}
"""
LIGHTTPD = """server.document-root = "{folder}/www"
server.bind = "127.0.0.1"
server.port = {port}
server.max-keep-alive-requests = 1000000000
server.max-fds = 16384
server.max-connections = 16384
mimetype.assign = (".html" => "text/html")
{log}
"""
MONKEY = """[SERVER]
    Listen              127.0.0.1:{port}
    Workers             1
    KeepAliveTimeout    65
    MaxKeepAliveRequest unlimited
    LogLevel            warn
    AccessLog           {log}
[HOST]
    DocumentRoot        {folder}/www
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    for _ in range(100):
        if process.poll() is not None:
            sys.exit(f"bench.py: {process.args} ended at once")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    sys.exit(f"bench.py: {process.args} does not listen")


class Servers:
    """All contestants of one case, each started in its own configuration."""

    def __init__(self, folder, program, floor):
        self.folder, self.program, self.floor = folder, program, floor
        self.running = {}

    def start(self, name, command, port):
        process = subprocess.Popen(["taskset", "-c", "0", *command], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        wait_for(port, process)
        self.running[name] = (process, port)

    def start_configured(self, name, template, log, command):
        port = free_port()
        conf = pathlib.Path(self.folder, f"{name}.conf")
        conf.write_text(template.format(folder=self.folder, port=port, log=log))
        self.start(name, [part.format(conf=conf) for part in command], port)

    def start_all(self, file, logged):
        log = f"{self.folder}/%s.access"
        port = free_port()
        answer = str(pathlib.Path(self.folder, "www", file)) if file != "100.html" else "100"
        self.start("floor", [self.floor, str(port), answer], port)
        self.start_configured("monkey", MONKEY, log % "monkey" if logged else "off", [self.program, "-c", "{conf}"])
        if shutil.which("nginx"):
            value = f"{log % 'nginx'} combined buffer=64k flush=1s" if logged else "off"
            self.start_configured("nginx", NGINX, value, ["nginx", "-c", "{conf}"])
        if shutil.which("lighttpd"):
            value = f'server.modules += ("mod_accesslog")\naccesslog.filename = "{log % "lighttpd"}"' if logged else ""
            self.start_configured("lighttpd", LIGHTTPD, value, ["lighttpd", "-D", "-f", "{conf}"])

    def stop(self):
        for process, _ in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process, _ in self.running.values():
            process.wait(timeout=20)
        self.running = {}


def median(rounds, *keys):
    return statistics.median(sum(r[k] for k in keys) for r in rounds)


def print_case(title, rounds):
    base = median(rounds["floor"], "user_us", "system_us")
    print(f"\n{title}")
    print(f"{'server':10}{'us/request':>11}{'x floor':>9}{'user':>7}{'system':>8}{'spread':>15}{'req/s':>9}")
    for name in sorted(rounds, key=lambda n: median(rounds[n], "user_us", "system_us")):
        r = rounds[name]
        all_us = [x["user_us"] + x["system_us"] for x in r]
        us = statistics.median(all_us)
        print(f"{name:10}{us:11.2f}{us / base:9.2f}{median(r, 'user_us'):7.2f}{median(r, 'system_us'):8.2f}"
              f"{min(all_us):8.2f}-{max(all_us):<6.2f}{median(r, 'rate'):9.0f}", flush=True)


def run_case(servers, case, options):
    file, close, logged, title = CASES[case]
    servers.start_all(file, logged)
    rounds = {name: [] for name in servers.running}
    try:
        for _ in range(options.rounds):
            for name, (process, port) in servers.running.items():
                rounds[name].append(measure.cost(process.pid, f"http://127.0.0.1:{port}/{file}", CONNECTIONS,
                                                 options.seconds, os.cpu_count() - 1, close))
    finally:
        servers.stop()
    print_case(title, rounds)
    return rounds


def run_memory(servers):
    servers.start_all("100.html", False)
    figures = {}
    print(f"\n{'server':10}{'PSS after start':>17}{'bytes/idle connection':>24}")
    try:
        for name, (process, port) in servers.running.items():
            start = measure.pss_kb(measure.family(process.pid))
            idle = measure.idle_bytes(process.pid, port, "/100.html", IDLE) if name != "floor" else None
            figures[name] = {"pss_kb": start, "idle_bytes": idle}
            print(f"{name:10}{start:14} KB{'-' if idle is None else f'{idle:.0f}':>24}", flush=True)
    finally:
        servers.stop()
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", default=",".join([*CASES, "memory"]))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("program", nargs="?", default=str(ROOT / "build" / "release" / "monkey"))
    options = parser.parse_args()
    for tool in ("wrk", "taskset", "cc"):
        if not shutil.which(tool):
            sys.exit(f"bench.py: {tool} is needed")
    results = {}
    with tempfile.TemporaryDirectory(prefix="monkey-bench-") as folder:
        os.chmod(folder, 0o755)
        www = pathlib.Path(folder, "www")
        www.mkdir()
        (www / "100.html").write_text("x" * 100)
        (www / "200k.bin").write_bytes(b"0123456789" * 20000)
        floor = f"{folder}/floor"
        subprocess.run(["cc", "-O2", "-o", floor, str(HERE / "floor.c")], check=True)
        servers = Servers(folder, os.path.abspath(options.program), floor)
        for case in options.only.split(","):
            results[case] = run_memory(servers) if case == "memory" else run_case(servers, case, options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
