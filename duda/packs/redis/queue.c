/* SPDX-License-Identifier: Apache-2.0 */
/* Commands wait for the end of the turn, then for their replies. While the server is away they wait for it,
 * each for as long as Timeout; once it has been away for that long, new ones fail at once. */
#include "queue.h"

#include <errno.h>
#include <monkey/mem.h>

enum { TICK_MS = 50 };

struct redis_job *redis_job_new(size_t n_replies)
{
    struct redis_job *job = mk_mem_zalloc(1, sizeof *job);
    if (job) {
        job->left = n_replies;
        job->bytes = mk_buf_growing((size_t)256 << 20);
    }
    return job;
}

void redis_job_free(struct redis_job *job)
{
    if (job)
        mk_buf_free(&job->bytes);
    mk_mem_free(job);
}

static struct redis_job *take_first(struct redis_job **first, struct redis_job ***end)
{
    struct redis_job *job = *first;
    *first = job->next;
    if (!*first)
        *end = first;
    return job;
}

static void finish(struct redis_queue *q, struct redis_job *job, int error)
{
    q->n--;
    if (job->on_reply)
        job->on_reply(job->ctx, NULL, error);
    redis_job_free(job);
}

static void fail_sent(struct redis_queue *q, int error)
{
    while (q->sent)
        finish(q, take_first(&q->sent, &q->sent_end), error);
}

static void fail_waiting(struct redis_queue *q, int error)
{
    while (q->waiting)
        finish(q, take_first(&q->waiting, &q->waiting_end), error);
}

static bool has_been_away(const struct redis_queue *q)
{
    uint64_t now = mk_worker_now_ms(q->conn.worker);
    return q->down_ms && now - q->down_ms >= q->conn.settings->timeout_ms;
}

/* ---- The clock ---- */

static void tick_later(struct redis_queue *q)
{
    if (q->ticks || !q->n)
        return;
    q->ticks = true;
    mk_alarm_set(q->alarm, TICK_MS);
}

/* Replies come in their order: if the first is late, all are, and the connection is of no use. */
static void on_tick(void *ctx)
{
    struct redis_queue *q = ctx;
    uint64_t now = mk_worker_now_ms(q->conn.worker);
    q->ticks = false;
    redis_conn_check(&q->conn);
    if (q->sent && q->sent->due_ms <= now)
        redis_conn_fail(&q->conn, -ETIMEDOUT, "no reply within Timeout");
    while (q->waiting && q->waiting->due_ms <= now)
        finish(q, take_first(&q->waiting, &q->waiting_end), -ETIMEDOUT);
    if (q->waiting)
        redis_conn_open(&q->conn);
    tick_later(q);
}

/* ---- What the connection says ---- */

static void send_waiting(void *ctx)
{
    struct redis_queue *q = ctx;
    if (!q->waiting)
        return;
    if (q->conn.state != REDIS_UP) {
        redis_conn_open(&q->conn); /* on_up sends them */
        return;
    }
    while (q->waiting) {
        struct redis_job *job = take_first(&q->waiting, &q->waiting_end);
        mk_buf_add(&q->conn.out, mk_buf_str(&job->bytes));
        mk_buf_free(&job->bytes);
        job->next = NULL;
        *q->sent_end = job;
        q->sent_end = &job->next;
    }
    redis_conn_flush(&q->conn);
}

static void on_up(struct redis_conn *c)
{
    struct redis_queue *q = (struct redis_queue *)c;
    q->down_ms = 0;
    mk_turn_end_set(q->turn);
}

static void on_down(struct redis_conn *c, int error)
{
    struct redis_queue *q = (struct redis_queue *)c;
    if (!q->down_ms && c->backoff_ms) /* an attempt has failed, not only an old connection */
        q->down_ms = mk_worker_now_ms(c->worker);
    fail_sent(q, error);
    /* A wrong password does not become right by waiting. */
    if (has_been_away(q) || error == -EACCES)
        fail_waiting(q, error);
    else if (q->waiting && !c->backoff_ms)
        mk_turn_end_set(q->turn);
}

static void on_reply(struct redis_conn *c, const redisReply *reply)
{
    struct redis_queue *q = (struct redis_queue *)c;
    struct redis_job *job = q->sent;
    if (!job) {
        redis_conn_fail(c, -EPROTO, "a reply that no command asked for");
        return;
    }
    if (job->on_reply)
        job->on_reply(job->ctx, reply, 0);
    if (--job->left == 0)
        finish(q, take_first(&q->sent, &q->sent_end), 0);
}

/* ---- Its life ---- */

int redis_queue_add(struct redis_queue *q, struct redis_job *job)
{
    uint64_t now = mk_worker_now_ms(q->conn.worker);
    if (q->n >= q->conn.settings->waiting_max)
        return -EBUSY;
    if (has_been_away(q) && now < q->conn.retry_ms)
        return -ECONNREFUSED;
    job->due_ms = now + q->conn.settings->timeout_ms;
    job->next = NULL;
    *q->waiting_end = job;
    q->waiting_end = &job->next;
    q->n++;
    mk_turn_end_set(q->turn);
    tick_later(q);
    return 0;
}

int redis_queue_init(struct redis_queue *q, struct mk_worker *w, const struct redis_settings *settings)
{
    q->sent_end = &q->sent;
    q->waiting_end = &q->waiting;
    q->conn.on_up = on_up;
    q->conn.on_down = on_down;
    q->conn.on_reply = on_reply;
    q->turn = mk_turn_end_new(w, send_waiting, q);
    q->alarm = mk_alarm_new(w, on_tick, q);
    int e = redis_conn_init(&q->conn, w, settings);
    return q->turn && q->alarm ? e : -ENOMEM;
}

void redis_queue_fini(struct redis_queue *q)
{
    if (!q->conn.settings)
        return;
    fail_sent(q, -ECANCELED);
    fail_waiting(q, -ECANCELED);
    redis_conn_fini(&q->conn);
    mk_turn_end_free(q->turn);
    mk_alarm_free(q->alarm);
}
