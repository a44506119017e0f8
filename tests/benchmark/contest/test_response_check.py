# SPDX-License-Identifier: Apache-2.0
"""Checks of responses: single responses, responses under load, and responses while another client loads the server."""
import http.server
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from contest import response_check, material, ports, slow
from contest.response_check import Expected
from proc import wait_until

BODY = b"x" * 100
EXPECTED = {"/a": Expected.of(BODY)}


@pytest.fixture
def fake():
    """Starts fake servers with faults; returns their ports."""
    processes = []

    def start(*faults):
        port = ports.free_port()
        processes.append(subprocess.Popen([sys.executable, Path(__file__).parent / "fake_server.py", str(port), *faults]))
        wait_until(lambda: answered(port) or processes[-1].poll() is not None, "the fake server")
        return port

    yield start
    for process in processes:
        process.kill()
        process.wait()


def answered(port):
    try:
        return response_check.fetch("http", port, "/a")
    except response_check.NoResponse:
        return None


def verify(port, tmp_path, connections=20, close=False, until=lambda verdict: True):
    """Returns the verdict. Repeats the run with more time until it covers enough responses."""
    for seconds in (.3, 3, 30):
        verdict = response_check.verify_with_wrk(f"http://127.0.0.1:{port}/a", BODY, connections, seconds, close, [], tmp_path)
        if until(verdict):
            break
    return verdict


def test_check_correct_response_has_no_fault(fake):
    assert response_check.check("http", fake(), EXPECTED) is None


@pytest.mark.parametrize("how, message", [("content", "different content"), ("length", "101 bytes instead of 100"),
                                       ("status", "status 404 instead of 200")])
def test_check_wrong_response_is_reported(fake, how, message):
    fault = response_check.check("http", fake("wrong=1", f"how={how}"), EXPECTED)
    assert fault.startswith("/a: ") and message in fault


def test_check_missing_response_is_reported():
    assert "no response" in response_check.check("http", ports.free_port(), EXPECTED)
    assert "no response" in response_check.check("h2c", ports.free_port(), EXPECTED)


@pytest.mark.parametrize("close", [False, True])
def test_verify_compares_all_responses_under_load(fake, tmp_path, close):
    port = fake()
    if close:  # the fake server closes connections without announcing it: wrk counts an error, but no wrong response
        port = fake("burn=100")
    verdict = verify(port, tmp_path, close=close)
    assert verdict.fault is None and verdict.responses > 0


@pytest.mark.parametrize("served, message", [("x" * 100, None), ("y" * 100, "none of the files asked for")])
def test_verify_compares_responses_with_the_files_of_a_list(fake, tmp_path, served, message):
    for name in "ab":
        (tmp_path / name).write_text(served)
    (tmp_path / "paths").write_text("/a\n/b\n")
    variables = {"CONTEST_PATHS": str(tmp_path / "paths"), "CONTEST_ROOT": str(tmp_path)}
    verdict = response_check.verify_with_wrk(f"http://127.0.0.1:{fake()}/a", None, 20, .3, False, [], tmp_path, variables)
    assert verdict.responses > 0 and not verdict.ours
    assert message in verdict.fault if message else verdict.fault is None


def test_verify_rejects_the_response_of_another_path(fake, tmp_path):
    """The fake server always sends the same response, which is correct for one path only."""
    (tmp_path / "a").write_text("x" * 100)
    (tmp_path / "b").write_text("y" * 100)
    (tmp_path / "paths").write_text("/a\n/b\n")
    variables = {"CONTEST_PATHS": str(tmp_path / "paths"), "CONTEST_ROOT": str(tmp_path)}
    verdict = response_check.verify_with_wrk(f"http://127.0.0.1:{fake()}/a", None, 20, .3, False, [], tmp_path, variables)
    assert "none of the files asked for" in verdict.fault


def test_verify_client_failure_is_no_fault_of_the_server(tmp_path):
    verdict = response_check.verify_with_wrk("http://127.0.0.1:1/", None, 20, .3, False, [], tmp_path,
                                      {"CONTEST_PATHS": "/nowhere"})
    assert verdict.ours and verdict.fault


def test_verify_finds_one_wrong_response_in_a_hundred(fake, tmp_path):
    verdict = verify(fake("wrong=100"), tmp_path, until=lambda verdict: verdict.responses >= 100)
    assert "different content" in verdict.fault


def test_verify_server_without_responses_is_at_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(response_check, "PATIENCE", .5)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        assert "no response under load" in verify(silent.getsockname()[1], tmp_path).fault
    assert "refused" in verify(ports.free_port(), tmp_path).fault


def test_verify_beside_load_checks_responses_during_another_load(fake):
    load = [sys.executable, "-c", "import time; time.sleep(60)"]
    good = response_check.verify_beside_load("http", fake(), EXPECTED, load, .2, {})
    assert good.fault is None and good.responses > 1
    wrong = response_check.verify_beside_load("http", fake("wrong=5"), EXPECTED, load, 20, {})
    assert "under load, /a: different content" == wrong.fault.partition(" (")[0] and wrong.responses < 10


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


@pytest.fixture
def encrypted(tmp_path):
    """The port of a server that supports only HTTP/1.1 over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*material.certificate(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), QuietHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_check_supports_tls(encrypted):
    assert response_check.check("https", encrypted, EXPECTED) is None
    assert "100 bytes instead of 99" in response_check.check("https", encrypted, {"/a": Expected.of(b"x" * 99)})


def test_check_rejects_http1_instead_of_http2(encrypted):
    assert "instead of HTTP/2" in response_check.check("h2", encrypted, EXPECTED)


def test_slow_clients_hold_connections_and_exit(fake, monkeypatch):
    """The slow clients keep connections open while the server responds to other clients."""
    monkeypatch.setattr(slow, "SETTLE_SECONDS", .3)
    port = fake("wrong=1", "crowd=8")
    assert response_check.check("http", port, EXPECTED) is None
    with slow.beside(port, 10, "/a", "/b", [0]) as pid:
        assert Path(f"/proc/{pid}").exists()
        wait_until(lambda: response_check.check("http", port, EXPECTED), "wrong responses beside slow clients")
    assert not Path(f"/proc/{pid}").exists()
    wait_until(lambda: response_check.check("http", port, EXPECTED) is None, "correct responses after the slow clients")
