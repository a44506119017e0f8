# SPDX-License-Identifier: Apache-2.0
"""The Makefile with stubs for the scripts that it calls: what each target builds and prints."""
import shutil
import subprocess

import pytest

from monkey import ROOT


@pytest.fixture
def make(tmp_path):
    """Runs make and returns the output of make and the scripts."""
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


def test_make_builds_the_server_and_names_the_next_steps(make):
    output = make()
    assert "build.sh release server\n" in output
    assert "The program is build/release/monkey." in output
    for target in ("make run", "make install", "make help"):
        assert target in output


def test_make_accepts_another_preset(make):
    output = make("PRESET=libc")
    assert "build.sh libc server\n" in output and "build/libc/monkey" in output


def test_make_release_prints_no_next_steps(make):
    assert "Next:" not in make("release")


def test_make_help_lists_all_targets(make):
    output = make("help")
    assert "build.sh" not in output
    for target in ("all", "run", "test", "check", "install", "uninstall", "clean"):
        assert f"make {target} " in output
