/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/program.h"

#include "base/mem.h"
#include "http/method.h"
#include "http/pattern.h"
#include "setup/config.h"

struct mk_program_route {
    struct mk_program_route *next;
    unsigned host;
    enum mk_method method; /* MK_METHOD_UNKNOWN: all */
    struct mk_pattern pattern;
    mk_server_fn *fn;
    void *data;
    char text[];
};

/* The routes of one host. */
struct routes {
    const struct mk_program *program;
    unsigned host;
};

mk_err mk_program_add(struct mk_program *p, mk_str what, unsigned host, mk_server_fn *fn, void *data)
{
    mk_str rest = what, first = mk_str_word(&rest), path = mk_str_trim(rest);
    bool has_method = path.len > 0;
    struct mk_program_route *r = mk_mem_zalloc(1, sizeof *r + what.len + 1);
    if (!r)
        return -ENOMEM;
    if (!has_method)
        path = first;
    *r = (struct mk_program_route){.host = host, .fn = fn, .data = data};
    memcpy(r->text, path.p ? path.p : "", path.len);
    r->method = has_method ? mk_method_find(first) : MK_METHOD_UNKNOWN;
    if ((has_method && !r->method) || !mk_pattern_set(&r->pattern, mk_str_of(r->text, path.len))) {
        mk_mem_free(r);
        return -EINVAL;
    }
    if (p->last)
        p->last->next = r;
    else
        p->first = r;
    p->last = r;
    return 0;
}

void mk_program_free(struct mk_program *p)
{
    while (p->first) {
        struct mk_program_route *r = p->first;
        p->first = r->next;
        mk_mem_free(r);
    }
    p->last = NULL;
}

/* ---- Answering ---- */

static bool takes(const struct mk_program_route *r, const struct mk_request *request)
{
    enum mk_method m = mk_request_method(request);
    bool fits = !r->method || r->method == m || (r->method == MK_METHOD_GET && m == MK_METHOD_HEAD);
    return fits && mk_pattern_matches(&r->pattern, mk_request_path(request));
}

static enum mk_verdict answer(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct routes *routes = data;
    for (const struct mk_program_route *r = routes->program->first; r; r = r->next)
        if ((r->host == 0 || r->host == routes->host) && takes(r, request))
            return r->fn(request, response, r->data);
    return MK_NEXT;
}

static const struct mk_handler handler = {.name = "program", .handle = answer};

/* ---- Being loaded ---- */

static int load(struct mk_config *c, void **data)
{
    *data = c->generation->embedding->ctx;
    return 0;
}

/* Its number among the hosts of the program; 0: it is of the file. */
static unsigned number_of(const struct mk_generation *g, const struct mk_site *site)
{
    mk_str own = MK_STR("the program");
    unsigned n = 0;
    for (const struct mk_site *s = g->sites; s != site; s = s->next)
        n += mk_str_eq(s->section->at.file, own);
    return mk_str_eq(site->section->at.file, own) ? n + 1 : 0;
}

static bool has_routes(const struct mk_program *p, unsigned host)
{
    const struct mk_program_route *r = p->first;
    while (r && r->host != 0 && r->host != host)
        r = r->next;
    return r != NULL;
}

/* Before the routes of the configuration. */
static int lead(struct mk_config *c, struct mk_host *h, struct routes *routes)
{
    struct mk_route *all = mk_config_alloc(c, (h->n_routes + 1) * sizeof *all);
    if (!all)
        return -ENOMEM;
    if (h->n_routes)
        memcpy(all + 1, h->routes, h->n_routes * sizeof *all);
    all[0] = (struct mk_route){.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL},
                               .handler = &handler,
                               .data = routes,
                               .plugin = &mk_program_plugin,
                               .written = MK_STR("of the program")};
    h->routes = all;
    h->n_routes++;
    return 0;
}

static int host(struct mk_config *c, struct mk_host *h, void *data, void **host_data)
{
    const struct mk_program *p = data;
    unsigned number = number_of(c->generation, c->site);
    if (!has_routes(p, number))
        return 0;
    struct routes *routes = mk_config_alloc(c, sizeof *routes);
    if (!routes)
        return -ENOMEM;
    *routes = (struct routes){.program = p, .host = number};
    *host_data = routes;
    return lead(c, h, routes);
}

const struct mk_plugin mk_program_plugin = {MK_PLUGIN_HEAD, .name = "program",
                                            .help = "The routes of the program around the server.",
                                            .load = load, .host = host};
