/* SPDX-License-Identifier: Apache-2.0 */
/* Offloaded work, and when its job is dropped. The test replaces the threads. */
#include <errno.h>
#include <stdlib.h>

#include "service/memory.h"
#include "service/suspend.h"
#include "unit/test.h"

static struct duda_ctx d;
static struct duda_wait *current_wait;
static struct {
    int refuses, ends; /* results of the threads and of the wait */
    void (*work)(void *ctx), (*done)(void *ctx);
    void *ctx;
} fake;
static unsigned n_worked, n_dropped;

int duda_suspend(struct duda_ctx *self)
{
    return self->cancel_error;
}

int duda_wait_begin(struct duda_ctx *self, struct duda_wait *w, void (*on_end)(struct duda_wait *w))
{
    assert_ptr_equal(self, &d);
    *w = (struct duda_wait){.d = self, .on_end = on_end, .is_active = true};
    current_wait = w;
    return 0;
}

int duda_wait_suspend(struct duda_wait *w)
{
    assert_ptr_equal(w, current_wait);
    d.cancel_error = fake.ends;
    if (d.cancel_error) {
        duda_wait_end(w);
        return d.cancel_error;
    }
    fake.work(fake.ctx);
    fake.done(fake.ctx);
    assert_true(w->is_woken);
    return 0;
}

int duda_suspend_until_drain(struct duda_wait *w)
{
    return duda_wait_suspend(w);
}

void duda_wait_end(struct duda_wait *w)
{
    assert_ptr_equal(w, current_wait);
    current_wait = NULL;
    w->on_end(w);
}

void duda_wait_wake(struct duda_wait *w)
{
    assert_ptr_equal(w, current_wait);
    w->is_woken = true;
}

struct mk_worker *duda_worker(struct duda_ctx *self)
{
    assert_ptr_equal(self, &d);
    return NULL;
}

int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    assert_null(w);
    fake.work = work;
    fake.done = done;
    fake.ctx = ctx;
    return fake.refuses;
}

int mk_thread_pool_submit(struct mk_thread_pool *t, void (*work)(void *ctx), void (*done)(void *ctx),
                          void *ctx)
{
    assert_null(t);
    return mk_worker_offload(NULL, work, done, ctx);
}

static bool is_dev_mode, contains;
static unsigned n_logged;

bool duda_memory_is_dev_mode(const struct duda_worker_ctx *worker_ctx)
{
    (void)worker_ctx;
    return is_dev_mode;
}

size_t duda_memory_find_pointer(const struct duda_ctx *self, const void *data, size_t size)
{
    assert_ptr_equal(self, &d);
    return contains && data ? 0 : size;
}

void duda_log_handler(struct duda_ctx *self, enum mk_log_level level, const char *fmt, ...)
{
    (void)self, (void)level, (void)fmt;
    n_logged++;
}

/* Fakes of waits that this test does not cover. */
void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    (void)t, (void)w, (void)ms;
}

void mk_timer_stop(struct mk_timer *t)
{
    (void)t;
}

struct mk_watcher *mk_watcher_new(struct mk_worker *w, int fd, unsigned events,
                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    (void)w, (void)fd, (void)events, (void)on_ready, (void)ctx;
    return NULL;
}

void mk_watcher_free(struct mk_watcher *w)
{
    (void)w;
}

static int work_result;

static int work(void *job)
{
    n_worked += *(unsigned *)job;
    *(unsigned *)job = 7;
    return work_result;
}

static void drop(void *job)
{
    n_dropped++;
    free(job);
}

static int offload(int refuses, int ends)
{
    unsigned *job = malloc(sizeof *job);
    *job = 1;
    d.cancel_error = 0;
    n_worked = n_dropped = 0;
    fake.refuses = refuses;
    fake.ends = ends;
    int e = duda_offload_owned(&d, NULL, work, job, drop);
    assert_null(current_wait); /* otherwise a terminated handler would leave pointers to its stack */
    if (!e)
        free(job);
    return e;
}

static void offload_drops_job_only_if_not_started(void **state)
{
    static const int errors[] = {-EAGAIN, -ENOMEM, -ESHUTDOWN};
    (void)state;
    assert_int_equal(offload(0, 0), 0);
    assert_int_equal(n_worked, 1);
    assert_int_equal(n_dropped, 0);
    for (size_t i = 0; i < MK_LEN(errors); i++) {
        assert_int_equal(offload(errors[i], 0), errors[i]);
        assert_int_equal(n_worked, 0);
        assert_int_equal(n_dropped, 1);
    }
    assert_int_equal(offload(0, -ECANCELED), -ECANCELED);
    assert_int_equal(n_dropped, 0); /* the thread may still use the job */
    fake.work(fake.ctx);
    fake.done(fake.ctx);
    assert_int_equal(n_worked, 1);
    assert_int_equal(n_dropped, 1);
}

static void offload_copied_job_is_not_dropped(void **state)
{
    unsigned job = 2;
    (void)state;
    d.cancel_error = 0;
    n_worked = 0;
    fake.refuses = fake.ends = 0;
    assert_int_equal(duda_offload(&d, NULL, work, &job, sizeof job), 0);
    assert_int_equal(n_worked, 2);
    assert_int_equal(job, 7);
    fake.refuses = -EAGAIN;
    assert_int_equal(duda_offload(&d, NULL, work, &job, sizeof job), -EAGAIN);
}

static void offload_reports_pointers_only_in_development(void **state)
{
    struct {
        unsigned n;
        const void *pointer;
    } job = {1, "x"};
    (void)state;
    d.cancel_error = 0;
    fake.refuses = fake.ends = 0;
    contains = true;
    for (unsigned i = 0; i < 2; i++) {
        is_dev_mode = i;
        assert_int_equal(duda_offload(&d, NULL, work, &job, sizeof job), 0);
        assert_int_equal(n_logged, i); /* one message for each job */
    }
    contains = false;
    assert_int_equal(duda_offload(&d, NULL, work, &job, sizeof job), 0);
    assert_int_equal(n_logged, 1);
    is_dev_mode = false;
}

static void offload_returns_result_of_work(void **state)
{
    unsigned job = 2;
    (void)state;
    d.cancel_error = 0;
    fake.refuses = fake.ends = 0;
    work_result = -EDOM;
    assert_int_equal(duda_offload(&d, NULL, work, &job, sizeof job), -EDOM);
    assert_int_equal(job, 7); /* copied back, so it may describe the error */
    assert_int_equal(offload(0, 0), -EDOM);
    assert_int_equal(n_dropped, 1);
    work_result = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offload_drops_job_only_if_not_started),
        cmocka_unit_test(offload_copied_job_is_not_dropped),
        cmocka_unit_test(offload_returns_result_of_work),
        cmocka_unit_test(offload_reports_pointers_only_in_development),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
