/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins on the command line: which exist, how a configuration uses them, and which commands they
 * provide. */
#ifndef MK_CLI_CLI_PLUGINS_H
#define MK_CLI_CLI_PLUGINS_H

#include "conf/suggest.h"
#include "setup/config_generation.h"

/* Could the plugin of that name be loaded? */
bool mk_cli_plugins_can_load(const char *name);
/* Lists the plugins that can be loaded by name. */
void mk_cli_plugins_write_all(struct mk_buf *out);
/* Those that the configuration loads: their hooks in the order in which they are called, and their hosts. */
void mk_cli_plugins_write_loaded(const struct mk_config_generation *g, struct mk_buf *out);

/* The commands that plugins bring: rows for the help, and candidates for a word that is none. */
void mk_cli_plugins_write_commands(struct mk_buf *out);
enum { MK_CLI_PLUGINS_COMMAND_MAX = 64 };
void mk_cli_plugins_suggest_command(struct mk_conf_suggest *near, char room[MK_CLI_PLUGINS_COMMAND_MAX]);

bool mk_cli_plugins_has_command(const char *word);
/* Runs the plugin command argv[0]; false if there is none. */
bool mk_cli_plugins_run_command(int argc, char **argv, int *code);

#endif
