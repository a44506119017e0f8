# SPDX-License-Identifier: Apache-2.0
"""The reverse proxy with TLS to its backends, and with client certificates."""
import base64
import re
import ssl
import subprocess
import threading

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from backend import Backend
from certificates import make_authority
from monkey import SECONDS
from proc import wait_until
from tls_server import PLUGIN, TlsServer, keys


@pytest.fixture
def authority(tmp_path):
    return make_authority(tmp_path / "authority")


@pytest.fixture
def backend(monkey, site, authority):
    """Another Monkey, which reports the TLS facts of its connection."""
    site.add("index.html", "hello")

    def start(server="", **how):
        pair = authority.issue(["back.example", "127.0.0.1"])
        return monkey(server=keys(pair) + server, listen="127.0.0.1:0 tls", protocol="h1", encryption=None, plugins=[str(PLUGIN)],
                      sections="\n[ROUTES]\n    /facts encrypted\n    /* static\n", **how)

    return start


@pytest.fixture
def proxy(monkey, authority):
    def start(port, *lines, trusts=True, scheme="http", **how):
        lines = [f"Server 127.0.0.1:{port}", "TLS on", *([f"TLSAuthority {authority.file}"] if trusts else []), *lines]
        upstream = "".join(f"    {line}\n" for line in ("Name api", *lines))
        return monkey(plugins=["proxy"], sections=f"[UPSTREAM]\n{upstream}[ROUTES]\n    /* proxy {scheme}://api\n", protocol="h1",
                      encryption=None, **how)

    return start


def facts(server):
    reply = server.get("/facts")
    assert reply.status == 200, repr(reply)
    return dict(line.partition("=")[::2] for line in reply.text.splitlines())


def test_proxy_tls_passes_small_and_large_bodies(proxy, backend, site):
    much = bytes(i % 251 for i in range(3_000_000))
    site.add("much", much)
    server = proxy(backend().port)
    for _ in range(3):
        assert server.get("/").text == "hello"
        assert server.get("/much").body == much
    assert "failed" not in server.err.text


def test_proxy_tls_offers_http2_by_alpn(proxy, backend, site):
    much = bytes(i % 251 for i in range(3_000_000))
    site.add("much", much)
    server = proxy(backend().port, scheme="h2")
    for _ in range(3):
        assert facts(server)["protocol"] == "h2"
        assert server.get("/much").body == much


def test_proxy_tls_server_without_http2_gives_502(proxy, backend):
    server = proxy(backend("HTTP2 off\n").port, scheme="h2")
    assert server.get("/").status == 502
    assert "HTTP/2 (ALPN)" in server.log or "TLS with the server" in server.log


def test_proxy_tls_verifies_address_and_sends_configured_name(proxy, backend):
    port = backend().port
    plain = facts(proxy(port))
    assert plain["protocol"] == "http/1.1" and "name" not in plain
    assert facts(proxy(port, "TLSName back.example"))["name"] == "back.example"


def test_proxy_tls_resumes_session_on_new_connections(proxy, backend):
    server = proxy(backend().port, "KeepAliveConnections 0")
    assert [facts(server)["resumed"] for _ in range(4)] == ["no", "yes", "yes", "yes"]


def test_proxy_tls_uses_system_trust_store(proxy, backend, authority):
    """Workers cannot open the certificate files: the master has loaded them."""
    system = {"SSL_CERT_FILE": str(authority.file), "SSL_CERT_DIR": "/nowhere"}
    assert proxy(backend().port, trusts=False, environment=system).get("/").text == "hello"


def test_proxy_tls_wrong_name_gets_502_with_reason(proxy, backend):
    server = proxy(backend().port, "TLSName other.example")
    assert server.get("/").status == 502
    server.err.wait_for(r"\[error\] .*TLS with the server 127\.0\.0\.1:\d+ failed: its certificate is for back\.example, 127\.0\.0\.1"
                        r", not for other\.example")
    assert proxy(backend().port, "TLSName other.example", "TLSVerify off").get("/").text == "hello"


def test_proxy_tls_expired_certificate_gets_502_with_reason(proxy, start, authority):
    server = proxy(start(authority.issue(days=-1), "-www").port, "TLSName localhost")
    assert server.get("/").status == 502
    server.err.wait_for(r"\[error\] .*TLS with the server 127\.0\.0\.1:\d+ failed: the certificate CN=localhost,O=tests expired on "
                        r"\S+ \S+ UTC")


@pytest.mark.parametrize("version", ("1.2", "1.3"))
def test_proxy_tls_sends_configured_client_certificate(proxy, start, authority, version):
    server = start(authority.issue(), "-www", "-Verify", 1, "-CAfile", authority.file, "-verify_return_error",
                   f"-tls{version.replace('.', '_')}")
    bare = proxy(server.port, "TLSName localhost")
    assert bare.get("/").status == 502
    bare.err.wait_for(r"TLS with the server \S+ failed: it requires a client certificate: set one")
    mine = authority.issue(["me"], client=True)
    assert proxy(server.port, "TLSName localhost", f"TLSCertificate {mine.certificate}", f"TLSKey {mine.key}").get("/").status == 200


class OpensslServer:
    """Runs openssl s_server, which sends its input to the client; `k` on a separate line updates the keys."""

    def __init__(self, pair, *options):
        self.process = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", pair.certificate, "-key", pair.key,
                                         *map(str, options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.output = b""
        self.port = int(self.wait_for(rb"ACCEPT \S+:(\d+)\n")[1])

    def wait_for(self, pattern, count=1):
        while len(found := list(re.finditer(pattern, self.output))) < count:
            more = self.process.stdout.read1()
            assert more, self.output
            self.output += more
        return found[-1]

    def say(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def stop(self):
        self.process.kill()
        self.process.communicate(timeout=SECONDS)


@pytest.fixture
def start():
    servers = []

    def start_one(*args):
        servers.append(OpensslServer(*args))
        return servers[-1]

    yield start_one
    for server in servers:
        server.stop()


def test_proxy_tls_idle_connection_survives_key_update(proxy, start, authority):
    raw = start(authority.issue(), "-crlf", "-msg")
    server = proxy(raw.port, "TLSName localhost")
    for n in range(1, 4):
        with server.connect() as client:
            client.send(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % n)
            raw.wait_for(rb"GET /\d[^\0]*?\r\n\r\n", n)
            raw.say(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok")
            assert client.read().body == b"ok"
        raw.say(b"k\n")
        raw.wait_for(rb">>> .*KeyUpdate", n)
    assert raw.output.count(b"BEGIN SSL SESSION") == 1


# ---- Client certificates ----

FORGED = [("Client-Cert", ":QQ==:"), ("client_cert", ":QQ==:"), ("Client-Cert-Chain", ":QQ==:"), ("Client-CERT_Chain", ":QQ==:")]


@pytest.fixture
def behind():
    with Backend() as each:
        yield each


@pytest.fixture
def secure(monkey, authority, behind):
    def start(options):
        settings = f"ClientCertificates optional\nClientAuthority {authority.file}\n"
        return TlsServer(monkey(server=keys(authority.issue()) + settings, listen="127.0.0.1:0 tls", protocol="h1", encryption=None,
                             plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{behind.address} {options}\n"), authority)

    return start


def certificates(request):
    return [(name, value) for name, value in request.fields + request.trailers if name.lower().startswith(("client-c", "client_c"))]


@pytest.mark.parametrize("option", ["", "certificate=off", "certificate=on", "certificate=pass"])
def test_proxy_certificate_option_forwards_client_certificate(secure, authority, behind, option):
    mine = authority.issue(["me"], client=True)
    server = secure(option)
    assert server.get(fields=FORGED, context=authority.client_context(mine)).status == 200
    assert server.get(fields=FORGED).status == 200
    own = ("Client-Cert", f":{base64.b64encode(mine.x509.public_bytes(Encoding.DER)).decode()}:")
    none = ([], [])
    passed = ([field for field in FORGED if "_" not in field[0]],) * 2  # the other headers only look similar
    assert tuple(map(certificates, behind.requests)) == {"certificate=on": ([own], []), "certificate=pass": passed}.get(option, none)


def test_proxy_trailers_cannot_forge_client_certificate(secure, behind):
    chunks = b"1\r\nx\r\n0\r\nClient-Cert: :QQ==:\r\nX-Sum: 1\r\n\r\n"
    secure("certificate=on").get("/", method="POST", fields=[("Transfer-Encoding", "chunked")], body=chunks)
    assert certificates(behind.requests[0]) == [] and behind.requests[0].trailers == [("X-Sum", "1")]


def test_proxy_tls_cancelled_request_counts_until_backend_is_done(proxy, authority):
    """The backend learns from close_notify that the request was cancelled, but only when it reads."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = authority.issue(["127.0.0.1"])
    context.load_cert_chain(pair.certificate, pair.key)
    requests, ends, done = [], [], threading.Event()

    def script(connection):
        with context.wrap_socket(connection, server_side=True) as tls:
            requests.append(tls.recv(65536))
            done.wait(20)
            ends.append(tls.recv(65536))

    with Backend(script=script) as backend:
        server = proxy(backend.at[1], "MaxConnections 2", workers=1)
        with server.connect() as c:
            c.ask("/work")
            wait_until(lambda: len(requests) == 1, "the backend has the requests")
        with server.connect() as c, server.connect(source="127.0.0.2") as other:
            c.ask("/waits")
            other.ask("/other")
            wait_until(lambda: len(requests) == 2, "another client is served")
            assert b"/other" in requests[1]
            done.set()
            wait_until(lambda: len(requests) == 3, "the connection is free again")
        wait_until(lambda: b"" in ends, "the backend has noticed the end")
