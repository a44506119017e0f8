/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a password without echoing it. */
#ifndef AUTH_TERMINAL_H
#define AUTH_TERMINAL_H

#include "credentials.h"

#include <monkey/str.h>

enum { AUTH_LINE_BUF_SIZE = AUTH_PASSWORD_MAX + 2 };

/* Is there a terminal to prompt on, or is input piped? */
bool auth_stdin_is_terminal(void);
/* Reads one line without its end, NUL-terminated. 0, or a negated errno value: -ENODATA when there is
 * none, -E2BIG when it exceeds the password limit. */
int auth_terminal_read_password(const char *prompt, char buf[AUTH_LINE_BUF_SIZE], mk_str *line);
int auth_terminal_read_pipe(char buf[AUTH_LINE_BUF_SIZE], mk_str *line);

#endif
