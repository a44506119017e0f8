# SPDX-License-Identifier: Apache-2.0
"""tools/dev/test.sh, which `make check` runs, in a tree of stub programs."""
import os
import shutil
import subprocess

import pytest

from monkey import ROOT

STAND_INS = ("build", "venv", "h2spec", "pebble", "need", "fuzz")


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tools/dev").mkdir(parents=True)
    for name in STAND_INS:
        put(tmp_path / f"tools/dev/{name}.sh", f'echo "$@" >> {tmp_path}/{name}.args')
    return tmp_path


def put(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def run(tree, *arguments, **environment):
    return subprocess.run([ROOT / "tools/dev/test.sh", *arguments], capture_output=True, text=True, timeout=50, check=False,
                          env=os.environ | {"MONKEY_TEST_TREE": str(tree)} | environment)


def test_build_prepares_everything_the_tests_need(tree):
    assert run(tree, "build").returncode == 0
    assert (tree / "build.args").read_text().splitlines()[:2] == ["dev", "release -DMK_WERROR=ON server lib test_handlers"]
    assert (tree / "venv.args").read_text().splitlines() == [
        "build/venv tests/requirements.txt", "build/benchmark-venv tests/benchmark/requirements.txt"]
    assert (tree / "h2spec.args").read_text() == "build/h2spec\n"
    assert (tree / "pebble.args").read_text() == "build/pebble\n"


def test_server_build_skips_the_requirements_of_the_benchmark_tools(tree):
    assert run(tree, "build", "server").returncode == 0
    assert (tree / "venv.args").read_text() == "build/venv tests/requirements.txt\n"


@pytest.mark.parametrize("name", ["build", "venv", "h2spec", "pebble"])
def test_failed_step_fails_the_build(tree, name):
    """The build fails even if the failing script is the last one to finish."""
    others = [tree / f"{other}.args" for other in ("build", "venv", "h2spec", "pebble") if other != name]
    waits = " ".join(f"until [ -e {other} ]; do sleep 0.01; done;" for other in others)
    put(tree / f"tools/dev/{name}.sh", f"{waits} exit 1")
    assert run(tree, "build").returncode == 1


def test_pytest_may_write_bytecode(tree):
    put(tree / "build/venv/bin/python", f"env > {tree}/environment")
    put(tree / "bin/ctest", "true")
    done = run(tree, "server", PATH=f"{tree}/bin:{os.environ['PATH']}", PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 0, done.stderr
    assert "PYTHONDONTWRITEBYTECODE" not in (tree / "environment").read_text()


def test_build_collects_tests_to_compile_their_bytecode(tree):
    put(tree / "build/venv/bin/python", f'echo "$@" >> {tree}/pytest.args; exit 1')
    assert run(tree, "build").returncode == 0
    assert "--collect-only" in (tree / "pytest.args").read_text()


@pytest.fixture
def testers(tree):
    """testers(name) makes the tests of that kind fail."""
    def make(fails=None):
        (tree / "build/fuzz").mkdir(parents=True)
        put(tree / "build/venv/bin/python", f"[ {fails} != pytest ]")
        put(tree / "build/benchmark-venv/bin/python", f"[ {fails} != benchmark ]")
        put(tree / "bin/ctest", f'case "$*" in *"-L benchmark"*) echo the tools; [ {fails} != ctest-benchmark ];; *) echo the units; [ {fails} != ctest ];; esac')
        put(tree / "tools/dev/fuzz.sh", f"echo the inputs; [ {fails} != fuzz ]")
        return {"PATH": f"{tree}/bin:{os.environ['PATH']}"}
    return make


@pytest.mark.parametrize("name", ["fuzz", "pytest", "ctest", "benchmark", "ctest-benchmark"])
def test_all_suites_run_and_the_summary_names_the_failed_one(tree, testers, name):
    done = run(tree, "all", **testers(name))
    assert (done.returncode, done.stderr) == (1, f"failed: {name}\n")
    assert done.stdout == "the inputs\nthe units\nthe tools\n"


@pytest.mark.parametrize("suite, message", [("server", "the inputs\nthe units\n"), ("benchmark", "the tools\n")])
def test_server_and_benchmark_suites_run_separately(tree, testers, suite, message):
    other = {"server": "benchmark", "benchmark": "pytest"}[suite]
    done = run(tree, suite, **testers(other))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", message)


@pytest.mark.parametrize("go, reason", [(None, "go is not installed"), ("echo no such host >&2; exit 1", "no such host")])
def test_pebble_is_skipped_with_the_reason(tmp_path, go, reason):
    """Without Go, or without its module proxy, the check continues."""
    for name in ("bash", "env", "mkdir", "tail", "rm", "sh"):
        (tmp_path / "bin" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    script = (ROOT / "tools/dev/pebble.sh").read_text().replace(":/usr/local/go/bin", "")
    put(tmp_path / "pebble.sh", "")
    (tmp_path / "pebble.sh").write_text(script)
    if go:
        put(tmp_path / "bin/go", go)
    done = subprocess.run([tmp_path / "pebble.sh", tmp_path / "out"], env={"PATH": str(tmp_path / "bin")}, capture_output=True, text=True,
                          timeout=50, check=False)
    assert done.returncode == 0 and "continuing without Pebble" in done.stderr and reason in done.stderr
    assert not (tmp_path / "out/pebble").exists()


def test_pebble_is_built_once(tmp_path):
    for name in ("pebble", "pebble-challtestsrv"):
        put(tmp_path / name, "")
    done = subprocess.run([ROOT / "tools/dev/pebble.sh", tmp_path], capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (0, "") and not (tmp_path / "log").exists()
