# SPDX-License-Identifier: Apache-2.0
"""`monkey run` in a real browser during development: compile errors and crashes appear with file, line and source code
until the source is fixed."""
import shutil

import pytest

import browser
import services

pytestmark = [pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here"),
              pytest.mark.skipif(not browser.FOUND, reason="no Chromium here")]

GOOD = """#include <duda.h>

static int first_letter(const char *of)
{
    return of[0]; /* reads it */
}

static int hello(struct duda_ctx *d)
{
    return duda_printf(d, "hello %c", first_letter(duda_query_or(d, "name", "world")));
}

DUDA_SERVICE(letters, DUDA_GET("/", hello, ""));
"""
READS = GOOD[:GOOD.index("/* reads it */")].count("\n") + 1
MARKED = "[...document.querySelectorAll('span.bad')].map(e => e.innerText).join('\\n')"
TEXT = "document.body.innerText"


@pytest.fixture
def started(monkey, tmp_path, tmp_path_factory):
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)
    path = tmp_path / "letters.c"
    path.write_text(GOOD)
    return path, monkey(args=["run", "-p", "0", path], environment={"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)})


def test_errors_and_crashes_are_shown_until_fixed(started, tmp_path):
    path, server = started
    server.allow("Sanitizer", "worker", "runtime error")
    with browser.Browser(tmp_path) as b:
        b.goto(server.url + "/?name=you")
        assert b.run(TEXT) == "hello y"

        path.write_text(GOOD.replace("of[0];", "of[0] + missing;"))
        b.goto(server.url + "/?name=you")
        assert b.run("document.title") == "The service does not compile"
        assert f"letters.c:{READS}:" in b.run(TEXT) and "missing" in b.run("document.querySelector('h2').innerText")
        assert "return of[0] + missing; /* reads it */" in b.run(MARKED), "the page shows the source line"
        path.write_text(GOOD)
        b.wait_for(f"{TEXT} == 'hello y'")

        path.write_text(GOOD.replace('"world")', '"world") ? NULL : ""'))
        b.goto(server.url + "/?name=you")
        text = b.wait_for(f"{TEXT}.includes('SIGSEGV') && {TEXT}")
        assert "GET /?name=you" in text
        if shutil.which("addr2line"):
            assert f"letters.c:{READS}: in first_letter()" in text and "in hello()" in text
            assert "return of[0]; /* reads it */" in b.run(MARKED)
        path.write_text(GOOD)
        b.wait_for(f"{TEXT} == 'hello y'")
        assert [line for line in b.console if "500" not in line and "favicon" not in line] == []
