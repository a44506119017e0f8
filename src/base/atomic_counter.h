/* SPDX-License-Identifier: Apache-2.0 */
/* Counters written by one thread and read by others, or by other processes: never torn, but possibly
 * stale. */
#ifndef MK_BASE_ATOMIC_COUNTER_H
#define MK_BASE_ATOMIC_COUNTER_H

#include <stdint.h>

static inline void mk_counter_set(uint64_t *n, uint64_t to)
{
    __atomic_store_n(n, to, __ATOMIC_RELAXED);
}

/* Called by the single writer. */
static inline void mk_counter_add(uint64_t *n, uint64_t more)
{
    mk_counter_set(n, *n + more);
}

static inline uint64_t mk_counter_get(const uint64_t *n)
{
    return __atomic_load_n(n, __ATOMIC_RELAXED);
}

#endif
