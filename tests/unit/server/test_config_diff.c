/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config_diff.h"

#include <stdlib.h>

#include "unit/test.h"

enum { LINES_MAX = 12, ROUNDS = 2000 };

static struct mk_buf out;

static struct mk_config_lines lines_of(struct mk_config_line *at, const char *letters)
{
    size_t n = strlen(letters);
    for (size_t i = 0; i < n; i++)
        at[i] = (struct mk_config_line){.text = mk_str_of(letters + i, 1),
                                        .shown = mk_str_of(letters + i, 1),
                                        .section = MK_STR("[S]"),
                                        .section_shown = MK_STR("[S]"),
                                        .at = MK_STR("a:1")};
    return (struct mk_config_lines){.at = at, .n = n};
}

static mk_str diff_of(const char *a, const char *b)
{
    struct mk_config_line a_at[LINES_MAX], b_at[LINES_MAX];
    const struct mk_config_lines a_lines = lines_of(a_at, a), b_lines = lines_of(b_at, b);
    mk_buf_clear(&out);
    assert_true(mk_config_diff_write(&a_lines, &b_lines, MK_STR("a"), MK_STR("b"), &out));
    return mk_buf_str(&out);
}

static void setup(void)
{
    out = mk_buf_growing(1 << 16);
}

static void teardown(void)
{
    mk_buf_free(&out);
}

static void config_diff_of_equal_lines_is_empty(void **state)
{
    (void)state;
    assert_int_equal(diff_of("", "").len, 0);
    assert_int_equal(diff_of("abc", "abc").len, 0);
}

static void config_diff_shows_lines_with_context_and_positions(void **state)
{
    (void)state;
    assert_str(diff_of("abcdefghi", "abcdXfghi"),
               "--- a\n+++ b\n@@ -2,7 +2,7 @@ [S]\n b\n c\n d\n"
               "-e                                                # a:1\n"
               "+X                                                # a:1\n f\n g\n h\n");
}

static void config_diff_of_references_shows_that_their_values_differ(void **state)
{
    (void)state;
    struct mk_config_line a_at[2], b_at[2];
    const struct mk_config_lines a = lines_of(a_at, "ab"), b = lines_of(b_at, "aX");
    a_at[1].shown = b_at[1].shown = MK_STR("Set X ${V}");
    a_at[0].shown = MK_STR("${A}");
    mk_buf_clear(&out);
    assert_true(mk_config_diff_write(&a, &b, MK_STR("a"), MK_STR("b"), &out));
    assert_str(mk_buf_str(&out), "--- a\n+++ b\n@@ -1,2 +1,2 @@ [S]\n ${A}\n"
                                 "-Set X ${V}                                       # a:1\n"
                                 "+Set X ${V}                                       # a:1\n");
}

static void config_diff_distant_changes_have_hunks_of_their_own(void **state)
{
    (void)state;
    mk_str text = diff_of("aXbcdefghiYj", "abcdefghij");
    assert_int_equal(text.len > 0, 1);
    assert_non_null(strstr(out.p, "@@ -1,5 +1,4 @@ [S]\n"));
    assert_non_null(strstr(out.p, "@@ -8,5 +7,4 @@ [S]\n"));
}

/* Counts the lines with the mark, and checks that the numbers of removed and added lines fit the texts. */
static size_t count_marks(mk_str text, char mark)
{
    size_t n = 0;
    while (text.len) {
        mk_str line = mk_str_cut(&text, '\n');
        n += line.p[0] == mark && !mk_str_starts(line, MK_STR("---")) && !mk_str_starts(line, MK_STR("+++"));
    }
    return n;
}

static size_t common_length(const char *a, const char *b)
{
    if (!*a || !*b)
        return 0;
    if (*a == *b)
        return 1 + common_length(a + 1, b + 1);
    size_t x = common_length(a + 1, b), y = common_length(a, b + 1);
    return x > y ? x : y;
}

static void config_diff_is_as_short_as_possible(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < ROUNDS; round++) {
        char a[10] = "", b[10] = "";
        for (int i = 0, n = rand() % 9; i < n; i++)
            a[i] = (char)('a' + rand() % 3);
        for (int i = 0, n = rand() % 9; i < n; i++)
            b[i] = (char)('a' + rand() % 3);
        mk_str text = diff_of(a, b);
        size_t common = common_length(a, b);
        assert_int_equal(count_marks(text, '-'), strlen(a) - common);
        assert_int_equal(count_marks(text, '+'), strlen(b) - common);
    }
}

static void config_diff_masks_secrets(void **state)
{
    static const char *const cases[][2] = {
        {"    Password  abc", "    Password  ********"},
        {"    Secret abc def", "    Secret ********"},
        {"    TLSKey /etc/a.key", "    TLSKey /etc/a.key"},
        {"    Password /abc", "    Password ********"},
        {"    Set X-Api-Token \"/abc def\"", "    Set X-Api-Token ********"},
        {"    /api proxy http://host/ token=/abc", "    /api proxy http://host/ token=********"},
        {"    /token/* static", "    /token/* static"},
        {"    Set Authorization \"Bearer x\"", "    Set Authorization ********"},
        {"    /api proxy http://me:pw@host/ token=abc",
         "    /api proxy http://********@host/ token=********"},
        {"    DocumentRoot /srv/a@b", "    DocumentRoot /srv/a@b"},
        {"[SERVER]", "[SERVER]"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_buf_clear(&out);
        mk_config_diff_mask(mk_str_from_c(cases[i][0]), &out);
        assert_str(mk_buf_str(&out), cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(config_diff_of_equal_lines_is_empty, setup, teardown),
        fixture_test(config_diff_shows_lines_with_context_and_positions, setup, teardown),
        fixture_test(config_diff_of_references_shows_that_their_values_differ, setup, teardown),
        fixture_test(config_diff_distant_changes_have_hunks_of_their_own, setup, teardown),
        fixture_test(config_diff_is_as_short_as_possible, setup, teardown),
        fixture_test(config_diff_masks_secrets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
