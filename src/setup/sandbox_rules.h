/* SPDX-License-Identifier: Apache-2.0 */
/* Text form of sandbox permissions granted to plugins. */
#ifndef MK_SETUP_SANDBOX_RULES_H
#define MK_SETUP_SANDBOX_RULES_H

#include "setup/config_generation_type.h"

/* Returns the text of a permission: "read ", to be followed by a path, or "resolve names". */
const char *mk_sandbox_rules_describe(enum mk_sandbox_permission what);

/* If this plugin extends the sandbox, prints a line with its permissions after `prefix`: "read /a, write
 * below /b, resolve names". */
void mk_sandbox_rules_print(const struct mk_config_generation *g, const struct mk_loaded_plugin *by,
                            const char *prefix, struct mk_buf *out);

#endif
