# SPDX-License-Identifier: Apache-2.0
"""Pebble, the small ACME CA, for tests: on loopback, on free ports, with a resolver that resolves every name to the address of
the Place.

    place = Place()
    pebble = Pebble(tmp_path, place, http_port=place.port())
    pebble.directory, pebble.authority        # URL, and the file of the CA that signed its HTTPS certificate
    pebble.root()                             # PEM of the root of the issued certificates
"""
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request

from certificates import make_authority
from monkey import SECONDS, Output

# `make check` builds the current version into build/pebble (tools/dev/pebble.sh). Debian's is older: it lacks ARI, profiles and IP identifiers.
BUILT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build/pebble")
PROGRAMS = [shutil.which(name, path=f"{BUILT}:{os.environ['PATH']}") for name in ("pebble", "pebble-challtestsrv")]
IS_CURRENT = bool(PROGRAMS[0]) and PROGRAMS[0].startswith(BUILT)


class Loopback:
    """A unique loopback address, so that a port that is free on it stays free."""

    def __init__(self):
        self.address = ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))])
        self._given = set()

    def port(self):
        """Returns a port that is free for TCP and UDP, because the resolver uses both; never returns it again."""
        while True:
            with socket.socket() as stream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                stream.bind((self.address, 0))
                port = stream.getsockname()[1]
                try:
                    datagrams.bind((self.address, port))
                except OSError:
                    continue
            if port not in self._given:
                self._given.add(port)
                return port


class Pebble:
    def __init__(self, folder, loopback, http_port, tls_port=1, validity=None, rejected_nonces=0, reuse=0, external=None,
                 always_valid=False, blocked=(), profiles=None):
        self.loopback = loopback
        self.folder = folder / "pebble"
        if not self.folder.exists():
            self.pair = make_authority(self.folder / "ca", "Pebble's own").issue([loopback.address], file="pebble")
        self.authority = self.folder / "ca/authority.pem"
        self.processes = []
        self.dns_port = loopback.port()
        self.port, self.management, self.resolver_management = loopback.port(), loopback.port(), loopback.port()
        self.directory = f"https://{loopback.address}:{self.port}/dir"
        self.settings = {
            "listenAddress": f"{loopback.address}:{self.port}",
            "managementListenAddress": f"{loopback.address}:{self.management}",
            "certificate": str(self.folder / "ca/pebble.pem"),
            "privateKey": str(self.folder / "ca/pebble.key"),
            "httpPort": http_port,
            "tlsPort": tls_port,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": bool(external),
            "externalAccountMACKeys": external or {},
            "domainBlocklist": list(blocked),
        }
        if validity:
            self.settings["certificateValidityPeriod"] = validity
        if profiles or validity:
            self.settings["profiles"] = profiles or {"default": {"description": "default", "validityPeriod": validity}}
        self.environment = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": str(rejected_nonces),
                            "PEBBLE_AUTHZREUSE": str(reuse)}
        if always_valid:
            self.environment["PEBBLE_VA_ALWAYS_VALID"] = "1"
        self.context = ssl.create_default_context(cafile=self.authority)
        self.start()

    def start(self, name_server=None):
        config = self.folder / "config.json"
        config.write_text(json.dumps({"pebble": self.settings}))
        dns = ["-doh", "", "-dnsserver"] if IS_CURRENT else ["-dns01"]
        if not name_server:
            self.resolver = self._run(PROGRAMS[1], *dns, f"{self.loopback.address}:{self.dns_port}", "-http01", "", "-https01", "",
                                      "-tlsalpn01", "", "-management", f"{self.loopback.address}:{self.resolver_management}", "-defaultIPv6", "",
                                      "-defaultIPv4", self.loopback.address)
        self.process = self._run(PROGRAMS[0], "-config", config, "-dnsserver", name_server or f"{self.loopback.address}:{self.dns_port}",
                                 "-strict")
        self.out = Output(self.process.stdout, "pebble")
        self._wait()

    def _run(self, *args):
        process = subprocess.Popen([str(arg) for arg in args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=os.environ | self.environment)
        self.processes.append(process)
        if args[0] == PROGRAMS[1]:
            Output(process.stdout, "resolver")
        return process

    def _wait(self):
        end = time.monotonic() + SECONDS
        while True:
            try:
                urllib.request.urlopen(self.directory, context=self.context, timeout=SECONDS).close()
                return
            except OSError as error:
                assert self.process.poll() is None, self.out.text
                assert time.monotonic() < end, f"{error}\n{self.out.text}"
                time.sleep(0.05)

    def root(self):
        with urllib.request.urlopen(f"https://{self.loopback.address}:{self.management}/roots/0", context=self.context,
                                    timeout=SECONDS) as answer:
            return answer.read().decode()

    def resolver_url(self, path):
        """The URL of a command of pebble-challtestsrv, such as "set-txt"."""
        return f"http://{self.loopback.address}:{self.resolver_management}/{path}"

    def count(self, pattern):
        """Returns the number of lines in the log that contain this text."""
        return self.out.text.count(pattern)

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.processes = []
