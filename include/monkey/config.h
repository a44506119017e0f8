/* SPDX-License-Identifier: Apache-2.0 */
/* Plugin configuration: tables of keys, and access to the configuration that is being loaded. */
#ifndef MONKEY_CONFIG_H
#define MONKEY_CONFIG_H

#include <monkey/addr.h>
#include <monkey/log.h>
#include <monkey/stats.h>
#include <monkey/str.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_vhost;
struct mk_handler;
struct mk_hash_key;
struct mk_plugin;
/** A log file of this configuration. mk_config_log() opens it, and mk_log_write() writes to it. */
struct mk_logfile;

/**
 * The keys that a configuration section accepts, declared as data. The parser, its error messages, `monkey
 * -T` and the reference manual all use the same table.
 *
 *     struct cache { uint64_t size; uint64_t ttl_ms; bool on; };
 *     static const struct mk_conf_key cache_keys[] = {
 *         {.name = "Cache", .type = MK_CONF_BOOL, MK_CONF_AT(struct cache, on), .default_value = "on",
 *          .help = "Keep responses in memory."},
 *         {.name = "CacheSize", .type = MK_CONF_SIZE, MK_CONF_AT(struct cache, size), .default_value = "16M",
 *          .min = 1 << 20, .help = "Size of the cache."},
 *         {.name = "CacheTime", .type = MK_CONF_TIME, MK_CONF_AT(struct cache, ttl_ms),
 *          .default_value = "1m", .zero_word = "off", .help = "Lifetime of a cached response."},
 *     };
 *     static const struct mk_conf_table cache_table = {
 *         .section = "CACHE", .keys = cache_keys, .n = 3, .size = sizeof(struct cache),
 *         .scope = MK_CONF_VHOST};
 */

/** The type of a value, and of the struct member that receives it. */
enum mk_conf_type {
    MK_CONF_BOOL,   /**< bool */
    MK_CONF_NUM,    /**< an unsigned integer of 1, 2, 4 or 8 bytes */
    MK_CONF_SIZE,   /**< an unsigned integer as above, in bytes */
    MK_CONF_TIME,   /**< an unsigned integer as above, in milliseconds */
    MK_CONF_TEXT,   /**< mk_str, NUL-terminated */
    MK_CONF_WORDS,  /**< struct mk_conf_words; a repeated key appends */
    MK_CONF_ENUM,   /**< an enum or unsigned integer: the index of the choice */
    MK_CONF_CUSTOM, /**< any type; parse() sets it */
};

/** Flags of a key. */
enum mk_conf_flags {
    MK_CONF_REPEATABLE = 1,   /**< may be repeated: parse() is called each time (WORDS may always be
                                   repeated) */
    MK_CONF_REQUIRED = 2,     /**< the section must contain the key */
    MK_CONF_MAY_BE_EMPTY = 4, /**< `Key` and `Key ""` are valid: TEXT, WORDS and CUSTOM only */
    MK_CONF_DEPRECATED = 8,   /**< still accepted, with a warning that names alias_of if it is set */
    MK_CONF_IGNORED = 16, /**< obsolete, without effect: a warning is logged and the value is not parsed */
    MK_CONF_READS = 32,   /**< the value names files that the server reads, or programs that it starts */
    MK_CONF_WRITES = 64   /**< the value names a file that the server creates or writes, or a folder with such
                               files. `monkey explain --systemd` makes it writable. Workers also need
                               mk_config_allow_writing() for files that they open themselves */
};

/** Where a plugin section may appear. */
enum mk_conf_scope {
    MK_CONF_SERVER, /**< the section may appear anywhere, and applies to the whole server */
    /** the section applies to the virtual host of the [HOST] above it; before the first [HOST], it applies to
     * all virtual hosts without their own section */
    MK_CONF_VHOST
};

/** The value of a key of type MK_CONF_WORDS. */
struct mk_conf_words {
    mk_str *v;
    size_t n;
};

struct mk_buf;
struct mk_conf_key;
struct mk_conf_table;

/**
 * The configuration that is being loaded, as passed to load() and host() of a plugin. The functions below
 * report mistakes with file and line; the server accepts the configuration only if no error was reported.
 */
struct mk_config;

/** The current position of the configuration parser, for reading values and reporting errors. Valid
 * during the call that receives it. */
struct mk_conf_ctx;
struct mk_hash_key;

/** The key and value, with `${NAME}` expanded and surrounding whitespace removed. They live as long as the
 * configuration. */
MK_API mk_str mk_conf_ctx_key(const struct mk_conf_ctx *ctx);
MK_API mk_str mk_conf_ctx_value(const struct mk_conf_ctx *ctx);
/** The struct that receives the values of the section. */
MK_API void *mk_conf_ctx_out(const struct mk_conf_ctx *ctx);
/**
 * In bind() of a handler: returns the configuration that is being loaded, as the handler's plugin sees it in
 * host(), for the virtual host that owns the route (mk_config_add_route() works only in host()). Valid during
 * the call. Returns NULL in parse() and entry(), because sections are parsed before any plugin is loaded, and
 * for sections and handlers of the server itself.
 */
MK_API struct mk_config *mk_conf_ctx_config(const struct mk_conf_ctx *ctx);
/** Allocates zeroed memory that lives as long as the configuration. Returns NULL, and reports the error, if
 * out of memory. */
MK_API void *mk_conf_ctx_alloc(const struct mk_conf_ctx *ctx, size_t size);
/**
 * Appends a copy of `item` to a dynamic array, in memory that lives as long as the configuration. Only this
 * function may grow the array. `vector` is the address of a pointer to the elements, initially NULL; `n`
 * counts the elements, and `size` is the size of each in bytes. Returns false, and reports the error, if out
 * of memory.
 *
 *     if (!mk_conf_ctx_append(ctx, &settings->names, &settings->n_names, &word, sizeof word))
 *         return false;
 */
MK_API bool mk_conf_ctx_append(const struct mk_conf_ctx *ctx, void *vector, size_t *n, const void *item,
                               size_t size);
/** Returns the next word of *rest with its quotes removed; absent at the end. Returns false, and
 * reports the error, if a quote is not closed. */
MK_API bool mk_conf_ctx_word(const struct mk_conf_ctx *ctx, mk_str *rest, mk_str *word);
/** Parses a time above 0, in the syntax of MK_CONF_TIME keys, and stores it in milliseconds; `off` yields 0.
 * Returns false, and reports the error, for anything else. */
MK_API bool mk_conf_ctx_time(const struct mk_conf_ctx *ctx, mk_str text, uint32_t *ms);
/** Resolves a path relative to the folder of the configuration file that contains it; NUL-terminated.
 * Absent if out of memory. */
MK_API mk_str mk_conf_ctx_path(const struct mk_conf_ctx *ctx, mk_str path);
/** Parses the value of a key `Location`: a decoded path that begins with `/` and applies to every path that
 * begins with it. Returns false, and reports the error, for a pattern or a path that no request can have. */
MK_API bool mk_conf_ctx_location(const struct mk_conf_ctx *ctx, mk_str value, mk_str *location);
/**
 * Reports an error with file, line and source text at `part`, a slice of the key or value; an absent `part`
 * means the whole value. The configuration is rejected, but the rest of it is still checked. You may add a
 * hint afterwards.
 */
MK_API void mk_conf_ctx_error(const struct mk_conf_ctx *ctx, mk_str part, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
MK_API void mk_conf_ctx_warn(const struct mk_conf_ctx *ctx, mk_str part, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
MK_API void mk_conf_ctx_hint(const struct mk_conf_ctx *ctx, const char *fmt, ...) MK_API_PRINTF(2, 3);

/**
 * Parses `value` into `field`, which is zeroed before the first call. Returns false if the value is invalid.
 * Either the function has reported the error with mk_conf_ctx_error(), or the server reports that key->syntax
 * was expected.
 */
typedef bool mk_conf_parse_fn(const struct mk_conf_ctx *ctx, mk_str value, void *field);
/** Writes the i-th value of the field in the syntax of parse(). Returns false if `i` is out of range. */
typedef bool mk_conf_show_fn(const void *field, size_t i, struct mk_buf *out);
/** Handles an entry whose key is not in the table. The value of the entry is not empty. The function reports
 * errors itself. */
typedef void mk_conf_entry_fn(const struct mk_conf_ctx *ctx);
/** Writes the key and value of the i-th free-form entry. Returns false if `i` is out of range. */
typedef bool mk_conf_show_entry_fn(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value);

/** Wraps the help text of a key or a section, which appears only in the reference manual. Builds with
 * MK_KEY_HELP=OFF omit these texts. */
#ifdef MK_NO_HELP
#define MK_HELP(text) MK_API_NULL
#else
#define MK_HELP(text) text
#endif

/** A key of a section. Set name, type, MK_CONF_AT and any other member you need; leave the rest zero. */
struct mk_conf_key {
    const char *name;
    enum mk_conf_type type;
    unsigned flags;             /**< enum mk_conf_flags */
    size_t offset, size;        /**< position and size of the member: set by MK_CONF_AT */
    uint64_t min, max;          /**< range of the value (NUM, SIZE, TIME) or of its length (TEXT); WORDS: max
                                     is the maximum number of words. A max of 0 allows every value that fits
                                     in the member */
    uint64_t unit;              /**< unit of a bare number; SIZE: bytes (0 means 1), TIME: ms (0 means
                                     1000) */
    const char *zero_word;      /**< NUM, SIZE, TIME: a word for 0 ("auto", "off"), which is valid even if min
                                     is above 0 */
    const char *const *choices; /**< ENUM: the words, ended by NULL; case-insensitive */
    const char *default_value;  /**< the default in configuration syntax; NULL: the member keeps its value */
    const char *syntax;         /**< CUSTOM: syntax of a value ("port or address:port") */
    const char *alias_of;       /**< canonical name of this key; an alias needs only name and flags */
    const char *help;           /**< MK_HELP() of one line, Markdown allowed; may be NULL */
    mk_conf_parse_fn *parse;
    mk_conf_show_fn *show; /**< NULL: the CUSTOM key cannot be printed and is omitted */
    uint64_t reserved[2];  /**< must be zero */
};

/** Sets offset and size of the member that receives the value: `MK_CONF_AT(struct cache, size)` among the
 * designated initializers of a key. */
#define MK_CONF_AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

/** A section: its name, its keys, and the struct that they fill. */
struct mk_conf_table {
    const char *section;
    const struct mk_conf_key *keys;
    size_t n;
    /** True: each section of this name fills its own struct. False: all sections of this name in a virtual
     * host fill one struct. A second section is then allowed only if the table has rules (`entry`),
     * repeatable keys or keys of type MK_CONF_WORDS; it adds to the first section. */
    bool repeatable;
    const char *help; /**< a paragraph in MK_HELP(); may be NULL */
    /** Receives, in order, the entries that match no key above. For sections whose keys are patterns, codes,
     * names or rules. NULL: such entries are errors. */
    mk_conf_entry_fn *entry;
    mk_conf_show_entry_fn *show_entry;
    const char *entry_syntax; /**< syntax of a free-form entry: "pattern handler [words...]" */
    const char *entry_help;
    size_t size; /**< size of the struct that a section fills; 0 in the server's own tables */
    enum mk_conf_scope scope;
    uint64_t reserved[4]; /**< must be zero */
};

/**
 * Iterates over the structs filled from the sections of this table, in order. Pass NULL for the first, then
 * the previous result; returns NULL at the end. In load(): sections of scope MK_CONF_SERVER. In host(): the
 * sections of the virtual host, or, if it has none, those before the first [HOST]. The structs live as long
 * as the configuration.
 *
 *     for (const struct place *p = NULL; (p = mk_config_section(config, &place_table, p));)
 */
MK_API void *mk_config_section(struct mk_config *config, const struct mk_conf_table *table,
                               const void *after);
/**
 * Returns the effective settings: those of the first section of this table or, if there is none, a struct
 * with the default of every key. Returns NULL, and reports the error, if out of memory.
 */
MK_API void *mk_config_settings(struct mk_config *config, const struct mk_conf_table *table);
/** Returns a new struct with the default of every key, regardless of the sections. Returns NULL, and reports
 * the error, if out of memory. */
MK_API void *mk_config_defaults(struct mk_config *config, const struct mk_conf_table *table);
/**
 * Returns the data that load() of `plugin` has set for this configuration. A function that `plugin` exports
 * to other plugins gets its data with this call (see `needs` in monkey/plugin.h). NULL if the plugin is not
 * loaded, or not loaded yet.
 */
MK_API void *mk_config_data(const struct mk_config *config, const struct mk_plugin *plugin);

/** Allocates zeroed memory that lives as long as the configuration. Returns NULL, and reports the error, if
 * out of memory. */
MK_API void *mk_config_alloc(struct mk_config *config, size_t size);
/** Creates a set of networks for mk_network_set_next(). The set lives as long as the configuration. `numbers`
 * holds one number per network, and duplicates are allowed; if `numbers` is NULL, the number of each network
 * is its index. Returns NULL, and reports the error, if out of memory. */
MK_API struct mk_network_set *mk_config_network_set(struct mk_config *config,
                                                    const struct mk_network *networks,
                                                    const uint32_t *numbers, size_t n);
/** Returns a NUL-terminated copy that lives as long as the configuration. Absent if out of memory. */
MK_API mk_str mk_config_copy(struct mk_config *config, mk_str text);
/** Calls fn(data) when the configuration is released. Returns false if out of memory; fn is then never
 * called. */
MK_API bool mk_config_add_cleanup(struct mk_config *config, void (*fn)(void *data), void *data);

/**
 * Reports an error or a warning at `key` of the configuration section that `section` was parsed from. A NULL
 * key means that section itself, and a NULL section the plugin's Load line. You may add a hint afterwards.
 *
 *     if (cache->size < 4096)
 *         mk_config_error(config, cache, "Size", "a cache needs at least 4096 bytes");
 */
MK_API void mk_config_error(struct mk_config *config, const void *section, const char *key, const char *fmt,
                            ...) MK_API_PRINTF(4, 5);
MK_API void mk_config_warn(struct mk_config *config, const void *section, const char *key, const char *fmt,
                           ...) MK_API_PRINTF(4, 5);
/**
 * Reports an error (MK_LOG_ERROR) or a warning at the line of `key` that contains `part`: a slice of the
 * key's value, such as a word that parse() has read. Use it for repeatable keys. If no line contains `part`,
 * the report refers to the last line of the key. In host(), a NULL section means the [HOST]: `ServerName`,
 * with a string from mk_vhost_name_at(), selects the line of that name.
 */
MK_API void mk_config_report(struct mk_config *config, enum mk_log_level level, const void *section,
                             const char *key, mk_str part, const char *fmt, ...) MK_API_PRINTF(6, 7);
MK_API void mk_config_hint(struct mk_config *config, const char *fmt, ...) MK_API_PRINTF(2, 3);
/** Adds the hint "did you mean `...`?" with the word most similar to `word`, if any is similar enough. */
MK_API void mk_config_suggest(struct mk_config *config, mk_str word, const mk_str *words, size_t n);

/**
 * Resolves a path relative to the folder of the file that contains the section; NUL-terminated. Absent
 * if out of memory.
 *
 *     mk_str path = mk_config_path(config, cache, cache->folder);
 *     if (!path.p)
 *         return -ENOMEM;
 *     mk_config_allow_path(config, cache, "Folder", path);
 */
MK_API mk_str mk_config_path(struct mk_config *config, const void *section, mk_str path);

/**
 * Returns zeroed, page-aligned memory that all workers share, including those of later configurations: the
 * same name and size yield the same memory for the lifetime of the master. Access it with C11 atomics,
 * because a worker may die at any instruction. Returns NULL, and reports the error, if out of memory. `name`
 * has at most 63 bytes; start it with the name of your plugin.
 *
 *     struct hits *hits = mk_config_shared(config, "example-hits", sizeof *hits); // the same memory in all workers
 *     if (!hits)
 *         return -ENOMEM;
 */
MK_API void *mk_config_shared(struct mk_config *config, const char *name, size_t size);
/** The statistics of the server: see mk_stat_register_table(). Returns NULL, and reports the error, if out of
 * memory. */
MK_API struct mk_stat_registry *mk_config_statistics(struct mk_config *config);
/** Registers the statistics of another server. Plugins read them with mk_worker_statistics_at(), and report
 * them along with the server's own. Copies the struct. Call it in load() or master_start(). Returns 0 or
 * -ENOMEM. */
MK_API int mk_config_add_statistics_sized(struct mk_config *config, const struct mk_stat_source *source,
                                          size_t source_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int mk_config_add_statistics(struct mk_config *config,
                                                           const struct mk_stat_source *source)
{
    return mk_config_add_statistics_sized(config, source, sizeof *source);
}
/**
 * Returns a descriptor that all workers inherit, including those of later configurations. make() creates the
 * descriptor when the name is first used, and the descriptor lives as long as the master. make() must set
 * close-on-exec. If make() fails, it returns a negative errno value, which this function reports and returns.
 * Call it in load() or master_start().
 */
MK_API int mk_config_shared_fd(struct mk_config *config, const char *name, int (*make)(void)) MK_API_MUST_USE;
/**
 * Returns a random key for mk_hash() that is private to this server. The same purpose yields the same key in
 * all of its processes, across reloads and binary upgrades. Returns 0, or -ENOMEM after reporting the error.
 * Start `purpose` with the name of your plugin.
 */
MK_API int mk_config_hash_key(struct mk_config *config, const char *purpose,
                              struct mk_hash_key *out) MK_API_MUST_USE;

/**
 * Opens a log for mk_log_write(): a path, `stdout`, `stderr`, `syslog` or `off`. The master opens it with its
 * own privileges, and reopens it on SIGUSR1. If `max_size` is above 0, a file that reaches this size is
 * rotated within about a second: it becomes FILE.1, FILE.1 becomes FILE.2, and so on, up to `keep` old files.
 * Logs with equal paths are shared; the first call with a size determines the rotation. Returns NULL on
 * failure, with the error reported at `key`.
 */
MK_API struct mk_logfile *mk_config_log(struct mk_config *config, const void *section, const char *key,
                                        mk_str where, uint64_t max_size, unsigned keep);

/** The destination of the server's error log: a path, `stderr` or `syslog`; NUL-terminated. Call it in
 * master_start(), when the log is open. */
MK_API mk_str mk_config_error_log(const struct mk_config *config);
/** Does the destination of the error log add a timestamp and the process ID to each line, as syslog and the
 * systemd journal do? Its lines then start with a priority, such as `<3>` for an error. */
MK_API bool mk_config_error_log_has_priorities(const struct mk_config *config);
/** Are the lines of the error log JSON objects (`ErrorLogFormat json`)? */
MK_API bool mk_config_error_log_is_json(const struct mk_config *config);

/**
 * In master_start(): delays the start of the workers of this configuration until `ready` returns 0. The
 * master calls `ready` at once, whenever the descriptor `fd` is readable, and after `timeout_ms`, until it
 * returns a value other than -EAGAIN. The master does its other work in between, so `ready` must not block.
 * Any value other than 0 and -EAGAIN is an error and rejects the configuration, and so does -EAGAIN after the
 * timeout; report it as in load(). `ready` may also be called at other times, but not after unload().
 * Keep `fd` open until `ready` has returned its last value. Returns 0, or a negative errno value for
 * master_start() to return: -ENOMEM, -EEXIST if the descriptor belongs to another wait, or the reason why it
 * cannot be polled.
 */
MK_API int mk_config_wait_ready(struct mk_config *config, int fd, uint32_t timeout_ms,
                                int (*ready)(struct mk_config *config, void *data),
                                void *data) MK_API_MUST_USE;
/** In load(): returns true if another process has just loaded this configuration without errors. If so, skip
 * checks that are slow or may hang, because this process is serving requests. */
MK_API bool mk_config_was_validated(const struct mk_config *config);
/** Does the server load the texts that serve again, because a watched file has changed or a plugin has requested a reload?
 * What an administrator has changed at run time should then stay. */
MK_API bool mk_config_is_repeated(const struct mk_config *config);

/** Only in host(): declares that the plugin writes the access log of this virtual host. Requests for this
 * host are then omitted from the AccessLog files of [SERVER], [HOST] and [LOCATION]. */
MK_API void mk_config_replace_access_log(struct mk_config *config);

/** Only in host(): adds a route after the configured ones. On a virtual host without [ROUTES], the route
 * comes before the static files, or after them if it matches every path. A `pattern` that mk_pattern_set()
 * rejects is reported as an error. `pattern` and `data` must live as long as the configuration. */
MK_API void mk_config_add_route(struct mk_config *config, mk_str pattern, const struct mk_handler *handler,
                                void *data);
/** Adds a route before the configured ones, but after the `Redirect` of the virtual host. The handler
 * returns MK_NEXT for requests that it does not handle. */
MK_API void mk_config_prepend_route(struct mk_config *config, mk_str pattern,
                                    const struct mk_handler *handler, void *data);

/**
 * Only in host(): declares a route that a handler serves, if mk_config_prepend_route() has added the handler
 * for all paths. The server thus detects that two plugins serve the same route. `route` has the form of
 * mk_router_add(). `host` restricts the route to requests for this host; empty: any host. `where` is the
 * source location of the route, for messages. Copies all texts.
 *
 * Returns 0, or -ENOMEM. Returns -EEXIST if another declared route of this virtual host matches the same
 * requests: *conflict then describes both routes, for mk_config_error().
 */
MK_API int mk_config_declare_route(struct mk_config *config, mk_str host, mk_str route, mk_str where,
                                   mk_str *conflict) MK_API_MUST_USE;

/**
 * Environment variable of the process that checks the configuration of an isolated service. Its value is the
 * number of a descriptor. A plugin with such routes writes one line per route to the descriptor: the host,
 * the route and its source location, separated by tabs. The front server then declares the routes with
 * mk_config_declare_route().
 */
#define MK_ROUTES_FD_VARIABLE "MONKEY_ROUTES_FD"

/** Declares that the plugin starts services with their own master, workers and sandbox, so that
 * `monkey explain` mentions them. */
MK_API void mk_config_declare_services(struct mk_config *config);

/** Returns the user that workers and their subprocesses run as, for changing the owner of files that workers
 * write. Returns false if they run as the user of the server. */
MK_API bool mk_config_user(const struct mk_config *config, uid_t *uid, gid_t *gid);

/** Allows workers to read this file or folder despite the sandbox. `section` and `key` name the setting that
 * requires this access, as for mk_config_error(); pass NULL for both if the plugin or the route itself
 * requires it. */
MK_API void mk_config_allow_path(struct mk_config *config, const void *section, const char *key, mk_str path);
/**
 * Allows workers to read, create, write, rename and remove files and folders below this folder. This changes
 * only the sandbox: the folder must exist when workers start, and the user of the workers (mk_config_user())
 * needs permission for it.
 */
MK_API void mk_config_allow_writing(struct mk_config *config, const void *section, const char *key,
                                    mk_str folder);
/** Allows workers to read the files that getaddrinfo() needs, and to connect to TCP port 53. getaddrinfo()
 * blocks, so call it in a thread. */
MK_API void mk_config_allow_resolver(struct mk_config *config, const void *section, const char *key);
/** Allows workers to read the trusted certificates of the system, for connections to other servers.
 * Private keys stay inaccessible. */
MK_API void mk_config_allow_trust_store(struct mk_config *config, const void *section, const char *key);

/**
 * Allows workers to connect sockets to this TCP port of any machine; 0: to all ports. Connections made by
 * mk_upstream_open() and other functions of this interface need no permission. Neither do Unix sockets, UDP,
 * or programs that workers start.
 */
MK_API void mk_config_allow_connect(struct mk_config *config, const void *section, const char *key,
                                    uint16_t port);
/** Allows workers to bind sockets to this TCP port, and to call `listen()`; 0: to all ports. The server's own
 * listening sockets need no permission. */
MK_API void mk_config_allow_bind(struct mk_config *config, const void *section, const char *key,
                                 uint16_t port);

/** A program that workers may start. The lists must live as long as the configuration. */
struct mk_program {
    const char *path;       /**< an absolute path; if it ends with a slash, all programs below this folder */
    bool first_worker_only; /**< only the worker with the index 0 starts the program */
    /** exactly one argument must follow `arguments`: a file in a folder of mk_config_allow_scripts(). The
     * variable SCRIPT_FILENAME must equal this argument, and PATH_TRANSLATED, if set, must be in such a
     * folder, unless `variables` lists another value */
    bool takes_script;
    const char *const *arguments; /**< the only permitted arguments after argv[0], ended by NULL; NULL: any */
    /** the only permitted variables, each `NAME`, `NAME*` for all names with this prefix except HTTP_PROXY,
     * or `NAME=VALUE` for this value only; ended by NULL. NULL: any, such as LD_PRELOAD */
    const char *const *variables;
};

/**
 * Allows workers to start this program with mk_subprocess_start(), outside the sandbox. Each worker that may
 * start programs gets a spawner process, which refuses to start any other program, so that even a compromised
 * worker cannot start one. Restrict the arguments and variables as far as you can, because `sh -c` and
 * `LD_PRELOAD` can run any program.
 */
MK_API void mk_config_allow_program_sized(struct mk_config *config, const void *section, const char *key,
                                          const struct mk_program *program, size_t program_size);
static inline void mk_config_allow_program(struct mk_config *config, const void *section, const char *key,
                                           const struct mk_program *program)
{
    mk_config_allow_program_sized(config, section, key, program, sizeof *program);
}
/** Only in host(), or in bind() of a handler: allows workers to start all programs in the folders of this
 * virtual host (DocumentRoot, Alias, UserDir), with any arguments and these `variables` (see struct
 * mk_program). Unless `variables` is NULL, SCRIPT_FILENAME must be the file name of the program, and
 * PATH_TRANSLATED, if set, must be in one of these folders. */
MK_API void mk_config_allow_scripts(struct mk_config *config, const char *const *variables);

#ifdef __cplusplus
}
#endif

#endif
