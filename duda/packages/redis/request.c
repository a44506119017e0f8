/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <duda/wait.h>
#include <errno.h>

size_t redis_request_reply_count(const struct redis_request *r)
{
    return r->n + (r->is_transaction ? 2 : 0) + r->sends_asking;
}

static void format_commands(struct mk_buf *out, const struct redis_request *r)
{
    if (r->sends_asking)
        redis_command_format(out, (const mk_str[]){MK_STR("ASKING")}, 1);
    if (r->is_transaction)
        redis_command_format(out, (const mk_str[]){MK_STR("MULTI")}, 1);
    for (size_t i = 0; i < r->n; i++)
        redis_command_format(out, r->commands[i].args, r->commands[i].n);
    if (r->is_transaction)
        redis_command_format(out, (const mk_str[]){MK_STR("EXEC")}, 1);
}

static void abandon_requests(struct duda_wait *w)
{
    const struct redis_request_group *a = (struct redis_request_group *)w;
    for (size_t i = 0; i < a->n; i++)
        if (!a->all[i].wait.is_over)
            a->all[i].batch->wait = NULL;
}

int redis_request_group_begin(struct redis_request_group *a, struct duda_ctx *d,
                              struct redis_pending_request *all, size_t n)
{
    *a = (struct redis_request_group){.all = all, .n = n};
    for (size_t i = 0; i < n; i++)
        all[i] = (struct redis_pending_request){.wait.is_over = true};
    return duda_wait_begin(d, &a->wait, abandon_requests);
}

int redis_request_begin(struct redis_request_group *a, struct redis_command_queue *q,
                        const struct redis_request *r, struct duda_redis_reply *replies,
                        struct redis_pending_request *s)
{
    s->wait = (struct redis_reply_wait){.wait = &a->wait, .replies = replies};
    int e = redis_batch_begin(q, &s->wait, redis_request_reply_count(r), &s->batch);
    s->wait.is_not_sent = e == -ECONNREFUSED;
    s->wait.is_over = e != 0;
    if (e)
        return e;
    uint64_t *due = &s->batch->request.due_ms;
    if (__builtin_add_overflow(*due, r->extra_timeout_ms, due))
        *due = UINT64_MAX;
    format_commands(&q->bytes, r);
    e = redis_batch_enqueue(q, s->batch);
    s->wait.is_over = e != 0; /* the batch has ended, and may belong to another handler soon */
    return e;
}

int redis_request_wait(struct redis_request_group *a, const struct redis_pending_request *s)
{
    while (!s->wait.is_over && !a->error)
        a->error = duda_wait_suspend(&a->wait);
    return s->wait.is_over ? s->wait.error : a->error;
}

int redis_request_run(struct duda_ctx *d, struct redis_command_queue *q, const struct redis_request *r,
                      struct duda_redis_reply *replies, bool *is_not_sent)
{
    struct redis_request_group a;
    struct redis_pending_request s;
    int e = redis_request_group_begin(&a, d, &s, 1);
    e = e ? e : redis_request_begin(&a, q, r, replies, &s);
    e = e ? e : redis_request_wait(&a, &s);
    duda_wait_end(&a.wait);
    *is_not_sent = s.wait.is_not_sent;
    return e;
}
