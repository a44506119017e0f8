/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/driver.h"

#include "unit/death.h"
#include "unit/machine.h"

static void exchange_has_two_directions(void **state)
{
    (void)state;
    machine_expect(&mk_driver_machine, "open: remote closed, local closed, closed\n"
                                       "remote closed: open, remote closed, closed\n"
                                       "local closed: local closed, closed\n"
                                       "closed: closed\n");
}

static void request_content_is_never_wanted_again(void **state)
{
    (void)state;
    machine_expect(&mk_driver_input_machine, "wanted: held, unwanted\n"
                                             "held: wanted, unwanted\n"
                                             "unwanted\n");
}

static void response_is_replaced_until_its_source_has_ended(void **state)
{
    (void)state;
    machine_expect(&mk_driver_reply_machine, "pending: pending, buffered, content, recorded\n"
                                             "buffered: pending, content, recorded\n"
                                             "content: pending, spent, recorded\n"
                                             "spent: recorded\n"
                                             "recorded\n");
}

static void exchange_closes_each_direction_once_in_any_order(void **state)
{
    (void)state;
    struct mk_driver d = {0};
    mk_driver_move_reply(&d, MK_REPLY_CONTENT);
    assert_false(mk_driver_is_received(&d) || mk_driver_is_written(&d));
    mk_driver_close_remote(&d);
    mk_driver_close_remote(&d);
    assert_true(mk_driver_is_received(&d) && !mk_driver_is_written(&d));
    assert_int_equal(d.state.is, MK_DRIVER_HALF_CLOSED_REMOTE);
    mk_driver_close_local(&d);
    mk_driver_close_local(&d);
    assert_int_equal(d.state.is, MK_DRIVER_CLOSED);
    mk_driver_close_remote(&d);
    assert_int_equal(d.state.is, MK_DRIVER_CLOSED);

    struct mk_driver other = {0};
    mk_driver_move_reply(&other, MK_REPLY_CONTENT);
    mk_driver_close_local(&other);
    assert_true(mk_driver_is_written(&other) && !mk_driver_is_received(&other));
    mk_driver_close_remote(&other);
    assert_int_equal(other.state.is, MK_DRIVER_CLOSED);
}

static void close_local(void *ctx)
{
    mk_driver_close_local(ctx);
}

static void exchange_without_a_response_is_not_written(void **state)
{
    (void)state;
    struct mk_driver d = {0};
    assert_bug(close_local, &d, "exchange, local closed: its response is begun");
}

static void replace(void *ctx)
{
    mk_driver_move_reply(ctx, MK_REPLY_PENDING);
}

static void response_whose_content_counts_is_not_replaced(void **state)
{
    (void)state;
    struct mk_driver d = {.sent = 1};
    mk_sm_init(&d.reply, &mk_driver_reply_machine, MK_REPLY_BUFFERED);
    assert_bug(replace, &d, "response, pending: no content is sent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchange_has_two_directions),
        cmocka_unit_test(request_content_is_never_wanted_again),
        cmocka_unit_test(response_is_replaced_until_its_source_has_ended),
        cmocka_unit_test(exchange_closes_each_direction_once_in_any_order),
        cmocka_unit_test(exchange_without_a_response_is_not_written),
        cmocka_unit_test(response_whose_content_counts_is_not_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
