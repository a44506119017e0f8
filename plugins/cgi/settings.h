/* SPDX-License-Identifier: Apache-2.0 */
/* What [CGI] and the words behind the handler's name say. */
#ifndef CGI_SETTINGS_H
#define CGI_SETTINGS_H

#include <monkey/plugin.h>

enum { CGI_WORDS_MAX = 8 };

/* What stands in a list begins with this. */
struct cgi_item {
    struct cgi_item *next;
};

struct cgi_list {
    struct cgi_item *first, *last;
};

/* Who runs scripts whose name ends in a suffix. */
struct cgi_interpreter {
    struct cgi_item item;
    mk_str suffix; /* empty: whatever the name is */
    const char
        *words[CGI_WORDS_MAX + 1]; /* a program and arguments before the script's name; ended by NULL */
};

/* "NAME=value", which lives as long as the configuration. */
struct cgi_variable {
    struct cgi_item item;
    mk_str name, value;
    const char *line;
};

enum cgi_chunked { CGI_CHUNKED_REFUSE, CGI_CHUNKED_STREAM };

struct cgi_settings {
    struct cgi_list interpreters, set, passed; /* `passed`: PassEnv, as they were when it was loaded */
    struct mk_conf_words pass;
    uint32_t silence_ms, life_ms, wait_ms, cpu_ms;
    uint64_t memory, file_size, output, head, errors;
    uint32_t processes, waiting;
    enum cgi_chunked chunked;
    bool authorization, arguments, follow;
    void *unused;  /* of keys that only say where they went */
    unsigned pool; /* which of the worker's counts its processes, from 1; 0: not known yet */
};

/* What a route says. */
struct cgi_route {
    const struct cgi_interpreter *interpreter; /* NULL: as the name of the script says */
    mk_str type;                               /* of answers that tell none; absent: they stay without */
};

extern const struct mk_conf_table cgi_table;

/* The settings of a host, with the next free pool if they are new; NULL when memory is out (reported). */
struct cgi_settings *cgi_settings_of(struct mk_config *config, unsigned *pools);

/* The words behind the name of the handler, as mk_handler.bind. */
bool cgi_settings_bind(const struct mk_conf_spot *spot, mk_str words, void **data);

/* Does the configuration set this variable itself? */
bool cgi_settings_has(const struct cgi_settings *s, mk_str name);

#endif
