# SPDX-License-Identifier: Apache-2.0
"""The scheme of a client of a trusted proxy that terminates TLS, as each gateway passes it to its program."""
import contextlib
import json
import socketserver
import struct
import threading

import pytest

import php_fpm
from backend import Backend
from cgi_scripts import ENV, environment
from scgi_server import Program

SECURITY = "[SECURITY]\n    TrustedProxy 127.0.0.1\n    RealAddress X-Forwarded-For\n"
TELLS = {"X-Forwarded-For": "203.0.113.9"}


@pytest.fixture
def stack():
    with contextlib.ExitStack() as all_of_them:
        yield all_of_them


def take_variables(packet):
    """Returns the variables of a uwsgi packet after its header (uwsgi-docs, The uwsgi Protocol)."""
    texts = []
    while packet:
        (size,) = struct.unpack_from("<H", packet)
        texts.append(packet[2:2 + size].decode("latin-1"))
        packet = packet[2 + size:]
    return dict(zip(texts[::2], texts[1::2]))


class Uwsgi(socketserver.StreamRequestHandler):
    """Responds with the variables of the request as JSON."""

    def handle(self):
        _, size, _ = struct.unpack("<BHB", self.rfile.read(4))
        text = json.dumps(take_variables(self.rfile.read(size))).encode()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)


def through_scgi(stack, site):
    program = stack.enter_context(Program())
    return "scgi", f"/* scgi {program.address}", "/", lambda text: json.loads(text)["variables"]


def through_uwsgi(stack, site):
    program = stack.enter_context(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Uwsgi))
    threading.Thread(target=program.serve_forever, daemon=True).start()
    stack.callback(program.shutdown)
    return "uwsgi", f"/* uwsgi 127.0.0.1:{program.server_address[1]}", "/", json.loads


def through_cgi(stack, site):
    site.add("app", ENV, mode=0o755)
    return "cgi", "/app cgi", "/app", environment


def through_fastcgi(stack, site):
    if not php_fpm.PROGRAM:
        pytest.skip("there is no php-fpm")
    site.add("env.php", "<?php echo json_encode($_SERVER);")
    fpm = stack.enter_context(php_fpm.Fpm(site.path.parent))
    return "fastcgi", f"*.php fastcgi {fpm.address}", "/env.php", json.loads


GATEWAYS = {"scgi": through_scgi, "uwsgi": through_uwsgi, "cgi": through_cgi, "fastcgi": through_fastcgi}


@pytest.fixture(params=GATEWAYS)
def ask(request, monkey, site, stack):
    """ask(fields, source) returns the program's variables about encryption."""
    plugin, route, path, read = GATEWAYS[request.param](stack, site)
    server = monkey(plugins=["security", plugin], top=SECURITY, sections=f"[ROUTES]\n    {route}\n")

    def run(fields, source="127.0.0.1"):
        with server.connect(source=source) as c:
            answer = c.get(path, fields=fields)
        variables = answer if request.param == "cgi" else answer.text
        return {name: value for name, value in read(variables).items()
                if name in ("HTTPS", "REQUEST_SCHEME") or name.startswith("SSL_")}

    return run


def test_gateway_program_learns_scheme_of_client(ask):
    encrypted, plain = {"REQUEST_SCHEME": "https", "HTTPS": "on"}, {"REQUEST_SCHEME": "http"}
    assert ask(TELLS | {"X-Forwarded-Proto": "https"}) == encrypted, "no variables about a TLS session of another server"
    assert ask(TELLS | {"X-Forwarded-Proto": "http"}) == plain
    assert ask(TELLS) == plain
    assert ask({"X-Forwarded-Proto": "https"}, source="127.0.0.2") == plain, "this proxy is not trusted"
    assert ask({"Https": "on", "X-Forwarded-Ssl": "on"}, source="127.0.0.2") == plain


def test_proxy_backend_learns_scheme_of_client(monkey, stack):
    backend = stack.enter_context(Backend())
    server = monkey(plugins=["security", "proxy"], top=SECURITY, sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n")

    def seen(fields, source="127.0.0.1"):
        with server.connect(source=source) as c:
            return dict(json.loads(c.get("/", fields=fields).text)["fields"])["X-Forwarded-Proto"]

    assert seen(TELLS | {"X-Forwarded-Proto": "https"}) == "https"
    assert seen(TELLS) == "http"
    assert seen({"X-Forwarded-Proto": "https"}, source="127.0.0.2") == "http"
