/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/table.h"

#include "unit/conf/fixture.h"
#include "unit/conf/sample.h"

static void conf_table_keys_are_case_insensitive(void **state)
{
    (void)state;
    assert_ptr_equal(mk_conf_table_find(&sample_table, MK_STR("workers"), false), &sample_keys[1]);
    assert_null(mk_conf_table_find(&sample_table, MK_STR("worker"), false));
    const struct mk_conf_key *alias = mk_conf_table_find(&sample_table, MK_STR("HOST"), false);
    assert_string_equal(alias->name, "Host");
    assert_string_equal(mk_conf_table_find(&sample_table, MK_STR("HOST"), true)->name, "ServerName");
}

static void conf_table_entry_with_an_alias_is_found(void **state)
{
    (void)state;
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    assert_int_equal(conf_fixture_read_text(&w, "[SERVER]\n host a\n ServerName b\n Other c\n"), 0);
    const struct mk_conf_section *s = w.tree.first;
    assert_str(mk_conf_table_entry(&sample_table, s, MK_STR("ServerName"))->value, "a");
    assert_str(mk_conf_table_entry(&sample_table, s, MK_STR("Host"))->value, "a");
    assert_str(mk_conf_table_entry(&sample_table, s, MK_STR("oTHER"))->value, "c"); /* not in the table */
    assert_null(mk_conf_table_entry(&sample_table, s, MK_STR("Workers")));
    assert_null(mk_conf_table_entry(&sample_table, NULL, MK_STR("ServerName")));
    struct mk_conf_section bound = *s;
    assert_null(mk_conf_table_find_entry(&bound, MK_STR("ServerName"))); /* no table yet */
    bound.table = &sample_table;
    assert_str(mk_conf_table_find_entry(&bound, MK_STR("ServerName"))->value, "a");
    assert_null(mk_conf_table_find_entry(&bound, MK_STR("Workers")));
    assert_null(mk_conf_table_find_entry(NULL, MK_STR("ServerName")));
    conf_fixture_fini(&w);
}

static void conf_table_max_is_limited_by_the_field(void **state)
{
    (void)state;
    struct mk_conf_key k = {.type = MK_CONF_NUM, .size = 1};
    assert_true(mk_conf_table_max(&k) == 255);
    k.size = 2;
    assert_true(mk_conf_table_max(&k) == 65535);
    k.max = 70000;
    assert_true(mk_conf_table_max(&k) == 65535);
    k.max = 70;
    assert_true(mk_conf_table_max(&k) == 70);
    k = (struct mk_conf_key){.type = MK_CONF_TIME, .size = 4};
    assert_true(mk_conf_table_max(&k) == UINT32_MAX);
    k.size = 8;
    assert_true(mk_conf_table_max(&k) == UINT64_MAX);
    k = (struct mk_conf_key){.type = MK_CONF_TEXT, .size = 4};
    assert_true(mk_conf_table_max(&k) == UINT64_MAX);
}

static void form_is(struct mk_conf_key k, const char *expected)
{
    char buffer[256];
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_conf_table_describe(&k, &b);
    assert_str(mk_buf_str(&b), expected);
}

static void conf_table_form_is_described(void **state)
{
    (void)state;
    form_is((struct mk_conf_key){.type = MK_CONF_BOOL}, "on or off");
    form_is((struct mk_conf_key){.type = MK_CONF_NUM, .size = 8}, "a number");
    form_is((struct mk_conf_key){.type = MK_CONF_NUM, .size = 4, .min = 1}, "a number of at least 1");
    form_is((struct mk_conf_key){.type = MK_CONF_NUM, .size = 2, .min = 1}, "a number from 1 to 65535");
    form_is((struct mk_conf_key){.type = MK_CONF_SIZE, .size = 8, .max = 1 << 20},
            "a size (B, K, M, G) up to 1M");
    form_is((struct mk_conf_key){.type = MK_CONF_TIME, .size = 8, .zero_word = "never"},
            "a time (ms, s, m, h, d), or never");
    form_is((struct mk_conf_key){.type = MK_CONF_TEXT, .min = 2, .max = 4}, "text from 2 to 4 bytes");
    form_is((struct mk_conf_key){.type = MK_CONF_TEXT}, "text");
    form_is((struct mk_conf_key){.type = MK_CONF_WORDS, .max = 4}, "up to 4 words");
    form_is((struct mk_conf_key){.type = MK_CONF_ENUM, .choices = sample_modes},
            "one of Drop, Resist, TooBusy");
    form_is((struct mk_conf_key){.type = MK_CONF_CUSTOM}, "a value");
    form_is((struct mk_conf_key){.type = MK_CONF_CUSTOM, .syntax = "a port"}, "a port");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_table_keys_are_case_insensitive),
        cmocka_unit_test(conf_table_entry_with_an_alias_is_found),
        cmocka_unit_test(conf_table_max_is_limited_by_the_field),
        cmocka_unit_test(conf_table_form_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
