# SPDX-License-Identifier: Apache-2.0
"""A debugger attaches to a service as it does to any other program: it stops at a breakpoint and shows the handler's
own stack."""
import os
import re
import shutil
import subprocess
import threading

import pytest

import proc
import services
from monkey import ROOT, SECONDS

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


def test_gdb_breaks_in_a_handler(monkey, tmp_path):
    """gdb, attached as the guide describes, stops at a breakpoint in a handler.

    The guide's pgrep command may find workers of other servers, so the test selects a worker of its own server."""
    path = tmp_path / "pages.c"
    path.write_text(SOURCE)
    server = monkey(args=["run", "-p", "0", path], environment={"XDG_CACHE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert server.get("/").text == "42\n"
    assert command_of_the_guide() == "pgrep -nx 'monkey: service'"
    found = subprocess.run(["pgrep", "-x", "monkey: service"], capture_output=True, text=True, check=True).stdout.split()
    worker, = [pid for pid in map(int, found) if pid in processes_below(server.pid)]
    debugger = Debugger(worker)
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
