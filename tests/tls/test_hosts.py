# SPDX-License-Identifier: Apache-2.0
"""Per-host requirements for connections: encryption, TLS versions, and client certificates."""
import socket
import ssl
import subprocess

import pytest

import regexes
from certificates import make_authority
from client import Client
from http2 import Http2Client
from tls_server import keys

BOTH = ["127.0.0.1:0 tls", "127.0.0.2:0"]


# Strict-Transport-Security

@pytest.mark.parametrize("written, sent", [
    ("180d", "max-age=15552000"), ("1h includeSubDomains", "max-age=3600; includeSubDomains"),
    ("365d includesubdomains preload", "max-age=31536000; includeSubDomains; preload"), ("0", "max-age=0")])
def test_hsts_is_sent_only_over_tls(secure, authority, written, sent):
    server = secure(keys(authority.issue()) + f"HSTS {written}", listen=BOTH)
    for target in ("/", "/missing"):
        assert server.get(target).all("Strict-Transport-Security") == [sent]
    with Client(server.server.addresses[1]) as c:
        assert c.get("/").all("Strict-Transport-Security") == []


def test_hsts_is_set_per_host(secure, authority):
    pair = authority.issue(["localhost", "a.example"])
    server = secure(keys(pair) + "HSTS 1d", host="HSTS off", sections="[HOST]\n    ServerName a.example\n    DocumentRoot site\n")
    assert server.get("/").all("Strict-Transport-Security") == []
    assert server.get("/", "a.example").all("Strict-Transport-Security") == ["max-age=86400"]


# Redirects

@pytest.fixture
def redirecting(secure, authority):
    pair = authority.issue(["localhost", "a.example"])

    def start(how="8443"):
        return secure(keys(pair) + f"RedirectToHTTPS {how}", listen=["127.0.0.2:0", "127.0.0.1:0 tls"])

    return start


def test_plain_request_is_redirected_to_the_same_url_over_tls(redirecting):
    server = redirecting()
    with Client(server.server.addresses[0]) as c:
        for target, host, to in (("/", "a.example", "https://a.example:8443/"),
                                 ("/x%20y/?q=1&r", "A.Example:80", "https://A.Example:8443/x%20y/?q=1&r"),
                                 ("http://a.example:8080/z", "other", "https://a.example:8443/z"),
                                 ("//evil.example/", "a.example", "https://a.example:8443//evil.example/"),
                                 ("/", "[::1]:80", "https://[::1]:8443/")):
            reply = c.get(target, host=host)
            assert (reply.status, reply.all("Location")) == (308, [to])
        assert c.get("/", "POST", body=b"x", host="a.example").status == 308
        assert c.get("*", "OPTIONS", host="a.example").status == 200


def test_redirect_contains_no_raw_control_characters(redirecting):
    server = redirecting()
    for byte in [*range(1, 0x21), 0x7f]:  # browsers remove some of these characters anywhere in a URL
        with Client(server.server.addresses[0]) as c:
            target = f"/%{byte:02X}/x?%{byte:02x}"
            assert c.get(target, host="a.example").all("Location") == [f"https://a.example:8443{target}"]
            raw = bytes([byte])
            reply = c.send(b"GET /" + raw + b"/x HTTP/1.1\r\nHost: a.example\r\n\r\n").read()
            assert reply.status == 400 and "Location" not in reply


def test_redirect_omits_port_443(redirecting):
    with Client(redirecting("443").server.addresses[0]) as c:
        assert c.get("/a", host="a.example").all("Location") == ["https://a.example/a"]


def test_tls_request_is_not_redirected(redirecting):
    assert redirecting().get("/", listener=1).text == "hello"


def test_acme_challenge_is_answered_without_tls(redirecting, site):
    site.add(".well-known/acme-challenge/token", "answer")
    server = redirecting()
    with Client(server.server.addresses[0]) as c:
        assert c.get("/.well-known/acme-challenge/token", host="a.example").text == "answer"
        assert c.get("/.well-known/acme-challenge/../../", host="a.example").status == 308
        assert c.get("/.well-known/other", host="a.example").status == 308


@pytest.fixture(params=["h1", "h2"])
def plain(request):
    """Returns the class of a client that does not use TLS."""
    return Client if request.param == "h1" else Http2Client


FRONT = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'; echo front\n"
REFUSING = {"RedirectToHTTPS 8443": 308, "ClientCertificates required\nClientAuthority ca.pem": 403}


@pytest.mark.parametrize("rule", REFUSING)
def test_acme_challenge_without_tls_is_answered_only_by_a_file(secure, authority, site, tmp_path, plain, rule):
    refused = REFUSING[rule]
    (tmp_path / "ca.pem").write_text(authority.file.read_text())
    folder = ".well-known/acme-challenge/"
    site.add(folder + "token-_1", "answer")
    site.add(folder + "deep/token", "deep")
    site.add(folder + "folder/index.html", "index")
    site.add(folder + "token.php", FRONT, mode=0o755)
    site.add("page", "fallback")
    site.add("front.php", FRONT, mode=0o755)
    pair = authority.issue(["a.example"])
    routes = "[ROUTES]\n    *.php cgi\n    */moved redirect 302 /\n    /* static\n"
    server = secure(keys(pair), listen=["127.0.0.2:0", "127.0.0.1:0 tls"], host=f"{rule}\nFallback page",
                    plugins=["cgi", "rewrite"], sections=routes + "[REWRITE]\n    When query cmd=*\n"
                    "    Rewrite glob * /front.php\n    Rewrite glob */other " + "/" + folder + "token-_1\n"
                    "    Rewrite glob */page /page\n    Redirect 302 glob */gone /page\n")

    def ask(name, method="GET", body=b""):
        with plain(server.server.addresses[0]) as c:
            return c.get("/" + folder + name, method, body=body, host="a.example")

    assert ask("token-_1").text == "answer"
    assert ask("token-_1", "HEAD").status == 200
    assert ask("token-_1?x").text == "answer"
    assert ask("other").text == "answer"  # the path was rewritten to the challenge response
    for name in ("token-_1?cmd=1", "none?cmd=1", "none", "", "deep/token", "deep", "folder/", "folder", "token.php",
                 "token-_1/", "token-_1%2F", "moved", "page", "gone", "%2e%2e/%2e%2e/page"):
        assert ask(name).status == refused, name
    for method in ("POST", "PUT", "OPTIONS", "DELETE"):
        assert ask("x?cmd=1", method, b"x").status == refused, method
        assert ask("token-_1", method, b"x").status == refused, method
    if refused == 308:
        assert ask("x?cmd=1").all("Location")[0].endswith("/acme-challenge/x?cmd=1")  # the original target


def test_request_without_host_is_not_redirected(redirecting):
    with Client(redirecting().server.addresses[0]) as c:
        assert c.send(b"GET / HTTP/1.0\r\n\r\n").read().status == 403


@pytest.mark.skipif(not regexes.ARE_THERE, reason="built without PCRE2")
@pytest.mark.parametrize("names, to", [("~^a", None), ("*.example ~^a b.example", "https://b.example:8443/")])
def test_request_without_host_is_redirected_to_a_name_but_not_to_a_pattern(secure, authority, names, to):
    server = secure(keys(authority.issue(["localhost"])) + "RedirectToHTTPS 8443", host=f"ServerName {names}",
                    listen=["127.0.0.2:0", "127.0.0.1:0 tls"])
    with Client(server.server.addresses[0]) as c:
        reply = c.send(b"GET / HTTP/1.0\r\n\r\n").read()
        assert (reply.status, reply.get("Location")) == ((308, to) if to else (403, None))


# Versions and ciphers

def test_tls_versions_can_be_restricted(secure, authority):
    pair = authority.issue(["localhost", "new.example"])
    server = secure(keys(pair), sections="[HOST]\n    ServerName new.example\n    DocumentRoot site\n    TLSVersion 1.3\n")
    old = authority.client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with server.connect("localhost", old) as c:
        assert c.sock.facts.version() == "TLSv1.2"
    with pytest.raises(ssl.SSLError):
        server.connect("new.example", old)
    with server.connect("new.example") as c:
        assert c.sock.facts.version() == "TLSv1.3"


def test_ciphers_can_be_restricted(secure, authority):
    server = secure(keys(authority.issue()) + "TLSCiphers ECDHE-ECDSA-AES256-GCM-SHA384\nTLSSuites TLS_CHACHA20_POLY1305_SHA256")
    with server.connect() as c:
        assert c.sock.facts.cipher()[0] == "TLS_CHACHA20_POLY1305_SHA256"
    old = authority.client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with server.connect(context=old) as c:
        assert c.sock.facts.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    old.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        server.connect(context=old)


# Client certificates

@pytest.fixture
def clients(tmp_path):
    return make_authority(tmp_path / "clients", "authority of clients")


def client_certificates(how, clients):
    return f"ClientCertificates {how}\nClientAuthority {clients.file}\n"


def test_client_certificate_is_not_requested_by_default(secure, authority, clients):
    pair = clients.issue(["somebody"], client=True)
    server = secure(keys(authority.issue()), plugin=True)
    assert "subject" not in server.facts(context=authority.client_context(pair))


def test_optional_client_certificate_is_verified(secure, authority, clients):
    pair = clients.issue(["somebody"], client=True)
    server = secure(keys(authority.issue()) + client_certificates("optional", clients), plugin=True)
    facts = server.facts(context=authority.client_context(pair))
    assert facts["subject"] == "CN=somebody,O=tests"
    assert facts["issuer"] == "CN=authority of clients,O=tests"
    assert facts["serial"].lstrip("0") == pair.serial
    assert facts["fingerprint"].lower() == pair.fingerprint
    assert abs(int(facts["expires"]) - pair.x509.not_valid_after_utc.timestamp()) < 2
    assert "subject" not in server.facts()


def reaches(server, context, name="localhost"):
    """Does a client with this certificate get a response? In TLS 1.3, a client notices a rejection only when it reads."""
    try:
        return server.get("/", name, context=context).status == 200
    except (ssl.SSLError, OSError, AssertionError):
        return False


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_required_client_certificate_is_verified(secure, authority, clients, version):
    stranger = make_authority(clients.folder / "other", "authority of clients")
    server = secure(keys(authority.issue()) + client_certificates("required", clients), plugin=True)
    for pair, good in ((clients.issue(["good"], client=True), True), (None, False),
                       (stranger.issue(["stranger"], client=True), False),
                       (clients.issue(["late"], client=True, days=-2), False),
                       (clients.issue(["for servers"]), False)):
        context = authority.client_context(pair)
        context.maximum_version = context.minimum_version = version
        assert reaches(server, context) == good, pair


TWO = """
[HOST]
    ServerName open.example
    DocumentRoot site
[HOST]
    ServerName closed.example also.closed.example
    DocumentRoot site
    {closed}
[HOST]
    ServerName alike.example
    DocumentRoot site
    {closed}
"""


@pytest.fixture
def mixed(secure, authority, clients):
    """One host has no requirements, and two hosts require a client certificate from the same authority."""
    pair = authority.issue(["open.example", "closed.example", "also.closed.example", "alike.example"])

    def start(**how):
        closed = client_certificates("required", clients).strip().replace("\n", "\n    ")
        return secure(keys(pair), root=None, sections=TWO.format(closed=closed), **how)

    return start


def test_connection_for_one_host_gives_no_access_to_another(mixed, authority, clients):
    server = mixed()
    known = authority.client_context(clients.issue(["somebody"], client=True))
    with server.connect("open.example") as c:
        assert c.get("/", host="open.example").status == 200
        assert c.get("/", host="closed.example").status == 421
        assert c.get("/", host="open.example").status == 200
    with server.connect("closed.example", known) as c:
        assert c.get("/", host="closed.example").status == 200
        assert c.get("/", host="also.closed.example").status == 200
        assert c.get("/", host="alike.example").status == 200
        assert c.get("/", host="open.example").status == 421


def test_host_that_requires_certificates_is_not_served_without_tls(mixed, site):
    site.add(".well-known/acme-challenge/token", "answer")
    server = mixed(listen=BOTH)
    with Client(server.server.addresses[1]) as c:
        assert c.get("/", host="open.example").status == 200
        assert c.get("/", host="closed.example").status == 403
        assert c.get("/.well-known/acme-challenge/token", host="closed.example").text == "answer"


def test_acme_challenge_over_tls_needs_the_certificate(mixed, site):
    """A host that has only TLS listeners and requires certificates responds to no challenge without a certificate."""
    site.add(".well-known/acme-challenge/token", "answer")
    server = mixed()
    with server.connect("open.example") as c:
        assert c.get("/.well-known/acme-challenge/token", host="closed.example").status == 421
        assert c.get("/.well-known/acme-challenge/none", host="closed.example").status == 421
        assert c.get("/.well-known/acme-challenge/token", host="open.example").text == "answer"
    with pytest.raises((ssl.SSLError, ConnectionError)), server.connect("closed.example") as c:
        c.get("/.well-known/acme-challenge/token", host="closed.example")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_session_of_one_host_gives_no_access_to_another(mixed, authority, version):
    """Tickets belong to the server: a ticket from a host without requirements must not be valid for a host with
    requirements."""
    server = mixed()
    context = authority.client_context()
    context.maximum_version = context.minimum_version = version

    def ask(name, session=None):
        with context.wrap_socket(socket.create_connection(server.server.addresses[0], 10), server_hostname=name,
                                 session=session) as s:
            s.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while data := s.recv(65536):
                answer += data
            return answer, s.session, s.session_reused

    answer, session, _ = ask("open.example")
    assert answer.endswith(b"hello") and session.has_ticket
    assert ask("open.example", session)[2]
    try:
        assert not ask("closed.example", session)[0].startswith(b"HTTP/1.1 200")
    except OSError:
        pass  # the server rejected the connection


# OCSP responses

def test_ocsp_response_is_stapled(secure, authority, clients):
    pair = authority.issue()
    answer = authority.answer_about(pair)
    server = secure(keys(pair, extra=f" {answer}"))
    host, port = server.server.addresses[0]
    done = subprocess.run(["openssl", "s_client", "-connect", f"{host}:{port}", "-servername", "localhost", "-status",
                           "-CAfile", authority.file], input=b"", capture_output=True, timeout=30)
    output = done.stdout.decode("utf-8", "replace")
    assert "OCSP Response Status: successful" in output and "Cert Status: good" in output
