/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/handshake_queue.h"

#include "unit/fixtures.h"
#include "unit/test.h"

enum { HANDSHAKES = 3 * MK_HANDSHAKES_PER_ITERATION };

static struct mk_loop loop;
static struct mk_handshake_queue turns;
static struct handshake {
    struct mk_loop_task task;
    bool waits;
} handshakes[HANDSHAKES];
static unsigned served[HANDSHAKES], n_served;

static void work(struct handshake *g)
{
    g->waits = !mk_handshake_queue_try_start(&turns);
    if (g->waits)
        mk_handshake_queue_push(&turns, &g->task);
    else
        served[n_served++] = (unsigned)(g - handshakes);
}

static void on_iteration(struct mk_loop_task *t)
{
    work(MK_CONTAINER(t, struct handshake, task));
}

static void setup(void)
{
    n_served = 0;
    for (unsigned i = 0; i < HANDSHAKES; i++)
        handshakes[i] = (struct handshake){.task = {.run = on_iteration}};
    loop_setup(&loop);
    mk_handshake_queue_init(&turns, &loop);
}

static void handshake_queue_runs_a_few_per_iteration_in_order(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HANDSHAKES; i++)
        work(&handshakes[i]);
    assert_int_equal(n_served, MK_HANDSHAKES_PER_ITERATION);
    for (unsigned turn = 2; n_served < HANDSHAKES; turn++) {
        assert_int_equal(mk_loop_run_once(&loop, 0), 0);
        assert_int_equal(n_served, turn * MK_HANDSHAKES_PER_ITERATION);
    }
    for (unsigned i = 0; i < HANDSHAKES; i++)
        assert_int_equal(served[i], i);
}

static void handshake_queue_later_handshakes_wait(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MK_HANDSHAKES_PER_ITERATION + 2; i++)
        work(&handshakes[i]);
    assert_true(handshakes[MK_HANDSHAKES_PER_ITERATION].waits);
    turns.left = 1; /* one handshake may start now, but others are ahead in the queue */
    work(&handshakes[HANDSHAKES - 1]);
    assert_true(handshakes[HANDSHAKES - 1].waits);
    assert_int_equal(mk_loop_run_once(&loop, 0), 0);
    assert_int_equal(n_served, MK_HANDSHAKES_PER_ITERATION + 3);
    assert_int_equal(served[n_served - 1], HANDSHAKES - 1);
}

static void handshake_queue_quota_is_renewed_each_iteration(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10 * MK_HANDSHAKES_PER_ITERATION; i++) {
        assert_true(mk_handshake_queue_try_start(&turns));
        assert_int_equal(mk_loop_run_once(&loop, 0), 0);
        assert_null(loop.tasks); /* nothing is queued: the loop may sleep */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(handshake_queue_runs_a_few_per_iteration_in_order, setup),
        fixture_test(handshake_queue_later_handshakes_wait, setup),
        fixture_test(handshake_queue_quota_is_renewed_each_iteration, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
