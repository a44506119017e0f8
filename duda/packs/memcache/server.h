/* SPDX-License-Identifier: Apache-2.0 */
/* One server as a worker has it: a connection, and the commands of all handlers: sent together, answered in
 * their order. */
#ifndef DUDA_MEMCACHE_SERVER_H
#define DUDA_MEMCACHE_SERVER_H

#include <duda/memcache.h>

#include "link/stream.h"
#include "reply.h"
#include "ring.h"

struct memcache_settings {
    mk_str name, servers;
    uint32_t meter;
    struct mk_upstream *upstreams[MEMCACHE_SERVERS_MAX];
    unsigned n;
    const struct memcache_point *points;
    unsigned waiting_max;
    uint32_t timeout_ms;
    uint64_t value_max;
};

/* A command, and who waits for its reply. On the heap; freed by the server after on_reply. */
struct memcache_job {
    struct pack_request request; /* the first: a request is its job */
    /* reply is NULL if there is none, because of the error. NULL: the handler does not wait any more. */
    void (*on_reply)(void *ctx, const struct memcache_reply *reply, int error);
    void *ctx;
    struct mk_buf bytes;
};

struct memcache_server {
    struct pack_stream stream; /* the first: a link is its server */
    const struct memcache_settings *settings;
    struct mk_buf in; /* of a reply that is not complete */
};

int memcache_server_open(struct memcache_server *s, struct mk_worker *w,
                         const struct memcache_settings *settings, struct mk_upstream *upstream);
void memcache_server_close(struct memcache_server *s);
/* Takes the job if it is 0; else -EBUSY or the error because of which the server is out of reach. */
int memcache_server_add(struct memcache_server *s, struct memcache_job *job);
void memcache_job_free(struct memcache_job *job);

#endif
