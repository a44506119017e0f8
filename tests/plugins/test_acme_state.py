# SPDX-License-Identifier: Apache-2.0
"""The state folder of the acme plugin: its owner, a change of the owner, and the cleanup after a failed start."""
import os
import pwd
import re
import signal
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
    def run(state="lib/monkey/acme", user="User nobody", **how):
        return monkey(root="site", server=user, host="ServerName example.org", plugins=["acme"],
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
    assert len(names) == 9
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
    server.err.wait_for(rf"acme: workers cannot access the folder {folder}/lib/monkey/acme: Permission denied; the folder or one above it does not admit them")
    assert "could not be started" not in server.err.text


def test_acme_owner_is_repaired_at_next_start(start, folder):
    """An earlier version left this state, which is incomplete and owned by root."""
    state = folder / "lib/monkey/acme"
    (state / "http-01").mkdir(parents=True, mode=0o700)
    state.chmod(0o700)
    server = start(wrapper=capabilities())
    wait_until(lambda: set(owners(state).values()) == {NOBODY.pw_uid}, "the owner")
    has_run(server)


AS_NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


@pytest.mark.parametrize("wrapper", [[], AS_NOBODY], ids=["root", "nobody"])
def test_acme_without_user_accepts_its_own_folder_again(start, folder, tmp_path, wrapper):
    """The plugin reloads the server after each new certificate."""
    if wrapper:
        if subprocess.run([*wrapper, "test", "-x", str(PROGRAM)], check=False).returncode:
            pytest.skip("nobody cannot execute the program")
        folder.chmod(0o777)
        for path in (tmp_path, *list(tmp_path.parents)[:3]):
            path.chmod(path.stat().st_mode | 0o055)
    server = start("acme", user="", wrapper=wrapper)
    has_run(server)
    assert set(owners(folder / "acme").values()) == {NOBODY.pw_uid if wrapper else 0}
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert "StateFolder" not in server.err.text and "belongs to" not in server.err.text


def rejected(start, state):
    server = start(state, expect_start=False)
    server.exit_code = 3
    server.wait()
    return server.err.text


@pytest.mark.parametrize("owner", ["root", "nobody"])
def test_acme_link_of_another_user_changes_no_owner(start, folder, owner):
    """The workers' user could exchange a folder in its own folder for a link to one of root, and would become its owner."""
    (folder / "victim/http-01").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib/acme").symlink_to(folder / "victim")
    os.chown(folder / "lib/acme", pwd.getpwnam(owner).pw_uid, -1, follow_symlinks=False)
    if owner == "root":
        has_run(start("lib/acme"))
        assert set(owners(folder / "victim").values()) == {NOBODY.pw_uid}
        return
    assert "another user can replace it or a folder above it" in rejected(start, "lib/acme")
    assert set(owners(folder / "victim").values()) == {0}


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o1777])
@pytest.mark.parametrize("owner", ["root", "nobody"])
def test_acme_folder_of_root_below_a_folder_of_another_user(start, folder, owner, mode):
    """In a folder with the sticky bit, such as /tmp, other users cannot replace the state folder."""
    (folder / "lib/acme").mkdir(parents=True)
    (folder / "lib").chmod(mode)
    os.chown(folder / "lib", pwd.getpwnam(owner).pw_uid, -1)
    if owner == "root" and mode != 0o777:
        has_run(start("lib/acme"))
        assert (folder / "lib/acme").stat().st_uid == NOBODY.pw_uid
        return
    assert "its owner is not changed" in rejected(start, "lib/acme")
    assert (folder / "lib/acme").stat().st_uid == 0


def test_acme_creates_folder_below_a_folder_of_the_workers_user(start, folder):
    (folder / "lib").mkdir()
    os.chown(folder / "lib", NOBODY.pw_uid, -1)
    has_run(start("lib/acme"))
    assert set(owners(folder / "lib/acme").values()) == {NOBODY.pw_uid}


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_acme_folder_that_other_users_can_write_to_is_rejected(start, folder, mode):
    (folder / "acme").mkdir()
    (folder / "acme").chmod(mode)
    os.chown(folder / "acme", NOBODY.pw_uid, -1)
    text = rejected(start, "acme")
    assert f"other users can write to the folder {folder / 'acme'}" in text and f"`chmod go-w {folder / 'acme'}`" in text
