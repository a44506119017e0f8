# SPDX-License-Identifier: Apache-2.0
"""The http package: URLs of hosts in AllowHosts. Names must resolve to allowed addresses."""
import contextlib
import errno
import signal
import socket
import ssl
import threading
import time

import pytest

import services
from backend import Backend, response
from certificates import make_authority
from http_call_service import SOURCE, Caller, start
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("http"), reason="this build has no Duda")

LOOPBACK = "    AllowPrivate 127.0.0.0/8\n"
NOT_ALLOWED = "it belongs neither to Server nor to AllowHosts of the section"
PRIVATE = "its address is private or reserved, and not in AllowPrivate"


class TlsBackend(Backend):
    """Counts the requests of clients that have verified its certificate."""

    def __init__(self, pair, reply):
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(pair.certificate, pair.key)
        self.names = []
        self.context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        super().__init__(reply, script=self.shake_hands)

    def shake_hands(self, connection):
        with contextlib.suppress(ssl.SSLError), self.context.wrap_socket(connection, server_side=True) as encrypted:
            self._answer_all(encrypted, self.connections)


def url(backend, path="/", host="127.0.0.1", scheme="http"):
    return f"{scheme}://{host}:{backend.at[1]}{path}"


def test_url_is_requested_if_its_host_and_address_are_allowed(monkey, site):
    with Backend() as backend:
        port = backend.at[1]
        caller = start(monkey, site, f"    AllowHosts 127.0.0.1:{port} localhost:{port}\n{LOOPBACK}")
        for host in ("127.0.0.1", "localhost", "LOCALHOST."):
            r = caller.call(url=url(backend, "/a?b#c", host))
            assert (r.errno, r.status) == (0, 200), r.error
            assert r.url == f"http://{host.lower().strip('.')}:{port}/a?b"
            assert backend.requests[-1].target == "/a?b" and backend.requests[-1].get("Host") == f"{host.lower().strip('.')}:{port}"
        assert len({request.connection for request in backend.requests}) == 2, "one connection for each name"


def test_url_of_other_hosts_and_ports_is_rejected(monkey, site):
    with Backend() as backend, Backend() as other:
        caller = start(monkey, site, f"    AllowHosts localhost:{backend.at[1]} *.example.test\n{LOOPBACK}")
        for wrong in (url(other, host="localhost"), url(backend), url(backend, scheme="https", host="127.0.0.1"), "http://localhost/",
                      f"http://x.localhost:{backend.at[1]}/", "http://example.test/", "http://[::1]/"):
            r = caller.call(url=wrong)
            assert r.errno == errno.EPERM and NOT_ALLOWED in r.error, r
        for invalid in ("localhost", "/a", "ftp://localhost/", f"http://u:p@localhost:{backend.at[1]}/", "http://local host/"):
            assert caller.call(url=invalid).errno == errno.EINVAL
        r = caller.call("/a")
        assert r.errno == errno.EINVAL and "the section has no Server" in r.error
        assert caller.call("/a", url=url(backend, host="localhost")).errno == errno.EINVAL, "both a target and a URL"
        assert not backend.requests and not other.connections


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254", "10.0.0.1", "[fe80::1]",
                                  "[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "[ff02::1]", "[::]", "100.64.0.1"])
def test_private_addresses_are_rejected_by_default(monkey, site, host):
    with Backend() as backend:
        port = backend.at[1]
        caller = start(monkey, site, f"    AllowHosts *:{port}\n")
        r = caller.call(url=url(backend, host=host), timeout=5000)
        assert r.errno == errno.EPERM and PRIVATE in r.error, r
        assert not backend.connections


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "017700000001"])
def test_numeric_hosts_are_not_resolved(monkey, site, host):
    with Backend() as backend:
        caller = start(monkey, site, f"    AllowHosts *:{backend.at[1]}\n    AllowPrivate all\n")
        assert caller.call(url=url(backend, host=host)).errno == errno.EINVAL
        assert not backend.connections


def test_other_private_networks_stay_closed(monkey, site):
    with Backend() as backend:
        caller = start(monkey, site, f"    AllowHosts *:{backend.at[1]}\n    AllowPrivate 127.0.0.2\n")
        assert caller.call(url=url(backend)).errno == errno.EPERM
        assert caller.call(url=url(backend, host="127.0.0.2")).errno in (0, errno.ECONNREFUSED)


def test_unknown_names_are_errors_at_once(monkey, site):
    caller = start(monkey, site, "    AllowHosts *\n")
    for _ in range(2):
        began = time.monotonic()
        r = caller.call(url="http://does-not-exist.invalid/", timeout=20000)
        assert r.errno == errno.EHOSTUNREACH and "does not resolve" in r.error, r
        assert time.monotonic() - began < 15


def test_rejected_port_is_named(monkey, site):
    with Backend() as backend:
        caller = start(monkey, site, f"    AllowHosts *\n{LOOPBACK}")
        r = caller.call(url=url(backend, host="localhost"))
        assert r.errno == errno.EPERM and f"permits the host only with the port 80: an entry with the port, such as `localhost:{backend.at[1]}`" in r.error, r
        r = caller.call(url=url(backend, scheme="https", host="localhost"))
        assert r.errno == errno.EPERM and "only with the port 443" in r.error, r


# ---- Redirects ----

def test_redirects_are_checked_at_each_hop(monkey, site):
    with Backend() as secret, Backend(lambda request: routes[request.target]) as backend:
        port = backend.at[1]
        routes = {"/in": response("", "302 Found", [("Location", url(backend, "/out", "localhost"))]), "/out": response("out"),
                  "/port": response("", "302 Found", [("Location", url(secret))]),
                  "/private": response("", "302 Found", [("Location", url(backend, "/out", "127.0.0.3"))]),
                  "/other": response("", "302 Found", [("Location", "http://other.test/")])}
        caller = start(monkey, site, f"    AllowHosts *:{port}\n    AllowPrivate 127.0.0.1 ::1\n")
        r = caller.call(url=url(backend, "/in"), redirects=3, headers=1)
        assert (r.body, r.url) == (b"out", url(backend, "/out", "localhost"))
        first, second = backend.requests
        assert first.get("Authorization") and first.get("Cookie")
        assert not second.get("Authorization") and not second.get("Cookie") and second.get("X-Kept") == "kept"
        assert second.get("Host") == f"localhost:{port}"
        for path, reason in ("/port", NOT_ALLOWED), ("/other", NOT_ALLOWED), ("/private", PRIVATE):
            r = caller.call(url=url(backend, path), redirects=3)
            assert r.errno == errno.EPERM and reason in r.error, r
        assert not secret.connections


def test_redirects_lead_from_the_server_of_the_section_to_allowed_hosts_and_back(monkey, site):
    with Backend(lambda request: response("", "302 Found", [("Location", url(other, "/x"))]) if request.target == "/" else response("back")) as backend, \
         Backend(lambda request: response("", "307 Temporary Redirect", [("Location", url(backend, "/back"))])) as other:
        caller = start(monkey, site, f"    Server {backend.address}\n    AllowHosts 127.0.0.1:{other.at[1]}\n{LOOPBACK}")
        r = caller.call("/", redirects=2)
        assert (r.errno, r.body, r.url) == (0, b"back", url(backend, "/back")), r
        assert [request.target for request in backend.requests] == ["/", "/back"]


# ---- TLS ----

def test_tls_verifies_the_certificate_for_the_host(monkey, site, tmp_path):
    authority, other = make_authority(tmp_path / "a"), make_authority(tmp_path / "b", "another authority")
    good, wrong = authority.issue(["localhost"]), authority.issue(["other.test"])
    with TlsBackend(good, lambda request: response("secret")) as backend, TlsBackend(wrong, lambda request: response("wrong")) as impostor, \
         TlsBackend(other.issue(["localhost"]), lambda request: response("wrong")) as untrusted:
        ports = [each.at[1] for each in (backend, impostor, untrusted)]
        keys = "".join(f"    AllowHosts localhost:{port}\n" for port in ports) + f"    AllowPrivate 127.0.0.1 ::1\n    TLSAuthority {authority.file}\n"
        caller = start(monkey, site, keys)
        for _ in range(2):
            r = caller.call(url=url(backend, host="localhost", scheme="https"))
            assert (r.errno, r.body, r.url) == (0, b"secret", f"https://localhost:{ports[0]}/"), r
        assert backend.names == ["localhost"], "SNI, and one connection"
        caller.server.allow("TLS")
        for each in impostor, untrusted:
            r = caller.call(url=url(each, host="localhost", scheme="https"))
            assert r.errno == errno.EPROTO and "TLS" in r.error
            assert not each.requests
        caller.server.stop()
        caller = start(monkey, site, keys.replace(f"    TLSAuthority {authority.file}\n", ""))
        caller.server.allow("TLS")
        assert caller.call(url=url(backend, host="localhost", scheme="https")).errno == errno.EPROTO, "the system does not trust it"


def test_redirects_from_https_to_http_need_permission(monkey, site, tmp_path):
    authority = make_authority(tmp_path)
    with Backend(lambda request: response("plain")) as plain, \
         TlsBackend(authority.issue(["localhost"]), lambda request: response("", "302 Found", [("Location", url(plain))])) as secure:
        caller = start(monkey, site, f"    AllowHosts *:{plain.at[1]} *:{secure.at[1]}\n    AllowPrivate 127.0.0.1 ::1\n    TLSAuthority {authority.file}\n")
        r = caller.call(url=url(secure, host="localhost", scheme="https"), redirects=1)
        assert r.errno == errno.EPERM and "from https to http" in r.error, r
        assert not plain.connections
        assert caller.call(url=url(secure, host="localhost", scheme="https"), redirects=1, downgrade=1).body == b"plain"


# ---- The pool ----

def test_more_hosts_than_the_pool_holds(monkey, site):
    """Each worker keeps 128 hosts: unused ones make room for others."""
    with Backend(lambda request: response(request.get("Host")), at=("0.0.0.0", 0)) as backend:
        port = backend.at[1]
        caller = start(monkey, site, f"    AllowHosts *:{port}\n{LOOPBACK}")
        for i in range(1, 151):
            assert caller.call(url=f"http://127.0.1.{i}:{port}/").body.decode() == f"127.0.1.{i}:{port}"
        before = backend.connections
        caller.call(url=f"http://127.0.1.150:{port}/")
        assert backend.connections == before, "a recent host keeps its connection"
        caller.call(url=f"http://127.0.1.1:{port}/")
        assert backend.connections == before + 1, "an old one does not"


def test_connection_is_replaced_after_errors(monkey, site):
    answers = [response("a"), b"nonsense\r\n\r\n", response("b"), None, response("c")]
    with Backend(lambda request: answers[min(len(backend.requests), len(answers)) - 1]) as backend:
        caller = start(monkey, site, f"    AllowHosts *:{backend.at[1]}\n{LOOPBACK}    MaxTries 1\n")
        results = [caller.call(url=url(backend)) for _ in range(4)]
        assert [r.body for r in results if not r.errno][:2] == [b"a", b"b"]
        assert results[1].errno == errno.EPROTO
        assert caller.call(url=url(backend)).errno == 0


def test_refused_connections_are_reported_each_time(monkey, site):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        caller = start(monkey, site, f"    AllowHosts *:{port}\n{LOOPBACK}")
        for _ in range(5):
            r = caller.call(url=f"http://127.0.0.1:{port}/")
            assert r.errno == errno.ECONNREFUSED and "127.0.0.1" in r.error, r


def test_many_calls_at_once_from_several_workers(monkey, site):
    with Backend(lambda request: response(request.target)) as backend:
        caller = start(monkey, site, f"    AllowHosts localhost:{backend.at[1]}\n    AllowPrivate 127.0.0.1 ::1\n", workers=3)
        failures = []

        def run(i):
            for k in range(10):
                r = caller.call(url=url(backend, f"/{i}-{k}", "localhost"))
                if r.body != f"/{i}-{k}".encode():
                    failures.append(r)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures


# ---- Neighbors ----

def test_deadline_of_the_handler_ends_the_call(monkey, site):
    released = threading.Event()
    with Backend(lambda request: response("late") if released.wait(20) else None) as backend:
        caller = start(monkey, site, f"    AllowHosts 127.0.0.1:{backend.at[1]}\n{LOOPBACK}")
        reply = caller.server.get(f"/call?url={url(backend)}&deadline=200&timeout=10000&redirects=3")
        assert reply.status == 504
        released.set()
        caller.server.allow("the handler ends with -110")
        assert caller.call(url=url(backend)).body == b"late"


@pytest.mark.processes("an embedded server has no isolated services")
def test_isolated_service_resolves_names_and_connects(monkey, site, tmp_path):
    service = services.build(site.path.parent, "calls", SOURCE, packages=["http"])
    with Backend() as backend:
        (tmp_path / "calls.conf").write_text("[PLUGINS]\n    Load duda-http\n[HTTP_CLIENT]\n"
                                             f"    AllowHosts *:{backend.at[1]}\n    AllowPrivate 127.0.0.1 ::1\n")
        server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n    Include {tmp_path}/calls.conf\n",
                        sections="[ROUTES]\n    /* isolate calls\n")
        wait_until(lambda: server.get("/call").status == 200, "the isolated service responds")
        r = Caller(server).call(url=url(backend, "/isolated", "localhost"), redirects=1)
        assert (r.errno, r.status) == (0, 200), r
        assert Caller(server).call(url=url(backend, host="127.0.0.2")).errno == errno.EPERM


@pytest.mark.processes("an embedded server cannot be reloaded by a signal")
def test_reload_keeps_calls_and_applies_the_new_hosts(monkey, site):
    reached, released = threading.Event(), threading.Event()

    def reply(request):
        if request.target == "/slow":
            reached.set()
            released.wait(20)
        return response("done")

    with Backend(reply) as backend:
        caller = start(monkey, site, f"    AllowHosts 127.0.0.1:{backend.at[1]}\n{LOOPBACK}")
        waiting = caller.server.connect()
        waiting.send(f"GET /call?url={url(backend, '/slow')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert reached.wait(20)
        config = caller.server.config
        config.write_text(config.read_text().replace("AllowHosts 127.0.0.1", "AllowHosts other.test"))
        caller.server.tell(signal.SIGHUP)
        wait_until(lambda: caller.call(url=url(backend)).errno == errno.EPERM, "the new configuration is in use")
        released.set()
        assert waiting.read().body.endswith(b"done")
        waiting.close()
