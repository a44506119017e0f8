/* SPDX-License-Identifier: Apache-2.0 */
/* Names of values in tags. */
#ifndef DUDA_TEXT_TEMPLATE_NAME_H
#define DUDA_TEXT_TEMPLATE_NAME_H

#include "text/template_type.h"

/* Returns whether the text is the name of a value: `.`, or without blanks and empty parts. */
bool duda_template_is_name(mk_str s);
/* Returns how to look up the name. */
enum duda_template_lookup duda_template_lookup_of(mk_str name);

#endif
