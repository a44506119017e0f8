/* SPDX-License-Identifier: Apache-2.0 */
/* Binds the words of a [ROUTES] line: a handler name and its arguments. */
#ifndef MK_SETUP_ROUTE_HANDLERS_H
#define MK_SETUP_ROUTE_HANDLERS_H

#include "setup/config_generation_type.h"
#include "web/route.h"

/* Sets handler, data, plugin and `written` of a route from words such as "redirect 301 https://example.org".
 * False: invalid, and the error was reported. */
bool mk_route_handlers_bind(struct mk_config_generation *g, struct mk_vhost_config *site,
                            struct mk_conf_report *report, const struct mk_conf_entry *entry, mk_str words,
                            struct mk_route *route);

/* Sets up a route that responds with a fixed status. False: out of memory. */
bool mk_route_handlers_bind_status(struct mk_arena *arena, unsigned status, mk_str written,
                                   struct mk_route *route);

/* Does a handler with this name exist? */
bool mk_route_handlers_has(const struct mk_config_generation *g, mk_str name);

#endif
