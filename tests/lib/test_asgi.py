# SPDX-License-Identifier: Apache-2.0
"""monkey-asgi serves ASGI applications, over real connections."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as websocket

from monkey import ROOT, SECONDS
from package import BINDING, SANITIZERS, Program, call, sanitizers_for_python
from proc import wait_until

FOLDER = ROOT / "tests" / "lib"


@pytest.fixture(scope="module")
def start(package, python):
    """start("asgi_app:app", ...) starts monkey-asgi."""
    running = []

    def start_server(*words, **environment):
        command = (python.parent / "monkey-asgi", *words, "--app-dir", FOLDER, "-b", "127.0.0.1:0")
        running.append(Program(command, package.environment | {"PYTHONDONTWRITEBYTECODE": "1", **environment}))
        return running[-1]

    yield start_server
    for program in running:
        program.__exit__()


@pytest.fixture(scope="module")
def server(start):
    return start("asgi_app:app")


def fetch(server, path, method="GET", body=None, **headers):
    connection = server.connect()
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, response.headers, data


def events(server):
    return json.loads(fetch(server, "/events")[2])


def test_asgi_scope_describes_request(server):
    scope = json.loads(fetch(server, "/a%20b/%C3%A9?x=%20y", X_Name="v\xe9")[2])
    assert (scope["type"], scope["method"], scope["scheme"], scope["http_version"]) == ("http", "GET", "http", "1.1")
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == ("/a b/\xe9", "/a%20b/%C3%A9", "x=%20y")
    assert ["x-name", "v\xe9"] in scope["headers"] and scope["root_path"] == ""
    assert scope["client"][0] == "127.0.0.1" and scope["client"][1] > 0
    assert scope["server"] == ["127.0.0.1", int(server.url.rstrip("/").rpartition(":")[2])]
    assert scope["state"] == {"greeting": "from startup"}


def test_asgi_encoded_slash_is_decoded_in_path_only(server):
    scope = json.loads(fetch(server, "/a%2Fb")[2])
    assert (scope["path"], scope["raw_path"]) == ("/a/b", "/a%2Fb")


@pytest.mark.parametrize("target, path", [("/files//etc//", "/files//etc//"), ("/a//%2e/b", "/a/b"), ("/a//b/../c", "/a/c"), ("//a.b/..c//.d", "//a.b/..c//.d"),
                                          ("/a//b/..", "/a/"), ("/a//b/.", "/a/b/"), ("/%C3%A9//%20", "/\xe9// ")])
def test_asgi_path_keeps_repeated_slashes_unless_it_has_dot_segments(server, target, path):
    scope = json.loads(exchange_raw(server, target).rpartition(b"\r\n\r\n")[2])
    assert (scope["path"], scope["raw_path"]) == (path, target)


def test_asgi_status_and_repeated_headers_are_sent(server):
    status, headers, body = fetch(server, "/teapot")
    assert (status, headers.get_all("x-a"), body) == (418, ["1", "2"], b"short and stout")


@pytest.mark.parametrize("size", [0, 1, 70000, 1000000])
def test_asgi_request_body_is_read(server, size):
    assert fetch(server, "/count", "POST", bytes(size))[2] == b"%d" % size


def test_asgi_body_is_echoed_while_it_arrives(server):
    connection = server.connect()
    connection.putrequest("POST", "/echo")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    connection.send(b"5\r\nfirst\r\n")
    response = connection.getresponse()
    assert response.read(5) == b"first"
    connection.send(b"6\r\nsecond\r\n0\r\n\r\n")
    assert response.read() == b"second"
    connection.close()


def test_asgi_streamed_body_arrives_whole(server):
    assert fetch(server, "/stream")[2] == b"".join(b"%d" % (i % 10) * 10000 for i in range(200))


def test_asgi_known_length_is_sent_without_chunks(server):
    _status, headers, body = fetch(server, "/length")
    assert (headers["Content-Length"], body) == ("10", b"0123456789")
    wait_until(lambda: "known length sent" in events(server), "the application has sent all messages")
    assert fetch(server, "/length", "HEAD")[1]["Content-Length"] == "10"


@pytest.mark.parametrize("path, event", [("/endless", "send failed"), ("/wait", "http.disconnect")])
def test_asgi_disconnect_is_reported(server, path, event):
    with socket.create_connection(("127.0.0.1", int(server.url.rstrip("/").rpartition(":")[2])), SECONDS) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        if path == "/endless":
            client.recv(1000)
    wait_until(lambda: event in events(server), "the application has noticed the disconnect")


def test_asgi_disconnect_is_not_an_application_error(start):
    server = start("asgi_app:app")
    for path in ("/disconnect", "/disconnect-bug"):
        with socket.create_connection(("127.0.0.1", int(server.url.rstrip("/").rpartition(":")[2])), SECONDS) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            client.recv(1000)
    output = server.end()
    assert "LookupError: a bug" in output and "asgi_app.ClientDisconnect\n" not in output


@pytest.mark.parametrize("path", ["/fail", "/silent"])
def test_asgi_application_without_response_gives_500(server, path):
    assert fetch(server, path)[0] == 500
    assert fetch(server, "/count")[0] == 200


@pytest.fixture(scope="module")
def limited(start, tmp_path_factory):
    """A server with a limit for request bodies."""
    file = tmp_path_factory.mktemp("config") / "monkey.conf"
    file.write_text("[SERVER]\n    MaxBodySize 1M\n")
    return start("asgi_app:app", "--config", file)


def test_asgi_request_body_has_no_limit_by_default(server, limited):
    assert fetch(server, "/count", "POST", bytes(5000000))[2] == b"5000000"
    assert fetch(limited, "/count", "POST", bytes(1000000))[2] == b"1000000"
    assert fetch(limited, "/count", "POST", bytes(1100000))[0] == 413


@pytest.mark.parametrize("chunk, status", [(b"5\r\nfirst\r\n0\r\n\r\n", 200), (b"x\r\n", 400), (b"200000\r\n" + bytes(0x200000), 413)],
                         ids=["valid", "malformed", "too large"])
def test_asgi_invalid_body_gets_its_status(limited, chunk, status):
    server = limited
    connection = server.connect()
    connection.putrequest("POST", "/count")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    time.sleep(0.02)
    try:
        connection.send(chunk)
    except OSError:
        pass  # the server has rejected the body and closed the connection
    assert connection.getresponse().status == status
    connection.close()


def test_asgi_failure_within_body_ends_connection(server):
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        fetch(server, "/fail-late")


@pytest.mark.parametrize("path", ["/endless", "/stream"])
def test_asgi_head_of_stream_ends_without_body(server, path):
    status, _headers, body = fetch(server, path, "HEAD")
    assert (status, body) == (200, b"") and fetch(server, "/count")[0] == 200


def test_asgi_failure_between_head_and_body_gives_500(server):
    assert fetch(server, "/fail-after-start")[0] == 500


# ---- Delivery ----

@pytest.mark.parametrize("path", ["/block", "/block-later", "/block-within-body", "/block-later-within-body"])
def test_asgi_body_is_delivered_before_application_continues(server, tmp_path, path):
    connection = server.connect()
    connection.request("GET", f"{path}?{tmp_path}/received")
    response = connection.getresponse()
    assert (response.status, response.read(5)) == (200, b"first")
    count = len(list(tmp_path.iterdir()))
    (tmp_path / "received").touch()
    assert (count, response.read()) == (0, b"last" if "within" in path else b"")
    connection.close()
    wait_until(lambda: "the client received it" in events(server), "the application has continued")
    assert "the client received nothing" not in events(server)


@pytest.mark.parametrize("path", ["/head-first", "/head-later", "/head-empty"])
def test_asgi_head_is_delivered_before_body(server, path):
    connection = server.connect()
    connection.putrequest("POST", path)
    connection.putheader("Content-Length", "4")
    connection.endheaders()
    response = connection.getresponse()
    assert (response.status, response.headers["x-early"]) == (200, "yes")
    connection.send(b"rest")
    assert response.read() == b"rest"
    connection.close()


# ---- Extensions ----

def test_asgi_scope_names_extensions(server):
    scope = json.loads(fetch(server, "/")[2])
    assert sorted(scope["extensions"]) == ["http.response.early_hint", "http.response.pathsend", "http.response.trailers"]


def exchange_raw(server, path, *fields):
    """Sends a request and returns all that the server sends."""
    with socket.create_connection(("127.0.0.1", int(server.url.rstrip("/").rpartition(":")[2])), SECONDS) as client:
        client.sendall("\r\n".join((f"GET {path} HTTP/1.1", "Host: a", "Connection: close", *fields, "", "")).encode())
        received = b""
        while data := client.recv(65536):
            received += data
    return received


@pytest.mark.parametrize("path", ["/trailers", "/trailers-later", "/trailers-length"])
def test_asgi_trailers_follow_body(server, path):
    received = exchange_raw(server, path, "TE: trailers")
    assert b"Transfer-Encoding: chunked" in received and received.count(b"\r\nx-sum: 1\r\n") == 1
    assert received.endswith(b"0\r\nx-sum: 1\r\nx-end: 2\r\n\r\n")
    assert fetch(server, path)[2] == b"body"  # the client does not accept trailers
    assert b"Content-Length: 4" in exchange_raw(server, path) or path != "/trailers-length"


def test_asgi_omitted_trailers_end_response(server):
    for path in ("/trailers-omitted", "/trailers-later-omitted"):
        assert exchange_raw(server, path, "TE: trailers").endswith(b"0\r\n\r\n")
    received = exchange_raw(server, "/trailers-broken", "TE: trailers")
    assert received.startswith(b"HTTP/1.1 200") and not received.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("path", ["/file", "/file-later"])
def test_asgi_pathsend_sends_file(server, tmp_path, path):
    file = tmp_path / "a b"
    file.write_bytes(b"content" * 100000)
    for method in ("GET", "HEAD"):
        status, headers, body = fetch(server, f"{path}?{tmp_path}/a%20b", method)
        assert (status, headers["Content-Length"], body) == (200, "700000", file.read_bytes() if method == "GET" else b"")
    file.write_bytes(b"")
    assert fetch(server, f"{path}?{tmp_path}/a%20b")[2] == b""


def test_asgi_pathsend_of_anything_but_a_file_fails(server, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, problem in (("none", "FileNotFoundError"), (".", "IsADirectoryError"), ("pipe", "OSError"), ("a%00b", None)):
        assert fetch(server, f"/file?{tmp_path}/{name}")[0] == 500
        assert problem is None or problem in events(server)


@pytest.mark.parametrize("path", ["/hint", "/hint-later"])
def test_asgi_early_hint_precedes_response(server, tmp_path, path):
    with socket.create_connection(("127.0.0.1", int(server.url.rstrip("/").rpartition(":")[2])), SECONDS) as client:
        client.sendall(f"GET {path}?{tmp_path}/received HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            received += client.recv(65536)
        assert received.startswith(b"HTTP/1.1 103 ") and received.endswith(b"Link: </a.css>; rel=preload\r\nLink: </b.js>; rel=preload\r\n\r\n")
        (tmp_path / "received").touch()
        received = b""
        while data := client.recv(65536):
            received += data
    assert received.startswith(b"HTTP/1.1 200 ") and received.endswith(b"hinted")


# ---- Tasks ----

def test_asgi_application_runs_in_task_with_own_context(server):
    for _ in range(2):
        assert json.loads(fetch(server, "/task")[2]) == ["unset", True, True, False, "set", True, True, True]


def test_asgi_task_that_cancels_itself_cancels_what_it_awaits(server):
    assert fetch(server, "/cancel")[2] == b"cancelled, and so was the future"


def test_asgi_timeout_of_receive_loses_no_input(server):
    connection = server.connect()
    connection.putrequest("POST", "/timeout")
    connection.putheader("Content-Length", "4")
    connection.endheaders()
    time.sleep(0.05)
    connection.send(b"late")
    assert connection.getresponse().read() == b"late after timeouts"
    connection.close()


def test_asgi_concurrent_receivers_both_get_disconnect(server):
    assert fetch(server, "/twice")[2] == b"done"
    wait_until(lambda: events(server).count("twice http.disconnect") == 2, "both have received it")


def test_asgi_application_may_work_after_the_response(server):
    assert fetch(server, "/later")[2] == b"first"
    wait_until(lambda: "worked later" in events(server), "the application has continued")


def test_asgi_system_exit_ends_the_server(start):
    server = start("asgi_app:app")
    try:
        fetch(server, "/system-exit")
    except (OSError, http.client.HTTPException):
        pass
    assert server._process.wait(SECONDS) == 3


# ---- Robustness ----

@pytest.fixture(scope="module")
def sanitized(package, python, tmp_path_factory):
    """Environment variables for programs that load a copy of the extension that is built with sanitizers."""
    folder = tmp_path_factory.mktemp("sanitized")
    (installed,) = python.parents[1].glob("lib/python*/site-packages/libmonkey")
    shutil.copytree(installed, folder / "libmonkey")
    (extension,) = (folder / "libmonkey").glob("_asgi*.so")
    limited = ["-DPy_LIMITED_API=0x030b0000"] if ".abi3." in extension.name else []
    call("cc", "-std=gnu17", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", *SANITIZERS, "-O1", "-fPIC", "-shared", *limited,
         "-I", sysconfig.get_path("include"), "-I", ROOT / "include", *sorted((BINDING / "src").glob("*.c")), "-o", extension)
    return package.environment | sanitizers_for_python() | {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("seed", range(2))
def test_asgi_misuse_raises_and_never_crashes(python, sanitized, seed):
    done = subprocess.run([python, FOLDER / "asgi_misuse.py", str(seed), "600"], env=os.environ | sanitized, capture_output=True, text=True,
                          timeout=55, check=False)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr[-3000:]


def test_asgi_requests_leak_no_memory(package, python):
    output = call(python, FOLDER / "asgi_leaks.py", "2000", environment=package.environment, seconds=55)
    assert int(output) < 100, f"1000 requests of each kind leave {output.strip()} blocks of memory"


# ---- WebSocket ----

def connect(server, path, **options):
    return websocket(server.url.replace("http", "ws").rstrip("/") + path, open_timeout=SECONDS, **options)


def test_asgi_websocket_echoes_text_and_bytes(server):
    with connect(server, "/ws", subprotocols=["one", "two"]) as client:
        assert (client.subprotocol, client.response.headers["x-ws"]) == ("two", "yes")
        for message in ("text \xe9", b"bytes", "", b"\0" * 300000):
            client.send(message)
            assert client.recv(SECONDS) == message
        client.close(4002, "bye")
    wait_until(lambda: [4002, "bye"] in events(server), "the application has the close code")
    wait_until(lambda: "closed after the client" in events(server), "the application may close it as well")


def test_asgi_websocket_message_is_delivered_before_application_continues(server, tmp_path):
    with connect(server, f"/block?{tmp_path}/received") as client:
        assert client.recv(SECONDS) == "first"
        (tmp_path / "received").touch()
    assert "the client received nothing" not in events(server)


def test_asgi_websocket_denied_with_response(server):
    with pytest.raises(InvalidStatus) as caught:
        connect(server, "/deny")
    response = caught.value.response
    assert (response.status_code, response.headers["x-why"], response.body) == (401, "no token", b"who are you?")
    with pytest.raises(InvalidStatus) as caught:
        connect(server, "/close")
    assert caught.value.response.status_code == 403


def test_asgi_websocket_sender_waits_for_slow_client(server):
    with connect(server, "/flood", max_queue=1) as client:
        received = [client.recv(SECONDS) for _ in range(200)]
        assert received == [bytes(20000)] * 200
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(SECONDS)
        assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (4001, "enough")


def test_asgi_websocket_invalid_close_raises(server):
    with connect(server, "/invalid") as client, pytest.raises(ConnectionClosed) as caught:
        client.recv(SECONDS)
    assert caught.value.rcvd.code == 4000 and events(server).count("invalid close") == 3


def test_asgi_websocket_failure_closes_with_1011(server):
    with connect(server, "/fail") as client, pytest.raises(ConnectionClosed) as caught:
        client.recv(SECONDS)
    assert caught.value.rcvd.code == 1011


# ---- Lifespan, processes ----

def test_asgi_shutdown_waits_for_open_requests(start):
    server = start("asgi_app:app")
    connection = server.connect()
    connection.putrequest("POST", "/count")
    connection.putheader("Content-Length", "5")
    connection.endheaders(b"ab")
    assert fetch(server, "/count")[0] == 200
    server._process.send_signal(signal.SIGTERM)
    wait_until(lambda: not accepts(server), "the server has stopped listening")
    connection.send(b"cde")
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"5"), server._process.stderr.read()
    connection.close()
    out, error = server._process.communicate(timeout=SECONDS)
    assert (server._process.returncode, out, error) == (0, "shut down\n", "")


def test_asgi_shutdown_waits_for_work_after_response(start):
    server = start("asgi_app:app")
    assert fetch(server, "/background")[2] == b"working"
    assert "shut down after background work" in server.end()


def test_asgi_shutdown_cancels_work_after_drain_time(start):
    server = start("asgi_app:app", "--drain", "0.1")
    assert fetch(server, "/background")[2] == b"working"
    assert server.end() == "shut down\n"


def accepts(server):
    try:
        with socket.create_connection(("127.0.0.1", int(server.url.rstrip("/").rpartition(":")[2])), SECONDS):
            return True
    except OSError:
        return False


def test_asgi_failed_startup_is_reported(start):
    with pytest.raises(AssertionError, match="monkey-asgi: the application failed at startup: no database"):
        start("asgi_app:app", FAIL="startup")


@pytest.mark.parametrize("words, message", [
    (["asgi_none:app"], "cannot import asgi_none: no such module in"), (["asgi_app:none"], "asgi_app has no none"),
    (["asgi_app:app", "-w", "0"], "--workers: expected at least 1"), (["asgi_app:app", "--key", "x"], "--certificate and --key belong together"),
    (["asgi_app:app", "-b", "127.0.0.1:x"], "cannot listen on 127.0.0.1:x"), (["asgi_app:plain", "--lifespan", "on"], "the application failed at startup")])
def test_asgi_wrong_usage_is_reported(start, words, message):
    with pytest.raises(AssertionError, match=message):
        start(*words)


def test_asgi_application_without_lifespan_is_served(start):
    for words in (["asgi_app:plain"], ["asgi_app:make_app", "--factory"], ["asgi_app:plain", "--lifespan", "off"]):
        server = start(*words)
        assert fetch(server, "/")[2] == b"plain"
        server.end()


def test_asgi_crashed_worker_is_replaced(start):
    server = start("asgi_app:app", "--workers", "2")
    workers = set()
    wait_until(lambda: len(workers.add(fetch(server, "/process")[2]) or workers) == 2, "two workers respond")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        fetch(server, "/exit")
    seen = set()
    wait_until(lambda: len(seen.add(fetch(server, "/process")[2]) or seen) == 2 and seen != workers, "another worker responds")
    assert "starting another" in server.end()
