/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config_commands.h"

#include "server/master.h"

mk_str mk_config_commands_help(const char *command)
{
    (void)command;
    return MK_STR_NULL;
}

int mk_config_commands_list(const struct mk_config_source *files)
{
    (void)files;
    return MK_EXIT_USAGE;
}

int mk_config_commands_diff(const struct mk_config_source *files, const char *number)
{
    (void)files, (void)number;
    return MK_EXIT_USAGE;
}
