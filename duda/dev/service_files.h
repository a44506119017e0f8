/* SPDX-License-Identifier: Apache-2.0 */
/* Determines which files form a service: a file, several files, or all files of a folder. */
#ifndef DUDA_DEV_SERVICE_FILES_H
#define DUDA_DEV_SERVICE_FILES_H

#include "source.h"

/* The words of a command line that name one service. */
struct dev_service_words {
    const char *const *at;
    size_t n;
};

/* The code of a folder and its subfolders, without tests; one path per line, sorted. */
struct dev_folder_scan {
    struct mk_buf files, tests, folders;
};

void dev_folder_scan_begin(struct dev_folder_scan *scan, const char *folder);
void dev_folder_scan_free(struct dev_folder_scan *scan);

/* Returns whether all files of the folder form one service: exactly one of them has a DUDA_SERVICE(), and
 * none has a function `handle`. Otherwise, each file of the folder is a service of its own. Subfolders may
 * contain further files of the service. */
bool dev_folder_is_service(const char *folder);

/* Lists the files in a folder and, `depth` levels deep, in its subfolders, one path per line, sorted. Lists
 * the folder and its subfolders in `folders`. Each list may be NULL. */
void dev_list_tree(const char *folder, unsigned depth, struct mk_buf *files, struct mk_buf *folders);

/* Size of the text of a problem, which may contain a path. */
enum { DEV_PROBLEM_MAX = PATH_MAX + 256 };

/* Loads the service. On failure, writes the reason into `problem`, and returns false; there is then nothing
 * to free. */
bool dev_service_load(struct dev_source *s, const struct dev_service_words *words,
                      char problem[DEV_PROBLEM_MAX]);

#endif
