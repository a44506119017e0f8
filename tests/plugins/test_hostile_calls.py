# SPDX-License-Identifier: Apache-2.0
"""A plugin that calls the functions of every header with hostile values gets the documented errors, and the server keeps serving."""
import pytest

from monkey import ENVIRONMENT, PROGRAM, ROOT

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"

pytestmark = [pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1],
                                 reason="the plugins of the tests are built with the program in build/dev"),
              pytest.mark.processes("the plugin starts programs, and lists workers")]

# Without this option, AddressSanitizer ends the program when it asks for too much memory.
FAILING = {"ASAN_OPTIONS": ENVIRONMENT["ASAN_OPTIONS"] + ":allocator_may_return_null=1"}
GROUPS = ["request", "response", "worker", "subprocesses", "statistics", "text", "upstream", "spool"]


@pytest.fixture
def server(monkey):
    server = monkey(plugins=[BUILT / "monkey-hostile_calls.so"], sections="[ROUTES]\n    /hostile hostile\n", environment=FAILING)
    server.allow(".*")
    return server


@pytest.mark.parametrize("group", GROUPS)
def test_hostile_calls_return_errors(server, group):
    for _ in range(2):
        assert server.get(f"/hostile?{group}").text == "end\n"
    assert "\nB: " not in server.err.text and "[error] forged" not in server.err.text


def test_hostile_calls_to_event_streams_return_errors(server):
    assert server.get("/hostile?stream").status == 200
    server.err.wait_for("stream: end")
