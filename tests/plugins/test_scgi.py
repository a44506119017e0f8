# SPDX-License-Identifier: Apache-2.0
"""The scgi plugin, in front of a small server written from the specification (python.ca/scgi/protocol.txt)."""
import json

import pytest

from backend import Backend
from client import Closed
from monkey import PROTOCOLS
from scgi_server import Program

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)


@pytest.fixture
def serve(monkey, site):
    def start(program, route="/app/*  scgi {}", **how):
        site.add("index.html", "home")
        return monkey(plugins=["scgi"], sections=f"[ROUTES]\n    {route.format(program.address)}\n    /*  static\n", **how)

    return start


@every_protocol
def test_scgi_program_gets_variables_and_body(serve):
    with Program() as program:
        server = serve(program)
        got = json.loads(server.get("/app/x%20y?q=1", "POST", body=b"content").text)
        want = {"SCRIPT_NAME": "/app", "PATH_INFO": "/x y", "QUERY_STRING": "q=1", "REQUEST_METHOD": "POST",
                "CONTENT_LENGTH": "7", "REQUEST_URI": "/app/x%20y?q=1"}
        assert {name: got["variables"].get(name) for name in want} == want
        assert got["content"] == "content" and "SCRIPT_FILENAME" not in got["variables"]
        assert server.get("/").text == "home"


@pytest.mark.parametrize("route, path, name, info", [
    ("/*  scgi {}", "/a/b", "", "/a/b"), ("/app/*  scgi {}", "/app/", "/app", "/"), ("/app*  scgi {}", "/apple", "", "/apple"),
    ("/app  scgi {}", "/app", "/app", None), ("~ ^/x  scgi {}", "/x/y", "", "/x/y")])
def test_scgi_script_name_and_path_info_follow_route(serve, route, path, name, info):
    with Program() as program:
        serve(program, route).get(path)
        assert (program.requests[0]["SCRIPT_NAME"], program.requests[0].get("PATH_INFO")) == (name, info)


def test_scgi_local_redirect_is_internal(serve):
    with Program(lambda variables, _: b"Location: /index.html\n\n") as program:
        assert serve(program).get("/app/", "POST", body=b"x").text == "home"


def test_scgi_local_redirect_reaches_other_backend_as_get(monkey):
    with Program(lambda *_: b"Location: /to/x\n\n") as program, Backend() as backend:
        server = monkey(plugins=["scgi", "proxy"], sections=f"[ROUTES]\n    /to/* proxy http://{backend.address}\n    /* scgi {program.address}\n")
        for method, body in (("GET", b""), ("HEAD", b""), ("POST", b"content"), ("DELETE", b"")):
            assert server.get("/from", method, body=body).status == 200
        assert [(each.method, each.body) for each in backend.requests] == [("GET", b""), ("HEAD", b""), ("GET", b""), ("GET", b"")]


def test_scgi_redirect_loop_is_an_error(serve):
    with Program(lambda variables, _: b"Location: /app/\n\n") as program:
        assert serve(program).get("/app/").status == 500
        assert len(program.requests) <= 11


@pytest.mark.parametrize("answer, status", [
    (b"", 502), (b"nothing like a head", 502), (b"Status: 99\n\n", 502), (b"Content-Type text\n\n", 502),
    (b"X: " + b"y" * 100_000, 502), (b"Content-Length: 5\nContent-Length: 6\n\nhello", 502),
    (b"Transfer-Encoding: chunked\n\n5\r\nhello\r\n0\r\n\r\n", 502)])
def test_scgi_invalid_response_gets_502(serve, answer, status):
    with Program(lambda *_: answer) as program:
        server = serve(program)
        assert server.get("/app/").status == status
        server.err.wait_for(r"upstream 127\.0\.0\.1:\d+: ")


def test_scgi_truncated_response_is_detected(serve):
    with Program(lambda *_: b"Content-Length: 100000\n\n" + b"x" * 50000) as program:
        server = serve(program)
        try:
            assert server.get("/app/").status == 502  # the server has sent nothing yet
        except Closed:
            pass
    with Program() as program:
        assert serve(program).get("/app/").status == 200


def test_scgi_chunked_body_is_accepted(serve):
    with Program() as program:
        server = serve(program)
        reply = server.get("/app/", "POST", [("Transfer-Encoding", "chunked")], b"5\r\nhello\r\n0\r\n\r\n")
        assert json.loads(reply.text)["content"] == "hello"


def test_scgi_route_by_extension_requires_file(serve, site):
    site.add("a.py", "")
    with Program() as program:
        server = serve(program, "*.py  scgi {}")
        server.get("/a.py")
        assert program.requests[0]["SCRIPT_FILENAME"] == f"{site}/a.py"
        assert server.get("/b.py").status == 404
