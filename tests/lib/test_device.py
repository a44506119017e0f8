# SPDX-License-Identifier: Apache-2.0
"""The device manager of docs/guide/embedding.md (examples/device), built step by step against the installed package by its own
Makefile, with sanitizers."""
import hashlib
import http.client
import json
import shutil
import signal
import ssl
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as websocket

from monkey import PROGRAM, ROOT, SECONDS
from package import RELEASE, SANITIZERS, Program, call
from proc import wait_until

FOLDER = ROOT / "examples" / "device"
TOKEN = "a1b2c3"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
MB = 1 << 20


@pytest.fixture(scope="module")
def folder(package, tmp_path_factory):
    """Builds all steps and returns their folder."""
    if not shutil.which("make"):
        pytest.skip("needs make")
    copy = tmp_path_factory.mktemp("examples") / "device"
    shutil.copytree(FOLDER, copy)
    flags = " ".join(["-O1 -Wall -Wextra -Werror", *SANITIZERS])
    call("make", "-C", copy, f"CFLAGS={flags}", f"MONKEY={PROGRAM}", environment=package.environment)
    return copy


class Device:
    """A running step. Requests carry the token unless they have other headers."""

    def __init__(self, program, context):
        self.program, self._context = program, context
        url = urllib.parse.urlsplit(program.url)
        self.address, self.scheme = url.netloc, url.scheme

    def connect(self):
        if self.scheme == "https":
            return http.client.HTTPSConnection(self.address, timeout=SECONDS, context=self._context)
        return http.client.HTTPConnection(self.address, timeout=SECONDS)

    def open(self, method, path, body=None, headers=None):
        """Sends a request and returns its connection and response, whose body is not read yet."""
        connection = self.connect()
        connection.request(method, path, body, BEARER if headers is None else headers)
        return connection, connection.getresponse()

    def call(self, method, path, body=None, headers=None):
        """Returns (status, headers, body); the body is parsed if it is JSON."""
        connection, response = self.open(method, path, body, headers)
        text = response.read()
        connection.close()
        is_json = response.headers.get_content_type() in ("application/json", "application/problem+json")
        return response.status, response.headers, json.loads(text) if is_json else text

    def socket(self, path="/api/console", **options):
        url = f"{self.scheme.replace('http', 'ws')}://{self.address}{path}"
        tls = {"ssl": self._context} if self.scheme == "https" else {}
        return websocket(url, proxy=None, **{"additional_headers": BEARER, **tls, **options})


@pytest.fixture
def step(package, objects, folder, tmp_path, encryption):
    """step("2-rest") starts a step in the folder of the test."""
    running, context = [], ssl.create_default_context(cafile=encryption.trust)

    def start(name):
        if name[0] in "789" and not (RELEASE / "plugins/monkey-tls.so").exists():
            pytest.skip("needs TLS")
        arguments = ["127.0.0.1:0 tls", encryption.certificate, encryption.key] if name[0] in "789" else ["127.0.0.1:0"]
        running.append(Program([folder / name, *arguments], package.environment | {"DEVICE_TOKEN": TOKEN}, folder=tmp_path))
        return Device(running[-1], context)

    yield start
    for program in running:
        program.__exit__()


def test_steps_are_all_tested(folder):
    assert {path.stem for path in folder.glob("[0-9]-*.c")} == {"1-hello", "2-rest", "3-upload", "4-log", "5-console", "6-ui", "7-tls",
                                                                "8-threads", "8-epoll", "9-stop"}


def test_device_hello_serves(step):
    device = step("1-hello")
    assert device.call("GET", "/api/name")[::2] == (200, b"pump-3\n")
    device.program.end(code=-signal.SIGTERM)


# ---- Step 2: settings ----

def test_device_rest_requires_token(step):
    device = step("2-rest")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Cookie": "token=wrong"}):
        status, fields, problem = device.call("GET", "/api/settings", headers=headers)
        assert (status, fields["WWW-Authenticate"], problem["status"]) == (401, "Bearer", 401)
    device.program.end(code=-signal.SIGTERM)


def test_device_rest_describes_errors_as_json(step):
    device = step("2-rest")
    for method, path, expected in (("GET", "/none", 404), ("DELETE", "/api/settings", 405)):
        status, fields, problem = device.call(method, path)
        assert (status, fields["Content-Type"], problem["status"]) == (expected, "application/problem+json", expected)
    device.program.end(code=-signal.SIGTERM)


def test_device_rest_reads_and_writes_settings(step):
    device = step("2-rest")
    fields = {**BEARER, "Content-Type": "application/json"}
    assert device.call("GET", "/api/settings")[::2] == (200, {"name": "pump-3", "interval": 10})
    settings = {"name": 'pump "7"', "interval": 5}
    assert device.call("PUT", "/api/settings", json.dumps(settings), fields)[::2] == (200, settings)
    for invalid in ({}, [], {"name": "x"}, {"interval": 5}, {"name": "x", "interval": "5"}, {"name": "x", "interval": 0},
                    {"name": "x", "interval": 3601}, {"name": "x" * 33, "interval": 5}, {"name": "a\0b", "interval": 5}):
        assert device.call("PUT", "/api/settings", json.dumps(invalid), fields)[0] == 422
    assert device.call("PUT", "/api/settings", "{", fields)[0] == 400
    assert device.call("PUT", "/api/settings", "name=x")[0] == 415
    assert device.call("PUT", "/api/settings", json.dumps(settings), {"Content-Type": "application/json"})[0] == 401
    assert device.call("GET", "/api/settings")[2] == settings
    device.program.end(code=-signal.SIGTERM)


# ---- Step 3: uploads ----

def pieces(n, size=MB):
    return [bytes([i % 251]) * size for i in range(n)]


def begin_upload(device, length, *first):
    connection = device.connect()
    connection.putrequest("PUT", "/api/firmware")
    connection.putheader("Authorization", f"Bearer {TOKEN}")
    connection.putheader("Content-Length", str(length))
    connection.endheaders()
    for piece in first:
        connection.send(piece)
    return connection


def progress(device):
    return device.call("GET", "/api/firmware")[2]


def test_device_receives_200_mb_with_progress(step, tmp_path):
    device, image = step("3-upload"), pieces(200)
    assert progress(device) == {"busy": False, "received": 0, "total": 0}
    connection = begin_upload(device, 200 * MB, *image[:100])
    wait_until(lambda: progress(device)["received"] >= 99 * MB, "progress")
    assert progress(device)["busy"] and progress(device)["total"] == 200 * MB
    assert device.call("PUT", "/api/firmware", b"another")[0] == 409
    assert not (tmp_path / "firmware.bin").exists()
    for piece in image[100:]:
        connection.send(piece)
    assert connection.getresponse().status == 204
    connection.close()
    expected = hashlib.sha256(b"".join(image)).digest()
    with (tmp_path / "firmware.bin").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").digest() == expected
    wait_until(lambda: progress(device) == {"busy": False, "received": 200 * MB, "total": 200 * MB}, "the end of the upload")
    device.program.end(code=-signal.SIGTERM)


def test_device_receives_chunked_upload(step, tmp_path):
    device, image = step("3-upload"), pieces(3, 100001)
    assert device.call("PUT", "/api/firmware", iter(image))[0] == 204
    assert (tmp_path / "firmware.bin").read_bytes() == b"".join(image)
    wait_until(lambda: progress(device) == {"busy": False, "received": 300003, "total": -1}, "the end of the upload")
    device.program.end(code=-signal.SIGTERM)


def test_device_drops_incomplete_upload(step, tmp_path):
    device = step("3-upload")
    connection = begin_upload(device, 10 * MB, *pieces(2))
    wait_until(lambda: progress(device)["received"] >= MB, "progress")
    connection.close()
    wait_until(lambda: not progress(device)["busy"], "the end of the upload")
    assert list(tmp_path.glob("firmware*")) == []
    assert device.call("PUT", "/api/firmware", b"complete")[0] == 204
    assert (tmp_path / "firmware.bin").read_bytes() == b"complete"
    device.program.end(code=-signal.SIGTERM)


def test_device_rejects_upload_before_its_body(step):
    device = step("3-upload")
    connection = begin_upload(device, 300 * MB)
    assert connection.getresponse().status == 413
    connection.close()
    assert device.call("PUT", "/api/firmware", headers={"Content-Length": "1000000", "Expect": "100-continue"})[0] == 401
    device.program.end(code=-signal.SIGTERM)


# ---- Steps 4 and 5: log and console ----

def read_log(device, headers=None):
    connection, response = device.open("GET", "/api/log", headers=headers)
    assert (response.status, response.headers["Content-Type"]) == (200, "text/event-stream")
    line = response.readline()
    connection.close()
    return line


def try_console(device):
    with device.socket() as console:
        console.send("version")
        assert console.recv() == "2.0.1"
        console.send("test")
        assert [console.recv() for _ in range(5)] == ["test started", "memory ok", "flash ok", "sensor ok", "test passed"]
        console.send("nothing")
        assert console.recv().startswith("commands: ")


def test_device_streams_log(step):
    device = step("4-log")
    assert device.call("GET", "/api/log", headers={})[0] == 401
    assert [read_log(device)[:18] for _ in range(2)] == [b"data: temperature "] * 2
    device.program.end(code=-signal.SIGTERM)


def test_device_console_runs_commands(step):
    device = step("5-console")
    try_console(device)
    for options, status in (({"additional_headers": {}}, 401), ({"origin": "http://example.org"}, 403)):
        with pytest.raises(InvalidStatus) as refused:
            device.socket(**options)
        assert refused.value.response.status_code == status
    device.program.end(code=-signal.SIGTERM)


def test_device_console_survives_disconnected_client(step):
    device = step("5-console")
    with device.socket() as console:
        console.send("test")
        assert console.recv() == "test started"
    wait_until(lambda: start_test(device), "the end of the test whose client has disconnected")
    device.program.end(code=-signal.SIGTERM)


def start_test(device):
    with device.socket() as console:
        console.send("test")
        return console.recv() == "test started"


# ---- Step 6: the user interface ----

def test_device_serves_user_interface_from_memory(step):
    device = step("6-ui")
    status, fields, page = device.call("GET", "/", headers={})
    assert (status, fields["Content-Type"]) == (200, "text/html; charset=utf-8") and b"app.js" in page
    assert device.call("GET", "/", headers={"If-None-Match": fields["ETag"]})[0] == 304
    assert device.call("GET", "/app.js", headers={})[2] == (FOLDER / "ui/app.js").read_bytes()
    assert device.call("POST", "/api/login", headers={})[0] == 401
    status, fields, _ = device.call("POST", "/api/login")
    assert status == 204 and {"HttpOnly", "SameSite=Strict"} <= set(fields["Set-Cookie"].split("; "))
    cookie = {"Cookie": fields["Set-Cookie"].partition(";")[0]}
    assert device.call("GET", "/api/settings", headers=cookie)[0] == 200
    assert read_log(device, cookie).startswith(b"data: ")
    device.program.end(code=-signal.SIGTERM)


# ---- Steps 7 to 9: TLS, threads and loops, stopping ----

@pytest.mark.parametrize("name", ["7-tls", "8-threads", "8-epoll"])
def test_device_serves_over_tls(step, name, tmp_path):
    device = step(name)
    assert device.scheme == "https"
    assert device.call("GET", "/api/settings")[2]["name"] == "pump-3"
    assert device.call("PUT", "/api/firmware", b"image" * MB)[0] == 204
    assert (tmp_path / "firmware.bin").stat().st_size == 5 * MB
    assert read_log(device).startswith(b"data: temperature ")
    try_console(device)
    assert device.program.end(code=-signal.SIGTERM) == ""


def test_device_stops_cleanly(step):
    """An open event stream and an open WebSocket do not delay the shutdown, and both are closed cleanly."""
    device = step("9-stop")
    log, events = device.open("GET", "/api/log")
    assert events.readline().startswith(b"data: ")

    def read_events():
        events.read()  # fails if the end of the response is missing
        log.close()

    with device.socket() as console, ThreadPoolExecutor() as clients:
        reading = clients.submit(read_events)
        console.send("test")
        assert console.recv() == "test started"
        began = time.monotonic()
        assert device.program.end() == ""
        assert time.monotonic() - began < 4
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                console.recv(timeout=SECONDS)
        assert closed.value.rcvd.code == 1001
        reading.result()


def test_device_finishes_upload_while_stopping(step, tmp_path):
    device = step("9-stop")
    connection = begin_upload(device, 4 * MB, *pieces(3))
    wait_until(lambda: progress(device)["received"] >= MB, "progress")
    device.program.send_signal(signal.SIGTERM)
    with pytest.raises(OSError):
        while True:
            device.call("GET", "/api/settings")  # until the listener is closed
    for piece in pieces(4)[3:]:
        connection.send(piece)
    assert connection.getresponse().status == 204
    connection.close()
    assert (tmp_path / "firmware.bin").stat().st_size == 4 * MB
    assert device.program.end() == ""
