# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of the acme plugin: servers that get certificates from Pebble, and the plugin's state folder. Test modules
import the fixtures `state`, `world` and `slow`.
"""
import contextlib
import json
import os
import socket
import ssl
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtensionOID

from monkey import SECONDS
from pebble import PROGRAMS, Pebble, Loopback

MARKS = [pytest.mark.skipif(not all(PROGRAMS), reason="pebble is not installed"), pytest.mark.timeout(180)]
NEW = r"acme: {}: new certificate obtained"


class State:
    """The state folder of the plugin."""

    def __init__(self, path):
        self.path = path

    def __truediv__(self, name):
        return self.path / name

    def pem(self, name):
        return self.path / f"certificates/{name}.pem"

    def certificate(self, name):
        return x509.load_pem_x509_certificates(self.pem(name).read_bytes())[0]

    def key(self, name):
        return serialization.load_pem_private_key(self.pem(name).read_bytes(), None)

    def names(self, name):
        extension = self.certificate(name).extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME)
        return extension.value.get_values_for_type(x509.DNSName)

    def failure(self, name):
        path = self.path / f"failures/{name}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def check(self, name):
        """Checks that the key matches the certificate and that no other user can read the key."""
        assert self.key(name).public_key() == self.certificate(name).public_key()
        for path in self.path.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # a temporary file, which got its final name
                assert path.stat().st_mode & 0o077 == 0, path


@pytest.fixture
def state(tmp_path):
    return State(tmp_path / "state")


@pytest.fixture
def world(monkey, site, tmp_path, state):
    """Starts Pebble and a server that gets its certificates from it."""
    site.add("index.html", "home")
    here, pebbles = Loopback(), []

    class World:
        pebble = server = None
        loopback, http, tls = here, here.port(), here.port()

        def start_pebble(self, **how):
            self.pebble = Pebble(tmp_path, here, self.http, self.tls, **how)
            pebbles.append(self.pebble)
            return self.pebble

        def start(self, keys="", names="www.example.test", sections="", tls=False, workers=1, **how):
            own = {k: how.pop(k) for k in list(how) if k in ("validity", "rejected_nonces", "reuse", "external",
                                                            "always_valid", "blocked")}
            if not self.pebble:
                self.start_pebble(**own)
            if self.server:
                self.server.stop()
            text = "".join(f"    {line.strip()}\n" for line in keys.splitlines())
            top = f"""[ACME]
    AgreeToTerms on
    Directory    {self.pebble.directory}
    Authority    {self.pebble.authority}
    StateFolder        {state.path}
    RetryDelay   1s
{text}"""
            listen = [f"{here.address}:{self.http}"] + ([f"{here.address}:{self.tls} tls"] if tls else [])
            self.server = monkey(plugins=["acme", *how.pop("plugins", [])], top=top + how.pop("top", ""), listen=listen,
                          host=how.pop("host", "") or (f"ServerName {names}\n" if names else ""), sections=sections, workers=workers, **how)
            return self.server

    yield World()
    for each in pebbles:
        each.stop()


def wait_for(condition, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, "no certificate arrived"
        time.sleep(0.05)
    return answer


def shown(world, name="www.example.test"):
    """Returns the certificate that clients of that name receive, or None if the handshake fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((world.loopback.address, world.tls), SECONDS) as plain:
            with context.wrap_socket(plain, server_hostname=name) as c:
                return x509.load_der_x509_certificate(c.getpeercert(True))
    except (ssl.SSLError, ConnectionError):
        return None


def helpers(server):
    """The process IDs of this server's monkey-acme processes."""
    found, parents = [], [server.pid]
    while parents:
        pid = parents.pop()
        try:
            children = open(f"/proc/{pid}/task/{pid}/children").read().split()
            parents += map(int, children)
            if os.readlink(f"/proc/{pid}/exe").endswith("/monkey-acme"):
                found.append(pid)
        except OSError:
            pass
    return found


@pytest.fixture
def slow(world):
    """Like `world`, but the CA delays each validation by up to five seconds."""
    world.start_pebble()
    world.pebble.environment |= {"PEBBLE_VA_NOSLEEP": "0", "PEBBLE_VA_SLEEPTIME": "5"}
    world.pebble.stop()
    world.pebble.start()
    return world
