/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of fields made by hand; in the server the head parser makes them. Knows nothing of cmocka: fuzz
 * targets use it as well. */
#ifndef MK_UNIT_FIELDS_H
#define MK_UNIT_FIELDS_H

#include "http/header.h"

/* Adds a line as it is (nothing is checked or copied); false when there are `max` lines already. */
static inline bool fields_add(struct mk_headers *fields, unsigned max, mk_str name, mk_str value)
{
    if (fields->n >= max)
        return false;
    uint8_t id = (uint8_t)mk_header_find_id(name);
    fields->at[fields->n++] = (struct mk_header_field){name, value, id};
    if (!fields->first[id])
        fields->first[id] = (uint8_t)fields->n;
    return true;
}

#endif
