# SPDX-License-Identifier: Apache-2.0
"""Upstream metrics of the metrics plugin."""
import os
import signal
import socket

import pytest

import browser
from backend import Backend
from upstream_group import ROUTES, HoldingBackend, open_requests, group
from metering import starter, status
from monkey import ROOT
from proc import wait_until
from prometheus import parse
from shell_server import socket_folder

OTHER_PLUGIN = ROOT / "build" / "dev" / "tests" / "plugins" / "monkey-fails_in_phase.so"
NAMES = {f"monkey_upstream_{name}" for name in ("up", "connections", "waiting", "requests_total", "failures_total",
                                                "checks_total", "checks_failed_total", "latency_seconds", "ejections_total", "check_reason")}
CHECKED = "HealthCheck /health\nHealthInterval 1s"  # a check on a busy machine may take long


@pytest.fixture
def start(monkey, site):
    run = starter(monkey, site)

    def begin(*backends, keys="", **how):
        return run(plugins=["proxy"], top=group(*backends, keys=keys), sections=ROUTES, **how)

    return begin


@pytest.fixture
def backend():
    with Backend() as each:
        yield each


def shown(server, upstream=None, **wanted):
    """Returns the metrics of a server, once they have the expected values."""
    def look():
        numbers = parse(server.get("/metrics").text)
        labels = {"server": upstream} if upstream else {}
        found = {name.removeprefix("monkey_upstream_").removesuffix("_total"): numbers[name, labels]
                 for name in NAMES - {"monkey_upstream_connections"}}
        for state in ("busy", "idle"):
            found[state] = numbers["monkey_upstream_connections", {"state": state} | labels]
        return found if wanted.items() <= found.items() else None

    return wait_until(look, f"{upstream or 'the server'} with {wanted}")


def listed(server, *wanted):
    """Returns the metrics as JSON, once the servers have these values, in this order."""
    def look():
        entries = status(server)["upstreams"]
        fits = len(entries) == len(wanted) and all(w.items() <= e.items() for w, e in zip(wanted, entries))
        return entries if fits else None

    return wait_until(look, f"servers with {wanted}")


def test_metrics_without_upstreams_have_no_series(monkey, site):
    server = starter(monkey, site)()
    assert "monkey_upstream" not in server.get("/metrics").text
    assert "upstreams" not in status(server)


@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_of_available_server_have_all_values(start, backend, workers):
    server = start(backend, keys="MaxConnections 7", workers=workers)
    parse(server.get("/metrics").text)
    for _ in range(5):
        assert server.get("/api/x").status == 200
    seen = shown(server, backend.address, busy=0)
    assert (seen["up"], seen["requests"], seen["failures"], seen["waiting"]) == (1, 5, 0, 0)
    assert 1 <= seen["idle"] <= workers and 0 < seen["latency_seconds"] < 20
    assert (seen["checks"], seen["checks_failed"]) == (0, 0)
    numbers = parse(server.get("/metrics").text)
    assert {name for name in numbers.families if name.startswith("monkey_upstream_")} == NAMES
    assert numbers.all("monkey_upstream_up") == [({"upstream": "group", "server": backend.address}, 1)]
    assert "average" in numbers.families["monkey_upstream_latency_seconds"][1]
    (entry,) = listed(server, {"busy": 0})
    assert 0 < entry.pop("latency_us") < 20e6 and entry.pop("idle") >= 1
    assert entry == {"upstream": "group", "server": backend.address, "state": "up", "backup": 0, "weight": 1, "busy": 0,
                     "limit": 7, "waiting": 0, "requests": 5, "failures": 0, "checks": 0, "checks_failed": 0, "reason": "-"}


def test_metrics_of_unused_server_have_no_latency(start, backend):
    server = start(backend)
    numbers = parse(server.get("/metrics").text)
    assert numbers.all("monkey_upstream_latency_seconds") == []
    assert numbers["monkey_upstream_up"] == 1


def test_metrics_of_failing_health_check_recover(start, backend):
    with Backend() as other:
        server = start(backend, other, keys=CHECKED)
        listed(server, {"server": backend.address, "state": "up"}, {"server": other.address, "state": "up"})
        address = backend.listening.getsockname()
        backend.stop()
        seen = shown(server, backend.address, up=0)
        assert seen["checks"] >= seen["checks_failed"] >= 1
        listed(server, {"server": backend.address, "state": "down"}, {"server": other.address, "state": "up"})
        shown(server, other.address, up=1)
        with Backend(at=address):
            assert shown(server, backend.address, up=1)["checks"] > seen["checks"]


def test_metrics_count_failed_requests(start, backend):
    server = start(backend, keys="MaxFails 1\nHoldDown 1h")
    backend.stop()
    assert server.get("/api/x").status == 502
    assert shown(server, up=0)["failures"] >= 1
    listed(server, {"state": "down"})


def test_metrics_of_unresolved_name_are_down(start):
    server = start("nowhere.invalid:80", keys=CHECKED)
    server.get("/api/x")
    assert shown(server, up=0)["latency_seconds"] == 0
    listed(server, {"state": "unresolved"})


def test_metrics_count_waiting_requests(start):
    with HoldingBackend() as backend:
        server = start(backend, keys="MaxConnections 1")
        with open_requests(server, 4) as clients:
            seen = shown(server, waiting=3)
            assert (seen["busy"], seen["idle"]) == (1, 0)
            listed(server, {"waiting": 3, "busy": 1, "limit": 1})
            backend.release()
            assert [c.read().text for c in clients] == ["late"] * 4
        assert shown(server, waiting=0, busy=0)["requests"] == 4


def test_metrics_show_backup_and_weight(start, backend):
    server = start(f"{backend.address} weight=3", "127.0.0.1:1 backup")
    assert [(e["server"], e["weight"], e["backup"]) for e in status(server)["upstreams"]] == [
        (backend.address, 3, False), ("127.0.0.1:1", 1, True)]


def test_metrics_ignore_upstreams_of_rejected_configuration(start, backend):
    server = start(backend, keys="MaxConnections 5")
    text, (before,) = server.config.read_text(), status(server)["upstreams"]
    line = f"    Server {backend.address}\n"
    assert line in text
    server.config.write_text(text.replace("MaxConnections 5", "MaxConnections 9").replace(
        line, f"{line[:-1]} weight=3\n    Server 127.0.0.1:1\n") + "    /mistake nonsense\n")
    server.tell(signal.SIGHUP)
    server.err.wait_for("nonsense")
    assert status(server)["upstreams"] == [before]


@pytest.mark.parametrize("failure", ["master", "worker"])
def test_metrics_keep_upstreams_when_reload_fails(monkey, site, backend, failure):
    """Another plugin fails to start after the new servers were added to the statistics table: the old servers stay listed."""
    run = starter(monkey, site)
    server = run(plugins=["proxy", OTHER_PLUGIN], top=group(backend, keys="MaxConnections 5") + "[FAIL]\n    What nothing\n", sections=ROUTES)
    text, (before,) = server.config.read_text(), status(server)["upstreams"]
    server.config.write_text(text.replace(f"Server {backend.address}", "Server 127.0.0.1:1").replace("What nothing", f"What {failure}"))
    server.allow("cannot start", "exited unexpectedly")
    server.tell(signal.SIGHUP)
    server.err.wait_for("keeping the old")
    wait_until(lambda: status(server)["upstreams"] == [before], "only the servers of the old configuration")


def test_metrics_drop_servers_removed_by_reload(start, backend):
    server = start(backend, "127.0.0.1:1")
    assert server.get("/api/x").status == 200
    server.config.write_text(server.config.read_text().replace("    Server 127.0.0.1:1\n", ""))
    server.tell(signal.SIGHUP)
    wait_until(lambda: [e["server"] for e in status(server)["upstreams"]] == [backend.address], "one server")
    assert len(parse(server.get("/metrics").text).all("monkey_upstream_up")) == 1
    assert shown(server)["requests"] == 1


def test_metrics_server_names_are_not_truncated(start, socket_folder):
    stem = f"{socket_folder}/{'a' * (90 - len(str(socket_folder)))}\u00e9"
    with Backend(family=socket.AF_UNIX, at=stem + "1") as a, Backend(family=socket.AF_UNIX, at=stem + "2") as b:
        server = start(a, b)
        for _ in range(2):
            assert server.get("/api/x").status == 200
        names = [labels["server"] for labels, _ in parse(server.get("/metrics").text).all("monkey_upstream_up")]
    assert names == [f"unix:{stem}{n}" for n in (1, 2)]
    assert [e["server"] for e in status(server)["upstreams"]] == names


def test_metrics_of_dead_worker_keep_counters_and_reset_gauges(start):
    with HoldingBackend() as backend:
        server = start(backend, keys="MaxConnections 1", workers=1)
        with open_requests(server, 3):
            assert shown(server, waiting=2)["busy"] == 1
            server.allow("was killed by signal")
            os.kill(server.workers[0], signal.SIGKILL)
            seen = shown(server, waiting=0, busy=0, idle=0)
            assert seen["requests"] >= 1 and seen["up"] == 1


# ---- The page ----


@pytest.fixture
def page(tmp_path):
    if not browser.FOUND:
        pytest.skip("no chromium here")
    with browser.Browser(tmp_path) as found:
        yield found


ROWS = "[...document.querySelectorAll('#upstreams tbody tr')].map(r => [...r.cells].map(c => c.innerText))"
COLORS = ("Object.fromEntries([...document.querySelectorAll('#upstreams .dot')].map(c =>"
           " [c.innerText, [getComputedStyle(c).color, getComputedStyle(c, '::before').borderTopColor]]))")


def test_live_page_without_upstreams_has_no_table(monkey, site, page):
    server = starter(monkey, site)()
    page.goto(server.url + "/live")
    page.wait_for("!document.querySelector('main').hidden")
    assert page.run("document.querySelector('#upstreams').getClientRects().length") == 0
    assert not page.console


@pytest.mark.parametrize("look", [pytest.param(dict(), id="light"), pytest.param(dict(dark=True), id="dark"),
                                  pytest.param(dict(width=390, height=800, mobile=True), id="phone")])
def test_live_page_upstream_table_is_complete(start, backend, page, look):
    with HoldingBackend() as slow:
        server = start(backend, slow, "127.0.0.1:1 backup", keys=CHECKED.replace("/health", "connect") + "\nMaxConnections 1")
        page.look(**look)
        with open_requests(server, 4) as clients:
            page.goto(server.url + "/live")
            page.wait_for(f"(r => r.map(row => row[1].split(/[,\\s]/)[0]) == 'up,up,down' && r[1][2] == '1')({ROWS})")
            rows = page.run(ROWS)
            colors = page.run(COLORS)
            wide = "document.querySelector('.wide:has(#upstreams)')"
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), "no horizontal scrolling"
            assert page.run(f"getComputedStyle({wide}).backgroundAttachment") == "local, local, scroll, scroll", "scroll shadow"
            assert page.run(f"{wide}.scrollWidth > {wide}.clientWidth") == bool(look.get("mobile"))
            slow.release()
            assert [c.read().status for c in clients] == [200] * 4
        assert [[*row[:2], row[9]] for row in rows] == [[backend.address, "up", "group"], [slow.address, "up", "group"],
                                                        ["127.0.0.1:1 (backup)", "down, check: refused", "group"]]
        assert [row[8] for row in rows] == ["1", "1", "1"] and rows[2][3] == "–"
        assert colors["up"][0] == colors["up"][1] != colors["down, check: refused"][0] == colors["down, check: refused"][1]
        page.wait_for(f"(row => row[2] == '0' && row[7] == '1')({ROWS}[1])")
        assert not page.console
