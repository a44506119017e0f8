# SPDX-License-Identifier: Apache-2.0
"""Output of printf() in services: each line appears at once, even if standard output is a pipe, and a killed worker loses none.
In `isolate`, the lines are in the error log."""
import os
import signal

import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <stdio.h>
#include <unistd.h>

static int say(struct duda_ctx *d)
{
    printf("said %s by %d\n", duda_query_or(d, "word", ""), (int)getpid());
    return duda_printf(d, "%d", (int)getpid());
}

DUDA_SERVICE(said, DUDA_GET("/say", say, ""));
"""


@pytest.fixture
def service(tmp_path):
    return services.build(tmp_path, "said", SOURCE)


def test_line_appears_immediately(monkey, service):
    server = monkey(plugins=[service], workers=1)
    for word in ("first", "second"):
        pid = server.get(f"/say?word={word}").text
        server.out.wait_for(rf"^said {word} by {pid}\n")
    server.allow("killed by signal 9")
    server.get("/say?word=last")
    os.kill(int(pid), signal.SIGKILL)
    server.out.wait_for(rf"^said last by {pid}\n")


@pytest.mark.skipif(not (services.OBJECTS / "monkey-isolate.so").exists(), reason="this build has no isolate")
def test_line_of_an_isolated_service_is_in_the_error_log(monkey, service):
    server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n", sections="[ROUTES]\n    /* isolate said\n")
    pid = server.get("/say?word=inside").text
    server.err.wait_for(rf"said: said inside by {pid}\n")
    assert "said" not in server.out.text
