/* SPDX-License-Identifier: Apache-2.0 */
#include "os/local_names.h"

#include <stdio.h>
#include <unistd.h>

#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_arena arena;

static void setup(void)
{
    arena_setup(&arena);
}

static size_t count(const struct mk_local_names *names, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < names->n; i++)
        n += strcmp(names->at[i], name) == 0;
    return n;
}

static void local_names_are_unique(void **state)
{
    (void)state;
    struct mk_local_names names;
    assert_true(mk_local_names_collect(&arena, &names));
    assert_string_equal(names.at[0], "localhost");
    assert_int_equal(count(&names, "127.0.0.1"), 1);
    assert_int_equal(count(&names, "::1"), 1);
    for (size_t i = 0; i < names.n; i++) {
        assert_int_equal(count(&names, names.at[i]), 1);
        assert_int_not_equal(strncmp(names.at[i], "fe80:", 5), 0);
    }
}

static void local_names_are_added_once_in_lower_case(void **state)
{
    (void)state;
    struct mk_local_names names = {.n = 0};
    assert_true(mk_local_names_add(&arena, &names, MK_STR("Box")));
    assert_true(mk_local_names_add(&arena, &names, MK_STR("bOX")));
    assert_int_equal(names.n, 1);
    assert_string_equal(names.at[0], "box");
}

static void local_names_number_is_limited(void **state)
{
    (void)state;
    struct mk_local_names names = {.n = 0};
    char buffer[16];
    for (unsigned i = 0; i < MK_LOCAL_NAMES_MAX + 10; i++) {
        snprintf(buffer, sizeof buffer, "n%u", i);
        assert_true(mk_local_names_add(&arena, &names, mk_str_from_c(buffer)));
    }
    assert_int_equal(names.n, MK_LOCAL_NAMES_MAX);
    assert_string_equal(names.at[0], "n0");
}

static void local_hostname_is_that_of_kernel(void **state)
{
    (void)state;
    char buffer[256];
    assert_int_equal(gethostname(buffer, sizeof buffer), 0);
    assert_str(mk_local_hostname(&arena), buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(local_names_are_unique, setup),
        fixture_test(local_names_are_added_once_in_lower_case, setup),
        fixture_test(local_names_number_is_limited, setup),
        fixture_test(local_hostname_is_that_of_kernel, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
