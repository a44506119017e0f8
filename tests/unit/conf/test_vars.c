/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/vars.h"

#include "unit/conf/fixture.h"

static const struct conf_file env[] = {{"HOME", "/home/ana"}, {"EMPTY", ""},     {"PORT", "8080"},
                                       {"ESC", "a\x1b[m"},    {"LINES", "a\nb"}, {NULL, NULL}};

static void expect(const char *text, const char *tree, const char *problems)
{
    conf_fixture_expect(NULL, env, text, tree, problems);
}

static void conf_vars_names_are_letters_digits_and_underscores(void **state)
{
    (void)state;
    assert_true(mk_conf_vars_is_name(MK_STR("a")));
    assert_true(mk_conf_vars_is_name(MK_STR("_A9_")));
    assert_false(mk_conf_vars_is_name(MK_STR("")));
    assert_false(mk_conf_vars_is_name(MK_STR("9a")));
    assert_false(mk_conf_vars_is_name(MK_STR("a-b")));
    assert_false(mk_conf_vars_is_name(MK_STR("a b")));
}

static void conf_vars_set_overrides_the_environment(void **state)
{
    (void)state;
    expect("@SET ROOT /srv/www\n@SET PORT  90 tls \n[A]\n k ${ROOT}/x\n l ${HOME}:${PORT}\n",
           "[A] k=/srv/www/x l=/home/ana:90 tls", "");
    expect("[A]\n k ${PORT}\n@SET PORT 1\n l ${PORT}\n@SET PORT ${PORT}2\n m ${PORT}\n",
           "[A] k=8080 l=1 m=12", "");
    expect("@SET Port 1\n[A]\n k ${PORT} ${Port}\n", "[A] k=8080 1", "");
}

static void conf_vars_default_replaces_a_missing_value(void **state)
{
    (void)state;
    expect("[A]\n k ${NONE:-one two}\n l ${EMPTY:-three}\n m ${PORT:-four}\n n ${NONE:-}x\n",
           "[A] k=one two l=three m=8080 n=x", "");
    expect("[A]\n k ${EMPTY}\n l x${EMPTY}y\n m ${NONE:-a:-b}\n", "[A] k= l=xy m=a:-b", "");
}

static void conf_vars_plain_dollar_is_literal(void **state)
{
    (void)state;
    expect("[A]\n k ^/a$\n l $HOME $$ $\n m $${HOME}\n n $$${HOME} ${D:-$}${HOME}\n",
           "[A] k=^/a$ l=$HOME $$ $ m=${HOME} n=$${HOME} $/home/ana", "");
}

static void conf_vars_mistakes_have_a_position(void **state)
{
    (void)state;
    expect("@SET SERVER_ROOT /srv\n[A]\n    k x ${SEVER_ROOT}/y\n    l ${NONE}\n", "[A] k=x /y l=",
           "t.conf:3:9: error: `SEVER_ROOT` is not set (did you mean `SERVER_ROOT`?)\n"
           "t.conf:4:7: error: `NONE` is not set (set it above with @SET or in the environment, or write "
           "${NONE:-default})\n");
    expect(
        "[A]\n k ${HOME\n l ${}\n m ${a b}\n n ${A:-${B}}\n", "[A] k= l= m= n=${B}",
        "t.conf:2:4: error: `${` must be closed by `}` (write $${ for a plain ${)\n"
        "t.conf:3:4: error: `` is not a name: expected letters, digits and `_` (write $${ for a plain ${)\n"
        "t.conf:4:4: error: `a b` is not a name: expected letters, digits and `_` (write $${ for a plain "
        "${)\n"
        "t.conf:5:9: error: a default must not contain another ${\n");
    expect("[A]\n k ${ESC}\n l ${LINES}\n", "[A] k= l=",
           "t.conf:2:4: error: the value of `ESC` contains a control byte\n"
           "t.conf:3:4: error: the value of `LINES` contains a control byte\n");
}

static void conf_vars_set_requires_name_and_value(void **state)
{
    (void)state;
    expect("@SET\n@SET A\n@SET A=1\n@SET A ${NONE:-}\n@SET B ${NONE}\n[A]\n k ${B}x\n", "[A] k=x",
           "t.conf:1:5: error: expected `@SET NAME value`, with a name of letters, digits and `_`\n"
           "t.conf:2:6: error: expected `@SET NAME value`, with a name of letters, digits and `_`\n"
           "t.conf:3:6: error: expected `@SET NAME value`, with a name of letters, digits and `_`\n"
           "t.conf:5:8: error: `NONE` is not set (set it above with @SET or in the environment, or write "
           "${NONE:-default})\n");
}

static void conf_vars_expansion_is_limited(void **state)
{
    (void)state;
    expect("@SET A 0123456789012345678901234567890123456789012345678901234567890123\n@SET B "
           "${A}${A}${A}${A}${A}${A}\n"
           "@SET C ${B}${B}${B}${B}${B}${B}\n@SET D ${C}${C}${C}${C}${C}${C}\n@SET E "
           "${D}${D}${D}${D}${D}\n[A]\n k x\n",
           "[A] k=x",
           "t.conf:5:8: error: the value has more than 65536 bytes once its references are replaced\n");
}

static void conf_vars_expansion_reverses_escaping(void **state)
{
    (void)state;
    static const char *const texts[] = {"",   "a",  "${A}",   "$${A}", "$$${A}", "$",
                                        "$$", "${", "${${A}", "x$",    "$}{",    "a ${b} ${c:-d}"};
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        struct conf_fixture w;
        char buffer[128];
        struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
        conf_fixture_init(&w, NULL, NULL);
        struct mk_conf_vars v = {.arena = &w.arena, .io = &w.io, .report = &w.report};
        struct mk_conf_source_pos at = {.line = 1, .column = 1};
        mk_str out;
        mk_conf_vars_escape(mk_str_from_c(texts[i]), &b);
        assert_true(mk_conf_vars_expand(&v, mk_buf_str(&b), &at, &out));
        assert_str(out, texts[i]);
        conf_fixture_fini(&w);
    }
}

static size_t count_env_values(const struct mk_conf_tree *t, mk_str key)
{
    size_t n = 0;
    for (size_t i = 0; i < MK_LEN(t->env_values.by_byte); i++)
        for (const struct mk_conf_env_value *e = t->env_values.by_byte[i]; e; e = e->next)
            n += mk_str_eq(e->key, key);
    return n;
}

static void conf_vars_env_value_is_remembered_once_per_key(void **state)
{
    (void)state;
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, env);
    assert_int_equal(conf_fixture_read_text(
                         &w, "@SET A ${HOME} ${HOME}\n@SET A ${A}/${A}\n@SET B x\n[A]\n k ${HOME} ${HOME}\n"
                             " k ${HOME}\n l ${A}\n m ${PORT} ${A}\n n ${B}${EMPTY}\n[A]\n k ${HOME}\n"),
                     0);
    assert_int_equal(count_env_values(&w.tree, MK_STR("k")), 1);
    assert_int_equal(count_env_values(&w.tree, MK_STR("l")), 1);
    assert_int_equal(count_env_values(&w.tree, MK_STR("m")), 2);
    assert_int_equal(count_env_values(&w.tree, MK_STR("n")), 0);
    conf_fixture_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_vars_names_are_letters_digits_and_underscores),
        cmocka_unit_test(conf_vars_set_overrides_the_environment),
        cmocka_unit_test(conf_vars_default_replaces_a_missing_value),
        cmocka_unit_test(conf_vars_plain_dollar_is_literal),
        cmocka_unit_test(conf_vars_mistakes_have_a_position),
        cmocka_unit_test(conf_vars_set_requires_name_and_value),
        cmocka_unit_test(conf_vars_expansion_is_limited),
        cmocka_unit_test(conf_vars_expansion_reverses_escaping),
        cmocka_unit_test(conf_vars_env_value_is_remembered_once_per_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
