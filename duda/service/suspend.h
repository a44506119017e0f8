/* SPDX-License-Identifier: Apache-2.0 */
/* Suspending and cancelling, seen from inside a handler. */
#ifndef DUDA_SERVICE_SUSPEND_H
#define DUDA_SERVICE_SUSPEND_H

#include "service/duda_ctx.h"

enum {
    DUDA_REFUSALS_MAX = 1000
}; /* maximum number of waits that a handler may attempt after its cancellation */

/* Suspends the calling handler until the event that `reason` names, or until duda_wake(). Returns 0, or the
 * error that cancelled the handler. */
int duda_suspend_until(struct duda_ctx *d, enum duda_suspend_reason reason);
/* Cancels the handler: its waits return the error from now on. The first cancellation wins. Returns the error
 * that waits return. */
int duda_suspend_cancel(struct duda_ctx *d, int error);

/* Like duda_wait_suspend(), but also returns -ESHUTDOWN if the handler has called duda_end_on_drain() and the
 * worker drains. The awaited event has then not occurred. */
int duda_suspend_until_drain(struct duda_wait *wait) MK_API_MUST_USE;

/* A buffer of a waiting function. It is freed by duda_wait_end(), or when the handler is terminated.
 * duda_scratch_buf_begin() returns the errors of duda_wait_begin(). */
struct duda_scratch_buf {
    struct duda_wait wait; /* must be the first member */
    struct mk_buf buf;
};
int duda_scratch_buf_begin(struct duda_ctx *d, struct duda_scratch_buf *s, size_t max) MK_API_MUST_USE;

/* Ends all waits of the handler, most recent first. */
void duda_suspend_end_waits(struct duda_ctx *d);
/* Called when the handler has returned during an active wait: logs the bug, or aborts in a debug build. Does
 * not end the wait, because the memory of the wait may have been reused. */
DUDA_COLD void duda_suspend_log_leaked_waits(struct duda_ctx *d);

#endif
