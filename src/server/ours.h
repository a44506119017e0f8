/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the server itself, and how they read their words in [ROUTES]. Knows no plugin. */
#ifndef MK_SERVER_OURS_H
#define MK_SERVER_OURS_H

#include <monkey/handler.h>

#include "base/arena.h"

/* Tells a handler the words behind its name; false when they are wrong, or (data NULL, where there is a form)
 * memory is out. */
typedef bool mk_ours_bind_fn(struct mk_arena *arena, mk_str words, void **data);

struct mk_ours {
    const struct mk_handler *handler;
    mk_ours_bind_fn *bind;
};

/* The one of that name; NULL if it is none of ours. */
const struct mk_ours *mk_ours_find(mk_str name);
/* The i-th; NULL when there are no more. */
const struct mk_ours *mk_ours_at(size_t i);

#endif
