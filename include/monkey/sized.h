/* SPDX-License-Identifier: Apache-2.0 */
/* Passing structs between binaries built with different versions of these headers: the struct of an older
 * caller may have fewer members. */
#ifndef MONKEY_SIZED_H
#define MONKEY_SIZED_H

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A struct that may gain members in later releases is passed together with its size: the exported function
 * has the suffix `_sized` and takes the size of the caller's struct after the struct, and an inline function
 * of the header passes this size. Plugins that export functions to other plugins can do the same.
 *
 *     int mine_open_sized(const struct mine_options *options, size_t options_size)
 *     {
 *         struct mine_options full;
 *         options = mk_sized_in(&full, sizeof full, options, options_size);
 *         ...
 *     }
 */

/** Returns `given` if it is NULL or has all members that this side knows. Otherwise returns `copy`, with the
 * members of `given` and zeros in all others. */
static inline const void *mk_sized_in(void *copy, size_t copy_size, const void *given, size_t size)
{
    if (!given || size >= copy_size)
        return given;
    memset(copy, 0, copy_size);
    memcpy(copy, given, size);
    return copy;
}

/** Copies the members of `full` that the caller's struct has. `out` may be NULL. */
static inline void mk_sized_out(void *out, size_t size, const void *full, size_t full_size)
{
    if (out)
        memcpy(out, full, size < full_size ? size : full_size);
}

#ifdef __cplusplus
}
#endif

#endif
