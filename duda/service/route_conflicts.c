/* SPDX-License-Identifier: Apache-2.0 */
#include "service/route_conflicts.h"

#include <errno.h>

enum { TEXT = MK_ROUTER_PATTERN_MAX + 1, WHERE = 512 };

/* The routes of all services on one virtual host of the configuration, for one host of DUDA_HOST(). */
struct duda_route_conflicts {
    struct duda_route_conflicts *next;
    const struct mk_vhost *host;
    mk_str name; /* name in DUDA_HOST(); empty: any host */
    struct mk_router *router;
};

static void free_router(void *data)
{
    mk_router_free(data);
}

static struct mk_router *get_or_create_router(struct mk_config *config, struct duda_route_conflicts **all,
                                              const struct mk_vhost *host, mk_str name)
{
    for (struct duda_route_conflicts *o = *all; o; o = o->next)
        if (o->host == host && mk_str_eq_nocase(o->name, name))
            return o->router;
    struct duda_route_conflicts *o = mk_config_alloc(config, sizeof *o);
    struct mk_router *router = o ? mk_router_new() : NULL;
    if (!router || !mk_config_add_cleanup(config, free_router, router)) {
        mk_router_free(router);
        return NULL;
    }
    *o = (struct duda_route_conflicts){.next = *all, .host = host, .name = name, .router = router};
    *all = o;
    return router;
}

static int add_route_entry(struct mk_config *config, struct mk_router *router,
                           const struct duda_service *service, const struct duda_route_entry *entry)
{
    char text[TEXT], position[WHERE];
    const struct duda_route *r = entry->route;
    struct mk_buf t = mk_buf_fixed(text, sizeof text), w = mk_buf_fixed(position, sizeof position);
    if (!mk_str_eq(mk_str_from_c(r->method), MK_STR("*")))
        mk_buf_addf(&t, "%s ", r->method);
    mk_buf_add(&t, entry->pattern);
    mk_buf_addf(&w, "%s() of the service %s, %s:%d", r->name, service->name, r->file, r->line);
    int e =
        mk_router_add(router, mk_buf_str(&t), (void *)(uintptr_t)r, w.failed ? MK_STR_NULL : mk_buf_str(&w));
    if (e != -EEXIST)
        return e == -ENOMEM ? e : 0; /* other errors were reported when the table was built */
    mk_str error = mk_router_error(router);
    mk_config_error(config, NULL, NULL, "%s:%d: %.*s", r->file, r->line, MK_STR_ARG(error));
    mk_config_hint(config,
                   "give each service separate paths: `/shop/* %s` in [ROUTES], or a prefix in its table",
                   service->name);
    return e;
}

bool duda_route_conflicts_add(struct mk_config *config, struct duda_route_conflicts **all,
                              const struct mk_vhost *host, const struct duda_service *service,
                              const struct duda_route_table *table)
{
    const struct duda_route_entry *entry;
    bool ok = true;
    for (size_t i = 0; (entry = duda_route_table_at(table, i)); i++) {
        struct mk_router *router = get_or_create_router(config, all, host, entry->host);
        if (!router)
            return false;
        ok = add_route_entry(config, router, service, entry) == 0 && ok;
    }
    return ok;
}
