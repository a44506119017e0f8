/* SPDX-License-Identifier: Apache-2.0 */
/* One server as a worker has it: a connection, and the commands of all handlers: sent together, answered in
 * their order. */
#ifndef DUDA_MEMCACHE_SERVER_H
#define DUDA_MEMCACHE_SERVER_H

#include <duda/memcache.h>
#include <monkey/upstream.h>
#include <monkey/worker.h>

#include "reply.h"
#include "ring.h"

struct memcache_settings {
    mk_str name, servers;
    struct mk_meter *meter;
    struct mk_upstream *upstreams[MEMCACHE_SERVERS_MAX];
    unsigned n;
    const struct memcache_point *points;
    unsigned waiting_max;
    uint32_t timeout_ms;
    uint64_t value_max;
};

/* A command, and who waits for its reply. On the heap; freed by the server after on_reply. */
struct memcache_job {
    struct memcache_job *next;
    /* reply is NULL if there is none, because of the error. NULL: the handler does not wait any more. */
    void (*on_reply)(void *ctx, const struct memcache_reply *reply, int error);
    void *ctx;
    uint64_t due_ms;
    struct mk_buf bytes;
};

struct memcache_jobs {
    struct memcache_job *first, **end;
};

enum memcache_state { MEMCACHE_DOWN, MEMCACHE_CONNECTING, MEMCACHE_GREETING, MEMCACHE_UP };

struct memcache_server {
    const struct memcache_settings *settings;
    struct mk_upstream *upstream;
    struct mk_worker *worker;
    struct mk_turn_end *turn;
    struct mk_alarm *alarm;
    struct mk_upstream_conn *link;
    enum memcache_state state;
    struct mk_buf in, out; /* what is not read, and what the socket has not taken */
    struct memcache_jobs waiting, sent;
    unsigned n;
    bool ticks, is_reported; /* is_reported: the log says that it is down */
    uint64_t since_ms;       /* of an attempt */
    uint64_t retry_ms;       /* no attempt before this time */
    uint64_t down_ms;        /* attempts fail since then; 0: they do not */
    uint32_t backoff_ms;
    char why[200];
};

int memcache_server_open(struct memcache_server *s, struct mk_worker *w,
                         const struct memcache_settings *settings, struct mk_upstream *upstream);
void memcache_server_close(struct memcache_server *s);
/* Keeps what went wrong: s->why. */
void memcache_server_explain(struct memcache_server *s, mk_str why);
/* Takes the job if it is 0; else -EBUSY or the error because of which the server is out of reach. */
int memcache_server_add(struct memcache_server *s, struct memcache_job *job);
void memcache_job_free(struct memcache_job *job);

#endif
