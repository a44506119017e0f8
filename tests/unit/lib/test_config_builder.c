/* SPDX-License-Identifier: Apache-2.0 */
/* The builder turns lines added in any order into a configuration in the right order. */
#include "lib/config_builder.h"

#include "unit/test.h"

static struct mk_config_builder l;

static void clear(void)
{
    mk_config_builder_free(&l);
}

static mk_err add(const char *section, const char *key, const char *value)
{
    return mk_config_builder_set(&l, mk_str_from_c(section), mk_str_from_c(key), mk_str_from_c(value));
}

static void expect(const char *text)
{
    struct mk_buf out = mk_buf_growing(4096);
    mk_config_builder_print(&l, &out);
    assert_str(mk_buf_str(&out), text);
    mk_buf_free(&out);
}

static void config_builder_puts_server_sections_first(void **state)
{
    (void)state;
    assert_int_equal(mk_config_builder_begin_section(&l, MK_STR("HOST")), 0);
    assert_int_equal(add("HOST", "ServerName", "a b"), 0);
    assert_int_equal(add("SERVER", "Port", "1"), 0);
    assert_int_equal(add("PLUGINS", "Load", "x"), 0);
    assert_int_equal(add("server", "Timeout", "2"), 0);
    expect("[SERVER]\n    Port 1\n    Timeout 2\n[PLUGINS]\n    Load x\n[HOST]\n    ServerName a b\n");
}

static void config_builder_keeps_sections_with_their_host(void **state)
{
    (void)state;
    assert_int_equal(add("OTHER", "A", "1"), 0); /* a plugin's section applies to all hosts */
    assert_int_equal(add("ROUTES", "/a", "x"), 0);
    assert_int_equal(mk_config_builder_begin_section(&l, MK_STR("HOST")), 0);
    assert_int_equal(add("ROUTES", "/b", "y"), 0);
    assert_int_equal(add("OTHER", "A", "2"), 0);
    assert_int_equal(add("HOST", "ServerName", "b"), 0);
    expect("[OTHER]\n    A 1\n[HOST]\n[ROUTES]\n    /a x\n[HOST]\n    ServerName b\n[ROUTES]\n    /b y\n"
           "[OTHER]\n    A 2\n");
}

static void config_builder_can_repeat_a_section(void **state)
{
    (void)state;
    assert_int_equal(add("LOCATION", "Path", "/a"), 0);
    assert_int_equal(mk_config_builder_begin_section(&l, MK_STR("LOCATION")), 0);
    assert_int_equal(add("LOCATION", "Path", "/b"), 0);
    expect("[HOST]\n[LOCATION]\n    Path /a\n[LOCATION]\n    Path /b\n");
}

static void config_builder_fills_a_tree(void **state)
{
    (void)state;
    struct mk_arena arena;
    struct mk_conf_tree tree = {0};
    assert_int_equal(mk_config_builder_begin_section(&l, MK_STR("HOST")), 0);
    assert_int_equal(add("SERVER", "Listen", "127.0.0.1:80"), 0);
    assert_int_equal(add("SERVER", "Listen", "unix:/a b tls"), 0);
    mk_arena_init(&arena, NULL);
    assert_int_equal(mk_config_builder_fill_tree(&tree, &arena, &l), 0);
    const struct mk_conf_section *server = mk_conf_tree_find(&tree, MK_STR("SERVER"));
    assert_int_equal(tree.n, 2);
    assert_int_equal(mk_conf_tree_find(&tree, MK_STR("HOST"))->n, 0);
    assert_int_equal(server->n, 2);
    assert_str(server->first->key, "Listen");
    assert_str(server->first->value, "127.0.0.1:80");
    assert_str(server->last->value, "unix:/a b tls");
    assert_str(server->at.file, "the program");
    mk_arena_fini(&arena);
}

static void config_builder_rejects_invalid_lines(void **state)
{
    static const char *const keys[] = {"", "a b", "#a", "[a]", "@INCLUDE", "@set", "----", "a\tb", "a\nb"};
    static const char *const sections[] = {"", " A", "A]", "A\nB"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(keys); i++)
        assert_int_equal(add("SERVER", keys[i], "1"), -EINVAL);
    for (size_t i = 0; i < MK_LEN(sections); i++) {
        assert_int_equal(add(sections[i], "A", "1"), -EINVAL);
        assert_int_equal(mk_config_builder_begin_section(&l, mk_str_from_c(sections[i])), -EINVAL);
    }
    assert_int_equal(add("SERVER", "A", "1\n[HOST]"), -EINVAL);
    expect("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(config_builder_puts_server_sections_first, NULL, clear),
        fixture_test(config_builder_keeps_sections_with_their_host, NULL, clear),
        fixture_test(config_builder_can_repeat_a_section, NULL, clear),
        fixture_test(config_builder_fills_a_tree, NULL, clear),
        fixture_test(config_builder_rejects_invalid_lines, NULL, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
