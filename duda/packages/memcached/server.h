/* SPDX-License-Identifier: Apache-2.0 */
/* One server as a worker has it: a connection, and the commands of all handlers: sent together, answered in
 * their order. */
#ifndef DUDA_MEMCACHED_SERVER_H
#define DUDA_MEMCACHED_SERVER_H

#include <duda/memcached.h>

#include "conn/package_stream.h"
#include "hash_ring.h"
#include "reply.h"

struct memcached_settings {
    mk_str name, servers;
    uint32_t meter;
    struct mk_upstream *upstreams[MEMCACHED_SERVERS_MAX];
    unsigned n;
    const struct memcached_hash_ring_point *points;
    unsigned waiting_max;
    uint32_t timeout_ms;
    uint64_t value_max;
};

/* A command, and who waits for its reply. On the heap; freed by the server after on_reply. */
struct memcached_call {
    struct package_request request; /* the first: a request is its job */
    /* reply is NULL if there is none, because of the error. NULL: the handler does not wait any more. */
    void (*on_reply)(void *ctx, const struct memcached_reply *reply, int error);
    void *ctx;
    struct mk_buf bytes;
};

struct memcached_server {
    struct package_stream stream; /* the first: a link is its server */
    const struct memcached_settings *settings;
    struct mk_buf in; /* of a reply that is not complete */
};

int memcached_server_open(struct memcached_server *s, struct mk_worker *w,
                          const struct memcached_settings *settings, struct mk_upstream *upstream);
void memcached_server_close(struct memcached_server *s);
/* Takes the job if it is 0; else -EBUSY or the error because of which the server is out of reach. */
int memcached_server_send(struct memcached_server *s, struct memcached_call *call);
void memcached_call_free(struct memcached_call *call);

#endif
