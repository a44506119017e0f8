# SPDX-License-Identifier: Apache-2.0
"""cgroup limits of an isolated service: they are enforced if the kernel supports them, and reported if it does not."""
import re
from pathlib import Path

import pytest

import proc
import services

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("it starts no group of processes")]
SOURCE = r"""
#include <duda.h>

static int hello(struct duda_ctx *d)
{
    return duda_puts(d, "hello\n");
}

DUDA_SERVICE(guest, DUDA_GET("/", hello, ""));
"""
ROUTES = "[ROUTES]\n    /guest/* isolate guest\n    /* static\n"


def cgroup_folder():
    """Returns the folder of our own cgroup, if it has the `cpu` controller and we may create child cgroups."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"]
    own = re.search(r"(?m)^0::(.*)$", Path("/proc/self/cgroup").read_text())
    folder = Path(mounts[0] + own[1]) if mounts and own else None
    if not folder or "cpu" not in (folder / "cgroup.controllers").read_text().split():
        return None
    try:
        (folder / "monkey-test").mkdir()
        (folder / "monkey-test").rmdir()
    except OSError:
        return None
    return folder if own[1] == "/" else None  # otherwise pytest also belongs to that cgroup, and cannot leave it


PLACE = cgroup_folder()


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("guest"), "guest", SOURCE)


@pytest.mark.skipif(not PLACE, reason="no control groups of version 2 with the controller `cpu` that can be written here")
def test_isolate_quota_applies_to_all_processes_of_group(monkey, guest):
    server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {guest}\n    CPUQuota 50\n", sections=ROUTES)
    assert server.get("/guest/").text == "hello\n"
    keeper, = (pid for pid in proc.children(server.pid) if proc.name(pid) == "monkey: keeper")
    master, = proc.children(keeper)
    own = PLACE / Path(f"/proc/{master}/cgroup").read_text().rsplit("0::/", 1)[1].strip()
    assert (own / "cpu.max").read_text() == "50000 100000\n"
    assert {master, *proc.children(master)} == set(map(int, (own / "cgroup.procs").read_text().split()))
    server.stop()
    proc.wait_until(lambda: not own.exists(), "the end of the control group")


@pytest.mark.skipif(bool(PLACE), reason="there are control groups here")
def test_isolate_quota_without_cgroups_explains_solution(run, monkey, guest, tmp_path):
    """A check only warns, because the server may run on another machine. The server itself refuses to start without limits."""
    (tmp_path / "site").mkdir(exist_ok=True)
    path = tmp_path / "monkey.conf"
    path.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load isolate\n[ISOLATE]\n    Service {guest}\n    CPUQuota 50\n"
                    f"[HOST]\n    DocumentRoot {tmp_path}/site\n")
    how_to = r"start the server with systemd and `Delegate=cpu memory`"
    checked = run("-t", "-c", path)
    assert checked.code == 0 and re.search(rf"warning: .*{how_to}", checked.err), checked.err
    started = run("-c", path)
    assert started.code == 1 and re.search(rf"monkey\.conf:7:\d+: error: .*{how_to}", started.err), started.err


def test_isolate_quota_must_be_a_number(run, guest, tmp_path):
    (tmp_path / "site").mkdir(exist_ok=True)
    path = tmp_path / "monkey.conf"
    path.write_text(f"[PLUGINS]\n    Load isolate\n[ISOLATE]\n    Service {guest}\n    CPUQuota half\n    MemoryMax 1M\n"
                    f"[HOST]\n    DocumentRoot {tmp_path}/site\n")
    done = run("-t", "-c", path)
    assert done.code == 3 and "CPUQuota" in done.err and "MemoryMax" in done.err
