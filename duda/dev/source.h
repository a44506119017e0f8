/* SPDX-License-Identifier: Apache-2.0 */
/* What the source of a service says about itself: its name, and what it is compiled with. Reads text,
 * compiles nothing. */
#ifndef DUDA_DEV_SOURCE_H
#define DUDA_DEV_SOURCE_H

#include <limits.h>
#include <monkey/buf.h>
#include <stdbool.h>

enum { DEV_SOURCE_MAX = 8 * 1024 * 1024, DEV_NAME_MAX = 48 };

struct dev_source {
    char path[PATH_MAX];     /* absolute */
    char name[DEV_NAME_MAX]; /* of DUDA_SERVICE(name, ...), else of the file, in letters and digits */
    bool is_service;         /* it has a DUDA_SERVICE(); without one it is a mere handler, `handle` */
    struct mk_buf text;
    struct mk_buf packages; /* the words of its comments `pkg-config: NAME...`, */
    struct mk_buf flags;    /* and of `cflags: FLAG...`, */
    struct mk_buf sources;  /* and of `sources: FILE.c...`: other files of the same service */
    unsigned line;          /* of the name in DUDA_SERVICE() */
};

/* Is it the name of a source of C++? */
bool dev_source_is_cpp(mk_str name);
/* Reads all of a file, at most what `out` may hold. False: errno says why. */
bool dev_source_read_file(const char *path, struct mk_buf *out);
/* False: the file cannot be read, which errno tells; then there is nothing to free. */
bool dev_source_load(struct dev_source *s, const char *path);
void dev_source_free(struct dev_source *s);
/* For tests: fills all but the path out of `s->text`. */
void dev_source_parse(struct dev_source *s, mk_str file_name);

#endif
