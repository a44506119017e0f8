/* SPDX-License-Identifier: Apache-2.0 */
/* A loop without a thread: tests run its iterations. */
#ifndef MK_UNIT_EVENT_LOOP_H
#define MK_UNIT_EVENT_LOOP_H

#include "event/loop.h"
#include "unit/harness.h"

static inline void loop_init(struct mk_loop *loop)
{
    mk_err e = mk_loop_init(loop);
    MK_ASSERT(!e);
}

static inline void loop_fini(struct mk_loop *loop)
{
    mk_loop_run_tasks(loop);
    mk_loop_fini(loop);
}

HARNESS_FIXTURE(loop, struct mk_loop);

#endif
