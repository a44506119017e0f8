# SPDX-License-Identifier: Apache-2.0
"""The local CA: it is created once, is private to its user, and is valid for every name for which it issues a certificate."""
import os
import re
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from local_authority import DAY, HAS_TLS, State, machine_addresses, names_of, now
from monkey import ENVIRONMENT, PROGRAM

FINE, FAILED, USAGE = 0, 1, 2
pytestmark = pytest.mark.skipif(not HAS_TLS, reason="built without TLS")
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can")


@pytest.fixture
def state(tmp_path):
    return State(tmp_path / "state")


@pytest.fixture
def authority(run, state):
    """Runs `monkey ca`."""
    return lambda **how: run("ca", **{"environment": state.environment} | how)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def verify(state, *flags):
    return subprocess.run(["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile",
                           state.authority_file, *flags, state.leaf_file], capture_output=True, text=True, check=False)


# Output and created files

def test_authority_prints_path_fingerprint_and_trust_steps(authority, state):
    done = authority()
    assert (done.code, done.err) == (FINE, "")
    assert done.out.splitlines()[0] == str(state.authority_file)
    assert f"SHA-256 {state.fingerprint}\n" in done.out
    for word in (f"curl --cacert {state.authority_file}", "update-ca-certificates", "add-trusted-cert", "Firefox",
                 "Chrome"):
        assert word in done.out


def test_authority_prints_shell_quoted_paths(authority, tmp_path):
    odd = State(tmp_path / "it's \"$HOME\" and `more`")
    done = authority(environment=odd.environment)
    assert done.code == FINE and done.out.splitlines()[0] == str(odd.authority_file)
    command = re.search(r"--cacert (.*) https://", done.out)[1]
    output = subprocess.run(["sh", "-c", f"printf %s {command}"], capture_output=True, text=True, check=True).stdout
    assert output == str(odd.authority_file)


def test_authority_is_created_only_once(authority, state):
    first = authority()
    key, leaf = state.key.read_bytes(), state.leaf_file.read_bytes()
    assert authority().out == first.out
    assert (state.key.read_bytes(), state.leaf_file.read_bytes()) == (key, leaf)


def test_authority_key_is_private_regardless_of_umask(authority, state):
    old = os.umask(0)
    try:
        authority()
    finally:
        os.umask(old)
    assert (mode(state.folder), mode(state.key), mode(state.leaf_file)) == (0o711, 0o600, 0o600)
    assert mode(state.authority_file) == 0o644
    assert "PRIVATE" not in state.authority_file.read_text()
    assert sorted(p.name for p in state.folder.iterdir()) == ["ca.crt", "ca.key", "server.pem"]


def test_authority_creates_missing_parent_folders(authority, tmp_path):
    deep = State(tmp_path / "a" / "b" / "c")
    assert authority(environment=deep.environment).code == FINE
    assert (mode(tmp_path / "a"), mode(deep.folder)) == (0o700, 0o711)


def test_authority_certificate_has_name_constraints(authority, state):
    authority()
    made = state.authority
    get = made.extensions.get_extension_for_class
    assert get(x509.BasicConstraints).critical and get(x509.BasicConstraints).value.ca
    assert get(x509.BasicConstraints).value.path_length == 0
    usage = get(x509.KeyUsage).value
    assert usage.key_cert_sign and usage.crl_sign and not usage.digital_signature
    assert isinstance(made.public_key(), ec.EllipticCurvePublicKey) and made.public_key().curve.name == "secp256r1"
    assert get(x509.NameConstraints).critical
    assert abs(made.not_valid_after_utc - now() - 3652 * DAY) < 3 * DAY
    assert socket.gethostname() in made.subject.rfc4514_string()
    assert made.serial_number.bit_length() > 120


def test_leaf_contains_every_name_and_address_of_the_machine(authority, state):
    authority()
    host = socket.gethostname()
    names = names_of(state.leaf)
    assert {"localhost", host.lower(), f"{host.split('.')[0].lower()}.local", "127.0.0.1", "::1"} <= set(names)
    assert machine_addresses() <= set(names)
    assert len(names) == len(set(names))


def test_leaf_is_valid_for_every_name_in_openssl(authority, state):
    authority()
    for name in names_of(state.leaf):
        kind = "-verify_ip" if re.fullmatch(r"[\d.]+|.*:.*", name) else "-verify_hostname"
        done = verify(state, kind, name)
        assert done.returncode == 0, (name, done.stderr)
    assert verify(state, "-verify_hostname", "example.org").returncode != 0
    assert verify(state, "-verify_ip", "10.254.253.252").returncode != 0


def test_leaf_lasts_ninety_days_and_has_no_subject(authority, state):
    authority()
    leaf = state.leaf
    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc <= 90 * DAY
    assert leaf.not_valid_after_utc - now() > 89 * DAY
    assert leaf.subject.rfc4514_string() == ""
    assert list(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        x509.ExtendedKeyUsageOID.SERVER_AUTH]


def test_authority_key_cannot_sign_for_other_names(authority, state):
    authority()
    for name in (x509.DNSName("example.org"), x509.DNSName("www.example.org"), x509.IPAddress(IPv4Address("8.8.8.8"))):
        state.replace_leaf(names=x509.SubjectAlternativeName([name]))
        done = verify(state)
        assert done.returncode != 0 and "permitted subtree violation" in done.stderr, done.stderr


# Location

def test_authority_uses_state_directory_of_service(run, tmp_path):
    folder = State(tmp_path / "one")
    done = run("ca", environment={"STATE_DIRECTORY": f"{folder.folder}:{tmp_path}/two", "MONKEY_STATE": ""})
    assert done.out.splitlines()[0] == str(folder.authority_file)


@pytest.fixture
def as_nobody(run):
    """Runs `monkey ca` as a user with a home, from a copy of the program that this user may run."""
    if subprocess.run([PROGRAM, "-v"], user=65534, capture_output=True, check=False).returncode:
        pytest.skip("others cannot run the program here")
    with TemporaryDirectory(dir="/tmp") as home:
        os.chown(home, 65534, 65534)
        nothing = {"MONKEY_STATE": "", "STATE_DIRECTORY": "", "HOME": home, "XDG_STATE_HOME": ""}
        yield home, lambda **more: run("ca", environment=nothing | more, user=65534, group=65534,
                                       extra_groups=[], folder=home)


@ROOT_ONLY
def test_authority_uses_home_of_user(as_nobody):
    home, authority = as_nobody
    done = authority()
    assert done.out.splitlines()[:1] == [f"{home}/.local/state/monkey/ca.crt"], done
    assert "(nobody)" in done.out
    assert authority(XDG_STATE_HOME=f"{home}/xdg").out.splitlines()[:1] == [f"{home}/xdg/monkey/ca.crt"]
    assert authority(XDG_STATE_HOME="xdg").out == done.out, "which must be ignored"


@ROOT_ONLY
def test_authority_folder_without_write_access_is_an_error(as_nobody):
    home, authority = as_nobody
    done = authority(MONKEY_STATE="/etc/monkey-state")
    check_refused(done, "/etc/monkey-state", "Permission denied", "This folder is for.*MONKEY_STATE")
    kept = Path(home) / "kept"
    assert authority(MONKEY_STATE=str(kept)).code == FINE
    kept.chmod(0o500)
    assert authority(MONKEY_STATE=str(kept)).code == FINE, "nothing needs to be written"
    (kept / "server.pem").write_text("broken")
    check_refused(authority(MONKEY_STATE=str(kept)), kept / "server.pem", "Permission denied", "This folder is for")


# Renewal

@pytest.mark.parametrize("days, renewed", [(58, False), (61, True), (89, True), (200, True), (-2, True)])
def test_leaf_is_renewed_after_two_thirds_of_its_lifetime(authority, state, days, renewed):
    authority()
    old = state.replace_leaf(since=days)
    fingerprint = state.fingerprint
    assert authority().code == FINE
    assert (state.leaf != old) == renewed
    assert verify(state, "-verify_hostname", "localhost").returncode == 0
    assert state.fingerprint == fingerprint


def test_leaf_without_a_name_of_the_machine_is_replaced(authority, state):
    authority()
    state.replace_leaf(names=x509.SubjectAlternativeName([x509.DNSName("localhost")]))
    authority()
    assert machine_addresses() <= set(names_of(state.leaf))


@pytest.mark.parametrize("wrong", ["", "nonsense", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"])
def test_leaf_that_is_broken_is_replaced(authority, state, wrong):
    authority()
    state.leaf_file.write_text(wrong)
    assert authority().code == FINE
    assert verify(state).returncode == 0
    assert mode(state.leaf_file) == 0o600


def test_leaf_readable_by_others_is_replaced(authority, state):
    authority()
    old = state.leaf
    state.leaf_file.chmod(0o644)
    authority()
    assert state.leaf != old and mode(state.leaf_file) == 0o600


def test_leaf_of_lost_authority_is_replaced(authority, state):
    authority()
    old = state.fingerprint
    state.key.unlink()
    authority()
    assert state.fingerprint != old, "the certificate is issued for the new key"
    assert verify(state).returncode == 0


def test_authority_certificate_is_recreated_from_key(authority, state):
    authority()
    text = state.authority_file.read_text()
    state.authority_file.unlink()
    authority()
    assert state.authority_file.read_text() == text
    state.authority_file.write_text("nonsense")
    authority()
    assert state.authority_file.read_text() == text


def test_authority_ignores_leftovers_of_killed_process(authority, state):
    state.folder.mkdir(mode=0o700)
    (state.folder / ".ca.key.new").write_text("half a k")
    assert authority().code == FINE
    assert not (state.folder / ".ca.key.new").exists()


# Symbolic links and races

def test_authority_files_replace_symlinks(authority, state, tmp_path):
    authority()
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for file in (state.leaf_file, state.authority_file):
        file.unlink()
        file.symlink_to(mine)
    assert authority().code == FINE
    assert mine.read_text() == "mine" and not state.leaf_file.is_symlink() and not state.authority_file.is_symlink()
    (state.folder / ".server.pem.new").symlink_to(mine)
    state.leaf_file.unlink()
    assert authority().code == FINE and mine.read_text() == "mine"


def test_authority_key_behind_symlink_is_refused(authority, state, tmp_path):
    authority()
    state.key.rename(tmp_path / "key")
    state.key.symlink_to(tmp_path / "key")
    done = authority()
    assert done.code == FAILED
    assert f"monkey: {state.key}: it is a symbolic link\n  Delete it" in done.err


def test_authority_folder_behind_symlink_is_refused(authority, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    done = authority(environment={"MONKEY_STATE": str(tmp_path / "link")})
    assert done.code == FAILED and "it is not a folder (and must not be a symbolic link)" in done.err


def test_authority_created_concurrently_is_one(authority, state):
    with ThreadPoolExecutor(12) as pool:
        done = list(pool.map(lambda _: authority(), range(12)))
    assert [d.code for d in done] == [FINE] * 12, done
    assert {d.out for d in done} == {done[0].out} and f"SHA-256 {state.fingerprint}\n" in done[0].out
    assert verify(state).returncode == 0
    assert sorted(p.name for p in state.folder.iterdir()) == ["ca.crt", "ca.key", "server.pem"]


# Invalid authorities

def check_refused(done, path, error, hint="Delete it"):
    assert done.code == FAILED and done.out == ""
    assert re.match(rf"monkey: {re.escape(str(path))}: {error}.*\n  {hint}", done.err), done.err


@pytest.mark.parametrize("text", ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_authority_with_unreadable_key_is_refused(authority, state, text):
    state.folder.mkdir(mode=0o700)
    state.key.write_text(text)
    state.key.chmod(0o600)
    check_refused(authority(), state.key, "it contains no readable private key")
    assert state.key.read_text() == text, "the file is unchanged"


def test_authority_without_ca_flag_is_refused(authority, state):
    state.replace_authority(ca=False)
    check_refused(authority(), state.key, "its certificate is not a CA certificate")


def test_authority_with_mismatched_key_is_refused(authority, state):
    state.replace_authority(key=ec.generate_private_key(ec.SECP256R1()))
    check_refused(authority(), state.key, "its key does not match its certificate")


def test_authority_that_has_expired_is_refused(authority, state):
    made = state.replace_authority(since=3651, days=3650)
    check_refused(authority(), state.key, f"the CA expired on {made.not_valid_after_utc:%Y-%m-%d}")


def test_authority_that_is_not_yet_valid_is_refused(authority, state):
    state.replace_authority(since=-2)
    done = authority()
    assert done.code == FAILED and "is not valid yet: check the clock of this machine" in done.err


def test_authority_of_foreign_origin_is_accepted_if_valid(authority, state):
    state.replace_authority(since=10)
    done = authority()
    assert done.code == FINE and done.out.splitlines()[1].startswith("another, SHA-256 ")
    assert verify(state, "-verify_ip", "127.0.0.1").returncode == 0


def test_authority_key_readable_by_others_is_refused(authority, state):
    authority()
    state.key.chmod(0o640)
    check_refused(authority(), state.key, "other users may read it")


def test_authority_folder_writable_by_others_is_refused(authority, state):
    authority()
    state.folder.chmod(0o770)
    check_refused(authority(), state.folder, "other users can write to the folder", "This folder is for")


@ROOT_ONLY
def test_authority_files_of_another_user_are_refused(authority, state):
    authority()
    os.chown(state.key, 65534, 65534)
    check_refused(authority(), state.key, "it belongs to another user")
    os.chown(state.key, 0, 0)
    os.chown(state.folder, 65534, 65534)
    check_refused(authority(), state.folder, "the folder belongs to another user", "This folder is for")


def test_authority_key_that_is_no_regular_file_is_refused(authority, state):
    state.folder.mkdir(mode=0o700)
    os.mkfifo(state.key, 0o600)
    check_refused(authority(), state.key, "it is not a regular file")


def test_authority_folder_that_cannot_be_created_is_an_error(authority, tmp_path):
    (tmp_path / "file").write_text("")
    done = authority(environment={"MONKEY_STATE": f"{tmp_path}/file/state"})
    check_refused(done, f"{tmp_path}/file/state", "Not a directory", "This folder is for")
    done = authority(environment={"MONKEY_STATE": "somewhere"})
    assert done.code == FAILED and "is not absolute" in done.err and "MONKEY_STATE=/path" in done.err


def test_leaf_path_that_is_a_folder_is_an_error(authority, state):
    authority()
    state.leaf_file.unlink()
    state.leaf_file.mkdir()
    check_refused(authority(), state.leaf_file, "Is a directory", "This folder is for")


def test_authority_extra_arguments_are_usage_errors(run, state):
    assert run("ca", "now", environment=state.environment).code == USAGE


# Changing host names

def as_host(name, state):
    """Runs `monkey ca` on a machine with this host name."""
    code = "import os, socket, sys; socket.sethostname(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])"
    done = subprocess.run(["unshare", "-u", sys.executable, "-c", code, name, PROGRAM, "ca"], check=False,
                          env=os.environ | ENVIRONMENT | state.environment, capture_output=True, text=True)
    if "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == FINE, done.stderr
    return done.stdout


@ROOT_ONLY
def test_leaf_covers_old_and_new_name_after_rename(authority, state):
    authority()
    before = names_of(state.leaf)
    output = as_host("Other.example", state)
    names = names_of(state.leaf)
    assert "other.local" in names and "other.example" not in names
    assert "cannot certify other.example, other:" in output and f"delete {state.key}" in output
    assert verify(state, "-verify_hostname", "other.local").returncode == 0
    authority()
    assert set(before) <= set(names_of(state.leaf))


@ROOT_ONLY
def test_leaf_covers_domain_and_short_name(state):
    output = as_host("box.example.org", state)
    assert "Monkey on box.example.org" in output
    assert {"box.example.org", "box", "box.local"} <= set(names_of(state.leaf))
    for name in ("box.example.org", "box", "box.local"):
        assert verify(state, "-verify_hostname", name).returncode == 0


@ROOT_ONLY
@pytest.mark.parametrize("name", ["a,DNS:b;x y", "", "x" * 64, "y" * 63, "-x", ".", "a..b", "c.", "\udcff\udcfe", "b\nc", "localhost", "b/c"])
def test_leaf_omits_invalid_host_names(state, name):
    as_host(name, state)
    assert {"localhost", "127.0.0.1", "::1"} <= set(names_of(state.leaf))
    assert name in ("y" * 63, "localhost") or name not in names_of(state.leaf)
    assert ("y" * 63 in names_of(state.leaf)) == (name == "y" * 63)
    assert verify(state, "-verify_hostname", "localhost").returncode == 0
    assert verify(state, "-verify_hostname", "b").returncode != 0
