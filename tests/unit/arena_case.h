/* SPDX-License-Identifier: Apache-2.0 */
/* For tests in which each case has a fresh `arena`. */
#ifndef MK_UNIT_ARENA_CASE_H
#define MK_UNIT_ARENA_CASE_H

#include "base/arena.h"
#include "unit/test.h"

static struct mk_arena arena;

static inline int start(void **state)
{
    (void)state;
    mk_arena_init(&arena, NULL);
    return 0;
}

static inline int stop(void **state)
{
    (void)state;
    mk_arena_fini(&arena);
    return 0;
}

#endif
