# SPDX-License-Identifier: Apache-2.0
"""dns-01 of the acme plugin: hooks that add DNS records, wildcard certificates, and hooks that fail."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request

import pytest

from acme import MARKS, NEW, helpers, shown, state, wait_for, world  # noqa: F401 (fixtures)
from monkey import ROOT, SECONDS
from sockets import free_port

pytestmark = MARKS

PROGRAMS = ROOT / "plugins/acme/hooks"

# A hook for Pebble's resolver. It also appends each call and its environment to a file.
HOOK = """#!/usr/bin/env python3
import json, os, sys, urllib.request
action, record, value = sys.argv[-3:]
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), sys.stdin.read()]) + "\\n")
path, content = ("set-txt", dict(host=record, value=value)) if action == "present" else ("clear-txt", dict(host=record))
urllib.request.urlopen({url!r} + path, json.dumps(content).encode()).close()
"""


@pytest.fixture
def hook(world, tmp_path):
    """Writes a hook and returns its path; `hook.calls()` are its calls."""
    class Hook:
        path = tmp_path / "hook"
        log = tmp_path / "calls"
        keys = f"Challenge dns-01\nDNSHook {path}\nPropagationDelay 0s\n"

        def write(self, text=None, mode=0o755):
            if not world.pebble:
                world.start_pebble()
            self.path.write_text(text or HOOK.format(log=str(self.log), url=world.pebble.resolver_url("")))
            self.path.chmod(mode)
            return self

        def calls(self):
            return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

        def actions(self):
            return [call[0][-3] for call in self.calls()]

    return Hook()


# ---- Certificates ----


def test_dns_hook_obtains_wildcard_certificate(world, state, hook):
    """The wildcard and the domain below it share a record name, with two values."""
    hook.write()
    server = world.start(hook.keys, names="*.example.test example.test", tls=True)
    server.err.wait_for(NEW.format(r"_wildcard\.example\.test"))
    assert set(state.names("_wildcard.example.test")) == {"*.example.test", "example.test"}
    state.check("_wildcard.example.test")
    calls = hook.calls()
    assert hook.actions() == ["present", "present", "cleanup", "cleanup"]
    assert {call[0][1] for call in calls} == {"_acme-challenge.example.test."}
    assert len({call[0][2] for call in calls}) == 2
    assert not list((state / "dns-01").iterdir())
    # The wildcard serves.
    wait_for(lambda: shown(world, "any.example.test"))


def test_dns_hook_gets_documented_arguments_and_environment(world, state, hook, tmp_path):
    hook.write()
    (tmp_path / "secret").write_text("# credentials\n\n TOKEN=a b=c \nQUOTED='x \"y\"'\nEMPTY=\n")
    (tmp_path / "secret").chmod(0o600)
    world.start(hook.keys.replace(str(hook.path), f'{hook.path} "first argument" second') + f"DNSHookEnvironment {tmp_path}/secret",
                names="www.example.test")
    wait_for(lambda: "cleanup" in hook.actions())
    (arguments, environment, folder, text), *_ = hook.calls()
    assert arguments[:3] == ["first argument", "second", "present"] and arguments[3] == "_acme-challenge.www.example.test."
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", arguments[4]) and folder == "/" and text == ""
    environment.pop("LC_CTYPE", None)  # Python sets it
    path = environment.pop("PATH")
    assert "/usr/bin" in path and environment == {
        "ACME_ACTION": "present", "ACME_DOMAIN": "www.example.test", "ACME_RECORD": arguments[3], "ACME_VALUE": arguments[4],
        "TOKEN": "a b=c", "QUOTED": 'x "y"', "EMPTY": ""}


def test_dns_propagation_delay_precedes_challenge(world, hook):
    hook.write()
    server = world.start(hook.keys.replace("0s", "3s"))
    wait_for(lambda: hook.actions() == ["present"])
    begin = time.monotonic()
    server.err.wait_for(NEW.format("www.example.test"))
    assert time.monotonic() - begin >= 2.5


def test_dns_wildcard_covers_hosts_below_it(world, state, hook):
    """Hosts with the same `Domains` share the certificate."""
    hook.write()
    more = "[ACME_HOST]\n    Domains *.example.test\n[HOST]\n    ServerName b.example.test\n    DocumentRoot site\n" \
           "[ACME_HOST]\n    Domains *.example.test\n"
    world.start(hook.keys, names="a.example.test", sections=more, tls=True).err.wait_for(NEW.format("_wildcard.example.test"))
    for name in ("a", "b"):
        wait_for(lambda: shown(world, f"{name}.example.test"))
    assert [path.name for path in (state / "certificates").iterdir()] == ["_wildcard.example.test.pem"]


def test_dns_and_http_hosts_coexist(world, state, hook):
    hook.write()
    server = world.start(hook.keys, sections="[HOST]\n    ServerName second.example.test\n    DocumentRoot site\n"
                                             "[ACME_HOST]\n    Challenge http-01\n")
    for name in ("www", "second"):
        server.err.wait_for(NEW.format(f"{name}.example.test"))
    assert {call[0][1] for call in hook.calls()} == {"_acme-challenge.www.example.test."}


# ---- Hooks that fail ----


@pytest.mark.parametrize("script, message", [
    ("#!/bin/sh\necho one >&2\necho the reason >&2\nexit 3\n", "hook present _acme-challenge.www.example.test. failed with status 3: the reason"),
    ("#!/bin/sh\nprintf 'bad\\033[31m\\000\\377 \\r\\n'; exit 1\n", r"failed with status 1: bad .31m"),
    ("#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x; exit 1\n", "failed with status 1: x{399};"),
    ("#!/bin/sh\nkill -9 $$\n", "was killed by signal 9"),
    ("#!/no/such/interpreter\n", "failed with status 127: No such file or directory"),
    ("nonsense", "failed with status 127: Exec format error"),
    ("#!/bin/sh\nexec sleep 100\n", "was killed: it ran for more than 3 s"),
    ("#!/bin/sh\ntrap '' TERM\nwhile :; do echo y; done\n", "was killed: it ran for more than 3 s"),
], ids=["status", "garbage", "long", "signal", "interpreter", "format", "hang", "endless"])
def test_dns_hook_failure_is_reported_and_retried(world, state, hook, script, message):
    # The hook that succeeds is a Python program, which may need seconds to start.
    seconds = 3 if message.endswith("3 s") else 60
    hook.write(script)
    server = world.start(hook.keys + f"DNSHookTimeout {seconds}s\n")
    server.err.wait_for(r"\[error\] \d+: acme: www.example.test: DNSHook .*" + message + r".*the next attempt is in \d+ s")
    server.err.wait_for(r"hook cleanup _acme-challenge.www.example.test. .*the DNS record is left until the next run")
    # A repaired hook removes the record that is left, and the next attempt succeeds.
    left = {path.name for path in (state / "dns-01").iterdir()}
    hook.write()
    server.err.wait_for(NEW.format("www.example.test"))
    assert not list((state / "dns-01").iterdir())
    assert left <= {call[0][2] for call in hook.calls() if call[0][0] == "cleanup"}


def test_dns_hook_leaves_no_process(world, hook):
    hook.write("#!/bin/sh\nsleep 4711 &\necho $! > " + str(hook.log) + "\nexit 1\n")
    world.start(hook.keys).err.wait_for("failed with status 1")
    pid = int(hook.log.read_text())

    def has_ended():
        try:
            return open(f"/proc/{pid}/stat").read().split()[2] == "Z"
        except OSError:
            return True

    wait_for(has_ended)


def test_dns_failed_challenge_still_cleans_up(world, state, hook):
    """The hook adds a wrong value, so the CA rejects it."""
    hook.write(HOOK.format(log=str(hook.log), url="URL").replace("value=value", "value='wrong'"))
    hook.path.write_text(hook.path.read_text().replace("URL", world.pebble.resolver_url("")))
    server = world.start(hook.keys)
    server.err.wait_for(r"could not verify www.example.test by dns-01 \(invalid\): .*the next attempt is in")
    assert hook.actions()[:2] == ["present", "cleanup"] and not list((state / "dns-01").iterdir())


def test_dns_record_of_killed_helper_is_removed_by_next_run(world, state, hook):
    hook.write()
    server = world.start(hook.keys.replace("0s", "60s"))
    wait_for(lambda: hook.actions() == ["present"])
    value = hook.calls()[0][0][2]
    os.kill(wait_for(lambda: helpers(server))[0], signal.SIGKILL)
    server.stop()
    assert [path.name for path in (state / "dns-01").iterdir()] == [value]
    assert (state / "dns-01" / value).read_text() == "www.example.test"
    server = world.start(hook.keys)
    server.err.wait_for(NEW.format("www.example.test"))
    assert hook.calls()[1][0] == ["cleanup", "_acme-challenge.www.example.test.", value]
    assert not list((state / "dns-01").iterdir())


def test_dns_damaged_record_files_do_not_reach_the_hook(world, state, hook):
    (state / "dns-01").mkdir(parents=True)
    for i, text in enumerate(["-x", "$(touch x)", "a b", "", "x" * 300, "a\nb"]):
        (state / "dns-01" / f"{i}".rjust(43, "a")).write_text(text)
    (state / "dns-01" / "short").write_text("example.test")
    hook.write()
    world.start(hook.keys).err.wait_for(NEW.format("www.example.test"))
    assert {call[0][1] for call in hook.calls()} == {"_acme-challenge.www.example.test."}
    assert [path.name for path in (state / "dns-01").iterdir()] == ["short"]


# ---- Configuration ----


@pytest.mark.parametrize("keys, message", [
    ("Challenge dns-01", "7:15: error: dns-01 needs `DNSHook`, which adds the DNS records"),
    ("DNSHook relative/path", "7:13: error: `relative/path` is no bundled program: expected an absolute path, `rfc2136` or `http`"),
    ("DNSHook route53", "7:13: error: `route53` is no bundled program"),
    ("DNSHook /nonexistent", "7:13: error: /nonexistent is not started: No such file or directory"),
    ("DNSHook /tmp", "7:13: error: /tmp is not started: it is not a file"),
    ("DNSHook FOLDER/plain", "error: .*/plain is not started: it is not executable"),
    ("DNSHook FOLDER/shared", "error: .*/shared is not started: every user can change it"),
    ("DNSHook FOLDER/good" + " a" * 17, "7:13: error: "),
    ("DNSHook FOLDER/good\nDNSHookEnvironment FOLDER/nowhere", "8:24: error: .*/nowhere cannot be read: No such file"),
    ("DNSHook FOLDER/good\nDNSHookEnvironment FOLDER/env1", "8:24: error: .*/env1, line 2: expected NAME=VALUE"),
    ("DNSHook FOLDER/good\nDNSHookEnvironment FOLDER/env2", "error: .*/env2, line 1: the value has a control character"),
    ("DNSHook FOLDER/good\nDNSHookEnvironment FOLDER/env3", "error: .*/env3, line 1: the server sets the variables ACME_..."),
    ("DNSHook FOLDER/good\nDNSHookEnvironment FOLDER/env4", "error: .*/env4 has more than 64 variables"),
    ("DNSHook FOLDER/good\nDNSHookEnvironment FOLDER/env5", "error: .*/env5 has more than 16383 bytes"),
    ("DNSHookTimeout 1h", "7:20: error: "),
    ("PropagationDelay 2h", "7:22: error: "),
])
def test_dns_invalid_configuration_is_rejected(run, tmp_path, keys, message):
    for name, mode in (("plain", 0o644), ("shared", 0o777), ("good", 0o755)):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    for i, text in enumerate(["A=1\nexport B\n", "A=\x01\n", "ACME_VALUE=1\n", "".join(f"A{n}=1\n" for n in range(65)), "A=" + "x" * 16384], 1):
        (tmp_path / f"env{i}").write_text(text)
    lines = "".join(f"    {line}\n" for line in keys.replace("FOLDER", str(tmp_path)).splitlines())
    (tmp_path / "monkey.conf").write_text(f"[SERVER]\n    Listen 0\n[PLUGINS]\n    Load acme\n[ACME]\n    AgreeToTerms on\n{lines}"
                                          "[HOST]\n    ServerName www.example.org\n")
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 3 and re.search(message, done.err), done.err


def test_dns_readable_credentials_cause_a_warning(run, tmp_path):
    (tmp_path / "env").write_text("A=1\n")
    (tmp_path / "env").chmod(0o644)
    (tmp_path / "monkey.conf").write_text(f"""[SERVER]
    Listen 0
[PLUGINS]
    Load acme
[ACME]
    AgreeToTerms on
    Challenge    dns-01
    DNSHook      rfc2136
    DNSHookEnvironment env
    StateFolder  state
[HOST]
    ServerName   *.example.org
    DocumentRoot .
""")
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 0 and re.search("9:24: warning: every user can read .*/env", done.err), done.err


def test_dns_hook_that_becomes_writable_is_not_started(world, hook):
    world.start_pebble(validity=24)
    hook.write()
    server = world.start(hook.keys + "RenewAfter 5")
    server.err.wait_for(NEW.format("www.example.test"))
    hook.path.chmod(0o777)
    server.err.wait_for("DNSHook .* is not started: every user can change it", seconds=60)


# ---- The bundled hooks ----


def http_settings(url, **more):
    # Pebble's resolver needs no identifier, but `set-txt` and a DNS_API_FIND to its list of requests exercise all of it.
    return {"DNS_API_PRESENT": f"POST {url}set-txt", "DNS_API_PRESENT_BODY": '{"host":"%record%.","value":"%value%"}',
            "DNS_API_CLEANUP": f"POST {url}clear-txt", "DNS_API_CLEANUP_BODY": '{"host":"%record%."}'} | more


def test_http_hook_obtains_certificate(world, state, tmp_path):
    world.start_pebble()
    (tmp_path / "env").write_text("".join(f"{k}={v}\n" for k, v in http_settings(world.pebble.resolver_url("")).items()))
    (tmp_path / "env").chmod(0o600)
    server = world.start(f"Challenge dns-01\nDNSHook http\nDNSHookEnvironment {tmp_path}/env\nPropagationDelay 0s\n",
                         names="*.example.test")
    server.err.wait_for(NEW.format("_wildcard.example.test"))
    assert not list((state / "dns-01").iterdir()) and "[warn] acme" not in server.log


def call(program, *args, **environment):
    return subprocess.run([f"{PROGRAMS}/acme-dns-{program}", *args], capture_output=True, text=True, timeout=SECONDS,
                          env={"PATH": os.environ["PATH"]} | environment)


VALUE = "aZ09_-" * 7 + "x"


def test_http_hook_sends_templates_and_finds_identifiers(fake_http):
    """Like Cloudflare's API: the removal needs the identifier of the record."""
    requests = []

    def answer(request):
        requests.append(request)
        return {"GET": '{"result":[{"id":"ab12","name":"x"},{"id":"zz"}],"id":"outer"}'}.get(request.method, "{}")

    url = fake_http(answer)
    settings = {"DNS_API_PRESENT": f"PUT {url}/zones/1/%relative%", "DNS_API_PRESENT_BODY": 'a"\\\'%value% $(id) `id` %record%',
                "DNS_API_HEADER": "Authorization: Bearer s3cr3t\"\\", "DNS_API_ZONE": "example.org",
                "DNS_API_FIND": f"GET {url}/zones/1?name=%record%&content=%value%", "DNS_API_CLEANUP": f"DELETE {url}/zones/1/%id%"}
    assert call("http", "present", "_acme-challenge.www.example.org.", VALUE, **settings).returncode == 0
    assert call("http", "cleanup", "_acme-challenge.www.example.org.", VALUE, **settings).returncode == 0
    put, get, delete = requests
    assert (put.method, put.path) == ("PUT", "/zones/1/_acme-challenge.www")
    assert put.body == f'a"\\\'{VALUE} $(id) `id` _acme-challenge.www.example.org' and put.headers["Content-Type"] == "application/json"
    assert {each.headers["Authorization"] for each in requests} == {'Bearer s3cr3t"\\'}
    assert get.path == f"/zones/1?name=_acme-challenge.www.example.org&content={VALUE}"
    assert (delete.method, delete.path, delete.body) == ("DELETE", "/zones/1/ab12", "")


@pytest.fixture
def fake_http():
    import http.server
    import threading
    servers = []

    def start(answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self):
                self.method = self.command
                self.body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                text = answer(self)
                status, text = text if isinstance(text, tuple) else (200, text)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = handle_any

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


def test_http_hook_reports_failures(fake_http):
    url = fake_http(lambda request: (403, '{"error":"no such token"}'))
    done = call("http", "present", "_acme-challenge.a.org.", VALUE, DNS_API_PRESENT=f"POST {url}/")
    assert done.returncode != 0 and "no such token" in done.stdout and "403" in done.stderr
    empty = fake_http(lambda request: '{"result":[]}')
    done = call("http", "cleanup", "_acme-challenge.a.org.", VALUE, DNS_API_FIND=f"GET {empty}/", DNS_API_CLEANUP=f"DELETE {empty}/%id%")
    assert done.returncode == 0 and "the record is not there" in done.stdout
    hostile = fake_http(lambda request: '{"id": "../../$(reboot)"}')
    done = call("http", "cleanup", "_acme-challenge.a.org.", VALUE, DNS_API_FIND=f"GET {hostile}/", DNS_API_FIND_ID='"id": "\\([^"]*\\)"',
                DNS_API_CLEANUP=f"DELETE {hostile}/%id%")
    assert done.returncode == 1 and "the identifier has an invalid character" in done.stderr
    assert "not set to METHOD URL" in call("http", "present", "_acme-challenge.a.org.", VALUE).stderr
    assert call("http", "present", "_acme-challenge.a.org.", VALUE, DNS_API_PRESENT="GET file:///etc/passwd").returncode != 0


@pytest.mark.parametrize("program", ["http", "rfc2136"])
@pytest.mark.parametrize("arguments", [
    [], ["present"], ["present", "_acme-challenge.a.org.", "a b"], ["present", "_acme-challenge.a.org.", 'x"\nsend'],
    ["present", "-x", VALUE], ["present", "a|b", VALUE], ["present", "a\nupdate delete b", VALUE], ["renew", "a.org.", VALUE],
])
def test_bundled_hooks_reject_other_arguments(program, arguments):
    done = call(program, *arguments, DNS_API_PRESENT="POST http://127.0.0.1:1/", RFC2136_NAMESERVER="127.0.0.1:1")
    assert done.returncode == 1 and done.stderr.startswith(f"acme-dns-{program}: ")


# ---- RFC 2136 with a real name server ----

NAMED = shutil.which("named", path=os.environ["PATH"] + ":/usr/sbin")
bind9 = pytest.mark.skipif(not (NAMED and shutil.which("nsupdate")), reason="bind9 or nsupdate (bind9-dnsutils) is not installed")
SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlYw=="


@pytest.fixture
def name_server(world, tmp_path):
    """BIND, primary for example.test, which takes updates with a TSIG key; every name has the address of the Loopback."""
    here, folder = world.loopback, tmp_path / "named"
    folder.mkdir()
    port = free_port()  # at 127.0.0.1: BIND listens only on addresses that an interface has
    (folder / "zone").write_text("$TTL 60\n@ SOA ns.example.test. root.example.test. 1 60 60 60 60\n@ NS ns.example.test.\n"
                                 f"ns A {here.address}\n@ A {here.address}\n* A {here.address}\n")
    (folder / "named.conf").write_text(f"""
key "update" {{ algorithm hmac-sha256; secret "{SECRET}"; }};
options {{ directory "{folder}"; pid-file none; session-keyfile none; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
    recursion no; dnssec-validation no; managed-keys-directory "{folder}"; }};
controls {{ }};
zone "example.test" {{ type primary; file "zone"; allow-update {{ key "update"; }}; }};
""")
    process = subprocess.Popen([NAMED, "-f", "-g", "-n", "1", "-c", str(folder / "named.conf")], stdout=subprocess.DEVNULL,
                               stderr=open(folder / "log", "w"))
    wait_for(lambda: " running" in (folder / "log").read_text() or process.poll() is not None)
    assert process.poll() is None, (folder / "log").read_text()
    yield f"127.0.0.1:{port}"
    process.kill()
    process.wait()


@bind9
def test_rfc2136_hook_obtains_wildcard_certificate(world, state, tmp_path, name_server):
    world.start_pebble()
    world.pebble.stop()
    world.pebble.start(name_server)  # Pebble asks BIND
    (tmp_path / "env").write_text(f"RFC2136_NAMESERVER={name_server}\nRFC2136_TSIG_KEY=update\nRFC2136_TSIG_SECRET={SECRET}\n"
                                  "RFC2136_ZONE=example.test\n")
    (tmp_path / "env").chmod(0o600)
    server = world.start(f"Challenge dns-01\nDNSHook rfc2136\nDNSHookEnvironment {tmp_path}/env\nPropagationDelay 0s\n",
                         names="*.example.test example.test")
    server.err.wait_for(NEW.format("_wildcard.example.test"))
    assert set(state.names("_wildcard.example.test")) == {"*.example.test", "example.test"}
    log = (tmp_path / "named/log").read_text()
    assert len(re.findall(r"adding an RR at '_acme-challenge.example.test' TXT", log)) == 2
    assert len(re.findall(r"deleting an RR at _acme-challenge.example.test TXT", log)) == 2


@bind9
def test_rfc2136_hook_reports_wrong_key(name_server):
    settings = {"RFC2136_NAMESERVER": name_server, "RFC2136_ZONE": "example.test", "RFC2136_TSIG_KEY": "update"}
    done = call("rfc2136", "present", "_acme-challenge.example.test.", VALUE, **settings, RFC2136_TSIG_SECRET="AAAA" + SECRET[4:])
    assert done.returncode != 0 and "BADSIG" in done.stderr + done.stdout
    done = call("rfc2136", "present", "_acme-challenge.example.test.", VALUE, **settings)
    assert done.returncode == 1 and "RFC2136_TSIG_SECRET is not set" in done.stderr
    done = call("rfc2136", "present", "_acme-challenge.example.test.", VALUE, **settings, RFC2136_TSIG_SECRET="a;b")
    assert done.returncode == 1 and "RFC2136_TSIG_SECRET has an invalid character" in done.stderr
    assert "RFC2136_NAMESERVER is not set" in call("rfc2136", "present", "a.org.", VALUE).stderr
