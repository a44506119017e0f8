# SPDX-License-Identifier: Apache-2.0
"""The kv package in services: workers share one store, writes are durable, and limits and configuration errors are
reported."""
import concurrent.futures
import contextlib
import os
import shutil
import signal
import threading

import pytest

import client
import prometheus
import services
from monkey import NOT_STARTED, needs_processes
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("kv"), reason="this build has no LMDB")

SOURCE = r"""
#define DUDA_USE "duda-kv"
#include <duda.h>
#include <duda/kv.h>
#include <errno.h>
#include <stdlib.h>

static int answer(int e)
{
    if (e == -ENOENT)
        return 404;
    if (e == -ESTALE)
        return 409;
    if (e == -ENOSPC)
        return 507;
    return e;
}

static int get(struct duda_ctx *d)
{
    mk_str value;
    int e = duda_kv_get(d, duda_kv_find(d, NULL), duda_param(d, "key"), &value);
    return e ? answer(e) : duda_write(d, value);
}

static int put(struct duda_ctx *d)
{
    mk_str value;
    int64_t ttl = 0;
    int e = duda_read_all(d, DUDA_KV_VALUE_MAX + 1, &value);
    duda_query_int(d, "ttl", &ttl);
    return e ? e : answer(duda_kv_set(d, duda_kv_find(d, NULL), duda_param(d, "key"), value, (uint64_t)ttl));
}

static int drop(struct duda_ctx *d)
{
    return answer(duda_kv_delete(d, duda_kv_find(d, NULL), duda_param(d, "key")));
}

static int count(struct duda_ctx *d)
{
    int64_t n = 0;
    int e = duda_kv_incr(d, duda_kv_find(d, NULL), duda_param(d, "key"), 1, 0, &n);
    return e ? e : duda_printf(d, "%lld %u", (long long)n, mk_worker_index(duda_worker(d)));
}

/* Increments a number by compare-and-swap, and retries whenever another handler interferes. */
static int swap(struct duda_ctx *d)
{
    struct duda_kv *kv = duda_kv_find(d, NULL);
    mk_str key = duda_param(d, "key"), old;
    int e;
    do {
        e = duda_kv_get(d, kv, key, &old);
        if (e == -ENOENT)
            old = MK_STR_NULL;
        else if (e)
            return e;
        mk_str next = duda_sprintf(d, "%d", old.p ? atoi(old.p) + 1 : 1);
        e = duda_kv_compare_and_set(d, kv, key, old, next, 0);
    } while (e == -ESTALE);
    return e;
}

static int transfer(struct duda_ctx *d)
{
    struct duda_kv *kv = duda_kv_find(d, NULL);
    struct duda_kv_batch *b = duda_kv_batch_begin(kv);
    duda_kv_batch_expect(b, MK_STR("from"), MK_STR("1"));
    duda_kv_batch_delete(b, MK_STR("from"));
    duda_kv_batch_set(b, MK_STR("to"), MK_STR("1"), 0);
    return answer(duda_kv_batch_commit(d, b));
}

static bool each(void *ctx, mk_str key, mk_str value)
{
    return duda_printf(ctx, "%.*s=%.*s\n", MK_STR_ARG(key), MK_STR_ARG(value)) == 0;
}

static int list(struct duda_ctx *d)
{
    return duda_kv_scan(d, duda_kv_find(d, NULL), duda_param(d, "prefix"), duda_query(d, "after"), each, d);
}

static int other(struct duda_ctx *d)
{
    mk_str value;
    if (duda_kv_find(d, "none") || !duda_kv_find(d, "main") || !duda_kv_find(d, "cache"))
        return 500;
    int e = duda_kv_set(d, duda_kv_find(d, "cache"), MK_STR("k"), MK_STR("v"), 0);
    return e ? e : duda_kv_get(d, duda_kv_find(d, "main"), MK_STR("k"), &value) == -ENOENT ? 200 : 500;
}

DUDA_SERVICE(store,
    DUDA_GET("/e/:key", get, "Reads."),
    DUDA_PUT("/e/:key", put, "Writes."),
    DUDA_DELETE("/e/:key", drop, "Removes."),
    DUDA_POST("/count/:key", count, "Counts."),
    DUDA_POST("/swap/:key", swap, "Counts by compare-and-swap."),
    DUDA_POST("/transfer", transfer, "All or nothing."),
    DUDA_GET("/list/:prefix", list, "Lists."),
    DUDA_GET("/other", other, "Two stores."));
"""
SECTIONS = "[KV]\n    Folder data\n    MaxSize 16M\n[KV]\n    Name cache\n    Folder cache\n    Sync off\n"


def prepare(monkey, site):
    folder = site.path.parent
    service = services.build(folder, "store", SOURCE, packages=["kv"])
    monkey(plugins=[service], top=SECTIONS, workers=2, server="MaxBodySize 2M")


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def put(server, key, value, query=""):
    return server.get(f"/e/{key}{query}", method="PUT", body=value).status


def test_entries_are_set_read_and_deleted_within_limits(server):
    assert put(server, "a", b"one") == 204
    assert server.get("/e/a").text == "one"
    assert server.get("/e/a", method="DELETE").status == 204
    assert server.get("/e/a").status == 404
    assert server.get("/e/a", method="DELETE").status == 404
    assert put(server, "empty", b"") == 204
    assert server.get("/e/empty").status == 200
    assert put(server, "big", b"x" * (1 << 20)) == 204
    assert len(server.get("/e/big").text) == 1 << 20
    assert put(server, "big", b"x" * ((1 << 20) + 1)) == 413
    assert put(server, "k" * 481, b"x") == 500


def test_entries_expire(server):
    assert put(server, "brief", b"x", "?ttl=1") == 204
    wait_until(lambda: server.get("/e/brief").status == 404, "the entry has expired")
    assert put(server, "lasts", b"x", "?ttl=3600000") == 204
    assert server.get("/e/lasts").text == "x"


def test_counters_are_shared_between_workers(server):
    workers = set()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [job.result().text.split() for job in [pool.submit(server.get, "/count/n", method="POST") for _ in range(200)]]
        workers = {worker for _, worker in answers}
        assert sorted(int(n) for n, _ in answers) == list(range(1, 201))
        list(pool.map(lambda _: server.get("/swap/s", method="POST"), range(60)))
    assert workers <= {"0", "1"}
    assert (server.get("/e/n").text, server.get("/e/s").text) == ("200", "60")


def test_batch_is_atomic(server):
    assert put(server, "from", b"1") == 204
    assert server.get("/transfer", method="POST").status == 204
    assert (server.get("/e/from").status, server.get("/e/to").text) == (404, "1")
    assert server.get("/transfer", method="POST").status == 409


def test_list_returns_keys_with_a_prefix_in_order(server):
    for key in ("list-b", "list-a", "list-c", "lisu"):
        assert put(server, key, key[-1:].encode()) == 204
    assert server.get("/list/list-").text == "list-a=a\nlist-b=b\nlist-c=c\n"
    assert server.get("/list/list-?after=list-a").text == "list-b=b\nlist-c=c\n"


def test_stores_are_separate(server):
    assert server.get("/other").status == 200


def test_full_store_answers_507(server):
    statuses = []
    for i in range(40):
        statuses.append(put(server, f"full-{i}", b"x" * 900_000))
    assert set(statuses) == {204, 507}
    assert server.get("/e/full-0").status == 200
    for i in range(40):
        assert server.get(f"/e/full-{i}", method="DELETE").status in (204, 404)
    assert put(server, "after", b"x") == 204


def test_acknowledged_writes_survive_a_killed_worker(monkey, site):
    folder = site.path.parent
    server = monkey(plugins=[services.build(folder, "store", SOURCE, packages=["kv"])], top=SECTIONS, workers=1)
    server.allow("was killed by signal")
    for round_ in range(3):
        for i in range(10):
            assert put(server, f"n{round_}-{i}", b"x") == 204
        worker = server.workers[0]
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda gone=worker: server.workers and gone not in server.workers, "a new worker has started")
    assert [server.get(f"/e/n{r}-{i}").text for r in range(3) for i in range(10)] == ["x"] * 30


def test_kv_calls_are_counted(monkey, site):
    """The metrics count the calls of a service to its stores, and the failed ones among them."""
    service = services.build(site.path.parent, "store", SOURCE, packages=["kv"])
    server = monkey(plugins=["metrics", service], top=f"{SECTIONS}[METRICS]\n    Metrics /metrics\n", workers=2)
    for i in range(20):
        assert put(server, f"m{i}", b"x") == 204
        assert server.get(f"/e/m{i}").text == "x"
    assert server.get("/e/none").status == 404
    assert put(server, "k" * 481, b"x") == 500
    server.allow("answered -EINVAL")
    numbers = prometheus.parse(server.get("/metrics").text)
    main = {"package": "kv", "section": "main"}
    assert numbers["monkey_package_calls_total", main] == 42
    assert numbers["monkey_package_failures_total", main] == 1
    assert numbers["monkey_package_waiting", main] == 0
    assert numbers["monkey_package_seconds_total", main] > 0
    assert numbers["monkey_package_calls_total", {"package": "kv", "section": "cache"}] == 0


@pytest.mark.processes("an embedded server has no worker processes")
def test_kill_during_writes_loses_no_acknowledged_write(monkey, site):
    """Clients write while first the workers and then the whole server are killed: every acknowledged write survives."""
    folder = site.path.parent
    service = services.build(folder, "store", SOURCE, packages=["kv"])

    def start():
        server = monkey(plugins=[service], top=SECTIONS, workers=2)
        server.allow("was killed by signal")
        return server

    def write(server, name, kept, is_over):
        for i in range(100_000):
            if is_over.is_set():
                return
            with contextlib.suppress(OSError, client.Closed, client.BadReply):
                if put(server, f"{name}-{i}", f"{name} {i}".encode() * 20) == 204:
                    kept.append(i)

    kept = {f"w{round_}{i}": [] for round_ in range(3) for i in range(4)}
    server = start()
    for round_ in range(3):
        mine = [kept[f"w{round_}{i}"] for i in range(4)]
        is_over = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for i in range(4):
                pool.submit(write, server, f"w{round_}{i}", mine[i], is_over)
            wait_until(lambda mine=mine: all(len(numbers) >= 10 for numbers in mine), "all clients write")
            if round_ < 2:
                gone = server.workers
                for pid in gone:
                    os.kill(pid, signal.SIGKILL)
                wait_until(lambda gone=gone: server.workers and not set(server.workers) & set(gone), "new workers have started")
                n = [len(numbers) for numbers in mine]
                wait_until(lambda mine=mine, n=n: all(len(numbers) > before for numbers, before in zip(mine, n)), "all write again")
            else:
                server.exit_code = -signal.SIGKILL
                for pid in (server.pid, *server.workers):
                    os.kill(pid, signal.SIGKILL)
            is_over.set()
    server = start()
    for name, numbers in kept.items():
        assert numbers
        for i in numbers:
            assert server.get(f"/e/{name}-{i}").text == f"{name} {i}" * 20


MISTAKES = [
    ("[KV]\n    MaxSize 16M\n", "[KV] has no Folder"),
    ("[KV]\n    Folder a\n[KV]\n    Folder b\n", "another [KV] already has the Name `main`"),
    ("[KV]\n    Folder a\n[KV]\n    Folder a\n    Name other\n", "another [KV] already has this folder"),
    ("[KV]\n    Folder a\n    MaxSize 1K\n", "`1K` is too small"),
]


@pytest.mark.parametrize("section, message", MISTAKES, ids=[message for _, message in MISTAKES])
def test_kv_section_rejects_invalid_keys(run, tmp_path, section, message):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-kv\n{section}[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and message in done.err


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can change the owner of a folder")
def test_failed_start_leaves_no_folder_of_the_master(monkey, site):
    """A failed start removes the folder that it created. Otherwise root would still own the folder, and the workers of later
    starts could not write to it: a start does not change the owner of an existing folder."""
    needs_processes("it has no master")
    server = monkey(plugins=["duda-kv"], top="[KV]\n    Folder data\n", server="User nobody", expect_start=False,
                    wrapper=["setpriv", "--bounding-set", "-chown"])
    server.exit_code = NOT_STARTED
    server.wait()
    assert "data to the user of the workers" in server.log
    assert not (site.path.parent / "data").exists()
