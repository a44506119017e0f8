/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tickets of one worker are handed in. It outlives the worker, as tickets may. */
#ifndef MK_LIB_OFFICE_H
#define MK_LIB_OFFICE_H

#include <monkey/worker.h>

#include "base/err.h"

struct mk_office;

/* The first owner is the worker. NULL when memory is out. */
struct mk_office *mk_office_new(struct mk_worker *w) MK_MUST_USE;
struct mk_office *mk_office_share(struct mk_office *o);
void mk_office_drop(struct mk_office *o);
/* The worker ends: from now on nothing is posted. NULL is fine. */
void mk_office_close(struct mk_office *o);

/* As mk_worker_post(), or -ESTALE; from any thread. */
mk_err mk_office_post(struct mk_office *o, void (*fn)(void *ctx), void *ctx) MK_MUST_USE;

#endif
