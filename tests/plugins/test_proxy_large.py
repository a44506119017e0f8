# SPDX-License-Identifier: Apache-2.0
"""Large backend responses share a worker's buffers: the data of one response never becomes part of another, whatever fails."""
import contextlib
import gzip
import socket
import struct

import pytest

from backend import Backend, response
from upstream_group import group
from client import Closed
from numbered_backend import content
from numbered_clients import Clients, NumberedServer
from proc import RELEASE, memory_kb, wait_until

LARGE = (70_000, 300_000, 1_500_000)


def start(monkey, *servers, options="", plugins=(), sections="", **how):
    return monkey(plugins=["proxy", *plugins], top=group(*servers), sections=f"{sections}[ROUTES]\n    /* proxy http://group {options}\n",
                  **how)


def numbered_reply(request):
    """The path contains a number and the size of the body."""
    number, size = map(int, request.target.split("?")[0].strip("/").split("/"))
    return response(content(number, size))


@pytest.mark.parametrize("how", ["kill", "stop", "close"])
def test_proxy_large_responses_survive_backend_faults(monkey, tmp_path, how):
    """The clients send requests continuously, and disconnect at times."""
    patience = "response_timeout=150ms read_timeout=150ms" if how == "stop" else ""
    with NumberedServer(tmp_path) as back, \
            Clients(start(monkey, back, options=patience), protocols=("h1", "h1", "h1", "h2"), methods=["GET"], sizes=LARGE,
                    hows=["length"]) as clients:
        for phase in ("body", "body", "reuse"):
            result = clients.ask(method="POST", upload=3000, size=300_000, fault=f"{how}-{phase}")
            assert result in (502, 504, "cut", *["ok"] * (phase == "reuse")), result
            if how == "kill":
                wait_until(back.has_ended, "its end") if phase == "body" else None
                back.restart()
            clients.more(1)
            if how == "stop":
                back.go_on()
            clients.more(3)
        wait_until(lambda: back.go_on() or clients.ask() == "ok", "a response")
        clients.check(502, "cut", *[504] * (how == "stop"))


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


@pytest.mark.parametrize("protocol", ["h1", "h1-tls", "h2"], indirect=True)
@pytest.mark.parametrize("how", ["less", "more", "reset", "another"])
def test_proxy_wrong_content_length_is_contained(monkey, protocol, how):
    body = content(7, 200_000)

    def script(connection):
        connection.recv(65536)
        sent = response(body)
        if how == "less":
            connection.sendall(sent[:-1])
        elif how == "reset":
            connection.sendall(sent[:100_000])
            reset(connection)
        else:
            connection.sendall(sent + (b"evil" * 20_000 if how == "more" else response(b"evil" * 50_000)))
            with contextlib.suppress(OSError):
                connection.recv(1)

    with Backend(script=script) as lying:
        server = start(monkey, lying)
        for _ in range(3):
            if how in ("more", "another"):
                assert server.get("/").body == body
                continue
            with contextlib.suppress(Closed):
                assert server.get("/").status == 502, "nothing of it was sent yet"
    with Backend(numbered_reply) as honest:
        server = start(monkey, honest)
        assert server.get("/9/300000").body == content(9, 300_000)


def test_proxy_connection_carries_mixed_responses(monkey):
    """Large and small responses alternate over one backend connection."""
    def reply(request):
        number, size = map(int, request.target.strip("/").split("/"))
        whole = content(number, size)
        if request.get("Range"):
            first, last = map(int, request.get("Range").removeprefix("bytes=").split("-"))
            return response(whole[first:last + 1], "206 Partial Content", [("Content-Range", f"bytes {first}-{last}/{size}")])
        if request.get("X-Chunked"):
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (size, whole)
        if request.get("If-None-Match"):
            return b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: %d\r\n\r\n" % size
        return response(whole)[:-size] if request.method == "HEAD" else response(whole)

    with Backend(reply) as backend:
        server = start(monkey, backend)
        with server.connect() as c:
            for i in range(12):
                size = LARGE[i % 3]
                whole = content(i, size)
                assert c.get(f"/{i}/{size}").body == whole
                assert c.get(f"/{i}/{size}", "HEAD")["Content-Length"] == str(size)
                assert c.get(f"/{i}/{size}", fields=[("If-None-Match", '"a"')]).status == 304
                part = c.get(f"/{i}/{size}", fields=[("Range", f"bytes=10-{size - 3}")])
                assert part.status == 206 and part.body == whole[10:size - 2] and part["Content-Range"] == f"bytes 10-{size - 3}/{size}"
                assert c.get(f"/{i}/{size}", fields=[("X-Chunked", "1")]).body == whole
                assert c.get(f"/{i}/50").body == content(i, 50)
            for i in range(6):  # pipelined
                c.ask(f"/{i}/{LARGE[i % 3]}")
            assert [c.read("GET").body for i in range(6)] == [content(i, LARGE[i % 3]) for i in range(6)]
        with server.connect() as old:
            old.ask("/5/300000", version="1.0")
            reply = old.read()
            assert reply.body == content(5, 300_000) and reply.closes
        assert backend.connections == 1


def test_proxy_large_responses_pass_filters(monkey):
    """Other plugins modify heads or bodies."""
    def reply(request):
        number, size = map(int, request.target.strip("/").split("/"))
        return response(content(number, size), fields=[("Content-Type", "text/plain" if number % 2 else "image/png")])

    with Backend(reply) as backend:
        server = start(monkey, backend, plugins=["compress", "headers"],
                       sections="[COMPRESS]\n[HEADERS]\n    Set X-More more\n")
        with server.connect() as c:
            for number in (1, 2, 3, 4):
                packed = c.get(f"/{number}/300000", fields=[("Accept-Encoding", "gzip")])
                assert packed.get("Content-Encoding") == ("gzip" if number % 2 else None)
                plain = gzip.decompress(packed.body) if number % 2 else packed.body
                assert plain == content(number, 300_000) and packed["X-More"] == "more"
                assert c.get(f"/{number}/300000").body == content(number, 300_000)


def test_proxy_clients_that_stall_or_leave_do_not_block_others(monkey):
    """Data that was read for a client that has disconnected is not sent to another client."""
    with Backend(numbered_reply) as backend:
        server = start(monkey, backend)
        with contextlib.ExitStack() as stack:
            lazy = [stack.enter_context(server.connect(receive_buffer=4096)) for _ in range(20)]
            for i, each in enumerate(lazy):
                each.ask(f"/{100 + i}/3000000")
                each.begin()
            for i in range(10):
                assert server.get(f"/{i}/300000").body == content(i, 300_000)
                lazy[i].close()
            for i, each in enumerate(lazy[10:], 110):
                assert each.read("GET").body == content(i, 3_000_000)
        assert server.get("/2/300000").body == content(2, 300_000)


def endless(request):
    """Sends as much data as the head announces."""
    size = int(request.target.strip("/"))
    yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    piece = bytes(1 << 17)
    for _ in range(size >> 17):
        yield piece


@pytest.mark.skipif(not RELEASE.exists(), reason="the optimized program is not built: sanitizers take memory of their own")
def test_proxy_memory_is_independent_of_body_size_and_stalled_clients(monkey):
    """The worker may grow by 1 MB for 200 MB of responses, and by 100 KB for each client."""
    readers = 20
    with Backend(endless) as backend, contextlib.ExitStack() as stack:
        server = start(monkey, backend, program=RELEASE)
        (worker,) = server.workers
        assert len(server.get(f"/{1 << 20}").body) == 1 << 20
        before = memory_kb(worker)
        with server.connect() as c:
            c.ask(f"/{200 << 20}").read_head()
            left = 200 << 20
            while left:
                left -= len(c.read_exactly(min(left, 1 << 20)))
        assert memory_kb(worker) - before < 1024
        before = memory_kb(worker)
        for _ in range(readers):
            each = stack.enter_context(server.connect(receive_buffer=4096))
            each.ask(f"/{200 << 20}").begin()
        wait_until(lambda: len(backend.requests) == readers + 2, "all requests are sent")
        assert server.get(f"/{1 << 20}").status == 200
        assert memory_kb(worker) - before < readers * 100
