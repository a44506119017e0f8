# SPDX-License-Identifier: Apache-2.0
"""Programs that people use, and a whole tree of documents."""
import filecmp
import gzip
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

MTIME = 1_600_000_000
DOCS = Path("/usr/share/doc")
DOCS_MAX, DOC_BYTES_MAX = 1500, 2 << 20


def tool(name):
    return pytest.mark.skipif(not shutil.which(name), reason=f"no {name} here")


def run(*args, code=0, **how):
    done = subprocess.run([str(a) for a in args], capture_output=True, timeout=50, check=False,
                          **({"stdin": subprocess.DEVNULL} | how))
    assert done.returncode == code, f"{args}: exit code {done.returncode}\n{done.stdout!r}\n{done.stderr.decode()}"
    return done.stdout


@pytest.fixture
def server(monkey, site):
    site.add("index.html", "<p>hello</p>\n" * 100, mtime=MTIME)
    site.add("index.html.gz", gzip.compress(b"<p>hello</p>\n" * 100), mtime=MTIME)
    site.add("large.bin", os.urandom(3_000_000))
    site.add("small.txt", "x" * 100)
    site.add("folder/index.html", "folder")
    return monkey(server="MaxKeepAliveRequest 0", workers=2)


# curl

@tool("curl")
def test_curl(server, site, tmp_path):
    def curl(*args, code=0):
        return run("curl", "-sS", "--max-time", "30", *args, code=code)

    url, page, large = server.url, (site / "index.html").read_bytes(), (site / "large.bin").read_bytes()
    assert curl(url + "/") == page
    assert curl("--compressed", url + "/") == page
    assert curl("-H", "Accept-Encoding: gzip", url + "/") == (site / "index.html.gz").read_bytes()
    assert curl("--http1.0", url + "/") == page
    assert curl("-H", "Connection: close", url + "/large.bin") == large
    assert curl("-r", "1000-1999", url + "/large.bin") == large[1000:2000]
    assert curl("-L", url + "/folder") == b"folder"
    assert curl("-f", url + "/none", code=22) == b""
    assert curl(*[f"{url}/small.txt"] * 20) == b"x" * 2000
    head = curl("-I", url + "/large.bin").decode()
    assert head.startswith("HTTP/1.1 200 OK\r\n") and f"Content-Length: {len(large)}\r\n" in head
    assert curl("-z", "Sun, 13 Sep 2020 12:26:40 GMT", "-o", tmp_path / "x", "-w", "%{http_code}", url + "/") == b"304"
    assert curl("--path-as-is", "-o", "/dev/null", "-w", "%{http_code}", url + "/../../etc/hostname") == b"400"
    # It waits for 100 before it sends this much; a refusal comes instead.
    (tmp_path / "upload").write_bytes(b"x" * 5_000_000)
    upload = ["-T", tmp_path / "upload", "-o", "/dev/null", "-w", "%{http_code}", url + "/"]
    assert curl(*upload) == curl("-H", "Expect:", *upload) == b"413"
    assert curl("-X", "POST", "-d", "a=b", "-o", "/dev/null", "-w", "%{http_code}", url + "/") == b"405"


@tool("curl")
def test_curl_resumes(server, site, tmp_path):
    large, part = (site / "large.bin").read_bytes(), tmp_path / "part"
    for size in (0, 1, 1_000_000, len(large) - 1):
        part.write_bytes(large[:size])
        run("curl", "-sS", "-C", "-", "-o", part, server.url + "/large.bin")
        assert part.read_bytes() == large


@tool("curl")
def test_curl_over_a_unix_socket(monkey, site, tmp_path):
    site.add("a.txt", "hello")
    monkey(listen=f"unix:{tmp_path}/socket")
    assert run("curl", "-sS", "--unix-socket", tmp_path / "socket", "http://any.example/a.txt") == b"hello"


# wget

@tool("wget")
def test_wget_resumes(server, site, tmp_path):
    large, part = (site / "large.bin").read_bytes(), tmp_path / "large.bin"
    part.write_bytes(large[:1_234_567])
    run("wget", "-q", "-c", server.url + "/large.bin", cwd=tmp_path)
    assert part.read_bytes() == large
    run("wget", "-q", "-c", server.url + "/large.bin", cwd=tmp_path)  # it is whole: 416
    assert part.read_bytes() == large


@tool("wget")
def test_wget_mirrors_links(monkey, site, tmp_path):
    pages = {f"d{i % 5}/page {i} ä?.html": "" for i in range(40)}
    names = list(pages)
    for i, name in enumerate(names):
        following = [names[(i + 1) % len(names)], names[(i * 7) % len(names)]]
        pages[name] = "".join(f'<a href="/{quote(n)}">x</a>' for n in following)
        site.add(name, pages[name])
    site.add("index.html", f'<a href="{quote(names[0])}">x</a>')
    run("wget", "-q", "-m", "-nH", "--restrict-file-names=nocontrol", "-P", tmp_path / "copy", monkey().url + "/")
    for name in names:
        assert (tmp_path / "copy" / name).read_text() == pages[name]


@tool("wget")
@pytest.mark.skipif(not DOCS.is_dir(), reason=f"no {DOCS} here")
def test_a_tree_of_documents(monkey, tmp_path):
    """Every file that is there, fetched by name, is what it is on disk; compressed ones are not unpacked."""
    found = sorted(p.relative_to(DOCS) for p in DOCS.rglob("*") if is_served(p))
    files = found[::max(1, len(found) // DOCS_MAX)][:DOCS_MAX]
    if len(files) < 20:
        pytest.skip("there is hardly a document here")
    server = monkey(root=DOCS, host="SymLink on", server="MaxKeepAliveRequest 0", workers=2)
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


# Load

@tool("ab")
@pytest.mark.parametrize("flags", [["-k"], [], ["-k", "-i"], ["-k", "-H", "Accept-Encoding: gzip"]])
@pytest.mark.parametrize("target", ["/", "/small.txt", "/large.bin"])
def test_ab(server, flags, target):
    count = 60 if target == "/large.bin" else 2000
    said = run("ab", "-q", "-n", count, "-c", 20, *flags, server.url + target).decode()
    assert number(said, "Complete requests") == count
    assert number(said, "Failed requests") == 0
    assert "Non-2xx responses" not in said
    assert ("-k" not in flags) or number(said, "Keep-Alive requests") == count


@tool("wrk")
@pytest.mark.parametrize("target", ["/", "/large.bin"])
def test_wrk(server, target):
    said = run("wrk", "-t", 2, "-c", 50, "-d", "1s", server.url + target).decode()
    assert "Socket errors" not in said and "Non-2xx" not in said, said
    assert int(re.search(r"(\d+) requests in", said)[1]) > 0


@tool("siege")
@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_siege(server, site, tmp_path, connection):
    (tmp_path / ".siege").mkdir()
    (tmp_path / ".siege/siege.conf").write_text(
        f"connection = {connection}\nlogging = false\nparser = false\nverbose = false\nshow-logfile = false\n"
        "json_output = false\n")
    (tmp_path / "urls").write_text("".join(f"{server.url}/{f}\n" for f in ("", "small.txt", "large.bin", "folder/")))
    done = subprocess.run(["siege", "-R", tmp_path / ".siege/siege.conf", "-b", "-c", "20", "-r", "20", "-i",
                           "-f", tmp_path / "urls"], capture_output=True, text=True, timeout=50, check=False,
                          env=os.environ | {"HOME": str(tmp_path)}, stdin=subprocess.DEVNULL)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert re.search(r"[Aa]vailability\"?:\s+100\.00", said), said
    assert re.search(r"[Ff]ailed[ _]transactions\"?:\s+0\b", said), said


def number(said, name):
    return int(re.search(rf"^{name}:\s+(\d+)", said, re.MULTILINE)[1])


@tool("curl")
def test_many_curls_at_once(server, site):
    wanted = hashlib.sha256((site / "large.bin").read_bytes()).hexdigest()
    clients = [subprocess.Popen(["curl", "-sS", "--limit-rate", "20M", f"{server.url}/large.bin"],
                                stdout=subprocess.PIPE) for _ in range(10)]
    for client in clients:
        data, _ = client.communicate(timeout=50)
        assert client.returncode == 0 and hashlib.sha256(data).hexdigest() == wanted
