/* SPDX-License-Identifier: Apache-2.0 */
#include "event/post_queue.h"

#include <pthread.h>

#include "unit/fixtures.h"
#include "unit/test.h"

enum { THREADS = 4, POSTS = 500 };

static struct mk_loop loop;
static struct mk_post_queue inbox;
static unsigned n_calls;
static pthread_t loop_thread;

static void on_wakeup(struct mk_loop *l)
{
    (void)l;
    mk_post_queue_run(&inbox);
}

static void setup(void)
{
    n_calls = 0;
    loop_thread = pthread_self();
    loop_setup(&loop);
    loop.on_wakeup = on_wakeup;
    mk_post_queue_init(&inbox, &loop);
}

static void expect_order(void *ctx)
{
    assert_ptr_equal(ctx, (void *)(uintptr_t)n_calls);
    n_calls++;
}

static void post_queue_calls_run_in_order_in_the_next_iteration(void **state)
{
    (void)state;
    for (uintptr_t i = 0; i < 10; i++)
        assert_int_equal(mk_post_queue_push(&inbox, expect_order, (void *)i), 0);
    assert_int_equal(n_calls, 0);
    assert_int_equal(mk_loop_run_once(&loop, -1), 0);
    assert_int_equal(n_calls, 10);
    assert_int_equal(mk_loop_run_once(&loop, 0), 0);
    assert_int_equal(n_calls, 10);
}

static void post_again(void *ctx)
{
    if (++n_calls < 4)
        assert_int_equal(mk_post_queue_push(&inbox, post_again, ctx), 0);
}

static void post_queue_endless_poster_does_not_starve_the_loop(void **state)
{
    (void)state;
    assert_int_equal(mk_post_queue_push(&inbox, post_again, NULL), 0);
    for (unsigned i = 1; i <= 4; i++) {
        assert_int_equal(mk_loop_run_once(&loop, -1), 0);
        assert_int_equal(n_calls, i);
    }
}

struct thread {
    pthread_t id;
    unsigned n_seen;
    struct mark {
        struct thread *of;
        unsigned i;
    } marks[POSTS];
};

static void see(void *ctx)
{
    struct mark *m = ctx;
    assert_true(pthread_equal(pthread_self(), loop_thread));
    assert_int_equal(m->i, m->of->n_seen);
    m->of->n_seen++;
    n_calls++;
}

static void *post_all(void *data)
{
    struct thread *t = data;
    for (unsigned i = 0; i < POSTS; i++) {
        t->marks[i] = (struct mark){.of = t, .i = i};
        if (mk_post_queue_push(&inbox, see, &t->marks[i]))
            return NULL;
    }
    return t;
}

static void post_queue_accepts_calls_from_all_threads(void **state)
{
    (void)state;
    static struct thread threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i].id, NULL, post_all, &threads[i]), 0);
    while (n_calls < THREADS * POSTS)
        assert_int_equal(mk_loop_run_once(&loop, 5000), 0);
    for (int i = 0; i < THREADS; i++) {
        void *answer;
        pthread_join(threads[i].id, &answer);
        assert_ptr_equal(answer, &threads[i]);
        assert_int_equal(threads[i].n_seen, POSTS);
    }
}

static void post_in_vain(void *ctx)
{
    (void)ctx;
    n_calls++;
    assert_int_equal(mk_post_queue_push(&inbox, post_in_vain, NULL), -ESHUTDOWN);
}

static void post_queue_close_runs_pending_calls_only(void **state)
{
    (void)state;
    assert_int_equal(mk_post_queue_push(&inbox, post_in_vain, NULL), 0);
    assert_int_equal(mk_post_queue_push(&inbox, post_in_vain, NULL), 0);
    mk_post_queue_close(&inbox);
    assert_int_equal(n_calls, 2);
    assert_int_equal(mk_post_queue_push(&inbox, post_in_vain, NULL), -ESHUTDOWN);
    assert_int_equal(n_calls, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(post_queue_calls_run_in_order_in_the_next_iteration, setup),
        fixture_test(post_queue_endless_poster_does_not_starve_the_loop, setup),
        fixture_test(post_queue_accepts_calls_from_all_threads, setup),
        fixture_test(post_queue_close_runs_pending_calls_only, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
