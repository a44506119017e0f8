/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of [CGI], and the words of a route. */
#ifndef CGI_SETTINGS_H
#define CGI_SETTINGS_H

#include <monkey/plugin.h>

enum { CGI_WORDS_MAX = 8 };

/* Each element of a list begins with this. */
struct cgi_item {
    struct cgi_item *next;
};

struct cgi_list {
    struct cgi_item *first, *last;
};

/* A program that runs scripts whose name ends with a suffix. */
struct cgi_interpreter {
    struct cgi_item item;
    mk_str suffix; /* empty: whatever the name is */
    const char
        *words[CGI_WORDS_MAX + 1]; /* a program and arguments before the script's name; ended by NULL */
};

/* Of SetEnv. */
struct cgi_variable {
    struct cgi_item item;
    struct mk_header line;
};

/* How content reaches a script (RequestContent). */
enum cgi_content { CGI_CONTENT_SPOOL, CGI_CONTENT_REFUSE, CGI_CONTENT_STREAM };

/* Paths that a script may read as those of other routes (Paths). */
enum cgi_paths { CGI_PATHS_CHECKED, CGI_PATHS_RAW };

struct cgi_settings {
    struct cgi_list interpreters, set;
    struct mk_conf_words pass;
    struct mk_header *variables; /* of SetEnv, and of PassEnv with the values at load time */
    size_t n_variables;
    uint32_t silence_ms, life_ms, wait_ms, cpu_ms;
    uint64_t memory, file_size, output, head, errors;
    uint32_t processes, per_address, waiting;
    enum cgi_content content;
    enum cgi_paths paths;
    bool authorization, arguments, follow, underscores, forwarded;
    void *unused;  /* of keys that are errors by now */
    unsigned pool; /* the number of its pool in each worker, from 1; 0: not known yet */
};

/* The words of a route. */
struct cgi_route {
    const struct cgi_interpreter *interpreter; /* NULL: by the suffix of the script */
    mk_str type;                               /* Content-Type of answers without one; absent: none */
};

extern const struct mk_conf_table cgi_table;

/* The settings of a host, with the next pool if they are new; NULL when memory is out (reported). */
struct cgi_settings *cgi_settings_load(struct mk_config *config, unsigned *pools);

/* The words behind the name of the handler, as mk_handler.bind. */
bool cgi_settings_bind(const struct mk_conf_ctx *spot, mk_str words, void **data);

#endif
