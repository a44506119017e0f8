/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/print.h"

#include "unit/conf/fixture.h"
#include "unit/conf/sample.h"

static struct conf_fixture w;

static int setup(void **state)
{
    (void)state;
    conf_fixture_setup(&w);
    return 0;
}

static void read_and_bind(const struct mk_conf_table *table, mk_str text, struct sample *s)
{
    memset(s, 0, sizeof *s);
    w.tree = (struct mk_conf_tree){0};
    mk_err err = mk_conf_read_text(&w.tree, &w.arena, &w.io, MK_STR("t.conf"), text, &w.report);
    if (!err)
        err = mk_conf_bind(table, w.tree.first, s, &w.arena, &w.report);
    assert_str(conf_fixture_problems(&w), "");
    assert_int_equal(err, 0);
}

static mk_str print(const struct mk_conf_table *table, const struct sample *s)
{
    struct mk_buf b = mk_buf_growing(1 << 20);
    mk_conf_print_section(table, s, &b);
    assert_false(b.failed);
    mk_str text = mk_arena_copy(&w.arena, mk_buf_str(&b));
    mk_buf_free(&b);
    return text;
}

static void conf_print_defaults_use_the_config_format(void **state)
{
    (void)state;
    struct sample s;
    read_and_bind(&sample_table, MK_STR("[SERVER]\n DocumentRoot /srv\n"), &s);
    assert_str(print(&sample_table, &s), "[SERVER]\n"
                                         "    KeepAlive      on\n"
                                         "    Workers        auto\n"
                                         "    MaxRequestSize 32K\n"
                                         "    Timeout        15s\n"
                                         "    Level          0\n"
                                         "    DocumentRoot   /srv\n"
                                         "    Title          Hello, \"world\"\n"
                                         "    # Format\n"
                                         "    # ServerName\n"
                                         "    IndexFile      index.html \"my index\"\n"
                                         "    OverCapacity   Resist\n"
                                         "    Port           80\n");
}

static void words_equal(const struct mk_conf_words *a, const struct mk_conf_words *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        assert_true(mk_str_eq(a->v[i], b->v[i]));
}

static void text_equal(mk_str a, mk_str b)
{
    assert_true(mk_str_eq(a, b));
    assert_int_equal(a.p != NULL, b.p != NULL);
}

static void equal(const struct sample *a, const struct sample *b)
{
    assert_int_equal(a->keep, b->keep);
    assert_int_equal(a->workers, b->workers);
    assert_true(a->size == b->size);
    assert_int_equal(a->timeout_ms, b->timeout_ms);
    assert_int_equal(a->level, b->level);
    assert_int_equal(a->mode, b->mode);
    text_equal(a->root, b->root);
    text_equal(a->title, b->title);
    text_equal(a->format, b->format);
    words_equal(&a->names, &b->names);
    words_equal(&a->index, &b->index);
    assert_int_equal(a->ports.n, b->ports.n);
    assert_memory_equal(a->ports.v, b->ports.v, sizeof a->ports.v);
}

static void round_trip(const char *text)
{
    struct sample first, second;
    read_and_bind(&sample_table, mk_str_from_c(text), &first);
    mk_str printed = print(&sample_table, &first);
    read_and_bind(&sample_table, printed, &second);
    equal(&first, &second);
    assert_true(mk_str_eq(printed, print(&sample_table, &second)));
}

static void conf_print_output_can_be_read(void **state)
{
    (void)state;
    round_trip("[SERVER]\n DocumentRoot /srv\n");
    round_trip(
        "[SERVER]\n KeepAlive no\n Workers 2\n MaxRequestSize 5000B\n Timeout 61001ms\n Level 255\n"
        " DocumentRoot \"  blanks \"\n Title\n Format \"\\\"%r\\\" \\\\\"\n ServerName a \"b c\" \"\\\"\"\n"
        " IndexFile\n OverCapacity drop\n Port 1\n Port 2\n Port 3\n");
    round_trip("[SERVER]\n DocumentRoot $${HOME} $$${X} $ $$\n Format ${X:-\"  #  \"}\n Title \"\"\n"
               " ServerName $${A} \"$${B} C\"\n IndexFile # --- [x]\n MaxRequestSize 4\n Timeout 1h\n");
    round_trip(
        "[SERVER]\n DocumentRoot #\n Format @SET a b\n ServerName aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb ccccccccccccccccccccccccccc dddddddddddddddd\n");
}

static void conf_print_many_words_are_wrapped(void **state)
{
    (void)state;
    struct sample s = {.root = MK_STR("x")};
    mk_str words[40];
    for (size_t i = 0; i < MK_LEN(words); i++)
        words[i] = MK_STR("twelve-bytes");
    s.names = (struct mk_conf_words){words, MK_LEN(words)};
    mk_str text = print(&sample_table, &s), rest = text;
    for (mk_str line; rest.p;) {
        line = mk_str_cut(&rest, '\n');
        assert_true(line.len < 110);
    }
    struct sample again;
    s.timeout_ms = 1000;
    s.size = 1 << 20;
    s.index = (struct mk_conf_words){words, 1};
    read_and_bind(&sample_table, print(&sample_table, &s), &again);
    words_equal(&again.names, &s.names);
}

static void conf_print_includes_free_entries(void **state)
{
    (void)state;
    struct sample s, again;
    read_and_bind(&route_table, MK_STR("[ROUTES]\n /a b\n Default x\n *.php php $${A} \"x  y\"\n"), &s);
    mk_str text = print(&route_table, &s);
    assert_str(text, "[ROUTES]\n    Default x\n    /a b\n    *.php php $${A} \"x  y\"\n");
    read_and_bind(&route_table, text, &again);
    assert_int_equal(again.n_pairs, 2);
    text_equal(again.values[1], s.values[1]);
}

static void conf_print_entry_writes_one_entry(void **state)
{
    (void)state;
    char buffer[64];
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_conf_print_entry(MK_STR("Key"), MK_STR("a ${b}"), &b);
    mk_conf_print_entry(MK_STR("Empty"), MK_STR(""), &b);
    assert_str(mk_buf_str(&b), "    Key a $${b}\n    Empty\n");
}

static void conf_print_full_buffer_fails(void **state)
{
    (void)state;
    struct sample s = {.root = MK_STR("/srv")};
    for (size_t cap = 0; cap < 200; cap++) {
        char buffer[200];
        struct mk_buf b = mk_buf_fixed(buffer, cap);
        mk_conf_print_section(&sample_table, &s, &b);
        assert_true(b.failed);
    }
}

static void conf_print_custom_key_without_printer_is_a_comment(void **state)
{
    (void)state;
    const struct mk_conf_key keys[] = {
        {.name = "P", .type = MK_CONF_CUSTOM, MK_CONF_AT(struct sample, ports), .parse = sample_parse_port}};
    const struct mk_conf_table table = {.section = "T", .keys = keys, .n = 1};
    struct sample s = {.mode = SAMPLE_DROP};
    assert_str(print(&table, &s), "[T]\n    # P\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_print_defaults_use_the_config_format),
        cmocka_unit_test(conf_print_output_can_be_read),
        cmocka_unit_test(conf_print_many_words_are_wrapped),
        cmocka_unit_test(conf_print_includes_free_entries),
        cmocka_unit_test(conf_print_entry_writes_one_entry),
        cmocka_unit_test(conf_print_full_buffer_fails),
        cmocka_unit_test(conf_print_custom_key_without_printer_is_a_comment),
    };
    return cmocka_run_group_tests(tests, setup, harness_teardown);
}
