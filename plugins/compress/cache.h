/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed files of one worker, in memory. Their total size, with copies under way, stays within a
 * limit; the least recently used copy goes first. */
#ifndef COMPRESS_CACHE_H
#define COMPRESS_CACHE_H

#include <monkey/response.h>

struct cache;
struct cached;

struct cache_key {
    struct mk_file_id file;
    unsigned coding;
};

/* NULL when out of memory. */
struct cache *compress_cache_new(uint64_t size) MK_API_MUST_USE;
/* There must be no references left. NULL is fine. */
void compress_cache_free(struct cache *c);

/* A reference to the copy of this version of the file, to be given back with compress_cached_release(); NULL if
 * there is none. Removes a copy of an older version. */
struct cached *compress_cache_acquire(struct cache *c, const struct cache_key *key) MK_API_MUST_USE;
mk_str compress_cached_body(const struct cached *e);
void compress_cached_release(void *cached);

/* To make a copy: begin, add, keep; drop it to give up. NULL and false mean that the cache has no room, or
 * that the copy would exceed `max` bytes. */
struct cached *compress_cache_begin_entry(struct cache *c, const struct cache_key *key,
                                          uint64_t max) MK_API_MUST_USE;
bool compress_cached_append(struct cached *e, mk_str bytes) MK_API_MUST_USE;
/* The copy is complete: the cache keeps it. Drops the caller's reference. */
void compress_cached_commit(struct cached *e);

#endif
