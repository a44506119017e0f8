/* SPDX-License-Identifier: Apache-2.0 */
/* What tokens and keys need of jansson. */
#ifndef DUDA_CRYPTO_JSON_H
#define DUDA_CRYPTO_JSON_H

#include <jansson.h>
#include <monkey/str.h>

/* A JSON object of which each name has one value; NULL: it is none. */
static inline json_t *duda_json_object(mk_str text)
{
    json_t *json = json_loadb(text.p ? text.p : "", text.len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(json))
        return json;
    json_decref(json);
    return NULL;
}

/* Absent unless it is a text. */
static inline mk_str duda_json_text(const json_t *json)
{
    return json_is_string(json) ? mk_str_of(json_string_value(json), json_string_length(json)) : MK_ABSENT;
}

/* Is the text in the list? */
static inline bool duda_json_has(const json_t *list, mk_str text)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i,
                       one) if (json_is_string(one) && mk_str_eq(duda_json_text(one), text)) return true;
    return false;
}

#endif
