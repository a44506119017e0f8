/* SPDX-License-Identifier: Apache-2.0 */
/* The program's routes and certificates, as a plugin. */
#ifndef MK_LIB_APP_ROUTES_H
#define MK_LIB_APP_ROUTES_H

#include <monkey/server.h>

#include "lib/app_certificates.h"
#include "lib/app_files.h"

struct mk_app_routes_scope;

/* Zeroed: no filter. */
struct mk_app_accept_filter {
    bool (*accepts)(const struct mk_addr *client, void *ctx);
    void *ctx;
};

/* Zeroed: none. */
struct mk_app_error_handler {
    mk_server_fn *fn;
    void *data;
};

/* Zeroed: no routes. */
struct mk_app_routes {
    struct mk_app_routes_scope *first;
    struct mk_app_certificates certificates;
    struct mk_app_files files;
    struct mk_app_accept_filter accept_filter;
    struct mk_app_error_handler error_handler;
    bool spools_bodies;       /* bodies that do not fit in memory go to files */
    mk_str default_type;      /* default Content-Type of text bodies; absent: none */
    char *default_type_owned; /* memory of default_type, if mk_server_set_default_type() allocated it; NULL:
                               * none */
};

/* The plugin that adds the program's routes and certificates to a configuration. */
extern const struct mk_plugin mk_app_routes_plugin;
/* The plugin that lets the program accept or reject each client; loaded only if the program has an accept
 * filter. */
extern const struct mk_plugin mk_app_accept_plugin;

/* The plugin that lets the program respond to errors; loaded only if the program has an error handler. */
extern const struct mk_plugin mk_app_error_plugin;

/* Like mk_router_add(), but for a host of the program, and with the error text in *error. `host`: number of
 * the host, from 1; 0: all hosts. */
mk_err mk_app_routes_add(struct mk_app_routes *p, mk_str what, unsigned host, mk_server_fn *fn, void *data,
                         struct mk_buf *error) MK_MUST_USE;
/* Copies the type; absent: no default. Returns 0 or -ENOMEM. */
mk_err mk_app_routes_set_default_type(struct mk_app_routes *p, mk_str type) MK_MUST_USE;
void mk_app_routes_free(struct mk_app_routes *p);

#endif
