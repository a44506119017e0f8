/* SPDX-License-Identifier: Apache-2.0 */
/* A site whose hooks and handlers record their calls, for tests of the dispatcher. */
#ifndef MK_UNIT_WEB_DISPATCH_FIXTURE_H
#define MK_UNIT_WEB_DISPATCH_FIXTURE_H

#include "web/dispatch.h"

#include "unit/child.h"
#include "unit/fixtures.h"
#include "unit/site.h"
#include "unit/test.h"

enum { CALLS_MAX = 256, HOOKS_MAX = 4, ROUTES_MAX = 6 };

/* A hook or handler, whose behavior is one letter of `answers` for each call; the last one repeats. */
struct actor {
    const char *name;
    const char *answers; /* n(ext) d(one) w(ait) r(efuse) */
    unsigned status;     /* the status that it sets before it returns */
    const char *text;    /* the body that it sets before it returns */
    const char *field;   /* a header that it adds with the value "x" */
    unsigned n_calls;
};

static struct site site;
static char calls[CALLS_MAX];
static struct mk_plugin plugins[HOOKS_MAX];
static struct mk_hook hooks[HOOKS_MAX];
static size_t n_hooks;
static struct mk_arena arena;
static struct mk_route routes[ROUTES_MAX];
static struct mk_access_record last_record;
static unsigned n_records;

static inline void record_call(const char *what, const char *name)
{
    size_t len = strlen(calls);
    snprintf(calls + len, sizeof calls - len, "%s%s%s", len ? " " : "", what, name);
}

static inline enum mk_verdict act(struct actor *a, struct mk_response *response)
{
    static const char letters[] = "ndwr";
    size_t last = strlen(a->answers) - 1, i = a->n_calls++;
    if (a->status)
        assert_int_equal(mk_response_set_status(response, a->status), 0);
    if (a->text)
        assert_int_equal(mk_response_set_body(response, mk_str_from_c(a->text)), 0);
    if (a->field)
        assert_int_equal(mk_response_add_header(response, mk_str_from_c(a->field), MK_STR("x")), 0);
    return (enum mk_verdict)(MK_NEXT + (strchr(letters, a->answers[i < last ? i : last]) - letters));
}

static inline enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct actor *a = data;
    assert_non_null(request->site);
    record_call("", a->name);
    return act(a, response);
}

static inline enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *data)
{
    struct actor *a = data;
    assert_non_null(request->site);
    record_call("?", a->name);
    return act(a, response);
}

static inline void on_response(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    assert_false(response->sealed);
    record_call("!", ((struct actor *)data)->name);
}

static inline void on_abort(struct mk_request *request, void *data)
{
    (void)request;
    record_call("x", ((struct actor *)data)->name);
}

static inline void on_done(const struct mk_access_record *record, void *data)
{
    record_call(".", ((struct actor *)data)->name);
    last_record = *record;
    n_records++;
}

static const struct mk_handler any = {.name = "any", .handle = handle};
static const struct mk_handler getter = {
    .name = "get", .methods = MK_METHOD_BIT(MK_METHOD_GET), .handle = handle};
static const struct mk_handler poster = {.name = "post",
                                         .methods =
                                             MK_METHOD_BIT(MK_METHOD_POST) | MK_METHOD_BIT(MK_METHOD_PUT),
                                         .handle = handle};

static inline void setup(void)
{
    site_setup(&site);
    memset(calls, 0, sizeof calls);
    memset(&last_record, 0, sizeof last_record);
    n_records = 0;
    site.host.routes = routes;
    site.host.n_routes = 0;
    n_hooks = 0;
    arena_setup(&arena);
}

static inline void build_hooks(void)
{
    assert_true(mk_hooks_init(&site.host.hooks, &arena, hooks, n_hooks));
}

static inline void add_hook(struct actor *a)
{
    plugins[n_hooks] = (struct mk_plugin){.name = a->name,
                                          .on_request = on_request,
                                          .on_response = on_response,
                                          .on_abort = on_abort,
                                          .on_done = on_done};
    hooks[n_hooks] = (struct mk_hook){.plugin = &plugins[n_hooks], .data = a};
    n_hooks++;
    build_hooks();
}

static inline void add_route(const char *pattern, const struct mk_handler *handler, struct actor *a)
{
    struct mk_route *r = &routes[site.host.n_routes++];
    *r = (struct mk_route){.handler = handler, .data = a};
    assert_true(mk_pattern_set(&r->pattern, mk_str_from_c(pattern)));
}

static inline struct mk_exchange *request_path(const char *method, const char *target)
{
    char head[1024];
    snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", method, target);
    struct mk_exchange *x = site_request(&site, head);
    assert_non_null(x);
    return x;
}

/* Runs the request to its end, checks the status and the recorded calls, and frees it. */
static inline void expect(const char *method, const char *target, unsigned status, const char *expected)
{
    memset(calls, 0, sizeof calls);
    struct mk_exchange *x = request_path(method, target);
    assert_true(mk_dispatch_run(x));
    if (x->response.status != status)
        fail_msg("%s %s: %u, not %u", method, target, x->response.status, status);
    assert_string_equal(calls, expected);
    mk_exchange_free(x);
}

/* ---- Order of calls ---- */

#endif
