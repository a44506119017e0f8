#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Duda with actix-web and fasthttp in the `baseline` and `json` profiles of HttpArena.

    arena.py [--build build/release] [--dataset FILE] [--rounds 7] [--seconds 2] [--connections 64]

The services are in tools/bench/arena; each handles the same requests and reads the same dataset. In `baseline`, `floor` is
tools/bench/floor.c, which reads no request: the least that an epoll server spends on these bytes. Every server runs with one worker
on the first CPU, the client (wrk) on the last. Prints the server's CPU time per request in microseconds, the median of alternating
rounds with the minimum and the maximum, and its ratio to actix-web.

--dataset: the file dataset.json of HttpArena; by default, a file of the same form with generated items.

Needs wrk, and cargo and go for the other two servers: a server whose compiler or packages are missing is left out.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tools" / "bench" / "arena"
BUILD = ROOT / "build" / "arena"
TICK = os.sysconf("SC_CLK_TCK")
FIRST, LAST = "0", str(os.cpu_count() - 1)
PATHS = {"baseline": "/baseline11?a=13&b=42", "json, 5 items": "/json/5?m=3", "json, 25 items": "/json/25?m=3",
         "json, 50 items": "/json/50?m=3"}
WORDS = ["Alpha", "Pro", "Core", "Edge", "Nano", "Ultra", "Prime"]
THINGS = ["Widget", "Valve", "Relay", "Link", "Gadget", "Driver", "Sensor", "Panel"]
CATEGORIES = ["electronics", "tools", "books", "clothing", "sports", "toys"]
TAGS = ["sale", "heavy-duty", "popular", "fast", "new", "wireless", "eco", "limited", "premium"]


def generated_items():
    return [{"id": i + 1, "name": f"{WORDS[i % 7]} {THINGS[i % 8]}", "category": CATEGORIES[i % 6], "price": 10 + i * 37 % 490,
             "quantity": 1 + i * 13 % 99, "active": i % 3 > 0, "tags": [TAGS[(i + j) % 9] for j in range(1 + i % 4)],
             "rating": {"score": 1 + i * 7 % 50, "count": i * 29 % 400}} for i in range(50)]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


# ---- Servers ----

def build_duda(build, folder):
    plugins = build / "plugins"
    subprocess.run(["cc", "-std=gnu11", "-O2", "-fstack-clash-protection", "-fPIC", "-shared", "-o", folder / "monkey-arena.so",
                    SOURCES / "arena.c", f"-I{ROOT / 'include'}", f"-I{ROOT / 'duda' / 'include'}", f"-L{plugins}", "-l:monkey-duda.so",
                    f"-Wl,-rpath,{plugins}"], check=True)


def duda_command(build, folder, port):
    conf = folder / "arena.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:{port}\n    Workers 1\n    KeepAliveRequests unlimited\n    LogLevel error\n"
                    f"    Sandbox off\n[PLUGINS]\n    Load {folder}/monkey-arena.so\n[HOST]\n    DocumentRoot {folder}\n")
    return [build / "monkey", "-c", conf]


def copy_of_sources(name):
    """Returns a copy of the sources, in which compilers may create lock files."""
    folder = BUILD / name
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    return folder


def build_floor(folder):
    subprocess.run(["cc", "-O2", "-o", folder / "floor", ROOT / "tools" / "bench" / "floor.c"], check=True)
    return folder / "floor"


def build_actix():
    folder = copy_of_sources("actix-web")
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=folder, check=True)
    return folder / "target" / "release" / "arena"


def build_fasthttp():
    folder = copy_of_sources("fasthttp")
    environment = os.environ | {"GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", "arena", "."], cwd=folder, check=True, env=environment)
    return folder / "arena"


def other_programs():
    """Returns {name: program} of the servers that can be built here."""
    programs = {}
    for name, tool, build in (("actix-web", "cargo", build_actix), ("fasthttp", "go", build_fasthttp)):
        if not shutil.which(tool):
            print(f"{name} is left out: there is no {tool}")
            continue
        with contextlib.suppress(subprocess.CalledProcessError):
            programs[name] = build()
    return programs


def start(command, port, **environment):
    process = subprocess.Popen(["taskset", "-c", FIRST, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=os.environ | environment)
    for _ in range(1000):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return process
        time.sleep(0.01)
    process.kill()
    sys.exit(f"arena.py: {command[0]} does not listen")


# ---- Measuring ----

def children(pid):
    found = [pid]
    for each in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if each.name.isdigit() and int((each / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found += children(int(each.name))
    return found


def cpu_seconds(pid):
    ticks = 0
    for each in children(pid):
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / TICK


def measure(process, port, path, options):
    """Returns the CPU time of a request in microseconds."""
    before = cpu_seconds(process.pid)
    out = subprocess.run(["taskset", "-c", LAST, "wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s",
                          f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True).stdout
    requests = int(re.search(r"(\d+) requests in", out)[1])
    if "Non-2xx" in out or not requests:
        sys.exit(f"arena.py: wrong responses to {path}:\n{out}")
    return 1e6 * (cpu_seconds(process.pid) - before) / requests


def check_responses(ports, path):
    """Exits if the servers other than the floor respond with different values."""
    bodies = {}
    for name, port in ports.items():
        if name == "floor":
            continue
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
            bodies[name] = json.loads(response.read())
    if any(body != bodies["Duda"] for body in bodies.values()):
        sys.exit(f"arena.py: the responses to {path} differ: {bodies}")


def compare(servers, what, path, options):
    check_responses({name: port for name, (_, port) in servers.items()}, path)
    rounds = {name: [] for name in servers}
    for _ in range(options.rounds):
        for name, (process, port) in servers.items():
            rounds[name].append(measure(process, port, path, options))
    base = statistics.median(rounds.get("actix-web", rounds["Duda"]))
    for name, times in rounds.items():
        middle = statistics.median(times)
        print(f"{what:16} {name:10} {middle:7.2f} us  ({min(times):.2f} to {max(times):.2f})  {middle / base:5.2f} x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--dataset", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        dataset = options.dataset and options.dataset.resolve()
        if not dataset:
            dataset = folder / "dataset.json"
            dataset.write_text(json.dumps(generated_items()))
        build_duda(build, folder)
        floor = build_floor(folder)
        commands = {"Duda": lambda port: duda_command(build, folder, port), "floor": lambda port: [floor, port, len("55")]}
        for each, program in other_programs().items():
            commands[each] = lambda port, program=program: [program, port, dataset]
        servers = {}
        for each, command in commands.items():
            port = free_port()
            process = start(command(port), port, ARENA_DATASET=str(dataset), GOMAXPROCS="1")
            stack.callback(process.wait)
            stack.callback(process.send_signal, signal.SIGTERM)
            servers[each] = process, port
        print(f"load {os.getloadavg()[0]:.1f}")
        for what, path in PATHS.items():
            compare(servers, what, path, options)
            servers.pop("floor", None)


if __name__ == "__main__":
    main()
