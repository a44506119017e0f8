/* SPDX-License-Identifier: Apache-2.0 */
/* The commands. */
#ifndef CHEETAH_COMMANDS_H
#define CHEETAH_COMMANDS_H

#include "session.h"

/* Executes the line; the response may come later. */
void cheetah_command_run(struct cheetah_session *s, mk_str line);

#endif
