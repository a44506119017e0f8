# SPDX-License-Identifier: Apache-2.0
"""Handlers that ignore their cancellation are terminated: first their waits end, then their deferred functions run.
The stacks and memory of these handlers are kept, so a callback that still refers to them is harmless."""
import pytest

import services
from client import Closed

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>
#include <monkey/worker.h>
#include <stdlib.h>

enum { MAGIC = 0x600d600d };

/* A wait as implemented by packages. */
struct question {
    struct duda_wait wait; /* must be the first member */
    struct question *next;
    struct duda_ctx *d;
    bool over, is_outer, is_linked;
    int magic;
};

static struct question *questions;
static unsigned n_ended, n_deferred, n_wrong, n_answered;

static void forget(struct question *q)
{
    struct question **at = &questions;
    while (*at && *at != q)
        at = &(*at)->next;
    if (*at)
        *at = q->next;
}

static void end(struct duda_wait *w)
{
    struct question *q = (struct question *)w;
    n_wrong += q->magic != MAGIC || (q->is_outer && n_deferred > n_ended); /* must run before deferred
                                                                              functions */
    n_ended += q->is_outer;
    forget(q);
}

static void on_answer(void *ctx)
{
    struct question *q = questions;
    (void)ctx;
    questions = NULL;
    for (; q; q = q->next) {
        n_wrong += q->magic != MAGIC;
        n_answered++;
        q->over = true;
        if (q->is_linked)
            duda_wait_wake(&q->wait);
        else
            duda_wake(q->d);
    }
}

static void ask(struct question *q, struct duda_ctx *d)
{
    for (struct question *one = questions; one; one = one->next)
        if (one == q)
            return;
    q->next = questions;
    q->d = d;
    q->over = false;
    q->magic = MAGIC;
    questions = q;
}

static void on_end(void *ctx)
{
    n_wrong += *(int *)ctx != MAGIC; /* the stack must still be intact */
    n_deferred++;
}

static int wait_for_ever(struct duda_ctx *d, bool is_on_heap)
{
    int local = MAGIC;
    struct question buffer = {.over = false}, *q = is_on_heap ? duda_alloc(d, sizeof *q) : &buffer;
    if (!q || duda_defer(d, on_end, &local))
        return -ENOMEM;
    *q = buffer;
    for (;;) {
        ask(q, d);
        while (!q->over && !duda_suspend(d))
            ; /* leaves the question in the list */
    }
}

static int ignores(struct duda_ctx *d)
{
    return wait_for_ever(d, duda_query_or(d, "heap", "")[0]);
}

static unsigned n_waited;

static void wait_once_more(void *ctx)
{
    n_waited += duda_sleep(ctx, 10) == -ETIMEDOUT; /* must fail immediately instead of waiting */
}

static int defers_a_wait(struct duda_ctx *d)
{
    if (duda_defer(d, wait_once_more, d))
        return -ENOMEM;
    for (;;)
        (void)!duda_sleep(d, 1000);
}

static int waited(struct duda_ctx *d)
{
    return duda_printf(d, "%u\n", n_waited);
}

static int links(struct duda_ctx *d)
{
    struct question outer = {.over = false};
    int local = MAGIC;
    if (duda_defer(d, on_end, &local))
        return -ENOMEM;
    ask(&outer, d);
    outer.is_outer = true;
    if (duda_wait_begin(d, &outer.wait, end))
        return 500;
    for (;;) /* ignores the errors of inner waits */
        (void)!duda_sleep(d, 1000);
}

/* A package that ignores all errors. */
static void ask_and_wait(struct duda_ctx *d)
{
    struct question q = {.over = false};
    ask(&q, d);
    q.is_linked = true;
    (void)!duda_wait_begin(d, &q.wait, end);
    (void)!duda_wait_suspend(&q.wait);
    duda_wait_end(&q.wait);
}

/* Calls that package without end. */
static int asks_on(struct duda_ctx *d)
{
    int local = MAGIC;
    if (duda_defer(d, on_end, &local))
        return -ENOMEM;
    for (;;)
        ask_and_wait(d);
}

/* Begins waits without suspending. */
static int begins_on(struct duda_ctx *d)
{
    struct duda_wait wait;
    int local = MAGIC, e = duda_sleep(d, 1000);
    if (e != -ETIMEDOUT || duda_defer(d, on_end, &local))
        return 500;
    for (;;) {
        (void)!duda_wait_begin(d, &wait, NULL);
        duda_wait_end(&wait);
    }
}

/* Large enough to notice if a handler leaks it. */
static char much[30000];
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static int heap(struct duda_ctx *d)
{
    return duda_printf(d, "%zu", __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : 0);
}

static int events(struct duda_ctx *d)
{
    int e = duda_sleep(d, 1000);
    while (e < 1)
        e = duda_sse_send(d, &(struct mk_sse_event){.data = mk_str_of(much, sizeof much)});
    return e;
}

static int problem(struct duda_ctx *d)
{
    int e = duda_sleep(d, 1000);
    while (e < 0)
        e = duda_problem(d, 400, "no %s", "more");
    return e;
}

static int flaws(struct duda_ctx *d)
{
    struct duda_validation_errors some = {.n = 1};
    int e = duda_sleep(d, 1000);
    some.items[0] = (struct duda_validation_error){.pointer = mk_str_of(much, 4000), .message = mk_str_of(much, 4000)};
    while (e < 0)
        e = duda_problem_errors(d, 400, &some);
    return e;
}

static int template(struct duda_ctx *d)
{
    int e = duda_sleep(d, 1000);
    while (e)
        e = duda_render_text(d, mk_str_of(much, sizeof much), duda_value_null());
    return e;
}

static int content(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_sleep(d, 1000);
    while (e)
        e = duda_read_all(d, 1000, &text);
    return e;
}

static int opens_a_socket(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_sleep(d, 1000);
    while (e)
        e = duda_websocket_open(d, NULL, NULL, &s);
    return e;
}

static int socket(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    return e ? e : wait_for_ever(d, false);
}

/* Overwrites stacks and arena chunks with other data. */
static int reuse(struct duda_ctx *d)
{
    volatile char buffer[8192];
    char *more = duda_alloc(d, 3000);
    for (size_t i = 0; i < sizeof buffer; i++)
        buffer[i] = 'A';
    memset(more, 'A', 3000);
    int e = duda_sleep(d, 20);
    for (size_t i = 0; i < sizeof buffer && !e; i++)
        e = buffer[i] == 'A' ? 0 : 500;
    for (size_t i = 0; i < 3000 && !e; i++)
        e = more[i] == 'A' ? 0 : 500;
    return e ? e : duda_puts(d, "reused\n");
}

static int answer(struct duda_ctx *d)
{
    on_answer(NULL);
    return duda_puts(d, "answered\n");
}

static int count(struct duda_ctx *d)
{
    unsigned left = 0;
    for (struct question *q = questions; q; q = q->next)
        left++;
    return duda_printf(d, "ended %u, deferred %u, wrong %u, left %u\n", n_ended, n_deferred, n_wrong, left);
}

DUDA_SERVICE(stubborn, DUDA_GET("/ignores", ignores, "", .deadline_ms = 20), DUDA_GET("/links", links, "", .deadline_ms = 20),
    DUDA_GET("/events", events, "", .deadline_ms = 20), DUDA_GET("/opens", opens_a_socket, "", .deadline_ms = 20),
    DUDA_GET("/problem", problem, "", .deadline_ms = 20), DUDA_GET("/flaws", flaws, "", .deadline_ms = 20),
    DUDA_GET("/template", template, "", .deadline_ms = 20), DUDA_GET("/content", content, "", .deadline_ms = 20),
    DUDA_GET("/heap", heap, ""),
    DUDA_GET("/asks-on", asks_on, "", .deadline_ms = 20), DUDA_GET("/begins-on", begins_on, "", .deadline_ms = 20),
    DUDA_GET("/socket", socket, "", .deadline_ms = 20), DUDA_GET("/reuse", reuse, ""),
    DUDA_GET("/defers-a-wait", defers_a_wait, "", .deadline_ms = 20), DUDA_GET("/waited", waited, ""), DUDA_GET("/answer", answer, ""),
    DUDA_GET("/count", count, ""));
"""


@pytest.fixture
def server(monkey, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "stubborn", SOURCE)])
    server.allow("ignores cancellation", "were terminated within")
    return server


def burst(server, path, n=20):
    clients = [server.connect() for _ in range(n)]
    for client in clients:
        client.ask(path)
    return [client.read() for client in clients]


@pytest.mark.parametrize("query", ["", "?heap=1"], ids=["on the stack", "on the heap"])
def test_callback_after_termination_does_no_harm(server, query):
    """Replies to the abandoned waits arrive while other handlers run on new stacks."""
    for _ in range(3):
        assert {answer.status for answer in burst(server, f"/ignores{query}")} == {504}
        assert {answer.text for answer in burst(server, "/reuse")} == {"reused\n"}
        clients = [server.connect() for _ in range(20)]
        for client in clients:
            client.ask("/reuse")
        assert server.get("/answer").text == "answered\n"
        assert {client.read().text for client in clients} == {"reused\n"}
    assert server.get("/count").text == "ended 0, deferred 60, wrong 0, left 0\n"


def test_callback_after_termination_of_websocket_does_no_harm(server):
    pytest.importorskip("websockets")
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect
    for _ in range(10):
        try:
            with connect(server.url.replace("http", "ws", 1) + "/socket", proxy=None, open_timeout=30) as end:
                end.recv(timeout=30)
        except (WebSocketException, OSError, Closed):
            pass
    assert server.get("/answer").text == "answered\n"
    assert {answer.text for answer in burst(server, "/reuse")} == {"reused\n"}
    assert server.get("/count").text == "ended 0, deferred 10, wrong 0, left 0\n"


def test_waits_end_before_deferred_functions_run(server):
    for n in range(1, 4):
        assert server.get("/links").status == 504
        assert server.get("/count").text == f"ended {n}, deferred {n}, wrong 0, left 0\n"


@pytest.mark.parametrize("path", ["/asks-on", "/begins-on"])
def test_wait_of_cancelled_handler_leaves_nothing(server, path):
    """The package and the handler ignore all errors, and the replies arrive while other handlers use the stacks."""
    for n in range(1, 4):
        assert {answer.status for answer in burst(server, path)} == {504}
        clients = [server.connect() for _ in range(20)]
        for client in clients:
            client.ask("/reuse")
        assert server.get("/answer").text == "answered\n"
        assert {client.read().text for client in clients} == {"reused\n"}
        assert server.get("/count").text == f"ended 0, deferred {20 * n}, wrong 0, left 0\n"


@pytest.mark.parametrize("path", ["/events", "/opens", "/problem", "/flaws", "/template", "/content"])
def test_handler_that_keeps_writing_after_cancellation_is_terminated(server, path):
    """A handler that keeps writing blocks the worker no longer than a handler that waits, and its buffers are freed."""
    n = 20
    assert server.get(path).status == 504
    before = int(server.get("/heap").text)
    assert {answer.status for answer in burst(server, path, n)} == {504}
    assert (int(server.get("/heap").text) - before) / n < 12000, "bytes per handler"
    assert server.get("/reuse").text == "reused\n"


def test_deferred_function_that_waits_gets_an_error(server):
    assert server.get("/defers-a-wait").status == 504
    assert server.get("/waited").text == "1\n"


def test_terminated_handlers_keep_bounded_memory(server):
    """A route whose handlers are terminated again and again is disabled before its worker runs out of memory."""
    for _ in range(60):
        statuses = {answer.status for answer in burst(server, "/ignores")}
        if statuses == {503}:
            break
        assert statuses <= {503, 504}
    assert statuses == {503}
    server.err.wait_for(r"10\d\d handlers were terminated within 600 s: the route /ignores answers 503 for a while")
    assert server.get("/reuse").text == "reused\n"
