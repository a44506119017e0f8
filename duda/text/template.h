/* SPDX-License-Identifier: Apache-2.0 */
/* Positions in the source of a template. */
#ifndef DUDA_TEXT_TEMPLATE_H
#define DUDA_TEXT_TEMPLATE_H

#include "text/template_type.h"

/* Formats a position: "people.html, line 3, column 5: ". */
void duda_template_position(const struct duda_template *t, size_t at, struct mk_buf *out);

#endif
