/* SPDX-License-Identifier: Apache-2.0 */
/* Lists for keys that may occur more than once. */
#ifndef MK_SETUP_KEYS_LIST_H
#define MK_SETUP_KEYS_LIST_H

#include "base/arena.h"

/* Makes room for one more element in *at, an array of n elements of that size. False: no memory. */
bool mk_keys_list_grow(struct mk_arena *arena, void **at, size_t n, size_t *cap, size_t size) MK_MUST_USE;

#endif
