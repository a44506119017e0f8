/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/tree.h"

#include "unit/conf/fixture.h"

static void conf_tree_sections_are_case_insensitive(void **state)
{
    (void)state;
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    assert_int_equal(conf_fixture_read_text(&w, "[Host]\n k 1\n[LOG]\n[HOST]\n K 2\n k 3\n"), 0);
    assert_int_equal(w.tree.n, 3);
    const struct mk_conf_section *s = mk_conf_tree_find(&w.tree, MK_STR("host"));
    assert_ptr_equal(s, w.tree.first);
    s = w.tree.last;
    assert_int_equal(s->n, 2);
    assert_null(mk_conf_tree_find(&w.tree, MK_STR("NONE")));
    conf_fixture_fini(&w);
}

static void conf_tree_part_of_a_value_has_its_position(void **state)
{
    (void)state;
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    assert_int_equal(conf_fixture_read_text(&w, "[A]\n    k  one two\n    l ${X:-one} two\n    m\n"), 0);
    const struct mk_conf_entry *e = w.tree.first->first;
    assert_int_equal(mk_conf_tree_value_pos(e, mk_str_skip(e->value, 4)).column, 12);
    assert_int_equal(mk_conf_tree_value_pos(e, e->key).column, 5);
    assert_int_equal(mk_conf_tree_value_pos(e, MK_STR_NULL).column, 8);
    assert_int_equal(mk_conf_tree_value_pos(e, MK_STR("elsewhere")).column, 8);
    e = e->next;
    assert_int_equal(mk_conf_tree_value_pos(e, mk_str_skip(e->value, 4)).column, 7);
    e = e->next;
    assert_int_equal(mk_conf_tree_value_pos(e, e->value).column, 6);
    assert_true(e->value.p && e->value.len == 0);
    conf_fixture_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_tree_sections_are_case_insensitive),
        cmocka_unit_test(conf_tree_part_of_a_value_has_its_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
