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
    assert workers_not_ready() == [("shop", "prices", 2, "loading")]
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
    wait_until(lambda: server.get("/readyz").text == "not ready: prices: loading\n", "the group serves again")
    assert workers_not_ready() == [("shop", "prices", 2, "loading")], "a new group counts from 0"
    server.allow("killed by signal", "was killed")
