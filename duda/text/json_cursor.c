/* SPDX-License-Identifier: Apache-2.0 */
#include "text/json_cursor.h"

#include <errno.h>

bool duda_json_cursor_init(struct duda_json_cursor *c, mk_str text, const struct mk_allocator *memory,
                           const struct mk_json_limits *limits, struct duda_validation_errors *errors)
{
    c->errors = errors;
    c->is_invalid = c->is_merge = false;
    errors->n = 0;
    return mk_json_reader_init(&c->r, text, memory, limits, &c->info);
}

bool duda_json_cursor_add_error(struct duda_json_cursor *c, size_t at, const struct duda_violation *violation)
{
    struct duda_validation_errors *errors = c->errors;
    c->is_invalid = true;
    if (errors->n == DUDA_VALIDATION_ERRORS_MAX)
        return false;
    bool added = duda_validation_errors_add(errors, c->r.memory, violation);
    struct duda_validation_error *error = &errors->items[errors->n - 1];
    if (violation->field && violation->field->message) /* a text for users, whom a position would confuse */
        return added;
    mk_json_position(c->r.text, at, &error->line, &error->column);
    return added;
}

void duda_json_cursor_set_error(struct duda_validation_errors *errors, const struct mk_allocator *memory,
                                const struct mk_json_error *info)
{
    errors->n = 0;
    (void)duda_validation_errors_add(
        errors, memory, &(struct duda_violation){.code = "syntax", .message = mk_str_from_c(info->message)});
    errors->items[0].line = info->line;
    errors->items[0].column = info->column;
}

int duda_json_cursor_finish(struct duda_json_cursor *c)
{
    if (c->r.error && c->r.error != -ENOMEM)
        duda_json_cursor_set_error(c->errors, c->r.memory, &c->info);
    return c->r.error ? c->r.error : c->is_invalid ? -EINVAL : 0;
}
