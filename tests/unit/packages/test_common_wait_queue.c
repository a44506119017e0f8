/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that wait for a limited resource. The test replaces Duda: while one handler is suspended, the
 * next begins to wait, and the last one runs the test's action. */
#include "common/package_wait_queue.h"

#include <errno.h>

#include "unit/test.h"

enum { HANDLERS = 3 };

static struct package_wait_queue all;
static struct duda_wait *waits[HANDLERS];
static int results[HANDLERS], ends[HANDLERS], refusal; /* `ends`: errors that end the handlers */
static void *got[HANDLERS];
static size_t n;
static char resources[HANDLERS];
static void (*act)(void);

int duda_wait_begin(struct duda_ctx *d, struct duda_wait *w, void (*on_end)(struct duda_wait *w))
{
    *w = (struct duda_wait){.d = d, .on_end = on_end, .is_active = !refusal};
    return refusal;
}

void duda_wait_wake(struct duda_wait *w)
{
    assert_true(w->is_active);
    w->is_woken = true;
}

void duda_wait_end(struct duda_wait *w)
{
    if (!w->is_active)
        return;
    w->is_active = false;
    w->on_end(w);
}

static void wait_for_one(void)
{
    size_t i = n++;
    results[i] = package_wait_queue_wait(&all, NULL, &got[i]);
}

int duda_wait_suspend(struct duda_wait *w)
{
    size_t i = n - 1;
    waits[i] = w;
    if (n < HANDLERS)
        wait_for_one();
    else
        act();
    if (w->is_woken)
        return 0;
    duda_wait_end(w);
    return ends[i];
}

static void run(void (*what)(void))
{
    package_wait_queue_init(&all);
    memset(got, 0, sizeof got);
    n = 0;
    refusal = 0;
    for (size_t i = 0; i < HANDLERS; i++)
        ends[i] = -ECANCELED;
    act = what;
    wait_for_one();
    assert_int_equal(all.n, 0);
    assert_null(all.first);
    assert_ptr_equal(all.last, &all.first);
}

static void grant_all(void)
{
    assert_int_equal(all.n, HANDLERS);
    for (size_t i = 0; i < HANDLERS; i++)
        assert_true(package_wait_queue_hand_over(&all, &resources[i]));
    assert_false(package_wait_queue_hand_over(&all, &resources[0]));
}

static void wait_queue_is_fifo(void **state)
{
    (void)state;
    run(grant_all);
    for (size_t i = 0; i < HANDLERS; i++) {
        assert_int_equal(results[i], 0);
        assert_ptr_equal(got[i], &resources[i]);
    }
}

static void fail_all(void)
{
    package_wait_queue_fail_all(&all, -ECONNREFUSED);
    assert_int_equal(all.n, 0);
}

static void wait_queue_failure_reaches_all(void **state)
{
    (void)state;
    run(fail_all);
    for (size_t i = 0; i < HANDLERS; i++) {
        assert_int_equal(results[i], -ECONNREFUSED);
        assert_null(got[i]);
    }
}

static size_t leaver;

/* Ends one wait: the other handlers are served, and so is a handler that arrives later. */
static void end_one_wait(void)
{
    duda_wait_end(waits[leaver]);
    assert_int_equal(all.n, HANDLERS - 1);
    if (leaver == HANDLERS - 1)
        assert_ptr_equal(*all.last, NULL);
    for (size_t i = 0; i < HANDLERS - 1; i++)
        assert_true(package_wait_queue_hand_over(&all, &resources[i]));
}

static void wait_queue_cancelled_handler_leaves(void **state)
{
    (void)state;
    for (leaver = 0; leaver < HANDLERS; leaver++) {
        run(end_one_wait);
        for (size_t i = 0, next = 0; i < HANDLERS; i++) {
            assert_int_equal(results[i], i == leaver ? -ECANCELED : 0);
            assert_ptr_equal(got[i], i == leaver ? NULL : &resources[next]);
            next += i != leaver;
        }
    }
}

static void do_nothing(void)
{
}

/* The last handler in the queue leaves first: its predecessor must become the end of the queue. */
static void wait_queue_all_may_be_cancelled(void **state)
{
    (void)state;
    run(do_nothing);
    for (size_t i = 0; i < HANDLERS; i++)
        assert_int_equal(results[i], -ECANCELED);
}

static void wait_queue_cancelled_handler_does_not_wait(void **state)
{
    (void)state;
    package_wait_queue_init(&all);
    refusal = -ETIMEDOUT;
    assert_int_equal(package_wait_queue_wait(&all, NULL, &got[0]), -ETIMEDOUT);
    assert_int_equal(all.n, 0);
    assert_false(package_wait_queue_hand_over(&all, &resources[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_queue_is_fifo),
        cmocka_unit_test(wait_queue_failure_reaches_all),
        cmocka_unit_test(wait_queue_cancelled_handler_leaves),
        cmocka_unit_test(wait_queue_all_may_be_cancelled),
        cmocka_unit_test(wait_queue_cancelled_handler_does_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
