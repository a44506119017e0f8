#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long new requests wait when a Duda handler crashes, and how many requests are lost.

    crash.py [-n CRASHES] [-l PROCESSES] [-s SECONDS]

Runs build/release/monkey with two workers and a service. PROCESSES clients send requests continuously, each on a new connection.
Every SECONDS one request crashes its worker. As soon as its connection breaks, 16 new connections send requests: about half of
them are in the accept queue of the crashed worker. The script prints the time until the last response, and until the first
response of the new worker. If workers repeatedly crash within their first second, the master delays the restart, so keep SECONDS
above 1.
"""
import argparse
import multiprocessing
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONKEY = ROOT / "build" / "release" / "monkey"
PATIENCE = 20
NEW = 16
SERVICE = r"""
#include <duda.h>
#include <stdlib.h>
#include <unistd.h>

static int who(struct duda_ctx *d)
{
    return duda_printf(d, "%d", (int)getpid());
}

static int crash(struct duda_ctx *d)
{
    (void)d;
    abort();
}

DUDA_SERVICE(fragile, DUDA_GET("/who", who, "Says which process it is."), DUDA_GET("/crash", crash, "Crashes."));
"""
CONFIGURATION = """[SERVER]
    Listen 127.0.0.1:0
    Workers 2
[PLUGINS]
    Load {folder}/monkey-fragile.so
[DUDA]
    CrashLimit off
[HOST]
    DocumentRoot {folder}
"""


def ask(address, path):
    s = socket.create_connection(address, PATIENCE)
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    return s


def read_body(s):
    """Returns the response body; empty if the server broke the connection."""
    got = b""
    try:
        while piece := s.recv(4096):
            got += piece
    except ConnectionError:
        pass
    s.close()
    return got.rpartition(b"\r\n\r\n")[2].decode()


def load(address, counters):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while not counters[2]:
        try:
            counters[0 if read_body(ask(address, "/who")).isdigit() else 1] += 1
        except OSError:
            counters[1] += 1


def crash_once(address, known):
    """Returns the seconds from the crash to the last response, and to the first response of the new worker (None if the new
    worker served none of the connections)."""
    read_body(ask(address, "/crash"))
    began = time.perf_counter()
    first = None
    for s in [ask(address, "/who") for _ in range(NEW)]:
        who = read_body(s)
        if not who.isdigit():
            sys.exit("a new request was lost")
        if who not in known and first is None:
            first = time.perf_counter() - began
        known.add(who)
    return time.perf_counter() - began, first


def start(folder):
    source = folder / "fragile.c"
    source.write_text(SERVICE)
    subprocess.run([MONKEY, "build", source.name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (folder / "monkey.conf").write_text(CONFIGURATION.format(folder=folder))
    server = subprocess.Popen([MONKEY, "-c", folder / "monkey.conf"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in server.stdout:
        if found := re.match(r"  http://([\d.]+):(\d+)", line):
            return server, (found[1], int(found[2]))
    sys.exit("the server did not start")


def measure(address, crashes, seconds):
    known, all_new, first_new = set(), [], []
    for _ in range(crashes):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            known.add(read_body(ask(address, "/who")))
            time.sleep(.05)
        last, first = crash_once(address, known)
        all_new.append(1000 * last)
        if first is not None:
            first_new.append(1000 * first)
    return all_new, first_new


def say(what, times):
    print(f"{what}: median {statistics.median(times):.1f} ms, longest {max(times):.1f} ms, of {len(times)}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("-n", type=int, default=10)
    options.add_argument("-l", type=int, default=2)
    options.add_argument("-s", type=float, default=1.5)
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        server, address = start(pathlib.Path(folder))
        counters = [multiprocessing.Array("l", 3) for _ in range(options.l)]
        askers = [multiprocessing.Process(target=load, args=(address, c)) for c in counters]
        try:
            for asker in askers:
                asker.start()
            all_new, first_new = measure(address, options.n, options.s)
        finally:
            for c in counters:
                c[2] = 1
            for asker in askers:
                asker.join()
            server.terminate()
            server.wait(PATIENCE)
    say(f"{NEW} requests sent at the moment of a crash got a response after", all_new)
    say("the first of them by the new worker after", first_new)
    print(f"under load, {sum(c[0] for c in counters)} requests got a response, {sum(c[1] for c in counters)} were lost")


if __name__ == "__main__":
    main()
