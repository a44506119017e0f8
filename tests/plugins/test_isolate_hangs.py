# SPDX-License-Identifier: Apache-2.0
"""A service hangs while it is loaded or started: the server's master continues all other work and kills the hanging
processes.
"""
import os
import signal

import pytest

import proc
import services

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("it starts no group of processes")]

SOURCE = r"""
#include <duda.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void hang(const char *where)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", FOLDER, where);
    if (access(path, F_OK))
        return;
    fprintf(stderr, "%s hangs\n", where); /* written by a worker, which may write nowhere else */
    strcat(path, ".hangs");
    FILE *f = fopen(path, "w");
    if (f)
        fclose(f);
    for (;;)
        pause();
}

__attribute__((constructor)) static void load(void)
{
    hang("load");
}

static int begin(struct mk_worker *w)
{
    (void)w;
    hang("start");
    return 0;
}

static int pid(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", (int)getpid());
}

static int crash(struct duda_ctx *d)
{
    (void)d;
    abort();
}

DUDA_SERVICE(NAME, DUDA_START(begin), DUDA_GET("/pid", pid, ""), DUDA_GET("/crash", crash, ""));
"""

CRASHES = ("serves nothing", "serves again", "did not exit", "Sanitizer", "was killed by signal", "exited unexpectedly")
NAMES = ("firm", "weak")
TOP = "[ISOLATE]\n    Service {}\n"
ROUTES = "[ROUTES]\n    /firm/* isolate firm\n    /weak/* isolate weak\n    /* static\n"


@pytest.fixture
def guests(tmp_path):
    """Builds the two services. Each has a folder in which a test creates the files that make the service hang."""
    objects = []
    for name in NAMES:
        folder = tmp_path / name
        folder.mkdir()
        objects.append(services.build(folder, name, SOURCE.replace("NAME", name), f'-DFOLDER="{folder}"'))
    return objects


class Hang:
    """Makes the service hang in the given phase, from now on."""

    def __init__(self, folder, phase):
        self.path, self.sign = folder / phase, folder / f"{phase}.hangs"
        self.path.touch()

    def wait_for(self, server):
        proc.wait_until(lambda: self.sign.exists() or f"{self.path.name} hangs" in server.err.text, "the hang")

    def end(self):
        self.path.unlink()


@pytest.fixture
def hang(tmp_path):
    return lambda name, phase: Hang(tmp_path / name, phase)


@pytest.fixture
def server(monkey, guests):
    return monkey(plugins=["isolate"], top="".join(TOP.format(each) for each in guests), sections=ROUTES)


def get_pid(server, name):
    answer = proc.wait_until(lambda: (got := server.get(f"/{name}/pid")).status == 200 and got, "a response of the group")
    return int(answer.text)


def reload(server, message=None):
    server.tell(signal.SIGHUP)
    if message:
        server.err.wait_for(message)


def others(server):
    """Returns the processes that are neither workers nor supervisors: config trials."""
    return [pid for pid in proc.children(server.pid) if proc.name(pid) not in ("monkey: worker", "monkey: keeper")]


def processes_below(pid):
    return [each for child in proc.children(pid) for each in [child, *processes_below(child)]]


def test_isolate_hanging_service_does_not_block_master(server, hang):
    """The master still replaces workers, loads the next configuration, and obeys signals."""
    server.allow(*CRASHES)
    before = {name: get_pid(server, name) for name in NAMES}
    worker, = (pid for pid in proc.children(server.pid) if proc.name(pid) == "monkey: worker")
    cause = hang("weak", "start")
    reload(server)
    cause.wait_for(server)
    os.kill(worker, signal.SIGKILL)  # the master detects the death, because it is not blocked
    proc.wait_until(lambda: [pid for pid in proc.children(server.pid) if proc.name(pid) == "monkey: worker"] not in ([], [worker]),
                    "another worker")
    assert server.get("/firm/crash").status == 502
    get_pid(server, "firm")
    assert get_pid(server, "weak") == before["weak"], "its old worker still serves"
    cause.end()
    reload(server, "the reload took too long, and was replaced by a later reload")
    server.err.wait_for(rf"{server.pid}: the new configuration serves")
    assert get_pid(server, "weak") != before["weak"]


@pytest.mark.parametrize("phase", ["load", "start"])
def test_isolate_hanging_service_does_not_block_stop(server, hang, phase):
    server.allow(*CRASHES)
    get_pid(server, "weak")
    cause = hang("weak", phase)
    reload(server)
    cause.wait_for(server)
    pids = processes_below(server.pid)
    server.stop()
    proc.wait_until(lambda: all(proc.is_gone(pid) for pid in pids), "the end of all")
    assert "did not start" not in server.err.text, "the stop did not wait for the start timeout"


def test_isolate_object_that_hangs_rejects_configuration(server, hang):
    """The next trial starts at once: the hanging trial is abandoned."""
    before = get_pid(server, "weak")
    cause = hang("weak", "load")
    reload(server)
    cause.wait_for(server)
    trial = others(server)
    assert trial
    cause.end()
    reload(server, "the reload took too long, and was replaced by a later reload")
    server.err.wait_for(rf"{server.pid}: the new configuration serves")
    assert get_pid(server, "weak") != before
    proc.wait_until(lambda: all(proc.is_gone(pid) for pid in trial), "the end of the trial")
