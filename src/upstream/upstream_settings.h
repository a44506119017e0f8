/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the section [UPSTREAM]. */
#ifndef MK_UPSTREAM_UPSTREAM_SETTINGS_H
#define MK_UPSTREAM_UPSTREAM_SETTINGS_H

#include <monkey/config.h>

#include "upstream/conn_limit.h"

/* Each server has a bit in mk_upstream_conn_options.tried. */
enum { MK_SERVERS_MAX = 64 };
/* The longest address of a server that the administrator adds, including the NUL, and the largest weight. */
enum { MK_SERVER_NAME_MAX = 272, MK_SERVER_WEIGHT_MAX = 100 };

enum { MK_HEALTH_TEXT_MAX = 256, MK_HEALTH_HEAD_MAX = 8 * 1024 };

enum mk_balance { MK_BALANCE_ROUND_ROBIN, MK_BALANCE_LEAST_CONN, MK_BALANCE_HASH };

/* A line `Server ADDRESS [weight=N] [backup] [resolve]`. */
struct mk_upstream_server_line {
    struct mk_upstream_server_line *next;
    mk_str address;
    unsigned weight;
    bool backup;
    bool resolves; /* a source of discovery.h, not a server */
};

/* A line `HealthHeader NAME: VALUE`. */
struct mk_health_header {
    struct mk_health_header *next;
    mk_str text; /* NAME: VALUE */
};

struct mk_upstream_settings {
    mk_str name;
    struct mk_upstream_server_line *servers;
    uint32_t n_resolved; /* of `servers` */
    mk_str servers_file;
    struct mk_conf_words resolvers;
    uint32_t max_servers; /* room for servers, including those that the administrator adds; 0: none to add */
    mk_str state_file;
    enum mk_balance balance;
    uint32_t max_client; /* connections per server for one client address; MK_SETTING_UNSET: half of all */
    /* Maximum connections and idle connections per server; MK_SETTING_UNSET: the plugin's default. */
    uint32_t max, keep;
    uint32_t idle_ms; /* how long an idle connection is kept */
    uint32_t connect_ms, queue_ms, queue_max;
    uint32_t max_fails, fail_ms, slow_ms;
    uint32_t resolve_ms; /* 0: the TTL of the answer, or MK_RESOLVE_MS for names that the system resolves */
    /* Ejection of servers by their share of errors; outlier_percent 0: none. */
    uint32_t outlier_percent, outlier_requests, outlier_ms, outlier_eject_ms, outlier_max_percent;
    mk_str check;
    uint32_t check_ms, check_timeout_ms; /* check_timeout_ms 0: the same as check_ms */
    uint32_t check_rise, check_fall;     /* consecutive successes or failures that change the state */
    mk_str check_host;
    mk_str check_method; /* absent: GET */
    struct mk_health_header *check_headers;
    mk_str check_text;   /* absent: any content */
    uint32_t check_port; /* 0: the port of the server */
    enum mk_health_tls { MK_HEALTH_TLS_AUTO, MK_HEALTH_TLS_ON, MK_HEALTH_TLS_OFF } check_tls;
    struct mk_health_check_status {
        uint16_t from, to;
    } check_status; /* 0: 200 to 399 */
    uint32_t retry_percent;
    mk_str key_file;
    bool tls, tls_verify;
    mk_str tls_authority, tls_certificate, tls_key, tls_name;
};

#define MK_SETTING_UNSET UINT32_MAX

enum { MK_RESOLVE_MS = 30000 };

extern const struct mk_conf_table mk_upstream_settings_table;

/* All sections [UPSTREAM], sorted by Name. */
struct mk_upstream_settings_index {
    const struct mk_upstream_settings_row *rows;
    size_t n;
};

/* Call it after all sections are bound. False: out of memory, and the error was reported. */
bool mk_upstream_settings_index_init(struct mk_upstream_settings_index *out, struct mk_config *config);
/* The first section with that Name; NULL: none. */
const struct mk_upstream_settings *mk_upstream_settings_find(const struct mk_upstream_settings_index *index,
                                                             mk_str name);

#endif
