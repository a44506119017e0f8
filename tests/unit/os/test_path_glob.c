/* SPDX-License-Identifier: Apache-2.0 */
#include "os/path_glob.h"

#include <limits.h>

#include "unit/fixtures.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct folder folder;
static unsigned n_found, wanted;

static void setup(void)
{
    folder_setup(&folder);
    n_found = 0;
    wanted = UINT_MAX;
}

static void path_glob_matches_names(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        {"*", "a", true},
        {"*", "", true},
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"?", "a", true},
        {"?", "ab", false},
        {"*.conf", "a.conf", true},
        {"*.conf", "conf", false},
        {"a*b*c", "axbybzc", true},
        {"a*b*c", "axbyb", false},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[^a]", "a", false},
        {"[]]", "]", true},
        {"[!]]", "]", false},
        {"[a-]", "-", true},
        {"[a", "[a", true},
        {"[", "[", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a\\", "a\\", true},
        {"*", ".a", false},
        {"?a", ".a", false},
        {"[.]a", ".a", false},
        {".*", ".a", true},
        {"\\.a", ".a", true},
        {"A", "a", false},
        {"***a", "a", true},
        {"*a*", "bab", true},
        {"*[", "a[", true},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++)
        if (mk_path_glob_matches(mk_str_from_c(cases[i].pattern), mk_str_from_c(cases[i].name)) !=
            cases[i].matches)
            fail_msg("`%s`, `%s`", cases[i].pattern, cases[i].name);
}

static bool count(void *data, mk_str path)
{
    (void)data;
    assert_true(mk_str_starts(path, mk_str_from_c(folder.path)) && path.p[path.len] == '\0');
    return ++n_found < wanted;
}

/* Returns the number of paths below the folder that match the pattern. */
static unsigned n_matches(const char *pattern)
{
    char whole[PATH_MAX];
    int len = snprintf(whole, sizeof whole, "%s/%s", folder.path, pattern);
    n_found = 0;
    assert_int_equal(mk_path_glob(mk_str_of(whole, (size_t)len), count, NULL), 0);
    return n_found;
}

static void path_glob_finds_files(void **state)
{
    (void)state;
    folder_add_folder(&folder, "a");
    folder_add_folder(&folder, "b");
    folder_add(&folder, "a/one.conf", MK_STR(""));
    folder_add(&folder, "a/two.conf", MK_STR(""));
    folder_add(&folder, "b/one.conf", MK_STR(""));
    folder_add(&folder, "b/.conf", MK_STR(""));
    assert_int_equal(n_matches("*"), 2);
    assert_int_equal(n_matches("a/*.conf"), 2);
    assert_int_equal(n_matches("*/one.conf"), 2);
    assert_int_equal(n_matches("*//[a-z]*"), 3);
    assert_int_equal(n_matches("a/one.conf"), 1);
    assert_int_equal(n_matches("a/three.conf"), 0);
    assert_int_equal(n_matches("c/*"), 0);
    assert_int_equal(n_matches("a/one.conf/*"), 0);
    assert_int_equal(n_matches("\\a/o*"), 1);
    wanted = 1;
    assert_int_equal(n_matches("*/*"), 1);
}

static void path_glob_long_patterns_are_rejected(void **state)
{
    char pattern[PATH_MAX + 1];
    (void)state;
    memset(pattern, 'a', sizeof pattern);
    assert_int_equal(mk_path_glob(mk_str_of(pattern, PATH_MAX), count, NULL), -ENAMETOOLONG);
    assert_int_equal(mk_path_glob(mk_str_of(pattern, PATH_MAX - 1), count, NULL), 0);
    assert_int_equal(n_found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_glob_matches_names),
        fixture_test(path_glob_finds_files, setup),
        fixture_test(path_glob_long_patterns_are_rejected, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
