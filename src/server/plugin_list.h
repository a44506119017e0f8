/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey plugins`. Builds without MK_EXPLAIN list nothing. */
#ifndef MK_SERVER_PLUGIN_LIST_H
#define MK_SERVER_PLUGIN_LIST_H

#include "setup/config_generation.h"

/* Lists the plugins that can be loaded by name. */
void mk_plugin_list_write_all(struct mk_buf *out);
/* Lists the configured plugins: their hooks in call order, and their hosts. */
void mk_plugin_list_write_loaded(const struct mk_config_generation *g, struct mk_buf *out);

#endif
