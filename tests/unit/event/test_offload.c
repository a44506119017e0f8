/* SPDX-License-Identifier: Apache-2.0 */
#include "event/offload.h"

#include <pthread.h>

#include "unit/test.h"

enum { JOBS = 40 };

struct count {
    struct mk_offload_job job;
    pthread_t ran_in;
    unsigned ran, *done;
    struct mk_loop *loop; /* stopped by the last job */
};

static void run(struct mk_offload_job *job)
{
    struct count *c = MK_CONTAINER(job, struct count, job);
    c->ran_in = pthread_self();
    c->ran++;
}

static void done(struct mk_offload_job *job)
{
    struct count *c = MK_CONTAINER(job, struct count, job);
    if (++*c->done == JOBS && c->loop)
        mk_loop_stop(c->loop);
}

static void submit_all(struct mk_offload *h, struct count *jobs, unsigned *n_done, struct mk_loop *loop)
{
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i] = (struct count){.job = {.run = run, .done = done}, .done = n_done, .loop = loop};
        assert_true(mk_offload_submit(h, &jobs[i].job));
    }
}

static void offload_jobs_run_in_threads_and_end_in_the_loop(void **state)
{
    struct mk_loop loop;
    struct mk_offload helper;
    struct count jobs[JOBS];
    unsigned n_done = 0;
    (void)state;
    assert_int_equal(mk_loop_init(&loop), 0);
    assert_int_equal(mk_offload_init(&helper, &loop), 0);
    assert_int_equal(helper.n_threads, 0); /* threads start only when there is work */
    submit_all(&helper, jobs, &n_done, &loop);
    assert_int_equal(n_done, 0); /* done() never runs inside submit */
    assert_int_equal(mk_loop_run(&loop), 0);
    assert_int_equal(n_done, JOBS);
    for (unsigned i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].ran, 1);
        assert_false(pthread_equal(jobs[i].ran_in, pthread_self()));
    }
    assert_in_range(helper.n_threads, 1, MK_OFFLOAD_THREADS);
    mk_offload_fini(&helper);
    mk_loop_fini(&loop);
}

static void offload_fini_waits_for_all_jobs(void **state)
{
    struct mk_loop loop;
    struct mk_offload helper;
    struct count jobs[JOBS];
    unsigned n_done = 0;
    (void)state;
    assert_int_equal(mk_loop_init(&loop), 0);
    assert_int_equal(mk_offload_init(&helper, &loop), 0);
    submit_all(&helper, jobs, &n_done, NULL);
    mk_offload_fini(&helper);
    assert_int_equal(n_done, JOBS);
    mk_loop_fini(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offload_jobs_run_in_threads_and_end_in_the_loop),
        cmocka_unit_test(offload_fini_waits_for_all_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
