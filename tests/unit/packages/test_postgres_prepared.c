/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared statements that a server keeps for a connection. */
#include <postgres/prepared.h>
#include <stdio.h>

#include "unit/test.h"

static struct postgres_prepared_list list;
static char name[POSTGRES_NAME_MAX];

static void setup(void)
{
    postgres_prepared_init(&list);
}

static void teardown(void)
{
    postgres_prepared_clear(&list);
}

static struct postgres_prepared *add(const char *text)
{
    return postgres_prepared_add(&list, mk_str_from_c(text));
}

static void prepared_statement_is_found_by_text(void **state)
{
    (void)state;
    struct postgres_prepared *a = add("SELECT 1"), *b = add("SELECT 2");
    assert_ptr_equal(postgres_prepared_find(&list, MK_STR("SELECT 2")), b);
    assert_ptr_equal(postgres_prepared_find(&list, MK_STR("SELECT 1")), a);
    assert_null(postgres_prepared_find(&list, MK_STR("SELECT")));
    assert_string_not_equal(a->name, b->name);
    a->is_dead = true;
    assert_null(postgres_prepared_find(&list, MK_STR("SELECT 1")));
}

static void prepared_names_differ_between_connections(void **state)
{
    (void)state;
    struct postgres_prepared_list other;
    postgres_prepared_init(&other);
    struct postgres_prepared *a = add("SELECT 1"), *b = postgres_prepared_add(&other, MK_STR("SELECT 1"));
    assert_string_not_equal(a->name, b->name);
    assert_true(strlen(a->name) < POSTGRES_NAME_MAX - 1);
    postgres_prepared_clear(&other);
}

static void prepared_number_is_limited(void **state)
{
    char text[20];
    (void)state;
    for (int i = 0; i < POSTGRES_PREPARED_MAX; i++) {
        snprintf(text, sizeof text, "SELECT %d", i);
        assert_non_null(add(text));
    }
    assert_null(add("SELECT x"));
    assert_non_null(postgres_prepared_find(&list, MK_STR("SELECT 0")));
}

static void prepared_sweep_returns_names_to_deallocate(void **state)
{
    (void)state;
    struct postgres_prepared *all[] = {add("a"), add("b"), add("c"), add("d")};
    char names[2][POSTGRES_NAME_MAX];
    assert_false(postgres_prepared_sweep(&list, name));
    all[0]->is_dead = all[1]->is_dead = all[3]->is_dead = true;
    all[1]->is_kept = all[2]->is_kept = all[3]->is_kept = true;
    memcpy(names, (const char[2][POSTGRES_NAME_MAX]){"", ""}, sizeof names);
    memcpy(names[0], all[1]->name, sizeof names[0]);
    memcpy(names[1], all[3]->name, sizeof names[1]);
    for (int i = 0; i < 2; i++) {
        assert_true(postgres_prepared_sweep(&list, name));
        assert_true(strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0);
    }
    assert_false(postgres_prepared_sweep(&list, name));
    assert_int_equal(list.n, 1);
    assert_non_null(postgres_prepared_find(&list, MK_STR("c")));
}

static void prepared_is_disabled_if_server_keeps_forgetting(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10; i++) { /* the server sometimes forgets statements, as after DISCARD ALL */
        struct postgres_prepared *p = add("a");
        p->is_kept = true;
        assert_false(postgres_prepared_forget_all(&list, p, 1000000 + i * 100000));
        assert_true(p->is_dead && !p->is_kept);
        assert_false(postgres_prepared_forget_all(
            &list, p, 1000000 + i * 100000)); /* another statement in flight also fails */
        assert_false(postgres_prepared_sweep(&list, name));
    }
    assert_false(list.is_disabled);
    uint64_t now = 9000000;
    assert_false(postgres_prepared_forget_all(&list, add("a"), now));
    assert_false(postgres_prepared_forget_all(&list, add("b"), now + 1));
    struct postgres_prepared *both[] = {add("c"), add("d")};
    assert_true(postgres_prepared_forget_all(&list, both[0], now + 2));
    assert_true(list.is_disabled && both[1]->is_dead);
    assert_null(add("e"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(prepared_statement_is_found_by_text, setup, teardown),
        fixture_test(prepared_names_differ_between_connections, setup, teardown),
        fixture_test(prepared_number_is_limited, setup, teardown),
        fixture_test(prepared_sweep_returns_names_to_deallocate, setup, teardown),
        fixture_test(prepared_is_disabled_if_server_keeps_forgetting, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
