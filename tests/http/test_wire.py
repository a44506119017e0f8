# SPDX-License-Identifier: Apache-2.0
"""Sends each case of tests/wire over a socket; checks the responses, and that the server then closes the connection or serves
another request on it, as the case expects."""
import json
import sys
from itertools import zip_longest

import pytest

from client import BadReply
from wire.cases import read_cases

LIMITS = """
    MaxHeaderSize 8192
    MaxURISize  4096
    MaxHeaders   64
    AccessLog   access.json
    AccessLogFormat json
"""
REFUSALS = {400, 411, 413, 414, 417, 431, 505}
CASES = list(read_cases())
FILES = sorted({case.file for case in CASES})
PROBE = b"GET /probe.txt HTTP/1.1\r\nHost: probe\r\n\r\n"

# The server allows longer trailers and chunk extensions than the cases assume, and waits for the rest.
MORE_IS_ALLOWED = {"chunked-an-extension-without-end", "chunked-too-many-trailers", "chunked-a-trailer-without-end",
                   "chunked-many-long-extensions-of-small-chunks"}


def send(c, data, slowly):
    """Ignores a failure to send: the server need not read all data of a request that it refuses."""
    try:
        (c.send_slowly if slowly else c.send)(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def expected_answers(case):
    """Returns the method of each request, the expected status (None if any status of an accepted request will do), and the
    set of its event kinds, such as {b"request", b"keep"}."""
    methods = [line.split()[0].decode() for line in case.events("request")]
    events = []
    for line in case.expect:
        kind = line.split()[0]
        if kind in (b"request", b"status"):
            events.append(set())
        if events:
            events[-1].add(kind)
    answers = list(zip_longest(methods, case.statuses, events, fillvalue="GET"))
    if case.file == "chunked.txt" and len(answers) == 2 and answers[1][1]:
        answers.pop()  # both belong to the same request: the server responds before it reads the body
    return answers


def keeps(case):
    """Does the connection survive the last request? It does not if the client still waits for 100 Continue: the server cannot
    know whether the client will send the body."""
    last = max(i for i, line in enumerate(case.expect) if line.startswith(b"request "))
    events = set(case.expect[last:])
    return b"keep" in events or not ({b"close", b"continue"} & events or case.expect[last].endswith(b"HTTP/1.0"))


def check_connection(case, reply, events):
    """Checks that the response announces correctly whether the connection stays open. An HTTP/1.0 client closes the connection
    unless the response contains `Connection: keep-alive`."""
    if b"keep" in events:
        assert not reply.closes, "the response announces the end of the connection"
        if case.data.split(b"\r\n")[0].endswith(b"HTTP/1.0"):
            assert "keep-alive" in reply.tokens("Connection")
    if b"close" in events:
        assert reply.closes, "the response does not announce the end of the connection"
    assert b"continue" in events or not reply.interim, "100 Continue for a client that does not wait for it"


def play(server, case, slowly):
    """Returns the received statuses, and raises if they are unexpected."""
    seen = []
    with server.connect() as c:
        send(c, case.data, slowly)
        for method, status, events in expected_answers(case):
            reply = c.read(method)
            seen.append(reply.status)
            if status is None:
                assert reply.status not in REFUSALS, f"{reply.status} for a good request"
                check_connection(case, reply, events)
            else:
                assert reply.status == status, f"{reply.status}, not {status}"
                assert reply.closes
                assert reply["Content-Type"] == "text/html; charset=utf-8" and f"<title>{status} {reply.reason}</title>" in reply.text
        if case.id in MORE_IS_ALLOWED or case.is_incomplete:
            c.shut()
        elif not case.events("status") and keeps(case):
            send(c, PROBE, slowly)
            reply = c.read("GET")
            seen.append(reply.status)
            assert (reply.status, reply.body) == (200, b"probe!"), f"the next request got {reply}"
            return seen
        c.expect_end()
    return seen


@pytest.mark.http1
@pytest.mark.parametrize("slowly", [False, True], ids=["whole", "bytes"])
@pytest.mark.parametrize("file", FILES)
def test_wire_cases_get_expected_statuses(monkey, site, tmp_path, file, slowly):
    site.add("probe.txt", "probe!")
    server = monkey(server=LIMITS)
    failures, statuses = [], []
    for case in CASES:
        if case.file != file:
            continue
        try:
            statuses += play(server, case, slowly)
        except (BadReply, AssertionError, OSError) as error:
            failures.append(f"{case.file}:{case.line}: {case.name}: {error}")
    assert not failures, "\n".join(failures)
    assert statuses
    server.stop()
    records = [json.loads(line) for line in (tmp_path / "access.json").read_text().splitlines()]
    assert [r["status"] for r in records if r["status"]] == statuses, "each request leaves one record, in order"
    assert all(r["status"] or r["outcome"] == "client_aborted" for r in records)
