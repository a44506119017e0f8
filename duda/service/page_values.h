/* SPDX-License-Identifier: Apache-2.0 */
/* The values that all templates of a service have: `@user`, `@csrf_token`, `@flash` and `@errors`. */
#ifndef DUDA_SERVICE_PAGE_VALUES_H
#define DUDA_SERVICE_PAGE_VALUES_H

#include "service/duda_ctx.h"

/* The state of one rendering. */
struct duda_page_values {
    struct duda_ctx *d;
    bool is_absolute;      /* URLs begin with PublicUrl of [DUDA] */
    bool lacks_public_url; /* the template contains such a URL, but PublicUrl is not set */
    bool has_flash;
    struct duda_value flash; /* taken by the first `@flash` of the page */
};

/* Finds the value with this name, given without `@`: see `find_global` of struct duda_render_options. */
int duda_page_values_find(void *ctx, mk_str name, struct duda_value *out);

#endif
