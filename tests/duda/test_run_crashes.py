# SPDX-License-Identifier: Apache-2.0
"""Crashes under `monkey run`: the page names the cause and the service's source line, for the current crash only."""
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

import services
from monkey import ROOT

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

RELEASE = Path(os.environ.get("MONKEY_RELEASE", ROOT / "build/release/monkey"))
FAULTS = r"""#include <duda.h>
#include <stdlib.h>
#include <unistd.h>

static int in_libc(struct duda_ctx *d)
{
    return duda_puts(d, (const char *)8); /* in_libc */
}

static int in_program(struct duda_ctx *d)
{
    return duda_write(d, mk_str_of((const char *)8, 4)); /* in_program */
}

static int in_format(struct duda_ctx *d)
{
    return duda_header_set(d, "X-A", mk_str_of((const char *)8, 4)); /* in_format */
}

static int compare(const void *a, const void *b)
{
    (void)a, (void)b;
    return *(volatile int *)8; /* in_callback */
}

static int in_callback(struct duda_ctx *d)
{
    int some[] = {3, 2, 1};
    qsort(some, 3, sizeof *some, compare);
    return duda_puts(d, "");
}

static int no_function(struct duda_ctx *d)
{
    duda_fn *volatile none = NULL;
    return none(d) + 1; /* no_function */
}

static int twice_freed(struct duda_ctx *d)
{
    char *volatile p = malloc(10);
    free(p);
    free(p); /* twice_freed */
    return duda_puts(d, "");
}

static int called_exit(struct duda_ctx *d)
{
    (void)d;
    exit(3); /* called_exit */
}

static int left(struct duda_ctx *d)
{
    (void)d;
    _exit(4);
}

static volatile int depth = 1000000;

static int recurse(volatile char *from)
{
    volatile char buffer[500];
    buffer[0] = from ? from[0] : 1;
    return depth-- > 0 ? recurse(buffer) + buffer[0] : 0; /* recursion */
}

static int recursion(struct duda_ctx *d)
{
    return recurse(NULL) + duda_puts(d, "");
}

static int large_array(struct duda_ctx *d)
{
    volatile char buffer[4 << 20]; /* large_array */
    buffer[0] = 1;
    return duda_printf(d, "%d", buffer[0]);
}

static int waiting(struct duda_ctx *d)
{
    duda_log(d, MK_LOG_WARN, "waits");
    int e = duda_sleep(d, 60000);
    return e ? e : duda_puts(d, "waited");
}

static volatile int zero;

static int endless(struct duda_ctx *d)
{
    while (!zero) /* endless */
        zero += 0; /* endless, too */
    return duda_puts(d, "never");
}

static int fine(struct duda_ctx *d)
{
    duda_log(d, MK_LOG_WARN, "said by %s", duda_query_or(d, "who", "nobody"));
    return duda_puts(d, "fine");
}

DUDA_SERVICE(faults, DUDA_GET("/in_libc", in_libc, ""), DUDA_GET("/in_program", in_program, ""), DUDA_GET("/in_format", in_format, ""),
    DUDA_GET("/in_callback", in_callback, ""), DUDA_GET("/no_function", no_function, ""), DUDA_GET("/twice_freed", twice_freed, ""),
    DUDA_GET("/called_exit", called_exit, ""), DUDA_GET("/left", left, ""), DUDA_GET("/recursion", recursion, ""),
    DUDA_GET("/large_array", large_array, ""), DUDA_GET("/fine", fine, ""),
    DUDA_GET("/waiting", waiting, ""), DUDA_GET("/endless", endless, ""));
"""
CAUSES = {"in_libc": "SIGSEGV", "in_program": "SIGSEGV", "in_format": "SIGSEGV", "in_callback": "SIGSEGV", "no_function": "SIGSEGV",
          "twice_freed": "SIGABRT", "called_exit": r"exit\(3\) ended the worker",
          "recursion": "SIGSEGV.* because its stack is full: give the route a larger `.stack`",
          "large_array": "SIGSEGV.* because its stack is full"}


@pytest.fixture
def faulty(monkey, tmp_path):
    """Uses the release build, because the sanitizers of the development build would report the crash differently."""
    if not RELEASE.exists():
        pytest.skip("the release program is not built")
    (tmp_path / "faults.c").write_text(FAULTS)
    (tmp_path / "short.conf").write_text("[SERVER]\n    WatchdogTimeout 5s\n")
    server = monkey(args=["run", "-p", "0", "-i", tmp_path / "short.conf", tmp_path / "faults.c"], program=RELEASE,
                    environment={"XDG_CACHE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    server.allow("worker", "crashed", "free\\(\\)", "answers 503")
    return server


@pytest.mark.skipif(not shutil.which("addr2line"), reason="no addr2line here")
@pytest.mark.parametrize("name", CAUSES)
def test_crash_anywhere_names_cause_and_own_line(faulty, name):
    """The crash may happen in the service, in Duda, in the program or in libc; the page always shows the line in the
    service."""
    page = faulty.get(f"/{name}")
    line = FAULTS[:FAULTS.index(f"/* {name} */")].count("\n") + 1
    assert page.status == 500 and re.search(f"{CAUSES[name]}.* in the handler of GET /{name}", page.text), page.text
    lines_before = {"large_array": 1, "recursion": 3}.get(name, 0)  # the stack may overflow where a function begins
    rows = {line, line - lines_before}
    assert {int(row) for row in re.findall(r"faults\.c:(\d+): in", page.text)} & rows, page.text


def test_crash_page_shows_this_crash_only(faulty):
    """The page shows neither the stack nor the output of an earlier crash."""
    assert faulty.get("/fine?who=first").text == "fine"
    page = faulty.get("/in_libc").text
    assert "SIGSEGV" in page and "said by first" not in page, "what earlier requests have logged does not belong to this one"
    assert faulty.get("/fine?who=second").text == "fine"
    page = faulty.get("/called_exit").text
    assert "exit(3)" in page and "SIGSEGV" not in page and "in_libc" not in page.split("Output")[0]
    assert "said by" not in page
    page = faulty.get("/left").text
    assert "closed the connection" in page and "exited unexpectedly with code 4" in page and "exit(3)" not in page and "said by" not in page


def test_output_of_the_request_is_on_its_crash_page(faulty):
    assert faulty.get("/fine?who=first").text == "fine"
    page = faulty.get("/twice_freed").text
    assert "double free" in page.split("Output")[1] and "said by first" not in page, page


def test_page_of_another_request_names_the_crash_that_ended_it(faulty):
    with faulty.connect() as client:
        client.ask("/waiting")
        faulty.err.wait_for("waits")
        assert "in the handler of GET /in_libc" in faulty.get("/in_libc").text
        text = client.read().text
        assert "in the handler of GET /in_libc. GET /waiting was in progress, too." in text and "in_libc()" in text, text
    faulty.err.wait_for(r"The service crashed: SIGSEGV.* in the handler of GET /in_libc\n")


@pytest.mark.skipif(not shutil.which("addr2line") or not shutil.which("c++"), reason="no addr2line, or no compiler for C++")
def test_crash_in_cpp_shows_readable_names_and_the_own_line(monkey, tmp_path):
    """The line is in the service, not in the library header whose function the compiler has inlined."""
    if not RELEASE.exists():
        pytest.skip("the release program is not built")
    (tmp_path / "plus.cpp").write_text('#include <duda.h>\n#include <string>\nstatic int at(struct duda_ctx *d)\n{\n    std::string text = "x";\n'
                                       '    return duda_printf(d, "%c", text.at(7));\n}\nDUDA_SERVICE(plus, DUDA_GET("/", at, "Crashes."));\n')
    server = monkey(args=["run", "-p", "0", tmp_path / "plus.cpp"], program=RELEASE,
                    environment={"XDG_CACHE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    server.allow("worker", "SIGABRT", "terminate called")
    page = server.get("/").text
    assert re.search(r"plus\.cpp:6: in at\(duda_ctx\*\)\n", page) and "> " in page and "_Z" not in page, page
    assert "std::out_of_range" in page.split("Output")[1], page


@pytest.mark.skipif(not shutil.which("addr2line"), reason="no addr2line here")
def test_page_of_an_endless_loop_shows_its_line(faulty):
    """The watchdog kills the worker. The page shows the stack that was reported before."""
    faulty.allow("WatchdogTimeout", "has blocked the event loop", "terminated its worker", "signal 9")
    page = faulty.get("/endless")
    line = FAULTS[:FAULTS.index("/* endless */")].count("\n") + 1
    assert page.status == 500 and "endless() in " in page.text and "has blocked the event loop" in page.text, page.text
    assert int(re.search(r"faults\.c:(\d+): in endless\(\)", page.text)[1]) - line in (0, 1), page.text
    assert "WatchdogTimeout has expired" in page.text
    page = faulty.get("/left").text
    assert "closed the connection" in page and "endless" not in page, page


def test_exit_of_a_stopping_service_is_reported(monkey, tmp_path):
    (tmp_path / "exits.c").write_text("#include <duda.h>\n#include <stdlib.h>\n"
                                      "static void stop(struct mk_worker *w) { (void)w; exit(3); }\n"
                                      "static int hello(struct duda_ctx *d) { return duda_puts(d, \"hello\"); }\n"
                                      "DUDA_SERVICE(exits, DUDA_STOP(stop), DUDA_GET(\"/\", hello));\n")
    server = monkey(args=["run", "-p", "0", tmp_path / "exits.c"],
                    environment={"XDG_CACHE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    server.allow("crashed")
    assert server.get("/").text == "hello"
    server.tell(signal.SIGTERM)
    server.wait()
    server.err.wait_for(r"exit\(3\) ended the worker[^>]*exits\.c:3: in stop\(\)")
