# SPDX-License-Identifier: Apache-2.0
"""The preset `tiny`, as a dynamic program and as a static one with musl: keys and commands of omitted parts are rejected with a
message that names the missing part, and everything else works."""
import http.client
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from monkey import ROOT

BUILD_SECONDS = 900
pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS),
              pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja")]


def static_options(folder):
    """Options for a static program. Debian's musl-gcc does not find the kernel headers."""
    folder.mkdir()
    multiarch = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    for name in ("linux", "asm", "asm-generic"):
        there = [path for path in (f"/usr/include/{multiarch}/{name}", f"/usr/include/{name}") if os.path.isdir(path)]
        (folder / name).symlink_to(there[0])
    return ["-DCMAKE_C_COMPILER=musl-gcc", "-DCMAKE_EXE_LINKER_FLAGS=-static", f"-DCMAKE_C_FLAGS=-O0 -isystem {folder}"]


@pytest.fixture(scope="module", params=["dynamic", pytest.param("static", marks=pytest.mark.skipif(
    not (shutil.which("musl-gcc") and shutil.which("gcc")), reason="needs musl-gcc"))])
def tiny(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    options = static_options(folder / "kernel") if request.param == "static" else ["-DCMAKE_C_FLAGS=-O0"]
    for command in (["cmake", "-S", ROOT, "--preset", "tiny", "-B", folder, "-DCMAKE_BUILD_TYPE=Debug", "-DMK_WERROR=ON", *options],
                    ["cmake", "--build", folder, "--target", "monkey"]):
        done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "monkey"


@pytest.fixture
def run(tiny, tmp_path):
    def run(*words, config=None):
        (tmp_path / "site").mkdir(exist_ok=True)
        if config is not None:
            (tmp_path / "a.conf").write_text(config)
            words = ("-c", "a.conf", *words)
        return subprocess.run([tiny, *words], cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "C"})
    return run


SITE = "[SERVER]\n    Listen 127.0.0.1:2001\n[HOST]\n    DocumentRoot site\n"


@pytest.mark.parametrize("config, message", [
    (SITE + "[HANDLERS]\n    Match /x.* static\n", "a.conf:6:5: error: `/x.*`: this server was built without expressions of Monkey 1.6"),
    (SITE + "[ROUTES]\n    ~ ^/x static\n", "`^/x`: this server does not support regular expressions: Monkey was built without PCRE2"),
    (SITE.replace("2001", "2001 tls"), "this server does not support TLS: Monkey was built without OpenSSL"),
    (SITE + "[PLUGINS]\n    Load auth\n", "cannot load the plugin `auth`: it is not built in, and this server was built without loadable"),
    (SITE + "[PLUGINS]\n    Load ./monkey-auth.so\n", "this server was built without loadable plugins (MK_EXPORTS)"),
    (SITE + "[PLUGINS]\n    Load dirlisting\n[DIRLISTING]\n    Upload anyone\n", "this server was built without uploads (MK_UPLOADS)"),
    (SITE + "[ROUTES]\n    /x proxy 127.0.0.1:80\n", "proxy"),
    (SITE + "[UPSTREAM a]\n    Server 127.0.0.1:80\n", "UPSTREAM"),
])
def test_tiny_refuses_keys_of_absent_parts(run, config, message):
    done = run("-t", config=config)
    assert done.returncode == 3 and message in done.stderr


@pytest.mark.parametrize("words, code, message", [
    (["explain", "GET", "/"], 2, "monkey: this server was built without `monkey explain` (MK_EXPLAIN)\n"),
    (["plugins"], 2, "monkey: this server was built without `monkey plugins` (MK_EXPLAIN)\n"),
    (["-T"], 2, "monkey: this server was built without `monkey -T` (MK_EXPLAIN)\n"),
    (["explain", "GET", "/", "-H", "A: b"], 2, "monkey: this server was built without `monkey explain` (MK_EXPLAIN)\n"),
    (["diff"], 2, "monkey: this server was built without `monkey diff` (MK_CONFIG_HISTORY)\n"),
    (["configurations"], 2, "monkey: this server was built without `monkey configurations` (MK_CONFIG_HISTORY)\n"),
    (["certificates", "--json"], 2, "monkey: this server was built without `monkey certificates` (MK_CERTIFICATES)\n"),
    (["ca"], 2, "monkey: this server was built without `monkey ca` (MK_TLS)\n"),
    (["--https", "site"], 2, "monkey: this server was built without `monkey --https` (MK_TLS)\n"),
    (["help", "diff"], 2, "monkey: there is no command `diff`\n"),
])
def test_tiny_refuses_absent_commands(run, words, code, message):
    done = run(*words, config=SITE if words[0] in ("explain", "-T", "diff", "certificates") else None)
    assert done.returncode == code and message in done.stderr


def test_tiny_help_omits_absent_commands_and_options(run):
    done = run("help")
    assert done.returncode == 0
    assert re.findall(r"^  monkey (\S+)", done.stdout, re.MULTILINE) == ["DIR", "-c", "help"]
    assert set(re.findall(r"--[a-z-]+", done.stdout)) == {
        "--port", "--public", "--workers", "--config", "--test", "--daemon", "--pid-file", "--one-shot", "--version", "--build", "--help"}


def test_tiny_has_its_parts(run):
    done = run("-t", config=SITE + "[PLUGINS]\n    Load cgi\n    Load dirlisting\n    Load logger\n[ROUTES]\n    *.cgi cgi\n")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def serve(tiny, tmp_path):
    """Starts the server with a configuration; returns its process and a function that requests a path."""
    started = []

    def start(config):
        (tmp_path / "a.conf").write_text(config)
        server = subprocess.Popen([tiny, "-c", "a.conf"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(server)
        port = next(int(found[1]) for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:(\d+)", line)))

        def get(path):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path, headers={"User-Agent": "test"})
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
        return server, get
    yield start
    for server in started:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=20)
        assert server.returncode == 0


def wait_until(check, seconds=20):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end
        time.sleep(0.05)


FULL = """[SERVER]
    Listen 127.0.0.1:0
    Workers 1
[PLUGINS]
    Load cgi
    Load dirlisting
    Load logger
[HOST]
    DocumentRoot site
[ROUTES]
    *.cgi cgi
    /gone status 410
    /* static
[DIRLISTING]
    Theme plain
[LOGGER]
    AccessLog access.log
"""


def test_tiny_serves_files_listings_and_cgi_and_logs_them(serve, tmp_path):
    (tmp_path / "site" / "many").mkdir(parents=True)
    (tmp_path / "site" / "index.html").write_text("hello\n")
    for name, size in (("b.bin", 1536), ("a.txt", 7)):
        (tmp_path / "site" / "many" / name).write_text("x" * size)
    script = tmp_path / "site" / "a.cgi"
    script.write_text("#!/bin/sh\nprintf 'Content-Type: text/x-test\\n\\n%s' \"$QUERY_STRING\"\n")
    script.chmod(0o755)
    _, get = serve(FULL)
    assert get("/") == (200, "text/html; charset=utf-8", "hello\n")
    assert get("/many/a.txt")[1] == "text/plain; charset=utf-8"
    status, kind, page = get("/many/")
    assert status == 200 and kind == "text/html; charset=utf-8"
    assert page.index("a.txt") < page.index("b.bin") and "7 B" in page and "1.5 KB" in page
    assert get("/a.cgi?x=1") == (200, "text/x-test", "x=1")
    status, kind, page = get("/missing")
    assert status == 404 and kind == "text/html; charset=utf-8" and "<h1>404 Not Found</h1>" in page
    assert re.search(r"<small>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC</small>", page)
    assert get("/gone")[0] == 410
    log = tmp_path / "access.log"
    wait_until(lambda: log.exists() and log.read_text().count("\n") == 6)
    line = (r'127\.0\.0\.1 - - \[\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d [-+]\d{4}\] "GET /a\.cgi\?x=1 HTTP/1\.1" 200 3 "-" "test"')
    assert re.search(f"^{line}$", log.read_text(), re.MULTILINE), log.read_text()


def test_tiny_reloads_its_configuration(serve, tmp_path):
    (tmp_path / "site").mkdir()
    server, get = serve(FULL)
    assert get("/new")[0] == 404
    (tmp_path / "a.conf").write_text(FULL.replace("/gone", "/new"))
    server.send_signal(signal.SIGHUP)
    wait_until(lambda: get("/new")[0] == 410)
