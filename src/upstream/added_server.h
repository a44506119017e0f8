/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of the servers that were added at run time: see server_control.h. */
#ifndef MK_UPSTREAM_ADDED_SERVER_H
#define MK_UPSTREAM_ADDED_SERVER_H

#include "upstream/server.h"

/* The server in a spare slot. */
struct mk_added_server {
    uint32_t version; /* odd while the other members change */
    uint32_t weight, is_backup;
    uint64_t
        source; /* mk_discovery_source.id; 0: the administrator has added the server. Guarded by the lock of
                      * changes */
    char name[MK_SERVER_NAME_MAX];
    uint8_t is_held[MK_UPSTREAM_WORKERS]; /* by row: the worker has a backend for the server */
};

struct mk_server_control_memory {
    uint32_t is_used; /* a server was added */
    struct mk_added_server of[MK_UPSTREAM_SERVERS];
};

static inline struct mk_added_server *mk_added_server_of(const struct mk_upstream_server *s)
{
    return &s->upstream->all->control->of[s->stats_slot];
}

/* The weight of a discovered server as its source lists it; 0: the server was not discovered. */
static inline unsigned mk_added_server_listed_weight(const struct mk_upstream_server *s)
{
    const struct mk_added_server *a = s->is_spare ? mk_added_server_of(s) : NULL;
    return a && a->source ? a->weight : 0;
}

#endif
