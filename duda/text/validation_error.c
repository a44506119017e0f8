/* SPDX-License-Identifier: Apache-2.0 */
/* Validation errors and their locations. */
#include "text/schema_field.h"

enum { POINTER_MAX = 512 };

void duda_validation_error_write(struct mk_buf *out, const struct duda_validation_error *error)
{
    if (error->line)
        mk_buf_addf(out, "line %zu, column %zu: ", error->line, error->column);
    mk_buf_add(out, error->message);
}

/* "~" and "/" in names are escaped as "~0" and "~1" (RFC 6901, section 3). */
static void append_pointer_token(struct mk_buf *out, const struct duda_field_path *path)
{
    mk_buf_add_char(out, '/');
    if (!path->name) {
        mk_buf_add_num(out, path->index);
        return;
    }
    for (const char *c = path->name; *c; c++) {
        if (*c == '~' || *c == '/')
            mk_buf_add(out, *c == '~' ? MK_STR("~0") : MK_STR("~1"));
        else
            mk_buf_add_char(out, *c);
    }
}

static void append_json_pointer(struct mk_buf *out, const struct duda_field_path *path)
{
    size_t n = 0;
    for (const struct duda_field_path *w = path; w; w = w->up)
        n++;
    for (; n > 0; n--) { /* from the outermost field to the innermost; there are few */
        const struct duda_field_path *w = path;
        for (size_t i = 1; i < n; i++)
            w = w->up;
        append_pointer_token(out, w);
    }
}

bool duda_validation_errors_add(struct duda_validation_errors *errors, const struct mk_allocator *memory,
                                const struct duda_field_path *path, mk_str text)
{
    if (errors->n == DUDA_VALIDATION_ERRORS_MAX)
        return false;
    char buf[POINTER_MAX];
    struct mk_buf pointer = mk_buf_fixed(buf, sizeof buf);
    append_json_pointer(&pointer, path);
    struct duda_validation_error *f = &errors->items[errors->n++];
    f->line = f->column = 0;
    f->pointer = mk_allocator_copy(memory, mk_buf_str(&pointer));
    f->message = mk_allocator_copy(memory, text);
    return errors->n < DUDA_VALIDATION_ERRORS_MAX;
}
