/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual hosts: what one site is made of, and which site a name leads to. */
#ifndef MK_WEB_HOST_H
#define MK_WEB_HOST_H

#include <monkey/host.h>

#include "base/map.h"
#include "web/hooks.h"
#include "web/mime.h"
#include "web/openfile.h"
#include "web/route.h"

/* A file that is sent instead of the built-in page. */
struct mk_error_page {
    unsigned status;
    mk_str path; /* beneath the root, relative */
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

struct mk_tls_context;

struct mk_host {
    const mk_str *names; /* as written; "*.example.org" for all below */
    size_t n_names;
    struct mk_root root;
    const mk_str *index;
    size_t n_index;
    const struct mk_error_page *error_pages;
    size_t n_error_pages;
    const struct mk_route *routes;
    size_t n_routes;
    const struct mk_cache_rule *cache_rules;
    size_t n_cache_rules;
    const struct mk_user_homes *homes; /* NULL: off */
    const struct mk_mime *mime;
    struct mk_hooks hooks;
    const struct mk_hook *plugins; /* all that have business here, with what is theirs */
    size_t n_plugins;
    mk_str fallback; /* the page of a single-page application, relative; absent: none */
    bool ranges;     /* Resume */
    bool precompressed;
    bool dot_files;
    bool has_own_access_log;          /* a plugin writes it */
    mk_str written_at;                /* file:line, for people */
    void *owner;                      /* whatever it was made from */
    const struct mk_tls_context *tls; /* NULL: who asks for it over TLS is turned away */
    int64_t tls_expires;              /* of its certificates: the first; 0: there is none */
    unsigned client_rules; /* equal where the same certificates of clients are good; 0: none is asked for */
    bool client_required;  /* and nobody is served without one */
    uint32_t https_port;   /* plain requests are sent there; 0: they are served */
    mk_str hsts;           /* Strict-Transport-Security; absent: none */
};

struct mk_hosts {
    struct mk_map exact, below; /* name -> struct mk_host *; `below` without the "*." */
    const struct mk_host *fallback;
    bool named;        /* is there anything to look up at all? */
    bool client_rules; /* does any of them ask clients for certificates? */
};

void mk_hosts_init(struct mk_hosts *h, struct mk_arena *arena);
/* The first host added is the default one until mk_hosts_set_default. -EEXIST when another host has one of
 * its names
 * (*taken says which), -ENOMEM. */
mk_err mk_hosts_add(struct mk_hosts *h, struct mk_host *host, mk_str *taken) MK_MUST_USE;
void mk_hosts_set_default(struct mk_hosts *h, const struct mk_host *host);

/* The host of that name, without port, in any case of letters; else the default one. Exact names before
 * wildcards, longer wildcards before shorter ones. */
const struct mk_host *mk_hosts_find(const struct mk_hosts *h, mk_str name);

const struct mk_root *mk_host_choose_home(const struct mk_host *host, mk_str *path);
/* Where to look for a path, and for what of it: beneath the host's root, or a user's folder for /~name/. */
static inline const struct mk_root *mk_host_choose_root(const struct mk_host *host, mk_str *path)
{
    return host->homes ? mk_host_choose_home(host, path) : &host->root;
}

/* The first route of the host that matches the path; NULL if none does. */
const struct mk_route *mk_host_route(const struct mk_host *host, mk_str path);

#endif
