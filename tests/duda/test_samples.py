# SPDX-License-Identifier: Apache-2.0
"""Runs the samples of examples/duda with `monkey run` from a copy of their folder, and checks that they work as their
comments say."""
import hmac
import http.server
import json
import re
import threading

import pytest

import browser
from monkey import ROOT
from samples import CAN_RUN, SAMPLES, needs, starter

pytestmark = CAN_RUN
JSON = [("Content-Type", "application/json")]


@pytest.fixture
def start(monkey, tmp_path, tmp_path_factory):
    return starter(monkey, tmp_path, tmp_path_factory)


def test_every_sample_is_listed_and_tested():
    names = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
    listed = re.findall(r"^\| \[(\w+)\]", (SAMPLES / "README.md").read_text(), re.MULTILINE)
    tests = "".join(path.read_text() for path in (ROOT / "tests/duda").glob("test_samples*.py"))
    in_guide = [name for name in names if (ROOT / "tests/duda" / f"test_guide_{name}.py").exists()]
    assert sorted(listed) == names and all(name in in_guide or f'start("{name}"' in tests for name in names)


def test_hello_sample_validates_parameters(start):
    server = start("hello")
    assert server.get("/?name=you").text == "hello you\n" and server.get("/square/-7").text == "49\n"
    assert server.get("/square/x").status == 404 and server.get("/square/9999999").status == 400


@needs("kv")
def test_items_sample_creates_reads_updates_and_deletes(start):
    server = start("items")
    made = server.get("/items", "POST", JSON, b'{"name": "lamp", "price": 12.5}')
    assert (made.status, made["Location"]) == (201, "/items/1"), made.text
    assert json.loads(made.text) == {"name": "lamp", "price": 12.5, "state": "new"}
    bad = server.get("/items", "POST", JSON, b'{"name": "", "price": -1, "state": "lost", "more": 1}')
    assert bad.status == 422 and len(json.loads(bad.text)["errors"]) == 4, bad.text
    assert server.get("/items", "POST", JSON, b'{"name": ').status == 400
    assert server.get("/items", "POST", [("Content-Type", "text/plain")], b"x").status == 415
    assert server.get("/items/1", "PUT", JSON, b'{"name": "lamp", "price": 10, "state": "sold"}').status == 200
    assert json.loads(server.get("/items/1").text)["state"] == "sold"
    assert server.get("/items", "POST", JSON, b'{"name": "chair", "price": 40}')["Location"] == "/items/2"
    assert [entry["id"] for entry in json.loads(server.get("/items").text)] == [1, 2]
    assert [entry["id"] for entry in json.loads(server.get("/items?after=1").text)] == [2]
    assert [server.get("/items/1", "DELETE").status for _ in range(2)] == [204, 404]
    assert server.get("/items/1", "PUT", JSON, b'{"name": "x", "price": 1}').status == 404


def test_dashboard_sample_streams_the_load(start, tmp_path):
    server = start("dashboard")
    with server.connect() as c:
        assert c.ask("/events").read_head()["Content-Type"].startswith("text/event-stream")
        for _ in range(2):
            assert b'"load"' in c.read_until(b"\n\n")
    if browser.FOUND:
        with browser.Browser(tmp_path) as b:
            b.goto(server.url + "/")
            b.wait_for("Number(document.getElementById('n').textContent) > 1")
            assert re.fullmatch(r"\d+\.\d\d", b.run("document.getElementById('load').textContent"))


def test_sensor_sample_stores_and_plots_readings(start):
    server = start("sensor")
    assert "No readings yet" in server.get("/").text
    for value in (b"21.5", b"22"):
        assert server.get("/readings", "POST", body=value).status == 204
    assert server.get("/readings", "POST", body=b"warm").status == 422
    page = server.get("/")
    assert "<h1>22.0</h1>" in page.text and "<svg" in page.text
    now = json.loads(server.get("/now").text)
    assert (now["value"], now["readings"]) == (22, 2) and now["uptime"] > 0


class RequestEcho(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404 if "none" in self.path else 200)
        self.end_headers()
        self.wfile.write(f"you asked for {self.path}\n".encode() + b"x" * 100_000)

    def log_message(self, *_):
        pass


class Receiver(http.server.BaseHTTPRequestHandler):
    got = []

    def do_POST(self):
        self.got.append((self.headers["X-Signature"], self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(500 if self.path == "/bad" else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


@needs("http")
def test_webhook_sample_signs_events_and_reaches_no_other_address(start):
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    port = receiver.server_port
    server = start("webhook", conf={"https://*": f"*:{port}\n    AllowPrivate 127.0.0.1"}, environment={"WEBHOOK_SECRET": "secret of the test"})

    def deliver(url):
        body = json.dumps({"url": url, "event": "an order"}).encode()
        return server.get("/deliveries", "POST", [("Content-Type", "application/json")], body)

    assert deliver(f"http://127.0.0.1:{port}/hook").text == "delivered\n"
    assert Receiver.got == [("sha256=" + hmac.new(b"secret of the test", b"an order", "sha256").hexdigest(), b"an order")]
    assert deliver(f"http://127.0.0.1:{port}/bad").status == 502
    assert deliver(f"http://127.0.0.2:{port}/hook").status == 422
    assert deliver("http://127.0.0.1:22/").status == 422
    assert deliver("no URL").status == 422
    receiver.shutdown()
    receiver.server_close()


@needs("http")
def test_gateway_sample_forwards_requests(start):
    behind = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RequestEcho)
    threading.Thread(target=behind.serve_forever, daemon=True).start()
    server = start("gateway", conf={"127.0.0.1:3000": f"127.0.0.1:{behind.server_port}"})
    answer = json.loads(server.get("/a/b?c=d").text)
    assert answer["status"] == 200 and answer["content"].startswith("you asked for /a/b?c=d\nxxx")
    assert len(answer["content"]) == len("you asked for /a/b?c=d\n") + 100_000
    assert json.loads(server.get("/none").text)["status"] == 404
    behind.shutdown()
    behind.server_close()
    assert server.get("/a").status == 502
