# SPDX-License-Identifier: Apache-2.0
"""What health checks send and expect, and why they fail."""
import contextlib
import re
import signal
import socket

import pytest

from backend import Backend, response
from http2_backend import Http2Backend
from metering import status
from proc import wait_until
from prometheus import parse
from upstream_group import HoldingBackend, group

FAST = "HealthInterval 1s\nHealthFall 1\n"


@pytest.fixture
def start(monkey):
    def begin(*backends, keys, after="", fast=FAST, **how):
        return monkey(plugins=["proxy", "metrics"], top=group(*backends, keys=fast + keys),
                      sections="[ROUTES]\n    /metrics metrics\n    /status metrics json\n" + after +
                      "    /* proxy http://group\n", **how)

    return begin


def shown(server):
    return [(each["state"], each["reason"]) for each in status(server)["upstreams"]]


def wait_for(server, *wanted):
    wait_until(lambda: shown(server) == list(wanted), f"{wanted}")


def test_check_request(start):
    with Backend() as a:
        server = start(a, keys="HealthCheck /alive?full\nHealthMethod POST\nHealthHost app.example\n"
                               "HealthHeader Authorization: Bearer x y\nHealthHeader X-Empty:\n")
        wait_until(lambda: a.requests, "a check")
        request = a.requests[0]
        assert (request.method, request.target) == ("POST", "/alive?full")
        assert request.get("Host") == "app.example" and request.get("Authorization") == "Bearer x y"
        assert request.get("X-Empty") == "" and request.get("Content-Length") == "0"
        wait_for(server, ("up", "-"))


def test_check_of_method_head(start):
    with Backend(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n") as a:
        server = start(a, keys="HealthCheck /\nHealthMethod HEAD\n")
        wait_until(lambda: a.requests, "a check")
        assert a.requests[0].method == "HEAD"
        wait_for(server, ("up", "-"))


def chunked(*pieces):
    data = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n" + data + b"0\r\n\r\n"


@pytest.mark.parametrize("answer, passes", [
    (response("all is well"), True), (response("all is bad"), False), (response("x" * 60000 + "is well"), True),
    (response("x" * 70000 + "is well"), False), (chunked(b"all is", b" we", b"ll"), True), (chunked(b"all is", b"we", b"ll"), False),
    (b"HTTP/1.1 200 is well\r\nX: is well\r\n\r\nno", False), (b"HTTP/1.1 200 OK\r\nis well", False),
    (chunked(b"x")[:-7] + b"zzz\r\nis well", False),
], ids=["there", "missing", "far", "too-far", "chunked", "chunked-missing", "head", "no-end", "bad-chunk"])
def test_check_text(start, answer, passes):
    def script(connection):
        connection.recv(4096)
        with contextlib.suppress(OSError):
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)

    with Backend(script=script) as a, Backend(lambda _: response("is well", fields=[("Connection", "close")])) as b:
        server = start(a, b, keys="HealthCheck /\nHealthText \"is well\"\n")
        server.allow(r"fails its health check")
        wait_until(lambda: all(each["checks"] for each in status(server)["upstreams"]), "checks")
        wait_for(server, ("up", "-") if passes else ("down", "text"), ("up", "-"))


def test_check_reasons(start):
    def silent(connection):
        connection.recv(4096)
        with contextlib.suppress(OSError):
            connection.recv(1)

    def closes(connection):
        connection.recv(4096)

    def other(connection):
        connection.recv(4096)
        connection.sendall(b"220 mail.example ESMTP\r\n")

    with Backend(lambda _: response("no", "503 Busy")) as a, Backend(script=silent) as b, Backend(script=closes) as c, \
            Backend(script=other) as d, Backend() as e:
        server = start(a, b, c, d, e, "127.0.0.1:1", keys="HealthCheck /\nHealthTimeout 500ms\n")
        server.allow("fails its health check")
        wait_for(server, ("down", "status"), ("down", "timeout"), ("down", "closed"), ("down", "invalid"), ("up", "-"), ("down", "refused"))
        numbers = parse(server.get("/metrics").text)
        assert [numbers["monkey_upstream_check_reason", {"server": each.address}] for each in (a, b, c, d, e)] == [7, 2, 4, 5, 0]
        for text in ("it answers with status 503", "it does not answer in time", "without a response", "it sends no HTTP response",
                     r"Connection refused"):
            server.err.wait_for(rf"\[warn\] .*fails its health check: .*{text}")
        assert server.get("/").status == 200


def test_check_reason_disappears_on_recovery(start):
    healthy = []
    with Backend(lambda _: response("x", "200 OK" if healthy else "500 No")) as a, Backend() as b:
        server = start(a, b, keys="HealthCheck /\n")
        server.allow("fails its health check")
        wait_for(server, ("down", "status"), ("up", "-"))
        healthy.append(1)
        wait_for(server, ("up", "-"), ("up", "-"))


@pytest.mark.processes("it reloads")
@pytest.mark.parametrize("workers", [1, 2])
def test_check_of_draining_worker_ends(start, workers):
    """An open request keeps the old worker, whose check the server fails, alive: only the new workers decide."""
    def targets(name):
        return sum(each.target == name for each in a.requests)

    def state():
        return {each["server"]: each["state"] for each in status(server)["upstreams"]}[a.address]

    with Backend(lambda request: response("x", "404 No" if request.target == "/old" else "200 OK")) as a, HoldingBackend() as b:
        server = start(a, keys="HealthCheck /old\n", fast="HealthInterval 200ms\nHealthFall 1\n", workers=workers,
                       after=f"    /held proxy http://{b.address}\n")
        server.allow("fails its health check")
        wait_until(lambda: state() == "down", "the check")
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(server.connect()).ask("/held")
            wait_until(lambda: len(b.requests) == 8, "the requests")
            server.config.write_text(server.config.read_text().replace("HealthCheck /old", "HealthCheck /new"))
            server.tell(signal.SIGHUP)
            server.err.wait_for("the new configuration serves")
            wait_until(lambda: targets("/new") > 1, "checks of the new worker")
            n_old, n_new = targets("/old"), targets("/new")
            wait_until(lambda: targets("/new") >= n_new + 7, "more checks")
            assert targets("/old") == n_old and len(server.workers) > workers
            assert state() == "up"
            b.release()


def test_check_of_another_port(start):
    with Backend() as a, Backend(lambda _: response("no", "500 No")) as checked:
        server = start(a, "127.0.0.2:1", keys=f"HealthCheck /\nHealthPort {checked.at[1]}\n")
        server.allow("fails its health check")
        wait_for(server, ("down", "status"), ("down", "refused"))
        assert not a.requests and checked.requests[0].get("Host") == f"127.0.0.1:{checked.at[1]}"


def test_check_over_tls(start):
    """The server itself speaks plain HTTP; its checks need TLS, and get none from it."""
    def plain(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Backend(script=plain) as a, Backend(script=plain) as b:
        server = start(a, b, keys="HealthCheck /\nHealthTLS on\n")
        server.allow("fails its health check", "TLS with the server")
        wait_for(server, ("down", "tls"), ("down", "tls"))
        server.err.wait_for(r"TLS with the server .* failed: ")


@pytest.mark.parametrize("key, message", [
    ("HealthMethod BREW", "expected `GET`"), ("HealthHeader nothing", "NAME: VALUE"), ("HealthHeader Host: x", "HealthHost"),
    ("HealthHeader Content-Length: 3", "checks set `Content-Length` themselves"), ("HealthHeader a b: c", "NAME: VALUE"),
    ("HealthPort 70000", "HealthPort"), ("HealthTLS maybe", "HealthTLS"), ("HealthMethod HEAD\nHealthText x", "no content"),
    ("HealthText " + "x" * 300, "at most 256 bytes"),
])
def test_check_bad_keys(start, key, message):
    server = start("127.0.0.1:1", keys=f"HealthCheck /\n{key}\n", expect_start=False)
    server.exit_code = 3
    server.allow("error")
    server.wait()
    assert message in server.err.text


def test_check_port_of_unix_socket(start, tmp_path):
    server = start(f"unix:{tmp_path}/s", keys="HealthCheck /\nHealthPort 80\n", expect_start=False)
    server.exit_code = 3
    server.allow("error")
    server.wait()
    assert "has no port" in server.err.text


@pytest.mark.parametrize("keys", [
    "".join(f"HealthHeader X-{i}: {'v' * 1000}\n" for i in range(9)), "HealthHost " + "h" * 9000 + "\n",
    "".join(f"HealthHeader X-{i}: v\n" for i in range(600)),
], ids=["long", "host", "many"])
def test_check_with_too_long_head(start, keys):
    server = start("127.0.0.1:1", keys=f"HealthCheck /\n{keys}", expect_start=False)
    server.exit_code = 3
    server.allow("error")
    server.wait()
    assert re.search(r"monkey.conf:\d+.*the request of a check has at most 8192 bytes", server.err.text)


def test_check_with_longest_head(start):
    keys = f"HealthCheck /{'p' * 500}\nHealthHost {'h' * 200}\n" + "".join(f"HealthHeader X-{i}: {'v' * 990}\n" for i in range(7))
    with Backend() as a:
        server = start(a, keys=keys)
        wait_for(server, ("up", "-"))
        assert a.requests[0].get("X-6") == "v" * 990


def test_check_over_http2_has_method_and_headers(monkey):
    with Http2Backend() as a:
        monkey(plugins=["proxy"], sections="[ROUTES]\n    /* proxy h2c://group\n",
               top=group(a, keys=FAST + "HealthCheck /alive?full\nHealthMethod HEAD\nHealthHost app.example\n"
                                        "HealthHeader Authorization: Bearer x y\nHealthHeader X-Empty:\n"))
        wait_until(lambda: a.requests, "a check")
        request = a.requests[0]
        assert (request.method, request.target) == ("HEAD", "/alive?full")
        assert request.get(":authority") == "app.example" and request.get("authorization") == "Bearer x y"
        assert request.get("x-empty") == "" and request.get("user-agent") == "monkey-health"
        assert all(name == name.lower() for name, _ in request.fields)


def test_check_text_over_http2_needs_a_port(monkey):
    server = monkey(plugins=["proxy"], sections="[ROUTES]\n    /* proxy h2c://group\n",
                    top=group("127.0.0.1:1", keys="HealthCheck /\nHealthText x\n"), expect_start=False)
    server.exit_code = 3
    server.allow("error")
    server.wait()
    assert re.search(r"monkey.conf:\d+.*checks of content need HTTP/1.1, on a port that `HealthPort` names", server.err.text)
