# SPDX-License-Identifier: Apache-2.0
"""The TLS client of src/tls connects to other servers: openssl s_server, and Monkey itself. tests/tls/call.c is the
calling program."""
import re
import subprocess

import pytest

from certificates import make_authority
from monkey import ENVIRONMENT, ROOT, SECONDS
from tls_server import keys

CALL = ROOT / "build" / "dev" / "tests" / "tls" / "tls_call"
REQUEST = "GET / HTTP/1.0\r\n\r\n"
VERSIONS = pytest.mark.parametrize("version", ("-tls1_2", "-tls1_3"))


class Server:
    """Runs openssl s_server with the given options."""

    def __init__(self, pair, *options):
        self.process = subprocess.Popen(
            ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", pair.certificate, "-cert_chain", pair.certificate,
             "-key", pair.key, *map(str, options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.port = None
        output = ""
        for line in self.process.stdout:
            output += line
            if found := re.match(r"ACCEPT .*:(\d+)$", line):
                self.port = int(found[1])
                break
        assert self.port, output

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def serve():
    servers = []

    def start(*args):
        servers.append(Server(*args))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def start_call(authority):
    calls = []

    def start(port, name="localhost", text="", **options):
        options = {"authority": authority.file, "text": text, **options}
        args = [str(word) for pair in options.items() if pair[1] for word in (pair[0].replace("_", "-"), pair[1])]
        calls.append(subprocess.Popen([CALL, "127.0.0.1", str(port), name, *args], env=ENVIRONMENT, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return calls[-1]

    yield start
    for process in calls:
        process.kill()
        process.wait()


@pytest.fixture
def call(start_call):
    def run(port, name="localhost", text=REQUEST, **options):
        process = start_call(port, name, text, **options)
        out, err = process.communicate(timeout=3 * SECONDS)
        assert process.returncode == 0 and not err, err
        return out

    return run


@VERSIONS
def test_client_reads_a_page_over_tls(serve, call, authority, version):
    server = serve(authority.issue(), "-www", version)
    output = call(server.port)
    assert output.startswith(f"TLSv1.{version[-1]} new\nHTTP/1.0 200 ok")
    assert output.endswith("</BODY></HTML>\n\nended\n")


@VERSIONS
def test_client_resumes_sessions(serve, call, authority, version):
    server = serve(authority.issue(), "-www", version)
    output = call(server.port, times=4)
    assert re.findall(r"^TLSv1.* (\w+)$", output, re.MULTILINE) == ["new", "resumed", "resumed", "resumed"]


def test_client_without_tickets_uses_full_handshakes(serve, call, authority):
    server = serve(authority.issue(), "-www", "-num_tickets", 0)
    assert re.findall(r"^TLSv1.3 (\w+)$", call(server.port, times=2), re.MULTILINE) == ["new", "new"]


@VERSIONS
def test_client_reports_a_missing_close_notify(serve, start_call, authority, version):
    server = serve(authority.issue(), "-rev", version)
    process = start_call(server.port, text="olleh\n", greets="y")
    assert [process.stdout.readline() for _ in range(3)] == [f"TLSv1.{version[-1]} new\n", "hello\n", "continues\n"]
    server.process.kill()
    server.process.wait()
    out, err = process.communicate("\n", timeout=3 * SECONDS)
    assert (process.returncode, err) == (0, "")
    assert out == ("failed: Connection reset by peer: it closed the connection without close_notify: the received data may be "
                   "incomplete\n")


def test_client_reads_the_response_after_half_close(serve, call, secure, authority):
    server = secure(keys(authority.issue()))
    output = call(server.server.port, text=REQUEST, half_closes="y")
    assert "200 OK" in output and output.endswith("hello" + "ended\n")


def test_client_resumes_sessions_with_monkey(call, secure, authority):
    server = secure(keys(authority.issue()))
    output = call(server.server.port, times=3)
    assert re.findall(r"^TLSv1.3 (\w+)$", output, re.MULTILINE) == ["new", "resumed", "resumed"]
    assert output.count("hello") == 3


@VERSIONS
def test_client_presents_its_certificate(serve, call, authority, version):
    mine = authority.issue(["me"], client=True)
    server = serve(authority.issue(), "-www", version, "-Verify", 1, "-CAfile", authority.file, "-verify_return_error")
    output = call(server.port, certificate=mine.certificate, key=mine.key)
    assert "HTTP/1.0 200 ok" in output and re.search(r"Subject: O\s*=\s*tests, CN\s*=\s*me", output)


@VERSIONS
def test_client_without_required_certificate_reports_it(serve, call, authority, version):
    server = serve(authority.issue(), "-www", version, "-Verify", 1, "-CAfile", authority.file, "-verify_return_error")
    assert "it requires a client certificate: set one" in call(server.port)


@VERSIONS
def test_client_reports_a_rejected_certificate(serve, call, authority, tmp_path, version):
    mine = make_authority(tmp_path / "other").issue(["me"], client=True)
    server = serve(authority.issue(), "-www", version, "-Verify", 1, "-CAfile", authority.file, "-verify_return_error")
    assert "it rejects our client certificate: " in call(server.port, certificate=mine.certificate, key=mine.key)


def test_client_rejects_a_certificate_for_another_name(serve, call, authority):
    server = serve(authority.issue(["a.example", "*.b.example", "127.0.0.1"]), "-www")
    for name in "a.example", "x.b.example", "127.0.0.1":
        assert "HTTP/1.0 200 ok" in call(server.port, name)
    for name in "b.example", "x.x.b.example", "127.0.0.2", "localhost":
        assert (f"its certificate is for a.example, *.b.example, 127.0.0.1, not for {name}: set the name"
                in call(server.port, name))
        assert "HTTP/1.0 200 ok" in call(server.port, name, verifies="n")


def test_client_sends_sni_for_names_but_not_for_addresses(serve, call, authority):
    pair = authority.issue(["a.example"])
    server = serve(authority.issue(["127.0.0.1"]), "-www", "-servername", "a.example", "-servername_fatal",
                   "-cert2", pair.certificate, "-key2", pair.key)
    assert "HTTP/1.0 200 ok" in call(server.port, "a.example")
    assert "HTTP/1.0 200 ok" in call(server.port, "127.0.0.1")
    assert "it has no certificate for the name b.example" in call(server.port, "b.example")


def test_client_rejects_an_expired_certificate(serve, call, authority):
    server = serve(authority.issue(days=-3), "-www")
    output = call(server.port)
    assert re.search(r"failed: Protocol error: the certificate CN=localhost,O=tests expired on [-0-9]{10} [:0-9]{8} UTC: the "
                     r"server needs a new one", output)


def test_client_rejects_an_untrusted_authority(serve, call, authority, tmp_path):
    other = make_authority(tmp_path / "other", "other authority")
    server = serve(other.issue(), "-www")
    output = call(server.port)
    assert "from an authority that is not trusted, CN=other authority,O=tests: add that authority to the file" in output
    assert "HTTP/1.0 200 ok" in call(server.port, authority=other.file)


def test_client_reports_a_server_without_tls(call, monkey, site):
    site.add("index.html", "hello")
    server = monkey(protocol="h1", encryption=None)
    assert "its response is not TLS: it may expect connections without TLS" in call(server.port)


def test_client_rejects_old_versions(serve, call, authority):
    server = serve(authority.issue(), "-www", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
    assert "it supports neither TLS 1.2 nor TLS 1.3" in call(server.port)
