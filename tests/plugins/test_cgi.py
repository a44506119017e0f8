# SPDX-License-Identifier: Apache-2.0
"""The cgi plugin with well-behaved scripts, which are real programs: RFC 3875 from the request to the response."""
import shutil
import socket
import subprocess
import sys
from functools import partial

import pytest

import users
from cgi_scripts import ENV, PLAIN, ROUTES, SH, environment, serve_scripts
from monkey import ROOT

SERVER_SETS = {  # the values are the same for every request
    "GATEWAY_INTERFACE": "CGI/1.1",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "REDIRECT_STATUS": "200",
    "REQUEST_SCHEME": "http",
    "REMOTE_ADDR": "127.0.0.1",
    "REMOTE_HOST": "127.0.0.1",
    "SERVER_ADDR": "127.0.0.1",
}


@pytest.fixture
def serve(monkey, site):
    return partial(serve_scripts, monkey, site)


# Variables

def test_cgi_script_gets_exactly_the_variables_of_its_request(serve, site):
    server = serve({"env.sh": ENV})
    with server.connect() as c:
        got = environment(c.get("/cgi-bin/env.sh/a%20b/c?x=1&y=%32", fields={"Host": "Example.org:99", "X-Some": "thing"}))
        port = str(c.sock.getsockname()[1])
    software = got.pop("SERVER_SOFTWARE")
    got.pop("PWD"), got.pop("_", None), got.pop("OLDPWD", None), got.pop("SHLVL", None)  # set by the shell itself
    assert software.startswith("Monkey/")
    assert got == SERVER_SETS | {
        "REMOTE_PORT": port,
        "SERVER_PORT": str(server.port),
        "SERVER_NAME": "Example.org",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REQUEST_METHOD": "GET",
        "REQUEST_URI": "/cgi-bin/env.sh/a%20b/c?x=1&y=%32",
        "QUERY_STRING": "x=1&y=%32",
        "DOCUMENT_ROOT": str(site),
        "SCRIPT_NAME": "/cgi-bin/env.sh",
        "SCRIPT_FILENAME": str(site / "cgi-bin/env.sh"),
        "PATH_INFO": "/a b/c",
        "PATH_TRANSLATED": f"{site}/a b/c",
        "HTTP_HOST": "Example.org:99",
        "HTTP_X_SOME": "thing",
    }


def test_cgi_variables_without_value_are_not_set(serve):
    got = environment(serve({"env.sh": ENV}).get("/cgi-bin/env.sh"))
    assert got["QUERY_STRING"] == ""  # this variable is always set
    for name in ("PATH_INFO", "PATH_TRANSLATED", "CONTENT_LENGTH", "CONTENT_TYPE", "REMOTE_USER", "AUTH_TYPE", "HTTPS"):
        assert name not in got


def test_cgi_script_does_not_inherit_server_environment(serve):
    server = serve({"env.sh": ENV}, environment={"SECRET_TOKEN": "1234", "LD_LIBRARY_PATH": "/nowhere"})
    got = environment(server.get("/cgi-bin/env.sh"))
    assert "SECRET_TOKEN" not in got and "LD_LIBRARY_PATH" not in got and "ASAN_OPTIONS" not in got


def test_cgi_headers_become_variables_except_dangerous_ones(serve):
    fields = [("Accept-Language", "de"), ("accept-language", "en;q=0.5"), ("Cookie", "a=1"), ("X-9", ""), ("Cookie", "b=2"),
              ("Proxy", "http://evil:1/"), ("Authorization", "Basic YTpi"), ("Proxy-Authorization", "Basic YTpi"),
              ("X_Forwarded_For", "forged"), ("X-Forwarded-For", "192.0.2.1"), ("X.Dot", "no"), ("X-Quote", "\"'`$(x)\\"),
              ("X-D", "1"), ("Y-A", "2")]  # these two names have the same hash in the server
    got = environment(serve({"env.sh": ENV}).get("/cgi-bin/env.sh", fields=fields))
    http = {name: value for name, value in got.items() if name.startswith("HTTP_")}
    assert http == {"HTTP_HOST": "localhost", "HTTP_ACCEPT_LANGUAGE": "de, en;q=0.5", "HTTP_COOKIE": "a=1; b=2",
                    "HTTP_X_9": "", "HTTP_X_QUOTE": "\"'`$(x)\\",
                    "HTTP_X_D": "1", "HTTP_Y_A": "2"}


def test_cgi_authorization_is_passed_only_if_configured(serve):
    server = serve({"env.sh": ENV}, "PassAuthorization on")
    got = environment(server.get("/cgi-bin/env.sh", fields={"Authorization": "Basic YTpi", "Proxy-Authorization": "x"}))
    assert got["HTTP_AUTHORIZATION"] == "Basic YTpi"
    assert "HTTP_PROXY_AUTHORIZATION" not in got and "REMOTE_USER" not in got and "AUTH_TYPE" not in got


def test_cgi_setenv_and_passenv_add_variables(serve):
    keys = """SetEnv GREETING "good morning"
SetEnv SERVER_SOFTWARE mine
SetEnv TWICE one
SetEnv TWICE two
SetEnv PATH /opt/bin:/usr/bin:/bin
SetEnv HTTP_PROXY http://proxy:3128/
PassEnv HANDED NOT_THERE
PassEnv TWICE HTTP_X_MINE"""
    server = serve({"env.sh": ENV}, keys, environment={"HANDED": "over=1", "TWICE": "three", "HTTP_X_MINE": "mine"})
    got = environment(server.get("/cgi-bin/env.sh", fields={"Proxy": "http://evil:1/", "X-Mine": "yours"}))
    assert got["GREETING"] == "good morning" and got["SERVER_SOFTWARE"] == "mine" and got["TWICE"] == "two"
    assert got["PATH"] == "/opt/bin:/usr/bin:/bin" and got["HTTP_PROXY"] == "http://proxy:3128/"
    assert got["HANDED"] == "over=1" and "NOT_THERE" not in got and got["HTTP_X_MINE"] == "mine"


@pytest.mark.parametrize("keys,routes", [("Interpreter .int /bin/sh -u", None), ("", "[ROUTES]\n    *.int cgi /bin/sh\n")])
def test_cgi_interpreter_gets_all_variables(serve, keys, routes):
    """The spawner permits the variables of requests, of SetEnv and of PassEnv."""
    how = {"routes": routes} if routes else {}
    server = serve({"env.int": ENV}, f"{keys}\nSetEnv GREETING a*\nSetEnv PATH /opt/bin:/usr/bin:/bin\nPassEnv HANDED\nPassAuthorization on",
                   environment={"HANDED": "over=1"}, **how)
    got = environment(server.get("/cgi-bin/env.int?q", "POST", fields={"Authorization": "Basic YTpi", "Content-Type": "a/b"}, body=b"body"))
    assert got["GREETING"] == "a*" and got["HANDED"] == "over=1" and got["PATH"] == "/opt/bin:/usr/bin:/bin"
    assert got["CONTENT_LENGTH"] == "4" and got["QUERY_STRING"] == "q" and got["HTTP_AUTHORIZATION"] == "Basic YTpi"


def test_cgi_http_1_0_without_host_gets_server_name(serve):
    server = serve({"env.sh": ENV}, host="ServerName *.example.net named.example")
    with server.connect() as c:
        c.send(b"GET /cgi-bin/env.sh HTTP/1.0\r\n\r\n")
        got = environment(c.read("GET"))
        c.expect_end()
    assert got["SERVER_PROTOCOL"] == "HTTP/1.0" and got["SERVER_NAME"] == "127.0.0.1" and "HTTP_HOST" not in got


def test_cgi_works_over_ipv6_and_unix_sockets(serve, tmp_path):
    server = serve({"env.sh": ENV}, listen=["[::1]:0", f"unix:{tmp_path}/s"])
    with server.connect(0) as c:
        c.send(b"GET /cgi-bin/env.sh HTTP/1.0\r\n\r\n")
        got = environment(c.read("GET"))
    assert got["REMOTE_ADDR"] == got["SERVER_ADDR"] == "::1" and got["SERVER_NAME"] == "[::1]"
    got = environment(server.get("/cgi-bin/env.sh", listener=1, fields={"Host": "a"}))
    assert got["REMOTE_ADDR"] == "unix:" and got["SERVER_PORT"] == "80" and "SERVER_ADDR" not in got


def test_cgi_working_folder_is_that_of_the_script(serve, site):
    site.add("cgi-bin/deep/pwd.sh", PLAIN + "pwd; ls\n", mode=0o755)
    assert serve().get("/cgi-bin/deep/pwd.sh").text == f"{site}/cgi-bin/deep\npwd.sh\n"


@pytest.mark.parametrize("signal", ["INT", "TERM", "HUP", "PIPE", "CHLD"])
def test_cgi_script_starts_with_default_signals(serve, signal):
    # A signal that is ignored stays ignored across exec: the shell would survive the signal that it sends to itself.
    server = serve({"s.sh": PLAIN + f"echo before; sh -c 'kill -{signal} $$; echo after'; echo end\n"})
    assert server.get("/cgi-bin/s.sh").text == ("before\nafter\nend\n" if signal == "CHLD" else "before\nend\n")


def test_cgi_script_inherits_no_descriptors(serve):
    server = serve({"fds.sh": PLAIN + "exec ls -l /proc/self/fd\n"}, listen=["127.0.0.1:0", "127.0.0.1:0"])
    links = [line.split(" -> ")[1] for line in server.get("/cgi-bin/fds.sh").text.splitlines() if " -> " in line]
    assert [link for link in links if not link.startswith(("pipe:", "/proc/", "/dev/null"))] == []
    assert len(links) <= 4


# Locating the script

@pytest.mark.parametrize("path,name,info", [
    ("/cgi-bin/env.sh", "/cgi-bin/env.sh", None),
    ("/cgi-bin/env.sh/", "/cgi-bin/env.sh", "/"),
    ("/cgi-bin/env.sh/x/", "/cgi-bin/env.sh", "/x/"),
    ("/cgi-bin//env.sh//x", "/cgi-bin/env.sh", "/x"),
    ("/cgi-bin/env.sh/.git/HEAD", "/cgi-bin/env.sh", "/.git/HEAD"),
    ("/cgi-bin/x/../env.sh/a/../b", "/cgi-bin/env.sh", "/b"),
    ("/cgi-bin/deep/er/env.sh/and/more", "/cgi-bin/deep/er/env.sh", "/and/more"),
    ("/cgi-bin/%65nv.sh/%E4%3F", "/cgi-bin/env.sh", "/\udce4?"),
    ("/cgi-bin/env.sh/env.sh", "/cgi-bin/env.sh", "/env.sh"),
    ("/cgi-bin/a%20script.sh/x", "/cgi-bin/a script.sh", "/x"),
])
def test_cgi_script_is_first_file_on_path_and_rest_is_path_info(serve, path, name, info):
    server = serve({"env.sh": ENV, "deep/er/env.sh": ENV, "a script.sh": ENV})
    reply = server.get(path)
    lines = dict(line.split("=", 1) for line in reply.body.decode("utf-8", "surrogateescape").splitlines())
    assert lines["SCRIPT_NAME"] == name and lines.get("PATH_INFO") == info


@pytest.mark.parametrize("path,status", [
    ("/cgi-bin/none", 404), ("/cgi-bin/none/env.sh", 404), ("/cgi-bin/env.sh%2Fx", 404), ("/cgi-bin%2Fenv.sh", 404),
    ("/cgi-bin/", 403), ("/cgi-bin/deep", 301), ("/cgi-bin/.hidden.sh", 403), ("/cgi-bin/.dir/env.sh", 403),
    ("/cgi-bin/.dir/env.sh/x", 403), ("/cgi-bin/source.txt", 403), ("/cgi-bin/source.txt/x", 403),
    ("/cgi-bin/link.sh", 403), ("/cgi-bin/out/sh", 403), ("/cgi-bin/fifo", 403), ("/cgi-bin/env.sh%00", 400),
    pytest.param("/cgi-bin/" + "x" * 300, 404, id="long name"), pytest.param("/cgi-bin" + "/x" * 2000, 404, id="deep"),
])
def test_cgi_files_that_are_no_scripts_are_neither_run_nor_shown(serve, site, tmp_path, path, status):
    scripts = {name: ENV for name in ("env.sh", "deep/er/env.sh", ".hidden.sh", ".dir/env.sh")}
    site.add("cgi-bin/source.txt", "password", mode=0o644)
    subprocess.run(["mkfifo", site / "cgi-bin/fifo"], check=True)
    (site / "cgi-bin/link.sh").symlink_to(site.add("cgi-bin/env.sh", ENV, mode=0o755))
    (site / "cgi-bin/out").symlink_to("/bin")
    server = serve(scripts)
    for method in ("GET", "HEAD", "DELETE"):
        reply = server.get(path, method)
        assert reply.status in (status, 405 if method == "DELETE" else status), f"{method} {path}"
        assert b"password" not in reply.body and b"GATEWAY" not in reply.body


def test_cgi_symlinks_and_dot_files_obey_host_settings(serve, site):
    server = serve({"env.sh": ENV, ".hidden.sh": ENV}, host="FollowSymlinks on\nDotFiles on")
    (site / "cgi-bin/link.sh").symlink_to("env.sh")
    assert environment(server.get("/cgi-bin/link.sh/x"))["SCRIPT_NAME"] == "/cgi-bin/link.sh"
    assert environment(server.get("/cgi-bin/.hidden.sh"))["SCRIPT_NAME"] == "/cgi-bin/.hidden.sh"


def test_cgi_index_file_may_be_a_script(serve, site):
    site.add("app/index.php", ENV, mode=0o755)
    server = serve(host="Index index.php")
    assert environment(server.get("/app/?a=b"))["SCRIPT_NAME"] == "/app/index.php"


def test_cgi_replaced_script_runs_at_once(serve, site):
    server = serve({"x": PLAIN + "echo one\n"})
    assert server.get("/cgi-bin/x").text == "one\n"
    site.add("new", PLAIN + "echo two\n", mode=0o755).rename(site / "cgi-bin/x")
    assert server.get("/cgi-bin/x").text == "two\n"


# Methods and request bodies

@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"])
def test_cgi_every_method_reaches_the_script(serve, method):
    server = serve({"m.sh": PLAIN + "echo $REQUEST_METHOD\n"})
    fields = {"Content-Length": "0"} if method in ("POST", "PUT", "PATCH") else {}
    assert server.get("/cgi-bin/m.sh", method, fields).text == f"{method}\n"


def test_cgi_head_reaches_script_and_has_no_body(serve):
    server = serve({"m.sh": SH + "printf 'Content-Type: text/plain\\nX-Method: %s\\n\\n' $REQUEST_METHOD; echo content\n"})
    with server.connect() as c:
        for _ in range(3):
            reply = c.get("/cgi-bin/m.sh", "HEAD")
            assert reply["X-Method"] == "HEAD" and not reply.body


ECHO = SH + 'printf "Content-Type: %s\\nX-Length: %s\\nX-Coding: %s\\n\\n" "${CONTENT_TYPE-none}" "${CONTENT_LENGTH-none}" ' \
    '"${HTTP_TRANSFER_ENCODING-none}"; exec cat\n'


@pytest.mark.parametrize("size", [1, 4096, 65536, 65537, 300_000])
def test_cgi_request_body_reaches_script(serve, size):
    server = serve({"echo.sh": ECHO})
    data = (b"some text, " * (size // 11 + 1))[:size]
    with server.connect() as c:
        for _ in range(2):
            reply = c.get("/cgi-bin/echo.sh", "POST", {"Content-Type": "application/x-it"}, data)
            assert reply.body == data and reply["Content-Type"] == "application/x-it" and reply["X-Length"] == str(size)


def test_cgi_empty_body_has_length_zero(serve):
    server = serve({"echo.sh": ECHO})
    reply = server.get("/cgi-bin/echo.sh", "POST", {"Content-Length": "0", "Content-Type": "a/b"})
    assert reply["X-Length"] == "0" and reply["Content-Type"] == "a/b" and not reply.body
    reply = server.get("/cgi-bin/echo.sh", "GET")
    assert reply["X-Length"] == "none" and reply["Content-Type"] == "none"


def chunks(data, size=1000):
    parts = [data[i:i + size] for i in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [0, 1, 1000, 65535])
def test_cgi_chunked_body_gets_content_length(serve, size):
    server = serve({"echo.sh": ECHO})
    with server.connect() as c:
        for _ in range(2):
            reply = c.get("/cgi-bin/echo.sh", "POST", {"Transfer-Encoding": "chunked"}, chunks(b"c" * size))
            assert reply.body == b"c" * size and reply["X-Length"] == (str(size) if size else "none")
            assert reply["X-Coding"] == "none"


def test_cgi_chunked_body_is_refused_with_request_content_refuse(serve):
    reply = serve({"echo.sh": ECHO}, "RequestBody refuse").get("/cgi-bin/echo.sh", "POST", {"Transfer-Encoding": "chunked"}, chunks(b"c" * 65537))
    assert reply.status == 411


@pytest.mark.parametrize("body", ["", "RequestBody refuse"])
def test_cgi_body_of_known_length_beyond_half_of_the_spool_gets_413(serve, body):
    server = serve({"echo.sh": ECHO}, body, server="MaxBodySize 10M\nSpoolMax 2M")
    assert server.get("/cgi-bin/echo.sh", "POST", body=bytes(900_000)).status == 200
    assert server.get("/cgi-bin/echo.sh", "POST", body=bytes(1_500_000)).status == 413


def test_cgi_chunked_body_beyond_a_small_limit_gets_413(serve):
    server = serve({"echo.sh": ECHO}, "RequestBody refuse", server="MaxBodySize 10K")
    assert server.get("/cgi-bin/echo.sh", "POST", {"Transfer-Encoding": "chunked"}, chunks(b"c" * 20000)).status == 413


def test_cgi_chunked_body_is_streamed_with_request_content_stream(serve):
    server = serve({"echo.sh": ECHO}, "RequestBody stream")
    reply = server.get("/cgi-bin/echo.sh", "POST", {"Transfer-Encoding": "chunked"}, chunks(b"c" * 300_000, 7000))
    assert reply.body == b"c" * 300_000 and reply["X-Length"] == "none" and reply["X-Coding"] == "chunked"


def test_cgi_invalid_or_too_large_body_is_refused(serve):
    server = serve({"echo.sh": ECHO}, server="MaxBodySize 100K")
    assert server.get("/cgi-bin/echo.sh", "POST", {"Transfer-Encoding": "chunked"}, b"3\r\nabcd\r\n").status == 400
    assert server.get("/cgi-bin/echo.sh", "POST", {"Content-Length": "102401"}).status == 413


def test_cgi_script_that_does_not_read_may_respond(serve):
    server = serve({"deaf.sh": PLAIN + "echo no thanks\n", "closes.sh": SH + "exec <&-\n" + PLAIN[len(SH):] + "echo closed\n"})
    for name, text in (("deaf.sh", "no thanks\n"), ("closes.sh", "closed\n")):
        assert server.get(f"/cgi-bin/{name}", "POST", body=b"x" * 1_000_000).text == text


def test_cgi_expect_continue_works_with_curl(serve, tmp_path):
    server = serve({"echo.sh": ECHO})
    data = tmp_path / "data"
    data.write_bytes(b"d" * 500_000)
    done = subprocess.run(["curl", "-sS", "-H", "Expect: 100-continue", "--expect100-timeout", "30", "--data-binary", f"@{data}",
                           f"{server.url}/cgi-bin/echo.sh"], capture_output=True, timeout=50, check=True)
    assert done.stdout == data.read_bytes()


# Responses

def prints(text, content="", more=""):
    return SH + f"cat <<'END'\n{text}\n\n{content}END\n{more}"


def test_cgi_response_has_status_headers_and_body(serve):
    server = serve({"s": prints("Status: 418 I'm a teapot\nContent-Type: text/x-tea\nX-One: 1\nSet-Cookie: a=b\nSet-Cookie: c=d", "short\n")})
    reply = server.get("/cgi-bin/s")
    assert reply.status == 418 and reply.text == "short\n" and reply["Content-Type"] == "text/x-tea"
    assert reply["X-One"] == "1" and reply.all("Set-Cookie") == ["a=b", "c=d"] and "Status" not in reply


@pytest.mark.parametrize("head,status", [
    ("Status: 404 Not Found", 404), ("Status: 503", 503), ("Status:201 Created\nLocation: /new", 201), ("status:   299  odd  ", 299),
    ("HTTP/1.1 203 Sure\nContent-Type: a/b", 203), ("HTTP/1.0 404\nX-A: b", 404), ("Content-Type: text/plain", 200), ("X-Other: 1", 200),
    ("Status: 204 No Content", 204), ("Status: 304 Not Modified\nETag: \"x\"", 304),
])
def test_cgi_response_status_is_that_of_the_script(serve, head, status):
    server = serve({"s": prints(head)})
    with server.connect() as c:
        for _ in range(2):
            assert c.get("/cgi-bin/s").status == status


def test_cgi_response_lines_may_end_with_crlf(serve):
    server = serve({"s": SH + "printf 'Status: 201 Created\\r\\nContent-Type: text/plain\\r\\n\\r\\n\\r\\nbody\\n\\n'\n"})
    reply = server.get("/cgi-bin/s")
    assert reply.status == 201 and reply["Content-Type"] == "text/plain" and reply.body == b"\r\nbody\n\n"


def test_cgi_response_head_may_arrive_byte_by_byte(serve):
    text = "Status: 201 Created\\r\\nX-Slow: yes\\r\\n\\r\\nbody"
    script = SH + f"printf '{text}' | while IFS= read -r -n1 c 2>/dev/null; do :; done\n"
    script = f"#!{sys.executable} -I\nimport os\nfor b in b'{text}':\n    os.write(1, bytes([b]))\n"
    reply = serve({"s": script}).get("/cgi-bin/s")
    assert reply.status == 201 and reply["X-Slow"] == "yes" and reply.body == b"body"


def test_cgi_hop_by_hop_and_server_headers_are_replaced(serve):
    fields = ["Connection: close", "Keep-Alive: 5", "Upgrade: x", "Trailer: y", "TE: z", "Date: never", "Server: other", "Proxy-Connection: a"]
    server = serve({"s": prints("Content-Type: text/plain\n" + "\n".join(fields) + "\nX-Last: 1")})
    with server.connect() as c:
        for _ in range(2):
            reply = c.get("/cgi-bin/s")
            assert reply["X-Last"] == "1" and reply["Server"].startswith("Monkey") and not reply.closes
            for name in ("Keep-Alive", "Upgrade", "Trailer", "TE", "Proxy-Connection"):
                assert name not in reply


def test_cgi_content_length_of_script_limits_body(serve):
    server = serve({"s": SH + "printf 'Content-Type: text/plain\\nContent-Length: 6\\n\\nhello\\nand more that nobody gets'\n"})
    with server.connect() as c:
        for _ in range(2):
            reply = c.get("/cgi-bin/s")
            assert reply.framing == "length" and reply.text == "hello\n"
        assert c.get("/cgi-bin/s", "HEAD")["Content-Length"] == "6"


def test_cgi_response_to_http_1_0_ends_with_connection(serve):
    server = serve({"s": PLAIN + "echo one; sleep 0.1; echo two\n"})
    with server.connect() as c:
        reply = c.get("/cgi-bin/s", version="1.0")
        assert reply.text == "one\ntwo\n" and reply.framing in ("close", "length")


def test_cgi_script_may_continue_after_response(serve, site):
    server = serve({"s": PLAIN + "echo done\nexec >&- 2>&-\nwhile ! [ -e go ]; do sleep 0.02; done\ntouch gone\n"})
    assert server.get("/cgi-bin/s").text == "done\n"
    site.add("cgi-bin/go")
    from proc import wait_until
    wait_until((site / "cgi-bin/gone").exists, "the script ends undisturbed")


# Redirects

def test_cgi_absolute_location_redirects_client(serve):
    server = serve({"a": prints("Location: http://example.org/x?y"), "b": prints("Status: 303 See\nLocation: /there"),
                    "c": prints("Location: https://example.org/\nContent-Type: text/html", "<p>gone</p>\n"),
                    "d": prints("Location: //example.org/"), "e": prints("Location: /home\nSet-Cookie: a=b")})
    expected = {"a": (302, "http://example.org/x?y", ""), "b": (303, "/there", ""), "c": (302, "https://example.org/", "<p>gone</p>\n"),
                "d": (302, "//example.org/", ""), "e": (302, "/home", "")}
    for name, (status, location, text) in expected.items():
        reply = server.get(f"/cgi-bin/{name}")
        assert (reply.status, reply["Location"], reply.text) == (status, location, text)
    assert server.get("/cgi-bin/e")["Set-Cookie"] == "a=b"


@pytest.mark.parametrize("head", ["Location: /page.html?a=b", "Content-Type: text/html\nLocation: /page.html"])
def test_cgi_local_location_is_an_internal_redirect(serve, site, head):
    site.add("page.html", "the page")
    server = serve({"a": prints(head)})
    with server.connect() as c:
        for _ in range(2):
            reply = c.get("/cgi-bin/a")
            assert reply.status == 200 and reply.text == "the page" and reply["Content-Type"].startswith("text/html")
            assert "Location" not in reply
        assert c.get("/cgi-bin/a", "HEAD")["Content-Length"] == "8"


def test_cgi_internal_redirect_is_a_get_without_body(serve):
    server = serve({"a": prints("Location: /cgi-bin/env.sh/info?q=r"), "env.sh": PLAIN + "env; cat\n"})
    with server.connect() as c:
        reply = c.get("/cgi-bin/a?x", "POST", {"Content-Type": "a/b", "Content-Length": "7"}, b"content")
        got = environment(reply)
        assert c.get("/cgi-bin/a").status == 200  # the server skipped the body
    assert got["REQUEST_METHOD"] == "GET" and got["PATH_INFO"] == "/info" and got["QUERY_STRING"] == "q=r"
    assert got["SCRIPT_NAME"] == "/cgi-bin/env.sh" and got["REQUEST_URI"] == "/cgi-bin/a?x"
    assert "CONTENT_LENGTH" not in got and "CONTENT_TYPE" not in got and "HTTP_CONTENT_LENGTH" not in got


def test_cgi_internal_redirect_loop_is_an_error(serve):
    server = serve({"a": prints("Location: /cgi-bin/b"), "b": prints("Location: /cgi-bin/a"), "c": prints("Location: /cgi-bin/none"),
                    "d": prints("Location: /../x"), "e": prints("Location: /%zz")})
    assert server.get("/cgi-bin/a").status == 500
    assert server.get("/cgi-bin/c").status == 404
    assert server.get("/cgi-bin/d").status == server.get("/cgi-bin/e").status == 502


# Scripts that write HTTP themselves

def test_cgi_nph_script_output_is_sent_verbatim(serve):
    server = serve({"nph-x": SH + "printf 'HTTP/1.1 299 Mine\\r\\nX-Mine: %s\\r\\nConnection: close\\r\\n\\r\\nraw' $REQUEST_METHOD\n"})
    with server.connect() as c:
        data = c.ask("/cgi-bin/nph-x/info").read_to_end()
    assert data == b"HTTP/1.1 299 Mine\r\nX-Mine: GET\r\nConnection: close\r\n\r\nraw"


def test_cgi_nph_script_is_full_duplex(serve):
    server = serve({"nph-x": SH + "printf 'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n'; exec cat\n"})
    with server.connect() as c:
        c.ask("/cgi-bin/nph-x", "POST", body=b"n" * 500_000)
        assert c.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")
        assert c.read_to_end() == b"n" * 500_000


# Interpreters

def test_cgi_runs_python_and_perl(serve, site):
    site.add("cgi-bin/p.py", "import os, sys\nprint('Content-Type: text/plain\\n')\nprint(sys.argv[0], os.environ['SCRIPT_NAME'], sys.stdin.read())\n",
             mode=0o644)
    site.add("cgi-bin/p.pl", "print \"Content-Type: text/plain\\n\\n\"; print \"$0 $ENV{PATH_INFO} ${^TAINT}\\n\"; print <STDIN>;", mode=0o644)
    server = serve(keys=f"Interpreter .py {sys.executable} -I\nInterpreter .pl /usr/bin/perl -T")
    assert server.get("/cgi-bin/p.py", "POST", body=b"hi").text == f"{site}/cgi-bin/p.py /cgi-bin/p.py hi\n"
    if shutil.which("perl"):
        assert server.get("/cgi-bin/p.pl/x", "POST", body=b"hi").text == f"{site}/cgi-bin/p.pl /x 1\nhi"


def test_cgi_route_may_name_interpreter_and_type(serve, site):
    site.add("a.foo", "echo X-From: $0; echo; echo hello", mode=0o644)
    site.add("b.foo", "echo Content-Type: text/own; echo; echo hello", mode=0o644)
    server = serve(routes="[ROUTES]\n    *.foo  cgi /bin/sh text/x-foo\n    /*  static\n")
    reply = server.get("/a.foo")
    assert reply["Content-Type"] == "text/x-foo" and reply["X-From"] == f"{site}/a.foo" and reply.text == "hello\n"
    assert server.get("/b.foo")["Content-Type"] == "text/own"


def test_cgi_monkey16_match_syntax_works(serve, site):
    site.add("old/a.cgi", "echo; echo $SCRIPT_NAME", mode=0o644)
    site.add("old/b.cgi", "echo X: y; echo; echo $SCRIPT_NAME", mode=0o644)
    server = serve(routes="[HANDLERS]\n    Match /.*\\.cgi cgi /bin/sh text/plain\n")
    reply = server.get("/old/b.cgi")
    assert reply.text == "/old/b.cgi\n" and reply["Content-Type"] == "text/plain"


@pytest.mark.skipif(not shutil.which("php-cgi"), reason="needs php-cgi")
class TestPhp:
    KEYS = "Interpreter .php /usr/bin/php-cgi"

    def test_php_cgi_runs_index_file(self, serve, site):
        site.add("app/index.php", "<?php header('X-Self: ' . $_SERVER['PHP_SELF']); echo $_GET['a'], ' ', __FILE__, ' ', $_SERVER['SCRIPT_NAME'];")
        reply = serve(keys=self.KEYS, host="Index index.php").get("/app/?a=b")
        assert reply.text == f"b {site}/app/index.php /app/index.php" and reply["X-Self"] == "/app/index.php"
        assert reply["Content-Type"].startswith("text/html")

    def test_php_cgi_gets_forms_and_uploads(self, serve, site):
        site.add("cgi-bin/f.php", "<?php echo json_encode([$_POST, array_map(fn($f) => [$f['name'], $f['size']], $_FILES), $_SERVER['PATH_INFO'] ?? null]);")
        server = serve(keys=self.KEYS)
        url = f"{server.url}/cgi-bin/f.php"
        done = subprocess.run(["curl", "-sS", "-F", "a=b c", "-F", f"file=@{ROOT}/README.md", f"{url}/some/info"], capture_output=True, check=True)
        size = (ROOT / "README.md").stat().st_size
        assert done.stdout.decode() == f'[{{"a":"b c"}},{{"file":["README.md",{size}]}},"\\/some\\/info"]'
        done = subprocess.run(["curl", "-sS", "-d", "x=1&x=2", url], capture_output=True, check=True)
        assert done.stdout == b'[{"x":"2"},[],null]'

    def test_php_cgi_sets_status_and_redirects(self, serve, site):
        site.add("cgi-bin/s.php", "<?php if ($_GET['s'] == 404) http_response_code(404); else header('Location: /x', true, (int)$_GET['s']); echo 'text';")
        server = serve(keys=self.KEYS)
        assert server.get("/cgi-bin/s.php?s=404").status == 404
        reply = server.get("/cgi-bin/s.php?s=307")
        assert reply.status == 307 and reply["Location"] == "/x" and reply.text == "text"

    def test_php_cgi_query_is_never_a_command_line(self, serve, site):
        site.add("cgi-bin/s.php", "<?php echo 'run';")
        server = serve(keys=self.KEYS + "\nQueryArguments on")
        for query in ("-s", "-d+auto_prepend_file%3d/etc/passwd", "%ads", "-h"):
            assert server.get(f"/cgi-bin/s.php?{query}").text == "run"

    def test_php_cgi_missing_script_is_not_found(self, serve, site):
        site.add("note.txt", "<?php echo 'run';")
        server = serve(keys=self.KEYS)
        assert server.get("/none.php").status == 404
        assert server.get("/note.txt/x.php").status in (403, 404)
        assert "run" not in server.get("/note.txt/x.php").text

    def test_php_cgi_errors_go_to_the_log(self, serve, site):
        site.add("cgi-bin/e.php", "<?php error_log('all is lost'); throw new Exception('now');")
        server = serve(keys=self.KEYS)
        assert server.get("/cgi-bin/e.php").status in (200, 500)
        server.err.wait_for("cgi: .*all is lost")


# In combination with other plugins

@pytest.fixture
def protected(monkey, site, tmp_path):
    """/cgi-bin/ requires a password, which only ana has; /open/ does not."""
    users.add(tmp_path / "users", "ana", "secret", "-b", "sha256", "-r", "1000")
    for name, text in {"cgi-bin/env.sh": ENV, "open/a": prints("Location: /cgi-bin/env.sh"), "open/env.sh": ENV}.items():
        site.add(name, text, mode=0o755)
    return monkey(plugins=["auth", "cgi"], sections="[AUTH]\n    Location /cgi-bin/\n    UserFile users\n[ROUTES]\n    /*  cgi\n")


def test_cgi_script_gets_user_but_not_password(protected):
    assert protected.get("/cgi-bin/env.sh").status == 401
    got = environment(protected.get("/cgi-bin/env.sh", fields=users.basic("ana", "secret")))
    assert got["REMOTE_USER"] == "ana" and got["AUTH_TYPE"] == "Basic" and "HTTP_AUTHORIZATION" not in got
    got = environment(protected.get("/open/env.sh", fields=users.basic("ana", "secret")))
    assert "REMOTE_USER" not in got and "AUTH_TYPE" not in got  # the password was not verified


def test_cgi_internal_redirect_does_not_bypass_auth(protected):
    assert protected.get("/open/a").status == 401
    assert environment(protected.get("/open/a", fields=users.basic("ana", "secret")))["REMOTE_USER"] == "ana"


def test_cgi_response_headers_are_changed_by_headers_plugin(monkey, site):
    site.add("cgi-bin/s", prints("Content-Type: text/plain\nX-Powered-By: sh"), mode=0o755)
    server = monkey(plugins=["headers", "cgi"], sections="[HEADERS]\n    Set X-More yes\n    Remove X-Powered-By\n" + ROUTES)
    reply = server.get("/cgi-bin/s")
    assert reply["X-More"] == "yes" and "X-Powered-By" not in reply


# Command-line arguments

ARGS = PLAIN + 'for a; do echo "<$a>"; done\n'


def test_cgi_query_becomes_arguments_if_configured(serve):
    server = serve({"a": ARGS}, "QueryArguments on")
    assert server.get("/cgi-bin/a?one+t%77o+%2B+").text == "<one>\n<two>\n<+>\n<>\n"
    for query in ("?a=b+c", "", "?", "?a%00b", "?%zz+b"):
        assert server.get(f"/cgi-bin/a{query}").text == ""
    assert server.get("/cgi-bin/a?one", "POST", body=b"x").text == ""
    assert server.get("/cgi-bin/a?" + "+".join(["x"] * 65)).text == ""


def test_cgi_query_is_not_arguments_by_default(serve):
    assert serve({"a": ARGS}).get("/cgi-bin/a?one+two").text == ""


# Configuration

@pytest.mark.parametrize("keys,message", [
    ("Interpreter .php", r"m.*:\d+: .*no program for `.php`"),
    ("Interpreter php /bin/sh", "`php` is not a suffix"),
    ("Interpreter .x/y /bin/sh", "`.x/y` is not a suffix"),
    ("Interpreter .php sh", "`sh`: expected the absolute path of a program"),
    ("Interpreter .php /nowhere/php", "`/nowhere/php`: does not exist"),
    ("Interpreter .php /etc/passwd", "`/etc/passwd`: is not executable"),
    ("Interpreter .php /bin/sh 2 3 4 5 6 7 8 9", "more than 8 arguments"),
    ("SetEnv A", "expected NAME VALUE"),
    ("SetEnv A b c", "expected NAME VALUE"),
    ("SetEnv A=b c", "invalid variable name `A=b`"),
    ("SetEnv 1A c", "invalid variable name `1A`"),
    ("PassEnv A-B", "invalid variable name `A-B`"),
    ("ReadTimeout 10ms", "ReadTimeout"),
    ("MaxProcesses 0", "MaxProcesses"),
    ("MaxHeaderSize 1M", "MaxHeaderSize"),
    ("RequestBody maybe", "refuse|stream"),
    ("Match /.*.pl", "belong in .ROUTES. or .HANDLERS."),
    ("ReadTimeot 5", "did you mean `ReadTimeout`"),
])
def test_cgi_invalid_keys_are_rejected_with_location(serve, keys, message):
    server = serve(keys=keys, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "monkey.conf:" in server.err.text
    server.err.wait_for(message)


@pytest.mark.parametrize("route,message", [
    ("cgi php-cgi", "expected the absolute path of a program"),
    ("cgi /nowhere/php", "does not exist"),
    ("cgi /bin/sh html", "`html` is not a media type"),
    ("cgi /bin/sh text/html more", r"expects? \[INTERPRETER \[MEDIA-TYPE\]\]|expected \[INTERPRETER"),
])
def test_cgi_invalid_routes_are_rejected_with_location(serve, route, message):
    server = serve(routes=f"[ROUTES]\n    /x/*  {route}\n    /*  static\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "monkey.conf:" in server.err.text
    server.err.wait_for(message)


def test_cgi_printed_config_loads_again(serve, monkey, tmp_path):
    keys = "Interpreter .php /bin/sh -x \"a b\"\nSetEnv A \"x y\"\nPassEnv B C\nReadTimeout 5s\nMaxOutput 1G\nRequestBody stream\nMaxProcessesPerAddress auto"
    server = serve(keys=keys)
    printed = subprocess.run([*server.process.args[:1], "-T", "-c", server.config], capture_output=True, text=True, check=True).stdout
    for line in ('Interpreter .php /bin/sh -x "a b"', 'SetEnv A "x y"', "PassEnv B C", "ReadTimeout 5s", "MaxOutput 1G", "RequestBody stream", "MaxProcessesPerAddress auto", "MaxRunTime 5m"):
        name, value = line.split(" ", 1)
        assert any(each.split(None, 1) == [name, value] for each in printed.splitlines()), f"{line}\n{printed}"


def test_cgi_hosts_have_separate_settings(monkey, site):
    site.add("cgi-bin/env.sh", ENV, mode=0o755)
    routes = "[ROUTES]\n    /*  cgi\n"
    server = monkey(plugins=["cgi"], top="[CGI]\n    SetEnv WHO all\n", root=None, sections="".join(
        f"[HOST]\n    ServerName {name}\n    DocumentRoot site\n{own}{routes}"
        for name, own in (("a", ""), ("b", "[CGI]\n    SetEnv WHO b\n"), ("c", ""))))
    for name, user in (("a", "all"), ("b", "b"), ("c", "all")):
        assert environment(server.get("/cgi-bin/env.sh", fields={"Host": name}))["WHO"] == user


def test_cgi_shipped_config_loads(monkey, site):
    text = (ROOT / "plugins/cgi/cgi.conf").read_text()
    site.add("cgi-bin/env.sh", ENV, mode=0o755)
    server = monkey(plugins=["cgi"], top=text, sections=ROUTES)
    assert server.get("/cgi-bin/env.sh").status == 200


def test_cgi_first_example_of_readme_works(monkey, tmp_path):
    text = (ROOT / "plugins/cgi/README.md").read_text()
    blocks = [block.split("\n", 1)[1] for block in text.split("```")[1::2]]
    (tmp_path / "srv/cgi-bin").mkdir(parents=True)
    script = tmp_path / "srv/cgi-bin/hello.sh"
    script.write_text(next(block for block in blocks if block.startswith("#!/bin/sh")))
    script.chmod(0o755)
    config = next(block for block in blocks if "[PLUGINS]" in block).replace("8080", "127.0.0.1:0").replace("/srv/www", str(tmp_path / "srv"))
    server = monkey(config=config)
    assert server.get("/cgi-bin/hello.sh?Kim").text == "Hello, Kim\n"


def test_cgi_route_without_plugin_is_rejected(monkey, site):
    server = monkey(sections="[ROUTES]\n    /cgi-bin/*  cgi\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    server.err.wait_for("there is no handler `cgi`")


def test_cgi_reload_does_not_interrupt_script(serve, site):
    import signal
    server = serve({"s": PLAIN + "echo begun\nwhile ! [ -e go ]; do sleep 0.02; done\necho ended\n"})
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        c.read_head()
        old = server.workers
        server.tell(signal.SIGHUP)
        server.err.wait_for("loaded|reload|serves", 2)
        site.add("cgi-bin/go")
        rest = c.read_until(b"0\r\n\r\n")
        assert b"begun" in rest and b"ended" in rest
    assert server.get("/cgi-bin/s").text == "begun\nended\n"
    assert old


def test_cgi_half_closed_client_gets_response_if_configured(serve):
    server = serve({"s": PLAIN + "sleep 0.2; echo late\n"}, "CancelOnDisconnect off")
    with server.connect() as c:
        c.ask("/cgi-bin/s")
        c.sock.shutdown(socket.SHUT_WR)
        assert c.read().text == "late\n"
