/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions share one connection. The event loop opens it, because opening it may need more stack than a
 * handler has. */
#include <redis/pubsub.h>

#include "unit/packages/conn_worker.h"
#include "unit/packages/handler.h"

static struct redis_pubsub hub;
static unsigned n_acquired;
static const struct redis_settings settings = {
    .name = MK_STR("main"), .server = MK_STR("here"), .timeout_ms = 1000, .reply_max = 4096};

/* ---- Fake plugin `upstream` ---- */

struct mk_upstream_conn *mk_upstream_conn_acquire(struct mk_worker *w, struct mk_upstream *u,
                                                  const struct mk_upstream_conn_options *options,
                                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    (void)w, (void)u, (void)options, (void)on_ready, (void)ctx;
    n_acquired++;
    return (struct mk_upstream_conn *)(void *)&a_thing;
}

int mk_upstream_conn_state(const struct mk_upstream_conn *c)
{
    (void)c;
    return -EAGAIN;
}

ssize_t mk_upstream_conn_read(struct mk_upstream_conn *c, char *buffer, size_t cap)
{
    (void)c, (void)buffer, (void)cap;
    return -EAGAIN;
}

ssize_t mk_upstream_conn_write(struct mk_upstream_conn *c, mk_str bytes, bool more)
{
    (void)c, (void)bytes, (void)more;
    return -EAGAIN;
}

void mk_upstream_conn_release(struct mk_upstream_conn *c, enum mk_upstream_conn_disposition how)
{
    (void)c, (void)how;
}

bool mk_upstream_is_tls(const struct mk_upstream *u)
{
    (void)u;
    return false;
}

/* ---- Fake message queue ---- */

void package_message_queue_push(struct package_message_queue *in, mk_str text)
{
    (void)in, (void)text;
}

void package_message_queue_wake(struct package_message_queue *in)
{
    (void)in;
}

/* ---- Test cases ---- */

static void setup(void)
{
    memset(&hub, 0, sizeof hub);
    now_ms = 1000000;
    iteration_end_is_set = false;
    n_acquired = 0;
    assert_int_equal(redis_pubsub_init(&hub, NULL, &settings), 0);
}

static void teardown(void)
{
    redis_pubsub_fini(&hub);
    assert_int_equal(n_open, 0);
}

static void end_iteration(void)
{
    assert_true(iteration_end_is_set);
    iteration_end_is_set = false;
    iteration_end(iteration_ctx);
}

static void pubsub_connects_at_iteration_end(void **state)
{
    struct duda_redis_sub one = {.inbox.d = HANDLER, .channel = "one", .channel_len = 3},
                          two = {.inbox.d = HANDLER, .channel = "two", .channel_len = 3};
    (void)state;
    redis_pubsub_subscribe(&hub, &one);
    redis_pubsub_subscribe(&hub, &two);
    assert_int_equal(n_acquired, 0);
    end_iteration();
    assert_int_equal(n_acquired, 1);
    redis_pubsub_unsubscribe(&one);
    redis_pubsub_unsubscribe(&two);
}

static void pubsub_without_subscriptions_does_not_connect(void **state)
{
    struct duda_redis_sub one = {.inbox.d = HANDLER, .channel = "one", .channel_len = 3};
    (void)state;
    redis_pubsub_subscribe(&hub, &one);
    redis_pubsub_unsubscribe(&one);
    end_iteration();
    assert_int_equal(n_acquired, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(pubsub_connects_at_iteration_end, setup, teardown),
        fixture_test(pubsub_without_subscriptions_does_not_connect, setup, teardown),
    };
    return cmocka_run_group_tests_name("redis hub", tests, NULL, NULL);
}
