/* SPDX-License-Identifier: Apache-2.0 */
/* Positions in the source of a template, and its tags with URLs. */
#ifndef DUDA_TEXT_TEMPLATE_H
#define DUDA_TEXT_TEMPLATE_H

#include "text/template_type.h"

/* Returns whether the name is that of a text file, in which values are not escaped for HTML. */
bool duda_template_is_plain_text(mk_str name);

/* Formats a position: "people.html, line 3, column 5: ". */
void duda_template_position(const struct duda_template *t, size_t at, struct mk_buf *out);

/* A tag with the URL of a route. */
struct duda_template_url {
    mk_str route;
    const struct duda_template_param *params;
    size_t n_params;
    const struct duda_template *tmpl;
    size_t at; /* offset in the source */
};
/* Calls `visit` for each tag with a URL in the templates of the set. */
void duda_templates_visit_urls(const struct duda_templates *set,
                               void (*visit)(void *ctx, const struct duda_template_url *url), void *ctx);

#endif
