# SPDX-License-Identifier: Apache-2.0
"""Messages of `monkey run` about a service: which middleware rejected a request and which line blocks the event loop. No
message is about the internal servers of `monkey run`."""
import re
import shutil
import time
from pathlib import Path

import pytest

import services
from proc import descriptors
from running import BROWSER, cache, runtime, src, start  # pylint: disable=unused-import

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

GUARDED = r"""#include <duda.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_staff(struct duda_ctx *d)
{
    return duda_query(d, "staff").p != NULL;
}

static int check(struct duda_ctx *d)
{
    return duda_query(d, "result").p ? atoi(duda_query(d, "result").p) : DUDA_NEXT;
}

static int show(struct duda_ctx *d)
{
    return duda_query(d, "own").p ? 404 : duda_puts(d, "shown\n");
}

static volatile int zero;

static int compute(struct duda_ctx *d)
{
    while (!zero) /* computes */
        zero += 0; /* computes, too */
    return duda_puts(d, "never\n");
}

static int nap(struct duda_ctx *d)
{
    sleep(2); /* sleeps */
    return duda_puts(d, "napped\n");
}

static int crash(struct duda_ctx *d)
{
    abort();
    return duda_puts(d, "never\n");
}

DUDA_ROUTES(staff, DUDA_REQUIRE(is_staff, 403), DUDA_GET("/", show, "For staff."), DUDA_GET("/page", show, "For staff."));
DUDA_ROUTES(checked, DUDA_BEFORE(check), DUDA_GET("/", show, "Checked."));
DUDA_SERVICE(guarded, DUDA_GROUP("/staff", staff, "Staff."), DUDA_GROUP("/checked", checked, "Checked."),
    DUDA_GET("/compute", compute, "Never returns."), DUDA_GET("/nap", nap, "Blocks."), DUDA_GET("/crash", crash, "Crashes."));
"""


def line_of(mark):
    return GUARDED[:GUARDED.index(f"/* {mark} */")].count("\n") + 1


@pytest.fixture
def server(start, src):
    (src / "guarded.c").write_text(GUARDED)
    server = start(src / "guarded.c")
    server.allow("Sanitizer", "SIGABRT")
    return server


@pytest.mark.parametrize("target, status, why", [
    ("/staff/", 403, r"is_staff\(\) in \S*guarded.c:\d+, a guard of show\(\), returned false: responding with 403"),
    ("/staff/page", 403, r"is_staff\(\) in \S*guarded.c:\d+, a guard of show\(\), returned false: responding with 403"),
    ("/checked/?result=401", 401, r"check\(\) in \S*guarded.c:\d+, a guard of show\(\), returned 401"),
    ("/checked/?result=503", 503, r"check\(\) in \S*guarded.c:\d+, a guard of show\(\), returned 503"),
    ("/checked/?result=-13", 403, r"check\(\) in \S*guarded.c:\d+ answered -EACCES \(Permission denied\)"),
    ("/checked/?own", 404, r"show\(\) in \S*guarded.c:\d+ returned 404"),
    ("/staff/?staff", 200, "shown"),
])
def test_error_page_names_the_middleware_that_rejected_the_request(server, target, status, why):
    for fields in ([], BROWSER):
        page = server.get(target, fields=fields)
        assert page.status == status and re.search(why, page.text), page.text


@pytest.mark.skipif(not shutil.which("addr2line"), reason="no addr2line here")
@pytest.mark.parametrize("name, mark", [("compute", "computes"), ("nap", "sleeps")])
def test_handler_that_blocks_the_loop_is_shown_with_its_line(server, name, mark):
    """The message appears while the handler blocks, because the handler may never return."""
    with server.connect() as client:
        client.ask(f"/{name}")
        server.err.wait_for(rf"{name}\(\) in \S*guarded.c:\d+ has blocked the event loop for more than 500 ms: .*request GET /{name}")
        match = server.err.wait_for(rf"guarded.c:(\d+): in {name}\(\)\n")
    assert int(match[1]) - line_of(mark) in (0, 1) if name == "compute" else int(match[1]) == line_of(mark)
    assert f"> {match[1]:>4}  " in server.err.text or re.search(rf">\s+{match[1]}  ", server.err.text), "the excerpt is shown"
    if name == "compute":
        server.kill()
        server.exit_code = -9


def test_endless_handler_is_ended_after_5_seconds_and_shown_in_the_browser(server):
    """A request that arrives meanwhile waits for the replacement worker, which serves it."""
    server.allow("WatchdogTimeout", "has blocked the event loop", "terminated its worker", "signal 9")
    with server.connect() as first, server.connect() as second:
        begin = time.monotonic()
        first.ask("/compute", fields=BROWSER)
        server.err.wait_for("has blocked the event loop")
        second.ask("/staff/?staff")
        page = first.read()
        assert 4 < time.monotonic() - begin < 20, "the default WatchdogTimeout is 30 s"
        assert page.status == 500 and re.search(r"compute\(\) in \S*guarded.c:\d+ has blocked the event loop", page.text), page.text
        assert "set WatchdogTimeout in the [SERVER] section" in page.text
        assert second.read().text == "shown\n"
    if shutil.which("addr2line"):
        assert "while (!zero)" in page.text, page.text
    assert server.get("/staff/?staff").text == "shown\n"


def test_short_block_is_shown_with_route_and_function(server, src):
    """The call itself is not interrupted: the handler sleeps as long as it asked for."""
    path = src / "guarded.c"
    path.write_text(GUARDED.replace("DUDA_SERVICE(", r"""#include <unistd.h>
static int doze(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", (int)sleep(2));
}
DUDA_SERVICE(""").replace('DUDA_GET("/nap"', 'DUDA_GET("/doze/:n", doze, "Dozes."), DUDA_GET("/nap"'))
    assert server.get("/doze/7").text == "0\n"
    server.err.wait_for(r"warning: doze\(\) in \S*guarded.c:\d+ blocks the event loop for more than 50 ms \(computed for \d ms, "
                        r"blocked in system calls for \d\d+ ms, without a processor for \d+ ms\); other requests wait; route /doze/:n, request GET /doze/7\n")
    assert server.err.text.count("warning: doze()") == 1


def thread_files(pid):
    """Returns the names of the files about threads in /proc that the process and its descendants have open."""
    found = {m[1] for target in descriptors(pid).values() if (m := re.fullmatch(r"/proc/\d+/task/\d+/(\w+)", target))}
    return found.union(*map(thread_files, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_worker_opens_the_states_of_its_thread(server):
    """Without them, it could not distinguish a handler without a processor from one that blocks in a system call."""
    assert server.get("/staff/?staff").text == "shown\n"
    assert {"stat", "schedstat"} <= thread_files(server.pid)


STARVED = r"""#define _GNU_SOURCE
#include <duda.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { OTHERS = 100 };

static atomic_bool is_done;

static void *use_processor(void *arg)
{
    while (!atomic_load(&is_done))
        continue;
    return arg;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* For two seconds, this thread shares one processor with many others. It keeps its priority: with a lower one, it might never
 * run again on a busy machine. */
static int starve(struct duda_ctx *d)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    pthread_t others[OTHERS];
    int n = 0;
    if (sched_setaffinity(0, sizeof one, &one))
        return 500;
    double end = seconds(CLOCK_MONOTONIC) + 2;
    while (n < OTHERS && !pthread_create(&others[n], NULL, use_processor, NULL))
        n++;
    while (seconds(CLOCK_MONOTONIC) < end)
        continue;
    atomic_store(&is_done, true);
    while (n > 0)
        pthread_join(others[--n], NULL);
    return duda_puts(d, "starved\n");
}

DUDA_SERVICE(starved, DUDA_GET("/", starve, "Starves."));
"""


def test_handler_without_a_processor_is_not_blamed(start, src):
    (src / "starved.c").write_text(STARVED)
    server = start(src / "starved.c")
    assert server.get("/").text == "starved\n"
    found = server.err.wait_for(r"warning: starve\(\) in \S*starved.c:\d+ is slow because this machine is busy \(computed for (\d+) ms, "
                                r"blocked in system calls for (\d+) ms, without a processor for (\d+) ms\); other requests wait")
    assert int(found[1]) + int(found[2]) < 50 and int(found[3]) >= 500
    assert "blocks the event loop" not in server.err.text and "has blocked" not in server.err.text


def test_terminal_shows_no_messages_of_internal_servers(server, src):
    """The terminal shows only the expected messages during startup, errors, a crash, a save and shutdown."""
    assert server.get("/nothing").status == 404
    assert server.get("/staff/").status == 403 and server.get("/checked/?result=503").status == 503
    assert server.get("/crash").status == 500
    assert server.get("/nap").text == "napped\n"
    (src / "guarded.c").write_text(GUARDED.replace("shown", "now"))
    assert server.get("/staff/?staff").text == "now\n"
    server.stop()
    logged = [line for line in server.err.text.splitlines() if re.match(r"\d{4}-\d\d-\d\dT", line)]
    assert logged == [], logged
    out = [line for line in re.sub(r"in \d+ ms", "in N ms", server.out.text).splitlines() if not line.startswith("GET ")]
    assert out[0].startswith("Monkey runs ") and out[2:] == ["guarded.c: compiled in N ms"] * 2, out


# ---- Warnings of cached objects ----

WARNED = """#include <duda.h>
static int f(struct duda_ctx *d)
{
    int unused = 3;
    return duda_puts(d, "ok\\n");
}
DUDA_SERVICE(warned, DUDA_GET("/", f));
"""
WARNING = r"warned\.c:4:9: warning: unused variable"


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
def test_warnings_are_printed_again_for_objects_from_the_cache(start, run, src, cache, runtime):  # pylint: disable=redefined-outer-name
    source = src / "warned.c"
    source.write_text(WARNED)
    environment = {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(runtime)}
    for _ in range(2):
        done = run("routes", source, environment=environment)
        assert done.code == 0 and re.search(WARNING, done.err), done
    for _ in range(2):
        server = start(source)
        server.err.wait_for(WARNING)
        assert server.get("/").text == "ok\n"
        server.stop()
    for _ in range(2):
        done = run("build", "-o", src / "warned.so", source, environment=environment)
        assert done.code == 0 and len(re.findall(WARNING, done.err)) == 1, done
    source.write_text(WARNED.replace("    int unused = 3;\n", ""))
    for _ in range(2):
        done = run("routes", source, environment=environment)
        assert done.code == 0 and "warning" not in done.err, done


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
def test_warnings_of_the_other_sources_are_kept_when_one_changes(run, src, cache, runtime):
    environment = {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(runtime)}
    src.mkdir(exist_ok=True)
    (src / "warned.c").write_text(WARNED)
    (src / "other.c").write_text("int other(void);\nint other(void) { return 1; }\n")
    for text in ("return 1;", "return 2;", "return 2;"):
        (src / "other.c").write_text(f"int other(void);\nint other(void) {{ {text} }}\n")
        done = run("routes", src, environment=environment)
        assert done.code == 0 and len(re.findall(WARNING, done.err)) == 1, done


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
def test_wrong_format_is_an_error(run, src, cache, runtime):
    src.mkdir(exist_ok=True)
    (src / "warned.c").write_text(WARNED.replace('duda_puts(d, "ok\\n")', 'duda_printf(d, "%s", unused)'))
    done = run("routes", src / "warned.c", environment={"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(runtime)})
    assert done.code != 0 and "error: format" in done.err, done
