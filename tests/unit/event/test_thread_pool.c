/* SPDX-License-Identifier: Apache-2.0 */
#include "event/thread_pool.h"

#include <limits.h>
#include <semaphore.h>

#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_loop loop;
static sem_t begun, go;
static unsigned n_done;

static void setup(void)
{
    n_done = 0;
    assert_int_equal(sem_init(&begun, 0, 0), 0);
    assert_int_equal(sem_init(&go, 0, 0), 0);
    loop_setup(&loop);
}

static void teardown(void)
{
    sem_destroy(&begun);
    sem_destroy(&go);
}

static void work(void *ctx)
{
    (void)ctx;
    sem_post(&begun);
    sem_wait(&go);
}

static void done(void *ctx)
{
    assert_ptr_equal(ctx, &n_done);
    n_done++;
}

static void thread_pool_runs_one_job_per_thread(void **state)
{
    (void)state;
    enum { N = 7 };
    struct mk_thread_pool *t = mk_thread_pool_new_on(&loop, N, 2);
    assert_non_null(t);
    for (int i = 0; i < N + 2; i++)
        assert_int_equal(mk_thread_pool_submit(t, work, done, &n_done), 0);
    for (int i = 0; i < N; i++)
        sem_wait(&begun); /* all jobs have started, although none has ended */
    assert_int_equal(sem_trywait(&begun), -1);
    assert_int_equal(mk_thread_pool_submit(t, work, done, &n_done), -EAGAIN); /* two jobs wait */
    sem_post(&go);
    while (n_done == 0)
        assert_int_equal(mk_loop_run_once(&loop, 100), 0);
    assert_int_equal(mk_thread_pool_submit(t, work, done, &n_done), 0);
    for (int i = 0; i < N + 2; i++)
        sem_post(&go);
    mk_thread_pool_free(t); /* waits until the jobs have ended */
    assert_int_equal(n_done, N + 3);
}

static struct mk_thread_pool *again;

static void run_again(void *ctx)
{
    (void)ctx;
    n_done++;
    assert_int_equal(mk_thread_pool_submit(again, work, run_again, NULL), -EAGAIN);
}

static void thread_pool_being_freed_rejects_jobs(void **state)
{
    (void)state;
    again = mk_thread_pool_new_on(&loop, 1, 0);
    assert_int_equal(mk_thread_pool_submit(again, work, run_again, NULL), 0);
    sem_post(&go);
    mk_thread_pool_free(again);
    assert_int_equal(n_done, 1);
    mk_thread_pool_free(NULL);
}

static void thread_pool_thread_count_is_limited(void **state)
{
    (void)state;
    assert_null(mk_thread_pool_new_on(&loop, 0, 1));
    assert_null(mk_thread_pool_new_on(&loop, MK_OFFLOAD_THREADS_MAX + 1, 1));
    struct mk_thread_pool *t = mk_thread_pool_new_on(&loop, MK_OFFLOAD_THREADS_MAX, UINT_MAX);
    assert_non_null(t);
    mk_thread_pool_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(thread_pool_runs_one_job_per_thread, setup, teardown),
        fixture_test(thread_pool_being_freed_rejects_jobs, setup, teardown),
        fixture_test(thread_pool_thread_count_is_limited, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
