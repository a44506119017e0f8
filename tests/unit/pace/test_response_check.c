/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/response_check.h"

#include "unit/test.h"

static struct mk_response_parser answer_of(unsigned status, const char *body)
{
    return (struct mk_response_parser){.head.status = status, .length = strlen(body)};
}

static enum pace_verdict record(struct pace_response_check *r, const char *body, char *why)
{
    struct mk_response_parser a = answer_of(200, body);
    struct pace_comparison c = {0};
    if (!pace_response_check_body(r, &c, &a, mk_str_from_c(body), why))
        return PACE_RESPONSE_WRONG_BODY;
    return pace_response_check_end_recording(r, &a, why);
}

static enum pace_verdict check_response(struct pace_response_check *r, unsigned status, const char *body,
                                        char *why)
{
    struct mk_response_parser a = answer_of(status, "");
    struct pace_comparison c = {0};
    for (size_t i = 0; body[i]; i++) { /* passes single bytes */
        a.length++;
        if (!pace_response_check_body(r, &c, &a, mk_str_of(body + i, 1), why))
            return PACE_RESPONSE_WRONG_BODY;
    }
    return pace_response_check_verify(r, &c, &a, why);
}

static void response_check_compares_with_the_first(void **state)
{
    char why[PACE_RESPONSE_CHECK_ERROR_MAX];
    struct pace_response_check r = {.expected.status = 200};
    (void)state;
    assert_int_equal(record(&r, "hello", why), PACE_RESPONSE_OK);
    assert_int_equal(check_response(&r, 200, "hello", why), PACE_RESPONSE_OK);
    assert_int_equal(check_response(&r, 200, "hellO", why), PACE_RESPONSE_WRONG_BODY);
    assert_contains(mk_str_from_c(why), "at byte 4");
    assert_int_equal(check_response(&r, 200, "hell", why), PACE_RESPONSE_WRONG_BODY);
    assert_contains(mk_str_from_c(why), "4 bytes of content, not 5");
    assert_int_equal(check_response(&r, 200, "hello!", why), PACE_RESPONSE_WRONG_BODY);
    assert_string_equal(why, "more than 5 bytes of content");
    assert_int_equal(check_response(&r, 200, "", why), PACE_RESPONSE_WRONG_BODY);
    assert_int_equal(check_response(&r, 503, "hello", why), PACE_RESPONSE_WRONG_STATUS);
    assert_contains(mk_str_from_c(why), "status 503, not 200");
    pace_response_check_fini(&r);
}

static void response_check_first_must_meet_expectations(void **state)
{
    char why[PACE_RESPONSE_CHECK_ERROR_MAX];
    struct pace_response_check length = {
        .expected.status = 200, .expected.has_length = true, .expected.length = 4};
    struct pace_response_check sum = {.expected.status = 200, .expected.has_sha1 = true},
                               status = {.expected.status = 404};
    (void)state;
    assert_int_equal(record(&length, "hello", why), PACE_RESPONSE_WRONG_BODY);
    assert_int_equal(record(&status, "hello", why), PACE_RESPONSE_WRONG_STATUS);
    assert_int_equal(record(&sum, "hello", why), PACE_RESPONSE_WRONG_BODY);
    assert_contains(mk_str_from_c(why), "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d, not 0000");
    struct pace_response_check right = {.expected.status = 200, .expected.has_sha1 = true};
    memcpy(right.expected.sha1, sum.body_sha1, MK_SHA1_LEN);
    assert_int_equal(record(&right, "hello", why), PACE_RESPONSE_OK);
    pace_response_check_fini(&length);
    pace_response_check_fini(&status);
    pace_response_check_fini(&sum);
    pace_response_check_fini(&right);
}

static void response_check_varying_body_checks_status_and_length(void **state)
{
    char why[PACE_RESPONSE_CHECK_ERROR_MAX];
    struct pace_response_check any = {.expected.status = 200, .varies = true};
    struct pace_response_check five = {
        .expected.status = 200, .varies = true, .expected.has_length = true, .expected.length = 5};
    (void)state;
    assert_int_equal(record(&any, "hello", why), PACE_RESPONSE_OK);
    assert_int_equal(check_response(&any, 200, "other", why), PACE_RESPONSE_OK);
    assert_int_equal(check_response(&any, 200, "longer", why), PACE_RESPONSE_OK);
    assert_int_equal(check_response(&any, 500, "hello", why), PACE_RESPONSE_WRONG_STATUS);
    assert_int_equal(any.body.len, 0);
    assert_int_equal(record(&five, "hello", why), PACE_RESPONSE_OK);
    assert_int_equal(check_response(&five, 200, "other", why), PACE_RESPONSE_OK);
    assert_int_equal(check_response(&five, 200, "longer", why), PACE_RESPONSE_WRONG_BODY);
}

/* Bytes beyond the expected length are not stored. */
static void response_check_too_long_body_is_not_stored(void **state)
{
    char why[PACE_RESPONSE_CHECK_ERROR_MAX];
    struct pace_response_check r = {.expected = {.status = 200, .has_length = true, .length = 5}};
    struct mk_response_parser a = answer_of(200, "hello!"), busy = answer_of(503, "please wait");
    struct pace_comparison c = {0};
    (void)state;
    assert_false(pace_response_check_body(&r, &c, &a, MK_STR("hello!"), why));
    assert_string_equal(why, "more than 5 bytes of content");
    assert_int_equal(r.body.len, 0);
    assert_true(pace_response_check_body(&r, &c, &busy, MK_STR("please wait"), why));
    assert_int_equal(r.body.len, 0);
    assert_int_equal(pace_response_check_end_recording(&r, &busy, why), PACE_RESPONSE_WRONG_STATUS);
    pace_response_check_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(response_check_compares_with_the_first),
        cmocka_unit_test(response_check_first_must_meet_expectations),
        cmocka_unit_test(response_check_varying_body_checks_status_and_length),
        cmocka_unit_test(response_check_too_long_body_is_not_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
