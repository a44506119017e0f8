/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON lexer: a cursor over the text and its tokens. Independent of schemas. */
#ifndef DUDA_TEXT_JSON_LEX_H
#define DUDA_TEXT_JSON_LEX_H

#include <duda/json.h>

#include "text/schema_field.h"

struct duda_json_cursor {
    mk_str text;
    size_t at;
    const struct mk_allocator *memory;
    size_t depth, depth_max; /* open arrays and objects */
    size_t items_left;
    struct duda_validation_errors *errors;
    int error; /* 0, or the result of the parser; any error but -EINVAL stops it at once */
};

/* Prepares the cursor. Returns false, and sets the error, if the text is too long. */
bool duda_json_cursor_init(struct duda_json_cursor *c, mk_str text, const struct mk_allocator *memory,
                           const struct duda_json_limits *limits, struct duda_validation_errors *errors);
/* Expects the end of the text, after optional white space. */
bool duda_json_expect_end(struct duda_json_cursor *c);

/* The next character that is not white space, without consuming it; 0 at the end. */
char duda_json_peek_char(struct duda_json_cursor *c);
/* Consumes the next character if it is `expected`. */
bool duda_json_accept_char(struct duda_json_cursor *c, char expected);
/* Like duda_json_accept_char(), but a different character is an error: `expectation` describes what was
 * expected. */
bool duda_json_expect_char(struct duda_json_cursor *c, char expected, const char *expectation);
/* Called after an element: true if another one follows, false at the end of the array or object, or on an
 * error. */
bool duda_json_next_element(struct duda_json_cursor *c, char close);
/* Enters an array or object whose opening bracket was consumed. Returns false, and sets the error, if the
 * nesting is too deep. */
bool duda_json_enter_nested(struct duda_json_cursor *c);
/* Leaves an array or object. */
void duda_json_leave_nested(struct duda_json_cursor *c);
/* Counts an element. Returns false, and sets the error, if the text has too many elements. */
bool duda_json_count_element(struct duda_json_cursor *c);

/* Each function consumes the token that its name states, starting at the next character. */
bool duda_json_lex_string(struct duda_json_cursor *c, mk_str *out);
/* Like duda_json_lex_string(), for a service: copies the string if necessary, to terminate it with a NUL. */
bool duda_json_lex_string_copy(struct duda_json_cursor *c, mk_str *out);
/* Consumes a member name: a string without a NUL. */
bool duda_json_lex_name(struct duda_json_cursor *c, mk_str *out);
bool duda_json_lex_number(struct duda_json_cursor *c, mk_str *out, bool *is_integer);
bool duda_json_lex_literal(struct duda_json_cursor *c, mk_str word);
/* Skips a value of any type, and sets *out to its text. */
bool duda_json_skip_value(struct duda_json_cursor *c, mk_str *out);

/* Stops the parser because of a syntax error, a limit or a lack of memory. Always returns false. */
bool duda_json_fail(struct duda_json_cursor *c, int error, size_t at, const char *fmt, ...)
    MK_API_PRINTF(4, 5);
/* Records a validation error. Returns true if parsing can continue: false once there are too many errors. */
bool duda_json_add_error(struct duda_json_cursor *c, size_t at, const struct duda_field_path *path,
                         mk_str text);

#endif
