/* SPDX-License-Identifier: Apache-2.0 */
/* Runs handlers from their start to the end of the request, on real stacks, with scheduler.c, suspend.c and
 * response.c. The test replaces the server. */
#include "service/scheduler.h"

#include <duda/middleware.h>
#include <errno.h>

#include "fiber/stack_pool.h"
#include "service/response.h"
#include "service/route_table.h"
#include "unit/duda/running.h"

enum { HANDLERS = 3 };

/* ---- Handlers ---- */

static struct duda_ctx handlers[HANDLERS];
static struct duda_route routes[HANDLERS];
static struct duda_route_entry entries[HANDLERS];
static unsigned n_steps[HANDLERS]; /* steps taken by each handler */
static unsigned n_over;
static struct duda_ctx *to_wake; /* the next handler that runs wakes it */

static void on_over(void *ctx, int result)
{
    assert_ptr_equal(ctx, &n_over);
    (void)result;
    n_over++;
}

static size_t index_of(struct duda_ctx *d)
{
    return (size_t)(d - handlers);
}

/* Suspends itself in a loop until its waits end, and wakes `to_wake` once. */
static int step(struct duda_ctx *d)
{
    int e = 0;
    while (!e) {
        n_steps[index_of(d)]++;
        if (to_wake) {
            struct duda_ctx *other = to_wake;
            to_wake = NULL;
            duda_wake(other);
        }
        e = duda_suspend(d);
    }
    return e;
}

static int respond_hello(struct duda_ctx *d)
{
    return duda_puts(d, "hello");
}

static int answered; /* result of answer() */

static int answer(struct duda_ctx *d)
{
    (void)d;
    return answered;
}

static int write_hello_and_return(struct duda_ctx *d)
{
    int e = duda_puts(d, "hello");
    return e ? e : answered;
}

static struct duda_ctx *make(size_t i, duda_fn *fn)
{
    routes[i] = (struct duda_route){.kind = DUDA_IS_ROUTE, .fn = fn, .name = "fn", .file = "file"};
    entries[i] = (struct duda_route_entry){.route = &routes[i], .series = 1};
    handlers[i] = (struct duda_ctx){.request = a_request(),
                                    .worker_ctx = &worker_ctx,
                                    .route_entry = &entries[i],
                                    .on_task_end = on_over,
                                    .task_end_ctx = &n_over};
    assert_int_equal(duda_scheduler_create_fiber(&handlers[i]), 0);
    return &handlers[i];
}

/* Starts a tunnel handler, which waits in step(). */
static struct duda_ctx *tunnel(size_t i)
{
    struct duda_ctx *d = make(i, step);
    d->output = DUDA_OUTPUT_TUNNEL;
    assert_int_equal(duda_scheduler_run(d), MK_DONE);
    assert_int_equal(n_steps[i], 1);
    return d;
}

static void end_iteration(void)
{
    fake.turns = 0;
    fake.on_iteration_end(&worker_ctx);
}

static void setup(void)
{
    worker_ctx = (struct duda_worker_ctx){0};
    memset(counts, 0, sizeof counts);
    memset(&fake, 0, sizeof fake);
    memset(n_steps, 0, sizeof n_steps);
    n_over = 0;
    to_wake = NULL;
    fake.status = 200;
    assert_int_equal(duda_scheduler_init(&worker_ctx), 0);
}

static void teardown(void)
{
    for (size_t i = 0; i < MK_LEN(worker_ctx.stacks); i++)
        duda_stack_pool_free(worker_ctx.stacks[i]);
    mk_buf_free(&worker_ctx.spare);
    duda_scheduler_fini(&worker_ctx);
}

/* ---- Wake-up queue ---- */

static void scheduler_woken_handler_runs_once_at_iteration_end(void **state)
{
    struct duda_ctx *a = tunnel(0), *b = tunnel(1);
    (void)state;
    duda_wake(a);
    duda_wake(b);
    duda_wake(a);
    assert_int_equal(fake.turns, 2);
    assert_true(a->is_queued && b->is_queued);
    assert_int_equal(n_steps[0] + n_steps[1], 2);
    end_iteration();
    assert_int_equal(n_steps[0], 2);
    assert_int_equal(n_steps[1], 2);
    assert_false(a->is_queued || b->is_queued);
    end_iteration();
    assert_int_equal(n_steps[0] + n_steps[1], 4);
    assert_int_equal(fake.resumed, 0); /* the server does not resume tunnels */
    duda_scheduler_cancel(a);
    duda_scheduler_cancel(b);
}

/* If both ran in the same iteration, two handlers that wake each other would block the loop. */
static void scheduler_handler_woken_at_iteration_end_runs_in_next(void **state)
{
    struct duda_ctx *a = tunnel(0), *b = tunnel(1);
    (void)state;
    duda_wake(a);
    to_wake = b;
    end_iteration();
    assert_int_equal(n_steps[0], 2);
    assert_int_equal(n_steps[1], 1);
    assert_int_equal(fake.turns, 1);
    end_iteration();
    assert_int_equal(n_steps[1], 2);
    duda_scheduler_cancel(a);
    duda_scheduler_cancel(b);
}

static void scheduler_cancelled_handler_leaves_queue(void **state)
{
    (void)state;
    for (size_t removed = 0; removed < HANDLERS; removed++) {
        memset(n_steps, 0, sizeof n_steps);
        for (size_t i = 0; i < HANDLERS; i++)
            duda_wake(tunnel(i));
        duda_scheduler_cancel(&handlers[removed]);
        assert_false(handlers[removed].is_queued);
        memset(&handlers[removed], 0xff, sizeof handlers[removed]); /* another handler now uses its memory */
        end_iteration();
        for (size_t i = 0; i < HANDLERS; i++)
            if (i != removed) {
                assert_int_equal(n_steps[i], 2);
                duda_scheduler_cancel(&handlers[i]);
            }
        assert_null(worker_ctx.woken);
        assert_null(worker_ctx.due);
    }
}

static int cancel_another(struct duda_ctx *d)
{
    int e = duda_suspend(d);
    duda_scheduler_cancel(to_wake);
    memset(to_wake, 0xff, sizeof *to_wake);
    to_wake = NULL;
    return e;
}

/* The first handler cancels the second, which is due in the same iteration. */
static void scheduler_due_handler_can_be_cancelled_by_another(void **state)
{
    struct duda_ctx *b = tunnel(1), *a = make(0, cancel_another);
    (void)state;
    a->output = DUDA_OUTPUT_TUNNEL;
    assert_int_equal(duda_scheduler_run(a), MK_DONE);
    duda_wake(b);
    duda_wake(a); /* the last one woken runs first */
    to_wake = b;
    end_iteration();
    assert_int_equal(n_steps[1], 1);
    assert_int_equal(n_over, 2);
    assert_null(worker_ctx.due);
}

static void scheduler_tunnel_ends_when_handler_returns(void **state)
{
    struct duda_ctx *d = tunnel(0);
    (void)state;
    d->cancel_error = -ETIMEDOUT;
    duda_wake(d);
    end_iteration();
    assert_null(d->fiber);
    assert_int_equal(n_over, 1);
    assert_int_equal(fake.freed, 1);
}

static void scheduler_wake_resumes_plain_request(void **state)
{
    struct duda_ctx *d = make(0, step);
    (void)state;
    assert_int_equal(duda_scheduler_run(d), MK_WAIT);
    assert_true(fake.followed);
    duda_wake(d);
    assert_int_equal(fake.resumed, 1);
    assert_int_equal(fake.turns, 0);
    assert_false(d->is_queued);
    assert_int_equal(duda_scheduler_run(d), MK_WAIT);
    assert_int_equal(n_steps[0], 2);
    assert_int_equal(duda_scheduler_run(d), MK_WAIT);
    assert_int_equal(n_steps[0], 2); /* not woken */
    duda_scheduler_cancel(d);
}

/* While the send buffer is full, the server does not resume the handler, but after a timeout it must run to
 * its end. */
static void scheduler_ended_stream_continues_with_full_send_buffer(void **state)
{
    struct duda_ctx *d = make(0, step);
    (void)state;
    assert_int_equal(duda_scheduler_run(d), MK_WAIT);
    d->output = DUDA_OUTPUT_STREAMED;
    duda_wake(d);
    assert_int_equal(fake.turns, 0); /* the stream has not ended */
    d->cancel_error = -ETIMEDOUT;
    duda_wake(d);
    assert_int_equal(fake.turns, 1);
    end_iteration();
    assert_null(d->fiber);
    assert_int_equal(n_over, 0); /* the server has yet to read the written data */
    duda_scheduler_cancel(d);
    assert_int_equal(n_over, 1);
}

/* ---- Stages of a route ---- */

static char steps_taken[16];

static void record_step(struct duda_ctx *d, char c)
{
    assert_int_equal(d->waits_for, DUDA_SUSPEND_NONE);
    assert_ptr_equal(worker_ctx.runs, d);
    steps_taken[strlen(steps_taken)] = c;
}

static int let_pass(struct duda_ctx *d)
{
    record_step(d, 'g');
    return DUDA_NEXT;
}

static bool refuse(struct duda_ctx *d)
{
    record_step(d, 'r');
    return false;
}

static int handle(struct duda_ctx *d)
{
    record_step(d, 'h');
    return 201;
}

static int clean_up(struct duda_ctx *d)
{
    record_step(d, 'a');
    assert_int_equal(duda_result(d), answered); /* the result of the handler is available in later stages */
    return 0;
}

static const struct duda_route guard = {.kind = DUDA_IS_BEFORE, .fn = let_pass};
static const struct duda_route requirement = {.kind = DUDA_IS_REQUIRE, .predicate = refuse, .status = 403};
static const struct duda_route after = {.kind = DUDA_IS_AFTER, .fn = clean_up};
static const struct duda_middleware outer = {.entry = &after}, inner = {.outer = &outer, .entry = &after};

static int wrap(struct duda_ctx *d)
{
    assert_ptr_equal(duda_middleware_data(d), steps_taken);
    record_step(d, '(');
    int result = duda_next(d);
    assert_int_equal(duda_result(d), result);
    assert_ptr_equal(duda_middleware_data(d), steps_taken);
    record_step(d, ')');
    return result;
}

static int wrap_and_run_twice(struct duda_ctx *d)
{
    int result = duda_next(d);
    assert_int_equal(duda_next(d), -EALREADY);
    return result;
}

static int replace_handler(struct duda_ctx *d)
{
    record_step(d, 'x');
    return 202;
}

static int wrap_and_return_next(struct duda_ctx *d)
{
    return duda_next(d) == 201 ? DUDA_NEXT : 0;
}

static const struct duda_route around = {.kind = DUDA_IS_AROUND, .fn = wrap, .data = steps_taken};
static const struct duda_route twice = {.kind = DUDA_IS_AROUND, .fn = wrap_and_run_twice};
static const struct duda_route replaces = {.kind = DUDA_IS_AROUND, .fn = replace_handler};
static const struct duda_route passes = {.kind = DUDA_IS_AROUND, .fn = let_pass};
static const struct duda_route confused = {.kind = DUDA_IS_AROUND, .fn = wrap_and_return_next};

static void expect_steps(const struct duda_route *const *before, size_t n, int result, const char *steps,
                         const struct duda_route *answers)
{
    struct duda_ctx *d = make(0, handle);
    memset(steps_taken, 0, sizeof steps_taken);
    answered = result;
    entries[0].before = before;
    entries[0].n_before = n;
    entries[0].after = &inner;
    fake.cleanups = 0;
    fake.status = 0;
    (void)duda_scheduler_run(d);
    assert_string_equal(steps_taken, steps);
    assert_int_equal(fake.status, (unsigned)result);
    assert_ptr_equal(d->result_route, answers ? answers : &routes[0]);
    assert_int_equal(fake.cleanups, 1);
    assert_null(d->fiber);
    assert_null(worker_ctx.runs);
    duda_scheduler_cancel(d);
}

static void scheduler_before_functions_run_until_one_responds(void **state)
{
    const struct duda_route *const pass[] = {&guard, &guard}, *const stop[] = {&guard, &requirement, &guard};
    (void)state;
    expect_steps(NULL, 0, 201, "haa", NULL);
    expect_steps(pass, 2, 201, "gghaa", NULL);
    expect_steps(stop, 3, 403, "graa", &requirement);
}

static void scheduler_around_functions_enclose_the_rest(void **state)
{
    const struct duda_route
        *const nested[] = {&around, &guard, &around, &guard},
               *const refused[] = {&around, &requirement, &guard}, *const second[] = {&twice, &guard},
               *const replaced[] = {&around, &replaces, &guard}, *const passing[] = {&passes, &guard};
    (void)state;
    expect_steps(nested, 4, 201, "(g(gh))aa", NULL);
    expect_steps(refused, 3, 403, "(r)aa", &requirement);
    expect_steps(second, 2, 201, "ghaa", NULL);
    expect_steps(replaced, 3, 202, "(x)aa", &replaces);
    expect_steps(passing, 2, 201, "gghaa", NULL);
}

static void scheduler_next_after_the_handler_is_an_invalid_result(void **state)
{
    static const struct duda_route *const before[] = {&confused};
    struct duda_ctx *d = make(0, handle);
    (void)state;
    memset(steps_taken, 0, sizeof steps_taken);
    entries[0].before = before;
    entries[0].n_before = 1;
    (void)duda_scheduler_run(d);
    assert_string_equal(steps_taken, "h");
    assert_int_equal(d->result, DUDA_NEXT);
    duda_scheduler_cancel(d);
}

static int cancel_inside(struct duda_ctx *d)
{
    duda_scheduler_cancel(to_wake);
    assert_ptr_equal(worker_ctx.runs, d);
    assert_int_equal(d->waits_for, DUDA_SUSPEND_NONE);
    return 0;
}

/* When one handler cancels another, the scheduler counts their time on the loop only once. */
static void scheduler_handler_continues_after_cancelling_another(void **state)
{
    struct duda_ctx *b = tunnel(1), *a = make(0, cancel_inside);
    (void)state;
    fake.entered = fake.left = 0;
    to_wake = b;
    assert_int_equal(duda_scheduler_run(a), MK_DONE);
    assert_int_equal(fake.entered, 1);
    assert_int_equal(fake.left, 1);
    assert_null(worker_ctx.runs);
    duda_scheduler_cancel(a);
}

/* ---- Statistics ---- */

static uint64_t total(void)
{
    uint64_t n = 0;
    for (size_t i = 0; i < MK_STAT_BUCKETS; i++)
        n += counts[MK_ROUTE_DURATION + i];
    return n;
}

static void expect_counts(uint64_t requests, uint64_t failures, uint64_t cancelled)
{
    assert_int_equal(total(), requests);
    assert_int_equal(counts[MK_ROUTE_REQUESTS], requests);
    assert_int_equal(counts[MK_ROUTE_FAILURES], failures);
    assert_int_equal(counts[MK_ROUTE_CANCELLED], cancelled);
}

static void finish_with(unsigned status)
{
    struct duda_ctx *d = make(0, respond_hello);
    (void)duda_scheduler_run(d);
    fake.status = status;
    duda_scheduler_cancel(d);
}

static void scheduler_counts_5xx_as_failed(void **state)
{
    (void)state;
    finish_with(200);
    finish_with(499);
    expect_counts(2, 0, 0);
    finish_with(500);
    finish_with(599);
    expect_counts(4, 2, 0);
}

/* The status is ignored, because the client has disconnected. */
static void scheduler_cancelled_request_is_not_a_failure(void **state)
{
    struct duda_ctx *d = make(0, step);
    (void)state;
    (void)duda_scheduler_run(d);
    fake.status = 500;
    duda_scheduler_cancel(d);
    expect_counts(1, 0, 1);
    d = make(0, step);
    (void)duda_scheduler_run(d);
    d->cancel_error = -ETIMEDOUT; /* the handler's timeout ends the request, not the client */
    duda_scheduler_cancel(d);
    expect_counts(2, 1, 1);
}

static void scheduler_background_task_fails_by_its_result(void **state)
{
    static const int results[] = {0, 1, -EIO};
    (void)state;
    fake.status = 500; /* a stale status that these handlers have not set */
    for (size_t i = 0; i < MK_LEN(results); i++) {
        struct duda_ctx *d = make(0, answer);
        answered = results[i];
        d->request = NULL;
        d->output = DUDA_OUTPUT_TUNNEL;
        (void)duda_scheduler_run(d);
    }
    expect_counts(3, 1, 0);
    assert_int_equal(n_over, 3);
}

static void scheduler_unstarted_handler_is_not_counted(void **state)
{
    struct duda_ctx *d = make(0, respond_hello);
    (void)state;
    d->began_us = 0;
    duda_scheduler_cancel(d);
    expect_counts(0, 0, 0);
}

/* ---- After the end of a handler ---- */

static int statuses[3];

static int write_after_end(struct duda_ctx *d)
{
    statuses[0] = duda_puts(d, "before");
    (void)!duda_suspend(d);
    statuses[1] = duda_puts(d, "after");
    statuses[2] = duda_printf(d, "%d", 1);
    return d->cancel_error;
}

static void scheduler_writes_after_end_are_rejected(void **state)
{
    struct duda_ctx *d = make(0, write_after_end);
    (void)state;
    assert_int_equal(duda_scheduler_run(d), MK_WAIT);
    d->cancel_error = -ETIMEDOUT;
    duda_wake(d);
    assert_int_equal(duda_scheduler_run(d), MK_ERROR);
    assert_int_equal(statuses[0], 0);
    assert_int_equal(statuses[1], -ETIMEDOUT);
    assert_int_equal(statuses[2], -ETIMEDOUT);
    assert_int_equal(d->out.len, strlen("before"));
    assert_int_equal(d->n_refused_waits, 2);
    duda_scheduler_cancel(d);
}

static int never_stop(struct duda_ctx *d)
{
    while (d->fiber)
        (void)!duda_puts(d, "x");
    return 0;
}

static void scheduler_handler_that_keeps_writing_after_end_is_terminated(void **state)
{
    struct duda_ctx *d = make(0, never_stop);
    (void)state;
    d->cancel_error = -ECANCELED;
    duda_scheduler_cancel(d);
    assert_int_equal(fake.terminated, 1);
    assert_int_equal(fake.kept, 1);
    assert_int_equal(fake.freed, 0); /* the stack stays, because there may be pointers to it */
    assert_int_equal(d->n_refused_waits, DUDA_REFUSALS_MAX);
}

static void scheduler_tunnel_rejects_response_functions(void **state)
{
    struct duda_ctx *d = tunnel(0);
    (void)state;
    assert_int_equal(duda_response_begin_append(d), -EALREADY);
    assert_int_equal(duda_flush(d), -EALREADY);
    duda_scheduler_cancel(d);
}

/* ---- Response ---- */

static void scheduler_output_buffer_is_reused(void **state)
{
    struct duda_ctx *d = make(0, respond_hello);
    (void)state;
    assert_int_equal(duda_scheduler_run(d), MK_DONE);
    assert_true(mk_str_eq(fake.content, MK_STR("hello")));
    const char *buffer = d->out.p;
    duda_scheduler_cancel(d);
    assert_ptr_equal(worker_ctx.spare.p, buffer);
    assert_int_equal(worker_ctx.spare.len, 0);
    d = make(0, respond_hello);
    assert_int_equal(duda_scheduler_run(d), MK_DONE);
    assert_ptr_equal(d->out.p, buffer);
    assert_true(mk_str_eq(fake.content, MK_STR("hello")));
    duda_scheduler_cancel(d);
}

static int write_large_body(struct duda_ctx *d)
{
    char buffer[4096];
    int e = 0;
    memset(buffer, 'x', sizeof buffer);
    for (int i = 0; i < 5 && !e; i++)
        e = duda_write(d, mk_str_of(buffer, sizeof buffer));
    return e;
}

static void scheduler_large_output_buffer_is_freed(void **state)
{
    struct duda_ctx *d = make(0, write_large_body);
    (void)state;
    assert_int_equal(duda_scheduler_run(d), MK_DONE);
    assert_int_equal(fake.content.len, 5 * 4096);
    duda_scheduler_cancel(d);
    assert_null(worker_ctx.spare.p);
}

static int stream(struct duda_ctx *d)
{
    int e = duda_puts(d, "one");
    e = e ? e : duda_flush(d);
    e = e ? e : duda_puts(d, "two");
    return e ? e : answered;
}

static void expect_stream(int result, ssize_t last)
{
    char buffer[8];
    struct duda_ctx *d = make(0, stream);
    answered = result;
    assert_int_equal(duda_scheduler_run(d), MK_DONE);
    assert_ptr_equal(fake.ctx, d);
    assert_int_equal(fake.ops->read(d, buffer, 2), 2);
    assert_memory_equal(buffer, "on", 2);
    assert_int_equal(fake.ops->read(d, buffer, sizeof buffer), 1);
    assert_memory_equal(buffer, "e", 1);
    assert_int_equal(fake.ops->read(d, buffer, sizeof buffer), 3);
    assert_memory_equal(buffer, "two", 3);
    assert_int_equal(fake.ops->read(d, buffer, sizeof buffer), last);
    duda_scheduler_cancel(d);
}

/* An error after the head closes the connection, which tells the client that the response is incomplete. */
static void scheduler_stream_ends_with_result_of_handler(void **state)
{
    (void)state;
    expect_stream(0, 0);
    expect_stream(399, 0);
    expect_stream(DUDA_HANDLED, 0);
    expect_stream(400, -EPIPE);
    expect_stream(-EIO, -EIO);
}

static unsigned status_of(int result, bool has_output)
{
    struct duda_ctx *d = make(0, has_output ? write_hello_and_return : answer);
    answered = result;
    fake.status = 0;
    (void)duda_scheduler_run(d);
    unsigned status = fake.status ? fake.status : 200;
    duda_scheduler_cancel(d);
    return status;
}

static void scheduler_result_becomes_status(void **state)
{
    (void)state;
    assert_int_equal(status_of(0, false), 204);
    assert_int_equal(status_of(0, true), 200);
    assert_int_equal(status_of(201, true), 201);
    assert_int_equal(status_of(200, false), 200);
    assert_int_equal(status_of(400, true), 400);
    assert_int_equal(status_of(DUDA_HANDLED, true), 200);
    assert_int_equal(status_of(-ENOENT, true), 404);
    assert_int_equal(status_of(-EIO, true), 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(scheduler_woken_handler_runs_once_at_iteration_end, setup, teardown),
        fixture_test(scheduler_handler_woken_at_iteration_end_runs_in_next, setup, teardown),
        fixture_test(scheduler_cancelled_handler_leaves_queue, setup, teardown),
        fixture_test(scheduler_due_handler_can_be_cancelled_by_another, setup, teardown),
        fixture_test(scheduler_tunnel_ends_when_handler_returns, setup, teardown),
        fixture_test(scheduler_wake_resumes_plain_request, setup, teardown),
        fixture_test(scheduler_ended_stream_continues_with_full_send_buffer, setup, teardown),
        fixture_test(scheduler_before_functions_run_until_one_responds, setup, teardown),
        fixture_test(scheduler_around_functions_enclose_the_rest, setup, teardown),
        fixture_test(scheduler_next_after_the_handler_is_an_invalid_result, setup, teardown),
        fixture_test(scheduler_handler_continues_after_cancelling_another, setup, teardown),
        fixture_test(scheduler_counts_5xx_as_failed, setup, teardown),
        fixture_test(scheduler_cancelled_request_is_not_a_failure, setup, teardown),
        fixture_test(scheduler_background_task_fails_by_its_result, setup, teardown),
        fixture_test(scheduler_unstarted_handler_is_not_counted, setup, teardown),
        fixture_test(scheduler_writes_after_end_are_rejected, setup, teardown),
        fixture_test(scheduler_handler_that_keeps_writing_after_end_is_terminated, setup, teardown),
        fixture_test(scheduler_tunnel_rejects_response_functions, setup, teardown),
        fixture_test(scheduler_output_buffer_is_reused, setup, teardown),
        fixture_test(scheduler_large_output_buffer_is_freed, setup, teardown),
        fixture_test(scheduler_stream_ends_with_result_of_handler, setup, teardown),
        fixture_test(scheduler_result_becomes_status, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
