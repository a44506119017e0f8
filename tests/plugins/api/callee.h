/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the callee plugin exports. */
#include <monkey/plugin.h>

/* Returns the text set in [CALLEE] of this configuration, followed by `words`; an absent string if memory is
 * exhausted or the plugin is not loaded. */
MK_API mk_str callee_text(struct mk_config *config, mk_str words);
/* Returns whether any configuration has loaded the plugin. */
MK_API bool callee_is_loaded(void);
/* Returns the number of calls in this worker. */
MK_API unsigned callee_count(struct mk_worker *worker);
