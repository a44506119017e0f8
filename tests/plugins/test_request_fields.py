# SPDX-License-Identifier: Apache-2.0
"""Request headers that only the server may set, through every gateway: programs confuse `X_Real_IP` with `X-Real-IP`."""
import contextlib
import json

import pytest

import php_fpm
from backend import Backend
from cgi_scripts import ENV, environment
from monkey import PROTOCOLS
from scgi_server import Program

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)

# The server never accepts these headers from a client.
NEVER = ["Proxy", "proxy", "Proxy-Authorization", "Proxy_Authorization", "Client-Cert", "client-cert-chain", "Client_Cert",
         "Client.Cert", "X_Forwarded_For", "X-Forwarded_Proto", "x_real_ip", "X_Original_URL", "Transfer_Encoding", "Content_Length",
         "Transfer.Encoding", "Proxy_Connection", "Max_Forwards", "X_Forwarded_Anything", "Client_IP", "X.Host"]
FORWARDED = ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Ssl",
             "X-Forwarded-Made-Up", "X-Real-IP", "Forwarded", "X-Original-URL", "X-Original-URI", "X-Original-Method", "X-Rewrite-URL",
             "Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "X-Forwarded", "Forwarded-For", "X-Original-Host", "X-Host", "X-Scheme",
             "X-URL-Scheme", "Front-End-Https", "X-Sendfile-Type", "X-Accel-Mapping"]
UNDERSCORES = ["X_User", "_", "Remote_User", "Content_Type"]
CLIENTS = ["X-User", "Accept-Language", "X-Forward", "Xx-Real-IP", "Clients-Cert", "X-1", "Prox", "Proxy-", "X-Original-URLs"]
CLAIM = "6.6.6.6"


def variable(name):
    return "HTTP_" + name.upper().replace("-", "_").replace(".", "_")


def claims(names):
    return [(name, CLAIM) for name in names]


class Gateway:
    """`read(reply)` returns the program's variables. `seen(names)` returns the variables that contain the forged value."""

    def __init__(self, server, path, read):
        self.server, self.path, self.read = server, path, read

    def ask(self, c, fields):
        return {name for name, value in self.read(c.get(self.path, fields=fields)).items() if CLAIM in value}

    def seen(self, names):
        with self.server.connect() as c:
            return self.ask(c, claims(names))


def through_proxy(monkey, site, stack, options="", first=""):
    backend = stack.enter_context(Backend())
    server = monkey(plugins=["proxy", "scgi"], sections=f"[ROUTES]\n    {first}\n    /* proxy http://{backend.address} {options}\n")
    return Gateway(server, "/", lambda reply: {variable(name): value for name, value in json.loads(reply.text)["fields"]})


def through_scgi(monkey, site, stack, options="", first=""):
    program = stack.enter_context(Program())
    server = monkey(plugins=["scgi"], sections=f"[ROUTES]\n    {first}\n    /* scgi {program.address} {options}\n")
    return Gateway(server, "/", lambda reply: json.loads(reply.text)["variables"])


def through_cgi(monkey, site, stack, options="", first=""):
    site.add("app", ENV, mode=0o755)
    keys = {"": "", "underscores=on": "Underscores on", "forwarded=pass": "PassForwarded on"}[options]
    server = monkey(plugins=["cgi", "scgi"], top=f"[CGI]\n    {keys}\n" if keys else "", sections=f"[ROUTES]\n    {first}\n    /app cgi\n")
    return Gateway(server, "/app", environment)


def through_fastcgi(monkey, site, stack, options="", first=""):
    if not php_fpm.PROGRAM:
        pytest.skip("there is no php-fpm")
    site.add("env.php", "<?php echo json_encode($_SERVER);")
    fpm = stack.enter_context(php_fpm.Fpm(site.path.parent))
    server = monkey(plugins=["fastcgi", "scgi"], sections=f"[ROUTES]\n    {first}\n    *.php fastcgi {fpm.address} {options}\n")
    return Gateway(server, "/env.php", lambda reply: {name: str(value) for name, value in json.loads(reply.text).items()})


GATEWAYS = {"proxy": through_proxy, "scgi": through_scgi, "cgi": through_cgi, "fastcgi": through_fastcgi}


@pytest.fixture(params=GATEWAYS)
def gateway(request, monkey, site):
    with contextlib.ExitStack() as stack:
        yield lambda options="", first="": GATEWAYS[request.param](monkey, site, stack, options, first), request.param


def test_request_headers_of_server_cannot_be_forged(gateway):
    start, _ = gateway
    seen = start()
    for name in NEVER + FORWARDED + UNDERSCORES:
        assert seen.seen([name]) == set(), name
    assert seen.seen(CLIENTS) == {variable(name) for name in CLIENTS}


def test_request_headers_with_underscores_pass_if_enabled(gateway):
    start, kind = gateway
    seen = start("underscores=on")
    for name in NEVER + FORWARDED:
        assert seen.seen([name]) == set(), name
    for name in UNDERSCORES:
        assert seen.seen([name]) == {variable(name)}, name
    if kind != "proxy":  # both headers map to one variable: the one without underscores wins
        with seen.server.connect() as c:
            assert seen.ask(c, [("X_User", CLAIM), ("X-User", "good")]) == set()
            assert seen.ask(c, [("X-User", "good"), ("X_User", CLAIM)]) == set()
            assert seen.ask(c, [("X_A-B", "first"), ("X-A_B", CLAIM)]) == set()


def test_request_headers_of_trusted_proxy_pass_if_enabled(gateway):
    start, kind = gateway
    seen = start("forwarded=off" if kind == "proxy" else "forwarded=pass")
    for name in FORWARDED:
        assert variable(name) in seen.seen([name]), name
    for name in NEVER + UNDERSCORES:
        assert seen.seen([name]) == set(), name


def test_request_headers_about_body_are_dropped_on_local_redirect(gateway):
    """The request has become a GET without a body (RFC 9110, section 15.4)."""
    start, _ = gateway
    names = ["Content-Type", "Content-Encoding", "content-language", "Content-Location", "Content-Range", "Content-MD5", "Content-Digest",
             "Digest", "Repr-Digest", "Last-Modified", "Trailer"]
    with Program(lambda *_: b"Location: %s?found\n\n" % seen.path.encode()) as program:
        seen = start(first=f"/from scgi {program.address}")
        fields = [*claims([*names, "X-Kept", "Accept"]), ("Expect", "100-continue")]
        for method, body in (("POST", b"content"), ("PUT", b""), ("GET", b"content"), ("GET", b"")):
            got = seen.read(seen.server.get("/from", method, fields=fields, body=body))
            assert {name for name, value in got.items() if CLAIM in value} == {"HTTP_X_KEPT", "HTTP_ACCEPT"}, method
            assert not {"HTTP_EXPECT", "HTTP_CONTENT_LENGTH", "CONTENT_TYPE"} & {name for name, value in got.items() if value}
            assert got.get("CONTENT_LENGTH", "") in ("", "0")
        assert {variable("Content-Language"), "HTTP_X_KEPT"} <= seen.seen(["Content-Language", "X-Kept"])


@every_protocol
def test_request_headers_are_filtered_over_every_protocol(monkey):
    with Backend() as backend:
        server = monkey(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n")
        got = json.loads(server.get("/", fields=claims(["X_User", "X_Real_IP", "Client-Cert", "Proxy", "X-User"])).text)["fields"]
        assert [name.lower() for name, value in got if value == CLAIM] == ["x-user"]


def test_request_headers_with_certificates_pass_if_enabled(monkey):
    with Backend() as backend:
        server = monkey(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address} certificate=pass\n")
        got = json.loads(server.get("/", fields=claims(["Client-Cert", "Client-Cert-Chain", "Client_Cert"])).text)["fields"]
        assert [name for name, value in got if value == CLAIM] == ["Client-Cert", "Client-Cert-Chain"]
