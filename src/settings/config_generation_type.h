/* SPDX-License-Identifier: Apache-2.0 */
/* One loaded configuration, ready to serve: the master creates it, the workers that serve it inherit it, and
 * the master frees it once the next one has replaced it. Everything in it lives in its arena. */
#ifndef MK_SETTINGS_CONFIG_GENERATION_TYPE_H
#define MK_SETTINGS_CONFIG_GENERATION_TYPE_H

#include "conf/read.h"
#include "logs/logset.h"
#include "net/tls.h"
#include "os/identity.h"
#include "settings/file_watch.h"
#include "settings/settings.h"
#include "settings/shared_state.h"
#include "settings/tls_ticket_keys.h"
#include "web/vhost.h"

/* Command-line options that override the configuration. */
struct mk_config_overrides {
    const char *const *listens; /* -p, as in Listen; NULL-terminated, or NULL */
    mk_str listen_host;         /* of a bare port in `listens`, and of the default one */
    unsigned workers;           /* -w, 0: as configured */
    const char *pid_file;       /* -I */
    const char *root;           /* -o with -c: of hosts without a DocumentRoot; absolute, or NULL */
};

/* A program that has the server inside of it. It may do without a DocumentRoot and without an error log. */
struct mk_embedding {
    const struct mk_plugin *const *plugins; /* its own, which are loaded before those of the configuration */
    size_t n_plugins;
    void *ctx;            /* for them */
    bool listens_if_told; /* without a Listen it listens nowhere */
    bool listens_nowhere; /* whatever the configuration says */
};

struct mk_config_generation;

/* The source of the configuration: a file or folder, or text made from the command line. */
struct mk_config_source {
    const char *path; /* NULL: `text` */
    mk_str text;
    const struct mk_embedding *embedding; /* NULL: the server itself. Else `text` comes after the file */
    struct mk_config_overrides overrides;
    struct mk_shared_state *shared; /* outlives generations; NULL: each has its own */
    bool tried;                     /* another process has loaded it just now, and found no mistake */
    const struct mk_config_generation *previous; /* that serves; NULL: none. It need not outlive the load */
};

/* A certificate that a plugin has given a host. Its files need not be there. */
struct mk_plugin_certificate {
    struct mk_plugin_certificate *next;
    struct mk_tls_keypair pair;
    const struct mk_conf_entry *entry; /* that loads the plugin */
    bool failed;
};

/* A [LOCATION] of a host. */
struct mk_location_config {
    struct mk_location_config *next;
    struct mk_location_settings settings; /* with those of the host where it says nothing */
    const struct mk_conf_section *section;
};

/* The sections of plugins of one host, in the order of the configuration. */
struct mk_plugin_sections {
    struct mk_plugin_section *first, *last;
};

/* A host and what its sections said, kept for printing. */
struct mk_vhost_config {
    struct mk_vhost host;
    struct mk_vhost_settings settings;
    struct mk_conf_pairs routes, error_pages, cache_control, handlers;
    struct mk_location_config *locations; /* in the order of the configuration */
    size_t n_locations;
    const struct mk_conf_section *section;
    struct mk_plugin_certificate *brought;
    const struct mk_vhosts *hosts; /* the hosts at its first address */
    struct mk_plugin_sections sections;
    bool spools;       /* a route of it spools content */
    bool has_conflict; /* it shares a name with another host, which was reported */
    struct mk_vhost_config *next;
};

enum { MK_PLUGINS_MAX = 64 };

struct mk_available_feature;
struct mk_loaded_plugin;
struct mk_plugin_section;
struct mk_accept_hook;
struct mk_shared_tls_context;

enum mk_sandbox_permission {
    MK_SANDBOX_READ,
    MK_SANDBOX_WRITE,
    MK_SANDBOX_RESOLVE_NAMES,
    MK_SANDBOX_READ_TRUST_STORE
};

/* What a plugin lets workers do despite the sandbox. */
struct mk_sandbox_rule {
    struct mk_sandbox_rule *next; /* in the order of the calls */
    const struct mk_loaded_plugin *by;
    enum mk_sandbox_permission what;
    mk_str path; /* to read, or to write below; ends with a NUL */
};

/* Messages for the worker of one place: all workers send, that one receives. */
struct mk_worker_channel {
    int send_fd, receive_fd;
};

struct mk_config;

/* What a plugin waits for before workers start. */
struct mk_readiness_check {
    struct mk_readiness_check *next;
    const struct mk_loaded_plugin *by;
    int (*ready)(struct mk_config *config, void *data);
    void *data;
};

struct mk_config_generation {
    struct mk_arena arena;
    const struct mk_config_generation *previous; /* as in mk_config_source, during the load */
    const struct mk_embedding *embedding;        /* NULL: none */
    struct mk_conf_tree tree;
    struct mk_server_settings server;
    struct mk_vhost_config *sites;
    size_t n_sites;
    struct mk_listens listens; /* of the server and of all hosts, without duplicates */
    struct mk_vhosts hosts;    /* without a Listen of their own */
    struct mk_mime mime;
    struct mk_conf_pairs mime_types;
    struct mk_loaded_plugin *plugins;                          /* in the order of `Load` */
    struct mk_loaded_plugin *plugins_by_order[MK_PLUGINS_MAX]; /* in that of on_request */
    size_t n_plugins;
    struct mk_available_feature *available; /* what plugins would bring that can be loaded by a word */
    bool has_listed_available;              /* they were listed */
    struct mk_accept_hook *accept_hooks;
    size_t n_accept_hooks;
    struct mk_plugin_sections sections; /* above all hosts, or of the server */
    struct mk_map sections_by_settings; /* those of hosts, too; the key is the pointer to the settings */
    mk_str folder;                      /* relative paths start here; ends with a NUL */
    struct mk_logset logs;
    struct mk_logfile *error_log, *access_log;
    struct mk_request_limits limits; /* of requests, where hosts have none of their own */
    bool logs_access;                /* some access log is not off */
    bool listens_by_default;         /* the default address: inherited sockets may replace it */
    struct mk_shared_state *shared, own_shared;
    struct mk_sandbox_rule *allowed;
    struct mk_worker_channel *worker_channels; /* by the index of the worker */
    unsigned n_worker_channels;                /* 0: no plugin wants messages, or there is no master */
    const struct mk_tls_module *tls;           /* NULL: no Listen has TLS */
    const struct mk_http2_module *http2;       /* NULL: no client can speak HTTP/2 */
    struct mk_tls_tickets *tickets;            /* of the server; NULL: no tickets are issued */
    struct mk_shared_tls_context *contexts;
    mk_str tls_challenges;             /* a folder; absent: none. Ends with a NUL */
    struct mk_file_watch *watched;     /* a change of one of these files reloads the configuration */
    struct mk_readiness_check *awaits; /* that are not over */
    bool tried;                        /* as in mk_config_source */
    uint64_t serial;                   /* its number among the generations that the master has served */
    bool wants_children;               /* workers must be able to start other programs */
    bool wants_spool; /* plugins spool content: workers may write files in `server.spool_folder` */
    bool has_identity;
    bool lacks_descriptors; /* for the folders of its hosts, which was reported */
    struct mk_identity identity;
};

#endif
