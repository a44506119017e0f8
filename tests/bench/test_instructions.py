# SPDX-License-Identifier: Apache-2.0
"""The instruction counts of keep-alive requests, measured with callgrind, must not grow."""
import importlib.util
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "bench" / "instructions.py"
RECORDED = ROOT / "tools" / "bench" / "instructions.txt"
PROGRAM = ROOT / "build" / "release" / "monkey"

spec = importlib.util.spec_from_file_location("instructions", TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def count(*arguments):
    return subprocess.run([sys.executable, TOOL, PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300)


@pytest.mark.skipif(not shutil.which("valgrind") or not PROGRAM.exists(), reason="needs valgrind and the release program")
@pytest.mark.slow
@pytest.mark.parametrize("what", ("file", "hello", "proxied", "limited", "broadcast"))
def test_instruction_count_stays_at_the_record(what, tmp_path):
    if what in ("hello", "broadcast") and not (PROGRAM.parent / "plugins/monkey-duda.so").exists():
        pytest.skip("needs Duda as a loadable object")
    done = count("--what", what, "--check", RECORDED, "--write", tmp_path / "now")
    assert done.returncode == 0, done.stdout + done.stderr
    now = int((tmp_path / "now").read_text().split()[1])
    assert now > 500, "too few to serve a request: the tool counts something else"


@pytest.mark.parametrize(("number", "compiler", "slack"), (
    (1030, "gcc 1", None), (1031, "gcc 1", 3), (1100, "gcc 2", None), (1101, "gcc 2", 10)))
def test_records_allow_three_percent_and_ten_with_another_compiler(number, compiler, slack, tmp_path):
    record = tmp_path / "record"
    tool.write_record(record, "other", 7, "gcc 2")
    tool.write_record(record, "file", 900, "gcc 1")
    tool.write_record(record, "file", 1000, "gcc 1")
    assert tool.read_records(record) == {"file": (1000, "gcc 1"), "other": (7, "gcc 2")}
    if slack:
        with pytest.raises(SystemExit, match=f"more than {slack} %"):
            tool.check_record(record, "file", number, compiler)
    else:
        tool.check_record(record, "file", number, compiler)
