/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual hosts: the parts of a site, and the lookup of a site by name. */
#ifndef MK_WEB_VHOST_H
#define MK_WEB_VHOST_H

#include <monkey/host.h>

#include "base/map.h"
#include "files/mime.h"
#include "files/open_file.h"
#include "http/path_variants.h"
#include "net/tls.h"
#include "web/hooks.h"
#include "web/route.h"
#include "web/route_index.h"

struct mk_vhost_config;
struct mk_location_config;

/* A file that is sent instead of the built-in page. */
struct mk_error_page {
    unsigned status; /* 4 and 5: every status of the class that has no page of its own */
    mk_str path;     /* beneath the root, relative */
};

/* Cache-Control for the files that a pattern matches; the first match counts. */
struct mk_cache_rule {
    struct mk_pattern match;
    mk_str value;
};

struct mk_user_home {
    struct mk_root root;
};

/* Folders of users, /~name/. Looked up when the configuration is loaded: a request never waits for a
 * directory. */
struct mk_user_homes {
    struct mk_map by_name; /* name -> struct mk_user_home * */
};

/* What the server, a host or a location allows a request, and where it is logged. */
struct mk_request_limits {
    uint64_t content_max;   /* bytes of content; UINT64_MAX: no limit */
    uint64_t rate_bytes;    /* at least so much must move, in or out, while we wait for the client, ... */
    struct mk_logfile *log; /* its access log; NULL: none */
    uint32_t rate_ms;       /* ... in each such span; 0: no limit */
    uint32_t handler_ms;    /* for a handler to go on; 0: no limit */
    uint32_t tunnel_ms;     /* in which something must move in a tunnel; 0: no limit */
    unsigned log_format;    /* for the function that writes the log */
};

struct mk_location_path {
    struct mk_pattern pattern;
    struct mk_regex *regex; /* decides in place of the pattern; NULL: none */
};

/* Paths of a host with limits of their own. */
struct mk_location {
    const struct mk_location_path *paths;
    size_t n_paths;
    struct mk_request_limits limits;
    struct mk_request_limits strict;         /* of each limit the stricter one, of these and the host's */
    mk_str written_at;                       /* file:line, for people */
    const struct mk_location_config *source; /* what it was built from */
};

struct mk_buf;
struct mk_header_block;
/* Writes the head of a 200 with these fields and content of that size in the form of HTTP/2. */
typedef void mk_h2_head_writer(struct mk_buf *out, const struct mk_header_block *whole, uint64_t size);

struct mk_vhost {
    mk_str id;           /* no other host has it: see mk_request_vhost_name() */
    const mk_str *names; /* as written; "*.example.org" for all below, "~REGEX" for what matches */
    struct mk_regex *const *regexes; /* those of the names, by their index; NULL: none of them has one */
    size_t n_names;
    struct mk_root root;
    struct mk_root *aliases; /* folders for what is below other paths */
    size_t n_aliases;
    const mk_str *index;
    size_t n_index;
    const struct mk_error_page *error_pages;
    size_t n_error_pages;
    const struct mk_route *routes;
    size_t n_routes;
    const struct mk_route_index *route_index; /* NULL: they are few */
    const struct mk_cache_rule *cache_rules;
    size_t n_cache_rules;
    const struct mk_user_homes *homes; /* NULL: off */
    const struct mk_mime *mime;
    mk_h2_head_writer *pack_head; /* NULL: no client of the server speaks HTTP/2; may write nothing yet */
    struct mk_hooks hooks;
    const struct mk_hook *plugins; /* all that have business here, with what is theirs */
    size_t n_plugins;
    const struct mk_request_limits *limits; /* NULL: those of the server */
    const struct mk_location *locations;    /* the first that has the path counts */
    size_t n_locations;
    struct mk_path_scripts scripts; /* that its routes and its fallback make known */
    mk_str fallback;                /* the page of a single-page application, relative; absent: none */
    bool has_body_max;              /* a handler of a route has mk_handler.body_max */
    bool ranges;                    /* Resume */
    bool precompressed;
    bool dot_files;
    bool has_own_access_log;              /* a plugin writes it */
    mk_str written_at;                    /* file:line, for people */
    const struct mk_vhost_config *source; /* what it was built from */
    const struct mk_tls_context *tls;     /* NULL: TLS connections that name this host are refused */
    int64_t tls_begins, tls_expires;      /* all of its certificates are valid between; 0: there is none */
    bool tls_kept; /* the files of a certificate cannot be used: it is that of an earlier configuration */
    unsigned client_rules; /* equal where the same certificates of clients are good; 0: none is asked for */
    bool client_required;  /* and requests without one are refused */
    uint32_t https_port;   /* plain requests are sent there; 0: they are served */
    mk_str hsts;           /* Strict-Transport-Security; absent: none */
};

/* A name that is a regular expression. */
struct mk_vhost_regex {
    const struct mk_regex *regex;
    const struct mk_vhost *host;
    mk_str name;
    struct mk_vhost_regex *next; /* in the order of the configuration */
};

/* The hosts that one address leads to, or several. */
struct mk_vhosts {
    struct mk_map exact, below; /* name -> struct mk_vhost *; `below` without the "*." */
    struct mk_vhost_regex *regexes;
    const struct mk_vhost *fallback;
    bool named;               /* is there anything to look up at all? */
    bool client_rules;        /* does any of them ask clients for certificates? */
    struct mk_tls_domain tls; /* whose certificates, by name */
};

void mk_vhosts_init(struct mk_vhosts *h, struct mk_arena *arena);
/* The first host added is the default one until mk_vhosts_set_default. -EEXIST when another host has one of
 * its names (*taken says which, *other whose), -ENOMEM. */
mk_err mk_vhosts_add(struct mk_vhosts *h, struct mk_vhost *host, mk_str *taken,
                     const struct mk_vhost **other) MK_MUST_USE;
void mk_vhosts_set_default(struct mk_vhosts *h, const struct mk_vhost *host);

/* Is a name of the host a pattern? */
bool mk_vhost_has_pattern(const struct mk_vhost *host);
/* Is it one of the names of the host, and no pattern? */
bool mk_vhost_has_name(const struct mk_vhost *host, mk_str name);

/* The host of that name, without port, in any case of letters; else the default one. Exact names before
 * wildcards, longer wildcards before shorter ones, then regular expressions. One that is given up does not
 * match: a client can always reach the hosts behind it by asking for another name. */
const struct mk_vhost *mk_vhosts_find(const struct mk_vhosts *h, mk_str name);

const struct mk_root *mk_vhost_find_alias_or_home_root(const struct mk_vhost *host, mk_str *path);
/* Where to look for a path, and for what of it: beneath the host's root, the folder of an Alias, or that of a
 * user for /~name/. The rest of the path is empty where it ends with the name of such a folder. */
static inline const struct mk_root *mk_vhost_find_root(const struct mk_vhost *host, mk_str *path)
{
    return host->homes || host->n_aliases ? mk_vhost_find_alias_or_home_root(host, path) : &host->root;
}

/* The first location of the host that has the path; NULL if none does. One whose search is given up counts,
 * with its strict limits: a client that makes the search fail must not win by it. */
const struct mk_location *mk_vhost_location(const struct mk_vhost *host, mk_str path, bool *gave_up);

/* The first name that is neither a wildcard nor a regular expression; empty if there is none. */
mk_str mk_vhost_first_plain_name(const struct mk_vhost *host);
/* The regular expression of the host that matches a name, as written; absent: none. */
mk_str mk_vhost_matching_regex(const struct mk_vhost *host, mk_str name);

/* The first route of the host from `from` on that matches the path or gives up, and which of both; n_routes
 * if there is none. */
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
/* The first route of the host that matches the path, or gives up; NULL if none does. */
const struct mk_route *mk_vhost_route(const struct mk_vhost *host, mk_str path);

#endif
