# SPDX-License-Identifier: Apache-2.0
"""tools/dev/bare.sh, without its chroot of several hundred megabytes: required programs, rejected arguments,
and log checks."""
import os
import shutil
import subprocess

import pytest

from monkey import ROOT

BARE = ROOT / "tools" / "dev" / "bare.sh"
RUN_LOG = ROOT / "tools" / "dev" / "run_log.sh"


def bare(*args, path=None):
    return subprocess.run(["bash", BARE, *args], capture_output=True, text=True, timeout=30, check=False,
                          env=os.environ | ({"PATH": path} if path else {}))


def test_help_names_steps_and_options():
    done = bare("--help")
    assert done.returncode == 2
    for word in ("`run`", "`libc`", "`check`", "--mirror", "--suite", "--folder", "--pass", "--copy"):
        assert word in done.stderr, word


@pytest.mark.parametrize("args", [("walk",), ("--mirror",), ("--nope", "run")])
def test_wrong_arguments_are_rejected(args):
    assert bare(*args).returncode == 2


def test_missing_program_is_named(tmp_path):
    for name in ("bash", "dirname", "id", "git", "unshare"):
        (tmp_path / name).symlink_to(shutil.which(name) or "/bin/true")  # bare.sh only checks that git exists
    (tmp_path / "id").unlink()
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "id").chmod(0o755)
    done = bare("run", path=str(tmp_path))
    assert done.returncode == 1 and "there is no debootstrap here" in done.stderr


def test_machine_without_apt_requires_a_mirror(tmp_path):
    for name in ("bash", "dirname", "sed", "head", "git", "unshare", "debootstrap"):
        (tmp_path / name).symlink_to(shutil.which(name) or "/bin/true")
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "id").chmod(0o755)
    done = bare("run", path=str(tmp_path))
    assert done.returncode == 1 and "name one with --mirror" in done.stderr


RUN = """need: installing cmake ninja-build gcc
build: 25 % of 852 steps
Monkey {}
Monkey 2.0.0 serves /monkey/site at
  http://127.0.0.1:42983/
"""
WARNINGS = [
    "/monkey/src/tls/bio.c:121:5: warning: 'BIO_meth_get_ctrl' is deprecated: Since OpenSSL 3.5 [-Wdeprecated-declarations]",
    "sh: 1: arithmetic expression: expecting primary: \"  * 3 \"",
    "sh: 1: Syntax error: end of file unexpected",
    "bash: line 1: nproc: command not found",
    "perl: warning: Setting locale failed.",
    "make[1]: warning: jobserver unavailable: using -j1.  Add '+' to parent make rule.",
    "CMake Deprecation Warning at CMakeLists.txt:3 (cmake_minimum_required):",
    "=============================== warnings summary ===============================",
]


def judge(folder, text, *lines):
    (folder / "log").write_text(text)
    return subprocess.run(["bash", RUN_LOG, folder / "log", *lines], capture_output=True, text=True, timeout=30, check=False)


def test_log_with_all_features_and_no_warning_passes(tmp_path):
    done = judge(tmp_path, RUN.format("with TLS, HTTP/2, auth"), "40")
    assert (done.returncode, done.stderr) == (0, "")


def test_log_with_the_features_of_this_build_is_understood(tmp_path):
    features = ROOT / "build" / "dev" / "features.txt"
    if not features.exists():
        pytest.skip("needs build/dev")
    line = features.read_text().strip()
    assert judge(tmp_path, RUN.format(line), "40").returncode == int("without " in line)


@pytest.mark.parametrize("features", ["with TLS; without HTTP/2 (libnghttp2-dev)", "without TLS (libssl-dev)"])
def test_log_with_a_missing_feature_fails(tmp_path, features):
    done = judge(tmp_path, RUN.format(features), "40")
    assert done.returncode == 1 and features in done.stderr


def test_log_without_features_fails(tmp_path):
    assert judge(tmp_path, RUN.replace("Monkey {}\n", ""), "40").returncode == 1


def test_log_beyond_the_line_limit_fails(tmp_path):
    done = judge(tmp_path, RUN.format("with TLS") + "line\n" * 40, "40")
    assert done.returncode == 1 and "45 lines" in done.stderr


@pytest.mark.parametrize("warning", WARNINGS)
@pytest.mark.parametrize("lines", [(), ("40",)])
def test_log_with_a_warning_fails(tmp_path, warning, lines):
    done = judge(tmp_path, RUN.format("with TLS") + warning + "\n", *lines)
    assert done.returncode == 1 and warning in done.stderr


def test_log_of_check_has_no_line_limit(tmp_path):
    assert judge(tmp_path, "tests pass\n" * 100).returncode == 0
