/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a password without echoing it. */
#ifndef AUTH_TERMINAL_H
#define AUTH_TERMINAL_H

#include "credentials.h"

#include <monkey/str.h>

enum { AUTH_LINE_BUF_SIZE = AUTH_PASSWORD_MAX + 2 };

/* Returns whether there is a terminal to prompt on; otherwise input is piped. */
bool auth_stdin_is_terminal(void);
/* Reads one line without its newline, NUL-terminated. Returns 0 or a negated errno value: -ENODATA if there
 * is no line, -E2BIG if it exceeds the password limit. */
int auth_terminal_read_password(const char *prompt, char buf[AUTH_LINE_BUF_SIZE], mk_str *line);
int auth_stdin_read_line(char buf[AUTH_LINE_BUF_SIZE], mk_str *line);

#endif
