/* SPDX-License-Identifier: Apache-2.0 */
/* The words of JSON: a cursor over the text, and what it finds there. It knows no shapes. */
#ifndef DUDA_TEXT_JSON_LEX_H
#define DUDA_TEXT_JSON_LEX_H

#include <duda/json.h>

#include "text/schema_field.h"

struct duda_json_cursor {
    mk_str text;
    size_t at;
    const struct duda_allocator *memory;
    size_t depth, depth_max; /* lists and objects that are open */
    size_t items_left;
    struct duda_validation_errors *errors;
    int error; /* 0, or what the reading will answer; any but -EINVAL ends it at once */
};

/* Prepares to read; false, with the error set, if the text is too long. */
bool duda_json_cursor_init(struct duda_json_cursor *c, mk_str text, const struct duda_allocator *memory,
                           const struct duda_json_limits *limits, struct duda_validation_errors *errors);
/* Nothing but white space may follow. */
bool duda_json_expect_end(struct duda_json_cursor *c);

/* The next character that is no white space; 0 at the end. It stays the next one. */
char duda_json_peek_char(struct duda_json_cursor *c);
/* Takes that character, if it is the next one. */
bool duda_json_accept_char(struct duda_json_cursor *c, char wanted);
/* The same; if it is not the next one, an error that says `what` was expected. */
bool duda_json_expect_char(struct duda_json_cursor *c, char wanted, const char *what);
/* After an element: true if another one follows, false if the list or object has ended, or on an error. */
bool duda_json_next_element(struct duda_json_cursor *c, char close);
/* Enters a list or an object, whose bracket was taken; leaves it. Counts an element. */
bool duda_json_enter_nested(struct duda_json_cursor *c);
void duda_json_leave_nested(struct duda_json_cursor *c);
bool duda_json_count_element(struct duda_json_cursor *c);

/* Each reads what its name says, from the next character on. */
bool duda_json_lex_string(struct duda_json_cursor *c, mk_str *out);
/* The same for a service: a copy, if need be, that ends with a NUL. */
bool duda_json_lex_string_copy(struct duda_json_cursor *c, mk_str *out);
/* The name of a member: a string without a NUL. */
bool duda_json_lex_name(struct duda_json_cursor *c, mk_str *out);
bool duda_json_lex_number(struct duda_json_cursor *c, mk_str *out, bool *is_integer);
bool duda_json_lex_literal(struct duda_json_cursor *c, mk_str word);
/* Any value, which is not kept; *out is its text. */
bool duda_json_skip_value(struct duda_json_cursor *c, mk_str *out);

/* Syntax, limits, memory: the reading ends. Always false. */
bool duda_json_fail(struct duda_json_cursor *c, int error, size_t at, const char *fmt, ...)
    MK_API_PRINTF(4, 5);
/* What was read does not fit: it goes on (true) until there are too many flaws. */
bool duda_json_add_error(struct duda_json_cursor *c, size_t at, const struct duda_field_path *where,
                         mk_str text);

#endif
