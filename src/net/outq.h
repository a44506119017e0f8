/* SPDX-License-Identifier: Apache-2.0 */
/* Output of a connection: a per-worker scratch buffer gathers everything it sends in this turn (pipelined
 * responses, a head and its small body), and one write sends it. Only bytes that the socket does not
 * accept are copied and kept. So an idle or fast connection owns no memory here, and a slow one only what
 * was queued before it blocked. */
#ifndef MK_NET_OUTQ_H
#define MK_NET_OUTQ_H

#include "base/buf.h"
#include "net/stream.h"

/* Large content may use the wide part while a socket takes it at once: fewer system calls. */
enum { MK_OUTQ_SCRATCH = 64 * 1024, MK_OUTQ_WIDE = 256 * 1024 };

struct mk_outq_left;

/* The unsent output of one connection; all zero is empty. */
struct mk_outq {
    struct mk_outq_left *left;
};

static inline bool mk_outq_empty(const struct mk_outq *q)
{
    return !q->left;
}

/* Sends the queued bytes, then the scratch, and empties it. 0: all is sent. -EAGAIN: the rest is kept in
 * `q`. Any other error is final. `*sent` grows by the bytes the stream took. `more` as for a stream's
 * write. */
mk_err mk_outq_flush(struct mk_outq *q, struct mk_stream *s, struct mk_buf *scratch, bool more,
                     uint64_t *sent) MK_MUST_USE;
/* Sends the queued bytes; returns as mk_outq_flush does. */
mk_err mk_outq_push(struct mk_outq *q, struct mk_stream *s, uint64_t *sent) MK_MUST_USE;
void mk_outq_free(struct mk_outq *q);
/* Number of queued bytes. */
size_t mk_outq_len(const struct mk_outq *q);

#endif
