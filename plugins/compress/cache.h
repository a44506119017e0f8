/* SPDX-License-Identifier: Apache-2.0 */
/* Files that were compressed, in memory: of one worker, never more of it than was allowed, what is still
 * being made included. The one that was not asked for the longest goes first. */
#ifndef COMPRESS_CACHE_H
#define COMPRESS_CACHE_H

#include <monkey/str.h>

struct cache;
struct cached;

struct cache_key {
    const void *host;
    unsigned coding;
    mk_str path;
    mk_str etag; /* strong: another one is another file */
};

/* NULL when memory is out. */
struct cache *compress_cache_new(uint64_t size) MK_API_MUST_USE;
/* Nobody holds any of it. NULL is fine. */
void compress_cache_free(struct cache *c);

/* What is there, for its holder until compress_cached_drop(); NULL if nothing is. What was made from an older
 * file is let go. */
struct cached *compress_cache_take(struct cache *c, const struct cache_key *key) MK_API_MUST_USE;
mk_str compress_cached_content(const struct cached *e);
void compress_cached_drop(void *cached);

/* To make one: begin, add, keep. Whoever gives up drops it. NULL, false: there is no room, or it would have
 * more than `max` bytes. */
struct cached *compress_cache_begin(struct cache *c, const struct cache_key *key,
                                    uint64_t max) MK_API_MUST_USE;
bool compress_cached_add(struct cached *e, mk_str bytes) MK_API_MUST_USE;
/* It is complete; drops it, too. */
void compress_cached_keep(struct cached *e);

#endif
