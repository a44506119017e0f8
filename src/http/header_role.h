/* SPDX-License-Identifier: Apache-2.0 */
/* Defines which party may set a request header: a single table for all code that forwards requests. */
#ifndef MK_HTTP_HEADER_ROLE_H
#define MK_HTTP_HEADER_ROLE_H

#include <monkey/text.h>

#include "http/header.h"

/* enum mk_header_role of each enum mk_header_id. */
extern const uint8_t mk_header_roles_by_id[256];
/* The role of a name without an id. */
enum mk_header_role mk_header_role_of_other(mk_str name) MK_NOINLINE;

/* Like mk_header_role(), but for a caller that has already looked up the id of the name. */
static inline enum mk_header_role mk_header_role_of_id(enum mk_header_id id, mk_str name)
{
    return id != MK_HEADER_OTHER ? (enum mk_header_role)mk_header_roles_by_id[id]
                                 : mk_header_role_of_other(name);
}

/* Do programs that turn header names into variables confuse the two names, as with X-Tenant and X_Tenant? */
bool mk_header_is_same_variable(mk_str a, mk_str b);

#endif
