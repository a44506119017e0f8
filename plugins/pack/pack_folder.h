/* SPDX-License-Identifier: Apache-2.0 */
/* The files below a folder, in the order of their paths. */
#ifndef PACK_FOLDER_H
#define PACK_FOLDER_H

#include <monkey/str.h>

struct pack_file {
    char *disk_path;
    const char *url_path; /* the last part of disk_path; begins with a slash */
};

struct pack_folder {
    struct pack_file *files;
    size_t n, cap;
};

/* Lists all regular files. Skips names that begin with a dot, and follows symbolic links to files only. On
 * failure, returns false with errno set, and *error_path names the file or folder that failed: free
 * *error_path with mk_mem_free(). */
bool pack_folder_list(struct pack_folder *f, const char *root, char **error_path);

void pack_folder_free(struct pack_folder *f);

/* Returns the file with this path and the suffix, such as ".gz"; NULL if there is none. */
const struct pack_file *pack_folder_find(const struct pack_folder *f, const char *url_path,
                                         const char *suffix);

/* Returns a NUL-terminated copy of the first `len` bytes; NULL if out of memory. Free it with
 * mk_mem_free(). */
char *pack_copy(const char *s, size_t len);

#endif
