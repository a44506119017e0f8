/* SPDX-License-Identifier: Apache-2.0 */
/* Types of route parameters. */
#ifndef MK_HTTP_ROUTER_PARAM_TYPE_H
#define MK_HTTP_ROUTER_PARAM_TYPE_H

#include <monkey/router.h>

/* The type of text segments, and the result for unknown names. Not public: the value changes when types are
 * added. */
#define MK_ROUTER_NO_TYPE ((enum mk_router_type)(MK_ROUTER_REST + 1))

/* Returns the type with that name, as in `<int>`; MK_ROUTER_NO_TYPE: unknown. */
enum mk_router_type mk_router_type_find(mk_str name);
/* Lists all names, comma-separated, for messages. */
void mk_router_type_list(struct mk_buf *out);

/* Does the segment match the type? Sets all members of the parameter except its name. */
bool mk_router_type_parse(enum mk_router_type type, mk_str segment, struct mk_router_param *out);

#endif
