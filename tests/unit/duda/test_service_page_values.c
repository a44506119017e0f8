/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a form in templates. */
#include "service/page_values.h"

#include <errno.h>
#include <stdio.h>

#include "unit/test.h"

int duda_session_user(struct duda_ctx *d, mk_str *user)
{
    (void)d;
    *user = MK_STR_NULL;
    return -ENOENT;
}

int duda_flash_take(struct duda_ctx *d, const struct duda_flash_message **messages, size_t *n)
{
    (void)d;
    *messages = NULL;
    *n = 0;
    return 0;
}

mk_str duda_csrf_token(struct duda_ctx *d)
{
    (void)d;
    return MK_STR_NULL;
}

/* Memory for lists, which this test does not create. */
struct mk_allocator duda_allocator_of(struct duda_ctx *d)
{
    (void)d;
    return (struct mk_allocator){0};
}

/* Returns the value of `@errors.FIELD` in the page of a form with two errors in one field; "": null. */
static const char *error_of(const char *field, const char *pointer)
{
    static char text[32];
    struct duda_validation_errors errors = {.n = 2};
    errors.items[0] =
        (struct duda_validation_error){.pointer = mk_str_from_c(pointer), .message = MK_STR("one")};
    errors.items[1] =
        (struct duda_validation_error){.pointer = mk_str_from_c(pointer), .message = MK_STR("two")};
    struct duda_extras extras = {.form_errors = &errors};
    struct duda_ctx d = {.extras = &extras};
    struct duda_page_values values = {.d = &d};
    struct duda_value value;
    char name[64];
    snprintf(name, sizeof name, "errors.%s", field);
    assert_int_equal(duda_page_values_find(&values, mk_str_from_c(name), &value), 0);
    snprintf(text, sizeof text, "%.*s",
             MK_STR_ARG(value.kind == DUDA_VALUE_NULL ? MK_STR("") : value.of.text));
    return text;
}

static void page_values_error_belongs_to_its_field(void **state)
{
    (void)state;
    assert_string_equal(error_of("name", "/name"), "one");
    assert_string_equal(error_of("shop.street", "/shop/street"), "one");
    assert_string_equal(error_of("shop", "/shop/street"), "");
    assert_string_equal(error_of("nam", "/name"), "");
    assert_string_equal(error_of("names", "/name"), "");
    assert_string_equal(error_of("name", ""), "");
}

static void page_values_error_of_an_element_belongs_to_the_list(void **state)
{
    (void)state;
    assert_string_equal(error_of("tags", "/tags/0"), "one");
    assert_string_equal(error_of("tags", "/tags/12"), "one");
    assert_string_equal(error_of("shop.tags", "/shop/tags/3"), "one");
    assert_string_equal(error_of("rooms", "/rooms/1/name"), "one");
    assert_string_equal(error_of("rooms.1.name", "/rooms/1/name"), "one");
    assert_string_equal(error_of("tags.1", "/tags/0"), "");
    assert_string_equal(error_of("shop", "/shop/2nd"), "");
    assert_string_equal(error_of("tag", "/tags/0"), "");
    assert_string_equal(error_of("tags", "/tags/"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_values_error_belongs_to_its_field),
        cmocka_unit_test(page_values_error_of_an_element_belongs_to_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
