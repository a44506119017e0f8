/* SPDX-License-Identifier: Apache-2.0 */
/* A handler as it sees itself: suspended, woken, out of time. */
#ifndef DUDA_SERVICE_SUSPEND_H
#define DUDA_SERVICE_SUSPEND_H

#include "service/duda_ctx.h"

enum { DUDA_REFUSALS_MAX = 1000 }; /* so often a handler may ask for a wait after its end */

/* In the handler: suspends it until one of these comes, or duda_wake(). 0, or what ended it. */
int duda_suspend_until(struct duda_ctx *d, enum duda_suspend_reason what);
/* The field as it is in the head of the request: no NUL follows. Absent: there is none, whatever memory there is. */
mk_str duda_header_view(const struct duda_ctx *d, const char *name);
/* Into the log of its host or, without a request, of the server. */
void duda_log_plain(const struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
/* Cancels the handler: from now on its waits answer the error. The first reason counts. Returns what they answer. */
int duda_suspend_cancel(struct duda_ctx *d, int error);

/* Memory of a function that waits: duda_wait_end() frees it, and so does a termination. The error is that of
 * duda_wait_begin(). */
struct duda_scratch_buf {
    struct duda_wait wait; /* the first */
    struct mk_buf buf;
};
int duda_scratch_buf_begin(struct duda_ctx *d, struct duda_scratch_buf *s, size_t max) MK_API_MUST_USE;

/* Ends all its waits, the last one first. */
void duda_suspend_end_waits(struct duda_ctx *d);
/* The handler has returned while a wait of it is under way: logs that; a debug build aborts. The wait is not ended: its memory may
 * hold something else by now. */
DUDA_COLD void duda_suspend_log_leaked_waits(struct duda_ctx *d);

#endif
