/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters match. */
#ifndef MK_ROUTER_ROUTER_PARAM_TYPE_H
#define MK_ROUTER_ROUTER_PARAM_TYPE_H

#include <monkey/router.h>

/* The type of that name, as in `<int>`; MK_ROUTER_TYPES if there is none. */
enum mk_router_type mk_router_type_find(mk_str name);
/* The names of all, with commas, for messages. */
void mk_router_type_list(struct mk_buf *out);

/* Does the segment match? Fills the parameter but for its name. */
bool mk_router_type_parse(enum mk_router_type type, mk_str segment, struct mk_router_param *out);

#endif
