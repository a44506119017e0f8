/* SPDX-License-Identifier: Apache-2.0 */
/* Parses tags with the URL of a route: `{{url_for "issue" id=issue.id tab="files"}}`. */
#ifndef DUDA_TEXT_TEMPLATE_URL_H
#define DUDA_TEXT_TEMPLATE_URL_H

#include "text/template_type.h"

/* Returns whether the text in a tag consists of the word `url_for` and at least one argument. */
bool duda_template_is_url(mk_str inner);
/* Parses the text in the tag: *route is the name of the route, and `params` has room for
 * DUDA_TEMPLATE_PARAMS_MAX parameters. The names of the parameters must end with a NUL, which replaces the
 * `=` after them: `inner` is part of the allocation that begins at `source`. Returns NULL, or the error as
 * text for the author of the template. */
const char *duda_template_url_parse(char *source, mk_str inner, mk_str *route,
                                    struct duda_template_param *params, size_t *n);

#endif
