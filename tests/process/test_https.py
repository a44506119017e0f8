# SPDX-License-Identifier: Apache-2.0
"""`monkey DIR --https`: TLS without any preparation, for every client that trusts the local CA."""
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess

import pytest
from cryptography import x509

import browser
from local_authority import HAS_TLS, State, machine_addresses, names_of
from monkey import ENVIRONMENT, PROGRAM
from proc import wait_until

FINE, FAILED, USAGE, CONFIGURATION = 0, 1, 2, 3
pytestmark = [pytest.mark.over("h1", why="the option encrypts what is served, and real clients speak what they like"),
              pytest.mark.skipif(not HAS_TLS, reason="built without TLS")]
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can")
RENEWED = 40  # seconds in which a running server detects that a renewal is due and serves the new certificate


@pytest.fixture
def state(tmp_path):
    return State(tmp_path / "state")


@pytest.fixture
def serve(monkey, state, site):
    """Runs `monkey --https` in the folder `site`."""
    site.add("index.html", "<title>hello</title>hello")

    def start(*args, listen_args=("-p", "0"), **how):
        environment = state.environment | how.pop("environment", {})
        return monkey(args=["--https", *listen_args, *args, site], environment=environment, **how)

    return start


def shown(address, server_hostname="localhost"):
    """Returns the certificate that a server presents, without verifying it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(address, 10) as plain, context.wrap_socket(
            plain, server_hostname=server_hostname) as sock:
        return x509.load_der_x509_certificate(sock.getpeercert(binary_form=True))


def curl(*args, **how):
    return subprocess.run(["curl", "-sS", "-g", "--max-time", "20", *map(str, args)], capture_output=True, text=True,
                          check=False, **how)


def fetch(address, context, name="localhost"):
    """Returns the status line that a Python client receives; the client verifies the certificate and its name."""
    with socket.create_connection(address, 10) as plain, context.wrap_socket(plain, server_hostname=name) as sock:
        host = f"[{name}]" if ":" in name else name
        sock.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return sock.makefile("rb").readline().decode().strip()


# Output

def test_https_first_start_explains_how_to_trust_the_authority(serve, state):
    output = serve().out.text
    assert re.search(r"^  https://127\.0\.0\.1:\d+/$", output, re.MULTILINE)
    assert f"SHA-256 {state.fingerprint}\n" in output
    for word in (f"curl --cacert {state.authority_file}", "update-ca-certificates", "add-trusted-cert", "Firefox",
                 "Chrome"):
        assert word in output


def test_https_second_start_uses_the_same_authority(serve, state):
    serve().stop()
    fingerprint, leaf = state.fingerprint, state.leaf
    server = serve()
    assert f"SHA-256 {fingerprint}\n" in server.out.text and "monkey ca" in server.out.text
    assert f"--cacert {state.authority_file}" in server.out.text and "add-trusted-cert" not in server.out.text
    assert shown(server.addresses[0]) == leaf == state.leaf
    server.stop()
    assert server.err.text == ""


def test_https_authority_is_not_created_without_the_option(monkey, run, state, site):
    server = monkey(args=["-p", "0", site], environment=state.environment)
    assert "http://" in server.out.text and not state.folder.exists()


def test_https_listens_on_loopback_8443_by_default(run, state, site):
    for args, expected in [([], ["127.0.0.1:8443 tls"]), (["--public"], ["0.0.0.0:8443 tls"]),
                           (["-p", "444"], ["127.0.0.1:444 tls"]), (["--public", "-p", "444"], ["0.0.0.0:444 tls"]),
                           (["-p", "[::1]:1", "-p", "2"], ["[::1]:1 tls", "127.0.0.1:2 tls"])]:
        done = run("-T", "--https", *args, site, environment=state.environment)
        assert (done.code, done.err) == (FINE, "")
        assert re.findall(r"^    Listen +(.+)$", done.out, re.MULTILINE) == expected
        assert re.search(rf"^    Certificate +{re.escape(str(state.leaf_file))}$", done.out, re.MULTILINE)


# Errors

def test_https_option_requires_a_folder(run, tmp_path, state):
    (tmp_path / "monkey.conf").write_text("[SERVER]\n    Listen 0\n")
    done = run("--https", "-c", tmp_path / "monkey.conf", environment=state.environment)
    assert done.code == USAGE and "--https is for serving a folder" in done.err and "Listen PORT tls" in done.err
    assert not state.folder.exists()


def test_https_invalid_port_is_rejected(run, state, site):
    done = run("--https", "-p", "x", site, environment=state.environment)
    assert done.code == CONFIGURATION and "`x` is not a port to listen on: expected PORT" in done.err


def test_https_state_folder_without_write_access_is_an_error(run, tmp_path, site):
    (tmp_path / "file").write_text("")
    done = run("--https", site, environment={"MONKEY_STATE": f"{tmp_path}/file/state"})
    assert done.code == FAILED and done.out == ""
    assert f"monkey: {tmp_path}/file/state: Not a directory\n" in done.err and "MONKEY_STATE=/path" in done.err


def test_https_without_tls_object_is_an_error(tmp_path, state, site):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(PROGRAM, alone / "monkey")
    done = subprocess.run([alone / "monkey", "--https", "-p", "0", site.path], capture_output=True, text=True, timeout=30,
                          env=os.environ | ENVIRONMENT | state.environment, check=False)
    assert done.returncode == FAILED and done.stdout == ""
    assert "monkey: TLS is not available: " in done.stderr and "monkey-tls.so" in done.stderr
    assert not state.folder.exists()


# Clients

def test_curl_accepts_certificate_for_every_name(serve, state):
    server = serve("--public")
    for name in names_of(state.leaf):
        family = socket.AF_INET6 if ":" in name else socket.AF_INET
        url = f"https://[{name}]:{server.port}/" if family == socket.AF_INET6 else f"https://{name}:{server.port}/"
        # The request goes to this server, whatever the name resolves to.
        done = curl("--cacert", state.authority_file, "--connect-to", f"::127.0.0.1:{server.port}", url)
        assert (done.returncode, done.stdout) == (0, "<title>hello</title>hello"), (name, done)
    done = curl("--cacert", state.authority_file, "--connect-to", f"::127.0.0.1:{server.port}",
                f"https://example.org:{server.port}/")
    assert done.returncode == 60, "the certificate is for another name"
    assert curl(server.url).returncode == 60, "curl was not told to trust the authority"


def test_curl_accepts_every_printed_url(serve, state):
    server = serve("--public")
    urls = re.findall(r"^  (https://\S+)$", server.out.text, re.MULTILINE)
    assert len(urls) >= 1
    for url in urls:
        done = curl("--cacert", state.authority_file, url)
        assert (done.returncode, done.stdout) == (0, "<title>hello</title>hello"), (url, done)


def test_python_accepts_certificate_for_every_name(serve, state):
    server = serve(listen_args=["-p", "0", "-p", "[::1]:0"])
    context = state.context()
    for address in server.addresses:
        for name in names_of(state.leaf):
            assert fetch(address, context, name).startswith("HTTP/1.1 200")
    with pytest.raises(ssl.SSLCertVerificationError):
        fetch(server.addresses[0], context, "example.org")
    with pytest.raises(ssl.SSLCertVerificationError):
        fetch(server.addresses[0], ssl.create_default_context())


def test_openssl_verifies_the_connection(serve, state):
    server = serve()
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-CAfile", state.authority_file,
                           "-verify_ip", "127.0.0.1", "-x509_strict", "-verify_return_error", "-brief"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0 and "Verification: OK" in done.stderr, done.stderr


@pytest.mark.skipif(not shutil.which("certutil") or not browser.FOUND, reason="no certutil or no browser here")
def test_browser_trusts_the_server_with_the_authority(serve, state, tmp_path, monkeypatch):
    server = serve()
    home = tmp_path / "home"
    store = home / ".pki" / "nssdb"
    store.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    wary = tmp_path / "wary"
    wary.mkdir()

    def certutil(*args):
        subprocess.run(["certutil", "-d", f"sql:{store}", *args], check=True, capture_output=True)

    certutil("-N", "--empty-password")
    with browser.Browser(wary) as b:
        answer = b.call("Page.navigate", url=server.url + "/")
        assert answer.get("errorText") == "net::ERR_CERT_AUTHORITY_INVALID", answer
    certutil("-A", "-t", "C,,", "-n", "monkey", "-i", str(state.authority_file))
    with browser.Browser(tmp_path) as b:
        for host in ("127.0.0.1", "localhost"):
            b.goto(f"https://{host}:{server.port}/")
            assert b.run("document.title") == "hello"
            assert b.run("isSecureContext")
            assert b.run("performance.getEntriesByType('navigation')[0].nextHopProtocol") in ("h2", "http/1.1")


# Listening addresses

def test_leaf_contains_listening_address_without_interface(serve, state):
    server = serve(listen_args=["-p", "127.0.0.77:0"])
    assert fetch(("127.0.0.77", server.port), state.context(), "127.0.0.77").startswith("HTTP/1.1 200")
    assert "127.0.0.77" in names_of(shown(server.addresses[0]))


def test_servers_on_different_addresses_keep_their_own_leaf(serve, state):
    first, second = serve(listen_args=["-p", "127.0.0.77:0"]), serve(listen_args=["-p", "127.0.0.78:0"])
    leaves = {path: path.read_bytes() for path in state.folder.glob("server*.pem")}
    assert len(leaves) == 2
    for server in (first, second):
        server.tell(signal.SIGHUP)
    for server, name in ((first, "127.0.0.77"), (second, "127.0.0.78")):
        assert name in names_of(shown(server.addresses[0]))
    first.stop()
    second.stop()
    assert {path: path.read_bytes() for path in leaves} == leaves


def test_servers_started_concurrently_share_an_authority(serve, state):
    servers = [serve(expect_start=False) for _ in range(4)]
    for server in servers:
        server.wait_until_serving()
    for server in servers:
        assert fetch(server.addresses[0], state.context()).startswith("HTTP/1.1 200")
        assert f"SHA-256 {state.fingerprint}\n" in server.out.text


# Renewal

def test_leaf_that_is_due_is_renewed_at_start(serve, state):
    serve().stop()
    old = state.replace_leaf(since=61)
    server = serve()
    leaf = shown(server.addresses[0])
    assert leaf != old and leaf == state.leaf
    assert fetch(server.addresses[0], state.context()).startswith("HTTP/1.1 200")


def test_leaf_that_becomes_due_is_renewed_while_serving(serve, state):
    server = serve()
    first = shown(server.addresses[0])
    with socket.create_connection(server.addresses[0]) as plain, \
            state.context().wrap_socket(plain, server_hostname="localhost") as kept:
        old = state.replace_leaf(since=61)
        wait_until(lambda: shown(server.addresses[0]) not in (first, old), "a new certificate", RENEWED)
        assert fetch(server.addresses[0], state.context()).startswith("HTTP/1.1 200")
        kept.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert kept.recv(100).startswith(b"HTTP/1.1 200"), "no connection is closed"


def test_leaf_is_checked_on_reload(serve, state):
    server = serve()
    old = state.replace_leaf(since=61)
    server.tell(signal.SIGHUP)
    wait_until(lambda: state.leaf != old, "a new certificate", 10)
    wait_until(lambda: shown(server.addresses[0]) == state.leaf, "the server presents it", 10)


def test_authority_that_is_missing_is_recreated_and_reported(serve, state):
    server = serve()
    old = state.fingerprint
    state.key.unlink()
    server.tell(signal.SIGHUP)
    server.err.wait_for("created a new CA, which every device must trust again: SHA-256 ([0-9A-F:]+)")
    assert state.fingerprint != old and state.fingerprint in server.err.text
    wait_until(lambda: shown(server.addresses[0]) == state.leaf, "the server presents it")
    assert fetch(server.addresses[0], state.context()).startswith("HTTP/1.1 200")


def test_leaf_that_cannot_be_renewed_is_logged_once_and_stays(serve, state):
    server = serve()
    old = shown(server.addresses[0])
    state.key.chmod(0o644)
    for _ in range(2):
        server.tell(signal.SIGHUP)
        server.err.wait_for(r"cannot renew the certificate: .*ca\.key: other users may read it")
    assert shown(server.addresses[0]) == old
    state.key.chmod(0o600)
    server.stop()
    assert server.err.text.count("cannot renew") == 1


def in_namespace(pid, *command):
    return subprocess.run(["nsenter", "-t", str(pid), "-n", *map(str, command)], capture_output=True, text=True, timeout=30,
                          check=False)


@ROOT_ONLY
def test_leaf_is_renewed_for_a_new_address_of_the_machine(serve, state):
    """The machine joins a network while the server runs."""
    if subprocess.run(["unshare", "-n", "true"], check=False).returncode:
        pytest.skip("no namespaces here")
    server = serve("--public", listen_args=["-p", "8443"],
                   wrapper=["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"])
    assert not (machine_addresses() - {"127.0.0.1", "::1"}) & set(names_of(state.leaf))
    done = in_namespace(server.pid, "ip", "addr", "add", "10.9.8.7/32", "dev", "lo")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: "10.9.8.7" in names_of(state.leaf), "a new certificate", RENEWED)

    def believed():
        return in_namespace(server.pid, "curl", "-sS", "--cacert", state.authority_file,
                            "https://10.9.8.7:8443/").stdout.endswith("hello")

    wait_until(believed, "the server presents it", RENEWED)


# In combination with other options

def test_https_works_as_daemon(serve, state, tmp_path, watch):
    server = serve("-D", "-I", tmp_path / "pid", expect_start=False)
    server.wait()
    daemon = watch(int((tmp_path / "pid").read_text()))
    address = re.search(r"https://127\.0\.0\.1:(\d+)/", server.out.text)
    assert fetch(("127.0.0.1", int(address[1])), state.context()).startswith("HTTP/1.1 200")
    assert daemon


def test_https_upgrade_keeps_authority_and_leaf(serve, state, tmp_path, watch):
    pid_file = tmp_path / "pid"
    server = serve("-I", pid_file)
    fingerprint, leaf = state.fingerprint, state.leaf

    def successor():
        text = pid_file.read_text() if pid_file.exists() else ""
        return text.strip() not in ("", str(server.pid)) and int(text)

    server.tell(signal.SIGUSR2)
    watch(wait_until(successor, "a new program"))
    assert server.process.wait(30) == FINE
    assert fetch(server.addresses[0], state.context()).startswith("HTTP/1.1 200")
    assert (state.fingerprint, shown(server.addresses[0])) == (fingerprint, leaf)


def test_https_works_over_unix_socket(serve, state, tmp_path):
    serve(listen_args=["-p", f"unix:{tmp_path}/socket"])
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(f"{tmp_path}/socket")
        with state.context().wrap_socket(plain, server_hostname="localhost") as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert sock.makefile("rb").readline().startswith(b"HTTP/1.1 200")
