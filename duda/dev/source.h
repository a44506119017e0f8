/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a service, and what they declare: its name and its compiler options. This code only reads
 * the text of the sources. */
#ifndef DUDA_DEV_SOURCE_H
#define DUDA_DEV_SOURCE_H

#include <limits.h>
#include <monkey/buf.h>
#include <stdbool.h>

enum { DEV_SOURCE_MAX = 8 * 1024 * 1024, DEV_NAME_MAX = 48 };

struct dev_source {
    char path[PATH_MAX];     /* absolute path of the main source, which contains the DUDA_SERVICE() */
    char name[DEV_NAME_MAX]; /* from DUDA_SERVICE(name, ...), or the file's name in letters and digits */
    bool is_service;         /* the source has a DUDA_SERVICE(); otherwise only a handler named `handle` */
    bool has_handle;         /* the source has a function `handle` with a struct duda_ctx */
    struct mk_buf text;
    struct mk_buf packages; /* from comments `pkg-config: NAME...` */
    struct mk_buf flags;    /* from comments `cflags: FLAG...` */
    struct mk_buf sources;  /* from comments `sources: FILE.c...`: other files of the same service */
    unsigned line;          /* line of the name in DUDA_SERVICE() */
    /* Set by dev_source_load(), with the options of all sources. The lists have one absolute path per
     * line. */
    struct mk_buf others;  /* the other sources */
    struct mk_buf objects; /* objects and archives that `cflags:` names */
    struct mk_buf errors;  /* messages about missing files, in the format of a compiler */
};

bool dev_source_is_cpp(mk_str name);
/* Returns whether the file is a source in C or C++. */
bool dev_source_is_code(mk_str name);
/* Reads the whole file, up to the limit of `out`. On failure, sets errno and returns false. */
bool dev_source_read_file(const char *path, struct mk_buf *out);
/* Reads and parses a source, and the other sources that it names. If the file cannot be read, sets errno and
 * returns false; there is then nothing to free. */
bool dev_source_load(struct dev_source *s, const char *path);
/* Adds another source of the same service, with the sources that it names in turn. */
void dev_source_add(struct dev_source *s, const char *path);
void dev_source_free(struct dev_source *s);
/* For tests: fills everything but the path from `s->text`. */
void dev_source_parse(struct dev_source *s, mk_str file_name);

#endif
