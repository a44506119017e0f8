/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked for. */
#ifndef SHELL_COMMANDS_H
#define SHELL_COMMANDS_H

#include "session.h"

/* Answers the line, now or later. */
void shell_command_run(struct shell_session *s, mk_str line);
/* The first line of a session. */
void shell_command_greet(struct shell_session *s);

#endif
