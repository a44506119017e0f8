/* SPDX-License-Identifier: Apache-2.0 */
#include "resolver.h"

#include <errno.h>
#include <monkey/mem.h>
#include <netdb.h>
#include <stdio.h>

enum { LIST_MAX = 64 * 1024 };

/* A lookup of the host names. The thread owns it until the lookup ends, and then the worker does. */
struct postgres_lookup {
    struct postgres_resolver *owner; /* NULL: the worker has stopped */
    const struct postgres_host_list *host_list;
    unsigned first, n; /* n: number of hosts found */
    struct mk_buf hosts, addresses, ports;
    char error_text[200];
};

static void append_address(struct postgres_lookup *l, const struct postgres_host *p, mk_str address)
{
    const char *comma = l->n++ ? "," : "";
    mk_buf_addf(&l->hosts, "%s%.*s", comma, MK_STR_ARG(p->host));
    mk_buf_addf(&l->addresses, "%s%.*s", comma, MK_STR_ARG(address));
    mk_buf_addf(&l->ports, "%s%.*s", comma, MK_STR_ARG(p->port));
}

static int resolve_name(const char *name, struct addrinfo **found)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    int e = getaddrinfo(name, NULL, &hints, found);
    if (!e)
        return 0;
    hints.ai_flags = 0; /* on a machine with only loopback addresses, AI_ADDRCONFIG would find no address */
    return getaddrinfo(name, NULL, &hints, found);
}

static void resolve_host(struct postgres_lookup *l, const struct postgres_host *p)
{
    struct addrinfo *found = NULL;
    unsigned n = 0;
    int e = resolve_name(p->host.p, &found);
    if (e) {
        snprintf(l->error_text, sizeof l->error_text, "%.100s: %s", p->host.p, gai_strerror(e));
        return;
    }
    for (const struct addrinfo *a = found; a && n < POSTGRES_ADDRESSES_MAX; a = a->ai_next) {
        char text[NI_MAXHOST];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST))
            continue;
        append_address(l, p, mk_str_from_c(text));
        n++;
    }
    freeaddrinfo(found);
}

/* Runs in a thread if there are host names to resolve; otherwise in the worker. */
static void run_lookup(void *ctx)
{
    struct postgres_lookup *l = ctx;
    const struct postgres_host_list *all = l->host_list;
    for (unsigned i = 0; i < all->n; i++) {
        const struct postgres_host *p = &all->v[(l->first + i) % all->n];
        if (p->is_name)
            resolve_host(l, p);
        else
            append_address(l, p, p->address);
    }
    mk_buf_add_char(&l->hosts, 0);
    mk_buf_add_char(&l->addresses, 0);
    mk_buf_add_char(&l->ports, 0);
}

static void free_lookup(struct postgres_lookup *l)
{
    mk_buf_free(&l->hosts);
    mk_buf_free(&l->addresses);
    mk_buf_free(&l->ports);
    mk_mem_free(l);
}

static void swap_buffers(struct mk_buf *a, struct mk_buf *b)
{
    struct mk_buf c = *a;
    *a = *b;
    *b = c;
}

/* Moves the lists to the owner. Returns 0, -ENOENT if no host was found, or -ENOMEM. */
static int take_lookup_result(struct postgres_lookup *l)
{
    struct postgres_resolver *h = l->owner;
    bool failed = l->hosts.failed || l->addresses.failed || l->ports.failed;
    snprintf(h->error_text, sizeof h->error_text, "%s", failed ? "out of memory" : l->n ? "" : l->error_text);
    swap_buffers(&h->hosts, &l->hosts);
    swap_buffers(&h->addresses, &l->addresses);
    swap_buffers(&h->ports, &l->ports);
    free_lookup(l);
    return failed ? -ENOMEM : h->error_text[0] ? -ENOENT : 0;
}

static void on_lookup_done(void *ctx)
{
    struct postgres_lookup *l = ctx;
    struct postgres_resolver *h = l->owner;
    if (!h) {
        free_lookup(l);
        return;
    }
    h->lookup = NULL;
    (void)take_lookup_result(l);
    h->on_resolved(h->ctx);
}

static int start_lookup(struct postgres_resolver *h)
{
    struct postgres_lookup *l = mk_mem_zalloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->owner = h;
    l->host_list = h->host_list;
    l->first = h->first;
    l->hosts = l->addresses = l->ports = mk_buf_growing(LIST_MAX);
    if (!h->host_list->has_names) {
        run_lookup(l);
        return take_lookup_result(l);
    }
    int e = mk_worker_offload(h->worker, run_lookup, on_lookup_done, l);
    if (e) {
        free_lookup(l);
        return -ENOMEM;
    }
    h->lookup = l;
    return -EAGAIN;
}

int postgres_resolver_resolve(struct postgres_resolver *h)
{
    if (h->lookup)
        return -EAGAIN;
    int e = h->host_list->n ? start_lookup(h) : 0;
    if (e == -ENOMEM)
        snprintf(h->error_text, sizeof h->error_text, "out of memory");
    return e;
}

void postgres_resolver_rotate(struct postgres_resolver *h, unsigned first)
{
    if (h->host_list->n && h->first == first)
        h->first = (h->first + 1) % h->host_list->n;
}

void postgres_resolver_init(struct postgres_resolver *h, struct mk_worker *w,
                            const struct postgres_host_list *host_list)
{
    h->worker = w;
    h->host_list = host_list;
    h->hosts = h->addresses = h->ports = mk_buf_growing(LIST_MAX);
}

void postgres_resolver_fini(struct postgres_resolver *h)
{
    if (h->lookup)
        h->lookup->owner = NULL;
    mk_buf_free(&h->hosts);
    mk_buf_free(&h->addresses);
    mk_buf_free(&h->ports);
}
