/* SPDX-License-Identifier: Apache-2.0 */
#include "server/upkeep.h"

#include "unit/folder.h"
#include "unit/test.h"

enum { LOOKED_MS = 2100, SETTLED_MS = 1100 }; /* a little later than it does */

static struct folder folder;
static struct mk_arena arena;
static struct mk_loop loop;
static struct mk_upkeep upkeep;
static struct mk_generation first, second;
static char path[PATH_MAX];
static unsigned n_told;

static void on_change(struct mk_upkeep *u)
{
    assert_ptr_equal(u, &upkeep);
    n_told++;
}

static void watch(struct mk_generation *g)
{
    *g = (struct mk_generation){0};
    assert_true(mk_watched_add(&g->watched, &arena, folder_path(&folder, "a.pem", path)));
}

static int set_up(void **state)
{
    (void)state;
    n_told = 0;
    folder_init(&folder);
    mk_arena_init(&arena, NULL);
    loop.now_ms = 1000;
    mk_timer_wheel_init(&loop.wheel, loop.now_ms);
    mk_upkeep_init(&upkeep, &loop, NULL, on_change);
    folder_add(&folder, "a.pem", MK_STR("one"));
    watch(&first);
    mk_upkeep_follow(&upkeep, &first);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mk_arena_fini(&arena);
    folder_fini(&folder);
    return 0;
}

static void pass(uint32_t ms)
{
    loop.now_ms += ms;
    mk_timer_wheel_turn(&loop.wheel, loop.now_ms);
}

static void unchanged_files_are_not_reported(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++)
        pass(LOOKED_MS);
    assert_int_equal(n_told, 0);
}

static void a_settled_change_is_reported_once(void **state)
{
    (void)state;
    folder_add(&folder, "a.pem", MK_STR("three"));
    pass(LOOKED_MS);
    assert_int_equal(n_told, 0);
    folder_add(&folder, "a.pem", MK_STR("fourteen"));
    pass(SETTLED_MS);
    assert_int_equal(n_told, 0);
    pass(SETTLED_MS);
    assert_int_equal(n_told, 1);
    for (unsigned i = 0; i < 5; i++)
        pass(LOOKED_MS);
    assert_int_equal(n_told, 1);
}

/* As tools do that renew certificates and then send HUP. */
static void files_loaded_before_they_settled_are_not_reported(void **state)
{
    (void)state;
    folder_add(&folder, "a.pem", MK_STR("three"));
    pass(LOOKED_MS);
    watch(&second);
    mk_upkeep_follow(&upkeep, &second);
    for (unsigned i = 0; i < 5; i++)
        pass(LOOKED_MS);
    assert_int_equal(n_told, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unchanged_files_are_not_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_settled_change_is_reported_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_loaded_before_they_settled_are_not_reported, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
