/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a password, so that nobody sees it. */
#ifndef AUTH_TERMINAL_H
#define AUTH_TERMINAL_H

#include "credentials.h"

#include <monkey/str.h>

enum { AUTH_LINE_ROOM = AUTH_PASSWORD_MAX + 2 };

/* Is there somebody to be asked, or does it come out of a pipe? */
bool auth_terminal_is_there(void);
/* One line, without its end; a NUL is behind it. 0, or a negated errno value: -ENODATA when there is none,
 * -E2BIG when it is longer than a password may be. */
int auth_terminal_ask(const char *prompt, char room[AUTH_LINE_ROOM], mk_str *line);
int auth_terminal_read_pipe(char room[AUTH_LINE_ROOM], mk_str *line);

#endif
