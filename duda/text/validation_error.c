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

static bool is_code(const char *code, const char *a, const char *b)
{
    return strcmp(code, a) == 0 || strcmp(code, b) == 0;
}

/* The limits belong to the rule that the code names. */
static void set_limits(struct duda_validation_error *error, const struct duda_violation *v)
{
    const struct duda_schema_field *m = v->field;
    if (is_code(v->code, "minimum", "maximum")) {
        error->at_least = m->at_least;
        error->at_most = m->at_most;
    } else if (is_code(v->code, "minLength", "maxLength") || is_code(v->code, "minItems", "maxItems")) {
        error->at_least = (struct duda_bound){m->min_length > 0, (double)m->min_length};
        error->at_most = (struct duda_bound){m->max_length > 0, (double)m->max_length};
    } else if (strcmp(v->code, "pattern") == 0) {
        error->expected = m->pattern;
    } else if (strcmp(v->code, "format") == 0) {
        error->expected = m->kind == DUDA_KIND_TIMESTAMP ? duda_format_name(DUDA_FORMAT_DATE_TIME)
                          : m->kind == DUDA_KIND_BYTES   ? "base64"
                                                         : duda_format_name(m->format);
    }
}

bool duda_validation_errors_add(struct duda_validation_errors *errors, const struct mk_allocator *memory,
                                const struct duda_violation *v)
{
    if (errors->n == DUDA_VALIDATION_ERRORS_MAX)
        return false;
    char buf[POINTER_MAX];
    struct mk_buf pointer = mk_buf_fixed(buf, sizeof buf);
    append_json_pointer(&pointer, v->path);
    const struct duda_schema_field *m = v->field;
    struct duda_validation_error *error = &errors->items[errors->n++];
    *error = (struct duda_validation_error){.code = v->code};
    error->pointer = mk_allocator_copy(memory, mk_buf_str(&pointer));
    error->message = mk_allocator_copy(memory, m && m->message ? mk_str_from_c(m->message) : v->message);
    if (!m)
        return errors->n < DUDA_VALIDATION_ERRORS_MAX;
    set_limits(error, v);
    if (m->code && strcmp(v->code, "required") != 0)
        error->code = m->code;
    return errors->n < DUDA_VALIDATION_ERRORS_MAX;
}
