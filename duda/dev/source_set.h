/* SPDX-License-Identifier: Apache-2.0 */
/* The sources that `monkey run` serves: one file, or those of a folder, compiled when they are asked for. */
#ifndef DUDA_DEV_SOURCE_SET_H
#define DUDA_DEV_SOURCE_SET_H

#include "compile.h"
#include "error_page.h"

enum { DEV_SOURCE_SET_MAX = 256 };

struct dev_source_unit {
    char path[PATH_MAX];
    char url_segment[DEV_NAME_MAX]; /* its address in a folder, without slashes; empty: "/" */
    bool is_new;                    /* not compiled yet */
    char name[DEV_NAME_MAX];        /* of its service */
    char sanitizer[PATH_MAX];       /* the library of the address sanitizer, which it needs; empty: none */
    struct dev_compile_result built;
    char error[256]; /* the source cannot be read; empty: it can */
    /* The last version that was compiled, and what the server has of it; empty: none. */
    char object[PATH_MAX], service[DEV_NAME_MAX], running[PATH_MAX];
    bool is_held; /* the server could not load `object`, and goes on with `running` */
    struct mk_buf why;
};

struct dev_source_set {
    struct dev_compile how;
    char path[PATH_MAX], folder[PATH_MAX];
    bool is_folder;
    struct dev_source_unit *at[DEV_SOURCE_SET_MAX];
    size_t n;
    char templates[PATH_MAX];  /* the folder of templates, there or not */
    uint64_t stamp;            /* of its files */
    const char *extra;         /* a file of the configuration; NULL: none */
    struct mk_buf extra_files; /* with those that it includes, a line each */
    uint64_t extra_stamp;      /* of their contents */
    char html[PATH_MAX];       /* the folder of files to serve; empty: it is not there */
    bool is_changed;           /* the server is to be started again */
};

/* False: reported. */
bool dev_source_set_init(struct dev_source_set *u, const struct dev_paths *paths, const char *path);
void dev_source_set_free(struct dev_source_set *u);
/* In a folder: the file that answers at the path of a target becomes one of them. True: it is new. */
bool dev_source_set_add_for_target(struct dev_source_set *u, mk_str target);
/* The one that answers at the path of a target; NULL: none. */
const struct dev_source_unit *dev_source_set_find_by_target(const struct dev_source_set *u, mk_str target);
/* Compiles what has changed, and what failed; forgets files that are gone; looks at the templates and for
 * html/. True: there is any news. Says so on standard output. */
bool dev_source_set_update(struct dev_source_set *u);
/* Has a file changed since it was compiled, or while it was? */
bool dev_source_set_is_outdated(const struct dev_source_set *u);
/* Was one saved while the compiler worked? */
bool dev_source_set_changed_in_build(const struct dev_source_set *u);
bool dev_source_set_is_compiled(const struct dev_source_set *u);
/* Excerpts and messages of one that is not compiled. */
void dev_source_set_write_errors(const struct dev_source_unit *one, const struct dev_error_page *p);

/* The library of a sanitizer that a service needs; empty: none. */
const char *dev_source_set_sanitizer(const struct dev_source_set *u);
/* What the server is to load: the object that it shall have of each, or the one that it has. */
const char *dev_source_set_object_path(const struct dev_source_unit *one);
/* Is there one that the server should have, and has not, and which was not in vain? */
bool dev_source_set_needs_restart(const struct dev_source_set *u);
/* The server has loaded them; or could not: then a folder goes on without those that are new. True: some are,
 * and they may be why. */
bool dev_source_set_mark_loaded(struct dev_source_set *u, bool loaded);
/* A file has changed: what could not be loaded may have lacked it. */
void dev_source_set_retry_failed(struct dev_source_set *u);

#endif
