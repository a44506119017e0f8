/* SPDX-License-Identifier: Apache-2.0 */
/* Commands wait for the end of the turn, then for their replies. */
#include "queue.h"

#include <errno.h>
#include <monkey/mem.h>

/* A server that stays a replica is left so often, at most. */
enum { RETIRE_MS = 1000 };

enum { SPARE_MAX = 256 };

#define BYTES_MAX ((size_t)256 << 20)

static struct redis_job *new_job(struct redis_queue *q)
{
    struct pack_request *spare = pack_requests_pop(&q->spare);
    return spare ? (struct redis_job *)spare : mk_mem_alloc(sizeof(struct redis_job));
}

static void free_job(struct redis_queue *q, struct redis_job *job)
{
    if (q->spare.n < SPARE_MAX)
        pack_requests_push(&q->spare, &job->request);
    else
        mk_mem_free(job);
}

/* ---- Bytes that wait ---- */

/* Of the first job that waits. They are dropped now and then, all at once. */
static void drop_bytes(struct redis_queue *q, size_t n)
{
    q->dead += n;
    if (!q->conn.stream.link.waiting.first) {
        mk_buf_free(&q->bytes);
        q->dead = 0;
    } else if (q->dead > q->bytes.len / 2) {
        mk_buf_drop(&q->bytes, q->dead);
        q->dead = 0;
    }
}

/* To those that the socket has not taken. */
static void move_bytes(struct redis_queue *q)
{
    struct mk_buf *out = &q->conn.stream.out;
    mk_buf_drop(&q->bytes, q->dead);
    q->dead = 0;
    if (out->len) {
        mk_buf_add(out, mk_buf_str(&q->bytes));
        mk_buf_clear(&q->bytes);
    } else {
        struct mk_buf empty = *out;
        *out = q->bytes;
        q->bytes = empty;
    }
}

/* ---- What the connection says ---- */

static void send_waiting(struct pack_link *l)
{
    struct redis_queue *q = (struct redis_queue *)l;
    if (q->retires)
        return;
    move_bytes(q);
    pack_requests_append(&l->sent, &l->waiting);
    pack_stream_flush(&q->conn.stream);
}

static void finish(struct pack_link *l, struct pack_request *r, int error, bool is_sent)
{
    struct redis_queue *q = (struct redis_queue *)l;
    struct redis_job *job = (struct redis_job *)r;
    struct redis_wait *wait = job->wait;
    if (!is_sent)
        drop_bytes(q, job->len);
    if (wait) {
        wait->error = error ? error : wait->error;
        wait->is_over = true;
        wait->is_unsent = !is_sent;
        duda_wait_wake(wait->wait);
    }
    free_job(q, job);
}

static void on_down(struct pack_link *l, int error)
{
    (void)error;
    ((struct redis_queue *)l)->retires = false;
}

static struct redis_job *first_sent(const struct redis_queue *q)
{
    return (struct redis_job *)q->conn.stream.link.sent.first;
}

static void before_reply(struct redis_conn *c)
{
    const struct redis_job *job = first_sent((struct redis_queue *)c);
    if (!job || !job->wait)
        return;
    c->parser.d = job->wait->wait->d;
    c->parser.to = &job->wait->replies[job->wait->got];
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
    if (q->retires && !first_sent(q))
        pack_link_fail(&q->conn.stream.link, -ECONNRESET, "its server is not the master any more");
}

void redis_queue_retire(struct redis_queue *q)
{
    uint64_t now = mk_worker_now_ms(q->conn.stream.link.worker);
    if (q->is_node || !redis_conn_is_up(&q->conn) || (q->demoted_ms && now - q->demoted_ms < RETIRE_MS))
        return;
    q->demoted_ms = now;
    q->retires = true;
    leave_after_last(q);
}

static void on_reply(struct redis_conn *c, struct duda_redis_reply *reply)
{
    struct redis_queue *q = (struct redis_queue *)c;
    struct redis_job *job = first_sent(q);
    if (!job) {
        pack_link_fail(&c->stream.link, -EPROTO, "a reply that no command asked for");
        return;
    }
    if (job->wait) {
        job->wait->got++;
        if (c->parser.is_out_of_memory)
            job->wait->error = -ENOMEM;
    }
    bool is_demoted = is_demotion(reply);
    if (--job->left == 0)
        pack_link_finish_first(&c->stream.link, 0);
    if (is_demoted)
        redis_queue_retire(q);
    leave_after_last(q);
}

/* ---- Its life ---- */

int redis_queue_begin(struct redis_queue *q, struct redis_wait *wait, size_t n_replies,
                      struct redis_job **out)
{
    const struct pack_link *l = &q->conn.stream.link;
    int e = pack_link_admit(l, q->conn.settings->waiting_max);
    struct redis_job *job = e ? NULL : new_job(q);
    if (!job)
        return e ? e : -ENOMEM;
    *job = (struct redis_job){.request.due_ms = mk_worker_now_ms(l->worker) + l->timeout_ms,
                              .wait = wait,
                              .left = n_replies,
                              .len = q->bytes.len};
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
    pack_link_enqueue(&q->conn.stream.link, &job->request);
    return 0;
}

static const struct pack_link_ops link_ops = {.section = "REDIS",
                                              .connect = redis_conn_connect,
                                              .close = redis_conn_close,
                                              .on_down = on_down,
                                              .send = send_waiting,
                                              .finish = finish};

static const struct redis_conn_ops conn_ops = {.on_reply = on_reply, .before_reply = before_reply};

int redis_queue_init(struct redis_queue *q, struct mk_worker *w, const struct redis_settings *settings,
                     const char *address)
{
    q->bytes = mk_buf_growing(BYTES_MAX);
    q->is_node = q->conn.stream.link.fails_fast = address != NULL;
    return redis_conn_init(&q->conn, w, settings, &link_ops, &conn_ops, address);
}

void redis_queue_fini(struct redis_queue *q)
{
    struct pack_request *spare;
    redis_conn_fini(&q->conn);
    mk_buf_free(&q->bytes);
    while ((spare = pack_requests_pop(&q->spare)))
        mk_mem_free(spare);
}
