/* SPDX-License-Identifier: Apache-2.0 */
/* Builds sets of header fields by hand; in the server the head parser builds them. Independent of cmocka:
 * fuzz targets also use it. */
#ifndef MK_UNIT_HEADERS_H
#define MK_UNIT_HEADERS_H

#include "http/header.h"

/* Appends a field without checking or copying it; returns false if there are `max` fields already. */
static inline bool headers_add(struct mk_headers *fields, unsigned max, mk_str name, mk_str value)
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
