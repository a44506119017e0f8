/* SPDX-License-Identifier: Apache-2.0 */
/* Included by every unit test: cmocka, test cases with fixtures, and comparisons of mk_str. */
#ifndef MK_UNIT_TEST_H
#define MK_UNIT_TEST_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "base/str.h"
#include "unit/harness.h"

/* fixture_test(fn, setup) or fixture_test(fn, setup, teardown): a test case that runs after setup() and
 * before teardown() and the cleanups of its fixtures (unit/harness.h). Both functions may be NULL. */
/* clang-format off */
#define fixture_test(fn, ...)                                                                                \
    {#fn, fn, fixture_setup, fixture_teardown, (void *)(void (*[2])(void)){__VA_ARGS__}}
/* clang-format on */

static inline int fixture_setup(void **state)
{
    void (*const *functions)(void) = *state;
    if (functions[0])
        functions[0]();
    return 0;
}

static inline int fixture_teardown(void **state)
{
    void (*const *functions)(void) = *state;
    if (functions[1])
        functions[1]();
    return harness_teardown(NULL);
}

#define assert_str(actual, expected)                                                                         \
    do {                                                                                                     \
        mk_str mk_actual = (actual), mk_expected = mk_str_from_c(expected);                                  \
        if (!mk_str_eq(mk_actual, mk_expected))                                                              \
            fail_msg("\"%.*s\" is not \"%.*s\"", MK_STR_ARG(mk_actual), MK_STR_ARG(mk_expected));            \
    } while (0)

#define assert_contains(actual, part)                                                                        \
    do {                                                                                                     \
        mk_str mk_actual = (actual), mk_response_body_part = mk_str_from_c(part);                            \
        if (!memmem(mk_actual.p, mk_actual.len, mk_response_body_part.p, mk_response_body_part.len))         \
            fail_msg("\"%.*s\" does not contain \"%.*s\"", MK_STR_ARG(mk_actual),                            \
                     MK_STR_ARG(mk_response_body_part));                                                     \
    } while (0)

#endif
