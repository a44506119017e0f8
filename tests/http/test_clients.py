# SPDX-License-Identifier: Apache-2.0
"""Real client programs, and a large tree of documents."""
import filecmp
import gzip
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import h2.config
import h2.connection
import h2.events
import pytest

import browser
from sockets import dial

MTIME = 1_600_000_000
DOCS = Path("/usr/share/doc")
DOCS_MAX, DOC_BYTES_MAX = 500, 1 << 20


def tool(name):
    return pytest.mark.skipif(not shutil.which(name), reason=f"no {name} here")


ONLY_1 = pytest.mark.over("h1", "h1-tls", why="it speaks HTTP/1")


def run(*args, code=0, **how):
    done = subprocess.run([str(a) for a in args], capture_output=True, timeout=50, check=False,
                          **({"stdin": subprocess.DEVNULL} | how))
    assert done.returncode == code, f"{args}: exit code {done.returncode}\n{done.stdout!r}\n{done.stderr.decode()}"
    return done.stdout


@pytest.fixture(autouse=True)
def trust(encryption, monkeypatch, tmp_path):
    """Makes client programs trust the test CA through environment variables."""
    (tmp_path / "wgetrc").write_text(f"ca_certificate = {encryption.trust}\n")
    monkeypatch.setenv("CURL_CA_BUNDLE", str(encryption.trust))
    monkeypatch.setenv("WGETRC", str(tmp_path / "wgetrc"))


@pytest.fixture
def server(monkey, site):
    site.add("index.html", "<p>hello</p>\n" * 100, mtime=MTIME)
    site.add("index.html.gz", gzip.compress(b"<p>hello</p>\n" * 100), mtime=MTIME)
    site.add("large.bin", os.urandom(3_000_000))
    site.add("small.txt", "x" * 100)
    site.add("folder/index.html", "folder")
    return monkey(server="KeepAliveRequests 0", workers=2)


# curl

def version_of_curl():
    output = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=False).stdout if CURL_THERE else ""
    return tuple(map(int, re.findall(r"\d+", output)[:3]))


CURL_THERE = bool(shutil.which("curl"))
CURL = version_of_curl()


def forgetful(server):
    """Before 8.0, curl cannot reuse an unencrypted HTTP/2 connection: it negotiates h2c only for the first request."""
    return server.protocol == "h2" and CURL < (8,)


@pytest.fixture
def curl(protocol, request):
    """Runs curl with the protocol of the test."""
    words = {"h1": ["--http1.1"], "h1-tls": ["--http1.1"], "h2": ["--http2-prior-knowledge"], "h2-tls": ["--http2"]}[protocol]
    if protocol.endswith("-tls"):
        words += ["--cacert", request.getfixturevalue("encryption").trust]
    return lambda *args, code=0, **how: run("curl", "-sS", "--max-time", "30", *words, *args, code=code, **how)


@tool("curl")
def test_curl_downloads_uploads_and_gets_errors(server, site, tmp_path, curl):

    url, page, large = server.url, (site / "index.html").read_bytes(), (site / "large.bin").read_bytes()
    assert curl(url + "/") == page
    assert curl("--compressed", url + "/") == page
    assert curl("-H", "Accept-Encoding: gzip", url + "/") == (site / "index.html.gz").read_bytes()
    if not server.is_h2:
        assert curl("--http1.0", url + "/") == page
        assert curl("-H", "Connection: close", url + "/large.bin") == large
    assert curl("-o", "/dev/null", "-w", "%{http_version}", url + "/") == (b"2" if server.is_h2 else b"1.1")
    assert curl("-r", "1000-1999", url + "/large.bin") == large[1000:2000]
    if not forgetful(server):
        assert curl("-L", url + "/folder") == b"folder"
        assert curl(*[f"{url}/small.txt"] * 20) == b"x" * 2000
    assert curl("-f", url + "/none", code=22) == b""
    head = curl("-I", url + "/large.bin").decode()
    assert re.match(r"HTTP/2 200 ?\r\n" if server.is_h2 else r"HTTP/1\.1 200 OK\r\n", head)
    assert f"content-length: {len(large)}\r\n" in head.lower()
    assert curl("-z", "Sun, 13 Sep 2020 12:26:40 GMT", "-o", tmp_path / "x", "-w", "%{http_code}", url + "/") == b"304"
    assert curl("--path-as-is", "-o", "/dev/null", "-w", "%{http_code}", url + "/../../etc/hostname") == b"400"
    assert curl("-X", "POST", "-d", "a=b", "-o", "/dev/null", "-w", "%{http_code}", url + "/") == b"405"
    if server.is_h2 and CURL < (8,):  # curl before 8.0 loses a response that is followed by RST_STREAM
        return
    # Before it sends a body of this size, curl waits for 100 Continue; here it gets a 413 instead.
    (tmp_path / "upload").write_bytes(b"x" * 5_000_000)
    upload = ["-T", tmp_path / "upload", "-o", "/dev/null", "-w", "%{http_code}", url + "/"]
    assert curl(*upload) == curl("-H", "Expect:", *upload) == b"413"


@tool("curl")
def test_curl_resumes_download(server, site, tmp_path, curl):
    large, part = (site / "large.bin").read_bytes(), tmp_path / "part"
    for size in (0, 1, 1_000_000, len(large) - 1):
        part.write_bytes(large[:size])
        curl("-C", "-", "-o", part, server.url + "/large.bin")
        assert part.read_bytes() == large


@tool("curl")
@pytest.mark.over("h1", "h2", why="a unix socket is not encrypted")
def test_curl_connects_to_unix_socket(monkey, site, tmp_path, curl):
    site.add("a.txt", "hello")
    monkey(listen=f"unix:{tmp_path}/socket")
    assert curl("--unix-socket", tmp_path / "socket", "http://any.example/a.txt") == b"hello"


@tool("curl")
@pytest.mark.over("h1", why="it would like to change to HTTP/2")
def test_curl_upgrade_request_stays_on_http_1(server, curl):
    assert curl("--http2", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", server.url + "/") == b"1.1 200"


@tool("curl")
@pytest.mark.http2
def test_curl_runs_parallel_transfers_on_one_connection(server, curl):
    if forgetful(server):
        pytest.skip("this curl cannot reuse an unencrypted HTTP/2 connection")
    output = curl("-Z", "--parallel-max", "20", "-w", "%{num_connects} %{http_version} %{http_code}\n",
                *sum((["-o", "/dev/null", f"{server.url}/{name}"] for name in ["small.txt", "large.bin", ""] * 20), []))
    lines = output.decode().split("\n")[:-1]
    assert len(lines) == 60 and all(line.endswith(" 2 200") for line in lines)
    assert sum(int(line[0]) for line in lines) == 1, "one connection for all of them"


# wget

def trust(server):
    return [f"--ca-certificate={server.encryption.trust}"] if server.encrypts[0] else []


@tool("wget")
@ONLY_1
def test_wget_resumes_download(server, site, tmp_path):
    large, part = (site / "large.bin").read_bytes(), tmp_path / "large.bin"
    part.write_bytes(large[:1_234_567])
    run("wget", "-q", *trust(server), "-c", server.url + "/large.bin", cwd=tmp_path)
    assert part.read_bytes() == large
    run("wget", "-q", *trust(server), "-c", server.url + "/large.bin", cwd=tmp_path)  # complete: 416
    assert part.read_bytes() == large


@tool("wget")
@ONLY_1
def test_wget_mirrors_links(monkey, site, tmp_path):
    pages = {f"d{i % 5}/page {i} ä?.html": "" for i in range(40)}
    names = list(pages)
    for i, name in enumerate(names):
        following = [names[(i + 1) % len(names)], names[(i * 7) % len(names)]]
        pages[name] = "".join(f'<a href="/{quote(n)}">x</a>' for n in following)
        site.add(name, pages[name])
    site.add("index.html", f'<a href="{quote(names[0])}">x</a>')
    server = monkey()
    run("wget", "-q", *trust(server), "-m", "-nH", "--restrict-file-names=nocontrol", "-P", tmp_path / "copy", server.url + "/")
    for name in names:
        assert (tmp_path / "copy" / name).read_text() == pages[name]


@tool("wget")
@pytest.mark.over("h1", why="what is read from disk is the same")
@pytest.mark.skipif(not DOCS.is_dir(), reason=f"no {DOCS} here")
def test_document_tree_arrives_identical(monkey, tmp_path):
    """Fetches every file by name and compares it with the file on disk; compressed files stay compressed."""
    found = sorted(p.relative_to(DOCS) for p in DOCS.rglob("*") if is_served(p))
    files = found[::max(1, len(found) // DOCS_MAX)][:DOCS_MAX]
    if len(files) < 20:
        pytest.skip("there is hardly a document here")
    server = monkey(root=DOCS, host="FollowSymlinks on", server="KeepAliveRequests 0", workers=2)
    (tmp_path / "list").write_text("".join(f"{server.url}/{quote(str(f))}\n" for f in files))
    run("wget", "-q", "-nH", "-x", "--restrict-file-names=nocontrol", "-i", tmp_path / "list", "-P", tmp_path / "copy",
        env=os.environ | {"LC_ALL": "C.UTF-8"})
    for name in files:
        assert filecmp.cmp(DOCS / name, tmp_path / "copy" / name, shallow=False), name


def is_served(path):
    try:
        return path.is_file() and path.stat().st_size <= DOC_BYTES_MAX and os.access(path, os.R_OK)
    except OSError:
        return False


# nghttp2's programs

@tool("nghttp")
@pytest.mark.http2
@pytest.mark.parametrize("flags", [[], ["--window-bits=10"], ["--hexdump"], ["--no-dep"], ["--padding=100"],
                                   ["--header-table-size=0"], ["--header-table-size=65536"]], ids=str)
def test_nghttp_downloads_without_protocol_error(server, site, flags):
    url = server.url
    assert run("nghttp", *flags, url + "/large.bin").endswith((site / "large.bin").read_bytes()) or "--hexdump" in flags
    output = run("nghttp", "-nv", *flags, "-m", 5, url + "/small.txt", url + "/", url + "/none").decode("utf-8", "replace")
    assert len(re.findall(r":status: 200", output)) == 10 and len(re.findall(r":status: 404", output)) == 5
    assert "error_code=NO_ERROR" in output and not re.search(r"error_code=(?!NO_ERROR)", output), output


@tool("nghttp")
@pytest.mark.http2
def test_nghttp_loads_page_with_its_resources(monkey, site):
    names = [f"{i}.css" for i in range(30)] + [f"{i}.js" for i in range(30)]
    for name in names:
        site.add(name, f"/* {name} */" * 100)
    site.add("index.html", "<html><head>" + "".join(
        f'<link rel="stylesheet" href="{n}">' if n.endswith("css") else f'<script src="{n}"></script>' for n in names) +
        "</head></html>")
    server = monkey()
    output = run("nghttp", "-nas", server.url + "/").decode()
    assert len(re.findall(r" 200 +\S+ /(?:\d+\.\w+)?$", output, re.MULTILINE)) == 61, output


@tool("h2load")
@pytest.mark.parametrize("target", ["/", "/small.txt", "/large.bin"])
@pytest.mark.parametrize("flags", [[], pytest.param(["-w10", "-W10"], marks=pytest.mark.http2),
                                   pytest.param(["-t2", "-m100"], marks=pytest.mark.http2)],
                         ids=["usual", "small windows", "many streams"])
def test_h2load_gets_only_2xx(server, target, flags):
    count = 2000 if target != "/large.bin" else 10 if "-w10" in flags else 100
    output = run("h2load", "-n", count, "-c", 5, "-m", 10, *flags, *([] if server.is_h2 else ["--h1"]), server.url + target).decode()
    assert f"requests: {count} total, {count} started, {count} done, {count} succeeded, 0 failed, 0 errored, 0 timeout" in output
    assert re.search(rf"^status codes: {count} 2xx, 0 3xx, 0 4xx, 0 5xx$", output, re.MULTILINE), output


# Python's h2 package, which also checks the rules of HTTP/2

class H2PackageClient:
    """A client that uses the h2 package and a blocking socket."""

    def __init__(self, server):
        tls = server.encryption.context("h2") if server.encrypts[0] else None
        self.sock = dial(server.addresses[0], 30, tls=tls)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.heads, self.bodies, self.ended = {}, {}, set()

    def ask(self, *fields, method="GET", target="/", body=None):
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [(":method", method), (":scheme", "http"), (":authority", "localhost"),
                                      (":path", target), *fields], end_stream=body is None)
        if body is not None:
            self.h2.send_data(stream, body, end_stream=True)
        self.bodies[stream] = b""
        return stream

    def run(self):
        while len(self.ended) < len(self.bodies):
            self.sock.sendall(self.h2.data_to_send())
            data = self.sock.recv(1 << 16)
            assert data, "the connection ended"
            for event in self.h2.receive_data(data):
                self.on_event(event)

    def on_event(self, event):
        if isinstance(event, h2.events.ResponseReceived):
            self.heads[event.stream_id] = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            self.bodies[event.stream_id] += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.ended.add(event.stream_id)
        assert not isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)), event


@pytest.mark.http2
def test_python_h2_accepts_all_responses(server, site):
    c = H2PackageClient(server)
    large = [c.ask(target="/large.bin") for _ in range(3)]
    small = [c.ask(("accept-encoding", "gzip"), target="/") for _ in range(30)]
    posts = [c.ask(("content-length", "1000"), method="POST", target="/small.txt", body=b"x" * 1000) for _ in range(10)]
    c.run()
    assert all(c.heads[n][":status"] == "200" and c.bodies[n] == (site / "large.bin").read_bytes() for n in large)
    assert all(c.bodies[n] == (site / "index.html.gz").read_bytes() for n in small)
    assert all(c.heads[n][":status"] == "405" for n in posts)
    c.h2.close_connection()
    c.sock.sendall(c.h2.data_to_send())
    c.sock.close()


# A browser

@pytest.mark.skipif(not browser.FOUND, reason="no chromium here")
@pytest.mark.over("h1", "h2-tls", why="over TLS, and there only, a browser speaks HTTP/2")
def test_browser_loads_page_with_many_resources(monkey, site, tmp_path):
    for i in range(100):
        site.add(f"{i}.svg", f'<svg xmlns="http://www.w3.org/2000/svg" width="{i + 1}" height="1"/>')
        site.add(f"{i}.js", f"window.sum = (window.sum || 0) + {i};" + " " * 3000)
    site.add("index.html", "<!doctype html><title>many</title>" + "".join(
        f'<img src="{i}.svg"><script src="{i}.js"></script>' for i in range(100)))
    server = monkey(workers=2)
    flags = [f"--ignore-certificate-errors-spki-list={server.encryption.key_hash}"] if server.encrypts[0] else []
    with browser.Browser(tmp_path, *flags) as b:
        b.goto(server.url + "/")
        assert b.wait_for("document.readyState == 'complete' && document.title") == "many"
        assert b.run("window.sum") == 4950
        assert b.run("[...document.images].every((image, i) => image.naturalWidth == i + 1)")
        spoken = b.run("[...new Set(performance.getEntriesByType('resource').map(e => e.nextHopProtocol))]")
        assert [p for p in spoken if p] == (["h2"] if server.is_h2 else ["http/1.1"])
        assert b.run("fetch('/none').then(r => r.status)") == 404


# Load

@tool("ab")
@ONLY_1
@pytest.mark.parametrize("flags", [["-k"], [], ["-k", "-i"], ["-k", "-H", "Accept-Encoding: gzip"]])
@pytest.mark.parametrize("target", ["/", "/small.txt", "/large.bin"])
def test_ab_has_no_failed_requests(server, flags, target):
    count = 60 if target == "/large.bin" else 300 if server.encrypts[0] else 2000
    output = run("ab", "-q", "-n", count, "-c", 20, *flags, server.url + target).decode()
    assert number(output, "Complete requests") == count
    assert number(output, "Failed requests") == 0
    assert "Non-2xx responses" not in output
    assert ("-k" not in flags) or number(output, "Keep-Alive requests") == count


@tool("wrk")
@ONLY_1
@pytest.mark.parametrize("target", ["/", "/large.bin"])
def test_wrk_has_no_errors(server, target):
    count = 10 if target == "/large.bin" else 50  # few enough requests that at least one of them completes
    output = run("wrk", "-t", 2, "-c", count, "-d", "1s", "--timeout", "30s", server.url + target).decode()
    assert "Socket errors" not in output and "Non-2xx" not in output, output
    assert int(re.search(r"(\d+) requests in", output)[1]) > 0


@tool("siege")
@ONLY_1
@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_siege_has_full_availability(server, site, tmp_path, connection):
    (tmp_path / ".siege").mkdir()
    (tmp_path / ".siege/siege.conf").write_text(
        f"connection = {connection}\nlogging = false\nparser = false\nverbose = false\nshow-logfile = false\n"
        "json_output = false\n")
    (tmp_path / "urls").write_text("".join(f"{server.url}/{f}\n" for f in ("", "small.txt", "large.bin", "folder/")))
    done = subprocess.run(["siege", "-R", tmp_path / ".siege/siege.conf", "-b", "-c", "20", "-r", "20", "-i",
                           "-f", tmp_path / "urls"], capture_output=True, text=True, timeout=50, check=False,
                          env=os.environ | {"HOME": str(tmp_path)}, stdin=subprocess.DEVNULL)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert re.search(r"[Aa]vailability\"?:\s+100\.00", output), output
    assert re.search(r"[Ff]ailed[ _]transactions\"?:\s+0\b", output), output


def number(output, name):
    return int(re.search(rf"^{name}:\s+(\d+)", output, re.MULTILINE)[1])


@tool("curl")
@pytest.mark.over("h1", why="the others are tried above")
def test_curl_many_at_once_get_identical_content(server, site):
    wanted = hashlib.sha256((site / "large.bin").read_bytes()).hexdigest()
    clients = [subprocess.Popen(["curl", "-sS", "--limit-rate", "20M", f"{server.url}/large.bin"],
                                stdout=subprocess.PIPE) for _ in range(10)]
    for client in clients:
        data, _ = client.communicate(timeout=50)
        assert client.returncode == 0 and hashlib.sha256(data).hexdigest() == wanted
