# SPDX-License-Identifier: Apache-2.0
"""tools/dev/tidy.sh and format.sh, in a tree of stub programs."""
import os
import shutil
import subprocess

import pytest

from monkey import ROOT

STEPS = {"tools/dev/format.sh": "format", "tools/dev/build.sh": "configuration", "tools/docgen/api.py": "headers",
         "tools/dev/abi.py": "abi"}


@pytest.fixture
def tree(tmp_path):
    for name in STEPS:
        put(tmp_path / name, f'echo "{name} $*" >> {tmp_path}/calls')
    put(tmp_path / "python", 'script=$1; shift; exec "$script" "$@"')
    return tmp_path


def put(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def run(tree, script="tidy.sh", **environment):
    return subprocess.run([ROOT / "tools/dev" / script], capture_output=True, text=True, timeout=50, check=False,
                          env=os.environ | {"MONKEY_TEST_TREE": str(tree), "PYTHON": str(tree / "python")} | environment)


def test_tidy_runs_every_step(tree):
    assert run(tree).returncode == 0
    assert (tree / "calls").read_text().splitlines() == [
        "tools/dev/format.sh ", "tools/dev/build.sh release docs", "tools/docgen/api.py ", "tools/dev/abi.py --update"]


def test_tidy_prefers_the_development_build(tree):
    put(tree / "build/dev/build.ninja", "")
    assert run(tree).returncode == 0
    assert "tools/dev/build.sh dev docs\n" in (tree / "calls").read_text()


@pytest.mark.parametrize("name", STEPS)
def test_failed_step_does_not_stop_the_others(tree, name):
    put(tree / name, "exit 1")
    done = run(tree)
    assert (done.returncode, done.stderr) == (1, f"tidy: failed: {STEPS[name]}\n")
    assert len((tree / "calls").read_text().splitlines()) == 3


@pytest.mark.parametrize("version, code", [("13.0.1", 1), ("14.0.6", 0), ("Ubuntu clang-format version 18.1.3", 0)])
def test_format_accepts_clang_format_14_and_later(tree, version, code):
    for name in ("src", "include", "plugins", "duda", "tests", "examples"):
        (tree / name).mkdir()
    put(tree / "src/a.c", "")
    text = version if "version" in version else f"clang-format version {version}"
    put(tree / "bin/clang-format", f'[ "$1" != --version ] || {{ echo "{text}"; exit; }}; echo "$@" >> {tree}/formatted')
    for tool in ("bash", "dirname", "sed", "find", "xargs"):
        (tree / "bin" / tool).symlink_to(shutil.which(tool))
    done = run(tree, "format.sh", PATH=str(tree / "bin"))
    assert done.returncode == code, done.stderr
    assert (tree / "formatted").exists() == (code == 0)
