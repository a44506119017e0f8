/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the connections of all workers, one page at a time, so that no process ever has all rows in
 * memory. */
#ifndef CHEETAH_CONNECTIONS_H
#define CHEETAH_CONNECTIONS_H

#include "session.h"

/* Runs the command `connections`. */
void cheetah_connections_command(struct cheetah_session *s, mk_str args, bool json);
/* Writes a page of this worker's rows, from the position in the query on. Returns the position of the next
 * page, or CHEETAH_CURSOR_END. */
int64_t cheetah_connections_write_page(struct mk_worker *w, const struct cheetah_message *question,
                                       struct mk_buf *out);

#endif
