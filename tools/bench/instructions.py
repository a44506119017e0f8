#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the user-space instructions of one keep-alive request, with callgrind.

    instructions.py PROGRAM [--check FILE] [--write FILE] [--profile]

The server runs twice under valgrind, once for a few requests and once for many; the difference, divided by the
difference of their numbers, is what one request costs, free of start and end. The same program and the same request
give the same figure, however busy the machine is.

--check compares with the figure that FILE holds and fails when it grew by more than a tenth; --write puts it there.
--profile shows where they went.
"""
import argparse
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

FEW, MANY = 200, 1200
REQUEST = b"GET /100.html HTTP/1.1\r\nHost: 127.0.0.1:2001\r\n\r\n"


def read_answer(sock, size):
    got = 0
    while got < size:
        piece = sock.recv(size - got)
        if not piece:
            sys.exit("instructions.py: the server closed the connection")
        got += len(piece)


def first_answer(sock):
    """Reads one whole answer and tells how long it is."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(65536)
    head, rest = data.split(b"\r\n\r\n", 1)
    if not head.startswith(b"HTTP/1.1 200 "):
        sys.exit(f"instructions.py: {head.splitlines()[0]!r} in place of a file")
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    read_answer(sock, length - len(rest))
    return len(head) + 4 + length


def ask(port, requests):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(REQUEST)
        size = first_answer(sock)
        for _ in range(requests - 1):
            sock.sendall(REQUEST)
            read_answer(sock, size)


def run(program, folder, requests):
    """One server under callgrind; its output file for the worker, which is the one that spent most."""
    out = pathlib.Path(folder, f"callgrind.{requests}")
    conf = pathlib.Path(folder, "bench.conf")
    conf.write_text(
        "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n    MaxKeepAliveRequest unlimited\n"
        "    FileCacheTime 1h\n    LogLevel error\n"
        f"[HOST]\n    DocumentRoot {folder}/www\n"
    )
    command = ["valgrind", "-q", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={out}.%p"]
    server = subprocess.Popen([*command, program, "-c", str(conf)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = None
    for line in server.stdout:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        if found:
            port = int(found[1])
            break
    if port is None:
        sys.exit("instructions.py: the server did not start")
    ask(port, requests)
    server.send_signal(signal.SIGQUIT)
    server.wait(timeout=60)
    totals = {f: int(re.search(r"(?m)^(?:summary|totals): (\d+)", f.read_text())[1]) for f in out.parent.glob(out.name + ".*")}
    # The master forks the worker, which inherits its count so far: the worker is the child, with the larger pid.
    worker = max(totals, key=lambda f: int(f.name.rsplit(".", 1)[1]))
    return totals[worker], worker


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--check", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/www")
        pathlib.Path(folder, "www", "100.html").write_text("x" * 100)
        few, _ = run(program, folder, FEW)
        many, profile = run(program, folder, MANY)
        cost = round((many - few) / (MANY - FEW))
        print(f"{cost} instructions for one keep-alive request of a 100-byte file")
        if options.profile:
            subprocess.run(["callgrind_annotate", str(profile)], check=True)
    if options.write:
        options.write.write_text(f"{cost}\n")
    if options.check:
        recorded = int(options.check.read_text())
        print(f"{recorded} recorded in {options.check}")
        if cost > recorded * 1.1:
            sys.exit("that is more than a tenth above what was recorded: find out why, or record the new figure (--write)")


if __name__ == "__main__":
    main()
