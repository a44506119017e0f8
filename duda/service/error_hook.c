/* SPDX-License-Identifier: Apache-2.0 */
#include "service/error_hook.h"

#include "service/extras.h"
#include "service/request_ctx.h"
#include "service/route_policy.h"
#include "service/scheduler.h"

struct duda_error_host {
    const struct service_entry *service_entry;
    size_t n;
    mk_str prefixes[]; /* of the mount points */
};

static bool is_route_of(const struct service_entry *service_entry, mk_str handler)
{
    return mk_str_eq_nocase(mk_str_word(&handler), mk_str_from_c(service_entry->service->name));
}

struct duda_error_host *duda_error_host_new(struct mk_config *config, const struct mk_vhost *host,
                                            const struct service_entry *service_entry, bool is_mounted_below)
{
    mk_str pattern, handler;
    size_t n = 0;
    for (size_t i = 0; mk_vhost_route_at(host, i, &pattern, &handler); i++)
        n += is_route_of(service_entry, handler);
    struct duda_error_host *h = mk_config_alloc(config, sizeof *h + (n + 1) * sizeof h->prefixes[0]);
    if (!h)
        return NULL;
    h->service_entry = service_entry;
    h->n = 0;
    for (size_t i = 0; mk_vhost_route_at(host, i, &pattern, &handler); i++)
        if (is_route_of(service_entry, handler))
            h->prefixes[h->n++] = duda_mount_prefix(pattern);
    if (!is_mounted_below)
        h->prefixes[h->n++] = MK_STR("");
    return h;
}

/* Returns the part of the path below the longest mount point that contains it; absent if none does. */
static mk_str path_below_mounts(const struct duda_error_host *h, mk_str path)
{
    const mk_str *found = NULL;
    for (size_t i = 0; i < h->n; i++) {
        const mk_str *prefix = &h->prefixes[i];
        mk_str rest = mk_str_skip(path, prefix->len);
        bool is_below = mk_str_starts(path, *prefix) && (rest.len == 0 || rest.p[0] == '/');
        if (is_below && (!found || prefix->len > found->len))
            found = prefix;
    }
    if (!found)
        return MK_STR_NULL;
    mk_str rest = mk_str_skip(path, found->len);
    return rest.len ? rest : MK_STR("/");
}

/* Does the status say that the path, or the method, is unknown? Such an error belongs to the service even if
 * another handler, such as the one for static files, responded last. */
static bool is_unknown_resource(unsigned status)
{
    return status == 404 || status == 405 || status == 501;
}

/* Returns the entry whose error handlers respond; NULL if there are none. */
static const struct duda_route_entry *find_error_entry(const struct duda_error_host *h,
                                                       struct mk_request *request, unsigned status,
                                                       mk_str path, struct mk_router_match *match)
{
    const struct duda_route_table *table = h->service_entry->table;
    const struct mk_router *router;
    mk_str host = mk_request_host(request);
    const struct duda_route_entry *entry =
        duda_route_table_find(table, host, mk_request_method_name(request), path, match, &router);
    if (entry)
        return entry->errors ? entry : NULL;
    match->n = 0;
    return router || is_unknown_resource(status) ? duda_route_table_find_errors(table, host, path) : NULL;
}

/* Returns the context of the handler of this service that handled the request; NULL if there is none. */
static struct duda_ctx *find_handler(const struct duda_error_host *h, struct mk_request *request)
{
    const struct mk_handler *handler = mk_request_handler(request);
    bool is_ours = handler && handler->handle == h->service_entry->service->handler->handle;
    struct duda_ctx *d = is_ours ? mk_request_data(request) : NULL;
    return d && d->owner == &h->service_entry->has ? d : NULL;
}

/* Cancels a handler that the server no longer waits for. The handler must not change the response. */
static void cancel_handler(struct duda_ctx *d)
{
    d->output = DUDA_OUTPUT_STREAMED;
    duda_scheduler_cancel(d);
}

/* Creates a context for an error that did not occur in a handler of the service. */
static struct duda_ctx *create_ctx(const struct duda_error_host *h, struct mk_request *request,
                                   struct mk_response *response, const struct duda_route_entry *entry,
                                   mk_str path, const struct mk_router_match *match)
{
    struct duda_ctx *d = duda_request_ctx_new(request, match);
    if (!d)
        return NULL;
    d->response = response;
    d->route_entry = entry;
    d->templates = h->service_entry->templates;
    d->assets = h->service_entry->assets;
    d->owner = &h->service_entry->has;
    d->path = path;
    return d;
}

/* Counts crashes in the crash slot of the error handlers, not in that of the route. The error handlers also
 * respond to the 503 of a disabled route, and could otherwise crash for each of its requests. */
static bool count_crashes_of_error_handlers(struct duda_ctx *d)
{
    struct duda_route_entry *entry = mk_request_alloc(d->request, sizeof *entry);
    if (!entry)
        return false;
    *entry = *d->route_entry;
    entry->route_slot = entry->errors->route_slot;
    d->route_entry = entry;
    return true;
}

static enum mk_verdict start_error_handlers(const struct duda_error_host *h, struct duda_ctx *d,
                                            unsigned status)
{
    struct duda_extras *extras = duda_extras_get(d);
    if (!extras || !count_crashes_of_error_handlers(d) || mk_request_attach(d->request, h, d->ctx_ref, NULL))
        return MK_NEXT;
    extras->errors = d->route_entry->errors;
    extras->error_status = status;
    return duda_scheduler_start_error_handlers(d) ? MK_NEXT : duda_scheduler_run_error_handlers(d);
}

/* Adds the CORS headers of the path to an error that occurred before the middleware of the route could add
 * them. Without these headers, scripts of other sites cannot read the error. */
static void add_cors_headers(const struct duda_error_host *h, struct mk_request *request,
                             struct mk_response *response, mk_str path)
{
    const struct duda_route_table *table = h->service_entry->table;
    struct mk_router_match match;
    const struct mk_router *router;
    mk_str host = mk_request_host(request);
    if (!path.p || !duda_route_table_has_cors(table) ||
        mk_response_header(response, MK_STR("Access-Control-Allow-Origin")).p ||
        mk_str_eq(mk_response_header(response, MK_STR("Vary")), MK_STR("Origin")))
        return;
    const struct duda_route_entry *entry =
        duda_route_table_find(table, host, mk_request_method_name(request), path, &match, &router);
    const struct duda_cors *cors = entry ? entry->cors : duda_route_table_find_cors(table, host, path);
    if (cors)
        duda_route_policy_add_cors_headers(request, response, cors);
}

/* ---- Paths that differ from a route by a slash at their end ---- */

enum { LOCATION_MAX = 8192 };

/* Adds or removes the slash at the end of the path. */
static bool write_other_path(struct mk_buf *out, mk_str path)
{
    bool has_slash = mk_str_ends(path, MK_STR("/"));
    mk_buf_add(out, has_slash ? mk_str_first(path, path.len - 1) : path);
    if (!has_slash)
        mk_buf_add_char(out, '/');
    return path.len > 1 && !out->failed;
}

/* *has_path: there are routes for this path, but maybe for other methods. */
static bool has_route(const struct duda_error_host *h, struct mk_request *request, mk_str path,
                      bool *has_path)
{
    struct mk_router_match match;
    const struct mk_router *router;
    const struct duda_route_entry *entry =
        duda_route_table_find(h->service_entry->table, mk_request_host(request),
                              mk_request_method_name(request), path, &match, &router);
    *has_path = entry || router;
    return entry;
}

/* Does the target, as the client sent it, lead to this server in the Location header, too? Browsers treat `//` and
 * a slash with a backslash as the start of a host. */
static bool is_local_target(mk_str target)
{
    return target.len > 1 && target.p[0] == '/' && target.p[1] != '/' && target.p[1] != '\\';
}

/* Redirects a request for `/items` to the route `/items/`, or vice versa. Only when no other handler, such as the
 * one for static files, has responded either, since that one may know the path. Returns whether it did. */
static bool redirect_to_other_path(const struct duda_error_host *h, struct mk_request *request,
                                   struct mk_response *response, mk_str path)
{
    bool is_rewritten = mk_request_path_at(request, 1).p != NULL, has_path;
    if (is_rewritten || has_route(h, request, path, &has_path) || has_path)
        return false;
    mk_str query = mk_request_target(request), target = mk_str_cut(&query, '?');
    struct mk_buf other = mk_buf_growing(LOCATION_MAX), location = mk_buf_growing(LOCATION_MAX);
    bool good = is_local_target(target) && write_other_path(&other, path) &&
                has_route(h, request, mk_buf_str(&other), &has_path) && write_other_path(&location, target);
    if (good && query.p) {
        mk_buf_add_char(&location, '?');
        mk_buf_add(&location, query);
    }
    good = good && !location.failed && !mk_response_set_status(response, 308) &&
           !mk_response_set_header(response, MK_STR("Location"), mk_buf_str(&location));
    if (good)
        (void)mk_response_remove_header(response, MK_STR("Allow")); /* of another handler */
    mk_buf_free(&other);
    mk_buf_free(&location);
    return good;
}

enum mk_verdict duda_service_error(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct duda_error_host *h = host_data;
    const struct duda_ctx_ref *ctx_ref = mk_request_attached(request, h);
    if (ctx_ref) /* the error handlers are suspended */
        return ctx_ref->d ? duda_scheduler_run_error_handlers(ctx_ref->d) : MK_NEXT;
    struct mk_router_match match;
    unsigned status = mk_response_status(response);
    mk_str path = path_below_mounts(h, mk_request_path(request));
    struct duda_ctx *d = find_handler(h, request);
    add_cors_headers(h, request, response, path);
    if (!d && path.p && is_unknown_resource(status) && redirect_to_other_path(h, request, response, path))
        return MK_DONE;
    if (d && d->fiber) {
        if (d->waits_for == DUDA_SUSPEND_NONE)
            return MK_NEXT;
        cancel_handler(d);
        d = NULL;
    }
    const struct duda_route_entry *entry = d        ? d->route_entry
                                           : path.p ? find_error_entry(h, request, status, path, &match)
                                                    : NULL;
    if (!entry || !entry->errors || (d && d->terminated) ||
        duda_route_slot_disabled_s(entry->errors->route_slot, mk_request_time(request)))
        return MK_NEXT;
    if (!d)
        d = create_ctx(h, request, response, entry, path, &match);
    return d ? start_error_handlers(h, d, status) : MK_NEXT;
}
