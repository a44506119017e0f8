/* SPDX-License-Identifier: Apache-2.0 */
/* Send queue of a connection: a per-worker output buffer gathers everything that the connection sends in an
 * iteration (pipelined responses, a head and its small body), and one write sends it. Only bytes that the
 * socket does not accept are copied and kept. An idle or fast connection therefore uses no memory here, and a
 * slow connection only as much as was queued before it blocked. */
#ifndef MK_EVENT_SEND_QUEUE_H
#define MK_EVENT_SEND_QUEUE_H

#include "base/buf.h"
#include "event/stream.h"

/* A large body may use the wide buffer while the socket has space for all of it, which saves system calls. */
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

/* Sends the queued bytes, then the contents of the output buffer, which is empty afterwards. 0: everything is
 * sent. -EAGAIN: the rest is kept in `q`. Any other error is final. `*sent` grows by the bytes accepted.
 * `more`: see mk_stream_ops.write. */
mk_err mk_send_queue_write(struct mk_send_queue *q, struct mk_stream *s, struct mk_buf *buffer, bool more,
                           uint64_t *sent) MK_MUST_USE;
/* Sends the queued bytes; returns the same values as mk_send_queue_write(). */
mk_err mk_send_queue_flush(struct mk_send_queue *q, struct mk_stream *s, uint64_t *sent) MK_MUST_USE;
void mk_send_queue_free(struct mk_send_queue *q);
/* Returns the number of queued bytes. */
size_t mk_send_queue_len(const struct mk_send_queue *q);

#endif
