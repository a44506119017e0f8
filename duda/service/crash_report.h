/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker still says when a handler crashes or holds the loop: route, request and stack, into its post,
 * where the worker that replaces it finds them. */
#ifndef DUDA_SERVICE_CRASH_REPORT_H
#define DUDA_SERVICE_CRASH_REPORT_H

#include "service/duda_ctx.h"

/* Says of this thread what runs in it, and catches the signals of crashes. Once a worker; the state is the
 * thread's. */
void duda_crash_report_preload(void); /* ahead of the sandbox */
void duda_crash_report_install(struct duda_worker_ctx *worker_ctx);
void duda_crash_report_uninstall(void);

/* Writes where this thread is into the post: in a handler of a signal. */
void duda_crash_report_write(const char *what, const void *context);
/* The same of another thread, whose handler is blocked in a call and does not return from duda_fiber_resume() meanwhile. */
void duda_crash_report_write_blocked(const struct duda_worker_ctx *worker_ctx, const char *what);

#endif
