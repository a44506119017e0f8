/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of all workers, a page at a time: nobody ever holds all of them. */
#ifndef SHELL_CONNECTIONS_H
#define SHELL_CONNECTIONS_H

#include "session.h"

/* The command. */
void shell_connections(struct shell_session *s, mk_str args, bool json);
/* As many rows of this worker as make a page, from where the question says. Answers where the next page
 * begins, or SHELL_CURSOR_END. */
int64_t shell_connections_write(struct mk_worker *w, const struct shell_note *question, struct mk_buf *out);

#endif
