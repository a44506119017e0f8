# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/guide/from-libmicrohttpd.md, from-mongoose.md and from-civetweb.md (examples/ports), built against the
installed package by their own Makefile, with sanitizers."""
import http.client
import json
import shutil

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as websocket

from monkey import ROOT
from package import SANITIZERS, call

FOLDER = ROOT / "examples" / "ports"
BOUNDARY = "a-boundary"
MULTIPART = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


@pytest.fixture(scope="module")
def folder(package, tmp_path_factory):
    """Builds the programs and returns their folder."""
    if not shutil.which("make"):
        pytest.skip("needs make")
    copy = tmp_path_factory.mktemp("examples") / "ports"
    shutil.copytree(FOLDER, copy)
    flags = " ".join(["-O1 -Wall -Wextra -Werror", *SANITIZERS])
    call("make", "-C", copy, f"CFLAGS={flags}", environment=package.environment)
    return copy


@pytest.fixture
def run(package, folder, tmp_path):
    """run("form") starts the program in the folder of the test; the fixture checks that it has exited at the end."""
    running = []

    def start(name):
        running.append(package.run(folder / name, "127.0.0.1:0", folder=tmp_path))
        return running[-1]

    yield start
    for program in running:
        program.__exit__()


def call_program(program, method, path, body=None, headers=None):
    """Returns (status, headers, text) of a response."""
    connection = program.connect()
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.headers, text


def test_ports_are_all_tested():
    assert {path.stem for path in FOLDER.glob("*.c")} == {"form", "dashboard", "upload"}


def test_port_form_greets_and_counts_visits(run):
    program = run("form")
    status, headers, page = call_program(program, "GET", "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8") and "action=/greet" in page
    cookies = []
    for _ in range(2):
        headers = call_program(program, "GET", "/", headers={"Cookie": cookies[-1]} if cookies else {})[1]
        cookies.append(headers["Set-Cookie"].partition(";")[0])
    assert cookies == ["visits=1", "visits=2"]
    fields = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookies[-1]}
    assert "<p>Hello A&amp;B C, visit 2</p>" in call_program(program, "POST", "/greet", "name=A%26B+C", fields)[2]
    assert "<p>Hello stranger, visit 0</p>" in call_program(program, "POST", "/greet", "", {**fields, "Cookie": "visits=x"})[2]
    assert [call_program(program, "POST", "/greet", *body)[0] for body in (("{}", {"Content-Type": "application/json"}),
                                                                           (multipart(("name", None, b"x"))[:-4], MULTIPART))] == [415, 400]
    program.end()


def multipart(*parts):
    """The body of a form with the parts (name, file name or None, bytes)."""
    text = b""
    for name, file_name, data in parts:
        file = f'; filename="{file_name}"' if file_name else ""
        text += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data + b"\r\n"
    return text + f"--{BOUNDARY}--\r\n".encode()


def test_port_form_reads_multipart(run):
    program = run("form")
    assert "<p>Hello Ana, visit 0</p>" in call_program(program, "POST", "/greet", multipart(("name", None, b"Ana")), MULTIPART)[2]
    program.end()


def test_port_dashboard_sends_metrics(run):
    program = run("dashboard")
    url = program.url.replace("http", "ws", 1) + "websocket"
    assert "new WebSocket" in call_program(program, "GET", "/")[2]
    with websocket(url, proxy=None) as a, websocket(url, proxy=None) as b:
        first = json.loads(a.recv())
        assert set(first) == {"ticks", "temperature", "led"}
        assert json.loads(a.recv())["ticks"] == first["ticks"] + 1
        assert json.loads(b.recv())["ticks"] >= first["ticks"]
        assert json.loads(call_program(program, "POST", "/api/led")[2])["led"] is not first["led"]
        assert json.loads(call_program(program, "GET", "/api/metrics")[2])["led"] is not first["led"]
    with pytest.raises(InvalidStatus):
        websocket(url, proxy=None, origin="http://example.org")
    program.end()


@pytest.mark.parametrize("size", [0, 1000, 3 << 20])
def test_port_upload_stores_files(run, tmp_path, size):
    program = run("upload")
    files = [bytes([i]) * (size + i) for i in range(3)]
    body = multipart(("text", None, b"ignored"), *(("file", f"../<{i}>.bin", data) for i, data in enumerate(files)))
    status, _, page = call_program(program, "POST", "/upload", body, MULTIPART)
    assert status == 200 and [f"<li>../&lt;{i}&gt;.bin: {size + i} bytes" in page for i in range(3)] == [True] * 3, page
    assert sorted(path.read_bytes() for path in tmp_path.glob("upload-*")) == sorted(files)
    program.end()


def test_port_upload_rejects_other_bodies(run, tmp_path):
    program = run("upload")
    too_many = multipart(*(("file", "a.bin", b"x") for _ in range(9)))
    for body, headers, expected in ((multipart(("text", None, b"no file")), MULTIPART, 400), (too_many, MULTIPART, 413),
                                    (b"x", {"Content-Type": "text/plain"}, 415)):
        assert call_program(program, "POST", "/upload", body, headers)[0] == expected
    assert list(tmp_path.iterdir()) == []
    program.end()


def test_port_upload_survives_disconnected_client(run, tmp_path):
    program = run("upload")
    body = multipart(("file", "a.bin", b"x" * (1 << 20)))
    for length in (len(body), len(body) + 1):  # the client disconnects after the complete body, and before its end
        connection = http.client.HTTPConnection(program.connect().host, program.connect().port)
        connection.putrequest("POST", "/upload")
        for name, value in {**MULTIPART, "Content-Length": length}.items():
            connection.putheader(name, str(value))
        connection.endheaders()
        connection.send(body)
        connection.close()
    assert call_program(program, "POST", "/upload", body, MULTIPART)[0] == 200
    program.end()
    assert {path.stat().st_size for path in tmp_path.glob("upload-*")} == {1 << 20}
