# SPDX-License-Identifier: Apache-2.0
"""The cgi plugin under failing allocations, and with pipes and sockets that transfer few bytes, in the release program."""
import pytest

from cgi_scripts import PLAIN, SH, pipes_of
from client import Closed
from fault_injection import Fault, fail_in_a_row, failing_allocations, recover
from proc import RELEASE, children, wait_until

SECTIONS = "[ROUTES]\n    /cgi-bin/*  cgi\n    /*          static\n"
KEYS = "[CGI]\n    SetEnv A b\n    MaxProcesses 2\n    RequestBody stream\n    QueryArguments on\n"

SCRIPTS = {"cat": PLAIN + "cat; echo $PATH_INFO \"$@\"\n", "local": SH + "printf 'Location: /cgi-bin/cat/x\\n\\n'\n", "bad": SH + "echo nonsense; echo\n",
           "nph-x": SH + "printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\nDate: Sun, 06 Nov 1994 08:49:37 GMT\\r\\nServer: Monkey\\r\\n\\r\\nok'\n",
           "dies": SH + "echo complaint >&2; kill -9 $$\n", "much": PLAIN + "head -c 300000 /dev/zero\n"}

REQUESTS = [b"GET /cgi-bin/cat/info?a+b HTTP/1.1\r\nHost: x\r\nCookie: a\r\nCookie: b\r\n\r\n",
            b"POST /cgi-bin/cat HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
            b"POST /cgi-bin/cat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            b"GET /cgi-bin/local HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /cgi-bin/bad HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /cgi-bin/dies HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /cgi-bin/much HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /cgi-bin/nph-x HTTP/1.1\r\nHost: x\r\n\r\n"]


@pytest.fixture
def start(monkey, site, tmp_path):
    def with_fault(name):
        if not (RELEASE.parent / "plugins/monkey-cgi.so").exists():
            pytest.skip("needs build/release and its plugins")
        for script, text in SCRIPTS.items():
            site.add(f"cgi-bin/{script}", text, mode=0o755)
        site.add("index.html", "hello")
        fault = Fault(name, tmp_path)
        return monkey(plugins=["cgi"], server="MinRate off\nOpenFileCache off\nAccessLog off", top=KEYS, sections=SECTIONS, **fault.how), fault
    return with_fault


def play(server):
    """Returns the number of failed requests; anything but a proper error response fails the test."""
    refused = 0
    for data in REQUESTS:
        with server.connect() as c:
            try:
                reply = c.send(data).read("GET")
                assert reply.status in (200, 403, 500, 502, 503), (data, reply.status)
                if reply.status != (502 if b"/bad" in data or b"/dies" in data else 200):
                    refused += 1
                    print(reply.status, data)
            except (Closed, ConnectionResetError, BrokenPipeError) as error:
                print(repr(error), data)
                refused += 1
    return refused


@pytest.mark.timeout(300)
def test_cgi_survives_failure_of_any_allocation(start):
    server, fault = start("failmalloc")
    (worker,) = server.workers
    assert play(server) == 0
    for n in failing_allocations(fault, server):
        play(server)
    assert n > 50
    recover(fault, server, play)
    (spawner,) = children(worker)
    wait_until(lambda: pipes_of(worker) == 0 and not children(spawner), "nothing is left")


@pytest.mark.parametrize("count", [2, 10, 1000])
def test_cgi_survives_several_failures_in_a_row(start, count):
    server, fault = start("failmalloc")
    fail_in_a_row(fault, server, count, play)


@pytest.mark.parametrize("most", [1, 100])
def test_cgi_works_with_short_reads_and_writes(start, most):
    server, fault = start("shortio")
    fault.most, fault.chance = most, 500
    for _ in range(3):
        assert play(server) == 0, server.log
    fault.chance = 0
    assert fault.short + fault.again + fault.interrupted > 0
