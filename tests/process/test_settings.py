# SPDX-License-Identifier: Apache-2.0
"""A key of [SERVER] applies to every host; a [HOST] may override it."""
import json
import os
import pwd

import pytest

from proc import descriptors, wait_until

pytestmark = pytest.mark.over("h1", why="how a configuration is read does not depend on what is spoken")


@pytest.fixture
def both(monkey, site):
    """Starts a server with a host that inherits the setting from [SERVER] and a host that overrides it; returns a function that
    queries both hosts."""
    def start(server, host):
        it = monkey(server=server, host="ServerName one.example", sections=f"""
            [HOST]
                ServerName two.example
                DocumentRoot site
                {host}
        """)
        return lambda target, fields=(), **how: [it.get(target, fields=[("Host", f"{name}.example"), *fields], **how)
                                                 for name in ("one", "two")]

    return start


def statuses(replies):
    return [reply.status for reply in replies]


def test_host_index_overrides_server(both, site):
    site.add("a.html", "a")
    site.add("b.html", "b")
    site.add("my page", "p")
    get = both("Index none b.html a.html", 'Index "my page"')
    assert [reply.text for reply in get("/")] == ["b", "p"]


def test_host_ranges_overrides_server(both, site):
    site.add("x", "0123456789")
    get = both("Ranges off", "Ranges on")
    first, second = get("/x", fields=[("Range", "bytes=2-3")])
    assert (first.status, first.text, second.status, second.text) == (200, "0123456789", 206, "23")
    assert "Accept-Ranges" not in first and second["Accept-Ranges"] == "bytes"


def test_host_follow_symlinks_overrides_server(both, site, tmp_path):
    (tmp_path / "outside").write_text("outside")
    site.add("inside", "inside")
    site.add("folder/x", "x")
    os.symlink("inside", site / "in")
    os.symlink(tmp_path / "outside", site / "out")
    os.symlink("folder", site / "linked")
    get = both("FollowSymlinks on", "FollowSymlinks off")
    for target in ("/in", "/out", "/linked/x"):
        assert statuses(get(target)) == [200, 403], target
    assert statuses(get("/folder/x")) == [200, 200]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_host_follow_symlinks_owner_overrides_server(both, site, tmp_path):
    for name, owner in (("mine", 0), ("theirs", 65534)):
        path = site.add(name, name)
        os.chown(path, owner, owner)
        os.symlink(path, site / f"to-{name}")
    get = both("FollowSymlinks owner", "FollowSymlinks off")
    assert statuses(get("/to-mine")) == [200, 403]
    assert statuses(get("/to-theirs")) == [403, 403]


def test_host_dot_files_overrides_server(both, site):
    site.add(".secret", "s")
    site.add(".git/config", "c")
    site.add(".well-known/x", "w")
    get = both("DotFiles off", "DotFiles on")
    assert statuses(get("/.secret")) == statuses(get("/.git/config")) == [403, 200]
    assert statuses(get("/.well-known/x")) == [200, 200]


def test_host_fallback_overrides_server(both, site):
    site.add("app.html", "app")
    get = both("Fallback app.html", "Fallback none.html")
    assert [reply.text for reply in get("/some/route")][0] == "app"
    assert statuses(get("/some/route")) == [200, 404] and statuses(get("/x.js")) == [404, 404]


def test_host_precompressed_overrides_server(both, site):
    site.add("x.txt", "plain")
    site.add("x.txt.gz", "packed")
    get = both("Precompressed on", "Precompressed off")
    assert [reply.text for reply in get("/x.txt", fields=[("Accept-Encoding", "gzip")])] == ["packed", "plain"]


def test_host_error_format_overrides_server(both):
    get = both("ErrorFormat json", "ErrorFormat html")
    first, second = get("/missing")
    assert statuses((first, second)) == [404, 404]
    assert first["Content-Type"] == "application/problem+json"
    assert json.loads(first.text) == {"title": "Not Found", "status": 404, "detail": "The resource does not exist."}
    assert second["Content-Type"] == "text/html; charset=utf-8"
    refused = get("/", method="DELETE")[0]
    assert (refused.status, refused["Allow"], json.loads(refused.text)["title"]) == (405, "GET, HEAD, OPTIONS", "Method Not Allowed")


def test_server_error_format_applies_to_malformed_requests(monkey):
    reply = monkey(server="ErrorFormat json").get("/", fields=[("Host", "a b")])
    assert (reply.status, reply["Content-Type"], json.loads(reply.text)["status"]) == (400, "application/problem+json", 400)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can put a folder into a home of root")
def test_host_user_dir_overrides_server(both, tmp_path):
    user = pwd.getpwuid(0)
    folder = f".monkey-test-{os.getpid()}"
    path = os.path.join(user.pw_dir, folder)
    os.mkdir(path)
    try:
        with open(os.path.join(path, "x"), "w") as f:
            f.write("at home")
        get = both(f"UserDir {folder}\nDotFiles on", "UserDir off")
        first, second = get(f"/~{user.pw_name}/x")
        assert (first.status, first.text, second.status) == (200, "at home", 404)
        assert statuses(get("/~no-such-user/x")) == [404, 404]
        assert get(f"/~{user.pw_name}")[0]["Location"] == f"/~{user.pw_name}/"
        assert statuses(get(f"/~{user.pw_name}/../x"))[0] in (400, 403, 404)
    finally:
        os.unlink(os.path.join(path, "x"))
        os.rmdir(path)


# Keys of [SERVER] only

def test_server_default_mime_type_applies(monkey, site):
    for name in ("x", "x.unknown", "x.html"):
        site.add(name, "x")
    server = monkey(server="DefaultMimeType application/x-unknown", sections="[MIMETYPES]\n    HTML text/x-mine\n")
    assert server.get("/x")["Content-Type"] == server.get("/x.unknown")["Content-Type"] == "application/x-unknown"
    assert server.get("/x.html")["Content-Type"].startswith("text/x-mine")


def test_server_hide_version_applies(monkey, site):
    assert monkey(server="HideVersion on").get("/")["Server"] == "Monkey"
    assert monkey(server="HideVersion off").get("/")["Server"].startswith("Monkey/")


@pytest.mark.parametrize("server, kept", [("OpenFileCache on\nOpenFileCacheTTL 1h", True), ("OpenFileCache off", False), ("OpenFileCacheSize 0", False),
                                          ("OpenFileCacheTTL 1h\nOpenFileCacheSize 2", True)])
def test_server_open_file_cache_keeps_large_files_open(monkey, site, server, kept):
    site.add("big", b"x" * 20000)
    it = monkey(server=server)
    for _ in range(2):
        assert len(it.get("/big").body) == 20000
    wait_until(lambda: (str(site.path / "big") in descriptors(it.workers[0]).values()) == kept, "the expected state of the file")


def test_server_open_file_cache_ttl_applies(monkey, site):
    path = site.add("x", "old")
    believing, looking = monkey(server="OpenFileCacheTTL 1h"), monkey(server="OpenFileCacheTTL 0")
    assert believing.get("/x").text == looking.get("/x").text == "old"
    path.with_suffix(".new").write_text("newer")
    path.with_suffix(".new").rename(path)
    assert (believing.get("/x").text, looking.get("/x").text) == ("old", "newer")


def test_cache_control_section_applies(monkey, site):
    for name in ("x.js", "x.css"):
        site.add(name, "x")
    server = monkey(sections="[CACHE_CONTROL]\n    *.js max-age=60\n    /x.j* no-store\n")
    assert server.get("/x.js")["Cache-Control"] == "max-age=60" and "Cache-Control" not in server.get("/x.css")


def test_workers_auto_starts_one_per_processor(monkey, site):
    server = monkey(config="[SERVER]\n    Listen 127.0.0.1:0\n    Workers auto\n[HOST]\n    DocumentRoot site\n")
    assert len(server.workers) == len(os.sched_getaffinity(0))


def test_host_redirect_needs_no_document_root(monkey, site):
    server = monkey(root=None, sections="[HOST]\n    Redirect https://new.example\n[HOST]\n    ServerName x\n"
                                        "    Redirect https://new.example/one/page\n")
    assert server.get("/a?b")["Location"] == "https://new.example/a?b"
    reply = server.get("/a?b", fields=[("Host", "x")])
    assert (reply.status, reply["Location"]) == (301, "https://new.example/one/page")
