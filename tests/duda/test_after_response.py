# SPDX-License-Identifier: Apache-2.0
"""duda_after_response(): background tasks that start when the request has ended, in a loaded and in an isolated service; limits,
failures, reloads and stops."""
import signal
import time

import pytest

import services
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <duda/task.h>
#include <errno.h>

struct note {
    char text[40];
    unsigned sleep_ms;
    int result;
};

static int later(struct duda_ctx *d)
{
    const struct note *n = duda_task_context(d);
    duda_log(d, MK_LOG_WARN, "begins: %s", n->text);
    int e = duda_sleep(d, n->sleep_ms);
    mk_str text;
    int nested = duda_after_response(d, later, NULL, 0), header = duda_header(d, "Host").p != NULL;
    int body = duda_puts(d, "x"), read = duda_read_all(d, 10, &text) < 0;
    duda_log(d, MK_LOG_WARN, "ends: %s %d %d %d %d %d", n->text, e, nested == -EALREADY, header, body == -EALREADY, read);
    return e ? e : n->result;
}

static int note_from(struct duda_ctx *d)
{
    struct note n = {.text = "", .sleep_ms = 100};
    int64_t ms = 100, result = 0;
    mk_str text = duda_query(d, "text");
    memcpy(n.text, text.p, text.len < 39 ? text.len : 39);
    if (!duda_query_int_or(d, "ms", 100, &ms) || !duda_query_int_or(d, "result", 0, &result))
        return 400;
    n.sleep_ms = (unsigned)ms;
    n.result = (int)result;
    int e = duda_after_response(d, later, &n, sizeof n);
    memset(&n, 'x', sizeof n);
    return e;
}

static int send_now(struct duda_ctx *d)
{
    int e = note_from(d);
    return e ? e : duda_puts(d, "sent");
}

static int slow(struct duda_ctx *d)
{
    int e = note_from(d);
    e = e ? e : duda_sleep(d, 60000);
    return e ? e : duda_puts(d, "sent");
}

static int failing(struct duda_ctx *d)
{
    int e = note_from(d);
    return e ? e : 500;
}

static int many(struct duda_ctx *d)
{
    int n = 0;
    while (!note_from(d))
        n++;
    return duda_printf(d, "%d", n);
}

DUDA_SERVICE(after, DUDA_GET("/send", send_now, ""), DUDA_GET("/slow", slow, ""), DUDA_GET("/failing", failing, ""),
    DUDA_GET("/many", many, ""));
"""
TRUSTED = "[SECURITY]\n    TrustedProxy 127.0.0.1\n"
ENDS = "ends: {} 0 1 0 1 0"


def load(monkey, folder, top="", **settings):
    return monkey(plugins=["security", services.build(folder, "after", SOURCE)], top=TRUSTED + top, workers=1, **settings)


def isolate(monkey, folder):
    return monkey(plugins=["security", "isolate"], top=f"{TRUSTED}[ISOLATE]\n    Service {services.build(folder, 'after', SOURCE)}\n", sections="[ROUTES]\n    /* isolate after\n")


WAYS = {"loaded": load}
if (services.OBJECTS / "monkey-isolate.so").exists():
    WAYS["isolated"] = isolate


@pytest.mark.parametrize("protocol", ["h1", "h2"], indirect=True)
@pytest.mark.parametrize("way", WAYS)
def test_task_begins_after_the_response(monkey, tmp_path, way):
    server = WAYS[way](monkey, tmp_path)
    before = time.monotonic()
    answer = server.get("/send?text=one&ms=1000", fields=[("X-Request-Id", "id-1")])
    assert answer.text == "sent" and time.monotonic() - before < 0.9, "the response does not wait for the task"
    server.err.wait_for(ENDS.format("one") + r" \(job id-1\)")


def test_task_begins_whatever_the_outcome(monkey, tmp_path):
    server = load(monkey, tmp_path)
    assert server.get("/failing?text=two").status == 500
    server.err.wait_for(ENDS.format("two"))
    with server.connect() as c:
        c.ask("/slow?text=three")
        time.sleep(0.3)
        assert "three" not in server.err.text, "the request has not ended"
    server.err.wait_for(ENDS.format("three"))


def test_failure_of_a_task_is_logged(monkey, tmp_path):
    server = load(monkey, tmp_path)
    server.get("/send?text=four&result=-5", fields=[("X-Request-Id", "id-2")])
    server.err.wait_for(r"later\(\) in .* answered -EIO \(Input/output error\).*job id-2")


def test_number_of_tasks_is_limited(monkey, tmp_path):
    server = load(monkey, tmp_path, top="[DUDA]\n    BackgroundTasks 7\n")
    assert server.get("/many?text=x&ms=300").text == "7"
    assert server.get("/send?text=y").status == 503
    server.err.wait_for(ENDS.format("x"), count=7)
    wait_until(lambda: server.get("/send?text=y").status == 200, "there is room again", 5)


@pytest.mark.processes("the test reloads the server")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_draining_worker_waits_for_its_tasks(monkey, tmp_path, number):
    server = load(monkey, tmp_path)
    old = server.workers
    assert server.get("/send?text=five&ms=1500").text == "sent"
    server.tell(number)
    server.err.wait_for(ENDS.format("five"))
    if number == signal.SIGQUIT:
        server.wait()
    else:
        wait_until(lambda: not set(server.workers) & set(old), "the old worker has ended", 20)


@pytest.mark.processes("the test reloads the server")
def test_task_is_cancelled_after_the_drain_timeout(monkey, tmp_path):
    server = load(monkey, tmp_path, server="DrainTimeout 1s")
    assert server.get("/send?text=six&ms=60000", fields=[("X-Request-Id", "id-3")]).text == "sent"
    server.tell(signal.SIGHUP)
    server.err.wait_for("ends: six -125")
    server.err.wait_for(r"the background task later\(\) \(request id-3\) was cancelled: the worker stops")
