# SPDX-License-Identifier: Apache-2.0
"""Certificates on demand: a handshake with an unknown name waits until the acme plugin has asked the allow endpoint, and obtained a
certificate from Pebble.
"""
import contextlib
import datetime
import http.server
import json
import os
import pwd
import re
import resource
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from acme import MARKS, NEW, helpers, shown, slow, state, wait_for, world  # noqa: F401 (fixtures)
from certificates import make_authority
from monkey import PROGRAM, SECONDS
from proc import wait_until
from python_server import PythonServer

pytestmark = MARKS
ON_DEMAND = "[ACME_HOST]\n    OnDemand on\n"


class Endpoint:
    """The allow endpoint. `allowed` decides by name: True, False, a status, or a function that writes the response itself."""

    def __init__(self):
        self.asked, self.allowed = [], lambda name: True
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                name = urllib.parse.parse_qs(url.query)["domain"][0]
                endpoint.asked.append((self.path, name))
                answer = endpoint.allowed(name)
                if callable(answer):
                    answer(self)
                    self.close_connection = True
                    return
                self.send_response(answer if answer is not True and answer else 200 if answer else 404)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *args):
                pass

        self.server = PythonServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/allow"

    def names(self):
        return [name for _, name in self.asked]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def endpoint():
    e = Endpoint()
    yield e
    e.stop()


class Demand:
    """A server whose default host gets certificates on demand."""

    def __init__(self, world, endpoint):
        self.world, self.endpoint = world, endpoint

    def start(self, keys="", asks=True, **how):
        how.setdefault("names", "")
        how.setdefault("sections", ON_DEMAND)
        self.server = self.world.start(f"AllowEndpoint {self.endpoint.url}\n{keys}" if asks else keys, tls=True, **how)
        return self.server

    def connect(self, name, trusts=True, timeout=SECONDS, source=None, versions=None, session=None, context=None):
        """Returns a TLS connection, whose certificate is verified if `trusts`."""
        context = context or self.context(trusts)
        if versions:
            context.minimum_version = context.maximum_version = versions
        plain = socket.create_connection((self.world.loopback.address, self.world.tls), timeout,
                                         source_address=(source, 0) if source else None)
        try:
            return context.wrap_socket(plain, server_hostname=name, session=session)
        except BaseException:
            plain.close()
            raise

    def context(self, trusts=True):
        if trusts:
            return ssl.create_default_context(cadata=self.world.pebble.root())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def get(self, name, **how):
        with self.connect(name, **how) as c:
            c.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: c.recv(65536), b""))

    def serves(self, name):
        """Is the page served with a certificate of the name? Old workers may accept connections for a moment after a reload."""
        try:
            return self.get(name).endswith(b"home")
        except ssl.SSLCertVerificationError:
            return False

    def serial(self, name, **how):
        with self.connect(name, trusts=False, **how) as c:
            return x509.load_der_x509_certificate(c.getpeercert(True)).serial_number

    def refused(self, name, **how):
        """The alert with which the server refuses the name."""
        with pytest.raises((ssl.SSLError, ConnectionError, TimeoutError)) as e:
            self.connect(name, trusts=False, **how).close()
        return getattr(e.value, "reason", None) or str(e.value)


@pytest.fixture
def demand(world, endpoint):
    return Demand(world, endpoint)


# ---- Issuing ----


@pytest.mark.parametrize("challenge", ["http-01", "tls-alpn-01"])
def test_first_handshake_obtains_the_certificate(demand, endpoint, state, challenge):
    server = demand.start(f"Challenge {challenge}", workers=2)
    pids = server.workers
    assert demand.get("shop.customer.test").endswith(b"home")
    assert endpoint.asked == [("/allow?domain=shop.customer.test", "shop.customer.test")]
    serials = {demand.serial("shop.customer.test") for _ in range(20)}  # both workers have it
    assert len(serials) == 1
    assert len(endpoint.asked) == 1 and server.workers == pids  # no reload
    path = state / "on-demand/certificates/shop.customer.test.pem"
    assert path.stat().st_mode & 0o777 == 0o600
    assert not list((state / "http-01").iterdir()) and not list((state / "tls-alpn-01").iterdir())


def test_refused_names_are_asked_once(demand, endpoint):
    endpoint.allowed = lambda name: name == "good.customer.test"
    server = demand.start(workers=2)
    for _ in range(10):
        assert "UNRECOGNIZED_NAME" in demand.refused("bad.customer.test")
    assert endpoint.names() == ["bad.customer.test"]
    assert demand.get("good.customer.test").endswith(b"home")
    assert endpoint.names() == ["bad.customer.test", "good.customer.test"]
    assert "[error]" not in server.log


def test_certificates_are_listed(demand, endpoint, state):
    server = demand.start(plugins=["metrics"], top="\n[METRICS]\n    Metrics /metrics\n")
    demand.get("shop.customer.test")
    wait_for(lambda: (state / "on-demand/renewal/shop.customer.test.json").exists())
    done = subprocess.run([PROGRAM, "-c", server.config, "certificates", "--json"], capture_output=True, text=True, check=False)
    row, = json.loads(done.stdout)["certificates"]
    assert row["names"] == ["shop.customer.test"], row
    wait_for(lambda: 'monkey_tls_certificate_file_usable{host="shop.customer.test"' in server.get("/metrics").text)


# ---- The allow endpoint ----


def hang(handler):
    time.sleep(20)


def reset(handler):
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def send(data):
    def write(handler):
        try:
            handler.wfile.write(data)
        except OSError:
            pass
    return write


def endless(handler):
    try:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            handler.wfile.write(b"x" * 65536)
    except OSError:
        pass


BAD_ANSWERS = {
    "500": 500, "503": 503, "reset": reset, "closed": send(b""), "garbage": send(b"\0\1\2\3" * 1000), "half": send(b"HTTP/1.1 2"),
    "endless": endless, "two hundreds": send(b"HTTP/1.1 2000 OK\r\n\r\n"), "hang": hang, "100 only": send(b"HTTP/1.1 100 Continue\r\n\r\n" * 50),
}
REFUSALS = {
    "403": 403, "404": 404, "201": 201, "204": 204, "redirect": send(b"HTTP/1.1 302 Found\r\nLocation: /allow?ok\r\nContent-Length: 0\r\n\r\n"),
}


def test_failing_endpoints_allow_nothing(demand, endpoint, state):
    """The server issues a certificate only if the endpoint responds with 200, and keeps serving other clients."""
    answers = BAD_ANSWERS | REFUSALS
    names = {f"n{i}.customer.test": answer for i, answer in enumerate(answers.values())}
    endpoint.allowed = lambda name: names.get(name, True)
    server = demand.start()
    results, threads = {}, []
    for i, name in enumerate(names):
        t = threading.Thread(target=lambda name=name, i=i: results.update({name: demand.refused(name, source=f"127.0.{i}.9")}))
        t.start()
        threads.append(t)
    assert demand.get("good.customer.test", source="127.9.9.9").endswith(b"home")
    assert server.get("/").text == "home"
    for t in threads:
        t.join()
    assert set(results) == set(names) and all("UNRECOGNIZED_NAME" in r for r in results.values()), results
    assert [path.name for path in (state / "on-demand/certificates").iterdir()] == ["good.customer.test.pem"]
    assert not endpoint.names().count("/allow?ok")
    assert 1 <= server.log.count("AllowEndpoint") <= 4  # not a line for each failure


def test_server_stops_while_the_endpoint_is_asked(demand, endpoint):
    endpoint.allowed = lambda name: hang
    server = demand.start()

    def connect():
        with contextlib.suppress(OSError):
            demand.get("a.customer.test")

    client = threading.Thread(target=connect)
    client.start()
    wait_until(endpoint.names, "the question")
    server.stop()
    client.join()


def test_dead_endpoint_allows_nothing(demand, endpoint):
    server = demand.start()
    endpoint.stop()
    assert "UNRECOGNIZED_NAME" in demand.refused("a.customer.test")
    server.err.wait_for(r"\[error\] \d+: acme: AllowEndpoint http://127.0.0.1:\d+/allow did not say whether a.customer.test is allowed: .* \(1 times since the last message\)")
    endpoint.server = Endpoint().server  # for the teardown


# ---- Bad names ----

BAD_NAMES = ["localhost", "a", "*.customer.test", "127.0.0.1", "1.2.3.4", "a..test", ".test", "a.test.", "-a.test", "a-.test", "a_b.test", "a b.test", "a/b.test",
             "../../etc/passwd", "a.test/..", "a.1", "a.test?x=1", "a.test&domain=good.test", "a%2e.test", "a\n.test", "a\r\nX: y.test", "\u00e9.test",
             "a." + "b" * 64 + ".test", ".".join(["a" * 60] * 5) + ".test", "x.local", "x.localhost", "x.internal", "1.0.0.127.in-addr.arpa", "x.onion", "[::1]", "::1",
             "a.test:443", "a.test\x7f", "'a.test", "$(id).test"]


def client_hello(name, alpn=None):
    """A ClientHello with any bytes as server name."""
    host = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    entry = b"\0" + len(host).to_bytes(2, "big") + host
    sni = b"\0\0" + (len(entry) + 2).to_bytes(2, "big") + len(entry).to_bytes(2, "big") + entry
    groups = b"\0\x0a\0\4\0\2\0\x17"
    algorithms = b"\0\x0d\0\x06\0\x04\x04\x03\x08\x04"
    formats = b"\0\x0b\0\2\1\0"
    extensions = sni + groups + algorithms + formats
    body = b"\3\3" + b"r" * 32 + b"\0" + b"\0\2\xc0\x2b" + b"\1\0" + len(extensions).to_bytes(2, "big") + extensions
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return b"\x16\3\1" + len(message).to_bytes(2, "big") + message


def raw_alert(demand, name):
    """The bytes with which the server answers the ClientHello: (content type, alert description) or other bytes."""
    with socket.create_connection((demand.world.loopback.address, demand.world.tls), SECONDS) as c:
        c.sendall(client_hello(name))
        data = c.recv(65536)
    return (data[0], data[6]) if len(data) == 7 else data


def test_bad_names_never_reach_the_endpoint(demand, endpoint, state):
    demand.start()
    for name in BAD_NAMES:
        answer = raw_alert(demand, name)
        assert answer in ((0x15, 112), (0x15, 50)), (name, answer)  # unrecognized_name, decode_error
    assert endpoint.asked == []
    assert demand.get("GOOD.customer.test").endswith(b"home")
    assert endpoint.names() == ["good.customer.test"]
    assert raw_alert(demand, "Good.Customer.TEST")[0] == 0x16


# ---- Many names ----


def test_one_client_cannot_starve_others(demand, endpoint):
    """2,000 random names from one network: few questions, and another client gets its certificate."""
    endpoint.allowed = lambda name: name.startswith("good")
    demand.start(workers=2)
    begin = time.monotonic()
    failures = []

    def flood(k):
        for i in range(250):
            with socket.create_connection((demand.world.loopback.address, demand.world.tls), SECONDS, source_address=(f"127.0.0.{k + 1}", 0)) as c:
                c.sendall(client_hello(f"x{i}-{k}.flood.test"))
                data = c.recv(100)
                if data[:1] != b"\x15":
                    failures.append(data)

    threads = [threading.Thread(target=flood, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    assert demand.get("good1.customer.test", source="127.1.1.1").endswith(b"home")
    for t in threads:
        t.join()
    seconds = time.monotonic() - begin
    assert not failures
    asked = [name for name in endpoint.names() if name.endswith(".flood.test")]
    assert 1 <= len(asked) <= 10 + 2 * seconds + 1, (len(asked), seconds)
    assert demand.get("good2.customer.test", source="127.1.1.1").endswith(b"home")


def test_max_certificates(demand, endpoint, state):
    server = demand.start("MaxCertificates 2")
    for i in range(2):
        demand.get(f"n{i}.customer.test")
    assert "UNRECOGNIZED_NAME" in demand.refused("n2.customer.test")
    server.err.wait_for("n2.customer.test gets no certificate: there are 2 certificates on demand, as many as MaxCertificates allows")
    assert demand.get("n1.customer.test").endswith(b"home")
    assert len(list((state / "on-demand/certificates").iterdir())) == 2


def test_on_demand_rate(demand, endpoint):
    """A client network gets a tenth of the rate, but at least one."""
    server = demand.start("OnDemandRate 2/d")
    demand.get("a.customer.test", source="127.1.1.1")
    assert "UNRECOGNIZED_NAME" in demand.refused("b.customer.test", source="127.1.1.2")
    server.err.wait_for("b.customer.test gets no certificate now: OnDemandRate is reached")
    time.sleep(2.5)  # the worker remembers the refusal for 2 s
    demand.get("b.customer.test", source="127.2.1.2")
    assert "UNRECOGNIZED_NAME" in demand.refused("c.customer.test", source="127.3.1.2")


# ---- Handshakes that wait ----


def test_waiting_handshakes_share_one_certificate(demand, endpoint, world):
    demand.start(workers=2)
    serials, threads = [], []
    for i in range(12):
        t = threading.Thread(target=lambda i=i: serials.append(demand.serial("shop.customer.test", source=f"127.0.{i}.9")))
        t.start()
        threads.append(t)
    for t in threads:
        t.join()
    assert len(serials) == 12 and len(set(serials)) == 1
    assert endpoint.names() == ["shop.customer.test"]


def test_client_that_leaves_while_waiting(demand, endpoint, state):
    release = threading.Event()
    endpoint.allowed = lambda name: release.wait(SECONDS)
    server = demand.start(plugins=["metrics"], top="\n[METRICS]\n    Status /status\n")

    def open_connections():
        return sum(worker["connections"] for worker in json.loads(server.get("/status").text)["workers"])

    left = [socket.create_connection((world_address(demand)), SECONDS) for _ in range(5)]
    for c in left:
        c.sendall(client_hello("shop.customer.test"))
    wait_for(lambda: endpoint.asked)
    assert open_connections() >= 5
    for c in left:
        c.close()
    wait_for(lambda: open_connections() <= 1)
    release.set()
    wait_for(lambda: (state / "on-demand/certificates/shop.customer.test.pem").exists())  # issued nevertheless
    assert demand.get("shop.customer.test").endswith(b"home") and len(endpoint.asked) == 1


def world_address(demand):
    return demand.world.loopback.address, demand.world.tls


def test_handshake_waits_for_30_seconds_at_most(demand, endpoint):
    endpoint.allowed = lambda name: time.sleep(4) or True
    demand.world.start_pebble()
    demand.world.pebble.stop()  # the authority does not answer
    with socket.socket() as silent:
        silent.bind((demand.world.loopback.address, demand.world.pebble.port))
        silent.listen(100)
        server = demand.start()
        begin = time.monotonic()
        assert "UNRECOGNIZED_NAME" in demand.refused("slow.customer.test", timeout=60)
        assert 25 < time.monotonic() - begin < 45
    assert server.get("/").text == "home"


# ---- Processes ----


@pytest.fixture
def slow_demand(demand, slow):
    return demand


def waiting_client(demand, name, source=None):
    """A client in a thread, which returns the certificate's serial number or the error."""
    results = []

    def run():
        try:
            results.append(demand.serial(name, timeout=90, source=source))
        except OSError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


@pytest.mark.parametrize("which", [0, 1])
def test_worker_killed_while_handshakes_wait(slow_demand, endpoint, which):
    """One worker obtains the certificates. If it dies, its replacement continues, and handshakes in other workers succeed."""
    server = slow_demand.start(workers=2)
    clients = [waiting_client(slow_demand, "shop.customer.test", f"127.0.{i}.9") for i in range(8)]
    wait_for(lambda: helpers(server))
    server.allow("worker")
    os.kill(server.workers[which], signal.SIGKILL)
    for thread, _ in clients:
        thread.join()
    served = [r for _, (r,) in clients if isinstance(r, int)]
    lost = [r for _, (r,) in clients if not isinstance(r, int)]
    assert served and len(set(served)) == 1 and all(isinstance(e, (ConnectionError, ssl.SSLEOFError)) for e in lost), lost
    assert slow_demand.serial("shop.customer.test") == served[0]


@pytest.mark.parametrize("how", ["reload", "upgrade"])
def test_reload_while_a_handshake_waits(slow_demand, endpoint, how, watch, tmp_path):
    server = slow_demand.start(workers=2, server=f'PidFile "{tmp_path / "pid"}"\n')
    clients = [waiting_client(slow_demand, "shop.customer.test", f"127.0.{i}.9") for i in range(4)]
    wait_for(lambda: helpers(server))
    if how == "reload":
        server.tell(signal.SIGHUP)
        server.err.wait_for("reloaded|new configuration|configuration was loaded")
    else:
        server.tell(signal.SIGUSR2)
        watch(int(server.err.wait_for(r"the new program is process (\d+)")[1]))
    for thread, results in clients:
        thread.join()
    serials = {r for _, (r,) in clients}
    assert len(serials) == 1 and isinstance(next(iter(serials)), int), serials
    wait_for(lambda: slow_demand.serial("shop.customer.test") in serials)
    assert endpoint.names() == ["shop.customer.test"]


def test_restart_and_reload_keep_certificates(demand, endpoint):
    server = demand.start(workers=2)
    serial = demand.serial("shop.customer.test")
    server.tell(signal.SIGHUP)
    time.sleep(1)
    assert demand.serial("shop.customer.test") == serial
    server = demand.start(workers=2)
    assert demand.serial("shop.customer.test") == serial
    # Without OnDemand, the name is unknown.
    demand.start(sections="", names="www.customer.test")
    assert "UNRECOGNIZED_NAME" in demand.refused("shop.customer.test")
    assert endpoint.names() == ["shop.customer.test"]


def test_workers_of_another_user_in_the_sandbox(demand, state, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    demand.start(server="User nobody\nSandbox on\n", workers=2)
    assert demand.get("shop.customer.test").endswith(b"home")
    serials = {demand.serial("shop.customer.test") for _ in range(10)}
    assert len(serials) == 1
    assert {path.stat().st_uid for path in (state / "on-demand").rglob("*")} == {pwd.getpwnam("nobody").pw_uid}


# ---- Renewal ----


def pem_of(state, name):
    return state / f"on-demand/certificates/{name}.pem"


def age(state, name, days):
    """Makes the certificate file look old, so that the next look finds it due."""
    then = time.time() - days * 86400
    os.utime(pem_of(state, name), (then, then))


def serial_in(state, name):
    return x509.load_pem_x509_certificates(pem_of(state, name).read_bytes())[0].serial_number


# If the CA suggests a time (ARI), the renewal comes at a random instant of a certificate's life, before its last tenth.
LIFE = 45


@pytest.mark.timeout(3 * LIFE)
def test_renewal_asks_again(demand, endpoint, state):
    """A certificate with a short life is renewed without a handshake, as long as the endpoint allows it."""
    demand.world.start_pebble(validity=LIFE)
    server = demand.start("RenewAfter 1", workers=2)
    serial = demand.serial("shop.customer.test")
    age(state, "shop.customer.test", 1)
    server.err.wait_for(NEW.format("shop.customer.test"), count=2, seconds=LIFE)
    assert endpoint.names()[:2] == ["shop.customer.test"] * 2
    age(state, "shop.customer.test", 0)
    wait_for(lambda: demand.serial("shop.customer.test") != serial, 45)  # workers notice it within 30 s, without a reload


@pytest.mark.timeout(2 * LIFE)
def test_name_that_is_no_longer_allowed_is_not_renewed(demand, endpoint, state):
    demand.world.start_pebble(validity=LIFE)
    server = demand.start("RenewAfter 1")
    serial = demand.serial("shop.customer.test")
    endpoint.allowed = lambda name: False
    age(state, "shop.customer.test", 1)
    server.err.wait_for(r"\[info\] \d+: acme: shop.customer.test is not allowed: status 404", seconds=LIFE)
    assert serial_in(state, "shop.customer.test") == serial == demand.serial("shop.customer.test")  # valid until it expires


def write_certificate(state, name, expired_days):
    """A certificate that was valid for 30 days, and expired so many days ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.timezone.utc)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    end = now - datetime.timedelta(days=expired_days)
    certificate = (x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key()).serial_number(7)
                   .not_valid_before(end - datetime.timedelta(days=30)).not_valid_after(end)
                   .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False).sign(key, hashes.SHA256()))
    folder = state / "on-demand/certificates"
    folder.mkdir(parents=True, exist_ok=True)
    for each in (state.path, state / "on-demand", folder):
        each.chmod(0o700)
    pem_of(state, name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    pem_of(state, name).chmod(0o600)


def test_expired_certificates_are_removed_after_a_week(demand, endpoint, state):
    endpoint.allowed = lambda name: False
    write_certificate(state, "gone.customer.test", 8)
    write_certificate(state, "late.customer.test", 2)
    server = demand.start()
    server.err.wait_for("acme: gone.customer.test: the expired certificate was removed")
    server.err.wait_for("acme: late.customer.test is not allowed")
    assert [path.name for path in (state / "on-demand/certificates").iterdir()] == ["late.customer.test.pem"]
    assert "UNRECOGNIZED_NAME" in demand.refused("gone.customer.test")
    assert demand.serial("late.customer.test") == 7  # only clients with a wrong clock accept it
    endpoint.allowed = lambda name: True


def test_expired_certificate_is_replaced_in_the_handshake(demand, endpoint, state):
    write_certificate(state, "late.customer.test", 2)
    demand.world.start_pebble()
    demand.start()
    assert demand.get("late.customer.test").endswith(b"home")


def test_certificate_of_the_future_is_renewed_once(demand, state):
    """A clock was wrong when the certificate was stored: it is not valid yet."""
    write_certificate(state, "early.customer.test", -90)
    demand.world.start_pebble()
    server = demand.start(workers=2)
    demand.serial("early.customer.test")
    server.err.wait_for(NEW.format("early.customer.test"))
    assert serial_in(state, "early.customer.test") != 7
    server.stop()
    assert demand.start(workers=2) and demand.get("early.customer.test").endswith(b"home")


def test_clock_that_is_ahead_does_not_use_up_the_authority(demand, endpoint):
    """Certificates expire as soon as they are issued, as with a clock that is ahead of that of the authority."""
    demand.world.start_pebble(validity=1)
    server = demand.start(workers=2)
    for _ in range(6):
        attempt(demand, "shop.customer.test")
        time.sleep(0.5)  # certificates have times in seconds
    assert server.err.text.count("acme: shop.customer.test: ") <= 3 and len(endpoint.names()) <= 2


def test_damaged_certificate_is_replaced_in_the_handshake(demand, endpoint, state):
    demand.start().stop()
    for i, content in enumerate((b"", b"\0" * 5000, b"-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n")):
        pem_of(state, f"n{i}.customer.test").write_bytes(content)
    (pem_of(state, "link.customer.test")).symlink_to("/etc/passwd")
    server = demand.start()
    for name in ("n0.customer.test", "n1.customer.test", "n2.customer.test", "link.customer.test"):
        assert demand.get(name).endswith(b"home")
    assert server.get("/").text == "home"
    assert not pem_of(state, "link.customer.test").is_symlink()


# ---- Sessions and hosts ----


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed_for_their_name_only(demand, endpoint, version):
    demand.start()
    context = demand.context()

    def visit(name, session=None):
        with demand.connect(name, context=context, versions=version, session=session) as c:
            c.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            body = b"".join(iter(lambda: c.recv(65536), b""))
            assert body.endswith(b"home")
            return c.session, c.session_reused

    first, _ = visit("a.customer.test")
    visit("b.customer.test")
    assert visit("a.customer.test", first)[1]
    assert not visit("b.customer.test", first)[1]


def test_http2_and_https_rules_of_the_host(demand, endpoint):
    server = demand.start(server="RedirectToHTTPS 443\nHSTS 365d\n")
    context = demand.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with demand.connect("shop.customer.test", context=context) as c:
        assert c.selected_alpn_protocol() == "h2"
    assert b"Strict-Transport-Security: max-age=" in demand.get("shop.customer.test")
    reply = server.get("/x?y", host="other.customer.test")
    assert (reply.status, reply["Location"]) == (308, "https://other.customer.test/x?y")


def test_names_of_the_configuration_are_obtained_in_advance(demand, endpoint, state):
    """The host with OnDemand has a name, a pattern and is no default host; port 80 has another default host."""
    server = demand.start(names="first.example.test", sections="""
[HOST]
    ServerName   app.example.test *.shop.test ~^r[0-9]+\\.test$
    DocumentRoot site

[ACME_HOST]
    OnDemand on
""")
    for name in ("first.example.test", "app.example.test"):
        server.err.wait_for(NEW.format(name))
        wait_for(lambda name=name: shown(demand.world, name))
    assert demand.get("x.shop.test").endswith(b"home")
    assert demand.get("r7.test").endswith(b"home")
    assert endpoint.names() == ["x.shop.test", "r7.test"]
    # Unknown names get the certificate of the default host, as without OnDemand.
    wait_for(lambda: demand.serial("unknown.test") == demand.serial("first.example.test"))
    assert endpoint.names() == ["x.shop.test", "r7.test"]


def test_own_certificates_are_used_for_their_names(demand, endpoint, tmp_path):
    """The host has an RSA and an ECDSA certificate; a client that prefers RSA gets the certificate for its name."""
    authority = make_authority(tmp_path / "tls")
    pairs = [authority.issue(["app.example.test"], kind=kind, file=kind) for kind in ("rsa", "ec")]
    lines = "".join(f'Certificate "{pair.certificate}" "{pair.key}"\n' for pair in pairs)
    demand.start(host=lines)
    own = {pair.x509.serial_number for pair in pairs}
    assert demand.serial("app.example.test") in own and endpoint.asked == []
    assert demand.serial(None) in own and endpoint.asked == []
    assert demand.get("shop.customer.test").endswith(b"home")
    context = demand.context(trusts=False)
    context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):  # never a certificate of another name
        demand.connect("shop.customer.test", context=context).close()


def test_reload_adds_changes_and_removes_on_demand(demand, endpoint):
    server = demand.start(names="www.example.test", sections="", workers=2)
    server.err.wait_for(NEW.format("www.example.test"))
    config = server.config
    before = config.read_text()

    def reload(text):
        n = server.log.count("reloaded") + server.log.count("new configuration")
        config.write_text(text)
        server.tell(signal.SIGHUP)
        wait_for(lambda: server.log.count("reloaded") + server.log.count("new configuration") > n)

    wait_for(lambda: shown(demand.world, "shop.customer.test"))  # the certificate of www.example.test
    reload(before + ON_DEMAND)
    wait_for(lambda: demand.serves("shop.customer.test"))
    endpoint.allowed = lambda name: False
    other = Endpoint()
    reload((before + ON_DEMAND).replace(endpoint.url, other.url))
    wait_for(lambda: demand.serves("second.customer.test"))
    assert other.names() == ["second.customer.test"]
    other.stop()
    reload(before)
    serial = demand.serial("www.example.test")
    wait_for(lambda: demand.serial("shop.customer.test") == serial)


# ---- The state folder ----


def test_state_folder_that_cannot_be_written(demand, endpoint, state):
    """Like a full disk: a name gets no certificate, the reason is logged, and known names are served."""
    server = demand.start()
    assert demand.get("known.customer.test").endswith(b"home")
    folder = state / "on-demand/orders"
    folder.rename(state / "on-demand/orders.away")
    folder.write_text("")  # root could write to a folder without permissions
    assert "UNRECOGNIZED_NAME" in demand.refused("shop.customer.test")
    server.err.wait_for(r"\[error\] \d+: acme: .*orders")
    assert demand.get("known.customer.test").endswith(b"home")
    folder.unlink()
    time.sleep(10.5)  # the refusal ends
    assert demand.get("shop.customer.test").endswith(b"home")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
def test_full_disk_leaves_no_incomplete_certificate(demand, state):
    """The folder of the certificates is a file system of two pages: one certificate has space."""
    demand.start().stop()
    folder = state / "on-demand/certificates"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,mode=700", "none", folder], check=False, capture_output=True).returncode:
        pytest.skip("this machine cannot mount a tmpfs")
    try:
        (folder / "filler").write_bytes(bytes(8192))
        server = demand.start()
        assert "UNRECOGNIZED_NAME" in demand.refused("shop.customer.test")
        server.err.wait_for(r"\[error\] \d+: acme: .*No space left on device")
        assert [path.name for path in folder.iterdir()] == ["filler"]
        (folder / "filler").unlink()
        wait_for(lambda: "UNRECOGNIZED_NAME" not in (attempt(demand, "shop.customer.test") or ""))
        assert [path.name for path in folder.iterdir()] == ["shop.customer.test.pem"] and demand.get("shop.customer.test").endswith(b"home")
        server.stop()
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def attempt(demand, name):
    """The error of a handshake; None: it has succeeded."""
    try:
        demand.connect(name, trusts=False).close()
    except (ssl.SSLError, ConnectionError) as e:
        return str(getattr(e, "reason", e))
    return None


def test_failed_validation_is_not_repeated(demand, endpoint, state):
    """Pebble tries to validate names at a port without a listener."""
    demand.world.start_pebble()
    demand.world.pebble.settings["httpPort"] = 1
    demand.world.pebble.stop()
    demand.world.pebble.start()
    server = demand.start(workers=2)
    for _ in range(5):
        assert "UNRECOGNIZED_NAME" in demand.refused("shop.customer.test")
    assert endpoint.names() == ["shop.customer.test"]
    server.err.wait_for("acme: shop.customer.test: the authority could not verify shop.customer.test by http-01")
    assert json.loads((state / "on-demand/failures/shop.customer.test.json").read_text())["failures"] == 1


# ---- The list, and counters ----


def test_listed_names_are_allowed_without_an_endpoint(demand, endpoint, tmp_path):
    names = tmp_path / "names"
    names.write_text("# customers\n\n  Shop.Customer.Test \r\n*.brand.test\n")
    server = demand.start(f"AllowFile {names}", asks=False, workers=2)
    for name in ("shop.customer.test", "a.brand.test", "b.c.brand.test"):
        assert not attempt(demand, name), server.log
    for name in ("brand.test", "other.customer.test", "xshop.customer.test", "notbrand.test"):
        assert "UNRECOGNIZED_NAME" in demand.refused(name), name
    names.write_text("other.customer.test\n")
    before = set(server.workers)
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(server.workers) == 2 and not before & set(server.workers))
    assert demand.get("other.customer.test").endswith(b"home")
    assert "UNRECOGNIZED_NAME" in demand.refused("new.brand.test")
    assert endpoint.names() == []


def test_endpoint_decides_about_names_that_are_not_listed(demand, endpoint, tmp_path):
    (tmp_path / "names").write_text("listed.customer.test\n")
    demand.start(f"AllowFile {tmp_path}/names")
    assert demand.get("listed.customer.test").endswith(b"home") and endpoint.names() == []
    assert demand.get("asked.customer.test").endswith(b"home") and endpoint.names() == ["asked.customer.test"]


@pytest.mark.parametrize("asks", [False, True], ids=["list", "list-and-endpoint"])
def test_unlisted_names_do_not_limit_listed_ones(demand, endpoint, tmp_path, asks):
    """A client requests more names than it may ask about; then it gets the certificate of a listed name."""
    endpoint.allowed = lambda name: False
    (tmp_path / "names").write_text("listed.customer.test\n")
    demand.start(f"AllowFile {tmp_path}/names", asks=asks)
    for i in range(30):
        assert "UNRECOGNIZED_NAME" in demand.refused(f"x{i}.customer.test")
    assert demand.get("listed.customer.test").endswith(b"home")


@pytest.fixture
def check_list(run, tmp_path):
    """Returns the errors of a configuration with this AllowFile."""
    def check(text):
        (tmp_path / "site").mkdir()
        (tmp_path / "names").write_text(text)
        (tmp_path / "monkey.conf").write_text(f"""[SERVER]
    Listen 127.0.0.1:0 tls
[PLUGINS]
    Load acme
[ACME]
    AgreeToTerms on
    StateFolder {tmp_path}/state
    AllowFile names
[HOST]
    DocumentRoot {tmp_path}/site
[ACME_HOST]
    OnDemand on
""")
        done = run("-t", "-c", tmp_path / "monkey.conf")
        assert done.code == 3, done
        return done.err
    return check


@pytest.mark.parametrize("line", ["*", "*.com.", "a b", "192.0.2.1", "*.local", "x.*.example.com", "localhost", "-a.example.com", "\x1b[2J.example.com"])
def test_bad_line_of_the_list_is_located(check_list, line):
    errors = check_list(f"good.example.com\n{line}\n")
    assert "names:2: expected a name" in errors and "\x1b" not in errors, errors


def test_bad_line_of_the_list_is_shown_as_it_is(check_list):
    assert ": `GET /Index.HTML from 192.0.2.1`" in check_list("Good.Example.com\r\n  # Comment\nGET /Index.HTML from 192.0.2.1\r\n")


@pytest.mark.parametrize("n, is_cut", [(19, False), (20, True), (5000, True)])
def test_wrong_file_as_list_causes_few_errors(check_list, n, is_cut):
    errors = check_list("GET / 200\n" * n)
    assert errors.count("expected a name such as") == min(n, 20) and ("names:20: " in errors) == is_cut, errors
    assert errors.count("no further lines are checked") == is_cut, errors


def counted(server):
    text = server.get("/metrics", host="127.0.0.1").text
    found = dict(re.findall(r'^monkey_acme_on_demand_total\{[^}]*result="(\w+)"[^}]*\} (\d+)$', text, re.MULTILINE))
    return {name: int(n) for name, n in found.items() if n != "0"}, re.findall(r"^monkey_acme_on_demand_in_progress(?:\{[^}]*\})? (\d+)$", text, re.MULTILINE)


def test_results_are_counted(demand, endpoint):
    endpoint.allowed = lambda name: name.startswith("shop") or (500 if name.startswith("broken") else False)
    server = demand.start(workers=2, plugins=["metrics"], sections=ON_DEMAND + "[ROUTES]\n    /metrics metrics\n    /* static\n")
    assert demand.get("shop.customer.test").endswith(b"home")
    for name in ("no.customer.test", "broken.customer.test"):
        demand.refused(name)
    wait_for(lambda: counted(server)[0].items() >= {"issued": 1, "not_allowed": 1, "no_answer": 1}.items())
    wait_for(lambda: sum(map(int, counted(server)[1])) == 0)  # the program exits after it has reported the certificate
    for _ in range(4):
        demand.refused("no.customer.test")
    wait_for(lambda: counted(server)[0].get("remembered", 0) >= 1)


def test_helper_that_cannot_start_is_counted_as_failed(demand, endpoint):
    """The worker has no free descriptor when the endpoint allows the name."""
    def allow(name):
        for pid in server.workers:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):  # a child that has just exited
                n_used = max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd")) + 1
                _, limits[pid] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (n_used, limits[pid]))
        return True

    limits, endpoint.allowed = {}, allow
    server = demand.start(plugins=["metrics"], sections=ON_DEMAND + "[ROUTES]\n    /metrics metrics\n    /* static\n")
    demand.refused("shop.customer.test")
    server.err.wait_for("acme: cannot start .*monkey-acme")
    for pid, limit in limits.items():
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))
    assert counted(server) == ({"failed": 1}, ["0"])


# ---- The configuration ----


@pytest.mark.parametrize("acme, host, message", [
    ("", "OnDemand on", r"`OnDemand on` needs `AllowEndpoint` or `AllowFile`, which decide which names get a certificate"),
    ("AllowFile none", "OnDemand on", r"monkey.conf:8:15: error: .*/none cannot be read: No such file"),
    ("AllowFile site", "OnDemand on", "it is not a regular file"),
    ("AllowEndpoint http://127.0.0.1:9\n    Challenge dns-01\n    DNSHook rfc2136", "OnDemand on", "needs http-01 or tls-alpn-01"),
    ("AllowEndpoint 127.0.0.1:9", "OnDemand on", "monkey.conf:8:19: error: .*expected http://SERVER/PATH"),
    ("AllowEndpoint http:///allow", "OnDemand on", "the server must not be empty"),
    ("AllowEndpoint http://127.0.0.1:9/a#b", "OnDemand on", "the path must begin with `/`"),
    ("AllowEndpoint http://127.0.0.1:x/", "OnDemand on", "monkey.conf:8"),
    ("OnDemandRate 0/h", "OnDemand on", "expected NUMBER/s"),
    ("OnDemandRate 10", "OnDemand on", "expected NUMBER/s"),
    ("OnDemandRate 10001/s", "OnDemand on", "expected NUMBER/s"),
    ("MaxCertificates 0", "OnDemand on", "expected a number from 1 to 100000"),
    ("AllowEndpont http://127.0.0.1:9", "OnDemand on", "AllowEndpoint"),
    ("AllowEndpoint http://127.0.0.1:9", "OnDemand maybe", "expected on or off"),
])
def test_wrong_configuration_is_located(run, tmp_path, acme, host, message):
    (tmp_path / "site").mkdir()
    (tmp_path / "monkey.conf").write_text(f"""[SERVER]
    Listen 127.0.0.1:0 tls
[PLUGINS]
    Load acme
[ACME]
    AgreeToTerms on
    StateFolder {tmp_path}/state
    {acme}
[HOST]
    DocumentRoot {tmp_path}/site
[ACME_HOST]
    {host}
""")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    assert done.code and re.search(message, done.err), done.err
