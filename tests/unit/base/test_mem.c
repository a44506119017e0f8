/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include "unit/test.h"

static void mem_alloc_of_zero_bytes_is_not_null(void **state)
{
    (void)state;
    void *a = mk_mem_alloc(0), *b = mk_mem_zalloc(0, 8), *c = mk_mem_zalloc(8, 0),
         *d = mk_mem_realloc(NULL, 0);
    assert_true(a && b && c && d);
    mk_mem_free(a);
    mk_mem_free(b);
    mk_mem_free(c);
    mk_mem_free(d);
    mk_mem_free(NULL);
}

static void mem_realloc_to_zero_bytes_is_not_null(void **state)
{
    (void)state;
    void *p = mk_mem_realloc(mk_mem_alloc(100), 0);
    assert_non_null(p);
    mk_mem_free(p);
}

static void mem_zalloc_returns_zeros(void **state)
{
    (void)state;
    static const char zeros[300];
    char *p = mk_mem_zalloc(100, 3);
    assert_non_null(p);
    assert_memory_equal(p, zeros, sizeof zeros);
    mk_mem_free(p);
}

static void mem_realloc_keeps_the_data(void **state)
{
    (void)state;
    char *p = mk_mem_alloc(4);
    assert_non_null(p);
    memcpy(p, "keep", 4);
    p = mk_mem_realloc(p, 100000);
    assert_non_null(p);
    assert_memory_equal(p, "keep", 4);
    mk_mem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mem_alloc_of_zero_bytes_is_not_null),
        cmocka_unit_test(mem_realloc_to_zero_bytes_is_not_null),
        cmocka_unit_test(mem_zalloc_returns_zeros),
        cmocka_unit_test(mem_realloc_keeps_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
