/* SPDX-License-Identifier: Apache-2.0 */
/* The words of [ROUTES]: which handler they name, and what it is told. */
#ifndef MK_SERVER_HANDLERS_H
#define MK_SERVER_HANDLERS_H

#include "server/generation.h"
#include "web/route.h"

/* Fills handler, data, plugin and `written` of a route from "redirect 301 https://example.org". Reports what
 * is wrong and answers false. */
bool mk_handlers_bind(struct mk_generation *g, struct mk_conf_report *report,
                      const struct mk_conf_entry *entry, mk_str words, struct mk_route *route);

/* A route that answers with a status; false when memory is out. */
bool mk_handlers_bind_status(struct mk_arena *arena, unsigned status, mk_str written, struct mk_route *route);

/* Is there a handler of that name? */
bool mk_handlers_has(const struct mk_generation *g, mk_str name);

#endif
