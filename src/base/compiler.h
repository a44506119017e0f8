/* SPDX-License-Identifier: Apache-2.0 */
/* Basics that every file may use: sized types, attributes, array length, min and max. */
#ifndef MK_BASE_COMPILER_H
#define MK_BASE_COMPILER_H

#include <monkey/api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MK_MUST_USE       __attribute__((warn_unused_result))
#define MK_PRINTF(fmt, a) __attribute__((format(printf, fmt, a)))
#define MK_COLD           __attribute__((cold, noinline))
#define MK_NOINLINE       __attribute__((noinline)) /* inlining would cost its callers time or size */
#define MK_LIKELY(x)      __builtin_expect(!!(x), 1)
#define MK_UNLIKELY(x)    __builtin_expect(!!(x), 0)

static inline size_t mk_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t mk_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
