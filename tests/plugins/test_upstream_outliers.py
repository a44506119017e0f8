# SPDX-License-Identifier: Apache-2.0
"""Servers that are ejected because of their errors, and the deadline of a request over all its tries."""
import re
import time

import pytest

from backend import Backend, response
from metering import status
from proc import wait_until
from prometheus import parse
from upstream_group import HoldingBackend, group

EJECT = "OutlierErrors 50\nOutlierRequests 10\nOutlierInterval 10s\nOutlierTime 1h\nRetryBudget off"


@pytest.fixture
def start(monkey):
    def begin(*backends, keys=EJECT, route="", **how):
        return monkey(plugins=["proxy", "metrics"], top=group(*backends, keys=keys),
                      sections=f"[ROUTES]\n    /metrics metrics\n    /status metrics json\n    /* proxy http://group {route}\n", **how)

    return begin


def states(server):
    return [each["state"] for each in status(server)["upstreams"]]


def ask(server, n):
    return [server.get("/").status for _ in range(n)]


def failing():
    return Backend(lambda _: response("no", "500 Internal Server Error"))


def test_outlier_is_ejected_by_its_statuses(start):
    with Backend() as a, failing() as b:
        server = start(a, b, workers=1)
        assert ask(server, 18).count(500) == 9 and states(server) == ["up", "up"]
        ask(server, 2)
        assert states(server) == ["up", "ejected"]
        assert ask(server, 20) == [200] * 20
        server.err.wait_for(rf"\[warn\] .*upstream group: the server {b.address} is ejected for 3600000 ms: 10 of 10 requests to it failed")
        assert parse(server.get("/metrics").text)["monkey_upstream_ejections_total", {"server": b.address}] == 1


def test_outlier_is_counted_by_all_workers(start):
    with Backend() as a, failing() as b:
        server = start(a, b, workers=4)
        got = ask(server, 100)
        assert 10 <= got.count(500) <= 13 and got[-40:] == [200] * 40
        assert len(re.findall("is ejected", server.err.text)) == 1


def test_outlier_failures_count(start):
    def drop(_):
        return None

    with Backend() as a, Backend(drop) as b:
        server = start(a, b, keys=EJECT + "\nMaxFails off", workers=1)
        server.allow(r"\[error\]")
        assert ask(server, 40)[-10:] == [200] * 10
        wait_until(lambda: states(server) == ["up", "ejected"], "the published state")


def test_outlier_below_its_limits_stays(start):
    turn = iter(range(1000))
    with Backend() as a, Backend(lambda _: response("x", "500 No" if next(turn) % 3 == 0 else "200 OK")) as b:
        server = start(a, b, workers=1)
        ask(server, 60)
        assert states(server) == ["up", "up"]
    with Backend() as a, Backend(lambda _: response("x", "404 Not Found")) as b:
        server = start(a, b, workers=1)
        ask(server, 40)
        assert states(server) == ["up", "up"]


def test_outlier_ejection_has_a_maximum(start):
    with failing() as a, failing() as b, failing() as c, Backend() as d:
        server = start(a, b, c, d, workers=1)
        ask(server, 200)
        assert states(server).count("ejected") == 2
    with failing() as a:
        server = start(a, workers=1)
        assert ask(server, 30) == [500] * 30 and states(server) == ["up"]


def test_outlier_returns_and_is_ejected_for_longer(start):
    with Backend() as a, failing() as b:
        server = start(a, b, keys=EJECT.replace("1h", "1s"), workers=1)
        ask(server, 20)
        assert states(server)[1] == "ejected"
        wait_until(lambda: states(server)[1] == "up", "its return")
        ask(server, 20)
        server.err.wait_for(r"is ejected for 2000 ms")


def test_outlier_last_working_server_stays(start):
    """The other server is down, so the failing one still gets the requests: some of its responses may be right."""
    turn = iter(range(1000))
    with Backend(lambda _: response("x", "500 No" if next(turn) % 3 else "200 OK")) as a, Backend() as backup:
        for others in (["127.0.0.1:1"], ["127.0.0.1:1", f"{backup.address} backup"]):
            server = start(a, *others, keys=EJECT + "\nMaxFails 1\nHoldDown 1h", workers=1)
            server.allow(r"\[error\]", "gets no requests")
            assert ask(server, 60).count(200) >= 15
            assert [each for each in states(server) if each == "ejected"] == [] and not backup.requests
            server.stop()


def test_outlier_last_server_that_passes_its_checks_stays(start):
    with Backend(lambda r: response("x", "200 OK" if r.target == "/alive" else "500 No")) as a, failing() as b:
        server = start(a, b, keys=EJECT + "\nHealthCheck /alive\nHealthInterval 100ms\nHealthFall 1", workers=1)
        server.allow("fails its health check")
        wait_until(lambda: states(server) == ["up", "down"], "the check")
        assert ask(server, 30) == [500] * 30 and states(server) == ["up", "down"]


# ---- total_timeout ----

def test_total_timeout_takes_hung_server_down(start):
    with Backend() as a, HoldingBackend() as b:
        server = start(a, b, keys="MaxFails 1\nHoldDown 1h", route="max_tries=1 total_timeout=500ms response_timeout=off", workers=1)
        server.allow(r"\[error\]", "gets no requests")
        assert sorted(ask(server, 2)) == [200, 504]
        assert ask(server, 10) == [200] * 10
        wait_until(lambda: states(server) == ["up", "down"], "the published state")
        server.err.wait_for(rf"the server {b.address} failed: the server does not answer")


def test_total_timeout_ejects_hung_server(start):
    with Backend() as a, HoldingBackend() as b:
        server = start(a, b, keys=EJECT.replace("Requests 10", "Requests 3") + "\nMaxFails off", route="max_tries=1 total_timeout=300ms",
                       workers=1)
        server.allow(r"\[error\]")
        assert ask(server, 6).count(504) == 3
        assert ask(server, 10) == [200] * 10
        wait_until(lambda: states(server) == ["up", "ejected"], "the published state")


def failures_of(server):
    return [each["failures"] for each in status(server)["upstreams"]]


def test_total_timeout_covers_all_tries(start):
    with HoldingBackend() as a, HoldingBackend() as b, HoldingBackend() as c:
        server = start(a, b, c, keys="", route="max_tries=3 response_timeout=700ms total_timeout=1s")
        server.allow(r"\[error\]")
        begun = time.monotonic()
        assert server.get("/").status == 504
        assert 0.9 < time.monotonic() - begun < 2
        assert sum(len(each.requests) for each in (a, b, c)) == 2
        server.err.wait_for("no server has answered within total_timeout")


def test_total_timeout_includes_the_queue(start):
    with HoldingBackend() as a:
        server = start(a, keys="MaxConnections 1\nMaxConnectionsPerAddress 0", route="response_timeout=30s total_timeout=1s", workers=1)
        server.allow(r"\[error\]")
        with server.connect() as first, server.connect() as second:
            begun = time.monotonic()
            first.ask("/")
            wait_until(lambda: a.requests, "the first request")
            second.ask("/")
            assert second.read().status == 504 and time.monotonic() - begun < 3
            assert first.read().status == 504
            assert failures_of(server) == [1]  # the second request has waited for other requests


def test_total_timeout_ends_with_the_response(start):
    def slow(_):
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
        for byte in b"slow":
            time.sleep(.5)
            yield bytes([byte])

    with Backend(slow) as a:
        server = start(a, keys="", route="total_timeout=1s")
        assert server.get("/").text == "slow"


def test_total_timeout_of_upload(start):
    with Backend() as a:
        server = start(a, keys="", route="total_timeout=1s stream")
        server.allow(r"\[error\]")
        with server.connect() as c:
            c.ask("/", method="POST", fields=[("Content-Length", "1000")])
            c.send(b"x")
            assert c.read().status == 504
        assert failures_of(server) == [0]


@pytest.mark.parametrize("value", ["x", "-1", ""])
def test_total_timeout_bad_value(start, value):
    server = start("127.0.0.1:1", route=f"total_timeout={value}", expect_start=False)
    server.exit_code = 3
    server.allow("error")
    server.wait()
    assert "total_timeout" in server.err.text
