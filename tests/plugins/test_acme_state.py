# SPDX-License-Identifier: Apache-2.0
"""The state folder of the acme plugin: its owner, a change of the owner, and the cleanup after a failed start."""
import os
import pwd
import re
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from monkey import ENVIRONMENT, NOT_STARTED, PROGRAM, ROOT
from proc import status, wait_until

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders to another user")]
NOBODY = pwd.getpwnam("nobody")
UNIT = ROOT / "packaging" / "monkey.service.in"


def capabilities():
    """Returns a command prefix with the capabilities that the shipped systemd unit grants the server."""
    line = re.search(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(), re.MULTILINE)[1]
    kept = {name.removeprefix("CAP_").lower() for name in line.split()}
    return ["setpriv", "--bounding-set", "-all," + ",".join(f"+{name}" for name in sorted(kept))]


@pytest.fixture
def folder(tmp_path):
    """A folder that other users can enter: pytest restricts its own folders whenever one of its processes starts."""
    (tmp_path / "site").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="monkey-acme-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.fixture
def start(monkey, folder):
    def run(state="lib/monkey/acme", **how):
        return monkey(root="site", server="User nobody", host="ServerName example.org", plugins=["acme"],
                      listen=["127.0.0.1:0 tls"], top=f"""
[ACME]
    AgreeToTerms on
    Directory https://127.0.0.1:9/directory
    StateFolder {folder / state}
""", **how)
    return run


def owners(folder):
    return {path.relative_to(folder.parent).as_posix(): path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def has_run(server):
    """Waits until the helper has started and failed to reach the CA."""
    server.err.wait_for(r"acme: .*(127\.0\.0\.1|example\.org)")
    assert "workers cannot access" not in server.err.text


def test_acme_works_with_capabilities_of_shipped_unit(start, folder):
    server = start(wrapper=capabilities())
    assert status(server.pid)["CapBnd"] == status(server.pid)["CapPrm"]
    assert set(owners(folder / "lib/monkey/acme").values()) == {NOBODY.pw_uid}
    has_run(server)


def test_acme_parent_folders_ignore_umask(start, folder):
    """The shipped unit sets UMask=0027."""
    server = start(popen={"umask": 0o027})
    assert stat.S_IMODE((folder / "lib").stat().st_mode) == stat.S_IMODE((folder / "lib/monkey").stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "lib/monkey/acme").stat().st_mode) == 0o700
    has_run(server)


@pytest.mark.parametrize("there", ["", "lib", "lib/monkey"])
def test_acme_failed_start_leaves_nothing_behind(start, folder, there):
    (folder / there).mkdir(parents=True, exist_ok=True)
    before = sorted(folder.rglob("*"))
    server = start(wrapper=["setpriv", "--bounding-set", "-chown"], expect_start=False)
    server.exit_code = NOT_STARTED
    server.wait()
    assert "cannot change the owner of the folder" in server.err.text
    assert "install -d -m 700 -o nobody" in server.err.text
    assert sorted(folder.rglob("*")) == before


def test_acme_folder_of_root_is_chowned_with_its_files(start, folder):
    state = folder / "lib/monkey/acme"
    for name in ("http-01", "certificates"):
        (state / name).mkdir(parents=True)
    state.chmod(0o700)
    (state / "account.key").write_text("key")
    (state / "certificates" / "old.pem").write_text("old")
    outside = folder / "outside"
    outside.write_text("root's")
    (state / "certificates" / "link").symlink_to(outside)
    os.link(outside, state / "certificates" / "second-name")
    has_run(start())
    of = owners(state)
    assert of["acme"] == of["acme/account.key"] == of["acme/certificates/old.pem"] == of["acme/http-01"] == NOBODY.pw_uid
    assert outside.stat().st_uid == 0 == of["acme/certificates/second-name"] == of["acme/certificates/link"]


@pytest.mark.parametrize("name", ["monkey.conf", ".hidden", "private", "lock.old"])
def test_acme_folder_with_foreign_files_is_not_chowned(start, folder, name):
    """If the folder were /etc/monkey, the chown would give the configuration to the workers."""
    (folder / "shared").mkdir()
    (folder / "shared" / name).write_text("root's")
    before = owners(folder / "shared")
    server = start("shared", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert f"the folder {folder / 'shared'} contains {name}, which acme did not create" in server.err.text
    assert owners(folder / "shared") == before
    done = subprocess.run([PROGRAM, "-t", "-c", server.config], capture_output=True, text=True, env=os.environ | ENVIRONMENT)
    assert done.returncode == 3 and "which acme did not create" in done.stderr


def test_acme_every_state_file_is_chowned(start, folder):
    header = (ROOT / "plugins/acme/helper/store.h").read_text()
    names = re.findall(r'^#define ACME_\w+ +"([^"]+)"', header, re.MULTILINE)
    assert len(names) == 7
    for name in [*names, "lock", ".new-account.key"]:
        if "." in name or name == "lock":
            (folder / name).write_text("")
        else:
            (folder / name).mkdir()
    start(".")
    assert {owners(folder)[f"{folder.name}/{name}"] for name in names} == {NOBODY.pw_uid}


@pytest.mark.parametrize("inner", ["", "http-01", "tls-alpn-01"])
def test_acme_folder_of_another_user_is_rejected_by_check(start, folder, inner):
    state = folder / "acme"
    state.mkdir(mode=0o700)
    os.chown(state, *((1, 1) if not inner else (NOBODY.pw_uid, NOBODY.pw_gid)))
    if inner:
        (state / inner).mkdir(mode=0o700)
    server = start("acme", expect_start=False)
    server.exit_code = 3
    server.wait()
    owner = "root" if inner else pwd.getpwuid(1).pw_name
    assert f"the folder {state / inner if inner else state} belongs to {owner}, but workers run as nobody" in server.err.text
    assert f"`chown -R nobody {state}`" in server.err.text
    done = subprocess.run([PROGRAM, "-t", "-c", server.config], capture_output=True, text=True, env=os.environ | ENVIRONMENT)
    assert done.returncode == 3 and "belongs to" in done.stderr


def test_acme_path_that_is_a_file_is_rejected(start, folder):
    (folder / "acme").write_text("")
    server = start("acme", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "acme is not a folder" in server.err.text


def test_acme_unreachable_folder_is_warned_of(start, folder):
    (folder / "lib").mkdir(mode=0o700)
    server = start()
    assert f"workers run as nobody and cannot search the folder {folder / 'lib'}" in server.err.text
    server.err.wait_for(rf"acme: workers cannot access the folder {folder}/lib/monkey/acme: Permission denied")
    assert "could not be started" not in server.err.text


def test_acme_owner_is_repaired_at_next_start(start, folder):
    """An earlier version left this state, which is incomplete and owned by root."""
    state = folder / "lib/monkey/acme"
    (state / "http-01").mkdir(parents=True, mode=0o700)
    state.chmod(0o700)
    server = start(wrapper=capabilities())
    wait_until(lambda: set(owners(state).values()) == {NOBODY.pw_uid}, "the owner")
    has_run(server)
