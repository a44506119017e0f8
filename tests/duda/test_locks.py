# SPDX-License-Identifier: Apache-2.0
"""Handlers acquire locks in FIFO order; a lock is released however its handler ends."""
import contextlib

import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

/* Holds the lock until the request body ends. */
static int hold(struct duda_ctx *d)
{
    int64_t ms = MK_FOREVER;
    mk_str who = duda_param(d, "who"), text;
    duda_query_int(d, "ms", &ms);
    duda_log(d, MK_LOG_WARN, "%s asks", who.p);
    int e = duda_lock(d, duda_param(d, "name"), (uint32_t)ms);
    duda_log(d, MK_LOG_WARN, "%s gets %d", who.p, e);
    if (e == -ETIME)
        return duda_puts(d, "late");
    if (!e)
        e = duda_read_all(d, 100, &text);
    return e ? e : duda_printf(d, "%s %.*s", who.p, MK_STR_ARG(text));
}

static void at_end(void *ctx)
{
    struct duda_ctx *d = ctx;
    duda_log(d, MK_LOG_WARN, "still has it: %d", duda_lock(d, MK_STR("mine"), 0) == -EDEADLK);
}

static int rules(struct duda_ctx *d)
{
    char buffer[DUDA_LOCK_NAME_MAX + 1];
    memset(buffer, 'x', sizeof buffer);
    mk_str longest = mk_str_of(buffer, DUDA_LOCK_NAME_MAX), longer = mk_str_of(buffer, DUDA_LOCK_NAME_MAX + 1);
    int e = duda_lock(d, MK_STR("mine"), MK_FOREVER);
    if (e || duda_defer(d, at_end, d))
        return 500;
    int all[10], n = 0;
    all[n++] = duda_lock(d, MK_STR("mine"), MK_FOREVER);
    all[n++] = duda_lock(d, MK_STR("mine"), 0);
    all[n++] = duda_lock(d, MK_STR("other"), MK_FOREVER);
    all[n++] = duda_unlock(d, MK_STR("other"));
    all[n++] = duda_unlock(d, MK_STR("other"));
    all[n++] = duda_lock(d, MK_STR(""), 0);
    all[n++] = duda_lock(d, longer, 0);
    all[n++] = duda_lock(d, longest, 0);
    all[n++] = duda_unlock(d, MK_STR(""));
    all[n++] = duda_lock(d, MK_STR("held"), 0);
    for (int i = 0; i < n && !e; i++)
        e = duda_printf(d, "%d ", all[i]);
    return e;
}

static int stubborn(struct duda_ctx *d)
{
    int e = duda_lock(d, MK_STR("stubborn"), MK_FOREVER);
    duda_log(d, MK_LOG_WARN, "stubborn has it: %d", e);
    while (e != 1)
        e = duda_lock(d, MK_STR("held"), MK_FOREVER);
    return e;
}

/* Acquires two locks, the second one after other handlers have their first. */
static int both(struct duda_ctx *d)
{
    int e = duda_lock(d, duda_param(d, "a"), MK_FOREVER);
    e = e ? e : duda_sleep(d, 300);
    e = e ? e : duda_lock(d, duda_param(d, "b"), MK_FOREVER);
    return e == -EDEADLK ? duda_puts(d, "deadlock\n") : e ? e : duda_puts(d, "both\n");
}

DUDA_SERVICE(locks, DUDA_GET("/both/:a/:b", both), DUDA_POST("/hold/:name/:who", hold, ""), DUDA_GET("/rules", rules, ""), DUDA_GET("/stubborn", stubborn, ""));
"""


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def prepare(monkey, site):
    monkey(plugins=[services.build(site.path.parent, "locks", SOURCE)], workers=1)


@contextlib.contextmanager
def queued(server, name, client_name, query=""):
    """Yields a client whose handler waits in the queue of the lock."""
    with server.connect() as client:
        client.ask(f"/hold/{name}/{client_name}{query}", "POST", streamed=True)
        server.err.wait_for(f"{client_name} asks ")
        yield client


def end(client, text):
    client.more(text)
    client.done()
    return client.read().text


def test_lock_is_acquired_in_fifo_order(server):
    with queued(server, "order", "a1") as first, queued(server, "order", "a2") as second, queued(server, "order", "a3") as third:
        with queued(server, "another", "a4") as other:
            assert end(other, b"free") == "a4 free"
        third.more(b"in ")
        assert "a2 gets" not in server.err.text
        assert end(first, b"one") == "a1 one"
        server.err.wait_for("a2 gets 0 ")
        assert "a3 gets" not in server.err.text
        assert end(second, b"two") == "a2 two"
        assert end(third, b"turn") == "a3 in turn"


def test_client_disconnect_releases_the_lock_or_leaves_the_queue(server):
    with queued(server, "leave", "b1") as first, queued(server, "leave", "b2") as second, queued(server, "leave", "b3") as third:
        second.close()
        server.err.wait_for("b2 gets -125 ")  # -125 is ECANCELED
        assert "b3 gets" not in server.err.text
        first.close()  # the first handler releases the lock
        server.err.wait_for("b3 gets 0 ")
        assert end(third, b"three") == "b3 three"


def test_lock_wait_times_out(server):
    with queued(server, "limit", "c1") as first:
        with queued(server, "limit", "c2", "?ms=1") as second:
            assert end(second, b"") == "late"
        assert end(first, b"one") == "c1 one"


def test_lock_functions_reject_misuse(server):
    with queued(server, "held", "d1"):
        server.err.wait_for("d1 gets 0 ")
        assert server.get("/rules").text == "-35 -35 0 0 -1 -22 -22 0 -1 -16 "
    server.err.wait_for("still has it: 1 ")
    server.get("/rules")
    server.err.wait_for("still has it: 1 ", count=2)


def test_terminated_handler_releases_its_lock(server):
    with queued(server, "held", "e1"), server.connect() as stubborn:
        server.err.wait_for("e1 gets 0 ")
        stubborn.ask("/stubborn")
        server.err.wait_for("stubborn has it: 0 ")
        with queued(server, "stubborn", "e2") as next_one:
            stubborn.close()
            assert end(next_one, b"two") == "e2 two"
    server.err.wait_for("ignores cancellation and was terminated")


@pytest.mark.parametrize("pairs", [["one/two", "two/one"], ["one/two", "two/three", "three/one"]])
def test_locks_in_different_orders_are_no_deadlock(server, pairs):
    """The handler whose wait would complete a cycle is refused; the others then get their locks."""
    clients = [server.connect() for _ in pairs]
    for client, pair in zip(clients, pairs, strict=True):
        client.ask(f"/both/{pair}")
    assert sorted(client.read().text for client in clients) == sorted(["deadlock\n"] + ["both\n"] * (len(pairs) - 1))


def test_locks_in_the_same_order_wait(server):
    clients = [server.connect() for _ in range(3)]
    for client in clients:
        client.ask("/both/one/two")
    assert [client.read().text for client in clients] == ["both\n"] * 3
