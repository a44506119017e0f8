/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of templates: functions that change a value before it is inserted. */
#ifndef DUDA_TEXT_TEMPLATE_FILTER_H
#define DUDA_TEXT_TEMPLATE_FILTER_H

#include "text/template_type.h"

/* Parses `| name argument... | name...`, and appends the calls to `calls`, which holds
 * DUDA_TEMPLATE_CALLS_MAX. Returns NULL, or the error as text for the author of the template. */
const char *duda_template_filter_parse(mk_str rest, struct duda_template_call *calls, size_t *n);

/* Parses a call of a filter on a literal, `asset "app.css"`: sets *literal and removes both words from *rest.
 * Returns false if *rest does not begin with such a call. */
bool duda_template_filter_parse_function(mk_str *rest, mk_str *literal, struct duda_template_call *call);

/* Applies the filter to *v. A text result is in `room`, which must live as long as *v. Returns NULL, or the
 * error. */
const char *duda_template_filter_apply(const struct duda_template_call *call, struct duda_value *v,
                                       const struct duda_render_options *options, struct mk_buf *room);

#endif
