# SPDX-License-Identifier: Apache-2.0
"""A service compiled with AddressSanitizer runs in a server without it. The sanitizer detects access to a request's
memory after the end of the request."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import services
from monkey import ROOT
from running import COMPILER, cache, runtime, src, start  # pylint: disable=unused-import

RELEASE = Path(os.environ.get("MONKEY_RELEASE", ROOT / "build/release/monkey"))


def sanitizer():
    """The path of the sanitizer's library, which comes with gcc."""
    return subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()


pytestmark = pytest.mark.skipif(
    not services.BUILT.exists() or not shutil.which("gcc") or not RELEASE.exists() or not Path(sanitizer()).is_absolute(),
    reason="no Duda, no release build, or no AddressSanitizer here")

KEPT = r"""/* cflags: -fsanitize=address */
#include <duda.h>
#include <stdlib.h>

static mk_str kept;
static char *block;

static int keep(struct duda_ctx *d)
{
    kept = duda_query(d, "what").p[0] == 'f' ? duda_header(d, "X-Kept") : duda_query(d, "what").p[0] == 'a' ? duda_strdup(d, MK_STR("abc"))
        : duda_query(d, "what").p[0] == 'm' ? mk_str_of(mk_request_alloc(duda_request(d), 8), 8)
        : duda_request_id(d);
    return duda_printf(d, "%zu\n", kept.len);
}

static int keep_param(struct duda_ctx *d)
{
    kept = duda_param(d, "name");
    return duda_printf(d, "%zu\n", kept.len);
}

static int keep_copy(struct duda_ctx *d)
{
    static char copy[16];
    duda_alloc(d, 100);
    kept = mk_str_of(copy, sizeof copy);
    return duda_puts(d, "16\n");
}

static int use(struct duda_ctx *d)
{
    volatile char c = kept.p[0]; /* used */
    return duda_printf(d, "%d\n", c);
}

static int release(struct duda_ctx *d)
{
    size_t mark = duda_arena_mark(d);
    volatile char *p = duda_alloc(d, 64);
    p[63] = 'x';
    duda_arena_rewind(d, mark);
    return duda_printf(d, "%d\n", p[63]); /* released */
}

static int beyond(struct duda_ctx *d)
{
    volatile char *p = duda_alloc(d, 20);
    p[20] = 'x'; /* beyond */
    return duda_puts(d, "x\n");
}

static int freed(struct duda_ctx *d)
{
    block = malloc(10);
    free(block);
    return duda_printf(d, "%d\n", block[3]); /* freed */
}

DUDA_SERVICE(kept, DUDA_GET("/keep", keep, "Keeps a pointer."), DUDA_GET("/keep/:name", keep_param, "Keeps a parameter."),
    DUDA_GET("/copy", keep_copy, "Keeps a copy."), DUDA_GET("/use", use, "Uses the pointer."), DUDA_GET("/release", release, "Uses released memory."),
    DUDA_GET("/beyond", beyond, "Writes beyond the end."), DUDA_GET("/freed", freed, "Uses freed memory."));
"""


@pytest.fixture
def server(monkey, src, tmp_path, cache, runtime, start):  # pylint: disable=unused-argument
    (src / "kept.c").write_text(KEPT)
    server = monkey(args=["run", "-p", "0", src / "kept.c"], program=RELEASE, environment={
        "XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(runtime), "CC": "gcc"})
    server.allow("Sanitizer", "SIGABRT", "killed by signal", "ended", "crashed")
    return server


def line_of(mark):
    return KEPT[:KEPT.index(f"/* {mark} */")].count("\n") + 1


@pytest.mark.parametrize("target", ["/keep?what=field", "/keep?what=alloc", "/keep?what=memory", "/keep?what=id", "/keep/parameter"])
def test_use_of_request_memory_after_its_end_is_reported(server, target):
    assert server.get(target, fields=[("X-Kept", "value")]).status == 200
    page = server.get("/use").text
    assert "AddressSanitizer: heap-use-after-free" in page and f"kept.c:{line_of('used')}" in page, page
    assert server.get("/copy").status == 200 and server.get("/use").text == "0\n", "the copy may be used"


@pytest.mark.parametrize("name, error", [("release", "heap-use-after-free"), ("beyond", "use-after-poison"), ("freed", "heap-use-after-free")])
def test_invalid_memory_access_is_reported(server, name, error):
    page = server.get(f"/{name}").text
    assert f"AddressSanitizer: {error}" in page and f"kept.c:{line_of({'release': 'released'}.get(name, name))}" in page, page


def test_guide_contains_the_sanitizer_commands():
    text = (ROOT / "docs/guide/duda-debugging.md").read_text()
    assert re.search(r"LD_PRELOAD=\$\(gcc -print-file-name=libasan\.so\) monkey -c", text) and KEPT.splitlines()[0] in text
