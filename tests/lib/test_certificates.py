# SPDX-License-Identifier: Apache-2.0
"""Certificates and keys that a program passes to the library in memory (memory_certificates.c)."""
import socket
import ssl
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization

from certificates import make_authority
from monkey import PROGRAM, Server

HELPER = PROGRAM.parent / "memory_certificates"
TLS = PROGRAM.parent / "plugins/monkey-tls.so"

pytestmark = pytest.mark.skipif(not HELPER.exists() or not TLS.exists(), reason="needs tests/lib/memory_certificates.c and TLS")


@pytest.fixture
def authority(tmp_path):
    return make_authority(tmp_path)


@pytest.fixture
def serve(tmp_path):
    """Starts the program, and deletes the files that it has read."""
    started = []

    def start(*words):
        server = Server(tmp_path, [str(word) for word in words], program=HELPER)
        started.append(server)
        for word in words:
            if str(word).startswith(str(tmp_path)):
                word.unlink(missing_ok=True)
        return server.addresses[0]

    yield start
    for server in started:
        server.stop()


def refuse(*words):
    """Returns the error code and message of a program that fails to start."""
    done = subprocess.run([HELPER, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done
    code, _, message = done.stderr.strip().partition(" ")
    return int(code), message


def presented(authority, address, name="localhost", rsa_only=False):
    """Returns the serial number of the certificate that a client receives, after a request over that connection."""
    context = authority.client_context()
    if rsa_only:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
    with socket.create_connection(address, timeout=30) as plain, context.wrap_socket(plain, server_hostname=name) as s:
        s.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        reply = b"".join(iter(lambda: s.recv(4096), b""))
        assert reply.startswith(b"HTTP/1.1 200 ") and reply.endswith(b"hello")
        return s.getpeercert()["serialNumber"].lstrip("0")


def test_pair_is_presented_without_files(authority, serve):
    pair = authority.issue()
    assert presented(authority, serve("-", pair.certificate, pair.key)) == pair.serial


def test_key_may_follow_in_the_text_of_the_certificate(authority, serve):
    pair = authority.issue()
    pair.certificate.write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
    assert presented(authority, serve("-", pair.certificate, "-")) == pair.serial


def test_each_host_presents_its_own_and_others_that_of_all_hosts(authority, serve):
    common, a, b = (authority.issue([name], file=name) for name in ("localhost", "a.example", "b.example"))
    address = serve("-", common.certificate, common.key, "localhost", common.certificate, common.key,
                    "a.example", a.certificate, a.key, "b.example", b.certificate, b.key)
    for name, pair in (("localhost", common), ("a.example", a), ("b.example", b)):
        assert presented(authority, address, name) == pair.serial


def test_client_selects_by_type_of_key(authority, serve):
    ec, rsa = authority.issue(), authority.issue(kind="rsa")
    address = serve("-", ec.certificate, ec.key, "-", rsa.certificate, rsa.key)
    assert presented(authority, address) == ec.serial
    assert presented(authority, address, rsa_only=True) == rsa.serial


def test_expired_certificate_is_a_warning(authority, tmp_path):
    pair = authority.issue(days=-1)
    server = Server(tmp_path, ["-", str(pair.certificate), str(pair.key)], program=HELPER)
    server.stop()
    assert "the PEM text of the certificate: the certificate expired on " in server.log


def test_two_certificates_with_one_type_of_key_prevent_the_start(authority):
    first, other = authority.issue(file="one"), authority.issue(file="other")
    code, message = refuse("-", first.certificate, first.key, "-", other.certificate, other.key)
    assert code == -22 and "another certificate has the same key type" in message


def test_key_of_another_certificate_is_refused(authority):
    first, other = authority.issue(file="one"), authority.issue(file="other")
    code, message = refuse("-", first.certificate, other.key)
    assert (code, message) == (-22, "the PEM text of the key: the key does not belong to the certificate in the PEM text of the "
                                    "certificate: expected the private key of this certificate")


def protect(pair):
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    pair.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                           serialization.BestAvailableEncryption(b"secret")))


def replace(file, text):
    file.write_bytes(text)


@pytest.mark.parametrize("damage, message", [
    (protect, "the PEM text of the key: the key is protected by a password"),
    (lambda pair: replace(pair.key, b""), "the PEM text of the key: cannot read the key: the text is empty"),
    (lambda pair: replace(pair.key, b"garbage\n"), "the PEM text of the key: it contains no private key: expected PEM"),
    (lambda pair: replace(pair.key, pair.key.read_bytes()[:90]), "the PEM text of the key: "),
    (lambda pair: replace(pair.certificate, b""), "the PEM text of the certificate: cannot read the certificate: the text is empty"),
    (lambda pair: replace(pair.certificate, b"garbage"), "the PEM text of the certificate: it contains no certificate"),
    (lambda pair: replace(pair.certificate, pair.certificate.read_bytes()[:200]), "the PEM text of the certificate: "),
    (lambda pair: replace(pair.certificate, pair.certificate.read_bytes() + b"-----BEGIN CERTIFICATE-----\nAAAA\n"
                                                                           b"-----END CERTIFICATE-----\n"),
     "the PEM text of the certificate: a certificate after the first one is invalid"),
], ids=["password", "empty key", "garbage as key", "cut key", "empty certificate", "garbage as certificate", "cut certificate",
        "garbage in chain"])
def test_invalid_text_is_refused_by_the_call(authority, damage, message):
    pair = authority.issue()
    damage(pair)
    code, text = refuse("-", pair.certificate, pair.key)
    assert code == -22 and text.startswith(message), text


def test_missing_key_is_expected_in_the_certificate(authority):
    code, message = refuse("-", authority.issue().certificate, "-")
    assert code == -22 and message.startswith("the PEM text of the certificate: it contains no private key"), message


def test_out_of_memory_is_reported(authority):
    pair = authority.issue()
    done = subprocess.run([HELPER, "--oom", pair.certificate, pair.key], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    codes = done.stdout.split()
    assert codes[-1] == "0" and "-12" in codes and set(codes) == {"0", "-12"}, codes
