/* SPDX-License-Identifier: Apache-2.0 */
/* Output of a connection: a per-worker scratch buffer gathers everything it sends in this turn (pipelined
 * responses, a head and its small body), and one write sends it. Only bytes that the socket does not
 * accept are copied and kept. So an idle or fast connection owns no memory here, and a slow one only what
 * was queued before it blocked. */
#ifndef MK_NET_SEND_QUEUE_H
#define MK_NET_SEND_QUEUE_H

#include "base/buf.h"
#include "net/stream.h"

/* Large content may use the wide part while a socket takes it at once: fewer system calls. */
enum { MK_SEND_QUEUE_BUFFER = 64 * 1024, MK_SEND_QUEUE_WIDE_BUFFER = 256 * 1024 };

struct mk_send_queue_rest;

/* The unsent output of one connection; all zero is empty. */
struct mk_send_queue {
    struct mk_send_queue_rest *left;
};

static inline bool mk_send_queue_is_empty(const struct mk_send_queue *q)
{
    return !q->left;
}

/* Sends the queued bytes, then the scratch, and empties it. 0: all is sent. -EAGAIN: the rest is kept in
 * `q`. Any other error is final. `*sent` grows by the bytes the stream took. `more` as for a stream's
 * write. */
mk_err mk_send_queue_write(struct mk_send_queue *q, struct mk_stream *s, struct mk_buf *scratch, bool more,
                           uint64_t *sent) MK_MUST_USE;
/* Sends the queued bytes; returns as mk_send_queue_write does. */
mk_err mk_send_queue_flush(struct mk_send_queue *q, struct mk_stream *s, uint64_t *sent) MK_MUST_USE;
void mk_send_queue_free(struct mk_send_queue *q);
/* Number of queued bytes. */
size_t mk_send_queue_len(const struct mk_send_queue *q);

#endif
