/* SPDX-License-Identifier: Apache-2.0 */
/* An upstream and its servers as the configuration describes them: constant while workers use them. */
#ifndef MK_UPSTREAM_SERVER_H
#define MK_UPSTREAM_SERVER_H

#include <monkey/upstream.h>

#include "upstream/conn_limit.h"
#include "upstream/stats.h"
#include "upstream/upstream_settings.h"

MK_PLUGIN_DECLARE(upstream);

/* Every server has a bit in mk_upstream_conn_options.avoid. */
enum { MK_SERVERS_MAX = 64 };

struct mk_upstream_server {
    const struct mk_upstream *upstream;
    mk_str name; /* as written */
    mk_str host; /* a name or an address, ending with a NUL; absent: a unix socket */
    mk_str path; /* of the unix socket, ending with a NUL */
    uint16_t port;
    uint16_t index;      /* in the upstream */
    unsigned stats_slot; /* in the memory that workers share, of its limit too */
    uint64_t *shared;    /* its statistics in the row of the server; NULL: none */
    unsigned weight;
    bool backup;
    uint64_t id; /* mk_upstream_server_id() */
};

struct mk_tls_module;
struct mk_upstreams;

struct mk_upstream {
    struct mk_upstream *next;
    mk_str name;
    const struct mk_upstream_settings *settings;
    struct mk_upstream_defaults defaults; /* of the plugin that asked for it first */
    struct mk_tls_client *tls;            /* NULL: the servers speak no TLS */
    const struct mk_upstreams *all;
    struct mk_upstream_server *servers;
    unsigned n;
    unsigned max, keep;
    uint32_t idle_ms;
    unsigned index; /* in the order of their use */
    bool is_section;
};

/* All upstreams that the handlers of one configuration use. */
struct mk_upstreams {
    struct mk_upstream *first, *last;
    unsigned n;         /* upstreams */
    unsigned n_servers; /* of all of them */
    struct mk_upstream_settings_index index;
    struct mk_upstream_stats stats;
    struct mk_upstream_stats_plan plan;
    struct mk_upstream_stats_snapshot former;
    struct mk_conn_limit limit;
    struct mk_hash_key client_key;   /* of clients' addresses in shared memory */
    const struct mk_plugin *plugin;  /* that brings them */
    const struct mk_tls_module *tls; /* NULL: none of them speaks TLS */
};

#endif
