# SPDX-License-Identifier: Apache-2.0
"""Metrics that services define: in Prometheus format, as JSON and in the shell, over workers, reloads and crashes, with
limits for label values."""
import json
import os
import re
import signal

import pytest

import services
from client import Client
from metering import KEYS, status
from proc import wait_until
from prometheus import parse
from shell_server import ShellServer, monkey_shell, socket_folder  # noqa: F401

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <unistd.h>

DUDA_COUNTER(orders, "orders_total", "Orders placed.", "country", "payment");
DUDA_COUNTER(plain, "visits_total", "Visits.");
DUDA_GAUGE(open_, "open", "Open requests.");
DUDA_GAUGE(waiting, "queue_length", "Jobs in the queue.", "queue");
DUDA_HISTOGRAM(items, "items", "Items of an order.");
DUDA_DURATION(checkout, "checkout_seconds", "Duration of a checkout.", "step");

static int order(struct duda_ctx *d)
{
    int64_t n;
    (void)duda_query_int_or(d, "n", 1, &n);
    duda_counter_add(d, &orders, 1, duda_query(d, "country"), MK_STR("card"));
    duda_counter_add(d, &plain, 2);
    duda_histogram_observe(d, &items, (uint64_t)n);
    duda_duration_observe_us(d, &checkout, (uint64_t)n * 1000, MK_STR("address"));
    return duda_printf(d, "%d\n", (int)getpid());
}

static int hold(struct duda_ctx *d)
{
    duda_gauge_add(d, &open_, 1);
    int e = duda_flush(d);
    e = e ? e : duda_sleep(d, 3600000);
    duda_gauge_add(d, &open_, -1);
    return e;
}

static int set(struct duda_ctx *d)
{
    int64_t n;
    (void)duda_query_int_or(d, "n", 0, &n);
    duda_gauge_set(d, &waiting, n, MK_STR("mail"));
    return 204;
}

static int below(struct duda_ctx *d)
{
    duda_gauge_add(d, &open_, -5);
    return 204;
}

static int wrong(struct duda_ctx *d)
{
    duda_counter_add(d, &orders, 1);
    duda_counter_add(d, &plain, 1, MK_STR("x"));
    return 204;
}

static int end(struct duda_ctx *d)
{
    (void)d;
    _exit(3);
}

DUDA_SERVICE(shop, DUDA_GET("/order", order), DUDA_GET("/hold", hold), DUDA_GET("/set", set), DUDA_GET("/below", below),
             DUDA_GET("/wrong", wrong), DUDA_GET("/end", end));
"""


@pytest.fixture
def shop(monkey, tmp_path, socket_folder):  # noqa: F811
    socket = socket_folder / "sock"
    server = monkey(plugins=["metrics", "cheetah", services.build(tmp_path, "shop", SOURCE)], workers=2,
                    top=f"{KEYS}[CHEETAH]\n    Socket {socket}\n")
    return ShellServer(server, socket)


def numbers(shop):
    return parse(shop.server.get("/metrics").text)


def order_in_all_workers(server, target="/order?country=de"):
    """Orders until both workers have counted, and returns the number of orders."""
    seen, n = set(), 0
    while len(seen) < 2 or n < 20:
        seen.add(server.get(target).text)
        n += 1
    return n


def test_metrics_are_summed_over_workers(shop):
    n = order_in_all_workers(shop.server)
    assert shop.server.get("/order?country=fr&n=9").status == 200
    got = numbers(shop)
    assert got.families["shop_orders_total"] == ("counter", "Orders placed.") and got.families["shop_items"][0] == "histogram"
    assert got["shop_orders_total", {"country": "de", "payment": "card"}] == n and got["shop_orders_total", {"country": "fr"}] == 1
    assert got["shop_visits_total", {}] == 2 * n + 2
    assert [got["shop_items_bucket", {"le": le}] for le in ("0", "1", "7", "11", "+Inf")] == [0, n, n, n + 1, n + 1]
    assert got["shop_items_sum"] == n + 9 and got["shop_items_count"] == n + 1
    assert got["shop_checkout_seconds_count", {"step": "address"}] == n + 1
    assert got["shop_checkout_seconds_sum", {"step": "address"}] == pytest.approx((n + 9) / 1000)
    assert [got["shop_checkout_seconds_bucket", {"le": le}] for le in ("0.000768", "0.001024", "0.012288")] == [0, n, n + 1]

    rows = status(shop.server)["shop_orders_total"]
    assert {(r["country"], r["payment"], r["value"]) for r in rows} == {("de", "card", n), ("fr", "card", 1)}
    rows = {(r["metric"], r["labels"]): r for r in shop.json("metrics")}
    assert rows["shop_orders_total", "country=de payment=card"]["value"] == n
    assert rows["shop_items", ""]["value"] == n + 1 and 1 <= rows["shop_items", ""]["p50"] <= 2
    assert [r["metric"] for r in shop.json("metrics", "shop_v")] == ["shop_visits_total"] and shop.json("metrics", "none") == []
    assert "shop_checkout_seconds" in shop("metrics").out and "No service has metrics with this prefix" in shop("metrics", "none").out


def test_gauges_of_workers_and_of_the_server(shop):
    with Client(shop.server.addresses[0]) as one, Client(shop.server.addresses[0]) as two:
        for client in (one, two):
            client.ask("/hold")
            client.read_head()
        assert numbers(shop)["shop_open"] == 2
        for n, expected in ((7, 7), (3, 3), (-1, 0), (3, 3)):
            assert shop.server.get(f"/set?n={n}").status == 204
            assert numbers(shop)["shop_queue_length", {"queue": "mail"}] == expected
    wait_until(lambda: numbers(shop)["shop_open"] == 0, "the clients have disconnected")
    shop.server.get("/below")
    assert numbers(shop)["shop_open"] == 0, "a gauge is never negative"


@pytest.mark.processes("workers that end")
def test_metrics_survive_reloads_and_workers(shop):
    n = order_in_all_workers(shop.server)
    with Client(shop.server.addresses[0]) as client:
        client.ask("/hold")
        client.read_head()
        assert numbers(shop)["shop_open"] == 1
        before = shop.server.workers
        shop.server.tell(signal.SIGHUP)
        wait_until(lambda: len(set(shop.server.workers) - set(before)) == 2, "new workers")
        assert numbers(shop)["shop_orders_total", {}] == n
    n += order_in_all_workers(shop.server)
    assert numbers(shop)["shop_orders_total", {"country": "de"}] == n
    wait_until(lambda: numbers(shop)["shop_open"] == 0, "the old worker has ended")


@pytest.mark.processes("workers that end")
def test_counters_of_a_dead_worker_stay(shop):
    n = order_in_all_workers(shop.server)
    clients = [Client(shop.server.addresses[0]) for _ in range(32)]  # so many that each worker gets one
    for client in clients:
        client.ask("/hold")
        client.read_head()
    assert numbers(shop)["shop_open"] == 32
    before = set(shop.server.workers)
    shop.server.allow("was killed by signal 9")
    os.kill(next(iter(before)), signal.SIGKILL)
    wait_until(lambda: set(shop.server.workers) != before and numbers(shop)["shop_open"] < 32, "the part of the worker disappears")
    assert numbers(shop)["shop_orders_total", {}] == n
    for client in clients:
        client.close()


def test_clients_cannot_create_series_without_limit(shop):
    for i in range(600):
        assert shop.server.get(f"/order?country=c{i}").status == 200
    got = numbers(shop).all("shop_orders_total")
    assert 100 < len(got) <= 140 and sum(value for _, value in got) == 600
    assert [value for labels, value in got if labels == {"country": "other", "payment": "other"}][0] > 400
    for value in ("%00%01%22%5C%0A", "%ff%fe", "x" * 500, "", "%C3%A4" * 60):
        assert shop.server.get("/order?country=" + value).status == 200
    numbers(shop)
    lines = re.findall(r"\[warn\] .*the metric `orders_total` \(.*shop.c:5\) has more than 128 combinations", shop.server.log)
    assert 1 <= len(lines) <= 2, "once in each worker"


def test_label_values_are_valid_text(shop):
    for value in ("%00%01%22%5C%0A", "%ff%fe", "x" * 500, "%C3%A4" * 60):
        assert shop.server.get("/order?country=" + value).status == 200
    found = {labels["country"] for labels, _ in numbers(shop).all("shop_orders_total")}
    assert found == {'??"\\?', "??", "x" * 96, "ä" * 48}
    assert {r["country"] for r in status(shop.server)["shop_orders_total"]} == {'??"\\?', "??", "x" * 96, "ä" * 48}


def test_wrong_number_of_labels_is_reported_once(shop):
    for _ in range(10):
        assert shop.server.get("/wrong").status == 204
    lines = re.findall(r"\[error\] .*`orders_total` \(.*shop.c:5\) has 2 labels, but a call passes 0: not counted", shop.server.log)
    assert 1 <= len(lines) <= 2 and "`visits_total`" in shop.server.log
    assert "shop_orders_total" not in shop.server.get("/metrics").text


@pytest.mark.processes("it starts no group of processes")
def test_metrics_of_an_isolated_service(monkey, site, tmp_path):
    """The metrics are counted in the group, and the shell of the group shows them."""
    (tmp_path / "shop.conf").write_text("[PLUGINS]\n    Load cheetah\n[CHEETAH]\n    Socket ./shell.sock\n")
    tmp_path.chmod(0o755)
    server = monkey(plugins=["isolate"], root=None, host=None,
                    top=f"[ISOLATE]\n    Service {services.build(tmp_path, 'shop', SOURCE)}\n    Include shop.conf\n",
                    sections=f"[HOST]\n    DocumentRoot {site}\n[ROUTES]\n    /shop/* isolate shop\n")
    for _ in range(3):
        assert server.get("/shop/order?country=de").status == 200
    rows = json.loads(monkey_shell(tmp_path / "shell.sock", "--json", "metrics", "shop_orders").out)
    assert [(r["labels"], r["value"]) for r in rows] == [("country=de payment=card", 3)]


@pytest.mark.parametrize("metric, problem", [
    ('DUDA_COUNTER(m, "orders", "Help.")', "the name of a counter must end in `_total`"),
    ('DUDA_DURATION(m, "work", "Help.")', "the name of a duration must end in `_seconds`"),
    ('DUDA_GAUGE(m, "a-b", "Help.")', "its name must consist of letters, digits and `_`"),
    ('DUDA_GAUGE(m, "' + "x" * 60 + '", "Help.")', "at most 63 characters including the name of the service"),
    ('DUDA_GAUGE(m, "g", "")', "its help must be one line of 1 to 159 characters"),
    ('DUDA_GAUGE(m, "g", "a\\nb")', "its help must be one line"),
    ('DUDA_GAUGE(m, "g", "Help.", "le")', "a label needs a name of 1 to 15 letters"),
    ('DUDA_GAUGE(m, "g", "Help.", "a", "a")', "two labels have the same name"),
    ('DUDA_GAUGE(m, "g", "Help."); DUDA_GAUGE(n, "g", "Help.")', "another metric has this name"),
])
def test_wrong_declarations_are_errors(run, tmp_path, metric, problem):
    source = f"#include <duda.h>\n{metric};\nstatic int hello(struct duda_ctx *d) {{ return duda_puts(d, \"hello\"); }}\n" \
             "DUDA_SERVICE(shop, DUDA_GET(\"/\", hello));\n"
    plugin = services.build(tmp_path, "shop", source)
    config = tmp_path / "monkey.conf"
    config.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda\n    Load {plugin}\n[HOST]\n    DocumentRoot {tmp_path}\n")
    done = run("-t", "-c", config)
    assert done.code != 0 and problem in done.err + done.out and "shop.c:2" in done.err + done.out, done
