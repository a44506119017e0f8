/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous operations of plugins in a worker, and their fate when the worker exits. */
#include "worker/worker.h"
#include "worker/worker_async.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "base/mem.h"
#include "unit/setup/fixture.h"

enum { AT_ONCE = 1024 };

static struct config_fixture c;
static struct mk_worker w;
static struct mk_counters counters;
static unsigned n_works, n_dones, n_calls;
static pthread_t loop_thread;
static sem_t may_work;

static void setup(void)
{
    n_works = n_dones = n_calls = 0;
    loop_thread = pthread_self();
    sem_init(&may_work, 0, 0);
    config_setup(&c);
    config_expect(&c, "[HOST]\n    DocumentRoot site\n");
    const struct mk_worker_options o = {.generation = c.g, .workers = 1, .counters = &counters};
    assert_int_equal(mk_worker_init(&w, &o), 0);
}

static void teardown(void)
{
    sem_destroy(&may_work);
}

static void run_until(const unsigned *n, unsigned is)
{
    while (*n < is)
        assert_int_equal(mk_loop_run_once(&w.loop, 5000), 0);
}

/* ---- Timers and watchers ---- */

static void call(void *ctx)
{
    assert_ptr_equal(ctx, &n_calls);
    assert_true(pthread_equal(pthread_self(), loop_thread));
    n_calls++;
}

static void on_ready(void *ctx, unsigned which)
{
    assert_int_equal(which, MK_READABLE);
    call(ctx);
}

static void on_due(struct mk_timer *t)
{
    (void)t;
    call(&n_calls);
}

static void worker_async_timers_and_watchers_run_in_loop(void **state)
{
    (void)state;
    int ends[2];
    struct mk_timer timer, longest;
    assert_int_equal(pipe(ends), 0);
    mk_timer_init(&timer, on_due);
    mk_timer_init(&longest, on_due);
    struct mk_watcher *r = mk_watcher_new(&w, ends[0], MK_READABLE, on_ready, &n_calls);
    assert_non_null(r);
    mk_timer_set(&timer, &w, 1);
    mk_timer_set(&longest, &w, UINT32_MAX); /* the longest possible timer */
    assert_true(mk_timer_is_set(&timer));
    run_until(&n_calls, 1);
    assert_false(mk_timer_is_set(&timer));
    assert_true(mk_timer_is_set(&longest));
    mk_timer_set(&longest, &w, 1);
    run_until(&n_calls, 2);
    n_calls = 1;
    assert_int_equal(write(ends[1], "x", 1), 1);
    run_until(&n_calls, 2);
    mk_timer_set(&timer, &w, 1);
    mk_timer_stop(&timer);
    mk_timer_stop(&timer);
    mk_watcher_free(r); /* the worker frees it when it exits */
    mk_worker_fini(&w);
    assert_int_equal(n_calls, 2);
    close(ends[0]);
    close(ends[1]);
}

/* ---- Offloaded work ---- */

static void work(void *ctx)
{
    (void)ctx;
    if (pthread_equal(pthread_self(), loop_thread))
        abort();
    __atomic_add_fetch(&n_works, 1, __ATOMIC_SEQ_CST);
}

static void done(void *ctx)
{
    assert_ptr_equal(ctx, &n_dones);
    assert_true(pthread_equal(pthread_self(), loop_thread));
    n_dones++;
}

static void worker_async_offloaded_work_completes_in_loop(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(mk_worker_offload(&w, work, done, &n_dones), 0);
    assert_int_equal(n_dones, 0);
    run_until(&n_dones, 50);
    assert_int_equal(n_works, 50);
    assert_int_equal(w.thread_pool.n_jobs, 0);
    assert_int_equal(w.manager.helper.n_threads, 0); /* the threads that read files are separate */
    mk_worker_fini(&w);
    assert_int_equal(n_dones, 50);
}

static void work_later(void *ctx)
{
    sem_wait(&may_work);
    work(ctx);
}

static void worker_async_offload_queue_is_limited(void **state)
{
    (void)state;
    for (unsigned i = 0; i < AT_ONCE; i++)
        assert_int_equal(mk_worker_offload(&w, work_later, done, &n_dones), 0);
    assert_int_equal(mk_worker_offload(&w, work_later, done, &n_dones), -EAGAIN);
    sem_post(&may_work);
    run_until(&n_dones, 1);
    assert_int_equal(mk_worker_offload(&w, work_later, done, &n_dones), 0);
    for (unsigned i = 0; i < AT_ONCE; i++)
        sem_post(&may_work);
    run_until(&n_dones, AT_ONCE + 1);
    mk_worker_fini(&w);
    assert_int_equal(n_works, AT_ONCE + 1);
}

/* Some libraries need this much stack. */
static void use_much_stack(void *ctx)
{
    char buffer[512 * 1024];
    memset(buffer, 1, sizeof buffer);
    __asm__ volatile("" : : "r"(buffer) : "memory");
    work(ctx);
}

static void worker_async_threads_have_large_stacks(void **state)
{
    (void)state;
    assert_int_equal(mk_worker_offload(&w, use_much_stack, done, &n_dones), 0);
    run_until(&n_dones, 1);
    mk_worker_fini(&w);
}

static void try_more(void *ctx)
{
    assert_int_equal(mk_worker_offload(&w, work, done, &n_dones), -EAGAIN);
    assert_int_equal(mk_worker_post(&w, call, &n_calls), 0); /* the worker still makes the call */
    done(ctx);
}

static void worker_async_exit_finishes_started_work_only(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(mk_worker_offload(&w, work_later, try_more, &n_dones), 0);
    for (unsigned i = 0; i < 20; i++)
        sem_post(&may_work);
    mk_worker_fini(&w);
    assert_int_equal(n_works, 20);
    assert_int_equal(n_dones, 20);
    assert_int_equal(n_calls, 20);
}

/* ---- Calls from other threads ---- */

static void *post(void *data)
{
    for (int i = 0; i < 100; i++)
        if (mk_worker_post(&w, call, &n_calls))
            return NULL;
    return data;
}

static void worker_async_post_from_other_threads(void **state)
{
    (void)state;
    pthread_t thread;
    void *answer;
    assert_int_equal(pthread_create(&thread, NULL, post, &w), 0);
    run_until(&n_calls, 100);
    pthread_join(thread, &answer);
    assert_ptr_equal(answer, &w);
    assert_int_equal(mk_worker_post(&w, call, &n_calls), 0);
    mk_worker_fini(&w);
    assert_int_equal(n_calls, 101);
}

static void post_at_the_end(void *ctx)
{
    call(ctx);
    assert_int_equal(mk_worker_post(&w, call, ctx), -ESHUTDOWN);
}

static void worker_async_exit_runs_posted_calls_and_rejects_new(void **state)
{
    (void)state;
    assert_int_equal(mk_worker_post(&w, post_at_the_end, &n_calls), 0);
    mk_worker_fini(&w);
    assert_int_equal(n_calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(worker_async_timers_and_watchers_run_in_loop, setup, teardown),
        fixture_test(worker_async_offloaded_work_completes_in_loop, setup, teardown),
        fixture_test(worker_async_offload_queue_is_limited, setup, teardown),
        fixture_test(worker_async_threads_have_large_stacks, setup, teardown),
        fixture_test(worker_async_exit_finishes_started_work_only, setup, teardown),
        fixture_test(worker_async_post_from_other_threads, setup, teardown),
        fixture_test(worker_async_exit_runs_posted_calls_and_rejects_new, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
