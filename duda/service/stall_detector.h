/* SPDX-License-Identifier: Apache-2.0 */
/* Notices handlers that hold the loop: a thread looks whether the same run of a handler is still under way. It sleeps when no
 * handler runs. A handler that computes is interrupted by a signal, which sees where it is. One that is blocked in a call, such as
 * sleep() or poll(), is not interrupted: the call would end early. */
#ifndef DUDA_SERVICE_STALL_DETECTOR_H
#define DUDA_SERVICE_STALL_DETECTOR_H

#include <stdbool.h>

struct duda_stall_detector;
struct duda_worker_ctx;

enum { DUDA_STALL_MS = 500 };

/* For the thread that calls it. NULL: no memory or no thread; then nothing is noticed. */
struct duda_stall_detector *duda_stall_detector_start(const struct duda_worker_ctx *worker_ctx);
void duda_stall_detector_stop(struct duda_stall_detector *h);

/* A handler begins to run, and does not any more. */
void duda_stall_detector_enter(struct duda_stall_detector *h);
/* True: it has held the loop, and the report is in the post. */
bool duda_stall_detector_leave(struct duda_stall_detector *h);

#endif
