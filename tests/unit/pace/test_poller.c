/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/poller.h"

#include <unistd.h>

#include "os/fd.h"
#include "pace/now.h"

#include "unit/test.h"

static void wait_in_any_way(bool spins, bool timer)
{
    struct pace_poller w;
    int ends[2], owner = 0;
    assert_int_equal(pace_poller_init(&w, spins, timer), 0);
    uint64_t now = pace_now(), until = now + PACE_SECOND / 200;
    while (pace_now() < until) /* a poller that spins returns immediately */
        assert_int_equal(pace_poller_wait(&w, pace_now(), until), 0);
    assert_int_equal(pace_poller_wait(&w, until, until), 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pace_poller_add(&w, ends[0], &owner), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(pace_poller_wait(&w, pace_now(), PACE_NEVER), 1);
    assert_ptr_equal(w.events[0].data.ptr, &owner);
    mk_fd_close(&ends[0]);
    mk_fd_close(&ends[1]);
    pace_poller_fini(&w);
}

static void poller_sleeps_until_the_time_or_an_event(void **state)
{
    (void)state;
    wait_in_any_way(false, false);
}

static void poller_on_older_kernel_uses_a_timer(void **state)
{
    (void)state;
    wait_in_any_way(false, true);
}

static void poller_can_spin(void **state)
{
    (void)state;
    wait_in_any_way(true, false);
}

static void poller_does_not_return_early(void **state)
{
    struct pace_poller w;
    (void)state;
    for (int timer = 0; timer < 2; timer++) {
        assert_int_equal(pace_poller_init(&w, false, timer), 0);
        uint64_t until = pace_now() + PACE_SECOND / 50;
        assert_int_equal(pace_poller_wait(&w, pace_now(), until), 0);
        assert_true(pace_now() >= until);
        pace_poller_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poller_sleeps_until_the_time_or_an_event),
        cmocka_unit_test(poller_on_older_kernel_uses_a_timer),
        cmocka_unit_test(poller_can_spin),
        cmocka_unit_test(poller_does_not_return_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
