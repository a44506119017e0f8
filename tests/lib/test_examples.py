# SPDX-License-Identifier: Apache-2.0
"""The examples of examples/embed, built against the installed package by their own Makefile, with sanitizers."""
import re
import shutil
import signal
import threading
from urllib.parse import urlencode

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as websocket

from monkey import ROOT, SECONDS
from package import SANITIZERS, call, has_package
from proc import wait_until

FOLDER = ROOT / "examples" / "embed"
LOOPS = {"uv": "libuv", "glib": "glib-2.0", "event": "libevent"}


@pytest.fixture(scope="module")
def folder(package, tmp_path_factory):
    """Builds the examples and returns their folder."""
    if not shutil.which("make"):
        pytest.skip("needs make")
    copy = tmp_path_factory.mktemp("examples") / "embed"
    shutil.copytree(FOLDER, copy)
    flags = " ".join(["-O1 -Wall -Wextra -Werror", *SANITIZERS])
    call("make", "-C", copy, f"CFLAGS={flags}", environment=package.environment)
    return copy


@pytest.fixture
def run(package, folder):
    """run("hello") starts the example; the fixture checks that it has exited at the end."""
    running = []

    def start(name):
        if name in LOOPS and not has_package(LOOPS[name]):
            pytest.skip(f"needs {LOOPS[name]}")
        running.append(package.run(folder / name, "127.0.0.1:0"))
        return running[-1]

    yield start
    for program in running:
        program.__exit__()


def test_examples_are_all_tested():
    assert {path.stem for path in FOLDER.glob("*.c")} == {"hello", "epoll", "threads", "later", "stream", "prometheus", "chat", "forms",
                                                          *LOOPS}


def test_example_hello_serves(run):
    program = run("hello")
    assert program.get() == (200, "hello\n")
    assert program.get(method="HEAD") == (200, "")
    assert program.get(method="POST")[0] == 405
    assert program.get("/none")[0] == 404
    program.end(code=-signal.SIGTERM)


ANSWERS = {"epoll": "iteration ", "uv": "hello from libuv", "glib": "hello from GLib 2.", "event": "hello from libevent"}


@pytest.mark.parametrize("name", ANSWERS)
def test_example_event_loops_serve(run, name):
    program, answer = run(name), ANSWERS[name]
    for _ in range(3):
        status, text = program.get()
        assert (status, text.startswith(answer)) == (200, True), text
    idle = program.connect()
    idle.connect()
    program.end(signal.SIGINT if name == "uv" else signal.SIGTERM)
    idle.close()


def test_example_threads_serve(run):
    program, numbers = run("threads"), []

    def visit():
        for _ in range(10):
            numbers.append(int(program.get()[1].split()[1].rstrip(",")))

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(numbers) == list(range(1, 41))
    program.end()


def test_example_later_responds_asynchronously(run):
    program = run("later")
    gone = program.connect()
    gone.request("GET", "/primes/1000001")
    gone.close()
    assert program.get("/primes/100") == (200, "25\n")
    assert program.get("/primes/-1")[0] == 404
    program.end()


def test_example_stream_streams_both_ways(run):
    program = run("stream")
    status, text = program.get("/numbers?200000")
    assert status == 200 and text == "".join(f"{n}\n" for n in range(1, 200001))
    assert program.get("/numbers?0") == (200, "")
    assert program.get("/numbers?x")[0] == 400
    sent = bytes(range(256)) * 8192
    assert program.get("/sum", "POST", sent) == (200, f"{len(sent)} bytes, sum {sum(sent)}\n")
    pieces = (sent[i:i + 100000] for i in range(0, len(sent), 100000))
    assert program.get("/sum", "POST", pieces) == (200, f"{len(sent)} bytes, sum {sum(sent)}\n")
    program.end(code=-signal.SIGTERM)


def records(program):
    """Returns the value of the first counter."""
    status, text = program.get()
    assert status == 200 and text.startswith("# HELP shipper_records_total Records that were read.\n"
                                             "# TYPE shipper_records_total counter\nshipper_records_total ")
    return int(text.splitlines()[2].split()[1])


def test_example_prometheus_counts(run):
    program = run("prometheus")
    first = records(program)
    wait_until(lambda: records(program) > first, "an increased counter")
    assert program.get("/api/v1/health") == (200, "ok\n")
    program.end()


def test_example_forms_keeps_a_session(run):
    program = run("forms")

    def ask(path, cookie=None, fields=None, kind="application/x-www-form-urlencoded"):
        connection = program.connect()
        headers = {"Cookie": cookie} if cookie else {}
        body = None if fields is None else urlencode(fields)
        connection.request("GET" if body is None else "POST", path, body, headers | ({"Content-Type": kind} if body is not None else {}))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.getheader("Location"), answer.getheader("Set-Cookie"), text

    status, _, cookie, text = ask("/")
    assert status == 200 and "<input name=name" in text
    assert re.fullmatch("session=[0-9a-f]{32}; Path=/; HttpOnly; SameSite=Lax", cookie)
    mine = "other=1; " + cookie.partition(";")[0]
    assert ask("/done", mine)[:3] == (303, "/", None)
    assert ask("/", mine, {"name": ""})[:3] == (303, "/", None)
    assert ask("/", mine, {"name": "<Ana & Bo>"})[:3] == (303, "/mail", None)
    assert 'value="&lt;Ana &amp; Bo&gt;"' in ask("/", mine)[3]
    assert ask("/mail", mine, {"mail": "ana@example.org"})[:3] == (303, "/done", None)
    assert "Thank you, &lt;Ana &amp; Bo&gt;. We will write to ana@example.org." in ask("/done", mine)[3]
    status, to, other, _ = ask("/done", "session=" + "0" * 32)  # an ID that the server did not choose
    assert (status, to) == (303, "/") and other and other != cookie
    assert ask("/", mine, {"mail": "x"})[0] == 400 and ask("/", mine, {"name": "x" * 64})[0] == 413
    assert ask("/", mine, {"name": "x"}, "text/plain")[0] == 415
    program.end(code=-signal.SIGTERM)


def test_example_chat_broadcasts(run):
    program = run("chat")
    assert program.get()[1].startswith("<!doctype html>")
    url = program.url.rstrip("/").replace("http", "ws", 1) + "/chat"
    with websocket(url, proxy=None) as a:
        with websocket(url, proxy=None) as b:
            for ws in (a, b):
                ws.send("hello " * 100)
                assert [a.recv(), b.recv()] == ["hello " * 100] * 2
        assert a.recv() == "-- one has left"
        with pytest.raises(InvalidStatus):
            websocket(url, proxy=None, origin="http://example.org")
        program.end(code=-signal.SIGTERM)
