/* SPDX-License-Identifier: Apache-2.0 */
/* Gives each test case its own arena. */
#ifndef MK_UNIT_ARENA_H
#define MK_UNIT_ARENA_H

#include "base/arena.h"
#include "unit/harness.h"

static inline void arena_init(struct mk_arena *arena)
{
    mk_arena_init(arena, NULL);
}

static inline void arena_fini(struct mk_arena *arena)
{
    mk_arena_fini(arena);
}

HARNESS_FIXTURE(arena, struct mk_arena);

#endif
