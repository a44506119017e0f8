# SPDX-License-Identifier: Apache-2.0
"""A debugger attaches to a service as it does to any other program: it stops at a breakpoint and shows the handler's
own stack."""
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import proc
import services
from monkey import PROGRAM, ROOT, SECONDS

pytestmark = [pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here"),
              pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is not installed")]
SOURCE = """#include <duda.h>

static int twice(struct duda_ctx *d, int n)
{
    return duda_printf(d, "%d\\n", 2 * n); /* here */
}

static int handler_of_pages(struct duda_ctx *d)
{
    int e = duda_sleep(d, 1); /* resumes in another loop iteration */
    return e ? e : twice(d, 21);
}

DUDA_SERVICE(pages, DUDA_GET("/", handler_of_pages, ""));
"""
LINE = SOURCE[:SOURCE.index("/* here */")].count("\n") + 1
RELEASE = Path(os.environ.get("MONKEY_RELEASE", ROOT / "build/release/monkey"))
CRASHES = """#define DUDA_USE "duda-kv"
#include <duda.h>
#include <duda/kv.h>

static struct duda_kv *volatile broken = (struct duda_kv *)8;

static int load(struct duda_ctx *d, const char *name)
{
    mk_str value;
    int e = duda_kv_get(d, broken, mk_str_from_c(name), &value); /* crashes */
    return e ? e : 200;
}

static int handler_that_crashes(struct duda_ctx *d)
{
    int e = duda_sleep(d, 1); /* resumes in another loop iteration */
    return e ? e : load(d, "name");
}

DUDA_SERVICE(crashes, DUDA_GET("/", handler_that_crashes, ""));
"""


class Debugger:
    """gdb, attached as the guide describes. `command` sends a command; `text` returns the output."""

    def __init__(self, pid):
        self.process = subprocess.Popen(["gdb", "-q", "-nx", "-p", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=os.environ | {"DEBUGINFOD_URLS": ""})
        self.text = ""
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while some := os.read(self.process.stdout.fileno(), 4096):
            self.text += some.decode(errors="replace")

    def command(self, command, pattern):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        self.wait_for(pattern)

    def wait_for(self, pattern):
        proc.wait_until(lambda: re.search(pattern, self.text), f"{pattern!r} from gdb", 4 * SECONDS)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdin.close()
        self.process.stdout.close()


def processes_below(pid):
    return [each for child in proc.children(pid) for each in [child, *processes_below(child)]]


def command_of_the_guide():
    return re.search(r"^    gdb -p \$\((pgrep .*)\)$", (ROOT / "docs/guide/duda-debugging.md").read_text(), re.MULTILINE)[1]


def worker_of(server):
    """The guide's pgrep command may find workers of other servers, so this function selects the one of this server."""
    found = subprocess.run(["pgrep", "-x", "monkey: service"], capture_output=True, text=True, check=True).stdout.split()
    worker, = [pid for pid in map(int, found) if pid in processes_below(server.pid)]
    return worker


def test_gdb_breaks_in_a_handler(monkey, tmp_path):
    """gdb, attached as the guide describes, stops at a breakpoint in a handler."""
    path = tmp_path / "pages.c"
    path.write_text(SOURCE)
    server = monkey(args=["run", "-p", "0", path], environment={"XDG_CACHE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert server.get("/").text == "42\n"
    assert command_of_the_guide() == "pgrep -nx 'monkey: service'"
    debugger = Debugger(worker_of(server))
    try:
        debugger.command("set pagination off", r"\(gdb\)")
        debugger.command(f"break pages.c:{LINE}", r"Breakpoint 1 at")
        debugger.command("continue", "Continuing")
        answers = []
        client = threading.Thread(target=lambda: answers.append(server.get("/")))
        client.start()
        debugger.wait_for(rf"(?s)hit Breakpoint 1, .*pages\.c:{LINE}")
        debugger.command("backtrace", r"#1 .*handler_of_pages")
        debugger.command("print n", r"\$1 = 21")
        debugger.command("delete", "")
        debugger.command("detach", r"[Dd]etached|Detaching")
        client.join()
        assert answers[0].text == "42\n"
    finally:
        debugger.end()
    server.allow("serves nothing", "serves again")


@pytest.mark.skipif(not services.has("kv"), reason="this build has no duda-kv")
@pytest.mark.parametrize("program", [PROGRAM, pytest.param(RELEASE, marks=pytest.mark.skipif(not RELEASE.exists(), reason="the release program is not built"))],
                         ids=["dev", "release"])
def test_gdb_shows_the_handler_of_a_crash_in_a_package(monkey, tmp_path, program):
    """The packages have unwind tables, so that gdb finds the callers of a function in which it has stopped."""
    path = tmp_path / "crashes.c"
    path.write_text(CRASHES)
    server = monkey(args=["run", "-p", "0", path], program=program, environment={"XDG_CACHE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    server.allow("crashed", "Sanitizer", "terminated its worker", "signal ", "serves nothing", r"duda-kv is loaded")
    assert server.get("/nothing").status == 404
    debugger = Debugger(worker_of(server))
    row = CRASHES[:CRASHES.index("/* crashes */")].count("\n") + 1
    pages = []
    client = threading.Thread(target=lambda: pages.append(server.get("/")))
    try:
        debugger.command("set pagination off", r"\(gdb\)")
        debugger.command("continue", "Continuing")
        client.start()
        debugger.wait_for("received signal SIGSEGV")
        debugger.command("backtrace", rf"(?s)#0 .*duda_kv_get.*\n#\d+ .*load .*name=.*crashes\.c:{row}\n#\d+ .*handler_that_crashes .*crashes\.c:\d+\n")
        debugger.command("frame function load", rf"crashes\.c:{row}")
        debugger.command("print name", r'"name"')
        debugger.command("detach", r"[Dd]etached|Detaching")
        client.join()
    finally:
        debugger.end()
    assert pages[0].status == 500 and f"crashes.c:{row}" in pages[0].text, pages[0].text
