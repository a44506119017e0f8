/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of open files: what a path beneath a root led to, checked again at most once a second.
 *
 * An entry is small, so that thousands of files can stay open. Memory for more, the content of a small file
 * and the note of its user, has a limit of its own: first come, first served; an entry that found none tries
 * again each second, and gets the memory of entries that no request has used since.
 *
 * An entry is replaced, never changed, when the file behind its name has changed: a response that still sends
 * the old one holds a reference. Errors are not cached. Knows nothing of HTTP. */
#ifndef MK_FILES_FILE_CACHE_H
#define MK_FILES_FILE_CACHE_H

#include "base/hash.h"
#include "files/open_file.h"

struct mk_file_cache_limits {
    unsigned files;      /* entries, each may hold a descriptor; 0: nothing is kept */
    size_t memory;       /* for the content of small files and for notes */
    size_t small;        /* a file up to this size is kept in memory */
    unsigned recheck_ms; /* how long an entry is trusted */
};

struct mk_file_cache {
    struct mk_file_cache_limits limits;
    struct mk_hash_key hash_key;
    struct mk_open_file **buckets;
    size_t n_buckets;              /* a power of two, which grows */
    struct mk_list rich;           /* entries with content or a lasting note, least recently used first */
    struct mk_list lean;           /* the others */
    unsigned n, most, turned_away; /* entries; most of them now */
    size_t memory;
};

mk_err mk_file_cache_init(struct mk_file_cache *c, const struct mk_file_cache_limits *limits) MK_MUST_USE;
/* References may still be out; their files are freed as they are dropped. */
void mk_file_cache_fini(struct mk_file_cache *c);

/* What root/path is now. `path` is relative, without NUL, dot parts or a slash at its ends; "" is the root
 * itself. *file is a reference, to be dropped. Errors as from mk_file_open_beneath; -EMFILE and -ENFILE after
 * all idle entries were closed. */
mk_err mk_file_cache_acquire(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                             uint64_t now_ms, struct mk_open_file **file) MK_MUST_USE;
/* The same for an entry that is worth it only if it is kept: -EAGAIN, without opening it, when there is no
 * place. */
mk_err mk_file_cache_acquire_if_kept(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                                     uint64_t now_ms, struct mk_open_file **file) MK_MUST_USE;

/* Opens root/path for the caller; `path` as above, and it may end with a slash. Caches nothing, but closes
 * idle entries when descriptors run out. */
mk_err mk_file_cache_open_uncached(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                                   int *fd) MK_MUST_USE;

/* Would the cache keep a note of `size` bytes with the file? Takes the memory of unused entries if it has to.
 */
bool mk_file_cache_may_attach(struct mk_open_file *f, size_t size, uint64_t now_ms) MK_MUST_USE;
/* The file owns the note from now on. With a size it stays as long as the entry, and counts as its memory;
 * with 0 it goes when only the cache refers to the file. There must be none yet. */
void mk_file_cache_attach(struct mk_open_file *f, struct mk_open_file_attachment *note, size_t size);
/* Requests for its path open it again from now on; its present users keep it. For the holder of a reference.
 */
void mk_file_cache_invalidate(struct mk_open_file *f);

/* From now on at most n entries, and never more than the limit. */
void mk_file_cache_set_max_entries(struct mk_file_cache *c, unsigned n);
/* Closes all unused descriptors; answers how many. */
unsigned mk_file_cache_close_idle(struct mk_file_cache *c);
/* Drops all unused entries, those in memory too. */
void mk_file_cache_evict_idle(struct mk_file_cache *c);

#endif
