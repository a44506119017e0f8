# SPDX-License-Identifier: Apache-2.0
"""The Makefile, with stand-ins for the scripts that it calls: what a target builds, and what it says."""
import shutil
import subprocess

import pytest

from monkey import ROOT


@pytest.fixture
def make(tmp_path):
    """Runs make, and answers what it and the scripts say."""
    if not shutil.which("make"):
        pytest.skip("no make here")
    shutil.copy(ROOT / "Makefile", tmp_path)
    scripts = tmp_path / "tools" / "dev"
    scripts.mkdir(parents=True)
    for name in ("need.sh", "build.sh"):
        (scripts / name).write_text(f'#!/bin/sh\necho "{name} $*"\n')
        (scripts / name).chmod(0o755)

    def run(*args):
        return subprocess.run(["make", "-s", *args], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    return run


def test_make_alone_builds_the_server_and_says_what_comes_next(make):
    said = make()
    assert "build.sh release server\n" in said
    assert "The program is build/release/monkey." in said
    for target in ("make run", "make install", "make help"):
        assert target in said


def test_make_alone_takes_another_preset(make):
    said = make("PRESET=libc")
    assert "build.sh libc server\n" in said and "build/libc/monkey" in said


def test_make_release_says_nothing_more(make):
    assert "Next:" not in make("release")


def test_make_help_lists_all_targets(make):
    said = make("help")
    assert "build.sh" not in said
    for target in ("all", "run", "test", "check", "install", "uninstall", "clean"):
        assert f"make {target} " in said
