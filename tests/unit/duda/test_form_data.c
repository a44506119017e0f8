/* SPDX-License-Identifier: Apache-2.0 */
/* Forms as browsers send them: decoded, limited, and bound to structs. */
#include <duda/form.h>
#include <errno.h>

#include "unit/duda/person.h"
#include "unit/duda/test_allocator.h"
#include "unit/test.h"

static struct duda_form_data fields;
static struct duda_validation_errors errors;

static int parse(const char *text)
{
    return duda_form_data_parse(mk_str_from_c(text), &pool, NULL, &fields);
}

static void form_data_is_decoded(void **state)
{
    (void)state;
    assert_int_equal(parse("a=1&&b=x+y%21%2b&c&=d&a=%c3%a4&%61%00=2="), 0);
    assert_int_equal(fields.n, 6);
    assert_str(duda_form_data_get(&fields, "a"), "1");
    assert_str(duda_form_data_get_at(&fields, "a", 1), "\xc3\xa4");
    assert_null(duda_form_data_get_at(&fields, "a", 2).p);
    assert_str(duda_form_data_get(&fields, "b"), "x y!+");
    assert_int_equal(duda_form_data_get(&fields, "b").p[5], '\0');
    assert_str(duda_form_data_get(&fields, "c"), "");
    assert_str(duda_form_data_get(&fields, ""), "d");
    assert_int_equal(fields.pairs[5].name.len, 2);
    assert_str(fields.pairs[5].value, "2=");
    assert_int_equal(parse(""), 0);
    assert_int_equal(fields.n, 0);
}

static void form_data_rejects_malformed_and_oversized(void **state)
{
    (void)state;
    static const char *const broken[] = {"a=%", "a=%4", "a=%4g", "%=1", "a=1&b=%%20"};
    for (size_t i = 0; i < MK_LEN(broken); i++)
        assert_int_equal(parse(broken[i]), -EBADMSG);
    static const struct duda_form_limits limits = {.size = 20, .fields = 2, .name = 3, .value = 4};
    static const struct {
        const char *text;
        int result;
    } cases[] = {{"abc=1234&d=", 0},     {"a&b&c", -EMSGSIZE},    {"abcd=1", -EMSGSIZE},
                 {"a=12345", -EMSGSIZE}, {"%61%61%61=%31%31", 0}, {"%61%61%61=%31%31%31%31", -EMSGSIZE}};
    for (size_t i = 0; i < MK_LEN(cases); i++)
        assert_int_equal(duda_form_data_parse(mk_str_from_c(cases[i].text), &pool, &limits, &fields),
                         cases[i].result);
    for (size_t n = 0; n < 2; n++) {
        pool_left = n;
        assert_int_equal(parse("a=1"), -ENOMEM);
    }
}

static void form_data_binds_to_struct(void **state)
{
    (void)state;
    struct person p = {.mood = 5, .admin = true};
    assert_int_equal(
        parse("name=Ana&age=+7+&mood=&color=green&tags=x&tags=y&place.street=s&place.rent=2.5&go=Send"
              "&numbers=-2&big-one=9"),
        0);
    assert_int_equal(duda_form_data_bind(&fields, &person_shape, &pool, &p, &errors), 0);
    assert_str(p.name, "Ana");
    assert_true(p.age == 7 && p.mood == 5 && p.color == 1 && p.n_tags == 2 && p.place.rent == 2.5 &&
                !p.admin);
    assert_true(p.n_numbers == 1 && p.numbers[0] == -2 && p.big == 9);
    assert_str(p.tags[1], "y");
    assert_int_equal(parse("name=a&age=1&place.street=&admin=ON"), 0);
    assert_int_equal(duda_form_data_bind(&fields, &person_shape, &pool, &p, &errors), 0);
    assert_true(p.admin);
}

static void form_data_reports_validation_errors(void **state)
{
    (void)state;
    struct person p = {.age = 1};
    assert_int_equal(parse("name=&age=1e1&admin=maybe&mood=-129&tags=a&tags=%ff&raw=1&numbers=x&place.rent=0&"
                           "place.street=a"),
                     0);
    assert_int_equal(duda_form_data_bind(&fields, &person_shape, &pool, &p, &errors), -EINVAL);
    static const char *const expected[] = {"`name` is missing: it must be a string of 1 to 10 characters",
                                           "`age` must be an integer from 0 to 150",
                                           "`admin` must be true or false",
                                           "`mood` must be an integer from -128 to 127",
                                           "`place.rent` must be a number from 0.5 to 99",
                                           "`tags` must be a string",
                                           "`numbers` must be an integer from -2 to 9",
                                           "`raw` must be a value"};
    assert_int_equal(errors.n, MK_LEN(expected));
    for (size_t i = 0; i < MK_LEN(expected); i++)
        assert_str(errors.items[i].message, expected[i]);
    assert_str(errors.items[5].pointer, "/tags/1");
    assert_str(errors.items[4].pointer, "/place/rent");
    assert_int_equal(errors.items[4].line, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(form_data_is_decoded, NULL, pool_free),
        fixture_test(form_data_rejects_malformed_and_oversized, NULL, pool_free),
        fixture_test(form_data_binds_to_struct, NULL, pool_free),
        fixture_test(form_data_reports_validation_errors, NULL, pool_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
