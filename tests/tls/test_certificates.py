# SPDX-License-Identifier: Apache-2.0
"""The selection of certificates, and the messages about unusable ones."""
import ssl
import textwrap

import pytest

import regexes
from certificates import make_authority
from tls_server import keys

HOSTS = """
[HOST]
    ServerName a.example *.a.example
    DocumentRoot site
    {a}
[HOST]
    ServerName b.example
    DocumentRoot site
    {b}
"""


def hosts(a="", b=""):
    return HOSTS.format(a=a.replace("\n", "\n    "), b=b.replace("\n", "\n    "))


def test_server_name_selects_the_certificate(secure, authority):
    a = authority.issue(["a.example", "x.a.example"])
    b = authority.issue(["b.example"])
    own = authority.issue(["localhost"])
    server = secure(keys(own), sections=hosts(keys(a), keys(b)))
    assert server.shown("a.example") == a.serial
    assert server.shown("x.a.example") == a.serial
    assert server.shown("b.example") == b.serial
    assert server.shown("localhost") == own.serial
    assert server.get("/", "b.example").text == "hello"


@pytest.mark.skipif(not regexes.ARE_THERE, reason="built without PCRE2")
def test_server_name_that_matches_a_regex_selects_the_certificate(secure, authority):
    own, exact = authority.issue(["localhost"]), authority.issue(["www1.example"])
    many = authority.issue(["www2.example", "www1.example", "x.www2.example"])
    server = secure(keys(own), sections=f"""
[HOST]
    ServerName ~^www\\d\\.example$
    DocumentRoot site
    {keys(many)}
[HOST]
    ServerName www1.example
    DocumentRoot site
    {keys(exact)}""")
    assert server.shown("www1.example") == exact.serial
    assert server.shown("www2.example") == many.serial
    assert server.shown("WWW2.Example") == many.serial
    context = authority.client_context()
    context.check_hostname = False
    assert server.shown("x.www2.example", context) == own.serial
    assert server.get("/", "www2.example").text == "hello"


@pytest.mark.parametrize("name", [None, "unknown.example"])
def test_unknown_name_gets_the_certificate_of_the_default_host(secure, authority, name):
    a, b = authority.issue(["a.example"]), authority.issue(["b.example"])
    server = secure(root=None, sections=hosts(keys(a), keys(b) + "Default on"))
    context = authority.client_context()
    context.check_hostname = False
    with server.connect(name, context) as c:
        assert c.sock.facts.getpeercert()["serialNumber"].lstrip("0") == b.serial


def test_host_without_certificate_presents_that_of_the_default_host(secure, authority):
    pair = authority.issue(["a.example", "b.example"])
    server = secure(root=None, sections=hosts(keys(pair)))
    assert server.shown("b.example") == pair.serial
    assert "this [HOST] has no Certificate: over TLS it presents the certificate of the default host" in server.server.err.text


def test_unknown_name_is_rejected_if_the_default_host_has_no_certificate(secure, authority):
    pair = authority.issue(["b.example"])
    server = secure(root=None, sections=hosts(b=keys(pair)))
    assert server.shown("b.example") == pair.serial
    for name in ("a.example", "unknown.example", None):
        context = authority.client_context()
        context.check_hostname = False
        with pytest.raises((ssl.SSLError, ConnectionError)):
            server.connect(name, context)
    assert server.get("/", "b.example").status == 200


def test_client_ciphers_select_the_key_type(secure, authority):
    ec, rsa = authority.issue(["localhost"], kind="ec"), authority.issue(["localhost"], kind="rsa")
    server = secure(keys(rsa, ec))
    for ciphers, pair in (("ECDHE-ECDSA-AES128-GCM-SHA256", ec), ("ECDHE-RSA-AES128-GCM-SHA256", rsa)):
        context = authority.client_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(ciphers)
        assert server.shown(context=context) == pair.serial


def test_key_may_be_in_the_certificate_file(secure, authority, tmp_path):
    pair = authority.issue()
    both = tmp_path / "both.pem"
    both.write_bytes(pair.key.read_bytes() + pair.certificate.read_bytes())
    assert secure(f"Certificate {both}").shown() == pair.serial


def test_file_names_are_relative_to_the_configuration_and_may_contain_blanks(secure, authority, tmp_path):
    pair = authority.issue(file="with a blank")
    assert secure('Certificate "authority/with a blank.pem" "authority/with a blank.key"').shown() == pair.serial


def test_printed_configuration_loads_again(secure, run, authority, tmp_path):
    pair = authority.issue(file="a b")
    server = secure('Certificate "authority/a b.pem" "authority/a b.key"\nHSTS 180d includeSubDomains preload\n'
                    "TLSVersion 1.3\nTicketLifetime 1h\nTLSGroups X25519",
                    host=f"ClientCertificates optional\nClientAuthority {authority.file}\nHTTP2 off")
    printed = run("-c", server.server.config, "-T")
    assert printed.code == 0, printed
    again = tmp_path / "again.conf"
    again.write_text(printed.out)
    assert run("-c", again, "-T").out == printed.out
    assert "127.0.0.1:0 tls" in printed.out and f"ClientAuthority    {authority.file}" in printed.out
    assert pair.serial == server.shown()


# Errors that are reported at startup

@pytest.fixture
def refused(monkey, site):
    def start(server, **how):
        it = monkey(server=textwrap.dedent(server), listen="127.0.0.1:0 tls", expect_start=False, **how)
        it.exit_code = 3
        it.wait()
        return it.err.text

    return start


def test_missing_certificate_is_rejected(refused):
    output = refused("")
    assert "no [HOST] has a Certificate: TLS connections cannot be served" in output
    assert "hint: add `Certificate FILE KEYFILE` to a [HOST], or to [SERVER] for all" in output
    assert "monkey.conf:2:" in output


@pytest.mark.parametrize("line", ["Certificate {c.certificate} {gone}", "Certificate {gone} {c.key}",
                                  "Certificate {c.certificate} {c.key} {gone}"])
def test_missing_file_is_rejected(refused, authority, tmp_path, line):
    output = refused(line.format(c=authority.issue(), gone=tmp_path / "gone.pem"))
    assert "monkey.conf:4:" in output and "gone.pem" in output and "No such file" in output


def test_key_of_another_certificate_is_rejected(refused, authority):
    a, b = authority.issue(["a.example"]), authority.issue(["b.example"])
    output = refused(f"Certificate {a.certificate} {b.key}")
    assert "monkey.conf:4:" in output and str(b.key) in output


@pytest.mark.parametrize("content", [b"", b"hello\n", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                                     bytes(range(256)) * 100])
def test_file_without_a_certificate_is_rejected(refused, authority, tmp_path, content):
    bad = tmp_path / "bad.pem"
    bad.write_bytes(content)
    output = refused(f"Certificate {bad} {authority.issue().key}")
    assert "monkey.conf:4:" in output and "bad.pem" in output


def test_encrypted_key_is_rejected_without_a_prompt(refused, authority, tmp_path):
    pair, bad = authority.issue(), tmp_path / "bad.pem"
    begin, _, rest = pair.certificate.read_text().partition("\n")
    bad.write_text(f"{begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,{16 * '00'}\n\n{rest}")
    output = refused(f"Certificate {bad} {pair.key}")
    assert "monkey.conf:4:" in output and "bad.pem" in output and "pass phrase" not in output


def test_certificate_without_tls_listener_is_a_warning(run, monkey, authority):
    server = monkey(server=keys(authority.issue()))
    output = run("-c", server.config, "-t").err
    assert "no Listen has `tls`: this certificate is not used" in output and "add `Listen 443 tls`" in output


def test_file_without_a_key_is_rejected(refused, authority):
    pair = authority.issue()
    output = refused(f"Certificate {pair.certificate}")
    assert "monkey.conf:4:" in output and pair.certificate.name in output and "key" in output


def test_folder_instead_of_a_file_is_rejected(refused, authority, tmp_path):
    output = refused(f"Certificate {tmp_path} {authority.issue().key}")
    assert "monkey.conf:4:" in output


def test_certificate_that_expires_soon_is_a_warning(secure, run, authority):
    server = secure(keys(authority.issue(days=10.5)))
    assert "the certificate expires in 10 days, on" in server.server.err.text
    assert "expires in 10 days" in run("-c", server.server.config, "-t").err


def test_two_certificates_of_one_key_type_are_rejected(refused, authority):
    a, b = authority.issue(["a.example"]), authority.issue(["b.example"])
    output = refused(keys(a, b))
    assert "monkey.conf:5:" in output


@pytest.mark.parametrize("line, message", [
    ("TLSCiphers NOTHING", "NOTHING"), ("TLSSuites NOTHING", "NOTHING"), ("TLSGroups NOTHING", "NOTHING"),
    ("TLSSuites TLS_AES_128_GCM_SHA256:TLS_NOTHING", '"TLS_NOTHING" is not a cipher of TLS 1.3'),
    ("TLSSuites TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384", "is not a cipher of TLS 1.3"),
    ("TLSCiphers ECDHE-ECDSA-AES128-GCM-SHA256:NOTHING", '"NOTHING" is not a cipher of TLS 1.2'),
    ("TLSCiphers DEFAULTS", '"DEFAULTS" is not a cipher'),
    ("TLSVersion 1.1", "expected one of 1.2, 1.3"), ("HSTS soon", "is not a time of up to 10 years"),
    ("HSTS 1d always", "`always` is unknown"), ("RedirectToHTTPS 99999", "expected on, off or a port"),
    ("ClientCertificates required", "ClientCertificates needs a ClientAuthority"),
    ("ClientCertificates optional\nClientAuthority gone.pem", "No such file"),
    ("Listen 8080 tsl", "`tsl` is not a flag of Listen"), ("Listen 8080 h2", "expected `tls` before it"),
    ("Listen 8080 tls h2c", "expected `h2`"), ("Listen 8080 !http", "every address accepts HTTP/1"),
    ("TicketLifetime 30d", "expected a time"),
])
def test_invalid_values_are_rejected(refused, authority, line, message):
    text = refused(keys(authority.issue()) + line)
    assert message in text and "monkey.conf:5:" in text or "monkey.conf:6:" in text, text


def test_authority_file_without_a_certificate_is_rejected(refused, authority, tmp_path):
    (tmp_path / "ca.pem").write_text("hello")
    output = refused(keys(authority.issue()) + "ClientCertificates required\nClientAuthority ca.pem")
    assert "ca.pem" in output and "monkey.conf:6:" in output


def test_redirect_without_tls_listener_is_rejected(run, monkey, site):
    it = monkey(server="RedirectToHTTPS on", expect_start=False)
    it.exit_code = 3
    it.wait()
    assert "no Listen has `tls` on a known port" in it.err.text
