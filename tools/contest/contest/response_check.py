# SPDX-License-Identifier: Apache-2.0
"""Checks a server's responses, one at a time and under load: status, length and SHA-256.

All requests use the scheme of the case: http, https (HTTP/1.1 over TLS), h2 (HTTP/2 over TLS) or h2c.
"""
import contextlib
import functools
import hashlib
import http.client
import os
import re
import signal
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from contest.case import FOLDER as CASES

SECONDS = 20
PATIENCE = 5  # the longer time in seconds for a server that sent no response at all within the usual time
CURL = {"h2": ["--http2"], "h2c": ["--http2-prior-knowledge"], "https": ["--http1.1"], "http": ["--http1.1"]}


@dataclass(frozen=True)
class Expected:
    """The expected response."""
    length: int
    sha256: str
    data: bytes = b""
    status: int = 200

    @classmethod
    def of(cls, data):
        return cls(len(data), hashlib.sha256(data).hexdigest(), data)


@dataclass(frozen=True)
class Answer:
    status: int
    length: int
    sha256: str
    version: str = ""

    def fault(self, expected):
        """Returns what is wrong with the response, or None."""
        if self.status != expected.status:
            return f"status {self.status} instead of {expected.status}"
        if self.length != expected.length:
            return f"{self.length} bytes instead of {expected.length}"
        if self.sha256 != expected.sha256:
            return f"different content (SHA-256 {self.sha256[:12]}... instead of {expected.sha256[:12]}...)"
        return None


class NoResponse(Exception):
    """The server sent no response."""


def _plain_http(scheme, port, path):
    if scheme == "https":
        context = ssl._create_unverified_context()  # the contest itself created the certificate
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        data = reply.read()
        return Answer(reply.status, len(data), hashlib.sha256(data).hexdigest(), f"1.{reply.version % 10}")
    except (OSError, http.client.HTTPException) as error:
        raise NoResponse(f"no response: {error or type(error).__name__}") from None
    finally:
        connection.close()


def _curl(scheme, port, path):
    protocol = "https" if scheme in ("https", "h2") else "http"
    command = ["curl", "-sS", "-k", *CURL[scheme], "--max-time", str(SECONDS), "-w", "%{stderr}%{http_code} %{http_version}",
               f"{protocol}://127.0.0.1:{port}{path}"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=2 * SECONDS)
    except subprocess.TimeoutExpired:
        raise NoResponse(f"no response: curl did not exit within {2 * SECONDS} s") from None
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode:
        raise NoResponse(f"no response: {said.splitlines()[0] if said else f'curl exited with {done.returncode}'}")
    status, version = said.split()[-2:]
    if scheme in CURL and scheme.startswith("h2") and version != "2":
        raise NoResponse(f"HTTP/{version} instead of HTTP/2")
    return Answer(int(status), len(done.stdout), hashlib.sha256(done.stdout).hexdigest(), version)


def fetch(scheme, port, path):
    """Returns the response; raises NoResponse."""
    return _curl(scheme, port, path) if scheme.startswith("h2") else _plain_http(scheme, port, path)


def check(scheme, port, expected):
    """Requests each path of {path: Expected}. Returns what is wrong, or None."""
    for path, each in expected.items():
        try:
            fault = fetch(scheme, port, path).fault(each)
        except NoResponse as error:
            fault = str(error)
        if fault:
            return f"{path}: {fault}"
    return None


# ---- Under load ----

@dataclass
class Verdict:
    """The result of the verification shot: the fault or None, the number of checked responses, the rate."""
    fault: str | None
    responses: int = 0
    rate: float = 0
    ours: bool = False  # the client failed, not the server


def verify_with_wrk(url, body, connections, seconds, close, prefix, folder, variables=None):
    """Lets wrk send the requests; wrk's script compares every response byte by byte with the body or, if there is none, with the
    files named by the variables CONTEST_PATHS and CONTEST_ROOT. If the server sends no response at all, it gets more time: the
    server may be slow or the machine busy."""
    variables = dict(variables or {})
    if body is not None:
        Path(folder, "expected").write_bytes(body)
        variables["CONTEST_BODY"] = str(Path(folder, "expected"))
    verdict = _ask_with_wrk(url, connections, seconds, close, prefix, variables)
    return verdict if verdict.responses else _ask_with_wrk(url, connections, PATIENCE, close, prefix, variables)


def _ask_with_wrk(url, connections, seconds, close, prefix, variables):
    """Runs wrk for `seconds`, counted from the moment when its script has read the files. wrk's shortest duration is one second,
    so this function ends wrk with a signal, after which wrk still prints its report."""
    headers = ["-H", "Connection: close"] if close else []
    command = [*prefix, "wrk", "-t1", f"-c{connections}", "-d20s", "--timeout", "10s", "-s", str(CASES / "verify.lua"),
               *headers, url]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=os.environ | variables, start_new_session=True) as wrk:
        try:
            first = wrk.stdout.readline()
            with contextlib.suppress(subprocess.TimeoutExpired):
                wrk.wait(seconds)
            if wrk.poll() is None:
                wrk.send_signal(signal.SIGINT)
            said, _ = wrk.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            wrk.kill()
            return Verdict(f"wrk did not exit within {SECONDS} s", ours=True)
        except BaseException:
            wrk.kill()
            raise
    return _read_verification(first + said)


def _read_verification(said):
    match = re.search(r"^verified (\d+) wrong (\d+)(?: first (.*))?$", said, re.MULTILINE)
    if not match:
        return Verdict(f"wrk failed: {said.strip()[-200:]}", ours=True)
    responses, wrong = int(match[1]), int(match[2])
    rate = re.search(r"Requests/sec:\s+([\d.]+)", said)
    verdict = Verdict(None, responses, float(rate[1]) if rate else 0)
    if wrong:
        verdict.fault = f"under load, {wrong} of {responses} responses were wrong; the first had {match[3]}"
    elif not responses:
        errors = re.search(r"Socket errors: (.*)", said)
        verdict.fault = f"no response under load ({errors[1] if errors else 'no errors either'})"
    return verdict


def verify_beside_load(scheme, port, expected, load, seconds, variables, asks=None):
    """Runs the client of a shot (the command `load`), and checks the responses to separate requests while it runs. This is for
    HTTP/2, which wrk does not support, and for responses without a fixed body, which the functions in `asks` request and check:
    each returns the fault or None."""
    asks = asks or [functools.partial(check, scheme, port, {path: each}) for path, each in expected.items()]
    with subprocess.Popen(load, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=os.environ | variables, start_new_session=True) as client:
        try:
            return _check_while(client, asks, seconds)
        finally:
            client.kill()


def _check_while(client, asks, seconds):
    start = os.times().elapsed
    responses = 0
    while responses < len(asks) or os.times().elapsed - start < seconds:
        fault = asks[responses % len(asks)]()
        responses += 1
        if fault:
            return Verdict(f"under load, {fault}", responses)
        if client.poll() is not None and responses >= len(asks):
            break
    return Verdict(None, responses)

