/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the content of a response ahead of a reader that is slower than the server, into a spool: so a slow
 * client does not hold the connection, nor the process that answers over it. A reader that keeps up gets
 * everything as it comes. */
#ifndef MK_UPSTREAM_READ_AHEAD_H
#define MK_UPSTREAM_READ_AHEAD_H

#include "upstream/request_type.h"

void mk_read_ahead_start(struct mk_upstream_request *c, struct mk_request *request);
void mk_read_ahead_fini(struct mk_upstream_request *c);
/* It is time to look whether the reader is slow: mk_upstream_request_timer_is_check(). */
void mk_read_ahead_check_reader(struct mk_upstream_request *c);
/* As mk_upstream_request_read(), for a request that was started. */
ssize_t mk_read_ahead_read(struct mk_upstream_request *c, char *buf, size_t cap);
/* There may be more to read. False: that is no news for the reader, which has something to read already. */
bool mk_read_ahead_fill(struct mk_upstream_request *c);

#endif
