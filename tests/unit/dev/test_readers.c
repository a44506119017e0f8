/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers for the output of compilers, addr2line and crashed processes, and for sources. */
#include "crash.h"
#include "error_page.h"
#include "inputs.h"
#include "introspect.h"
#include "symbolize.h"

#include "unit/test.h"

/* ---- Make rules ---- */

static const char *files_of(const char *rule)
{
    static char buffer[1024];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer - 1);
    dev_inputs_parse_depfile(mk_str_from_c(rule), "/cache", &out);
    buffer[out.len] = '\0';
    return buffer;
}

static void make_rule_lists_files(void **state)
{
    (void)state;
    assert_string_equal(files_of("a.so: /s/a.c /s/a.h\n"), "/s/a.c\n/s/a.h\n");
    assert_string_equal(files_of("a.so: /s/a.c \\\n  /s/b.h \\\n\t/s/c.h"), "/s/a.c\n/s/b.h\n/s/c.h\n");
    assert_string_equal(files_of("a.so: /s/my\\ file.c /s/a$$b.h /s/c\\#d.h"),
                        "/s/my file.c\n/s/a$b.h\n/s/c#d.h\n");
    assert_string_equal(files_of("a.so: /cache/x.c /s/a.c"), "/s/a.c\n");
    assert_string_equal(files_of("a.so:"), "");
    assert_string_equal(files_of("no rule"), "");
    assert_string_equal(files_of("a: b\\"), "b\\\n");
}

/* ---- Messages ---- */

static void expect_message(const char *line, const char *path, uint64_t row, uint64_t column,
                           const char *what)
{
    mk_str p, w;
    uint64_t r, c;
    assert_true(dev_error_page_parse_message(mk_str_from_c(line), &p, &r, &c, &w));
    assert_str(p, path);
    assert_str(w, what);
    assert_int_equal(r, row);
    assert_int_equal(c, column);
}

static void compiler_messages_are_parsed(void **state)
{
    static const char *const others[] = {"",
                                         ":1:2: error: x",
                                         "a.c: In function 'f':",
                                         "a.c:5:3: note: here",
                                         "a.c:x: error: y",
                                         "a.c:5",
                                         "collect2: error: ld returned 1 exit status",
                                         "a.c:99999999999999999999:1: error: x",
                                         "    5 | x"};
    mk_str path, what;
    uint64_t row, column;
    (void)state;
    expect_message("/s/a.c:5:12: error: expected ';'", "/s/a.c", 5, 12, "error: expected ';'");
    expect_message("a.c:5: warning: unused", "a.c", 5, 0, "warning: unused");
    expect_message("a.h:1:10: fatal error: b.h: No such file", "a.h", 1, 10,
                   "fatal error: b.h: No such file");
    for (size_t i = 0; i < MK_LEN(others); i++)
        if (dev_error_page_parse_message(mk_str_from_c(others[i]), &path, &row, &column, &what))
            fail_msg("%s", others[i]);
}

static void error_page_text_is_escaped_and_without_colors(void **state)
{
    char buffer[512];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    const struct dev_error_page html = {.out = &out, .html = true}, plain = {.out = &out};
    (void)state;
    dev_error_page_add_text(&html, MK_STR("\033[01m<b>\033[K&\033"));
    assert_str(mk_buf_str(&out), "<pre><span>&lt;b&gt;&amp;\033</span></pre>\n");
    mk_buf_clear(&out);
    dev_error_page_add_text(&plain, MK_STR("\033[31mred\033[m"));
    assert_str(mk_buf_str(&out), "red\n");
}

/* ---- Crashes ---- */

static void crash_frames_are_parsed(void **state)
{
    struct dev_frame f;
    (void)state;
    assert_true(dev_symbolize_parse_frame(MK_STR(DEV_CRASH_FRAME "/c/a.so 0x1f4 hello"), &f));
    assert_str(f.object, "/c/a.so");
    assert_str(f.symbol, "hello");
    assert_int_equal(f.offset, 0x1f4);
    assert_true(dev_symbolize_parse_frame(MK_STR(DEV_CRASH_FRAME "? 0x10"), &f));
    assert_int_equal(f.symbol.len, 0);
    assert_true(dev_symbolize_parse_frame(MK_STR(DEV_CRASH_FRAME), &f));
    assert_int_equal(f.offset, 0);
    assert_false(dev_symbolize_parse_frame(MK_STR(DEV_CRASH_HEAD "11 (nil)"), &f));
}

static void source_locations_are_parsed(void **state)
{
    mk_str path;
    uint64_t row;
    (void)state;
    assert_true(dev_symbolize_parse_location(MK_STR("/s/a.c:12 (discriminator 3)"), &path, &row));
    assert_str(path, "/s/a.c");
    assert_int_equal(row, 12);
    assert_true(dev_symbolize_parse_location(MK_STR("/s/a:b.c:7"), &path, &row));
    assert_str(path, "/s/a:b.c");
    assert_false(dev_symbolize_parse_location(MK_STR("??:0"), &path, &row));
    assert_false(dev_symbolize_parse_location(MK_STR("a.c:?"), &path, &row));
    assert_false(dev_symbolize_parse_location(MK_STR("a.c:0"), &path, &row));
    assert_false(dev_symbolize_parse_location(MK_STR("a.c"), &path, &row));
    assert_false(dev_symbolize_parse_location(MK_STR(""), &path, &row));
}

static void crash_cause_is_described(void **state)
{
    char buffer[256];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    dev_symbolize_write_cause(&out, MK_STR(DEV_CRASH_HEAD "11 (nil)\n"));
    assert_str(mk_buf_str(&out), "SIGSEGV (Segmentation fault) through a NULL pointer");
    mk_buf_clear(&out);
    dev_symbolize_write_cause(&out, MK_STR(DEV_CRASH_HEAD "8 0x12\n"));
    assert_str(mk_buf_str(&out), "SIGFPE (Floating point exception) at address 0x12");
    mk_buf_clear(&out);
    dev_symbolize_write_cause(&out, MK_STR(DEV_CRASH_HEAD "999"));
    assert_str(mk_buf_str(&out), "SIG? (?)");
}

/* ---- Sources ---- */

static struct dev_source parse_source(const char *text)
{
    struct dev_source s = {
        .text = mk_buf_growing(4096), .packages = mk_buf_growing(4096), .flags = mk_buf_growing(4096)};
    mk_buf_add(&s.text, mk_str_from_c(text));
    dev_source_parse(&s, MK_STR("My-File.2.c"));
    return s;
}

static void expect_source(const char *text, const char *name, const char *packages, const char *flags)
{
    struct dev_source s = parse_source(text);
    assert_string_equal(s.name, name);
    assert_str(mk_str_trim(mk_buf_str(&s.packages)), packages);
    assert_str(mk_str_trim(mk_buf_str(&s.flags)), flags);
    dev_source_free(&s);
}

static void source_name_and_libraries_are_parsed(void **state)
{
    (void)state;
    expect_source("DUDA_SERVICE(shop, x)", "shop", "", "");
    expect_source("DUDA_SERVICE\n( shop\n, x)", "shop", "", "");
    expect_source("int handle;", "myfile2", "", "");
    expect_source("/* pkg-config: a b */\nDUDA_SERVICE(s)", "s", "a b", "");
    expect_source("/* Text.\n * cflags: -DX=1 -O\n * pkg-config: a\n */ // pkg-config: b\n", "myfile2", "a b",
                  "-DX=1 -O");
    expect_source("\"/* pkg-config: no */\" '\"' DUDA_SERVICE(s)", "s", "", "");
    expect_source("// DUDA_SERVICE(no)\n\"DUDA_SERVICE(no)\" XDUDA_SERVICE(no) DUDA_SERVICEX(no)", "myfile2",
                  "", "");
    expect_source("DUDA_SERVICE(", "myfile2", "", "");
    expect_source("/* open", "myfile2", "", "");
    expect_source("'\\", "myfile2", "", "");
}

/* ---- Patterns ---- */

static void expect_segment(mk_str *rest, const char *text, const char *name, const char *type)
{
    struct dev_param p;
    mk_str got;
    assert_true(dev_introspect_next_segment(rest, &got, &p));
    assert_str(got, text);
    if (!name)
        assert_null(p.name.p);
    else
        assert_str(p.name, name);
    assert_str(p.type, type);
}

static void pattern_segments_are_parsed(void **state)
{
    mk_str rest = MK_STR("/items/:id<int>/:word/*rest"), text;
    struct dev_param p;
    (void)state;
    expect_segment(&rest, "items", NULL, "");
    expect_segment(&rest, ":id<int>", "id", "int");
    expect_segment(&rest, ":word", "word", "");
    expect_segment(&rest, "*rest", "rest", "rest");
    assert_false(dev_introspect_next_segment(&rest, &text, &p));
    rest = MK_STR("/:a</:/x");
    expect_segment(&rest, ":a<", "a", "");
    expect_segment(&rest, ":", NULL, "");
    expect_segment(&rest, "x", NULL, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(make_rule_lists_files),
        cmocka_unit_test(compiler_messages_are_parsed),
        cmocka_unit_test(error_page_text_is_escaped_and_without_colors),
        cmocka_unit_test(crash_frames_are_parsed),
        cmocka_unit_test(source_locations_are_parsed),
        cmocka_unit_test(crash_cause_is_described),
        cmocka_unit_test(source_name_and_libraries_are_parsed),
        cmocka_unit_test(pattern_segments_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
