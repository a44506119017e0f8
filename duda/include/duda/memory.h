/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and duties that end with the handler. */
#ifndef DUDA_MEMORY_H
#define DUDA_MEMORY_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/** `size` bytes, aligned for any type, that live until the handler has returned and all its deferred
 * functions have run. NULL when memory is out. */
MK_API void *duda_alloc(struct duda_ctx *d, size_t size);
/** A copy of the text, followed by a NUL; absent when memory is out. */
MK_API mk_str duda_strdup(struct duda_ctx *d, mk_str text) MK_API_MUST_USE;
/** What printf(3) would write, followed by a NUL; absent when memory is out. */
MK_API mk_str duda_sprintf(struct duda_ctx *d, const char *fmt, ...) MK_API_PRINTF(2, 3) MK_API_MUST_USE;

/**
 * A handler that lives long (events, sockets) gives back what it used for one message: what was allocated
 * behind the mark is free again. Marks nest; texts of duda_param(), duda_query() and others that were asked
 * for behind the mark end there, too.
 *
 *     size_t mark = duda_arena_mark(d);
 *     answer(d, message);
 *     duda_arena_rewind(d, mark);
 */
MK_API size_t duda_arena_mark(const struct duda_ctx *d);
MK_API void duda_arena_rewind(struct duda_ctx *d, size_t mark);

/**
 * Calls fn(ctx) when the handler has returned, however it ends, the last one first: if the handler is terminated, too,
 * while its stack is still there. It must not wait. 0, or -ENOMEM: then fn(ctx) was called at once.
 *
 *     FILE *f = fopen(name, "r");
 *     if (!f || duda_defer(d, close_file, f))
 *         return 500;
 */
MK_API int duda_defer(struct duda_ctx *d, void (*fn)(void *ctx), void *ctx) MK_API_MUST_USE;
/** Forgets the last deferred fn(ctx), which is not called any more: for a handler that lives long and has given back itself what
 * the function would. False: none is deferred. */
MK_API bool duda_undefer(struct duda_ctx *d, void (*fn)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif

#endif
