/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of service discovery: see discovery.h. */
#ifndef MK_UPSTREAM_DISCOVERY_TYPE_H
#define MK_UPSTREAM_DISCOVERY_TYPE_H

#include "upstream/pool_type.h"

/* The default of MaxServers: so many servers more than the configuration contains. */
enum { MK_DISCOVERY_ROOM = 16 };

enum mk_discovery_state { MK_DISCOVERY_PENDING, MK_DISCOVERY_OK, MK_DISCOVERY_FAILED, MK_DISCOVERY_PARTIAL };

/* Cells of a source in the row that all processes share. */
enum {
    MK_DISCOVERY_STATE, /* enum mk_discovery_state */
    MK_DISCOVERY_SERVERS,
    MK_DISCOVERY_LOOKUPS,
    MK_DISCOVERY_FAILURES,
    MK_DISCOVERY_CELLS
};

struct mk_discovery_source {
    struct mk_discovery_source *next;
    const struct mk_upstream *upstream;
    enum { MK_DISCOVER_ADDRESSES, MK_DISCOVER_SRV, MK_DISCOVER_FILE } kind;
    mk_str name;       /* as written, in messages and metrics */
    mk_str host, path; /* the name to look up; the file; both NUL-terminated */
    uint16_t port;
    unsigned weight;
    bool is_backup;
    uint64_t id;     /* of the source in shared memory; not 0 */
    uint64_t *cells; /* NULL: none */
};

/* The name servers of an upstream. */
enum { MK_RESOLVERS_MAX = 4 };
struct mk_resolvers {
    struct mk_sockaddr of[MK_RESOLVERS_MAX];
    unsigned n;
};

/* Does the section have sources? */
static inline bool mk_discovery_is_configured(const struct mk_upstream_settings *s)
{
    return s->servers_file.len || s->n_resolved;
}

/* Is a source of the upstream looked up for the first time? */
static inline bool mk_discovery_is_pending(const struct mk_upstream *u)
{
    for (const struct mk_discovery_source *s = u->sources; s; s = s->next)
        if (s->cells &&
            __atomic_load_n(&s->cells[MK_DISCOVERY_STATE], __ATOMIC_RELAXED) == MK_DISCOVERY_PENDING)
            return true;
    return false;
}

#endif
