/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of handlers, on real stacks, from their start to the termination of a handler that ignores
 * cancellation. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/crash_table.h"
#include "service/memory.h"
#include "service/route_table.h"
#include "service/suspend.h"
#include "service/terminated.h"
#include "unit/test.h"

/* ---- Functions called by the code under test ---- */

static unsigned n_resumed, n_duties;
static max_align_t memory[16];

void mk_request_resume(struct mk_request *r)
{
    (void)r;
    n_resumed++;
}

int mk_request_set_handler_timeout(struct mk_request *r, uint32_t ms)
{
    (void)r, (void)ms;
    return 0;
}

void mk_request_log(struct mk_request *r, enum mk_log_level level, const char *fmt, ...)
{
    (void)r, (void)level, (void)fmt;
}

void mk_worker_log(struct mk_worker *w, enum mk_log_level level, const char *fmt, ...)
{
    (void)w, (void)level, (void)fmt;
}

void mk_request_log_fields(struct mk_request *r, enum mk_log_level level, mk_str message,
                           const struct mk_log_fields *fields)
{
    (void)r, (void)level, (void)message, (void)fields;
}

void mk_worker_log_fields(struct mk_worker *w, enum mk_log_level level, mk_str message,
                          const struct mk_log_fields *fields)
{
    (void)w, (void)level, (void)message, (void)fields;
}

mk_str duda_request_id(struct duda_ctx *self)
{
    (void)self;
    return MK_STR("1");
}

int64_t mk_worker_now(const struct mk_worker *w)
{
    (void)w;
    return 0;
}

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    (void)t, (void)w, (void)ms;
}

void mk_timer_stop(struct mk_timer *t)
{
    (void)t;
}

void mk_deferred_post(struct mk_deferred *t)
{
    (void)t;
}

void *duda_alloc(struct duda_ctx *d, size_t n)
{
    (void)d;
    assert_true(n <= sizeof memory);
    return memory;
}

void duda_memory_run_cleanups(struct duda_ctx *d)
{
    assert_null(d->waits); /* cleanups run once the waits have ended */
    n_duties++;
}

void duda_memory_free_chunks(struct duda_ctx *d)
{
    (void)d;
}

void duda_memory_release_block(struct duda_worker_ctx *h, void *p)
{
    (void)h, (void)p;
}

bool duda_route_slot_disable(struct duda_route_slot *route_slot, const struct duda_crash_policy *rules,
                             int64_t now)
{
    (void)route_slot, (void)rules, (void)now;
    return false;
}

/* ---- Handler ---- */

static struct duda_worker_ctx worker_ctx;
static struct duda_route route = {.name = "fn", .file = "file"};
static struct duda_route_entry line = {.route = &route};
static struct duda_ctx d;
static struct duda_stack_pool *stacks;
static void (*run)(void);

static void on_stack(void *arg)
{
    (void)arg;
    run();
}

static bool resume_handler(void)
{
    d.waits_for = DUDA_SUSPEND_NONE;
    d.woken = false;
    bool has_returned = duda_fiber_resume(d.fiber);
    return has_returned;
}

/* Returns true if the handler has returned, false if it is suspended. */
static bool start_handler(void (*fn)(void))
{
    d = (struct duda_ctx){.worker_ctx = &worker_ctx, .route_entry = &line};
    n_resumed = n_duties = 0;
    run = fn;
    d.fiber = duda_fiber_new(stacks, on_stack, NULL);
    return resume_handler();
}

static void setup(void)
{
    worker_ctx = (struct duda_worker_ctx){0};
    stacks = duda_stack_pool_new(65536);
    assert_non_null(stacks);
}

static void teardown(void)
{
    if (!d.terminated && d.fiber)
        duda_fiber_free(d.fiber);
    duda_terminated_free_all(&worker_ctx);
    duda_stack_pool_free(stacks);
}

/* ---- Package ---- */

static char ended_waits[32]; /* letters of the waits that have ended */

struct question {
    struct duda_wait wait; /* must be first */
    char letter;
};

static void end_question(struct duda_wait *w)
{
    ended_waits[strlen(ended_waits)] = ((struct question *)w)->letter;
}

static struct question sent_question; /* not on the stack: the test reads it after the handler has returned */
static int results[4];

static void send_question(void)
{
    sent_question = (struct question){.letter = 'q'};
    memset(ended_waits, 0, sizeof ended_waits);
    results[0] = duda_wait_begin(&d, &sent_question.wait, end_question);
    results[1] = duda_wait_suspend(&sent_question.wait);
    duda_wait_end(&sent_question.wait);
    results[2] = duda_wait_suspend(&sent_question.wait);
}

static void suspend_wake_ends_only_its_wait(void **state)
{
    (void)state;
    assert_false(start_handler(send_question));
    duda_wake(&d); /* wakes the handler for another reason */
    assert_false(resume_handler());
    duda_wait_wake(&sent_question.wait);
    assert_int_equal(n_resumed, 2);
    assert_string_equal(ended_waits, "");
    assert_true(resume_handler());
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], 0);
    assert_int_equal(results[2], -EINVAL); /* nothing would wake this wait */
    assert_string_equal(ended_waits, "q");
    assert_null(d.waits);
}

static void suspend_cancellation_ends_wait(void **state)
{
    (void)state;
    assert_false(start_handler(send_question));
    d.cancel_error = -ETIMEDOUT;
    duda_wake(&d);
    assert_true(resume_handler());
    assert_int_equal(results[1], -ETIMEDOUT);
    assert_int_equal(results[2], -ETIMEDOUT);
    assert_string_equal(ended_waits, "q"); /* only once */
    assert_null(d.waits);
}

static void suspend_wake_wins_over_simultaneous_cancellation(void **state)
{
    (void)state;
    assert_false(start_handler(send_question));
    duda_wait_wake(&sent_question.wait);
    d.cancel_error = -ECANCELED;
    assert_true(resume_handler());
    assert_int_equal(results[1], 0);
    assert_string_equal(ended_waits, "q");
}

static void begin_wait_after_end(void)
{
    d.cancel_error = -ECANCELED;
    send_question();
}

/* The function ignores that duda_wait_begin() failed, and suspends the handler anyway. */
static void suspend_cancelled_handler_cannot_begin_wait(void **state)
{
    (void)state;
    assert_true(start_handler(begin_wait_after_end));
    assert_int_equal(results[0], -ECANCELED);
    assert_int_equal(results[1], -ECANCELED);
    assert_int_equal(results[2], -ECANCELED);
    assert_string_equal(ended_waits, "q");
    assert_null(d.waits);
    assert_int_equal(d.n_refused_waits, 3);
    duda_wait_wake(&sent_question.wait);
    assert_int_equal(n_resumed, 0);
}

static void begin_with_care(void)
{
    struct question q = {.letter = 'q'};
    memset(ended_waits, 0, sizeof ended_waits);
    d.cancel_error = -ECANCELED;
    results[0] = duda_wait_begin(&d, &q.wait, end_question);
    duda_wait_end(&q.wait);
}

static void suspend_failed_begin_needs_no_end(void **state)
{
    (void)state;
    assert_true(start_handler(begin_with_care));
    assert_int_equal(results[0], -ECANCELED);
    assert_string_equal(ended_waits, "");
}

static void begin_three_waits(void)
{
    sent_question = (struct question){.letter = 'q'};
    results[3] = duda_wait_begin(&d, &sent_question.wait, end_question);
    for (size_t i = 0; i < 3; i++)
        results[i] = duda_wait_suspend(&sent_question.wait);
    duda_wait_end(&sent_question.wait);
}

static void suspend_wait_can_be_woken_again(void **state)
{
    (void)state;
    assert_false(start_handler(begin_three_waits));
    for (size_t i = 0; i < 2; i++) {
        duda_wait_wake(&sent_question.wait);
        duda_wait_wake(&sent_question.wait); /* the second wake-up does not count */
        assert_false(resume_handler());
    }
    d.cancel_error = -ECANCELED;
    assert_true(resume_handler());
    assert_int_equal(results[0] | results[1], 0);
    assert_int_equal(results[2], -ECANCELED);
}

/* ---- Termination ---- */

static struct question outer, inner;

static void ignore_the_end(void)
{
    memset(ended_waits, 0, sizeof ended_waits);
    outer = (struct question){.letter = 'o'};
    inner = (struct question){.letter = 'i'};
    results[0] = duda_wait_begin(&d, &outer.wait, end_question);
    results[1] = duda_wait_begin(&d, &inner.wait, end_question);
    d.cancel_error = -ETIMEDOUT;
    for (;;) /* loops with a wait of another kind */
        results[2] = duda_suspend(&d);
}

static void suspend_termination_ends_waits_in_reverse_order(void **state)
{
    (void)state;
    assert_false(start_handler(ignore_the_end));
    assert_int_equal(d.n_refused_waits, DUDA_REFUSALS_MAX);
    assert_string_equal(ended_waits, "");
    duda_terminate(&d);
    assert_string_equal(ended_waits, "io");
    assert_int_equal(n_duties, 1);
    duda_wait_wake(&outer.wait);
    assert_int_equal(n_resumed, 0);
}

static unsigned n_begun;

static void ignore_all_errors(void)
{
    struct question q = {.letter = 'q'};
    d.cancel_error = -ETIMEDOUT;
    memset(ended_waits, 0, sizeof ended_waits);
    for (n_begun = 0;; n_begun++) {
        results[0] = duda_wait_begin(&d, &q.wait, end_question);
        duda_wait_end(&q.wait);
    }
}

static void suspend_handler_ignoring_failed_begins_is_terminated(void **state)
{
    (void)state;
    assert_false(start_handler(ignore_all_errors));
    assert_int_equal(n_begun, DUDA_REFUSALS_MAX - 1);
    assert_null(d.waits);
    duda_terminate(&d);
    assert_string_equal(ended_waits, "");
}

static void suspend_for_ever(void)
{
    struct question q = {.letter = 'q'};
    memset(ended_waits, 0, sizeof ended_waits);
    results[0] = duda_wait_begin(&d, &q.wait, end_question);
    d.cancel_error = -ETIMEDOUT;
    for (;;)
        results[1] = duda_wait_suspend(&q.wait);
}

static void suspend_handler_ignoring_cancellation_is_terminated(void **state)
{
    (void)state;
    assert_false(start_handler(suspend_for_ever));
    assert_int_equal(d.n_refused_waits, DUDA_REFUSALS_MAX);
    assert_string_equal(ended_waits, "q");
    duda_terminate(&d);
    assert_string_equal(ended_waits, "q");
}

/* ---- Misuse that debug builds detect ---- */

static void leave_a_wait_behind(void)
{
    static struct question q;
    results[0] = duda_wait_begin(&d, &q.wait, NULL);
}

/* AddressSanitizer's fake stacks, the default since gcc 13, hide the order of frames that duda_wait_begin() checks. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_stack_use_after_return=0";
}

/* Runs the checks that scheduler.c runs after the handler has returned. */
static void check_waits(void)
{
    if (d.waits)
        duda_suspend_log_leaked_waits(&d);
}

static void return_with_a_wait(void)
{
    (void)start_handler(leave_a_wait_behind);
    check_waits();
}

static __attribute__((noinline)) void leave_a_wait_in_own_frame(void)
{
    struct question q;
    results[0] = duda_wait_begin(&d, &q.wait, NULL);
}

static void wait_after_a_left_wait(void)
{
    struct question q;
    leave_a_wait_in_own_frame();
    results[1] = duda_wait_begin(&d, &q.wait, NULL);
    duda_wait_end(&q.wait);
}

static void wait_longer_than_a_function(void)
{
    (void)start_handler(wait_after_a_left_wait);
}

static __attribute__((noinline)) void wait_in_own_frame(void)
{
    struct question q;
    results[1] = duda_wait_begin(&d, &q.wait, NULL);
    duda_wait_end(&q.wait);
}

static void wait_in_called_function(void)
{
    struct question q;
    results[0] = duda_wait_begin(&d, &q.wait, NULL);
    wait_in_own_frame();
    duda_wait_end(&q.wait);
}

static void wait_in_nested_functions(void)
{
    (void)start_handler(wait_in_called_function);
}

static void begin_it_twice(void)
{
    struct question q;
    results[0] = duda_wait_begin(&d, &q.wait, NULL);
    results[1] = duda_wait_begin(&d, &q.wait, NULL);
    duda_wait_end(&q.wait);
}

static void begin_a_wait_twice(void)
{
    (void)start_handler(begin_it_twice);
}

static void end_outer_first(void)
{
    struct question first, second;
    results[0] = duda_wait_begin(&d, &first.wait, NULL);
    results[1] = duda_wait_begin(&d, &second.wait, NULL);
    duda_wait_end(&first.wait);
    duda_wait_end(&second.wait);
}

static void end_waits_out_of_order(void)
{
    (void)start_handler(end_outer_first);
}

static void return_without_a_wait(void)
{
    (void)start_handler(begin_wait_after_end);
    check_waits();
}

/* Returns true if the misuse ends the process with abort(). */
static bool aborts(void (*mistake)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        mistake();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void suspend_misuse_of_waits_aborts(void **state)
{
    (void)state;
    d = (struct duda_ctx){.worker_ctx = &worker_ctx};
    assert_true(aborts(return_with_a_wait));
    assert_true(aborts(begin_a_wait_twice));
    assert_true(aborts(end_waits_out_of_order));
    assert_true(aborts(wait_longer_than_a_function));
    assert_false(aborts(wait_in_nested_functions));
    assert_false(aborts(return_without_a_wait));
}

/* ---- Memory of waiting functions ---- */

static struct duda_scratch_buf scratch;

static void fill_scratch(void)
{
    results[0] = duda_scratch_buf_begin(&d, &scratch, 100);
    mk_buf_add(&scratch.buf, MK_STR("some text"));
    results[1] = duda_wait_suspend(&scratch.wait);
    duda_wait_end(&scratch.wait);
}

static void suspend_scratch_buffer_is_freed_with_wait(void **state)
{
    (void)state;
    assert_false(start_handler(fill_scratch));
    assert_true(mk_str_eq(mk_buf_str(&scratch.buf), MK_STR("some text")));
    d.cancel_error = -ECANCELED;
    assert_true(resume_handler());
    assert_int_equal(results[1], -ECANCELED);
    assert_null(scratch.buf.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(suspend_wake_ends_only_its_wait, setup, teardown),
        fixture_test(suspend_cancellation_ends_wait, setup, teardown),
        fixture_test(suspend_wake_wins_over_simultaneous_cancellation, setup, teardown),
        fixture_test(suspend_cancelled_handler_cannot_begin_wait, setup, teardown),
        fixture_test(suspend_failed_begin_needs_no_end, setup, teardown),
        fixture_test(suspend_wait_can_be_woken_again, setup, teardown),
        fixture_test(suspend_termination_ends_waits_in_reverse_order, setup, teardown),
        fixture_test(suspend_handler_ignoring_failed_begins_is_terminated, setup, teardown),
        fixture_test(suspend_handler_ignoring_cancellation_is_terminated, setup, teardown),
        fixture_test(suspend_misuse_of_waits_aborts, setup, teardown),
        fixture_test(suspend_scratch_buffer_is_freed_with_wait, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
