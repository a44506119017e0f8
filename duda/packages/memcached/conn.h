/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's connection to one server. It pipelines the commands of all handlers. */
#ifndef DUDA_MEMCACHED_CONN_H
#define DUDA_MEMCACHED_CONN_H

#include <duda/memcached.h>

#include "common/package_stream.h"
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

/* A command and its reply callback, on the heap. The connection frees it after on_reply(). */
struct memcached_call {
    struct package_request request; /* must be first: a request is cast to its call */
    /* `reply` is NULL on an error. on_reply itself is NULL if the handler no longer waits. */
    void (*on_reply)(void *ctx, const struct memcached_reply *reply, int error);
    void *ctx;
    struct mk_buf bytes;
};

struct memcached_conn {
    struct package_stream stream; /* must be first: a package_conn is cast to its memcached_conn */
    const struct memcached_settings *settings;
    struct mk_buf in; /* an incomplete reply */
};

int memcached_conn_open(struct memcached_conn *s, struct mk_worker *w,
                        const struct memcached_settings *settings, struct mk_upstream *upstream);
void memcached_conn_close(struct memcached_conn *s);
/* Takes ownership of the call and returns 0; otherwise returns -EBUSY, or the error that makes the server
 * unavailable. */
int memcached_conn_send(struct memcached_conn *s, struct memcached_call *call);
void memcached_call_free(struct memcached_call *call);

#endif
