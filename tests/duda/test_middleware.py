# SPDX-License-Identifier: Apache-2.0
"""Middleware of services: functions around handlers, data of middleware and routes, and data attached to requests."""
import json

import pytest

import services
from client import Closed
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct plan {
    const char *name;
    unsigned max;
};
static const struct plan small = {"small", 2}, large = {"large", 1000};

static int check_plan(struct duda_ctx *d)
{
    const struct plan *plan = duda_middleware_data(d);
    int64_t n = 0;
    if (!duda_query_int_or(d, "n", 0, &n))
        return 400;
    return n > plan->max ? duda_problem(d, 403, "the plan %s allows %u", plan->name, plan->max) : DUDA_NEXT;
}

static bool has_key(struct duda_ctx *d)
{
    return mk_str_eq(duda_header(d, "X-Key"), mk_str_from_c(duda_middleware_data(d)));
}

static int show(struct duda_ctx *d)
{
    const char *text = duda_route_data(d);
    return duda_printf(d, "%s %s\n", text ? text : "none", duda_middleware_data(d) ? "wrong" : "none");
}

static int name_after(struct duda_ctx *d)
{
    return duda_header_add(d, "X-After", mk_str_from_c(duda_middleware_data(d)));
}

/* ---- A transaction ---- */

static int transaction(struct duda_ctx *d)
{
    int result = duda_next(d);
    unsigned status = duda_response_status(d);
    int e = duda_header_set(d, "X-Transaction", status >= 400 ? MK_STR("rolled back") : MK_STR("committed"));
    char text[16];
    snprintf(text, sizeof text, "%u", status);
    if (!e)
        e = duda_header_set(d, "X-Status", mk_str_from_c(text));
    return e ? e : result;
}

static int answer(struct duda_ctx *d)
{
    mk_str how = duda_param(d, "how");
    int64_t n;
    if (mk_str_eq(how, MK_STR("nap"))) {
        int e = duda_sleep(d, 20);
        return e ? e : duda_puts(d, "awake\n");
    }
    if (mk_str_eq(how, MK_STR("problem")))
        return duda_problem(d, 409, "taken");
    if (mk_str_eq(how, MK_STR("status")))
        return duda_status(d, 202) ? 500 : duda_puts(d, "later\n");
    return mk_num_parse_int(how, &n) ? (int)n : duda_puts(d, "done\n");
}

static int hide(struct duda_ctx *d)
{
    int result = duda_next(d);
    return result == 410 ? 404 : result;
}

static int twice(struct duda_ctx *d)
{
    int result = duda_next(d);
    return duda_next(d) == -EALREADY ? result : 500;
}

static int outside(struct duda_ctx *d)
{
    return duda_next(d) == -EALREADY ? duda_puts(d, "refused\n") : 500;
}

/* ---- Responses that start before the middleware is finished ---- */

static int late_around(struct duda_ctx *d)
{
    int result = duda_next(d);
    int e = duda_header_set(d, "X-Late", MK_STR("around"));
    return e ? e : result;
}

static int late_after(struct duda_ctx *d)
{
    return duda_header_set(d, "X-Late", MK_STR("after"));
}

static int outer_sees(struct duda_ctx *d)
{
    int result = duda_next(d);
    duda_log(d, MK_LOG_WARN, "the outer function sees %d", result);
    return result;
}

static int lines(struct duda_ctx *d)
{
    int64_t n = 0;
    int e = duda_param_int(d, "n", &n) ? 0 : 400;
    for (int64_t i = 0; i < n && !e; i++)
        e = duda_puts(d, "0123456789abcde\n");
    return e ? e : duda_query_or(d, "end", "0")[0] - '0' ? -EIO : 0;
}

static int stream(struct duda_ctx *d)
{
    int e = 0;
    for (int i = 0; i < 3 && !e; i++)
        e = duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("tick")});
    return e;
}

static int fails(struct duda_ctx *d)
{
    int result = duda_next(d);
    return result ? result : -EIO;
}

/* ---- Attached data ---- */

static const char user, other;
static int n_destroyed, n_alive;

struct text {
    char text[16];
};

static void destroy(void *value)
{
    free(value);
    n_destroyed++;
    n_alive--;
}

static struct text *text_of(const char *text)
{
    struct text *t = malloc(sizeof *t);
    snprintf(t->text, sizeof t->text, "%s", text);
    n_alive++;
    return t;
}

static int find_user(struct duda_ctx *d)
{
    int e = duda_attach(d, &user, text_of(duda_query_or(d, "user", "nobody")), destroy);
    return e ? e : DUDA_NEXT;
}

static int who(struct duda_ctx *d)
{
    struct text *t = duda_attached(d, &user);
    int e = duda_sleep(d, 30);
    if (e)
        return e;
    return duda_printf(d, "%s %s %d\n", t->text, ((struct text *)duda_attached(d, &user))->text, duda_attached(d, &other) != NULL);
}

static int replace(struct duda_ctx *d)
{
    int before = n_destroyed;
    if (duda_attach(d, &user, text_of("second"), destroy) || n_destroyed != before + 1)
        return 500;
    if (duda_attach(d, &other, duda_attached(d, &user), NULL) || duda_attach(d, &other, NULL, NULL) || duda_attached(d, &other))
        return 500;
    struct text *t = duda_attached(d, &user);
    if (duda_attach(d, &user, t, destroy) || n_destroyed != before + 1)
        return 500;
    size_t mark = duda_arena_mark(d);
    duda_alloc(d, 10000);
    duda_arena_rewind(d, mark);
    return duda_printf(d, "%s\n", t->text);
}

static int counts(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", n_alive);
}

DUDA_ROUTES(small_plan, DUDA_BEFORE(check_plan, .data = &small), DUDA_GET("/show", show));
DUDA_ROUTES(large_plan, DUDA_BEFORE(check_plan, .data = &large), DUDA_GET("/show", show, "Shows.", .data = "large data", .tags = "plans, shows"));
DUDA_ROUTES(keys, DUDA_AFTER(name_after, .data = "keys"), DUDA_REQUIRE(has_key, 401 + 2, .data = "sesame"), DUDA_GET("/show", show));
DUDA_ROUTES(around,
    DUDA_AROUND(hide),
    DUDA_AROUND(transaction),
    DUDA_REQUIRE(has_key, 403, .data = "sesame"),
    DUDA_GET("/:how", answer, "Answers.", .deadline_ms = 5000));
DUDA_ROUTES(late,
    DUDA_AROUND(outer_sees), DUDA_AROUND(late_around), DUDA_GET("/lines/:n<int>", lines), DUDA_GET("/stream", stream));
DUDA_ROUTES(late_header, DUDA_AFTER(late_after), DUDA_GET("/lines/:n<int>", lines), DUDA_GET("/stream", stream));
DUDA_ROUTES(failing, DUDA_AROUND(fails), DUDA_GET("/lines/:n<int>", lines));
DUDA_ROUTES(wrong, DUDA_GET("/outside", outside), DUDA_AROUND(twice), DUDA_GET("/twice/:how", answer));
DUDA_ROUTES(values, DUDA_BEFORE(find_user), DUDA_GET("/who", who), DUDA_GET("/replace", replace));
DUDA_SERVICE(middle,
    DUDA_GROUP("/small", small_plan),
    DUDA_GROUP("/large", large_plan),
    DUDA_GROUP("/keys", keys),
    DUDA_GROUP("/around", around),
    DUDA_GROUP("/wrong", wrong),
    DUDA_GROUP("/late", late),
    DUDA_GROUP("/late-header", late_header),
    DUDA_GROUP("/failing", failing),
    DUDA_GROUP("/values", values),
    DUDA_GET("/counts", counts));
"""


def prepare(monkey, site):
    monkey(plugins=[services.build(site.path.parent, "middle", SOURCE)])


def prepare_isolated(monkey, site):
    service = services.build(site.path.parent, "middle", SOURCE)
    monkey(plugins=["isolate"], sections=f"[ISOLATE]\n    Service {service}\n")


@pytest.fixture(params=["inside", "isolated"])
def server(lasting, request):
    return lasting(prepare if request.param == "inside" else prepare_isolated)


KEY = [("X-Key", "sesame")]


def test_middleware_reads_the_data_of_its_entry(server):
    assert server.get("/small/show?n=2").status == 200
    refused = server.get("/small/show?n=3")
    assert (refused.status, json.loads(refused.text)["detail"]) == (403, "the plan small allows 2")
    assert server.get("/large/show?n=3").status == 200
    assert server.get("/keys/show").status == 403
    assert server.get("/keys/show", fields=KEY)["X-After"] == "keys"


def test_middleware_does_not_run_without_a_route(server):
    for path, method, status in (("/keys/none", "GET", 404), ("/keys/show", "DELETE", 405)):
        answer = server.get(path, method, KEY)
        assert answer.status == status and "X-After" not in answer


def test_handler_reads_the_data_of_its_route(server):
    assert server.get("/small/show").text == "none none\n"
    assert server.get("/large/show").text == "large data none\n"


@pytest.mark.parametrize("how, status, text, transaction", [
    ("done", 200, "done\n", "committed 200"),
    ("nap", 200, "awake\n", "committed 200"),
    ("201", 201, "", "committed 201"),
    ("0", 204, "", "committed 204"),
    ("status", 202, "later\n", "committed 202"),
    ("problem", 409, None, "rolled back 409"),
    ("422", 422, None, "rolled back 422"),
    ("-5", 500, None, "rolled back 500"),
    ("-2", 404, None, "rolled back 404"),
    ("7", 500, None, "rolled back 500"),
    ("410", 404, None, "rolled back 410"),
])
def test_around_function_sees_the_result_and_the_status(server, how, status, text, transaction):
    answer = server.get(f"/around/{how}", fields=KEY)
    assert (answer.status, f"{answer['X-Transaction']} {answer['X-Status']}") == (status, transaction)
    if text is not None:
        assert answer.text == text


def test_around_function_encloses_later_guards(server):
    refused = server.get("/around/done")
    assert (refused.status, refused["X-Transaction"]) == (403, "rolled back")


def test_handler_runs_only_once(server):
    assert server.get("/wrong/twice/done").text == "done\n"
    assert server.get("/wrong/outside").text == "refused\n"


@pytest.mark.parametrize("group, function", [("late", "late_around"), ("late-header", "late_after")])
@pytest.mark.parametrize("n", [10, 4095, 4096, 65536])
def test_late_header_does_not_truncate_the_response(server, group, function, n):
    answer = server.get(f"/{group}/lines/{n}")
    assert (answer.status, answer.text) == (200, "0123456789abcde\n" * n)
    assert ("X-Late" in answer) == (n < 4096), "a body of 64 KB starts the response before the middleware runs"
    if n >= 4096:
        server.err.wait_for(rf"{function}\(\) in \S*middle.c:\d+: the header comes too late: the response has started")


def test_late_header_after_an_event_stream(server):
    for group, function in (("late", "late_around"), ("late-header", "late_after")):
        answer = server.get(f"/{group}/stream")
        assert (answer.status, answer.text.count("data: tick")) == (200, 3)
        server.err.wait_for(rf"{function}\(\) in \S*middle.c:\d+: the header comes too late")
    server.err.wait_for("the outer function sees 0")


def test_failure_after_the_start_of_the_response_stays_a_failure(server):
    with server.connect(protocol="h1") as client:
        client.ask("/late/lines/5000?end=1")
        with pytest.raises(Closed):
            client.read()
    server.err.wait_for(r"lines\(\) in \S*middle.c:\d+ answered -EIO ")
    server.err.wait_for("the outer function sees -5")


def test_log_names_the_middleware_whose_result_replaces_that_of_the_handler(server):
    assert server.get("/failing/lines/1").status == 500
    server.err.wait_for(r"fails\(\) in \S*middle.c:\d+ answered -EIO ")


def test_attached_data_lives_as_long_as_the_request(server):
    assert server.get("/values/who?user=ann").text == "ann ann 0\n"
    assert server.get("/values/replace").text == "second\n"


def test_attached_data_of_concurrent_requests_is_separate(server):
    clients = [server.connect(protocol="h1") for _ in range(8)]
    for i, client in enumerate(clients):
        client.ask(f"/values/who?user=u{i}")
    for i, client in enumerate(clients):
        assert client.read().text == f"u{i} u{i} 0\n"
        client.close()


@pytest.mark.parametrize("server", ["inside"], indirect=True)
def test_attached_data_is_destroyed_when_the_request_ends(server):
    for _ in range(3):
        server.get("/values/who")
        server.get("/values/replace")
    with server.connect(protocol="h1") as client:
        client.ask("/values/who")
    wait_until(lambda: server.get("/counts").text == "0\n", "no data of an ended request is left")


@pytest.mark.parametrize("line", ["DUDA_AROUND(NULL)", "DUDA_AFTER(NULL)", "DUDA_ERROR(NULL)"])
def test_entry_without_a_function_is_rejected_at_startup(monkey, tmp_path, line):
    source = "#include <duda.h>\nstatic int f(struct duda_ctx *d) { return duda_puts(d, \"\"); }\n" \
             f"DUDA_SERVICE(third, {line}, DUDA_GET(\"/\", f));\n"
    server = monkey(plugins=[services.build(tmp_path, "third", source)], expect_start=False)
    server.exit_code = 3
    server.wait()
    server.err.wait_for("third.c:3: .*needs? a function")
