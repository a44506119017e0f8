# SPDX-License-Identifier: Apache-2.0
"""Some tests of the server, asked of a program that has the server inside of it (tests/lib/embedded.c). All of them:

    MONKEY_EMBEDDED=1 build/venv/bin/python -m pytest -c tests/pytest.ini tests/http tests/plugins

Those that need a master (reloads, signals, killed workers, programs that are started, `User`, `monkey explain`) fail there.
"""
import os
import subprocess
import sys

import pytest

from monkey import PROGRAM, ROOT

MODULES = ("http/test_codings.py", "http/test_conditions.py", "http/test_hosts.py", "http/test_methods.py", "http/test_ranges.py",
           "plugins/test_compress.py", "plugins/test_headers.py")
SECONDS = 600


@pytest.mark.timeout(SECONDS)
@pytest.mark.skipif(not (PROGRAM.parent / "embedded").exists(), reason="tests/lib/embedded.c is not built")
def test_the_library_passes_tests_of_the_server():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run([sys.executable, "-m", "pytest", "-c", ROOT / "tests" / "pytest.ini", "-q", "--quick", "-p", "no:cacheprovider",
                           *(ROOT / "tests" / module for module in MODULES)], capture_output=True, text=True, timeout=SECONDS,
                          cwd=ROOT, env=environment | {"MONKEY_EMBEDDED": "1"})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
