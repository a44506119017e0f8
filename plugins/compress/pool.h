/* SPDX-License-Identifier: Apache-2.0 */
/* The coders and the cache of one worker for one section. */
#ifndef COMPRESS_POOL_H
#define COMPRESS_POOL_H

#include <monkey/worker.h>

#include "cache.h"
#include "settings.h"

struct pool {
    const struct settings *settings;
    struct mk_worker *worker;
    unsigned n_streams, most; /* current number of streams; its maximum since memory was last returned */
    struct mk_timer quiet;
    struct cache *cache; /* NULL: the cache is off or not yet in use */
    void *idle[CODINGS]; /* at most one idle coder of each kind */
};

/* Initializes a zeroed pool. */
void compress_pool_init(struct pool *p, struct mk_worker *w);
void compress_pool_fini(struct pool *p);
/* Frees the coders that no stream uses. */
void compress_pool_free_idle(struct pool *p);

/* Returns false if `MaxStreams` streams are open. */
bool compress_pool_has_stream_slot(const struct pool *p);
/* Call this once when a stream begins. */
void compress_pool_add_stream(struct pool *p);
/* Call this once when a stream ends. */
void compress_pool_remove_stream(struct pool *p);

/* Returns a coder for `length` bytes or MK_LENGTH_UNKNOWN; NULL if out of memory. */
void *compress_pool_acquire_coder(struct pool *p, enum coding coding, int64_t length) MK_API_MUST_USE;
/* Accepts NULL. */
void compress_pool_release_coder(struct pool *p, enum coding coding, void *coder);

#endif
