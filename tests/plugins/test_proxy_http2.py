# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 to backends: requests and responses of all forms, flow control, and the life of a connection."""
import concurrent.futures
import signal
import socket
import threading
import time

import pytest

import h2frames as h2
from backend import Backend
from client import BadReply
from http2_backend import Http2Backend, Http2Session, answer
from monkey import PROTOCOLS
from proc import wait_until

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
over_http2 = pytest.mark.parametrize("protocol", ["h2"], indirect=True)


@pytest.fixture
def proxy(monkey):
    """`proxy(backend, options)` starts the server; `keys` are those of an [UPSTREAM]."""
    def start(backend, options="", keys=None, scheme="h2c", **how):
        name = "group" if keys is not None else backend.address
        lines = "".join(f"    {key}\n" for key in (keys or "").splitlines())
        upstream = f"[UPSTREAM]\n    Name group\n    Server {backend.address}\n{lines}\n" if keys is not None else ""
        return monkey(plugins=["proxy"], sections=f"{upstream}[ROUTES]\n    /* proxy {scheme}://{name} {options}\n", **how)

    return start


# ---- Requests and responses ----

@every_protocol
def test_http2_backend_receives_request(proxy):
    with Http2Backend(lambda _: answer("hi", fields=[("x-own", "1"), ("x-own", "2")])) as backend:
        server = proxy(backend)
        reply = server.get("/a%20b?x=1", fields=[("X-Own", "value"), ("Cookie", "a=b"), ("Connection", "X-Hop"), ("X-Hop", "1")]
                           if server.protocol in ("h1", "h1-tls") else [("X-Own", "value"), ("Cookie", "a=b")])
        assert (reply.status, reply.text, reply.all("X-Own")) == (200, "hi", ["1", "2"])
        assert reply.get("Via") == "2 monkey"
        (request,) = backend.requests
        assert (request.method, request.target) == ("GET", "/a%20b?x=1")
        fields = dict(request.fields)
        assert fields[":scheme"] == "http" and fields["x-own"] == "value" and fields["cookie"] == "a=b"
        assert fields["x-forwarded-for"] == "127.0.0.1" and fields[":authority"]
        assert not {"host", "connection", "x-hop", "te", "transfer-encoding"} & set(fields)


@every_protocol
@pytest.mark.parametrize("options", ["", "stream"])
@pytest.mark.parametrize("size", [1, 20_000, 70_000, 900_000])
def test_http2_backend_bodies_pass_in_both_directions(proxy, size, options):
    with Http2Backend(lambda request: answer(request.body[::-1])) as backend:
        content = bytes(i % 251 for i in range(size))
        assert proxy(backend, options).get("/", "POST", body=content).body == content[::-1]
        assert backend.requests[0].get("content-length") == str(size)


@every_protocol
def test_http2_backend_response_with_length_and_trailers(proxy):
    with Http2Backend(lambda _: answer("hello", fields=[("content-length", "5")], trailers=[("x-sum", "7")])) as backend:
        reply = proxy(backend).get("/", fields=[("TE", "trailers")])
        assert reply.text == "hello" and reply.get("Content-Length") == "5"


@over_http2
@pytest.mark.parametrize("option", ["", "stream"])
@pytest.mark.parametrize("fields", [[], [("content-length", "5")]])
def test_trailers_of_a_body_that_arrives_with_its_head_pass(proxy, option, fields):
    with Http2Backend(lambda _: answer("hello")) as backend:
        server = proxy(backend, option)
        request = h2.request(method="POST", fields=[("te", "trailers"), *fields])
        with socket.create_connection(server.addresses[0], timeout=20) as client:
            client.sendall(h2.PREFACE + h2.settings() + h2.headers(1, h2.block_of(request), end=False) +
                           h2.data(1, b"hello") + h2.headers(1, h2.block_of([("x-sum", "7")])))
            wait_until(lambda: backend.requests, "the request has arrived")
        assert backend.requests[0].body == b"hello" and backend.requests[0].trailers == [("x-sum", "7")]


@every_protocol
def test_http2_backend_trailers_pass_in_both_directions(proxy):
    with Http2Backend(lambda request: answer("hello", trailers=[("x-sum", request.trailers[0][1])])) as backend:
        with proxy(backend, "stream").connect() as c:
            c.ask("/", "POST", [("TE", "trailers")], streamed=True)
            c.more(b"content")
            c.done([("x-in", "seven")])
            reply = c.read()
            assert reply.text == "hello" and ("x-sum", "seven") in [(n.lower(), v) for n, v in reply.trailers]
        (request,) = backend.requests
        assert request.body == b"content" and request.trailers == [("x-in", "seven")] and dict(request.fields)["te"] == "trailers"


@pytest.mark.parametrize("status", [204, 304])
def test_http2_backend_statuses_without_body(proxy, status):
    with Http2Backend(lambda _: answer("", status, [("etag", '"x"')])) as backend:
        server = proxy(backend)
        with server.connect() as c:
            for _ in range(2):
                assert c.ask("/").read().status == status
        assert backend.connections == 1


def test_http2_backend_head_request_keeps_length(proxy):
    with Http2Backend(lambda _: answer("", fields=[("content-length", "1234")])) as backend:
        reply = proxy(backend).get("/", "HEAD")
        assert (reply.status, reply.get("Content-Length"), reply.body) == (200, "1234", b"")


def test_http2_backend_early_hints_pass(proxy):
    def reply(request):
        request.session.head(request.stream, 103, [("link", "</a.css>; rel=preload")])
        return answer("hello")

    with Http2Backend(reply) as backend, proxy(backend).connect() as c:
        c.ask("/")
        assert c.read_interim().status == 103
        assert c.read().text == "hello"


def test_http2_backend_may_respond_before_the_upload_ends(proxy):
    with Http2Backend(lambda _: answer("no", 403), early=True) as backend, proxy(backend, "stream").connect() as c:
        c.ask("/", "POST", streamed=True)
        c.more(b"x" * 1000)
        assert c.read().status == 403
        wait_until(lambda: backend.sessions[0].resets, "the backend receives RST_STREAM")


# ---- Many streams on one connection ----

def test_http2_backend_streams_share_a_connection(proxy):
    gate = threading.Barrier(12)

    def reply(_):
        gate.wait(20)
        return answer("all at once")

    with Http2Backend(reply) as backend:
        server = proxy(backend)
        server_get = lambda: server.get("/").text
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            assert {each.result() for each in [pool.submit(server_get) for _ in range(12)]} == {"all at once"}
        assert backend.connections == 1


def test_http2_backend_max_concurrent_streams_opens_more_connections(proxy):
    gate = threading.Barrier(6)

    def reply(_):
        gate.wait(20)
        return answer("all at once")

    with Http2Backend(reply, settings={h2.STREAMS_MAX: 2}) as backend:
        server = proxy(backend)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            calls = [pool.submit(lambda: server.get("/").text) for _ in range(6)]
            assert {each.result() for each in calls} == {"all at once"}
        assert backend.connections >= 3


def test_http2_backend_max_connections_counts_streams(proxy):
    running, most, lock = [0], [0], threading.Lock()

    def reply(_):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.1)
        with lock:
            running[0] -= 1
        return answer("done")

    with Http2Backend(reply) as backend:
        server = proxy(backend, keys="MaxConnections 2\nMaxConnectionsPerAddress 0")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert {each.result() for each in [pool.submit(lambda: server.get("/").text) for _ in range(8)]} == {"done"}
        assert most[0] == 2


def test_http2_backend_slow_client_stops_no_other_stream(proxy):
    with Http2Backend(lambda r: answer(b"x" * 4_000_000 if r.target == "/large" else b"small")) as backend:
        server = proxy(backend, "stream")
        with server.connect(receive_buffer=4096) as slow:
            slow.ask("/large")
            slow.read_head()
            time.sleep(0.3)
            assert server.get("/").text == "small"
            assert backend.connections == 1


# ---- Flow control and SETTINGS ----

def test_http2_backend_initial_window_may_grow_later(proxy):
    got = []

    def talk(session):
        request = session.request()
        assert request.is_open
        session.send(h2.settings({h2.INITIAL_WINDOW: 70_000}))
        session.body(request)
        got.append(len(request.body))
        session.head(request.stream, 200, end=True)
        session.next()

    with Http2Backend(script=talk, settings={h2.INITIAL_WINDOW: 0}) as backend:
        assert proxy(backend).get("/", "POST", body=b"x" * 60_000).status == 200
        assert got == [60_000]


def test_http2_backend_reduced_header_table_is_confirmed(proxy):
    blocks = []

    def talk(session):
        for _ in range(2):
            kind, _, stream, payload = session.next()
            assert kind == h2.HEADERS
            blocks.append(payload[:1])
            session.head(stream, 200, end=True)

    with Http2Backend(script=talk, settings={h2.TABLE_SIZE: 0}) as backend, proxy(backend).connect() as c:
        assert [c.ask("/").read().status for _ in range(2)] == [200, 200]
        assert blocks[0] == b"\x20" and blocks[1] != b"\x20"


def test_http2_backend_ping_is_acknowledged(proxy):
    def talk(session):
        request = session.request()
        session.send(h2.ping(b"12345678"))
        with pytest.raises(EOFError):
            while not session.pings:
                session.head(request.stream, 200, end=True)
                session.next()

    with Http2Backend(script=talk) as backend:
        assert proxy(backend).get("/").status == 200
        wait_until(lambda: backend.sessions[0].pings, "the PING is acknowledged")


# ---- Cancelling and resetting ----

@every_protocol
def test_http2_backend_learns_that_the_client_has_gone(proxy):
    with Http2Backend(lambda _: None) as backend:
        server = proxy(backend)
        with server.connect() as c:
            c.ask("/")
            wait_until(lambda: backend.requests, "the backend has the request")
        wait_until(lambda: backend.sessions[0].resets, "the backend receives RST_STREAM")
        assert set(backend.sessions[0].resets.values()) == {h2.ERRORS.index("CANCEL")}
        assert backend.connections == 1


@pytest.mark.parametrize("code", ["INTERNAL_ERROR", "CANCEL", "NO_ERROR", "HTTP_1_1_REQUIRED"])
def test_http2_backend_reset_before_the_head_gives_502(proxy, code):
    def reply(request):
        request.session.send(h2.rst_stream(request.stream, code))

    with Http2Backend(reply) as backend:
        server = proxy(backend)
        assert server.get("/").status == 502
        assert server.get("/").status == 502
        assert backend.connections == 1


@over_http2
@pytest.mark.parametrize("code", ["INTERNAL_ERROR", "CANCEL", "ENHANCE_YOUR_CALM"])
def test_http2_backend_reset_after_the_head_resets_the_client(proxy, code):
    def reply(request):
        request.session.head(request.stream, 200)
        request.session.data(request.stream, b"part")
        time.sleep(0.2)
        request.session.send(h2.rst_stream(request.stream, code))

    with Http2Backend(reply) as backend, proxy(backend, "stream").connect() as c:
        c.ask("/")
        with pytest.raises(BadReply):
            c.read()
        assert c.stream.reset == code


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_http2_backend_refused_stream_is_sent_again(proxy, method):
    def reply(request):
        if len(backend.requests) == 1:
            request.session.send(h2.rst_stream(request.stream, "REFUSED_STREAM"))
            return None
        return answer(request.body or b"empty")

    with Http2Backend(reply) as backend:
        assert proxy(backend).get("/", method, body=b"content" if method == "POST" else b"").body in (b"content", b"empty")
        assert len(backend.requests) == 2


def test_http2_backend_that_always_refuses_gives_502(proxy):
    with Http2Backend(lambda request: request.session.send(h2.rst_stream(request.stream, "REFUSED_STREAM"))) as backend:
        assert proxy(backend).get("/", "POST", body=b"x").status == 502
        assert len(backend.requests) == 4


# ---- GOAWAY ----

def test_http2_backend_goaway_drains_the_connection(proxy):
    gate = threading.Event()

    def reply(request):
        if request.target == "/slow":
            request.session.send(h2.goaway(request.stream))
            gate.wait(20)
        return answer(request.target)

    with Http2Backend(reply) as backend:
        server = proxy(backend)
        with server.connect() as c:
            c.ask("/slow")
            wait_until(lambda: backend.requests, "the backend has the request")
            time.sleep(0.1)
            assert server.get("/next").text == "/next"
            assert backend.connections == 2
            gate.set()
            assert c.read().text == "/slow"
        wait_until(lambda: backend.sessions[0].goaway == 0, "the proxy sends GOAWAY")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_http2_backend_goaway_below_the_stream_repeats_the_request(proxy, method):
    def reply(request):
        if request.connection == 1:
            request.session.send(h2.goaway(request.stream - 2 if request.stream > 1 else 0))
            return None
        return answer("again")

    with Http2Backend(reply) as backend:
        assert proxy(backend).get("/", method, body=b"x" if method == "POST" else b"").text == "again"
        assert backend.connections == 2


def test_http2_backend_that_closes_an_idle_connection_gets_a_new_one(proxy):
    with Http2Backend() as backend:
        server = proxy(backend)
        assert server.get("/").text == "hello"
        backend.drop()
        time.sleep(0.1)
        assert server.get("/", "POST", body=b"x").text == "hello"
        assert backend.connections == 2


def test_http2_backend_idle_connection_is_closed_with_goaway(proxy):
    with Http2Backend() as backend:
        server = proxy(backend, keys="KeepAliveTimeout 500ms")
        assert server.get("/").text == "hello"
        wait_until(lambda: backend.sessions[0].goaway == 0, "the proxy sends GOAWAY")


def test_http2_backend_keepalive_0_closes_after_each_request(proxy):
    with Http2Backend() as backend:
        server = proxy(backend, keys="KeepAliveConnections 0")
        assert [server.get("/").text for _ in range(3)] == ["hello"] * 3
        assert backend.connections == 3


# ---- WebSocket ----

def echo_tunnel(session):
    """Accepts extended CONNECT, echoes the bytes of the tunnel in capitals, and ends when the client ends."""
    request = session.request()
    backend_fields.append(dict(request.fields))
    session.head(request.stream, 200, [("sec-websocket-protocol", "chat")])
    session.data(request.stream, b"hello")
    while request.is_open:
        _, flags, _, payload = session.next()
        request.is_open = not flags & h2.END_STREAM
        if payload:
            session.data(request.stream, payload.upper())
    session.data(request.stream, b"bye", end=True)
    session.next()


backend_fields = []
WEBSOCKET = [("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Protocol", "chat")]
KEY = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")


def test_websocket_uses_a_stream_of_http2(proxy):
    with Http2Backend(script=echo_tunnel, settings={h2.CONNECT_PROTOCOL: 1}) as backend, proxy(backend).connect() as c:
        c.ask("/ws", fields=[("Connection", "Upgrade"), ("Upgrade", "websocket"), KEY, *WEBSOCKET])
        reply = c.read_head()
        assert reply.status == 101 and reply.get("Sec-WebSocket-Accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        assert reply.get("Sec-WebSocket-Protocol") == "chat"
        assert c.read_exactly(5) == b"hello"
        c.send(b"abc")
        assert c.read_exactly(3) == b"ABC"
        c.shut()
        assert c.read_exactly(3) == b"bye"
        fields = backend_fields[-1]
        assert (fields[":method"], fields[":protocol"], fields[":path"]) == ("CONNECT", "websocket", "/ws")
        assert not {"sec-websocket-key", "upgrade", "connection"} & set(fields)


@over_http2
def test_websocket_of_http2_clients_uses_a_stream_of_http2(proxy):
    with Http2Backend(script=echo_tunnel, settings={h2.CONNECT_PROTOCOL: 1}) as backend, proxy(backend).connect() as c:
        c.open([(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":authority", "localhost"),
                (":path", "/ws"), *[(n.lower(), v) for n, v in WEBSOCKET]], end=False)
        assert c.read_head().status == 200
        assert c.read_exactly(5) == b"hello"
        c.more(b"x" * 100)
        assert c.read_exactly(100) == b"X" * 100


@pytest.mark.parametrize("options", ["", "stream"])
def test_websocket_falls_back_to_http1_if_the_backend_has_no_tunnels(proxy, options):
    """The backend accepts both protocols on one port, as servers with HTTP/2 by prior knowledge do."""
    def talk(connection):
        if connection.recv(3, socket.MSG_PEEK) == b"PRI":
            session = Http2Session(connection)
            while True:
                session.head(session.request().stream, 200, end=True)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        heads.append(head)
        connection.sendall(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                           b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello")
        while data := connection.recv(65536):
            connection.sendall(data.upper())

    heads = []
    with Backend(script=talk) as backend:
        server = proxy(backend, options)
        for _ in range(2):  # without and with an open connection
            with server.connect() as c:
                c.ask("/ws", fields=[("Connection", "Upgrade"), ("Upgrade", "websocket"), KEY, *WEBSOCKET])
                assert c.read_head().status == 101
                assert c.read_exactly(5) == b"hello"
                c.send(b"abc")
                assert c.read_exactly(3) == b"ABC"
            assert server.get("/").status == 200
        assert len(heads) == 2 and heads[0].startswith(b"GET /ws HTTP/1.1\r\n")


def test_websocket_refused_by_the_backend(proxy):
    with Http2Backend(lambda _: answer("no", 403), settings={h2.CONNECT_PROTOCOL: 1}, early=True) as backend:
        with proxy(backend).connect() as c:
            c.ask("/ws", fields=[("Connection", "Upgrade"), ("Upgrade", "websocket"), KEY, *WEBSOCKET])
            reply = c.read()
            assert (reply.status, reply.text) == (403, "no")


# ---- Silent backends ----

@pytest.mark.parametrize("options", ["response_timeout=300ms", "response_timeout=off total_timeout=300ms max_tries=1"])
def test_http2_backend_that_does_not_respond_gives_504_and_loses_its_connection(proxy, options):
    def talk(session):
        session.request()
        if len(backend.sessions) == 1:
            time.sleep(5)
        session.head(1, 200, end=True)
        session.next()

    with Http2Backend(script=talk) as backend:
        server = proxy(backend, options, keys="ConnectTimeout 500ms")
        assert server.get("/").status == 504
        begun = time.monotonic()
        wait_until(lambda: server.get("/").status == 200, "the proxy recovers")
        assert backend.connections == 2 and time.monotonic() - begun < 4, "the first connection was not closed by its PING"


def test_http2_backend_without_settings_is_a_failed_connection(proxy):
    with Http2Backend(first=b"") as backend:
        start = time.monotonic()
        assert proxy(backend, keys="ConnectTimeout 500ms").get("/").status in (502, 504)
        assert time.monotonic() - start < 5


# ---- Health checks, reload, configuration ----

def test_http2_backend_health_check_uses_http2(proxy):
    healthy = [True]
    with Http2Backend(lambda r: answer(r.target, 200 if healthy[0] or r.target != "/health" else 500)) as backend:
        server = proxy(backend, keys="HealthCheck /health\nHealthInterval 100ms\nHealthFall 1")
        wait_until(lambda: any(r.target == "/health" for r in backend.requests), "the backend is checked")
        assert server.get("/x").text == "/x"
        healthy[0] = False
        wait_until(lambda: "fails its health check" in server.log, "the check fails")


def test_http2_and_http1_cannot_share_an_upstream(monkey):
    server = monkey(plugins=["proxy"], sections="[UPSTREAM]\n    Name u\n    Server 127.0.0.1:1\n"
                    "[ROUTES]\n    /a/* proxy http://u\n    /* proxy h2c://u\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "another kind of handler uses the upstream `u`" in server.log


def test_unknown_scheme_is_an_error(monkey):
    server = monkey(plugins=["proxy"], sections="[ROUTES]\n    /* proxy grpc://127.0.0.1:1\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "h2c://127.0.0.1:50051` for HTTP/2 and gRPC" in server.log


@pytest.mark.processes("reloads")
def test_http2_backend_request_survives_a_reload(proxy):
    gate = threading.Event()

    def reply(request):
        if request.target == "/slow":
            gate.wait(20)
        return answer(request.target)

    with Http2Backend(reply) as backend:
        server = proxy(backend, workers=2)
        with server.connect() as c:
            c.ask("/slow")
            wait_until(lambda: backend.requests, "the backend has the request")
            server.tell(signal.SIGHUP)
            wait_until(lambda: server.get("/next").text == "/next", "the proxy recovers")
            gate.set()
            assert c.read().text == "/slow"
