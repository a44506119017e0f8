/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MK_SETUP_CONDITION_INDEX_H
#define MK_SETUP_CONDITION_INDEX_H

#include "web/condition.h"

/* See mk_condition_index_new(). */
struct mk_condition_index *mk_condition_index_build(struct mk_arena *arena,
                                                    const struct mk_conditions *const *lists, size_t n);

#endif
