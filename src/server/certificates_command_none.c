/* SPDX-License-Identifier: Apache-2.0 */
#include "server/certificates_command.h"
#include "server/master.h"

const struct mk_option *mk_certificates_command_options(size_t *n)
{
    *n = 0;
    return NULL;
}

bool mk_certificates_command_take_options(int *argc, char **argv, const char *word,
                                          struct mk_certificates_options *out)
{
    (void)argc, (void)argv, (void)word;
    *out = (struct mk_certificates_options){0};
    return true;
}

int mk_certificates_command_run(const struct mk_config_source *origin,
                                const struct mk_certificates_options *options)
{
    (void)origin, (void)options;
    return MK_EXIT_USAGE;
}
