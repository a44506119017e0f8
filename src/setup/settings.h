/* SPDX-License-Identifier: Apache-2.0 */
/* The values of all keys of the built-in sections. The keys are in setup/keys.c. */
#ifndef MK_SETUP_SETTINGS_H
#define MK_SETUP_SETTINGS_H

#include "conf/table.h"
#include "conf/words.h"
#include "os/sockaddr.h"

struct mk_vhosts;

struct mk_listen {
    struct mk_sockaddr addr;
    mk_str written;
    struct mk_conf_source_pos at;
    bool takes_port;         /* only an address was written: the key `Port`, even on a later line, sets the
                              * port */
    bool tls;                /* accepts only TLS connections */
    bool http2;              /* accepts only HTTP/2, without TLS */
    bool of_server;          /* from [SERVER]: hosts without a Listen use this address */
    struct mk_vhosts *hosts; /* the hosts of this address; set by listen_addresses.c */
};

struct mk_listens {
    struct mk_listen *at;
    size_t n;
};

/* Files of a certificate, its key (both PEM) and its OCSP response (DER): resolved, NUL-terminated paths. */
struct mk_certificate {
    mk_str file, key, ocsp; /* `key` absent: it is in `file`; `ocsp` absent: no OCSP response is stapled */
    const struct mk_conf_entry *entry;
};

struct mk_certificates {
    struct mk_certificate *at;
    size_t n;
};

/* Strict-Transport-Security (RFC 6797). */
struct mk_hsts {
    uint64_t age_ms;
    bool on, subdomains, preload;
};

enum { MK_HTTPS_ON = UINT32_MAX }; /* redirect to the port of a TLS listener */

struct mk_tls_settings {
    struct mk_certificates certificates;
    unsigned oldest; /* index into mk_keys_tls_versions */
    mk_str ciphers, suites, groups, client_authority;
    unsigned clients; /* enum mk_tls_clients */
    struct mk_hsts hsts;
    uint32_t redirect; /* HTTPS port for redirects; 0: plain requests are served */
    bool http2;
};

/* Request settings: [SERVER] sets defaults, [HOST] and [LOCATION] can override them. */
struct mk_request_settings {
    uint64_t max_body_size; /* 0: unlimited */
    uint64_t rate_bytes;    /* 0: off */
    uint32_t rate_ms, handler_ms, tunnel_ms;
    unsigned access_format; /* enum mk_access_format */
    mk_str access_log;
};

/* Settings that [SERVER] defines for all hosts, and that a [HOST] can override. */
struct mk_vhost_common_settings {
    struct mk_request_settings request;
    struct mk_conf_words index;
    mk_str user_dir, fallback;
    unsigned symlink;      /* enum mk_symlink */
    unsigned error_format; /* enum mk_error_format */
    bool resume, precompressed, dot_files;
    struct mk_tls_settings tls;
};

/* `required`: no worker starts without the complete sandbox. */
enum mk_sandbox_mode { MK_SANDBOX_OFF, MK_SANDBOX_ON, MK_SANDBOX_REQUIRED };

enum mk_error_log_format { MK_ERROR_LOG_TEXT, MK_ERROR_LOG_JSON };

struct mk_server_settings {
    struct mk_listens listens;
    uint16_t port; /* port for a Listen with only an address, as in Monkey before 1.6 */
    unsigned workers;
    mk_str pid_file, user, group;
    struct mk_conf_words geo_databases;
    bool hide_version, keep_alive, fdt;
    unsigned sandbox;      /* enum mk_sandbox_mode */
    unsigned overcapacity; /* enum mk_overcapacity */
    mk_str default_type;
    uint64_t fd_limit, max_connections, max_per_address;
    uint32_t max_requests;
    uint64_t max_request_size, max_head_size, max_uri_size, spool_max;
    mk_str spool_folder; /* absolute, NUL-terminated */
    unsigned max_fields;
    unsigned max_streams;
    uint64_t max_unread_body;
    uint32_t abuse_budget;
    uint32_t head_ms, idle_ms, linger_ms, drain_ms, loop_ms;
    uint32_t ticket_ms; /* 0: no tickets */
    unsigned file_cache;
    uint64_t file_cache_memory, small_file;
    uint32_t file_cache_ms;
    mk_str error_log;
    unsigned error_log_format; /* enum mk_error_log_format */
    unsigned log_level;
    struct mk_vhost_common_settings site;
};

/* A folder served below a path of the host. */
struct mk_alias {
    mk_str path;   /* request path without a trailing slash: "/docs" */
    mk_str folder; /* NUL-terminated */
    const struct mk_conf_entry *entry;
};

struct mk_aliases {
    struct mk_alias *at;
    size_t n;
};

struct mk_vhost_settings {
    struct mk_conf_words names;
    struct mk_listens listens;
    struct mk_aliases aliases;
    mk_str root, redirect;
    bool is_default;
    struct mk_vhost_common_settings site;
};

struct mk_location_settings {
    struct mk_conf_words paths;
    struct mk_request_settings request;
};

/* A free-form entry as written, which is interpreted later. */
struct mk_conf_pair {
    mk_str key, value;
    const struct mk_conf_entry *entry;
};

struct mk_conf_pairs {
    struct mk_conf_pair *at;
    size_t n;
};

#endif
