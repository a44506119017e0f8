/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that lives as long as the handler, and cleanup functions that run when the handler ends. */
#ifndef DUDA_MEMORY_H
#define DUDA_MEMORY_H

#include <duda/service.h>
#include <monkey/allocator.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Allocates `size` bytes, aligned for any type, that live until the handler has returned and all its
 * deferred functions have run. NULL if memory is exhausted.
 *
 *     int *totals = duda_alloc(d, 100 * sizeof *totals);
 *     if (!totals)
 *         return -ENOMEM;
 */
MK_API void *duda_alloc(struct duda_ctx *d, size_t size);
/** The allocator of a handler: allocates like duda_alloc(). */
MK_API struct mk_allocator duda_allocator_of(struct duda_ctx *d);
/**
 * Returns a NUL-terminated copy of the string; absent if memory is exhausted.
 *
 *     mk_str copy = duda_strdup(d, mk_buf_str(&out)); // valid until the handler returns
 *     mk_buf_free(&out);
 */
MK_API mk_str duda_strdup(struct duda_ctx *d, mk_str text) MK_API_MUST_USE;
/**
 * Formats a NUL-terminated string like printf(3); absent if memory is exhausted.
 *
 *     mk_str text = duda_sprintf(d, "%s, %u items", name, 3);
 */
MK_API mk_str duda_sprintf(struct duda_ctx *d, const char *fmt, ...) MK_API_PRINTF(2, 3) MK_API_MUST_USE;

/**
 * Frees the memory used for one event. Long-running handlers (event streams, WebSockets) need this; otherwise
 * their memory grows with every event: duda_arena_rewind() frees everything allocated since
 * duda_arena_mark(). Marks nest. The results of duda_param(), duda_query() and similar functions that were
 * called since the mark also become invalid.
 *
 *     size_t mark = duda_arena_mark(d);
 *     answer(d, message);
 *     duda_arena_rewind(d, mark);
 */
MK_API size_t duda_arena_mark(struct duda_ctx *d);
MK_API void duda_arena_rewind(struct duda_ctx *d, size_t mark);

/**
 * Calls fn(ctx) when the handler has ended, for whatever reason. Deferred functions run in LIFO order; if the
 * handler is terminated, its stack is still intact while they run. They must not wait. Returns 0, or -ENOMEM,
 * in which case fn(ctx) has already been called.
 *
 *     FILE *f = fopen(name, "r");
 *     if (!f || duda_defer(d, close_file, f))
 *         return 500;
 */
MK_API int duda_defer(struct duda_ctx *d, void (*fn)(void *ctx), void *ctx) MK_API_MUST_USE;
/**
 * Removes the most recently deferred fn(ctx), so that it is not called: for a long-running handler that has
 * already released the resource itself. Returns false if fn(ctx) is not deferred.
 *
 *     if (duda_undefer(d, close_file, f))
 *         fclose(f);
 */
MK_API bool duda_undefer(struct duda_ctx *d, void (*fn)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif

#endif
