# SPDX-License-Identifier: Apache-2.0
"""Some tests of the server, asked of a program that has the server inside of it (tests/lib/embedded.c). All of them:

    MONKEY_EMBEDDED=1 build/venv/bin/python -m pytest -c tests/pytest.ini tests/{http,plugins,tls,site,duda}

tests/server has a program of its own. What needs a master or processes of workers is skipped there, with the reason: see
needs_processes() in tests/monkey.py. Here only modules of tests/quick.py are run.
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
def test_the_library_passes_tests_of_the_server(folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    modules = [ROOT / "tests" / folder / f"test_{name}.py" for name in MODULES[folder]]
    done = subprocess.run([sys.executable, "-m", "pytest", "-c", ROOT / "tests" / "pytest.ini", "-q", "--quick", "-p", "no:cacheprovider",
                           *modules], capture_output=True, text=True, timeout=SECONDS, cwd=ROOT,
                          env=environment | {"MONKEY_EMBEDDED": "1"})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
