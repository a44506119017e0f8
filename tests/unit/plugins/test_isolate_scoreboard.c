/* SPDX-License-Identifier: Apache-2.0 */
/* The scoreboard of an isolated service: processes acquire slots concurrently. */
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

static void scoreboard_slot_being_acquired_is_not_free(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    atomic_store(&b->slots[0].pid, -(int32_t)getppid()); /* alive, and still acquiring the slot */
    assert_ptr_equal(isolate_scoreboard_acquire_slot(b, 7), &b->slots[1]);
    assert_int_equal(atomic_load(&b->slots[1].pid), (int32_t)getpid());
    assert_false(isolate_scoreboard_serves_version(b, 7));
    munmap(b, sizeof *b);
}

/* Returns the process ID of a process that has exited. */
static int32_t exited_pid(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return (int32_t)pid;
}

static void scoreboard_slot_of_process_killed_while_acquiring_is_free(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    atomic_store(&b->slots[0].pid, -exited_pid());
    assert_ptr_equal(isolate_scoreboard_acquire_slot(b, 7), &b->slots[0]);
    munmap(b, sizeof *b);
}

/* Otherwise the slot would count as alive again once another process has the same process ID. */
static void scoreboard_slot_of_dead_worker_is_freed_at_once(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    for (int i = 1; i < 3; i++) {
        atomic_store(&b->slots[i].pid, exited_pid());
        atomic_store(&b->slots[i].state, i == 1 ? ISOLATE_WORKER_SERVES : ISOLATE_WORKER_STARTS);
    }
    assert_false(isolate_scoreboard_is_serving(b)); /* a public worker looks for serving workers */
    assert_int_equal(atomic_load(&b->slots[1].pid), 0);
    assert_ptr_equal(isolate_scoreboard_acquire_slot(b, 7), &b->slots[0]); /* another worker starts */
    assert_int_equal(atomic_load(&b->slots[2].pid), 0);
    munmap(b, sizeof *b);
}

static struct isolate_slot *serve(struct isolate_scoreboard *b, uint64_t version)
{
    struct isolate_slot *s = isolate_scoreboard_acquire_slot(b, version);
    assert_non_null(s);
    atomic_store(&s->state, ISOLATE_WORKER_SERVES);
    return s;
}

/* While a group restarts, requests wait for it, but for a limited time. */
static void scoreboard_is_down_after_two_seconds_without_worker(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    assert_false(isolate_scoreboard_update_down(b, 5000)); /* starts the countdown */
    assert_false(isolate_scoreboard_update_down(b, 7000));
    assert_true(isolate_scoreboard_update_down(b, 7001));
    struct isolate_slot *s = isolate_scoreboard_acquire_slot(b, 7);
    assert_true(isolate_scoreboard_update_down(b, 7002)); /* the worker does not serve yet */
    atomic_store(&s->state, ISOLATE_WORKER_SERVES);
    assert_false(isolate_scoreboard_update_down(b, 7003));
    munmap(b, sizeof *b);
}

static void scoreboard_serving_worker_resets_countdown(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    assert_false(isolate_scoreboard_update_down(b, 5000));
    struct isolate_slot *s = serve(b, 7);
    assert_false(isolate_scoreboard_update_down(b, 9000));
    atomic_store(&s->pid, 0); /* the worker has exited */
    assert_false(isolate_scoreboard_update_down(b, 9500));
    assert_false(isolate_scoreboard_update_down(b, 11500));
    assert_true(isolate_scoreboard_update_down(b, 11501));
    munmap(b, sizeof *b);
}

static void scoreboard_draining_worker_does_not_serve(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    struct isolate_slot *s = serve(b, 7);
    assert_false(isolate_scoreboard_is_draining(b));
    atomic_store(&s->state, ISOLATE_WORKER_DRAINS);
    assert_true(isolate_scoreboard_is_draining(b));
    assert_false(isolate_scoreboard_is_serving(b));
    atomic_store(&s->pid, 0); /* the worker has exited */
    assert_false(isolate_scoreboard_is_draining(b));
    munmap(b, sizeof *b);
}

static void scoreboard_distinguishes_configuration_versions(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    assert_false(isolate_scoreboard_is_serving(b));
    struct isolate_slot *s = isolate_scoreboard_acquire_slot(b, 7);
    assert_false(isolate_scoreboard_is_serving(b));
    assert_false(isolate_scoreboard_serves_version(b, 8));
    atomic_store(&s->state, ISOLATE_WORKER_SERVES);
    assert_true(isolate_scoreboard_is_serving(b));
    assert_true(isolate_scoreboard_serves_version(b, 7));
    isolate_scoreboard_acquire_slot(b, 8);
    assert_false(isolate_scoreboard_serves_version(b, 8)); /* it may still fail to start */
    munmap(b, sizeof *b);
}

static void scoreboard_reacquired_slot_is_not_serving(void **state)
{
    struct isolate_scoreboard *b = new_board();
    (void)state;
    struct isolate_slot *s = serve(b, 7);
    atomic_store(&s->pid, 0);
    assert_ptr_equal(isolate_scoreboard_acquire_slot(b, 8), s);
    assert_false(isolate_scoreboard_is_serving(b));
    assert_false(isolate_scoreboard_serves_version(b, 7));
    assert_false(isolate_scoreboard_serves_version(b, 8));
    munmap(b, sizeof *b);
}

static void scoreboard_full_returns_no_slot(void **state)
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

/* kill(pid, 0) fails with EPERM for a process of another user, which is alive nevertheless. */
static void scoreboard_process_of_other_user_counts_as_alive(void **state)
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
        cmocka_unit_test(scoreboard_slot_being_acquired_is_not_free),
        cmocka_unit_test(scoreboard_slot_of_process_killed_while_acquiring_is_free),
        cmocka_unit_test(scoreboard_slot_of_dead_worker_is_freed_at_once),
        cmocka_unit_test(scoreboard_is_down_after_two_seconds_without_worker),
        cmocka_unit_test(scoreboard_serving_worker_resets_countdown),
        cmocka_unit_test(scoreboard_draining_worker_does_not_serve),
        cmocka_unit_test(scoreboard_distinguishes_configuration_versions),
        cmocka_unit_test(scoreboard_reacquired_slot_is_not_serving),
        cmocka_unit_test(scoreboard_full_returns_no_slot),
        cmocka_unit_test(scoreboard_process_of_other_user_counts_as_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
