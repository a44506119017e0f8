/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in handlers and their arguments in [ROUTES]. Independent of plugins. */
#ifndef MK_SETUP_BUILTIN_HANDLERS_H
#define MK_SETUP_BUILTIN_HANDLERS_H

#include <monkey/handler.h>

#include "conf/table.h"

/* A handler and its `bind`, which is not in struct mk_handler because the web layer does not depend on the
 * configuration. */
struct mk_builtin_handler {
    const struct mk_handler *handler;
    bool (*bind)(const struct mk_conf_ctx *ctx, mk_str words, void **data);
    const char *example; /* an example line for [ROUTES] */
};

/* Finds the built-in handler by name; NULL: none. */
const struct mk_builtin_handler *mk_builtin_handler_find(mk_str name);
/* The i-th handler; NULL after the last. */
const struct mk_builtin_handler *mk_builtin_handler_at(size_t i);

#endif
