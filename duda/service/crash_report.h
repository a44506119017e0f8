/* SPDX-License-Identifier: Apache-2.0 */
/* The last report of a worker whose handler crashes or blocks the event loop: route, request and stack. It is
 * written into the crash slot of the worker, where the successor of the worker finds it. */
#ifndef DUDA_SERVICE_CRASH_REPORT_H
#define DUDA_SERVICE_CRASH_REPORT_H

#include "service/duda_ctx.h"

/* Call it before the sandbox starts. */
void duda_crash_report_preload(void);
/* Registers this thread for crash reports and installs its signal handlers. Call it once per worker; the
 * state is thread-local. */
void duda_crash_report_install(struct duda_worker_ctx *worker_ctx);
void duda_crash_report_uninstall(void);

/* Describes what this thread runs, such as "the handler of GET /". Appends nothing if it runs no handler.
 * Async-signal-safe. */
void duda_crash_report_describe(struct mk_buf *out);
/* Writes the current position of this thread into the crash slot. Called in a signal handler. */
void duda_crash_report_write(const char *problem, const void *context);
/* Writes the position of another thread, whose handler is blocked in a call and cannot return from
 * duda_fiber_resume() during this function. */
void duda_crash_report_write_blocked(const struct duda_worker_ctx *worker_ctx, const char *problem);
/* In `monkey run`: prints a warning about the handler of another thread, which continues after the description
 * of the handler with `problem`. As above, the handler cannot return from duda_fiber_resume() during this
 * function. */
void duda_crash_report_warn(const struct duda_worker_ctx *worker_ctx, const char *problem);

#endif
