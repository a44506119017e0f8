/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles services to shared objects with the compiler of the system: each source to an object of its own,
 * several at the same time. An object stays in the cache until the source, its headers or the command
 * change. */
#ifndef DUDA_DEV_COMPILE_H
#define DUDA_DEV_COMPILE_H

#include "argv.h"
#include "paths.h"
#include "source.h"

enum dev_compile_kind {
    DEV_COMPILE_QUICK,  /* for development: no optimization, full debug information */
    DEV_COMPILE_DEPLOY, /* for production */
    DEV_COMPILE_TEST    /* the source contains tests, not a service */
};

struct dev_compile {
    const struct dev_paths *paths;
    enum dev_compile_kind kind;
    bool color;         /* compiler messages in color */
    const char *output; /* path of the object; NULL: in the cache */
    mk_str known;       /* input files of the last build, one per line */
};

struct dev_compile_result {
    bool ok, was_cached;
    bool is_unsure; /* a file was saved during the build: the object may be of either version */
    char object[PATH_MAX];
    struct mk_buf messages; /* output of the compiler, including warnings */
    struct mk_buf files;    /* input files except system headers, one per line, the source first */
    uint64_t stamp;         /* hash of the contents of these files */
};

/* Blocks until the compiler exits. Always free `out` afterwards. */
void dev_compile(const struct dev_compile *how, const struct dev_source *source,
                 struct dev_compile_result *out);
/* Appends the compiler command to an empty command line: $CC, or else `cc`; for C++ $CXX, or else `c++`. */
void dev_compile_add_compiler(struct dev_argv *w, bool is_cpp);
/* Builds the command that compiles one file of the service, without the names of output files. Returns false
 * if pkg-config fails, with its output in `messages`. */
bool dev_compile_build_command(const struct dev_compile *how, const struct dev_source *source, mk_str file,
                               struct dev_argv *w, struct mk_buf *messages);
void dev_compile_result_free(struct dev_compile_result *c);

#endif
