# SPDX-License-Identifier: Apache-2.0
"""Uploads into listed folders: permission, names, limits, and the files that a failed upload leaves (none)."""
import os
import signal
import subprocess
import threading

import pytest

from monkey import PROTOCOLS
from proc import wait_until
from users import add, basic

ANYONE = "[DIRLISTING]\n    Upload anyone\n"
BOUNDARY = b"----monkey"


def form(*files, field="file"):
    """The headers and the body of a form. Files are (name, content); names are bytes or text."""
    body = b""
    for name, content in files:
        name = name if isinstance(name, bytes) else name.encode()
        body += b"--%b\r\nContent-Disposition: form-data; name=\"%b\"; filename=\"%b\"\r\nContent-Type: application/octet-stream\r\n\r\n%b\r\n" % (
            BOUNDARY, field.encode(), name, content)
    return [("Content-Type", f"multipart/form-data; boundary={BOUNDARY.decode()}")], body + b"--" + BOUNDARY + b"--\r\n"


def upload(server, *files, target="/", fields=(), **how):
    head, body = form(*files)
    return server.get(target, "POST", [*head, *fields], body, **how)


@pytest.fixture
def uploads(monkey, site):
    """Starts a server that accepts uploads to the folder `in`."""
    (site / "in").mkdir()

    def begin(keys="    Upload anyone\n", **how):
        sections = how.pop("sections", "")
        return monkey(plugins=["dirlisting", *how.pop("plugins", [])], sections=f"[DIRLISTING]\n{keys}{sections}", **how)

    return begin


def names(folder):
    return sorted(os.listdir(folder))


# ---- Uploads ----

@pytest.mark.parametrize("sections", ["", "    Listing off\n[ROUTES]\n    /* static\n    /* dirlisting-upload\n",
                                      "    Listing off\n[ROUTES]\n    /* dirlisting-upload\n    /* static\n"])
def test_missing_files_are_not_found(uploads, site, sections):
    server = uploads(sections=sections)
    for method, target in (("GET", "/none"), ("HEAD", "/none"), ("GET", "/in/none/"), ("GET", "/favicon.ico?a")):
        reply = server.get(target, method)
        assert reply.status == 404 and "Allow" not in reply, (method, target)
    assert server.get("/none", "PUT").status == 405
    assert set(server.get("/none", "OPTIONS").tokens("Allow")) == {"get", "head", "post", "options"}


def test_other_methods_of_an_exact_route_are_not_allowed(uploads):
    server = uploads(sections="    Listing off\n[ROUTES]\n    /form dirlisting-upload\n    /* static\n")
    reply = server.get("/form")
    assert reply.status == 405 and set(reply.tokens("Allow")) == {"post", "options"}
    assert server.get("/none").status == 404


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_files_are_stored_and_listed(uploads, site):
    server = uploads()
    assert "<form" in server.get("/in/").text
    large = os.urandom(300_000)
    reply = upload(server, ("a.txt", b"hello"), ("empty", b""), ("gr\xfc\xdfe \u65e5.bin", large), target="/in/")
    assert (reply.status, reply["Location"], reply.body) == (303, "./", b"")
    assert (site / "in/a.txt").read_bytes() == b"hello" and (site / "in/empty").read_bytes() == b"" and (site / "in/gr\xfc\xdfe \u65e5.bin").read_bytes() == large
    assert names(site / "in") == ["a.txt", "empty", "gr\xfc\xdfe \u65e5.bin"], "no temporary files"
    assert os.stat(site / "in/a.txt").st_mode & 0o777 == 0o644
    assert "a.txt" in server.get("/in/").text and server.get("/in/a.txt").text == "hello"


def test_form_is_shown_only_where_uploads_are_allowed(uploads, monkey):
    page = uploads().get("/in/")
    assert 'enctype="multipart/form-data"' in page.text and "form-action 'self'" in page["Content-Security-Policy"]
    for keys in ("", "    Upload users\n"):
        page = uploads(keys).get("/in/")
        assert "<form" not in page.text and "form-action 'none'" in page["Content-Security-Policy"]


def test_without_the_setting_nothing_is_accepted(uploads, site):
    reply = upload(uploads(""), ("a", b"1"), target="/in/")
    assert reply.status == 405 and names(site / "in") == []


def test_users_must_be_authenticated(uploads, site, tmp_path):
    add(tmp_path / "users", "ana", "secret")
    auth = f"[AUTH]\n    Location /in/\n    UserFile {tmp_path}/users\n"
    server = uploads("    Upload users\n", plugins=["auth"], sections=auth)
    (site / "open").mkdir()
    assert upload(server, ("a", b"1"), target="/in/").status == 401
    assert upload(server, ("a", b"1"), target="/open/").status == 403
    assert names(site / "in") == names(site / "open") == []
    assert "<form" not in server.get("/open/").text
    user = list(basic("ana", "secret").items())
    assert "<form" in server.get("/in/", fields=user).text
    assert upload(server, ("a", b"1"), target="/in/", fields=user).status == 303 and names(site / "in") == ["a"]


@pytest.mark.parametrize("index", ["index.html", "index.htm"])
def test_folders_with_an_index_file_accept_nothing(uploads, site, index):
    (site / "in" / index).write_text("page")
    (site / "in/secret").write_text("secret")
    server = uploads(server="MaxBodySize 1K")
    assert server.get("/in/").text == "page"
    for content in (b"1", bytes(100_000)):
        reply = upload(server, ("a", content), target="/in/")
        assert reply.status in (405, 413) and "secret" not in reply.text
    assert names(site / "in") == [index, "secret"]
    (site / "in/sub").mkdir()
    assert upload(server, ("a", bytes(100_000)), target="/in/sub/").status == 303


def test_own_index_names_count(uploads, site):
    (site / "in/start.php").write_text("page")
    (site / "sub/start.php").mkdir(parents=True)
    server = uploads(host="Index start.php")
    assert upload(server, ("a", b"1"), target="/in/").status == 405 and names(site / "in") == ["start.php"]
    assert upload(server, ("a", b"1"), target="/sub/").status == 303, "a folder is no index file"


def test_unreadable_index_file_counts(uploads, site, tmp_path):
    (tmp_path / "outside").write_text("outside")
    (site / "in/index.html").symlink_to(tmp_path / "outside")
    server = uploads(host="FollowSymlinks off")
    assert server.get("/in/").status == 403
    reply = upload(server, ("a", b"1"), target="/in/")
    assert reply.status == 405 and names(site / "in") == ["index.html"]


def test_rejected_client_gets_no_listing(uploads, site):
    (site / "in/secret").write_text("secret")
    reply = upload(uploads("    Upload users\n"), ("a", b"1"), target="/in/")
    assert (reply.status, reply.text) == (403, "Log in to upload files.")


@pytest.mark.parametrize("listing", ["", "    /in/* dirlisting\n"])
def test_own_upload_route_reveals_no_listing(uploads, site, listing):
    (site / "in/secret").write_text("secret")
    server = uploads("    Listing off\n    Upload anyone\n", sections=f"[ROUTES]\n    /in/* static\n{listing}    /in/* dirlisting-upload\n")
    assert ("secret" in server.get("/in/").text) == bool(listing)
    reply = upload(server, ("secret", b"1"), target="/in/")
    assert (reply.status, reply.text) == (409, "A file of this name exists already: secret")


@pytest.mark.parametrize("route, has_form", [("/in/* dirlisting-upload", True), ("/* Dirlisting-Upload", True), ("/in/sub/* dirlisting-upload", False), ("/o*/ dirlisting-upload", False), ("/x static", False)])
def test_form_is_shown_only_with_an_upload_route(uploads, route, has_form):
    server = uploads("    Listing off\n    Upload anyone\n", sections=f"[ROUTES]\n    /in/* dirlisting\n    {route}\n")
    page = server.get("/in/")
    assert ("<form" in page.text) == has_form and f"form-action '{'self' if has_form else 'none'}'" in page["Content-Security-Policy"]
    assert upload(server, ("a", b"1"), target="/in/").status == (303 if has_form else 405)


def test_form_is_not_shown_with_an_index_file(uploads, site):
    (site / "in/index.html").write_text("page")
    page = uploads(sections="[ROUTES]\n    /in/* dirlisting\n    /* static\n").get("/in/")
    assert "index.html" in page.text and "<form" not in page.text


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
@pytest.mark.parametrize("fields, status", [
    ([("Sec-Fetch-Site", "same-origin")], 303), ([("Sec-Fetch-Site", "cross-site")], 403), ([("Sec-Fetch-Site", "same-site")], 403), ([("Sec-Fetch-Site", "none")], 403),
    ([("Origin", "http://localhost")], 303), ([("Origin", "https://LOCALHOST")], 303), ([("Origin", "http://evil.example")], 403), ([("Origin", "null")], 403),
    ([("Origin", "http://localhost:81")], 403), ([("Origin", "http://localhost.evil.example")], 403), ([("Origin", "")], 403), ([("Referer", "http://localhost/in/?sort=name")], 303),
    ([("Referer", "http://evil.example/localhost")], 403), ([("Origin", "http://localhost"), ("Sec-Fetch-Site", "cross-site")], 403), ([], 303)])
def test_forms_of_other_sites_are_rejected(uploads, site, fields, status):
    reply = upload(uploads(), ("a", b"1"), target="/in/", fields=fields, host="localhost")
    assert reply.status == status and names(site / "in") == (["a"] if status == 303 else [])


@pytest.mark.parametrize("name", ["../a", "/etc/a", "x/a", "x\\a", "C:\\a", ".htaccess", ".", "..", "a\x01", "a\x7f", b"a\xff", "x" * 256, "\u65e5" * 86, "a%2F/b", b"a\x00b"])
def test_bad_names_are_rejected(uploads, site, name):
    reply = upload(uploads(), ("good", b"1"), (name, b"2"), target="/in/")
    assert reply.status in (400, 413) and names(site / "in") == [] and names(site) == ["in"]


def test_existing_files_stay(uploads, site, tmp_path):
    (tmp_path / "outside").write_text("outside")
    (site / "in/a").write_text("old")
    (site / "in/folder").mkdir()
    (site / "in/link").symlink_to(tmp_path / "outside")
    (site / "in/dangling").symlink_to(tmp_path / "new")
    server = uploads()
    for name in ("a", "folder", "link", "dangling"):
        reply = upload(server, (name, b"new"), target="/in/")
        assert reply.status == 409 and f"exists already: {name}" in reply.text and "<form" in reply.text
    assert upload(server, ("<b>&", b"1"), target="/in/").status == 303
    assert "exists already: &lt;b&gt;&amp;" in upload(server, ("<b>&", b"1"), target="/in/").text
    assert (site / "in/a").read_text() == "old" and (tmp_path / "outside").read_text() == "outside" and not (tmp_path / "new").exists()
    assert names(site / "in") == ["<b>&", "a", "dangling", "folder", "link"]


@pytest.mark.parametrize("keys", ["", "    Overwrite on\n"])
def test_rejected_upload_stores_none_of_its_files(uploads, site, keys):
    (site / "in/taken").mkdir()
    server = uploads("    Upload anyone\n" + keys)
    for _ in range(2):
        reply = upload(server, ("new", b"1"), ("taken", b"2"), ("last", b"3"), target="/in/")
        assert reply.status == 409 and "exists already: taken" in reply.text and names(site / "in") == ["taken"]
    assert upload(server, ("new", b"1"), ("last", b"3"), target="/in/").status == 303 and names(site / "in") == ["last", "new", "taken"]


def test_one_existing_file_rejects_all(uploads, site):
    (site / "in/b").write_text("old")
    server = uploads()
    for _ in range(2):
        reply = upload(server, ("a", b"1"), ("b", b"2"), target="/in/")
        assert reply.status == 409 and "exists already: b" in reply.text and names(site / "in") == ["b"]
    assert (site / "in/b").read_text() == "old"


def test_one_name_twice_stores_none(uploads, site):
    """The first file is published before the second one fails."""
    reply = upload(uploads(), ("first", b"0"), ("same", b"1"), ("same", b"2"), target="/in/")
    assert reply.status == 409 and "exists already: same" in reply.text and names(site / "in") == []


def test_overwrite_replaces_files_but_follows_no_links(uploads, site, tmp_path):
    (tmp_path / "outside").write_text("outside")
    (site / "in/a").write_text("old")
    (site / "in/folder").mkdir()
    (site / "in/link").symlink_to(tmp_path / "outside")
    server = uploads("    Upload anyone\n    Overwrite on\n")
    assert upload(server, ("a", b"new"), ("link", b"new"), target="/in/").status == 303
    assert upload(server, ("folder", b"new"), target="/in/").status == 409
    assert (site / "in/a").read_text() == (site / "in/link").read_text() == "new" and not (site / "in/link").is_symlink()
    assert (tmp_path / "outside").read_text() == "outside" and names(site / "in") == ["a", "folder", "link"]


def test_folders_outside_are_not_reached(uploads, site, tmp_path):
    (tmp_path / "outside").mkdir()
    (site / "link").symlink_to(tmp_path / "outside")
    (site / ".hidden").mkdir()
    site.add("file", "text")
    server = uploads(host="FollowSymlinks off")
    for target in ("/link/", "/.hidden/", "/in/../../outside/", "/in/..%2f..%2foutside/", "/none/", "/file", "/file/", "/in", "/in/a"):
        assert upload(server, ("a", b"1"), target=target).status in (400, 403, 404, 405), target
    assert names(tmp_path / "outside") == names(site / ".hidden") == names(site / "in") == []


def test_routes_choose_the_folders(uploads, site):
    (site / "out").mkdir()
    server = uploads("    Listing off\n    Upload anyone\n",
                     sections="[ROUTES]\n    /in/* static\n    /in/* dirlisting\n    /in/* dirlisting-upload\n    /* static\n")
    assert upload(server, ("a", b"1"), target="/in/").status == 303
    assert upload(server, ("a", b"1"), target="/out/").status == 405 and names(site / "out") == []


def test_scripts_get_the_reason_as_text(uploads, site):
    reply = upload(uploads(), (".a", b"1"), target="/in/", fields=[("Accept", "application/json")])
    assert reply.status == 400 and reply.text == "This name is not allowed: .a" and reply["Content-Type"].startswith("text/plain")


# ---- Hostile and broken requests ----

def test_limits(uploads, site):
    server = uploads("    Upload anyone\n    UploadMax 100K\n", server="MaxBodySize 1K")
    assert upload(server, ("a", bytes(90_000)), target="/in/").status == 303, "in place of MaxBodySize"
    assert upload(server, ("b", bytes(110_000)), target="/in/").status == 413
    server.err.wait_for(r"413: the body is larger than the 100K that this route of `dirlisting-upload` allows; raise UploadMax in \[DIRLISTING\]")
    assert upload(server, *[(f"f{i}", b"") for i in range(101)], target="/in/").status == 413
    assert names(site / "in") == ["a"]


@pytest.mark.parametrize("change", [lambda head, body: ([("Content-Type", "text/plain")], body), lambda head, body: (head, body[:-10]), lambda head, body: (head, b""),
                                    lambda head, body: ([("Content-Type", "multipart/form-data")], body), lambda head, body: (head, body.replace(b"filename=\"a\"", b"filename=\"a")),
                                    lambda head, body: (head, b"--" + BOUNDARY + b"--\r\n"), lambda head, body: (head, body.replace(b"; filename=\"a\"", b"")),
                                    lambda head, body: (head, body.replace(b"\r\n\r\n", b"\r\n" + b"X: " + b"y" * 20_000 + b"\r\n\r\n", 1)),
                                    lambda head, body: ([*head, ("Content-Encoding", "gzip")], body)])
def test_malformed_forms_store_nothing(uploads, site, change):
    head, body = change(*form(("a", b"content")))
    reply = uploads().get("/in/", "POST", head, body)
    assert reply.status in (400, 413, 415) and names(site / "in") == []


def test_disconnected_client_leaves_nothing(uploads, site):
    server = uploads(workers=1)
    head, body = form(("a", os.urandom(400_000)))
    with server.connect() as c:
        c.send(b"POST /in/ HTTP/1.1\r\nHost: localhost\r\n" + b"".join(f"{n}: {v}\r\n".encode() for n, v in head) + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:200_000])
    assert upload(server, ("b", b"1"), target="/in/").status == 303
    assert names(site / "in") == ["b"]


def test_disconnected_clients_free_the_queue(uploads, site):
    """Some of these uploads wait for others of the same client address when their clients disconnect."""
    server = uploads(workers=1)
    contents = {f"f{i}": bytes([i]) * 300_000 for i in range(12)}
    for name, content in contents.items():
        head, body = form((name, content))
        with server.connect() as c:
            c.send(b"POST /in/ HTTP/1.1\r\nHost: localhost\r\n" + b"".join(f"{n}: {v}\r\n".encode() for n, v in head) + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert upload(server, ("last", b"1"), target="/in/").status == 303
    server.stop()
    stored = names(site / "in")
    assert "last" in stored and all((site / "in" / name).read_bytes() == contents[name] for name in stored if name != "last")


def test_concurrent_uploads_of_one_name_store_one(uploads, site):
    server = uploads(workers=2)
    contents = [bytes([i]) * 200_000 for i in range(12)]
    statuses = []
    threads = [threading.Thread(target=lambda content=content: statuses.append(upload(server, ("same", content), target="/in/").status)) for content in contents]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(statuses) == [303] + [409] * 11 and (site / "in/same").read_bytes() in contents and names(site / "in") == ["same"]


def test_reload_during_an_upload_loses_nothing(uploads, site):
    server = uploads()
    head, body = form(("a", os.urandom(100_000)))
    with server.connect() as c:
        c.send(b"POST /in/ HTTP/1.1\r\nHost: localhost\r\n" + b"".join(f"{n}: {v}\r\n".encode() for n, v in head) + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:50_000])
        before = server.workers
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: set(server.workers) - set(before), "the new workers")
        assert c.send(body[50_000:]).read("POST").status == 303
    assert names(site / "in") == ["a"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
def test_full_disk_leaves_nothing(uploads, site):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", site / "in"], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine cannot mount a tmpfs")
    try:
        server = uploads()
        reply = upload(server, ("small", b"1" * 1000), ("large", b"2" * 200_000), target="/in/")
        assert reply.status == 507 and "no space for this file: large" in reply.text and names(site / "in") == []
        assert upload(server, ("small", b"1" * 1000), target="/in/").status == 303 and names(site / "in") == ["small"]
        server.stop()
    finally:
        subprocess.run(["umount", site / "in"], check=True)


def test_folder_without_permission(uploads, site):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (site / "in").chmod(0o555)
    try:
        reply = upload(uploads(), ("a", b"1"), target="/in/")
        assert reply.status == 403 and "may not write" in reply.text
    finally:
        (site / "in").chmod(0o755)
