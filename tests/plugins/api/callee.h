/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin callee has for others. */
#include <monkey/plugin.h>

/* A text that was set in [CALLEE] of this configuration, with the words behind it; absent when memory is out
 * or the plugin is not loaded. */
MK_API mk_str callee_text(struct mk_config *config, mk_str words);
/* Is it loaded in some configuration? */
MK_API bool callee_is_loaded(void);
/* How often this was called in this worker. */
MK_API unsigned callee_count(struct mk_worker *worker);
