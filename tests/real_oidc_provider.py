# SPDX-License-Identifier: Apache-2.0
"""oidc-provider, a certified OpenID provider for Node.js, and a user who visits its pages. The versions are those of
tests/oidc-provider/package-lock.json; npm installs them once, into the build folder."""
import fcntl
import http.client
import json
import re
import shutil
import subprocess
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import pytest

from monkey import ROOT
from oidc_provider import of_number
from proc import wait_until
from sockets import free_port

SOURCE = ROOT / "tests" / "oidc-provider"
FOLDER = ROOT / "build" / "oidc-provider"
NODE, NPM = shutil.which("node"), shutil.which("npm")


def install():
    """Installs the provider unless it is there. Skips the test if there is no Node.js, or no registry."""
    if not NODE or not NPM:
        pytest.skip("there is no Node.js with npm")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in ("package.json", "package-lock.json", "provider.mjs"):
            text = (SOURCE / name).read_bytes()
            if not (FOLDER / name).exists() or (FOLDER / name).read_bytes() != text:
                shutil.rmtree(FOLDER / "node_modules", ignore_errors=True)
                (FOLDER / name).write_bytes(text)
        if (FOLDER / "node_modules").exists():
            return
        done = subprocess.run([NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=FOLDER, capture_output=True, text=True,
                              timeout=300, check=False)
        if done.returncode:
            shutil.rmtree(FOLDER / "node_modules", ignore_errors=True)
            pytest.skip(f"npm cannot install oidc-provider: {done.stderr[-300:]}")


def private_jwk(key):
    """The private key of an RsaKey as a JWK."""
    numbers = key.pair.private_numbers()
    return {**key.jwk(), "d": of_number(numbers.d), "p": of_number(numbers.p), "q": of_number(numbers.q), "dp": of_number(numbers.dmp1),
            "dq": of_number(numbers.dmq1), "qi": of_number(numbers.iqmp)}


class RealProvider:
    """`client` is the metadata of the client, `key` an RsaKey."""

    def __init__(self, client, key, log):
        install()
        self.port, self.client, self.log = free_port(), client, log
        self.address = f"127.0.0.1:{self.port}"
        self.issuer = f"http://{self.address}"
        self.process, self.begin = None, 0
        self.key = key

    def start(self):
        options = {"issuer": self.issuer, "port": self.port, "client": self.client, "key": private_jwk(self.key)}
        self.begin = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "a") as out:
            self.process = subprocess.Popen([NODE, "provider.mjs", json.dumps(options)], cwd=FOLDER, stdout=out, stderr=out,
                                            stdin=subprocess.DEVNULL)
        wait_until(lambda: self.process.poll() is not None or "ready" in self.events(), "the provider listens")
        assert self.process.poll() is None, self.log.read_text()

    def events(self):
        """Returns the words that the provider has printed since its start."""
        return self.log.read_text()[self.begin:].split()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


class User:
    """A browser at the provider: it follows redirects there, and stops at the first one to another site."""

    def __init__(self, provider):
        self.provider, self.cookies = provider, {}

    def ask(self, url, form=None):
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(self.provider.address, timeout=30)
        fields = {"Cookie": "; ".join(f"{n}={v}" for n, v in self.cookies.items())}
        if form is not None:
            fields["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request("POST" if form is not None else "GET", f"{parts.path}?{parts.query}", urlencode(form) if form is not None else None,
                           fields)
        answer = connection.getresponse()
        for value in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = value.partition(";")[0].partition("=")
            self.cookies[name] = value
        text = answer.read().decode()
        connection.close()
        location = answer.headers.get("Location")
        if location:
            target = urljoin(url, location)
            return self.ask(target) if target.startswith(self.provider.issuer) else target
        return url, text

    def visit(self, url, name="ana"):
        """Follows the redirects, logs in and consents. Returns the URL at the site with the response of the provider."""
        at = self.ask(url)
        while not isinstance(at, str):
            page, text = at
            action = re.search(r'action="([^"]+)"', text)
            assert action, text[:2000]
            fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', text))
            if fields.get("prompt") == "login":
                fields.update(login=name, password="any")
            if "logoutForm" in text:
                fields["logout"] = "yes"
            at = self.ask(urljoin(page, action[1]), fields)
        return at


def query_of(url):
    return dict(parse_qsl(urlsplit(url).query))
