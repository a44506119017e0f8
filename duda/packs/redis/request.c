/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <duda/wait.h>
#include <errno.h>

size_t redis_request_replies(const struct redis_request *r)
{
    return r->n + (r->is_whole ? 2 : 0) + r->asks;
}

static void write_all(struct mk_buf *out, const struct redis_request *r)
{
    if (r->asks)
        redis_conn_write(out, (const mk_str[]){MK_STR("ASKING")}, 1);
    if (r->is_whole)
        redis_conn_write(out, (const mk_str[]){MK_STR("MULTI")}, 1);
    for (size_t i = 0; i < r->n; i++)
        redis_conn_write(out, r->commands[i].parts, r->commands[i].n);
    if (r->is_whole)
        redis_conn_write(out, (const mk_str[]){MK_STR("EXEC")}, 1);
}

int redis_request_begin(struct duda *d, struct redis_queue *q, const struct redis_request *r,
                        struct duda_redis_reply *replies, struct redis_sending *s)
{
    s->wait = (struct redis_wait){.d = d, .replies = replies};
    int e = duda_ended(d);
    if (e)
        return e;
    e = redis_queue_begin(q, &s->wait, redis_request_replies(r), &s->job);
    s->wait.is_unsent = e == -ECONNREFUSED;
    if (e)
        return e;
    uint64_t *due = &s->job->request.due_ms;
    if (__builtin_add_overflow(*due, r->late_ms, due))
        *due = UINT64_MAX;
    write_all(&q->bytes, r);
    return redis_queue_add(q, s->job);
}

int redis_request_wait(struct redis_sending *s)
{
    int e = duda_ended(s->wait.d); /* of another one of many: these waits do not count as its own */
    while (!s->wait.is_over && !e)
        e = duda_suspend(s->wait.d);
    if (s->wait.is_over)
        return s->wait.error;
    s->job->wait = NULL;
    return e;
}
