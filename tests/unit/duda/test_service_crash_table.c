/* SPDX-License-Identifier: Apache-2.0 */
/* The table in which workers record the handler that they run: only entries left by a dead worker count as
 * crashes. */
#include "service/crash_table.h"

#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

static struct duda_crash_table crash_table;
static const struct duda_crash_policy rules = {.crashes = 3, .window_ms = 60000, .closed_ms = 60000};

/* Fake of the server's function. */
void *mk_config_shared(struct mk_config *config, const char *name, size_t size)
{
    (void)config, (void)name, (void)size;
    return NULL;
}

static void begin(void)
{
    memset(&crash_table, 0, sizeof crash_table);
}

/* The names differ in a single character: otherwise a crash of one route would disable another. */
static void crash_table_each_route_has_its_own_slot(void **state)
{
    static const mk_str names[] = {MK_STR_INIT("shop GET /"), MK_STR_INIT("chop GET /"),
                                   MK_STR_INIT("shop PET /"), MK_STR_INIT("shop GET ."),
                                   MK_STR_INIT("shop GET"),   MK_STR_INIT("")};
    struct duda_route_slot *route_slots[MK_LEN(names)];
    (void)state;
    begin();
    for (size_t i = 0; i < MK_LEN(names); i++) {
        route_slots[i] = duda_crash_table_add_route(&crash_table, names[i]);
        assert_non_null(route_slots[i]);
        assert_string_equal(route_slots[i]->name, names[i].p);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(route_slots[i], route_slots[k]);
    }
    for (size_t i = 0; i < MK_LEN(names); i++)
        assert_ptr_equal(duda_crash_table_add_route(&crash_table, names[i]), route_slots[i]);
}

static void crash_table_live_worker_keeps_slot(void **state)
{
    bool closes;
    (void)state;
    begin();
    struct duda_route_slot *route_slot = duda_crash_table_add_route(&crash_table, MK_STR("shop GET /"));
    struct duda_crash_slot *old = duda_crash_table_acquire_slot(&crash_table, 0);
    duda_crash_slot_set_running(old, &crash_table, route_slot);
    struct duda_crash_slot *fresh = duda_crash_table_acquire_slot(&crash_table, 0);
    assert_non_null(fresh);
    assert_ptr_not_equal(old, fresh);
    assert_null(duda_crash_table_count_crash(&crash_table, fresh, &rules, 1000, &closes));
    duda_crash_slot_set_running(old, &crash_table, NULL);
    duda_crash_slot_set_running(fresh, &crash_table, route_slot);
    duda_crash_slot_release(old);
    assert_int_equal(atomic_load(&fresh->runs), (uint32_t)(route_slot - crash_table.slots) + 1);
    assert_ptr_equal(duda_crash_table_acquire_slot(&crash_table, 0), old);
}

static void crash_table_slot_of_dead_worker_is_inherited(void **state)
{
    (void)state;
    begin();
    struct duda_route_slot *route_slot = duda_crash_table_add_route(&crash_table, MK_STR("shop GET /"));
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    atomic_store(&crash_table.crash_slots[0][0].pid, pid);
    duda_crash_slot_set_running(&crash_table.crash_slots[0][0], &crash_table, route_slot);
    bool closes;
    assert_ptr_equal(duda_crash_table_acquire_slot(&crash_table, 0), &crash_table.crash_slots[0][1]);
    struct duda_crash_slot *crash_slot = duda_crash_table_take_dead_slot(&crash_table, 0);
    assert_ptr_equal(crash_slot, &crash_table.crash_slots[0][0]);
    assert_null(duda_crash_table_take_dead_slot(&crash_table, 0));
    assert_ptr_equal(duda_crash_table_count_crash(&crash_table, crash_slot, &rules, 1000, &closes),
                     route_slot);
    assert_false(closes);
    assert_null(duda_crash_table_count_crash(&crash_table, crash_slot, &rules, 1000, &closes));
    duda_crash_slot_release(crash_slot);
    assert_ptr_equal(duda_crash_table_acquire_slot(&crash_table, 0), crash_slot);
}

/* After a reload, the slot of the drained worker is free, but its successor's slot is not. */
static void crash_table_dead_worker_is_found_after_free_slot(void **state)
{
    (void)state;
    begin();
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    atomic_store(&crash_table.crash_slots[0][2].pid, pid);
    assert_ptr_equal(duda_crash_table_take_dead_slot(&crash_table, 0), &crash_table.crash_slots[0][2]);
    assert_null(duda_crash_table_take_dead_slot(&crash_table, 1));
    assert_null(duda_crash_table_take_dead_slot(&crash_table, DUDA_CRASH_WORKERS_MAX));
    assert_null(duda_crash_table_take_dead_slot(NULL, 0));
}

static void crash_table_peers_are_live_workers(void **state)
{
    (void)state;
    begin();
    assert_false(duda_crash_table_has_live_peer(&crash_table, 0));
    assert_non_null(duda_crash_table_acquire_slot(&crash_table, 0));
    assert_false(duda_crash_table_has_live_peer(&crash_table, 0));
    atomic_store(&crash_table.crash_slots[0][1].pid, getppid());
    assert_true(duda_crash_table_has_live_peer(&crash_table, 0));
    assert_false(duda_crash_table_has_live_peer(&crash_table, 1));
    duda_crash_slot_release(&crash_table.crash_slots[0][1]);
    assert_false(duda_crash_table_has_live_peer(&crash_table, 0));
}

static void crash_table_full_returns_no_slot(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < DUDA_CRASH_SLOTS_PER_WORKER; i++)
        assert_non_null(duda_crash_table_acquire_slot(&crash_table, 1));
    assert_null(duda_crash_table_acquire_slot(&crash_table, 1));
    assert_null(duda_crash_table_acquire_slot(&crash_table, DUDA_CRASH_WORKERS_MAX));
    assert_null(duda_crash_table_acquire_slot(NULL, 0));
    duda_crash_slot_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_table_each_route_has_its_own_slot),
        cmocka_unit_test(crash_table_live_worker_keeps_slot),
        cmocka_unit_test(crash_table_slot_of_dead_worker_is_inherited),
        cmocka_unit_test(crash_table_dead_worker_is_found_after_free_slot),
        cmocka_unit_test(crash_table_peers_are_live_workers),
        cmocka_unit_test(crash_table_full_returns_no_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
