/* SPDX-License-Identifier: Apache-2.0 */
/* A response that is compressed while it is sent. */
#ifndef COMPRESS_STREAM_H
#define COMPRESS_STREAM_H

#include <monkey/filter.h>
#include <monkey/request.h>

#include "cache.h"
#include "settings.h"

/* What one worker has for one section. */
struct pool {
    const struct settings *settings;
    unsigned n_streams;
    struct cache *cache; /* NULL: it is off, or was not needed yet */
    void *idle[CODINGS]; /* coders that wait for their next stream */
};

void compress_pool_fini(struct pool *p);

struct stream;

extern const struct mk_filter_ops compress_stream_ops;

/* For `length` bytes, or MK_LENGTH_UNKNOWN. NULL: there are enough of them, or no memory. */
struct stream *compress_stream_new(struct pool *pool, struct mk_request *request, enum coding coding,
                                   int64_t length) MK_API_MUST_USE;
/* What it makes is also put there, to be kept when it is complete. May be NULL. */
void compress_stream_keep_in(struct stream *s, struct cached *copy);
/* One that was not given to a response. */
void compress_stream_free(struct stream *s);

#endif
