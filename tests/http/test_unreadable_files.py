# SPDX-License-Identifier: Apache-2.0
"""Files that the workers may not read: the client gets 403, and the error log contains the reason."""
import os
import socket
import stat

import pytest

pytestmark = pytest.mark.over("h1", "h2", why="what a file allows does not depend on what is spoken")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to a user with fewer rights")


def warnings(server):
    return [line for line in server.err.text.splitlines() if " 403: " in line]


@pytest.fixture
def files(site):
    """Makes the test's folders accessible to everyone, so that only the file itself is inaccessible."""
    for path in (site.path, *site.path.parents):
        if path.stat().st_uid == os.geteuid() and str(path).startswith("/tmp/"):
            path.chmod(stat.S_IMODE(path.stat().st_mode) | 0o711)
    site.add("open", "open", mode=0o644)
    site.add("index.html", "index", mode=0o644)
    return site


@as_root
@pytest.mark.processes("a library has one user")
@pytest.mark.parametrize("target, closed", [("/closed", "closed"), ("/folder/file", "folder"), ("/closed/", "closed")])
def test_file_without_permission_is_logged(monkey, files, target, closed):
    files.add("folder/file", "file")
    files.add("closed" if closed != "closed" or target == "/closed" else "closed/index.html", "closed", mode=0o600)
    if target != "/closed":
        (files / closed).chmod(0o700)
    server = monkey(server="User nobody")
    assert server.get(target).status == 403
    line = server.err.wait_for(r"\[warn\].* 403: .*")[0]
    assert f"403: {target} beneath {files}: Permission denied; let the workers' user read the file" in line
    assert server.get("/open").text == "open"


@as_root
@pytest.mark.processes("a library has one user")
def test_script_without_permission_is_logged(monkey, files):
    files.add("a.cgi", "#!/bin/sh\n", mode=0o700)
    (files / "sub").mkdir(mode=0o700)
    server = monkey(server="User nobody", plugins=["cgi"], sections="[ROUTES]\n    *.cgi cgi\n")
    assert server.get("/sub/b.cgi").status == 403
    server.err.wait_for(rf"403: the script /sub/b.cgi beneath {files}: Permission denied")


def test_symlink_and_socket_are_logged(monkey, files):
    (files / "link").symlink_to("/etc/hostname")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(files / "socket"))
        server = monkey(host="FollowSymlinks off")
        assert server.get("/link").status == 403
        server.err.wait_for("403: /link beneath .*: a symbolic link that `FollowSymlinks` does not allow$")


def test_thousand_refusals_are_rate_limited_in_log(monkey, files):
    (files / "link").symlink_to("/etc/hostname")
    server = monkey(host="FollowSymlinks off", workers=1)
    with server.connect() as c:
        for _ in range(1000):
            assert c.get("/link").status == 403
    server.stop()
    assert 1 <= len(warnings(server)) <= 60  # at most one warning per second


def test_dot_files_and_folders_are_not_logged(monkey, files):
    files.add(".env", "secret")
    (files / "empty").mkdir()
    server = monkey()
    assert server.get("/.env").status == server.get("/empty/").status == 403
    server.stop()
    assert not warnings(server)
