# SPDX-License-Identifier: Apache-2.0
"""Kernel TLS in a virtual machine (tools/dev/ktls.sh). Takes minutes, so it runs only with MONKEY_KTLS=1."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KTLS = ROOT / "tools" / "dev" / "ktls.sh"
CANNOT = 77
SECONDS = 900


def test_folder_without_the_program_fails(tmp_path):
    done = subprocess.run([KTLS, tmp_path], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode in (1, CANNOT), done.stderr
    assert "ktls: " in done.stderr


@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.skipif(os.environ.get("MONKEY_KTLS") != "1", reason="takes minutes: set MONKEY_KTLS=1 to run it")
def test_kernel_encrypts_tls_records():
    release = Path(os.environ.get("MONKEY_RELEASE") or ROOT / "build" / "release" / "monkey")
    if not release.exists():
        pytest.skip(f"{release} is not built")
    done = subprocess.run([KTLS, release.parent], capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode == CANNOT:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT OK" not in done.stdout
