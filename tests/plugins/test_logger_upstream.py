# SPDX-License-Identifier: Apache-2.0
"""The verbs of the logger plugin about backends, TLS, and why a request ended."""
import json
import re
import socket
import time

import pytest

from backend import Backend, response
from proc import wait_until

UPSTREAM = "%{upstream_addr}x|%{upstream_server}x|%{upstream_tries}x|%{upstream_status}x|%{upstream_connect_time}x|%{upstream_header_time}x|" \
           "%{upstream_response_time}x|%{upstream_bytes_received}x|%{reason}x"
TIME = r"\d+\.\d{3}"


@pytest.fixture
def start(monkey, site):
    """Starts a server with these routes and this access log format."""
    site.add("index.html", "hello")

    def run(routes="", format=UPSTREAM, plugins=(), **how):
        sections = f"[LOGGER]\n    AccessLog access.log\n    Format {format}\n[ROUTES]\n{routes}    /* static\n"
        return monkey(plugins=["logger", "proxy", *plugins], sections=sections, **how)

    return run


def lines_of(server, n=1):
    return wait_until(lambda: (lines := (server.folder / "access.log").read_text().splitlines()) and len(lines) >= n and lines, "the access log")


def line_of(server):
    line, = lines_of(server)
    return line.replace("\\x20", " ").split("|")


@pytest.fixture
def unused():
    """An address at which nothing listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{s.getsockname()[1]}"


def test_request_without_backend_has_no_attempts(start):
    server = start()
    server.get("/")
    assert line_of(server) == ["-", "-", "0", "-", "-", "-", "-", "-", "ok"]


@pytest.mark.parametrize("protocol", ["h1", "h2"], indirect=True)
def test_attempt_is_described(start, protocol):
    def slow(request):
        time.sleep(0.2)
        return response("x" * 1000)

    with Backend(slow) as backend:
        server = start(f"    /* proxy http://{backend.address}\n")
        assert server.get("/").status == 200
        addr, name, tries, status, connect, header, whole, received, reason = line_of(server)
        assert (addr, name, tries, status, reason) == (backend.address, backend.address, "1", "200", "ok")
        assert all(re.fullmatch(TIME, each) for each in (connect, header, whole))
        assert float(connect) < 0.2 <= float(header) <= float(whole) < 10
        assert int(received) == len(response("x" * 1000))


def test_pooled_connection_is_connected_at_once(start):
    with Backend() as backend:
        server = start(f"    /* proxy http://{backend.address}\n")
        server.get("/"), server.get("/")
        lines = lines_of(server, 2)
        assert lines[1].split("|")[4] == "0.000" and lines[1].split("|")[2] == "1"


def test_attempts_are_listed_in_order(start, unused):
    with Backend(lambda request: response(status="404 Not Found")) as backend:
        server = start("    /* proxy http://both\n", top=f"[UPSTREAM]\n    Name both\n    Server {unused}\n    Server {backend.address} backup\n")
        assert server.get("/").status == 404
        addr, name, tries, status, connect, header, whole, received, reason = line_of(server)
        assert (addr, tries, status, reason) == (f"{unused}, {backend.address}", "2", "-, 404", "ok")
        assert re.fullmatch(f"-, {TIME}", connect) and re.fullmatch(f"-, {TIME}", header) and re.fullmatch(f"{TIME}, {TIME}", whole)
        assert received.startswith("0, ")


def test_unix_socket_is_an_address(start, tmp_path):
    with Backend(family=socket.AF_UNIX, at=f"{tmp_path}/b.sock") as backend:
        server = start(f"    /* proxy http://unix:{tmp_path}/b.sock\n")
        assert server.get("/").status == 200
        assert line_of(server)[0] == f"unix:{tmp_path}/b.sock"
        assert backend.requests


def test_retry_after_a_broken_response_is_listed(start):
    with Backend(lambda request: None) as broken, Backend() as good:
        server = start("    /* proxy http://both\n", top=f"[UPSTREAM]\n    Name both\n    Server {broken.address}\n    Server {good.address} backup\n")
        assert server.get("/").status == 200
        addr, _, tries, status, *_ = line_of(server)
        assert addr.split(", ")[-1] == good.address and addr.startswith(broken.address) and status.endswith(", 200") and int(tries) >= 2


# ---- Why a request ended ----

def test_reason_of_failed_backend(start, unused):
    server = start(f"    /* proxy http://{unused}\n", format="%s|%{reason}x|%{upstream_status}x|%{upstream_tries}x")
    assert server.get("/").status == 502
    assert line_of(server)[:3] == ["502", "upstream_failed", "-"]


def test_reason_of_slow_backend(start):
    with Backend(lambda request: time.sleep(3) or response()) as backend:
        server = start(f"    /* proxy http://{backend.address} response_timeout=1s max_tries=1\n", format="%s|%{reason}x")
        assert server.get("/").status == 504
        assert line_of(server) == ["504", "upstream_timeout"]


def test_reason_of_response_that_breaks_off(start):
    with Backend(lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50000) as backend:
        server = start(f"    /* proxy http://{backend.address}\n", format="%s|%{reason}x|%X")
        with server.connect() as c:
            c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            while c.sock.recv(1 << 20):
                pass
        assert line_of(server) == ["200", "upstream_failed", "failed"]


def test_reason_of_client_that_leaves(start):
    with Backend(lambda request: time.sleep(2) or response()) as backend:
        server = start(f"    /* proxy http://{backend.address}\n", format="%s|%{reason}x|%{upstream_tries}x|%{upstream_status}x")
        with server.connect() as c:
            c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_until(lambda: backend.requests, "the backend has the request")
        assert line_of(server) == ["499", "client_aborted", "1", "-"]


@pytest.mark.parametrize("plugin, section, status", [
    ("limits", "[LIMITS]\n    Requests 1/h\n", 429), ("security", "[SECURITY]\n    Deny /*\n", 403),
    ("rewrite", "[REWRITE]\n    Redirect 301 glob / /other\n", 301)])
def test_reason_is_the_plugin_that_responds(start, plugin, section, status):
    server = start(format="%s|%{reason}x", plugins=[plugin], top=section)
    while server.get("/").status != status:
        pass
    wait_until(lambda: lines_of(server)[-1] == f"{status}|{plugin}", "the last line")


def test_reason_is_the_plugin_that_rejects_changed_headers(start):
    rules = "".join(f"    Add X-Own-{i} 1\n" for i in range(10))
    server = start(format="%s|%{reason}x", plugins=["headers"], top=f"[REQUEST_HEADERS]\n{rules}", server="MaxHeaders 250")
    assert server.get("/", fields=[(f"X-Client-{i}", "1") for i in range(246)]).status == 431
    assert line_of(server) == ["431", "headers"]
    server.allow("cannot change the request header")


# ---- Bytes and TLS ----

@pytest.mark.parametrize("protocol", ["h1", "h2"], indirect=True)
def test_received_bytes_are_counted(start, protocol):
    with Backend() as backend:
        server = start(f"    /* proxy http://{backend.address}\n", format="%{received}x")
        server.get("/", "POST", body=b"x" * 12345)
        assert line_of(server) == ["12345"]


@pytest.mark.parametrize("protocol", ["h1-tls", "h2-tls"], indirect=True)
def test_tls_is_described(start, protocol):
    server = start(format="%{tls_version}x|%{tls_cipher}x|%{tls_group}x")
    server.get("/")
    version, cipher, group = line_of(server)
    assert version == "TLSv1.3" and re.fullmatch(r"TLS_\w+", cipher) and re.fullmatch("x25519|X25519MLKEM768", group)


def test_plain_connection_has_no_tls(start):
    server = start(format="%{tls_version}x|%{tls_cipher}x|%{tls_group}x")
    server.get("/")
    assert line_of(server) == ["-", "-", "-"]


# ---- Formats ----

def test_detailed_format_is_json(start):
    with Backend() as backend:
        server = start(f"    /* proxy http://{backend.address}\n", format="detailed", plugins=["tracing"], top="[TRACING]\n    RequestId on\n")
        answer = server.get('/a"b', fields=[("User-Agent", 'x"y')])
        line = json.loads(lines_of(server)[0])
        assert line["upstream_addr"] == backend.address and line["status"] == 200 and line["reason"] == "ok" and line["agent"] == 'x"y'
        assert line["request_id"] == answer["X-Request-Id"] and line["tls_version"] == "" and line["route"] == "/*"


def test_custom_format_has_the_request_id(start):
    server = start(format="%L|%s")
    server.get("/")
    assert re.fullmatch(r"[0-9a-f]{32}\|200", lines_of(server)[0])


@pytest.mark.parametrize("verb", ["%{upstream}x", "%x", "%{tls}x", "%{id}L"])
def test_unknown_verb_names_the_known_ones(run, tmp_path, verb):
    from monkey import write_config
    done = run("-t", "-c", write_config(tmp_path / "m.conf", plugins=["logger"], sections=f"[LOGGER]\n    AccessLog a.log\n    Format {verb}\n"))
    assert done.code == 3 and f"`{verb}`" in done.err and ("%{upstream_addr}x" in done.err or "%{column}L" in done.err)
