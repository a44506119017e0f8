# SPDX-License-Identifier: Apache-2.0
"""tools/dev/fuzz.sh with stubs for the fuzz targets: each target gets its time, and a crashing target is reported."""
import os
import subprocess
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "tools" / "dev" / "fuzz.sh"


@pytest.fixture
def build(tmp_path):
    (tmp_path / "tests" / "fuzz").mkdir(parents=True)
    return tmp_path


def target(build, name, body):
    path = build / "tests" / "fuzz" / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def fuzz(build, *names):
    return subprocess.run([FUZZ, build, "7", *names], capture_output=True, text=True, timeout=30, check=False)


def test_each_target_runs_for_its_time(build):
    """libFuzzer with -max_total_time=6 stops after 7 seconds."""
    made = build / "tests" / "fuzz" / "seeds" / "fuzz_http_b"
    made.mkdir(parents=True)
    for name in ("fuzz_http_a", "fuzz_http_b"):
        target(build, name, f'echo "$@" > {build}/{name}.args')
    done = fuzz(build)
    assert done.returncode == 0, done.stderr
    assert "2 targets, nothing found" in done.stdout
    for name in ("fuzz_http_a", "fuzz_http_b"):
        args = (build / f"{name}.args").read_text()
        assert "-max_total_time=6" in args and f"{build}/corpus/{name}" in args
        assert (str(made) in args) == (name == "fuzz_http_b"), "seeds that the build makes"


def test_crashed_target_fails_the_run_and_the_others_still_run(build):
    target(build, "fuzz_http_a", "echo '==1==ERROR: AddressSanitizer: bad' >&2; exit 77")
    target(build, "fuzz_http_b", "touch ran")
    done = subprocess.run([FUZZ, build, "1"], capture_output=True, text=True, cwd=build, check=False)
    assert done.returncode == 1
    assert "AddressSanitizer: bad" in done.stdout and "broken: fuzz_http_a" in done.stdout
    assert (build / "ran").exists()


def test_named_targets_run_alone(build):
    target(build, "fuzz_http_a", "exit 77")
    target(build, "fuzz_http_b", "exit 0")
    assert fuzz(build, "fuzz_http_b").returncode == 0


def test_missing_targets_fail_the_run(build):
    assert fuzz(build).returncode == 1


def test_jobs_run_targets_in_parallel(build):
    for name, other in (("a", "b"), ("b", "a")):  # each target waits for the other
        target(build, f"fuzz_http_{name}", f"touch {build}/{name}.here; until [ -e {build}/{other}.here ]; do sleep 0.05; done")
    done = subprocess.run([FUZZ, build, "1"], capture_output=True, text=True, env={**os.environ, "JOBS": "2"}, timeout=30,
                          check=False)
    assert done.returncode == 0 and "2 targets, nothing found" in done.stdout
