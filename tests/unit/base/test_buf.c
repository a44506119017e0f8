/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdlib.h>

#include "unit/test.h"

static void buf_empty_has_no_memory(void **state)
{
    (void)state;
    struct mk_buf b = mk_buf_growing(100);
    assert_null(b.p);
    assert_int_equal(b.cap, 0);
    assert_str(mk_buf_str(&b), "");
    assert_non_null(mk_buf_str(&b).p);
    mk_buf_add(&b, MK_STR_NULL);
    assert_null(b.p);
    assert_false(b.failed);
    mk_buf_free(&b);
}

static void buf_additions_are_concatenated(void **state)
{
    (void)state;
    struct mk_buf b = mk_buf_growing(1000);
    mk_buf_add(&b, MK_STR("HTTP/1.1"));
    mk_buf_add_char(&b, ' ');
    mk_buf_add_num(&b, 200);
    mk_buf_add(&b, MK_STR(""));
    mk_buf_addf(&b, " %s-%d-", "ok", 5);
    mk_buf_add(&b, MK_STR("beef"));
    mk_buf_add(&b, MK_STR("\0!"));
    assert_int_equal(b.len, 24);
    assert_memory_equal(b.p, "HTTP/1.1 200 ok-5-beef\0!", 24);
    assert_false(b.failed);
    mk_buf_free(&b);
}

static void buf_grows_up_to_its_limit(void **state)
{
    (void)state;
    enum { LIMIT = 1000 };
    struct mk_buf b = mk_buf_growing(LIMIT);
    for (int i = 0; i < LIMIT; i++)
        mk_buf_add_char(&b, (char)('a' + i % 26));
    assert_false(b.failed);
    assert_int_equal(b.len, LIMIT);
    assert_true(b.cap <= LIMIT);
    for (int i = 0; i < LIMIT; i++)
        assert_int_equal(b.p[i], 'a' + i % 26);
    mk_buf_add_char(&b, 'x');
    assert_true(b.failed);
    assert_int_equal(b.len, LIMIT);
    mk_buf_free(&b);
}

static void buf_overflow_is_sticky(void **state)
{
    (void)state;
    char buffer[8];
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_buf_add(&b, MK_STR("12345"));
    mk_buf_add(&b, MK_STR("6789"));
    assert_true(b.failed);
    mk_buf_add(&b, MK_STR("6"));
    mk_buf_add_char(&b, '6');
    mk_buf_add_num(&b, 6);
    mk_buf_addf(&b, "%d", 6);
    assert_false(mk_buf_reserve(&b, 0));
    assert_str(mk_buf_str(&b), "12345");
    mk_buf_clear(&b);
    assert_false(b.failed);
    mk_buf_add(&b, MK_STR("12345678"));
    assert_false(b.failed);
    assert_str(mk_buf_str(&b), "12345678");
}

static void buf_fixed_memory_is_not_replaced_or_freed(void **state)
{
    (void)state;
    char *buffer = malloc(16);
    assert_non_null(buffer);
    struct mk_buf b = mk_buf_fixed(buffer, 16);
    mk_buf_addf(&b, "%016d", 1);
    assert_false(b.failed);
    assert_str(mk_buf_str(&b), "0000000000000001");
    mk_buf_add_char(&b, 'x');
    assert_true(b.failed);
    mk_buf_free(&b);
    assert_ptr_equal(b.p, buffer);
    assert_int_equal(b.cap, 16);
    assert_int_equal(b.len, 0);
    assert_false(b.failed);
    mk_buf_add(&b, MK_STR("usable"));
    assert_str(mk_buf_str(&b), "usable");
    free(buffer);

    struct mk_buf none = mk_buf_fixed(NULL, 0);
    mk_buf_add_char(&none, 'x');
    assert_true(none.failed);
}

static void buf_impossible_size_fails(void **state)
{
    (void)state;
    struct mk_buf b = mk_buf_growing(SIZE_MAX);
    mk_buf_add_char(&b, 'x');
    assert_false(mk_buf_reserve(&b, SIZE_MAX));
    assert_true(b.failed);
    assert_str(mk_buf_str(&b), "x");
    mk_buf_free(&b);
}

static void buf_reserved_memory_is_usable(void **state)
{
    (void)state;
    struct mk_buf b = mk_buf_growing(10000);
    assert_true(mk_buf_reserve(&b, 5000));
    assert_true(b.cap >= 5000);
    memset(b.p, 'r', 5000);
    char *p = b.p;
    b.len = 4000;
    assert_true(mk_buf_reserve(&b, 1000));
    assert_ptr_equal(b.p, p);
    assert_true(mk_buf_reserve(&b, 6000));
    assert_true(b.cap - b.len >= 6000);
    assert_int_equal(b.p[3999], 'r');
    assert_false(mk_buf_reserve(&b, 6001));
    mk_buf_free(&b);
}

/* Covers lengths around the limit of one-pass printing. */
static void buf_addf_works_around_the_one_pass_limit(void **state)
{
    (void)state;
    for (int len = 250; len < 262; len++) {
        struct mk_buf b = mk_buf_growing(1000);
        mk_buf_add(&b, MK_STR("<"));
        mk_buf_addf(&b, "%0*d", len, 42);
        mk_buf_add(&b, MK_STR(">"));
        assert_false(b.failed);
        assert_int_equal(b.len, len + 2);
        assert_str(mk_str_skip(mk_buf_str(&b), b.len - 4), "042>");
        mk_buf_free(&b);
    }
}

static void buf_addf_can_fill_a_fixed_buffer(void **state)
{
    (void)state;
    for (int len = 2; len < 600; len += 2) {
        char *buffer = malloc((size_t)len);
        assert_non_null(buffer);
        struct mk_buf b = mk_buf_fixed(buffer, (size_t)len);
        mk_buf_addf(&b, "%*d", len, 42);
        if (b.failed || b.len != (size_t)len || b.p[len - 1] != '2')
            fail_msg("%d bytes do not fit into %d", len, len);
        mk_buf_clear(&b);
        mk_buf_addf(&b, "%*d", len + 1, 42);
        assert_true(b.failed);
        assert_int_equal(b.len, 0);
        free(buffer);
    }
}

static void buf_consume_moves_the_rest_to_the_front(void **state)
{
    (void)state;
    struct mk_buf b = mk_buf_growing(1000);
    mk_buf_add(&b, MK_STR("first second"));
    mk_buf_consume(&b, 0);
    assert_str(mk_buf_str(&b), "first second");
    mk_buf_consume(&b, 6);
    assert_str(mk_buf_str(&b), "second");
    mk_buf_consume(&b, 6);
    assert_str(mk_buf_str(&b), "");
    mk_buf_consume(&b, 0);
    mk_buf_add(&b, MK_STR("again"));
    assert_str(mk_buf_str(&b), "again");
    mk_buf_free(&b);
}

static void buf_freed_can_be_filled_again(void **state)
{
    (void)state;
    struct mk_buf b = mk_buf_growing(4);
    mk_buf_add(&b, MK_STR("12345"));
    assert_true(b.failed);
    mk_buf_free(&b);
    assert_null(b.p);
    mk_buf_add(&b, MK_STR("1234"));
    assert_false(b.failed);
    assert_str(mk_buf_str(&b), "1234");
    mk_buf_free(&b);
    mk_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buf_empty_has_no_memory),
        cmocka_unit_test(buf_additions_are_concatenated),
        cmocka_unit_test(buf_grows_up_to_its_limit),
        cmocka_unit_test(buf_overflow_is_sticky),
        cmocka_unit_test(buf_fixed_memory_is_not_replaced_or_freed),
        cmocka_unit_test(buf_impossible_size_fails),
        cmocka_unit_test(buf_reserved_memory_is_usable),
        cmocka_unit_test(buf_addf_works_around_the_one_pass_limit),
        cmocka_unit_test(buf_addf_can_fill_a_fixed_buffer),
        cmocka_unit_test(buf_consume_moves_the_rest_to_the_front),
        cmocka_unit_test(buf_freed_can_be_filled_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
