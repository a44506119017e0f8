/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey explain --sandbox` prints what each kind of process may access, and the setting that each permission
 * follows from. `monkey explain --systemd` prints similar restrictions for the systemd unit. */
#ifndef MK_SERVER_EXPLAIN_SANDBOX_H
#define MK_SERVER_EXPLAIN_SANDBOX_H

#include "server/command_line.h"
#include "setup/config_generation_type.h"

/* Takes an option for the sandbox. False: it is another argument; always without MK_FULL_SANDBOX. */
bool mk_explain_sandbox_take_option(const char *word, struct mk_explain_request *out);
/* Prints what the option has requested. */
void mk_explain_sandbox(struct mk_config_generation *g, const struct mk_explain_request *request,
                        struct mk_buf *out);

#endif
