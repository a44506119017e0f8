/* SPDX-License-Identifier: Apache-2.0 */
/* The board of an isolated service: processes that take slots at once. */
#include "unit/test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board.h"

static struct isolate_board *new_board(void)
{
    struct isolate_board *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(b, MAP_FAILED);
    return b;
}

static void test_a_slot_that_is_being_taken_is_no_free_one(void **state)
{
    struct isolate_board *b = new_board();
    (void)state;
    atomic_store(&b->slots[0].pid, -(int32_t)getppid()); /* it lives, and has not finished */
    assert_ptr_equal(isolate_board_take(b, 7), &b->slots[1]);
    assert_int_equal(atomic_load(&b->slots[1].pid), (int32_t)getpid());
    assert_false(isolate_board_has(b, 7, true));
    assert_true(isolate_board_has(b, 7, false));
    munmap(b, sizeof *b);
}

static void test_the_slot_of_a_process_that_died_taking_it_is_free(void **state)
{
    struct isolate_board *b = new_board();
    (void)state;
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    atomic_store(&b->slots[0].pid, -(int32_t)gone);
    assert_ptr_equal(isolate_board_take(b, 7), &b->slots[0]);
    munmap(b, sizeof *b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slot_that_is_being_taken_is_no_free_one),
        cmocka_unit_test(test_the_slot_of_a_process_that_died_taking_it_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
