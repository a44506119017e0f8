/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's cache of compressed files, in memory. Its total size, which includes unfinished copies, is
 * limited; the least recently used copy is evicted. */
#ifndef COMPRESS_CACHE_H
#define COMPRESS_CACHE_H

#include <monkey/response.h>

struct cache;
struct cached;

struct cache_key {
    struct mk_file_id file;
    unsigned coding;
};

/* Returns NULL if out of memory. */
struct cache *compress_cache_new(uint64_t size) MK_API_MUST_USE;
/* Call this when no references are left. Accepts NULL. */
void compress_cache_free(struct cache *c);

/* Returns a reference to the copy of this version of the file, to be released with compress_cached_release(),
 * or NULL if there is none. Removes a copy of an older version. */
struct cached *compress_cache_acquire(struct cache *c, const struct cache_key *key) MK_API_MUST_USE;
mk_str compress_cached_body(const struct cached *e);
void compress_cached_release(void *cached);

/* Begins a copy of at most `max` bytes. Append to it, then commit it, or release it to cancel. Returns NULL
 * if the cache is full or memory has run out. */
struct cached *compress_cache_begin_entry(struct cache *c, const struct cache_key *key,
                                          uint64_t max) MK_API_MUST_USE;
/* Returns false if the cache is full or the copy would exceed `max` bytes. */
bool compress_cached_append(struct cached *e, mk_str bytes) MK_API_MUST_USE;
/* Adds the complete copy to the cache. Releases the caller's reference. */
void compress_cached_commit(struct cached *e);

#endif
