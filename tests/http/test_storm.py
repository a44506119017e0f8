# SPDX-License-Identifier: Apache-2.0
"""Clients of every temper at once: whoever behaves is served all the same, and nothing is left of the others."""
import gzip
import os
import random
import shutil
import socket
import threading
import time

import pytest

from client import Client
from monkey import ROOT
from wire.cases import read_cases

RELEASE = ROOT / "build" / "release" / "monkey"
RESET = b"\1\0\0\0\0\0\0\0"


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


def reset(c):
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    c.close()


def behave(server, content, rng):
    with server.connect() as c:
        names = [rng.choice(list(content)) for _ in range(rng.randrange(1, 6))]
        for name in names:
            c.ask(name)
        for name in names:
            reply = c.read("GET")
            assert (reply.status, reply.body) == (200, content[name])


def go_early(server, content, rng):
    c = server.connect(receive_buffer=rng.choice([None, 4096]))
    for _ in range(rng.randrange(1, 4)):
        c.ask(rng.choice(list(content)))
    try:
        c.read_exactly(rng.randrange(1, 2000))
    except AssertionError:
        pass
    (reset if rng.random() < 0.5 else Client.close)(c)


def talk_nonsense(server, _, rng):
    case = rng.choice(CASES)
    data = bytearray(case.data)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(data) + 1)
        data[at:at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
    c = server.connect()
    try:
        c.send(bytes(data[:4000]))
        if rng.random() < 0.5:
            c.shut().read_to_end()
    except OSError:
        pass
    (reset if rng.random() < 0.3 else Client.close)(c)


def upload(server, _, rng):
    c = server.connect()
    size = rng.choice([10, 60_000, 200_000, 5_000_000])
    try:
        c.ask("/10.bin", rng.choice(["POST", "PUT", "GET"]), {"Content-Length": str(size)})
        c.send(b"x" * rng.randrange(size))
        assert c.read().status in (200, 405, 413)
    except OSError:
        pass
    (reset if rng.random() < 0.3 else Client.close)(c)


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


KINDS = [behave, behave, go_early, talk_nonsense, upload, ask_for_parts]
CASES = list(read_cases())


def storm(server, content, seed, rounds):
    """Errors of one thread."""
    rng = random.Random(seed)
    for i in range(rounds):
        kind = rng.choice(KINDS)
        try:
            kind(server, content, rng)
        except Exception as error:  # of whatever kind: it is for the main thread to see
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


def test_a_storm_leaves_nothing_behind(monkey, site, content):
    server = monkey(workers=2, server="LingerTimeout 200ms\nKeepAliveTimeout 1\nTimeout 1\nFileCacheTime 10ms")
    quiet = sockets_of(server)
    run(server, content, threads=6, rounds=60)
    deadline = time.monotonic() + 20
    while sockets_of(server) > quiet and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sockets_of(server) == quiet, "connections are still open"
    behave(server, content, random.Random(0))


@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind here")
@pytest.mark.skipif(not RELEASE.exists(), reason=f"{RELEASE} is not built")
def test_a_storm_under_valgrind(monkey, site, content):
    """The optimised program, leaks of workers included; without openat2 and Landlock, which valgrind does not know."""
    server = monkey(program=RELEASE, server="LingerTimeout 200ms", wrapper=[
        "valgrind", "-q", "--leak-check=full", "--errors-for-leak-kinds=definite,possible", "--error-exitcode=99"])
    run(server, content, threads=3, rounds=25)
    behave(server, content, random.Random(0))
