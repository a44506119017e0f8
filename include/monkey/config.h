/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a plugin: tables of keys, and the configuration that is being loaded. */
#ifndef MONKEY_CONFIG_H
#define MONKEY_CONFIG_H

#include <monkey/addr.h>
#include <monkey/log.h>
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
struct mk_stat_registry;
/** A log of this configuration: mk_config_log() opens it, mk_log_write() writes to it. */
struct mk_logfile;

/**
 * What a section of the configuration may hold, as data: from one table come the reading, the messages,
 * `monkey -T` and the reference.
 *
 *     struct cache { uint64_t size; uint64_t ttl_ms; bool on; };
 *     static const struct mk_conf_key cache_keys[] = {
 *         {.name = "Cache", .type = MK_CONF_BOOL, MK_CONF_AT(struct cache, on), .def = "on",
 *          .help = "Keep answers in memory."},
 *         {.name = "CacheSize", .type = MK_CONF_SIZE, MK_CONF_AT(struct cache, size), .def = "16M",
 *          .min = 1 << 20, .help = "Memory for it."},
 *         {.name = "CacheTime", .type = MK_CONF_TIME, MK_CONF_AT(struct cache, ttl_ms), .def = "1m",
 *          .zero = "off", .help = "How long an answer is good."},
 *     };
 *     static const struct mk_conf_table cache_table = {
 *         .section = "CACHE", .keys = cache_keys, .n = 3, .size = sizeof(struct cache),
 *         .scope = MK_CONF_VHOST};
 */

/** The type of a value, and of the member that takes it. */
enum mk_conf_type {
    MK_CONF_BOOL,   /**< bool */
    MK_CONF_NUM,    /**< an unsigned integer of 1, 2, 4 or 8 bytes */
    MK_CONF_SIZE,   /**< the same, in bytes */
    MK_CONF_TIME,   /**< the same, in milliseconds */
    MK_CONF_TEXT,   /**< mk_str; its text is followed by a NUL */
    MK_CONF_WORDS,  /**< struct mk_conf_words; a repeated key appends */
    MK_CONF_ENUM,   /**< an enum or unsigned integer: the index of the choice */
    MK_CONF_CUSTOM, /**< whatever parse() fills */
    MK_CONF_TYPES
};

/** What else there is to know of a key. */
enum mk_conf_flags {
    MK_CONF_REPEATABLE = 1,   /**< may be repeated: parse() is called each time (WORDS always may) */
    MK_CONF_REQUIRED = 2,     /**< the section must have it */
    MK_CONF_MAY_BE_EMPTY = 4, /**< `Key` and `Key ""` are fine: TEXT, WORDS and CUSTOM only */
    MK_CONF_DEPRECATED = 8,   /**< works, with a warning that names alias_of if there is one */
    MK_CONF_IGNORED = 16 /**< was a key once and does nothing now: a warning, the value is not looked at */
};

/** Where a section of a plugin is allowed. */
enum mk_conf_scope {
    MK_CONF_SERVER, /**< anywhere: it is about the server as a whole */
    /** below a [HOST], for that host; above the first [HOST] for all hosts that have none of their own */
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
 * The configuration that is being loaded, as load() and host() of a plugin see it. Report mistakes with file
 * and line; the server accepts the configuration only if no error was reported.
 */
struct mk_config;

/** The place in the configuration that is being read; valid during the call that hands it out. */
struct mk_conf_ctx;
struct mk_hash_key;

/** Key and value as written (references replaced, no blanks at the ends); they live as long as the
 * configuration. */
MK_API mk_str mk_conf_ctx_key(const struct mk_conf_ctx *spot);
MK_API mk_str mk_conf_ctx_value(const struct mk_conf_ctx *spot);
/** The struct that is being filled. */
MK_API void *mk_conf_ctx_out(const struct mk_conf_ctx *spot);
/**
 * In bind() of a handler: the configuration that is being loaded, as the plugin of the handler sees it in
 * host(), with the host whose route it is (mk_config_add_route() is for host() alone). Valid during the call.
 * NULL in parse() and entry(): sections are read before any plugin is loaded; and for what is the server's.
 */
MK_API struct mk_config *mk_conf_ctx_config(const struct mk_conf_ctx *spot);
/** Zeroed memory that lives as long as the configuration. NULL when memory is out, which has been reported.
 */
MK_API void *mk_conf_ctx_alloc(const struct mk_conf_ctx *spot, size_t size);
/**
 * Copies `item` to the end of a vector that only this function makes longer, in memory that lives as long as
 * the configuration. `vector` is the address of a pointer to the elements, NULL at first; `n` is their
 * number, `size` that of bytes in each. False when memory is out, which has been reported.
 *
 *     if (!mk_conf_ctx_append(spot, &settings->names, &settings->n_names, &word, sizeof word))
 *         return false;
 */
MK_API bool mk_conf_ctx_append(const struct mk_conf_ctx *spot, void *vector, size_t *n, const void *item,
                               size_t size);
/** The next word of *rest, quotes removed; absent at the end. False (reported) for a quote that is not
 * closed. */
MK_API bool mk_conf_ctx_word(const struct mk_conf_ctx *spot, mk_str *rest, mk_str *word);
/** A time as the keys of type MK_CONF_TIME take it, above 0, in milliseconds; or `off`, which is 0. False
 * (reported) for anything else. */
MK_API bool mk_conf_ctx_time(const struct mk_conf_ctx *spot, mk_str text, uint32_t *ms);
/** A path seen from the folder of the file that says it; ends with a NUL. Absent when memory is out. */
MK_API mk_str mk_conf_ctx_path(const struct mk_conf_ctx *spot, mk_str path);
/**
 * Reports an error, with file, line and the source, at `part`, a slice of key or value; an absent one means
 * the whole value. The configuration will not be taken, but the rest of it is still looked at. A hint may
 * follow.
 */
MK_API void mk_conf_ctx_error(const struct mk_conf_ctx *spot, mk_str part, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
MK_API void mk_conf_ctx_warn(const struct mk_conf_ctx *spot, mk_str part, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
MK_API void mk_conf_ctx_hint(const struct mk_conf_ctx *spot, const char *fmt, ...) MK_API_PRINTF(2, 3);

/**
 * Reads `value` into `field` (all zero before the first call). False if it is wrong: then it has reported
 * that with mk_conf_ctx_error(), or the server says that key->form was expected.
 */
typedef bool mk_conf_parse_fn(const struct mk_conf_ctx *spot, mk_str value, void *field);
/** Writes the i-th value of the field as parse() takes it; false if there is no such one. */
typedef bool mk_conf_show_fn(const void *field, size_t i, struct mk_buf *out);
/** Takes one entry whose key is none of the table's; its value is not empty. It reports what is wrong. */
typedef void mk_conf_entry_fn(const struct mk_conf_ctx *spot);
/** Writes key and value of the i-th entry of free form; false if there is no such one. */
typedef bool mk_conf_show_entry_fn(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value);

/** One key of a section. Set name, type, MK_CONF_AT and what else you need; the rest is zero. */
struct mk_conf_key {
    const char *name;
    enum mk_conf_type type;
    unsigned flags;             /**< enum mk_conf_flags */
    size_t offset, size;        /**< of the member: MK_CONF_AT */
    uint64_t min, max;          /**< NUM, SIZE, TIME: of the value, TEXT: of its length; WORDS: max of them;
                                     a max of 0 is what the member can hold */
    uint64_t unit;              /**< what a bare number counts; SIZE: bytes (0 is 1), TIME: ms (0 is 1000) */
    const char *zero;           /**< NUM, SIZE, TIME: a word for 0 ("auto", "off"), good even below min */
    const char *const *choices; /**< ENUM: the words, ended by NULL; compared without case */
    const char *def;            /**< the default as one would write it; NULL: the member stays as it was */
    const char *form;           /**< CUSTOM: what a value looks like ("port or address:port") */
    const char *alias_of; /**< the key that this is another name of; all but name and flags is that one's */
    const char *help;     /**< one line, Markdown allowed */
    mk_conf_parse_fn *parse;
    mk_conf_show_fn *show; /**< NULL: a CUSTOM key that cannot be printed is left out */
};

/** Where the value goes: `MK_CONF_AT(struct cache, size)` among the designated initialisers of a key. */
#define MK_CONF_AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

/** One section: its name, its keys, and the struct that they fill. */
struct mk_conf_table {
    const char *section;
    const struct mk_conf_key *keys;
    size_t n;
    /** Each section fills a struct of its own. Otherwise a host has one section: further ones with rules (`entry`) or
     * repeatable keys add to it. */
    bool repeatable;
    const char *help;
    /** For sections whose keys are patterns, codes, names or rules: takes the entries that no key above
     * takes, in their order. NULL: those are errors. */
    mk_conf_entry_fn *entry;
    mk_conf_show_entry_fn *show_entry;
    const char *entry_form; /**< what such an entry looks like: "pattern handler [words...]" */
    const char *entry_help;
    size_t size; /**< of the struct that one such section fills; 0 in tables of the server itself */
    enum mk_conf_scope scope;
};

/**
 * Iterates over the structs filled from the sections of this table, in their order: pass NULL for the first,
 * then the previous result; returns NULL at the end. In load(): sections of scope MK_CONF_SERVER. In host():
 * those of the host, or, if it has none, those before the first [HOST]. They live as long as the
 * configuration.
 *
 *     for (const struct place *p = NULL; (p = mk_config_section(config, &place_table, p));)
 */
MK_API void *mk_config_section(struct mk_config *c, const struct mk_conf_table *table, const void *after);
/**
 * The settings that count: those of the first such section or, if there is none, a struct with the defaults
 * of every key. NULL when memory is out, which is reported already.
 */
MK_API void *mk_config_settings(struct mk_config *c, const struct mk_conf_table *table);
/** A new struct with the default of every key, whatever sections there are. NULL when memory is out, which is
 * reported already. */
MK_API void *mk_config_defaults(struct mk_config *c, const struct mk_conf_table *table);
/**
 * What load() of that plugin has set in this configuration: for functions that a plugin exports to others
 * (see `needs` in monkey/plugin.h). NULL if it is not loaded, or not yet.
 */
MK_API void *mk_config_data(const struct mk_config *c, const struct mk_plugin *plugin);

/** Memory of zeroes that lives as long as the configuration; NULL when it is out, which is reported already.
 */
MK_API void *mk_config_alloc(struct mk_config *c, size_t size);
/** A set of networks, for mk_network_set_next(); it lives as long as the configuration. `numbers`: one for each network,
 * which may share them; NULL: their indexes. NULL when memory is out, which is reported already. */
MK_API struct mk_network_set *mk_config_network_set(struct mk_config *c, const struct mk_network *v,
                                                    const uint32_t *numbers, size_t n);
MK_API mk_str mk_config_copy(struct mk_config *c, mk_str text);
/** Calls fn(data) when the configuration is released. False: no memory, fn will not be called. */
MK_API bool mk_config_add_cleanup(struct mk_config *c, void (*fn)(void *data), void *data);

/**
 * Reports at `key` of the section that filled `section`; a NULL key means the section, a NULL section the
 * plugin's Load. A hint may follow.
 */
MK_API void mk_config_error(struct mk_config *c, const void *section, const char *key, const char *fmt, ...)
    MK_API_PRINTF(4, 5);
MK_API void mk_config_warn(struct mk_config *c, const void *section, const char *key, const char *fmt, ...)
    MK_API_PRINTF(4, 5);
/**
 * An error (MK_LOG_ERROR) or a warning at the line of `key` that holds `part`: a slice of its value, such as
 * a word that parse() has read. For keys that may be repeated; at the last line of the key if no line holds
 * it. In host(), a NULL section means the [HOST]: `ServerName` with what mk_vhost_name_at() returned names the
 * line of that name.
 */
MK_API void mk_config_report(struct mk_config *c, enum mk_log_level level, const void *section,
                             const char *key, mk_str part, const char *fmt, ...) MK_API_PRINTF(6, 7);
MK_API void mk_config_hint(struct mk_config *c, const char *fmt, ...) MK_API_PRINTF(2, 3);
/** The hint "did you mean `...`?" with that of the words which is nearest to `word`, if one is near. */
MK_API void mk_config_suggest(struct mk_config *c, mk_str word, const mk_str *words, size_t n);

/** A path relative to the folder of the file that contains the section; NUL-terminated. Absent when memory is
 * out. */
MK_API mk_str mk_config_path(struct mk_config *c, const void *section, mk_str path);

/**
 * Zeroed memory, on separate pages, shared by all workers, including those of later configurations: the same
 * name and size yield the same memory as long as the master lives. Use C11 atomics in it; a worker may die at
 * any instruction. NULL when memory is out (reported). `name` has at most 63 bytes; begin it with the name of
 * your plugin.
 */
MK_API void *mk_config_shared(struct mk_config *c, const char *name, size_t size);
/** The statistics of the server: see mk_stat_define(). NULL when memory is out (reported). */
MK_API struct mk_stat_registry *mk_config_statistics(struct mk_config *c);
/**
 * A descriptor that all workers inherit, including those of later configurations: what make() returned when the
 * name was used first, as long as the master lives. make() sets close-on-exec, and returns a negated errno value
 * on an error, which is reported and returned. In load() or master_start().
 */
MK_API int mk_config_shared_fd(struct mk_config *c, const char *name, int (*make)(void)) MK_API_MUST_USE;
/**
 * A random key for mk_hash() that only this server knows: the same for the same purpose in all of its processes,
 * over reloads and upgrades of the program. -ENOMEM (reported). Begin `purpose` with the name of your plugin.
 */
MK_API int mk_config_hash_key(struct mk_config *c, const char *purpose,
                              struct mk_hash_key *out) MK_API_MUST_USE;

/**
 * A log that lines are written to with mk_log_write(): a path, `stdout`, `stderr`, `syslog` or `off`. The
 * master opens it with its own rights, and reopens it on USR1. With `max_size` above 0, a file that reaches
 * this size becomes FILE.1 (FILE.1 becomes FILE.2, and so on, `keep` of them), within about a second. Equal
 * paths share a log; the first call with a size decides. NULL: reported at `key`.
 */
MK_API struct mk_logfile *mk_config_log(struct mk_config *c, const void *section, const char *key,
                                        mk_str where, uint64_t max_size, unsigned keep);

/** Where the error log of the server is: a path, `stderr` or `syslog`; ends with a NUL. In master_start(): it
 * is open by then. */
MK_API mk_str mk_config_error_log(const struct mk_config *c);
/** Does that log, syslog or the journal of systemd, add time and process to each line by itself? Then a line begins
 * with its priority instead, such as `<3>` for an error. */
MK_API bool mk_config_error_log_has_priorities(const struct mk_config *c);

/**
 * In master_start(): workers of this configuration do not start before `ready` returns 0. The master asks it
 * again and again, some 30 times a second, as long as that is -EAGAIN, and does its other work in between: so
 * `ready` must not wait. Any other value is an error, which rejects the configuration; report it as in
 * load(). It is not asked any more once unload() was called. False: memory is out (reported).
 */
MK_API bool mk_config_wait_ready(struct mk_config *c, int (*ready)(struct mk_config *c, void *data),
                                 void *data);
/** True in load(), when another process has loaded this configuration a moment ago, without a mistake. The
 * server serves others meanwhile: what takes long or may hang need not be done again. */
MK_API bool mk_config_is_dry_run(const struct mk_config *c);

/** Only in host(): the plugin writes the access log of this host. The AccessLog keys of the server leave
 * its requests out: those of [SERVER], [HOST] and [LOCATION]. */
MK_API void mk_config_replace_access_log(struct mk_config *c);

/** Only in host(): adds a route after the configured ones. On a host without [ROUTES] it comes before the
 * host's files, unless it matches every path: then it comes after them. `pattern` (one that mk_pattern_set()
 * takes: else an error is reported) and `data` live as long as the configuration. */
MK_API void mk_config_add_route(struct mk_config *c, mk_str pattern, const struct mk_handler *handler,
                                void *data);
/** The same ahead of the configured ones (but not of the `Redirect` of the host): for a handler that answers
 * MK_NEXT to what is not its business. */
MK_API void mk_config_prepend_route(struct mk_config *c, mk_str pattern, const struct mk_handler *handler,
                                    void *data);

/** Declares use of mk_subprocess_start(): each worker gets a spawner. */
MK_API void mk_config_enable_subprocesses(struct mk_config *c);

/** The user of the workers and of the programs they start, which must own the files they write. False: they
 * keep the user of the server. */
MK_API bool mk_config_user(const struct mk_config *c, uid_t *uid, gid_t *gid);

/** Lets workers read this file or folder despite the sandbox. */
MK_API void mk_config_allow_path(struct mk_config *c, mk_str path);
/**
 * Lets workers create, write, rename and remove files and folders below this folder, and read them. The
 * sandbox alone: the folder must exist when workers start, and admit their user (mk_config_user()).
 */
MK_API void mk_config_allow_writing(struct mk_config *c, mk_str folder);
/** Lets workers read what getaddrinfo() needs, in a thread: it blocks. */
MK_API void mk_config_allow_resolver(struct mk_config *c);
/** Lets workers read the certificates that this system trusts, for connections to servers; no private keys.
 */
MK_API void mk_config_allow_trust_store(struct mk_config *c);

#ifdef __cplusplus
}
#endif

#endif
