# SPDX-License-Identifier: Apache-2.0
"""Servers with their own certificates, and clients that send the name they want."""
from client import Client
from monkey import ROOT

PLUGIN = ROOT / "build" / "dev" / "tests" / "plugins" / "monkey-encrypted.so"


class Secure:
    """A server that speaks TLS, and the authority that its clients trust."""

    def __init__(self, server, authority):
        self.server, self.authority = server, authority

    def connect(self, name="localhost", context=None, which=0, **how):
        return Client(self.server.addresses[which], tls=context or self.authority.client_context(alpn=["http/1.1"]),
                      server_name=name, **how)

    def get(self, target="/", name="localhost", host=None, context=None, which=0, **how):
        """One request on a connection of its own, for the name that the connection was made for or another one."""
        with self.connect(name, context, which) as c:
            return c.get(target, host=host or name, **how)

    def shown(self, name="localhost", context=None, which=0):
        """The certificate that clients of that name see: its serial number."""
        with self.connect(name, context, which) as c:
            return c.sock.facts.getpeercert()["serialNumber"].lstrip("0")

    def facts(self, name="localhost", context=None, target="/facts"):
        """What the plugin `encrypted` knows of a request."""
        reply = self.get(target, name, context=context)
        assert reply.status == 200, repr(reply)
        return dict(line.partition("=")[::2] for line in reply.text.splitlines())


def keys(*pairs, extra=""):
    """The lines that name these pairs."""
    return "".join(f"Certificate {p.certificate} {p.key}{extra}\n" for p in pairs)
