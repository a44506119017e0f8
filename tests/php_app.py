# SPDX-License-Identifier: Apache-2.0
"""Real PHP applications, which tools/dev/apps.sh installs and serves with the configuration of the guide, and the actions of a
user in a browser.
"""
import os
import re
import struct
import subprocess
import time
import zlib
from pathlib import Path

from browser import SECONDS, Browser
from client import Client
from http2 import Http2Client
from monkey import BUGS, ENVIRONMENT, PROGRAM, ROOT, Output, end_of

SCRIPT = ROOT / "tools/dev/apps.sh"
PROTOCOLS = {"http": "http/1.1", "https": "h2"}  # the protocol that a browser uses for each scheme


class App:
    """`with App("dokuwiki", encryption) as app:` has app.urls["http"], app.urls["https"] and app.site (the document root)."""

    def __init__(self, name, encryption):
        self._encryption, self.name = encryption, name
        self.process = subprocess.Popen(
            [SCRIPT, "-m", PROGRAM, "-t", encryption.certificate, encryption.key, name], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | ENVIRONMENT)
        self._out, self._err = Output(self.process.stdout, "stdout"), Output(self.process.stderr, "stderr")

    def __enter__(self):
        try:
            self._out.wait_for(r"^  https://\S+\n")
        except AssertionError:
            self.process.terminate()
            raise AssertionError(f"it does not serve:\n{self._err.text}") from None
        output = self._out.text
        self.folder = Path(re.search(r"^folder: (.+)$", output, re.MULTILINE)[1])
        self.site = self.folder / self.name
        self.password = re.search(r"^password: (.+)$", output, re.MULTILINE)[1]
        self.urls = {scheme: re.search(rf"^  ({scheme}://.+)/$", output, re.MULTILINE)[1] for scheme in PROTOCOLS}
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = end_of(self.process, SECONDS)
        assert not BUGS.search(self._err.text), self._err.text
        assert code == 0 and not self.folder.exists(), self._err.text

    def get(self, scheme, path, **how):
        """Sends one request without a browser, over the protocol of the scheme."""
        host, _, port = self.urls[scheme].partition("://")[2].partition(":")
        is_h2 = scheme == "https"
        tls = self._encryption.context("h2") if is_h2 else None
        with (Http2Client if is_h2 else Client)((host, int(port)), tls=tls) as c:
            return c.get(path, **how)


class User(Browser):
    """A browser with user actions: fills in forms, clicks, chooses files."""

    def __init__(self, folder, encryption):
        super().__init__(folder, f"--ignore-certificate-errors-spki-list={encryption.key_hash}")

    def try_run(self, expression):
        """Returns the value of the expression, or None while no page is loaded."""
        try:
            return self.run(expression)
        except AssertionError as error:
            if "context" not in str(error) and "navigated" not in str(error):
                raise
            return None

    def wait_for(self, expression, seconds=SECONDS):
        """Waits until the expression is true; exceptions count as false."""
        end = time.monotonic() + seconds
        while not self.try_run(f"(() => {{ try {{ return !!({expression}) }} catch (e) {{ return false }} }})()"):
            assert time.monotonic() < end, f"{expression} did not become true at {self.run('location.href')}:\n" \
                                           f"{self.run('document.body.innerText')}"
            time.sleep(.02)

    def visit(self, url):
        """Visits the URL with an empty browser profile."""
        self.call("Network.clearBrowserCookies")
        self.goto(url)

    def goto(self, url):
        self.leave(lambda: self.call("Page.navigate", url=url))

    def leave(self, action):
        """Runs an action that leads to another page, and waits for that page."""
        self.run("window.isLeft = true")
        action()
        self.wait_for("!window.isLeft && document.readyState == 'complete' && location.href != 'about:blank'")

    def fill(self, selector, text):
        self.wait_for(f"document.querySelector({selector!r})")
        self.run(f"document.querySelector({selector!r}).focus()")
        self.run(f"document.querySelector({selector!r}).select?.()")
        self.call("Input.insertText", text=text)

    def click(self, selector):
        self.wait_for(f"document.querySelector({selector!r})")
        self.run(f"document.querySelector({selector!r}).click()")

    def follow(self, selector):
        self.leave(lambda: self.click(selector))

    def choose(self, selector, file):
        self.wait_for(f"document.querySelector({selector!r})")
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(file)], nodeId=node)

    def protocol(self):
        return self.run("performance.getEntriesByType('navigation')[0].nextHopProtocol")

    def text(self):
        return self.run("document.body.innerText")


RUNS = b"<?php echo 'it ' . 'runs';"


def picture(width=40, height=30):
    """Returns a PNG with an appended script, as an attacker would upload it."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = zlib.compress(b"".join(b"\0" + b"\x7d\x52\x38" * width for _ in range(height)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", rows) + chunk(b"IEND", b"") + RUNS)
