/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/app_routes.h"

#include <monkey/spool.h>

#include "base/mem.h"
#include "http/method.h"
#include "setup/config.h"
#include "setup/embedding.h"
#include "web/exchange.h"

/* A route, and its public description. */
struct route {
    struct route *next;
    mk_server_fn *fn;
    void *data;
    struct mk_route shown;
    char text[];
};

/* Routes of one host, or of all hosts. */
struct mk_app_routes_scope {
    struct mk_app_routes_scope *next, *behind; /* next scope in the list; scope to try after this one: that of
                                                  all hosts */
    const struct mk_app_routes *program;
    unsigned host; /* 0: all */
    struct mk_router *router;
    struct route *routes;
};

/* Route parameters of a request. */
struct params {
    const struct route *route;
    size_t n;
    struct mk_router_param at[];
};

static enum mk_verdict handle_request(struct mk_request *request, struct mk_response *response, void *data);

static const struct mk_handler handler = {.name = "program", .handle = handle_request};

/* ---- Adding ---- */

static struct mk_app_routes_scope *find_vhost_scope(const struct mk_app_routes *p, unsigned host)
{
    struct mk_app_routes_scope *s = p->first;
    while (s && s->host != host)
        s = s->next;
    return s;
}

static struct mk_app_routes_scope *add_vhost_scope(struct mk_app_routes *p, unsigned host)
{
    struct mk_app_routes_scope *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct mk_app_routes_scope){.next = p->first,
                                      .behind = find_vhost_scope(p, 0),
                                      .program = p,
                                      .host = host,
                                      .router = mk_router_new()};
    if (!s->router) {
        mk_mem_free(s);
        return NULL;
    }
    p->first = s;
    return s;
}

/* Returns the pattern, without the methods before it. */
static mk_str pattern_of_route(mk_str what)
{
    mk_str rest = what, first = mk_str_word(&rest), second = mk_str_trim(rest);
    return second.len ? second : first;
}

mk_err mk_app_routes_add(struct mk_app_routes *p, mk_str what, unsigned host, mk_server_fn *fn, void *data,
                         struct mk_buf *error)
{
    struct mk_app_routes_scope *s = find_vhost_scope(p, host);
    mk_str pattern = pattern_of_route(what);
    struct route *r = s || (s = add_vhost_scope(p, host)) ? mk_mem_zalloc(1, sizeof *r + pattern.len) : NULL;
    if (!r)
        return -ENOMEM;
    mk_err e = mk_router_add(s->router, what, r, MK_STR_NULL);
    if (e) {
        mk_buf_add(error, mk_router_error(s->router));
        mk_mem_free(r);
        return e;
    }
    *r = (struct route){.next = s->routes, .fn = fn, .data = data};
    memcpy(r->text, pattern.p, pattern.len);
    r->shown = (struct mk_route){.pattern = {.text = mk_str_of(r->text, pattern.len)},
                                 .handler = &handler,
                                 .plugin = &mk_app_routes_plugin,
                                 .written = MK_STR("of the program")};
    s->routes = r;
    return 0;
}

mk_err mk_app_routes_set_default_type(struct mk_app_routes *p, mk_str type)
{
    char *copy = type.p ? mk_mem_alloc(type.len + 1) : NULL;
    if (type.p && !copy)
        return -ENOMEM;
    if (copy)
        memcpy(copy, type.p, type.len);
    mk_mem_free(p->default_type_owned);
    p->default_type_owned = copy;
    p->default_type = mk_str_of(copy, type.len);
    return 0;
}

void mk_app_routes_free(struct mk_app_routes *p)
{
    mk_mem_free(p->default_type_owned);
    while (p->first) {
        struct mk_app_routes_scope *s = p->first;
        p->first = s->next;
        while (s->routes) {
            struct route *r = s->routes;
            s->routes = r->next;
            mk_mem_free(r);
        }
        mk_router_free(s->router);
        mk_mem_free(s);
    }
    mk_app_certificates_free(&p->certificates);
    mk_app_files_free(&p->files);
}

/* ---- Responding ---- */

/* Adds the methods to Allow, for a 405 or an OPTIONS response if nothing else handles the request. */
static void add_allowed_methods(struct mk_request *request, const struct mk_router *router, uint64_t methods)
{
    char buf[1024];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_router_allow(router, methods, &text);
    mk_str rest = mk_buf_str(&text);
    while (rest.len) {
        enum mk_method m = mk_method_find(mk_str_trim(mk_str_cut(&rest, ',')));
        if (m != MK_METHOD_UNKNOWN)
            mk_exchange_of(request)->allowed |= MK_METHOD_BIT(m);
    }
}

static bool store_params(struct mk_request *request, const struct mk_router_match *match)
{
    size_t size = match->n * sizeof match->params[0];
    struct params *p = mk_request_attached(request, &mk_app_routes_plugin);
    if (p && p->route == match->data) /* the handler is called again after a wait */
        return true;
    p = mk_request_alloc(request, sizeof *p + size);
    if (!p)
        return false;
    *p = (struct params){.route = match->data, .n = match->n};
    memcpy(p->at, match->params, size);
    return mk_request_attach(request, &mk_app_routes_plugin, p, NULL) == 0;
}

/* Does the response consist of bytes in memory, rather than of a file or a source? */
static bool has_text_body(const struct mk_response *response)
{
    const struct mk_response_body *body = &response->content;
    return body->form == MK_RESPONSE_BODY_PARTS && body->parts && !body->origin && body->length > 0;
}

static enum mk_verdict fail_no_memory(struct mk_response *response)
{
    mk_response_set_status(response, 503);
    return MK_ERROR;
}

static enum mk_verdict call_route_handler(const struct mk_app_routes *program, struct mk_request *request,
                                          struct mk_response *response, const struct mk_router_match *match)
{
    const struct route *r = match->data;
    if (match->n && !store_params(request, match))
        return fail_no_memory(response);
    request->route = &r->shown;
    enum mk_verdict v = r->fn(request, response, r->data);
    if (v == MK_DONE && program->default_type.p && has_text_body(response) &&
        mk_response_add_default(response, MK_STR("Content-Type"), program->default_type))
        return fail_no_memory(response);
    return v;
}

/* `data` is the scope of the host. */
static enum mk_verdict handle_request(struct mk_request *request, struct mk_response *response, void *data)
{
    struct mk_router_match match;
    for (const struct mk_app_routes_scope *s = data; s; s = s->behind)
        switch (
            mk_router_find(s->router, mk_request_method_name(request), mk_request_path(request), &match)) {
        case MK_ROUTER_FOUND:
            return call_route_handler(s->program, request, response, &match);
        case MK_ROUTER_NO_METHOD:
            add_allowed_methods(request, s->router, match.allowed);
            break;
        case MK_ROUTER_NO_PATH:
            break;
        }
    return MK_NEXT;
}

const struct mk_router_param *mk_server_param(const struct mk_request *request, const char *name)
{
    const struct params *p = request ? mk_request_attached(request, &mk_app_routes_plugin) : NULL;
    mk_str expected = mk_str_from_c(name);
    for (size_t i = 0; p && i < p->n; i++)
        if (mk_str_eq(p->at[i].name, expected))
            return &p->at[i];
    return NULL;
}

/* ---- Plugin callbacks ---- */

static int load_routes(struct mk_config *c, void **data)
{
    const struct mk_app_routes *program = c->generation->embedding->ctx;
    *data = c->generation->embedding->ctx;
    if (program->spools_bodies)
        mk_config_enable_body_spool(c);
    return 0;
}

/* Returns the number of the host among the hosts of the program; 0: the host is from the configuration
 * file. */
static unsigned app_vhost_number(const struct mk_config_generation *g, const struct mk_vhost_config *site)
{
    unsigned n = 1;
    if (!mk_str_eq(site->section->at.file, MK_EMBEDDING_NAME))
        return 0;
    for (const struct mk_vhost_config *s = g->sites; s != site; s = s->next)
        n += mk_str_eq(s->section->at.file, MK_EMBEDDING_NAME);
    return n;
}

/* Inserts the route before the configured routes. */
static int prepend_route(struct mk_config *c, struct mk_vhost *h, struct mk_app_routes_scope *scope)
{
    struct mk_route *all = mk_config_alloc(c, (h->n_routes + 1) * sizeof *all);
    if (!all)
        return -ENOMEM;
    if (h->n_routes)
        memcpy(all + 1, h->routes, h->n_routes * sizeof *all);
    all[0] = (struct mk_route){.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL},
                               .handler = &handler,
                               .data = scope,
                               .plugin = &mk_app_routes_plugin,
                               .written = MK_STR("of the program")};
    h->routes = all;
    h->n_routes++;
    return 0;
}

static int bind_vhost(struct mk_config *c, struct mk_vhost *h, void *data, void **host_data)
{
    unsigned number = app_vhost_number(c->generation, c->site);
    struct mk_app_routes_scope *scope = find_vhost_scope(data, number);
    const struct mk_app_routes *p = data;
    if (!mk_app_certificates_use(&p->certificates, c, number))
        return -ENOMEM;
    if (!scope)
        scope = find_vhost_scope(data, 0);
    *host_data = scope;
    return scope ? prepend_route(c, h, scope) : 0;
}

const struct mk_plugin mk_app_routes_plugin = {MK_PLUGIN_HEAD, .name = "program",
                                               .help = "The routes of the program that embeds the server.",
                                               .load = load_routes, .host = bind_vhost};

/* ---- Accept filter ---- */

static int load_accept_filter(struct mk_config *c, void **data)
{
    struct mk_app_routes *program = c->generation->embedding->ctx;
    *data = &program->accept_filter;
    return 0;
}

static enum mk_verdict run_accept_filter(struct mk_conn *connection, void *data)
{
    const struct mk_app_accept_filter *f = data;
    return f->accepts(mk_conn_client_addr(connection), f->ctx) ? MK_NEXT : MK_ERROR;
}

const struct mk_plugin mk_app_accept_plugin = {MK_PLUGIN_HEAD, .name = "program-accept",
                                               .help =
                                                   "The accept filter of the program that embeds the server.",
                                               .load = load_accept_filter, .on_accept = run_accept_filter};

/* ---- Error handler ---- */

static int load_error_handler(struct mk_config *c, void **data)
{
    struct mk_app_routes *program = c->generation->embedding->ctx;
    *data = &program->error_handler;
    return 0;
}

static enum mk_verdict run_error_handler(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct mk_app_error_handler *h = data;
    return h->fn(request, response, h->data);
}

const struct mk_plugin mk_app_error_plugin = {MK_PLUGIN_HEAD, .name = "program-errors",
                                              .help =
                                                  "The error handler of the program that embeds the server.",
                                              .load = load_error_handler, .on_error = run_error_handler};
