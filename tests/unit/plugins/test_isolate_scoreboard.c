/* SPDX-License-Identifier: Apache-2.0 */
/* The board of an isolated service: processes that take slots at once. */
#include "unit/test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scoreboard.h"

static struct isolate_scoreboard *new_board(void)
{
    struct isolate_scoreboard *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(b, MAP_FAILED);
    return b;
}

static void test_a_slot_that_is_being_taken_is_no_free_one(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    atomic_store(&b->slots[0].pid, -(int32_t)getppid()); /* it lives, and has not finished */
    assert_ptr_equal(isolate_scoreboard_acquire_slot(b, 7), &b->slots[1]);
    assert_int_equal(atomic_load(&b->slots[1].pid), (int32_t)getpid());
    assert_false(isolate_scoreboard_has_version(b, 7, true));
    assert_true(isolate_scoreboard_has_version(b, 7, false));
    munmap(b, sizeof *b);
}

static void test_the_slot_of_a_process_that_died_taking_it_is_free(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    atomic_store(&b->slots[0].pid, -(int32_t)gone);
    assert_ptr_equal(isolate_scoreboard_acquire_slot(b, 7), &b->slots[0]);
    munmap(b, sizeof *b);
}

static struct isolate_slot *serve(struct isolate_scoreboard *b, uint64_t version)
{
    struct isolate_slot *s = isolate_scoreboard_acquire_slot(b, version);
    assert_non_null(s);
    atomic_store(&s->is_up, 1);
    return s;
}

/* While a group starts again, requests wait for it; but not for ever. */
static void test_the_board_closes_when_no_worker_has_served_for_two_seconds(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    assert_false(isolate_scoreboard_is_down(b, 5000)); /* from now on it counts */
    assert_false(isolate_scoreboard_is_down(b, 7000));
    assert_true(isolate_scoreboard_is_down(b, 7001));
    struct isolate_slot *s = isolate_scoreboard_acquire_slot(b, 7);
    assert_true(isolate_scoreboard_is_down(b, 7002)); /* it has not begun to serve */
    atomic_store(&s->is_up, 1);
    assert_false(isolate_scoreboard_is_down(b, 7003));
    munmap(b, sizeof *b);
}

static void test_a_worker_that_serves_ends_the_time_without_one(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    assert_false(isolate_scoreboard_is_down(b, 5000));
    struct isolate_slot *s = serve(b, 7);
    assert_false(isolate_scoreboard_is_down(b, 9000));
    atomic_store(&s->pid, 0); /* it has ended */
    assert_false(isolate_scoreboard_is_down(b, 9500));
    assert_false(isolate_scoreboard_is_down(b, 11500));
    assert_true(isolate_scoreboard_is_down(b, 11501));
    munmap(b, sizeof *b);
}

static void test_workers_of_a_configuration_are_told_from_others(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    assert_false(isolate_scoreboard_is_serving(b));
    struct isolate_slot *s = isolate_scoreboard_acquire_slot(b, 7);
    assert_false(isolate_scoreboard_is_serving(b));
    assert_false(isolate_scoreboard_has_version(b, 8, false));
    atomic_store(&s->is_up, 1);
    assert_true(isolate_scoreboard_is_serving(b));
    assert_true(isolate_scoreboard_has_version(b, 7, true));
    assert_false(isolate_scoreboard_has_version(b, 8, true));
    isolate_scoreboard_acquire_slot(b, 8);
    assert_true(isolate_scoreboard_has_version(b, 8, false));
    assert_false(isolate_scoreboard_has_version(b, 8, true));
    munmap(b, sizeof *b);
}

static void test_a_slot_taken_again_begins_as_one_that_does_not_serve(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    struct isolate_slot *s = serve(b, 7);
    atomic_store(&s->pid, 0);
    assert_ptr_equal(isolate_scoreboard_acquire_slot(b, 8), s);
    assert_false(isolate_scoreboard_is_serving(b));
    assert_false(isolate_scoreboard_has_version(b, 7, false));
    assert_true(isolate_scoreboard_has_version(b, 8, false));
    munmap(b, sizeof *b);
}

static void test_a_full_board_has_no_slot(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    for (int i = 0; i < ISOLATE_SLOTS; i++)
        assert_ptr_equal(isolate_scoreboard_acquire_slot(b, 7), &b->slots[i]);
    assert_null(isolate_scoreboard_acquire_slot(b, 7));
    atomic_store(&b->slots[ISOLATE_SLOTS - 1].pid, 0);
    assert_ptr_equal(isolate_scoreboard_acquire_slot(b, 7), &b->slots[ISOLATE_SLOTS - 1]);
    munmap(b, sizeof *b);
}

/* The process is there, even if it belongs to another user. */
static void test_a_process_that_we_may_not_signal_lives(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    if (geteuid() != 0)
        skip();
    pid_t child = fork();
    if (child == 0) {
        if (setuid(65534))
            _exit(2);
        atomic_store(&b->slots[0].pid, (int32_t)getppid());
        _exit(isolate_scoreboard_acquire_slot(b, 7) == &b->slots[1] ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    munmap(b, sizeof *b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slot_that_is_being_taken_is_no_free_one),
        cmocka_unit_test(test_the_slot_of_a_process_that_died_taking_it_is_free),
        cmocka_unit_test(test_the_board_closes_when_no_worker_has_served_for_two_seconds),
        cmocka_unit_test(test_a_worker_that_serves_ends_the_time_without_one),
        cmocka_unit_test(test_workers_of_a_configuration_are_told_from_others),
        cmocka_unit_test(test_a_slot_taken_again_begins_as_one_that_does_not_serve),
        cmocka_unit_test(test_a_full_board_has_no_slot),
        cmocka_unit_test(test_a_process_that_we_may_not_signal_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
