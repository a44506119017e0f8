/* SPDX-License-Identifier: Apache-2.0 */
#include "web/flow.h"

#include "base/assert.h"
#include "base/clock.h"
#include "http/method.h"
#include "web/errorpage.h"
#include "web/limits.h"
#include "web/secure.h"
#include "web/static.h"

enum { ALWAYS_ALLOWED = MK_METHOD_BIT(MK_METHOD_OPTIONS), REROUTES_MAX = 4, REWRITES_MAX = 10 };

/* Would it describe what is not sent any more, or where that came from? Content-Range stays: with 416 it
 * speaks of the size. */
static bool is_about_content(mk_str name)
{
    switch ((int)mk_header_find_id(name)) {
    case MK_HEADER_ACCEPT_RANGES:
    case MK_HEADER_CONTENT_DISPOSITION:
    case MK_HEADER_CONTENT_ENCODING:
    case MK_HEADER_CONTENT_LANGUAGE:
    case MK_HEADER_CONTENT_LOCATION:
    case MK_HEADER_CONTENT_TYPE:
    case MK_HEADER_DATE:
    case MK_HEADER_ETAG:
    case MK_HEADER_LAST_MODIFIED:
    case MK_HEADER_SERVER:
    case MK_HEADER_TRAILER:
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
    r->own = 0;
}

static void refuse(struct mk_exchange *x, unsigned status)
{
    drop_content_fields(&x->response);
    x->response.trailers = NULL;
    mk_errorpage_fill(x->request.site, &x->request, &x->response, status);
    x->step = MK_FLOW_FINISH;
    x->at = 0;
}

/* Over HTTP/2 every success opens the tunnel that was asked for (RFC 8441, section 5): only handlers that
 * accept it may answer with one. */
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
    if (x->request.asked->path.p) {
        const struct mk_hook_list *hooks = &x->request.site->hooks.response;
        for (size_t i = 0; i < hooks->n; i++)
            hooks->at[i].plugin->on_response(&x->request, &x->response, hooks->at[i].data);
    }
    if (MK_UNLIKELY(x->request.site->hsts.p != NULL))
        (void)!mk_secure_mark(&x->request, &x->response);
    x->step = MK_FLOW_READY;
    return true;
}

static void set_host(struct mk_exchange *x)
{
    if (!x->request.site)
        x->request.site = mk_vhosts_find(x->request.hosts, x->request.host);
}

const struct mk_request_limits *mk_flow_limits(struct mk_exchange *x)
{
    if (MK_UNLIKELY(x->limits != NULL))
        return x->limits;
    set_host(x);
    const struct mk_request_limits *l =
        x->request.site->n_locations ? mk_limits_find(x) : x->request.site->limits;
    return l ? l : x->request.web->limits;
}

void mk_flow_refuse(struct mk_exchange *x, unsigned status)
{
    MK_ASSERT(!x->response.sealed);
    set_host(x); /* it may not have come that far, but the host has pages for this, too */
    refuse(x, status);
    finish(x);
}

void mk_flow_replace(struct mk_exchange *x, unsigned status)
{
    x->response.sealed = false;
    mk_response_reset(&x->response);
    x->response.status = status;
    x->response.fails_with = (uint16_t)status;
    if (!x->replaced)
        mk_flow_refuse(x, status);
    x->replaced = true;
}

/* An unknown verdict is a plugin bug: answer 500 so the client does not hang. */
MK_COLD static bool report_nonsense(struct mk_exchange *x, enum mk_verdict v)
{
    mk_log_error(x->request.web->log, "%s returned %d, which is not a verdict: 500", x->last_called, (int)v);
    refuse(x, 500);
    return true;
}

/* A handler accepted the tunnel and then passed. */
MK_COLD static void withdraw_tunnel(struct mk_exchange *x)
{
    mk_content_fini(&x->response.content);
}

/* An incomplete request is the client's failure, not ours, whatever a handler makes of it (RFC 9112, section
 * 8). */
static unsigned status_of_refusal(const struct mk_exchange *x)
{
    unsigned status = x->response.status >= 300 ? x->response.status : 500;
    return mk_exchange_is_cut_off(x) && status >= 500 ? 400 : status;
}

static void note_pass(struct mk_exchange *x)
{
    x->passed_with = x->response.status;
    x->request.found_missing |= x->passed_with == 404;
}

/* Takes what a hook or a handler said. False: it waits. */
static bool apply_verdict(struct mk_exchange *x, enum mk_verdict v)
{
    switch (v) {
    case MK_WAIT:
        return false;
    case MK_NEXT:
        x->at++;
        if (!x->response.status)
            return true;
        if (x->step == MK_FLOW_ROUTES) /* the status, if no other handler answers */
            note_pass(x);
        if (mk_content_is_tunnel(&x->response.content))
            withdraw_tunnel(x);
        x->response.status = 0;
        return true;
    case MK_DONE:
        x->step = MK_FLOW_FINISH;
        return true;
    case MK_ERROR:
        break;
    case MK_REWRITTEN: /* but it was not */
    default:
        return report_nonsense(x, v);
    }
    mk_request_log(&x->request, MK_LOG_DEBUG, "the handler or plugin `%s` refused it with %u", x->last_called,
                   status_of_refusal(x));
    refuse(x, status_of_refusal(x));
    return true;
}

/* The hooks begin. Is there a requirement for the connection, and may the request be exempt from it? */
static void approach(struct mk_exchange *x)
{
    x->entered = !mk_secure_asks(&x->request);
    x->challenge = MK_UNLIKELY(!x->entered) && mk_secure_is_challenge(&x->request);
}

/* Asks whether a request may come in on its kind of connection. Hooks that know what a proxy says of it have
 * run. */
static bool enter(struct mk_exchange *x)
{
    x->entered = true;
    enum mk_verdict v = x->challenge ? MK_NEXT : mk_secure_enter(&x->request, &x->response);
    if (v != MK_NEXT)
        (void)apply_verdict(x, v);
    return true;
}

/* A plain request came in for the answer to a challenge, and there is none: it gets what every plain request
 * gets. */
static bool turn_away(struct mk_exchange *x)
{
    x->challenge = false;
    mk_response_reset(&x->response);
    return apply_verdict(x, mk_secure_enter(&x->request, &x->response));
}

/* May the plugin find out what a proxy says of its client? */
static bool knows_clients(const struct mk_plugin *plugin)
{
    return plugin->order && plugin->order <= MK_PRIORITY_ADDRESS;
}

/* Does the plugin come before all that judge clients? The plugin that answers challenges does. */
static bool is_first(const struct mk_plugin *plugin)
{
    return plugin->order && plugin->order < MK_PRIORITY_ADDRESS;
}

/* Only a file that is there answers a challenge: no other handler, no folder and no fallback. */
static bool answer_challenge(struct mk_exchange *x)
{
    const struct mk_route *route = mk_vhost_route(x->request.site, x->request.asked->path);
    if (!route || route->handler != &mk_static)
        return turn_away(x);
    x->request.route = route;
    enum mk_verdict v = mk_static_answer_file(&x->request, &x->response);
    return v == MK_NEXT ? turn_away(x) : apply_verdict(x, v);
}

/* Everything judges the new path: the kind of connection, hooks, routes. The response is emptied: hooks that
 * added something to it are called again. */
static void start_over(struct mk_exchange *x)
{
    mk_response_reset(&x->response);
    if (x->begun_with->by == MK_ASKED_BY_HANDLER)
        x->request.data = NULL;
    x->step = MK_FLOW_HOOKS;
    x->at = x->allowed = x->passed_with = 0;
    x->request.found_missing = false;
    approach(x);
    if (++x->rewrites <= REWRITES_MAX)
        return;
    mk_log_error(x->request.web->log, "%.*s was rewritten more than %d times: 500",
                 MK_STR_ARG(x->request.target_text), REWRITES_MAX);
    refuse(x, 500);
}

/* Only the routes are tried again, for another path. A circle is stopped. */
static void start_routes_over(struct mk_exchange *x)
{
    x->at = 0;
    x->request.found_missing = false;
    if (++x->reroutes > REROUTES_MAX)
        refuse(x, 500);
}

static void follow_rewrite(struct mk_exchange *x)
{
    x->body_route = NULL;
    x->begun_with = x->request.asked;
    if (x->begun_with->by == MK_ASKED_BY_ROUTE)
        start_routes_over(x);
    else
        start_over(x);
}

/* MK_REWRITTEN. After a hook, the guards behind it first judge the path that the rewrite leads away from. */
static bool adopt_rewrite(struct mk_exchange *x)
{
    if (x->request.asked->by != MK_ASKED_BY_HOOK) {
        follow_rewrite(x);
        return true;
    }
    x->pending = x->request.asked;
    x->request.asked = x->begun_with;
    x->step = MK_FLOW_GUARDS;
    return apply_verdict(x, MK_NEXT);
}

/* All hooks that may judge the path have done so. */
static bool end_hooks(struct mk_exchange *x)
{
    x->step = MK_FLOW_ROUTES;
    x->at = 0;
    return true;
}

/* Does the plugin decide whether the client may have what it asked for? */
static bool is_guard(const struct mk_plugin *plugin)
{
    return plugin->order && plugin->order < MK_PRIORITY_NORMAL;
}

/* A path that hooks have not judged must not reach a handler. */
MK_COLD static bool report_unsaid_rewrite(struct mk_exchange *x, enum mk_verdict v)
{
    mk_log_error(x->request.web->log, "%s rewrote the request and returned %d instead of MK_REWRITTEN: 500",
                 x->last_called, (int)v);
    refuse(x, 500);
    return true;
}

/* Takes the verdict of a hook or a handler that may have rewritten the request. */
static bool apply_or_rewrite(struct mk_exchange *x, enum mk_verdict v)
{
    if (MK_LIKELY(x->request.asked == x->begun_with))
        return apply_verdict(x, v);
    if (v == MK_REWRITTEN)
        return adopt_rewrite(x);
    return v == MK_NEXT ? report_unsaid_rewrite(x, v) : apply_verdict(x, v);
}

static bool run_hook(struct mk_exchange *x)
{
    const struct mk_hook_list *hooks = &x->request.site->hooks.request;
    const struct mk_hook *h = x->at < hooks->n ? &hooks->at[x->at] : NULL;
    if (MK_UNLIKELY(!x->entered) && !(h && knows_clients(h->plugin)))
        return enter(x);
    if (!h)
        return end_hooks(x);
    x->last_called = h->plugin->name;
    enum mk_verdict v = h->plugin->on_request(&x->request, &x->response, h->data);
    x->decided_by = v == MK_NEXT ? NULL : h->plugin;
    bool answers = v != MK_NEXT && v != MK_WAIT && v != MK_REWRITTEN;
    x->challenge = x->challenge && !mk_request_is_secure(&x->request);
    if (MK_UNLIKELY(x->challenge && answers) && !(v == MK_DONE && is_first(h->plugin)))
        return turn_away(x);
    return apply_or_rewrite(x, v);
}

/* Guards that follow the hook which has rewritten the request; then everything judges the new path. */
MK_COLD static bool run_guard(struct mk_exchange *x)
{
    const struct mk_hook_list *hooks = &x->request.site->hooks.request;
    const struct mk_hook *h = x->at < hooks->n ? &hooks->at[x->at] : NULL;
    if (!x->entered || (h && is_guard(h->plugin)))
        return run_hook(x);
    x->request.asked = x->pending;
    follow_rewrite(x);
    return true;
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

/* No route answered: is the path unknown, or the method? */
static void conclude(struct mk_exchange *x)
{
    bool path_known = x->allowed != 0;
    x->allowed |= ALWAYS_ALLOWED;
    if (x->request.asked->method == MK_METHOD_UNKNOWN) {
        refuse(x, 501);
    } else if (path_known && !add_allow(x)) {
        refuse(x, 503);
    } else if (path_known && x->request.asked->method == MK_METHOD_OPTIONS) {
        x->response.status = 200;
        x->step = MK_FLOW_FINISH;
    } else if (path_known) {
        refuse(x, 405);
    } else {
        mk_request_log(&x->request, MK_LOG_DEBUG, "no handler answers this path");
        refuse(x, x->passed_with >= 300 ? x->passed_with : 404);
    }
}

static unsigned methods_of(const struct mk_handler *h)
{
    return h->methods & MK_METHOD_BIT(MK_METHOD_GET) ? h->methods | MK_METHOD_BIT(MK_METHOD_HEAD)
                                                     : h->methods;
}

/* The route may guard what the routes below serve. */
MK_COLD static bool give_up_route(struct mk_exchange *x, const struct mk_route *route)
{
    mk_request_explain(&x->request, "route", "%.*s  was given up: it took too many steps, or too much memory",
                       MK_STR_ARG(route->pattern.text));
    if (mk_limits_may_report(x))
        mk_log_error(x->request.web->log,
                     "the route %.*s was given up: it took too many steps, or too much memory: 500",
                     MK_STR_ARG(route->pattern.text));
    refuse(x, 500);
    return true;
}

/* A form may be sent to a folder whose index file, or to a path whose fallback, is a script. */
MK_COLD static bool ask_elsewhere(struct mk_exchange *x, const struct mk_route *route)
{
    const struct mk_route *before = x->request.route;
    x->request.route = route;
    enum mk_verdict v = mk_static_pass_on(&x->request, &x->response);
    x->request.route = before; /* its handler was not called */
    return apply_or_rewrite(x, v);
}

/* The limit of the content where handlers may have one of their own. False: the content is longer. */
static bool limit_body(struct mk_exchange *x, uint64_t max)
{
    const struct mk_request *r = &x->request;
    if (!r->length || !r->ops || !r->ops->limit_body)
        return true;
    return r->ops->limit_body(r->ops_ctx,
                              max == MK_BODY_MAX_DEFAULT ? mk_flow_limits(x)->content_max : max) == 0;
}

/* Hooks may read before a handler has decided. */
bool mk_flow_may_read(struct mk_exchange *x)
{
    return x->body_route || limit_body(x, MK_BODY_MAX_DEFAULT);
}

/* Once for each route. False: its handler must not be called, since there is too much content. */
static bool ask_body_max(struct mk_exchange *x, const struct mk_route *route)
{
    const struct mk_handler *h = route->handler;
    if (x->body_route == route)
        return true;
    x->body_route = route;
    x->body_own = false;
    uint64_t max = h->body_max ? h->body_max(&x->request, route->data) : MK_BODY_MAX_DEFAULT;
    x->body_own = max != MK_BODY_MAX_DEFAULT && max != MK_BODY_MAX_PASS;
    bool fits = limit_body(x, x->body_own ? max : MK_BODY_MAX_DEFAULT);
    return fits || max == MK_BODY_MAX_PASS;
}

/* `monkey explain` does not call handlers of plugins: they say what they would do. */
MK_COLD static bool explain_route(struct mk_exchange *x, const struct mk_route *route)
{
    const struct mk_handler *h = route->handler;
    if (h->explain && !h->explain(&x->request, route->data))
        return apply_verdict(x, MK_NEXT);
    (void)!mk_request_check_path(&x->request); /* tells what a gateway would refuse */
    x->untold = true;
    return apply_verdict(x, MK_DONE);
}

static bool run_route(struct mk_exchange *x)
{
    const struct mk_vhost *host = x->request.site;
    if (MK_UNLIKELY(x->challenge))
        return answer_challenge(x);
    enum mk_regex_result result;
    x->at = (unsigned)mk_vhost_next_route(host, x->at, x->request.asked->path, &result);
    if (x->at == host->n_routes) {
        conclude(x);
        return true;
    }
    const struct mk_route *route = &host->routes[x->at];
    if (MK_UNLIKELY(result == MK_REGEX_LIMIT))
        return give_up_route(x, route);
    unsigned methods = methods_of(route->handler);
    if (methods && !(methods & MK_METHOD_BIT(x->request.asked->method))) {
        x->allowed |= methods;
        return route->handler == &mk_static ? ask_elsewhere(x, route) : apply_verdict(x, MK_NEXT);
    }
    x->request.route = route;
    if (MK_UNLIKELY(x->request.web->explanation != NULL) && route->plugin)
        return explain_route(x, route);
    if (MK_UNLIKELY(x->body_open) && !ask_body_max(x, route)) {
        mk_limits_report_length(x, mk_flow_limits(x)->content_max, false);
        refuse(x, 413);
        return true;
    }
    x->last_called = route->handler->name;
    enum mk_verdict v = route->handler->handle(&x->request, &x->response, route->data);
    return apply_or_rewrite(x, v);
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
    set_host(x);
    x->step = x->request.site->hooks.request.n ? MK_FLOW_HOOKS : MK_FLOW_ROUTES;
    x->at = 0;
    approach(x);
    return x->entered || x->step == MK_FLOW_HOOKS || enter(x);
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
        case MK_FLOW_GUARDS:
            goes_on = run_guard(x);
            break;
        case MK_FLOW_ROUTES:
            goes_on = x->request.asked->path.len == 0 || x->request.asked->path.p[0] == '*'
                          ? answer_for_server(x)
                          : run_route(x);
            break;
        case MK_FLOW_FINISH:
            return finish(x);
        case MK_FLOW_READY:
            return true;
        }
    }
    return false;
}

static bool is_cut_off(enum mk_outcome ending)
{
    return ending != MK_OUTCOME_OK && ending != MK_OUTCOME_REJECTED;
}

void mk_flow_end(struct mk_exchange *x, enum mk_outcome ending, uint64_t content_sent, uint64_t now_ms)
{
    const struct mk_web *web = x->request.web;
    const struct mk_vhost *site = x->request.site ? x->request.site : x->request.hosts->fallback;
    x->response.sent = ending == MK_OUTCOME_OK;
    if (!web->on_record && (!site || (!site->hooks.done.n && !is_cut_off(ending))))
        return; /* no hook and no log waits for it */
    struct mk_access_record record = {
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
