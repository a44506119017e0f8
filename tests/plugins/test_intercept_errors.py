# SPDX-License-Identifier: Apache-2.0
"""intercept_errors: pages of this server replace error responses of backends."""
import contextlib
import socket
import time

import pytest

from backend import Backend, response
from monkey import PROTOCOLS
from scgi_server import Program

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)

HEADERS = [("Retry-After", "7"), ("WWW-Authenticate", "Basic"), ("Allow", "GET, PUT"), ("X-Secret", "internal"), ("Content-Type", "text/x"),
           ("Set-Cookie", "a=b"), ("ETag", '"x"'), ("Content-Encoding", "x")]


def answer(request):
    """The path is the status."""
    status = request.target.partition("?")[0].strip("/")
    return response("" if status in ("204", "304") else "page of the backend", f"{status} Text", HEADERS)


@pytest.fixture
def stack():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def intercepting(monkey, site, stack):
    def start(option="on", reply=answer, pages="404 404.html\n5xx sorry.html\n", **how):
        site.add("404.html", "our 404")
        site.add("sorry.html", "our sorry")
        backend = stack.enter_context(Backend(reply) if callable(reply) else reply)
        text = "[ERROR_PAGES]\n" + "".join(f"    {p}\n" for p in pages.splitlines()) if pages else ""
        server = monkey(plugins=["proxy"], sections=f"{text}[ROUTES]\n    /* proxy http://{backend.address} intercept_errors={option}\n", **how)
        return server, backend
    return start


@every_protocol
def test_error_pages_replace_those_of_the_backend(intercepting):
    server, _ = intercepting()
    for status, text in ((404, "our 404"), (500, "our sorry"), (503, "our sorry")):
        reply = server.get(f"/{status}")
        assert (reply.status, reply.text) == (status, text) and "X-Secret" not in reply and "Set-Cookie" not in reply
        assert reply["Retry-After"] == "7" and reply["WWW-Authenticate"] == "Basic" and reply["Allow"] == "GET, PUT"
        assert reply["Content-Type"].startswith("text/html") and "Content-Encoding" not in reply
        head = server.get(f"/{status}", method="HEAD")
        assert head.status == status and not head.body and head["Content-Length"] == str(len(text))
    reply = server.get("/418")
    assert reply.status == 418 and "page of the backend" not in reply.text


@every_protocol
def test_other_responses_pass(intercepting):
    server, _ = intercepting()
    for status in (200, 201, 203, 299):
        assert server.get(f"/{status}").text == "page of the backend"
    for status in (204, 304):
        assert server.get(f"/{status}").status == status


@pytest.mark.parametrize("option, replaced", [("off", []), ("404", [404]), ("5xx", [500, 502, 503, 599]), ("404,503", [404, 503]), ("4xx,502", [400, 404, 499, 502])])
def test_only_the_listed_statuses_are_replaced(intercepting, option, replaced):
    server, _ = intercepting(option)
    for status in (400, 404, 499, 500, 502, 503, 599):
        assert ("page of the backend" not in server.get(f"/{status}").text) == (status in replaced), status


def test_connection_to_the_backend_is_reused(intercepting):
    server, backend = intercepting()
    for i in range(10):
        assert server.get("/500" if i % 2 else "/200").status == (500 if i % 2 else 200)
    assert backend.connections == 1


@pytest.mark.parametrize("length, pieces, connections", [(60_000, 3, 1), (100_000, 1, 5), (None, 3, 1), (None, 100, 5)])
def test_long_page_is_discarded_up_to_a_limit(intercepting, length, pieces, connections):
    def reply(_):
        yield b"HTTP/1.1 500 a\r\n" + (b"Transfer-Encoding: chunked\r\n\r\n" if length is None else b"Content-Length: %d\r\n\r\n" % length)
        for _ in range(pieces):
            time.sleep(0.01)
            yield b"4e20\r\n" + b"x" * 20_000 + b"\r\n" if length is None else b"x" * (length // pieces)
        if length is None:
            yield b"0\r\n\r\n"

    server, backend = intercepting(reply=reply)
    for _ in range(5):
        assert server.get("/").text == "our sorry"
    assert len({request.connection for request in backend.requests}) == connections


def test_page_that_breaks_off_is_replaced_all_the_same(intercepting):
    def break_off(connection):
        connection.recv(10000)
        connection.sendall(b"HTTP/1.1 500 a\r\nContent-Length: 100\r\n\r\nhalf")
        connection.shutdown(socket.SHUT_RDWR)

    server, _ = intercepting(reply=Backend(script=break_off))
    reply = server.get("/")
    assert (reply.status, reply.text) == (500, "our sorry")


def test_keep_alive_of_the_client_survives_an_upload(intercepting):
    server, _ = intercepting()
    with server.connect() as c:
        for _ in range(3):
            assert c.get("/500", method="POST", body=b"x" * 100_000).text == "our sorry"


def test_programs_have_the_option_too(monkey, site, stack):
    program = stack.enter_context(Program(lambda *_: b"Status: 503 a\r\nRetry-After: 3\r\nContent-Type: text/plain\r\n\r\npage of the program"))
    site.add("sorry.html", "our sorry")
    server = monkey(plugins=["scgi"], sections=f"[ERROR_PAGES]\n    5xx sorry.html\n[ROUTES]\n    /* scgi {program.address} intercept_errors=5xx\n")
    reply = server.get("/x")
    assert (reply.status, reply.text, reply["Retry-After"]) == (503, "our sorry", "3")


@pytest.mark.parametrize("value", ["yes", "200", "3xx", "404,", "404 ", "6xx", "1000", "404,abc"])
def test_mistake_is_reported(run, site, tmp_path, value):
    (tmp_path / "site").mkdir(exist_ok=True)
    (tmp_path / "monkey.conf").write_text(f"[PLUGINS]\n    Load proxy\n[SERVER]\n    Listen 127.0.0.1:0\n[HOST]\n    DocumentRoot site\n"
                                          f"[ROUTES]\n    /* proxy http://127.0.0.1:1 \"intercept_errors={value}\"\n")
    result = run("-t", "-c", tmp_path / "monkey.conf")
    assert result.code == 3 and "statuses from 400 to 599" in result.err and "monkey.conf:8:" in result.err, result.err
