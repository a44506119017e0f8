/* SPDX-License-Identifier: Apache-2.0 */
/* A thread-safe handle of one worker for request references. It may outlive the worker. */
#ifndef MK_LIB_WORKER_HANDLE_H
#define MK_LIB_WORKER_HANDLE_H

#include <monkey/worker.h>

#include "base/err.h"

struct mk_worker_handle;

/* Creates a handle whose first owner is the worker. NULL: out of memory. */
struct mk_worker_handle *mk_worker_handle_new(struct mk_worker *w) MK_MUST_USE;
struct mk_worker_handle *mk_worker_handle_ref(struct mk_worker_handle *o);
void mk_worker_handle_unref(struct mk_worker_handle *o);
/* Call it when the worker ends: nothing can be posted from now on. Accepts NULL. */
void mk_worker_handle_close(struct mk_worker_handle *o);

/* Like mk_worker_post(), but callable from any thread at any time; -ESTALE: the worker has ended. */
mk_err mk_worker_handle_post(struct mk_worker_handle *o, void (*fn)(void *ctx), void *ctx) MK_MUST_USE;

#endif
