# SPDX-License-Identifier: Apache-2.0
"""Services that report components as not ready: at the Ready path of plugin metrics, in its numbers and in the shell."""
import os
import signal

import pytest

import proc
import services
from metering import KEYS, status
from proc import wait_until
from prometheus import parse
from shell_server import ShellServer, monkey_shell, socket_folder  # noqa: F401

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

static int start(struct mk_worker *worker)
{
    return duda_set_readiness(worker, "prices", "loading");
}

static int load(struct duda_ctx *d)
{
    return duda_set_readiness(duda_worker(d), "prices", NULL) ? 500 : 204;
}

static int set(struct duda_ctx *d)
{
    int e = duda_set_readiness(duda_worker(d), duda_query_or(d, "component", ""), duda_query(d, "reason").p);
    return e == -EINVAL ? 400 : e ? 500 : 204;
}

DUDA_SERVICE(shop, DUDA_START(start), DUDA_GET("/load", load), DUDA_GET("/set", set));
"""


STARTS = r"""
#include <duda.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* What a start task does: the folder contains a file "NAME" with one of these words. */
static int act(struct duda_ctx *d, const char *name)
{
    int e = 0;
    while (!e && access(duda_sprintf(d, "FOLDER/%s.wait", name).p, F_OK) == 0)
        e = duda_sleep(d, 5);
    if (e)
        duda_log(d, MK_LOG_WARN, "%s ended by %d", name, e);
    if (access(duda_sprintf(d, "FOLDER/%s.fail", name).p, F_OK) == 0)
        return duda_reason(d, -ECONNREFUSED, "no %s", name);
    if (access(duda_sprintf(d, "FOLDER/%s.crash", name).p, F_OK) == 0)
        *(volatile int *)8 = 1;
    return e;
}

static int first(struct duda_ctx *d) { return act(d, "first"); }
static int second(struct duda_ctx *d) { return act(d, "second"); }
static int hello(struct duda_ctx *d) { return duda_printf(d, "worker %u\n", mk_worker_index(duda_worker(d))); }

DUDA_SERVICE(shop, DUDA_START_TASK(first), DUDA_START_TASK(second, .stack = 256 << 10), DUDA_GET("/", hello));
"""


@pytest.fixture
def starts(monkey, tmp_path):
    def run(*files, **how):
        for name in files:
            (tmp_path / name).touch()
        source = STARTS.replace("FOLDER", str(tmp_path))
        return monkey(plugins=["metrics", services.build(tmp_path, "shop", source)], top=KEYS, **how)

    return run


def not_ready(server):
    return sorted((labels["component"], labels["reason"], int(n))
                  for labels, n in parse(server.get("/metrics").text).all("monkey_component_not_ready") if n)


def test_worker_is_ready_after_its_start_tasks(starts, tmp_path):
    server = starts("first.wait", "second.wait", workers=2)
    assert not_ready(server) == [("shop.first", "starting", 2), ("shop.second", "starting", 2)]
    reply = server.get("/readyz")
    assert reply.status == 503 and reply.text in ("not ready: shop.first: starting\n", "not ready: shop.second: starting\n")
    assert server.get("/").status == 200, "the worker serves requests nevertheless"
    (tmp_path / "second.wait").unlink()
    (tmp_path / "first.wait").unlink()
    wait_until(lambda: not_ready(server) == [], "both tasks have ended in both workers")
    assert {server.get("/readyz").status for _ in range(8)} == {200}


def test_start_tasks_run_one_after_the_other(starts, tmp_path):
    server = starts("first.wait", "second.fail")
    assert not_ready(server) == [("shop.first", "starting", 1), ("shop.second", "starting", 1)], "the second task has not run yet"
    (tmp_path / "first.wait").unlink()
    wait_until(lambda: not_ready(server) == [("shop.second", "failed: Connection refused", 1)], "only the second task fails")


def test_start_tasks_with_equal_truncated_names_are_told_apart(monkey, tmp_path):
    """The name of a component has 32 bytes: these two tasks have the same one."""
    name = "aservicewiththirtyoneletterslon"
    for task in ("first", "second"):
        (tmp_path / f"{task}.wait").touch()
    source = STARTS.replace("FOLDER", str(tmp_path)).replace("DUDA_SERVICE(shop", f"DUDA_SERVICE({name}")
    server = monkey(plugins=["metrics", services.build(tmp_path, name, source)], top=KEYS)
    assert not_ready(server) == [(f"{name}.", "starting", 1)]
    (tmp_path / "first.wait").unlink()
    (tmp_path / "second.fail").touch()
    (tmp_path / "second.wait").unlink()
    wait_until(lambda: not_ready(server) == [(f"{name}.", "failed: Connection refused", 1)], "the second task has failed")
    (tmp_path / "second.fail").unlink()
    wait_until(lambda: server.get("/readyz").status == 200, "both have succeeded")


def test_failed_start_task_runs_again(starts, tmp_path):
    server = starts("first.fail")
    wait_until(lambda: not_ready(server) == [("shop.first", "failed: Connection refused", 1), ("shop.second", "starting", 1)], "it fails")
    server.err.wait_for(r"the start task first\(\) in .*shop.c:\d+ returned -ECONNREFUSED .*; the next attempt is in 1 s")
    (tmp_path / "first.fail").unlink()
    wait_until(lambda: server.get("/readyz").status == 200, "the next attempt succeeds")


@pytest.mark.processes("the test reloads the server")
def test_new_workers_of_a_reload_run_start_tasks(starts, tmp_path):
    server = starts(workers=2)
    wait_until(lambda: not_ready(server) == [], "ready")
    (tmp_path / "first.wait").touch()
    server.tell(signal.SIGHUP)
    wait_until(lambda: not_ready(server) == [("shop.first", "starting", 2), ("shop.second", "starting", 2)], "the new workers start")
    server.tell(signal.SIGHUP)
    server.err.wait_for("first ended by -125")  # the start task of a worker that drains is cancelled
    wait_until(lambda: not_ready(server) == [("shop.first", "starting", 2), ("shop.second", "starting", 2)], "only the newest workers count")
    (tmp_path / "first.wait").unlink()
    wait_until(lambda: not_ready(server) == [], "ready again")


@pytest.mark.processes("it starts no group of processes")
def test_front_server_is_ready_after_the_start_tasks_of_an_isolated_service(monkey, site, tmp_path):
    (tmp_path / "first.wait").touch()
    tmp_path.chmod(0o755)
    service = services.build(tmp_path, "shop", STARTS.replace("FOLDER", str(tmp_path)))
    (tmp_path / "shop.conf").write_text(f"[DUDA]\n    ReadablePaths {tmp_path}\n")
    server = monkey(plugins=["isolate", "metrics"], root=None, host=None,
                    top=f"{KEYS}[ISOLATE]\n    Service {service}\n    Include shop.conf\n    Workers 2\n",
                    sections=f"[HOST]\n    DocumentRoot {site}\n[ROUTES]\n    /shop/* isolate shop\n")
    wait_until(lambda: server.get("/readyz").status == 503 and "shop.first: starting" in server.get("/readyz").text, "the tasks run")
    assert server.get("/shop/").status == 200
    (tmp_path / "first.wait").unlink()
    wait_until(lambda: server.get("/readyz").status == 200, "the tasks have ended in both workers of the group")


@pytest.mark.processes("the embedding program handles crash signals")
def test_start_task_that_crashes_is_suspended(starts, tmp_path):
    server = starts("first.crash")
    server.err.wait_for("the start task first.* returned -EAGAIN")
    assert not_ready(server) == [("shop.first", "failed: Resource temporarily unavailable", 1), ("shop.second", "starting", 1)]
    assert server.get("/").status == 200, "the worker lives, although its start task has crashed"
    server.allow("Sanitizer", "was killed by signal", "exited unexpectedly")


@pytest.fixture
def shop(monkey, tmp_path, socket_folder):  # noqa: F811
    socket = socket_folder / "sock"

    def run(workers=1):
        server = monkey(plugins=["metrics", "cheetah", services.build(tmp_path, "shop", SOURCE)], workers=workers,
                        top=f"{KEYS}[CHEETAH]\n    Socket {socket}\n")
        return ShellServer(server, socket)

    return run


def test_ready_path_names_the_component(shop):
    shell = shop()
    server = shell.server
    reply = server.get("/readyz")
    assert (reply.status, reply.text) == (503, "not ready: prices: loading\n")
    assert parse(server.get("/metrics").text)["monkey_component_not_ready", {"component": "prices", "reason": "loading"}] == 1
    assert shell.json("components") == [{"component": "prices", "workers": 1, "reason": "loading"}]
    assert status(server)["components"] == [{"component": "prices", "reason": "loading", "workers": 1}]
    assert server.get("/load").status == 204 and server.get("/readyz").status == 200
    assert shell.json("components") == [] and "monkey_component_not_ready{" not in server.get("/metrics").text
    assert server.get("/healthz").status == 200, "the worker serves requests in any case"


def test_components_and_reasons_change(shop):
    shell = shop()
    server = shell.server
    server.get("/load")
    for reason in ("no%20connection", "slow", "slow"):
        assert server.get(f"/set?component=database&reason={reason}").status == 204
    assert server.get("/set?component=mail&reason=full").status == 204
    assert server.get("/readyz").text in ("not ready: database: slow\n", "not ready: mail: full\n")
    assert [(c["component"], c["reason"], c["workers"]) for c in shell.json("components")] == [("database", "slow", 1), ("mail", "full", 1)]
    for component in ("database", "mail", "mail", "never"):
        assert server.get(f"/set?component={component}").status == 204
    assert server.get("/readyz").status == 200
    assert server.get("/set?reason=x").status == 400


def test_reasons_are_limited_and_escaped(shop):
    server = shop().server
    server.get("/load")
    for i in range(200):
        assert server.get(f"/set?component=c&reason=r{i}").status == 204
    assert server.get("/set?component=" + "c" * 500 + "&reason=" + "%22%5C" * 200).status == 204
    got = parse(server.get("/metrics").text).all("monkey_component_not_ready")
    assert [(labels["component"], labels["reason"], n) for labels, n in got] == [("other", "other", 2)]
    assert server.get("/readyz").text == "not ready: other: other\n"


def test_each_worker_is_ready_by_itself(shop):
    shell = shop(workers=2)
    server = shell.server
    assert parse(server.get("/metrics").text)["monkey_component_not_ready"] == 2
    assert server.get("/load").status == 204
    assert parse(server.get("/metrics").text)["monkey_component_not_ready"] == 1
    wait_until(lambda: {server.get("/readyz").status for _ in range(8)} == {200, 503}, "one worker is ready")


@pytest.mark.processes("it starts no group of processes")
def test_isolated_service_reports_in_its_group_and_in_the_front_server(monkey, site, tmp_path, socket_folder):  # noqa: F811
    (tmp_path / "shop.conf").write_text("[PLUGINS]\n    Load cheetah\n[CHEETAH]\n    Socket ./shell.sock\n")
    tmp_path.chmod(0o755)
    socket = socket_folder / "sock"
    server = monkey(plugins=["isolate", "metrics", "cheetah"], root=None, host=None,
                    top=f"{KEYS}[CHEETAH]\n    Socket {socket}\n"
                        f"[ISOLATE]\n    Service {services.build(tmp_path, 'shop', SOURCE)}\n    Include shop.conf\n    Workers 2\n",
                    sections=f"[HOST]\n    DocumentRoot {site}\n[ROUTES]\n    /shop/* isolate shop\n")
    front = ShellServer(server, socket)

    def workers_not_ready():
        return [(c["isolate"], c["component"], c["workers"], c["reason"]) for c in front.json("components")]

    assert "loading" in monkey_shell(tmp_path / "shell.sock", "components").out
    wait_until(lambda: workers_not_ready() == [("shop", "prices", 2, "loading")], "both workers have reported")
    assert server.get("/readyz").text == "not ready: prices: loading\n"
    assert server.get("/shop/load").status == 204
    assert workers_not_ready() == [("shop", "prices", 1, "loading")] and server.get("/readyz").status == 503, "one worker is not ready"
    group, = [pid for pid in proc.children(server.pid) if proc.name(pid) == "monkey: keeper"]
    os.kill(group, signal.SIGSTOP)
    for pid in proc.children(*proc.children(group)):
        os.kill(pid, signal.SIGKILL)
    master, = proc.children(group)
    os.kill(master, signal.SIGKILL)
    wait_until(lambda: server.get("/readyz").text == "not ready: shop: not serving\n", "the group is gone")
    assert ("shop", "shop", None, "not serving") in workers_not_ready()
    os.kill(group, signal.SIGCONT)
    wait_until(lambda: workers_not_ready() == [("shop", "prices", 2, "loading")], "both workers of the new group count from 0")
    assert server.get("/readyz").text == "not ready: prices: loading\n"
    server.allow("killed by signal", "was killed")
