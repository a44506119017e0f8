# SPDX-License-Identifier: Apache-2.0
"""The http package: the time limit of an exchange, and the request ID."""
import errno
import re
import time

import pytest

import services
from backend import Backend, response
from http_call_service import start

TRUSTED = "[SECURITY]\n    TrustedProxy 127.0.0.1\n"

pytestmark = pytest.mark.skipif(not services.has("http"), reason="this build has no Duda")

TIMED_OUT = "the exchange was not complete within timeout_ms"


def slow_head(request):
    time.sleep(3)
    return response("late")


def slow_bytes(request):
    """Sends a byte from time to time, so that no single wait is long."""
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    for _ in range(100):
        time.sleep(0.05)
        yield b"x"


def endless(request):
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    while True:
        yield b"x" * 65536


def slow_redirects(request):
    time.sleep(0.2)
    return response("", "302 Found", [("Location", f"/{len(request.target)}x{request.target[1:]}")])


@pytest.mark.parametrize("how", ["fetch", "open", "begin"])
@pytest.mark.parametrize("reply", [slow_head, slow_bytes])
def test_timeout_limits_the_whole_exchange(monkey, site, how, reply):
    with Backend(reply) as backend:
        caller = start(monkey, site, f"    Server {backend.address}\n    MaxTries 1\n")
        began = time.monotonic()
        r = caller.call("/", how=how, timeout=400)
        passed = time.monotonic() - began
        assert r.errno == errno.ETIMEDOUT, r
        assert how != "fetch" or TIMED_OUT in r.error or reply is slow_head, r.error
        assert 0.35 < passed < 2.5, passed


def test_timeout_ends_a_body_that_arrives_without_a_pause(monkey, site):
    with Backend(endless) as backend:
        caller = start(monkey, site, f"    Server {backend.address}\n    MaxBodySize 1G\n")
        began = time.monotonic()
        r = caller.call("/", how="open", timeout=300)
        assert r.errno == errno.ETIMEDOUT and time.monotonic() - began < 5


def test_timeout_includes_redirects(monkey, site):
    with Backend(slow_redirects) as backend:
        caller = start(monkey, site, f"    Server {backend.address}\n")
        r = caller.call("/", redirects=20, timeout=500)
        assert r.errno == errno.ETIMEDOUT and TIMED_OUT in r.error
        assert 2 <= len(backend.requests) <= 4


def test_timeout_replaces_the_one_of_the_section(monkey, site):
    def reply(request):
        time.sleep(0.6)
        return response("here")

    with Backend(reply) as backend:
        caller = start(monkey, site, f"    Server {backend.address}\n    Timeout 200ms\n    MaxTries 1\n")
        assert caller.call("/", timeout=5000).body == b"here"
        assert caller.call("/").errno == errno.ETIMEDOUT


def test_worker_serves_other_requests_during_a_call_with_a_timeout(monkey, site):
    with Backend(slow_head) as backend:
        caller = start(monkey, site, f"    Server {backend.address}\n")
        waiting = caller.server.connect()
        waiting.send(b"GET /call?timeout=1000 HTTP/1.1\r\nHost: x\r\n\r\n")
        began = time.monotonic()
        assert caller.server.get("/").status in (200, 403, 404)
        assert time.monotonic() - began < 0.9
        assert TIMED_OUT.encode() in waiting.read().body
        waiting.close()


# ---- The request ID ----

def test_request_id_is_sent_on(monkey, site):
    with Backend(lambda request: response(request.get("X-Request-Id") or "none")) as backend:
        caller = start(monkey, site, f"    Server {backend.address}\n{TRUSTED}", plugins=["security"])
        assert caller.call("/", fields=[("X-Request-Id", "abc-1")]).body == b"abc-1"
        assert re.fullmatch(b"[0-9a-f]{32}", caller.call("/").body)
        assert re.fullmatch(b"[0-9a-f]{32}", caller.call("/", fields=[("X-Request-Id", "not valid!")]).body)
        assert caller.call("/", id="own").body == b"own"
        assert len(backend.requests[-1].all("X-Request-Id")) == 1
        caller.server.stop()
        caller.server.stop()
        caller = start(monkey, site, f"    Server {backend.address}\n")
        assert re.fullmatch(b"[0-9a-f]{32}", caller.call("/", fields=[("X-Request-Id", "abc-1")]).body), "the client is no trusted proxy"
        caller.server.stop()
        caller = start(monkey, site, f"    Server {backend.address}\n    SendRequestId off\n")
        assert caller.call("/", fields=[("X-Request-Id", "abc-1")]).body == b"none"
        assert caller.call("/", id="own").body == b"own"
