# SPDX-License-Identifier: Apache-2.0
"""The release program under failing allocations, and with sockets that transfer few bytes at a time."""
import contextlib
import json
import os
import random
import signal
import socket
import ssl
import subprocess

import pytest

from client import Closed
from fault_injection import Fault
from load import Load
from monkey import ENVIRONMENT
from proc import wait_until


@pytest.fixture
def folder(site):
    site.add("index.html", "hello")
    site.add("page", b"p" * 8000)
    site.add("page.gz", b"z" * 2000)
    site.add("big", bytes(range(256)) * 4096)
    site.add("404.html", "nothing")
    site.add("sub/x", "x")
    return site


# Failing allocations

SECTIONS = "[ERROR_PAGES]\n    404 404.html\n[ROUTES]\n    /old redirect 301 http://x/\n    /* static\n"

REQUESTS = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /page HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n",
            b"GET /big HTTP/1.1\r\nHost: x\r\nRange: bytes=1-3\r\n\r\n",
            b"GET /big HTTP/1.1\r\nHost: x\r\nRange: bytes=1-3,9-12\r\n\r\n",
            b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /sub HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /old?q HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST /%70age HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /big HTTP/1.0\r\n\r\n"]


def end(c):
    """Half-closes the connection, unless it has closed already."""
    with contextlib.suppress(OSError):
        c.sock.shutdown(socket.SHUT_WR)


STATUSES = (200, 206, 301, 404, 405, 411, 503)


def play(server):
    """Exercises all code that allocates. Returns the number of requests that were refused or whose connection closed; any other
    incomplete response is an error."""
    return play_http2(server) if server.is_h2 else play_http1(server)


def play_http1(server):
    refused = 0
    for data in REQUESTS + [b"".join(REQUESTS[:-1])]:
        try:
            with server.connect() as c:
                c.send(data[:20])  # the server has to store a part of the head
                end(c.send(data[20:]))
                while c.got or c.fill():
                    status = c.read("GET").status
                    assert status in STATUSES, status
                    refused += status == 503
        except (Closed, ConnectionError, ssl.SSLError):
            refused += 1
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        with server.connect(receive_buffer=4096) as c:  # the reader is slow, so the server has to store the rest
            end(c.send(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n" * 60))
            c.read_to_end()
    return refused


def play_http2(server):
    wishes = [("/", {}), ("/page", {"Accept-Encoding": "gzip"}), ("/big", {"Range": "bytes=1-3"}), ("/sub", {}),
              ("/big", {"Range": "bytes=1-3,9-12"}), ("/none", {"x" * 20: "y" * 300}), ("/old?q", {}), ("/big", {})]
    refused = 0
    try:
        with server.connect(receive_buffer=4096) as c:
            streams = [c.ask(target, fields=fields).stream for target, fields in wishes]
            streams.append(c.ask("/%70age", "POST", streamed=True).more(b"abc").done().stream)
            for stream in streams:
                try:
                    status = c.read(stream=stream).status
                    assert status in STATUSES, status
                    refused += status == 503
                except Closed as error:
                    assert error.code != "PROTOCOL_ERROR"
                    refused += 1
    except (Closed, ConnectionError, ssl.SSLError):
        refused += 1
    return refused


# Reduces the reuse of memory between requests, so that each request allocates
MANY_ALLOCATIONS = "MinRate off\nOpenFileCache off\nInlineFileMax 9K\nMaxConnectionsPerAddress 100\nKeepAliveRequests unlimited\nAccessLog access.log"


@pytest.fixture
def starving(monkey, folder, tmp_path):
    fault = Fault("failmalloc", tmp_path)
    server = monkey(server=MANY_ALLOCATIONS, sections=SECTIONS, **fault.how)
    return server, fault


@pytest.mark.over("h1", "h2", why="what of OpenSSL was set up without memory stays without it")
def test_worker_survives_failure_of_any_allocation(starving):
    """Makes the first allocation of a request fail, then the second one, and so on, up to the last one."""
    server, fault = starving
    worker = server.workers
    play(server)
    for n in range(1, 2000):
        fault.failed, fault.count, fault.after = 0, 1, n
        play(server)
        if not fault.failed:
            break
        fault.after = 0
        assert server.get("/").text == "hello", f"after allocation {n} failed"
        assert server.workers == worker, f"allocation {n} killed a worker:\n{server.log}"
    assert 10 < n < 2000
    fault.after = 0
    assert play(server) == 0


@pytest.mark.over("h1", "h2", why="what of OpenSSL was set up without memory stays without it")
def test_worker_survives_failure_of_any_allocation_of_a_new_connection(starving):
    """All previous connections stay open, so their memory cannot be reused."""
    server, fault = starving
    worker, refused = server.workers, 0
    with contextlib.ExitStack() as crowd:
        for n in range(1, 100):
            fault.failed, fault.count, fault.after = 0, 1, n
            try:
                c = crowd.enter_context(server.connect(receive_buffer=4096))
                status = c.ask("/big").read_head().status
                assert status in (200, 503)
                refused += status == 503
            except (Closed, ConnectionError, ssl.SSLError):
                refused += 1
            fault.after = 0
            if not fault.failed:
                break
        assert 3 < n < 100 and refused >= 3
        assert server.get("/").text == "hello"
    assert server.workers == worker
    assert play(server) == 0


@pytest.mark.over("h1", "h2", why="what of OpenSSL was set up without memory stays without it")
@pytest.mark.parametrize("count", [2, 10, 100])
def test_worker_survives_several_failures_in_a_row(starving, count):
    server, fault = starving
    worker = server.workers
    for n in range(1, 200, 7):
        fault.count, fault.after = count, n
        play(server)
    fault.after = 0
    assert server.get("/").text == "hello" and server.workers == worker
    assert play(server) == 0


@pytest.mark.over("h1", "h2", why="what of OpenSSL was set up without memory stays without it")
def test_worker_without_any_memory_refuses_clients(starving):
    server, fault = starving
    worker = server.workers
    play(server)
    with server.connect() as waiting:
        assert waiting.get("/").text == "hello"
        fault.count, fault.after = 1 << 40, 1
        assert play(server) > 0
        with contextlib.suppress(Closed, ConnectionError, ssl.SSLError):
            assert waiting.get("/none").status in (404, 503)
        fault.after = 0
    assert server.workers == worker
    assert play(server) == 0


def test_master_without_memory_reloads_or_keeps_old_configuration(monkey, folder, tmp_path):
    fault = Fault("failmalloc", tmp_path)
    fault.master = 1
    server = monkey(sections=SECTIONS, server="AccessLog access.log", **fault.how)
    server.allow("exited unexpectedly")
    for n in (*range(1, 60), *range(60, 600, 23)):
        fault.failed, fault.count, fault.after = 0, 1, n
        done = server.err.text.count("configuration serves") + server.err.text.count("keeping the old one")
        server.tell(signal.SIGHUP)
        wait_until(lambda: server.err.text.count("configuration serves") + server.err.text.count("keeping the old one") > done,
                   f"the end of the reload in which allocation {n} failed")
        fault.after = 0
        assert server.get("/").text == "hello", n
    assert "keeping the old one" in server.err.text and "configuration serves" in server.err.text
    assert server.process.poll() is None


@pytest.mark.parametrize("arguments", [["-t"], ["-T"], ["explain", "GET", "/page"]], ids=lambda arguments: arguments[0])
def test_command_line_reports_out_of_memory(folder, tmp_path, arguments):
    fault = Fault("failmalloc", tmp_path)
    (tmp_path / "c").write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[HOST]\n    DocumentRoot site\n{SECTIONS}")
    codes = set()
    for n in range(1, 3000):
        fault.master, fault.failed, fault.count, fault.after = 1, 0, 1, n
        done = subprocess.run([fault.how["program"], "-c", "c", *arguments], cwd=tmp_path, capture_output=True, timeout=30,
                              env=os.environ | ENVIRONMENT | fault.environment)
        if not fault.failed:
            break
        assert done.returncode in (0, 1), f"allocation {n}: {done}"
        assert done.returncode == 0 or done.stderr or done.stdout, f"allocation {n} failed without a message: {done}"
        codes.add(done.returncode)
    assert done.returncode == 0 and n < 3000 and 1 in codes


# Short reads and writes

def content(n):
    return random.Random(n).randbytes(n)


@pytest.fixture(params=[(100, 1000), (300, 100), (600, 7), (950, 1)], ids=lambda param: f"{param[0]}-{param[1]}")
def stuttering(request, monkey, folder, tmp_path):
    """Starts a server whose sockets transfer at most `most` bytes per call, in `chance` of a thousand calls."""
    fault = Fault("shortio", tmp_path)
    fault.state = 12345
    for n in (0, 1, 100, 5000, 100_000, 300_000):
        folder.add(f"file-{n}", content(n))
    server = monkey(server="MinRate off\nKeepAliveRequests unlimited\nAccessLog access.log\nAccessLogFormat json",
                    workers=1, **fault.how)
    fault.chance, fault.most = request.param
    wait_until(lambda: server.get("/").text == "hello" and fault.short and fault.again and fault.interrupted, "disturbance")
    return server, fault


def test_short_io_files_arrive_complete(stuttering):
    server, fault = stuttering
    sizes = (0, 1, 100, 5000, 100_000) if fault.most < 100 else (0, 1, 100, 5000, 100_000, 300_000)
    with server.connect() as kept:
        for n in sizes:
            if fault.most == 1 and n > 5000:
                continue
            for c in (kept, server.connect()):
                reply = c.get(f"/file-{n}")
                assert reply.status == 200 and reply.body == content(n), n
            c.close()


def test_short_io_ranges_arrive_complete(stuttering):
    server, _ = stuttering
    data, dice = content(100_000), random.Random(1)
    for _ in range(10):
        first = dice.randrange(len(data))
        last = min(len(data) - 1, first + dice.randrange(3000))
        reply = server.get("/file-100000", fields=[("Range", f"bytes={first}-{last}")])
        assert reply.status == 206 and reply.body == data[first:last + 1]
    reply = server.get("/file-100000", fields=[("Range", "bytes=0-9,5000-5999")])
    assert reply.status == 206 and data[5000:6000] in reply.body


@pytest.mark.http1
def test_short_io_pipelines_arrive_complete_and_in_order(stuttering):
    server, _ = stuttering
    names = [0, 1, 100, 5000, 1, 100] * 5
    with server.connect() as c:
        c.send(b"".join(f"GET /file-{n} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for n in names))
        for n in names:
            assert c.read("GET").body == content(n)


@pytest.mark.http1
def test_short_io_unwanted_bodies_are_skipped(stuttering):
    """Between two requests, the server discards an unread body, with Content-Length or in chunks."""
    server, _ = stuttering
    with server.connect() as c:
        for _ in range(3):
            c.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\n\r\n" + b"GET /wrong HTTP/1.1\r\n" * 142 + b"x" * 18)
            c.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"5;x=y\r\nabcde\r\n" * 100 + b"0\r\n\r\n")
            c.send(b"GET /file-100 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert [c.read("POST").status for _ in range(2)] == [405, 405]
            assert c.read("GET").body == content(100)


@pytest.mark.http1
def test_short_io_error_responses_arrive_complete(stuttering):
    server, _ = stuttering
    for data, status in ((b"nonsense\r\n\r\n", 400), (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n", 414),
                         (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431)):
        with server.connect() as c:
            reply = c.send(data).read()
            assert reply.status == status and reply.body.rstrip().endswith(b"</html>")
            c.shut().expect_end()


def test_short_io_concurrent_requests_succeed(stuttering):
    server, fault = stuttering
    n = 1 if fault.most == 1 else 5000
    with Load(server, f"/file-{n}", content=content(n), keeping=4, single=4) as load:
        load.more(10).check()


def test_short_io_requests_have_one_log_record_each(stuttering, tmp_path):
    server, _ = stuttering
    for _ in range(20):
        server.get("/file-100", fields=[] if server.is_h2 else [("Connection", "close")])
    server.stop()
    records = [json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines()][-20:]
    assert [(record["status"], record["bytes"], record["outcome"]) for record in records] == [(200, 100, "ok")] * 20


def test_short_io_reload_and_drain_lose_no_request(stuttering):
    server, fault = stuttering
    n = 100 if fault.most == 1 else 5000
    with Load(server, f"/file-{n}", content=content(n)) as load:
        for round_ in range(2):
            load.more(3)
            server.tell(signal.SIGHUP)
            server.err.wait_for("the new configuration serves", count=round_ + 1)
        load.more(3).check()
