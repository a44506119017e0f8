# SPDX-License-Identifier: Apache-2.0
"""A certificate authority that validates a name (RFC 8737) presents no client certificate, even if one is required.
Its connection and its session must not be usable for anything else."""
import ctypes
import socket
import ssl

import pytest

from certificates import make_authority
from tls_server import PLUGIN, keys

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
LAST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.fixture
def closed(secure, authority, tmp_path):
    """A server that requires client certificates, while a certificate authority validates the server's name."""
    pair, folder = authority.issue(), tmp_path / "challenges"
    folder.mkdir()
    (folder / "localhost.pem").write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
    clients = make_authority(tmp_path / "clients")
    return secure(keys(pair) + f"ClientCertificates required\nClientAuthority {clients.file}\n",
                  plugins=[str(PLUGIN)], sections=f"\n[ENCRYPTED]\n    Challenges {folder}\n")


def exchange(server, context, protocol, text, session=None):
    context.set_alpn_protocols([protocol])
    with context.wrap_socket(socket.create_connection(server.server.addresses[0], 30), server_hostname="localhost",
                             session=session) as s:
        assert s.selected_alpn_protocol() == protocol
        s.sendall(text)
        answer = b""
        while data := s.recv(65536):
            answer += data
        return answer, s.session


@pytest.mark.parametrize("version", VERSIONS)
def test_challenge_session_cannot_be_resumed_for_http(closed, authority, version):
    context = authority.client_context()
    context.minimum_version = context.maximum_version = version
    answer, session = exchange(closed, context, "acme-tls/1", b"")
    assert answer == b"" and not (session and session.has_ticket)
    with pytest.raises(OSError):
        exchange(closed, context, "http/1.1", LAST, session)


class RetryingClient:
    """Offers one protocol, and a different one when the server requests a retry with another group (RFC 8446, 4.1.4)."""
    HANDSHAKE, SERVER_HELLO = 22, 2
    SET_GROUPS_LIST, SET_HOST_NAME = 92, 55  # commands of SSL_CTX_ctrl() and SSL_ctrl()
    CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
                                ctypes.c_void_p, ctypes.c_void_p)

    def __init__(self, first, second):
        self.lib = lib = ctypes.CDLL("libssl.so.3")
        for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
            getattr(lib, name).restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(lib.SSL_CTX_new(ctypes.c_void_p(lib.TLS_client_method())))
        lib.SSL_CTX_ctrl(self.context, self.SET_GROUPS_LIST, ctypes.c_long(0), b"P-521:P-256")
        self.ssl = ctypes.c_void_p(lib.SSL_new(self.context))
        lib.SSL_ctrl(self.ssl, self.SET_HOST_NAME, ctypes.c_long(0), b"localhost")
        self.second, self.answers = second, 0
        self.callback = self.CALLBACK(self.on_message)
        lib.SSL_set_msg_callback(self.ssl, self.callback)
        self.want(first)

    def want(self, protocol):
        text = bytes([len(protocol)]) + protocol
        self.lib.SSL_set_alpn_protos(self.ssl, text, len(text))

    def on_message(self, is_ours, _version, kind, data, size, _ssl, _arg):
        if not is_ours and kind == self.HANDSHAKE and size and ctypes.string_at(data, 1)[0] == self.SERVER_HELLO:
            self.answers += 1
            self.want(self.second)

    def ask(self, address):
        """Returns the received data, or None if the handshake fails."""
        with socket.create_connection(address, 30) as sock:
            sock.setblocking(True)
            self.lib.SSL_set_fd(self.ssl, sock.fileno())
            if self.lib.SSL_connect(self.ssl) != 1:
                return None
            self.lib.SSL_write(self.ssl, LAST, len(LAST))
            buffer = ctypes.create_string_buffer(65536)
            n = self.lib.SSL_read(self.ssl, buffer, len(buffer))
            return buffer.raw[:n] if n > 0 else None

    def free(self):
        self.lib.SSL_free(self.ssl)
        self.lib.SSL_CTX_free(self.context)


@pytest.mark.parametrize("second, comes_in", [(b"acme-tls/1", True), (b"http/1.1", False)])
def test_retried_hello_cannot_drop_the_challenge(closed, second, comes_in):
    client = RetryingClient(b"acme-tls/1", second)
    try:
        assert client.ask(closed.server.addresses[0]) is None
        assert client.answers == (2 if comes_in else 1)  # the server retries both hellos, and then rejects the changed one
    finally:
        client.free()
