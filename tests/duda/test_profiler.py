# SPDX-License-Identifier: Apache-2.0
"""The profiler perf, used as the guide describes: handlers appear with the functions that they call."""
import re
import shutil
import subprocess
import threading

import pytest

import services
from monkey import ROOT, SECONDS

pytestmark = [pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here"),
              pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed")]

SOURCE = """#include <duda.h>

__attribute__((noinline)) static unsigned burn_cycles(unsigned n)
{
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum = sum + i;
    return sum;
}

static int slow_page(struct duda_ctx *d)
{
    int e = duda_sleep(d, 1); /* resumes in another loop iteration */
    return e ? e : duda_printf(d, "%u\\n", burn_cycles(3000000));
}

DUDA_SERVICE(hot, DUDA_GET("/", slow_page, ""));
"""


def commands_of_the_guide():
    guide = (ROOT / "docs/guide/duda-debugging.md").read_text()
    return re.search(r"^    perf record -g -p \$\(pgrep -nx '(.+?)'\) -- sleep 10\n    perf report --no-children$", guide, re.MULTILINE)


def test_perf_shows_handlers_and_their_callees(monkey, run, tmp_path):
    assert commands_of_the_guide()[1] == "monkey: worker"
    (tmp_path / "hot.c").write_text(SOURCE)
    done = run("build", "-o", tmp_path / "monkey-hot.so", tmp_path / "hot.c", environment={"XDG_CACHE_HOME": str(tmp_path)})
    assert done.code == 0, done
    server = monkey(plugins=[tmp_path / "monkey-hot.so"])
    worker, = server.workers
    with open(f"/proc/{worker}/comm", encoding="ascii") as name:
        assert name.read() == "monkey: worker\n"
    stop, data = threading.Event(), tmp_path / "perf.data"

    def load():
        while not stop.is_set():
            assert server.get("/").status == 200

    client = threading.Thread(target=load)
    client.start()
    try:
        recorded = subprocess.run(["perf", "record", "-e", "cpu-clock", "-g", "-o", data, "-p", str(worker), "--", "sleep", "1"], capture_output=True,
                                  text=True, timeout=SECONDS, check=False)
    finally:
        stop.set()
        client.join()
    if recorded.returncode:
        pytest.skip(f"perf may not record here: {recorded.stderr.strip()}")
    report = subprocess.run(["perf", "report", "--no-children", "--stdio", "-i", data], capture_output=True, text=True, timeout=4 * SECONDS, check=True).stdout
    assert re.search(r"burn_cycles(?s:.*?)slow_page", report), report
