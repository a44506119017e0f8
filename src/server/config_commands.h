/* SPDX-License-Identifier: Apache-2.0 */
/* The commands `monkey configurations` and `monkey diff`. Both return the exit code. */
#ifndef MK_SERVER_CONFIG_COMMANDS_H
#define MK_SERVER_CONFIG_COMMANDS_H

#include "setup/config_generation_type.h"

/* The second part of the help of a command: its options and exit codes; absent: the command has none. */
mk_str mk_config_commands_help(const char *command);
/* Lists the configurations that are kept. */
int mk_config_commands_list(const struct mk_config_source *files);
/* Compares the configuration that serves, or the kept one with that number, with the files. Returns 0 if they are
 * equal, 1 if they differ, and 2 after an error. */
int mk_config_commands_diff(const struct mk_config_source *files, const char *number);

#endif
