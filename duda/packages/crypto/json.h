/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers around jansson for tokens and keys. */
#ifndef DUDA_CRYPTO_JSON_H
#define DUDA_CRYPTO_JSON_H

#include <jansson.h>
#include <monkey/str.h>

enum { JSON_NESTED_MAX = 16 };

/* Returns whether brackets are nested too deeply. jansson recurses up to a depth of 2048, so nested brackets
 * from a client could overflow the stack of a handler. */
static inline bool duda_json_is_nested_too_deep(mk_str text)
{
    bool is_quoted = false;
    unsigned depth = 0;
    for (size_t i = 0; i < text.len && depth <= JSON_NESTED_MAX; i++) {
        char c = text.p[i];
        if (c == '"')
            is_quoted = !is_quoted;
        else if (is_quoted)
            i += c == '\\';
        else if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && depth)
            depth--;
    }
    return depth > JSON_NESTED_MAX;
}

/* Parses a JSON object. Returns NULL if the text is not an object, has duplicate names, or is nested too
 * deeply. */
static inline json_t *duda_json_parse_object(mk_str text)
{
    if (duda_json_is_nested_too_deep(text))
        return NULL;
    json_t *json = json_loadb(text.p ? text.p : "", text.len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(json))
        return json;
    json_decref(json);
    return NULL;
}

/* Returns a view of a string; absent if the value has another type. */
static inline mk_str duda_json_string_value(const json_t *json)
{
    return json_is_string(json) ? mk_str_of(json_string_value(json), json_string_length(json)) : MK_STR_NULL;
}

static inline bool duda_json_array_contains(const json_t *list, mk_str text)
{
    size_t i;
    json_t *element;
    json_array_foreach(list, i, element) if (json_is_string(element) &&
                                             mk_str_eq(duda_json_string_value(element), text)) return true;
    return false;
}

#endif
