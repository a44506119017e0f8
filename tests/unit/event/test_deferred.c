/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop.h"

#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_loop loop;
static struct mk_deferred *end;
static unsigned n_ends, n_tasks, again;

static void on_end(void *ctx)
{
    assert_ptr_equal(ctx, &n_ends);
    assert_int_equal(n_tasks, n_ends + 1); /* all tasks deferred in this iteration have run */
    n_ends++;
    if (again > 0) {
        again--;
        mk_deferred_post(end);
    }
}

static void setup(void)
{
    n_ends = n_tasks = again = 0;
    loop_setup(&loop);
    end = mk_loop_new_deferred(&loop, on_end, &n_ends);
    assert_non_null(end);
}

static void run_once(void)
{
    assert_int_equal(mk_loop_run_once(&loop, 0), 0);
}

static void set_it(struct mk_loop_task *t)
{
    (void)t;
    n_tasks++;
    mk_deferred_post(end);
    mk_deferred_post(end);
}

static struct mk_loop_task task = {.run = set_it};

static void deferred_is_called_once_after_the_tasks(void **state)
{
    (void)state;
    run_once();
    assert_int_equal(n_ends, 0);
    mk_deferred_post(end);
    mk_loop_defer(&loop, &task);
    run_once();
    assert_int_equal(n_ends, 1);
    run_once();
    assert_int_equal(n_ends, 1);
    mk_deferred_free(end);
}

static void deferred_posted_by_itself_runs_in_the_next_iteration_without_waiting(void **state)
{
    (void)state;
    again = 1;
    mk_loop_defer(&loop, &task);
    run_once();
    assert_int_equal(n_ends, 1);
    n_tasks++;
    assert_int_equal(mk_loop_run_once(&loop, -1), 0);
    assert_int_equal(n_ends, 2);
    mk_deferred_free(end);
}

static void free_it(void *ctx)
{
    (void)ctx;
    n_ends++;
    mk_deferred_post(end);
    mk_deferred_free(end);
}

static void deferred_freed_is_not_called(void **state)
{
    (void)state;
    mk_deferred_post(end);
    mk_deferred_free(end);
    run_once();
    assert_int_equal(n_ends, 0);
    end = mk_loop_new_deferred(&loop, free_it, NULL);
    mk_deferred_post(end);
    run_once();
    run_once();
    assert_int_equal(n_ends, 1);
    assert_null(loop.ends);
    mk_deferred_free(NULL);
}

static void count_last(struct mk_loop_task *t)
{
    (void)t;
    assert_int_equal(n_ends, 1);
    n_tasks = 7;
}

static struct mk_loop_task last = {.run = count_last};

static void defer_last(void *ctx)
{
    (void)ctx;
    n_ends++;
    mk_loop_defer_last(&loop, &last);
}

static void deferred_last_task_runs_in_the_same_iteration(void **state)
{
    (void)state;
    mk_deferred_free(end);
    end = mk_loop_new_deferred(&loop, defer_last, NULL);
    mk_deferred_post(end);
    run_once();
    assert_int_equal(n_tasks, 7);
    n_tasks = 0;
    mk_loop_defer_last(&loop, &last);
    assert_int_equal(mk_loop_run_once(&loop, -1), 0); /* returns without waiting */
    assert_int_equal(n_tasks, 7);
    mk_deferred_free(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(deferred_is_called_once_after_the_tasks, setup),
        fixture_test(deferred_posted_by_itself_runs_in_the_next_iteration_without_waiting, setup),
        fixture_test(deferred_freed_is_not_called, setup),
        fixture_test(deferred_last_task_runs_in_the_same_iteration, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
