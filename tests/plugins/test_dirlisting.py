# SPDX-License-Identifier: Apache-2.0
"""Folder listings are complete, show nothing from outside the folder, and have the requested order and format."""
import json
import os
import random
import re
import socket
import stat

import pytest

import browser
from listing import ON, listed, listed_json, lister, names_of, open_below
from monkey import ROOT
from proc import wait_until


# ---- Listed entries ----

def test_dirlisting_lists_folder_without_index(monkey, site):
    site.add("b.txt", "12345", mtime=1767225600)
    site.add("sub/x", "1")
    os.utime(site / "sub", (1767225660, 1767225660))
    page = listed(lister(monkey))
    assert page.title == "/"
    assert page.entries == [("sub/", "sub/", "", "2026-01-01 00:01"), ("b.txt", "b.txt", "5 B", "2026-01-01 00:00")]
    assert "../" not in page.links


def test_dirlisting_serves_index_if_present(monkey, site):
    site.add("index.html", "the page")
    site.add("sub/x", "1")
    server = lister(monkey)
    assert server.get("/").text == "the page"
    assert listed(server, "/sub/").names == ["x"]


def test_dirlisting_does_not_change_files_and_errors(monkey, site):
    site.add("a.txt", "text")
    server = lister(monkey)
    assert server.get("/a.txt").text == "text"
    assert server.get("/a.txt/").status == 404
    assert server.get("/none").status == 404
    assert server.get("/none/").status == 404
    assert server.get("/a%2Fb/").status == 404
    assert server.get("/" + "x" * 300 + "/").status == 404


def test_dirlisting_has_breadcrumbs_and_parent_link(monkey, site):
    site.add("a/b & c/d/x", "1")
    server = lister(monkey)
    page = listed(server, "/a/b%20&%20c/d/")
    assert page.rows[0][:2] == ["Parent folder", "../"]
    assert [link for link in page.links if link.startswith(".")] == ["../../../", "../../", "../", "./", "../"]
    assert page.title == "/a/b & c/d/"
    assert re.search(r"Index of / a/ b & c/ d/", page.text)


def test_dirlisting_of_empty_folder_is_empty(monkey, site):
    (site / "empty").mkdir()
    server = lister(monkey)
    page = listed(server, "/empty/")
    assert page.entries == [] and "0 entries" in page.text
    assert listed_json(server, "/empty/")["entries"] == []
    assert server.get("/empty/?format=text").body == b""


def test_dirlisting_of_deep_folder_shortens_breadcrumbs(monkey, site):
    parts = ["d%02d" % i + "x" * 40 for i in range(40)]
    site.add("/".join(parts) + "/file", "1")
    server = lister(monkey)
    page = listed(server, "/" + "/".join(parts) + "/")
    assert page.names == ["file"]
    assert "…/" in page.text and parts[-1] in page.text and page.title.count("/") == 41
    assert page.links[0] == "../" * 40 and page.links[1:17] == ["../" * n or "./" for n in range(15, -1, -1)]


def test_dirlisting_omits_special_files(monkey, site):
    os.mkfifo(site / "pipe")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(os.path.relpath(site / "socket"))
        site.add("file")
        assert names_of(lister(monkey)) == ["file"]


def test_dirlisting_omits_hidden_files_by_default(monkey, site):
    site.add(".htpasswd", "secret")
    site.add(".git/config", "secret")
    site.add("a/.hidden/x", "secret")
    site.add("seen", "")
    server = lister(monkey)
    assert names_of(server) == ["a", "seen"]
    assert names_of(server, "/a/") == []
    for target in ("/.git/", "/.git", "/a/.hidden/"):
        assert server.get(target).status == 403
    server = lister(monkey, host="DotFiles on")
    assert names_of(server) == [".git", "a", ".htpasswd", "seen"]
    assert names_of(server, "/a/.hidden/") == ["x"]


def test_dirlisting_of_well_known_folder_works(monkey, site):
    site.add(".well-known/acme/token", "1")
    site.add(".well-known/.secret/x", "1")
    server = lister(monkey)
    assert names_of(server, "/.well-known/") == ["acme"]
    assert server.get("/.well-known/.secret/").status == 403
    assert names_of(server) == []


def test_dirlisting_hide_omits_names(monkey, site):
    for name in ("a.txt", "a.txt~", "a.bak", "Thumbs.db", "b"):
        site.add(name)
    server = lister(monkey, "[DIRLISTING]\n    Hide *~ *.bak\n    Hide Thumbs.db\n")
    assert names_of(server) == ["a.txt", "b"]
    assert server.get("/a.bak").status == 200


# ---- Symbolic links ----

@pytest.fixture
def links(tmp_path, site):
    outside = tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("x" * 54321)
    site.add("real.txt", "x" * 777)
    (site / "folder").mkdir()
    for name, target in (("in", "real.txt"), ("in-folder", "folder"), ("out", outside / "file"),
                         ("out-folder", outside / "folder"), ("dangling", "nothing"), ("loop", "loop"),
                         ("up", ".."), ("null", "/dev/null")):
        (site / name).symlink_to(target)
    return site


def test_dirlisting_omits_symlinks_that_may_not_be_followed(monkey, links):
    server = lister(monkey)
    reply = server.get("/?format=json")
    assert [e["name"] for e in json.loads(reply.body)["entries"]] == ["folder", "real.txt"]
    assert "54321" not in reply.text
    for how in ("json", "text", "html"):
        assert "out" not in re.sub(r"<style>.*?</style>", "", server.get(f"/?format={how}&sort=none").text, flags=re.DOTALL)


def test_dirlisting_shows_targets_of_symlinks_that_may_be_followed(monkey, links):
    server = lister(monkey, host="FollowSymlinks on")
    entries = {e["name"]: (e["type"], e.get("size"), e["url"]) for e in listed_json(server)["entries"]}
    assert entries == {"folder": ("folder", None, "folder/"), "in-folder": ("folder", None, "in-folder/"),
                       "out-folder": ("folder", None, "out-folder/"), "up": ("folder", None, "up/"),
                       "real.txt": ("file", 777, "real.txt"), "in": ("file", 777, "in"),
                       "out": ("file", 54321, "out")}
    assert names_of(server, "/out-folder/") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_dirlisting_omits_symlinks_to_files_of_another_owner(monkey, links, tmp_path):
    os.chown(tmp_path / "outside" / "file", 12345, 12345)
    server = lister(monkey, host="FollowSymlinks owner")
    assert {"in", "out-folder"} < set(names_of(server))
    assert "out" not in names_of(server)


def test_dirlisting_resolves_many_symlinks_in_batches(monkey, site):
    site.add("real", "1")
    for i in range(300):
        (site / f"link{i:03}").symlink_to("real" if i % 3 else "nothing")
    server = lister(monkey, host="FollowSymlinks on")
    expected = [f"link{i:03}" for i in range(300) if i % 3] + ["real"]
    assert names_of(server) == expected
    assert sorted(names_of(server, how="&sort=none")) == expected
    assert len(listed(server, "/?sort=size").entries) == 201


# ---- Order ----

@pytest.fixture
def mixed(site):
    for name, size, mtime in (("b", 10, 3000), ("a", 30, 1000), ("C", 20, 2000), ("dir2", None, 500), ("Dir1", None, 9000)):
        if size is None:
            (site / name).mkdir()
        else:
            site.add(name, "x" * size)
        os.utime(site / name, (mtime, mtime))
    return site


@pytest.mark.parametrize("query, order", [
    ("", "Dir1 dir2 a b C"), ("sort=name", "Dir1 dir2 a b C"), ("sort=name&order=asc", "Dir1 dir2 a b C"),
    ("order=desc", "dir2 Dir1 C b a"), ("sort=size", "Dir1 dir2 b C a"), ("sort=size&order=desc", "dir2 Dir1 a C b"),
    ("sort=time", "dir2 Dir1 a C b"), ("order=desc&sort=time", "Dir1 dir2 b C a"),
    ("sort=color&order=up&format=pdf&&=&x", "Dir1 dir2 a b C"), ("sort=size&sort=name", "Dir1 dir2 a b C"),
    ("sort", "Dir1 dir2 a b C"), ("sort=Size", "Dir1 dir2 a b C"),
])
def test_dirlisting_sort_and_order_parameters_apply(monkey, mixed, query, order):
    server = lister(monkey)
    assert names_of(server, how="&" + query) == order.split()
    assert [name.rstrip("/") for name in listed(server, "/?" + query).names] == order.split()


def test_dirlisting_sort_and_order_keys_apply(monkey, mixed):
    server = lister(monkey, "[DIRLISTING]\n    Sort time\n    Order desc\n")
    assert names_of(server) == "Dir1 dir2 b C a".split()
    assert names_of(server, how="&order=asc") == "dir2 Dir1 a C b".split()
    assert listed_json(server)["order"] == "desc" and listed_json(server)["sort"] == "time"


def test_dirlisting_sort_none_keeps_order_of_folder(monkey, mixed):
    server = lister(monkey)
    assert names_of(server, how="&sort=none") == os.listdir(mixed)
    answer = listed_json(server, how="?format=json&sort=none")
    assert answer["sort"] == "none" and "order" not in answer


def test_dirlisting_column_heads_are_sort_links(monkey, mixed):
    server = lister(monkey)
    page = listed(server)
    assert page.heads == ["ascending", None, None]
    assert [link for link in page.links if link.startswith("?sort")] == [
        "?sort=name&order=desc", "?sort=size&order=desc", "?sort=time&order=desc"]
    page = listed(server, "/?sort=size&order=desc&format=html")
    assert page.heads == [None, "descending", None]
    assert [link for link in page.links if link.startswith("?sort")] == [
        "?sort=name&order=asc&format=html", "?sort=size&order=asc&format=html", "?sort=time&order=desc&format=html"]
    assert listed(server, "/?sort=none").heads == [None, None, None]


def test_dirlisting_formats_sizes(monkey, site):
    for size in (0, 1, 1023, 1024, 1536, 10188, 10189, 1048063, 1048064, 5 << 20, 3 << 30, 7 << 40):
        with open(site / str(size), "wb") as f:
            f.truncate(size)
    page = listed(lister(monkey), "/?sort=size")
    assert [size for _, _, size, _ in page.entries] == [
        "0 B", "1 B", "1023 B", "1.0 KB", "1.5 KB", "9.9 KB", "10 KB", "1023 KB", "1.0 MB", "5.0 MB", "3.0 GB", "7.0 TB"]


def test_dirlisting_footer_shows_total_size(monkey, site):
    for name, size in (("a", 1000), ("b", 1 << 20), ("sub/c", 1 << 30)):
        site.add(name)
        os.truncate(site / name, size)
    server = lister(monkey)
    assert "3 entries, 1.0 MB" in listed(server).text
    assert "1 entry, 1.0 GB" in listed(server, "/sub/").text
    (site / "empty").mkdir()
    assert "0 entries, 0 B" in listed(server, "/empty/").text


# ---- In a browser ----

@pytest.fixture
def page(tmp_path):
    if not browser.FOUND:
        pytest.skip("no chromium here")
    with browser.Browser(tmp_path) as found:
        yield found


@pytest.mark.parametrize("theme", ["guineo", "plain"])
def test_dirlisting_on_phone_shows_time_of_day(monkey, site, page, theme):
    site.add("a rather long name of a file, which takes two lines on a phone.txt", "x", mtime=1767225660)
    server = lister(monkey, f"[DIRLISTING]\n    Theme {theme}\n")
    page.look(width=390, height=800, mobile=True)
    page.goto(server.url + "/")
    assert page.run("document.querySelector('tbody time').innerText.split(/\\s+/)") == ["2026-01-01", "00:01"]
    assert page.run("document.documentElement.scrollWidth <= 390")


@pytest.mark.parametrize("theme", ["guineo", "plain"])
def test_dirlisting_sort_links_have_arrows(monkey, site, page, theme):
    site.add("a")
    page.goto(lister(monkey, f"[DIRLISTING]\n    Theme {theme}\n").url + "/")
    marks = page.run("[...document.querySelectorAll('th a')].map(a => getComputedStyle(a, '::after').content.trim())")
    assert [mark.strip('" ') for mark in marks] == ["\u2191", "\u2195", "\u2195"]


def test_dirlisting_visited_links_have_their_own_color(monkey, site, page):
    """Scripts cannot read the color of a visited link, so the test reads the style rules."""
    site.add("a.txt", "x")
    server = lister(monkey)
    page.goto(server.url + "/")
    seen = "[...document.styleSheets[0].cssRules].find(r => /:visited/.test(r.selectorText))"
    assert page.run(f"{seen}.style.color") == "var(--seen)"
    colors = page.run("['--seen', '--accent', '--ink'].map(c => getComputedStyle(document.documentElement).getPropertyValue(c))")
    assert len(set(colors)) == 3


# ---- Formats ----

@pytest.mark.parametrize("accept, kind", [
    (None, "text/html"), ("*/*", "text/html"), ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
    ("application/json", "application/json"), ("application/json, */*;q=0.1", "application/json"),
    ("text/plain", "text/plain"), ("text/*;q=0.5, application/json;q=0.4", "text/html"),
    ("text/html;q=0, text/*", "text/plain"), ("image/png", "text/html"), ("", "text/html"),
    ("text/html;q=0.3, application/json;q=0.9, text/plain;q=0.8", "application/json"), (",,;;q=", "text/html"),
])
def test_dirlisting_format_follows_accept_header(monkey, site, accept, kind):
    site.add("a")
    reply = lister(monkey).get("/", fields={"Accept": accept} if accept is not None else {})
    assert reply["Content-Type"].split(";")[0] == kind
    assert reply["Vary"] == "Accept"


def test_dirlisting_format_parameter_overrides_accept(monkey, site):
    site.add("a")
    server = lister(monkey)
    for word, kind in (("json", "application/json"), ("text", "text/plain; charset=utf-8"),
                       ("html", "text/html; charset=utf-8")):
        reply = server.get("/?format=" + word, fields={"Accept": "image/png"})
        assert reply["Content-Type"] == kind and "Vary" not in reply


def test_dirlisting_text_format_is_machine_readable(monkey, site):
    site.add("a b.txt", "12345", mtime=1767225600)
    (site / "sub").mkdir()
    os.utime(site / "sub", (1767225601, 1767225601))
    assert lister(monkey).get("/?format=text").text == ("2026-01-01T00:00:01Z            - sub/\n"
                                                         "2026-01-01T00:00:00Z            5 a b.txt\n")


def test_dirlisting_head_equals_get_without_body(monkey, site):
    site.add("sub/a")
    server = lister(monkey)
    with server.connect() as c:
        get = c.get("/sub/")
        for _ in range(3):
            head = c.get("/sub/", "HEAD")
            assert head.status == 200 and head.body == b""
            assert [f for f in head.fields if f[0] != "Date"] == [f for f in get.fields if f[0] != "Date"]
    wait_until(lambda: not open_below(server, site / "sub"), "the folder is closed")


def test_dirlisting_other_methods_are_refused(monkey, site):
    server = lister(monkey)
    for method in ("POST", "PUT", "DELETE"):
        reply = server.get("/", method, {"Content-Length": "0"})
        assert reply.status == 405 and {"get", "head"} <= set(reply.tokens("Allow"))


def test_dirlisting_to_http_1_0_ends_with_connection(monkey, site):
    for i in range(500):
        site.add(f"f{i:03}")
    reply = lister(monkey).send(b"GET /?format=json HTTP/1.0\r\n\r\n")
    assert reply.framing == "close" and len(json.loads(reply.body)["entries"]) == 500


def test_dirlisting_page_loads_no_other_resources(monkey, site):
    site.add("a")
    for theme in ("guineo", "plain"):
        server = lister(monkey, f"[DIRLISTING]\n    Theme {theme}\n")
        text = server.get("/").text
        assert not re.search(r"<script|@import|src=", text)
        assert all(url.startswith("data:") for url in re.findall(r'url\("?([^")]*)', text))
        assert not [n for n in re.findall(r"https?://[^'\" ]+", text) if n != "http://www.w3.org/2000/svg"]


# ---- Errors ----

@pytest.mark.processes("it serves as the user of the program")
def test_dirlisting_of_unreadable_folder_is_forbidden(monkey, site):
    site.add("locked/x")
    site.add("open/y")
    os.chmod(site / "locked", stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    server = lister(monkey, server="User nobody\n" if os.geteuid() == 0 else "")
    assert names_of(server, "/open/") == ["y"]
    assert server.get("/locked/").status == 403
    assert server.get("/locked/x").status == 200


# ---- Activation ----

def test_dirlisting_route_lists_despite_index(monkey, site):
    site.add("pub/index.html", "the page")
    site.add("pub/sub/x", "1")
    site.add("other/y", "1")
    server = lister(monkey, "[ROUTES]\n    /pub/* dirlisting\n    /* static\n")
    assert listed(server, "/pub/").names == ["sub/", "index.html"]
    assert listed(server, "/pub/sub/").names == ["x"]
    assert server.get("/pub/sub/x").text == "1"
    assert server.get("/pub/index.html").text == "the page"
    assert server.get("/other/").status == 403
    reply = server.get("/pub/sub?sort=size")
    assert (reply.status, reply["Location"]) == (301, "/pub/sub/?sort=size")


def test_dirlisting_route_uses_keys_of_section(monkey, mixed):
    server = lister(monkey, "[ROUTES]\n    /* static\n    /* dirlisting\n[DIRLISTING]\n    Listing off\n    Sort size\n")
    assert names_of(server) == "Dir1 dir2 b C a".split()


def test_dirlisting_route_refuses_hidden_folders(monkey, site):
    site.add(".git/x")
    server = lister(monkey, "[ROUTES]\n    /* dirlisting\n")
    for target in ("/.git/", "/.git"):
        assert server.get(target).status == 403


def test_dirlisting_hosts_without_section_have_no_listings(monkey, site):
    site.add("x")
    server = lister(monkey, f"{ON}[HOST]\n    ServerName other\n    DocumentRoot {site}\n")
    assert server.get("/").status == 200
    assert server.get("/", fields={"Host": "other"}).status == 403


def test_dirlisting_global_section_applies_to_all_hosts(monkey, site):
    site.add("x")
    server = monkey(plugins=["dirlisting"], top="[DIRLISTING]\n    Sort none\n", sections=f"""
[HOST]
    ServerName quiet
    DocumentRoot {site}
[DIRLISTING]
    Listing off
[HOST]
    ServerName loud
    DocumentRoot {site}
""")
    assert server.get("/").status == 200
    assert server.get("/", fields={"Host": "loud"}).status == 200
    assert server.get("/", fields={"Host": "quiet"}).status == 403


def test_dirlisting_is_off_without_section_and_route(monkey, site):
    site.add("x")
    assert lister(monkey, "").get("/").status == 403


def test_dirlisting_readme_examples_work(monkey, site):
    """Tests the first example of the README, which is a whole configuration, and its [ROUTES] section."""
    text = (ROOT / "plugins/dirlisting/README.md").read_text()
    blocks = [re.sub("^    ", "", block, flags=re.MULTILINE) for block in re.findall(r"(?:^    .*\n|^\n)+", text, re.MULTILINE)]
    blocks = [block.strip("\n") + "\n" for block in blocks if block.strip()]
    first = blocks[0].replace("/srv/www", str(site))
    server = monkey(config="[SERVER]\n    Listen 127.0.0.1:0\n" + first)
    site.add("x")
    assert listed(server).names == ["x"]
    routes = next(block for block in blocks if block.startswith("[ROUTES]"))
    site.add("pub/index.html", "the page")
    site.add("pub/sub/y")
    server = lister(monkey, routes)
    assert server.get("/pub/").text == "the page" and server.get("/").status == 403
    assert listed(server, "/pub/sub/").names == ["y"]


def test_dirlisting_shipped_config_loads(monkey, site, tmp_path):
    site.add("x")
    server = monkey(config="[SERVER]\n    Listen 127.0.0.1:0\n"
                           f"@INCLUDE {ROOT / 'plugins/dirlisting/dirlisting.conf'}\n[HOST]\n    DocumentRoot {site}\n")
    assert listed(server).names == ["x"]


def test_dirlisting_survives_random_queries(monkey, mixed):
    rng = random.Random(11)
    words = ["sort", "order", "format", "name", "size", "json", "html", "desc", "=", "&", "==", "&&", "%", "%00", "+", "?",
             ";", "'", "%26", "%3D", "x" * 300]
    server = lister(monkey, server="KeepAliveRequests 0")
    with server.connect() as c:
        for _ in range(500):
            reply = c.get("/?" + "".join(rng.choices(words, k=rng.randint(0, 12))))
            assert reply.status == 200 and reply.body.count(b"ir1") >= 1


@pytest.mark.parametrize("section, line, message", [
    ("Theme bootstrap", 2, "guineo, plain"),
    ("Them plain", 2, "unknown key `Them`"),
    ("Sort color", 2, "name, size, time, none"),
    ("Order up", 2, "asc, desc"),
    ("SortMax many", 2, "SortMax"),
    ("SortMax 1000001", 2, "1000000"),
    ("SortMemory 1X", 2, "SortMemory"),
    ("Listing maybe", 2, "Listing"),
    ('Hide "*.bak', 2, "quote"),
    ("Theme plain\n    Theme guineo", 3, "already set"),
])
def test_dirlisting_invalid_configuration_is_rejected(monkey, section, line, message):
    server = monkey(plugins=["dirlisting"], sections=f"[DIRLISTING]\n    {section}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    at = server.config.read_text().splitlines().index("[DIRLISTING]") + line
    assert re.search(rf"monkey\.conf:{at}\b.*", server.err.text), server.err.text
    assert message in server.err.text


def test_dirlisting_route_with_arguments_is_rejected(monkey):
    server = monkey(plugins=["dirlisting"], sections="[ROUTES]\n    /* dirlisting plain\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "dirlisting" in server.err.text and "plain" in server.err.text
