/* SPDX-License-Identifier: Apache-2.0 */
#include "base/list.h"

#include "unit/test.h"

struct item {
    int number;
    struct mk_list link;
};

static void expect_order(struct mk_list *head, const char *digits)
{
    MK_LIST_EACH_SAFE (at, head) {
        assert_int_equal(MK_LIST_ENTRY(at, struct item, link)->number, *digits - '0');
        assert_ptr_equal(at->next->prev, at);
        assert_ptr_equal(at->prev->next, at);
        digits++;
    }
    assert_int_equal(*digits, '\0');
}

static void fill(struct mk_list *head, struct item *items, int n)
{
    mk_list_init(head);
    for (int i = 0; i < n; i++) {
        items[i].number = i;
        mk_list_add_last(head, &items[i].link);
    }
}

static void list_new_is_empty(void **state)
{
    (void)state;
    struct mk_list head;
    mk_list_init(&head);
    assert_true(mk_list_empty(&head));
    expect_order(&head, "");
}

static void list_keeps_the_order(void **state)
{
    (void)state;
    struct mk_list head;
    struct item items[4];
    fill(&head, items, 4);
    assert_false(mk_list_empty(&head));
    expect_order(&head, "0123");
}

static void list_remove_works_anywhere_and_twice(void **state)
{
    (void)state;
    struct mk_list head;
    struct item items[4];
    fill(&head, items, 4);
    mk_list_remove(&items[2].link);
    expect_order(&head, "013");
    mk_list_remove(&items[2].link);
    expect_order(&head, "013");
    mk_list_remove(&items[0].link);
    mk_list_remove(&items[3].link);
    expect_order(&head, "1");
    mk_list_add_last(&head, &items[0].link);
    expect_order(&head, "10");
    mk_list_remove(&items[1].link);
    mk_list_remove(&items[0].link);
    assert_true(mk_list_empty(&head));
}

static void list_each_safe_allows_removal(void **state)
{
    (void)state;
    struct mk_list head, odd;
    struct item items[6];
    fill(&head, items, 6);
    mk_list_init(&odd);
    MK_LIST_EACH_SAFE (at, &head) {
        if (MK_LIST_ENTRY(at, struct item, link)->number % 2) {
            mk_list_remove(at);
            mk_list_add_last(&odd, at);
        }
    }
    expect_order(&head, "024");
    expect_order(&odd, "135");
    MK_LIST_EACH_SAFE (at, &head)
        mk_list_remove(at);
    assert_true(mk_list_empty(&head));
}

static void list_each_safe_can_be_nested(void **state)
{
    (void)state;
    struct mk_list outer, inner;
    struct item a[2], b[3];
    int n = 0;
    fill(&outer, a, 2);
    fill(&inner, b, 3);
    MK_LIST_EACH_SAFE (at, &outer)
        MK_LIST_EACH_SAFE (in, &inner)
            n += in != at;
    assert_int_equal(n, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_new_is_empty),
        cmocka_unit_test(list_keeps_the_order),
        cmocka_unit_test(list_remove_works_anywhere_and_twice),
        cmocka_unit_test(list_each_safe_allows_removal),
        cmocka_unit_test(list_each_safe_can_be_nested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
