# SPDX-License-Identifier: Apache-2.0
"""Certificates and keys that a program passes to the library in memory (memory_certificates.c)."""
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

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


class Controlled:
    """The program with commands that change the running server."""

    def __init__(self, *words):
        self.process = subprocess.Popen([HELPER, "--control", *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def run(self, *words):
        """Returns the result, the port and the message of a command."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        result, port, message = self.process.stdout.readline().rstrip("\n").split(" ", 2)
        return int(result), int(port), message

    def listen(self):
        result, port, message = self.run("listen", "127.0.0.1:0", "tls")
        assert result == 0, message
        return "127.0.0.1", port

    def stop(self):
        self.process.stdin.close()
        errors = self.process.stderr.read()
        assert self.process.wait(60) == 0 and "ERROR" not in errors, errors
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def control():
    started = []

    def start(*words):
        started.append(Controlled(*words))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def test_tls_listener_is_added_at_run_time(authority, control):
    pair = authority.issue()
    assert presented(authority, control("-", pair.certificate, pair.key).listen()) == pair.serial


def test_replaced_certificate_is_presented_to_new_connections_only(authority, control):
    old, new = authority.issue(file="old"), authority.issue(file="new")
    server = control("-", old.certificate, old.key)
    address = server.listen()
    with socket.create_connection(address, timeout=30) as plain, \
            authority.client_context().wrap_socket(plain, server_hostname="localhost") as s:
        assert server.run("replace", "-", new.certificate, new.key) == (0, 0, "")
        assert presented(authority, address) == new.serial
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"".join(iter(lambda: s.recv(4096), b"")).endswith(b"hello")
        assert s.getpeercert()["serialNumber"].lstrip("0") == old.serial
    assert server.run("replace", "-", old.certificate, old.key)[0] == 0
    assert presented(authority, address) == old.serial


def test_replaced_certificate_leaves_other_hosts_and_key_types(authority, control):
    common, a, b, new = (authority.issue([name], file=file) for name, file in
                         (("localhost", "c"), ("a.example", "a"), ("b.example", "b"), ("a.example", "new")))
    rsa = authority.issue(["a.example"], kind="rsa", file="rsa")
    server = control("-", common.certificate, common.key, "localhost", common.certificate, common.key,
                     "a.example", a.certificate, a.key, "b.example", b.certificate, b.key)
    address = server.listen()
    assert server.run("replace", "A.example", new.certificate, new.key)[0] == 0
    assert server.run("replace", "a.example", rsa.certificate, rsa.key)[0] == 0 # in addition
    assert [presented(authority, address, name) for name in ("localhost", "a.example", "b.example")] == \
        [common.serial, new.serial, b.serial]
    assert presented(authority, address, "a.example", rsa_only=True) == rsa.serial
    other = authority.issue(["a.example"], file="other")
    assert server.run("replace", "a.example", other.certificate, other.key)[0] == 0
    assert presented(authority, address, "a.example") == other.serial
    assert presented(authority, address, "a.example", rsa_only=True) == rsa.serial


def test_host_with_the_certificate_of_others_gets_its_own(authority, control):
    names = ["a.example", "b.example", "localhost"]
    common, new = authority.issue(names, file="common"), authority.issue(names, file="new")
    server = control("-", common.certificate, common.key, "a.example", common.certificate, common.key)
    address = server.listen()
    shared = control("-", common.certificate, common.key)
    assert server.run("replace", "a.example", new.certificate, new.key)[0] == 0
    assert presented(authority, address, "a.example") == new.serial
    assert shared.run("replace", "a.example", new.certificate, new.key) == (-2, 0, "no host `a.example` has a certificate")


def test_invalid_replacement_leaves_the_certificate(authority, control):
    pair, other = authority.issue(file="pair"), authority.issue(file="other")
    server = control("-", pair.certificate, pair.key)
    address = server.listen()
    result, _, message = server.run("replace", "-", pair.certificate, other.key)
    assert result == -22 and "the key does not belong to the certificate" in message
    other.certificate.write_bytes(b"garbage")
    assert server.run("replace", "-", other.certificate, other.key)[0] == -22
    assert server.run("replace", "x.example", pair.certificate, pair.key)[0] == -2
    assert presented(authority, address) == pair.serial


def test_handshakes_during_replacements_succeed(authority, control):
    pairs = [authority.issue(file=f"pair{i}") for i in range(2)]
    server = control("-", pairs[0].certificate, pairs[0].key)
    address = server.listen()
    done = threading.Event()

    def ask():
        seen = set()
        while not done.is_set():
            seen.add(presented(authority, address))
        return seen

    with ThreadPoolExecutor(3) as clients:
        asked = [clients.submit(ask) for _ in range(3)]
        try:
            for i in range(60):
                assert server.run("replace", "-", pairs[i % 2].certificate, pairs[i % 2].key)[0] == 0
                time.sleep(0.01)
        finally:
            done.set()
    assert set().union(*(one.result() for one in asked)) == {pair.serial for pair in pairs}


def test_server_without_a_certificate_has_none_to_replace(authority, control):
    pair = authority.issue()
    server = control()
    assert server.run("replace", "-", pair.certificate, pair.key)[0] == -2
    result, _, message = server.run("listen", "127.0.0.1:0", "tls")
    assert result == -22 and "no host has a certificate" in message
