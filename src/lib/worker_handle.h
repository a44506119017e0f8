/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tickets of one worker are handed in. It outlives the worker, as tickets may. */
#ifndef MK_LIB_WORKER_HANDLE_H
#define MK_LIB_WORKER_HANDLE_H

#include <monkey/worker.h>

#include "base/err.h"

struct mk_worker_handle;

/* The first owner is the worker. NULL when memory is out. */
struct mk_worker_handle *mk_worker_handle_new(struct mk_worker *w) MK_MUST_USE;
struct mk_worker_handle *mk_worker_handle_ref(struct mk_worker_handle *o);
void mk_worker_handle_unref(struct mk_worker_handle *o);
/* The worker ends: from now on nothing is posted. NULL is fine. */
void mk_worker_handle_close(struct mk_worker_handle *o);

/* As mk_worker_post(), or -ESTALE; from any thread. */
mk_err mk_worker_handle_post(struct mk_worker_handle *o, void (*fn)(void *ctx), void *ctx) MK_MUST_USE;

#endif
