# SPDX-License-Identifier: Apache-2.0
"""The optimised program, without its objects: no larger than decided, and nothing but libc."""
import pathlib
import shutil
import subprocess

import pytest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "monkey"

pytestmark = pytest.mark.skipif(not PROGRAM.exists() or not shutil.which("size"),
                                reason="needs the release program and size")


# docs/decisions/0017-what-the-program-weighs.md has the reasons and the history of this limit.
MOST = 340 * 1024


def test_it_is_small():
    """Code and data, without the padding to whole pages that a linker adds to the file."""
    text, data = subprocess.run(["size", PROGRAM], capture_output=True, text=True, check=True).stdout.splitlines()[1].split()[:2]
    assert int(text) + int(data) <= MOST


def test_its_file_is_not_much_larger(tmp_path):
    """By the padding, which is at most three pages."""
    subprocess.run(["strip", "-o", tmp_path / "monkey", PROGRAM], check=True)
    assert (tmp_path / "monkey").stat().st_size <= MOST + 3 * 4096


def test_it_needs_libc_alone():
    needed = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True, check=True).stdout
    libraries = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line]
    assert libraries == ["libc.so.6"]
