/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins let workers do despite the sandbox, in words. */
#ifndef MK_SETUP_SANDBOX_RULES_H
#define MK_SETUP_SANDBOX_RULES_H

#include "settings/config_generation_type.h"

/* "read ", which a path follows, or "resolve names". */
const char *mk_sandbox_rules_describe(enum mk_sandbox_permission what);

/* Writes a line that begins with `prefix`, if workers may do more because of this plugin: "read /a, write
 * below /b, resolve names". */
void mk_sandbox_rules_print(const struct mk_config_generation *g, const struct mk_loaded_plugin *by,
                            const char *prefix, struct mk_buf *out);

#endif
