/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that show a form with its values and errors. */
#include <errno.h>

#include "service/duda_ctx.h"

int duda_render_form(struct duda_ctx *d, const char *name, const struct duda_schema *schema, const void *form)
{
    const struct duda_entry page[] = {{"form", duda_value_struct(schema, form)}};
    bool has_errors = d->extras && d->extras->form_errors && d->extras->form_errors->n;
    int e = has_errors ? duda_status(d, 422) : 0;
    return e ? e : duda_render(d, name, duda_value_map(page, MK_LEN(page)));
}

int duda_bind_form_or_render_checked(struct duda_ctx *d, const struct duda_schema *schema, void *out,
                                     size_t size, const char *name)
{
    struct duda_validation_errors *errors = duda_alloc(d, sizeof *errors);
    int e = errors ? duda_bind_form_checked(d, schema, out, size, errors) : -ENOMEM;
    if (e != -EINVAL)
        return e;
    e = duda_render_form(d, name, schema, out);
    return e ? e : DUDA_HANDLED;
}
