# SPDX-License-Identifier: Apache-2.0
"""contest.sh runs the contest from any folder, in its own Python environment."""
import shlex
import shutil
import subprocess
import sys

import pytest

from contest import VERSION
from monkey import ROOT

FOLDER = ROOT / "tools" / "contest"


@pytest.fixture
def project(tmp_path):
    """A project whose venv.sh is a stub: it only creates a link to this Python, which is fast."""
    (tmp_path / "tools/dev").mkdir(parents=True)
    (tmp_path / "tools/contest").mkdir()
    for name in ("contest", "requirements.txt", "requirements-spread.txt"):
        (tmp_path / "tools/contest" / name).symlink_to(FOLDER / name)
    shutil.copy(FOLDER / "contest.sh", tmp_path / "tools/contest")
    make = tmp_path / "tools/dev/venv.sh"
    make.write_text(f'#!/bin/sh\necho made "$@"\nmkdir -p "$1/bin" && exec ln -sf {shlex.quote(sys.executable)} "$1/bin/python"\n')
    make.chmod(0o755)
    return tmp_path


def call(project, *arguments, **more):
    return subprocess.run([project / "tools/contest/contest.sh", *arguments], capture_output=True, text=True, timeout=60, **more)


def test_contest_sh_runs_from_any_folder(project, tmp_path):
    done = call(project, "--version", cwd="/")
    assert (done.returncode, done.stdout) == (0, VERSION + "\n"), done.stderr
    assert f"made {tmp_path}/build/contest-venv {tmp_path}/tools/contest/requirements.txt" in done.stderr


def test_contest_sh_gives_spread_an_environment_of_its_own(project, tmp_path):
    done = call(project, "spread", "--help")
    assert done.returncode == 0 and f"made {tmp_path}/build/spread-venv {tmp_path}/tools/contest/requirements-spread.txt" in done.stderr


def test_contest_sh_passes_words_and_codes_on(project):
    done = call(project, "no such verb")
    assert done.returncode == 2 and "there is no verb 'no such verb'" in done.stderr


def test_contest_sh_says_what_is_missing(project):
    (project / "tools/dev/venv.sh").write_text("#!/bin/sh\nexit 1\n")
    done = call(project, "list")
    assert done.returncode == 1 and "python3-venv" in done.stderr
