/* SPDX-License-Identifier: Apache-2.0 */
/* The command `monkey certificates`: lists the certificates of a configuration, without a running server. */
#ifndef MK_SERVER_CERTIFICATES_COMMAND_H
#define MK_SERVER_CERTIFICATES_COMMAND_H

#include "server/command_line.h"
#include "setup/config_generation_type.h"

/* The options of `certificates`. */
const struct mk_option *mk_certificates_command_options(size_t *n);
/* Removes the options of `certificates` from the arguments of the program. `word`: the first argument that is not an
 * option; NULL: none. False: an option is invalid, and the reason was printed. */
bool mk_certificates_command_take_options(int *argc, char **argv, const char *word,
                                          struct mk_certificates_options *out) MK_MUST_USE;
/* Prints the list, and returns the exit code: MK_EXIT_FAILED if a certificate needs attention. */
int mk_certificates_command_run(const struct mk_config_source *origin,
                                const struct mk_certificates_options *options);

#endif
