/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a server, as one worker knows them: of a name they are looked up aside, and again when
 * they are old. */
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
    struct mk_thread_pool *threads;           /* that look it up */
    void (*on_change)(struct mk_resolver *n); /* a lookup has ended */
    struct mk_sockaddr addresses[MK_ADDRESSES_MAX];
    uint64_t avoided_until_ms[MK_ADDRESSES_MAX]; /* those where connecting failed */
    unsigned n;
    unsigned version;             /* grows when the name loses an address */
    unsigned next;                /* the address to try next */
    uint64_t fresh_until_ms;      /* 0: never looked up */
    struct mk_dns_lookup *lookup; /* under way; NULL: none */
    bool is_fixed;                /* an address or a unix socket, no name */
};

void mk_resolver_init(struct mk_resolver *n, const struct mk_upstream_server *server,
                      struct mk_worker *worker, void (*on_change)(struct mk_resolver *n));
/* A lookup under way goes on by itself. */
void mk_resolver_fini(struct mk_resolver *n);
/* Looks the name up if that is due. Never calls on_change() from inside. */
void mk_resolver_refresh(struct mk_resolver *n);
/* Is the first lookup still under way? */
bool mk_resolver_is_pending(const struct mk_resolver *n);
/* The next address, in turn, of those where connecting has not failed lately, or else of all; NULL if there
 * is none. */
const struct mk_sockaddr *mk_resolver_next_addr(struct mk_resolver *n);
/* Connecting to this address failed. Is there another one where it has not? */
bool mk_resolver_mark_failed(struct mk_resolver *n, const struct mk_sockaddr *at);
/* Is this one of the addresses? */
bool mk_resolver_has_addr(const struct mk_resolver *n, const struct mk_sockaddr *at);

/* Reads an address without a name: host and port, or the path of a unix socket. False: it is a name. */
bool mk_resolver_parse_server(const struct mk_upstream_server *server, struct mk_sockaddr *out);
/* Reads ADDRESS:PORT or [ADDRESS6]:PORT. */
bool mk_resolver_parse_addr(mk_str text, struct mk_sockaddr *out);

#endif
