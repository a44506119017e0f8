/* SPDX-License-Identifier: Apache-2.0 */
/* The states of workers in the master. The test starts no processes: it replaces fork(), kill() and waitpid(),
 * and sends and receives the workers' messages itself. */
#include "server/workers.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/fixtures.h"
#include "unit/state_machine.h"
#include "unit/test.h"

enum { FIRST_PID = 1 << 29, PROCESSES_MAX = 8 }; /* no process has such a PID */

static struct mk_loop loop;
static struct mk_errorlog error_log;
static struct mk_workers workers;
static struct mk_shared_state shared;
static struct mk_config_generation first, second;
/* Indexed by the number of the process, in the order of their starts. */
static int channels[PROCESSES_MAX], last_signal[PROCESSES_MAX];
static bool is_dead[PROCESSES_MAX];
static unsigned n_processes;
static int end_of_next;

pid_t __wrap_fork(void);
int __wrap_kill(pid_t pid, int signal);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
mk_err __wrap_mk_control_open(int *master_end, int *worker_end);
mk_err __real_mk_control_open(int *master_end, int *worker_end);

pid_t __wrap_fork(void)
{
    assert_in_range(n_processes, 0, PROCESSES_MAX - 1);
    channels[n_processes] = end_of_next;
    return FIRST_PID + (pid_t)n_processes++;
}

int __wrap_kill(pid_t pid, int signal)
{
    last_signal[pid - FIRST_PID] = signal;
    return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    (void)pid, (void)options;
    for (unsigned i = 0; i < n_processes; i++)
        if (is_dead[i]) {
            is_dead[i] = false;
            *status = 0;
            return FIRST_PID + (pid_t)i;
        }
    return 0;
}

mk_err __wrap_mk_control_open(int *master_end, int *worker_end)
{
    mk_err e = __real_mk_control_open(master_end, worker_end);
    end_of_next = e ? -1 : dup(*worker_end); /* the master closes its copy of the worker's end */
    return e;
}

static void on_change(struct mk_workers *w)
{
    assert_ptr_equal(w, &workers);
}

static void on_log_line(struct mk_log *l, enum mk_log_level level, mk_str text)
{
    (void)l, (void)level, (void)text;
}

static void setup(void)
{
    n_processes = 0;
    memset(last_signal, 0, sizeof last_signal);
    first = second = (struct mk_config_generation){.shared = &shared, .server.workers = 2};
    error_log = (struct mk_errorlog){.log.write = on_log_line};
    loop_setup(&loop);
    assert_int_equal(mk_workers_init(&workers, &loop, &error_log, NULL), 0);
    workers.on_change = on_change;
}

static void teardown(void)
{
    mk_workers_fini(&workers);
    while (n_processes)
        mk_fd_close(&channels[--n_processes]);
}

static void send_from_worker(unsigned process, enum mk_control_kind kind)
{
    assert_int_equal(mk_control_send_kind(channels[process], kind), 0);
    assert_int_equal(mk_loop_run_once(&loop, 0), 0);
}

static enum mk_control_kind receive_in_worker(unsigned process)
{
    struct mk_control_buffer buf;
    struct mk_control_message m;
    return mk_control_receive(channels[process], &buf, &m) ? MK_CONTROL_NONE : m.kind;
}

static void end_worker(unsigned process)
{
    is_dead[process] = true;
    mk_workers_reap(&workers);
}

/* Starts the two workers of a generation, which report that they serve. */
static void start_serving(struct mk_config_generation *g)
{
    unsigned before = n_processes;
    assert_int_equal(mk_workers_start(&workers, g), 0);
    assert_int_equal(n_processes, before + 2);
    assert_int_equal(mk_workers_count(&workers, g, true), 0);
    send_from_worker(before, MK_CONTROL_READY);
    send_from_worker(before + 1, MK_CONTROL_READY);
    assert_int_equal(mk_workers_count(&workers, g, true), 2);
}

static void workers_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&mk_worker_machine, "free: active\n"
                                             "active: free, stopping, draining\n"
                                             "stopping: free, draining\n"
                                             "draining: free\n");
}

static void workers_stopping_may_accept_until_they_confirm(void **state)
{
    (void)state;
    start_serving(&first);
    start_serving(&second);
    mk_workers_stop(&workers, &first, SIGQUIT, true);
    assert_int_equal(mk_workers_count(&workers, &first, false), 0);
    assert_int_equal(mk_workers_count(&workers, &second, true), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(receive_in_worker(i), MK_CONTROL_DRAIN_FOR_SUCCESSOR);
        assert_true(mk_workers_may_still_accept(&workers, &first));
        assert_true(workers.scoreboard.at[i].draining);
        send_from_worker(i, MK_CONTROL_DRAINS);
    }
    assert_false(mk_workers_may_still_accept(&workers, &first));
    end_worker(0);
    end_worker(1);
    assert_int_equal(mk_workers_count_all(&workers), 2);
    assert_int_equal(n_processes, 4); /* their exit was expected: no replacement */
}

static void workers_late_to_confirm_do_not_delay_next_generation(void **state)
{
    (void)state;
    start_serving(&first);
    start_serving(&second);
    mk_workers_stop(&workers, &first, SIGQUIT, true);
    mk_workers_stop(&workers, &second, SIGQUIT, true);
    send_from_worker(2, MK_CONTROL_DRAINS);
    end_worker(3);
    assert_true(mk_workers_may_still_accept(&workers, &first));
    assert_false(mk_workers_may_still_accept(&workers, &second));
}

static void worker_that_drains_by_itself_is_replaced_once(void **state)
{
    (void)state;
    start_serving(&first);
    send_from_worker(1, MK_CONTROL_DRAINS);
    assert_int_equal(n_processes, 3);
    assert_int_equal(receive_in_worker(1), MK_CONTROL_REPLACED);
    send_from_worker(1, MK_CONTROL_DRAINS);
    end_worker(1);
    assert_int_equal(n_processes, 3);
    assert_false(mk_timer_is_set(&workers.restarts[1]->timer));
    send_from_worker(2, MK_CONTROL_READY);
    assert_int_equal(mk_workers_count(&workers, &first, true), 2);
}

static void worker_that_dies_is_replaced_in_its_slot(void **state)
{
    (void)state;
    start_serving(&first);
    end_worker(0);
    assert_int_equal(n_processes, 3);
    assert_int_equal(workers.n_procs, 2);
    assert_false(workers.early_death);
    end_worker(2);
    assert_true(workers.early_death);
}

static void shutdown_signals_all_workers_and_kills_those_that_never_served(void **state)
{
    (void)state;
    start_serving(&first);
    assert_int_equal(mk_workers_start(&workers, &second), 0);
    send_from_worker(0, MK_CONTROL_DRAINS); /* it belongs to an earlier set: no replacement */
    assert_int_equal(n_processes, 4);
    mk_workers_stop(&workers, NULL, SIGTERM, false);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(last_signal[i], SIGTERM);
    send_from_worker(2, MK_CONTROL_READY);
    mk_workers_kill_starting(&workers);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(last_signal[i], i == 3 ? SIGKILL : SIGTERM);
    for (unsigned i = 0; i < 4; i++)
        end_worker(i);
    assert_int_equal(mk_workers_count_all(&workers), 0);
    assert_int_equal(n_processes, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_state_machine_has_these_transitions),
        fixture_test(workers_stopping_may_accept_until_they_confirm, setup, teardown),
        fixture_test(workers_late_to_confirm_do_not_delay_next_generation, setup, teardown),
        fixture_test(worker_that_drains_by_itself_is_replaced_once, setup, teardown),
        fixture_test(worker_that_dies_is_replaced_in_its_slot, setup, teardown),
        fixture_test(shutdown_signals_all_workers_and_kills_those_that_never_served, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
