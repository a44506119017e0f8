/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of open files: maps paths beneath a root to open files. An entry is trusted for `recheck_ms`; the
 * next lookup then checks the file again.
 *
 * An entry is small, so thousands of files can stay open. Memory for the content of small files and for
 * attachments has a separate limit: first come, first served. An entry that got no memory retries at most
 * once a second, and may then evict entries that were not used since its last try.
 *
 * When the file of an entry has changed, the entry is replaced, never modified: a response that is still
 * sending the old file holds a reference to the old entry. Errors are not cached. */
#ifndef MK_FILES_FILE_CACHE_H
#define MK_FILES_FILE_CACHE_H

#include "base/hash.h"
#include "files/open_file.h"

struct mk_file_cache_limits {
    unsigned files;      /* maximum number of entries, each of which may hold a descriptor; 0: no caching */
    size_t memory;       /* maximum number of bytes for the content of small files and for attachments */
    size_t small;        /* maximum size of a file whose content is kept in memory */
    unsigned recheck_ms; /* how long an entry is used without revalidation */
};

struct mk_file_cache {
    struct mk_file_cache_limits limits;
    struct mk_hash_key hash_key;
    struct mk_open_file **buckets;
    size_t n_buckets;             /* a power of two */
    struct mk_list rich;          /* entries with content or a permanent attachment, least recently used
                                    * first */
    struct mk_list lean;          /* other entries */
    unsigned n, most, n_rejected; /* entries; current maximum of entries; files that were not admitted */
    size_t memory;
};

mk_err mk_file_cache_init(struct mk_file_cache *c, const struct mk_file_cache_limits *limits) MK_MUST_USE;
/* Callers may still hold references; each file is freed with its last reference. */
void mk_file_cache_fini(struct mk_file_cache *c);

/* Looks up root/path, and opens it if it is not cached. `path` is relative, without NUL, dot segments or
 * slashes at its ends; "" is the root itself. *file is a reference, which the caller releases with
 * mk_open_file_release(). Returns -ENOMEM, or the errors of mk_file_open_beneath(), but -EMFILE and -ENFILE
 * only if closing idle descriptors did not help. */
mk_err mk_file_cache_acquire(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                             uint64_t now_ms, struct mk_open_file **file) MK_MUST_USE;
/* Like mk_file_cache_acquire(), but for an entry that is useful only if cached: if the cache is full, returns
 * -EAGAIN without opening the file. */
mk_err mk_file_cache_acquire_if_cacheable(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                                          uint64_t now_ms, struct mk_open_file **file) MK_MUST_USE;

/* Opens root/path for the caller; `path` as for mk_file_cache_acquire(), but it may end with a slash. Caches
 * nothing, but closes idle descriptors of the cache when descriptors run out. */
mk_err mk_file_cache_open_uncached(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                                   int *fd) MK_MUST_USE;

/* Would the cache keep an attachment of `size` bytes with the file? Evicts entries that were not used
 * recently if their memory is needed. */
bool mk_file_cache_may_attach(struct mk_open_file *f, size_t size, uint64_t now_ms) MK_MUST_USE;
/* The file takes ownership of the attachment. If `size` is not 0, the attachment stays as long as the entry,
 * and counts as memory of the entry. If `size` is 0, the attachment is freed when only the cache refers to
 * the file. The file must not have an attachment yet. */
void mk_file_cache_attach(struct mk_open_file *f, struct mk_open_file_attachment *note, size_t size);
/* Makes later requests for the path reopen the file; current users keep it. The caller must hold a
 * reference. */
void mk_file_cache_invalidate(struct mk_open_file *f);

/* Limits the cache to n entries, or to the configured limit if that is lower. */
void mk_file_cache_set_max_entries(struct mk_file_cache *c, unsigned n);
/* Evicts all entries with a descriptor that only the cache refers to; returns the number of entries. */
unsigned mk_file_cache_close_idle_fds(struct mk_file_cache *c);
/* Evicts all entries that only the cache refers to, including those without a descriptor. */
void mk_file_cache_evict_idle(struct mk_file_cache *c);

#endif
