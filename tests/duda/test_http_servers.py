# SPDX-License-Identifier: Apache-2.0
"""The http package: TLS, retries, slow servers, and large headers."""
import contextlib
import re
import socket
import ssl
import threading

import pytest

import services
from backend import Backend, read_fields, read_request, response
from certificates import make_authority
from http_client_service import start

pytestmark = pytest.mark.skipif(not services.has("http"), reason="this build has no Duda")


def upstream(*servers, keys=""):
    return "[UPSTREAM]\n    Name others\n" + "".join(f"    Server {server}\n" for server in servers) + keys


class TlsBackend(Backend):
    """`names` collects the SNI names of the clients."""

    def __init__(self, pair):
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(pair.certificate, pair.key)
        self.context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self.names = []
        super().__init__(script=self.shake_hands)

    def shake_hands(self, connection):
        with contextlib.suppress(ssl.SSLError), self.context.wrap_socket(connection, server_side=True) as encrypted:
            self._answer_all(encrypted, self.connections)


def test_http_tls_verifies_the_server_and_sends_its_name(monkey, site, tmp_path):
    authority, other = make_authority(tmp_path / "a"), make_authority(tmp_path / "b", "another authority")
    pair = authority.issue(["rates.test"])
    with TlsBackend(pair) as backend:
        trusted = f"    TLS on\n    TLSAuthority {authority.file}\n"
        server = start(monkey, site, "others", top=upstream(backend.address, keys=f"{trusted}    TLSName rates.test\n"))
        request = server.get("/ask?target=/a").text
        assert request.startswith("200 ") and '"target": "/a"' in request
        sent = server.get("/send?pieces=40&size=10000").text
        assert sent.startswith("200 ") and len(backend.requests[-1].body) == 400000
        assert backend.names == ["rates.test"], "one connection, with the name as SNI"
        server.stop()
        for keys in (f"{trusted}    TLSName other.test\n", trusted, f"    TLS on\n    TLSAuthority {other.file}\n    TLSName rates.test\n"):
            server = start(monkey, site, "others", top=upstream(backend.address, keys=keys))
            server.allow("TLS")
            for target in ("/ask?target=/secret", "/send?pieces=3&size=3"):
                assert re.match(r"71 \[HTTP_CLIENT\] main, [\d.:]+: the TLS handshake with the server failed$", server.get(target).text)
            server.stop()
        assert len(backend.requests) == 2, "nothing was sent to an untrusted server"


class ClosingBackend(Backend):
    """Responds to the first `firsts` requests of each connection, reads the headers of the next one, and closes the connection.
    `heads` lists the methods of all requests."""

    def __init__(self, firsts=1):
        self.heads = []
        self.firsts = firsts
        super().__init__(script=self.answer)

    def answer(self, connection):
        stream = connection.makefile("rb")
        for _ in range(self.firsts):
            self.heads.append(read_request(stream, connection).method)
            connection.sendall(response("first"))
        line = stream.readline()
        read_fields(stream)
        self.heads.append(line.split()[0].decode())


def test_http_retries_idempotent_requests_on_a_closed_connection(monkey, site):
    """GET and PUT are retried on another connection. POST is not retried because the server may have processed it, and a
    body that is no longer in memory cannot be sent again."""
    with ClosingBackend() as backend:
        server = start(monkey, site, backend.address)
        assert server.get("/ask").text == "200 first"
        assert server.get("/ask").text == "200 first"
        assert server.get("/send?method=PUT&pieces=3&size=1000").text == "200 first"
        assert server.get("/ask", method="POST", body=b"once").text.startswith("104 ")
        assert backend.heads == ["GET", "GET", "GET", "PUT", "PUT", "POST"]
        assert server.get("/ask").text == "200 first"
        assert re.match("(104|32) ", server.get("/send?method=PUT&pieces=1000&size=50000").text)
        assert backend.heads[6:] == ["GET", "PUT"]


def test_http_replaces_a_connection_closed_while_idle(monkey, site):
    """A POST uses a new connection, so it is never lost on a connection that the server closes."""
    with Backend() as backend:
        server = start(monkey, site, backend.address)
        for arguments in ({"target": "/ask", "method": "POST", "body": b"x"}, {"target": "/send?pieces=2&size=2"}) * 2:
            assert server.get(**arguments).text.startswith("200 ")
            backend.drop()
        assert [request.connection for request in backend.requests] == [1, 2, 3, 4]


def test_http_tries_the_next_server_after_a_refused_connection(monkey, site):
    """Nothing was sent on a refused connection, so any request may be retried on the next server, up to `MaxTries`."""
    with Backend() as backend, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        top = upstream(f"127.0.0.1:{closed.getsockname()[1]}", f"{backend.address} backup", keys="    MaxFails 1000\n")
        server = start(monkey, site, "others", top=top)
        for _ in range(2):
            assert server.get("/ask").text.startswith("200 ")
            assert server.get("/ask", method="POST", body=b"x").text.startswith("200 ")
            assert server.get("/send?pieces=3&size=30000").text.startswith("200 ")
        assert [request.method for request in backend.requests] == ["GET", "POST", "POST"] * 2


def test_http_retries_only_idempotent_requests_on_the_next_server(monkey, site):
    """The server reads the request and closes the connection: only idempotent requests are retried."""
    def fail(connection):
        failed.append(read_request(connection.makefile("rb"), connection).method)

    failed = []
    with Backend(script=fail) as bad, Backend() as good:
        top = upstream(f"{bad.address}", f"{good.address} backup", keys="    MaxFails 1000\n")
        server = start(monkey, site, "others", top=top)
        server.allow("closed")
        for target in ("/ask", "/ask?method=PUT", "/send?method=PUT&pieces=10&size=1000"):
            assert server.get(target).text.startswith("200 ")
        assert good.requests[-1].body == b"".join(bytes([ord("a") + i]) * 1000 for i in range(10))
        assert server.get("/ask", method="POST", body=b"x").text.startswith("104 ")
        assert server.get("/send?method=PUT&pieces=10&size=10000").text.startswith("104 "), "its body is no longer in memory"
        assert server.get("/send?method=PATCH&pieces=1&size=1").text.startswith("104 ")
        assert failed == ["GET", "PUT", "PUT", "POST", "PUT", "PATCH"]
        assert [request.method for request in good.requests] == ["GET", "PUT", "PUT"]
        server.stop()
        server = start(monkey, site, "others", top=top, keys="    MaxTries 1\n")
        assert server.get("/ask").text.startswith("104 ")


SLOW = {
    "no answer": (b"", "the server does not answer"),
    "half a head": (b"HTTP/1.1 200 OK\r\nX-A", "the server stopped in the middle of its response"),
    "half of its content": (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "the server stopped in the middle of its response"),
    "interim responses alone": (b"HTTP/1.1 103 Early Hints\r\n\r\n", "the server does not answer"),
}


@pytest.mark.parametrize("message, why", SLOW.values(), ids=SLOW)
def test_http_timeout_names_what_the_server_delayed(monkey, site, message, why):
    def stop_there(connection):
        read_request(connection.makefile("rb"), connection)
        connection.sendall(message)
        over.wait(20)

    over = threading.Event()
    with Backend(script=stop_there) as backend:
        server = start(monkey, site, backend.address, "    Timeout 100ms\n    MaxTries 1\n")
        for target in ("/ask", "/send?pieces=2&size=10"):
            assert re.fullmatch(rf"110 \[HTTP_CLIENT\] main, [\d.:]+: {why}", server.get(target).text)
        over.set()


def test_http_limits_headers(monkey, site):
    """The headers of a response are limited to 32 KB and 100 fields, and those of a request to 128 KB and 64 fields."""
    def reply(request):
        if request.target.startswith("/lines"):
            return response("fine", fields=[("X-Line", str(i)) for i in range(int(request.target[6:]))])
        return response("fine", fields=[("X-Long", "x" * int(request.target[5:]))]) if request.target.startswith("/long") else response("fine")

    with Backend(reply) as backend:
        server = start(monkey, site, backend.address, "    MaxTries 1\n")

        def ask(query):
            return server.get(f"/ask?{query}").text

        assert ask("target=/lines99") == ask("target=/long32000") == ask("fields=64") == ask("long=100000") == "200 fine"
        assert ask("target=/lines101").startswith("71 [HTTP_CLIENT] main, ")
        assert ask("target=/long40000").startswith("71 [HTTP_CLIENT] main, ")
        before = len(backend.requests)
        assert ask("fields=65") == "90 [HTTP_CLIENT] main: the request has more than 64 headers"
        assert ask("long=140000").startswith("7 [HTTP_CLIENT] main: its head is too long")
        assert len(backend.requests) == before
