/* SPDX-License-Identifier: Apache-2.0 */
/* Services in the configuration: their mount points and hosts. */
#include <dlfcn.h>
#include <duda/scope.h>
#include <errno.h>
#include <string.h>

#include "fiber/stack_probe.h"
#include "service/after_response.h"
#include "service/assets.h"
#include "service/dynsym.h"
#include "service/error_hook.h"
#include "service/memory.h"
#include "service/metrics.h"
#include "service/public_url.h"
#include "service/render.h"
#include "service/request_ctx.h"
#include "service/result.h"
#include "service/route_conflicts.h"
#include "service/route_policy.h"
#include "service/route_table.h"
#include "service/scheduler.h"
#include "service/service_entry.h"
#include "service/session_config.h"
#include "service/setting_paths.h"
#include "service/share.h"
#include "service/span.h"
#include "service/start_tasks.h"
#include "service/topic_load.h"
#include "service/translations.h"
#include "service/url.h"
#include "service/worker_ctx.h"

static const char copy[1];

/* Finds the copy of Duda that the service is linked with, because two copies would not know about each
 * other. */
static struct duda_plugin_config *find_duda_config(struct mk_config *config,
                                                   const struct duda_service *service)
{
    const struct mk_plugin *plugin = duda_worker_ctx_plugin();
    struct duda_plugin_config *duda = plugin ? mk_config_data(config, plugin) : NULL;
    Dl_info ours;
    if (duda)
        return duda;
    if (duda_worker_ctx_is_loading(config)) {
        mk_config_error(config, NULL, NULL, "the service `%s` needs Duda, whose settings have an error",
                        service->name);
        return NULL;
    }
    mk_config_error(config, NULL, NULL, "the service `%s` is linked with a second copy of Duda: %s",
                    service->name, dladdr(copy, &ours) ? ours.dli_fname : "?");
    mk_config_hint(config, "load Duda from that file, too, or without a path: `Load duda`");
    return NULL;
}

static void append_package_names(struct mk_buf *line, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], "duda") != 0)
            mk_buf_addf(line, "%s\"%s\"", line->len ? ", " : " ", names[i]);
}

/* Checks that the service declares the packages that it calls. An undeclared package may not be loaded in
 * this server, and then has no state in its workers. */
static bool check_declared_packages(struct mk_config *config, const struct duda_service *service)
{
    const char *const *needs = service->plugin->needs;
    const char *missing[8];
    size_t n_needs = 0, n = duda_dynsym_undeclared_plugins(service, needs, missing, MK_LEN(missing));
    if (n == 0)
        return true;
    while (needs[n_needs])
        n_needs++;
    struct mk_buf line = mk_buf_growing(4096);
    append_package_names(&line, needs, n_needs);
    append_package_names(&line, missing, n);
    mk_config_error(config, NULL, NULL, "the service `%s` calls the package `%s`, but does not declare it",
                    service->name, missing[0]);
    mk_config_hint(config, "add before the first #include of %s: `#define DUDA_USE%.*s`", service->file,
                   MK_STR_ARG(mk_buf_str(&line)));
    mk_buf_free(&line);
    return false;
}

/* Checks that the service was compiled with stack probes. Without them, a large frame could skip the guard
 * and write into the stack of another request. */
static bool check_stack_probes(struct mk_config *config, const struct duda_service *service)
{
    const char *file = duda_stack_probe_find_unprotected(service);
    if (!file)
        return true;
    mk_config_error(config, NULL, NULL,
                    "the service `%s`: %s was compiled without -fstack-clash-protection: a large array could "
                    "overwrite the "
                    "stack of another request",
                    service->name, file);
    mk_config_hint(config, "compile it with `monkey build`, or with the flags of `pkg-config --cflags duda`");
    return false;
}

static void prepare_cookie_crypto(struct duda_plugin_config *duda, const struct duda_service *service)
{
    static const char *const proven[] = {"duda_cookie_set_signed_sized",
                                         "duda_cookie_set_encrypted_sized",
                                         "duda_cookie_signed",
                                         "duda_cookie_encrypted",
                                         "duda_cursor_new",
                                         "duda_cursor_read"};
    if (duda_dynsym_calls_any(service, proven, MK_LEN(proven)))
        (void)duda_session_config_load_crypto(duda->session_config); /* the calls report a missing OpenSSL */
}

/* Warns if the service calls functions that need a list of each user's sessions: sessions in cookies have none.
 * A service with its own store keeps no sessions in cookies. */
static void warn_about_cookie_sessions(struct mk_config *config, struct duda_plugin_config *duda,
                                       const struct duda_service *service)
{
    static const char *const lists[] = {"duda_session_list",          "duda_session_revoke_all",
                                        "duda_session_revoke_others", "duda_session_revoke",
                                        "duda_session_add_alias",     "duda_session_find_user"};
    static const char *const stores[] = {"duda_session_set_store"};
    if (duda->session_config->store != DUDA_SESSION_BACKEND_COOKIE ||
        !duda_dynsym_calls_any(service, lists, MK_LEN(lists)) ||
        duda_dynsym_calls_any(service, stores, MK_LEN(stores)))
        return;
    mk_config_warn(
        config, NULL, NULL,
        "the service `%s` lists or revokes the sessions of a user, or adds aliases to them, which is not "
        "possible with `Store cookie`: these functions will return -ENOTSUP",
        service->name);
    mk_config_hint(config, "keep sessions in memory, or in a [KV] or [REDIS] section");
}

/* Sets the namespace of the service's state. */
static bool bind_state_scope(struct mk_config *config, struct duda_plugin_config *duda,
                             const struct duda_service *service, struct duda_service_ref *owner)
{
    mk_str name = mk_str_from_c(service->name);
    if (!duda_scope_is_valid_name(name)) {
        mk_config_error(config, NULL, NULL,
                        "the service `%s` needs a name of 1 to %d letters, digits, `-` and `_`",
                        service->name, DUDA_SCOPE_MAX);
        return false;
    }
    owner->share = duda_shares_find(duda->shares, name);
    owner->scope = owner->share ? owner->share->name : name;
    if (duda->n_services < MK_LEN(duda->services)) {
        duda->scopes[duda->n_services] = owner->scope;
        duda->loaded[duda->n_services] = service;
        duda->services[duda->n_services++] = name;
    }
    return true;
}

/* The size of the struct in the first release. */
enum { SERVICE_SIZE_OLDEST = sizeof(struct duda_service) };

static bool is_supported(const struct duda_service *service)
{
    return service->abi >= DUDA_ABI_OLDEST && service->abi <= DUDA_ABI &&
           service->size >= SERVICE_SIZE_OLDEST && service->size <= sizeof *service &&
           duda_routes_are_supported(service->routes);
}

static bool load_settings(struct mk_config *config, const struct duda_service *service,
                          struct duda_service_ref *owner)
{
    const struct mk_conf_table *table = service->plugin->sections ? service->plugin->sections[0] : NULL;
    void *settings = table ? mk_config_settings(config, table) : NULL;
    owner->settings = settings;
    return !settings || duda_setting_paths_resolve(config, table, settings);
}

int duda_service_load(const struct duda_service *service, struct mk_config *config, void **data)
{
    if (!is_supported(service)) {
        mk_config_error(config, NULL, NULL,
                        "the service `%s` was built for another version of Duda: rebuild it", service->name);
        return -EINVAL;
    }
    struct duda_plugin_config *duda = find_duda_config(config, service);
    if (!duda || !check_declared_packages(config, service) || !check_stack_probes(config, service))
        return -EINVAL;
    prepare_cookie_crypto(duda, service);
    warn_about_cookie_sessions(config, duda, service);
    struct service_entry *service_entry = mk_config_alloc(config, sizeof *service_entry);
    if (!service_entry)
        return -ENOMEM;
    service_entry->service = service;
    service_entry->has.entry = service_entry;
    service_entry->public_url = duda_public_urls_find(duda->public_urls, mk_str_from_c(service->name));
    if (!bind_state_scope(config, duda, service, &service_entry->has) ||
        !duda_topics_load(config, duda, service) ||
        !duda_metrics_load(config, service, &service_entry->has.metrics))
        return -EINVAL;
    service_entry->table = duda_route_table_new(config, service, &duda->data_checks);
    *data = service_entry;
    bool ok = load_settings(config, service, &service_entry->has) &&
              duda_symbolizer_add_object(config, &duda->sources, service) && service_entry->table &&
              duda_render_load_templates(config, service, &service_entry->templates) &&
              duda_assets_load(config, service, service_entry->table, &service_entry->assets) &&
              duda_translations_load(config, service, &service_entry->has.translations);
    if (ok) {
        duda_url_check_names(config, service, service_entry->table);
        duda_url_check_templates(config, service_entry->templates, service_entry->table);
        duda_route_conflicts_report(service, service_entry->table);
    }
    return ok ? 0 : -EINVAL;
}

bool duda_service_bind(const struct duda_service *service, const struct mk_conf_ctx *conf_ctx, mk_str words,
                       void **data)
{
    struct service_entry *service_entry = mk_config_data(mk_conf_ctx_config(conf_ctx), service->plugin);
    struct mount *mount = mk_conf_ctx_alloc(conf_ctx, sizeof *mount);
    if (words.len || !mount)
        return false;
    *data = mount;
    if (!service_entry)
        return true; /* failed to load; already reported */
    mount->service_entry = service_entry;
    mount->prefix = duda_mount_prefix(mk_conf_ctx_key(conf_ctx));
    if (!service_entry->named)
        service_entry->mount_prefix = mount->prefix;
    service_entry->named = true;
    return true;
}

static bool is_in_routes(const struct mk_vhost *host, const struct duda_service *service)
{
    mk_str pattern, handler;
    for (size_t i = 0; mk_vhost_route_at(host, i, &pattern, &handler); i++)
        if (mk_str_eq_nocase(mk_str_word(&handler), mk_str_from_c(service->name)))
            return true;
    return false;
}

/* ---- Forgotten CSRF checks ---- */

static bool is_method_safe(mk_str method)
{
    static const mk_str safe[] = {MK_STR_INIT("GET"), MK_STR_INIT("HEAD"), MK_STR_INIT("OPTIONS"),
                                  MK_STR_INIT("TRACE")};
    for (size_t i = 0; i < MK_LEN(safe); i++)
        if (mk_str_eq(method, safe[i]))
            return true;
    return false;
}

/* The first route whose method is not safe; NULL if there is none. The nesting depth of groups was checked
 * before. */
static const struct duda_route *find_unsafe_route(const struct duda_routes *routes)
{
    for (size_t i = 0; i < routes->n; i++) {
        const struct duda_route *r = duda_routes_at(routes, i);
        mk_str methods = r->kind == DUDA_IS_ROUTE ? mk_str_from_c(r->method) : MK_STR_NULL;
        while (methods.p)
            if (!is_method_safe(mk_str_trim(mk_str_cut(&methods, ','))))
                return r;
        const struct duda_route *inner = r->kind == DUDA_IS_GROUP ? find_unsafe_route(r->routes) : NULL;
        if (inner)
            return inner;
    }
    return NULL;
}

/* In development mode: warns about a service that has sessions and unsafe routes but no CSRF check. Because
 * of SameSite=Lax, browsers do not send the session cookie with unsafe requests from other sites, but they do
 * with those from other hosts of the same domain. */
static void warn_without_csrf_check(struct mk_config *config, const struct duda_service *service)
{
    static const char *const sessions[] = {"duda_session_set", "duda_session_set_struct_checked"};
    static const char *const checks[] = {"duda_csrf_check"};
    const struct duda_route *r = find_unsafe_route(service->routes);
    if (!r || !duda_dynsym_calls_any(service, sessions, MK_LEN(sessions)) ||
        duda_dynsym_calls_any(service, checks, MK_LEN(checks)))
        return;
    mk_config_warn(
        config, NULL, NULL,
        "the service `%s` has sessions, and routes such as %s %s (%s:%d) that another site may call for "
        "a logged-in user",
        service->name, r->method, r->path, r->file, r->line);
    mk_config_hint(config, "put DUDA_BEFORE(duda_csrf_check) before these routes (duda/session.h)");
}

/* Mounts the service on the whole virtual host. */
static int mount_on_host(struct mk_config *config, struct service_entry *service_entry)
{
    struct mount *mount = mk_config_alloc(config, sizeof *mount);
    if (!mount)
        return -ENOMEM;
    mount->service_entry = service_entry;
    mount->prefix = MK_STR("");
    mk_config_prepend_route(config, MK_STR("/*"), service_entry->service->handler, mount);
    return duda_route_conflicts_declare(config, service_entry->service, service_entry->table) ? 0 : -EINVAL;
}

int duda_service_host(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct service_entry *service_entry = data;
    const struct duda_plugin_config *duda = mk_config_data(config, duda_worker_ctx_plugin());
    bool is_mounted_below = is_in_routes(host, service_entry->service);
    if (duda->rules.tries && !service_entry->is_checked)
        warn_without_csrf_check(config, service_entry->service);
    service_entry->is_checked = true;
    *host_data = NULL; /* the host has no hooks of the service */
    if (is_mounted_below || !service_entry->named) {
        *host_data = duda_error_host_new(config, host, service_entry, is_mounted_below);
        if (!*host_data)
            return -ENOMEM;
    }
    return service_entry->named || is_mounted_below ? 0 : mount_on_host(config, service_entry);
}

int duda_service_start(struct mk_worker *worker, void *data)
{
    const struct service_entry *service_entry = data;
    struct duda_worker_ctx *worker_ctx = duda_worker_ctx(worker);
    const struct duda_routes *routes = service_entry->service->routes;
    for (size_t i = 0; i < routes->n; i++) {
        const struct duda_route *r = duda_routes_at(routes, i);
        worker_ctx->starts = &service_entry->has;
        int e = r->kind == DUDA_IS_START ? r->start(worker) : 0;
        worker_ctx->starts = NULL;
        if (e) {
            char text[DUDA_ERRNO_TEXT_SIZE];
            mk_worker_log(worker, MK_LOG_ERROR, "%s() in %s:%d answered %s", r->name, r->file, r->line,
                          duda_errno_text(e, text));
            return e;
        }
    }
    return duda_start_tasks_begin(worker_ctx, service_entry);
}

void duda_service_cancel(struct mk_worker *worker, void *data)
{
    const struct service_entry *service_entry = data;
    if (!duda_worker_ctx(worker))
        return;
    duda_start_tasks_cancel(duda_worker_ctx(worker), service_entry);
    duda_after_response_cancel(duda_worker_ctx(worker), &service_entry->has);
}

void duda_service_stop(struct mk_worker *worker, void *data)
{
    const struct service_entry *service_entry = data;
    const struct duda_routes *routes = service_entry->service->routes;
    duda_service_cancel(worker, data); /* services of older headers have no worker_cancel */
    for (size_t i = 0; i < routes->n; i++)
        if (duda_routes_at(routes, i)->kind == DUDA_IS_STOP)
            duda_routes_at(routes, i)->stop(worker);
}

/* ---- Requests ---- */

/* Responds to a request for a path that has routes, but none for this method. */
static enum mk_verdict respond_allowed_methods(struct mk_request *request, struct mk_response *response,
                                               const struct mk_router *router, uint64_t allowed)
{
    char buf[512];
    struct mk_buf allow = mk_buf_fixed(buf, sizeof buf);
    bool is_options = mk_request_method(request) == MK_METHOD_OPTIONS;
    mk_router_allow(router, allowed, &allow);
    if (!memmem(allow.p, allow.len, "OPTIONS", 7))
        mk_buf_add(&allow, MK_STR(", OPTIONS"));
    if (!allow.failed)
        (void)mk_response_add_header(response, MK_STR("Allow"), mk_buf_str(&allow));
    if (!is_options)
        mk_request_log(request, MK_LOG_DEBUG, "this path has no route for %.*s, only for %.*s",
                       MK_STR_ARG(mk_request_method_name(request)), MK_STR_ARG(mk_buf_str(&allow)));
    (void)mk_response_set_status(response, is_options ? 204 : 405);
    return is_options ? MK_DONE : MK_ERROR;
}

/* Refuses a request for a route whose handler has crashed too often. */
static enum mk_verdict refuse_disabled_route(struct mk_request *request, struct mk_response *response,
                                             int64_t seconds)
{
    char buf[24];
    struct mk_buf wait = mk_buf_fixed(buf, sizeof buf - 1);
    memset(buf, 0, sizeof buf);
    mk_buf_add_num(&wait, (uint64_t)seconds);
    mk_request_log(request, MK_LOG_DEBUG,
                   "the handler has crashed too often: its route is enabled again in %s s (CrashLimit)", buf);
    (void)mk_response_add_header(response, MK_STR("Retry-After"), mk_buf_str(&wait));
    (void)mk_response_set_status(response, 503);
    return MK_ERROR;
}

static mk_str path_below_mount(const struct mount *mount, struct mk_request *request)
{
    mk_str path = mk_str_skip(mk_request_path(request), mount->prefix.len);
    return path.len ? path : MK_STR("/");
}

static const struct duda_route_entry *find_route(const struct mount *mount, struct mk_request *request,
                                                 mk_str path, struct mk_router_match *match,
                                                 const struct mk_router **router)
{
    return duda_route_table_find(mount->service_entry->table, mk_request_host(request),
                                 mk_request_method_name(request), path, match, router);
}

/* Returns the body limit of the route. If no route matches, the service does not read the body. */
uint64_t duda_service_body_max(struct mk_request *request, void *data)
{
    struct mk_router_match match;
    const struct mk_router *router;
    const struct duda_route_entry *entry =
        find_route(data, request, path_below_mount(data, request), &match, &router);
    return !entry ? MK_BODY_MAX_PASS : entry->route->body_max ? entry->route->body_max : MK_BODY_MAX_DEFAULT;
}

bool duda_service_explain(struct mk_request *request, void *data)
{
    const struct mount *mount = data;
    struct mk_router_match match;
    const struct mk_router *router;
    const struct duda_route_entry *entry =
        find_route(mount, request, path_below_mount(mount, request), &match, &router);
    const char *name = mount->service_entry->service->name;
    if (entry)
        mk_request_explain(request, "service", "%s: %s %.*s, %s() in %s:%d", name, entry->route->method,
                           MK_STR_ARG(entry->pattern), entry->route->name, entry->route->file,
                           entry->route->line);
    else if (router)
        mk_request_explain(request, "service", "%s: the path has routes for other methods: 405", name);
    else
        mk_request_explain(request, "service", "%s has no route for this path", name);
    if (entry && entry->route->body_max == UINT64_MAX)
        mk_request_explain(request, "body", "any length (`.body_max` of the route)");
    else if (entry && entry->route->body_max)
        mk_request_explain(request, "body", "at most %llu bytes (`.body_max` of the route)",
                           (unsigned long long)entry->route->body_max);
    return entry || router;
}

/* Returns the CORS policy of the route for this path and method; NULL if there is none. */
static const struct duda_cors *find_cors_of_method(const struct mount *mount, struct mk_request *request,
                                                   mk_str path, mk_str method)
{
    struct mk_router_match match;
    const struct mk_router *router;
    const struct duda_route_entry *entry = duda_route_table_find(
        mount->service_entry->table, mk_request_host(request), method, path, &match, &router);
    return entry ? entry->cors : NULL;
}

/* Answers a preflight request, unless the service has its own route for OPTIONS. */
static bool respond_preflight(struct mk_request *request, struct mk_response *response,
                              const struct mount *mount, mk_str path, const struct duda_route_entry *entry)
{
    mk_str method = duda_route_policy_preflight_method(request);
    if (!method.len || (entry && !mk_str_eq(mk_str_from_c(entry->route->method), MK_STR("*"))))
        return false;
    const struct duda_cors *cors = find_cors_of_method(mount, request, path, method);
    if (cors)
        duda_route_policy_respond_preflight(request, response, cors, method);
    return cors != NULL;
}

/* Adds the CORS headers to a response that no handler of the service sends: a 405, or the 404 of a later
 * handler. */
static void add_cors_headers(struct mk_request *request, struct mk_response *response,
                             const struct mount *mount, mk_str path, bool has_routes)
{
    static const mk_str methods[] = {MK_STR_INIT("GET"), MK_STR_INIT("POST"), MK_STR_INIT("PUT"),
                                     MK_STR_INIT("PATCH"), MK_STR_INIT("DELETE")};
    const struct duda_cors *cors = NULL;
    for (size_t i = 0; has_routes && !cors && i < MK_LEN(methods); i++)
        cors = find_cors_of_method(mount, request, path, methods[i]);
    if (!cors)
        cors = duda_route_table_find_cors(mount->service_entry->table, mk_request_host(request), path);
    if (cors)
        duda_route_policy_add_cors_headers(request, response, cors);
}

static enum mk_verdict start_request_handler(struct mk_request *request, struct mk_response *response,
                                             const struct mount *mount)
{
    struct mk_router_match match;
    const struct mk_router *router;
    mk_str path = path_below_mount(mount, request);
    const struct duda_route_entry *entry = find_route(mount, request, path, &match, &router);
    if (duda_route_table_has_cors(mount->service_entry->table)) {
        if (respond_preflight(request, response, mount, path, entry))
            return MK_DONE;
        if (!entry)
            add_cors_headers(request, response, mount, path, router != NULL);
    }
    if (!entry)
        return router ? respond_allowed_methods(request, response, router, match.allowed) : MK_NEXT;
    int64_t closed = duda_route_slot_disabled_s(entry->route_slot, mk_request_time(request));
    if (closed)
        return refuse_disabled_route(request, response, closed);
    struct duda_ctx *d = duda_request_ctx_new(request, &match);
    if (d) {
        d->response = response;
        d->route_entry = entry;
        d->templates = mount->service_entry->templates;
        d->assets = mount->service_entry->assets;
        d->owner = &mount->service_entry->has;
        d->path = path;
        mk_request_set_data(request, d);
        if (d->worker_ctx->records_traces)
            duda_span_begin_handler(d);
    }
    if (d && !duda_scheduler_create_fiber(d))
        return duda_scheduler_run(d);
    (void)mk_response_set_status(response, 503);
    return MK_ERROR;
}

enum mk_verdict duda_service_handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct duda_ctx *d = mk_request_data(request);
    return d ? duda_scheduler_run(d) : start_request_handler(request, response, data);
}
