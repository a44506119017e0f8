/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/field.h"

#include "unit/conf/sample.h"
#include "unit/test.h"

struct numbers {
    uint8_t before;
    uint8_t n8;
    uint8_t after8;
    uint16_t n16;
    uint16_t after16;
    uint32_t n32;
    uint32_t after32;
    uint64_t n64;
    uint64_t after64;
};

static const struct mk_conf_key keys[] = {
    {.name = "n8", .type = MK_CONF_NUM, MK_CONF_AT(struct numbers, n8)},
    {.name = "n16", .type = MK_CONF_NUM, MK_CONF_AT(struct numbers, n16)},
    {.name = "n32", .type = MK_CONF_NUM, MK_CONF_AT(struct numbers, n32)},
    {.name = "n64", .type = MK_CONF_NUM, MK_CONF_AT(struct numbers, n64)},
};
static const struct mk_conf_table table = {.section = "N", .keys = keys, .n = MK_LEN(keys)};

static void set(struct numbers *n, const char *text, size_t n_errors)
{
    struct mk_arena a;
    struct mk_conf_report r;
    mk_arena_init(&a, NULL);
    mk_conf_report_init(&r, &a);
    for (size_t i = 0; i < MK_LEN(keys); i++) {
        const struct mk_conf_ctx ctx = {
            .arena = &a, .report = &r, .table = &table, .key = &keys[i], .out = n};
        mk_conf_field_set(&ctx, mk_str_from_c(text));
    }
    assert_int_equal(r.n_errors, n_errors);
    mk_arena_fini(&a);
}

static void conf_field_numbers_are_stored_in_their_size(void **state)
{
    (void)state;
    struct numbers n = {0};
    set(&n, "255", 0);
    assert_int_equal(n.n8, 255);
    assert_int_equal(n.n16, 255);
    assert_int_equal(n.n32, 255);
    assert_int_equal(n.n64, 255);
    set(&n, "256", 1);
    set(&n, "65536", 2);
    set(&n, "4294967296", 3);
    set(&n, "18446744073709551615", 3);
    set(&n, "18446744073709551616", 4);
    assert_int_equal(n.n8, 255);
    assert_int_equal(n.n16, 256);
    assert_int_equal(n.n32, 65536);
    assert_true(n.n64 == UINT64_MAX);
    assert_int_equal(n.before | n.after8 | n.after16 | n.after32, 0);
    assert_true(n.after64 == 0);
    assert_int_equal(mk_conf_field_load(&keys[0], &n), 255);
    assert_int_equal(mk_conf_field_load(&keys[1], &n), 256);
    assert_int_equal(mk_conf_field_load(&keys[2], &n), 65536);
    assert_true(mk_conf_field_load(&keys[3], &n) == UINT64_MAX);
}

static void conf_field_size_must_fit_its_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(sample_keys); i++)
        if (!sample_keys[i].alias_of && !(sample_keys[i].flags & MK_CONF_IGNORED))
            assert_true(mk_conf_field_has_valid_size(&sample_keys[i]));
    assert_false(mk_conf_field_has_valid_size(&(struct mk_conf_key){.type = MK_CONF_NUM, .size = 3}));
    assert_false(mk_conf_field_has_valid_size(&(struct mk_conf_key){.type = MK_CONF_BOOL, .size = 4}));
    assert_false(mk_conf_field_has_valid_size(
        &(struct mk_conf_key){.type = MK_CONF_TEXT, .size = sizeof(mk_str) - 1}));
    assert_false(mk_conf_field_has_valid_size(&(struct mk_conf_key){.type = MK_CONF_CUSTOM, .size = 8}));
    assert_false(mk_conf_field_has_valid_size(
        &(struct mk_conf_key){.type = (enum mk_conf_type)(MK_CONF_CUSTOM + 1), .size = sizeof(mk_str) - 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_field_numbers_are_stored_in_their_size),
        cmocka_unit_test(conf_field_size_must_fit_its_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
