# SPDX-License-Identifier: Apache-2.0
"""The fastcgi plugin in front of a real PHP-FPM."""
import json
import os
import signal
import threading

import pytest

import php_fpm
from client import Closed
from monkey import PROTOCOLS
from proc import descriptors, wait_until

pytestmark = pytest.mark.skipif(not php_fpm.PROGRAM, reason="there is no php-fpm")
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)

SHOW = "<?php header('Content-Type: application/json'); echo json_encode($_SERVER);"
COUNT = "<?php $n = 0; $f = fopen('php://input', 'r'); while (!feof($f)) $n += strlen(fread($f, 65536)); " \
        "echo $n, ' ', $_SERVER['CONTENT_LENGTH'] ?? 'none';"


@pytest.fixture
def fpm(tmp_path):
    with php_fpm.Fpm(tmp_path) as each:
        yield each


@pytest.fixture
def serve(monkey, site, fpm):
    """Starts a server with these scripts; routes may contain `{}` for the address of PHP-FPM."""
    def start(scripts=None, routes="*.php fastcgi {}\n*.php/* fastcgi {}\n/* static", upstream="", **how):
        for name, text in (scripts or {}).items():
            site.add(name, text)
        lines = "".join(f"    {line}\n" for line in routes.replace("{}", fpm.address).splitlines())
        how.setdefault("host", "Index index.php index.html")
        how["plugins"] = ["fastcgi", *how.pop("others", [])]
        return monkey(sections=how.pop("sections", "") + f"{upstream}\n[ROUTES]\n{lines}", **how)

    return start


# ---- Scripts ----

@every_protocol
def test_fastcgi_script_responds(serve):
    server = serve({"hello.php": "<?php echo 'hello ', $_GET['x'];", "page.txt": "text"})
    reply = server.get("/hello.php?x=y%20z")
    assert (reply.status, reply.text) == (200, "hello y z")
    assert server.get("/page.txt").text == "text"


def test_fastcgi_script_gets_variables(serve, site):
    server = serve({"app/env.php": SHOW})
    with server.connect() as c:
        got = json.loads(c.get("/app/env.php/a%20b/c?x=%32", fields={"Host": "Example.org:99", "X-Some": "1"}).text)
    want = {"SCRIPT_NAME": "/app/env.php", "SCRIPT_FILENAME": f"{site}/app/env.php", "PATH_INFO": "/a b/c",
            "PATH_TRANSLATED": f"{site}/a b/c", "DOCUMENT_ROOT": str(site), "REQUEST_URI": "/app/env.php/a%20b/c?x=%32",
            "QUERY_STRING": "x=%32", "REQUEST_METHOD": "GET", "SERVER_NAME": "Example.org",
            "SERVER_PORT": str(server.port), "HTTP_X_SOME": "1", "PHP_SELF": "/app/env.php/a b/c"}
    assert {name: got.get(name) for name in want} == want


def test_fastcgi_document_root_is_resolved(serve, site, tmp_path):
    site.add("env.php", SHOW)
    (tmp_path / "link").symlink_to("site")
    server = serve(root="link/../link")
    got = json.loads(server.get("/env.php").text)
    assert (got["SCRIPT_FILENAME"], got["DOCUMENT_ROOT"]) == (f"{site}/env.php", str(site))


def test_fastcgi_root_option_names_folder_in_another_container(serve, site, tmp_path):
    (tmp_path / "elsewhere").symlink_to(site)
    server = serve({"env.php": SHOW}, routes=f"*.php fastcgi {{}} root={tmp_path}/elsewhere/")
    got = json.loads(server.get("/env.php").text)
    assert got["SCRIPT_FILENAME"] == f"{tmp_path}/elsewhere/env.php" and got["DOCUMENT_ROOT"] == f"{tmp_path}/elsewhere"


@pytest.mark.parametrize("path", ["/uploads/a.jpg/x.php", "/uploads/a.jpg/", "/uploads/a.jpg%00.php", "/uploads/a.jpg%2Fx.php",
                                  "/uploads/a.jpg/.php", "/uploads/a.jpg/x.php/y.php"])
def test_fastcgi_uploaded_files_are_never_executed(serve, path):
    server = serve({"uploads/a.jpg": "<?php echo 'run';"})
    reply = server.get(path)
    assert reply.status in (400, 403, 404) and "run" not in reply.text


def test_fastcgi_missing_script_falls_through_to_next_route(serve):
    server = serve({"there.php": "<?php echo 1;"}, routes="*.php fastcgi {}\n/x/* status 410\n/* static")
    assert server.get("/gone.php").status == 404
    assert server.get("/x/gone.php").status == 410
    assert server.get("/there.php").text == "1"


def test_fastcgi_folders_symlinks_and_dot_files_are_not_executed(serve, site, tmp_path):
    server = serve({"lib.php/a.php": "<?php echo 'inner';", ".git/a.php": "<?php echo 'hidden';"})
    (tmp_path / "out.php").write_text("<?php echo 'outside';")
    (site.path / "out.php").symlink_to(tmp_path / "out.php")
    assert server.get("/lib.php/a.php").text == "inner"
    assert server.get("/lib.php").status == 301  # a folder: the server redirects to the path with a slash
    assert server.get("/.git/a.php").status == 403
    assert server.get("/out.php").status in (403, 404)


def test_fastcgi_route_without_extension_finds_scripts(serve):
    server = serve({"app/a.php": "<?php echo $_SERVER['PATH_INFO'] ?? 'none';", "app/b.txt": "text"},
                   routes="/app/* fastcgi {}\n/* static")
    assert server.get("/app/a.php").text == "none"
    assert server.get("/app/a.php/more").text == "/more"
    assert server.get("/app/b.txt").text == "text"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_fastcgi_front_controller_handles_all_paths(serve, method):
    server = serve({"index.php": "<?php echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['REQUEST_URI'], ' ', "
                                 "$_SERVER['SCRIPT_NAME'], ' ', file_get_contents('php://input');", "a.css": "css"},
                   host="Index index.php\nFallback /index.php")
    body = b"x=1" if method == "POST" else b""
    tail = "x=1" if body else ""
    assert server.get("/", method, body=body).text == f"{method} / /index.php {tail}"
    assert server.get("/posts/7?p", method, body=body).text == f"{method} /posts/7?p /index.php {tail}"
    assert server.get("/wp-sitemap.xml", method, body=body).text == f"{method} /wp-sitemap.xml /index.php {tail}"
    assert server.get("/a.css").text == "css"
    assert server.get("/a.css", "POST").status == 405


# ---- Request bodies ----

@every_protocol
@pytest.mark.parametrize("size", [0, 1, 5_000, 300_000])
def test_fastcgi_request_body_arrives(serve, size):
    server = serve({"count.php": COUNT})
    assert server.get("/count.php", "POST", body=b"x" * size).text == f"{size} {size}"


def test_fastcgi_chunked_body_gets_content_length(serve):
    server = serve({"count.php": COUNT})
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (b"a" * 70_000, b"b" * 9)) + b"0\r\n\r\n"
    assert server.get("/count.php", "POST", [("Transfer-Encoding", "chunked")], chunks).text == "70009 70009"


def test_fastcgi_slow_client_occupies_no_child(serve, tmp_path):
    (tmp_path / "one").mkdir()
    with php_fpm.Fpm(tmp_path / "one", children=1) as first:
        server = serve({"count.php": COUNT, "hi.php": "<?php echo 'hi';"}, routes=f"*.php fastcgi {first.address}")
        with server.connect() as slow:
            slow.send(b"POST /count.php HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
            assert server.get("/hi.php").text == "hi"
            slow.send(b"67890")
            assert slow.read().text == "10 10"


def test_fastcgi_body_may_be_streamed(serve):
    server = serve({"count.php": COUNT}, routes="*.php fastcgi {} stream")
    assert server.get("/count.php", "POST", body=b"x" * 200_000).text == "200000 200000"


def test_fastcgi_streamed_body_waits_for_slow_script(serve):
    server = serve({"count.php": "<?php usleep(200000);" + COUNT[5:]}, routes="*.php fastcgi {} stream", server="MaxBodySize 3M")
    assert server.get("/count.php", "POST", body=b"x" * 3_000_000).text == "3000000 3000000"


@every_protocol
def test_fastcgi_large_response_arrives_complete(serve):
    server = serve({"large.php": "<?php for ($i = 0; $i < 5000; $i++) echo str_repeat(chr(65 + $i % 26), 1000);"})
    body = server.get("/large.php").body
    assert body == b"".join(bytes([65 + i % 26]) * 1000 for i in range(5000))


# ---- Responses ----

@every_protocol
def test_fastcgi_status_and_headers_are_passed(serve):
    server = serve({"a.php": "<?php http_response_code(418); header('X-A: 1'); header('X-A: 2', false); echo 'tea';",
                    "r.php": "<?php header('Location: https://example.org/x');",
                    "n.php": "<?php http_response_code(304); header('ETag: \"1\"');",
                    "e.php": "<?php http_response_code(204);"})
    reply = server.get("/a.php")
    assert (reply.status, reply.text, reply.all("X-A")) == (418, "tea", ["1", "2"])
    reply = server.get("/r.php")
    assert (reply.status, reply["Location"]) == (302, "https://example.org/x")
    assert server.get("/n.php").status == 304
    assert server.get("/e.php").status == 204


@every_protocol
def test_fastcgi_head_has_no_body(serve):
    server = serve({"a.php": "<?php header('X-Method: ' . $_SERVER['REQUEST_METHOD']); echo str_repeat('x', 10000);"})
    reply = server.get("/a.php", "HEAD")
    assert (reply.status, reply["X-Method"], reply.body) == (200, "HEAD", b"")


def test_fastcgi_php_redirect_goes_to_client(serve):
    server = serve({"a.php": "<?php header('Location: /b.php?x=1');"})
    reply = server.get("/a.php")  # no internal redirect, because PHP also sends a Content-Type
    assert (reply.status, reply["Location"]) == (302, "/b.php?x=1")


def test_fastcgi_stderr_is_logged(serve):
    server = serve({"e.php": "<?php error_log(\"first\\nsecond \\x1b[31m\"); echo 'ok';"})
    assert server.get("/e.php").text == "ok"
    server.err.wait_for(r"fastcgi: PHP message: first")
    server.err.wait_for(r"second")
    assert "\x1b" not in server.err.text


def test_fastcgi_set_option_and_credentials_reach_script(serve):
    server = serve({"env.php": SHOW}, routes='*.php fastcgi {} set=APP_ENV=test "set=X=a b" set=SERVER_NAME=fixed')
    got = json.loads(server.get("/env.php", fields={"Authorization": "Bearer token"}).text)
    assert (got["APP_ENV"], got["X"], got["SERVER_NAME"]) == ("test", "a b", "fixed")
    assert got["HTTP_AUTHORIZATION"] == "Bearer token"


# ---- Faults ----

def test_fastcgi_unreachable_server_gets_502(serve, fpm):
    server = serve({"a.php": "<?php echo 'here';"})
    fpm.stop()
    assert server.get("/a.php").status in (502, 503)
    server.err.wait_for(r"upstream unix:\S+: .* \((Connection refused|No such file or directory)\)")
    fpm.start()
    assert server.get("/a.php").text == "here"


def test_fastcgi_frozen_server_gets_504(serve, fpm):
    server = serve({"a.php": "<?php echo 'here';"}, routes="*.php fastcgi {} response_timeout=300ms max_tries=1")
    fpm.signal_all(signal.SIGSTOP)
    assert server.get("/a.php").status == 504
    fpm.signal_all(signal.SIGCONT)
    assert server.get("/a.php").text == "here"


def test_fastcgi_killed_script_gets_502_or_truncation(serve):
    server = serve({"die.php": "<?php exec('kill -9 ' . getmypid());", "a.php": "<?php echo 'here';",
                    "half.php": "<?php echo str_repeat('x', 100000); flush(); exec('kill -9 ' . getmypid());"})
    assert server.get("/die.php", "POST").status == 502
    try:
        assert server.get("/half.php").status == 502  # the server has sent nothing yet
    except Closed:
        pass
    assert server.get("/a.php").text == "here"


@pytest.mark.parametrize("kept", [False, True])
def test_fastcgi_responses_are_never_mixed_up(serve, fpm, kept):
    upstream = f"[UPSTREAM]\n    Name php\n    Server {fpm.address}\n    MaxConnections 4\n" if kept else ""
    server = serve({"id.php": "<?php usleep(random_int(0, 2000)); echo $_GET['id'], str_repeat('.', random_int(0, 9000)), "
                              "$_GET['id'];"}, upstream=upstream, workers=2,
                   routes="*.php fastcgi php" if kept else "*.php fastcgi {}")
    wrong, answered, stop = [], [], threading.Event()

    def ask(number):
        n = 0
        while not stop.is_set():
            n += 1
            each = f"{number}-{n};"
            reply = server.get(f"/id.php?id={each}")
            whole = reply.text.startswith(each) and reply.text.endswith(each) and not reply.text.strip(f".{each}")
            answered.append(reply.status)
            if reply.status not in (200, 502, 503) or (reply.status == 200 and not whole):
                wrong.append((reply.status, reply.text[:100]))

    def ask_on(number):
        try:
            ask(number)
        except (Closed, ConnectionResetError):
            ask_on(number)  # this response is visibly truncated

    threads = [threading.Thread(target=ask_on, args=(i,)) for i in range(6)]
    for each in threads:
        each.start()
    for _ in range(10):
        before = len(answered)
        for pid in fpm.children()[:2]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_until(lambda: len(answered) > before + 20, "responses after a kill")
    stop.set()
    for each in threads:
        each.join()
    assert not wrong
    assert server.get("/id.php?id=last").status == 200
    assert answered.count(200) > len(answered) / 2


def test_fastcgi_connections_are_kept_only_within_a_limit(serve, fpm):
    def sockets(worker):
        return sum(link.startswith("socket:") for link in descriptors(worker).values())

    upstream = f"[UPSTREAM]\n    Name php\n    Server {fpm.address}\n    MaxConnections 2\n"
    for to, n in (("{}", 0), ("php", 1)):
        server = serve({"a.php": "<?php echo 'a';"}, routes=f"*.php fastcgi {to}", upstream=upstream)
        (worker,) = server.workers
        before = sockets(worker)
        for _ in range(5):
            assert server.get("/a.php").text == "a"
        wait_until(lambda: sockets(worker) == before + n, f"{n} connections stay open")


@pytest.mark.parametrize("kept", [False, True])
def test_fastcgi_no_client_starves(serve, fpm, kept):
    """There are four children, 24 persistent clients and two workers."""
    upstream = f"[UPSTREAM]\n    Name php\n    Server {fpm.address}\n    MaxConnections 4\n" if kept else ""
    server = serve({"a.php": "<?php usleep(500); echo 'a';"}, upstream=upstream, workers=2,
                   routes="*.php fastcgi php" if kept else "*.php fastcgi {}")
    counts, least = [0] * 24, []

    def ask(number):
        with server.connect() as c:
            while not least:
                assert c.get("/a.php").text == "a"
                counts[number] += 1
                if counts[number] == 100:
                    least.append(min(counts))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(counts))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert least and least[0] >= 5, counts


# ---- Configuration ----

@pytest.mark.parametrize("route, message", [
    ("fastcgi", "SERVER, which is"),
    ("fastcgi unix:/x root=relative", "a folder that begins with"),
    ("fastcgi unix:/x split=php", "an extension such as"), ("scgi unix:/x paths=all", "expected `checked` or `raw`"),
    ("uwsgi unix:/x x=y", "expected root, split, set, intercept_errors, stream, paths, underscores, forwarded, max_tries, response_timeout, "
                        "read_timeout or total_timeout"),
    ("fastcgi unix:/x set=A", "a variable, such as"),
    ("fastcgi unix:/x set=CONTENT_LENGTH=1", "the server sets this one"),
    ("fastcgi unix:/x response_timeout=0", "a time above 0"),
    ("fastcgi unix:/x max_tries=99", "a number from 1 to 16"),
    ("fastcgi unix:/x other=1", "root, split, set"),
])
def test_fastcgi_invalid_routes_are_rejected(monkey, route, message):
    server = monkey(plugins=[route.split()[0]], sections=f"[ROUTES]\n    *.php {route}\n", expect_start=False)
    server.exit_code = 3
    assert server.process.wait(30) == 3
    assert message in server.err.text
