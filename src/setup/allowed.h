/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins let workers do despite the sandbox, in words. */
#ifndef MK_SETUP_ALLOWED_H
#define MK_SETUP_ALLOWED_H

#include "settings/generation_type.h"

/* "read ", which a path follows, or "resolve names". */
const char *mk_allowed_word(enum mk_allows what);

/* Writes a line that begins with `prefix`, if workers may do more because of this plugin: "read /a, write
 * below /b, resolve names". */
void mk_allowed_print(const struct mk_generation *g, const struct mk_loaded *by, const char *prefix,
                      struct mk_buf *out);

#endif
