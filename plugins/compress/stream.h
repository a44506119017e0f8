/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses a response while it is sent. */
#ifndef COMPRESS_STREAM_H
#define COMPRESS_STREAM_H

#include <monkey/filter.h>
#include <monkey/request.h>

#include "pool.h"

struct stream;

extern const struct mk_filter_ops compress_stream_ops;

/* Creates a stream for `length` bytes or MK_LENGTH_UNKNOWN. Returns NULL if `MaxStreams` streams are open or
 * memory has run out. */
struct stream *compress_stream_new(struct pool *pool, struct mk_request *request, enum coding coding,
                                   int64_t length) MK_API_MUST_USE;
/* Also appends the output to the cache entry `copy`, which is committed when complete. `copy` may be NULL. */
void compress_stream_cache_output(struct stream *s, struct cached *copy);
/* Frees a stream that was not attached to a response. */
void compress_stream_free(struct stream *s);

#endif
