# SPDX-License-Identifier: Apache-2.0
"""TLS on the wire: slow, faulty and hostile clients, and records of every size."""
import random
import re
import socket
import ssl
import subprocess
import time

import pytest

from client import Client
from proc import wait_until
from tls_server import keys

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
HANDSHAKE, ALERT, CONTENT = 22, 21, 23


class ManualTlsClient:
    """A TLS client whose bytes the test transfers: `out()` returns the bytes to send, `take()` passes received bytes to it."""

    def __init__(self, server, context, name="localhost", receive_buffer=None):
        self.sock = socket.socket()
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(30)
        self.sock.connect(server.server.addresses[0])
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_hostname=name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def out(self):
        return self._out.read()

    def take(self, size=65536):
        data = self.sock.recv(size)
        self._in.write(data) if data else self._in.write_eof()

    def shake_hands(self, send=None):
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                (send or self.sock.sendall)(self.out())
                self.take()
        (send or self.sock.sendall)(self.out())
        return self

    def read(self, size=65536, piece=65536):
        """Returns the next data, or nothing after close_notify."""
        while True:
            try:
                return self.tls.read(size)
            except ssl.SSLWantReadError:
                self.take(piece)
            except ssl.SSLZeroReturnError:
                return b""

    def read_all(self, piece=65536):
        parts = []
        while data := self.read(piece=piece):
            parts.append(data)
        return b"".join(parts)


@pytest.fixture
def start(secure, authority):
    return lambda more="", **how: secure(keys(authority.issue()) + more, **how)


@pytest.fixture
def context(authority):
    return authority.client_context()


def limit_version(context, version):
    context.minimum_version = context.maximum_version = version
    return context


def still_serves(server):
    assert server.get("/").text == "hello"


def exchange_raw(server, data, end=True):
    """Sends bytes, and returns everything that it receives until the server closes the connection."""
    with socket.create_connection(server.server.addresses[0], 30) as s:
        s.sendall(data)
        if end:
            s.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while part := s.recv(65536):
                got += part
        except ConnectionResetError:
            pass
        return got


def hello_of(context, name="localhost"):
    out = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    return out.read()


# Data other than TLS

def test_plain_http_on_a_tls_port_gets_400(start):
    server = start()
    for text in (GET, b"GET / HTTP/1.0\r\n\r\n", b"G", b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n" + b"x" * 5000):
        got = exchange_raw(server, text, end=len(text) < 20)
        if len(text) >= 5:
            assert got.startswith(b"HTTP/1.1 400 ") and b"HTTPS" in got and b"Connection: close" in got, got
            head, body = got.split(b"\r\n\r\n", 1)
            assert int(re.search(rb"Content-Length: (\d+)", head)[1]) == len(body)
    still_serves(server)


@pytest.mark.parametrize("data", [
    b"\0" * 100, b"\xff" * 100, b"\x16\x03\x01\xff\xff" + b"x" * 100, b"\x16\x03\x01\x00\x00" * 10,
    b"\x16\x03\x01\x00\x05hello", b"\x15\x03\x01\x00\x02\x02\x28", b"\x80\x2e\x01\x00\x02" + b"\0" * 50,
    b"\x16\x03\x01\x40\x00" + b"\x01" * 16384], ids=lambda d: d[:5].hex())
def test_garbage_instead_of_a_hello_gets_an_alert(start, data):
    server = start("Timeout 1s\n")  # the server may wait for the rest of a hello
    got = exchange_raw(server, data, end=False)
    assert got == b"" or got[0] == ALERT, got
    still_serves(server)


def test_randomly_changed_hello_gets_an_alert_or_a_handshake(start, context):
    server, dice = start(), random.Random(1)
    hello = hello_of(context)
    for _ in range(60):
        data = bytearray(hello)
        for _ in range(dice.randrange(1, 6)):
            data[dice.randrange(5, len(data))] = dice.randrange(256)
        got = exchange_raw(server, bytes(data))
        assert got == b"" or got[0] in (ALERT, HANDSHAKE), got
    still_serves(server)


def test_incomplete_hello_gets_no_response(start, context):
    server, hello = start(), hello_of(context)
    for n in (1, 4, 5, 6, 100, len(hello) - 1):
        assert exchange_raw(server, hello[:n]) == b""
    still_serves(server)


def test_malformed_server_name_list_gets_an_alert(start, context):
    """Malformed lists of server names, lists with several names, and invalid names."""
    server, hello = start(), hello_of(context)
    at = hello.index(b"localhost") - 5
    for names in (b"\0\x0c\0\0\4abcd\0\0\2xy", b"\0\x0c\0\0\0localhost", b"\0\x0c\0\0\x09local\0ost",
                  b"\0\x0c\1\0\x09localhost", b"\0\x0d\0\0\x09localhost"):
        assert exchange_raw(server, hello[:at] + names + hello[at + 14:])[:1] == bytes([ALERT]), names
    still_serves(server)


# Slow clients

@pytest.mark.parametrize("version", VERSIONS)
def test_connection_works_byte_by_byte(start, context, version):
    server = start()

    def slowly(data):
        for i in range(len(data)):
            c.sock.sendall(data[i:i + 1])

    with ManualTlsClient(server, limit_version(context, version)) as c:
        c.shake_hands(slowly)
        c.tls.write(LAST)
        slowly(c.out())
        assert c.read_all().endswith(b"hello")


def test_hello_in_several_records_is_accepted(start, context):
    """A hello may be split into records of any size (RFC 8446, 5.1)."""
    def in_pieces(data):
        if data[0] != HANDSHAKE or data[5] != 1:
            c.sock.sendall(data)
            return
        version, body = data[1:3], data[5:]
        for i in range(0, len(body), 50):
            piece = body[i:i + 50]
            c.sock.sendall(bytes([HANDSHAKE]) + version + len(piece).to_bytes(2, "big") + piece)

    with ManualTlsClient(start(), context) as c:
        c.shake_hands(in_pieces)
        c.tls.write(LAST)
        c.sock.sendall(c.out())
        assert c.read_all().endswith(b"hello")


def test_handshake_timeout_closes_the_connection(start, context):
    server = start("Timeout 1s")
    hello = hello_of(context)
    begin = time.monotonic()
    assert exchange_raw(server, hello[:50], end=False) == b""
    assert exchange_raw(server, hello, end=False)[0] == HANDSHAKE
    assert 1.5 < time.monotonic() - begin < 20
    still_serves(server)


def test_handshake_timeout_is_separate_from_the_header_timeout(start, context):
    server = start("Timeout 2s")
    with ManualTlsClient(server, context) as c:
        time.sleep(1.2)
        c.shake_hands()
        time.sleep(1.2)
        c.tls.write(LAST)
        c.sock.sendall(c.out())
        assert c.read_all().endswith(b"hello")


# Rejected handshakes

@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_tls_versions_are_rejected(start, context):
    server = start()
    context.set_ciphers("ALL:@SECLEVEL=0")
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = version
        with ManualTlsClient(server, context) as c, pytest.raises(ssl.SSLError):
            c.shake_hands()
    still_serves(server)


@pytest.mark.parametrize("cipher", ["AES128-SHA", "ECDHE-ECDSA-AES128-SHA256", "DHE-RSA-AES128-GCM-SHA256"])
def test_old_ciphers_are_rejected(start, context, cipher):
    limit_version(context, ssl.TLSVersion.TLSv1_2).set_ciphers(cipher + ":@SECLEVEL=0")
    with ManualTlsClient(start(), context) as c, pytest.raises(ssl.SSLError):
        c.shake_hands()


def test_preferred_cipher_is_selected(start, context):
    server = start()
    for version, expected in zip(VERSIONS, ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256")):
        with ManualTlsClient(server, limit_version(context, version)) as c:
            assert c.shake_hands().tls.cipher()[0] == expected
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256")
    with ManualTlsClient(server, context) as c:
        assert "CHACHA20" in c.shake_hands().tls.cipher()[0]


def run_s_client(server, version, lines, seconds=30):
    """Returns the output of openssl s_client for these input lines."""
    host, port = server.server.addresses[0]
    with subprocess.Popen(["openssl", "s_client", "-connect", f"{host}:{port}", "-servername", "localhost", version],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        try:
            return client.communicate(lines, seconds)[0].decode("latin-1")
        except subprocess.TimeoutExpired:
            client.kill()
            return client.communicate()[0].decode("latin-1")


def test_renegotiation_is_refused(start):
    server = start()
    output = run_s_client(server, "-tls1_2", b"R\n" + GET)
    assert "RENEGOTIATING" in output and "no renegotiation" in output and "hello" not in output
    still_serves(server)


# Many connections at once

def test_handshakes_do_not_starve_open_connections(start, context):
    server = start()
    hellos = [hello_of(context) for _ in range(300)]
    sockets = [socket.create_connection(server.server.addresses[0], 30) for _ in hellos]
    with server.connect() as c:
        assert c.get("/").text == "hello"
        for s, hello in zip(sockets, hellos):
            s.sendall(hello)
        for _ in range(20):
            assert c.get("/").text == "hello"
        for s in sockets:
            assert s.recv(1) == bytes([HANDSHAKE])
            s.close()
    still_serves(server)


def test_many_concurrent_handshakes_complete(start, context):
    server = start()
    clients = [ManualTlsClient(server, context) for _ in range(150)]
    for c in clients:
        with pytest.raises(ssl.SSLWantReadError):
            c.tls.do_handshake()
        c.sock.sendall(c.out())
    for c in clients:
        with c:
            c.take()
            c.shake_hands()
            c.tls.write(LAST)
            c.sock.sendall(c.out())
            assert c.read_all().endswith(b"hello")


# Application data

@pytest.mark.parametrize("version", VERSIONS)
def test_request_in_one_byte_records_is_read(start, context, version):
    with ManualTlsClient(start(), limit_version(context, version)) as c:
        c.shake_hands()
        for i in range(len(LAST)):
            c.tls.write(LAST[i:i + 1])
        c.sock.sendall(c.out())
        assert c.read_all().endswith(b"hello")


def test_request_body_in_one_byte_records_is_read(start, context):
    """The client sends more records than one loop iteration reads: the server must process all of them."""
    content = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000\r\n\r\n" + b"x" * 20000
    with ManualTlsClient(start(), context) as c:
        c.shake_hands()
        for i in range(len(content)):
            c.tls.write(content[i:i + 1])
        c.tls.write(LAST)
        c.sock.sendall(c.out())
        output = c.read_all()
        assert output.startswith(b"HTTP/1.1 405 ") and output.endswith(b"hello")


@pytest.mark.parametrize("piece", [1000, 16384])
def test_pipelined_requests_are_answered(start, context, piece):
    with ManualTlsClient(start(), context) as c:
        c.shake_hands()
        text = GET * 200 + LAST
        for i in range(0, len(text), piece):
            c.tls.write(text[i:i + piece])
        c.sock.sendall(c.out())
        assert c.read_all().count(b"hello") == 201


def test_request_sent_with_the_handshake_is_read(start, context):
    """The server reads the data after the last handshake message without waiting for more."""
    kept = []
    with ManualTlsClient(start(), context) as c:
        c.shake_hands(lambda data: c.sock.sendall(data) if c.tls.version() is None or data[5] == 1 else kept.append(data))
        c.tls.write(LAST)
        c.sock.sendall(b"".join(kept) + c.out())
        assert c.read_all().endswith(b"hello")


@pytest.mark.parametrize("receive_buffer, piece", [(2048, 700), (4096, 5000), (None, 65536)])
@pytest.mark.parametrize("version", VERSIONS)
def test_large_response_to_a_slow_reader_is_complete(start, context, site, version, receive_buffer, piece):
    content = random.Random(2).randbytes(1_500_000)
    site.add("large.bin", content)
    with ManualTlsClient(start(), limit_version(context, version), receive_buffer=receive_buffer) as c:
        c.shake_hands()
        c.tls.write(LAST.replace(b"GET /", b"GET /large.bin"))
        c.sock.sendall(c.out())
        output = c.read_all(piece)
        assert output.split(b"\r\n\r\n", 1)[1] == content


def test_large_responses_on_one_connection_are_complete(start, context, site):
    content = random.Random(3).randbytes(300_000)
    site.add("large.bin", content)
    ask = GET.replace(b"GET /", b"GET /large.bin")
    with ManualTlsClient(start(), context, receive_buffer=8192) as c:
        c.shake_hands()
        c.tls.write(ask * 5 + LAST)
        c.sock.sendall(c.out())
        output = c.read_all()
        assert output.count(content) == 5 and output.endswith(b"hello")


# Connection close

def test_server_sends_close_notify(start, context):
    """The client raises Truncated if close_notify is missing."""
    server = start("KeepAliveTimeout 1s")
    with server.connect() as c:
        assert c.get("/", fields=[("Connection", "close")]).text == "hello"
        c.expect_end()
    with server.connect() as c:
        assert c.get("/").text == "hello"
        c.expect_end()  # after the idle timeout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("told", [True, False])
def test_half_closed_connection_gets_its_response(start, context, site, version, told):
    """A client that half-closes the connection, with or without close_notify, still gets its response."""
    content = b"z" * 400_000
    site.add("large.bin", content)
    with ManualTlsClient(start(), limit_version(context, version), receive_buffer=4096) as c:
        c.shake_hands()
        c.tls.write(LAST.replace(b"GET /", b"GET /large.bin"))
        if told:
            with pytest.raises(ssl.SSLError):
                c.tls.unwrap()
        c.sock.sendall(c.out())
        c.sock.shutdown(socket.SHUT_WR)
        if told:  # Python does not read after it has sent close_notify
            n = 0
            while data := c.sock.recv(65536):
                n += len(data)
            assert n > len(content)
        else:
            assert c.read_all().endswith(content)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("together", [True, False])
def test_close_notify_is_answered_immediately(start, context, version, together):
    """A client that sends close_notify but keeps the connection open receives the server's close_notify, even if its own
    close_notify came with a request."""
    with ManualTlsClient(start(), limit_version(context, version)) as c:
        c.shake_hands()
        c.tls.write(GET)
        if not together:
            c.sock.sendall(c.out())
            assert c.read().endswith(b"hello")
        with pytest.raises(ssl.SSLError):
            c.tls.unwrap()
        c.sock.sendall(c.out())
        c.sock.settimeout(10)  # shorter than the idle timeout
        while c.sock.recv(65536):
            pass


def test_truncated_record_does_no_harm(start, context):
    server = start()
    for text in (b"GET / HT", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc"):
        with ManualTlsClient(server, context) as c:
            c.shake_hands()
            c.tls.write(text)
            data = c.out()
            c.sock.sendall(data[:-3])
    still_serves(server)


@pytest.mark.parametrize("version", VERSIONS)
def test_changed_record_gets_an_alert(start, context, version):
    server = start()
    with ManualTlsClient(server, limit_version(context, version)) as c:
        c.shake_hands()
        c.tls.write(GET)
        data = bytearray(c.out())
        data[-1] ^= 1
        c.sock.sendall(bytes(data))
        with pytest.raises(ssl.SSLError, match="(?i)bad.record.mac"):
            c.read_all()
    still_serves(server)


def test_client_reset_during_a_response_does_no_harm(start, context, site):
    site.add("large.bin", b"z" * 3_000_000)
    server = start()
    for _ in range(5):
        c = ManualTlsClient(server, context, receive_buffer=4096).shake_hands()
        c.tls.write(GET.replace(b"GET /", b"GET /large.bin"))
        c.sock.sendall(c.out())
        c.sock.recv(1000)
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        c.sock.close()
    still_serves(server)


def test_connection_beyond_the_limit_gets_no_plain_text(start):
    server = start("MaxConnectionsPerAddress 2")
    with server.connect(), server.connect():
        assert exchange_raw(server, b"") == b""

    def is_let_in():
        try:
            with Client(server.server.addresses[0], tls=server.authority.client_context()) as c:
                return c.get("/").text == "hello"
        except OSError:
            return False

    wait_until(is_let_in, "the server has noticed that both clients have disconnected")
