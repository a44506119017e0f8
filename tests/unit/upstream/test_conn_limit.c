/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/conn_limit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "unit/upstream/fake_worker.h"

static struct mk_conn_limit limit;
static unsigned n_emptied, last_emptied;

static void on_empty(void *ctx, unsigned row)
{
    (void)ctx;
    n_emptied++;
    last_emptied = row;
}

/* Workers are threads. */
static void setup(void)
{
    limit = (struct mk_conn_limit){.on_empty = on_empty};
    assert_true(mk_conn_limit_init(&limit, NULL));
    mk_conn_limit_reset_backend(&limit, 0);
}

/* Workers are processes. */
static void setup_processes(void)
{
    setup();
    assert_true(mk_conn_limit_open_fds(&limit, NULL));
}

static void teardown(void)
{
    munmap(limit.memory, sizeof *limit.memory);
    mk_fd_close(&limit.lock_fd);
    for (unsigned i = 0; i < MK_CONN_LIMIT_EVENTS; i++)
        mk_fd_close(&limit.events[i]);
}

static void conn_limit_bounds_number_of_connections(void **state)
{
    unsigned slots[3], more, row;
    (void)state;
    assert_true(mk_conn_limit_acquire_row(&limit, &row));
    for (unsigned i = 0; i < 3; i++)
        assert_true(mk_conn_limit_acquire_slot(&limit, 0, 3, row, &slots[i]));
    assert_false(mk_conn_limit_acquire_slot(&limit, 0, 3, row, &more));
    mk_conn_limit_release_slot(&limit, 0, slots[1]);
    assert_true(mk_conn_limit_acquire_slot(&limit, 0, 3, row, &more));
    assert_int_equal(more, slots[1]);
}

/* Starts a process that holds the only slot and waits for another one until it is killed. */
static pid_t start_worker(void)
{
    int ready[2];
    char c = 0;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        unsigned row, slot;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!mk_conn_limit_acquire_row(&limit, &row) || !mk_conn_limit_acquire_slot(&limit, 0, 1, row, &slot))
            _exit(1);
        mk_conn_limit_publish_waiters(&limit, 0, row, (struct mk_conn_limit_waiter[]){{5, 0}, {0, 0}}, false);
        (void)!write(ready[1], &c, 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_worker(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void conn_limit_dead_worker_slots_are_freed(void **state)
{
    unsigned mine, slot;
    (void)state;
    pid_t pid = start_worker();
    assert_true(mk_conn_limit_acquire_row(&limit, &mine));
    assert_int_equal(mine, 1);
    mk_conn_limit_free_dead_rows(&limit, mine); /* frees nothing, because the worker is alive */
    assert_false(mk_conn_limit_acquire_slot(&limit, 0, 1, mine, &slot));
    mk_conn_limit_publish_waiters(&limit, 0, mine, (struct mk_conn_limit_waiter[]){{9, 0}, {0, 0}}, false);
    end_worker(pid);
    (void)was_woken(&limit, mine);
    n_emptied = 0;
    mk_conn_limit_free_dead_rows(&limit, mine);
    assert_int_equal(n_emptied, 1);
    assert_int_equal(last_emptied, 0);
    assert_int_equal(mk_conn_limit_backend(&limit, 0)->waiters[0][0].since_ms, 0);
    assert_true(was_woken(&limit, mine));
    assert_true(mk_conn_limit_acquire_slot(&limit, 0, 1, mine, &slot));
    mk_conn_limit_free_dead_rows(&limit, mine); /* frees nothing, because this process is alive */
    assert_int_equal(mk_conn_limit_backend(&limit, 0)->slots[slot], mine + 1);
}

static void conn_limit_joining_worker_clears_row_of_dead_one(void **state)
{
    unsigned row, slot;
    (void)state;
    end_worker(start_worker());
    assert_true(mk_conn_limit_acquire_row(&limit, &row));
    assert_int_equal(row, 0);
    assert_true(mk_conn_limit_acquire_slot(&limit, 0, 1, row, &slot));
}

/* Starts an unrelated process with this ID. Returns -1 if the system does not let us choose an ID. */
static pid_t start_with_id(pid_t id)
{
    for (int i = 0; i < 20; i++) {
        FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
        if (!last)
            return -1;
        (void)fprintf(last, "%d", (int)id - 1);
        if (fclose(last))
            return -1;
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                pause();
        if (pid == id)
            return pid;
        end_worker(pid);
    }
    return -1;
}

static void conn_limit_reused_process_id_does_not_hide_dead_worker(void **state)
{
    unsigned mine, slot;
    (void)state;
    pid_t pid = start_worker();
    end_worker(pid);
    pid_t other = start_with_id(pid);
    if (other < 0)
        skip();
    mine = 5; /* an unused row: mk_conn_limit_free_dead_rows() must free the row of the dead worker */
    mk_conn_limit_free_dead_rows(&limit, mine);
    assert_true(mk_conn_limit_acquire_slot(&limit, 0, 1, mine, &slot));
    end_worker(other);
}

static void conn_limit_released_row_is_reused(void **state)
{
    unsigned row, other;
    (void)state;
    assert_true(mk_conn_limit_acquire_row(&limit, &row));
    assert_true(mk_conn_limit_acquire_row(&limit, &other));
    assert_int_not_equal(row, other);
    mk_conn_limit_release_row(&limit, row);
    assert_true(mk_conn_limit_acquire_row(&limit, &other));
    assert_int_equal(row, other);
}

/* The server has up to 1024 workers, exiting ones included: 512, twice during a reload. */
static void conn_limit_has_row_for_every_worker(void **state)
{
    unsigned row;
    (void)state;
    for (unsigned i = 0; i < 1024; i++) {
        assert_true(mk_conn_limit_acquire_row(&limit, &row));
        assert_int_equal(row, i);
    }
    assert_false(mk_conn_limit_acquire_row(&limit, &row));
}

static void conn_limit_wake_up_names_backend(void **state)
{
    uint64_t woken[MK_CONN_LIMIT_WORDS];
    uint64_t n;
    (void)state;
    assert_false(mk_conn_limit_pop_woken(&limit, 3, woken));
    mk_conn_limit_wake_row(&limit, 70, 3);
    assert_int_equal(read(mk_conn_limit_wake_fd(&limit, 3), &n, sizeof n), sizeof n);
    assert_false(was_woken(&limit, 3 + MK_CONN_LIMIT_EVENTS)); /* this row shares the eventfd of row 3 */
    assert_true(mk_conn_limit_pop_woken(&limit, 3, woken));
    assert_int_equal(woken[1], 1 << 6);
    assert_false(mk_conn_limit_pop_woken(&limit, 3, woken));
}

/* Waiting for the lock would block the loop of the worker. */
static void conn_limit_lock_of_changes_does_not_wait(void **state)
{
    int ready[2];
    char c = 0;
    (void)state;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!write(ready[1], mk_conn_limit_lock_changes(&limit) ? "y" : "n", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(c, 'y');
    assert_false(mk_conn_limit_lock_changes(&limit));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(
        mk_conn_limit_lock_changes(&limit)); /* the kernel has released the lock of the dead process */
    mk_conn_limit_unlock_changes(&limit);
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(conn_limit_bounds_number_of_connections, setup, teardown),
        fixture_test(conn_limit_dead_worker_slots_are_freed, setup_processes, teardown),
        fixture_test(conn_limit_lock_of_changes_does_not_wait, setup_processes, teardown),
        fixture_test(conn_limit_joining_worker_clears_row_of_dead_one, setup_processes, teardown),
        fixture_test(conn_limit_reused_process_id_does_not_hide_dead_worker, setup_processes, teardown),
        fixture_test(conn_limit_released_row_is_reused, setup, teardown),
        fixture_test(conn_limit_has_row_for_every_worker, setup, teardown),
        fixture_test(conn_limit_wake_up_names_backend, setup_processes, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
