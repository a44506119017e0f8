/* SPDX-License-Identifier: Apache-2.0 */
/* Read-ahead: reads a response body into a spool when the reader is slower than the server, so that a slow
 * client occupies neither the connection nor the backend process. A reader that keeps up receives the data
 * directly. */
#ifndef MK_UPSTREAM_READ_AHEAD_H
#define MK_UPSTREAM_READ_AHEAD_H

#include <monkey/spool.h>

#include "upstream/request_type.h"

void mk_read_ahead_start(struct mk_upstream_request *c, struct mk_request *request);
/* Call it when the check timer has fired: checks whether the reader is slow. See
 * mk_upstream_request_timer_is_check(). */
void mk_read_ahead_check_reader(struct mk_upstream_request *c);
/* Implements mk_upstream_request_read() after mk_read_ahead_start(). */
ssize_t mk_read_ahead_read(struct mk_upstream_request *c, char *buf, size_t cap);
/* Reads more of the response if available. False: the reader need not be notified, because it already has
 * data to read. */
bool mk_read_ahead_fill_queue(struct mk_upstream_request *c);
static inline bool mk_read_ahead_fill(struct mk_upstream_request *c)
{
    return !c->ahead.queue || mk_read_ahead_fill_queue(c);
}
static inline void mk_read_ahead_fini(struct mk_upstream_request *c)
{
    if (c->ahead.queue)
        mk_spool_queue_free(c->ahead.queue);
}

#endif
