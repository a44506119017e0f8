# SPDX-License-Identifier: Apache-2.0
"""The error log's messages about failing backends, and how the requests to these backends end."""
import contextlib
import os
import pwd
import socket
import threading

import pytest

from backend import Backend, response
from upstream_group import group
from metering import status
from proc import wait_until


@pytest.fixture
def start(monkey):
    def begin(*servers, keys="", to="http://group", **how):
        top = group(*servers, keys=keys) if servers else ""
        return monkey(plugins=["proxy", "metrics"], top=top,
                      sections=f"[ROUTES]\n    /status metrics json\n    /* proxy {to}\n", **how)

    return begin


def states(server):
    return [each["state"] for each in status(server)["upstreams"]]


def lines(server, text):
    return [line for line in server.log.splitlines() if "the server " in line and text in line]


# ---- Log messages, one for each change of a backend's state ----

def test_upstream_unreachable_server_is_logged_once(start):
    with Backend() as a:
        server = start(a, "127.0.0.1:1", keys="MaxFails 3\nHoldDown 1h", workers=2)
        for _ in range(20):
            assert server.get("/").status == 200
        server.err.wait_for(r"\[error\] .*upstream group: the server 127.0.0.1:1 failed: the server refused the connection \(Connection refused\)")
        server.err.wait_for(r"\[warn\] .*upstream group: the server 127.0.0.1:1 gets no requests for 3600000 ms, after 3 failures in a row")
        assert len(lines(server, "127.0.0.1:1 failed")) == 1 and len(lines(server, "gets no requests")) == 1


def test_upstream_recovery_is_logged(start):
    with Backend() as a, Backend() as b:
        server = start(a, b, keys="MaxFails 1\nHoldDown 1s", workers=1)
        b.stop()
        for _ in range(4):
            assert server.get("/").status == 200
        server.err.wait_for("gets no requests")
        with Backend(at=b.at) as again:
            wait_until(lambda: server.get("/").status == 200 and again.requests, "it serves again", 30)
            server.err.wait_for(rf"\[info\] .*upstream group: the server {b.address} is back: it answers again")


def test_upstream_missing_socket_is_logged(start, tmp_path):
    server = start(to=f"http://unix:{tmp_path}/none.sock")
    assert server.get("/").status == 502
    server.err.wait_for(r"\[error\] .*the socket does not exist \(No such file or directory\)", count=2)
    assert "server none" not in server.log


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has workers of another user")
def test_upstream_socket_without_permission_is_logged(start, tmp_path):
    path = f"/tmp/{os.getpid()}-closed.sock"
    with socket.socket(socket.AF_UNIX) as closed, contextlib.ExitStack() as stack:
        closed.bind(path)
        stack.callback(os.unlink, path)
        closed.listen()
        os.chmod(path, 0o600)
        server = start(to=f"http://unix:{path}", server=f"User {pwd.getpwuid(65534).pw_name}")
        assert server.get("/").status == 502
        server.err.wait_for(r"\[error\] .*the workers' user may not connect to the socket \(Permission denied\)")


def test_upstream_resolver_error_is_logged(start):
    server = start(to="http://no.such.name.invalid:80", workers=2)
    assert server.get("/").status == 503
    server.err.wait_for(r"\[error\] .*the server no.such.name.invalid:80 has no address, because its name does not resolve: \w+")
    for _ in range(4):
        assert server.get("/").status == 503
    assert len(lines(server, "does not resolve")) == 1
    server.err.wait_for(r"upstream no.such.name.invalid:80: no server is up")


def test_upstream_timeout_and_early_close_are_logged(start):
    def script(connection):
        connection.recv(1000)
        if closes.is_set():
            return
        closes.wait(20)

    closes = threading.Event()
    with Backend(script=script) as backend:
        server = start(to=f"http://{backend.address} response_timeout=100ms max_tries=1")
        assert server.get("/").status == 504
        server.err.wait_for(rf"\[error\] .*the server {backend.address} failed: the server does not answer")
        closes.set()
        wait_until(lambda: server.get("/").status == 502 and len(lines(server, "failed: ")) == 2, "the new reason is logged")


def test_upstream_tls_failure_is_logged(start):
    with Backend(script=lambda connection: connection.sendall(b"no TLS at all\r\n" * 10)) as backend:
        server = start(to=f"https://{backend.address}")
        assert server.get("/").status == 502
        server.err.wait_for(rf"\[error\] .*the server {backend.address} failed: the TLS handshake with the server failed")


@pytest.mark.parametrize("reply, keys, why", [
    (response("", "503 Busy"), "", "it answers with status 503"), (b"nonsense, and no HTTP\r\n", "", "it sends no HTTP response"),
    (response("", "204 No Content"), "HealthStatus 200", "it answers with status 204"),
    (None, "", "it closes the connection without a response")])
def test_health_check_failure_is_logged_with_reason(start, reply, keys, why):
    with Backend(lambda request: reply) as backend:
        server = start(backend, keys=f"HealthCheck /h\nHealthInterval 100ms\nHealthTimeout 1s\n{keys}")
        server.err.wait_for(rf"\[warn\] .*upstream group: the server {backend.address} fails its health check: {why}")


def test_health_check_of_unreachable_server_is_logged_with_reason(start):
    server = start("127.0.0.1:1", keys="HealthCheck connect\nHealthInterval 100ms")
    server.err.wait_for(r"the server 127.0.0.1:1 fails its health check: the server refused the connection")


# ---- Health checks ----

def test_health_check_host_and_status_are_configurable(start):
    with Backend(lambda request: response("", "204 No Content")) as backend:
        server = start(backend, keys="HealthCheck /h\nHealthInterval 100ms\nHealthTimeout 1s\nHealthHost app.example\nHealthStatus 204")
        wait_until(lambda: len(backend.requests) > 2, "checks")
        assert backend.requests[0].get("Host") == "app.example" and states(server) == ["up"]


def test_health_check_single_failure_is_tolerated(start):
    with Backend(lambda request: response(status=next(results, "503 Busy"))) as backend:
        results = iter(["503 Busy", "200 OK"] * 4)
        server = start(backend, keys="HealthCheck /h\nHealthInterval 100ms\nHealthTimeout 1s")
        wait_until(lambda: len(backend.requests) >= 8, "checks")
        assert not lines(server, "fails its health check")
        wait_until(lambda: states(server) == ["down"], "down after repeated failures")


def test_health_check_retries_late_starting_server_early(start):
    """If the server waited for HealthInterval, all backends would stay down for that long."""
    with Backend() as a:
        at = a.at
    server = start(f"127.0.0.1:{at[1]}", keys="HealthCheck /h\nHealthInterval 1h")
    wait_until(lambda: states(server) == ["down"], "it is not running yet")
    with Backend(at=at):
        wait_until(lambda: server.get("/").status == 200, "it serves", 20)


@pytest.fixture
def check_value(run, tmp_path):
    def check(key, value):
        conf = tmp_path / "monkey.conf"
        conf.write_text(f"[UPSTREAM]\n    Name g\n    Server 127.0.0.1:1\n    {key} {value}\n[PLUGINS]\n    Load proxy\n"
                        "[HOST]\n[ROUTES]\n    /* proxy http://g\n")
        return run("-t", "-c", conf), conf

    return check


@pytest.mark.parametrize("key, value", [("HealthStatus", "99"), ("HealthStatus", "600"), ("HealthStatus", "300-200"), ("HealthStatus", "x"),
                                        ("HealthFall", "0"), ("HealthRise", "101"), ("HealthTimeout", "x")])
def test_health_check_invalid_values_are_rejected(check_value, key, value):
    done, conf = check_value(key, value)
    assert done.code == 3 and f"{conf}:4:" in done.err, done.err


@pytest.mark.parametrize("key, value", [("HealthStatus", "100"), ("HealthStatus", "599"), ("HealthStatus", "100-599"),
                                        ("HealthStatus", "204-204"), ("HealthFall", "100"), ("HealthRise", "1")])
def test_health_check_valid_values_are_accepted(check_value, key, value):
    done, _ = check_value(key, value)
    assert done.code == 0, done.err


# ---- Requests to a server that goes down ----

class FreezableBackend(Backend):
    """Responds until the test freezes it."""

    def __init__(self):
        self.frozen, self.thaws = threading.Event(), threading.Event()
        super().__init__(self._answer)

    def _answer(self, request):
        if self.frozen.is_set():
            self.thaws.wait(30)
        return response("x")

    def stop(self):
        self.thaws.set()
        super().stop()


@pytest.mark.parametrize("workers", [1, 2])
def test_upstream_requests_move_away_from_failing_server(start, workers):
    """The move to another server must not wait for response_timeout, which is an hour here."""
    with FreezableBackend() as a, Backend(lambda request: response("y")) as b, contextlib.ExitStack() as stack:
        server = start(a, b, keys="HealthCheck /h\nHealthInterval 100ms\nHealthTimeout 1s", to="http://group response_timeout=1h", workers=workers)
        wait_until(lambda: a.requests and b.requests, "checks")
        a.frozen.set()
        clients = [stack.enter_context(server.connect()) for _ in range(8)]
        for i, each in enumerate(clients):
            each.ask("/x", ["GET", "PUT"][i % 2], body=b"content" if i % 2 else b"")
        assert [each.read().text for each in clients] == ["y"] * 8
        assert {request.body for request in b.requests if request.method == "PUT"} == {b"content"}
        server.err.wait_for("fails its health check: it does not answer in time")


def test_upstream_non_idempotent_requests_stay_on_failing_server(start):
    with FreezableBackend() as a, Backend(lambda request: response("y")) as b, contextlib.ExitStack() as stack:
        server = start(a, b, keys="HealthCheck /h\nHealthInterval 100ms\nHealthTimeout 1s", to="http://group response_timeout=1h", workers=1)
        wait_until(lambda: a.requests and b.requests, "checks")
        a.frozen.set()
        clients = [stack.enter_context(server.connect()) for _ in range(4)]
        for each in clients:
            each.ask("/x", "POST", body=b"once")
        server.err.wait_for("fails its health check")
        assert server.get("/other").text == "y"
        a.thaws.set()
        assert sorted(each.read().text for each in clients) == ["x", "x", "y", "y"]
        assert len([request for request in [*a.requests, *b.requests] if request.method == "POST"]) == 4
