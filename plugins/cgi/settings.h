/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of [CGI], and the arguments of a route. */
#ifndef CGI_SETTINGS_H
#define CGI_SETTINGS_H

#include <monkey/plugin.h>

enum { CGI_WORDS_MAX = 8 };

/* The first member of each list element. */
struct cgi_item {
    struct cgi_item *next;
};

struct cgi_list {
    struct cgi_item *first, *last;
};

/* The default of PATH. */
#define CGI_PATH "/usr/local/bin:/usr/bin:/bin"

/* The interpreter of scripts with a suffix. */
struct cgi_interpreter {
    struct cgi_item item;
    mk_str suffix; /* empty: any name */
    const char
        *words[CGI_WORDS_MAX + 1]; /* program and arguments before the script's name; NULL-terminated */
};

/* A variable from SetEnv. */
struct cgi_variable {
    struct cgi_item item;
    struct mk_header line;
};

/* How a request body reaches a script (RequestBody). */
enum cgi_body { CGI_BODY_SPOOL, CGI_BODY_REFUSE, CGI_BODY_STREAM };

/* Paths that a script may interpret as paths of other routes (Paths). */
enum cgi_paths { CGI_PATHS_CHECKED, CGI_PATHS_RAW };

struct cgi_settings {
    struct cgi_list interpreters, set;
    struct mk_conf_words pass;
    struct mk_header *variables; /* variables of SetEnv, and of PassEnv with their values at load time */
    size_t n_variables;
    const char **permitted; /* variables that interpreters may get: see struct mk_program */
    uint32_t silence_ms, life_ms, wait_ms, cpu_ms;
    uint64_t memory, file_size, output, head, errors;
    uint32_t processes, per_address, waiting;
    enum cgi_body body;
    enum cgi_paths paths;
    bool authorization, arguments, follow, underscores, forwarded;
    void *unused;  /* target of removed keys, whose use is an error */
    unsigned pool; /* index of the section's pool in each worker, from 1; 0: none yet */
};

/* The arguments of a route. */
struct cgi_route {
    const struct cgi_interpreter *interpreter; /* NULL: chosen by suffix */
    mk_str type;                               /* default Content-Type of responses; absent: none */
};

extern const struct mk_conf_table cgi_table;

/* Returns the settings of a host; new settings get a new pool. Returns NULL if out of memory, which is
 * reported. */
struct cgi_settings *cgi_settings_load(struct mk_config *config, unsigned *pools);

/* Implements mk_handler.bind: parses the arguments of the handler. */
bool cgi_settings_bind(const struct mk_conf_ctx *ctx, mk_str words, void **data);

#endif
