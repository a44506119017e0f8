# SPDX-License-Identifier: Apache-2.0
"""TLS in other parts of the program: the command line, daemon mode, messages, and the TLS variables of CGI programs and
plugins."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from http2 import Http2Client
from monkey import ENVIRONMENT, PROGRAM, SECONDS, parse_url
from certificates import make_authority
from client import Client
from tls_server import keys


def test_printed_urls_have_the_right_scheme(secure, authority):
    server = secure(keys(authority.issue()), listen=["127.0.0.1:0 tls", "127.0.0.2:0"])
    assert re.search(r"^  https://127\.0\.0\.1:\d+/$", server.server.out.text, re.MULTILINE)
    assert re.search(r"^  http://127\.0\.0\.2:\d+/$", server.server.out.text, re.MULTILINE)


def test_address_on_the_command_line_may_use_tls(monkey, site, authority, tmp_path):
    site.add("index.html", "hello")
    pair = authority.issue()
    config = tmp_path / "a.conf"
    config.write_text(f"[SERVER]\n    {keys(pair)}\n[HOST]\n    DocumentRoot site\n")
    server = monkey(args=["-c", config, "-p", "127.0.0.1:0 tls"])
    with Client(server.addresses[0], tls=authority.client_context()) as c:
        assert c.get("/").text == "hello"


def test_daemon_serves_tls(site, authority, tmp_path):
    site.add("index.html", "hello")
    config = tmp_path / "a.conf"
    config.write_text(f"[SERVER]\n    Listen 127.0.0.1:0 tls\n    PidFile pid\n    ErrorLog log\n    "
                      f"Certificate {authority.issue().certificate.relative_to(tmp_path)} authority/localhost-ec.key\n"
                      "[HOST]\n    DocumentRoot site\n")
    done = subprocess.run([PROGRAM, "-D", "-c", "a.conf"], cwd=tmp_path, capture_output=True, timeout=SECONDS, text=True,
                          env=os.environ | ENVIRONMENT)
    pid = int((tmp_path / "pid").read_text())
    try:
        assert done.returncode == 0, done
        address = parse_url(re.search(r"^  (https://\S+)$", done.stdout, re.MULTILINE)[1])
        with Client(address, tls=authority.client_context()) as c:
            assert c.get("/").text == "hello"
    finally:
        end = subprocess.Popen(["tail", "-f", f"--pid={pid}", "/dev/null"])
        os.kill(pid, signal.SIGTERM)
        end.wait(SECONDS)
    assert "Sanitizer" not in (tmp_path / "log").read_text()


def has_openssl(*wanted):
    """Is the library of the tested program that version or a later one? It is the system's, as that of the command openssl."""
    found = subprocess.run(["openssl", "version"], capture_output=True, text=True, timeout=SECONDS).stdout
    return tuple(map(int, re.search(r"(\d+)\.(\d+)", found).groups())) >= wanted


@pytest.mark.skipif(not has_openssl(3, 5), reason="OpenSSL is older than 3.5: it lacks ML-KEM")
@pytest.mark.parametrize("offer, line, group", [
    ("X25519MLKEM768", "", "X25519MLKEM768"), ("X25519MLKEM768:X25519", "", "X25519MLKEM768"), ("X25519", "", "x25519"),
    ("P-256", "", "secp256r1"), ("X25519MLKEM768:X25519", "TLSGroups X25519:P-256", "x25519"),
])
def test_post_quantum_key_exchange_is_preferred(secure, authority, tmp_path, offer, line, group):
    log = tmp_path / "access.log"
    server = secure(keys(authority.issue()) + line, plugins=["logger"], listen=["127.0.0.1:0 tls"],
                    sections=f'[LOGGER]\n    AccessLog {log}\n    Format %{{tls_version}}x|%{{tls_group}}x\n')
    host, port = server.server.addresses[0]
    done = subprocess.run(["openssl", "s_client", "-connect", f"{host}:{port}", "-servername", "localhost", "-groups", offer, "-quiet"],
                          input=b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", capture_output=True, timeout=SECONDS)
    assert b"200 OK" in done.stdout, done
    server.server.stop()
    assert log.read_text() == f"TLSv1.3|{group}\n"


def test_explain_names_certificate_and_redirect(run, site, authority, tmp_path):
    site.add("index.html", "hello")
    pair = authority.issue(["a.example"])
    config = tmp_path / "a.conf"
    config.write_text(f"[SERVER]\n    Listen 127.0.0.1:8443 tls\n    Listen 127.0.0.1:8080\n    RedirectToHTTPS on\n"
                      f"    HSTS 1d\n[HOST]\n    ServerName a.example\n    DocumentRoot site\n    {keys(pair)}\n")
    output = run("-c", config, "explain", "GET", "https://a.example:8443/").out
    assert "listener  127.0.0.1:8443 tls\n" in output and "Strict-Transport-Security: max-age=86400\n" in output
    assert f"tls       its certificate expires on {pair.x509.not_valid_after_utc:%Y-%m-%d %H:%M} UTC\n" in output
    output = run("-c", config, "explain", "GET", "http://a.example:8080/x").out
    assert "tls       redirects plain HTTP to https://a.example:8443/x\n" in output
    assert "answer    308 Permanent Redirect" in output and "Location: https://a.example:8443/x" in output
    output = run("-c", config, "explain", "GET", "https://a.example/").out
    assert "no listener on port 443 with TLS" in output


def test_missing_tls_object_is_reported(site, tmp_path, run):
    """Without the TLS object, a TLS listener is an error, and the hint names the object; a certificate alone is no error."""
    program = tmp_path / "alone" / "monkey"
    program.parent.mkdir()
    shutil.copy(PROGRAM, program)
    config = tmp_path / "a.conf"
    config.write_text("[SERVER]\n    Listen 127.0.0.1:8443 tls\n[HOST]\n    DocumentRoot site\n    Certificate a.pem\n")
    done = subprocess.run([program, "-t", "-c", config], capture_output=True, text=True, env=os.environ | ENVIRONMENT)
    if done.returncode == 3 and "monkey-tls.so" not in done.stderr:
        pytest.skip("the TLS object is installed on this machine")
    assert done.returncode == 3
    assert "a.conf:2:" in done.stderr and "this server does not support TLS: " in done.stderr
    assert "hint: install the package with monkey-tls.so, or build with OpenSSL 3" in done.stderr
    config.write_text("[SERVER]\n    Listen 127.0.0.1:8443\n[HOST]\n    DocumentRoot site\n    Certificate a.pem\n")
    assert subprocess.run([program, "-t", "-c", config], capture_output=True).returncode == 0


def test_cgi_programs_get_tls_variables(secure, site, authority, tmp_path):
    clients = make_authority(tmp_path / "clients", "authority of clients")
    somebody = clients.issue(["somebody"], client=True)
    site.add("cgi-bin/env.sh", "#!/bin/sh\necho Content-Type: text/plain\necho\nenv | grep -E '^(HTTPS|SSL_|REQUEST_SCHEME)'\n",
             mode=0o755)
    server = secure(keys(authority.issue()) + f"ClientCertificates optional\nClientAuthority {clients.file}",
                    plugins=["cgi"], sections="[ROUTES]\n    /cgi-bin/* cgi\n    /* static\n",
                    listen=["127.0.0.1:0 tls", "127.0.0.2:0"])

    def environment(**how):
        text = server.get("/cgi-bin/env.sh", **how).text
        return dict(line.partition("=")[::2] for line in text.splitlines())

    got = environment()
    assert got["HTTPS"] == "on" and got["REQUEST_SCHEME"] == "https" and got["SSL_CLIENT_VERIFY"] == "NONE"
    assert got["SSL_PROTOCOL"] == "TLSv1.3" and got["SSL_TLS_SNI"] == "localhost" and "SSL_CLIENT_S_DN" not in got
    got = environment(context=authority.client_context(somebody))
    assert got["SSL_CLIENT_VERIFY"] == "SUCCESS" and got["SSL_CLIENT_S_DN"] == "CN=somebody,O=tests"
    assert got["SSL_CLIENT_I_DN"] == "CN=authority of clients,O=tests"
    assert got["SSL_CLIENT_FINGERPRINT"].lower() == somebody.fingerprint
    with Client(server.server.addresses[1]) as c:
        assert c.get("/cgi-bin/env.sh").text == "REQUEST_SCHEME=http\n"


def test_metrics_contain_the_expiry_of_certificates(secure, authority):
    pair = authority.issue(["a.example", "localhost"])
    server = secure(keys(pair), host="ServerName a.example", plugins=["metrics"], sections="[ROUTES]\n    /m metrics\n    /* static\n")
    text = server.get("/m").text
    line = re.search(r'^monkey_tls_certificate_expiry_timestamp_seconds\{host="a\.example"\} (\d+)$', text, re.MULTILINE)
    assert abs(int(line[1]) - pair.x509.not_valid_after_utc.timestamp()) < 2


def test_http2_is_offered_unless_it_is_off(secure, authority):
    pair = authority.issue(["localhost", "old.example"])
    server = secure(keys(pair), sections="[HOST]\n    ServerName old.example\n    DocumentRoot site\n    HTTP2 off\n")
    both = authority.client_context(alpn=["h2", "http/1.1"])
    with server.connect("old.example", both) as c:
        assert c.sock.protocol == "http/1.1"
    with Http2Client(server.server.addresses[0], tls=authority.client_context(alpn=["h2"])) as c:
        assert c.get("/", host="localhost").text == "hello"
    with pytest.raises(OSError):
        server.connect("old.example", authority.client_context(alpn=["h2"]))


def test_http2_connection_reuse_respects_the_rules_of_each_host(secure, authority, tmp_path):
    """Browsers reuse a connection for all names in its certificate; the rules of each host must still hold."""
    clients = make_authority(tmp_path / "clients", "authority of clients")
    pair = authority.issue(["localhost", "closed.example", "open.example"])
    server = secure(keys(pair), plugin=False, sections=f"""
[HOST]
    ServerName open.example
    DocumentRoot site
[HOST]
    ServerName closed.example
    DocumentRoot site
    ClientCertificates required
    ClientAuthority {clients.file}
""")
    with Http2Client(server.server.addresses[0], tls=authority.client_context(alpn=["h2"])) as c:
        assert c.get("/", host="localhost").status == 200
        assert c.get("/", host="closed.example").status == 421
        assert c.get("/", host="open.example").status == 200
