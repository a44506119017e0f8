# SPDX-License-Identifier: Apache-2.0
"""Messages about mistakes of a handler begin with its name, and the file and the line of its table entry."""
import re

import pytest

import services

pytestmark = pytest.mark.skipif(not services.has("sqlite"), reason="this build has no Duda, or no SQLite")

SOURCE = r"""
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>

static int forget(struct duda_ctx *d)
{
    int e = duda_sql_begin(d, duda_sql_find(d, "main"));
    e = e ? e : duda_sql_query(d, duda_sql_find(d, "main"), NULL, "CREATE TABLE IF NOT EXISTS t (n INTEGER)");
    return e ? e : duda_puts(d, "done");
}

static int section(struct duda_ctx *d)
{
    return duda_sql_query(d, duda_sql_find(d, "other"), NULL, "SELECT 1");
}

static int template(struct duda_ctx *d)
{
    return duda_render(d, "none.html", duda_value_null());
}

static int text(struct duda_ctx *d)
{
    return duda_render_text(d, MK_STR("{{#open}}"), duda_value_null());
}

static int asset(struct duda_ctx *d)
{
    return duda_asset_url(d, MK_STR("none.css")).p ? 200 : 500;
}

static int url(struct duda_ctx *d)
{
    return duda_url_for(d, "none", duda_value_null()).p ? 200 : 500;
}

static int twice(struct duda_ctx *d)
{
    return duda_next(d) ? 500 : 200;
}

static int cookie(struct duda_ctx *d)
{
    return duda_cookie_set(d, &(struct mk_cookie){.name = "mistakes-session", .value = MK_STR("x")}) ? 500 : 200;
}

static int guard(struct duda_ctx *d)
{
    return duda_render(d, "none.html", duda_value_null());
}

static int hello(struct duda_ctx *d)
{
    return duda_puts(d, "hello");
}

static int remind(struct duda_ctx *d)
{
    return duda_render(d, "none.html", duda_value_null());
}

static int later(struct duda_ctx *d)
{
    return duda_after_response(d, remind, "", 1);
}

DUDA_ROUTES(guarded,
    DUDA_BEFORE(guard),
    DUDA_GET("/", hello));
DUDA_SERVICE(mistakes,
    DUDA_GET("/forget", forget),
    DUDA_GET("/section", section),
    DUDA_GET("/template", template),
    DUDA_GET("/text", text),
    DUDA_GET("/asset", asset),
    DUDA_GET("/url", url),
    DUDA_GET("/twice", twice),
    DUDA_GET("/cookie", cookie),
    DUDA_GET("/later", later),
    DUDA_GROUP("/guarded", guarded));
"""
# A path, the function that makes the mistake, and the message.
CASES = [
    ("/forget", "forget", "the handler returned success with an open transaction in the database `main`"),
    ("/section", "section", "there is no [SQLITE] or [POSTGRES] with the Name `other`"),
    ("/template", "template", "the service has no template templates/none.html"),
    ("/text", "text", "template, line 1"),
    ("/asset", "asset", "the service has no asset `none.css`"),
    ("/url", "url", 'duda_url_for("none")'),
    ("/twice", "twice", "duda_next() was called twice"),
    ("/cookie", "cookie", "the service must not set the cookie `mistakes-session`"),
    ("/guarded/", "guard", "the service has no template templates/none.html"),
]


def line_of(function):
    return next(i for i, line in enumerate(SOURCE.splitlines(), 1) if re.search(rf"DUDA_\w+\(.*\b{function}\)", line))


@pytest.fixture
def server(lasting):
    def start(monkey, site):
        folder = site.path.parent
        return monkey(plugins=["duda-sqlite", services.build(folder, "mistakes", SOURCE, packages=["sql"])], workers=1,
                      top=f"[SQLITE]\n    File {folder}/a.db\n")
    return lasting(start)


@pytest.mark.parametrize("path, function, message", CASES, ids=[path for path, *_ in CASES])
def test_mistake_names_function_and_line(server, path, function, message):
    server.get(path)
    server.err.wait_for(rf"GET {path} from [\d.]+: {function}\(\) in \S*mistakes\.c:{line_of(function)}: {re.escape(message)}")


def test_mistake_of_a_task_names_its_function(server):
    assert server.get("/later").status < 300
    server.err.wait_for(r"remind\(\) in a job: the service has no template templates/none.html")
