# SPDX-License-Identifier: Apache-2.0
"""Certificates change while the server runs, without interrupting connected clients."""
import contextlib
import os
import re
import shutil
import signal
import ssl
import time

import pytest

from load import Load
from proc import status, wait_until
from tls_server import PLUGIN, keys
from sockets import dial

pytestmark = pytest.mark.processes("an embedded server does not reload")

TAKEN = "the new configuration serves"


@pytest.fixture
def start(secure, authority):
    def run(**how):
        server = secure(keys(authority.issue()), **how)
        server.load = lambda: Load(server.server, content=b"hello", tls=authority.client_context(alpn=["http/1.1"]))
        return server

    return run


def test_reload_changes_certificates_without_losing_requests(start, authority):
    server = start(workers=2)
    with server.load() as load:
        for n in range(3):
            pair = authority.issue()
            server.server.tell(signal.SIGHUP)
            server.server.err.wait_for(TAKEN, count=n + 1)
            wait_until(lambda: server.shown() == pair.serial, "the new certificate is served")  # the server may reload by itself
            load.more(3)
        load.check()


def test_changed_files_are_reloaded_without_losing_requests(start, authority):
    server = start(workers=2)
    with server.load() as load:
        for n in range(2):
            load.more(3)
            pair = authority.issue()
            server.server.err.wait_for(TAKEN, count=n + 1)
            assert server.shown() == pair.serial
        load.more(3).check()
    assert "watched files have changed: reloading the configuration" in server.server.err.text


def test_open_connection_survives_a_change_of_certificates(start, authority):
    server = start()
    with server.connect() as c:
        c.get("/")
        authority.issue()
        server.server.err.wait_for(TAKEN)
        assert c.get("/").text == "hello"


def test_replaced_link_is_noticed(secure, authority, tmp_path):
    """As with certbot, live/NAME.pem is a symbolic link into archive/ that is replaced."""
    def archive(n):
        pair = authority.issue(file=f"archive{n}")
        for kind, file in (("pem", pair.certificate), ("key", pair.key)):
            link = tmp_path / f"next.{kind}"
            link.symlink_to(file)
            link.rename(tmp_path / f"live.{kind}")
        return pair

    first = archive(1)
    server = secure("Certificate live.pem live.key")
    assert server.shown() == first.serial
    second = archive(2)
    server.server.err.wait_for(TAKEN)
    assert server.shown() == second.serial


def test_replaced_folder_link_is_noticed(secure, authority, tmp_path):
    """As in Kubernetes, the file is a link that leads through another link to a folder; only the second link is replaced."""
    def version(n):
        pair = authority.issue()
        folder = tmp_path / f"v{n}"
        folder.mkdir()
        shutil.move(pair.certificate, folder / "tls.crt")
        shutil.move(pair.key, folder / "tls.key")
        (tmp_path / "next").symlink_to(folder)
        (tmp_path / "next").rename(tmp_path / "data")
        return pair

    version(1)
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"data/{name}")
    server = secure("Certificate tls.crt tls.key")
    second = version(2)
    server.server.err.wait_for(TAKEN)
    assert server.shown() == second.serial


KEPT = "the server keeps using the certificate loaded previously until it is restarted"


def test_broken_file_keeps_the_certificate_of_its_host(start, authority):
    server = start()
    before = server.shown()
    pair = authority.issue(file="other")
    live = server.authority.folder / "localhost-ec.pem"
    shutil.copy(pair.certificate, live)  # the old key stays
    server.server.err.wait_for(TAKEN)
    assert f"the key does not belong to the certificate in {live}" in server.server.err.text
    assert re.search(rf"monkey.conf:4:\d+: .*{KEPT}", server.server.err.text)
    assert server.shown() == before
    live.write_text("nothing")
    server.server.err.wait_for(TAKEN, count=2)
    assert server.server.err.text.count(KEPT) == 2
    assert server.shown() == before
    shutil.copy(pair.key, live.with_suffix(".key"))
    shutil.copy(pair.certificate, live)
    server.server.err.wait_for(TAKEN, count=3)
    wait_until(lambda: server.shown() == pair.serial, "the new certificate is served")


@pytest.mark.parametrize("suffix", [".pem", ".key"])
def test_missing_file_keeps_the_certificate_of_its_host(start, suffix):
    server = start()
    before = server.shown()
    (server.authority.folder / "localhost-ec.pem").with_suffix(suffix).unlink()
    for n in (1, 2):  # the second reload keeps the same certificate again
        server.server.err.wait_for(TAKEN, count=n)
        assert server.server.err.text.count(KEPT) == n
        assert server.shown() == before
        server.server.tell(signal.SIGHUP)


@pytest.mark.parametrize("broken", ["a", "b"])
def test_broken_file_does_not_block_certificates_of_other_hosts(secure, authority, broken):
    pairs = {name: authority.issue([f"{name}.example"]) for name in "ab"}
    server = secure(plugins=["metrics"], root=None, sections="".join(f"""
[HOST]
    ServerName {name}.example
    DocumentRoot site
    {keys(pair)}
[ROUTES]
    /metrics metrics
    /* static
""" for name, pair in pairs.items()))
    other = "b" if broken == "a" else "a"
    pairs[broken].certificate.write_text("nothing")
    fresh = authority.issue([f"{other}.example"])
    server.server.err.wait_for(KEPT)
    server.server.err.wait_for(TAKEN)
    wait_until(lambda: server.shown(f"{other}.example") == fresh.serial, "the new certificate is served")
    assert server.shown(f"{broken}.example") == pairs[broken].serial
    text = server.get("/metrics", f"{other}.example").text
    assert 'monkey_tls_certificate_problems{problem="kept"} 1\n' in text
    assert "monkey_config_last_reload_successful 1\n" in text


def test_broken_file_of_one_key_type_keeps_only_that_certificate(secure, authority):
    ec, rsa = authority.issue(["localhost"], kind="ec"), authority.issue(["localhost"], kind="rsa")
    server = secure(keys(ec, rsa))
    ec.certificate.write_text("nothing")
    server.server.err.wait_for(KEPT)
    server.server.err.wait_for(TAKEN)
    fresh = authority.issue(["localhost"], kind="rsa")

    def shown(ciphers):
        context = authority.client_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(ciphers)
        return server.shown(context=context)

    wait_until(lambda: shown("ECDHE-RSA-AES128-GCM-SHA256") == fresh.serial, "the new certificate is served")
    assert shown("ECDHE-ECDSA-AES128-GCM-SHA256") == ec.serial


def test_broken_staple_keeps_the_certificate_with_the_staple(secure, authority):
    pair = authority.issue()
    answer = authority.answer_about(pair)
    server = secure(keys(pair, extra=f" {answer}"))
    answer.write_bytes(b"nothing")
    server.server.err.wait_for(KEPT)
    server.server.err.wait_for(TAKEN)
    assert server.shown() == pair.serial


def test_start_with_a_broken_file_fails(start, secure, authority, run):
    server = start()
    (server.authority.folder / "localhost-ec.key").unlink()
    server.server.err.wait_for(TAKEN)
    done = run("-t", "-c", server.server.config)
    assert done.code == 3 and "cannot read the key" in done.err


def test_broken_file_is_reported_once(start, authority):
    """A reload that kept the old certificate is not repeated until a file changes."""
    server = start()
    (server.authority.folder / "localhost-ec.pem").write_text("nothing")
    server.server.err.wait_for(TAKEN)
    time.sleep(5)  # the server checks the files twice in this time
    assert server.server.err.text.count("watched files have changed") == 1
    pair = authority.issue()
    server.server.err.wait_for(TAKEN, count=2)
    wait_until(lambda: server.shown() == pair.serial, "the new certificate is served")


def test_ocsp_responses_and_client_authorities_are_watched(secure, authority, tmp_path):
    pair = authority.issue()
    answer = authority.answer_about(pair)
    shutil.copy(authority.file, tmp_path / "clients.pem")
    server = secure(keys(pair, extra=f" {answer}") + "ClientCertificates optional\nClientAuthority clients.pem")
    authority.answer_about(pair, days=3)
    server.server.err.wait_for(TAKEN)
    shutil.copy(authority.file, tmp_path / "clients.pem")
    server.server.err.wait_for(TAKEN, count=2)


# Certificates from plugins

def test_plugin_adds_a_certificate_later(secure, authority, tmp_path):
    own = authority.issue(["localhost", "late.example"])
    server = secure(keys(own), plugins=[str(PLUGIN)], sections=f"""
[HOST]
    ServerName late.example
    DocumentRoot site
[ENCRYPTED]
    Bring {tmp_path}/late.pem
    BringKey {tmp_path}/late.key
""")
    assert server.shown("late.example") == own.serial
    pair = authority.issue(["late.example"])
    shutil.copy(pair.key, tmp_path / "late.key")
    shutil.copy(pair.certificate, tmp_path / "late.pem")
    server.server.err.wait_for(TAKEN)
    assert server.shown("late.example") == pair.serial
    assert server.shown() == own.serial
    (tmp_path / "late.pem").write_text("broken")
    server.server.err.wait_for(TAKEN, count=2)
    assert "late.pem: it contains no certificate" in server.server.err.text and KEPT in server.server.err.text
    assert server.shown("late.example") == pair.serial


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_links_in_the_folder_of_a_plugin_are_not_followed(secure, authority, tmp_path, link):
    """The master reads the folder with its own privileges, although other users may write to it."""
    own, secret = authority.issue(["localhost", "late.example"]), authority.issue(["late.example"])
    both = tmp_path / "secret.pem"
    both.write_bytes(secret.certificate.read_bytes() + secret.key.read_bytes())
    server = secure(keys(own), plugins=[str(PLUGIN)], sections=f"""
[HOST]
    ServerName late.example
    DocumentRoot site
[ENCRYPTED]
    Bring {tmp_path}/late.pem
""")
    link(both, tmp_path / "late.pem")
    server.server.err.wait_for(TAKEN)
    assert "the certificate is not used" in server.server.err.text
    assert server.shown("late.example") == own.serial


def test_server_starts_without_certificates_if_a_plugin_adds_one(secure, authority, tmp_path):
    server = secure(plugins=[str(PLUGIN)], sections=f"""
[ENCRYPTED]
    Bring {tmp_path}/late.pem
    BringKey {tmp_path}/late.key
""")
    with pytest.raises(OSError):
        server.connect()
    pair = authority.issue()
    shutil.copy(pair.key, tmp_path / "late.key")
    shutil.copy(pair.certificate, tmp_path / "late.pem")
    server.server.err.wait_for(TAKEN)
    assert server.shown() == pair.serial


def test_tls_alpn_challenge_is_answered(secure, authority, tmp_path):
    """tls-alpn-01: a client that requests this protocol immediately gets the certificate in the folder, without a
    reload."""
    folder = tmp_path / "challenges"
    folder.mkdir()
    server = secure(plugins=[str(PLUGIN)], sections=f"\n[ENCRYPTED]\n    Bring {tmp_path}/late.pem\n    Challenges {folder}\n")
    pair = authority.issue(["new.example"])
    context = authority.client_context(alpn=["acme-tls/1"])
    with pytest.raises(OSError):
        server.connect("new.example", context).close()
    (folder / "new.example.pem").write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
    with contextlib.closing(dial(server.server.addresses[0], 10, tls=context, server_name="new.example")) as sock:
        assert sock.protocol == "acme-tls/1"
        assert sock.facts.getpeercert()["serialNumber"].lstrip("0") == pair.serial


# Privileges, daemon mode, and upgrades of the program

@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
def test_workers_use_a_key_that_only_root_can_read(start, authority, secure, site, tmp_path):
    site.path.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o711)
    pair = authority.issue()
    pair.key.chmod(0o600)
    pair.key.parent.chmod(0o700)
    server = secure(keys(pair) + "User nobody")
    assert status(server.server.workers[0])["Uid"].split()[0] != "0"
    assert server.get("/").text == "hello"
    fresh = authority.issue()
    server.server.err.wait_for(TAKEN)
    assert server.shown() == fresh.serial


def test_upgraded_program_serves_tls(start, watch, authority):
    server = start(workers=2)
    with server.load() as load:
        load.more(3)
        server.server.tell(signal.SIGUSR2)
        new = int(server.server.err.wait_for(r"the new program is process (\d+)")[1])
        process = watch(new)
        server.server.err.wait_for(rf"{new}: monkey \S+ serves with")
        load.more(3).check()
    assert server.server.process.wait(30) == 0
    assert server.get("/").text == "hello"
    process.tell(signal.SIGTERM)
    process.wait()


def test_reload_switches_a_listener_between_plain_and_tls(secure, authority):
    pair = authority.issue()
    server = secure(keys(pair), listen="127.0.0.1:0")
    config = server.server.config
    assert server.server.get("/").text == "hello"
    config.write_text(config.read_text().replace("127.0.0.1:0", "127.0.0.1:0 tls"))
    server.server.tell(signal.SIGHUP)
    server.server.err.wait_for(TAKEN)
    assert server.get("/").text == "hello"
    config.write_text(config.read_text().replace("127.0.0.1:0 tls", "127.0.0.1:0"))
    server.server.tell(signal.SIGHUP)
    server.server.err.wait_for(TAKEN, count=2)
    assert server.server.connect(tls=None).get("/").text == "hello"
