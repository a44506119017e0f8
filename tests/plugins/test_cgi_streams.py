# SPDX-License-Identifier: Apache-2.0
"""Scripts that stream in both directions, disconnecting clients, concurrency, and resource usage."""
import hashlib
import os
import re
import select
import signal
import socket
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from cgi_scripts import PLAIN, PYTHON, SH, pipes_of, serve_scripts
from client import Closed
from proc import RELEASE, children, is_gone, memory_kb, pid_in, wait_until

MB = 1 << 20
COUNT = PLAIN + "exec wc -c\n"
CAT = PLAIN + "exec cat\n"


@pytest.fixture
def serve(monkey, site):
    return partial(serve_scripts, monkey, site, server="MaxBodySize unlimited")


def spawner_of(server):
    """Returns the PID of the only worker's spawner."""
    (worker,) = server.workers
    (spawner,) = wait_until(lambda: children(worker), "a spawner")
    return spawner


# Without buffering

def test_cgi_output_is_sent_at_once(serve, site):
    server = serve({"s": PLAIN + "for i in 1 2 3; do echo $i; while ! [ -e go$i ]; do sleep 0.01; done; done\n"})
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        assert c.read_head().status == 200
        for i in (1, 2, 3):
            assert c.read_until(b"\r\n").lstrip(b"0") == b"2"
            assert c.read_exactly(4) == b"%d\n\r\n" % i
            site.add(f"cgi-bin/go{i}")
        assert c.read_until(b"\r\n\r\n") == b"0"


def test_cgi_request_body_is_forwarded_at_once(serve):
    server = serve({"s": CAT}, "RequestBody stream")
    with server.connect() as c:
        c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n")
        for word in (b"one", b"two", b"three"):
            c.send(word)
            if word == b"one":
                assert c.read_head().status == 200
            assert c.read_until(b"\r\n").lstrip(b"0") == b"%x" % len(word)
            assert c.read_exactly(len(word) + 2) == word + b"\r\n"
        assert c.read_until(b"\r\n\r\n") == b"0"


def test_cgi_upload_may_arrive_byte_by_byte(serve):
    server = serve({"s": CAT})
    with server.connect() as c:
        c.send_slowly(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 300\r\n\r\n" + b"u" * 300)
        assert c.read("POST").body == b"u" * 300


def test_cgi_stalled_upload_times_out_and_ends_script(serve, site):
    server = serve({"s": SH + "echo $$ >pid\nexec wc -c\n"}, "RequestBody stream", server="MinRate 100\nMinRateInterval 1s")
    with server.connect() as c:
        c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 300\r\n\r\nonly this")
        assert c.read("POST").status == 408
    wait_until(lambda: is_gone(pid_in(site / "cgi-bin/pid")), "the script ends")


def test_cgi_read_timeout_excludes_slow_client(serve):
    server = serve({"s": CAT}, "RequestBody stream\nReadTimeout 300ms")
    with server.connect() as c:
        c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbegin")
        time.sleep(1)  # the test must wait for longer than ReadTimeout
        c.send(b"-end")
        assert c.read("POST").body == b"begin-end"


@pytest.mark.parametrize("protocol", ["h1", "h2"], indirect=True)
def test_cgi_read_timeout_excludes_client_that_does_not_read(monkey, site):
    """While the server's buffers are full because the client does not read, the server does not read from the script: this time
    must not count toward ReadTimeout."""
    script = PYTHON + ("import os, time\nprint('Content-Type: a/b\\n', flush=True)\n"
                       "for _ in range(750):\n    os.write(1, b'x' * 16000)\n    time.sleep(.0005)\n")
    server = serve_scripts(monkey, site, {"s": script}, "ReadTimeout 1s", server="HandlerTimeout 1s")
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        time.sleep(2)  # the test must wait for longer than ReadTimeout
        assert len(c.read().body) == 750 * 16000


def test_cgi_read_timeout_applies_to_script_that_never_reads(serve):
    server = serve({"s": SH + "exec sleep 1000\n"}, "RequestBody stream\nReadTimeout 300ms")
    with server.connect() as c:
        c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n")
        sender = threading.Thread(target=try_to, args=(c.sock.sendall, b"x" * 10_000_000))
        sender.start()
        assert c.read("POST").status == 504
        c.close()
        sender.join(20)


def try_to(function, *arguments):
    try:
        function(*arguments)
    except OSError:
        pass


# Large bodies

@pytest.mark.parametrize("size", [100_000, 20 * MB])
def test_cgi_large_body_is_echoed_intact(serve, size):
    server = serve({"s": CAT})
    data = os.urandom(MB)[:size] * max(1, size // MB)
    with server.connect() as c:
        c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(data))
        sender = threading.Thread(target=c.sock.sendall, args=(data,))
        sender.start()
        reply = c.read("POST")
        sender.join(timeout=20)
        assert hashlib.sha256(reply.body).digest() == hashlib.sha256(data).digest()
        assert c.get("/page.txt").text == "the page"


def test_cgi_large_output_does_not_block_other_clients(serve):
    server = serve({"s": PLAIN + "exec head -c 100000000 /dev/zero\n"})
    with server.connect() as c, server.connect() as other:
        c.ask("/cgi-bin/s")
        served = []
        reader = threading.Thread(target=lambda: served.append(len(c.read().body)))
        reader.start()
        for _ in range(50):
            assert other.get("/page.txt").text == "the page"
        reader.join(50)
        assert served == [100_000_000]


def test_cgi_backpressure_of_client_stops_script(serve, site):
    """The response fills all buffers on its way to the client, and then the script blocks."""
    script = PYTHON + "import os\nopen('pid', 'w').write('%d\\n' % os.getpid())\nos.write(1, b'X-A: b\\n\\n')\nn = 0\n" \
        "while n < 256 << 20:\n    n += os.write(1, b'x' * 65536)\n    open('written', 'w').write(str(n))\n"
    server = serve({"s": script})
    with server.connect(receive_buffer=8192) as c:
        c.ask("/cgi-bin/s")
        assert c.read_head().status == 200
        written = site / "cgi-bin/written"
        wait_until(lambda: written.exists() and written.read_text(), "the script writes")
        wait_until(lambda: is_blocked(pid_in(site / "cgi-bin/pid")), "the script blocks on its full pipe")
        assert int(written.read_text() or 0) < 16 * MB
        c.read_exactly(2 * MB)  # the script resumes as soon as the client reads


def is_blocked(pid):
    """Is the script asleep in 20 consecutive samples?"""
    seen = {Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for _ in range(20) if not time.sleep(0.01)}
    return seen == {"S"}


def test_cgi_backpressure_of_script_stops_client(serve):
    """If the script does not read its input, the server soon stops reading from the client."""
    server = serve({"s": SH + "exec sleep 1000\n"}, "RequestBody stream")
    with server.connect() as c:
        c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (256 * MB))
        c.sock.settimeout(0.5)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 256 * MB:
                sent += c.sock.send(b"e" * 65536)
        assert sent < 32 * MB


# Memory usage

def release(serve, scripts, keys=""):
    if not RELEASE.exists() or not (RELEASE.parent / "plugins/monkey-cgi.so").exists():
        pytest.skip("needs build/release/monkey and its plugins: sanitizers have a memory of their own")
    return serve(scripts, keys, program=RELEASE)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_cgi_upload_of_a_gigabyte_uses_no_memory(serve, coding):
    server = release(serve, {"s": COUNT}, "RequestBody stream")
    assert server.get("/cgi-bin/s", "POST", body=b"warm up").text.strip() == "7"
    size, piece = 1024 * MB, b"u" * MB
    head = b"Content-Length: %d" % size if coding == "length" else b"Transfer-Encoding: chunked"
    (worker,) = server.workers
    before, most = memory_kb(worker), 0
    with server.connect() as c:
        c.send(b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\n" + head + b"\r\n\r\n")
        for i in range(size // MB):
            c.sock.sendall(piece if coding == "length" else b"%x\r\n%s\r\n" % (len(piece), piece))
            if i % 64 == 0:
                most = max(most, memory_kb(worker) - before)
        if coding == "chunked":
            c.send(b"0\r\n\r\n")
        assert c.read("POST").text.strip() == str(size)
    assert most < 1024, f"{most} KB growth during an upload of {size // MB} MB"


@pytest.mark.timeout(120)
def test_cgi_output_of_a_gigabyte_uses_no_memory(serve):
    server = release(serve, {"s": PLAIN + "exec head -c 1073741824 /dev/zero\n"})
    assert server.get("/page.txt").status == 200
    (worker,) = server.workers
    before, most, got = memory_kb(worker), 0, 0
    with server.connect(receive_buffer=65536) as c:
        c.ask("/cgi-bin/s")
        assert c.read_head().status == 200
        for i in range(1 << 20):
            n = len(c.sock.recv(MB))
            got += n
            if i % 512 == 0:
                most = max(most, memory_kb(worker) - before)
            if got > 1024 * MB:
                break
    assert most < 1024, f"{most} KB growth while a gigabyte was sent"


# Clients that disconnect

def close(c):
    c.close()


def reset(c):
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    c.close()


@pytest.mark.parametrize("go", [close, reset])
@pytest.mark.parametrize("script,begin", [
    (SH + "echo $$ >pid\nexec sleep 1000\n", b"GET /cgi-bin/s HTTP/1.1\r\nHost: a\r\n\r\n"),
    (SH + "echo $$ >pid\nexec cat\n", b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"),
    (SH + "echo $$ >pid\nprintf 'X-A: b\\n\\nbegin'\nexec sleep 1000\n", b"GET /cgi-bin/s HTTP/1.1\r\nHost: a\r\n\r\n"),
    (SH + "echo $$ >pid\nprintf 'X-A: b\\n\\nbegin'\nexec cat /dev/zero\n", b"GET /cgi-bin/s HTTP/1.1\r\nHost: a\r\n\r\n"),
    (SH + "echo $$ >pid\nprintf 'X-A: b\\n\\nbegin'\nexec cat\n", b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc"),
    (SH + "echo $$ >pid\ntrap '' TERM PIPE\nwhile :; do sleep 0.02; done\n", b"GET /cgi-bin/s HTTP/1.1\r\nHost: a\r\n\r\n"),
], ids=["silent", "reads", "begun", "floods", "echoes", "stubborn"])
def test_cgi_script_ends_with_its_client(serve, site, script, begin, go):
    server = serve({"s": script}, "RequestBody stream")
    pid_file = site / "cgi-bin/pid"
    for _ in range(2):
        c = server.connect()
        c.send(begin)
        pid = pid_in(pid_file)
        go(c)
        wait_until(lambda pid=pid: is_gone(pid), "the script ends")
        pid_file.unlink()
    assert server.get("/page.txt").text == "the page"
    wait_until(lambda: pipes_of(server.workers[0]) == 0, "its pipes are closed")


def test_cgi_disconnect_is_noticed_with_next_output(serve, site):
    server = serve({"s": PLAIN + "echo $$ >pid\nwhile :; do echo still here; sleep 0.05; done\n"}, "CancelOnDisconnect off")
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        assert c.read_head().status == 200
        pid = pid_in(site / "cgi-bin/pid")
    wait_until(lambda: is_gone(pid), "the script ends")


def test_cgi_disconnects_at_any_moment_leave_nothing_behind(serve):
    server = serve({"s": PLAIN + "cat; echo more; sleep 0.05; echo end\n"}, "MaxProcesses 4\nMaxQueue 1000")
    request = b"POST /cgi-bin/s HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000
    for i in range(100):
        c = server.connect()
        c.send(request[:1 + i * i * 10])
        if i % 3 == 0:
            c.sock.settimeout(0.02 * (i % 5) + 0.001)
            try_to(c.sock.recv, 100)
        reset(c) if i % 2 else c.close()
    assert server.get("/cgi-bin/s", "POST", body=b"fine\n").text == "fine\nmore\nend\n"
    spawner = spawner_of(server)
    wait_until(lambda: pipes_of(server.workers[0]) == 0 and not children(spawner), "all pipes closed, and all scripts ended")


# Many requests

def test_cgi_requests_beyond_max_processes_wait(serve, site):
    script = PLAIN + "echo $$ >run.$$; while ! [ -e go ]; do sleep 0.02; done; rm run.$$; echo done\n"
    server = serve({"s": script}, "MaxProcesses 2\nMaxProcessesPerAddress 2\nMaxQueue 3")
    running = lambda: len(list((site / "cgi-bin").glob("run.*")))
    clients = [server.connect() for _ in range(5)]
    for i, c in enumerate(clients):
        c.ask("/cgi-bin/s")
        if i < 2:
            wait_until(lambda i=i: running() == i + 1, "a script runs")
    wait_until(lambda: server.get("/cgi-bin/s").status == 503, "the queue is full")
    reply = server.get("/cgi-bin/s")
    assert reply.status == 503 and int(reply["Retry-After"]) > 0
    assert running() == 2
    site.add("cgi-bin/go")
    for c in clients:
        assert c.read().text == "done\n"
        c.close()
    assert server.get("/cgi-bin/s").text == "done\n"


def test_cgi_queue_timeout_gets_503(serve, site):
    server = serve({"s": PLAIN + "touch begun; while ! [ -e go ]; do sleep 0.02; done; echo done\n"},
                   "MaxProcesses 1\nQueueTimeout 200ms")
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        wait_until((site / "cgi-bin/begun").exists, "the script runs")
        reply = server.get("/cgi-bin/s")
        assert reply.status == 503 and reply["Retry-After"]
        site.add("cgi-bin/go")
        assert c.read().text == "done\n"


def test_cgi_waiting_client_that_disconnects_leaves_queue(serve, site):
    server = serve({"s": PLAIN + "touch begun; while ! [ -e go ]; do sleep 0.02; done; echo done\n"}, "MaxProcesses 1\nMaxQueue 1")
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        wait_until((site / "cgi-bin/begun").exists, "the script runs")
        waiting = server.connect()
        waiting.ask("/cgi-bin/s")
        wait_until(lambda: server.get("/cgi-bin/s").status == 503, "the queue is full")
        reset(waiting)
        with wait_until(lambda: enqueue_client(server), "the queue has space again") as next_one:
            site.add("cgi-bin/go")
            assert c.read().text == next_one.read().text == "done\n"


def enqueue_client(server):
    """Returns a client that the server does not refuse at once, or None."""
    c = server.connect()
    c.ask("/cgi-bin/s")
    assert server.get("/page.txt").text == "the page"  # the only worker handles one request after another
    if not select.select([c.sock], [], [], 0)[0]:
        return c
    assert c.read().status == 503
    c.close()
    return None


def test_cgi_storm_of_requests_is_served_or_refused(serve):
    server = serve({"s": PLAIN + "cat; echo $QUERY_STRING\n"}, "MaxProcesses 3\nMaxQueue 5")
    counts, lock = {200: 0, 503: 0}, threading.Lock()

    def storm(number):
        with server.connect() as c:
            for i in range(25):
                reply = c.get(f"/cgi-bin/s?{number}.{i}", "POST", body=b"b" * 5000)
                assert reply.status == 503 or reply.body == b"b" * 5000 + b"%d.%d\n" % (number, i)
                with lock:
                    counts[reply.status] += 1

    failures = []
    threads = [threading.Thread(target=lambda number=number: collect_failure(failures, storm, number)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert not failures and sum(counts.values()) == 12 * 25 and counts[200] and counts[503], (failures, counts)
    assert server.get("/cgi-bin/s?a", "POST", body=b"x").text == "xa\n"
    wait_until(lambda: pipes_of(server.workers[0]) == 0, "its pipes are closed")


def collect_failure(failures, function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:  # any exception: the main thread reports it
        failures.append(error)


def test_cgi_limits_apply_per_section(monkey, site):
    site.add("cgi-bin/s", PLAIN + "touch begun; while ! [ -e go ]; do sleep 0.02; done\n", mode=0o755)
    site.add("cgi-bin/t", PLAIN + "echo fine\n", mode=0o755)
    server = monkey(plugins=["cgi"], root=None, sections="".join(
        f"[HOST]\n    ServerName {name}\n    DocumentRoot site\n[CGI]\n    MaxProcesses 1\n    MaxQueue 0\n[ROUTES]\n    /*  cgi\n"
        for name in "ab"))
    with server.connect() as c:
        c.ask("/cgi-bin/s", fields={"Host": "a"})
        wait_until((site / "cgi-bin/begun").exists, "the script runs")
        assert server.get("/cgi-bin/t", fields={"Host": "a"}).status == 503
        assert server.get("/cgi-bin/t", fields={"Host": "b"}).text == "fine\n"
        site.add("cgi-bin/go")
        assert c.read().status == 200


def test_cgi_descriptor_shortage_gets_503(serve):
    server = serve({"s": PLAIN + "cat; sleep 0.3; echo end\n"}, "MaxProcesses 100", server="FDLimit 64\nMaxConnections 40\nKeepAlive off")
    clients = [server.connect() for _ in range(30)]
    for c in clients:
        c.ask("/cgi-bin/s", "POST", body=b"x")
    statuses = {c.read().status for c in clients}
    assert statuses <= {200, 503} and 503 in statuses
    for c in clients:
        c.close()
    assert server.get("/cgi-bin/s", "POST", body=b"x").text == "xend\n"


# Shutdown and crashes

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_cgi_scripts_end_with_the_server(serve, site, number):
    server = serve({"s": SH + "trap '' TERM INT HUP\necho $$ >pid\nwhile :; do sleep 0.02; done\n"})
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        pid = pid_in(site / "cgi-bin/pid")
        server.stop(number)
    wait_until(lambda: is_gone(pid), "the script ends")


def test_cgi_scripts_end_with_a_crashed_worker(serve, site):
    server = serve({"s": SH + "echo $$ >pid\nexec sleep 1000\n"})
    server.allow(r"worker \d+ was killed by signal 9")
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        pid = pid_in(site / "cgi-bin/pid")
        os.kill(server.workers[0], signal.SIGKILL)
        wait_until(lambda: is_gone(pid), "the script ends")
    wait_until(lambda: answers(server), "another worker serves")


def test_cgi_spawner_death_ends_its_requests(serve, site):
    server = serve({"s": SH + "echo $$ >pid\nexec sleep 1000\n", "t": PLAIN + "echo fine\n"})
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        pid = pid_in(site / "cgi-bin/pid")
        os.kill(spawner_of(server), signal.SIGKILL)
        try:
            assert c.read().status in (502, 503)
        except (Closed, ConnectionResetError):
            pass
        wait_until(lambda: is_gone(pid), "the script ends")
    wait_until(lambda: answers(server), "another worker serves")


def answers(server):
    try:
        return server.get("/page.txt").status == 200
    except (OSError, AssertionError):
        return False


def test_cgi_works_with_two_workers(serve):
    server = serve({"s": PLAIN + "echo fine\n"}, workers=2)
    for _ in range(20):
        assert server.get("/cgi-bin/s").text == "fine\n"
    assert re.search(r"serves with 2 workers", server.err.text)
