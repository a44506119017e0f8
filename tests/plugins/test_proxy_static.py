# SPDX-License-Identifier: Apache-2.0
"""The proxy together with other plugins and host settings, which also apply to backend responses, including those on reused
connections."""
import contextlib
import json

import pytest

import h2frames as h2
from attacker import attack
from backend import Backend, response
from monkey import PROTOCOLS
from proc import wait_until

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)


@pytest.fixture
def serve(monkey):
    """Starts the server with one additional plugin and its section."""
    def start(plugin, section, to, options=""):
        lines = "".join(f"    {line}\n" for line in section)
        return monkey(plugins=["proxy", plugin], workers=1,
                      sections=f"[{plugin.upper()}]\n{lines}[ROUTES]\n    /* proxy http://{to.address} {options}\n")

    return start


# ---- headers ----

RULES = ["Set /set/* X-Own ours", "Add /add/* X-Own ours", "Remove /remove/* X-Own", "Remove /remove/* Set-Cookie", "Remove /remove/* Via",
         "Set status:5xx X-Error yes", "Set /type/* Content-Type text/plain"]
OF_SERVER = [("X-Own", "1"), ("Set-Cookie", "a=1"), ("X-Own", "2"), ("Set-Cookie", "b=2"), ("Content-Type", "text/html")]
CHANGED = {"set": ["ours"], "add": ["1", "2", "ours"], "remove": [], "other": ["1", "2"], "type": ["1", "2"], "late": ["1", "2"]}


def check_fields(got, name, size):
    assert (got.status, len(got.body)) == (200, size) and got.all("X-Own") == CHANGED[name]
    assert got.all("Set-Cookie") == ([] if name == "remove" else ["a=1", "b=2"]) and ("Via" in got) == (name != "remove")
    assert got.all("Content-Type") == ["text/plain" if name == "type" else "text/html"] and "X-Error" not in got


@every_protocol
def test_headers_plugin_changes_proxied_responses_independently(serve):
    sizes = {name: 10 + 30_000 * n for n, name in enumerate(CHANGED)}

    def reply(request):
        name = request.target.split("/")[1]
        whole = response(b"x" * sizes[name], fields=OF_SERVER)
        return whole if name != "late" else [whole[:100], whole[100:-1], whole[-1:]]

    with Backend(reply) as backend:
        server = serve("headers", RULES, backend)
        with server.connect() as c:
            for name in [*CHANGED, *reversed(CHANGED)]:
                check_fields(c.get(f"/{name}/x"), name, sizes[name])
        assert backend.connections == 1
        backend.stop()
        got = server.get("/other/")
        assert (got.status, got["X-Error"]) == (502, "yes")


# ---- limits ----

@every_protocol
def test_limits_plugin_refuses_before_backend(serve):
    with Backend() as backend:
        server = serve("limits", ["Requests /few 2/h"], backend)
        with server.connect() as c:
            got = [c.get("/few" if n % 2 else "/many", "POST", body=b"x" * 9) for n in range(8)]
        assert [each.status for each in got] == [200, 200, 200, 200, 200, 429, 200, 429] and "Retry-After" in got[5]
        assert [request.target for request in backend.requests] == ["/many", "/few", "/many", "/few", "/many", "/many"]
        assert backend.connections == 1


@every_protocol
def test_limits_plugin_delay_is_not_a_backend_timeout(serve):
    """The backend has sent everything, and the client receives it in portions."""
    body = bytes(i % 251 for i in range(20_000))
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    with Backend(lambda request: chunks if request.target == "/chunks" else response(body)) as backend:
        server = serve("limits", ["Bandwidth 64K burst 1K"], backend, "read_timeout=20ms")
        assert server.get("/chunks").body == body
        assert server.get("/length").body == body and backend.connections == 1


@pytest.mark.parametrize("protocol", ["h1", "h1-tls"], indirect=True)
def test_limits_plugin_delayed_client_disconnect_frees_backend(serve):
    ended = []

    def script(connection):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 100_000)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        ended.append(True)

    with Backend(script=script) as backend:
        server = serve("limits", ["Bandwidth 4K"], backend)
        with server.connect() as c:
            assert c.ask("/").read_head().status == 200
        wait_until(lambda: ended, "the backend's connection ends")


# ---- Mirrors and uploads ----

def upload(c, body, streamed):
    c.ask("/up", "PUT", body=b"" if streamed else body, streamed=streamed)
    if streamed:
        for piece in (body[:5000], body[5000:]):
            if piece:
                c.more(piece)
        c.done()


@pytest.mark.parametrize("protocol", ["h1", "h2-tls"], indirect=True)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("size", [0, 9000, 60_000])
def test_mirror_does_not_consume_upload(monkey, streamed, size):
    """A small body is copied; a large one is sent only to the backend. A mirror that reads nothing affects neither request."""
    body = bytes(i % 251 for i in range(size))
    is_copied = size < 16384
    with Backend() as origin, Backend() as shadow, Backend(script=lambda connection: None) as closes:
        for mirror in (shadow, closes):
            server = monkey(plugins=["proxy"], workers=1, sections=f"[ROUTES]\n    /* proxy http://{origin.address} "
                                                                   f"mirror=http://{mirror.address}\n")
            with server.connect() as c:
                upload(c, body, streamed)
                assert json.loads(c.read().text)["body"].encode("latin-1") == body
                assert c.get("/end").status == 200
        # The copies are sent over separate connections and may arrive in either order.
        wait_until(lambda: {request.target for request in shadow.requests} >= ({"/up", "/end"} if is_copied else {"/end"}), "the copies")
    copies = [request.body for request in shadow.requests if request.target == "/up"]
    assert copies == ([body] if is_copied else [])


# ---- Hosts ----

def test_proxy_errors_use_error_pages_of_host(monkey, site):
    for status in (502, 504):
        site.add(f"{status}.html", f"our own {status}")
    with Backend(script=lambda connection: connection.recv(65536) and connection.recv(65536)) as silent:
        server = monkey(plugins=["proxy"], sections=f"[ERROR_PAGES]\n    502 502.html\n    504 504.html\n[ROUTES]\n    /502 proxy "
                                                    f"http://unix:/nowhere\n    /504 proxy http://{silent.address} response_timeout=100ms\n")
        for status in (502, 504):
            got = server.get(f"/{status}")
            assert (got.status, got.text) == (status, f"our own {status}")


# ---- HTTP/2 ----

@pytest.mark.parametrize("protocol", ["h2"], indirect=True)
@pytest.mark.parametrize("when", ["head", "content", "queue"])
def test_proxy_stream_reset_cancels_request(monkey, when):
    ended = []

    def script(connection):
        connection.recv(65536)
        if when == "content":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin")
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        ended.append(True)

    with Backend(script=script) as backend:
        group = f"[UPSTREAM]\n    Name group\n    Server {backend.address}\n    MaxConnections 1\n"
        server = monkey(plugins=["proxy"], workers=1, sections=group + "[ROUTES]\n    /* proxy http://group\n")
        with server.connect() as c:
            first = c.ask("/first").stream
            if when == "content":
                c.read_head()
            wait_until(lambda: backend.connections == 1, "the backend has the request")
            if when == "queue":
                c.send(h2.rst_stream(c.ask("/second").stream.number))
            c.send(h2.rst_stream(first.number))
            wait_until(lambda: ended, "the backend's connection ends")
            assert backend.connections == 1


BREAKS = {"too much content": lambda i: h2.data(i, b"x" * 11), "a window of nothing": lambda i: h2.window_update(i, 0),
          "a window too large": lambda i: h2.window_update(i, h2.WINDOW_MAX), "a reset of its own": h2.rst_stream}


@pytest.mark.parametrize("protocol", ["h2"], indirect=True)
@pytest.mark.parametrize("how", BREAKS)
def test_proxy_deliberate_stream_resets_are_limited(monkey, how):
    """MadeYouReset (CVE-2025-8671) and Rapid Reset: the server disconnects a client that provokes stream resets, and cancels
    the client's requests."""
    def script(connection):
        connection.recv(65536)
        with contextlib.suppress(OSError):
            connection.recv(1)

    with Backend(script=script) as backend:
        server = monkey(plugins=["proxy"], workers=1, server="HTTP2AbuseBudget 200",
                        sections=f"[ROUTES]\n    /* proxy http://{backend.address} stream\n")
        block = h2.block_of(h2.request("/x", "POST", [("content-length", "10")]))
        verdict = attack(server, (h2.headers(i, block, end=False) + BREAKS[how](i) for i in range(1, 20_000, 2)))
        assert verdict == "ENHANCE_YOUR_CALM"
        wait_until(lambda: not backend.open, "all of its requests are cancelled")
        assert backend.connections <= 60, "a reset costs 5 of 200"
