/* SPDX-License-Identifier: Apache-2.0 */
/* The sources that `monkey run` serves: one file, or those of a folder, compiled when they are asked for. */
#ifndef DUDA_DEV_UNITS_H
#define DUDA_DEV_UNITS_H

#include "compile.h"
#include "page.h"

enum { DEV_UNITS_MAX = 256 };

struct dev_unit {
    char path[PATH_MAX];
    char place[DEV_NAME_MAX]; /* its address in a folder, without slashes; empty: "/" */
    bool is_new;              /* not compiled yet */
    char name[DEV_NAME_MAX];  /* of its service */
    char sanitizer[PATH_MAX]; /* the library of the address sanitizer, which it needs; empty: none */
    struct dev_compiled built;
    char error[256]; /* the source cannot be read; empty: it can */
    /* The last version that was compiled, and what the server has of it; empty: none. */
    char object[PATH_MAX], service[DEV_NAME_MAX], running[PATH_MAX];
    bool is_held; /* the server could not load `object`, and goes on with `running` */
    struct mk_buf why;
};

struct dev_units {
    struct dev_compile how;
    char path[PATH_MAX], folder[PATH_MAX];
    bool is_folder;
    struct dev_unit *at[DEV_UNITS_MAX];
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
bool dev_units_init(struct dev_units *u, const struct dev_places *places, const char *path);
void dev_units_free(struct dev_units *u);
/* In a folder: the file that answers at the path of a target becomes one of them. True: it is new. */
bool dev_units_want(struct dev_units *u, mk_str target);
/* The one that answers at the path of a target; NULL: none. */
const struct dev_unit *dev_units_find(const struct dev_units *u, mk_str target);
/* Compiles what has changed, and what failed; forgets files that are gone; looks at the templates and for
 * html/. True: there is any news. Says so on standard output. */
bool dev_units_update(struct dev_units *u);
/* Has a file changed since it was compiled, or while it was? */
bool dev_units_are_outdated(const struct dev_units *u);
/* Was one saved while the compiler worked? */
bool dev_units_are_unsure(const struct dev_units *u);
bool dev_units_are_fine(const struct dev_units *u);
/* Excerpts and messages of one that is not compiled. */
void dev_units_write_fault(const struct dev_unit *one, const struct dev_page *p);

/* The library of a sanitizer that a service needs; empty: none. */
const char *dev_units_sanitizer(const struct dev_units *u);
/* What the server is to load: the object that it shall have of each, or the one that it has. */
const char *dev_units_object(const struct dev_unit *one);
/* Is there one that the server should have, and has not, and which was not in vain? */
bool dev_units_wait(const struct dev_units *u);
/* The server has loaded them; or could not: then a folder goes on without those that are new. True: some are,
 * and they may be why. */
bool dev_units_settle(struct dev_units *u, bool loaded);
/* A file has changed: what could not be loaded may have lacked it. */
void dev_units_retry(struct dev_units *u);

#endif
