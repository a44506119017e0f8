# SPDX-License-Identifier: Apache-2.0
"""Session resumption with tickets: by other workers and after reloads, but only for a limited time."""
import datetime
import signal
import socket
import ssl

import pytest

from certificates import make_authority, now
from proc import wait_until
from tls_server import keys

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


class ResumingClient:
    """A client that keeps its session. It uses Python's own sockets, because the session of an ssl.SSLObject cannot be
    set later."""

    def __init__(self, server, authority, version=ssl.TLSVersion.TLSv1_3):
        self.address = server.server.addresses[0]
        self.context = authority.client_context()
        self.context.minimum_version = self.context.maximum_version = version
        self.session = None

    def connect(self, keep=True):
        """Returns whether the session was resumed, and keeps the new ticket for the next connection."""
        with self.context.wrap_socket(socket.create_connection(self.address, 10), server_hostname="localhost",
                                      session=self.session) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while data := s.recv(65536):
                answer += data
            assert answer.endswith(b"hello"), answer
            if keep:
                self.session = s.session
            return s.session_reused


@pytest.fixture
def start(secure, authority):
    return lambda more="", **how: secure(keys(authority.issue()) + more, **how)


@pytest.mark.parametrize("version", VERSIONS)
def test_session_is_resumed(start, authority, version):
    client = ResumingClient(start(), authority, version)
    assert not client.connect()
    assert client.session.has_ticket
    assert client.connect() and client.connect()


def test_session_is_resumed_by_any_worker(start, authority):
    """Each worker has its own listening socket; with this many connections, each worker gets some."""
    client = ResumingClient(start(workers=4), authority, ssl.TLSVersion.TLSv1_2)
    client.connect()
    assert all(client.connect(keep=False) for _ in range(40))


@pytest.mark.parametrize("version", VERSIONS)
def test_session_is_resumed_after_a_reload(start, authority, version):
    server = start()
    client = ResumingClient(server, authority, version)
    client.connect()
    server.server.tell(signal.SIGHUP)
    server.server.err.wait_for("the new configuration serves")
    assert client.connect()


@pytest.mark.processes("an embedded server does not reload")
def test_session_is_resumed_after_a_change_of_certificates(start, authority):
    """The client verified the server when the session began, and the ticket key has not changed."""
    server = start()
    client = ResumingClient(server, authority)
    client.connect()
    authority.issue()
    server.server.err.wait_for("the new configuration serves")
    assert client.connect()


@pytest.mark.parametrize("version", VERSIONS)
def test_ticket_keys_are_rotated(start, authority, version):
    """The previous ticket key is still accepted, but not the key before it."""
    server = start("TicketLifetime 1s")
    client = ResumingClient(server, authority, version)
    client.connect()
    wait_until(lambda: not client.connect(keep=False), "the ticket has expired", 20)


def test_tickets_can_be_disabled(start, authority):
    client = ResumingClient(start("TicketLifetime off"), authority)
    client.connect()
    assert client.session is None or not client.session.has_ticket or not client.connect()
    client = ResumingClient(start("TicketLifetime off"), authority, ssl.TLSVersion.TLSv1_2)
    client.connect()
    assert not client.connect()


def test_ticket_keys_are_not_written_to_disk(start, authority, tmp_path):
    server = start()
    ResumingClient(server, authority).connect()
    names = {path.name for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "configurations"}
    assert names == {"monkey.conf", "index.html", "authority.pem", "localhost-ec.pem", "localhost-ec.key"}


@pytest.mark.parametrize("version", VERSIONS)
def test_session_ends_with_the_client_certificate(start, authority, tmp_path, version):
    clients = make_authority(tmp_path / "clients")
    server = start(f"ClientCertificates required\nClientAuthority {clients.file}\n")
    client = ResumingClient(server, authority, version)
    pair = clients.issue(["somebody"], client=True, days=6 / 86400)
    client.context.load_cert_chain(pair.certificate, pair.key)
    client.connect()
    assert client.connect()
    wait_until(lambda: now() > pair.x509.not_valid_after_utc + datetime.timedelta(seconds=1), "the certificate has expired", 20)
    with pytest.raises(OSError):
        client.connect()
