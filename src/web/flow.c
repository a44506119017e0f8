/* SPDX-License-Identifier: Apache-2.0 */
#include "web/flow.h"

#include "base/assert.h"
#include "base/clock.h"
#include "http/method.h"
#include "web/errorpage.h"
#include "web/secure.h"

enum { ALWAYS_ALLOWED = MK_METHOD_BIT(MK_METHOD_OPTIONS), REROUTES_MAX = 4, REWRITES_MAX = 10 };

struct mk_exchange *mk_exchange_new(struct mk_web *web, struct mk_arena_cache *cache, uint64_t now_ms,
                                    int64_t now)
{
    struct mk_arena arena;
    mk_arena_init(&arena, cache);
    struct mk_exchange *x = mk_arena_alloc(&arena, sizeof *x);
    if (!x)
        return NULL;
    x->arena = arena;
    x->request = (struct mk_request){.arena = &x->arena, .web = web, .now = now, .now_ms = now_ms};
    mk_response_init(&x->response, &x->arena);
    x->step = MK_FLOW_HOST;
    x->at = x->allowed = x->passed_with = x->reroutes = x->rewrites = 0;
    x->began_us = MK_UNLIKELY(web->precise) ? mk_clock_us() : 0;
    x->decided_by = NULL;
    x->untold = false;
    x->asked = "";
    return x;
}

void mk_exchange_free(struct mk_exchange *x)
{
    if (x->response.content.source)
        mk_content_fini(&x->response.content);
    struct mk_arena arena = x->arena; /* it ends the memory that it stands in itself */
    mk_arena_fini(&arena);
}

/* The path of the request, out of its target. */
static int set_path(struct mk_request *r)
{
    char *room = mk_arena_alloc(r->arena, r->target.path.len + 1);
    return room ? mk_path_decode(r->target.path, room, &r->path, &r->path_flags) : 503;
}

int mk_exchange_set_target(struct mk_exchange *x, mk_str target_text, mk_str host)
{
    struct mk_request *r = &x->request;
    r->target_text = target_text;
    if (mk_target_parse(r->method, target_text, &r->target) != 0)
        return 400;
    r->host = r->target.authority.p ? r->target.host : host;
    if (r->target.form == MK_TARGET_ASTERISK || r->target.form == MK_TARGET_AUTHORITY) {
        r->path = r->target.form == MK_TARGET_ASTERISK ? r->target.path : MK_STR("");
        return 0;
    }
    return set_path(r);
}

int mk_request_rewrite(struct mk_request *r, mk_str target)
{
    struct mk_request other = *r;
    target = mk_arena_copy(r->arena, target);
    if (!target.p)
        return -ENOMEM;
    if (mk_target_parse(MK_METHOD_GET, target, &other.target) || other.target.form != MK_TARGET_ORIGIN)
        return -EINVAL;
    int bad = set_path(&other);
    if (bad)
        return bad == 400 ? -EINVAL : -ENOMEM;
    *r = other;
    r->rewritten = true;
    return 0;
}

/* Would it describe what is not sent any more? Content-Range stays: with 416 it speaks of the size. */
static bool is_about_content(mk_str name)
{
    switch ((int)mk_field_find_id(name)) {
    case MK_FIELD_ACCEPT_RANGES:
    case MK_FIELD_CONTENT_DISPOSITION:
    case MK_FIELD_CONTENT_ENCODING:
    case MK_FIELD_CONTENT_LANGUAGE:
    case MK_FIELD_CONTENT_LOCATION:
    case MK_FIELD_CONTENT_TYPE:
    case MK_FIELD_ETAG:
    case MK_FIELD_LAST_MODIFIED:
        return true;
    default:
        return false;
    }
}

static void drop_content_fields(struct mk_response *r)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < r->n_fields; i++)
        if (!is_about_content(r->fields[i].name))
            r->fields[kept++] = r->fields[i];
    r->n_fields = kept;
}

static void refuse(struct mk_exchange *x, unsigned status)
{
    drop_content_fields(&x->response);
    x->response.trailers = NULL;
    mk_errorpage_fill(x->request.site, &x->request, &x->response, status);
    x->step = MK_FLOW_FINISH;
    x->at = 0;
}

/* Over HTTP/2 every success opens the tunnel that was asked for (RFC 8441, section 5): nobody may answer with
 * one who has not accepted it. */
static bool misleads(const struct mk_exchange *x)
{
    return x->request.version >= 20 && x->response.status < 300 &&
           !mk_content_is_tunnel(&x->response.content);
}

static bool finish(struct mk_exchange *x)
{
    if (!x->response.status)
        x->response.status = 200;
    if (x->request.tunnel.p && misleads(x))
        refuse(x, 501);
    if (x->request.path.p) {
        const struct mk_hook_list *hooks = &x->request.site->hooks.response;
        for (size_t i = 0; i < hooks->n; i++)
            hooks->at[i].plugin->on_response(&x->request, &x->response, hooks->at[i].data);
    }
    if (MK_UNLIKELY(x->request.site->hsts.p != NULL))
        (void)!mk_secure_mark(&x->request, &x->response);
    x->step = MK_FLOW_READY;
    return true;
}

void mk_flow_refuse(struct mk_exchange *x, unsigned status)
{
    MK_ASSERT(!x->response.sealed);
    if (!x->request.site) /* it did not come that far, but the host has pages for this, too */
        x->request.site = mk_hosts_find(x->request.web->hosts, x->request.host);
    refuse(x, status);
    finish(x);
}

/* Whoever answers something that is no verdict has a bug, and the client shall not have to wait for it. */
MK_COLD static bool report_nonsense(struct mk_exchange *x, enum mk_verdict v)
{
    mk_log_error(x->request.web->log, "%s answered %d, which is no verdict: 500", x->asked, (int)v);
    refuse(x, 500);
    return true;
}

/* Who has accepted it says now that it was not his. */
MK_COLD static void take_back_tunnel(struct mk_exchange *x)
{
    mk_content_fini(&x->response.content);
    x->request.length = 0;
}

/* Takes what a hook or a handler said. False: it waits. */
static bool obey(struct mk_exchange *x, enum mk_verdict v)
{
    switch (v) {
    case MK_WAIT:
        return false;
    case MK_NEXT:
        x->at++;
        if (!x->response.status)
            return true;
        if (x->step == MK_FLOW_ROUTES) /* why, should nobody else answer */
            x->passed_with = x->response.status;
        if (mk_content_is_tunnel(&x->response.content))
            take_back_tunnel(x);
        x->response.status = 0;
        return true;
    case MK_DONE:
        x->step = MK_FLOW_FINISH;
        return true;
    case MK_REFUSE:
        break;
    default:
        return report_nonsense(x, v);
    }
    unsigned status = x->response.status >= 300 ? x->response.status : 500;
    refuse(x, status);
    return true;
}

/* All of it once more, for another path: who has said something to the response already will say it again. */
static bool start_over(struct mk_exchange *x)
{
    x->request.rewritten = false;
    mk_response_reset(&x->response); /* whoever added something is asked once more */
    x->step = MK_FLOW_HOOKS;
    x->at = x->allowed = x->passed_with = 0;
    if (++x->rewrites <= REWRITES_MAX)
        return true;
    mk_log_error(x->request.web->log, "%.*s was rewritten %d times and more: 500",
                 MK_STR_ARG(x->request.target_text), REWRITES_MAX);
    refuse(x, 500);
    return true;
}

static bool run_hook(struct mk_exchange *x)
{
    const struct mk_hook_list *hooks = &x->request.site->hooks.request;
    if (x->at == hooks->n) {
        x->step = MK_FLOW_ROUTES;
        x->at = 0;
        return true;
    }
    const struct mk_hook *h = &hooks->at[x->at];
    x->asked = h->plugin->name;
    enum mk_verdict v = h->plugin->on_request(&x->request, &x->response, h->data);
    x->decided_by = v == MK_NEXT ? NULL : h->plugin;
    return v == MK_NEXT && x->request.rewritten ? start_over(x) : obey(x, v);
}

static bool add_allow(struct mk_exchange *x)
{
    char room[96];
    struct mk_buf list = mk_buf_fixed(room, sizeof room);
    for (unsigned m = MK_METHOD_GET; m < MK_METHODS; m++) {
        if (!(x->allowed & MK_METHOD_BIT(m)))
            continue;
        if (list.len)
            mk_buf_add(&list, MK_STR(", "));
        mk_buf_add(&list, mk_method_name((enum mk_method)m));
    }
    mk_str value = mk_arena_copy(&x->arena, mk_buf_str(&list));
    return value.p && mk_response_add_ready(&x->response, MK_STR("Allow"), value);
}

/* No route answered: is it the path that nobody knows, or the method? */
static void conclude(struct mk_exchange *x)
{
    bool path_known = x->allowed != 0;
    x->allowed |= ALWAYS_ALLOWED;
    if (x->request.method == MK_METHOD_UNKNOWN) {
        refuse(x, 501);
    } else if (path_known && !add_allow(x)) {
        refuse(x, 503);
    } else if (path_known && x->request.method == MK_METHOD_OPTIONS) {
        x->response.status = 200;
        x->step = MK_FLOW_FINISH;
    } else if (path_known) {
        refuse(x, 405);
    } else {
        refuse(x, x->passed_with >= 300 ? x->passed_with : 404);
    }
}

static unsigned methods_of(const struct mk_handler *h)
{
    return h->methods & MK_METHOD_BIT(MK_METHOD_GET) ? h->methods | MK_METHOD_BIT(MK_METHOD_HEAD)
                                                     : h->methods;
}

/* The routes once more, for another path. Who goes in a circle is stopped. */
static bool start_again(struct mk_exchange *x)
{
    x->request.rerouted = false;
    x->at = 0;
    if (++x->reroutes > REROUTES_MAX)
        refuse(x, 500);
    return true;
}

/* What a handler was asked for is elsewhere: there it is fetched, as by a link (RFC 3875, section 6.2.2). How
 * the method was written stays, as the target does: logs tell what the client sent. */
static void become_get(struct mk_request *r)
{
    if (r->method != MK_METHOD_HEAD)
        r->method = MK_METHOD_GET;
    r->length = 0;
    r->data = NULL;
}

static bool run_route(struct mk_exchange *x)
{
    const struct mk_host *host = x->request.site;
    if (x->at == host->n_routes) {
        conclude(x);
        return true;
    }
    const struct mk_route *route = &host->routes[x->at];
    if (!mk_route_matches(route, x->request.path))
        return obey(x, MK_NEXT);
    unsigned methods = methods_of(route->handler);
    if (methods && !(methods & MK_METHOD_BIT(x->request.method))) {
        x->allowed |= methods;
        return obey(x, MK_NEXT);
    }
    x->request.route = route;
    x->untold = x->request.web->explanation && route->plugin; /* it is told about, not done */
    if (x->untold)
        return obey(x, MK_DONE);
    x->asked = route->handler->name;
    enum mk_verdict v = route->handler->handle(&x->request, &x->response, route->data);
    if (v == MK_NEXT && x->request.rewritten) {
        become_get(&x->request);
        return start_over(x);
    }
    return v == MK_NEXT && x->request.rerouted ? start_again(x) : obey(x, v);
}

/* OPTIONS * and CONNECT are about the server, not about a path. */
static bool answer_for_server(struct mk_exchange *x)
{
    x->allowed = MK_METHOD_BIT(MK_METHOD_GET) | MK_METHOD_BIT(MK_METHOD_HEAD);
    conclude(x);
    return true;
}

static bool find_host(struct mk_exchange *x)
{
    x->request.site = mk_hosts_find(x->request.web->hosts, x->request.host);
    x->step = MK_FLOW_HOOKS;
    x->at = 0;
    if (MK_LIKELY(!mk_secure_asks(&x->request)))
        return true;
    enum mk_verdict v = mk_secure_enter(&x->request, &x->response);
    return v == MK_NEXT || obey(x, v);
}

bool mk_flow_run(struct mk_exchange *x)
{
    bool goes_on = true;
    while (goes_on) {
        switch (x->step) {
        case MK_FLOW_HOST:
            goes_on = find_host(x);
            break;
        case MK_FLOW_HOOKS:
            goes_on = run_hook(x);
            break;
        case MK_FLOW_ROUTES:
            goes_on =
                x->request.path.len == 0 || x->request.path.p[0] == '*' ? answer_for_server(x) : run_route(x);
            break;
        case MK_FLOW_FINISH:
            return finish(x);
        case MK_FLOW_READY:
            return true;
        }
    }
    return false;
}

static bool is_cut_off(enum mk_ending ending)
{
    return ending != MK_ENDING_DONE && ending != MK_ENDING_REFUSED;
}

void mk_flow_end(struct mk_exchange *x, enum mk_ending ending, uint64_t content_sent, uint64_t now_ms)
{
    const struct mk_web *web = x->request.web;
    const struct mk_host *site = x->request.site ? x->request.site : web->hosts->fallback;
    struct mk_record record = {
        .request = &x->request,
        .response = x->response.sealed ? &x->response : NULL,
        .status = x->response.sealed ? x->response.status : 0,
        .ending = ending,
        .content_sent = content_sent,
        .duration_ms = now_ms - x->request.now_ms,
        .began_us = x->began_us,
    };
    for (size_t i = 0; site && is_cut_off(ending) && i < site->hooks.abort.n; i++)
        site->hooks.abort.at[i].plugin->on_abort(&x->request, site->hooks.abort.at[i].data);
    for (size_t i = 0; site && i < site->hooks.done.n; i++)
        site->hooks.done.at[i].plugin->on_done(&record, site->hooks.done.at[i].data);
    if (web->on_record)
        web->on_record(&record, web->on_record_data);
}
