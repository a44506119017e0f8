/* SPDX-License-Identifier: Apache-2.0 */
/* From source to object, by the system's compiler. What has been compiled once is found again in a cache, as
 * long as the source, what it includes, and the command are the same. */
#ifndef DUDA_DEV_COMPILE_H
#define DUDA_DEV_COMPILE_H

#include "argv.h"
#include "paths.h"
#include "source.h"

enum dev_compile_kind {
    DEV_COMPILE_QUICK,  /* to try it: no optimisation, all that a debugger needs */
    DEV_COMPILE_DEPLOY, /* to serve it */
    DEV_COMPILE_TEST    /* the source holds tests, not a service */
};

struct dev_compile {
    const struct dev_paths *paths;
    enum dev_compile_kind kind;
    bool color;         /* of the messages */
    const char *output; /* NULL: into the cache */
    mk_str known; /* files of the version before, a line each: what is saved in them meanwhile is noticed */
};

struct dev_compile_result {
    bool ok, was_cached;
    bool is_unsure; /* a file was saved while the compiler worked: it may have read either version */
    char object[PATH_MAX];
    struct mk_buf said; /* by the compiler: warnings too */
    struct mk_buf
        files;      /* what it was made of but headers of the system, a line each; the source is the first */
    uint64_t stamp; /* of their contents */
};

/* `out` is to be freed in any case. Blocks until the compiler has ended. */
void dev_compile(const struct dev_compile *how, const struct dev_source *source,
                 struct dev_compile_result *out);
/* The compiler as the beginning of a command. */
void dev_compile_add_compiler(struct dev_argv *w);
void dev_compile_result_free(struct dev_compile_result *c);
/* Another number when one of the files, a line each, has changed. */
uint64_t dev_compile_hash_files(mk_str files);
/* The compiler's rule for make(1), "object: source header...", where a backslash quotes a blank or ends a
 * line, and
 * `$$` is one: adds what the object depends on to `files`, a line each, but those that begin with `cache`. */
void dev_compile_parse_depfile(mk_str rule, const char *cache, struct mk_buf *files);
/* Removes what was compiled by us and not used for a week. */
void dev_compile_clean_cache(const struct dev_paths *paths);

#endif
