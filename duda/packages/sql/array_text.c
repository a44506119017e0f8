/* SPDX-License-Identifier: Apache-2.0 */
#include "array_text.h"

#include <monkey/json.h>

static bool is_special(char c)
{
    return c == ',' || c == '{' || c == '}' || c == '"' || c == '\\';
}

/* Consumes a quoted element, and writes it, without its escapes, as a JSON string. */
static bool take_quoted_element(struct mk_json_writer *w, mk_str *rest)
{
    mk_str text = mk_str_skip(*rest, 1);
    struct mk_buf plain = mk_buf_growing(text.len + 1);
    size_t i = 0;
    for (; i < text.len && text.p[i] != '"'; i++) {
        i += text.p[i] == '\\';
        if (i < text.len)
            mk_buf_add_char(&plain, text.p[i]);
    }
    bool is_closed = i < text.len && !plain.failed;
    if (is_closed)
        mk_json_string(w, plain.len ? mk_buf_str(&plain) : MK_STR(""));
    mk_buf_free(&plain);
    *rest = mk_str_skip(text, i + 1);
    return is_closed;
}

static bool take_plain_element(struct mk_json_writer *w, mk_str *rest, enum sql_array_elements elements)
{
    size_t end = 0;
    while (end < rest->len && !is_special(rest->p[end]))
        end++;
    mk_str text = mk_str_first(*rest, end);
    *rest = mk_str_skip(*rest, end);
    if (!end)
        return false;
    if (mk_str_eq_nocase(text, MK_STR("NULL")))
        mk_json_null(w);
    else if (elements == SQL_ARRAY_OF_NUMBERS)
        mk_json_raw(w, text);
    else if (elements == SQL_ARRAY_OF_BOOLS)
        mk_json_bool(w, mk_str_eq(text, MK_STR("t")));
    else
        mk_json_string(w, text);
    return true;
}

static bool take_char(mk_str *rest, char c)
{
    if (!rest->len || rest->p[0] != c)
        return false;
    *rest = mk_str_skip(*rest, 1);
    return true;
}

bool sql_array_to_json(struct mk_buf *out, mk_str text, enum sql_array_elements elements)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    if (!take_char(&text, '{'))
        return false;
    mk_json_begin_array(&w);
    if (!take_char(&text, '}')) {
        do {
            bool is_quoted = text.len && text.p[0] == '"';
            if (is_quoted ? !take_quoted_element(&w, &text) : !take_plain_element(&w, &text, elements))
                return false;
        } while (take_char(&text, ','));
        if (!take_char(&text, '}'))
            return false;
    }
    mk_json_end_array(&w);
    return !text.len && !out->failed;
}

void sql_array_write_element(struct mk_buf *out, mk_str text, bool is_first)
{
    if (!is_first)
        mk_buf_add_char(out, ',');
    if (!text.p) {
        mk_buf_add(out, MK_STR("NULL"));
        return;
    }
    mk_buf_add_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            mk_buf_add_char(out, '\\');
        mk_buf_add_char(out, text.p[i]);
    }
    mk_buf_add_char(out, '"');
}
