# SPDX-License-Identifier: Apache-2.0
"""The http package: request bodies that a handler sends in pieces, and JSON responses."""
import itertools
import json
import re
import threading

import pytest

import prometheus
import services
from backend import Backend, echo, read_fields, response
from http_client_service import start
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("http"), reason="this build has no Duda")


def letters(pieces, size):
    return "".join(chr(ord("a") + i % 26) * size for i in range(pieces))


def test_http_sends_a_body_in_pieces(monkey, site):
    with Backend() as backend:
        server = start(monkey, site, backend.address)

        def send(query, status="200"):
            got, _, body = server.get(f"/send?{query}").text.partition(" ")
            assert got == status, body
            return json.loads(body)

        for pieces, size in ((0, 1), (3, 5), (1, 300000), (40, 10000), (1000, 33)):
            for length in ("", f"&length={pieces * size}"):
                request = send(f"pieces={pieces}&size={size}{length}")
                fields = {name.lower(): value for name, value in request["fields"]}
                assert request["body"] == letters(pieces, size)
                assert fields.get("content-length", "") == length[8:] and ("transfer-encoding" in fields) == (not length)
                assert (request["method"], fields["content-type"]) == ("POST", "text/plain")
        assert send("pieces=3&wait=1&method=PUT")["method"] == "PUT"
        assert {request.connection for request in backend.requests} == {1}, "the connection is reused"
        content = bytes(range(256)) * 8000
        relayed = server.get("/relay", method="PUT", body=content).text
        assert backend.requests[-1].body == content and relayed.startswith("200 ")
        assert server.get("/misuse").text == "-22 -22 0 0 -22 -22 -22"


def test_http_rejects_a_body_that_differs_from_its_length(monkey, site):
    with Backend() as backend:
        server = start(monkey, site, backend.address)
        assert re.fullmatch(r"22 \[HTTP_CLIENT\] main, [\d.:]+: the content is longer than its announced length",
                            server.get("/send?pieces=3&length=2").text)
        assert re.fullmatch(r"74 \[HTTP_CLIENT\] main, [\d.:]+: the content of the request is shorter than its length",
                            server.get("/send?pieces=3&length=4").text)
        assert re.match(r"22 \[HTTP_CLIENT\] main: ", server.get("/send?method=A%20B&pieces=1").text)
        assert {request.method for request in backend.requests} <= {"POST"}


def read_head(connection):
    stream = connection.makefile("rb")
    stream.readline()
    read_fields(stream)
    return stream


def test_http_early_response_ends_the_request_body(monkey, site):
    """The server responds early; then it reads the rest of the body, stops reading, or closes the connection."""
    too_much = response("too much", "413 Content Too Large")

    def read_on(connection):
        stream = read_head(connection)
        connection.sendall(too_much)
        while stream.read(65536):
            pass

    def stop_reading(connection):
        stream = read_head(connection)
        stream.read(100000)
        connection.sendall(too_much)
        over.wait(20)

    def close(connection):
        read_head(connection)
        connection.sendall(too_much)

    for script in (read_on, stop_reading, close):
        over = threading.Event()
        with Backend(script=script) as backend:
            server = start(monkey, site, backend.address)
            for length in ("", "&length=64000000"):
                assert server.get(f"/send?pieces=1000&size=64000&wait=1{length}").text == "early 413 too much"
            over.set()
            server.stop()


def test_http_slow_server_suspends_the_handler(monkey, site):
    """The handler waits for the server, so the amount of data in transit is bounded."""
    over = threading.Event()

    def read_late(connection):
        stream = read_head(connection)
        over.wait(20)
        while stream.read(65536):
            pass

    with Backend(script=read_late) as backend:
        server = start(monkey, site, backend.address, "    Timeout 200ms\n")
        assert re.fullmatch(r"110 \[HTTP_CLIENT\] main, [\d.:]+: the server does not read the request",
                            server.get("/send?pieces=1000&size=64000").text)
        with server.connect() as client:
            client.ask("/send?pieces=1000&size=64000&deadline=150")
            assert client.read().status == 504
        server.err.wait_for("ended by -110")
        server.stop()
        server = start(monkey, site, backend.address)
        with server.connect() as client:
            client.ask("/relay", "PUT", streamed=True)
            block, sent = b"x" * 100000, 0
            client.sock.settimeout(0.5)
            with pytest.raises(TimeoutError):
                for _ in itertools.repeat(None, 640):
                    client.more(block)
                    sent += 1
            assert sent < 600
        over.set()


def test_http_client_disconnect_aborts_the_request_body(monkey, site):
    """The backend detects that the request body is incomplete."""
    seen = []

    def read_all(connection):
        stream = read_head(connection)
        seen.append(b"")
        while piece := stream.read1(65536):
            seen[-1] += piece
        seen.append("end")

    with Backend(script=read_all) as backend:
        server = start(monkey, site, backend.address)
        with server.connect() as client:
            client.ask("/relay", "PUT", streamed=True)
            client.more(b"part")
            wait_until(lambda: seen and b"part" in seen[0], "the first piece has arrived")
        wait_until(lambda: seen[-1] == "end", "the connection is closed")
        assert seen[0] == b"0004\r\npart\r\n"


def test_http_full_duplex_exchanges_lines(monkey, site):
    """The server responds to each line as soon as it arrives."""
    def answer_lines(connection):
        stream = read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        while size := int(stream.readline(), 16):
            line = stream.read(size)
            stream.readline()
            if not line.startswith(b"line"):
                break
            connection.sendall(b"%x\r\n%s\r\n" % (len(line), line.upper()))
        if size:
            over.wait(20)
        else:
            stream.readline()
            connection.sendall(b"4\r\nlast\r\n0\r\n\r\n")

    def close(connection):
        stream = read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n" + b"x" * 18)
        stream.close()

    over = threading.Event()
    with Backend(script=answer_lines) as backend:
        server = start(monkey, site, backend.address, "    Timeout 300ms\n")
        assert server.get("/both").text == "200 LINE 0\n200 LINE 1\n200 LINE 2\n200 last"
        assert re.fullmatch(r"(200 LINE \d\n)+110 \[HTTP_CLIENT\] main, [\d.:]+: the server does not read the request",
                            server.get("/both?flood=1").text)
        over.set()
        server.stop()
    with Backend(script=close) as backend:
        server = start(monkey, site, backend.address)
        assert server.get("/both").text == "200 " + "x" * 18 + "closed 200 "


CONTENT = {
    "/good": '{"of": "EUR", "rate": 1.5}',
    "/list": '[{"of": "EUR", "rate": 1.5}, {"of": "CHF", "rate": 2}]',
    "/long": "[" + ",".join(['{"of": "EUR", "rate": 1}'] * 3) + "]",
    "/odd": '{"of": "EURO",\n "rate": "x"}',
    "/cut": '{"of":\n "EUR"',
    "/none": "<p>",
}
SAID = [
    ("/good", "EUR=1.5 "),
    ("/list&list", "EUR=1.5 CHF=2 "),
    ("/good&any", '{"of":"EUR","rate":1.5}'),
    ("/odd", "22 [HTTP_CLIENT] main: its JSON, line 1, column 8: `of` must be a string of at most 3 characters; and 1 more"),
    ("/cut", r"74 [HTTP_CLIENT] main: its JSON, line 2, column 7: "),
    ("/cut&any", r"74 [HTTP_CLIENT] main: its JSON, line 2, column 7: "),
    ("/long&list", "90 [HTTP_CLIENT] main: its JSON, line 1, "),
    ("/none", "74 [HTTP_CLIENT] main: its content is not JSON, but text/html"),
    ("/untyped", "74 [HTTP_CLIENT] main: its content is not JSON: it has no Content-Type"),
]


def test_http_sends_json(monkey, site):
    with Backend() as backend:
        server = start(monkey, site, backend.address)

        def sent(query=""):
            status, _, body = server.get(f"/post_json?{query}").text.partition(" ")
            assert status == "200", body
            request = json.loads(body)
            types = [value for name, value in request["fields"] if name.lower() == "content-type"]
            return request["method"], types, request["body"]

        one, two = '{"of":"EUR","rate":1.5}', '{"of":"\\"ä","rate":2}'
        assert sent() == ("POST", ["application/json"], one)
        assert sent("method=PATCH&type=application/merge-patch%2Bjson") == ("PATCH", ["application/merge-patch+json"], one)
        assert sent("field=text/x") == ("POST", ["text/x"], one), "a header replaces the default type, whatever its case"
        method, types, body = sent("kind=list")
        assert json.loads(body) == [json.loads(one), json.loads(two)]
        assert sent("kind=map")[2] == '{"rate":%s,"none":null}' % one
        assert sent("kind=nan")[2] == "[null]"
        assert sent("kind=deep")[2].strip("[]") == "null", "deeper values become null"
        assert sent("kind=null") == ("GET", [], ""), "null is no body"
        n = len(backend.requests)
        assert server.get("/post_json?kind=both").text == "22 [HTTP_CLIENT] main: the request has both body and json"
        assert server.get("/post_json?kind=begin").text.startswith("22 [HTTP_CLIENT] main")
        assert len(backend.requests) == n


@pytest.mark.parametrize("code, request_line", [(307, "POST"), (308, "POST"), (302, "GET"), (303, "GET")])
def test_http_redirects_repeat_json(monkey, site, code, request_line):
    def reply(request):
        return response("", f"{code} Moved", [("Location", "/there")]) if request.target == "/here" else echo(request)

    with Backend(reply) as backend:
        server = start(monkey, site, backend.address)
        request = json.loads(server.get("/post_json?target=/here&redirects=1").text[4:])
        fields = {name.lower(): value for name, value in request["fields"]}
        repeats = request_line == "POST"
        assert (request["target"], request["method"]) == ("/there", request_line)
        assert request["body"] == ('{"of":"EUR","rate":1.5}' if repeats else "")
        assert fields.get("content-type") == ("application/json" if repeats else None)


def test_http_json_checks_type_and_syntax(monkey, site):
    def reply(request):
        if request.target == "/untyped":
            return response("{}")
        kind = {"/none": "text/html", "/odd": "application/problem+json; charset=utf-8"}.get(request.target, "application/json")
        return response(CONTENT[request.target], fields=[("Content-Type", kind)])

    with Backend(reply) as backend:
        server = start(monkey, site, backend.address)
        for target, body in SAID:
            text = server.get(f"/json?target={target}").text
            assert text.startswith(body) and (text == body or body.endswith((" ", ","))), text


def test_http_skips_interim_responses_during_the_request_body(monkey, site):
    """Interim responses that arrive during the request body are ignored."""
    def reply(request):
        return [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", echo(request)]

    with Backend(reply) as backend:
        server = start(monkey, site, backend.address)
        assert json.loads(server.get("/send?pieces=2&size=2").text[4:])["body"] == "aabb"


def test_http_calls_are_counted(monkey, site):
    """A request is counted once, when its response begins, no matter how the response body ends."""
    with Backend() as backend:
        server = start(monkey, site, backend.address, top="[METRICS]\n    Metrics /metrics\n", plugins=["metrics"])

        def count():
            numbers = prometheus.parse(server.get("/metrics").text)
            return [numbers[f"monkey_package_{metric}", {"package": "http"}] for metric in ("calls_total", "failures_total", "waiting")]

        assert count() == [0, 0, 0]
        server.get("/ask")
        server.get("/send?pieces=3&size=3")
        assert count() == [2, 0, 0]
        server.get("/send?pieces=3&length=2")
        assert count() == [3, 1, 0]
        with server.connect() as client:
            client.ask("/relay", "PUT", streamed=True)
            client.more(b"part")
            wait_until(lambda: count() == [3, 1, 1], "the call is in progress")
        wait_until(lambda: count() == [4, 2, 0], "the client has disconnected")
