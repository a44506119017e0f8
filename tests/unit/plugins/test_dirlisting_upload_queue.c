/* SPDX-License-Identifier: Apache-2.0 */
/* The number of uploads that are stored at a time. The test replaces the threads of the worker. */
#include "unit/test.h"

#include <errno.h>
#include <string.h>

#include "upload_queue.h"

enum { JOBS = 6 };

static void (*done[JOBS])(void *ctx);
static void *running[JOBS];
static unsigned n_started, n_finished;
static int refusal; /* result of mk_worker_offload(); 0: accepted */
static struct upload_queue queue;
static struct upload_job jobs[JOBS];

int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*on_done)(void *ctx), void *ctx)
{
    (void)w;
    if (refusal)
        return refusal;
    work(ctx);
    done[n_started] = on_done;
    running[n_started++] = ctx;
    return 0;
}

static void store(struct upload_job *job)
{
    assert_int_equal(job->state, UPLOAD_JOB_WAITING);
}

static void finish(struct upload_job *job)
{
    assert_int_equal(job->state, UPLOAD_JOB_DONE);
    n_finished++;
}

static void add(unsigned i, uint8_t client)
{
    jobs[i] = (struct upload_job){.store = store, .finish = finish, .client.ip[15] = client};
    dirlisting_upload_queue_add(&queue, &jobs[i]);
}

static void begin(void)
{
    memset(&queue, 0, sizeof queue);
    n_started = n_finished = 0;
    refusal = 0;
}

static void queue_starts_two_clients_and_one_job_of_each(void **state)
{
    (void)state;
    begin();
    add(0, 1);
    add(1, 1);
    add(2, 1);
    assert_int_equal(n_started, 1);
    add(3, 2);
    add(4, 3);
    assert_int_equal(n_started, 2);
    assert_ptr_equal(running[1], &jobs[3]);
    done[1](running[1]); /* client 1 is running: client 3 is next */
    assert_int_equal(n_started, 3);
    assert_ptr_equal(running[2], &jobs[4]);
    done[0](running[0]);
    assert_ptr_equal(running[3], &jobs[1]);
    done[3](running[3]);
    assert_ptr_equal(running[4], &jobs[2]);
    done[4](running[4]);
    done[2](running[2]);
    assert_int_equal(n_finished, 5);
    assert_null(queue.waiting);
}

static void queue_removed_job_never_starts(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < 4; i++)
        add(i, 1);
    dirlisting_upload_queue_remove(&queue, &jobs[1]);
    dirlisting_upload_queue_remove(&queue, &jobs[3]);
    done[0](running[0]);
    assert_ptr_equal(running[1], &jobs[2]);
    done[1](running[1]);
    assert_int_equal(n_started, 2);
    assert_int_equal(n_finished, 2);
}

static void queue_without_threads_fails_all_jobs(void **state)
{
    (void)state;
    begin();
    add(0, 1);
    add(1, 1);
    add(2, 1);
    refusal = -EAGAIN;
    add(3, 2);
    assert_int_equal(jobs[3].state, UPLOAD_JOB_DONE);
    assert_int_equal(jobs[3].error, -EAGAIN);
    done[0](running[0]);
    assert_int_equal(n_finished, 4);
    assert_int_equal(jobs[0].error, 0);
    assert_int_equal(jobs[2].error, -EAGAIN);
    assert_null(queue.waiting);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_starts_two_clients_and_one_job_of_each),
        cmocka_unit_test(queue_removed_job_never_starts),
        cmocka_unit_test(queue_without_threads_fails_all_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
