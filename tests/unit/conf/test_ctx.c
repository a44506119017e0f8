/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/conf/sample.h"
#include "unit/test.h"

/* Returns the time in the text, or -1 if it is reported as an error. */
static int64_t time_of(const char *text)
{
    static const struct mk_conf_table table = {.section = "S"};
    struct mk_arena a;
    struct mk_conf_report r;
    uint32_t ms = 7;
    mk_arena_init(&a, NULL);
    mk_conf_report_init(&r, &a);
    const struct mk_conf_ctx ctx = {.arena = &a, .report = &r, .table = &table};
    bool is_good = mk_conf_ctx_time(&ctx, mk_str_from_c(text), &ms);
    assert_int_equal(r.n_errors, !is_good);
    assert_true(is_good || ms == 7);
    mk_arena_fini(&a);
    return is_good ? (int64_t)ms : -1;
}

static void conf_ctx_times_are_parsed_like_keys(void **state)
{
    (void)state;
    assert_int_equal(time_of("30"), 30000);
    assert_int_equal(time_of("30s"), 30000);
    assert_int_equal(time_of("250MS"), 250);
    assert_int_equal(time_of("2h"), 7200000);
    assert_int_equal(time_of("1d"), 86400000);
    assert_int_equal(time_of("4294967295ms"), UINT32_MAX);
    assert_int_equal(time_of("Off"), 0);
}

static void conf_ctx_invalid_or_zero_time_is_reported(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",     "0",  "0ms",          "s",  "1 s", "-1",
                                        "1.5s", "on", "4294967296ms", "50d"};
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        assert_int_equal(time_of(wrong[i]), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_ctx_times_are_parsed_like_keys),
        cmocka_unit_test(conf_ctx_invalid_or_zero_time_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
