/* SPDX-License-Identifier: Apache-2.0 */
/* Structs in a session, as JSON. */
#include <duda/json.h>
#include <duda/memory.h>
#include <duda/session.h>
#include <duda/value.h>
#include <errno.h>

#include "service/duda_ctx.h"

static int report_errors(struct duda_ctx *d, const char *name, int e, const char *what,
                         const struct duda_validation_errors *errors)
{
    mk_str reason = errors->n ? errors->items[0].message : MK_STR("");
    return duda_reason(d, e, "the session value `%s` %s: %.*s", name, what, MK_STR_ARG(reason));
}

/* Checks that duda_session_get_struct() can read the text. */
static int check_text(struct duda_ctx *d, const char *name, const struct duda_schema *schema, mk_str text)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors = {.n = 0};
    size_t mark = duda_arena_mark(d);
    void *copy = duda_alloc(d, schema->size);
    if (copy)
        memset(copy, 0, schema->size);
    int e = copy ? duda_json_read(text, schema, &memory, NULL, copy, &errors) : -ENOMEM;
    if (e && e != -ENOMEM)
        e = report_errors(d, name, -EINVAL, "does not match its schema", &errors);
    duda_arena_rewind(d, mark);
    return e;
}

int duda_session_set_struct_checked(struct duda_ctx *d, const char *name, const struct duda_schema *schema,
                                    const void *object, size_t size)
{
    int e = duda_schema_check_size(d, schema, size);
    if (e)
        return e;
    char *buf = duda_alloc(d, DUDA_SESSION_MAX); /* too large for the stack of a handler */
    if (!buf)
        return -ENOMEM;
    struct mk_buf text = mk_buf_fixed(buf, DUDA_SESSION_MAX);
    struct duda_value value = duda_value_struct(schema, object);
    duda_json_write(&text, &value);
    if (text.failed)
        return duda_reason(d, -EMSGSIZE,
                           "the session value `%s` is too large: a session has at most %d bytes", name,
                           (int)DUDA_SESSION_MAX);
    e = check_text(d, name, schema, mk_buf_str(&text));
    e = e ? e : duda_session_set(d, name, mk_buf_str(&text));
    return e == -EMSGSIZE ? duda_reason(d, e,
                                        "the session value `%s` (%zu bytes) does not fit: a session has at "
                                        "most %d bytes",
                                        name, text.len, (int)DUDA_SESSION_MAX)
                          : e;
}

int duda_session_get_struct_checked(struct duda_ctx *d, const char *name, const struct duda_schema *schema,
                                    void *out, size_t size)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors = {.n = 0};
    mk_str text;
    int e = duda_schema_check_size(d, schema, size);
    e = e ? e : duda_session_get(d, name, &text);
    if (e)
        return e;
    text = duda_strdup(d, text); /* another value may replace that of the session */
    e = text.p ? duda_json_read(text, schema, &memory, NULL, out, &errors) : -ENOMEM;
    return e && e != -ENOMEM ? report_errors(d, name, -EPROTO, "is not a struct of this schema", &errors) : e;
}
