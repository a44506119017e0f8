# SPDX-License-Identifier: Apache-2.0
"""While the session store is unreachable, no client is treated as logged out, whatever the handler does."""
import pytest

import redis_server
import services
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM, reason="no Redis here")

SOURCE = r"""
#define DUDA_USE "duda-store", "duda-redis"
#include <duda.h>
#include <duda/redis.h>
#include <duda/store.h>

/* Returns an absent string if there is no such value or the store is down. */
static inline mk_str session_value(struct duda_ctx *d, const char *name)
{
    mk_str value;
    (void)!duda_session_get(d, name, &value);
    return value;
}

static int log_in(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d);
    e = e ? e : duda_session_set(d, "user", MK_STR("ana"));
    return e ? e : duda_puts(d, "welcome\n");
}

static int show(struct duda_ctx *d)
{
    mk_str user = session_value(d, "user");
    return user.p ? duda_printf(d, "hello %s\n", user.p) : duda_puts(d, "hello stranger\n");
}

static int forbid(struct duda_ctx *d)
{
    return session_value(d, "user").p ? duda_puts(d, "secret\n") : 403;
}

static int redirect(struct duda_ctx *d)
{
    return session_value(d, "user").p ? duda_puts(d, "secret\n") : duda_redirect(d, 303, MK_STR("/log-in"));
}

static bool is_known(struct duda_ctx *d)
{
    return session_value(d, "user").p;
}

/* An absent value would let the request through, so this handler must not run while the store is down. */
static int is_not_banned(struct duda_ctx *d)
{
    return session_value(d, "banned").p ? 403 : DUDA_NEXT;
}

static unsigned n_runs;

static int run(struct duda_ctx *d)
{
    return duda_printf(d, "%u\n", ++n_runs);
}

static int runs(struct duda_ctx *d)
{
    return duda_printf(d, "%u\n", n_runs);
}

static int uses_redis(struct duda_ctx *d)
{
    return duda_redis_find(d, NULL) && duda_store_find(d, NULL) ? 200 : 404;
}

DUDA_ROUTES(known, DUDA_REQUIRE(is_known, 403), DUDA_GET("/run", run, ""));
DUDA_ROUTES(fair, DUDA_BEFORE(is_not_banned), DUDA_GET("/run", run, ""));
DUDA_SERVICE(visits, DUDA_POST("/log-in", log_in, ""), DUDA_GET("/show", show, ""), DUDA_GET("/forbid", forbid, ""),
    DUDA_GET("/redirect", redirect, ""), DUDA_GET("/runs", runs, ""), DUDA_GET("/redis", uses_redis, ""),
    DUDA_GROUP("/known", known, ""), DUDA_GROUP("/fair", fair, ""));
"""
PATHS = ["/show", "/forbid", "/redirect", "/known/run", "/fair/run"]


@pytest.fixture
def redis():
    server = redis_server.Redis()
    yield server
    server.stop()


def test_unreachable_session_store_is_503_and_logs_no_client_out(monkey, tmp_path, redis):
    server = monkey(plugins=[services.build(tmp_path, "visits", SOURCE, packages=("redis", "store"))], workers=1,
                    top=f"[REDIS]\n    Server unix:{redis.socket}\n    Timeout 1s\n[SESSIONS]\n    Store main\n")
    server.allow("REDIS", "session", "answered")
    cookie = [("Cookie", server.get("/log-in", "POST").all("Set-Cookie")[0].split(";")[0])]
    assert server.get("/show", fields=cookie).text == "hello ana\n"
    before = server.get("/runs").text
    redis.kill()
    for path in PATHS:
        answer = server.get(path, fields=cookie)
        assert answer.status == 503 and "stranger" not in answer.text, path
    assert server.get("/runs").text == before, "no handler ran"
    server.err.wait_for(r"show\(\) in \S+ answered 503: .")
    assert server.get("/show").text == "hello stranger\n", "a request without a cookie needs no store"
    redis.start_again()
    wait_until(lambda: server.get("/show", fields=cookie).status == 200, "the store answers again")
