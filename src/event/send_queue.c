/* SPDX-License-Identifier: Apache-2.0 */
#include "event/send_queue.h"

#include "base/atomic_counter.h"
#include "base/mem.h"

struct mk_send_queue_rest {
    size_t from, len;
    char bytes[];
};

/* Writes until everything is accepted or the stream would block. Returns the stream's result, and leaves the
 * rest in *bytes. */
static inline mk_err write_to_stream(struct mk_stream *s, mk_str *bytes, bool more, uint64_t *sent)
{
    while (bytes->len > 0) {
        ssize_t n = s->ops->write(s, *bytes, more);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return (mk_err)n;
        mk_counter_add(sent, (uint64_t)n);
        *bytes = mk_str_skip(*bytes, (size_t)n);
    }
    return 0;
}

size_t mk_send_queue_len(const struct mk_send_queue *q)
{
    return q->left ? q->left->len - q->left->from : 0;
}

/* Appends to the bytes already queued. */
static mk_err queue_rest(struct mk_send_queue *q, mk_str rest)
{
    size_t before = mk_send_queue_len(q);
    struct mk_send_queue_rest *left = mk_mem_alloc(sizeof *left + before + rest.len);
    if (!left)
        return -ENOMEM;
    left->from = 0;
    left->len = before + rest.len;
    if (before)
        memcpy(left->bytes, q->left->bytes + q->left->from, before);
    memcpy(left->bytes + before, rest.p, rest.len);
    mk_send_queue_free(q);
    q->left = left;
    return -EAGAIN;
}

MK_COLD static mk_err send_queued(struct mk_send_queue *q, struct mk_stream *s, uint64_t *sent)
{
    mk_str rest = mk_str_of(q->left->bytes + q->left->from, q->left->len - q->left->from);
    mk_err e = write_to_stream(s, &rest, false, sent);
    q->left->from = q->left->len - rest.len;
    if (!e)
        mk_send_queue_free(q);
    return e;
}

mk_err mk_send_queue_write(struct mk_send_queue *q, struct mk_stream *s, struct mk_buf *buffer, bool more,
                           uint64_t *sent)
{
    mk_str rest = mk_buf_str(buffer);
    mk_err e = q->left ? send_queued(q, s, sent) : 0;
    if (!e)
        e = write_to_stream(s, &rest, more, sent);
    if (e == -EAGAIN && rest.len)
        e = queue_rest(q, rest);
    mk_buf_clear(buffer);
    return e;
}

mk_err mk_send_queue_flush(struct mk_send_queue *q, struct mk_stream *s, uint64_t *sent)
{
    return q->left ? send_queued(q, s, sent) : 0;
}

void mk_send_queue_free(struct mk_send_queue *q)
{
    mk_mem_free(q->left);
    q->left = NULL;
}
