/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config_commands.h"

#include "server/report_output.h"

static int print_missing(void)
{
    mk_report_output_print_error(
        "this server was built without a history of configurations (MK_CONFIG_HISTORY)");
    return 2;
}

mk_str mk_config_commands_help(const char *command)
{
    (void)command;
    return MK_STR_NULL;
}

int mk_config_commands_list(const struct mk_config_source *files)
{
    (void)files;
    return print_missing();
}

int mk_config_commands_diff(const struct mk_config_source *files, const char *number)
{
    (void)files, (void)number;
    return print_missing();
}
