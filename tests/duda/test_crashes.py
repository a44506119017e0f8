# SPDX-License-Identifier: Apache-2.0
"""The log reports handlers that crash, overflow their stack or block the event loop, with route, request and stack; other
requests are still served."""
import re
import signal
import subprocess
from pathlib import Path

import pytest

import services
from client import Closed
from proc import children, wait_until

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("the embedding program handles crash signals")]

SOURCE = r"""
#include <duda.h>
#include <stdlib.h>
#include <time.h>

static int fine(struct duda_ctx *d)
{
    return duda_puts(d, "fine\n");
}

static int *volatile nowhere;

int first_crash_here(struct duda_ctx *d);
int first_crash_here(struct duda_ctx *d)
{
    *nowhere = 1; /* the first frame */
    return duda_puts(d, "");
}

static int crash(struct duda_ctx *d)
{
    return first_crash_here(d) + 1; /* the second one */
}

static int stop(struct duda_ctx *d)
{
    (void)d;
    abort();
}

/* Aborts when the client sends a byte. */
static int stop_later(struct duda_ctx *d)
{
    char byte;
    if (duda_read(d, &byte, 1) != 1)
        return 400;
    abort();
}

static volatile int depth = 1000000;

static int deep(volatile char *from)
{
    volatile char buffer[1024];
    buffer[0] = from ? from[0] : 1;
    return depth-- > 0 ? deep(buffer) + buffer[0] : 0;
}

static int overflow(struct duda_ctx *d)
{
    (void)d;
    return deep(NULL);
}

/* Waits while about 300 KB of its stack are in use. */
static int dig_to(struct duda_ctx *d, int left)
{
    volatile char buffer[1024];
    buffer[0] = (char)left;
    int e = left ? dig_to(d, left - 1) : duda_sleep(d, 1);
    return e ? e : buffer[0] != (char)left;
}

static int dig(struct duda_ctx *d)
{
    int e = dig_to(d, 300);
    return e ? e : duda_puts(d, "deep\n");
}

static int hold(struct duda_ctx *d)
{
    struct timespec t = {.tv_sec = 1, .tv_nsec = 500000000};
    int e = nanosleep(&t, NULL);
    return duda_puts(d, e ? "cut\n" : "held\n");
}

static int compute(struct duda_ctx *d)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do
        clock_gettime(CLOCK_MONOTONIC, &now); /* burns CPU time */
    while (now.tv_sec < begun.tv_sec + 4);
    return duda_puts(d, "computed\n");
}

/* The frame is larger than the stack, and the function touches only the far end of the frame. The stacks of
   other handlers are adjacent. */
static int leap(struct duda_ctx *d)
{
    volatile char line[96 * 1024];
    line[0] = 'A';
    return duda_printf(d, "%c\n", line[0]);
}

static int leap_at_run_time(struct duda_ctx *d)
{
    int64_t n = 0;
    (void)duda_param_int(d, "n", &n);
    volatile char *line = __builtin_alloca((size_t)n * 1024);
    line[0] = 'A';
    return duda_printf(d, "%c\n", line[0]);
}

static int keep(struct duda_ctx *d)
{
    volatile char buffer[40 * 1024];
    memset((char *)buffer, 'B', sizeof buffer);
    int e = duda_sleep(d, 300);
    for (size_t i = 0; i < sizeof buffer && !e; i++)
        e = buffer[i] == 'B' ? 0 : 500;
    return e ? e : duda_puts(d, "kept\n");
}

DUDA_SERVICE(fragile,
    DUDA_GET("/leap", leap, ""), DUDA_GET("/leap/:n<int>", leap_at_run_time, ""), DUDA_GET("/keep", keep, ""),
    DUDA_GET("/fine", fine, ""), DUDA_GET("/crash/:n", crash, ""), DUDA_GET("/stop", stop, ""),
    DUDA_POST("/later", stop_later, ""),
    DUDA_GET("/overflow", overflow, ""), DUDA_GET("/hold", hold, ""), DUDA_GET("/compute", compute, ""),
    DUDA_GET("/narrow/:n", dig, ""), DUDA_GET("/wide/:n", dig, "", .stack = 512 * 1024));
"""
CRASHES = ("Sanitizer", "was killed by signal", "exited unexpectedly")


@pytest.fixture
def server(monkey, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "fragile", SOURCE)])
    server.allow(*CRASHES)
    return server


def crash_worker(server, path):
    with pytest.raises((Closed, ConnectionError)):
        server.get(path)


def test_crash_is_reported_with_route_request_and_stack(server):
    crash_worker(server, "/crash/7?a=b")
    server.err.wait_for(r"crash\(\) in .*fragile.c:\d+ crashed with SIGSEGV at the address \(?nil|0x0.*; route /crash/:n, "
                        r"request GET /crash/7\?a=b")
    server.err.wait_for(r"#0 monkey-fragile.so\+0x[0-9a-f]+ in first_crash_here\(\)")
    server.err.wait_for(r"the handler of fragile GET /crash/:n terminated its worker$")
    assert server.get("/fine").text == "fine\n"


def line_of(mark):
    return SOURCE[:SOURCE.index(mark)].count("\n") + 1


needs_addr2line = pytest.mark.skipif(not Path("/usr/bin/addr2line").exists(), reason="addr2line is not installed")


def expect_lines(server, *frames):
    """Expects the frames in the log: (function, text), where `text` is in the source line that the log names."""
    lines = [rf"\n.*  #{i} {function}\(\) in /\S+/fragile\.c:{line_of(mark)}\b" for i, (function, mark) in enumerate(frames)]
    server.err.wait_for(r"source lines of that stack in /\S+/monkey-fragile\.so:" + "".join(lines))


@pytest.fixture
def lined(monkey, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "fragile", SOURCE)], top="[DUDA]\n    CrashSymbols on\n")
    server.allow(*CRASHES)
    return server


@needs_addr2line
def test_crash_report_is_followed_by_source_lines(lined):
    """The report shows the lines of the crashing function and of its callers. A caller's frame holds a return address, which may
    belong to the next line."""
    crash_worker(lined, "/crash/1")
    expect_lines(lined, ("first_crash_here", "/* the first frame */"), ("crash", "/* the second one */"))
    assert lined.get("/fine").text == "fine\n"


@needs_addr2line
def test_crash_in_an_object_without_debug_information_has_no_lines(monkey, tmp_path):
    plugin = services.build(tmp_path, "fragile", SOURCE)
    subprocess.run(["strip", "-g", tmp_path / "monkey-fragile.so"], check=True)
    server = monkey(plugins=[plugin], top="[DUDA]\n    CrashSymbols on\n")
    server.allow(*CRASHES)
    crash_worker(server, "/crash/1")
    server.err.wait_for("terminated its worker$")
    assert server.get("/fine").text == "fine\n"
    server.stop()
    assert "the lines of" not in server.err.text


def test_route_that_crashes_repeatedly_answers_503(server):
    for _ in range(3):
        crash_worker(server, "/stop")
    server.err.wait_for("fragile GET /stop terminated its worker, and not for the first time: the route answers 503")
    answer = server.get("/stop")
    assert answer.status == 503 and 0 < int(answer["Retry-After"]) <= 60
    assert server.get("/fine").text == "fine\n"
    server.err.wait_for(r"stop\(\) in .* crashed with SIGABRT; route", count=3)


def test_stack_overflow_is_reported_as_such(server):
    crash_worker(server, "/overflow")
    server.err.wait_for(r"overflow\(\) in .* crashed with SIG\w+ because its stack is full: give the route a larger `.stack`")
    assert server.get("/fine").text == "fine\n"


@pytest.mark.parametrize("path", ["/leap", "/leap/96", "/leap/900", "/leap/4000"])
def test_large_frame_hits_the_guard_page(server, path):
    """A large array, of fixed or variable length, touches the guard page instead of another request's stack."""
    waiting = [server.connect() for _ in range(8)]
    for client in waiting[:7]:
        client.ask("/keep")
    assert {client.read().text for client in waiting[:7]} == {"kept\n"}
    waiting[7].ask("/keep")
    crash_worker(server, path)
    server.err.wait_for("because its stack is full: give the route a larger `.stack`")
    assert server.get("/fine").text == "fine\n"


def test_route_may_have_a_larger_stack(server):
    for n in range(3):
        assert server.get(f"/wide/{n}").text == "deep\n"
    crash_worker(server, "/narrow/1?x=y")
    server.err.wait_for(r"dig\(\) in .*fragile.c:\d+ crashed with SIG\w+ because its stack is full: give the route a larger `.stack`; "
                        r"route /narrow/:n, request GET /narrow/1\?x=y\n.* #0 monkey-fragile.so\+0x")
    server.err.wait_for(r"the handler of fragile GET /narrow/:n terminated its worker$")
    assert server.get("/wide/4").text == "deep\n"


def test_handler_that_blocks_the_loop_is_reported(server):
    assert server.get("/hold").text == "held\n", "nothing interrupts its sleep"
    server.err.wait_for(r"hold\(\) in .*fragile.c:\d+ has blocked the event loop for more than 500 ms: .*; route /hold, request GET /hold"
                        r"(\n.*  #\d+ (?!monkey-fragile).*)*\n.*  #\d+ monkey-fragile\.so\+0x")


def test_handler_that_burns_cpu_is_reported(server):
    assert server.get("/compute").text == "computed\n"
    server.err.wait_for(r"compute\(\) in .*fragile.c:\d+ has blocked the event loop for more than 500 ms: .*; route /compute, request GET /compute"
                        r"(\n.*  #\d+ (?!monkey-fragile).*)*\n.*  #\d+ monkey-fragile\.so\+0x")


@needs_addr2line
def test_report_of_a_blocking_handler_is_followed_by_source_lines(lined):
    assert lined.get("/hold").text == "held\n"
    lined.err.wait_for(rf"source lines of that stack in .*\n.*  #\d+ hold\(\) in /\S+/fragile\.c:{line_of('nanosleep')}")


def test_worker_starts_no_symbolizer_by_default(server):
    """A worker has a symbolizer process only if CrashSymbols is on."""
    crash_worker(server, "/crash/1")
    server.err.wait_for("terminated its worker$")
    assert server.get("/fine").text == "fine\n"
    assert [children(worker) for worker in server.workers] == [[]]


def test_crash_limit_and_backoff_are_configurable(monkey, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "fragile", SOURCE)],
                    top="[DUDA]\n    CrashLimit 1\n    CrashBackoff 2m\n")
    server.allow(*CRASHES)
    crash_worker(server, "/stop")
    server.err.wait_for("the route answers 503")
    assert int(server.get("/stop")["Retry-After"]) > 60


def reload(server, n):
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves", count=n)


def test_crash_after_a_reload_is_reported_immediately(server):
    """The worker that replaces the crashed one reports the crash immediately, not at the next reload."""
    for n in (1, 2, 3):
        before = server.workers
        reload(server, n)
        wait_until(lambda gone=before: not set(gone) & set(server.workers), "the old worker has ended")
        crash_worker(server, f"/crash/{n}")
        server.err.wait_for(rf"request GET /crash/{n}$")
        server.err.wait_for("fragile GET /crash/:n terminated its worker", count=n)


def test_reload_while_a_handler_runs_reports_no_crash(server):
    with server.connect() as c:
        c.ask("/compute")
        server.err.wait_for("has blocked the event loop")
        reload(server, 1)
        assert server.get("/fine").text == "fine\n"
        assert c.read().text == "computed\n"
    reload(server, 2)
    assert "terminated its worker" not in server.err.text


def test_crash_of_a_draining_worker_is_reported(server):
    """A draining worker that crashes is not restarted. The worker that the reload started in its place reports the crash."""
    with server.connect(protocol="h1") as c:
        c.send(b"POST /later HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n")
        assert server.get("/fine").text == "fine\n", "the only worker serves both requests"
        reload(server, 1)
        assert server.get("/fine").text == "fine\n"
        c.send(b"x")
        server.err.wait_for("stop_later\\(\\) in .* crashed with SIGABRT; route /later")
        server.err.wait_for("fragile POST /later terminated its worker$")
    assert server.get("/fine").text == "fine\n"


LIBRARY = r"""
#include <stddef.h>

int descend(int left, int *volatile nowhere);
int descend(int left, int *volatile nowhere)
{
    volatile char buffer[16];
    buffer[0] = (char)left;
    return left ? descend(left - 1, nowhere) + buffer[0] : (*nowhere = 1);
}
"""
DEEP = r"""
#include <duda.h>

int descend(int left, int *volatile nowhere);

static int deep(struct duda_ctx *d)
{
    return descend(60, NULL) + duda_puts(d, ""); /* the call of the library */
}

DUDA_SERVICE(deep, DUDA_GET("/", deep, ""));
"""


def test_crash_deep_in_a_library_names_the_service(monkey, tmp_path):
    """The service's frame is far below the library frames of the crash; the report includes both."""
    (tmp_path / "library.c").write_text(LIBRARY)
    subprocess.run([services.COMPILER, "-shared", "-fPIC", "-g", "-O1", "-fno-optimize-sibling-calls", "-o", "libdescend.so", "library.c"],
                   cwd=tmp_path, check=True)
    service = services.build(tmp_path, "deep", DEEP, f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path},--no-as-needed", "-l:libdescend.so")
    server = monkey(plugins=[service])
    server.allow(*CRASHES)
    crash_worker(server, "/")
    server.err.wait_for(r"#0 libdescend\.so\+0x[0-9a-f]+ in descend\(\)(\n.*  #\d+ libdescend.*)+\n.*  #\d\d monkey-deep\.so\+0x")
