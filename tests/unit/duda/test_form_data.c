/* SPDX-License-Identifier: Apache-2.0 */
/* Form fields are bound to structs. */
#include <duda/form.h>
#include <errno.h>

#include "unit/duda/person.h"
#include "unit/readers/test_allocator.h"
#include "unit/test.h"

static struct mk_form fields;
static struct duda_validation_errors errors;

static int parse(const char *text)
{
    return mk_form_parse(mk_str_from_c(text), &pool, NULL, &fields);
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
        fixture_test(form_data_binds_to_struct, NULL, pool_free),
        fixture_test(form_data_reports_validation_errors, NULL, pool_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
