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

static void end_asking(struct duda_wait *w)
{
    const struct redis_asking *a = (struct redis_asking *)w;
    for (size_t i = 0; i < a->n; i++)
        if (!a->all[i].wait.is_over)
            a->all[i].job->wait = NULL;
}

int redis_asking_begin(struct redis_asking *a, struct duda *d, struct redis_sending *all, size_t n)
{
    *a = (struct redis_asking){.all = all, .n = n};
    for (size_t i = 0; i < n; i++)
        all[i] = (struct redis_sending){.wait.is_over = true};
    return duda_wait_begin(d, &a->wait, end_asking);
}

int redis_request_begin(struct redis_asking *a, struct redis_queue *q, const struct redis_request *r,
                        struct duda_redis_reply *replies, struct redis_sending *s)
{
    s->wait = (struct redis_wait){.wait = &a->wait, .replies = replies};
    int e = redis_queue_begin(q, &s->wait, redis_request_replies(r), &s->job);
    s->wait.is_unsent = e == -ECONNREFUSED;
    s->wait.is_over = e != 0;
    if (e)
        return e;
    uint64_t *due = &s->job->request.due_ms;
    if (__builtin_add_overflow(*due, r->late_ms, due))
        *due = UINT64_MAX;
    write_all(&q->bytes, r);
    return redis_queue_add(q, s->job);
}

int redis_request_wait(struct redis_asking *a, const struct redis_sending *s)
{
    while (!s->wait.is_over && !a->error)
        a->error = duda_wait_suspend(&a->wait);
    return s->wait.is_over ? s->wait.error : a->error;
}

int redis_request_run(struct duda *d, struct redis_queue *q, const struct redis_request *r,
                      struct duda_redis_reply *replies, bool *is_unsent)
{
    struct redis_asking a;
    struct redis_sending s;
    int e = redis_asking_begin(&a, d, &s, 1);
    e = e ? e : redis_request_begin(&a, q, r, replies, &s);
    e = e ? e : redis_request_wait(&a, &s);
    duda_wait_end(&a.wait);
    *is_unsent = s.wait.is_unsent;
    return e;
}
