/* SPDX-License-Identifier: Apache-2.0 */
/* Detects handlers that block the event loop: a thread checks whether the same run of a handler is still
 * active. It sleeps while no handler runs. A signal interrupts a computing handler and records its position.
 * A handler blocked in a call, such as sleep() or poll(), is not interrupted, because the call would return
 * early. */
#ifndef DUDA_SERVICE_STALL_DETECTOR_H
#define DUDA_SERVICE_STALL_DETECTOR_H

#include <stdbool.h>

struct duda_stall_detector;
struct duda_worker_ctx;

enum { DUDA_STALL_MS = 500, DUDA_SLOW_MS = 50 };

/* Watches the calling thread. With `warns`, also prints a warning about a handler that blocks for
 * DUDA_SLOW_MS. Returns NULL if memory or threads are exhausted; stalls are then not detected. */
struct duda_stall_detector *duda_stall_detector_start(const struct duda_worker_ctx *worker_ctx, bool warns);
void duda_stall_detector_stop(struct duda_stall_detector *h);

/* Called when a handler starts or continues to run. */
void duda_stall_detector_enter(struct duda_stall_detector *h);
/* Called when the handler stops running. Returns true if it blocked the loop; the report is then in the crash
 * slot. */
bool duda_stall_detector_leave(struct duda_stall_detector *h);

#endif
