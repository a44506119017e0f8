#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the cost of a request to a trivial handler with libmonkey and with other HTTP libraries.

    libraries.py [-r ROUNDS] [-d SECONDS] [--count] [NAME...]

Builds the programs of tools/bench/libraries with the installed libraries (libmicrohttpd, libuv, llhttp, libevent) and with
build/release/libmonkey.so, and runs each on the first CPU, with wrk as the client on the last. Prints the server's CPU time per
request in microseconds, the median of alternating rounds, and its ratio to the floor, a bare epoll loop without a parser.

--count prints instructions (callgrind) and system calls (strace) per request over one connection instead of times: these numbers
do not depend on the load of the machine.

In both cases, the script then starts and stops 10,000 servers, and prints how much memory an idle server adds to a program.

The C files of llhttp come from Debian's node-llhttp package, which is downloaded into the build folder.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tools" / "bench"
RELEASE = ROOT / "build" / "release"
BUILD = ROOT / "build" / "libraries"
PATIENCE = 20
# name: source, arguments after the port, names for pkg-config
SERVERS = {
    "floor": ("floor.c", ["6"], []),
    "libmonkey": ("libraries/monkey.c", [], ["monkey"]),
    "libmonkey, a thread": ("libraries/monkey.c", ["threads"], ["monkey"]),
    "libmonkey in epoll": ("libraries/monkey.c", ["epoll"], ["monkey"]),
    "libmonkey in libuv": ("libraries/monkey_uv.c", [], ["monkey", "libuv"]),
    "libuv and llhttp": ("libraries/uv_llhttp.c", [], ["libuv", "llhttp"]),
    "libmicrohttpd": ("libraries/microhttpd.c", [], ["libmicrohttpd"]),
    "libevent": ("libraries/evhttp.c", [], ["libevent"]),
}
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def output(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, **options).stdout


def flags_of(library):
    """Returns compiler flags; None if the library is missing."""
    if library == "monkey":
        return [f"-I{ROOT}/include", f"-L{RELEASE}", "-lmonkey", f"-Wl,-rpath,{RELEASE}"]
    if library == "llhttp":
        return flags_of_llhttp()
    done = subprocess.run(["pkg-config", "--cflags", "--libs", library], capture_output=True, text=True, check=False)
    return shlex.split(done.stdout) if done.returncode == 0 else None


def flags_of_llhttp():
    folder = BUILD / "llhttp"
    if not (folder / "usr").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["apt-get", "download", "node-llhttp"], cwd=folder, capture_output=True, check=False)
        for package in folder.glob("node-llhttp_*.deb"):
            output("dpkg", "-x", package, folder)
        if done.returncode or not (folder / "usr").is_dir():
            return None
    sources = sorted((folder / "usr/share/llhttp").glob("*.c"))
    return [f"-I{folder}/usr/share/include/llhttp", *map(str, sources)]


def build(name):
    """Returns the compiled program; None if a library is missing."""
    source, _, libraries = SERVERS[name]
    flags = [flags_of(library) for library in libraries]
    if None in flags:
        return None
    program = BUILD / pathlib.Path(source).stem
    output("cc", "-O2", "-o", program, HERE / source, *(word for those in flags for word in those))
    return program


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"libraries.py: nothing listens on port {port}")


class Running:
    """A running server, optionally under a tool such as valgrind."""

    def __init__(self, name, program, wrapper=()):
        self.name, self.port = name, free_port()
        self.process = subprocess.Popen([*wrapper, program, str(self.port), *SERVERS[name][1]], stderr=subprocess.DEVNULL)
        wait_for(self.port)

    def spent(self):
        """Returns the CPU seconds of all threads."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def microseconds(server, connections, seconds):
    """Returns the server's CPU time per request."""
    command = ["taskset", "-c", str(last_processor()), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    before = server.spent()
    said = output(*command, f"http://127.0.0.1:{server.port}/")
    spent = server.spent() - before
    if "Non-2xx" in said:
        sys.exit(f"libraries.py: {server.name} sends error responses")
    return spent * 1e6 / int(re.search(r"(\d+) requests in", said)[1])


def last_processor():
    return int(output("nproc", "--all")) - 1


def compare_times(programs, rounds, seconds):
    rows = {name: {1: [], 100: []} for name in programs}
    servers = [Running(name, program, ["taskset", "-c", "0"]) for name, program in programs.items()]
    for _ in range(rounds):
        for connections in (100, 1):
            for server in servers:
                rows[server.name][connections].append(microseconds(server, connections, seconds))
    for server in servers:
        server.end()
    medians = {name: {n: statistics.median(row[n]) for n in row} for name, row in rows.items()}
    print(f"{'CPU per request':<22}{'100 connections':>24}{'1 connection':>24}")
    for name, row in medians.items():
        cells = [f"{row[n]:8.2f} us  {row[n] / medians['floor'][n]:5.2f} x" for n in (100, 1)]
        print(f"{name:<22}{cells[0]:>24}{cells[1]:>24}")


def ask(port, requests):
    """Sends requests one at a time, without pipelining."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:
        for _ in range(requests):
            s.sendall(REQUEST)
            got = b""
            while not got.endswith(b"hello\n") and not got.endswith(b"xxxxxx"):
                piece = s.recv(4096)
                if not piece:
                    sys.exit("libraries.py: a server closed the connection")
                got += piece


def instructions(name, program, folder, requests):
    server = Running(name, program, ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/out.{requests}"])
    ask(server.port, requests)
    server.end()
    return int(re.search(r"(?m)^(?:summary|totals): (\d+)", pathlib.Path(f"{folder}/out.{requests}").read_text())[1])


def system_calls(name, program, folder, requests):
    """Returns {system call: count}."""
    server = Running(name, program, ["strace", "-f", "-c", "-o", f"{folder}/calls"])
    ask(server.port, requests)
    for child in pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split():
        os.kill(int(child), signal.SIGTERM)
    server.process.wait(PATIENCE)
    rows = re.findall(r"(?m)^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", pathlib.Path(f"{folder}/calls").read_text())
    return {call: int(n) for n, call in rows if call != "total"}


def compare_counts(programs):
    few, many = 200, 1200
    print(f"{'one connection':<22}{'instructions':>14}   system calls per request")
    for name, program in programs.items():
        with tempfile.TemporaryDirectory() as folder:
            cost = (instructions(name, program, folder, many) - instructions(name, program, folder, few)) / (many - few)
            calls = system_calls(name, program, folder, many)
        usual = {call: round(n / many, 1) for call, n in calls.items() if n / many > 0.05}
        print(f"{name:<22}{cost:14.0f}   {', '.join(f'{n:g} {call}' for call, n in sorted(usual.items()))}")


def show_cycles():
    program = BUILD / "cycles"
    output("cc", "-O2", "-o", program, HERE / "libraries" / "cycles.c", *flags_of("monkey"))
    wall, cpu, grown = output(program, "10000").split()
    print(f"10,000 servers started and stopped: {wall} s, {cpu} s of CPU time; the program grew by {grown} KB")
    own, all_of_it = output(program, "idle").split()
    print(f"An idle server adds {own} KB to a program, and {all_of_it} KB including mapped files other than libc.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", "--rounds", type=int, default=7)
    parser.add_argument("-d", "--duration", type=int, default=2, help="seconds per round")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SERVERS))
    options = parser.parse_args()
    if not (RELEASE / "libmonkey.so").exists():
        sys.exit("libraries.py: build/release/libmonkey.so is missing; build it with cmake --build --preset release --target lib")
    if not shutil.which("wrk"):
        sys.exit("libraries.py: needs wrk")
    BUILD.mkdir(parents=True, exist_ok=True)
    wanted = {"floor", *options.names} if options.names else set(SERVERS)
    built = {name: build(name) for name in SERVERS if name in wanted}
    for name in [name for name, program in built.items() if not program]:
        print(f"{name}: skipped, because {' or '.join(SERVERS[name][2])} is missing")
    programs = {name: program for name, program in built.items() if program}
    if options.count:
        compare_counts(programs)
    else:
        compare_times(programs, options.rounds, options.duration)
    show_cycles()


if __name__ == "__main__":
    main()
