/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers send commands over one connection to a fake server. */
#include <redis/request.h>

#include "unit/packages/conn_worker.h"
#include "unit/packages/handler.h"

enum { TIMEOUT = 1000, MAX = 3 };

/* ---- Fake Duda and plugin `upstream` ---- */

static void (*ready)(void *ctx, unsigned which);
static void *ready_ctx;
static int conn_state;
static mk_str replies; /* not read yet */
static struct mk_buf got;
static unsigned n_acquired, n_released, n_woken;

void duda_wait_wake(struct duda_wait *w)
{
    assert_non_null(w);
    n_woken++;
}

int duda_wait_begin(struct duda_ctx *d, struct duda_wait *w, void (*on_end)(struct duda_wait *w))
{
    w->d = d;
    w->on_end = on_end;
    return 0;
}

int duda_wait_suspend(struct duda_wait *w)
{
    (void)w;
    return -ECANCELED;
}

void duda_wait_end(struct duda_wait *w)
{
    w->on_end(w);
}

struct mk_upstream_conn *mk_upstream_conn_acquire(struct mk_worker *w, struct mk_upstream *u,
                                                  const struct mk_upstream_conn_options *options,
                                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    (void)w, (void)u, (void)options;
    ready = on_ready;
    ready_ctx = ctx;
    n_acquired++;
    return (struct mk_upstream_conn *)(void *)&a_thing;
}

int mk_upstream_conn_state(const struct mk_upstream_conn *c)
{
    (void)c;
    return conn_state;
}

ssize_t mk_upstream_conn_read(struct mk_upstream_conn *c, char *buffer, size_t cap)
{
    (void)c;
    size_t n = replies.len < cap ? replies.len : cap;
    if (!n)
        return -EAGAIN;
    memcpy(buffer, replies.p, n);
    replies = mk_str_skip(replies, n);
    return (ssize_t)n;
}

ssize_t mk_upstream_conn_write(struct mk_upstream_conn *c, mk_str bytes, bool more)
{
    (void)c, (void)more;
    mk_buf_add(&got, bytes);
    return (ssize_t)bytes.len;
}

void mk_upstream_conn_release(struct mk_upstream_conn *c, enum mk_upstream_conn_disposition how)
{
    (void)how;
    n_released += c != NULL;
}

bool mk_upstream_is_tls(const struct mk_upstream *u)
{
    (void)u;
    return false;
}

/* ---- Handlers ---- */

static struct redis_command_queue queue;
static const struct redis_settings settings = {.name = MK_STR("main"),
                                               .server = MK_STR("here"),
                                               .waiting_max = MAX,
                                               .timeout_ms = TIMEOUT,
                                               .reply_max = 4096};

struct handler {
    struct duda_wait suspended;
    struct redis_reply_wait wait;
    struct duda_redis_reply reply;
};

static int submit(struct handler *h, const char *command)
{
    struct redis_batch *job;
    const mk_str parts[] = {mk_str_from_c(command)};
    *h = (struct handler){.wait = {.wait = &h->suspended, .replies = &h->reply}};
    h->suspended.d = HANDLER;
    int e = redis_batch_begin(&queue, &h->wait, 1, &job);
    if (e)
        return e;
    redis_command_format(&queue.bytes, parts, 1);
    return redis_batch_enqueue(&queue, job);
}

static void reply(const char *text)
{
    replies = mk_str_from_c(text);
    ready(ready_ctx, MK_READABLE);
}

/* Asserts which bytes the server has received since the last call. */
static void assert_got(const char *text)
{
    assert_str(mk_buf_str(&got), text);
    mk_buf_clear(&got);
}

static void end_iteration(void)
{
    if (iteration_end_is_set) {
        iteration_end_is_set = false;
        iteration_end(iteration_ctx);
    }
}

static void pass(uint64_t ms)
{
    uint64_t until = now_ms + ms;
    end_iteration();
    while (timer_at && timer_at <= until) {
        now_ms = timer_at;
        timer_at = 0;
        timer->on_due(timer);
        end_iteration();
    }
    now_ms = until;
}

static void setup(void)
{
    now_ms = 1000000;
    timer_at = 0;
    conn_state = 0;
    iteration_end_is_set = false;
    n_acquired = n_released = n_woken = 0;
    replies = MK_STR_NULL;
    got = mk_buf_growing(4096);
    memset(&queue, 0, sizeof queue);
    assert_int_equal(redis_command_queue_init(&queue, NULL, &settings, NULL), 0);
}

static void teardown(void)
{
    redis_command_queue_fini(&queue);
    mk_buf_free(&got);
    pool_free();
    assert_int_equal(n_acquired, n_released);
    assert_int_equal(n_open, 0);
    assert_int_equal(timer_at, 0);
}

/* ---- Test cases ---- */

static void queue_replies_follow_command_order(void **state)
{
    static struct handler a, b;
    (void)state;
    assert_int_equal(submit(&a, "A") | submit(&b, "B"), 0);
    end_iteration();
    end_iteration();
    assert_got("*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n");
    reply(":1\r\n:2\r\n");
    assert_true(a.wait.is_over && b.wait.is_over && !a.wait.error && !b.wait.error);
    assert_int_equal(a.reply.number, 1);
    assert_int_equal(b.reply.number, 2);
    assert_int_equal(n_woken, 2);
}

static void queue_command_timed_out_is_not_sent(void **state)
{
    static struct handler a, b, c;
    (void)state;
    conn_state = -EAGAIN;
    queue.conn.stream.base.timeout_ms = 10 * TIMEOUT;
    assert_int_equal(submit(&a, "A"), 0);
    queue.conn.stream.base.waiting.first->due_ms = now_ms + 100;
    assert_int_equal(submit(&b, "BBBBBBBBBBBBBBBBBBBBBBBB"), 0);
    assert_int_equal(submit(&c, "C"), 0);
    pass(100);
    assert_true(a.wait.is_over && a.wait.is_not_sent && !b.wait.is_over);
    assert_int_equal(a.wait.error, -ETIMEDOUT);
    conn_state = 0;
    ready(ready_ctx, MK_WRITABLE);
    end_iteration();
    assert_got("*1\r\n$24\r\nBBBBBBBBBBBBBBBBBBBBBBBB\r\n*1\r\n$1\r\nC\r\n");
    assert_int_equal(submit(&a, "A"), 0);
    end_iteration();
    assert_got("*1\r\n$1\r\nA\r\n");
    reply("+b\r\n+c\r\n+a\r\n");
    assert_str(a.reply.text, "a");
    assert_str(b.reply.text, "b");
}

static void queue_drops_bytes_of_timed_out_commands(void **state)
{
    static struct handler a, b, c;
    (void)state;
    conn_state = -EAGAIN;
    queue.conn.stream.base.timeout_ms = 10 * TIMEOUT;
    assert_int_equal(
        submit(&a, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA") | submit(&b, "B") | submit(&c, "C"), 0);
    queue.conn.stream.base.waiting.first->due_ms = now_ms + 100;
    queue.conn.stream.base.waiting.first->next->due_ms = now_ms + 200;
    pass(100);
    assert_str(mk_buf_str(&queue.bytes), "*1\r\n$1\r\nB\r\n*1\r\n$1\r\nC\r\n");
    pass(100);
    assert_true(b.wait.is_over && !c.wait.is_over);
    conn_state = 0;
    ready(ready_ctx, MK_WRITABLE);
    end_iteration();
    assert_got("*1\r\n$1\r\nC\r\n");
}

static void queue_all_commands_failed_keeps_no_bytes(void **state)
{
    static struct handler a, b;
    (void)state;
    conn_state = -EAGAIN;
    assert_int_equal(submit(&a, "A") | submit(&b, "B"), 0);
    pass(TIMEOUT);
    assert_true(a.wait.is_not_sent && b.wait.is_not_sent);
    assert_null(queue.bytes.p);
    conn_state = 0;
    assert_int_equal(submit(&a, "C"), 0);
    pass(100);
    assert_got("*1\r\n$1\r\nC\r\n");
}

static void queue_distinguishes_lost_from_unsent_commands(void **state)
{
    static struct handler a, b;
    (void)state;
    assert_int_equal(submit(&a, "A"), 0);
    end_iteration();
    end_iteration();
    assert_int_equal(submit(&b, "B"), 0);
    package_conn_fail(&queue.conn.stream.base, -ECONNRESET, "closed");
    assert_true(a.wait.is_over && !a.wait.is_not_sent && !b.wait.is_over);
    assert_int_equal(a.wait.error, -ECONNRESET);
    assert_int_equal(redis_command_queue_count(&queue), 1);
}

static void queue_leaves_replica_after_last_reply(void **state)
{
    static struct handler a, b, c;
    (void)state;
    assert_int_equal(submit(&a, "A") | submit(&b, "B"), 0);
    end_iteration();
    end_iteration();
    mk_buf_clear(&got);
    reply("-READONLY You can't write against a read only replica.\r\n");
    assert_int_equal(submit(&c, "C"), 0);
    end_iteration();
    assert_got(""); /* the command waits for another connection */
    assert_int_equal(n_released, 0);
    reply("+b\r\n");
    assert_int_equal(n_released, 1);
    assert_true(b.wait.is_over && !b.wait.error && !c.wait.is_over);
    pass(100);
    assert_int_equal(n_acquired, 2);
    assert_got("*1\r\n$1\r\nC\r\n");
}

static void queue_length_is_limited(void **state)
{
    static struct handler h[MAX + 1];
    (void)state;
    for (size_t i = 0; i < MAX; i++)
        assert_int_equal(submit(&h[i], "A"), 0);
    assert_int_equal(submit(&h[MAX], "A"), -EBUSY);
    assert_int_equal(redis_command_queue_count(&queue), MAX);
}

/* Starts a request with one command. */
static int begin_request(struct redis_request_group *group, struct redis_pending_request *request,
                         const char *command, struct duda_redis_reply *to)
{
    const mk_str args[] = {mk_str_from_c(command)};
    const struct duda_redis_command one = {args, 1};
    return redis_request_begin(group, &queue, &(struct redis_request){.commands = &one, .n = 1}, to, request);
}

static void queue_failed_request_leaves_batches_of_others(void **state)
{
    static struct redis_pending_request all[2];
    static struct duda_redis_reply values[2];
    static char long_name[100];
    static struct handler other;
    struct redis_request_group group;
    (void)state;
    memset(long_name, 'B', sizeof long_name - 1);
    queue.bytes.max = 100; /* the second command is longer */
    assert_int_equal(redis_request_group_begin(&group, HANDLER, all, 2), 0);
    assert_int_equal(begin_request(&group, &all[0], "A", &values[0]), 0);
    assert_int_equal(begin_request(&group, &all[1], long_name, &values[1]), -ENOMEM);
    assert_int_equal(submit(&other, "C"), 0); /* uses the batch of the failed request */
    assert_int_equal(redis_request_wait(&group, &all[0]), -ECANCELED);
    duda_wait_end(&group.wait);
    end_iteration();
    end_iteration();
    assert_got("*1\r\n$1\r\nA\r\n*1\r\n$1\r\nC\r\n");
    reply(":1\r\n:2\r\n");
    assert_true(other.wait.is_over);
    assert_int_equal(other.reply.number, 2);
}

static void queue_of_cluster_node_fails_fast(void **state)
{
    static struct handler a;
    (void)state;
    redis_command_queue_fini(&queue);
    memset(&queue, 0, sizeof queue);
    assert_int_equal(redis_command_queue_init(&queue, NULL, &settings, "127.0.0.1:7001"), 0);
    conn_state = -ECONNREFUSED;
    assert_int_equal(submit(&a, "A"), 0);
    end_iteration();
    assert_true(a.wait.is_over && a.wait.is_not_sent);
    assert_string_equal(queue.conn.stream.base.error_text,
                        "[REDIS] main, 127.0.0.1:7001: Connection refused");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(queue_replies_follow_command_order, setup, teardown),
        fixture_test(queue_command_timed_out_is_not_sent, setup, teardown),
        fixture_test(queue_drops_bytes_of_timed_out_commands, setup, teardown),
        fixture_test(queue_all_commands_failed_keeps_no_bytes, setup, teardown),
        fixture_test(queue_distinguishes_lost_from_unsent_commands, setup, teardown),
        fixture_test(queue_leaves_replica_after_last_reply, setup, teardown),
        fixture_test(queue_length_is_limited, setup, teardown),
        fixture_test(queue_failed_request_leaves_batches_of_others, setup, teardown),
        fixture_test(queue_of_cluster_node_fails_fast, setup, teardown),
    };
    return cmocka_run_group_tests_name("redis queue", tests, NULL, NULL);
}
