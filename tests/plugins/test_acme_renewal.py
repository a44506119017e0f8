# SPDX-License-Identifier: Apache-2.0
"""The acme plugin: renewal times that the CA suggests (ARI, RFC 9773), profiles, and certificates for IP addresses."""
import json
import os
import re
import socket
import ssl
import time
import urllib.error
import urllib.request

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from acme import MARKS, NEW, shown, state, wait_for, world  # noqa: F401 (fixtures)
from monkey import SECONDS
from pebble import IS_CURRENT

pytestmark = MARKS
current = pytest.mark.skipif(not IS_CURRENT, reason="Pebble is too old for ARI and profiles: run `tools/dev/pebble.sh build/pebble`")

NAME = "www.example.test"


# ---- Renewal times ----


def suggestion(state):
    path = state / f"renewal/{NAME}.json"
    return json.loads(path.read_text()) if path.exists() else None


def rfc3339(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def set_window(world, state, text):
    """Makes Pebble send this response for the current certificate."""
    pem = "-----BEGIN CERT" + state.pem(NAME).read_text().partition("-----BEGIN CERT")[2].partition("-----BEGIN PRIV")[0]
    pem = re.match(r"(?s).*?-----END CERTIFICATE-----\n", pem)[0]
    content = json.dumps({"certificate": pem, "ariResponse": text}).encode()
    url = f"https://{world.loopback.address}:{world.pebble.management}/set-renewal-info/"
    urllib.request.urlopen(url, content, context=world.pebble.context, timeout=SECONDS).close()


def ask_again(world, state, keys="", seconds_old=86400):
    """Restarts the server when the next question is due, with a certificate that was obtained a day ago."""
    world.server.stop()
    path = state / f"renewal/{NAME}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"check": 1}))
    then = time.time() - seconds_old
    os.utime(state.pem(NAME), (then, then))
    return world.start(keys, server="LogLevel debug\n")


def window(world, identity):
    with urllib.request.urlopen(f"{renewal_url(world)}/{identity}", context=world.pebble.context, timeout=SECONDS) as reply:
        return json.load(reply)["suggestedWindow"]


def renewal_url(world):
    with urllib.request.urlopen(world.pebble.directory, context=world.pebble.context, timeout=SECONDS) as reply:
        return json.load(reply)["renewalInfo"]


def obtain(world, state):
    """Starts a server, and waits until it has a certificate, the CA's suggestion, and the time of the next renewal, which is saved last."""
    world.start().err.wait_for(NEW.format(NAME))
    return wait_for(lambda: (s := suggestion(state)) and s["next"] and s)


@current
def test_ari_is_asked_after_issue_and_instant_is_in_window(world, state):
    found = obtain(world, state)
    assert found["url"] == renewal_url(world) and re.fullmatch(r"[\w-]+\.[\w-]+", found["certificate"])
    certificate = state.certificate(NAME)
    assert certificate.not_valid_before_utc.timestamp() < found["start"] <= found["at"] < found["end"] < certificate.not_valid_after_utc.timestamp()
    assert time.time() + 60 <= found["check"] + 2 <= time.time() + 86402
    # The same window keeps the instant.
    server = ask_again(world, state)
    later = wait_for(lambda: (s := suggestion(state))["check"] > 1 and s)
    assert later["at"] == found["at"] and "new certificate" not in server.log


@current
def test_ari_window_in_the_past_renews_and_names_the_replaced_certificate(world, state):
    obtain(world, state)
    old, serial = suggestion(state)["certificate"], state.certificate(NAME).serial_number
    now = int(state.certificate(NAME).not_valid_before_utc.timestamp())
    set_window(world, state, json.dumps({"suggestedWindow": {"start": rfc3339(now - 7200), "end": rfc3339(now + 1)},
                                         "explanationURL": "https://ca.example/revoked\n[error] forged"}))
    server = ask_again(world, state)
    server.err.wait_for(r"\[warn\] \d+: acme: www.example.test: the authority changes the time of the next renewal: "
                        r"see https://ca.example/revoked \[error\] forged")
    server.err.wait_for(NEW.format(NAME))
    assert state.certificate(NAME).serial_number != serial
    wait_for(lambda: suggestion(state)["certificate"] != old)
    assert suggestion(state)["at"] > time.time() + 86400


@current
def test_ari_replaced_certificate_does_not_prevent_an_order(world, state):
    """The order of the renewal has named the certificate that it replaces, so the CA rejects a second one."""
    obtain(world, state)
    first = state.pem(NAME).read_bytes()
    now = int(state.certificate(NAME).not_valid_before_utc.timestamp())
    set_window(world, state, json.dumps({"suggestedWindow": {"start": rfc3339(now - 7200), "end": rfc3339(now + 1)}}))
    ask_again(world, state).err.wait_for(NEW.format(NAME))
    world.server.stop()
    state.pem(NAME).write_bytes(first)
    server = world.start("Key rsa", server="LogLevel debug\n")
    server.err.wait_for(r"www.example.test: .* with status 409: .*\(alreadyReplaced\); trying without `replaces`")
    server.err.wait_for(NEW.format(NAME))
    assert state.key(NAME).key_size == 2048


@current
@pytest.mark.parametrize("text", [
    "null", "[]", "{}", '{"suggestedWindow":null}', '{"suggestedWindow":{"start":1,"end":2}}',
    '{"suggestedWindow":{"start":"yesterday","end":"today"}}',
    '{"suggestedWindow":{"start":"2020-01-02T00:00:00Z","end":"2020-01-01T00:00:00Z"}}',
    '{"suggestedWindow":{"start":"2020-01-01T00:00:00Z","end":"2020-01-01T00:00:00Z"}}',
    '{"suggestedWindow":{"start":"2020-02-30T00:00:00Z","end":"2020-03-01T00:00:00Z"}}',
    '{"suggestedWindow":{"start":"2020-01-01T00:00:00","end":"2020-01-02T00:00:00Z"}}',
    '{"suggestedWindow":{"start":"2020-01-01T00:00:00Zx","end":"2020-01-02T00:00:00Z"}}',
])
def test_ari_invalid_response_leaves_the_regular_rule(world, state, text):
    before = obtain(world, state)
    set_window(world, state, text)
    server = ask_again(world, state)
    server.err.wait_for(r"\[debug\] \d+: acme: www.example.test: .* has no valid renewal time; the earlier one stays")
    after = wait_for(lambda: (s := suggestion(state))["check"] > 1 and s)
    assert {**after, "check": 0} == {**before, "check": 0}
    assert 3600 < after["check"] - time.time() < 86401 and "new certificate" not in server.log


@current
@pytest.mark.parametrize("start, end", [("1999-01-01T00:00:00Z", "1999-01-02T00:00:00Z"),
                                        ("2999-01-01T00:00:00Z", "2999-01-02T00:00:00+01:00")])
def test_ari_window_outside_of_lifetime_is_ignored(world, state, start, end):
    obtain(world, state)
    set_window(world, state, json.dumps({"suggestedWindow": {"start": start, "end": end}}))
    server = ask_again(world, state)
    wait_for(lambda: suggestion(state)["check"] > 1)
    time.sleep(1)
    assert "new certificate" not in server.log


@current
def test_ari_does_not_renew_a_new_certificate_at_once(world, state):
    """A CA whose windows are always in the past must not cause an order in every run."""
    obtain(world, state)
    now = int(state.certificate(NAME).not_valid_before_utc.timestamp())
    set_window(world, state, json.dumps({"suggestedWindow": {"start": rfc3339(now - 7200), "end": rfc3339(now + 1)}}))
    server = ask_again(world, state, seconds_old=60)
    wait_for(lambda: suggestion(state)["check"] > 1)
    time.sleep(1)
    assert "new certificate" not in server.log


@current
def test_ari_damaged_state_is_asked_again(world, state):
    obtain(world, state)
    for text in (b"\0" * 100, b"{}", b'{"certificate":7,"url":"https://x/"}'):
        world.server.stop()
        (state / f"renewal/{NAME}.json").write_bytes(text)
        server = world.start()
        wait_for(lambda: (state / f"renewal/{NAME}.json").read_bytes() != text and suggestion(state)["at"])
        assert "new certificate" not in server.log


@current
def test_ari_unreachable_authority_is_no_failure(world, state):
    obtain(world, state)
    world.pebble.stop()
    server = ask_again(world, state)
    server.err.wait_for(r"\[debug\] \d+: acme: www.example.test: cannot reach .*; the earlier one stays")
    assert "[error]" not in server.log and state.failure("_account") is None


# ---- Profiles ----

PROFILES = {"default": {"description": "90 days", "validityPeriod": 90 * 86400}, "shortlived": {"description": "6 days", "validityPeriod": 160 * 3600}}


@current
def test_profile_selects_the_kind_of_certificate(world, state):
    world.start_pebble(profiles=PROFILES)
    server = world.start("Profile shortlived", sections="[HOST]\n    ServerName second.example.test\n    DocumentRoot site\n"
                                                         "[ACME_HOST]\n    Profile default\n")
    server.err.wait_for(NEW.format(NAME) + ", valid for 1(59|60) hours")
    server.err.wait_for(NEW.format("second.example.test") + ", valid for 2(159|160) hours")
    # Another profile needs a new certificate.
    server = world.start("Profile default")
    server.err.wait_for("acme: www.example.test: the profile of its certificate differs from the configuration")
    server.err.wait_for(NEW.format(NAME) + ", valid for 2(159|160) hours")


@current
def test_profile_that_authority_lacks_is_reported(world):
    world.start_pebble(profiles=PROFILES)
    server = world.start("Profile tlsserver")
    server.err.wait_for(r"acme: www.example.test: the authority has no profile `tlsserver`; its profiles: (default, shortlived|shortlived, default); "
                        r"the next attempt is in \d+ s")


@pytest.mark.parametrize("line, message", [
    ("Profile", "error"), ("Profile a b", "7:13: error: expected a name of letters"), ("Profile " + "a" * 65, "7:13: error: "),
    ('Profile "a\\"b"', "error"),
])
def test_profile_with_invalid_name_is_rejected(run, tmp_path, line, message):
    (tmp_path / "monkey.conf").write_text(f"[SERVER]\n    Listen 0\n[PLUGINS]\n    Load acme\n[ACME]\n    AgreeToTerms on\n    {line}\n"
                                          "[HOST]\n    ServerName www.example.org\n    DocumentRoot .\n")
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 3 and re.search(message, done.err), done.err


# ---- IP addresses ----


def addresses(state, name):
    extension = state.certificate(name).extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME)
    return [str(each) for each in extension.value.get_values_for_type(x509.IPAddress)]


@pytest.mark.parametrize("challenge", ["http-01", "tls-alpn-01"])
def test_ip_certificate_is_obtained_and_serves(world, state, challenge):
    address = world.loopback.address
    server = world.start(f"Challenge {challenge}", names=f"{address} www.example.test", tls=True)
    server.err.wait_for(NEW.format(re.escape(address)))
    assert addresses(state, address) == [address] and state.names(address) == ["www.example.test"]
    state.check(address)
    wait_for(lambda: shown(world, world.loopback.address))
    context = ssl.create_default_context(cadata=world.pebble.root())
    with socket.create_connection((address, world.tls), SECONDS) as plain:
        with context.wrap_socket(plain, server_hostname=address) as c:  # sends no SNI
            c.sendall(f"GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
            assert b"".join(iter(lambda: c.recv(65536), b"")).endswith(b"home")
    # A restart requests nothing new: the certificate covers the address.
    serial = state.certificate(address).serial_number
    server.stop()
    world.start(f"Challenge {challenge}", names=f"{address} www.example.test", tls=True)
    time.sleep(1)
    assert state.certificate(address).serial_number == serial


@pytest.mark.parametrize("challenge", ["http-01", "tls-alpn-01"])
def test_ipv6_certificate_is_obtained(world, state, challenge):
    more = f"Listen [::1]:{world.http}\nListen [::1]:{world.tls} tls\n"
    server = world.start(f"Challenge {challenge}", names="[::1]", tls=True, server=more)
    server.err.wait_for(NEW.format("::1"))
    assert addresses(state, "::1") == ["::1"]
    assert not list((state / "tls-alpn-01").iterdir())


@pytest.mark.parametrize("name, keys, domains, message", [
    ("192.0.2.1", "Challenge dns-01\n    DNSHook http", "", "10:16: error: cannot certify `192.0.2.1` by dns-01: IP addresses require http-01"),
    ("192.0.2.300", "", "", "8:16: error: cannot certify `192.0.2.300`"),
    ("192.0.2.1", "", "192.0.2.2", "`192.0.2.2` is not a ServerName of this host"),
])
def test_ip_invalid_configuration_is_rejected(run, tmp_path, name, keys, domains, message):
    text = f"[ACME_HOST]\n    Domains {domains}\n" if domains else ""
    (tmp_path / "monkey.conf").write_text("[SERVER]\n    Listen 0\n[PLUGINS]\n    Load acme\n[ACME]\n    AgreeToTerms on\n"
                                          + (f"    {keys}\n" if keys else "") +
                                          f"[HOST]\n    ServerName {name}\n    DocumentRoot .\n{text}")
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 3 and re.search(message, done.err), done.err
