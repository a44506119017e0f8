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

struct issue {
    mk_str title, due;
    int64_t owner, limit;
    bool has_owner;
};
static const struct duda_schema_field issue_members[] = {
    DUDA_STRING(struct issue, title, .optional = true),
    DUDA_STRING(struct issue, due, .optional = true, .format = DUDA_FORMAT_DATE, .min_length = 1),
    DUDA_INTEGER(struct issue, owner, DUDA_OPTIONAL(struct issue, has_owner)),
    DUDA_INTEGER(struct issue, limit, .optional = true),
};
static const struct duda_schema issue_schema = DUDA_SCHEMA(struct issue, issue_members);

static void form_data_empty_field_clears_member(void **state)
{
    (void)state;
    struct issue p = {MK_STR("a"), MK_STR("2026-01-01"), 7, 10, true};
    assert_int_equal(parse("title=&due=&owner=&limit="), 0);
    assert_int_equal(duda_form_data_bind(&fields, &issue_schema, &pool, &p, &errors), 0);
    assert_true(p.title.p && p.title.len == 0);
    assert_true(p.due.p == NULL && p.owner == 0 && !p.has_owner && p.limit == 10);
}

static void form_data_absent_field_changes_nothing(void **state)
{
    (void)state;
    struct issue p = {MK_STR("a"), MK_STR("2026-01-01"), 7, 10, true};
    assert_int_equal(parse("limit=11"), 0);
    assert_int_equal(duda_form_data_bind(&fields, &issue_schema, &pool, &p, &errors), 0);
    assert_str(p.title, "a");
    assert_str(p.due, "2026-01-01");
    assert_true(p.owner == 7 && p.has_owner && p.limit == 11);
    assert_int_equal(parse("owner=8"), 0);
    p.has_owner = false;
    assert_int_equal(duda_form_data_bind(&fields, &issue_schema, &pool, &p, &errors), 0);
    assert_true(p.owner == 8 && p.has_owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(form_data_binds_to_struct, NULL, pool_free),
        fixture_test(form_data_reports_validation_errors, NULL, pool_free),
        fixture_test(form_data_empty_field_clears_member, NULL, pool_free),
        fixture_test(form_data_absent_field_changes_nothing, NULL, pool_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
