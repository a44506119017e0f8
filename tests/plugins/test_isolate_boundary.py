# SPDX-License-Identifier: Apache-2.0
"""The boundary between the server and an isolated service: resources that the other side cannot reach, and the end of a group."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

import proc
import services
from monkey import ENVIRONMENT, PROGRAM, SECONDS, write_config

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("it starts no group of processes")]

SOURCE = r"""
#include <duda.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static int pid(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", (int)getpid());
}

static int until(struct duda_ctx *d)
{
    const char *path = duda_query_or(d, "path", "");
    int e = 0;
    duda_log(d, MK_LOG_WARN, "waits for %s", path);
    while (!e && access(path, F_OK))
        e = duda_sleep(d, 5);
    return e ? e : duda_puts(d, "done\n");
}

static void *talk(void *data)
{
    static char text[65536];
    (void)data;
    while (write(STDERR_FILENO, text, sizeof text) > 0)
        continue;
    return NULL;
}

static int flood(struct duda_ctx *d)
{
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread, NULL, talk, NULL))
            return -EAGAIN;
    return duda_puts(d, "flooded\n");
}

DUDA_SERVICE(guest, DUDA_GET("/pid", pid, ""), DUDA_GET("/until", until, ""), DUDA_GET("/flood", flood, ""));
"""

ROUTES = "[ROUTES]\n    /guest/* isolate guest\n    /* static\n"


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guest")
    folder.chmod(0o755)
    return services.build(folder, "guest", SOURCE)


@pytest.fixture
def server(monkey, guest):
    return monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {guest}\n", sections=ROUTES)


def server_workers(server):
    return [pid for pid in proc.children(server.pid) if proc.name(pid) != "monkey: keeper"]


def supervisor_of(server):
    keeper, = (pid for pid in proc.children(server.pid) if proc.name(pid) == "monkey: keeper")
    return keeper


def socket_folder_of(server):
    """Returns the folder of the group's socket."""
    inode = os.readlink(f"/proc/{supervisor_of(server)}/fd/3")[8:-1]
    path, = (line.split()[7] for line in Path("/proc/net/unix").read_text().splitlines() if line.split()[6] == inode)
    return Path(path).parent


def group_worker(server):
    """Waits until a worker responds, and returns its PID: on a busy machine, workers may start slowly."""
    answer = proc.wait_until(lambda: (got := server.get("/guest/pid")).status == 200 and got, "a response of the group")
    return int(answer.text)


def reload_without_group(server, *plugins):
    """Reloads the server with a configuration that lacks the group."""
    write_config(server.config, listen=f"127.0.0.1:{server.port}", plugins=plugins)
    server.tell(signal.SIGHUP)
    server.err.wait_for(r"\d: the new configuration serves")


@pytest.mark.parametrize("plugins", [["isolate"], []])
def test_isolate_group_lives_until_old_workers_exit(server, plugins, tmp_path):
    """The new configuration without the group already serves when a worker of the old one receives one more request."""
    group_worker(server)
    keeper, path = supervisor_of(server), socket_folder_of(server)
    with server.connect() as slow, server.connect() as late:
        slow.ask(f"/guest/until?path={tmp_path}/go")
        server.err.wait_for("waits for")
        old, = server_workers(server)
        assert late.get("/guest/pid").status == 200
        late.send(b"GET /guest/pid HTTP/1.1\r\nHost: localhost\r\n")
        proc.wait_until(lambda: proc.status(old)["State"].startswith("S"), "the worker that has read half a request")
        reload_without_group(server, *plugins)
        assert not proc.is_gone(old) and not proc.is_gone(keeper)
        late.send(b"\r\n")
        assert late.read().status == 200
        assert server.get("/guest/pid").status == 404
        (tmp_path / "go").touch()
        assert slow.read().text == "done\n"
    proc.wait_until(lambda: proc.is_gone(keeper) and not path.exists(), "the end of the group")


def test_isolate_workers_cannot_reach_control_resources(server):
    """A worker reaches neither the group's configuration nor the supervisor's socket nor state of the master: otherwise it could
    become the group's user."""
    inner, keeper = group_worker(server), supervisor_of(server)
    master, = proc.children(keeper)
    control = proc.descriptors(keeper)[6]
    assert "isolate-configuration" in "".join(proc.descriptors(master).values())
    assert int(re.search(r"flags:\s*(\d+)", Path(f"/proc/{master}/fdinfo/5").read_text())[1], 8) & os.O_ACCMODE == os.O_RDONLY
    outer, = server_workers(server)
    for worker in [inner, outer]:
        found = set(proc.descriptors(worker).values())
        assert control not in found
        assert not any(name in each for each in found for name in ["isolate-configuration", "isolate-board"])
    reload_without_group(server)
    last, = proc.wait_until(lambda: (found := server_workers(server)) != [outer] and len(found) == 1 and found, "the new worker")
    assert not any("isolate-configuration" in each for each in proc.descriptors(last).values())


def test_isolate_group_with_flooded_log_ends_with_server(monkey, guest, tmp_path):
    server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {guest}\n", sections=ROUTES, server="ErrorLog /dev/null")
    inner = group_worker(server)
    keeper = supervisor_of(server)
    assert server.get("/guest/flood").text == "flooded\n"
    server.tell(signal.SIGQUIT)
    server.wait()
    proc.wait_until(lambda: proc.is_gone(inner) and proc.is_gone(keeper), "the end of the group")


def has_no_listener(folder):
    return str(folder) not in Path("/proc/net/unix").read_text()


def test_isolate_leftovers_of_killed_server_are_removed(monkey, guest, tmp_path):
    """A folder remains if its server was killed together with its group. The folders of a running server, recent folders and
    those of another user are kept."""
    def begin():
        server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {guest}\n", sections=ROUTES,
                        environment={"RUNTIME_DIRECTORY": str(runtime)})
        group_worker(server)
        return server

    runtime = Path(tempfile.mkdtemp(prefix="r"))
    try:
        dead, alive = begin(), begin()
        left, kept = socket_folder_of(dead), socket_folder_of(alive)
        keeper = supervisor_of(dead)
        group = [keeper, *proc.children(keeper)]
        for pid in [dead.pid, *group]:
            os.kill(pid, signal.SIGKILL)
        proc.wait_until(lambda: all(map(proc.is_gone, group)) and has_no_listener(left), "the end of the group")
        young, foreign = (runtime / f"monkey-{digit * 16}" for digit in "12")
        for path in (young, foreign):
            shutil.copytree(left, path, copy_function=lambda source, target: None)
            socket.socket(socket.AF_UNIX).bind(str(path / "guest"))
        os.chown(foreign, 12345, 12345)
        for path in (left, kept, foreign):
            os.utime(path, (1, 1))
        dead.exit_code = -signal.SIGKILL
        third = begin()
        assert not left.exists() and kept.exists() and young.exists() and foreign.exists()
        assert alive.get("/guest/pid").status == 200 and third.get("/guest/pid").status == 200
    finally:
        shutil.rmtree(runtime)


def test_isolate_finds_program_by_path(guest, tmp_path):
    """A bare program name, as a shell passes it, does not tell where the program is."""
    (tmp_path / "site").mkdir()
    path = tmp_path / "monkey.conf"
    path.write_text(f"[PLUGINS]\n    Load isolate\n[ISOLATE]\n    Service {guest}\n[HOST]\n    DocumentRoot {tmp_path}/site\n")
    done = subprocess.run(["monkey", "-t", "-c", path], executable=PROGRAM, cwd=tmp_path, env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=4 * SECONDS, check=False)
    assert done.returncode == 0, done.stderr
