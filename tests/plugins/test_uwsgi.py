# SPDX-License-Identifier: Apache-2.0
"""The uwsgi plugin, in front of a real uWSGI with a Python program."""
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from monkey import PROTOCOLS
from proc import wait_until

PROGRAM = shutil.which("uwsgi-core") or shutil.which("uwsgi")
has_python = any(Path("/usr/lib/uwsgi/plugins").glob("python3_plugin.so"))
pytestmark = pytest.mark.skipif(not (PROGRAM and has_python), reason="there is no uWSGI with Python")
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)

WSGI = '''
import json

def application(environ, start_response):
    content = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    if environ["PATH_INFO"] == "/large":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [bytes([65 + i % 26]) * 1000 for i in range(3000)]
    if environ["PATH_INFO"] == "/teapot":
        start_response("418 Teapot", [("Content-Type", "text/plain"), ("X-A", "1"), ("X-A", "2")])
        return [b"tea"]
    texts = {name: value for name, value in environ.items() if isinstance(value, str)}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"environ": texts, "scheme": environ["wsgi.url_scheme"], "length": len(content)}).encode()]
'''


class Uwsgi:
    def __init__(self, folder):
        self.socket, self.log = folder / "uwsgi.sock", folder / "uwsgi.log"
        self.address = f"unix:{self.socket}"
        (folder / "app.py").write_text(WSGI)
        self._folder, self.process = folder, None

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([PROGRAM, "--plugin", "python3", "--socket", self.socket, "--chmod-socket=666",
                                             "--master", "--processes", "2", "--wsgi-file", self._folder / "app.py",
                                             "--buffer-size", "65535", "--die-on-term"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_until(lambda: self.log.read_text().count("spawned uWSGI worker") == 2, "uWSGI serves")
        except AssertionError:
            self.stop()
            raise
        return self

    def signal_all(self, number):
        os.killpg(self.process.pid, number)

    def stop(self):
        if self.process:
            self.signal_all(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


@pytest.fixture
def uwsgi(tmp_path):
    with Uwsgi(tmp_path) as each:
        yield each


@pytest.fixture
def serve(monkey, site, uwsgi):
    def start(route="/*  uwsgi {}", **how):
        site.add("page.html", "page")
        lines = route.format(uwsgi.address)
        return monkey(plugins=["uwsgi"], sections=f"[ROUTES]\n    {lines}\n    /*  static\n", **how)

    return start


@every_protocol
def test_uwsgi_program_gets_variables_and_body(serve, protocol):
    server = serve()
    got = json.loads(server.get("/x%20y?q=1", "POST", body=b"content").text)
    want = {"SCRIPT_NAME": "", "PATH_INFO": "/x y", "QUERY_STRING": "q=1", "REQUEST_METHOD": "POST", "CONTENT_LENGTH": "7"}
    assert {name: got["environ"].get(name) for name in want} == want
    assert (got["length"], got["scheme"]) == (7, "https" if protocol.endswith("-tls") else "http")


def test_uwsgi_program_may_be_mounted_below_a_path(serve):
    server = serve("/app/*  uwsgi {}")
    got = json.loads(server.get("/app/x").text)["environ"]
    assert (got["SCRIPT_NAME"], got["PATH_INFO"]) == ("/app", "/x")
    assert server.get("/page.html").text == "page"


@every_protocol
def test_uwsgi_large_response_and_status_are_passed(serve):
    server = serve()
    assert server.get("/large").body == b"".join(bytes([65 + i % 26]) * 1000 for i in range(3000))
    reply = server.get("/teapot")
    assert (reply.status, reply.text, reply.all("X-A")) == (418, "tea", ["1", "2"])
    assert server.get("/teapot", "HEAD").body == b""


def test_uwsgi_chunked_body_gets_length(serve):
    server = serve()
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (100_000, b"x" * 100_000)
    reply = server.get("/", "POST", [("Transfer-Encoding", "chunked")], chunks)
    assert json.loads(reply.text)["length"] == 100_000


def test_uwsgi_variables_beyond_limit_get_431(serve):
    server = serve(server="MaxHeaderSize 60K\nMaxURISize 50K")
    assert server.get("/?" + "x" * 40_000).status == 431
    assert server.get("/").status == 200


def test_uwsgi_frozen_or_stopped_server_gets_error_and_recovers(serve, uwsgi):
    server = serve("/*  uwsgi {} response_timeout=300ms max_tries=1")
    uwsgi.signal_all(signal.SIGSTOP)
    assert server.get("/").status == 504
    uwsgi.signal_all(signal.SIGCONT)
    assert server.get("/teapot").status == 418
    uwsgi.stop()
    assert server.get("/").status in (502, 503)
    uwsgi.start()
    assert server.get("/teapot").status == 418
