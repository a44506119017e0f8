/* SPDX-License-Identifier: Apache-2.0 */
#include "service/topic_id.h"

#include "unit/test.h"

static void topic_id_is_read_as_it_was_written(void **state)
{
    static const struct duda_topic_id ids[] = {{1, 0}, {1700000000000, 17}, {UINT64_MAX, UINT64_MAX}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(ids); i++) {
        char text[DUDA_TOPIC_ID_TEXT_SIZE];
        struct duda_topic_id id;
        assert_true(duda_topic_id_parse(duda_topic_id_format(&ids[i], text), &id));
        assert_true(duda_topic_id_eq(&id, &ids[i]));
    }
}

static void topic_id_zero_is_none(void **state)
{
    struct duda_topic_id id = {1, 1};
    (void)state;
    assert_true(duda_topic_id_parse(MK_STR("0"), &id));
    assert_true(duda_topic_id_is_none(&id));
}

static void topic_id_invalid_text_is_rejected(void **state)
{
    static const char *const texts[] = {"",  "-",   "1-",   "-1",   "1",
                                        "x", "1-x", "+1-1", "1--1", "18446744073709551616-1"};
    struct duda_topic_id id;
    (void)state;
    for (size_t i = 0; i < MK_LEN(texts); i++)
        assert_false(duda_topic_id_parse(mk_str_from_c(texts[i]), &id));
}

static void topic_id_order_is_that_of_epoch_and_number(void **state)
{
    static const struct duda_topic_id a = {1, 9}, b = {2, 1}, c = {2, 2};
    (void)state;
    assert_true(duda_topic_id_less(&a, &b) && duda_topic_id_less(&b, &c));
    assert_false(duda_topic_id_less(&b, &a) || duda_topic_id_less(&c, &c));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(topic_id_is_read_as_it_was_written),
        cmocka_unit_test(topic_id_zero_is_none),
        cmocka_unit_test(topic_id_invalid_text_is_rejected),
        cmocka_unit_test(topic_id_order_is_that_of_epoch_and_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
