/* SPDX-License-Identifier: Apache-2.0 */
/* Messages must not name positions in files that the developer did not write. */
#include "messages.h"

#include <stdio.h>

#include "unit/test.h"

static const char *clean(const char *text)
{
    static char buffer[2048];
    struct mk_buf all = mk_buf_growing(4096);
    mk_buf_add(&all, mk_str_from_c(text));
    dev_messages_strip_internal_paths(&all, "/tmp/run");
    snprintf(buffer, sizeof buffer, "%.*s", MK_STR_ARG(mk_buf_str(&all)));
    mk_buf_free(&all);
    return buffer;
}

static void messages_generated_position_becomes_that_of_the_source(void **state)
{
    (void)state;
    assert_string_equal(
        clean("/tmp/run/back.conf:2:5: error: /s/a.c:4: twice\n        Load /x.so\n        ^\n"
              "    hint: change it\n"),
        "/s/a.c:4: error: twice\n    hint: change it\n");
    assert_string_equal(clean("/tmp/run/back.conf:2: error: no place\n"), "error: no place\n");
    assert_string_equal(clean("/tmp/run/back.conf: error: /s/a.c:x: odd\n"), "error: /s/a.c:x: odd\n");
}

static void messages_other_lines_are_unchanged(void **state)
{
    static const char *const same[] = {"/s/more.conf:3:5: error: unknown key\n        Kee 1\n        ^\n",
                                       "/tmp/runner/back.conf:2: error: x\n",
                                       "/tmp/run\n",
                                       "    indented\n",
                                       "\n",
                                       ""};
    (void)state;
    for (size_t i = 0; i < MK_LEN(same); i++)
        assert_string_equal(clean(same[i]), same[i]);
}

static bool is_known(const char *symbol)
{
    return strncmp(symbol, "mk_", 3) == 0;
}

static const char *check(const char *text, bool *ok)
{
    static char buffer[2048];
    struct mk_buf all = mk_buf_growing(4096);
    mk_buf_add(&all, mk_str_from_c(text));
    *ok = dev_messages_check_undefined(&all, is_known);
    snprintf(buffer, sizeof buffer, "%.*s", MK_STR_ARG(mk_buf_str(&all)));
    mk_buf_free(&all);
    return buffer;
}

static void messages_symbols_of_the_program_are_removed(void **state)
{
    bool ok;
    (void)state;
    assert_string_equal(
        check("/usr/bin/ld: /tmp/a.o: in function `f':\n/s/a.c:5: warning: undefined reference to "
              "`mk_mem_alloc'\n/usr/bin/ld: /s/a.c:6: more undefined references to `mk_mem_alloc' "
              "follow\n/s/a.c:1:2: warning: unused\n",
              &ok),
        "/s/a.c:1:2: warning: unused\n");
    assert_true(ok);
}

static void messages_unknown_symbol_is_an_error(void **state)
{
    bool ok;
    (void)state;
    assert_string_equal(check("/s/a.c:5: warning: undefined reference to `missing'\n", &ok),
                        "/s/a.c:5: error: `missing` is used, but not defined\n");
    assert_false(ok);
    assert_string_equal(check("/usr/bin/ld: /s/a.c:6: warning: undefined reference to `missing'\n", &ok),
                        "/s/a.c:6: error: `missing` is used, but not defined\n");
    assert_string_equal(check("ld: x.o:(.text+0x1): undefined reference to `missing'", &ok),
                        "error: `missing` is used, but not defined\n");
    assert_false(ok);
    assert_string_equal(check("", &ok), "");
    assert_true(ok);
}

static void messages_name_of_the_c_library_gets_a_hint(void **state)
{
    static const char *const messages[] = {
        "a.c:3:12: \033[01;31m\033[Kerror: \033[m\033[Kconflicting types for "
        "\xe2\x80\x98\033[01m\033[Kindex\033[m\033[K\xe2\x80\x99\n"
        "In file included from /usr/include/string.h:462,\n"
        "/usr/include/strings.h:68:14: note: previous declaration of 'index'\n",
        "a.c:3:12: error: static declaration of 'index' follows non-static declaration\n"
        "/usr/include/strings.h:68:14: note: previous declaration is here\n"};
    static const char *const others[] = {
        "a.c:3:12: error: conflicting types for 'mine'\na.c:2:1: note: previous declaration of 'mine'\n",
        "/usr/include/strings.h:68:14: note: previous declaration is here\n"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(messages) + MK_LEN(others); i++) {
        struct mk_buf text = mk_buf_growing(4096);
        bool is_other = i >= MK_LEN(messages);
        const char *message = is_other ? others[i - MK_LEN(messages)] : messages[i];
        mk_buf_add(&text, mk_str_from_c(message));
        dev_messages_explain_conflicts(&text);
        assert_true(mk_str_starts(mk_buf_str(&text), mk_str_from_c(message)));
        mk_str rest = mk_str_skip(mk_buf_str(&text), strlen(message));
        assert_int_equal(rest.len == 0, is_other);
        assert_true(
            is_other ||
            mk_str_eq(rest, MK_STR("    hint: the C library has a function `index`: choose another name\n")));
        mk_buf_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_generated_position_becomes_that_of_the_source),
        cmocka_unit_test(messages_other_lines_are_unchanged),
        cmocka_unit_test(messages_symbols_of_the_program_are_removed),
        cmocka_unit_test(messages_unknown_symbol_is_an_error),
        cmocka_unit_test(messages_name_of_the_c_library_gets_a_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
