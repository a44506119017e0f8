# SPDX-License-Identifier: Apache-2.0
"""Handlers that wait, under valgrind, which recognizes their stacks and reports no errors or leaks when the handlers finish
or their clients disconnect. Uses the optimized program, because it has no sanitizers."""
import re
import shutil
import signal
import threading

import pytest

import services
from monkey import SECONDS
from proc import RELEASE, wait_until

OBJECTS = RELEASE.parent / "plugins"

pytestmark = [pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind here"),
              pytest.mark.skipif(not (OBJECTS / "monkey-duda.so").exists(), reason=f"no Duda in {OBJECTS}"),
              pytest.mark.processes("this is not the optimized program")]

SOURCE = r"""
#include <duda.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { LONG_MS = 3600000, SHORT_MS = 3 };

static uint32_t span(struct duda_ctx *d)
{
    return duda_query(d, "long").p ? LONG_MS : SHORT_MS;
}

static int hello(struct duda_ctx *d)
{
    return duda_printf(d, "hello %s", duda_query_or(d, "name", "world"));
}

static int timer(struct duda_ctx *d)
{
    int e = duda_sleep(d, span(d));
    return e ? e : duda_puts(d, "timer");
}

static int content(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_read_all(d, 1 << 20, &text);
    return e ? e : duda_printf(d, "content %zu", text.len);
}

static int lock(struct duda_ctx *d)
{
    int e = duda_lock(d, MK_STR("one"), MK_FOREVER);
    e = e ? e : duda_sleep(d, span(d));
    return e ? e : duda_puts(d, "lock");
}

struct job {
    unsigned ms, n;
};

static int work(void *ctx)
{
    struct job *job = ctx;
    const struct timespec t = {.tv_nsec = job->ms * 1000000L};
    nanosleep(&t, NULL);
    job->n++;
    return 0;
}

/* Threads cannot be cancelled, so each one runs for a few milliseconds before the handler starts the
   next. */
static int thread(struct duda_ctx *d)
{
    struct job job = {SHORT_MS, 0};
    int e;
    do
        e = duda_offload(d, NULL, work, &job, sizeof job);
    while ((!e || e == -EAGAIN) && span(d) == LONG_MS);
    return e ? e : duda_printf(d, "thread %u", job.n);
}

static void close_it(void *ctx)
{
    close((int)(intptr_t)ctx);
}

static int descriptor(struct duda_ctx *d)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    const struct itimerspec t = {.it_value = {span(d) / 1000, span(d) % 1000 * 1000000}};
    if (fd < 0 || timerfd_settime(fd, 0, &t, NULL) || duda_defer(d, close_it, (void *)(intptr_t)fd))
        return 500;
    int e = duda_wait_fd(d, fd, MK_READABLE, MK_FOREVER);
    return e < 0 ? e : duda_puts(d, "descriptor");
}

/* Waits while much of a large stack is in use. */
static int fall(struct duda_ctx *d, unsigned n)
{
    volatile char buffer[16384];
    buffer[0] = (char)n;
    buffer[sizeof buffer - 1] = 1;
    int e = n ? fall(d, n - 1) : duda_sleep(d, span(d));
    return e ? e : buffer[0] != (char)n;
}

static int deep(struct duda_ctx *d)
{
    int e = fall(d, 200);
    return e ? e : duda_puts(d, "deep");
}

static unsigned n_live, n_cancelled;

static void leave(void *ctx)
{
    struct duda_ctx **d = ctx;
    n_live--;
    n_cancelled += duda_cancelled(*d) == -ECANCELED;
    free(d);
}

static int enter(struct duda_ctx *d)
{
    struct duda_ctx **own = malloc(sizeof *own);
    if (!own)
        return 503;
    *own = d;
    n_live++;
    int e = duda_defer(d, leave, own);
    return e ? e : DUDA_NEXT;
}

static int count(struct duda_ctx *d)
{
    return duda_printf(d, "%u %u", n_live, n_cancelled);
}

DUDA_SERVICE(waits, DUDA_GET("/hello", hello, ""), DUDA_GET("/count", count, ""), DUDA_BEFORE(enter),
    DUDA_GET("/timer", timer, ""), DUDA_POST("/content", content, ""), DUDA_GET("/lock", lock, ""),
    DUDA_GET("/thread", thread, ""), DUDA_GET("/descriptor", descriptor, ""), DUDA_GET("/deep", deep, "", .stack = 4 << 20));
"""
KINDS = {"timer": "timer", "content": "content 5", "lock": "lock", "thread": "thread 1", "descriptor": "descriptor", "deep": "deep"}
ROUNDS, AT_ONCE = 3, 3  # of each type
VALGRIND = ["valgrind", "--leak-check=full", "--errors-for-leak-kinds=definite,possible", "--error-exitcode=99"]
# The dynamic loader's own strncmp() reads an rpath in whole words, past the end of its allocation.
KNOWN = "".join(f"{{\n  rpath\n  Memcheck:Addr{n}\n  obj:*/ld-linux*\n  obj:*/ld-linux*\n  obj:*/ld-linux*\n}}\n" for n in (8, 16, 32))


def finish(server, kind, problems):
    """Sends requests whose handlers finish."""
    try:
        with server.connect() as c:
            for _ in range(ROUNDS):
                answer = c.get(f"/{kind}", "POST", body=b"a" * 5) if kind == "content" else c.get(f"/{kind}")
                assert (answer.status, answer.text) == (200, KINDS[kind]), (kind, answer)
                assert c.get(f"/hello?name={kind}").text == f"hello {kind}"
    except (AssertionError, OSError) as error:
        problems.append(repr(error))


def begin(server, kind):
    """Starts a handler that waits forever, and returns its client."""
    client = server.connect()
    if kind == "content":
        return client.ask("/content", "POST", streamed=True).more(b"a")
    return client.ask(f"/{kind}?long=1")


def leave_early(server):
    """Clients of each type disconnect while their handlers wait, first in the order of their requests, then in reverse."""
    for step in (1, -1):
        before = int(server.get("/count").text.split()[1])
        clients = [begin(server, kind) for _ in range(AT_ONCE) for kind in KINDS]
        wait_until(lambda n=len(clients): server.get("/count").text == f"{n} {before}", "all handlers wait")
        for client in clients[::step]:
            client.close()
        wait_until(lambda n=len(clients): server.get("/count").text == f"0 {before + n}", "all handlers are cancelled")


def run_all(server):
    problems = []
    crew = [threading.Thread(target=finish, args=(server, kind, problems)) for _ in range(AT_ONCE) for kind in KINDS]
    for each in crew:
        each.start()
    for each in crew:
        each.join(2 * SECONDS)
    assert problems == []


def test_valgrind_finds_no_error_in_handlers(monkey, tmp_path):
    service = services.build(tmp_path, "waits", SOURCE, objects=OBJECTS)
    known = tmp_path / "known.supp"
    known.write_text(KNOWN)
    server = monkey(program=RELEASE, wrapper=[*VALGRIND, f"--suppressions={known}"], plugins=[service])
    server.allow(r"lost: 0 bytes in 0 blocks")
    run_all(server)
    leave_early(server)
    run_all(server)
    server.stop(signal.SIGQUIT)  # no time limit, unlike SIGTERM: valgrind is slow on a busy machine
    output = server.err.text
    summaries = re.findall(r"ERROR SUMMARY: (\d+) errors", output)
    assert len(summaries) >= 2 and set(summaries) == {"0"}, "summaries of the master, its worker, and the checks of the plugin"
    assert "switching stacks" not in output, output
