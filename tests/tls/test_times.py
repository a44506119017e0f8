# SPDX-License-Identifier: Apache-2.0
"""A certificate that has expired or is not yet valid causes a warning for its host, but all hosts are served."""
import signal
import ssl

import pytest

from monkey import needs_processes
from tls_server import PLUGIN, keys

TIMES = [
    pytest.param({"days": -10}, "the certificate expired on ", "expired", id="expired"),
    pytest.param({"since": -10, "days": 20}, "the certificate is not valid before ", "not_yet_valid", id="early"),
]


def two_hosts(good, bad):
    return "".join(f"""
[HOST]
    ServerName {name}.example
    DocumentRoot site
    {keys(pair)}
[ROUTES]
    /metrics metrics
    /* static
""" for name, pair in (("good", good), ("bad", bad)))


def unverified_context(authority):
    """A client that accepts any certificate."""
    context = authority.client_context(alpn=["http/1.1"])
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def serial_shown(server, name, authority):
    with server.connect(name, unverified_context(authority)) as c:
        return ssl.DER_cert_to_PEM_cert(c.sock.facts.getpeercert(True))


@pytest.mark.parametrize("times, message, problem", TIMES)
def test_host_with_invalid_certificate_does_not_affect_others(secure, authority, times, message, problem):
    good, bad = authority.issue(["good.example"]), authority.issue(["bad.example"], **times)
    server = secure(root=None, plugins=["metrics"], sections=two_hosts(good, bad))
    assert f"{bad.certificate}: {message}" in server.server.err.text
    assert server.get("/", "good.example").text == "hello"
    assert serial_shown(server, "bad.example", authority) in bad.certificate.read_text()
    with pytest.raises(ssl.SSLCertVerificationError):
        server.connect("bad.example")
    counted = server.get("/metrics", "good.example").text
    for each in ("expired", "not_yet_valid", "kept"):
        assert f'monkey_tls_certificate_problems{{problem="{each}"}} {int(each == problem)}\n' in counted


@pytest.mark.parametrize("times, message, problem", TIMES)
def test_check_warns_of_an_invalid_certificate(secure, authority, run, times, message, problem):
    server = secure(keys(authority.issue()))
    authority.issue(**times)
    done = run("-t", "-c", server.server.config)
    assert done.code == 0 and message in done.err, done
    assert "clients reject it" in done.err


@pytest.mark.processes("an embedded server does not reload")
@pytest.mark.parametrize("times, message, problem", TIMES)
def test_reload_with_an_invalid_certificate_succeeds(secure, authority, times, message, problem):
    good, bad = authority.issue(["good.example"]), authority.issue(["bad.example"])
    server = secure(root=None, plugins=["metrics"], sections=two_hosts(good, bad))
    authority.issue(["bad.example"], **times)
    fresh = authority.issue(["good.example"])
    server.server.tell(signal.SIGHUP)
    server.server.err.wait_for("the new configuration serves")
    assert message in server.server.err.text
    assert server.shown("good.example") == fresh.serial


@pytest.mark.parametrize("times, message, problem", TIMES)
def test_invalid_certificate_of_a_plugin_is_served(secure, authority, tmp_path, times, message, problem):
    own, late = authority.issue(["localhost"]), authority.issue(["late.example"], **times)
    server = secure(keys(own), plugins=[str(PLUGIN)], sections=f"""
[HOST]
    ServerName late.example
    DocumentRoot site
[ENCRYPTED]
    Bring {late.certificate}
    BringKey {late.key}
""")
    assert message in server.server.err.text
    assert serial_shown(server, "late.example", authority) in late.certificate.read_text()
    assert server.shown() == own.serial


def test_expired_intermediate_is_a_warning(secure, authority, tmp_path):
    pair, old = authority.issue(), authority.issue(["old.example"], days=-3)
    pair.certificate.write_bytes(pair.certificate.read_bytes() + old.certificate.read_bytes())
    server = secure(keys(pair))
    assert "a certificate after the first one expired on" in server.server.err.text
    assert server.get("/").text == "hello"


def test_explain_names_an_expired_certificate(secure, authority, run):
    server = secure(keys(authority.issue(days=-3)))
    done = run("-c", server.server.config, "explain", "GET", "https://localhost/")
    assert "its certificate expired on " in done.out


def test_reload_metrics_report_failure_and_recovery(secure, authority):
    needs_processes("an embedded server does not reload")
    server = secure(keys(authority.issue()), plugins=["metrics"], sections="[ROUTES]\n    /metrics metrics\n")

    def counts():
        lines = server.get("/metrics").text.splitlines()
        return {name: int(value) for name, value in (line.split() for line in lines if line.startswith("monkey_config_"))}

    first = counts()
    assert first["monkey_config_last_reload_successful"] == 1
    assert first["monkey_config_reload_failures_total"] == first["monkey_config_last_reload_failure_timestamp_seconds"] == 0
    good = server.server.config.read_text()
    server.server.config.write_text(good + "\n[NONSENSE]\n    a b\n")
    server.server.tell(signal.SIGHUP)
    server.server.err.wait_for("keeping the old one")
    failed = counts()
    assert failed["monkey_config_last_reload_successful"] == 0
    assert failed["monkey_config_reload_failures_total"] == 1 and failed["monkey_config_reloads_total"] == 0
    assert failed["monkey_config_last_reload_failure_timestamp_seconds"] > 1_000_000_000
    server.server.config.write_text(good)
    server.server.tell(signal.SIGHUP)
    server.server.err.wait_for("the new configuration serves")
    after = counts()
    assert after["monkey_config_last_reload_successful"] == 1
    assert after["monkey_config_reload_failures_total"] == after["monkey_config_reloads_total"] == 1
