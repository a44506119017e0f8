/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual hosts: their settings, and lookup by name. */
#ifndef MK_WEB_VHOST_H
#define MK_WEB_VHOST_H

#include <monkey/host.h>

#include "base/map.h"
#include "event/tls.h"
#include "files/mime.h"
#include "files/open_file.h"
#include "http/path_variants.h"
#include "web/hooks.h"
#include "web/route.h"
#include "web/route_index.h"

/* Removes the trailing dot of a fully qualified name. */
static inline mk_str mk_vhost_trim_dot(mk_str name)
{
    return mk_str_first(name, name.len - (name.len > 1 && name.p[name.len - 1] == '.'));
}

struct mk_vhost_config;
struct mk_location_config;

/* A custom error page. */
struct mk_error_page {
    unsigned status; /* 4 or 5: every 4xx or 5xx status that has no page of its own */
    mk_str path;     /* relative to the document root */
};

/* Format of the built-in error pages. */
enum mk_error_format { MK_ERROR_FORMAT_HTML, MK_ERROR_FORMAT_JSON };

/* Cache-Control for files matching a pattern; the first match decides. */
struct mk_cache_rule {
    struct mk_pattern match;
    mk_str value;
};

struct mk_user_home {
    struct mk_root root;
};

/* Home folders of users, /~name/. They are looked up when the configuration is loaded, because a request
 * must not wait for a user database. */
struct mk_user_homes {
    struct mk_map by_name; /* name -> struct mk_user_home * */
};

/* Limits for the requests of the server, a host or a location, and their access log. */
struct mk_request_limits {
    uint64_t content_max;   /* maximum body size; UINT64_MAX: no limit */
    uint64_t rate_bytes;    /* minimum bytes that a client must transfer in each interval of rate_ms */
    struct mk_logfile *log; /* access log; NULL: none */
    uint32_t rate_ms;       /* interval for rate_bytes; 0: no limit */
    uint32_t handler_ms;    /* handler timeout; 0: no limit */
    uint32_t tunnel_ms;     /* idle timeout of tunnels; 0: no limit */
    unsigned log_format;    /* index of the log format, for the function that writes the log */
};

struct mk_location_path {
    struct mk_pattern pattern;
    struct mk_regex *regex; /* used instead of the pattern; NULL: none */
};

/* A set of paths of a host, with limits of its own. */
struct mk_location {
    const struct mk_location_path *paths;
    size_t n_paths;
    struct mk_request_limits limits;
    struct mk_request_limits strict;         /* the stricter value of each limit of the location and of the
                                                host */
    mk_str written_at;                       /* file:line, for messages */
    const struct mk_location_config *source; /* configuration from which it was built */
};

struct mk_buf;
struct mk_header_block;
/* Writes the HPACK-encoded head of a 200 with these headers and that content length. */
typedef void mk_h2_head_writer(struct mk_buf *out, const struct mk_header_block *whole, uint64_t size);

/* What is recorded of each request, for plugins. */
enum mk_vhost_records {
    MK_VHOST_RECORDS_ATTEMPTS = 1, /* mk_config_record_attempts() */
    MK_VHOST_RECORDS_TRACES = 2,   /* mk_config_record_traces() */
};

/* What a host that takes part in traces does. Called through pointers, so that a program without a plugin that starts
 * traces does not contain this code. */
struct mk_vhost_tracing {
    const struct mk_trace *(*start)(struct mk_request *request); /* NULL: out of memory */
    int (*add_headers)(struct mk_request *request);              /* 0 or a negated errno value */
};

struct mk_vhost {
    mk_str id;           /* unique id of the host: see mk_request_vhost_name() */
    const mk_str *names; /* as written; "*.example.org" for subdomains, "~REGEX" for regular expressions */
    struct mk_regex *const *regexes; /* regexes of the names, by index; NULL: no name is a regex */
    size_t n_names;
    struct mk_root root;
    struct mk_root *aliases; /* folders that `Alias` maps to paths */
    size_t n_aliases;
    const mk_str *index;
    size_t n_index;
    const struct mk_error_page *error_pages;
    size_t n_error_pages;
    enum mk_error_format error_format;
    const struct mk_route *routes;
    size_t n_routes;
    const struct mk_route_index *route_index; /* index of the routes; NULL: a linear search is cheaper */
    const struct mk_cache_rule *cache_rules;
    size_t n_cache_rules;
    const struct mk_user_homes *homes; /* NULL: off */
    const struct mk_mime *mime;
    mk_h2_head_writer *pack_head; /* may write nothing; NULL: HTTP/2 is off */
    struct mk_hooks hooks;
    const struct mk_hook *plugins; /* the host's hooks with their contexts */
    size_t n_plugins;
    const struct mk_request_limits *limits; /* limits of the host; NULL: the limits of the server */
    const struct mk_location *locations;    /* the first match decides */
    size_t n_locations;
    struct mk_path_scripts scripts; /* scripts known from the routes and the fallback */
    mk_str fallback;                /* fallback page of a single-page application, relative; absent: none */
    bool has_body_max;              /* some handler of a route has mk_handler.body_max */
    bool ranges;                    /* byte ranges are allowed */
    bool precompressed;
    bool dot_files;
    uint8_t records;                        /* enum mk_vhost_records */
    bool has_own_access_log;                /* a plugin writes the access log of the host */
    mk_str written_at;                      /* file:line, for messages */
    const struct mk_vhost_tracing *tracing; /* NULL: requests have no traces */
    const struct mk_vhost_config *source;   /* configuration from which it was built */
    /* NULL: TLS connections for this host are refused. Access this member and the three below atomically: a
     * program may replace a certificate while threads serve requests (mk_certificates_replace()). */
    const struct mk_tls_context *tls;
    int64_t tls_begins, tls_expires; /* validity period common to all its certificates; 0: no
                                           * certificate */
    bool tls_kept; /* the certificate files are unusable: the certificate of the earlier configuration is
                      kept */
    unsigned client_rules_id; /* hosts with equal client certificate rules share it; 0: no certificates are
                               * requested */
    uint32_t sampled_per_million; /* share of new traces that are sampled */
    bool client_required;         /* requests without a certificate are rejected */
    uint32_t https_port; /* port to which plain requests are redirected; 0: plain requests are served */
    mk_str hsts;         /* Strict-Transport-Security; absent: none */
};

/* A host name given as a regular expression. */
struct mk_vhost_regex {
    const struct mk_regex *regex;
    const struct mk_vhost *host;
    mk_str name;
    struct mk_vhost_regex *next; /* in configuration order */
};

/* The virtual hosts of one or more listeners. */
struct mk_vhosts {
    struct mk_map exact, below; /* name -> struct mk_vhost *; `below`: wildcards, without the "*." */
    struct mk_vhost_regex *regexes;
    const struct mk_vhost *fallback;
    bool named;               /* does any host have a name? */
    bool client_rules;        /* does any host request client certificates? */
    struct mk_tls_domain tls; /* certificates by name */
};

void mk_vhosts_init(struct mk_vhosts *h, struct mk_arena *arena);
/* Adds a host; the first host is the default until mk_vhosts_set_default(). -EEXIST: another host has one of
 * its names (the name in *taken, the host in *other); -ENOMEM. */
mk_err mk_vhosts_add(struct mk_vhosts *h, struct mk_vhost *host, mk_str *taken,
                     const struct mk_vhost **other) MK_MUST_USE;
void mk_vhosts_set_default(struct mk_vhosts *h, const struct mk_vhost *host);

/* Is one of the host's names a pattern? */
bool mk_vhost_has_name_pattern(const struct mk_vhost *host);
/* Is the name a literal name of the host? */
bool mk_vhost_has_name(const struct mk_vhost *host, mk_str name);

/* Finds the host by name (case-insensitive, without port), else the default host. Exact names come before
 * wildcards, longer wildcards before shorter ones, then regular expressions. A regex that exceeds its limit
 * does not match: a client can reach the later hosts anyway by sending another name. */
const struct mk_vhost *mk_vhosts_find_by_name(const struct mk_vhosts *h, mk_str name);
static inline const struct mk_vhost *mk_vhosts_find(const struct mk_vhosts *h, mk_str name)
{
    return h->named && name.p ? mk_vhosts_find_by_name(h, name) : h->fallback;
}

const struct mk_root *mk_vhost_find_alias_or_home_root(const struct mk_vhost *host, mk_str *path);
/* Returns the root folder for a path, and stores the remaining path in *path. The root is the host's document
 * root, the folder of an Alias, or a user's folder for /~name/. The remaining path is empty if the path ends
 * with the name of such a folder. */
static inline const struct mk_root *mk_vhost_find_root(const struct mk_vhost *host, mk_str *path)
{
    return host->homes || host->n_aliases ? mk_vhost_find_alias_or_home_root(host, path) : &host->root;
}

/* Returns the first location of the host that matches the path; NULL: none. A regex that exceeds its limit
 * counts as a match, and *gave_up is set, so that the strict limits of the location apply: a client must not
 * benefit from making the match fail. */
const struct mk_location *mk_vhost_location(const struct mk_vhost *host, mk_str path, bool *gave_up);

/* Returns the first literal name; empty: none. */
mk_str mk_vhost_first_plain_name(const struct mk_vhost *host);
/* Returns the regex of the host that matches a name, as written; absent: none. */
mk_str mk_vhost_matching_regex(const struct mk_vhost *host, mk_str name);

/* Returns the index of the host's first route at or after `from` that matches the path or exceeds the regex
 * limit, and stores which of the two in *result. Returns n_routes if there is none. */
static inline size_t mk_vhost_next_route(const struct mk_vhost *host, size_t from, mk_str path,
                                         enum mk_regex_result *result)
{
    if (MK_UNLIKELY(host->route_index != NULL))
        return mk_route_index_find(host->route_index, from, path, result);
    while (from < host->n_routes &&
           (*result = mk_route_matches(&host->routes[from], path)) == MK_REGEX_NO_MATCH)
        from++;
    return from;
}
/* Returns the host's first route that matches the path or exceeds the regex limit; NULL: none. */
const struct mk_route *mk_vhost_route(const struct mk_vhost *host, mk_str path);

#endif
