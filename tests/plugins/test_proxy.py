# SPDX-License-Identifier: Apache-2.0
"""The reverse proxy, in front of a scripted backend."""
import json
import socket
import threading
import time

import pytest

from backend import Backend, read_fields, response
from client import Closed
from monkey import PROTOCOLS
from proc import wait_until

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)


@pytest.fixture
def backend():
    with Backend() as each:
        yield each


@pytest.fixture
def proxy(monkey, site):
    """`proxy("/* proxy http://...")` starts the server with these routes."""
    site.add("index.html", "home")

    def start(*routes, upstream="", **how):
        lines = "".join(f"    {route}\n" for route in routes)
        return monkey(plugins=["proxy"], sections=f"{upstream}\n[ROUTES]\n{lines}    /*  static\n", **how)

    return start


def field(request, name):
    return next((value for key, value in request["fields"] if key.lower() == name.lower()), None)


# ---- Requests ----

@every_protocol
def test_proxy_forwards_request(proxy, backend):
    server = proxy(f"/api/* proxy http://{backend.address}")
    request = json.loads(server.get("/api/a%20b?x=1&y=%2F", fields=[("X-Own", "value")]).text)
    assert (request["method"], request["target"]) == ("GET", "/api/a%20b?x=1&y=%2F")
    assert field(request, "X-Own") == "value"
    assert server.get("/index.html").text == "home"


@every_protocol
@pytest.mark.parametrize("size", [1, 100, 20_000, 300_000])
def test_proxy_forwards_bodies_in_both_directions(proxy, size):
    with Backend(lambda request: response(request.body[::-1])) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        content = bytes(i % 251 for i in range(size))
        reply = server.get("/", "POST", body=content)
        assert reply.body == content[::-1]
        assert backend.requests[0].get("Content-Length") == str(size)


def test_proxy_drops_hop_by_hop_headers(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address}")
    server.get("/", fields=[("Connection", "X-Hop, close"), ("X-Hop", "1"), ("Keep-Alive", "5"), ("TE", "gzip"),
                            ("Proxy-Authorization", "Basic eA=="), ("Proxy-Connection", "x"), ("X-Stays", "1")])
    names = {name.lower() for name, _ in backend.requests[0].fields}
    assert not names & {"x-hop", "keep-alive", "te", "proxy-authorization", "proxy-connection", "upgrade"}
    assert "x-stays" in names


def test_proxy_adds_forwarded_headers(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address}")
    server.get("/", fields=[("X-Forwarded-For", "6.6.6.6"), ("Forwarded", "for=6.6.6.6"), ("X-Real-IP", "6.6.6.6"),
                            ("X-Forwarded-Proto", "https"), ("Via", "1.0 other")])
    (request,) = backend.requests
    assert request.all("X-Forwarded-For") == ["127.0.0.1"] and request.all("X-Forwarded-Proto") == ["http"]
    assert request.all("Forwarded")[0].startswith("for=127.0.0.1;proto=http;host=")
    assert request.all("X-Real-IP") == [] and request.all("Via") == ["1.0 other, 1.1 monkey"]


def test_proxy_forwarded_append_extends_headers(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address} forwarded=append")
    server.get("/", fields=[("X-Forwarded-For", "6.6.6.6"), ("Forwarded", "for=6.6.6.6")])
    assert backend.requests[0].all("X-Forwarded-For") == ["6.6.6.6, 127.0.0.1"]
    assert backend.requests[0].get("Forwarded").startswith("for=6.6.6.6, for=127.0.0.1;")


def test_proxy_forwarded_append_joins_repeated_headers(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address} forwarded=append")
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nX-Forwarded-For: 6.6.6.6\r\nHost: x\r\nx-forwarded-for: 7.7.7.7, 8.8.8.8\r\n\r\n")
        assert c.read().status == 200
    assert backend.requests[0].all("X-Forwarded-For") == ["6.6.6.6, 7.7.7.7, 8.8.8.8, 127.0.0.1"]


def test_proxy_client_of_unix_socket_is_unknown(proxy, backend, tmp_path):
    at = tmp_path / "socket"
    proxy(f"/* proxy http://{backend.address}", listen=f"unix:{at}")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(at))
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
    assert backend.requests[0].get("X-Forwarded-For") == "unknown"
    assert backend.requests[0].get("Forwarded") == 'for=unknown;proto=http;host="a"'


@pytest.mark.parametrize("header, scheme", [("https", "https"), ("HTTPS, http", "https"), ("http", "http"), ("gopher", "http"),
                                          ("", "http"), (None, "http")])
def test_proxy_forwards_scheme_of_trusted_proxy(proxy, backend, header, scheme):
    server = proxy(f"/a/* proxy http://{backend.address} forwarded=append", f"/r/* proxy http://{backend.address}")
    for path in ("/a/", "/r/"):
        server.get(path, fields=[("X-Forwarded-Proto", header)] if header is not None else [])
    assert [request.all("X-Forwarded-Proto") for request in backend.requests] == [[scheme], ["http"]]


def test_proxy_forwarded_off_passes_client_headers(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address} forwarded=off")
    server.get("/", fields=[("X-Forwarded-For", "6.6.6.6")])
    assert backend.requests[0].all("X-Forwarded-For") == ["6.6.6.6"] and not backend.requests[0].get("Forwarded")


@pytest.mark.parametrize("option, host", [("", "a.example"), ("host=upstream", None), ("host=b.example", "b.example")])
def test_proxy_host_header_is_configurable(proxy, backend, option, host):
    server = proxy(f"/* proxy http://{backend.address} {option}")
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        c.read()
    assert backend.requests[0].all("Host") == [host or backend.address]


# ---- Targets ----

@pytest.mark.parametrize("route, path, target", [
    ("/api/* proxy http://{}", "/api/x", "/api/x"),
    ("/api/* proxy http://{}/", "/api/x", "/x"),
    ("/api/* proxy http://{}/", "/api/", "/"),
    ("/api/* proxy http://{}/v2", "/api/x", "/v2x"),
    ("/api/* proxy http://{}/v2/", "/api/x%2Fy?q", "/v2/x%2Fy?q"),
    ("/api/* proxy http://{}", "/api/%e4%20+", "/api/%e4%20+"),
    ("/api/* proxy http://{}", "/x/../api/%2e/y", "/api/y"),
    ("/api/* proxy http://{}/", "/%61pi/x", "/x"),
    ("/exact proxy http://{}/other", "/exact", "/other"),
])
def test_proxy_target_is_built_from_route(proxy, backend, route, path, target):
    server = proxy(route.format(backend.address))
    assert json.loads(server.get(path).text)["target"] == target


def test_proxy_absolute_target_is_sent_in_origin_form(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address}")
    with server.connect() as c:
        c.send(b"GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n")
        assert json.loads(c.read().text)["target"] == "/x?y"


def test_proxy_rewritten_target_is_sent(monkey, backend):
    server = monkey(plugins=["proxy", "rewrite"], sections=f"[REWRITE]\n    Rewrite glob /old/* /new/%20x\n[ROUTES]\n"
                                                           f"    /* proxy http://{backend.address}\n")
    assert json.loads(server.get("/old/y?z").text)["target"] in ("/new/%20x?z", "/new/%20x")


def test_proxy_encoded_slash_survives_normalization(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address}")
    assert json.loads(server.get("/a/../b%2Fc;d%3B").text)["target"] == "/b%2Fc;d%3B"
    assert json.loads(server.get("/b%2Fc").text)["target"] == "/b%2Fc"


@pytest.mark.parametrize("path, target", [
    ("/api/..;/x", None), ("/api/..;a=b/x", None), ("/api/.;/x", None), ("/api/..;", None), ("/api/%2e%2e;/x", None),
    ("/api/..%3b/x", None), ("/api\\..\\x", None), ("/api/%5c..%5cx", None), ("/api/x%5c..", None),
    ("/api\\x", "/api%5Cx"), ("/api/a;b/..c;d", "/api/a;b/..c;d"), ("/api/%5cx", "/api/%5cx")])
def test_proxy_ambiguous_dot_segments_are_refused(proxy, backend, path, target):
    """Java servers remove path parameters from segments; URL parsers that follow browsers treat a backslash as a slash."""
    server = proxy(f"/* proxy http://{backend.address}")
    with server.connect() as c:
        c.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        reply = c.read()
    assert json.loads(reply.text)["target"] == target if target else reply.status == 400
    assert target or not backend.requests


# ---- Responses ----

@every_protocol
def test_proxy_passes_status_and_headers(proxy):
    def reply(request):
        return response("made", "201 Created", [("X-Own", "1"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"),
                                                ("Connection", "X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5"),
                                                ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")])

    with Backend(reply) as backend:
        got = proxy(f"/* proxy http://{backend.address}").get("/", "POST", body=b"x")
    assert (got.status, got.text) == (201, "made")
    assert got["X-Own"] == "1" and got.all("Set-Cookie") == ["a=1", "b=2"] and got["Via"] == "1.1 monkey"
    assert "X-Hop" not in got and "Keep-Alive" not in got
    assert got["Date"] == "Sun, 06 Nov 1994 08:49:37 GMT"


@every_protocol
@pytest.mark.parametrize("how", ["chunked", "until close"])
def test_proxy_passes_body_without_length(proxy, how):
    def reply(request):
        if how == "chunked":
            return [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b"3;x=y\r\nyou\r\n0\r\n\r\n"]
        return [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", b"you", None]

    def send(request):
        for piece in reply(request):
            if piece is None:
                raise EOFError
            yield piece

    with Backend(send) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        assert [server.get("/").text for _ in range(3)] == ["helloyou"] * 3
        assert backend.connections == (1 if how == "chunked" else 3)


@every_protocol
def test_proxy_large_response_is_complete(proxy):
    body = bytes(range(256)) * 20_000
    with Backend(lambda request: response(body)) as backend:
        assert proxy(f"/* proxy http://{backend.address}").get("/").body == body


@every_protocol
def test_proxy_head_response_has_no_body(proxy):
    def reply(request):
        return response("x" * 1000)[:-1000] if request.method == "HEAD" else response("x" * 1000)

    with Backend(reply) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        got = server.get("/", "HEAD")
        assert got.body == b"" and got["Content-Length"] == "1000"
        assert server.get("/").text == "x" * 1000
        assert backend.connections == 1


@every_protocol
def test_proxy_passes_interim_responses(proxy):
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
    with Backend(lambda request: [b"HTTP/1.1 100 Continue\r\n\r\n", early, response("x")]) as backend:
        got = proxy(f"/* proxy http://{backend.address}").get("/")
        assert got.text == "x" and [(each.status, each["Link"]) for each in got.interim] == [
            (103, "</style.css>; rel=preload")]


@every_protocol
def test_proxy_passes_interim_response_with_many_headers(proxy):
    links = [f"</{'part' * 50}/{i}.css>; rel=preload; as=style" for i in range(60)]
    early = "HTTP/1.1 103 Early Hints\r\n" + "".join(f"Link: {each}\r\n" for each in links) + "\r\n"
    with Backend(lambda request: [early.encode() * 3, response("x")]) as backend:
        got = proxy(f"/* proxy http://{backend.address}").get("/")
        assert got.text == "x" and [each.all("Link") for each in got.interim] == [links] * 3


@every_protocol
def test_proxy_passes_response_trailers(proxy):
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n"
    with Backend(lambda request: chunks) as backend:
        got = proxy(f"/* proxy http://{backend.address}").get("/", fields=[("TE", "trailers")])
        assert got.text == "hello" and ("x-sum", "7") in [(name.lower(), value) for name, value in got.trailers]


def test_proxy_passes_request_trailers(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address}")
    server.get("/", "POST", [("Transfer-Encoding", "chunked")], b"5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n")
    assert backend.requests[0].trailers == [("X-Sum", "7")]


@pytest.mark.parametrize("option, passed", [("", []), ("forwarded=append", []), ("forwarded=off", ["X-Real-IP"]), ("forwarded=off underscores=on", ["X-Real-IP"])])
def test_proxy_drops_forbidden_trailers(proxy, backend, option, passed):
    """A server may treat trailers as headers."""
    server = proxy(f"/* proxy http://{backend.address} {option}")
    server.get("/", "POST", [("Transfer-Encoding", "chunked")], b"5\r\nhello\r\n0\r\nX-Real-IP: 6.6.6.6\r\nX-Sum: 7\r\n"
                                                                b"X_Forwarded_For: 6.6.6.6\r\nProxy-Authorization: x\r\n\r\n")
    assert [name for name, _ in backend.requests[0].trailers if name != "X-Sum"] == passed
    assert ("X-Sum", "7") in backend.requests[0].trailers


# ---- Connections ----

@every_protocol
def test_proxy_reuses_connections(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address}")
    for _ in range(20):
        assert server.get("/").status == 200
    assert backend.connections == 1


def test_proxy_keeps_many_connections(proxy):
    """The proxy keeps more than 32 connections: a page of a busy application needs that many."""
    together = threading.Barrier(40)

    def reply(request):
        together.wait(20)
        return response("fine")

    with Backend(reply) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        for _ in range(2):
            clients = [server.connect() for _ in range(40)]
            for c in clients:
                c.ask("/")
            assert {c.read("GET").text for c in clients} == {"fine"}
            for c in clients:
                c.close()
        assert backend.connections == 40


@every_protocol
@pytest.mark.parametrize("pad", [" ", "    ", "\t", "        ;x=y "])
def test_proxy_accepts_padded_chunk_sizes(proxy, pad):
    """Some devices pad the line of the chunk size to a fixed length; a client that does so gets 400."""
    chunks = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5{pad}\r\nhello\r\n6{pad}\r\n world\r\n0{pad}\r\n\r\n"
    with Backend(lambda request: chunks.encode()) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        assert [server.get("/").text for _ in range(3)] == ["hello world"] * 3
        assert backend.connections == 1


def test_proxy_replaces_kept_connection_that_was_closed(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address}")
    for _ in range(20):
        assert server.get("/").status == 200
        backend.drop()
    assert server.get("/", "POST", body=b"x").status == 200


def test_proxy_retries_on_connection_closed_at_reuse(proxy):
    """The backend reads the second request and closes the connection without a response."""
    def reply(request):
        return None if [a.connection for a in backend.requests].count(request.connection) > 1 else response("fine")

    with Backend(reply) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        assert [server.get("/").text for _ in range(6)] == ["fine"] * 6


def test_proxy_retries_on_408_of_kept_connection(proxy):
    """A server may send 408 on an idle connection just when the next request arrives (RFC 9110, 15.5.9)."""
    def reply(request):
        again = [a.connection for a in backend.requests].count(request.connection) > 1
        return response("late", "408 Request Timeout", [("Connection", "close")]) if again else response("fine")

    with Backend(reply) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        assert [server.get("/").text for _ in range(4)] == ["fine"] * 4
        assert server.get("/", "POST", body=b"x").status == 408


def test_proxy_never_retries_post(proxy):
    def reply(request):
        return None if len(backend.requests) > 1 else response("fine")

    with Backend(reply) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        assert server.get("/", "POST", body=b"1").text == "fine"
        assert server.get("/", "POST", body=b"2").status == 502
        assert [request.body for request in backend.requests] == [b"1", b"2"]


def test_proxy_connects_to_unix_socket(proxy, tmp_path):
    with Backend(family=socket.AF_UNIX, at=str(tmp_path / "b.sock")) as backend:
        server = proxy(f"/* proxy http://{backend.address}:/x/")
        request = json.loads(server.get("/y").text)
        assert request["target"] == "/x/y"


# ---- Upstream groups ----

def group(*backends, keys=""):
    lines = "".join(f"    Server {each if isinstance(each, str) else each.address}\n" for each in backends)
    return f"[UPSTREAM]\n    Name group\n{lines}{keys}"


def test_upstream_round_robin_distributes_requests(proxy):
    with Backend() as a, Backend() as b:
        server = proxy("/* proxy http://group", upstream=group(a, b), workers=1)
        for _ in range(10):
            server.get("/")
        assert len(a.requests) == len(b.requests) == 5


def test_upstream_skips_unreachable_server(proxy):
    with Backend() as a, Backend() as b:
        server = proxy("/* proxy http://group", upstream=group(a, b))
        a.stop()
        assert [server.get("/").status for _ in range(10)] == [200] * 10
        assert [server.get("/", "POST", body=b"x").status for _ in range(4)] == [200] * 4


def test_upstream_retries_failed_request_on_another_server(proxy):
    with Backend(lambda request: None) as a, Backend() as b:
        server = proxy("/* proxy http://group", upstream=group(a, b))
        assert [server.get("/").status for _ in range(10)] == [200] * 10


def test_upstream_retries_truncated_head_on_another_server(proxy):
    with Backend(lambda request: breaks_off(b"HTTP/1.1 404 Not Found\r\nX-Half: ")) as a, Backend() as b:
        server = proxy("/* proxy http://group", upstream=group(a, b))
        assert [server.get("/").status for _ in range(6)] == [200] * 6
        assert a.requests and len(b.requests) == 6
        assert sorted(server.get("/", "POST", body=b"x").status for _ in range(2)) in ([200, 200], [200, 502])


def breaks_off(data):
    yield data
    raise EOFError


def test_upstream_backup_serves_when_others_fail(proxy):
    with Backend() as a, Backend() as b:
        server = proxy("/* proxy http://group", upstream=group(a, f"{b.address} backup"))
        assert server.get("/").status == 200 and len(a.requests) == 1
        a.stop()
        assert server.get("/").status == 200 and len(b.requests) == 1


def test_upstream_sticky_session_stays_on_its_server(proxy):
    with Backend() as a, Backend() as b, Backend() as c:
        server = proxy("/* proxy http://group sticky=SERVER", upstream=group(a, b, c))
        first = server.get("/")
        cookie = first["Set-Cookie"].split(";")[0]
        number = [len(each.requests) for each in (a, b, c)].index(1)
        for _ in range(6):
            assert "Set-Cookie" not in server.get("/", fields=[("Cookie", f"x=y; {cookie}")])
        assert len((a, b, c)[number].requests) == 7
        (a, b, c)[number].stop()
        moved = server.get("/", fields=[("Cookie", cookie)])
        assert moved.status == 200 and moved["Set-Cookie"].split(";")[0] != cookie


def test_upstream_hash_of_path_selects_server(proxy):
    with Backend() as a, Backend() as b:
        server = proxy("/* proxy http://group hash=path", upstream=group(a, b, keys="    Balance hash\n"))
        for path in [f"/{i}" for i in range(20)] * 2:
            server.get(path)
        targets = [{request.target for request in each.requests} for each in (a, b)]
        assert all(targets) and not targets[0] & targets[1]


def test_upstream_max_connections_queues_requests(proxy):
    busy, most = [], []

    def reply(request):
        busy.append(1)
        most.append(len(busy))
        time.sleep(.02)
        busy.pop()
        return response("x")

    with Backend(reply) as backend:
        server = proxy("/* proxy http://group", upstream=group(backend, keys="    MaxConnections 2\n"), workers=2)
        connections = [server.connect() for _ in range(20)]
        for c in connections:
            c.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert [c.read().status for c in connections] == [200] * 20
        assert max(most) <= 2
        for c in connections:
            c.close()


# ---- Failures ----

@every_protocol
@pytest.mark.parametrize("bytes_sent, status", [
    (b"", 502), (b"HTTP/1.1 200 OK\r\nContent-Le", 502), (b"nonsense\r\n\r\n", 502),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 502),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 502),
    (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", 502),
    (b"HTTP/1.1 200 OK\r\nBad Name: 1\r\nContent-Length: 0\r\n\r\n", 502),
    (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 502)])
def test_proxy_invalid_response_gets_502(proxy, bytes_sent, status):
    def script(connection):
        connection.recv(65536)
        connection.sendall(bytes_sent)

    with Backend(script=script) as backend:
        assert proxy(f"/* proxy http://{backend.address}").get("/", "POST", body=b"x").status == status


def test_proxy_unreachable_server_gets_502_and_recovers_at_once(proxy):
    with Backend() as backend:
        address = backend.at
        server = proxy(f"/* proxy http://{backend.address}")
        backend.stop()
        assert [server.get("/").status for _ in range(8)] == [502] * 8
    with Backend(at=address):
        assert server.get("/").status == 200


def test_proxy_server_may_exceed_handler_timeout(proxy):
    def reply(request):
        time.sleep(1.5)
        return response("late")

    with Backend(reply) as backend:
        server = proxy(f"/* proxy http://{backend.address}", server="HandlerTimeout 1s")
        assert server.get("/").text == "late"


def test_proxy_silent_server_gets_504(proxy):
    with Backend(script=lambda connection: connection.recv(65536) and connection.recv(65536)) as backend:
        server = proxy(f"/* proxy http://{backend.address} response_timeout=100ms")
        assert server.get("/").status == 504


@every_protocol
@pytest.mark.parametrize("how", ["length", "chunked", "bad chunk", "silence"])
def test_proxy_truncated_response_is_detected(proxy, how):
    head = b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 1000000" if how in ("length", "silence") else
                                      b"Transfer-Encoding: chunked") + b"\r\n\r\n"
    start = b"x" * 400_000 if how in ("length", "silence") else b"61a80\r\n" + b"x" * 400_000 + b"\r\n"

    def script(connection):
        connection.recv(65536)
        connection.sendall(head + start + (b"zz\r\n" if how == "bad chunk" else b""))
        if how == "silence":
            connection.recv(1)

    with Backend(script=script) as backend:
        server = proxy(f"/* proxy http://{backend.address} read_timeout=200ms")
        try:
            assert server.get("/").status == 502, "nothing of it was sent yet"
        except Closed:
            pass


def test_proxy_surplus_response_bytes_reach_no_client(proxy):
    def script(connection):
        connection.recv(65536)
        connection.sendall(response("hello") + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        connection.recv(65536)

    with Backend(script=script) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        assert [server.get("/").text for _ in range(5)] == ["hello"] * 5


@every_protocol
def test_proxy_is_full_duplex(proxy):
    def script(connection):
        stream = connection.makefile("rb")
        read_fields(stream)
        stream.read(20_000)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
        for _ in range(5):
            connection.sendall(stream.read(100))

    with Backend(script=script) as backend, proxy(f"/* proxy http://{backend.address} stream").connect() as c:
        c.ask("/", "POST", [("Content-Length", "20500")]).more(b"x" * 20_000)
        assert c.read_head().status == 200
        for i in range(5):
            assert c.more(b"%d" % i * 100).read_exactly(100) == b"%d" % i * 100


@pytest.mark.parametrize("protocol", ["h1", "h1-tls"], indirect=True)
def test_proxy_client_disconnect_cancels_request(proxy):
    ended = []

    def script(connection):
        connection.recv(65536)
        ended.append(connection.recv(1))

    with Backend(script=script) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        with server.connect() as c:
            c.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_until(lambda: backend.connections == 1, "the backend has the request")
        wait_until(lambda: ended == [b""], "the backend's connection ends")


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("protocol", ["h1-tls"], indirect=True)
def test_proxy_client_close_notify_cancels_request(proxy, together):
    """A close_notify ends the client's direction like a FIN, and no FIN has to follow."""
    ended = []

    def script(connection):
        connection.recv(65536)
        ended.append(connection.recv(1))

    with Backend(script=script) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        with server.connect() as c:
            request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            if together:
                c.sock.send_close_notify(request)
            else:
                c.send(request)
                wait_until(lambda: backend.connections == 1, "the backend has the request")
                c.sock.send_close_notify()
            wait_until(lambda: ended == [b""], "the backend's connection ends")
            c.sock.raw.settimeout(10)
            while c.sock.raw.recv(65536):
                pass


@pytest.mark.parametrize("protocol", ["h1-tls"], indirect=True)
def test_proxy_pipelined_request_over_tls_waits_for_its_turn(proxy):
    """When the server looks for a close_notify, it must not consume the bytes of the next request."""
    release = threading.Event()

    def script(connection):
        stream = connection.makefile("rb")
        for text in "first", "second":
            read_fields(stream)
            assert release.wait(20)
            connection.sendall(response(text))

    with Backend(script=script) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        with server.connect() as c:
            request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            c.send(request)
            wait_until(lambda: backend.connections == 1, "the backend has the request")
            for at in range(0, len(request), 5):
                c.send(request[at:at + 5])
            release.set()
            assert [c.read().text for _ in range(2)] == ["first", "second"]


def test_proxy_early_response_precedes_end_of_upload(proxy):
    """The backend refuses an upload early and stops reading."""
    def script(connection):
        connection.recv(1000)
        connection.sendall(response("too much", "413 Content Too Large", [("Connection", "close")]))

    with Backend(script=script) as backend:
        server = proxy(f"/* proxy http://{backend.address} stream", server="MaxBodySize 100M")
        with server.connect() as c:
            c.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n" + b"x" * 10000)
            got = c.read()
            assert (got.status, got.text) == (413, "too much")


# ---- Upgrades ----

def test_proxy_websocket_becomes_tunnel(proxy):
    def script(connection):
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        assert b"Upgrade: websocket" in head and b"Connection: upgrade" in head.replace(b"Upgrade\r\n", b"upgrade\r\n")
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                           b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: p\r\n\r\nfirst")
        while data := connection.recv(65536):
            connection.sendall(data.upper())

    with Backend(script=script) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        with server.connect() as c:
            c.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                   b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: p\r\n\r\n")
            head = c.read_head()
            assert head.status == 101 and head["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
            assert head["Sec-WebSocket-Protocol"] == "p"
            assert c.read_exactly(5) == b"first"
            c.send(b"hello")
            assert c.read_exactly(5) == b"HELLO"


def test_proxy_idle_tunnel_times_out(proxy):
    def script(connection):
        while b"\r\n\r\n" not in connection.recv(65536):
            pass
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
        connection.recv(1)

    with Backend(script=script) as backend:
        server = proxy(f"/* proxy http://{backend.address} tunnel=100ms")
        with server.connect() as c:
            c.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
            assert c.read_head().status == 101
            c.expect_end()


def test_proxy_refused_upgrade_is_a_response(proxy):
    with Backend(lambda request: response("no", "403 Forbidden")) as backend:
        server = proxy(f"/* proxy http://{backend.address}")
        with server.connect() as c:
            c.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                   b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            got = c.read()
            assert (got.status, got.text) == (403, "no")


# ---- Configuration ----

@pytest.mark.parametrize("route, message", [
    ("/* proxy", "expects http"), ("/* proxy 127.0.0.1:1", "a target such as"), ("/* proxy http://127.0.0.1:x", "is not a server"),
    ("/* proxy http://a:1 max_tries=0", "a number from 1"), ("/* proxy http://a:1 response_timeout=x", "a time"),
    ("/* proxy http://a:1 tunnel=0", "a time above 0"),
    ("/* proxy http://a:1 host=", "an option"), ("/* proxy http://a:1 stream=on", "expected host, forwarded"),
    ("/* proxy http://a:1 x=y", "max_tries, response_timeout, read_timeout or total_timeout"), ("/* proxy http://a:1 cookies", "an option"),
    ("/* proxy http://a:1 forwarded=x", "expected `replace`, `append`, `off` or `local`"),
    ("/* proxy http://a:1 cookies=no", "expected `off` or `on`"), ("/* proxy http://a:1 paths=Raw", "expected `checked` or `raw`"),
    ("/* proxy http://a:1 timeout=5s", "hint: did you mean `response_timeout`?"), ("/* proxy http://a:1 max_try=1", "hint: did you mean `max_tries`?"),
    ("/* proxy http://a:1 set=X-Real-IP", "hint: [REQUEST_HEADERS] sets headers of requests"), ("/* proxy http://a:1 forwardd=off", "hint: did you mean `forwarded`?"),
    ("*.x proxy http://a:1/y", "must begin with `/`"), ("/* proxy http://a:1/y?z", "without a query"),
    ("/* proxy http://a:1 hash=cookie", "cookie:NAME")])
def test_proxy_invalid_configuration_is_rejected(run, tmp_path, route, message):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[PLUGINS]\n    Load proxy\n[HOST]\n    DocumentRoot .\n[ROUTES]\n    {route}\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and message in done.err, done.err
