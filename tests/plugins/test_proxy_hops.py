# SPDX-License-Identifier: Apache-2.0
"""Hop-by-hop semantics: Max-Forwards, Connection, and the headers that Connection names."""
import pytest

from backend import Backend, response
from monkey import PROTOCOLS

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


# ---- Hops ----

@every_protocol
@pytest.mark.parametrize("method", ["OPTIONS", "TRACE"])
@pytest.mark.parametrize("sent, got", [("1", "0"), ("010", "9"), ("4294967295", "4294967294"), ("99999999999999999999999", "4294967294")])
def test_proxy_decrements_max_forwards(proxy, backend, method, sent, got):
    server = proxy(f"/* proxy http://{backend.address}")
    assert server.get("/", method, fields=[("Max-Forwards", sent)]).status == 200
    assert backend.requests[0].all("Max-Forwards") == [got]


@every_protocol
@pytest.mark.parametrize("method, status", [("OPTIONS", 200), ("TRACE", 501)])
def test_proxy_answers_itself_at_max_forwards_zero(proxy, backend, method, status):
    server = proxy(f"/* proxy http://{backend.address}")
    reply = server.get("/", method, fields=[("Max-Forwards", "0"), ("Cookie", "secret")])
    assert reply.status == status and "secret" not in reply.text
    assert not backend.requests
    assert server.get("/", method).status == 200 and not backend.requests[0].get("Max-Forwards")


@pytest.mark.parametrize("values", [["-1"], ["x"], ["1", "2"], ["1, 2"], [""], ["0x1"]])
def test_proxy_invalid_max_forwards_is_refused(proxy, backend, values):
    server = proxy(f"/* proxy http://{backend.address}")
    assert server.get("/", "TRACE", fields=[("Max-Forwards", each) for each in values]).status == 400
    assert not backend.requests


def test_proxy_max_forwards_is_ignored_for_other_methods(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address}")
    assert server.get("/", fields=[("Max-Forwards", "0")]).status == 200
    assert backend.requests[0].get("Max-Forwards") == "0"


# ---- Hop-by-hop headers ----

def test_proxy_connection_header_with_too_many_names_is_refused(proxy, backend, site):
    server = proxy(f"/api/* proxy http://{backend.address}")
    names = [f"X-{i}" for i in range(40)]
    for target in ("/api/x", "/index.html"):
        for lines in ([", ".join(names[:32])], names[:32], [", ".join(names[:30]), "close, keep-alive"]):
            assert server.get(target, fields=[("Connection", each) for each in lines]).status == 200, lines
        for lines in ([", ".join(names[:33])], names[:33], ["," * 32], ["close"] * 33, ["X," * 33]):
            assert server.get(target, fields=[("Connection", each) for each in lines]).status == 400, lines
    assert len(backend.requests) == 3


def test_proxy_trailers_named_in_connection_are_dropped(proxy, backend):
    server = proxy(f"/* proxy http://{backend.address}")
    server.get("/", "POST", [("Transfer-Encoding", "chunked"), ("Connection", "X-Hop, X-Both"), ("X-Both", "1")],
               b"5\r\nhello\r\n0\r\nX-Hop: 7\r\nX-Sum: 8\r\nX-Both: 9\r\n\r\n")
    assert backend.requests[0].trailers == [("X-Sum", "8")] and not backend.requests[0].get("X-Both")


@every_protocol
def test_proxy_response_headers_named_in_connection_are_dropped(proxy):
    chunks = (b"HTTP/1.1 200 OK\r\nConnection: x-hop, keep-alive\r\nX-Hop: 1\r\nX-Stays: 1\r\nTransfer-Encoding: chunked\r\n"
              b"Trailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Hop: 2\r\nX-Sum: 7\r\n\r\n")
    with Backend(lambda request: chunks) as backend:
        got = proxy(f"/* proxy http://{backend.address}").get("/", fields=[("TE", "trailers")])
        assert "X-Hop" not in got and got["X-Stays"] == "1"
        assert [name.lower() for name, _ in got.trailers] == ["x-sum"]


@pytest.mark.parametrize("lines", [[",".join(f"x-{i}" for i in range(33))], ["," * 32], ["close"] * 33])
def test_proxy_response_connection_with_too_many_names_is_invalid(proxy, lines):
    fields = [("Connection", each) for each in lines]
    with Backend(lambda request: response("hello", fields=fields)) as backend:
        assert proxy(f"/* proxy http://{backend.address}").get("/").status == 502
    with Backend(lambda request: response("hello", fields=[("Connection", ",".join(f"x-{i}" for i in range(32)))])) as backend:
        assert proxy(f"/* proxy http://{backend.address}").get("/").text == "hello"
