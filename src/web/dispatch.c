/* SPDX-License-Identifier: Apache-2.0 */
#include "web/dispatch.h"

#include "base/assert.h"
#include "base/clock.h"
#include "http/method.h"
#include "web/condition.h"
#include "web/effective_limits.h"
#include "web/error_page.h"
#include "web/https_policy.h"
#include "web/static.h"

enum { METHODS_ALWAYS_ALLOWED = MK_METHOD_BIT(MK_METHOD_OPTIONS), REROUTES_MAX = 4, REWRITES_MAX = 10 };

/* Does the header describe the replaced body or its origin (Date, Server)? Content-Range stays, because it
 * states the size in a 416. */
static bool is_representation_header(mk_str name)
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

static void remove_representation_headers(struct mk_response *r)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < r->n_fields; i++)
        if (!is_representation_header(r->fields[i].name))
            r->fields[kept++] = r->fields[i];
    r->n_fields = kept;
    r->own = 0;
}

/* Responds with a page of the host or the built-in page. */
static void set_error_page(struct mk_exchange *x, unsigned status)
{
    mk_error_page_fill(x->request.site, &x->request, &x->response, status);
    x->step = MK_DISPATCH_FINISH;
    x->at = 0;
}

/* Do plugins get the chance to respond to the error? `monkey explain` calls no hooks that write responses. */
static bool has_error_hooks(const struct mk_exchange *x)
{
    return x->request.site->hooks.error.n && !x->error_hooks_called && x->request.target->path.p &&
           !x->request.web->explanation;
}

MK_COLD static void begin_error_hooks(struct mk_exchange *x, unsigned status)
{
    mk_error_page_clear(&x->response, status);
    x->error_hooks_called = true;
    x->step = MK_DISPATCH_ERROR;
    x->at = 0;
}

static void set_error_response(struct mk_exchange *x, unsigned status)
{
    remove_representation_headers(&x->response);
    x->response.trailers = NULL;
    if (MK_UNLIKELY(has_error_hooks(x)))
        begin_error_hooks(x, status);
    else
        set_error_page(x, status);
}

/* Would the response open a tunnel by mistake? Over HTTP/2, every successful response opens the requested
 * tunnel (RFC 8441, section 5), so only a handler that accepts the tunnel may send one. */
static bool would_open_tunnel(const struct mk_exchange *x)
{
    return x->request.version >= 20 && x->response.status < 300 &&
           !mk_response_body_is_tunnel(&x->response.content);
}

static bool run_response_hooks(struct mk_exchange *x)
{
    if (!x->response.status)
        x->response.status = 200;
    if (x->request.tunnel.p && would_open_tunnel(x)) {
        remove_representation_headers(&x->response);
        x->response.trailers = NULL;
        set_error_page(x, 501);
    }
    if (x->request.target->path.p) {
        const struct mk_hook_list *hooks = &x->request.site->hooks.response;
        for (size_t i = 0; i < hooks->n; i++)
            hooks->at[i].plugin->on_response(&x->request, &x->response, hooks->at[i].data);
    }
    if (MK_UNLIKELY(x->request.site->hsts.p != NULL))
        (void)!mk_https_policy_add_hsts(&x->request, &x->response);
    x->step = MK_DISPATCH_READY;
    return true;
}

static void ensure_vhost(struct mk_exchange *x)
{
    if (!x->request.site)
        x->request.site = mk_vhosts_find(x->request.hosts, x->request.host);
}

const struct mk_request_limits *mk_dispatch_limits(struct mk_exchange *x)
{
    if (MK_UNLIKELY(x->limits != NULL))
        return x->limits;
    ensure_vhost(x);
    const struct mk_request_limits *l =
        x->request.site->n_locations ? mk_effective_limits_find(x) : x->request.site->limits;
    return l ? l : x->request.web->limits;
}

/* Returns the status after a hook: `before`, unless the hook has set a status of at least 300. */
static unsigned status_after_hook(const struct mk_exchange *x, unsigned before)
{
    return x->response.status >= 300 ? x->response.status : before;
}

/* Applies a verdict of an on_error hook, except MK_WAIT and MK_DONE. */
MK_COLD static void continue_after_error_hook(struct mk_exchange *x, enum mk_verdict v, unsigned status)
{
    if (v != MK_NEXT && v != MK_ERROR) {
        mk_log_error(x->request.web->log, "%s returned %d, which is not a verdict: 500", x->last_called,
                     (int)v);
        status = 500;
    }
    remove_representation_headers(&x->response);
    if (v == MK_NEXT && ++x->at < x->request.site->hooks.error.n)
        mk_error_page_clear(&x->response, status);
    else
        set_error_page(x, status);
}

/* Calls the next on_error hook. False: the hook waits. */
MK_COLD static bool run_error_hook(struct mk_exchange *x)
{
    const struct mk_hook *h = &x->request.site->hooks.error.at[x->at];
    unsigned status = x->response.status;
    x->last_called = h->plugin->name;
    enum mk_verdict v = h->plugin->on_error(&x->request, &x->response, h->data);
    if (v == MK_WAIT)
        return false;
    if (v != MK_DONE) {
        continue_after_error_hook(x, v, status_after_hook(x, status));
        return true;
    }
    if (!x->response.status)
        x->response.status = status;
    x->step = MK_DISPATCH_FINISH;
    return true;
}

void mk_dispatch_error(struct mk_exchange *x, unsigned status)
{
    MK_ASSERT(!x->response.sealed);
    ensure_vhost(x); /* the host may not have been selected yet, but its error pages are needed */
    set_error_response(x, status);
    while (x->step == MK_DISPATCH_ERROR)
        if (!run_error_hook(x)) /* the hook must not wait here */
            set_error_page(x, status_after_hook(x, status));
    run_response_hooks(x);
}

void mk_dispatch_replace_with_error(struct mk_exchange *x, unsigned status)
{
    x->response.sealed = false;
    mk_response_reset(&x->response);
    x->response.status = status;
    x->response.failure_status = (uint16_t)status;
    if (!x->replaced)
        mk_dispatch_error(x, status);
    x->replaced = true;
}

/* An unknown verdict is a plugin bug: answer 500, so that the client does not hang. */
MK_COLD static bool log_invalid_verdict(struct mk_exchange *x, enum mk_verdict v)
{
    mk_log_error(x->request.web->log, "%s returned %d, which is not a verdict: 500", x->last_called, (int)v);
    set_error_response(x, 500);
    return true;
}

/* Removes a tunnel that a handler accepted before it returned MK_NEXT. */
MK_COLD static void remove_tunnel(struct mk_exchange *x)
{
    mk_response_body_fini(&x->response.content);
}

/* An incomplete request is the fault of the client, whatever status a handler sets (RFC 9112, section 8). */
static unsigned status_of_error(const struct mk_exchange *x)
{
    unsigned status = x->response.status >= 300 ? x->response.status : 500;
    return mk_exchange_client_disconnected(x) && status >= 500 ? 400 : status;
}

static void record_declined_status(struct mk_exchange *x)
{
    x->declined_status = x->response.status;
    x->request.handler_found_nothing |= x->declined_status == 404;
}

/* Applies the verdict of a hook or a handler. False: the hook or handler waits. */
static bool apply_verdict(struct mk_exchange *x, enum mk_verdict v)
{
    switch (v) {
    case MK_WAIT:
        return false;
    case MK_NEXT:
        x->at++;
        if (!x->response.status)
            return true;
        if (x->step == MK_DISPATCH_ROUTES) /* kept as the status if no other handler responds */
            record_declined_status(x);
        if (mk_response_body_is_tunnel(&x->response.content))
            remove_tunnel(x);
        x->response.status = 0;
        return true;
    case MK_DONE:
        x->step = MK_DISPATCH_FINISH;
        return true;
    case MK_ERROR:
        break;
    case MK_REWRITTEN: /* returned without a rewrite */
    default:
        return log_invalid_verdict(x, v);
    }
    mk_request_log(&x->request, MK_LOG_DEBUG, "`%s` rejected the request with %u", x->last_called,
                   status_of_error(x));
    set_error_response(x, status_of_error(x));
    return true;
}

/* Called before the hooks: determines whether the host has connection requirements, and whether the request
 * may be exempt from them as an ACME challenge. */
static void start_https_policy(struct mk_exchange *x)
{
    x->https_checked = !mk_https_policy_is_needed(&x->request);
    x->is_acme_request = MK_UNLIKELY(!x->https_checked) && mk_https_policy_is_acme_request(&x->request);
}

/* Checks the HTTPS policy, after the hooks that evaluate a proxy's headers. */
static bool check_https_policy(struct mk_exchange *x)
{
    x->https_checked = true;
    enum mk_verdict v = x->is_acme_request ? MK_NEXT : mk_https_policy_check(&x->request, &x->response);
    if (v != MK_NEXT)
        (void)apply_verdict(x, v);
    return true;
}

/* The request is not an ACME challenge after all: the HTTPS policy applies to it as to any other request. */
static bool reapply_https_policy(struct mk_exchange *x)
{
    x->is_acme_request = false;
    mk_response_reset(&x->response);
    return apply_verdict(x, mk_https_policy_check(&x->request, &x->response));
}

/* May the plugin determine the client's address from a proxy's headers? */
static bool may_set_client_addr(const struct mk_plugin *plugin)
{
    return plugin->priority && plugin->priority <= MK_PRIORITY_ADDRESS;
}

/* Does the plugin run before all client checks? The plugin that answers ACME challenges does. */
static bool runs_before_client_checks(const struct mk_plugin *plugin)
{
    return plugin->priority && plugin->priority < MK_PRIORITY_ADDRESS;
}

/* Only an existing file answers a challenge: no other handler, index or fallback. */
static bool serve_acme_challenge(struct mk_exchange *x)
{
    const struct mk_route *route = mk_vhost_route(x->request.site, x->request.target->path);
    if (!route || route->handler != &mk_static)
        return reapply_https_policy(x);
    x->request.route = route;
    enum mk_verdict v = mk_static_serve_exact_file(&x->request, &x->response);
    return v == MK_NEXT ? reapply_https_policy(x) : apply_verdict(x, v);
}

/* Restarts with the new path: HTTPS policy, hooks, routes. The response is reset, because hooks that added
 * headers run again. */
static void restart_from_hooks(struct mk_exchange *x)
{
    mk_response_reset(&x->response);
    mk_request_restore_headers(&x->request);
    if (x->dispatched_target->by == MK_TARGET_BY_HANDLER)
        x->request.data = NULL;
    x->step = MK_DISPATCH_HOOKS;
    x->at = x->allowed = x->declined_status = 0;
    x->is_path_named = false;
    x->request.handler_found_nothing = false;
    start_https_policy(x);
    if (++x->rewrites <= REWRITES_MAX)
        return;
    mk_log_error(x->request.web->log, "%.*s was rewritten more than %d times: 500",
                 MK_STR_ARG(x->request.target_text), REWRITES_MAX);
    set_error_response(x, 500);
}

/* Calls the on_handler hooks. Returns 0 or the status of an error. */
static unsigned run_handler_hooks(struct mk_exchange *x)
{
    const struct mk_hook_list *hooks = &x->request.site->hooks.handler;
    unsigned status = 0;
    for (size_t i = 0; !status && i < hooks->n; i++) {
        x->last_called = hooks->at[i].plugin->name;
        status = hooks->at[i].plugin->on_handler(&x->request, hooks->at[i].data);
        x->deciding_plugin = status ? hooks->at[i].plugin : NULL;
    }
    return status;
}

static unsigned start_handler_hooks(struct mk_exchange *x)
{
    return mk_request_save_headers(&x->request, &x->before_handler_hooks) ? 503 : run_handler_hooks(x);
}

/* Calls the on_handler hooks for another path, with the headers that they got for the first one. */
static unsigned restart_handler_hooks(struct mk_exchange *x)
{
    return mk_request_restore_saved_headers(&x->request, x->before_handler_hooks) ? 503
                                                                                  : run_handler_hooks(x);
}

/* Runs the on_handler hooks and the routes again, for another path. Fails after REROUTES_MAX repetitions. */
static void restart_routes(struct mk_exchange *x)
{
    unsigned status = 0;
    x->at = 0;
    x->request.handler_found_nothing = false;
    if (++x->reroutes > REROUTES_MAX)
        status = 500;
    else if (x->request.site->hooks.handler.n)
        status = restart_handler_hooks(x);
    if (status)
        set_error_response(x, status);
}

static void follow_rewrite(struct mk_exchange *x)
{
    x->body_route = NULL;
    x->dispatched_target = x->request.target;
    if (x->dispatched_target->by == MK_TARGET_BY_ROUTE)
        restart_routes(x);
    else
        restart_from_hooks(x);
}

/* Handles MK_REWRITTEN. After a rewrite by a hook, the remaining access checks first evaluate the original
 * path. */
static bool defer_or_follow_rewrite(struct mk_exchange *x)
{
    if (x->request.target->by != MK_TARGET_BY_HOOK) {
        follow_rewrite(x);
        return true;
    }
    x->pending = x->request.target;
    x->request.target = x->dispatched_target;
    x->step = MK_DISPATCH_GUARDS;
    return apply_verdict(x, MK_NEXT);
}

/* Called when all hooks that may check the path have run. */
static bool begin_routes(struct mk_exchange *x)
{
    unsigned status = x->request.site->hooks.handler.n ? start_handler_hooks(x) : 0;
    x->step = MK_DISPATCH_ROUTES;
    x->at = 0;
    if (MK_UNLIKELY(status))
        set_error_response(x, status);
    return true;
}

/* Is the plugin an access check? */
static bool is_access_check(const struct mk_plugin *plugin)
{
    return plugin->priority && plugin->priority < MK_PRIORITY_NORMAL;
}

/* A rewritten path that the hooks have not checked must not reach a handler. */
MK_COLD static bool log_unreported_rewrite(struct mk_exchange *x, enum mk_verdict v)
{
    mk_log_error(x->request.web->log, "%s rewrote the request and returned %d instead of MK_REWRITTEN: 500",
                 x->last_called, (int)v);
    set_error_response(x, 500);
    return true;
}

/* Applies the verdict of a hook or handler that may have rewritten the request. */
static bool apply_verdict_or_rewrite(struct mk_exchange *x, enum mk_verdict v)
{
    if (MK_LIKELY(x->request.target == x->dispatched_target))
        return apply_verdict(x, v);
    if (v == MK_REWRITTEN)
        return defer_or_follow_rewrite(x);
    return v == MK_NEXT ? log_unreported_rewrite(x, v) : apply_verdict(x, v);
}

static bool run_request_hook(struct mk_exchange *x)
{
    const struct mk_hook_list *hooks = &x->request.site->hooks.request;
    const struct mk_hook *h = x->at < hooks->n ? &hooks->at[x->at] : NULL;
    if (MK_UNLIKELY(!x->https_checked) && !(h && may_set_client_addr(h->plugin)))
        return check_https_policy(x);
    if (!h)
        return begin_routes(x);
    x->last_called = h->plugin->name;
    enum mk_verdict v = h->plugin->on_request(&x->request, &x->response, h->data);
    x->deciding_plugin = v == MK_NEXT ? NULL : h->plugin;
    bool answers = v != MK_NEXT && v != MK_WAIT && v != MK_REWRITTEN;
    x->is_acme_request = x->is_acme_request && !mk_request_is_secure(&x->request);
    if (MK_UNLIKELY(x->is_acme_request && answers) && !(v == MK_DONE && runs_before_client_checks(h->plugin)))
        return reapply_https_policy(x);
    return apply_verdict_or_rewrite(x, v);
}

/* Runs, for the old path, the access checks that follow the hook that rewrote the request. Then all hooks run
 * again for the new path. */
MK_COLD static bool run_remaining_access_check(struct mk_exchange *x)
{
    const struct mk_hook_list *hooks = &x->request.site->hooks.request;
    const struct mk_hook *h = x->at < hooks->n ? &hooks->at[x->at] : NULL;
    if (!x->https_checked || (h && is_access_check(h->plugin)))
        return run_request_hook(x);
    x->request.target = x->pending;
    follow_rewrite(x);
    return true;
}

static bool add_allow_header(struct mk_exchange *x)
{
    char buf[96];
    struct mk_buf list = mk_buf_fixed(buf, sizeof buf);
    for (unsigned m = MK_METHOD_GET; m < MK_METHOD_COUNT; m++) {
        if (!(x->allowed & MK_METHOD_BIT(m)))
            continue;
        if (list.len)
            mk_buf_add(&list, MK_STR(", "));
        mk_buf_add(&list, mk_method_name((enum mk_method)m));
    }
    mk_str value = mk_arena_copy(&x->arena, mk_buf_str(&list));
    return value.p && mk_response_add_header_unchecked(&x->response, MK_STR("Allow"), value);
}

/* Has the last handler looked for content to read, and found none? Wildcard routes for other methods, such as those for
 * uploads, then do not mean that the path exists. */
static bool found_nothing_to_read(const struct mk_exchange *x)
{
    unsigned reads = MK_METHOD_BIT(MK_METHOD_GET) | MK_METHOD_BIT(MK_METHOD_HEAD);
    return x->request.route && x->request.route->handler->methods & reads &&
           reads & MK_METHOD_BIT(x->request.target->method);
}

/* No route responded: unknown path (404), or method not allowed (405)? */
static void respond_without_handler(struct mk_exchange *x)
{
    bool path_known = x->allowed != 0 && (x->is_path_named || !found_nothing_to_read(x));
    x->allowed |= METHODS_ALWAYS_ALLOWED;
    if (x->request.target->method == MK_METHOD_UNKNOWN) {
        set_error_response(x, 501);
    } else if (path_known && !add_allow_header(x)) {
        set_error_response(x, 503);
    } else if (path_known && x->request.target->method == MK_METHOD_OPTIONS) {
        x->response.status = 200;
        x->step = MK_DISPATCH_FINISH;
    } else if (path_known) {
        set_error_response(x, 405);
    } else {
        mk_request_log(&x->request, MK_LOG_DEBUG, "no handler responds to this path");
        set_error_response(x, x->declined_status >= 300 ? x->declined_status : 404);
    }
}

static unsigned handler_methods(const struct mk_handler *h)
{
    return h->methods & MK_METHOD_BIT(MK_METHOD_GET) ? h->methods | MK_METHOD_BIT(MK_METHOD_HEAD)
                                                     : h->methods;
}

/* Fails the request: if it continued to later routes, they might serve content that this route protects. */
MK_COLD static bool fail_route_match_limit(struct mk_exchange *x, const struct mk_route *route)
{
    mk_request_explain(&x->request, "route", "%.*s  exceeded its limits: too many steps, or too much memory",
                       MK_STR_ARG(route->pattern.text));
    if (mk_effective_limits_may_log(x))
        mk_log_error(x->request.web->log,
                     "matching the route %.*s took too many steps or too much memory: 500",
                     MK_STR_ARG(route->pattern.text));
    set_error_response(x, 500);
    return true;
}

/* Reroutes a request whose method static does not support, if the index file or fallback of its path is a
 * script: for example, a form posted to a folder. */
MK_COLD static bool try_static_reroute(struct mk_exchange *x, const struct mk_route *route)
{
    const struct mk_route *before = x->request.route;
    x->request.route = route;
    enum mk_verdict v = mk_static_reroute_to_other_handler(&x->request, &x->response);
    x->request.route = before; /* the handler of `route` was not called */
    return apply_verdict_or_rewrite(x, v);
}

/* Sets the body limit in the protocol layer, if it supports that. False: the body is larger. */
static bool set_body_limit(struct mk_exchange *x, uint64_t max)
{
    const struct mk_request *r = &x->request;
    if (!r->length || !r->ops || !r->ops->limit_body)
        return true;
    return r->ops->limit_body(r->ops_ctx,
                              max == MK_BODY_MAX_DEFAULT ? mk_dispatch_limits(x)->content_max : max) == 0;
}

/* May the body be read now? If a hook reads the body before the handler has set its limit, MaxBodySize
 * applies. */
bool mk_dispatch_may_read_body(struct mk_exchange *x)
{
    return x->body_route || set_body_limit(x, MK_BODY_MAX_DEFAULT);
}

/* Applies the body limit of the route's handler, once per route. False: the body is too large, and the
 * handler must not be called. */
static bool apply_handler_body_max(struct mk_exchange *x, const struct mk_route *route)
{
    const struct mk_handler *h = route->handler;
    if (x->body_route == route)
        return true;
    x->body_route = route;
    uint64_t max = h->body_max ? h->body_max(&x->request, route->data) : MK_BODY_MAX_DEFAULT;
    bool fits = set_body_limit(x, max == MK_BODY_MAX_PASS ? MK_BODY_MAX_DEFAULT : max);
    return fits || max == MK_BODY_MAX_PASS;
}

/* `monkey explain` does not call plugin handlers: they report what they would do. */
MK_COLD static bool explain_route(struct mk_exchange *x, const struct mk_route *route)
{
    const struct mk_handler *h = route->handler;
    if (h->explain && !h->explain(&x->request, route->data))
        return apply_verdict(x, MK_NEXT);
    (void)!mk_request_check_path(&x->request); /* reports what a gateway handler would reject */
    x->handler_skipped = true;
    return apply_verdict(x, MK_DONE);
}

/* Returns true if the handler must not be called, because `monkey explain` asks. */
static bool notify_watcher(struct mk_exchange *x, const struct mk_route *route)
{
    const struct mk_web_ctx *web = x->request.web;
    if (web->explanation)
        return route->plugin;
    if (route->handler != &mk_static)
        web->on_handle(&x->request, web->on_handle_data);
    return false;
}

/* Moves on to the last route of a run whose conditions are all false. */
MK_NOINLINE static enum mk_regex_result match_conditions(struct mk_exchange *x, const struct mk_route *route)
{
    const struct mk_conditions *when = route->when;
    mk_str path = x->request.target->path;
    if (!route->run || when->match(&route->run->any, &x->request, path) != MK_REGEX_NO_MATCH)
        return when->match(when, &x->request, path);
    x->at = (unsigned)route->run->end - 1;
    return MK_REGEX_NO_MATCH;
}

static bool call_route_handler(struct mk_exchange *x)
{
    const struct mk_vhost *host = x->request.site;
    if (MK_UNLIKELY(x->is_acme_request))
        return serve_acme_challenge(x);
    enum mk_regex_result result;
    x->at = (unsigned)mk_vhost_next_route(host, x->at, x->request.target->path, &result);
    if (x->at == host->n_routes) {
        respond_without_handler(x);
        return true;
    }
    const struct mk_route *route = &host->routes[x->at];
    if (MK_UNLIKELY(result == MK_REGEX_LIMIT))
        return fail_route_match_limit(x, route);
    if (MK_UNLIKELY(route->when != NULL) && (result = match_conditions(x, route)) != MK_REGEX_MATCH)
        return result == MK_REGEX_LIMIT ? fail_route_match_limit(x, route) : apply_verdict(x, MK_NEXT);
    unsigned methods = handler_methods(route->handler);
    if (methods && !(methods & MK_METHOD_BIT(x->request.target->method))) {
        x->allowed |= methods;
        x->is_path_named |= route->pattern.kind == MK_PATTERN_EXACT && !route->regex;
        return route->handler == &mk_static ? try_static_reroute(x, route) : apply_verdict(x, MK_NEXT);
    }
    x->request.route = route;
    if (MK_UNLIKELY(x->request.web->is_watched) && notify_watcher(x, route))
        return explain_route(x, route);
    if (MK_UNLIKELY(mk_exchange_handler_sets_body_max(x)) && !apply_handler_body_max(x, route)) {
        mk_effective_limits_log_too_long(x, mk_dispatch_limits(x)->content_max, false);
        set_error_response(x, 413);
        return true;
    }
    x->last_called = route->handler->name;
    enum mk_verdict v = route->handler->handle(&x->request, &x->response, route->data);
    return apply_verdict_or_rewrite(x, v);
}

/* OPTIONS * and CONNECT refer to the server, not to a path. */
static bool respond_server_wide(struct mk_exchange *x)
{
    x->allowed = MK_METHOD_BIT(MK_METHOD_GET) | MK_METHOD_BIT(MK_METHOD_HEAD);
    respond_without_handler(x);
    return true;
}

static bool find_request_vhost(struct mk_exchange *x)
{
    ensure_vhost(x);
    x->step = MK_DISPATCH_ROUTES;
    if (x->request.site->hooks.has_early)
        x->step = MK_DISPATCH_HOOKS;
    start_https_policy(x);
    return x->https_checked || x->step == MK_DISPATCH_HOOKS || check_https_policy(x);
}

/* The request waits, perhaps in a hook, before a handler was called. */
MK_COLD static void notify_of_wait(struct mk_exchange *x)
{
    const struct mk_web_ctx *web = x->request.web;
    if (web->on_handle)
        web->on_handle(&x->request, web->on_handle_data);
}

bool mk_dispatch_run(struct mk_exchange *x)
{
    bool goes_on = true;
    while (goes_on) {
        switch (x->step) {
        case MK_DISPATCH_HOST:
            goes_on = find_request_vhost(x);
            break;
        case MK_DISPATCH_HOOKS:
            goes_on = run_request_hook(x);
            break;
        case MK_DISPATCH_GUARDS:
            goes_on = run_remaining_access_check(x);
            break;
        case MK_DISPATCH_ROUTES:
            goes_on = x->request.target->path.len == 0 || x->request.target->path.p[0] == '*'
                          ? respond_server_wide(x)
                          : call_route_handler(x);
            break;
        case MK_DISPATCH_ERROR:
            goes_on = run_error_hook(x);
            break;
        case MK_DISPATCH_FINISH:
            return run_response_hooks(x);
        case MK_DISPATCH_READY:
            return true;
        }
    }
    if (MK_UNLIKELY(x->request.web->is_watched))
        notify_of_wait(x);
    return false;
}

static bool is_aborted_outcome(enum mk_outcome outcome)
{
    return outcome != MK_OUTCOME_OK && outcome != MK_OUTCOME_REJECTED;
}

void mk_dispatch_end(struct mk_exchange *x, enum mk_outcome outcome, uint64_t content_received,
                     uint64_t content_sent, uint64_t now_ms)
{
    const struct mk_web_ctx *web = x->request.web;
    const struct mk_vhost *site = x->request.site ? x->request.site : x->request.hosts->fallback;
    x->response.sent = outcome == MK_OUTCOME_OK;
    if (!web->on_record && (!site || (!site->hooks.done.n && !is_aborted_outcome(outcome))))
        return; /* no hook or log needs the entry */
    const char *reason = x->request.extras ? x->request.extras->reason : NULL;
    struct mk_access_record record = {
        .request = &x->request,
        .response = x->response.sealed ? &x->response : NULL,
        .status = x->response.sealed ? x->response.status : 0,
        .outcome = outcome,
        .reason = reason               ? reason
                  : x->deciding_plugin ? x->deciding_plugin->name
                                       : NULL,
        .is_reason_set = reason,
        .content_received = content_received,
        .content_sent = content_sent,
        .duration_ms = now_ms - x->request.now_ms,
        .began_us = x->began_us,
    };
    for (size_t i = 0; site && is_aborted_outcome(outcome) && i < site->hooks.abort.n; i++)
        site->hooks.abort.at[i].plugin->on_abort(&x->request, site->hooks.abort.at[i].data);
    for (size_t i = 0; site && i < site->hooks.done.n; i++)
        site->hooks.done.at[i].plugin->on_done(&record, site->hooks.done.at[i].data);
    if (web->on_record)
        web->on_record(&record, web->on_record_data);
}
