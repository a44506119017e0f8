/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/freelist.h"

#include <string.h>

#include "unit/test.h"

enum { SIZE = 64 };

static void freelist_reuses_blocks_lifo(void **state)
{
    struct mk_freelist s = {.size = SIZE};
    (void)state;
    void *first = mk_freelist_pop(&s), *second = mk_freelist_pop(&s);
    assert_true(first && second && first != second);
    memset(first, 1, SIZE);
    mk_freelist_push(&s, first);
    mk_freelist_push(&s, second);
    assert_ptr_equal(mk_freelist_pop(&s), second);
    assert_ptr_equal(mk_freelist_pop(&s), first);
    memset(first, 2, SIZE);
    mk_freelist_push(&s, first);
    mk_freelist_push(&s, second);
    mk_freelist_fini(&s);
    assert_int_equal(s.n, 0);
}

static void freelist_keeps_at_most_max_blocks(void **state)
{
    enum { MORE = MK_FREELIST_MAX + 10 };
    void *blocks[MORE];
    struct mk_freelist s = {.size = SIZE};
    (void)state;
    for (unsigned i = 0; i < MORE; i++)
        assert_non_null(blocks[i] = mk_freelist_pop(&s));
    for (unsigned i = 0; i < MORE; i++)
        mk_freelist_push(&s, blocks[i]);
    assert_int_equal(s.n, MK_FREELIST_MAX);
    mk_freelist_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freelist_reuses_blocks_lifo),
        cmocka_unit_test(freelist_keeps_at_most_max_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
