/* SPDX-License-Identifier: Apache-2.0 */
/* Suspending and cancelling, seen from inside a handler. */
#ifndef DUDA_SERVICE_SUSPEND_H
#define DUDA_SERVICE_SUSPEND_H

#include "service/duda_ctx.h"

enum { DUDA_REFUSALS_MAX = 1000 }; /* maximum number of waits a handler may attempt after its cancellation */

/* Called in the handler: suspends it until one of these events or duda_wake(). 0, or the error that cancelled
 * it. */
int duda_suspend_until(struct duda_ctx *d, enum duda_suspend_reason reason);
/* Cancels the handler: its waits return the error from now on. The first cancellation wins. Returns the error
 * that waits return. */
int duda_suspend_cancel(struct duda_ctx *d, int error);

/* Memory of a waiting function: duda_wait_end() frees it, and so does termination. The error is that of
 * duda_wait_begin(). */
struct duda_scratch_buf {
    struct duda_wait wait; /* must be the first member */
    struct mk_buf buf;
};
int duda_scratch_buf_begin(struct duda_ctx *d, struct duda_scratch_buf *s, size_t max) MK_API_MUST_USE;

/* Ends all its waits, most recent first. */
void duda_suspend_end_waits(struct duda_ctx *d);
/* Called when the handler returned during an active wait: logs the bug; a debug build aborts. Does not end
 * the wait: its memory may have been reused. */
DUDA_COLD void duda_suspend_log_leaked_waits(struct duda_ctx *d);

#endif
