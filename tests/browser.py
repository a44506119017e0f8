# SPDX-License-Identifier: Apache-2.0
"""Drives a real headless browser through the DevTools protocol over a pipe, without a port or a library.

    with Browser(tmp_path) as browser:
        browser.goto(server.url + "/")
        browser.wait_for("document.title == 'hello'")
        browser.look(width=390, height=800, dark=True)
        browser.screenshot(path)
"""
import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

FOUND = next((b for b in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if b), None)
# Options that isolate the browser from the Internet.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
         "--remote-debugging-pipe"]
SECONDS = 30


class Navigated(AssertionError):
    """The page was replaced by another one while it ran the script."""


class Browser:
    def __init__(self, folder, *flags):
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        # The browser reads from descriptor 3 and writes to 4. The pipes are first moved to high numbers so that dup2 overwrites
        # neither of them.
        high = [os.dup(fd) for fd in (commands, answers)]
        script = f'exec 3<&{high[0]} 4>&{high[1]}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", FOUND, *FLAGS, *flags, f"--user-data-dir={Path(folder) / 'profile'}", "about:blank"],
            pass_fds=high, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (commands, answers, *high):
            os.close(fd)
        self._got, self._number, self._session = b"", 0, None
        self.console = []  # errors and warnings of scripts and of the browser
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def _read(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self._got:
            if not select.select([self._in], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._in, 1 << 16)
            assert data, "the browser ended"
            self._got += data
        message, _, self._got = self._got.partition(b"\0")
        return json.loads(message)

    def _note(self, message):
        """Records errors and warnings."""
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.console.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read(SECONDS)).get("id") != self._number:
            self._note(answer)
        if "navigated" in answer.get("error", {}).get("message", ""):
            raise Navigated(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def goto(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState == 'complete' && location.href != 'about:blank'")

    def run(self, expression):
        """Evaluates a JavaScript expression and returns its value."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def _run_unless_navigated(self, expression):
        try:
            return self.run(expression)
        except Navigated:
            return None

    def wait_for(self, expression, seconds=SECONDS):
        """Waits until the expression is true and returns its value."""
        end = time.monotonic() + seconds
        while not (value := self._run_unless_navigated(expression)):
            assert time.monotonic() < end, f"{expression} did not become true:\n{self.run('document.body.innerText')}"
            time.sleep(.05)
        return value

    def look(self, width=1280, height=900, dark=False, mobile=False):
        """Sets the window size and the user's preferences."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if mobile else 1,
                  mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))
