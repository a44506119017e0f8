# SPDX-License-Identifier: Apache-2.0
"""Runs some tests of the server against a program that embeds the server (tests/lib/embedded.c). To run all of them:

    MONKEY_EMBEDDED=1 build/venv/bin/python -m pytest -c tests/pytest.ini tests/{http,plugins,tls,site,duda}

tests/server has its own program. Tests that need a master or worker processes are skipped with a reason: see needs_processes()
in tests/monkey.py. This module runs only modules of tests/quick.py.
"""
import os
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
