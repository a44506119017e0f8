/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of an upstream and its servers; constant while workers use it. */
#ifndef MK_UPSTREAM_SERVER_H
#define MK_UPSTREAM_SERVER_H

#include <monkey/upstream.h>

#include "upstream/conn_limit.h"
#include "upstream/stats.h"
#include "upstream/upstream_settings.h"

MK_PLUGIN_DECLARE(upstream);

struct mk_upstream_server {
    const struct mk_upstream *upstream;
    mk_str name;     /* as written */
    mk_str host;     /* name or address, NUL-terminated; absent: a unix socket */
    mk_str path;     /* path of the unix socket, NUL-terminated */
    mk_str tls_name; /* name to verify, NUL-terminated; absent: `host` */
    uint16_t port;
    uint16_t index;      /* index of the server in the upstream */
    unsigned stats_slot; /* slot of the server in shared memory: health, statistics and connection limit */
    uint64_t *shared;    /* statistics shared by all processes; NULL: none */
    unsigned weight;
    bool backup;
    bool is_saved;    /* the administrator has added the server, and StateFile contains it */
    bool is_spare;    /* room for a server that the administrator may add; empty while `name` is absent */
    unsigned written; /* the weight in the configuration */
    enum mk_server_mode mode; /* at the start of the configuration: later, shared memory has the mode */
    uint64_t id;              /* mk_upstream_server_id() */
    uint64_t key;             /* for `Balance hash` */
};

struct mk_tls_module;
struct mk_upstream_http2_module;
struct mk_upstreams;
struct mk_discovery_source;
struct mk_resolvers;
struct mk_saved_servers;
struct mk_server_state;

struct mk_upstream {
    struct mk_upstream *next;
    mk_str name;
    const struct mk_upstream_settings *settings;
    struct mk_upstream_defaults defaults; /* defaults of the plugin that first requested the upstream */
    struct mk_tls_client *tls;            /* TLS settings; NULL: no TLS to the servers */
    struct mk_tls_client *check_tls;      /* TLS settings of health checks; NULL: no TLS */
    const struct mk_upstream_http2_module *http2; /* NULL: HTTP/1.1, or another protocol */
    const struct mk_upstreams *all;
    struct mk_upstream_server *servers;
    unsigned n;
    unsigned max, keep;
    uint32_t idle_ms;
    unsigned index; /* index of the upstream, in order of first use */
    bool is_section;
    struct mk_hash_key id_key;            /* for mk_upstream_server.id */
    mk_str state_file;                    /* absolute path; absent: changes cannot be saved */
    struct mk_discovery_source *sources;  /* of servers: see discovery.h; NULL: none */
    const struct mk_resolvers *resolvers; /* for the names among them */
    const struct mk_server_state
        *loaded;                    /* saved changes of servers that they list, from StateFile; NULL: none */
    struct mk_saved_servers *saved; /* the same in shared memory, with later changes; NULL: no StateFile */
    uint32_t n_changes_at_load;     /* mk_saved_servers.n_changes before StateFile was read */
    /* For a dynamic upstream: see struct mk_upstream_dynamic_options. */
    unsigned max_hosts;                                    /* 0: the upstream is not dynamic */
    bool (*allows)(void *ctx, const struct mk_addr *addr); /* NULL: all addresses are allowed */
    void *allows_ctx;
};

/* All upstreams used by the handlers of one configuration. */
struct mk_upstreams {
    struct mk_upstream *first, *last;
    unsigned n;         /* upstreams */
    unsigned n_servers; /* servers of all upstreams */
    struct mk_upstream_settings_index index;
    struct mk_upstream_stats stats;
    struct mk_upstream_stats_plan plan;
    struct mk_upstream_stats_snapshot former;
    struct mk_server_control_memory *control; /* servers that the administrator has added; NULL: none */
    struct mk_conn_limit limit;
    struct mk_hash_key client_key;                /* hash key for client addresses in shared memory */
    const struct mk_plugin *plugin;               /* the plugin that provides the upstreams */
    const struct mk_tls_module *tls;              /* NULL: no server uses TLS */
    const struct mk_upstream_http2_module *http2; /* NULL: no upstream uses HTTP/2 */
};

#endif
