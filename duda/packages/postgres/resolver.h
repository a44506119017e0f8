/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the servers of a section. libpq would look names up in the loop: it gets each address beside
 * its name, which certificates are still compared with. */
#ifndef DUDA_POSTGRES_RESOLVER_H
#define DUDA_POSTGRES_RESOLVER_H

#include <monkey/worker.h>

enum { POSTGRES_HOSTS_MAX = 16, POSTGRES_ADDRESSES_MAX = 8 };

/* A server, as the configuration names it. Absent texts are those of libpq. A NUL follows each. */
struct postgres_host {
    mk_str host, address, port;
    bool is_name; /* the address has to be looked up */
};

struct postgres_host_list {
    struct postgres_host v[POSTGRES_HOSTS_MAX];
    unsigned n; /* 0: libpq is told nothing beside Server */
    bool has_names, has_ports;
};

struct postgres_lookup;

/* In a worker. The texts are lists with commas, as libpq wants them. */
struct postgres_resolver {
    const struct postgres_host_list *places;
    struct mk_worker *worker;
    void (*on_resolved)(void *ctx); /* a search has ended */
    void *ctx;
    unsigned first; /* the place to begin with */
    struct mk_buf hosts, addresses, ports;
    char why[200];                  /* nothing was found */
    struct postgres_lookup *lookup; /* under way */
};

void postgres_resolver_init(struct postgres_resolver *h, struct mk_worker *w,
                            const struct postgres_host_list *places);
void postgres_resolver_fini(struct postgres_resolver *h);
/* 0: the texts are there. -EAGAIN: on_found will be called, and then the texts are there, or h->why. Else
 * they are not. */
int postgres_resolver_resolve(struct postgres_resolver *h);
/* The first server of a search does not answer: the next one begins with another server. */
void postgres_resolver_rotate(struct postgres_resolver *h, unsigned first);

#endif
