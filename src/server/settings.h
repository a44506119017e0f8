/* SPDX-License-Identifier: Apache-2.0 */
/* What can be configured: the tables that bind, check, print and document every section. */
#ifndef MK_SERVER_SETTINGS_H
#define MK_SERVER_SETTINGS_H

#include "conf/bind.h"
#include "conf/table.h"
#include "conf/words.h"
#include "os/addr.h"

struct mk_listen {
    struct mk_addr addr;
    mk_str written;
    struct mk_conf_place at;
    bool takes_port; /* it is only an address: the port is the one of `Port`, wherever that stands */
    bool tls;        /* nothing else is spoken there */
    bool http2;      /* nothing else is spoken there, without TLS */
};

struct mk_listens {
    struct mk_listen *at;
    size_t n, cap;
};

/* PEM files of one pair, seen from the folder of the file that says so; each ends with a NUL. */
struct mk_certificate {
    mk_str file, key, ocsp; /* absent: the key is in `file`; no answer is stapled */
    const struct mk_conf_entry *entry;
};

struct mk_certificates {
    struct mk_certificate *at;
    size_t n, cap;
};

/* Strict-Transport-Security (RFC 6797). */
struct mk_hsts {
    uint64_t age_ms;
    bool on, subdomains, preload;
};

enum { MK_HTTPS_ON = UINT32_MAX }; /* the port is to be found out */

struct mk_tls_settings {
    struct mk_certificates certificates;
    unsigned oldest; /* of mk_settings_tls_versions */
    mk_str ciphers, suites, groups, client_authority;
    unsigned clients; /* enum mk_tls_clients */
    struct mk_hsts hsts;
    uint32_t redirect; /* port of https; 0: plain requests are answered */
    bool http2;
};

/* Keys that [SERVER] gives to all hosts and a [HOST] may change for itself. */
struct mk_site_settings {
    struct mk_conf_words index;
    mk_str user_dir, fallback;
    unsigned symlink; /* enum mk_symlink */
    bool resume, precompressed, dot_files;
    struct mk_tls_settings tls;
};

struct mk_server_settings {
    struct mk_listens listens;
    uint16_t port; /* of a Listen that is only an address, as in Monkey before 1.6 */
    unsigned workers;
    mk_str pid_file, user, group;
    bool hide_version, keep_alive, fdt, sandbox;
    unsigned overcapacity; /* enum mk_overcapacity */
    mk_str default_type;
    uint64_t fd_limit, max_connections, max_per_address;
    uint32_t max_requests;
    uint64_t max_request_size, max_head_size, max_uri_size, max_body_size;
    unsigned max_fields;
    unsigned max_streams;
    uint32_t patience;
    uint32_t head_ms, idle_ms, linger_ms, handler_ms, tunnel_ms, rate_ms, drain_ms;
    uint32_t ticket_ms; /* 0: no tickets */
    uint64_t rate_bytes;
    unsigned file_cache;
    uint64_t file_cache_memory, small_file;
    uint32_t file_cache_ms;
    mk_str access_log, error_log;
    unsigned access_format, log_level;
    struct mk_site_settings site;
};

struct mk_host_settings {
    struct mk_conf_words names;
    mk_str root, redirect;
    bool is_default;
    struct mk_site_settings site;
};

/* Entries of free form, as they were written; what they mean is for the generation to find out. */
struct mk_pairs {
    struct mk_pair {
        mk_str key, value;
        const struct mk_conf_entry *entry;
    } * at;
    size_t n, cap;
};

enum mk_section {
    MK_SECTION_SERVER,
    MK_SECTION_HOST,
    MK_SECTION_ROUTES,
    MK_SECTION_ERROR_PAGES,
    MK_SECTION_CACHE_CONTROL,
    MK_SECTION_MIMETYPES,
    MK_SECTION_HANDLERS,
    MK_SECTION_PLUGINS,
    MK_SECTIONS
};

/* Takes the flags behind an address. NULL, or what is wrong with *word. */
const char *mk_settings_take_flags(mk_str *rest, struct mk_listen *one, mk_str *word);

/* One table a section; those of pairs fill a struct mk_pairs. */
extern const struct mk_conf_table *const mk_settings_tables[MK_SECTIONS];

#endif
