#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Duda with Node.js, Go and Python by the cost of requests that query a database, in one run, and checks the results
against the goals.

    data.py [--build build/release] [--rounds 3] [--seconds 2] [--connections 64] [--only pages,page,db,...] [--without python]
    [--libpq FOLDER] [--tcp]

Measures TechEmpower's db, queries (20), fortunes, updates (20) and cached (20), and a page with one Redis GET. The other servers
run the programs of tools/contest/data, which the script installs once into build/data; Duda runs the samples techempower and
motd. `pages` compares Duda pages that differ only in the source of their text: the code, kv, Redis, or one of 10,000 sessions.
CPU time is that of a server's own processes, without the databases, from procfs. The server runs on the first core, databases and
client (wrk) on the last. All servers use unix sockets; with --tcp they connect to PostgreSQL over TCP at 127.0.0.1:5432. Servers
take turns; results are medians with the minimum and maximum round. Responses are checked first. Run the script on an idle
machine: it prints the load. Exits with 1 if a goal is missed.
"""
import argparse
import contextlib
import functools
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from duda import CONTEST, FIRST, LAST, ROOT, Bench, Server, free_port, pss_kb, say, say_times, ROWS

sys.path.insert(0, str(CONTEST))
from contest import data  # E402: the package is in its own folder

INSTALLED = ROOT / "build" / "data"
SAMPLES = {"techempower": "sql store", "motd": "redis"}
SESSIONS = 10_000
AIMS = {"node": 0.4, "go": 0.7}


class Data(Bench):
    """The servers and their databases."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.program = options.build.resolve() / "monkey"
        for name, packages in SAMPLES.items():
            self.compile_service(name, ROOT / "examples" / "duda" / name / f"{name}.c", packages)
        self.compile_service("pages", ROOT / "tools" / "bench" / "data.c", "kv")

    def compile_service(self, name, source, packages):
        plugins = self.program.parent / "plugins"
        objects = [f"-l:monkey-duda{each and '-'}{each}.so" for each in ("", *packages.split())]
        self.compile(f"monkey-{name}.so", source, "-fstack-clash-protection", "-fPIC", "-shared", f"-I{ROOT / 'include'}", f"-I{ROOT / 'duda' / 'include'}",
                     f"-L{plugins}", *objects, f"-Wl,-rpath,{plugins}")

    @contextlib.contextmanager
    def databases(self):
        command = data.prepare(self.folder, self.folder / "cluster", self.options.tcp)
        process = subprocess.Popen(["taskset", "-c", LAST, *map(str, command)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            end = time.monotonic() + 60
            while not all(path.exists() for path in data.sockets(self.folder)) and time.monotonic() < end:
                time.sleep(0.05)
            data.fill(self.folder)
            yield
        finally:
            for pid in (*self.children_of(process.pid), process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9 if pid != process.pid else 3)
            process.wait(30)

    @staticmethod
    def children_of(pid):
        """Yields the pid of Redis, which must be stopped separately: `pid` is PostgreSQL, which replaced the shell by exec and
        stops only its own children."""
        for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if Path(f"/proc/{each}/comm").read_text().startswith("redis"):
                yield int(each)

    def duda(self, workers=1):
        port, sockets = free_port(), data.sockets(self.folder)
        conf = self.folder / f"{port}.conf"
        conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:{port}\n    Workers {workers}\n    KeepAliveRequests unlimited\n"
                        f"    LogLevel error\n    AccessLog off\n[PLUGINS]\n    Load duda-postgres\n    Load duda-redis\n"
                        f"    Load {self.folder}/monkey-techempower.so\n    Load {self.folder}/monkey-motd.so\n"
                        f"    Load {self.folder}/monkey-pages.so\n[KV]\n    Name pages\n    Folder kept\n[SESSIONS]\n    Store pages\n"
                        f"[POSTGRES]\n    Server host={self.place()} user={data.USER} dbname=postgres\n"
                        f"    PoolSize {self.options.links}\n"
                        f"[REDIS]\n    Server unix:{sockets[1]}\n[HOST]\n    DocumentRoot {self.folder}\n")
        other = {"LD_LIBRARY_PATH": str(self.options.libpq.resolve())} if self.options.libpq else {}
        return Server("duda", port, [self.program, "-c", conf], **other)

    def place(self):
        return self.options.tcp or self.folder

    def others(self):
        where = [str(path) for path in (self.place(), data.sockets(self.folder)[1])]
        programs = {"node": (["node"], INSTALLED / "node" / "server.js"), "go": ([], INSTALLED / "go" / "server"),
                    "python": ([INSTALLED / "python" / "bin" / "python"], INSTALLED / "python" / "server.py")}
        roots = {"python": [self.folder]}
        for name, (words, program) in programs.items():
            if program.exists() and name not in self.options.without.split(","):
                port = free_port()
                yield Server(name, port, [*words, program, port, *roots.get(name, []), *where], GOMAXPROCS="1")
            else:
                print(f"{name} is skipped because it is not installed: run tools/contest/data/install.sh")


def figure(name, path, aims, bench, servers):
    for server in servers:
        fault = data.check(server.port, path, functools.partial(data.number_of, bench.folder))
        if fault:
            sys.exit(f"data.py: {server.name}: {fault}")
    times, memory = bench.compare(path, servers, bench.options.connections)
    say_times(name, times, memory)
    us = {each: statistics.median(of) for each, of in times.items()}
    for other, aim in aims.items():
        if other in us:
            say(f"{name}, against {other}", f"{us['duda'] / us[other]:.2f}", f"at most {aim}", us["duda"] <= aim * us[other])


def ask(connection, method, path):
    connection.request(method, path)
    reply = connection.getresponse()
    reply.read()
    if reply.status >= 300:
        sys.exit(f"data.py: {method} {path} got the status {reply.status}")
    return reply.getheader("Set-Cookie", "").partition(";")[0]


def fill(bench, server):
    """Creates the sessions, and a wrk script that sends their cookies in turn."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    ask(connection, "PUT", "/kept")
    cookies = {ask(connection, "PUT", "/visit") for _ in range(SESSIONS)}
    connection.close()
    if len(cookies) != SESSIONS:
        sys.exit(f"data.py: {SESSIONS} sessions have {len(cookies)} cookies")
    script = bench.folder / "visitors.lua"
    script.write_text("cookies = {\n" + "".join(f'"{each}",\n' for each in cookies) + "}\nlast = 0\nfunction request()\n"
                      "    last = last % #cookies + 1\n    return wrk.format(nil, nil, {Cookie = cookies[last]})\nend\n")
    return ["-s", script]


def pages(bench, servers):
    """Measures all pages of one server alternately. The `no session` page is requested with the session cookies as well, so that
    only the lookup differs."""
    server = servers[0]
    script = fill(bench, server)
    asked = {"plain": ("/plain", []), "kv": ("/kept", []), "Redis": ("/page", []), "no session": ("/plain", script),
             "session": ("/visit", script)}
    times, turns = {name: [] for name in asked}, list(asked.items())
    for _ in range(bench.options.rounds):
        for name, (path, how) in turns:
            times[name].append(bench.shot(server, path, bench.options.connections, how))
        turns = turns[1:] + turns[:1]
    say_times("page", times, {name: pss_kb(server.pids) for name in asked})
    us = {name: statistics.median(each) for name, each in times.items()}
    for name, aim in {"kv": 1.15, "Redis": 1.25}.items():
        say(f"page with {name}, compared with the plain page", f"{us[name] / us['plain']:.2f}", f"at most {aim}", us[name] <= aim * us["plain"])
    each = us["session"] - us["no session"]
    say(f"a look-up among {SESSIONS} sessions in kv", f"{each:.2f} us", "at most 1 us", each <= 1)


FIGURES = {"pages": pages, "page": functools.partial(figure, "page", "/page", {"node": 0.2})}
FIGURES |= {name: functools.partial(figure, name, f"/{path}", AIMS)
            for name, path in {"db": "db", "queries": "queries?queries=20", "fortunes": "fortunes",
                               "updates": "updates?queries=20", "cached": "cached-queries?count=20"}.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--links", type=int, default=2, help="Duda's connections to PostgreSQL")
    parser.add_argument("--libpq", type=Path, help="folder with another libpq.so.5, used only by Duda")
    parser.add_argument("--tcp", action="store_const", const="127.0.0.1", default="")
    parser.add_argument("--only", default=",".join(FIGURES))
    parser.add_argument("--without", default="")
    options = parser.parse_args()
    why = data.lacks()
    if why:
        sys.exit(f"data.py: {why}")
    subprocess.run([CONTEST / "data" / "install.sh"], check=False)
    print(f"load before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="data-") as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        bench = Data(options, Path(folder))
        stack.enter_context(bench.databases())
        servers = [stack.enter_context(each) for each in (bench.duda(), *bench.others())]
        for name in options.only.split(","):
            FIGURES[name](bench, servers)
    print(f"load after: {os.getloadavg()[0]:.2f}")
    return 1 if False in ROWS else 0


if __name__ == "__main__":
    sys.exit(main())
