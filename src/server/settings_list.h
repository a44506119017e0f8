/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of what a key says that may stand more than once. */
#ifndef MK_SERVER_SETTINGS_LIST_H
#define MK_SERVER_SETTINGS_LIST_H

#include "base/arena.h"

/* *at is an array of n elements of that size, for one more of which there is room afterwards. False: no
 * memory. */
bool mk_settings_list_grow(struct mk_arena *arena, void **at, size_t n, size_t *cap, size_t size) MK_MUST_USE;

#endif
