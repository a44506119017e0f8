# SPDX-License-Identifier: Apache-2.0
"""Servers with certificates of their own, and clients that choose the SNI name."""
from client import Client
from monkey import ROOT

PLUGIN = ROOT / "build" / "dev" / "tests" / "plugins" / "monkey-encrypted.so"


class TlsServer:
    """A TLS server, and the authority that its clients trust."""

    def __init__(self, server, authority):
        self.server, self.authority = server, authority

    def connect(self, name="localhost", context=None, listener=0, **how):
        return Client(self.server.addresses[listener], tls=context or self.authority.client_context(alpn=["http/1.1"]),
                      server_name=name, **how)

    def get(self, target="/", name="localhost", host=None, context=None, listener=0, **how):
        """Sends one request on a connection of its own, with `name` as SNI and as Host unless `host` is given."""
        with self.connect(name, context, listener) as c:
            return c.get(target, host=host or name, **how)

    def shown(self, name="localhost", context=None, listener=0):
        """Returns the serial number of the certificate that clients of that name receive."""
        with self.connect(name, context, listener) as c:
            return c.sock.facts.getpeercert()["serialNumber"].lstrip("0")

    def facts(self, name="localhost", context=None, target="/facts"):
        """Returns what the plugin `encrypted` reports about the TLS connection of a request."""
        reply = self.get(target, name, context=context)
        assert reply.status == 200, repr(reply)
        return dict(line.partition("=")[::2] for line in reply.text.splitlines())


def keys(*pairs, extra=""):
    """Returns the configuration lines for these pairs."""
    return "".join(f"Certificate {p.certificate} {p.key}{extra}\n" for p in pairs)
