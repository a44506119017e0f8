/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins on the command line: which there are, what a configuration makes of them, and the words they
 * answer. */
#ifndef MK_CLI_PLUGINS_H
#define MK_CLI_PLUGINS_H

#include "server/generation.h"

/* Could the plugin of that name be loaded? */
bool mk_plugins_can_load(const char *name);
/* Those that could be loaded by their names. */
void mk_plugins_write_all(struct mk_buf *out);
/* Those that the configuration loads: their hooks in the order in which they are called, and their hosts. */
void mk_plugins_write_loaded(const struct mk_generation *g, struct mk_buf *out);

/* Runs the plugin that answers argv[0]; false if there is none. */
bool mk_plugins_run_verb(int argc, char **argv, int *code);

#endif
