# SPDX-License-Identifier: Apache-2.0
"""The contestants of tools/contest. Missing programs are skipped; `tools/dev/need.sh contest` installs them."""
import contextlib
import hashlib
import http.client
import json
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from contest import backends, contestant, family, material, ports, template
from contest.user_error import UserError
from contest.contestant import FEATURES, HELLO, Failed, PortTaken, Setup, load, load_all
from fakes import add_contestant
from monkey import ROOT
from proc import wait_until

CONTESTANTS = load_all()
SERVERS = [name for name, each in CONTESTANTS.items() if not each.yardstick]
EXPECTED = {"monkey", "floor", "nginx", "lighttpd", "apache", "h2o", "caddy", "busybox", "node", "varnish", "trafficserver",
            "thttpd", "mini-httpd", "hiawatha", "cherokee", "gwan", "monkey1", "duda", "go", "python"}
ATTEMPTS = 3  # another process may bind the port first
LATER_ROOM = 1100  # more requests than the default limit per connection of any server


@contextlib.contextmanager
def open_folder():
    """A folder that all users can read, unlike pytest's folders."""
    folder = Path(tempfile.mkdtemp(prefix="contest-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def folder():
    with open_folder() as path:
        yield path


@pytest.fixture(scope="module")
def stuff():
    with open_folder() as path:
        made = material.make(path / "material", tree=60)
        index = made.root / "folder" / "index.html"
        index.parent.mkdir()
        index.write_text("<!doctype html>\n<title>index</title>\n")
        yield made


def go_has_to_build_itself(program):
    environment = os.environ | {"GOCACHE": str(ROOT / "build" / "go-cache"), "GO111MODULE": "off", "GOTOOLCHAIN": "local",
                                "CGO_ENABLED": "0"}
    done = subprocess.run([program, "list", "-f", "{{.Stale}}", "net/http"], capture_output=True, text=True, check=False,
                          env=environment)
    return done.stdout.strip() != "false"


def present(name):
    found = CONTESTANTS[name].find()
    if not found:
        pytest.skip(f"{name}: {found.why}")
    if name == "python" and Path(os.path.realpath(found.program)).is_relative_to(pwd.getpwuid(0).pw_dir):
        pytest.skip("python: only root may run it")
    if name == "go" and go_has_to_build_itself(found.program):
        pytest.skip("go: it would compile its library first, which takes half a minute; a contest with it does so")
    return CONTESTANTS[name]


def start(each, folder, stuff, **keys):
    """Starts the server on ports of its own."""
    for attempt in range(ATTEMPTS):
        work_folder = folder / f"{each.name}{attempt}"
        work_folder.mkdir()
        wanted = {"tls_port": ports.free_port(), "h2c_port": ports.free_port()} | keys
        prepared = each.prepare(Setup(work_folder, stuff.root, ports.free_port(), cert=stuff.cert, key=stuff.key, **wanted))
        try:
            return prepared.start()
        except PortTaken:
            if attempt + 1 == ATTEMPTS:
                raise


@dataclass
class Server:
    contestant: object
    running: object

    @property
    def setup(self):
        return self.running.prepared.setup

    def needs(self, feature):
        missing = self.contestant.missing().get(feature)
        if missing:
            pytest.skip(f"{self.contestant.name}: {feature} {missing}")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.setup.port, timeout=20)

    def get(self, path, connection=None, **fields):
        connection = connection or self.connect()
        connection.request("GET", path, headers=fields)
        answer = connection.getresponse()
        return answer, answer.read()


@pytest.fixture(scope="module", params=SERVERS)
def server(request, stuff):
    each = present(request.param)
    with open_folder() as path, start(each, path, stuff) as running:
        yield Server(each, running)


def servers_with_feature(feature, claim=True):
    names = [name for name in SERVERS if (feature in CONTESTANTS[name].features) == claim]
    return pytest.mark.parametrize("server", names, indirect=True, scope="module")


def is_right(stuff, name, body):
    return (len(body), hashlib.sha256(body).hexdigest()) == (stuff.files[name].length, stuff.files[name].sha256)


# Contestant folders

def test_contestants_match_the_expected_folders():
    assert set(CONTESTANTS) == EXPECTED


@pytest.mark.parametrize("name", CONTESTANTS)
def test_contestant_folder_is_complete(name):
    each = CONTESTANTS[name]
    assert each.revision >= 1 and each.title and each.about
    assert each.fairness.startswith("# ") and len(each.fairness) > 300
    assert len(set(each.features)) == len(each.features)
    used = {"contestant.toml", "fairness.md", "server.js", "hello.c", "service.c", *each.data.get("files", {}).values()}
    assert {path.name for path in each.folder.iterdir() if path.is_file()} <= used
    assert set(each.data.get("requires", {})) <= set(each.features)
    assert all(other in CONTESTANTS for other in each.data.get("companions", []))


@pytest.mark.parametrize("name", CONTESTANTS)
@pytest.mark.parametrize("full", [True, False])
def test_contestant_templates_can_be_rendered(name, full, folder):
    each = CONTESTANTS[name]
    ports_of = {"tls_port": 3, "h2c_port": 4, "origin": 6, "php": folder, "children": 7,
                "postgres": folder, "redis": folder} if full else {}
    setup = Setup(folder, folder, 2, workers=2 if full else 1, cert=folder, key=folder, log=full, **ports_of)
    known = contestant.values(each, setup, "/bin/program") | {"behind": "5", "behind_name": "x"}
    on = ({"tls", "h2", "h2c", "log", "dynamic", "several", "root", "proxy", "php", "data"} if full else {"unprivileged"})
    for source in each.data.get("files", {}).values():
        text = template.render((each.folder / source).read_text(), known, on, source)
        assert not template.NAME.search(text), text
        if source.endswith(".json"):
            json.loads(text)
    assert template.words(each.data["command"], known, on, name)


def test_load_names_the_file_of_an_unknown_key(folder):
    work_folder = folder / "odd"
    shutil.copytree(CONTESTANTS["nginx"].folder, work_folder)
    (work_folder / "contestant.toml").write_text("color = 1\n" + (work_folder / "contestant.toml").read_text())
    with pytest.raises(UserError, match=r"odd/contestant.toml: unknown key color"):
        load(work_folder)


@pytest.mark.parametrize("text, why", [("@nothing@\n", "there is no value"), ("@if tls@\n", "without @end@"),
                                       ("@end@\n", "without @if@")])
def test_template_invalid_syntax_is_an_error(text, why):
    with pytest.raises(UserError, match=why):
        template.render(text, {}, set(), "place")


def test_template_conditions_can_be_nested():
    text = "a\n@if x@\nb\n  @if not y@\nc\n  @end@\n@end@\nd\n"
    assert template.render(text, {}, {"x"}, "") == "a\nb\nc\nd\n"
    assert template.render(text, {}, {"x", "y"}, "") == "a\nb\nd\n"
    assert template.render(text, {}, {"y"}, "") == "a\nd\n"


# Installed programs

@pytest.mark.parametrize("name", CONTESTANTS)
def test_absent_contestant_names_the_programs_searched(name, monkeypatch, folder):
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(CONTESTANTS[name].variable, raising=False)
    monkeypatch.setattr(contestant, "PLACES", ())
    monkeypatch.setattr(contestant, "PROJECT", folder)
    found = load(CONTESTANTS[name].folder).find()
    assert not found
    for program in CONTESTANTS[name].programs:
        assert program.replace("@project@/", "") in found.why
    assert CONTESTANTS[name].package in found.why


def test_variable_overrides_the_program(monkeypatch, folder):
    program = folder / "mine"
    program.write_text("#!/bin/sh\necho nginx version: nginx/9.9\n")
    program.chmod(0o755)
    monkeypatch.setenv("CONTEST_NGINX", str(program))
    each = load(CONTESTANTS["nginx"].folder)
    assert each.find().program == str(program)
    assert each.version() == "9.9"
    monkeypatch.setenv("CONTEST_NGINX", str(folder / "gone"))
    each = load(CONTESTANTS["nginx"].folder)
    assert each.find().why == f"CONTEST_NGINX names {folder}/gone, which is not a program"
    assert each.version() == ""


def test_monkey1_is_distinguished_from_monkey_2(monkeypatch, folder):
    program = folder / "monkey"
    program.write_text("#!/bin/sh\necho 'Monkey HTTP Server v1.6.9'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CONTEST_MONKEY1", raising=False)
    old = load(CONTESTANTS["monkey1"].folder)
    assert (old.find().program, old.version()) == (str(program), "1.6.9")
    program.write_text("#!/bin/sh\necho 'Monkey 2.0.0'\n")
    old = load(CONTESTANTS["monkey1"].folder)
    assert "is a different program; it prints 'Monkey 2.0.0'" in old.find().why
    with pytest.raises(Failed, match="monkey1 is absent"):
        old.prepare(Setup(folder, folder, 1))


# Responses

def test_server_has_version_origin_and_features(server):
    assert server.contestant.version()[0].isdigit()
    assert server.contestant.origin()
    assert set(server.contestant.can()) <= set(FEATURES)
    assert server.running.prepared.configuration or server.contestant.name in ("gwan", "python")


def test_server_serves_every_file_unchanged(server, stuff):
    names = [*stuff.fixed, *stuff.tree, *stuff.site[::7]]
    connection = server.connect()
    for name in names:
        answer, body = server.get(f"/{name}", connection)
        assert (answer.status, is_right(stuff, name, body)) == (200, True), name
        assert answer.getheader("Content-Encoding") is None


def test_server_compresses_nothing(server, stuff):
    name = max((name for name in stuff.site if name.endswith((".html", ".md"))), key=lambda name: stuff.files[name].length)
    answer, body = server.get(f"/{name}", **{"Accept-Encoding": "gzip, br"})
    assert answer.getheader("Content-Encoding") is None
    assert is_right(stuff, name, body)


def test_server_responds_404_for_a_missing_file(server):
    assert server.get("/nothing/of/that/name")[0].status == 404


@servers_with_feature("index")
def test_server_serves_the_index_of_a_folder(server, stuff):
    assert server.get("/folder/")[1] == (stuff.root / "folder" / "index.html").read_bytes()


@servers_with_feature("listing")
def test_server_lists_a_folder_without_index(server):
    answer, body = server.get("/tree/000/")
    assert answer.status == 200 and b"00042.txt" in body


@servers_with_feature("ranges")
def test_server_supports_ranges(server, stuff):
    answer, body = server.get("/1400.html", Range="bytes=100-199")
    assert (answer.status, body) == (206, (stuff.root / "1400.html").read_bytes()[100:200])


@servers_with_feature("keepalive")
def test_server_keeps_connections_for_unlimited_requests(server, stuff):
    with contextlib.closing(server.connect()) as connection:
        connection.connect()
        sock = connection.sock
        for _ in range(LATER_ROOM):
            assert is_right(stuff, "100.html", server.get("/100.html", connection)[1])
        assert connection.sock is sock, "the server has closed the connection, and the client has opened another one"


@servers_with_feature("keepalive", False)
def test_server_without_keepalive_closes_connections(server):
    assert server.get("/100.html")[0].will_close


@servers_with_feature("close")
def test_server_honors_connection_close(server):
    with socket.create_connection(("127.0.0.1", server.setup.port), timeout=20) as sock:
        sock.sendall(b"GET /100.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while part := sock.recv(65536):  # until the server closes the connection
            text += part
    assert text.endswith((server.setup.root / "100.html").read_bytes())


@servers_with_feature("dynamic")
def test_server_sends_the_dynamic_response(server):
    server.needs("dynamic")
    connection = server.connect()
    for _ in range(3):
        answer, body = server.get(server.running.prepared.dynamic, connection)
        assert (answer.status, body.decode()) == (200, HELLO)
    assert not (server.setup.root / "hello").exists()


@servers_with_feature("services")
def test_server_sends_json_and_plaintext(server):
    server.needs("services")
    connection = server.connect()
    for path, kind, text in (("/json", "application/json", '{"message":"Hello, World!"}'),
                             ("/plaintext", "text/plain", "Hello, World!")):
        answer, body = server.get(path, connection)
        assert (answer.status, body.decode()) == (200, text)
        assert answer.getheader("Content-Type").partition(";")[0] == kind and answer.getheader("Date")
        assert answer.getheader("Content-Length") == str(len(text))


def test_contestant_may_join_only_some_cases():
    assert CONTESTANTS["duda"].joins("json") and not CONTESTANTS["duda"].joins("small")
    assert CONTESTANTS["node"].joins("json") and CONTESTANTS["node"].joins("small")


@servers_with_feature("tls")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_server_supports_tls(server, stuff, version):
    server.needs("tls")
    context = ssl.create_default_context(cafile=stuff.cert)
    context.minimum_version = context.maximum_version = version
    connection = http.client.HTTPSConnection("localhost", server.setup.tls_port, timeout=20, context=context)
    with contextlib.closing(connection):
        for name in ("1400.html", "200k.bin"):
            assert is_right(stuff, name, server.get(f"/{name}", connection)[1])


def curl(*arguments):
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    done = subprocess.run(["curl", "-sS", "-m", "20", "-w", "%{stderr}%{http_version}", *arguments], capture_output=True,
                          check=False)
    return done.stderr.decode(), done.stdout


@servers_with_feature("h2")
def test_server_supports_http2(server, stuff):
    server.needs("h2")
    head, body = curl("--http2", "--cacert", stuff.cert, f"https://localhost:{server.setup.tls_port}/200k.bin")
    assert (head, is_right(stuff, "200k.bin", body)) == ("2", True)


@servers_with_feature("h2c")
def test_server_supports_h2c(server, stuff):
    server.needs("h2c")
    head, body = curl("--http2-prior-knowledge", f"http://127.0.0.1:{server.setup.h2c_port}/200k.bin")
    assert (head, is_right(stuff, "200k.bin", body)) == ("2", True)


@pytest.mark.parametrize("name", ["100.html", "200k.bin", "10m.bin"])
def test_yardstick_serves_one_file(folder, stuff, name):
    each = present("floor")
    assert each.yardstick
    with start(each, folder, stuff, file=name) as running:
        yardstick = Server(each, running)
        connection = yardstick.connect()
        for _ in range(3):
            assert is_right(stuff, name, yardstick.get(f"/{name}", connection)[1])
        answer, body = yardstick.get(f"/{name}", connection, Connection="close")
        assert answer.will_close and is_right(stuff, name, body)
        assert connection.sock is None


# Start and stop

def is_served(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


@pytest.mark.parametrize("name", CONTESTANTS)
def test_stop_ends_all_processes_of_a_contestant(name, folder, stuff):
    running = start(present(name), folder, stuff)
    with socket.create_connection(("127.0.0.1", running.prepared.setup.port)) as client:  # this connection stays open
        client.sendall(b"GET /10m.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.recv(1)
        members = family.members(running.pid, running.mark)
        assert running.pid in members and set(members) <= set(running.pids())
        running.stop()
    assert family.wait_gone(members, 0) == {}
    assert family.members(running.pid, running.mark) == {}
    assert not is_served(running.prepared.setup.port)
    running.stop()


@pytest.mark.parametrize("name", SERVERS)
def test_server_supports_an_access_log_and_two_workers(name, folder, stuff):
    each = present(name)
    log = "log" in each.features
    with start(each, folder, stuff, log=log, workers=2, tls_port=None, h2c_port=None) as running:
        answer, body = Server(each, running).get("/1400.html")
        assert answer.status == 200 and is_right(stuff, "1400.html", body)
    written = Path(running.prepared.setup.folder, "access.log")
    assert not log or "/1400.html" in written.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="everything here runs as a user")
@pytest.mark.parametrize("name", SERVERS)
def test_server_runs_as_an_unprivileged_user(name, folder, stuff):
    present(name)
    python = shutil.which("python3", path="/usr/bin")
    if not python or not shutil.which("setpriv") or subprocess.run([python, "-c", "import tomllib"], check=False).returncode:
        pytest.skip("needs a Python 3.11 and setpriv that all may use")
    shutil.chown(folder, "nobody")
    key = shutil.copy(stuff.key, folder / "key.pem")
    shutil.chown(key, "nobody")
    program = folder / "program.py"
    program.write_text(textwrap.dedent(f"""
        import os
        from pathlib import Path
        from contest.contestant import Setup, load_all
        from contest.ports import free_port
        place = Path({str(folder)!r}, "place")
        place.mkdir()
        setup = Setup(place, Path({str(stuff.root)!r}), free_port(), free_port(), free_port(),
                      cert=Path({str(stuff.cert)!r}), key=Path({str(key)!r}))
        with load_all()[{name!r}].prepare(setup).start() as running:
            print("serves", os.getuid())
        """))
    env = os.environ | {"PYTHONPATH": str(Path(contestant.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["setpriv", "--reuid", "nobody", "--clear-groups", python, program], env=env, cwd=folder,
                          capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout == "serves 65534\n", done.stderr


# ---- Backends ----

KEEPS = {"monkey", "nginx", "apache", "caddy"}  # these contestants keep connections to an origin open


def connections_to(port):
    """Returns the number of established connections to a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


@pytest.fixture
def start_backend(stuff, folder):
    """Starts the backend that the contestant's feature requires, and stops it after the test."""
    made = []
    with contextlib.ExitStack() as ended:
        def put(feature_name, each, feature):
            why = each.missing().get(feature) or backends.lacks(feature_name)
            if why:
                pytest.skip(f"{each.name}: {why}")
            cores = sorted(os.sched_getaffinity(0))
            made.append(ended.enter_context(backends.start(feature_name, stuff, cores, folder / "origin")))
            return made[-1]
        yield put
    assert not any(family.members(each.process.pid) for each in made)


@pytest.mark.parametrize("name", [name for name in SERVERS if "proxy" in CONTESTANTS[name].features])
def test_server_proxies_requests_to_the_origin(name, folder, stuff, start_backend):
    each = present(name)
    origin = start_backend("200k.bin", each, "proxy")
    with start(each, folder, stuff, tls_port=None, h2c_port=None, **origin.setup()) as running:
        with contextlib.closing(Server(each, running).connect()) as client:
            for _ in range(5):
                answer, body = Server(each, running).get("/origin/any", client)
                assert (answer.status, is_right(stuff, "200k.bin", body)) == (200, True)
            wait_until(lambda: connections_to(origin.port) == (name in KEEPS), "the expected number of idle connections")
            assert not set(origin.pids()) & set(running.pids())


@pytest.mark.parametrize("name", [name for name in SERVERS if "php" in CONTESTANTS[name].features])
def test_server_runs_php_by_fastcgi(name, folder, stuff, start_backend):
    each = present(name)
    php = start_backend("php", each, "php")
    with start(each, folder, stuff, tls_port=None, h2c_port=None, **php.setup()) as running:
        with contextlib.closing(Server(each, running).connect()) as client:
            for _ in range(5):
                answer, body = Server(each, running).get("/php/hello.php", client)
                assert (answer.status, body.decode()) == (200, HELLO)
        wait_until(lambda: len(php.pids()) == backends.CHILDREN + 1, "the start of all children")


def test_backend_that_does_not_serve_is_an_error(folder, stuff, monkeypatch):
    monkeypatch.setattr(backends, "find_php", lambda: shutil.which("false"))
    with pytest.raises(Failed, match="backend does not respond"):
        backends.start("php", stuff, sorted(os.sched_getaffinity(0)), folder / "php")
    monkeypatch.setattr(backends, "find_php", lambda: None)
    assert backends.lacks("php") == "PHP-FPM is not installed" and backends.lacks("") is None


STUBBORN = """\
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[1] == "child":
    os.setsid()
    open(sys.argv[2], "w").write(str(os.getpid()))
    time.sleep(600)
subprocess.Popen([sys.executable, __file__, "child", sys.argv[2]])
import http.server
os.chdir(sys.argv[3])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


def custom_contestant(folder, command):
    """Creates a contestant that a test can change."""
    work_folder = folder / "made-up"
    work_folder.mkdir()
    (work_folder / "fairness.md").write_text("# made up\n")
    (work_folder / "contestant.toml").write_text(f"""
        title = "made up"
        about = "for a test"
        revision = 1
        programs = ["{sys.executable}"]
        features = ["files"]
        stop_seconds = 0.2
        version = {{ fixed = "1" }}
        command = {command}
        """)
    return load(work_folder)


def test_stop_kills_a_server_that_ignores_sigterm_with_its_children(folder, stuff):
    (folder / "stubborn.py").write_text(STUBBORN)
    child = folder / "child"
    each = custom_contestant(folder, f'["@program@", "{folder}/stubborn.py", "@port@", "{child}", "@root@"]')
    with start(each, folder, stuff) as running:
        number = int(wait_until(lambda: child.exists() and child.read_text(), "the PID of the child"))
        assert number in running.pids()
        began = family.started(number)
    assert began and family.started(number) != began
    assert not is_served(running.prepared.setup.port)


def test_start_failure_quotes_the_output(folder, stuff):
    each = custom_contestant(folder, '["@program@", "-c", "raise SystemExit(\'no such luck\')"]')
    with pytest.raises(Failed, match=r"(?s)made-up exited immediately with 1: .*no such luck"):
        start(each, folder, stuff)


def test_start_has_a_time_limit(folder, stuff):
    each = custom_contestant(folder, '["@program@", "-c", "import time; time.sleep(600)"]')
    work_folder = folder / "place"
    work_folder.mkdir()
    prepared = each.prepare(Setup(work_folder, stuff.root, ports.free_port()))
    with pytest.raises(Failed, match="does not respond within 0.3 s: no output"):
        prepared.start(seconds=0.3)


def test_start_uses_the_wrapper_and_the_cgroup(folder, stuff):
    each = custom_contestant(folder, '["@program@", "-m", "http.server", "@port@", "-b", "127.0.0.1", "-d", "@root@"]')
    work_folder, group = folder / "place", folder / "group"
    work_folder.mkdir()
    group.mkdir()
    (group / "cgroup.procs").write_text("")  # in a real cgroup, writing 0 to this file moves the writing process into the cgroup
    with each.prepare(Setup(work_folder, stuff.root, ports.free_port())).start(["env", "WRAPPED=1"], group) as running:
        assert b"WRAPPED=1" in Path(f"/proc/{running.pid}/environ").read_bytes()
    assert (group / "cgroup.procs").read_text() == "0"


# Material

def test_material_matches_its_checksums(stuff):
    for name, file in stuff.files.items():
        data = (stuff.root / name).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file.length, file.sha256)
    assert [stuff.files[name].length for name in stuff.fixed] == [100, 1400, 200_000, 10_000_000]
    leaves = [stuff.files[name] for name in stuff.tree]
    assert {leaf.length for leaf in leaves} == {4096} and len({leaf.sha256 for leaf in leaves}) == len(leaves) == 60
    assert len(stuff.site) > 20 and stuff.site_name
    assert not set(stuff.site) & set(stuff.tree)


def test_material_ignores_a_package_without_the_site(monkeypatch, tmp_path):
    (tmp_path / "changelog.gz").write_bytes(b"of the package sqlite3")
    monkeypatch.setattr(material, "SITE", tmp_path)
    assert material.site_source()[1] == material.PROJECT / "docs"
    (tmp_path / "about.html").write_text("the site")
    assert material.site_source()[1] == tmp_path


def test_material_is_reproducible(folder, stuff):
    again = material.make(folder / "again", tree=5, site=False, tls=False)
    assert all(stuff.files[name] == file for name, file in again.files.items())
    assert again.cert is None


def test_certificate_is_p256_and_for_localhost(stuff):
    head = subprocess.run(["openssl", "x509", "-in", stuff.cert, "-noout", "-text"], capture_output=True, text=True,
                          check=True).stdout
    assert "P-256" in head and "DNS:localhost" in head
    assert stuff.key.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("name", ["nginx", "lighttpd", "apache"])
def test_only_writable_files_belong_to_the_unprivileged_user(name, folder):
    each = present(name)
    each.prepare(Setup(folder, folder, ports.free_port(), log=True))
    given = {path.name for path in folder.rglob("*") if path.owner() != "root"}
    assert given == set(each.data.get("writable", []))
    assert folder.owner() == "root"


# ---- Ports ----

def test_free_ports_are_distinct():
    """Two ports of one contestant must not collide, even if its server has not yet bound the first one."""
    given = [ports.free_port() for _ in range(2000)]
    assert len(set(given)) == len(given)


def test_start_with_a_taken_port_fails(tmp_path, folder_of_fakes):
    """The server that holds the port would respond in place of the one that failed to bind and exited."""
    front, behind = folder_of_fakes
    port = ports.free_port()
    with behind.prepare(Setup(made_folder(tmp_path / "b"), tmp_path, port)).start():
        with pytest.raises(PortTaken, match=f"another program has port {port}"):
            front.prepare(Setup(made_folder(tmp_path / "f"), tmp_path, port)).start()


def test_start_reports_a_failed_bind_as_a_taken_port(tmp_path):
    add_contestant(tmp_path / "c", "late", command=["@program@", "-c", "import sys; sys.exit('Could not bind or listen to port 1')"])
    late = contestant.load_all(tmp_path / "c")["late"]
    with pytest.raises(PortTaken, match="Could not bind"):
        late.prepare(Setup(made_folder(tmp_path / "l"), tmp_path, ports.free_port())).start()


def test_port_can_be_reused_after_connections(tmp_path, folder_of_fakes):
    prepared = folder_of_fakes[0].prepare(Setup(made_folder(tmp_path / "f"), tmp_path, ports.free_port()))
    for _ in range(2):
        with prepared.start():
            pass


def made_folder(path):
    path.mkdir()
    return path


@pytest.fixture
def folder_of_fakes(tmp_path):
    for name in ("front", "behind"):
        add_contestant(tmp_path / "c", name)
    made = contestant.load_all(tmp_path / "c")
    return made["front"], made["behind"]
