# SPDX-License-Identifier: Apache-2.0
"""Request counts and durations of service routes: in Prometheus format, as JSON, in the shell, and on the live page."""
import pytest

import browser
import services
from client import Client
from metering import KEYS, status
from proc import wait_until
from prometheus import parse
from shell_server import ShellServer, socket_folder  # noqa: F401

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

LONG = "/" + "long" * 60

SOURCE = r"""
#include <duda.h>
#include <errno.h>

static int item(struct duda_ctx *d)
{
    return duda_puts(d, "an item\n");
}

static int slow(struct duda_ctx *d)
{
    return duda_sleep(d, 30) ? 503 : 204;
}

static int wrong(struct duda_ctx *d)
{
    (void)d;
    return -EIO;
}

static int patient(struct duda_ctx *d)
{
    int e = duda_flush(d);
    return e ? e : duda_sleep(d, 3600000);
}

DUDA_SERVICE(shop, DUDA_GET("/items/:id", item, ""), DUDA_POST("/slow", slow, ""), DUDA_GET("/wrong", wrong, ""),
             DUDA_GET("/patient", patient, ""), DUDA_ANY("/any\"quoted\"", item, ""), DUDA_GET("LONG/a", item, ""),
             DUDA_GET("LONG/b", item, ""));
""".replace("LONG", LONG)


@pytest.fixture
def shop(monkey, tmp_path, socket_folder):  # noqa: F811
    socket = socket_folder / "sock"
    server = monkey(plugins=["metrics", "cheetah", services.build(tmp_path, "shop", SOURCE)], workers=2,
                    top=f"{KEYS}[CHEETAH]\n    Socket {socket}\n")
    for i in range(20):
        assert server.get(f"/items/{i}").status == 200
    assert [server.get("/slow", "POST").status, server.get("/wrong").status] == [204, 500]
    with Client(server.addresses[0]) as client:
        client.ask("/patient")
        client.read_head()
    return ShellServer(server, socket)


def counts(server, name, **labels):
    return parse(server.get("/metrics").text)[f"monkey_route_{name}", labels]


def test_routes_count_requests_failures_and_durations(shop):
    server = shop.server
    wait_until(lambda: counts(server, "cancelled_total", route="/patient") == 1, "the client has disconnected")
    numbers = parse(server.get("/metrics").text)
    requests = {tuple(labels[k] for k in ("service", "method", "route")): n for labels, n in numbers.all("monkey_route_requests_total")}
    assert requests["shop", "GET", "/items/:id"] == 20 and requests["shop", "POST", "/slow"] == 1
    assert requests["shop", "*", '/any"quoted"'] == 0
    assert len([1 for service, _, route in requests if route.startswith("/longlong")]) == 2, "truncated names differ"
    assert numbers["monkey_route_failures_total", {"route": "/wrong"}] == 1
    assert numbers["monkey_route_failures_total", {}] == 1
    assert numbers["monkey_route_duration_seconds_count", {"route": "/items/:id"}] == 20
    assert numbers["monkey_route_duration_seconds_sum", {"route": "/slow"}] >= 0.03
    assert numbers["monkey_route_duration_seconds_bucket", {"route": "/slow", "le": "0.024576"}] == 0
    assert numbers["monkey_route_duration_seconds_bucket", {"route": "/slow", "le": "+Inf"}] == 1

    (slow,) = [r for r in status(server)["routes"] if r["route"] == "/slow"]
    assert (slow["service"], slow["method"], slow["requests"], slow["failures"]) == ("shop", "POST", 1, 0)
    assert slow["p50_us"] == slow["p99_us"] >= 30000 and slow["mean_us"] >= 30000

    (item,) = [r for r in shop.json("routes") if r["route"] == "/items/:id"]
    assert (item["requests"], item["crashes"]) == (20, 0) and 0 < item["p50_us"] <= item["p99_us"]
    assert shop("routes").out.split()[:3] == ["service", "method", "route"]


@pytest.mark.skipif(not browser.FOUND, reason="no chromium here")
def test_live_page_shows_routes(shop, tmp_path):
    with browser.Browser(tmp_path) as page:
        page.goto(shop.server.url + "/live")
        page.wait_for("!document.querySelector('main').hidden && !document.querySelector('#routes-part').hidden")
        first = page.run("[...document.querySelector('#routes tbody tr').cells].map(c => c.innerText)")
        assert (first[0], first[1], first[3]) == ("GET /items/:id", "shop", "20")
        assert not page.console
