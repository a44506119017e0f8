/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of plugins on the command line. */
#ifndef MK_SERVER_CLI_PLUGINS_H
#define MK_SERVER_CLI_PLUGINS_H

#include "base/buf.h"
#include "conf/suggest.h"

/* Can the plugin with that name be loaded? */
bool mk_cli_plugins_can_load(const char *name);

/* Writes the plugin commands as rows of the help. */
void mk_cli_plugins_write_commands(struct mk_buf *out);
enum { MK_CLI_PLUGINS_COMMAND_MAX = 64 };
/* Tries the plugin commands as suggestions for an unknown word. `buf` holds the best one. */
void mk_cli_plugins_suggest_command(struct mk_conf_suggest *near, char buf[MK_CLI_PLUGINS_COMMAND_MAX]);

bool mk_cli_plugins_has_command(const char *word);
/* Runs the plugin command argv[0]. False: there is no such command. */
bool mk_cli_plugins_run_command(int argc, char **argv, int *code);

#endif
