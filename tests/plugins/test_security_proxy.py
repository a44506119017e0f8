# SPDX-License-Identifier: Apache-2.0
"""The security plugin behind proxies: the client address comes from a header or from the PROXY protocol."""
import errno
import functools
import random
import socket
import struct
import subprocess

import pytest

import tls_server
from certificates import make_authority
from client import Client
from proc import wait_until
from security_server import guard, is_refused

CLIENT = "203.0.113.9"


@pytest.fixture
def guarded(monkey, site):
    return functools.partial(guard, monkey)


REAL = "TrustedProxy 127.0.0.1 10.0.0.0/8 2001:db8::/32\nDeny not from " + CLIENT

FORWARDED_FOR = {
    # The header names CLIENT as the client
    CLIENT: 200, f"{CLIENT}:4711": 200, f"::ffff:{CLIENT}": 200, f" {CLIENT} ": 200, f",, {CLIENT} ,": 200,
    f"{CLIENT}, 10.1.1.1": 200, f"6.6.6.6, {CLIENT}, 10.1.1.1, 10.2.2.2,2001:db8::7": 200, f"6.6.6.6,{CLIENT}": 200,
    f"rubbish, {CLIENT}": 200, f'"6.6.6.6, {CLIENT}': 200, f"{CLIENT}, [2001:db8::1]:80": 200,
    # The header does not name CLIENT as the client
    "6.6.6.6": 403, f"{CLIENT}, 6.6.6.6": 403, f"{CLIENT}, rubbish": 403, f"{CLIENT}, rubbish, 10.1.1.1": 403,
    f"{CLIENT}, 6.6.6.6, 10.1.1.1": 403, "": 403, ",": 403, "10.1.1.1": 403, f"{CLIENT}x": 403, f"{CLIENT}, unknown": 403,
    f"{CLIENT}, 10.1.1.1.1": 403, f"{CLIENT}, 2130706433": 403, f"{CLIENT}, 0x7f.1": 403, f"{CLIENT}/24": 403,
    f"{CLIENT};10.1.1.1": 403, f"{CLIENT} 10.1.1.1": 403, f"{CLIENT}:99999": 403,
}


@pytest.mark.parametrize("field", ["X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP"])
def test_real_address_comes_from_trusted_proxy_header(guarded, site, field):
    site.add("index.html", "index")
    server = guarded(REAL + f"\nRealAddress {field}")
    with server.connect() as c:
        for value, expected in FORWARDED_FOR.items():
            assert c.get("/", fields={field: value}).status == expected, value
        assert c.get("/").status == 403
        assert c.get("/", fields={field.upper(): CLIENT}).status == 200
        # Each request on a connection has its own client address
        assert c.get("/", fields={field: CLIENT}).status == 200
        assert c.get("/", fields={"Forwarded": f"for={CLIENT}"}).status == 403
        # A proxy may add a header line instead of extending the list: the last line is its own
        assert c.get("/", fields=[(field, "6.6.6.6"), ("X", "y"), (field, CLIENT)]).status == 200
        assert c.get("/", fields=[(field, CLIENT), ("X", "y"), (field, "6.6.6.6")]).status == 403
        assert c.get("/", fields=[(field, CLIENT), (field, ""), (field, "10.1.1.1")]).status == 200
        assert c.get("/", fields={field: f"{CLIENT}, " + "10.1.1.1, " * 62 + "10.1.1.1"}).status == 200
        assert c.get("/", fields={field: f"{CLIENT}, " + "10.1.1.1, " * 70 + "10.1.1.1"}).status == 403


def test_real_address_ignores_header_of_untrusted_proxy(guarded, site):
    site.add("index.html", "index")
    server = guarded(REAL.replace("Deny", "Deny /*") + "\nRealAddress X-Forwarded-For")
    for source in ("127.0.0.2", "127.0.0.3"):
        for value in (CLIENT, f"{CLIENT}, 127.0.0.1", f"{CLIENT}, 10.0.0.1"):
            with server.connect(source=source) as c:
                assert c.get("/", fields={"X-Forwarded-For": value}).status == 403


FORWARDED = {
    f"for={CLIENT}": 200, f'for="{CLIENT}:80"': 200, f"For={CLIENT};proto=https;by=10.0.0.1": 200,
    f'proto=http; for="{CLIENT}"': 200, f'for=6.6.6.6, for={CLIENT}, for="[2001:db8::1]:_x"': 403,
    f'for=6.6.6.6, for={CLIENT}, for="[2001:db8::1]:44"': 200, f"for={CLIENT}:80": 200,
    f'for="evil, for={CLIENT}': 200, f'for={CLIENT};host="evil, for=6.6.6.6;x"': 200,
    f'for={CLIENT};host="a\\", for=6.6.6.6"': 200, f'host="a;for=6.6.6.6;b";for={CLIENT}': 200,
    f"for={CLIENT}, for=unknown": 403, f"for={CLIENT}, for=_hidden": 403, f"for={CLIENT}, proto=https": 403,
    f"{CLIENT}": 403, f"for={CLIENT};for={CLIENT}": 403, f'for="{CLIENT}': 403, f'for={CLIENT}"': 403,
    f"for='{CLIENT}'": 403, "for=": 403, "for": 403, 'for=""': 403, f'for="{CLIENT}\\"': 403, f"for={CLIENT}, x": 403,
    f"for={CLIENT}, \"": 403, f'host=", for={CLIENT}': 200,
}


def test_real_address_may_come_from_forwarded(guarded, site):
    site.add("index.html", "index")
    server = guarded(REAL + "\nRealAddress forwarded")
    with server.connect() as c:
        for value, expected in FORWARDED.items():
            assert c.get("/", fields={"Forwarded": value}).status == expected, value
        assert c.get("/", fields={"X-Forwarded-For": CLIENT}).status == 403


def test_real_address_malformed_header_is_logged_with_rate_limit(guarded, site):
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress Forwarded")
    with server.connect() as c:
        for _ in range(30):
            assert c.get("/", fields={"Forwarded": "for=unknown"}).status == 403
        for _ in range(30):
            assert c.get("/", fields={"Forwarded": "for=rubbish"}).status == 403
    server.err.wait_for(r"security: trusted proxy 127\.0\.0\.1: invalid client address in its header \(1 times\)")
    server.stop()
    assert server.err.text.count("trusted proxy") < 10  # the message is rate limited


def test_real_address_is_visible_to_all_plugins(guarded, site):
    site.add("index.html", "index")
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For",
                     server="AccessLog stdout\nAccessLogFormat short")
    with server.connect() as c:
        c.get("/", fields={"X-Forwarded-For": "2001:db8::9"})
    server.out.wait_for(r"2001:db8::9")


def test_real_address_hosts_may_trust_other_proxies(guarded, site):
    site.add("index.html", "index")
    own = "[HOST]\n    ServerName {0}\n    DocumentRoot site\n\n[SECURITY]\n    Deny not from {1}\n{2}\n"
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For", host="ServerName top.example", sections="\n".join([
        own.format("same.example", CLIENT, ""), own.format("none.example", CLIENT, "    TrustedProxy off"),
        own.format("field.example", CLIENT, "    RealAddress X-Real-IP"),
        own.format("off.example", CLIENT, "    RealAddress off"),
        own.format("two.example", CLIENT, "    TrustedProxy 127.0.0.2")]))
    fields = {"X-Forwarded-For": CLIENT}
    for host, source, expected in (("same", 1, 200), ("same", 2, 403), ("none", 1, 403), ("off", 1, 403), ("field", 1, 403),
                                   ("two", 1, 403), ("two", 2, 200), ("top", 2, 200)):
        with server.connect(source=f"127.0.0.{source}") as c:
            assert c.get("/", fields=fields, host=host + ".example").status == expected, (host, source)
    with server.connect() as c:
        assert c.get("/", fields={"X-Real-IP": CLIENT}, host="field.example").status == 200


def test_real_address_trusted_proxy_may_connect_for_allowed_client(guarded, site):
    """A rule denies the proxy's own address, but the proxy may connect on behalf of an allowed client."""
    site.add("index.html", "index")
    server = guarded(f"TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For\nAllow {CLIENT}\nDeny all")
    with server.connect(source="127.0.0.1") as c:
        assert c.get("/", fields={"X-Forwarded-For": CLIENT}).status == 200
        assert c.get("/", fields={"X-Forwarded-For": "6.6.6.6"}).status == 403
        assert c.get("/").status == 403
    assert is_refused(server, "127.0.0.2")


def tlv(kind, value):
    return struct.pack("!BH", kind, len(value)) + value


# ---- The scheme ----

SCHEMES = {
    "X-Forwarded-Proto": {
        "https": "https", "HTTPS": "https", " wss ": "https", "on": "https", "http": "http", "off": "http", "ws": "http",
        "": "http", "ftp": "http", "https x": "http", "http, https": "https", "https, http": "http", ",https,,": "https",
        "https, ": "https", "https, rubbish": "http",
    },
    "Forwarded": {
        "for=6.6.6.6;proto=https": "https", "proto=https;for=6.6.6.6": "https", "For=6.6.6.6; Proto=\"HTTPS\"": "https",
        "for=6.6.6.6": "http", "for=6.6.6.6;proto=http": "http", "for=6.6.6.6;proto=https;proto=https": "http",
        "for=6.6.6.6;host=\"proto=https\"": "http", "for=9.9.9.9;proto=https, for=6.6.6.6;proto=http": "http",
        "for=6.6.6.6;proto=https, for=10.1.1.1;proto=http": "https", "for=6.6.6.6, for=10.1.1.1;proto=https": "https",
        "for=unknown;proto=https": "https", "for=6.6.6.6;proto=\"https": "http", "proto=https": "https",
    },
}


def serve_scheme(guarded, rules, **how):
    server = guarded(rules, sections="[ROUTES]\n    /facts encrypted\n    /* static\n", plugins=["security", tls_server.PLUGIN], **how)

    def scheme(**fields):
        with server.connect(source=fields.pop("source", None)) as c:
            return dict(line.partition("=")[::2] for line in c.get("/facts", **fields).text.splitlines())["scheme"]
    return scheme


@pytest.mark.parametrize("field", SCHEMES)
def test_real_scheme_comes_from_trusted_proxy_header(guarded, field):
    address = "Forwarded" if field == "Forwarded" else "X-Forwarded-For"
    scheme = serve_scheme(guarded, f"TrustedProxy 127.0.0.1 10.0.0.0/8\nRealAddress {address}")
    for value, expected in SCHEMES[field].items():
        assert scheme(fields={field: value}) == expected, value
    other = {"Forwarded": "X-Forwarded-Proto", "X-Forwarded-Proto": "Forwarded"}[field]
    assert scheme(fields={other: "for=6.6.6.6;proto=https" if other == "Forwarded" else "https"}) == "http"
    assert scheme(fields={field: "for=6.6.6.6;proto=https" if field == "Forwarded" else "https"}, source="127.0.0.2") == "http"


def test_real_scheme_of_several_proxies_is_that_of_the_first(guarded):
    scheme = serve_scheme(guarded, "TrustedProxy 127.0.0.1 10.0.0.0/8\nRealAddress X-Forwarded-For")
    far = "6.6.6.6, 10.1.1.1"
    for value, expected in (("https, http", "https"), ("http, https", "http"), ("https", "https"), ("http, https, http", "https")):
        assert scheme(fields={"X-Forwarded-For": far, "X-Forwarded-Proto": value}) == expected, value
    assert scheme(fields=[("X-Forwarded-For", far), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Proto", "http")]) == "https"


def test_real_scheme_header_is_configurable(guarded):
    scheme = serve_scheme(guarded, "TrustedProxy 127.0.0.1\nRealScheme X-Forwarded-Ssl")
    assert scheme(fields={"X-Forwarded-Ssl": "on"}) == "https"
    assert scheme(fields={"X-Forwarded-Proto": "https"}) == "http"
    scheme = serve_scheme(guarded, "TrustedProxy 127.0.0.1\nRealAddress Forwarded\nRealScheme off")
    assert scheme(fields={"Forwarded": "for=6.6.6.6;proto=https"}) == "http"


@pytest.mark.parametrize("kind, value, expected", [
    (0x20, b"\1\0\0\0\0", "https"), (0x20, b"\7\0\0\0\0" + tlv(0x21, b"TLSv1.3"), "https"), (0x20, b"\0\0\0\0\0", "http"),
    (0x20, b"\6\0\0\0\0", "http"), (0x21, b"\1\0\0\0\0", "http")])
def test_real_scheme_comes_from_proxy_protocol(guarded, kind, value, expected):
    server = guarded("TrustedProxy 127.0.0.1\nProxyProtocol on", sections="[ROUTES]\n    /facts encrypted\n    /* static\n",
                     plugins=["security", tls_server.PLUGIN])
    with server.connect() as c:
        c.send(v2(v4_body(extra=tlv(kind, value))))
        for _ in range(2):
            assert f"scheme={expected}\n" in c.get("/facts").text


def test_real_scheme_decides_about_redirects_and_hsts(guarded, site, tmp_path):
    site.add("index.html", "index")
    authority = make_authority(tmp_path / "authority")
    pair = authority.issue(["localhost"])
    server = guarded("TrustedProxy 127.0.0.0/8\nRealAddress X-Forwarded-For\nDeny from 6.6.6.6",
                     server=tls_server.keys(pair) + "RedirectToHTTPS 8443\nHSTS 1d", listen=["127.0.0.1:0", "127.0.0.2:0 tls"],
                     protocol="h1", encryption=None)
    with Client(server.addresses[0]) as c:
        told = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "9.9.9.9"}
        reply = c.get("/", fields=told)
        assert (reply.status, reply.all("Strict-Transport-Security")) == (200, ["max-age=86400"])
        assert c.get("/").status == c.get("/", fields=told | {"X-Forwarded-Proto": "http"}).status == 308
        # The exemption of ACME challenges does not apply if the real scheme is HTTPS
        path = "/.well-known/acme-challenge/x"
        assert c.get(path, fields=told | {"X-Forwarded-For": "6.6.6.6"}).status == 403
        assert c.get(path, fields=told).status == 404
    with Client(server.addresses[1], tls=authority.client_context(alpn=["http/1.1"]), server_name="localhost") as c:
        assert c.get("/").status == 200
        assert c.get("/", fields={"X-Forwarded-Proto": "http"}).status == 308


def test_real_scheme_does_not_imply_client_certificate(guarded, site, tmp_path):
    site.add("index.html", "index")
    authority = make_authority(tmp_path / "authority")
    pair = authority.issue(["localhost"])
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For", listen=["127.0.0.1:0", "127.0.0.2:0 tls"],
                     server=tls_server.keys(pair) + f"ClientCertificates required\nClientAuthority {pair.certificate}", protocol="h1", encryption=None)
    with Client(server.addresses[0]) as c:
        assert c.get("/", fields={"X-Forwarded-Proto": "https"}).status == 403


# ---- The PROXY protocol ----

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
PROXY = f"TrustedProxy 127.0.0.1\nProxyProtocol on\nDeny /* not from {CLIENT} 2001:db8::9 unix:"


def v2(body=b"", command=0x21, family=0x11, length=None):
    return SIGNATURE + struct.pack("!BBH", command, family, len(body) if length is None else length) + body


def v4_body(source=CLIENT, extra=b""):
    return socket.inet_aton(source) + socket.inet_aton("192.0.2.1") + struct.pack("!HH", 4711, 80) + extra


def v6_body(source="2001:db8::9", extra=b""):
    return (socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, "::1") +
            struct.pack("!HH", 4711, 80) + extra)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def with_sum(before=b"", behind=b"", wrong=0):
    header = v2(v4_body(extra=before + tlv(3, b"\0" * 4) + behind))
    at = len(SIGNATURE) + 4 + 12 + len(before) + 3
    return header[:at] + struct.pack("!I", crc32c(header) ^ wrong) + header[at + 4:]


GOOD = {
    "v1": f"PROXY TCP4 {CLIENT} 192.0.2.1 4711 80\r\n".encode(),
    "v1 six": b"PROXY TCP6 2001:db8::9 ::1 4711 80\r\n",
    "v1 mapped": f"PROXY TCP6 ::ffff:{CLIENT} ::1 0 65535\r\n".encode(),
    "v1 longest": b"PROXY TCP6 " + b"2001:0db8:0000:0000:0000:0000:0000:0009 " * 2 + b"65535 65535\r\n",
    "v2": v2(v4_body()),
    "v2 six": v2(v6_body(), family=0x21),
    "v2 datagram": v2(v4_body(), family=0x12),
    "v2 unix": v2(b"/run/a".ljust(108, b"\0") + b"/run/b".ljust(108, b"\0"), family=0x31),
    "v2 extras": v2(v4_body(extra=tlv(1, b"h2") + tlv(2, b"example.org") + tlv(4, b"\0" * 40) + tlv(0xe0, b""))),
    "v2 large": v2(v4_body(extra=tlv(0x20, b"x" * 8000))),
    "v2 tls": v2(v4_body(extra=tlv(0x20, b"\1\0\0\0\0"))),
    "v2 sum": with_sum(),
    "v2 sum among others": with_sum(tlv(1, b"h2"), tlv(4, b"\0\0")),
}
# The proxy connects on its own behalf, and a rule denies it.
OWN = {
    "v1 unknown": b"PROXY UNKNOWN\r\n",
    "v1 unknown with more": f"PROXY UNKNOWN {CLIENT} {CLIENT} 1 2\r\n".encode(),
    "v1 unknown longest": b"PROXY UNKNOWN " + b"f" * 91 + b"\r\n",
    "v2 local": v2(command=0x20, family=0),
    "v2 local with more": v2(v4_body(), command=0x20),
    "v2 local of what there is not": v2(b"xx", command=0x20, family=0x77),
    "v2 unspecified": v2(b"\0\1", family=0),
}
BAD = {
    "none": REQUEST,
    "v1 lower": b"proxy TCP4 203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 address": b"PROXY TCP4 203.0.113.999 192.0.2.1 1 2\r\n",
    "v1 octal": b"PROXY TCP4 203.0.113.011 192.0.2.1 1 2\r\n",
    "v1 other address": b"PROXY TCP4 203.0.113.9 here 1 2\r\n",
    "v1 family": b"PROXY TCP6 203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 family 4": b"PROXY TCP4 2001:db8::9 ::1 1 2\r\n",
    "v1 brackets": b"PROXY TCP6 [2001:db8::9] ::1 1 2\r\n",
    "v1 address and port": b"PROXY TCP4 203.0.113.9:1 192.0.2.1 1 2\r\n",
    "v1 udp": b"PROXY UDP4 203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 blanks": b"PROXY TCP4  203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 blank at the end": b"PROXY TCP4 203.0.113.9 192.0.2.1 1 2 \r\n",
    "v1 tab": b"PROXY TCP4\t203.0.113.9 192.0.2.1 1 2\r\n",
    "v1 port": b"PROXY TCP4 203.0.113.9 192.0.2.1 65536 2\r\n",
    "v1 zero before a port": b"PROXY TCP4 203.0.113.9 192.0.2.1 01 2\r\n",
    "v1 no port": b"PROXY TCP4 203.0.113.9 192.0.2.1 1\r\n",
    "v1 too much": b"PROXY TCP4 203.0.113.9 192.0.2.1 1 2 3\r\n",
    "v1 line feed alone": b"PROXY TCP4 203.0.113.9 192.0.2.1 1 2\n",
    "v1 nul": b"PROXY TCP4 203.0.113.9\0 192.0.2.1 1 2\r\n",
    "v1 without end": b"PROXY UNKNOWN " + b"f" * 92 + b"\r\n",
    "v1 nothing": b"PROXY \r\n",
    "v2 signature": b"\r\n\r\n\0\r\nQUIX\n" + v2(v4_body())[12:],
    "v2 version": v2(v4_body(), command=0x11),
    "v2 command": v2(v4_body(), command=0x22),
    "v2 family": v2(v4_body(), family=0x41),
    "v2 kind": v2(v4_body(), family=0x13),
    "v2 too short": v2(v4_body()[:11]),
    "v2 six too short": v2(v6_body()[:35], family=0x21),
    "v2 unix too short": v2(b"x" * 215, family=0x31),
    "v2 extra cut off": v2(v4_body(extra=b"\1")),
    "v2 extra longer than all": v2(v4_body(extra=b"\1\0\5abcd")),
    "v2 sum": with_sum(wrong=1),
    "v2 tls cut off": v2(v4_body(extra=tlv(0x20, b"\1\0\0\0"))),
    "v2 sum of three bytes": v2(v4_body(extra=tlv(3, b"\0\0\0"))),
    "v2 too long": v2(v4_body(), length=8177),
    "v2 longest": v2(v4_body(), length=65535),
}


@pytest.fixture
def behind(guarded, site):
    site.add("index.html", "index")
    return guarded(PROXY)


def exchange(server, data, source=None):
    """Returns the status, or None if the connection closed without a response."""
    with server.connect(source=source) as c:
        try:
            return int(c.send(data).read_to_end()[9:12] or 0) or None
        except (ConnectionResetError, BrokenPipeError):
            return None


@pytest.mark.parametrize("kinds, expected", [(GOOD, 200), (OWN, 403), (BAD, None)])
def test_proxy_protocol_headers_are_parsed_or_refused(behind, kinds, expected):
    for name, header in kinds.items():
        assert exchange(behind, header + REQUEST) == expected, name
    assert exchange(behind, GOOD["v1"] + REQUEST) == 200


@pytest.mark.parametrize("name", ["v1", "v1 longest", "v2", "v2 sum among others"])
def test_proxy_protocol_header_may_arrive_in_pieces(behind, name):
    data = GOOD[name] + REQUEST
    for at in range(1, len(GOOD[name]) + 2):
        with behind.connect() as c:
            c.send(data[:at])
            c.send(data[at:])
            assert c.read_to_end().startswith(b"HTTP/1.1 200"), at
    with behind.connect() as c:
        assert c.send_slowly(data).read_to_end().startswith(b"HTTP/1.1 200")


def test_proxy_protocol_applies_to_whole_connection(behind):
    with behind.connect() as c:
        c.send(GOOD["v2"])
        for _ in range(3):
            assert c.get("/").status == 200
        assert c.send(GOOD["v2"] + REQUEST).read().status == 400  # only one PROXY header is accepted


def test_proxy_protocol_missing_header_times_out(guarded, site):
    server = guarded(PROXY, server="Timeout 1")
    for part in (b"", b"PROXY", SIGNATURE, v2(v4_body())[:20]):
        with server.connect() as c:
            c.send(part).expect_end()


def test_proxy_protocol_is_refused_from_other_peers(guarded, site):
    site.add("index.html", "index")
    server = guarded(PROXY)
    for name, header in (GOOD | OWN).items():
        assert exchange(server, header + REQUEST, "127.0.0.2") == 400, name
    assert exchange(server, REQUEST, "127.0.0.2") == 403
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress Forwarded")
    assert exchange(server, GOOD["v1"] + REQUEST) == 400
    assert exchange(server, GOOD["v2"] + REQUEST) == 400


def test_proxy_protocol_denied_client_is_disconnected(guarded, site):
    site.add("index.html", "index")
    server = guarded(f"TrustedProxy 127.0.0.1\nProxyProtocol on\nDeny {CLIENT}")
    assert exchange(server, GOOD["v1"] + REQUEST) is None
    assert exchange(server, GOOD["v2 six"] + REQUEST) == 200
    assert exchange(server, OWN["v2 local"] + REQUEST) == 200


def test_proxy_protocol_and_header_are_combined(guarded, site):
    """The connection belongs to a proxy that names its client in an HTTP header."""
    site.add("index.html", "index")
    server = guarded(f"TrustedProxy 127.0.0.1 10.0.0.0/8\nProxyProtocol on\nRealAddress X-Forwarded-For\n"
                     f"Allow {CLIENT}\nDeny all")
    told = REQUEST.replace(b"Host", f"X-Forwarded-For: {CLIENT}\r\nHost".encode())
    assert exchange(server, v2(v4_body("10.0.0.7")) + told) == 200
    assert exchange(server, v2(v4_body("10.0.0.7")) + REQUEST) == 403
    assert exchange(server, v2(v4_body("192.0.2.7")) + told) is None


def test_proxy_protocol_connections_count_for_the_client(guarded, site):
    site.add("index.html", "index")
    server = guarded("TrustedProxy 127.0.0.1\nProxyProtocol on", server="MaxConnectionsPerAddress 2")
    clients = [server.connect() for _ in range(3)]
    try:
        for c, source in zip(clients, (CLIENT, CLIENT, "203.0.113.10")):
            c.send(v2(v4_body(source)))
            assert c.get("/").status == 200
        assert exchange(server, GOOD["v2"] + REQUEST) is None
    finally:
        for c in clients:
            c.close()


def test_proxy_protocol_pending_connections_count_for_no_address(guarded, site):
    """A load balancer may send its PROXY header late: until then, the connection is charged to no client."""
    site.add("index.html", "index")
    server = guarded("TrustedProxy 127.0.0.1\nProxyProtocol on", server="MaxConnectionsPerAddress 2\nTimeout 1m")
    silent = [server.connect() for _ in range(12)]
    try:
        assert exchange(server, GOOD["v2"] + REQUEST) == 200
        for c in silent[:2]:
            c.send(v2(v4_body(CLIENT)))
            assert c.get("/").status == 200
        assert exchange(server, GOOD["v2"] + REQUEST) is None  # this client has reached its limit of two connections
        assert exchange(server, v2(v4_body("203.0.113.10")) + REQUEST) == 200
        silent[2].expect_end()  # closed long before Timeout
    finally:
        for c in silent:
            c.close()


def test_proxy_protocol_pending_connections_are_limited(guarded, site):
    site.add("index.html", "index")
    server = guarded("TrustedProxy 127.0.0.1\nProxyProtocol on", server="MaxConnections 40\nTimeout 1m")
    silent = [server.connect() for _ in range(10)]  # a quarter of the connections
    try:
        for c in silent:
            c.send(b"PROXY")
        assert exchange(server, b"PROXY") is None
        assert exchange(server, GOOD["v2"] + REQUEST) == 200  # its PROXY header arrives at once, so this connection is not pending
        silent[0].send(GOOD["v1"][len(b"PROXY"):])
        assert silent[0].get("/").status == 200
        with server.connect() as more:
            more.send(b"PROXY")
            more.send(GOOD["v1"][len(b"PROXY"):])
            assert more.get("/").status == 200
    finally:
        for c in silent:
            c.close()


def test_proxy_protocol_limit_per_client_applies_to_untrusted_peers(guarded, site):
    site.add("index.html", "index")
    server = guarded("TrustedProxy 10.0.0.1\nProxyProtocol on", server="MaxConnectionsPerAddress 2")
    clients = [server.connect() for _ in range(2)]
    try:
        for c in clients:
            assert c.get("/").status == 200
        with server.connect() as c:
            assert b" 429 " in c.send(REQUEST).read_to_end()
    finally:
        for c in clients:
            c.close()
    wait_until(lambda: exchange(server, REQUEST) == 200, "a free connection")


def test_proxy_protocol_works_with_curl(behind):
    done = subprocess.run(["curl", "-s", "--max-time", "20", "--haproxy-protocol", "-w", "%{http_code}", behind.url + "/"],
                          capture_output=True, text=True, check=True)
    assert done.stdout.endswith("403")  # curl sends its own address, 127.0.0.1
    done = subprocess.run(["curl", "-s", "--max-time", "20", behind.url + "/"], capture_output=True, text=True, check=False)
    assert done.returncode in (52, 56)  # no response, or a reset


def test_proxy_protocol_header_of_curl_names_its_address(guarded, site):
    site.add("index.html", "index")
    server = guarded("TrustedProxy 127.0.0.0/8\nProxyProtocol on\nDeny not from 127.0.0.9")
    for source, expected in (("127.0.0.9", "index200"), ("127.0.0.8", "")):
        done = subprocess.run(["curl", "-s", "--max-time", "20", "--haproxy-protocol", "--interface", source, "-w",
                               "%{http_code}", server.url + "/"], capture_output=True, text=True, check=False)
        assert done.stdout.replace("000", "") == expected


def test_proxy_protocol_survives_random_headers(behind):
    rng = random.Random(11)
    headers = list((GOOD | OWN | BAD).values())
    for _ in range(400):
        data = bytearray(rng.choice(headers))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with behind.connect() as c:
            try:
                c.send(bytes(data) + REQUEST).shut()
                assert c.read_to_end()[:12] in (b"", b"HTTP/1.1 200", b"HTTP/1.1 403", b"HTTP/1.1 400")
            except OSError as error:
                assert error.errno in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN), error
    assert exchange(behind, GOOD["v1"] + REQUEST) == 200
