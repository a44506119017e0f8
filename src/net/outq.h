/* SPDX-License-Identifier: Apache-2.0 */
/* The way out: one scratch of the worker gathers what a connection has to say in this turn (several pipelined
 * answers, a head and its small body), one write sends it. Only what the socket would not take is copied and
 * kept, so that an idle or a fast connection owns no memory here, and a slow one not more than what it was
 * given before it was seen to be slow. */
#ifndef MK_NET_OUTQ_H
#define MK_NET_OUTQ_H

#include "base/buf.h"
#include "net/stream.h"

enum { MK_OUTQ_SCRATCH = 64 * 1024 };

struct mk_outq_left;

/* What is left to send of one connection; all zero is empty. */
struct mk_outq {
    struct mk_outq_left *left;
};

static inline bool mk_outq_empty(const struct mk_outq *q)
{
    return !q->left;
}

/* Sends what is left, then what the scratch holds, and empties it. 0: all is gone. -EAGAIN: the rest is kept
 * in `q`. Anything else is final. `*sent` grows by what the stream took. `more` as for a stream's write. */
mk_err mk_outq_flush(struct mk_outq *q, struct mk_stream *s, struct mk_buf *scratch, bool more,
                     uint64_t *sent) MK_MUST_USE;
/* Sends on what is left; answers as mk_outq_flush. */
mk_err mk_outq_push(struct mk_outq *q, struct mk_stream *s, uint64_t *sent) MK_MUST_USE;
void mk_outq_free(struct mk_outq *q);
/* Bytes of what is left. */
size_t mk_outq_len(const struct mk_outq *q);

#endif
