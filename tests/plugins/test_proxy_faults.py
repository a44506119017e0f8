# SPDX-License-Identifier: Apache-2.0
"""The proxy under failing allocations, in the release program."""
import pytest

from backend import Backend, response
from client import Closed
from fault_injection import Fault, fail_in_a_row, failing_allocations, recover
from proc import RELEASE

LARGE = b"".join(b"%07d\n" % i for i in range(40_000))
FIELDS = [("Location", "http://back.example/app/x y"), ("Link", "</app/a>; rel=next"), ("Refresh", "5; url=/app/y"),
          ("Set-Cookie", "a=b; Path=/app/; Domain=back.example"), ("Connection", "X-Gone"), ("X-Gone", "1")]
MORE = [(f"X-Field-{i}", "v" * 100) for i in range(60)]  # too many headers for the first memory block of a request
BODIES = {b"small": b"small", b"large": LARGE, b"fields": b"fields", b"chunks": b"abc", b"early": b"early"}
UPGRADE = b"Connection: Upgrade\r\nUpgrade: chat\r\n"

REQUESTS = [b"GET /app/small HTTP/1.1\r\nHost: x\r\nCookie: a\r\nConnection: X-Mine\r\nX-Mine: 1\r\n\r\n",
            b"GET /app/large HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /app/fields HTTP/1.1\r\nHost: x\r\n\r\n", b"HEAD /app/large HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /app/chunks HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /app/early HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST /app/small HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000,
            b"POST /app/small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-End: 1\r\n\r\n",
            b"GET /app/tunnel HTTP/1.1\r\nHost: x\r\n" + UPGRADE + b"\r\n"]


def answer(request):
    kind = request.target.rpartition("/")[2]
    if kind == "chunks":
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n"
    if kind == "early":
        return b"HTTP/1.1 103 Early Hints\r\nLink: </app/a.css>; rel=preload\r\n\r\n" + response("early", fields=FIELDS)
    if kind == "tunnel":
        return b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\nwelcome"
    head = response(LARGE if kind == "large" else kind, fields=FIELDS + (MORE if kind == "fields" else []))
    return head[:head.index(b"\r\n\r\n") + 4] if request.method == "HEAD" else head


@pytest.fixture
def backend():
    with Backend(answer) as it:
        yield it


@pytest.fixture
def start(monkey, tmp_path, backend):
    if not RELEASE.exists():
        pytest.skip("needs build/release")
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool").chmod(0o777)
    fault = Fault("failmalloc", tmp_path)
    top = f"[UPSTREAM]\n    Name back\n    Server {backend.address}\n    MaxConnections 1\n    MaxFails 0\n    QueueTimeout 5s\n"
    return monkey(plugins=["proxy"], server=f"MinRate off\nOpenFileCache off\nAccessLog off\nSpoolFolder {tmp_path / 'spool'}", top=top,
                  sections="[ROUTES]\n    /app/* proxy http://back/ sticky=s tunnel=1s\n", **fault.how), fault


def ask(server, data):
    """Returns True if the response was correct, and False if it was a proper refusal; anything else fails the test."""
    with server.connect() as c:
        c.send(data)
        if UPGRADE in data:
            head = c.read_until(b"\r\n\r\n")
            if b" 101 " in head:
                return c.read_exactly(7) == b"welcome"
            assert b" 502 " in head or b" 503 " in head, head
            return False
        method, path = data.split()[:2]
        reply = c.read(method.decode())
        assert reply.status in (200, 500, 502, 503), (data[:60], reply.status)
        assert reply.status != 200 or reply.body == (b"" if method == b"HEAD" else BODIES[path.rpartition(b"/")[2]]), data[:60]
        return reply.status == 200


def play(server):
    """Returns the number of refused requests."""
    refused = 0
    for data in REQUESTS:
        try:
            refused += not ask(server, data)
        except (Closed, ConnectionResetError, BrokenPipeError):
            refused += 1
    return refused


@pytest.mark.timeout(300)
def test_proxy_survives_failure_of_any_allocation(start):
    """No response is wrong, no worker dies, and the only backend connection does not leak."""
    server, fault = start
    assert play(server) == 0
    for n in failing_allocations(fault, server):
        play(server)
    assert n > 20
    recover(fault, server, play)


@pytest.mark.parametrize("count", [2, 10, 1000])
def test_proxy_survives_several_failures_in_a_row(start, count):
    server, fault = start
    fail_in_a_row(fault, server, count, play)
