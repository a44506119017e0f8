/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/bind.h"

#include "unit/conf/fixture.h"
#include "unit/conf/sample.h"

static struct conf_fixture w;
static struct sample s;

static void setup(void)
{
    conf_fixture_setup(&w);
    memset(&s, 0, sizeof s);
}

/* Reads and binds one section, with a new report. */
static mk_err bind(const struct mk_conf_table *table, const char *text)
{
    w.tree = (struct mk_conf_tree){0};
    mk_conf_report_init(&w.report, &w.arena);
    assert_int_equal(conf_fixture_read_text(&w, text), 0);
    return mk_conf_bind(table, w.tree.first, &s, &w.arena, &w.report);
}

static void expect_problems(const char *text, const char *problems)
{
    mk_err err = bind(&sample_table, text);
    assert_str(conf_fixture_problems(&w), problems);
    assert_int_equal(err, w.report.n_errors ? -EINVAL : 0);
}

static void conf_bind_uses_defaults_of_the_table(void **state)
{
    (void)state;
    s.level = 9;
    expect_problems("[SERVER]\n    DocumentRoot /srv\n", "");
    assert_true(s.keep);
    assert_int_equal(s.workers, 0);
    assert_int_equal(s.size, 32768);
    assert_int_equal(s.timeout_ms, 15000);
    assert_int_equal(s.level, 9);
    assert_str(s.root, "/srv");
    assert_str(s.title, "Hello, \"world\"");
    assert_null(s.format.p);
    assert_int_equal(s.names.n, 0);
    assert_int_equal(s.index.n, 2);
    assert_str(s.index.v[1], "my index");
    assert_int_equal(s.mode, SAMPLE_RESIST);
    assert_int_equal(s.ports.n, 1);
    assert_int_equal(s.ports.v[0], 80);
}

static void conf_bind_reads_every_type(void **state)
{
    (void)state;
    expect_problems(
        "[server]\n    keepalive NO\n    WORKERS 64\n    MaxRequestSize 1M\n    Timeout 250ms\n"
        "    Level 255\n    DocumentRoot \" a \"\n    Title \"\"\n    Format %h \"%r\"\n"
        "    ServerName a.org *.b.org\n    Host c.org\n    IndexFile x.html\n    OverCapacity toobusy\n"
        "    Port 8080\n    Port 8443\n",
        "");
    assert_false(s.keep);
    assert_int_equal(s.workers, 64);
    assert_int_equal(s.size, 1 << 20);
    assert_int_equal(s.timeout_ms, 250);
    assert_int_equal(s.level, 255);
    assert_str(s.root, " a ");
    assert_true(s.title.p && s.title.len == 0);
    assert_str(s.format, "%h \"%r\"");
    assert_int_equal(s.names.n, 3);
    assert_str(s.names.v[2], "c.org");
    assert_int_equal(s.index.n, 1);
    assert_int_equal(s.mode, SAMPLE_BUSY);
    assert_int_equal(s.ports.n, 2);
    assert_int_equal(s.ports.v[1], 8443);
    expect_problems("[A]\n DocumentRoot x\n Title\n IndexFile\n Workers auto\n", "");
    assert_int_equal(s.title.len, 0);
    assert_int_equal(s.index.n, 0);
    assert_int_equal(s.workers, 0);
}

static void conf_bind_unknown_key_gets_a_suggestion(void **state)
{
    (void)state;
    expect_problems(
        "[SERVER]\n    DocumentRoot x\n    Timeot 3\n    Color red\n    Timeout=3\n    Timeuot=3\n"
        "    =\n    MaxTim 3\n",
        "t.conf:3:5: error: unknown key `Timeot` in [SERVER] (did you mean `Timeout`?)\n"
        "t.conf:4:5: error: unknown key `Color` in [SERVER]\n"
        "t.conf:5:5: error: unknown key `Timeout=3` in [SERVER] (key and value are separated by blanks: "
        "write `Key value`)\n"
        "t.conf:6:5: error: unknown key `Timeuot=3` in [SERVER] (key and value are separated by blanks: "
        "write `Key value`)\n"
        "t.conf:7:5: error: unknown key `=` in [SERVER]\n"
        "t.conf:8:5: error: unknown key `MaxTim` in [SERVER]\n");
}

static void conf_bind_wrong_numbers_are_reported(void **state)
{
    (void)state;
    expect_problems(
        "[SERVER]\n    DocumentRoot x\n    Workers 65\n    MaxRequestSize 3\n    Timeout 1O\n    Level 256\n",
        "t.conf:3:13: error: `65` is too large: expected a number from 2 to 64, or auto\n"
        "t.conf:4:20: error: `3` is too small: expected a size (B, K, M, G) from 4K to 1G\n"
        "t.conf:5:13: error: expected a time (ms, s, m, h, d) from 1ms to 1h, not `1O`\n"
        "t.conf:6:11: error: `256` is too large: expected a number up to 255\n");
    expect_problems(
        "[SERVER]\n    DocumentRoot x\n    Workers 1\n    MaxRequestSize 99999999999999999999G\n"
        "    Timeout 0\n    Level -1\n",
        "t.conf:3:13: error: `1` is too small: expected a number from 2 to 64, or auto\n"
        "t.conf:4:20: error: `99999999999999999999G` is too large: expected a size (B, K, M, G) from 4K "
        "to 1G\n"
        "t.conf:5:13: error: `0` is too small: expected a time (ms, s, m, h, d) from 1ms to 1h\n"
        "t.conf:6:11: error: expected a number up to 255, not `-1`\n");
    assert_int_equal(s.timeout_ms, 15000);
}

static void conf_bind_wrong_words_are_reported(void **state)
{
    (void)state;
    expect_problems(
        "[SERVER]\n    DocumentRoot \"a\n    KeepAlive onn\n    OverCapacity Resits\n    Format ab\n"
        "    ServerName a \"b\"c d\n    Title 0123456789012345678901234567890\n",
        "t.conf:2:18: error: the quotes of `\"a` do not match (quoted text begins and ends with \"; "
        "within it, write \\\" for a quote)\n"
        "t.conf:3:15: error: expected on or off, not `onn` (did you mean `on`?)\n"
        "t.conf:4:18: error: expected one of Drop, Resist, TooBusy, not `Resits` (did you mean `Resist`?)\n"
        "t.conf:5:12: error: `ab` is too short: expected text of at least 3 bytes\n"
        "t.conf:6:18: error: the quotes of `\"b\"c` do not match (quoted text begins and ends with \"; "
        "within it, write \\\" for a quote)\n"
        "t.conf:7:11: error: `0123456789012345678901234567890` is too long: expected text up to 30 "
        "bytes\n");
    expect_problems(
        "[SERVER]\n    DocumentRoot x\n    KeepAlive on # always\n    OverCapacity Maybe\n    KeepAlive 2\n",
        "t.conf:3:15: error: expected on or off, not `on # always` (write the comment on a line of its own)\n"
        "t.conf:4:18: error: expected one of Drop, Resist, TooBusy, not `Maybe`\n"
        "t.conf:5:5: error: `KeepAlive` is already set on line 3\n");
}

static void conf_bind_empty_values_are_reported(void **state)
{
    (void)state;
    expect_problems(
        "[SERVER]\n    DocumentRoot\n    Workers\n    ServerName \"\"\n    Format \"\"\n    Port\n",
        "t.conf:2:17: error: `DocumentRoot` has no value: expected text\n"
        "t.conf:3:12: error: `Workers` has no value: expected a number from 2 to 64, or auto\n"
        "t.conf:4:16: error: `\"\"` is empty: expected up to 40 words\n"
        "t.conf:5:12: error: `\"\"` is empty: expected text of at least 3 bytes\n"
        "t.conf:6:9: error: `Port` has no value: expected a port\n");
}

static void conf_bind_custom_parser_reports_its_errors(void **state)
{
    (void)state;
    expect_problems("[SERVER]\n    DocumentRoot x\n    Port http\n    Port 99999\n    Port 80   tls\n",
                    "t.conf:3:10: error: expected a port, not `http`\n"
                    "t.conf:4:10: error: port 99999 cannot be used (use another one)\n"
                    "t.conf:5:15: error: port 80 cannot be used (use another one)\n");
    assert_int_equal(s.ports.n, 0);
}

static void conf_bind_repeated_key_is_reported(void **state)
{
    (void)state;
    expect_problems(
        "[SERVER]\n    DocumentRoot x\n    Timeout 3\n    timeout 4\n    MaxTime 5\n    Port 1\n    Port 2\n",
        "t.conf:4:5: error: `timeout` is already set on line 3\n"
        "t.conf:5:5: warning: `MaxTime` is deprecated (use `Timeout`)\n"
        "t.conf:5:5: error: `MaxTime` is already set on line 3\n");
    assert_int_equal(s.timeout_ms, 3000);
}

static void conf_bind_repeated_key_names_the_other_file(void **state)
{
    (void)state;
    const struct mk_conf_entry one = {
        .key = MK_STR("Level"), .value = MK_STR("1"), .at = {.file = MK_STR("a"), .line = 7}};
    const struct mk_conf_entry two = {
        .key = MK_STR("Level"), .value = MK_STR("2"), .at = {.file = MK_STR("b"), .line = 2}};
    const struct mk_conf_source_pos at = {.line = 1};
    struct mk_conf_section *section = mk_conf_tree_add_section(&w.tree, &w.arena, MK_STR("SERVER"), &at);
    assert_non_null(mk_conf_tree_add_entry(section, &w.arena, &one));
    assert_non_null(mk_conf_tree_add_entry(section, &w.arena, &two));
    assert_int_equal(mk_conf_bind_without_defaults(&sample_table, section, &s, &w.arena, &w.report), -EINVAL);
    assert_str(conf_fixture_problems(&w), "b:2:0: error: `Level` is already set in a:7\n");
}

static void conf_bind_too_long_list_is_reported(void **state)
{
    (void)state;
    char text[512] = "[SERVER]\n    DocumentRoot x\n    ServerName ";
    for (size_t i = strlen(text), n = 0; n < 41; n++, i += 2)
        memcpy(text + i, "a ", 3);
    assert_int_equal(bind(&sample_table, text), -EINVAL);
    assert_true(mk_str_ends(conf_fixture_problems(&w), MK_STR("` is too long: expected up to 40 words\n")));
}

static void conf_bind_deprecated_names_work(void **state)
{
    (void)state;
    expect_problems("[SERVER]\n    DocumentRoot x\n    MaxTime 5\n    FDT whatever\n    FDT\n    Host a\n",
                    "t.conf:3:5: warning: `MaxTime` is deprecated (use `Timeout`)\n"
                    "t.conf:4:5: warning: `FDT` no longer has an effect\n"
                    "t.conf:5:5: warning: `FDT` no longer has an effect\n");
    assert_int_equal(s.timeout_ms, 5000);
    assert_int_equal(s.names.n, 1);
}

static void conf_bind_missing_required_key_is_reported(void **state)
{
    (void)state;
    expect_problems("[OTHER]\n[SERVER]\n", "t.conf:1:1: error: [SERVER] must have `DocumentRoot`\n");
    mk_conf_report_init(&w.report, &w.arena);
    assert_int_equal(mk_conf_bind(&sample_table, NULL, &s, &w.arena, &w.report), -EINVAL);
    assert_str(conf_fixture_problems(&w), ":0:0: error: [SERVER] must have `DocumentRoot`\n");
    assert_int_equal(s.timeout_ms, 15000);
}

static void conf_bind_invalid_value_is_reported_once(void **state)
{
    (void)state;
    assert_int_equal(
        conf_fixture_read_text(&w, "[SERVER]\n    DocumentRoot ${X}\n    Timeout ${X}\n    FDT ${X}\n"),
        -EINVAL);
    assert_int_equal(w.report.n_errors, 3);
    assert_int_equal(mk_conf_bind(&sample_table, w.tree.first, &s, &w.arena, &w.report), 0);
    assert_int_equal(w.report.n_errors, 3);
    assert_int_equal(s.timeout_ms, 15000);
}

static void conf_bind_without_defaults_keeps_inherited_values(void **state)
{
    (void)state;
    expect_problems("[SERVER]\n DocumentRoot /srv\n Timeout 3\n ServerName a b\n Port 1\n Port 2\n", "");
    w.tree = (struct mk_conf_tree){0};
    assert_int_equal(conf_fixture_read_text(&w, "[X]\n Timeout 4\n ServerName c\n Port 3\n Workers 3\n"), 0);
    struct sample over = s;
    assert_int_equal(mk_conf_bind_without_defaults(&sample_table, w.tree.first, &over, &w.arena, &w.report),
                     0);
    assert_str(over.root, "/srv");
    assert_int_equal(over.timeout_ms, 4000);
    assert_int_equal(over.workers, 3);
    assert_int_equal(over.names.n, 1);
    assert_str(over.names.v[0], "c");
    assert_int_equal(over.ports.n, 1);
    assert_str(s.names.v[0], "a");
    assert_int_equal(s.names.n, 2);
}

static void conf_bind_free_entries_call_their_function(void **state)
{
    (void)state;
    assert_int_equal(bind(&route_table, "[ROUTES]\n    /cgi/*  cgi\n    default x\n    *.php   php a b\n"),
                     0);
    assert_int_equal(s.n_pairs, 2);
    assert_str(s.root, "x");
    assert_str(s.keys[1], "*.php");
    assert_str(s.values[1], "php a b");
    memset(&s, 0, sizeof s);
    assert_int_equal(bind(&route_table, "[ROUTES]\n    /a\n    !b c\n    /d e\n"), -EINVAL);
    assert_str(conf_fixture_problems(&w), "t.conf:2:7: error: `/a` has no value: expected pattern handler\n"
                                          "t.conf:3:5: error: `!b` is no pattern\n");
    assert_int_equal(s.n_pairs, 1);
    assert_str(s.root, "static");
    w.tree = (struct mk_conf_tree){0};
    mk_conf_report_init(&w.report, &w.arena);
    assert_int_equal(conf_fixture_read_text(&w, "[ROUTES]\n    /a ${X}\n"), -EINVAL);
    assert_int_equal(mk_conf_bind(&route_table, w.tree.first, &s, &w.arena, &w.report), 0);
    assert_int_equal(w.report.n_errors, 1);
}

static void conf_bind_wrong_default_is_reported(void **state)
{
    (void)state;
    const struct mk_conf_key keys[] = {{.name = "Mode",
                                        .type = MK_CONF_ENUM,
                                        MK_CONF_AT(struct sample, mode),
                                        .choices = sample_modes,
                                        .default_value = "x"}};
    const struct mk_conf_table table = {.section = "T", .keys = keys, .n = 1};
    mk_conf_report_init(&w.report, &w.arena);
    assert_int_equal(mk_conf_bind(&table, NULL, &s, &w.arena, &w.report), -EINVAL);
    assert_str(conf_fixture_problems(&w),
               "default of Mode in [T]:0:0: error: expected one of Drop, Resist, TooBusy, not `x`\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(conf_bind_uses_defaults_of_the_table, setup),
        fixture_test(conf_bind_reads_every_type, setup),
        fixture_test(conf_bind_unknown_key_gets_a_suggestion, setup),
        fixture_test(conf_bind_wrong_numbers_are_reported, setup),
        fixture_test(conf_bind_wrong_words_are_reported, setup),
        fixture_test(conf_bind_empty_values_are_reported, setup),
        fixture_test(conf_bind_custom_parser_reports_its_errors, setup),
        fixture_test(conf_bind_repeated_key_is_reported, setup),
        fixture_test(conf_bind_repeated_key_names_the_other_file, setup),
        fixture_test(conf_bind_too_long_list_is_reported, setup),
        fixture_test(conf_bind_deprecated_names_work, setup),
        fixture_test(conf_bind_missing_required_key_is_reported, setup),
        fixture_test(conf_bind_invalid_value_is_reported_once, setup),
        fixture_test(conf_bind_without_defaults_keeps_inherited_values, setup),
        fixture_test(conf_bind_free_entries_call_their_function, setup),
        fixture_test(conf_bind_wrong_default_is_reported, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
