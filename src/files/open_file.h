/* SPDX-License-Identifier: Apache-2.0 */
/* A reference-counted open file or folder, sent by a response or cached (files/file_cache.h). */
#ifndef MK_FILES_OPEN_FILE_H
#define MK_FILES_OPEN_FILE_H

#include <monkey/response.h>

#include "base/list.h"
#include "os/file.h"

struct mk_file_cache;

/* A folder that requests are served from. */
struct mk_root {
    int fd;
    const char *path; /* for messages */
    mk_str at;        /* request path of the folder: "/docs"; empty or absent: "/", or a home folder */
    struct mk_file_open_how how;
};

/* Data derived from a file, such as prepared response headers, and kept with it. */
struct mk_open_file_attachment {
    void (*free)(struct mk_open_file_attachment *note);
};

enum mk_open_kind { MK_OPEN_FILE, MK_OPEN_FOLDER, MK_OPEN_OTHER };

struct mk_open_file {
    const struct mk_root *root;
    mk_str content; /* content of a small file; absent if it is not in memory */
    uint64_t size;
    int64_t mtime_ns;
    struct mk_open_file_attachment *note; /* derived data; NULL: none. See mk_file_cache_attach() */
    int fd;                               /* -1: the content is in memory, or this is not a regular file */
    uint32_t warm_until_ms; /* time (modulo 2^32) until which the pages of the file count as cached by the
                               kernel */
    enum mk_open_kind kind : 8;

    uint8_t absent; /* bitmap of the precompressed variants that were missing at absent_ms (modulo 2^32) */
    uint32_t absent_ms;

    /* The members below are for the cache and for open_file.c. */
    bool listed;
    uint16_t path_len;
    unsigned refs; /* number of references; the table of the cache holds one of them while `listed` */
    struct mk_file_cache *cache;
    struct mk_open_file *next; /* next file in the bucket */
    struct mk_list used;       /* link in one of the cache's lists */
    uint64_t checked_ms, used_ms;
    uint32_t hash;
    uint32_t tried_ms;  /* when memory for the file was last requested, modulo 2^32 */
    uint32_t note_size; /* bytes of the attachment; 0: freed when only the cache refers to the file */
    uint32_t dev;
    int64_t ctime_ns;
    ino_t ino;
    char path[]; /* NUL-terminated, followed by the content */
};

static inline mk_str mk_open_file_path(const struct mk_open_file *f)
{
    return mk_str_of(f->path, f->path_len);
}

/* Creates an object for the file `fd` with the status `st`. If `in_memory`, the object also holds the
 * content, provided that the kernel's page cache has all of it. Returns a reference. Takes ownership of `fd`,
 * and closes it if it is not needed. NULL: out of memory; the caller still owns the descriptor. */
struct mk_open_file *mk_open_file_new(mk_str path, const struct stat *st, int fd, bool in_memory) MK_MUST_USE;
/* Creates an uncached object for the first `size` bytes of `fd`. The object owns the descriptor. Returns a
 * reference. NULL: out of memory; the caller still owns the descriptor. */
struct mk_open_file *mk_open_file_from_fd(int fd, uint64_t size) MK_MUST_USE;
void mk_open_file_release(struct mk_open_file *f);

/* Returns the device, inode, size and times of the file, which identify the file and its version. */
struct mk_file_id mk_open_file_id(const struct mk_open_file *f);
/* Does `st` describe the inode that was opened as `f`? */
bool mk_open_file_is_inode(const struct mk_open_file *f, const struct stat *st);
/* Does `st` describe the same inode as `f`, with unchanged size and times? */
bool mk_open_file_is_unchanged(const struct mk_open_file *f, const struct stat *st);

#endif
