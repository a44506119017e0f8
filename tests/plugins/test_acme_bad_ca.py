# SPDX-License-Identifier: Apache-2.0
"""The acme plugin with misbehaving CAs and with an invalid configuration."""
import http.server
import json
import re
import ssl
import threading
import time

import pytest

import regexes
from acme import MARKS, state, world  # noqa: F401 (fixtures)
from certificates import make_authority

regex = pytest.mark.skipif(not regexes.ARE_THERE, reason="built without PCRE2")

pytestmark = MARKS


# ---- Misbehaving CAs ----


class Impostor(http.server.BaseHTTPRequestHandler):
    """A CA that responds as scripted, by a function from the path to (status, header fields, body)."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(self.path)
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
    """Starts a server whose CA responds as the test specifies."""
    pair = make_authority(tmp_path / "impostor").issue([world.loopback.address])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    fake = http.server.ThreadingHTTPServer((world.loopback.address, world.loopback.port()), Impostor)
    fake.socket = context.wrap_socket(fake.socket, server_side=True)
    fake.daemon_threads = True
    fake.requests, fake.authority = [], tmp_path / "impostor/authority.pem"
    fake.url = f"https://{world.loopback.address}:{fake.server_port}"
    fake.directory = f"{fake.url}/dir"
    fake.whole = {"newNonce": f"{fake.url}/nonce", "newAccount": f"{fake.url}/account", "newOrder": f"{fake.url}/order"}
    threading.Thread(target=fake.serve_forever, args=(0.02,), daemon=True).start()  # polls often, so that it stops quickly

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


@pytest.mark.parametrize("answer, message", [
    ((200, {}, b""), "is not an ACME directory"),
    ((200, {}, b"<html>"), "is not an ACME directory"),
    ((200, {}, []), "is not an ACME directory"),
    ((200, {}, b"[" * 5000), "is not an ACME directory"),
    ((200, {}, {}), "the directory has no `newNonce` that begins with https://"),
    ((200, {}, {"newNonce": 1}), "the directory has no `newNonce`"),
    ((200, {}, {"newNonce": "http://127.0.0.1/nonce", "newAccount": "https://a/", "newOrder": "https://a/"}),
     "the directory has no `newNonce` that begins with https://"),
    ((200, {}, {"newNonce": "https://" + "a" * 3000}), "the directory has no `newNonce`"),
    ((200, {}, b"x" * (2 << 20)), "(Maximum file size exceeded|more than 1048576 bytes)"),
    ((404, {}, b"not here"), "responded with status 404"),
    ((500, {}, b""), "responded with status 500"),
    ((302, {"Location": "http://127.0.0.1:1/"}, b""), "responded with status 302"),
    ((200, {"Content-Length": "1000", "Connection": "close"}, b"{}"), "cannot reach"),
    (problem("malformed", "bad\r\n[error] forged\x1b[31m"), r"with status 400: bad  \[error\] forged .31m \(malformed\)"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_acme_invalid_directory_is_an_error(impostor, answer, message):
    server = impostor(lambda path: answer)
    server.err.wait_for(message)
    assert set(impostor.fake.requests) == {"/dir"}


def test_acme_retries_after_invalid_response(impostor):
    server = impostor(lambda path: (200, {}, b""))
    server.err.wait_for("is not an ACME directory", count=2)


@pytest.mark.parametrize("answers, message", [
    ({"/nonce": (200, {}, b"")}, "has no nonce"),
    ({"/nonce": (200, {"Replay-Nonce": "not base64url!"}, b"")}, "has no nonce"),
    ({"/account": (201, {}, {})}, "contains no account URL"),
    ({"/account": (201, {"Location": "http://127.0.0.1/a"}, {})}, "contains no account URL"),
    ({"/account": (201, {"Location": "/a"}, {})}, "contains no account URL"),
    ({"/account": problem("badNonce")}, r"badNonce"),
    ({"/account": problem("externalAccountRequired", status=403)}, "externalAccountRequired"),
    ({"/order": (201, {}, {"status": "pending"})}, "contains no order URL"),
    ({"/order": (201, {"Location": "URL/o"}, b"nonsense")}, "not a JSON object"),
    ({"/order": (201, {"Location": "URL/o"}, {})}, "unknown order status ``"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "strange"})}, "unknown order status `strange`"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "invalid", "error": {"detail": "sorry", "type": "x"}})},
     "the authority rejected the order: sorry"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": [7]})}, "`` is not a URL"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": ["URL/z"]}), "/z": (200, {}, {})},
     "which is not in the order"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": ["URL/z"]}),
      "/z": (200, {}, {"status": "pending", "identifier": {"type": "dns", "value": "evil.test"}})},
     "requested a verification of evil.test, which is not in the order"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": ["URL/z"]}),
      "/z": (200, {}, {"status": "pending", "identifier": {"type": "dns", "value": "www.example.test"},
                       "challenges": [{"type": "dns-01"}, "x", {}]})}, "does not offer http-01"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "pending", "authorizations": ["URL/z"]}),
      "/z": (200, {}, {"status": "pending", "identifier": {"type": "dns", "value": "www.example.test"},
                       "challenges": [{"type": "http-01", "url": "URL/c", "token": "../../account.key"}]})},
     "the challenge for www.example.test is invalid"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "ready"})}, "`` is not a URL"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "valid"})}, "`` is not a URL"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "valid", "certificate": "http://127.0.0.1/c"})},
     "`http://127.0.0.1/c` is not a URL that begins with https://"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "valid", "certificate": "URL/c"}), "/c": (200, {}, b"nonsense")},
     "invalid certificate chain"),
    ({"/order": (201, {"Location": "URL/o"}, {"status": "valid", "certificate": "URL/c"}), "/c": "OTHER"},
     "certificate and key do not match"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_acme_invalid_responses_are_errors(impostor, state, answers, message):
    fake = impostor.fake

    def fill(value):
        return json.loads(json.dumps(value).replace("URL", fake.url))

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
    server.err.wait_for(r"\[error\] \d+: acme: .*" + message + r".*; the next attempt is in \d+ s")
    assert not state.pem("www.example.test").exists()
    server.stop()
    for name in ("account.key", "lock"):
        assert (state / name).exists()


@pytest.mark.parametrize("status, posted", [("pending", True), ("processing", False), ("valid", False), (None, True)])
def test_acme_only_pending_challenges_are_posted(impostor, status, posted):
    """After a helper has died, the CA may still verify a challenge, and rejects a second request for it."""
    fake = impostor.fake
    challenge = {"type": "http-01", "url": f"{fake.url}/challenge", "token": "t0ken"} | ({"status": status} if status else {})
    verdicts = iter(["pending", "pending"])
    pages = {
        "/dir": lambda: (200, {}, fake.whole),
        "/account": lambda: (201, {"Location": f"{fake.url}/a"}, {}),
        "/order": lambda: (201, {"Location": f"{fake.url}/o"},
                           {"status": "pending", "authorizations": [f"{fake.url}/authz"], "finalize": f"{fake.url}/f"}),
        "/authz": lambda: (200, {}, {"status": next(verdicts, "invalid"), "challenges": [challenge],
                                     "identifier": {"type": "dns", "value": "www.example.test"}}),
    }

    def answer(path):
        status, fields, content = pages.get(path, lambda: (200, {}, {}))()
        return status, {"Replay-Nonce": "n"} | fields, content

    impostor(answer).err.wait_for("the authority could not verify www.example.test by http-01")
    assert ("/challenge" in fake.requests) == posted


@pytest.mark.parametrize("is_received", [True, False], ids=["received", "lost"])
@pytest.mark.parametrize("step", ["/challenge", "/finalize"])
def test_acme_rejected_repetition_of_request_is_no_failure(impostor, step, is_received):
    """The CA may receive the last request of a helper that died after the next helper read the state of the order."""
    fake = impostor.fake
    states = {"/challenge": ["pending"], "/finalize": ["ready"]}

    def advance(path):
        if path == step and is_received:
            states[path].append("processing")
        if path == step:
            return problem("malformed", "not in this state", status=403)
        states[path].append("valid")
        return 200, {}, order()[2]

    def order():
        status = "pending" if states["/challenge"][-1] != "valid" else states["/finalize"][-1]
        return 201, {"Location": f"{fake.url}/o"}, {
            "status": status, "authorizations": [f"{fake.url}/authz"], "finalize": f"{fake.url}/finalize"}

    def authorization():
        status = states["/challenge"][-1]
        if status == "processing":
            states["/challenge"].append("valid")
        return 200, {}, {"status": "pending" if status == "processing" else status,
                         "challenges": [{"type": "http-01", "url": f"{fake.url}/challenge", "token": "t0ken", "status": status}],
                         "identifier": {"type": "dns", "value": "www.example.test"}}

    def next_order():
        made = order()
        if states["/finalize"][-1] == "processing":
            states["/finalize"].append("valid")
        return 200, {}, made[2]

    pages = {"/dir": lambda: (200, {}, fake.whole), "/account": lambda: (201, {"Location": f"{fake.url}/a"}, {}),
             "/order": order, "/o": next_order, "/authz": authorization}

    def answer(path):
        status, fields, content = pages[path]() if path in pages else advance(path) if path in states else (200, {}, {})
        return status, {"Replay-Nonce": "n"} | fields, content

    # The order becomes valid, but has no certificate.
    impostor(answer).err.wait_for("`` is not a URL" if is_received else "not in this state")
    assert fake.requests.count(step) == 1


@pytest.mark.parametrize("fields, seconds", [
    ({"Retry-After": "7200"}, 7200), ({}, 3600), ({"Retry-After": "999999999"}, 8 * 86400), ({"Retry-After": "soon"}, 3600),
    ({"Retry-After": "99999999999999999999999"}, 3600), ({"Retry-After": "-1"}, 3600),
])
def test_acme_rate_limit_is_respected(impostor, state, fields, seconds):
    fake = impostor.fake

    def answer(path):
        if path == "/order":
            return problem("rateLimited", "too many", 429, **fields)
        return {"/dir": (200, {}, fake.whole), "/nonce": (200, {"Replay-Nonce": "n"}, b"")}.get(
            path, (201, {"Location": f"{fake.url}/a", "Replay-Nonce": "n"}, {}))

    server = impostor(answer)
    output = server.err.wait_for(r"acme: www.example.test: .*too many \(rateLimited\); the next attempt is in (\d+) s")
    assert seconds <= int(output[1]) <= seconds * 1.26
    assert abs(state.failure("www.example.test")["until"] - time.time() - int(output[1])) < 30
    server.stop()
    fake.requests.clear()
    impostor(answer)
    time.sleep(1)
    assert not fake.requests


def test_acme_retry_after_date_is_respected(impostor):
    fake = impostor.fake
    when = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 5000))
    server = impostor(lambda path: (503, {"Retry-After": when}, b"busy") if path == "/dir" else (404, {}, b""))
    output = server.err.wait_for(r"responded with status 503; the next attempt is in (\d+) s")
    assert 4900 <= int(output[1]) <= 6300 and set(fake.requests) == {"/dir"}


def test_acme_wrong_clock_is_reported(impostor):
    fake = impostor.fake
    old = Impostor.date_time_string
    Impostor.date_time_string = lambda self, timestamp=None: "Sun, 06 Nov 1994 08:49:37 GMT"
    try:
        server = impostor(lambda path: (200, {}, fake.whole) if path == "/dir" else (404, {}, b""))
        server.err.wait_for(r"the clock of this machine is \d+ minutes ahead of that of the authority")
    finally:
        Impostor.date_time_string = old


# ---- Configurations ----


@pytest.mark.parametrize("text, message", [
    ("[ACME]\n    Contact mailto:me@example.org\n", r"6:5|5:1: error: the authority requires that you agree to its terms"),
    ("[ACME]\n    AgreeToTerms off\n", "6:18: error: the authority requires .*: expected `AgreeToTerms on`"),
    ("", "the plugin `acme` needs a section .ACME."),
    ("[ACME]\n    AgreeToTerms on\n    Directory http://example.org/\n", "7:15: error: `http://example.org/` is not encrypted"),
    ("[ACME]\n    AgreeToTerms on\n    Directory somewhere\n", "7:15: error: expected a URL that begins with https://"),
    ("[ACME]\n    AgreeToTerms on\n    Authority nowhere.pem\n", "7:15: error: \\S+/nowhere.pem cannot be read: No such file"),
    ("[ACME]\n    AgreeToTerms on\n    Contact me\n", "7:13: error: `me` is not a URL: expected mailto:"),
    ("[ACME]\n    AgreeToTerms on\n    Challenge dns-02\n", "7:15: error: .*http-01"),
    ("[ACME]\n    AgreeToTerms on\n    Challenge tls-alpn-01\n", "7:15: error: tls-alpn-01 needs TLS"),
    ("[ACME]\n    AgreeToTerms on\n    ExternalAccount kid\n", "7:21: error: expected ID FILE"),
    ("[ACME]\n    AgreeToTerms on\n    ExternalAccount kid nowhere\n", "7:21: error: \\S+/nowhere cannot be read"),
    ("[ACME]\n    AgreeToTerms on\n    ExternalAccount kid monkey.conf\n", "7:21: error: no key found in \\S+:"),
    ("[ACME]\n    AgreeToTerms on\n    RenewAfter 99\n", "7:16: error: "),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName *.example.org\n",
     r"8:16: error: cannot certify `\*.example.org`: wildcard names require dns-01"),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName a_b.example.org\n", "8:16: error: cannot certify `a_b.example.org`"),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName a.org\n[ACME_HOST]\n    Domains b.org\n",
     "10:13: error: `b.org` is not a ServerName of this host"),
    pytest.param("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName ~^a\n", r"8:16: error: cannot certify `~\^a`", marks=regex),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName a.org\n    ServerName b.org b_c.org\n", "9:22: error: cannot certify `b_c.org`"),
    pytest.param("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName ~^w\\d\\.org$\n[ACME_HOST]\n    Domains w1.org w2.org wx.org\n",
                 r"\A(?!(?s:.)*`w[12]\.org)(?s:.)*`wx.org` is not a ServerName of this host", marks=regex),
    ("[ACME]\n    AgreeToTerms on\n[HOST]\n    ServerName a.org b.org\n[HOST]\n    ServerName c.org *.org\n"
     "[ACME_HOST]\n    Domains a.org\n", "two hosts request different certificates with the same first name a.org"),
])
def test_acme_invalid_configuration_is_rejected(run, tmp_path, text, message):
    (tmp_path / "monkey.conf").write_text(f"[SERVER]\n    Listen 0\n[PLUGINS]\n    Load acme\n{text}"
                                          "[HOST]\n    ServerName www.example.org\n")
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 3 and re.search(message, done.err), done.err
    assert not (tmp_path / "state").exists()


def test_acme_printed_config_loads_again(run, tmp_path):
    (tmp_path / "key").write_text("c2VjcmV0")
    (tmp_path / "monkey.conf").write_text(
        "[SERVER]\n    Listen 0\n[PLUGINS]\n    Load acme\n[ACME]\n    AgreeToTerms on\n    Directory staging\n"
        "    Contact mailto:a@example.org mailto:b@example.org\n    ExternalAccount id key\n    StateFolder here\n"
        "    Key rsa\n[HOST]\n    DocumentRoot .\n    ServerName a.org *.org\n[ACME_HOST]\n    Domains a.org b.org\n    Key ecdsa\n")
    printed = run("-T", "-c", "monkey.conf").out
    assert "https://acme-staging-v02.api.letsencrypt.org/directory" in printed and f"{tmp_path}/here" in printed
    (tmp_path / "printed.conf").write_text(printed)
    assert run("-T", "-c", "printed.conf").out == printed
    assert run("-c", "monkey.conf", "explain", "GET", "http://a.org/.well-known/acme-challenge/x").out.count("acme") >= 1
