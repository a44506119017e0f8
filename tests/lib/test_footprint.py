# SPDX-License-Identifier: Apache-2.0
"""The memory that a server adds to its program, and the memory that remains after it: tools/bench/libraries/cycles.c with the
installed library.
"""
import pytest

from monkey import ROOT
from package import call

CYCLES = ROOT / "tools" / "bench" / "libraries" / "cycles.c"
# The total including mapped pages of the library's file is larger and varies: around each page, the kernel maps
# up to 64 KB that are in the page cache. Measured: 608 to 664 KB.
KB = {"cycles": 64, "own": 192, "with files": 720}


@pytest.fixture(scope="module")
def cycles(package, tmp_path_factory):
    """Returns the words of the program's output."""
    made = package.compile(CYCLES, tmp_path_factory.mktemp("cycles") / "cycles", sanitizers=[])
    return lambda argument: call(made, argument, environment=package.environment).split()


def test_servers_started_and_freed_leak_no_memory(cycles):
    _, _, grown = cycles("300")
    assert int(grown) <= KB["cycles"]


def test_idle_server_uses_little_memory(cycles):
    own, with_files = map(int, cycles("idle"))
    assert 0 < own <= KB["own"]
    assert own < with_files <= KB["with files"]
