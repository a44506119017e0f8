# SPDX-License-Identifier: Apache-2.0
"""The certificates in the metrics, and on the live page."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

import browser
from certificates import make_authority
from metering import KEYS, status
from monkey import PROGRAM
from proc import wait_until
from prometheus import parse

pytestmark = [pytest.mark.processes("a process of the master reads the certificates"),
              pytest.mark.skipif(not (PROGRAM.parent / "plugins" / "monkey-tls.so").exists(), reason="built without TLS")]
acme_only = pytest.mark.skipif(not (PROGRAM.parent / "plugins" / "monkey-acme").exists(), reason="built without acme")
FILE = "monkey_tls_certificate_file_"
HOST = "[HOST]\n    ServerName {}\n    DocumentRoot site\n    Certificate {} {}\n"


@pytest.fixture
def authority(tmp_path):
    return make_authority(tmp_path / "tls")


@pytest.fixture
def start(monkey, site):
    site.add("index.html", "hello")

    def run(sections, plugins=(), top="", **how):
        return monkey(plugins=["metrics", *plugins], top=KEYS + top, listen=["127.0.0.1:0", "127.0.0.2:0 tls"], sections=sections, **how)
    return run


def host(name, pair):
    return HOST.format(name, f'"{pair.certificate}"', f'"{pair.key}"')


def certificates(server):
    return status(server).get("certificates")


def wait_for_list(server, condition):
    wait_until(lambda: (found := certificates(server)) is not None and condition(found), "the list")
    return certificates(server)


def family(server, name):
    """Returns the values of a family by host."""
    return {labels["host"]: value for labels, value in parse(server.get("/metrics").text).all(name)}


def test_status_has_the_list_of_the_command(start, authority):
    late, soon = authority.issue(["late.example"], days=79.5), authority.issue(["soon.example", "*.soon.example"], days=4.5, since=60)
    server = start(host("late.example", late) + host("soon.example", soon), workers=2)
    rows = wait_for_list(server, len)
    done = subprocess.run([PROGRAM, "-c", server.config, "certificates", "--json"], capture_output=True, text=True, check=False)
    private = ("key_file", "ocsp_file", "configured_at")  # the page may be public
    assert rows == [{key: value for key, value in row.items() if key not in private} for row in json.loads(done.stdout)["certificates"]]
    assert [(row["names"], row["needs_attention"]) for row in rows] == [(["soon.example", "*.soon.example"], True), (["late.example"], False)]
    assert json.loads(server.get("/live?certificates").text) == rows
    assert server.get("/live?certificates")["Content-Type"] == "application/json"


def test_families_have_host_and_file(start, authority):
    pair = authority.issue(["a.example"], days=80)
    server = start(host("a.example www.a.example", pair))
    wait_for_list(server, len)
    assert parse(server.get("/metrics").text).all(FILE + "expiry_timestamp_seconds") == [({"host": "a.example", "file": str(pair.certificate)},
            int(pair.x509.not_valid_after_utc.timestamp()))]
    assert family(server, FILE + "usable") == {"a.example": 1}
    assert family(server, "monkey_tls_certificate_renewal_failures") == {"a.example": 0}
    assert family(server, "monkey_tls_certificate_next_renewal_timestamp_seconds") == {}


def test_labels_are_escaped(start, authority, tmp_path):
    pair = authority.issue(["a.example"], days=80)
    odd = tmp_path / "quote'back\\slash"
    odd.mkdir()
    for path in (pair.certificate, pair.key):
        shutil.copy(path, odd / path.name)
    server = start(f"[HOST]\n    ServerName a.example\n    DocumentRoot site\n    Certificate {odd / pair.certificate.name} {odd / pair.key.name}\n")
    wait_for_list(server, len)
    (labels, _), = parse(server.get("/metrics").text).all(FILE + "usable")
    assert labels["file"] == str(odd / pair.certificate.name)


def test_reload_changes_the_list(start, authority):
    old, new = authority.issue(["old.example"], days=80), authority.issue(["new.example"], days=80)
    server = start(host("old.example", old), workers=4)
    wait_for_list(server, len)
    text = server.config.read_text()
    server.config.write_text(text.replace(host("old.example", old), host("new.example", new)))
    server.tell(signal.SIGHUP)
    assert [row["names"] for row in wait_for_list(server, lambda rows: rows[0]["names"] == ["new.example"])] == [["new.example"]]
    wait_until(lambda: family(server, FILE + "usable") == {"new.example": 1}, "the metrics")
    server.config.write_text(text)
    server.tell(signal.SIGHUP)
    wait_for_list(server, lambda rows: rows[0]["names"] == ["old.example"])
    wait_until(lambda: family(server, FILE + "usable") == {"old.example": 1}, "the metrics")


def test_long_list_omits_the_last_to_expire(start, authority, tmp_path):
    """Certificates with many names: 28 of them have more than 4 MB of JSON."""
    names = ["many.example"] + [f"{'a' * 60}{n}.{'b' * 60}.example.org" for n in range(1200)]
    pair = authority.issue(["soon.example"], days=5)
    many = authority.issue(names, days=80, file="many")
    sections = host("soon.example", pair)
    for i in range(28):
        copy = tmp_path / f"{i}.pem"
        shutil.copy(many.certificate, copy)
        sections += HOST.format(f"h{i}.example", copy, f'"{many.key}"')
    server = start(sections)
    server.allow("the list of certificates|expires")
    rows = wait_for_list(server, len)
    n = int(server.err.wait_for(r"the list of certificates for plugins omits the last (\d+) to expire")[1])
    assert rows[0]["names"] == ["soon.example"] and len(rows) + n == 29 and n >= 1


def test_replaced_certificates_reuse_series(start, authority, tmp_path):
    """Renamed files would use up the series of all tables."""
    pair = authority.issue(["a.example"], days=80)
    server = start(host("a.example", pair))
    wait_for_list(server, len)
    path = str(pair.certificate)
    for i in range(3):
        copy = tmp_path / f"copy{i}.pem"
        shutil.copy(pair.certificate, copy)
        text = server.config.read_text()
        server.config.write_text(text.replace(path, str(copy)))
        server.tell(signal.SIGHUP)
        wait_until(lambda copy=copy: [labels["file"] for labels, _ in parse(server.get("/metrics").text).all(FILE + "usable")] == [str(copy)], "the metrics")
        path = str(copy)


def test_key_with_a_problem_is_not_named(start, authority):
    pair = authority.issue(["a.example"], days=80)
    server = start(host("a.example", pair))
    wait_for_list(server, len)
    pair.key.write_text("nonsense")
    server.allow("key|PEM")
    row, = wait_for_list(server, lambda rows: rows[0]["error"])
    assert str(pair.key) not in json.dumps(row)


def test_unusable_file_has_its_error(start, authority):
    pair = authority.issue(["a.example"], days=80)
    server = start(host("a.example", pair))
    wait_for_list(server, len)
    pair.certificate.write_text("nonsense")
    row, = wait_for_list(server, lambda rows: rows[0]["error"])
    assert "contains no certificate" in row["error"]["text"] and row["needs_attention"]
    wait_until(lambda: family(server, FILE + "usable") == {"a.example": 0}, "the metrics")
    assert family(server, FILE + "expiry_timestamp_seconds") == {}
    server.allow("contains no certificate")


def test_server_without_certificates(monkey, site):
    site.add("index.html", "hello")
    server = monkey(plugins=["metrics"], top=KEYS)
    assert wait_for_list(server, lambda rows: rows == []) == []
    assert FILE not in server.get("/metrics").text and server.get("/live?certificates").text == "[]"


def test_reading_process_exits(start, authority):
    server = start(host("a.example", authority.issue(["a.example"], days=80)), workers=1)
    wait_for_list(server, len)
    children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 1, "the process has exited")


def test_five_hundred_certificates(start, authority):
    pairs = [authority.issue([f"h{i}.example"], days=60 + i % 7, file=f"h{i}") for i in range(500)]
    server = start("".join(host(f"h{i}.example", pair) for i, pair in enumerate(pairs)))
    rows = wait_for_list(server, len)
    assert len(rows) == 500 and [r["not_after"] for r in rows] == sorted(r["not_after"] for r in rows)
    assert len(family(server, FILE + "usable")) == 500


@acme_only
def test_renewal_and_failure_of_acme(start, authority, tmp_path):
    """The helper cannot reach the authority, and records the failure while the server runs."""
    state = tmp_path / "state"
    server = start("[HOST]\n    ServerName acme.example\n    DocumentRoot site\n" + host("a.example", authority.issue(["a.example"], days=80)),
                   plugins=["acme"], top=f"""
[ACME]
    AgreeToTerms on
    Directory https://127.0.0.1:9/directory
    StateFolder {state}
""")
    rows = wait_for_list(server, lambda rows: any(row["renewal"] and row["renewal"]["failures"] for row in rows))
    row, = [row for row in rows if row["renewal"]]
    assert row["names"] == ["acme.example"] and row["needs_attention"] and row["renewal"]["last_failure"]
    assert family(server, "monkey_tls_certificate_renewal_failures") == {"acme.example": 1, "a.example": 0}
    at = family(server, "monkey_tls_certificate_next_attempt_timestamp_seconds")
    assert at == {"acme.example": row["renewal"]["next_attempt"]} and at["acme.example"] > time.time()
    for name in ("failures", "renewal"):
        (state / name).mkdir(exist_ok=True)
    new = state / "renewal" / ".new"
    new.write_text('{"next": 4000000000}')
    new.rename(state / "renewal" / "acme.example.json")
    wait_for_list(server, lambda rows: any(row["renewal"] and row["renewal"]["next"] == 4_000_000_000 for row in rows))
    wait_until(lambda: family(server, "monkey_tls_certificate_next_renewal_timestamp_seconds") == {"acme.example": 4_000_000_000}, "the metrics")
    server.err.wait_for("127.0.0.1")


@acme_only
@pytest.mark.parametrize("content", ["fifo", "link", "huge", "nonsense"])
def test_hostile_state_does_not_stop_the_list(start, authority, tmp_path, content):
    """The workers' user can write to the folder; the master reads it."""
    state = tmp_path / "state"
    for name in ("certificates", "failures", "renewal"):
        (state / name).mkdir(parents=True)
    state.chmod(0o700)
    file = state / "renewal" / "acme.example.json"
    if content == "fifo":
        os.mkfifo(file)
    elif content == "link":
        file.symlink_to("/dev/zero")
    else:
        file.write_bytes(b"x" * 50_000_000 if content == "huge" else b'{"next": "\xff')
    server = start("[HOST]\n    ServerName acme.example\n    DocumentRoot site\n" + host("a.example", authority.issue(["a.example"], days=80)),
                   plugins=["acme"], top=f"[ACME]\n    AgreeToTerms on\n    Directory https://127.0.0.1:9/directory\n    StateFolder {state}\n")
    rows = wait_for_list(server, len)
    assert {row["renewal"]["damaged_state"] for row in rows if row["renewal"]} == {"renewal"}
    server.err.wait_for("127.0.0.1")


# ---- The page ----

@pytest.fixture
def page(tmp_path):
    if not browser.FOUND:
        pytest.skip("no chromium here")
    with browser.Browser(tmp_path) as found:
        yield found


@pytest.mark.parametrize("width", [360, 1200])
def test_page_shows_certificates(start, authority, page, width):
    names = [f"a-rather-long-name-{i}.soon.example" for i in range(9)]
    soon, late = authority.issue(names, days=4.5, since=60), authority.issue(["late.example"], days=79.5)
    server = start(host(names[0], soon) + host("late.example", late))
    wait_for_list(server, len)
    page.look(width=width, height=800, mobile=width < 500)
    page.goto(server.url + "/live")
    page.wait_for("document.querySelectorAll('#certificates tbody tr').length == 2")
    cells = page.run("[...document.querySelectorAll('#certificates tbody tr')].map(row => [...row.cells].map(c => c.textContent))")
    assert cells[0][0].startswith(names[0]) and cells[0][0].endswith("+6") and cells[1][0] == "late.example"
    assert cells[0][1].startswith("in 4 d") and cells[1][1].startswith("in 79 d") and cells[1][2] == "–" and cells[1][3] == "test authority"
    assert page.run("[...document.querySelectorAll('#certificates .dot')].map(c => c.className)") == ["text dot down", "text dot up"]
    assert page.run("document.querySelector('#certificates-part .note').textContent") == "1 of 2 needs attention. "
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "no horizontal scrolling"
    assert page.run("document.querySelectorAll('#certificates thead th')[1].getBoundingClientRect().right <= innerWidth - 12")
    assert not page.console


def test_page_hides_the_table_without_certificates(monkey, site, page):
    site.add("index.html", "hello")
    server = monkey(plugins=["metrics"], top=KEYS)
    page.goto(server.url + "/live")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
    assert page.run("document.querySelector('#certificates-part').hidden")
