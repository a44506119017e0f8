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
    assert_string_equal(check("ld: x.o:(.text+0x1): undefined reference to `missing'", &ok),
                        "error: `missing` is used, but not defined\n");
    assert_false(ok);
    assert_string_equal(check("", &ok), "");
    assert_true(ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_generated_position_becomes_that_of_the_source),
        cmocka_unit_test(messages_other_lines_are_unchanged),
        cmocka_unit_test(messages_symbols_of_the_program_are_removed),
        cmocka_unit_test(messages_unknown_symbol_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
