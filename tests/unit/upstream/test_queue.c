/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges that wait for a connection, and may not use every server. */
#include "unit/upstream/group.h"

static struct told told[4];
static struct mk_link *busy[2]; /* one for each server */

static int start(void **state)
{
    (void)state;
    begin_group(2);
    upstream.max = 1;
    begin_pool();
    for (int i = 0; i < 2; i++) {
        busy[i] = take(&told[i]);
        until_open(busy[i]);
        assert_int_equal(mk_link_server(busy[i]), i);
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    end_group();
    return 0;
}

static struct mk_link *take_without_the_first(struct told *t)
{
    struct mk_link *l = take_with(t, (struct mk_link_wish){.server = -1, .avoid = 1});
    assert_int_equal(mk_link_state(l), -EAGAIN);
    return l;
}

static void give_all(struct mk_link *a, struct mk_link *b, struct mk_link *c)
{
    mk_link_give(a, MK_LINK_CLOSE);
    mk_link_give(b, MK_LINK_CLOSE);
    mk_link_give(c, MK_LINK_CLOSE);
}

static void one_that_cannot_go_on_lets_others_pass(void **state)
{
    (void)state;
    struct mk_link *picky = take_without_the_first(&told[2]), *next = take(&told[3]);
    assert_int_equal(mk_link_state(next), -EAGAIN);
    mk_link_give(busy[0], MK_LINK_CLOSE);
    until_open(next);
    assert_int_equal(mk_link_server(next), 0);
    assert_int_equal(mk_link_state(picky), -EAGAIN);
    mk_link_give(busy[1], MK_LINK_CLOSE);
    until_open(picky);
    assert_int_equal(mk_link_server(picky), 1);
    give_all(picky, next, NULL);
}

static void one_that_comes_later_does_not_wait_behind_it(void **state)
{
    (void)state;
    struct mk_link *picky = take_without_the_first(&told[2]);
    mk_link_give(busy[0], MK_LINK_CLOSE);
    struct mk_link *next = take(&told[3]);
    until_open(next);
    assert_int_equal(mk_link_server(next), 0);
    give_all(picky, next, busy[1]);
}

static void one_that_can_is_served_before_those_behind_it(void **state)
{
    (void)state;
    struct mk_link *picky = take_without_the_first(&told[2]), *next = take(&told[3]);
    mk_link_give(busy[1], MK_LINK_CLOSE);
    until_open(picky);
    assert_int_equal(mk_link_server(picky), 1);
    assert_int_equal(mk_link_state(next), -EAGAIN);
    give_all(picky, next, busy[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_cannot_go_on_lets_others_pass, start, stop),
        cmocka_unit_test_setup_teardown(one_that_comes_later_does_not_wait_behind_it, start, stop),
        cmocka_unit_test_setup_teardown(one_that_can_is_served_before_those_behind_it, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
