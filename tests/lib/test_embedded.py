# SPDX-License-Identifier: Apache-2.0
"""Runs some tests of the server against a program that embeds the server (tests/lib/embedded.c). To run all of them:

    MONKEY_EMBEDDED=1 build/venv/bin/python -m pytest -c tests/pytest.ini tests/{http,plugins,tls,site,duda}

tests/server has its own program. Tests that need a master or worker processes are skipped and give the reason: see
needs_processes() in tests/monkey.py. This module runs only modules of tests/quick.py.
"""
import os
import shutil
import subprocess
import sys

import pytest

from monkey import PROGRAM, ROOT

MODULES = {
    "http": ("codings", "conditions", "files", "h2_streams", "hosts", "methods", "ranges"),
    "plugins": ("api", "compress", "dirlisting", "headers", "rewrite", "trailers"),
    "duda": ("hello",),
    "tls": ("hosts",),
}
SECONDS = 600
INSIDE = PROGRAM.parent / "tests/lib/lib_test_misuse_arguments"  # linked to the library


@pytest.mark.skipif(not INSIDE.exists(), reason="tests/lib/test_misuse_arguments.c is not built")
@pytest.mark.parametrize("name", ["monkey-shop", "shop"])
def test_program_finds_no_plugins_beside_itself_whatever_its_name(tmp_path, name):
    (tmp_path / "plugins").mkdir()
    for folder in (tmp_path, tmp_path / "plugins"):
        (folder / "monkey-nonesuch.so").touch()
    shutil.copy(INSIDE, tmp_path / name)
    done = subprocess.run([tmp_path / name, "nonesuch"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "monkey-nonesuch.so is not in " in done.stdout, done
    assert str(tmp_path) not in done.stdout


@pytest.mark.timeout(SECONDS)
@pytest.mark.skipif(not (PROGRAM.parent / "embedded").exists(), reason="tests/lib/embedded.c is not built")
@pytest.mark.parametrize("folder", MODULES)
def test_embedded_server_passes_tests_of_the_server(folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    modules = [ROOT / "tests" / folder / f"test_{name}.py" for name in MODULES[folder]]
    done = subprocess.run([sys.executable, "-m", "pytest", "-c", ROOT / "tests" / "pytest.ini", "-q", "--quick", "-p", "no:cacheprovider",
                           *modules], capture_output=True, text=True, timeout=SECONDS, cwd=ROOT,
                          env=environment | {"MONKEY_EMBEDDED": "1"})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
