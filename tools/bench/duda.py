#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Duda's performance figures in one run and checks them against their goals.

    duda.py [--build build/release] [--rounds 7] [--seconds 1] [--sockets 10000] [--only hello,json,...]

CPU time is the user and system time of the server's own processes, from procfs; the server runs on the first core, the client
(wrk) on the last. Servers take turns; results are medians with the minimum and maximum round. Memory is the PSS of all processes
of a server. Needs wrk; node and go are included if installed. Run the script on an idle machine: it prints the load. Exits with 1
if a goal is missed.
"""
import argparse
import base64
import contextlib
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTEST = ROOT / "tools" / "contest"
TICK = os.sysconf("SC_CLK_TCK")
FIRST, LAST = "0", str(os.cpu_count() - 1)
UPGRADE = ("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           f"Sec-WebSocket-Key: {base64.b64encode(b'0123456789abcdef').decode()}\r\n")


# ---- Processes ----

def children(pid):
    found = [pid]
    for each in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if each.name.isdigit() and int((each / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found += children(int(each.name))
    return found


def cpu(pids):
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / TICK


def pss_kb(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += int(re.search(r"(?m)^Pss: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text())[1])
    return total


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Loopback:
    """Where servers run: their address, and the prefix of their commands."""
    name, address, enter = "loopback", "127.0.0.1", ()


LOOPBACK = Loopback()


class Wire:
    """Two network namespaces connected by `wire`, which runs on the last core. Within the block, the calling thread and its
    clients are in one namespace, the servers in the other."""
    name, address = "wire", "10.98.0.1"

    def __init__(self, program):
        self.program, self.names = program, [f"duda-{end}-{os.getpid()}" for end in "ab"]
        self.enter = ("ip", "netns", "exec", self.names[0])
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)

    def __enter__(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        self.process = subprocess.Popen(["taskset", "-c", LAST, self.program, self.names[0], self.address, self.names[1], "10.98.0.2"],
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()
        end = os.open(f"/run/netns/{self.names[1]}", os.O_RDONLY)
        self.move(end)
        os.close(end)
        return self

    def __exit__(self, *_):
        self.move(self.home)
        os.close(self.home)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=True)

    @staticmethod
    def move(namespace):
        if ctypes.CDLL(None, use_errno=True).setns(namespace, 0):
            raise OSError(ctypes.get_errno(), "setns")

    @staticmethod
    def is_possible():
        return os.geteuid() == 0 and shutil.which("ip") and os.access("/dev/net/tun", os.W_OK)


class Server:
    """A server pinned to the first core; stopped at the end of the block."""

    def __init__(self, name, port, command, cores=FIRST, place=None, **environment):
        self.name, self.address = name, ((place or LOOPBACK).address, port)
        self.process = subprocess.Popen([*(place or LOOPBACK).enter, "taskset", "-c", cores, *map(str, command)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | environment)
        for _ in range(1000):
            with contextlib.suppress(OSError), socket.create_connection(self.address, 1):
                return
            time.sleep(0.01)
        self.process.kill()
        sys.exit(f"duda.py: {name} does not listen: {command}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL if self.name != "duda" else signal.SIGTERM)
        self.process.wait(30)

    @property
    def port(self):
        return self.address[1]

    @property
    def pids(self):
        return children(self.process.pid)


# ---- Contestants ----

class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.program = options.build.resolve() / "monkey"
        for name in ("floor", "broadcast_floor", "wire"):
            self.compile(name, ROOT / "tools" / "bench" / f"{name}.c")
        plugins = self.program.parent / "plugins"
        self.compile("monkey-bench.so", ROOT / "tools" / "bench" / "duda.c", "-fstack-clash-protection", "-fPIC", "-shared", f"-I{ROOT / 'include'}",
                     f"-I{ROOT / 'duda' / 'include'}", f"-L{plugins}", "-l:monkey-duda.so", f"-Wl,-rpath,{plugins}")
        self.node = shutil.which("node")
        self.go = self.build_go(shutil.which("go") or shutil.which("/usr/local/go/bin/go"))

    def compile(self, name, source, *flags):
        subprocess.run(["cc", "-std=gnu11", "-O2", "-o", self.folder / name, source, *flags], check=True)

    def build_go(self, go):
        source = CONTEST / "contestants" / "go" / "server.go"
        how = {"GOCACHE": str(ROOT / "build" / "go-cache"), "GO111MODULE": "off", "CGO_ENABLED": "0"}
        if go:
            subprocess.run([go, "build", "-o", self.folder / "go-server", source], check=True, env=os.environ | how)
        return go

    def duda(self, workers=1, place=LOOPBACK):
        port = free_port()
        conf = self.folder / f"{port}.conf"
        conf.write_text(f"[SERVER]\n    Listen {place.address}:{port}\n    Workers {workers}\n    KeepAliveRequests unlimited\n"
                        f"    MaxConnections {self.options.sockets + 1000}\n    LogLevel error\n    AccessLog off\n"
                        f"[PLUGINS]\n    Load {self.folder}/monkey-bench.so\n[DUDA]\n    CrashLimit off\n"
                        f"[HOST]\n    DocumentRoot {self.folder}\n")
        return Server("duda", port, [self.program, "-c", conf], FIRST if workers == 1 else f"{FIRST}-{LAST}",
                      place)

    def floor(self):
        port = free_port()
        return Server("floor", port, [self.folder / "floor", port, 12])

    def sends(self, place=LOOPBACK):
        """Starts the server that shows the lower bound for the cost of a broadcast."""
        port = free_port()
        return Server("broadcast_floor", port, [self.folder / "broadcast_floor", port, place.address], place=place)

    def others(self):
        """Yields Node.js and Go, with the programs and settings of the contest."""
        if self.node:
            port = free_port()
            settings = self.folder / "settings.json"
            settings.write_text(json.dumps({"root": str(self.folder), "port": port, "dynamic": "/hello", "hello": "hello world\n",
                                            "workers": 1}))
            yield Server("node", port, [self.node, CONTEST / "contestants" / "node" / "server.js", settings])
        if self.go:
            port = free_port()
            command = [self.folder / "go-server", f"127.0.0.1:{port}", self.folder, "/hello", "hello world\n"]
            yield Server("go", port, command, GOMAXPROCS="1")

    # ---- Requests ----

    def shot(self, server, path, connections, script):
        before = cpu(server.pids)
        done = subprocess.run(["taskset", "-c", LAST, "wrk", "-t1", f"-c{connections}", f"-d{self.options.seconds}s", *script,
                               f"http://127.0.0.1:{server.port}{path}"], capture_output=True, text=True, check=True).stdout
        requests = int(re.search(r"(\d+) requests in", done)[1])
        if "Non-2xx" in done or not requests:
            sys.exit(f"duda.py: {server.name} sends a wrong response for {path}:\n{done}")
        return 1e6 * (cpu(server.pids) - before) / requests

    def compare(self, path, servers, connections=100, script=()):
        """Returns {name: microseconds per request in each round} and {name: KB after the last round}."""
        times = {s.name: [] for s in servers}
        for i in range(self.options.rounds):
            for s in servers[i % len(servers):] + servers[:i % len(servers)]:
                times[s.name].append(self.shot(s, path, connections, script))
        return times, {s.name: pss_kb(s.pids) for s in servers}


# ---- Measurements ----

ROWS = []


def say(what, measured, aim="", met=None):
    ROWS.append(met)
    print(f"{what:44} {measured:34} {aim:22} {'' if met is None else 'met' if met else 'MISSED'}", flush=True)


def say_times(what, times, memory):
    for name, each in sorted(times.items(), key=lambda item: statistics.median(item[1])):
        say(f"{what}: {name}", f"{statistics.median(each):6.2f} us, {min(each):.2f} to {max(each):.2f}, {memory[name]} KB")


def hello(bench):
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(s) for s in (bench.floor(), bench.duda(), *bench.others())]
        times, memory = bench.compare("/hello", servers)
    say_times("hello", times, memory)
    us = {name: statistics.median(each) for name, each in times.items()}
    say("hello, compared with the floor", f"{us['duda'] / us['floor']:.2f}", "at most 1.20", us["duda"] <= 1.2 * us["floor"])
    if "node" in us:
        say("hello, against Node.js", f"{us['duda'] / us['node']:.2f}", "at most 0.40", us["duda"] <= 0.4 * us["node"])
        times = memory["node"] / memory["duda"]
        say("memory, against Node.js", f"1/{times:.1f}", "at most 1/30", times >= 30)


def against_others(bench, what, path, goals, connections=100, script=()):
    """`goals` are the ratios to other servers by name; the default is 1."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(s) for s in (bench.duda(), *bench.others())]
        times, memory = bench.compare(path, servers, connections, script)
    say_times(what, times, memory)
    us = {name: statistics.median(each) for name, each in times.items()}
    for name in us.keys() - {"duda"}:
        goal = goals.get(name, 1)
        say(f"{what}, against {name}", f"{us['duda'] / us[name]:.2f}", f"at most {goal}", us["duda"] <= goal * us[name])


def plain_json(bench):
    against_others(bench, "JSON", "/json", {"go": 0.5})


def plaintext(bench):
    against_others(bench, "plaintext, 16 pipelined", "/plaintext", {}, 256, ["-s", CONTEST / "cases" / "pipeline.lua"])


def open_one(server, path, upgrade):
    client = socket.create_connection(server.address, 30)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n{UPGRADE if upgrade else ''}\r\n".encode())
    if upgrade and b" 101 " not in client.recv(4096):
        sys.exit(f"duda.py: {path} did not open a WebSocket")
    return client


def grown(bench, what, path, upgrade, aim_mb):
    n = bench.options.sockets
    with bench.duda() as server, contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(open_one(server, path, upgrade))
        time.sleep(1)
        before = pss_kb(server.pids)
        for _ in range(n):
            stack.enter_context(open_one(server, path, upgrade))
        time.sleep(2)
        grew = (pss_kb(server.pids) - before) * 1024
    aim = aim_mb and aim_mb * n / 10000
    say(f"{n} {what}", f"{grew / 1e6:.1f} MB, {grew / n:.0f} bytes each", f"at most {aim:.0f} MB" if aim else "",
        grew <= aim * 1e6 if aim else None)


def waiting(bench):
    grown(bench, "waiting handlers", "/nap", False, 90)


def sockets(bench):
    grown(bench, "idle WebSockets, callbacks", "/calls", True, 20)
    grown(bench, "idle WebSockets, straight-line handlers", "/line", True, 0)


def broadcast_by(server, n):
    """Returns the microseconds per subscriber. All subscribers read a broadcast before the next one is sent, the last subscriber
    first: if the server responds before it has sent all messages, any other order would wake the client for each message."""
    times = 20
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(open_one(server, "/room", True)) for _ in range(n)]
        with socket.create_connection(server.address, 30) as teller:
            before = cpu(server.pids)
            for _ in range(times):
                teller.sendall(b"GET /say HTTP/1.1\r\nHost: a\r\n\r\n")
                teller.recv(4096)
                for client in reversed(clients):
                    client.recv(4096)
            return 1e6 * (cpu(server.pids) - before) / (times * n)


def broadcast_at(bench, place):
    """Compares a bare loop of sends with Duda, alternately."""
    n, times = bench.options.sockets, {bench.sends: [], bench.duda: []}
    for _ in range(min(3, bench.options.rounds)):
        for start, each in times.items():
            with start(place=place) as server:
                each.append(broadcast_by(server, n))
    bare, ours = map(statistics.median, times.values())
    say(f"a bare loop of {n} sends, {place.name}", f"{bare:.2f} us each")
    say(f"a broadcast to {n} WebSockets, {place.name}", f"{ours:.2f} us each", "at most 2 us", ours <= 2)
    say("more than the bare loop", f"{ours - bare:.2f} us each")


def broadcast(bench):
    broadcast_at(bench, LOOPBACK)
    if not Wire.is_possible():
        say("a broadcast over a wire", "needs root, ip and /dev/net/tun")
        return
    with Wire(bench.folder / "wire") as wire:
        broadcast_at(bench, wire)


def ask(port, path):
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: client.recv(4096), b""))


def crash(bench):
    lost, answered, ends = [], [0], threading.Event()

    def visit(port):
        while not ends.is_set():
            try:
                good = b" 200 " in ask(port, "/hello")
            except OSError as error:
                good = error
            if good is True:
                answered[0] += 1
            else:
                lost.append(good)

    with bench.duda(workers=2) as server:
        visitors = [threading.Thread(target=visit, args=(server.port,)) for _ in range(4)]
        for each in visitors:
            each.start()
        for _ in range(10):
            with contextlib.suppress(OSError):
                ask(server.port, "/crash")
            time.sleep(0.2)
        ends.set()
        for each in visitors:
            each.join()
    say("10 crashes with 2 workers, under load", f"{len(lost)} of {answered[0]} requests lost", "0", not lost)


def say_spans(what, spans, aim):
    middle = statistics.median(spans)
    say(what, f"{middle:.1f} ms, {min(spans):.1f} to {max(spans):.1f}", f"at most {aim} ms", middle <= aim)


def wait_for_response(port, path, wanted, seconds=30):
    """Repeats the request until the response contains `wanted`; returns the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if wanted in ask(port, path):
                return time.monotonic()
    sys.exit(f"duda.py: {path} does not respond with {wanted}")


def restart(bench):
    """Measures the time from the request that crashes the only worker to the next response, which needs a new worker. A worker
    that crashes within its first second is not restarted immediately."""
    spans = []
    with bench.duda() as server:
        for _ in range(20):
            begin = time.monotonic()
            with contextlib.suppress(OSError):
                ask(server.port, "/crash")
            spans.append(1000 * (wait_for_response(server.port, "/hello", b" 200 ") - begin))
            time.sleep(1.2)
    say_spans("from a crash of the only worker to a response", spans, 20)


HELLO = """#include <duda.h>

static int hello(struct duda_ctx *d)
{
    return duda_printf(d, "hello %s\\n", duda_query_or(d, "name", "world"));
}

DUDA_SERVICE(hello, DUDA_GET("/", hello, "Greets."));
"""


def saved(bench):
    """Measures the time from saving a source file to the first response of the new code. Each version is different, because the
    compiler cache would return a version that it has already compiled."""
    for compiler in filter(shutil.which, ("gcc", "clang")):
        folder, port, spans = bench.folder / compiler, free_port(), []
        (folder / "cache").mkdir(parents=True)
        path = folder / "hello.c"
        path.write_text(HELLO)
        with Server("duda", port, [bench.program, "run", "-p", port, path], f"{FIRST}-{LAST}", CC=compiler,
                    XDG_CACHE_HOME=str(folder / "cache"), XDG_RUNTIME_DIR=str(folder)):
            wait_for_response(port, "/", b"hello world")
            for i in range(20):
                time.sleep(0.2)
                begin = time.monotonic()
                path.write_text(HELLO.replace("hello %s", f"hello {i} %s"))
                spans.append(1000 * (wait_for_response(port, "/", b"hello %d world" % i) - begin))
        say_spans(f"from saving to the new response, {compiler}", spans, 300)


FIGURES = {"hello": hello, "json": plain_json, "plaintext": plaintext, "waiting": waiting, "sockets": sockets,
           "broadcast": broadcast, "crash": crash, "restart": restart, "saved": saved}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--sockets", type=int, default=10000)
    parser.add_argument("--only", default=",".join(FIGURES))
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    options.sockets = min(options.sockets, hard - 200)
    print(f"load before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="duda-") as folder:
        bench = Bench(options, Path(folder))
        for name in options.only.split(","):
            FIGURES[name](bench)
    print(f"load after: {os.getloadavg()[0]:.2f}")
    return 1 if False in ROWS else 0


if __name__ == "__main__":
    sys.exit(main())
