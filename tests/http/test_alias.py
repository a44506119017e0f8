# SPDX-License-Identifier: Apache-2.0
"""Alias: folders outside the document root, mounted below a path of the host."""
import os
import re
import signal

import pytest


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name, text in {"index.html": "index of docs", "a.txt": "0123456789", "sub/index.html": "index of sub",
                       "page.html": "page", ".hidden": "hidden"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def server(monkey, site, docs):
    site.add("index.html", "index of root")
    site.add("docs/lost.txt", "the alias hides it")
    site.add("docsets/x.txt", "not below the alias")
    return monkey(host="Alias /docs/ elsewhere", sections="[CACHE_CONTROL]\n    /docs/*.txt max-age=7\n")


def test_alias_serves_files_of_its_folder_below_its_path(server):
    for target, expected in {"/docs/a.txt": "0123456789", "/docs/": "index of docs", "/docs/sub/": "index of sub", "/": "index of root",
                             "/docsets/x.txt": "not below the alias", "/%64ocs/a.txt": "0123456789",
                             "/docs/sub/../a.txt": "0123456789", "/docs//a.txt": "0123456789"}.items():
        reply = server.get(target)
        assert (reply.status, reply.text) == (200, expected), target
    for target, status in {"/docs/lost.txt": 404, "/docs/none": 404, "/docs/.hidden": 403, "/docs/../../elsewhere/a.txt": 400,
                           "/docs/a.txt/": 404, "/docs%2Fa.txt": 404, "/DOCS/a.txt": 404}.items():
        assert server.get(target).status == status, target


def test_alias_folder_without_slash_redirects_to_slash(server):
    assert (server.get("/docs").status, server.get("/docs?x=1")["Location"]) == (301, "/docs/?x=1")
    assert server.get("/docs/sub")["Location"] == "/docs/sub/"


def test_alias_files_support_ranges_conditions_and_cache_control(server, docs):
    reply = server.get("/docs/a.txt", fields={"Range": "bytes=2-4"})
    assert (reply.status, reply.text, reply["Cache-Control"]) == (206, "234", "max-age=7")
    etag = server.get("/docs/a.txt")["ETag"]
    assert server.get("/docs/a.txt", fields={"If-None-Match": etag}).status == 304
    assert server.get("/docs/a.txt", "POST", body=b"x").status == 405
    assert "Cache-Control" not in server.get("/docs/page.html")
    (docs / "b.html.gz").write_bytes(b"compressed")
    (docs / "b.html").write_text("plain")
    os.utime(docs / "b.html", (1, 1))
    reply = server.get("/docs/b.html", fields={"Accept-Encoding": "gzip"})
    assert (reply["Content-Encoding"], reply.body) == ("gzip", b"compressed")


def test_alias_with_longest_path_wins(monkey, site, docs):
    (docs / "sub" / "here.txt").write_text("below docs")
    site.add("here.txt", "below the deep one")
    server = monkey(host="Alias /docs elsewhere\nAlias /docs/sub site\nAlias /a%20b elsewhere\nAlias \"/a b\" elsewhere")
    assert server.get("/docs/sub/here.txt").text == "below the deep one"
    assert server.get("/docs/a.txt").text == "0123456789"
    assert server.get("/a%20b/a.txt").text == "0123456789"


@pytest.mark.parametrize("rule, status", [("off", 403), ("on", 200)])
def test_alias_obeys_follow_symlinks(monkey, docs, tmp_path, rule, status):
    (tmp_path / "secret.txt").write_text("secret")
    (docs / "link.txt").symlink_to(tmp_path / "secret.txt")
    server = monkey(host=f"Alias /docs/ elsewhere\nFollowSymlinks {rule}")
    assert server.get("/docs/link.txt").status == status


def test_alias_fallback_comes_from_document_root(monkey, site, docs):
    site.add("app.html", "app")
    server = monkey(host="Alias /docs/ elsewhere\nFallback app.html")
    assert server.get("/docs/none").text == "app"
    assert server.get("/docs/none.txt").status == 404


def test_alias_reload_switches_folder(monkey, site, docs, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("other")
    server = monkey(host="Alias /docs/ elsewhere")
    assert server.get("/docs/a.txt").text == "0123456789"
    server.config.write_text(server.config.read_text().replace("elsewhere", "other"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert server.get("/docs/a.txt").text == "other"


def test_alias_files_reach_plugin_handlers(monkey, site, docs):
    script = docs / "hello.sh"
    script.write_text("#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n%s' \"$SCRIPT_FILENAME\"\n")
    script.chmod(0o755)
    (docs / "list").mkdir()
    (docs / "list" / "x.txt").write_text("x")
    server = monkey(plugins=["cgi", "dirlisting"], host="Alias /docs/ elsewhere",
                    sections="[ROUTES]\n    /docs/*.sh cgi\n    /* static\n[DIRLISTING]\n    Listing on\n")
    assert server.get("/docs/hello.sh").text == str(script)
    assert "x.txt" in server.get("/docs/list/").text


MISTAKES = [
    ("/docs", "expected a path and one folder: PATH FOLDER"), ("/docs a b", "expected a path and one folder"),
    ("docs a", "`docs` is not a path for an Alias"), ("/a/../b a", "`/a/../b` is not a path for an Alias"),
    ("/a//b a", "`/a//b` is not a path for an Alias"), ("/ a", "hint: the folder of `/` is the DocumentRoot"),
    ("/a site\n    Alias /a/ site", "`/a/` already has an Alias on line 4"),
    ("/a none", "none`: No such file or directory"),
]


@pytest.mark.over("h1", why="it is about a configuration")
@pytest.mark.parametrize("words, message", MISTAKES)
def test_alias_invalid_configuration_is_rejected(run, site, tmp_path, words, message):
    (tmp_path / "monkey.conf").write_text(f"[HOST]\n    DocumentRoot site\n    ServerName a\n    Alias {words}\n")
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 3 and message in done.err, done.err


@pytest.mark.over("h1", why="it is about a configuration")
def test_alias_appears_in_printed_config_and_explain(run, site, docs, tmp_path):
    (tmp_path / "monkey.conf").write_text("[HOST]\n    DocumentRoot site\n    Alias /docs/ elsewhere\n")
    printed = run("-T", "-c", "monkey.conf")
    assert re.search(rf"^    Alias +/docs {docs}$", printed.out, re.MULTILINE)
    explained = run("-c", "monkey.conf", "explain", "GET", "/docs/a.txt").out
    assert re.search(rf"^alias +/docs  {docs}$", explained, re.MULTILINE)
    assert re.search(rf"^file +{docs}/a.txt, 10 bytes$", explained, re.MULTILINE)
    assert not re.search("^alias ", run("-c", "monkey.conf", "explain", "GET", "/a.txt").out, re.MULTILINE)
