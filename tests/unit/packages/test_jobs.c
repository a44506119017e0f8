/* SPDX-License-Identifier: Apache-2.0 */
#include <jobs/job_record.h>
#include <jobs/job_schedule.h>
#include <time.h>

#include "unit/test.h"

/* ---- Records ---- */

static void job_record_round_trips(void **state)
{
    char buffer[1000];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct job_record r;
    (void)state;
    job_record_format(&out,
                      &(struct job_record){.enqueued_ms = 17, .unique = MK_STR("a\nb"), .text = MK_STR("")});
    assert_true(job_record_parse(mk_buf_str(&out), &r));
    assert_int_equal(r.enqueued_ms, 17);
    assert_str(r.unique, "a\nb");
    assert_null(r.error_text.p);
    assert_str(r.text, "");
    r.error_text = MK_STR("no");
    r.text = MK_STR("some\ntext");
    mk_buf_clear(&out);
    job_record_format(&out, &r);
    assert_true(job_record_parse(mk_buf_str(&out), &r));
    assert_str(r.error_text, "no");
    assert_str(r.text, "some\ntext");
}

static void job_record_rejects_malformed(void **state)
{
    static const char *const wrong[] = {"",      "1 0 0",    "x 0 0\n",
                                        "1 0\n", "1 2 0\na", "1 0 18446744073709551615\n"};
    struct job_record r;
    (void)state;
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        assert_false(job_record_parse(mk_str_from_c(wrong[i]), &r));
}

/* ---- Schedules ---- */

static int64_t at(int year, int month, int day, int hour, int minute)
{
    struct tm t = {
        .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour, .tm_min = minute};
    return (int64_t)timegm(&t) * 1000;
}

static int64_t next(const char *text, int64_t now)
{
    struct job_schedule s;
    const char *wrong = job_schedule_parse(&s, mk_str_from_c(text));
    if (wrong)
        fail_msg("%s: %s", text, wrong);
    return job_schedule_next(&s, now);
}

static void job_schedule_intervals(void **state)
{
    (void)state;
    assert_int_equal(next("every 5m", at(2026, 1, 1, 0, 0)), at(2026, 1, 1, 0, 5));
    assert_int_equal(next("every 5m", at(2026, 1, 1, 0, 5) - 1), at(2026, 1, 1, 0, 5));
    assert_int_equal(next("every 10s", 25000), 30000);
    assert_int_equal(next("every 1d", at(2026, 1, 1, 12, 0)), at(2026, 1, 2, 0, 0));
}

static void job_schedule_cron_fields(void **state)
{
    int64_t now = at(2026, 11, 23, 17, 30); /* a Monday */
    (void)state;
    assert_int_equal(next("* * * * *", now + 1), at(2026, 11, 23, 17, 31));
    assert_int_equal(next("30 17 * * *", now), at(2026, 11, 24, 17, 30));
    assert_int_equal(next("*/20 * * * *", now), at(2026, 11, 23, 17, 40));
    assert_int_equal(next("*/60 * * * *", now), at(2026, 11, 23, 18, 0));
    assert_int_equal(next("45/18446744073709551615 * * * *", now), at(2026, 11, 23, 17, 45));
    assert_int_equal(next("5-10/5,50 18,3 * * *", now), at(2026, 11, 23, 18, 5));
    assert_int_equal(next("0 0 * * 0", now), at(2026, 11, 29, 0, 0));
    assert_int_equal(next("0 0 * * 7", now), at(2026, 11, 29, 0, 0));
    assert_int_equal(next("0 0 * * 1-5", at(2026, 11, 27, 0, 0)), at(2026, 11, 30, 0, 0));
    assert_int_equal(next("0 0 1 * *", now), at(2026, 12, 1, 0, 0));
    /* A day matches if its day of the month or its weekday does. */
    assert_int_equal(next("0 0 30 * 2", now), at(2026, 11, 24, 0, 0));
    assert_int_equal(next("0 0 31 4,2 *", now), -1);
    assert_int_equal(next("0 12 29 2 *", now), at(2028, 2, 29, 12, 0));
    assert_int_equal(next("59 23 31 12 *", at(2026, 12, 31, 23, 59)), at(2027, 12, 31, 23, 59));
}

static void job_schedule_rejects_malformed(void **state)
{
    static const char *const wrong[] = {
        "",           "every",        "every 5",   "every 0s",   "every 5w",  "* * * *",     "* * * * * *",
        "60 * * * *", "* 24 * * *",   "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *",
        "a * * * *",  "1,,2 * * * *", "-1 * * * *"};
    struct job_schedule s;
    (void)state;
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        if (!job_schedule_parse(&s, mk_str_from_c(wrong[i])))
            fail_msg("`%s` was taken", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_record_round_trips),         cmocka_unit_test(job_record_rejects_malformed),
        cmocka_unit_test(job_schedule_intervals),         cmocka_unit_test(job_schedule_cron_fields),
        cmocka_unit_test(job_schedule_rejects_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
