/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in handlers and their arguments in [ROUTES]. */
#ifndef MK_SETUP_BUILTIN_HANDLERS_H
#define MK_SETUP_BUILTIN_HANDLERS_H

#include <monkey/handler.h>

#include "conf/table.h"

/* A built-in handler and its bind(). The struct mk_handler of a built-in handler has no bind(), because the
 * web layer does not depend on the configuration. */
struct mk_builtin_handler {
    const struct mk_handler *handler;
    bool (*bind)(const struct mk_conf_ctx *ctx, mk_str words, void **data);
    const char *example; /* an example line for [ROUTES] */
};

/* Finds a built-in handler by name, ignoring case; NULL: none. */
const struct mk_builtin_handler *mk_builtin_handler_find(mk_str name);
/* Returns the i-th built-in handler; NULL after the last. */
const struct mk_builtin_handler *mk_builtin_handler_at(size_t i);

#endif
