# SPDX-License-Identifier: Apache-2.0
"""The acme plugin obtains, presents and renews certificates of Pebble, an ACME test CA, on loopback."""
import json
import os
import pwd
import socket
import ssl
import time

import pytest
from cryptography import x509

from acme import MARKS, NEW, shown, state, wait_for, world  # noqa: F401 (fixtures)
from certificates import make_authority
from monkey import SECONDS

pytestmark = MARKS


# ---- http-01 ----


def test_acme_http_01_obtains_certificate(world, state):
    server = world.start("Contact mailto:me@example.test")
    server.err.wait_for(NEW.format("www.example.test"))
    assert state.names("www.example.test") == ["www.example.test"]
    state.check("www.example.test")
    assert (state / "account.key").stat().st_mode & 0o777 == 0o600
    assert not list((state / "http-01").iterdir()) and not list((state / "orders").iterdir())
    account = json.loads((state / "account.json").read_text())
    assert account["contact"] == ["mailto:me@example.test"] and account["directory"] == world.pebble.directory
    assert server.get("/.well-known/acme-challenge/nothing").status == 404


def test_acme_names_and_hosts_share_one_account(world, state):
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
            Domains        fourth.example.test one.wild.example.test

    """)
    for name in ("a", "second", "fourth"):
        server.err.wait_for(NEW.format(f"{name}.example.test"))
        state.check(f"{name}.example.test")
    assert state.names("a.example.test") == ["a.example.test", "b.example.test", "c.example.test"]
    assert state.names("fourth.example.test") == ["fourth.example.test", "one.wild.example.test"]
    assert state.key("second.example.test").key_size == 2048
    assert len(list((state / "certificates").iterdir())) == 3
    assert world.pebble.count("There are now 1 accounts") == 1 and world.pebble.count("There are now 2 accounts") == 0


def test_acme_rejected_nonces_are_retried(world):
    world.start(rejected_nonces=50).err.wait_for(NEW.format("www.example.test"))


def test_acme_challenges_bypass_auth_and_routes(world, site, tmp_path):
    (tmp_path / "users").write_text("")
    server = world.start(plugins=["auth"], sections="""
        [AUTH]
            Location /
            UserFile    users

        [ROUTES]
            /*       redirect 301 https://www.example.test/
    """)
    server.err.wait_for(NEW.format("www.example.test"))
    assert server.get("/").status == 401


def test_acme_challenge_paths_of_other_clients_are_files(world, site, state):
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


def test_acme_runs_as_user_of_workers(world, state, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    server = world.start(server="User nobody\n")
    server.err.wait_for(NEW.format("www.example.test"))
    state.check("www.example.test")
    uids = {path.stat().st_uid for path in [state.path, *state.path.rglob("*")]}
    assert uids == {pwd.getpwnam("nobody").pw_uid}


# ---- Over TLS ----


def get_trusted(world, name="www.example.test"):
    """Returns the response to a client that trusts Pebble and verifies the certificate."""
    context = ssl.create_default_context(cadata=world.pebble.root())
    with socket.create_connection((world.loopback.address, world.tls), SECONDS) as plain:
        with context.wrap_socket(plain, server_hostname=name) as c:
            c.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: c.recv(65536), b""))


@pytest.mark.parametrize("challenge", ["http-01", "tls-alpn-01"])
def test_acme_certificate_serves_without_restart(world, state, challenge):
    server = world.start(f"Challenge {challenge}", tls=True, workers=2)
    pid, workers = server.pid, server.workers
    server.err.wait_for(NEW.format("www.example.test"))
    serial = state.certificate("www.example.test").serial_number
    wait_for(lambda: (c := shown(world)) and c.serial_number == serial)
    assert get_trusted(world).endswith(b"home")
    wait_for(lambda: not set(server.workers) & set(workers))
    assert server.pid == pid
    assert not list((state / "tls-alpn-01").iterdir())
    state.check("www.example.test")


def test_acme_tls_alpn_01_obtains_several_names(world, state):
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


def test_acme_renewed_certificate_serves(world, state):
    server = world.start("RenewAfter 5", tls=True, validity=36)
    server.err.wait_for(NEW.format("www.example.test"))
    first = wait_for(lambda: shown(world))
    server.err.wait_for(NEW.format("www.example.test"), count=2, seconds=90)
    wait_for(lambda: shown(world).serial_number == state.certificate("www.example.test").serial_number)
    assert shown(world).serial_number != first.serial_number
    assert get_trusted(world).endswith(b"home")


def test_acme_replaces_certificate_of_server(world, state, tmp_path):
    """The configured certificate is used until the CA has issued one."""
    pair = make_authority(tmp_path / "own").issue(["www.example.test"])
    world.start_pebble()
    world.pebble.stop()
    server = world.start(tls=True, server=f"Certificate {pair.certificate} {pair.key}\n")
    server.err.wait_for("cannot reach")
    assert shown(world).serial_number == pair.x509.serial_number
    world.pebble.start()
    server.err.wait_for(NEW.format("www.example.test"))
    wait_for(lambda: shown(world).serial_number == state.certificate("www.example.test").serial_number)


def test_acme_ignores_host_with_its_own_certificate(world, state, tmp_path):
    pair = make_authority(tmp_path / "own").issue(["www.example.test"])
    server = world.start(tls=True, host=f"ServerName www.example.test\nCertificate {pair.certificate} {pair.key}\n",
                         sections="[HOST]\n    ServerName other.example.test\n    DocumentRoot site\n")
    server.err.wait_for(NEW.format("other.example.test"))
    server.err.wait_for("the new configuration serves")
    assert shown(world).serial_number == pair.x509.serial_number and not state.pem("www.example.test").exists()
    assert shown(world, "other.example.test").serial_number == state.certificate("other.example.test").serial_number


def test_acme_challenges_are_not_redirected_to_https(world):
    server = world.start(tls=True, host=f"ServerName www.example.test\nRedirectToHTTPS {world.tls}", names="")
    server.err.wait_for(NEW.format("www.example.test"))
    assert server.get("/", fields={"Host": "www.example.test"}).status in (301, 308)


def test_acme_challenge_certificate_is_only_for_acme_tls_clients(world, state):
    server = world.start("Challenge tls-alpn-01", tls=True)
    server.err.wait_for(NEW.format("www.example.test"))
    wait_for(lambda: shown(world))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["acme-tls/1"])
    with socket.create_connection((world.loopback.address, world.tls), SECONDS) as plain:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            context.wrap_socket(plain, server_hostname="www.example.test")


# ---- Restarts and renewals ----


def test_acme_restart_requests_nothing_new(world, state):
    server = world.start()
    server.err.wait_for(NEW.format("www.example.test"))
    serial = state.certificate("www.example.test").serial_number
    wait_for(lambda: (state / "renewal/www.example.test.json").exists())  # the helper has asked for the renewal time
    server.stop()
    log = world.pebble.out.text
    server = world.start("RenewAfter 95", server="LogLevel debug\n")
    time.sleep(1)  # the first check is after 0.3 s
    assert state.certificate("www.example.test").serial_number == serial
    assert world.pebble.out.text == log


def test_acme_account_survives_restart(world, state):
    world.start("Contact mailto:me@example.test").err.wait_for(NEW.format("www.example.test"))
    account, key = json.loads((state / "account.json").read_text()), (state / "account.key").read_bytes()
    state.pem("www.example.test").unlink()
    server = world.start("Contact mailto:you@example.test")
    server.err.wait_for(NEW.format("www.example.test"))
    again = json.loads((state / "account.json").read_text())
    assert again == account | {"contact": ["mailto:you@example.test"]} and (state / "account.key").read_bytes() == key
    assert "new account" not in server.log


def test_acme_renews_before_expiry(world, state):
    server = world.start("RenewAfter 5", validity=30)
    server.err.wait_for(NEW.format("www.example.test"))
    first = state.certificate("www.example.test")
    # The renewal is due after a third of the lifetime at the earliest, whatever RenewAfter says.
    server.err.wait_for(NEW.format("www.example.test"), count=2, seconds=60)
    second = state.certificate("www.example.test")
    assert second.serial_number != first.serial_number and second.not_valid_after_utc > first.not_valid_after_utc
    state.check("www.example.test")


@pytest.mark.parametrize("keys, names, why", [
    ("Key rsa", "www.example.test", "the key type differs from the configuration"),
    ("", "www.example.test more.example.test", "the certificate does not cover the name more.example.test"),
])
def test_acme_changed_settings_request_certificate_at_once(world, state, keys, names, why):
    world.start().err.wait_for(NEW.format("www.example.test"))
    server = world.start(keys, names)
    server.err.wait_for(f"acme: www.example.test: {why}")
    server.err.wait_for(NEW.format("www.example.test"))
    state.check("www.example.test")
    assert state.names("www.example.test") == names.split()


def test_acme_changed_authority_requests_certificate(world, state):
    world.start().err.wait_for(NEW.format("www.example.test"))
    world.start_pebble()
    server = world.start()
    server.err.wait_for("acme: www.example.test: its certificate comes from another authority")
    server.err.wait_for(NEW.format("www.example.test"))
    assert json.loads((state / "account.json").read_text())["directory"] == world.pebble.directory


def test_acme_account_unknown_to_authority_is_registered_again(world, state):
    world.start().err.wait_for(NEW.format("www.example.test"))
    account = json.loads((state / "account.json").read_text())
    world.pebble.stop()
    world.pebble.start()
    state.pem("www.example.test").unlink()
    server = world.start()
    server.err.wait_for("the account .* no longer exists at the authority")
    server.err.wait_for(NEW.format("www.example.test"))
    assert json.loads((state / "account.json").read_text())["url"] != account["url"]


# ---- External accounts ----


def test_acme_external_account_binding_is_sent(world, tmp_path):
    key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
    server = world.start(external={"kid-1": key})
    server.err.wait_for(r"the authority requires external account binding: set ExternalAccount")
    (tmp_path / "secret").write_text(key[:-4] + "AAAA\n")
    server = world.start("ExternalAccount kid-1 secret")
    server.err.wait_for(r"acme: the authority rejected the request with status 4\d\d")
    (tmp_path / "secret").write_text(key + "\n")
    server = world.start("ExternalAccount kid-1 secret")
    server.err.wait_for(NEW.format("www.example.test"))
