/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/handshake_queue.h"

#include "unit/fixtures.h"
#include "unit/test.h"

enum { GUESTS = 3 * MK_HANDSHAKES_PER_ITERATION };

static struct mk_loop loop;
static struct mk_handshake_queue turns;
static struct guest {
    struct mk_loop_task task;
    bool waits;
} guests[GUESTS];
static unsigned served[GUESTS], n_served;

static void work(struct guest *g)
{
    g->waits = !mk_handshake_queue_try_start(&turns);
    if (g->waits)
        mk_handshake_queue_push(&turns, &g->task);
    else
        served[n_served++] = (unsigned)(g - guests);
}

static void on_turn(struct mk_loop_task *t)
{
    work(MK_CONTAINER(t, struct guest, task));
}

static void setup(void)
{
    n_served = 0;
    for (unsigned i = 0; i < GUESTS; i++)
        guests[i] = (struct guest){.task = {.run = on_turn}};
    loop_setup(&loop);
    mk_handshake_queue_init(&turns, &loop);
}

static void handshake_queue_runs_a_few_per_iteration_in_order(void **state)
{
    (void)state;
    for (unsigned i = 0; i < GUESTS; i++)
        work(&guests[i]);
    assert_int_equal(n_served, MK_HANDSHAKES_PER_ITERATION);
    for (unsigned turn = 2; n_served < GUESTS; turn++) {
        assert_int_equal(mk_loop_run_once(&loop, 0), 0);
        assert_int_equal(n_served, turn * MK_HANDSHAKES_PER_ITERATION);
    }
    for (unsigned i = 0; i < GUESTS; i++)
        assert_int_equal(served[i], i);
}

static void handshake_queue_later_handshakes_wait(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MK_HANDSHAKES_PER_ITERATION + 2; i++)
        work(&guests[i]);
    assert_true(guests[MK_HANDSHAKES_PER_ITERATION].waits);
    turns.left = 1; /* frees a slot, but the others are ahead in the queue */
    work(&guests[GUESTS - 1]);
    assert_true(guests[GUESTS - 1].waits);
    assert_int_equal(mk_loop_run_once(&loop, 0), 0);
    assert_int_equal(n_served, MK_HANDSHAKES_PER_ITERATION + 3);
    assert_int_equal(served[n_served - 1], GUESTS - 1);
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
