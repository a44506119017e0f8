# SPDX-License-Identifier: Apache-2.0
"""tools/dev/build.sh with a stub for CMake: which compiler cache it uses."""
import shutil
import subprocess

import pytest

from monkey import ROOT

SEEN = ("CMAKE_C_COMPILER_LAUNCHER", "CCACHE_BASEDIR", "CCACHE_NOHASHDIR")


@pytest.fixture
def build(tmp_path):
    """Builds in a tree of its own, and returns the variables that CMake gets."""
    programs = tmp_path / "bin"
    (tmp_path / "tools/dev").mkdir(parents=True)
    programs.mkdir()
    shutil.copy(ROOT / "tools/dev/build.sh", tmp_path / "tools/dev")
    (tmp_path / "CMakePresets.json").write_text("{}")
    for name in ("bash", "dirname", "mkdir", "touch", "cat", "env"):
        (programs / name).symlink_to(shutil.which(name))
    put(programs / "cmake", f'env >"{tmp_path}/environment"')

    def run(*words, has_ccache=True, **environment):
        if has_ccache:
            put(programs / "ccache", "exit 1")
        subprocess.run([tmp_path / "tools/dev/build.sh", "dev", *words], env={"PATH": str(programs), **environment}, check=True)
        lines = (tmp_path / "environment").read_text().splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines) if name in SEEN}

    return run


def put(path, body):
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(0o755)


def test_build_without_ccache_runs_the_compiler_itself(build):
    assert build(has_ccache=False) == {}


def test_build_uses_ccache_if_it_is_installed(build, tmp_path):
    assert build() == {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(tmp_path)}


def test_clones_of_ci_share_ccache(build, tmp_path):
    assert build(CI="true") == {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(tmp_path), "CCACHE_NOHASHDIR": "1"}


def test_own_settings_of_ccache_remain(build):
    own = {"CMAKE_C_COMPILER_LAUNCHER": "", "CCACHE_BASEDIR": "/a", "CCACHE_NOHASHDIR": ""}
    assert build(CI="true", **own) == own
