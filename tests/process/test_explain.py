# SPDX-License-Identifier: Apache-2.0
"""`monkey explain METHOD URL` predicts the response; the tests compare the prediction with the server's actual response."""
import os
import re

import pytest

from shell_server import socket_folder  # noqa: F401: a fixture

pytestmark = pytest.mark.over("h1", why="how a configuration is read does not depend on what is spoken")

CONFIGURATION = """
[SERVER]
    Listen 127.0.0.1:{port}
    Workers 1
    LogLevel error

[HOST]
    ServerName one.example
    DocumentRoot site

[ROUTES]
    /old/*   redirect 302 http://new.example
    /secret  status 451
    /*       static

[HOST]
    ServerName two.example *.two.example
    DocumentRoot site/two
    FollowSymlinks on

[HOST]
    ServerName moved.example
    Redirect https://moved.example.net
"""

# The URL, the status, and another part of the output
CASES = [
    ("GET", "http://one.example/", 200, r"file +\S+/site/index\.html, 5 bytes\ntype +text/html"),
    ("GET", "http://one.example/a.txt", 200, r"host +one\.example \(\S+monkey\.conf:7\), by its name\nroute +/\*  static"),
    ("HEAD", "http://one.example/a.txt", 200, r"Content-Type: text/plain"),
    ("GET", "http://one.example/a.txt?query", 200, r"site/a\.txt, 4 bytes"),
    ("GET", "http://one.example/%61%2etxt", 200, r"site/a\.txt, 4 bytes"),
    ("GET", "http://one.example/folder", 301, r"redirected to its name with a slash(.|\n)+Location: /folder/"),
    ("GET", "http://one.example/folder/", 403, r"a folder without any of the index files"),
    ("GET", "http://one.example/none", 404, r"nothing there beneath \S+/site: No such file or directory"),
    ("GET", "http://one.example/none/", 404, r"nothing there"),
    ("GET", "http://one.example/a.txt/", 404, r"nothing there"),
    ("GET", "http://one.example/link", 403, r"a symbolic link that FollowSymlinks does not allow"),
    ("GET", "http://one.example/pipe", 403, r"file +neither a file nor a folder beneath \S+/site\n"),
    ("GET", "http://one.example/.hidden", 403, r"begins with a dot \(DotFiles is off\)"),
    ("POST", "http://one.example/a.txt", 405, r"Allow: GET, HEAD, OPTIONS"),
    ("OPTIONS", "http://one.example/a.txt", 200, r"Allow: GET, HEAD, OPTIONS"),
    ("BREW", "http://one.example/a.txt", 501, r""),
    ("GET", "http://one.example/old/x?y", 302,
     r"route +/old/\*  redirect 302 http://new\.example\n(.|\n)+Location: http://new\.example/old/x\?y"),
    ("GET", "http://one.example/secret", 451, r"route +/secret  status 451"),
    ("GET", "http://two.example/t", 200, r"host +two\.example \(\S+:16\), by its name"),
    ("GET", "http://www.two.example/t", 200, r"host +two\.example \(\S+:16\), by a name with a wildcard"),
    ("GET", "http://TWO.example./t", 200, r"host +two\.example"),
    ("GET", "http://two.example/link", 200, r"site/two/link, 3 bytes"),
    ("GET", "http://moved.example/x", 301, r"Location: https://moved\.example\.net/x"),
    ("GET", "http://other.example/", 200, r"host +one\.example \(\S+\), no host has this name: the default one"),
    ("GET", "/a.txt", 200, r"the request names no host: the default one"),
    ("GET", "/../..", 400, r"path +refused: it leads above the root"),
    ("GET", "http://two.example/%00", 400, r"host +two\.example(.|\n)+path +refused: (.|\n)+Content-Type: text/html"),
    ("GET", "/%zz", 400, r"path +refused: .* an invalid escape"),
]


@pytest.fixture
def folder(site):
    site.add("index.html", "hello")
    site.add("a.txt", "text")
    site.add(".hidden", "h")
    site.add("folder/x", "x")
    site.add("two/t", "two")
    os.symlink("a.txt", site / "link")
    os.mkfifo(site / "pipe")
    os.symlink("t", site / "two/link")
    return site


def explain(run, tmp_path, method, url, port=0, **how):
    (tmp_path / "monkey.conf").write_text(CONFIGURATION.format(port=port))
    return run("-c", "monkey.conf", "explain", method, url, **how)


@pytest.mark.parametrize("method, url, status, message", CASES, ids=lambda value: str(value)[:40])
def test_explain_names_the_deciding_rule(run, tmp_path, folder, method, url, status, message):
    done = explain(run, tmp_path, method, url)
    assert (done.code, done.err) == (0, "")
    assert re.search(rf"^answer +{status} ", done.out, re.MULTILINE)
    assert re.search(message, done.out), done.out


def test_explain_matches_the_server(monkey, run, tmp_path, folder):
    server = monkey(config=CONFIGURATION.format(port=0))
    for method, url, status, _ in CASES:
        match = re.fullmatch(r"(?:http://([^/]+))?(/.*)", url)
        fields = [("Host", match[1] or "nobody.example")] + [("Content-Length", "0")] * (method == "POST")
        reply = server.get(match[2], method, fields)
        assert reply.status == status, url
        explained = explain(run, tmp_path, method, url).out
        for name in ("Location", "Content-Type", "Allow", "ETag"):
            if name in reply and status != 501:
                assert f"{name}: {reply[name]}" in explained, url


def test_explain_finds_listener_by_port(run, tmp_path, folder):
    assert re.match(r"listener +127\.0\.0\.1:8081\n", explain(run, tmp_path, "GET", "http://one.example:8081/", 8081).out)
    done = explain(run, tmp_path, "GET", "http://one.example:82/", 8081)
    assert done.code == 0 and re.match(r"listener +no listener on port 82;", done.out)
    assert re.match(r"listener +no listener on port 80;", explain(run, tmp_path, "GET", "http://one.example/", 8081).out)


def test_explain_works_for_a_folder(run, folder):
    done = run("-o", folder, "explain", "GET", "/a.txt")
    assert done.code == 0 and f"{folder}/a.txt, 4 bytes" in done.out
    assert re.match(r"listener +127\.0\.0\.1:2001\n", done.out)


@pytest.mark.parametrize("method, url", [("GET", "nonsense"), ("GET", ""), ("G@T", "/"), ("", "/"), ("GET", "ftp://one.example/"), ("GET", "/ x")])
def test_explain_rejects_invalid_requests(run, folder, method, url):
    done = run("-o", folder, "explain", method, url)
    assert (done.code, done.out) == (2, "")
    assert f"`{method} {url}` is not a request" in done.err


def test_explain_opens_no_port_and_leaves_no_files(run, tmp_path, folder):
    """`monkey explain` opens no port and writes no PID file."""
    (tmp_path / "monkey.conf").write_text("[SERVER]\n    Listen 127.0.0.1:1\n    PidFile pid\n[HOST]\n    DocumentRoot site\n")
    assert run("-c", "monkey.conf", "explain", "GET", "/").code == 0
    assert not (tmp_path / "pid").exists()


def with_host(text, port=0):
    return f"[SERVER]\n    Listen 127.0.0.1:{port}\n    Workers 1\n{text}"


def test_explain_describes_fallback(run, tmp_path, folder):
    (tmp_path / "monkey.conf").write_text(with_host("[HOST]\n    DocumentRoot site\n    Fallback index.html\n"))
    for url, status, message in [
            ("/none", 200, r"fallback +index\.html, because there is no file at this path and its last part has no dot\n"
                           r"file +\S+index\.html, 5 bytes \(the Fallback\)"),
            ("/folder/", 200, r"fallback +index\.html, because"),
            ("/a%2Fb", 200, r"fallback +index\.html, because there is no file at this path"),
            ("/a%2Fb.js", 404, r"file +nothing there, because no file name contains an encoded slash \(%2F\), beneath"),
            ("/none.js", 404, r"fallback +not index\.html, because the last part of the path has a dot"),
            ("/a.txt", 200, r"fallback +not index\.html, because there is a file or folder at this path\nfile +\S+a\.txt")]:
        done = run("-c", "monkey.conf", "explain", "GET", url)
        assert re.search(message, done.out) and re.search(rf"^answer +{status} ", done.out, re.MULTILINE), done.out
    os.remove(folder / "index.html")
    assert re.search(r"fallback +index\.html would answer, but cannot be sent",
                     run("-c", "monkey.conf", "explain", "GET", "/none").out)


def test_explain_names_error_page(run, tmp_path, folder):
    folder.add("gone.html", "gone")
    (tmp_path / "monkey.conf").write_text(with_host("[HOST]\n    DocumentRoot site\n[ERROR_PAGES]\n    404 /gone.html\n"))
    assert re.search(r"^page +gone\.html, of \[ERROR_PAGES\]\nanswer +404", run("-c", "monkey.conf", "explain", "GET", "/none").out,
                     re.MULTILINE)
    assert "gone" not in run("-c", "monkey.conf", "explain", "GET", "/a.txt").out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
def test_explain_warns_of_files_that_the_user_cannot_read(run, tmp_path, folder):
    (tmp_path / "monkey.conf").write_text(with_host("    User nobody\n[HOST]\n    DocumentRoot site\n"))
    os.chmod(folder.path, 0o755)
    os.chmod(folder / "a.txt", 0o600)
    done = run("-c", "monkey.conf", "explain", "GET", "/a.txt")
    assert re.search(rf"^warning +the User nobody may not read {folder.path}/a\.txt$", done.out,
                     re.MULTILINE), done.out
    assert re.search(r"^answer +403 Forbidden$", done.out, re.MULTILINE) and "200 OK" not in done.out
    assert "warning" not in run("-c", "monkey.conf", "explain", "GET", "/").out
    os.chmod(folder.path, 0o700)
    assert f"may not read {folder.path}\n" in run("-c", "monkey.conf", "explain", "GET", "/").out
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 0
    assert f"warning: the User nobody may not enter `{folder.path}`: workers will answer 403" in done.err
    assert f"hint: let others search it: `chmod o+x {folder.path}`" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_folder_that_the_user_cannot_write_is_a_warning(run, tmp_path, folder, socket_folder):
    top = socket_folder / "top"
    (top / "state").mkdir(parents=True)
    (tmp_path / "monkey.conf").write_text(
        f"[SERVER]\n    Listen 127.0.0.1:0\n    User nobody\n[PLUGINS]\n    Load proxy\n[UPSTREAM]\n    Name a\n    Server 127.0.0.1:1\n"
        f"    StateFile {top}/state/a\n[HOST]\n    DocumentRoot site\n[ROUTES]\n    /* proxy http://a\n")
    for mode, state, warning in ((0o755, 0o755, rf"the User nobody may not write to the folder `{top}/state/`"),
                                (0o700, 0o777, rf"the User nobody may not enter `{top}`, but writes below it"),
                                (0o711, 0o777, None)):
        os.chmod(top, mode)
        os.chmod(top / "state", state)
        done = run("-t", "-c", "monkey.conf")
        assert done.code == 0
        if warning:
            assert re.search(rf"monkey\.conf:9:\d+: warning: {warning}", done.err), done.err
        else:
            assert "warning" not in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_explain_warns_of_aliases_that_the_user_cannot_enter(run, tmp_path, folder):
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "a").write_text("a")
    (tmp_path / "monkey.conf").write_text(with_host(
        f"    User nobody\n[HOST]\n    DocumentRoot site\n    Alias /open site/folder\n    Alias /in {closed}\n"))
    os.chmod(folder.path, 0o755)
    for mode, warned in ((0o755, False), (0o700, True)):
        os.chmod(closed, mode)
        done = run("-t", "-c", "monkey.conf")
        assert done.code == 0
        assert ("may not enter" in done.err) == warned, done.err
    assert re.search(rf"monkey\.conf:8:\d+: warning: the User nobody may not enter `{closed}`: workers will answer 403", done.err), done.err
    assert f"may not read {closed}" in run("-c", "monkey.conf", "explain", "GET", "/in/a").out


CONDITIONS = """
[PLUGINS]
    Load security
    Load rewrite

[SECURITY]
    Deny header User-Agent *crawler*
    Deny 192.0.2.0/24

[REWRITE]
    When cookie beta 1
    Rewrite prefix /a.txt /index.html

[HOST]
    DocumentRoot site

[ROUTES]
    When    method POST
    /a.txt  status 202
    When    from 198.51.100.0/24
    /a.txt  status 451
    /*      static
"""


@pytest.mark.parametrize("options, status, message", [
    ([], 200, r"a\.txt, 4 bytes(.|\n)+note +the client is on this machine.*\nnote +the request has no headers"),
    (["-X", "POST"], 202, r"route +/a\.txt  status 202"), (["-XPOST"], 202, ""), (["--request=POST"], 202, ""),
    (["-H", "User-Agent: a crawler"], 403, r"decided +by the plugin security"), (["-HUser-Agent:crawler"], 403, ""),
    (["--header", "X-A: 1", "--header", "user-agent: crawler/1"], 403, ""), (["-H", "User-Agent: other"], 200, "a.txt, 4 bytes"),
    (["--from", "192.0.2.7"], 403, r"decided +by the plugin security"), (["--from=198.51.100.9"], 451, r"route +/a\.txt  status 451"),
    (["--from", "2001:db8::1"], 200, r"a\.txt, 4 bytes"), (["-H", "Cookie: beta=1"], 200, r"index\.html, 5 bytes"),
    (["-H", "Host: some.example"], 200, r"no host has this name")])
def test_explain_evaluates_conditions_on_headers_method_and_client(run, tmp_path, folder, options, status, message):
    (tmp_path / "monkey.conf").write_text(with_host(CONDITIONS))
    method = [] if any(each.startswith(("-X", "--request")) for each in options) else ["GET"]
    done = run("-c", "monkey.conf", "explain", *options, *method, "/a.txt")
    assert (done.code, done.err) == (0, "")
    assert re.search(rf"^answer +{status} ", done.out, re.MULTILINE) and re.search(message, done.out), done.out
    assert ("the client is on this machine" in done.out) == (not any("--from" in each for each in options))
    assert ("the request has no headers" in done.out) == (not any(each.startswith(("-H", "--header")) for each in options))
    again = run("-c", "monkey.conf", "explain", *method, "/a.txt", *options)  # options may follow
    assert again.out == done.out


def test_explain_shows_values_of_the_environment_as_references(run, tmp_path, folder):
    (tmp_path / "monkey.conf").write_text('''[SERVER]
    Listen 127.0.0.1:0
[PLUGINS]
    Load proxy
    Load rewrite
[HOST]
    ServerName one.example
    DocumentRoot .
[REWRITE]
    Rewrite prefix /old /new/${SECRET}
[ROUTES]
    /new/* proxy http://127.0.0.1:9/${SECRET}/${PIN}
    /* static
''')
    done = run("-c", "monkey.conf", "explain", "GET", "http://one.example/old/a", environment={"SECRET": "s3cret-of-the-backend", "PIN": "4711"})
    assert re.search(r"^rewrite +Rewrite prefix /old /new/\$\{SECRET\}", done.out, re.MULTILINE), done
    assert re.search(r"^route +/new/\*  proxy http://127.0.0.1:9/\$\{SECRET\}/\$\{PIN\}$", done.out, re.MULTILINE), done.out
    assert not re.search("s3cret|4711", done.out)


@pytest.mark.parametrize("options, message", [
    (["-H", "no colon"], "-H expects `NAME: VALUE`, not no colon"), (["-H", "a b: c"], "-H expects"), (["--from", "nowhere"], "--from expects an address"),
    (["--from"], "--from expects an address"), (["-H", "X: a\x01"], "is not a request"), (["-H", "X: " + "a" * 20000], "too many headers"), (["-X", "G T"], "is not a request")])
def test_explain_rejects_invalid_options(run, folder, options, message):
    operands = ["/"] if "-X" in options else ["GET", "/"]
    done = run("-o", folder, "explain", *operands, *options)
    assert (done.code, done.out) == (2, "") and message in done.err, done
