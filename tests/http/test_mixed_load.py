# SPDX-License-Identifier: Apache-2.0
"""Clients of every kind at once: the server serves well-behaved clients, and keeps no connection or memory of hostile ones."""
import gzip
import os
import random
import shutil
import socket
import threading
import time

import pytest

import h2frames
from monkey import ROOT
from sockets import reset
from wire.cases import read_cases

RELEASE = ROOT / "build" / "release" / "monkey"


@pytest.fixture
def content(site):
    rng = random.Random(5)
    files = {f"/{size}.bin": rng.randbytes(size) for size in (0, 10, 3000, 8192, 50_000, 400_000)}
    for name, data in files.items():
        site.add(name[1:], data)
    site.add("page.html", b"page " * 1000)
    site.add("page.html.gz", gzip.compress(b"page " * 1000))
    site.add("folder/index.html", "index")
    return files


def disconnect(c, rng, resets):
    (reset(c.sock) if rng.random() < resets else c.close())


def behave_well(server, content, rng):
    with server.connect() as c:
        names = [rng.choice(list(content)) for _ in range(rng.randrange(1, 6))]
        for name in names:
            c.ask(name)
        for name in names:
            reply = c.read("GET")
            assert (reply.status, reply.body) == (200, content[name])


def disconnect_early(server, content, rng):
    c = server.connect(receive_buffer=rng.choice([None, 4096]))
    for _ in range(rng.randrange(1, 4)):
        c.ask(rng.choice(list(content)))
    try:
        c.read_head()
        c.read_exactly(rng.randrange(1, 2000))
    except AssertionError:
        pass
    disconnect(c, rng, 0.5)


def some_frames(rng):
    """A valid HTTP/2 preface, then random frames."""
    out = h2frames.PREFACE + h2frames.settings() + h2frames.headers(1, h2frames.block_of(h2frames.request("/10.bin")))
    for _ in range(rng.randrange(1, 20)):
        size = rng.choice([0, 1, 4, 5, 6, 8, 9, 100])
        out += h2frames.frame(rng.randrange(11), rng.choice([0, 1, 4, 5, 8, 0x20, 0xff]), rng.choice([0, 0, 1, 1, 2, 3, 5, 99]),
                              rng.randbytes(size))
    return out


def send_garbage(server, _, rng):
    data = bytearray(some_frames(rng) if server.is_h2 else rng.choice(CASES).data)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(data) + 1)
        data[at:at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
    c = server.connect(**({"hello": False} if server.is_h2 else {}))
    try:
        c.sock.sendall(bytes(data[:4000]))
        if rng.random() < 0.5:
            c.sock.shutdown(socket.SHUT_WR)
            while c.sock.recv(1 << 16):
                pass
    except OSError:
        pass
    disconnect(c, rng, 0.3)


def upload(server, _, rng):
    c = server.connect()
    size = rng.choice([10, 60_000, 200_000, 5_000_000])
    try:
        c.ask("/10.bin", rng.choice(["POST", "PUT", "GET"]), {"Content-Length": str(size)})
        c.more(b"x" * rng.randrange(size))
        assert c.read().status in (200, 405, 413)
    except OSError:
        pass
    disconnect(c, rng, 0.3)


def ask_for_parts(server, content, rng):
    name = rng.choice(["/50000.bin", "/400000.bin", "/3000.bin"])
    data = content[name]
    with server.connect() as c:
        for _ in range(3):
            first = rng.randrange(len(data))
            last = rng.randrange(first, len(data))
            reply = c.get(name, fields={"Range": f"bytes={first}-{last}"})
            assert (reply.status, reply.body) == (206, data[first:last + 1])
            reply = c.get(name, fields={"Range": f"bytes={first}-{last},-1,0-0"})
            assert reply.status == 206
            assert c.get(name, fields={"If-None-Match": reply["ETag"]}).status == 304
        assert c.get("/page.html", fields={"Accept-Encoding": "gzip"})["Content-Encoding"] == "gzip"
        assert c.get("/folder").status == 301 and c.get("/folder/").text == "index" and c.get("/none").status == 404


KINDS = [behave_well, behave_well, disconnect_early, send_garbage, upload, ask_for_parts]
CASES = list(read_cases())


def storm(server, content, seed, rounds):
    """Runs random clients, one after another; an error is reported with the seed that reproduces it."""
    rng = random.Random(seed)
    for i in range(rounds):
        kind = rng.choice(KINDS)
        try:
            kind(server, content, rng)
        except Exception as error:  # any exception: the main thread reports it
            raise AssertionError(f"seed {seed}, round {i}, {kind.__name__}: {error!r}") from error


def run(server, content, threads, rounds):
    problems = []

    def body(seed):
        try:
            storm(server, content, seed, rounds)
        except AssertionError as error:
            problems.append(str(error))

    crew = [threading.Thread(target=body, args=(seed,)) for seed in range(threads)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert not problems, "\n".join(problems)


def sockets_of(server):
    count = 0
    for pid in server.workers:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                count += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
            except FileNotFoundError:
                pass
    return count


def test_storm_of_clients_leaves_no_connections(monkey, site, content):
    server = monkey(workers=2, server="LingerTimeout 200ms\nKeepAliveTimeout 1\nTimeout 1\nOpenFileCacheTTL 10ms")
    quiet = sockets_of(server)
    run(server, content, threads=6, rounds=60)
    deadline = time.monotonic() + 20
    while sockets_of(server) > quiet and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sockets_of(server) == quiet, "connections are still open"
    behave_well(server, content, random.Random(0))


@pytest.mark.over("h1", "h2-tls", why="valgrind is slow")
@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind here")
@pytest.mark.skipif(not RELEASE.exists(), reason=f"{RELEASE} is not built")
def test_storm_of_clients_leaks_no_memory_under_valgrind(monkey, site, content):
    """Uses the release program with leak checks in workers, but without openat2 and Landlock, which valgrind does not support."""
    server = monkey(program=RELEASE, server="LingerTimeout 200ms", wrapper=[
        "valgrind", "-q", "--leak-check=full", "--errors-for-leak-kinds=definite,possible", "--error-exitcode=99"])
    run(server, content, threads=3, rounds=25)
    behave_well(server, content, random.Random(0))
