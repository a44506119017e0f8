/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON reader that collects validation errors. */
#ifndef DUDA_TEXT_JSON_CURSOR_H
#define DUDA_TEXT_JSON_CURSOR_H

#include <duda/json.h>

#include "text/schema_field.h"

struct duda_json_cursor {
    struct mk_json_reader r;
    struct mk_json_error info; /* of r.error, which stops the parser at once */
    struct duda_validation_errors *errors;
    bool is_invalid; /* there are validation errors, after which parsing continues */
    bool is_merge;   /* the text is a merge patch: any member may be absent */
};

/* Prepares the cursor. Returns false if the text is too long. */
bool duda_json_cursor_init(struct duda_json_cursor *c, mk_str text, const struct mk_allocator *memory,
                           const struct mk_json_limits *limits, struct duda_validation_errors *errors);
/* Records a validation error. Returns true if parsing can continue: false once there are too many errors. */
bool duda_json_cursor_add_error(struct duda_json_cursor *c, size_t at,
                                const struct duda_violation *violation);
/* Returns 0, the error that stopped the parser, or -EINVAL if there are validation errors. An error of the
 * parser, except -ENOMEM, replaces the validation errors, which may be mere consequences of it (for example,
 * in truncated text). */
int duda_json_cursor_finish(struct duda_json_cursor *c);

/* Replaces all errors with the error of a reader. */
void duda_json_cursor_set_error(struct duda_validation_errors *errors, const struct mk_allocator *memory,
                                const struct mk_json_error *info);

#endif
