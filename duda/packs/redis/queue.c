/* SPDX-License-Identifier: Apache-2.0 */
/* Commands wait for the end of the turn, then for their replies. While the server is away they wait for it,
 * each for as long as Timeout; once it has been away for that long, new ones fail at once. */
#include "queue.h"

#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

/* A server that stays a replica is left so often, at most. */
enum { RETIRE_MS = 1000 };

enum { TICK_MS = 50, TICK_MAX_MS = 1000, SPARE_MAX = 256 };

#define BYTES_MAX ((size_t)256 << 20)

static struct redis_job *new_job(struct redis_queue *q)
{
    struct redis_job *job = q->spare;
    if (!job)
        return mk_mem_alloc(sizeof *job);
    q->spare = job->next;
    q->n_spare--;
    return job;
}

static void free_job(struct redis_queue *q, struct redis_job *job)
{
    if (q->n_spare == SPARE_MAX) {
        mk_mem_free(job);
        return;
    }
    job->next = q->spare;
    q->spare = job;
    q->n_spare++;
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
    struct redis_wait *wait = job->wait;
    q->n--;
    if (wait) {
        wait->error = error ? error : wait->error;
        wait->is_over = true;
        duda_wake(wait->d);
    }
    free_job(q, job);
}

static void fail_sent(struct redis_queue *q, int error)
{
    while (q->sent)
        finish(q, take_first(&q->sent, &q->sent_end), error);
}

static void fail_unsent(struct redis_queue *q, int error)
{
    struct redis_job *job = take_first(&q->waiting, &q->waiting_end);
    if (job->wait)
        job->wait->is_unsent = true;
    finish(q, job, error);
}

static void fail_first_waiting(struct redis_queue *q, int error)
{
    mk_buf_drop(&q->bytes, q->waiting->len);
    fail_unsent(q, error);
}

static void fail_waiting(struct redis_queue *q, int error)
{
    mk_buf_free(&q->bytes);
    while (q->waiting)
        fail_unsent(q, error);
}

static bool has_been_away(const struct redis_queue *q)
{
    uint64_t now = mk_worker_now_ms(q->conn.worker);
    return q->down_ms && now - q->down_ms >= q->conn.settings->timeout_ms;
}

/* ---- The clock ---- */

static void tick_later(struct redis_queue *q)
{
    uint64_t now = mk_worker_now_ms(q->conn.worker);
    const struct redis_job *first = q->sent ? q->sent : q->waiting;
    uint32_t ms = TICK_MS;
    if (!first)
        return;
    if (!q->waiting && first->due_ms > now + TICK_MS)
        ms = first->due_ms - now < TICK_MAX_MS ? (uint32_t)(first->due_ms - now) : TICK_MAX_MS;
    if (q->tick_ms && q->tick_ms <= now + ms)
        return;
    q->tick_ms = now + ms;
    mk_alarm_set(q->alarm, ms);
}

/* Replies come in their order: if the first is late, all are, and the connection is of no use. */
static void on_tick(void *ctx)
{
    struct redis_queue *q = ctx;
    uint64_t now = mk_worker_now_ms(q->conn.worker);
    q->tick_ms = 0;
    redis_conn_check(&q->conn);
    if (q->sent && q->sent->due_ms <= now)
        redis_conn_fail(&q->conn, -ETIMEDOUT, "no reply within Timeout");
    while (q->waiting && q->waiting->due_ms <= now)
        fail_first_waiting(q, -ETIMEDOUT);
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
    if (q->retires)
        return;
    if (q->conn.out.len) {
        mk_buf_add(&q->conn.out, mk_buf_str(&q->bytes));
        mk_buf_clear(&q->bytes);
    } else {
        struct mk_buf empty = q->conn.out;
        q->conn.out = q->bytes;
        q->bytes = empty;
    }
    *q->sent_end = q->waiting;
    q->sent_end = q->waiting_end;
    q->waiting = NULL;
    q->waiting_end = &q->waiting;
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
    q->retires = false;
    if (!q->down_ms && c->backoff_ms) /* an attempt has failed, not only an old connection */
        q->down_ms = mk_worker_now_ms(c->worker);
    fail_sent(q, error);
    /* A wrong password does not become right by waiting. */
    if (has_been_away(q) || error == -ENOKEY || (q->is_node && c->backoff_ms))
        fail_waiting(q, error);
    else if (q->waiting && !c->backoff_ms)
        mk_turn_end_set(q->turn);
    tick_later(q);
}

static void before_reply(struct redis_conn *c)
{
    struct redis_queue *q = (struct redis_queue *)c;
    const struct redis_wait *wait = q->sent ? q->sent->wait : NULL;
    if (!wait)
        return;
    c->parser.d = wait->d;
    c->parser.to = &wait->replies[wait->got];
}

/* A master that was demoted keeps its connections. Scripts and transactions quote its error in theirs. */
static bool is_demotion(const struct duda_redis_reply *reply)
{
    static const mk_str text = MK_STR("READONLY You can't write against a read only");
    return reply->type == DUDA_REDIS_ERROR &&
           (memmem(reply->text.p, reply->text.len, text.p, text.len) ||
            mk_str_starts(reply->text, MK_STR("UNBLOCKED force"))); /* of what has blocked */
}

static void leave_after_last(struct redis_queue *q)
{
    if (q->retires && !q->sent)
        redis_conn_fail(&q->conn, -ECONNRESET, "its server is not the master any more");
}

void redis_queue_retire(struct redis_queue *q)
{
    uint64_t now = mk_worker_now_ms(q->conn.worker);
    if (q->is_node || q->conn.state != REDIS_UP || (q->demoted_ms && now - q->demoted_ms < RETIRE_MS))
        return;
    q->demoted_ms = now;
    q->retires = true;
    leave_after_last(q);
}

static void on_reply(struct redis_conn *c, struct duda_redis_reply *reply)
{
    struct redis_queue *q = (struct redis_queue *)c;
    struct redis_job *job = q->sent;
    if (!job) {
        redis_conn_fail(c, -EPROTO, "a reply that no command asked for");
        return;
    }
    if (job->wait) {
        job->wait->got++;
        if (c->parser.is_out_of_memory)
            job->wait->error = -ENOMEM;
    }
    bool is_demoted = is_demotion(reply);
    if (--job->left == 0)
        finish(q, take_first(&q->sent, &q->sent_end), 0);
    if (is_demoted)
        redis_queue_retire(q);
    leave_after_last(q);
}

/* ---- Its life ---- */

int redis_queue_begin(struct redis_queue *q, struct redis_wait *wait, size_t n_replies,
                      struct redis_job **out)
{
    uint64_t now = mk_worker_now_ms(q->conn.worker);
    if (q->n >= q->conn.settings->waiting_max)
        return -EBUSY;
    if (has_been_away(q) && now < q->conn.retry_ms)
        return -ECONNREFUSED;
    struct redis_job *job = new_job(q);
    if (!job)
        return -ENOMEM;
    *job = (struct redis_job){
        .wait = wait, .due_ms = now + q->conn.settings->timeout_ms, .left = n_replies, .len = q->bytes.len};
    *out = job;
    return 0;
}

int redis_queue_add(struct redis_queue *q, struct redis_job *job)
{
    if (q->bytes.failed) {
        q->bytes.failed = false;
        q->bytes.len = job->len;
        free_job(q, job);
        return -ENOMEM;
    }
    job->len = q->bytes.len - job->len;
    *q->waiting_end = job;
    q->waiting_end = &job->next;
    q->n++;
    mk_turn_end_set(q->turn);
    tick_later(q);
    return 0;
}

int redis_queue_init(struct redis_queue *q, struct mk_worker *w, const struct redis_settings *settings,
                     const char *address)
{
    q->sent_end = &q->sent;
    q->waiting_end = &q->waiting;
    q->conn.on_up = on_up;
    q->conn.on_down = on_down;
    q->conn.on_reply = on_reply;
    q->conn.before_reply = before_reply;
    q->bytes = mk_buf_growing(BYTES_MAX);
    q->turn = mk_turn_end_new(w, send_waiting, q);
    q->alarm = mk_alarm_new(w, on_tick, q);
    redis_conn_init(&q->conn, w, settings);
    if (address)
        memcpy(q->conn.address, address, strnlen(address, REDIS_ADDRESS_MAX - 1));
    q->is_node = address != NULL;
    return q->turn && q->alarm ? 0 : -ENOMEM;
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
    for (struct redis_job *job = q->spare, *next; job; job = next) {
        next = job->next;
        mk_mem_free(job);
    }
}
