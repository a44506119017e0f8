# SPDX-License-Identifier: Apache-2.0
"""Sandbox exceptions for plugins: reading and writing outside the served folders, name resolution, and the system's trusted
certificates. The plugin tests/plugins/api/sandbox_exceptions.c tries the operation that a request names.
"""
import errno
import os
import pwd
import re
import subprocess
import tempfile

import pytest

from monkey import PROGRAM

PLUGIN = PROGRAM.parent / "tests" / "plugins" / "monkey-sandbox_exceptions.so"
ROUTES = "[ROUTES]\n    /* sandbox-exceptions\n"
DENIED = str(errno.EACCES)
ANCHORS = "/etc/ssl/certs"

pytestmark = [pytest.mark.skipif(not PLUGIN.exists(), reason="the plugins of the tests are built with the program in build/dev"),
              pytest.mark.processes("it has no sandbox")]


@pytest.fixture
def granted(monkey, tmp_path):
    if b"Landlock  yes" not in subprocess.check_output([PROGRAM, "-V"]):
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").write_text("outside")

    def start(keys="", server=""):
        top = "[SANDBOX_EXCEPTIONS]\n" + "".join(f"    {key}\n" for key in keys.splitlines())
        it = monkey(plugins=[PLUGIN], top=top, server=server, sections=ROUTES)
        return it, lambda word, text: it.get(f"/{word}?{text}").text

    return start


def test_sandbox_denies_everything_without_a_grant(granted, tmp_path):
    _, ask = granted()
    assert ask("create", tmp_path / "inside/file") == DENIED
    assert ask("mkdir", tmp_path / "inside/folder") == DENIED
    assert ask("read", tmp_path / "outside") == DENIED
    assert ask("read", ANCHORS) == DENIED
    assert ask("read", "/etc/hosts") == DENIED
    assert ask("resolve", "localhost") != "0"


def test_sandbox_grant_allows_writing_below_folder(granted, tmp_path):
    server, ask = granted("Write inside")
    inside = tmp_path / "inside"
    assert ask("create", inside / "file") == "0"
    assert ask("mkdir", inside / "folder") == "0"
    assert ask("create", inside / "folder/deep") == "0"
    assert ask("rename", inside / "file") == "0"
    assert sorted(p.name for p in inside.rglob("*")) == ["deep", "file.new", "folder"]
    assert ask("read", inside) == "0"
    for name in ("folder/deep", "folder", "file.new"):
        assert ask("remove", inside / name) == "0"
    assert list(inside.iterdir()) == []
    assert ask("create", tmp_path / "beside") == DENIED
    assert ask("create", tmp_path / "outside") == DENIED
    assert ask("read", tmp_path / "outside") == DENIED
    assert ask("rename", tmp_path / "outside") == DENIED
    assert ask("remove", tmp_path / "outside") == DENIED
    assert ask("create", tmp_path / "site/file") == DENIED
    assert "cannot" not in server.err.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
def test_sandbox_grant_does_not_override_permissions(granted, tmp_path):
    with tempfile.TemporaryDirectory() as folder:  # other users cannot enter tmp_path
        os.chmod(folder, 0o755)
        server, ask = granted(f"Write {folder}", "User nobody")
        assert ask("create", f"{folder}/file") == DENIED
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
        assert ask("create", f"{folder}/file") == "0"
        assert os.stat(f"{folder}/file").st_uid == pwd.getpwnam("nobody").pw_uid
        assert "cannot write" not in server.err.text


def test_sandbox_grant_for_missing_folder_is_a_warning(granted, tmp_path):
    server, ask = granted("Write none")
    server.err.wait_for(r"workers cannot write below \S+/none: No such file or directory")
    assert ask("mkdir", tmp_path / "none") == DENIED


def test_sandbox_grant_allows_name_resolution(granted):
    _, ask = granted("Names on")
    assert ask("resolve", "localhost") == "0"
    assert ask("read", "/etc/hosts") == "0"
    assert ask("read", "/etc/passwd") == DENIED
    assert ask("read", ANCHORS) == DENIED


@pytest.mark.skipif(not os.path.isdir(ANCHORS), reason="this system keeps them elsewhere")
def test_sandbox_grant_allows_trusted_certificates(granted):
    _, ask = granted("Trust on")
    assert ask("read", ANCHORS) == "0"
    for file in os.listdir(ANCHORS)[:20]:
        assert ask("read", f"{ANCHORS}/{file}") == "0"
    assert ask("read", "/etc/ssl/private") == DENIED
    assert ask("read", "/etc/hosts") == DENIED


def test_sandbox_grants_appear_in_explain_and_log(granted, run, tmp_path):
    server, _ = granted("Read outside\nWrite inside\nNames on\nTrust on")
    said = f"read {tmp_path}/outside, write below {tmp_path}/inside, resolve names, read trust anchors"
    printed = run("-T", "-c", server.config).out
    assert f"    Load {PLUGIN}\n    # for it, workers may {said}\n" in printed
    (tmp_path / "again.conf").write_text(printed)
    assert run("-T", "-c", tmp_path / "again.conf").out == printed
    explained = run("explain", "GET", "/", "-c", server.config).out
    assert re.search(rf"^sandbox   for sandbox-exceptions, workers may {said}$", explained, re.MULTILINE), explained


def test_sandbox_grants_are_not_shown_without_sandbox(granted, run):
    for keys, server in (("", ""), ("Names on", "Sandbox off")):
        it, ask = granted(keys, server)
        assert "workers may" not in run("-T", "-c", it.config).out
        assert not re.search("^sandbox ", run("explain", "GET", "/", "-c", it.config).out, re.MULTILINE)
        it.stop()
