/* SPDX-License-Identifier: Apache-2.0 */
/* Commands wait for the end of the loop iteration, and then for their replies. */
#include "command_queue.h"

#include <errno.h>
#include <monkey/mem.h>

/* Minimum time between reconnects to a server that stays a replica. */
enum { RETIRE_MS = 1000 };

enum { SPARE_MAX = 256 };

#define BYTES_MAX ((size_t)256 << 20)

static struct redis_batch *batch_new(struct redis_command_queue *q)
{
    struct package_request *spare = package_request_queue_pop(&q->spare);
    return spare ? (struct redis_batch *)spare : mk_mem_alloc(sizeof(struct redis_batch));
}

static void batch_free(struct redis_command_queue *q, struct redis_batch *batch)
{
    if (q->spare.n < SPARE_MAX)
        package_request_queue_push(&q->spare, &batch->request);
    else
        mk_mem_free(batch);
}

/* ---- Unsent bytes ---- */

/* Discards the bytes of the first waiting batch. The buffer is compacted later, once for all discarded
 * batches. */
static void discard_batch_bytes(struct redis_command_queue *q, size_t n)
{
    q->dead += n;
    if (!q->conn.stream.base.waiting.first) {
        mk_buf_free(&q->bytes);
        q->dead = 0;
    } else if (q->dead > q->bytes.len / 2) {
        mk_buf_consume(&q->bytes, q->dead);
        q->dead = 0;
    }
}

/* Moves the commands to the output buffer of the connection. */
static void move_commands_to_output(struct redis_command_queue *q)
{
    struct mk_buf *out = &q->conn.stream.out;
    mk_buf_consume(&q->bytes, q->dead);
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

/* ---- Connection events ---- */

static void send_waiting_batches(struct package_conn *conn)
{
    struct redis_command_queue *q = (struct redis_command_queue *)conn;
    if (q->retires)
        return;
    move_commands_to_output(q);
    package_request_queue_append(&conn->sent, &conn->waiting);
    package_stream_flush(&q->conn.stream);
}

static void finish_batch(struct package_conn *conn, struct package_request *r, int error, bool is_sent)
{
    struct redis_command_queue *q = (struct redis_command_queue *)conn;
    struct redis_batch *batch = (struct redis_batch *)r;
    struct redis_reply_wait *wait = batch->wait;
    if (!is_sent)
        discard_batch_bytes(q, batch->len);
    if (wait) {
        wait->error = error ? error : wait->error;
        wait->is_over = true;
        wait->is_not_sent = !is_sent;
        duda_wait_wake(wait->wait);
    }
    batch_free(q, batch);
}

static void on_down(struct package_conn *conn, int error)
{
    (void)error;
    ((struct redis_command_queue *)conn)->retires = false;
}

static struct redis_batch *first_sent_batch(const struct redis_command_queue *q)
{
    return (struct redis_batch *)q->conn.stream.base.sent.first;
}

static void set_reply_destination(struct redis_conn *c)
{
    const struct redis_batch *batch = first_sent_batch((struct redis_command_queue *)c);
    if (!batch || !batch->wait)
        return;
    c->parser.d = batch->wait->wait->d;
    c->parser.to = &batch->wait->replies[batch->wait->got];
}

/* Returns whether the reply is the error of a master that has become a replica, but keeps its connections.
 * Scripts and transactions quote this error in their own error. */
static bool is_readonly_error(const struct duda_redis_reply *reply)
{
    static const mk_str text = MK_STR("READONLY You can't write against a read only");
    return reply->type == DUDA_REDIS_ERROR &&
           (memmem(reply->text.p, reply->text.len, text.p, text.len) ||
            mk_str_starts(reply->text, MK_STR("UNBLOCKED force"))); /* the error of a blocking command */
}

static void close_if_drained(struct redis_command_queue *q)
{
    if (q->retires && !first_sent_batch(q))
        package_conn_fail(&q->conn.stream.base, -ECONNRESET, "the server is no longer the master");
}

void redis_command_queue_retire(struct redis_command_queue *q)
{
    uint64_t now = mk_worker_now_ms(q->conn.stream.base.worker);
    if (q->is_node || !redis_conn_is_up(&q->conn) ||
        (q->was_replica_ms && now - q->was_replica_ms < RETIRE_MS))
        return;
    q->was_replica_ms = now;
    q->retires = true;
    close_if_drained(q);
}

static void on_reply(struct redis_conn *c, struct duda_redis_reply *reply)
{
    struct redis_command_queue *q = (struct redis_command_queue *)c;
    struct redis_batch *batch = first_sent_batch(q);
    if (!batch) {
        package_conn_fail(&c->stream.base, -EPROTO, "the server sent a reply to no command");
        return;
    }
    if (batch->wait) {
        batch->wait->got++;
        if (c->parser.is_out_of_memory)
            batch->wait->error = -ENOMEM;
    }
    bool is_demoted = is_readonly_error(reply);
    if (--batch->left == 0)
        package_conn_finish_first_sent(&c->stream.base, 0);
    if (is_demoted)
        redis_command_queue_retire(q);
    close_if_drained(q);
}

/* ---- Lifetime ---- */

int redis_batch_begin(struct redis_command_queue *q, struct redis_reply_wait *wait, size_t n_replies,
                      struct redis_batch **out)
{
    const struct package_conn *conn = &q->conn.stream.base;
    int e = package_conn_check_capacity(conn, q->conn.settings->waiting_max);
    struct redis_batch *batch = e ? NULL : batch_new(q);
    if (!batch)
        return e ? e : -ENOMEM;
    *batch = (struct redis_batch){.request.due_ms = mk_worker_now_ms(conn->worker) + conn->timeout_ms,
                                  .wait = wait,
                                  .left = n_replies,
                                  .len = q->bytes.len};
    *out = batch;
    return 0;
}

int redis_batch_enqueue(struct redis_command_queue *q, struct redis_batch *batch)
{
    if (q->bytes.failed) {
        q->bytes.failed = false;
        q->bytes.len = batch->len;
        batch_free(q, batch);
        return -ENOMEM;
    }
    batch->len = q->bytes.len - batch->len;
    package_conn_enqueue(&q->conn.stream.base, &batch->request);
    return 0;
}

static const struct package_conn_ops package_ops = {.section = "REDIS",
                                                    .connect = redis_conn_connect,
                                                    .close = redis_conn_close,
                                                    .on_down = on_down,
                                                    .send = send_waiting_batches,
                                                    .finish = finish_batch};

static const struct redis_conn_ops conn_ops = {.on_reply = on_reply, .before_reply = set_reply_destination};

int redis_command_queue_init(struct redis_command_queue *q, struct mk_worker *w,
                             const struct redis_settings *settings, const char *address)
{
    q->bytes = mk_buf_growing(BYTES_MAX);
    q->is_node = q->conn.stream.base.fails_fast = address != NULL;
    return redis_conn_init(&q->conn, w, settings, &package_ops, &conn_ops, address);
}

void redis_command_queue_fini(struct redis_command_queue *q)
{
    struct package_request *spare;
    redis_conn_fini(&q->conn);
    mk_buf_free(&q->bytes);
    while ((spare = package_request_queue_pop(&q->spare)))
        mk_mem_free(spare);
}
