/* SPDX-License-Identifier: Apache-2.0 */
#include "hosts.h"

#include <errno.h>
#include <monkey/mem.h>
#include <netdb.h>
#include <stdio.h>

enum { LIST_MAX = 64 * 1024 };

/* Belongs to the thread that looks up, then to the worker. */
struct postgres_lookup {
    struct postgres_hosts *owner; /* NULL: the worker has ended */
    const struct postgres_places *places;
    unsigned first, n; /* n: that were found */
    struct mk_buf hosts, addresses, ports;
    char why[200];
};

static void add(struct postgres_lookup *l, const struct postgres_place *p, mk_str address)
{
    const char *comma = l->n++ ? "," : "";
    mk_buf_addf(&l->hosts, "%s%.*s", comma, MK_STR_ARG(p->host));
    mk_buf_addf(&l->addresses, "%s%.*s", comma, MK_STR_ARG(address));
    mk_buf_addf(&l->ports, "%s%.*s", comma, MK_STR_ARG(p->port));
}

static int ask(const char *name, struct addrinfo **found)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    int e = getaddrinfo(name, NULL, &hints, found);
    if (!e)
        return 0;
    hints.ai_flags = 0; /* a machine that has no address but loopback's knows no family to ask for */
    return getaddrinfo(name, NULL, &hints, found);
}

static void look_up(struct postgres_lookup *l, const struct postgres_place *p)
{
    struct addrinfo *found = NULL;
    unsigned n = 0;
    int e = ask(p->host.p, &found);
    if (e) {
        snprintf(l->why, sizeof l->why, "%.100s: %s", p->host.p, gai_strerror(e));
        return;
    }
    for (const struct addrinfo *a = found; a && n < POSTGRES_ADDRESSES_MAX; a = a->ai_next) {
        char text[NI_MAXHOST];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST))
            continue;
        add(l, p, mk_str_from_c(text));
        n++;
    }
    freeaddrinfo(found);
}

/* In a thread, if there are names. */
static void work(void *ctx)
{
    struct postgres_lookup *l = ctx;
    const struct postgres_places *all = l->places;
    for (unsigned i = 0; i < all->n; i++) {
        const struct postgres_place *p = &all->v[(l->first + i) % all->n];
        if (p->is_name)
            look_up(l, p);
        else
            add(l, p, p->address);
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

static void swap(struct mk_buf *a, struct mk_buf *b)
{
    struct mk_buf c = *a;
    *a = *b;
    *b = c;
}

/* Their texts become those of the owner. 0, -ENOENT, -ENOMEM. */
static int take(struct postgres_lookup *l)
{
    struct postgres_hosts *h = l->owner;
    bool failed = l->hosts.failed || l->addresses.failed || l->ports.failed;
    snprintf(h->why, sizeof h->why, "%s", failed ? "out of memory" : l->n ? "" : l->why);
    swap(&h->hosts, &l->hosts);
    swap(&h->addresses, &l->addresses);
    swap(&h->ports, &l->ports);
    free_lookup(l);
    return failed ? -ENOMEM : h->why[0] ? -ENOENT : 0;
}

static void done(void *ctx)
{
    struct postgres_lookup *l = ctx;
    struct postgres_hosts *h = l->owner;
    if (!h) {
        free_lookup(l);
        return;
    }
    h->lookup = NULL;
    (void)take(l);
    h->on_found(h->ctx);
}

static int begin(struct postgres_hosts *h)
{
    struct postgres_lookup *l = mk_mem_zalloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->owner = h;
    l->places = h->places;
    l->first = h->first;
    l->hosts = l->addresses = l->ports = mk_buf_growing(LIST_MAX);
    if (!h->places->has_names) {
        work(l);
        return take(l);
    }
    int e = mk_worker_run_aside(h->worker, work, done, l);
    if (e) {
        free_lookup(l);
        return -ENOMEM;
    }
    h->lookup = l;
    return -EAGAIN;
}

int postgres_hosts_find(struct postgres_hosts *h)
{
    if (h->lookup)
        return -EAGAIN;
    int e = h->places->n ? begin(h) : 0;
    if (e == -ENOMEM)
        snprintf(h->why, sizeof h->why, "out of memory");
    return e;
}

void postgres_hosts_turn(struct postgres_hosts *h, unsigned first)
{
    if (h->places->n && h->first == first)
        h->first = (h->first + 1) % h->places->n;
}

void postgres_hosts_init(struct postgres_hosts *h, struct mk_worker *w, const struct postgres_places *places)
{
    h->worker = w;
    h->places = places;
    h->hosts = h->addresses = h->ports = mk_buf_growing(LIST_MAX);
}

void postgres_hosts_fini(struct postgres_hosts *h)
{
    if (h->lookup)
        h->lookup->owner = NULL;
    mk_buf_free(&h->hosts);
    mk_buf_free(&h->addresses);
    mk_buf_free(&h->ports);
}
