/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the servers of a section. libpq would block the loop with a DNS lookup, so it gets each address in
 * addition to the host name, which it still checks against certificates. */
#ifndef DUDA_POSTGRES_RESOLVER_H
#define DUDA_POSTGRES_RESOLVER_H

#include <monkey/worker.h>

enum { POSTGRES_HOSTS_MAX = 16, POSTGRES_ADDRESSES_MAX = 8 };

/* A server, as configured. Strings are NUL-terminated; if absent, libpq's defaults apply. */
struct postgres_host {
    mk_str host, address, port;
    bool is_name; /* needs a DNS lookup */
};

struct postgres_host_list {
    struct postgres_host v[POSTGRES_HOSTS_MAX];
    unsigned n; /* 0: libpq gets only the connection string in Server */
    bool has_names, has_ports;
};

struct postgres_lookup;

/* The state of a worker. The strings are comma-separated lists, as libpq expects them. */
struct postgres_resolver {
    const struct postgres_host_list *host_list;
    struct mk_worker *worker;
    void (*on_resolved)(void *ctx); /* called when a lookup has ended */
    void *ctx;
    unsigned first; /* index of the first host to try */
    struct mk_buf hosts, addresses, ports;
    char error_text[200];           /* error text of a failed lookup */
    struct postgres_lookup *lookup; /* lookup in progress */
};

void postgres_resolver_init(struct postgres_resolver *h, struct mk_worker *w,
                            const struct postgres_host_list *host_list);
void postgres_resolver_fini(struct postgres_resolver *h);
/* Returns 0 if the lists are ready, or -EAGAIN if it has started a lookup: on_resolved() is then called when
 * either the lists are ready or h->error_text is set. After any other error, there are no lists. */
int postgres_resolver_resolve(struct postgres_resolver *h);
/* Makes the next lookup start with another server, because the first server of the current lists does not
 * respond. */
void postgres_resolver_rotate(struct postgres_resolver *h, unsigned first);

#endif
