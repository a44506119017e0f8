/* SPDX-License-Identifier: Apache-2.0 */
#include "text/format.h"

#include <limits.h>
#include <stdio.h>

#include "unit/test.h"

static char buffer[256];
static struct mk_buf out;

static MK_API_PRINTF(1, 2) void add(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    duda_format_append(&out, fmt, args);
    va_end(args);
}

/* Compares the output with that of libc. */
#define CHECK(...)                                                                                           \
    do {                                                                                                     \
        char expected[256];                                                                                  \
        snprintf(expected, sizeof expected, __VA_ARGS__);                                                    \
        out = mk_buf_fixed(buffer, sizeof buffer);                                                           \
        add(__VA_ARGS__);                                                                                    \
        assert_str(mk_buf_str(&out), expected);                                                              \
    } while (0)

static void format_equals_libc(void **state)
{
    (void)state;
    CHECK("no directive at all, %s", "");
    CHECK("%s", "");
    CHECK("hello %s\n", "world");
    CHECK("%s%s%s", "a", "", "c");
    CHECK("%d %d %d", 0, -1, 1);
    CHECK("%d|%d", INT_MIN, INT_MAX);
    CHECK("%u|%u", 0u, UINT_MAX);
    CHECK("%zu|%zu", (size_t)0, SIZE_MAX);
    CHECK("%d%%", 50);
    CHECK("%%%s%%", "x");
    CHECK("%s is %5.2f of %zu, %c%04x", "this", 1.5, (size_t)7, 'c', 0xab);
    CHECK("%s, and %.*s", "first", 2, "abc");
    CHECK("%-4d|%4s|%ld", 1, "x", -5L);
    CHECK("%ld|%ld|%lu", LONG_MIN, LONG_MAX, ULONG_MAX);
    CHECK("%lld|%lld|%llu", LLONG_MIN, LLONG_MAX, ULLONG_MAX);
    CHECK("%zd|%zu", (ssize_t)-1, SIZE_MAX);
    CHECK("%d %lld %s %lu %u", 1, -2LL, "three", 4UL, 5U);
    CHECK("%lx|%ls|%hd", 255UL, L"wide", (short)-3);
    CHECK("%zu, %zd and %zx", (size_t)1, (ssize_t)-2, (size_t)0xab);
}

static void format_null_string_prints_null(void **state)
{
    (void)state;
    const char *volatile none = NULL;
    out = mk_buf_fixed(buffer, sizeof buffer);
    add("%s", none);
    assert_str(mk_buf_str(&out), "(null)");
}

static void format_overflow_is_reported(void **state)
{
    (void)state;
    out = mk_buf_fixed(buffer, 4);
    add("%s", "12345");
    assert_true(out.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_equals_libc),
        cmocka_unit_test(format_null_string_prints_null),
        cmocka_unit_test(format_overflow_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
