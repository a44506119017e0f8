/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in handlers, and how they parse their arguments in [ROUTES]. Knows no plugin. */
#ifndef MK_SETUP_BUILTIN_HANDLERS_H
#define MK_SETUP_BUILTIN_HANDLERS_H

#include <monkey/handler.h>

#include "conf/table.h"

/* The layer of these handlers knows no configuration, so `bind` of struct mk_handler is here. */
struct mk_builtin_handler {
    const struct mk_handler *handler;
    bool (*bind)(const struct mk_conf_ctx *spot, mk_str words, void **data);
    const char *example; /* a line of [ROUTES] */
};

/* The built-in handler of that name; NULL if there is none. */
const struct mk_builtin_handler *mk_builtin_handler_find(mk_str name);
/* The i-th; NULL when there are no more. */
const struct mk_builtin_handler *mk_builtin_handler_at(size_t i);

#endif
