/* SPDX-License-Identifier: Apache-2.0 */
/* An open file or folder, counted by reference: one that a response sends, or an entry of the cache of open
 * files (files/file_cache.h). Knows nothing of HTTP. */
#ifndef MK_FILES_OPEN_FILE_H
#define MK_FILES_OPEN_FILE_H

#include <monkey/response.h>

#include "base/list.h"
#include "os/file.h"

struct mk_file_cache;

/* A folder that requests look beneath. */
struct mk_root {
    int fd;
    const char *path; /* for messages */
    mk_str at; /* the path of requests that leads to it: "/docs"; empty or absent: "/", or that of a home */
    struct mk_file_open_how how;
};

/* What a user of the file derived from it, to be kept with it. */
struct mk_open_file_attachment {
    void (*free)(struct mk_open_file_attachment *note);
};

enum mk_open_kind { MK_OPEN_FILE, MK_OPEN_FOLDER, MK_OPEN_OTHER };

struct mk_open_file {
    const struct mk_root *root;
    mk_str content; /* of a small file; absent if it is not in memory */
    uint64_t size;
    int64_t mtime_ns;
    struct mk_open_file_attachment *note; /* or NULL; see mk_file_cache_attach() */
    int fd;                               /* of a file that is not in memory, else -1 */
    uint32_t warm_until_ms; /* modulo 2^32: until then its pages count as cached by the kernel */
    enum mk_open_kind kind : 8;

    uint8_t absent; /* see web/representation.c: neighbours that were not there at absent_ms, modulo 2^32 */
    uint32_t absent_ms;

    /* The cache's own. */
    bool listed;
    uint16_t path_len;
    unsigned refs; /* one of them is the table's, while it is listed */
    struct mk_file_cache *cache;
    struct mk_open_file *next; /* in its bucket */
    struct mk_list used;       /* in one of the cache's lists */
    uint64_t checked_ms, used_ms;
    uint32_t hash;
    uint32_t tried_ms;  /* when it last asked for memory, modulo 2^32 */
    uint32_t note_size; /* 0: the note goes with the last reference of a request */
    uint32_t dev;
    int64_t ctime_ns;
    ino_t ino;
    char path[]; /* with a NUL behind it, then the content */
};

static inline mk_str mk_open_file_path(const struct mk_open_file *f)
{
    return mk_str_of(f->path, f->path_len);
}

/* What `fd` leads to, with the status `st`: a reference, in one piece of memory with its path and, on
 * request, its content, if the kernel has that cached. Takes `fd` over, and closes it where it is not needed
 * any more. NULL when out of memory: the caller still owns the descriptor. */
struct mk_open_file *mk_open_file_new(mk_str path, const struct stat *st, int fd, bool in_memory) MK_MUST_USE;
/* The first `size` bytes of a file that is in no cache: a reference, which owns the descriptor. NULL when out
 * of memory: the caller still owns the descriptor. */
struct mk_open_file *mk_open_file_from_fd(int fd, uint64_t size) MK_MUST_USE;
void mk_open_file_release(struct mk_open_file *f);

/* Which file it is, and which version of it. */
struct mk_file_id mk_open_file_id(const struct mk_open_file *f);
/* Is this the inode that was opened? */
bool mk_open_file_is_inode(const struct mk_open_file *f, const struct stat *st);
/* The same, and neither its size nor its times have changed? */
bool mk_open_file_is_unchanged(const struct mk_open_file *f, const struct stat *st);

#endif
