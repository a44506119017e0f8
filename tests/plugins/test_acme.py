# SPDX-License-Identifier: Apache-2.0
"""The plugin acme: certificates from Pebble, a real authority on loopback."""
import http.server
import json
import os
import pwd
import re
import signal
import socket
import ssl
import threading
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtensionOID

from certificates import make_authority
from monkey import SECONDS
from pebble import PROGRAMS, Pebble, Place

pytestmark = [pytest.mark.skipif(not all(PROGRAMS), reason="pebble is not installed"), pytest.mark.timeout(180)]

NEW = r"acme: {}: there is a new certificate"


class State:
    """What the plugin keeps."""

    def __init__(self, path):
        self.path = path

    def __truediv__(self, name):
        return self.path / name

    def pem(self, name):
        return self.path / f"certificates/{name}.pem"

    def certificate(self, name):
        return x509.load_pem_x509_certificates(self.pem(name).read_bytes())[0]

    def key(self, name):
        return serialization.load_pem_private_key(self.pem(name).read_bytes(), None)

    def names(self, name):
        extension = self.certificate(name).extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME)
        return extension.value.get_values_for_type(x509.DNSName)

    def failure(self, name):
        path = self.path / f"failures/{name}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def check(self, name):
        """Certificate and key belong together, and nobody else can read them."""
        assert self.key(name).public_key() == self.certificate(name).public_key()
        for path in self.path.rglob("*"):
            assert path.stat().st_mode & 0o077 == 0, path


@pytest.fixture
def state(tmp_path):
    return State(tmp_path / "state")


@pytest.fixture
def world(monkey, site, tmp_path, state):
    """Starts Pebble and a server that gets its certificates there."""
    site.add("index.html", "home")
    here, pebbles = Place(), []

    class World:
        pebble = server = None
        place, http, tls = here, here.port(), here.port()

        def start_pebble(self, **how):
            self.pebble = Pebble(tmp_path, here, self.http, self.tls, **how)
            pebbles.append(self.pebble)
            return self.pebble

        def start(self, keys="", names="www.example.test", sections="", tls=False, workers=1, **how):
            own = {k: how.pop(k) for k in list(how) if k in ("validity", "rejected_nonces", "reuse", "external",
                                                            "always_valid", "blocked")}
            if not self.pebble:
                self.start_pebble(**own)
            if self.server:
                self.server.stop()
            text = "".join(f"    {line.strip()}\n" for line in keys.splitlines())
            top = f"""[ACME]
    AgreeToTerms on
    Directory    {self.pebble.directory}
    Authority    {self.pebble.authority}
    State        {state.path}
    RetryDelay   1s
{text}"""
            listen = [f"{here.address}:{self.http}"] + ([f"{here.address}:{self.tls} tls"] if tls else [])
            self.server = monkey(plugins=["acme", *how.pop("plugins", [])], top=top + how.pop("top", ""), listen=listen,
                          host=how.pop("host", "") or (f"ServerName {names}\n" if names else ""), sections=sections, workers=workers, **how)
            return self.server

    yield World()
    for each in pebbles:
        each.stop()


def wait_for(condition, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return answer


# ---- http-01 ----


def test_a_certificate_by_http(world, state):
    server = world.start("Contact mailto:me@example.test")
    server.err.wait_for(NEW.format("www.example.test"))
    assert state.names("www.example.test") == ["www.example.test"]
    state.check("www.example.test")
    assert (state / "account.key").stat().st_mode & 0o777 == 0o600
    assert not list((state / "http-01").iterdir()) and not list((state / "orders").iterdir())
    account = json.loads((state / "account.json").read_text())
    assert account["contact"] == ["mailto:me@example.test"] and account["directory"] == world.pebble.directory
    assert server.get("/.well-known/acme-challenge/nothing").status == 404


def test_several_names_and_hosts(world, state):
    server = world.start(names="A.example.test b.example.test c.example.test", sections="""
        [HOST]
            ServerName   second.example.test
            DocumentRoot site

        [ACME_HOST]
            Key          rsa

        [HOST]
            ServerName   third.example.test
            DocumentRoot site

        [ACME_HOST]
            Acme         off

        [HOST]
            ServerName   *.wild.example.test fourth.example.test
            DocumentRoot site

        [ACME_HOST]
            Names        fourth.example.test one.wild.example.test

    """)
    for name in ("a", "second", "fourth"):
        server.err.wait_for(NEW.format(f"{name}.example.test"))
        state.check(f"{name}.example.test")
    assert state.names("a.example.test") == ["a.example.test", "b.example.test", "c.example.test"]
    assert state.names("fourth.example.test") == ["fourth.example.test", "one.wild.example.test"]
    assert state.key("second.example.test").key_size == 2048
    assert len(list((state / "certificates").iterdir())) == 3
    assert world.pebble.count("There are now 1 accounts") == 1 and world.pebble.count("There are now 2 accounts") == 0


def test_nonces_that_are_refused(world):
    world.start(rejected_nonces=50).err.wait_for(NEW.format("www.example.test"))


def test_challenges_are_answered_whatever_else_is_asked_of_clients(world, site, tmp_path):
    (tmp_path / "users").write_text("")
    server = world.start(plugins=["auth"], sections="""
        [AUTH]
            Location /
            Users    users

        [ROUTES]
            /*       redirect 301 https://www.example.test/
    """)
    server.err.wait_for(NEW.format("www.example.test"))
    assert server.get("/").status == 401


def test_answers_of_others_are_files(world, site, state):
    site.add(".well-known/acme-challenge/theirs", "their answer")
    server = world.start(server="DotFiles on\n")
    server.err.wait_for(NEW.format("www.example.test"))
    (state / "http-01/ours").write_text("ours.thumbprint")
    reply = server.get("/.well-known/acme-challenge/ours")
    assert (reply.status, reply.text, reply["Content-Type"]) == (200, "ours.thumbprint", "application/octet-stream")
    assert server.get("/.well-known/acme-challenge/ours?x", method="HEAD").status == 200
    assert server.get("/.well-known/acme-challenge/ours", method="PUT", body=b"x").status != 200
    assert server.get("/.well-known/acme-challenge/theirs").text == "their answer"
    for bad in ("", ".new-ours", "..%2Fours", "%2e%2e/lock", "ours/", "a" * 129, "ours%00", "ou.rs"):
        assert server.get(f"/.well-known/acme-challenge/{bad}").status in (400, 403, 404), bad


# ---- Over TLS ----


def shown(world, name="www.example.test"):
    """The certificate that clients of that name get; None: they are turned away."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((world.place.address, world.tls), SECONDS) as plain:
            with context.wrap_socket(plain, server_hostname=name) as c:
                return x509.load_der_x509_certificate(c.getpeercert(True))
    except (ssl.SSLError, ConnectionError):
        return None


def get_trusted(world, name="www.example.test"):
    """What a client gets who trusts Pebble, and looks closely."""
    context = ssl.create_default_context(cadata=world.pebble.root())
    with socket.create_connection((world.place.address, world.tls), SECONDS) as plain:
        with context.wrap_socket(plain, server_hostname=name) as c:
            c.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: c.recv(65536), b""))


@pytest.mark.parametrize("challenge", ["http-01", "tls-alpn-01"])
def test_the_certificate_serves_without_a_restart(world, state, challenge):
    server = world.start(f"Challenge {challenge}", tls=True, workers=2)
    pid, workers = server.pid, server.workers
    server.err.wait_for(NEW.format("www.example.test"))
    serial = state.certificate("www.example.test").serial_number
    wait_for(lambda: (c := shown(world)) and c.serial_number == serial)
    assert get_trusted(world).endswith(b"home")
    assert server.pid == pid and not set(server.workers) & set(workers)
    assert not list((state / "tls-alpn-01").iterdir())
    state.check("www.example.test")


def test_several_names_by_alpn(world, state):
    server = world.start("Challenge tls-alpn-01", names="a.example.test b.example.test", tls=True, sections="""
        [HOST]
            ServerName   second.example.test
            DocumentRoot site
    """)
    for name in ("a", "second"):
        server.err.wait_for(NEW.format(f"{name}.example.test"))
    assert state.names("a.example.test") == ["a.example.test", "b.example.test"]
    for name in ("a", "b", "second"):
        wait_for(lambda: shown(world, f"{name}.example.test"))
        assert get_trusted(world, f"{name}.example.test").endswith(b"home")


def test_a_renewed_certificate_serves(world, state):
    server = world.start("RenewAfter 5", tls=True, validity=60)
    server.err.wait_for(NEW.format("www.example.test"))
    first = wait_for(lambda: shown(world))
    server.err.wait_for(NEW.format("www.example.test"), count=2, seconds=90)
    wait_for(lambda: shown(world).serial_number == state.certificate("www.example.test").serial_number)
    assert shown(world).serial_number != first.serial_number
    assert get_trusted(world).endswith(b"home")


def test_a_host_with_a_certificate_of_its_own(world, state, tmp_path):
    """It is shown until there is one of the authority."""
    pair = make_authority(tmp_path / "own").issue(["www.example.test"])
    world.start_pebble()
    world.pebble.stop()
    server = world.start(tls=True, server=f"Certificate {pair.certificate} {pair.key}\n")
    server.err.wait_for("cannot be asked")
    assert shown(world).serial_number == pair.x509.serial_number
    world.pebble.start()
    server.err.wait_for(NEW.format("www.example.test"))
    wait_for(lambda: shown(world).serial_number == state.certificate("www.example.test").serial_number)


def test_challenges_are_not_sent_to_https(world):
    server = world.start(tls=True, host=f"ServerName www.example.test\nRedirectToHTTPS {world.tls}", names="")
    server.err.wait_for(NEW.format("www.example.test"))
    assert server.get("/", fields={"Host": "www.example.test"}).status in (301, 308)


def test_by_alpn_nobody_is_shown_a_challenge_who_does_not_ask(world, state):
    server = world.start("Challenge tls-alpn-01", tls=True)
    server.err.wait_for(NEW.format("www.example.test"))
    wait_for(lambda: shown(world))
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["acme-tls/1"])
    with socket.create_connection((world.place.address, world.tls), SECONDS) as plain:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            context.wrap_socket(plain, server_hostname="www.example.test")


# ---- Over again ----


def test_nothing_is_asked_for_what_is_there(world, state):
    server = world.start()
    server.err.wait_for(NEW.format("www.example.test"))
    serial = state.certificate("www.example.test").serial_number
    server.stop()
    asked = world.pebble.out.text
    server = world.start("RenewAfter 95", server="LogLevel debug\n")
    time.sleep(1)  # its first look is after 0.3 s
    assert state.certificate("www.example.test").serial_number == serial
    assert world.pebble.out.text == asked


def test_the_account_stays(world, state):
    world.start("Contact mailto:me@example.test").err.wait_for(NEW.format("www.example.test"))
    account, key = json.loads((state / "account.json").read_text()), (state / "account.key").read_bytes()
    state.pem("www.example.test").unlink()
    server = world.start("Contact mailto:you@example.test")
    server.err.wait_for(NEW.format("www.example.test"))
    again = json.loads((state / "account.json").read_text())
    assert again == account | {"contact": ["mailto:you@example.test"]} and (state / "account.key").read_bytes() == key
    assert "new account" not in server.log


def test_it_is_renewed(world, state):
    server = world.start("RenewAfter 5", validity=40)
    server.err.wait_for(NEW.format("www.example.test"))
    first = state.certificate("www.example.test")
    # Not before a third of its life, whatever is wanted.
    server.err.wait_for(NEW.format("www.example.test"), count=2, seconds=60)
    second = state.certificate("www.example.test")
    assert second.serial_number != first.serial_number and second.not_valid_after_utc > first.not_valid_after_utc
    state.check("www.example.test")


@pytest.mark.parametrize("keys, names, why", [
    ("Key rsa", "www.example.test", "its key is not of the kind that is wanted now"),
    ("", "www.example.test more.example.test", "the certificate is not for more.example.test"),
])
def test_what_is_wanted_otherwise_is_got_at_once(world, state, keys, names, why):
    world.start().err.wait_for(NEW.format("www.example.test"))
    server = world.start(keys, names)
    server.err.wait_for(f"acme: www.example.test: {why}")
    server.err.wait_for(NEW.format("www.example.test"))
    state.check("www.example.test")
    assert state.names("www.example.test") == names.split()


def test_another_authority(world, state):
    world.start().err.wait_for(NEW.format("www.example.test"))
    world.start_pebble()
    server = world.start()
    server.err.wait_for("acme: www.example.test: its certificate is of another authority")
    server.err.wait_for(NEW.format("www.example.test"))
    assert json.loads((state / "account.json").read_text())["directory"] == world.pebble.directory


def test_an_authority_that_has_forgotten_the_account(world, state):
    world.start().err.wait_for(NEW.format("www.example.test"))
    account = json.loads((state / "account.json").read_text())
    world.pebble.stop()
    world.pebble.start()
    state.pem("www.example.test").unlink()
    server = world.start()
    server.err.wait_for("the authority does not know the account")
    server.err.wait_for(NEW.format("www.example.test"))
    assert json.loads((state / "account.json").read_text())["url"] != account["url"]


# ---- What goes wrong ----


def test_a_name_that_is_not_ours(world, state):
    """Pebble is sent to a port where nobody listens."""
    world.start_pebble()
    world.pebble.settings["httpPort"] = 1
    world.pebble.stop()
    world.pebble.start()
    server = world.start()
    said = server.err.wait_for(r"\[error\] \d+: acme: www.example.test: the authority could not verify www.example.test by "
                               r"http-01 on port 80 \(invalid\): (.*); the next attempt is in (\d+) s", count=3)
    assert "connection" in said[1]
    waits = [int(s) for s in re.findall(r"the next attempt is in (\d+) s", server.log)]
    assert waits[:3] == [1, 2, 4] or (1 <= waits[0] <= 2 and 2 <= waits[1] <= 3 and 4 <= waits[2] <= 5)
    server.stop()
    before = state.failure("www.example.test")
    assert before["failures"] >= 3 and "connection" in before["why"]
    # The pauses go on where they were, also for the next server.
    server = world.start()
    said = server.err.wait_for(r"the next attempt is in (\d+) s")
    assert int(said[1]) >= 8
    assert state.failure("www.example.test")["failures"] == before["failures"] + 1
    server.stop()
    # What is configured anew is tried at once.
    server = world.start(names="other.example.test www.example.test")
    assert int(server.err.wait_for(r"the next attempt is in (\d+) s")[1]) <= 2
    assert not list((state / "http-01").iterdir())


def test_one_that_fails_does_not_hold_up_others(world, state):
    server = world.start(names="bad.blocked.test", blocked=["blocked.test"],
                         sections="[HOST]\n    ServerName good.example.test\n    DocumentRoot site\n")
    server.err.wait_for(NEW.format("good.example.test"))
    assert re.search(r"\[error\] \d+: acme: bad.blocked.test: the authority refuses \(\d+\): .*\(rejectedIdentifier\)", server.log)
    assert state.failure("good.example.test") is None


def test_nobody_answers(world, state):
    world.start_pebble()
    world.pebble.stop()
    server = world.start()
    server.err.wait_for(r"\[error\] \d+: acme: https://\S+/dir cannot be asked: .*; the next attempt is in (\d+) s")
    world.pebble.start()
    server.err.wait_for(NEW.format("www.example.test"))
    assert state.failure("_account") is None


def test_who_is_not_trusted(world, tmp_path, state):
    world.start_pebble()
    world.pebble.authority = make_authority(tmp_path / "other").file
    world.start().err.wait_for(r"cannot be asked: .*certificate")
    assert not (state / "account.json").exists()


@pytest.mark.parametrize("content", [b"", b"-----BEGIN PRIVATE KEY-----\nnonsense\n", b"\0" * 4096])
def test_a_damaged_account_key_is_not_replaced(world, state, content):
    state.path.mkdir()
    (state / "account.key").write_bytes(content)
    server = world.start()
    server.err.wait_for(r"\[error\] \d+: acme: account.key is damaged: .*there will be a new account")
    assert (state / "account.key").read_bytes() == content
    (state / "account.key").unlink()
    server.err.wait_for(NEW.format("www.example.test"))


def test_other_damaged_files(world, state):
    world.start().err.wait_for(NEW.format("www.example.test"))
    whole = state.pem("www.example.test").read_text()
    other = whole[whole.index("-----BEGIN PRIVATE"):]
    pieces = whole.split("-----END CERTIFICATE-----")
    for content in (b"", b"\xff\xfe nonsense", whole[:len(whole) // 2].encode(), other.encode(),
                    (pieces[0][:-40] + "-----END CERTIFICATE-----" + pieces[-1]).encode()):
        state.pem("www.example.test").write_bytes(content)
        for name in ("account.json", "orders/www.example.test.json", "orders/www.example.test.key",
                     "failures/www.example.test.json", "failures/_account.json"):
            (state / name).write_bytes(content)
        server = world.start()
        server.err.wait_for(r"acme: www.example.test: .*(damaged|no chain|another authority)")
        server.err.wait_for(NEW.format("www.example.test"))
        wait_for(lambda: not helpers(server))
        state.check("www.example.test")


def test_a_key_of_another_certificate(world, state):
    world.start().err.wait_for(NEW.format("www.example.test"))
    theirs = state.pem("www.example.test").read_text()
    state.pem("www.example.test").unlink()
    server = world.start()
    server.err.wait_for(NEW.format("www.example.test"))
    server.stop()
    ours = state.pem("www.example.test").read_text()
    at = "-----BEGIN PRIVATE"
    state.pem("www.example.test").write_text(ours[:ours.index(at)] + theirs[theirs.index(at):])
    server = world.start()
    server.err.wait_for("certificate and key do not belong together")
    server.err.wait_for(NEW.format("www.example.test"))
    state.check("www.example.test")


def test_a_state_folder_that_cannot_be(world, tmp_path):
    (tmp_path / "state").write_text("a file")
    server = world.start(expect_start=False)
    server.exit_code = 1
    server.wait()
    world.server = None
    assert re.search(r"monkey.conf:\d+:\d+: error: the folder \S+/state cannot be made: Not a directory", server.log)


# ---- The program ----


def helpers(server):
    """The process ids of monkey-acme that belong to this server."""
    found, parents = [], [server.pid]
    while parents:
        pid = parents.pop()
        try:
            children = open(f"/proc/{pid}/task/{pid}/children").read().split()
            parents += map(int, children)
            if os.readlink(f"/proc/{pid}/exe").endswith("/monkey-acme"):
                found.append(pid)
        except OSError:
            pass
    return found


@pytest.fixture
def slow(world):
    """An authority that takes its time to come."""
    world.start_pebble()
    world.pebble.environment |= {"PEBBLE_VA_NOSLEEP": "0", "PEBBLE_VA_SLEEPTIME": "5"}
    world.pebble.stop()
    world.pebble.start()
    return world


def test_there_is_no_process_when_there_is_nothing_to_do(world):
    server = world.start()
    server.err.wait_for(NEW.format("www.example.test"))
    wait_for(lambda: not helpers(server))


def test_it_is_killed(slow, state):
    server = slow.start()
    wait_for(lambda: list((state / "http-01").iterdir()) if (state / "http-01").exists() else None)
    (pid,) = helpers(server)
    os.kill(pid, signal.SIGKILL)
    server.err.wait_for(r"\[error\] \d+: acme: \S+/monkey-acme died of signal 9")
    server.err.wait_for(NEW.format("www.example.test"), seconds=90)
    assert slow.pebble.count("order-plz") == 1, "it goes on with the order"


def test_its_worker_is_killed(slow, state):
    server = slow.start(workers=2)
    server.allow("worker")
    wait_for(lambda: list((state / "http-01").iterdir()) if (state / "http-01").exists() else None)
    (pid,) = helpers(server)
    for worker in server.workers:
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: pid not in helpers(server) and not os.path.exists(f"/proc/{pid}"))
    server.err.wait_for(NEW.format("www.example.test"), seconds=90)
    assert slow.pebble.count("order-plz") == 1, server.log + slow.pebble.out.text


def test_it_ends_with_the_server(slow, state):
    server = slow.start()
    (pid,) = wait_for(lambda: helpers(server))
    server.stop()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


def test_reloads_meanwhile(slow):
    server = slow.start()
    for i in range(3):
        wait_for(lambda: helpers(server))
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves", count=i + 1)
    server.err.wait_for(NEW.format("www.example.test"), seconds=90)
    assert slow.pebble.count("order-plz") == 1


def test_two_servers_with_the_same_state(slow, monkey, tmp_path, state):
    first = slow.start()
    wait_for(lambda: helpers(first))
    text = first.config.read_text().replace(f":{slow.http}\n", ":0\n")
    second = monkey(config=text.replace("DocumentRoot site", f"DocumentRoot {tmp_path}/site"))
    first.err.wait_for(NEW.format("www.example.test"), seconds=90)
    wait_for(lambda: not helpers(second), seconds=90)
    assert slow.pebble.count("order-plz") == 1 and "new certificate" not in second.log


def test_workers_have_a_user(world, state, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    server = world.start(server="User nobody\n")
    server.err.wait_for(NEW.format("www.example.test"))
    state.check("www.example.test")
    uids = {path.stat().st_uid for path in [state.path, *state.path.rglob("*")]}
    assert uids == {pwd.getpwnam("nobody").pw_uid}


# ---- Authorities that are not what they should be ----


class Impostor(http.server.BaseHTTPRequestHandler):
    """Answers as it is told: a function from the path to (status, fields, content)."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(self.path)
        status, fields, content = self.server.answer(self.path)
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | fields).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            pass

    do_POST = do_HEAD = do_GET

    def log_message(self, *args):
        pass


@pytest.fixture
def impostor(world, tmp_path):
    """Starts a server whose authority answers as the test says."""
    pair = make_authority(tmp_path / "impostor").issue([world.place.address])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    fake = http.server.ThreadingHTTPServer((world.place.address, world.place.port()), Impostor)
    fake.socket = context.wrap_socket(fake.socket, server_side=True)
    fake.daemon_threads = True
    fake.asked, fake.authority = [], tmp_path / "impostor/authority.pem"
    fake.url = f"https://{world.place.address}:{fake.server_port}"
    fake.directory = f"{fake.url}/dir"
    fake.whole = {"newNonce": f"{fake.url}/nonce", "newAccount": f"{fake.url}/account", "newOrder": f"{fake.url}/order"}
    threading.Thread(target=fake.serve_forever, daemon=True).start()

    def start(answer, keys=""):
        fake.answer = answer
        world.pebble = fake
        return world.start(keys)

    start.fake = fake
    yield start
    fake.shutdown()
    fake.server_close()
    world.pebble = None


def problem(kind, detail="because", status=400, **fields):
    return status, {"Content-Type": "application/problem+json", "Replay-Nonce": "n"} | fields, {
        "type": f"urn:ietf:params:acme:error:{kind}", "detail": detail}


@pytest.mark.parametrize("answer, said", [
    ((200, {}, b""), "is not a directory of ACME"),
    ((200, {}, b"<html>"), "is not a directory of ACME"),
    ((200, {}, []), "is not a directory of ACME"),
    ((200, {}, b"[" * 5000), "is not a directory of ACME"),
    ((200, {}, {}), "the directory has no `newNonce` that begins with https://"),
    ((200, {}, {"newNonce": 1}), "the directory has no `newNonce`"),
    ((200, {}, {"newNonce": "http://127.0.0.1/nonce", "newAccount": "https://a/", "newOrder": "https://a/"}),
     "the directory has no `newNonce` that begins with https://"),
    ((200, {}, {"newNonce": "https://" + "a" * 3000}), "the directory has no `newNonce`"),
    ((200, {}, b"x" * (2 << 20)), "(Maximum file size exceeded|more than 1048576 bytes)"),
    ((404, {}, b"not here"), "answers with status 404"),
    ((500, {}, b""), "answers with status 500"),
    ((302, {"Location": "http://127.0.0.1:1/"}, b""), "answers with status 302"),
    ((200, {"Content-Length": "1000", "Connection": "close"}, b"{}"), "cannot be asked"),
    (problem("malformed", "bad\r\n[error] forged\x1b[31m"), r"refuses \(400\): bad  \[error\] forged .31m \(malformed\)"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_directory_that_is_none(impostor, answer, said):
    server = impostor(lambda path: answer)
    server.err.wait_for(said, count=2)  # it goes on trying
    assert set(impostor.fake.asked) == {"/dir"}


@pytest.mark.parametrize("answers, said", [
    ({"/nonce": (200, {}, b"")}, "gives no nonce"),
    ({"/nonce": (200, {"Replay-Nonce": "not base64url!"}, b"")}, "gives no nonce"),
    ({"/account": (201, {}, {})}, "names no account"),
    ({"/account": (201, {"Location": "http://127.0.0.1/a"}, {})}, "names no account"),
    ({"/account": (201, {"Location": "/a"}, {})}, "names no account"),
    ({"/account": problem("badNonce")}, r"badNonce"),
    ({"/account": problem("externalAccountRequired", status=403)}, "externalAccountRequired"),
    ({"/order": (201, {}, {"status": "pending"})}, "names no order"),
    ({"/order": (201, {"Location": "URL/o"}, b"nonsense")}, "not a JSON object"),
    ({"/order": (201, {"Location": "URL/o"}, {})}, "a state that there is not: ``"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "strange"})}, "a state that there is not: `strange`"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "invalid", "error": {"detail": "sorry", "type": "x"}})},
     "the order has failed: sorry"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": [7]})}, "`` is not a URL"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": ["URL/z"]}), "/z": (200, {}, {})},
     "which was not asked for"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": ["URL/z"]}),
      "/z": (200, {}, {"status": "pending", "identifier": {"type": "dns", "value": "evil.test"}})},
     "wants to verify evil.test, which was not asked for"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": ["URL/z"]}),
      "/z": (200, {}, {"status": "pending", "identifier": {"type": "dns", "value": "www.example.test"},
                       "challenges": [{"type": "dns-01"}, "x", {}]})}, "does not offer http-01"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": ["URL/z"]}),
      "/z": (200, {}, {"status": "pending", "identifier": {"type": "dns", "value": "www.example.test"},
                       "challenges": [{"type": "http-01", "url": "URL/c", "token": "../../account.key"}]})},
     "the challenge for www.example.test is broken"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "ready"})}, "`` is not a URL"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "valid"})}, "`` is not a URL"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "valid", "certificate": "http://127.0.0.1/c"})},
     "`http://127.0.0.1/c` is not a URL that begins with https://"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "valid", "certificate": "URL/c"}), "/c": (200, {}, b"nonsense")},
     "it is no chain of certificates"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "valid", "certificate": "URL/c"}), "/c": "OTHER"},
     "certificate and key do not belong together"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_answers_that_are_wrong(impostor, state, answers, said):
    fake = impostor.fake

    def fill(thing):
        return json.loads(json.dumps(thing).replace("URL", fake.url))

    def answer(path):
        found = answers.get(path)
        if found == "OTHER":
            return 200, {"Replay-Nonce": "n"}, make_authority(state.path.parent / "x").issue(
                ["www.example.test"]).certificate.read_bytes()
        if found:
            status, fields, content = found
            return status, fill({"Replay-Nonce": "n"} | fields if path != "/nonce" else fields), (
                content if isinstance(content, bytes) else fill(content))
        return {"/dir": (200, {}, fake.whole), "/nonce": (200, {"Replay-Nonce": "n"}, b""),
                "/account": (201, {"Location": f"{fake.url}/a", "Replay-Nonce": "n"}, {})}.get(path, (404, {}, b""))

    server = impostor(answer)
    server.err.wait_for(r"\[error\] \d+: acme: .*" + said + r".*; the next attempt is in \d+ s")
    assert not state.pem("www.example.test").exists()
    server.stop()
    for name in ("account.key", "lock"):
        assert (state / name).exists()


@pytest.mark.parametrize("fields, seconds", [
    ({"Retry-After": "7200"}, 7200), ({}, 3600), ({"Retry-After": "999999999"}, 8 * 86400), ({"Retry-After": "soon"}, 3600),
])
def test_rate_limits(impostor, state, fields, seconds):
    fake = impostor.fake

    def answer(path):
        if path == "/order":
            return problem("rateLimited", "too many", 429, **fields)
        return {"/dir": (200, {}, fake.whole), "/nonce": (200, {"Replay-Nonce": "n"}, b"")}.get(
            path, (201, {"Location": f"{fake.url}/a", "Replay-Nonce": "n"}, {}))

    server = impostor(answer)
    said = server.err.wait_for(r"acme: www.example.test: .*too many \(rateLimited\); the next attempt is in (\d+) s")
    assert seconds <= int(said[1]) <= seconds * 1.26
    assert abs(state.failure("www.example.test")["until"] - time.time() - int(said[1])) < 30
    server.stop()
    fake.asked.clear()
    impostor(answer)
    time.sleep(1)
    assert not fake.asked


def test_a_date_to_come_back(impostor):
    fake = impostor.fake
    when = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 5000))
    server = impostor(lambda path: (503, {"Retry-After": when}, b"busy") if path == "/dir" else (404, {}, b""))
    said = server.err.wait_for(r"answers with status 503; the next attempt is in (\d+) s")
    assert 4900 <= int(said[1]) <= 6300 and set(fake.asked) == {"/dir"}


def test_a_clock_that_is_wrong(impostor):
    fake = impostor.fake
    old = Impostor.date_time_string
    Impostor.date_time_string = lambda self, timestamp=None: "Sun, 06 Nov 1994 08:49:37 GMT"
    try:
        server = impostor(lambda path: (200, {}, fake.whole) if path == "/dir" else (404, {}, b""))
        server.err.wait_for(r"the clock of this machine is \d+ minutes ahead of that of the authority")
    finally:
        Impostor.date_time_string = old


# ---- Accounts of customers ----


def test_an_external_account(world, tmp_path):
    key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
    server = world.start(external={"kid-1": key})
    server.err.wait_for(r"the authority wants accounts to belong to a customer .* set ExternalAccount")
    (tmp_path / "secret").write_text(key[:-4] + "AAAA\n")
    server = world.start("ExternalAccount kid-1 secret")
    server.err.wait_for(r"acme: the authority refuses \(4\d\d\)")
    (tmp_path / "secret").write_text(key + "\n")
    server = world.start("ExternalAccount kid-1 secret")
    server.err.wait_for(NEW.format("www.example.test"))


# ---- Configurations ----


@pytest.mark.parametrize("text, said", [
    ("[ACME]\n    Contact mailto:me@example.org\n", r"6:5|5:1: error: no authority certifies for somebody who does not agree"),
    ("[ACME]\n    AgreeToTerms off\n", "6:18: error: no authority .*: expected `AgreeToTerms on`"),
    ("", "the plugin `acme` needs a section .ACME."),
    ("[ACME]\n    AgreeToTerms on\n    Directory http://example.org/\n", "7:15: error: `http://example.org/` is not encrypted"),
    ("[ACME]\n    AgreeToTerms on\n    Directory somewhere\n", "7:15: error: expected a URL that begins with https://"),
    ("[ACME]\n    AgreeToTerms on\n    Authority nowhere.pem\n", "7:15: error: \\S+/nowhere.pem cannot be read: No such file"),
    ("[ACME]\n    AgreeToTerms on\n    Contact me\n", "7:13: error: `me` is not a URL: expected mailto:"),
    ("[ACME]\n    AgreeToTerms on\n    Challenge dns-01\n", "7:15: error: .*http-01"),
    ("[ACME]\n    AgreeToTerms on\n    Challenge tls-alpn-01\n", "7:15: error: tls-alpn-01 is answered over TLS"),
    ("[ACME]\n    AgreeToTerms on\n    ExternalAccount kid\n", "7:21: error: expected ID FILE"),
    ("[ACME]\n    AgreeToTerms on\n    ExternalAccount kid nowhere\n", "7:21: error: \\S+/nowhere cannot be read"),
    ("[ACME]\n    AgreeToTerms on\n    ExternalAccount kid monkey.conf\n", "7:21: error: \\S+ holds no key"),
    ("[ACME]\n    AgreeToTerms on\n    RenewAfter 99\n", "7:16: error: "),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName *.example.org\n",
     r"`\*.example.org`: nobody certifies all names of a kind by http-01 or tls-alpn-01"),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName 192.0.2.1\n", "`192.0.2.1` is not a name that can be certified"),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName a_b.example.org\n", "`a_b.example.org` is not a name"),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName a.org\n[ACME_HOST]\n    Names b.org\n",
     "10:11: error: `b.org` is not a ServerName of this host"),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName a.org b.org\n[HOST]\n    ServerName c.org *.org\n"
     "[ACME_HOST]\n    Names a.org\n", "two hosts want different certificates that begin with the name a.org"),
])
def test_mistakes(run, tmp_path, text, said):
    (tmp_path / "monkey.conf").write_text(f"[SERVER]\n    Listen 0\n[PLUGINS]\n    Load acme\n{text}"
                                          "[HOST]\n    ServerName www.example.org\n")
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 3 and re.search(said, done.err), done.err
    assert not (tmp_path / "state").exists()


def test_what_is_printed_can_be_read(run, tmp_path):
    (tmp_path / "key").write_text("c2VjcmV0")
    (tmp_path / "monkey.conf").write_text(
        "[SERVER]\n    Listen 0\n[PLUGINS]\n    Load acme\n[ACME]\n    AgreeToTerms on\n    Directory staging\n"
        "    Contact mailto:a@example.org mailto:b@example.org\n    ExternalAccount id key\n    State here\n"
        "    Key rsa\n[HOST]\n    DocumentRoot .\n    ServerName a.org *.org\n[ACME_HOST]\n    Names a.org b.org\n    Key ecdsa\n")
    printed = run("-T", "-c", "monkey.conf").out
    assert "https://acme-staging-v02.api.letsencrypt.org/directory" in printed and f"{tmp_path}/here" in printed
    (tmp_path / "printed.conf").write_text(printed)
    assert run("-T", "-c", "printed.conf").out == printed
    assert run("-c", "monkey.conf", "explain", "GET", "http://a.org/.well-known/acme-challenge/x").out.count("acme") >= 1
