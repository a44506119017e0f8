# SPDX-License-Identifier: Apache-2.0
"""The plugin acme: certificates from Pebble, a real authority on loopback."""
import datetime
import json
import os
import re
import signal
import ssl
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtensionOID

from monkey import SECONDS
from pebble import PROGRAMS, Pebble, Place

pytestmark = [pytest.mark.skipif(not all(PROGRAMS), reason="pebble is not installed"), pytest.mark.timeout(180)]

NEW = r"acme: {}: there is a new certificate"


class State:
    """What the plugin keeps."""

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
        """Certificate and key belong together, and nobody else can read them."""
        assert self.key(name).public_key() == self.certificate(name).public_key()
        for path in self.path.rglob("*"):
            assert path.stat().st_mode & 0o077 == 0, path


@pytest.fixture
def state(tmp_path):
    return State(tmp_path / "state")


@pytest.fixture
def world(monkey, site, tmp_path, state):
    """Starts Pebble and a server that gets its certificates there."""
    site.add("index.html", "home")
    here, pebbles = Place(), []

    class World:
        pebble, state = None, None
        place, http, tls = here, here.port(), here.port()

        def start_pebble(self, **how):
            self.pebble = Pebble(tmp_path, here, self.http, self.tls, **how)
            pebbles.append(self.pebble)
            return self.pebble

        def start(self, keys="", names="www.example.test", sections="", tls=False, workers=1, **how):
            own = {k: how.pop(k) for k in list(how) if k in ("validity", "rejected_nonces", "reuse", "external",
                                                            "always_valid", "blocked")}
            if not self.pebble:
                self.start_pebble(**own)
            text = "".join(f"    {line.strip()}\n" for line in keys.splitlines())
            top = f"""[ACME]
    AgreeToTerms on
    Directory    {self.pebble.directory}
    Authority    {self.pebble.authority}
    State        {state.path}
    RetryDelay   1s
{text}"""
            listen = [f"{here.address}:{self.http}"] + ([f"{here.address}:{self.tls} tls"] if tls else [])
            return monkey(plugins=["acme", *how.pop("plugins", [])], top=top + how.pop("top", ""), listen=listen,
                          host=f"ServerName {names}\n" if names else "", sections=sections, workers=workers, **how)

    yield World()
    for each in pebbles:
        each.stop()


def wait_for(condition, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return answer


# ---- http-01 ----


def test_a_certificate_by_http(world, state):
    server = world.start("Contact mailto:me@example.test")
    server.err.wait_for(NEW.format("www.example.test"))
    assert state.names("www.example.test") == ["www.example.test"]
    state.check("www.example.test")
    assert (state / "account.key").stat().st_mode & 0o777 == 0o600
    assert not list((state / "http-01").iterdir()) and not list((state / "orders").iterdir())
    account = json.loads((state / "account.json").read_text())
    assert account["contact"] == ["mailto:me@example.test"] and account["directory"] == world.pebble.directory
    assert server.get("/.well-known/acme-challenge/nothing").status == 404
