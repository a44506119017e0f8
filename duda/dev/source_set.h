/* SPDX-License-Identifier: Apache-2.0 */
/* What `monkey run` serves: one service, of a file, several files or a folder; or a folder of handlers, each
 * compiled on demand. */
#ifndef DUDA_DEV_SOURCE_SET_H
#define DUDA_DEV_SOURCE_SET_H

#include "compile.h"
#include "error_page.h"
#include "service_files.h"

enum { DEV_SOURCE_SET_MAX = 256 };

struct dev_source_unit {
    char path[PATH_MAX];            /* of a service in a folder of its own: the folder */
    char url_segment[DEV_NAME_MAX]; /* URL path of a source in a folder, without slashes; empty: "/" */
    bool is_new;                    /* not compiled yet */
    char name[DEV_NAME_MAX];        /* name of its service */
    char label[NAME_MAX + 1];       /* for messages: the name of its only source, or of its folder */
    char sanitizer[PATH_MAX];       /* the AddressSanitizer library that the service needs; empty: none */
    struct dev_compile_result built;
    char error[DEV_PROBLEM_MAX]; /* reason why the source cannot be read; empty: readable */
    /* The object and the service of the last compiled version, and the object that the server runs; empty:
     * none. */
    char object[PATH_MAX], service[DEV_NAME_MAX], running[PATH_MAX];
    bool is_held; /* the server could not load `object`, and keeps `running` */
    struct mk_buf why;
    uint64_t folder_stamp; /* hash of the list of files in a folder of one service, when it was compiled */
};

struct dev_source_set {
    struct dev_compile how;
    struct dev_service_words words; /* of one service */
    char path[PATH_MAX], folder[PATH_MAX];
    bool is_folder;         /* a folder of handlers */
    bool is_service_folder; /* a folder whose files form one service */
    struct dev_source_unit *at[DEV_SOURCE_SET_MAX];
    size_t n;
    char assets[PATH_MAX];       /* the assets folder, whether it exists or not */
    char translations[PATH_MAX]; /* the same for the translations */
    char templates[PATH_MAX];    /* the templates folder, whether it exists or not */
    uint64_t stamp;              /* hash of the files in these folders */
    const char *extra;           /* a configuration file; NULL: none */
    struct mk_buf extra_files;   /* the configuration file, its includes and migrations, one per line */
    uint64_t extra_stamp;        /* hash of the contents of these files */
    char env_path[PATH_MAX];     /* the file `.env`, whether it exists or not */
    uint64_t env_stamp;          /* hash of its contents */
    char html[PATH_MAX];         /* the folder of static files; empty: missing */
    bool is_changed;             /* the server must be restarted */
};

/* On failure, reports the error and returns false. */
bool dev_source_set_init(struct dev_source_set *u, const struct dev_paths *paths,
                         const struct dev_service_words *words);
void dev_source_set_free(struct dev_source_set *u);
/* Lists the folders to watch besides those of the input files, one per line: of the templates, assets and
 * translations, and those in which new files may belong to the service. */
void dev_source_set_list_folders(const struct dev_source_set *u, struct mk_buf *folders);
/* For a folder, adds the file that serves the path of a target. Returns true if the file is new. */
bool dev_source_set_add_for_target(struct dev_source_set *u, mk_str target);
/* Returns the source that serves the path of a target; NULL if there is none. */
const struct dev_source_unit *dev_source_set_find_by_target(const struct dev_source_set *u, mk_str target);
/* Compiles changed and failed sources, drops deleted ones, and checks the templates and html/. Prints
 * progress on standard output. Returns true if something has changed. */
bool dev_source_set_update(struct dev_source_set *u);
/* Returns whether a file has changed since the last compilation began. */
bool dev_source_set_is_outdated(const struct dev_source_set *u);
/* Returns whether a file was saved during the last compilation. */
bool dev_source_set_changed_in_build(const struct dev_source_set *u);
bool dev_source_set_is_compiled(const struct dev_source_set *u);
/* Writes the excerpts and messages of a source that failed to compile. */
void dev_source_set_write_errors(const struct dev_source_unit *unit, const struct dev_error_page *p);

/* Returns the sanitizer library that one of the services needs; empty if there is none. */
const char *dev_source_set_sanitizer(const struct dev_source_set *u);
/* Returns the object to load for a source: the new one, or the one that the server runs. */
const char *dev_source_set_object_path(const struct dev_source_unit *unit);
/* Returns whether the server must be restarted, because a file has changed or an object is not loaded yet.
 * Ignores objects that failed to load. */
bool dev_source_set_needs_restart(const struct dev_source_set *u);
/* Records whether the server has loaded the objects; if not, drops the new objects of a folder. Returns
 * true if there were new objects, which may have caused the failure. */
bool dev_source_set_mark_loaded(struct dev_source_set *u, bool loaded);
/* Call it when a file has changed: makes the server load failed objects again, because the old version of
 * that file may have been the reason. */
void dev_source_set_retry_failed(struct dev_source_set *u);

#endif
