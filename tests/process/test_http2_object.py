# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 is an object of its own: the master loads it when a client could speak HTTP/2, and only if it is of the same build."""
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import h2frames as f
from client import Client
from http2 import Http2Client
from monkey import ENVIRONMENT, PROGRAM
from proc import wait_until

OBJECT = PROGRAM.parent / "plugins/monkey-http2.so"
BUILD_ID = PROGRAM.parent / "build_id/build_id.h"

pytestmark = [pytest.mark.over("h1", why="it is about what is loaded, and chooses what it speaks"),
              pytest.mark.skipif(not OBJECT.exists(), reason="this build has no object for HTTP/2")]


def loads(pid):
    """Which of the object and its library a process has in memory."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return {name for name in ("monkey-http2.so", "libnghttp2.so") if name in maps}


def has_it(server):
    """Master and workers alike: workers inherit it."""
    found = [loads(pid) for pid in (server.pid, *server.workers)]
    assert all(each == found[0] for each in found) and len(found[0]) in (0, 2)
    return bool(found[0])


@pytest.fixture
def alone(tmp_path):
    """A copy of the program in a folder of its own, `plugins` beside it. Skips where another object is installed."""
    program = tmp_path / "alone/monkey"
    (program.parent / "plugins").mkdir(parents=True)
    shutil.copy(PROGRAM, program)
    if "HTTP/2    no: monkey-http2.so is not in " not in run(program, "-V").stdout:
        pytest.skip("another object for HTTP/2 is installed on this machine")
    return program


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, env=os.environ | ENVIRONMENT)


def check(program, tmp_path, *lines):
    config = tmp_path / "a.conf"
    config.write_text("[SERVER]\n" + "".join(f"    {line}\n" for line in lines) + "[HOST]\n    DocumentRoot site\n")
    return run(program, "-t", "-c", config)


def put(program, content):
    (program.parent / "plugins/monkey-http2.so").write_bytes(content)


def of_another_build(content):
    """The object, with another number of its build."""
    number = int(re.search(r"0x(\w+)u", BUILD_ID.read_text())[1], 16).to_bytes(4, "little")
    assert content.count(number) == 1
    return content.replace(number, bytes(255 - byte for byte in number))


@pytest.mark.parametrize("listen, server, expected", [
    ("127.0.0.1:0", "", True),
    ("127.0.0.1:0", "HTTP2 off", False),
    ("127.0.0.1:0 http2", "HTTP2 off", True),
], ids=["usual", "off", "alone"])
def test_it_is_loaded_when_a_client_could_speak_it(monkey, site, listen, server, expected):
    site.add("index.html", "hello")
    assert has_it(monkey(listen=listen, server=server, workers=2)) == expected


def test_a_reload_brings_it_to_new_workers(monkey, site):
    site.add("index.html", "hello")
    server = monkey(server="HTTP2 off")
    assert not has_it(server)
    server.config.write_text(server.config.read_text().replace("HTTP2 off", "HTTP2 on"))
    old = server.workers
    server.tell(signal.SIGHUP)
    wait_until(lambda: server.workers and not set(old) & set(server.workers), "new workers alone")
    assert has_it(server)
    with Http2Client(server.addresses[0]) as c:
        assert c.get("/").text == "hello"


def test_a_program_without_it_speaks_http1(alone, monkey, site):
    site.add("index.html", "hello")
    server = monkey(program=alone)
    with Client(server.addresses[0]) as c:
        assert c.get("/").text == "hello"
    with Client(server.addresses[0]) as c:
        assert c.send(f.PREFACE).read().status == 505
    assert "HTTP/2" not in server.err.text


def test_a_program_without_it_offers_http1_over_tls(alone, monkey, site, encryption):
    site.add("index.html", "hello")
    tls = PROGRAM.parent / "plugins/monkey-tls.so"
    if not tls.exists():
        pytest.skip("this build has no TLS")
    shutil.copy(tls, alone.parent / "plugins")
    server = monkey(program=alone, protocol="h1-tls", encryption=encryption)
    with Client(server.addresses[0], tls=encryption.authority.client_context(alpn=["h2", "http/1.1"])) as c:
        assert c.sock.protocol == "http/1.1" and c.get("/").text == "hello"


def test_a_program_without_it_cannot_speak_http2_alone(alone, tmp_path, site):
    done = check(alone, tmp_path, "Listen 127.0.0.1:8080 http2")
    assert done.returncode == 3
    assert "a.conf:2:12: error: `Listen 127.0.0.1:8080 http2`: this server does not support HTTP/2: " in done.stderr
    assert "monkey-http2.so is not in " in done.stderr
    assert "hint: install the package with monkey-http2.so, or build with nghttp2 (libnghttp2-dev)" in done.stderr


def test_an_object_of_another_build_is_refused(alone, tmp_path, site):
    put(alone, of_another_build(OBJECT.read_bytes()))
    refused = f"{alone.parent}/plugins/monkey-http2.so: it belongs to another build of Monkey\n"
    assert f"HTTP/2    no: {refused}" in run(alone, "-V").stdout
    done = check(alone, tmp_path, "Listen 127.0.0.1:8080 http2")
    assert done.returncode == 3 and f"does not support HTTP/2: {refused}" in done.stderr
    done = check(alone, tmp_path, "Listen 127.0.0.1:8080")
    assert done.returncode == 0 and f"a.conf:2:12: warning: clients cannot speak HTTP/2: {refused}" in done.stderr
    done = check(alone, tmp_path, "Listen 127.0.0.1:8080", "HTTP2 off")
    assert done.returncode == 0 and not done.stderr


def test_an_object_that_needs_what_the_program_lacks_is_refused(alone, tmp_path):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no compiler here")
    source = tmp_path / "x.c"
    source.write_text("extern int mk_conn_of_a_later_build(void);\nint mk_x(void) { return mk_conn_of_a_later_build(); }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", alone.parent / "plugins/monkey-http2.so", source], check=True)
    assert "monkey-http2.so: it belongs to another build of Monkey\n" in run(alone, "-V").stdout


def test_what_is_no_object_is_refused(alone):
    put(alone, b"no object at all")
    assert re.search(r"^HTTP/2    no: .*monkey-http2\.so: (file too short|invalid ELF header)$", run(alone, "-V").stdout, re.MULTILINE)


def test_the_program_names_its_library():
    assert re.search(r"^HTTP/2    nghttp2 \d+\.\d+\.\d+$", run(PROGRAM, "-V").stdout, re.MULTILINE)
