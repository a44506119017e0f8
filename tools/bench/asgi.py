#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ASGI servers by the CPU time of a request, in one run, and checks the goals.

    asgi.py [--build build/release] [--venv FOLDER] [--rounds 5] [--seconds 3] [--connections 32]

The servers are monkey-asgi, uvicorn with uvloop and httptools, and granian, with one worker each. Applications: `hello`, which is plain
ASGI, and `fastapi`, a route that returns a dict. CPU time is the user and system time of all processes of a server, from procfs. All
servers run on the first core, the client (wrk) on the last one. Servers take turns; results are medians with the minimum and maximum
round. The script installs its requirements into the virtual environment (default: build/asgi-venv). Exits with 1 if a goal is missed.
"""
import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ("uvicorn==0.54.0", "uvloop==0.23.0", "httptools==0.9.0", "granian==2.8.9", "fastapi==0.165.0")
TICKS = os.sysconf("SC_CLK_TCK")
GOALS = {"uvicorn": 0.6, "granian": 1.0}  # for `hello`: at most this share of the other server's CPU time
PROGRAM = """
async def hello(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain"), (b"content-length", b"6")]})
    await send({"type": "http.response.body", "body": b"hello\\n"})

def fastapi():
    from fastapi import FastAPI
    app = FastAPI()

    @app.get("/")
    async def root():
        return {"message": "hello"}
    return app
"""


def make_venv(folder, build):
    """Installs the servers, and libmonkey from the tree."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (folder / "bench_app.py").write_text(f"{PROGRAM}\nfast = fastapi()\n")
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS], check=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps",
                    ROOT / "bindings/python"], check=True)
    return os.environ | {"LIBMONKEY": str(build / "libmonkey.so.1"), "PYTHONPATH": str(folder)}


def commands(folder, app, port):
    program = folder / "bin"
    return {"monkey-asgi": [program / "monkey-asgi", app, "-b", f"127.0.0.1:{port}"],
            "uvicorn": [program / "uvicorn", app, "--port", port, "--no-access-log", "--log-level", "error"],
            "granian": [program / "granian", "--interface", "asgi", app, "--port", port, "--log-level", "error", "--no-ws"]}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    def __init__(self, name, folder, app, environment):
        self.name, self.port, self.rounds = name, free_port(), []
        words = [str(word) for word in commands(folder, app, self.port)[name]]
        self._process = subprocess.Popen(["taskset", "-c", "0", *words], env=environment, stdout=subprocess.DEVNULL)
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"asgi.py: {name} does not listen")

    def processes(self, pid=None):
        pid = pid or self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(p for child in children for p in self.processes(int(child)))]

    def cpu(self):
        ticks = 0
        for pid in self.processes():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS

    def measure(self, seconds, connections):
        before = self.cpu()
        output = subprocess.run(["taskset", "-c", str(os.cpu_count() - 1), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
                                 f"http://127.0.0.1:{self.port}/"], capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in output or "Socket errors" in output:
            sys.exit(f"asgi.py: {self.name}: {output}")
        return (self.cpu() - before) / int(re.search(r"(\d+) requests in", output)[1]) * 1e6

    def end(self):
        self._process.terminate()
        self._process.wait()


def compare(folder, app, environment, options):
    """Prints the CPU time per request of each server; returns the medians by server."""
    servers = [Server(name, folder, app, environment) for name in commands(folder, app, 0)]
    try:
        for server in servers:
            server.measure(1, options.connections)  # warms up
        for _ in range(options.rounds):
            for server in servers:
                server.rounds.append(server.measure(options.seconds, options.connections))
    finally:
        for server in servers:
            server.end()
    for server in servers:
        median, base = statistics.median(server.rounds), statistics.median(servers[0].rounds)
        print(f"{app.partition(':')[2]:6} {server.name:12} {median:6.1f} us ({min(server.rounds):.1f} to {max(server.rounds):.1f})"
              f"   monkey-asgi takes {base / median:.2f} of it", flush=True)
    return {server.name: statistics.median(server.rounds) for server in servers}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--venv", type=Path, default=ROOT / "build/asgi-venv")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    environment = make_venv(options.venv.resolve(), options.build.resolve())
    print(f"load {os.getloadavg()[0]:.1f}, {options.rounds} rounds of {options.seconds} s, {options.connections} connections")
    times = compare(options.venv.resolve(), "bench_app:hello", environment, options)
    compare(options.venv.resolve(), "bench_app:fast", environment, options)
    missed = [name for name, share in GOALS.items() if times["monkey-asgi"] > share * times[name]]
    for name in missed:
        print(f"missed: at most {GOALS[name]} of {name}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
