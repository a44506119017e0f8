# SPDX-License-Identifier: Apache-2.0
"""tools/dev/bare.sh, as far as it goes without a chroot of some hundred megabytes: what it asks for, and what it refuses."""
import os
import shutil
import subprocess

import pytest

from monkey import ROOT

BARE = ROOT / "tools" / "dev" / "bare.sh"


def bare(*args, path=None):
    return subprocess.run(["bash", BARE, *args], capture_output=True, text=True, timeout=30, check=False,
                          env=os.environ | ({"PATH": path} if path else {}))


def test_help_names_steps_and_options():
    done = bare("--help")
    assert done.returncode == 2
    for word in ("`run`", "`libc`", "`check`", "--mirror", "--suite", "--folder", "--pass", "--copy"):
        assert word in done.stderr, word


@pytest.mark.parametrize("args", [("walk",), ("--mirror",), ("--nope", "run")])
def test_wrong_usage(args):
    assert bare(*args).returncode == 2


def test_a_missing_program_is_named(tmp_path):
    for name in ("bash", "dirname", "id", "git", "unshare"):
        (tmp_path / name).symlink_to(shutil.which(name) or "/bin/true")  # it only looks whether git is there
    (tmp_path / "id").unlink()
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "id").chmod(0o755)
    done = bare("run", path=str(tmp_path))
    assert done.returncode == 1 and "there is no debootstrap here" in done.stderr


def test_a_machine_without_apt_must_name_a_mirror(tmp_path):
    for name in ("bash", "dirname", "sed", "head", "git", "unshare", "debootstrap"):
        (tmp_path / name).symlink_to(shutil.which(name) or "/bin/true")
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "id").chmod(0o755)
    done = bare("run", path=str(tmp_path))
    assert done.returncode == 1 and "name one with --mirror" in done.stderr
