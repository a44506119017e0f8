/* SPDX-License-Identifier: Apache-2.0 */
/* Who may set a field of a request: the one table for everything that passes requests on. */
#ifndef MK_HTTP_FIELD_ROLE_H
#define MK_HTTP_FIELD_ROLE_H

#include <monkey/text.h>

#include "http/field.h"

/* The same as mk_field_role(), for a name with a known id. */
enum mk_field_role mk_field_role_of(enum mk_field_id id, mk_str name);

#endif
