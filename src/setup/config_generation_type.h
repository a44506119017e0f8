/* SPDX-License-Identifier: Apache-2.0 */
/* Generation: one loaded configuration, ready to serve. The master creates a generation, its workers inherit
 * it, and the master frees it after the next generation has replaced it. All its data is allocated in its
 * arena. */
#ifndef MK_SETUP_CONFIG_GENERATION_TYPE_H
#define MK_SETUP_CONFIG_GENERATION_TYPE_H

#include "conf/read.h"
#include "event/tls.h"
#include "logs/logset.h"
#include "os/identity.h"
#include "setup/file_watch.h"
#include "setup/settings.h"
#include "setup/shared_state.h"
#include "setup/tls_ticket_keys.h"
#include "web/vhost.h"

/* Command-line options that override the configuration. */
struct mk_config_overrides {
    const char *const *listens; /* values of -p, in the syntax of Listen; NULL-terminated, or NULL */
    mk_str listen_host;         /* host for the default port, and for ports without a host in `listens` */
    unsigned workers;           /* -w; 0: as configured */
    const char *pid_file;       /* -I */
    const char *root;           /* -o with -c: root for hosts without DocumentRoot; absolute, or NULL */
};

/* A program that embeds the server. Its configuration needs no DocumentRoot and no error log. */
struct mk_embedding {
    const struct mk_plugin *const *plugins; /* plugins of the program, loaded before configured plugins */
    size_t n_plugins;
    void *ctx;            /* context of these plugins */
    bool listens_if_told; /* listen only if there is a Listen */
    bool listens_nowhere; /* never listen, regardless of the configuration */
};

struct mk_config_generation;

struct mk_config_reader;

/* Source of the configuration: a file or folder, or a text, which the command line or the embedding program
 * provides. */
struct mk_config_source {
    const struct mk_config_reader *reader; /* &mk_config_reader; NULL: the source is `fill_tree` */
    const char *path;                      /* NULL: the source is `text` */
    mk_str text;
    const struct mk_conf_io *io; /* reads the files; NULL: from the disk */
    const char *folder;          /* base of relative paths; NULL: the folder of `path` */
    /* Adds a [SERVER], and [HOST] sections without keys. */
    mk_err (*fill_tree)(struct mk_conf_tree *tree, struct mk_arena *arena, const void *ctx);
    const void *ctx;                      /* for fill_tree() */
    const struct mk_embedding *embedding; /* NULL: not embedded. Otherwise `text` is added after the file */
    struct mk_config_overrides overrides;
    struct mk_shared_state *shared; /* outlives generations; NULL: each generation has its own */
    bool skips_certificates;        /* do not read certificates: `monkey certificates` does */
    bool tried;                     /* another process has just loaded the configuration without
                                                    errors */
    bool is_repeated;               /* the texts that serve are loaded again: no administrator has
                                                    requested it */
    const struct mk_config_generation *previous; /* the active generation; NULL: none. Needed only during the
                                                  * load */
};

/* A certificate that a plugin or the embedding program assigned to a host. A plugin names files, which may be
 * missing. The embedding program passes a certificate in memory (pair.kept_by). */
struct mk_plugin_certificate {
    struct mk_plugin_certificate *next;
    struct mk_tls_keypair pair;
    const struct mk_conf_entry *entry; /* `Load` entry of the plugin; NULL: assigned by the program */
    bool failed;
};

/* A [LOCATION] of a host. */
struct mk_location_config {
    struct mk_location_config *next;
    struct mk_location_settings settings; /* merged with the host's settings */
    const struct mk_conf_section *section;
};

/* Plugin sections of one host, in configuration order. */
struct mk_plugin_sections {
    struct mk_plugin_section *first, *last;
};

/* The setting that a permission follows from. Every configuration needs a permission without a section. */
struct mk_sandbox_reason {
    mk_str section, key; /* key: empty if it is the section itself */
    struct mk_conf_source_pos at;
};

/* Workers may start the programs in the folders of a host. */
struct mk_script_permission {
    struct mk_script_permission *next;
    struct mk_sandbox_reason reason;
    const char *const *variables; /* see struct mk_program */
};

/* A host, with the settings and sections that it was built from. */
struct mk_vhost_config {
    struct mk_vhost host;
    struct mk_vhost_settings settings;
    struct mk_conf_pairs routes, error_pages, cache_control, handlers;
    struct mk_location_config *locations; /* in configuration order */
    size_t n_locations;
    const struct mk_conf_section *section;
    struct mk_plugin_certificate *plugin_certificates;
    const struct mk_tls_on_demand *on_demand; /* NULL: none */
    const struct mk_vhosts *hosts;            /* virtual hosts of the first address of this host */
    struct mk_plugin_sections sections;
    struct mk_map *declared_routes;       /* see mk_config_declare_route(); NULL: none */
    struct mk_script_permission *scripts; /* see mk_config_allow_scripts(); NULL: none */
    bool spools;                          /* one of its routes spools request bodies */
    bool has_conflict; /* another host has the same name or is also the default; already reported */
    struct mk_vhost_config *next;
};

enum { MK_PLUGINS_MAX = 64 };

struct mk_available_feature;
struct mk_program;
struct mk_program_rules;
struct mk_loaded_plugin;
struct mk_plugin_section;
struct mk_accept_hook;
struct mk_sandbox;
struct mk_shared_tls_context;

enum mk_sandbox_permission {
    MK_SANDBOX_READ,
    MK_SANDBOX_WRITE,
    MK_SANDBOX_SPOOL, /* unnamed files below the folder */
    MK_SANDBOX_RESOLVE_NAMES,
    MK_SANDBOX_READ_TRUST_STORE,
    MK_SANDBOX_CONNECT,
    MK_SANDBOX_BIND,
    MK_SANDBOX_START_PROGRAMS, /* by the spawner, outside the sandbox */
};

/* A permission of workers, requested by a plugin or needed by the server itself. */
struct mk_sandbox_rule {
    struct mk_sandbox_rule *next;      /* in call order */
    const struct mk_loaded_plugin *by; /* NULL: the server */
    enum mk_sandbox_permission what;
    mk_str path;   /* file to read, folder below which files may be written, or program; NUL-terminated */
    int fd;        /* open folder of the server, used instead of `path`; -1: none */
    uint16_t port; /* TCP port to connect or bind to; 0: all ports */
    const struct mk_program *program; /* NULL: all programs in the folder, or none */
    const char *const *variables;     /* of all programs in the folder; see struct mk_program */
    /* Allows the files of the C library or of OpenSSL; NULL for other permissions. */
    mk_err (*allow_library_files)(struct mk_sandbox *box);
    struct mk_sandbox_reason reason;
};

/* Message channel of one worker index: all workers send, one receives. */
struct mk_worker_channel {
    int send_fd, receive_fd;
};

struct mk_config;

/* A condition that a plugin waits for before workers start. */
struct mk_readiness_check {
    struct mk_readiness_check *next;
    const struct mk_loaded_plugin *by;
    int fd; /* belongs to the plugin */
    uint64_t end_ms;
    int (*ready)(struct mk_config *config, void *data);
    void *data;
};

struct mk_stat_source_entry {
    struct mk_stat_source_entry *next;
    struct mk_stat_source source;
};

struct mk_config_generation {
    struct mk_arena arena;
    const struct mk_config_generation *previous; /* the active generation, only during the load */
    const struct mk_embedding *embedding;        /* NULL: none */
    struct mk_conf_tree tree;
    struct mk_server_settings server;
    struct mk_vhost_config *sites;
    size_t n_sites;
    struct mk_listens listens; /* addresses of the server and of all hosts, without duplicates */
    struct mk_vhosts hosts;    /* the hosts without a Listen of their own */
    struct mk_mime mime;
    struct mk_conf_pairs mime_types;
    struct mk_loaded_plugin *plugins;                          /* in `Load` order */
    struct mk_loaded_plugin *plugins_by_order[MK_PLUGINS_MAX]; /* in on_request order */
    size_t n_plugins;
    struct mk_available_feature *available; /* features of plugins that can be loaded by name */
    bool has_listed_available;              /* the list `available` has been filled */
    struct mk_accept_hook *accept_hooks;
    size_t n_accept_hooks;
    struct mk_plugin_sections sections; /* plugin sections that belong to no host */
    struct mk_map sections_by_settings; /* all plugin sections; key: pointer to the settings */
    mk_str folder;                      /* base of relative paths; NUL-terminated */
    struct mk_logset logs;
    struct mk_logfile *error_log, *access_log;
    struct mk_request_limits limits; /* defaults for hosts without their own limits */
    bool logs_access;                /* some access log is enabled */
    bool listens_by_default; /* only the default address is configured: inherited sockets may replace it */
    struct mk_shared_state *shared, own_shared;
    struct mk_sandbox_rule *allowed;
    struct mk_worker_channel *worker_channels; /* indexed by worker */
    unsigned n_worker_channels;                /* 0: no plugin wants messages, or there is no master */
    const struct mk_tls_module *tls;           /* NULL: no listener uses TLS, and none can be added */
    const struct mk_http2_module *http2;       /* NULL: no client can use HTTP/2 */
    struct mk_tls_tickets *tickets;            /* session ticket keys of the server; NULL: no tickets */
    struct mk_shared_tls_context *contexts;
    mk_str tls_challenges; /* folder of ACME challenge certificates, NUL-terminated; absent:
                                        * none */
    struct mk_certificate_list *certificate_list; /* NULL: no plugin shows it */
    struct mk_file_watch *watched;                /* a change to these files reloads the configuration */
    struct mk_readiness_check *awaits;            /* pending checks */
    int ready_fd; /* epoll instance with the descriptors of the pending checks; -1: none */
    struct mk_stat_source_entry *stat_sources;
    bool tried;          /* another process has just loaded the configuration without errors */
    bool is_repeated;    /* see mk_config_source.is_repeated */
    uint64_t serial;     /* number that the master assigns when it starts the workers; 0: none
                                        * yet */
    bool records_traces; /* see mk_config_record_traces() */
    const struct mk_program_rules *program_rules; /* NULL: workers start no programs */
    bool has_services; /* a plugin starts services that have processes of their own */
    bool wants_spool;  /* plugins spool bodies: workers may write files in `server.spool_folder` */
    bool has_identity;
    bool lacks_descriptors; /* descriptors ran out while opening folders of hosts; already reported */
    struct mk_identity identity;
};

#endif
