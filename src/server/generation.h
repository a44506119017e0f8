/* SPDX-License-Identifier: Apache-2.0 */
/* One loaded configuration, whole and ready to serve: made by the master, inherited by the workers that serve
 * it, freed when the next one has taken its place. Everything in it lives in its arena. */
#ifndef MK_SERVER_GENERATION_H
#define MK_SERVER_GENERATION_H

#include "conf/read.h"
#include "net/tls.h"
#include "os/proc.h"
#include "server/logfile.h"
#include "server/settings.h"
#include "server/shared.h"
#include "server/tickets.h"
#include "server/watched.h"
#include "web/host.h"

/* What the command line says over the configuration. */
struct mk_overrides {
    const char *const *listens; /* -p, as in Listen; NULL-terminated, or NULL */
    mk_str listen_host;         /* of a bare port in `listens`, and of the default one */
    unsigned workers;           /* -w, 0: as configured */
    const char *pid_file;       /* -I */
};

/* Where the configuration comes from: a file or folder, or text made of the command line. */
struct mk_origin {
    const char *path; /* NULL: `text` */
    mk_str text;
    struct mk_overrides overrides;
    struct mk_shared *shared; /* outlives generations; NULL: each has its own */
};

/* A certificate that a plugin has given a host. Its files need not be there. */
struct mk_brought {
    struct mk_brought *next;
    struct mk_tls_pair pair;
    const struct mk_conf_entry *entry; /* that loads the plugin */
    bool failed;
};

/* A host and what its sections said, kept for printing. */
struct mk_site {
    struct mk_host host;
    struct mk_host_settings settings;
    struct mk_pairs routes, error_pages, cache_control, handlers;
    const struct mk_conf_section *section;
    struct mk_brought *brought;
    struct mk_site *next;
};

enum { MK_LOGFILES_MAX = 64, MK_PLUGINS_MAX = 64 };

struct mk_loaded;
struct mk_bound;
struct mk_accept_hook;
struct mk_made_context;

/* What workers may read besides what they serve. */
struct mk_allowed {
    struct mk_allowed *next;
    mk_str path; /* ends with a NUL */
};

struct mk_generation {
    struct mk_arena arena;
    struct mk_conf_tree tree;
    struct mk_server_settings server;
    struct mk_site *sites;
    size_t n_sites;
    struct mk_hosts hosts;
    struct mk_mime mime;
    struct mk_pairs mime_types;
    struct mk_loaded *plugins;                          /* in the order of `Load` */
    struct mk_loaded *plugins_by_order[MK_PLUGINS_MAX]; /* in that of on_request */
    size_t n_plugins;
    struct mk_accept_hook *accept_hooks;
    size_t n_accept_hooks;
    struct mk_bound *bound; /* the sections that plugins bring, in the order in which they stand */
    mk_str folder;          /* relative paths are seen from here; ends with a NUL */
    struct mk_logfile logs[MK_LOGFILES_MAX];
    size_t n_logs;
    struct mk_logfile *error_log, *access_log;
    bool listens_by_default; /* nobody said where: sockets that are there already may take its place */
    struct mk_shared *shared, own_shared;
    struct mk_allowed *allowed;
    const struct mk_tls_module *tls; /* NULL: no Listen speaks it */
    struct mk_tls_domain tls_domain;
    struct mk_tls_tickets *tickets; /* of the server; NULL: none are given */
    struct mk_made_context *contexts;
    mk_str tls_challenges;      /* a folder; absent: none. Ends with a NUL */
    struct mk_watched *watched; /* it is to be loaded anew when one of these changes */
    uint64_t serial;            /* the master's: which one it is of those that it has served */
    bool wants_children;        /* workers are to be able to start other programs */
    bool has_identity;
    struct mk_identity identity;
};

/* Reads, checks and builds everything, opening roots and logs on the way. On any error: NULL, and the report
 * says why; `report` lives in `report_arena`. Warnings may come with success. */
struct mk_generation *mk_generation_load(const struct mk_origin *origin, struct mk_arena *report_arena,
                                         struct mk_conf_report *report) MK_MUST_USE;
void mk_generation_free(struct mk_generation *g);

/* Does any Listen speak TLS? */
bool mk_generation_has_tls(const struct mk_generation *g);

/* Opens the log, or finds it: an absolute path or a word, which outlives the generation and ends with a NUL.
 * The first who wants it to be rotated says how. NULL: *why, -E2BIG when there are too many. */
struct mk_logfile *mk_generation_log(struct mk_generation *g, mk_str where, uint64_t max_size, unsigned keep,
                                     mk_err *why);

/* The effective configuration, as text that loads again. */
void mk_generation_print(const struct mk_generation *g, struct mk_buf *out);

#endif
