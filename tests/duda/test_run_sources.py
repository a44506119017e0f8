# SPDX-License-Identifier: Apache-2.0
"""The sources that `monkey run` compiles: services with several files, and messages that name the developer's files."""
import os
import re
import shutil
from pathlib import Path

import pytest

import services
from monkey import ROOT
from running import BROWSER, cache, compilers, runtime, src, start  # pylint: disable=unused-import

RELEASE = Path(os.environ.get("MONKEY_RELEASE", ROOT / "build/release/monkey"))
pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

SPLIT = r"""/* sources: util.c, more/deep.c */
#include <duda.h>
int util_add(int a, int b);
int deep(void);

static int add(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", util_add(1, 2) + deep());
}

DUDA_SERVICE(split, DUDA_GET("/", add, "Adds."));
"""


@pytest.fixture
def split(src):
    (src / "more").mkdir(parents=True)
    (src / "split.c").write_text(SPLIT)
    (src / "util.c").write_text('#include "util.h"\nint util_add(int a, int b);\nint util_add(int a, int b)\n{\n    return a + b + MORE;\n}\n')
    (src / "util.h").write_text("#define MORE 0\n")
    (src / "more/deep.c").write_text("int deep(void);\nint deep(void)\n{\n    return 100;\n}\n")
    return src / "split.c"


@compilers
@pytest.mark.parametrize("comment", ["sources: util.c, more/deep.c", "sources: util.c\n * sources: more/deep.c", "cflags: -DX util.c more/deep.c"])
def test_service_of_several_sources(start, src, split, compiler, comment):
    """Each source is compiled and cached, and watched together with its included files, even after a restart."""
    split.write_text(SPLIT.replace("sources: util.c, more/deep.c", comment))
    server = start(split, compiler=compiler)
    assert server.get("/").text == "103\n"
    (src / "util.h").write_text("#define MORE 5\n")
    assert server.get("/").text == "108\n"
    (src / "more/deep.c").write_text((src / "more/deep.c").read_text().replace("100", "200"))
    assert server.get("/").text == "208\n"
    server.stop()
    (src / "util.h").write_text("#define MORE 7\n")
    assert start(split, compiler=compiler).get("/").text == "210\n"


def test_errors_in_another_source_are_shown(start, src, split):
    util = (src / "util.c").read_text()
    (src / "util.c").unlink()
    server = start(split)
    assert "`sources: util.c`: there is no such file" in server.get("/").text
    (src / "util.c").write_text(util.replace("MORE;", "MORE + missing;"))
    page = server.get("/").text
    assert "util.c:5: error:" in page and "linker" not in page and "/usr/bin/ld" not in page, page
    (src / "util.c").write_text(util)
    assert server.get("/").text == "103\n"


def test_build_takes_all_sources_from_another_folder(run, monkey, src, split, cache, tmp_path):
    cache.mkdir(exist_ok=True)
    done = run("build", "-o", tmp_path / "split.so", split, environment={"XDG_CACHE_HOME": str(cache)}, folder=Path("/"))
    assert done.code == 0, done
    assert monkey(plugins=[tmp_path / "split.so"]).get("/").text == "103\n"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("split")) == ["split.so"]


@compilers
def test_undefined_function_has_a_source_line(start, src, compiler):
    path = src / "lost.c"
    text = ('#include <duda.h>\nint missing(void);\n\nstatic int a(struct duda_ctx *d)\n{\n    return missing() + duda_puts(d, "a");\n}\n'
            'DUDA_SERVICE(lost, DUDA_GET("/", a, "A."));\n')
    path.write_text(text)
    server = start(path, compiler=compiler)
    page = server.get("/", fields=BROWSER).text
    assert "lost.c:6: error: `missing` is used, but not defined" in page and "return missing() +" in page, page
    assert "mk_" not in page and "/usr/bin/ld" not in page, "functions of the server are not reported as undefined"
    path.write_text(text.replace("int missing(void);", "int missing(void), other(void);").replace("missing() +", "missing() +\n        other() +"))
    page = server.get("/").text
    assert "lost.c:6: error: `missing`" in page and re.search(r"lost.c:[67]: error: `other`", page), "every symbol has a line"
    path.write_text(text.replace("int missing(void);", "static int missing(void) { return 0; }"))
    assert server.get("/").text == "a"


def test_errors_come_before_warnings(start, src):
    path = src / "both.c"
    path.write_text('#include <duda.h>\nstatic int unused(void) { return 1; }\nstatic int a(struct duda_ctx *d) { return duda_puts(d, "a") }\n'
                    'DUDA_SERVICE(both, DUDA_GET("/", a, "A."));\n')
    for page in (start(path).get("/", fields=BROWSER).text, start(path).get("/").text):
        assert "both.c:3: error" in page and page.index("both.c:3: error") < page.index("warning:"), page


@pytest.mark.parametrize("name, text, message", [
    ("brk.c", '#include <duda.h>\n\nDUDA_SERVICE(My_brk, DUDA_GET("/", 0, ""));\n', "brk.c:3: error: DUDA_SERVICE(My_brk, ...): the name of a service"),
    ("hello.cpp", "int main() {}\n", "hello.cpp:1:1: error: expected DUDA_SERVICE(...)"),
    ("early.c", '#include <duda.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void early(void) { abort(); }\n'
     'static int a(struct duda_ctx *d) { return duda_puts(d, "a"); }\nDUDA_SERVICE(early, DUDA_GET("/", a, "A."));\n',
     "early.c`: it is broken: loading it crashes with signal "),
    ("twice.c", '#include <duda.h>\nstatic int a(struct duda_ctx *d) { return duda_puts(d, "a"); }\nDUDA_SERVICE(twice,\n'
     '    DUDA_GET("/:x", a, "A."),\n    DUDA_GET("/:y", a, "Again."));\n', "twice.c:5: error: `GET /:y`")])
def test_messages_point_to_the_files_of_the_developer(start, src, tmp_path, name, text, message):
    """No message names the generated configuration or the cache folder of `monkey run`."""
    (src / name).write_text(text)
    server = start(src / name)
    page = server.get("/")
    assert page.status == 500 and message in page.text, page.text
    for text in (page.text, server.err.text):
        assert "back.conf" not in text and "monkey-run-" not in text and "/cache/" not in text, text
    server.err.wait_for(re.escape(message))


@pytest.mark.skipif(not shutil.which("addr2line"), reason="no addr2line here")
def test_crash_during_startup_has_a_source_line(start, src):
    (src / "fails.c").write_text('#include <duda.h>\nstatic int begin(struct mk_worker *worker)\n{\n    (void)worker;\n    *(volatile int *)8 = 1;\n'
                                 '    return 0;\n}\nstatic int a(struct duda_ctx *d) { return duda_puts(d, "a"); }\n'
                                 'DUDA_SERVICE(fails, DUDA_START(begin), DUDA_GET("/", a, "A."));\n')
    server = start(src / "fails.c", program=RELEASE)
    for page in (server.get("/").text, server.get("/", fields=BROWSER).text):
        assert "The service crashed when it was started: SIGSEGV" in page and "fails.c:5: in begin()" in page, page
        assert "duda-dev" not in page and page.count("in begin()") == 1, page
    server.err.wait_for(r"fails.c:5: in begin\(\)")


def test_function_of_a_file_beside_the_source_gets_a_hint(run, src, cache, runtime):
    src.mkdir(exist_ok=True)
    (src / "main.c").write_text('#include <duda.h>\nint add(int a);\nstatic int f(struct duda_ctx *d) { return duda_printf(d, "%d", add(1)); }\n'
                                'DUDA_SERVICE(main, DUDA_GET("/", f));\n')
    environment = {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(runtime)}
    done = run("routes", src / "main.c", environment=environment)
    assert done.code == 1 and "hint" not in done.err, done
    (src / "main_test.c").write_text("int add(int a);\n")
    (src / "util.c").write_text("int add(int a);\nint add(int a) { return a + 1; }\n")
    done = run("routes", src / "main.c", environment=environment)
    assert done.code == 1 and f"hint: util.c contains `add()`: compile the folder {src} instead of one file" in done.err, done
    assert run("routes", src, environment=environment).code == 0
