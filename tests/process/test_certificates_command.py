# SPDX-License-Identifier: Apache-2.0
"""`monkey certificates` lists the certificates of a configuration without a running server."""
import json
import os
import pwd
import re
import subprocess
import time

import pytest

from certificates import make_authority
from monkey import PROGRAM, SECONDS

pytestmark = [pytest.mark.over("h1", why="the command reads files, and sends nothing"),
              pytest.mark.skipif(not (PROGRAM.parent / "plugins" / "monkey-tls.so").exists(), reason="built without TLS")]

HEAD = "[SERVER]\n    Listen 127.0.0.1:2443 tls\n    Workers 1\n"
HOST = "[HOST]\n    ServerName {name}\n    DocumentRoot site\n    Certificate {certificate} {key}\n"
DAY = 86400

KEYS = {"names": list, "issuer": (str, type(None)), "not_before": (int, type(None)), "not_after": (int, type(None)),
        "days_left": (int, type(None)), "key_type": (str, type(None)), "file": str, "key_file": (str, type(None)),
        "ocsp_file": (str, type(None)), "configured_at": str, "needs_attention": bool, "error": (dict, type(None)), "warning": (dict, type(None)),
        "renewal": (dict, type(None))}
RENEWAL = {"next": (int, type(None)), "last_failure": (str, type(None)), "failures": int, "next_attempt": (int, type(None)),
           "damaged_state": (str, type(None))}


def check_schema(report):
    assert set(report) == {"now", "certificates"} and isinstance(report["now"], int)
    for row in report["certificates"]:
        assert set(row) == set(KEYS)
        assert all(isinstance(row[key], kind) for key, kind in KEYS.items()), row
        if row["renewal"] is not None:
            assert set(row["renewal"]) == set(RENEWAL)
            assert all(isinstance(row["renewal"][key], kind) for key, kind in RENEWAL.items()), row


class Inventory:
    def __init__(self, folder):
        self.folder = folder
        self.authority = make_authority(folder / "tls")
        (folder / "site").mkdir()

    def host(self, name, pair, more=""):
        return HOST.format(name=name, certificate=pair.certificate, key=pair.key) + more

    def run(self, config, *words):
        (self.folder / "monkey.conf").write_text(config)
        return subprocess.run([PROGRAM, "-c", self.folder / "monkey.conf", "certificates", *words], capture_output=True, text=True,
                              timeout=SECONDS, check=False)

    def rows(self, config, *words, code=0):
        done = self.run(config, "--json", *words)
        assert done.returncode == code, done.stdout + done.stderr
        report = json.loads(done.stdout)
        check_schema(report)
        return report["certificates"]


@pytest.fixture
def inventory(tmp_path):
    return Inventory(tmp_path)


def test_rows_have_all_properties_and_are_sorted_by_expiry(inventory):
    late = inventory.authority.issue(["late.example", "*.late.example", "192.0.2.7", "2001:db8::7"], days=80)
    soon = inventory.authority.issue(["soon.example"], kind="rsa", days=40)
    rows = inventory.rows(HEAD + inventory.host("late.example", late) + inventory.host("soon.example", soon))
    assert [row["names"] for row in rows] == [["soon.example"], ["late.example", "*.late.example", "192.0.2.7", "2001:db8::7"]]
    assert [row["key_type"] for row in rows] == ["RSA 2048", "ECDSA P-256"]
    assert rows[0]["days_left"] in (39, 40) and rows[1]["days_left"] in (79, 80)
    assert [row["not_after"] for row in rows] == [int(p.x509.not_valid_after_utc.timestamp()) for p in (soon, late)]
    assert rows[0]["issuer"] == "CN=test authority,O=tests"
    assert [(row["file"], row["key_file"]) for row in rows] == [(str(p.certificate), str(p.key)) for p in (soon, late)]
    assert rows[1]["configured_at"].endswith("monkey.conf:7") and rows[0]["configured_at"].endswith("monkey.conf:11")
    assert all(row["error"] is row["warning"] is None and row["renewal"] is None and not row["needs_attention"] for row in rows)


def test_text_has_a_row_for_each_certificate(inventory):
    pair = inventory.authority.issue([f"host{i}.example" for i in range(9)], days=80)
    done = inventory.run(HEAD + inventory.host("host0.example", pair))
    head, row = done.stdout.splitlines()
    assert done.returncode == 0 and done.stderr == ""
    assert head.split() == ["EXPIRES", "(UTC)", "LEFT", "KEY", "ISSUER", "NAMES", "FILE"]
    assert row.startswith(pair.x509.not_valid_after_utc.strftime("%Y-%m-%d %H:%M"))
    assert re.search(r"  (79|80) days    ECDSA P-256  test authority  ", row) and "  host0.example host1.example +7  " in row
    assert row.endswith(str(pair.certificate))


def test_no_certificates(inventory):
    done = inventory.run("[SERVER]\n    Listen 2001\n[HOST]\n    DocumentRoot site\n")
    assert (done.returncode, done.stdout) == (0, "The configuration has no certificates.\n")
    assert inventory.rows("[SERVER]\n    Listen 2001\n[HOST]\n    DocumentRoot site\n") == []


def test_inherited_certificate_is_listed_once(inventory):
    pair = inventory.authority.issue(["*.example"], days=80)
    hosts = "".join(f"[HOST]\n    ServerName h{i}.example\n    DocumentRoot site\n" for i in range(3))
    rows = inventory.rows(f"{HEAD}    Certificate {pair.certificate} {pair.key}\n{hosts}")
    assert [row["names"] for row in rows] == [["*.example"]]


def test_ocsp_file_is_listed_and_checked(inventory):
    pair = inventory.authority.issue(["a.example"], days=80)
    answer = inventory.authority.answer_about(pair)
    config = HEAD + inventory.host("a.example", pair).rstrip("\n") + f" {answer}\n"
    assert [row["ocsp_file"] for row in inventory.rows(config)] == [str(answer)]
    answer.write_bytes(b"nonsense")
    row, = inventory.rows(config, code=1)
    assert row["error"]["file"] == str(answer) and row["names"] == ["a.example"]


@pytest.mark.parametrize("days, words, code", [
    (30, [], 0), (13, [], 1), (13, ["--days", "5"], 0), (13, ["--days=13"], 1), (30, ["--days", "31"], 1), (-1, ["--days", "0"], 1),
    (1, ["--days", "0"], 0),
])
def test_exit_code_tells_whether_a_certificate_expires_soon(inventory, days, words, code):
    pair = inventory.authority.issue(["a.example"], days=days, since=60)
    row, = inventory.rows(HEAD + inventory.host("a.example", pair), *words, code=code)
    assert row["needs_attention"] == (code == 1)


@pytest.mark.parametrize("days, code", [(6, 0), (1, 1)])
def test_short_lived_certificates_have_a_third_of_their_lifetime(inventory, days, code):
    pair = inventory.authority.issue(["a.example"], days=days, since=6 - days)
    inventory.rows(HEAD + inventory.host("a.example", pair), code=code)


def test_expired_and_early_certificates(inventory):
    old = inventory.authority.issue(["old.example"], days=-3)
    early = inventory.authority.issue(["early.example"], days=80, since=-5)
    rows = inventory.rows(HEAD + inventory.host("early.example", early) + inventory.host("old.example", old), code=1)
    assert [row["names"][0] for row in rows] == ["old.example", "early.example"]
    assert rows[0]["days_left"] == -4 or rows[0]["days_left"] == -3
    assert "expired on" in rows[0]["warning"]["text"] and "is not valid before" in rows[1]["warning"]["text"]
    assert all(row["needs_attention"] for row in rows)
    assert "  expired    " in inventory.run((inventory.folder / "monkey.conf").read_text()).stdout


@pytest.mark.parametrize("damage, text", [
    (lambda pair: pair.certificate.unlink(), "No such file"),
    (lambda pair: pair.certificate.write_text("nonsense"), "contains no certificate"),
    (lambda pair: pair.certificate.write_bytes(pair.certificate.read_bytes()[:300]), "the certificate is invalid"),
    (lambda pair: pair.certificate.write_bytes(b""), "the file is empty"),
    (lambda pair: (pair.certificate.unlink(), pair.certificate.mkdir()), "Is a directory"),
])
def test_unusable_certificate_is_a_row_with_an_error(inventory, damage, text):
    good = inventory.authority.issue(["good.example"], days=80)
    bad = inventory.authority.issue(["bad.example"], days=80)
    damage(bad)
    config = HEAD + inventory.host("bad.example www.bad.example", bad) + inventory.host("good.example", good)
    rows = inventory.rows(config, code=1)
    assert [row["names"] for row in rows] == [["bad.example", "www.bad.example"], ["good.example"]]
    assert text in rows[0]["error"]["text"] and rows[0]["error"]["file"] == str(bad.certificate)
    assert rows[0]["not_after"] is None and rows[1]["error"] is None
    assert "unusable" in inventory.run(config).stdout


def test_unusable_key_leaves_the_properties_of_the_certificate(inventory):
    bad = inventory.authority.issue(["bad.example", "www.bad.example"], days=80)
    bad.key.write_bytes(inventory.authority.issue(["other.example"]).key.read_bytes())
    row, = inventory.rows(HEAD + inventory.host("bad.example", bad), code=1)
    assert row["names"] == ["bad.example", "www.bad.example"] and row["days_left"] in (79, 80)
    assert row["error"]["file"] == str(bad.key)


def test_warning_does_not_change_the_exit_code(inventory):
    pair = inventory.authority.issue(["a.example"], days=80)
    pair.key.chmod(0o644)
    row, = inventory.rows(HEAD + inventory.host("a.example", pair))
    assert row["warning"] == {"file": str(pair.key), "text": "others can read the key: expected mode 0600, not 0644"}
    assert row["error"] is None and not row["needs_attention"]


def test_hostile_names_are_escaped(inventory):
    pair = inventory.authority.issue(["a\x1b[31m.example", "b\n.example"], days=80, file="hostile")
    config = HEAD + inventory.host("a.example", pair)
    done = inventory.run(config)
    assert "\x1b" not in done.stdout and "a\\x1b[31m.example" in done.stdout and len(done.stdout.splitlines()) == 2
    assert inventory.rows(config)[0]["names"] == ["a\x1b[31m.example", "b\n.example"]


def test_five_hundred_hosts(inventory):
    pairs = [inventory.authority.issue([f"h{i}.example"], days=60 + i % 7, file=f"h{i}") for i in range(500)]
    rows = inventory.rows(HEAD + "".join(inventory.host(f"h{i}.example", pair) for i, pair in enumerate(pairs)))
    assert len(rows) == 500 and [r["not_after"] for r in rows] == sorted(r["not_after"] for r in rows)


@pytest.mark.parametrize("words", [["--days"], ["--days", "x"], ["--days=-1"], ["--days=99999999999999999999"], ["--what"], ["extra"]])
def test_usage_errors(inventory, words):
    done = inventory.run(HEAD, *words)
    assert done.returncode == 2 and done.stdout == "" and done.stderr


def test_configuration_error(inventory):
    done = inventory.run(HEAD + "[HOST]\n    Nonsense on\n")
    assert done.returncode == 3 and "monkey.conf:5" in done.stderr


# ---- Certificates of acme ----

ACME = """[SERVER]
    Listen 127.0.0.1:2443 tls
    Listen 127.0.0.1:2080
    Workers 1
{user}[PLUGINS]
    Load acme
[ACME]
    AgreeToTerms on
    StateFolder {folder}/state
[HOST]
    ServerName {names}
    DocumentRoot site
"""

acme_only = pytest.mark.skipif(not (PROGRAM.parent / "plugins" / "monkey-acme").exists(), reason="built without acme")


class State:
    def __init__(self, inventory):
        self.inventory = inventory
        self.folder = inventory.folder / "state"
        for name in ("certificates", "failures", "renewal"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o700)
        self.user = f"    User {pwd.getpwuid(os.getuid()).pw_name}\n"

    def install(self, name, days=80):
        pair = self.inventory.authority.issue([name], days=days)
        file = self.folder / "certificates" / f"{name.replace('*', '_wildcard')}.pem"
        file.write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
        file.chmod(0o600)

    def write(self, folder, name, **members):
        (self.folder / folder / f"{name}.json").write_text(json.dumps(members))

    def row(self, names="a.example", code=0):
        row, = self.inventory.rows(ACME.format(folder=self.inventory.folder, names=names, user=self.user), code=code)
        return row

    def text(self, names="a.example"):
        return self.inventory.run(ACME.format(folder=self.inventory.folder, names=names, user=self.user)).stdout


@pytest.fixture
def state(inventory):
    return State(inventory)


@acme_only
def test_acme_certificate_has_its_next_renewal(state):
    state.install("a.example")
    at = int(time.time()) + 50 * DAY
    state.write("renewal", "a.example", certificate="x", url="https://ca.example/", start=1, end=2, at=at - 1, check=3, next=at)
    row = state.row()
    assert row["renewal"] == {"next": at, "last_failure": None, "failures": 0, "next_attempt": None, "damaged_state": None}
    assert f"    next renewal: {time.strftime('%Y-%m-%d %H:%M', time.gmtime(at))}\n" in state.text()


@acme_only
def test_acme_certificate_that_was_not_obtained_yet(state):
    row = state.row("a.example www.a.example")
    assert row["names"] == ["a.example", "www.a.example"] and row["error"] is None and not row["needs_attention"]
    assert "  pending  " in state.text() and "  failed  " not in state.text()


@acme_only
@pytest.mark.parametrize("installed", [True, False])
def test_acme_failure(state, installed):
    if installed:
        state.install("a.example")
    retry = int(time.time()) + 3600
    why = 'the authority says "no\x1b[2J", \u00e4'
    state.write("failures", "a.example", what="x", failures=3, until=retry, why=why)
    row = state.row(code=1)
    assert row["renewal"] == {"next": None, "last_failure": why, "failures": 3, "next_attempt": retry, "damaged_state": None}
    assert row["needs_attention"] and row["error"] is None
    text = state.text()
    assert '    last failure: the authority says "no\\x1b[2J", ' in text and "    next attempt: " in text
    assert ("  failed  " in text) == (not installed) and "  pending  " not in text


@acme_only
def test_acme_failure_of_the_account_concerns_missing_certificates(state):
    state.write("failures", "_account", what="x", failures=1, until=5, why="the account is blocked")
    assert state.row(code=1)["renewal"]["last_failure"] == "the account is blocked"
    state.install("a.example")
    assert state.row()["renewal"]["last_failure"] is None


@acme_only
@pytest.mark.parametrize("folder", ["failures", "renewal"])
@pytest.mark.parametrize("content", [b"", b"{", b"nonsense", b'{"why": [1]}', b'{"why": "a', b'{"why": "\\ud8"}', b'{"why": 1} x', b"\0" * 100,
                                     b"x" * 5_000_000], ids=range(9))
def test_damaged_state_is_reported_in_the_row(state, folder, content):
    state.install("a.example")
    (state.folder / folder / "a.example.json").write_bytes(content)
    assert state.row(code=1)["renewal"]["damaged_state"] == folder


@acme_only
def test_links_in_the_state_folder_are_not_followed(state, inventory):
    state.install("a.example")
    secret = inventory.folder / "secret.json"
    secret.write_text('{"why": "secret"}')
    os.symlink(secret, state.folder / "failures" / "a.example.json")
    row = state.row(code=1)
    assert row["renewal"]["last_failure"] is None and row["renewal"]["damaged_state"] == "failures"


@acme_only
@pytest.mark.parametrize("name", ["certificates", "failures"])
def test_links_in_place_of_a_state_folder_are_not_followed(state, inventory, name):
    """The workers' user owns the state folder, and must not read files of root through the master."""
    state.install("a.example")
    state.write("failures", "a.example", why="secret", failures=1, until=1)
    (state.folder / name).rename(inventory.folder / "outside")
    os.symlink(inventory.folder / "outside", state.folder / name)
    row = state.row(code=1)
    if name == "certificates":
        assert "cannot read the certificate" in row["error"]["text"] and row["not_after"] is None
    else:
        assert row["renewal"]["last_failure"] is None and row["renewal"]["damaged_state"] == "failures"
