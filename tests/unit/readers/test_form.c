/* SPDX-License-Identifier: Apache-2.0 */
/* Forms as browsers send them: decoded and limited. */
#include <errno.h>
#include <monkey/form.h>

#include "unit/readers/test_allocator.h"
#include "unit/test.h"

static struct mk_form form;

static int parse(const char *text)
{
    return mk_form_parse(mk_str_from_c(text), &pool, NULL, &form);
}

static void form_is_decoded(void **state)
{
    (void)state;
    assert_int_equal(parse("a=1&&b=x+y%21%2b&c&=d&a=%c3%a4&%61%00=2="), 0);
    assert_int_equal(form.n, 6);
    assert_str(mk_form_get(&form, "a"), "1");
    assert_str(mk_form_get_at(&form, "a", 1), "\xc3\xa4");
    assert_null(mk_form_get_at(&form, "a", 2).p);
    assert_str(mk_form_get(&form, "b"), "x y!+");
    assert_int_equal(mk_form_get(&form, "b").p[5], '\0');
    assert_str(mk_form_get(&form, "c"), "");
    assert_str(mk_form_get(&form, ""), "d");
    assert_int_equal(form.fields[5].name.len, 2);
    assert_str(form.fields[5].value, "2=");
    assert_int_equal(parse(""), 0);
    assert_int_equal(form.n, 0);
}

static void form_rejects_malformed_and_oversized(void **state)
{
    (void)state;
    static const char *const broken[] = {"a=%", "a=%4", "a=%4g", "%=1", "a=1&b=%%20"};
    for (size_t i = 0; i < MK_LEN(broken); i++)
        assert_int_equal(parse(broken[i]), -EBADMSG);
    static const struct mk_form_limits limits = {.size = 20, .fields = 2, .name = 3, .value = 4};
    static const struct {
        const char *text;
        int result;
    } cases[] = {{"abc=1234&d=", 0},     {"a&b&c", -EMSGSIZE},    {"abcd=1", -EMSGSIZE},
                 {"a=12345", -EMSGSIZE}, {"%61%61%61=%31%31", 0}, {"%61%61%61=%31%31%31%31", -EMSGSIZE}};
    for (size_t i = 0; i < MK_LEN(cases); i++)
        assert_int_equal(mk_form_parse(mk_str_from_c(cases[i].text), &pool, &limits, &form), cases[i].result);
    for (size_t n = 0; n < 2; n++) {
        pool_left = n;
        assert_int_equal(parse("a=1"), -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(form_is_decoded, NULL, pool_free),
        fixture_test(form_rejects_malformed_and_oversized, NULL, pool_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
