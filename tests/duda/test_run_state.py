# SPDX-License-Identifier: Apache-2.0
"""`monkey run` keeps sessions, values of stores, counters and kept messages when a saved version replaces the server."""
import shutil

import pytest

import services
from running import cache, runtime, src, start  # pylint: disable=unused-import

pytestmark = pytest.mark.skipif(not services.has("store") or not shutil.which("cc"), reason="no Duda, or no compiler here")

SOURCE = r"""#define DUDA_USE "duda-store"
#include <duda.h>
#include <duda/store.h>
#include <duda/topic.h>
#include <stdlib.h>

static int log_in(struct duda_ctx *d)
{
    int e = duda_session_log_in(d, MK_STR("ann"));
    return e ? e : duda_puts(d, "in\n");
}

static int me(struct duda_ctx *d)
{
    mk_str user = MK_STR_NULL;
    int e = duda_session_user(d, &user);
    return e ? e : duda_printf(d, "VERSION %s\n", user.p ? user.p : "nobody");
}

static int count(struct duda_ctx *d)
{
    int64_t n = 0;
    int e = duda_store_incr(d, duda_store_find(d, NULL), MK_STR("n"), 1, 0, &n);
    return e ? e : duda_printf(d, "%lld\n", (long long)n);
}

static int limited(struct duda_ctx *d)
{
    return duda_puts(d, "VERSION\n");
}

static int has_variable(struct duda_ctx *d)
{
    return duda_puts(d, getenv("DUDA_KEYS") ? "keys\n" : "none\n");
}

DUDA_SERVICE(keeps, DUDA_GET("/in", log_in), DUDA_GET("/me", me), DUDA_GET("/count", count),
             DUDA_GET("/limited", limited, "Is limited.", .rate = "2/hour"), DUDA_GET("/variable", has_variable));
"""


def save(src, version):
    (src / "keeps.c").write_text(SOURCE.replace("VERSION", version))
    return src / "keeps.c"


def cookie_of(answer):
    return [("Cookie", answer["Set-Cookie"].split(";")[0])]


@pytest.mark.parametrize("workers", ["1", "3"])
def test_state_outlives_a_save(start, src, workers):
    server = start(save(src, "one"), "-w", workers)
    cookie = cookie_of(server.get("/in"))
    assert server.get("/me", fields=cookie).text == "one ann\n"
    assert server.get("/count").text == "1\n"
    assert [server.get("/limited").status for _ in range(3)] == [200, 200, 429]
    for i, version in enumerate(("two", "three")):
        save(src, version)
        assert server.get("/me", fields=cookie).text == f"{version} ann\n"
        assert server.get("/count").text == f"{i + 2}\n"
        assert server.get("/limited").status == 429


def test_state_outlives_a_save_that_does_not_compile(start, src):
    server = start(save(src, "one"))
    cookie = cookie_of(server.get("/in"))
    save(src, "two\" broken")
    assert server.get("/me", fields=cookie).status == 500
    save(src, "three")
    assert server.get("/me", fields=cookie).text == "three ann\n"


def test_state_ends_with_monkey_run(start, src, runtime):
    server = start(save(src, "one"))
    cookie = cookie_of(server.get("/in"))
    assert server.get("/count").text == "1\n"
    server.stop()
    assert [path.name for path in runtime.iterdir()] == []
    server = start(src / "keeps.c")
    assert (server.get("/count").text, "ann" in server.get("/me", fields=cookie).text) == ("1\n", False)


def test_projects_do_not_share_state(start, src):
    first = start(save(src, "one"))
    cookie = cookie_of(first.get("/in"))
    (src / "other").mkdir()
    second = start(save(src / "other", "other"))
    assert first.get("/count").text == second.get("/count").text == "1\n"
    assert "ann" not in second.get("/me", fields=cookie).text
    assert first.get("/me", fields=cookie).text == "one ann\n"


def test_sealed_cookie_outlives_monkey_run(start, src, cache, tmp_path):
    """The key of the project is in the cache folder, readable only by the user."""
    (tmp_path / "c.conf").write_text("[SESSIONS]\n    Store cookie\n")
    server = start(save(src, "one"), "-i", tmp_path / "c.conf")
    cookie = cookie_of(server.get("/in"))
    assert server.get("/variable").text == "none\n"
    server.stop()
    server = start(save(src, "two"), "-i", tmp_path / "c.conf")
    assert server.get("/me", fields=cookie).text == "two ann\n"
    keys = list((cache / "monkey" / "duda").glob("key-*"))
    assert keys and all(key.stat().st_mode & 0o77 == 0 for key in keys)
