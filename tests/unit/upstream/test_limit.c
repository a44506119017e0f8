/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/limit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "unit/upstream/world.h"

static struct mk_limit limit;
static unsigned n_emptied, last_emptied;

static void on_empty(void *ctx, unsigned row)
{
    (void)ctx;
    n_emptied++;
    last_emptied = row;
}

static int start(void **state)
{
    (void)state;
    limit = (struct mk_limit){.on_empty = on_empty};
    assert_true(mk_limit_open(&limit, NULL));
    mk_limit_reset(&limit, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    munmap(limit.memory, sizeof *limit.memory);
    return 0;
}

static void a_limit_is_a_number_of_connections(void **state)
{
    unsigned slots[3], more, row;
    (void)state;
    assert_true(mk_limit_join(&limit, 0, &row));
    for (unsigned i = 0; i < 3; i++)
        assert_true(mk_limit_claim(&limit, 0, 3, row, &slots[i]));
    assert_false(mk_limit_claim(&limit, 0, 3, row, &more));
    mk_limit_release(&limit, 0, slots[1]);
    assert_true(mk_limit_claim(&limit, 0, 3, row, &more));
    assert_int_equal(more, slots[1]);
}

static void run_worker_that_dies(unsigned index)
{
    unsigned row, slot;
    pid_t pid = fork();
    int status;
    assert_true(pid >= 0);
    if (pid == 0) {
        bool ok = mk_limit_join(&limit, index, &row) && mk_limit_claim(&limit, 0, 1, row, &slot);
        mk_limit_show_waiters(&limit, 0, row, (struct mk_limit_waiter[]){{5, 0}, {0, 0}});
        _exit(!ok);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_dead_worker_gives_back_what_it_held(void **state)
{
    unsigned mine, slot;
    (void)state;
    run_worker_that_dies(0);
    assert_false(mk_limit_claim(&limit, 0, 1, 1, &slot));
    n_emptied = 0;
    mk_limit_reap(&limit);
    assert_int_equal(n_emptied, 1);
    assert_int_equal(last_emptied, 0);
    assert_int_equal(mk_limit_backend(&limit, 0)->waiters[0][0].since_ms, 0);
    assert_true(mk_limit_join(&limit, 1, &mine));
    assert_true(mk_limit_claim(&limit, 0, 1, mine, &slot));
    mk_limit_reap(&limit); /* we live */
    assert_int_equal(mk_limit_backend(&limit, 0)->slots[slot], mine + 1);
}

static void a_worker_that_joins_empties_the_row_of_a_dead_one(void **state)
{
    unsigned row, slot;
    (void)state;
    run_worker_that_dies(0);
    assert_true(mk_limit_join(&limit, 1, &row));
    assert_int_equal(row, 0);
    assert_true(mk_limit_claim(&limit, 0, 1, row, &slot));
}

static void rows_belong_to_workers_that_live(void **state)
{
    unsigned row, other;
    (void)state;
    assert_true(mk_limit_join(&limit, 0, &row));
    assert_true(mk_limit_join(&limit, 0, &other));
    assert_int_not_equal(row, other);
    mk_limit_leave(&limit, row);
    assert_true(mk_limit_join(&limit, 0, &other));
    assert_int_equal(row, other);
}

/* The server has up to 1024 workers, those that end included: 512, and as many at a reload. */
static void every_worker_has_a_row(void **state)
{
    unsigned row;
    (void)state;
    for (unsigned i = 0; i < 1024; i++) {
        assert_true(mk_limit_join(&limit, 0, &row));
        assert_int_equal(row, i);
    }
    assert_false(mk_limit_join(&limit, 0, &row));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_limit_is_a_number_of_connections, start, stop),
        cmocka_unit_test_setup_teardown(a_dead_worker_gives_back_what_it_held, start, stop),
        cmocka_unit_test_setup_teardown(a_worker_that_joins_empties_the_row_of_a_dead_one, start, stop),
        cmocka_unit_test_setup_teardown(rows_belong_to_workers_that_live, start, stop),
        cmocka_unit_test_setup_teardown(every_worker_has_a_row, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
