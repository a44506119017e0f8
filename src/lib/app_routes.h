/* SPDX-License-Identifier: Apache-2.0 */
/* The program as a plugin: its routes. */
#ifndef MK_LIB_APP_ROUTES_H
#define MK_LIB_APP_ROUTES_H

#include <monkey/server.h>

#include "base/err.h"

struct mk_app_routes_scope;

/* A zeroed one has no routes. */
struct mk_app_routes {
    struct mk_app_routes_scope *first;
};

/* What the configuration loads for it. */
extern const struct mk_plugin mk_app_routes_plugin;

/* `host` is the number of the host, from 1, among those of the program; 0: all. Else as mk_router_add(), and
 * why it failed is in *why. */
mk_err mk_app_routes_add(struct mk_app_routes *p, mk_str what, unsigned host, mk_server_fn *fn, void *data,
                         struct mk_buf *why) MK_MUST_USE;
void mk_app_routes_free(struct mk_app_routes *p);

#endif
