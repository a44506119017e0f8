/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a server as known to one worker. Names are resolved in threads, and again after
 * ResolveTTL. */
#ifndef MK_UPSTREAM_RESOLVER_H
#define MK_UPSTREAM_RESOLVER_H

#include "os/sockaddr.h"
#include "upstream/server.h"

enum { MK_ADDRESSES_MAX = 8 };

struct mk_dns_lookup;
struct mk_thread_pool;

struct mk_resolver {
    const struct mk_upstream_server *server;
    struct mk_worker *worker;
    struct mk_thread_pool *threads;           /* threads that resolve the name */
    void (*on_change)(struct mk_resolver *n); /* called when a lookup has ended */
    struct mk_sockaddr addresses[MK_ADDRESSES_MAX];
    /* For each address: the time until which it is avoided, because connecting to it has failed. */
    uint64_t avoided_until_ms[MK_ADDRESSES_MAX];
    unsigned n;
    int error;        /* why no address was found: -EHOSTUNREACH; -EPERM: the upstream allows none of them */
    unsigned version; /* incremented when the name loses an address */
    unsigned next;    /* next address to try */
    uint64_t fresh_until_ms;      /* 0: never resolved */
    struct mk_dns_lookup *lookup; /* lookup in progress; NULL: none */
    bool is_fixed;                /* the server is an address or a unix socket, not a name */
};

void mk_resolver_init(struct mk_resolver *n, const struct mk_upstream_server *server,
                      struct mk_worker *worker, void (*on_change)(struct mk_resolver *n));
/* A lookup in progress continues, but its result is discarded. */
void mk_resolver_fini(struct mk_resolver *n);
/* Resolves the name if it was never resolved or its addresses have expired. Never calls on_change()
 * synchronously. */
void mk_resolver_refresh(struct mk_resolver *n);
/* Is a lookup in progress, and no address known before it ends? It is the first lookup or, for the host of a
 * dynamic upstream, also one after a failure. */
bool mk_resolver_is_pending(const struct mk_resolver *n);
/* The next address (round robin) to which connecting has not failed recently, or else any address; NULL:
 * none. */
const struct mk_sockaddr *mk_resolver_next_addr(struct mk_resolver *n);
/* Marks the address as failed. True: another address can still be tried. */
bool mk_resolver_mark_failed(struct mk_resolver *n, const struct mk_sockaddr *at);
/* Is this one of the server's addresses? */
bool mk_resolver_has_addr(const struct mk_resolver *n, const struct mk_sockaddr *at);

/* Parses a server given as address and port, or as a unix socket path. False: it is a name. */
bool mk_resolver_parse_server(const struct mk_upstream_server *server, struct mk_sockaddr *out);
/* Parses ADDRESS:PORT or [ADDRESS6]:PORT. */
bool mk_resolver_parse_addr(mk_str text, struct mk_sockaddr *out);

#endif
