# SPDX-License-Identifier: Apache-2.0
"""What a server leaves in its program, and what it adds to it: tools/bench/beside/cycles.c with the installed library."""
import pytest

from monkey import ROOT
from package import call

CYCLES = ROOT / "tools" / "bench" / "beside" / "cycles.c"
# With the pages of the library's file that are used the sum is larger, and varies by 100 KB: the kernel maps up to 64 KB around
# each of them, as far as its cache has them.
KB = {"cycles": 64, "own": 192, "with files": 640}


@pytest.fixture(scope="module")
def cycles(package, tmp_path_factory):
    """The words that it prints."""
    made = package.compile(CYCLES, tmp_path_factory.mktemp("cycles") / "cycles", sanitizers=[])
    return lambda what: call(made, what, environment=package.environment).split()


def test_servers_that_come_and_go_leave_nothing(cycles):
    _, _, grown = cycles("300")
    assert int(grown) <= KB["cycles"]


def test_an_idle_server_is_small(cycles):
    own, with_files = map(int, cycles("idle"))
    assert 0 < own <= KB["own"]
    assert own < with_files <= KB["with files"]
