# SPDX-License-Identifier: Apache-2.0
"""Configuration by path: routes, redirects, caching, fallback, user folders, and the keys of Monkey 1.6."""
import os
import pwd
import re
import tempfile
from pathlib import Path

import pytest


def routes(*lines, host="", more=""):
    return {"host": host, "sections": "[ROUTES]\n" + "".join(f"    {line}\n" for line in lines) + more}


# Routes

def test_route_first_match_wins(monkey, site):
    site.add("a/x.txt", "file")
    site.add("a/deep/x.php", "source")
    site.add("index.html", "index")
    server = monkey(**routes("/exact  status 410", "/a/secret/*  status 403", "*.php  status 501",
                             "/b?d  status 402", "/*/mid/*.txt  status 451", "/a/*  static", "/old  redirect 301 /a/x.txt",
                             "/  static", "*  status 404"))
    for target, status in {
        "/": 200, "/index.html": 404, "/exact": 410, "/exact/": 404, "/exact?x": 410, "/exac%74": 410, "/a/x.txt": 200,
        "/a/secret/x": 403, "/a/secret/": 403, "/a/secret": 403, "/a/secretx": 404, "/a/./secret/x": 403,
        "/a/%73ecret/x": 403, "/a//secret/x": 403, "/x/../a/secret/x": 403, "/a/deep/x.php": 501, "/x.php": 501,
        "/x.ph%70": 501, "/x.php/": 404, "/x.PHP": 404, "/bcd": 402, "/bd": 404, "/b/d": 402, "/x/mid/y.txt": 451,
        "/x/y/mid/z/y.txt": 451, "/mid/y.txt": 404, "/old": 301,
    }.items():
        assert server.get(target).status == status, target


def test_route_falls_through_when_handler_declines(monkey, site):
    site.add("a.txt", "file")
    server = monkey(**routes("/*  static", "/moved/*  redirect 302 https://example.org/", "/gone  status 410"))
    assert server.get("/a.txt").text == "file"
    assert server.get("/moved/x").status == 302
    assert server.get("/gone").status == 410
    assert server.get("/none").status == 404


def test_route_falls_through_when_method_is_not_supported(monkey, site):
    site.add("a.txt", "file")
    server = monkey(**routes("/*  static", "/form  redirect 303 /a.txt"))
    assert server.get("/form", "POST", body=b"x=y").status == 303
    assert server.get("/a.txt", "POST", body=b"x=y").status == 405


def test_files_are_not_served_without_static_route(monkey, site):
    site.add("a.txt", "file")
    server = monkey(**routes("/x  status 403"))
    assert server.get("/a.txt").status == 404
    assert server.get("/x").status == 403


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_sends_status_and_location(monkey, status):
    server = monkey(**routes(f"/old  redirect {status} https://example.org/new?x=1#y"))
    reply = server.get("/old?z=2")
    assert (reply.status, reply["Location"]) == (status, "https://example.org/new?x=1#y")
    assert len(reply.body) < 500 and reply["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("target, location", [
    ("/", "https://example.org/"), ("/a/b?c=d", "https://example.org/a/b?c=d"),
    ("/a%20b?%3F", "https://example.org/a%20b?%3F"),
    ("//evil.example/", "https://example.org//evil.example/"), pytest.param("http://here/x?y", "https://example.org/x?y", marks=pytest.mark.http1),
    pytest.param("http://here", "https://example.org/", marks=pytest.mark.http1),
    pytest.param("http://here?q", "https://example.org/?q", marks=pytest.mark.http1),
    ("/?", "https://example.org/?"),
    ("/@evil.example", "https://example.org/@evil.example"), ("/a%0d%0aX:y", "https://example.org/a%0d%0aX:y"),
])
def test_host_redirect_keeps_path_and_query(monkey, target, location):
    server = monkey(root=None, sections="[HOST]\n    Redirect https://example.org\n")
    for method in ("GET", "HEAD", "POST"):
        reply = server.get(target, method, body=b"x" if method == "POST" else b"")
        assert (reply.status, reply["Location"]) == (301, location)


def test_host_redirect_may_lead_to_one_page(monkey):
    server = monkey(root=None, sections="[HOST]\n    Redirect https://example.org/moved.html\n")
    assert server.get("/a/b?c")["Location"] == "https://example.org/moved.html"


def test_redirect_wildcard_appends_request_path(monkey):
    server = monkey(**routes("/a/*  redirect 307 https://example.org"))
    assert server.get("/a/b?c")["Location"] == "https://example.org/a/b?c"


# Fixed responses

@pytest.mark.parametrize("words, status, text", [
    ('200 "ok\\n"', 200, "ok\n"), ("200 all is well", 200, "all is well"), ("200", 200, ""), ("204", 204, ""),
    ('200 "a \\"b\\" \\\\ \\t\\x"', 200, 'a "b" \\ \t\\x'), ('503 "come back later\\n"', 503, "come back later\n"), ("205", 205, ""),
])
def test_status_route_sends_text(monkey, words, status, text):
    server = monkey(**routes(f"/health  status {words}"))
    for method in ("GET", "HEAD", "POST", "DELETE"):
        reply = server.get("/health", method, body=b"x=y" if method == "POST" else b"")
        assert (reply.status, reply.text) == (status, "" if method == "HEAD" else text)
        assert reply.get("Content-Type") == ("text/plain; charset=utf-8" if text else None)
        if status not in (204, 205):
            assert reply["Content-Length"] == str(len(text))


def test_status_route_with_text_ignores_error_page(monkey, site):
    site.add("410.html", "page")
    server = monkey(**routes('/text  status 410 "gone"', "/page  status 410", more="[ERROR_PAGES]\n    410 410.html\n"))
    assert (server.get("/text").text, server.get("/page").text) == ("gone", "page")


# Caching

def test_cache_control_follows_first_matching_pattern(monkey, site):
    for name in ("a.css", "a.woff2", "b1", "b12", "a.js", "static/a.css", "static/b.html", "index.html", "x/index.html"):
        site.add(name, "x")
    server = monkey(sections="""
        [CACHE_CONTROL]
            /static/*    public, max-age=31536000, immutable
            *.css *.woff2 /b? max-age=60
            /index.html  no-cache
        """)
    for target, value in {"/static/a.css": "public, max-age=31536000, immutable", "/a.css": "max-age=60",
                          "/static/b.html": "public, max-age=31536000, immutable", "/": "no-cache", "/a.js": None,
                          "/index.html": "no-cache", "/x/": None, "/a.woff2": "max-age=60", "/b1": "max-age=60", "/b12": None, "/%61.css": "max-age=60"}.items():
        assert server.get(target).get("Cache-Control") == value, target
        assert server.get(target, "HEAD").get("Cache-Control") == value
    assert "Cache-Control" not in server.get("/none.css")
    assert server.get("/a.css", fields={"Range": "bytes=0-0"})["Cache-Control"] == "max-age=60"


# Fallback page of a single-page application

def test_fallback_serves_unknown_page_paths(monkey, site):
    site.add("app.html", "app")
    site.add("a.txt", "file")
    site.add("folder/x", "")
    site.add(".hidden", "")
    server = monkey(host="Fallback /app.html")
    html = {"Accept": "text/html,application/xhtml+xml"}
    for target, fields, expected in [
        ("/users/42", {}, "app"), ("/users/42?x", {}, "app"), ("/", {}, "app"), ("/folder/", {}, "app"),
        ("/a.txt", {}, "file"), ("/none.js", {}, 404), ("/none.js", html, "app"),
        ("/none.png", {"Accept": "image/*"}, 404),
        ("/x.y/z", {}, "app"), ("/.hidden", html, 403), ("/a%2fb", html, "app"), ("/a.txt/", {}, "app"),
    ]:
        reply = server.get(target, fields=fields)
        if isinstance(expected, int):
            assert reply.status == expected, target
        else:
            assert (reply.status, reply.text) == (200, expected), target
            if expected == "app":
                assert reply["Content-Type"] == "text/html; charset=utf-8"
    assert server.get("/folder").status == 301
    assert server.get("/users", "POST", body=b"x").status == 405


def test_fallback_file_missing_gives_404(monkey):
    assert monkey(host="Fallback none.html").get("/x").status == 404


# User folders

@pytest.fixture
def me():
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError:
        pytest.skip("a user without a name")


@pytest.fixture
def public(me):
    """A folder in the home of the test's user that exists during the test."""
    if not os.access(me.pw_dir, os.W_OK):
        pytest.skip("our home is not to be written to")
    with tempfile.TemporaryDirectory(prefix="monkey-test-", dir=me.pw_dir) as folder:
        yield Path(folder)


def test_user_dir_serves_home_folders(monkey, site, tmp_path, me, public):
    home = public / "www"
    home.mkdir()
    (home / "index.html").write_text("home page")
    (home / "sub").mkdir()
    (home / "sub/a.txt").write_text("sub")
    (home / ".hidden").write_text("hidden")
    (home / "up").symlink_to("..")
    (public / "secret.txt").write_text("secret")
    site.add("~nobody-by-this-name/a.txt", "a file like any other")
    site.add("index.html", "site")
    server = monkey(host=f"UserDir {public.name}/www")
    name = me.pw_name
    for target, expected in {
        f"/~{name}/": "home page", f"/~{name}/sub/a.txt": "sub", f"/%7E{name}/": "home page",
        f"//~{name}//sub/a.txt": "sub", f"/~{name}/none": 404, f"/~{name}/.hidden": 403,
        f"/~{name}/../index.html": "site", f"/~{name}/sub/../../": "site",
        f"/~{name}/%2e%2e/~{name}/": "home page", f"/~{name}/..%2fsecret.txt": 400, f"/~{name}/up/secret.txt": 403,
        f"/~{name.upper()}x/": 404, "/~/": 404, "/~": 404, "/~nobody-by-this-name/a.txt": "a file like any other",
        f"/~{name}x/": 404, f"/x/~{name}/": 404, f"/~{name}/../../secret.txt": 400,
    }.items():
        reply = server.get(target)
        assert expected in (reply.status, reply.text if reply.status == 200 else None), target
        assert reply.text != "secret"
    assert server.get(f"/~{name}?x")["Location"] == f"/~{name}/?x"
    assert server.get(f"/~{name}/sub")["Location"] == f"/~{name}/sub/"


@pytest.mark.parametrize("symlink, status", [("off", 404), ("owner", 404), ("on", 200)])
def test_user_dir_cannot_expose_other_folders(monkey, site, tmp_path, me, public, symlink, status):
    """The master opens the folder as root, so a link could lead into a folder that the workers may not enter."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private/a.txt").write_text("private")
    (public / "www").symlink_to(tmp_path / "private")
    server = monkey(host=f"UserDir {public.name}/www\nFollowSymlinks {symlink}")
    assert server.get(f"/~{me.pw_name}/a.txt").status == status


@pytest.fixture
def home_for_all():
    """Returns a user and a folder in that user's home; everyone can enter its parent folders."""
    for user in pwd.getpwall():
        if user.pw_dir == "/dev" and os.access("/dev/shm", os.W_OK):
            with tempfile.TemporaryDirectory(prefix="monkey-test-", dir="/dev/shm") as folder:
                os.chmod(folder, 0o755)
                yield user.pw_name, Path(folder)
            return
    pytest.skip("no home that all users may enter and where a folder can be made")


@pytest.mark.processes("it serves as the user of the program")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
@pytest.mark.parametrize("mode, group, status", [(0o755, 0, 200), (0o700, 0, 404), (0o710, 0, 404), (0o710, None, 200)])
def test_user_dir_symlink_is_opened_with_worker_rights(monkey, home_for_all, mode, group, status):
    """The master runs as root and with root's groups, but opens the folder with the worker's rights."""
    user, folder = home_for_all
    (folder / "way/inner").mkdir(parents=True)
    (folder / "way/inner/a.txt").write_text("inner")
    (folder / "www").symlink_to("way/inner")
    os.chown(folder / "way", 0, pwd.getpwnam("nobody").pw_gid if group is None else group)
    os.chmod(folder / "way", mode)
    server = monkey(server="User nobody", host=f"UserDir shm/{folder.name}/www\nFollowSymlinks on")
    assert server.get(f"/~{user}/a.txt").status == status
    ids = re.findall(r"^[UG]id:(.*)$", Path(f"/proc/{server.pid}/status").read_text(), re.MULTILINE)
    assert [line.split() for line in ids] == [["0"] * 4] * 2  # the last of each four IDs is the filesystem ID


@pytest.mark.parametrize("folder", ["/srv", "../x", "a/../b", "./a"])
def test_user_dir_outside_of_homes_is_rejected(monkey, site, folder):
    server = monkey(host=f"UserDir {folder}", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "is not a folder in home directories" in server.err.text


def test_user_dir_is_off_by_default(monkey, me):
    for host in ("", "UserDir off"):
        assert monkey(host=host).get(f"/~{me.pw_name}/").status == 404


# Keys of Monkey 1.6

def test_handlers_section_never_sends_script_source(monkey, site):
    """A script is never sent as text, even if its plugin is not loaded or no longer exists."""
    for name in ("a.php", "cgi-bin/x.sh", "a.txt", "list/x"):
        site.add(name, "source")
    server = monkey(sections=r"""
        [HANDLERS]
            Match \.php$      fastcgi
            Match /cgi-bin/.* cgi
            Match /list/      dirlisting
            Match ^/GONE$     status 410
        """)
    for target, status in {"/a.php": 501, "/A.PHP": 501, "/cgi-bin/x.sh": 501, "/a.txt": 200, "/list/": 501,
                           "/gone": 410, "/a.php5": 404, "/x/a.php": 501, "/a%2ephp": 501, "/cgi-bin/": 501}.items():
        reply = server.get(target)
        assert reply.status == status, target
        assert target == "/a.txt" or "source" not in reply.text


def test_handlers_section_maps_to_plugins(monkey, site):
    site.add("list/x.txt", "a file")
    site.add("cgi-bin/x.cgi", "#!/bin/sh\necho Content-Type: text/plain\necho\necho from a script\n").chmod(0o755)
    server = monkey(plugins=["cgi", "dirlisting"], sections=r"""
        [HANDLERS]
            Match /cgi-bin/.*\.cgi cgi
            Match /list/$          dirlisting
        """)
    assert server.get("/cgi-bin/x.cgi").text == "from a script\n"
    assert "x.txt" in server.get("/list/").text and server.get("/list/x.txt").text == "a file"


def test_auth_section_without_plugin_is_rejected(run, tmp_path, site):
    """If the server ignored an unknown section [AUTH], protected files would become public."""
    (tmp_path / "c").write_text("[HOST]\n    DocumentRoot site\n[AUTH]\n    Location /private/\n    UserFile users\n")
    done = run("-t", "-c", "c")
    assert done.code == 3 and "c:3:1: error: unknown section [AUTH]\n" in done.err
