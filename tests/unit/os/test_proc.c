/* SPDX-License-Identifier: Apache-2.0 */
#include "os/proc.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include "unit/child.h"

static int stay_on_one_processor(void)
{
    cpu_set_t set, one;
    if (sched_getaffinity(0, sizeof set, &set) || mk_proc_cpus() != (unsigned)CPU_COUNT(&set))
        return 1;
    size_t first = 0;
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 && mk_proc_cpus() == 1 ? 0 : 2;
}

static void proc_cpu_count_follows_affinity(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(stay_on_one_processor), 0);
}

static void proc_name_is_set(void **state)
{
    (void)state;
    char before[16], name[16];
    assert_int_equal(prctl(PR_GET_NAME, before), 0);
    mk_proc_set_name("monkey: a long name");
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_string_equal(name, "monkey: a long ");
    mk_proc_set_name(before);
}

static int notice_a_lost_parent(void)
{
    int signal = 0;
    if (mk_proc_die_with_parent(getppid(), SIGQUIT))
        return 1;
    if (prctl(PR_GET_PDEATHSIG, &signal) || signal != SIGQUIT)
        return 2;
    return mk_proc_die_with_parent(getpid(), SIGQUIT) == -ESRCH ? 0 : 3;
}

static void proc_lost_parent_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(notice_a_lost_parent), 0);
}

static void stop_until_killed(void)
{
    mk_proc_set_name("a ) T in it");
    raise(SIGSTOP);
    for (;;)
        pause();
}

static void proc_stopped_process_is_recognized(void **state)
{
    (void)state;
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        stop_until_killed();
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    assert_true(mk_proc_is_stopped(child));
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, WCONTINUED), child);
    assert_false(mk_proc_is_stopped(child));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(mk_proc_is_stopped(child)); /* the process no longer exists */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proc_cpu_count_follows_affinity),
        cmocka_unit_test(proc_name_is_set),
        cmocka_unit_test(proc_lost_parent_is_noticed),
        cmocka_unit_test(proc_stopped_process_is_recognized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
