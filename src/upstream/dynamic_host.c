/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/dynamic_host.h"

#include "upstream/backend_set.h"

struct dynamic_host {
    struct mk_list link; /* in mk_pool.hosts, least recently used first */
    struct mk_upstream upstream;
    struct mk_upstream_server server;
    struct mk_backend backend;
    struct mk_backend_set set;
    char name[];
};

static bool host_is_in_use(const struct dynamic_host *h)
{
    return h->set.n_conns > h->backend.n_idle;
}

static void free_host(struct mk_pool *p, struct dynamic_host *h)
{
    mk_backend_close(p, &h->backend);
    mk_list_remove(&h->link);
    mk_mem_free(h);
}

static struct dynamic_host *new_host(struct mk_pool *p, const struct mk_upstream *u, mk_str name,
                                     uint16_t port)
{
    struct dynamic_host *h = mk_mem_zalloc(1, sizeof *h + name.len + 1);
    if (!h)
        return NULL;
    memcpy(h->name, name.p, name.len);
    h->upstream = *u;
    h->upstream.servers = &h->server;
    h->server = u->servers[0]; /* its slot in the statistics */
    h->server.upstream = &h->upstream;
    h->server.name = h->server.host = mk_str_of(h->name, name.len);
    h->server.port = port;
    h->server.shared = NULL; /* the health of one host says nothing about the upstream */
    h->backend.total = &p->sets[u->index].backends[0];
    mk_list_init(&h->link);
    if (mk_backend_set_open(p, &h->set, &h->upstream, &h->backend))
        return h;
    free_host(p, h);
    return NULL;
}

static bool is_host(const struct dynamic_host *h, const struct mk_upstream *u, mk_str name, uint16_t port)
{
    return h->upstream.index == u->index && h->server.port == port && mk_str_eq(h->server.host, name);
}

struct mk_backend_set *mk_dynamic_host_find(struct mk_pool *p, const struct mk_upstream *u, mk_str name,
                                            uint16_t port)
{
    struct dynamic_host *found = NULL, *unused = NULL;
    unsigned n = 0;
    MK_LIST_EACH_SAFE (at, &p->hosts) {
        struct dynamic_host *h = MK_LIST_ENTRY(at, struct dynamic_host, link);
        if (is_host(h, u, name, port))
            found = h;
        if (!unused && h->upstream.index == u->index && !host_is_in_use(h))
            unused = h;
        n += h->upstream.index == u->index;
    }
    if (!found && n >= u->max_hosts) {
        if (!unused)
            return NULL;
        free_host(p, unused);
    }
    if (!found)
        found = new_host(p, u, name, port);
    if (!found)
        return NULL;
    mk_list_remove(&found->link);
    mk_list_add_last(&p->hosts, &found->link);
    return &found->set;
}

void mk_dynamic_host_each(struct mk_pool *p, void (*fn)(struct mk_backend_set *g))
{
    MK_LIST_EACH_SAFE (at, &p->hosts)
        fn(&MK_LIST_ENTRY(at, struct dynamic_host, link)->set);
}

void mk_dynamic_host_free_all(struct mk_pool *p)
{
    MK_LIST_EACH_SAFE (at, &p->hosts)
        free_host(p, MK_LIST_ENTRY(at, struct dynamic_host, link));
}
