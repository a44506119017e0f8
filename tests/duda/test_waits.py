# SPDX-License-Identifier: Apache-2.0
"""Waits that have their own timeout, and deadlines of handlers that finish in time."""
import contextlib
import re
import textwrap

import pytest

import services
from monkey import ROOT
from proc import RELEASE, memory_kb, wait_until

OPTIMIZED = RELEASE.parent / "plugins"

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int brief(struct duda_ctx *d)
{
    return duda_puts(d, "brief\n");
}

static int patient(struct duda_ctx *d)
{
    int e = duda_sleep(d, 400);
    return e ? e : duda_puts(d, "patient\n");
}

static int silent(struct duda_ctx *d)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int e = duda_wait_fd(d, fd, MK_READABLE, 20), again = duda_sleep(d, 1);
    again = again || eventfd_write(fd, 1) ? 0 : duda_wait_fd(d, fd, MK_READABLE, 1000); /* the first wait
                                                                                           must have
                                                                                           released the
                                                                                           descriptor */
    close(fd);
    return duda_printf(d, "%d %d %d\n", e == -ETIME, duda_cancelled(d), again == MK_READABLE);
}

static int both(struct duda_ctx *d)
{
    int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    int e = duda_wait_fd(d, fd, MK_READABLE | MK_WRITABLE, 1000);
    close(fd);
    return duda_printf(d, "%d\n", e > 0 && (e & MK_READABLE) != 0);
}

DUDA_TOPIC(nothing, "nothing");
DUDA_TOPIC(hall, "hall");

/* No call waits if its timeout is 0. */
static int polls(struct duda_ctx *d)
{
    mk_str text;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), e[4];
    e[0] = duda_wait_fd(d, fd, MK_READABLE, 0);
    e[1] = eventfd_write(fd, 1) ? -errno : duda_wait_fd(d, fd, MK_READABLE, 0);
    e[2] = duda_topic_subscribe(d, &nothing) ? 0 : duda_topic_receive(d, 0, &text);
    e[3] = duda_lock(d, MK_STR("one"), 0);
    close(fd);
    return duda_printf(d, "%d %d %d %d\n", e[0] == -ETIME, e[1] == MK_READABLE, e[2] == -ETIME, e[3]);
}

static int expired(struct duda_ctx *d)
{
    int e = duda_deadline(d, 0);
    return e ? e : duda_sleep(d, 5000);
}

static int unlimited(struct duda_ctx *d)
{
    int e = duda_deadline(d, MK_FOREVER);
    e = e ? e : duda_sleep(d, 300);
    return e ? e : duda_puts(d, "unlimited\n");
}

static int first(struct duda_ctx *d)
{
    int e = duda_lock(d, MK_STR("one"), MK_FOREVER);
    e = e ? e : duda_sleep(d, 50);
    e = e ? e : duda_unlock(d, MK_STR("one"));
    return e ? e : duda_topic_publish(d, &hall, MK_STR("it is free"));
}

/* Each wait with a timeout completes in time; then the handler sleeps until all timeouts have passed. */
static int second(struct duda_ctx *d)
{
    mk_str text;
    int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), e = duda_topic_subscribe(d, &hall);
    e = e ? e : duda_lock(d, MK_STR("one"), 300);
    e = e ? e : duda_topic_receive(d, 300, &text);
    int ready = e ? e : duda_wait_fd(d, fd, MK_READABLE, 300);
    close(fd);
    e = ready < 0 ? ready : duda_sleep(d, 600);
    return e ? e : duda_puts(d, "second\n");
}

static int n_waiting;

static int nap(struct duda_ctx *d)
{
    n_waiting++;
    int e = duda_sleep(d, 600000);
    n_waiting--;
    return e;
}

static int count(struct duda_ctx *d)
{
    return duda_printf(d, "%d", n_waiting);
}

DUDA_SERVICE(waits, DUDA_GET("/nap", nap), DUDA_GET("/count", count), DUDA_POST("/first", first, ""), DUDA_POST("/second", second, ""), DUDA_GET("/brief", brief, "", .deadline_ms = 150), DUDA_GET("/patient", patient, ""), DUDA_GET("/silent", silent, ""),
    DUDA_GET("/both", both, ""), DUDA_GET("/polls", polls, ""), DUDA_GET("/expired", expired, ""),
    DUDA_GET("/unlimited", unlimited, "", .deadline_ms = 100));
"""


@pytest.fixture
def server(monkey, tmp_path):
    return monkey(plugins=[services.build(tmp_path, "waits", SOURCE)], workers=1)


def test_deadline_ends_with_its_handler(server):
    """The deadline must not affect a later handler in the same memory."""
    for _ in range(20):
        assert server.get("/brief").text == "brief\n"
    clients = [server.connect() for _ in range(20)]
    for client in clients:
        client.ask("/patient")
    assert {client.read().text for client in clients} == {"patient\n"}


def test_wait_for_a_descriptor_times_out_and_the_handler_lives(server):
    assert server.get("/silent").text == "1 0 1\n"
    assert server.get("/both").text == "1\n"


def test_zero_does_not_wait_and_forever_has_no_limit(server):
    assert server.get("/polls").text == "1 1 1 0\n"
    assert server.get("/expired").status == 504
    assert server.get("/unlimited").text == "unlimited\n"


def test_wait_that_completes_in_time_leaves_no_timer(server):
    """The sanitizer would report a timer that still refers to the stack."""
    clients = [server.connect() for _ in range(2)]
    clients[0].ask("/first", "POST")
    clients[1].ask("/second", "POST")
    assert clients[0].read().status == 204
    assert clients[1].read().text == "second\n"


@pytest.mark.skipif(not (OPTIMIZED / "monkey-duda.so").exists(), reason="the optimized Duda is not built")
def test_waiting_handler_needs_eight_kilobytes(monkey, tmp_path):
    """A page of its stack, a block of request memory, and the connection: 10,000 of them take less than the aim of 90 MB."""
    server = monkey(plugins=[services.build(tmp_path, "waits", SOURCE, objects=OPTIMIZED)], program=RELEASE, workers=1,
                    server="MaxConnections 2000")
    with contextlib.ExitStack() as kept:
        def wait_for_some(n, total):
            for _ in range(n):
                kept.enter_context(server.connect()).ask("/nap")
            wait_until(lambda: int(server.get("/count").text) == total, "all handlers wait")

        wait_for_some(50, 50)
        before = memory_kb(server.workers[0])
        wait_for_some(600, 650)
        each = (memory_kb(server.workers[0]) - before) * 1024 / 600
        assert each < 8500, f"{each:.0f} bytes"


def test_example_of_the_header_waits(monkey, tmp_path):
    """Runs the example package of duda/wait.h in a handler that finishes, and in others that are cancelled while they
    wait."""
    header = (ROOT / "duda/include/duda/wait.h").read_text()
    package = textwrap.dedent("\n".join(line[2:] for line in re.search(
        r"^ \*     struct question \{$.*?^ \*     \}$(?=\n \*/)", header, re.MULTILINE | re.DOTALL).group().splitlines()))
    server = monkey(plugins=[services.build(tmp_path, "asking", f"""
#include <duda.h>
#include <errno.h>
#include <monkey/worker.h>

int ask(struct duda_ctx *d);

{package}

static int answer(struct duda_ctx *d)
{{
    int e = ask(d);
    return e ? e : duda_puts(d, "answered\\n");
}}

static int ask_on(struct duda_ctx *d)
{{
    int e = 0;
    while (e <= 0)
        e = ask(d);
    return e;
}}

DUDA_SERVICE(asking, DUDA_GET("/", answer, ""), DUDA_GET("/late", answer, "", .deadline_ms = 20),
    DUDA_GET("/on", ask_on, "", .deadline_ms = 20));
""")], workers=1)
    server.allow("ignores cancellation")
    assert server.get("/").text == "answered\n"
    assert server.get("/late").status == 504
    assert server.get("/on").status == 504
    client = server.connect()
    client.ask("/")
    client.close()
    assert server.get("/").text == "answered\n"
